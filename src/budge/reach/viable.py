"""Which configurations have a point where rules must be evaluated: seen by a proposal, disproved by intervals, or dropped within a budget.

Intervals also cut slices off boxes in which a rule cannot hold, which leaves the law of what is accepted as it is.
What is found follows from the model and the person alone: the proposals come from words that are the same for everybody, by the number of the configuration.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from budge.constraints import Constraint, IfThen, Rule
from budge.expressions import All, Expression, Formula, Linear, Row, Some, Truth, Var, compare
from budge.reach.cells import Half
from budge.reach.forms import forms_of
from budge.reach.streams import Stream, region_of, unit

if TYPE_CHECKING:
    from budge.reach.fibres import Fibres
    from budge.reach.view import View

__all__ = ["Viable", "possible_at", "viable"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
Bounds = Mapping[Var, tuple[float, float]]
Possible = Callable[[int, FloatArray, FloatArray], bool]
FIRST = 64  # proposals for each configuration before intervals are asked
FEWEST, MOST, TOTAL = 256, 2**20, 2**22  # proposals after that: for one configuration at least, at most, and for all that a person has left
NARROWED, HALVED = 8, 256  # what a box of a configuration is cut into: slices of its sides to narrow it, boxes to disprove it
MOST_HALVED = 200  # configurations of a person for which that is done
OFTEN = 0.1  # share of proposals that pass below which boxes are narrowed
AT_ONCE = 2**20  # numbers of proposals that are held at once
MANY = 256  # coordinates; with more, slices of so few sides can be cut off that hardly any are tried
WIDE = 16  # coordinates; with half as many or more, fewer proposals are made, as each has more numbers and more rules to pass
MOST_ASKED, MOST_OF_ALL = 100_000, 800_000  # coordinates of boxes that intervals are asked about: of one cell of a configuration, and of all its cells
ROUNDS = 3  # of cutting slices off a box
FINEST = 2.0**-5  # share of a side that is still worth a try
NARROWEST = 2.0**-30  # of the first width: a box stays a box


class _SpentError(Exception):
    """Intervals have been asked about as many boxes as they may."""


@dataclass
class Viable:
    """Which rows have a point; for each person how many were dropped undecided, and after how many proposals."""

    exists: BoolArray
    dropped: npt.NDArray[np.int64]
    tries: int = 0

    def __str__(self) -> str:
        return f"{int(self.dropped.sum()):,} configurations dropped: no point in {self.tries:,} proposals each, none proved impossible"


def viable(fibres: Fibres) -> Viable:
    """Return which rows have a point that passes the piece's checks; boxes that hardly ever pass are narrowed on the way."""
    piece = fibres.piece
    found = Viable(np.asarray(np.any(fibres.there, axis=0)), np.zeros(piece.people, dtype=np.int64))
    if piece.checks is None:
        return found
    for person in range(piece.people):
        rows = np.arange(piece.begin[person], piece.begin[person + 1])
        rows = rows[found.exists[rows]]
        if len(rows):
            _decide(fibres, person, rows, found)  # raises where there is no law to draw from: nobody else need be decided about
    return found


