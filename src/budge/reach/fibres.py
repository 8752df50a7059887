"""What configurations leave open to real coordinates: boxes and polytopes in disjoint cells, their dimension, their volume, points of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from budge.errors import DrawError
from budge.expressions import compare
from budge.reach.accept import Words
from budge.reach.cells import Box, Half
from budge.reach.joint import Joint
from budge.reach.starts import distinct
from budge.reach.streams import unit
from budge.reach.viable import Viable, viable

if TYPE_CHECKING:
    from budge.reach.piece import Draws, Piece

__all__ = ["CELL", "COUPLED", "Fibres", "between", "not_positive"]

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
        self.joints = [self._joints(box) for box in self.boxes]
        self.there = [self._there(box, joints) for box, joints in zip(self.boxes, self.joints)]  # which rows have a point in each cell
        self._check_logs()

    def _joints(self, box: Box) -> list[tuple[IntArray, Joint]]:
        """Return the rows in which the same coordinates are coupled in the same way, and what is open to these coordinates there.

        Under one row that is the same for whoever is there. Under several, polytopes share what is learnt of them: by person, so that it does not
        depend on who else is there.
        """
        if not box.coupled:
            return []
        marks = [row.active & (c != 0) for row in box.coupled for c in row.coefficients.values()]
        several = np.sum([row.active for row in box.coupled], axis=0) > 1
        owner = np.where(several, self.piece.who + 1, 0).astype("<u8")
        which, first = distinct(np.hstack([np.packbits(np.array(marks), axis=0).T, owner[:, None].view(np.uint8)]))
        found = []
        for group, at in enumerate(first.tolist()):
            rows = np.flatnonzero((which == group) & box.exists)
            halves = []
            for row in box.coupled:
                used = {name: c[rows] for name, c in row.coefficients.items() if c[at] != 0}
                if row.active[at] and used:
                    halves.append(Half(used, row.constant[rows], row.relation, np.ones(len(rows), dtype=bool), row.even))
            if halves and len(rows):
                among = np.ones(len(rows), dtype=bool)
                found.append((rows, Joint(halves, self.names, box.low[rows], box.high[rows], among, ", ".join(self.piece.names))))
        return found

    def _there(self, box: Box, joints: Sequence[tuple[IntArray, Joint]]) -> BoolArray:
        """Return which rows have a point in a cell."""
        exists = box.exists.copy()
        for rows, joint in joints:
            exists[rows] = joint.exists
        for row in box.strict:
            exists &= ~self._blocked(row, box, joints, exists)
        return exists

    def _blocked(self, row: Half, box: Box, joints: Sequence[tuple[IntArray, Joint]], exists: BoolArray) -> BoolArray:
        """Return where a row that leaves out a boundary leaves out all that there is: nothing in it can vary."""
        value, asked = row.constant.copy(), row.active & exists
        joint_of = np.full(len(exists), -1)
        spot = np.zeros(len(exists), dtype=np.intp)
        for number, (rows, _) in enumerate(joints):
            joint_of[rows], spot[rows] = number, np.arange(len(rows))
        for name, c in row.coefficients.items():
            j = self.names.index(name)
            apart = np.ones(len(exists), dtype=bool)
            for rows, joint in joints:
                apart[rows] = j not in joint.places
            value = np.where(apart, value + c * (box.low[:, j] + box.high[:, j]) / 2, value)
            asked &= ~(apart & (c != 0) & self._wide(box, j))
        for at in np.flatnonzero(asked & (joint_of >= 0)).tolist():
            joint = joints[joint_of[at]][1]
            slope = np.array([row.coefficients[self.names[j]][at] if self.names[j] in row.coefficients else 0.0 for j in joint.places])
            found = joint.value(int(spot[at]), slope) if slope.any() else 0.0
            if found is None:
                asked[at] = False
            else:
                value[at] += found
        return np.asarray(asked & ~compare(row.relation, value, 0.0))

    @staticmethod
    def _wide(box: Box, j: int) -> BoolArray:
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
        return any(self.joints)

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
            dimension = np.sum([self._wide(box, j) & ~self._joined(i, j) for j in self.mine], axis=0)
            for rows, joint in self.joints[i]:
                dimension[rows] += joint.dimensions
            found[i] = np.where(there, dimension, -1)
        return found

    def _joined(self, i: int, j: int) -> BoolArray:
        """Return in which rows of a cell a coordinate is coupled."""
        found = np.zeros(len(self.piece.who), dtype=bool)
        for rows, joint in self.joints[i]:
            found[rows] = j in joint.places
        return found

    @cached_property
    def _log_volumes(self) -> FloatArray:
        """Logarithm of the volume of each cell and row; -inf where there is none."""
        found = np.full((len(self.boxes), len(self.piece.who)), -np.inf)
        for i, (box, there) in enumerate(zip(self.boxes, self.there)):
            logs = np.zeros(len(there))
            for j in self.mine:
                free, origin = self._wide(box, j) & ~self._joined(i, j), self.piece.coordinates[j].log_from
                with np.errstate(divide="ignore", invalid="ignore"):
                    wide = box.high[:, j] - box.low[:, j]
                    if origin is not None:  # a density of 1/value has the logarithm as its volume
                        wide = np.log((origin + box.high[:, j]) / (origin + box.low[:, j]))
                    logs += np.where(free, np.log(wide), 0.0)
            for rows, joint in self.joints[i]:
                logs[rows] += joint.log_volumes
            found[i] = np.where(there, logs, -np.inf)
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
        for joints in self.joints:
            for rows, joint in joints:
                found[rows] |= joint.approximate(weighed)
        return found

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
        return "polytope" if all(joint.exact for joints in self.joints for _, joint in joints) else "hit-and-run (approximate)"

    @property
    def note(self) -> str:
        """What is approximate: how chains were seen to mix where that took longest, and how many rows were dropped."""
        walked = [mixing for joints in self.joints for _, joint in joints for mixing in joint.mixings]
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
            for own, joint in self.joints[i]:
                spot = np.searchsorted(own, rows[mine])
                inside = (spot < len(own)) & (own[np.minimum(spot, len(own) - 1)] == rows[mine])
                for k, at in zip(mine[inside].tolist(), spot[inside].tolist()):
                    point[k, joint.places] = joint.point(at)
        return point

    def fill(self, point: FloatArray, rows: IntArray, uniform: FloatArray, draws: Draws) -> None:
        """Write a point for each row into our own coordinates; `uniform` has one number for each real coordinate of the piece."""
        which = None
        if len(self.boxes) > 1:
            chance = unit(draws.words(1, CELL))[:, 0]
            which = np.minimum((chance > self._cell_ends[:, rows]).sum(axis=0), len(self.boxes) - 1)
        for i, box in enumerate(self.boxes):
            mine: slice | IntArray = slice(None) if which is None else np.flatnonzero(which == i)
            at = rows[mine]
            for j in self.mine:
                number, origin = uniform[mine, self.piece.reals.index(j)], self.piece.coordinates[j].log_from
                point[mine, j] = between(box.low[at, j], box.high[at, j], number, None if origin is None else origin[at])
            for own, joint in self.joints[i]:
                spot = np.minimum(np.searchsorted(own, at), len(own) - 1)
                inside = np.flatnonzero(own[spot] == at)
                here = inside if which is None else np.asarray(mine)[inside]
                far = COUPLED + (draws.attempt << 44)  # no attempt in here has the words of another proposal
                words: Words = lambda some, attempt, width, far=far: draws.take(some).words(width, far + attempt)  # type: ignore[misc] # noqa: E731
                if len(here):
                    point[np.ix_(here, joint.places)] = joint.draw(spot[inside], here, words)


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
