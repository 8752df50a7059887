"""The tightest box for rejection: slices in which a rule cannot hold are cut off, by interval arithmetic.

What is cut off is proved to hold nothing, so that the law of what is accepted stays as it is. Where a whole box is
impossible its configuration has no point at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from budge.constraints import Constraint, IfThen, Rule
from budge.expressions import Expression, Var
from budge.parts import Part

if TYPE_CHECKING:
    from budge.reach.core import Core
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


def possible_at(part: Part, core: Core, view: View, curved: Sequence[Constraint]) -> Possible | None:
    """Whether rules that are not linear might hold somewhere in a box of a configuration's coordinates; None where none can be asked."""
    asked = [c for c in curved if isinstance(c, Rule) or (isinstance(c, IfThen) and c.on == "value")]
    if not asked:
        return None
    names = {name for c in asked for name in c.scope}
    place = {c.name: j for j, c in enumerate(view.coordinates)}

    def possible(at: int, low: FloatArray, high: FloatArray) -> bool:
        bounds: dict[Var, tuple[float, float]] = {}
        for name in names:
            bounds["before", name] = (view.x[name], view.x[name])
            for layer, start in (("value", view.x[name]), ("action", 0.0)):
                if name in core.change:
                    column = core.change[name] if layer == "value" else core.action[name]
                    bounds[layer, name] = (start + float(column[at]),) * 2
                elif layer == "action" and name in part.links:
                    continue  # its own action is anybody's guess here
                else:
                    ends = _range(view, name, at, place, low, high)
                    bounds[layer, name] = (start + ends[0], start + ends[1])
        if any(np.isnan(end) for ends in bounds.values() for end in ends):
            return True
        return all(_might_hold(c, bounds) for c in asked)

    return possible


def _range(view: View, name: str, at: int, place: Mapping[str, int], low: FloatArray, high: FloatArray) -> tuple[float, float]:
    """Lowest and highest change of a feature that is a form in the coordinates, stopped where it stops."""
    form = view.symbols["change", name]
    least = most = _one(form.const, at)
    for (_, coordinate), c in form.terms.items():
        j, slope = place[coordinate], _one(c, at)
        ends = sorted((slope * float(low[j]), slope * float(high[j])))
        least, most = least + ends[0], most + ends[1]
    if name in view.stops:
        least, most = (float(np.clip(end, *view.stops[name])) for end in (least, most))
    return least, most


def _one(value: float | FloatArray, at: int) -> float:
    return float(value[at]) if isinstance(value, np.ndarray) and value.ndim else float(value)


def _might_hold(constraint: Constraint, bounds: Bounds) -> bool:
    if isinstance(constraint, Rule):
        return _truth(constraint.parsed, bounds, constraint)[1] > 0
    assert isinstance(constraint, IfThen)
    always = _truth(constraint.condition, bounds, constraint)[0] > 0
    return not always or _truth(constraint.consequence, bounds, constraint)[1] > 0


def _truth(expression: Expression, bounds: Bounds, constraint: Rule | IfThen) -> tuple[float, float]:
    return expression.range({var: bounds[var] for var in expression.vars if var in bounds}, levels=constraint.levels)
