"""Uniform draws from a bounded polytope, exact in low dimension.

Equalities are solved out first (by an orthonormal basis of what they leave open), thin directions likewise. Then:
a point, an interval, or up to `EXACT` dimensions a triangulation with simplices chosen by volume; beyond that the
bounding box by rejection where that accepts enough, else hit-and-run over many chains, which is said to be
approximate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import factorial

import numpy as np
import numpy.typing as npt

from budge.errors import SolverError

__all__ = ["Polytope"]

FloatArray = npt.NDArray[np.float64]
EXACT = 5  # dimensions up to which a triangulation is cheap
THIN = 1e-10  # a polytope narrower than this, relative to its box, is flat
WALK = 400  # steps of a chain before its one draw is taken


@dataclass(frozen=True)
class Polytope:
    """``{r : A r <= b, E r = e}``, bounded.

    Examples
    --------
    >>> import numpy as np
    >>> triangle = Polytope.make(np.array([[1.0, 1.0]]), np.array([1.0]), low=np.zeros(2), high=np.ones(2))
    >>> round(triangle.volume, 12), triangle.dimension
    (0.5, 2)
    >>> bool((triangle.draw(np.random.default_rng(0), 100).sum(axis=1) <= 1).all())
    True
    """

    A: FloatArray  # over the free coordinates y
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
        rows = np.vstack([np.reshape(A, (-1, k)), np.eye(k), -np.eye(k)])
        limits = np.concatenate([np.ravel(b), high, -low])
        equal_rows = np.reshape(E, (-1, k)) if E is not None else np.zeros((0, k))
        equal_to = np.ravel(e) if e is not None else np.zeros(0)
        still = high - low <= THIN * np.maximum(1.0, np.maximum(np.abs(low), np.abs(high)))
        if still.any():  # a coordinate that cannot move is an equality
            equal_rows = np.vstack([equal_rows, np.eye(k)[still]])
            equal_to = np.concatenate([equal_to, (low + high)[still] / 2])
        base, basis = np.zeros(k), np.eye(k)
        nothing = cls(np.zeros((0, 0)), np.zeros(0), base, np.zeros((k, 0)), empty=True)
        scale = float(np.max(np.maximum(np.abs(low), np.abs(high)), initial=1.0))
        for _ in range(k + 1):
            if len(equal_rows):
                step, basis_new, fits = _solve_out(equal_rows @ basis, equal_to - equal_rows @ base, scale)
                if not fits:
                    return nothing
                base, basis = base + basis @ step, basis @ basis_new
            inner, inner_limits = rows @ basis, limits - rows @ base
            size = np.linalg.norm(inner, axis=1)
            flat = size <= 1e-12
            if (inner_limits[flat] < -1e-9 * scale).any():
                return nothing
            inner, inner_limits = inner[~flat] / size[~flat, None], inner_limits[~flat] / size[~flat]
            if basis.shape[1] == 0:
                return cls(np.zeros((0, 0)), np.zeros(0), base, basis)
            radius, center = _center(inner, inner_limits)
            if radius < -1e-9 * scale:
                return nothing
            if radius > THIN * scale:
                return cls(inner, inner_limits, base + basis @ center, basis)._about(center)
            tight = _tight(inner, inner_limits, scale)
            if not tight.any():
                return nothing
            equal_rows, equal_to = inner[tight] @ basis.T, inner_limits[tight] + inner[tight] @ (basis.T @ base)
        return nothing

    def _about(self, center: FloatArray) -> Polytope:
        """The same set with its inner centre as origin of y."""
        return Polytope(self.A, self.b - self.A @ center, self.base, self.basis)

    @property
    def dimension(self) -> int:
        """Number of free coordinates."""
        return int(self.basis.shape[1])

    @property
    def exact(self) -> bool:
        """Whether draws are independent and exactly uniform."""
        return self.dimension <= EXACT or self._box_share >= 1e-3

    @cached_property
    def volume(self) -> float:
        """Volume within its own affine hull; of a point: 1."""
        if self.empty:
            return 0.0
        if self.dimension == 0:
            return 1.0
        if self.dimension == 1:
            low, high = self._interval
            return float(high - low)
        if self.dimension <= EXACT:
            return float(self._simplices[1].sum())
        low, high = self._span
        return float(np.prod(high - low) * self._box_share)

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
            y = self._walk(rng, n)
        return np.asarray(self.base + y @ self.basis.T)

    @cached_property
    def _interval(self) -> tuple[float, float]:
        slope = self.A[:, 0]
        return float(np.max(self.b[slope < 0] / slope[slope < 0])), float(np.min(self.b[slope > 0] / slope[slope > 0]))

    @cached_property
    def _span(self) -> tuple[FloatArray, FloatArray]:
        from scipy.optimize import linprog

        ends = []
        for sign in (1.0, -1.0):
            for j in range(self.dimension):
                goal = np.zeros(self.dimension)
                goal[j] = sign
                answer = linprog(goal, A_ub=self.A, b_ub=self.b, bounds=(None, None), method="highs")
                if answer.status != 0:
                    raise SolverError("the span of a polytope could not be found", got=answer.message)
                ends.append(sign * answer.fun)
        return np.array(ends[: self.dimension]), np.array(ends[self.dimension :])

    @cached_property
    def _simplices(self) -> tuple[FloatArray, FloatArray]:
        """Corners and volumes of a triangulation: the facets of the hull, each joined to the inner centre."""
        from scipy.spatial import ConvexHull, HalfspaceIntersection

        halves = np.hstack([self.A, -self.b[:, None]])
        corners = HalfspaceIntersection(halves, np.zeros(self.dimension)).intersections
        size = np.ptp(corners, axis=0)
        facets = corners[ConvexHull(corners / size, qhull_options="Qt").simplices]
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
            tried = low + (high - low) * rng.random((int((n - have) / self._box_share * 1.1) + 64, self.dimension))
            found.append(tried[(tried @ self.A.T <= self.b).all(axis=1)])
            have += len(found[-1])
        return np.concatenate(found)[:n]

    def _walk(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Hit-and-run, one chain for each draw, all at once: draws are independent, uniform in the limit."""
        y = np.zeros((n, self.dimension))
        slack = np.tile(self.b, (n, 1))
        for _ in range(max(WALK, 20 * self.dimension)):
            way = rng.standard_normal((n, self.dimension))
            way /= np.linalg.norm(way, axis=1, keepdims=True)
            speed = way @ self.A.T
            with np.errstate(divide="ignore", invalid="ignore"):
                times = slack / speed
            ahead = np.where(speed > 1e-14, times, np.inf).min(axis=1)
            behind = np.where(speed < -1e-14, times, -np.inf).max(axis=1)
            go = (behind + (ahead - behind) * rng.random(n))[:, None]
            y += go * way
            slack -= go * speed
        return y


