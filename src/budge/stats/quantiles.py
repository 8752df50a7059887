"""How much: quantiles and the mean of the change of a numeric output, without assumptions on its distribution.

The mean of draws from a known range is bounded by betting. A gambler starts with 1 and bets before each draw that the mean is larger than m, staking
what the past draws suggest. If the mean is m or less, the wealth is a supermartingale and passes 1/alpha with probability at most alpha: the m at which
it does are excluded. The stakes follow the empirical variance (the predictable plug-in of Waudby-Smith and Ramdas, 2024): intervals are a quarter
narrower than with the fixed bets of `budge.stats.evidence`. By hand: no maintained package for it builds here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from budge.errors import DesignError
from budge.stats._checks import Floats, Record, fraction, number, one_of, percent, refuse_first, values_of, whole
from budge.stats.binomial import Interval
from budge.stats.evidence import solve
from budge.stats.tails import at_least, at_most

if TYPE_CHECKING:
    from budge.report.figures import Figure

__all__ = ["HowMuch", "bounded_mean", "how_much", "how_much_exactly", "log_wealth", "quantile_interval"]


def log_wealth(x: Floats, m: Floats, tuned: float, missing: int = 0) -> Floats:
    """Return the logarithm of what the gambler wins against each mean m, at its largest: above log(1/a) with probability at most a.

    `tuned` is the error at which the stakes are best; the wealth is valid at every other too. Draws without an answer count as 0. Where they stood
    among the others is not known, so the gambler has to keep the wealth to the end; their stakes are no smaller than the first one, which is the least
    and could have been placed anywhere.
    """
    x, t = np.append(x, np.zeros(missing)), np.arange(1, x.size + missing + 1)
    mean = (0.5 + np.cumsum(x)) / (t + 1)
    variance = np.minimum((0.25 + np.cumsum((x - mean) ** 2)) / (t + 1), 0.25)
    # The best constant stake for n draws of the variance seen so far; n is fixed in advance here, so it may be used.
    stakes = np.sqrt(2 * np.log(1 / tuned) / (np.append(0.25, variance[:-1]) * x.size))
    at = np.maximum(np.asarray(m, float), 1e-300)[..., None]
    wealth = np.cumsum(np.log1p(np.minimum(stakes, 0.75 / at) * (x - at)), axis=-1)  # never more than three quarters of it on one draw
    return np.asarray(wealth[..., -1] if missing else wealth.max(axis=-1))


def bounded_mean(
    values: object, low: object, high: object, *, unresolved: object = 0, alpha: object = 0.05, side: str = "both"
) -> Interval:
    """Return an interval for the mean of draws that lie between `low` and `high`, valid for every such distribution.

    Parameters
    ----------
    values : array
        Independent draws, in the order in which they were drawn.
    low, high : float
        The range that no draw can leave, known beforehand; not the smallest and largest value seen.
    unresolved : int
        Further draws without an answer: at the low end of the range for the lower bound, at the high end for the upper bound.
    side : {"both", "lower", "upper"}
        One-sided bounds spend all of alpha on their side; the other end is the end of the range.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).beta(2, 5, 500)
    >>> low, high = bounded_mean(x, 0, 1)
    >>> low < 2 / 7 < high, high - low < 0.05
    (True, True)
    """
    x, a, b, level = values_of(values), number(low, "low"), number(high, "high"), fraction(alpha, "alpha")
    which, missing = one_of(side, "side", ("both", "lower", "upper")), whole(unresolved, "unresolved", least=0)
    remedy = "give the range that no value leaves"
    if not (np.isfinite(a) and np.isfinite(b) and a < b):
        what = "the range must be finite and its lower end below the upper"
        raise DesignError(what, where="low", got=[low, high], remedy=remedy)
    refuse_first((x < a) | (x > b), x, f"a value lies outside the range {a:g} to {b:g}", "values", remedy)
    unit = (x - a) / (b - a)
    each = level / 2 if which == "both" else level

    def least(x: Floats) -> Floats:  # wealth falls as the mean grows, so the excluded means are those below one point
        return 1 - solve(lambda r: log_wealth(x, 1 - r, each, missing) >= np.log(1 / each), ())

    lower = a + (b - a) * least(unit) if which != "upper" else a
    upper = b - (b - a) * least(1 - unit) if which != "lower" else b
    return Interval(float(x.mean()), float(lower), float(upper), level, "betting bounds")


def quantile_interval(values: object, q: object = 0.5, *, unresolved: object = 0, alpha: object = 0.05) -> Interval:
    """Return an interval for the q-quantile from order statistics: valid for every distribution, with ties or without.

    Parameters
    ----------
    values : array
        Draws that have an answer; the estimate is their quantile.
    q : float
        Which quantile, between 0 and 1.
    unresolved : int
        Further draws without an answer. They count as the smallest values for the low end and as the largest for the high end, so the interval
        holds for every way to fill them in. An end is infinite where the draws are too few for any finite one.

    Examples
    --------
    >>> print(quantile_interval(range(1, 101), 0.5))
    50 (between 40 and 61 at 95 %, order statistics)
    >>> quantile_interval(range(1, 101), 0.5, unresolved=3)[0]
    39.0
    """
    x, at, level = np.sort(values_of(values)), fraction(q, "q"), fraction(alpha, "alpha")
    missing = whole(unresolved, "unresolved", least=0)
    n = x.size + missing
    k, size, share = np.arange(n + 1.0), np.float64(n), np.float64(at)
    first = int((at_most(k, size, share) <= level / 2).sum())  # the last rank, from 1, with P(Binomial(n, q) < rank) <= alpha / 2
    last = int((at_least(k, size, share) > level / 2).sum())  # the first rank with P(Binomial(n, q) >= rank) <= alpha / 2
    low = float(x[first - missing - 1]) if first > missing else -np.inf
    high = float(x[last - 1]) if last <= x.size else np.inf
    return Interval(float(np.quantile(x, at, method="inverted_cdf")), low, high, level, "order statistics")


@dataclass(frozen=True)
class HowMuch(Record):
    """The change of a numeric output over reachable points: quantiles, and the mean where a range is known.

    `n` counts all points, also the `unresolved` ones without an answer. Where every point was listed (`exact`) nothing is uncertain: both ends
    of each number are the number itself, apart only where answers are missing.
    """

    n: int
    quantiles: dict[float, Interval]
    mean: Interval | None
    alpha: float
    exact: bool = False
    unresolved: int = 0

    def __str__(self) -> str:
        gaps = f"; {self.unresolved:,} have no answer, and the ends hold for every way to fill them" if self.unresolved else ""
        if self.exact:
            lines = [f"over all {self.n:,} reachable points{gaps or ', exactly'}:"]
        else:
            lines = [f"over {self.n} draws{gaps}, all intervals together at {percent(1 - self.alpha)}:"]
        rows = [(f"{percent(q)} of changes are at most", found) for q, found in self.quantiles.items()]
        for name, found in [*rows, *([("the mean change is", self.mean)] if self.mean is not None else [])]:
            known = self.exact and found.low == found.high
            lines.append(f"  {name} {found.estimate:.4g}" + ("" if known else f" (between {found.low:.4g} and {found.high:.4g})"))
        return "\n".join(lines)

    def plot(self) -> Figure:
        """Return a figure: the quantiles with their intervals."""
        from budge.report.figures import how_much as drawn

        return drawn(self)


def how_much_exactly(
    changes: object, *, weights: object = None, unresolved: float = 0.0, lost: int = 0, quantiles: Sequence[float] = (0.1, 0.5, 0.9),
    alpha: object = 0.05,
) -> HowMuch:  # fmt: skip
    """Return quantiles and mean of a change that is known at every point; no interval, for nothing was drawn.

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
    w = np.full(x.size, 1.0 / x.size) if weights is None else np.asarray(weights, dtype=float)
    w = w * ((1.0 - unresolved) / w.sum())
    order = np.argsort(x, kind="stable")
    x, reached = x[order], np.cumsum(w[order])

    def at(q: float, ahead: float) -> float:
        """Return the smallest value up to which a share q lies, where `ahead` lies before all values."""
        if ahead and q <= ahead + 1e-12:
            return -np.inf
        k = int(np.searchsorted(reached, q - ahead - 1e-12))
        return float(x[k]) if k < x.size else np.inf

    found = {}
    for q in (fraction(q, "quantiles") for q in quantiles):
        found[q] = Interval(at(q * (1.0 - unresolved), 0.0), at(q, unresolved), at(q, 0.0), level, "every point listed")
    mean = float(np.dot(x, w[order]))
    known = None if lost else Interval(mean, mean, mean, level, "every point listed")
    return HowMuch(x.size + lost, found, known, level, True, lost)


