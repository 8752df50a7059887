"""What a configuration leaves open to the continuous coordinates: boxes and polytopes, cell by cell.

Given the discrete configurations, every linear constraint turns into rows over the coordinates of the fibre (the
real features, and whole-numbered ones that are cheaper counted than listed). Conditions that are decided by the
configuration switch rows on and off; conditions that are not split the fibre into disjoint cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from budge.expressions import All, Formula, Linear, OneOf, Row, Some, Truth, Var, compare, negate

__all__ = ["Cell", "TooManyCellsError", "both", "boxes", "cells_of", "resolve", "strict_rows"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
MOST_CELLS = 512  # before those that are empty are dropped


class TooManyCellsError(Exception):
    """A condition splits the fibre into more cells than are kept apart; the caller falls back to rejection."""


@dataclass(frozen=True)
class Half:
    """``Σ coefficient · coordinate + constant  relation  0`` where `active`."""

    coefficients: Mapping[str, FloatArray]  # each (m,)
    constant: FloatArray
    relation: str  # <=, ==; < and != leave out what has no volume, and say no where nothing else is left
    active: BoolArray


@dataclass(frozen=True)
class Cell:
    """A conjunction of rows, for the configurations where it exists at all."""

    active: BoolArray
    rows: tuple[Half, ...] = ()


def resolve(formula: Formula, known: Mapping[Var, FloatArray | float], symbols: Mapping[Var, Linear]) -> Formula:
    """The formula over coordinates only: known values put in, features written as forms in the coordinates."""
    match formula:
        case Row(linear, relation):
            form = Linear({}, linear.const)
            for var, c in linear.terms.items():
                if var in symbols:
                    form = form + symbols[var] * c
                else:
                    form = form + np.multiply(c, known[var])
            return Row(form, relation)
        case All(parts):
            return All(tuple(resolve(p, known, symbols) for p in parts))
        case Some(parts):
            return Some(tuple(resolve(p, known, symbols) for p in parts))
        case OneOf(variables, table):
            options = [All(tuple(Row(Linear({var: 1.0}, -value), "==") for var, value in zip(variables, row))) for row in table]
            return resolve(Some(tuple(options)), known, symbols)
    return formula


def cells_of(formula: Formula, m: int, whole: Sequence[str] = ()) -> list[Cell]:
    """The formula as disjoint cells, one list for all m configurations (disjoint up to measure zero)."""
    match formula:
        case Truth(value):
            return [Cell(np.array(np.broadcast_to(value, (m,))))]
        case Row():
            return _row_cells(formula, m, whole)
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
        truth = _known(part, m)
        if truth is None:
            open_parts.append(part)
        else:
            settled |= truth
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


def _known(formula: Formula, m: int) -> BoolArray | None:
    """The truth of a formula that no coordinate enters."""
    match formula:
        case Truth(value):
            return np.array(np.broadcast_to(value, (m,)))
        case Row(linear, relation):
            if linear.terms:
                return None
            return np.array(np.broadcast_to(compare(relation, linear.const, 0.0), (m,)))
        case All(parts) | Some(parts):
            truths = [_known(part, m) for part in parts]
            if any(t is None for t in truths):
                return None
            stacked = np.array([t for t in truths if t is not None]).reshape(len(truths), m)
            return np.asarray(stacked.all(axis=0) if isinstance(formula, All) else stacked.any(axis=0))
    return None


def _row_cells(row: Row, m: int, whole: Sequence[str]) -> list[Cell]:
    coefficients = {name: np.array(np.broadcast_to(np.asarray(c, dtype=float), (m,))) for (_, name), c in row.linear.terms.items()}
    constant = np.array(np.broadcast_to(np.asarray(row.linear.const, dtype=float), (m,)))
    used = np.zeros(m, dtype=bool)
    for c in coefficients.values():
        used |= c != 0
    truth = compare(row.relation, constant, 0.0)
    exists = used | truth
    counted = any(name in whole for name in coefficients)
    if row.relation == "!=" and counted:
        return _some_cells((Row(row.linear, "<"), Row(row.linear, ">")), m, whole)
    relation, sign = row.relation, 1.0
    if relation in (">=", ">"):
        relation, sign = {">=": "<=", ">": "<"}[relation], -1.0
    half = Half({name: sign * c for name, c in coefficients.items()}, sign * constant, relation, used)
    return [Cell(exists, (half,) if used.any() else ())]


def both(a: Cell, b: Cell) -> Cell | None:
    """Where both hold; None where that is nowhere."""
    active = a.active & b.active
    if not active.any():
        return None
    merged = Cell(active, a.rows + b.rows)
    return None if a.rows and b.rows and len(active) <= 4096 and _contradicts(merged) else merged


def _contradicts(cell: Cell) -> bool:
    """Whether rows with one coordinate leave nothing to any configuration: most cells of a long list of cases are like that."""
    low: dict[str, FloatArray] = {}
    high: dict[str, FloatArray] = {}
    for row in cell.rows:
        if len(row.coefficients) != 1 or row.relation == "!=":
            continue
        ((name, c),) = row.coefficients.items()
        at = row.active & (c != 0)
        bound = np.divide(-row.constant, c, out=np.zeros_like(c), where=c != 0)
        if row.relation == "==":
            upper = lower = at
        else:
            upper, lower = at & (c > 0), at & (c < 0)
        high[name] = np.minimum(high.get(name, np.inf), np.where(upper, bound, np.inf))
        low[name] = np.maximum(low.get(name, -np.inf), np.where(lower, bound, -np.inf))
    gone = np.zeros(len(cell.active), dtype=bool)
    for name in low:
        slack = 1e-8 * np.maximum(1.0, np.maximum(np.abs(low[name]), np.abs(high[name])))
        with np.errstate(invalid="ignore"):
            gone |= low[name] - high[name] > slack
    return bool((gone | ~cell.active).all())


def boxes(
    cell: Cell, names: Sequence[str], low: FloatArray, high: FloatArray, whole: Sequence[bool]
) -> tuple[FloatArray, FloatArray, BoolArray, list[Half]]:
    """Tighten the box of each configuration by the rows with one coordinate; return box, existence and the other rows."""
    low, high, exists = low.copy(), high.copy(), cell.active.copy()
    place = {name: i for i, name in enumerate(names)}
    coupled: list[Half] = []
    for row in cell.rows:
        if row.relation == "!=":
            continue
        several = np.zeros(len(exists), dtype=int)
        for c in row.coefficients.values():
            several += c != 0
        if (several[row.active] > 1).any():
            coupled.append(row)
            continue
        for name, c in row.coefficients.items():
            j = place[name]
            at = row.active & (c != 0)
            if not at.any():
                continue
            bound = np.divide(-row.constant, c, out=np.zeros_like(c), where=c != 0)
            nudge = 1e-9 * np.maximum(1.0, np.abs(bound)) if whole[j] else 0.0  # whole numbers forgive rounding
            strict = row.relation == "<"
            if row.relation == "==":
                low[at, j] = np.maximum(low[at, j], (bound - nudge)[at])
                high[at, j] = np.minimum(high[at, j], (bound + nudge)[at])
                continue
            upper = at & (c > 0)
            lower = at & (c < 0)
            if whole[j] and strict:
                high[upper, j] = np.minimum(high[upper, j], np.ceil((bound - nudge)[upper]) - 1)
                low[lower, j] = np.maximum(low[lower, j], np.floor((bound + nudge)[lower]) + 1)
            else:
                high[upper, j] = np.minimum(high[upper, j], (bound + nudge)[upper])
                low[lower, j] = np.maximum(low[lower, j], (bound - nudge)[lower])
    for j, counted in enumerate(whole):
        if counted:
            forgiven = 1e-9 * np.maximum(1.0, np.maximum(np.abs(low[:, j]), np.abs(high[:, j])))
            low[:, j], high[:, j] = np.ceil(low[:, j] - forgiven), np.floor(high[:, j] + forgiven)
    slack = 1e-9 * np.maximum(1.0, np.maximum(np.abs(low), np.abs(high)))
    exists &= (low <= high + slack).all(axis=1)
    high = np.maximum(high, low)
    return low, high, exists, coupled


def strict_rows(cell: Cell, names: Sequence[str], whole: Sequence[bool]) -> list[Half]:
    """The rows over real coordinates that leave out a boundary."""
    counted = {name for name, is_whole in zip(names, whole) if is_whole}
    return [row for row in cell.rows if row.relation in ("<", "!=") and not counted & set(row.coefficients)]
