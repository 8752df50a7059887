"""Bounds for the mean of bounded draws, without any assumption on their distribution: betting.

A gambler starts with 1 and bets before each draw that the mean is larger than m, staking what the past draws suggest. If the
mean is m or less, the wealth is a supermartingale and passes 1/alpha with probability at most alpha: the m at which it does are
excluded.
Never needs a normal approximation, adapts to small variance, and holds at any stopping time. The bets follow the empirical
variance (the predictable plug-in of Waudby-Smith and Ramdas, 2024). By hand: no maintained package for it builds here.
"""

from __future__ import annotations

import numpy as np

from budge.errors import DesignError
from budge.stats._checks import Floats, fraction, number, one_of
from budge.stats.binomial import Interval

__all__ = ["bounded_mean", "lower_mean", "stakes", "values_of"]


def values_of(values: object, where: str = "values") -> Floats:
    """A flat array of finite numbers, at least one."""
    raw = np.asarray(values)
    if raw.dtype.kind not in "biuf":
        raise DesignError(f"{where} must hold numbers", where=where, got=values, remedy="pass an array of numbers")
    flat = raw.astype(np.float64).ravel()
    if not flat.size:
        raise DesignError(f"{where} is empty: nothing was drawn", where=where, got=values, remedy="draw at least once")
    if not np.isfinite(flat).all():
        i = int(np.flatnonzero(~np.isfinite(flat))[0])
        raise DesignError(
            f"{where} must be finite",
            where=f"{where}[{i}]",
            got=flat[i].item(),
            remedy="count answers that are missing as unresolved",
        )
    return flat


def stakes(x: Floats, alpha: float) -> Floats:
    """The stake before each draw of x in [0, 1], from the draws before it alone."""
    t = np.arange(1, x.size + 1)
    mean = (0.5 + np.cumsum(x)) / (t + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2)) / (t + 1)
    before = np.concatenate([[0.25], variance[:-1]])
    # The best constant stake for n draws of that variance; n is fixed in advance here, so it may be used.
    return np.asarray(np.sqrt(2 * np.log(1 / alpha) / (before * x.size)))


def lower_mean(x: Floats, alpha: float) -> float:
    """A lower bound for the mean of independent draws in [0, 1]: above the truth with probability at most alpha."""
    bet, need = stakes(x, alpha), np.log(1 / alpha)

    def excluded(m: float) -> bool:
        stake = np.minimum(bet, 0.75 / m)  # never more than three quarters of the wealth on one draw
        return bool(np.cumsum(np.log1p(stake * (x - m))).max() >= need)

    low, high = 0.0, 1.0
    for _ in range(50):  # wealth falls as m grows, so the excluded means are those below one point
        middle = (low + high) / 2
        low, high = (middle, high) if excluded(middle) else (low, middle)
    return low


def bounded_mean(values: object, low: object, high: object, *, alpha: object = 0.05, side: str = "both") -> Interval:
    """An interval for the mean of draws that lie between `low` and `high`, valid for every such distribution.

    Parameters
    ----------
    values : array
        Independent draws, in the order in which they were drawn.
    low, high : float
        The range that no draw can leave, known beforehand; not the smallest and largest value seen.
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
    which = one_of(side, "side", ("both", "lower", "upper"))
    if not (np.isfinite(a) and np.isfinite(b) and a < b):
        raise DesignError(
            "the range must be finite and its lower end below the upper",
            where="low",
            got=[low, high],
            remedy="give the range that no value leaves",
        )
    if x.min() < a or x.max() > b:
        worst = x[(x < a) | (x > b)][0].item()
        raise DesignError(
            f"a value lies outside the range {a:g} to {b:g}",
            where="values",
            got=worst,
            remedy="give the range that no value leaves",
        )
    unit = (x - a) / (b - a)
    each = level / 2 if which == "both" else level
    lower = a + (b - a) * lower_mean(unit, each) if which != "upper" else a
    upper = b - (b - a) * lower_mean(1 - unit, each) if which != "lower" else b
    return Interval(float(x.mean()), float(lower), float(upper), level, "betting bounds")
