"""One part for some people: its configurations row by row, what each leaves open, and draws from both.

A row is a configuration of the listed features of one person. It stands for as many points as its wide whole numbers take values (`ladder`), and leaves
to the real coordinates an interval, a box, a polytope, or disjoint cells of these. A point is drawn by one number for row and whole numbers, then
coordinate by coordinate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.errors import DrawError
from budge.expressions import Linear
from budge.reach.cells import Box, Coordinate
from budge.reach.core import no_weight
from budge.reach.fibres import Fibres, between
from budge.reach.ladder import Ladder
from budge.reach.streams import Again, Stream, WordArray, below, region_of, unit

__all__ = ["Draws", "Piece"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
Checks = Callable[[Mapping[str, FloatArray], IntArray], BoolArray]
MOST, MOST_NUMBERS = 2**20, 2**22  # proposals for one draw, and numbers in them
MOST_COPIES = 4096
AT_ONCE = 2**18  # numbers of proposals that are held at once
FEW = 12  # configurations of a person that are compared one by one
DENSITY, WITHIN, REPLACED = 2 << 20, 3 << 20, 4 << 20  # attempts that are none: more words of the first proposal


@dataclass(frozen=True)
class Piece:
    """Configurations of some people and what each leaves open.

    `forms` writes every open feature's change as a form in the coordinates, stopped at `stops` where that is given; `checks` evaluates what is not linear;
    `densities` accepts by a density that cannot be drawn directly.
    """

    names: tuple[str, ...]
    people: int
    who: IntArray  # whose each row is, ascending
    changes: Mapping[str, FloatArray]  # of the listed features, by row
    measure: str = "configuration"
    weights: FloatArray | None = None  # of one point of each row, from distributions
    forms: Mapping[str, Linear] = field(default_factory=dict)
    stops: Mapping[str, tuple[FloatArray, FloatArray]] = field(default_factory=dict)
    coordinates: tuple[Coordinate, ...] = ()
    boxes: tuple[Box, ...] = ()  # one a cell
    ladder: Ladder | None = None
    checks: Checks | None = None
    possible: Callable[[int, FloatArray, FloatArray], bool] | None = None  # whether the checks might hold somewhere in a box of a row
    densities: Callable[[Mapping[str, FloatArray], IntArray], FloatArray] | None = None  # shares of the highest density
    tally: dict[str, int] = field(default_factory=lambda: {"proposed": 0, "accepted": 0})

    # -- what there is ------------------------------------------------------------------------------------------------

    @cached_property
    def begin(self) -> IntArray:
        """The first row of each person, and past the last row of all."""
        return np.searchsorted(self.who, np.arange(self.people + 1))

    @cached_property
    def fibres(self) -> Fibres | None:
        """What the rows leave open to real coordinates that hang on no whole number; None if there are none."""
        hang = self.ladder.reals if self.ladder is not None else set()
        mine = [j for j, c in enumerate(self.coordinates) if not c.whole and c.name not in hang]
        return Fibres(self, mine) if mine else None

    @cached_property
    def counts(self) -> npt.NDArray[Any]:
        """How many configurations each row stands for."""
        counts = np.ones(len(self.who), dtype=np.int64) if self.ladder is None else self.ladder.counts
        return counts if self.fibres is None else np.where(self.fibres.exists, counts, 0)

    @cached_property
    def sizes(self) -> list[int]:
        """Number of configurations of each person."""
        return [int(total) for total in self._totals]

    @cached_property
    def _totals(self) -> npt.NDArray[Any]:
        ends = np.concatenate([np.zeros(1, dtype=self.counts.dtype), np.cumsum(self.counts)])
        return np.asarray(ends[self.begin[1:]] - ends[self.begin[:-1]])

    @cached_property
    def empty(self) -> BoolArray:
        """For whom nothing is feasible."""
        return np.asarray(self._totals == 0, dtype=bool)

    @cached_property
    def endless(self) -> BoolArray:
        """Who has a real coordinate that can move."""
        if not any(not c.whole for c in self.coordinates):
            return np.zeros(self.people, dtype=bool)
        varies = np.zeros(len(self.who), dtype=bool) if self.fibres is None else self.fibres.varies
        if self.ladder is not None:
            varies = varies | self.ladder.varies
        return self._any(varies & (self.counts > 0))

    @cached_property
    def only_stays(self) -> BoolArray:
        """Whose only feasible change is none."""
        alone = ~self.endless & (self._totals == 1)
        rows = np.flatnonzero((self.counts > 0) & alone[self.who])
        moved = np.zeros(len(rows), dtype=bool)
        if len(rows):
            for column in self._lowest(rows, np.zeros(len(rows), dtype=np.int64)).values():
                moved |= np.abs(column) > 1e-9
        alone[self.who[rows[moved]]] = False
        return np.asarray(alone)

    @cached_property
    def approximate(self) -> BoolArray:
        """Whose draws follow their law only in the limit of a chain, or by an estimated volume."""
        return np.zeros(self.people, dtype=bool) if self.fibres is None else self._any(self.fibres.approximate & (self.counts > 0))

    @property
    def method(self) -> str:
        """How it is drawn."""
        if self.checks is not None or self.densities is not None:
            return "rejection"
        if self.fibres is not None and self.fibres.coupled:
            return self.fibres.method
        if any(not c.whole for c in self.coordinates):
            return "box"
        return "count" if self.ladder is not None else "index"

    @property
    def acceptance(self) -> float:
        """Share of proposals accepted so far."""
        return self.tally["accepted"] / self.tally["proposed"] if self.tally["proposed"] else 1.0

    @property
    def note(self) -> str:
        """What is to be said about how it is drawn."""
        return "" if self.fibres is None else self.fibres.note

    @cached_property
    def measures_differ(self) -> BoolArray:
        """For whom equal configurations and equal volumes are two different laws."""
        if self.fibres is None:
            return np.zeros(self.people, dtype=bool)
        per_row = self.fibres.weight_by_volume(self.who, self.people)
        least, most = np.full(self.people, np.inf), np.zeros(self.people)
        there = self.fibres.exists
        np.minimum.at(least, self.who[there], per_row[there])
        np.maximum.at(most, self.who[there], per_row[there])
        return np.asarray(most - least > 1e-9 * most)

    def _any(self, rows: npt.NDArray[Any]) -> BoolArray:
        return np.bincount(self.who[rows.astype(bool)], minlength=self.people) > 0

    # -- listing ------------------------------------------------------------------------------------------------------

    def listed(self, person: int) -> tuple[FloatArray, FloatArray | None]:
        """Return every change of a person once, (points, names), and their probabilities where these differ."""
        rows = np.arange(self.begin[person], self.begin[person + 1])
        rows = rows[self.counts[rows] > 0]
        rest = np.zeros(len(rows), dtype=np.int64)
        if self.ladder is not None:
            counts = self.counts[rows].astype(np.int64)
            rest = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            rows = np.repeat(rows, counts)
        moved = self._lowest(rows, rest)
        changes = np.stack([moved[name] for name in self.names], axis=1)
        if self.weights is None:
            return changes, None
        shares = self.weights[rows]
        if not shares.sum() > 0:
            raise no_weight(self.names)
        return changes, shares / shares.sum()

    def _lowest(self, rows: IntArray, rest: npt.NDArray[Any]) -> dict[str, FloatArray]:
        """Return the changes of rows that leave one point to the reals, by the number within the row."""
        return self.moved_by(rows, self.point_of(rows, rest, np.zeros((len(rows), len(self.reals))), None))

    # -- drawing ------------------------------------------------------------------------------------------------------

    @property
    def region(self) -> int:
        """Where the words of this part are."""
        return region_of("part", *sorted(self.names))

    def draw(self, at: IntArray, stream: Stream, first: int, n: int) -> list[FloatArray]:
        """Return so many changes of people (`at`: their places here), a column a name: person by person, from draw `first` on."""
        words = stream.words(first, n, 1 + len(self.reals), self.region)
        rows, rest = self._rows(at, words[..., 0], stream, first)
        if not self.coordinates:
            return [self.changes[name].take(rows) for name in self.names]
        more = 0 if self.fibres is None and self.checks is None and self.densities is None else n  # draws that may need further words
        draws = Draws.of(stream, len(at), first, more, self.region)
        point = self.point_of(rows, rest, unit(words[..., 1:]).reshape(len(rows), -1), draws)
        if self.checks is not None or self.densities is not None:
            rows, point = self.first_accepted(at, rows, rest, point, draws)
        moved = self.moved_by(rows, point)
        return [moved[name] for name in self.names]

    @cached_property
    def reals(self) -> list[int]:
        """The places of the real coordinates: one word of a draw is for each of them."""
        return [j for j, c in enumerate(self.coordinates) if not c.whole]

    def first_accepted(
        self, at: IntArray, rows: IntArray, rest: npt.NDArray[Any], point: FloatArray, draws: Draws
    ) -> tuple[IntArray, FloatArray]:
        """Propose again for draws that were not accepted, more at a time with every attempt, and take the first of each that is.

        The configuration stands and its point is proposed again; where configurations go by volume, the whole point is.
        """
        pending = np.flatnonzero(~self._accepted(rows, point, unit(draws.words(1, DENSITY))[:, 0]))
        spent, hits, width = len(rows), len(rows) - len(pending), 2 + len(self.reals)
        most = max(MOST_COPIES, min(MOST, MOST_NUMBERS // width))
        todo = [(pending, 1, 0)] if len(pending) else []  # draws, attempt, proposals of each so far: some are made to the end before others are begun
        while todo:
            pending, attempt, had = todo.pop()
            copies = min(2**attempt, MOST_COPIES)
            many = 1 if copies == MOST_COPIES else max(1, AT_ONCE // (copies * width))
            if len(pending) > many:
                todo.append((pending[many:], attempt, had))
                pending = pending[:many]
            if had >= most:
                raise self.not_accepted(f"a draw was not accepted within {had:,} proposals")
            spent += len(pending) * copies
            proposed = draws.take(pending).proposals(copies, attempt)
            words, again = proposed.words(width, 0), np.repeat(pending, copies)
            tried = self._by_weight(at[draws.people[again]], words[:, 0]) if self.measure == "volume" else rows[again]
            within = self._within(tried, proposed) if self.measure == "volume" else rest[again]
            spot = self.point_of(tried, within, unit(words[:, 2:]), proposed)
            good = self._accepted(tried, spot, unit(words[:, 1])).reshape(len(pending), copies)
            hits += int(good.sum())
            done = good.any(axis=1)
            chosen = np.flatnonzero(done) * copies + good[done].argmax(axis=1)
            rows[pending[done]], point[pending[done]] = tried[chosen], spot[chosen]
            if not done.all():
                todo.append((pending[~done], attempt + 1, had + copies))
        self.tally["proposed"] += spent
        self.tally["accepted"] += hits
        return rows, point

    def not_accepted(self, what: str) -> DrawError:
        """Return the error where no draw is accepted."""
        remedy = "tighten the bounds of its features, or write the rule so that it is linear given the discrete features"
        return DrawError(what, where=f"part {', '.join(self.names)}", remedy=remedy)

    def _accepted(self, rows: IntArray, point: FloatArray, uniform: FloatArray) -> BoolArray:
        moved = self.moved_by(rows, point)
        good = np.ones(len(rows), dtype=bool) if self.checks is None else self.checks(moved, rows)
        return good if self.densities is None else good & (uniform <= self.densities(moved, rows))

    def _rows(self, at: IntArray, words: WordArray, stream: Stream, first: int) -> tuple[IntArray, npt.NDArray[Any]]:
        """Return row and number within the row of each draw."""
        n = words.shape[1]
        if self._row_weights is None:

            def again(places: tuple[IntArray, ...], attempt: int) -> WordArray:
                return stream.at(places[0], places[1] + first, 1, self.region, REPLACED + attempt)[:, 0]

            number = below(words, self._totals[at].astype(np.uint64)[:, None], again)
            if self.coordinates:
                return self._numbered(at, number)
            number += self.begin[at][:, None]  # one number for each row
            return number.ravel(), number.ravel()
        rows = self._by_weight(np.repeat(at, n), words.ravel())
        return rows, self._within(rows, Draws.of(stream, len(at), first, n if self.ladder is not None else 0, self.region))

    def _within(self, rows: IntArray, draws: Draws) -> npt.NDArray[Any]:
        """Return a number within each row, by words of their own."""
        rest = np.zeros(len(rows), dtype=self.counts.dtype)
        for i, group in enumerate(reversed(self.ladder.groups if self.ladder is not None else ())):
            count, kind = group.count[rows], WITHIN + (i << 12)
            rest = rest * count + below(draws.words(1, kind)[:, 0], count, draws.replaced(kind))
        return rest

    @cached_property
    def _ends(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """How many configurations of all people there are before each row, and up to its end."""
        return np.cumsum(self.counts) - self.counts, np.cumsum(self.counts)

    def _numbered(self, at: IntArray, number: npt.NDArray[np.int64]) -> tuple[IntArray, npt.NDArray[Any]]:
        """Return row and number within the row, by number within the person: (people, draws)."""
        ahead, past = self._ends
        begin, most = self.begin[at], int(np.diff(self.begin).max())
        number += ahead[begin][:, None]
        if most > FEW:
            rows = np.searchsorted(past, number.ravel(), side="right")
        else:
            rows = np.repeat(begin, number.shape[1])
            for step in range(most - 1):  # to compare with each end is faster than to search
                rows += (number >= past[np.minimum(begin + step, len(past) - 1)][:, None]).ravel()
        return rows, number.ravel() - ahead.take(rows)

    def _by_weight(self, people: IntArray, words: WordArray) -> IntArray:
        """Return rows in proportion to their weights, one for each word."""
        weights = self._row_weights
        assert weights is not None
        rows = np.empty(len(people), dtype=np.intp)
        order = np.argsort(people, kind="stable")
        found, begin = np.unique(people[order], return_index=True)
        for person, mine in zip(found.tolist(), np.split(order, begin[1:])):
            own = slice(self.begin[person], self.begin[person + 1])
            ends = np.cumsum(weights[own])
            if not (len(ends) and ends[-1] > 0):
                raise no_weight(self.names)
            last = int(np.flatnonzero(weights[own])[-1])
            rows[mine] = own.start + np.minimum(np.searchsorted(ends, unit(words[mine]) * ends[-1], side="right"), last)
        return rows

    @cached_property
    def _row_weights(self) -> FloatArray | None:
        """Weights of the rows; None where they go by their counts alone, and these are numbered."""
        counts = self.counts.astype(float)
        if self.measure == "volume" and self.fibres is not None:
            volume = self.fibres.weight_by_volume(self.who, self.people) * counts
            return np.asarray(volume if self.weights is None else volume * self.weights)
        if self.weights is None:
            return counts if self.counts.dtype == object else None
        return np.asarray(self.weights * counts)

    def point_of(self, rows: IntArray, rest: npt.NDArray[Any], uniform: FloatArray, draws: Draws | None) -> FloatArray:
        """Return a point of what each row leaves open, by coordinate; `uniform` has one number for each real coordinate.

        Without draws, the only point.
        """
        point = np.empty((len(rows), len(self.coordinates)))
        if self.fibres is not None and draws is None:
            point = self.fibres.lowest(rows)
        elif self.fibres is not None and draws is not None:
            self.fibres.fill(point, rows, uniform, draws)
        if self.ladder is not None:
            values, ends = self.ladder.at(rows, rest)
            for j, c in enumerate(self.coordinates):
                if c.name in values:
                    point[:, j] = values[c.name]
                elif c.name in ends:
                    point[:, j] = between(*ends[c.name], uniform[:, self.reals.index(j)], None if c.log_from is None else c.log_from[rows])
        return point

    def moved_by(self, rows: IntArray, point: FloatArray) -> dict[str, FloatArray]:
        """Return the change of every feature."""
        place = {c.name: j for j, c in enumerate(self.coordinates)}
        result = {}
        for name in self.names:
            if name in self.changes:
                result[name] = self.changes[name].take(rows)
                continue
            form = self.forms[name]
            value = np.broadcast_to(_at(form.const, rows), (len(rows),))
            for (_, coordinate), c in form.terms.items():
                slope = _at(c, rows)
                value = value + (point[:, place[coordinate]] if np.ndim(slope) == 0 and slope == 1.0 else slope * point[:, place[coordinate]])
            if name in self.stops:
                value = np.clip(value, *(end[rows] for end in self.stops[name]))
            result[name] = np.asarray(value)
        return result


@dataclass(frozen=True)
class Draws:
    """Some draws, or proposals for some draws, by person and number, and where words for them come from."""

    stream: Stream
    people: IntArray
    numbers: IntArray
    region: int
    attempt: int = 0

    @classmethod
    def of(cls, stream: Stream, people: int, first: int, n: int, region: int) -> Draws:
        """Return draws `first`, … of everybody, n each."""
        return cls(stream, np.repeat(np.arange(people), n), np.tile(np.arange(first, first + n), people), region)

    def take(self, places: IntArray) -> Draws:
        """Return some of these."""
        return Draws(self.stream, self.people[places], self.numbers[places], self.region, self.attempt)

    def proposals(self, copies: int, attempt: int) -> Draws:
        """Return so many proposals for each draw, at the so-manieth attempt."""
        numbers = (self.numbers[:, None] * copies + np.arange(copies)).ravel()
        return Draws(self.stream, np.repeat(self.people, copies), numbers, self.region, attempt)

    def words(self, width: int, kind: int) -> WordArray:
        """Return so many words of a kind for each, (draws, width)."""
        return self.stream.at(self.people, self.numbers, width, self.region, kind + self.attempt)

    def replaced(self, kind: int) -> Again:
        """Return where words come from that replace single words of a kind."""
        return lambda places, attempt: self.take(places[0]).words(1, kind + REPLACED + attempt)[:, 0]


def _at(value: float | FloatArray, rows: IntArray) -> float | FloatArray:
    return value.take(rows) if isinstance(value, np.ndarray) and value.ndim else value
