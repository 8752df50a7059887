"""How much: quantiles and the mean of the change of a numeric output, without assumptions on its distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from budge.errors import DesignError
from budge.stats._checks import fraction, percent
from budge.stats.binomial import Interval
from budge.stats.bounded import bounded_mean, values_of
from budge.stats.tails import at_least, at_most

if TYPE_CHECKING:
    from budge.report.figures import Figure

__all__ = ["HowMuch", "how_much", "quantile_interval", "quantile_ranks"]


def quantile_ranks(n: int, q: float, alpha: float) -> tuple[int, int]:
    """Ranks l and u (from 1) with P(K < l) <= alpha/2 and P(K >= u) <= alpha/2 for K ~ Binomial(n, q).

    0 and n + 1 stand for "no rank is far enough out".
    """
    k = np.arange(n + 1, dtype=float)
    size, at = np.float64(n), np.float64(q)
    below = int((at_most(k, size, at) <= alpha / 2).sum())  # P(K <= l - 1) is small enough for l = below
    above = int((at_least(k, size, at) > alpha / 2).sum())  # the first rank at which P(K >= u) is small enough
    return below, above


def quantile_interval(values: object, q: object = 0.5, *, alpha: object = 0.05) -> Interval:
    """An interval for the q-quantile from order statistics: valid for every distribution, with ties or without.

    An end is infinite where n draws are too few for any finite one.

    Examples
    --------
    >>> print(quantile_interval(range(1, 101), 0.5))
    50 (between 40 and 61 at 95 %, order statistics)
    """
    x, at, level = np.sort(values_of(values)), fraction(q, "q"), fraction(alpha, "alpha")
    n = x.size
    l_rank, u_rank = quantile_ranks(n, at, level)
    low = float(x[l_rank - 1]) if l_rank >= 1 else -np.inf
    high = float(x[u_rank - 1]) if u_rank <= n else np.inf
    return Interval(float(np.quantile(x, at, method="inverted_cdf")), low, high, level, "order statistics")


@dataclass(frozen=True)
class HowMuch:
    """The change of a numeric output over reachable points: quantiles, and the mean where a range is known."""

    n: int
    quantiles: dict[float, Interval]
    mean: Interval | None
    alpha: float

    def __str__(self) -> str:
        lines = [f"over {self.n} draws, all intervals together at {percent(1 - self.alpha)}:"]
        lines += [
            f"  {percent(q)} of changes are at most {found.estimate:.4g} (between {found.low:.4g} and {found.high:.4g})"
            for q, found in self.quantiles.items()
        ]
        if self.mean is not None:
            lines.append(f"  the mean change is {self.mean.estimate:.4g} (between {self.mean.low:.4g} and {self.mean.high:.4g})")
        return "\n".join(lines)

    def plot(self) -> Figure:
        """A figure: the quantiles with their intervals."""
        from budge.report.figures import how_much as drawn

        return drawn(self)

    def _repr_html_(self) -> str:
        from budge.report.notebook import show_html

        return show_html(str(self), figure=self.plot)

    def to_dict(self) -> dict[str, Any]:
        """The record of the change."""
        return {
            "n": self.n,
            "quantiles": {str(q): found.to_dict() for q, found in self.quantiles.items()},
            "mean": None if self.mean is None else self.mean.to_dict(),
            "alpha": self.alpha,
        }


def how_much(
    changes: object,
    *,
    quantiles: Sequence[float] = (0.1, 0.5, 0.9),
    value_range: tuple[float, float] | None = None,
    alpha: object = 0.05,
) -> HowMuch:
    """Quantiles of the change of an output, and its mean if the range of the change is known; all intervals hold together.

    Examples
    --------
    >>> import numpy as np
    >>> found = how_much(np.random.default_rng(1).uniform(-1, 1, 400), value_range=(-1, 1))
    >>> sorted(found.quantiles), 0.0 in found.mean
    ([0.1, 0.5, 0.9], True)
    """
    x, level = values_of(changes, "changes"), fraction(alpha, "alpha")
    if value_range is not None and (isinstance(value_range, str) or np.size(value_range) != 2):
        raise DesignError("value_range must be a pair", where="value_range", got=value_range, remedy="(low, high)")
    levels = [fraction(q, "quantiles") for q in quantiles]
    parts = len(levels) + (value_range is not None)
    if not parts:
        raise DesignError(
            "nothing asked for", where="quantiles", got=quantiles, remedy="ask for a quantile, or give the range for the mean"
        )
    each = level / parts
    found = {q: quantile_interval(x, q, alpha=each) for q in levels}
    mean = None if value_range is None else bounded_mean(x, value_range[0], value_range[1], alpha=each)
    return HowMuch(x.size, found, mean, level)
