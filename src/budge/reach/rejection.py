"""A part with too many configurations to list: proposed from its box, accepted by the definition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from budge.constraints.links import induced
from budge.errors import DrawError
from budge.parts import Part
from budge.reach.core import change_interval, listed_values, supported_values
from budge.reach.shapes import not_positive

__all__ = ["Rejection"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
BUDGET = 20_000_000
FIRST, LARGEST = 4096, 262_144  # proposals in the first batch, and in any


@dataclass(frozen=True)
class Rejection:
    """Exactly uniform, one vectorised batch after the other, within a budget."""

    part: Part
    x: Mapping[str, float]
    lists: tuple[tuple[tuple[str, ...], FloatArray], ...]  # groups whose joint moves are listed
    counters: dict[str, int] = field(default_factory=lambda: {"proposed": 0, "accepted": 0})

    method = "rejection"
    exact = True
    size = None
    empty = False  # not known to be: it says so when nothing is found
    only_stays = False
    measures_differ = False

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
    def continuous(self) -> bool:
        """Whether it has real coordinates."""
        return any(f.type == "real" for f in self.part.features)

    @cached_property
    def most(self) -> int:
        """The size of the box from which is proposed: no more configurations than this."""
        product = 1
        for name in self.names:
            if not any(name in names for names, _ in self.lists):
                low, high = change_interval(self.part, name, self.x, {}, self.names)
                product *= max(1, int(np.floor(high + 1e-9) - np.ceil(low - 1e-9)) + 1)
        for _, moves in self.lists:
            product *= len(moves)
        return product

    @property
    def acceptance(self) -> float:
        """Share of proposals accepted so far."""
        return self.counters["accepted"] / self.counters["proposed"] if self.counters["proposed"] else 1.0

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """n changes, one row each."""
        found: list[FloatArray] = []
        have = spent = 0
        batch = FIRST
        while have < n:
            if spent >= BUDGET:
                raise DrawError(
                    f"{have} of {n} draws were accepted within {BUDGET:,} proposals (acceptance {have / spent:.2g})",
                    where=f"part {', '.join(self.names)}",
                    remedy="narrow the bounds of its features; budge check tells whether it is empty",
                )
            change = self._propose(rng, batch)
            good = self._thinned(rng, change) & self.part.feasible(self.x, change)
            rows = np.stack([change[name] for name in self.names], axis=1)[good]
            found.append(rows)
            have, spent = have + len(rows), spent + batch
            self.counters["proposed"] += batch
            self.counters["accepted"] += len(rows)
            batch = int(np.clip(1.2 * (n - have) * spent / max(have, 1) + 64, FIRST, LARGEST))
        return np.concatenate(found)[:n]

    def _propose(self, rng: np.random.Generator, n: int) -> dict[str, FloatArray]:
        change: dict[str, FloatArray] = {}
        for names, moves in self.lists:
            rows = moves[rng.integers(0, len(moves), n)]
            change |= {name: rows[:, i] for i, name in enumerate(names)}
        for name in self.part.order:
            if name in change:
                continue
            feature, links = self.part.by_name[name], self.part.links.get(name, ())
            if links and all(link.relation == "==" and link.on_exceed != "clip" and self.part.split(link.source) != "guess" for link in links):
                low, high = feature.moves(self.x[name])
                own = self._between(rng, low, high, n, feature.discrete)
                others = {m: np.zeros(n) for m in self.names if m not in change}
                action = self.part.own_actions(self.x, {**change, **others}, dict.fromkeys(self.names, 0.0))
                change[name] = own + induced(name, links, {m: np.asarray(value) for m, value in self.x.items()}, action)[0]
            else:
                low, high = change_interval(self.part, name, self.x, {}, self.names)
                change[name] = self._between(rng, low, high, n, feature.discrete)
        return {name: change[name] for name in self.names}

    def _thinned(self, rng: np.random.Generator, change: Mapping[str, FloatArray]) -> BoolArray:
        """Accept in proportion to the features' distributions."""
        good = np.ones(len(next(iter(change.values()))), dtype=bool)
        for f in self.part.features:
            law = f.distribution
            if law is None or law.kind == "uniform" or np.isnan(self.x[f.name]):
                continue
            if law.kind == "log":
                low, _ = change_interval(self.part, f.name, self.x, {}, self.names)
                least = self.x[f.name] + float(low)
                if least <= 0:
                    raise not_positive(f.name, least)
                most = float(law.density(least, f.levels))
            else:
                most = float(law.table(f.levels)[1].max())
            good &= rng.random(len(good)) * most < law.density(self.x[f.name] + change[f.name], f.levels)
        return good

    @staticmethod
    def _between(rng: np.random.Generator, low: FloatArray, high: FloatArray, n: int, whole: bool) -> FloatArray:
        if whole:
            return rng.integers(int(np.ceil(low - 1e-9)), int(np.floor(high + 1e-9)) + 1, n).astype(float)
        return np.asarray(float(low) + (float(high) - float(low)) * rng.random(n))
