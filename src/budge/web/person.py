"""One person: her features, what she can reach, what flips the prediction, and what may be claimed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.audit.blocks import _far
from budge.audit.result import Audit, _same
from budge.audit.sources import Chunk, TableSource
from budge.errors import BudgeError, InputError
from budge.interaction import InteractionModel
from budge.web.question import Question
from budge.web.records import error_record, plain, shown

__all__ = ["person_record", "row_record", "saved_person"]

MOST_POINTS = 200  #: points that the page lists; the nearest ones
MOST_FLIPS = 5  #: points that flip the prediction, shown change by change
ROW = ("prediction", "status", "method", "n", "hits", "unresolved", "rho", "low", "high", "p_value", "p_adjusted", "verdict")


def person_record(question: Question, im: InteractionModel, threshold: float, place: int) -> dict[str, Any]:
    """Everything the page shows of the person at a place of the table."""
    assert question.frame is not None
    if not 0 <= place < len(question.frame):
        raise InputError("nobody stands there", where="person", got=place, remedy=f"there are {len(question.frame)} people")
    frame = question.frame.iloc[[place]]
    found = question.audit(im, threshold, [place], population="all")
    assert found.context is not None
    source = found.context.source
    assert isinstance(source, TableSource)
    status = source.status(0)
    label = frame.index[0]
    record: dict[str, Any] = {
        "place": place,
        "label": str(label),
        "models": {name: row_record(found, label, name) for name in question.models},
        "features": _features(im, frame, source),
        "extra": {str(c): shown(frame[c].iloc[0]) for c in frame.columns if c not in im.by_name},
        "broken": [p.to_dict() for p in im.broken(frame)] if status == "invalid_start" else [],
        "reach": None,
    }
    if status == "invalid_start":
        return record | {"status": status, "sentence": "She breaks the interaction model before she moves: no verdict."}
    if status == "empty":
        return record | {"status": status, "sentence": _clash(im, frame)}
    chunk, exact = _points(question, source, threshold)
    record["status"] = status
    record["reach"] = _reach(question, im, found, source, chunk, exact, threshold)
    record["sentence"] = _sentence(record["reach"], status)
    return record


def row_record(found: Audit, label: Any, model: str) -> dict[str, Any]:
    """The row of the audit's table, as it is."""
    row = found.of_model(model).loc[label]
    return {name: shown(row[name]) for name in ROW}


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
                "own": [plain(low), plain(high)] if f.actionable and ranked else None,  # what she can do herself, alone
                "free": f.actionable and high > low,
            }
        )
    return rows


def _points(question: Question, source: TableSource, threshold: float) -> tuple[Chunk, bool]:
    """Her points as the audit takes them: all where it lists them, else its very draws."""
    design = question.design(threshold)
    size = source.size(0) if design.method != "sample" else None
    if size is not None and (size <= design.exact_limit or design.method == "exact"):
        return next(iter(source.exact([0]))), True
    return next(iter(source.draws([0], design.n, design.seed, design.purpose))), False


def _reach(
    question: Question, im: InteractionModel, found: Audit, source: TableSource, chunk: Chunk, exact: bool, threshold: float
) -> dict[str, Any]:
    assert chunk.values is not None
    total = len(chunk.values)
    far = _far(source, chunk.values, np.arange(total), np.zeros(total, dtype=np.intp))
    target = question.design(threshold).target
    label = source.frame.index[0]
    outputs, hits = {}, {}
    for name, predictor in question.predictors.items():
        answers, good = predictor.predict_resolved(chunk.rows)
        answers, good = np.asarray(answers), np.asarray(good, dtype=bool)
        before = np.asarray(predictor.predict(source.frame))
        hit = np.zeros(total, dtype=bool)
        if good.any():
            hit[good] = target.hits(answers[good], np.repeat(before, int(good.sum())))
        if not good.all():
            answers = answers.astype(object)
            answers[~good] = None
        outputs[name], hits[name] = answers, hit
    moved = [n for j, n in enumerate(f.name for f in im.features) if n in im.moving and _moves(chunk.values[:, j], source.values[0, j])]
    near = np.argsort(far, kind="stable")
    return {
        "exact": exact,
        "points": total,
        "size": source.size(0),
        "distinct": total if exact else len(np.unique(chunk.values, axis=0)),
        "moved": [_spread(im, name, chunk, source, hits) for name in moved],
        "models": {name: _model(found, name, label, outputs[name], hits[name], near, chunk, source, moved) for name in question.models},
        "listed": _listed(chunk, near[:MOST_POINTS], moved, outputs, hits, far),
    }


