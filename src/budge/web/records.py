"""Values as the page receives them: JSON's own types, nothing that is not a number, texts without control characters' effect."""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd

from budge.errors import BudgeError, Problem

__all__ = ["Last", "as_json", "error_record", "plain", "problem_record"]


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Last(OrderedDict[Key, Value], Generic[Key, Value]):
    """The last few values that were kept, and the one of the key `first` for good.

    Examples
    --------
    >>> some: Last[str, int] = Last(2, first="a")
    >>> for name in "abc":
    ...     _ = some.keep(name, 0)
    >>> list(some)
    ['a', 'c']
    """

    def __init__(self, most: int, first: Key | None = None) -> None:
        super().__init__()
        self.most, self.first = most, first

    def keep(self, key: Key, value: Value) -> Value:
        """Keep a value as the newest; the oldest goes where there are too many."""
        self.pop(key, None)
        self[key] = value
        while len(self) > self.most:
            del self[next(own for own in self if own != self.first)]
        return value


def plain(value: Any) -> Any:
    """The value in JSON's own types; what is missing or not finite is null.

    Examples
    --------
    >>> plain({"rho": np.float64(0.5), "low": float("nan"), "n": np.int64(3)})
    {'rho': 0.5, 'low': None, 'n': 3}
    """
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | np.ndarray | pd.Series | pd.Index):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is pd.NA or value is pd.NaT:
        return None
    return str(value)


def as_json(record: Any) -> str:
    """The record as JSON that is valid everywhere."""
    return json.dumps(plain(record), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def problem_record(problem: Problem) -> dict[str, Any]:
    """A problem with its line in the spec apart, where it has one: ``spec.yaml:3 features.age`` is line 3."""
    record: dict[str, Any] = {"got": None, "remedy": "", **problem.to_dict(), "line": None}
    place, _, rest = str(record["where"]).partition(" ")
    pieces = place.split(":")
    if len(pieces) > 1 and pieces[0].startswith("spec.") and pieces[1].isdecimal():
        record |= {"line": int(pieces[1]), "where": rest}
    return record


def error_record(error: BudgeError) -> dict[str, Any]:
    """An error as the page shows it."""
    return {"error": type(error).__name__, "problems": [problem_record(p) for p in error.problems]}
