"""Tables that are not files of text: Parquet, Feather, Excel, JSON lines; and rows of Python values as a table."""

from __future__ import annotations

import datetime
import io
import re
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import IO, TYPE_CHECKING, Any

from budge.errors import BudgeError, DataError, MissingDependencyError, nearest
from budge.footers import MOST_VALUES, VALUES_A_BYTE, check_contents, check_texts, footer_of, groups_of
from budge.stored import check_unfolded, open_zip, parse_json
from budge.tables.form import FIRST_LINE, MISSING, checked_names, holds_values, replaced, unnamed
from budge.tables.how import How, Note
from budge.tables.packages import package
from budge.tables.text import as_numbers, marks_in, notes_on

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MOST_CELLS", "MOST_LETTERS", "from_rows", "read_excel", "read_feather", "read_json", "read_parquet"]

MOST_CELLS = 20_000_000  # of rows of Python values, each of which takes many times the memory of a number
MOST_LETTERS = 128 << 20  # of the texts of a database
MOST_BLANKS = 4_000_000  # cells of a sheet or of JSON lines that are not written down

_HALF = re.compile("[\ud800-\udfff]")  # one of a pair of codes, which JSON can name alone


def read_parquet(file: IO[bytes], name: str) -> pd.DataFrame:
    """Return the table of a Parquet file; what it states of itself is compared with its size before it is read."""
    import pandas as pd

    package("pyarrow", "Parquet needs pyarrow", "parquet", name)
    try:
        groups = groups_of(footer_of(file))
        check_contents(file, groups)
        check_texts(file, groups)
        file.seek(0)
        return pd.read_parquet(file)
    except Exception as error:  # pyarrow raises errors of any type for a damaged file
        raise DataError(f"cannot be read: {error}", where=name) from error


def read_feather(file: IO[bytes], name: str) -> pd.DataFrame:
    """Return the table of a Feather file (Arrow's file format); what its buffers unfold to is compared with its size before it is read."""
    arrow = package("pyarrow", "Feather needs pyarrow", "parquet", name)
    try:
        size = file.seek(0, 2)
        check_unfolded(sum(_buffers(file, size)), size)
        file.seek(0)
        with arrow.ipc.open_file(file) as reader:
            _check_kinds(arrow, reader.schema)
            table = reader.read_all()
        blank = table.num_rows * sum(arrow.types.is_null(kind) for kind in table.schema.types)
        if table.num_rows * table.num_columns > max(MOST_VALUES, VALUES_A_BYTE * size) or blank > MOST_BLANKS + size:
            raise ValueError(f"it states {table.num_rows:,} rows in {size:,} bytes")
        table.validate(full=True)
        found: pd.DataFrame = table.to_pandas()
    except Exception as error:  # pyarrow raises errors of any type for a damaged file
        raise DataError(f"cannot be read: {error}", where=name, remedy="write it again, as Feather version 2 or Parquet") from error
    return found


def _check_kinds(arrow: Any, schema: Any) -> None:
    """Raise a `ValueError` for a column whose values are not written one by one: few bytes may stand for any number of them."""
    types = arrow.types
    for field in schema:
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        plain = types.is_primitive(kind) or types.is_decimal(kind) or types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
        if not (plain or types.is_null(kind) or types.is_string(kind) or types.is_large_string(kind)):
            raise ValueError(f"the column {field.name!r} holds {field.type}: a cell is a text or a number")


def _buffers(file: IO[bytes], size: int) -> Iterable[int]:
    """Yield the bytes that each packed buffer of an Arrow file states to unfold to; the file lists its batches in a footer, each batch its buffers."""
    file.seek(size - 10)
    tail = file.read(10)
    if tail[4:] != b"ARROW1":
        raise ValueError("it does not end as a Feather file does")
    length = int.from_bytes(tail[:4], "little")
    file.seek(size - 10 - length)
    footer = file.read(length)
    for vector in (2, 3):  # dictionaries, batches
        for at, count in _vector(footer, _root(footer), vector):
            for k in range(count):
                offset, message = struct.unpack_from("<qi", footer, at + 24 * k)
                file.seek(offset)
                data = file.read(message)
                yield from _of_message(file, offset + message, data[8:] if data[:4] == b"\xff\xff\xff\xff" else data[4:], size)


