"""One person: which columns of a structure they can move and how far, which parts couple these, and what is feasible."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from budge.errors import BudgeError, SolverError, TooLargeError
from budge.expressions import OneOf
from budge.features import Feature
from budge.interaction import InteractionModel
from budge.parts import Part
from budge.program.encoding import EncodedPart
from budge.program.solver import Program
from budge.proof.axes import Axis, Levels, Numbers
from budge.proof.structure import Column

__all__ = ["Person"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
MOST_LISTED = 5_000  # changes of a part with constraints that have no rows, to be listed


@dataclass
class Person:
    """A start and what can be reached from it.

    `axes` are the columns that the model reads and that can move: a superset of what can be reached. Parts of several features, or with constraints, are
    `coupled`; the others move freely within their axis.
    """

    im: InteractionModel
    columns: Sequence[Column]
    start: FloatArray
    used: Collection[int]  # columns that the structure reads
    axes: dict[int, Axis] = field(default_factory=dict)
    coupled: list[Part] = field(default_factory=list)
    effects: bool = False  # whether an effect acts on a column that the model reads
    unsolved: bool = False  # whether a constraint is left out of the programs
    strict: bool = False  # whether programs leave out feasible points near to a strict relation
    unbounded: bool = False  # whether a feature without bounds cannot be written as rows, or is cut off

    def __post_init__(self) -> None:
        self.place = {column.name: j for j, column in enumerate(self.columns)}
        self._lists: dict[int, FloatArray | None] = {}
        self._ready: tuple[Program, list[EncodedPart]] | None = None
        for part in self.im.parts:
            acting = {e.feature for e in part.effects if self.place[e.feature] in self.used and not np.isnan(self.start[self.place[e.feature]])}
            self.effects |= bool(acting)
            if len(part.features) > 1 or part.constraints or part.links:
                reads = any(self.place[name] in self.used for name in part.names)
                if (reads and part.active) or not self._stays(part):
                    self.coupled.append(part)
            else:
                low, high = (float(end) for end in part.features[0].moves(self._x(part)[part.names[0]]))
                self._add_axis(part.features[0], low, high, tied=False)
            for effect in part.effects:
                if effect.feature in acting:
                    self._act(part.by_name[effect.feature], effect.clip)
        if not self.coupled:
            return
        try:
            self._ready = self.encoded()
        except SolverError:
            return
        program, encoded = self._ready
        for one in encoded:
            for f in one.part.features:
                if not (isinstance(axis := self.axes.get(self.place[f.name]), Numbers | Levels) and axis.acted):
                    terms, (low, high) = one.form("change", f.name).terms, one.box[f.name]
                    if len(terms) == 1 and one.form("change", f.name).const == 0.0:
                        ((column, _),) = terms.items()
                        least, most = program.limits(column)
                        low, high = max(low, least), min(high, most)
                    self._add_axis(f, low, high, tied=True)

    def _x(self, part: Part) -> dict[str, float]:
        return {name: float(self.start[self.place[name]]) for name in part.names}

    def _stays(self, part: Part) -> bool:
        zero = np.zeros(1)
        return bool(self._decided(lambda: part.feasible(self._x(part), dict.fromkeys(part.names, zero)))[0])

    def _add_axis(self, f: Feature, low: float, high: float, tied: bool) -> None:
        j = self.place[f.name]
        start, low, high = float(self.start[j]), min(low, 0.0), max(high, 0.0)
        if low == high or math.isnan(start) or j not in self.used:
            return
        if self.columns[j].levels is not None:
            allowed = np.arange(round(start + low), round(start + high) + 1)
            self.axes[j] = Levels(j, start, allowed, tied)
            return
        ends = start + low, start + high
        if not tied:  # adding a difference may miss the bound by a rounding
            bounds = f.reach(start)
            ends = max(ends[0], float(bounds[0])), min(ends[1], float(bounds[1]))
        self.axes[j] = Numbers(j, start, *ends, step=f.discrete, tied=tied)

    def _act(self, f: Feature, clip: tuple[float, float] | None) -> None:
        """Free a feature within the clip of its effect."""
        j = self.place[f.name]
        start, levels = float(self.start[j]), self.columns[j].levels
        if levels is not None:
            self.axes[j] = Levels(j, start, np.arange(len(levels)), acted=True)
        else:
            low, high = clip or (-math.inf, math.inf)
            self.axes[j] = Numbers(j, start, min(float(low), start), max(float(high), start), step=False, acted=True)

    def encoded(self, closed: bool = False) -> tuple[Program, list[EncodedPart]]:
        """Return a program with the rows of all coupled parts; `closed` includes equality in strict relations."""
        if self._ready is not None and not closed:
            ready, self._ready = self._ready, None
            return ready
        program, found = Program(), list[EncodedPart]()
        self.unsolved = self.strict = self.unbounded = False
        for i, part in enumerate(self.coupled):
            try:
                one = EncodedPart(part, self._x(part), program=program, closed=closed)
            except SolverError:
                self.unbounded = True
                raise
            if one.unsolved:
                if i not in self._lists:
                    self._lists[i] = _listed(part, self._x(part))
                table = self._lists[i]
                if table is None:
                    self.unsolved = True
                else:
                    one.require(OneOf(tuple(("change", name) for name in part.names), table, all(f.discrete for f in part.features)))
            self.strict |= one.strict
            self.unbounded |= one.cut_off
            found.append(one)
        return program, found

    def feasible(self, points: FloatArray) -> BoolArray:
        """Return which coded rows can be reached, by the definition."""
        good = np.ones(len(points), dtype=bool)
        moved = np.where(np.isnan(self.start), 0.0, points - self.start)
        bound = {id(part) for part in self.coupled}
        for part in self.im.parts:
            change = {name: moved[:, self.place[name]] for name in part.names}
            if id(part) in bound or any(column.any() for column in change.values()):
                x = self._x(part)
                good &= self._decided(lambda part=part, x=x, change=change: part.feasible(x, change), len(points))  # type: ignore[misc]
        return good

    @staticmethod
    def _decided(ask: Callable[[], BoolArray], rows: int = 1) -> BoolArray:
        """Return what the definition says; nothing is feasible where it cannot decide."""
        try:
            return np.broadcast_to(ask(), (rows,))
        except TooLargeError:
            return np.zeros(rows, dtype=bool)


def _listed(part: Part, x: dict[str, float]) -> FloatArray | None:
    """Return all changes of a part, if they can be listed and are few; features' distributions do not narrow them."""
    from budge.reach.prepare import prepare

    free = Part(tuple(f.but(distribution=None) for f in part.features), part.constraints, part.links)
    try:
        piece = prepare(free, x)[0][1]
        size = piece.sizes[0]
        if piece.endless[0] or size is None or size > MOST_LISTED:
            return None
        if size == 0:
            return np.zeros((0, len(part.names)))
        changes = np.asarray(piece.listed(0)[0], dtype=float)
    except (BudgeError, OverflowError, ValueError):
        return None
    return changes[:, [piece.names.index(name) for name in part.names]] if hasattr(piece, "names") else changes
