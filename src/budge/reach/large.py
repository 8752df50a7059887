"""Parts of one person that are too large to list: counted as a chain or by a diagram, whatever their size; reals beside them are projected out first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.constraints import LinearConstraint
from budge.expressions import All, Formula, Row
from budge.parts import Part
from budge.reach.accept import words_from
from budge.reach.axes import exact, scalar
from budge.reach.core import Core, listed_values, no_weight
from budge.reach.diagram import LARGEST, Diagram
from budge.reach.forms import forms_of
from budge.reach.ladder import Lines, without
from budge.reach.ordered import Ordered
from budge.reach.piece import Draws, Piece
from budge.reach.starts import Starts
from budge.reach.states import TooManyStatesError
from budge.reach.streams import Stream, below, below_large, region_of, unit
from budge.reach.written import Axis, NotCountableError, Written, is_weighed, value_of

__all__ = ["Chained", "Counted", "Large", "chained", "count_part", "counted", "projected", "rows_of"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
FAR = 2.0**52  # chains of whole numbers end before it
MOST_LINES = 200  # rows that a projection may leave


class Large:
    """One person's part, with the face of a piece."""

    starts: Starts
    size: Any = None  # number of configurations; None where it is not known
    method: Any = "count"
    note: Any = ""
    acceptance: Any = 1.0
    people = 1
    coordinates: tuple[Any, ...] = ()
    weights: Any = None  # None where all points are as likely
    only_stays: Any = np.zeros(1, dtype=bool)
    endless: Any = np.zeros(1, dtype=bool)  # whether a real feature moves
    approximate = measures_differ = np.zeros(1, dtype=bool)

    @property
    def names(self) -> tuple[str, ...]:
        """The part's features."""
        return self.starts.part.names

    @property
    def sizes(self) -> list[int | None]:
        """Number of configurations; None where it is not known."""
        return [self.size]

    @property
    def empty(self) -> npt.NDArray[np.bool_]:
        """Whether nothing is feasible, as far as that is known."""
        return np.array([self.size == 0])

    def draw(self, at: IntArray, stream: Stream, first: int, n: int) -> list[FloatArray]:
        """Return so many changes of each of some people who stand here, a column a name."""
        return list(np.concatenate([self.drawn(stream.take(slice(i, i + 1)), first, n) for i in range(len(at))]).T)

    def drawn(self, stream: Stream, first: int, n: int) -> FloatArray:
        """Return draws `first` to `first + n - 1` of the person whose stream it is: changes, one row each."""
        raise NotImplementedError


@dataclass(frozen=True)
class Counted(Large):
    """The configurations of a part by number: each equally likely, or in proportion to its weight."""

    starts: Starts
    written: Written = field(repr=False)
    diagram: Diagram = field(repr=False)
    weightless: bool = False  # feasible, but nothing of it has weight

    @property
    def size(self) -> int:
        """Number of configurations."""
        return self.diagram.points.total

    @cached_property
    def only_stays(self) -> npt.NDArray[np.bool_]:
        """Whether the only feasible change is none."""
        return np.array([self.size == 1 and not self.listed(0)[0].any()])

    @property
    def weights(self) -> tuple[Axis, ...] | None:
        """The axes whose points have weights, if any."""
        return tuple(axis for axis in self.written.axes.values() if axis.weight is not None) or None

    def drawn(self, stream: Stream, first: int, n: int) -> FloatArray:
        """Return draws `first` to `first + n - 1` of the person whose stream it is: changes, one row each."""
        if self.weightless:
            raise no_weight(self.names)
        counts, region = self.diagram.mass, region_of("count", *sorted(self.names))
        words = stream.words(first, n, 1, region)[0, :, 0]
        if counts.total >= LARGEST:
            return self._changes(counts.unrank(below_large(words, counts.total, stream, first, region)))

        def again(bad: tuple[IntArray, ...], attempt: int) -> npt.NDArray[np.uint64]:
            return stream.at(np.zeros(len(bad[0]), dtype=np.intp), first + bad[0], 1, region, attempt)[:, 0]

        return self._changes(counts.unrank(below(words, counts.total, again)))

    def listed(self, place: int) -> tuple[FloatArray, FloatArray | None]:
        """Return every change once, (points, names), and their probabilities where these differ."""
        assert place == 0
        values = self.diagram.points.unrank(np.arange(self.size))
        mass = np.ones(self.size)
        for axis, row in zip(self.written.axes.values(), values):
            if axis.weight is not None:
                most = max(axis.weight)
                mass *= np.array([float(Fraction(w, most)) for w in axis.weight])[row]
        return self._changes(values), None if self.weights is None else np.asarray(mass / mass.sum())

    def _changes(self, values: npt.NDArray[np.int64]) -> FloatArray:
        columns: dict[str, FloatArray] = {}
        for axis, row in zip(self.written.axes.values(), values):
            columns |= axis.at(row)
        result = np.zeros((values.shape[1], len(self.names)))
        for j, name in enumerate(self.names if len(result) else ()):
            result[:, j] = value_of(self.written.change[name], columns)
        return result


