"""Responsiveness averaged over a data set, and which rows the claim is about.

``over="these"``: the rows are fixed and rho is the mean of their responsiveness. ``over="population"``: the rows are a random
sample, so rows differ and repeats of one row are not new rows. Pooling repeats as one binomial is right for the first reading and
badly wrong for the second (a real error up to 0.275 at nominal 0.05), so the second refuses it.

The pooled count over fixed rows with equal draws is a sum of unlike coins. Its upper tail at k is no heavier than the binomial's
with the same mean rate r where k >= n r + 1, its lower tail where k <= n r - 1 (Hoeffding 1956); outside, it can be heavier. So the
binomial tail is used there only, Markov's inequality for one hit (or one miss), and no claim is made otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincc, betainccinv

from budge.errors import DesignError
from budge.stats._checks import Claim, Ends, Floats, claim_of, fraction, one_of, percent, with_missing
from budge.stats.binomial import lower_bound, p_value, upper_bound
from budge.stats.quantiles import lower_mean
from budge.stats.tails import at_least, at_most

__all__ = ["Average", "average", "clustered_bound", "clustered_p_value", "pooled_bounds"]

LEAST_P = 1e-300  # p-values are not searched below
METHODS = ("auto", "pooled", "one-per-row", "clustered", "bounded")


@dataclass(frozen=True)
class Average(Ends):
    """An average over rows: estimate, interval, and a p-value if a threshold was given."""

    estimate: float
    low: float
    high: float
    bound: float
    p_value: float | None
    rejected: bool | None
    rows: int
    draws: int
    over: str
    method: str
    exact: bool
    alpha: float
    claim: Claim
    threshold: float | None

    @property
    def verdict(self) -> str:
        """The claim where it is established, `inconclusive` otherwise."""
        return self.claim if self.rejected else "inconclusive"

    def __str__(self) -> str:
        whom = "over these" if self.over == "these" else "over the population of which"
        whom += f" {self.rows} rows" + ("" if self.over == "these" else " were sampled")
        tail, kind = "", "exact" if self.exact else "approximate"
        if self.p_value is not None:
            tail = f"; {self.claim} {self.threshold:g}: {'shown' if self.rejected else 'not shown'} (p = {self.p_value:.3g})"
        ends = f"between {self.low:.4g} and {self.high:.4g} at {percent(1 - self.alpha)}"
        return f"mean responsiveness {whom} is {self.estimate:.4g}, {ends} ({self.method}, {kind}){tail}"


def average(
    hits: object, draws: object = 1, *, over: str, unresolved: object = 0, threshold: object = None, claim: str = "below",
    alpha: object = 0.05, method: str = "auto",
) -> Average:  # fmt: skip
    """Return the mean responsiveness over rows, with an interval and (given a threshold) a test.

    Parameters
    ----------
    hits, draws : array
        For each row, its hits and its draws.
    over : {"these", "population"}
        What is claimed: the mean over exactly these rows, or over the population they were sampled from. Has no default, since
        the two differ.
    unresolved : int or array
        Draws without an answer, part of `draws`: counted against each end of the interval, and against the claim.
    method : {"auto", "pooled", "one-per-row", "clustered", "bounded"}
        For `these`: `pooled`. For `population`: `one-per-row` (exact, one draw each); `clustered` (several draws
        each, approximate: an effective number of draws from the spread between rows) or `bounded` (several draws each, guaranteed
        and wider). `auto` takes the exact one and refuses where there is none.

    Notes
    -----
    `pooled` needs equal draws per row: see `pooled_bounds`. With unequal draws, Hoeffding's inequality of 1963 is used.

    Examples
    --------
    >>> print(average([0, 2, 1, 0], 2, over="these"))
    mean responsiveness over these 4 rows is 0.375, between 0.08523 and 0.7551 at 95 % (pooled, exact)
    >>> average([0, 1, 0, 0, 1, 0, 0, 0], over="population", threshold=0.9).verdict
    'below'
    """
    k, m, lost = (np.atleast_1d(part).ravel() for part in with_missing(hits, draws, unresolved))
    if not k.size:
        raise DesignError("no rows: there is nothing to average", where="hits", got=hits, remedy="give at least one row")
    whom, side, level = one_of(over, "over", ("these", "population")), claim_of(claim), fraction(alpha, "alpha")
    tau = None if threshold is None else fraction(threshold, "threshold")
    how = one_of(method, "method", METHODS)
    if whom == "population" and (how == "pooled" or ((m > 1).any() and how in ("auto", "one-per-row"))):
        raise DesignError(
            "a population claim with pooled repeats: several draws from one row are not independent draws from the population",
            where="draws",
            got=int(m.max()),
            remedy='take one draw per row, or method="clustered" (approximate) or "bounded" (guaranteed); or over="these"',
        )
    if whom == "these" and how not in ("auto", "pooled"):
        what, remedy = f"method {how!r} is for population claims", 'method="pooled", or over="population"'
        raise DesignError(what, where="method", got=method, remedy=remedy)
    if how == "clustered" and k.size < 2:
        what = "one row does not show the spread between rows"
        raise DesignError(what, where="hits", got=k.size, remedy="sample more rows")
    if how == "auto":
        how = "pooled" if whom == "these" else "one-per-row"
    # Each end, and the claim, takes the missing answers at their worst.
    least, most = _Rows(k, m, how), _Rows(k + lost, m, how)
    own = most if side == "below" else least
    bound, p, rejected = own.bound(level, side), None, None
    if tau is not None:  # where the p-value is searched for, the bound decides in the last digits
        rejected = bound < tau if side == "below" else bound > tau
        p = min(own.p_value(tau, side), np.nextafter(level, 0.0)) if rejected else max(own.p_value(tau, side), level)
    known = m > lost
    estimate = float((k[known] / (m - lost)[known]).mean()) if known.any() else 0.5
    return Average(
        estimate, least.bound(level / 2, "above"), most.bound(level / 2, "below"), bound, p, rejected, k.size, int(m.sum()), whom, own.method,
        how != "clustered", level, side, tau,
    )  # fmt: skip


class _Rows:
    """Rows with k hits of m draws, judged by one method: one-sided bounds (upper for `below`, lower for `above`) and p-values."""

    def __init__(self, k: Floats, m: Floats, how: str) -> None:
        self.hits, self.n, self.m, self.means = float(k.sum()), float(m.sum()), m, k / m
        self.method = how if how in ("clustered", "bounded") or (m == m[0]).all() else "Hoeffding (unequal draws)"

    def bound(self, a: float, claim: Claim) -> float:
        """Return the bound with error a."""
        below = claim == "below"
        if self.method == "clustered":
            return float(clustered_bound(self.means, self.n, a, claim))
        if self.method == "bounded":
            return 1 - lower_mean(1 - self.means, a) if below else lower_mean(self.means, a)
        if self.method == "pooled":
            return pooled_bounds(self.hits, self.n, a)[below]
        if self.method == "one-per-row":
            return float((upper_bound if below else lower_bound)(self.hits, self.n, a))
        reach = _hoeffding_reach(self.m, a)
        return min(1.0, float(self.means.mean()) + reach) if below else max(0.0, float(self.means.mean()) - reach)

    def p_value(self, rate: float, claim: Claim) -> float:
        """Return the smallest error whose bound is beyond the rate."""
        if self.method == "clustered":
            return float(clustered_p_value(self.means, self.n, rate, claim))
        if self.method == "bounded":
            return _smallest(lambda a: self.bound(a, claim) < rate if claim == "below" else self.bound(a, claim) > rate)
        if self.method == "pooled":
            return _pooled_p(self.hits, self.n, rate, claim)
        if self.method == "one-per-row":
            return float(p_value(self.hits, self.n, rate, claim))
        beyond = (rate - self.means.mean()) * (1 if claim == "below" else -1) / _hoeffding_reach(self.m, math.exp(-1))
        return math.exp(-(max(float(beyond), 0.0) ** 2))


def _smallest(rejects: Callable[[float], bool]) -> float:
    """Return the smallest level that rejects, up to six digits and no smaller than `LEAST_P`; 1 if none does."""
    low, high = LEAST_P, 1 - 1e-9
    if not rejects(high) or rejects(low):
        return low if rejects(low) else 1.0
    for _ in range(42):  # in the logarithm: the product of two small levels would be 0
        middle = float(np.exp((np.log(low) + np.log(high)) / 2))
        low, high = (low, middle) if rejects(middle) else (middle, high)
    return high


def _hoeffding_reach(m: Floats, a: float) -> float:
    """Return how far the mean over rows with m draws each lies from its expectation, with error a on one side (1963)."""
    return float(np.sqrt(np.log(1 / a) / 2 * (1 / m).sum()) / m.size)


def _effective_draws(means: Floats, draws: float) -> tuple[Floats, Floats]:
    """Return hits and draws of a binomial sample that is worth as much as the means of sampled rows (last axis); for upper bounds.

    Approximate, and tested by simulation: the error stays within half a point of alpha from 30 rows on. The spread between rows is estimated with
    one imagined row at the worst end added: without it, a few rows that happen to agree would promise far too much (simulated error 0.116 at
    nominal 0.05 with 30 rows). Row means in [0, 1] never spread more than single draws do, so the rows are worth at least one draw each, and at
    most all of theirs.
    """
    rows, mean = means.shape[-1], means.mean(axis=-1)
    # The variance of rows and imagined row together, from that of the rows.
    spread = (((means - mean[..., None]) ** 2).sum(axis=-1) + (1 - mean) ** 2 * rows / (rows + 1)) / rows
    size = np.clip(rows * mean * (1 - mean) / np.where(spread > 0, spread, 1.0), rows, draws)
    return mean * size, size


def clustered_p_value(means: Floats, draws: float, threshold: float, claim: Claim) -> Floats:
    """Return the p-value of the claim about the population, from the means of sampled rows."""
    x, tau = (means, threshold) if claim == "below" else (1 - means, 1 - threshold)
    hits, size = _effective_draws(x, draws)
    full = hits >= size
    return np.where(full, 1.0, betaincc(hits + 1, np.where(full, 1.0, size - hits), tau))


def clustered_bound(means: Floats, draws: float, alpha: float, claim: Claim) -> Floats:
    """Return the one-sided bound: upper for the claim `below`, lower for `above`."""
    hits, size = _effective_draws(means if claim == "below" else 1 - means, draws)
    full = hits >= size
    upper = np.where(full, 1.0, betainccinv(hits + 1, np.where(full, 1.0, size - hits), alpha))
    return upper if claim == "below" else 1 - upper


def pooled_bounds(hits: float, n: float, alpha: object) -> tuple[float, float]:
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
    level = fraction(alpha, "alpha")
    low, high = 0.0, 1.0
    if hits > 0:
        low = level / n if hits == 1 else min(lower_bound(hits, n, level), (hits - 1) / n)
    if hits < n:
        high = 1.0 - level / n if hits == n - 1 else max(upper_bound(hits, n, level), (hits + 1) / n)
    return float(low), float(high)


def _pooled_p(k: float, n: float, rate: float, claim: Claim) -> float:
    """Return the p-value of the pooled count: below alpha if and only if the bound of `pooled_bounds` is beyond the rate."""
    if claim == "above":
        if k == 1:
            return min(1.0, n * rate)
        return float(at_least(k, n, rate)) if rate < (k - 1) / n else 1.0
    if k == n - 1:
        return min(1.0, n * (1 - rate))
    return float(at_most(k, n, rate)) if rate > (k + 1) / n else 1.0
