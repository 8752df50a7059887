"""Uniform draws from a bounded polytope, exact in low dimension.

Coordinates are scaled to their box; equalities are solved out (by an orthonormal basis of what they leave open), thin
directions likewise. Then: a point, an interval, or up to `EXACT` dimensions a triangulation with simplices chosen by
volume; beyond that the bounding box by rejection where that accepts enough, else hit-and-run (see `walks`), which is said
to be approximate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import factorial

import numpy as np
import numpy.typing as npt

from budge.errors import DrawError
from budge.reach.lp import argmin, least, span
from budge.reach.walks import Mixing, mixing_of, walk

__all__ = ["Polytope"]

FloatArray = npt.NDArray[np.float64]
EXACT = 5  # dimensions up to which a triangulation is cheap
THIN = 1e-10  # a polytope narrower than this, relative to its box, is flat
ENOUGH = 1e-3  # share of the box from which rejection is used


@dataclass(frozen=True)
class Polytope:
    """``{r : A r <= b, E r = e}``, bounded.

    Examples
    --------
    >>> import numpy as np
    >>> triangle = Polytope.make(np.array([[1.0, 1.0]]), np.array([1.0]), low=np.zeros(2), high=np.ones(2))
    >>> round(triangle.volume, 12), triangle.dimension
    (0.5, 2)
    >>> bool((triangle.draw(np.random.default_rng(0), 100).sum(axis=1) <= 1 + 1e-12).all())
    True
    """

    A: FloatArray  # over the free coordinates y, rows of length 1
    b: FloatArray
    base: FloatArray  # r = base + basis @ y
    basis: FloatArray
    empty: bool = False

    @classmethod
    def make(
        cls, A: FloatArray, b: FloatArray, E: FloatArray | None = None, e: FloatArray | None = None, *, low: FloatArray, high: FloatArray
    ) -> Polytope:
        """From rows, equalities and a box; flat directions are found and solved out."""
        k = len(low)
        width = high - low
        still = width <= THIN * np.maximum(1.0, np.maximum(np.abs(low), np.abs(high)))
        width = np.where(still, 1.0, width)
        # r = low + width * u with u in the unit box; rows are divided by their length, so that all numbers are about 1
        rows, limits = _unit(np.reshape(A, (-1, k)) * width, np.ravel(b) - np.reshape(A, (-1, k)) @ low)
        equal_rows, equal_to = (np.zeros((0, k)), np.zeros(0)) if E is None or e is None else _unit(
            np.reshape(E, (-1, k)) * width, np.ravel(e) - np.reshape(E, (-1, k)) @ low
        )  # fmt: skip
        rows = np.vstack([rows, np.eye(k)[~still], -np.eye(k)[~still]])
        limits = np.concatenate([limits, np.ones((~still).sum()), np.zeros((~still).sum())])
        equal_rows = np.vstack([equal_rows, np.eye(k)[still]])  # a coordinate that cannot move is an equality
        equal_to = np.concatenate([equal_to, ((high - low) / 2)[still]])
        # polytopes that differ by where they lie are the same from here on, to the bit: what is learnt of one serves the others
        found = _flatten(*(np.round(numbers, 12) for numbers in (rows, limits, equal_rows, equal_to)))
        if found is None:
            return cls(np.zeros((0, 0)), np.zeros(0), low, np.zeros((k, 0)), empty=True)
        inner, inner_limits, base, basis = found
        return cls(inner, inner_limits, low + width * base, width[:, None] * basis)

    @property
    def dimension(self) -> int:
        """Number of free coordinates."""
        return int(self.basis.shape[1])

    @property
    def measured(self) -> bool:
        """Whether its volume is computed, not estimated."""
        return self.dimension <= EXACT

    @property
    def exact(self) -> bool:
        """Whether draws are independent and exactly uniform."""
        return self.dimension <= EXACT or self._box_share >= ENOUGH

    @cached_property
    def volume(self) -> float:
        """Volume within its own affine hull; of a point: 1."""
        if self.empty:
            return 0.0
        if self.dimension == 0:
            return 1.0
        stretch = float(np.sqrt(np.linalg.det(self.basis.T @ self.basis)))
        if self.dimension == 1:
            low, high = self._interval
            return float(high - low) * stretch
        if self.measured:
            return float(self._simplices[1].sum()) * stretch
        if self._box_share < ENOUGH:
            raise DrawError(
                f"the volume of a polytope in {self.dimension} dimensions is not known well enough",
                remedy="use measure: configuration, or fewer coupled continuous features",
            )
        ends = self._span
        return float(np.prod(ends[1] - ends[0]) * self._box_share) * stretch

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """n draws, one row each."""
        if self.empty:
            raise ValueError("an empty polytope has no points")
        if self.dimension == 0:
            return np.tile(self.base, (n, 1))
        if self.dimension == 1:
            low, high = self._interval
            y = low + (high - low) * rng.random((n, 1))
        elif self.dimension <= EXACT:
            corners, volumes = self._simplices
            share = np.cumsum(volumes)
            which = np.minimum(np.searchsorted(share, rng.random(n) * share[-1], side="right"), len(volumes) - 1)
            spread = rng.standard_exponential((n, self.dimension + 1))
            y = np.einsum("nk,nkd->nd", spread / spread.sum(axis=1, keepdims=True), corners[which])
        elif self.exact:
            y = self._from_box(rng, n)
        else:
            y = walk(rng, self.A, self.b, self.mixing, n)
        return np.asarray(self.base + y @ self.basis.T)

    @cached_property
    def mixing(self) -> Mixing:
        """How chains walk it, where that is how it is drawn."""
        return mixing_of(self.A, self.b)

    @cached_property
    def _interval(self) -> tuple[float, float]:
        slope = self.A[:, 0]
        return float(np.max(self.b[slope < 0] / slope[slope < 0])), float(np.min(self.b[slope > 0] / slope[slope > 0]))

    @cached_property
    def _span(self) -> tuple[FloatArray, FloatArray]:
        return span(self.A, self.b)

    @cached_property
    def _simplices(self) -> tuple[FloatArray, FloatArray]:
        """Corners and volumes of a triangulation: the facets of the hull, each joined to the inner centre."""
        from scipy.spatial import ConvexHull, HalfspaceIntersection

        low, high = self._span
        size = high - low  # thin in a slanted direction is still thin; scaling helps where a direction is an axis
        halves = np.hstack([self.A * size, -self.b[:, None]])
        corners = HalfspaceIntersection(halves, np.zeros(self.dimension)).intersections
        facets = corners[ConvexHull(corners, qhull_options="Qt").simplices] * size
        cells = np.concatenate([np.zeros((len(facets), 1, self.dimension)), facets], axis=1)
        volumes = np.abs(np.linalg.det(facets)) / factorial(self.dimension)
        return cells[volumes > 0], volumes[volumes > 0]

    @cached_property
    def _box_share(self) -> float:
        low, high = self._span
        tried = np.random.default_rng(0).random((200_000, self.dimension)) * (high - low) + low
        return float((tried @ self.A.T <= self.b).all(axis=1).mean())

    def _from_box(self, rng: np.random.Generator, n: int) -> FloatArray:
        low, high = self._span
        found: list[FloatArray] = []
        have = 0
        while have < n:
            tried = low + (high - low) * rng.random((min(int((n - have) / self._box_share * 1.1) + 64, 400_000), self.dimension))
            found.append(tried[(tried @ self.A.T <= self.b).all(axis=1)])
            have += len(found[-1])
        return np.concatenate(found)[:n]


def _unit(rows: FloatArray, limits: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows of length 1; rows of zeros stay."""
    size = np.linalg.norm(rows, axis=1)
    size = np.where(size > 0, size, 1.0)
    return rows / size[:, None], limits / size


