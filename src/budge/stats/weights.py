"""Weighted draws: actions drawn from another distribution q, made to speak for p by the weights p/q.

Clopper-Pearson does not apply to weighted draws. The bounds here bet (see `bounded`), with the largest possible weight known
beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from budge.errors import DesignError
from budge.stats._checks import Claim, Floats, claim_of, fraction, number, percent, plain
from budge.stats.bounded import lower_mean, values_of

__all__ = ["Weighted", "effective_sample_size", "importance_weights", "weight_bound", "weighted"]


def _weights_of(values: object, where: str) -> Floats:
    w = values_of(values, where)
    if (w < 0).any():
        i = int(np.argmax(w < 0))
        raise DesignError(
            f"{where} must not be negative", where=f"{where}[{i}]", got=w[i].item(), remedy="weights are ratios of probabilities"
        )
    return w


def effective_sample_size(weights: object) -> float:
    """How many unweighted draws the weighted ones are worth: (sum w)^2 / sum w^2.

    Examples
    --------
    >>> effective_sample_size([1, 1, 1, 1]), effective_sample_size([1, 0, 0, 0])
    (4.0, 1.0)
    """
    w = _weights_of(weights, "weights")
    if not w.any():
        raise DesignError(
            "all weights are zero", where="weights", got=weights, remedy="draw from a distribution that covers the actions"
        )
    w = w / w.max()
    return float(w.sum() ** 2 / (w**2).sum())


def weight_bound(p: object, q: object) -> float:
    """The largest weight p/q over all feasible actions; refuses a q that never draws some of them.

    Parameters
    ----------
    p, q : array
        The probability (or density) of each feasible action under the distribution that is meant and the one that is drawn from.

    Examples
    --------
    >>> weight_bound([0.5, 0.5], [0.8, 0.2])
    2.5
    """
    return float(importance_weights(p, q).max())


def importance_weights(p: object, q: object) -> Floats:
    """The weights p/q, one for each entry.

    Examples
    --------
    >>> importance_weights([0.5, 0.5], [0.25, 0.75]).round(3).tolist()
    [2.0, 0.667]
    """
    meant, drawn = _weights_of(p, "p"), _weights_of(q, "q")
    if meant.size != drawn.size:
        raise DesignError("p and q must name the same actions", where="q", got=drawn.size, remedy=f"give {meant.size} values")
    missing = (drawn == 0) & (meant > 0)
    if missing.any():
        i = int(np.argmax(missing))
        raise DesignError(
            f"missing support: {int(missing.sum())} feasible actions are never drawn, so no weight can speak for them",
            where=f"q[{i}]",
            got=0.0,
            remedy="give every feasible action a positive probability under q",
        )
    return np.divide(meant, drawn, out=np.zeros_like(meant), where=drawn > 0)


@dataclass(frozen=True)
class Weighted:
    """Responsiveness from weighted draws."""

    estimate: float
    low: float
    high: float
    upper: float
    lower: float
    n: int
    effective: float
    alpha: float
    normalised: str

    def rejects(self, threshold: object, claim: str = "below") -> bool:
        """Whether the one-sided bound is beyond the threshold: the claim is established at level alpha."""
        tau, side = fraction(threshold, "threshold"), claim_of(claim)
        return self.upper < tau if side == "below" else self.lower > tau

    def verdict(self, threshold: object, claim: Claim = "below") -> str:
        """The claim where it is established, `inconclusive` otherwise."""
        return claim if self.rejects(threshold, claim) else "inconclusive"

    def __iter__(self) -> Any:
        return iter((self.low, self.high))

    def __str__(self) -> str:
        return (
            f"{self.estimate:.4g} (between {self.low:.4g} and {self.high:.4g} at {percent(1 - self.alpha)}, "
            f"{self.normalised} weights, {self.n} draws worth {self.effective:.1f})"
        )

    def to_dict(self) -> dict[str, Any]:
        """The record of the estimate."""
        names = ("estimate", "low", "high", "upper", "lower", "n", "effective", "alpha", "normalised")
        return {name: plain(getattr(self, name)) for name in names}


def weighted(outcomes: object, weights: object, *, largest: object, normalised: bool, alpha: object = 0.05) -> Weighted:
    """Responsiveness under p from draws under q.

    Parameters
    ----------
    outcomes, weights : array
        For each draw, whether it hit (0 or 1) and its weight p/q; in the order drawn.
    largest : float
        The largest weight that any action can have (see `weight_bound`), known beforehand; not the largest seen.
    normalised : bool
        Whether the weights are exactly p/q with both normalised, so that their mean is 1. If they are known up to a factor only,
        the estimate divides by their sum ("self-normalised").

    Notes
    -----
    With exact weights, w·hit lies in [0, largest] and has mean rho. Without, a candidate rho is tested through w·(hit - rho),
    which has mean 0 whatever the factor is.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> q = np.array([0.8, 0.2]); a = rng.choice(2, 2000, p=q)
    >>> found = weighted(a, importance_weights([0.5, 0.5], q)[a], largest=2.5, normalised=True)
    >>> found.low < 0.5 < found.high
    True
    """
    hit, w, level = values_of(outcomes, "outcomes"), _weights_of(weights, "weights"), fraction(alpha, "alpha")
    top = number(largest, "largest")
    if hit.size != w.size:
        raise DesignError("one weight for each outcome", where="weights", got=w.size, remedy=f"give {hit.size}")
    if not np.isin(hit, (0, 1)).all():
        raise DesignError(
            "outcomes must be 0 or 1",
            where="outcomes",
            got=hit[~np.isin(hit, (0, 1))][0].item(),
            remedy="1 for a hit, 0 for a miss",
        )
    if not 0 < top < np.inf or w.max() > top * (1 + 1e-12):
        raise DesignError(
            "a weight is larger than the largest possible one",
            where="largest",
            got=largest,
            remedy="compute it over all feasible actions: weight_bound(p, q)",
        )
    if normalised and top < 1 - 1e-9:
        raise DesignError(
            "normalised weights have mean 1, so the largest is at least 1",
            where="largest",
            got=largest,
            remedy="check p and q, or normalised=False",
        )
    size = effective_sample_size(w)
    bound = _exact_bound if normalised else _self_normalised_bound
    ends = [bound(h, w, top, a) for a in (level / 2, level) for h in (hit, 1 - hit)]
    low, high, lower, upper = ends[0], 1 - ends[1], ends[2], 1 - ends[3]
    estimate = float(np.clip((w * hit).mean(), 0, 1)) if normalised else float((w * hit).sum() / w.sum())
    kind = "exactly normalised" if normalised else "self-normalised"
    return Weighted(estimate, low, max(low, high), upper, lower, hit.size, size, level, kind)


def _exact_bound(hit: Floats, w: Floats, top: float, alpha: float) -> float:
    return min(1.0, top * lower_mean(np.minimum(w * hit / top, 1.0), alpha))


def _self_normalised_bound(hit: Floats, w: Floats, top: float, alpha: float) -> float:
    """A lower bound for rho: the candidates r against which betting on w·(hit - r) > 0 wins 1/alpha lie below it.

    The stakes come from past draws alone and do not depend on r, so the wealth falls as r grows and one point separates.
    """
    v, need = w / top, np.log(1 / alpha)
    t = np.arange(1, v.size + 1)
    guess = (0.5 + np.cumsum(v * hit)) / (1 + np.cumsum(v))
    spread = (0.25 + np.cumsum((v * (hit - guess)) ** 2)) / (t + 1)
    before = np.concatenate([[0.25], spread[:-1]])
    bet = np.sqrt(2 * need / (before * v.size))
    low, high = 0.0, 1.0
    for _ in range(50):
        r = (low + high) / 2
        wealth = np.cumsum(np.log1p(np.minimum(bet, 0.75 / r) * v * (hit - r)))
        low, high = (r, high) if wealth.max() >= need else (low, r)
    return low
