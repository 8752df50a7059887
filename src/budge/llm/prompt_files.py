"""Files of prompts and of rewrites, read as records; copies of SORRY-Bench and StrongREJECT are recognised by their fields."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from budge.errors import DataError, InputError, Problem, StorageError, nearest
from budge.stored import MEGABYTE, read_bytes

__all__ = ["FORMATS", "read_records", "read_table", "read_text"]

FORMATS = ("auto", "csv", "jsonl", "json", "txt", "sorry-bench", "strongreject")
_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".txt": "txt", ".text": "txt"}

MOST_BYTES = 1024 * MEGABYTE  # of a file of prompts

Records = list[Any]


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, with or without a byte-order mark; what is not is an error that names the place."""
    close = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() and not path.exists() else []
    raw = read_bytes(path, MOST_BYTES, remedy=nearest(path.name, close) if close else "mind the folder", follow=True)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        got = raw[error.start : error.start + 4]
        raise DataError(f"line {line} is not UTF-8", where=str(path), got=got, remedy="save the file as UTF-8") from error


def read_records(path: Path, format: str = "auto", *, style: str = "base") -> tuple[Records, dict[str, str] | None]:
    """The records of a file (texts or mappings), and which fields hold what where the format says so.

    Parameters
    ----------
    path
        A file, or a folder with SORRY-Bench's files: then that of the style.
    format
        One of `FORMATS`.
    style
        Of SORRY-Bench: the `prompt_style` to keep; "" keeps all.
    """
    if format not in FORMATS:
        raise InputError("no such format", where="format", got=format, remedy=nearest(format, FORMATS))
    if path.is_dir():
        path, format = _of_folder(path, style), "sorry-bench"
    kind = format
    if format == "auto":
        kind = _SUFFIXES.get(path.suffix.lower(), "")
        if not kind:
            remedy = f"say which: format= one of {', '.join(FORMATS[1:])}"
            raise DataError("the name of the file does not tell its format", where=str(path), got=path.suffix, remedy=remedy)
    text = read_text(path)
    if kind in ("csv", "strongreject"):
        records = read_table(text, str(path))
    elif kind in ("jsonl", "sorry-bench"):
        records = _json_lines(text, path)
    elif kind == "json":
        records = _json(text, path)
    else:
        records = [line.strip() for line in text.splitlines() if line.strip()]
    keys = {str(key) for r in records if isinstance(r, Mapping) for key in r}
    if kind == "sorry-bench" or (format == "auto" and {"question_id", "turns"} <= keys):
        return _sorry_bench(records, keys, path, style), {"text": "text", "id": "question_id", "category": "category"}
    if kind == "strongreject" or (format == "auto" and "forbidden_prompt" in keys):
        if "forbidden_prompt" not in keys:
            what = "StrongREJECT has a column forbidden_prompt"
            raise DataError(what, where=str(path), got=sorted(keys), remedy=nearest("forbidden_prompt", sorted(keys)))
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


def _sorry_bench(records: Records, keys: set[str], path: Path, style: str) -> Records:
    """Each question's single turn as its text; those of another style are left out."""
    problems = [
        Problem(str(path), f"SORRY-Bench has a field {name}", sorted(keys), nearest(name, sorted(keys)))
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
        raise DataError(problems).at(str(path))
    return found


def read_table(text: str, where: str) -> Records:
    """The rows of a CSV text as records; every cell is text."""
    delimiter = "\t" if where.lower().endswith(".tsv") else ","
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise DataError(f"is no CSV: {error}", where=where, remedy="mind quotes and commas") from error
    rows = [row for row in rows if row]
    if not rows:
        raise DataError("is empty", where=where, remedy="a CSV file starts with the names of its columns")
    head = [name.strip() for name in rows[0]]
    problems = [
        Problem(f"row {i}", f"has {len(row)} cells, the head has {len(head)}", row, "quote cells that hold commas")
        for i, row in enumerate(rows[1:], 1)
        if len(row) != len(head)
    ]
    twice = sorted(name for name, times in Counter(head).items() if times > 1)
    if twice:
        problems.append(Problem("head", "columns are repeated", twice))
    if problems:
        raise DataError(problems).at(where)
    if len(rows) == 1:
        raise DataError("has a head and no rows", where=where, got=head)
    return [dict(zip(head, row)) for row in rows[1:]]


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
