"""A model's structure in the columns of the table: scores that are sums over columns, or sums of trees, and how scores become answers.

Rows are coded: a number stands for itself, a listed value for its position among the column's levels, a missing value is NaN. The preprocessing
of a pipeline is inside the structure, so that cuts, slopes and tables are those of the table's own columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.features import Feature
from budge.frames import level_key

__all__ = ["Additive", "Answer", "Column", "Structure", "Structured", "Trees", "UnreadableError", "codes_of", "columns_of"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]


class UnreadableError(Exception):
    """The structure of a model cannot be read; the message states why."""


@dataclass(frozen=True)
class Column:
    """A column of the table. `levels` are its listed values, None for numbers; `whole`: only whole numbers can be reached."""

    name: str
    levels: tuple[Any, ...] | None = None
    whole: bool = False


@dataclass(frozen=True)
class Answer:
    """How scores become answers.

    `binary`: one score; the answer is ``classes[1]`` where it passes `cut` (with `strict`, equal is not enough), else ``classes[0]``.
    `argmax`: one score per class; the class with the highest score, the first among equals. `number`: one score; the answer is a number.
    The probability of ``classes[1]``, or the number, is `link` of the score; an `argmax` has no such link.
    """

    kind: Literal["binary", "argmax", "number"]
    classes: tuple[Any, ...] = ()
    cut: float = 0.0
    strict: bool = True
    link: Literal["identity", "logistic", "exp"] | None = "logistic"


@dataclass(frozen=True)
class Additive:
    """``scores = const + Σ over columns of what the value of the column adds``; every number that is added has one entry per score.

    A column of numbers adds slope · value (`slopes`) or the entry of the step in which it lies (`steps`: value i holds up to and including cut i, the last
    one beyond); a listed column adds the row of its level (`tables`). A column in none of them adds nothing.
    """

    columns: tuple[Column, ...]
    answer: Answer
    const: FloatArray  # (scores,)
    slopes: Mapping[str, FloatArray] = field(default_factory=dict)  # (scores,)
    steps: Mapping[str, tuple[FloatArray, FloatArray]] = field(default_factory=dict)  # cuts ascending, (cuts + 1, scores)
    tables: Mapping[str, FloatArray] = field(default_factory=dict)  # (levels, scores)
    missing: Mapping[str, FloatArray] = field(default_factory=dict)  # (scores,): what a missing value adds; absent: the model takes none
    precision: float = 2.0**-46  # of the model's own arithmetic, as a share of the sum of absolute contributions

    def scores(self, codes: FloatArray) -> FloatArray:
        """Return the scores of coded rows, (rows, scores)."""
        total = np.tile(np.asarray(self.const, dtype=float), (len(codes), 1))
        for j, column in enumerate(self.columns):
            total += self.added(column.name, codes[:, j])
        return total

    def added(self, name: str, values: FloatArray) -> FloatArray:
        """Return what coded values of a column add, (values, scores)."""
        gone = np.isnan(values)
        safe = np.where(gone, 0.0, values)
        if name in self.tables:
            found = self.tables[name][safe.astype(np.intp)]
        elif name in self.steps:
            cuts, entries = self.steps[name]
            found = entries[np.searchsorted(cuts, safe, side="left")]
        elif name in self.slopes:
            found = safe[:, None] * self.slopes[name]
        else:
            return np.zeros((len(values), len(self.const)))
        if gone.any():
            if name not in self.missing:
                raise UnreadableError(f"a value of {name} is missing, and the model takes no missing values")
            found = np.where(gone[:, None], self.missing[name], found)
        return np.asarray(found, dtype=float)


@dataclass(frozen=True)
class Trees:
    """``scores = const + Σ over trees of the value of the leaf that the row falls in``.

    Nodes of all trees stand in flat arrays; `roots` are the first nodes. A node on a column of numbers sends a value left where it is at most `cut`, a node
    on a listed column sends left the levels in `lefts`; a missing value goes left where `missing` says so. `column` is -1 at a leaf.
    """

    columns: tuple[Column, ...]
    answer: Answer
    const: FloatArray  # (scores,)
    roots: IntArray
    column: IntArray  # (nodes,): position in `columns`
    cut: FloatArray
    missing: BoolArray
    left: IntArray
    right: IntArray
    value: FloatArray  # (nodes, scores); 0 but at leaves
    lefts: Mapping[int, BoolArray] = field(default_factory=dict)  # node → which levels go left
    precision: float = 2.0**-46  # of the model's own arithmetic, as a share of the sum of absolute contributions

    def scores(self, codes: FloatArray) -> FloatArray:
        """Return the scores of coded rows, (rows, scores)."""
        return np.asarray(self.const + self.value[self.leaves(codes)].sum(axis=1), dtype=float)

    def leaves(self, codes: FloatArray) -> IntArray:
        """Return the leaf of every row in every tree, (rows, trees)."""
        node = np.tile(self.roots, (len(codes), 1))
        rows = np.broadcast_to(np.arange(len(codes))[:, None], node.shape)
        while True:
            inner = self.column[node] >= 0
            if not inner.any():
                return node
            at = node[inner]
            node[inner] = self.below(at, codes[rows[inner], self.column[at]])

    def below(self, nodes: IntArray, values: FloatArray) -> IntArray:
        """Return the nodes to which inner nodes send values of their columns, one value per node."""
        left, gone = values <= self.cut[nodes], np.isnan(values)
        offset, flat = self._levels
        listed = offset[nodes] >= 0
        if listed.any():
            place = np.where(gone[listed], 0.0, values[listed]).astype(np.intp)
            left[listed] = flat[offset[nodes[listed]] + place]
        left = np.where(gone, self.missing[nodes], left)
        return np.where(left, self.left[nodes], self.right[nodes])

    @cached_property
    def _levels(self) -> tuple[IntArray, BoolArray]:
        """Return `lefts` end to end, and where each node's entries start (-1: it has none)."""
        offset = np.full(len(self.column), -1, dtype=np.intp)
        sizes = [len(entries) for entries in self.lefts.values()]
        offset[list(self.lefts)] = np.concatenate([[0], np.cumsum(sizes)[:-1]]) if sizes else []
        return offset, np.concatenate(list(self.lefts.values())) if sizes else np.zeros(0, dtype=bool)


