"""The power of the exact test: what a sample size can show, before anything is drawn.

Power is a saw-tooth in n, because the largest count that still rejects moves in whole steps. So nothing here interpolates:
every value is the exact binomial probability.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import betainccinv, betaincinv, ndtri

from budge.stats._checks import Claim, Floats, asked, counts, fractions, unwrap
from budge.stats.tails import at_least, at_most

__all__ = ["critical_hits", "power", "rejecting_counts", "solve_rate", "surprises"]


def rejecting_counts(n: Floats, threshold: float, alpha: float, claim: Claim = "below") -> Floats:
    """Return, for each n, the largest count of surprises that still rejects; -1 where not even 0 does.

    A surprise is a hit for `below` (the largest k with P(K <= k) < alpha at the threshold) and a miss for `above`.

    A normal guess with its skewness correction is off by a few counts at most; it is then moved, one count at a time and
    only where it is wrong, until the exact tail agrees.
    """
    n = np.atleast_1d(np.asarray(n, float))
    z = float(ndtri(max(alpha, 1e-300)))
    rate = threshold if claim == "below" else 1 - threshold
    k = np.floor(n * rate + z * np.sqrt(n * rate * (1 - rate)) + (1 - 2 * rate) * (z * z - 1) / 6 - 0.5)
    k = np.clip(k, -1, n - 1)
    low, high = np.full_like(n, -1.0), n.copy()  # rejects at low (or low is -1); does not at high: all hits never reject
    step = np.ones_like(n)
    active = np.arange(n.size)
    while active.size:
        here = k[active]
        ok = (here < 0) | (surprises(here, n[active], threshold, claim) < alpha)
        low[active] = np.where(ok, np.maximum(low[active], here), low[active])
        high[active] = np.where(ok, high[active], np.minimum(high[active], here))
        done = high[active] - low[active] <= 1
        active = active[~done]
        # Gallop from the guess while one side is unknown, bisect once the answer is bracketed.
        ahead = np.where(ok[~done], low[active] + step[active], high[active] - step[active])
        middle = np.floor((low[active] + high[active]) / 2)
        inside = (ahead > low[active]) & (ahead < high[active])
        k[active] = np.where(inside, ahead, middle)
        step[active] *= 2
    return low


def surprises(j: Floats, n: Floats, rate: float | Floats, claim: Claim) -> Floats:
    """Return P(at most j surprises) at the rate: hits for `below`, misses for `above`; the tails of the p-value itself."""
    at = np.asarray(rate, float)
    return at_most(j, n, at) if claim == "below" else at_least(n - j, n, at)


def critical_hits(n: object, threshold: object, *, alpha: object = 0.05, claim: str = "below") -> Any:
    """Return the last count that still establishes the claim: at most so many hits for `below`, at least so many for `above`.

    -1 for `below`, n + 1 for `above`, where no count does.

    Examples
    --------
    >>> critical_hits(79, 0.4, alpha=0.05)
    24
    >>> critical_hits(28, 0.1)
    -1
    """
    size, (tau, level, side) = counts(n, "n", least=1), asked(threshold, alpha, claim)
    found = rejecting_counts(size.ravel(), tau, level, side).reshape(size.shape)
    return unwrap((found if side == "below" else size - found).astype(np.int64))


def power(n: object, threshold: object, rate: object, *, alpha: object = 0.05, claim: str = "below") -> Any:
    """Return the exact probability that n draws establish the claim, if responsiveness is `rate` (Eq. PowerAnalysis).

    Parameters
    ----------
    n : int or array
        Draws.
    threshold : float
        The threshold tau.
    rate : float or array
        The responsiveness at which power is computed; broadcast against n. At a rate on the wrong side of the threshold
        this is the probability of a false claim, never above alpha.

    Examples
    --------
    >>> round(power(79, 0.4, 0.227), 4), round(power(81, 0.4, 0.227), 4)
    (0.9574, 0.944)
    """
    size, (tau, level, side) = counts(n, "n", least=1), asked(threshold, alpha, claim)
    at = fractions(rate, "rate", zero=True, one=True)
    k = rejecting_counts(size.ravel(), tau, level, side).reshape(size.shape)
    return unwrap(np.asarray(surprises(k, size, at, side)))


def solve_rate(n: int, threshold: float, alpha: float, power: float, claim: Claim) -> float:
    """Return the rate nearest to the threshold at which n draws still have the power."""
    k = rejecting_counts(np.array([n], float), threshold, alpha, claim)[0]
    if claim == "below":
        return min(float(betainccinv(k + 1, n - k, power)), threshold)
    return max(float(betaincinv(n - k, k + 1, power)), threshold)
