"""What waits while configurations are listed: features, the constraints that read them, and rows that cut off what no completion can meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from budge.constraints import Constraint
from budge.reach.forms import forms_of
from budge.reach.starts import Starts

if TYPE_CHECKING:
    from budge.reach.core import Core

__all__ = ["Pending"]

FloatArray = npt.NDArray[np.float64]
FAR = 99  # features that a constraint still waits for from which on their number does not matter


class Pending:
    """Features to be taken one after the other, and what is applied as soon as enough of them are known."""

    def __init__(self, starts: Starts, left: set[str], waiting: Sequence[Constraint]) -> None:
        self._part, self._left, self._waiting = starts.part, left, waiting
        self._missing = [set(forms_of(starts.part).scope(c)) for c in waiting]
        self._cuts = [_Cut.of(c, starts) for c in waiting]
        self._of: dict[str, list[int]] = {}  # numbers of constraints, by feature
        for k, names in enumerate(self._missing):
            for name in names:
                self._of.setdefault(name, []).append(k)
        self._targets: dict[str, list[str]] = {}
        for name, links in starts.part.links.items():
            for link in links:
                self._targets.setdefault(link.source, []).append(name)
        self._queue: list[tuple[int, float, str]] = []
        for name in left:
            self._offer(name)

    def _offer(self, name: str) -> None:
        """Let a feature be taken once its sources are known: soonest the one that completes a constraint soonest, then by few values."""
        if name in self._left and not any(link.source in self._left for link in self._part.links.get(name, ())):
            soonest = min((len(self._missing[k]) for k in self._of.get(name, ())), default=FAR)
            low, high = self._part.by_name[name].range
            heappush(self._queue, (min(soonest, FAR), high - low, name))

    def next(self) -> str | None:
        """Return the feature to take next, if any is left."""
        while self._queue:
            name = heappop(self._queue)[2]
            if name in self._left:
                return name
        return None

    def settle(self, core: Core, names: Sequence[str]) -> None:
        """Apply every constraint whose features are all known with these, and cut what no completion can meet."""
        self._left.difference_update(names)
        touched = sorted({k for name in names for k in self._of.get(name, ())})
        near = {target for name in names for target in self._targets.get(name, ())}
        for k in touched:
            self._missing[k].difference_update(names)
            if not self._missing[k]:
                scope = forms_of(self._part).scope(self._waiting[k])
                x, action, change = ({n: columns[n] for n in scope} for columns in (core.x, core.action, core.change))
                core.keep(np.asarray(self._waiting[k].mask(x, action, change)))
            elif len(self._missing[k]) < FAR:
                near |= self._missing[k]
        for k in touched:
            cut = self._cuts[k]
            if cut is not None and self._missing[k]:
                core.keep(cut.possible(core))
        for name in near:
            self._offer(name)


@dataclass(frozen=True)
class _Cut:
    """A linear row over own moves, with the range that the features not yet taken can add."""

    terms: Mapping[str, float]
    constant: FloatArray  # of each person
    relation: str
    slack: FloatArray  # never cuts what the mask with its tolerance would let pass

    def possible(self, core: Core) -> npt.NDArray[np.bool_]:
        """Return which rows may still be completed."""
        least = most = self.constant  # of people: thousands of features that are not yet taken are added up once for all rows
        for name, c in self.terms.items():
            if name not in core.change:
                ends = c * core.starts.down[name], c * core.starts.up[name]
                least, most = least + np.minimum(*ends), most + np.maximum(*ends)
        low, high = core.each(least), core.each(most)
        for name, c in self.terms.items():
            if name in core.change:
                low, high = low + c * core.change[name], high + c * core.change[name]
        slack, good = core.each(self.slack), np.ones(core.size, dtype=bool)
        if self.relation in ("<=", "<", "=="):
            good &= low <= slack
        if self.relation in (">=", ">", "=="):
            good &= high >= -slack
        return good

    @classmethod
    def of(cls, constraint: Constraint, starts: Starts) -> _Cut | None:
        """Return the constraint as one linear row in the moves of features without linkages, if it is that."""
        forms = forms_of(starts.part)
        row, scope = forms.row(constraint), forms.scope(constraint)
        if row is None or row.relation == "!=" or scope & (starts.gone | starts.part.links.keys()):
            return None
        constant = np.full(len(starts), row.constant)
        size = np.abs(constant)
        terms: dict[str, float] = dict(row.moves)
        for name, c in row.values.items():
            terms[name] = terms.get(name, 0.0) + c
            constant = constant + c * starts.x[name]
            size = size + np.abs(c * starts.x[name])
        for name, c in terms.items():
            size = size + np.abs(c) * np.maximum(np.abs(starts.down[name]), np.abs(starts.up[name]))
        return cls(terms, constant, row.relation, 1e-6 + 1e-8 * size)
