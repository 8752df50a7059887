"""Building a counting diagram: the order of its variables, wide numbers in bits, and states, level by level."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from budge.reach.diagram import LARGEST, BoolArray, Diagram, IntArray, Level, Sum, Table, Variable

__all__ = ["TooManyStatesError", "build"]

MOST_STATES = 400_000  # of one level
MOST_EDGES = 4_000_000  # of the diagram
MOST_CELLS = 5_000_000  # numbers held while one level is made
MOST_LEVELS = 10_000  # variables, and bits of wide ones
PAIR = 62  # classes that fit a bit mask
BIT = "\0"  # stands between the name of a variable and the number of a bit of it
SHORT = 8  # variables up to which a row counts as a rule when the order is chosen
K = TypeVar("K")


class TooManyStatesError(Exception):
    """The diagram grew past its limits."""


def build(variables: Sequence[Variable], sums: Sequence[Sum], tables: Sequence[Table] = ()) -> Diagram:
    """Build the diagram, or raise TooManyStatesError. What it holds depends on names and structure, not on any order given."""
    kept, sums, tables = _restricted(variables, sums, tables)
    if any(len(v.low) == 0 for v in kept):
        return Diagram(tuple(kept), (), 0)
    _check(kept, sums)
    wide = {name for s in sums for name in s.slopes}
    if sum((int(v.size.max()) - 1).bit_length() for v in kept if v.name in wide) + len(kept) > MOST_LEVELS:
        raise TooManyStatesError(f"more than {MOST_LEVELS:,} levels")
    ordered = _order(kept, sums, tables)
    tries = [_in_bits(ordered, sums, by_bit) for by_bit in (False, True)]
    if not any(s.slopes for s in sums):
        tries = tries[:1]
    tries.sort(key=lambda made: made[0])
    for _, order, rows in tries[:-1]:
        try:
            return _compile(kept, order, rows, tables)
        except TooManyStatesError:
            pass
    return _compile(kept, *tries[-1][1:], tables)


def _restricted(
    variables: Sequence[Variable], sums: Sequence[Sum], tables: Sequence[Table]
) -> tuple[list[Variable], list[Sum], list[Table]]:
    """Apply the rules over one variable: the classes that they forbid are dropped everywhere."""
    good = {v.name: np.ones(len(v.low), dtype=bool) for v in variables}
    for table in tables:
        if len(table.scope) == 1:
            good[table.scope[0]] &= table.truth
    kept = [v.keep(good[v.name]) for v in variables]
    rows = [replace(s, terms={n: t[good[n]] for n, t in s.terms.items()}) for s in sums]
    rules = [Table(t.scope, t.truth[np.ix_(*(good[n] for n in t.scope))]) for t in tables if len(t.scope) > 1]
    return kept, rows, rules


def _check(variables: Sequence[Variable], sums: Sequence[Sum]) -> None:
    """Raise where a sum may pass 2^62."""
    by_name = {v.name: v for v in variables}
    for s in sums:
        most = abs(s.constant)
        for name, term in s.terms.items():
            reach = int(by_name[name].size.max()).bit_length()
            most += int(np.abs(term).max()) + (abs(s.slopes.get(name, 0)) << reach)
        if most >= LARGEST:
            raise TooManyStatesError("a row holds numbers beyond 2^62")


def _in_bits(ordered: Sequence[Variable], sums: Sequence[Sum], by_bit: bool) -> tuple[float, list[Variable], list[Sum]]:
    """Write wide classes that rows read in bits: all bits of one number together, or bit 0 of all numbers, then bit 1, ….

    Returns a rough logarithm of the number of states, the steps and the rows.
    """
    rows = [Sum(dict(s.terms), s.relation, s.constant) for s in sums]
    numbered = _by_place((r, s.slopes) for r, s in enumerate(sums))
    heads: list[Variable] = []
    inner: list[tuple[int, int, Variable]] = []  # bit, place of the variable, step
    bounds: list[Sum] = []
    for place, step in enumerate(ordered):
        used = [(sums[r], rows[r]) for r in numbered.get(step.name, ())]
        if not used or not (step.size > 1).any():
            heads.append(step)
            continue
        heads.append(replace(step, size=np.ones_like(step.size)))
        names = [f"{step.name}{BIT}{k}" for k in range((int(step.size.max()) - 1).bit_length())]
        for k, name in enumerate(names):
            inner.append((k, place, Variable(name, np.array([0, 1 << k]), np.ones(2, dtype=np.int64))))
            for s, row in used:
                row.terms[name] = np.array([0, s.slopes[step.name] << k])  # type: ignore[index]
        if not _implied(step, [s for s, _ in used]):
            bits = {name: np.array([0, 1 << k]) for k, name in enumerate(names)}
            bounds.append(Sum({step.name: -(step.size - 1), **bits}, "<=", 0))
    if by_bit:
        steps = [*heads, *(step for _, _, step in sorted(inner, key=lambda b: b[:2]))]
    else:
        bits_of = _by_place((step, [place]) for _, place, step in reversed(inner))
        steps = [step for place, head in enumerate(heads) for step in (head, *bits_of.get(place, ()))]
    return _guess(sums, rows, by_bit, len(bounds)), steps, rows + bounds


def _implied(step: Variable, sums: Sequence[Sum]) -> bool:
    """Return whether a row with nothing negative in it keeps the number within its only class already."""
    if len(step.size) > 1:
        return False
    for s in sums:
        slope = s.slopes.get(step.name, 0)
        if slope > 0 and s.relation in ("<=", "==") and min(s.slopes.values()) > 0:
            least = sum(int(t.min()) for t in s.terms.values())
            if slope * int(step.size[0]) > s.constant - least:
                return True
    return False


def _guess(sums: Sequence[Sum], rows: Sequence[Sum], by_bit: bool, bounds: int) -> float:
    """Return a rough logarithm of the states: ranges of residuals, or carries and pending bounds."""
    found = [float(bounds)] if by_bit else [0.0]
    for s, row in zip(sums, rows):
        heads = sum(int(np.ptp(t)) for t in s.terms.values())
        span = sum(int(np.ptp(t)) for t in row.terms.values())
        if all(t.min() >= 0 for t in row.terms.values()):
            span, heads = min(span, abs(s.constant)), min(heads, abs(s.constant))
        carry = heads + sum(abs(c) for c in s.slopes.values())
        found.append(math.log2(1 + (carry if by_bit else span)))
    return math.fsum(found)


# -- the order of the variables: by their names and by what joins them, never by declaration -------------------------------


def _order(variables: Sequence[Variable], sums: Sequence[Sum], tables: Sequence[Table]) -> list[Variable]:
    """Return the variables in an order that leaves few of the tables and short rows pending at any time.

    Variables in none of these come first, those with the largest coefficients ahead. Of the others, the next is always the one that leaves
    the fewest later ones touched; ties go by size, then by name.
    """
    by_name = {v.name: v for v in variables}
    bits = {v.name: math.log2(max(2, int(v.size.sum()))) for v in variables}
    steepest = dict.fromkeys(by_name, 0)
    for s in sums:
        for name, term in s.terms.items():
            steepest[name] = max(steepest[name], int(np.abs(term).max()), abs(s.slopes.get(name, 0)))
    near: dict[str, set[str]] = {name: set() for name in by_name}
    for scope in [t.scope for t in tables] + [tuple(s.terms) for s in sums if len(s.terms) <= SHORT]:
        for name in scope:
            near[name] |= set(scope) - {name}

    def touched(name: str) -> tuple[float, float, str]:
        if name not in known:
            new = math.fsum(bits[other] for other in ({name, *near[name]} & left) - front)
            known[name] = new - (bits[name] if name in front else 0.0), bits[name], name
        return known[name]

    chosen = sorted((name for name in near if not near[name]), key=lambda name: (-steepest[name], name))
    left, front = set(near) - set(chosen), set[str]()
    known: dict[str, tuple[float, float, str]] = {}  # what is forgotten where something near is taken or touched
    while left:
        name = min(front or left, key=touched)
        left.discard(name)
        new = (near[name] & left) - front
        front = (front | new) - {name}
        for other in (name, *new):
            for beside in (other, *near[other]):
                known.pop(beside, None)
        chosen.append(name)
    return [by_name[name] for name in chosen]


# -- states, level by level -------------------------------------------------------------------------------------------------


class _Residual:
    """What a row still leaves to the later variables, in a form that is equal for states with the same future."""

    def __init__(self, row: Sum, place: Mapping[str, int]) -> None:
        sign = -1 if row.relation == ">=" else 1
        self.relation = "<=" if row.relation == ">=" else row.relation
        self.constant = sign * row.constant
        self.terms = {place[name]: sign * term for name, term in row.terms.items()}
        self.rest: dict[int, tuple[int, int, int]] = {}  # least, most and common divisor of what level i and later ones add: at the start, and after each term
        least = most = step = 0
        for i in sorted(self.terms, reverse=True):
            self.rest[i + 1] = (least, most, step)
            term = self.terms[i]
            low = int(term.min())
            least, most = least + low, most + int(term.max())
            step = math.gcd(step, *(term - low).tolist())
        self.rest[0] = (least, most, step)

    def normal(self, left: IntArray, level: int) -> tuple[IntArray, BoolArray]:
        """Return the residuals before `level` with equal futures made equal, and which of them can still be met."""
        least, most, step = self.rest[level]
        if self.relation == "==":
            good = (left >= least) & (left <= most)
            return left, good & ((left - least) % step == 0) if step else good
        if self.relation == "!=":
            free = (left < least) | (left > most)
            if step:
                free |= (left - least) % step != 0
            return np.where(free, most + 1, left), free | (least != most)
        cut = np.minimum(left, most)
        return cut - (cut - least) % step if step > 1 else cut, left >= least


def _compile(variables: Sequence[Variable], steps: Sequence[Variable], sums: Sequence[Sum], tables: Sequence[Table]) -> Diagram:
    """Return the diagram with its levels in the order of the steps: variables, or bits of them.

    The columns of a state are residuals, masks of classes, and numbers in longer rules.
    """
    place, number = ({step.name: i for i, step in enumerate(some)} for some in (steps, variables))
    rows = {("row", r): _Residual(s, place) for r, s in enumerate(sums)}
    pairs, longer = _rules(steps, tables, place)
    same: dict[tuple[str, int], int] = {}  # columns that are equal in all states
    varied: dict[tuple[str, int], IntArray] = {}
    states = 1
    for key, row in rows.items():
        start, good = row.normal(np.array([row.constant]), 0)
        same[key] = int(start[0])
        states *= int(good[0])
    read = _by_place((key, row.terms) for key, row in rows.items())
    ruled = _by_place((k, rule) for k, rule in enumerate(longer))
    masked = _by_place((key, key[:1]) for key in pairs)
    same |= {("mask", b): (1 << len(steps[b].low)) - 1 for _, b in pairs}
    same |= {("rule", k): 0 for k in range(len(longer))}
    levels: list[Level] = []
    edges = 0
    for i, step in enumerate(steps):
        classes = len(step.low)
        if states * classes * (len(varied) + 4) > MOST_CELLS:
            raise TooManyStatesError(f"{states:,} states with {classes:,} classes at level {i} of {len(steps)}")
        source, label = np.repeat(np.arange(states), classes), np.tile(np.arange(classes), states)
        keep = np.ones(len(source), dtype=bool)
        touched: dict[tuple[str, int], IntArray] = {}

        def now(key: tuple[str, int], source: IntArray = source, varied: dict[tuple[str, int], IntArray] = varied) -> IntArray:
            return varied[key][source] if key in varied else np.full(len(source), same[key], dtype=np.int64)

        if ("mask", i) in same:
            keep &= (now(("mask", i)) >> label) & 1 == 1
            touched["mask", i] = np.zeros(len(source), dtype=np.int64)
        for key in read.get(i, ()):
            touched[key], good = rows[key].normal(now(key) - rows[key].terms[i][label], i + 1)
            keep &= good
        for a, b in masked.get(i, ()):
            touched["mask", b] = now(("mask", b)) & pairs[a, b][label]
            keep &= touched["mask", b] != 0
        for k in ruled.get(i, ()):
            touched["rule", k] = longer[k][i][now(("rule", k)), label]
            keep &= touched["rule", k] >= 0
        source, label = source[keep], label[keep]
        edges += len(source)
        if edges > MOST_EDGES:
            raise TooManyStatesError(f"more than {MOST_EDGES:,} edges at level {i} of {len(steps)}")
        columns = {key: c[source] for key, c in varied.items() if key not in touched} | {key: c[keep] for key, c in touched.items()}
        varied, to = _merged(columns, same, len(source))
        start = np.zeros(states + 1, dtype=np.int64)
        np.cumsum(np.bincount(source, minlength=states), out=start[1:])
        weight = None if step.weight is None else np.array(step.weight, dtype=object)
        levels.append(Level(number[step.name.partition(BIT)[0]], step.low, step.size, weight, start, label.astype(np.int32), to.astype(np.int32)))
        states = int(to.max(initial=-1)) + 1
        if states > MOST_STATES:
            raise TooManyStatesError(f"{states:,} states at level {i} of {len(steps)}")
    return Diagram(tuple(variables), _pruned(levels, states), states)


def _by_place(items: Iterable[tuple[K, Iterable[Any]]]) -> dict[Any, list[K]]:
    """Return the keys of the items at each place that they name."""
    found: dict[Any, list[K]] = {}
    for key, places in items:
        for place in places:
            found.setdefault(place, []).append(key)
    return found


def _rules(
    steps: Sequence[Variable], tables: Sequence[Table], place: Mapping[str, int]
) -> tuple[dict[tuple[int, int], IntArray], list[dict[int, npt.NDArray[Any]]]]:
    """Return the rules over two variables as masks of the later one's classes, and the longer ones as automata."""
    pairs: dict[tuple[int, int], IntArray] = {}
    longer: list[dict[int, npt.NDArray[Any]]] = []
    automata: dict[tuple[Any, bytes], list[npt.NDArray[Any]]] = {}
    for table in tables:
        scope = sorted(table.scope, key=place.__getitem__)
        truth = np.transpose(table.truth, [table.scope.index(name) for name in scope])
        where = [place[name] for name in scope]
        if len(scope) == 2 and truth.shape[1] <= PAIR:
            masks: IntArray = truth.astype(np.int64) @ (1 << np.arange(truth.shape[1], dtype=np.int64))
            key = (where[0], where[1])
            pairs[key] = np.asarray(pairs[key] & masks if key in pairs else masks)
            continue
        look = (truth.shape, truth.tobytes())  # thousands of rules are often the same few tables
        if look not in automata:
            automata[look] = _automaton(truth)
        longer.append(dict(zip(where, automata[look])))
    return pairs, longer


