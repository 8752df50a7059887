"""A part whose configurations are listed or counted: drawn by one whole number each, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from budge.reach.core import Core, no_weight

__all__ = ["Counted", "Listed"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Counted:
    """A whole-numbered coordinate that is counted instead of listed: from `low`, `count` values, one pair a row.

    With `stairs` its action also opens that many values, and zero, to a linked target (relation ``<=``): then the sum
    over the coordinate is a quadratic, and a number is turned into a pair by its root.
    """

    name: str
    low: FloatArray
    count: IntArray
    stairs: tuple[str, int] | None = None  # the target, and how much an own action of one opens to it

    @cached_property
    def sizes(self) -> IntArray:
        """How many configurations it stands for, in each row."""
        return self.count if self.stairs is None else self._below(self.count, np.arange(len(self.count)))

    def keep(self, rows: npt.NDArray[np.bool_]) -> Counted:
        """Some rows of it."""
        return Counted(self.name, self.low[rows], self.count[rows], self.stairs)

    def at(self, rows: npt.NDArray[np.intp] | IntArray, number: IntArray) -> dict[str, FloatArray]:
        """What the coordinate adds to its lowest value, and the target's change, by number within the row."""
        if self.stairs is None:
            return {self.name: number.astype(float)}
        target, scale = self.stairs
        first, step = self._first[rows], abs(scale)
        half, linear = step / 2, 1 + step * (first - 0.5)
        place = np.floor((np.sqrt(linear**2 + 4 * half * number) - linear) / (2 * half)).astype(np.int64)
        place = np.clip(place, 0, self.count[rows] - 1)
        for _ in range(2):  # the root of a large number may be off by a little
            place -= self._below(place, rows) > number
            place += self._below(place + 1, rows) <= number
        opened = (number - self._below(place, rows)).astype(float)
        upwards = self.low[rows] >= 0
        moved = np.where(upwards, place, self.count[rows] - 1 - place).astype(float)  # towards zero and away from it
        return {self.name: moved, target: np.where(upwards, opened, -opened) * np.sign(scale)}

    @cached_property
    def _first(self) -> IntArray:
        """The least size of the action."""
        return np.where(self.low >= 0, self.low, -(self.low + self.count - 1)).astype(np.int64)

    def _below(self, steps: IntArray, rows: npt.NDArray[np.intp] | IntArray) -> IntArray:
        """Configurations on the first so many steps, from the least action on."""
        assert self.stairs is not None
        return np.asarray(steps + abs(self.stairs[1]) * (steps * self._first[rows] + steps * (steps - 1) // 2))


@dataclass(frozen=True)
class Listed:
    """Rows of changes, each standing for a number of configurations.

    Drawing picks a configuration uniformly by its number; with `weights`, in proportion to the weight of its row.
    """

    names: tuple[str, ...]
    changes: FloatArray  # (m, k); columns of counted coordinates hold their lowest value
    counted: tuple[Counted, ...] = ()
    weights: FloatArray | None = None  # (m,), of one configuration of each row, from feature distributions

    continuous = False
    exact = True
    acceptance = 1.0

    @classmethod
    def of(cls, names: tuple[str, ...], core: Core, counted: tuple[Counted, ...] = (), weights: FloatArray | None = None) -> Listed:
        """From a core and its counted coordinates; rows that stand for nothing are dropped."""
        lowest = {c.name: c.low for c in counted}
        changes = np.zeros((len(names), core.size))
        for j, name in enumerate(names):
            if name in lowest or name in core.change:
                changes[j] = lowest[name] if name in lowest else core.change[name]
        keep = np.ones(core.size, dtype=bool)
        for c in counted:
            keep &= c.count > 0
        if keep.all():
            return cls(names, changes.T, counted, weights)
        kept = tuple(c.keep(keep) for c in counted)
        return cls(names, changes[:, keep].T, kept, None if weights is None else weights[keep])

    @property
    def method(self) -> str:
        """How it is drawn."""
        return "count" if self.counted else "index"

    @cached_property
    def row_sizes(self) -> IntArray | None:
        """How many configurations each row stands for; None where each is one."""
        if not self.counted:
            return None
        sizes = self.counted[0].sizes
        for c in self.counted[1:]:
            sizes = sizes * c.sizes
        return sizes

    @cached_property
    def size(self) -> int:
        """Number of configurations."""
        return len(self.changes) if self.row_sizes is None else int(self.row_sizes.sum())

    @cached_property
    def _ends(self) -> FloatArray | IntArray:
        """Where the numbers (or the weight) of each row end."""
        if self.weights is None:
            assert self.row_sizes is not None
            return np.cumsum(self.row_sizes)
        ends = np.cumsum(self.weights if self.row_sizes is None else self.weights * self.row_sizes)
        if not (len(ends) and ends[-1] > 0):
            raise no_weight(self.names)
        return ends

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
        return self.weights is None and not self.counted

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """n changes, one row each."""
        rows, rest = self.numbers(rng, n)
        return self.at(rows, rest)

    def numbers(self, rng: np.random.Generator, n: int) -> tuple[IntArray, IntArray | None]:
        """n draws as row and number within the row."""
        if self.simple:
            return rng.integers(0, len(self.changes), n), None
        if self.weights is not None:
            last = int(np.flatnonzero(self.weights)[-1]) if self.weights.any() else 0
            rows = np.minimum(np.searchsorted(self._ends, rng.random(n) * self._ends[-1], side="right"), last)
            return rows, None if self.row_sizes is None else rng.integers(0, self.row_sizes[rows])
        assert self.row_sizes is not None
        number = rng.integers(0, self.size, n)
        rows = np.searchsorted(self._ends, number, side="right")
        return rows, np.asarray(number - (self._ends[rows] - self.row_sizes[rows]))

    def at(self, rows: npt.NDArray[np.intp] | IntArray, rest: IntArray | None) -> FloatArray:
        """The changes by row and number within the row."""
        result = self.changes[rows]
        if rest is None:
            return result
        for c in self.counted:
            count = c.sizes[rows]
            for name, more in c.at(rows, rest % count).items():
                result[:, self.names.index(name)] += more
            rest = np.asarray(rest // count)
        return result

    def expand(self) -> FloatArray:
        """Every change, once."""
        return self.changes if self.row_sizes is None else self.at(*self._all())

    def shares(self) -> FloatArray | None:
        """The probability of each change of `expand`, where they differ."""
        if self.weights is None:
            return None
        each = self.weights if self.row_sizes is None else self.weights[self._all()[0]]
        return np.asarray(each / self._ends[-1])

    def _all(self) -> tuple[npt.NDArray[np.intp], IntArray]:
        assert self.row_sizes is not None
        rows = np.repeat(np.arange(len(self.row_sizes)), self.row_sizes)
        return rows, np.arange(len(rows)) - np.repeat(np.cumsum(self.row_sizes) - self.row_sizes, self.row_sizes)
