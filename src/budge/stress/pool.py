"""Several interaction models over the same people: a part that they share is prepared once, and a point that they share is one.

A relaxation changes a few parts and leaves the rest. So its reachable points are the product of the unchanged parts with a
list of joint changes of the changed ones, and so are the original points. Relaxations whose changed parts overlap form a
*bundle*. Two points of different bundles that are not reachable originally differ; within a bundle it is enough to compare
the short lists. Distinct points are thus known without looking at points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from budge.interaction import InteractionModel
from budge.parts import Part
from budge.reach.reacher import Alone, PartBlock, reacher

__all__ = ["Bundle", "Changes", "Pool", "listed_size"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
AT_ONCE = 1024  # people whose parts are prepared together


@dataclass(frozen=True)
class Bundle:
    """Sets whose changed parts overlap, and the columns and original parts that these cover."""

    sets: tuple[int, ...]
    columns: IntArray
    base_parts: tuple[int, ...]  # numbers of the original's parts, in its order
    parts: tuple[tuple[int, ...], ...]  # for each set, the numbers of its parts within the columns


@dataclass(frozen=True)
class Changes:
    """The joint changes within a bundle from one start: the original's first, then those that only relaxed sets have."""

    base: int
    new: FloatArray  # (changes, columns)
    members: tuple[IntArray | None, ...]  # for each set, which changes it allows; None where they are too many or endless
    shares: tuple[FloatArray | None, ...]  # their probabilities where these differ
    sizes: FloatArray  # of each set within the bundle; NaN where not known
    base_size: float
    empty: tuple[bool, ...]
    stays: tuple[bool, ...]


class Pool:
    """The original interaction model (first) and others, with everything that they share."""

    def __init__(self, models: Sequence[InteractionModel], limit: int, values: FloatArray) -> None:
        self.models = tuple(models)
        self.values = values
        self.limit = limit
        self.makers = [reacher(m) for m in models]
        self.names = self.makers[0].names
        self.parts: list[tuple[Part, str, IntArray]] = []
        self._found: dict[tuple[str, tuple[str, ...]], list[int]] = {}
        self.ids = [[self._number(part, m.measure) for part in maker.parts] for m, maker in zip(models, self.makers)]
        whole = [[self._number(part, m.measure) for part in m.parts] for m in models]
        self._from = -1  # the first of the people whose parts are held
        self._blocks: dict[int, PartBlock] = {}
        self._changes: dict[tuple[int, bytes], Changes] = {}
        self.bundles = self._bundles(whole)
        self.order = np.array([s for bundle in self.bundles for s in bundle.sets], dtype=np.intp)  # sets, bundle by bundle
        self.owner = np.array([b for b, bundle in enumerate(self.bundles) for _ in bundle.sets], dtype=np.intp)

    def _number(self, part: Part, measure: str) -> int:
        alike = self._found.setdefault((measure, part.names), [])
        for known in alike:
            if self.parts[known][0] == part:
                return known
        place = {name: j for j, name in enumerate(self.names)}
        self.parts.append((part, measure, np.array([place[n] for n in part.names], dtype=np.intp)))
        alike.append(len(self.parts) - 1)
        return alike[-1]

    def _bundles(self, whole: Sequence[Sequence[int]]) -> list[Bundle]:
        base = set(whole[0])
        groups: list[tuple[set[int], set[int]]] = []  # (sets, original parts)
        for s in range(1, len(self.models)):
            sets, touched = {s}, base - set(whole[s])
            for other in [g for g in groups if g[1] & touched]:
                groups.remove(other)
                sets, touched = sets | other[0], touched | other[1]
            groups.append((sets, touched))
        bundles = []
        for sets, touched in groups:
            cells = {int(j) for p in touched for j in self.parts[p][2]}
            order = tuple(sorted(sets))
            inside = tuple(tuple(p for p in self.ids[s] if int(self.parts[p][2][0]) in cells) for s in order)
            bundles.append(
                Bundle(order, np.array(sorted(cells), dtype=np.intp), tuple(p for p in self.ids[0] if p in touched), inside)
            )
        return bundles

    # -- one person -----------------------------------------------------------------------------------------------------

    def prepared(self, number: int, person: int) -> Alone:
        """A part at the start of a person."""
        begin = person - person % AT_ONCE
        if begin != self._from:
            self._from = begin
            self._blocks.clear()
            self._changes.clear()
        found = self._blocks.get(number)
        if found is None:
            part, measure, columns = self.parts[number]
            found = self._blocks[number] = PartBlock.of(part, columns, self.values[begin : begin + AT_ONCE], columns, measure)
        return found.of_person(person - begin)

    def changes(self, b: int, person: int) -> Changes:
        """What bundle b allows from where a person stands, shared by all who stand alike there."""
        bundle = self.bundles[b]
        key = (b, self.values[person, bundle.columns].tobytes())
        found = self._changes.get(key) if person - person % AT_ONCE == self._from else None
        if found is None:
            found = self._list(bundle, person)
            self._changes[key] = found
        return found

    def _list(self, bundle: Bundle, person: int) -> Changes:
        several = [bundle.base_parts, *bundle.parts]
        prepared = [[self.prepared(p, person) for p in parts] for parts in several]
        sizes = [listed_size(parts) for parts in prepared]
        lists = [
            _joint(numbers, parts, bundle.columns, self) if size is not None and size <= self.limit else None
            for numbers, parts, size in zip(several, prepared, sizes)
        ]
        known = [entry for entry in lists if entry is not None]
        members: list[IntArray | None] = [None] * len(bundle.sets)
        new = np.zeros((0, len(bundle.columns)))
        base = 0 if lists[0] is None else len(lists[0][0])
        if known and lists[0] is not None:
            rows = np.concatenate([changes for changes, _ in known]) + 0.0
            number, new = _numbered(rows, base)
            at = base
            for k, entry in enumerate(lists[1:]):
                if entry is not None:
                    members[k] = number[at : at + len(entry[0])]
                    at += len(entry[0])
        counted = np.array([np.nan if size is None else float(size) for size in sizes])
        return Changes(
            base, new, tuple(members), tuple(None if entry is None else entry[1] for entry in lists[1:]), counted[1:], float(counted[0]),
            tuple(any(p.empty for p in parts) for parts in prepared[1:]), tuple(all(p.only_stays for p in parts) for parts in prepared[1:]),
        )  # fmt: skip


