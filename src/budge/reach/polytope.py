"""Uniform draws from bounded polytopes under several rows, each by the simplest law that is exact.

A polytope is a point, an interval, up to `EXACT` dimensions a triangulation, beyond that tilted proposals where they accept enough (`tilted`), else
hit-and-run (`walks`), which is approximate. Coordinates are scaled to their box; equalities and thin directions are solved out by an orthonormal basis
of what they leave open.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from budge.errors import DrawError
from budge.program.lp import argmin, least, span
from budge.reach.accept import Words, first_accepted, times
from budge.reach.room import SLACK, THIN
from budge.reach.streams import unit
from budge.reach.tilted import Side, Span, Tilted, tilted
from budge.reach.walks import Mixing, mixing_of, walk

__all__ = ["Hull", "Hulls", "mixed", "solved", "spacings"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
ENOUGH = 2.0**-11  # share of tilted proposals accepted from which they are used
MOST = 20_000  # polytopes whose emptiness is decided one by one
EXACT = 5  # dimensions up to which a triangulation is cheap


class Hulls:
    """Polytopes of any rows, one by one: ``slopes[i] · y <= limits[i]``, or ``==`` where that is said, within a box."""

    def __init__(self, slopes: FloatArray, limits: FloatArray, equal: BoolArray, low: FloatArray, high: FloatArray, label: str) -> None:
        self.slopes, self.limits, self.equal, self.low, self.high, self.label = slopes, limits, equal, low, high, label
        self._made: dict[bytes, Hull | None] = {}

    def _make(self, i: int) -> Hull | None:
        rows, limits, same = self.slopes[i], self.limits[i], self.equal
        parts = [rows[~same], limits[~same], rows[same], limits[same], self.low[i], self.high[i]]
        key = b"|".join(part.tobytes() for part in parts)
        if key not in self._made:
            self._made[key] = Hull.make(*parts[:4], low=parts[4], high=parts[5])
        return self._made[key]

    def hull(self, i: int) -> Hull:
        """Return one polytope, which is not empty."""
        found = self._make(i)
        assert found is not None
        return found

    @cached_property
    def empty(self) -> BoolArray:
        """Which have no point; where the middle of the box is one, that is not computed."""
        ends = np.stack([self.slopes * self.low[:, None, :], self.slopes * self.high[:, None, :]])
        fewest, most, middle = ends.min(axis=0).sum(axis=2), ends.max(axis=0).sum(axis=2), ends.mean(axis=0).sum(axis=2)
        scale = SLACK * np.maximum(1.0, np.maximum(np.abs(self.limits), np.abs(ends).max(axis=(0, 3))))
        result = ((fewest > self.limits + scale) | (self.equal & (most < self.limits - scale))).any(axis=1)
        sure = (~self.equal & (middle < self.limits - scale)).all(axis=1)
        doubtful = np.flatnonzero(~result & ~sure)
        if len(doubtful) > MOST:
            raise DrawError(
                f"{len(doubtful)} configurations each leave a polytope open",
                where=f"part {self.label}",
                remedy="declare some whole-numbered features real, or narrow their bounds",
            )
        result[doubtful] = [self._make(i) is None for i in doubtful.tolist()]
        return np.asarray(result)

    @cached_property
    def dimensions(self) -> IntArray:
        """Dimension of each; -1 where it is empty."""
        return np.array([-1 if gone else self.hull(i).dimension for i, gone in enumerate(self.empty)], dtype=np.int64)

    @cached_property
    def log_volumes(self) -> FloatArray:
        """Logarithm of the volume of each within its own affine hull; not a number where it is not known."""
        return np.array([-math.inf if gone else self.hull(i).log_volume for i, gone in enumerate(self.empty)])

    def value(self, i: int, slope: FloatArray) -> float | None:
        """Return ``slope · y`` where it is the same everywhere in polytope i, else None."""
        return self.hull(i).value(slope)

    def draw(self, which: IntArray, draws: IntArray, words: Words) -> FloatArray:
        """Return one point of polytope which[i] for draw draws[i]."""
        points = np.empty((len(which), self.low.shape[1]))
        for i in np.unique(which).tolist():
            mine = np.flatnonzero(which == i)
            points[mine] = self.hull(i).draw(draws[mine], words)
        return points

    @property
    def chains(self) -> list[Mixing]:
        """How chains walk the polytopes that are drawn so, as far as they have been looked at."""
        return [hull.mixing for hull in self._made.values() if hull is not None and hull.method == "chain"]

    def approximate(self, weighed: bool) -> BoolArray:
        """Return which are drawn by a chain or, where they are weighed by volume, have an estimated one."""
        return np.array([not gone and not self.hull(i).is_exact(weighed) for i, gone in enumerate(self.empty)], dtype=bool)


@dataclass(frozen=True)
class Hull:
    """``{r = base + basis · y : A y <= b}`` under several rows; 0 lies inside."""

    A: FloatArray  # over the free coordinates y, rows of length 1
    b: FloatArray
    base: FloatArray
    basis: FloatArray
    given: tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]  # rows, limits, equalities, values, low, high

    @classmethod
    def make(cls, A: FloatArray, b: FloatArray, E: FloatArray, e: FloatArray, *, low: FloatArray, high: FloatArray) -> Hull | None:
        """Return the hull of rows, equalities and a box, flat directions solved out; None where it is empty."""
        k = len(low)
        width = high - low
        still = width <= THIN * np.maximum(1.0, np.maximum(np.abs(low), np.abs(high)))
        width = np.where(still, 1.0, width)
        # r = low + width * u with u in the unit box; rows are divided by their length, so that all numbers are about 1
        rows, limits = _unit(A * width, b - A @ low)
        equal_rows, equal_to = _unit(E * width, e - E @ low)
        rows = np.vstack([rows, np.eye(k)[~still], -np.eye(k)[~still]])
        limits = np.concatenate([limits, np.ones((~still).sum()), np.zeros((~still).sum())])
        equal_rows = np.vstack([equal_rows, np.eye(k)[still]])  # a coordinate that cannot move is an equality
        equal_to = np.concatenate([equal_to, ((high - low) / 2)[still]])
        # polytopes that differ by where they lie are the same from here on, to the bit: what is learnt of one serves the others
        rows, limits, equal_rows, equal_to = (np.round(numbers, 12) for numbers in (rows, limits, equal_rows, equal_to))
        found = _flatten(rows, limits, equal_rows, equal_to)
        if found is None:
            return None
        inner, inner_limits, base, basis, tight_rows, tight_to = found
        scaled = (rows[: len(A)], limits[: len(A)], tight_rows, tight_to, low, width)
        return cls(inner, inner_limits, low + width * base, width[:, None] * basis, scaled)

    @property
    def dimension(self) -> int:
        """Number of free coordinates."""
        return int(self.basis.shape[1])

    @cached_property
    def method(self) -> str:
        """How it is drawn."""
        if self.dimension <= EXACT:
            return ("point", "interval", *["triangulated"] * (EXACT - 1))[self.dimension]
        return "chain" if self._tilted is None else "tilted"

    def is_exact(self, weighed: bool) -> bool:
        """Return whether draws are exactly uniform and, where that matters, the volume is computed, not estimated."""
        return self.dimension <= EXACT or (self.method != "chain" and not weighed)

    @cached_property
    def log_volume(self) -> float:
        """Logarithm of the volume within its own affine hull: estimated where it is drawn by tilted proposals, not a number where by a chain."""
        if self.dimension == 0:
            return 0.0
        stretch = float(np.linalg.slogdet(self.basis.T @ self.basis)[1]) / 2
        if self.dimension == 1:
            low, high = self._interval
            return math.log(high - low) + stretch
        if self.dimension <= EXACT:
            return math.log(self._simplices[1].sum()) + stretch
        return math.nan if self._tilted is None else self._tilted.log_volume(self.given[5])  # type: ignore[arg-type]

    def at(self, u: FloatArray) -> FloatArray:
        """Return one point per row of u, numbers in [0, 1), dimension + 1 of them or more; up to `EXACT` dimensions."""
        if self.dimension == 0:
            return np.tile(self.base, (len(u), 1))
        if self.dimension == 1:
            low, high = self._interval
            y = low + (high - low) * u[:, :1]
        else:
            corners, volumes = self._simplices
            ends = np.cumsum(volumes)
            which = np.minimum(np.searchsorted(ends, u[:, 0] * ends[-1], side="right"), len(ends) - 1)
            y = mixed(corners[which], spacings(u[:, 1 : self.dimension + 1]))
        return np.asarray(self.base + times(y, self.basis.T))

    def draw(self, draws: IntArray, words: Words) -> FloatArray:
        """Return one point per draw."""
        if self.dimension <= EXACT:
            return self.at(unit(words(draws, 0, self.dimension + 1)))
        if self._tilted is None:
            return np.asarray(self.base + times(walk(self.A, self.b, self.mixing, draws, words), self.basis.T))
        made = first_accepted(draws, words, self._tilted.width, self._propose, len(self.base))
        return np.asarray(self.given[4] + self.given[5] * made.all_from(f"a polytope in {self.dimension} dimensions"))

    def value(self, slope: FloatArray) -> float | None:
        """Return ``slope · r`` where it is the same everywhere, else None."""
        if np.linalg.norm(slope @ self.basis) > SLACK * np.linalg.norm(slope):
            return None
        return float(slope @ self.base)

    @cached_property
    def mixing(self) -> Mixing:
        """How chains walk it, where that is how it is drawn."""
        return mixing_of(self.A, self.b)

    @cached_property
    def _tilted(self) -> Tilted | None:
        return _unit_tilted(len(self.base), *(part.tobytes() for part in self.given[:4]))

    def _propose(self, _: IntArray, words: npt.NDArray[np.uint64]) -> tuple[FloatArray, BoolArray]:
        assert self._tilted is not None
        values, good = self._tilted.propose(words)
        return np.stack([values[j] for j in range(len(self.base))], axis=1), good

    @cached_property
    def _interval(self) -> tuple[float, float]:
        slope = self.A[:, 0]
        return float(np.max(self.b[slope < 0] / slope[slope < 0])), float(np.min(self.b[slope > 0] / slope[slope > 0]))

    @cached_property
    def _simplices(self) -> tuple[FloatArray, FloatArray]:
        """Corners and volumes of a triangulation: the facets of the hull, each joined to the inner centre."""
        from scipy.spatial import ConvexHull, HalfspaceIntersection

        low, high = span(self.A, self.b)
        size = high - low  # thin in a slanted direction is still thin; scaling helps where a direction is an axis
        halves = np.hstack([self.A * size, -self.b[:, None]])
        corners = HalfspaceIntersection(halves, np.zeros(self.dimension)).intersections
        facets = corners[ConvexHull(corners, qhull_options="Qt").simplices] * size
        cells = np.concatenate([np.zeros((len(facets), 1, self.dimension)), facets], axis=1)
        volumes = np.abs(np.linalg.det(facets)) / math.factorial(self.dimension)
        return cells[volumes > 0], volumes[volumes > 0]


@lru_cache(maxsize=256)
def _unit_tilted(k: int, *parts: bytes) -> Tilted | None:
    """Return tilted proposals for ``A y <= b, E y = e`` in the unit box; None where too few of them would be accepted."""
    A, b, E, e = (np.frombuffer(part) for part in parts)
    sides, equal = (
        [Side({j: c for j, c in enumerate(row) if c}, limit) for row, limit in zip(rows.reshape(-1, k).tolist(), limits.tolist())]
        for rows, limits in ((A, b), (E, e))
    )
    made = tilted({j: Span(0.0, 1.0) for j in range(k)}, sides, equal)
    return made if made.acceptance >= ENOUGH else None


def spacings(u: FloatArray) -> FloatArray:
    """Return d + 1 shares of 1 per row, uniform over all such shares, from d uniforms."""
    return np.diff(np.sort(u, axis=1), axis=1, prepend=0.0, append=1.0)


def mixed(corners: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the mixtures of corners, (n, d + 1, d), by shares, (n, d + 1)."""
    point = corners[:, 0] * shares[:, :1]
    for k in range(1, shares.shape[1]):
        point += corners[:, k] * shares[:, k : k + 1]
    return np.asarray(point)


