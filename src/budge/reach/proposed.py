"""Exact draws of a part whose rows need more states than a diagram may have: independent proposals, tilted towards the rows.

Proposals in proportion to exp(-t·Ax), accepted with probability exp(-t·(c - Ax)) where Ax <= c, are uniform. The t >= 0 that minimises
t·c + Σ log Z (convex) accepts most. Other constraints are tested by the definition. The number of configurations stays unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from budge.errors import DrawError
from budge.parts import Part
from budge.reach.diagram import Sum
from budge.reach.rejection import BUDGET, Rejection
from budge.reach.streams import Stream, region_of, unit
from budge.reach.written import Axis, NotCountableError, Written, value_of

__all__ = ["Tilted"]

FloatArray = npt.NDArray[np.float64]
BATCH = 32  # proposals per draw and attempt
CHUNK = 2**21  # random words held at once
EXACT = 2.0**52  # sums of a row stay below this, so that floats hold them exactly


@dataclass(frozen=True)
class _Side:
    """``Σ terms <= limit``: one number per point of an axis, or a slope over its values."""

    terms: dict[str, FloatArray | float]
    limit: float


@dataclass(frozen=True)
class Tilted(Rejection):
    """Proposals along axes, tilted by one factor per row; drawn attempt by attempt from the words of each draw."""

    written: Written | None = None
    axes: tuple[Axis, ...] = ()
    solved: tuple[str, Sum] | None = None  # an axis that an equality determines
    sides: tuple[_Side, ...] = ()
    tilt: FloatArray = field(default_factory=lambda: np.zeros(0))

    method = "tilted"

    @classmethod
    def of_written(cls, part: Part, x: Mapping[str, float], written: Written) -> Tilted:
        """Choose the tilt for the rows of a part; raises NotCountableError where an equality cannot be solved."""
        axes = {axis.name: axis for axis in written.axes.values() if axis.columns}
        rows = [s for s in written.sums if all(_is_plain(s, name, axes) for name in s.terms)]
        equal = next((s for s in rows if s.relation == "=="), None)
        solved = None
        if equal is not None or any(s.relation == "==" for s in written.sums):
            free = [n for n, slope in equal.slopes.items() if abs(slope) == 1] if equal is not None else []
            if equal is None or not free:
                raise NotCountableError("an equality that no wide number with coefficient 1 solves")
            solved = max(free, key=lambda n: (axes[n].count, n)), equal
        sides = [side for s in rows if s is not equal for side in _sides(s, axes)]
        if solved is not None:
            sides = _without(sides, *solved, axes)
        kept = tuple(axis for axis in axes.values() if solved is None or axis.name != solved[0])
        for side in sides:
            if sum(np.abs(_ends(side, axis)).max() for axis in kept) + abs(side.limit) >= EXACT:
                raise NotCountableError("numbers that floats do not hold exactly")
        return cls(part, dict(x), (), written=written, axes=kept, solved=solved, sides=tuple(sides), tilt=_best_tilt(sides, kept))

    def draw(self, stream: Stream, first: int, n: int) -> FloatArray:
        """Return draws `first` to `first + n - 1` of the person whose stream it is: changes, one row each."""
        region, width = region_of("tilted", *sorted(self.names)), BATCH * (len(self.axes) + 1)
        result = np.zeros((n, len(self.names)))
        waiting, attempt, spent = np.arange(n), 0, 0
        while len(waiting):
            if spent >= BUDGET:
                raise DrawError(
                    f"{n - len(waiting)} of {n} draws were accepted within {BUDGET:,} proposals",
                    where=f"part {', '.join(self.names)}",
                    remedy="narrow the bounds of its features; budge check tells whether it is empty",
                )
            later = []
            for part in np.array_split(waiting, -(-len(waiting) * width // CHUNK)):
                if attempt == 0:
                    words = stream.words(first + int(part[0]), len(part), width, region)[0]
                else:
                    words = stream.at(np.zeros(len(part), dtype=np.intp), first + part, width, region, attempt)
                good, changes = self._tilted(unit(words).reshape(len(part) * BATCH, -1))
                good = good.reshape(len(part), BATCH)
                found = good.any(axis=1)
                chosen = np.arange(len(part)) * BATCH + good.argmax(axis=1)
                result[part[found]] = changes[chosen[found]]
                later.append(part[~found])
                self.counters["proposed"] += len(good) * BATCH
                self.counters["accepted"] += int(good.sum())
            spent += len(waiting) * BATCH
            waiting, attempt = np.concatenate(later), attempt + 1
        return result

    def _tilted(self, u: FloatArray) -> tuple[npt.NDArray[np.bool_], FloatArray]:
        """Return one proposal per row of numbers in [0, 1), and whether it is accepted."""
        assert self.written is not None
        columns: dict[str, FloatArray] = {}
        used = np.zeros((len(self.sides), len(u)))
        solving = 0.0 if self.solved is None else np.full(len(u), float(self.solved[1].constant))
        for j, axis in enumerate(self.axes):
            values = _tilted_values(axis, _log_weights(axis, self.sides, self.tilt), u[:, j])
            columns |= axis.at(values)
            for r, side in enumerate(self.sides):
                used[r] += _at(side.terms.get(axis.name, 0.0), values)
            if self.solved is not None:
                solving = solving - _at(_term(self.solved[1], axis.name), values)
        if self.solved is not None:
            columns[self.solved[0]] = np.asarray(solving) * self.solved[1].slopes[self.solved[0]]
        left = np.array([side.limit for side in self.sides])[:, None] - used
        good = (left >= 0).all(axis=0) & (u[:, -1] < np.exp(-(self.tilt @ np.maximum(left, 0.0))))
        changes = np.stack([np.broadcast_to(value_of(self.written.change[n], columns), (len(u),)) for n in self.names], axis=1)
        some = np.flatnonzero(good)
        good[some] = self.part.feasible(self.x, dict(zip(self.names, changes[some].T)))
        return good, changes


def _term(s: Sum, name: str) -> FloatArray | float:
    """Return a row's term: its slope over an interval, else one number per point."""
    return float(s.slopes[name]) if name in s.slopes else np.asarray(s.terms.get(name, np.zeros(1)), dtype=float) if name in s.terms else 0.0


