"""What a given number of draws can show: the margin it detects, the threshold it can prove."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from budge.stats._checks import Claim, claim_of, fraction, percent, plain, whole
from budge.stats.planning import check_n
from budge.stats.power import solve_rate
from budge.stats.tails import invert_at_most

__all__ = ["Margin", "detectable_margin", "provable_threshold"]


@dataclass(frozen=True)
class Margin:
    """What a given number of draws can detect."""

    n: int
    threshold: float
    rate: float
    alpha: float
    power: float
    claim: Claim

    @property
    def margin(self) -> float:
        """The smallest distance from the threshold that is detected with the power."""
        return abs(self.threshold - self.rate)

    def __float__(self) -> float:
        return self.margin

    def __str__(self) -> str:
        shown = f"rho {self.claim} {self.threshold:g} is shown with probability {percent(self.power)} if rho is {self.rate:.4g}"
        return f"{self.n} draws detect a margin of {self.margin:.4g}: {shown}"

    def to_dict(self) -> dict[str, Any]:
        """The record of the margin."""
        return {name: plain(getattr(self, name)) for name in ("n", "threshold", "rate", "margin", "alpha", "power", "claim")}


def detectable_margin(
    n: object, *, threshold: object = 0.1, alpha: object = 0.05, power: object = 0.95, claim: str = "below"
) -> Margin:
    """The smallest margin that n draws detect with the given power: Eq. PowerAnalysis solved for the rate.

    Examples
    --------
    >>> print(detectable_margin(85, threshold=0.4))
    85 draws detect a margin of 0.1654: rho below 0.4 is shown with probability 95 % if rho is 0.2346
    """
    tau, level, target, side = (
        fraction(threshold, "threshold"),
        fraction(alpha, "alpha"),
        fraction(power, "power"),
        claim_of(claim),
    )
    size = check_n(n, threshold=tau, alpha=level, claim=side)
    return Margin(size, tau, solve_rate(size, tau, level, target, side), level, target, side)


def provable_threshold(n: object, *, alpha: object = 0.05) -> float:
    """The threshold that n draws without a hit are just short of proving: the bound 1 - alpha^(1/n).

    Examples
    --------
    >>> round(provable_threshold(30), 4)
    0.095
    """
    return float(invert_at_most(np.asarray(0.0), np.asarray(float(whole(n, "n"))), fraction(alpha, "alpha")))
