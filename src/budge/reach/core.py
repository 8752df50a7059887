"""The discrete configurations of a part: listed step by step, each constraint applied as soon as it can be.

Groups whose codes are listed (one-hot, ordinal, ...) come in as lists, never as 2^m; linkage targets are computed
from their sources, never proposed; linear rows cut a partial configuration as soon as no completion can meet them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from budge.constraints import Configurations, Constraint
from budge.constraints.links import follows, induced
from budge.expressions import Row
from budge.features import Feature
from budge.parts import Part

__all__ = ["MOST_ROWS", "Core", "TooManyError", "build_core", "change_interval", "listed_values"]

FloatArray = npt.NDArray[np.float64]
MOST_ROWS = 2_000_000  # configurations of one part that are held at once


class TooManyError(Exception):
    """More configurations than are held at once; the caller falls back to rejection."""


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
        for columns in (self.action, self.change):
            for name in columns:
                columns[name] = columns[name][rows]
        self.size = int(rows.sum()) if rows.dtype == bool else len(rows)


def listed_values(feature: Feature) -> FloatArray | None:
    """The values of a real feature that is drawn from a list."""
    if feature.type == "real" and feature.distribution is not None and feature.distribution.bounded:
        return feature.distribution.table(feature.levels)[0]
    return None


def change_interval(
    part: Part, name: str, x: Mapping[str, float], action: Mapping[str, FloatArray], unknown: Iterable[str] = ()
) -> tuple[FloatArray, FloatArray]:
    """Lowest and highest change of a feature, given its sources' own actions (their whole range where unknown)."""
    feature = part.by_name[name]
    down, up = feature.moves(x[name])
    links = part.links.get(name, ())
    if not links:
        return down, up
    given = dict(action)
    least = most = np.zeros(())
    for link in links:
        if link.source in unknown:
            ends = [link.interval(name, x, {link.source: m}) for m in (*part.by_name[link.source].moves(x[link.source]), np.zeros(()))]
            low, high = np.min([e[0] for e in ends], axis=0), np.max([e[1] for e in ends], axis=0)
        else:
            low, high = link.interval(name, x, given)
        least, most = least + low, most + high
    low, high = down + least, up + most
    policy = links[0].on_exceed
    if policy != "allow":
        floor, ceiling = (bound - x[name] for bound in feature.reach(x[name]))
        if policy == "clip":
            low, high = np.clip(low, floor, ceiling), np.clip(high, floor, ceiling)
        else:
            low, high = np.maximum(low, floor), np.minimum(high, ceiling)
    return np.asarray(low), np.asarray(high)


def build_core(part: Part, x: Mapping[str, float], outside: Sequence[str] = (), most: int = MOST_ROWS) -> Core:
    """All configurations of the part's discrete features but those `outside`, which are left to the fibre."""
    core = Core()
    waiting = [c for c in part.constraints if not set(c.scope) & set(outside)]
    cuts = [row for c in waiting if (row := _plain_row(c, part, x)) is not None]
    left = [name for name in part.order if name not in outside]
    for group in _groups(part, x, left):
        values = group.values - np.array([x[name] for name in group.names])
        inside = np.ones(len(values), dtype=bool)
        for i, name in enumerate(group.names):
            low, high = part.by_name[name].moves(x[name])
            inside &= (values[:, i] >= low - 1e-9) & (values[:, i] <= high + 1e-9)
        _cross(core, {name: values[inside, i] for i, name in enumerate(group.names)}, most)
        left = [name for name in left if name not in group.names]
        waiting = _settle(core, part, x, waiting, cuts)
    while left:
        name = _next(left, part, core, waiting, x)
        left.remove(name)
        _extend(core, part, name, x, outside, most)
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
        if all(name in names and name not in part.links for name in constraint.scope):
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


def _next(left: Sequence[str], part: Part, core: Core, waiting: Sequence[Constraint], x: Mapping[str, float]) -> str:
    """The feature to take next: its sources are known, it completes a constraint soonest, it has few moves."""

    def cost(name: str) -> tuple[int, float]:
        missing = [sum(n not in core.change for n in c.scope) for c in waiting if name in c.scope]
        low, high = part.by_name[name].moves(x[name])
        return (min(missing, default=99), float(high - low))

    ready = [name for name in left if all(link.source not in left for link in part.links.get(name, ()))]
    return min(ready, key=cost)


