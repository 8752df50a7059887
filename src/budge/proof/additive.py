"""An additive structure for one person: what each column that can move adds in each of its cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from budge.proof.axes import Axis, Levels, Numbers
from budge.proof.structure import Additive

__all__ = ["Addends", "addends"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Addends:
    """What columns that can move add to the scores: `entries` per cell of an axis, or `slopes` per unit of a column of numbers."""

    const: FloatArray  # (scores,): the constant and what other columns add
    size: FloatArray  # (scores,): sum of the largest contributions, for rounding
    numbers: tuple[Numbers, ...]
    levels: tuple[Levels, ...]
    entries: tuple[FloatArray, ...]  # of numbers, then of levels: (cells, scores)
    sloped: tuple[Numbers, ...]
    slopes: tuple[FloatArray, ...]  # (scores,)

    def top(self, weights: FloatArray) -> float:
        """Return a bound on the weighted score: every column at its best."""
        total = float(self.const @ weights)
        total += sum(float((entry @ weights).max()) for entry in self.entries)
        for axis, slope in zip(self.sloped, self.slopes):
            rise = float(slope @ weights)
            total += rise * axis.wide[rise > 0] if rise else 0.0
        return total

    def best(self, weights: FloatArray, start: FloatArray) -> FloatArray | None:
        """Return the coded row with every column at its best, the nearest one to the start; None where only rounding leads there."""
        point = start.copy()
        axes: tuple[Axis, ...] = (*self.numbers, *self.levels)
        for axis, entry in zip(axes, self.entries):
            gain = entry @ weights
            good = np.flatnonzero(gain == gain.max())
            cell = int(good[np.argmin(np.abs(good - axis.home))])
            value = axis.nearest(cell, cell, axis.start) if isinstance(axis, Numbers) else float(axis.allowed[cell])
            if value is None:
                return None
            point[axis.column] = value
        for sloped, slope in zip(self.sloped, self.slopes):
            rise = float(slope @ weights)
            point[sloped.column] = sloped.start if rise == 0 else sloped.high if rise > 0 else sloped.low
        return point


def addends(structure: Additive, start: FloatArray, axes: Mapping[int, Axis]) -> Addends:
    """Return what can be added from a start; columns without an axis stay there."""
    const = np.asarray(structure.const, dtype=float).copy()
    size = np.abs(const)
    numbers, levels, sloped = list[Numbers](), list[Levels](), list[Numbers]()
    cells, tables, slopes = list[FloatArray](), list[FloatArray](), list[FloatArray]()
    for j, column in enumerate(structure.columns):
        axis, name = axes.get(j), column.name
        if axis is None or np.isnan(start[j]):
            added = structure.added(name, start[j : j + 1])[0]
            const, size = const + added, size + np.abs(added)
        elif isinstance(axis, Levels):
            table = structure.tables[name][axis.allowed]
            levels.append(axis)
            tables.append(table)
            size = size + np.abs(table).max(axis=0)
        elif name in structure.steps:
            cuts, entries = structure.steps[name]
            last = axis.last(np.asarray(cuts, dtype=float))
            kept = axis.cut_at(axis.inside(last))
            entry = entries[np.searchsorted(last, np.append(kept.cuts, axis.wide[1]), side="left")]
            numbers.append(kept)
            cells.append(entry)
            size = size + np.abs(entry).max(axis=0)
        else:
            slope = np.asarray(structure.slopes[name], dtype=float)
            sloped.append(axis)
            slopes.append(slope)
            size = size + np.abs(slope) * max(abs(axis.wide[0]), abs(axis.wide[1]))
    return Addends(const, size, tuple(numbers), tuple(levels), (*cells, *tables), tuple(sloped), tuple(slopes))
