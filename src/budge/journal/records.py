"""Records as JSON text and back: every float to the bit, NaN and infinities by name, never invalid JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from budge.stored import parse_json

__all__ = ["decode", "encode"]


def encode(value: Any) -> str:
    """A value as canonical JSON: keys sorted, floats as `repr` writes them, NaN and infinities as ``{"$float": "nan"}``.

    NumPy scalars and arrays become plain numbers and lists; tuples become lists. Anything else that JSON cannot hold is
    a `TypeError`.

    Examples
    --------
    >>> text = encode({"rho": 0.1, "low": float("nan"), "hits": 3})
    >>> text
    '{"hits":3,"low":{"$float":"nan"},"rho":0.1}'
    >>> decode(text)["rho"]
    0.1
    """
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def decode(text: str) -> Any:
    """What `encode` was given; a text that is too large, too deep or ambiguous is a `ValueError`."""
    return _values(parse_json(text))


def _plain(value: Any) -> Any:
    """The value in JSON's own types. A key that starts with ``$`` gets another one, so that ours are told apart."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):  # repr, and so JSON, gives back the same float
        return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
    if isinstance(value, Mapping):
        strange = [key for key in value if not isinstance(key, str)]
        if strange:
            raise TypeError(f"the key of a record is a text, not {strange[0]!r}")
        return {f"${key}" if key.startswith("$") else key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        plain = value.tolist()
        if type(plain).__module__ == "builtins":
            return _plain(plain)
    raise TypeError(f"a record holds numbers, texts, lists and mappings, not {type(value).__name__}: {value!r}")


def _values(value: Any) -> Any:
    if isinstance(value, list):
        return [_values(item) for item in value] if any(isinstance(item, list | dict) for item in value) else value
    if not isinstance(value, dict):
        return value
    if value.keys() == {"$float"}:
        return float(value["$float"])
    return {key[1:] if key.startswith("$") else key: _values(item) for key, item in value.items()}
