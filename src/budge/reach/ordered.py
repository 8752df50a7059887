"""Coordinates in a chain: each within its own bounds, each at most the next one, up to factors and shifts; drawn exactly in any number of dimensions.

Bounds cut the line into cells. How many coordinates lie in each cell is counted by their volumes, ``Π width^count / count!``; given that, those of a cell are
uniform numbers in order. Of whole numbers there are ``Π C(width + count - 1, count)`` choices; those of a cell are drawn from an urn to which every number
that is drawn is added once more, which makes all choices equally likely. All terms are positive, so that nothing cancels.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import numpy.typing as npt

from budge.reach.accept import Words
from budge.reach.room import SLACK, THIN
from budge.reach.streams import WordArray, below, open_unit

__all__ = ["Ordered"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
MOST_WORK = 2e7  # terms of all sums over cells, in one chain
STEEPEST = 1e6  # factor by which scales may differ along a chain
MOST_TERMS = 50_000  # of the sum that tells how many chains of whole numbers there are


class Ordered:
    """m chains of d coordinates: ``z_0 <= z_1 <= …`` with ``z = scale · y + shift``, each y within its bounds; columns in the order of the chain.

    Examples
    --------
    >>> import numpy as np
    >>> from budge.reach.accept import fixed_words
    >>> chain = Ordered(np.zeros((1, 3)), np.ones((1, 3)), np.ones((1, 3)), np.zeros((1, 3)), np.array([2, 0, 1]))
    >>> round(float(np.exp(-chain.log_volumes[0])), 9), chain.dimensions.tolist()
    (6.0, [3])
    >>> y = chain.draw(np.zeros(5, dtype=int), np.arange(5), fixed_words("example"))
    >>> bool((y[:, 2] <= y[:, 0]).all() and (y[:, 0] <= y[:, 1]).all())
    True
    """

    def __init__(self, low: FloatArray, high: FloatArray, scale: FloatArray, shift: FloatArray, order: IntArray, whole: bool = False) -> None:
        ends = np.stack([scale * low + shift, scale * high + shift])
        ends = np.where(scale > 0, ends, ends[::-1])
        self.low = np.maximum.accumulate(ends[0], axis=1)
        self.high = np.minimum.accumulate(ends[1][:, ::-1], axis=1)[:, ::-1]
        self.scale, self.shift, self.order, self.whole = scale, shift, order, whole
        size = (not whole) * np.maximum(1.0, np.abs(ends).max(axis=(0, 2)))[:, None]  # whole numbers are not rounded
        self.empty: BoolArray = (self.low > self.high + SLACK * size).any(axis=1)
        self._free = self.high - self.low > THIN * size
        self._cells: dict[int, _Cells] = {}

    @classmethod
    def of(cls, slopes: FloatArray, limits: FloatArray, low: FloatArray, high: FloatArray) -> Ordered | None:
        """Return what rows ``slopes · y <= limits``, (m, rows, d), leave of boxes; None where they are no chain, or too long a one."""
        found = _path(slopes)
        if found is None:
            return None
        rows, order = found
        scale, shift = np.ones(low.shape), np.zeros(low.shape)
        ways = []
        for k, row in enumerate(rows):
            a, b, c = slopes[:, row, order[k]], slopes[:, row, order[k + 1]], limits[:, row]
            steep = a / scale[:, k]
            ways.append(steep > 0)
            scale[:, k + 1], shift[:, k + 1] = -b / steep, c / steep + shift[:, k]
        size = np.abs(scale)
        if (size.max(axis=1) > STEEPEST * size.min(axis=1)).any() or not (np.all(ways) or not np.any(ways)):
            return None
        if not np.any(ways):  # from the highest to the lowest
            order, scale, shift = order[::-1], scale[:, ::-1], shift[:, ::-1]
        made = cls(low[:, order], high[:, order], scale, shift, order)
        return made if made.is_short else None

    @property
    def is_short(self) -> bool:
        """Whether the sums over cells have few enough terms."""
        return all(self._of(i).work <= MOST_WORK for i in np.flatnonzero(~self.empty).tolist())

    def _of(self, i: int) -> _Cells:
        if i not in self._cells:
            self._cells[i] = _Cells(self.low[i, self._free[i]], self.high[i, self._free[i]], self.whole)
        return self._cells[i]

    @property
    def dimensions(self) -> IntArray:
        """Dimension of each; -1 where it is empty."""
        return np.where(self.empty, -1, self._free.sum(axis=1))

    @cached_property
    def log_volumes(self) -> FloatArray:
        """Logarithm of the volume of each within its own affine hull: 0 for a point, -inf where it is empty."""
        stretch = np.where(self._free, np.log(np.abs(self.scale)), 0.0).sum(axis=1)
        return np.array([-np.inf if gone else self._of(i).logs[-1][-1] - stretch[i] for i, gone in enumerate(self.empty)])

    @property
    def size(self) -> int | None:
        """Number of points of the first chain, which is one of whole numbers; None where that takes too long to tell."""
        low, high = (ends[0].astype(np.int64).tolist() for ends in (self.low, self.high))
        if self.empty[0]:
            return 0
        if sum(min(k + 1, high[k] - low[k] + 1) for k in range(len(low))) > MOST_TERMS:
            return None
        found = [1]  # by how many numbers; those that fall at the end instead of rising are taken off
        for k, least in enumerate(low):
            terms, j = 0, 1
            while j <= k + 1 and high[k + 1 - j] - least + 1 >= j:
                terms += (-1) ** (j - 1) * found[k + 1 - j] * math.comb(high[k + 1 - j] - least + 1, j)
                j += 1
            found.append(terms)
        return found[-1]

    def listed(self) -> FloatArray:
        """Return every point of the first chain once, which is one of whole numbers."""
        columns, last = list[FloatArray](), np.array([-np.inf])
        for low, high in zip(self.low[0], self.high[0]):
            least = np.maximum(last, low)
            counts = (high - least + 1).astype(np.intp)
            rows = np.repeat(np.arange(len(least)), counts)
            last = least[rows] + np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]
            columns = [*(column[rows] for column in columns), last]
        points = np.empty((len(last), len(columns)))
        points[:, self.order] = (np.stack(columns, axis=1) - self.shift[0]) / self.scale[0]
        return points

    def value(self, i: int, slope: FloatArray) -> float | None:
        """Return ``slope · y`` where it is the same everywhere in chain i, else None."""
        own = slope[self.order]
        if own[self._free[i]].any():
            return None
        return float(own @ (((self.low[i] + self.high[i]) / 2 - self.shift[i]) / self.scale[i]))

    def draw(self, which: IntArray, draws: IntArray, words: Words) -> FloatArray:
        """Return one point of chain which[i] for draw draws[i]."""
        points = np.empty((len(which), len(self.order)))
        for i in np.unique(which).tolist():
            mine = np.flatnonzero(which == i)
            z = np.tile((self.low[i] + self.high[i]) / 2, (len(mine), 1))
            z[:, self._free[i]] = self._of(i).draw(draws[mine], words)
            points[np.ix_(mine, self.order)] = (z - self.shift[i]) / self.scale[i]
        return points


class _Cells:
    """Numbers in order, each between two ends that rise along the chain."""

    def __init__(self, low: FloatArray, high: FloatArray, whole: bool = False) -> None:
        self.n, self.whole = len(low), whole
        self.ends = np.unique(np.concatenate([low, high + whole])) if self.n else np.zeros(1)
        self.first = np.searchsorted(high + whole, self.ends[1:], side="left")  # the numbers that may lie in each cell
        self.past = np.searchsorted(low, self.ends[:-1], side="right")

    @property
    def work(self) -> float:
        """Number of terms of all sums."""
        return float((np.maximum(self.past - self.first, 0).astype(float) ** 2).sum())

    @property
    def width(self) -> int:
        """Words per draw."""
        return len(self.ends) - 1 + self.n

    @cached_property
    def logs(self) -> list[FloatArray]:
        """By how many cells and how many numbers in them: the logarithm of their volume."""
        found = [np.where(np.arange(self.n + 1) == 0, 0.0, -np.inf)]
        for j, (a, b) in enumerate(zip(self.first.tolist(), self.past.tolist())):
            now = found[-1].copy()
            if a < b:
                now[a : b + 1] = np.logaddexp.reduce(self._terms(j, np.arange(a, b + 1), found[-1]), axis=1)
            found.append(now)
        return found

    def _terms(self, j: int, upto: IntArray, before: FloatArray) -> FloatArray:
        """Return the logarithms of volumes with so many numbers up to cell j, one row each, by how many of them lie before it."""
        ahead = np.arange(self.first[j], self.past[j] + 1)
        inside = upto[:, None] - ahead
        each = np.arange(len(ahead) - 1.0)
        volume = np.r_[0.0, np.cumsum(np.log((self.ends[j + 1] - self.ends[j] + self.whole * each) / (each + 1)))]
        return np.where(inside >= 0, before[ahead] + volume[np.maximum(inside, 0)], -np.inf)

    def draw(self, draws: IntArray, words: Words) -> FloatArray:
        """Return numbers in order, one row per draw."""
        cells, some_words = len(self.ends) - 1, words(draws, 0, self.width)
        u = open_unit(some_words)
        left, cell = np.full(len(u), self.n), np.zeros((len(u), self.n), dtype=np.intp)
        for j in range(cells - 1, -1, -1):
            a, b = self.first[j], self.past[j]
            states, which = np.unique(left, return_inverse=True)
            some = (a < states) & (states <= b)
            if not some.any():
                continue
            shares = np.cumsum(np.exp(self._terms(j, states[some], self.logs[j]) - self.logs[j + 1][states[some], None]), axis=1)
            mine = np.flatnonzero(some[which])
            rows = (np.cumsum(some) - 1)[which[mine]]
            ahead = a + (shares[rows] < u[mine, j, None] * shares[rows, -1:]).sum(axis=1)
            spot = np.arange(self.n)
            cell[mine] = np.where((spot >= ahead[:, None]) & (spot < left[mine, None]), j, cell[mine])
            left[mine] = ahead
        if not self.whole:
            return np.sort(self.ends[cell] + np.diff(self.ends)[cell] * u[:, cells:], axis=1)

        def again(places: tuple[npt.NDArray[np.intp], ...], attempt: int) -> WordArray:
            return np.asarray(words(draws[places[0]], attempt, self.width)[np.arange(len(places[0])), cells + places[1]])

        spot = np.broadcast_to(np.arange(self.n), cell.shape)
        begin = np.maximum.accumulate(np.where(np.diff(cell, axis=1, prepend=-1) != 0, spot, 0), axis=1)  # of the numbers in the same cell
        values = np.diff(self.ends).astype(np.int64)[cell]
        number = below(some_words[:, cells:], values + spot - begin, again)
        found, copied = self.ends[cell] + number, number >= values
        for k in np.flatnonzero(copied.any(axis=0)).tolist():
            mine = np.flatnonzero(copied[:, k])
            found[mine, k] = found[mine, (begin + number - values)[mine, k]]
        return np.sort(found, axis=1)


def _path(slopes: FloatArray) -> tuple[list[int], IntArray] | None:
    """Return rows and coordinates along a path: connected rows with two coordinates each, the same in all configurations. None where they are none."""
    used = slopes[0] != 0
    if len(used) != used.shape[1] - 1 or (used.sum(axis=1) != 2).any() or (used.sum(axis=0) > 2).any() or ((slopes != 0) != used).any():
        return None
    rows, order = list[int](), [int(np.flatnonzero(used.sum(axis=0) == 1)[0])]
    while len(rows) < len(used):
        rows += [r for r in np.flatnonzero(used[:, order[-1]]).tolist() if r not in rows[-1:]]
        order += [j for j in np.flatnonzero(used[rows[-1]]).tolist() if j != order[-1]]
    return rows, np.array(order)