def _of_message(file: IO[bytes], body: int, data: bytes, size: int) -> Iterable[int]:
    kind, at = _field(data, _root(data), 1), _field(data, _root(data), 2)
    if kind is None or at is None:
        return
    batch = at + _word(data, at)
    if data[kind] == 2:  # a dictionary holds its batch inside
        at = _field(data, batch, 1)
        if at is None:
            return
        batch = at + _word(data, at)
    if _field(data, batch, 3) is None:  # not packed
        return
    for start, count in _vector(data, batch, 2):
        for k in range(count):
            offset, length = struct.unpack_from("<qq", data, start + 16 * k)
            if length >= 8 and 0 <= body + offset <= size - 8:
                file.seek(body + offset)
                yield max(int.from_bytes(file.read(8), "little", signed=True), 0)


def _word(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<I", data, at)[0])


def _root(data: bytes) -> int:
    return _word(data, 0)


def _field(data: bytes, table: int, number: int) -> int | None:
    """Return where a field of a flatbuffer's table stands; None where it is left out."""
    index = table - struct.unpack_from("<i", data, table)[0]
    if 4 + 2 * number >= struct.unpack_from("<H", data, index)[0]:
        return None
    step = struct.unpack_from("<H", data, index + 4 + 2 * number)[0]
    return table + step if step else None


def _vector(data: bytes, table: int, number: int) -> Iterable[tuple[int, int]]:
    at = _field(data, table, number)
    if at is not None:
        at += _word(data, at)
        yield at + 4, _word(data, at)


def read_json(file: IO[bytes], name: str, how: How) -> tuple[pd.DataFrame, list[Note]]:
    """Return the table of JSON lines, an object per line, or of one list of objects."""
    file.seek(0)
    columns: dict[str, list[Any]] = {}
    rows, cells = 0, 0
    for where, record in _objects(file, name):
        if not isinstance(record, dict):
            raise DataError("is not an object", where=where, got=record, remedy="JSON lines have one object per line: {\"age\": 30}")
        for key, value in record.items():
            if isinstance(value, list | dict):
                raise DataError(f"a cell is a text, a number, true, false or null, and {key!r} is none of them", where=where, got=value)
            if (isinstance(value, str) and _HALF.search(value)) or _HALF.search(key):
                raise DataError("holds half a sign, which is no text", where=where, got=ascii(value if isinstance(value, str) else key))
            column = columns.setdefault(key, [])
            column.extend([None] * (rows - len(column)))
            column.append(value)
        rows, cells = rows + 1, cells + len(record)
        _check_cells(cells, rows * len(columns), name)
    if not columns:
        raise DataError("there are no people", where=name)
    checked_names(list(columns), name)
    for column in columns.values():
        column.extend([None] * (rows - len(column)))
    return from_rows(columns, how)


def _objects(file: IO[bytes], name: str) -> Iterable[tuple[str, Any]]:
    start = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")
    file.seek(0)
    try:
        if start.startswith(b"["):
            whole = parse_json(file.read().decode("utf-8-sig"), constants=True)
            yield from ((f"{name}, entry {k}", record) for k, record in enumerate(whole, 1))
            return
        for number, line in enumerate(io.TextIOWrapper(file, encoding="utf-8-sig"), 1):
            if line.strip():
                try:
                    record = parse_json(line, constants=True)
                except ValueError as error:
                    raise DataError(f"is no JSON: {error}", where=f"{name}, line {number}") from None
                yield f"{name}, line {number}", record
    except UnicodeDecodeError as error:
        raise DataError("is not UTF-8", where=name, got=error.object[error.start : error.start + 1], remedy="save it as UTF-8") from None
    except ValueError as error:
        if isinstance(error, BudgeError):
            raise
        raise DataError(f"is no JSON: {error}", where=name) from None


def read_excel(file: IO[bytes], name: str, how: How) -> tuple[pd.DataFrame, list[Note]]:
    """Return the table of a sheet of an Excel file: the only one, or the one that is named."""
    openpyxl = package("openpyxl", "Excel files need openpyxl", "excel", name)
    try:
        formulas = False
        with open_zip(file) as archive:
            for member in archive.infolist():
                with archive.open(member) as inside:
                    if b"<!DOCTYPE" in inside.read(2000).upper():
                        raise ValueError("it declares entities, which no spreadsheet does")
                if member.filename.startswith("xl/worksheets/"):
                    with archive.open(member) as inside:
                        formulas = formulas or any(b"</f>" in line for line in inside)
            unfolded = sum(member.file_size for member in archive.infolist())
        file.seek(0)
        book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        sheets = [sheet.title for sheet in book.worksheets]
        if how.sheet is None and len(sheets) != 1:
            raise DataError(f"has {len(sheets)} sheets", where=name, got=", ".join(sheets[:8]), remedy="name one: sheet=…")
        wanted = how.sheet if how.sheet is not None else sheets[0]
        if wanted not in sheets:
            raise DataError("has no such sheet", where=name, got=wanted, remedy=nearest(wanted, sheets))
        sheet = book[wanted]
        sheet.reset_dimensions()  # what it states of its size may be anything
        rows: list[Sequence[Any]] = []
        cells = 0
        for row in sheet.iter_rows(values_only=True):
            cells += len(row)
            _check_cells(min(cells, unfolded // 8), cells + len(rows), name)
            rows.append(row)
        if formulas:
            _check_results(openpyxl.load_workbook(file, read_only=True, keep_links=False)[wanted], rows, name)
    except (DataError, MissingDependencyError):
        raise
    except Exception as error:  # openpyxl raises errors of any type for a damaged file
        raise DataError(f"cannot be read: {error}"[:500], where=name, remedy="save it again as .xlsx or as CSV") from None
    return _sheet(rows, name, how)


def _check_results(sheet: Any, rows: Sequence[Sequence[Any]], name: str) -> None:
    """Raise an error where a cell holds a formula whose result is not in the file: it would be read as missing."""
    sheet.reset_dimensions()
    for row, results in zip(sheet.iter_rows(), rows):
        for cell, result in zip(row, results):
            if cell.data_type == "f" and result is None:
                remedy = "open it in a spreadsheet program and save it, or save it as CSV"
                raise DataError("holds a formula without its result", where=f"{name}, cell {cell.coordinate}", got=str(cell.value), remedy=remedy)


def _sheet(rows: list[Sequence[Any]], name: str, how: How) -> tuple[pd.DataFrame, list[Note]]:
    filled = [row for row in rows if any(cell is not None for cell in row)]
    if not filled:
        raise DataError("the sheet is empty", where=name)
    width = max(len(row) - next((k for k, cell in enumerate(reversed(row)) if cell is not None), len(row)) for row in filled)
    notes = []
    header = how.header
    if header is None:
        header = not holds_values([["" if cell is None else str(cell) for cell in row[:width]] for row in filled[:200]])
        if not header and how.names is None:
            notes.append(unnamed(width))
    if header:
        names = ["" if cell is None else str(cell) for cell in [*filled[0], *[None] * width][:width]]
    else:
        names = [f"column_{k}" for k in range(1, width + 1)]
    notes += replaced(names, how.names) if header and how.header is None and how.names is not None else []
    names = list(how.names) if how.names is not None else names
    checked_names(names, name, FIRST_LINE if header and how.header is None and how.names is None else "")
    if len(names) != width:
        raise DataError(f"the table has {width} columns", where="names", got=f"{len(names)} names", remedy="name all of them")
    body = filled[1:] if header else filled
    frame, more = from_rows({c: [row[k] if k < len(row) else None for row in body] for k, c in enumerate(names)}, how)
    return (frame.set_index("").rename_axis(None) if names[0] == "" else frame), notes + more


def _check_cells(written: int, cells: int, name: str) -> None:
    if cells > MOST_CELLS or cells - written > MOST_BLANKS + written:
        raise DataError(f"has more than {MOST_CELLS:,} cells, or mostly blank ones", where=name, remedy="save it as Parquet or CSV")


def from_rows(columns: dict[str, list[Any]], how: How) -> tuple[pd.DataFrame, list[Note]]:
    """Return columns of Python values as a table, and what was noticed: texts stay texts, signs for missing values among numbers are missing."""
    import pandas as pd

    text = columns if how.text is None else how.text
    unknown = [c for c in text if c not in columns]
    if unknown:
        raise DataError("no such column", where="text", got=unknown[0], remedy=nearest(unknown[0], columns))
    seen: dict[str, tuple[Counter[str], bool]] = {}
    made: dict[str, Any] = {}
    for name, values in columns.items():
        values = [float(v) if isinstance(v, Decimal) else str(v) if isinstance(v, datetime.time | datetime.timedelta | bytes) else v for v in values]
        if how.missing:
            values = [None if str(v) in how.missing else v for v in values]
        if name in text:
            made[name] = pd.Series([None if v is None else str(v) for v in values], dtype="str")
            continue
        texts = [v for v in values if isinstance(v, str)]
        plain = all(v is None or isinstance(v, bool | int | float) for v in values if not isinstance(v, str))
        column = pd.Series(values, dtype=None if any(v is not None for v in values) else float)
        if texts:
            seen[name] = marks_in(column), False
        if plain and column.dtype.kind not in "biuf" and len(texts) < sum(v is not None for v in values):
            numbers = column if not MISSING.issuperset(texts) else as_numbers(column)  # a text of digits stays a text
            if numbers.dtype.kind == "f":
                column, seen[name] = numbers, (marks_in(column), True)
        made[name] = column
    return pd.DataFrame(made), notes_on(seen)
