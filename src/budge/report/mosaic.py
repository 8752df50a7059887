"""One person's points as a table: a cell per combination of what decides the outcome, and nothing else.

Features that move together are one axis; neighbouring levels that make no difference are merged; axes that change nothing are left out.
Where all points are listed this is exact: merged levels never hide a point whose outcome differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

__all__ = ["Axis", "Cell", "Mosaic", "axes_of", "mosaic"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.intp]
MOST_CELLS, MOST_ACROSS, BINS = 16, 4, 5
MOST_GAPS, MOST_TENSOR = 8, 1_000_000  # combinations of levels per one that occurs, and of all axes
NEAR, MOST_NEAR = 0.05, 3  # of the range of outputs, a difference that makes none; axes of a table of outputs


@dataclass(frozen=True)
class Axis:
    """Features that move together: the joint values that occur, in order, and which of them each point has."""

    columns: tuple[int, ...]
    levels: FloatArray  # one row per level; for ranges the lower and upper end of a single column
    at: IntArray  # of each point
    start: int  # the level of the person now; -1 where no point has it
    ranges: bool = False

    def merged(self, groups: Sequence[Sequence[int]]) -> IntArray:
        """Return the group of each point."""
        place = np.empty(len(self.levels), dtype=np.intp)
        for k, group in enumerate(groups):
            place[list(group)] = k
        return place[self.at]


@dataclass(frozen=True)
class Cell:
    """Points of one combination: their number, their share of all, and the share of them that attain the target."""

    points: int
    share: float
    hits: float
    now: bool
    least: bool
    best: float = np.nan  # the highest output, where outputs are given


@dataclass(frozen=True)
class Mosaic:
    """Rows and columns of a table by axis, the groups of levels on each, and one cell per combination."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    groups: dict[int, list[list[int]]]
    cells: dict[tuple[int, ...], Cell]  # by group on the axes of rows, then of columns; combinations without a point are left out
    idle: tuple[int, ...]  # axes that change nothing
    cut: tuple[int, ...]  # axes that decide within a cell and have no room

    @property
    def across(self) -> list[tuple[int, ...]]:
        """The combinations of groups from left to right."""
        return list(product(*(range(len(self.groups[k])) for k in self.columns)))

    @property
    def down(self) -> list[tuple[int, ...]]:
        """The combinations of groups from top to bottom."""
        return list(product(*(range(len(self.groups[k])) for k in self.rows)))


def axes_of(values: FloatArray, start: FloatArray, parts: Sequence[Sequence[int]], whole: Sequence[bool], *, listed: bool) -> list[Axis]:
    """Return the axes of some points (rows of `values`): one per feature where a part's features combine rather freely, one for dummies that do not.

    `whole` tells for each column whether its values are levels of their own; the values of others are put into ranges, as those of drawn points
    with many values are.
    """
    found: list[Axis] = []
    for part in parts:
        moving = [j for j in part if len(np.unique(values[:, j])) > 1]  # what is the same at every point tells none of them apart
        if not moving:
            continue
        if not listed or any(not whole[j] for j in moving):
            found += [_axis(values, start, (j,)) if whole[j] and _few(values[:, j]) else _ranges(values, start, j) for j in moving]
            continue
        free = _identifying(values, moving)
        sizes = [len(np.unique(values[:, j])) for j in free]
        levels = len(np.unique(values[:, free], axis=0))
        dummies = set(np.unique(values[:, free]).tolist()) <= {0.0, 1.0}
        apart = np.prod(sizes, dtype=float) <= levels * (1 if dummies else MOST_GAPS)
        found += [_axis(values, start, (j,)) for j in free] if apart else [_axis(values, start, tuple(free))]
    return found


def _few(column: FloatArray) -> bool:
    """Return whether the values of drawn points are few enough to be levels of their own: not as many as there are points."""
    levels = len(np.unique(column))
    return levels <= BINS or (levels <= 12 and 2 * levels <= len(column))


