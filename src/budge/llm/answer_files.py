"""Answers as files: JSON lines and Parquet keep everything; CSV is for spreadsheets, and a cell of it is never a formula."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import pandas as pd

from budge.errors import DataError, InputError, MissingDependencyError, OutputExistsError, StorageError, nearest
from budge.llm.answers import COLUMNS, Answers

__all__ = ["read_answers", "write_answers"]

_ENDS = (".csv", ".jsonl", ".parquet")
_FORMULA = tuple("=+-@\t\r\n'")  # what a spreadsheet may run; the apostrophe itself, so that it can be taken off again
_HITS: dict[str, bool | None] = {"true": True, "false": False, "": None, "1": True, "0": False}
_HEAD = "budge answers"


def write_answers(answers: Answers, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write the answers beside their place, then move them into it."""
    place = Path(path)
    kind = _kind(place)
    if place.exists() and not overwrite:
        raise OutputExistsError("exists already", where=str(place), remedy="choose another name, or overwrite")
    if kind == ".csv":
        files = {place: _csv(answers), _info_file(place): json.dumps(answers.info, default=str, indent=1).encode()}
    elif kind == ".jsonl":
        files = {place: _json_lines(answers)}
    else:
        files = {place: _parquet(answers, place)}
    try:
        for where, data in files.items():
            beside = where.with_name(f".{where.name}.{os.getpid()}.tmp")
            try:
                beside.write_bytes(data)
                beside.replace(where)
            finally:
                beside.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            f"the answers cannot be written: {error.strerror}", where=str(place), remedy="choose a folder that can be written to"
        ) from error
    return place


def read_answers(path: str | Path) -> Answers:
    """Read answers; what is wrong in the file is named with its line."""
    place = Path(path)
    kind = _kind(place)
    try:
        if kind == ".parquet":
            return _from_parquet(place)
        text = place.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise StorageError("there is no such file", where=str(place)) from None
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", where=str(place)) from error
    except UnicodeDecodeError as error:
        raise DataError(f"is not text in UTF-8: {error.reason} at byte {error.start}", where=str(place)) from None
    if not text.strip():
        raise DataError("is empty", where=str(place), remedy="give a file with answers")
    return _from_csv(text, place) if kind == ".csv" else _from_json_lines(text, place)


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


def _from_csv(text: str, place: Path) -> Answers:
    rows = []
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
    for i, row in enumerate(rows):
        if "hit" in row and row["hit"].strip().lower() in _HITS:
            row["hit"] = _HITS[row["hit"].strip().lower()]  # type: ignore[assignment]
        if row.get("draw", "x").strip().isdecimal():
            row["draw"] = int(row["draw"])  # type: ignore[assignment]
        elif "draw" in row and not row["draw"].strip():
            raise DataError("is empty", where=f"{place}, row {i}, column draw", remedy="number the draws of a prompt from 0")
    info = {}
    try:
        info = json.loads(_info_file(place).read_text(encoding="utf-8"))
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        raise StorageError(f"what is said of these answers cannot be read: {error}", where=str(_info_file(place))) from None
    return _made(rows, names, info, place)


def _plain(cell: str) -> str:
    return cell[1:] if cell[:1] == "'" and cell[1:].startswith(_FORMULA) else cell


def _json_lines(answers: Answers) -> bytes:
    lines = [json.dumps({_HEAD: 1, "info": answers.info}, default=str)]
    lines += [json.dumps(row, default=str) for row in answers.table.to_dict("records")]
    return ("\n".join(lines) + "\n").encode()


def _from_json_lines(text: str, place: Path) -> Answers:
    info: dict[str, Any] = {}
    rows = []
    for i, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"line {i} is not whole JSON: {error}", where=str(place), remedy="was the file cut off?") from None
        if not isinstance(row, dict):
            raise DataError(f"line {i} is no record", where=str(place), got=row, remedy="one object a line")
        if _HEAD in row:
            info = dict(row.get("info") or {})
        else:
            rows.append(row)
    return _made(rows, list(dict.fromkeys(key for row in rows for key in row)) or list(COLUMNS), info, place)


def _made(rows: list[dict[str, Any]], names: list[str], info: dict[str, Any], place: Path) -> Answers:
    try:
        return Answers.of(rows, info) if rows else Answers(pd.DataFrame(columns=names), info)
    except DataError as error:
        raise error.at(str(place)) from None


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
    _arrow(place)
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(io.BytesIO(place.read_bytes()))
        info = json.loads((table.schema.metadata or {}).get(_HEAD.encode(), b"{}"))
    except (pa.ArrowException, ValueError) as error:
        raise DataError(f"is not a whole Parquet file: {error}", where=str(place), remedy="was the file cut off?") from None
    frame = table.to_pandas()
    if "hit" in frame:
        frame["hit"] = pd.Series([None if pd.isna(v) else v for v in frame["hit"]], dtype=object)
    try:
        return Answers(frame, info)
    except DataError as error:
        raise error.at(str(place)) from None


def _arrow(place: Path) -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise MissingDependencyError("Parquet needs pyarrow", where=str(place), remedy="pip install 'budge[parquet]'") from None
