"""One reader of tables for every command: files of text of any layout, packed or not, Parquet, Feather, Excel, JSON lines, and databases.

What is not chosen is noticed in the file, and stated. Limits hold for all of them: what a file states of itself is compared with its size before it is read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from budge.errors import DataError
from budge.files import near_file
from budge.stored import open_regular
from budge.tables.form import COLUMNS, Form, form_of
from budge.tables.formats import read_excel, read_feather, read_json, read_parquet
from budge.tables.how import How, Note, state
from budge.tables.packages import package
from budge.tables.packed import Kind, kind_of, unpacked
from budge.tables.sql import is_address, masked, read_sql
from budge.tables.text import text_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "COLUMNS", "Form", "How", "Kind", "Note", "form_of", "is_address", "kind_of", "load", "masked", "open_table", "opened", "package", "read_table",
    "state",
]  # fmt: skip


def read_table(
    path: str | Path,
    *,
    label: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    header: bool | None = None,
    names: Sequence[str] | None = None,
    missing: str | Sequence[str] | None = None,
    text: Sequence[str] = (),
    member: str | None = None,
    sheet: str | None = None,
    table: str | None = None,
    query: str | None = None,
) -> pd.DataFrame:
    """Read a table as every command of budge does: CSV of any layout (also packed), Parquet, Feather, Excel, JSON lines, or a database.

    What is not given is noticed in the file and stated in the log ``budge.tables``. A first column without a name, such as pandas writes for its index,
    labels the rows.

    Parameters
    ----------
    path
        A file, or the address of a database: ``sqlite:///people.db?table=people``.
    label
        The column that names people: its cells are kept as they stand, so that 007 and 7 are two people.
    separator
        What separates cells: a sign, or ``comma``, ``semicolon``, ``tab``, ``pipe``, ``space``, ``whitespace``.
    encoding
        How letters are written: ``utf-8``, ``cp1252``, ``utf-16``, …
    decimal
        ``"."`` or ``","``.
    header, names
        Whether the first line holds names; the names of all columns.
    missing
        Texts that stand for a missing value in every column. Without it such signs (``?``, ``NA``) are missing in columns of numbers alone.
    text
        Columns whose cells stay texts, such as post codes with leading zeros.
    member, sheet
        The file within a ``.zip``, the sheet of an Excel file; needed where there are several.
    table, query
        What is read from a database: a table, or the rows of one SELECT.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("people.csv").write_text("age,housing\\n40,rent\\n31,own\\n")
    >>> read_table("people.csv")["housing"].tolist()
    ['rent', 'own']
    """
    given = {
        "separator": separator, "encoding": encoding, "decimal": decimal, "header": header, "names": names, "text": text, "member": member, "sheet": sheet,
        "missing": [missing] if isinstance(missing, str) else missing, "table": table, "query": query,
    }  # fmt: skip
    return load(path, How.of(given), label)


def load(path: str | Path, how: How | None = None, label: str | None = None) -> pd.DataFrame:
    """Return the table of a file or a database, and state what was noticed."""
    how = how or How()
    if is_address(str(path)):
        how.check_kind("sql", masked(str(path)))
        frame, notes = read_sql(str(path), how)
        state(masked(str(path)), notes)
        return frame
    path = Path(path)
    with opened(path, how) as (file, kind, name, rest):
        frame, notes = _read(file, kind, name, rest, label)
    state(path.name, notes)
    return frame


@contextmanager
def opened(path: Path, how: How) -> Iterator[tuple[IO[bytes], Kind, str, How]]:
    """Yield a file, or what is packed in it, with its kind, its name, and the choices that are left."""
    with open_table(path) as file:
        kind = kind_of(file, path.name)
        if kind not in ("gz", "bz2", "xz", "zst", "zip"):
            yield file, kind, path.name, how
            return
        inside, name = unpacked(file, kind, path.name, how.member)
        how = replace(how, member=None) if kind == "zip" else how
        kind = kind_of(inside, name)
        if kind in ("gz", "bz2", "xz", "zst", "zip"):
            raise DataError("is packed twice", where=path.name, remedy="unpack it")
        yield inside, kind, name, how


def open_table(path: Path) -> IO[bytes]:
    """Open the file of a table: a pipe is never waited for, and what is no regular file is an error."""
    return open_regular(path, sys.maxsize, remedy=near_file(path), follow=True)


def _read(file: IO[bytes], kind: Kind, name: str, how: How, label: str | None) -> tuple[pd.DataFrame, list[Note]]:
    if kind in ("text", "json", "excel", "parquet", "feather"):
        how.check_kind(kind, name)
    if kind == "text":
        form, notes = form_of(file, name, how, label)
        frame, more = text_table(file, name, form)
        return frame, notes + more
    if kind == "json":
        return read_json(file, name, how)
    if kind == "excel":
        return read_excel(file, name, how)
    if kind == "parquet":
        return read_parquet(file, name), []
    if kind == "feather":
        return read_feather(file, name), []
    remedy = f"write sqlite:///{name}?table=NAME" if kind == "sqlite" else "save it as .xlsx or as CSV"
    raise DataError("is a database" if kind == "sqlite" else "is an Excel file of the old format", where=name, remedy=remedy)
