"""Formulas (rows joined by All and Some, lists of joint values) → rows of a mixed-integer program.

A row that holds only under a condition gets an indicator, and the smallest constant that switches it off, from the
bounds of its variables. Rows over whole numbers are made whole first: then strict relations are steps of one, and a
constant that is whole too leaves no tolerance. Over real numbers equality has the tolerance of the masks, and strict
relations keep a margin that the solver can see.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from budge.errors import SolverError
from budge.expressions import TOLERANCE, All, Formula, Linear, OneOf, Row, Some, Truth, Var, common_denominator, fraction
from budge.expressions.tolerance import LARGEST_EXACT
from budge.program.solver import Program

__all__ = ["Affine", "Compiler"]

FloatArray = npt.NDArray[np.float64]
LEAK = 0.01  # how far a whole row that is switched off may be open by the solver's tolerance


@dataclass(frozen=True)
class Affine:
    """``const + Σ coefficient · column``."""

    terms: Mapping[int, float]
    const: float = 0.0

    def plus(self, other: Affine, factor: float = 1.0) -> Affine:
        """This one plus a multiple of another."""
        terms = dict(self.terms)
        for column, value in other.terms.items():
            terms[column] = terms.get(column, 0.0) + factor * value
        return Affine({k: v for k, v in terms.items() if v != 0.0}, self.const + factor * other.const)


@dataclass(frozen=True)
class _Band:
    """``lower <= Σ coefficient · column <= upper``, neither certain nor impossible within the bounds."""

    terms: Mapping[int, float]
    lower: float
    upper: float


@dataclass(frozen=True)
class _Both:
    parts: tuple[_Node, ...]


@dataclass(frozen=True)
class _Either:
    parts: tuple[_Node, ...]


@dataclass(frozen=True)
class _Table:
    forms: tuple[Affine, ...]
    table: FloatArray


_Node = bool | _Band | _Both | _Either | _Table


class Compiler:
    """Adds formulas to a program whose variables are known under names.

    Parameters
    ----------
    program
        Gets rows and indicators.
    forms
        What every variable of a formula is in columns of the program.
    closed
        Whether strict relations over real numbers include equality, so that no point of the formula is lost. Otherwise they keep a margin.
    """

    def __init__(self, program: Program, forms: Mapping[Var, Affine], *, closed: bool = False) -> None:
        self.program = program
        self.forms = forms
        self.closed = closed
        self.strict = False  #: whether a strict relation over real numbers came up
        self._halves: dict[int, tuple[int, int]] = {}
        self.leaks = False  #: whether a constant that switches a row off is so large that the solver's tolerance opens the row

    def add(self, formula: Formula) -> None:
        """Make the formula hold."""
        self._emit(self._normal(formula), None)

    def affine(self, linear: Linear) -> Affine:
        """A linear form over named variables as one over columns."""
        total = Affine({}, float(linear.const))
        for var, coefficient in linear.terms.items():
            total = total.plus(self.forms[var], float(coefficient))
        return total

    def range(self, form: Affine) -> tuple[float, float]:
        """Lowest and highest value within the bounds of the columns."""
        low, high = self._span(form.terms)
        return form.const + low, form.const + high

    def halves(self, column: int) -> tuple[int, int]:
        """The positive and the negative part of a column, of which only one is not zero (the paper's a+, a- and sign)."""
        if column not in self._halves:
            low, high = self.program.limits(column)
            integer = self.program.is_whole(column)
            up = self.program.variable(0.0, max(high, 0.0), integer=integer)
            down = self.program.variable(0.0, max(-low, 0.0), integer=integer)
            self.program.row({column: 1.0, up: -1.0, down: 1.0}, lower=0.0, upper=0.0)
            if low < 0.0 < high:
                sign = self.program.variable(0.0, 1.0, integer=True)
                self.program.row({up: 1.0, sign: -high}, upper=0.0)
                self.program.row({down: 1.0, sign: -low}, upper=-low)
            self._halves[column] = up, down
        return self._halves[column]

    # -- formula → normal form, with what the bounds already decide taken out -----------------------------------------

    def _normal(self, formula: Formula) -> _Node:
        match formula:
            case Truth(value):
                return bool(np.all(value))
            case Row(linear, relation, _, whole):
                return self._row(self.affine(linear), relation, whole)
            case All(parts):
                return _both(self._normal(part) for part in parts)
            case Some(parts):
                return _either(self._normal(part) for part in parts)
            case OneOf(names, table, whole):
                return self._listed(tuple(self.forms[var] for var in names), table, whole)

    def _row(self, form: Affine, relation: str, exact: bool) -> _Node:
        if not math.isfinite(form.const):  # a missing value satisfies no comparison
            return False
        terms = {column: value for column, value in form.terms.items() if value != 0.0}
        whole = self._whole(terms)
        if whole is not None:
            return self._whole_row(*whole, -form.const, relation, exact)
        rhs, sizes = -form.const, [abs(v) * max(map(abs, self.program.limits(c))) for c, v in terms.items()]
        largest = max([1.0, abs(rhs), *sizes])
        slack = TOLERANCE * max(1.0, abs(rhs), 1e-3 * largest)
        margin = 10.0 * self.program.tolerance * largest
        if relation in ("<", ">", "!="):
            self.strict = self.strict or bool(terms)
            if self.closed and terms:
                relation, slack = {"<": "<=", ">": ">="}.get(relation, relation), 0.0
                if relation == "!=":
                    return True
        match relation:
            case "<=":
                return self._band(terms, -math.inf, rhs + slack)
            case ">=":
                return self._band(terms, rhs - slack, math.inf)
            case "<":
                return self._band(terms, -math.inf, rhs - margin)
            case ">":
                return self._band(terms, rhs + margin, math.inf)
            case "==":
                return self._band(terms, rhs - slack, rhs + slack)
            case _:
                return self._apart(terms, rhs, rhs - margin, rhs + margin)

    def _whole(self, terms: Mapping[int, float]) -> tuple[dict[int, float], int] | None:
        """The row times the least number that makes its coefficients whole, if its columns are whole too."""
        if not all(self.program.is_whole(column) for column in terms):
            return None
        scale = common_denominator(terms.values())
        if scale is None:
            return None
        return {column: float(found * scale) for column, value in terms.items() if (found := fraction(value)) is not None}, scale

    def _whole_row(self, terms: Mapping[int, float], scale: int, rhs: float, relation: str, exact: bool) -> _Node:
        """A row whose terms are whole; `exact`: its constant is whole too, up to rounding."""
        side = rhs * scale
        slack = TOLERANCE * max(scale, abs(side))
        if exact and abs(side) < LARGEST_EXACT:
            side, slack = float(round(side)), 0.0
        first, last = math.ceil(side - slack), math.floor(side + slack)  # the whole numbers that count as equal to the constant
        match relation:
            case "<=":
                return self._band(terms, -math.inf, last)
            case ">=":
                return self._band(terms, first, math.inf)
            case "<":
                return self._band(terms, -math.inf, first - 1)
            case ">":
                return self._band(terms, last + 1, math.inf)
            case "==":
                return self._band(terms, first, last)
            case _:
                return self._apart(terms, side, first - 1, last + 1) if first <= last else True

    def _apart(self, terms: Mapping[int, float], rhs: float, below: float, above: float) -> _Node:
        """Not equal: below or above; a single column that may not be zero uses its two halves."""
        low, high = self._span(terms)
        if len(terms) == 1 and rhs == 0.0 and low <= below and high >= above:
            ((column, value),) = terms.items()
            return _Band(dict.fromkeys(self.halves(column), abs(value)), min(-below, above), math.inf)
        return _either([self._band(terms, -math.inf, below), self._band(terms, above, math.inf)])

    def _band(self, terms: Mapping[int, float], lower: float, upper: float) -> _Node:
        low, high = self._span(terms)
        if lower > high or upper < low or lower > upper:
            return False
        return True if lower <= low and upper >= high else _Band(terms, lower, upper)

    def _listed(self, forms: tuple[Affine, ...], table: FloatArray, whole: bool) -> _Node:
        rows = []
        for values in table:
            fits = [self._row(Affine(form.terms, form.const - float(v)), "==", whole) for form, v in zip(forms, values)]
            if False not in fits:
                rows.append(values)
            if all(fit is True for fit in fits):
                return True
        if len(rows) < 2:
            if not rows:
                return False
            return _both(self._row(Affine(f.terms, f.const - float(v)), "==", whole) for f, v in zip(forms, rows[0]))
        return _Table(forms, np.array(rows))

    def _span(self, terms: Mapping[int, float]) -> tuple[float, float]:
        low = high = 0.0
        for column, value in terms.items():
            least, most = self.program.limits(column)
            low += value * (least if value > 0 else most)
            high += value * (most if value > 0 else least)
        return low, high

    # -- normal form → rows, under a guard that is 0 or 1 --------------------------------------------------------------

    def _emit(self, node: _Node, guard: Affine | None) -> None:
        match node:
            case bool():
                if not node:
                    self._never(guard)
            case _Band():
                self._emit_band(node, guard)
            case _Both(parts):
                for part in parts:
                    self._emit(part, guard)
            case _Either(parts):
                total = Affine({})
                for part in parts:
                    chosen = self._literal(part)
                    if chosen is None:
                        chosen = Affine({self.program.variable(0.0, 1.0, integer=True): 1.0})
                        self._emit(part, chosen)
                    total = total.plus(chosen)
                total = total.plus(guard or Affine({}, 1.0), -1.0)
                self.program.row(total.terms, lower=-total.const)
            case _Table(forms, table):
                self._emit_table(forms, table, guard)

    def _never(self, guard: Affine | None) -> None:
        guard = guard or Affine({}, 1.0)
        self.program.row(guard.terms, upper=-guard.const)

    def _emit_band(self, band: _Band, guard: Affine | None) -> None:
        if guard is None:
            if len(band.terms) == 1:
                self._tighten(band)
            else:
                self.program.row(band.terms, lower=band.lower, upper=band.upper)
            return
        low, high = self._span(band.terms)
        for bound, limit, side in ((band.upper, high, "upper"), (band.lower, low, "lower")):
            off = limit - bound  # what switches the row off
            if (off <= 0.0) if side == "upper" else (off >= 0.0):
                continue
            if not math.isfinite(off):
                raise SolverError(
                    "a condition over a feature without finite bounds cannot be written as rows", remedy="give it bounds"
                )
            if abs(off) * self.program.tolerance > LEAK and all(self.program.is_whole(column) for column in band.terms):
                self.leaks = True
            form = Affine(band.terms).plus(guard, off)
            room = limit - form.const
            self.program.row(form.terms, **{side: room})

    def _tighten(self, band: _Band) -> None:
        ((column, value),) = band.terms.items()
        low, high = sorted((band.lower / value, band.upper / value))
        self.program.tighten(column, low, high)

    def _emit_table(self, forms: tuple[Affine, ...], table: FloatArray, guard: Affine | None) -> None:
        chosen = [self.program.variable(0.0, 1.0, integer=True) for _ in table]
        total = Affine(dict.fromkeys(chosen, 1.0)).plus(guard or Affine({}, 1.0), -1.0)
        self.program.row(total.terms, lower=-total.const, upper=-total.const)
        for j, form in enumerate(forms):
            low, high = self._span(form.terms)
            sides = table[:, j] - form.const
            if all(self.program.is_whole(c) for c in form.terms):
                sides = np.round(sides, 9)
            reached = Affine(form.terms).plus(Affine(dict(zip(chosen, sides.tolist()))), -1.0)
            slack = (
                0.0
                if all(self.program.is_whole(c) for c in form.terms)
                else TOLERANCE * max(1.0, float(np.abs(table[:, j]).max()))
            )
            if guard is None:
                self.program.row(reached.terms, lower=-slack, upper=slack)
                continue
            for off, side in ((high, "upper"), (low, "lower")):
                open_ = reached.plus(guard, off)  # 0 when the guard is on, the whole span when it is off
                room = off - open_.const
                self.program.row(open_.terms, **{side: room + slack if side == "upper" else room - slack})

    def _literal(self, node: _Node) -> Affine | None:
        """The node as a 0/1 form, where it says just which of two neighbouring values a column takes."""
        if not isinstance(node, _Band) or len(node.terms) != 1:
            return None
        ((column, value),) = node.terms.items()
        low, high = self.program.limits(column)
        if not self.program.is_whole(column) or high - low != 1.0:
            return None
        upper_on = node.lower <= value * high <= node.upper
        return Affine({column: 1.0}, -low) if upper_on else Affine({column: -1.0}, high)


def _both(parts: Iterable[_Node]) -> _Node:
    kept: list[_Node] = []
    for part in parts:
        if part is False:
            return False
        if part is not True:
            kept.extend(part.parts if isinstance(part, _Both) else (part,))
    return True if not kept else kept[0] if len(kept) == 1 else _Both(tuple(kept))


def _either(parts: Iterable[_Node]) -> _Node:
    kept: list[_Node] = []
    for part in parts:
        if part is True:
            return True
        if part is not False:
            kept.extend(part.parts if isinstance(part, _Either) else (part,))
    return False if not kept else kept[0] if len(kept) == 1 else _Either(tuple(kept))
