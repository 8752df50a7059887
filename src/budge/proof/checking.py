"""The check of a structure against the model that it was read from: nothing is proved with a structure that failed it.

The model is asked about rows of the table, about rows at cuts and at the next number above them, and about rows with every level and with missing
values; its labels and, where it gives them, its scores or probabilities must be those of the structure.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.errors import ModelError
from budge.frames import Coding
from budge.models.predictor import Adapted, Predictor
from budge.models.reading import Reading, as_array, same_label
from budge.models.rows import match_columns
from budge.proof.encoders import Table, above, feature_of
from budge.proof.structure import Additive, Answer, BoolArray, FloatArray, IntArray, Structure, Trees, UnreadableError, codes_of

__all__ = ["check", "magnitudes"]

ROWS, CUTS, LEVELS = 2000, 2000, 2000  # rows of the table; cuts, each with two rows; rows with levels
GAPS = 30  # rows with a missing value, per column that can hold one; fewer where there are so many columns that the rows would hold more than CELLS
CELLS = 10_000_000
CHUNK = 1_000_000  # rows times trees at once
CALLS = 200  # further calls to find the rows on which a model fails
Probe = tuple[npt.NDArray[Any], npt.NDArray[Any], FloatArray]  # rows to start from, columns to change, their new values


def check(predictor: Predictor, structure: Structure, frame: pd.DataFrame) -> None:
    """Compare a structure with its model.

    Raises
    ------
    ModelError
        If they disagree by more than the structure's precision.
    """
    draw = np.random.default_rng(0)
    some = frame if len(frame) <= ROWS else frame.iloc[np.sort(draw.choice(len(frame), ROWS, replace=False))]
    table, codes = Table(structure.columns, some), codes_of(structure.columns, some)
    if _compare(predictor, structure, some, codes) is None:
        raise UnreadableError(
            "the model answers no row of the table for which the structure has scores, so that it cannot be checked"
        )
    probes = _probes(structure, table, codes, draw)
    _compare(predictor, structure, *_written(table, codes, probes))
    never, each = set(_required(structure)), int(np.clip(CELLS // codes.shape[1] ** 2, 1, GAPS))
    gaps = [
        (draw.integers(len(codes), size=each), np.full(each, j), np.full(each, np.nan))
        for j in range(codes.shape[1])
        if j not in never and _holds_missing(table, j)
    ]
    if gaps and not _compare(predictor, structure, *_written(table, codes, gaps), calls=0):
        for gap in gaps:  # some columns take no missing values
            _compare(predictor, structure, *_written(table, codes, [gap]), calls=0)


def magnitudes(structure: Structure, codes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the scores of rows and the sums of absolute contributions, (rows, scores) each."""
    if isinstance(structure, Additive):
        sizes = np.tile(np.abs(structure.const), (len(codes), 1))
        for j, column in enumerate(structure.columns):
            sizes += np.abs(structure.added(column.name, codes[:, j]))
        return structure.scores(codes), sizes
    size = max(CHUNK // max(len(structure.roots), 1), 1)
    found = []
    for start in range(0, len(codes), size):
        values = structure.value[structure.leaves(codes[start : start + size])]
        found.append((structure.const + values.sum(axis=1), np.abs(structure.const) + np.abs(values).sum(axis=1)))
    return np.concatenate([s for s, _ in found]), np.concatenate([m for _, m in found])


def _required(structure: Structure) -> list[int]:
    """Return the columns of which the structure has no score for a missing value: an `Additive` may have none."""
    if not isinstance(structure, Additive):
        return []
    used = {*structure.tables, *structure.steps, *structure.slopes} - structure.missing.keys()
    return [j for j, column in enumerate(structure.columns) if column.name in used]


def _taken(structure: Structure, codes: FloatArray) -> BoolArray:
    """Return the rows that the structure has scores for."""
    return np.asarray(~np.isnan(codes[:, _required(structure)]).any(axis=1))


def _probes(structure: Structure, table: Table, codes: FloatArray, draw: np.random.Generator) -> list[Probe]:
    """Return rows at cuts, at the next numbers above them, and with each level."""
    found: list[Probe] = []
    if isinstance(structure, Trees):
        nodes = np.flatnonzero((structure.column >= 0) & np.isfinite(structure.cut))
        if len(nodes) > CUTS:
            nodes = draw.choice(nodes, CUTS, replace=False)
        times = int(np.clip(CUTS // max(len(nodes), 1), 1, 4))  # one row may have the same answer on both sides
        start = np.concatenate([_visitors(structure, codes, draw)[nodes] for _ in range(times)])
        nodes = np.tile(nodes, times)
        column, cuts = structure.column[nodes], structure.cut[nodes]
    else:
        pairs = [
            (j, cut) for j, c in enumerate(structure.columns) if c.name in structure.steps for cut in structure.steps[c.name][0]
        ]
        column, cuts = np.array([j for j, _ in pairs], dtype=np.intp), np.array([cut for _, cut in pairs])
        start = draw.integers(len(codes), size=len(pairs))
    for j in np.unique(column).tolist():
        here = column == j
        for values in (cuts[here], above(cuts[here], table.whole(j))):
            fits = (
                np.isin(values, (0, 1))
                if getattr(table.frame.dtypes.iloc[j], "kind", "O") == "b"
                else np.ones(len(values), dtype=bool)
            )
            found.append((start[here][fits], np.full(int(fits.sum()), j), values[fits]))
    for j, listed in enumerate(structure.columns):
        if listed.levels is not None:
            values = np.tile(np.arange(len(listed.levels), dtype=float), 3 if len(listed.levels) < LEVELS // 10 else 1)[:LEVELS]
            found.append((draw.integers(len(codes), size=len(values)), np.full(len(values), j), values))
    return found


def _written(table: Table, codes: FloatArray, probes: list[Probe]) -> tuple[pd.DataFrame, FloatArray]:
    """Return probes as a table with the caller's dtypes, and as codes."""
    if not sum(len(rows) for rows, _, _ in probes):
        return table.frame.iloc[:0], codes[:0]
    rows, where, values = (np.concatenate(part) for part in zip(*probes))
    moved = codes[rows]
    moved[np.arange(len(rows)), where] = values
    changed = np.unique(where).tolist()
    features = tuple(feature_of(table.columns[j], table.whole(j)) for j in changed)
    coding = Coding(features, frozenset(feature.name for feature in features))
    return coding.decode(moved[:, changed], table.frame, rows.astype(np.intp)), moved


def _visitors(trees: Trees, codes: FloatArray, draw: np.random.Generator) -> IntArray:
    """Return for every node a drawn row that passes through it; any row where none does."""
    found = draw.integers(len(codes), size=len(trees.column))
    some = draw.permutation(len(codes))[: max(CHUNK // max(len(trees.roots), 1), 1)]
    node = np.tile(trees.roots, (len(some), 1))
    rows = np.broadcast_to(some[:, None], node.shape)
    while True:
        inner = trees.column[node] >= 0
        if not inner.any():
            return found.astype(np.intp)
        at = node[inner]
        found[at] = rows[inner]
        node[inner] = trees.below(at, codes[rows[inner], trees.column[at]])


def _holds_missing(table: Table, j: int) -> bool:
    """Return whether a missing value can be written into the column as the caller would."""
    dtype = table.frame.dtypes.iloc[j]
    if isinstance(dtype, np.dtype) and dtype.kind != "f":
        return dtype.kind == "O" and bool(table.frame.iloc[:, j].isna().any())
    return True


def _compare(
    predictor: Predictor, structure: Structure, frame: pd.DataFrame, codes: FloatArray, calls: int = CALLS
) -> bool | None:
    """Compare on some rows; return whether the model answered all of them, None where it answered none."""
    taken = _taken(structure, codes)
    if not taken.any():
        return None
    frame, codes = (frame, codes) if taken.all() else (frame[taken], codes[taken])
    outputs, has = predictor.predict_resolved(frame, max_calls=calls)
    if not has.any():
        return None
    outputs, frame, codes = np.asarray(outputs)[has], frame if has.all() else frame[has], codes[has]
    scores, sizes = magnitudes(structure, codes)
    noise = structure.precision * sizes
    reading = getattr(predictor, "reading", None) or Reading(
        output=predictor.output, ask=predictor.output, classes=predictor.classes
    )
    if structure.answer.kind != "number" and reading.output == "label" and reading.threshold is None:
        _compare_labels(predictor.name, structure.answer, reading, scores, noise, outputs, codes)
    if not isinstance(predictor, Adapted):
        if reading.output == "score" and structure.answer.kind != "argmax":
            _compare_numbers(predictor.name, structure, "score", scores, noise, outputs, codes)
        return bool(has.all())
    engine = predictor.engine
    for ask in engine.asks:
        if ask != "label" and not (structure.answer.kind == "binary" and ask == "probability" and structure.answer.link is None):
            rows = match_columns(frame, predictor.columns, width=engine.width, alias=engine.alias)
            _compare_numbers(predictor.name, structure, ask, scores, noise, as_array(engine.answer(rows, ask)), codes)
    return bool(has.all())


def _compare_labels(
    name: str,
    answer: Answer,
    reading: Reading,
    scores: FloatArray,
    noise: FloatArray,
    outputs: npt.NDArray[Any],
    codes: FloatArray,
) -> None:
    classes = reading.classes or answer.classes
    if len(classes) != len(answer.classes):
        raise UnreadableError("the classes of the model and of its structure differ in number")
    if answer.kind == "binary":
        place = (scores[:, 0] > answer.cut if answer.strict else scores[:, 0] >= answer.cut).astype(int)
        tied = np.abs(scores[:, 0] - answer.cut) <= noise[:, 0]
    else:
        place = scores.argmax(axis=1)
        top = np.sort(scores, axis=1)
        tied = top[:, -1] - top[:, -2] <= 2 * noise.max(axis=1)
    same = np.array([same_label(classes[p], output) for p, output in zip(place.tolist(), outputs.tolist())])
    bad = ~same & ~tied
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        _refuse(name, f"the label {outputs[at]!r}", f"{classes[place[at]]!r}", codes[at], int(bad.sum()), len(bad))


def _compare_numbers(
    name: str, structure: Structure, ask: str, scores: FloatArray, noise: FloatArray, outputs: npt.NDArray[Any], codes: FloatArray
) -> None:
    answer = structure.answer
    unit = 2.0**-21 if outputs.dtype == np.float32 or structure.precision > 2.0**-30 else 2.0**-42
    outputs = outputs.astype(float)
    if answer.kind == "argmax":
        if outputs.ndim != 2:
            return
        found = [scores] if ask == "score" else [scores, _softmax(scores), _shares(scores)]
        expected = min(found, key=lambda e: float(np.abs(e - outputs).max()))
        slack = 2 * noise.max(axis=1, keepdims=True) + unit * np.maximum(1.0, np.abs(outputs))
    else:
        outputs = (outputs[:, -1] if outputs.ndim == 2 else outputs)[:, None]
        link = answer.link if answer.kind == "number" or ask == "probability" else "identity"
        with np.errstate(over="ignore"):
            expected = scores if link == "identity" else np.exp(scores) if link == "exp" else 1 / (1 + np.exp(-scores))
        slack = (2 * noise if link != "exp" else 2 * noise * expected) + unit * (
            np.maximum(1.0, np.abs(outputs)) if link != "exp" else np.abs(outputs)
        )
    off = (np.abs(expected - outputs) > slack).any(axis=1)
    if off.any():
        at = int(np.flatnonzero(off)[0])
        _refuse(name, f"the {ask} {outputs[at].tolist()}", f"{expected[at].tolist()}", codes[at], int(off.sum()), len(off))


def _softmax(scores: FloatArray) -> FloatArray:
    grown = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(grown / grown.sum(axis=1, keepdims=True))


def _shares(scores: FloatArray) -> FloatArray:
    """Return the probabilities of one logistic score per class, as shares; equal ones where all round to zero."""
    with np.errstate(over="ignore"):
        found = 1 / (1 + np.exp(-scores))
    total = found.sum(axis=1, keepdims=True)
    return np.where(total > 0, found / np.where(total > 0, total, 1.0), 1 / scores.shape[1])


def _refuse(name: str, got: str, expected: str, codes: FloatArray, bad: int, rows: int) -> None:
    what = f"the structure that was read does not agree with the model on {bad} of {rows} rows"
    raise ModelError(what, where=name, got=f"{got} where the structure has {expected}, at the coded row {codes.tolist()}")
