"""A file of text: parts are stretches of lines, found by one look at its bytes; every part has the types that the columns have in the whole."""

from __future__ import annotations

import codecs
import io
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.errors import DataError
from budge.people.stream import Stream
from budge.tables import Form, Note
from budge.tables.text import as_labels, as_numbers, marks_in, notes_on, parse_text

__all__ = ["of_csv"]

Bytes = npt.NDArray[np.uint8]
STEP = 1 << 22  # bytes that are looked at together


@dataclass(frozen=True)
class _Lines:
    """Reads the lines of a CSV file between two bytes; the types of the columns are those of the whole file."""

    path: Path
    begin: int
    end: int
    form: Form
    types: Mapping[str, str] = field(default_factory=dict)

    def raw(self) -> pd.DataFrame:
        """Return the lines as they are read without knowing the rest of the file, but for labels and columns that are known to be texts."""
        with self.path.open("rb") as file:
            file.seek(self.begin)
            body = file.read(self.end - self.begin)
        texts = {name: str for name in self.form.names if self.types.get(name) == "text"}
        return parse_text(io.BytesIO(body), self.path.name, self.form, skip=False, texts=texts)

    def labels(self, name: str) -> pd.Series:
        """Return one column."""
        return self.read().reset_index(names="" if self.form.names[0] == "" else None)[name]

    def read(self) -> pd.DataFrame:
        """Return the lines as a table."""
        frame = self.raw()
        for name, kind in self.types.items():
            if kind == "text":
                continue
            plain = frame[name].dtype.kind in "biuf" or name in self.form.labels
            column = frame[name] if plain else as_numbers(frame[name], all_missing=True, decimal=self.form.decimal)
            frame[name] = column.astype(np.dtype(kind))
        if self.form.names[0] == "":
            frame = frame.set_index("")
            frame.index.name = None
        return frame


def of_csv(path: Path, part: int, form: Form) -> tuple[Stream, list[Note]]:
    """Return the stream of a CSV file, which is read once for the types of its columns, and what was noticed in its cells."""
    labelled = form.names[0] == ""
    cuts = _line_cuts(path, part, form)
    readers = [_Lines(path, a, b, form) for a, b in pairwise(cuts)]
    kinds: dict[str, set[str]] = {name: set() for name in form.names}
    marks: dict[str, Counter[str]] = {name: Counter() for name in form.names if name not in form.labels and name not in form.text}
    rows, seen = [], blake2b(repr(form.names).encode(), digest_size=16)
    for reader in readers:
        frame = reader.raw()
        rows.append(len(frame))
        if not len(frame):  # blank lines
            continue
        seen.update(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
        for name in form.names:
            if name in form.labels:
                kinds[name].add("text" if as_labels(frame[name]).dtype.kind != "i" else "i")
            else:
                kinds[name].add(_kind(frame[name], form.decimal) if name not in form.text else "text")
                if name in marks and frame[name].dtype.kind not in "biuf":
                    marks[name] += marks_in(frame[name])
    types = {name: _joint(found) for name, found in kinds.items()}
    stream = Stream.numbered(
        [(many, replace(r, types=types)) for many, r in zip(rows, readers)], [c for c in form.names if c], seen.hexdigest(), labelled=labelled,
        index="" if labelled else None,
    )  # fmt: skip
    return stream, notes_on({name: (found, types[name] != "text") for name, found in marks.items()})


def _line_cuts(path: Path, part: int, form: Form) -> list[int]:
    """Return the bytes at which parts begin, and the end of the file: every so many lines. A line may go on inside quotes."""
    cuts: list[int] = [] if form.header else [0]
    odd, lines, at, last, closed = 0, 0, 0, ord("\n"), False
    starts = np.frombuffer(f"{form.separator}\r\n".encode(), dtype=np.uint8)
    with path.open("rb") as file:
        while block := file.read(STEP):
            bytes_ = np.frombuffer(block, dtype=np.uint8)
            before = np.append(np.uint8(last), bytes_[:-1])
            if not at and block.startswith(codecs.BOM_UTF8):
                before[len(codecs.BOM_UTF8) :][:1] = ord("\n")
            marks = _quotes(bytes_, before, starts, bool(odd), closed)
            inside = (np.cumsum(marks) + odd) & 1
            # A carriage return ends a line, too; one before a line feed need not, and the blank line that it makes at the end of a block is skipped.
            alone = (bytes_ == ord("\r")) & np.append(bytes_[1:] != ord("\n"), True)
            ends = np.flatnonzero(((bytes_ == ord("\n")) | alone) & (inside == 0))
            odd, last, closed = int(inside[-1]), int(bytes_[-1]), bool(marks[-1]) and not inside[-1]
            if not cuts and len(ends):
                cuts.append(at + int(ends[0]) + 1)  # past the header
                ends = ends[1:]
            # The part after `lines` whole lines ends with the line that makes it full.
            cuts += (at + ends[part - 1 - lines :: part] + 1).tolist() if len(ends) > part - 1 - lines else []
            lines = (lines + len(ends)) % part
            at += len(block)
    if odd:
        raise DataError("a quotation is not closed", where=path.name, remedy="a quotation mark within quotes is written twice")
    return sorted({*(cuts or [at]), at}) if at else [0]


def _quotes(bytes_: Bytes, before: Bytes, starts: Bytes, inside: bool, closed: bool) -> npt.NDArray[np.bool_]:
    """Return which bytes are marks that open or close a quotation, as pandas reads them: one within a cell that has not begun with one is a letter.

    `inside` tells whether the bytes begin within a quotation, `closed` whether the byte before them has closed one.
    """
    marks: npt.NDArray[np.bool_] = bytes_ == ord('"')
    places = np.flatnonzero(marks)
    ahead = before[places]
    opens = ((np.arange(len(places)) + inside) & 1) == 0
    doubled = (ahead == ord('"')) & ((places > 0) | closed)  # the one before it has closed a quotation
    if (np.isin(ahead, starts) | doubled)[opens].all():  # no mark is a letter: they open and close in turn
        return marks
    real, end = [], -1 if closed else -2
    for place, fits in zip(places.tolist(), np.isin(ahead, starts).tolist()):
        if inside or fits or end == place - 1:
            real.append(place)
            end = place if inside else end
            inside = not inside
    marks = np.zeros(len(bytes_), dtype=bool)
    marks[real] = True
    return marks


def _kind(column: pd.Series, decimal: str) -> str:
    """Return what a column of some lines holds: i, u, f, b (as in NumPy), n (whole numbers, some negative), truth with gaps, text, or nothing."""
    known = column.dropna()
    if not len(known):
        return ""
    if column.dtype.kind in "iufb":
        return "n" if column.dtype.kind == "i" and column.min() < 0 else column.dtype.kind
    if all(isinstance(v, bool | np.bool_) for v in known):
        return "truth"
    numbers = as_numbers(column, all_missing=True, decimal=decimal)
    return "text" if numbers.dtype.kind not in "iuf" else "f" if numbers.notna().any() else "sign"


def _joint(kinds: set[str]) -> str:
    """Return the type of a column from what its parts hold, as pandas reads the whole of it."""
    found = kinds - {"", "sign"}
    if not found:
        return "text" if "sign" in kinds else "float64"
    if found <= {"i", "n", "u", "f"}:
        if kinds != found or "f" in found or {"n", "u"} <= found:
            return "float64"
        return "uint64" if "u" in found else "int64"
    if found <= {"b", "truth"} and "sign" not in kinds:
        return "bool" if kinds == {"b"} else "float64"
    return "text"
