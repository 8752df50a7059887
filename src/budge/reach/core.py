"""The discrete configurations of a part: listed step by step, each constraint applied as soon as it can be.

Groups whose codes are listed (one-hot, ordinal, ...) come in as lists, never as 2^m; linkage targets are computed
from their sources, never proposed; linear rows cut a partial configuration as soon as no completion can meet them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.constraints import Configurations, Constraint
from budge.constraints.links import follows, induced
from budge.errors import DrawError
from budge.expressions import Row
from budge.expressions.tolerance import less_equal
from budge.features import Feature
from budge.parts import Part
from budge.reach.forms import forms_of, limits

__all__ = ["MOST_ROWS", "Core", "TooManyError", "build_core", "change_interval", "has_gaps", "is_computed", "listed_values", "no_weight", "supported_values"]

FloatArray = npt.NDArray[np.float64]
MOST_ROWS = 2_000_000  # configurations of one part that are held at once


class TooManyError(Exception):
    """More configurations than are held at once; the caller falls back to rejection."""


def no_weight(names: Sequence[str]) -> DrawError:
    """The error where something is feasible, but nothing that would be drawn."""
    return DrawError(
        "its distributions give no weight to anything that is feasible",
        where=f"part {', '.join(names)}",
        remedy="give some feasible value a weight",
    )


@dataclass
class Core:
    """Configurations of the discrete features at one start, column by column.

    `action` holds own actions; where nobody reads one and it is not told by the change, it is zero.
    """

    size: int = 1
    action: dict[str, FloatArray] = field(default_factory=dict)
    change: dict[str, FloatArray] = field(default_factory=dict)
    folded: bool = False  # several own actions may lead to one change: twins must be dropped

    def take(self, rows: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> None:
        """Keep, repeat or reorder rows."""
        shared: dict[int, FloatArray] = {}  # where action and change are one column it stays one
        for columns in (self.action, self.change):
            for name, column in columns.items():
                if id(column) not in shared:
                    shared[id(column)] = column[rows]
                columns[name] = shared[id(column)]
        self.size = int(rows.sum()) if rows.dtype == bool else len(rows)


def listed_values(feature: Feature) -> FloatArray | None:
    """The values of a real feature that is drawn from a list."""
    if feature.type == "real" and feature.distribution is not None and feature.distribution.bounded:
        return feature.distribution.table(feature.levels)[0]
    return None


def supported_values(feature: Feature) -> FloatArray | None:
    """The values to which a discrete feature's own distribution gives weight, where it lists them."""
    if feature.discrete and feature.distribution is not None and feature.distribution.bounded:
        values, weights = feature.distribution.table(feature.levels)
        return values[weights > 0]
    return None


def is_computed(part: Part, name: str, x: Mapping[str, float]) -> bool:
    """Whether a real target follows from its sources' own actions alone: it has no moves of its own, all links are equalities."""
    down, up = limits(part.by_name[name], x[name])
    return up <= down and all(link.relation == "==" for link in part.links[name])


def has_gaps(part: Part, name: str, x: Mapping[str, float]) -> bool:
    """Whether whole changes of a target may leave gaps: it moves by itself in whole steps, and what is induced may hold no whole number."""
    feature = part.by_name[name]
    low, high = limits(feature, x[name])
    return (
        feature.discrete
        and high > low
        and any(
            link.relation == ">=" and (part.by_name[link.source].type == "real" or link.targets[name] != round(link.targets[name]))
            for link in part.links[name]
        )
    )


