"""The discrete configurations of a part, listed for many people at once: each constraint is applied as soon as it can be.

Groups whose codes are listed (one-hot, ordinal, …) come in as lists, never as 2^m; linkage targets are computed from their sources, never proposed; linear
rows cut a partial configuration as soon as no completion can meet them. The rows of a person follow each other, in an order that the interaction
model decides alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.constraints import Constraint, OneHot
from budge.constraints.links import follows
from budge.errors import DrawError
from budge.expressions.tolerance import less_equal
from budge.features import Feature
from budge.reach.forms import forms_of
from budge.reach.pending import Pending
from budge.reach.starts import Starts, distinct

__all__ = [
    "MOST_ROWS", "Core", "TooManyError", "build_core", "change_interval", "group_moves", "groups", "has_gaps",
    "is_computed", "listed_values", "no_weight", "supported_values",
]  # fmt: skip

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
MOST_ROWS = 2_000_000  # configurations that are held at once
MOST_HELD = 8_000_000  # numbers of these, where one person has them all
MOST_COPIED = 100_000_000  # numbers that may be copied for one person
MOST_MOVED = 5000  # numbers that may be copied, for each row that one person may have: a part of many features is counted instead


class TooManyError(Exception):
    """More configurations than are held at once."""


def no_weight(names: Sequence[str]) -> DrawError:
    """Return the error where something is feasible, but nothing that would be drawn."""
    return DrawError(
        "its distributions give no weight to anything that is feasible",
        where=f"part {', '.join(names)}",
        remedy="give some feasible value a weight",
    )


@dataclass
class Core:
    """Configurations of the discrete features, column by column: one row a person and configuration.

    `action` holds own actions; where nobody reads one and it is not told by the change, it is zero.
    """

    starts: Starts
    who: IntArray  # whose each row is, ascending
    action: dict[str, FloatArray] = field(default_factory=dict)
    change: dict[str, FloatArray] = field(default_factory=dict)
    folded: bool = False  # several own actions may lead to one change: twins must be dropped
    most: int = MOST_ROWS  # rows that one person may have
    moved: float = 0.0  # numbers that were copied, per person
    x: Mapping[str, FloatArray] = field(init=False)  # where the person of each row stands

    def __post_init__(self) -> None:
        self.x = _Spread(self.starts.x, self.who)

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.who)

    def each(self, column: FloatArray) -> FloatArray:
        """Return a column of people as a column of rows."""
        return column[self.who]

    def take(self, rows: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> None:
        """Keep, repeat or reorder rows."""
        self.moved += len(rows) * len(self.change) / max(1, len(self.starts))
        if self.moved > min(MOST_MOVED * self.most, MOST_COPIED):
            raise TooManyError
        shared: dict[int, FloatArray] = {}  # where action and change are one column it stays one
        for columns in (self.action, self.change):
            for name, column in columns.items():
                if id(column) not in shared:
                    shared[id(column)] = column[rows]
                columns[name] = shared[id(column)]
        self.who = self.who[rows]
        self.x = _Spread(self.starts.x, self.who)

    def keep(self, good: npt.NDArray[np.bool_]) -> None:
        """Keep the rows that are good."""
        if not good.all():
            self.take(np.asarray(np.broadcast_to(good, (self.size,))))


class _Spread(dict[str, FloatArray]):
    """Columns of people, read as columns of rows, each made when it is first asked for."""

    def __init__(self, columns: Mapping[str, FloatArray], who: IntArray) -> None:
        super().__init__()
        self._columns, self._who = columns, who

    def __missing__(self, name: str) -> FloatArray:
        self[name] = self._columns[name][self._who]
        return self[name]


def listed_values(feature: Feature) -> FloatArray | None:
    """Return the values of a real feature that is drawn from a list."""
    if feature.type == "real" and feature.distribution is not None and feature.distribution.bounded:
        return feature.distribution.table(feature.levels)[0]
    return None


def supported_values(feature: Feature) -> FloatArray | None:
    """Return the values to which a discrete feature's own distribution gives weight, where it lists them."""
    if feature.discrete and feature.distribution is not None and feature.distribution.bounded:
        values, weights = feature.distribution.table(feature.levels)
        return values[weights > 0]
    return None


def is_computed(starts: Starts, name: str) -> bool:
    """Return whether a real target follows from its sources' own actions alone: it has no moves of its own, all links are equalities."""
    return name in starts.still and all(link.relation == "==" for link in starts.part.links[name])


def has_gaps(starts: Starts, name: str) -> bool:
    """Return whether whole changes of a target may leave gaps: it moves by itself in whole steps, and what is induced may hold no whole number."""
    part = starts.part
    return (
        part.by_name[name].discrete
        and name not in starts.still
        and any(
            link.relation == ">=" and (part.by_name[link.source].type == "real" or link.targets[name] != round(link.targets[name]))
            for link in part.links[name]
        )
    )


