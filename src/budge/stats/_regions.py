"""Exact regions for two rates: lower bounds of a difference, and p-values from the same region.

Every pair of rates (x, y) has a p-value. The region at error a holds all pairs of rates whose p-value is a or more. Its smallest difference is the
lower bound, and the largest p-value over all pairs without a positive difference is the p-value of "greater".

Two samples of at most `SIZE` draws together: all possible counts are put in order before looking, by an approximate lower bound at a fixed error, and
the p-value is the probability of counts that are at least as strong as those seen (Buehler 1957; Kabaila and Lloyd 2002). An order serves errors
near its own best, so each range of errors in `LADDER` has one. From the largest errors down, the first range whose probability does not lie
below the range has the p-value, which is no larger than the range: at each error a, the p-value is below a only if the probability by the order of a is.

Pairs, and larger samples: the smaller of two p-values. The first combines two independent exact tails as weighted normal scores
w1 max(z1, -CUT) + w2 max(z2, -CUT), |w| = 1, with weights that depend on the rates alone, and takes 0.95 of the error: scores of exact tails are at
most normal, and the cut raises the tail of their sum by less than one percent. The second is that of exact bounds on single rates, which share the
other 0.05 (Berger and Boos, 1994).

Bound and p-value are searched in the unit square, divided into cells. Tails are monotone in each rate, and so are the probabilities of ordered counts:
stronger counts have more hits first and fewer second. So the evidence against all points of a cell is at least that of one corner, up to the weights of
combined tails, whose range over the cell is known. Cells that may hold a better point are divided again, the others are left out: the result is never
too favourable, and close to the extreme (`GAP`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammaln, ndtr, ndtri

from budge.stats._checks import Floats
from budge.stats.tails import invert_at_least, invert_at_most

__all__ = ["OrderedSamples", "Pairs", "TwoSamples", "search"]

CUT = 1.5  # scores below -CUT count as -CUT, so that no tail can cancel the other one
RAISED = 1.01  # by what factor the cut raises the tail of the sum at most, where the sum is not negative
SHARE = 0.95  # of the error, for the combined scores; the rest is for bounds on single rates
GAP = 2e-3  # how far a result may lie from the extreme: a bound relative to its distance from the estimate, a p-value to itself
LEAST_P = 1e-15  # smaller p-values are not searched for
ROUNDS, MANY, BATCH = 40, 500_000, 128  # the search ends there, with what is proved so far
SIZE = 400  # draws of two samples together, up to which all counts are put in order
# The least error of each range, and the error whose bounds order the counts in that range.
LADDER = (*((0.45 / 3**i, min(0.5, 0.675 / 3**i)) for i in range(12)), (0.0, 1e-6))
ROUNDING = 1 + 1e-10  # by what factor a sum of probabilities may be off
CHUNK = 100_000  # numbers held at a time

Two = tuple[Floats, Floats]


@dataclass(frozen=True)
class TwoSamples:
    """Hits k1 of n1 and k2 of n2 from independent samples, one row (k1, n1, k2, n2) each; x is the first rate, y the second."""

    rows: Floats

    def differences(self, cells: Floats) -> Two:
        """Return the least difference in each cell, and that at the corner with the least evidence."""
        x0, x1, y0, y1 = cells
        return x0 - y1, x1 - y0

    def p_values(self, cells: Floats, of: NDArray[np.int64], floor: Floats) -> Two:
        """Return upper bounds of the p-value over each cell, and the p-value at its corner: many hits first, few second."""
        x0, x1, y0, y1 = cells
        k1, n1, k2, n2 = self.rows[of].T
        many, few = _at_least(k1, n1, x1), _at_least(n2 - k2, n2, 1 - y0)
        first, second = (x1 * (1 - x1) / n1, x0 * (1 - x0) / n1), (y0 * (1 - y0) / n2, y1 * (1 - y1) / n2)
        return _p_values((many, few), 40 * np.minimum(many, few), (first[0], second[0]), first, second)


class OrderedSamples(TwoSamples):
    """Two samples whose possible counts are few enough to be put in order; all rows have the same n1 and n2."""

    @cached_property
    def orders(self) -> list[NDArray[np.int64]]:
        """Return the orders that have been needed so far."""
        return []

    def stronger(self, step: int) -> NDArray[np.int64]:
        """Return for each row and first count how many second counts, from 0 on, are no weaker than those seen, by the order of a step of the ladder."""
        k1, n1, k2, n2 = self.rows.astype(int).T
        strength = _strength(n1[0], n2[0], LADDER[step][1])
        return np.array([(strength >= seen).sum(axis=1) for seen in strength[k1, k2]])

    def p_values(self, cells: Floats, of: NDArray[np.int64], floor: Floats) -> Two:
        """Return the p-value at the corner of each cell with the least evidence, twice: no point of the cell has a larger one.

        P-values that are no larger than `floor` are of no interest, and may be returned as 0.
        """
        x, at_x = np.unique(cells[1], return_inverse=True)
        y, at_y = np.unique(cells[2], return_inverse=True)
        n1, n2 = (int(n) for n in self.rows[0, [1, 3]])
        first = _chances(n1, x)
        second = np.concatenate([np.zeros((y.size, 1)), np.cumsum(_chances(n2, y), axis=1)], axis=1).ravel()
        p, top, open_, most = np.zeros(of.size), 1.0, np.arange(of.size), CHUNK // (n1 + 1) + 1
        for step, (bottom, _) in enumerate(LADDER):
            open_ = open_[floor[of[open_]] < top]
            if not open_.size:
                break
            if step == len(self.orders):
                self.orders.append(self.stronger(step))
            chance = np.empty(open_.size)
            for i in range(0, open_.size, most):
                part = open_[i : i + most]
                at_most = second.take((n2 + 2) * at_y[part][:, None] + self.orders[step][of[part]])
                chance[i : i + most] = np.einsum("ij,ij->i", first[at_x[part]], at_most)
            chance *= ROUNDING
            settled = chance >= bottom
            p[open_[settled]] = np.minimum(chance[settled], np.nextafter(top, 0.0))
            open_, top = open_[~settled], bottom
        return p, p


@dataclass(frozen=True)
class Pairs:
    """Draws judged twice, one row (b, least, most, n) each: b hit only the first time, from `least` to `most` of n differ.

    x is the rate at which they differ, y the share of the differing draws that hit the first time, so the difference is x (2 y - 1).
    `least` and `most` are apart where answers are missing: each tail takes the worse.
    """

    rows: Floats

    def differences(self, cells: Floats) -> Two:
        """Return the least difference in each cell, and that at the corner with the least evidence."""
        x0, x1, y0, y1 = cells
        upper = y0 >= 0.5  # no cell has points on both sides of 1/2
        return (2 * y0 - 1) * np.where(upper, x0, x1), (2 * y1 - 1) * np.where(upper, x1, x0)

    def p_values(self, cells: Floats, of: NDArray[np.int64], floor: Floats) -> Two:
        """Return upper bounds of the p-value over each cell, and that at its corner: many first; how many differ, by the sign."""
        x0, x1, y0, y1 = cells
        b, least, most, n = self.rows[of].T
        upper = y0 >= 0.5
        more, fewer, favour = _at_least(least, n, x1), _at_least(n - most, n, 1 - x0), _at_least(b, most, y1)
        alone = np.minimum(80 * np.minimum(more, fewer), 40 * favour)
        lean, same = ((2 * y1 - 1) ** 2, (2 * y0 - 1) ** 2), 1 - np.where(upper, x1, x0)
        first = np.minimum(*lean) * (1 - x1), np.maximum(*lean) * (1 - x0)
        corner, second = (lean[0] * same, 1 - lean[0]), (1 - lean[0], 1 - lean[1])
        return _p_values((np.where(upper, more, fewer), favour), alone, corner, first, second)


def _strength(n1: int, n2: int, level: float) -> Floats:
    """Return an approximate lower bound of the difference for all counts: distances to exact bounds of both rates, squared and added (Newcombe 1998).

    It orders the counts, and the error of the approximation is of no matter. More hits first and fewer second never have a lower value. Where both samples
    have one size, hits of one for misses of the other have the very same value: only one of the two is searched.
    """
    first, second = np.arange(n1 + 1.0), np.arange(n2 + 1.0)
    below = first / n1 - invert_at_least(first, np.full(n1 + 1, n1), np.full(n1 + 1, level))
    above = invert_at_most(second, np.full(n2 + 1, n2), np.full(n2 + 1, level)) - second / n2
    bound = (first / n1)[:, None] - second / n2 - np.hypot(below[:, None], above)
    if n1 == n2:
        bound = np.maximum(bound, bound[::-1, ::-1].T)
    rising = np.maximum.accumulate(bound, axis=0)
    return np.asarray(np.maximum.accumulate(rising[:, ::-1], axis=1)[:, ::-1])


def _chances(n: int, rates: Floats) -> Floats:
    """Return the binomial probabilities of 0 to n, one row per rate."""
    k = np.arange(n + 1.0)
    ways = gammaln(n + 1.0) - gammaln(k + 1) - gammaln(n - k + 1)
    hit, miss = (np.log(np.maximum(r, 1e-300))[:, None] for r in (rates, 1 - rates))
    return np.asarray(np.exp(ways + k * hit + (n - k) * miss))


def _at_least(k: Floats, n: Floats, r: Floats) -> Floats:
    """Return P(Binomial(n, r) >= k), without the care for the last bit of `tails.at_least`: millions are needed."""
    some = np.maximum(k, 1.0)
    return np.where(k > 0, betainc(some, np.maximum(n - some, 0.0) + 1.0, r), 1.0)


def _p_values(tails: Two, alone: Floats, corner: Two, first: Two, second: Two) -> Two:
    """Return the p-value with the least favourable weights between the ends `first` and `second`, and with those of the corner; all are squares.

    Where the combined score is not negative it is concave in the angle of the weights, so its smallest value is at an end of their range.
    """
    z1, z2 = (np.maximum(-ndtri(np.clip(tail, 1e-300, 1.0)), -CUT) for tail in tails)

    def score(v1: Floats, v2: Floats) -> Floats:
        return np.asarray((np.sqrt(v1) * z1 + np.sqrt(v2) * z2) / np.sqrt(np.maximum(v1 + v2, 1e-300)))

    def p_value(s: Floats) -> Floats:
        return np.minimum(np.where(s < 0, 1.0, RAISED / SHARE * ndtr(-s)), np.minimum(alone, 1.0))

    ends = score(np.maximum(*first), np.minimum(*second)), score(np.minimum(*first), np.maximum(*second))
    return p_value(np.minimum(*ends)), p_value(score(*corner))


def search(problem: TwoSamples | Pairs, a: float | None) -> Floats:
    """Return, per row, the least difference whose p-value is a or more; without `a`, the p-value of "the first rate is greater"."""
    if isinstance(problem, TwoSamples):
        return _search_two_samples(problem.rows, a)
    return _search_all(problem, a)


def _search_two_samples(rows: Floats, a: float | None) -> Floats:
    """Search small samples by order and large ones by tails.

    Hits of one sample are misses of the other: of the two ways to write the same problem down, one is searched, so that both have the same result.
    """
    k1, n1, k2, n2 = rows.T
    other = np.where((n1 > n2) | ((n1 == n2) & (k1 > n2 - k2)), 1, 0)[:, None]
    rows = np.where(other, np.stack([n2 - k2, n2, n1 - k1, n1], axis=1), rows)
    rows, where = np.unique(rows, axis=0, return_inverse=True)
    found = np.zeros(len(rows))
    sizes = np.where((rows[:, 1] + rows[:, 3] <= SIZE)[:, None], rows[:, [1, 3]], 0)
    for size in np.unique(sizes, axis=0):
        same = (sizes == size).all(axis=1)
        found[same] = _search_all((OrderedSamples if size[0] else TwoSamples)(rows[same]), a)
    return found[where.ravel()]


def _search_all(problem: TwoSamples | Pairs, a: float | None) -> Floats:
    """Search the rows in batches."""
    parts = [_search(type(problem)(problem.rows[i : i + BATCH]), a) for i in range(0, len(problem.rows), BATCH)]
    return np.concatenate(parts) if parts else np.zeros(0)


def _search(problem: TwoSamples | Pairs, a: float | None) -> Floats:
    """Search all cells at once: only points below the `ceiling` of differences and above the `floor` of p-values matter.

    One of the two is given, the other one moves with the best point that was found.
    """
    k, n, k2, n2 = problem.rows.T
    size, paired = len(k), isinstance(problem, Pairs)
    seen = (2 * k - k2) / n2 if paired else k / n - k2 / n2
    floor = np.full(size, 0.0 if a is None else np.nextafter(a, 0.0))
    ceiling = np.full(size, 0.0 if a is None else np.inf)
    found = np.full(size, 1.0 if a is None else -1.0)
    cells, of = np.repeat([[0.0], [1.0], [0.0], [1.0]], size, axis=1), np.arange(size)
    open_ = np.ones(size, np.bool_)
    for turn in range(ROUNDS):
        # Pairs at difference 0 have one p-value, whatever the rate at which they differ: dividing that rate on would not end.
        for axis in (1,) if a is None and turn > 2 and paired else (0, 1):
            left, right = cells.copy(), cells.copy()
            left[2 * axis + 1] = right[2 * axis] = (cells[2 * axis] + cells[2 * axis + 1]) / 2
            cells, of = np.concatenate([left, right], axis=1), np.tile(of, 2)
        least, at = problem.differences(cells)
        keep = least < ceiling[of]
        cells, of, least, at = cells[:, keep], of[keep], least[keep], at[keep]
        over, p = problem.p_values(cells, of, floor)
        inside = (p > floor[of]) & (at <= ceiling[of])
        if a is None:
            np.maximum.at(floor, of[inside], p[inside])
        else:
            np.minimum.at(ceiling, of[inside], at[inside])
        keep = (over > floor[of]) & (least < ceiling[of])
        cells, of, least, over = cells[:, keep], of[keep], least[keep], over[keep]
        # What was left out has nothing better than the best point, and what is kept nothing better than its bounds.
        if a is None:
            best = floor.copy()
            np.maximum.at(best, of, over)
            apart = (best > floor * (1 + GAP)) & (best > LEAST_P)
        else:
            best = ceiling.copy()
            np.minimum.at(best, of, least)
            apart = ceiling - best > np.maximum(GAP * (seen - ceiling), 1e-7)
        found = np.where(open_, best, found)
        open_ &= apart
        cells, of = cells[:, open_[of]], of[open_[of]]
        if not 0 < of.size <= MANY:
            break
    return found