def change_interval(
    part: Part, name: str, x: Mapping[str, Any], action: Mapping[str, FloatArray], unknown: Iterable[str] = ()
) -> tuple[FloatArray, FloatArray]:
    """Lowest and highest change of a feature, given its sources' own actions (their whole range where unknown)."""
    feature = part.by_name[name]
    down, up = limits(feature, x[name])
    links = part.links.get(name, ())
    if not links:
        return np.asarray(down), np.asarray(up)
    given = dict(action)
    least = most = np.zeros(())
    for link in links:
        if link.source in unknown:
            ends = [link.interval(name, x, {link.source: np.asarray(m)}) for m in (*limits(part.by_name[link.source], x[link.source]), 0.0)]
            low, high = np.min([e[0] for e in ends], axis=0), np.max([e[1] for e in ends], axis=0)
        else:
            low, high = link.interval(name, x, given)
        least, most = least + low, most + high
    low, high = down + least, up + most
    policy = links[0].on_exceed
    if policy != "allow" and not np.isnan(x[name]):  # a missing value has no bounds to pass
        floor, ceiling = (bound - x[name] for bound in feature.reach(x[name]))
        if policy == "clip":
            low, high = np.clip(low, floor, ceiling), np.clip(high, floor, ceiling)
        else:
            low, high = np.maximum(low, floor), np.minimum(high, ceiling)
    return np.asarray(low), np.asarray(high)


def build_core(part: Part, x: Mapping[str, float], outside: Sequence[str] = (), most: int = MOST_ROWS, *, weighed: bool = False) -> Core:
    """All configurations of the part's discrete features but those `outside`, which are left to the fibre.

    With `weighed`, values to which a feature's own distribution gives no weight may be left out.
    """
    core = Core()
    forms = forms_of(part)
    waiting = [c for c in part.constraints if not forms.scope(c) & set(outside)]
    cuts = [row for c in waiting if (row := _plain_row(c, part, x)) is not None]
    moves = {f.name: limits(f, x[f.name]) for f in part.features}
    left = [name for name in part.order if name not in outside]
    for group in _groups(part, x, left):
        values = group.values - np.array([x[name] for name in group.names])
        inside = np.ones(len(values), dtype=bool)
        for i, name in enumerate(group.names):
            low, high = moves[name]
            inside &= np.asarray(less_equal(low, values[:, i]) & less_equal(values[:, i], high))
        _cross(core, {name: values[inside, i] for i, name in enumerate(group.names)}, most)
        left = [name for name in left if name not in group.names]
        waiting = _settle(core, part, x, waiting, cuts)
    while left:
        name = _next(left, part, core, waiting, moves)
        left.remove(name)
        _extend(core, part, name, x, outside, most, weighed)
        waiting = _settle(core, part, x, waiting, cuts)
    if core.folded and core.size:
        stacked = np.stack([core.change[name] for name in core.change], axis=1)
        _, first = np.unique(stacked, axis=0, return_index=True)
        core.take(np.sort(first))
    return core


def _groups(part: Part, x: Mapping[str, float], names: Sequence[str]) -> list[Configurations]:
    """Disjoint groups of features whose joint values a constraint lists, shortest lists first."""
    found: list[Configurations] = []
    for constraint in part.constraints:
        scope = forms_of(part).scope(constraint)
        # a missing value has no place in a list of values, but the constraint may still hold
        if all(name in names and name not in part.links and not np.isnan(x[name]) for name in scope):
            listed = constraint.configurations(x)
            if listed is not None:
                found.append(listed)
    chosen: list[Configurations] = []
    taken: set[str] = set()
    for listed in sorted(found, key=lambda c: len(c.values) / 2.0 ** len(c.names)):
        if not taken & set(listed.names):
            chosen.append(listed)
            taken |= set(listed.names)
    return sorted(chosen, key=lambda c: len(c.values))


def _next(
    left: Sequence[str], part: Part, core: Core, waiting: Sequence[Constraint], moves: Mapping[str, tuple[float, float]]
) -> str:
    """The feature to take next: its sources are known, it completes a constraint soonest, it has few moves."""
    if len(left) == 1:
        return left[0]
    known = core.change.keys()
    soonest = dict.fromkeys(left, 99)
    for constraint in waiting:
        missing = forms_of(part).scope(constraint) - known
        for name in missing:
            soonest[name] = min(soonest.get(name, 99), len(missing))
    ready = [name for name in left if all(link.source not in left for link in part.links.get(name, ()))]
    return min(ready, key=lambda name: (soonest[name], moves[name][1] - moves[name][0]))


