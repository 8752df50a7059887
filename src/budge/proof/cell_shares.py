"""The share of reachable points by cells: every column is replaced by the ranges between cuts, and the scores of every joint cell are evaluated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from budge.interaction import InteractionModel
from budge.proof.goals import Goal
from budge.proof.laws import Interval, Law, Listed, Run, laws_of
from budge.proof.share import CHUNK, MOST_ASKED, MOST_RUN, Ask, Method, Share, UnknownError, columns_of_law, counted
from budge.proof.structure import Additive, Structure, Trees
from budge.proof.sums import Counts, Sums, add_up

__all__ = ["cells_share", "in_cells"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
MOST_CELLS = 2_000_000  # joint values of all columns that are listed


def in_cells(law: Law, cuts: FloatArray | Sequence[FloatArray | None]) -> Listed:
    """Return one value for each cell that cuts leave, with its count or probability; a cell ends at its cut. No cuts (None): every value is a cell."""
    if isinstance(law, Listed):
        keys = [np.searchsorted(c, v, side="left") if c is not None else v for c, v in zip(cuts, law.values.T)]
        _, first, which = np.unique(np.stack(keys, axis=1), axis=0, return_index=True, return_inverse=True)
        sums = Sums.of(which.ravel().astype(float), law.counts)
        return Listed(law.columns, law.values[first], np.asarray(sums.filled))
    edges = np.asarray(cuts, dtype=float)
    if isinstance(law, Interval):
        edges = edges[(edges > law.low) & (edges < law.high)]
        return Listed((law.column,), np.append(edges, law.high)[:, None], law.shares(edges))
    edges = edges[edges >= law.first]
    last = np.clip(np.floor(edges - law.first), 0, law.count - 1)
    last = np.where((last < law.count - 1) & (law.first + (last + 1) <= edges), last + 1, last)  # of the values that are reached, rounding included
    last = np.where(law.first + last > edges, last - 1, last)
    ends = np.unique(np.append(last[last >= 0], law.count - 1)).astype(np.int64)
    return Listed((law.column,), np.asarray(law.first + ends, dtype=float)[:, None], np.diff(ends, prepend=-1))


def cells_share(structure: Structure, im: InteractionModel, start: FloatArray, goal: Goal, ask: Ask) -> Share:
    """Return the share by evaluating the scores of every joint cell."""
    laws = laws_of(structure.columns, im, start, [c.name for c in structure.columns if _reads(structure, c.name)])
    if laws is None:
        raise UnknownError
    cells: list[Listed] = []
    all_cuts = _cuts(structure, start, laws.moving)
    for law in laws.moving:
        cuts = [all_cuts[j] for j in columns_of_law(law)]
        if isinstance(law, Listed):
            cells.append(in_cells(law, cuts))
        elif cuts[0] is not None:
            cells.append(in_cells(law, cuts[0]))
        elif isinstance(law, Run) and law.count <= MOST_RUN:
            cells.append(law.listed())
        else:
            raise UnknownError
    shape = [len(cell.values) for cell in cells]
    if math.prod(shape) * max(1, len(structure.const) // 4) > MOST_CELLS:
        raise UnknownError
    verdict = _Verdicts(structure, start, cells, goal)
    sure, may = verdict.all()
    edge = np.flatnonzero(may & ~sure)
    asked = len(edge) if len(edge) <= MOST_ASKED else 0
    for at in range(0, asked, CHUNK):
        some = edge[at : at + CHUNK]
        sure[some] = may[some] = np.asarray(ask(verdict.points(some)), dtype=bool)
    counts = [np.asarray(cell.counts) for cell in cells]
    hits, most = (_contracted(flags, counts) for flags in (sure, may))
    total: int | float = 1
    for c in counts:
        total = total * add_up(c)
    method: Method = "list" if isinstance(structure, Additive) else "cells"
    return counted(hits, total, laws.others, method, asked, most - hits)


def _contracted(flags: BoolArray, counts: list[Counts]) -> int | float:
    """Return the number of configurations in the cells that are flagged."""
    found: Counts = flags.astype(np.int64)
    most = 1
    for c in counts[::-1]:
        total = add_up(c)
        most = most * int(total) if isinstance(total, int) else most
        found = found.reshape(-1, len(c))
        if c.dtype == np.float64 or found.dtype == np.float64:
            found = (found.astype(float) * c.astype(float)).sum(axis=1)
        elif most < 2**62:
            found = found @ c
        else:
            found = (found.astype(object) * c.astype(object)).sum(axis=1)
    only = found.ravel()[0]
    return float(only) if found.dtype == np.float64 else int(only)


def _reads(structure: Structure, name: str) -> bool:
    if isinstance(structure, Trees):
        return bool((structure.column == [c.name for c in structure.columns].index(name)).any())
    return name in structure.tables or name in structure.steps or bool(name in structure.slopes and np.any(structure.slopes[name]))


def _cuts(structure: Structure, start: FloatArray, laws: Sequence[Law]) -> dict[int, FloatArray | None]:
    """Return where the scores change along each column that moves; None where every value is on its own: levels and slopes."""
    found: dict[int, FloatArray | None] = {j: np.zeros(0) for law in laws for j in columns_of_law(law)}
    used = _tree_cuts(structure, start, laws) if isinstance(structure, Trees) else {}
    for j in found:
        column = structure.columns[j]
        if not _reads(structure, column.name):
            continue
        if column.levels is not None:
            found[j] = None
        elif isinstance(structure, Trees):
            found[j] = np.unique(sorted(used[j]))
        else:
            found[j] = structure.steps[column.name][0] if column.name in structure.steps else None
    return found


def _tree_cuts(s: Trees, start: FloatArray, laws: Sequence[Law]) -> dict[int, set[float]]:
    """Return the cuts of each column of numbers that some value within reach passes."""
    reach: dict[int, tuple[float, float]] = {}
    for law in laws:
        if isinstance(law, Listed):
            reach |= {j: (float(v.min()), float(v.max())) for j, v in zip(law.columns, law.values.T)}
        else:
            reach[law.column] = (law.first, law.first + law.count - 1) if isinstance(law, Run) else (law.low, law.high)
    used: dict[int, set[float]] = {j: set() for j in reach}
    waiting = [(root, reach) for root in s.roots.tolist()]
    while waiting:
        node, here = waiting.pop()
        j = int(s.column[node])
        if j < 0:
            continue
        low, high = here.get(j, (start[j], start[j]))
        cut, left, right = float(s.cut[node]), int(s.left[node]), int(s.right[node])
        if node in s.lefts or math.isnan(low):
            waiting += [(left, here), (right, here)]
        elif high <= cut:
            waiting.append((left, here))
        elif low > cut:
            waiting.append((right, here))
        else:
            used[j].add(cut)
            waiting += [(left, here | {j: (low, cut)}), (right, here | {j: (math.nextafter(cut, math.inf), high)})]
    return used


@dataclass(frozen=True)
class _Verdicts:
    """Which joint cells attain a goal: surely, or perhaps."""

    structure: Structure
    start: FloatArray
    cells: Sequence[Listed]
    goal: Goal

    def all(self) -> tuple[BoolArray, BoolArray]:
        size = math.prod(len(cell.values) for cell in self.cells)
        sure, may = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
        made = _tree_scores(self.structure, self.start, self.cells) if isinstance(self.structure, Trees) else None
        for at in range(0, size, CHUNK):
            some = slice(at, min(size, at + CHUNK))
            if made is not None:
                scores, noise = made[0][some], made[1]
            else:
                scores, noise = self._added(self.points(np.arange(some.start, some.stop)))
            for alternative in self.goal:
                good, perhaps = np.ones(len(scores), dtype=bool), np.ones(len(scores), dtype=bool)
                for c in alternative:
                    off = c.slack + noise @ np.abs(c.weights) + 8 * len(c.weights) * 2.0**-52 * abs(c.bound)
                    reached = scores @ c.weights - c.bound
                    good &= reached > off
                    perhaps &= reached >= -off
                sure[some] |= good
                may[some] |= perhaps
        return sure, may

    def points(self, numbers: IntArray) -> FloatArray:
        """Return one coded row of each joint cell."""
        points = np.tile(self.start, (len(numbers), 1))
        for cell in self.cells[::-1]:
            numbers, pick = np.divmod(numbers, len(cell.values))
            points[:, list(cell.columns)] = cell.values[pick]
        return points

    def _added(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the scores of rows under an additive structure, and how far each may be off by rounding here and in the model."""
        s = self.structure
        assert isinstance(s, Additive)
        scores, size = np.tile(s.const, (len(points), 1)), np.tile(np.abs(s.const), (len(points), 1))
        for j, column in enumerate(s.columns):
            added = s.added(column.name, points[:, j])
            scores, size = scores + added, size + np.abs(added)
        return scores, np.asarray(size * (s.precision + (len(s.columns) + 8) * 2.0**-52))