def _decide(fibres: Fibres, person: int, rows: IntArray, found: Viable) -> None:
    """Decide about the rows of one person."""
    piece = fibres.piece
    passed = _passed(fibres, rows, FIRST, 0)
    pending = rows[passed == 0]
    if piece.possible is not None:
        rare = np.flatnonzero(passed < OFTEN * FIRST)
        _narrow_all(fibres, rows[rare[np.argsort(passed[rare], kind="stable")]], NARROWED)
        pending = pending[_there(fibres, pending)]
        pending = pending[_passed(fibres, pending, FIRST, 2) == 0]
        _narrow_all(fibres, pending, HALVED)
    found.exists[rows] = _there(fibres, rows)
    found.exists[pending[fibres.dimensions[:, pending].max(axis=0, initial=-1) == 0]] = False  # its only point has not passed
    pending = pending[found.exists[pending]]
    left = rows[found.exists[rows]]
    if not len(pending) or (piece.measure == "volume" and len(left) > len(pending)):
        return  # where whole points are proposed, what holds nothing is never drawn
    tries = int(np.clip(TOTAL // (len(pending) * max(1, 2 * len(piece.reals) // WIDE) ** 2), FEWEST, MOST))
    pending = pending[_passed(fibres, pending, tries, 1) == 0]
    found.tries = max(found.tries, tries)
    # Nothing was found and nothing disproved, though a rule could be: that is not the same as empty. Of a predicate, any function, no more can be known.
    if len(pending) and len(pending) == len(left) and (piece.possible is not None or _stays(fibres, pending)):
        own = int(piece.begin[person + 1] - piece.begin[person])
        raise piece.not_accepted(f"none of its {own:,} configurations gave a point within {tries:,} proposals")
    found.exists[pending] = False
    found.dropped[person] = len(pending)


def _passed(fibres: Fibres, rows: IntArray, tries: int, attempt: int) -> npt.NDArray[np.int64]:
    """Return how many of so many proposals pass, for each row; no more are made once one has passed, after the first so many."""
    from budge.reach.piece import Draws

    piece = fibres.piece
    stream, region = Stream(np.zeros((1, 2), dtype=np.uint64)), region_of("viable")
    passed = np.zeros(len(rows), dtype=np.int64)
    numbers = rows - piece.begin[piece.who[rows]]  # of the configuration, whoever else is there
    done, pending = 0, np.arange(len(rows))
    while len(pending) and done < tries:
        offer = int(min(max(FIRST, done), tries - done, max(1, AT_ONCE // (len(pending) * max(WIDE, len(piece.reals))))))
        here = np.repeat(rows[pending], offer)
        number = ((numbers[pending] * MOST * 2)[:, None] + done + np.arange(offer)).ravel()
        draws = Draws(stream, np.zeros(len(here), dtype=np.intp), number, region, attempt << 8)
        uniform = unit(draws.words(len(piece.reals), 0))
        point = piece.point_of(here, np.zeros(len(here), dtype=np.int64), uniform, draws)
        assert piece.checks is not None
        good = piece.checks(piece.moved_by(here, point), here)
        passed[pending] += good.reshape(len(pending), offer).sum(axis=1)
        done += offer
        pending = pending[passed[pending] == 0] if done >= FIRST else pending
    return passed


def _there(fibres: Fibres, rows: IntArray) -> BoolArray:
    """Return which rows have a cell left."""
    return np.asarray(np.any([there[rows] for there in fibres.there], axis=0))


def _narrow_all(fibres: Fibres, rows: IntArray, most: int) -> None:
    """Narrow the boxes of rows; once that has been done for many with something left, only what is impossible as it stands is left out."""
    left = 0
    for at in rows.tolist():
        left += _narrow(fibres, at, most if left < MOST_HALVED else 1)
    fibres.forget()


def _narrow(fibres: Fibres, at: int, most: int) -> bool:
    """Leave out the cells of a row in which the checks cannot hold, and narrow the boxes of others; return whether anything is left."""
    cells = [i for i in range(len(fibres.boxes)) if fibres.there[i][at]]
    for i in cells:
        box, might = fibres.boxes[i], _might(fibres, i, at, min(MOST_ASKED, MOST_OF_ALL // len(cells)))
        left = _shaved(might, box.low[at], box.high[at]) if most == NARROWED else _left(might, box.low[at], box.high[at], most)
        if left is None:
            fibres.there[i][at] = False
        elif not fibres.joined[i][at].any() and fibres.piece.ladder is None:  # what rows couple is made already
            box.low[at], box.high[at] = left
    return any(there[at] for there in fibres.there)


def _might(fibres: Fibres, cell: int, at: int, most: int) -> Callable[[FloatArray, FloatArray], bool]:
    """Return whether a box of a row might hold a point: as far as the rules tell, and the rows of the cell."""
    possible, box = fibres.piece.possible, fibres.boxes[cell]
    assert possible is not None
    rows = [(row.relation, float(row.constant[at]), *_terms(row, fibres.names, at)) for row in box.coupled if row.active[at]]
    calls = iter(range(max(1, most // (len(fibres.names) * max(1, len(fibres.names) // MANY)))))

    def might(low: FloatArray, high: FloatArray) -> bool:
        if next(calls, None) is None:
            raise _SpentError
        for relation, constant, slopes, factors, places in rows:
            ends = np.stack([slopes * y + factors * np.abs(y - places) for y in (low, high, np.clip(places, low, high))])
            slack = 1e-8 * max(1.0, abs(constant), float(np.abs(ends).max()))
            if constant + ends.min(axis=0).sum() > slack or (relation == "==" and constant + ends.max(axis=0).sum() < -slack):
                return False
        return possible(at, low, high)

    return might


def _terms(row: Half, names: Sequence[str], at: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the slope of each coordinate in a row, and factor and place of its absolute value."""
    nothing = np.zeros(at + 1)
    slopes = [row.coefficients.get(name, nothing)[at] for name in names]
    bends = [row.bends.get(name, (nothing, nothing)) for name in names]
    return np.array(slopes), np.array([factor[at] for factor, _ in bends]), np.array([place[at] for _, place in bends])


def _shaved(possible: Callable[[FloatArray, FloatArray], bool], low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Return the box without slices that are impossible, side by side, which works in many dimensions; None where all of it is."""
    low, high = low.copy(), high.copy()
    with suppress(_SpentError):  # what was cut off by then stays cut off
        return _shave(possible, low, high)
    return low, high


def _shave(possible: Callable[[FloatArray, FloatArray], bool], low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Cut slices off the box in place."""
    if not possible(low, high):
        return None
    first = high - low
    for _ in range(ROUNDS):
        before = high - low
        for j in np.flatnonzero(first > 0):
            for upper in (False, True):
                share = 0.5
                while share >= FINEST and high[j] - low[j] > NARROWEST * first[j]:
                    cut = high[j] - share * (high[j] - low[j]) if upper else low[j] + share * (high[j] - low[j])
                    a, b = low.copy(), high.copy()
                    (a if upper else b)[j] = cut
                    if possible(a, b):
                        share /= 2
                    elif upper:
                        high[j] = cut
                    else:
                        low[j] = cut
        if (high - low > 0.9 * before).all():
            break
    return low, high


def _left(possible: Callable[[FloatArray, FloatArray], bool], low: FloatArray, high: FloatArray, most: int) -> tuple[FloatArray, FloatArray] | None:
    """Return a box that holds all of a box that is possible; None where nothing is.

    The box is cut in half, widest side first, again and again into so many boxes; what is left of them is one box, which is cut again while that helps.
    """
    first = np.maximum(high - low, 1e-300)
    while True:
        todo, kept = deque([(low, high)]), list[tuple[FloatArray, FloatArray]]()
        while todo:
            a, b = todo.popleft()
            try:
                if not possible(a, b):
                    continue
            except _SpentError:
                kept += [(a, b), *todo]
                break
            j = int(((b - a) / first).argmax())
            if len(todo) + len(kept) + 2 > most or b[j] - a[j] <= NARROWEST * first[j]:
                kept.append((a, b))
                continue
            upper, lower = a.copy(), b.copy()
            upper[j] = lower[j] = (a[j] + b[j]) / 2
            todo += [(a, lower), (upper, b)]
        if not kept:
            return None
        before, low, high = high - low, np.min([a for a, _ in kept], axis=0), np.max([b for _, b in kept], axis=0)
        if (high - low >= 0.9 * before).all():
            return low, high


def _stays(fibres: Fibres, rows: IntArray) -> bool:
    """Return whether making no change is feasible."""
    piece = fibres.piece
    assert piece.checks is not None
    still = np.array([at for at in rows.tolist() if all(column[at] == 0 for column in piece.changes.values())], dtype=np.intp)
    if not len(still):
        return False
    inside = np.zeros(len(still), dtype=bool)
    for box, there in zip(fibres.boxes, fibres.there):
        here = there[still] & (box.low[still] <= 1e-9).all(axis=1) & (box.high[still] >= -1e-9).all(axis=1)
        for row in box.coupled:
            none = row.constant + sum(row.term(name, 0.0) for name in row.coefficients)
            here &= ~row.active[still] | compare(row.relation, none[still], 0.0)
        inside |= here
    unmoved = {name: np.zeros(len(still)) for name in piece.names}
    return bool((inside & piece.checks(unmoved, still)).any())


# -- intervals --------------------------------------------------------------------------------------------------------------


def possible_at(view: View, curved: Sequence[Constraint]) -> Possible | None:
    """Return whether rules that must be evaluated might hold somewhere in a box of a configuration's coordinates; None where none can be asked."""
    core, part = view.core, view.core.starts.part
    ruled = [c for c in curved if isinstance(c, Rule) or (isinstance(c, IfThen) and c.on == "value")]
    told = {id(c) for c in ruled}
    others = [(c, forms_of(part).formula(c, view.x)) for c in curved if id(c) not in told]  # linear in a target that stops at a bound
    checks: list[tuple[Constraint, Formula | None]] = [(c, None) for c in ruled] + [(c, formula) for c, formula in others if formula is not None]
    if not checks:
        return None
    place = {c.name: j for j, c in enumerate(view.coordinates)}
    spots = [
        np.array([place[var[1]] for name in c.scope if name not in core.change for var in view.symbols["change", name].terms], dtype=np.intp) for c, _ in checks
    ]
    readers: list[list[int]] = [[] for _ in place]  # the rules that see a coordinate
    for k, own in enumerate(spots):
        for j in set(own.tolist()):
            readers[j].append(k)
    known: dict[tuple[int, int, bytes, bytes], bool] = {}
    last: tuple[int, FloatArray, FloatArray] | None = None  # the last box in which all might hold: boxes in a row differ in few sides, seen by few rules

    def bounds_of(names: Sequence[str], at: int, low: FloatArray, high: FloatArray) -> Bounds:
        bounds: dict[Var, tuple[float, float]] = {}
        for name in names:
            origin = float(view.x[name][at])
            bounds["before", name] = (origin, origin)
            for layer, start in (("value", origin), ("change", 0.0), ("action", 0.0)):
                if name in core.change:
                    column = core.action[name] if layer == "action" else core.change[name]
                    bounds[layer, name] = (start + float(column[at]),) * 2
                elif layer == "action" and name in part.links:
                    continue  # its own action is anybody's guess here
                else:
                    ends = _range(view, name, at, place, low, high)
                    bounds[layer, name] = (start + ends[0], start + ends[1])
        return bounds

    def possible(at: int, low: FloatArray, high: FloatArray) -> bool:
        nonlocal last
        if len(known) > MOST_ASKED:
            known.clear()
        asked: Iterable[int] = range(len(checks))
        if last is not None and last[0] == at:
            asked = {k: None for j in np.flatnonzero((low != last[1]) | (high != last[2])).tolist() for k in readers[j]}
        for k in asked:
            constraint, formula = checks[k]
            key = (k, at, low[spots[k]].tobytes(), high[spots[k]].tobytes())
            if key not in known:
                bounds = bounds_of(constraint.scope, at, low, high)
                unknown = any(np.isnan(end) for ends in bounds.values() for end in ends)
                known[key] = unknown or (_might_hold(constraint, bounds) if formula is None else _might_be(formula, bounds, at))
            if not known[key]:
                return False
        last = (at, low.copy(), high.copy())
        return True

    return possible


def _might_be(formula: Formula, bounds: Bounds, at: int) -> bool:
    """Whether a formula might hold within bounds; yes where it reads what has none."""
    match formula:
        case Truth(value):
            return bool(_one(value, at))
        case All(parts):
            return all(_might_be(part, bounds, at) for part in parts)
        case Some(parts):
            return any(_might_be(part, bounds, at) for part in parts)
        case Row(linear, relation):
            if not linear.terms.keys() <= bounds.keys():
                return True
            least, most, size = _ends(linear, bounds, at)
            slack = 1e-8 * max(1.0, size)
            below, above = least <= slack, most >= -slack
            return below if relation in ("<=", "<") else above if relation in (">=", ">") else relation == "!=" or (below and above)
    return True


def _range(view: View, name: str, at: int, place: Mapping[str, int], low: FloatArray, high: FloatArray) -> tuple[float, float]:
    """Lowest and highest change of a feature that is a form in the coordinates, stopped where it stops."""
    form = view.symbols["change", name]
    least, most, _ = _ends(form, {var: (float(low[place[var[1]]]), float(high[place[var[1]]])) for var in form.terms}, at)
    if name in view.stops:
        floor, ceiling = (float(end[at]) for end in view.stops[name])
        least, most = (min(max(end, floor), ceiling) for end in (least, most))
    return least, most


def _ends(form: Linear, bounds: Bounds, at: int) -> tuple[float, float, float]:
    """Return the least and the most of a form within bounds, and the size of the numbers in it."""
    least = most = _one(form.const, at)
    size = abs(least)
    for var, c in form.terms.items():
        ends = sorted(_one(c, at) * end for end in bounds[var])
        least, most, size = least + ends[0], most + ends[1], size + max(abs(ends[0]), abs(ends[1]))
    return least, most, size


def _one(value: Any, at: int) -> float:
    return float(value[at]) if isinstance(value, np.ndarray) and value.ndim else float(value)


def _might_hold(constraint: Constraint, bounds: Bounds) -> bool:
    if isinstance(constraint, Rule):
        return _truth(constraint.parsed, bounds, constraint)[1] > 0
    assert isinstance(constraint, IfThen)
    always = _truth(constraint.condition, bounds, constraint)[0] > 0
    return not always or _truth(constraint.consequence, bounds, constraint)[1] > 0


def _truth(expression: Expression, bounds: Bounds, constraint: Rule | IfThen) -> tuple[float, float]:
    return expression.range({var: bounds[var] for var in expression.vars if var in bounds}, levels=constraint.levels)
