"""Uniform draws from a bounded polytope: in pieces that share no row, each by the simplest law that is exact.

A piece is a box cut by one row (`room`, any dimension), or several rows: a point, an interval, up to `EXACT` dimensions a triangulation, beyond
that tilted proposals where they accept enough (`tilted`), else hit-and-run (`walks`), which is approximate. Coordinates are scaled to their box;
equalities and thin directions are solved out by an orthonormal basis of what they leave open.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt

from budge.errors import DrawError
from budge.program.lp import argmin, least, span
from budge.reach.accept import Words, shifted, times
from budge.reach.room import SLACK, THIN, Rooms
from budge.reach.streams import unit
from budge.reach.tilted import Tilted, tilted
from budge.reach.walks import Mixing, mixing_of, walk

__all__ = ["Hull", "Polytope", "mixed", "spacings"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
EXACT = 5  # dimensions up to which a triangulation is cheap


class _Piece(Protocol):
    """Coordinates that share no row with others."""

    @property
    def dimension(self) -> int: ...
    @property
    def method(self) -> str: ...
    @property
    def measured(self) -> bool: ...
    @property
    def log_volume(self) -> float: ...
    def draw(self, draws: IntArray, words: Words) -> FloatArray: ...
    def value(self, slope: FloatArray) -> float | None: ...


@dataclass(frozen=True)
class Polytope:
    """``{r : A r <= b, E r = e, low <= r <= high}``.

    Examples
    --------
    >>> import numpy as np
    >>> from budge.reach.accept import fixed_words
    >>> triangle = Polytope.make(np.array([[1.0, 1.0]]), np.array([1.0]), low=np.zeros(2), high=np.ones(2))
    >>> round(triangle.volume, 12), triangle.dimension
    (0.5, 2)
    >>> bool((triangle.draw(np.arange(100), fixed_words("example")).sum(axis=1) <= 1 + 1e-12).all())
    True
    """

    places: tuple[IntArray, ...]  # the coordinates of each piece
    pieces: tuple[_Piece, ...]
    coordinates: int
    empty: bool = False

    @classmethod
    def make(
        cls, A: FloatArray, b: FloatArray, E: FloatArray | None = None, e: FloatArray | None = None, *, low: FloatArray, high: FloatArray
    ) -> Polytope:
        """Return the polytope of rows, equalities and a box."""
        k = len(low)
        rows = np.vstack([np.reshape(A, (-1, k)), np.zeros((0, k)) if E is None else np.reshape(E, (-1, k))])
        limits = np.concatenate([np.ravel(b), np.zeros(0) if e is None else np.ravel(e)]).astype(float)
        equal = np.arange(len(rows)) >= len(np.reshape(A, (-1, k)))
        box = _boxed(rows, limits, equal, np.asarray(low, dtype=float), np.asarray(high, dtype=float))
        if box is None:
            return cls((), (), k, empty=True)
        low, high, kept = box
        places, pieces = [], []
        for columns, mine in _components(rows[kept]):
            here = np.flatnonzero(kept)[mine]
            a, c, same = rows[np.ix_(here, columns)], limits[here], equal[here]
            piece: _Piece | None
            if len(here) <= 1:
                piece = _Room.of(a, c, bool(same.any()), low[columns], high[columns])
            else:
                piece = Hull.make(a[~same], c[~same], a[same], c[same], low=low[columns], high=high[columns])
            if piece is None:
                return cls((), (), k, empty=True)
            places.append(columns)
            pieces.append(piece)
        return cls(tuple(places), tuple(pieces), k)

    @property
    def dimension(self) -> int:
        """Number of free coordinates."""
        return sum(piece.dimension for piece in self.pieces)

    @property
    def methods(self) -> tuple[str, ...]:
        """How its pieces are drawn."""
        return tuple(piece.method for piece in self.pieces)

    @property
    def measured(self) -> bool:
        """Whether its volume is computed, not estimated."""
        return all(piece.measured for piece in self.pieces)

    @property
    def exact(self) -> bool:
        """Whether draws are independent and exactly uniform."""
        return "chain" not in self.methods

    @property
    def mixings(self) -> list[Mixing]:
        """How chains walk it, where that is how it is drawn."""
        return [piece.mixing for piece in self.pieces if isinstance(piece, Hull) and piece.method == "chain"]

    @property
    def log_volume(self) -> float:
        """Logarithm of the volume within its own affine hull; of a point: 0."""
        return -math.inf if self.empty else sum(piece.log_volume for piece in self.pieces)

    @property
    def volume(self) -> float:
        """Volume within its own affine hull; of a point: 1."""
        return math.exp(self.log_volume)

    def draw(self, draws: IntArray, words: Words) -> FloatArray:
        """Return one point per draw."""
        if self.empty:
            raise ValueError("an empty polytope has no points")
        points = np.empty((len(draws), self.coordinates))
        for number, (columns, piece) in enumerate(zip(self.places, self.pieces)):
            points[:, columns] = piece.draw(draws, shifted(words, number))
        return points

    def value(self, slope: FloatArray) -> float | None:
        """Return ``slope · r`` where it is the same everywhere in the polytope, else None."""
        found = [piece.value(slope[columns]) for columns, piece in zip(self.places, self.pieces)]
        known = [value for value in found if value is not None]
        return sum(known) if len(known) == len(found) else None


@dataclass(frozen=True)
class _Room:
    """A box cut by one row, or by none."""

    room: Rooms

    @classmethod
    def of(cls, slope: FloatArray, limit: FloatArray, equal: bool, low: FloatArray, high: FloatArray) -> _Room | None:
        if not len(slope):
            slope, limit = np.zeros((1, len(low))), np.zeros(1)
        made = Rooms(low[None], high[None], slope, limit, equal)
        return None if made.empty[0] else cls(made)

    method = "room"

    @property
    def dimension(self) -> int:
        return int(self.room.dimensions[0])

    @property
    def measured(self) -> bool:
        return not math.isnan(float(self.room.log_volumes[0]))

    @property
    def log_volume(self) -> float:
        if not self.measured:
            raise _unknown(self.dimension)
        return float(self.room.log_volumes[0])

    def draw(self, draws: IntArray, words: Words) -> FloatArray:
        return self.room.draw(np.zeros(len(draws), dtype=np.int64), draws, words).points

    def value(self, slope: FloatArray) -> float | None:
        return self.room.value(0, slope)


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

    @property
    def measured(self) -> bool:
        """Whether its volume is computed, not estimated."""
        return self.dimension <= EXACT

    @cached_property
    def log_volume(self) -> float:
        """Logarithm of the volume within its own affine hull; estimated where it is drawn by tilted proposals."""
        if self.dimension == 0:
            return 0.0
        stretch = float(np.linalg.slogdet(self.basis.T @ self.basis)[1]) / 2
        if self.dimension == 1:
            low, high = self._interval
            return math.log(high - low) + stretch
        if self.measured:
            return math.log(self._simplices[1].sum()) + stretch
        if self._tilted is None:
            raise _unknown(self.dimension)
        return self._tilted.log_volume(self.given[5])

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
        made = self._tilted.draw(draws, words)
        if not made.found.all():
            raise DrawError(
                f"{int((~made.found).sum())} of {len(draws)} draws from a polytope in {self.dimension} dimensions were not accepted",
                got=f"{made.accepted} of {made.proposed} proposals accepted",
                remedy="couple fewer continuous features",
            )
        return np.asarray(self.given[4] + self.given[5] * made.points)

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
        A, b, E, e, low, _ = self.given
        return tilted(A, b, E, e, np.zeros(len(low)), np.ones(len(low)))

    @cached_property
    def _interval(self) -> tuple[float, float]:
        slope = self.A[:, 0]
        return float(np.max(self.b[slope < 0] / slope[slope < 0])), float(np.min(self.b[slope > 0] / slope[slope > 0]))

    @cached_property
    def _simplices(self) -> tuple[FloatArray, FloatArray]:
        """Corners and volumes of a triangulation: the facets of the hull, each joined to the inner centre."""
        from scipy.spatial import ConvexHull, HalfspaceIntersection, QhullError

        low, high = span(self.A, self.b)
        size = high - low  # thin in a slanted direction is still thin; scaling helps where a direction is an axis
        halves = np.hstack([self.A * size, -self.b[:, None]])
        corners = HalfspaceIntersection(halves, np.zeros(self.dimension)).intersections
        # a corner in which many rows meet comes many times, apart by rounding, which the hull takes for thin facets
        corners = corners[np.sort(np.unique(np.round(corners, 9), axis=0, return_index=True)[1])]
        try:
            hull = ConvexHull(corners, qhull_options="Qt")
        except QhullError:  # corners moved by some 1e-13, so that no facet is thin
            hull = ConvexHull(corners, qhull_options="QJ")
        facets = corners[hull.simplices] * size
        cells = np.concatenate([np.zeros((len(facets), 1, self.dimension)), facets], axis=1)
        volumes = np.abs(np.linalg.det(facets)) / math.factorial(self.dimension)
        return cells[volumes > 0], volumes[volumes > 0]


def spacings(u: FloatArray) -> FloatArray:
    """Return d + 1 shares of 1 per row, uniform over all such shares, from d uniforms."""
    d = u.shape[1]
    if d == 2:
        cuts = [np.minimum(u[:, 0], u[:, 1]), np.maximum(u[:, 0], u[:, 1])]
    elif d == 3:
        low, high = np.minimum(u[:, 0], u[:, 1]), np.maximum(u[:, 0], u[:, 1])
        cuts = [np.minimum(low, u[:, 2]), np.maximum(low, np.minimum(high, u[:, 2])), np.maximum(high, u[:, 2])]
    else:
        cuts = list(np.sort(u, axis=1).T)
    shares = np.empty((len(u), d + 1))
    for k, (below, above) in enumerate(pairwise([np.zeros(len(u)), *cuts, np.ones(len(u))])):
        np.subtract(above, below, out=shares[:, k])
    return shares


def mixed(corners: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the mixtures of corners, (n, d + 1, d), by shares, (n, d + 1)."""
    point = corners[:, 0] * shares[:, :1]
    for k in range(1, shares.shape[1]):
        point += corners[:, k] * shares[:, k : k + 1]
    return np.asarray(point)


