"""Linear: a budget, or any half-space or hyperplane."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from budge.constraints.base import (
    BoolArray,
    Constraint,
    Example,
    FloatArray,
    Relation,
    Values,
    made_whole,
    reached,
    total,
    undeclared,
)
from budge.errors import Problem
from budge.expressions import Formula, Var
from budge.expressions.tolerance import compare
from budge.features import Feature

__all__ = ["LinearConstraint"]


@dataclass(frozen=True)
class LinearConstraint(Constraint):
    """``Σ coefficient · feature`` compares to a constant, over values reached or over own actions.

    Examples
    --------
    >>> LinearConstraint({"hours_a": 1, "hours_b": 1}, "<=", 3, on="action").describe()
    '1·hours_a + 1·hours_b <= 3 over own actions.'
    """

    kind: ClassVar[str] = "linear"

    coefficients: Mapping[str, float]
    relation: Relation = "<="
    constant: float = 0.0
    on: Literal["value", "action"] = "value"

    @property
    def scope(self) -> tuple[str, ...]:
        return tuple(self.coefficients)

    @property
    def reads(self) -> frozenset[Var]:
        return frozenset((self.on, name) for name in self.coefficients)

    def problems(self, features: Mapping[str, Feature]) -> list[Problem]:
        found = undeclared(self.scope, features, "coefficients")
        if not self.coefficients:
            found.append(Problem("coefficients", "names no feature", {}))
        for name, value in self.coefficients.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                found.append(Problem(f"coefficients.{name}", "a coefficient is a finite number", value))
            if name in features and not features[name].numeric:
                found.append(Problem(f"coefficients.{name}", f"needs a number, {name} is {features[name].type}", name))
        if isinstance(self.constant, bool) or not isinstance(self.constant, int | float) or not math.isfinite(self.constant):
            found.append(Problem("constant", "must be a finite number", self.constant))
        if self.relation not in ("==", "<=", ">="):
            found.append(Problem("relation", "must be one of == <= >=", self.relation))
        if self.on not in ("value", "action"):
            found.append(Problem("on", "must be value or action", self.on))
        return found

    @cached_property
    def _terms(self) -> tuple[Mapping[str, float], float, bool]:
        """Coefficients and constant, made whole where the features are, and whether they are whole."""
        found = made_whole(self.coefficients, self.constant) if self.counts(self.coefficients) else None
        if found is not None:
            return *found, True
        return {name: float(c) for name, c in self.coefficients.items()}, float(self.constant), False

    def mask(self, x: Values, action: Values, change: Values) -> BoolArray:
        def term(name: str) -> FloatArray:
            return reached(x, change, name) if self.on == "value" else np.asarray(action[name], dtype=float)

        coefficients, constant, whole = self._terms
        return compare(self.relation, sum(c * term(name) for name, c in coefficients.items()), constant, whole=whole)

    def rows(self, x: Mapping[str, float], known: Mapping[Var, FloatArray | float] | None = None) -> Formula | None:
        coefficients, constant, whole = self._terms
        return total({(self.on, name): c for name, c in coefficients.items()}, self.relation, constant, whole=whole)

    def describe(self) -> str:
        parts = [f"{c:g}·{name}" for name, c in self.coefficients.items()]
        where = "over own actions" if self.on == "action" else "at the value reached"
        return f"{' + '.join(parts).replace('+ -', '− ')} {self.relation} {self.constant:g} {where}."

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        features = (Feature("a", "integer", bounds=(0, 9)), Feature("b", "integer", bounds=(0, 9)))
        x = {"a": 2.0, "b": 3.0}
        budget, level = cls({"a": 1, "b": 1}, "<=", 3, on="action"), cls({"a": 2, "b": -1}, "==", 1)
        return (
            Example(budget, features, x, {"a": 1.0, "b": 2.0}, True),
            Example(budget, features, x, {"a": 2.0, "b": 2.0}, False),
            Example(level, features, x, {"a": 1.0, "b": 2.0}, True),
            Example(level, features, x, {"a": 1.0, "b": 1.0}, False),
        )
