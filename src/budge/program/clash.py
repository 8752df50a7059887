"""What clashes where a part is empty: a deletion filter over its constraints and its features' limits, by the solver."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from time import process_time

from budge.constraints import Constraint, DirectionalLinkage
from budge.errors import SolverError
from budge.features import Feature
from budge.parts import Part
from budge.program.milp import PartProgram

__all__ = ["clash"]

SECONDS = 10.0  #: of CPU time: the solver is called twice for each constraint and feature


def clash(part: Part, x: Mapping[str, float], *, seconds: float = SECONDS) -> tuple[str, ...]:
    """A minimal set of constraints and feature limits that cannot hold together; nothing if the part is not empty.

    Each is left out in turn and stays out if the rest still clashes (a deletion filter), so that leaving out any one of
    those returned makes an action feasible. Limits are left out first, then constraints, and once more the other way
    round; the shorter set is returned. A feature's limits (bounds, direction, steps, being actionable) are called
    ``limits of <name>``. After so many seconds of CPU time nothing more is left out: what is returned clashes, and may not be minimal.
    """
    if not PartProgram(part, x).is_empty():
        return ()
    limits: list[Feature | Constraint] = [f for f in part.features if f.type != "fixed"]
    rules: list[Feature | Constraint] = [*part.linkages, *part.constraints]
    until = process_time() + seconds
    found = [_filtered(part, x, limits + rules, until), _filtered(part, x, rules + limits, until)]
    kept = {id(item) for item in min(found, key=len)}
    return tuple(
        f"limits of {item.name}" if isinstance(item, Feature) else item.label for item in limits + rules if id(item) in kept
    )


def _filtered(part: Part, x: Mapping[str, float], items: Sequence[Feature | Constraint], until: float) -> list[Feature | Constraint]:
    kept = list(items)
    for item in items:
        if process_time() > until:
            break
        fewer = [other for other in kept if other is not item]
        if _clashes(part, x, fewer):
            kept = fewer
    return kept


def _clashes(part: Part, x: Mapping[str, float], kept: Sequence[Feature | Constraint]) -> bool:
    """Whether the part is empty with only these limits and constraints."""
    ids = {id(item) for item in kept}
    ends = [end for f in part.features if f.numeric for end in (*f.range, float(x[f.name])) if math.isfinite(end)]
    wide = 100.0 * max([10.0, *map(abs, ends)])
    features = tuple(f if id(f) in ids or f.type == "fixed" else _unlimited(f, float(x[f.name]), wide) for f in part.features)
    by_name = {f.name: f for f in features}
    links: dict[str, tuple[DirectionalLinkage, ...]] = {}
    bound = {id(link): link.bind(by_name) for link in part.linkages}
    for name, linked in part.links.items():
        remaining = tuple(bound[id(link)] for link in linked if id(link) in ids)
        if remaining:
            links[name] = remaining
    constraints = tuple(c.bind(by_name) for c in part.constraints if id(c) in ids)
    try:
        return PartProgram(Part(features, constraints, links), x).is_empty()
    except SolverError:
        return False  # not proved


def _unlimited(feature: Feature, x: float, wide: float) -> Feature:
    """The feature free to move anywhere in its type."""
    free = feature.but(actionable=True, direction=None, max_increase=None, max_decrease=None, distribution=None)
    if feature.type not in ("integer", "real"):
        return free.but(bounds=None)
    middle = x if math.isfinite(x) else 0.0
    return free.but(bounds=(math.floor(middle - wide), math.ceil(middle + wide)))
