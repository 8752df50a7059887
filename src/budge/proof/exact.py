"""The share of reachable points that attain a target, without sampling, for a model whose structure is known.

The parts of an interaction model are drawn independently. A score that is a sum over columns is then a sum of independent contributions: all sums are listed,
or met in the middle, or bracketed on a grid. For trees every column is replaced by its cells, the ranges between cuts.
Scores so near to a bound that rounding decides are asked of the model itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from budge.interaction import InteractionModel
from budge.proof.cell_shares import cells_share, in_cells
from budge.proof.goals import Goal
from budge.proof.grid import Grid, Smooth, uniform_tail
from budge.proof.laws import Interval, Law, Listed, Run, laws_of
from budge.proof.share import (
    MOST_ASKED,
    MOST_RUN,
    WEIGHED,
    Ask,
    Method,
    Share,
    Spans,
    UnknownError,
    columns_of_law,
    counted,
    union,
    without,
)
from budge.proof.structure import Additive, Structure, UnreadableError
from budge.proof.sums import Counts, Halves, Progression, Sums, add_up

__all__ = ["Share", "exact_share"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
FEW = 32  # points asked for each sum, where sums are exact and points too many
CORNERS = 20_000_000  # terms of a closed form


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
        return cells_share(structure, im, start, goal, ask)
    except (UnreadableError, UnknownError):
        return None


def _settled(structure: Structure, im: InteractionModel, start: FloatArray, attained: bool) -> Share | None:
    """Return the share of a goal that every score meets, or none."""
    laws = laws_of(structure.columns, im, start, ())
    if laws is None:
        return None
    size = laws.others
    return Share(float(attained), float(attained), "closed form", None if size is None else size * attained, size)


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
            raise UnknownError
        self.others = laws.others
        self.terms: list[_Term] = []
        self.wide: list[_Wide] = []
        self.smooth: list[Smooth] = []
        self.largest = np.abs(np.asarray(structure.const, dtype=float))  # of what is added up, for each score
        self.constants = (structure.const * direction).tolist()
        moving = {j for law in laws.moving for j in columns_of_law(law)}
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
            raise UnknownError
        ends = [((low, low_slack + noise), (high, high_slack + noise)) for low, low_slack, high, high_slack in intervals]
        sure: Spans = [(low + a, high - b) for (low, a), (high, b) in ends]
        may: Spans = [(low - a, math.nextafter(high + b, math.inf)) for (low, a), (high, b) in ends]
        self.sure, self.may = union(sure), union(may)

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
            listed = in_cells(law, s.steps[name][0])
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
            raise UnknownError
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
        edge = without(self.may, self.sure)
        asked = 0
        if may > sure:
            hits, asked = self._asked(halves, edge, may - sure, ask)
            if hits is not None:
                return counted(sure + hits, halves.total, self.others, method, asked)
        return counted(sure, halves.total, self.others, method, asked, may - sure)

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
            raise UnknownError
        off = WEIGHED if any(p.filled.dtype == np.float64 for p in parts) else 0.0
        low, high = (grid.share([(a - shift, b - shift) for a, b in spans], certain) for spans, certain in ((self.sure, True), (self.may, False)))
        size = self.others
        for part in parts:
            size = None if size is None or part.filled.dtype == np.float64 else size * int(part.total)
        for wide in self.wide:
            size = None if size is None else size * wide.run.count
        return Share(max(0.0, low - off), min(1.0, high + off), "grid", None, None if self.smooth else size)