def _identifying(values: FloatArray, columns: list[int]) -> list[int]:
    """Return columns that tell the joint values apart: one that follows from the others is left out, the last first."""
    kept = list(columns)
    whole = len(np.unique(values[:, kept], axis=0))
    for j in sorted(columns, key=lambda j: -len(np.unique(values[:, j]))):
        rest = [k for k in kept if k != j]
        if rest and len(np.unique(values[:, rest], axis=0)) == whole:
            kept = rest
    return kept


def _axis(values: FloatArray, start: FloatArray, columns: tuple[int, ...]) -> Axis:
    levels, at = np.unique(values[:, list(columns)], axis=0, return_inverse=True)
    same = np.flatnonzero((levels == start[list(columns)]).all(axis=1))
    return Axis(columns, levels, at.reshape(-1).astype(np.intp), int(same[0]) if len(same) else -1)


def _ranges(values: FloatArray, start: FloatArray, j: int) -> Axis:
    """Return ranges of a column with about as many points each."""
    column = values[:, j]
    edges = np.unique(np.quantile(column, np.linspace(0, 1, BINS + 1), method="inverted_cdf"))
    if len(edges) < 2:
        return _axis(values, start, (j,))
    levels = np.stack([edges[:-1], edges[1:]], axis=1)
    return Axis((j,), levels, _range_at(levels, column), int(_range_at(levels, start[[j]])[0]), ranges=True)


def _range_at(levels: FloatArray, values: FloatArray) -> IntArray:
    """Return the range in which values lie, on an edge the upper one; -1 where there is none."""
    at = np.clip(np.searchsorted(levels[:, 0], values, side="right") - 1, 0, len(levels) - 1)
    return np.where((values >= levels[0, 0]) & (values <= levels[-1, 1]), at, -1).astype(np.intp)


def mosaic(
    axes: Sequence[Axis], hit: BoolArray, weights: FloatArray, least: FloatArray | None = None, *, listed: bool = True, outputs: FloatArray | None = None,
    most: int = MOST_CELLS,
) -> Mosaic:  # fmt: skip
    """Return the table: axes are taken while something is left undecided within cells and there is room.

    `least` are the values of the least change, if one is known. Levels are merged only where all points are `listed`. Where no point attains the target
    or all do, `outputs` (higher is nearer) decide in the place of hits: levels are merged that change them little, and few axes are taken.
    """
    sizes = [len(axis.levels) for axis in axes]
    close = outputs is not None
    outcome = np.asarray(hit, dtype=float) if outputs is None else outputs
    near = NEAR * float(np.ptp(outcome)) if close and len(outcome) else 0.0
    single = listed and bool(axes) and np.prod(sizes, dtype=float) <= MOST_TENSOR and len(np.unique(_codes(axes, range(len(axes))))) == len(hit)
    groups = {k: [[i] for i in range(size)] for k, size in enumerate(sizes)}
    if single:
        tensor = np.full(sizes, np.nan)  # where there is no point
        tensor[tuple(axis.at for axis in axes)] = outcome
        for k in groups:  # one after the other: what two axes leave open together is not merged on both
            groups[k], tensor = _merge(tensor, k, near)
    alive = [k for k in groups if len(groups[k]) > 1]
    idle = tuple(k for k in groups if len(groups[k]) == 1)
    chosen: list[int] = []
    merged = {k: axes[k].merged(groups[k]) for k in alive}
    while alive and _left([merged[k] for k in chosen], outcome, weights) > 1e-12 and not (close and len(chosen) == MOST_NEAR):
        fitting = [k for k in alive if np.prod([len(groups[j]) for j in (*chosen, k)]) <= most]
        if not fitting:
            break
        best = min(fitting, key=lambda k: (round(_left([merged[j] for j in (*chosen, k)], outcome, weights), 9), len(groups[k]), k))
        alive.remove(best)
        chosen.append(best)
    rows: list[int] = []
    columns: list[int] = []
    for i, k in enumerate(chosen):
        wide = int(np.prod([len(groups[j]) for j in columns], initial=1)) * len(groups[k])
        (columns if i % 2 == 1 and wide <= MOST_ACROSS else rows).append(k)
    if rows and not columns and len(groups[rows[-1]]) <= MOST_ACROSS + 1:
        columns.append(rows.pop())
    order = (*rows, *columns)
    left = _left([merged[k] for k in chosen], outcome, weights) > 1e-12
    return Mosaic(
        tuple(rows), tuple(columns), groups, _cells(axes, groups, order, hit, weights, least, outputs), idle if left else (*idle, *alive),
        tuple(alive) if left else (),
    )  # fmt: skip


