"""Many bounded polytopes with the same rows and different limits, triangulated together in few dimensions."""

from __future__ import annotations

import math
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt

from budge.reach.accept import Words, times
from budge.reach.hull import FLAT, Hull, fan, mixed, solved, spacings, volumes_of
from budge.reach.room import SLACK
from budge.reach.streams import unit

__all__ = ["Polytopes"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
MOST_CORNERS = 300  # choices of rows of polytopes that are triangulated together
AT_ONCE = 2**21  # numbers held at once


class Polytopes:
    """``{y : A y <= B[i], E y = F[i]}`` for i = 0 … m - 1, all bounded by these rows.

    A corner is a choice of d rows that hold with equality; the inverse of each choice is made once. Polytopes in which the same choices are corners have
    the same faces, so that one triangulation serves them all. Meant for two or three dimensions and some ten rows.

    Examples
    --------
    >>> import numpy as np
    >>> from budge.reach.accept import fixed_words
    >>> A = np.vstack([-np.eye(2), np.ones((1, 2))])
    >>> triangles = Polytopes(A, np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 3.0], [0.0, 0.0, -1.0]]))
    >>> np.exp(triangles.log_volumes).round(9).tolist(), triangles.empty.tolist()
    ([0.5, 4.5, 0.0], [False, False, True])
    >>> triangles.draw(np.array([0, 1]), np.arange(2), fixed_words("example")).shape
    (2, 2)
    """

    def __init__(self, A: FloatArray, B: FloatArray, E: FloatArray | None = None, F: FloatArray | None = None) -> None:
        self.A, self.B = A, np.asarray(B, dtype=float)
        self.E = np.zeros((0, A.shape[1])) if E is None else E
        self.F = np.zeros((len(B), len(self.E))) if F is None else F
        self._base, self._basis, off = solved(self.E, self.F)
        self.inner, self.limits = A @ self._basis, self.B - self._base @ A.T
        self._corners, self._volumes, seen = _triangulated(self.inner, self.limits)
        self.empty: BoolArray = ~seen | off
        self._volumes[off] = 0.0

    @staticmethod
    def fits(rows: int, dimension: int) -> bool:
        """Whether so many rows are few enough."""
        return 1 <= dimension <= 3 and math.comb(rows, dimension) <= MOST_CORNERS

    @property
    def width(self) -> int:
        """Numbers per draw."""
        return int(self._basis.shape[1]) + 1

    @cached_property
    def hulls(self) -> dict[int, Hull]:
        """The polytopes that have points but no volume in the dimension of the others: each is looked at by itself."""
        found = {}
        for i in np.flatnonzero(~self.empty & (self._volumes[:, -1] == 0)).tolist():
            corners = self._corners_of(i)
            low, high = corners.min(axis=0), corners.max(axis=0)
            hull = Hull.make(self.A, self.B[i], self.E, self.F[i], low=low, high=high)
            if hull is None:  # a point up to rounding
                hull = Hull.make(self.A[:0], self.B[i, :0], self.E[:0], self.F[i, :0], low=corners.mean(axis=0), high=corners.mean(axis=0))
            assert hull is not None
            found[i] = hull
        return found

    @property
    def dimensions(self) -> IntArray:
        """Dimension of each; -1 where it is empty."""
        result = np.where(self.empty, -1, self.width - 1)
        for i, hull in self.hulls.items():
            result[i] = hull.dimension
        return np.asarray(result, dtype=np.int64)

    @property
    def log_volumes(self) -> FloatArray:
        """Logarithm of the volume of each within its own affine hull: 0 for a point, -inf where it is empty."""
        with np.errstate(divide="ignore"):
            result = np.log(self._volumes[:, -1])  # an orthonormal basis does not stretch
        for i, hull in self.hulls.items():
            result[i] = hull.log_volume
        return np.asarray(result)

    def value(self, i: int, slope: FloatArray) -> float | None:
        """Return ``slope · y`` where it is the same everywhere in polytope i, else None."""
        if i in self.hulls:
            return self.hulls[i].value(slope)
        return float(slope @ self._base[i]) if np.linalg.norm(slope @ self._basis) <= SLACK * np.linalg.norm(slope) else None

    def draw(self, which: IntArray, draws: IntArray, words: Words) -> FloatArray:
        """Return one point of polytope which[i] for draw draws[i]."""
        u = unit(words(draws, 0, self.width))
        ends = self._volumes[which]
        pick = (u[:, :1] * ends[:, -1:] >= ends[:, :-1]).sum(axis=1)
        points = mixed(self._corners[which, pick], spacings(u[:, 1:]))
        if len(self.E):
            points = self._base[which] + times(points, self._basis.T)
        for i, hull in self.hulls.items():
            mine = np.flatnonzero(which == i)
            if len(mine):
                points[mine] = hull.at(u[mine])
        return np.asarray(points)

    def _corners_of(self, i: int) -> FloatArray:
        choices, inverse = _choices(self.inner)
        found, good = _feasible(self.inner, self.limits[[i]], choices, inverse)
        return np.asarray(self._base[i] + found[0][good[0]] @ self._basis.T)


def _choices(A: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return all choices of d independent rows, and their inverses."""
    d = A.shape[1]
    found = np.array(list(combinations(range(len(A)), d)), dtype=np.int64).reshape(-1, d)
    size = np.prod(np.maximum(np.linalg.norm(A, axis=1), 1e-300)[found], axis=1)
    found = found[np.abs(np.linalg.det(A[found])) > 1e-12 * size]
    return found, np.linalg.inv(A[found])


def _feasible(A: FloatArray, B: FloatArray, choices: IntArray, inverse: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return where the rows of each choice meet, (m, choices, d), and whether the other rows hold there."""
    points = np.einsum("cij,mcj->mci", inverse, B[:, choices])
    forgiven = SLACK * np.maximum(1.0, np.maximum(np.abs(B)[:, None, :], np.abs(points) @ np.abs(A).T))
    return points, (points @ A.T <= B[:, None, :] + forgiven).all(axis=2)


def _triangulated(A: FloatArray, B: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return corners of simplices (m, s, d + 1, d), their cumulative volumes (m, s), and which polytopes have a corner at all."""
    m, d = len(B), A.shape[1]
    choices, inverse = _choices(A)
    seen = np.zeros(m, dtype=bool)
    made: list[tuple[IntArray, FloatArray, FloatArray]] = []
    kinds: dict[bytes, IntArray] = {}
    some = max(1, AT_ONCE // max(1, len(choices) * len(A)))
    for start in range(0, m, some):
        points, good = _feasible(A, B[start : start + some], choices, inverse)
        seen[start : start + some] = good.any(axis=1)
        packed = np.packbits(good, axis=1)
        _, first, which = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        for number, at in enumerate(first):
            key = packed[at].tobytes()
            if key not in kinds:
                kinds[key] = fan(points[at], np.flatnonzero(good[at]))
            if not len(kinds[key]):
                continue
            mine = np.flatnonzero(which.reshape(-1) == number)
            corners = points[mine][:, kinds[key]]
            volumes = volumes_of(corners)
            used = points[mine][:, good[at]]
            volumes[volumes.sum(axis=1) <= FLAT * np.ptp(used, axis=1).prod(axis=1)] = 0.0
            made.append((mine + start, corners, volumes))
    most = max((volumes.shape[1] for _, _, volumes in made), default=1)
    all_corners, all_volumes = np.zeros((m, most, d + 1, d)), np.zeros((m, most))
    for mine, corners, volumes in made:
        all_corners[mine, : volumes.shape[1]], all_volumes[mine, : volumes.shape[1]] = corners, volumes
    return all_corners, np.cumsum(all_volumes, axis=1), seen
