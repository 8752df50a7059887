"""Differences of two rates over the same prompts: an interaction against the base, one model against another.

Draws are paired by prompt and draw index. Pairs of joint draws are alike: p-value and interval come from one exact region. With every prompt
drawn m times the prompts stay fixed and differ, which that region does not cover: there both kinds of disagreement are pooled counts of unlike
coins, and p-value and interval come from one rectangle of their bounds. Either way the two-sided p-value is below alpha if and only if the
interval excludes 0. Unresolved answers are filled against each end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from budge.errors import DesignError
from budge.llm.claims.evidence import Evidence, smallest_alpha
from budge.stats import bounded_mean, paired_difference, pooled_bounds
from budge.stats._checks import Floats

__all__ = ["Contrast", "apart", "paired"]


@dataclass(frozen=True)
class Contrast:
    """First rate minus second rate, an interval, one-sided p-values where there are any, and how they were had."""

    estimate: float | None
    low: float
    high: float
    p_greater: float | None
    p_less: float | None
    method: str
    pairs: int = 0
    only_first: int = 0
    only_second: int = 0
    unresolved: int = 0


def apart(first: Evidence, second: Evidence, *, over: str, alpha: float, method: str = "auto") -> Contrast:
    """From two intervals that hold together, whatever the two samples have in common."""
    ends = [part.claim(over=over, threshold=None, claim="below", alpha=alpha / 2, method=method) for part in (first, second)]
    one, two = (end.rate for end in ends)
    estimate = None if one is None or two is None else one - two
    return Contrast(estimate, ends[0].low - ends[1].high, ends[0].high - ends[1].low, None, None, "two intervals")


def paired(
    first: pd.DataFrame, second: pd.DataFrame, *, scheme: str, over: str, alpha: float, method: str = "auto", whole: bool = False
) -> Contrast | None:
    """From the draws that both have; None if there are none, or with `whole` if either has a draw that the other lacks."""
    keys = ["prompt", "draw"]
    both = first[[*keys, "hit"]].merge(second[[*keys, "hit"]], on=keys, suffixes=("", "_2"))
    if both.empty or (whole and not len(both) == len(first) == len(second)):
        return None
    many = Evidence.of(both, scheme).chosen(over, method)
    if many == "first":
        both = both.loc[both.groupby("prompt", sort=False)["draw"].idxmin()]
    elif over == "these" and scheme == "per_prompt":
        each = both.groupby("prompt", sort=False)["draw"].transform("size")
        rank = both.groupby("prompt", sort=False)["draw"].rank(method="first")
        both = both[rank <= each.min()]  # the same number for each prompt, chosen by index and not by outcome
    worst, best = _filled(both, True), _filled(both, False)
    lost = int(sum(a is None or b is None for a, b in zip(both["hit"], both["hit_2"])))
    seen = [(a, b) for a, b in zip(both["hit"], both["hit_2"]) if a is not None and b is not None]
    estimate = float(np.mean([float(a) - float(b) for a, b in seen])) if seen else None
    only = sum(a and not b for a, b in seen), sum(b and not a for a, b in seen)
    if many in ("clustered", "bounded"):
        codes, names = pd.factorize(both["prompt"])
        size = np.bincount(codes, minlength=len(names))

        def means(fill: tuple[Floats, Floats]) -> Floats:
            return np.bincount(codes, weights=fill[0] - fill[1], minlength=len(names)) / size

        low_d, high_d = means(worst), means(best)
        return Contrast(
            estimate,
            *_from_bounds(
                lambda a: bounded_mean(low_d, -1, 1, alpha=a, side="lower").low,
                lambda a: bounded_mean(high_d, -1, 1, alpha=a, side="upper").high,
                alpha,
            ),
            "paired by prompt, betting bounds", len(both), *only, lost,
        )  # fmt: skip
    if many == "anytime":
        raise DesignError(
            "pairs of runs that stopped early cannot be compared: where each stopped depends on what it saw",
            where="method",
            got=method,
            remedy="draw a fixed number for the comparison",
        )
    n = len(both)
    (b1, c1), (b2, c2) = _discordant(worst), _discordant(best)
    if over == "these" and scheme == "per_prompt":
        return Contrast(
            estimate,
            *_from_bounds(
                lambda a: pooled_bounds(b1, n, a / 2)[0] - pooled_bounds(c1, n, a / 2)[1],
                lambda a: pooled_bounds(b2, n, a / 2)[1] - pooled_bounds(c2, n, a / 2)[0],
                alpha,
            ),
            "paired, fixed prompts", n, *only, lost,
        )  # fmt: skip
    found = paired_difference([b1, b2], [c1, c2], n, alpha=alpha)
    ends = float(found.low[0]), float(found.high[1]), float(found.p_greater[0]), float(found.p_less[1])
    return Contrast(estimate, *ends, "paired, exact region", n, *only, lost)


def _from_bounds(lower: Callable[[float], float], upper: Callable[[float], float], alpha: float) -> tuple[float, float, float, float]:
    """Return the interval at alpha and both one-sided p-values from one-sided bounds."""
    return lower(alpha / 2), upper(alpha / 2), smallest_alpha(lower, alpha / 2), smallest_alpha(lambda a: -upper(a), alpha / 2)


def _filled(both: pd.DataFrame, against: bool) -> tuple[Floats, Floats]:
    """Both columns as numbers, unresolved answers filled against "first is higher" or in its favour."""
    fill = (0.0, 1.0) if against else (1.0, 0.0)
    one, two = (np.array([fill[i] if h is None else float(h) for h in both[name]]) for i, name in enumerate(("hit", "hit_2")))
    return one, two


def _discordant(fill: tuple[Floats, Floats]) -> tuple[int, int]:
    return int((fill[0] > fill[1]).sum()), int((fill[0] < fill[1]).sum())
