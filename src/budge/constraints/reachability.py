"""Reachability: a list of joint values, and which can be reached from which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from budge.constraints.base import BoolArray, Configurations, Constraint, Example, FloatArray, Values, frozen, reached, undeclared
from budge.errors import Problem, nearest
from budge.expressions import Formula, OneOf, Truth, Var
from budge.expressions.tolerance import equal
from budge.features import Feature

__all__ = ["Reachability"]


@dataclass(frozen=True)
class Reachability(Constraint):
    """The values reached are a listed row that is reachable from the current one (paper: Encoding Reachability).

    Parameters
    ----------
    features
        The features, in the order of the columns of `values`.
    values
        The joint values, one row each; levels of a category by name.
    reachable
        Row i, column j is 1 where value j can be reached *from* value i, in one step. All ones if not given.

    Examples
    --------
    >>> r = Reachability(("a",), values=((0,), (1,)), reachable=((1, 1), (0, 1)))
    >>> r.configurations({"a": 1.0}).values.tolist()
    [[1.0]]
    """

    kind: ClassVar[str] = "reachability"

    features: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    reachable: tuple[tuple[int, ...], ...] | None = None

    def __post_init__(self) -> None:
        for name in ("features", "values", "reachable"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @property
    def scope(self) -> tuple[str, ...]:
        return self.features

    def problems(self, features: Mapping[str, Feature]) -> list[Problem]:
        found = undeclared(self.features, features, "features")
        m, k = len(self.features), len(self.values)
        if not k:
            found.append(Problem("values", "lists no values", []))
        ragged = [row for row in self.values if not isinstance(row, tuple) or len(row) != m]
        if ragged:
            found.append(
                Problem(
                    "values",
                    f"every row needs {m} entries, one for each feature",
                    list(frozen(ragged[0])) if isinstance(ragged[0], tuple) else ragged[0],
                )
            )
        elif strange := [cell for row in self.values for cell in row if not isinstance(cell, str | int | float | np.generic)]:
            found.append(Problem("values", "a value is a text, a number or a truth value", strange[0]))
        elif len(set(self.values)) < k:
            twice = next(row for row, times in Counter(self.values).items() if times > 1)
            found.append(Problem("values", "a row of values is listed twice", list(twice)))
        else:
            found += self._value_problems(features)
        if self.reachable is not None:
            shape = f"{len(self.reachable)} × {sorted({len(r) if isinstance(r, tuple) else 0 for r in self.reachable})}"
            if len(self.reachable) != k or any(not isinstance(r, tuple) or len(r) != k for r in self.reachable):
                found.append(
                    Problem("reachable", f"must be a square matrix of {k} × {k}, one row and column for each value", shape)
                )
            elif any(cell not in (0, 1) for r in self.reachable for cell in r):
                odd = next(cell for r in self.reachable for cell in r if cell not in (0, 1))
                found.append(Problem("reachable", "holds only 0 and 1", odd))
        return found

    def _value_problems(self, features: Mapping[str, Feature]) -> list[Problem]:
        found = []
        for column, name in enumerate(self.features):
            feature = features.get(name)
            if feature is None:
                continue
            levels = None if feature.levels is None else {level for level in feature.levels if isinstance(level, Hashable)}
            for row in self.values:
                value = row[column]
                if levels is not None:
                    if value not in levels:
                        found.append(Problem("values", f"not a level of {name}", value, nearest(value, map(str, levels))))
                elif isinstance(value, str) or not np.isfinite(value):
                    found.append(Problem("values", f"{name} needs a number", value))
                elif feature.type in ("binary", "integer") and value != int(value):
                    found.append(Problem("values", f"{name} is {feature.type}", value, "give a whole number"))
                else:
                    continue
                break
        return found

    def table(self) -> FloatArray:
        """The listed values as numbers, categories by position."""
        levels = {name: {level: i for i, level in reversed(list(enumerate(found)))} for name, found in self.levels.items()}
        coded = [[levels[n][v] if n in levels else v for n, v in zip(self.features, row)] for row in self.values]
        return np.array(coded, dtype=float)

    def _allowed(self, start: int | None) -> BoolArray:
        if start is None or self.reachable is None:  # a start that is not listed may move to any listed value
            return np.ones(len(self.values), dtype=bool)
        return np.array(self.reachable[start], dtype=bool)

    def _same(self, values: FloatArray, table: FloatArray) -> BoolArray:
        """Return where values are the listed ones, feature by feature along the last axis."""
        columns = [equal(values[..., j], table[..., j], whole=self.counts([name])) for j, name in enumerate(self.features)]
        return np.stack(np.broadcast_arrays(*columns), axis=-1)

    def stands_at(self, values: FloatArray) -> BoolArray:
        """Return whether each row of values is a listed one."""
        return np.asarray(self._same(values[:, None, :], self.table()).all(axis=-1).any(axis=-1))

    def mask(self, x: Values, action: Values, change: Values) -> BoolArray:
        table = self.table()
        after = np.stack(np.broadcast_arrays(*(reached(x, change, name) for name in self.features)), axis=-1)
        now = np.stack(np.broadcast_arrays(*(np.asarray(x[name], dtype=float) for name in self.features)), axis=-1)
        to, at = self._same(after[..., None, :], table).all(axis=-1), self._same(now[..., None, :], table).all(axis=-1)  # (..., k)
        step = np.ones((len(table), len(table))) if self.reachable is None else np.array(self.reachable, dtype=float)
        open_to = np.where(np.asarray(at.any(axis=-1))[..., None], at.astype(float) @ step > 0.5, True)
        return np.asarray((to & open_to).any(axis=-1))

    def configurations(self, x: Mapping[str, float]) -> Configurations | None:
        table = self.table()
        now = np.array([float(x[name]) for name in self.features])
        found = np.flatnonzero(self._same(now, table).all(axis=-1))
        return Configurations(self.features, table[self._allowed(int(found[0]) if len(found) else None)])

    def rows(self, x: Mapping[str, float], known: Mapping[Var, FloatArray | float] | None = None) -> Formula | None:
        listed = self.configurations(x)
        assert listed is not None
        return OneOf(tuple(("value", name) for name in self.features), listed.values, self.counts(self.features)) if len(listed.values) else Truth(False)

    def describe(self) -> str:
        group = ", ".join(self.features)
        tail = "" if self.reachable is None else ", each reachable only from some"
        return f"({group}) takes one of {len(self.values)} listed joint values{tail}."

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        features = (Feature("a", "binary"), Feature("b", "integer", bounds=(0, 3)))
        # not symmetric, so that a matrix read the wrong way round shows
        c = cls(("a", "b"), values=((0, 0), (1, 0), (1, 3)), reachable=((1, 1, 0), (0, 1, 1), (0, 0, 1)))
        return (
            Example(c, features, {"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 0.0}, True),
            Example(c, features, {"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 3.0}, False),
            Example(c, features, {"a": 1.0, "b": 0.0}, {"a": -1.0, "b": 0.0}, False),
            Example(c, features, {"a": 1.0, "b": 0.0}, {"a": 0.0, "b": 2.0}, False),
            Example(c, features, {"a": 1.0, "b": 0.0}, {"a": 0.0, "b": 3.0}, True),
        )
