"""What directional linkages do together: several may move one target, and their parts add up.

    change of a target = its own action + the sum of what each linkage induces

For every linkage the induced change lies in an interval that follows from the source's own action; the
intervals of a target's linkages are added. This is the one place where that sum is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from budge.constraints.base import BoolArray, FloatArray, Values
from budge.expressions import All, Formula, Linear, Row, Some, common_denominator
from budge.expressions.tolerance import equal, less_equal
from budge.features import Feature

if TYPE_CHECKING:
    from budge.constraints.directional_linkage import DirectionalLinkage

__all__ = ["follows", "induced", "target_rows", "whole_scale"]


def whole_scale(target: Feature, links: Sequence[DirectionalLinkage]) -> int | None:
    """Return what makes the changes induced on a target whole; None where one of them is real."""
    if not target.discrete or not all(link.counts([link.source]) for link in links):
        return None
    return common_denominator(float(link.targets[target.name]) for link in links)


def induced(target: str, links: Sequence[DirectionalLinkage], x: Values, action: Values) -> tuple[FloatArray, FloatArray]:
    """Lowest and highest change that the linkages together induce on the target."""
    low: FloatArray = np.zeros(())
    high: FloatArray = np.zeros(())
    for link in links:
        least, most = link.interval(target, x, action)
        low, high = low + least, high + most
    return low, high


def follows(target: Feature, links: Sequence[DirectionalLinkage], x: Values, action: Values, change: Values) -> BoolArray:
    """Whether the target's change is its own action plus what the linkages may induce."""
    low, high = induced(target.name, links, x, action)
    own, moved = np.asarray(action[target.name], dtype=float), np.asarray(change[target.name], dtype=float)
    start = np.asarray(x[target.name], dtype=float)
    scale = whole_scale(target, links)
    whole, by = scale is not None, float(scale or 1)
    least, most = by * (own + low), by * (own + high)
    above, below = less_equal(least, by * moved, whole=whole), less_equal(by * moved, most, whole=whole)
    inside = above & below
    policy = links[0].on_exceed if links else "allow"
    if policy == "allow":
        return np.asarray(inside)
    floor, ceiling = target.reach(start)
    after = start + moved
    counted = target.discrete
    kept = less_equal(floor, after, whole=counted) & less_equal(after, ceiling, whole=counted)
    kept = kept | np.isnan(start)  # a missing value has no bounds to pass
    if policy == "clip":  # what would pass a bound stops at it
        inside = inside | (equal(after, ceiling, whole=counted) & below) | (equal(after, floor, whole=counted) & above)
    return np.asarray(inside & kept)


def target_rows(target: Feature, links: Sequence[DirectionalLinkage], x: Mapping[str, float]) -> Formula:
    """The same as rows: one branch for every combination of the sources' directions."""
    moved, own = Linear({("change", target.name): 1.0}, 0.0), Linear({("action", target.name): 1.0}, 0.0)
    floor, ceiling = (float(bound) for bound in target.reach(float(x[target.name])))
    start = float(x[target.name])
    policy = links[0].on_exceed if links and not np.isnan(start) else "allow"
    scale = whole_scale(target, links)
    whole, by = scale is not None, float(scale or 1)
    options: list[Formula] = []
    for branches in product(*(link.branches(target.name, x) for link in links)):
        guards: list[Formula] = [guard for branch in branches for guard in branch[0]]
        low, high = own, own
        for _, least, most in branches:
            low, high = low + least, high + most
        above, below = Row(by * (low - moved), "<=", whole=whole), Row(by * (moved - high), "<=", whole=whole)
        between = All((above, below))
        if policy == "clip":
            at_top = All((Row(moved - Linear({}, ceiling - start), "==", whole=target.discrete), below))
            at_bottom = All((Row(moved - Linear({}, floor - start), "==", whole=target.discrete), above))
            options.append(All((*guards, Some((between, at_top, at_bottom)))))
        else:
            options.append(All((*guards, between)))
    rows: Formula = options[0] if len(options) == 1 else Some(tuple(options))
    if policy == "allow":
        return rows
    top = Row(moved - Linear({}, ceiling - start), "<=", whole=target.discrete)
    bottom = Row(Linear({}, floor - start) - moved, "<=", whole=target.discrete)
    return All((rows, top, bottom))
