"""The table of a file of text, and what its cells mean: numbers, labels, signs for missing values."""

from __future__ import annotations

import csv
import io
import warnings
from collections import Counter
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any

from budge.errors import DataError, Problem, StorageError
from budge.tables.form import MISSING, Form
from budge.tables.how import Note

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["as_labels", "as_numbers", "marks_in", "notes_on", "parse_text", "text_table"]


def text_table(source: IO[bytes], name: str, form: Form) -> tuple[pd.DataFrame, list[Note]]:
    """Return the table of a file of text, and what was noticed in its cells.

    A first column without a name, such as pandas writes for its index, labels the rows. Of this column, and of labels, cells are kept as they stand:
    007 and 7 are two people.
    """
    if set(form.text) == set(form.names) and len(form.separator) == 1:
        _check_even(source, name, form)
    source.seek(0)
    frame = parse_text(source, name, form, skip=form.header)
    seen: dict[str, tuple[Counter[str], bool]] = {}
    for column in form.names:
        if column in form.labels:
            frame[column] = as_labels(frame[column])
        elif frame[column].dtype.kind not in "biuf" and column not in form.text:
            marks = marks_in(frame[column])
            frame[column] = as_numbers(frame[column], decimal=form.decimal)
            seen[column] = marks, frame[column].dtype.kind == "f"
    short = _short_lines(source, name, form) if len(form.separator) == 1 and frame[form.names[-1]].isna().any() else []
    frame = frame.set_index("").rename_axis(None) if form.names[0] == "" else frame
    return frame, short + notes_on(seen)


def _uneven(source: IO[bytes], name: str, form: Form) -> list[tuple[int, int]]:
    """Return the lines with more or fewer cells than there are columns: their numbers from 1 below the names, and how many cells they have."""
    source.seek(0)
    limit = csv.field_size_limit(max(csv.field_size_limit(), source.seek(0, 2) + 1))  # a text may be long
    source.seek(0)
    lines = io.TextIOWrapper(source, encoding=form.encoding, newline="")
    try:
        rows = csv.reader(lines, delimiter=form.separator, skipinitialspace=form.spaced)
        counted = enumerate((len(row) for row in rows if row), 0 if form.header else 1)
        return [(number, many) for number, many in counted if many != len(form.names)]
    except csv.Error as error:
        raise DataError(f"is no table: {error}", where=name, remedy="mind quotes and separators") from None
    finally:
        csv.field_size_limit(limit)
        lines.detach()


def _check_even(source: IO[bytes], name: str, form: Form) -> None:
    """Raise an error for lines with more or fewer cells than there are columns: of texts, a comma or a line break without quotes makes two."""
    remedy = "put cells that hold separators or line breaks in double quotes"
    what = f"the table has {len(form.names)} columns"
    DataError.raise_if(Problem(f"{name}, row {number}", f"has {many} cells, and {what}", remedy=remedy) for number, many in _uneven(source, name, form))


def _short_lines(source: IO[bytes], name: str, form: Form) -> list[Note]:
    """Return what is stated of lines with too few cells, such as those that a line break within a cell makes."""
    try:
        short = [(number, many) for number, many in _uneven(source, name, form) if many < len(form.names)]
    except DataError:  # which pandas reads
        return []
    if not short:
        return []
    told = "1 row has" if len(short) == 1 else f"{len(short):,} rows have"
    return [Note(f"{told} fewer cells than there are columns (row {short[0][0]} has {short[0][1]} of {len(form.names)}): the others are read as missing")]


