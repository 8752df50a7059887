"""One person: their features, what they can reach, what flips the prediction, and what may be claimed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.audit.ask import answers_of, points_of
from budge.audit.recourse import Recourse
from budge.audit.result import COLUMNS, Audit, same_cell
from budge.audit.sources import Chunk, TableSource
from budge.errors import BudgeError, InputError
from budge.interaction import InteractionModel
from budge.reach.reacher import reacher
from budge.stats.counts import STATUSES
from budge.web.question import Question
from budge.web.records import error_record, plain, shown

__all__ = ["person_record", "row_record", "saved_person"]

MOST_POINTS = 200  #: points that the page lists; the nearest ones
MOST_FLIPS = 5  #: points that flip the prediction, shown change by change


def person_record(question: Question, im: InteractionModel, threshold: float, place: int) -> dict[str, Any]:
    """Return everything that the page shows of the person at a place of the table."""
    assert question.frame is not None
    if not 0 <= place < len(question.frame):
        raise InputError("nobody is at this place", where="person", got=place, remedy=f"there are {len(question.frame)} people")
    frame = question.frame.iloc[[place]]
    found = question.audit(im, threshold, [place])
    assert found.context is not None
    source = found.context.source
    assert isinstance(source, TableSource)
    status = STATUSES[int(source.status[0])]
    label = frame.index[0]
    record: dict[str, Any] = {
        "place": place,
        "label": str(label),
        "status": status,
        "models": {name: row_record(found, label, name) for name in question.models},
        "features": _features(im, frame, source),
        "extra": {str(c): shown(frame[c].iloc[0]) for c in frame.columns if c not in im.by_name},
        "broken": [p.to_dict() for p in im.broken(frame)] if status == "invalid_start" else [],
        "reach": None,
    }
    if status == "invalid_start":
        return record | {"sentence": "This person breaks the interaction model before they move: no verdict."}
    if status == "empty":
        return record | {"sentence": _clash(im, frame)}
    if found.rows[question.models[0]].counts.is_law("none")[0]:
        return record | {"status": "not_exact", "sentence": "The reachable points cannot be listed, and the audit is to list only: no verdict."}
    record["reach"] = _reach(question, im, found, source)
    for name, told in record["reach"]["models"].items():
        told["plan"] = _plan(question.plan(im, threshold, place, name))
    record["sentence"] = _sentence(record["reach"], status)
    return record


def _plan(found: Recourse) -> dict[str, Any]:
    """Return the least change that attains the target, or why there is none."""
    moves = found.actions[["feature", "from", "to"]].itertuples(index=False, name=None)
    return {
        "status": found.status, "method": found.method, "least": bool(found.least and found.least[0]),
        "moves": [{"feature": str(f), "from": shown(a), "to": shown(b)} for f, a, b in moves],
    }  # fmt: skip


def row_record(found: Audit, label: Any, model: str) -> dict[str, Any]:
    """Return the row of the audit's table, as it is."""
    row = found._row(label, model)
    return {name: shown(row[name]) for name in COLUMNS}


def _clash(im: InteractionModel, frame: pd.DataFrame) -> str:
    try:
        im.sample(frame, 1, on_invalid="keep")
    except BudgeError as error:
        return str(error)
    return "No action is feasible, not even staying."


def _features(im: InteractionModel, frame: pd.DataFrame, source: TableSource) -> list[dict[str, Any]]:
    rows = []
    for j, f in enumerate(im.features):
        low, high = (float(end) for end in f.moves(source.values[0, j])) if f.type != "fixed" else (0.0, 0.0)
        ranked = f.numeric or f.ordered
        rows.append(
            {
                "name": f.name,
                "value": shown(frame[f.name].iloc[0]),
                "moves": f.name in im.moving,
                "own": [plain(low), plain(high)] if f.actionable and ranked else None,  # what the person can do themselves, alone
                "free": f.actionable and high > low,
            }
        )
    return rows


def _reach(question: Question, im: InteractionModel, found: Audit, source: TableSource) -> dict[str, Any]:
    label, first = source.frame.index[0], question.models[0]
    chunk = points_of(found, label, first)  # the same for every model: all were asked about this person
    assert chunk.moved is not None
    total = len(chunk.rows)
    values = np.repeat(source.values, total, axis=0)
    values[:, reacher(source.model).moved] = chunk.moved.T
    exact = bool(found.rows[first].counts.is_law("exact")[0])
    far = source.distance(chunk)
    outputs, hits = {}, {}
    for name in question.models:
        answers = answers_of(found, label, name, chunk)
        own = answers.outputs
        if not answers.good.all():
            own = own.astype(object)
            own[~answers.good] = None
        outputs[name], hits[name] = own, answers.hit
    moved = [n for j, n in enumerate(f.name for f in im.features) if n in im.moving and _moves(values[:, j], source.values[0, j])]
    near = np.argsort(far, kind="stable")
    size = float(source.size[0])
    return {
        "exact": exact,
        "points": total,
        "size": None if np.isnan(size) else int(size),
        "distinct": total if exact else len(np.unique(values, axis=0)),
        "moved": [_spread(im, name, chunk, values, source, hits) for name in moved],
        "models": {name: _model(found, name, label, outputs[name], hits[name], near, chunk, values, source, moved) for name in question.models},
        "listed": _listed(chunk, near[:MOST_POINTS], moved, outputs, hits, far),
    }