def _at(term: FloatArray | float, values: npt.NDArray[np.int64]) -> FloatArray:
    return np.asarray(term * values if isinstance(term, float) else term[values], dtype=float)


def _is_plain(s: Sum, name: str, axes: Mapping[str, Axis]) -> bool:
    """Return whether a row is linear in an axis: a condition that opens it is not, nor is an axis of cases."""
    if s.relation == "!=" or name not in axes:
        return False
    return axes[name].points is not None or bool((s.terms[name] == s.slopes.get(name, 0) * axes[name].lows).all())


def _sides(s: Sum, axes: Mapping[str, Axis]) -> list[_Side]:
    sign = -1.0 if s.relation == ">=" else 1.0
    return [_Side({name: sign * _term(s, name) for name in s.terms}, sign * s.constant)]


def _without(sides: list[_Side], name: str, equal: Sum, axes: Mapping[str, Axis]) -> list[_Side]:
    """Return the rows with one axis solved by an equality; its bounds are two rows more."""
    sign = float(equal.slopes[name])
    rest = {n: sign * _term(equal, n) for n in equal.terms if n != name}  # value of the axis: sign · constant - rest
    bounds = [_Side({name: 1.0}, float(axes[name].high)), _Side({name: -1.0}, -float(axes[name].low))]
    made = []
    for side in (*sides, *bounds):
        c = side.terms.get(name, 0.0)
        assert isinstance(c, float)
        terms = {n: t for n, t in side.terms.items() if n != name}
        for n, t in rest.items() if c else ():
            terms[n] = terms.get(n, 0.0) - c * t
        made.append(_Side(terms, side.limit - c * sign * equal.constant))
    return made


def _ends(side: _Side, axis: Axis) -> FloatArray:
    term = side.terms.get(axis.name, 0.0)
    return term * np.array([axis.low, axis.high], dtype=float) if isinstance(term, float) else term


def _log_weights(axis: Axis, sides: tuple[_Side, ...] | list[_Side], tilt: FloatArray) -> FloatArray | float:
    """Return the logarithm of the weight of each point, or the slope of that of a value."""
    total: FloatArray | float = 0.0
    if axis.points is not None:
        total = np.zeros(len(axis.points)) if axis.weight is None else np.log(np.array(axis.weight, dtype=float))
    for side, t in zip(sides, tilt):
        total = total - float(t) * side.terms.get(axis.name, 0.0)
    return total


def _tilted_values(axis: Axis, weights: FloatArray | float, u: FloatArray) -> npt.NDArray[np.int64]:
    """Return values of an axis in proportion to their weights, by inversion."""
    if not isinstance(weights, float):
        ends = np.cumsum(np.exp(weights - weights.max()))
        return np.asarray(np.minimum(np.searchsorted(ends, u * ends[-1], side="right"), len(ends) - 1))
    a, count = abs(weights), axis.count
    steps = np.floor(u * count) if a * count < 1e-12 else np.floor(-np.log1p(u * np.expm1(-a * count)) / a)
    steps = np.clip(steps, 0, count - 1).astype(np.int64)
    return np.asarray(axis.low + steps if weights <= 0 else axis.high - steps)


def _best_tilt(sides: list[_Side], axes: tuple[Axis, ...]) -> FloatArray:
    """Return the tilt that accepts most."""
    from scipy.optimize import minimize

    if not sides:
        return np.zeros(0)
    scale = np.array([max(1.0, sum(np.ptp(_ends(side, axis)) for axis in axes)) for side in sides])

    def cost(t: FloatArray) -> tuple[float, FloatArray]:
        value, slope = 0.0, np.zeros(len(t))
        for side, each, r in zip(sides, t / scale, range(len(t))):
            value, slope[r] = value + each * side.limit, side.limit
        for axis in axes:
            weights = _log_weights(axis, sides, t / scale)
            if isinstance(weights, float):
                log_z, mean = _geometric(weights, axis)
                used = np.array([float(side.terms.get(axis.name, 0.0)) * mean for side in sides])
            else:
                p = np.exp(weights - weights.max())
                log_z, p = float(np.log(p.sum()) + weights.max()), p / p.sum()
                used = np.array([float(np.sum(p * side.terms.get(axis.name, 0.0))) for side in sides])
            value, slope = value + log_z, slope - used
        return value, slope / scale

    found = minimize(cost, np.zeros(len(sides)), jac=True, bounds=[(0, None)] * len(sides), method="L-BFGS-B", options={"maxiter": 500})
    return np.asarray(found.x / scale, dtype=float)


def _geometric(slope: float, axis: Axis) -> tuple[float, float]:
    """Return log Σ exp(slope · value) over an interval, and the mean value."""
    a, count = abs(slope), axis.count
    far = axis.low if slope <= 0 else axis.high  # the likeliest end
    if a * count < 1e-7:
        return slope * (axis.low + axis.high) / 2 + float(np.log(count)), (axis.low + axis.high) / 2
    log_z = float(np.log(-np.expm1(-a * count)) - np.log(-np.expm1(-a)))
    steps = 1 / np.expm1(a) - count / np.expm1(min(a * count, 700.0))
    return slope * far + log_z, float(far + steps if slope <= 0 else far - steps)
