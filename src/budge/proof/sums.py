"""Sums of independent contributions: how many of all sums are at least as high as a cut, with exact integers, or bracketed on a grid.

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

__all__ = ["Grid", "Halves", "Progression", "Smooth", "Sums", "add_up", "dot", "uniform_tail"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
Counts = npt.NDArray[Any]  # whole numbers (int64, or Python's own where they may pass 2^62), or probabilities
MOST_SUMS = 4_000_000  # that are held
MOST_NEEDLES = 1 << 24  # that are looked up
LARGEST = 2**62  # whole numbers below this are added up by the machine
LIMB = 20  # bits: 2^22 products of two such numbers stay below 2^62
BINS = 1 << 20  # of a grid
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


# -- real contributions ------------------------------------------------------------------------------------------------


def uniform_tail(widths: FloatArray, cut: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return bounds of P(Σ width · U >= cut) for independent uniform U in [0, 1], at every cut.

    The sum over corners cancels; bounds of every term and of the rounding of their sum are carried along.
    """
    m, span = len(widths), math.fsum(widths.tolist())
    turned = cut > span / 2  # the law is symmetric: take the side with fewer terms
    at = np.where(turned, span - cut, cut)
    corners = (np.arange(2**m)[:, None] >> np.arange(m)) & 1
    off = 4 * (m + 2) * EPS * (span + np.abs(cut))  # of every difference below
    norm = math.factorial(m) * math.prod(widths.tolist())
    low, high, size = (np.zeros(len(cut)) for _ in range(3))
    for corner in corners:
        rest = at - float(corner @ widths)
        least, most = (np.maximum(rest - off, 0.0) ** m, np.maximum(rest + off, 0.0) ** m)
        if corner.sum() % 2:
            least, most = -most, -least
        low, high, size = low + least, high + most, size + np.maximum(np.abs(least), np.abs(most))
    rounding = 2 * (2**m + 3 * m + 8) * EPS * size
    low, high = (np.clip(low - rounding, 0, None) / norm * (1 - 64 * EPS), np.clip(high + rounding, 0, None) / norm * (1 + 64 * EPS))
    low, high = np.minimum(low, 1.0), np.minimum(high, 1.0)  # P(sum <= at)
    least = np.where(turned, low, np.maximum(1 - high - 2 * EPS, 0.0))
    most = np.where(turned, high, np.minimum(1 - low + 2 * EPS, 1.0))
    sure, never = cut <= -off, cut >= span + off
    return np.where(sure, 1.0, np.where(never, 0.0, least)), np.where(sure, 1.0, np.where(never, 0.0, most))


@dataclass(frozen=True)
class Smooth:
    """A contribution between 0 and `width`: uniform, or abs(slope) · (V - its end) for a value V with density 1/V between `low` and `high`."""

    width: float
    low: float = 0.0
    high: float = 0.0
    falling: bool = False  # with a negative slope: 0 is at the high end

    def masses(self, step: float) -> FloatArray:
        """Return the probability of each bin of a grid."""
        edges = np.minimum(np.arange(math.floor(self.width / step) + 2) * step, self.width)
        if not self.high:
            return np.asarray(np.diff(edges) / self.width)
        values = self.low + edges / self.width * (self.high - self.low)
        if self.falling:
            values = self.high - edges / self.width * (self.high - self.low)
        values = np.clip(values, self.low, self.high)
        return np.asarray(np.abs(np.log1p(np.diff(values) / values[:-1])) / math.log1p((self.high - self.low) / self.low))