def change_interval(core: Core, name: str, unknown: Iterable[str] = (), own: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and the highest change of a feature for each row, given its sources' own actions (their whole range where unknown).

    With `own` its own action is known, too.
    """
    starts, part = core.starts, core.starts.part
    feature, links = part.by_name[name], part.links.get(name, ())
    low, high = (core.each(starts.down[name]), core.each(starts.up[name])) if own is None else (own, own)
    if not links:
        return low, high
    for link in links:
        source = link.source
        moves = [core.each(starts.down[source]), core.each(starts.up[source]), np.zeros(core.size)] if source in unknown else [core.action[source]]
        ends = [link.interval(name, core.x, {source: moved}) for moved in moves]
        low, high = low + np.min([e[0] for e in ends], axis=0), high + np.max([e[1] for e in ends], axis=0)
    policy = links[0].on_exceed
    if policy != "allow" and name not in starts.gone:  # a missing value has no bounds to pass
        floor, ceiling = (core.each(end) for end in starts.reach(feature))
        if policy == "clip":
            return np.clip(low, floor, ceiling), np.clip(high, floor, ceiling)
        return np.maximum(low, floor), np.minimum(high, ceiling)
    return low, high


def build_core(starts: Starts, outside: Sequence[str] = (), *, each: int = MOST_ROWS, weighed: bool = False) -> Core:
    """Return all configurations of the part's discrete features but those `outside`, at most `each` of a person.

    With `weighed`, values to which a feature's own distribution gives no weight may be left out.
    """
    part, forms = starts.part, forms_of(starts.part)
    core = Core(starts, np.arange(len(starts)), most=each)
    left = {name for name in part.order if name not in outside}
    pending = Pending(starts, left, [c for c in part.constraints if not forms.scope(c) & set(outside)])
    for constraint in groups(starts, [name for name in part.order if name in left]):
        names = tuple(sorted(forms.scope(constraint)))
        _cross_group(core, constraint, names)
        pending.settle(core, names)
    while (name := pending.next()) is not None:
        _extend(core, name, outside, weighed)
        pending.settle(core, [name])
    if core.folded and core.size:
        _, first = distinct(np.stack([core.who.astype(float), *core.change.values()], axis=1))
        core.take(first)
    return core


def groups(starts: Starts, names: Sequence[str], most: int | None = None) -> list[Constraint]:
    """Return constraints over disjoint groups of features whose joint values they list; with `most`, none with more values than that on at once."""
    part, found = starts.part, []
    for constraint in part.constraints:
        scope = forms_of(part).scope(constraint)
        # a missing value has no place in a list of values, but the constraint may still hold
        able = all(name in names and name not in part.links and name not in starts.gone for name in scope)
        if isinstance(constraint, OneHot) and most is not None:
            able = able and constraint.count <= most and constraint.relation != ">="
        if able and constraint.configurations({name: float(starts.x[name][0]) for name in scope}) is not None:
            found.append(constraint)
    chosen: list[Constraint] = []
    taken: set[str] = set()
    for constraint in sorted(found, key=lambda c: (-len(c.scope), sorted(c.scope), c.key)):
        if not taken & set(constraint.scope):
            chosen.append(constraint)
            taken |= set(constraint.scope)
    return chosen


def group_moves(starts: Starts, constraint: Constraint, names: Sequence[str], person: int) -> FloatArray:
    """Return the joint moves that a constraint lists from where a person stands, a column a name."""
    here = {name: float(starts.x[name][person]) for name in names}
    listed = constraint.configurations(here)
    assert listed is not None
    place = {name: j for j, name in enumerate(listed.names)}
    moves = listed.values[:, [place[name] for name in names]]
    moves -= np.array([here[name] for name in names])
    good = np.ones(len(moves), dtype=bool)
    for j, name in enumerate(names):  # column by column: thousands of codes of thousands of dummies are held once
        good &= less_equal(starts.down[name][person], moves[:, j]) & less_equal(moves[:, j], starts.up[name][person])
    return moves if good.all() else np.asarray(moves[good])


def _cross_group(core: Core, constraint: Constraint, names: Sequence[str]) -> None:
    """Cross every row with the joint values that the constraint lists from where its person stands; people who stand alike share a list."""
    starts = core.starts
    which, first = distinct(np.stack([starts.x[name] for name in names], axis=1))
    lists = [group_moves(starts, constraint, names, person) for person in first.tolist()]
    lengths = np.array([len(moves) for moves in lists], dtype=np.intp)
    places = np.cumsum(lengths) - lengths
    stacked = np.concatenate(lists) if len(lists) > 1 else lists[0]
    _, inner = _repeat(core, lengths[which[core.who]])
    rows = places[which[core.who]] + inner
    for i, name in enumerate(names):
        core.action[name] = core.change[name] = stacked[rows, i]


def _repeat(core: Core, counts: npt.NDArray[Any]) -> tuple[IntArray, IntArray]:
    """Repeat every row so many times; return which row each was, and 0, 1, … within it. Raise TooManyError for too many of one person, or of all."""
    total = counts.sum()
    if total > MOST_ROWS or (len(core.starts) == 1 and total * len(core.change) > MOST_HELD):
        raise TooManyError
    if total > core.most and np.bincount(core.who, counts, len(core.starts)).max() > core.most:
        raise TooManyError
    if (counts == 1).all():
        return np.arange(core.size), np.zeros(core.size, dtype=np.intp)
    lengths = counts.astype(np.intp)
    rows = np.repeat(np.arange(core.size), lengths)
    core.take(rows)
    return rows, np.arange(len(rows)) - (np.cumsum(lengths) - lengths)[rows]


def _extend(core: Core, name: str, outside: Sequence[str], weighed: bool) -> None:
    """Cross every row with every value that it leaves open to one feature."""
    starts, part = core.starts, core.starts.part
    feature, links = part.by_name[name], part.links.get(name, ())
    listed = None if name in starts.gone else listed_values(feature)  # a missing value stays missing, whatever is listed
    if not links:
        if weighed and listed is None and name not in starts.gone:
            listed = supported_values(feature)
        if listed is not None:
            core.action[name] = core.change[name] = _from_list(core, name, listed)
            core.keep(_moves(core, name, core.change[name]))
            return
        if not np.isfinite(starts.up[name] - starts.down[name]).all():  # without bounds, all that can be listed is what its distribution gives weight to
            raise no_weight(part.names)
        core.change[name] = core.action[name] = _spread(core, core.each(starts.down[name]), core.each(starts.up[name]))
        return
    told = part.adds_up(name)
    if (told or part.split(name) == "guess" or listed is not None) and any(link.source in outside for link in links):
        raise DrawError(
            f"{name} is listed, hangs on a continuous source and its own action is read or weighed",
            where=f"part {', '.join(part.names)}",
            remedy=f"make {name} not actionable, or drop its distribution",
        )
    if listed is not None:  # the listed values that some own action leads to
        core.change[name] = _from_list(core, name, listed)
        own = core.action[name] = np.asarray(part._nearest_own(feature, core.x, core.action, core.change[name]))
        core.keep(np.asarray(follows(feature, links, core.x, core.action, core.change)) & _moves(core, name, own))
        return
    if told or part.split(name) == "guess" or (has_gaps(starts, name) and not any(link.source in outside for link in links)):
        _extend_told(core, feature, told)
        return
    low, high = change_interval(core, name, outside)
    if feature.type == "real":  # computed from its sources
        core.change[name] = np.array(low, dtype=float)
    else:
        core.change[name] = _spread(core, np.ceil(low - 1e-9), np.floor(high + 1e-9))
    core.action[name] = np.zeros(core.size)


def _extend_told(core: Core, feature: Feature, told: bool) -> None:
    """Cross a linked target with each of its own actions; its change follows, or is spread over what is induced."""
    starts, name, links = core.starts, feature.name, core.starts.part.links[feature.name]
    core.action[name] = _spread(core, core.each(starts.down[name]), core.each(starts.up[name]))
    low, high = change_interval(core, name, own=core.action[name])
    core.change[name] = np.array(low) if told else _spread(core, np.ceil(low - 1e-9), np.floor(high + 1e-9))
    core.folded |= not told
    core.keep(np.asarray(follows(feature, links, core.x, core.action, core.change)))


def _moves(core: Core, name: str, own: FloatArray) -> npt.NDArray[np.bool_]:
    """Return which own actions are within the feature's moves."""
    return np.asarray(less_equal(core.each(core.starts.down[name]), own) & less_equal(own, core.each(core.starts.up[name])))


def _from_list(core: Core, name: str, listed: FloatArray) -> FloatArray:
    """Repeat every row once for each listed value, and return the changes that lead there."""
    _, inner = _repeat(core, np.full(core.size, len(listed)))
    return np.asarray(listed[inner] - core.x[name])


def _spread(core: Core, low: FloatArray, high: FloatArray) -> FloatArray:
    """Repeat every row once for each whole number from low to high, and return these numbers."""
    rows, inner = _repeat(core, np.maximum(high - low + 1.0, 0.0))
    return np.asarray(low[rows] + inner)
