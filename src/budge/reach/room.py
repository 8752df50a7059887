"""What one row leaves open to reals in a box: ``low <= y <= high`` with ``a·y <= c`` or ``a·y == c``, drawn exactly in any dimension.

Scaled and flipped, a room is ``0 <= v <= s`` with ``Σ v <= r`` (or ``== r``); no v is ever above r. Where nothing else cuts it, spacings are
uniform. Where the box does, ``Π exp(-t·v)`` is constant on every level of ``Σ v``: truncated exponentials are proposed, and what is missing to r
corrects them. The tilt t for which the means add up to r accepts most: about 0.4 of the proposals in 3 dimensions, 0.04 in 200.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from budge.reach.accept import Words, first_accepted
from budge.reach.streams import open_unit

__all__ = ["Rooms", "log_simplex", "mean_of", "truncated"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
WordArray = npt.NDArray[np.uint64]
SLACK = 1e-9  # what comparisons forgive, relative to the numbers in them
THIN = 1e-10  # what is narrower than this, relative to the numbers in it, has no width
TERMS = 4096  # different sums in an exact volume; with more it is not measured


@dataclass(frozen=True)
class Rooms:
    """m rooms of d coordinates: each a box cut by one row.

    Examples
    --------
    >>> import numpy as np
    >>> from budge.reach.accept import fixed_words
    >>> shares = Rooms(np.zeros((1, 3)), np.ones((1, 3)), np.ones((1, 3)), np.ones(1), equal=True)
    >>> shares.dimensions.tolist(), round(float(np.exp(shares.log_volumes[0])) / 3**0.5, 12)
    ([2], 0.5)
    >>> drawn = shares.draw(np.zeros(100, dtype=int), np.arange(100), fixed_words("example"))
    >>> bool(np.allclose(drawn.sum(axis=1), 1))
    True
    """

    low: FloatArray  # (m, d)
    high: FloatArray
    slope: FloatArray  # (m, d)
    limit: FloatArray  # (m,)
    equal: bool = False

    @cached_property
    def _ends(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Widths, those of v, and the coordinates where v is 0."""
        width = np.maximum(self.high - self.low, 0.0)
        still = width <= THIN * np.maximum(1.0, np.maximum(np.abs(self.low), np.abs(self.high)))
        width = np.where(still, 0.0, width)
        return width, np.abs(self.slope) * width, np.where(self.slope < 0, self.high, self.low)

    @cached_property
    def _scale(self) -> FloatArray:
        """The size of the numbers that meet in the row."""
        terms = np.abs(self.slope) * np.maximum(np.abs(self.low), np.abs(self.high))
        return np.asarray(np.maximum(np.abs(self.limit), terms.max(axis=1, initial=0.0)))

    @cached_property
    def _left(self) -> FloatArray:
        """What the row leaves to v in all; negative where even v = 0 is too much."""
        return np.asarray(self.limit - (self.slope * self._ends[2]).sum(axis=1))

    @cached_property
    def empty(self) -> BoolArray:
        """Which rooms have no point."""
        forgiven = SLACK * np.maximum(1.0, self._scale)
        gone = (self._left < -forgiven) | (self.high - self.low < -forgiven[:, None]).any(axis=1)
        return gone | (self._left - self._ends[1].sum(axis=1) > forgiven) if self.equal else gone

    @cached_property
    def _cut(self) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray, BoolArray]:
        """The widths of v and its sum as drawn; the widths before; whether v counts from the other end; whether the row leaves all of the box."""
        width = self._ends[1]
        total = width.sum(axis=1)
        small = THIN * self._scale
        left = np.clip(self._left, 0.0, total)
        left = np.where(left <= small, 0.0, np.where(left >= total - small, total, left))
        if not self.equal:
            whole = left == total
            return np.minimum(width, left[:, None]), left, width, np.zeros(len(left), dtype=bool), whole
        width = np.minimum(width, left[:, None])
        total = width.sum(axis=1)
        turned = left > total / 2
        left = np.where(turned, np.maximum(total - left, 0.0), left)
        left = np.where(left <= small, 0.0, left)
        return np.minimum(width, left[:, None]), left, width, turned, np.zeros(len(left), dtype=bool)

    @cached_property
    def _plain(self) -> BoolArray:
        """Rooms that the box does not cut further: simplices, points and whole boxes."""
        width, left, _, _, whole = self._cut
        return np.asarray(whole | ((width == 0) | (width == left[:, None])).all(axis=1))

    @cached_property
    def dimensions(self) -> IntArray:
        """Dimension of each room; -1 where it is empty."""
        width, _, _, _, _ = self._cut
        beside = ((self.slope == 0) & (self._ends[0] > 0)).sum(axis=1)
        bound = (width > 0).sum(axis=1)
        free = np.where(bound > 0, bound - 1, 0) if self.equal else bound
        return np.asarray(np.where(self.empty, -1, beside + free), dtype=np.int64)

    @cached_property
    def log_volumes(self) -> FloatArray:
        """Logarithm of each room's volume within its own affine hull: 0 for a point, -inf where it is empty, not a number where it is not measured."""
        width, left, _, _, whole = self._cut
        result = np.full(len(left), -np.inf)
        for i in np.flatnonzero(~self.empty):
            bound = width[i] > 0
            sides = width[i][bound]
            beside = self._ends[0][i][(self.slope[i] == 0) & (self._ends[0][i] > 0)]
            log = float(np.log(beside).sum())
            if len(sides):
                size = np.abs(self.slope[i][bound])
                log -= float(np.log(size).sum())
                if whole[i]:
                    log += float(np.log(sides).sum())
                else:
                    log += log_simplex(tuple(np.sort(sides).tolist()), float(left[i]), len(sides) - self.equal)
                if self.equal:
                    log += float(np.log(np.linalg.norm(size / size.max())) + np.log(size.max()))
            result[i] = log
        return result

    def value(self, i: int, slope: FloatArray) -> float | None:
        """Return ``slope · y`` where it is the same everywhere in room i, else None."""
        sides, left, before, turned, _ = (part[i] for part in self._cut)
        width, own, bound = self._ends[0][i], self.slope[i], sides > 0
        scale = SLACK * max(float((np.abs(slope) * np.maximum(np.abs(self.low[i]), np.abs(self.high[i]))).max()), 1e-300)
        varies = float((np.abs(slope) * width)[own == 0].max(initial=0.0))
        if bound.any():
            steep = slope[bound] / own[bound]
            varies = max(varies, float(np.ptp(steep) if self.equal else np.abs(steep).max()) * float(left))
        if varies > scale:
            return None
        v = sides * (left / sides.sum() if bound.any() else 0.0)
        v = before - v if turned else v
        return float(slope @ (self._ends[2][i] + np.divide(v, own, out=np.zeros_like(v), where=own != 0)))

    @property
    def width(self) -> int:
        """Words of one proposal."""
        return int(self.low.shape[1]) + 1

    @cached_property
    def _tilts(self) -> FloatArray:
        """The tilt of each room that is cut; 0 elsewhere."""
        width, left, _, _, _ = self._cut
        tilts = np.zeros(len(left))
        cut = np.flatnonzero(~self._plain)
        sides = width[cut].copy()
        if self.equal:
            sides[np.arange(len(cut)), sides.argmax(axis=1)] = 0.0  # solved for, not proposed
        tilts[cut] = _tilt(sides, left[cut])
        return tilts

    @cached_property
    def _bends(self) -> FloatArray:
        return np.expm1(-self._tilts[:, None] * self._cut[0])

    def draw(self, which: IntArray, draws: IntArray, words: Words) -> FloatArray:
        """Return one point of room which[i] for draw draws[i]."""
        made = first_accepted(draws, words, self.width, lambda at, w: self.propose(which[at], w), self.low.shape[1])
        return made.all_from("a box cut by one row")

    def propose(self, which: IntArray, words: WordArray) -> tuple[FloatArray, BoolArray]:
        """Return one proposal per row of words, and which of them are accepted."""
        u = open_unit(words)
        d = self.low.shape[1]
        plain = self._plain[which]
        good = np.ones(len(which), dtype=bool)
        v = np.empty((len(which), d))
        for some, how in ((plain, self._spaced), (~plain, self._tilted)):
            if some.all():
                v, good = how(which, u)
            elif some.any():
                v[some], good[some] = how(which[some], u[some])
        turned = self._cut[3][which]
        if turned.any():
            v = np.where(turned[:, None], _of(self._cut[2], which) - v, v)
        slope, beside = _of(self.slope, which), _of(self._ends[0], which) * u[:, :d]  # a coordinate outside the row is uniform
        moved = np.divide(v, slope, out=beside, where=slope != 0)
        moved += _of(self._ends[2], which)
        return np.clip(moved, _of(self.low, which), _of(self.high, which), out=moved), good

    def _spaced(self, which: IntArray, u: FloatArray) -> tuple[FloatArray, BoolArray]:
        sides, whole = _of(self._cut[0], which), self._cut[4][which]
        d = sides.shape[1]
        spread = np.where(sides > 0, -np.log(u[:, :d]), 0.0)
        total = spread.sum(axis=1) - (0.0 if self.equal else np.log(u[:, d]))
        spread *= (self._cut[1][which] / np.where(total > 0, total, 1.0))[:, None]
        return np.where(whole[:, None], sides * u[:, :d], spread), np.ones(len(u), dtype=bool)

    def _tilted(self, which: IntArray, u: FloatArray) -> tuple[FloatArray, BoolArray]:
        sides, tilts = _of(self._cut[0], which), self._tilts[which]
        d = sides.shape[1]
        v = truncated(_of(self._tilts, which)[:, None], sides, u[:, :d], _of(self._bends, which))
        rows = np.arange(len(v))
        if self.equal:
            last = np.broadcast_to(sides.argmax(axis=1), (len(v),))
            v[rows, last] = 0.0
        over = self._cut[1][which] - v.sum(axis=1)
        good = (over >= 0) & (u[:, d] < np.exp(-tilts * np.maximum(over, 0.0)))
        if self.equal:
            good &= over <= np.broadcast_to(sides, v.shape)[rows, last]
            v[rows, last] = over
        return v, good


