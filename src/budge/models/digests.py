"""A digest of what an object holds: the same fitted model gives the same digest in every process; and versions of the packages that predict.

Pickled bytes would not do: they depend on how objects are shared and on the order of sets. Here the content is walked: arrays by
their bytes, mappings and sets in sorted order, other objects by the state that they would be copied with.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["content_digest", "packages_of", "sha256"]


class _OpaqueError(Exception):
    """Something whose content cannot be seen."""


def packages_of(predictors: Iterable[Any]) -> dict[str, str]:
    """Return the versions of the packages that predicted, as far as models show which they are."""
    names = {"sklearn": "scikit-learn", "xgboost": "XGBoost", "lightgbm": "LightGBM", "onnxruntime": "ONNX Runtime", "torch": "PyTorch"}
    held = [value for p in predictors for value in getattr(getattr(p, "engine", p), "__dict__", {}).values()]
    held += [step for value in held if type(value).__module__ == "sklearn.pipeline" for _, step in getattr(value, "steps", ())]
    roots = {type(value).__module__.partition(".")[0] for value in held}
    roots |= {"onnxruntime"} if any(type(value).__name__ == "OnnxModel" for value in held) else set()
    return {name: str(sys.modules[root].__version__) for root, name in names.items() if root in roots and root in sys.modules}


def sha256(*parts: bytes) -> str:
    """Digest of bytes, as text; parts are kept apart."""
    total = hashlib.sha256()
    for part in parts:
        total.update(len(part).to_bytes(8, "little"))
        total.update(part)
    return total.hexdigest()


def content_digest(value: object) -> str | None:
    """Digest of the content, or None where it cannot be seen (a lambda, a lock, an open file).

    Examples
    --------
    >>> content_digest({"a": 1, "b": [2.0]}) == content_digest({"b": [2.0], "a": 1})
    True
    >>> content_digest(1) == content_digest(True), content_digest(lambda x: x)
    (False, None)
    """
    try:
        return _walk(value, ()).hex()
    except (_OpaqueError, RecursionError):
        return None


def _walk(value: object, above: tuple[int, ...]) -> bytes:
    if id(value) in above:
        return _hash("cycle", [str(len(above) - above.index(id(value))).encode()])
    kind = type(value)
    tag = f"{kind.__module__}.{kind.__qualname__}"
    inside = (*above, id(value))
    if value is None or isinstance(value, bool | int | float | complex | str | np.generic | np.dtype):
        return _hash(tag, [repr(value).encode("utf-8", "surrogatepass")])
    if isinstance(value, bytes | bytearray):
        return _hash(tag, [bytes(value)])
    if isinstance(value, np.ndarray):
        return _hash(tag, _array(value, inside))
    if isinstance(value, pd.DataFrame | pd.Series | pd.Index):
        return _hash(tag, [_walk(part, inside) for part in _pandas(value)])
    if isinstance(value, Mapping):
        return _hash(tag, sorted(_walk(k, inside) + _walk(v, inside) for k, v in value.items()))
    if isinstance(value, set | frozenset):
        return _hash(tag, sorted(_walk(item, inside) for item in value))
    if isinstance(value, list | tuple):
        return _hash(tag, [_walk(item, inside) for item in value])
    if callable(value) and hasattr(value, "__qualname__"):
        return _hash("name", [_named(value).encode()])
    return _hash(tag, [_walk(part, inside) for part in _state(value)])


def _hash(tag: str, parts: Iterable[bytes]) -> bytes:
    return bytes.fromhex(sha256(tag.encode(), *parts))


def _array(value: np.ndarray[Any, Any], inside: tuple[int, ...]) -> Iterator[bytes]:
    yield f"{value.dtype.str} {value.shape}".encode()
    if value.dtype.names:  # field by field: the padding between fields holds anything
        for name in value.dtype.names:
            yield from _array(np.ascontiguousarray(value[name]), inside)
    elif value.dtype.hasobject:
        for item in value.ravel().tolist():
            yield _walk(item, inside)
    else:
        yield np.ascontiguousarray(value).tobytes()


def _pandas(value: pd.DataFrame | pd.Series[Any] | pd.Index) -> Iterator[object]:
    if isinstance(value, pd.DataFrame):
        yield from (list(value.columns), value.index)
        for i in range(value.shape[1]):
            yield value.iloc[:, i]
    elif isinstance(value, pd.Series):
        yield from (str(value.dtype), value.name, value.to_numpy(), value.index)
    else:
        yield from (str(value.dtype), list(value.names), value.to_numpy())


def _named(value: Any) -> str:
    name = f"{value.__module__}.{value.__qualname__}"
    # What a name in a package stands for changes with its version only; a lambda or a notebook's function changes at will.
    if not value.__module__ or "<" in name or value.__module__ == "__main__" or getattr(value, "__self__", None) is not None:
        raise _OpaqueError(name)
    return name


def _state(value: object) -> Iterator[object]:
    try:
        reduced = value.__reduce_ex__(4)
    except Exception as error:
        raise _OpaqueError(type(value).__name__) from error
    if isinstance(reduced, str):
        yield reduced
        return
    maker, arguments, *rest = reduced
    yield from (maker, arguments)
    for part in rest:
        yield list(part) if isinstance(part, Iterator) else part