def _moves(column: npt.NDArray[np.float64], start: float) -> bool:
    return bool((~np.isnan(column) & (column != start)).any())


def _spread(
    im: InteractionModel, name: str, chunk: Chunk, source: TableSource, hits: Mapping[str, npt.NDArray[np.bool_]]
) -> dict[str, Any]:
    """Where a feature goes: its lowest and highest value reached, and in what share of the points it moves."""
    assert chunk.values is not None
    j = [f.name for f in im.features].index(name)
    column, start = chunk.values[:, j], source.values[0, j]
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
    source: TableSource, moved: list[str],
) -> dict[str, Any]:  # fmt: skip
    """What flips one model's prediction: the audit's witness, and the nearest distinct points that do the same."""
    witness = found.change(label, model=name)
    places: list[int] = []
    seen: set[bytes] = set()
    assert chunk.values is not None
    for p in near[hit[near]].tolist():
        key = chunk.values[p].tobytes()
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
            [{"feature": n, "from": shown(start[n]), "to": shown(chunk.rows[n].iloc[p])} for n in moved if not _same(start[n], chunk.rows[n].iloc[p])]
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
        return "She can reach nothing but where she stands."
    if reach["exact"]:
        return f"She can reach {reach['points']:,} point{'' if reach['points'] == 1 else 's'}, all of them listed; {features}."
    size = f" of {reach['size']:,} reachable points" if reach["size"] is not None else ""
    return f"{reach['points']:,} draws{size}, {reach['distinct']:,} of them distinct; {features}."


def saved_person(question: Question, place: int) -> dict[str, Any]:
    """What a saved run alone tells of a person: her rows, and what her witness changed."""
    saved = question.saved
    assert saved is not None
    labels = list(dict.fromkeys(saved.table.index))
    if not 0 <= place < len(labels):
        raise InputError("nobody stands there", where="person", got=place, remedy=f"there are {len(labels)} people")
    label = labels[place]
    rows = {name: row_record(saved, label, name) for name in saved.models if label in saved.of_model(name).index}
    reached: dict[str, Any] = {}
    for name in rows:
        values = saved.witnesses.get(name, {}).get(label)
        if values is None:
            continue
        if saved.moved:
            steps = saved.change(label, model=name).itertuples(index=False, name=None)
            reached[name] = [{"feature": str(f), "from": shown(a), "to": shown(b)} for f, a, b in steps]
        elif isinstance(values, list):  # a run of an earlier version keeps only where its witnesses lie
            reached[name] = [
                {"feature": f.name, "to": shown(f.levels[int(v)] if f.levels is not None and v == v else v)}
                for f, v in zip(question.im.features, values)
                if f.name in question.im.moving
            ]
    return {"place": place, "label": str(label), "models": rows, "witness": reached, "status": "saved"}


def try_person(question: Question, im: InteractionModel, threshold: float, place: int) -> dict[str, Any]:
    """The person, or what stands in the way of computing her: a part that cannot be drawn holds up nobody else."""
    try:
        return {"kind": "person", **person_record(question, im, threshold, place)}
    except BudgeError as error:
        return {"kind": "person_error", "place": place, **error_record(error)}
