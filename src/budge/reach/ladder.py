"""Wide whole numbers, counted in closed form for every configuration at once.

A whole number that is an interval given the rest is counted by its ends. Two that are coupled are a polygon: the number of values of the second is linear in
the first between corners, so that sums and numbers within them have closed forms. A real coordinate coupled to them is projected
out first (what is left says where it has room) and drawn from its interval once the whole numbers are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.reach.cells import Box, Coordinate, Half, margin

__all__ = ["Ladder", "Lines", "MustListError", "without"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Lines = list[tuple[FloatArray, FloatArray, bool, bool]]  # Σ c·y <= bound: coefficients, bound (m,), whether all is whole, whether the bound itself is left out
LARGEST = 2.0**62


class MustListError(Exception):
    """Some wide whole numbers are not an interval or a polygon given the rest; they must be listed."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(*names)
        self.names = tuple(names)


@dataclass(frozen=True)
class _Group:
    """Whole numbers that are coupled (one or two), and the real coordinate that hangs on them, if there is one."""

    wholes: tuple[str, ...]
    real: str | None
    lines: Lines  # over (*wholes, real), the box included
    low: FloatArray  # of the first whole number
    count: IntArray
    pair: _Pair | None
    solved: npt.NDArray[np.bool_]  # where an equality determines the real coordinate

    def at(self, rows: npt.NDArray[np.intp], number: IntArray) -> list[FloatArray]:
        """Return the whole numbers by their joint number within each configuration."""
        return [self.low.take(rows) + number] if self.pair is None else list(self.pair.at(rows, number))


@dataclass(frozen=True)
class Ladder:
    """The wide whole numbers of a part, group by group; `counts` tells how many joint values each configuration leaves open."""

    groups: tuple[_Group, ...]
    counts: npt.NDArray[Any]  # whole numbers of any size: Python's own where they pass 2^62

    @property
    def reals(self) -> set[str]:
        """The real coordinates that hang on whole numbers."""
        return {group.real for group in self.groups if group.real is not None}

    @property
    def varies(self) -> npt.NDArray[np.bool_]:
        """Which configurations leave more than a point to a real coordinate that hangs on whole numbers.

        Its room is concave in one whole number: where there is none at the first two and at the last, there is none at all. Beside two it is
        taken to vary where there are more than two pairs.
        """
        found = np.zeros(len(self.counts), dtype=bool)
        for group in self.groups:
            if group.real is not None:
                rows = np.arange(len(group.low))
                for number in (0, 1, group.count - 1):
                    known = group.at(rows, np.clip(number, 0, np.maximum(group.count - 1, 0)))
                    low, high = _interval(group.lines, len(known), known, rows)
                    found |= (group.count > 0) & (high - low > 1e-12 * np.maximum(1.0, np.abs(low)))
                if group.pair is not None:
                    found |= (group.count > 2) & ~group.solved
        return found

    @classmethod
    def of(cls, box: Box, coordinates: Sequence[Coordinate]) -> Ladder:
        """Return the ladder; the real coordinates that are coupled to no whole number are left out."""
        place = {c.name: j for j, c in enumerate(coordinates)}
        whole = {c.name for c in coordinates if c.whole}
        groups: list[_Group] = []
        for names in _joined(box.coupled, whole):
            wholes, reals = sorted(names & whole), sorted(names - whole)
            rows = [row for row in box.coupled if names & set(row.coefficients)]
            strict = any(names & set(row.coefficients) for row in box.strict)
            if len(reals) > 1 or len(wholes) > 2 or strict or not all(row.even for row in rows):
                raise MustListError(wholes)
            order = [*wholes, *reals]
            lines = _lines(rows, order, [(box.low[:, place[n]], box.high[:, place[n]]) for n in order], wholes)
            over = without(lines, len(wholes)) if reals else lines
            solved = np.zeros(len(box.exists), dtype=bool)
            for row in rows:
                if row.relation == "==" and reals and reals[0] in row.coefficients:
                    solved |= row.active
            groups.append(_counted(wholes, reals[0] if reals else None, lines, over, box.exists, solved))
        about = np.prod([group.count.astype(float) for group in groups], axis=0)
        counts = box.exists.astype(np.int64 if about.sum() < LARGEST else object)
        for group in groups:
            counts = counts * group.count
        return cls(tuple(groups), counts)

    def at(self, rows: npt.NDArray[np.intp], rest: npt.NDArray[Any]) -> tuple[dict[str, FloatArray], dict[str, tuple[FloatArray, FloatArray]]]:
        """Return the whole numbers by their number within the configuration, and the intervals of the reals that hang on them."""
        values: dict[str, FloatArray] = {}
        ends: dict[str, tuple[FloatArray, FloatArray]] = {}
        for i, group in enumerate(self.groups):
            own = rest
            if i < len(self.groups) - 1:
                own, rest = rest % group.count[rows], rest // group.count[rows]
            known = group.at(rows, own.astype(np.int64, copy=False))
            values |= dict(zip(group.wholes, known))
            if group.real is not None:
                ends[group.real] = _interval(group.lines, len(known), known, rows)
        return values, ends


