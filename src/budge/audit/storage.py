"""Saved runs: a table and a JSON file in a folder, written whole or not at all, checked when read."""

from __future__ import annotations

import json
import os
import tempfile
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from budge.audit import audit as audit_people
from budge.audit.run import MASK
from budge.audit.sources import TableSource
from budge.errors import InputError, OutputExistsError, Problem, StorageError
from budge.features import Feature
from budge.frames import table
from budge.interaction import InteractionModel
from budge.targets import from_dict

if TYPE_CHECKING:
    from budge.audit.result import Audit

__all__ = ["load_audit", "moved_of", "population_of", "replay", "save_audit"]

RECORD = "audit.json"


def save_audit(audit: Audit, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Write to a folder beside, then move it into place: nobody ever sees half a run."""
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
                for item in made.iterdir():
                    os.replace(item, place / item.name)
            else:
                os.replace(made, place)
    except OSError as error:
        raise StorageError(
            f"cannot be written: {error.strerror or error}", where=str(place), remedy="choose a folder that can be written"
        ) from error
    return place


def _only_journal(place: Path) -> bool:
    """A folder that holds nothing, or only the journal of the run itself."""
    return place.is_dir() and all(item.name.startswith("journal.") for item in place.iterdir())


def _write(audit: Audit, folder: Path) -> None:
    rows = audit.table.copy()
    kinds = {name: str(dtype) for name, dtype in rows.dtypes.items()}
    if find_spec("pyarrow") is not None:
        data = folder / "table.parquet"
        stored = rows.reset_index(names="person")
        for name in stored.columns:
            if stored[name].dtype == object:
                stored[name] = [json.dumps(_plain(v)) for v in stored[name]]
                kinds[name] = "json"
        stored.to_parquet(data, index=False)
    else:
        data = folder / "table.json"
        data.write_text(json.dumps(_plain(rows.reset_index(names="person").to_dict(orient="list"))), encoding="utf-8")
    record = {
        "budge": 1,
        "info": _plain(dict(audit.info)),
        "index_name": audit.table.index.name,
        "dtypes": kinds,
        "witnesses": {name: [[_plain(k), _plain(v)] for k, v in found.items()] for name, found in audit.witnesses.items()},
        "changes": {name: [[_plain(k), _plain(v)] for k, v in found.items()] for name, found in audit.changes.items()},
        "moved": {name: [[_plain(k), _plain(v)] for k, v in found.items()] for name, found in moved_of(audit).items()},
        "notes": [p.to_dict() for p in audit.notes],
        "files": {data.name: _digest(data)},
    }
    body = json.dumps(record, indent=1, ensure_ascii=False)
    (folder / RECORD).write_text(
        json.dumps({"digest": blake2b(body.encode(), digest_size=16).hexdigest(), "record": body}, ensure_ascii=False),
        encoding="utf-8",
    )


def load_audit(folder: str | Path) -> Audit:
    """Read a saved run."""
    from budge.audit.result import Audit

    place = Path(folder)
    path = place / RECORD
    try:
        outer = json.loads(path.read_text(encoding="utf-8"))
        body = outer["record"]
        if blake2b(body.encode(), digest_size=16).hexdigest() != outer["digest"]:
            raise StorageError("was changed after it was written: its digest differs", where=str(path))
        record = json.loads(body)
    except FileNotFoundError:
        raise StorageError("there is no saved run here", where=str(path), remedy="save one with audit.save(folder)") from None
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(f"is not a whole record of a run: {error}", where=str(path)) from None
    if record.get("budge") != 1:
        raise StorageError("was written by another version", where=str(path), got=record.get("budge"))
    rows = None
    for name, digest in record["files"].items():
        data = place / name
        if not data.exists():
            raise StorageError("is missing from the run", where=str(data))
        if _digest(data) != digest:
            raise StorageError("was changed after it was written: its digest differs", where=str(data))
        if name.endswith(".parquet"):
            rows = pd.read_parquet(data)
            for column, kind in record["dtypes"].items():
                if kind == "json":
                    rows[column] = np.array([json.loads(v) for v in rows[column]] + [None], dtype=object)[:-1]
        else:
            rows = pd.DataFrame(
                {
                    k: np.array([_read(v) for v in column] + [None], dtype=object)[:-1]
                    for k, column in json.loads(data.read_text(encoding="utf-8")).items()
                }
            )
    assert rows is not None
    index = rows.pop("person").infer_objects()
    for column, kind in record["dtypes"].items():
        if kind not in ("json", "object") and column in rows.columns:
            rows[column] = rows[column].astype(kind)
    rows.index = pd.Index(index)
    rows.index.name = record["index_name"]
    return Audit(
        rows,
        record["info"],
        {name: {_key(k): v for k, v in found} for name, found in record["witnesses"].items()},
        {name: {_key(k): v for k, v in found} for name, found in record["changes"].items()},
        tuple(Problem(**note) for note in record.get("notes", ())),  # runs saved before had neither notes nor moves
        moved={name: {_key(k): _moves(v) for k, v in found} for name, found in record.get("moved", {}).items()},
    )


def moved_of(audit: Audit) -> dict[str, dict[Any, list[list[Any]]]]:
    """What every witness changes, as (feature, from, to): computed where the people are at hand, else as it was saved."""
    context = audit.context
    if context is None or not isinstance(context.source, TableSource):
        return {name: dict(found) for name, found in audit.moved.items()}
    source = context.source
    place: dict[Any, int] = {}
    for i, label in enumerate(source.labels):
        place.setdefault(label, i)
    features = source.model.features
    result: dict[str, dict[Any, list[list[Any]]]] = {}
    for name, found in audit.witnesses.items():
        rows: dict[Any, list[list[Any]]] = {label: [] for label in found}
        if found:
            reached = np.array(list(found.values()), dtype=float)
            starts = source.values[[place[label] for label in found]]
            labels = list(found)
            for i, j in np.argwhere((reached != starts) & ~(np.isnan(reached) & np.isnan(starts))).tolist():
                rows[labels[i]].append([features[j].name, _shown(features[j], starts[i, j]), _shown(features[j], reached[i, j])])
        result[name] = rows
    return result


def _shown(feature: Feature, value: float) -> Any:
    """A number inside budge as the caller knows it."""
    if feature.levels is not None and not np.isnan(value):
        return feature.levels[int(value)]
    return int(value) if feature.discrete and not np.isnan(value) else float(value)


def _moves(saved: list[Any]) -> list[list[Any]]:
    return [[_read(cell) for cell in row] for row in saved]


def population_of(audit: Audit, people: Any) -> Any:
    """Who was asked about: in words, or those who are in the table."""
    said = audit.info["population"]
    if not said.startswith(MASK):
        return said
    asked = set(audit.table.index)
    labels = table(people).index if not isinstance(people, list | tuple) else range(len(people))
    return np.array([label in asked for label in labels], dtype=bool)


def replay(audit: Audit, model: Any = None, X: Any = None, im: Any = None) -> Audit:
    """The same audit once more; another table is an error that says what differs."""
    context = audit.context
    if context is None and (model is None or X is None):
        raise InputError("a loaded run has no model and no people at hand", where="replay", remedy="pass model and X")
    design = audit.info["design"]
    if model is None:
        assert context is not None
        model = dict(context.predictors) if len(audit.models) > 1 else next(iter(context.predictors.values()))
    if im is None:
        im = context.im if context is not None else InteractionModel.from_spec(audit.info["spec"])
    people = X if X is not None else context.X if context is not None else None
    target = from_dict(design["target"]) if "function" not in design["target"] else None
    if target is None:
        raise InputError(
            "the target is Python code and was not saved", where="replay", remedy="call budge.audit again with the target"
        )
    again = audit_people(
        model, people, im, target=target, threshold=design["threshold"], alpha=design["alpha"], claim=design["claim"],
        **({"sequential": True} if design["sequential"] else {"n": design["n"]}), seed=design["seed"], purpose=design["purpose"],
        method=design["method"], exact_limit=design["exact_limit"], adjust=design["adjust"], on_invalid=design["on_invalid"],
        how_much=design["how_much"], population=population_of(audit, people), proposal=design["proposal"], harm=audit.info["harm"],
    )  # fmt: skip
    for name in ("spec_digest", "data_digest"):
        if again.info[name] != audit.info[name]:
            raise InputError(
                f"the {name.replace('_', ' ')} differs",
                where="replay",
                got=again.info[name],
                remedy=f"the run had {audit.info[name]}",
            )
    for column in audit.table.columns:
        one, two = audit.table[column].to_numpy(), again.table[column].to_numpy()
        same = [a == b or (pd.isna(a) and pd.isna(b)) for a, b in zip(one, two)]
        if len(one) != len(two) or not all(same):
            bad = audit.table.index[int(np.argmin(same))] if len(one) == len(two) else "number of people"
            raise InputError(
                f"the column {column} differs", where="replay", got=bad, remedy="the model, the data or a library has changed"
            )
    return again


def _digest(path: Path) -> str:
    return blake2b(path.read_bytes(), digest_size=16).hexdigest()


def _plain(value: Any) -> Any:
    """As JSON holds it; NaN and infinities by name."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | np.ndarray | pd.Series):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return {"float": repr(value)}
    if value is pd.NA or value is pd.NaT:
        return None
    return value if isinstance(value, str | int | float | bool | None.__class__) else str(value)


def _read(value: Any) -> Any:
    return float(value["float"]) if isinstance(value, dict) and set(value) == {"float"} else value


def _key(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
