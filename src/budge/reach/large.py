"""Parts of one person that are too large to list: counted by a diagram, else drawn by proposals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.constraints import Constraint, LinearConstraint
from budge.expressions import Row
from budge.parts import Part
from budge.reach.core import Core, listed_values
from budge.reach.counted import count_part
from budge.reach.diagram import TooManyStatesError
from budge.reach.forms import forms_of
from budge.reach.piece import Draws, Piece
from budge.reach.proposed import Tilted
from budge.reach.rejection import Rejection
from budge.reach.starts import Starts
from budge.reach.streams import Stream, unit
from budge.reach.written import NotCountableError, Written

__all__ = ["Large", "counted", "projected", "proposed"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
Line = tuple[dict[str, float], float, bool]  # coefficients, what their sum may be at most, whether less than that
MOST_LINES = 200  # rows that a projection may leave


@dataclass(frozen=True)
class Large:
    """One person's part, with the face of a piece."""

    one: Any
    continuous: bool = False  # whether a real feature moves

    people = 1
    coordinates: tuple[Any, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The part's features."""
        return tuple(self.one.names)

    @property
    def weights(self) -> Any:
        """Whether points differ in probability: None if not."""
        return getattr(self.one, "weights", None)

    @property
    def sizes(self) -> list[int | None]:
        """Number of configurations; None where it is not known."""
        return [self.one.size]

    @cached_property
    def empty(self) -> BoolArray:
        """Whether nothing is feasible."""
        return np.array([bool(self.one.empty)])

    @cached_property
    def only_stays(self) -> BoolArray:
        """Whether the only feasible change is none."""
        return np.array([bool(self.one.only_stays)])

    @property
    def endless(self) -> BoolArray:
        """Whether the changes cannot be listed."""
        return np.array([self.continuous])

    @property
    def approximate(self) -> BoolArray:
        """Whether draws follow their law only approximately."""
        return np.array([not self.one.exact])

    measures_differ = np.zeros(1, dtype=bool)

    @property
    def note(self) -> str:
        """How many configurations there are at most, where they are not counted."""
        return "" if self.one.size is not None else f"up to {self.one.most:,}"

    @property
    def method(self) -> str:
        """How it is drawn."""
        return str(self.one.method)

    @property
    def acceptance(self) -> float:
        """Share of proposals accepted so far."""
        return float(self.one.acceptance)

    def listed(self, place: int) -> tuple[FloatArray, FloatArray | None]:
        """Return every change once, (points, names), and their probabilities where these differ."""
        assert place == 0
        return self.one.expand(), self.one.shares()

    def draw(self, at: IntArray, stream: Stream, first: int, n: int) -> list[FloatArray]:
        """Return so many changes of each of some people who stand here, a column a name."""
        drawn = [self.one.draw(stream.take(slice(i, i + 1)), first, n) for i in range(len(at))]
        return list(np.concatenate(drawn).T)


def counted(starts: Starts) -> Large | None:
    """Return one person's part, counted by a diagram; None where it cannot be."""
    if any(f.type == "real" and listed_values(f) is None and f.name not in starts.still for f in starts.part.features):
        return None
    try:
        return Large(count_part(starts.part, starts.x))
    except (NotCountableError, TooManyStatesError):
        return None


@dataclass(frozen=True)
class _Projected:
    """Many configurations beside reals: counted without the reals, where these have room; the reals are drawn for the configurations that are drawn."""

    part: Part
    starts: Starts
    one: Any  # the part without its reals
    opened: Callable[[Core], Piece]

    method = "count"
    exact = True
    acceptance = 1.0
    only_stays = False

    @property
    def names(self) -> tuple[str, ...]:
        """The part's features."""
        return self.part.names

    @property
    def size(self) -> int:
        """Number of configurations."""
        return int(self.one.size)

    @property
    def empty(self) -> bool:
        """Whether nothing is feasible."""
        return bool(self.one.empty)

    def draw(self, stream: Stream, first: int, n: int) -> FloatArray:
        """Return draws `first` to `first + n - 1` of the person whose stream it is: changes, one row each."""
        known = dict(zip(self.one.names, self.one.draw(stream, first, n).T))
        piece = self.opened(Core(self.starts, np.zeros(n, dtype=np.intp), dict(known), dict(known)))
        draws = Draws(stream, np.zeros(n, dtype=np.intp), np.arange(first, first + n), piece.region)
        uniform = unit(stream.words(first, n, len(piece.reals), piece.region)[0])
        rows, rest = np.arange(n), np.zeros(n, dtype=np.int64)
        point = piece.point_of(rows, rest, uniform, draws)
        if piece.densities is not None:
            rows, point = piece.first_accepted(rows[:1], rows, rest, point, draws)
        moved = piece.moved_by(rows, point)
        return np.stack([moved[name] for name in self.names], axis=1)


def projected(starts: Starts, real: Sequence[str], opened: Callable[[Core], Piece]) -> Large | None:
    """Return one person's part with more configurations than can be listed beside real features: their rows are projected onto the others.

    None where some constraint that reads a real feature is not one linear row with the same coefficients for everybody.
    """
    part, forms = starts.part, forms_of(starts.part)
    kept, lines = list[Constraint](), list[Line]()
    for name in real:
        low, high = starts.x[name][0] + starts.down[name][0], starts.x[name][0] + starts.up[name][0]
        lines += [({name: 1.0}, high, False), ({name: -1.0}, -low, False)]
    for constraint in part.constraints:
        if not forms.scope(constraint) & set(real):
            kept.append(constraint)
            continue
        row = forms.fixed(constraint)
        if not isinstance(row, Row) or row.relation == "!=" or starts.gone & forms.scope(constraint):
            return None
        terms: dict[str, float] = {}
        bound = -float(np.asarray(row.linear.const))
        for (layer, name), c in row.linear.terms.items():
            terms[name] = terms.get(name, 0.0) + float(np.asarray(c))
            bound += float(np.asarray(c)) * (0.0 if layer == "value" else float(starts.x[name][0]))  # moves as values
        for sign in {"<": (1.0,), ">": (-1.0,), "=": (1.0, -1.0)}[row.relation[0]]:
            lines.append(({name: sign * c for name, c in terms.items()}, sign * bound, row.relation in ("<", ">")))
    if part.links:
        return None
    for name in real:
        lines = _without(lines, name)
        if len(lines) > MOST_LINES:
            return None
    features = tuple(f for f in part.features if f.name not in real)
    declared = {f.name: f for f in features}
    rows = [
        LinearConstraint({n: c for n, c in terms.items() if c}, "<" if strict else "<=", bound).bind(declared)  # type: ignore[arg-type]
        for terms, bound, strict in lines
        if any(terms.values())
    ]
    slack = 1e-9  # relative, as all comparisons forgive
    if any(bound < (slack if strict else -slack) * max(1.0, abs(bound)) for terms, bound, strict in lines if not any(terms.values())):
        rows.append(LinearConstraint({features[0].name: 0.0}, "<=", -1.0).bind(declared))
    try:
        one = count_part(Part(features, (*kept, *rows)), {f.name: starts.x[f.name] for f in features})
    except (NotCountableError, TooManyStatesError):
        return None
    return Large(_Projected(part, starts, one, opened), continuous=True)


def _without(lines: list[Line], name: str) -> list[Line]:
    """Return the rows without a coordinate (Fourier–Motzkin)."""
    kept = [line for line in lines if not line[0].get(name)]
    for up, top, open_above in lines:
        for down, bottom, open_below in lines:
            a, b = up.get(name, 0.0), down.get(name, 0.0)
            if a > 0 > b:
                names = sorted({*up, *down} - {name})
                kept.append(({n: up.get(n, 0.0) / a - down.get(n, 0.0) / b for n in names}, top / a - bottom / b, open_above or open_below))
    return kept


def proposed(starts: Starts, measure: str) -> Large:
    """Return one person's part, drawn by proposals: tilted towards its rows where it has such."""
    x = {name: float(column[0]) for name, column in starts.x.items()}
    try:
        return Large(Tilted.of_written(starts.part, x, Written(starts.part, x)))
    except NotCountableError:
        moves = any(f.type == "real" and f.name not in starts.still for f in starts.part.features)
        return Large(Rejection.of(starts.part, x, measure), continuous=moves)
