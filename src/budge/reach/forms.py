"""What does not change from person to person: the scopes of a part's constraints, and their formulas where x does not enter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.constraints import AdditiveLinkage, Constraint, IfThen, LinearConstraint, OneHot, Rule, Switch
from budge.expressions import Formula, Var
from budge.features import Feature
from budge.parts import Part

__all__ = ["Forms", "forms_of", "limits"]

FloatArray = npt.NDArray[np.float64]


@lru_cache(maxsize=65_536)
def limits(feature: Feature, x: float) -> tuple[float, float]:
    """Lowest and highest own action from x."""
    low, high = feature.moves(x)
    return float(low), float(high)


class Forms:
    """Scopes and formulas of one part, made once."""

    def __init__(self, part: Part) -> None:
        self._scopes = {id(c): frozenset(c.scope) for c in part.constraints}
        self._fixed = {id(c): c.rows({}) for c in part.constraints if _ignores_x(c)}

    def __reduce__(self) -> tuple[Any, ...]:
        return (nothing, ())  # it goes by identity: a copy of the part makes its own

    def scope(self, constraint: Constraint) -> frozenset[str]:
        """The names that it couples."""
        return self._scopes[id(constraint)]

    def formula(self, constraint: Constraint, x: Mapping[str, float], known: Mapping[Var, FloatArray | float] | None = None) -> Formula | None:
        """The constraint as rows at x; None where it is not linear even with what is known put in."""
        fixed = self._fixed.get(id(constraint))
        scope = self.scope(constraint)
        # a missing value is known: a comparison with it is not true, and neither is its opposite
        gone = {("value", name): np.nan for name in scope if math.isnan(x[name])}
        if fixed is not None and not gone:
            return fixed
        given = {var: value for var, value in (known or {}).items() if var[1] in scope} | gone
        return constraint.rows({name: x[name] for name in scope}, given)


def nothing() -> None:
    """What stands for a cache in a copy."""


def forms_of(part: Part) -> Forms:
    """The part's forms, made once."""
    found: Forms | None = part.__dict__.get("_forms")
    if found is None:
        found = part.__dict__["_forms"] = Forms(part)
    return found


def _ignores_x(constraint: Constraint) -> bool:
    """Whether its rows are the same for everybody."""
    if isinstance(constraint, LinearConstraint | AdditiveLinkage | OneHot):
        return True
    texts = {Rule: ("parsed",), IfThen: ("condition", "consequence"), Switch: ("condition",)}.get(type(constraint))
    if texts is None:
        return False
    return all(layer != "before" for text in texts for layer, _ in getattr(constraint, text).vars)
