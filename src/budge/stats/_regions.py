"""Exact regions for two rates: lower bounds of a difference, and p-values from the same region.

Every pair of rates (x, y) has a p-value: the smaller of two. The first combines two independent exact tails as weighted normal scores
w1 max(z1, -CUT) + w2 max(z2, -CUT), |w| = 1, with weights that depend on the rates alone, and takes 0.95 of the error: scores of exact tails are at
most normal, and the cut raises the tail of their sum by less than one percent. The second is that of exact bounds on single rates, which share the
other 0.05 (Berger and Boos, 1994). The region at error a holds all pairs of rates whose p-value is a or more. Its smallest difference is the lower
bound, and the largest p-value over all pairs without a positive difference is the p-value of "greater".

Both are searched in the unit square, divided into cells. Tails are monotone in each rate, so the evidence against all points of a cell is at least
that of one corner, up to the weights, whose range over the cell is known. Cells that may hold a better point are divided again, the others
are left out: the result is never too favourable, and close to the extreme (`GAP`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, ndtr, ndtri

from budge.stats._checks import Floats

__all__ = ["Pairs", "TwoSamples", "search"]

CUT = 1.5  # scores below -CUT count as -CUT, so that no tail can cancel the other one
RAISED = 1.01  # by what factor the cut raises the tail of the sum at most, where the sum is not negative
SHARE = 0.95  # of the error, for the combined scores; the rest is for bounds on single rates
GAP = 2e-3  # how far a result may lie from the extreme: a bound relative to its distance from the estimate, a p-value to itself
LEAST_P = 1e-15  # smaller p-values are not searched for
ROUNDS, MANY, BATCH = 40, 500_000, 128  # the search ends there, with what is proved so far

Two = tuple[Floats, Floats]


@dataclass(frozen=True)
class TwoSamples:
    """Hits k1 of n1 and k2 of n2 from independent samples, one row (k1, n1, k2, n2) each; x is the first rate, y the second."""

    rows: Floats

    def differences(self, cells: Floats) -> Two:
        """Return the least difference in each cell, and that at the corner with the least evidence."""
        x0, x1, y0, y1 = cells
        return x0 - y1, x1 - y0

    def p_values(self, cells: Floats, of: NDArray[np.int64]) -> Two:
        """Return upper bounds of the p-value over each cell, and the p-value at its corner: many hits first, few second."""
        x0, x1, y0, y1 = cells
        k1, n1, k2, n2 = self.rows[of].T
        many, few = _at_least(k1, n1, x1), _at_least(n2 - k2, n2, 1 - y0)
        first, second = (x1 * (1 - x1) / n1, x0 * (1 - x0) / n1), (y0 * (1 - y0) / n2, y1 * (1 - y1) / n2)
        return _p_values((many, few), 40 * np.minimum(many, few), (first[0], second[0]), first, second)


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

    def p_values(self, cells: Floats, of: NDArray[np.int64]) -> Two:
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
        over, p = problem.p_values(cells, of)
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
