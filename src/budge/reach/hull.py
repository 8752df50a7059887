"""Uniform draws from bounded polytopes under several rows, one by one, each by the simplest law that is exact.

A polytope is a triangulation up to `EXACT` dimensions, beyond that tilted proposals where they accept enough (`tilted`), else hit-and-run (`walks`), which
is approximate. Coordinates are scaled to their box; equalities and thin directions are solved out by an orthonormal basis of what they leave open.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

import numpy as np
import numpy.typing as npt

from budge.errors import DrawError
from budge.program.lp import argmin, least, span
from budge.reach.accept import Words, first_accepted, times
from budge.reach.room import SLACK, THIN
from budge.reach.streams import unit
from budge.reach.tilted import Axis, Side, Tilted, tilted
from budge.reach.walks import Mixing, mixing_of, walk

__all__ = ["FLAT", "Hull", "Hulls", "fan", "mixed", "solved", "spacings", "volumes_of"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
ENOUGH = 2.0**-11  # share of tilted proposals accepted from which they are used
FLAT = 1e-10  # share of its bounding box below which a polytope is looked at by itself
MOST = 20_000  # polytopes whose emptiness is decided one by one
MOST_NUMBERS = 200_000  # rows times coordinates of a polytope that is looked at
SIGNS = 6  # absolute values of a row that are written as rows, one per choice of signs
EXACT = 5  # dimensions up to which a triangulation is cheap


class Hulls:
    """Polytopes of any rows, one by one: ``slopes[i] · y <= limits[i]``, or ``==`` where that is said, within a box.

    Rows may have absolute values as well, ``bend · |y - at|``; few of them are written as rows without.
    """

    def __init__(
        self, slopes: FloatArray, limits: FloatArray, equal: BoolArray, low: FloatArray, high: FloatArray, label: str, bend: FloatArray, at: FloatArray
    ) -> None:
        if slopes[0].size > MOST_NUMBERS:
            what = f"{slopes.shape[1]:,} rows couple {slopes.shape[2]:,} continuous features, more than are drawn together"
            raise DrawError(what, remedy="couple fewer continuous features by constraints")
        self.low, self.high, self.label = low, high, label
        self.slopes, self.limits, self.bend, self.at, self.equal = _straight(slopes, limits, bend, at, equal, low, high)
        self._made: dict[bytes, Hull | None] = {}

    def _make(self, i: int) -> Hull | None:
        rows, limits, same = self.slopes[i], self.limits[i], self.equal
        parts = [rows[~same], limits[~same], rows[same], limits[same], self.low[i], self.high[i], self.bend[i][~same], self.at[i][~same]]
        key = b"|".join(part.tobytes() for part in parts)
        if key not in self._made:
            self._made[key] = Hull.make(*parts[:4], low=parts[4], high=parts[5], bend=parts[6], at=parts[7])
        return self._made[key]

    def hull(self, i: int) -> Hull:
        """Return one polytope, which is not empty."""
        found = self._make(i)
        assert found is not None
        return found

    @cached_property
    def empty(self) -> BoolArray:
        """Which have no point; where the middle of the box is one, that is not computed."""
        low, high = self.low[:, None, :], self.high[:, None, :]
        ends = np.stack([self.slopes * y + self.bend * np.abs(y - self.at) for y in (low, high, np.clip(self.at, low, high), (low + high) / 2)])
        fewest, most, middle = ends.min(axis=0).sum(axis=2), ends.max(axis=0).sum(axis=2), ends[3].sum(axis=2)
        scale = SLACK * np.maximum(1.0, np.maximum(np.abs(self.limits), np.abs(ends).max(axis=(0, 3))))
        result = ((fewest > self.limits + scale) | (self.equal & (most < self.limits - scale))).any(axis=1)
        sure = (~self.equal & (middle < self.limits - scale)).all(axis=1)
        doubtful = np.flatnonzero(~result & ~sure)
        if len(doubtful) > MOST:
            what, remedy = f"{len(doubtful)} configurations each leave a polytope open", "declare some whole-numbered features real, or narrow their bounds"
            raise DrawError(what, where=f"part {self.label}", remedy=remedy)
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


def _straight(
    slopes: FloatArray, limits: FloatArray, bend: FloatArray, at: FloatArray, equal: BoolArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, BoolArray]:
    """Return rows in which an absolute value that keeps its sign in the box is linear, and one row per choice of signs where these are few."""
    low, high = low[:, None, :], high[:, None, :]
    told = np.where((at > low) & (at < high), 0.0, np.where(at <= low, bend, -bend))
    slopes, limits, bend = slopes + told, limits + (told * at).sum(axis=2), bend - np.abs(told)
    bent = [np.flatnonzero(bend[:, r].any(axis=0)) for r in range(len(equal))]
    signs = [list(product((1.0, -1.0), repeat=len(places))) if len(places) <= SIGNS else [(0.0,) * len(places)] for places in bent]
    which = np.repeat(np.arange(len(equal)), [len(some) for some in signs])
    way = np.zeros((len(which), slopes.shape[2]))
    for row, (r, chosen) in zip(way, ((r, chosen) for r, some in enumerate(signs) for chosen in some)):
        row[bent[r]] = chosen
    way = way * bend[:, which]
    return slopes[:, which] + way, limits[:, which] + (way * at[:, which]).sum(axis=2), bend[:, which] - np.abs(way), at[:, which], equal[which]


@dataclass(frozen=True)
class Hull:
    """``{r = base + basis · y : A y <= b}`` under several rows; 0 lies inside."""

    A: FloatArray  # over the free coordinates y, rows of length 1
    b: FloatArray
    base: FloatArray
    basis: FloatArray
    given: tuple[FloatArray, ...]  # rows, limits, equalities and their values in the unit box; low and width; factors and places of absolute values
    bent: bool = False  # whether rows have absolute values: it is drawn by proposals alone

    @classmethod
    def make(
        cls, A: FloatArray, b: FloatArray, E: FloatArray, e: FloatArray, *,
        low: FloatArray, high: FloatArray, bend: FloatArray | None = None, at: FloatArray | None = None,
    ) -> Hull | None:  # fmt: skip
        """Return the hull of rows, equalities and a box, flat directions solved out; None where it is empty."""
        if bend is not None and at is not None and bend.any():
            return cls._bent(A, b, E, e, low, high, bend, at)
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

    @classmethod
    def _bent(
        cls, A: FloatArray, b: FloatArray, E: FloatArray, e: FloatArray, low: FloatArray, high: FloatArray, bend: FloatArray, at: FloatArray
    ) -> Hull | None:
        """Return the hull of rows with absolute values: whether it is empty, and how flat, is seen with a coordinate more for each of them."""
        r, j = np.nonzero(bend)
        n, k, place = len(r), A.shape[1], at[r, j]
        more, one = np.zeros((len(A), n)), np.eye(k)[j]
        more[r, np.arange(n)] = bend[r, j]
        rows = np.block([[A, more], [one, -np.eye(n)], [-one, -np.eye(n)]])
        most = np.maximum(np.abs(low[j] - place), np.abs(high[j] - place))
        ends = {"low": np.r_[low, np.zeros(n)], "high": np.r_[high, most]}
        lifted = cls.make(rows, np.r_[b, place, -place], np.hstack([E, np.zeros((len(E), n))]), e, **ends)
        if lifted is None:
            return None
        ways, sizes, _ = np.linalg.svd(lifted.basis[:k], full_matrices=False)
        width = np.where(high > low, high - low, 1.0)
        still = np.eye(k)[high <= low]
        unit = (A * width, b - A @ low, np.vstack([E * width, still]), np.r_[e - E @ low, np.zeros(len(still))])
        given = (*unit, low, width, bend * width, (at - low) / width)
        return cls(A[:0], b[:0], lifted.base[:k], ways[:, sizes > THIN * max(1.0, sizes.max(initial=0.0))], given, bent=True)

    @property
    def dimension(self) -> int:
        """Number of free coordinates."""
        return int(self.basis.shape[1])

    @cached_property
    def method(self) -> str:
        """How it is drawn."""
        return "triangulated" if self._few else "chain" if self._tilted is None else "tilted"

    @property
    def _few(self) -> bool:
        return self.dimension <= (0 if self.bent else EXACT)

    def is_exact(self, weighed: bool) -> bool:
        """Return whether draws are exactly uniform and, where that matters, the volume is computed, not estimated."""
        return self._few or (self.method != "chain" and not weighed)

    @cached_property
    def log_volume(self) -> float:
        """Logarithm of the volume within its own affine hull: estimated where it is drawn by tilted proposals, not a number where by a chain."""
        if self._few:
            return math.log(self._simplices[1].sum()) + float(np.linalg.slogdet(self.basis.T @ self.basis)[1]) / 2
        return math.nan if self._tilted is None else self._tilted.log_volume(self.given[5])  # type: ignore[arg-type]

    def at(self, u: FloatArray) -> FloatArray:
        """Return one point per row of u, numbers in [0, 1), dimension + 1 of them or more; up to `EXACT` dimensions."""
        corners, volumes = self._simplices
        ends = np.cumsum(volumes)
        which = np.minimum(np.searchsorted(ends, u[:, 0] * ends[-1], side="right"), len(ends) - 1)
        return np.asarray(self.base + times(mixed(corners[which], spacings(u[:, 1 : self.dimension + 1])), self.basis.T))

    def draw(self, draws: IntArray, words: Words) -> FloatArray:
        """Return one point per draw."""
        if self._few:
            return self.at(unit(words(draws, 0, self.dimension + 1)))
        if self._tilted is None:
            return np.asarray(self.base + times(walk(self.A, self.b, self.mixing, draws, words), self.basis.T))

        def propose(_: IntArray, some: npt.NDArray[np.uint64], law: Tilted = self._tilted) -> tuple[FloatArray, BoolArray]:
            values, good = law.propose(some)
            return np.stack([values[j] for j in range(len(self.base))], axis=1), good

        made = first_accepted(draws, words, self._tilted.width, propose, len(self.base))
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
        made = _unit_tilted(len(self.base), *(part.tobytes() for part in (*self.given[:4], *self.given[6:])))
        if made is None and self.bent:
            raise DrawError(
                f"fewer than 1 in {1 / ENOUGH:,.0f} proposals are accepted under a total of absolute values and other rows",
                remedy="couple fewer continuous features, or narrow their bounds",
            )
        return made

    @cached_property
    def _simplices(self) -> tuple[FloatArray, FloatArray]:
        """Corners and volumes of a triangulation."""
        from scipy.spatial import HalfspaceIntersection

        if self.dimension == 0:
            return np.zeros((1, 1, 0)), np.ones(1)
        if self.dimension == 1:
            ends = self.b / self.A[:, 0]
            corners = np.array([[ends[self.A[:, 0] < 0].max()], [ends[self.A[:, 0] > 0].min()]])
        else:
            low, high = span(self.A, self.b)
            size = high - low  # thin in a slanted direction is still thin; scaling helps where a direction is an axis
            corners = HalfspaceIntersection(np.hstack([self.A * size, -self.b[:, None]]), np.zeros(self.dimension)).intersections * size
        cells = corners[fan(corners, np.arange(len(corners)))]
        volumes = volumes_of(cells)
        return cells[volumes > 0], volumes[volumes > 0]


@lru_cache(maxsize=256)
def _unit_tilted(k: int, *parts: bytes) -> Tilted | None:
    """Return tilted proposals for ``A y <= b, E y = e`` in the unit box; None where too few of them would be accepted."""
    A, b, E, e, *bends = (np.frombuffer(part) for part in parts)
    bend, at = (part.reshape(-1, k) for part in bends or (np.zeros_like(A), np.zeros_like(A)))
    axes = {j: Axis.span(0.0, 1.0, cuts=at[bend[:, j] > 0, j]) for j in range(k)}
    sides, equal = (
        [
            Side({j: axes[j].term(c, [(f, p)] if f else []) for j, (c, f, p) in enumerate(zip(*row)) if c or f}, limit)
            for *row, limit in zip(rows.reshape(-1, k).tolist(), factors.tolist(), places.tolist(), limits.tolist())
        ]
        for rows, limits, factors, places in ((A, b, bend, at), (E, e, np.zeros((len(e), k)), np.zeros((len(e), k))))
    )
    made = tilted(axes, sides, equal)
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


def volumes_of(corners: FloatArray) -> FloatArray:
    """Return the volumes of simplices, (…, d + 1, d)."""
    return np.asarray(np.abs(np.linalg.det(corners[..., 1:, :] - corners[..., :1, :])) / math.factorial(corners.shape[-1]))


def fan(points: FloatArray, some: IntArray) -> IntArray:
    """Return a triangulation of some points as choices of them, (s, d + 1): a fan from one corner over the facets. None where they are flat."""
    from scipy.spatial import ConvexHull, QhullError

    d = points.shape[1]
    nothing = np.zeros((0, d + 1), dtype=np.int64)
    if len(some) <= d:
        return nothing
    size = np.ptp(points[some], axis=0)
    if (size <= FLAT * np.maximum(1.0, np.abs(points[some]).max(axis=0))).any():
        return nothing
    scaled = (points[some] - points[some].min(axis=0)) / size
    # a corner in which many rows meet comes many times, apart by rounding, which the hull takes for thin facets
    _, keep = np.unique(np.round(scaled, 9), axis=0, return_index=True)
    some, scaled = some[np.sort(keep)], scaled[np.sort(keep)]
    if d == 1:
        return some[[[int(scaled.argmin()), int(scaled.argmax())]]]
    if len(some) <= d:
        return nothing
    for options in ("Qt", "QJ"):  # the second moves corners by some 1e-13, so that no facet is thin
        try:
            facets = ConvexHull(scaled, qhull_options=options).simplices
            break
        except QhullError:
            continue
    else:
        return nothing
    facets = facets[~(facets == 0).any(axis=1)]  # those that hold the corner itself have no volume with it
    return np.asarray(some[np.concatenate([np.zeros((len(facets), 1), dtype=np.int64), facets], axis=1)])


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
        loose = inner_limits + 1e-7  # the solver's own tolerance
        tight = np.array([limit - least(row, inner, loose) <= 1e-6 for row, limit in zip(inner, inner_limits)])
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
