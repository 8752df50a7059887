"""Evidence that stays valid however often one looks: anytime p-values and confidence sequences for a Bernoulli mean.

The test martingale bets against the null at the threshold tau with a mixture of likelihood ratios: the alternative is
``tau * u`` with u ~ Beta(1/2, 1), so predictions that hardly ever move are recognised early. Under any rho >= tau each ratio is
a supermartingale, hence so is the mixture, and by Ville's inequality it exceeds 1/alpha with probability at most alpha over the
whole run. The ratio grows with tau for fixed counts, so inverting the test gives bounds: again one source.

Written by hand, on `scipy.special`: no maintained package offers it for this Python (see the design notes on dependencies).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaln

from budge.stats._checks import Claim, Floats, claim_of, fraction, fractions, hits_of_n, percent, plain, unwrap
from budge.stats.binomial import Interval

__all__ = ["AnytimeTest", "anytime_bound", "anytime_interval", "anytime_p_value", "anytime_test", "log_evidence"]

_SHAPE = 0.5  # of the Beta(shape, 1) mixture; smaller bets harder on "never moves"


def log_evidence(hits: ArrayLike, n: ArrayLike, threshold: ArrayLike) -> Floats:
    """The logarithm of the martingale against ``rho >= threshold`` after `hits` in `n` draws.

    It is a ratio of incomplete beta integrals: ``a tau^-a B(a+k, n-k+1) I_tau(a+k, n-k+1) / (tau^k (1-tau)^(n-k))``.
    """
    k, size, tau = np.broadcast_arrays(np.asarray(hits, float), np.asarray(n, float), np.asarray(threshold, float))
    a, b = _SHAPE + k, size - k + 1.0
    share = betainc(a, b, tau)
    with np.errstate(divide="ignore"):
        direct = np.log(_SHAPE) + betaln(a, b) + np.log(share) - a * np.log(tau) - (size - k) * np.log1p(-tau)
    # Where the integral underflows, the hits are far above tau: there is no evidence, and its size does not matter.
    return np.where(share > 0, direct, -np.inf)


def _log_evidence(k: Floats, n: Floats, tau: Floats, claim: Claim) -> Floats:
    return log_evidence(k, n, tau) if claim == "below" else log_evidence(n - k, n, 1.0 - tau)


def anytime_p_value(hits: object, n: object, threshold: object, claim: str = "below") -> Any:
    """A p-value that may be looked at after every draw, and acted on at any time.

    Examples
    --------
    >>> round(anytime_p_value(0, 60, 0.1), 4)
    0.005
    """
    k, size = hits_of_n(hits, n)
    tau = fractions(threshold, "threshold")
    return unwrap(np.asarray(np.exp(np.minimum(0.0, -_log_evidence(k, size, tau, claim_of(claim))))))


def anytime_bound(hits: object, n: object, alpha: object = 0.05, *, claim: str = "below") -> Any:
    """A one-sided bound that holds at all times at once: upper for the claim `below`, lower for `above`.

    Examples
    --------
    >>> round(anytime_bound(0, 100), 4)
    0.0371
    """
    k, size = hits_of_n(hits, n)
    level, side = fraction(alpha, "alpha"), claim_of(claim)
    surprises = k if side == "below" else size - k
    # Evidence grows with tau from none at the observed share: bisection, to the last bit that matters.
    left, right = surprises / size, np.ones_like(size)
    for _ in range(60):
        middle = (left + right) / 2
        shown = log_evidence(surprises, size, np.clip(middle, 1e-300, 1 - 2**-53)) > -np.log(level)
        left, right = np.where(shown, left, middle), np.where(shown, middle, right)
    return unwrap(right if side == "below" else 1.0 - right)


def anytime_interval(hits: object, n: object, alpha: object = 0.05) -> Interval:
    """A confidence sequence: intervals that all cover the truth, for every n at once, with probability 1 - alpha.

    Examples
    --------
    >>> print(anytime_interval(20, 100))
    0.2 (between 0.08393 and 0.3491 at 95 %, confidence sequence)
    """
    k, size = hits_of_n(hits, n)
    level = fraction(alpha, "alpha")
    high, low = anytime_bound(k, size, level / 2), anytime_bound(k, size, level / 2, claim="above")
    return Interval(unwrap(k / size), low, high, level, "confidence sequence")


@dataclass(frozen=True)
class AnytimeTest:
    """What a sequential test says so far; `more` adds draws, which this test allows."""

    hits: Any
    n: Any
    threshold: float
    alpha: float
    claim: Claim
    p_value: Any
    bound: Any

    @property
    def rejected(self) -> Any:
        """Whether the claim is established."""
        return self.p_value < self.alpha

    @property
    def verdict(self) -> Any:
        """The claim where it is established, `inconclusive` otherwise."""
        return unwrap(np.where(self.rejected, self.claim, "inconclusive"))

    def more(self, hits: object, n: object) -> AnytimeTest:
        """The test after further draws; the smallest p-value seen so far stands."""
        k, size = hits_of_n(hits, n)
        new = anytime_test(self.hits + k, self.n + size, self.threshold, claim=self.claim, alpha=self.alpha)
        best = np.minimum if self.claim == "below" else np.maximum
        p, bound = np.minimum(new.p_value, self.p_value), best(new.bound, self.bound)
        return AnytimeTest(new.hits, new.n, new.threshold, new.alpha, new.claim, unwrap(np.asarray(p)), unwrap(np.asarray(bound)))

    def __str__(self) -> str:
        if np.ndim(self.p_value):
            shown = f"{int(np.sum(self.rejected))} of {np.size(self.p_value)}"
            return f"{shown} shown to be {self.claim} {self.threshold:g}, whenever one looks"
        shown = f"responsiveness is {self.claim} {self.threshold:g}" if self.rejected else "inconclusive so far"
        numbers = f"anytime p = {self.p_value:.3g}; bound {self.bound:.4g} at {percent(1 - self.alpha)}"
        return f"{self.hits} of {self.n} draws hit: {shown} ({numbers})"

    def to_dict(self) -> dict[str, Any]:
        """The record of the test."""
        return {
            name: plain(getattr(self, name))
            for name in ("hits", "n", "threshold", "alpha", "claim", "p_value", "bound", "rejected", "verdict")
        }


def anytime_test(hits: object, n: object, threshold: object, *, claim: str = "below", alpha: object = 0.05) -> AnytimeTest:
    """Test a claim in a way that allows more draws after looking.

    Examples
    --------
    >>> first = anytime_test(0, 30, 0.1)
    >>> first.verdict, first.more(0, 30).verdict
    ('inconclusive', 'below')
    """
    k, size = hits_of_n(hits, n)
    tau, level, side = fraction(threshold, "threshold"), fraction(alpha, "alpha"), claim_of(claim)
    p, bound = anytime_p_value(k, size, tau, side), anytime_bound(k, size, level, claim=side)
    return AnytimeTest(unwrap(k.astype(np.int64)), unwrap(size.astype(np.int64)), tau, level, side, p, bound)
