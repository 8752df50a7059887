"""Evidence that may be looked at after every draw: one family for draws that stopped early and for weighted draws.

A bet is a share ``u`` of the rate under test: against ``rho >= r`` it stands for the alternative ``u r``, and a mixture of bets (`Bets`) is
the average of their likelihood ratios. Under ``rho >= r`` every ratio is a nonnegative supermartingale, so the mixture exceeds ``1/a`` at any
time with probability at most ``a`` (Ville), and one over it is a p-value at every stopping time. The evidence rises in ``r`` for fixed draws, so
one bisection turns it into a bound: p-value, bound and verdict read the same curve.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from budge.stats._checks import Floats, Record, claim_of, fraction, fractions, hits_of_n, unwrap
from budge.stats.binomial import Interval, per_pair

__all__ = ["ANYTIME", "Bets", "anytime_bound", "anytime_interval", "anytime_p_value", "evidence_bound", "evidence_p_value"]

STEPS = 60  # of a bisection over [0, 1]: to the last bit that matters
NEVER = 0.25  # weight of the bet that no surprise ever comes


@dataclass(frozen=True)
class Bets(Record):
    """A mixture of alternatives ``u r``, ``0 <= u < 1``, against the rate ``r``; ``u = 0`` stands for "never".

    Examples
    --------
    >>> Bets.of_ratio(0.5)
    Bets(u=(0.0, 0.5), weight=(0.25, 0.75))
    """

    u: tuple[float, ...]
    weight: tuple[float, ...]

    @classmethod
    def of_ratio(cls, ratio: float, never: float = NEVER) -> Bets:
        """Return the bets of a test with a margin: the alternative ``ratio * r``, and "never" with the weight `never`."""
        return cls((0.0, ratio), (never, 1 - never)) if never and ratio else cls((ratio,), (1.0,))

    @classmethod
    def of_all_rates(cls, size: int = 20) -> Bets:
        """Return the bets of a test without a margin: ``1 - u`` at ``2^(-i/2)``, most weight on bold bets."""
        i = np.arange(1, size)
        rest = 1 / (i * (i + 1.0))
        return cls((0.0, *(1 - 2.0 ** (-i / 2)).tolist()), (NEVER, *((1 - NEVER) * rest / rest.sum()).tolist()))


ANYTIME = Bets.of_all_rates()


def log_evidence(surprises: ArrayLike, n: ArrayLike, rate: ArrayLike, bets: Bets = ANYTIME) -> Floats:
    """Return the logarithm of the evidence against "surprises come at the rate or more often"; it rises with the rate."""
    j, t, r = np.broadcast_arrays(np.asarray(surprises, float), np.asarray(n, float), np.asarray(rate, float))
    r = np.clip(r, 0.0, 1 - 2**-53)
    total = np.full(j.shape, -np.inf)
    for u, weight in zip(bets.u, bets.weight):
        seen = np.where(j > 0, -np.inf, 0.0) if u == 0 else j * math.log(u)
        total = np.logaddexp(total, math.log(weight) + seen + (t - j) * (np.log1p(-u * r) - np.log1p(-r)))
    return total


def evidence_p_value(surprises: ArrayLike, n: ArrayLike, rate: ArrayLike, bets: Bets = ANYTIME) -> Floats:
    """Return one over the evidence, at most 1: a p-value at any stopping time."""
    return np.exp(np.minimum(0.0, -log_evidence(surprises, n, rate, bets)))


def evidence_bound(surprises: ArrayLike, n: ArrayLike, alpha: float, bets: Bets = ANYTIME) -> Floats:
    """Return the smallest rate whose p-value is below alpha: an upper bound for the rate of surprises, valid whenever one stops."""
    j, t = np.broadcast_arrays(np.asarray(surprises, float), np.asarray(n, float))
    return solve(lambda r: evidence_p_value(j, t, r, bets) < alpha, j.shape)


def solve(shown: Callable[[Floats], NDArray[np.bool_]], shape: tuple[int, ...]) -> Floats:
    """Return, elementwise, the smallest r in [0, 1] at which `shown` turns true; it is true from there on."""
    low, high = np.zeros(shape), np.ones(shape)
    for _ in range(STEPS):
        middle = (low + high) / 2
        yes = shown(middle)
        low, high = np.where(yes, low, middle), np.where(yes, middle, high)
    return high


def anytime_p_value(hits: object, n: object, threshold: object, claim: str = "below") -> Any:
    """Return a p-value that may be looked at after every draw, and acted on at any time.

    Examples
    --------
    >>> round(anytime_p_value(0, 60, 0.1), 4)
    0.0055
    """
    k, size = hits_of_n(hits, n)
    tau = fractions(threshold, "threshold")
    below = claim_of(claim) == "below"
    return unwrap(evidence_p_value(k if below else size - k, size, tau if below else 1.0 - tau))


def anytime_bound(hits: object, n: object, alpha: object = 0.05, *, claim: str = "below") -> Any:
    """Return a one-sided bound that holds at all times at once: upper for the claim `below`, lower for `above`.

    Examples
    --------
    >>> round(anytime_bound(0, 100), 4)
    0.0382
    """
    k, size = hits_of_n(hits, n)
    level = fraction(alpha, "alpha")
    if claim_of(claim) == "below":
        return unwrap(per_pair(k, size, evidence_bound, level))
    return unwrap(1.0 - per_pair(size - k, size, evidence_bound, level))


def anytime_interval(hits: object, n: object, alpha: object = 0.05) -> Interval:
    """Return a confidence sequence: intervals that all cover the truth, for every n at once, with probability 1 - alpha.

    Examples
    --------
    >>> print(anytime_interval(20, 100))
    0.2 (between 0.0827 and 0.3493 at 95 %, confidence sequence)
    """
    k, size = hits_of_n(hits, n)
    level = fraction(alpha, "alpha")
    high, low = anytime_bound(k, size, level / 2), anytime_bound(k, size, level / 2, claim="above")
    return Interval(unwrap(k / size), low, high, level, "confidence sequence")
