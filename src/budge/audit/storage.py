"""Saved runs: counts in one file and a JSON record beside them, written whole or not at all, checked when read.

What is saved is what was seen (`Counts`) and what was asked (`Design`); the table and every claim are made from these again.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.audit.ask import predictors_of
from budge.audit.design import MASK, Design, Execution
from budge.audit.sources import TableSource, make_source
from budge.errors import InputError, OutputExistsError, Problem, StorageError
from budge.features import Feature
from budge.frames import table
from budge.interaction import InteractionModel
from budge.reach.reacher import reacher
from budge.stats.counts import Counts
from budge.stats.weights import Heavy

if TYPE_CHECKING:
    from budge.audit.result import Audit

__all__ = ["RECORD", "design_of", "load_audit", "moved_of", "population_of", "put_in_place", "read_record", "replay", "save_audit", "write_record"]

RECORD, COUNTS, FORMAT = "audit.json", "counts.npz", 3


def save_audit(audit: Audit, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Write to a folder beside, then move it into place: half a run is never seen."""
    place = Path(folder)
    if place.exists() and not overwrite and not _only_journal(place):
        raise OutputExistsError("exists already", where=str(place), remedy="choose another folder, or overwrite")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}.") as half:
            made = Path(half) / "run"
            made.mkdir()
            _write(audit, made)
            if place.is_dir():
                for item in sorted(made.iterdir(), key=lambda path: path.name == RECORD):  # the record, which names the other by digest, comes last
                    os.replace(item, place / item.name)
            else:
                os.replace(made, place)
    except OSError as error:
        raise StorageError(
            f"cannot be written: {error.strerror or error}", where=str(place), remedy="choose a folder that can be written"
        ) from error
    return place


def _only_journal(place: Path) -> bool:
    """Return whether a folder holds nothing, or only the journal of the run itself."""
    return place.is_dir() and all(item.name.startswith("journal.") for item in place.iterdir())


def _write(audit: Audit, folder: Path) -> None:
    arrays: dict[str, npt.NDArray[Any]] = {}
    columns: dict[str, Any] = {}
    for k, (name, rows) in enumerate(audit.rows.items()):
        for f in fields(Counts):
            if f.name != "heavy":
                arrays[f"{k}.{f.name}"] = getattr(rows.counts, f.name)
        for f in fields(Heavy):
            arrays[f"{k}.heavy.{f.name}"] = getattr(rows.counts.heavy, f.name)
        arrays[f"{k}.place"], arrays[f"{k}.units"] = rows.place, rows.units
        columns[name] = {
            "index": _column(rows.index, f"{k}.index", arrays),
            "prediction": _column(rows.prediction, f"{k}.prediction", arrays),
            "groups": {str(c): _group(rows.groups[c], f"{k}.group.{c}", arrays) for c in rows.groups.columns},
        }
    np.savez_compressed(folder / COUNTS, **arrays)  # type: ignore[arg-type]
    record = {
        "info": dict(audit.info),
        "design": audit.design.to_dict(),
        "index_name": _plain(audit.table.index.name),
        "columns": columns,
        "moved": {name: [[at, _plain(steps)] for at, steps in found.items()] for name, found in moved_of(audit).items()},
        "notes": [p.to_dict() for p in audit.notes],
        "files": {COUNTS: _digest(folder / COUNTS)},
    }
    write_record(folder / RECORD, record)


def write_record(path: Path, record: Mapping[str, Any], *, kind: str = "table") -> None:
    """Write the record of a run, with its digest; `kind` tells whether people stood in a table or came as a stream."""
    plain = {"budge": FORMAT, "kind": kind, **record, "info": _plain(dict(record["info"])), "design": _plain(record["design"])}
    body = json.dumps(plain, indent=1, ensure_ascii=False)
    digest = blake2b(body.encode(), digest_size=16).hexdigest()
    put_in_place(path, json.dumps({"digest": digest, "record": body}, ensure_ascii=False).encode())


def put_in_place(path: Path, body: bytes) -> None:
    """Write a file beside, then move it into place: half a file is never seen."""
    half = path.with_name(f".{path.name}.half")
    try:
        half.write_bytes(body)
        os.replace(half, path)
    except OSError as error:
        half.unlink(missing_ok=True)
        what = f"cannot be written: {error.strerror or error}"
        raise StorageError(what, where=str(path), remedy="make room, or choose another folder; what was finished is kept") from error