def how_much(
    changes: object, *, unresolved: object = 0, quantiles: Sequence[float] = (0.1, 0.5, 0.9), value_range: tuple[float, float] | None = None,
    alpha: object = 0.05,
) -> HowMuch:  # fmt: skip
    """Return quantiles of the change of an output, and its mean if the range of the change is known; all intervals hold together.

    Parameters
    ----------
    changes : array
        The change at each draw that has an answer, in the order drawn.
    unresolved : int
        Further draws without an answer. They are not dropped: every interval holds for every way to fill them in, the estimates are those of
        the answered draws.
    quantiles, value_range
        Which quantiles; and the range that no change can leave, for the mean.

    Examples
    --------
    >>> import numpy as np
    >>> found = how_much(np.random.default_rng(1).uniform(-1, 1, 400), value_range=(-1, 1))
    >>> sorted(found.quantiles), 0.0 in found.mean
    ([0.1, 0.5, 0.9], True)
    """
    x, level, missing = values_of(changes, "changes"), fraction(alpha, "alpha"), whole(unresolved, "unresolved", least=0)
    if value_range is not None and (isinstance(value_range, str) or np.size(value_range) != 2):
        raise DesignError("value_range must be a pair", where="value_range", got=value_range, remedy="(low, high)")
    levels = [fraction(q, "quantiles") for q in quantiles]
    parts = len(levels) + (value_range is not None)
    if not parts:
        remedy = "ask for a quantile, or give the range for the mean"
        raise DesignError("nothing asked for", where="quantiles", got=quantiles, remedy=remedy)
    each = level / parts
    found = {q: quantile_interval(x, q, unresolved=missing, alpha=each) for q in levels}
    mean = None if value_range is None else bounded_mean(x, value_range[0], value_range[1], unresolved=missing, alpha=each)
    return HowMuch(x.size + missing, found, mean, level, unresolved=missing)
