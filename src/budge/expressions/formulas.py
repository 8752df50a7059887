"""Conditions in a shape that a solver reads: rows, joined by All and Some.

`negate` pushes the opposite down to the rows, `substitute` puts known values in, `holds` evaluates with the tolerance of the
language, by the same rule as the comparison that a row came from.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from .evaluate import FLIP, Env, Evaluation
from .linear import Linear
from .nodes import Var
from .tolerance import TOLERANCE, compare, equal

__all__ = [
    "All",
    "Formula",
    "OneOf",
    "Row",
    "Some",
    "Total",
    "Truth",
    "all_of",
    "formula_vars",
    "holds",
    "negate",
    "row",
    "some_of",
    "substitute",
]

Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Row:
    """``linear relation 0``, with relation one of ``<= < == != >= >``.

    ``right`` is the side that was moved over, if that is known: the tolerance is measured against both sides as written.
    By default it is the constant, so that ``Σ terms`` is compared with ``-const``. ``whole``: every term and the constant are
    whole numbers, so that both sides compare exactly.
    """

    linear: Linear
    relation: str
    right: Linear | None = field(default=None, compare=False, repr=False)
    whole: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True)
class All:
    """Every part holds."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True)
class Some:
    """At least one part holds."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, eq=False)
class Truth:
    """Known to hold or not: one truth, or one for each row of the known arrays."""

    value: Truths | bool

    def __post_init__(self) -> None:
        value = np.asarray(self.value, dtype=bool)
        object.__setattr__(self, "value", bool(value) if value.ndim == 0 else value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Truth) and np.array_equal(self.value, other.value)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class OneOf:
    """The variables jointly take one of the rows of the table; ``whole``: all of them are whole numbers."""

    vars: tuple[Var, ...]
    table: npt.NDArray[np.float64]
    whole: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", np.asarray(self.table, dtype=float).reshape(-1, len(self.vars)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OneOf) and self.vars == other.vars and np.array_equal(self.table, other.table)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True)
class Total:
    """``linear + Σ |part| relation 0``, with relation ``<=`` or ``<``; as rows, which are two to the power of the parts, only where they are few."""

    linear: Linear
    parts: tuple[Linear, ...]
    relation: str
    rows: Formula | None


Formula = Row | All | Some | Truth | OneOf


def all_of(parts: Iterable[Formula]) -> Formula:
    """All of the parts, flattened, without those that are known."""
    return _join(parts, All)


def some_of(parts: Iterable[Formula]) -> Formula:
    """Some of the parts, flattened, without those that are known."""
    return _join(parts, Some)


def _join(parts: Iterable[Formula], kind: type[All] | type[Some]) -> Formula:
    neutral = kind is All
    known: Truths = np.asarray(neutral)
    kept: list[Formula] = []
    for part in parts:
        for piece in part.parts if isinstance(part, kind) else (part,):
            if isinstance(piece, Truth):
                known = np.asarray(known & piece.value if neutral else known | piece.value)
            else:
                kept.append(piece)
    if not kept or np.all(known != neutral):
        return Truth(known)
    if not np.all(known == neutral):
        kept.insert(0, Truth(known))
    return kept[0] if len(kept) == 1 else kind(tuple(kept))


def row(linear: Linear, relation: str, right: Linear | None = None, *, whole: bool = False) -> Formula:
    """``linear relation 0`` without NaN or infinities: where those decide, the rest of the row has no say.

    Open variables are finite numbers, so an infinite constant settles a row, and a missing number makes it false.
    """
    # A variable that cancels is no longer open, so a side that still holds it is of no use.
    right = right if right is not None and right.vars <= linear.vars and right.is_finite else None
    if not linear.vars:
        return Truth(holds(Row(linear, relation, right, whole), {}))
    missing = np.logical_or.reduce(np.broadcast_arrays(*(np.isnan(c) for c in (linear.const, *linear.terms.values()))))
    settled = missing | np.isinf(linear.const)
    if not settled.any():
        return Row(linear, relation, right, whole)
    verdict = compare(relation, np.where(missing, np.nan, linear.const), 0.0)
    clean = Linear({var: np.where(settled, 0.0, c) for var, c in linear.terms.items()}, np.where(settled, 0.0, linear.const))
    kept = Row(clean, relation, whole=whole) if clean.vars else Truth(False)
    return some_of([Truth(settled & verdict), all_of([Truth(~settled), kept])])


def negate(formula: Formula) -> Formula:
    """The opposite, pushed down to the rows.

    Examples
    --------
    >>> negate(Row(Linear({("value", "age"): 1.0}, -18.0), ">=")).relation
    '<'
    """
    match formula:
        case Row():
            return replace(formula, relation=FLIP[formula.relation])
        case All(parts):
            return some_of(map(negate, parts))
        case Some(parts):
            return all_of(map(negate, parts))
        case Truth(value):
            return Truth(np.logical_not(value))
        case OneOf(names, table, whole):
            pairs = [[(Linear.of(var) - float(v)) for var, v in zip(names, row)] for row in table]
            return all_of(some_of(Row(form, "!=", whole=whole) for form in forms) for forms in pairs)


def formula_vars(formula: Formula) -> frozenset[Var]:
    """The variables that are still open."""
    match formula:
        case Row(linear):
            return linear.vars
        case All(parts) | Some(parts):
            return frozenset().union(*map(formula_vars, parts))
        case OneOf(names):
            return frozenset(names)
        case _:
            return frozenset()


def substitute(formula: Formula, known: Env) -> Formula:
    """The formula with known variables put in; parts that become known become Truth."""
    match formula:
        case Row(linear, relation):
            if linear.vars <= set(known):
                return Truth(holds(formula, known))
            right = formula.right
            return row(linear.substitute(known), relation, None if right is None else right.substitute(known), whole=formula.whole)
        case All(parts):
            return all_of(substitute(part, known) for part in parts)
        case Some(parts):
            return some_of(substitute(part, known) for part in parts)
        case OneOf():
            return _substitute_table(formula, known)
        case _:
            return formula


def _substitute_table(listed: OneOf, known: Env) -> Formula:
    names, table, whole = listed.vars, listed.table, listed.whole
    given = [i for i, var in enumerate(names) if var in known]
    if not given:
        return listed
    values = Evaluation(known, needs=[names[i] for i in given]).env
    fits = [np.asarray(np.logical_and.reduce([equal(values[names[i]], row[i], whole=whole) for i in given])) for row in table]
    left = [i for i in range(len(names)) if i not in given]
    if not left:
        return Truth(np.logical_or.reduce(fits)) if fits else Truth(False)
    rest = tuple(names[i] for i in left)
    if all(fit.all() or not fit.any() for fit in fits):
        rows = [row[left] for row, fit in zip(table, fits) if fit.all()]
        return OneOf(rest, np.array(rows), whole) if rows else Truth(False)
    return some_of(all_of((Truth(fit), OneOf(rest, row[left], whole))) for row, fit in zip(table, fits) if fit.any())


def holds(formula: Formula, env: Env, *, tol: float = TOLERANCE) -> Truths:
    """Where the formula holds, up to ``tol`` times the larger side of a row (at least 1)."""
    match formula:
        case Row(linear, relation, right, whole):
            if right is None:
                return compare(relation, Linear(linear.terms, 0.0).evaluate(env), -np.asarray(linear.const), tol=tol, whole=whole)
            return compare(relation, (linear + right).evaluate(env), right.evaluate(env), tol=tol, whole=whole)
        case All(parts):
            return np.asarray(np.logical_and.reduce(np.broadcast_arrays(True, *(holds(part, env, tol=tol) for part in parts))))
        case Some(parts):
            return np.asarray(np.logical_or.reduce(np.broadcast_arrays(False, *(holds(part, env, tol=tol) for part in parts))))
        case Truth(value):
            return np.asarray(value)
        case OneOf(names, table, whole):
            values = Evaluation(env, needs=names)
            total: Truths = np.zeros(values.shape, dtype=bool)
            for row in table:
                total = total | np.logical_and.reduce([equal(values.env[var], v, tol=tol, whole=whole) for var, v in zip(names, row)])
            return np.asarray(total)