def _unit(rows: FloatArray, limits: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows of length 1; rows of zeros stay."""
    size = np.linalg.norm(rows, axis=1)
    size = np.where(size > 0, size, 1.0)
    return rows / size[:, None], limits / size


def _flatten(
    rows: FloatArray, limits: FloatArray, equal_rows: FloatArray, equal_to: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray] | None:
    """Return rows over free coordinates about an inner point, that point, the basis, and all equalities; None where nothing is feasible."""
    k = rows.shape[1]
    base, basis = np.zeros(k), np.eye(k)
    all_rows, all_to = np.zeros((0, k)), np.zeros(0)
    for _ in range(k + 1):
        if len(equal_rows):
            step, rest, off = solved(equal_rows @ basis, (equal_to - equal_rows @ base)[None])
            if off[0]:
                return None
            base, basis = base + basis @ step[0], basis @ rest
            all_rows, all_to = np.vstack([all_rows, equal_rows]), np.concatenate([all_to, equal_to])
        inner, inner_limits = rows @ basis, limits - rows @ base
        size = np.linalg.norm(inner, axis=1)
        flat = size <= 1e-12
        if (inner_limits[flat] < -1e-9).any():
            return None
        inner, inner_limits = _unit(inner[~flat], inner_limits[~flat])
        if basis.shape[1] == 0:
            return np.zeros((0, 0)), np.zeros(0), base, basis, all_rows, all_to
        radius, center = _center(inner, inner_limits)
        if radius < -1e-8:
            return None
        if radius > THIN:
            return inner, inner_limits - inner @ center, base + basis @ center, basis, all_rows, all_to
        tight = _tight(inner, inner_limits)
        if not tight.any():
            return None
        equal_rows, equal_to = inner[tight] @ basis.T, inner_limits[tight] + inner[tight] @ (basis.T @ base)
    return None


def solved(E: FloatArray, F: FloatArray) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return one solution of ``E y = F[i]`` per row of F, an orthonormal basis of what they leave open, and where there is none."""
    u, s, vt = np.linalg.svd(E)
    rank = int((s > 1e-10 * max(1.0, s.max(initial=0.0))).sum())
    base = ((F @ u[:, :rank]) / s[:rank]) @ vt[:rank]
    return base, vt[rank:].T, (np.abs(base @ E.T - F) > 10 * SLACK * np.maximum(1.0, np.abs(F))).any(axis=1)


def _center(A: FloatArray, b: FloatArray) -> tuple[float, FloatArray]:
    """The largest ball that fits (its radius is negative where nothing does)."""
    goal = np.r_[np.zeros(A.shape[1]), -1.0]
    found = argmin(goal, np.hstack([A, np.ones((len(A), 1))]), b)
    return float(np.min(b - A @ found[:-1])), found[:-1]


def _tight(A: FloatArray, b: FloatArray) -> BoolArray:
    """The rows that hold with equality everywhere."""
    loose = b + 1e-7  # the solver's own tolerance
    return np.array([limit - least(row, A, loose) <= 1e-6 for row, limit in zip(A, b)])
