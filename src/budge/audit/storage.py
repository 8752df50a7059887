"""Saved runs: counts in one file and a JSON record beside them, written whole or not at all; `budge.audit.loading` reads them.

What is saved is what was seen (`Counts`) and what was asked (`Design`); the table and every claim are made from these again.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.audit.ask import predictors_of
from budge.audit.cases import FIELDS, as_given, kept_cases
from budge.audit.design import MASK, Execution
from budge.audit.loading import (
    COUNTS,
    FORMAT,
    PARTS,
    RECORD,
    check_record,
    digest_of,
    most_record,
    piece_files,
    read_record,
    target_was_code,
)
from budge.audit.sources import TableSource, make_source
from budge.errors import InputError, OutputExistsError, StorageError
from budge.files import make_folder, remove, write_whole
from budge.frames import table
from budge.interaction import InteractionModel
from budge.reach.reacher import reacher
from budge.stats.counts import Counts
from budge.stats.weights import Heavy

if TYPE_CHECKING:
    from budge.audit.result import Audit

__all__ = ["RECORD", "moved_of", "population_of", "replay", "save_audit", "tidy", "write_record"]

_DATA = re.compile(rf"{COUNTS.pattern}|\.(counts-|audit\.json).*\.part")
_PIECE = re.compile(r"\.?[0-9]{6,}-[0-9]+-[0-9a-f]{16}\.parquet(\.part)?")


def save_audit(audit: Audit, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Write the counts, then the record that names them by digest: with the record, and at once, the new run takes the place of an old one."""
    place = Path(folder)
    if place.exists() and not overwrite and not _free(place):
        raise OutputExistsError("exists already", where=str(place), remedy="choose another folder, or overwrite")
    counts, record = _content(audit)
    digest = digest_of(counts)
    data = place / f"counts-{digest[:16]}.npz"
    made = make_folder(place)
    try:
        write_whole(data, counts)
        write_record(place / RECORD, {**record, "files": {data.name: digest}})
    except BaseException:
        tidy(place, pieces=False, made=made)
        raise
    tidy(place)
    return place


def _free(place: Path) -> bool:
    """Return whether a folder holds nothing, or only the journal of the run itself and what a save that was killed has left."""
    return place.is_dir() and all(item.name.startswith(("journal.", ".journal.")) or _DATA.fullmatch(item.name) for item in place.iterdir())


def tidy(place: Path, *, pieces: bool = True, made: bool = False) -> None:
    """Remove the data that the record of a folder does not name: of a run that it has replaced, or of a writer that failed or was killed.

    `pieces` tells whether those of a stream are removed too, and `made` whether an empty folder is.
    """
    try:
        record = read_record(place / RECORD) if (place / RECORD).exists() else {}
        named = {place / name for name in record.get("files", ())} | set(piece_files(place, record.get("info", {})))
    except (StorageError, KeyError, TypeError, ValueError):
        return  # what it names is not known
    inside = place / PARTS
    there = [*place.iterdir(), *(inside.iterdir() if pieces and inside.is_dir() else ())]
    remove(path for path in there if path not in named and (_DATA if path.parent == place else _PIECE).fullmatch(path.name))
    for folder, empty in ((inside, pieces), (place, made)):
        if empty:
            with suppress(OSError):
                folder.rmdir()


def _content(audit: Audit) -> tuple[bytes, dict[str, Any]]:
    """Return the counts as a file, and the record."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    columns: dict[str, Any] = {}
    cases: dict[str, list[list[int]]] = {}
    for k, (name, rows) in enumerate(audit.rows.items()):
        for f in fields(Counts):
            if f.name != "heavy":
                arrays[f"{k}.{f.name}"] = getattr(rows.counts, f.name)
        for f in fields(Heavy):
            arrays[f"{k}.heavy.{f.name}"] = getattr(rows.counts.heavy, f.name)
        arrays[f"{k}.place"], arrays[f"{k}.units"] = rows.place, rows.units
        for at, case in kept_cases(audit, name).items():
            arrays |= {f"{k}.case.{at}.{part}": getattr(case, part) for part in FIELDS}
            cases.setdefault(name, []).append([at, case.least])
        columns[name] = {
            "index": _column(rows.index, f"{k}.index", arrays),
            "prediction": _column(rows.prediction, f"{k}.prediction", arrays),
            "groups": {str(c): _group(rows.groups[c], f"{k}.group.{c}", arrays) for c in rows.groups.columns},
        }
    data = io.BytesIO()
    np.savez_compressed(data, **arrays)  # type: ignore[arg-type]
    return data.getvalue(), {
        "info": dict(audit.info),
        "design": audit.design.to_dict(),
        "index_name": _plain(audit.table.index.name),
        "columns": columns,
        "moved": {name: [[at, _plain(steps)] for at, steps in found.items()] for name, found in moved_of(audit).items()},
        "cases": cases,
        "notes": [p.to_dict() for p in audit.notes],
    }


def write_record(path: Path, record: Mapping[str, Any], *, kind: str = "table") -> None:
    """Write the record of a run, with its digest; `kind` tells whether people stood in a table or came as a stream."""
    plain = {"budge": FORMAT, "kind": kind, **record, "info": _plain(dict(record["info"])), "design": _plain(record["design"])}
    body = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))  # without spaces: what every witness changes is most of a record
    digest = digest_of(body.encode())
    text = json.dumps({"digest": digest, "record": body}, ensure_ascii=False).encode()
    most, remedy = most_record(path), "give the people shorter labels, or as a stream"
    if len(text) > most:
        what = f"the record would be larger than the {most:,} bytes that are read again"
        raise InputError(what, where=str(path), got=f"{len(text):,} bytes", remedy=remedy)
    try:
        check_record(body, most)
    except ValueError as error:
        raise InputError(f"the record would not be read again: {error}", where=str(path), remedy=remedy) from None
    write_whole(path, text)


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
    whole = pd.api.types.is_integer_dtype(values.dtype) and values.hasnans  # pandas would make fractions of them
    found = _column(values.to_numpy(dtype=object) if whole else values.to_numpy(), name, arrays)
    if isinstance(values.dtype, pd.CategoricalDtype):
        found |= {"order": [_plain(v) for v in values.cat.categories.tolist()], "ordered": bool(values.cat.ordered)}
    return found


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
                steps[int(at[i])].append([feature.name, as_given(feature, starts[i, j]), as_given(feature, reached[i, j])])
        result[name] = steps
    return result



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
    if target_was_code(aim):
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
    kept = {key: audit.info[key] for key in ("command", "wording") if key in audit.info}
    return replace(again, info={**again.info, **when, **kept})


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
