"""The share of reachable points that attain a target, without sampling, for a model whose structure is known.

The parts of an interaction model are drawn independently. A score that is a sum over columns is then a sum of independent contributions: all sums are listed,
or met in the middle, or bracketed on a grid. For trees every column is replaced by its cells, the ranges between cuts.
Scores so near to a bound that rounding decides are asked of the model itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
import numpy.typing as npt

from budge.interaction import InteractionModel
from budge.proof.goals import Goal
from budge.proof.laws import Interval, Law, Listed, Run, laws_of
from budge.proof.structure import Additive, Structure, Trees, UnreadableError
from budge.proof.sums import Counts, Grid, Halves, Progression, Smooth, Sums, add_up, uniform_tail

__all__ = ["Share", "exact_share"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
Ask = Callable[[FloatArray], BoolArray]
Method = Literal["list", "meet", "grid", "cells", "closed form"]
Spans = list[tuple[float, float]]  # half-open intervals of a score: disjoint, ascending
MOST_RUN = 1_000_000  # values of one whole number that are listed
MOST_CELLS = 2_000_000  # joint values of all columns that are listed
MOST_ASKED = 100_000  # points on the edge that are asked of the model
FEW = 32  # points asked for each sum, where sums are exact and points too many
CHUNK = 1 << 15
WEIGHED = 1e-12  # how exact probabilities are that come from weights
CORNERS = 20_000_000  # terms of a closed form


@dataclass(frozen=True)
class Share:
    """A probability between `low` and `high`, which are equal where it is exact.

    `hits` of `size` configurations attain the target where all are equally likely and counted; else None. `asked` points were asked of the model.
    """

    low: float
    high: float
    method: Method
    hits: int | None = None
    size: int | None = None
    asked: int = 0

    @property
    def exact(self) -> bool:
        """Whether the share is one number."""
        return self.low == self.high


def exact_share(structure: Structure, im: InteractionModel, start: FloatArray, goal: Goal, ask: Ask) -> Share | None:
    """Return the share of draws from a coded row that attain a goal; None where it cannot be computed.

    Parameters
    ----------
    structure
        The model's scores over the columns of the table.
    im
        The interaction model; its features are among the columns.
    start
        One row, coded by `codes_of`.
    goal
        When the scores attain the target.
    ask
        Which coded rows attain the target, by the model itself.
    """
    start = np.asarray(start, dtype=float)
    try:
        if not goal or any(not alternative for alternative in goal):
            return _settled(structure, im, start, bool(goal))
        line = _line(goal)
        if line is not None and isinstance(structure, Additive):
            return _Line(structure, im, start, *line).share(ask)
        return _cells_share(structure, im, start, goal, ask)
    except (UnreadableError, _UnknownError):
        return None


class _UnknownError(Exception):
    """The share cannot be computed."""


def _settled(structure: Structure, im: InteractionModel, start: FloatArray, attained: bool) -> Share | None:
    """Return the share of a goal that every score meets, or none."""
    laws = laws_of(structure.columns, im, start, ())
    if laws is None:
        return None
    size = laws.others
    return Share(float(attained), float(attained), "closed form", None if size is None else size * attained, size)


def _counted(hits: int | float, total: int | float, others: int | None, method: Method, asked: int, more: int | float = 0) -> Share:
    """Return a share from exact counts, or from probabilities; `more` may attain the target, too."""
    if isinstance(total, int) and isinstance(hits, int) and isinstance(more, int):
        low, high = (_ratio(n, total) for n in (hits, hits + more))
        size = None if others is None else total * others
        return Share(low, high, method, None if others is None or more else hits * others, size, asked)
    low, high = hits / total, (hits + more) / total
    if low == high and hits in (0, total):
        return Share(low, high, method, asked=asked)
    return Share(max(0.0, low - WEIGHED), min(1.0, high + WEIGHED), method, asked=asked)


def _ratio(n: int, total: int) -> float:
    """Return n / total, which rounding makes neither 0 nor 1: some is not none, and almost all is not all."""
    share = float(Fraction(n, total))
    return min(max(share, math.ulp(0.0)), math.nextafter(1.0, 0.0)) if 0 < n < total else share


# -- sums over columns -------------------------------------------------------------------------------------------------


def _line(goal: Goal) -> tuple[FloatArray, list[tuple[float, float, float, float]]] | None:
    """Return the one direction of scores that a goal reads, and its intervals there with the slack of each end; None where it reads several."""
    direction = goal[0][0].weights
    found = []
    for alternative in goal:
        low, low_slack, high, high_slack = -math.inf, 0.0, math.inf, 0.0
        for c in alternative:
            if np.array_equal(c.weights, direction) and c.bound >= low:
                low, low_slack = c.bound, max(c.slack, low_slack if c.bound == low else 0.0)
            elif np.array_equal(c.weights, -direction) and -c.bound <= high:
                high, high_slack = -c.bound, max(c.slack, high_slack if -c.bound == high else 0.0)
            elif not (np.array_equal(c.weights, direction) or np.array_equal(c.weights, -direction)):
                return None
            elif c.slack > (low_slack if np.array_equal(c.weights, direction) else high_slack):
                return None  # a weaker bound that is less certain: it may be the one that decides
        found.append((low, low_slack, high, high_slack))
    return direction, found


def _union(spans: Spans) -> Spans:
    found: Spans = []
    for low, high in sorted(span for span in spans if span[0] < span[1]):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return found


def _without(spans: Spans, inner: Spans) -> Spans:
    """Return what is left of spans without others that lie inside them."""
    found = []
    for low, high in spans:
        at = low
        for a, b in inner:
            if low <= a and b <= high:
                found.append((at, a))
                at = b
        found.append((at, high))
    return [span for span in found if span[0] < span[1]]


@dataclass(frozen=True)
class _Term:
    """What the columns of one law add to the score: its distinct sums, and the coded values behind them."""

    columns: tuple[int, ...]
    values: FloatArray  # (rows, columns)
    counts: Counts  # of the rows
    sums: Sums
    order: IntArray  # the rows by their sum
    begin: IntArray  # the first of each sum in `order`

    @classmethod
    def of(cls, columns: tuple[int, ...], values: FloatArray, counts: Counts, added: FloatArray) -> _Term:
        sums = Sums.of(added, counts)
        where = np.searchsorted(sums.values, added)
        order = np.argsort(where, kind="stable")
        return cls(columns, values, counts, sums, order, np.searchsorted(where[order], np.arange(len(sums) + 1)))


@dataclass(frozen=True)
class _Wide:
    """A whole number with a slope and too many values to list."""

    run: Run
    falling: bool
    sums: Progression

    def values(self, place: IntArray) -> FloatArray:
        return np.asarray(self.run.first + (self.run.count - 1 - place if self.falling else place), dtype=float)


class _Line:
    """One direction of an additive score for one person."""

    def __init__(
        self, structure: Additive, im: InteractionModel, start: FloatArray, direction: FloatArray, intervals: list[tuple[float, float, float, float]]
    ) -> None:
        self.structure, self.start, self.direction = structure, start, direction
        read = [column.name for column in structure.columns if self._matters(column.name)]
        laws = laws_of(structure.columns, im, start, read)
        if laws is None:
            raise _UnknownError
        self.others = laws.others
        self.terms: list[_Term] = []
        self.wide: list[_Wide] = []
        self.smooth: list[Smooth] = []
        self.largest = np.abs(np.asarray(structure.const, dtype=float))  # of what is added up, for each score
        self.constants = (structure.const * direction).tolist()
        moving = {j for law in laws.moving for j in _columns(law)}
        for j, column in enumerate(structure.columns):
            if j not in moving:
                self.constants += self._added(column.name, start[[j]], 0.0).tolist()
        for law in laws.moving:
            self._take(law)
        self.base = math.fsum(self.constants)
        size = math.fsum(abs(c) for c in self.constants) + math.fsum((np.abs(direction) * self.largest).tolist())
        size += max((abs(end) for low, _, high, _ in intervals for end in (low, high) if math.isfinite(end)), default=0.0)
        rounding = (4 * len(structure.columns) + 2 * len(direction) + 32) * 2.0**-52 * size  # of the additions made here
        noise = float(structure.precision * (np.abs(direction) @ self.largest)) + rounding
        if not math.isfinite(self.base + noise):
            raise _UnknownError
        ends = [((low, low_slack + noise), (high, high_slack + noise)) for low, low_slack, high, high_slack in intervals]
        sure: Spans = [(low + a, high - b) for (low, a), (high, b) in ends]
        may: Spans = [(low - a, math.nextafter(high + b, math.inf)) for (low, a), (high, b) in ends]
        self.sure, self.may = _union(sure), _union(may)

    def _matters(self, name: str) -> bool:
        s, w = self.structure, self.direction
        if name in s.tables or name in s.steps:
            added = (s.tables[name] if name in s.tables else s.steps[name][1]) @ w
            return bool((added != added[0]).any()) if len(added) else False
        return bool((s.slopes[name] * w).any()) if name in s.slopes else False

    def _added(self, name: str, values: FloatArray, also: FloatArray | float) -> FloatArray:
        added = self.structure.added(name, values)
        self.largest = self.largest + np.abs(added).max(axis=0)
        return np.asarray(added @ self.direction + also)

    def _take(self, law: Law) -> None:
        """Add the contributions of a law."""
        s = self.structure
        if isinstance(law, Listed):
            added: FloatArray | float = 0.0
            for k, j in enumerate(law.columns):
                added = self._added(s.columns[j].name, law.values[:, k], added)
            self.terms.append(_Term.of(law.columns, law.values, law.counts, np.asarray(added)))
            return
        name = s.columns[law.column].name
        if name in s.steps:
            listed = _in_cells(law, s.steps[name][0])
        elif isinstance(law, Run) and (name in s.tables or law.count <= MOST_RUN):
            listed = law.listed()
        else:
            self._sloped(law, name)
            return
        self.terms.append(_Term.of(listed.columns, listed.values, listed.counts, self._added(name, listed.values[:, 0], 0.0)))

    def _sloped(self, law: Run | Interval, name: str) -> None:
        slope = float(self.structure.slopes[name] @ self.direction)
        last = law.first + law.count - 1.0 if isinstance(law, Run) else law.high
        ends = np.array([law.first if isinstance(law, Run) else law.low, last])
        self.constants.append(float(self._added(name, ends, 0.0).min()))
        if isinstance(law, Run):
            self.wide.append(_Wide(law, slope < 0, Progression(abs(slope), law.count)))
            return
        width = abs(slope) * (law.high - law.low)
        if not width > 0:
            raise _UnknownError
        self.smooth.append(Smooth(width, law.low, law.high, slope < 0) if law.log else Smooth(width))

    # -- counting -----------------------------------------------------------------------------------------------------

    def share(self, ask: Ask) -> Share:
        """Return the share by the first way that is open."""
        parts = [term.sums for term in self.terms]
        least = self.base + math.fsum(float(p.values[0]) for p in parts)
        most = self.base + math.fsum(float(p.values[-1]) for p in parts)
        most += math.fsum(w.sums.step * (w.sums.size - 1) for w in self.wide) + math.fsum(s.width for s in self.smooth)
        room = 2.0**-50 * (abs(least) + abs(most)) * (len(parts) + 4)
        all_sure = any(low <= least - room and most + room < high for low, high in self.sure)
        if all_sure or not any(low <= most + room and least - room < high for low, high in self.may):
            return self._certain(all_sure)
        if self.smooth:
            return self._continuous(parts)
        if len(self.wide) <= 1:
            last = self.wide[0].sums if self.wide else None
            halves = Halves.of(parts, last)
            if halves is not None:
                return self._discrete(halves, ask)
        return self._gridded(parts)

    def _certain(self, attained: bool) -> Share:
        size: int | None = self.others
        for term in self.terms:
            size = None if size is None or term.counts.dtype == np.float64 else size * int(term.sums.total)
        for wide in self.wide:
            size = None if size is None else size * wide.run.count
        if self.smooth:
            size = None
        return Share(float(attained), float(attained), "closed form", None if size is None else size * attained, size)

    def _discrete(self, halves: Halves, ask: Ask) -> Share:
        known: dict[float, int | float] = {math.inf: 0, -math.inf: halves.total}

        def least(cut: float) -> int | float:
            cut -= self.base
            if cut not in known:
                known[cut] = halves.least(cut)
            return known[cut]

        sure, may = (sum(least(low) - least(high) for low, high in spans) for spans in (self.sure, self.may))
        sums = math.prod([len(p) for p in halves.parts]) * (len(halves.hay) if self.wide else 1)
        method: Method = "closed form" if self.wide else "list" if sums <= MOST_RUN else "meet"
        edge = _without(self.may, self.sure)
        asked = 0
        if may > sure:
            hits, asked = self._asked(halves, edge, may - sure, ask)
            if hits is not None:
                return _counted(sure + hits, halves.total, self.others, method, asked)
        return _counted(sure, halves.total, self.others, method, asked, may - sure)

    def _asked(self, halves: Halves, edge: Spans, number: int | float, ask: Ask) -> tuple[int | float | None, int]:
        """Return how many points on the edge attain the target, by asking the model; None where they are too many."""
        whole = isinstance(number, int)
        few = 0
        if (whole and number > MOST_ASKED) or not whole:
            few = FEW if whole and self._is_exact(halves) else 0
            if whole and not few:
                return None, 0
        places = [halves.between(low - self.base, high - self.base, MOST_ASKED) for low, high in edge]
        found = [place for place in places if place is not None]
        if len(found) < len(places):
            return None, 0
        together = tuple(np.concatenate([place[side] for place in found]) for side in range(3))
        pairs = (together[0], together[1], together[2])
        if few:
            return self._asked_by_sum(halves, pairs, ask)
        made = self._points(halves, pairs, 0)
        if made is None or len(made[1]) > MOST_ASKED:
            return None, 0
        _, points, counts = made
        hit = np.asarray(ask(points), dtype=bool) if len(points) else np.zeros(0, dtype=bool)
        return add_up(counts[hit]) if hit.any() else 0, len(points)

    def _asked_by_sum(self, halves: Halves, pairs: tuple[IntArray, IntArray, IntArray], ask: Ask) -> tuple[int | float | None, int]:
        """Ask some points of every sum: all additions are exact, so that points with one sum have one score."""
        assert isinstance(halves.hay, Sums)
        sums = halves.needles.values[pairs[0]] + halves.rest.values[pairs[1]] + halves.hay.values[pairs[2]]
        _, which = np.unique(sums, return_inverse=True)
        first = np.sort(np.concatenate([np.unique(which, return_index=True)[1], len(which) - 1 - np.unique(which[::-1], return_index=True)[1]]))
        first = np.unique(first)
        some = (pairs[0][first], pairs[1][first], pairs[2][first])
        made = self._points(halves, some, FEW)
        if made is None or len(made[1]) > 2 * MOST_ASKED:
            return None, 0
        owner, points, _ = made
        hit = np.asarray(ask(points), dtype=bool)
        of = which[first][owner]
        yes = np.bincount(of[hit], minlength=which.max() + 1)
        if ((yes > 0) & (yes < np.bincount(of, minlength=which.max() + 1))).any():
            return None, len(points)
        counts = halves.weigh(pairs)
        return add_up(counts[yes[which] > 0]) if (yes > 0).any() else 0, len(points)

    def _is_exact(self, halves: Halves) -> bool:
        """Return whether all numbers are multiples of one power of two, and so few of them that no order of addition rounds."""
        if self.wide:
            return False
        numbers = np.concatenate([*(p.values for p in halves.parts), np.array(self.constants), [self.base]])
        numbers = np.abs(numbers[numbers != 0])
        if not len(numbers):
            return True
        mantissa, exponent = np.frexp(numbers)
        bits = (mantissa * 2.0**53).astype(np.int64)
        last = exponent - 53 + np.round(np.log2((bits & -bits).astype(float))).astype(int)
        unit = 2.0 ** float(last.min())
        return bool(numbers.sum() / unit < 2.0**45)

    def _points(self, halves: Halves, pairs: tuple[IntArray, IntArray, IntArray], few: int) -> tuple[IntArray, FloatArray, Counts] | None:
        """Return the coded rows behind sums: whose sum it is, the row, and how many configurations it stands for."""
        owner = np.arange(len(pairs[0]))
        chosen: dict[int, IntArray] = {}
        sides = (0, 1) if self.wide else (0, 1, 2)
        for side in sides:
            ways = halves.choices(side, pairs[side], few)
            if ways is None:
                return None
            mine, places = ways  # of pairs; joined to what is already there
            sizes = np.bincount(mine, minlength=len(pairs[0]))
            if few:
                sizes = np.minimum(sizes, max(1, few * len(pairs[0]) // max(1, len(owner))))
            begins = np.concatenate([[0], np.cumsum(np.bincount(mine, minlength=len(pairs[0])))[:-1]])
            repeat = sizes[owner]
            if repeat.sum() > 10 * MOST_ASKED:
                return None
            inside = np.arange(repeat.sum()) - np.repeat(np.cumsum(repeat) - repeat, repeat)
            took = np.repeat(begins[owner], repeat) + inside
            chosen = {i: np.repeat(column, repeat) for i, column in chosen.items()} | {i: column[took] for i, column in places.items()}
            owner = np.repeat(owner, repeat)
        weights: Counts = np.ones(len(owner), dtype=object)
        rows: dict[int, IntArray] = {}
        for i, term in enumerate(self.terms):
            repeat = np.ones(len(owner), dtype=np.intp) if few else (term.begin[1:] - term.begin[:-1])[chosen[i]]
            if repeat.sum() > 10 * MOST_ASKED:
                return None
            inside = np.arange(repeat.sum()) - np.repeat(np.cumsum(repeat) - repeat, repeat)
            took = term.order[np.repeat(term.begin[:-1][chosen[i]], repeat) + inside]
            chosen = {k: np.repeat(column, repeat) for k, column in chosen.items()}
            rows = {k: np.repeat(column, repeat) for k, column in rows.items()} | {i: took}
            owner, weights = np.repeat(owner, repeat), np.repeat(weights, repeat) * term.counts[took].astype(object)
        points = np.tile(self.start, (len(owner), 1))
        for i, term in enumerate(self.terms):
            points[:, list(term.columns)] = term.values[rows[i]]
        for wide in self.wide:
            points[:, wide.run.column] = wide.values(pairs[2][owner])
        if any(term.counts.dtype == np.float64 for term in self.terms):
            weights = weights.astype(np.float64)
        return owner, points, weights

    # -- reals --------------------------------------------------------------------------------------------------------

    def _continuous(self, parts: Sequence[Sums]) -> Share:
        """Return a bracket by the closed form of sums of uniforms where it is well conditioned, or by a grid."""
        m, plain = len(self.smooth), all(not s.high for s in self.smooth) and not self.wide
        if m > 8 or not plain or math.prod(len(p) for p in parts) * 2**m > CORNERS:
            return self._gridded(parts)
        every = Sums(np.zeros(1))
        for part in sorted(parts, key=len):
            every = every.plus(part)
        weights = np.array([float(Fraction(c, int(every.total))) for c in every.filled.tolist()]) if every.filled.dtype == object else (
            every.filled / every.total
        )  # fmt: skip
        widths = np.array([s.width for s in self.smooth])
        ends: dict[float, tuple[float, float]] = {math.inf: (0.0, 0.0), -math.inf: (1.0, 1.0)}
        for cut in {end for span in (*self.sure, *self.may) for end in span} - set(ends):
            tails = uniform_tail(widths, (cut - self.base) - every.values)
            ends[cut] = float(weights @ tails[0]), float(weights @ tails[1])
        off = WEIGHED if any(p.filled.dtype == np.float64 for p in parts) else 2.0**-52 * (len(weights) ** 0.5 + 64)
        low = sum(ends[a][0] - ends[b][1] for a, b in self.sure) - off
        high = sum(ends[a][1] - ends[b][0] for a, b in self.may) + off
        found = Share(max(0.0, low), min(1.0, high), "closed form")
        if high - low < 1e-9:
            return found
        other = self._gridded(parts)
        best = found if high - low < other.high - other.low else other
        return Share(max(found.low, other.low), min(found.high, other.high), best.method)

    def _gridded(self, parts: Sequence[Sums]) -> Share:
        moved = [Sums(p.values - p.values[0], p.counts) for p in parts]
        shift = math.fsum([self.base, *(float(p.values[0]) for p in parts)])
        grid = Grid.of(moved, [w.sums for w in self.wide], self.smooth)
        if grid is None:
            raise _UnknownError
        off = WEIGHED if any(p.filled.dtype == np.float64 for p in parts) else 0.0
        low, high = (grid.share([(a - shift, b - shift) for a, b in spans], certain) for spans, certain in ((self.sure, True), (self.may, False)))
        size = self.others
        for part in parts:
            size = None if size is None or part.filled.dtype == np.float64 else size * int(part.total)
        for wide in self.wide:
            size = None if size is None else size * wide.run.count
        return Share(max(0.0, low - off), min(1.0, high + off), "grid", None, None if self.smooth else size)


def _columns(law: Law) -> tuple[int, ...]:
    return law.columns if isinstance(law, Listed) else (law.column,)


# -- cells -------------------------------------------------------------------------------------------------------------


def _in_cells(law: Law, cuts: FloatArray | Sequence[FloatArray | None]) -> Listed:
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


def _cells_share(structure: Structure, im: InteractionModel, start: FloatArray, goal: Goal, ask: Ask) -> Share:
    """Return the share by evaluating the scores of every joint cell."""
    laws = laws_of(structure.columns, im, start, [c.name for c in structure.columns if _reads(structure, c.name)])
    if laws is None:
        raise _UnknownError
    cells: list[Listed] = []
    all_cuts = _cuts(structure, start, laws.moving)
    for law in laws.moving:
        cuts = [all_cuts[j] for j in _columns(law)]
        if isinstance(law, Listed):
            cells.append(_in_cells(law, cuts))
        elif cuts[0] is not None:
            cells.append(_in_cells(law, cuts[0]))
        elif isinstance(law, Run) and law.count <= MOST_RUN:
            cells.append(law.listed())
        else:
            raise _UnknownError
    shape = [len(cell.values) for cell in cells]
    if math.prod(shape) * max(1, len(structure.const) // 4) > MOST_CELLS:
        raise _UnknownError
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
    return _counted(hits, total, laws.others, method, asked, most - hits)


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
    found: dict[int, FloatArray | None] = {j: np.zeros(0) for law in laws for j in _columns(law)}
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
