"""Exact draws from a box under several rows: tilted proposals, accepted by what the rows leave unused.

``Π exp(-s_j·z_j)`` with ``s = A'·t`` is ``exp(-t·Az)``: accepting with ``exp(-t·(b - Az))`` where ``Az <= b`` leaves the uniform law. The t >= 0 that
minimises the convex ``t·b + Σ log Z_j(s_j)`` accepts most; rows that hardly cut get t = 0 and are only tested. Equalities are solved for as many
coordinates first, whose own bounds then are rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from budge.reach.accept import Accepted, Words, first_accepted, fixed_words, times
from budge.reach.streams import open_unit

__all__ = ["Tilted", "tilted"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
WordArray = npt.NDArray[np.uint64]
PILOTS = 2**15  # proposals that tell what share is accepted
ENOUGH = 2.0**-11  # share from which they are used


@dataclass(frozen=True)
class Tilted:
    """``A z <= b`` over ``0 <= z <= 1``, and the point ``base + basis·z`` that z stands for."""

    A: FloatArray
    b: FloatArray
    tilt: FloatArray  # (rows,)
    base: FloatArray
    basis: FloatArray

    @property
    def width(self) -> int:
        """Words of one proposal."""
        return int(self.A.shape[1]) + 1

    @cached_property
    def _steep(self) -> FloatArray:
        return self.A.T @ self.tilt

    def propose(self, words: WordArray) -> tuple[FloatArray, BoolArray]:
        """Return one z per row of words, and which of them are accepted."""
        u = open_unit(words)
        d = self.A.shape[1]
        z = np.where(self._steep < 0, 1.0 - u[:, :d], u[:, :d])  # no tilt: uniform
        bent = np.flatnonzero(self._steep)
        if len(bent):
            size = np.abs(self._steep[bent])
            low = np.minimum(np.log1p(u[:, bent] * np.expm1(-size)) / -size, 1.0)
            z[:, bent] = np.where(self._steep[bent] < 0, 1.0 - low, low)
        left = self.b - times(z, self.A.T)
        good = (left >= 0).all(axis=1)
        good &= u[:, d] < np.exp(-times(np.maximum(left, 0.0), self.tilt[:, None])[:, 0])
        return z, good

    @cached_property
    def acceptance(self) -> float:
        """Share of accepted proposals, seen on words that are the same for everybody."""
        words = fixed_words("tilted")
        tried = hits = 0
        batch = max(1, min(PILOTS, 2**19 // self.width))
        while tried < PILOTS and hits < 256:
            draws = np.arange(tried, min(tried + batch, PILOTS))
            hits += int(self.propose(words(draws, 0, self.width))[1].sum())
            tried += len(draws)
        return hits / tried

    def log_volume(self, scale: FloatArray) -> float:
        """Return an estimate of the logarithm of the volume within its affine hull, coordinates being stretched by `scale`."""
        basis = scale[:, None] * self.basis
        stretch = np.linalg.slogdet(basis.T @ basis)[1] / 2
        return float(np.log(max(self.acceptance, 1e-300)) + self.tilt @ self.b + _log_mass(self._steep)[0].sum() + stretch)

    def draw(self, draws: IntArray, words: Words) -> Accepted:
        """Return one point per draw."""
        made = first_accepted(draws, words, self.width, lambda _, w: self.propose(w), self.A.shape[1])
        return Accepted(self.base + times(made.points, self.basis.T), made.found, made.proposed, made.accepted)


def tilted(A: FloatArray, b: FloatArray, E: FloatArray, e: FloatArray, low: FloatArray, high: FloatArray) -> Tilted | None:
    """Return tilted proposals for ``A y <= b, E y = e`` in a box; None where too few of them would be accepted."""
    rows = [np.ascontiguousarray(np.asarray(part, dtype=float)) for part in (A, b, E, e, low, high)]
    return _tilted(len(low), *(part.tobytes() for part in rows))


@lru_cache(maxsize=256)
def _tilted(d: int, *parts: bytes) -> Tilted | None:
    A, b, E, e, low, high = (np.frombuffer(part) for part in parts)
    A, E = A.reshape(-1, d), E.reshape(-1, d)
    base, basis, bounds = np.zeros(d), np.eye(d), (low, high)
    if len(E):
        base, basis, free, told = _solved(E, e, high - low)
        sides = np.vstack([basis[told], -basis[told]])
        A, b = np.vstack([A @ basis, sides]), np.concatenate([b - A @ base, (high - base)[told], (base - low)[told]])
        bounds = low[free], high[free]
    bounds = _narrowed(A, b, *bounds)
    if (bounds[1] < bounds[0]).any():
        return None
    width = bounds[1] - bounds[0]
    base, basis = base + basis @ bounds[0], basis * width
    A, b = A * width, b - A @ bounds[0]
    cuts = np.maximum(A, 0.0).sum(axis=1) > b  # a row that no point of the box breaks is left out
    A, b = A[cuts], b[cuts]
    size = np.maximum(np.abs(A).sum(axis=1), 1e-300)
    made = Tilted(A / size[:, None], b / size, _best(A / size[:, None], b / size), base, basis)
    return made if made.acceptance >= ENOUGH else None


def _solved(E: FloatArray, e: FloatArray, width: FloatArray) -> tuple[FloatArray, FloatArray, IntArray, IntArray]:
    """Return y = base + basis·(free coordinates), which are free, and which follow: the widest that can."""
    rows, values, told = E * width, e.copy(), []
    for i in range(len(rows)):
        j = int(np.abs(rows[i]).argmax())
        if abs(rows[i, j]) <= 1e-10 * max(1.0, float(np.abs(E[i] * width).max())):
            continue  # it follows from the others
        values[i], rows[i] = values[i] / rows[i, j], rows[i] / rows[i, j]
        for k in range(len(rows)):
            if k != i:
                values[k], rows[k] = values[k] - rows[k, j] * values[i], rows[k] - rows[k, j] * rows[i]
        told.append((j, i))
    follow = np.array([j for j, _ in told], dtype=np.int64)
    free = np.setdiff1d(np.arange(E.shape[1]), follow)
    base, basis = np.zeros(E.shape[1]), np.zeros((E.shape[1], len(free)))
    basis[free, np.arange(len(free))] = 1.0
    for j, i in told:
        base[j] = values[i] * width[j]
        basis[j] = -rows[i, free] * width[j] / width[free]
    return base, basis, free, follow


def _narrowed(A: FloatArray, b: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the box that every row by itself leaves of the box, a few times over."""
    low, high = low.copy(), high.copy()
    for _ in range(4):
        least = np.where(A > 0, A * low, A * high)
        rest = b[:, None] - (least.sum(axis=1, keepdims=True) - least)
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = rest / A
        before = high - low
        high = np.minimum(high, np.where(A > 1e-14, ends, np.inf).min(axis=0, initial=np.inf))
        low = np.maximum(low, np.where(A < -1e-14, ends, -np.inf).max(axis=0, initial=-np.inf))
        if (high - low > 0.99 * before).all():
            break
    return low, high


def _log_mass(steep: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log of the integral of exp(-s·z) over [0, 1], and the mean of that density, for either sign of s."""
    size = np.maximum(np.abs(steep), 1e-7)
    log, mean = np.log(-np.expm1(-size)) - np.log(size), 1 / size - 1 / np.expm1(np.minimum(size, 700.0))
    flat = np.abs(steep) < 1e-4
    log, mean = np.where(flat, -size / 2 + size**2 / 24, log), np.where(flat, 0.5 - size / 12, mean)
    return np.where(steep < 0, log - steep, log), np.where(steep < 0, 1.0 - mean, mean)


def _best(A: FloatArray, b: FloatArray) -> FloatArray:
    """Return the tilt that accepts most."""
    from scipy.optimize import minimize

    if not len(b):
        return np.zeros(0)

    def cost(t: FloatArray) -> tuple[float, FloatArray]:
        log, mean = _log_mass(A.T @ t)
        return float(t @ b + log.sum()), b - A @ mean

    found = minimize(cost, np.zeros(len(b)), jac=True, bounds=[(0, None)] * len(b), method="L-BFGS-B", options={"maxiter": 500})
    return np.where(found.x > 1e-9, found.x, 0.0)
