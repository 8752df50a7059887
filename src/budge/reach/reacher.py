"""Reaching for many people at once: a block of people is prepared once, and status, size, list and draws are read from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from budge.errors import EmptyError
from budge.features import Feature
from budge.parts import Part
from budge.reach.downstream import add_effects
from budge.reach.forms import nothing
from budge.reach.listed_reals import lists_of, onto
from budge.reach.prepare import prepare
from budge.reach.results import PartDiagnostics
from budge.reach.starts import distinct
from budge.reach.status import blame
from budge.reach.streams import Stream, region_of, unit

if TYPE_CHECKING:
    from budge.interaction import InteractionModel

__all__ = ["Alone", "Block", "PartBlock", "Reacher", "reacher"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.intp]
AT_ONCE = 2**15  # draws that are made together: what they need on the way stays in the cache


class Alone:
    """A part as one person has it."""

    def __init__(self, piece: Any, place: int) -> None:
        self.piece, self.place = piece, place
        self.empty = bool(piece.empty[place])  # nothing is feasible
        self.only_stays = bool(piece.only_stays[place])  # the only feasible change is none
        self.endless = bool(piece.endless[place])  # the changes cannot be listed
        self.size: int | None = piece.sizes[place]  # number of configurations, where it is known

    @cached_property
    def listed(self) -> tuple[FloatArray, FloatArray | None]:
        """Every change once, (points, names), and their probabilities where these differ."""
        found: tuple[FloatArray, FloatArray | None] = self.piece.listed(self.place)
        return found


@dataclass(frozen=True)
class PartBlock:
    """One part of a block: pieces, and where each person is found in them. People who stand alike share a place."""

    part: Part
    columns: IntArray  # of the part's features
    piece: IntArray  # number of each person's piece
    place: IntArray  # where the person is in it
    pieces: tuple[Any, ...]

    @classmethod
    def of(cls, part: Part, columns: IntArray, rows: FloatArray, asked: IntArray, measure: str) -> PartBlock:
        """Prepare a part for these people."""
        which, first = distinct(rows[:, asked])
        made = prepare(part, {name: rows[first, j] for name, j in zip(part.names, columns)}, measure) if len(rows) else []
        piece, place = np.zeros(len(first), dtype=np.intp), np.zeros(len(first), dtype=np.intp)
        for number, (people, _) in enumerate(made):
            piece[people], place[people] = number, np.arange(len(people))
        return cls(part, columns, piece[which], place[which], tuple(found for _, found in made))

    def take(self, people: Any) -> PartBlock:
        """Return some of these people."""
        return PartBlock(self.part, self.columns, self.piece[people], self.place[people], self.pieces)

    @property
    def used(self) -> list[tuple[Any, IntArray]]:
        """The pieces, each with the people here that it is for."""
        return [(self.pieces[number], np.flatnonzero(self.piece == number)) for number in np.flatnonzero(np.bincount(self.piece)).tolist()]

    def each(self, read: Callable[[Any], Any], kind: Any = bool) -> npt.NDArray[Any]:
        """Return what pieces hold of their people, by person."""
        found = np.zeros(len(self.piece), dtype=kind)
        for piece, mine in self.used:
            found[mine] = np.asarray(read(piece), dtype=kind)[self.place[mine]]
        return found

    def draw(self, stream: Stream, first: int, n: int) -> Iterator[tuple[IntArray, int, FloatArray]]:
        """Draw for everybody: yield some people, a column, and their changes in it, n each."""
        for piece, mine in self.used:
            drawn = piece.draw(self.place[mine], stream if len(mine) == len(self.piece) else stream.take(mine), first, n)
            yield from ((mine, int(column), changes) for column, changes in zip(self.columns, drawn))

    def of_person(self, person: int) -> Alone:
        """Return the part as one person has it; people who stand alike share it."""
        key = (int(self.piece[person]), int(self.place[person]))
        if key not in self._alone:
            self._alone[key] = Alone(self.pieces[key[0]], key[1])
        return self._alone[key]

    @cached_property
    def _alone(self) -> dict[tuple[int, int], Alone]:
        return {}


@dataclass(frozen=True)
class Block:
    """Some people, ready to be listed and drawn."""

    maker: Reacher
    rows: FloatArray  # where they stand
    parts: tuple[PartBlock, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, people: Any) -> Block:
        """Return some of these people."""
        return Block(self.maker, self.rows[people], tuple(part.take(people) for part in self.parts))

    def _some(self, read: Callable[[Any], BoolArray]) -> BoolArray:
        """Return for whom something holds in some part."""
        found = np.zeros(len(self), dtype=bool)
        for part in self.parts:
            found |= part.each(read)
        return found

    @cached_property
    def empty(self) -> BoolArray:
        """For whom nothing is feasible, not even staying."""
        return self.maker.stuck(self.rows) | self._some(lambda p: p.empty)

    @cached_property
    def endless(self) -> BoolArray:
        """Whose points cannot be listed: a real feature moves, or an effect acts."""
        found = self._some(lambda p: p.endless) | bool(self.maker.model.effects)
        for f, j in zip(self.maker.free, self.maker.free_columns):
            low, high = f.moves(self.rows[:, j])
            found |= low < high
        return found

    @cached_property
    def fixed(self) -> BoolArray:
        """Who can only stay."""
        found = ~self.endless & ~self.empty
        for part in self.parts:
            found &= part.each(lambda p: p.only_stays)
        return found

    @property
    def status(self) -> npt.NDArray[np.object_]:
        """``ok``, ``fixed`` or ``empty``."""
        return np.where(self.empty, "empty", np.where(self.fixed, "fixed", "ok")).astype(object)

    @cached_property
    def about(self) -> FloatArray:
        """How many points each person can reach, up to 2^53; NaN where they cannot be listed or counted."""
        found = np.where(self.endless, np.nan, 1.0)
        for part in self.parts:
            found *= part.each(lambda p: [np.nan if size is None else min(size, 2**53) for size in p.sizes], float)
            found = np.minimum(found, 2.0**53)  # in between, too: thousands of parts pass the largest number
        return np.where(self.empty, 0.0, found)

    def size(self, person: int) -> int | None:
        """Return how many points a person can reach, however many; None where they cannot be listed or counted."""
        sizes = [part.of_person(person).size for part in self.parts]
        if self.empty[person]:
            return 0
        return None if self.endless[person] or None in sizes else math.prod(size for size in sizes if size is not None)

    @cached_property
    def alike(self) -> IntArray:
        """A number for each person, equal for those who have the same changes."""
        places = [column for part in self.parts for column in (part.piece, part.place)]
        return distinct(np.stack(places, axis=1))[0] if places else np.zeros(len(self), dtype=np.intp)

    @cached_property
    def approximate(self) -> BoolArray:
        """Whose draws follow their law only approximately."""
        return self._some(lambda p: p.approximate)

    # -- drawing ------------------------------------------------------------------------------------------------------

    def draw(self, stream: Stream, first: int, n: int) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Return draws `first`, … of everybody: the columns that can move, (columns, people · n), and the effects in them."""
        moved = self.actions(stream, first, n)
        return moved, add_effects(self, moved, stream, first, n)

    def actions(self, stream: Stream, first: int, n: int) -> FloatArray:
        """Return draws `first`, … of everybody as `draw` does, without effects."""
        moved = np.empty((len(self.maker.moved), len(self) * n))
        step = -(-len(self) // max(1, round(len(self) * n / AT_ONCE)))
        for at in range(0, len(self), max(1, step)):
            people = slice(at, at + step)
            some = self if step >= len(self) else self.take(people)
            some._draw(moved[:, at * n : (at + step) * n], stream.take(people), first, n)
        return moved

    def _draw(self, moved: FloatArray, stream: Stream, first: int, n: int) -> None:
        """Write draws into the columns that can move, without effects."""
        maker, out = self.maker, [column.reshape(len(self), n) for column in moved]
        for part in self.parts:
            for who, j, changes in part.draw(stream, first, n):
                if maker.spot[j] < 0:
                    continue
                changes = changes.reshape(len(who), n)
                if len(who) == len(self):
                    np.add(changes, self.rows[:, j, None], out=out[maker.spot[j]])
                else:
                    out[maker.spot[j]][who] = changes + self.rows[who, j, None]
        for f, j in zip(maker.free, maker.free_columns):
            low, high = f.moves(self.rows[:, j])
            number = unit(stream.words(first, n, 1, region_of("part", f.name)))[..., 0]
            number *= (high - low)[:, None]
            np.add(number, (self.rows[:, j] + low)[:, None], out=out[maker.spot[j]])
        for j in maker.acted:  # an effect alone moves it
            out[maker.spot[j]][:] = self.rows[:, j, None]
        maker.settle(moved, self.rows, n)

    # -- listing ------------------------------------------------------------------------------------------------------

    def points(self, person: int) -> tuple[FloatArray, FloatArray | None]:
        """Return every reachable change of a person once, (features, points), and their probabilities where these differ."""
        size = int(self.about[person])
        changes = np.zeros((len(self.maker.names), size))
        weights: FloatArray | None = None
        number = np.arange(size)
        for part in self.parts:
            alone = part.of_person(person)
            if alone.only_stays and alone.piece.weights is None:
                continue
            listed, shares = alone.listed
            pick = number % len(listed)
            number = number // len(listed)
            for column, moved in zip(part.columns, listed.T):
                changes[column] = moved[pick]
            if shares is not None:
                weights = shares[pick] * (1.0 if weights is None else weights)
        return changes, None if weights is None else weights * (1.0 / weights.sum())

    def listed(self, people: IntArray) -> tuple[FloatArray, IntArray, FloatArray | None]:
        """Return all points of some people, (columns that can move, points), how many each has, and probabilities where these differ.

        People with the same changes should follow each other: they are listed once.
        """
        maker, which = self.maker, self.alike[people]
        counts = self.about[people].astype(np.intp)
        moved = np.repeat(self.rows[np.ix_(people, maker.moved)].T, counts, axis=1)
        weights: FloatArray | None = None
        cuts = np.flatnonzero(np.r_[True, which[1:] != which[:-1], True])
        ends = np.r_[0, np.cumsum(counts)]
        for a, b in zip(cuts[:-1].tolist(), cuts[1:].tolist()):
            changes, shares = self.points(int(people[a]))
            moved[:, ends[a] : ends[b]] += np.tile(changes[maker.moved], b - a)
            if shares is not None:
                if weights is None:
                    weights = np.repeat(1.0 / counts, counts)
                weights[ends[a] : ends[b]] = np.tile(shares, b - a)
        if maker.lists:
            maker.settle(moved, self.rows[people], counts)
        return moved, counts, weights

    def diagnostics(self, person: int) -> tuple[PartDiagnostics, ...]:
        """Return how each part of a person is drawn."""
        found, own = [], {part.part.names: part.of_person(person) for part in self.parts}
        for part in self.maker.parts:
            alone = own.get(part.names) or self.maker.alone(part, self.rows[person])
            piece, place = alone.piece, alone.place
            found.append(PartDiagnostics(part.names, piece.method, alone.size, not piece.approximate[place], piece.acceptance, piece.note))
        return (*found, *(PartDiagnostics((f.name,), "box", 1) for f in self.maker.free))


class Reacher:
    """Lists and draws for one interaction model."""

    def __init__(self, model: InteractionModel) -> None:
        self.model = model
        self.names = tuple(f.name for f in model.features)
        self.position = {name: j for j, name in enumerate(self.names)}
        moving = [part for part in model.parts if any(f.actionable for f in part.features)]
        self.free = [part.features[0] for part in moving if _is_free(part)]
        self.free_columns = [self.position[f.name] for f in self.free]
        self.parts = [part for part in moving if not _is_free(part)]
        self.inert = [part for part in model.parts if part.constraints and not any(f.actionable for f in part.features)]
        self.moved = np.array([j for j, name in enumerate(self.names) if name in model.moving], dtype=np.intp)
        self.spot = np.full(len(self.names), -1)
        self.spot[self.moved] = np.arange(len(self.moved))
        drawn = {self.position[name] for part in moving for name in part.names}
        self.acted = [int(j) for j in self.moved if int(j) not in drawn]
        self.felt = {name for e in model.effects for _, name in e.parents} | {e.feature for e in model.effects}
        self.felt |= {name for part in model.parts if part.links and self.felt & set(part.names) for name in part.names}
        self.merged = _merged(self.parts)
        self.lists = {self.position[name]: values for part in moving for name, values in lists_of(part).items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return (nothing, ())  # a copy of the model makes its own

    def block(self, rows: FloatArray) -> Block:
        """Prepare these people."""
        return Block(self, rows, tuple(self._part(part, rows) for part in self.merged))

    def settle(self, moved: FloatArray, rows: FloatArray, counts: int | IntArray) -> None:
        """Put what was reached onto listed values: a start and a change add up to them within rounding only. `rows` are the starts, so many points each."""
        for j, values in self.lists.items():
            if self.spot[j] >= 0:
                moved[self.spot[j]] = onto(values, moved[self.spot[j]], np.repeat(rows[:, j], counts))

    def alone(self, part: Part, row: FloatArray) -> Alone:
        """Prepare one part for one person."""
        return self._part(part, row[None, :]).of_person(0)

    def _part(self, part: Part, rows: FloatArray) -> PartBlock:
        columns, asked = (np.array([self.position[name] for name in names], dtype=np.intp) for names in (part.names, _asked(part)))
        return PartBlock.of(part, columns, rows, asked, self.model.measure)

    def stuck(self, rows: FloatArray) -> BoolArray:
        """Who stands in a part that nobody can move and that does not allow to stay: nothing is feasible there."""
        result = np.zeros(len(rows), dtype=bool)
        for part in self.inert:
            result |= ~self._stays(part, rows)
        return result

    def _stays(self, part: Part, rows: FloatArray) -> BoolArray:
        x = {name: rows[:, self.position[name]] for name in part.names}
        return np.broadcast_to(part.feasible(x, dict.fromkeys(part.names, np.zeros(len(rows)))), (len(rows),))

    def empty_error(self, row: FloatArray, label: object = None) -> EmptyError:
        """Return which constraints clash, where nothing is feasible."""
        guilty = [part for part in self.parts if self.alone(part, row).empty]
        guilty += [part for part in self.inert if not self._stays(part, row[None, :])[0]]
        part = guilty[0]
        blamed = blame(part, {name: float(row[self.position[name]]) for name in part.names})
        who = f"row {label}: " if label is not None else ""
        return EmptyError(
            "no action is feasible, not even staying; these clash: " + "; ".join(blamed),
            where=f"{who}part {', '.join(part.names)}",
            remedy="drop or relax one of them",
        )


def _merged(parts: Sequence[Part], most: int = 512) -> list[Part]:
    """Return the parts with small listed ones joined, up to so many joint configurations: one word draws them together."""
    sized = sorted(((_largest(part), sorted(part.names), part) for part in parts), key=lambda entry: entry[:2])
    result: list[Part] = []
    room = 0.0
    for size, _, part in sized:
        if result and size <= room:
            last = result.pop()
            part = Part(last.features + part.features, last.constraints + part.constraints, {**last.links, **part.links})
            room //= size
        else:
            room = most // size if size <= most else 0
        result.append(part)
    return result


def _largest(part: Part) -> float:
    """Return the most configurations that anybody has in a part; infinite where it cannot simply be listed."""
    plain = all(f.discrete and f.distribution is None for f in part.features) and not part.links and not any(f.missing == "fixed" for f in part.features)
    if not plain:
        return math.inf
    size = 1.0
    for f in part.features:
        if f.actionable:
            down, up = (math.inf if step is None else step for step in (f.max_decrease, f.max_increase))
            low, high = f.range
            size *= min(high - low, (0 if f.direction == "increase" else down) + (0 if f.direction == "decrease" else up)) + 1
    return size


def _asked(part: Part) -> list[str]:
    """The features whose start the part's changes depend on: not targets that only follow, wherever they stand."""
    read = {name for c in part.constraints for name in c.scope} | {link.source for link in part.linkages}

    def matters(f: Feature) -> bool:
        if f.actionable or f.name in read or f.distribution is not None or f.missing == "fixed":  # a missing target does not follow
            return True
        return any(link.on_exceed != "allow" for link in part.links.get(f.name, ()))

    return [f.name for f in part.features if matters(f)]


def reacher(model: InteractionModel) -> Reacher:
    """The model's reacher, made once."""
    found: Reacher | None = model.__dict__.get("_reacher")
    if found is None:
        found = Reacher(model)
        object.__setattr__(model, "_reacher", found)
    return found


def _is_free(part: Part) -> bool:
    """A single real feature with nothing but its own limits."""
    lone = part.features[0]
    return (
        len(part.features) == 1 and lone.type == "real" and not part.constraints and (lone.distribution is None or lone.distribution.kind == "uniform")
    )
