"""One person together with what a structure is within their reach: what bounds, boxes and programs work on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import numpy.typing as npt

from budge.proof.additive import Addends
from budge.proof.axes import Levels
from budge.proof.boxes import Box
from budge.proof.goals import Condition
from budge.proof.leaves import KeptLeaves
from budge.proof.person import Person

__all__ = ["Case", "nearest_point"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Case:
    """A person, what the structure is within their reach, and until when they may take."""

    person: Person
    terms: KeptLeaves | Addends
    precision: float
    until: float

    @property
    def left(self) -> float | None:
        """Seconds that are left; None without a limit."""
        return None if math.isinf(self.until) else max(self.until - perf_counter(), 0.01)

    def floors(self, conditions: Sequence[Condition]) -> FloatArray:
        """Return the bounds less what they and the scores may be off by."""
        count = self.terms.count if isinstance(self.terms, KeptLeaves) else len(self.terms.entries) + len(self.terms.sloped)
        off = max(self.precision, (count + 8) * 2.0**-52)
        return np.array([c.bound - c.slack - off * float(np.abs(c.weights) @ self.terms.size) for c in conditions])


def nearest_point(person: Person, terms: KeptLeaves, box: Box) -> FloatArray | None:
    """Return the point of some cells that is nearest to the start; None where nothing but rounding leads there."""
    point = person.start.copy()
    for axis, first, last in zip(terms.numbers, box.lo, box.hi):
        value = axis.nearest(int(first), int(last), axis.start)
        if value is None:
            return None
        point[axis.column] = value
    for listed, begin, end in zip(terms.levels, terms.offsets, terms.offsets[1:]):
        point[listed.column] = float(_level(listed, box.mask[begin:end]))
    return point


def _level(axis: Levels, mask: BoolArray) -> int:
    return int(axis.allowed[axis.home if mask[axis.home] else int(mask.argmax())])