def _codes(axes: Sequence[Axis], which: Sequence[int]) -> IntArray:
    found = np.zeros(len(axes[0].at), dtype=np.intp)
    for k in which:
        found = found * len(axes[k].levels) + axes[k].at
    return found


def _merge(tensor: FloatArray, axis: int, near: float) -> tuple[list[list[int]], FloatArray]:
    """Return neighbouring levels of an axis that make no difference, whatever the other axes are, and the outcomes with these as one level."""
    slices = np.moveaxis(tensor, axis, 0)
    groups, seen = [[0]], [slices[0]]
    for i in range(1, len(slices)):
        if np.any(np.abs(seen[-1] - slices[i]) > near):  # not a number where there is no point: no difference
            groups.append([i])
            seen.append(slices[i])
        else:
            groups[-1].append(i)
            seen[-1] = np.where(np.isnan(seen[-1]), slices[i], seen[-1])
    return groups, np.stack(seen, axis=axis)


def _left(chosen: Sequence[IntArray], outcome: FloatArray, weights: FloatArray) -> float:
    """Return how much is undecided within cells: the variance of the outcome that is left."""
    code = np.zeros(len(outcome), dtype=np.intp)
    for at in chosen:
        code = code * (int(at.max(initial=0)) + 1) + at
    _, place = np.unique(code, return_inverse=True)
    place = place.reshape(-1)
    mass, total = (np.bincount(place, each) for each in (weights, weights * outcome))
    mean = np.divide(total, mass, out=np.zeros_like(total), where=mass > 0)
    return float((weights * (outcome - mean[place]) ** 2).sum())


def _cells(
    axes: Sequence[Axis], groups: dict[int, list[list[int]]], order: tuple[int, ...], hit: BoolArray, weights: FloatArray, least: FloatArray | None,
    outputs: FloatArray | None,
) -> dict[tuple[int, ...], Cell]:  # fmt: skip
    """Return the cells that have points."""
    places = [axes[k].merged(groups[k]) for k in order]
    now = tuple(next((g for g, group in enumerate(groups[k]) if axes[k].start in group), -1) for k in order)
    near = () if least is None else _cell_at(axes, groups, order, least)
    found: dict[tuple[int, ...], Cell] = {}
    keys = np.stack(places, axis=1) if places else np.zeros((len(hit), 0), dtype=np.intp)
    distinct, at = np.unique(keys, axis=0, return_inverse=True)
    at = at.reshape(-1)
    count, mass, hits = np.bincount(at), np.bincount(at, weights), np.bincount(at, weights * hit)
    best = np.full(len(distinct), -np.inf)
    np.maximum.at(best, at, -np.inf if outputs is None else outputs)
    for k, key in enumerate(map(tuple, distinct.tolist())):
        share = float(hits[k] / mass[k]) if mass[k] > 0 else 0.0
        found[key] = Cell(int(count[k]), float(mass[k]), share, key == now, bool(near) and key == near, float(best[k]) if outputs is not None else np.nan)
    return found


def _cell_at(axes: Sequence[Axis], groups: dict[int, list[list[int]]], order: tuple[int, ...], point: FloatArray) -> tuple[int, ...]:
    """Return the cell of a point; nothing where it is in none."""
    found = []
    for k in order:
        axis = axes[k]
        value = point[list(axis.columns)]
        level = _range_at(axis.levels, value) if axis.ranges else np.flatnonzero((axis.levels == value).all(axis=1))
        if not len(level) or level[0] < 0:
            return ()
        found.append(next(g for g, group in enumerate(groups[k]) if level[0] in group))
    return tuple(found)