Structure = Additive | Trees


@runtime_checkable
class Structured(Protocol):
    """What a model of a third party provides so that it can be proved about: its structure in the columns of the table."""

    def structure(self, columns: Sequence[Column]) -> Structure:
        """Return the structure over these columns, in this order."""


def columns_of(frame: pd.DataFrame, features: Sequence[Feature] = (), loose: Sequence[str] = ()) -> tuple[Column, ...]:
    """Return the columns of a table: declared features as they are declared, others by what the table holds.

    `loose` names whole numbers that may be reached between whole values too (an effect acts on them).
    """
    declared = {f.name: f for f in features if f.type != "fixed"}
    found = []
    for label in frame.columns:
        column, feature = frame[label], declared.get(label)
        if feature is not None:
            found.append(Column(feature.name, feature.levels, feature.discrete and feature.levels is None and feature.name not in loose))
        elif getattr(column.dtype, "kind", "O") in "biuf":
            found.append(Column(str(label)))
        else:
            known = list(column.cat.categories) if isinstance(column.dtype, pd.CategoricalDtype) else []
            seen = {level_key(v): v for v in [*known, *column.dropna()]}
            found.append(Column(str(label), tuple(seen.values())))
    return tuple(found)


def codes_of(columns: Sequence[Column], frame: pd.DataFrame) -> FloatArray:
    """Return a table as codes; a value that is no level of its column is an `UnreadableError`."""
    codes = np.empty((len(frame), len(columns)))
    for j, column in enumerate(columns):
        values = frame[column.name]
        if column.levels is None:
            codes[:, j] = values.to_numpy(dtype=float, na_value=np.nan)
            continue
        place = {level_key(level): float(i) for i, level in enumerate(column.levels)}
        for i, (value, gone) in enumerate(zip(values.astype(object), values.isna())):
            codes[i, j] = np.nan if gone else place.get(level_key(value), -1.0)
            if codes[i, j] == -1.0:
                raise UnreadableError(f"{value!r} is not among the known levels of {column.name}")
    return codes
