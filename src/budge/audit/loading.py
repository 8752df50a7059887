"""Saved runs are read here, as files that anybody may have written: every part has its shape, and nothing in it contradicts the counts."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from hashlib import blake2b
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from budge.audit.cases import FIELDS, read_cases
from budge.audit.design import Design
from budge.audit.failing import ASIDE
from budge.audit.rows import Rows
from budge.errors import InputError, Problem, StorageError
from budge.stats.counts import Counts
from budge.stats.weights import Heavy
from budge.stored import (
    COUNT,
    MAYBE_COUNT,
    MEGABYTE,
    Arrays,
    Rule,
    check_memory,
    check_shape,
    check_values,
    open_regular,
    parse_json,
    read_bytes,
    reading,
    word,
)
from budge.wording import LONGEST, Wording

if TYPE_CHECKING:
    from budge.audit.result import Audit

__all__ = [
    "COUNTS", "FORMAT", "NOTE", "PARTS", "RECORD", "check_people", "check_record", "design_of", "digest_of", "load_audit", "most_record",
    "notes_of", "piece_files", "read_record", "runs_in", "target_was_code",
]  # fmt: skip

RECORD, PARTS, FORMAT = "audit.json", "parts", 3
COUNTS = re.compile(r"counts(-[0-9a-f]{16})?\.npz")  # named by its digest, so that those of two runs can stand side by side
MOST_RECORD, MOST_ARRAYS = 24 * MEGABYTE, 4096 * MEGABYTE  # bytes
RECORD_PER_ARRAYS = 80  # bytes by which a record may be larger for each byte of packed counts beside it
LARGEST_RECORD = 1024 * MEGABYTE
MOST_MEMORY, MEMORY_PER_BYTE = 150 * MEGABYTE, 20  # bytes of memory of a record and its values, and of each byte by which it may be larger
MOST_STEPS = 200_000  # draws that a stopping rule is worked out for

_DESIGN = {"n": COUNT, "why_n": Rule("a text", lambda value: isinstance(value, str) and value != ""), "target": dict, "population": str, str: Any}


def _is_wording(value: object) -> bool:
    try:
        return isinstance(value, dict) and Wording.of(value) is not None
    except InputError:
        return False


_WORDING = Rule(f"words of the user, each a text of at most {LONGEST} characters", _is_wording)
_INFO = {
    "version": str, "when": str, "design": _DESIGN, "target": str, "population": str, "already": {str: COUNT}, "harm": word(None, "below", "above"),
    "name": str, "measure": str | None, "spec": dict | None, "spec_digest": str | None, "data_digest": str, "people": COUNT, "twins": MAYBE_COUNT,
    "models": {str: str}, "model_digests": {str: str | None},
    "addresses": {str: str | None}, "answers_digests": {str: str | None}, "causes?": {str: [str]}, "command?": str, "replayed?": str, "wording?": _WORDING,
    "python?": str, "numpy?": str, "pandas?": str, "packages?": {str: str}, str: Any,
}  # fmt: skip
DIGEST = Rule("a digest", lambda value: isinstance(value, str) and re.fullmatch("[0-9a-f]{32}", value) is not None)
NOTE = {"where": str, "what": str, "severity": word("error", "warning"), "got?": str, "remedy?": str}
_BOTH = {"budge": int, "info": _INFO, "design": _DESIGN, "notes": [NOTE]}
_COLUMN = {"array?": str, "values?": list, "zone?": str}
_GROUP = _COLUMN | {"order?": list, "ordered?": bool}
_CASE = Rule("a row and the place of its least change", lambda v: isinstance(v, list) and len(v) == 2 and all(type(x) is int for x in v))
_TABLE = _BOTH | {
    "kind": word("table"), "index_name": str | int | float | bool | None | dict, "moved": {str: list}, "cases?": {str: [_CASE]}, "files": {str: DIGEST},
    "columns": {str: {"index": _COLUMN, "prediction": _COLUMN, "groups": {str: _GROUP}}},
}  # fmt: skip
_PIECE = {"number": COUNT, "first": COUNT, "rows": COUNT, "files": [DIGEST]}
_LABELS = Rule("nothing, or two whole numbers", lambda v: v is None or (isinstance(v, list) and len(v) == 2 and all(type(x) is int for x in v) and v[1] != 0))
_STREAM = _BOTH | {"kind": word("stream"), "info": _INFO | {"pieces": [_PIECE], "parts": [COUNT], "labels": _LABELS}}


def load_audit(folder: str | Path) -> Audit:
    """Read a saved run."""
    place = Path(folder)
    record = read_record(place / RECORD)
    if record["kind"] == "stream":
        from budge.audit.streamed import load_stream

        return load_stream(place, record)
    ((name, digest),) = record["files"].items()
    data = place / name
    with open_regular(data, MOST_ARRAYS, missing="is missing from the run") as file:
        with reading(data, "is not a whole file of counts"):
            arrays = Arrays(file)  # before all of it is read: it may be large and hold nothing
            if _digest_of_file(file) != digest:
                raise StorageError("was changed after it was written: its digest differs", where=str(data))
        with reading(place / RECORD):
            return _audit(record, arrays, data)


def runs_in(folder: Path) -> list[Path]:
    """Return the folders of runs inside a folder, in the order of their names."""
    return sorted(record.parent for record in folder.glob(f"*/{RECORD}")) if folder.is_dir() else []


def _audit(record: dict[str, Any], arrays: Arrays, data: Path) -> Audit:
    """Return the run of a record and its arrays; `data` names their file in errors."""
    from budge.audit.result import Audit

    design = design_of(record)
    with reading(data, "is not a whole file of counts"):
        rows = {name: _rows(k, columns, arrays, record) for k, (name, columns) in enumerate(record["columns"].items())}
        for own in rows.values():
            own.check(record["info"]["people"], design)
        kept = record.get("cases", {})
        if not set(kept) <= set(rows):
            raise ValueError("cases are about other models")
        cases = read_cases(kept, {name: k for k, name in enumerate(rows)}, {name: own.counts for name, own in rows.items()}, arrays)
        if len(arrays) != sum(map(_many, record["columns"].values())) + len(FIELDS) * sum(map(len, cases.values())):
            raise ValueError("it has other arrays than the record names")
    _check_names(record, rows, design)
    moved = {name: _moved(found, rows[name].counts, record["info"]["spec"]) for name, found in record["moved"].items()}
    return Audit(rows, design, record["info"], notes_of(record), moved=moved, cases=cases)


def piece_files(folder: Path, info: Mapping[str, Any]) -> list[Path]:
    """Return the files of a stream: one per part and model, named by their digests, so that those of two runs can stand side by side."""
    found = [(piece["number"], k, digest) for piece in info.get("pieces", ()) for k, digest in enumerate(piece["files"])]
    return [folder / PARTS / f"{int(number):06d}-{k}-{digest[:16]}.parquet" for number, k, digest in found]


def most_record(path: Path) -> int:
    """Return how many bytes a record may have: the more, the more bytes of counts are beside it, up to a limit."""
    beside = (found.lstat() for found in path.parent.glob("counts*.npz") if COUNTS.fullmatch(found.name))
    packed = sum(min(found.st_size, 512 * getattr(found, "st_blocks", found.st_size)) for found in beside)  # a hole in a file is no bytes
    return min(MOST_RECORD + RECORD_PER_ARRAYS * packed, LARGEST_RECORD)


def check_record(body: str, most: int) -> None:
    """Raise a `ValueError` where the text of a record would take more memory than one of at most so many bytes does."""
    check_values(body)
    check_memory(body, _most_memory(most))


def _most_memory(most: int) -> int:
    return MOST_MEMORY + MEMORY_PER_BYTE * (most - MOST_RECORD)


def read_record(path: Path) -> dict[str, Any]:
    """Return the record of a run, if it is as it was written."""
    most = most_record(path)
    with reading(path):
        outer = parse_json(read_bytes(path, most, missing="there is no saved run here", remedy="save one with audit.save(folder)"), most=_most_memory(most))
        check_shape(outer, {"digest": str, "record": str})
        body: str = outer["record"]
        if digest_of(body.encode()) != outer["digest"]:
            raise StorageError("was changed after it was written: its digest differs", where=str(path))
        record: dict[str, Any] = parse_json(body, most=_most_memory(most))
        check_shape(record, {"budge": int, "kind": word("table", "stream"), str: Rule("", lambda value: True)})
        if record["budge"] != FORMAT:
            raise StorageError("was written by another version", where=str(path), got=record["budge"], remedy="make the run again")
        check_shape(record, _TABLE if record["kind"] == "table" else _STREAM)
        if record["kind"] == "table" and (len(record["files"]) != 1 or not COUNTS.fullmatch(*record["files"])):
            raise ValueError("files must name one file of counts")
    return record


def _digest_of_file(file: IO[bytes]) -> str:
    file.seek(0)
    found = blake2b(digest_size=16)
    while some := file.read(MEGABYTE):
        found.update(some)
    return found.hexdigest()


def digest_of(data: bytes) -> str:
    """Return the digest of a file's content."""
    return blake2b(data, digest_size=16).hexdigest()


