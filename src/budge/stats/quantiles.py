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

__all__ = ["HowMuch", "how_much", "how_much_exactly", "quantile_interval", "quantile_ranks"]


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
    """The change of a numeric output over reachable points: quantiles, and the mean where a range is known.

    Where every point was listed (`exact`) nothing is uncertain: both ends of each are the number itself, apart only where
    `unresolved` points have no answer.
    """

    n: int
    quantiles: dict[float, Interval]
    mean: Interval | None
    alpha: float
    exact: bool = False
    unresolved: int = 0

    def __str__(self) -> str:
        if self.exact:
            gaps = f"; {self.unresolved:,} have no answer, and the ends hold for every way to fill them" if self.unresolved else ", exactly"
            lines = [f"over all {self.n:,} reachable points{gaps}:"]
            lines += [f"  {percent(q)} of changes are at most {_known(found)}" for q, found in self.quantiles.items()]
            return "\n".join(lines + ([f"  the mean change is {_known(self.mean)}"] if self.mean is not None else []))
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
            "exact": self.exact,
            "unresolved": self.unresolved,
        }


def _known(found: Interval) -> str:
    return f"{found.estimate:.4g}" + ("" if found.low == found.high else f" (between {found.low:.4g} and {found.high:.4g})")


def how_much_exactly(
    changes: object, *, weights: object = None, unresolved: float = 0.0, lost: int = 0, quantiles: Sequence[float] = (0.1, 0.5, 0.9),
    alpha: object = 0.05,
) -> HowMuch:  # fmt: skip
    """Quantiles and mean of a change that is known at every point; no interval, for nothing was drawn.

    Parameters
    ----------
    changes, weights
        At the points with an answer, and their probabilities (alike unless given).
    unresolved, lost
        The probability of the points without an answer, and their number. Each quantile then lies between two ends, and there is no mean.

    Examples
    --------
    >>> found = how_much_exactly([0.0, 1.0, 2.0, 5.0])
    >>> found.quantiles[0.5].estimate, found.mean.estimate
    (1.0, 2.0)
    """
    x, level = values_of(changes, "changes"), fraction(alpha, "alpha")
    w = np.full(x.size, (1.0 - unresolved) / x.size) if weights is None else np.asarray(weights, dtype=float)
    w = w * ((1.0 - unresolved) / w.sum())
    order = np.argsort(x, kind="stable")
    x, reached = x[order], np.cumsum(w[order])

    def at(q: float, ahead: float) -> float:
        """The smallest value up to which a share q lies, where `ahead` lies before all values."""
        if ahead and q <= ahead + 1e-12:
            return -np.inf
        k = int(np.searchsorted(reached, q - ahead - 1e-12))
        return float(x[k]) if k < x.size else np.inf

    found = {}
    for q in (fraction(q, "quantiles") for q in quantiles):
        found[q] = Interval(at(q * (1.0 - unresolved), 0.0), at(q, unresolved), at(q, 0.0), level, "every point listed")
    mean = float(np.dot(x, w[order]))
    return HowMuch(x.size + lost, found, None if lost else Interval(mean, mean, mean, level, "every point listed"), level, True, lost)


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
