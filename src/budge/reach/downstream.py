"""What follows from drawn changes: effects, and the own actions that they read where a change does not determine these.

A configuration is the joint change: where several own actions lead to one change, it counts once. An effect that reads
``action.name`` needs one of these own actions, and none of them is preferred: they are drawn uniformly, given the change.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from budge.effects import draw_effects
from budge.errors import ReachError
from budge.parts import Part
from budge.reach.chance import Chance
from budge.reach.starts import distinct
from budge.reach.streams import Stream, region_of, unit

if TYPE_CHECKING:
    from budge.reach.reacher import Block

__all__ = ["add_effects", "draw_own", "open_own"]

FloatArray = npt.NDArray[np.float64]
MOST_CELLS = 4_000_000  # guesses times draws that are held at once


def add_effects(block: Block, moved: FloatArray, stream: Stream, first: int, n: int) -> dict[str, FloatArray]:
    """Draw the effects and add them to the columns that can move; people with the same values missing together."""
    maker, effects = block.maker, block.maker.model.effects
    if not effects:
        return {}
    names = sorted({e.feature for e in effects} | {name for e in effects for _, name in e.parents if name in maker.position})
    which, kinds = distinct(np.isnan(block.rows[:, [maker.position[name] for name in names]]))
    result = {e.feature: np.zeros(moved.shape[1]) for e in effects}
    reached = []
    for group in range(len(kinds)):
        people = np.flatnonzero(which == group)
        own = slice(None) if len(kinds) == 1 else (people[:, None] * n + np.arange(n)).ravel()
        for name, (epsilon, value) in _effects(block.take(people), moved[:, own], stream.take(people), first, n).items():
            result[name][own] = epsilon
            reached.append((maker.spot[maker.position[name]], own, value))
    for spot, own, value in reached:  # an effect reads what actions have reached, not other effects
        moved[spot, own] = value
    return result


def _effects(block: Block, moved: FloatArray, stream: Stream, first: int, n: int) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Draw the effects of people who have the same values missing; `moved` holds their own draws."""
    maker, model, size = block.maker, block.maker.model, len(block) * n
    x = {name: np.repeat(block.rows[:, j], n) for name, j in maker.position.items() if name in maker.felt}
    change = {}
    for name, start in x.items():
        spot = maker.spot[maker.position[name]]
        change[name] = moved[spot] - start if spot >= 0 else np.zeros(size)
        if np.isnan(block.rows[:, maker.position[name]]).any():
            change[name][np.isnan(start)] = 0.0
    action = dict(change)
    read = {name for e in model.effects for layer, name in e.parents if layer == "action"}
    for part in model.parts:
        if part.links and read & set(part.names):
            uniforms = unit(stream.words(first, n, len(part.names), region_of("own", *sorted(part.names)))).reshape(size, -1)
            action |= draw_own(part, {name: x[name] for name in part.names}, {name: change[name] for name in part.names}, uniforms)
    return draw_effects(model.effects, model.latent, model.by_name, x, action, change, Chance(stream, first, n), size)


def open_own(part: Part) -> tuple[str, ...]:
    """Return the features whose own action does not follow from the change, in the order in which `draw_own` draws them."""
    return tuple(name for name in part.order if part.split(name) in ("guess", "open"))


def draw_own(part: Part, x: Mapping[str, Any], change: Mapping[str, FloatArray], uniforms: FloatArray) -> dict[str, FloatArray]:
    """Draw the own action behind each change.

    All whole own actions that lead to a change are equally likely, jointly where several features have one to draw; then each
    real one is uniform on the interval that is left. Where the change determines the own action, it is that of
    `Part.own_actions`.

    Parameters
    ----------
    part
        The features that move together.
    x
        The start: one number per feature, or one per draw.
    change
        Feasible changes, one column of n draws per feature.
    uniforms
        Numbers in [0, 1): one row per draw, one column per feature of `open_own`.

    Examples
    --------
    >>> import budge
    >>> im = budge.InteractionModel(
    ...     [budge.Feature(name, "integer", bounds=(0, 2)) for name in ("tweets", "urls")],
    ...     [budge.constraints.DirectionalLinkage("tweets", {"urls": 1}, relation="<=")],
    ... )
    >>> moved = {"tweets": np.full(4, 1.0), "urls": np.full(4, 2.0)}
    >>> draw_own(im.parts[0], {"tweets": 0.0, "urls": 0.0}, moved, np.array([[0.0], [0.4], [0.5], [0.9]]))["urls"]
    array([1., 1., 2., 2.])
    """
    names = open_own(part)
    n = len(uniforms)
    moved = {name: np.broadcast_to(np.asarray(change[name], dtype=float), (n,)) for name in part.names}
    start = {name: np.broadcast_to(np.asarray(x[name], dtype=float), (n,)) for name in part.names}
    spread = {name: uniforms[:, j] for j, name in enumerate(names)}
    guessed = _draw_guesses(part, start, moved, spread)
    action = part.own_actions(start, moved, guessed)
    for name in (name for name in names if name not in guessed):
        feature = part.by_name[name]
        low, high = part.own_interval(feature, start, action, moved[name])
        high = np.maximum(high, low)
        steps = np.floor(spread[name] * (high - low + 1.0)) if feature.discrete else spread[name] * (high - low)
        action[name] = np.minimum(low + steps, high)
    return action


def _draw_guesses(
    part: Part, x: Mapping[str, FloatArray], change: Mapping[str, FloatArray], spread: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    """Draw the own actions that somebody reads: each guess weighs as many whole own actions as it leaves to the others."""
    spans = part.guesses(x)
    if not spans:
        return {}
    names, lengths = list(spans), [len(span) for span in spans.values()]
    n, most = len(next(iter(change.values()))), max(1, MOST_CELLS // int(np.prod(lengths)))
    found = {name: np.empty(n) for name in names}
    for first in range(0, n, most):
        rows = slice(first, first + most)
        here, moved = ({name: column[rows] for name, column in columns.items()} for columns in (x, change))
        guesses = product(*spans.values())
        weights = np.stack([_weight(part, here, moved, dict(zip(names, guess))) for guess in guesses], axis=-1)
        if not weights.any(axis=-1).all():
            raise ReachError("no own action leads to this change", where=f"part {', '.join(part.names)}")
        weights = weights.reshape(-1, *lengths)
        for name in names:  # one feature after the other, each by what it leaves to those after it
            shares = np.cumsum(weights.reshape(*weights.shape[:2], -1).sum(axis=-1), axis=1)
            total = shares[:, -1]
            at = np.minimum(spread[name][rows] * total, np.nextafter(total, 0.0))  # a product may round up to the total
            picked = (shares <= at[:, None]).sum(axis=1)
            found[name][rows] = spans[name][picked]
            weights = weights[np.arange(len(weights)), picked]
    return found


def _weight(part: Part, x: Mapping[str, FloatArray], change: Mapping[str, FloatArray], guess: Mapping[str, float]) -> FloatArray:
    """Return how many whole own actions lead to each change together with the guess."""
    action = part.own_actions(x, change, guess)
    weight = np.where(part.holds(x, action, change), 1.0, 0.0)
    for name in (name for name in part.order if part.split(name) == "open"):
        feature = part.by_name[name]
        if feature.discrete:
            low, high = part.own_interval(feature, x, action, change[name])
            weight = weight * np.maximum(high - low + 1.0, 0.0)
    return weight