def listed_size(parts: Sequence[Alone]) -> int | None:
    """How many joint configurations; None where they cannot be listed."""
    sizes = [None if p.endless else p.size for p in parts]
    return None if None in sizes else math.prod(size for size in sizes if size is not None)


def _joint(
    numbers: Sequence[int], parts: Sequence[Alone], columns: IntArray, pool: Pool
) -> tuple[FloatArray, FloatArray | None]:
    """Every joint change over the columns, the first part running fastest, and probabilities where these differ."""
    size = listed_size(parts)
    assert size is not None
    changes = np.zeros((size, len(columns)))
    shares: FloatArray | None = None
    number = np.arange(size)
    for at, part in zip(numbers, parts):
        moves, weights = part.listed
        pick = number % len(moves) if len(moves) else number
        changes[:, np.searchsorted(columns, pool.parts[at][2])] = moves[pick]
        number = number // max(len(moves), 1)
        if weights is not None:
            shares = weights[pick] * (1.0 if shares is None else shares)
        elif shares is not None:
            shares = shares / max(len(moves), 1)
        elif any(p.listed[1] is not None for p in parts):
            shares = np.full(size, 1.0 / max(len(moves), 1))
    return changes, shares


def _numbered(rows: FloatArray, base: int) -> tuple[IntArray, FloatArray]:
    """A number for each row, equal rows alike, the first `base` rows numbered in order; and the rows past these."""
    if not rows.shape[1]:
        return np.zeros(len(rows), dtype=np.intp), rows[:0]
    keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")  # by first appearance: the original's come first, in their order
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return rank[inverse.ravel()], rows[first[order][base:]]
