"""Responsiveness averaged over a data set, and which rows the claim is about.

``over="these"``: the rows are fixed and rho is the mean of their responsiveness. ``over="population"``: the rows are a random
sample, so rows differ and repeats of one row are not new rows. Pooling repeats as one binomial is right for the first reading and
badly wrong for the second (a real error up to 0.275 at nominal 0.05), so the second refuses it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from budge.errors import DesignError
from budge.stats._checks import Claim, Floats, claim_of, fraction, hits_of_n, one_of, percent, plain
from budge.stats.binomial import interval, lower_bound, p_value, upper_bound
from budge.stats.bounded import bounded_mean
from budge.stats.clusters import clustered_bound, clustered_p_value

__all__ = ["Average", "average"]

_SIDES: tuple[Claim, Claim] = ("above", "below")  # lower end, upper end
METHODS = ("auto", "pooled", "one-per-row", "clustered", "bounded")


@dataclass(frozen=True)
class Average:
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

    def __iter__(self) -> Any:
        return iter((self.low, self.high))

    def __str__(self) -> str:
        whom = (
            f"over these {self.rows} rows"
            if self.over == "these"
            else f"over the population of which {self.rows} rows were sampled"
        )
        kind = "exact" if self.exact else "approximate"
        tail = (
            ""
            if self.p_value is None
            else f"; {self.claim} {self.threshold:g}: {'shown' if self.rejected else 'not shown'} (p = {self.p_value:.3g})"
        )
        ends = f"between {self.low:.4g} and {self.high:.4g} at {percent(1 - self.alpha)}"
        return f"mean responsiveness {whom} is {self.estimate:.4g}, {ends} ({self.method}, {kind}){tail}"

    def to_dict(self) -> dict[str, Any]:
        """The record of the average."""
        names = (
            "estimate",
            "low",
            "high",
            "bound",
            "p_value",
            "rejected",
            "rows",
            "draws",
            "over",
            "method",
            "exact",
            "alpha",
            "claim",
            "threshold",
        )
        return {name: plain(getattr(self, name)) for name in names}


def average(
    hits: object,
    draws: object = 1,
    *,
    over: str,
    threshold: object = None,
    claim: str = "below",
    alpha: object = 0.05,
    method: str = "auto",
) -> Average:
    """The mean responsiveness over rows, with an interval and (given a threshold) a test.

    Parameters
    ----------
    hits, draws : array
        For each row, its hits and its draws.
    over : {"these", "population"}
        What is claimed: the mean over exactly these rows, or over the population they were sampled from. Has no default, since
        the two differ.
    method : {"auto", "pooled", "one-per-row", "clustered", "bounded"}
        For `these`: `pooled`. For `population`: `one-per-row` (exact, one draw each); `clustered` (several draws
        each, approximate: an effective number of draws from the spread between rows) or `bounded` (several draws each, guaranteed
        and wider). `auto` takes the exact one and refuses where there is none.

    Notes
    -----
    `pooled` with equal draws is exact although rows differ: the count is a sum of unlike coins, whose tails are no heavier than
    the binomial's with the same mean (Hoeffding 1956). With unequal draws, Hoeffding's inequality takes over.

    Examples
    --------
    >>> print(average([0, 2, 1, 0], 2, over="these"))
    mean responsiveness over these 4 rows is 0.375, between 0.08523 and 0.7551 at 95 % (pooled, exact)
    >>> average([0, 1, 0, 0, 1, 0, 0, 0], over="population", threshold=0.9).verdict
    'below'
    """
    k, m = (np.atleast_1d(part).ravel() for part in hits_of_n(hits, draws))
    if not k.size:
        raise DesignError("no rows: there is nothing to average", where="hits", got=hits, remedy="give at least one row")
    whom, side, level = one_of(over, "over", ("these", "population")), claim_of(claim), fraction(alpha, "alpha")
    tau = None if threshold is None else fraction(threshold, "threshold")
    how = one_of(method, "method", METHODS)
    repeated = bool((m > 1).any())
    if whom == "population" and (how == "pooled" or (repeated and how in ("auto", "one-per-row"))):
        raise DesignError(
            "a population claim with pooled repeats: several draws from one row are not independent draws from the population",
            where="draws",
            got=int(m.max()),
            remedy='take one draw per row, or method="clustered" (approximate) or "bounded" (guaranteed); or over="these"',
        )
    if whom == "these" and how not in ("auto", "pooled"):
        raise DesignError(
            f"method {how!r} is for population claims", where="method", got=method, remedy='method="pooled", or over="population"'
        )
    if how == "auto":
        how = "pooled" if whom == "these" else "one-per-row"
    low, high, bound, p, name = _compute(k, m, how, side, level, tau)
    rejected = None if p is None else bool(p < level)
    estimate = float((k / m).mean())
    return Average(
        estimate, low, high, bound, p, rejected, k.size, int(m.sum()), whom, name, how != "clustered", level, side, tau
    )


def _compute(
    k: Floats, m: Floats, how: str, claim: Claim, alpha: float, tau: float | None
) -> tuple[float, float, float, float | None, str]:
    if how == "clustered":
        if k.size < 2:
            what = "one row says nothing about the spread between rows"
            raise DesignError(what, where="hits", got=k.size, remedy="sample more rows")
        x, n = k / m, float(m.sum())
        low, high = (float(clustered_bound(x, n, alpha / 2, side)) for side in _SIDES)
        one, p = float(clustered_bound(x, n, alpha, claim)), None if tau is None else float(clustered_p_value(x, n, tau, claim))
        return low, high, one, p, "clustered"
    if how == "bounded":
        return *_by_bounds(lambda a, side: bounded_mean(k / m, 0, 1, alpha=a, side=side), claim, alpha, tau), "bounded"
    if (m == m[0]).all():
        hits, n = float(k.sum()), float(m.sum())
        one = upper_bound(hits, n, alpha) if claim == "below" else lower_bound(hits, n, alpha)
        low, high = interval(hits, n, alpha)
        if how == "pooled" and alpha > 0.5:
            raise DesignError("alpha above 0.5 has no guarantee here", where="alpha", got=alpha, remedy="choose a smaller alpha")
        return low, high, one, None if tau is None else p_value(hits, n, tau, claim), how

    def hoeffding(a: float, side: str) -> tuple[float, float]:
        each = a / 2 if side == "both" else a
        reach = float(np.sqrt(np.log(1 / each) / 2 * (1 / m).sum()) / m.size)
        at = float((k / m).mean())
        return max(0.0, at - reach), min(1.0, at + reach)

    return *_by_bounds(hoeffding, claim, alpha, tau), "Hoeffding (unequal draws)"


def _by_bounds(bounds: Any, claim: Claim, alpha: float, tau: float | None) -> tuple[float, float, float, float | None]:
    """Interval, bound and p-value of a method that gives bounds only: the p-value is the smallest alpha that rejects."""
    low, high = bounds(alpha, "both")
    one = bounds(alpha, "upper")[1] if claim == "below" else bounds(alpha, "lower")[0]
    if tau is None:
        return low, high, one, None

    def rejects(a: float) -> bool:
        return bool(bounds(a, "upper")[1] < tau) if claim == "below" else bool(bounds(a, "lower")[0] > tau)

    if not rejects(alpha):
        return low, high, one, 1.0 if not rejects(1 - 1e-9) else float(_bisect(rejects, alpha, 1 - 1e-9))
    return low, high, one, float(_bisect(rejects, 1e-300, alpha))


def _bisect(rejects: Any, low: float, high: float) -> float:
    for _ in range(32):  # six digits, over the whole range of exponents
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if rejects(middle) else (middle, high)
    return high