def _joined(coupled: Sequence[Half], whole: set[str]) -> list[set[str]]:
    """Return the groups of coordinates that rows couple and that hold a whole number, by name."""
    groups: list[set[str]] = [{name} for name in sorted(whole)]
    for row in coupled:
        names = set(row.coefficients)
        groups = [g for g in groups if not g & names] + [names.union(*(g for g in groups if g & names))]
    return sorted((g for g in groups if g & whole), key=lambda g: sorted(g))


def _lines(rows: Sequence[Half], order: Sequence[str], boxes: Sequence[tuple[FloatArray, FloatArray]], wholes: Sequence[str]) -> Lines:
    """Return the box and the rows over these coordinates as ``Σ c·y <= bound``, infinite where a row is off."""
    lines: Lines = []
    for j, (low, high) in enumerate(boxes):
        lines += [(np.eye(len(order))[j], high, True, False), (-np.eye(len(order))[j], -low, True, False)]
    for row in rows:
        c = np.array([float(row.coefficients[name][0]) if name in row.coefficients else 0.0 for name in order])
        lines.append((c, np.where(row.active, -row.constant, np.inf), row.whole, row.relation == "<"))
        if row.relation == "==":
            lines.append((-c, np.where(row.active, row.constant, np.inf), row.whole, False))
    return lines


def without(lines: Lines, j: int) -> Lines:
    """Return the lines without coordinate j (Fourier–Motzkin)."""
    kept = [line for line in lines if line[0][j] == 0]
    for up, top, _, short in lines:
        for down, bottom, _, brief in lines:
            if up[j] > 0 > down[j]:
                kept.append((up / up[j] - down / down[j], top / up[j] - bottom / down[j], False, short or brief))
    return [(np.delete(np.where(np.abs(c) < 1e-12, 0.0, c), j), b, whole, short) for c, b, whole, short in kept]


