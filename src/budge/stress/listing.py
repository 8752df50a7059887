"""The distinct points of one person over all sets, written once into the table that the model is asked, and counted per set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.frames import Coding
from budge.origins import keep_origin
from budge.reach.reacher import Alone
from budge.stress.pool import Changes, Pool, listed_size

__all__ = ["Canvas", "IntArray", "Listing", "distinct", "plan_listing"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.intp]
Count = tuple[int, int, int, float, float]  # points, hits, unresolved, and the probability of the last two


@dataclass(frozen=True)
class Canvas:
    """Where points are written, a row each, in the very type of the caller's table where it has one type."""

    frame: pd.DataFrame
    coding: Coding
    spot: IntArray  # column of each feature
    starts: npt.NDArray[Any]  # (people, columns)
    plain: bool  # the canvas is the table itself

    @classmethod
    def of(cls, pool: Pool, frame: pd.DataFrame, values: FloatArray) -> Canvas:
        """The plainest canvas that does not change the caller's types."""
        base = pool.models[0]
        moving = frozenset().union(*(m.moving for m in pool.models))
        coding = Coding(base.features, moving)
        kinds = set(frame.dtypes)
        moved = [f for f in base.features if f.name in moving]
        if len(kinds) == 1 and (kind := kinds.pop()) in (np.dtype("int64"), np.dtype("float64")):
            fits = all(f.levels is None and (kind.kind == "f" or f.discrete) for f in moved)
            if fits and all(f.name in frame.columns for f in base.features):
                spot = np.array([frame.columns.get_loc(f.name) for f in base.features], dtype=np.intp)
                return cls(frame, coding, spot, np.ascontiguousarray(frame.to_numpy()), True)
        return cls(frame, coding, np.arange(len(base.features), dtype=np.intp), np.ascontiguousarray(values), False)

    def blank(self, points: int) -> npt.NDArray[Any]:
        """Room for so many points."""
        return np.empty((points, self.starts.shape[1]), dtype=self.starts.dtype)

    def table(self, filled: npt.NDArray[Any], people: Sequence[int], counts: Sequence[int]) -> pd.DataFrame:
        """The points as the model is asked about them."""
        if self.plain:
            return keep_origin(pd.DataFrame(filled, columns=self.frame.columns, copy=False), self.frame, but=self.coding.floats)
        rows = np.repeat(np.array(people, dtype=np.intp), counts)
        return self.coding.decode(filled, self.frame, rows)