def _tree_scores(s: Trees, start: FloatArray, cells: Sequence[Listed]) -> tuple[FloatArray, FloatArray]:
    """Return the scores of all joint cells, (cells, scores), and how far they may be off by rounding here and in the model.

    A leaf holds a product of sets of cells, one per law: its value is added to all of them at once. Leaves that are not reached are never visited.
    """
    axis = {j: (i, k) for i, cell in enumerate(cells) for k, j in enumerate(cell.columns)}
    total = np.tile(np.asarray(s.const, dtype=float), (*(len(cell.values) for cell in cells), 1))
    size = np.abs(np.asarray(s.const, dtype=float))

    def goes_left(node: int, values: FloatArray) -> BoolArray:
        gone = np.isnan(values)
        if node in s.lefts:
            left = s.lefts[node][np.where(gone, 0.0, values).astype(np.intp)]
        else:
            left = values <= s.cut[node]
        return np.where(gone, s.missing[node], left)

    for root in s.roots.tolist():
        largest = np.zeros_like(size)
        waiting = [(root, tuple(np.ones(len(cell.values), dtype=bool) for cell in cells))]
        while waiting:
            node, inside = waiting.pop()
            j = int(s.column[node])
            if j < 0:
                largest = np.maximum(largest, np.abs(s.value[node]))
                _add_to(total, inside, s.value[node])
            elif j not in axis:
                waiting.append((int((s.left if goes_left(node, start[[j]])[0] else s.right)[node]), inside))
            else:
                i, k = axis[j]
                left = goes_left(node, cells[i].values[:, k])
                for child, mask in ((s.left[node], inside[i] & left), (s.right[node], inside[i] & ~left)):
                    if mask.any():
                        waiting.append((int(child), (*inside[:i], mask, *inside[i + 1 :])))
        size = size + largest
    return total.reshape(-1, total.shape[-1]), np.asarray(size * (s.precision + (len(s.roots) + 8) * 2.0**-52))


def _add_to(total: FloatArray, inside: Sequence[BoolArray], value: FloatArray) -> None:
    """Add a value to the cells of a product of sets: by slices where all sets are ranges."""
    places = [np.flatnonzero(mask) for mask in inside]
    if all(int(at[-1] - at[0]) + 1 == len(at) for at in places):
        total[tuple(slice(int(at[0]), int(at[-1]) + 1) for at in places)] += value
    else:
        total[np.ix_(*places)] += value
