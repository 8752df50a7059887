"""Keys of points: a digest of a row's content, the same wherever and however the row is held.

A key depends on names and values, not on the order of columns, on float32 or float64, on 1 or 1.0, nor on -0.0 or 0.0; but 1,
"1" and True give three keys. It ties a returned prediction, or a cached answer, to the point that it is for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.errors import DataError, nearest
from budge.models.reading import kind_of, plain
from budge.models.rows import Array, Rows

__all__ = ["point_keys"]

#: Integers up to here are exact as floats; larger ones are keyed as text.
EXACT = 2**53


def point_keys(frame: Rows, *, columns: Iterable[str] | None = None) -> Array:
    """One key a row: 32 hexadecimal digits.

    Parameters
    ----------
    frame
        The points.
    columns
        Which columns make the point; all by default.

    Examples
    --------
    >>> one = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    >>> two = pd.DataFrame({"b": ["y", "x"], "a": [2.0, 1.0]})
    >>> bool((point_keys(one) == point_keys(two)[::-1]).all())
    True
    """
    if not isinstance(frame, pd.DataFrame):
        flat = np.asarray(frame).reshape(len(frame), -1)
        frame = pd.DataFrame(flat, columns=[str(i) for i in range(flat.shape[1])])
    names = list(map(str, frame.columns)) if columns is None else list(columns)
    frame = frame.set_axis(list(map(str, frame.columns)), axis=1)
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise DataError(
            "a column of the key is missing", where=f"column {missing[0]!r}", remedy=nearest(missing[0], frame.columns)
        )
    names.sort()
    if len(set(names)) < len(names) or not frame.columns.is_unique:
        raise DataError("column labels occur twice", where="columns", got=names)
    matrix = np.empty((len(frame), len(names)), dtype=np.uint64)
    for j, name in enumerate(names):
        matrix[:, j] = _codes(frame[name])
    seed = hashlib.blake2b("\x00".join(names).encode(), digest_size=32).digest()
    rows = memoryview(matrix.tobytes())
    width = matrix.shape[1] * 8
    if not width:
        raise DataError("a point has no columns", where="columns", got=frame.shape)
    digests = [hashlib.blake2b(rows[i : i + width], digest_size=16, key=seed).hexdigest() for i in range(0, len(rows), width)]
    return np.array(digests, dtype=object)


def _codes(column: pd.Series[Any]) -> npt.NDArray[np.uint64]:
    """A number for each value: the bits of a float, or a digest of each distinct value of any other kind."""
    kind = getattr(column.dtype, "kind", "O")
    if kind in "iuf" and not isinstance(column.dtype, pd.CategoricalDtype):
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
        if kind == "f" or not (np.abs(numbers) >= EXACT).any():
            numbers = numbers + 0.0  # -0.0 becomes 0.0
            numbers[np.isnan(numbers)] = np.nan
            return np.ascontiguousarray(numbers).view(np.uint64)
    objects = column.astype(object).to_numpy()
    known: dict[tuple[str, object], int] = {}
    codes = np.empty(len(objects), dtype=np.uint64)
    for i, raw in enumerate(objects):
        value = plain(raw)
        missing = value is None or value is pd.NA or value is pd.NaT or value != value
        label = ("missing", None) if missing else (kind_of(value), value)
        code = known.get(label)
        if code is None:
            code = known[label] = _code(*label)
        codes[i] = code
    return codes


def _code(kind: str, value: Any) -> int:
    if kind == "missing":
        return int(np.array(np.nan).view(np.uint64))
    if kind == "number" and abs(value) < EXACT:
        return int(np.array(float(value) + 0.0).view(np.uint64))
    text = value.isoformat() if hasattr(value, "isoformat") else str(value) if isinstance(value, str) else repr(value)
    return int.from_bytes(hashlib.blake2b(f"{kind}\x00{text}".encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
