"""A part whose configurations are listed or counted: drawn by one whole number each, exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from budge.reach.core import Core

__all__ = ["Counted", "Listed"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Counted:
    """A whole-numbered coordinate that is counted instead of listed: from `low`, `count` values, one pair a row."""

    name: str
    low: FloatArray
    count: IntArray


@dataclass(frozen=True)
class Listed:
    """Rows of changes, each standing for a number of configurations.

    Drawing picks a configuration uniformly by its number; with `weights`, a row in proportion to them.
    """

    names: tuple[str, ...]
    changes: FloatArray  # (m, k); columns of counted coordinates hold their lowest value
    counted: tuple[Counted, ...] = ()
    weights: FloatArray | None = None  # (m,), from feature distributions
    method: str = "index"
    diagnostics: Mapping[str, object] | None = None

    continuous = False
    exact = True
    acceptance = 1.0

    @classmethod
    def of(cls, names: tuple[str, ...], core: Core, counted: tuple[Counted, ...] = (), weights: FloatArray | None = None) -> Listed:
        """From a core and its counted coordinates; rows that stand for nothing are dropped."""
        columns = []
        for name in names:
            found = next((c.low for c in counted if c.name == name), None)
            columns.append(core.change[name] if found is None else np.broadcast_to(found, (core.size,)))
        changes = np.stack(columns, axis=1) if columns else np.zeros((core.size, 0))
        keep = np.ones(core.size, dtype=bool)
        for c in counted:
            keep &= c.count > 0
        if weights is not None:
            keep &= weights > 0
            weights = weights[keep]
        kept = tuple(Counted(c.name, np.broadcast_to(c.low, (core.size,))[keep], c.count[keep]) for c in counted)
        return cls(names, changes[keep], kept, weights, "count" if counted else "index")

    @cached_property
    def row_sizes(self) -> IntArray | None:
        """How many configurations each row stands for; None where each is one."""
        if not self.counted:
            return None
        sizes = np.ones(len(self.changes), dtype=object)
        for c in self.counted:
            sizes = sizes * c.count.astype(object)
        return sizes

    @cached_property
    def size(self) -> int:
        """Number of configurations."""
        return len(self.changes) if self.row_sizes is None else int(sum(self.row_sizes))

    @cached_property
    def _ends(self) -> IntArray:
        assert self.row_sizes is not None
        return np.cumsum(self.row_sizes.astype(np.int64))

    @property
    def empty(self) -> bool:
        """Whether nothing is feasible."""
        return self.size == 0

    @cached_property
    def only_stays(self) -> bool:
        """Whether the only feasible change is none."""
        return self.size == 1 and not self.changes.any()

    @property
    def simple(self) -> bool:
        """Whether one row is one configuration, all equally likely."""
        return self.row_sizes is None and self.weights is None

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """n changes, one row each."""
        if self.weights is not None:
            share = np.cumsum(self.weights)
            rows = np.minimum(np.searchsorted(share, rng.random(n) * share[-1], side="right"), len(share) - 1)
            rest = np.zeros(n, dtype=np.int64)
        elif self.row_sizes is None:
            return self.changes[rng.integers(0, len(self.changes), n)]
        else:
            number = rng.integers(0, self.size, n)
            rows = np.searchsorted(self._ends, number, side="right")
            rest = number - (self._ends[rows] - self.row_sizes[rows].astype(np.int64))
        return self._at(rows, rest)

    def _at(self, rows: npt.NDArray[np.intp], rest: IntArray) -> FloatArray:
        result = self.changes[rows]
        for c in self.counted:
            result[:, self.names.index(c.name)] += rest % c.count[rows]
            rest = rest // c.count[rows]
        return result

    def expand(self) -> FloatArray:
        """Every change, once."""
        if self.row_sizes is None:
            return self.changes
        sizes = self.row_sizes.astype(np.int64)
        rows = np.repeat(np.arange(len(sizes)), sizes)
        return self._at(rows, np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes))

    def shares(self) -> FloatArray | None:
        """The probability of each change of `expand`, where they differ."""
        return None if self.weights is None else self.weights / self.weights.sum()
