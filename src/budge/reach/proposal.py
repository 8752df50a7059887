"""Importance sampling: draw more where a failure is likelier, and weigh each draw by p/q (paper: Using Side Information).

A proposal is a distribution for some features. It is restricted to what is feasible and normalised there, so that the
weights are exact wherever the part is counted. A feasible action that the proposal never draws is refused: no
weight could make up for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from budge.distributions import Distribution
from budge.errors import DesignError, nearest
from budge.reach.listed import Listed
from budge.reach.reacher import Plan, Reacher

if TYPE_CHECKING:
    from budge.interaction import InteractionModel

__all__ = ["Proposal", "Weigher"]

FloatArray = npt.NDArray[np.float64]
MOST = 2_000_000  # configurations of a part whose weights are held


@dataclass(frozen=True)
class Proposal:
    """A distribution for each of some features, all discrete and in counted parts."""

    model: InteractionModel
    densities: Mapping[str, Distribution]

    @classmethod
    def of(cls, model: InteractionModel, given: Mapping[str, Any]) -> Proposal:
        """From a mapping of feature → what a spec file says under ``distribution``."""
        densities = {}
        for name, spec in dict(given).items():
            if name not in model.by_name:
                raise DesignError("no such feature", where="proposal", got=name, remedy=nearest(name, model.by_name))
            feature = model.by_name[name]
            if not feature.discrete:
                raise DesignError("a proposal needs a feature that can be listed", where=f"proposal.{name}", got=feature.type)
            densities[name] = Distribution.from_spec(spec)
            DesignError.raise_if(densities[name].problems(feature.type, feature.levels, f"proposal.{name}"))
        return cls(model, densities)

    def applied(self, plan: Plan, maker: Reacher, row: FloatArray) -> tuple[Plan, Weigher]:
        """The plan that draws from the proposal, and the function that gives the weight p/q of each point."""
        parts = []
        factors: list[tuple[npt.NDArray[np.intp], Listed, FloatArray]] = []
        for part, where in zip(plan.parts, maker.columns):
            here = [name for name in part.names if name in self.densities]
            if not here:
                parts.append(part)
                continue
            if not isinstance(part, Listed):
                raise DesignError("exact weights need a part that is counted", where=f"part {', '.join(part.names)}", got=part.method)
            if part.size > MOST:
                raise DesignError(
                    "a proposal needs a part that can be listed", where=f"part {', '.join(part.names)}", got=f"{part.size:,} configurations"
                )
            listed = Listed(part.names, part.expand(), (), part.shares())
            p = np.full(len(listed.changes), 1.0 / len(listed.changes)) if listed.weights is None else listed.weights
            q = p.copy()
            for name in here:
                j = part.names.index(name)
                feature = self.model.by_name[name]
                q = q * self.densities[name].density(row[where[j]] + listed.changes[:, j], feature.levels)
            never = (q <= 0) & (p > 0)
            if never.any():
                lost = dict(zip(part.names, (row[where] + listed.changes[np.argmax(never)]).tolist()))
                raise DesignError(
                    "the proposal never draws a feasible action, which no weight can correct", where=f"part {', '.join(part.names)}", got=lost,
                    remedy="give every feasible value a positive weight",
                )  # fmt: skip
            q = q / q.sum()
            parts.append(replace(listed, weights=q))
            factors.append((where, listed, np.divide(p, q, out=np.zeros_like(p), where=q > 0)))
        return Plan(parts, maker.columns), Weigher(row, frozenset(e.feature for e in self.model.effects), tuple(factors))


@dataclass(frozen=True)
class Weigher:
    """The weight p/q of points, and the largest there can be."""

    row: FloatArray
    acted: frozenset[str]  # features on which an effect acts
    factors: tuple[tuple[npt.NDArray[np.intp], Listed, FloatArray], ...]

    @property
    def bound(self) -> float:
        """The largest weight."""
        return float(np.prod([ratio.max() for _, _, ratio in self.factors]))

    def __call__(self, points: FloatArray, effects: Mapping[str, FloatArray] | None = None) -> FloatArray:
        """One weight a point; the effects drawn on top of the actions are taken off first."""
        weights = np.ones(len(points))
        for where, listed, ratio in self.factors:
            moved = points[:, where] - self.row[where]
            for j, name in enumerate(listed.names):
                if name in self.acted:
                    assert effects is not None, "an effect acts on a feature of the proposal: it must be taken off"
                    moved[:, j] -= effects[name]
            moved[:, np.isnan(self.row[where])] = 0.0  # what is missing has not moved
            weights *= ratio[_places(listed.changes, moved)]
        return weights


def _places(table: FloatArray, rows: FloatArray) -> npt.NDArray[np.intp]:
    """Where each row stands in the table, up to rounding."""
    both = np.round(np.concatenate([table, rows]), 9) + 0.0
    _, number = np.unique(both, axis=0, return_inverse=True)
    number = np.ravel(number)
    place = np.empty(len(both), dtype=np.intp)
    place[number[: len(table)]] = np.arange(len(table))
    return place[number[len(table) :]]
