"""The footers and pages of Parquet files, compared with the size of the file before pyarrow reads them: a contradiction ends the process, a bomb fills memory.

A footer and the head of a page are Thrift messages in the compact protocol; field numbers are those of the published ``parquet.thrift``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from budge.stored import MOST_RATIO, check_unfolded

__all__ = ["MOST_FOOTER", "MOST_TEXTS", "MOST_VALUES", "VALUES_A_BYTE", "Column", "Group", "check_contents", "check_texts", "footer_of", "groups_of"]

MOST_FOOTER = 16 << 20  #: bytes of a footer
MOST_VALUES, VALUES_A_BYTE = 100_000_000, 1000  # equal values are written once with their number
MOST_TEXTS = 512 << 20  #: bytes of the texts of a file in which each is written once, or 200 times its size
_HEAD, _MOST_HEAD = 512, 1 << 16  # bytes in which the head of a page ends, as a rule and at most
_TEXTS = (6, 7)  # physical types: bytes of any length, of one length
_DEPTH = 32
_TAIL = 8  # the length of the footer, and the mark of the format


@dataclass(frozen=True)
class Column:
    """What a footer tells of one column in one row group."""

    path: str
    values: int
    unfolded: int  # bytes
    missing: int | None  # None: not told
    texts: bool
    start: int  # where its pages begin
    packed: int  # bytes of its pages


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
    >>> groups_of(bytes.fromhex("491c191c3c15022918016126061620162026080000" "26060000"))
    [Group(rows=3, columns=(Column(path='a', values=3, unfolded=16, missing=None, texts=False, start=4, packed=16),))]
    """
    try:
        return [Group(_count(group[3]), tuple(_column(chunk[3]) for chunk in group[1])) for group in _struct(footer, 0, 0)[0][4]]
    except (IndexError, KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise ValueError("its footer is damaged") from error


def _column(told: dict[int, Any]) -> Column:
    missing, starts = told.get(12, {}).get(3), (_count(told[9]), _count(told.get(11, 0)))  # of values, of a dictionary; 0 where there are none
    return Column(
        b".".join(told[3]).decode(), _count(told[5]), _count(told[6]), None if missing is None else _count(missing), told[1] in _TEXTS,
        min((start for start in starts if start), default=0), _count(told[7]),
    )  # fmt: skip


def check_contents(file: Any, groups: Sequence[Group]) -> None:
    """Raise a `ValueError` where an open file states far more values, or pages that unfold to far more, than its size allows."""
    size, values = file.seek(0, 2), sum(column.values for group in groups for column in group.columns)
    if values > max(MOST_VALUES, VALUES_A_BYTE * size):
        raise ValueError(f"it states {values:,} values in {size:,} bytes")
    check_unfolded(sum(_unfolded(file, column) for group in groups for column in group.columns), size)


def _unfolded(file: Any, column: Column) -> int:
    """Return the bytes to which the pages of a column state that they unfold."""
    at, total, end = column.start, 0, column.start + column.packed
    while at < end:
        file.seek(at)
        head = file.read(_HEAD)
        try:
            page, length = _struct(head, 0, 0)
        except (IndexError, ValueError):  # statistics may be long
            page, length = _long_head(head + file.read(_MOST_HEAD))
        if not page.keys() >= {2, 3}:
            raise ValueError("a page of it is damaged")
        total += _count(page[2])
        at += length + _count(page[3])
    return total


def _long_head(head: bytes) -> tuple[dict[int, Any], int]:
    try:
        return _struct(head, 0, 0)
    except (IndexError, ValueError) as error:
        raise ValueError("a page of it is damaged") from error


def check_texts(file: Any, groups: Sequence[Group], *, only: int | None = None) -> None:
    """Raise a `ValueError` where the texts of an open file (or of one row group), each written once for many rows at most, are far larger than it is."""
    most, total = max(MOST_TEXTS, MOST_RATIO * file.seek(0, 2)), 0
    chosen = range(len(groups)) if only is None else [only]
    wanted = [(g, [c for c in groups[g].columns if c.texts and c.values * c.unfolded > most]) for g in chosen]
    if not any(columns for _, columns in wanted):
        return
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    opened = pq.ParquetFile(file, read_dictionary=sorted({c.path for _, columns in wanted for c in columns}))
    stored = pq.read_schema(file)  # as categories, texts are not repeated
    lengths = {column.path: column.length for column in map(opened.schema.column, range(len(opened.schema.names)))}
    for g, columns in wanted:
        names = [c.path for c in columns if lengths[c.path] <= 0 and not (c.path in stored.names and pa.types.is_dictionary(stored.field(c.path).type))]
        total += sum(c.values * lengths[c.path] for c in columns if lengths[c.path] > 0)
        if any(name not in stored.names or pa.types.is_nested(stored.field(name).type) for name in names):
            raise ValueError("texts in lists may stand for far more than its size")
        for name in names if total <= most else []:
            for chunk in opened.read_row_group(g, columns=[name]).column(name).chunks:
                total += pc.sum(pc.take(pc.binary_length(chunk.dictionary), chunk.indices)).as_py() or 0
        if total > most:
            raise ValueError(f"its texts unfold to more than {most:,} bytes")


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
