"""Sums of independent contributions: how many of all sums are at least as high as a cut, with exact integers.

`Sums` holds sorted distinct values with counts: whole numbers of any size, or probabilities. Values merge only where they are the same float.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["EPS", "Counts", "FloatArray", "Halves", "Progression", "Sums", "add_up", "dot"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
Counts = npt.NDArray[Any]  # whole numbers (int64, or Python's own where they may pass 2^62), or probabilities
MOST_SUMS = 4_000_000  # that are held
MOST_NEEDLES = 1 << 24  # that are looked up
LARGEST = 2**62  # whole numbers below this are added up by the machine
LIMB = 20  # bits: 2^22 products of two such numbers stay below 2^62
EPS = 2.0**-53


@dataclass(frozen=True)
class Sums:
    """Distinct values, ascending, and how often each occurs; `counts` None: once each."""

    values: FloatArray
    counts: Counts | None = None

    @classmethod
    def of(cls, values: FloatArray, counts: Counts | None = None) -> Sums:
        """Return the values sorted, equal ones merged."""
        if counts is not None and len(counts) and counts.dtype != np.float64 and (counts == 1).all():
            counts = None
        if counts is None:
            values = np.sort(values)
        else:
            order = np.argsort(values, kind="stable")
            values, counts = values[order], counts[order]
        first = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
        if len(first) == len(values):
            return cls(values, counts)
        sizes = np.diff(np.append(first, len(values)))
        if counts is None:
            return cls(values[first], sizes.astype(np.int64))
        if counts.dtype == np.int64 and int(counts.max()) * len(counts) >= LARGEST:
            counts = counts.astype(object)
        merged = np.add.reduceat(counts, first)
        if counts.dtype == np.float64:
            for i in np.flatnonzero(sizes > 256).tolist():  # pairwise: a long sum one by one would lose digits
                merged[i] = counts[first[i] : first[i] + sizes[i]].sum()
        return cls(values[first], merged)

    def __len__(self) -> int:
        return len(self.values)

    def plus(self, other: Sums) -> Sums:
        """Return the sums of one of these and one of the others."""
        values = np.add.outer(self.values, other.values).ravel()
        if self.counts is None and other.counts is None:
            return Sums.of(values)
        a, b = self.filled, other.filled
        if a.dtype == b.dtype == np.int64 and int(a.max()) * int(b.max()) >= LARGEST:
            a = a.astype(object)
        return Sums.of(values, np.multiply.outer(a, b).ravel())

    @cached_property
    def filled(self) -> Counts:
        """The counts as an array."""
        return np.ones(len(self.values), dtype=np.int64) if self.counts is None else self.counts

    @cached_property
    def total(self) -> int | float:
        """Sum of the counts."""
        return add_up(self.filled)

    @cached_property
    def beyond(self) -> Counts:
        """How much lies at or beyond each place; one place more than there are values."""
        counts = self.filled[::-1]
        if self.counts is None:
            return np.arange(len(self.values), -1, -1)
        if counts.dtype == np.float64:
            found: Counts = _cumulated(counts.astype(np.float64))
        elif counts.dtype == np.int64 and int(self.total) < LARGEST:
            found = np.cumsum(counts, dtype=np.int64)
        else:
            found = np.cumsum(counts.astype(object))
        return np.concatenate([np.zeros(1, dtype=found.dtype), found])[::-1]

    def place(self, cut: FloatArray) -> IntArray:
        """Return the first place whose value is at least the cut."""
        return np.searchsorted(self.values, cut, side="left")

    def amount(self, place: IntArray) -> Counts:
        """Return how much lies at or beyond places."""
        return self.beyond[place]


@dataclass(frozen=True)
class Progression:
    """The values step · k for k = 0, …, count - 1, once each, held by these two numbers; step > 0."""

    step: float
    size: int

    def __len__(self) -> int:
        return self.size

    @property
    def total(self) -> int:
        """Number of values."""
        return self.size

    def place(self, cut: FloatArray) -> IntArray:
        """Return the first place whose value is at least the cut, up to rounding."""
        return np.ceil(np.clip(cut / self.step, 0.0, float(self.size))).astype(np.intp)

    def amount(self, place: IntArray) -> Counts:
        """Return how much lies at or beyond places."""
        return np.asarray(self.size - place, dtype=np.int64)


def add_up(counts: Counts) -> int | float:
    """Return a sum: exact for whole numbers, pairwise for probabilities."""
    if counts.dtype == np.float64:
        return float(counts.sum())
    if counts.dtype == np.int64 and (not len(counts) or int(counts.max()) * len(counts) < LARGEST):
        return int(counts.sum())
    return int(sum(counts.tolist()))


def dot(a: Counts, b: Counts) -> int | float:
    """Return Σ a·b: exact for whole numbers, pairwise for probabilities. Nothing is negative."""
    if not len(a):
        return 0
    if a.dtype == np.float64 or b.dtype == np.float64:
        return float((a.astype(np.float64) * b.astype(np.float64)).sum())
    if a.dtype == object or b.dtype == object:
        return int(sum(x * y for x, y in zip(a.tolist(), b.tolist())))
    most_a, most_b = int(a.max()), int(b.max())
    if most_a * most_b * len(a) < LARGEST:
        return int((a * b).sum())
    if len(a) > 1 << 22:
        half = len(a) // 2
        return dot(a[:half], b[:half]) + dot(a[half:], b[half:])
    mask, total = (1 << LIMB) - 1, 0
    for i in range(0, max(1, most_a.bit_length()), LIMB):
        for j in range(0, max(1, most_b.bit_length()), LIMB):
            total += int((((a >> i) & mask) * ((b >> j) & mask)).sum()) << (i + j)
    return total


def _cumulated(weights: FloatArray) -> FloatArray:
    """Return cumulative sums, in three levels: the error stays below 3 · n^(1/3) roundings."""
    if len(weights) <= 256:
        return np.cumsum(weights)
    size = math.ceil(len(weights) ** (1 / 3)) if len(weights) < 1 << 24 else 256
    blocks = np.zeros(-(-len(weights) // size) * size)
    blocks[: len(weights)] = weights
    inner = np.cumsum(blocks.reshape(-1, size), axis=1)
    before = np.concatenate([[0.0], _cumulated(inner[:-1, -1])]) if len(inner) > 1 else np.zeros(1)
    return np.asarray((inner + before[:, None]).ravel()[: len(weights)])


# -- meeting in the middle ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Halves:
    """All sums of some parts as pairs: `needles` and `rest` on one side, `hay` on the other.

    `orders` tells for needles, rest and hay which parts they are made of, in the order of addition, with the sums after each part.
    """

    parts: tuple[Sums, ...]
    orders: tuple[tuple[tuple[int, ...], tuple[Sums, ...]], ...]
    hay: Sums | Progression

    @classmethod
    def of(cls, parts: Sequence[Sums], last: Progression | None = None) -> Halves | None:
        """Return the parts in halves; None where there are too many sums. `last` is what nothing else is added to on its side."""
        sides: list[tuple[list[int], list[Sums]]] = [([], [ZERO]), ([], [ZERO]), ([], [ZERO])]
        needles, rest, hay = sides
        for i in sorted(range(len(parts)), key=lambda i: -len(parts[i])):
            if len(parts[i]) > MOST_SUMS:
                return None
            open_to = [hay, needles] if last is None else [needles]
            fitting = [side for side in sorted(open_to, key=lambda side: len(side[1][-1])) if len(side[1][-1]) * len(parts[i]) <= MOST_SUMS]
            side = fitting[0] if fitting else rest
            if len(side[1][-1]) * len(parts[i]) > MOST_SUMS:
                return None
            side[0].append(i)
            side[1].append(side[1][-1].plus(parts[i]))
        if len(needles[1][-1]) > len(hay[1][-1]) and last is None:
            needles, hay = hay, needles
        if len(needles[1][-1]) * len(rest[1][-1]) > MOST_NEEDLES:
            return None
        orders = tuple((tuple(order), tuple(layers)) for order, layers in (needles, rest, hay))
        return cls(tuple(parts), orders, hay[1][-1] if last is None else last)

    @property
    def needles(self) -> Sums:
        """The sums that are looked up."""
        return self.orders[0][1][-1]

    @property
    def rest(self) -> Sums:
        """The sums for each of which all needles are looked up."""
        return self.orders[1][1][-1]

    @property
    def total(self) -> int | float:
        """All sums, by their counts."""
        return self.needles.total * self.rest.total * self.hay.total

    def least(self, cut: float) -> int | float:
        """Return how many sums are at least the cut, up to the rounding of three additions."""
        found: list[int | float] = []
        for add, count in zip(self.rest.values.tolist(), self.rest.filled.tolist()):
            beyond = self.hay.amount(self.hay.place((cut - add) - self.needles.values))
            found.append(count * (add_up(beyond) if self.needles.counts is None else dot(self.needles.counts, beyond)))
        return math.fsum(found) if any(isinstance(n, float) for n in found) else sum(found)

    def between(self, low: float, high: float, most: int) -> tuple[IntArray, IntArray, IntArray] | None:
        """Return the places (needle, rest, hay) of the sums from `low` up to `high`; None where there are more than `most`."""
        found: list[tuple[IntArray, IntArray, IntArray]] = []
        number = 0
        for r, add in enumerate(self.rest.values.tolist()):
            begin = self.hay.place((low - add) - self.needles.values)
            size = self.hay.place((high - add) - self.needles.values) - begin
            number += int(size.sum())
            if number > most:
                return None
            some = np.flatnonzero(size > 0)
            size = size[some]
            inside = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
            found.append((np.repeat(some, size), np.full(size.sum(), r, dtype=np.intp), np.repeat(begin[some], size) + inside))
        return tuple(np.concatenate(column) for column in zip(*found))  # type: ignore[return-value]

    def weigh(self, places: tuple[IntArray, IntArray, IntArray]) -> Counts:
        """Return how often each of these sums occurs."""
        a, r = self.needles.filled[places[0]], self.rest.filled[places[1]]
        b = self.hay.filled[places[2]] if isinstance(self.hay, Sums) else np.ones(len(places[2]), dtype=np.int64)
        if any(c.dtype == np.float64 for c in (a, r, b)):
            return np.asarray(a.astype(float) * r.astype(float) * b.astype(float))
        return np.asarray(a.astype(object) * r.astype(object) * b.astype(object))

    def choices(self, side: int, places: IntArray, few: int = 0, most: int = 1_000_000) -> tuple[IntArray, dict[int, IntArray]] | None:
        """Return in which ways the sums at places of a side come about: whose way it is, and the place in each part; None where there are too many.

        With `few`, at most so many ways of each, the ones that differ early.
        """
        order, layers = self.orders[side]
        which, back = np.unique(places, return_inverse=True)
        owner = np.arange(len(which))
        reached = layers[-1].values[which]
        chosen: dict[int, IntArray] = {}
        for i, before in zip(order[::-1], layers[-2::-1]):
            own = self.parts[i].values
            everything = np.add.outer(before.values, own).ravel()
            wanted, key = np.unique(reached, return_inverse=True)
            spot = np.searchsorted(wanted, everything)
            hit = np.flatnonzero(np.append(wanted, np.nan)[spot] == everything)
            hit = hit[np.argsort(spot[hit], kind="stable")]
            sizes = np.bincount(spot[hit], minlength=len(wanted))
            begins, ways = (np.cumsum(sizes) - sizes)[key], sizes[key]
            if few:  # the first and the last way, until there are enough
                ways = np.minimum(ways, 2 if len(owner) * 2 <= few * len(which) else 1)
            if ways.sum() > most:
                return None
            stride = np.where(ways == 2, sizes[key] - 1, 1) if few else np.ones(len(key), dtype=np.intp)
            inside = np.arange(ways.sum()) - np.repeat(np.cumsum(ways) - ways, ways)
            took = hit[np.repeat(begins, ways) + inside * np.repeat(stride, ways)]
            chosen = {j: np.repeat(column, ways) for j, column in chosen.items()}
            owner = np.repeat(owner, ways)
            chosen[i], reached = took % len(own), before.values[took // len(own)]
        sizes = np.bincount(owner, minlength=len(which))  # back to the places as they were given
        order_of = np.argsort(owner, kind="stable")
        begins, ways = (np.cumsum(sizes) - sizes)[back], sizes[back]
        inside = np.arange(ways.sum()) - np.repeat(np.cumsum(ways) - ways, ways)
        took = order_of[np.repeat(begins, ways) + inside]
        return np.repeat(np.arange(len(places)), ways), {j: column[took] for j, column in chosen.items()}


ZERO = Sums(np.zeros(1))
