"""Answers as files: JSON lines and Parquet keep everything; CSV is for spreadsheets, and a cell of it is never a formula."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from budge.errors import BudgeError, DataError, InputError, MissingDependencyError, OutputExistsError, nearest
from budge.files import write_whole
from budge.footers import check_contents, check_texts, footer_of, groups_of
from budge.llm.answers import COLUMNS, NEEDED, Answers
from budge.stored import COUNT, MEGABYTE, Rule, check_shape, parse_json, read_bytes, reading, word

__all__ = ["MOST_DRAWS", "check_info", "json_lines", "read_answers", "read_frame", "write_answers"]

_ENDS = (".csv", ".jsonl", ".parquet")
_FORMULA = tuple("=+-@\t\r\n'")  # what a spreadsheet may run; the apostrophe itself, so that it can be taken off again
_HITS: dict[str, bool | None] = {"true": True, "false": False, "": None, "1": True, "0": False}
_HEAD = "budge answers"
_MOST, _MOST_INFO = 4096 * MEGABYTE, 64 * MEGABYTE  # bytes
MOST_DRAWS = 10**6  # of a cell; those that a run planned and did not come to take memory, too
_PLANNED = Rule(f"a whole number from 0 to {MOST_DRAWS:,}", lambda v: v is None or isinstance(v, list) or (COUNT.holds(v) and v <= MOST_DRAWS))
_RULE = Rule("a record of a stopping rule", lambda v: v is None or isinstance(v, bool) or (isinstance(v, dict) and _PLANNED.holds(v.get("max_n"))))
_NAMES = Rule("names", lambda v: isinstance(v, dict) or (isinstance(v, list) and all(isinstance(name, str) for name in v)))
#: What tests rely on; there may be more. Runs that were put together have lists.
_INFO = {
    "scheme?": word(None, "joint", "per_prompt", "census"), "complete?": bool, "n?": _PLANNED, "per_prompt?": _PLANNED,
    "sequential?": _RULE, str: Any,
}  # fmt: skip


def write_answers(answers: Answers, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write the answers beside their place, then move them into it."""
    place = Path(path)
    kind = _kind(place)
    if place.exists() and not overwrite:
        raise OutputExistsError("exists already", where=str(place), remedy="choose another name, or overwrite")
    if kind == ".csv":
        files = {place: _csv(answers), _info_file(place): json.dumps(answers.info, default=str, indent=1).encode()}
    elif kind == ".jsonl":
        files = {place: json_lines(answers)}
    else:
        files = {place: _parquet(answers, place)}
    for where, data in files.items():
        write_whole(where, data)
    return place


def read_answers(path: str | Path) -> Answers:
    """Read answers; what is wrong in the file is named with its line."""
    place = Path(path)
    kind = _kind(place)
    if kind == ".parquet":
        return _from_parquet(place)
    text = _decoded(place)
    return _from_csv(text, place) if kind == ".csv" else _from_json_lines(text, place)


def _decoded(place: Path) -> str:
    try:
        text = read_bytes(place, _MOST, follow=True).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"is not text in UTF-8: {error.reason} at byte {error.start}", where=str(place)) from None
    if not text.strip():
        raise DataError("is empty", where=str(place), remedy="give a file with answers")
    return text


def read_frame(path: str | Path) -> pd.DataFrame:
    """Return a table of anybody's own; cells of a CSV file that are numbers become numbers."""
    place = Path(path)
    kind = _kind(place)
    if kind == ".parquet":
        return _arrow_table(place)[0]
    text = _decoded(place)
    if kind == ".jsonl":
        found = _records(text, place)[1]
        columns = {key for row in found for key in row}
        if len(columns) * len(found) > MEGABYTE + 10 * len(text):  # a table has a cell for each of them
            raise DataError("its lines have too many different keys for a table", where=str(place), got=len(columns), remedy="one object per draw")
        return pd.DataFrame(found)
    names, rows = _cells(text, place)
    frame = pd.DataFrame(rows, columns=names)
    for name in names:
        try:
            frame[name] = pd.to_numeric(frame[name].replace("", None))
        except (ValueError, TypeError):
            continue
    return frame


