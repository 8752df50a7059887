"""From trees over the inputs of a model to trees over the columns of the table.

A split on a number becomes ``value <= cut`` with the largest number that the model sends left: scalers, float32 casts and strictness are inside
that number. A split on levels becomes the set of levels that go left. A split that sends several ranges of a column left becomes several splits.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from budge.proof.encoders import Inputs, above, largest
from budge.proof.structure import Answer, BoolArray, FloatArray, IntArray, Trees, UnreadableError

__all__ = ["Codes", "Forest", "join", "known", "to_trees"]

TINY = 1.0000000180025095e-35  # LightGBM takes what is no farther from zero as zero
GROWTH, FREE = 20, 50_000  # a model may grow by this factor, or to this many nodes


@dataclass(frozen=True)
class Codes:
    """A split on a set of codes; `listed`: whether the codes of the set go left, or the others."""

    codes: frozenset[int]
    listed: bool = True


@dataclass(frozen=True)
class Forest:
    """Trees as a library holds them: flat nodes over the model's inputs, `feature` -1 at leaves.

    `single`: values are cast to float32; `strict`: a value goes left below the threshold, otherwise up to it; `absent`: a zero is a missing
    value (a sparse matrix given to XGBoost); `tiny`: numbers next to zero are zero (LightGBM).
    """

    roots: IntArray
    feature: IntArray
    threshold: FloatArray
    missing: BoolArray
    left: IntArray
    right: IntArray
    value: FloatArray
    sets: Mapping[int, Codes] = field(default_factory=dict)
    single: bool = False
    strict: bool = False
    absent: bool = False
    tiny: bool = False

    def goes_left(self, nodes: IntArray, values: FloatArray) -> BoolArray:
        """Return which values go left, value i at node i."""
        values = np.where(values == 0, np.nan, values) if self.absent else values
        found = np.where(np.isnan(values), self.missing[nodes], self.compare(nodes, values))
        for i in np.flatnonzero(np.isin(nodes, list(self.sets))) if self.sets else ():
            split = self.sets[int(nodes[i])]
            if not np.isnan(values[i]):
                found[i] = (int(values[i]) in split.codes) == split.listed
        return np.asarray(found)

    def compare(self, nodes: IntArray, values: FloatArray) -> BoolArray:
        """Return which numbers pass the threshold on the left."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self.single:
                values = values.astype(np.float32).astype(float)
            if self.tiny:
                values = np.where(np.abs(values) <= TINY, 0.0, values)
            return np.asarray(values < self.threshold[nodes] if self.strict else values <= self.threshold[nodes])


def join(trees: list[dict[str, Any]], **how: bool) -> Forest:
    """Return one forest of trees whose children are numbered from 0 each; `sets` maps nodes of a tree to their codes."""
    sizes = np.array([len(tree["feature"]) for tree in trees])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)
    shift = np.repeat(starts, sizes)
    whole = {
        name: np.concatenate([tree[name] for tree in trees])
        for name in ("feature", "threshold", "missing", "left", "right", "value")
    }
    leaf = whole["feature"] < 0
    sets = {int(start) + node: codes for tree, start in zip(trees, starts) for node, codes in tree.get("sets", {}).items()}
    return Forest(
        starts,
        whole["feature"].astype(np.intp),
        whole["threshold"].astype(float),
        whole["missing"].astype(bool),
        np.where(leaf, 0, whole["left"] + shift).astype(np.intp),
        np.where(leaf, 0, whole["right"] + shift).astype(np.intp),
        np.where(leaf[:, None], whole["value"], 0.0),
        sets,
        **how,
    )


@dataclass(frozen=True)
class _Ranges:
    """_Ranges of numbers and whether each goes left: range i ends at ends[i], the last has no end."""

    ends: FloatArray
    sides: BoolArray


