"""A part that is counted by a diagram: drawn by number, however many configurations it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.parts import Part
from budge.reach.core import no_weight
from budge.reach.diagram import LARGEST, Diagram
from budge.reach.streams import Stream, below, region_of
from budge.reach.written import Axis, Written, is_weighed, value_of

__all__ = ["CountedPart", "count_part"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
CHUNK = 2**22  # random words held at once


def count_part(part: Part, x: Mapping[str, Any]) -> CountedPart:
    """Count the part at one start; raises NotCountableError or TooManyStatesError."""
    here = {name: float(np.ravel(x[name])[0]) for name in part.names}
    written = Written(part, here)
    made = CountedPart(part.names, written, written.diagram())
    if made.empty and any(is_weighed(f, here[f.name]) for f in part.features):  # feasible without weight is another error than empty
        plain = Written(part, here, weighed=False)
        return CountedPart(part.names, plain, plain.diagram(), weightless=True)
    return made


@dataclass(frozen=True)
class CountedPart:
    """The configurations of a part by number: as many as there are, each equally likely or in proportion to its weight."""

    names: tuple[str, ...]
    written: Written = field(repr=False)
    diagram: Diagram = field(repr=False)
    weightless: bool = False  # feasible, but nothing of it has weight

    method = "count"
    exact = True
    continuous = False
    acceptance = 1.0

    @property
    def size(self) -> int:
        """Number of configurations."""
        return self.diagram.points.total

    @property
    def empty(self) -> bool:
        """Whether nothing is feasible."""
        return self.size == 0

    @cached_property
    def only_stays(self) -> bool:
        """Whether the only feasible change is none."""
        return self.size == 1 and not self.expand().any()

    @property
    def weights(self) -> tuple[Axis, ...] | None:
        """The axes whose points have weights, if any."""
        return tuple(axis for axis in self.written.axes.values() if axis.weight is not None) or None

    @property
    def nbytes(self) -> int:
        """Memory that it holds, roughly."""
        return 100 * self.diagram.edges + 10_000

    def draw(self, stream: Stream, first: int, n: int) -> FloatArray:
        """Return draws `first` to `first + n - 1` of the person whose stream it is: changes, one row each."""
        if self.weightless:
            raise no_weight(self.names)
        counts, region = self.diagram.mass, region_of("count", *sorted(self.names))
        width = 1 if counts.total < LARGEST else counts.width
        size = max(1, CHUNK // max(1, width))
        found = [np.zeros((0, len(self.names)))]
        for start in range(first, first + n, size):
            words = stream.words(start, min(size, first + n - start), width, region)[0]

            def more(draws: npt.NDArray[np.intp], attempt: int, start: int = start) -> npt.NDArray[np.uint64]:
                return stream.at(np.zeros(len(draws), dtype=np.intp), start + draws, width, region, attempt)

            if counts.total < LARGEST:
                numbers = below(words[:, 0], counts.total, lambda bad, attempt, more=more: more(bad[0], attempt)[:, 0])  # type: ignore[misc]
                found.append(self._changes(counts.unrank(numbers)))
            else:
                found.append(self._changes(counts.walk(words, lambda i, j, k, more=more: int(more(np.array([i]), k)[0, j]))))  # type: ignore[misc]
        return np.concatenate(found)

    def expand(self) -> FloatArray:
        """Return every change, once."""
        return self._changes(self.diagram.points.unrank(np.arange(self.size)))

    def shares(self) -> FloatArray | None:
        """Return the probability of each change of `expand`, where they differ."""
        if self.weights is None:
            return None
        values = self.diagram.points.unrank(np.arange(self.size))
        mass = np.ones(self.size)
        for axis, row in zip(self.written.axes.values(), values):
            if axis.weight is not None:
                most = max(axis.weight)
                mass *= np.array([float(Fraction(w, most)) for w in axis.weight])[row]
        return np.asarray(mass / mass.sum())

    def _changes(self, values: IntArray) -> FloatArray:
        columns: dict[str, FloatArray] = {}
        for axis, row in zip(self.written.axes.values(), values):
            columns |= axis.at(row)
        result = np.zeros((values.shape[1], len(self.names)))
        for j, name in enumerate(self.names if len(result) else ()):
            result[:, j] = value_of(self.written.change[name], columns)
        return result