def count_part(starts: Starts) -> Counted:
    """Count one person's part; raises NotCountableError or TooManyStatesError."""
    part, here = starts.part, {name: float(column[0]) for name, column in starts.x.items()}
    written = Written(part, here)
    made = Counted(starts, written, written.diagram())
    if made.size == 0 and any(is_weighed(f, here[f.name]) for f in part.features):  # feasible without weight is another error than empty
        plain = Written(part, here, weighed=False)
        return Counted(starts, plain, plain.diagram(), weightless=True)
    return made


@dataclass(frozen=True)
class Chained(Large):
    """Whole numbers in a chain: each at most the next one, up to shifts."""

    starts: Starts
    moving: tuple[str, ...]  # the columns of the chain
    chain: Ordered = field(repr=False)

    @cached_property
    def size(self) -> int | None:
        """Number of configurations; None where that takes too long to tell."""
        return self.chain.size

    @property
    def empty(self) -> npt.NDArray[np.bool_]:
        """Whether nothing is feasible."""
        return self.chain.empty

    @cached_property
    def only_stays(self) -> npt.NDArray[np.bool_]:
        """Whether the only feasible change is none."""
        return np.array([self.size == 1 and not self.chain.listed().any()])

    def drawn(self, stream: Stream, first: int, n: int) -> FloatArray:
        """Return draws `first` to `first + n - 1` of the person whose stream it is: changes, one row each."""
        words = words_from(stream, region=region_of("chain", *sorted(self.names)))
        return self._changes(self.chain.draw(np.zeros(n, dtype=np.intp), np.arange(first, first + n), words))

    def listed(self, place: int) -> tuple[FloatArray, None]:
        """Return every change once, (points, names)."""
        assert place == 0
        return self._changes(self.chain.listed()), None

    def _changes(self, moved: FloatArray) -> FloatArray:
        place = {name: j for j, name in enumerate(self.names)}
        result = np.zeros((len(moved), len(place)))
        result[:, [place[name] for name in self.moving]] = moved
        return result


def chained(starts: Starts) -> Chained | None:
    """Return one person's part as a chain of whole numbers; None where it is none."""
    part, forms = starts.part, forms_of(starts.part)
    x = {name: float(column[0]) for name, column in starts.x.items()}
    moving = [f for f in part.features if starts.down[f.name][0] < starts.up[f.name][0]]
    if part.links or starts.gone or not moving or any(not f.discrete for f in moving) or any(is_weighed(f, x[f.name]) for f in part.features):
        return None
    place = {f.name: i for i, f in enumerate(moving)}
    low, high = (np.array([ends[f.name][0] for f in moving]) for ends in (starts.down, starts.up))
    steps: dict[tuple[int, int], int] = {}  # by how much the first of two may pass the second
    for constraint in part.constraints:
        for row in rows_of(forms.formula(constraint, x)):
            found = None if row is None else _step(row, x, place)
            if found is None:
                return None
            up, down, most = found
            if up is None and down is None:
                high[0] = high[0] if most >= 0 else low[0] - 1  # nothing is feasible
            elif down is None:
                high[up] = min(high[up], most)
            elif up is None:
                low[down] = max(low[down], -most)
            else:
                steps[up, down] = min(most, steps.get((up, down), most))
    ahead: dict[int, list[int]] = {i: [] for i in range(len(moving))}
    for a, b in steps:
        ahead[b].append(a)
    try:
        order = list(TopologicalSorter(ahead).static_order())
    except CycleError:
        return None
    if any(pair not in steps for pair in pairwise(order)) or not np.abs([low, high]).max() + sum(map(abs, steps.values())) < FAR:
        return None
    shift = np.cumsum([0, *(steps[pair] for pair in pairwise(order))])
    rank = {i: k for k, i in enumerate(order)}
    if any(most < shift[rank[b]] - shift[rank[a]] for (a, b), most in steps.items()):  # a row between others that asks for more than they do
        return None
    made = Ordered(low[None, order], high[None, order], np.ones((1, len(order))), shift[None].astype(float), np.array(order), whole=True)
    return Chained(starts, tuple(f.name for f in moving), made) if made.is_short else None


def rows_of(formula: Formula | None) -> Iterator[Row | None]:
    """Yield the rows of a formula that all must hold; None for what is no row."""
    if isinstance(formula, All):
        for part in formula.parts:
            yield from rows_of(part)
    else:
        yield formula if isinstance(formula, Row) else None