def _cross(core: Core, columns: Mapping[str, FloatArray], most: int) -> None:
    """Every configuration so far with every row of the columns."""
    length = len(next(iter(columns.values())))
    if core.size * length > most:
        raise TooManyError
    copies = core.size
    if length != 1:
        core.take(np.repeat(np.arange(core.size), length))
    for name, values in columns.items():
        core.action[name] = core.change[name] = np.tile(values, copies)


def _extend(core: Core, part: Part, name: str, x: Mapping[str, float], outside: Sequence[str], most: int, weighed: bool) -> None:
    """Every configuration so far with every value that it leaves open to one feature."""
    feature, links = part.by_name[name], part.links.get(name, ())
    down, up = limits(feature, x[name])
    listed = None if np.isnan(x[name]) else listed_values(feature)  # a missing value stays missing, whatever is listed
    if not links:
        if weighed and listed is None and not np.isnan(x[name]):
            listed = supported_values(feature)
        if listed is not None:
            moves = listed - x[name]
            _cross(core, {name: moves[less_equal(down, moves) & less_equal(moves, up)]}, most)
            return
        if up - down == np.inf:  # without bounds, all that can be listed is what its distribution gives weight to
            raise no_weight(part.names)
        if core.size * (up - down + 1) > most:
            raise TooManyError
        _cross(core, {name: np.arange(down, up + 1.0)}, most)
        return
    told = all(link.relation == "==" and link.on_exceed != "clip" for link in links)
    if (told or part.split(name) == "guess" or listed is not None) and any(link.source in outside for link in links):
        raise DrawError(
            f"{name} is listed, hangs on a continuous source and its own action is read or weighed",
            where=f"part {', '.join(part.names)}",
            remedy=f"make {name} not actionable, or drop its distribution",
        )
    if listed is not None:
        _extend_listed(core, part, feature, x, listed - x[name], most)
        return
    if told or part.split(name) == "guess" or (has_gaps(part, name, x) and not any(link.source in outside for link in links)):
        _extend_told(core, part, feature, x, told, most)
        return
    low, high = change_interval(part, name, x, core.action, outside)
    if feature.type == "real":  # computed from its sources
        core.change[name] = np.array(np.broadcast_to(low, (core.size,)), dtype=float)
    else:
        low, high = np.broadcast_to(np.ceil(low - 1e-9), (core.size,)), np.broadcast_to(np.floor(high + 1e-9), (core.size,))
        core.change[name] = _spread(core, low, high, most)
    core.action[name] = np.zeros(core.size)


def _extend_told(core: Core, part: Part, feature: Feature, x: Mapping[str, Any], told: bool, most: int) -> None:
    """A linked target with each of its own actions; its change follows, or is spread over what is induced."""
    name, links = feature.name, part.links[feature.name]
    down, up = limits(feature, x[name])
    core.action[name] = _spread(core, np.broadcast_to(down, (core.size,)), np.broadcast_to(up, (core.size,)), most)
    least, high = induced(name, links, x, core.action)
    if told:
        core.change[name] = core.action[name] + least
    else:
        ends = (core.action[name] + least, core.action[name] + high)
        if links[0].on_exceed == "clip" and not np.isnan(x[name]):
            floor, ceiling = (bound - x[name] for bound in feature.reach(x[name]))
            ends = (np.clip(ends[0], floor, ceiling), np.clip(ends[1], floor, ceiling))
        core.change[name] = _spread(core, np.ceil(ends[0] - 1e-9), np.floor(ends[1] + 1e-9), most)
        core.folded = True
    _keep(core, np.asarray(follows(feature, links, x, core.action, core.change)))


