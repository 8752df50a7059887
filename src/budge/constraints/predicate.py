"""Predicate: a vectorised Python function decides. For Python only: a spec file never names code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from budge.constraints.base import BoolArray, Constraint, Example, Values, frozen, reached, undeclared
from budge.errors import Problem, ReachError, SpecError
from budge.features import Feature

__all__ = ["Predicate"]


@dataclass(frozen=True)
class Predicate(Constraint):
    """The function of the values reached says so.

    Parameters
    ----------
    features
        What it reads.
    function
        Gets a mapping from name to a read-only array of values reached (categories as levels) and returns one
        truth value for each row.

    Examples
    --------
    >>> import numpy as np
    >>> even = Predicate(("a", "b"), lambda v: (v["a"] + v["b"]) % 2 == 0)
    >>> a = {"a": np.array([0.0, 1.0]), "b": np.array([0.0, 0.0])}
    >>> even.mask({"a": np.array(2.0), "b": np.array(0.0)}, a, a)
    array([ True, False])
    """

    kind: ClassVar[str] = "predicate"

    features: tuple[str, ...]
    function: Callable[[Mapping[str, Any]], Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", frozen(self.features))

    @property
    def scope(self) -> tuple[str, ...]:
        return self.features

    @property
    def label(self) -> str:
        return self.name or f"predicate {getattr(self.function, '__name__', 'function')}({', '.join(self.features)})"

    def problems(self, features: Mapping[str, Feature]) -> list[Problem]:
        found = undeclared(self.features, features, "features")
        if not self.features:
            found.append(Problem("features", "names no feature", []))
        if not callable(self.function):
            found.append(
                Problem(
                    "function", "cannot be called", self.function, "a predicate is a Python function; use a rule in a spec file"
                )
            )
        return found

    def mask(self, x: Values, action: Values, change: Values) -> BoolArray:
        columns = np.broadcast_arrays(*(reached(x, change, name) for name in self.features))
        shape = columns[0].shape
        given: dict[str, Any] = {}
        levels, inside = self.levels, np.ones(int(np.prod(shape)), dtype=bool)
        for name, column in zip(self.features, columns):
            values = np.array(column, dtype=float).ravel()
            if name in levels:  # a position that no level has is no value; a missing one is None
                known = (values >= 0) & (values <= len(levels[name]) - 1)
                inside &= known | np.isnan(values)
                named = np.array([*levels[name], None], dtype=object)
                values = named[np.where(known, values, -1).astype(int)]
            values.flags.writeable = False
            given[name] = values
        try:
            answer = np.asarray(self.function(given))
        except Exception as error:
            raise ReachError(f"the function failed: {type(error).__name__}: {error}", where=self.label) from error
        size = int(np.prod(shape))
        if answer.shape == () and size == 1:
            answer = answer.reshape(1)
        if answer.shape != (size,):
            raise ReachError(f"must return {size} truth values, one for each row", where=self.label, got=f"shape {answer.shape}")
        if answer.dtype != bool:
            if answer.dtype.kind not in "biuf" or not np.isin(answer, (0, 1)).all():
                raise ReachError("must return truth values", where=self.label, got=f"{answer.dtype}: {answer[:3].tolist()}")
            answer = answer.astype(bool)
        return np.asarray(answer & inside).reshape(shape)

    def to_spec(self) -> dict[str, Any]:
        raise SpecError(
            "a predicate is Python code and cannot be written to a spec file",
            where=self.label,
            remedy="write it as a rule, or keep the model in Python",
        )

    def describe(self) -> str:
        what = (getattr(self.function, "__doc__", None) or "").strip().split("\n")[0]
        return what or f"{getattr(self.function, '__name__', 'a function')} of {', '.join(self.features)} is true."

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        features = (Feature("a", "integer", bounds=(0, 5)), Feature("b", "integer", bounds=(0, 5)))
        x = {"a": 2.0, "b": 3.0}
        product = cls(("a", "b"), lambda v: v["a"] * v["b"] >= 6, name="product")
        return (
            Example(product, features, x, {"a": 0.0, "b": 0.0}, True),
            Example(product, features, x, {"a": -1.0, "b": 0.0}, False),
        )
