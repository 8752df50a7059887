"""Additive linkage: what leaves one feature arrives in others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from budge.constraints.base import BoolArray, Constraint, Example, FloatArray, Relation, Values, made_whole, total, undeclared
from budge.errors import Problem
from budge.expressions import Formula, Var
from budge.expressions.tolerance import compare
from budge.features import Feature

__all__ = ["AdditiveLinkage"]


@dataclass(frozen=True)
class AdditiveLinkage(Constraint):
    """``coefficient · action of the source − Σ coefficient · change of a target`` compares to 0 (paper: Additive Linkage).

    Examples
    --------
    >>> AdditiveLinkage("transfer", targets={"savings": 1, "checking": 1}).describe()
    '1·transfer − 1·savings − 1·checking == 0 (own action of transfer, changes of the others).'
    """

    kind: ClassVar[str] = "additive_linkage"

    source: str
    coefficient: float = 1.0
    targets: Mapping[str, float] = field(default_factory=dict, metadata={"required": True})
    relation: Relation = "=="

    @property
    def scope(self) -> tuple[str, ...]:
        return (self.source, *self.targets)

    @property
    def reads(self) -> frozenset[Var]:
        return frozenset([("action", self.source), *(("value", name) for name in self.targets)])

    def problems(self, features: Mapping[str, Feature]) -> list[Problem]:
        found = undeclared((self.source,), features, "source") + undeclared(tuple(self.targets), features, "targets")
        if not self.targets:
            found.append(Problem("targets", "a linkage needs a target", {}))
        if self.source in self.targets:
            found.append(Problem("targets", "a feature cannot be linked to itself", self.source))
        if self.relation not in ("==", "<=", ">="):
            found.append(Problem("relation", "must be one of == <= >=", self.relation))
        for where, value in [("coefficient", self.coefficient), *((f"targets.{n}", v) for n, v in self.targets.items())]:
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value == 0:
                found.append(Problem(where, "a coefficient is a finite number other than 0", value))
        for name in self.scope:
            if name in features and not features[name].numeric:
                found.append(Problem("targets", f"a linkage needs a number, {name} is {features[name].type}", name))
        return found

    @cached_property
    def _terms(self) -> tuple[Mapping[str, float], bool]:
        """The coefficients of source and targets, made whole where the features are, and whether they are whole."""
        given = {self.source: float(self.coefficient), **{name: float(c) for name, c in self.targets.items()}}
        found = made_whole(given) if self.counts(given) else None
        return (given, False) if found is None else (found[0], True)

    def mask(self, x: Values, action: Values, change: Values) -> BoolArray:
        coefficients, whole = self._terms
        given = coefficients[self.source] * np.asarray(action[self.source], dtype=float)
        taken = sum(coefficients[name] * np.asarray(change[name], dtype=float) for name in self.targets)
        return compare(self.relation, given, taken, whole=whole)

    def rows(self, x: Mapping[str, float], known: Mapping[Var, FloatArray | float] | None = None) -> Formula | None:
        coefficients, whole = self._terms
        terms: dict[Var, float] = {("action", self.source): coefficients[self.source]}
        terms |= {("change", name): -coefficients[name] for name in self.targets}
        return total(terms, self.relation, whole=whole)

    def describe(self) -> str:
        parts = " ".join(f"− {c:g}·{name}" if c > 0 else f"+ {-c:g}·{name}" for name, c in self.targets.items())
        return (
            f"{self.coefficient:g}·{self.source} {parts} {self.relation} 0 (own action of {self.source}, changes of the others)."
        )

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        features = tuple(Feature(name, "integer", bounds=(0, 9)) for name in ("moved", "savings", "checking"))
        x = dict.fromkeys(("moved", "savings", "checking"), 3.0)
        exact = cls("moved", 1, {"savings": 1, "checking": 1})
        most = cls("moved", 2, {"savings": 1}, relation="<=")
        return (
            Example(exact, features, x, {"moved": 3.0, "savings": 2.0, "checking": 1.0}, True),
            Example(exact, features, x, {"moved": 3.0, "savings": 2.0, "checking": 2.0}, False),
            Example(most, features, x, {"moved": 1.0, "savings": 3.0, "checking": 0.0}, True),
            Example(most, features, x, {"moved": 2.0, "savings": 3.0, "checking": 0.0}, False),
        )
