"""Rule: any condition in the expression language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from budge.constraints._conditions import condition_problems, environment
from budge.constraints.base import BoolArray, Constraint, Example, FloatArray, Values
from budge.errors import ExpressionError, Problem
from budge.expressions import Expression, Formula, Total, Var, parse
from budge.features import Feature

__all__ = ["Rule"]


@dataclass(frozen=True)
class Rule(Constraint):
    """The expression is true at the value reached.

    Where it is linear the solver gets its exact rows; where not, it is checked by evaluation.

    Examples
    --------
    >>> Rule("income >= 12 * rent").scope
    ('income', 'rent')
    """

    kind: ClassVar[str] = "rule"

    expression: str

    @cached_property
    def parsed(self) -> Expression:
        """The parsed expression."""
        return parse(self.expression)

    @cached_property
    def bound(self) -> Expression:
        """The expression over the declared features: levels are codes, whole numbers compare exactly."""
        return self.parsed.bind(self.levels, self.integers)

    @cached_property
    def scope(self) -> tuple[str, ...]:
        return tuple(sorted(self.parsed.names()))

    @property
    def reads(self) -> frozenset[Var]:
        return frozenset(v for v in self.parsed.vars if v[0] != "before")

    def problems(self, features: Mapping[str, Feature]) -> list[Problem]:
        try:
            found = condition_problems(parse(self.expression), features, "expression")
        except ExpressionError as error:
            return list(error.at("expression").problems)
        if not found and not self.scope:
            found.append(Problem("expression", "names no feature", self.expression))
        return found

    def mask(self, x: Values, action: Values, change: Values) -> BoolArray:
        return np.asarray(self.bound.evaluate(environment(self.scope, x, action, change)), dtype=bool)

    def rows(self, x: Mapping[str, float], known: Mapping[Var, FloatArray | float] | None = None) -> Formula | None:
        given = {**{("before", name): value for name, value in x.items()}, **(known or {})}
        return self.bound.formula(given)

    def total(self, x: Mapping[str, float], known: Mapping[Var, FloatArray | float] | None = None) -> Total | None:
        """Return the rule as a total of absolute values that is at most something; None if it is not that."""
        return self.bound.total({**{("before", name): value for name, value in x.items()}, **(known or {})})

    def to_spec(self) -> dict[str, Any]:
        return {self.kind: self.expression} if self.name is None else super().to_spec()

    def describe(self) -> str:
        return f"{self.expression}."

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        features = (
            Feature("income", "integer", bounds=(0, 9)),
            Feature("rent", "integer", bounds=(0, 3)),
            Feature("home", "category", levels=("rent", "own")),
        )
        x = {"income": 4.0, "rent": 2.0, "home": 0.0}
        stay = dict.fromkeys(x, 0.0)
        linear, curved = cls("income >= 2 * rent"), cls("income * rent <= 8 or home == 'own'")
        return (
            Example(linear, features, x, stay, True),
            Example(linear, features, x, {**stay, "rent": 1.0}, False),
            Example(curved, features, x, stay, True),
            Example(curved, features, x, {**stay, "income": 1.0}, False),
            Example(curved, features, x, {**stay, "income": 1.0, "home": 1.0}, True),
            Example(cls("income > before.income"), features, x, stay, False),
            Example(cls("abs(action.income) <= 1"), features, x, {**stay, "income": -2.0}, False),
        )
