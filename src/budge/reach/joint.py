"""The coordinates of a cell that rows couple, for every configuration: rooms under one row, else polytopes, together where they share their rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from budge.errors import DrawError
from budge.reach.accept import Words
from budge.reach.cells import Half
from budge.reach.polytope import Polytope
from budge.reach.polytopes import Polytopes
from budge.reach.room import Rooms
from budge.reach.streams import unit
from budge.reach.walks import Mixing

__all__ = ["Joint"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
MOST_POLYTOPES = 20_000


class Joint:
    """What the rows leave open to the coordinates that they couple.

    `places` are their columns in the box. Configurations outside `among` are left out.
    """

    def __init__(self, rows: Sequence[Half], names: Sequence[str], low: FloatArray, high: FloatArray, among: BoolArray, label: str) -> None:
        self.places = np.array(sorted({names.index(name) for row in rows for name in row.coefficients}), dtype=np.intp)
        self.low, self.high = low[:, self.places], high[:, self.places]
        self.label = label
        self.even = all(row.even and row.active.all() for row in rows)  # then the coefficients are the same everywhere
        m, used = len(among), [names[j] for j in self.places]
        self.slopes = np.zeros((m, len(rows), len(used)))
        self.limits = np.zeros((m, len(rows)))
        self.equal = np.array([row.relation == "==" for row in rows])
        for i, row in enumerate(rows):
            self.limits[:, i] = np.where(row.active, -row.constant, 0.0)
            for name, c in row.coefficients.items():
                self.slopes[:, i, used.index(name)] = np.where(row.active, c, 0.0)
        self.active = np.stack([row.active for row in rows], axis=1)
        self._found: dict[int, Polytope] = {}
        self._alike: dict[bytes, Polytope] = {}
        self.exists: BoolArray = self._exists(among)

    @cached_property
    def rooms(self) -> Rooms | None:
        """All configurations at once, where there is one row."""
        if len(self.equal) > 1:
            return None
        return Rooms(self.low, self.high, self.slopes[:, 0], self.limits[:, 0], bool(self.equal[0]))

    @cached_property
    def shared(self) -> Polytopes | None:
        """All configurations at once, where few rows have the same coefficients in each of them."""
        k = len(self.places)
        inner = k - int(self.equal.sum())
        if len(self.equal) == 1 or not self.even:
            return None
        if not Polytopes.fits(int((~self.equal).sum()) + 2 * k, max(inner, 1)):
            return None
        A = np.vstack([self.slopes[0, ~self.equal], np.eye(k), -np.eye(k)])
        B = np.hstack([self.limits[:, ~self.equal], self.high, -self.low])
        return Polytopes(A, B, self.slopes[0, self.equal], self.limits[:, self.equal])

    def _exists(self, among: BoolArray) -> BoolArray:
        if self.rooms is not None:
            return np.asarray(among & ~self.rooms.empty)
        if self.shared is not None:
            return np.asarray(among & ~self.shared.empty)
        ends = np.stack([self.slopes * self.low[:, None, :], self.slopes * self.high[:, None, :]])
        fewest, most, middle = ends.min(axis=0).sum(axis=2), ends.max(axis=0).sum(axis=2), ends.mean(axis=0).sum(axis=2)
        scale = 1e-9 * np.maximum(1.0, np.maximum(np.abs(self.limits), np.abs(ends).max(axis=(0, 3))))
        out = self.active & ((fewest > self.limits + scale) | (self.equal & (most < self.limits - scale)))
        sure = ~self.active | (~self.equal & (middle < self.limits - scale))
        result = among & ~out.any(axis=1)
        doubtful = np.flatnonzero(result & ~sure.all(axis=1))
        if len(doubtful) > MOST_POLYTOPES:
            raise DrawError(
                f"{len(doubtful)} configurations each leave a polytope open",
                where=f"part {self.label}",
                remedy="declare some whole-numbered features real, or narrow their bounds",
            )
        for at in doubtful.tolist():
            result[at] = not self.polytope(at).empty
        return np.asarray(result)

    def polytope(self, at: int) -> Polytope:
        """Return the polytope of one configuration."""
        if at not in self._found:
            on = self.active[at]
            rows, same = self.slopes[at, on], self.equal[on]
            limits = self.limits[at, on]
            pieces = [rows[~same], limits[~same], rows[same], limits[same], self.low[at], self.high[at]]
            key = b"|".join(p.tobytes() for p in pieces)
            if key not in self._alike:
                self._alike[key] = Polytope.make(*pieces[:4], low=pieces[4], high=pieces[5])
            self._found[at] = self._alike[key]
        return self._found[at]

    @property
    def words(self) -> int:
        """Words that a first attempt takes; 0 where that differs between configurations."""
        return self.rooms.width if self.rooms is not None else self.shared.width if self.shared is not None else 0

    @cached_property
    def dimensions(self) -> IntArray:
        """Dimension in each configuration; 0 where it does not exist."""
        if self.rooms is not None:
            return np.where(self.exists, self.rooms.dimensions, 0)
        if self.shared is not None:
            return np.where(self.exists, self.shared.dimensions, 0)
        result = np.zeros(len(self.exists), dtype=np.int64)
        for at in np.flatnonzero(self.exists).tolist():
            result[at] = self.polytope(at).dimension
        return result

    @cached_property
    def log_volumes(self) -> FloatArray:
        """Logarithm of the volume in each configuration; -inf where it does not exist."""
        result = np.full(len(self.exists), -np.inf)
        here = np.flatnonzero(self.exists)
        if self.rooms is not None:
            result[here] = self.rooms.log_volumes[here]
            if np.isnan(result).any():
                raise DrawError(
                    f"the volume of a box in {len(self.places)} dimensions cut by one row is not known",
                    where=f"part {self.label}",
                    remedy="couple fewer continuous features",
                )
        elif self.shared is not None:
            result[here] = np.log(self.shared.volumes[here])
        else:
            result[here] = [self.polytope(at).log_volume for at in here.tolist()]
        return result

    def draw(self, rows: IntArray, draws: IntArray, words: Words) -> FloatArray:
        """Return one point of configuration rows[i] for draw draws[i]."""
        if self.rooms is not None:
            return self.rooms.draw(rows, draws, words).points
        if self.shared is not None:
            return self.shared.draw(rows, unit(words(draws, 0, self.shared.width)))
        points = np.empty((len(rows), len(self.places)))
        found, inverse = np.unique(rows, return_inverse=True)
        order = np.argsort(inverse, kind="stable")
        ends = np.cumsum(np.bincount(inverse, minlength=len(found)))
        for start, end, at in zip(np.r_[0, ends[:-1]], ends, found.tolist()):
            mine = order[start:end]
            points[mine] = self.polytope(at).draw(draws[mine], words)
        return points

    def value(self, at: int, slope: FloatArray) -> float | None:
        """Return ``slope · y`` where it is the same everywhere in one configuration, else None."""
        return self.polytope(at).value(slope) if self.rooms is None else self.rooms.value(at, slope)

    def point(self, at: int) -> FloatArray:
        """Return the point of a configuration in which nothing is open."""
        values = [self.value(at, way) for way in np.eye(len(self.places))]
        return np.array([np.nan if value is None else value for value in values])

    @property
    def _seen(self) -> Iterable[Polytope]:
        return (p for p in self._alike.values() if not p.empty)

    @property
    def exact(self) -> bool:
        """Whether draws are exactly uniform, as far as polytopes have been looked at."""
        return all(p.exact for p in self._seen)

    def approximate(self, weighed: bool) -> BoolArray:
        """Return which configurations are drawn by a chain or, where they are weighed by volume, by an estimated one."""
        found = np.zeros(len(self.exists), dtype=bool)
        if self.rooms is None and self.shared is None:
            for at in np.flatnonzero(self.exists).tolist():
                shape = self.polytope(at)
                found[at] = not (shape.exact and (shape.measured or not weighed))
        return found

    @property
    def mixings(self) -> list[Mixing]:
        """How chains walk, where that is how some polytope is drawn."""
        return [mixing for p in self._seen for mixing in p.mixings]