def _moves(column: npt.NDArray[np.float64], start: float) -> bool:
    return bool((~np.isnan(column) & (column != start)).any())


def _spread(
    im: InteractionModel, name: str, chunk: Chunk, values: npt.NDArray[np.float64], source: TableSource, hits: Mapping[str, npt.NDArray[np.bool_]]
) -> dict[str, Any]:
    """Return where a feature goes: its lowest and highest value reached, and in what share of the points it moves."""
    j = [f.name for f in im.features].index(name)
    column, start = values[:, j], source.values[0, j]
    cells = chunk.rows[name]
    kinds, first = np.unique(column[~np.isnan(column)], return_index=True)
    places = np.flatnonzero(~np.isnan(column))[first]
    ranked = im.by_name[name].numeric or im.by_name[name].ordered
    return {
        "name": name,
        "from": shown(source.frame[name].iloc[0]),
        "values": len(kinds),
        "low": shown(cells.iloc[places[0]]) if ranked else None,
        "high": shown(cells.iloc[places[-1]]) if ranked else None,
        "levels": None if ranked else [shown(cells.iloc[p]) for p in places],
        "share": float((column != start).mean()),
        "share_of_hits": {m: float((column[h] != start).mean()) if h.any() else None for m, h in hits.items()},
    }


def _model(
    found: Audit, name: str, label: Any, outputs: npt.NDArray[Any], hit: npt.NDArray[np.bool_], near: npt.NDArray[np.intp], chunk: Chunk,
    values: npt.NDArray[np.float64], source: TableSource, moved: list[str],
) -> dict[str, Any]:  # fmt: skip
    """Return what flips one model's prediction: the audit's witness, and the nearest distinct points that do the same."""
    witness = found.change(label, model=name)
    places: list[int] = []
    seen: set[bytes] = set()
    for p in near[hit[near]].tolist():
        key = values[p].tobytes()
        if key not in seen:
            seen.add(key)
            places.append(p)
        if len(places) == MOST_FLIPS:
            break
    start = source.frame.iloc[0]
    numbers = np.asarray(outputs)
    scores = numbers.dtype.kind == "f"
    return {
        "hits": int(hit.sum()),
        "witness": [{"feature": str(f), "from": shown(a), "to": shown(b)} for f, a, b in witness.itertuples(index=False, name=None)],
        "flips": [
            [{"feature": n, "from": shown(start[n]), "to": shown(chunk.rows[n].iloc[p])} for n in moved if not same_cell(start[n], chunk.rows[n].iloc[p])]
            for p in places
        ],
        "outputs": [float(numbers.min()), float(np.median(numbers)), float(numbers.max())] if scores else None,
    }  # fmt: skip


def _listed(
    chunk: Chunk, places: npt.NDArray[np.intp], moved: list[str], outputs: Mapping[str, Any], hits: Mapping[str, Any],
    far: npt.NDArray[np.float64],
) -> dict[str, Any]:  # fmt: skip
    rows = chunk.rows.iloc[places]
    return {
        "columns": moved,
        "rows": [[shown(v) for v in rows[name]] for name in moved],  # column by column
        "outputs": {m: [shown(v) for v in np.asarray(o)[places]] for m, o in outputs.items()},
        "hits": {m: h[places].tolist() for m, h in hits.items()},
        "distance": far[places].tolist(),
        "weights": None if chunk.weights is None else chunk.weights[places].tolist(),
    }


def _sentence(reach: Mapping[str, Any], status: str) -> str:
    moved = len(reach["moved"])
    features = f"{moved} feature{'' if moved == 1 else 's'} move{'s' if moved == 1 else ''}"
    if status == "fixed":
        return "This person can reach nothing but where they are."
    if reach["exact"]:
        return f"This person can reach {reach['points']:,} point{'' if reach['points'] == 1 else 's'}, all of them listed; {features}."
    size = f" of {reach['size']:,} reachable points" if reach["size"] is not None else ""
    return f"{reach['points']:,} draws{size}, {reach['distinct']:,} of them distinct; {features}."


def saved_person(question: Question, place: int) -> dict[str, Any]:
    """Return what a saved run alone holds about a person: their rows, and what their witness changed."""
    saved = question.saved
    assert saved is not None
    labels = list(dict.fromkeys(saved.table.index))
    if not 0 <= place < len(labels):
        raise InputError("nobody is at this place", where="person", got=place, remedy=f"there are {len(labels)} people")
    label = labels[place]
    rows = {name: row_record(saved, label, name) for name in saved.models if label in saved.rows[name].index}
    reached: dict[str, Any] = {}
    for name in rows:
        if saved.rows[name].counts.witness[saved._at(label, name)] >= 0:
            steps = saved.change(label, model=name).itertuples(index=False, name=None)
            reached[name] = [{"feature": str(f), "from": shown(a), "to": shown(b)} for f, a, b in steps]
    return {"place": place, "label": str(label), "models": rows, "witness": reached, "status": "saved"}


def try_person(question: Question, im: InteractionModel, threshold: float, place: int) -> dict[str, Any]:
    """Return the person, or the error of computing them: a part that cannot be drawn holds up nobody else."""
    try:
        return {"kind": "person", **person_record(question, im, threshold, place)}
    except BudgeError as error:
        return {"kind": "person_error", "place": place, **error_record(error)}
