"""If-then: a condition on the value reached brings another with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import ClassVar, Literal

import numpy as np

from budge.constraints._conditions import condition_problems, environment, moved_to, rename
from budge.constraints.base import BoolArray, Constraint, Example, FloatArray, Values
from budge.errors import ExpressionError, Problem
from budge.expressions import Expression, Formula, Some, Var, negate, parse
from budge.features import Feature

__all__ = ["IfThen"]


@dataclass(frozen=True)
class IfThen(Constraint):
    """Where `if_` holds at the value reached, `then` holds too (paper: Encoding If-Then Constraints).

    While the condition is false nothing is restricted. With ``on="action"`` the condition reads own actions
    instead: the paper's printed trigger ``a_k >= v``.

    Examples
    --------
    >>> import numpy as np
    >>> rule = IfThen("no_tweets == 0", "tweets >= 1")
    >>> x = {"no_tweets": np.array(1.0), "tweets": np.array(0.0)}
    >>> a = {"no_tweets": np.array([0.0, -1.0, -1.0]), "tweets": np.array([0.0, 0.0, 5.0])}
    >>> rule.mask(x, a, a)
    array([ True, False,  True])
    """

    kind: ClassVar[str] = "if_then"
    aliases: ClassVar[Mapping[str, str]] = MappingProxyType({"if_": "if"})

    if_: str
    then: str
    on: Literal["value", "action"] = "value"

    @cached_property
    def condition(self) -> Expression:
        """The parsed condition."""
        return parse(self.if_)

    @cached_property
    def consequence(self) -> Expression:
        """The parsed consequence."""
        return parse(self.then)

    @cached_property
    def bound(self) -> tuple[Expression, Expression]:
        """Condition and consequence over the declared features: levels are codes, whole numbers compare exactly."""
        levels, integers = self.levels, self.integers
        return self.condition.bind(levels, integers), self.consequence.bind(levels, integers)

    @cached_property
    def scope(self) -> tuple[str, ...]:
        return tuple(sorted(self.condition.names() | self.consequence.names()))

    @property
    def reads(self) -> frozenset[Var]:
        return frozenset(v for v in moved_to(self.condition.vars, self.on) | self.consequence.vars if v[0] != "before")

    def problems(self, features: Mapping[str, Feature]) -> list[Problem]:
        found: list[Problem] = []
        for key, text in (("if", self.if_), ("then", self.then)):
            try:
                found += condition_problems(parse(text), features, key)
            except ExpressionError as error:
                found += error.at(key).problems
        if self.on not in ("value", "action"):
            found.append(Problem("on", "must be value or action", self.on))
        return found

    def mask(self, x: Values, action: Values, change: Values) -> BoolArray:
        now = environment(self.scope, x, action, change)
        read = environment(self.scope, x, action, action, at_zero=True) if self.on == "action" else now
        condition, consequence = self.bound
        return np.asarray(~np.asarray(condition.evaluate(read), dtype=bool) | np.asarray(consequence.evaluate(now), dtype=bool))

    def rows(self, x: Mapping[str, float], known: Mapping[Var, FloatArray | float] | None = None) -> Formula | None:
        before = {("before", name): value for name, value in x.items()}
        given = {**before, **(known or {})}
        if self.on == "action":  # bare names of the condition stand for own actions
            read = {**before, **{("value", n): v for (layer, n), v in given.items() if layer == "action"}}
            read |= {var: v for var, v in given.items() if var[0] == "action"}
        else:
            read = given
        condition, consequence = self.bound[0].formula(read), self.bound[1].formula(given)
        if condition is None or consequence is None:
            return None
        if self.on == "action":
            condition = rename(condition, lambda var: ("action", var[1]) if var[0] == "value" else var)
        return Some((negate(condition), consequence))

    def describe(self) -> str:
        read = "the own action has" if self.on == "action" else ""
        return f"If {read + ' ' if read else ''}{self.if_}, then {self.then}."

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        features = (
            Feature("none", "binary"),
            Feature("count", "integer", bounds=(0, 5)),
            Feature("home", "category", levels=("rent", "own", "free")),
        )
        x = {"none": 1.0, "count": 0.0, "home": 0.0}
        rule, own = cls("none == 0", "count >= 1"), cls("count in [2, 3] and none == 0", "home == 'own'")
        paper = cls("count >= 2", "none == 0", on="action")
        return (
            Example(rule, features, x, {"none": -1.0, "count": 1.0, "home": 0.0}, True),
            Example(rule, features, x, {"none": -1.0, "count": 0.0, "home": 0.0}, False),
            Example(rule, features, x, {"none": 0.0, "count": 3.0, "home": 0.0}, True),
            Example(own, features, x, {"none": -1.0, "count": 2.0, "home": 0.0}, False),
            Example(own, features, x, {"none": -1.0, "count": 2.0, "home": 1.0}, True),
            Example(paper, features, {"none": 1.0, "count": 2.0, "home": 0.0}, {"none": 0.0, "count": 1.0, "home": 0.0}, True),
            Example(paper, features, {"none": 1.0, "count": 2.0, "home": 0.0}, {"none": 0.0, "count": 2.0, "home": 0.0}, False),
        )
