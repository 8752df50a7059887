"""The action set by brute force and by scalar definitions: written from the text of the semantics, not from the masks.

Every own action of every feature is tried with every change that linkages may induce, and each constraint is decided by
a few lines of plain Python on numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from budge import InteractionModel
from budge.constraints import (
    AdditiveLinkage,
    Constraint,
    DirectionalLinkage,
    IfThen,
    LinearConstraint,
    OneHot,
    Ordinal,
    Predicate,
    Reachability,
    Rule,
    Switch,
    Thermometer,
)
from budge.features import Feature

TINY = 1e-9
Numbers = Mapping[str, float]


def close(a: float, b: float) -> bool:
    return abs(a - b) <= TINY * max(1.0, abs(a), abs(b))


def related(a: float, relation: str, b: float) -> bool:
    if math.isnan(a) or math.isnan(b):
        return False
    return {"==": close(a, b), "<=": a < b or close(a, b), ">=": a > b or close(a, b)}[relation]


def span(feature: Feature, x: float) -> tuple[float, float]:
    """Lowest and highest own action of a feature."""
    if not feature.actionable or math.isnan(x):
        return 0.0, 0.0
    if feature.levels is not None:
        low, high = 0.0, len(feature.levels) - 1.0
    elif feature.bounds is not None:
        low, high = map(float, feature.bounds)
    else:
        low, high = 0.0, 1.0
    down = 0.0 if feature.direction == "increase" else min(low - x, 0.0)
    up = 0.0 if feature.direction == "decrease" else max(high - x, 0.0)
    if feature.max_decrease is not None:
        down = max(down, -feature.max_decrease)
    if feature.max_increase is not None:
        up = min(up, feature.max_increase)
    return down, up


def steps(feature: Feature, x: float) -> list[float]:
    """The own actions of a feature that can be listed."""
    down, up = span(feature, x)
    return [float(a) for a in range(math.ceil(down - TINY), math.floor(up + TINY) + 1)]


def induced(link: DirectionalLinkage, target: str, features: Mapping[str, Feature], x: Numbers, action: Numbers) -> tuple[float, float]:
    a, scale = action[link.source], float(link.targets[target])
    if link.relation == "==":
        ends = (scale * a, scale * a)
    elif link.relation == "<=":
        ends = (0.0, scale * a)
    else:
        down, up = span(features[link.source], x[link.source])
        if features[link.source].discrete:
            down, up = math.ceil(down - TINY), math.floor(up + TINY)
        furthest = up if a > 0 else down if a < 0 else 0.0
        ends = (scale * a, scale * furthest)
    return min(ends), max(ends)


def changes_of(im: InteractionModel, feature: Feature, x: Numbers, action: Numbers) -> list[float]:
    """The changes of one feature that its own action and the linkages on it allow."""
    links = [c for c in im.constraints if isinstance(c, DirectionalLinkage) and feature.name in c.targets]
    own, start = action[feature.name], x[feature.name]
    if not links or math.isnan(start):  # a missing value stays missing, whatever its sources do
        return [own]
    low = high = own
    for link in links:
        least, most = induced(link, feature.name, im.by_name, x, action)
        low, high = low + least, high + most
    policy = links[0].on_exceed
    if feature.bounds is not None:
        floor, ceiling = min(feature.bounds[0], start) - start, max(feature.bounds[1], start) - start
    else:
        floor, ceiling = min(0.0, start) - start, max(1.0, start) - start
    if policy == "clip":
        low, high = min(max(low, floor), ceiling), min(max(high, floor), ceiling)
    elif policy == "reject":
        low, high = max(low, floor), min(high, ceiling)
    if feature.type == "real":
        assert close(low, high), "only a computed real target can be listed"
        return [low] if low <= high + TINY else []
    return [float(c) for c in range(math.ceil(low - TINY), math.floor(high + TINY) + 1)]


def evaluated(expression: Any, im: InteractionModel, x: Numbers, bare: Numbers, action: Numbers) -> bool:
    """An expression at one point, with the value of a bare name given."""
    env: dict[tuple[str, str], Any] = {}
    for name in x:
        env["before", name], env["action", name], env["value", name] = np.array(x[name]), np.array(action[name]), np.array(bare[name])
    levels = {f.name: f.levels for f in im.features if f.levels is not None}
    return bool(expression.evaluate(env, levels=levels))


def _starts_in_agreement(c: Switch, im: InteractionModel, x: Numbers) -> bool:
    """Whether the paper's precondition holds: zero where the switch is on, not zero where it is off and something must move."""
    kinds = ["gone" if math.isnan(x[n]) else "zero" if close(x[n], 0.0) else "other" for n in c.targets]
    if evaluated(c.condition, im, x, x, dict.fromkeys(x, 0.0)):
        return set(kinds) == {"zero"}
    return {"free": True, "any": "other" in kinds, "all": set(kinds) == {"other"}}[c.otherwise]