def _cross(core: Core, columns: Mapping[str, FloatArray], most: int) -> None:
    """Every configuration so far with every row of the columns."""
    length = len(next(iter(columns.values())))
    if core.size * length > most:
        raise TooManyError
    core.take(np.repeat(np.arange(core.size), length))
    copies = core.size // length if length else 0
    for name, values in columns.items():
        core.action[name] = core.change[name] = np.tile(values, copies)


def _extend(core: Core, part: Part, name: str, x: Mapping[str, float], outside: Sequence[str], most: int) -> None:
    """Every configuration so far with every value that it leaves open to one feature."""
    feature, links = part.by_name[name], part.links.get(name, ())
    down, up = feature.moves(x[name])
    listed = listed_values(feature)
    if listed is not None:
        moves = listed - x[name]
        _cross(core, {name: moves[(moves >= down - 1e-9) & (moves <= up + 1e-9)]}, most)
        return
    if not links:
        if core.size * (float(up) - float(down) + 1) > most:
            raise TooManyError
        _cross(core, {name: np.arange(float(down), float(up) + 1.0)}, most)
        return
    told = all(link.relation == "==" and link.on_exceed != "clip" for link in links)
    if told or part.split(name) == "guess":
        core.action[name] = _spread(core, np.broadcast_to(down, (core.size,)), np.broadcast_to(up, (core.size,)), most)
        least, high = induced(name, links, x, core.action)
        if told:
            core.change[name] = core.action[name] + least
        else:
            total = _spread(core, np.ceil(least - 1e-9), np.floor(high + 1e-9), most)
            core.change[name] = core.action[name] + total
            core.folded = True
            if links[0].on_exceed == "clip":
                floor, ceiling = (bound - x[name] for bound in feature.reach(x[name]))
                core.change[name] = np.clip(core.change[name], floor, ceiling)
        good = follows(feature, links, x, core.action, core.change)
        if not good.all():
            core.take(np.asarray(good))
        return
    low, high = change_interval(part, name, x, core.action, outside)
    low, high = np.broadcast_to(np.ceil(low - 1e-9), (core.size,)), np.broadcast_to(np.floor(high + 1e-9), (core.size,))
    core.change[name] = _spread(core, low, high, most)
    core.action[name] = np.zeros(core.size)


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
    for constraint in waiting:
        if all(name in core.change for name in constraint.scope):
            scope = constraint.scope
            good = constraint.mask(
                {n: np.asarray(x[n]) for n in scope}, {n: core.action[n] for n in scope}, {n: core.change[n] for n in scope}
            )
            if not good.all():
                core.take(np.asarray(np.broadcast_to(good, (core.size,))))
        else:
            later.append(constraint)
    for cut in cuts:
        if any(n in core.change for n in cut.terms) and not all(n in core.change for n in cut.terms):
            good = cut.possible(core)
            if not good.all():
                core.take(good)
    return later


@dataclass(frozen=True)
class _Cut:
    """A linear row over own moves, with the range that the features not yet taken can add."""

    terms: Mapping[str, float]
    spans: Mapping[str, tuple[float, float]]
    constant: float
    relation: str

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
            good &= low <= 1e-6
        if self.relation in (">=", ">", "=="):
            good &= high >= -1e-6
        return good


def _plain_row(constraint: Constraint, part: Part, x: Mapping[str, float]) -> _Cut | None:
    """The constraint as one linear row in the moves of features without linkages, if it is that."""
    if any(name in part.links for name in constraint.scope):
        return None
    formula = constraint.rows({name: x[name] for name in constraint.scope})
    if not isinstance(formula, Row) or formula.relation == "!=":
        return None
    terms: dict[str, float] = {}
    constant = float(np.asarray(formula.linear.const))
    for (layer, name), c in formula.linear.terms.items():
        terms[name] = terms.get(name, 0.0) + float(np.asarray(c))
        if layer == "value":
            constant += float(np.asarray(c)) * x[name]
    spans = {}
    for name in terms:
        low, high = part.by_name[name].moves(x[name])
        spans[name] = (float(low), float(high))
    return _Cut(terms, spans, constant, formula.relation)