def _automaton(truth: BoolArray) -> list[npt.NDArray[Any]]:
    """Return the moves of a rule, one table per variable: prefixes that leave the same to the rest are one number; -1: nothing."""
    moves = []
    rest: BoolArray = truth.reshape(1, *truth.shape)
    for _ in truth.shape:
        flat = rest.reshape(rest.shape[0] * rest.shape[1], -1)
        kinds, number = np.unique(flat, axis=0, return_inverse=True)
        dead = ~np.asarray(kinds.any(axis=1))[number.ravel()]
        moves.append(np.where(dead, -1, number.ravel()).reshape(rest.shape[:2]))
        rest = kinds.reshape(len(kinds), *rest.shape[2:])
    return moves


def _merged(
    columns: dict[tuple[str, int], IntArray], same: dict[tuple[str, int], int], edges: int
) -> tuple[dict[tuple[str, int], IntArray], IntArray]:
    """Return the columns of the distinct states, one entry per state, and the state of each edge."""
    varied = {}
    for key, column in columns.items():
        if edges and (column == column[0]).all():
            same[key] = int(column[0])
        elif edges:
            varied[key] = column
    number = np.zeros(edges, dtype=np.int64)
    span = 1
    for column in varied.values():
        low = int(column.min())
        width = int(column.max()) - low + 1
        if span * width >= LARGEST:
            _, number = np.unique(number, return_inverse=True)
            _, column = np.unique(column, return_inverse=True)
            span, low, width = int(number.max()) + 1, 0, int(column.max()) + 1
        number = number * width + (column - low)
        span *= width
    if span <= max(4 * edges, 1 << 16):  # numbering by look-up, without a sort
        there = np.zeros(span, dtype=bool)
        there[number] = True
        number = (np.cumsum(there) - 1)[number]
        first = np.zeros(int(there.sum()), dtype=np.int64)
        first[number[::-1]] = np.arange(edges - 1, -1, -1)
    else:
        _, first, number = np.unique(number, return_index=True, return_inverse=True)
    return {key: column[first] for key, column in varied.items()}, number


def _pruned(levels: Sequence[Level], ends: int) -> tuple[Level, ...]:
    """Return the levels without the edges that lead nowhere."""
    alive = np.ones(ends, dtype=bool)
    kept: list[Level] = []
    for level in reversed(levels):
        good = alive[level.to] if len(alive) else np.zeros(len(level.to), dtype=bool)
        ended = np.concatenate([[0], np.cumsum(good)])[level.start]
        kept.append(replace(level, start=ended, label=level.label[good], to=level.to[good]))
        alive = np.diff(ended) > 0
    return tuple(reversed(kept))
