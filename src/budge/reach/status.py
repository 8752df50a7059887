"""What is wrong with a start: what it breaks before any move, and which constraints clash where nothing is feasible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from budge.constraints import Constraint, IfThen, Reachability, Rule, Switch
from budge.errors import DrawError, Problem, SolverError
from budge.expressions.tolerance import less_equal
from budge.parts import Part
from budge.reach.forms import forms_of
from budge.reach.prepare import prepare

if TYPE_CHECKING:
    from budge.interaction import InteractionModel

__all__ = ["blame", "broken_at", "broken_people", "is_about_values"]

BoolArray = npt.NDArray[np.bool_]


def is_about_values(constraint: Constraint) -> bool:
    """Whether it restricts values, so that a start can break it; else it restricts movements only."""
    if isinstance(constraint, Switch):
        return False
    if any(layer != "value" for layer, _ in constraint.reads):
        return False
    expressions = []
    if isinstance(constraint, Rule):
        expressions = [constraint.parsed]
    elif isinstance(constraint, IfThen):
        expressions = [constraint.condition, constraint.consequence]
    return not any(layer == "before" for e in expressions for layer, _ in e.vars)


def broken_people(model: InteractionModel, values: npt.NDArray[np.float64]) -> list[tuple[str, BoolArray]]:
    """For every bound and value constraint that somebody breaks: its label and who."""
    place = {f.name: j for j, f in enumerate(model.features)}
    found: list[tuple[str, BoolArray]] = []
    for f in model.features:
        if f.type == "fixed":
            continue
        low, high = f.range
        column = values[:, place[f.name]]
        if ((low <= column) & (column <= high)).all():
            continue  # the tolerance is for those beyond
        bad = ~np.isnan(column) & ~(less_equal(low, column, whole=f.discrete) & less_equal(column, high, whole=f.discrete))
        if bad.any():
            found.append((f"bounds of {f.name}", np.asarray(bad)))
    zero = np.zeros(len(values))
    for c in model.constraints:
        if not is_about_values(c):
            continue
        x = {name: values[:, place[name]] for name in c.scope}
        if isinstance(c, Reachability):  # standing on a listed row is enough
            now = np.stack([x[name] for name in c.features], axis=1)
            good = c.stands_at(now)
        else:
            still = dict.fromkeys(c.scope, zero)
            good = np.broadcast_to(c.mask(x, still, still), zero.shape)
        if not good.all():
            found.append((c.label, np.asarray(~good)))
    return found


def broken_at(model: InteractionModel, start: Mapping[str, float]) -> tuple[Problem, ...]:
    """The problems of one start."""
    values = np.array([[start[f.name] for f in model.features]])
    problems = []
    by_label = {c.label: c for c in model.constraints}
    for label, _ in broken_people(model, values):
        constraint = by_label.get(label)
        names = constraint.scope if constraint is not None else (label.removeprefix("bounds of "),)
        got = {name: _shown(model, name, start[name]) for name in names}
        what = constraint.describe() if constraint is not None else "outside " + str(list(model.by_name[names[0]].range))
        problems.append(Problem(label, f"broken before any move: {what}", got, "mend the row, or set on_invalid to skip or keep"))
    return tuple(problems)


def _shown(model: InteractionModel, name: str, value: float) -> object:
    feature = model.by_name[name]
    if np.isnan(value):
        return None
    return feature.levels[int(value)] if feature.levels is not None else (int(value) if feature.discrete else value)


def blame(part: Part, x: Mapping[str, float]) -> tuple[str, ...]:
    """Constraints (and limits of features) that clash at x, none of which can be left out.

    The solver tells where all is linear; elsewhere it would have to search, and the part is listed again without one
    constraint after the other.
    """
    from budge.program.clash import clash

    if all(forms_of(part).formula(c, x) is not None for c in part.constraints):
        try:
            found = clash(part, x)
        except SolverError:
            found = ()
        if found:
            return found
    kept: list[Constraint] = [*part.linkages, *part.constraints]
    for constraint in tuple(kept):
        fewer = [c for c in kept if c is not constraint]
        if _empty(part, fewer, x):
            kept = fewer
    return tuple(c.label for c in kept)


def _empty(part: Part, kept: list[Constraint], x: Mapping[str, float]) -> bool:
    ids = {id(c) for c in kept}
    links = {name: tuple(link for link in linked if id(link) in ids) for name, linked in part.links.items()}
    rest = Part(part.features, tuple(c for c in part.constraints if id(c) in ids), {n: found for n, found in links.items() if found})
    try:
        return bool(prepare(rest, x)[0][1].empty[0])
    except DrawError:
        return False  # not proved