@dataclass(frozen=True)
class Grid:
    """Lower ends of sums on a grid: a sum lies between place · step and (place + spread) · step. `off` bounds the error of any sum of masses."""

    step: float
    spread: int
    masses: FloatArray
    off: float

    @classmethod
    def of(cls, parts: Sequence[Sums], runs: Sequence[Progression], smooth: Sequence[Smooth], bins: int | None = None) -> Grid | None:
        """Return the law of the sum on a grid; all contributions are at least 0. None where the range is nothing or not finite."""
        parts, bins = _grouped(parts), bins or BINS
        ranges = [float(p.values[-1]) for p in parts] + [run.step * (run.size - 1) for run in runs] + [s.width for s in smooth]
        span = math.fsum(ranges)
        if not (0.0 < span < math.inf):
            return None
        step = 2.0 ** math.ceil(math.log2(span / (bins - 2 * len(ranges) - 2)))  # a power of two: division and rounding down are exact
        while sum(math.floor(r / step) + 2 for r in ranges) >= bins:
            step *= 2
        if step < 2.0**-960:
            return None
        laws, spread = [], 0
        for part in parts:
            at = part.values / step
            place = np.floor(at).astype(np.intp)
            spread += int((place != at).any())
            weights = np.array([float(c) for c in part.counts.tolist()]) if part.counts is not None and part.counts.dtype == object else part.filled
            laws.append(np.bincount(place, weights=weights.astype(float)) / float(part.total))
        for run in runs:
            edges = np.ceil(np.arange(math.floor(run.step * (run.size - 1) / step) + 2) * (step / run.step))
            edges = np.minimum(edges, run.size)
            edges[-1] = run.size
            laws.append(np.diff(edges) / run.size)
            spread += 1
        for one in smooth:
            laws.append(one.masses(step))
            spread += 1
        return cls(step, spread, *_convolved(laws, bins))

    def share(self, inside: Sequence[tuple[float, float]], certain: bool) -> float:
        """Return a lower (`certain`) or an upper bound of the probability that the sum lies in one of these half-open intervals."""
        chosen = np.zeros(len(self.masses), dtype=bool)
        for low, high in inside:
            first = low / self.step - (0 if certain else self.spread)
            last = high / self.step - (self.spread if certain else 0)  # the first place beyond, below the end itself
            begin = int(np.clip(np.ceil(first), 0, len(chosen)))
            end = int(np.clip(np.ceil(last), 0, len(chosen)))
            chosen[begin:end] = True
        found = math.fsum(self.masses[chosen].tolist())
        return max(0.0, found - self.off) if certain else min(1.0, found + self.off)


def _grouped(parts: Sequence[Sums], most: int = 1 << 20) -> list[Sums]:
    """Return fewer parts with the same sums: every part rounded to the grid adds to its error."""
    found: list[Sums] = []
    for part in sorted(parts, key=len):
        if found and len(found[-1]) * len(part) <= most:
            found[-1] = found[-1].plus(part)
        else:
            found.append(part)
    return found


def _convolved(laws: Sequence[FloatArray], bins: int) -> tuple[FloatArray, float]:
    """Return the law of a sum by Fourier transforms, and a bound of the sum of absolute errors.

    A transform of n = 2^t values has a relative error of at most t · η in the 2-norm (Higham, Accuracy and Stability of Numerical Algorithms,
    Theorem 24.2, η below 8 roundings for radix 2 with accurate factors; 32 are counted here, and three levels more for reals and the inverse).
    No entry of a transform exceeds the sum of masses, 1: so errors of the transforms add up.
    """
    if len(laws) == 1:
        return laws[0], 8 * EPS * 4
    from scipy import fft

    size = 1 << (bins - 1).bit_length()
    level = (math.log2(size) + 3) * 32 * EPS
    product = np.ones(size // 2 + 1, dtype=np.complex128)
    error, entries = 0.0, 0
    for law in laws:
        made = fft.rfft(law, size)
        error += level * math.sqrt(float((law * law).sum())) + 4 * EPS
        product *= made
        entries += len(law) - 1
    masses = np.maximum(np.asarray(fft.irfft(product, size))[: entries + 1], 0.0)
    error = (error + level) * (1 + 1e-6)  # in the 2-norm
    masses_off = 16 * EPS * len(laws)  # of the masses themselves, relative to a sum of 1
    return masses, math.sqrt(entries + 1) * error + masses_off


