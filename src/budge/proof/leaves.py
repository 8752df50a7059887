"""Trees as leaves: each an interval of cut numbers per column of numbers and a set of levels per listed column.

Compiled once per model. For a person only leaves within reach are kept, trees with one leaf left become a constant, and cuts that no leaf uses vanish.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.proof.axes import Axis, Levels, Numbers
from budge.proof.structure import Trees

__all__ = ["KeptLeaves", "Leaves"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]


class Leaves:
    """All leaves of a structure. `used` are the columns that some split reads."""

    def __init__(self, trees: Trees) -> None:
        self.trees = trees
        inner = trees.column >= 0
        self.used: list[int] = np.unique(trees.column[inner]).tolist()
        self.listed = {j for j in self.used if trees.columns[j].levels is not None}
        self.cuts = {j: _cuts(trees.cut[inner & (trees.column == j)]) for j in self.used if j not in self.listed}
        self._walk()

    def _walk(self) -> None:
        """Go down all trees at once, level by level, and narrow what leads to each node."""
        trees, place = self.trees, {j: u for u, j in enumerate(self.used)}
        node, tree = trees.roots.copy(), np.arange(len(trees.roots))
        lo = np.zeros((len(node), len(self.used)), dtype=np.int32)
        hi = np.tile(np.array([len(self.cuts.get(j, ())) for j in self.used], dtype=np.int32), (len(node), 1))
        gone = np.ones((len(node), len(self.used)), dtype=bool)  # whether a missing value leads there
        masks = {j: np.ones((len(node), len(trees.columns[j].levels or ())), dtype=bool) for j in self.listed}
        done: list[tuple[Any, ...]] = []
        while len(node):
            column = trees.column[node]
            at = np.flatnonzero(column < 0)
            done.append((node[at], tree[at], lo[at], hi[at], gone[at], {j: m[at] for j, m in masks.items()}))
            at = np.flatnonzero(column >= 0)
            sides = []
            for left in (True, False):
                inside, l2, h2, g2, m2 = node[at], lo[at], hi[at], gone[at], {j: m[at] for j, m in masks.items()}
                alive = np.ones(len(at), dtype=bool)
                for j in set(column[at].tolist()):
                    rows, u = np.flatnonzero(column[at] == j), place[j]
                    here = inside[rows]
                    g2[rows, u] &= trees.missing[here] if left else ~trees.missing[here]
                    if j in self.listed:
                        ways = np.array([trees.lefts[i] for i in here.tolist()])
                        m2[j][rows] &= ways if left else ~ways
                        reached = m2[j][rows].any(axis=1)
                    else:
                        number = _number(self.cuts[j], trees.cut[here])
                        if left:
                            h2[rows, u] = np.minimum(h2[rows, u], number)
                        else:
                            l2[rows, u] = np.maximum(l2[rows, u], number + 1)
                        reached = l2[rows, u] <= h2[rows, u]
                    alive[rows] = reached | g2[rows, u]
                child = (trees.left if left else trees.right)[inside]
                sides.append((child[alive], tree[at][alive], l2[alive], h2[alive], g2[alive], {j: m[alive] for j, m in m2.items()}))
            one, other = sides
            node, tree, lo, hi, gone = (np.concatenate([one[i], other[i]]) for i in range(5))
            masks = {j: np.concatenate([one[5][j], other[5][j]]) for j in self.listed}
        node, tree, lo, hi, gone = (np.concatenate([part[i] for part in done]) for i in range(5))
        order = np.argsort(tree, kind="stable")
        self.tree, self.lo, self.hi, self.gone = tree[order], lo[order], hi[order], gone[order]
        self.value = trees.value[node[order]]
        self.masks = {j: np.concatenate([part[5][j] for part in done])[order] for j in self.listed}

    def within(self, start: FloatArray, axes: Mapping[int, Axis]) -> KeptLeaves:
        """Return the leaves that a person can reach; columns without an axis stay at the start."""
        keep = np.ones(len(self.tree), dtype=bool)
        ends: dict[int, tuple[FloatArray, FloatArray]] = {}
        for u, j in enumerate(self.used):
            axis = axes.get(j)
            if np.isnan(start[j]):
                keep &= self.gone[:, u]
            elif isinstance(axis, Levels):
                keep &= self.masks[j][:, axis.allowed].any(axis=1)
            elif j in self.listed:
                keep &= self.masks[j][:, int(start[j])]
            elif isinstance(axis, Numbers):
                last = np.concatenate([[-np.inf], axis.last(self.cuts[j]), [np.inf]])
                below, upto = last[self.lo[:, u]], last[self.hi[:, u] + 1]
                keep &= (below < axis.wide[1]) & (upto >= axis.wide[0]) & (below < upto)
                ends[j] = below, upto
            else:
                here = np.searchsorted(self.cuts[j], start[j], side="left")
                keep &= (self.lo[:, u] <= here) & (self.hi[:, u] >= here)
        rows = np.flatnonzero(keep)
        count = np.bincount(self.tree[rows], minlength=len(self.trees.roots))
        alone = count[self.tree[rows]] == 1
        const = np.asarray(self.trees.const, dtype=float) + self.value[rows[alone]].sum(axis=0)
        firsts = np.flatnonzero(np.r_[True, np.diff(self.tree[rows]) > 0]) if len(rows) else np.zeros(0, dtype=np.intp)
        sizes = np.maximum.reduceat(np.abs(self.value[rows]), firsts).sum(axis=0) if len(rows) else 0.0
        rows = rows[~alone]
        numbers, levels, lo, hi, masks = [], [], [], [], []
        for j, (below, upto) in ends.items():
            axis = axes[j]
            assert isinstance(axis, Numbers)
            cuts = axis.inside(np.concatenate([below[rows], upto[rows]]))
            if len(cuts):
                numbers.append(axis.cut_at(cuts))
                lo.append(np.searchsorted(cuts, below[rows], side="right"))
                hi.append(np.searchsorted(cuts, upto[rows], side="left"))
        for j, axis in axes.items():
            if isinstance(axis, Levels) and j in self.listed and not np.isnan(start[j]):
                mask = self.masks[j][np.ix_(rows, axis.allowed)]
                if not mask.all():
                    levels.append(axis)
                    masks.append(mask)
        empty = np.zeros((len(rows), 0))
        return KeptLeaves(
            const, np.abs(self.trees.const) + sizes, self.value[rows], np.unique(self.tree[rows], return_inverse=True)[1].astype(np.intp),
            tuple(numbers), tuple(levels),
            np.stack(lo, axis=1).astype(np.int32) if lo else empty.astype(np.int32), np.stack(hi, axis=1).astype(np.int32) if hi else empty.astype(np.int32),
            np.concatenate(masks, axis=1) if masks else empty.astype(bool),
        )  # fmt: skip


@dataclass(frozen=True)
class KeptLeaves:
    """The leaves that a person can reach, over the cells of the columns that matter. `size` is the sum of the largest leaves, for rounding."""

    const: FloatArray  # (scores,)
    size: FloatArray  # (scores,)
    value: FloatArray  # (leaves, scores)
    tree: IntArray
    numbers: tuple[Numbers, ...]
    levels: tuple[Levels, ...]
    lo: npt.NDArray[np.int32]  # (leaves, numbers): first cell
    hi: npt.NDArray[np.int32]
    mask: BoolArray  # (leaves, levels of all listed columns in turn)

    @cached_property
    def first(self) -> IntArray:
        """Where each tree begins."""
        return np.flatnonzero(np.r_[True, np.diff(self.tree) > 0]) if len(self.tree) else np.zeros(0, dtype=np.intp)

    @cached_property
    def offsets(self) -> list[int]:
        """Where the levels of each listed column begin in `mask`."""
        return [0, *accumulate(axis.size for axis in self.levels)]

    @property
    def count(self) -> int:
        """The number of trees with more than one leaf."""
        return len(self.first)

    def top(self, weights: FloatArray) -> float:
        """Return a bound on the weighted score: the best leaf of every tree."""
        best = np.maximum.reduceat(self.value @ weights, self.first).sum() if len(self.tree) else 0.0
        return float(self.const @ weights + best)

    def around(self, cells: IntArray, places: IntArray) -> tuple[IntArray, IntArray, BoolArray]:
        """Return the cells with the same leaf in every tree as the given ones: first and last cell per column, and levels."""
        if not len(self.tree):
            return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp), np.zeros(0, dtype=bool)
        at = ((self.lo <= cells) & (cells <= self.hi)).all(axis=1)
        for offset, place in zip(self.offsets, places):
            at &= self.mask[:, offset + place]
        return self.lo[at].max(axis=0), self.hi[at].min(axis=0), np.asarray(self.mask[at].all(axis=0))


def _cuts(cuts: FloatArray) -> FloatArray:
    return np.unique(cuts[np.isfinite(cuts)])


def _number(cuts: FloatArray, at: FloatArray) -> npt.NDArray[np.int32]:
    """Return the number of each cut; past the last where all values go left, -1 where none does."""
    found = np.searchsorted(cuts, at, side="left")
    return np.where(np.isnan(at) | (at == -np.inf), -1, found).astype(np.int32)