def _interval(lines: Lines, j: int, known: Sequence[FloatArray], rows: npt.NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
    """Return the ends of coordinate j given the coordinates before it."""
    low, high = np.full(len(rows), -np.inf), np.full(len(rows), np.inf)
    for c, b, _, _ in lines:
        if c[j] == 0:
            continue
        rest = b.take(rows)
        for i, value in enumerate(known):
            if c[i]:
                rest = rest - c[i] * value
        if c[j] > 0:
            np.minimum(high, rest / c[j], out=high)
        else:
            np.maximum(low, rest / c[j], out=low)
    return low, np.maximum(low, high)


def _most(bound: FloatArray, slope: float, whole: bool, short: bool) -> FloatArray:
    """Return the highest whole number up to a bound, or below it where the bound itself is left out; `slope` is that of the row it comes from."""
    forgiven = margin(bound, slope if whole else None)
    return np.asarray(np.ceil(bound - forgiven) - 1 if short else np.floor(bound + forgiven))


def _counted(wholes: Sequence[str], real: str | None, lines: Lines, over: Lines, exists: npt.NDArray[np.bool_], solved: npt.NDArray[np.bool_]) -> _Group:
    """Count the whole numbers of a group under lines over them alone."""
    first = without(over, 1) if len(wholes) == 2 else over
    low, high = np.full(len(exists), -np.inf), np.full(len(exists), np.inf)
    for c, b, whole, short in first:
        if c[0] > 0:
            np.minimum(high, _most(b / c[0], c[0], whole, short), out=high)
        elif c[0] < 0:
            np.maximum(low, -_most(-(b / c[0]), -c[0], whole, short), out=low)
        else:
            slack = 1e-9 * np.maximum(1.0, np.abs(b))
            high = np.where((b <= slack) if short else (b < -slack), -np.inf, high)
    some = exists & (low <= high)
    if not np.isfinite(high[some] - low[some]).all():
        raise MustListError(wholes)
    low, high = np.where(some, low, 0.0), np.where(some, high, -1.0)
    if len(wholes) == 1:
        return _Group(tuple(wholes), real, lines, low, (high - low + 1).astype(np.int64), None, solved)
    pair = _Pair.of(over, low, high, some, wholes)
    return _Group(tuple(wholes), real, lines, low, pair.total, pair, solved)


@dataclass(frozen=True)
class _Pair:
    """The whole points (t, v) of a polygon, for every configuration.

    Between two corners the number of v for one t is linear in t: a stretch of `length` values of t, with `width` values of v at its first and `step` more at
    each next, holds length · width + step · length · (length - 1) / 2 points.
    """

    lowers: tuple[tuple[float, FloatArray], ...]  # v >= b - c·t
    first: IntArray  # (stretches, m)
    length: IntArray
    width: IntArray
    step: IntArray
    ends: IntArray  # points up to the end of each stretch

    @property
    def total(self) -> IntArray:
        """Number of points."""
        return np.asarray(self.ends[-1])

    @cached_property
    def _before(self) -> IntArray:
        """Points before each stretch, one stretch after the other."""
        return np.concatenate([np.zeros(self.ends.shape[1], dtype=np.int64), self.ends[:-1].ravel()])

    @classmethod
    def of(cls, lines: Lines, low: FloatArray, high: FloatArray, some: npt.NDArray[np.bool_], wholes: Sequence[str]) -> _Pair:
        """Count the pairs; the coefficient of v divides that of t in every row."""
        uppers, lowers = [], []
        for c, b, whole, short in lines:
            if c[1] == 0:
                continue
            slope = c[0] / c[1]
            if slope != np.round(slope):
                raise MustListError(wholes)
            b = np.where(some, b / c[1], 0.0)
            if c[1] > 0:
                uppers.append((slope, _most(b, c[1], whole, short)))
            else:
                lowers.append((slope, -_most(-b, -c[1], whole, short)))
        splits = [low - 1, high]
        for family in (uppers, lowers):
            for i, (c, b) in enumerate(family):
                for d, e in family[:i]:
                    if c != d:
                        with np.errstate(invalid="ignore"):
                            at = np.floor((b - e) / (c - d))
                        splits.append(np.clip(np.where(np.isfinite(at), at, high), low - 1, high))
        corners = np.sort(np.array(splits), axis=0)
        first, last = corners[:-1] + 1, corners[1:]
        length = np.where(some, np.maximum(last - first + 1, 0), 0)

        def width(t: FloatArray) -> FloatArray:
            top = np.min([b - c * t for c, b in uppers], axis=0)
            bottom = np.max([b - c * t for c, b in lowers], axis=0)
            return np.where(length > 0, top - bottom + 1, 0)

        a, z = width(first), width(last)
        if (np.abs(a) + np.abs(z)).max(initial=0) * max(length.max(initial=0), 1) * len(first) >= LARGEST:
            raise MustListError(wholes)
        if (np.minimum(a, z) < 0).any():  # no v for some t within the ends: rows that leave no whole number between them
            raise MustListError(wholes)
        step = np.where(length > 1, (z - a) / np.maximum(length - 1, 1), 0)
        begin, many, wide, more = (column.astype(np.int64) for column in (first, length, a, step))
        return cls(tuple(lowers), begin, many, wide, more, np.cumsum(many * wide + more * (many * (many - 1) // 2), axis=0))

    def at(self, rows: npt.NDArray[np.intp], number: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the pair of a number within each configuration."""
        place = rows  # among the stretches of all configurations
        for end in self.ends[:-1]:
            place = place + (number >= end.take(rows)) * len(end)
        if len(self.ends) > 1:
            number = number - self._before.take(place)
        first, length, width, step = (column.ravel().take(place) for column in (self.first, self.length, self.width, self.step))
        k = _root(number, width, step, length)
        t = (first + k).astype(float)
        bottom = np.full(len(rows), -np.inf)
        for c, b in self.lowers:
            np.maximum(bottom, b.take(rows) - c * t if c else b.take(rows), out=bottom)
        return t, bottom + (number - (k * width + step * (k * (k - 1) >> 1)))


def _root(number: IntArray, width: IntArray, step: IntArray, length: IntArray) -> IntArray:
    """Return the largest k with k·width + step·k·(k-1)/2 <= number, below length."""
    linear = width - step / 2.0
    root = np.sqrt(np.maximum(linear * linear + 2.0 * step * number, 0.0))
    k = np.minimum(2.0 * number / np.maximum(linear + root, 0.5), length - 1).astype(np.int64)
    while True:  # the root of a large number may be off by a few
        low = k * width + step * (k * (k - 1) >> 1)
        high = low + width + step * k
        change = (low > number).astype(np.int64) * -1 + ((high <= number) & (k + 1 < length))
        if not change.any():
            return k
        k = k + change

