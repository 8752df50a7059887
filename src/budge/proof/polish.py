"""Plans without a proof: the cheapest points of a listed set, and the best plan that polishing draws finds for any model; the digits of real plans.

A polished plan is feasible, was asked of the model, and no single feature of it can be reverted. It is the best found, not the least possible.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import combinations

import numpy as np
import numpy.typing as npt

from budge.interaction import InteractionModel
from budge.proof.costs import Cost

__all__ = ["Polished", "cheapest", "feasible_from", "in_few_digits", "polish", "put_back"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
Judge = Callable[[FloatArray], BoolArray]
STEPS = 32  # of a line towards the start
BISECTIONS = 12  # of a real number: it ends within 1/100,000 of its change
MOST_PAIRS = 400  # of features that are reverted together, in one pass
FEW = 32  # of more columns that have moved, blocks are reverted before single ones
LARGEST = 2**62
FEWEST = 3  # significant digits of a real number in a plan
MOST = 15  # the same: more are the number itself


@dataclass(frozen=True)
class Polished:
    """The best plan found, as a coded row; None where no draw attains the target. `asked` rows were asked of the model."""

    point: FloatArray | None
    asked: int


def feasible_from(im: InteractionModel, start: FloatArray, columns: Sequence[str] | None = None) -> Judge:
    """Return the function that tells which coded rows are feasible from a start: `InteractionModel.feasible` without its tables.

    `columns` names the columns of the rows, the model's features if not given. Other columns do not move, and no effect is drawn.
    """
    names = [f.name for f in im.features] if columns is None else list(columns)
    place = {name: j for j, name in enumerate(names)}
    others = [j for j, name in enumerate(names) if name not in im.by_name]
    columns_of = [[place[name] for name in part.names] for part in im.parts]

    def possible(k: int, changes: FloatArray) -> BoolArray:
        part, own = im.parts[k], columns_of[k]
        found = part.feasible(dict(zip(part.names, start[own])), dict(zip(part.names, changes.T)))
        return np.broadcast_to(found, (len(changes),))

    @functools.cache
    def stays(k: int) -> bool:
        return bool(possible(k, np.zeros((1, len(columns_of[k]))))[0])

    def feasible(points: FloatArray) -> BoolArray:
        changes = np.where(np.isnan(points) & np.isnan(start), 0.0, points - start)
        good = np.asarray((changes[:, others] == 0).all(axis=1))
        for k, own in enumerate(columns_of):
            moves = (changes[:, own] != 0).any(axis=1)
            if not moves.all():
                good &= moves | stays(k)
            if moves.any():
                good[moves] &= possible(k, changes[np.ix_(moves, own)])
        return good

    return feasible


def put_back(point: FloatArray, start: FloatArray, sets_of: Callable[[FloatArray], list[list[int]]], good: Judge, cost: Cost) -> FloatArray:
    """Return the point with one set of columns after the other put back, the cheapest result first, until no result is good."""
    while True:
        sets = sets_of(point)
        tries = np.tile(point, (len(sets), 1))
        for row, columns in zip(tries, sets):
            row[columns] = start[columns]
        left = tries[good(tries)] if len(sets) else tries
        if not len(left):
            return point
        point = left[cost.order(left, start)[0]]


def in_few_digits(point: FloatArray, start: FloatArray, real: BoolArray, good: Judge, cost: Cost, dearer: float) -> FloatArray:
    """Return the point with its moved real numbers in as few digits as leave it good.

    Numbers are rounded away from the start, one column after the other. The result costs at most `dearer` more than the point, and no single column of it
    can be put back; without such a result, the point itself is returned.
    """
    columns = np.flatnonzero(cost.moved(point[None], start)[0] & real & np.isfinite(start))
    found, price = point, cost.main(point[None], start)[0]
    for i, j in enumerate(columns.tolist(), start=1):
        values = _rounded(float(found[j]), up=bool(found[j] > start[j]))
        tries = np.tile(found, (len(values), 1))
        tries[:, j] = values
        tries = tries[cost.main(tries, start) - price <= dearer * i / len(columns)]
        passed = good(tries)
        if passed.any():
            found = tries[np.argmax(passed)]
    if found is point:
        return point
    moved = np.flatnonzero(cost.moved(found[None], start)[0])
    back = np.tile(found, (len(moved), 1))
    back[np.arange(len(moved)), moved] = start[moved]
    return point if good(back).any() else found


def _rounded(value: float, up: bool) -> list[float]:
    """Return a number rounded up or down, in few digits first; only what has fewer digits than the number."""
    exact = Decimal(repr(value))
    ends = [exact.adjusted() - digits + 1 for digits in range(FEWEST, MOST + 1)]
    exponent = exact.normalize().as_tuple().exponent
    units = [Decimal(1).scaleb(end) for end in ends if isinstance(exponent, int) and end > exponent]
    return [float((exact / unit).to_integral_value(ROUND_CEILING if up else ROUND_FLOOR) * unit) for unit in units]


def polish(
    start: FloatArray,
    hits: FloatArray,
    ask: Judge,
    feasible: Judge,
    cost: Cost,
    *,
    whole: Sequence[bool],
    listed: Sequence[bool] | None = None,
    parts: Sequence[Sequence[int]] = (),
    rounds: int = 3,
    starts: int = 5,
) -> Polished:
    """Return the best plan that is found from draws which attain the target.

    Parameters
    ----------
    start, hits
        The person's coded row, and coded rows that attain the target.
    ask, feasible
        Which coded rows attain the target, by the model; which of them can be reached.
    cost
        What a plan costs.
    whole, listed
        Which columns take whole numbers only, and which take levels (the cost's own if not given): levels are reverted, never moved part of the way.
    parts
        Columns that constraints couple: these are also reverted in pairs and all together, and moved together.
    rounds, starts
        How often reverts and line searches alternate, from how many hits.
    """
    start, hits = np.asarray(start, dtype=float), np.unique(np.asarray(hits, dtype=float).reshape(-1, len(start)), axis=0)
    search = _Search(start, ask, feasible, cost, np.asarray(whole, dtype=bool), cost.listed if listed is None else np.asarray(listed, dtype=bool), parts)
    best: FloatArray | None = None
    begun = 0
    for place in cost.order(hits, start).tolist():
        if begun == starts:
            break
        if not search.good(hits[[place]])[0]:
            continue
        begun += 1
        found = search.from_hit(hits[place], rounds)
        if best is None or cost.compare(found, best, start) < 0:
            best = found
    return Polished(best, search.asked)


class _Search:
    """Reverts and line searches of one person."""

    def __init__(
        self, start: FloatArray, ask: Judge, feasible: Judge, cost: Cost, whole: BoolArray, listed: BoolArray, parts: Sequence[Sequence[int]]
    ) -> None:
        self.start, self.ask, self.feasible, self.cost = start, ask, feasible, cost
        self.whole, self.listed, self.parts = whole, listed, [list(part) for part in parts if len(part) > 1]
        self.part_of = {j: part[0] for part in self.parts for j in part}
        self.asked = 0

    def good(self, points: FloatArray) -> BoolArray:
        """Return which points are feasible and attain the target; only feasible ones are asked."""
        good = np.array(self.feasible(points), dtype=bool) if len(points) else np.zeros(0, dtype=bool)
        some = np.flatnonzero(good)
        if len(some):
            self.asked += len(some)
            good[some] = np.asarray(self.ask(points[some]), dtype=bool)
        return good

    def from_hit(self, point: FloatArray, rounds: int) -> FloatArray:
        """Return what is left of a hit after so many rounds, and after all reverts that are then open."""
        for _ in range(rounds):
            reverted = self._reverted(point)
            before, point = point, self._nearer(reverted)
            one, other = self.cost.values(np.stack([before, point]), self.start)
            if np.allclose(one, other, rtol=1e-4, atol=0.0):
                break
        return self._reverted(point)

    def _moved(self, point: FloatArray) -> list[int]:
        return [int(j) for j in np.flatnonzero(self.cost.moved(point[None, :], self.start)[0])]

    def _in_parts(self, point: FloatArray) -> list[int]:
        """Return the columns that have moved, those of one part side by side."""
        return sorted(self._moved(point), key=lambda j: (self.part_of.get(j, j), j))

    def _groups(self, point: FloatArray) -> Iterator[list[int]]:
        """Yield the columns of each coupled part that have moved, where there are several."""
        moved = set(self._moved(point))
        for part in self.parts:
            mine = [j for j in part if j in moved]
            if len(mine) > 1:
                yield mine

    def _reverted(self, point: FloatArray) -> FloatArray:
        """Return the point with every set of columns put back that the target does not need; of many columns, halves, quarters and so on first."""
        moved = self._in_parts(point)
        size = len(moved)
        while size > FEW and len(moved) > FEW:
            size = -(-min(size, len(moved)) // 2)
            for at in range(0, len(moved), size):
                tried = point.copy()
                tried[moved[at : at + size]] = self.start[moved[at : at + size]]
                if self.good(tried[None, :])[0]:
                    point = tried
            moved = self._in_parts(point)
        return put_back(point, self.start, self._sets, self.good, self.cost)

    def _sets(self, point: FloatArray) -> list[list[int]]:
        """Return the columns that may be put back together: each by itself, and pairs and all of a coupled part."""
        sets = [[j] for j in self._moved(point)]
        for group in self._groups(point):
            sets += [list(pair) for pair in combinations(group, 2)][:MOST_PAIRS]
            if len(group) > 2:
                sets.append(group)
        return sets

    def _nearer(self, point: FloatArray) -> FloatArray:
        """Return the point with columns moved towards the start as far as the target stays attained: one by one, the dearest first, then part by part."""
        moved = [j for j in self._moved(point) if not self.listed[j]]
        single = np.tile(self.start, (len(moved), 1))
        single[np.arange(len(moved)), moved] = point[moved]
        lines = [[moved[i]] for i in self.cost.order(single, self.start)[::-1].tolist()]
        lines += [[j for j in group if not self.listed[j]] for group in self._groups(point)]
        for columns in lines:
            if columns:
                point = self._along(point, columns)
        return point

    def _at(self, point: FloatArray, columns: list[int], shares: FloatArray) -> FloatArray:
        """Return the point with some columns at shares of their change; whole numbers stay whole steps from the start."""
        tries = np.tile(point, (len(shares), 1))
        for j in columns:
            change = shares * (point[j] - self.start[j])
            tries[:, j] = self.start[j] + (np.trunc(change + np.sign(change) * 0.5) if self.whole[j] else change)
        return tries

    def _along(self, point: FloatArray, columns: list[int]) -> FloatArray:
        """Return the nearest point to the start on a line that attains the target: by a grid, then by bisection."""
        shares = np.arange(1, STEPS) / STEPS
        tries = self._at(point, columns, shares)
        fresh = (tries[:, columns] != point[columns]).any(axis=1)
        good = np.zeros(len(shares), dtype=bool)
        good[fresh] = self.good(tries[fresh])
        near, best = (float(shares[good].min()), tries[good][0]) if good.any() else (1.0, point)
        far = float(shares[shares < near].max(initial=0.0))
        worst = self._at(point, columns, np.array([far]))[0]
        gap = float(np.abs(best[columns] - worst[columns]).max())
        for _ in range(math.ceil(math.log2(max(gap, 1.0))) + 2 if self.whole[columns].all() else BISECTIONS):
            middle = (near + far) / 2
            tried = self._at(point, columns, np.array([middle]))
            if np.array_equal(tried[0, columns], best[columns]):  # the same whole number
                near = middle
            elif np.array_equal(tried[0, columns], worst[columns]):
                far = middle
            elif self.good(tried)[0]:
                near, best = middle, tried[0]
            else:
                far, worst = middle, tried[0]
        return best if self.cost.compare(best, point, self.start) < 0 else point


def cheapest(
    points: FloatArray, start: FloatArray, cost: Cost, k: int = 1, *, minimal: bool = True, groups: Sequence[Sequence[int]] = ()
) -> IntArray:
    """Return the places of the k cheapest points with different sets of moved columns, cheapest first; fewer where there are fewer sets.

    The points are all that attain the target, each once; the start itself is no plan. With `minimal`, a point is left out where
    another one is the same with a single column reverted, or with all columns of one of the `groups`.
    """
    points = np.asarray(points, dtype=float)
    moved = cost.moved(points, start)
    kept = moved.any(axis=1)
    if minimal:
        kept &= ~_revertible(points, start, moved, groups)
    places = np.flatnonzero(kept)
    places = places[cost.order(points[places], start)]
    if not len(places):
        return places
    _, first = np.unique(np.packbits(moved[places], axis=1), axis=0, return_index=True)
    return places[np.sort(first)[:k]]


def _revertible(points: FloatArray, start: FloatArray, moved: BoolArray, groups: Sequence[Sequence[int]]) -> BoolArray:
    """Return which points lead to another one by reverting a single column, or a group of them while something else still moves."""
    found = np.zeros(len(points), dtype=bool)
    columns = np.flatnonzero(moved.any(axis=0)).tolist()
    ids, home, strides, size = {}, {}, {}, 1
    for j in columns:
        values, number = np.unique(np.append(points[:, j], start[j]), return_inverse=True)
        ids[j], home[j], strides[j] = number[:-1].astype(np.int64), int(number[-1]), size
        size *= len(values)
    if size >= LARGEST:  # rows as bytes: slower, for any number of columns
        rows = {row.tobytes() for row in points + 0.0}
        for i, row in enumerate(points + 0.0):
            for back in [*([j] for j in np.flatnonzero(moved[i]).tolist()), *(list(group) for group in groups)]:
                other = row.copy()
                other[back] = start[back] + 0.0
                found[i] |= bool(moved[i, back].any()) and other.tobytes() in rows
        return found
    keys = sum((ids[j] * strides[j] for j in columns), np.zeros(len(points), dtype=np.int64))
    known = np.sort(keys)
    for back in [*([j] for j in columns), *([j for j in group if j in ids] for group in groups)]:
        mine = np.flatnonzero(moved[:, back].any(axis=1) & ~found)
        other = keys[mine] + sum(((home[j] - ids[j][mine]) * strides[j] for j in back), np.zeros(len(mine), dtype=np.int64))
        spot = np.minimum(np.searchsorted(known, other), len(known) - 1)
        found[mine] = known[spot] == other
    return found
