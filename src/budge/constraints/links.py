"""What directional linkages do together: several may move one target, and their parts add up.

    change of a target = its own action + the sum of what each linkage induces

For every linkage the induced change lies in an interval that follows from the source's own action; the
intervals of a target's linkages are added. This is the one place where that sum is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from budge.constraints.base import BoolArray, FloatArray, Values
from budge.expressions import All, Formula, Linear, Row, Some, common_denominator, negate, some_of
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


def target_rows(
    target: Feature, links: Sequence[DirectionalLinkage], x: Mapping[str, float | FloatArray],
    own: tuple[Linear, Linear] | None = None, clauses: bool = False,
) -> Formula:  # fmt: skip
    """The same as rows: one branch for every combination of the sources' directions, as cases or, with `clauses`, as conditions that all hold.

    With `own`, the own action may lie anywhere between these two, and the change is within its bounds already.
    """
    moved, start = Linear({("change", target.name): 1.0}, 0.0), np.asarray(x[target.name], dtype=float)
    least_own, most_own = own or [Linear({("action", target.name): 1.0}, 0.0)] * 2
    floor, ceiling = (bound - start for bound in target.reach(start))
    policy = links[0].on_exceed if links and not np.isnan(start).all() else "allow"
    scale = whole_scale(target, links)
    whole, by = scale is not None, float(scale or 1)
    top, bottom = Row(moved - ceiling, "<=", whole=target.discrete), Row(floor - moved, "<=", whole=target.discrete)
    options: list[Formula] = []
    for branches in product(*(link.branches(target.name, x) for link in links)):
        guards: list[Formula] = [guard for branch in branches for guard in branch[0]]
        low, high = least_own, most_own
        for _, least, most in branches:
            low, high = low + least, high + most
        above, below = Row(by * (low - moved), "<=", whole=whole), Row(by * (moved - high), "<=", whole=whole)
        between: Formula = All((above, below))
        at_top, at_bottom = replace(top, relation="=="), replace(bottom, relation="==")
        if clauses:
            elsewhere = [negate(guard) for guard in guards]
            options += [some_of([*elsewhere, above, *([at_top] if policy == "clip" else [])])]
            options += [some_of([*elsewhere, below, *([at_bottom] if policy == "clip" else [])])]
            continue
        if policy == "clip":
            between = Some((between, All((at_top, below)), All((at_bottom, above))))
        options.append(All((*guards, between)))
    rows: Formula = options[0] if len(options) == 1 else All(tuple(options)) if clauses else Some(tuple(options))
    return rows if policy == "allow" or own is not None else All((rows, top, bottom))
