"""Best-first search over boxes of cells: prove that no cell of freely moving columns meets all conditions, or find one that does.

The bound of a box is the sum of the best leaves that meet it. Where the best leaves of all trees have cells in common, these attain the bound and are judged
by the model; else the box is split at the cut that best parts them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Literal

import numpy as np
import numpy.typing as npt

from budge.proof.climb import Climber
from budge.proof.leaves import KeptLeaves

__all__ = ["Box", "Judgement", "search_boxes"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
Judgement = Literal["yes", "no", "stop"]


@dataclass(frozen=True)
class Box:
    """First and last cell per column of numbers, and the levels that are left per listed column."""

    lo: IntArray
    hi: IntArray
    mask: BoolArray


class _Order:
    """The leaves with the values of one condition, the best of each tree first."""

    def __init__(self, leaves: KeptLeaves, weights: FloatArray) -> None:
        value = leaves.value @ weights
        self.rows = np.lexsort((-value, leaves.tree))
        self.value, self.tree = value[self.rows], leaves.tree[self.rows]
        self.lo, self.hi, self.mask = leaves.lo[self.rows], leaves.hi[self.rows], leaves.mask[self.rows]
        self.const = float(leaves.const @ weights)

    def firsts(self, live: IntArray) -> IntArray:
        """Return where each tree begins among some leaves."""
        tree = self.tree[live]
        return np.flatnonzero(np.r_[True, tree[1:] != tree[:-1]])


def search_boxes(
    leaves: KeptLeaves,
    weights: FloatArray,
    floors: FloatArray,
    judge: Callable[[Box], Judgement],
    boxes: int,
    until: float = np.inf,
) -> tuple[Literal["possible", "impossible", "stopped", "budget", "time"], int]:
    """Return whether some cell meets every condition ``weights[c] · scores >= floors[c]`` and is judged ``yes``, and the number of boxes visited.

    `judge` gets cells with one answer; ``no`` takes them out of the search, ``stop`` ends it. `until` is a time of `perf_counter`.
    """
    orders = [_Order(leaves, w) for w in weights]
    scale = np.maximum(np.abs(leaves.value @ weights.T).max(axis=0), 1e-300) if len(leaves.value) else np.ones(len(floors))
    segments = leaves.offsets[:-1]
    last = np.array([axis.size - 1 for axis in leaves.numbers], dtype=np.intp)
    whole = Box(np.zeros_like(last), last, np.ones(leaves.mask.shape[1], dtype=bool))
    heap: list[tuple[float, int, list[IntArray], Box]] = []
    tick = visited = 0

    def push(lives: list[IntArray], box: Box) -> None:
        nonlocal tick
        room = np.inf
        for order, live, floor, unit in zip(orders, lives, floors, scale):
            firsts = order.firsts(live) if len(live) else live
            if len(firsts) < leaves.count:  # nothing of some tree meets the box
                return
            bound = order.const + float(order.value[live[firsts]].sum())
            if bound < floor:
                return
            room = min(room, (bound - floor) / unit)
        tick += 1
        heapq.heappush(heap, (-room, tick, lives, box))

    def narrowed(lives: list[IntArray], box: Box, d: int | None = None) -> list[IntArray]:
        return [_meeting(order, live, box, segments, d) for order, live in zip(orders, lives)]

    climber = Climber(leaves, weights, floors)

    def climbed(lives: list[IntArray], box: Box) -> Judgement:
        """Climb from the middle of the best leaves of a box; from the start at first."""
        cells = np.array([axis.home for axis in leaves.numbers], dtype=np.intp)
        places = np.array([axis.home for axis in leaves.levels], dtype=np.intp)
        if visited > 1 and len(leaves.tree):
            best = lives[0][orders[0].firsts(lives[0])]
            middle = np.median((np.maximum(orders[0].lo[best], box.lo) + np.minimum(orders[0].hi[best], box.hi)) / 2, axis=0)
            cells = np.clip(middle.astype(np.intp), box.lo, box.hi)
            votes = (orders[0].mask[best] & box.mask).sum(axis=0)
            places = np.array([int(votes[a:b].argmax()) for a, b in zip(leaves.offsets, leaves.offsets[1:])], dtype=np.intp)
        cells, places, room = climber.climb(cells, places)
        return judge(Box(*leaves.around(cells, places))) if room >= 0 else "no"

    push([np.arange(len(order.tree)) for order in orders], whole)
    while heap:
        _, _, lives, box = heapq.heappop(heap)
        visited += 1
        if visited > boxes:
            return "budget", visited
        if visited % 16 == 0 and perf_counter() > until:
            return "time", visited
        if visited & (visited - 1) == 0:  # 1, 2, 4, 8...
            verdict = climbed(lives, box)
            if verdict != "no":
                return ("possible" if verdict == "yes" else "stopped"), visited
        bests = [live[order.firsts(live)] if len(live) else live for order, live in zip(orders, lives)]
        bounds = np.array([order.const + order.value[best].sum() for order, best in zip(orders, bests)])
        tight = int(np.argmin((bounds - floors) / scale))
        meet = _meet(orders[tight], bests[tight], box)
        if _inhabited(meet, segments):
            scores = leaves.const + leaves.value[orders[tight].rows[bests[tight]]].sum(axis=0)
            if (weights @ scores >= floors).all():
                verdict = judge(meet)
                if verdict != "no":
                    return ("possible" if verdict == "yes" else "stopped"), visited
                for rest in _minus(box, meet, leaves):
                    push(narrowed(lives, rest), rest)
                continue
            split = _split(orders, bests, lives, box, segments)
        else:
            split = _split(orders[tight : tight + 1], bests[tight : tight + 1], lives[tight : tight + 1], box, segments)
        d, halves = split
        for half in halves:
            push(narrowed(lives, half, d), half)
    return "impossible", visited


def _meeting(order: _Order, live: IntArray, box: Box, segments: list[int], d: int | None) -> IntArray:
    """Return the leaves that meet a box; `d` is the only column of numbers that was narrowed, if one was."""
    if d is not None:
        return np.asarray(live[(order.lo[live, d] <= box.hi[d]) & (order.hi[live, d] >= box.lo[d])])
    good = (order.lo[live] <= box.hi).all(axis=1) & (order.hi[live] >= box.lo).all(axis=1)
    if segments:
        good &= np.logical_or.reduceat(order.mask[live] & box.mask, segments, axis=1).all(axis=1)
    return np.asarray(live[good])


def _meet(order: _Order, best: IntArray, box: Box) -> Box:
    if not len(best):
        return box
    lo, hi = np.maximum(order.lo[best].max(axis=0), box.lo), np.minimum(order.hi[best].min(axis=0), box.hi)
    return Box(lo, hi, order.mask[best].all(axis=0) & box.mask)


def _inhabited(box: Box, segments: list[int]) -> bool:
    return bool((box.lo <= box.hi).all()) and (not segments or bool(np.logical_or.reduceat(box.mask, segments).all()))


def _split(orders: list[_Order], bests: list[IntArray], lives: list[IntArray], box: Box, segments: list[int]) -> tuple[int | None, list[Box]]:
    """Return the column of numbers that is split (None: a listed one) and the halves of a box.

    They are parted where the best leaves exclude each other most; a leaf counts by its lead over the next of its tree.
    """
    lo = np.concatenate([np.maximum(order.lo[best], box.lo) for order, best in zip(orders, bests)])
    hi = np.concatenate([np.minimum(order.hi[best], box.hi) for order, best in zip(orders, bests)])
    mask = np.concatenate([order.mask[best] & box.mask for order, best in zip(orders, bests)])
    leads = []
    for order, best, live in zip(orders, bests, lives):
        firsts = order.firsts(live)
        ends = np.append(firsts[1:], len(live))
        lead = order.value[best] - order.value[live[np.minimum(firsts + 1, ends - 1)]]
        leads.append(lead / max(float(lead.max()), 1e-300) + 1e-9)
    weight = np.concatenate(leads)
    most, column, found = -1.0, None, list[Box]()
    for d in np.flatnonzero(lo.max(axis=0) > hi.min(axis=0)):
        width = int(box.hi[d]) + 1
        upto = np.cumsum(np.bincount(hi[:, d], weights=weight, minlength=width))[:-1]
        after = weight.sum() - np.cumsum(np.bincount(lo[:, d], weights=weight, minlength=width))[:-1]
        value = np.minimum(upto, after)
        value[: box.lo[d]] = -1.0
        at = int(value.argmax())
        if value[at] > most:
            left, right = box.hi.copy(), box.lo.copy()
            left[d], right[d] = at, at + 1
            most, column, found = float(value[at]), int(d), [Box(box.lo, left, box.mask), Box(right, box.hi, box.mask)]
    for begin, end in zip(segments, [*segments[1:], mask.shape[1]]):
        if mask[:, begin:end].all(axis=0).any():
            continue
        part = mask[:, begin:end]
        partial = np.where((part != box.mask[begin:end]).any(axis=1), weight, -1.0)
        chosen = part[int(partial.argmax())]
        within = (part <= chosen).all(axis=1)
        value = min(float(weight[within].sum()), float(weight[~(part & chosen).any(axis=1)].sum())) + 1e-12
        if value > most:
            one, other = box.mask.copy(), box.mask.copy()
            one[begin:end] &= chosen
            other[begin:end] &= ~chosen
            most, column, found = value, None, [Box(box.lo, box.hi, one), Box(box.lo, box.hi, other)]
    return column, found


def _minus(box: Box, cell: Box, leaves: KeptLeaves) -> Iterator[Box]:
    """Yield disjoint boxes that hold what is in the box and not in the cell."""
    lo, hi, mask = box.lo.copy(), box.hi.copy(), box.mask.copy()
    for d in range(len(lo)):
        if lo[d] < cell.lo[d]:
            end = hi.copy()
            end[d] = cell.lo[d] - 1
            yield Box(lo.copy(), end, mask.copy())
            lo[d] = cell.lo[d]
        if hi[d] > cell.hi[d]:
            begin = lo.copy()
            begin[d] = cell.hi[d] + 1
            yield Box(begin, hi.copy(), mask.copy())
            hi[d] = cell.hi[d]
    for begin_at, end_at in zip(leaves.offsets[:-1], leaves.offsets[1:]):
        rest = mask.copy()
        rest[begin_at:end_at] &= ~cell.mask[begin_at:end_at]
        if rest[begin_at:end_at].any():
            yield Box(lo.copy(), hi.copy(), rest)
        mask[begin_at:end_at] &= cell.mask[begin_at:end_at]
