"""How a person's columns are drawn, part by part: listed values with counts, runs of whole numbers, intervals of reals.

Parts are independent, and the laws are those of the draws: within a part every configuration is equally likely, unless distributions give weights.
A part none of whose columns the model reads is left out; the number of its configurations is kept.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.errors import ReachError
from budge.interaction import InteractionModel
from budge.parts import Part
from budge.proof.structure import Column
from budge.reach.listed_reals import onto
from budge.reach.reacher import reacher

__all__ = ["Interval", "Law", "Laws", "Listed", "Run", "laws_of"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
MOST_LISTED = 1_000_000  # configurations of one part


@dataclass(frozen=True)
class Listed:
    """Columns that take one of some rows of values together; `counts` are whole numbers, or probabilities where these differ."""

    columns: tuple[int, ...]
    values: FloatArray  # (rows, columns)
    counts: npt.NDArray[Any]


@dataclass(frozen=True)
class Run:
    """A column that takes each of `count` values, one apart, with equal probability."""

    column: int
    first: float
    count: int

    def listed(self) -> Listed:
        """Return the values one by one."""
        return Listed((self.column,), (self.first + np.arange(self.count, dtype=float))[:, None], np.ones(self.count, dtype=np.int64))


@dataclass(frozen=True)
class Interval:
    """A column with a uniform density between two values, or one in proportion to 1/value (`log`)."""

    column: int
    low: float
    high: float
    log: bool = False

    def shares(self, edges: FloatArray) -> FloatArray:
        """Return the probability of each cell between the ends and ascending edges inside."""
        ends = np.concatenate([[self.low], edges, [self.high]])
        if self.log:
            return np.asarray(np.log1p(np.diff(ends) / ends[:-1]) / math.log1p((self.high - self.low) / self.low))
        return np.asarray(np.diff(ends) / (self.high - self.low))


Law = Listed | Run | Interval


@dataclass(frozen=True)
class Laws:
    """The laws of the columns that move and are read; `others`: how many configurations the rest has, None where they are not all listed."""

    moving: tuple[Law, ...]
    others: int | None


def laws_of(columns: tuple[Column, ...], im: InteractionModel, start: FloatArray, read: Collection[str]) -> Laws | None:
    """Return how the columns named in `read` are drawn from a coded start; None where that cannot be told, or nothing is feasible."""
    place = {column.name: j for j, column in enumerate(columns)}
    if any(f.name not in place for f in im.features) or any(e.feature in read for e in im.effects):
        return None
    scopes = {name for c in im.constraints for name in c.scope}
    if any(f.type == "fixed" and f.name in scopes and columns[place[f.name]].levels is not None for f in im.features):
        return None  # coded in another way than the interaction model codes it
    maker = reacher(im)
    row = np.array([start[place[f.name]] for f in im.features])
    try:
        if maker.stuck(row[None, :])[0]:
            return None
        moving: list[Law] = []
        others: int | None = None if im.effects else 1
        for part in [p for p in im.parts if any(f.actionable for f in p.features)]:
            law = _law(part, im, row, place, read)
            if law is None:
                return None
            if not isinstance(law, _Others):
                moving.append(law)
            else:
                others = None if others is None or law.size is None else others * law.size
    except ReachError:
        return None
    return Laws(tuple(moving), others)


@dataclass(frozen=True)
class _Others:
    """A part that is not read, or cannot move: its number of configurations."""

    size: int | None


def _law(part: Part, im: InteractionModel, row: FloatArray, place: dict[str, int], read: Collection[str]) -> Law | _Others | None:
    maker, f = reacher(im), part.features[0]
    kind = "uniform" if f.distribution is None else f.distribution.kind
    if len(part.features) == 1 and not part.constraints and not part.links and kind in ("uniform", "log"):
        x = row[maker.position[f.name]]
        down, up = (float(end) for end in f.moves(x))
        if f.discrete and kind == "uniform":
            count = int(up - down) + 1
            return Run(place[f.name], float(x + down), count) if f.name in read and count > 1 else _Others(count)
        if f.type == "real":
            if down == up:
                return _Others(1)
            if kind == "log" and x + down <= 0:
                return None
            return Interval(place[f.name], float(x + down), float(x + up), kind == "log") if f.name in read else _Others(None)
    alone = maker.alone(part, row)
    if alone.empty:
        return None
    if not set(part.names) & set(read):
        if alone.piece.weights is not None:
            return _Others(None)
        return _Others(None if alone.endless else alone.size)
    if alone.endless or alone.size is None or alone.size > MOST_LISTED:
        return None
    changes, shares = alone.listed
    at = np.array([maker.position[name] for name in part.names], dtype=np.intp)
    counts = np.ones(len(changes), dtype=np.int64) if shares is None else shares
    values = row[at] + changes
    for k, j in enumerate(at.tolist()):
        if j in maker.lists:
            values[:, k] = onto(maker.lists[j], values[:, k], row[j])
    return Listed(tuple(place[name] for name in part.names), values, counts)
