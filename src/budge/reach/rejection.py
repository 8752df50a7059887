"""A part with too many configurations to list: proposed from its box, accepted by the definition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from budge.errors import DrawError
from budge.parts import Part
from budge.reach.core import change_interval

__all__ = ["Rejection"]

FloatArray = npt.NDArray[np.float64]
BUDGET = 20_000_000
BATCH = 65_536


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
        if measure == "configuration" and any(f.type == "real" and (f.name in part.links or np.ptp(f.moves(x[f.name])) > 0) for f in part.features):
            raise DrawError(
                "has too many configurations to list beside its continuous features",
                where=f"part {', '.join(part.names)}",
                remedy="narrow the bounds of its whole-numbered features, or declare measure: volume",
            )
        lists = []
        taken: set[str] = set()
        for constraint in part.constraints:
            if taken & set(constraint.scope) or any(n in part.links for n in constraint.scope):
                continue
            listed = constraint.configurations({n: x[n] for n in constraint.scope})
            if listed is not None:
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

    @property
    def acceptance(self) -> float:
        """Share of proposals accepted so far."""
        return self.counters["accepted"] / self.counters["proposed"] if self.counters["proposed"] else 1.0

    @property
    def diagnostics(self) -> dict[str, object]:
        """What a reader should know of how it was drawn."""
        return {"acceptance": self.acceptance}

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """n changes, one row each."""
        found: list[FloatArray] = []
        have = spent = 0
        while have < n:
            if spent >= BUDGET:
                raise DrawError(
                    f"{have} of {n} draws were accepted within {BUDGET:,} proposals (acceptance {self.acceptance:.2g})",
                    where=f"part {', '.join(self.names)}",
                    remedy="narrow the bounds of its features; budge check tells whether it is empty",
                )
            change = self._propose(rng, BATCH)
            good = self.part.feasible(self.x, change)
            spent += BATCH
            rows = np.stack([change[name] for name in self.names], axis=1)[good]
            found.append(rows)
            have += len(rows)
            self.counters["proposed"] += BATCH
            self.counters["accepted"] += len(rows)
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
            if links and all(link.relation == "==" and link.on_exceed != "clip" for link in links):
                low, high = feature.moves(self.x[name])
                own = self._between(rng, low, high, n, feature.discrete)
                action = self.part.own_actions(self.x, {**change, **{m: np.zeros(n) for m in self.names if m not in change}}, dict.fromkeys(self.names, 0.0))
                change[name] = own + sum(float(link.targets[name]) * action[link.source] for link in links)
            else:
                low, high = change_interval(self.part, name, self.x, {}, self.names)
                change[name] = self._between(rng, low, high, n, feature.discrete)
        return {name: change[name] for name in self.names}

    @staticmethod
    def _between(rng: np.random.Generator, low: FloatArray, high: FloatArray, n: int, whole: bool) -> FloatArray:
        if whole:
            return rng.integers(int(np.ceil(low - 1e-9)), int(np.floor(high + 1e-9)) + 1, n).astype(float)
        return np.asarray(float(low) + (float(high) - float(low)) * rng.random(n))
