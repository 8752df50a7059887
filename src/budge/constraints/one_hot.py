"""One-hot: so many of these dummies are on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import ClassVar

import numpy as np

from budge.constraints.base import (
    BoolArray,
    Configurations,
    Constraint,
    Example,
    FloatArray,
    Relation,
    Values,
    frozen,
    not_binary,
    reached,
    total,
    undeclared,
)
from budge.errors import Problem
from budge.expressions import Formula, Var
from budge.features import Feature

__all__ = ["OneHot"]

LONGEST_LIST = 200_000  # beyond this the codes are built step by step instead of listed


@dataclass(frozen=True)
class OneHot(Constraint):
    """The number of ones among the features compares to `count` (paper: Encoding One-Hot Constraints).

    Parameters
    ----------
    features
        The dummies. A direction on one of them restricts that dummy: ``increase`` can switch it on, but not off.
    count, relation
        How many are on at the value reached: ``==`` (default), ``<=`` or ``>=``.

    Examples
    --------
    >>> import numpy as np
    >>> x = {"red": np.array(1.0), "blue": np.array(0.0)}
    >>> a = {"red": np.array([0.0, -1.0, -1.0]), "blue": np.array([0.0, 0.0, 1.0])}
    >>> OneHot(("red", "blue")).mask(x, a, a)
    array([ True, False,  True])
    """

    kind: ClassVar[str] = "one_hot"

    features: tuple[str, ...]
    count: int = 1
    relation: Relation = "=="

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", frozen(self.features))

    @property
    def scope(self) -> tuple[str, ...]:
        return self.features

    def problems(self, features: Mapping[str, Feature]) -> list[Problem]:
        found = undeclared(self.features, features, "features") + not_binary(
            self.features, features, "features", "a one-hot group"
        )
        if len(self.features) < 2:
            found.append(Problem("features", "a one-hot group needs at least two dummies", list(self.features)))
        elif isinstance(self.count, bool) or not isinstance(self.count, int) or not 1 <= self.count <= len(self.features):
            found.append(Problem("count", f"must lie between 1 and the number of dummies, {len(self.features)}", self.count))
        if self.relation not in ("==", "<=", ">="):
            found.append(Problem("relation", "must be one of == <= >=", self.relation))
        return found

    def mask(self, x: Values, action: Values, change: Values) -> BoolArray:
        after = [reached(x, change, name) for name in self.features]
        ones = sum(np.where(np.isnan(value), np.nan, value > 0.5) for value in after)  # a missing dummy satisfies nothing
        if self.relation == "==":
            return np.asarray(ones == self.count)
        return np.asarray(ones <= self.count if self.relation == "<=" else ones >= self.count)

    def configurations(self, x: Mapping[str, float]) -> Configurations | None:
        m = len(self.features)
        sizes = {"==": [self.count], "<=": range(self.count + 1), ">=": range(self.count, m + 1)}[self.relation]
        if sum(comb(m, k) for k in sizes) > LONGEST_LIST:
            return None
        chosen = [on for k in sizes for on in combinations(range(m), k)]
        values = np.zeros((len(chosen), m))
        for row, on in enumerate(chosen):
            values[row, list(on)] = 1.0
        return Configurations(self.features, values)

    def rows(self, x: Mapping[str, float], known: Mapping[Var, FloatArray | float] | None = None) -> Formula | None:
        return total({("value", name): 1.0 for name in self.features}, self.relation, self.count, whole=True)

    def describe(self) -> str:
        how = {"==": "exactly", "<=": "at most", ">=": "at least"}[self.relation]
        return f"{how.capitalize()} {self.count} of {', '.join(self.features)} {'is' if self.count == 1 else 'are'} on."

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        dummies = tuple(Feature(name, "binary") for name in ("rent", "own", "free"))
        x = {"rent": 1.0, "own": 0.0, "free": 0.0}
        stay = dict.fromkeys(x, 0.0)
        one, most = cls(("rent", "own", "free")), cls(("rent", "own", "free"), count=1, relation="<=")
        return (
            Example(one, dummies, x, {"rent": -1.0, "own": 1.0, "free": 0.0}, True),
            Example(one, dummies, x, stay, True),
            Example(one, dummies, x, {"rent": -1.0, "own": 0.0, "free": 0.0}, False),
            Example(most, dummies, x, {"rent": -1.0, "own": 0.0, "free": 0.0}, True),
            Example(cls(("rent", "own", "free"), count=2, relation=">="), dummies, x, stay, False),
        )