def notes_of(record: Mapping[str, Any]) -> tuple[Problem, ...]:
    """Return the notes of a record."""
    return tuple(Problem(**note) for note in record["notes"])


def design_of(record: Mapping[str, Any]) -> Design:
    """Return the design of a record, if what is stated of it beside agrees."""
    given, info = record["design"], record["info"]
    if repr(info["design"]) != repr(given):  # 1 is not True
        raise ValueError("info.design is another design")
    design = Design.from_dict(given, target=_code if "function" in given["target"] else None)
    if design.sequential:
        # A rule is worked out step by step: its length follows from the rate of hits, the margin and the error, whatever n is.
        rate = design.threshold if design.claim == "below" else 1 - design.threshold
        steps = rate * (math.log(1 / design.level) + math.log(1 / (1 - design.power))) / design.gap**2
        if not max(steps, math.log(1 / design.level) / rate, design.draws) <= MOST_STEPS:
            raise ValueError(f"design is one whose stopping rule takes more than {MOST_STEPS:,} draws")
    stated = {"population": design.population, "harm": design.harm}
    if not target_was_code(design.target):
        stated["target"] = design.target.describe()
    for name, value in stated.items():
        if info[name] != value:
            raise ValueError(f"info.{name} is not that of the design")
    for name, already in info["already"].items():
        if already > info["people"]:
            raise ValueError(f"info.already.{name} is more than all people")
    if (info["twins"] or 0) > info["people"]:
        raise ValueError("info.twins is more than all people")
    return design


