"""Stochastic downstream effects: what the world adds after the subject has acted.

An effect acts on the value reached, x + c, by adding, setting or multiplying; then it may be rounded and clipped.
What it amounts to, ε, is never rejected: that would change its law. Effects are drawn in the order of their
parents, and draws that several share are named: latent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.errors import ExpressionError, Problem, ReachError, SpecError, nearest
from budge.expressions import Expression, Var, parse
from budge.features import Feature

__all__ = ["Effect", "Latent", "draw_effects", "effect_problems", "in_order"]

FloatArray = npt.NDArray[np.float64]
Draw = str | Callable[..., Any]
WAYS = ("add", "set", "multiply")


@dataclass(frozen=True)
class Latent:
    """A draw that several effects share; with `components`, a vector of correlated ones.

    Examples
    --------
    >>> Latent("labs", "multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]])", components=("u", "v")).names
    ('u', 'v')
    """

    name: str
    draw: Draw
    components: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "components", tuple(self.components))

    @property
    def names(self) -> tuple[str, ...]:
        """What effects call it: its components, or itself."""
        return self.components or (self.name,)

    @cached_property
    def expression(self) -> Expression | None:
        """The parsed draw, where it is a text."""
        return parse(self.draw, distributions=True) if isinstance(self.draw, str) else None

    def to_spec(self) -> Any:
        """As a spec file writes it."""
        if not isinstance(self.draw, str):
            raise SpecError("a latent draw that is Python code cannot be written to a spec file", where=f"latent.{self.name}")
        return {"components": list(self.components), "draw": self.draw} if self.components else self.draw


@dataclass(frozen=True)
class Effect:
    """One stochastic effect on one feature.

    Parameters
    ----------
    feature
        What it acts on.
    add, set, multiply
        Exactly one: an expression, or a Python function ``f(env, rng)`` that gets a mapping from what it `reads` to
        arrays and returns an array of the same length.
    clip, round
        Applied to the value that results, rounding first.
    reads
        For a function: what it may use, e.g. ``("action.income", "before.age", "effect.rate", "latent.u", "rent")``.

    Examples
    --------
    >>> Effect("savings", add="round(normal(0.1 * action.income, 50))", clip=(0, 50000)).parents
    frozenset({('action', 'income')})
    """

    feature: str
    add: Draw | None = None
    set: Draw | None = None
    multiply: Draw | None = None
    clip: tuple[float, float] | None = None
    round: bool = False
    reads: tuple[str, ...] = ()
    name: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.clip, Sequence) and not isinstance(self.clip, str | tuple):
            object.__setattr__(self, "clip", tuple(self.clip))
        object.__setattr__(self, "reads", tuple(self.reads))

    @property
    def way(self) -> str:
        """``add``, ``set`` or ``multiply``."""
        return next(way for way in WAYS if getattr(self, way) is not None)

    @property
    def draw(self) -> Draw:
        """The expression or function."""
        found: Draw = getattr(self, self.way)
        return found

    @cached_property
    def expression(self) -> Expression | None:
        """The parsed draw, where it is a text."""
        return parse(self.draw, distributions=True) if isinstance(self.draw, str) else None

    @cached_property
    def parents(self) -> frozenset[Var]:
        """What it reads, as (layer, name)."""
        if self.expression is not None:
            return frozenset(self.expression.vars)
        pairs = (text.split(".", 1) if "." in text else ("value", text) for text in self.reads)
        return frozenset((layer, name) for layer, name in pairs)

    @property
    def label(self) -> str:
        """How errors call it."""
        return self.name or f"effect on {self.feature}"

    def to_spec(self) -> dict[str, Any]:
        """As a spec file writes it."""
        if not isinstance(self.draw, str):
            raise SpecError("an effect that is Python code cannot be written to a spec file", where=self.label)
        record: dict[str, Any] = {"feature": self.feature, self.way: self.draw}
        if self.clip is not None:
            record["clip"] = list(self.clip)
        if self.round:
            record["round"] = True
        if self.name:
            record["name"] = self.name
        return record

    def describe(self) -> str:
        """One English sentence."""
        what = self.draw if isinstance(self.draw, str) else getattr(self.draw, "__name__", "a function")
        text = {
            "add": f"{self.feature} changes by {what}",
            "set": f"{self.feature} becomes {what}",
            "multiply": f"{self.feature} is multiplied by {what}",
        }[self.way]
        text += ", rounded" if self.round else ""
        return text + (f", kept within {self.clip[0]:g} and {self.clip[1]:g}." if self.clip else ".")


def in_order(effects: Sequence[Effect]) -> tuple[Effect, ...]:
    """The effects, parents first; a cycle is an error that prints it."""
    by_feature = {effect.feature: effect for effect in effects}
    graph = {e.feature: sorted(n for layer, n in e.parents if layer == "effect" and n in by_feature) for e in effects}
    try:
        return tuple(by_feature[name] for name in TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise SpecError(
            "effects depend on each other in a circle", where="effects", got=" → ".join(reversed(error.args[1]))
        ) from None


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
    acted = [effect.feature for effect in effects]
    broken = False
    for i, effect in enumerate(effects):
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
        if acted.count(effect.feature) > 1 and acted.index(effect.feature) != i:
            found.append(Problem(f"{place}.feature", "a feature has two effects", effect.feature, "write them as one"))
        try:
            found += _one_effect(effect, place, features, levels, set(shared), set(acted))
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
    effect: Effect, place: str, features: Mapping[str, Feature], levels: Mapping[str, Any], latent: set[str], acted: set[str]
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
    whole: set[Var] = {(layer, n) for n, f in features.items() if f.discrete for layer in ("value", "before", "action")}
    found = []
    if feature.discrete and not effect.round and not expression.integral(whole):
        found.append(Problem(place, f"would make {feature.name} ({feature.type}) a fraction", effect.draw, "set round: true"))
    low, high = feature.range
    if (math.isfinite(low) or math.isfinite(high)) and effect.clip is None:
        bounds: dict[Var, tuple[float, float]] = {}
        for name, f in features.items():
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


def draw_effects(
    effects: Sequence[Effect],
    latent: Sequence[Latent],
    features: Mapping[str, Feature],
    x: Mapping[str, FloatArray],
    action: Mapping[str, FloatArray],
    change: Mapping[str, FloatArray],
    rng: np.random.Generator,
    n: int,
) -> dict[str, FloatArray]:
    """Draw the effects in order and return ε for every feature that one acts on."""
    levels = {name: f.levels for name, f in features.items() if f.levels is not None}
    env: dict[Var, FloatArray] = {}
    for name in x:
        start = np.asarray(x[name], dtype=float)
        env["before", name], env["action", name] = start, np.asarray(action.get(name, 0.0), dtype=float)
        env["value", name] = start + np.asarray(change.get(name, 0.0), dtype=float)
    for shared in latent:
        drawn = _drawn(
            shared.draw, shared.expression, (), env, rng, n, levels, f"latent.{shared.name}", width=len(shared.components)
        )
        for i, name in enumerate(shared.names):
            env["latent", name] = drawn[:, i] if shared.components else drawn
    result: dict[str, FloatArray] = {}
    for effect in effects:
        feature = features[effect.feature]
        base = np.broadcast_to(env["value", effect.feature], (n,))
        drawn = _drawn(effect.draw, effect.expression, effect.reads, env, rng, n, levels, effect.label, feature=feature)
        value = {"add": base + drawn, "set": drawn, "multiply": base * drawn}[effect.way]
        if effect.round:
            value = np.round(value)
        if effect.clip is not None:
            value = np.clip(value, *effect.clip)
        if feature.discrete and not np.array_equal(value, np.round(value)):
            bad = value[value != np.round(value)][0]
            raise ReachError(
                f"makes {feature.name} ({feature.type}) a fraction", where=effect.label, got=float(bad), remedy="set round: true"
            )
        still = np.isnan(env["before", effect.feature])  # a missing value does not move
        result[effect.feature] = env["effect", effect.feature] = np.where(still, 0.0, value - base)
    return result


def _drawn(
    draw: Draw,
    expression: Expression | None,
    reads: Sequence[str],
    env: Mapping[Var, FloatArray],
    rng: np.random.Generator,
    n: int,
    levels: Mapping[str, Any],
    label: str,
    *,
    width: int = 0,
    feature: Feature | None = None,
) -> FloatArray:
    """One draw, as n finite numbers; anything else is an error that names it."""
    shape = (n, width) if width else (n,)
    if expression is not None:
        raw = np.asarray(expression.evaluate(env, levels=levels, rng=rng, size=n))
    else:
        assert callable(draw)
        given = {}
        for text in reads:
            layer, name = text.split(".", 1) if "." in text else ("value", text)
            column = np.array(np.broadcast_to(env[layer, name], (n,)))
            column.flags.writeable = False
            given[text] = column
        try:
            raw = np.asarray(draw(given, rng))
        except Exception as error:
            raise ReachError(f"the function failed: {type(error).__name__}: {error}", where=label) from error
        if raw.shape != shape:
            raise ReachError(f"must return {n} values", where=label, got=f"shape {raw.shape}")
    if feature is not None and feature.levels is not None and raw.dtype.kind in "OUS":
        unknown = [v for v in np.unique(raw.astype(str)) if v not in [str(level) for level in feature.levels]]
        if unknown:
            raise ReachError(f"draws a level that {feature.name} does not have", where=label, got=unknown[0])
        position = {str(level): float(i) for i, level in enumerate(feature.levels)}
        raw = np.array([position[v] for v in raw.astype(str).ravel()]).reshape(raw.shape)
    values = np.array(np.broadcast_to(raw, shape), dtype=float)
    bad = ~np.isfinite(values)
    if bad.any():
        raise ReachError("must return finite numbers", where=label, got=float(values[bad][0]))
    return values
