"""Candidate changes that are worth asking about: feasible ones, near misses, and plain nonsense.

A change that is drawn blindly from the box is hardly ever feasible, so that two wrong answers would agree on it. These
follow linkages, lists of joint values and equalities on purpose, and break them on purpose.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from budge.constraints import Constraint
from budge.expressions import All, Formula, Row, Var
from budge.features import Feature
from budge.parts import Part

__all__ = ["random_candidates", "random_start"]

FloatArray = npt.NDArray[np.float64]
FAR = 4.0  # how far a feature without bounds is tried


def random_start(feature: Feature, rng: np.random.Generator, *, outside: float = 0.15) -> float:
    """A value that the feature may have; with some probability one outside its bounds (never for a binary or a category)."""
    low, high = feature.range
    low, high = (max(low, -FAR) if math.isinf(low) else low), (min(high, FAR) if math.isinf(high) else high)
    if feature.type == "binary":
        return float(rng.integers(0, 2))
    if feature.type in ("integer", "real") and rng.random() < outside:
        low, high = low - 2.0, high + 2.0
    if feature.type == "real":
        return _some_real(low, high, rng)
    return float(rng.integers(round(low), round(high) + 1))


def _some_real(low: float, high: float, rng: np.random.Generator) -> float:
    """A quarter, an end, or any number: ties with constants should happen, and should not be all there is."""
    way = rng.random()
    if way < 0.5:
        return float(np.clip(round(float(rng.uniform(low, high)) * 4) / 4, low, high))
    return float(rng.choice([low, high])) if way < 0.6 else float(rng.uniform(low, high))


def random_candidates(
    part: Part, x: Mapping[str, float], n: int, rng: np.random.Generator
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """n own actions and changes of a part from x, one array a feature; some feasible, some not quite, some not at all."""
    action = {f.name: _own(f, float(x[f.name]), n, rng) for f in part.features}
    change: dict[str, FloatArray] = {}
    _follow_links(part, x, action, change, n, rng)
    order = rng.permutation(len(part.constraints))
    for constraint in (part.constraints[i] for i in order):
        _obey(constraint, part, x, action, change, n, rng)
    wrong = rng.random(n) < 0.15  # and some that nothing led to
    for feature in part.features:
        jolt = rng.integers(-1, 2, n) * (1.0 if feature.discrete else 0.25)
        change[feature.name] = change[feature.name] + np.where(wrong & (rng.random(n) < 0.4), jolt, 0.0)
    return action, change


def _own(feature: Feature, x: float, n: int, rng: np.random.Generator) -> FloatArray:
    low, high = (float(end) for end in feature.moves(x))
    low, high = max(low, -FAR), min(high, FAR)
    if feature.discrete:
        moved = rng.integers(round(low), round(high) + 1, n).astype(float)
        step = 1.0
    else:
        moved = np.array([_some_real(low, high, rng) for _ in range(n)])
        step = 0.25
    moved = np.where(rng.random(n) < 0.3, 0.0, moved)
    return np.where(rng.random(n) < 0.03, moved + rng.choice([-step, step], n), moved)


def _follow_links(
    part: Part,
    x: Mapping[str, float],
    action: dict[str, FloatArray],
    change: dict[str, FloatArray],
    n: int,
    rng: np.random.Generator,
) -> None:
    for name in part.order:
        feature, induced = part.by_name[name], np.zeros(n)
        links = part.links.get(name, ())
        for link in links:
            low, high = link.interval(name, {k: np.asarray(v) for k, v in x.items()}, action)
            where = np.select([rng.random(n) < 0.3, rng.random(n) < 0.4], [0.0, 1.0], rng.random(n))
            drawn = low + where * (high - low)
            induced = induced + (np.round(drawn) if feature.discrete else drawn)
        change[name] = action[name] + induced
        if links and links[0].on_exceed == "clip" and not np.isnan(x[name]):  # a missing value has no bounds to stop at
            floor, ceiling = feature.reach(float(x[name]))
            stopped = np.clip(x[name] + change[name], floor, ceiling) - x[name]
            change[name] = np.where(rng.random(n) < 0.8, stopped, change[name])


def _obey(
    constraint: Constraint,
    part: Part,
    x: Mapping[str, float],
    action: dict[str, FloatArray],
    change: dict[str, FloatArray],
    n: int,
    rng: np.random.Generator,
) -> None:
    """Make some candidates satisfy a list of joint values or an equality."""
    chosen = rng.random(n) < 0.6
    listed = constraint.configurations({name: x[name] for name in constraint.scope})
    if listed is not None and len(listed.values):
        rows = listed.values[rng.integers(0, len(listed.values), n)]
        for j, name in enumerate(listed.names):
            _set(part, name, np.where(chosen, rows[:, j] - x[name], change[name]), action, change)
        return
    for row in _equalities(constraint.rows(x)):
        names = [(var, float(c)) for var, c in sorted(row.linear.terms.items()) if var[0] != "before"]
        if not names:
            continue
        (layer, name), coefficient = names[int(rng.integers(len(names)))]
        env: dict[Var, FloatArray] = {}
        for other in part.names:
            env["action", other], env["change", other] = action[other], change[other]
            env["value", other], env["before", other] = x[other] + change[other], np.full(n, x[other])
        wanted = env[layer, name] - row.linear.evaluate(env) / coefficient
        moved = wanted - x[name] if layer == "value" else wanted
        if not np.all(np.isfinite(moved)):
            continue
        _set(part, name, np.where(chosen, moved, change[name]), action, change)


def _set(part: Part, name: str, moved: FloatArray, action: dict[str, FloatArray], change: dict[str, FloatArray]) -> None:
    change[name] = moved
    if name not in part.links:
        action[name] = moved


def _equalities(formula: Formula | None) -> list[Row]:
    if isinstance(formula, Row):
        return [formula] if formula.relation == "==" else []
    return [row for part in formula.parts for row in _equalities(part)] if isinstance(formula, All) else []
