"""Importance sampling: draw more where a failure is likelier, and weigh each draw by p/q (paper: Using Side Information).

A proposal is a distribution for some features. It is restricted to what is feasible and normalised there, so that the
weights are exact wherever the part is counted. A feasible action that the proposal never draws is refused: no
weight could make up for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from budge.distributions import Distribution
from budge.errors import DesignError, nearest
from budge.reach.piece import Piece
from budge.reach.reacher import Block, PartBlock

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

    def applied(self, block: Block) -> tuple[Block, Weigher]:
        """Return the block of one person that draws from the proposal, and the function that gives the weight p/q of each point."""
        row, parts = block.rows[0], []
        factors: list[tuple[npt.NDArray[np.intp], tuple[str, ...], FloatArray, FloatArray]] = []
        for part in block.parts:
            names = part.part.names
            here = [name for name in names if name in self.densities]
            if not here:
                parts.append(part)
                continue
            alone, label = part.of_person(0), f"part {', '.join(names)}"
            if alone.endless or alone.size is None:
                raise DesignError("exact weights need a part that is counted", where=label, got=alone.piece.method)
            if alone.size > MOST:
                raise DesignError("a proposal needs a part that can be listed", where=label, got=f"{alone.size:,} configurations")
            changes, shares = alone.listed
            p = np.full(len(changes), 1.0 / len(changes)) if shares is None else shares
            q = p.copy()
            for name in here:
                j = names.index(name)
                q = q * self.densities[name].density(row[part.columns[j]] + changes[:, j], self.model.by_name[name].levels)
            never = (q <= 0) & (p > 0)
            if never.any():
                lost = dict(zip(names, (row[part.columns] + changes[np.argmax(never)]).tolist()))
                raise DesignError(
                    "the proposal never draws a feasible action, which no weight can correct", where=label, got=lost,
                    remedy="give every feasible value a positive weight",
                )  # fmt: skip
            q = q / q.sum()
            drawn = Piece(names, 1, np.zeros(len(changes), dtype=np.intp), dict(zip(names, changes.T)), weights=q)
            parts.append(PartBlock(part.part, part.columns, np.zeros(1, dtype=np.intp), np.zeros(1, dtype=np.intp), (drawn,)))
            factors.append((part.columns, names, changes, np.divide(p, q, out=np.zeros_like(p), where=q > 0)))
        return Block(block.maker, block.rows, tuple(parts)), Weigher(row, frozenset(e.feature for e in self.model.effects), tuple(factors))


@dataclass(frozen=True)
class Weigher:
    """The weight p/q of points, and the largest there can be."""

    row: FloatArray
    acted: frozenset[str]  # features on which an effect acts
    factors: tuple[tuple[npt.NDArray[np.intp], tuple[str, ...], FloatArray, FloatArray], ...]  # columns, names, changes, p/q

    @property
    def bound(self) -> float:
        """The largest weight."""
        return float(np.prod([ratio.max() for *_, ratio in self.factors]))

    def __call__(self, points: FloatArray, effects: Mapping[str, FloatArray] | None = None) -> FloatArray:
        """One weight a point; the effects drawn on top of the actions are taken off first."""
        weights = np.ones(len(points))
        for where, names, changes, ratio in self.factors:
            moved = points[:, where] - self.row[where]
            for j, name in enumerate(names):
                if name in self.acted:
                    assert effects is not None, "an effect acts on a feature of the proposal: it must be taken off"
                    moved[:, j] -= effects[name]
            moved[:, np.isnan(self.row[where])] = 0.0  # what is missing has not moved
            weights *= ratio[_places(changes, moved)]
        return weights


def _places(table: FloatArray, rows: FloatArray) -> npt.NDArray[np.intp]:
    """Where each row stands in the table, up to rounding."""
    both = np.round(np.concatenate([table, rows]), 9) + 0.0
    _, number = np.unique(both, axis=0, return_inverse=True)
    number = np.ravel(number)
    place = np.empty(len(both), dtype=np.intp)
    place[number[: len(table)]] = np.arange(len(table))
    return place[number[len(table) :]]
