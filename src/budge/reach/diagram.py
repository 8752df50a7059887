"""Counting diagram: exact counts, the point of every number, and exact draws of the solutions of rows and rules over whole numbers.

Variables are taken one after the other. A state holds what the later ones still need: the residual of every row, the classes that pair rules leave
to later variables, and a number for every longer rule. States with the same future are made equal and merged, so that a budget over 200 features
has a few thousand states. Wide numbers inside rows are written in bits. Counts are exact, however large.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["LARGEST", "Counts", "Diagram", "Level", "Sum", "Table", "Variable"]

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
CountArray = npt.NDArray[Any]  # int64, or Python integers where those are too small
LARGEST = 2**62  # sums and counts held as int64 stay below this


@dataclass(frozen=True)
class Variable:
    """A coordinate. Each class is an interval of whole numbers, from `low`, of `size` numbers.

    `weight` is the whole weight of each number of a class, where weights differ.
    """

    name: str
    low: IntArray
    size: IntArray
    weight: tuple[int, ...] | None = None

    @classmethod
    def interval(cls, name: str, low: int, high: int, cuts: Sequence[int] | None = None) -> Variable:
        """Return the numbers from low to high: each a class, or with `cuts` the intervals that start at low and at each cut."""
        inner = range(low, high + 1) if cuts is None else [c for c in cuts if low < c <= high]
        starts = np.array(sorted({low, *inner}), dtype=np.int64)
        return cls(name, starts, np.diff(np.append(starts, high + 1)))

    def keep(self, classes: BoolArray) -> Variable:
        """Return the variable with some of its classes."""
        weight = None if self.weight is None else tuple(w for w, kept in zip(self.weight, classes) if kept)
        return Variable(self.name, self.low[classes], self.size[classes], weight)


@dataclass(frozen=True)
class Sum:
    """``Σ terms  relation  constant`` with one of ``<= == >= !=``.

    A term holds one whole number per class: that of its lowest value. In a class of several values each step adds the variable's slope.
    """

    terms: Mapping[str, IntArray]
    relation: str
    constant: int
    slopes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A rule over few variables: one truth value per combination of their classes."""

    scope: tuple[str, ...]
    truth: BoolArray


@dataclass(frozen=True)
class Level:
    """One step of every path: the edges of state s are numbered from start[s] to start[s + 1] - 1."""

    variable: int
    low: IntArray
    size: IntArray
    weight: CountArray | None
    start: IntArray
    label: npt.NDArray[np.int32]  # the class of each edge
    to: npt.NDArray[np.int32]


# -- counting and drawing -------------------------------------------------------------------------------------------------


class Counts:
    """How many points each state leads to, or with `weighted` how much weight."""

    def __init__(self, levels: Sequence[Level], variables: int, ends: int, weighted: bool) -> None:
        self.levels, self.variables = levels, variables
        self.factors: list[CountArray | None] = []
        self.counts: list[CountArray] = [np.ones(ends, dtype=np.int64)]
        for level in reversed(levels):
            factor: CountArray = level.size if not weighted or level.weight is None else level.size.astype(object) * level.weight
            self.factors.append(None if (factor == 1).all() else factor)
            self.counts.append(self._sums(level, self.counts[-1], self.factors[-1]))
        self.counts.reverse()
        self.factors.reverse()
        self.total = int(self.counts[0][0]) if len(self.counts[0]) else 0
        self._before: dict[int, CountArray] = {}

    @staticmethod
    def _sums(level: Level, count: CountArray, factor: CountArray | None) -> CountArray:
        """Return the count of each state of a level, as int64 only where no sum can pass 2^62."""
        size = len(level.start) - 1
        some = np.diff(level.start) > 0
        if not some.any():
            return np.zeros(size, dtype=np.int64)
        first = level.start[:-1][some]
        small = count.dtype != object and (factor is None or factor.max() < LARGEST)
        if small:
            rough = count.astype(float)[level.to]
            if factor is not None:
                rough = rough * factor.astype(float)[level.label]
            small = bool(np.add.reduceat(rough, first).max() < LARGEST / 2)
        kind = np.int64 if small else object
        each = count.astype(kind)[level.to]
        if factor is not None:
            each = each * factor.astype(kind)[level.label]
        result = np.zeros(size, dtype=kind)
        result[some] = np.add.reduceat(each, first)
        return result

    def _earlier(self, i: int) -> CountArray:
        """Return, for each edge of level i, the count of the earlier edges of its state."""
        if i in self._before:
            return self._before[i]
        level, factor = self.levels[i], self.factors[i]
        kind = self.counts[i].dtype
        each = self.counts[i + 1].astype(kind)[level.to]
        if factor is not None:
            each = each * factor.astype(kind)[level.label]
        running = np.cumsum(each) - each  # int64 may wrap round here; the differences below are right all the same
        lengths = np.diff(level.start)
        self._before[i] = np.asarray(running - np.repeat(running[level.start[:-1][lengths > 0]], lengths[lengths > 0]))
        return self._before[i]

    def unrank(self, numbers: npt.ArrayLike) -> IntArray:
        """Return the points of these numbers, 0 to total - 1: one row per variable."""
        rank = np.array(numbers, dtype=self.counts[0].dtype)
        out = np.zeros((self.variables, len(rank)), dtype=np.int64)
        state: npt.NDArray[Any] = np.zeros(len(rank), dtype=np.int64)
        for i, level in enumerate(self.levels):
            before = self._earlier(i)
            rank = rank.astype(before.dtype, copy=False)  # below the counts of this level
            edge = _bisect(before, rank, level.start[state], level.start[state + 1] - 1)
            state, label = level.to[edge], level.label[edge]
            rank = rank - before[edge]
            inside: CountArray | int = 0
            if self.factors[i] is not None:
                after = self.counts[i + 1][state]
                inside, rank = rank // after, rank % after
                if level.weight is not None:
                    inside = np.minimum(inside, level.size[label] - 1)  # classes with weights hold one value each
            out[level.variable] += level.low[label] + np.asarray(inside, dtype=np.int64)
        return out


@dataclass(frozen=True)
class Diagram:
    """Levels of merged states over some variables; `ends` is 1, or 0 where there is no solution."""

    variables: tuple[Variable, ...]
    levels: tuple[Level, ...]
    ends: int

    @cached_property
    def points(self) -> Counts:
        """The number of points."""
        return Counts(self.levels, len(self.variables), self.ends, weighted=False)

    @cached_property
    def mass(self) -> Counts:
        """The weight of the points."""
        weighted = any(v.weight is not None for v in self.variables)
        return Counts(self.levels, len(self.variables), self.ends, weighted=True) if weighted else self.points


def _bisect(before: CountArray, key: CountArray, low: IntArray, high: IntArray) -> IntArray:
    """Return the last place from low to high at which `before` is at most the key."""
    for _ in range(int((high - low).max(initial=0)).bit_length()):
        middle = (low + high + 1) >> 1
        up = (before[middle] <= key).astype(bool)
        low = np.where(up, middle, low)
        high = np.where(up, high, np.maximum(middle - 1, low))
    return low
