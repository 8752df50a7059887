"""CSV files in: what is wrong with a file is said with its line, and nothing is renamed or guessed away."""

from __future__ import annotations

import csv
import io
import os
import stat
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from budge.errors import DataError, StorageError
from budge.spec.limits import COLUMNS

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["as_labels", "as_numbers", "header_of", "parse_csv", "read_table", "separator"]

#: Signs for a missing number. In a column of texts only an empty cell is missing: "None" and "NA" may be levels.
_MISSING = frozenset(["", "NA", "N/A", "n/a", "NaN", "nan", "-nan", "-NaN", "<NA>", "null", "NULL", "None", "#N/A"])


FIRST = 10_000_000  # bytes in which the first line ends


def read_table(path: str | Path, *, label: str | None = None) -> pd.DataFrame:
    """Read a CSV file (or .tsv) with a header line in UTF-8.

    A first column without a name, such as pandas writes for its index, labels the rows. Of this column, and of `label`, cells are kept as they stand:
    007 and 7 are two people.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("people.csv").write_text("age,housing\\n40,rent\\n31,None\\n")
    >>> read_table("people.csv")["housing"].tolist()
    ['rent', 'None']
    """
    path = Path(path)
    header = header_of(path)
    frame = parse_csv(path, path, header=0, names=header, index_col=False, dtype={name: str for name in header if name in ("", label)})
    for column in header:
        if column in ("", label):
            frame[column] = as_labels(frame[column])
        elif frame[column].dtype.kind not in "biuf":
            frame[column] = as_numbers(frame[column])
    return frame.set_index("").rename_axis(None) if header[0] == "" else frame


def parse_csv(source: Any, path: Path, **how: Any) -> pd.DataFrame:
    """Read a CSV file, or the bytes of some of its lines, as pandas does; errors in our words."""
    import warnings

    import pandas as pd

    options: dict[str, Any] = {"encoding": "utf-8-sig", "keep_default_na": False, "na_values": [""], "low_memory": False, "on_bad_lines": "error"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # a first line with more cells than there are columns loses some
            frame: pd.DataFrame = pd.read_csv(source, sep=separator(path), **options, **how)
        return frame
    except pd.errors.ParserWarning:
        raise DataError("is not a table: a line has more cells than there are columns", where=path.name) from None
    except pd.errors.EmptyDataError:
        raise DataError("the file is empty", where=path.name) from None
    except pd.errors.ParserError as error:
        raise DataError(
            f"is not a table: {str(error).removeprefix('Error tokenizing data. C error: ').strip()}", where=path.name
        ) from None
    except UnicodeDecodeError as error:
        at = _bad_byte(path)
        raise DataError(
            f"is not UTF-8{at}", where=path.name, got=error.object[error.start : error.start + 1], remedy="save it as UTF-8"
        ) from None
    except (OSError, ValueError) as error:
        raise StorageError(f"cannot be read: {error}", where=str(path)) from None


def separator(path: Path) -> str:
    """Return what stands between two cells of a file of this name."""
    return "\t" if path.suffix.lower() == ".tsv" else ","


def header_of(path: Path) -> list[str]:
    """Return the column names as they stand; pandas would rename those that occur twice."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        raise StorageError("there is no such file", where=str(path), remedy="check the path") from None
    except (OSError, ValueError) as error:
        raise StorageError(f"cannot be opened: {getattr(error, 'strerror', None) or error}", where=str(path)) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise DataError("is not a regular file", where=str(path), remedy="give the path of a CSV file")
    with os.fdopen(handle, "rb") as file:
        start = file.read(FIRST)
    if not start.strip():
        raise DataError("the file is empty", where=path.name)
    if b"\0" in start:
        raise DataError(f"has a NUL byte at byte {start.index(0)}", where=path.name, remedy="a table is a CSV file, in text")
    lines = io.StringIO(start.decode("utf-8-sig", errors="surrogateescape"), newline="")  # lines end where pandas ends them
    try:
        rows = csv.reader(lines, delimiter=separator(path))
        header = next(rows, [])
        "".join(header).encode()
        if len(header) > COLUMNS or (len(start) == FIRST and lines.tell() == len(lines.getvalue())):
            what = f"the first line has more than {COLUMNS:,} cells, or {FIRST:,} bytes"
            raise DataError(what, where=path.name, remedy="name the columns in the first line, and leave out those that no spec names")
    except csv.Error as error:
        raise DataError(f"the first line cannot be read: {error}", where=path.name, remedy="name the columns in the first line") from None
    except UnicodeEncodeError:
        raise DataError(f"is not UTF-8{_bad_byte(path)}", where=path.name, remedy="save it as UTF-8") from None
    with suppress(csv.Error):  # a long cell, which pandas reads
        if any(next(rows, [])[len(header) :]):  # pandas would make room for all of them first
            raise DataError("is not a table: a line has more cells than there are columns", where=path.name)
    if not header:
        raise DataError("the first line is blank", where=path.name, remedy="name the columns in the first line")
    twice = sorted(name for name, times in Counter(header).items() if times > 1)
    if twice:
        raise DataError("column labels occur twice", where=path.name, got=twice, remedy="rename the columns")
    blank = [i for i, name in enumerate(header, 1) if not name.strip() and (i > 1 or len(header) == 1)]
    if blank:
        raise DataError(f"column {blank[0]} has no name", where=path.name, remedy="name every column")
    return header


def _bad_byte(path: Path) -> str:
    try:
        path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        return f" at byte {error.start} (line {error.object.count(10, 0, error.start) + 1})"
    except OSError:
        pass
    return ""


def as_numbers(column: pd.Series, *, all_missing: bool = False) -> pd.Series:
    """Return a column of numbers and signs for missing ones as numbers; any other as it is. `all_missing`: nothing but signs are numbers, too."""
    import pandas as pd

    text = column.astype(object)
    gone = text.isna() | text.isin(_MISSING)
    if gone.all() and not all_missing:
        return column
    numbers = pd.to_numeric(text.where(~gone), errors="coerce").astype(float)  # floats also where pandas has no one type: beyond 64 bits, or uint64 beside -1
    return numbers if bool((numbers.isna() == gone).all()) else column


def as_labels(column: pd.Series) -> pd.Series:
    """Return a column of labels that was read as texts: whole numbers if all are written as such are, else the texts as they stand."""
    return column.astype("int64") if column.str.fullmatch("0|-?[1-9][0-9]{0,17}", na=False).all() else column
