"""A part of whole-numbered features at one start, written as rows and rules over whole numbers for the counting diagram.

Small constraints become tables, made by their own mask; the others are read as formulas. What cannot be written so raises NotCountableError, and the caller
draws in another way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import numpy.typing as npt

from budge.constraints import Constraint
from budge.expressions import All, Formula, Linear, OneOf, Row, Some, Truth, Var, all_of, compare, negate, some_of
from budge.parts import Part
from budge.reach.axes import Axes, Axis, NotCountableError, NothingError, is_weighed, scalar, value_of
from budge.reach.diagram import LARGEST, Diagram, Sum, Table
from budge.reach.forms import forms_of
from budge.reach.states import build

__all__ = ["Axis", "NotCountableError", "Written", "is_weighed", "value_of"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
MOST_CLASSES = 4096  # intervals into which an axis may be cut
SMALL_TABLE, LARGE_TABLE = 4096, 2**20  # joint values of a rule: made by its mask at once, or where there is no formula
MOST_CASES = 128  # joint values of narrow axes under which a curved rule is read case by case
_Unless = Mapping[str, BoolArray]  # truths by axis, of which one is enough


class Written(Axes):
    """A part at one start as variables, rows and rules."""

    def __init__(self, part: Part, x: Mapping[str, float], weighed: bool = True) -> None:
        super().__init__(part, x, weighed)
        self.forms = forms_of(part)
        self.sums: list[Sum] = []
        self.tables: list[Table] = []
        try:
            self.write()
            self._write_constraints()
        except NothingError:
            self.axes, self.sums, self.tables = {}, [Sum({}, "<=", -1)], []

    def _write_constraints(self) -> None:
        required: list[tuple[str, Formula, _Unless]] = [(f"link {i}", self.read(link), {}) for i, link in enumerate(self.links)]
        tensors: list[tuple[list[Axis], BoolArray]] = []
        settled = {id(c) for c in self.settled}
        for constraint in sorted((c for c in self.part.constraints if id(c) not in settled), key=lambda c: c.key):
            axes = self._axes(constraint)
            cells = math.prod(axis.count for axis in axes)
            formula = None if len(axes) <= 3 and cells <= SMALL_TABLE else self.forms.formula(constraint, self.x)
            if formula is not None:
                required.append((constraint.key, self.read(formula), {}))
            elif cells <= LARGE_TABLE:
                tensors.append((axes, self._tensor(constraint, axes)))
            else:
                required += [(constraint.key, *case) for case in self._cases(constraint, axes)]
        if any(len(axis.cuts) >= MOST_CLASSES for axis in self.axes.values()):
            raise NotCountableError("an axis is cut into too many intervals")
        for axes, truth in tensors:
            classes = np.ix_(*(axis.lows - (axis.low if axis.points is None else 0) for axis in axes))
            self.tables.append(Table(tuple(axis.name for axis in axes), truth[classes] if axes else truth))
        for key, formula, unless in required:
            self._require(formula, unless, key)
        if not all(t.truth.any() for t in self.tables):
            raise NothingError
        self.tables = [t for t in self.tables if t.scope]

    def diagram(self) -> Diagram:
        """Build the diagram; its variables are the axes, in their order."""
        return build([axis.variable for axis in self.axes.values()], self.sums, self.tables)

    # -- constraints as formulas over axes -------------------------------------------------------------------------------------

    def _axes(self, constraint: Constraint) -> list[Axis]:
        """Return the axes that a constraint reads, by name."""
        names = self.forms.scope(constraint)
        read = {c for n in names for form in (self.change[n], self.action.get(n, {})) for c in form if c}
        return [self.axes[name] for name in sorted({self.owner[c] for c in read})]

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

    def _cases(self, constraint: Constraint, axes: Sequence[Axis]) -> list[tuple[Formula, _Unless]]:
        """Read a rule that is a formula only where its narrow axes are known: one case per joint point of these."""
        narrow = [axis for axis in axes if axis.points is not None]
        cases: list[tuple[Formula, _Unless]] = []
        curved = NotCountableError(f"{constraint.label} is curved over wide numbers")
        if not narrow or math.prod(axis.count for axis in narrow) > MOST_CASES:
            raise curved
        for points in product(*(range(axis.count) for axis in narrow)):
            columns: dict[str, FloatArray] = {}
            for axis, i in zip(narrow, points):
                columns |= {n: v[0] for n, v in axis.at(np.array([i])).items()}
            known: dict[Var, float] = {}
            for n in self.forms.scope(constraint):
                for layer, forms, start in (("value", self.change, self.x[n]), ("change", self.change, 0.0), ("action", self.action, 0.0)):
                    if n in forms and all(c in columns or not c for c in forms[n]):
                        known[layer, n] = float(start + value_of(forms[n], columns))
            formula = self.forms.formula(constraint, self.x, known)
            if formula is None:
                raise curved
            cases.append((self.read(formula), {axis.name: np.arange(axis.count) != i for axis, i in zip(narrow, points)}))
        return cases

    def read(self, formula: Formula) -> Formula:
        """Return a formula with what is known everywhere put in; wide axes are cut where a row over one of them changes."""
        match formula:
            case Row():
                found = self._sum(formula)
                if isinstance(found, bool):
                    return Truth(found)
                for name, slope in found.slopes.items() if len(found.terms) == 1 else ():
                    axis, ends = self.axes[name], {found.constant // slope + 1, -(-found.constant // slope)}  # past the last, and the first, that fits
                    if found.relation in ("<=", ">="):
                        ends = {max(ends) if (found.relation == "<=") == (slope > 0) else min(ends)}
                    axis.cuts |= {c for c in ends if axis.low < c <= axis.high}
            case All(parts):
                return all_of(map(self.read, parts))
            case Some(parts):
                return some_of(map(self.read, parts))
            case OneOf(variables, table):
                return some_of(all_of(self.read(Row(Linear.of(var) - v, "==")) for var, v in zip(variables, line)) for line in table.tolist())
        return formula

    def _sum(self, row: Row) -> Sum | bool:
        """Return a row over whole numbers, or whether it holds everywhere or nowhere; strict relations are steps of one."""
        edge = scalar(row.linear.const)
        form = self.form(row.linear) if math.isfinite(edge) else None
        if form is None:  # no comparison with a missing value holds; an infinite constant decides
            return bool(math.isinf(edge) and compare(row.relation, edge, 0.0))
        parts = {}
        for column, c in form.items():
            if column and c:
                axis = self.axes[self.owner[column]]
                parts[column] = c / (1 if axis.points is None else axis.whole[column][1])
        scale = math.lcm(*(c.denominator for c in parts.values()))
        limit = -form[""] * scale
        terms: dict[str, IntArray] = {}
        slopes: dict[str, int] = {}
        for column, c in parts.items():
            axis, slope = self.axes[self.owner[column]], int(c * scale)
            values = axis.lows if axis.points is None else axis.whole[column][0]
            if abs(slope) * max(1, int(np.abs(values).max())) >= LARGEST:
                raise NotCountableError("numbers beyond 2^62")
            terms[axis.name] = terms.get(axis.name, 0) + slope * values
            if axis.points is None:
                slopes[axis.name] = slope
        for name in [n for n, t in terms.items() if n not in slopes and (t == t[:1]).all()]:  # the same at every point
            limit -= int(terms.pop(name)[:1].sum())
        if row.relation in ("==", "!=") and limit.denominator > 1:
            return row.relation == "!="
        if row.relation in ("<", ">="):
            constant = math.ceil(limit) - (row.relation == "<")
        else:
            constant = math.floor(limit) + (row.relation == ">")
        found = Sum(terms, {"<": "<=", ">": ">="}.get(row.relation, row.relation), constant, slopes)
        least, most = self._range(found)
        if max(-least, most, abs(constant)) >= LARGEST:
            raise NotCountableError("numbers beyond 2^62")
        known = _known(found.relation, least, most, constant)
        return found if known is None else known

    def _range(self, row: Sum) -> tuple[int, int]:
        """Return the least and the most that the terms of a row add up to."""
        least = most = 0
        for name, term in row.terms.items():
            axis = self.axes[name]
            ends = [row.slopes[name] * end for end in (axis.low, axis.high)] if name in row.slopes else [int(term.min()), int(term.max())]
            least, most = least + min(ends), most + max(ends)
        return least, most

    # -- formulas as rows and rules --------------------------------------------------------------------------------------------

    def _names(self, formula: Formula) -> list[str]:
        """Return the axes that a formula reads, by name."""
        match formula:
            case Row():
                found = self._sum(formula)
                return [] if isinstance(found, bool) else sorted(found.terms)
            case All(parts) | Some(parts):
                return sorted({name for part in parts for name in self._names(part)})
        return []

    def _truth(self, formula: Formula, axis: str) -> BoolArray:
        """Return where a formula over one axis holds, by class."""
        match formula:
            case Row():
                found = self._sum(formula)
                if isinstance(found, Sum):
                    return _compare(found.terms[axis], found.relation, found.constant)
                return np.full(len(self.axes[axis].lows), found)
            case All(parts):
                return np.asarray(np.all([self._truth(part, axis) for part in parts], axis=0))
            case Some(parts):
                return np.asarray(np.any([self._truth(part, axis) for part in parts], axis=0))
        raise TypeError(formula)

    def _require(self, formula: Formula, unless: _Unless, key: str) -> None:
        """Add rows and rules for: the formula holds, or one of the truths in `unless` does."""
        names = self._names(formula)
        if len(names) == 1:
            self._one_of(_joined(unless, names[0], self._truth(formula, names[0])))
            return
        match formula:
            case Truth(value):
                if not np.all(value):
                    self._one_of(unless)
            case Row():
                found = self._sum(formula)
                assert isinstance(found, Sum)
                self._add(found, unless)
            case All(parts):
                for part in parts:
                    self._require(part, unless, key)
            case Some(parts):
                rest = []
                for part in parts:
                    if len(alone := self._names(part)) == 1:
                        unless = _joined(unless, alone[0], self._truth(part, alone[0]))
                    else:
                        rest.append(part)
                if len(rest) > 1:
                    self._choose(rest, unless, key)
                else:
                    self._require(rest[0] if rest else Truth(False), unless, key)

    def _choose(self, parts: Sequence[Formula], unless: _Unless, key: str) -> None:
        """Add an axis that tells which part is the first to hold, so that no point is counted twice; 0 where `unless` holds."""
        prefix = f"\1{key}\1"
        name = f"{prefix}{sum(other.startswith(prefix) for other in self.axes)}"
        self.axes[name] = Axis(name, (), np.zeros((len(parts), 0)))
        number = np.arange(len(parts))
        for axis, truth in unless.items():
            self._one_of({axis: ~truth, name: number == 0})
        for k, part in enumerate(parts):
            elsewhere = _joined(unless, name, number != k)
            for required in (part, *map(negate, parts[:k])):
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

    def _add(self, row: Sum, unless: _Unless) -> None:
        """Add a row that must hold unless one of the truths does: those open it as far as it can reach."""
        if unless and row.relation == "==":
            for relation in ("<=", ">="):
                self._add(replace(row, relation=relation), unless)
            return
        least, most = self._range(row)
        open_by = {"<=": row.constant - most, ">=": row.constant - least, "!=": most - least + 1, "==": 0}[row.relation]
        terms = dict(row.terms)
        for name, truth in unless.items():
            terms[name] = terms.get(name, np.zeros(len(truth), dtype=np.int64)) + open_by * truth
        if len(terms) == 2 and not row.slopes and math.prod(map(len, terms.values())) <= SMALL_TABLE:
            (a, first), (b, second) = sorted(terms.items())
            self.tables.append(Table((a, b), _compare(np.add.outer(first, second), row.relation, row.constant)))
        else:
            self.sums.append(Sum(terms, row.relation, row.constant, row.slopes))


def _compare(values: IntArray, relation: str, constant: int) -> BoolArray:
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


def _joined(unless: _Unless, axis: str, truth: BoolArray) -> _Unless:
    return {**unless, axis: unless[axis] | truth if axis in unless else truth}
