"""A part of whole-numbered features at one start, written as rows and rules over whole numbers for the counting diagram.

An axis is a feature or a group of features with a list of codes. Every
feature's change and own action is a form in the axes, so that the target of an equality linkage needs no axis of its own. Small constraints become
tables, made by their own mask; the others are read as formulas. What cannot be written so raises NotCountableError, and the caller draws in another way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.constraints import Constraint, DirectionalLinkage
from budge.expressions import All, Formula, Linear, OneOf, Row, Some, Truth, Var
from budge.expressions.tolerance import less_equal
from budge.features import Feature
from budge.parts import Part
from budge.reach.core import Core, change_interval, group_moves, groups, has_gaps, is_computed, listed_values, supported_values
from budge.reach.diagram import LARGEST, Diagram, Sum, Table, Variable
from budge.reach.forms import forms_of
from budge.reach.starts import Starts
from budge.reach.states import build

__all__ = ["Axis", "NotCountableError", "Written", "is_weighed", "value_of"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Form = Mapping[str, Fraction]  # coefficients of columns; "" is the constant
FEW = 64  # values up to which a number is listed
MOST_LISTED = 4096  # values of an axis that must be listed: those with weights
MOST_CLASSES = 4096  # intervals into which an axis may be cut
SMALL_TABLE, LARGE_TABLE = 4096, 2**20  # joint values of a rule: made by its mask at once, or where there is no formula
MOST_CASES = 128  # joint values of narrow axes under which a curved rule is read case by case
FLIP = {"<=": (">=", 1), ">=": ("<=", -1), "==": ("!=", 0), "!=": ("==", 0)}  # the opposite relation, and what is added to the constant


class NotCountableError(Exception):
    """The part cannot be written as rows and rules over whole numbers."""


class _NothingError(Exception):
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
            exact = [_exact(v) for v in column.tolist()]
            scale = math.lcm(*(v.denominator for v in exact))
            found[name] = np.array([int(v * scale) for v in exact], dtype=np.int64), scale
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


# What a condition is made of: known, a row over axes, or a combination of these.
@dataclass(frozen=True)
class _Whole:
    terms: Mapping[str, IntArray | int]  # by axis: one number per point, or a coefficient
    relation: str
    constant: int


@dataclass(frozen=True)
class _Many:
    every: bool  # all of the parts, or at least one
    parts: tuple[_Tree, ...]


_Tree = bool | _Whole | _Many
_Unless = Mapping[str, BoolArray]  # truths by axis, of which one is enough


class Written:
    """A part at one start as variables, rows and rules. With `weighed`, values without weight are left out."""

    def __init__(self, part: Part, x: Mapping[str, float], weighed: bool = True) -> None:
        self.part, self.x, self.weighed = part, x, weighed
        self.starts = Starts.of(part, {name: np.array([value]) for name, value in x.items()})
        self.forms = forms_of(part)
        self.axes: dict[str, Axis] = {}
        self.owner: dict[str, str] = {}  # the axis of each column
        self.change: dict[str, Form] = {}
        self.action: dict[str, Form] = {}  # not of targets whose own action the change does not tell: nobody reads it
        self.sums: list[Sum] = []
        self.tables: list[Table] = []
        try:
            self._write()
        except _NothingError:
            self.axes, self.sums, self.tables = {}, [Sum({}, "<=", -1)], []

    def _write(self) -> None:
        trees: list[tuple[str, _Tree]] = []
        settled = groups(self.starts, [f.name for f in self.part.features if f.discrete], most=1)  # of more codes: a row
        for constraint in settled:
            names = tuple(sorted(constraint.scope))
            self._listed(names, group_moves(self.starts, constraint, names, 0))
        for name in self.part.order:
            if name not in self.change:
                trees += [(f"link {name}", tree) for tree in self._feature(self.part.by_name[name])]
        tensors: list[tuple[list[Axis], BoolArray]] = []
        for constraint in sorted((c for c in self.part.constraints if not any(c is other for other in settled)), key=lambda c: c.key):
            axes = self._axes(constraint)
            cells = math.prod(axis.count for axis in axes)
            tree = None if len(axes) <= 3 and cells <= SMALL_TABLE else self._tree(constraint)
            if tree is not None:
                trees.append((constraint.key, tree))
            elif cells <= LARGE_TABLE:
                tensors.append((axes, self._tensor(constraint, axes)))
            else:
                trees += [(constraint.key, case) for case in self._cases(constraint, axes)]
        if any(len(axis.cuts) >= MOST_CLASSES for axis in self.axes.values()):
            raise NotCountableError("an axis is cut into too many intervals")
        for axes, truth in tensors:
            classes = np.ix_(*(axis.lows - (axis.low if axis.points is None else 0) for axis in axes))
            self.tables.append(Table(tuple(axis.name for axis in axes), truth[classes] if axes else truth))
        for key, tree in trees:
            self._require(tree, {}, key)
        if not all(t.truth.any() for t in self.tables):
            raise _NothingError
        self.tables = [t for t in self.tables if t.scope]

    def diagram(self) -> Diagram:
        """Build the diagram; its variables are the axes, in their order."""
        return build([axis.variable for axis in self.axes.values()], self.sums, self.tables)

    # -- features as forms in axes -----------------------------------------------------------------------------------------

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
            self.change[name] = self.action[name] = {name: Fraction(1)}
            self.owner[name] = names[0]
        kept = [i for i, w in enumerate(weights) if w > 0]
        if not kept:
            raise _NothingError
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
            self.change[f.name] = self.action[f.name] = {f.name: Fraction(1)}
            self.owner[f.name] = f.name

    def _feature(self, f: Feature) -> list[_Tree]:
        """Write the change and own action of one feature as forms, with an axis where it needs one; return what must hold."""
        name, part = f.name, self.part
        low, high = self._limits(name)
        links = sorted(part.links.get(name, ()), key=lambda link: link.key)
        listed = listed_values(f)
        self.change[name] = self.action[name] = {}
        if np.isnan(self.x[name]) or (not links and low == high and not is_weighed(f, self.x[name])):
            return []
        if listed is not None and not links:
            moves = listed - self.x[name]
            self._listed((name,), moves[less_equal(low, moves) & less_equal(moves, high)][:, None])
            return []
        computed = bool(links) and is_computed(self.starts, name) and links[0].on_exceed != "clip"
        if listed is not None or (f.type == "real" and not computed):
            raise NotCountableError("a continuous feature")
        if not links:
            self._number(f, low, high)
            return []
        if part.split(name) == "guess" or has_gaps(self.starts, name):
            raise NotCountableError("an own action that the change does not tell")
        if not all(link.relation == "==" and link.on_exceed != "clip" for link in links):
            return self._loose(f, links)
        induced: Form = {}
        for link in links:
            induced = _plus(induced, self.action[link.source], _exact(link.targets[name]))
        trees = []
        if self.weighed and is_weighed(f, self.x[name]):  # weights are on the value reached: the change is the axis
            self._number(f, *self._whole_interval(name))
            self.action[name] = _plus(self.change[name], induced, Fraction(-1))
            trees = [self._row(self.action[name], ">=", low), self._row(self.action[name], "<=", high)]
        else:
            if low < high:
                self._number(f, low, high)
            self.change[name] = _plus(self.action[name], induced)
        if links[0].on_exceed == "reject":
            floor, ceiling = (float(bound) - self.x[name] for bound in f.reach(self.x[name]))
            trees += [self._row(self.change[name], ">=", floor), self._row(self.change[name], "<=", ceiling)]
        return trees

    def _whole_interval(self, name: str) -> tuple[float, float]:
        low, high = change_interval(Core(self.starts, np.arange(1)), name, self.part.names)
        return math.ceil(float(low[0]) - 1e-9), math.floor(float(high[0]) + 1e-9)

    def _limits(self, name: str) -> tuple[float, float]:
        """Return the lowest and the highest own action of a feature."""
        return float(self.starts.down[name][0]), float(self.starts.up[name][0])

    def _loose(self, f: Feature, links: Sequence[DirectionalLinkage]) -> list[_Tree]:
        """Write a target whose change may lie between what its linkages induce: the change is the axis."""
        name = f.name
        ends = self._whole_interval(name)
        if ends[0] > ends[1]:
            raise _NothingError
        self._number(f, *ends)
        if f.actionable:
            del self.action[name]
        else:
            self.action[name] = {}
        moved, (down, up) = self.change[name], self._limits(name)
        floor, ceiling = (float(bound) - self.x[name] for bound in f.reach(self.x[name]))
        clips = links[0].on_exceed == "clip"
        trees: list[_Tree] = []
        for branches in product(*(link.branches(name, self.x) for link in links)):
            apart = [_opposite(self.read(guard)) for guards, _, _ in branches for guard in guards]
            least, most = [low for _, low, _ in branches], [high for _, _, high in branches]
            for induced, own, relation, stop in ((least, down, ">=", ceiling), (most, up, "<=", floor)):
                row = self._row(_plus(moved, self._form(sum(induced, start=Linear({}, own))), Fraction(-1)), relation, 0.0)
                trees.append(_join(False, [*apart, row, self._row(moved, "==", stop) if clips else False]))
        return trees

    # -- constraints as trees ------------------------------------------------------------------------------------------------

    def _axes(self, constraint: Constraint) -> list[Axis]:
        """Return the axes that a constraint reads, by name."""
        names = self.forms.scope(constraint)
        read = {c for n in names for form in (self.change[n], self.action.get(n, {})) for c in form if c}
        return [self.axes[name] for name in sorted({self.owner[c] for c in read})]

    def _tree(self, constraint: Constraint, known: Mapping[Var, float] | None = None) -> _Tree | None:
        formula = self.forms.formula(constraint, self.x, known)
        return None if formula is None else self.read(formula)

    def _tensor(self, constraint: Constraint, axes: Sequence[Axis]) -> BoolArray:
        """Return the constraint's own mask at every joint value of its axes; intervals are cut where it changes."""
        shape = [axis.count for axis in axes]
        columns: dict[str, FloatArray] = {}
        for axis, place in zip(axes, np.indices(shape).reshape(len(axes), math.prod(shape))):
            columns |= axis.at(place + (axis.low if axis.points is None else 0))
        truth = np.array(np.broadcast_to(self._mask(constraint, columns), (math.prod(shape),))).reshape(shape)
        for k, axis in enumerate(axes):
            if axis.points is None:
                flat = np.moveaxis(truth, k, 0).reshape(axis.count, -1)
                axis.cuts |= set((np.flatnonzero((flat[1:] != flat[:-1]).any(axis=1)) + axis.low + 1).tolist())
        return truth

    def _mask(self, constraint: Constraint, columns: Mapping[str, FloatArray]) -> BoolArray:
        names = self.forms.scope(constraint)
        change = {n: value_of(self.change[n], columns) for n in names}
        action = {n: value_of(self.action.get(n, {}), columns) for n in names}
        return constraint.mask({n: np.asarray(self.x[n]) for n in names}, action, change)

    def _cases(self, constraint: Constraint, axes: Sequence[Axis]) -> list[_Tree]:
        """Read a rule that is a formula only where its narrow axes are known: one case per joint point of these."""
        narrow = [axis for axis in axes if axis.points is not None]
        if not narrow or math.prod(axis.count for axis in narrow) > MOST_CASES:
            raise NotCountableError(f"{constraint.label} is curved over wide numbers")
        trees: list[_Tree] = []
        for points in product(*(range(axis.count) for axis in narrow)):
            columns: dict[str, FloatArray] = {}
            for axis, i in zip(narrow, points):
                columns |= {n: v[0] for n, v in axis.at(np.array([i])).items()}
            known: dict[Var, float] = {}
            for n in self.forms.scope(constraint):
                for layer, forms, start in (("value", self.change, self.x[n]), ("change", self.change, 0.0), ("action", self.action, 0.0)):
                    if n in forms and all(c in columns or not c for c in forms[n]):
                        known[layer, n] = float(start + value_of(forms[n], columns))
            tree = self._tree(constraint, known)
            if tree is None:
                raise NotCountableError(f"{constraint.label} is curved over wide numbers")
            elsewhere = [_Whole({axis.name: np.arange(axis.count)}, "!=", i) for axis, i in zip(narrow, points)]
            trees.append(_join(False, [*elsewhere, tree]))
        return trees

    def read(self, formula: Formula) -> _Tree:
        """Return a formula as a tree over axes."""
        match formula:
            case Truth(value):
                return bool(value)
            case Row(linear, relation):
                return self._row(self._form(linear), relation, 0.0)
            case All(parts):
                return _join(True, map(self.read, parts))
            case Some(parts):
                return _join(False, map(self.read, parts))
            case OneOf(variables, table):
                rows = [[self.read(Row(Linear({var: 1.0}, -v), "==")) for var, v in zip(variables, line)] for line in table.tolist()]
                return _join(False, [_join(True, line) for line in rows])

    def _form(self, linear: Linear) -> Form | None:
        """Return a linear form over values, changes and own actions as one over columns; None where a value is missing."""
        form: Form = {"": _exact(float(linear.const))}
        for (layer, name), c in linear.terms.items():
            if layer in ("value", "before"):
                if np.isnan(self.x[name]):
                    return None
                form = _plus(form, {"": _exact(self.x[name])}, _exact(float(c)))
            if layer != "before":
                form = _plus(form, (self.action if layer == "action" else self.change)[name], _exact(float(c)))
        return form

    def _row(self, form: Form | None, relation: str, constant: float) -> _Tree:
        """Return ``form relation constant`` over whole numbers; strict relations are steps of one."""
        if form is None:
            return False  # no comparison with a missing value holds
        if not math.isfinite(constant):
            return True  # a bound that is none
        terms: dict[str, Any] = {}
        parts = {}
        for column, c in form.items():
            if column and c:
                axis = self.axes[self.owner[column]]
                parts[column] = c / (1 if axis.points is None else axis.whole[column][1])
        scale = math.lcm(*(c.denominator for c in parts.values()))
        limit = (_exact(constant) - form.get("", Fraction(0))) * scale
        for column, c in parts.items():
            axis, whole = self.axes[self.owner[column]], int(c * scale)
            values = 1 if axis.points is None else axis.whole[column][0]
            if abs(whole) * int(np.abs(values).max()) >= LARGEST:
                raise NotCountableError("numbers beyond 2^62")
            terms[axis.name] = terms.get(axis.name, 0) + whole * values
        for name in [n for n, t in terms.items() if not isinstance(t, int) and (t == t[:1]).all()]:  # the same at every point
            limit -= int(terms.pop(name)[:1].sum())
        if relation in ("==", "!=") and limit.denominator > 1:
            return relation == "!="
        if relation in ("<", ">="):
            constant_ = math.ceil(limit) - (relation == "<")
        else:
            constant_ = math.floor(limit) + (relation == ">")
        row = _Whole(terms, {"<": "<=", ">": ">="}.get(relation, relation), constant_)
        least, most = self._range(row)
        if max(-least, most, abs(constant_)) >= LARGEST:
            raise NotCountableError("numbers beyond 2^62")
        known = _known(row.relation, least, most, constant_)
        if known is not None:
            return known
        for name, term in terms.items():
            if len(terms) == 1 and isinstance(term, int):
                axis = self.axes[name]
                axis.cuts |= {c for c in (-(-constant_ // term), constant_ // term + 1) if axis.low < c <= axis.high}
        return row

    def _range(self, row: _Whole) -> tuple[int, int]:
        least = most = 0
        for name, term in row.terms.items():
            axis = self.axes[name]
            ends = (term * axis.low, term * axis.high) if isinstance(term, int) else (int(term.min()), int(term.max()))
            least, most = least + min(ends), most + max(ends)
        return least, most

    # -- trees as rows and rules ---------------------------------------------------------------------------------------------

    def _truth(self, tree: _Tree, axis: str) -> BoolArray:
        """Return where a tree over one axis holds, by class."""
        lows = self.axes[axis].lows
        match tree:
            case _Whole(terms, relation, constant):
                term = terms[axis]
                return _compare(term * lows if isinstance(term, int) else term, relation, constant)
            case _Many(every, parts):
                each = np.array([self._truth(p, axis) for p in parts])
                return np.asarray(each.all(axis=0) if every else each.any(axis=0))
        return np.full(len(lows), tree)

    def _require(self, tree: _Tree, unless: _Unless, key: str) -> None:
        """Add rows and rules for: the tree holds, or one of the truths in `unless` does."""
        names = sorted(_names(tree))
        if isinstance(tree, bool):
            if not tree:
                self._one_of(unless)
        elif len(names) == 1:
            self._one_of(_joined(unless, names[0], self._truth(tree, names[0])))
        elif isinstance(tree, _Whole):
            self._sum(tree, unless)
        elif isinstance(tree, _Many) and tree.every:
            for part in tree.parts:
                self._require(part, unless, key)
        elif isinstance(tree, _Many):
            rest = []
            for part in tree.parts:
                if len(alone := _names(part)) == 1:
                    (axis,) = alone
                    unless = _joined(unless, axis, self._truth(part, axis))
                else:
                    rest.append(part)
            if len(rest) > 1:
                self._choose(rest, unless, key)
            else:
                self._require(rest[0] if rest else False, unless, key)

    def _choose(self, parts: Sequence[_Tree], unless: _Unless, key: str) -> None:
        """Add an axis that tells which part is the first to hold, so that no point is counted twice; 0 where `unless` holds."""
        prefix = f"\1{key}\1"
        name = f"{prefix}{sum(other.startswith(prefix) for other in self.axes)}"
        self.axes[name] = Axis(name, (), np.zeros((len(parts), 0)))
        number = np.arange(len(parts))
        for axis, truth in unless.items():
            self._one_of({axis: ~truth, name: number == 0})
        for k, part in enumerate(parts):
            elsewhere = _joined(unless, name, number != k)
            for required in (part, *map(_opposite, parts[:k])):
                self._require(required, elsewhere, key)

    def _one_of(self, unless: _Unless) -> None:
        """Add: at least one of these truths holds."""
        if any(truth.all() for truth in unless.values()):
            return
        used = {axis: truth for axis, truth in sorted(unless.items()) if truth.any()}
        if len(used) > 2:
            self.sums.append(Sum({axis: truth.astype(np.int64) for axis, truth in used.items()}, ">=", 1))
        else:
            truths = list(used.values())
            joint = np.logical_or.outer(*truths) if len(truths) == 2 else truths[0] if truths else np.array(False)
            self.tables.append(Table(tuple(used), joint))

    def _sum(self, row: _Whole, unless: _Unless) -> None:
        """Add a row that must hold unless one of the truths does: those open it as far as it can reach."""
        if unless and row.relation == "==":
            for relation in ("<=", ">="):
                self._sum(_Whole(row.terms, relation, row.constant), unless)
            return
        least, most = self._range(row)
        open_by = {"<=": row.constant - most, ">=": row.constant - least, "!=": most - least + 1, "==": 0}[row.relation]
        terms = {name: term * self.axes[name].lows if isinstance(term, int) else term for name, term in row.terms.items()}
        for name, truth in unless.items():
            terms[name] = terms.get(name, np.zeros(len(truth), dtype=np.int64)) + open_by * truth
        slopes = {name: term for name, term in row.terms.items() if isinstance(term, int)}
        if len(terms) == 2 and not slopes and math.prod(map(len, terms.values())) <= SMALL_TABLE:
            (a, first), (b, second) = sorted(terms.items())
            self.tables.append(Table((a, b), _compare(np.add.outer(first, second), row.relation, row.constant)))
        else:
            self.sums.append(Sum(terms, row.relation, row.constant, slopes))


@lru_cache(maxsize=65_536)
def _exact(c: float) -> Fraction:
    """Return the fraction that a number was written as: a short one where the float is that, up to rounding, else its decimals."""
    if c == math.floor(c):
        return Fraction(int(c))
    short = Fraction(c).limit_denominator(10**6)
    return short if abs(short - Fraction(c)) <= abs(Fraction(c)) / 2**50 else Fraction(repr(float(c)))


def _plus(a: Form | None, b: Form | None, factor: Fraction = Fraction(1)) -> Any:
    """Return a + factor · b; None where either is missing."""
    if a is None or b is None:
        return None
    return {c: a.get(c, Fraction(0)) + factor * b.get(c, Fraction(0)) for c in {**a, **b}}


def value_of(form: Form, columns: Mapping[str, Any]) -> Any:
    """Return the value of a form, as floats, given its columns."""
    return sum((float(c) * columns[name] if name else float(c) for name, c in sorted(form.items())), start=np.zeros(())) + 0.0


def is_weighed(f: Feature, start: float) -> bool:
    """Return whether a feature that can be listed has a distribution of its own."""
    law = f.distribution
    return law is not None and law.kind != "uniform" and not np.isnan(start) and (f.discrete or listed_values(f) is not None)


def _compare(values: npt.NDArray[Any], relation: str, constant: int) -> BoolArray:
    return np.asarray({"<=": np.less_equal, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal}[relation](values, constant))


def _known(relation: str, least: int, most: int, constant: int) -> bool | None:
    """Return whether a row holds everywhere (True) or nowhere (False), judged by its range alone."""
    if relation == "<=":
        return True if most <= constant else False if least > constant else None
    if relation == ">=":
        return True if least >= constant else False if most < constant else None
    outside = not least <= constant <= most
    if not outside and least < most:
        return None
    return outside is (relation == "!=")


def _names(tree: _Tree) -> set[str]:
    match tree:
        case _Whole(terms):
            return set(terms)
        case _Many(_, parts):
            return set().union(*map(_names, parts))
    return set()


def _opposite(tree: _Tree) -> _Tree:
    match tree:
        case bool():
            return not tree
        case _Whole(terms, relation, constant):
            return _Whole(terms, FLIP[relation][0], constant + FLIP[relation][1])
        case _Many(every, parts):
            return _Many(not every, tuple(map(_opposite, parts)))


def _join(every: bool, parts: Iterable[_Tree]) -> _Tree:
    """Return all of the parts, or some, flattened and without those that are known."""
    kept: list[_Tree] = []
    for part in parts:
        for piece in part.parts if isinstance(part, _Many) and part.every is every else (part,):
            if piece is (not every):
                return not every
            if piece is not every:
                kept.append(piece)
    return _Many(every, tuple(kept)) if len(kept) > 1 else kept[0] if kept else every


def _joined(unless: _Unless, axis: str, truth: BoolArray) -> _Unless:
    return {**unless, axis: unless[axis] | truth if axis in unless else truth}
