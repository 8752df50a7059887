"""Hypothesis strategies: random sound interaction models of every kind, starts, and changes.

>>> from hypothesis import given
>>> from budge.testing import strategies as st
>>> @given(st.interaction_models(kinds=("one_hot", "switch")))
... def test_mine(im): ...
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

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
from budge.effects import Effect
from budge.errors import SpecError
from budge.features import Feature
from budge.interaction import InteractionModel
from budge.testing.candidates import random_candidates, random_start

__all__ = ["KINDS", "changes", "features", "interaction_models", "starts"]

KINDS = (
    "one_hot", "ordinal", "thermometer", "reachability", "directional_linkage", "additive_linkage",
    "if_then", "switch", "linear", "rule", "predicate",
)  # fmt: skip
Draw = Callable[[st.SearchStrategy[Any]], Any]
Pool = Sequence[Feature]
RELATIONS = st.sampled_from(["==", "<=", ">="])
COMPARISONS = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
LEVELS = ("low", "mid", "high")


@st.composite
def features(draw: Draw, name: str = "f", types: Sequence[str] = ("binary", "integer", "real", "category")) -> Feature:
    """One sound feature with few values, any direction and step limits."""
    kind = draw(st.sampled_from(list(types)))
    actionable = draw(st.sampled_from([True, True, True, False]))
    if kind == "binary":
        bounds = draw(st.sampled_from([None, None, None, (0, 1), (1, 1), (0, 0)]))
        direction = draw(st.sampled_from([None, None, None, "increase", "decrease"]))
        return Feature(name, "binary", bounds=bounds, direction=direction, actionable=actionable)
    ordered = kind != "category" or draw(st.booleans())
    direction = draw(st.sampled_from([None, None, "increase", "decrease"])) if ordered else None
    steps: dict[str, Any] = {
        key: draw(st.sampled_from([None, None, 1, 2, 1.5])) if ordered else None for key in ("max_increase", "max_decrease")
    }
    if kind == "category":
        levels = LEVELS[: draw(st.integers(2, 3))]
        return Feature(name, "category", levels=levels, ordered=ordered, direction=direction, actionable=actionable, **steps)
    low = draw(st.integers(-2, 1))
    bounds = low, low + draw(st.integers(1, 4))
    return Feature(name, kind, bounds=bounds, direction=direction, actionable=actionable, **steps)


@st.composite
def interaction_models(
    draw: Draw,
    kinds: Sequence[str] = KINDS,
    max_features: int = 6,
    continuous: bool = False,
    effects: bool = False,
    max_constraints: int = 3,
    directed: bool = False,
) -> InteractionModel:
    """A sound interaction model with one to `max_constraints` constraints of the given kinds.

    Parameters
    ----------
    kinds
        From which kinds the constraints are drawn.
    max_features
        At least two.
    continuous
        Whether some features are real.
    effects
        Whether some features have stochastic effects.
    max_constraints
        How many constraints at most.
    directed
        Whether dummies may have a direction of their own, which an ordinal or thermometer group cannot use.
    """
    wanted = draw(st.lists(st.sampled_from(list(kinds)), min_size=1, max_size=max_constraints))
    pool = _pool(draw, wanted, max_features, continuous)
    if directed:
        ways = st.sampled_from([None, "increase", "decrease"])
        pool = [f.but(direction=draw(ways)) if f.type == "binary" else f for f in pool]
    policy = draw(st.sampled_from(["allow", "reject", "clip"]))
    found: list[Constraint] = []
    for kind in wanted:
        made = _MAKERS[kind](draw, pool, policy)
        if made is not None and _sound(pool, [*found, made]):
            found.append(made)
    acting: list[Effect] = []
    for effect in _effects(draw, pool) if effects else ():
        if _sound(pool, found, [*acting, effect]):
            acting.append(effect)
    return InteractionModel(pool, found, acting)


def starts(im: InteractionModel, outside: float = 0.15) -> st.SearchStrategy[dict[str, Any]]:
    """Where a person may stand, as a table would say it; sometimes outside the bounds, sometimes breaking a constraint."""

    def build(seed: int) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        numbers = {f.name: random_start(f, rng, outside=outside) for f in im.features}
        return {f.name: f.levels[int(numbers[f.name])] if f.levels is not None else numbers[f.name] for f in im.features}

    return st.integers(0, 2**32 - 1).map(build)


def changes(im: InteractionModel, x: Mapping[str, Any]) -> st.SearchStrategy[dict[str, float]]:
    """Changes from x (categories by difference of positions): feasible ones, near misses and nonsense."""
    start = im.start(x)

    def build(seed: int) -> dict[str, float]:
        rng = np.random.default_rng(seed)
        return {name: float(column[0]) for part in im.parts for name, column in random_candidates(part, start, 1, rng)[1].items()}

    return st.integers(0, 2**32 - 1).map(build)


def _sound(pool: Pool, constraints: Sequence[Constraint], effects: Sequence[Effect] = ()) -> bool:
    try:
        InteractionModel(pool, constraints, effects)
    except SpecError:
        return False
    return True


def _pool(draw: Draw, wanted: Sequence[str], most: int, continuous: bool) -> list[Feature]:
    """Features that the wanted kinds can use: dummies without a direction of their own, then anything."""
    count = draw(st.integers(min(3, most), most))
    grouped = bool({"one_hot", "ordinal", "thermometer"} & set(wanted))
    dummies = draw(st.integers(2, min(4, count))) if grouped else draw(st.integers(0, 1))
    pool = [Feature(f"d{i}", "binary", actionable=draw(st.sampled_from([True, True, True, False]))) for i in range(dummies)]
    types = ["integer", "integer", "category", "binary", *(["real", "real", "real"] if continuous else [])]
    return pool + [draw(features(f"{'nmpqrs'[i % 6]}{i}", types)) for i in range(count - dummies)]


def _some(draw: Draw, among: Sequence[Feature], least: int, most: int) -> list[str] | None:
    if len(among) < least:
        return None
    names = [f.name for f in among]
    return list(draw(st.lists(st.sampled_from(names), min_size=least, max_size=min(most, len(names)), unique=True)))


def _numbers(pool: Pool) -> list[Feature]:
    return [f for f in pool if f.numeric]


def _dummies(draw: Draw, pool: Pool) -> tuple[str, ...] | None:
    names = _some(draw, [f for f in pool if f.type == "binary" and f.direction is None], 2, 4)
    return None if names is None else tuple(names)


def _one_hot(draw: Draw, pool: Pool, policy: str) -> Constraint | None:
    names = _some(draw, [f for f in pool if f.type == "binary"], 2, 4)
    return None if names is None else OneHot(tuple(names), draw(st.integers(1, len(names))), draw(RELATIONS))


def _ordinal(draw: Draw, pool: Pool, policy: str) -> Constraint | None:
    names = _dummies(draw, pool)
    direction = draw(st.sampled_from([None, "increase", "decrease"]))
    return None if names is None else Ordinal(names, direction, draw(st.sampled_from([None, "lowest"])))


def _thermometer(draw: Draw, pool: Pool, policy: str) -> Constraint | None:
    names = _dummies(draw, pool)
    return None if names is None else Thermometer(names, draw(st.sampled_from([None, "increase", "decrease"])))


def _value(feature: Feature) -> st.SearchStrategy[Any]:
    if feature.levels is not None:
        return st.sampled_from(feature.levels)
    low, high = feature.range
    return (
        st.sampled_from([v / 2 for v in range(int(low) * 2, int(high) * 2 + 1)])
        if feature.type == "real"
        else st.integers(int(low), int(high))
    )


def _reachability(draw: Draw, pool: Pool, policy: str) -> Constraint | None:
    names = _some(draw, pool, 1, 3)
    if names is None:
        return None
    by_name = {f.name: f for f in pool}
    rows = draw(st.lists(st.tuples(*(_value(by_name[n]) for n in names)), min_size=2, max_size=5, unique=True))
    cells = st.sampled_from([0, 1, 1])
    matrix = draw(
        st.none() | st.lists(st.lists(cells, min_size=len(rows), max_size=len(rows)), min_size=len(rows), max_size=len(rows))
    )
    return Reachability(tuple(names), tuple(rows), matrix)


def _directional(draw: Draw, pool: Pool, policy: str) -> Constraint | None:
    sources = [i for i, f in enumerate(pool[:-1]) if f.numeric or f.ordered]
    if not sources:
        return None
    start = draw(st.sampled_from(sources))  # links run from left to right: no circle
    names = _some(draw, _numbers(pool[start + 1 :]), 1, 2)
    if names is None:
        return None
    scales = {name: draw(st.sampled_from([1, 1, 1, 2, -1, -2, 0.5])) for name in names}
    return DirectionalLinkage(pool[start].name, scales, draw(RELATIONS), policy)  # type: ignore[arg-type]


def _additive(draw: Draw, pool: Pool, policy: str) -> Constraint | None:
    names = _some(draw, _numbers(pool), 2, 3)
    if names is None:
        return None
    weights = st.sampled_from([1, 1, 2, -1, 0.5])
    return AdditiveLinkage(names[0], draw(weights), {name: draw(weights) for name in names[1:]}, draw(RELATIONS))


def _condition(draw: Draw, among: Pool, names: Sequence[str] | None = None) -> str:
    """One or two comparisons, joined."""
    by_name = {f.name: f for f in among}
    chosen = names or _some(draw, among, 1, 2) or []
    parts = []
    for name in chosen:
        feature = by_name[name]
        if draw(st.integers(0, 4)) == 0:
            parts.append(f"{name} in {draw(st.lists(_value(feature), min_size=1, max_size=2, unique=True))}")
        elif feature.levels is not None:
            signs = COMPARISONS if feature.ordered else st.sampled_from(["==", "!="])
            parts.append(f"{name} {draw(signs)} {draw(_value(feature))!r}")
        else:
            parts.append(f"{name} {draw(COMPARISONS)} {draw(_value(feature))}")
    return f" {draw(st.sampled_from(['and', 'or']))} ".join(parts)


def _if_then(draw: Draw, pool: Pool, policy: str) -> Constraint | None:
    on = draw(st.sampled_from(["value", "value", "action"]))
    if on == "value":
        return IfThen(_condition(draw, pool), _condition(draw, pool))
    numbers = _some(draw, _numbers(pool), 1, 2)
    if numbers is None:
        return None
    trigger = " and ".join(f"{name} {draw(COMPARISONS)} {draw(st.integers(-1, 2))}" for name in numbers)
    return IfThen(trigger, _condition(draw, pool), on="action")


def _switch(draw: Draw, pool: Pool, policy: str) -> Constraint | None:
    names = _some(draw, pool, 2, 4)
    if names is None:
        return None
    cut = draw(st.integers(1, min(2, len(names) - 1)))
    targets = tuple(names[cut:])
    numeric = set(targets) <= {f.name for f in _numbers(pool)}
    how = draw(st.sampled_from(["free", "any", "all"]))
    return Switch(_condition(draw, pool, names[:cut]), targets, how, precondition=numeric and draw(st.booleans()))


def _linear(draw: Draw, pool: Pool, policy: str) -> Constraint | None:
    names = _some(draw, _numbers(pool), 1, 3)
    if names is None:
        return None
    weights = {name: draw(st.sampled_from([1, 1, 2, -1, -3, 0.5, 0.1])) for name in names}
    return LinearConstraint(
        weights, draw(RELATIONS), draw(st.sampled_from([0, 1, 2, 3, -1, 0.5])), draw(st.sampled_from(["value", "action"]))
    )


def _rule(draw: Draw, pool: Pool, policy: str) -> Constraint | None:
    names = _some(draw, _numbers(pool), 1, 3)
    if names is None:
        return None
    a, b, c = (names[0], names[-1], names[len(names) // 2])
    k = draw(st.integers(-1, 4))
    texts = [
        f"2 * {a} - {b} <= {k}",
        f"{a} + {b} != {c} + {k}",
        f"{a} > before.{a} or {b} <= {k}",
        f"abs(action.{a}) <= {abs(k)}",
        f"max({a}, {b}) >= {k}",
        f"min({a}, {c}) < {k} or action.{b} == 0",
        f"abs({a} - before.{b}) == {abs(k)}",
        f"{a} * {b} <= {k}",
        f"{a} ** 2 + {b} <= {abs(k) + 2}",
        f"{a} % 2 == 0 or {b} >= {k}",
        f"not ({a} * {c} > {k} and {b} < 1)",
        f"action.{a} * {b} <= {k}",
        _condition(draw, pool),
    ]
    return Rule(draw(st.sampled_from(texts)))


def _predicate(draw: Draw, pool: Pool, policy: str) -> Constraint | None:
    names = _some(draw, pool, 1, 3)
    if names is None:
        return None
    by_name = {f.name: f for f in pool}
    numbers = [n for n in names if by_name[n].numeric]
    k = draw(st.integers(0, 4))
    level = draw(st.sampled_from(LEVELS))

    def decide(values: Mapping[str, Any]) -> Any:
        """A product and a level."""
        column = values[names[0]]
        product = np.ones(len(column))
        for name in numbers:
            product = product * values[name]
        good = product <= k
        for name in names:
            if name not in numbers:
                good = good | np.array([v == level for v in values[name]], dtype=bool)
        return good

    return Predicate(tuple(names), decide)


_MAKERS: dict[str, Callable[[Draw, Pool, str], Constraint | None]] = {
    "one_hot": _one_hot,
    "ordinal": _ordinal,
    "thermometer": _thermometer,
    "reachability": _reachability,
    "directional_linkage": _directional,
    "additive_linkage": _additive,
    "if_then": _if_then,
    "switch": _switch,
    "linear": _linear,
    "rule": _rule,
    "predicate": _predicate,
}


def _effects(draw: Draw, pool: Pool) -> list[Effect]:
    names = _some(draw, [f for f in pool if f.type in ("integer", "real")], 1, 2)
    made = []
    for name in names or ():
        feature = next(f for f in pool if f.name == name)
        parents = [f for f in pool if f.numeric and f.name != name]
        mean = f"0.5 * action.{draw(st.sampled_from(parents)).name}" if parents and draw(st.booleans()) else "0"
        law = draw(st.sampled_from([f"normal({mean}, 1)", f"uniform({mean} - 1, {mean} + 1)"]))
        made.append(Effect(name, add=law, clip=feature.range, round=feature.discrete))
    return made