def holds(c: Constraint, im: InteractionModel, x: Numbers, action: Numbers, change: Numbers) -> bool:
    """One constraint at one action."""
    after = {name: x[name] + change[name] for name in x}
    match c:
        case DirectionalLinkage():
            return True  # by construction
        case OneHot():
            dummies = [after[n] for n in c.features]
            return not any(map(math.isnan, dummies)) and related(sum(dummies), c.relation, c.count)
        case Ordinal() | Thermometer():
            return _code(c, [x[n] for n in c.features], [after[n] for n in c.features])
        case Reachability():
            return _reachable(c, im, [x[n] for n in c.features], [after[n] for n in c.features])
        case AdditiveLinkage():
            taken = sum(k * change[n] for n, k in c.targets.items())
            return related(c.coefficient * action[c.source], c.relation, taken)
        case LinearConstraint():
            read = after if c.on == "value" else action
            return related(sum(k * read[n] for n, k in c.coefficients.items()), c.relation, c.constant)
        case IfThen():
            condition = evaluated(c.condition, im, x, action if c.on == "action" else after, action)
            return not condition or evaluated(c.consequence, im, x, after, action)
        case Switch():
            if c.precondition and not _starts_in_agreement(c, im, x):
                return True
            moved = [not close(action[n], 0.0) for n in c.targets]
            if evaluated(c.condition, im, x, after, action):
                return not any(moved)
            return {"free": True, "any": any(moved), "all": all(moved)}[c.otherwise]
        case Rule():
            return evaluated(c.parsed, im, x, after, action)
        case Predicate():
            given = {}
            for n in c.features:
                levels = im.by_name[n].levels
                if levels is None:
                    given[n] = np.array([after[n]])
                elif math.isnan(after[n]):  # a missing level is None
                    given[n] = np.array([None], dtype=object)
                elif 0 <= after[n] < len(levels):
                    given[n] = np.array([levels[int(after[n])]], dtype=object)
                else:
                    return False
            return bool(np.asarray(c.function(given))[0])
    raise TypeError(c)


def _code(c: Ordinal | Thermometer, now: list[float], after: list[float]) -> bool:
    def rank(code: list[float]) -> int | None:
        bits = [bool(v > 0.5) for v in code]
        if any(map(math.isnan, code)):
            return None
        if isinstance(c, Thermometer):
            return sum(bits) if bits == sorted(bits, reverse=True) else None
        if sum(bits) == 1:
            return bits.index(True) + 1
        return 0 if sum(bits) == 0 and c.baseline == "lowest" else None

    start, end = rank(now), rank(after)
    if end is None:
        return False
    if start is None or c.direction is None:
        return True
    return end >= start if c.direction == "increase" else end <= start


def _reachable(c: Reachability, im: InteractionModel, now: list[float], after: list[float]) -> bool:
    rows = []
    for row in c.values:
        coded = []
        for name, value in zip(c.features, row):
            levels = im.by_name[name].levels
            coded.append(float(levels.index(value)) if levels is not None else float(value))
        rows.append(coded)

    def place(point: list[float]) -> int | None:
        return next((i for i, row in enumerate(rows) if all(close(a, b) for a, b in zip(row, point))), None)

    here, there = place(now), place(after)
    return there is not None and (here is None or c.reachable is None or bool(c.reachable[here][there]))


def all_changes(im: InteractionModel, x: Numbers) -> set[tuple[float, ...]]:
    """Every feasible change of a model whose features can be listed, as tuples in the order of the features."""
    found = set()
    names = [f.name for f in im.features]
    for own in product(*(steps(f, x[f.name]) if f.discrete else [0.0] for f in im.features)):
        action = dict(zip(names, own))
        for moved in product(*(changes_of(im, f, x, action) for f in im.features)):
            if moved in found:
                continue
            change = dict(zip(names, moved))
            if all(holds(c, im, x, action, change) for c in im.constraints):
                found.add(moved)
    return found


def actions_tried(im: InteractionModel, x: Numbers) -> float:
    """How many own actions brute force would try: an upper bound on its work without induced changes."""
    return math.prod(len(steps(f, x[f.name])) for f in im.features if f.discrete)


def points(im: InteractionModel, x: Numbers) -> Iterator[tuple[float, ...]]:
    for change in sorted(all_changes(im, x)):
        yield tuple(x[f.name] + c for f, c in zip(im.features, change))
