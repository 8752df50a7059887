"""What an audit costs in model calls, before it is run: fixed, to the first hit, or sequential."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from budge.errors import DesignError
from budge.stats._checks import fractions, percent, plain, whole
from budge.stats.sequential import StoppingRule

__all__ = ["Calls", "expected_calls"]


@dataclass(frozen=True)
class Calls:
    """Expected model calls over all people, against the fixed design."""

    fixed: int
    to_first_hit: float
    sequential: float | None
    people: int

    @property
    def saved(self) -> float | None:
        """Calls that the sequential rule saves on average."""
        return None if self.sequential is None else self.fixed - self.sequential

    def __str__(self) -> str:
        whom = "1 person" if self.people == 1 else f"{self.people:,} people"
        text = f"{whom}: {self.fixed:,} model calls with a fixed number of draws"
        text += f", {self.to_first_hit:,.0f} to look for a first hit"
        return (
            text
            if self.sequential is None
            else f"{text}, {self.sequential:,.0f} sequentially ({percent(round(1 - self.sequential / self.fixed, 2))} saved)"
        )

    def to_dict(self) -> dict[str, Any]:
        """The record of the calls."""
        return {name: plain(getattr(self, name)) for name in ("fixed", "to_first_hit", "sequential", "saved", "people")}


def expected_calls(rates: object, n: object, *, people: object = None, rule: StoppingRule | None = None) -> Calls:
    """The expected number of model calls.

    Parameters
    ----------
    rates : float or array
        Responsiveness that is expected: one for everybody, one for each person, or a typical mix.
    n : int
        Draws per person of the fixed design.
    people : int, optional
        The number of people; the number of rates unless given, over which the mix is then spread evenly.
    rule : StoppingRule, optional
        A sequential rule to compare with.

    Examples
    --------
    >>> from budge.stats import sprt_rule
    >>> rule = sprt_rule(threshold=0.1, margin=0.05)
    >>> print(expected_calls([0.0, 0.0, 0.9], rule.fixed_n, people=300, rule=rule))
    300 people: 96,300 model calls with a fixed number of draws, 64,311 to look for a first hit, 11,756 sequentially (88 % saved)
    """
    mix, size = np.atleast_1d(fractions(rates, "rates", zero=True, one=True)).ravel(), whole(n, "n")
    if not mix.size:
        raise DesignError("no rates: there is nobody to plan for", where="rates", got=rates, remedy="give at least one rate")
    many = mix.size if people is None else whole(people, "people")
    # Draws until the first hit, at most n: the sum of the probabilities that the first t draws all miss.
    first = np.where(mix > 0, -np.expm1(size * np.log1p(-np.minimum(mix, 1 - 1e-16))) / np.where(mix > 0, mix, 1), float(size))
    sequential = None
    if rule is not None:
        distinct, times = np.unique(mix, return_counts=True)
        sequential = many * float(np.average([rule.at(rate).expected_calls for rate in distinct.tolist()], weights=times))
    return Calls(many * size, many * float(first.mean()), sequential, many)
