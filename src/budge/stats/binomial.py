"""Intervals, one-sided bounds, p-values and decisions from counts of hits among independent draws.

All of them come from the same two tails (`budge.stats.tails`), so a bound and a p-value cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from budge.stats._checks import Claim, Ends, Floats, Record, claim_of, fraction, fractions, hits_of_n, percent, unwrap
from budge.stats.tails import at_least, at_most, invert_at_least, invert_at_most

__all__ = ["Interval", "TestResult", "interval", "lower_bound", "p_value", "per_pair", "test", "upper_bound"]


@dataclass(frozen=True)
class Interval(Ends):
    """An estimate with the ends of its interval; unpacks as ``low, high``. Holds scalars or arrays."""

    estimate: Any
    low: Any
    high: Any
    alpha: float
    method: str = "Clopper-Pearson"

    @property
    def width(self) -> Any:
        """Length of the interval."""
        return self.high - self.low

    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: int) -> Any:
        return (self.low, self.high)[i]

    def __contains__(self, value: float) -> bool:
        return bool(self.low <= value <= self.high)

    def __str__(self) -> str:
        if np.ndim(self.low):
            return f"{np.size(self.low)} intervals at {percent(1 - self.alpha)} ({self.method})"
        return f"{self.estimate:.4g} (between {self.low:.4g} and {self.high:.4g} at {percent(1 - self.alpha)}, {self.method})"


@dataclass(frozen=True)
class TestResult(Record):
    """The result of a test with a number of draws fixed in advance. Holds scalars or arrays.

    No draws can be added after looking: drawing on until the test rejects breaks alpha. `anytime_p_value` allows that.
    """

    __test__ = False  # the name is not a pytest class
    derived = ("rejected", "verdict")

    hits: Any
    n: Any
    threshold: Any
    alpha: float
    claim: Claim
    bound: Any
    p_value: Any

    @property
    def rejected(self) -> Any:
        """Whether the claim is established."""
        return unwrap(np.asarray(self.p_value < self.alpha))

    @property
    def verdict(self) -> Any:
        """The claim where it is established, `inconclusive` otherwise."""
        return unwrap(np.where(self.rejected, self.claim, "inconclusive"))

    def __str__(self) -> str:
        if np.ndim(self.p_value):
            shown = f"{int(np.sum(self.rejected))} of {np.size(self.p_value)}"
            return f"{shown} shown to be {self.claim} {self.threshold} at alpha {self.alpha:g}"
        sign, side = ("<", "at most") if self.claim == "below" else (">", "at least")
        found = f"inconclusive, ρ {sign} {self.threshold:g} is not shown"
        if self.rejected:
            found = f"responsiveness is {self.claim} {self.threshold:g}"
        tail = f"(p = {self.p_value:.3g}; at {percent(1 - self.alpha)} it is {side} {self.bound:.4g})"
        return f"{self.hits} of {self.n} draws hit: {found} {tail}"


def interval(hits: object, n: object, alpha: object = 0.05) -> Interval:
    """Return the exact two-sided interval for responsiveness (Prop. Certify): Clopper-Pearson.

    Parameters
    ----------
    hits, n : int or array
        Draws that reached the target, and all draws; independent. Arrays are taken elementwise.
    alpha : float
        The interval misses the truth with at most this probability, whatever the truth is.

    Examples
    --------
    >>> print(interval(0, 29, alpha=0.05))
    0 (between 0 and 0.1194 at 95 %, Clopper-Pearson)
    >>> low, high = interval(5, 10)
    >>> round(low, 4), round(high, 4)
    (0.1871, 0.8129)
    """
    k, size = hits_of_n(hits, n)
    level = fraction(alpha, "alpha")
    low = per_pair(k, size, invert_at_least, level / 2)
    high = per_pair(k, size, invert_at_most, level / 2)
    return Interval(unwrap(k / size), unwrap(low), unwrap(high), level)


def upper_bound(hits: object, n: object, alpha: object = 0.05) -> Any:
    """Return the exact one-sided upper bound (Prop. Testing): the truth is above it with probability at most alpha.

    Examples
    --------
    >>> round(upper_bound(0, 29, alpha=0.05), 5)
    0.09814
    """
    k, size = hits_of_n(hits, n)
    level = fraction(alpha, "alpha")
    return unwrap(per_pair(k, size, invert_at_most, level))


def lower_bound(hits: object, n: object, alpha: object = 0.05) -> Any:
    """Return the exact one-sided lower bound: the truth is below it with probability at most alpha.

    Examples
    --------
    >>> round(lower_bound(29, 29, alpha=0.05), 5)
    0.90186
    """
    k, size = hits_of_n(hits, n)
    level = fraction(alpha, "alpha")
    return unwrap(per_pair(k, size, invert_at_least, level))


def p_value(hits: object, n: object, threshold: object, claim: str = "below") -> Any:
    """Return the exact p-value of the claim that responsiveness is below (or above) a threshold (Prop. Testing).

    Parameters
    ----------
    hits, n : int or array
        Draws that reached the target, and all draws.
    threshold : float or array
        The threshold tau.
    claim : {"below", "above"}
        `below` tests ``rho >= tau`` against ``rho < tau`` and gives P(K <= hits); `above` mirrors it.

    Examples
    --------
    >>> round(p_value(0, 29, 0.1), 5)
    0.0471
    >>> p_value(3, 3, 0.5, claim="above")
    0.125
    """
    k, size = hits_of_n(hits, n)
    tau = fractions(threshold, "threshold")
    return unwrap(per_pair(k, size, at_most if claim_of(claim) == "below" else at_least, tau))


def test(hits: object, n: object, threshold: object, *, claim: str = "below", alpha: object = 0.05) -> TestResult:  # noqa: PT028
    """Decide whether responsiveness is below (or above) a threshold, with error at most alpha (Prop. Testing).

    The claim is established if and only if the p-value is below alpha, which is the same as: the one-sided bound is beyond
    the threshold. Too few draws give `inconclusive`; `budge.plan.check_n` refuses them before anything is drawn.

    Examples
    --------
    >>> print(test(0, 29, 0.1))
    0 of 29 draws hit: responsiveness is below 0.1 (p = 0.0471; at 95 % it is at most 0.09814)
    >>> test(0, 28, 0.1).verdict
    'inconclusive'
    """
    k, size = hits_of_n(hits, n)
    tau, level, side = fractions(threshold, "threshold"), fraction(alpha, "alpha"), claim_of(claim)
    p, bound = p_value(k, size, tau, side), upper_bound(k, size, level) if side == "below" else lower_bound(k, size, level)
    return TestResult(unwrap(k.astype(np.int64)), unwrap(size.astype(np.int64)), unwrap(tau), level, side, bound, p)


test.__test__ = False  # type: ignore[attr-defined]  # pytest must not collect it where it is imported


def per_pair(k: Floats, n: Floats, compute: Callable[[Floats, Floats, Any], Floats], at: float | Floats) -> Floats:
    """Compute at one rate or error, once per distinct pair of counts: 10^5 people with the same n have at most n + 1 of them.

    With rates or errors of their own, all rows are computed.
    """
    if k.size < 64 or np.ndim(at):
        return np.asarray(compute(k, n, at))
    flat_k, flat_n = k.ravel(), n.ravel()
    pairs, where = np.unique(flat_k + 1j * flat_n, return_inverse=True)
    return np.asarray(compute(pairs.real.copy(), pairs.imag.copy(), at))[where.ravel()].reshape(k.shape)