def _unknown(dimension: int) -> DrawError:
    return DrawError(
        f"the volume of a polytope in {dimension} dimensions is not known well enough",
        remedy="couple fewer continuous features",
    )


def _boxed(
    rows: FloatArray, limits: FloatArray, equal: npt.NDArray[np.bool_], low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]] | None:
    """Return the box with the rows of one coordinate put in, and the rows that still say something; None where nothing is feasible."""
    low, high = low.copy(), high.copy()
    used = (rows != 0).sum(axis=1)
    for i in np.flatnonzero(used == 1):
        j = int(np.flatnonzero(rows[i])[0])
        end = limits[i] / rows[i, j]
        if equal[i] or rows[i, j] > 0:
            high[j] = min(high[j], end)
        if equal[i] or rows[i, j] < 0:
            low[j] = max(low[j], end)
    slack = SLACK * np.maximum(1.0, np.maximum(np.abs(low), np.abs(high)))
    if (low > high + slack).any():
        return None
    low, high = np.minimum(low, np.maximum(high, low)), np.maximum(high, low)
    terms = np.stack([rows * low, rows * high])
    slack = SLACK * np.maximum(1.0, np.maximum(np.abs(limits), np.abs(terms).max(axis=(0, 2), initial=0.0)))
    most, fewest = terms.max(axis=0).sum(axis=1), terms.min(axis=0).sum(axis=1)
    if ((fewest > limits + slack) | (equal & (most < limits - slack))).any():
        return None
    return low, high, (used > 1) & (equal | (most > limits))


def _components(rows: FloatArray) -> list[tuple[IntArray, IntArray]]:
    """Return coordinates that hang together by rows, with their rows; those in no row come as one."""
    k = rows.shape[1]
    group = np.arange(k)
    for row in rows:
        joined = np.unique(group[row != 0])
        group[np.isin(group, joined)] = joined[0]
    beside = ~(rows != 0).any(axis=0)
    group[beside] = -1
    return [
        (np.flatnonzero(group == g), np.flatnonzero((rows[:, group == g] != 0).any(axis=1)) if g >= 0 else np.zeros(0, dtype=np.int64))
        for g in np.unique(group)
    ]


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
            step, rest, fits = _solve_out(equal_rows @ basis, equal_to - equal_rows @ base)
            if not fits:
                return None
            base, basis = base + basis @ step, basis @ rest
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