def parse_text(source: IO[bytes], name: str, form: Form, *, skip: bool, texts: Mapping[str, Any] | None = None) -> pd.DataFrame:
    """Read a file of this form, or the bytes of some of its lines, as pandas does; `skip` leaves out the first line. Errors in our words."""
    import pandas as pd

    kept = {**dict.fromkeys((*form.labels, *form.text), str), **(texts or {})}
    gone: Any = [""]
    if form.missing:
        gone = {column: [""] if column in form.labels else ["", *form.missing] for column in form.names}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # a first line with more cells than there are columns loses some
            frame: pd.DataFrame = pd.read_csv(
                source, sep=form.separator, encoding=form.encoding, decimal=form.decimal, skipinitialspace=form.spaced, header=0 if skip else None,
                names=list(form.names), index_col=False, dtype=kept, keep_default_na=False, na_values=gone, low_memory=False, on_bad_lines="error",
                lineterminator="\r" if _returns_alone(source) else None,
            )  # fmt: skip
        return frame
    except pd.errors.ParserWarning:
        raise DataError("is not a table: a line has more cells than there are columns", where=name) from None
    except pd.errors.EmptyDataError:
        raise DataError("the file is empty", where=name) from None
    except pd.errors.ParserError as error:
        raise DataError(f"is not a table: {str(error).removeprefix('Error tokenizing data. C error: ').strip()}", where=name) from None
    except UnicodeDecodeError as error:
        raise DataError(f"is not {form.encoding}", where=name, got=error.object[error.start : error.start + 1], remedy="name its encoding") from None
    except (OSError, ValueError) as error:
        raise StorageError(f"cannot be read: {error}", where=name) from None


def _returns_alone(source: IO[bytes]) -> bool:
    """Return whether all lines end in a carriage return alone: unless told so, pandas drops an empty first cell behind a blank line, and shifts the others."""
    found = False
    while block := source.read(1 << 16):
        if b"\n" in block:
            found = False
            break
        found = found or b"\r" in block
    source.seek(0)
    return found


def as_numbers(column: pd.Series, *, all_missing: bool = False, decimal: str = ".") -> pd.Series:
    """Return a column of numbers and signs for missing ones as numbers; any other as it is. `all_missing`: nothing but signs are numbers, too."""
    import pandas as pd

    text = column.astype(object)
    gone = text.isna() | text.isin(MISSING)
    if gone.all() and not all_missing:
        return column
    known = text.where(~gone)
    if decimal == ",":
        known = known.map(lambda cell: cell.replace(".", "?").replace(",", ".") if isinstance(cell, str) else cell)  # 1.234 is no number, or a thousand
    numbers = pd.to_numeric(known, errors="coerce").astype(float)  # floats also where pandas has no one type: beyond 64 bits, or uint64 beside -1
    return numbers if bool((numbers.isna() == gone).all()) else column


def as_labels(column: pd.Series) -> pd.Series:
    """Return a column of labels that was read as texts: whole numbers if all are written as such are, else the texts as they stand."""
    return column.astype("int64") if column.str.fullmatch("0|-?[1-9][0-9]{0,17}", na=False).all() else column


def marks_in(column: pd.Series) -> Counter[str]:
    """Return how often each sign for a missing value stands in a column that is not of numbers."""
    return Counter(str(cell) for cell in column[column.isin(MISSING - {""})])


def notes_on(seen: Mapping[str, tuple[Counter[str], bool]]) -> list[Note]:
    """Return what is stated of signs for missing values: by column how often each occurs, and whether the column was read as numbers."""
    notes = []
    for mark in dict.fromkeys(mark for marks, _ in seen.values() for mark in marks):
        where = {numbers: [f"{c} ({marks[mark]:,})" for c, (marks, own) in seen.items() if marks[mark] and own is numbers] for numbers in (True, False)}
        if where[True]:
            notes.append(Note(f"{mark!r} is read as missing in columns of numbers: {_some(where[True])}", "text", "COLUMN"))
        if where[False]:
            notes.append(Note(f"{mark!r} is kept as a text like any other in {_some(where[False])}", "missing", mark))
    return notes


def _some(items: list[str]) -> str:
    return ", ".join(items[:6]) + (f" and {len(items) - 6} more" if len(items) > 6 else "")
