"""Groups of dummies that encode one ranked attribute: ordinal and thermometer are lists of codes with a direction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from budge.constraints.base import (
    BoolArray,
    Configurations,
    Constraint,
    FloatArray,
    Values,
    frozen,
    not_binary,
    own_direction,
    reached,
    undeclared,
)
from budge.errors import Problem, nearest
from budge.expressions import Formula, OneOf, Truth, Var
from budge.features import DIRECTIONS, Feature

__all__ = ["Codes"]


@dataclass(frozen=True)
class Codes(Constraint):
    """The dummies hold one of a list of codes, and the code moves only in the direction."""

    features: tuple[str, ...]
    direction: Literal["increase", "decrease"] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", frozen(self.features))

    @property
    def scope(self) -> tuple[str, ...]:
        return self.features

    def codes(self) -> FloatArray:
        """All codes, low to high, one row each."""
        raise NotImplementedError  # pragma: no cover

    def rank(self, values: FloatArray) -> FloatArray:
        """The rank of each code along the last axis; NaN where it is no code."""
        raise NotImplementedError  # pragma: no cover

    def problems(self, features: Mapping[str, Feature]) -> list[Problem]:
        noun = f"{'an' if self.kind[0] in 'aeiou' else 'a'} {self.kind} group"
        found = undeclared(self.features, features, "features") + not_binary(self.features, features, "features", noun)
        found += own_direction(self.features, features, "features")
        if len(self.features) < 2:
            found.append(Problem("features", f"{noun} needs at least two dummies", list(self.features)))
        if self.direction is not None and self.direction not in DIRECTIONS:
            found.append(Problem("direction", "unknown direction", self.direction, nearest(self.direction, DIRECTIONS)))
        return found

    def mask(self, x: Values, action: Values, change: Values) -> BoolArray:
        after = np.stack(np.broadcast_arrays(*(reached(x, change, name) for name in self.features)), axis=-1)
        now = np.stack(np.broadcast_arrays(*(np.asarray(x[name], dtype=float) for name in self.features)), axis=-1)
        to, start = self.rank(after), self.rank(now)
        good = ~np.isnan(to) & ~np.isnan(after).any(axis=-1)  # a missing dummy makes no code
        with np.errstate(invalid="ignore"):  # a start that is no code has no rank to keep to
            if self.direction == "increase":
                good &= np.isnan(start) | (to >= start)
            elif self.direction == "decrease":
                good &= np.isnan(start) | (to <= start)
        return np.asarray(good)

    def configurations(self, x: Mapping[str, float]) -> Configurations | None:
        codes = self.codes()
        start = float(self.rank(np.array([[float(x[name]) for name in self.features]]))[0])
        ranks = self.rank(codes)
        if not np.isnan(start) and self.direction is not None:
            codes = codes[ranks >= start] if self.direction == "increase" else codes[ranks <= start]
        return Configurations(self.features, codes)

    def rows(self, x: Mapping[str, float], known: Mapping[Var, FloatArray | float] | None = None) -> Formula | None:
        listed = self.configurations(x)
        assert listed is not None
        return OneOf(tuple(("value", name) for name in self.features), listed.values, True) if len(listed.values) else Truth(False)
