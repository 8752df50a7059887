"""Differences of two rates: two models, two groups, an interaction model with and without a constraint.

Intervals here never rest on a normal approximation: each is built from exact one-sample bounds that hold together. P-values are
Fisher's (two independent samples) and McNemar's exact one (the same draws judged twice).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from budge.errors import DesignError
from budge.stats._checks import counts, fraction, hits_of_n, number, percent, plain, unwrap
from budge.stats.binomial import interval
from budge.stats.tails import at_least

__all__ = ["Ablation", "Difference", "difference", "paired_difference", "relaxation"]


@dataclass(frozen=True)
class Difference:
    """First rate minus second rate. Holds scalars or arrays."""

    estimate: Any
    low: Any
    high: Any
    p_greater: Any
    p_less: Any
    alpha: float
    method: str

    @property
    def p_value(self) -> Any:
        """Two-sided: twice the smaller one-sided p-value."""
        return unwrap(np.asarray(np.minimum(1.0, 2 * np.minimum(self.p_greater, self.p_less))))

    def __iter__(self) -> Iterator[Any]:
        return iter((self.low, self.high))

    def __str__(self) -> str:
        if np.ndim(self.estimate):
            return f"{np.size(self.estimate)} differences ({self.method})"
        ends = f"between {self.low:+.4g} and {self.high:+.4g} at {percent(1 - self.alpha)}"
        return f"difference {self.estimate:+.4g} ({ends}; p = {self.p_value:.3g}; {self.method})"

    def to_dict(self) -> dict[str, Any]:
        """The record of the difference."""
        return {
            name: plain(getattr(self, name))
            for name in ("estimate", "low", "high", "p_greater", "p_less", "p_value", "alpha", "method")
        }


def difference(hits: object, n: object, hits2: object, n2: object, *, alpha: object = 0.05) -> Difference:
    """The difference of two rates from two independent samples.

    Examples
    --------
    >>> print(difference(45, 100, 20, 100))
    difference +0.25 (between +0.03255 and +0.4481 at 95 %; p = 0.000259; two samples, exact)
    """
    level = fraction(alpha, "alpha")
    (k1, m1), (k2, m2) = hits_of_n(hits, n), hits_of_n(hits2, n2)
    # Two independent intervals hold together with probability (1 - each)^2.
    each = -np.expm1(np.log1p(-level) / 2)
    one, two = interval(k1, m1, each), interval(k2, m2, each)
    from scipy.stats import hypergeom  # late: scipy.stats is slow to import

    # Fisher: given all hits, how many of them fall into the first sample.
    total = (m1 + m2).astype(np.int64), (k1 + k2).astype(np.int64), m1.astype(np.int64)
    greater, less = hypergeom.sf(k1 - 1, *total), hypergeom.cdf(k1, *total)
    return Difference(
        unwrap(np.asarray(k1 / m1 - k2 / m2)),
        one.low - two.high,
        one.high - two.low,
        unwrap(np.asarray(greater)),
        unwrap(np.asarray(less)),
        level,
        "two samples, exact",
    )


def paired_difference(only_first: object, only_second: object, n: object, *, alpha: object = 0.05) -> Difference:
    """The difference of two rates over the same draws: only those that hit one and not the other count (McNemar).

    Parameters
    ----------
    only_first, only_second : int or array
        Draws that hit under the first and not under the second, and the reverse.
    n : int or array
        All draws, also those on which both agree.

    Examples
    --------
    >>> paired_difference(12, 2, 100).p_greater < 0.01
    True
    """
    level = fraction(alpha, "alpha")
    (b, size), (c, _) = hits_of_n(only_first, n), hits_of_n(only_second, n)
    if (b + c > size).any():
        raise DesignError(
            "more disagreements than draws", where="only_second", got=plain(c), remedy="each draw disagrees in one way at most"
        )
    one, two = interval(b, size, level / 2), interval(c, size, level / 2)
    apart = np.maximum(b + c, 1.0)
    greater = np.where(b + c > 0, at_least(b, apart, np.float64(0.5)), 1.0)
    less = np.where(b + c > 0, at_least(c, apart, np.float64(0.5)), 1.0)
    estimate = unwrap(np.asarray((b - c) / size))
    return Difference(estimate, one.low - two.high, one.high - two.low, unwrap(greater), unwrap(less), level, "paired, exact")


@dataclass(frozen=True)
class Ablation:
    """What relaxing a constraint does: the change of responsiveness, and whether the target became reachable."""

    change: Difference
    newly_reachable: bool
    size_ratio: float | None

    def __str__(self) -> str:
        ratio = "" if self.size_ratio is None else f"; the relaxed set is {self.size_ratio:.3g} times as large"
        new = "; the target was seen only after relaxing" if self.newly_reachable else ""
        return f"relaxing changes responsiveness: {self.change}{new}{ratio}"

    def to_dict(self) -> dict[str, Any]:
        """The record of the ablation."""
        return {"change": self.change.to_dict(), "newly_reachable": self.newly_reachable, "size_ratio": self.size_ratio}


def relaxation(
    relaxed: tuple[int, int],
    original: tuple[int, int],
    *,
    sizes: tuple[float, float] | None = None,
    inside: tuple[int, int] | None = None,
    alpha: object = 0.05,
) -> Ablation:
    """The change of responsiveness when a constraint is relaxed; both sets sampled. It may be negative: more actions can dilute.

    Parameters
    ----------
    relaxed, original : (hits, n)
        Draws from the relaxed and from the original set.
    sizes : (relaxed, original), optional
        Sizes of the two sets, where they are counted.
    inside : (inside, checked), optional
        Of so many draws from the original set that were checked, how many the relaxed set allows; all, if it is a relaxation.

    Examples
    --------
    >>> relaxation((30, 100), (0, 100)).newly_reachable
    True
    """
    for name, pair in (("relaxed", relaxed), ("original", original)):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise DesignError(f"{name} must be a pair of hits and draws", where=name, got=pair, remedy="(hits, n)")
    refused = "the relaxed set is not a superset of the original one, so this is no relaxation"
    ratio = None
    if sizes is not None:
        large, small = number(sizes[0], "sizes[0]"), number(sizes[1], "sizes[1]")
        if not 0 < small <= large:
            raise DesignError(refused, where="sizes", got=sizes, remedy="remove or loosen a constraint; add none")
        ratio = large / small
    if inside is not None:
        allowed, checked = (float(part) for part in (counts(inside[0], "inside[0]"), counts(inside[1], "inside[1]")))
        if allowed < checked:
            raise DesignError(refused, where="inside", got=inside, remedy="remove or loosen a constraint; add none")
    change = difference(relaxed[0], relaxed[1], original[0], original[1], alpha=alpha)
    return Ablation(change, bool(relaxed[0] > 0 and original[0] == 0), ratio)
