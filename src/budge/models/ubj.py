"""Universal Binary JSON in: the subset that XGBoost writes, decoded within the bytes that are there.

XGBoost trusts the lengths that a file states; here each is compared with what is left of the file. Typed lists become arrays that share
the file's memory.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from budge.models.limits import JSON_PARTS, BeyondLimitError

__all__ = ["DEEPEST", "decode_ubj"]

DEEPEST = 64  #: levels of nesting
_NUMBERS = {
    ord("i"): struct.Struct(">b"),
    ord("U"): struct.Struct(">B"),
    ord("C"): struct.Struct(">b"),
    ord("I"): struct.Struct(">h"),
    ord("l"): struct.Struct(">i"),
    ord("L"): struct.Struct(">q"),
    ord("d"): struct.Struct(">f"),
    ord("D"): struct.Struct(">d"),
}
_ARRAYS = {ord(kind): np.dtype(form) for kind, form in zip("iUIlLdD", ("i1", "u1", ">i2", ">i4", ">i8", ">f4", ">f8"))}
_WORDS = {ord("T"): True, ord("F"): False, ord("Z"): None}


def decode_ubj(data: bytes) -> Any:
    """Return the one value in the bytes: mappings, lists, arrays, texts and numbers.

    Raises
    ------
    ValueError
        If the bytes end too soon, go on after the value, nest too deeply or hold a key twice.

    Examples
    --------
    >>> decode_ubj(b"{L\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01a[$l#L\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01\\x00\\x00\\x00\\x07}")
    {'a': array([7], dtype='>i4')}
    """
    try:
        value, end = _value(data, 0, 0, [JSON_PARTS])
    except (IndexError, struct.error):
        raise ValueError("it ends too soon") from None
    if end != len(data):
        raise ValueError("there is something after its end")
    return value


def _value(data: bytes, at: int, depth: int, left: list[int]) -> tuple[Any, int]:
    """Return the value that begins here, and where it ends; `left` counts down."""
    left[0] -= 1
    if left[0] < 0:
        raise BeyondLimitError(f"it has more than {JSON_PARTS:,} values (JSON_PARTS)")
    if depth > DEEPEST:
        raise ValueError(f"it nests more than {DEEPEST} levels deep")
    kind = data[at]
    at += 1
    if kind == 0x5B:  # [
        return _list(data, at, depth, left)
    if kind == 0x7B:  # {
        tree: dict[str, Any] = {}
        while data[at] != 0x7D:  # }
            key, at = _text(data, at)
            if key in tree:
                raise ValueError(f"it holds the key {key[:40]!r} twice")
            tree[key], at = _value(data, at, depth + 1, left)
        return tree, at + 1
    if kind == 0x53:  # S
        return _text(data, at)
    if form := _NUMBERS.get(kind):
        return form.unpack_from(data, at)[0], at + form.size
    if kind in _WORDS:
        return _WORDS[kind], at
    raise ValueError(f"{bytes([kind])!r} begins no value")


def _list(data: bytes, at: int, depth: int, left: list[int]) -> tuple[Any, int]:
    if data[at] == 0x24:  # $: all of one type
        dtype = _ARRAYS.get(data[at + 1])
        if dtype is None or data[at + 2] != 0x23:
            raise ValueError("a list of an unknown type")
        size, at = _length(data, at + 3, dtype.itemsize)
        return np.frombuffer(data, dtype, size, at), at + size * dtype.itemsize
    items: list[Any] = []
    if data[at] == 0x23:  # #: of a stated length
        size, at = _length(data, at + 1, 1)
        for _ in range(size):
            item, at = _value(data, at, depth + 1, left)
            items.append(item)
        return items, at
    while data[at] != 0x5D:  # ]
        item, at = _value(data, at, depth + 1, left)
        items.append(item)
    return items, at + 1


def _text(data: bytes, at: int) -> tuple[str, int]:
    size, at = _length(data, at, 1)
    return data[at : at + size].decode(), at + size


def _length(data: bytes, at: int, each: int) -> tuple[int, int]:
    """Return a stated number of items, which must be in the file, and where the first of them begins."""
    if data[at] != 0x4C:  # L, the one type of lengths that XGBoost takes
        raise ValueError(f"{data[at : at + 1]!r} begins no length")
    size: int = _NUMBERS[0x4C].unpack_from(data, at + 1)[0]
    if not 0 <= size * each <= len(data) - at - 9:
        raise ValueError("a length does not fit into the file")
    return size, at + 9
