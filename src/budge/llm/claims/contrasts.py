"""Differences of two rates over the same prompts: an interaction against the base, one model against another.

Draws are paired by prompt and draw index. Pairs of joint draws are alike: p-value and interval come from one exact region. With every prompt
drawn m times the prompts stay fixed and differ, which that region does not cover: there both kinds of disagreement are pooled counts of unlike
coins, and p-value and interval come from one rectangle of their bounds. Either way the two-sided p-value is below alpha if and only if the
interval excludes 0. Unresolved answers are filled against each end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from budge.errors import DesignError
from budge.llm.claims.evidence import Evidence
from budge.stats import Counts, claim, paired_difference
from budge.stats._checks import Floats
from budge.stats.claims import Question

__all__ = ["Contrast", "paired"]


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
    known = [(a, b) for a, b in zip(both["hit"], both["hit_2"]) if a is not None and b is not None]
    estimate = float(np.mean([float(a) - float(b) for a, b in known])) if known else None
    only = sum(a and not b for a, b in known), sum(b and not a for a, b in known)
    if many == "anytime":
        raise DesignError(
            "pairs of runs that stopped early cannot be compared: where each stopped depends on what it saw",
            where="method",
            got=method,
            remedy="draw a fixed number for the comparison",
        )
    if over == "these" and scheme == "census":  # nothing was drawn: unresolved answers alone leave the difference open
        low, high = (float((one - two).mean()) for one, two in (worst, best))
        return Contrast(estimate, low, high, float(low <= 0), float(high >= 0), "census", len(both), *only, lost)
    if many in ("clustered", "bounded"):  # a mean over prompts of draws between -1 and 1, moved to between 0 and 1
        codes, _ = pd.factorize(both["prompt"])
        size = np.bincount(codes)
        least, most = (size + np.bincount(codes, weights=one - two) for one, two in (worst, best))
        seen = claim(Counts.of(least, 2 * size, most - least), Question(0.5, alpha / 2), mean="bounded")
        ends = 2 * seen.lower[0] - 1, 2 * seen.upper[0] - 1, seen.p_above[0], seen.p_below[0]
        name = "paired by prompt, betting bounds"
    else:
        fixed = over == "these" and scheme == "per_prompt"
        (b1, c1), (b2, c2) = _discordant(worst), _discordant(best)
        found = paired_difference([b1, b2], [c1, c2], len(both), alpha=alpha, method="pooled" if fixed else "region")
        ends = found.low[0], found.high[1], found.p_greater[0], found.p_less[1]
        name = "paired, fixed prompts" if fixed else "paired, exact region"
    low, high, greater, less = (float(end) for end in ends)
    return Contrast(estimate, low, high, greater, less, name, len(both), *only, lost)


def _filled(both: pd.DataFrame, against: bool) -> tuple[Floats, Floats]:
    """Both columns as numbers, unresolved answers filled against "first is higher" or in its favour."""
    fill = (0.0, 1.0) if against else (1.0, 0.0)
    one, two = (np.array([fill[i] if h is None else float(h) for h in both[name]]) for i, name in enumerate(("hit", "hit_2")))
    return one, two


def _discordant(fill: tuple[Floats, Floats]) -> tuple[int, int]:
    return int((fill[0] > fill[1]).sum()), int((fill[0] < fill[1]).sum())
