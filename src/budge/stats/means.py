"""The mean rate over rows that differ, each with a fixed number of draws: a law for `budge.stats.claim`, by one of several methods.

`pooled`: the rows are fixed. With equal draws the pooled count is a sum of unlike coins. Its upper tail at k is no heavier than the binomial's with
the same mean rate r where k >= n r + 1, its lower tail where k <= n r - 1 (Hoeffding 1956); outside, it can be heavier. So the binomial tail is used
there only, Markov's inequality for one hit (or one miss), and no claim is made otherwise. With unequal draws: Hoeffding's inequality of 1963.
`clustered` and `bounded`: the rows are a sample of a population, and the repeats of one row are not new rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincc, betainccinv

from budge.errors import DesignError
from budge.stats._checks import Claim, Floats, fraction, one_of, unwrap
from budge.stats.counts import Counts
from budge.stats.evidence import solve
from budge.stats.quantiles import log_wealth
from budge.stats.tails import at_least, at_most, invert_at_least, invert_at_most

__all__ = ["Mean", "clustered_p_value", "pooled_bounds", "pooled_p_value"]

TUNED = 0.025  # the error at which the bets of `bounded` are best, that of an end of an interval at 95 %; they are valid at every other


class Mean:
    """The law of the mean over all rows of the counts: curves with one entry. Draws without an answer count against each claim."""

    def __init__(self, counts: Counts, method: str) -> None:
        self.how = one_of(method, "mean", ("pooled", "clustered", "bounded"))
        assert counts.is_law("sample").all(), "a mean over rows needs a fixed number of draws of each"
        if self.how == "clustered" and len(counts) < 2:
            raise DesignError("one row does not show the spread between rows", where="hits", got=len(counts), remedy="sample more rows")
        self.m, approximate = counts.n.astype(float), self.how == "clustered" or bool(counts.approximate.any())
        #: What was seen of all rows: draws are summed, shares are means over rows.
        self.total = Counts.of(
            counts.hits.sum(), counts.n.sum(), counts.unresolved.sum(), hit_mass=(counts.hits / self.m).mean(),
            lost_mass=(counts.unresolved / self.m).mean(), approximate=approximate,
        )  # fmt: skip
        self.hits = {"below": float((counts.hits + counts.unresolved).sum()), "above": float(counts.hits.sum())}
        # The surprises of each claim, as shares of the draws of each row.
        self.shares = {"below": (counts.hits + counts.unresolved) / self.m, "above": 1 - counts.hits / self.m}
        self.worth = self.m.size**2 / (1 / self.m).sum()  # draws whose mean strays no further than the mean over rows, by the inequality of 1963
        if self.how == "pooled" and (self.m != self.m[0]).any():
            self.how = "Hoeffding (unequal draws)"

    def p_value(self, rate: float | Floats, claim: Claim) -> Floats:
        """Return the p-value of the claim against the rate."""
        if self.how == "pooled":
            return np.atleast_1d(pooled_p_value(self.hits[claim], self.m.sum(), rate, claim))
        x, r = self.shares[claim], np.atleast_1d(rate if claim == "below" else 1.0 - np.asarray(rate))
        if self.how == "clustered":
            return np.atleast_1d(clustered_p_value(x, self.m.sum(), r))
        if self.how == "bounded":
            return np.exp(np.clip(-log_wealth(1 - x, 1 - r, TUNED), -690.0, 0.0))  # not 0: nothing is known for sure
        return np.asarray(np.exp(-2 * self.worth * np.maximum(r - x.mean(), 0.0) ** 2), np.float64)

    def bound(self, alpha: float, claim: Claim) -> Floats:
        """Return the one-sided bound: upper for `below`, lower for `above`."""
        below, x = claim == "below", self.shares[claim]
        if self.how == "pooled":
            return np.atleast_1d(pooled_bounds(self.hits[claim], self.m.sum(), alpha)[below])
        if self.how == "clustered":
            hits, misses = _effective_draws(x, self.m.sum())
            end: Floats = np.atleast_1d(betainccinv(hits + 1, misses, alpha))
        elif self.how == "bounded":
            end = solve(lambda r: self.p_value(r if below else 1 - r, claim) < alpha, (1,))
        else:
            end = np.atleast_1d(np.minimum(1.0, x.mean() + np.sqrt(np.log(1 / alpha) / (2 * self.worth))))
        return end if below else 1 - end


def pooled_bounds(hits: ArrayLike, n: ArrayLike, alpha: object) -> tuple[Floats, Floats]:
    """Return one-sided bounds, each at alpha, of the mean rate over fixed rows with equal draws: `hits` of `n` in all.

    Clopper-Pearson's bounds, moved outwards to (hits - 1) / n and (hits + 1) / n where they lie closer to hits / n than that:
    the pooled count is known to be no worse than binomial outside of these only. One hit gives alpha / n.

    Examples
    --------
    >>> low, high = pooled_bounds(3, 8, 0.025)
    >>> round(low, 4), round(high, 4)
    (0.0852, 0.7551)
    >>> pooled_bounds(1, 100, 0.05)[0]
    0.0005
    """
    level, k, n = fraction(alpha, "alpha"), np.asarray(hits, float), np.asarray(n, float)
    low = np.where(k == 1, level / n, np.minimum(invert_at_least(k, n, level), (k - 1) / n))
    high = np.where(k == n - 1, 1.0 - level / n, np.maximum(invert_at_most(k, n, level), (k + 1) / n))
    return unwrap(np.where(k > 0, low, 0.0)), unwrap(np.where(k < n, high, 1.0))


def pooled_p_value(hits: ArrayLike, n: ArrayLike, rate: ArrayLike, claim: Claim) -> Floats:
    """Return the p-value of the pooled count: below alpha if and only if the bound of `pooled_bounds` is beyond the rate."""
    k, n, r = np.asarray(hits, float), np.asarray(n, float), np.asarray(rate, float)
    if claim == "above":
        return np.where(k == 1, np.minimum(1.0, n * r), np.where(r < (k - 1) / n, at_least(k, n, r), 1.0))
    return np.where(k == n - 1, np.minimum(1.0, n * (1 - r)), np.where(r > (k + 1) / n, at_most(k, n, r), 1.0))


def _effective_draws(means: Floats, draws: float) -> tuple[Floats, Floats]:
    """Return hits and misses of a binomial sample that is worth as much as the means of sampled rows (last axis); for upper bounds.

    Approximate, and tested by simulation: the error stays within half a point of alpha from 30 rows on. The spread between rows is estimated with
    one imagined row at the worst end added: without it, a few rows that happen to agree would promise far too much (simulated error 0.116 at
    nominal 0.05 with 30 rows). Row means in [0, 1] never spread more than single draws do, so the rows are worth at least one draw each, and at
    most all of theirs.
    """
    rows, mean = means.shape[-1], means.mean(axis=-1)
    # The variance of rows and imagined row together, from that of the rows.
    spread = (((means - mean[..., None]) ** 2).sum(axis=-1) + (1 - mean) ** 2 * rows / (rows + 1)) / rows
    size = np.clip(rows * mean * (1 - mean) / np.where(spread > 0, spread, 1.0), rows, draws)
    return mean * size, np.maximum(size - mean * size, 1e-300)


def clustered_p_value(means: Floats, draws: float, threshold: float | Floats) -> Floats:
    """Return the p-value of `below` for the population, from the means of sampled rows (last axis)."""
    hits, misses = _effective_draws(means, draws)
    return np.asarray(betaincc(hits + 1, misses, threshold))
