"""Climb over the cells of freely moving columns, one column at a time: finds a cell that meets the conditions where many do, proves nothing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from budge.proof.leaves import KeptLeaves

__all__ = ["Climber"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
MOST_SWEEPS = 8


class Climber:
    """Moves from cell to cell, always to the best cell of one column, until no column improves the least room above any floor."""

    def __init__(self, leaves: KeptLeaves, weights: FloatArray, floors: FloatArray) -> None:
        self.leaves = leaves
        self.value = leaves.value @ weights.T  # (leaves, conditions)
        self.scale = np.maximum(np.abs(self.value).max(axis=0), 1e-300) if len(self.value) else np.ones(len(floors))
        self.room = (leaves.const @ weights.T - floors) / self.scale
        self.value = self.value / self.scale

    def climb(self, cells: IntArray, places: IntArray) -> tuple[IntArray, IntArray, float]:
        """Return where climbing from these cells and levels ends, and the room above the floors there."""
        leaves, cells, places = self.leaves, cells.copy(), places.copy()
        numbers, listed = len(leaves.numbers), len(leaves.levels)
        if not len(leaves.tree) or not numbers + listed:
            return cells, places, float(self.room.min())
        inside = np.concatenate([(leaves.lo <= cells) & (cells <= leaves.hi), leaves.mask[:, np.add(leaves.offsets[:-1], places).astype(np.intp)]], axis=1)
        outside = (~inside).sum(axis=1)
        best = float((self.room + self.value[outside == 0].sum(axis=0)).min())
        still = 0
        for turn in range(MOST_SWEEPS * (numbers + listed)):
            d = turn % (numbers + listed)
            rows = np.flatnonzero(outside - ~inside[:, d] == 0)  # leaves that only this column decides on
            rooms = self._rooms(rows, d)
            at = int(rooms.argmax())
            if rooms[at] > best + 1e-12:
                best, still = float(rooms[at]), 0
                outside = outside - ~inside[:, d]
                if d < numbers:
                    cells[d] = at
                    inside[:, d] = (leaves.lo[:, d] <= at) & (at <= leaves.hi[:, d])
                else:
                    places[d - numbers] = at
                    inside[:, d] = leaves.mask[:, leaves.offsets[d - numbers] + at]
                outside = outside + ~inside[:, d]
            else:
                still += 1
                if still == numbers + listed:
                    break
        return cells, places, best

    def _rooms(self, rows: IntArray, d: int) -> FloatArray:
        """Return the least room of each cell of one column."""
        leaves, value = self.leaves, self.value[rows]
        if d < len(leaves.numbers):
            size = leaves.numbers[d].size
            change = np.zeros((size + 1, value.shape[1]))
            for c in range(value.shape[1]):
                change[:, c] = np.bincount(leaves.lo[rows, d], value[:, c], size + 1) - np.bincount(leaves.hi[rows, d] + 1, value[:, c], size + 1)
            sums = change.cumsum(axis=0)[:-1]
        else:
            begin, end = leaves.offsets[d - len(leaves.numbers)], leaves.offsets[d - len(leaves.numbers) + 1]
            sums = leaves.mask[rows, begin:end].T.astype(float) @ value
        return np.asarray((self.room + sums).min(axis=1))