def _of(table: FloatArray, which: IntArray) -> FloatArray:
    """Return the rows of a table; the table itself where it has one row, which then stands for all."""
    return table if len(table) == 1 else table[which]


def truncated(tilt: FloatArray, width: FloatArray, u: FloatArray, bend: FloatArray) -> FloatArray:
    """Return the value of density ``exp(-tilt·v)`` on [0, width] below which a share u lies; tilt is 0 or more, bend is ``expm1(-tilt·width)``."""
    with np.errstate(divide="ignore", invalid="ignore"):
        bent = np.log1p(u * bend)
        bent /= -tilt
    np.minimum(bent, width, out=bent)
    return bent if (bend < 0).all() else np.asarray(np.where(bend < 0, bent, u * width))


def mean_of(tilt: FloatArray, width: FloatArray) -> FloatArray:
    """Return the mean of that density."""
    x = tilt * width
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        bent = 1.0 / tilt - width / np.expm1(x)
    return np.asarray(np.where(x < 1e-4, width * (0.5 - x / 12), bent))


def _tilt(sides: FloatArray, rest: FloatArray) -> FloatArray:
    """Return the tilt for which the means of all sides add up to the rest; 0 where the middle of the box is below it."""
    high = (sides > 0).sum(axis=1) / np.maximum(rest, 1e-300)  # a mean is below 1/tilt
    low = np.zeros_like(high)
    for _ in range(50):
        middle = (low + high) / 2
        above = mean_of(middle[:, None], sides).sum(axis=1) > rest
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray(np.where(sides.sum(axis=1) / 2 <= rest, 0.0, high))


@lru_cache(maxsize=65_536)
def log_simplex(sides: tuple[float, ...], rest: float, power: int) -> float:
    """Return the logarithm of ``Σ ± (rest - sum of some sides)^power / power!`` over all sets of sides, exactly summed.

    With power = len(sides) that is the volume of the box below ``Σ v = rest``; with one less, of the slice there, seen along one
    coordinate. Decimals are taken as they are written, so that equal sums meet; not a number where more than `TERMS` differ.
    """
    whole = Fraction(repr(rest))
    sums: dict[Fraction, int] = {Fraction(0): 1}
    for side in sides:
        step = Fraction(repr(side))
        more = dict(sums)
        for have, times in sums.items():
            if have + step < whole:
                more[have + step] = more.get(have + step, 0) - times
        sums = {have: times for have, times in more.items() if times}
        if len(sums) > TERMS:
            return math.nan
    total = sum((times * (whole - have) ** power for have, times in sums.items()), Fraction(0)) / math.factorial(power)
    return math.log(total.numerator) - math.log(total.denominator) if total > 0 else -math.inf
