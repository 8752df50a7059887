"""Thermometer: ones, then zeros."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from budge.constraints._codes import Codes
from budge.constraints.base import Example, FloatArray
from budge.features import Feature

__all__ = ["Thermometer"]


@dataclass(frozen=True)
class Thermometer(Codes):
    """Ones then zeros from the lowest dummy up, moving only in the direction (paper: Thermometer-Encoding).

    There are m + 1 codes for m dummies; they are built, never searched for.

    Examples
    --------
    >>> Thermometer(("ge_1", "ge_5"), direction="increase").codes().tolist()
    [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]
    """

    kind: ClassVar[str] = "thermometer"

    def codes(self) -> FloatArray:
        m = len(self.features)
        return np.tril(np.ones((m + 1, m)), k=-1)

    def rank(self, values: FloatArray) -> FloatArray:
        on = values > 0.5
        falling = (on[..., 1:] <= on[..., :-1]).all(axis=-1)  # no one after a zero
        return np.where(falling, on.sum(axis=-1).astype(float), np.nan)

    def describe(self) -> str:
        ends = f", and can only {self.direction}." if self.direction else "."
        return f"{', '.join(self.features)} stay a thermometer (a dummy is on only if all before it are)" + ends

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        dummies = tuple(Feature(name, "binary") for name in ("ge_1", "ge_5", "ge_10"))
        x = {"ge_1": 1.0, "ge_5": 0.0, "ge_10": 0.0}
        rising = cls(("ge_1", "ge_5", "ge_10"), direction="increase")
        return (
            Example(rising, dummies, x, {"ge_1": 0.0, "ge_5": 1.0, "ge_10": 1.0}, True),
            Example(rising, dummies, x, {"ge_1": 0.0, "ge_5": 0.0, "ge_10": 1.0}, False),
            Example(rising, dummies, x, {"ge_1": -1.0, "ge_5": 0.0, "ge_10": 0.0}, False),
            Example(cls(("ge_1", "ge_5", "ge_10")), dummies, x, {"ge_1": -1.0, "ge_5": 0.0, "ge_10": 0.0}, True),
        )
