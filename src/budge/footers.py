"""The footers of Parquet files, read before pyarrow is asked about single columns: a contradiction there ends the process.

A footer is a Thrift message in the compact protocol; field numbers are those of the published ``parquet.thrift``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["MOST_FOOTER", "Column", "Group", "footer_of", "groups_of"]

MOST_FOOTER = 16 << 20  #: bytes of a footer
_DEPTH = 32
_TAIL = 8  # the length of the footer, and the mark of the format


@dataclass(frozen=True)
class Column:
    """What a footer tells of one column in one row group."""

    path: str
    values: int
    unfolded: int  # bytes
    missing: int | None  # None: not told


@dataclass(frozen=True)
class Group:
    """A row group: its rows and its columns."""

    rows: int
    columns: tuple[Column, ...]


def footer_of(file: Any) -> bytes:
    """Return the footer of an open file; a file that ends otherwise is a `ValueError`."""
    end = file.seek(0, 2)
    file.seek(max(0, end - _TAIL))
    tail = file.read(_TAIL)
    size = int.from_bytes(tail[:4], "little")
    if len(tail) < _TAIL or tail[4:] != b"PAR1" or size > end - _TAIL:
        raise ValueError("it does not end as a Parquet file does")
    if size > MOST_FOOTER:
        raise ValueError(f"its footer is larger than {MOST_FOOTER:,} bytes: write it with larger row groups, or in several files")
    file.seek(end - _TAIL - size)
    found = file.read(size)
    if len(found) != size:
        raise ValueError("it does not end as a Parquet file does")
    return bytes(found)


def groups_of(footer: bytes) -> list[Group]:
    """Return the row groups that a footer lists; a footer of another shape is a `ValueError`.

    Examples
    --------
    >>> groups_of(bytes.fromhex("491c191c3c3918016126061620000026060000"))
    [Group(rows=3, columns=(Column(path='a', values=3, unfolded=16, missing=None),))]
    """
    try:
        return [Group(_count(group[3]), tuple(_column(chunk[3]) for chunk in group[1])) for group in _struct(footer, 0, 0)[0][4]]
    except (IndexError, KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise ValueError("its footer is damaged") from error


def _column(told: dict[int, Any]) -> Column:
    missing = told.get(12, {}).get(3)
    return Column(b".".join(told[3]).decode(), _count(told[5]), _count(told[6]), None if missing is None else _count(missing))


def _count(number: Any) -> int:
    if type(number) is not int or not 0 <= number < 1 << 63:
        raise ValueError("its footer is damaged")
    return number


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("its footer is damaged")


def _struct(data: bytes, at: int, depth: int) -> tuple[dict[int, Any], int]:
    if depth > _DEPTH:
        raise ValueError("its footer is damaged")
    found: dict[int, Any] = {}
    number = 0
    while True:
        byte = data[at]
        at += 1
        if not byte:
            return found, at
        if byte >> 4:
            number += byte >> 4
        else:
            coded, at = _varint(data, at)
            number = coded >> 1 ^ -(coded & 1)
        kind = byte & 15
        if number in found:
            raise ValueError("its footer is damaged")  # readers differ about which one counts
        if kind in (1, 2):
            found[number] = kind == 1
        else:
            found[number], at = _value(data, at, kind, depth)


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (4, 5, 6):
        coded, at = _varint(data, at)
        return coded >> 1 ^ -(coded & 1), at
    if kind == 8:
        size, at = _varint(data, at)
        if at + size > len(data):
            raise ValueError("its footer is damaged")
        return data[at : at + size], at + size
    if kind == 12:
        return _struct(data, at, depth + 1)
    if kind in (9, 10):
        return _list(data, at, depth)
    if kind in (1, 2, 3, 7, 13):  # of no interest here, but for their length
        return None, at + {7: 8, 13: 16}.get(kind, 1)
    raise ValueError("its footer is damaged")  # maps do not occur


def _list(data: bytes, at: int, depth: int) -> tuple[list[Any], int]:
    size, kind = data[at] >> 4, data[at] & 15
    at += 1
    if size == 15:
        size, at = _varint(data, at)
    if size > len(data) - at or depth > _DEPTH:
        raise ValueError("its footer is damaged")
    found = []
    for _ in range(size):
        value, at = _value(data, at, kind, depth + 1)
        found.append(value)
    return found, at