def _extend_listed(core: Core, part: Part, feature: Feature, x: Mapping[str, Any], moves: FloatArray, most: int) -> None:
    """A linked target whose value is drawn from a list: the listed values that some own action leads to."""
    name = feature.name
    _cross(core, {name: moves}, most)
    core.action[name] = np.asarray(part._nearest_own(feature, x, core.action, core.change[name]))
    down, up = limits(feature, x[name])
    own = core.action[name]
    _keep(core, np.asarray(follows(feature, part.links[name], x, core.action, core.change) & less_equal(down, own) & less_equal(own, up)))


def _keep(core: Core, good: npt.NDArray[np.bool_]) -> None:
    if not good.all():
        core.take(np.asarray(np.broadcast_to(good, (core.size,))))


def _spread(core: Core, low: FloatArray, high: FloatArray, most: int) -> FloatArray:
    """Repeat every row once for each whole number from low to high, and return these numbers."""
    counts = np.maximum(high - low + 1.0, 0.0)
    if counts.sum() > most:
        raise TooManyError
    repeats = counts.astype(np.int64)
    rows = np.repeat(np.arange(core.size), repeats)
    offset = np.arange(len(rows)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    core.take(rows)
    return np.asarray(low[rows] + offset)


def _settle(core: Core, part: Part, x: Mapping[str, float], waiting: Sequence[Constraint], cuts: Sequence[_Cut]) -> list[Constraint]:
    """Apply every constraint that can be decided now; return the others."""
    later = []
    forms = forms_of(part)
    for constraint in waiting:
        scope = forms.scope(constraint)
        if scope <= core.change.keys():
            good = constraint.mask(
                {n: np.asarray(x[n]) for n in scope}, {n: core.action[n] for n in scope}, {n: core.change[n] for n in scope}
            )
            _keep(core, np.asarray(good))
        else:
            later.append(constraint)
    for cut in cuts:
        if any(n in core.change for n in cut.terms) and not all(n in core.change for n in cut.terms):
            _keep(core, cut.possible(core))
    return later


@dataclass(frozen=True)
class _Cut:
    """A linear row over own moves, with the range that the features not yet taken can add."""

    terms: Mapping[str, float]
    spans: Mapping[str, tuple[float, float]]
    constant: float
    relation: str
    slack: float  # never cuts what the mask with its tolerance would let pass

    def possible(self, core: Core) -> npt.NDArray[np.bool_]:
        low = high = np.full(core.size, self.constant)
        for name, c in self.terms.items():
            if name in core.change:
                low, high = low + c * core.change[name], high + c * core.change[name]
            else:
                ends = (c * self.spans[name][0], c * self.spans[name][1])
                low, high = low + min(ends), high + max(ends)
        good = np.ones(core.size, dtype=bool)
        if self.relation in ("<=", "<", "=="):
            good &= low <= self.slack
        if self.relation in (">=", ">", "=="):
            good &= high >= -self.slack
        return good


def _plain_row(constraint: Constraint, part: Part, x: Mapping[str, float]) -> _Cut | None:
    """The constraint as one linear row in the moves of features without linkages, if it is that."""
    forms = forms_of(part)
    if any(name in part.links for name in forms.scope(constraint)):
        return None
    formula = forms.formula(constraint, x)
    if not isinstance(formula, Row) or formula.relation == "!=":
        return None
    terms: dict[str, float] = {}
    constant = float(np.asarray(formula.linear.const))
    size = abs(constant)
    for (layer, name), c in formula.linear.terms.items():
        terms[name] = terms.get(name, 0.0) + float(np.asarray(c))
        if layer == "value":
            constant += float(np.asarray(c)) * x[name]
            size += abs(float(np.asarray(c)) * x[name])
    spans = {}
    for name in terms:
        low, high = limits(part.by_name[name], x[name])
        spans[name] = (low, high)
        size += abs(terms[name]) * max(abs(spans[name][0]), abs(spans[name][1]))
    return _Cut(terms, spans, constant, formula.relation, 1e-6 + 1e-8 * size)
