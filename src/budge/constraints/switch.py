"""Switch: a condition that freezes other features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from budge.constraints._conditions import condition_problems, environment
from budge.constraints.base import BoolArray, Constraint, Example, FloatArray, Values, frozen, undeclared
from budge.errors import ExpressionError, Problem
from budge.expressions import All, Expression, Formula, Linear, Row, Some, Truth, Var, negate, parse, some_of
from budge.expressions.tolerance import equal
from budge.features import Feature

__all__ = ["Switch"]


@dataclass(frozen=True)
class Switch(Constraint):
    """While `when` holds at the value reached, the targets' own actions are zero (paper: Encoding Switch Constraints).

    Else they are free (``otherwise="free"``), or at least one moves (``any``), or all do (``all``). With
    ``precondition=True``, the paper's default, the constraint is added only for people who start in agreement with it: their
    targets are zero where `when` holds, and not zero where it does not and something must move. Others are not restricted.

    Examples
    --------
    >>> Switch("no_account == 1", ("balance",)).describe()
    'While no_account == 1, balance cannot be moved; otherwise it is free.'
    """

    kind: ClassVar[str] = "switch"

    when: str
    targets: tuple[str, ...]
    otherwise: Literal["free", "any", "all"] = "free"
    precondition: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "targets", frozen(self.targets))

    @cached_property
    def condition(self) -> Expression:
        """The parsed condition."""
        return parse(self.when)

    @cached_property
    def bound(self) -> Expression:
        """The condition over the declared features: levels are codes, whole numbers compare exactly."""
        return self.condition.bind(self.levels, self.integers)

    @cached_property
    def scope(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*sorted(self.condition.names()), *self.targets)))

    @property
    def reads(self) -> frozenset[Var]:
        return frozenset([*(v for v in self.condition.vars if v[0] != "before"), *(("action", name) for name in self.targets)])

    def problems(self, features: Mapping[str, Feature]) -> list[Problem]:
        found = undeclared(self.targets, features, "targets")
        if not self.targets:
            found.append(Problem("targets", "a switch needs a target", []))
        if self.otherwise not in ("free", "any", "all"):
            found.append(Problem("otherwise", "must be free, any or all", self.otherwise))
        if not isinstance(self.precondition, bool):
            found.append(Problem("precondition", "must be true or false", self.precondition))
        elif self.precondition:
            what = "a precondition compares targets with zero, and levels are not numbers"
            levels = [name for name in self.targets if name in features and features[name].levels is not None]
            found += [Problem("targets", what, name, "leave precondition out, or use dummies") for name in levels]
        try:
            condition = parse(self.when)
        except ExpressionError as error:
            return found + list(error.at("when").problems)
        found += condition_problems(condition, features, "when")
        both = sorted(condition.names("value") & set(self.targets))
        if both:
            found.append(Problem("targets", "a feature cannot switch itself", both[0]))
        return found

    def _applies(self, x: Values | Mapping[str, float]) -> BoolArray:
        """Return for which starts the constraint is there at all."""
        if not self.precondition:
            return np.array(True)
        start = {name: np.asarray(x[name], dtype=float) for name in self.scope}
        rest = {name: np.zeros_like(value) for name, value in start.items()}
        on = np.asarray(self.bound.evaluate(environment(self.scope, start, rest, rest)), dtype=bool)
        known = [~np.isnan(start[name]) for name in self.targets]
        zero = [np.asarray(equal(start[name], 0.0)) & k for name, k in zip(self.targets, known)]
        other = [k & ~z for k, z in zip(known, zero)]
        off = {"free": np.array(True), "any": np.logical_or.reduce(other), "all": np.logical_and.reduce(other)}[self.otherwise]
        return np.asarray(np.where(on, np.logical_and.reduce(zero), off), dtype=bool)

    def mask(self, x: Values, action: Values, change: Values) -> BoolArray:
        on = np.asarray(self.bound.evaluate(environment(self.scope, x, action, change)), dtype=bool)
        still = [np.asarray(equal(np.asarray(action[name], dtype=float), 0.0)) for name in self.targets]
        frozen_all, moved_all, moved_any = np.array(True), np.array(True), np.array(False)
        for rests in still:
            frozen_all, moved_all, moved_any = frozen_all & rests, moved_all & ~rests, moved_any | ~rests
        off = {"free": np.array(True), "any": moved_any, "all": moved_all}[self.otherwise]
        return np.asarray(~self._applies(x) | np.where(on, frozen_all, off), dtype=bool)

    def rows(self, x: Mapping[str, float], known: Mapping[Var, FloatArray | float] | None = None) -> Formula | None:
        applies = self._applies(x)
        if not applies.any():
            return Truth(True)
        given = {**{("before", name): value for name, value in x.items()}, **(known or {})}
        on = self.bound.formula(given)
        if on is None:
            return None
        skipped = () if applies.all() else (Truth(~applies),)
        own = [Linear({("action", name): 1.0}, 0.0) for name in self.targets]
        still = All(tuple(Row(a, "==") for a in own))
        if self.otherwise == "free":
            return some_of((*skipped, Some((negate(on), still))))
        moves = tuple(Row(a, "!=") for a in own)
        off: Formula = Some(moves) if self.otherwise == "any" else All(moves)
        return some_of((*skipped, All((Some((negate(on), still)), Some((on, off))))))

    def describe(self) -> str:
        them, one = ", ".join(self.targets), len(self.targets) == 1
        how = {
            "free": "it is free" if one else "they are free",
            "any": "it must be moved" if one else "at least one of them must be moved",
            "all": "it must be moved" if one else "all of them must be moved",
        }[self.otherwise]
        who = "For people who start so that it holds: while" if self.precondition else "While"
        return f"{who} {self.when}, {them} cannot be moved; otherwise {how}."

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        features = (Feature("closed", "binary"), *(Feature(name, "integer", bounds=(0, 3)) for name in ("a", "b")))
        x = {"closed": 1.0, "a": 1.0, "b": 1.0}

        def case(otherwise: Literal["free", "any", "all"], closed: float, a: float, b: float, holds: bool) -> Example:
            return Example(cls("closed == 1", ("a", "b"), otherwise), features, x, {"closed": closed, "a": a, "b": b}, holds)

        return (
            case("free", 0, 0, 0, True),
            case("free", 0, 1, 0, False),
            case("free", -1, 1, 0, True),
            case("any", -1, 0, 0, False),
            case("any", -1, 0, 1, True),
            case("all", -1, 0, 1, False),
            case("all", -1, 2, 1, True),
            # the targets are not zero where the switch is on: the paper's precondition fails, and nothing is restricted
            Example(cls("closed == 1", ("a", "b"), precondition=True), features, x, {"closed": 0.0, "a": 1.0, "b": 0.0}, True),
            Example(
                cls("closed == 1", ("a", "b"), precondition=True), features, {**x, "a": 0.0, "b": 0.0}, {"closed": 0.0, "a": 1.0, "b": 0.0}, False
            ),
        )
