"""Ordinal: a one-hot code of ranked levels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from budge.constraints._codes import Codes
from budge.constraints.base import Example, FloatArray
from budge.errors import Problem
from budge.features import Feature

__all__ = ["Ordinal"]


@dataclass(frozen=True)
class Ordinal(Codes):
    """Exactly one dummy is on, and the level moves only in the direction (paper: Encoding Ordinal Constraints).

    Parameters
    ----------
    features
        The dummies, lowest level first.
    direction
        ``increase``, ``decrease``, or both if not given.
    baseline
        ``lowest``: the lowest level has no dummy (drop-first encoding), so that all off is a code too.

    Examples
    --------
    >>> Ordinal(("school", "college"), direction="increase").describe()
    'Exactly one of school < college is on, and the level can only increase.'
    """

    kind: ClassVar[str] = "ordinal"

    baseline: Literal["lowest"] | None = None

    def problems(self, features: Mapping[str, Feature]) -> list[Problem]:
        found = super().problems(features)
        if self.baseline not in (None, "lowest"):
            found.append(Problem("baseline", "must be 'lowest' or left out", self.baseline))
        return found

    def codes(self) -> FloatArray:
        one = np.eye(len(self.features))
        return np.vstack([np.zeros((1, len(self.features))), one]) if self.baseline else one

    def rank(self, values: FloatArray) -> FloatArray:
        on = values > 0.5
        ones = on.sum(axis=-1)
        rank = np.where(ones == 1, on.argmax(axis=-1) + 1.0, np.nan)
        return np.where(ones == 0, 0.0, rank) if self.baseline else rank

    def describe(self) -> str:
        group = " < ".join(self.features)
        how = f"At most one of {group} is on (none is the lowest level)" if self.baseline else f"Exactly one of {group} is on"
        return how + (f", and the level can only {self.direction}." if self.direction else ".")

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        dummies = tuple(Feature(name, "binary") for name in ("low", "mid", "high"))
        x = {"low": 0.0, "mid": 1.0, "high": 0.0}
        up, down = {"low": 0.0, "mid": -1.0, "high": 1.0}, {"low": 1.0, "mid": -1.0, "high": 0.0}
        off = {"low": 0.0, "mid": -1.0, "high": 0.0}
        rising = cls(("low", "mid", "high"), direction="increase")
        return (
            Example(rising, dummies, x, up, True),
            Example(rising, dummies, x, down, False),
            Example(rising, dummies, x, {"low": 0.0, "mid": 0.0, "high": 1.0}, False),
            Example(cls(("low", "mid", "high"), direction="decrease", baseline="lowest"), dummies, x, off, True),
            Example(cls(("low", "mid", "high")), dummies, x, off, False),
        )
