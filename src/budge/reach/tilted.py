"""Exact draws under linear rows by proposals: independent coordinates, tilted towards the rows, accepted by what the rows leave unused.

Proposals in proportion to ``exp(-t·Az)``, accepted with probability ``exp(-t·(b - Az))`` where ``Az <= b``, are uniform. The t >= 0 that minimises the
convex ``t·b + Σ log Z_j`` accepts most; rows that hardly cut get t = 0 and are only tested. An equality determines one coordinate, whose bounds then are
rows. Rows need to be linear within pieces of an axis only: an absolute value has two pieces, a list has one per entry. Without rows this is plain rejection.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.reach.accept import fixed_words
from budge.reach.streams import open_unit

__all__ = ["Axis", "Side", "Tilted", "tilted"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
WordArray = npt.NDArray[np.uint64]
Key = Any  # what a coordinate is called
PILOTS = 2**15  # proposals that tell what share is accepted
HOPELESS = 2**13  # of which none was accepted: no more are tried
MOST_TERMS = 2**28  # terms of rows that are read in the search for the best tilt
SOLVED = 1e-6  # what the bounds of a whole number that an equality determines forgive


@dataclass(frozen=True)
class Axis:
    """A coordinate in pieces, each the reals, or the whole numbers, from low to high; `weights` are logarithms of densities."""

    low: FloatArray
    high: FloatArray
    whole: bool = False
    weights: FloatArray | float = 0.0

    @classmethod
    def span(cls, low: float, high: float, whole: bool = False, cuts: Iterable[float] = ()) -> Axis:
        """Return all from low to high, in pieces between cuts."""
        inner = np.unique([math.floor(cut) if whole else cut for cut in cuts if low < cut < high])
        inner = inner[(inner >= low) & (inner < high)]
        return cls(np.r_[low, inner + whole].astype(float), np.r_[inner, high].astype(float), whole)

    @classmethod
    def points(cls, weights: FloatArray) -> Axis:
        """Return listed points, by their numbers."""
        numbers = np.arange(float(len(weights)))
        return cls(numbers, numbers, True, weights)

    @property
    def width(self) -> FloatArray:
        """Length of each piece, or number of its values."""
        return self.high - self.low + self.whole

    def term(self, slope: float, bends: Iterable[tuple[float, float]] = ()) -> FloatArray:
        """Return ``slope·value + Σ factor·|value - at|`` by pieces, which the cuts keep apart from each `at`: slopes and what is added to them."""
        middle = (self.low + self.high) / 2
        found = np.stack([np.full(len(middle), slope), np.zeros(len(middle))])
        for factor, at in bends:
            sign = np.where(middle >= at, factor, -factor)
            found += np.stack([sign, -sign * at])
        return found

    def ends(self, term: FloatArray) -> tuple[float, float]:
        """Return the least and the most of a term."""
        values = np.stack([term[0] * self.low + term[1], term[0] * self.high + term[1]])
        return float(values.min()), float(values.max())

    def mass(self, steep: FloatArray) -> tuple[float, FloatArray]:
        """Return the logarithm of the total of density ``weight·exp(-steep)``, and the share of each piece."""
        logs = _mass(steep, self.low, self.high, self.whole)[0] + self.weights
        shares = np.exp(logs - logs.max())
        return float(logs.max() + np.log(shares.sum())), shares / shares.sum()

    def at(self, steep: FloatArray, u: FloatArray) -> tuple[FloatArray, IntArray | int]:
        """Return values of that density, by inversion, and their pieces."""
        piece: IntArray | int = 0
        if len(self.low) > 1:
            ends = np.cumsum(self.mass(steep)[1])
            starts = np.r_[0.0, ends[:-1]]
            last = int(np.flatnonzero(ends > starts)[-1])
            piece = np.minimum(np.searchsorted(ends, u * ends[-1], side="right"), last)
            u = np.clip((u * ends[-1] - starts[piece]) / (ends - starts)[piece], 2.0**-53, 1 - 2.0**-53)
        slope, width, low, high = (part[piece] for part in (steep[0], self.width, self.low, self.high))
        size = np.abs(slope)
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(size * width < 1e-12, u * width, np.log1p(u * np.expm1(-size * width)) / -size)
        steps = np.clip(np.floor(steps) if self.whole else steps, 0.0, high - low)
        return np.where(slope >= 0, low + steps, high - steps), piece


@dataclass(frozen=True)
class Side:
    """``Σ terms <= limit``, or ``==``; a term has a slope and a constant for each piece of its axis, (2, pieces)."""

    terms: Mapping[Key, FloatArray]
    limit: float

    def left(self, values: Mapping[Key, FloatArray], pieces: Mapping[Key, IntArray | int]) -> FloatArray:
        """Return what values leave of the limit."""
        total: Any = self.limit
        for name, term in self.terms.items():
            piece = pieces[name]
            total = total - (term[0][piece] * values[name] + term[1][piece])
        return np.asarray(total)

    def ends(self, axes: Mapping[Key, Axis]) -> dict[Key, tuple[float, float]]:
        """Return the least and the most of each term."""
        return {name: axes[name].ends(term) for name, term in self.terms.items()}

    def without(self, name: Key, told: Side) -> Side:
        """Return the row with a coordinate replaced by ``told.limit - Σ told.terms``."""
        terms = dict(self.terms)
        c = float(terms.pop(name)[0, 0]) if name in terms else 0.0
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
    def _steep(self) -> dict[Key, FloatArray]:
        nothing = {name: np.zeros((2, len(axis.low))) for name, axis in self.axes.items()}
        return {name: sum((t * side.terms[name] for side, t in zip(self.sides, self.tilt) if name in side.terms), start) for name, start in nothing.items()}

    def propose(self, words: WordArray) -> tuple[dict[Key, npt.NDArray[Any]], BoolArray]:
        """Return one proposal per row of words, by coordinate, and which of them are accepted."""
        u = open_unit(words)
        found = {name: axis.at(self._steep[name], u[:, j]) for j, (name, axis) in enumerate(self.axes.items())}
        values, pieces = {name: value for name, (value, _) in found.items()}, {name: piece for name, (_, piece) in found.items()}
        for name, whole, told in reversed(self.solved):
            value = np.broadcast_to(told.left(values, pieces), (len(u),))
            near = np.rint(value)
            values[name], pieces[name] = np.where(np.abs(value - near) < SOLVED, near, value) if whole else value, 0
        good, unused = np.ones(len(u), dtype=bool), np.zeros(len(u))
        for side, t in zip(self.sides, self.tilt.tolist()):
            left = side.left(values, pieces)
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
        while tried < PILOTS and hits < 256 and (hits or tried < HOPELESS):
            draws = np.arange(tried, min(tried + batch, PILOTS))
            hits += int(self.propose(words(draws, 0, self.width))[1].sum())
            tried += len(draws)
        return hits / tried

    def log_volume(self, scale: Mapping[Key, float]) -> float:
        """Return an estimate of the logarithm of the volume within its affine hull, coordinates being stretched by `scale`."""
        ways = dict(zip(self.axes, np.eye(len(self.axes))))
        for name, _, told in reversed(self.solved):
            ways[name] = -sum((term[0, 0] * ways[other] for other, term in told.terms.items()), start=np.zeros(len(self.axes)))
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
        axis, slope, unit = free.pop(name), float(row.terms[name][0, 0]), np.array([[1.0], [0.0]])
        told = Side({n: t / slope for n, t in row.terms.items() if n != name}, row.limit / slope)
        spare = SOLVED if axis.whole else 0.0
        rows += [Side({name: unit}, axis.high[0] + spare), Side({name: -unit}, spare - axis.low[0])]
        rows, todo = ([side.without(name, told) for side in some] for some in (rows, todo))
        solved.append((name, axis.whole, told))
    narrow = _narrowed(free, rows)
    rows = [side for side in rows if sum(most for _, most in side.ends(narrow).values()) > side.limit]  # others are never broken
    return Tilted(narrow, tuple(rows), _best(narrow, rows), tuple(solved))


def _solvable(row: Side, axes: Mapping[Key, Axis]) -> Key | None:
    """Return the widest real coordinate of an equality, else the widest whole number with coefficient 1."""
    slopes = {n: abs(float(term[0, 0])) for n, term in row.terms.items() if len(axes[n].low) == 1}
    real = {n: wide for n, slope in slopes.items() if not axes[n].whole and (wide := slope * float(axes[n].width[0])) > 1e-10}
    whole = {n: float(axes[n].width[0]) for n, slope in slopes.items() if axes[n].whole and slope == 1}
    found = real or whole
    return max(found, key=lambda n: (found[n], n)) if found else None


def _narrowed(axes: Mapping[Key, Axis], sides: Sequence[Side]) -> dict[Key, Axis]:
    """Return the axes that every row by itself leaves, a few times over; as they are where nothing is left."""
    found = dict(axes)
    for _ in range(4):
        before = dict(found)
        for side in sides:
            ends = side.ends(found)
            least = sum(low for low, _ in ends.values())
            for name, term in side.terms.items():
                axis, slope = found[name], float(term[0, 0])
                if len(axis.low) > 1 or abs(slope) <= 1e-14:
                    continue
                end = (side.limit - (least - ends[name][0]) - float(term[1, 0])) / slope
                if axis.whole:
                    spare = math.copysign(1e-9 * max(1.0, abs(end)), slope)
                    end = math.floor(end + spare) if slope > 0 else math.ceil(end + spare)
                low, high = (axis.low[0], min(axis.high[0], end)) if slope > 0 else (max(axis.low[0], end), axis.high[0])
                if high < low:
                    return dict(axes)
                if (low, high) != (axis.low[0], axis.high[0]):
                    found[name] = Axis.span(low, high, axis.whole)
        if all(found[name] is axis for name, axis in before.items()):
            break
    return found


def _mass(steep: FloatArray, low: FloatArray, high: FloatArray, whole: BoolArray | bool) -> tuple[FloatArray, FloatArray]:
    """Return the logarithms of the totals of densities ``exp(-steep)``, one per piece, and their means."""
    size, width = np.abs(steep[0]), high - low + whole
    bent = size * width
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log = np.log(-np.expm1(-bent)) - np.log(np.where(whole, -np.expm1(-size), size))
        mean = 1 / np.where(whole, np.expm1(size), size) - width / np.expm1(bent)
        near = np.log(width) - size * (width - whole) / 2 + size**2 * (width**2 - whole) / 24
    level = bent < 1e-4
    log = np.where(width == 0, 0.0, np.where(level, near, log))  # what cannot move is a point
    mean = np.where(level, (width - whole) / 2 - size * (width**2 - whole) / 12, mean)
    up = steep[0] >= 0
    start = np.where(up, low, high)
    return log - steep[0] * start - steep[1], start + np.where(up, mean, -mean)


def _best(axes: Mapping[Key, Axis], sides: Sequence[Side]) -> FloatArray:
    """Return the tilt that accepts most."""
    from scipy.optimize import minimize

    if not sides:
        return np.zeros(0)
    # all pieces of all axes side by side, and the terms of all rows over them
    count = [len(axis.low) for axis in axes.values()]
    first = np.cumsum([0, *count[:-1]])
    table = [np.broadcast_arrays(axis.low, axis.high, axis.weights, axis.whole) for axis in axes.values()]
    low, high, weights, whole = (np.concatenate(columns) for columns in zip(*table))
    terms, places = np.zeros((len(sides), 2, sum(count))), {name: slice(at, at + n) for name, at, n in zip(axes, first.tolist(), count)}
    for row, side in zip(terms, sides):  # most of it is 0
        for name, term in side.terms.items():
            row[:, places[name]] = term
    limits = np.array([side.limit for side in sides])
    scale = np.array([max(sum(most - least for least, most in side.ends(axes).values()), 1e-300) for side in sides])

    def cost(t: FloatArray) -> tuple[float, FloatArray]:
        logs, means = _mass(np.tensordot(t / scale, terms, 1), low, high, whole)
        top = np.maximum.reduceat(logs + weights, first)
        shares = np.exp(logs + weights - np.repeat(top, count))
        total = np.add.reduceat(shares, first)
        shares /= np.repeat(total, count)
        slope = limits - (terms[:, 0] * means + terms[:, 1]) @ shares
        return float(t / scale @ limits + (top + np.log(total)).sum()), slope / scale

    steps = int(np.clip(MOST_TERMS // terms.size, 20, 500))  # any tilt is right; the best accepts most
    found = minimize(cost, np.zeros(len(sides)), jac=True, bounds=[(0, None)] * len(sides), method="L-BFGS-B", options={"maxiter": steps})
    return np.asarray(np.where(found.x > 1e-9, found.x, 0.0) / scale)
