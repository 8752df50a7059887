"""Whether declared effects fit the features: everything that does not, all at once."""

from __future__ import annotations

import math
from collections.abc import KeysView, Mapping, Sequence
from typing import Any

import numpy as np

from budge.effects.declared import WAYS, Effect, Latent, in_order
from budge.errors import MOST_PROBLEMS, ExpressionError, Problem, SpecError, nearest
from budge.expressions import Var, parse
from budge.features import Feature

__all__ = ["effect_problems"]


def effect_problems(effects: Sequence[Effect], latent: Sequence[Latent], features: Mapping[str, Feature]) -> list[Problem]:
    """Everything that does not fit, all at once."""
    found: list[Problem] = []
    levels = {name: f.levels for name, f in features.items() if f.levels is not None}
    shared: dict[str, str] = {}
    for draw in latent:
        place = f"latent.{draw.name}"
        for name in draw.names:
            if name in shared:
                found.append(Problem(place, "two latent draws have one name", name))
            shared[name] = draw.name
        if isinstance(draw.draw, str):
            found += _latent_problems(draw, place, features, levels)
        elif not callable(draw.draw):
            found.append(Problem(place, "is neither an expression nor a function", draw.draw))
    first = {effect.feature: i for i, effect in reversed(list(enumerate(effects)))}
    names = set(shared)
    broken = False
    for i, effect in enumerate(effects):
        if len(found) > MOST_PROBLEMS:
            return found
        place = f"effects[{i}]"
        given = [way for way in WAYS if getattr(effect, way) is not None]
        if len(given) != 1:
            found.append(Problem(place, "an effect has exactly one of add, set and multiply", given))
            broken = True
            continue
        if effect.feature not in features:
            found.append(
                Problem(
                    f"{place}.feature", "names a feature that is not declared", effect.feature, nearest(effect.feature, features)
                )
            )
            continue
        if first[effect.feature] != i:
            found.append(Problem(f"{place}.feature", "a feature has two effects", effect.feature, "write them as one"))
        try:
            found += _one_effect(effect, place, features, levels, names, first.keys())
        except ExpressionError as error:
            found += error.at(f"{place}.{effect.way}").problems
            broken = True
    if not broken:
        try:
            in_order(effects)
        except SpecError as error:
            found += error.problems
    return found


def _latent_problems(draw: Latent, place: str, features: Mapping[str, Feature], levels: Mapping[str, Any]) -> list[Problem]:
    try:
        expression = parse(str(draw.draw), distributions=True)
    except ExpressionError as error:
        return list(error.at(place).problems)
    found = [
        Problem(place, "a latent draw reads only the start", f"{layer}.{name}", f"write before.{name}")
        for layer, name in sorted(expression.vars)
        if layer != "before"
    ]
    vector = expression.text.strip().startswith("multivariate_normal")
    if vector != bool(draw.components):
        remedy = "list the names of its components" if vector else "only multivariate_normal has components"
        found.append(Problem(place, "components and the draw do not fit", list(draw.components), remedy))
    elif vector:
        drawn = np.asarray(expression.evaluate({}, rng=np.random.default_rng(0), size=1))
        if drawn.shape[-1] != len(draw.components):
            found.append(Problem(place, f"draws {drawn.shape[-1]} numbers", list(draw.components), "name one component for each"))
    return found + [Problem(place, p.what, p.got, p.remedy) for p in expression.check(levels, features) if not vector]


def _one_effect(
    effect: Effect, place: str, features: Mapping[str, Feature], levels: Mapping[str, Any], latent: set[str], acted: KeysView[str]
) -> list[Problem]:
    where = f"{place}.{effect.way}"
    feature = features[effect.feature]
    found: list[Problem] = []
    for layer, name in sorted(effect.parents):
        if layer == "latent" and name not in latent:
            found.append(Problem(where, "no latent draw has that name", f"latent.{name}", nearest(name, latent)))
        elif layer == "effect" and name not in acted:
            found.append(Problem(where, "no effect acts on that feature", f"effect.{name}", nearest(name, acted)))
        elif layer not in ("latent", "effect") and name not in features:
            found.append(Problem(where, "names a feature that is not declared", name, nearest(name, features)))
    if effect.clip is not None:
        low_high = effect.clip
        if (
            not isinstance(low_high, tuple)
            or len(low_high) != 2
            or any(isinstance(b, bool) or not isinstance(b, int | float) for b in low_high)
            or not low_high[0] <= low_high[1]
        ):
            return [*found, Problem(f"{place}.clip", "clip is two numbers, lowest and highest", low_high)]
    if feature.type == "fixed":
        found.append(
            Problem(
                f"{place}.feature",
                f"{feature.name} is fixed without a type",
                feature.name,
                "declare its type, with actionable: false",
            )
        )
    if found or effect.expression is None or feature.type == "fixed":
        return found
    result = feature.name if feature.levels is not None else None  # of a category, the expression gives a level
    known = effect.expression.check(levels, features, latent=latent, result=result)
    found += [Problem(where, p.what, p.got, p.remedy) for p in known]
    return found if found or result else _domain(effect, place, features, levels)


def _domain(effect: Effect, place: str, features: Mapping[str, Feature], levels: Mapping[str, Any]) -> list[Problem]:
    """An effect that can leave the feature's domain must say how it is kept in."""
    feature, expression = features[effect.feature], effect.expression
    assert expression is not None
    read = {name: f for name in expression.names() if (f := features.get(name)) is not None}
    whole: set[Var] = {(layer, n) for n, f in read.items() if f.discrete for layer in ("value", "before", "action")}
    found = []
    if feature.discrete and not effect.round and not expression.integral(whole):
        found.append(Problem(place, f"would make {feature.name} ({feature.type}) a fraction", effect.draw, "set round: true"))
    low, high = feature.range
    if (math.isfinite(low) or math.isfinite(high)) and effect.clip is None:
        bounds: dict[Var, tuple[float, float]] = {}
        for name, f in read.items():
            bounds["value", name] = bounds["before", name] = f.range
            bounds["action", name] = (f.range[0] - f.range[1], f.range[1] - f.range[0]) if f.actionable else (0.0, 0.0)
        try:
            least, most = expression.range(bounds, levels=levels)
        except KeyError:  # reads effects or latent draws: their range is open
            least, most = -math.inf, math.inf
        if effect.way == "add":
            least, most = low + least, high + most
        elif effect.way == "multiply":
            ends = [a * b for a in (low, high) for b in (least, most)]
            ends = [e for e in ends if not math.isnan(e)] or [math.nan]
            least, most = min(ends), max(ends)
        if not (least >= low - 1e-9 and most <= high + 1e-9):
            got = f"values from {least:g} to {most:g} on bounds {low:g} to {high:g}"
            found.append(Problem(place, f"can leave the domain of {feature.name}", got, f"add clip: [{low:g}, {high:g}]"))
    elif effect.clip is not None and (effect.clip[0] < low - 1e-9 or effect.clip[1] > high + 1e-9):
        found.append(
            Problem(
                f"{place}.clip",
                f"reaches outside the bounds of {feature.name}",
                list(effect.clip),
                f"stay within [{low:g}, {high:g}]",
            )
        )
    return found
