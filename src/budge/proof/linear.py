"""Linear models over the inputs of a model as sums over the columns of the table, and how near to a cut a score can be told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from budge.proof.encoders import Inputs, above
from budge.proof.splits import known
from budge.proof.structure import Additive, Answer, FloatArray, Structure, Trees, UnreadableError

__all__ = ["additive", "floored"]


def floored(structure: Structure, near: float) -> Structure:
    """Return the structure with a precision that covers scores this near to the cut: their probabilities may round to one number."""
    least = abs(structure.answer.cut) + float(np.abs(structure.const).min())
    if isinstance(structure, Trees):
        ends = np.flatnonzero(structure.column < 0)
        tree = np.searchsorted(structure.roots, ends, side="right") - 1
        smallest = np.full(len(structure.roots), np.inf)
        np.minimum.at(smallest, tree, np.abs(structure.value[ends]).max(axis=1))
        least += float(smallest[np.isfinite(smallest)].sum()) / structure.value.shape[1]
    return replace(structure, precision=max(structure.precision, near / max(least, near * 2.0**14)))


def additive(
    coef: FloatArray, const: FloatArray, inputs: Inputs, answer: Answer, precision: float, *, skips: bool = False
) -> Additive:
    """Return the sum ``const + Σ coef · input`` over the columns; `skips`: a missing input adds nothing, otherwise the model takes none."""
    table = inputs.table
    slopes, steps, tables, missing = {}, {}, {}, {}
    total, offsets = np.array(const, dtype=float), np.abs(const).astype(float)
    if coef.shape[1] != len(inputs.sources):
        raise UnreadableError(f"the model reads {coef.shape[1]} inputs and is given {len(inputs.sources)}")
    for j in sorted({source.column for source in inputs.sources}):
        column, reading = table.columns[j], inputs.of(j)
        weights = coef[:, reading].T

        def added(values: FloatArray, weights: FloatArray = weights) -> FloatArray:
            return np.asarray((np.nan_to_num(values, nan=0.0) if skips else values) @ weights)

        moved = np.zeros(len(total))
        if column.levels is not None:
            tables[column.name] = added(inputs.levels(j))
            if not np.isfinite(tables[column.name]).all():
                raise UnreadableError(f"a level of {column.name} becomes a missing value, which the model does not take")
        elif any(inputs.sources[k].cells for k in reading):
            if not all(inputs.sources[k].cells for k in reading):
                raise UnreadableError(f"{column.name} is both scaled and told apart by values or ranges")
            cuts = np.unique(np.concatenate([inputs.breaks(int(k)) for k in reading]))
            points = np.concatenate([cuts, above(cuts[-1:], table.whole(j))]) if len(cuts) else np.zeros(1)
            steps[column.name] = (cuts, added(known(inputs, j, reading, points)))
        else:
            if any("monotone" in inputs.sources[k].kinds for k in reading):
                raise UnreadableError(f"{column.name} is clipped by its scaler, which is not a straight line")
            held = table.frame.iloc[:, j].to_numpy(dtype=float, na_value=np.nan)
            far = float(np.nanmax(np.abs(held[np.isfinite(held)]), initial=0.0)) or 1.0
            at, end = added(inputs.values(j, np.array([0.0, far])))
            slopes[column.name], moved = (end - at) / far, at
        total, offsets = total + moved, offsets + np.abs(moved)
        gone = inputs.missing(j)
        if gone is not None and (skips or np.isfinite(gone).all()):
            missing[column.name] = added(gone[None, :])[0] - moved
    # rounding is a share of all that is added, and constants of columns may cancel in their sum
    ratio = float(np.max(offsets / np.maximum(np.abs(total), offsets * 2.0**-24), initial=1.0, where=offsets > 0))
    return Additive(table.columns, answer, total, slopes, steps, tables, missing, precision * ratio)
