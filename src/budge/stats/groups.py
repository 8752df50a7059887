"""Groups: intervals for all of them, and for the differences between them, that hold together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from budge.errors import DesignError, nearest
from budge.stats._checks import fraction, percent, whole
from budge.stats.binomial import Interval, interval
from budge.stats.differences import Difference, difference

__all__ = ["GroupReport", "compare_groups", "group_intervals"]


@dataclass(frozen=True)
class GroupReport:
    """Simultaneous intervals: with probability 1 - alpha all of them cover at once."""

    intervals: dict[str, Interval]
    differences: dict[tuple[str, str], Difference]
    alpha: float

    def __str__(self) -> str:
        lines = [f"all together at {percent(1 - self.alpha)}:"]
        lines += [
            f"  {name}: {found.estimate:.4g} (between {found.low:.4g} and {found.high:.4g})"
            for name, found in self.intervals.items()
        ]
        lines += [
            f"  {a} - {b}: {d.estimate:+.4g} (between {d.low:+.4g} and {d.high:+.4g})" for (a, b), d in self.differences.items()
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The record of the groups."""
        return {
            "alpha": self.alpha,
            "intervals": {name: found.to_dict() for name, found in self.intervals.items()},
            "differences": [{"first": a, "second": b, **found.to_dict()} for (a, b), found in self.differences.items()],
        }


def _groups_of(counts: Mapping[str, tuple[int, int]]) -> list[tuple[str, int, int]]:
    if not isinstance(counts, Mapping) or not counts:
        raise DesignError("no groups", where="counts", got=counts, remedy='give at least one: {"name": (hits, n)}')
    rows = []
    for name, pair in counts.items():
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise DesignError("a group needs hits and draws", where=f"counts[{name!r}]", got=pair, remedy="(hits, n)")
        rows.append((str(name), whole(pair[0], f"counts[{name!r}].hits", least=0), whole(pair[1], f"counts[{name!r}].n")))
    return rows


def group_intervals(counts: Mapping[str, tuple[int, int]], *, alpha: object = 0.05) -> dict[str, Interval]:
    """One interval for each group, all of which cover together with probability 1 - alpha.

    Groups are independent samples, so each gets 1 - (1 - alpha)^(1/groups).

    Examples
    --------
    >>> found = group_intervals({"f": (10, 100), "m": (30, 100)})
    >>> found["f"].high < 0.2
    True
    """
    rows, level = _groups_of(counts), fraction(alpha, "alpha")
    each = float(-np.expm1(np.log1p(-level) / len(rows)))
    return {name: interval(k, n, each) for name, k, n in rows}


def compare_groups(counts: Mapping[str, tuple[int, int]], *, alpha: object = 0.05, reference: str | None = None) -> GroupReport:
    """Intervals for all groups and for all their differences (or those from a reference group), valid together.

    The differences are read off the groups' simultaneous intervals, so they cost nothing more: whenever all groups are covered,
    so is every difference. Their p-values are Bonferroni-adjusted over the pairs.

    Examples
    --------
    >>> print(compare_groups({"f": (10, 100), "m": (45, 100)}))
    all together at 95 %:
      f: 0.1 (between 0.04392 and 0.1876)
      m: 0.45 (between 0.3375 and 0.5663)
      f - m: -0.35 (between -0.5224 and -0.1499)
    """
    rows, level = _groups_of(counts), fraction(alpha, "alpha")
    found = group_intervals(counts, alpha=level)
    sizes = {name: (k, n) for name, k, n in rows}
    if reference is not None and reference not in sizes:
        raise DesignError("unknown reference group", where="reference", got=reference, remedy=nearest(reference, sizes))
    pairs = [(name, reference) for name in sizes if name != reference] if reference is not None else list(combinations(sizes, 2))
    differences = {}
    for a, b in pairs:
        raw = difference(*sizes[a], *sizes[b], alpha=level)
        greater, less = (min(1.0, len(pairs) * p) for p in (raw.p_greater, raw.p_less))
        low, high = found[a].low - found[b].high, found[a].high - found[b].low
        differences[a, b] = Difference(raw.estimate, low, high, greater, less, level, "simultaneous")
    return GroupReport(found, differences, level)