def to_trees(forest: Forest, inputs: Inputs, answer: Answer, const: FloatArray, precision: float) -> Trees:
    """Return the forest over the columns of the table."""
    if forest.feature.max(initial=-1) >= len(inputs.sources):
        raise UnreadableError("the model reads more inputs than it is given")
    inner = np.flatnonzero(forest.feature >= 0)
    column = np.full(len(forest.feature), -1, dtype=np.intp)
    column[inner] = np.array([source.column for source in inputs.sources], dtype=np.intp)[forest.feature[inner]]
    cut, missing = np.full(len(column), np.nan), np.zeros(len(column), dtype=bool)
    left, right = forest.left.copy(), forest.right.copy()
    lefts: dict[int, BoolArray] = {}
    several: dict[int, _Ranges] = {}
    for j in np.unique(column[inner]).tolist():
        nodes, reading = np.flatnonzero(column == j), inputs.of(j)
        place = np.searchsorted(reading, forest.feature[nodes])
        gone = inputs.missing(j)
        if gone is not None:
            missing[nodes] = forest.goes_left(nodes, gone[place])
        if inputs.table.columns[j].levels is not None:
            values = inputs.levels(j)
            flat = forest.goes_left(np.repeat(nodes, len(values)), values[:, place].T.ravel()).reshape(len(nodes), len(values))
            lefts.update(zip(nodes.tolist(), flat))
            continue
        for k in reading[np.unique(place)].tolist():
            here = nodes[forest.feature[nodes] == k]
            if inputs.sources[k].cells or any(node in forest.sets for node in here.tolist()):
                found = _cells(forest, inputs, j, k, here)
            else:
                cuts = _cuts(forest, inputs, j, k, here)
                if not forest.absent:
                    cut[here] = cuts
                    continue
                found = _with_zero_missing(forest, inputs, j, k, here, cuts)
            for node, ranges in zip(here.tolist(), found):
                if len(ranges.ends) > 1:
                    several[node] = ranges
                elif len(ranges.ends) == 0:
                    cut[node] = np.inf if ranges.sides[0] else -np.inf
                else:
                    cut[node] = ranges.ends[0]
                    if not ranges.sides[0]:
                        left[node], right[node], missing[node] = right[node], left[node], not missing[node]
    found_trees = Trees(
        inputs.table.columns,
        answer,
        np.asarray(const, dtype=float),
        forest.roots,
        column,
        cut,
        missing,
        left,
        right,
        forest.value,
        lefts,
        precision,
    )
    return _expanded(found_trees, several) if several else found_trees


def _merged(ends: FloatArray, sides: BoolArray) -> _Ranges:
    """Return the ranges with neighbours on one side joined, and empty ones left out."""
    keep: list[float] = []
    kept_sides: list[bool] = []
    last = -np.inf
    for end, side in zip([*ends.tolist(), np.inf], sides.tolist()):
        if end <= last:  # nothing lies in it
            continue
        if kept_sides and kept_sides[-1] == side:
            keep[-1] = end
        else:
            keep.append(end)
            kept_sides.append(side)
        last = end
    return _Ranges(np.array(keep[:-1]), np.array(kept_sides, dtype=bool))


def _cuts(forest: Forest, inputs: Inputs, j: int, k: int, nodes: IntArray) -> FloatArray:
    """Return the cuts of splits on an input that grows with the column."""
    _, first, back = np.unique(forest.threshold[nodes], return_index=True, return_inverse=True)
    some, only = nodes[first], np.array([k])
    found = largest(len(some), lambda codes: forest.compare(some, inputs.values(j, codes, only)[:, 0]), inputs.table.whole(j))
    return found[back]


def _with_zero_missing(forest: Forest, inputs: Inputs, j: int, k: int, nodes: IntArray, cuts: FloatArray) -> list[_Ranges]:
    """Return the ranges of splits on an input that is missing where it is zero."""
    only, whole = np.array([k]), inputs.table.whole(j)
    below = float(largest(1, lambda codes: inputs.values(j, codes, only)[:, 0] < 0, whole)[0])
    zero = float(largest(1, lambda codes: inputs.values(j, codes, only)[:, 0] <= 0, whole)[0])
    found = []
    for cut, default in zip(cuts.tolist(), forest.missing[nodes].tolist()):
        if zero <= below:  # no number becomes zero
            found.append(_merged(np.array([cut]), np.array([True, False])))
        elif cut >= zero:
            found.append(_merged(np.array([below, zero, cut]), np.array([True, default, True, False])))
        else:
            found.append(_merged(np.array([cut, below, zero]), np.array([True, False, default, False])))
    return found


def _cells(forest: Forest, inputs: Inputs, j: int, k: int, nodes: IntArray) -> list[_Ranges]:
    """Return the ranges of splits on an input that has finitely many values."""
    whole = inputs.table.whole(j)
    if inputs.sources[k].cells:
        ends = inputs.breaks(k)
    elif inputs.sources[k].path or forest.single:
        raise UnreadableError(f"the model splits {inputs.table.columns[j].name}, a column of numbers, by sets of codes")
    else:  # the model numbers categories by what is left of a number without its fraction
        codes = np.unique([code for node in nodes.tolist() if node in forest.sets for code in forest.sets[node].codes]).astype(
            float
        )
        ends = np.unique(
            np.concatenate(
                [
                    np.where(codes == 0, -1.0, codes - 1 if whole else np.nextafter(codes, -np.inf)),
                    np.nextafter(codes + 1, -np.inf),
                ]
            )
        )
        ends = np.unique(np.floor(ends)) if whole else ends
        plain = np.array([forest.threshold[node] for node in nodes.tolist() if node not in forest.sets])
        if len(plain):
            raise UnreadableError(f"the model splits {inputs.table.columns[j].name} both by thresholds and by sets of codes")
    points = np.concatenate([ends, above(ends[-1:], whole) if len(ends) else np.zeros(1)])
    values = known(inputs, j, np.array([k]), points)[:, 0]
    found = forest.goes_left(np.repeat(nodes, len(points)), np.tile(values, len(nodes))).reshape(len(nodes), len(points))
    return [_merged(ends, sides) for sides in found]