def _flatten(
    rows: FloatArray, limits: FloatArray, equal_rows: FloatArray, equal_to: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray] | None:
    """Rows over free coordinates about an inner point, that point and the basis; None where nothing is feasible."""
    k = rows.shape[1]
    base, basis = np.zeros(k), np.eye(k)
    for _ in range(k + 1):
        if len(equal_rows):
            step, rest, fits = _solve_out(equal_rows @ basis, equal_to - equal_rows @ base)
            if not fits:
                return None
            base, basis = base + basis @ step, basis @ rest
        inner, inner_limits = rows @ basis, limits - rows @ base
        size = np.linalg.norm(inner, axis=1)
        flat = size <= 1e-12
        if (inner_limits[flat] < -1e-9).any():
            return None
        inner, inner_limits = _unit(inner[~flat], inner_limits[~flat])
        if basis.shape[1] == 0:
            return np.zeros((0, 0)), np.zeros(0), base, basis
        radius, center = _center(inner, inner_limits)
        if radius < -1e-8:
            return None
        if radius > THIN:
            return inner, inner_limits - inner @ center, base + basis @ center, basis
        tight = _tight(inner, inner_limits)
        if not tight.any():
            return None
        equal_rows, equal_to = inner[tight] @ basis.T, inner_limits[tight] + inner[tight] @ (basis.T @ base)
    return None


def _solve_out(E: FloatArray, e: FloatArray) -> tuple[FloatArray, FloatArray, bool]:
    """One solution of E y = e and an orthonormal basis of the rest; whether it fits at all."""
    u, s, vt = np.linalg.svd(E)
    rank = int((s > 1e-10 * max(1.0, s.max(initial=0.0))).sum())
    step = vt[:rank].T @ ((u[:, :rank].T @ e) / s[:rank])
    fits = bool((np.abs(E @ step - e) <= 1e-8 * np.maximum(1.0, np.abs(e))).all())
    return step, vt[rank:].T, fits


def _center(A: FloatArray, b: FloatArray) -> tuple[float, FloatArray]:
    """The largest ball that fits (its radius is negative where nothing does)."""
    goal = np.r_[np.zeros(A.shape[1]), -1.0]
    found = argmin(goal, np.hstack([A, np.ones((len(A), 1))]), b)
    return float(np.min(b - A @ found[:-1])), found[:-1]


def _tight(A: FloatArray, b: FloatArray) -> npt.NDArray[np.bool_]:
    """The rows that hold with equality everywhere."""
    loose = b + 1e-7  # the solver's own tolerance
    return np.array([limit - least(row, A, loose) <= 1e-6 for row, limit in zip(A, b)])