@dataclass
class Listing:
    """The points of one person: those of the original set, then those that only relaxed sets have.

    The latter are, bundle by bundle, the product of its new changes with what the other parts can do.
    """

    pool: Pool
    person: int
    base: list[Alone]
    sizes: tuple[int, ...]
    bundles: list[tuple[int, Changes, IntArray | slice, int]] = field(default_factory=list)  # number, changes, which new, points
    sets: dict[int, IntArray] = field(default_factory=dict)  # listed sets of these, by their changes within their bundle
    points: int = 0

    def listed(self) -> set[int]:
        """The sets that are listed."""
        return {0, *self.sets}

    @property
    def size(self) -> int:
        """Number of original points."""
        return math.prod(self.sizes)

    def write(self, canvas: Canvas, out: npt.NDArray[Any]) -> None:
        """Fill the rows of `out` with the points."""
        start, spot, size = canvas.starts[self.person], canvas.spot, self.size
        shape = self.sizes[::-1]
        block = out[:size]
        block[:] = start
        grid = block.reshape(*shape, out.shape[1])
        for axis, (number, part) in enumerate(zip(self.pool.ids[0], self.base)):
            if part.only_stays:
                continue
            moves = part.listed[0]
            along = [1] * len(shape)
            along[len(shape) - 1 - axis] = len(moves)
            for column, j in enumerate(self.pool.parts[number][2]):
                if moves[:, column].any():
                    grid[..., spot[j]] = (start[spot[j]] + moves[:, column]).reshape(along)
        at = size
        for b, changes, chosen, points in self.bundles:
            rest = grid[self._corner(b)].reshape(-1, out.shape[1])
            new = changes.new[chosen]
            room = out[at : at + points].reshape(len(new), len(rest), out.shape[1])
            room[:] = rest
            for column, j in enumerate(self.pool.bundles[b].columns):
                room[:, :, spot[j]] = (start[spot[j]] + new[:, column])[:, None]
            at += points

    def _corner(self, b: int) -> tuple[Any, ...]:
        """The original points whose parts of the bundle are at their first configuration: all that the other parts can do."""
        inside = self.pool.bundles[b].base_parts
        return tuple(0 if number in inside else slice(None) for number in self.pool.ids[0])[::-1]

    def count(self, hit: BoolArray, good: BoolArray) -> dict[int, Count]:
        """Count points, hits and unresolved answers of every listed set, and the shares of its probability that these two hold."""
        hits = self._sums(hit)
        lost = self._sums(~good) if not good.all() else {s: (n, 0, 0.0) for s, (n, _, _) in hits.items()}
        return {s: (n, k, lost[s][1], mass, lost[s][2]) for s, (n, k, mass) in hits.items()}

    def ways(self, hit: BoolArray, freed: Sequence[IntArray]) -> dict[int, FloatArray]:
        """Return, for every listed set with a hit outside the original one, the distinct values of these hits in the columns of `freed`."""
        found, at, start = {}, self.size, self.pool.values[self.person]
        for b, changes, which, points in self.bundles:
            bundle, rest = self.pool.bundles[b], slice(at, at + points)
            at += points
            if not hit[rest].any():
                continue
            sums = self._by_change(hit, b, changes, which, rest, self.size)
            for s in bundle.sets:
                good = self.sets[s][sums[self.sets[s]] > 0] - changes.base if s in self.sets else np.zeros(0, dtype=np.intp)
                good = good[good >= 0]
                if len(good):
                    spot = np.searchsorted(bundle.columns, freed[s])
                    found[s] = distinct(start[freed[s]] + changes.new[good][:, spot])
        return found

    def _sums(self, values: BoolArray) -> dict[int, tuple[int, int, float]]:
        """Return, for every listed set, its points, how many of them are marked, and the probability of these."""
        size, weigh = self.size, self._weights()
        total = int(values[:size].sum())
        found = {0: (size, total, total / size if weigh is None else float(values[:size] @ self._spread(weigh, ())))}
        at = size
        for b, changes, which, points in self.bundles:
            rest = slice(at, at + points)
            each = size // max(changes.base, 1)
            counted = self._by_change(values, b, changes, which, rest, size)
            weighed = counted / each if weigh is None else self._by_change(values, b, changes, which, rest, size, weigh)
            for k, s in enumerate(self.pool.bundles[b].sets):
                if s in self.sets:
                    chosen, shares = self.sets[s], changes.shares[k]
                    total = int(counted[chosen].sum())
                    if weigh is None and shares is None:
                        share = total / (each * len(chosen))
                    else:
                        share = float((weighed[chosen] * (1.0 / len(chosen) if shares is None else shares)).sum())
                    found[s] = (each * len(chosen), total, share)
            at += points
        return found

    def _by_change(
        self, values: npt.NDArray[Any], b: int, changes: Changes, which: IntArray | slice, rest: slice, size: int,
        weigh: list[FloatArray] | None = None,
    ) -> npt.NDArray[Any]:  # fmt: skip
        """Sums over everything outside the bundle, one for each of its changes."""
        inside = set(self.pool.bundles[b].base_parts)
        outer = tuple(len(self.sizes) - 1 - axis for axis, number in enumerate(self.pool.ids[0]) if number not in inside)
        old, fresh = values[:size].reshape(self.sizes[::-1]), values[rest]
        sums = np.zeros(changes.base + len(changes.new), dtype=float if weigh is not None else np.int64)
        if weigh is not None:
            mass = self._spread(weigh, tuple(inside)).reshape(self.sizes[::-1])
            corner = mass[self._corner(b)].ravel()
            old, fresh = old * mass, fresh.reshape(-1, len(corner)) * corner
        sums[: changes.base] = old.sum(axis=outer).ravel()
        chosen = sums[changes.base :][which]
        if len(chosen):
            sums[changes.base :][which] = fresh.reshape(len(chosen), -1).sum(axis=1)
        return sums

    def _weights(self) -> list[FloatArray] | None:
        shares = [part.listed[1] for part in self.base]
        if all(found is None for found in shares):
            return None
        return [np.full(size, 1.0 / size) if found is None else found for found, size in zip(shares, self.sizes)]

    def _spread(self, each: Sequence[FloatArray], without: Sequence[int]) -> FloatArray:
        """The probability of each original point; parts in `without` count for one."""
        mass = np.ones(self.sizes[::-1])
        for axis, (number, shares) in enumerate(zip(self.pool.ids[0], each)):
            if number not in without:
                along = [1] * len(self.sizes)
                along[len(self.sizes) - 1 - axis] = len(shares)
                mass = mass * shares.reshape(along)
        return mass.ravel()


def distinct(rows: FloatArray) -> FloatArray:
    """Return the distinct rows."""
    if rows.shape[1] == 1:
        return np.unique(rows[:, 0])[:, None]
    keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    return np.asarray(rows[np.unique(keys, return_index=True)[1]])


def plan_listing(pool: Pool, person: int, every: Sequence[Changes], able: Sequence[bool]) -> Listing | None:
    """Which sets of this person are listed, and their distinct points; None where the original set is not.

    `every` holds the changes of each bundle; `able` says which sets have nothing endless in them besides what is prepared.
    """
    base = [pool.prepared(number, person) for number in pool.ids[0]]
    size = listed_size(base)
    if not able[0] or size is None or size > pool.limit or size == 0:
        return None
    found = Listing(pool, person, base, tuple(int(p.size or 0) for p in base), points=size)
    for b, (bundle, changes) in enumerate(zip(pool.bundles, every)):
        each = size // max(changes.base, 1)
        able_here = [
            able[s] and not empty and each * count <= pool.limit
            for s, empty, count in zip(bundle.sets, changes.empty, changes.sizes)
        ]
        listed = [(s, m) for s, m, fine in zip(bundle.sets, changes.members, able_here) if m is not None and fine]
        if not listed:
            continue
        found.sets |= dict(listed)
        which: IntArray | slice = slice(None)
        many = len(changes.new)
        if len(listed) < len(bundle.sets):
            used = np.unique(np.concatenate([m for _, m in listed])) - changes.base
            which = used[used >= 0]
            many = len(which)
        found.bundles.append((b, changes, which, each * many))
        found.points += each * many
    return found
