"""The features of a part at one start, written as forms in the axes of a counting diagram.

An axis is a feature or a group of features with a list of codes. Every feature's change and own action is a form in the axes, so that the target of an
equality linkage needs no axis of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.constraints import Constraint
from budge.expressions import Formula, Linear, Row
from budge.expressions.tolerance import less_equal
from budge.features import Feature
from budge.parts import Part
from budge.reach.core import Core, change_interval, group_moves, groups, has_gaps, listed_values, supported_values
from budge.reach.diagram import LARGEST, Variable
from budge.reach.starts import Starts
from budge.reach.view import View

__all__ = ["Axes", "Axis", "NotCountableError", "NothingError", "exact", "is_weighed", "scalar", "value_of"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Form = Mapping[str, Fraction]  # coefficients of columns; "" is the constant
FEW = 64  # values up to which a number is listed
MOST_LISTED = 4096  # values of an axis that must be listed: those with weights


class NotCountableError(Exception):
    """The part cannot be written as rows and rules over whole numbers."""


class NothingError(Exception):
    """A feature has no value left."""


@dataclass
class Axis:
    """A variable of the diagram: listed points with one change per column, or the whole numbers from low to high."""

    name: str
    columns: tuple[str, ...]
    points: FloatArray | None = None  # (points, columns)
    low: int = 0
    high: int = 0
    weight: tuple[int, ...] | None = None
    cuts: set[int] = field(default_factory=set)  # where classes begin, apart from low

    @property
    def count(self) -> int:
        """Number of points."""
        return self.high - self.low + 1 if self.points is None else len(self.points)

    @property
    def lows(self) -> IntArray:
        """The first value (or number of a point) of each class."""
        if self.points is not None:
            return np.arange(len(self.points))
        return np.array(sorted({self.low, *self.cuts}), dtype=np.int64)

    @cached_property
    def whole(self) -> dict[str, tuple[IntArray, int]]:
        """The changes of each column at the points, as numerators and one denominator."""
        assert self.points is not None
        found = {}
        for name, column in zip(self.columns, self.points.T):
            values = [exact(v) for v in column.tolist()]
            scale = math.lcm(*(v.denominator for v in values))
            found[name] = np.array([int(v * scale) for v in values], dtype=np.int64), scale
        return found

    def at(self, values: IntArray) -> dict[str, FloatArray]:
        """Return the change of each column, by value or number of a point."""
        if self.points is None:
            return {self.columns[0]: values.astype(float)}
        return {name: self.points[values, j] for j, name in enumerate(self.columns)}

    @property
    def variable(self) -> Variable:
        """The axis as the diagram takes it."""
        if self.points is None:
            return Variable.interval(self.name, self.low, self.high, sorted(self.cuts))
        return Variable(self.name, self.lows, np.ones(len(self.points), dtype=np.int64), self.weight)


class Axes:
    """A part's features at one start as forms in axes. With `weighed`, values without weight are left out."""

    def __init__(self, part: Part, x: Mapping[str, float], weighed: bool = True) -> None:
        self.part, self.x, self.weighed = part, x, weighed
        self.axes: dict[str, Axis] = {}
        self.owner: dict[str, str] = {}  # the axis of each column
        self.fixed: dict[str, Fraction] = {}  # coordinates that cannot vary
        self.change: dict[str, Form] = {}
        self.action: dict[str, Form] = {}  # not of targets whose own action the change does not tell: nobody reads it
        self.links: list[Formula] = []  # what linkages demand
        self.settled: list[Constraint] = []  # those that are axes

    def write(self) -> None:
        """Make the axes and the forms; raises NothingError where a feature has no value."""
        part, starts = self.part, Starts.of(self.part, {name: np.array([value]) for name, value in self.x.items()})
        if any(part.split(name) == "guess" or (name in part.links and has_gaps(starts, name)) for name in part.names):
            raise NotCountableError("an own action that the change does not tell")
        view = View.of(Core(starts, np.arange(1)), part.names, (), clauses=True)
        self.settled = groups(starts, [f.name for f in part.features if f.discrete], most=1)  # of more codes: a row
        for constraint in self.settled:
            names = tuple(sorted(constraint.scope))
            self._listed(names, group_moves(starts, constraint, names, 0))
        for c in view.coordinates:
            if c.name not in self.owner:
                self._coordinate(view, part.by_name[c.name], float(c.low[0]), float(c.high[0]))
        self.links = view.links
        self.change = {name: self.form(view.symbols["change", name]) or {} for name in part.names}
        self.action = {name: self.form(view.symbols["action", name]) or {} for name in part.names if ("action", name) in view.symbols}

    def _coordinate(self, view: View, f: Feature, low: float, high: float) -> None:
        """Make an axis of a coordinate, where it can vary."""
        name, linked, weighed = f.name, f.name in self.part.links, is_weighed(f, self.x[f.name])
        if f.discrete:
            low, high = float(np.ceil(low - 1e-9)), float(np.floor(high + 1e-9))
        if low == high and not weighed:
            self.fixed[name] = exact(low)
        elif f.type == "real":
            listed = listed_values(f)
            if listed is None or linked:
                raise NotCountableError("a continuous feature")
            moves = listed - self.x[name]
            self._listed((name,), moves[less_equal(low, moves) & less_equal(moves, high)][:, None])
        else:
            own = view.symbols.get(("action", name), Linear({}))
            if self.weighed and weighed and linked and own.terms:
                view.reach_listed(name)  # weights are on the value reached: the change is the axis
                own = view.symbols["action", name]
                view.links += [Row(own - high, "<="), Row(low - own, "<=")]
                ends = change_interval(view.core, name, self.part.names)
                low, high = float(np.ceil(ends[0][0] - 1e-9)), float(np.floor(ends[1][0] + 1e-9))
            self._number(f, low, high)

    def _listed(self, names: tuple[str, ...], moves: FloatArray) -> None:
        """Make an axis of listed moves, weighed by the features' own distributions."""
        weights = [Fraction(1)] * len(moves)
        for j, name in enumerate(names):
            f = self.part.by_name[name]
            if self.weighed and is_weighed(f, self.x[name]):
                assert f.distribution is not None
                values = self.x[name] + moves[:, j]
                if f.distribution.kind == "log" and (values <= 0).any():
                    raise NotCountableError("a log distribution may meet values that are not positive")
                weights = [w * Fraction(d) for w, d in zip(weights, f.distribution.density(values, f.levels).tolist())]
            self.owner[name] = names[0]
        kept = [i for i, w in enumerate(weights) if w > 0]
        if not kept:
            raise NothingError
        scale = math.lcm(*(weights[i].denominator for i in kept))
        whole = [int(weights[i] * scale) for i in kept]
        common = math.gcd(*whole) or 1
        even = len(set(whole)) <= 1
        self.axes[names[0]] = Axis(names[0], names, moves[kept], weight=None if even else tuple(w // common for w in whole))

    def _number(self, f: Feature, low: float, high: float) -> None:
        """Make an axis of the changes from low to high of one feature: listed where they are few or weighed."""
        if self.weighed and is_weighed(f, self.x[f.name]):
            values = supported_values(f)
            if values is None and high - low >= MOST_LISTED:
                raise NotCountableError("a distribution over a long range")
            moves = np.arange(low, high + 1.0) if values is None else values - self.x[f.name]
            self._listed((f.name,), moves[(moves >= low) & (moves <= high) & (moves == np.round(moves))][:, None])
        elif not high - low < LARGEST:
            raise NotCountableError("a feature without bounds")
        elif high - low < FEW:
            self._listed((f.name,), np.arange(low, high + 1.0)[:, None])
        else:
            self.axes[f.name] = Axis(f.name, (f.name,), None, int(low), int(high))
            self.owner[f.name] = f.name

    def form(self, linear: Linear) -> Form | None:
        """Return a linear form over values, changes, own actions and coordinates as one over columns; None where a value is missing."""
        form = {"": exact(scalar(linear.const))}
        for (layer, name), c in linear.terms.items():
            factor, inner = exact(scalar(c)), dict[str, Fraction]()
            if layer == "coordinate":
                inner = {"": self.fixed[name]} if name in self.fixed else {name: Fraction(1)}
            elif layer != "before":
                inner = dict(self.action[name] if layer == "action" else self.change[name])
            if layer in ("value", "before"):
                if np.isnan(self.x[name]):
                    return None
                inner[""] = inner.get("", Fraction(0)) + exact(self.x[name])
            for column, slope in inner.items():
                form[column] = form.get(column, Fraction(0)) + factor * slope
        return form


@lru_cache(maxsize=65_536)
def exact(c: float) -> Fraction:
    """Return the fraction that a number was written as: a short one where the float is that, up to rounding, else its decimals."""
    if c == math.floor(c):
        return Fraction(int(c))
    short = Fraction(c).limit_denominator(10**6)
    return short if abs(short - Fraction(c)) <= abs(Fraction(c)) / 2**50 else Fraction(repr(float(c)))


def scalar(c: Any) -> float:
    """Return the only number of a coefficient."""
    return float(np.ravel(c)[0])


def value_of(form: Form, columns: Mapping[str, Any]) -> Any:
    """Return the value of a form, as floats, given its columns."""
    return sum((float(c) * columns[name] if name else float(c) for name, c in sorted(form.items())), start=np.zeros(())) + 0.0


def is_weighed(f: Feature, start: float) -> bool:
    """Return whether a feature that can be listed has a distribution of its own."""
    law = f.distribution
    return law is not None and law.kind != "uniform" and not np.isnan(start) and (f.discrete or listed_values(f) is not None)
