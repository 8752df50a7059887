"""The tightest box for rejection: slices in which a rule cannot hold are cut off, by interval arithmetic.

What is cut off is proved to hold nothing, so that the law of what is accepted stays as it is. Where a whole box is
impossible its configuration has no point at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from budge.constraints import Constraint, IfThen, Rule
from budge.expressions import All, Expression, Formula, Row, Some, Truth, Var
from budge.reach.forms import forms_of

if TYPE_CHECKING:
    from budge.reach.view import View

__all__ = ["Possible", "possible_at", "shaved"]

FloatArray = npt.NDArray[np.float64]
Bounds = Mapping[Var, tuple[float, float]]
Possible = Callable[[int, FloatArray, FloatArray], bool]
ROUNDS = 3
FINEST = 2.0**-5  # share of a side that is still worth a try
NARROWEST = 2.0**-30  # of the first width: a box stays a box


def shaved(possible: Callable[[FloatArray, FloatArray], bool], low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """The box without slices that are impossible; None where all of it is."""
    if not possible(low, high):
        return None
    low, high = low.copy(), high.copy()
    first = high - low
    for _ in range(ROUNDS):
        before = (high - low).copy()
        for j in np.flatnonzero(first > 0):
            for upper in (False, True):
                share = 0.5
                while share >= FINEST and high[j] - low[j] > NARROWEST * first[j]:
                    cut = high[j] - share * (high[j] - low[j]) if upper else low[j] + share * (high[j] - low[j])
                    a, b = low.copy(), high.copy()
                    (a if upper else b)[j] = cut
                    if possible(a, b):
                        share /= 2
                    elif upper:
                        high[j] = cut
                    else:
                        low[j] = cut
        if (high - low > 0.9 * before).all():
            break
    return low, high


def possible_at(view: View, curved: Sequence[Constraint]) -> Possible | None:
    """Return whether rules that must be evaluated might hold somewhere in a box of a configuration's coordinates; None where none can be asked."""
    core, part = view.core, view.core.starts.part
    asked = [c for c in curved if isinstance(c, Rule) or (isinstance(c, IfThen) and c.on == "value")]
    others = [(c, forms_of(part).formula(c, view.x)) for c in curved if c not in asked]  # linear in a target that stops at a bound
    formulas = [formula for _, formula in others if formula is not None]
    if not asked and not formulas:
        return None
    names = {name for c in asked for name in c.scope} | {name for c, formula in others if formula is not None for name in c.scope}
    place = {c.name: j for j, c in enumerate(view.coordinates)}

    def possible(at: int, low: FloatArray, high: FloatArray) -> bool:
        bounds: dict[Var, tuple[float, float]] = {}
        for name in names:
            origin = float(view.x[name][at])
            bounds["before", name] = (origin, origin)
            for layer, start in (("value", origin), ("change", 0.0), ("action", 0.0)):
                if name in core.change:
                    column = core.action[name] if layer == "action" else core.change[name]
                    bounds[layer, name] = (start + float(column[at]),) * 2
                elif layer == "action" and name in part.links:
                    continue  # its own action is anybody's guess here
                else:
                    ends = _range(view, name, at, place, low, high)
                    bounds[layer, name] = (start + ends[0], start + ends[1])
        if any(np.isnan(end) for ends in bounds.values() for end in ends):
            return True
        return all(_might_hold(c, bounds) for c in asked) and all(_might(formula, bounds, at) for formula in formulas)

    return possible


def _might(formula: Formula, bounds: Bounds, at: int) -> bool:
    """Whether a formula might hold within bounds; yes where it reads what has none."""
    match formula:
        case Truth(value):
            return bool(_one(value, at))
        case All(parts):
            return all(_might(part, bounds, at) for part in parts)
        case Some(parts):
            return any(_might(part, bounds, at) for part in parts)
        case Row(linear, relation):
            least = most = size = _one(linear.const, at)
            for var, c in linear.terms.items():
                if var not in bounds:
                    return True
                ends = sorted(_one(c, at) * end for end in bounds[var])
                least, most, size = least + ends[0], most + ends[1], abs(size) + max(abs(ends[0]), abs(ends[1]))
            slack = 1e-8 * max(1.0, abs(size))
            below, above = least <= slack, most >= -slack
            return below if relation in ("<=", "<") else above if relation in (">=", ">") else relation == "!=" or (below and above)
    return True


def _range(view: View, name: str, at: int, place: Mapping[str, int], low: FloatArray, high: FloatArray) -> tuple[float, float]:
    """Lowest and highest change of a feature that is a form in the coordinates, stopped where it stops."""
    form = view.symbols["change", name]
    least = most = _one(form.const, at)
    for (_, coordinate), c in form.terms.items():
        j, slope = place[coordinate], _one(c, at)
        ends = sorted((slope * float(low[j]), slope * float(high[j])))
        least, most = least + ends[0], most + ends[1]
    if name in view.stops:
        floor, ceiling = (float(end[at]) for end in view.stops[name])
        least, most = (min(max(end, floor), ceiling) for end in (least, most))
    return least, most


def _one(value: Any, at: int) -> float:
    return float(value[at]) if isinstance(value, np.ndarray) and value.ndim else float(value)


def _might_hold(constraint: Constraint, bounds: Bounds) -> bool:
    if isinstance(constraint, Rule):
        return _truth(constraint.parsed, bounds, constraint)[1] > 0
    assert isinstance(constraint, IfThen)
    always = _truth(constraint.condition, bounds, constraint)[0] > 0
    return not always or _truth(constraint.consequence, bounds, constraint)[1] > 0


def _truth(expression: Expression, bounds: Bounds, constraint: Rule | IfThen) -> tuple[float, float]:
    return expression.range({var: bounds[var] for var in expression.vars if var in bounds}, levels=constraint.levels)
