"""What does not change from person to person: the scopes of a part's constraints, and their formulas where x does not enter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.constraints import AdditiveLinkage, Constraint, IfThen, LinearConstraint, OneHot, Rule, Switch
from budge.expressions import All, Formula, Row, Some, Total, Var
from budge.parts import Part

__all__ = ["ApartError", "Forms", "LinearRow", "forms_of", "holding", "ignores_x"]

FloatArray = npt.NDArray[np.float64]


class ApartError(Exception):
    """People must be prepared one by one: rows depend on where each stands, or something would be given up for all of them together."""


@dataclass(frozen=True)
class LinearRow:
    """``Σ values · value + Σ moves · move + constant  relation  0``."""

    values: Mapping[str, float]
    moves: Mapping[str, float]
    constant: float
    relation: str


class Forms:
    """Scopes and formulas of one part, made once."""

    def __init__(self, part: Part) -> None:
        self._scopes = {id(c): frozenset(c.scope) for c in part.constraints}
        self._fixed = {id(c): c.rows({}) for c in part.constraints if ignores_x(c)}

    def __reduce__(self) -> tuple[Any, ...]:
        return (nothing, ())  # it goes by identity: a copy of the part makes its own

    def scope(self, constraint: Constraint) -> frozenset[str]:
        """The names that it couples."""
        return self._scopes[id(constraint)]

    def row(self, constraint: Constraint) -> LinearRow | None:
        """The constraint as one linear row that is the same for everybody, if it is that."""
        formula = self._fixed.get(id(constraint))
        if not isinstance(formula, Row):
            return None
        values: dict[str, float] = {}
        moves: dict[str, float] = {}
        for (layer, name), c in formula.linear.terms.items():
            terms = values if layer == "value" else moves
            terms[name] = terms.get(name, 0.0) + float(np.asarray(c))
        return LinearRow(values, moves, float(np.asarray(formula.linear.const)), formula.relation)

    @cached_property
    def equals(self) -> dict[str, list[float]]:
        """The numbers that the values of features are set equal to, in rows that are the same for everybody."""
        found: dict[str, list[float]] = {}
        for formula in self._fixed.values():
            for name, number in _equals(formula):
                found.setdefault(name, []).append(number)
        return found

    def formula(
        self, constraint: Constraint, x: Mapping[str, FloatArray | float], known: Mapping[Var, FloatArray | float] | None = None
    ) -> Formula | None:
        """The constraint as rows at x (one start, or one for each row); None where it is not linear even with what is known put in."""
        fixed = self._fixed.get(id(constraint))
        here, given, gone = self._given(constraint, x, known or {})
        if not gone and (fixed is not None or (id(constraint) in self._fixed and not given)):
            return fixed
        if not isinstance(constraint, Rule | IfThen | Switch):  # the others' rows are a list
            if any((np.ravel(column) != np.ravel(column)[0]).any() for name, column in here.items() if ("value", name) not in gone):
                raise ApartError
            here = {name: float(np.ravel(column)[0]) for name, column in here.items()}
        return constraint.rows(here, given)

    def total(self, constraint: Constraint, x: Mapping[str, FloatArray], known: Mapping[Var, FloatArray | float]) -> Total | None:
        """The constraint as a total of absolute values at x; None if it is not that."""
        if not isinstance(constraint, Rule) or not constraint.parsed.calls & {"abs", "min", "max"}:
            return None
        here, given, _ = self._given(constraint, x, known)
        return constraint.total(here, given)

    def _given(self, constraint: Constraint, x: Mapping[str, Any], known: Mapping[Var, Any]) -> tuple[dict[str, Any], dict[Var, Any], dict[Var, Any]]:
        """Return starts and known variables of a constraint, and what is missing."""
        scope = self.scope(constraint)
        # a missing value is known: a comparison with it is not true, and neither is its opposite
        given = {(layer, name): known[layer, name] for name in scope for layer in ("value", "action", "change") if (layer, name) in known}
        gone: dict[Var, Any] = {("value", name): np.nan for name in scope if np.isnan(np.ravel(x[name])[0])}
        return {name: x[name] for name in scope}, given | gone, gone


def _equals(formula: Formula | None) -> Iterator[tuple[str, float]]:
    if isinstance(formula, All | Some):
        for part in formula.parts:
            yield from _equals(part)
    elif isinstance(formula, Row) and formula.relation == "==" and len(formula.linear.terms) == 1:
        ((layer, name), factor), = formula.linear.terms.items()
        number = -np.asarray(formula.linear.const, dtype=float) / np.asarray(factor, dtype=float)
        if layer == "value" and np.isfinite(number):
            yield name, float(number)


def nothing() -> None:
    """What stands for a cache in a copy."""


def forms_of(part: Part) -> Forms:
    """The part's forms, made once."""
    found: Forms | None = part.__dict__.get("_forms")
    if found is None:
        found = part.__dict__["_forms"] = Forms(part)
    return found


def holding(constraints: Sequence[Constraint], x: Mapping[str, Any], action: Mapping[str, Any], change: Mapping[str, Any], n: int) -> npt.NDArray[np.bool_]:
    """Return at which of n points all constraints hold; each is evaluated only where those before it do."""
    left, good = np.arange(n), np.zeros(n, dtype=bool)
    for constraint in constraints:
        if not len(left):
            break
        some = ({name: _some(columns[name], left, n) for name in constraint.scope} for columns in (x, action, change))
        left = left[np.broadcast_to(constraint.mask(*some), (len(left),))]
    good[left] = True
    return good


def _some(column: Any, left: npt.NDArray[np.intp], n: int) -> Any:
    return column[left] if np.ndim(column) and len(left) < n else column


def ignores_x(constraint: Constraint) -> bool:
    """Return whether the rows of a constraint are the same for everybody."""
    if isinstance(constraint, LinearConstraint | AdditiveLinkage | OneHot):
        return True
    texts = {Rule: ("parsed",), IfThen: ("condition", "consequence"), Switch: ("condition",)}.get(type(constraint))
    if texts is None or (isinstance(constraint, Switch) and constraint.precondition):
        return False
    return all(layer != "before" for text in texts for layer, _ in getattr(constraint, text).vars)
