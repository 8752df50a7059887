"""Exact draws under linear rows by proposals: independent coordinates, tilted towards the rows, accepted by what the rows leave unused.

Proposals in proportion to ``exp(-t·Az)``, accepted with probability ``exp(-t·(b - Az))`` where ``Az <= b``, are uniform. The t >= 0 that minimises the
convex ``t·b + Σ log Z_j`` accepts most; rows that hardly cut get t = 0 and are only tested. An equality determines one coordinate, whose bounds then are
rows. Without rows this is plain rejection.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.reach.accept import fixed_words
from budge.reach.streams import open_unit

__all__ = ["Points", "Side", "Span", "Tilted", "tilted"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
WordArray = npt.NDArray[np.uint64]
Key = Any  # what a coordinate is called
Term = Any  # a slope over the values of a span, or one number per listed point
PILOTS = 2**15  # proposals that tell what share is accepted
SOLVED = 1e-6  # what the bounds of a whole number that an equality determines forgive


@dataclass(frozen=True)
class Span:
    """A coordinate with the reals, or the whole numbers, from low to high."""

    low: float
    high: float
    whole: bool = False

    @property
    def width(self) -> float:
        """Length, or number of values."""
        return self.high - self.low + self.whole

    def at(self, steep: float, u: FloatArray) -> FloatArray:
        """Return values with density ``exp(-steep·value)``, by inversion."""
        size, width = abs(steep), self.width
        steps = u * width if size * width < 1e-12 else np.log1p(u * math.expm1(-size * width)) / -size
        steps = np.clip(np.floor(steps) if self.whole else steps, 0.0, self.high - self.low)
        return np.asarray(self.low + steps if steep >= 0 else self.high - steps)

    def mass(self, steep: float) -> tuple[float, float]:
        """Return the logarithm of the total of that density, and its mean."""
        size, width = abs(steep), self.width
        if width == 0:
            return -steep * self.low, self.low
        if size * width < 1e-4:
            log = math.log(width) - size * (width - self.whole) / 2 + size**2 * (width**2 - self.whole) / 24
            mean = (width - self.whole) / 2 - size * (width**2 - self.whole) / 12
        else:
            log = math.log(-math.expm1(-size * width)) - math.log(-math.expm1(-size) if self.whole else size)
            mean = (1 / math.expm1(min(size, 700.0)) if self.whole else 1 / size) - width / math.expm1(min(size * width, 700.0))
        return (log - steep * self.low, self.low + mean) if steep >= 0 else (log - steep * self.high, self.high - mean)


@dataclass(frozen=True)
class Points:
    """A coordinate with listed points; its values are their numbers."""

    weights: FloatArray  # logarithms

    def at(self, steep: Term, u: FloatArray) -> FloatArray:
        """Return numbers of points in proportion to ``weight·exp(-steep)``."""
        ends = np.cumsum(self._shares(steep)[1])
        return np.asarray(np.minimum(np.searchsorted(ends, u * ends[-1], side="right"), len(ends) - 1))

    def mass(self, steep: Term) -> tuple[float, FloatArray]:
        """Return the logarithm of the total, and the share of each point."""
        top, shares = self._shares(steep)
        return top + math.log(shares.sum()), shares / shares.sum()

    def _shares(self, steep: Term) -> tuple[float, FloatArray]:
        logs = self.weights - steep
        return float(logs.max()), np.exp(logs - logs.max())


Axis = Span | Points


@dataclass(frozen=True)
class Side:
    """``Σ terms <= limit``, or ``==`` where that is said."""

    terms: Mapping[Key, Term]
    limit: float

    def left(self, values: Mapping[Key, npt.NDArray[Any]]) -> FloatArray:
        """Return what is left of the limit."""
        left = np.full(len(next(iter(values.values()))) if values else 1, self.limit)
        for name, term in self.terms.items():
            left -= term * values[name] if isinstance(term, float) else term[values[name]]
        return left

    def ends(self, axes: Mapping[Key, Axis]) -> dict[Key, tuple[float, float]]:
        """Return the least and the most that each coordinate adds."""
        found = {}
        for name, term in self.terms.items():
            axis = axes[name]
            some = (term * axis.low, term * axis.high) if isinstance(axis, Span) else (np.min(term), np.max(term))
            found[name] = (float(min(some)), float(max(some)))
        return found

    def without(self, name: Key, told: Side) -> Side:
        """Return the row with a coordinate replaced by ``told.limit - Σ told.terms``."""
        terms = dict(self.terms)
        c = terms.pop(name, 0.0)
        for other, term in told.terms.items() if c else ():
            terms[other] = terms.get(other, 0.0) - c * term
        return Side(terms, self.limit - c * told.limit)


@dataclass(frozen=True)
class Tilted:
    """Proposals along axes under rows, one tilt per row; `solved` are coordinates that equalities determine, each by those that come later or are free."""

    axes: Mapping[Key, Axis]
    sides: tuple[Side, ...]
    tilt: FloatArray
    solved: tuple[tuple[Key, bool, Side], ...] = ()

    @property
    def width(self) -> int:
        """Words of one proposal."""
        return len(self.axes) + 1

    @cached_property
    def _steep(self) -> dict[Key, Any]:
        return {name: _steep(name, self.sides, self.tilt) for name in self.axes}

    def propose(self, words: WordArray) -> tuple[dict[Key, npt.NDArray[Any]], BoolArray]:
        """Return one proposal per row of words, by coordinate, and which of them are accepted."""
        u = open_unit(words)
        values = {name: axis.at(self._steep[name], u[:, j]) for j, (name, axis) in enumerate(self.axes.items())}
        for name, whole, told in reversed(self.solved):
            value = np.broadcast_to(told.left(values), (len(u),))
            near = np.rint(value)
            values[name] = np.where(np.abs(value - near) < SOLVED, near, value) if whole else value
        good, unused = np.ones(len(u), dtype=bool), np.zeros(len(u))
        for side, t in zip(self.sides, self.tilt.tolist()):
            left = side.left(values)
            good &= left >= 0
            if t:
                unused += t * np.maximum(left, 0.0)
        return values, good & (u[:, -1] < np.exp(-unused))

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

    def log_volume(self, scale: Mapping[Key, float]) -> float:
        """Return an estimate of the logarithm of the volume within its affine hull, coordinates being stretched by `scale`."""
        ways = dict(zip(self.axes, np.eye(len(self.axes))))
        for name, _, told in reversed(self.solved):
            ways[name] = -sum((term * ways[other] for other, term in told.terms.items()), start=np.zeros(len(self.axes)))
        basis = np.array([scale[name] * way for name, way in ways.items()])
        mass = sum(axis.mass(self._steep[name])[0] for name, axis in self.axes.items())
        limits = np.array([side.limit for side in self.sides])
        return math.log(max(self.acceptance, 1e-300)) + float(self.tilt @ limits) + mass + float(np.linalg.slogdet(basis.T @ basis)[1]) / 2


def tilted(axes: Mapping[Key, Axis], sides: Sequence[Side], equal: Sequence[Side] = ()) -> Tilted:
    """Return proposals for rows and equalities; an equality that no coordinate solves is left as two rows."""
    free, rows, todo = dict(axes), list(sides), list(equal)
    solved: list[tuple[Key, bool, Side]] = []
    while todo:
        row = todo.pop(0)
        name = _solvable(row, free)
        if name is None:
            spare = 1e-9 * max(1.0, abs(row.limit), *(abs(end) for ends in row.ends(free).values() for end in ends))
            rows += [Side(row.terms, row.limit + spare), Side({n: -t for n, t in row.terms.items()}, spare - row.limit)]
            continue
        span, slope = free.pop(name), row.terms[name]
        assert isinstance(span, Span)
        told = Side({n: t / slope for n, t in row.terms.items() if n != name}, float(row.limit / slope))
        spare = SOLVED if span.whole else 0.0
        rows += [Side({name: 1.0}, span.high + spare), Side({name: -1.0}, spare - span.low)]
        rows, todo = ([side.without(name, told) for side in some] for some in (rows, todo))
        solved.append((name, span.whole, told))
    narrow = _narrowed(free, rows)
    rows = [side for side in rows if sum(most for _, most in side.ends(narrow).values()) > side.limit]  # others are never broken
    return Tilted(narrow, tuple(rows), _best(narrow, rows), tuple(solved))


def _solvable(row: Side, axes: Mapping[Key, Axis]) -> Key | None:
    """Return the widest real coordinate of an equality, else the widest whole number with coefficient 1."""
    spans = {n: axis for n in row.terms if isinstance(axis := axes[n], Span)}
    real = {n: abs(row.terms[n]) * span.width for n, span in spans.items() if not span.whole}
    real = {n: wide for n, wide in real.items() if wide > 1e-10}
    whole = {n: span.width for n, span in spans.items() if span.whole and abs(row.terms[n]) == 1}
    found = real or whole
    return max(found, key=lambda n: (found[n], n)) if found else None


def _narrowed(axes: Mapping[Key, Axis], sides: Sequence[Side]) -> dict[Key, Axis]:
    """Return the axes that every row by itself leaves, a few times over; as they are where nothing is left."""
    found = dict(axes)
    for _ in range(4):
        for side in sides:
            ends = side.ends(found)
            least = sum(low for low, _ in ends.values())
            for name, term in side.terms.items():
                span = found[name]
                if not isinstance(span, Span) or abs(term) <= 1e-14:
                    continue
                end = float((side.limit - (least - ends[name][0])) / term)
                if span.whole:
                    spare = math.copysign(1e-9 * max(1.0, abs(end)), term)
                    end = math.floor(end + spare) if term > 0 else math.ceil(end + spare)
                low, high = (span.low, min(span.high, end)) if term > 0 else (max(span.low, end), span.high)
                if high < low:
                    return dict(axes)
                found[name] = Span(low, high, span.whole)
    return found


def _steep(name: Key, sides: Sequence[Side], tilt: npt.ArrayLike) -> Any:
    """Return how steeply a coordinate is tilted by all rows."""
    return sum((t * side.terms[name] for side, t in zip(sides, np.asarray(tilt).tolist()) if name in side.terms), start=0.0)


def _best(axes: Mapping[Key, Axis], sides: Sequence[Side]) -> FloatArray:
    """Return the tilt that accepts most."""
    from scipy.optimize import minimize

    if not sides:
        return np.zeros(0)
    limits = np.array([side.limit for side in sides])
    scale = np.array([max(sum(most - least for least, most in side.ends(axes).values()), 1e-300) for side in sides])

    def cost(t: FloatArray) -> tuple[float, FloatArray]:
        value, slope = float(t / scale @ limits), limits.copy()
        for name, axis in axes.items():
            log, mean = axis.mass(_steep(name, sides, t / scale))
            value += log
            for r, side in enumerate(sides):
                if name in side.terms:
                    slope[r] -= np.sum(mean * side.terms[name])
        return value, slope / scale

    found = minimize(cost, np.zeros(len(sides)), jac=True, bounds=[(0, None)] * len(sides), method="L-BFGS-B", options={"maxiter": 500})
    return np.asarray(np.where(found.x > 1e-9, found.x, 0.0) / scale)
