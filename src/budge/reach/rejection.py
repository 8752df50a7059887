"""A part of one person that can be neither listed nor counted: proposed from its box, accepted by the definition."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from budge.constraints.links import induced
from budge.errors import DrawError
from budge.parts import Part
from budge.reach.accept import first_accepted, words_from
from budge.reach.core import Core, change_interval, listed_values, supported_values
from budge.reach.fibres import not_positive
from budge.reach.starts import Starts
from budge.reach.streams import Stream, WordArray, region_of, unit

__all__ = ["BUDGET", "Rejection"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
BUDGET = 20_000_000


@dataclass(frozen=True)
class Rejection:
    """Exactly uniform, within a budget of proposals."""

    part: Part
    x: Mapping[str, float]
    lists: tuple[tuple[tuple[str, ...], FloatArray], ...]  # groups whose joint moves are listed
    counters: dict[str, int] = field(default_factory=lambda: {"proposed": 0, "accepted": 0})

    method = "rejection"
    exact = True
    size = None
    empty = False  # not known to be: it says so when nothing is found
    only_stays = False

    @classmethod
    def of(cls, part: Part, x: Mapping[str, float], measure: str) -> Rejection:
        """Groups that a constraint lists are proposed from the list; equal configurations need a part without real ones."""
        moving = [f for f in part.features if f.type == "real" and listed_values(f) is None]
        if measure == "configuration" and any(f.name in part.links or np.ptp(f.moves(x[f.name])) > 0 for f in moving):
            raise DrawError(
                "has too many configurations to list beside its continuous features",
                where=f"part {', '.join(part.names)}",
                remedy="narrow the bounds of its whole-numbered features, or declare measure: volume",
            )
        lists: list[tuple[tuple[str, ...], FloatArray]] = []
        taken: set[str] = set()
        for f in part.features:
            endless = np.isinf(f.moves(x[f.name])).any()
            values = supported_values(f) if endless and f.discrete else listed_values(f)
            if endless and f.name in part.links:
                raise DrawError("a linkage's target needs bounds to be drawn by rejection", where=f"feature {f.name}", remedy="give it bounds")
            if values is not None and not np.isnan(x[f.name]):
                lists.append(((f.name,), (values - x[f.name])[:, None]))
                taken.add(f.name)
        for constraint in part.constraints:
            if taken & set(constraint.scope) or any(n in part.links or np.isnan(x[n]) for n in constraint.scope):
                continue
            listed = constraint.configurations({n: x[n] for n in constraint.scope})
            if listed is not None and len(listed.values):
                lists.append((listed.names, listed.values - np.array([x[n] for n in listed.names])))
                taken |= set(listed.names)
        return cls(part, dict(x), tuple(lists))

    @property
    def names(self) -> tuple[str, ...]:
        """The part's features."""
        return self.part.names

    @property
    def acceptance(self) -> float:
        """Share of proposals accepted so far."""
        return self.counters["accepted"] / self.counters["proposed"] if self.counters["proposed"] else 1.0

    @property
    def most(self) -> int:
        """The size of the box from which is proposed: no more configurations than this."""
        listed = {name for names, _ in self.lists for name in names}
        free = [self._open[name] for name in self.names if name not in listed and self.part.by_name[name].discrete]
        return math.prod(max(1, math.floor(high + 1e-9) - math.ceil(low - 1e-9) + 1) for low, high in free) * math.prod(len(moves) for _, moves in self.lists)

    @cached_property
    def _open(self) -> dict[str, tuple[float, float]]:
        """The lowest and the highest change of each feature."""
        core = Core(Starts.of(self.part, {name: np.array([value]) for name, value in self.x.items()}), np.arange(1))
        return {name: (float(low[0]), float(high[0])) for name in self.names for low, high in [change_interval(core, name, self.names)]}

    def draw(self, stream: Stream, first: int, n: int) -> FloatArray:
        """Return draws `first` to `first + n - 1` of the person whose stream it is: changes, one row each."""
        words = words_from(stream, region=region_of("rejection", *sorted(self.names)))
        width = len(self.lists) + 2 * len(self.names)

        def propose(_: IntArray, some: WordArray) -> tuple[FloatArray, BoolArray]:
            u = unit(some)
            change = self._proposed(u)
            good = self._thinned(u[:, -len(self.names) :], change) & self.part.feasible(self.x, change)
            return np.stack([change[name] for name in self.names], axis=1), good

        made = first_accepted(np.arange(first, first + n), words, width, propose, len(self.names), total=BUDGET)
        self.counters["proposed"] += made.proposed
        self.counters["accepted"] += made.accepted
        if not made.found.all():
            raise DrawError(
                f"{int(made.found.sum())} of {n} draws were accepted within {made.proposed:,} proposals (acceptance {made.accepted / made.proposed:.2g})",
                where=f"part {', '.join(self.names)}",
                remedy="narrow the bounds of its features; budge check tells whether it is empty",
            )
        return made.points

    def _proposed(self, u: FloatArray) -> dict[str, FloatArray]:
        change: dict[str, FloatArray] = {}
        for i, (names, moves) in enumerate(self.lists):
            rows = moves[np.minimum((u[:, i] * len(moves)).astype(np.intp), len(moves) - 1)]
            change |= {name: rows[:, j] for j, name in enumerate(names)}
        for i, name in enumerate(self.part.order, start=len(self.lists)):
            if name in change:
                continue
            feature, links = self.part.by_name[name], self.part.links.get(name, ())
            if links and all(link.relation == "==" and link.on_exceed != "clip" and self.part.split(link.source) != "guess" for link in links):
                low, high = feature.moves(self.x[name])
                own = _between(u[:, i], float(low), float(high), feature.discrete)
                others = {m: np.zeros(len(u)) for m in self.names if m not in change}
                action = self.part.own_actions(self.x, {**change, **others}, dict.fromkeys(self.names, 0.0))
                change[name] = own + induced(name, links, {m: np.asarray(value) for m, value in self.x.items()}, action)[0]
            else:
                change[name] = _between(u[:, i], *self._open[name], feature.discrete)
        return {name: change[name] for name in self.names}

    def _thinned(self, u: FloatArray, change: Mapping[str, FloatArray]) -> BoolArray:
        """Accept in proportion to the features' distributions."""
        good = np.ones(len(u), dtype=bool)
        for i, f in enumerate(self.part.features):
            law = f.distribution
            if law is None or law.kind == "uniform" or np.isnan(self.x[f.name]):
                continue
            if law.kind == "log":
                least = self.x[f.name] + self._open[f.name][0]
                if least <= 0:
                    raise not_positive(f.name, least)
                most = float(law.density(least, f.levels))
            else:
                most = float(law.table(f.levels)[1].max())
            good &= u[:, i] * most < law.density(self.x[f.name] + change[f.name], f.levels)
        return good


def _between(u: FloatArray, low: float, high: float, whole: bool) -> FloatArray:
    if whole:
        least, most = np.ceil(low - 1e-9), np.floor(high + 1e-9)
        return np.asarray(np.minimum(least + np.floor(u * (most - least + 1)), most))
    return low + (high - low) * u
