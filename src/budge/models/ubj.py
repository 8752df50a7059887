"""Universal Binary JSON, walked from end to end before XGBoost reads it: XGBoost trusts the lengths that a file states."""

from __future__ import annotations

from budge.errors import ModelError

__all__ = ["check_ubj"]

#: Bytes of each fixed-size value.
SIZES = {
    b"i": 1,
    b"U": 1,
    b"C": 1,
    b"I": 2,
    b"u": 2,
    b"l": 4,
    b"m": 4,
    b"d": 4,
    b"L": 8,
    b"M": 8,
    b"D": 8,
    b"T": 0,
    b"F": 0,
    b"Z": 0,
    b"N": 0,
}
SIGNED = (b"i", b"I", b"l", b"L")
MAX_DEPTH = 64


def check_ubj(content: bytes, *, where: str = "model") -> None:
    """Raise unless the bytes are one whole UBJSON object with a learner in it.

    Examples
    --------
    >>> check_ubj(b"{L\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x07learner{L")
    Traceback (most recent call last):
    budge.errors.ModelError: model: the file is cut off or broken: ...; save the model again
    """
    try:
        if content[:1] != b"{":
            raise ValueError("it is no object")
        end = _value(content, 0, 0)
        if end != len(content):
            raise ValueError("there is something after its end")
    except (ValueError, IndexError) as error:
        raise ModelError(f"the file is cut off or broken: {error}", where=where, remedy="save the model again") from error


def _value(data: bytes, at: int, depth: int) -> int:
    """Where the value that begins here ends."""
    kind = data[at : at + 1]
    at += 1
    if depth > MAX_DEPTH:
        raise ValueError("it is too deep")
    if kind in SIZES:
        return _skip(data, at, SIZES[kind])
    if kind in (b"S", b"H"):
        size, at = _length(data, at)
        return _skip(data, at, size)
    if kind == b"[":
        return _array(data, at, depth)
    if kind == b"{":
        while data[at : at + 1] != b"}":
            size, at = _length(data, at)
            at = _value(data, _skip(data, at, size), depth + 1)
        return at + 1
    raise ValueError(f"{kind!r} begins no value" if kind else "it ends too soon")


def _array(data: bytes, at: int, depth: int) -> int:
    if data[at : at + 1] == b"$":
        kind = data[at + 1 : at + 2]
        if SIZES.get(kind, 0) == 0 or data[at + 2 : at + 3] != b"#":
            raise ValueError("a list of an unknown type")
        size, at = _length(data, at + 3)
        return _skip(data, at, size * SIZES[kind])
    if data[at : at + 1] == b"#":
        size, at = _length(data, at + 1)
        if size > len(data) - at:
            raise ValueError("a list longer than the file")
        for _ in range(size):
            at = _value(data, at, depth + 1)
        return at
    while data[at : at + 1] != b"]":
        at = _value(data, at, depth + 1)
    return at + 1


def _length(data: bytes, at: int) -> tuple[int, int]:
    kind = data[at : at + 1]
    if kind not in (b"i", b"U", b"I", b"u", b"l", b"m", b"L", b"M"):
        raise ValueError(f"{kind!r} begins no length" if kind else "it ends too soon")
    end = _skip(data, at + 1, SIZES[kind])
    size = int.from_bytes(data[at + 1 : end], "big", signed=kind in SIGNED)
    if size < 0:
        raise ValueError("a negative length")
    return size, end


def _skip(data: bytes, at: int, size: int) -> int:
    if at + size > len(data):
        raise ValueError("it ends too soon")
    return at + size
