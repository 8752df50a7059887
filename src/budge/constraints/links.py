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
from budge.expressions import All, Formula, Linear, Row, Some
from budge.expressions.tolerance import equal, less_equal
from budge.features import Feature

if TYPE_CHECKING:
    from budge.constraints.directional_linkage import DirectionalLinkage

__all__ = ["follows", "induced", "target_rows"]


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
    inside = less_equal(own + low, moved) & less_equal(moved, own + high)
    policy = links[0].on_exceed if links else "allow"
    if policy == "allow":
        return np.asarray(inside)
    floor, ceiling = target.reach(start)
    after = start + moved
    kept = (less_equal(floor, after) & less_equal(after, ceiling)) | np.isnan(start)  # a missing value has no bounds to pass
    if policy == "clip":  # what would pass a bound stops at it
        inside = (
            inside
            | (equal(after, ceiling) & less_equal(moved, own + high))
            | (equal(after, floor) & less_equal(own + low, moved))
        )
    return np.asarray(inside & kept)


def target_rows(target: Feature, links: Sequence[DirectionalLinkage], x: Mapping[str, float]) -> Formula:
    """The same as rows: one branch for every combination of the sources' directions."""
    moved, own = Linear({("change", target.name): 1.0}, 0.0), Linear({("action", target.name): 1.0}, 0.0)
    floor, ceiling = (float(bound) for bound in target.reach(float(x[target.name])))
    start = float(x[target.name])
    policy = links[0].on_exceed if links and not np.isnan(start) else "allow"
    options: list[Formula] = []
    for branches in product(*(link.branches(target.name, x) for link in links)):
        guards: list[Formula] = [guard for branch in branches for guard in branch[0]]
        low, high = own, own
        for _, least, most in branches:
            low, high = low + least, high + most
        between = All((Row(low - moved, "<="), Row(moved - high, "<=")))
        if policy == "clip":
            at_top = All((Row(moved - Linear({}, ceiling - start), "=="), Row(moved - high, "<=")))
            at_bottom = All((Row(moved - Linear({}, floor - start), "=="), Row(low - moved, "<=")))
            options.append(All((*guards, Some((between, at_top, at_bottom)))))
        else:
            options.append(All((*guards, between)))
    rows: Formula = options[0] if len(options) == 1 else Some(tuple(options))
    if policy == "allow":
        return rows
    return All((rows, Row(moved - Linear({}, ceiling - start), "<="), Row(Linear({}, floor - start) - moved, "<=")))
