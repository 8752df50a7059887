"""Responsiveness averaged over a data set, and which rows the claim is about.

``over="these"``: the rows are fixed and rho is the mean of their responsiveness. ``over="population"``: the rows are a random
sample, so rows differ and repeats of one row are not new rows. Pooling repeats as one binomial is right for the first reading and
badly wrong for the second (a real error up to 0.275 at nominal 0.05), so the second refuses it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from budge.errors import DesignError
from budge.stats._checks import Claim, Ends, claim_of, fraction, one_of, percent, with_missing
from budge.stats.claims import Question
from budge.stats.claims import claim as claim_from
from budge.stats.counts import Counts

__all__ = ["Average", "average"]

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
    The methods are those of `budge.stats.means`; with unequal draws, `pooled` is Hoeffding's inequality of 1963.

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
    if how == "auto":
        how = "pooled" if whom == "these" else "one-per-row"
    alike = how == "one-per-row"  # the rows are the draws
    counts = Counts.of(k.sum(), m.sum(), lost.sum()) if alike else Counts.of(k, m, lost)
    found = claim_from(counts, Question(0.5 if tau is None else tau, level), mean=None if alike else how)
    bound, p = (found.upper[0], found.p_below[0]) if side == "below" else (found.lower[0], found.p_above[0])
    shown, rejected = (None, None) if tau is None else (float(p), bool(p < level))
    name = "Hoeffding (unequal draws)" if how == "pooled" and (m != m[0]).any() else how
    ends = float(found.rho[0]), float(found.low[0]), float(found.high[0]), float(bound)
    return Average(*ends, shown, rejected, k.size, int(m.sum()), whom, name, how != "clustered", level, side, tau)