def check_people(design: Design, rows: int, already: int, people: int, *, whole: bool) -> None:
    """Raise a `ValueError` where rows are not those of the people whom a design is about; `whole`: no note states that some were set aside."""
    about = {"all": people, "outside": people - already}.get(design.population, rows)
    if rows > about or (whole and rows < about):
        raise ValueError(f"there are {rows:,} rows, and the design is about {about:,} of {people:,} people")


def _code(outputs: Any) -> Any:
    """Stand in for a target that was Python code and is not saved."""
    raise InputError("the target is Python code and was not saved", where="target", remedy="give the target")


def target_was_code(target: Any) -> bool:
    """Return whether a target was Python code, which is not saved."""
    return target is _code or getattr(target, "f", None) is _code


def _check_names(record: Mapping[str, Any], rows: Mapping[str, Rows], design: Design) -> None:
    """Raise a `ValueError` where the parts of a record are about other models or people."""
    info = record["info"]
    for name in ("models", "model_digests", "answers_digests", "already"):
        if list(info[name]) != list(rows):
            raise ValueError(f"info.{name} is about other models")
    if not rows or set(record["moved"]) != set(rows) or not set(info.get("causes", {})) <= set(rows):
        raise ValueError("moved or info.causes is about other models")
    whole_run = not any(note["where"] == ASIDE for note in record["notes"])
    for name, own in rows.items():
        check_people(design, len(own.place), info["already"][name], info["people"], whole=whole_run)
        units = np.unique(own.units)
        if len(units) and (units[0] < 0 or units[-1] + 1 != info["people"] - (info["twins"] or 0)) and len(own.place) == info["people"]:
            raise ValueError("info.twins is not the number of people who are like others")
        whole = len(own.place) == info["people"] and not target_was_code(design.target)
        if whole and info["already"][name] != int(np.sum(design.target.hits(own.prediction, own.prediction))):
            raise ValueError("info.already is not the number of people whose prediction is the target")
    _check_same_people(list(rows.values()))


def _check_same_people(rows: Sequence[Rows]) -> None:
    """Raise a `ValueError` where two models' rows about one person give that person other labels or groups."""
    if len(rows) < 2:
        return
    place = np.concatenate([own.place for own in rows])
    order = np.argsort(place, kind="stable")
    again = np.diff(place[order]) == 0
    columns: dict[str, list[Any]] = {"labels": [own.index for own in rows], "units": [own.units for own in rows]}
    columns |= {f"groups by {c}": [own.groups[c] for own in rows] for c in rows[0].groups}
    for name, values in columns.items():
        codes, _ = pd.factorize(np.concatenate([np.asarray(part, dtype=object) for part in values]))  # what is missing is equal
        if (np.diff(codes[order])[again] != 0).any():
            raise ValueError(f"{name} of one person differ from model to model")


