"""Effects drawn for some people, after their actions, in the order of the effects' parents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from budge.effects.declared import Draw, Effect, Latent
from budge.errors import DataError, ReachError
from budge.expressions import Expression, Var
from budge.features import Feature

__all__ = ["Chance", "draw_effects"]

FloatArray = npt.NDArray[np.float64]


class Chance(Protocol):
    """Where random numbers come from: one generator for all people, or one for each, under a name."""

    def numbers(self, label: str) -> Any:
        """What an expression draws from, n numbers at a time."""

    def generators(self, label: str) -> Iterable[tuple[slice, np.random.Generator]]:
        """The draws of each person, and a generator for a function that draws them."""


def draw_effects(
    effects: Sequence[Effect],
    latent: Sequence[Latent],
    features: Mapping[str, Feature],
    x: Mapping[str, FloatArray],
    action: Mapping[str, FloatArray],
    change: Mapping[str, FloatArray],
    chance: Chance,
    n: int,
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Draw the effects in order and return ε and the value reached for every feature that one acts on: n numbers each, person by person.

    A feature whose value is missing is not moved, and its effect is not asked for. An effect that reads the missing value
    of another feature is an error: what it would be is not known.
    """
    levels = {name: f.levels for name, f in features.items() if f.levels is not None}
    env: dict[Var, FloatArray] = {}
    for name in x:
        start = np.asarray(x[name], dtype=float)
        env["before", name], env["action", name] = start, np.asarray(action.get(name, 0.0), dtype=float)
        env["value", name] = start + np.asarray(change.get(name, 0.0), dtype=float)
    still = {e.feature for e in effects if np.isnan(env["before", e.feature]).all()}
    idle = _idle(effects, latent, still)
    for shared in latent:
        if shared.name in idle:
            continue
        drawn = _drawn(
            shared.draw, shared.expression, (), env, chance, n, levels, f"latent.{shared.name}", width=len(shared.components)
        )
        for i, name in enumerate(shared.names):
            env["latent", name] = drawn[:, i] if shared.components else drawn
    result: dict[str, tuple[FloatArray, FloatArray]] = {}
    for effect in effects:
        feature = features[effect.feature]
        if effect.feature in still:
            env["effect", effect.feature] = np.zeros(n)
            continue
        base = np.broadcast_to(env["value", effect.feature], (n,))
        drawn = _drawn(effect.draw, effect.expression, effect.reads, env, chance, n, levels, effect.label, feature=feature)
        value = base + drawn if effect.way == "add" else base * drawn if effect.way == "multiply" else drawn
        if effect.round:
            value = np.round(value)
        if effect.clip is not None:
            value = np.clip(value, *effect.clip)
        if feature.discrete and not np.array_equal(value, np.round(value)):
            bad = value[value != np.round(value)][0]
            raise ReachError(
                f"makes {feature.name} ({feature.type}) a fraction", where=effect.label, got=float(bad), remedy="set round: true"
            )
        env["effect", effect.feature] = np.asarray(value - base)
        result[effect.feature] = (env["effect", effect.feature], value)
    return result


def _idle(effects: Sequence[Effect], latent: Sequence[Latent], still: set[str]) -> set[str]:
    """The latent draws that nobody reads, or only effects on missing values: they are not drawn either."""
    read: dict[str, list[str]] = {}
    for effect in effects:
        for layer, name in effect.parents:
            if layer == "latent":
                read.setdefault(name, []).append(effect.feature)
    readers = {draw.name: [f for name in draw.names for f in read.get(name, ())] for draw in latent}
    return {name for name, found in readers.items() if set(found) <= still}


def _drawn(
    draw: Draw,
    expression: Expression | None,
    reads: Sequence[str],
    env: Mapping[Var, FloatArray],
    chance: Chance,
    n: int,
    levels: Mapping[str, Any],
    label: str,
    *,
    width: int = 0,
    feature: Feature | None = None,
) -> FloatArray:
    """One draw, as n finite numbers; anything else is an error that names it."""
    own = label if feature is None else f"{feature.name}"  # an effect may be renamed
    shape = (n, width) if width else (n,)
    asked = {name for layer, name in (expression.vars if expression is not None else ()) if layer in ("before", "value")}
    asked |= {text.removeprefix("before.") for text in reads}
    gone = sorted(name for name in asked if ("before", name) in env and np.isnan(env["before", name]).any())
    if expression is not None:
        try:
            raw = np.asarray(expression.evaluate(env, levels=levels, rng=chance.numbers(own), size=n))
        except DataError as error:
            if gone:
                raise _reads_missing(gone, label) from error
            raise
    else:
        assert callable(draw)
        given = {}
        for text in reads:
            layer, name = text.split(".", 1) if "." in text else ("value", text)
            column = np.array(np.broadcast_to(env[layer, name], (n,)))
            column.flags.writeable = False
            given[text] = column
        found = []
        for some, rng in chance.generators(own):
            try:
                found.append(np.asarray(draw({text: column[some] for text, column in given.items()}, rng)))
            except Exception as error:
                raise ReachError(f"the function failed: {type(error).__name__}: {error}", where=label) from error
            if found[-1].shape != (some.stop - some.start, *shape[1:]):
                raise ReachError(f"must return {some.stop - some.start} values", where=label, got=f"shape {found[-1].shape}")
        raw = np.concatenate(found)
    if feature is not None and feature.levels is not None and raw.dtype.kind in "OUS":
        unknown = [v for v in np.unique(raw.astype(str)) if v not in [str(level) for level in feature.levels]]
        if unknown:
            raise ReachError(f"draws a level that {feature.name} does not have", where=label, got=unknown[0])
        position = {str(level): float(i) for i, level in enumerate(feature.levels)}
        raw = np.array([position[v] for v in raw.astype(str).ravel()]).reshape(raw.shape)
    values = np.array(np.broadcast_to(raw, shape), dtype=float)
    good = np.isfinite(values)
    if not good.all():
        if gone:
            raise _reads_missing(gone, label)
        raise ReachError("must return finite numbers", where=label, got=float(values[~good][0]))
    return values


def _reads_missing(names: Sequence[str], label: str) -> ReachError:
    remedy = "fill it in, leave the row out, or do not let the effect read it"
    return ReachError(f"reads {', '.join(names)}, which is missing here", where=label, remedy=remedy)