def _solve_out(E: FloatArray, e: FloatArray, scale: float) -> tuple[FloatArray, FloatArray, bool]:
    """One solution of E y = e and an orthonormal basis of the rest; whether it fits at all."""
    u, s, vt = np.linalg.svd(E)
    rank = int((s > 1e-12 * max(1.0, s.max(initial=0.0))).sum())
    step = vt[:rank].T @ ((u[:, :rank].T @ e) / s[:rank])
    fits = bool((np.abs(E @ step - e) <= 1e-9 * np.maximum(scale, np.abs(e))).all())
    return step, vt[rank:].T, fits


def _center(A: FloatArray, b: FloatArray) -> tuple[float, FloatArray]:
    """The largest ball that fits (its radius is negative where nothing does)."""
    from scipy.optimize import linprog

    k = A.shape[1]
    answer = linprog(np.r_[np.zeros(k), -1.0], A_ub=np.hstack([A, np.ones((len(A), 1))]), b_ub=b, bounds=(None, None), method="highs")
    if answer.status != 0:
        raise SolverError("the centre of a polytope could not be found", got=answer.message)
    return float(answer.x[-1]), answer.x[:-1]


def _tight(A: FloatArray, b: FloatArray, scale: float) -> npt.NDArray[np.bool_]:
    """The rows that hold with equality everywhere."""
    from scipy.optimize import linprog

    loose = b + 2 * THIN * scale
    result = np.zeros(len(A), dtype=bool)
    for i, row in enumerate(A):
        answer = linprog(row, A_ub=A, b_ub=loose, bounds=(None, None), method="highs")
        result[i] = answer.status == 0 and b[i] - answer.fun <= 8 * THIN * scale
    return result