def _column(values: Any, name: str, arrays: dict[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """Put a column of labels or answers among the arrays, or into the record where it holds objects."""
    if isinstance(values, pd.DatetimeIndex) and values.tz is not None:
        arrays[name] = values.tz_convert("UTC").tz_localize(None).to_numpy()
        return {"array": name, "zone": str(values.tz)}
    found = np.asarray(values.to_numpy() if isinstance(values, pd.Index) else values)
    if found.dtype.kind in "biufUSmM":
        arrays[name] = found
        return {"array": name}
    return {"values": [_plain(v) for v in found.tolist()]}


def _group(values: pd.Series, name: str, arrays: dict[str, npt.NDArray[Any]]) -> dict[str, Any]:
    """Put a column of groups among the arrays; the order of categories is the order in which groups are shown."""
    found = _column(values.to_numpy(), name, arrays)
    if isinstance(values.dtype, pd.CategoricalDtype):
        found |= {"order": [_plain(v) for v in values.cat.categories.tolist()], "ordered": bool(values.cat.ordered)}
    return found


def load_audit(folder: str | Path) -> Audit:
    """Read a saved run."""
    from budge.audit.result import Audit, Rows

    place = Path(folder)
    record = read_record(place / RECORD)
    try:
        if record.get("kind") == "stream":
            from budge.audit.streamed import load_stream

            return load_stream(place, record)
        data = place / COUNTS
        if not data.exists():
            raise StorageError("is missing from the run", where=str(data))
        if _digest(data) != record["files"][COUNTS]:
            raise StorageError("was changed after it was written: its digest differs", where=str(data))
        with np.load(data, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        rows = {}
        for k, (name, columns) in enumerate(record["columns"].items()):
            heavy = Heavy(**{f.name: arrays[f"{k}.heavy.{f.name}"] for f in fields(Heavy)})
            counts = Counts(**{f.name: arrays[f"{k}.{f.name}"] for f in fields(Counts) if f.name != "heavy"}, heavy=heavy)
            index = _read_column(columns["index"], arrays)
            index = index if isinstance(index, pd.Index) else pd.Index(index, tupleize_cols=False)
            index.name = record["index_name"]
            groups = pd.DataFrame({c: _read_group(found, arrays) for c, found in columns["groups"].items()}, index=index)
            prediction = np.asarray(_read_column(columns["prediction"], arrays))
            rows[name] = Rows(index, arrays[f"{k}.place"], prediction, arrays[f"{k}.units"], counts, groups)
        moved = {name: {int(at): [[_read(cell) for cell in step] for step in steps] for at, steps in found} for name, found in record["moved"].items()}
        return Audit(rows, design_of(record), record["info"], tuple(Problem(**note) for note in record["notes"]), moved=moved)
    except (KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise StorageError(f"is not a whole record of a run: {error}", where=str(place / RECORD)) from None


def design_of(record: Mapping[str, Any]) -> Design:
    """Return the design of a record."""
    target = record["design"]["target"]
    return Design.from_dict(record["design"], target=_code if isinstance(target, Mapping) and "function" in target else None)


def _code(outputs: Any) -> Any:
    """Stand in for a target that was Python code and is not saved."""
    raise InputError("the target is Python code and was not saved", where="target", remedy="give the target")


def read_record(path: Path) -> dict[str, Any]:
    """Return the record of a run, if it is as it was written."""
    try:
        outer = json.loads(path.read_text(encoding="utf-8"))
        body = outer["record"]
        if blake2b(body.encode(), digest_size=16).hexdigest() != outer["digest"]:
            raise StorageError("was changed after it was written: its digest differs", where=str(path))
        record: dict[str, Any] = json.loads(body)
    except FileNotFoundError:
        raise StorageError("there is no saved run here", where=str(path), remedy="save one with audit.save(folder)") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StorageError(f"is not a whole record of a run: {error}", where=str(path)) from None
    if record.get("budge") != FORMAT:
        raise StorageError("was written by another version", where=str(path), got=record.get("budge"), remedy="make the run again")
    return record


def _read_column(found: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Any:
    if "array" in found:
        values = arrays[found["array"]]
        return pd.DatetimeIndex(values).tz_localize("UTC").tz_convert(found["zone"]) if "zone" in found else values
    values = np.empty(len(found["values"]), dtype=object)
    values[:] = [_read(v) for v in found["values"]]
    return values


def _read_group(found: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> Any:
    values = np.asarray(_read_column(found, arrays))
    if "order" not in found:
        return values
    return pd.Categorical(values, categories=[_read(v) for v in found["order"]], ordered=found["ordered"])


def moved_of(audit: Audit) -> dict[str, dict[int, list[list[Any]]]]:
    """Return what every witness changes, as (feature, from, to) by row: computed where the people are at hand, else as it was saved."""
    context = audit.context
    if context is None or not isinstance(context.source, TableSource):
        return {name: dict(found) for name, found in audit.moved.items()}
    source = context.source
    columns = reacher(source.model).moved
    result: dict[str, dict[int, list[list[Any]]]] = {}
    for name, rows in audit.rows.items():
        at = np.flatnonzero((rows.counts.witness >= 0) & ~audit._already(rows.prediction)) if len(rows.counts) else np.zeros(0, dtype=np.intp)
        steps: dict[int, list[list[Any]]] = {int(i): [] for i in at}
        if len(at) and rows.counts.reached.shape[1]:
            reached, starts = audit.reached(at, model=name), source.values[np.ix_(rows.place[at], columns)]
            for i, j in np.argwhere((reached != starts) & ~(np.isnan(reached) & np.isnan(starts))).tolist():
                feature = source.model.features[columns[j]]
                steps[int(at[i])].append([feature.name, _shown(feature, starts[i, j]), _shown(feature, reached[i, j])])
        result[name] = steps
    return result


def _shown(feature: Feature, value: float) -> Any:
    """Return a number inside budge as the caller knows it."""
    if feature.levels is not None and not np.isnan(value):
        return feature.levels[int(value)]
    return int(value) if feature.discrete and not np.isnan(value) else float(value)


def population_of(audit: Audit, people: Any) -> Any:
    """Return who was asked about: in words, or a mask of those who are in the run."""
    said = audit.info["population"]
    if not said.startswith(MASK):
        return said
    chosen = np.zeros(len(people) if isinstance(people, list | tuple) else len(table(people)), dtype=bool)
    for rows in audit.rows.values():
        chosen[rows.place] = True
    return chosen


def replay(audit: Audit, model: Any = None, X: Any = None, im: Any = None, *, target: Any = None) -> Audit:
    """Run the same design once more; other people, specs or models are an error before anything is asked, other counts one after it."""
    from budge.audit.run import run_audit

    context = audit.context
    if context is None and (model is None or X is None):
        raise InputError("a loaded run has no model and no people at hand", where="replay", remedy="pass model and X")
    if model is None:
        assert context is not None
        model = dict(context.predictors)
    elif not isinstance(model, Mapping):
        model = {audit.models[0]: model}
    if im is None:
        im = context.im if context is not None else InteractionModel.from_spec(audit.info["spec"])
    people = X if X is not None else context.X if context is not None else None
    aim = target if target is not None else audit.design.target
    if getattr(aim, "function", None) is _code or aim is _code:
        raise InputError("the target is Python code and was not saved", where="replay", remedy="pass target")
    source = make_source(im, people, audit.design.on_invalid)
    predictors = predictors_of(model, table=isinstance(source, TableSource))
    now = {
        "spec_digest": getattr(im, "digest", None), "data_digest": source.digest(), "model_digests": {name: p.digest() for name, p in predictors.items()},
    }  # fmt: skip
    for key, value in now.items():
        if value != audit.info[key]:
            raise InputError(f"the {key.replace('_', ' ')} differs", where="replay", got=value, remedy=f"the run had {audit.info[key]}")
    design = audit.design.but(target=aim, population=population_of(audit, people))
    again = run_audit(model, people, im, design, Execution())
    for name, rows in audit.rows.items():
        other = again.rows.get(name)
        if other is None or len(other.counts) != len(rows.counts):
            many = 0 if other is None else len(other.counts)
            raise InputError("the number of people differs", where="replay", got=many, remedy=f"the run had {len(rows.counts)}")
        for f in fields(Counts):
            if f.name in ("heavy", "asked", "seconds"):
                continue
            one, two = getattr(rows.counts, f.name), getattr(other.counts, f.name)
            if one.shape != two.shape or not np.array_equal(one, two, equal_nan=one.dtype.kind == "f"):
                differ = np.flatnonzero(one != two) if one.shape == two.shape and one.ndim == 1 else np.zeros(0, int)
                who = rows.index[int(differ[0])] if len(differ) else "somebody"
                raise InputError(f"{f.name} differs", where="replay", got=who, remedy="the model answers otherwise, or a library has changed")
    when = {"when": audit.info["when"], "replayed": datetime.now(UTC).isoformat(timespec="seconds")}
    kept = {key: audit.info[key] for key in ("command",) if key in audit.info}
    return replace(again, info={**again.info, **when, **kept})


def _digest(path: Path) -> str:
    return blake2b(path.read_bytes(), digest_size=16).hexdigest()


def _plain(value: Any) -> Any:
    """Return a value as JSON holds it; NaN, infinities, tuples and times by name."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, tuple):
        return {"tuple": [_plain(v) for v in value]}
    if isinstance(value, list | np.ndarray | pd.Series):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return {"float": repr(value)}
    if value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, pd.Timestamp | datetime):
        return {"time": pd.Timestamp(value).isoformat()}
    return value if isinstance(value, str | int | float | bool | None.__class__) else str(value)


def _read(value: Any) -> Any:
    if not isinstance(value, dict) or len(value) != 1:
        return value
    ((kind, content),) = value.items()
    if kind == "tuple":
        return tuple(_read(v) for v in content)
    return float(content) if kind == "float" else pd.Timestamp(content) if kind == "time" else value
