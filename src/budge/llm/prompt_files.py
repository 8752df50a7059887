"""Files of prompts and of rewrites, read as records; copies of SORRY-Bench and StrongREJECT are recognised by their fields."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from budge.errors import DataError, InputError, Problem, StorageError, nearest
from budge.stored import MEGABYTE, read_bytes
from budge.tables import How, is_address, load, masked, opened

__all__ = ["FORMATS", "Choices", "read_records", "read_text"]

FORMATS = ("auto", "csv", "jsonl", "json", "txt", "sorry-bench", "strongreject")
_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".txt": "txt", ".text": "txt"}

MOST_BYTES = 1024 * MEGABYTE  # of a file of prompts

Records = list[Any]
Choices = Mapping[str, str | bool | Sequence[str]]  # of `budge.read_table`


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, with or without a byte-order mark; what is not is an error that names the place."""
    close = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() and not path.exists() else []
    return _decoded(read_bytes(path, MOST_BYTES, remedy=nearest(path.name, close) if close else "mind the folder", follow=True), path)


def _decoded(raw: bytes, path: Path) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        got = raw[error.start : error.start + 4]
        raise DataError(f"line {line} is not UTF-8", where=str(path), got=got, remedy="save the file as UTF-8") from error


def read_records(path: str | Path, format: str = "auto", *, style: str = "base", read: Choices | None = None) -> tuple[Records, dict[str, str] | None]:
    """The records of a file (texts or mappings), and which fields hold what where the format says so.

    Parameters
    ----------
    path
        A file, the address of a database, or a folder with SORRY-Bench's files: then that of the style.
    format
        One of `FORMATS`.
    style
        Of SORRY-Bench: the `prompt_style` to keep; "" keeps all.
    read
        How a table is read where that is not left to be noticed: choices of `budge.read_table`.
    """
    if format not in FORMATS:
        raise InputError("no such format", where="format", got=format, remedy=nearest(format, FORMATS))
    how = How.of(read or {})
    if is_address(str(path)):
        records, kind, where = _table(path, how), "csv", masked(str(path))
    else:
        path = Path(path)
        if path.is_dir():
            path, format = _of_folder(path, style), "sorry-bench"
        (records, kind), where = _read_file(path, format, how), str(path)
    keys = {str(key) for r in records if isinstance(r, Mapping) for key in r}
    if kind == "sorry-bench" or (format == "auto" and {"question_id", "turns"} <= keys):
        return _sorry_bench(records, keys, where, style), {"text": "text", "id": "question_id", "category": "category"}
    if kind == "strongreject" or (format == "auto" and "forbidden_prompt" in keys):
        if "forbidden_prompt" not in keys:
            what = "StrongREJECT has a column forbidden_prompt"
            raise DataError(what, where=where, got=sorted(keys), remedy=nearest("forbidden_prompt", sorted(keys)))
        known = {"text": "forbidden_prompt"} | ({"category": "category"} if "category" in keys else {})
        return records, known
    return records, None


def _of_folder(folder: Path, style: str) -> Path:
    """SORRY-Bench keeps its questions as they stand in one file, and each mutation in a file of its own."""
    wanted = "question.jsonl" if style in ("base", "") else f"question_{style}.jsonl"
    names = sorted(p.name for p in folder.glob("question*.jsonl"))
    if wanted not in names:
        remedy = nearest(wanted, names) if names else "give the file itself"
        raise StorageError(f"the folder holds no {wanted}", where=str(folder), got=names, remedy=remedy)
    return folder / wanted


def _sorry_bench(records: Records, keys: set[str], where: str, style: str) -> Records:
    """Each question's single turn as its text; those of another style are left out."""
    problems = [
        Problem(where, f"SORRY-Bench has a field {name}", sorted(keys), nearest(name, sorted(keys)))
        for name in ("question_id", "turns")
        if name not in keys
    ]
    DataError.raise_if(problems)
    found: Records = []
    styles: dict[str, None] = {}
    for number, record in enumerate(records, 1):
        record = record if isinstance(record, Mapping) else {}
        turns = record.get("turns")
        if not (isinstance(turns, list) and len(turns) == 1 and isinstance(turns[0], str)):
            problems.append(Problem(f"line {number}", "turns must be a list of one text", turns))
            continue
        kind = str(record.get("prompt_style") or "base")
        styles[kind] = None
        if style in ("", kind):
            found.append({**record, "text": turns[0]})
    if not problems and not found:
        problems.append(Problem("prompt_style", "no question has this style", style, nearest(style, styles)))
    if problems:
        raise DataError(problems).at(where)
    return found


def _table(path: str | Path, how: How) -> Records:
    """Return the rows of a table as records; cells of text are kept as they stand, and what is missing is None."""
    frame = load(path, replace(how, text=None))
    where = masked(str(path))
    if not len(frame):
        raise DataError("has names of columns and no rows", where=where, got=list(frame.columns))
    values = frame.reset_index(drop=True).astype(object)
    rows: Records = values.where(values.notna(), None).to_dict("records")
    return [{str(key): cell.tolist() if isinstance(cell, np.ndarray) else cell for key, cell in row.items()} for row in rows]


def _read_file(path: Path, format: str, how: How) -> tuple[Records, str]:
    """Return the records of a file and its format: JSON and lines of text are read here, anything else as every table is."""
    with opened(path, how) as (file, found, name, rest):
        kind = _SUFFIXES.get(PurePath(name).suffix.lower(), "") if format == "auto" else format
        if found not in ("text", "json"):
            kind = "csv" if format == "auto" else kind
        elif not kind:
            remedy = f"say which: format= one of {', '.join(FORMATS[1:])}"
            raise DataError("the name of the file does not tell its format", where=str(path), got=PurePath(name).suffix, remedy=remedy)
        if kind not in ("csv", "strongreject") and found in ("text", "json"):
            rest.check_kind("prompts", name)
            size = file.seek(0, io.SEEK_END)
            if size > MOST_BYTES:
                raise DataError(f"is too large: at most {MOST_BYTES:,} bytes are read", where=str(path), got=f"{size:,} bytes")
            file.seek(0)
            text = _decoded(file.read(size), path)
            read = {"json": _json, "txt": _lines}.get(kind, _json_lines)
            return read(text, path), kind
    return _table(path, how), kind


def _lines(text: str, path: Path) -> Records:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _json_lines(text: str, path: Path) -> Records:
    records: Records = []
    problems: list[Problem] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            problems.append(Problem(f"line {number}", f"is no JSON: {error}", line[:60]))
            continue
        if isinstance(value, str | dict):
            records.append(value)
        else:
            problems.append(Problem(f"line {number}", "must be a text or an object", value))
    if problems:
        raise DataError(problems).at(str(path))
    return records


def _json(text: str, path: Path) -> Records:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"is no JSON: {error}", where=str(path), remedy="one object a line is format='jsonl'") from error
    if isinstance(value, dict) and isinstance(value.get("prompts"), list):
        value = value["prompts"]
    if not isinstance(value, list):
        raise DataError("must be a list of texts or objects", where=str(path), got=type(value).__name__)
    return value