def _step(row: Row, x: Mapping[str, float], place: Mapping[str, int]) -> tuple[int | None, int | None, int] | None:
    """Return a row over changes as: the first is at most the second plus a number; None where it has no such form."""
    if not math.isfinite(scalar(row.linear.const)):
        return None
    const, slopes = exact(scalar(row.linear.const)), dict[int, Fraction]()
    for (layer, name), c in row.linear.terms.items():
        if layer in ("value", "before"):
            const += exact(scalar(c)) * exact(x[name])
        if layer != "before" and name in place:
            slopes[place[name]] = slopes.get(place[name], Fraction(0)) + exact(scalar(c))
    sign = -1 if row.relation in (">=", ">") else 1
    up, down = ([i for i, c in slopes.items() if sign * c > 0], [i for i, c in slopes.items() if sign * c < 0])
    sizes = {abs(c) for c in slopes.values() if c} or {Fraction(1)}
    if row.relation in ("==", "!=") or len(up) > 1 or len(down) > 1 or len(sizes) > 1:
        return None
    most = -sign * const / sizes.pop()
    return next(iter(up), None), next(iter(down), None), math.ceil(most) - 1 if row.relation in ("<", ">") else math.floor(most)


def counted(starts: Starts) -> Large | None:
    """Return one person's part, counted as a chain or by a diagram; None where it cannot be."""
    if any(f.type == "real" and listed_values(f) is None and f.name not in starts.still for f in starts.part.features):
        return None
    chain = chained(starts)
    if chain is not None:
        return chain
    try:
        return count_part(starts)
    except (NotCountableError, TooManyStatesError):
        return None


@dataclass(frozen=True)
class _Projected(Large):
    """Many configurations beside reals: counted or proposed where the reals have room; the reals are drawn for the configurations that are drawn."""

    starts: Starts
    inner: Large  # the part without its reals
    opened: Callable[[Core], Piece]
    endless = np.ones(1, dtype=bool)

    size = property(lambda self: self.inner.size)
    method = property(lambda self: self.inner.method)
    note = property(lambda self: self.inner.note)
    acceptance = property(lambda self: self.inner.acceptance)

    def drawn(self, stream: Stream, first: int, n: int) -> FloatArray:
        known = dict(zip(self.inner.names, self.inner.drawn(stream, first, n).T))
        piece = self.opened(Core(self.starts, np.zeros(n, dtype=np.intp), dict(known), dict(known)))
        draws = Draws(stream, np.zeros(n, dtype=np.intp), np.arange(first, first + n), piece.region)
        uniform = unit(stream.words(first, n, len(piece.reals), piece.region)[0])
        rows, rest = np.arange(n), np.zeros(n, dtype=np.int64)
        point = piece.point_of(rows, rest, uniform, draws)
        if piece.densities is not None:
            rows, point = piece.first_accepted(rows[:1], rows, rest, point, draws)
        moved = piece.moved_by(rows, point)
        return np.stack([moved[name] for name in self.names], axis=1)


def projected(starts: Starts, real: Sequence[str], opened: Callable[[Core], Piece], inner: Callable[[Starts], Large | None]) -> Large | None:
    """Return one person's part with more configurations than can be listed beside real features: their rows are projected onto the others.

    `inner` makes the part of the others ready. None where it cannot, and where some constraint that reads a real feature is not one linear row with the
    same coefficients for everybody.
    """
    part, forms = starts.part, forms_of(starts.part)
    if part.links or 2 * len(real) + len(part.constraints) > 4 * MOST_LINES:
        return None
    order = [*(name for name in part.names if name not in real), *real]
    kept: list[Any] = []
    lines: Lines = []
    for name, unit_row in zip(order, np.eye(len(order))):
        if name in real:
            lines += [(unit_row, starts.x[name] + starts.up[name], False, False), (-unit_row, -(starts.x[name] + starts.down[name]), False, False)]
    for constraint in part.constraints:
        if not forms.scope(constraint) & set(real):
            kept.append(constraint)
            continue
        row = forms.row(constraint)
        if row is None or row.relation == "!=" or starts.gone & forms.scope(constraint):
            return None
        c = np.array([row.values.get(name, 0.0) + row.moves.get(name, 0.0) for name in order])
        bound = np.array([-row.constant + sum(slope * float(starts.x[name][0]) for name, slope in row.moves.items())])  # moves as values
        signs = {"<": (1.0,), ">": (-1.0,), "=": (1.0, -1.0)}[row.relation[0]]
        lines += [(sign * c, sign * bound, False, row.relation in ("<", ">")) for sign in signs]
    for j in range(len(order) - 1, len(order) - len(real) - 1, -1):
        lines = without(lines, j)
        if len(lines) > MOST_LINES:
            return None
    features = tuple(f for f in part.features if f.name not in real)
    declared = {f.name: f for f in features}
    for c, bounds, _, short in lines:
        terms, most = {name: slope for name, slope in zip(order, c.tolist()) if slope}, float(bounds[0])
        if not terms and most < (1e-9 if short else -1e-9) * max(1.0, abs(most)):  # relative, as all comparisons forgive
            terms, most = {features[0].name: 0.0}, -1.0  # nothing is feasible
        if terms:
            kept.append(LinearConstraint(terms, "<" if short else "<=", most).bind(declared))  # type: ignore[arg-type]
    made = inner(Starts.of(Part(features, tuple(kept)), starts.x))
    return None if made is None else _Projected(starts, made, opened)
