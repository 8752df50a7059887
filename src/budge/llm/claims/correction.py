"""A judge that errs: what people would say, from what the judge says and a set of answers that people labelled.

If a share s of true hits and a share f of true misses is called a hit, the judge sees hits at the rate ``q = s rho + f (1 - rho)``. Rogan and
Gladen solve this for rho. Here the three rates are not plugged in but bounded: with q at most Q, s at least S and f at least F it
follows that ``S rho + F (1 - rho) <= Q``, whatever the true rates are. The three bounds are exact and independent, so they hold together with
probability ``(1 - each)^3``. The price is width; the gain is that no error of the judge is taken as known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from budge.errors import DataError, DesignError
from budge.llm.claims.evidence import Evidence, Rate, smallest_alpha
from budge.stats import interval, lower_bound, upper_bound
from budge.stats._checks import Claim, percent, whole

__all__ = ["Labelled", "corrected"]

Side = Literal["low", "high"]


@dataclass(frozen=True)
class Labelled:
    """Answers that people labelled, counted by what the judge said of them.

    The labelled answers must be drawn from the answers that are tested (same models, interactions, judge) without regard to what the judge said,
    or by their label: drawn by the judge's verdict, they do not show its error rates.

    Parameters
    ----------
    found, missed : int
        Hits according to people, which the judge called a hit, and a miss.
    false_alarms, cleared : int
        Misses according to people, which the judge called a hit, and a miss.
    unresolved_hits, unresolved_misses : int
        Those on which the judge said neither.

    Examples
    --------
    >>> judge = Labelled(found=95, missed=5, false_alarms=3, cleared=97)
    >>> print(judge)
    Of 100 answers that people call a hit, the judge calls 95 a hit (sensitivity 88.7 % to 98.4 %); of 100 that they call a miss, 3 (0.6 % to 8.5 %).
    """

    found: int
    missed: int
    false_alarms: int
    cleared: int
    unresolved_hits: int = 0
    unresolved_misses: int = 0

    def __post_init__(self) -> None:
        for name in ("found", "missed", "false_alarms", "cleared", "unresolved_hits", "unresolved_misses"):
            object.__setattr__(self, name, whole(getattr(self, name), f"labelled.{name}", least=0))
        if not self.hits or not self.misses:
            raise DesignError(
                "the labelled set needs hits and misses: without both, nothing is known of one kind of error",
                where="labelled",
                got=(self.hits, self.misses),
                remedy="label more answers",
            )

    @classmethod
    def of(cls, pairs: Iterable[tuple[Any, Any]]) -> Labelled:
        """From pairs of what people say (True or False) and what the judge says (True, False or None).

        Examples
        --------
        >>> Labelled.of([(True, True), (True, None), (False, False)]).unresolved_hits
        1
        """
        count = dict.fromkeys([(a, b) for a in (True, False) for b in (True, False, None)], 0)
        for i, (person, judge) in enumerate(pairs):
            key = (_truth(person, f"pairs[{i}][0]"), None if judge is None else _truth(judge, f"pairs[{i}][1]"))
            count[key] += 1
        return cls(
            count[True, True], count[True, False], count[False, True], count[False, False], count[True, None], count[False, None]
        )

    @property
    def hits(self) -> int:
        """Answers that people call a hit."""
        return self.found + self.missed + self.unresolved_hits

    @property
    def misses(self) -> int:
        """Answers that people call a miss."""
        return self.false_alarms + self.cleared + self.unresolved_misses

    def rates(self, alpha: float, side: Side) -> tuple[float, float]:
        """One-sided bounds on the share of hits, and of misses, that are called a hit; unresolved ones count against the bound."""
        if side == "low":
            return lower_bound(self.found, self.hits, alpha), lower_bound(self.false_alarms, self.misses, alpha)
        most = self.found + self.unresolved_hits, self.false_alarms + self.unresolved_misses
        return upper_bound(most[0], self.hits, alpha), upper_bound(most[1], self.misses, alpha)

    def __str__(self) -> str:
        s, f = interval(self.found, self.hits), interval(self.false_alarms, self.misses)
        ends = [f"{percent(round(a, 3))} to {percent(round(b, 3))}" for a, b in (s, f)]
        return (
            f"Of {self.hits} answers that people call a hit, the judge calls {self.found} a hit (sensitivity {ends[0]}); "
            f"of {self.misses} that they call a miss, {self.false_alarms} ({ends[1]})."
        )

    def to_dict(self) -> dict[str, int]:
        """The record of the labelled set."""
        return {name: int(getattr(self, name)) for name in self.__dataclass_fields__}


def _truth(value: Any, where: str) -> bool:
    if isinstance(value, bool | np.bool_) or (isinstance(value, int | float | np.number) and value in (0, 1)):
        return bool(value)
    raise DataError("is neither a hit nor a miss", where=where, got=value, remedy="True or False")


def corrected(
    evidence: Evidence,
    labelled: Labelled,
    *,
    over: str,
    threshold: float | None,
    claim: Claim,
    alpha: float,
    method: str = "auto",
) -> Rate:
    """The rate that people would find, with an interval and a test that allow for the judge's errors and for not knowing them."""

    def bound(a: float, side: Side) -> float:
        each = float(-np.expm1(np.log1p(-a) / 3))  # three independent bounds hold together
        word: Claim = "below" if side == "high" else "above"
        q = evidence.bound(over=over, claim=word, alpha=each, method=method)
        s, f = labelled.rates(each, "low" if side == "high" else "high")
        if s <= f:  # the judge may be no better than a coin: it bounds nothing
            return 1.0 if side == "high" else 0.0
        return float(np.clip((q - f) / (s - f), 0.0, 1.0))

    seen = evidence.claim(over=over, threshold=None, claim=claim, alpha=alpha, method=method)
    side: Side = "high" if claim == "below" else "low"
    p = None
    if threshold is not None:
        tau = threshold
        sign = 1 if claim == "below" else -1
        p = smallest_alpha(lambda a: sign * (tau - bound(a, side)), alpha)
    words = f"{seen.method}, corrected for the judge"
    return Rate(
        _point(seen.rate, labelled), bound(alpha / 2, "low"), bound(alpha / 2, "high"), bound(alpha, side), p, words, seen.exact
    )


def _point(q: float | None, labelled: Labelled) -> float | None:
    """Rogan and Gladen's estimate from what was resolved, kept between 0 and 1; None where the judge tells nothing."""
    of_hits, of_misses = labelled.found + labelled.missed, labelled.false_alarms + labelled.cleared
    if q is None or not of_hits or not of_misses:
        return None
    s, f = labelled.found / of_hits, labelled.false_alarms / of_misses
    return float(np.clip((q - f) / (s - f), 0.0, 1.0)) if s > f else None
