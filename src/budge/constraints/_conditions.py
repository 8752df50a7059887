"""What the constraints that hold an expression share: environments, checks of names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from budge.constraints.base import FloatArray, Values
from budge.errors import Problem
from budge.expressions import All, Expression, Formula, Linear, OneOf, Row, Some, Var
from budge.features import Feature

__all__ = ["condition_problems", "environment", "moved_to", "rename"]


def environment(names: Iterable[str], x: Values, action: Values, change: Values, *, at_zero: bool = False) -> dict[Var, FloatArray]:
    """Return what an expression over these names may read: values reached, the start, own actions.

    With `at_zero` a bare name is the change itself, not the start plus the change.
    """
    env: dict[Var, FloatArray] = {}
    for name in names:
        if name not in x:
            continue
        here = np.asarray(x[name], dtype=float)
        env["before", name] = here
        if name in change:
            moved = np.asarray(change[name], dtype=float)
            env["value", name] = moved if at_zero else here + moved
        if name in action:
            env["action", name] = np.asarray(action[name], dtype=float)
    return env


def moved_to(variables: Iterable[Var], layer: str) -> frozenset[Var]:
    """The variables with values read in another layer."""
    return frozenset((layer, name) if was == "value" else (was, name) for was, name in variables)


def condition_problems(expression: Expression, features: Mapping[str, Feature], where: str) -> list[Problem]:
    """Undeclared names, unknown levels, layers that a constraint cannot read, a number where a truth value is needed."""
    found = []
    levels = {name: f.levels for name in expression.names() if (f := features.get(name)) is not None and f.levels is not None}
    for problem in expression.check(levels, features):
        found.append(Problem(f"{where}.{problem.where}" if problem.where else where, problem.what, problem.got, problem.remedy))
    for layer, name in sorted(expression.vars):
        if layer in ("effect", "latent"):
            found.append(Problem(where, "nothing reads an effect: a constraint is about actions", f"{layer}.{name}"))
        elif name in features and features[name].type == "fixed":
            found.append(Problem(where, f"{name} is fixed without a type", name, "declare its type, with actionable: false"))
    if not expression.is_boolean:
        found.append(Problem(where, "is not a condition", expression.text, "compare something, e.g. 'rent <= 500'"))
    return found


def rename(formula: Formula, to: Callable[[Var], Var]) -> Formula:
    """The formula with its variables renamed."""
    if isinstance(formula, Row):
        renamed = Linear({to(var): c for var, c in formula.linear.terms.items()}, formula.linear.const)
        return Row(renamed, formula.relation, whole=formula.whole)
    if isinstance(formula, All | Some):
        return type(formula)(tuple(rename(part, to) for part in formula.parts))
    if isinstance(formula, OneOf):
        return OneOf(tuple(to(var) for var in formula.vars), formula.table, formula.whole)
    return formula
