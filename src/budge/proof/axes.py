"""The columns that a person can move, cut into cells: intervals between cuts, or levels.

Inside one cell of every column the trees and tables of a model do not change their answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from budge.expressions import TOLERANCE

__all__ = ["Axis", "Levels", "Numbers"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Numbers:
    """A column of numbers that reaches from `low` to `high`.

    With `step` only whole distances from the start are reached. `tied`: the value belongs to a coupled part; `acted`: an effect decides it. `cuts` part the
    cells: cell n holds the values above cut n - 1, up to and including cut n.
    """

    column: int
    start: float
    low: float
    high: float
    step: bool
    tied: bool = False
    acted: bool = False
    cuts: FloatArray = field(default_factory=lambda: np.zeros(0))

    @cached_property
    def wide(self) -> tuple[float, float]:
        """Return the ends with the tolerance of the definition: what is feasible lies between them."""
        if self.step or self.acted:
            return self.low, self.high
        return self.low - TOLERANCE * max(1.0, abs(self.low)), self.high + TOLERANCE * max(1.0, abs(self.high))

    def last(self, cuts: FloatArray) -> FloatArray:
        """Return the last value that can be reached up to each cut; the cut itself for real numbers."""
        if not self.step:
            return cuts
        with np.errstate(invalid="ignore"):
            found = self.start + np.floor(cuts - self.start)
            found = np.where(found > cuts, found - 1.0, found)
            return np.asarray(np.where(found + 1.0 <= cuts, found + 1.0, found))

    def inside(self, cuts: FloatArray) -> FloatArray:
        """Return which ends of cells (as `last` gives them) part what can be reached, each once."""
        return np.unique(cuts[(cuts >= self.wide[0]) & (cuts < self.wide[1])])

    def cut_at(self, cuts: FloatArray) -> Numbers:
        """Return the same column with these cuts."""
        return replace(self, cuts=cuts)

    @property
    def size(self) -> int:
        """The number of cells."""
        return len(self.cuts) + 1

    @cached_property
    def firsts(self) -> FloatArray:
        """The lowest value of each cell; above `lasts` where only rounding leads into the cell."""
        above = self.cuts + 1.0 if self.step else np.nextafter(self.cuts, math.inf)
        return np.concatenate([[self.low], np.maximum(above, self.low)])

    @cached_property
    def lasts(self) -> FloatArray:
        """The highest value of each cell."""
        return np.concatenate([np.minimum(self.cuts, self.high), [self.high]])

    @cached_property
    def home(self) -> int:
        """The cell of the start."""
        return int(np.searchsorted(self.cuts, self.start, side="left"))

    def nearest(self, first: int, last: int, value: float) -> float | None:
        """Return the value within some cells that is nearest to a given one; None where nothing but rounding leads there."""
        low, high = float(self.firsts[first]), float(self.lasts[last])
        return min(max(value, low), high) if low <= high else None


@dataclass(frozen=True)
class Levels:
    """A listed column and the positions that can be reached."""

    column: int
    start: float
    allowed: IntArray
    tied: bool = False
    acted: bool = False

    @property
    def size(self) -> int:
        """The number of levels."""
        return len(self.allowed)

    @cached_property
    def home(self) -> int:
        """The place of the start among the levels that can be reached."""
        return int(np.searchsorted(self.allowed, int(self.start)))


Axis = Numbers | Levels
