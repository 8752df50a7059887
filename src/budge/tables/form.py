"""How a file of text is laid out: what separates its cells, how its letters are written, and whether its first line holds names."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from budge.errors import DataError, InputError, nearest, shorten
from budge.tables.how import How, Note

__all__ = ["COLUMNS", "FIRST_LINE", "MISSING", "Form", "checked_names", "form_of", "holds_values", "replaced", "unnamed"]

COLUMNS = 20_000  #: columns of a table
#: Signs for a missing number. In a column of texts only an empty cell is missing: "None", "NA" and "?" may be levels.
MISSING = frozenset(
    ["", "NA", "N/A", "n/a", "n.a.", "NaN", "nan", "-nan", "-NaN", "<NA>", "null", "NULL", "None", "#N/A", "#NULL!", "#DIV/0!", "#VALUE!", "?", "-", "--", "."]
)
FIRST = 10_000_000  # bytes in which the first line ends
_SEEN, _RECORDS, _STEP = 500_000, 200, 1 << 22  # bytes and lines by which a file is judged; bytes that are decoded together
_CANDIDATES = (",", ";", "\t", "|")
FIRST_LINE = "; if the first line holds values, not names: header=no"
_WORDS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars", " ": "spaces", r"\s+": "white space"}
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")
_DECIMAL = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
_ALMOST = re.compile(r"[+-]?[$€£]?\s?\d+([.,'’_\s]\d+)*([eE][+-]?\d+|\s?[%$€£])?")  # with signs of thousands, of money, of a hundredth
_UNDEFINED = bytes([0x81, 0x8D, 0x8F, 0x90, 0x9D])  # bytes that stand for no letter in Windows-1252
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))  # of the order of bytes


@dataclass(frozen=True)
class Form:
    """The layout of a file of text. Cells of the columns `labels` and `text` are kept as they stand."""

    names: tuple[str, ...]
    separator: str = ","
    encoding: str = "utf-8-sig"
    decimal: str = "."
    header: bool = True  # whether the first line holds the names
    spaced: bool = False  # whether a space that follows a separator belongs to it
    missing: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    text: tuple[str, ...] = ()

    @property
    def in_bytes(self) -> bool:
        """Whether lines and cells can be told apart in the bytes, without decoding them."""
        if self.spaced or len(self.separator) > 1:
            return False
        if self.encoding in ("utf-8", "utf-8-sig", "ascii"):
            return True
        try:
            one_each = len(bytes(range(256)).decode(self.encoding, "replace")) == 256
            return one_each and bytes(range(128)).decode(self.encoding).isascii()
        except UnicodeDecodeError:
            return False


def form_of(file: IO[bytes], name: str, how: How, label: str | None = None) -> tuple[Form, list[Note]]:
    """Return the layout of an open file, as chosen or else as it looks, and what was noticed.

    Examples
    --------
    >>> form, notes = form_of(io.BytesIO(b"age;income\\n30;1,5\\n31;2,5\\n"), "people.csv", How())
    >>> form.separator, form.decimal, [str(note) for note in notes]
    (';', ',', ["semicolons separate cells; otherwise: separator='comma'", "decimals are written with a comma; otherwise: decimal='.'"])
    """
    notes: list[Note] = []
    file.seek(0)
    start = file.read(FIRST)
    if not start.strip():
        raise DataError("the file is empty", where=name)
    encoding = _encoding(file, start, name, how, notes)
    default = "\t" if name.lower().endswith(".tsv") else ","
    seen = codecs.getincrementaldecoder(encoding)("replace").decode(start[:_SEEN])
    whole = len(start) <= _SEEN
    plain = how.text is None  # all cells are kept as they stand
    loose = not plain and not name.lower().endswith((".csv", ".tsv"))
    separator = how.separator or _separator(seen, default, whole, loose)
    if how.separator is None and separator != default:
        notes.append(Note(f"{_WORDS[separator]} separate cells", "separator", "tab" if default == "\t" else "comma"))
    records = _records(seen, separator, whole)
    spaced = not plain and separator in _CANDIDATES and _is_spaced(records)
    if spaced:
        records = _records(seen, separator, whole, spaced=True)
        notes.append(Note("the space after each separator is left out"))
    first = _first_line(start, encoding, separator, spaced, name)
    first = [cell.strip() for cell in first] if plain else first
    header = how.header if how.header is not None else not holds_values(records)
    names = tuple(first) if header else tuple(f"column_{k}" for k in range(1, len(first) + 1))
    if how.names is not None:
        if len(how.names) != len(first):
            raise InputError(f"the table has {len(first)} columns", where="names", got=f"{len(how.names)} names", remedy="name all of them")
        names = how.names
        notes += replaced(first, names) if header and how.header is None else []
    elif not header and how.header is None:
        notes.append(unnamed(len(first)))
    checked_names(names, name, FIRST_LINE if header and how.header is None and how.names is None else "")
    decimal = how.decimal or ("," if not plain and separator != "," and _has_decimal_commas(records[header:]) else ".")
    if how.decimal is None and decimal == ",":
        notes.append(Note("decimals are written with a comma", "decimal", "."))
    text = names if how.text is None else how.text
    strange = [column for column in text if column not in names]
    if strange:
        raise InputError("no such column", where="text", got=strange[0], remedy=nearest(strange[0], names))
    labels = tuple(column for column in ("", label) if column is not None and column in names)
    notes += _odd_cells(records[header:], names, decimal, {*labels, *text}, {*MISSING, *(how.missing or ())})
    return Form(names, separator, encoding, decimal, header, spaced, how.missing or (), labels, text), notes


def _odd_cells(records: Sequence[Sequence[str]], names: Sequence[str], decimal: str, kept: Collection[str], gone: Collection[str]) -> list[Note]:
    """Return what is stated of columns of digits that are not read as they are meant, judged by the first lines: 1,234 stays a text, 007 becomes 7."""
    notes, zeros, like = [], [], []
    number = re.compile(_NUMBER.pattern.replace("[.,]", re.escape(decimal)))
    for k, name in enumerate(names):
        cells = [record[k].strip() for record in records if k < len(record) and record[k].strip() not in gone] if name not in kept else []
        if cells and all(_ALMOST.fullmatch(cell) for cell in cells) and not all(number.fullmatch(cell) for cell in cells):
            like.append(f"{name} ({next(cell for cell in cells if not number.fullmatch(cell))})")
        elif cells and all(cell.isdecimal() for cell in cells) and any(len(cell) > 1 and cell[0] == "0" for cell in cells):
            zeros.append(name)
    if zeros:
        notes.append(Note(f"zeros before numbers are left out in {', '.join(zeros[:6])}", "text", ",".join(zeros)))
    if like:
        meant = "," if decimal == "." and all(re.search(r"\(\d+,(\d|\d\d|\d{4,})\)$", cell) for cell in like) else ""
        what = f"what looks like numbers with other signs is kept as texts in {', '.join(like[:6])}: write plain digits where they are amounts"
        notes.append(Note(what, "decimal", meant) if meant else Note(what))
    return notes


def replaced(first: Sequence[str], names: Sequence[str]) -> list[Note]:
    """Return what is stated where a first line that looks like names has others than those that were given: it may be a person."""
    shown = ", ".join(shorten(cell, 30) for cell in first[:4]) + (", …" if len(first) > 4 else "")
    return [] if list(first) == list(names) else [Note(f"the first line ({shown}) is taken for names, which those that are given replace", "header", "no")]


def unnamed(columns: int) -> Note:
    """Return what is stated of a table whose first line holds values."""
    what = f"the first line holds values, not names: the columns are called column_1 to column_{columns} unless names=… is given"
    return Note(what, "header", "yes")


def _encoding(file: IO[bytes], start: bytes, name: str, how: How, notes: list[Note]) -> str:
    """Return how letters are written: as chosen, by the mark at the beginning, UTF-8 if all bytes allow it, else Windows-1252 if they allow that."""
    marked = next((codec for mark, codec in _MARKS if start.startswith(mark)), None)
    wide = (how.codec or marked or "").startswith(("utf-16", "utf-32"))
    if not wide and b"\0" in start:
        remedy = "a table is a file of text, Parquet, Feather, Excel or JSON lines; UTF-16 without a mark is named: encoding=utf-16-le"
        raise DataError(f"has a NUL byte at byte {start.index(0)}", where=name, remedy=remedy)
    encoding = how.codec or marked or "utf-8"
    bad = _first_bad(file, encoding)
    if bad is None:
        if how.encoding is None and marked == "utf-16":
            notes.append(Note("is written in UTF-16", "encoding", "utf-8"))
        return "utf-8-sig" if encoding == "utf-8" else encoding
    at, line = bad
    said = "UTF-8" if encoding.startswith("utf-8") else encoding
    if how.encoding is None and marked is None and not _any_of(file, _UNDEFINED):
        notes.append(Note(f"is not UTF-8 (byte {at}, line {line}): read as Windows-1252, as spreadsheets write it", "encoding", "…"))
        return "cp1252"
    remedy = "name its encoding (encoding=latin-1, shift_jis, gb18030, …), or save it as UTF-8"
    raise DataError(f"is not {said} at byte {at} (line {line})", where=name, remedy=remedy)


def _first_bad(file: IO[bytes], encoding: str) -> tuple[int, int] | None:
    """Return the first byte that cannot be decoded and its line; None where there is none."""
    file.seek(0)
    decoder, at, lines = codecs.getincrementaldecoder(encoding)(), 0, 1
    plain = encoding.startswith("utf-8")
    while True:
        block = file.read(_STEP)
        try:
            if not (plain and block.isascii() and decoder.getstate()[0] == b""):
                decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            where = max(at + len(block) - len(error.object) + error.start, 0)
            return where, lines + block.count(b"\n", 0, max(where - at, 0))
        if not block:
            return None
        at, lines = at + len(block), lines + block.count(b"\n")


def _any_of(file: IO[bytes], bad: bytes) -> bool:
    file.seek(0)
    while block := file.read(_STEP):
        if len(block.translate(None, bad)) < len(block):
            return True
    return False


def _records(seen: str, separator: str, whole: bool, *, spaced: bool = False) -> list[list[str]]:
    """Return the first lines as cells; the last one is left out where it may be cut off."""
    if separator == r"\s+":
        found = [line.split() for line in seen.splitlines()[: _RECORDS + 1]]
    else:
        found = []
        with suppress(csv.Error):  # a long cell, which pandas reads
            for record in csv.reader(io.StringIO(seen, newline=""), delimiter=separator, skipinitialspace=spaced):
                found.append(record)
                if len(found) > _RECORDS:
                    break
    found = found if whole or len(found) > _RECORDS else found[:-1] or found
    return [record for record in found if record]


def _separator(seen: str, default: str, whole: bool, loose: bool) -> str:
    """Return what separates cells: the usual sign, unless all lines have the same number of cells by another one alone."""
    usual = _records(seen, default, whole)
    others = {sign: _records(seen, sign, whole) for sign in _CANDIDATES if sign != default}
    fitting = [sign for sign, found in others.items() if _is_even(found)]
    if _is_even(usual):  # or all of its commas are those of decimals: 30;1,5 without a line of names
        decimals = [sign for sign in fitting if default == "," and all(_DECIMAL.fullmatch(cell.strip()) for r in others[sign] for cell in r if "," in cell)]
        return decimals[0] if decimals else default
    if not fitting and usual and len(usual[0]) == 1:  # some lines may have too many cells, or too few
        fitting = [sign for sign, found in others.items() if len(found[0]) > 1 and sum(len(r) == len(found[0]) for r in found) >= len(found) / 2]
    if fitting:
        return max(fitting, key=lambda sign: len(others[sign][0]))
    if usual and len(usual[0]) == 1:  # a text of several words in a .csv file is one cell, unless they are numbers at the same place
        spaced = ((sign, _records(seen, sign, whole)) for sign in (" ", r"\s+"))
        return next((sign for sign, found in spaced if _is_even(found) and all(found[0]) and (loose or _has_numbers(found[1:]))), default)
    return default


def _has_numbers(records: Sequence[Sequence[str]]) -> bool:
    return len(records) > 1 and any(all(_NUMBER.fullmatch(cell) for cell in cells) for cells in zip(*records))


def _is_even(records: Sequence[Sequence[str]]) -> bool:
    return bool(records) and len(records[0]) > 1 and all(len(record) == len(records[0]) for record in records)


def _is_spaced(records: Sequence[Sequence[str]]) -> bool:
    cells = [cell for record in records[1:] for cell in record[1:] if cell]
    return len(cells) > 1 and all(cell.startswith(" ") for cell in cells)


def _has_decimal_commas(records: Sequence[Sequence[str]]) -> bool:
    cells = [cell.strip() for record in records for cell in record]
    points = [c for c in cells if re.fullmatch(r"[+-]?\d+\.\d+", c)]  # beside 2,5 a 1.234 is a thousand
    return any(_DECIMAL.fullmatch(c) for c in cells) and all(re.fullmatch(r"[+-]?[1-9]\d{0,2}\.\d{3}", c) for c in points)


def holds_values(records: Sequence[Sequence[str]]) -> bool:
    """Return whether the first record looks like the others rather than like names.

    That is: it has a number, or a sign for a missing one, wherever the others have a number, and either one that no column is called by (a fraction, a
    negative number), a text that occurs again in its column, or nothing but numbers that do not count the columns.

    Examples
    --------
    >>> holds_values([["39", "private"], ["50", "state"], ["38", "private"]]), holds_values([["0", "1"], ["5.5", "7.1"]])
    (True, False)
    """
    if len(records) < 2:
        return False
    first, others = [cell.strip() for cell in records[0]], records[1:]
    numbers, texts, again = [], 0, 0
    for k, cell in enumerate(first):
        if k and cell in MISSING:  # the name of the first column may be empty, or a sign
            continue
        below = {record[k].strip() for record in others if k < len(record)} - {""}
        if below and sum(bool(_NUMBER.fullmatch(value)) for value in below) > len(below) / 2:
            if not _NUMBER.fullmatch(cell):
                return False
            numbers.append(cell)
        elif below:
            texts += 1
            again += cell in below
    if not numbers:
        return texts > 1 and again == texts and len(others) > 1
    if any(not number.isdecimal() for number in numbers) or again:
        return True
    counted = [int(number) for number in numbers]
    return texts == 0 and counted != list(range(counted[0], counted[0] + len(counted)))


def _first_line(start: bytes, encoding: str, separator: str, spaced: bool, name: str) -> list[str]:
    """Return the cells of the first line; pandas would make room for any number of them."""
    lines = io.StringIO(codecs.getincrementaldecoder(encoding)("replace").decode(start), newline="")  # lines end where pandas ends them
    if separator == r"\s+":
        return lines.readline().split()
    rows = csv.reader(lines, delimiter=separator, skipinitialspace=spaced)
    try:
        header = next(rows, [])
    except csv.Error as error:
        raise DataError(f"the first line cannot be read: {error}", where=name, remedy="name the columns in the first line") from None
    if len(header) > COLUMNS or (len(start) == FIRST and lines.tell() == len(lines.getvalue())):
        what = f"the first line has more than {COLUMNS:,} cells, or {FIRST:,} bytes"
        raise DataError(what, where=name, remedy="name the columns in the first line, and leave out those that no spec names")
    with suppress(csv.Error):  # a long cell, which pandas reads
        if any(next(rows, [])[len(header) :]):  # pandas would make room for all of them first
            raise DataError("is not a table: a line has more cells than there are columns", where=name)
    if not header:
        raise DataError("the first line is blank", where=name, remedy="name the columns in the first line")
    return header


def checked_names(names: Sequence[str], where: str, hint: str = "") -> None:
    """Raise an error where two columns have one name, or one has none; the first may be nameless: it labels the rows. The `hint` ends the remedy."""
    if len(names) > COLUMNS:
        raise DataError(f"has more than {COLUMNS:,} columns", where=where, got=f"{len(names):,}", remedy="leave out those that no spec names")
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise DataError("column labels occur twice", where=where, got=twice, remedy=f"rename the columns{hint}")
    blank = [i for i, name in enumerate(names, 1) if not name.strip() and (i > 1 or len(names) == 1)]
    if blank:
        raise DataError(f"column {blank[0]} has no name", where=where, remedy=f"name every column{hint}")