# -- the rows of a table ------------------------------------------------------------------------------------------------


def _rows(k: int, columns: Mapping[str, Any], arrays: Arrays, record: Mapping[str, Any]) -> Rows:
    """Return the rows of the k-th model; shapes are compared before an array is unfolded."""
    size = arrays.headers[f"{k}.n"][0]
    for f in fields(Counts):
        if f.name not in ("reached", "heavy") and arrays.headers[f"{k}.{f.name}"][0] != size:
            raise ValueError(f"{f.name} has the shape {arrays.headers[f'{k}.{f.name}'][0]}, not {size}")
    heavy = Heavy(**{f.name: arrays[f"{k}.heavy.{f.name}"] for f in fields(Heavy)})
    counts = Counts(**{f.name: arrays[f"{k}.{f.name}"] for f in fields(Counts) if f.name != "heavy"}, heavy=heavy)
    index = _column(columns["index"], f"{k}.index", arrays)
    index = index if isinstance(index, pd.Index) else pd.Index(index, tupleize_cols=False)
    index.name = _cell(record["index_name"])
    groups = pd.DataFrame({c: _group(found, f"{k}.group.{c}", arrays) for c, found in columns["groups"].items()}, index=index)
    prediction = np.asarray(_column(columns["prediction"], f"{k}.prediction", arrays))
    return Rows(index, arrays[f"{k}.place"], prediction, arrays[f"{k}.units"], counts, groups)


def _many(columns: Mapping[str, Any]) -> int:
    """Return how many arrays a model has."""
    own = sum("array" in found for found in (columns["index"], columns["prediction"], *columns["groups"].values()))
    return own + len(fields(Counts)) - 1 + len(fields(Heavy)) + len(("place", "units"))


def _column(found: Mapping[str, Any], name: str, arrays: Arrays) -> Any:
    if ("array" in found) == ("values" in found) or found.get("array", name) != name or ("zone" in found and "array" not in found):
        raise ValueError(f"{name} must be an array of that name, or values")
    if "array" in found:
        values = arrays[name]
        if "zone" in found and values.dtype.kind != "M":
            raise ValueError(f"{name} must hold times")
        return pd.DatetimeIndex(values).tz_localize("UTC").tz_convert(found["zone"]) if "zone" in found else values
    values = np.empty(len(found["values"]), dtype=object)
    values[:] = [_cell(v) for v in found["values"]]
    return values


def _group(found: Mapping[str, Any], name: str, arrays: Arrays) -> Any:
    values = np.asarray(_column(found, name, arrays))
    if "order" not in found:
        return values
    return pd.Categorical(values, categories=[_cell(v) for v in found["order"]], ordered=found["ordered"])


def _moved(found: Any, counts: Counts, spec: Mapping[str, Any] | None) -> dict[int, list[list[Any]]]:
    """Return what witnesses change, by row: rows that have one, and features of the interaction model, each once."""
    moved: dict[int, list[list[Any]]] = {}
    known = None if spec is None else spec.get("features")
    for at, steps in found:
        if type(at) is not int or not 0 <= at < len(counts) or at in moved or counts.witness[at] < 0:
            raise ValueError(f"moved names a row {at!r} twice, or one that has no witness")
        moved[at] = [[feature, _cell(before), _cell(after)] for feature, before, after in steps]
        names = [feature for feature, _, _ in moved[at]]
        if not all(type(name) is str and (type(known) is not dict or name in known) for name in names) or len(set(names)) < len(names):
            raise ValueError("moved names a feature twice, or one that there is not")
        if any(before == after for _, before, after in moved[at]):
            raise ValueError("moved names a feature that does not move")
    return moved


def _cell(value: Any) -> Any:
    """Return what a cell was made from: a plain value, or a tuple, a time, a number that JSON does not have."""
    if type(value) is not dict:
        if type(value) is list:
            raise ValueError("a cell holds a list")
        return value
    ((kind, content),) = value.items()
    if kind == "tuple" and type(content) is list and not any(type(v) is dict and "tuple" in v for v in content):
        return tuple(_cell(v) for v in content)
    if kind == "float" and content in ("nan", "inf", "-inf"):
        return float(content)
    if kind == "time" and type(content) is str and len(content) <= 64:
        return pd.Timestamp(content)
    raise ValueError(f"a cell holds {kind!r}, which is no value")

