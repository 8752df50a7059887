"""What share of people is unresponsive: an interval that allows for the error of each single verdict.

Counting verdicts is not enough: at level a, some of the R claims are false, and some people who should be claimed are not. Let
M be the number of people for whom the claim is true. Each other person is claimed with probability at most a, independently, so
R is at most M + Binomial(m - M, a) in distribution; values of M for which the observed R would be too large are excluded. The
opposite claim bounds M from above in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from budge.errors import DesignError
from budge.stats._checks import Claim, claim_of, fraction, hits_of_n, one_of, percent, plain
from budge.stats.binomial import lower_bound, p_value
from budge.stats.multiplicity import adjust, p_values_of
from budge.stats.tails import at_least

__all__ = ["Share", "share", "share_from_p_values"]


@dataclass(frozen=True)
class Share:
    """The share of people for whom the claim holds."""

    claimed: int
    opposite: int
    people: int
    low: float
    high: float
    alpha: float
    level: float
    over: str
    claim: Claim

    @property
    def estimate(self) -> float:
        """The share of people about whom the claim was made, one by one."""
        return self.claimed / self.people

    def __iter__(self) -> Any:
        return iter((self.low, self.high))

    def __str__(self) -> str:
        whom = f"of these {self.people} people" if self.over == "these" else f"of the population (from {self.people} people)"
        ends = f"between {percent(round(self.low, 4))} and {percent(round(self.high, 4))}"
        return f"{ends} {whom} are {self.claim} the threshold, at {percent(1 - self.alpha)}"

    def _repr_html_(self) -> str:
        from budge.report.notebook import show_html

        return show_html(str(self))

    def to_dict(self) -> dict[str, Any]:
        """The record of the share."""
        names = ("claimed", "opposite", "people", "estimate", "low", "high", "alpha", "level", "over", "claim")
        return {name: plain(getattr(self, name)) for name in names}


def share(
    hits: object,
    n: object,
    threshold: object,
    *,
    claim: str = "below",
    alpha: object = 0.05,
    level: object = None,
    over: str = "these",
    independent: bool = True,
) -> Share:
    """An interval for the share of people whose responsiveness is below (or above) the threshold.

    Parameters
    ----------
    hits, n : array
        One entry for each person.
    level : float, optional
        The level of the single tests behind the count; alpha unless given. To be chosen before looking.
    over : {"these", "population"}
        The share among these people, or in the population that they are a random sample of.
    independent : bool
        Whether people's draws were independent of each other. If not (common random numbers), the bounds use Holm.

    Examples
    --------
    >>> print(share([0] * 60 + [50] * 40, 100, 0.1))
    between 54 % and 67 % of these 100 people are below the threshold, at 95 %
    """
    side = claim_of(claim)
    k, size = hits_of_n(hits, n)
    other = "above" if side == "below" else "below"
    return share_from_p_values(
        p_value(np.atleast_1d(k), np.atleast_1d(size), threshold, side),
        p_value(np.atleast_1d(k), np.atleast_1d(size), threshold, other),
        claim=side, alpha=alpha, level=level, over=over, independent=independent,
    )  # fmt: skip


def share_from_p_values(
    p_claim: object,
    p_opposite: object,
    *,
    claim: str = "below",
    alpha: object = 0.05,
    level: object = None,
    over: str = "these",
    independent: bool = True,
) -> Share:
    """`share`, from p-values of the claim and of its opposite, one each per person."""
    side, how, error = claim_of(claim), one_of(over, "over", ("these", "population")), fraction(alpha, "alpha")
    each = error if level is None else fraction(level, "level")
    p, q = p_values_of(p_claim, "p_claim").ravel(), p_values_of(p_opposite, "p_opposite").ravel()
    if p.size != q.size:
        raise DesignError("one p-value of each claim for each person", where="p_opposite", got=q.size, remedy=f"give {p.size}")
    m = p.size
    if not independent:
        if how == "population":
            raise DesignError(
                "a population share needs independent people",
                where="independent",
                got=False,
                remedy="draw with a seed per person",
            )
        sure, sure_not = (int((adjust(v, "holm") < error / 2).sum()) for v in (p, q))
        return Share(int((p < each).sum()), int((q < each).sum()), m, sure / m, 1 - sure_not / m, error, each, how, side)
    made, against = int((p < each).sum()), int((q < each).sum())
    if how == "these":
        low, high = _true_claims(made, m, each, error / 2) / m, 1 - _true_claims(against, m, each, error / 2) / m
    else:
        # A random person is claimed with probability at most share + (1 - share) level.
        low, high = (
            (lower_bound(made, m, error / 2) - each) / (1 - each),
            1 - (lower_bound(against, m, error / 2) - each) / (1 - each),
        )
        low, high = max(low, 0.0), min(high, 1.0)
    return Share(made, against, m, float(low), float(max(high, low)), error, each, how, side)


def _true_claims(made: int, people: int, level: float, error: float) -> int:
    """A lower bound on the number of true claims among `made`: the smallest M for which so many claims are not too many."""
    low, high = -1, made  # the tail grows with M: not plausible at low, plausible at high
    while high - low > 1:
        middle = (low + high) // 2
        tail = float(at_least(np.float64(made - middle), np.float64(people - middle), np.float64(level)))
        low, high = (low, middle) if tail > error else (middle, high)
    return high