def _kind(place: Path) -> str:
    if place.suffix.lower() not in _ENDS:
        raise InputError(
            "answers are CSV, JSON lines or Parquet", where=str(place), got=place.suffix, remedy=nearest(place.suffix, _ENDS)
        )
    return place.suffix.lower()


def _info_file(place: Path) -> Path:
    return place.with_name(place.name + ".info.json")


def _csv(answers: Answers) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)  # a lone carriage return would end a row
    writer.writerow([_safe(str(name)) for name in answers.table.columns])
    for row in answers.table.itertuples(index=False):
        writer.writerow([_cell(name, value) for name, value in zip(answers.table.columns, row)])
    return out.getvalue().encode("utf-8", "backslashreplace")


def _cell(name: str, value: Any) -> str:
    if name == "hit":
        return "" if value is None else str(value).lower()
    return str(value) if name == "draw" else _safe(str(value))


def _safe(text: str) -> str:
    """An apostrophe before what a spreadsheet would read as a formula; NUL is dropped, which no table holds."""
    text = text.replace("\0", "")
    return "'" + text if text.startswith(_FORMULA) else text


def _cells(text: str, place: Path) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the names of the columns and the rows of a CSV text."""
    rows: list[dict[str, Any]] = []
    limit = csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))  # an answer may be long
    try:
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        names = [_plain(name) for name in next(reader)]
        for cells in reader:
            if len(cells) != len(names):
                raise DataError(
                    f"line {reader.line_num} has {len(cells)} cells instead of {len(names)}",
                    where=str(place),
                    remedy="was the file cut off?",
                )
            rows.append({name: _plain(cell) for name, cell in zip(names, cells)})
    except csv.Error as error:
        raise DataError(
            f"is not a whole CSV file: {error}", where=f"{place}, line {reader.line_num}", remedy="was the file cut off?"
        ) from None
    finally:
        csv.field_size_limit(limit)
    return names, rows


def _from_csv(text: str, place: Path) -> Answers:
    names, rows = _cells(text, place)
    for i, row in enumerate(rows):
        if "hit" in row and row["hit"].strip().lower() in _HITS:
            row["hit"] = _HITS[row["hit"].strip().lower()]
        if row.get("draw", "x").strip().isdecimal():
            row["draw"] = int(row["draw"])
        elif "draw" in row and not row["draw"].strip():
            raise DataError("is empty", where=f"{place}, row {i}, column draw", remedy="number the draws of a prompt from 0")
    info = {}
    if _info_file(place).exists():
        with reading(_info_file(place), "what is said of these answers cannot be read"):
            info = parse_json(read_bytes(_info_file(place), _MOST_INFO, follow=True), constants=True)
    return _made(rows, names, info, place)


def _plain(cell: str) -> str:
    return cell[1:] if cell[:1] == "'" and cell[1:].startswith(_FORMULA) else cell


def json_lines(answers: Answers) -> bytes:
    """Return the answers as JSON lines."""
    lines = [json.dumps({_HEAD: 1, "info": answers.info}, default=str)]
    lines += [json.dumps(row, default=str) for row in answers.table.to_dict("records")]
    return ("\n".join(lines) + "\n").encode()


def _records(text: str, place: Path, needed: Sequence[str] = ()) -> tuple[Any, list[dict[str, Any]]]:
    """Return what the first line tells of the answers, and the other lines."""
    info: Any = {}
    rows = []
    for i, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = parse_json(line, constants=True)
        except ValueError as error:
            raise DataError(f"line {i} is not whole JSON: {error}", where=str(place), remedy="was the file cut off?") from None
        if not isinstance(row, dict):
            raise DataError(f"line {i} is no record", where=str(place), got=row, remedy="one object a line")
        if _HEAD in row:
            info = row.get("info") or {}
            continue
        for name in needed:  # before many such lines take memory
            if name not in row:
                raise DataError(f"line {i} has no {name!r}", where=str(place), remedy=nearest(name, row))
        with reading(place, f"line {i}"):
            check_shape(row, {str: Any})
        rows.append(row)
    return info, rows


def _from_json_lines(text: str, place: Path) -> Answers:
    info, rows = _records(text, place, NEEDED)
    return _made(rows, list(dict.fromkeys(key for row in rows for key in row)) or list(COLUMNS), info, place)


def _made(rows: list[dict[str, Any]], names: list[str], info: dict[str, Any], place: Path) -> Answers:
    return _checked(place, info, lambda: Answers.of(rows, info) if rows else Answers(pd.DataFrame(columns=names), info))


def _checked(place: Path, info: Any, make: Callable[[], Answers]) -> Answers:
    """Return the answers, if what is stated of them has the types that tests rely on."""
    with reading(place, "what is stated of these answers is wrong"):
        check_info(info)
    try:
        made = make()
    except DataError as error:
        raise error.at(str(place)) from None
    if len(made) and int(made.table["draw"].max()) > MOST_DRAWS:
        raise DataError(f"draws are numbered from 0 to {MOST_DRAWS:,} at most", where=f"{place}, column draw", got=int(made.table["draw"].max()))
    return made


def check_info(info: Any) -> None:
    """Raise a `ValueError` where what is stated of answers does not have the types that tests rely on."""
    check_shape(info, _INFO, "info")
    if not isinstance(info.get("identity", {}), list):  # of several runs there are several
        check_shape(info.get("identity", {}), {"models?": _NAMES, "interactions?": _NAMES, str: Any}, "info.identity")
    found = re.match(r"(\d+) prompts?\b", str(info.get("prompts", "")))
    if found is not None and len(found[1]) > len(str(MOST_DRAWS)):
        raise ValueError("info.prompts is too many")


def _parquet(answers: Answers, place: Path) -> bytes:
    _arrow(place)
    import pyarrow as pa
    import pyarrow.parquet as pq

    stored = answers.table.assign(hit=answers.table["hit"].astype("boolean"))
    for name in stored.columns:
        if stored[name].dtype == object:
            stored[name] = [str(value).encode("utf-8", "backslashreplace").decode() for value in stored[name]]
    table = pa.Table.from_pandas(stored, preserve_index=False)
    note = {**(table.schema.metadata or {}), _HEAD.encode(): json.dumps(answers.info, default=str).encode()}
    out = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(note), out)
    return out.getvalue()


def _from_parquet(place: Path) -> Answers:
    frame, info = _arrow_table(place)
    if "hit" in frame:
        frame["hit"] = pd.Series([None if pd.isna(v) else v for v in frame["hit"]], dtype=object)
    return _checked(place, info, lambda: Answers(frame, info))


def _arrow_table(place: Path) -> tuple[pd.DataFrame, Any]:
    """Return a table of a Parquet file, and what it tells of its answers."""
    _arrow(place)
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = read_bytes(place, _MOST, follow=True)
    try:
        file = pq.ParquetFile(pa.BufferReader(data), thrift_string_size_limit=len(data), thrift_container_size_limit=len(data))
        groups = groups_of(footer_of(io.BytesIO(data)))
        many, columns = file.metadata.num_rows, [column for group in groups for column in group.columns]
        check_contents(io.BytesIO(data), groups)
        if max([many, *(column.values for column in columns)]) > 1000 * len(data):
            raise ValueError(f"it states {many:,} rows in {len(data):,} bytes")
        check_texts(io.BytesIO(data), groups)
        table = file.read()
        return table.to_pandas(), parse_json((table.schema.metadata or {}).get(_HEAD.encode(), b"{}"), constants=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, BudgeError):
            raise
        raise DataError(f"is not a whole Parquet file: {error}", where=str(place), remedy="was the file cut off?") from None


def _arrow(place: Path) -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise MissingDependencyError("Parquet needs pyarrow", where=str(place), remedy="pip install 'budge[parquet]'") from None
