"""What a configuration leaves open to the continuous coordinates: boxes and polytopes, cell by cell.

Given the discrete configurations, every linear constraint turns into rows over the coordinates of the fibre (the
real features, and whole-numbered ones that are cheaper counted than listed). Conditions that are decided by the
configuration switch rows on and off; conditions that are not split the fibre into disjoint cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from budge.expressions import All, Formula, Linear, OneOf, Row, Some, Total, Truth, Var, compare, negate
from budge.expressions.tolerance import round_down, round_up

__all__ = ["Box", "Cell", "Coordinate", "Half", "TooManyCellsError", "both", "cells_of", "has_room", "joined", "margin", "resolve", "tightened"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
FEW_BENDS = 6  # absolute values of which fewer are written as one row for each choice of signs: polytopes of many configurations are drawn together
MOST_CELLS = 512  # before those that are empty are dropped


class TooManyCellsError(Exception):
    """A condition splits the fibre into more cells than are kept apart; the caller falls back to rejection."""


@dataclass(frozen=True)
class Coordinate:
    """One open coordinate: its box for each configuration, whether it counts in whole numbers, its density."""

    name: str
    low: FloatArray  # (m,)
    high: FloatArray
    whole: bool = False
    log_from: FloatArray | None = None  # start value x where the density is 1/value over x + coordinate


@dataclass(frozen=True)
class Half:
    """``Σ coefficient · coordinate + constant  relation  0`` where `active`."""

    coefficients: Mapping[str, FloatArray]  # each (m,)
    constant: FloatArray
    relation: str  # <=, ==; < and != leave out what has no volume, and say no where nothing else is left
    active: BoolArray
    even: bool = False  # whether the coefficients are the same for every configuration, by how the row is written
    whole: bool = False  # every term and the constant are whole numbers
    bends: Mapping[str, tuple[FloatArray, FloatArray]] = field(default_factory=dict)  # factor and place of |coordinate - place|, each (m,)

    def uses(self, name: str) -> BoolArray:
        """Return where a coordinate enters."""
        return np.asarray((self.coefficients[name] != 0) | (name in self.bends))

    def term(self, name: str, value: FloatArray | float) -> FloatArray:
        """Return what a value of a coordinate adds."""
        added = self.coefficients[name] * value
        if name in self.bends:
            factor, at = self.bends[name]
            added = added + factor * np.abs(value - at)
        return np.asarray(added)


@dataclass(frozen=True)
class Cell:
    """A conjunction of rows, for the configurations where it exists at all."""

    active: BoolArray
    rows: tuple[Half, ...] = ()


F = TypeVar("F", Formula, Formula | Total)


def resolve(formula: F, known: Mapping[Var, FloatArray | float], symbols: Mapping[Var, Linear]) -> F:
    """The formula over coordinates only: known values put in, features written as forms in the coordinates."""

    def put(linear: Linear) -> Linear:
        put_in: list[Linear] = [symbols[var] * c if var in symbols else Linear({}, np.multiply(c, known[var])) for var, c in linear.terms.items()]
        return Linear.total([Linear({}, linear.const), *put_in])

    match formula:
        case Row(linear, relation):
            return Row(put(linear), relation, whole=formula.whole)
        case Total(linear, parts, relation, rows):
            within = None if rows is None else resolve(rows, known, symbols)
            return Total(put(linear), tuple(put(part) for part in parts), relation, within)  # type: ignore[return-value]
        case All(parts):
            return All(tuple(resolve(p, known, symbols) for p in parts))
        case Some(parts):
            return Some(tuple(resolve(p, known, symbols) for p in parts))
        case OneOf(variables, table, whole):
            options = [All(tuple(Row(Linear({var: 1.0}, -value), "==", whole=whole) for var, value in zip(variables, row))) for row in table]
            return resolve(Some(tuple(options)), known, symbols)
    return formula


def cells_of(formula: Formula | Total, m: int, whole: Sequence[str] = ()) -> list[Cell]:
    """The formula as disjoint cells, one list for all m configurations (disjoint up to measure zero)."""
    match formula:
        case Truth(value):
            return [Cell(np.array(np.broadcast_to(value, (m,))))]
        case Row():
            return _row_cells(formula, m, whole)
        case Total(rows=rows):
            bent = _bent(formula, m, whole)
            if bent is not None:
                return [bent]
            if rows is None:
                raise TooManyCellsError
            return cells_of(rows, m, whole)
        case All(parts):
            result = [Cell(np.ones(m, dtype=bool))]
            for part in parts:
                result = [merged for a in result for b in cells_of(part, m, whole) if (merged := both(a, b)) is not None]
                if len(result) > MOST_CELLS:
                    raise TooManyCellsError
            return result or [Cell(np.zeros(m, dtype=bool))]
        case Some(parts):
            return _some_cells(parts, m, whole)
    raise TypeError(formula)


def _some_cells(parts: Sequence[Formula], m: int, whole: Sequence[str]) -> list[Cell]:
    """Where one part is known to hold nothing else is asked; elsewhere one cell for each part, without the ones before."""
    settled, open_parts = np.zeros(m, dtype=bool), []
    for part in parts:
        if _is_open(part):
            open_parts.append(part)
        else:
            settled |= np.any([cell.active for cell in cells_of(part, m, whole)], axis=0)
    asked = ~settled
    result: list[Cell] = []
    if asked.any():
        for i, part in enumerate(open_parts):
            apart = All((part, *(negate(earlier) for earlier in open_parts[:i])))
            for cell in cells_of(apart, m, whole):
                rows = tuple(replace(row, active=row.active & asked) for row in cell.rows)
                if (cell.active & asked).any():
                    result.append(Cell(cell.active & asked, rows))
                if len(result) > MOST_CELLS:
                    raise TooManyCellsError
    if not settled.any():
        return result or [Cell(np.zeros(m, dtype=bool))]
    if result:  # the first cell also serves the configurations that ask nothing: its rows are off there
        first = result[0]
        return [Cell(first.active | settled, first.rows), *result[1:]]
    return [Cell(settled)]


def _is_open(formula: Formula) -> bool:
    """Return whether some coordinate enters a formula."""
    if isinstance(formula, All | Some):
        return any(_is_open(part) for part in formula.parts)
    return isinstance(formula, Row) and bool(formula.linear.terms)


def _row_cells(row: Row, m: int, whole: Sequence[str]) -> list[Cell]:
    coefficients = {name: _column(c, m) for (_, name), c in row.linear.terms.items()}
    constant = _column(row.linear.const, m)
    used = np.zeros(m, dtype=bool)
    for c in coefficients.values():
        used |= c != 0
    truth = compare(row.relation, constant, 0.0, whole=row.whole)
    exists = (used & ~np.isnan(constant + sum(coefficients.values(), np.zeros(m)))) | truth  # no comparison with a missing value holds
    counted = any(name in whole for name in coefficients)
    if row.relation == "!=" and counted:
        return _some_cells((Row(row.linear, "<", whole=row.whole), Row(row.linear, ">", whole=row.whole)), m, whole)
    relation, sign = row.relation, 1.0
    if relation in (">=", ">"):
        relation, sign = {">=": "<=", ">": "<"}[relation], -1.0
    even = all(np.ndim(c) == 0 for c in row.linear.terms.values())
    half = Half({name: sign * c for name, c in coefficients.items()}, sign * constant, relation, used, even, row.whole)
    return [Cell(exists, (half,) if used.any() else ())]


def _bent(total: Total, m: int, whole: Sequence[str]) -> Cell | None:
    """Return a total of absolute values as one row; None where one of them has several coordinates, or is not the steepest in its coordinate."""
    form, bends = total.linear, dict[str, tuple[FloatArray, FloatArray]]()
    for part in total.parts:
        if not part.terms:
            form = form + np.abs(part.const)
            continue
        (_, name), slope = next(iter(part.terms.items()))
        if len(part.terms) > 1 or name in bends or np.any(np.equal(slope, 0)):
            return None
        bends[name] = (_column(np.abs(slope), m), _column(-np.divide(part.const, slope), m))
    slopes = {name: _column(0.0, m) for name in bends} | {name: _column(c, m) for (_, name), c in form.terms.items()}
    steep = any((np.abs(slopes[name]) > factor * (1 + 1e-12)).any() for name, (factor, _) in bends.items())
    if len(bends) < FEW_BENDS or steep or slopes.keys() & set(whole):
        return None
    everywhere = ~np.isnan(_column(form.const, m))
    return Cell(everywhere, (Half(slopes, _column(form.const, m), total.relation, everywhere, bends=bends),))


def _column(value: npt.ArrayLike, m: int) -> FloatArray:
    return np.array(np.broadcast_to(np.asarray(value, dtype=float), (m,)))


def both(a: Cell, b: Cell) -> Cell | None:
    """Where both hold; None where that is nowhere."""
    active = a.active & b.active
    if not active.any():
        return None
    merged = Cell(active, a.rows + b.rows)
    return None if a.rows and b.rows and len(active) <= 4096 and _contradicts(merged) else merged


def _contradicts(cell: Cell) -> bool:
    """Return whether rows with one coordinate leave nothing, whatever the box."""
    ends = np.full(len(cell.active), np.inf)
    alone = tuple(row for row in cell.rows if len(row.coefficients) == 1)
    return not has_room(Cell(cell.active, alone), [Coordinate(name, -ends, ends) for name in {name for row in alone for name in row.coefficients}])


def joined(cells: Iterable[Cell], most: int) -> list[Cell]:
    """Return the cells with those in one that no configuration has both of; no more are looked at once there are more than so many."""
    result: list[Cell] = []
    for cell in cells:
        rows = tuple(replace(row, active=row.active & cell.active) for row in cell.rows)
        for i, other in enumerate(result):
            if not (other.active & cell.active).any():
                result[i] = Cell(other.active | cell.active, other.rows + rows)
                break
        else:
            result.append(Cell(cell.active, rows))
            if len(result) > most:
                break
    return result


@dataclass(frozen=True)
class Box:
    """What a cell leaves open to each configuration: a box, whether there is anything at all, and the rows that couple coordinates.

    `strict` are rows over real coordinates that leave out a boundary.
    """

    low: FloatArray  # (m, coordinates)
    high: FloatArray
    exists: BoolArray
    coupled: tuple[Half, ...]
    strict: tuple[Half, ...]


def tightened(cell: Cell, coordinates: Sequence[Coordinate]) -> Box:
    """Return the box of each configuration, tightened by the rows with one coordinate there; the rest of the rows couple."""
    place = {c.name: i for i, c in enumerate(coordinates)}
    low, high, exists = [c.low.copy() for c in coordinates], [c.high.copy() for c in coordinates], cell.active.copy()
    coupled, strict = [], []
    for row in cell.rows:
        row = replace(row, active=row.active & cell.active)
        if not row.active.any():
            continue
        if row.relation in ("<", "!=") and not any(coordinates[place[name]].whole for name in row.coefficients):
            strict.append(row)
        if row.relation == "!=":
            continue
        several = np.zeros(len(exists), dtype=np.intp)
        for name in row.coefficients:
            several += row.uses(name)
        joint = row.active & (several > 1)
        if joint.any():
            coupled.append(replace(row, active=joint))
        for name, c in row.coefficients.items():
            at = row.active & (c != 0) & ~joint
            if at.any():
                j = place[name]
                _tighten(low[j], high[j], coordinates[j].whole, row, c, at)
    for j, coordinate in enumerate(coordinates):
        if coordinate.whole:
            low[j], high[j] = round_up(low[j]), round_down(high[j])
            exists &= low[j] <= high[j]
        else:
            exists &= low[j] <= high[j] + 1e-9 * np.maximum(1.0, np.maximum(np.abs(low[j]), np.abs(high[j])))
            high[j] = np.maximum(high[j], low[j])
    m = (len(exists), len(coordinates))
    return Box(np.array(low).T.reshape(m), np.array(high).T.reshape(m), exists, tuple(coupled), tuple(strict))


def _tighten(low: FloatArray, high: FloatArray, whole: bool, row: Half, c: FloatArray, at: BoolArray) -> None:
    """Cut an interval by a row with this one coordinate."""
    bound = np.divide(-row.constant, c, out=np.zeros_like(c), where=c != 0)
    nudge = margin(bound, np.abs(c) if row.whole else None) if whole else 0.0  # whole numbers forgive rounding
    above, below = bound + nudge, bound - nudge
    if whole:
        above, below = np.floor(above), np.ceil(below)
        if row.relation == "<":
            above, below = below - 1, above + 1
    upper = at if row.relation == "==" else at & (c > 0)
    lower = at if row.relation == "==" else at & (c < 0)
    np.minimum(high, above, out=high, where=upper)
    np.maximum(low, below, out=low, where=lower)


def margin(value: FloatArray, slope: FloatArray | float | None = None) -> FloatArray:
    """Return the rounding that a bound of a whole number forgives: never half a step of a row of whole numbers, whose slope is given."""
    forgiven = 1e-9 * np.maximum(1.0, np.abs(value))
    if slope is None:
        return forgiven
    return np.minimum(forgiven, np.divide(0.5, slope, out=np.ones_like(forgiven), where=np.asarray(slope) != 0))


def has_room(cell: Cell, coordinates: Sequence[Coordinate], there: BoolArray | bool = True) -> bool:
    """Return whether the cell leaves a box open to some configuration of those that are there, whose coordinates have room by themselves."""
    read = {name for row in cell.rows for name in row.coefficients}
    return bool(tightened(Cell(cell.active & there, cell.rows), [c for c in coordinates if c.name in read]).exists.any())
