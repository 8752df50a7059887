"""People who are prepared together: where they stand, how far each feature may move by itself, and who stands alike enough.

What decides how a person is drawn (which values are missing, which way a feature can move, which whole numbers are wide) is the same for everybody in
`Starts`. So the decisions are taken once, and what is left are arrays over people and configurations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from budge.features import Feature
from budge.parts import Part

__all__ = ["WIDE", "Starts", "alike", "distinct"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
WIDE = 512  # a whole number with more values than this is counted where it can be, not listed


@dataclass(frozen=True)
class Starts:
    """Where some people stand in a part, and the lowest and the highest own action of each feature; one entry a person."""

    part: Part
    x: Mapping[str, FloatArray]
    down: Mapping[str, FloatArray]
    up: Mapping[str, FloatArray]

    @classmethod
    def of(cls, part: Part, x: Mapping[str, npt.ArrayLike]) -> Starts:
        """Return these people; nothing is said yet about who stands alike."""
        columns = {name: np.atleast_1d(np.asarray(x[name], dtype=float)) for name in part.names}
        moves = {f.name: f.moves(columns[f.name]) for f in part.features}
        return cls(part, columns, {n: low for n, (low, _) in moves.items()}, {n: high for n, (_, high) in moves.items()})

    def __len__(self) -> int:
        return len(next(iter(self.x.values())))

    def take(self, people: IntArray | slice) -> Starts:
        """Return some of these people."""
        some = [{name: column[people] for name, column in columns.items()} for columns in (self.x, self.down, self.up)]
        return Starts(self.part, *some)

    @cached_property
    def gone(self) -> frozenset[str]:
        """The features whose value is missing."""
        return frozenset(name for name, column in self.x.items() if np.isnan(column[0]))

    @cached_property
    def still(self) -> frozenset[str]:
        """The real and the linked features that do not move by themselves."""
        return frozenset(name for name in self.x if self.up[name][0] <= self.down[name][0])

    @cached_property
    def wide(self) -> frozenset[str]:
        """The whole numbers with many values."""
        return frozenset(f.name for f in self.part.features if f.type == "integer" and self.up[f.name][0] - self.down[f.name][0] >= WIDE)

    def reach(self, feature: Feature) -> tuple[FloatArray, FloatArray]:
        """Return the lowest and the highest change that keeps a feature within its bounds."""
        low, high = feature.reach(self.x[feature.name])
        return low - self.x[feature.name], high - self.x[feature.name]


def alike(starts: Starts) -> Iterator[tuple[IntArray, Starts]]:
    """Yield people who stand alike, with their places."""
    part, marks = starts.part, []
    linked = set(part.links) | {link.source for link in part.linkages}
    for f in part.features:
        down, up = starts.down[f.name], starts.up[f.name]
        if f.missing == "fixed" or f.type == "fixed":
            marks.append(np.isnan(starts.x[f.name]))
        if f.type == "real" or f.name in linked:  # which way it moves decides how it is written
            marks += [down < 0, up > 0]
        if f.type == "integer":
            marks.append(up - down >= WIDE)
    if not marks:
        yield np.arange(len(starts)), starts
        return
    packed = np.packbits(np.array(marks), axis=0).T
    which, _ = distinct(packed)
    for group in range(int(which.max(initial=-1)) + 1):
        people = np.flatnonzero(which == group)
        yield people, starts if len(people) == len(starts) else starts.take(people)


def distinct(rows: npt.NDArray[np.generic]) -> tuple[IntArray, IntArray]:
    """Return a number for each row, equal rows alike, and the first row of each number, in the order of first appearance."""
    if rows.shape[1] == 0 or len(rows) <= 1 or (rows == rows[0]).all():
        return np.zeros(len(rows), dtype=np.intp), np.zeros(min(1, len(rows)), dtype=np.intp)
    solid = np.ascontiguousarray(rows + 0 if rows.dtype.kind == "f" else rows)  # -0.0 is 0.0
    keys = solid.view(np.dtype((np.void, solid.dtype.itemsize * solid.shape[1]))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return rank[inverse.ravel()], first[order]