def known(inputs: Inputs, j: int, only: IntArray, points: FloatArray) -> FloatArray:
    """Return what numbers become; for one that the preprocessing refuses, what the next accepted one becomes: no model answers there."""
    try:
        return inputs.values(j, points, only)
    except ValueError:
        found: dict[int, FloatArray] = {}
        for i, point in enumerate(points):
            with contextlib.suppress(ValueError):
                found[i] = inputs.values(j, np.array([point]), only)[0]
    if not found:
        raise UnreadableError(f"the preprocessing refuses every number of {inputs.table.columns[j].name}")
    accepted = np.array(list(found))
    nearest = np.minimum(np.searchsorted(accepted, np.arange(len(points))), len(accepted) - 1)
    return np.array([found[int(i)] for i in accepted[nearest]])


def _expanded(trees: Trees, several: Mapping[int, _Ranges]) -> Trees:
    """Return trees in which splits into several ranges are chains of splits; what hangs below a range is copied."""
    limit = max(GROWTH * len(trees.column), FREE)
    made: list[tuple[int, float, bool, int, int, int]] = []  # column, cut, missing, left, right, the node that it stands for
    State = dict[int, tuple[float, float, bool]]  # per column: above this, up to this, and whether missing values arrive

    def add(column: int, cut: float, gone: bool, node: int) -> int:
        if len(made) >= limit:
            raise UnreadableError(
                "zeros that a sparse matrix leaves out, or values told apart, make the trees too large; dense output helps (sparse_threshold=0)"
            )
        made.append((column, cut, gone, 0, 0, node))
        return len(made) - 1

    def child(at: int, node: int, state: State, side: int) -> None:
        new = build(node, state)
        column, cut, gone, left, right, stands = made[at]
        made[at] = (column, cut, gone, new, right, stands) if side == 0 else (column, cut, gone, left, new, stands)

    def build(node: int, state: State) -> int:
        j = int(trees.column[node])
        if j < 0:
            return add(-1, np.nan, False, node)
        if node in trees.lefts:
            at = add(j, np.nan, bool(trees.missing[node]), node)
            child(at, int(trees.left[node]), state, 0)
            child(at, int(trees.right[node]), state, 1)
            return at
        ranges = several.get(node) or _Ranges(trees.cut[[node]], np.array([True, False]))
        low, high, arrives = state.get(j, (-np.inf, np.inf, True))
        kept = [
            (max(low, a), min(high, b), s)
            for a, b, s in zip([-np.inf, *ranges.ends], [*ranges.ends, np.inf], ranges.sides)
            if max(low, a) < min(high, b)
        ]
        if not kept:  # missing values alone arrive
            return build(int(trees.left[node] if trees.missing[node] else trees.right[node]), state)
        return chain(node, j, kept, state, bool(arrives))

    def chain(node: int, j: int, kept: list[tuple[float, float, bool]], state: State, arrives: bool) -> int:
        (low, high, side), rest, goes = kept[0], kept[1:], bool(trees.missing[node])
        below = int(trees.left[node] if side else trees.right[node])
        if not rest:
            if not arrives or side == goes:
                return build(below, {**state, j: (low, high, arrives)})
            at = add(j, np.inf, False, node)  # every number goes on, a missing value goes the other way
            child(at, below, {**state, j: (low, high, False)}, 0)
            child(at, int(trees.left[node] if goes else trees.right[node]), {**state, j: (low, low, True)}, 1)
            return at
        at = add(j, high, arrives and side == goes, node)
        child(at, below, {**state, j: (low, high, arrives and side == goes)}, 0)
        new = chain(node, j, rest, state, arrives and side != goes)
        made[at] = (*made[at][:4], new, node)
        return at

    roots = np.array([build(int(root), {}) for root in trees.roots], dtype=np.intp)
    columns = list(zip(*made))
    stands = np.array(columns[5], dtype=np.intp)
    return Trees(
        trees.columns, trees.answer, trees.const, roots, np.array(columns[0], dtype=np.intp), np.array(columns[1], dtype=float),
        np.array(columns[2], dtype=bool), np.array(columns[3], dtype=np.intp), np.array(columns[4], dtype=np.intp), trees.value[stands],
        {i: trees.lefts[node] for i, node in enumerate(columns[5]) if node in trees.lefts}, trees.precision,
    )  # fmt: skip
