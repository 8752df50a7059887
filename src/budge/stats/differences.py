"""Differences of two rates: two independent samples, or the same draws judged twice.

`method="region"`: p-value and interval come from one exact region of both rates (`budge.stats._regions`): of two samples with 400 draws or fewer in all
from the probabilities of all possible counts, put in order before looking; of larger samples and of pairs from combined tails, which are some 10 %
wider and take milliseconds at any size. `method="rectangle"`: the difference of two exact intervals that hold together, and the p-value of that rectangle;
wider, except where next to nothing was seen. The method is to be chosen before looking. `method="pooled"`: the rectangle for fixed rows that differ, each
drawn equally often. Either way each end errs with probability at most alpha / 2, and the p-value is below alpha if and only if the interval excludes 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from budge.errors import DesignError
from budge.stats._checks import Ends, Floats, counts, fraction, hits_of_n, one_of, percent, plain, unwrap, with_missing
from budge.stats._regions import Pairs, TwoSamples, search
from budge.stats.means import pooled_bounds, pooled_p_value
from budge.stats.tails import at_least, at_most, invert_at_least, invert_at_most

__all__ = ["Difference", "difference", "difference_bounds", "paired_difference", "paired_difference_bounds"]

_NAMES = {"region": "exact region", "rectangle": "exact intervals", "pooled": "exact intervals, fixed rows"}


@dataclass(frozen=True)
class Difference(Ends):
    """First rate minus second rate. Holds scalars or arrays.

    `low` is above 0 if and only if `p_greater` is below alpha / 2, and `high` is below 0 if and only if `p_less` is.
    """

    derived = ("p_value",)

    estimate: Any
    low: Any
    high: Any
    p_greater: Any
    p_less: Any
    alpha: float
    method: str

    @property
    def p_value(self) -> Any:
        """Two-sided p-value: twice the smaller one-sided one. Below alpha if and only if the interval excludes 0."""
        return unwrap(np.asarray(np.minimum(1.0, 2 * np.minimum(self.p_greater, self.p_less))))

    def __str__(self) -> str:
        if np.ndim(self.estimate):
            return f"{np.size(self.estimate)} differences ({self.method})"
        ends = f"between {self.low:+.4g} and {self.high:+.4g} at {percent(1 - self.alpha)}"
        return f"difference {self.estimate:+.4g} ({ends}; p = {self.p_value:.3g}; {self.method})"


def difference(
    hits: object, n: object, hits2: object, n2: object, *, unresolved: object = 0, unresolved2: object = 0, alpha: object = 0.05,
    method: str = "region", p_values: bool = True,
) -> Difference:  # fmt: skip
    """Return the difference of two rates from two independent samples, with interval and p-values.

    Parameters
    ----------
    hits, n, hits2, n2 : int or array
        Hits and draws of the first and of the second sample. Arrays are taken elementwise.
    unresolved, unresolved2 : int or array
        Draws without an answer, part of n and n2: interval and p-values hold for every way to fill them in.
    alpha : float
        Error of the interval, half of it at each end.
    method : {"region", "rectangle", "pooled"}
        One exact region for both rates, or the difference of two exact intervals. `rectangle` is narrower only where next to
        nothing was seen in more than 400 draws, for example to show that two rates agree. `pooled`: the difference of two mean rates
        over rows that differ, each drawn equally often.
    p_values : bool
        Whether to search for the p-values of `region` (NaN otherwise): upper bounds, at most some half percent of themselves above its own.

    Examples
    --------
    >>> found = difference(45, 100, 20, 100)
    >>> round(found.low, 2), round(found.high, 2), found.p_value < 0.001
    (0.12, 0.38, True)
    >>> low, high = difference(45, 100, 20, 100, method="rectangle")
    >>> round(low, 2), round(high, 2)
    (0.03, 0.45)
    """
    k1, n1, u1, k2, m2, u2 = np.broadcast_arrays(*with_missing(hits, n, unresolved), *with_missing(hits2, n2, unresolved2))
    rates = [np.where(m > u, k / np.maximum(m - u, 1), 0.5) for k, m, u in ((k1, n1, u1), (k2, m2, u2))]
    return _found(TwoSamples, (k1, n1, k2 + u2, m2), (k2, m2, k1 + u1, n1), rates[0] - rates[1], alpha, method, p_values)


def difference_bounds(
    hits: object, n: object, hits2: object, n2: object, *, unresolved: object = 0, unresolved2: object = 0, alpha: object = 0.05,
    method: str = "region",
) -> tuple[Any, Any]:  # fmt: skip
    """Return the ends of the interval of `difference` alone, without the search for p-values."""
    low, high = difference(
        hits, n, hits2, n2, unresolved=unresolved, unresolved2=unresolved2, alpha=alpha, method=method, p_values=False
    )
    return low, high


def paired_difference(
    only_first: object, only_second: object, n: object, *, unresolved: object = 0, alpha: object = 0.05, method: str = "region",
    p_values: bool = True,
) -> Difference:  # fmt: skip
    """Return the difference of two rates over the same draws, from those that hit one time and not the other.

    Parameters
    ----------
    only_first, only_second : int or array
        Draws that hit under the first and not under the second, and the reverse.
    n : int or array
        All draws, also those on which both agree.
    unresolved : int or array
        Draws of which at least one answer is missing: each may favour the first, the second, or neither.
    alpha, method, p_values
        As for `difference`.

    Examples
    --------
    >>> found = paired_difference(12, 2, 100)
    >>> round(found.low, 3), round(found.high, 3), found.p_value < 0.05
    (0.018, 0.208, True)
    """
    (b, size), (c, _) = hits_of_n(only_first, n), hits_of_n(only_second, n)
    b, c, size, missing = np.broadcast_arrays(b, c, size, counts(unresolved, "unresolved"))
    most = b + c + missing
    if (most > size).any():
        what, remedy = "more disagreements and unresolved draws than draws", "n counts all draws, each in one way at most"
        raise DesignError(what, where="only_second", got=plain(c), remedy=remedy)
    estimate = np.asarray((b - c) / np.maximum(size - missing, 1.0))
    return _found(Pairs, (b, b + c, most, size), (c, b + c, most, size), estimate, alpha, method, p_values)


def paired_difference_bounds(
    only_first: object, only_second: object, n: object, *, unresolved: object = 0, alpha: object = 0.05, method: str = "region"
) -> tuple[Any, Any]:
    """Return the ends of the interval of `paired_difference` alone, without the search for p-values."""
    low, high = paired_difference(only_first, only_second, n, unresolved=unresolved, alpha=alpha, method=method, p_values=False)
    return low, high


def _found(
    kind: type[TwoSamples] | type[Pairs], forward: tuple[Floats, ...], backward: tuple[Floats, ...], estimate: Floats, alpha: object,
    method: str, p_values: bool,
) -> Difference:  # fmt: skip
    """Return the difference from the counts behind its lower end, and the same mirrored for its upper end; once per distinct row."""
    level, how = fraction(alpha, "alpha"), one_of(method, "method", tuple(_NAMES))
    rows = np.concatenate([np.stack([column.ravel() for column in side], axis=1) for side in (forward, backward)])
    distinct, where = np.unique(rows, axis=0, return_inverse=True)
    problem = kind(distinct)
    if how == "region":
        low = search(problem, level / 2)
        p = search(problem, None) if p_values else np.full(low.size, np.nan)
    else:
        low, p = _rectangle(problem, level, pooled=how == "pooled")
    # Both are on the safe side of one curve; where the search left a gap between them, the bound decides.
    p = np.where(low > 0, np.minimum(p, np.nextafter(level / 2, 0)), np.maximum(p, level / 2))
    lows, ps = (part[where.ravel()].reshape(2, *estimate.shape) for part in (low, p))
    name = f"{'pairs' if kind is Pairs else 'two samples'}, {_NAMES[how]}"
    return Difference(unwrap(estimate), unwrap(lows[0]), unwrap(-lows[1]), unwrap(ps[0]), unwrap(ps[1]), level, name)


def _rectangle(problem: TwoSamples | Pairs, alpha: float, *, pooled: bool) -> tuple[Floats, Floats]:
    """Return the least difference over two exact intervals, and the error at which it is 0."""
    k1, n1, k2, n2 = problem.rows.T
    each = float(-np.expm1(np.log1p(-alpha) / 2)) / 2  # independent samples
    if isinstance(problem, Pairs):  # both kinds of disagreement, at alpha / 2 each
        n1, k2, each = n2, k2 - k1, alpha / 4

    def tails(rate: Floats) -> tuple[Floats, Floats]:
        """Return the first tail, which rises in the rate, and the second, which falls."""
        if pooled:
            return pooled_p_value(k1, n1, rate, "above"), pooled_p_value(k2, n2, rate, "below")
        return at_least(k1, n1, rate), at_most(k2, n2, rate)

    below, above = np.zeros(k1.shape), np.ones(k1.shape)
    for _ in range(60):  # where the tails meet, or pass each other
        middle = (below + above) / 2
        risen = np.greater_equal(*tails(middle))
        below, above = np.where(risen, below, middle), np.where(risen, middle, above)
    tail = np.minimum(tails(below)[1], tails(above)[0])
    p = np.minimum(1.0, 2 * tail) if isinstance(problem, Pairs) else np.where(tail < 0.5, 2 * tail * (1 - tail), 1.0)
    if pooled:
        return np.asarray(pooled_bounds(k1, n1, each)[0] - pooled_bounds(k2, n2, each)[1]), p
    return invert_at_least(k1, n1, each) - invert_at_most(k2, n2, each), p
