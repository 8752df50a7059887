"""What configurations leave open to real coordinates: boxes and polytopes in disjoint cells, their dimension, their volume, points of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from budge.errors import DrawError
from budge.expressions import compare
from budge.reach.accept import Words, shifted
from budge.reach.cells import Box, Half
from budge.reach.hull import Hulls
from budge.reach.ordered import Ordered
from budge.reach.polytope import Polytopes
from budge.reach.room import Rooms
from budge.reach.starts import distinct
from budge.reach.streams import unit
from budge.reach.viable import Viable, viable

if TYPE_CHECKING:
    from budge.reach.piece import Draws, Piece

__all__ = ["CELL", "COUPLED", "Fibres", "Joint", "between", "not_positive"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
TINY = 1e-12
CELL, COUPLED = 1 << 20, 5 << 20  # attempts that are none: more words of a proposal


class Fibres:
    """What the rows of a piece leave open, cell by cell."""

    def __init__(self, piece: Piece, mine: Sequence[int]) -> None:
        self.piece = piece
        self.mine = list(mine)  # places of the coordinates that are drawn here
        self.names = [c.name for c in piece.coordinates]
        ours = {self.names[j] for j in self.mine}
        self.boxes = [
            Box(box.low, box.high, box.exists, *(tuple(r for r in rows if set(r.coefficients) <= ours) for rows in (box.coupled, box.strict)))
            for box in piece.boxes
        ]
        self.joints = [_joints(box, self.names, piece.who, ", ".join(piece.names)) for box in self.boxes]
        self.joined = [np.zeros(box.low.shape, dtype=bool) for box in self.boxes]  # which coordinates of each row rows couple
        for joined, joints in zip(self.joined, self.joints):
            for joint in joints:
                joined[np.ix_(joint.rows, joint.places)] = True
        self.there = [self._there(*cell) for cell in zip(self.boxes, self.joints, self.joined)]  # which rows have a point in each cell
        self._check_logs()

    def _there(self, box: Box, joints: Sequence[Joint], joined: BoolArray) -> BoolArray:
        """Return which rows have a point in a cell."""
        exists = box.exists.copy()
        for joint in joints:
            exists[joint.rows] &= ~joint.shape.empty
        for row in box.strict:
            exists &= ~self._blocked(row, box, joints, joined, exists)
        return exists

    def _blocked(self, row: Half, box: Box, joints: Sequence[Joint], joined: BoolArray, exists: BoolArray) -> BoolArray:
        """Return where a row that leaves out a boundary leaves out all that there is: nothing in it can vary."""
        value, asked = row.constant.copy(), row.active & exists
        slopes, used = np.zeros(box.low.shape), np.zeros(box.low.shape, dtype=bool)
        for name, c in row.coefficients.items():
            j = self.names.index(name)
            slopes[:, j], used[:, j] = c, row.uses(name)
            value = np.where(joined[:, j], value, value + row.term(name, (box.low[:, j] + box.high[:, j]) / 2))
            asked &= joined[:, j] | ~used[:, j] | ~self._wide(box, j)
        for joint in joints:
            mine = slopes[np.ix_(joint.rows, joint.places)]
            for at in np.flatnonzero(asked[joint.rows] & used[np.ix_(joint.rows, joint.places)].any(axis=1)).tolist():
                found = self._bent_value(row, joint, at) if row.bends else joint.shape.value(at, mine[at])
                asked[joint.rows[at]] = found is not None
                value[joint.rows[at]] += found or 0.0
        return np.asarray(asked & ~compare(row.relation, value, 0.0))

    def _bent_value(self, row: Half, joint: Joint, at: int) -> float | None:
        """Return what coordinates add to a row that is not linear, where none of them varies; else None."""
        point = {self.names[j]: value for j, value in zip(joint.places, joint.point(at).tolist()) if self.names[j] in row.coefficients}
        found = sum(float(row.term(name, value)[joint.rows[at]]) for name, value in point.items())
        return None if np.isnan(found) else found

    @staticmethod
    def _wide(box: Box, j: int | list[int]) -> BoolArray:
        return np.asarray(box.high[:, j] - box.low[:, j] > TINY * np.maximum(1.0, np.abs(box.low[:, j])))

    def _check_logs(self) -> None:
        for j in self.mine:
            origin = self.piece.coordinates[j].log_from
            for box, there in zip(self.boxes, self.there):
                if origin is not None and (there & (box.high[:, j] > box.low[:, j]) & (origin + box.low[:, j] <= 0)).any():
                    raise not_positive(self.names[j], float((origin + box.low[:, j])[there].min()))

    @cached_property
    def viable(self) -> Viable:
        """Which rows have a point that passes the checks."""
        return viable(self)

    @property
    def coupled(self) -> bool:
        """Whether rows couple coordinates somewhere."""
        return any(box.coupled for box in self.boxes)

    @property
    def exists(self) -> BoolArray:
        """Which rows have a point."""
        return self.viable.exists

    # -- dimension and volume -----------------------------------------------------------------------------------------

    @cached_property
    def dimensions(self) -> npt.NDArray[np.int64]:
        """Dimension of each cell and row; -1 where there is none."""
        found = np.full((len(self.boxes), len(self.piece.who)), -1)
        for i, (box, there) in enumerate(zip(self.boxes, self.there)):
            dimension = (self._wide(box, self.mine) & ~self.joined[i][:, self.mine]).sum(axis=1)
            for joint in self.joints[i]:
                dimension[joint.rows] += joint.shape.dimensions
            found[i] = np.where(there, dimension, -1)
        return found

    @cached_property
    def _log_volumes(self) -> FloatArray:
        """Logarithm of the volume of each cell and row; -inf where there is none."""
        found = np.full((len(self.boxes), len(self.piece.who)), -np.inf)
        for i, (box, there) in enumerate(zip(self.boxes, self.there)):
            logs = np.zeros(len(there))
            free = self._wide(box, self.mine) & ~self.joined[i][:, self.mine]
            with np.errstate(divide="ignore", invalid="ignore"):
                wide = box.high[:, self.mine] - box.low[:, self.mine]
                for k, j in enumerate(self.mine):
                    origin = self.piece.coordinates[j].log_from
                    if origin is not None:  # a density of 1/value has the logarithm as its volume
                        wide[:, k] = np.log((origin + box.high[:, j]) / (origin + box.low[:, j]))
                logs += np.where(free, np.log(wide), 0.0).sum(axis=1)
            for joint in self.joints[i]:
                logs[joint.rows] += joint.shape.log_volumes
            found[i] = np.where(there, logs, -np.inf)
        if np.isnan(found).any():
            raise DrawError(
                f"the volume of what rows leave open to {len(self.mine)} continuous features is not known",
                where=f"part {', '.join(self.piece.names)}",
                remedy="couple fewer continuous features",
            )
        return found

    def forget(self) -> None:
        """Drop what was computed from boxes that have been narrowed since: cells are weighed by what is left of them."""
        for name in ("dimensions", "_log_volumes", "_cell_ends", "varies"):
            self.__dict__.pop(name, None)

    @cached_property
    def varies(self) -> BoolArray:
        """Which rows leave more than a point open: a cell with room, or several cells."""
        return np.asarray((self.dimensions.max(axis=0) > 0) | (np.sum(self.there, axis=0) > 1))

    @cached_property
    def approximate(self) -> BoolArray:
        """Which rows are drawn by a chain, weighed by an estimate, or stand beside rows that were dropped undecided."""
        weighed = self.piece.measure == "volume" or len(self.boxes) > 1
        found = self.viable.dropped[self.piece.who] > 0
        for rows, hulls in self._hulls:
            found[rows] |= hulls.approximate(weighed)
        return found

    @property
    def _hulls(self) -> list[tuple[IntArray, Hulls]]:
        """The polytopes that are looked at one by one."""
        return [(joint.rows, joint.shape) for joints in self.joints for joint in joints if isinstance(joint.shape, Hulls)]

    def weight_by_volume(self, who: IntArray, people: int) -> FloatArray:
        """Return the volume of each row in the highest dimension that its person has, up to a factor of the person."""
        top = np.full(people, -1)
        np.maximum.at(top, who, np.where(self.exists, self.dimensions.max(axis=0), -1))
        logs = np.where((self.dimensions == top[who]) & self.exists, self._log_volumes, -np.inf)
        most = np.full(people, -np.inf)
        np.maximum.at(most, who, logs.max(axis=0))
        return np.asarray(np.exp(logs - np.where(np.isfinite(most), most, 0.0)[who]).sum(axis=0))

    @cached_property
    def _cell_ends(self) -> FloatArray:
        """Cumulative shares of the cells of each row, the largest dimension alone."""
        logs = np.where(self.dimensions == self.dimensions.max(axis=0), self._log_volumes, -np.inf)
        top = logs.max(axis=0)
        largest = np.exp(logs - np.where(np.isfinite(top), top, 0.0))
        total = largest.sum(axis=0)
        return np.cumsum(np.divide(largest, total, out=np.zeros_like(largest), where=total > 0), axis=0)

    @property
    def method(self) -> str:
        """How coupled coordinates are drawn."""
        return "hit-and-run (approximate)" if any(hulls.chains for _, hulls in self._hulls) else "polytope"

    @property
    def note(self) -> str:
        """What is approximate: how chains were seen to mix where that took longest, and how many rows were dropped."""
        walked = [mixing for _, hulls in self._hulls for mixing in hulls.chains]
        chains = [str(max(walked, key=lambda mixing: mixing.steps))] if walked else []
        return "; ".join([*chains, *([str(self.viable)] if self.viable.dropped.any() else [])])

    # -- points -------------------------------------------------------------------------------------------------------

    def lowest(self, rows: IntArray) -> FloatArray:
        """Return the point of rows that leave one point open, in the cell that they have."""
        point = np.empty((len(rows), len(self.names)))
        which = np.argmax(np.array(self.there)[:, rows], axis=0)
        for i, box in enumerate(self.boxes):
            mine = np.flatnonzero(which == i)
            point[mine] = box.low[rows[mine]]
            for joint in self.joints[i]:
                spot, inside = _found(joint.rows, rows[mine])
                for k, at in zip(mine[inside].tolist(), spot.tolist()):
                    point[k, joint.places] = joint.point(at)
        return point

    def fill(self, point: FloatArray, rows: IntArray, uniform: FloatArray, draws: Draws) -> None:
        """Write a point for each row into our own coordinates; `uniform` has one number for each real coordinate of the piece."""
        which = None
        if len(self.boxes) > 1:
            chance = unit(draws.words(1, CELL))[:, 0]
            which = np.minimum((chance > self._cell_ends[:, rows]).sum(axis=0), len(self.boxes) - 1)
        place = {j: k for k, j in enumerate(self.piece.reals)}
        for i, box in enumerate(self.boxes):
            mine: slice | IntArray = slice(None) if which is None else np.flatnonzero(which == i)
            at = rows[mine]
            for j in self.mine if len(at) else ():
                number, origin = uniform[mine, place[j]], self.piece.coordinates[j].log_from
                point[mine, j] = between(box.low[at, j], box.high[at, j], number, None if origin is None else origin[at])
            for joint in self.joints[i]:
                spot, inside = _found(joint.rows, at)
                here = inside if which is None else np.asarray(mine)[inside]
                far = COUPLED + (draws.attempt << 44)  # no attempt in here has the words of another proposal
                words: Words = lambda some, attempt, width, far=far: draws.take(some).words(width, far + attempt)  # type: ignore[misc] # noqa: E731
                if len(here):
                    point[np.ix_(here, joint.places)] = joint.draw(spot, here, words)


def _found(own: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    """Return which of the rows are among our own (ascending), by their places there and here."""
    spot = np.minimum(np.searchsorted(own, rows), len(own) - 1)
    inside = np.flatnonzero(own[spot] == rows)
    return spot[inside], inside


def between(low: FloatArray, high: FloatArray, uniform: FloatArray, log_from: FloatArray | None = None) -> FloatArray:
    """Return a number between two ends: uniform, or with the density 1/value over start + number."""
    if log_from is None:
        return low + (high - low) * uniform
    wide = high > low
    bottom = np.where(wide, log_from + low, 1.0)
    ratio = np.where(wide, log_from + high, 1.0) / bottom
    return np.where(wide, bottom * ratio**uniform - log_from, low)


def not_positive(name: str, least: float) -> DrawError:
    """Return the error where a log distribution meets a value that has no logarithm."""
    return DrawError(
        "a log distribution needs values above 0", where=f"feature {name}", got=f"values from {least:g} on", remedy="raise its lower bound above 0"
    )


# -- what rows couple -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Joint:
    """What rows leave open to the coordinates in some places of the box; the shape has one entry per configuration in `rows`."""

    rows: IntArray
    places: IntArray
    shape: Rooms | Polytopes | Ordered | Hulls
    number: int  # among those of the same configurations

    def draw(self, at: IntArray, draws: IntArray, words: Words) -> FloatArray:
        """Return one point of entry at[i] for draw draws[i]."""
        if self.shape.empty[at].any():
            raise ValueError("what is empty has no points")
        return self.shape.draw(at, draws, shifted(words, self.number))

    def point(self, at: int) -> FloatArray:
        """Return the point of an entry in which nothing is open."""
        values = [self.shape.value(at, way) for way in np.eye(len(self.places))]
        return np.array([np.nan if value is None else value for value in values])


def _joints(box: Box, names: Sequence[str], who: IntArray, label: str) -> list[Joint]:
    """Return the coordinates that hang together by rows, and the configurations in which they do; rows that cut nothing off are left out.

    Under one row that is the same for whoever is there. Under several, polytopes share what is learnt of them: by person, so that it does not
    depend on who else is there.
    """
    live = [(row, row.active & box.exists & _cuts(row, box, names)) for row in box.coupled]
    if not live:
        return []
    which, first = distinct(np.packbits([on & row.uses(name) for row, on in live for name in row.coefficients], axis=0).T)
    found = []
    for group, at in enumerate(first.tolist()):
        rows = np.flatnonzero((which == group) & box.exists)
        used = [(row, {name for name in row.coefficients if row.uses(name)[at]}) for row, on in live if on[at]]
        for number, (scope, some) in enumerate(_components(used)):
            places = np.array([j for j, name in enumerate(names) if name in scope], dtype=np.intp)
            owner = who[rows] if len(some) > 1 else np.zeros(len(rows))
            for mine in (rows[owner == person] for person in np.unique(owner)):
                found.append(Joint(mine, places, _shape(some, box, mine, places, names, label), number))
    return found


def _cuts(row: Half, box: Box, names: Sequence[str]) -> BoolArray:
    """Return where a row leaves out some of the box."""
    most = row.constant.copy()
    for name in row.coefficients:
        j = names.index(name)
        most += np.maximum(row.term(name, box.low[:, j]), row.term(name, box.high[:, j]))
    return np.asarray((most > 0) | (row.relation == "=="))


def _components(rows: Sequence[tuple[Half, set[str]]]) -> list[tuple[set[str], list[Half]]]:
    """Return rows that hang together by what they use, with all that they use."""
    found: list[tuple[set[str], list[Half]]] = []
    for row, names in rows:
        near = [part for part in found if part[0] & names]
        found = [part for part in found if not part[0] & names]
        found.append((names.union(*(scope for scope, _ in near)), [half for _, some in near for half in some] + [row]))
    return found


def _shape(halves: Sequence[Half], box: Box, rows: IntArray, places: IntArray, names: Sequence[str], label: str) -> Rooms | Polytopes | Ordered | Hulls:
    """Return what some rows leave open to the coordinates in some places, in some configurations."""
    low, high = box.low[np.ix_(rows, places)], box.high[np.ix_(rows, places)]
    column_of = {names[j]: k for k, j in enumerate(places)}

    def table(columns: Callable[[Half], Mapping[str, FloatArray]]) -> FloatArray:
        found = np.zeros((len(halves), len(places), len(rows)))
        for i, row in enumerate(halves):  # most of it is 0
            for name, column in columns(row).items():
                if name in column_of:
                    found[i, column_of[name]] = column[rows]
        return found.transpose(2, 0, 1)

    slopes = table(lambda row: row.coefficients)
    bend, at = (table(lambda row, i=i: {name: ends[i] for name, ends in row.bends.items()}) for i in range(2))  # type: ignore[misc]
    limits = np.stack([-row.constant[rows] for row in halves], axis=1)
    equal = np.array([row.relation == "==" for row in halves])
    if len(equal) == 1:
        return Rooms(low, high, slopes[:, 0], limits[:, 0], bool(equal[0]), *((bend[:, 0], at[:, 0]) if bend.any() else ()))
    k = len(places)
    if all(row.even for row in halves) and Polytopes.fits(int((~equal).sum()) + 2 * k, k - int(equal.sum())):
        A, B = np.vstack([slopes[0, ~equal], np.eye(k), -np.eye(k)]), np.hstack([limits[:, ~equal], high, -low])
        return Polytopes(A, B, slopes[0, equal], limits[:, equal])
    chain = None if equal.any() or bend.any() else Ordered.of(slopes, limits, low, high)
    return chain or Hulls(slopes, limits, equal, low, high, label, bend, at)
