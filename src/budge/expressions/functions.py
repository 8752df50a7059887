"""The plain functions of the language: how many arguments each takes, and what it computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

__all__ = ["FUNCTIONS", "Function"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Function:
    """One function: its signature for messages, the number of arguments, and the computation (none for ``where``)."""

    signature: str
    least: int
    most: int
    compute: Callable[..., Array] | None


def _minimum(*values: Array) -> Array:
    return reduce(np.minimum, values)


def _maximum(*values: Array) -> Array:
    return reduce(np.maximum, values)


def _clip(value: Array, low: Array, high: Array) -> Array:
    return np.asarray(np.minimum(np.maximum(value, low), high))


def _round(value: Array, digits: Array | None = None) -> Array:
    return np.asarray(np.round(value, 0 if digits is None else int(digits)))


MANY = 10_000
FUNCTIONS: dict[str, Function] = {
    "abs": Function("abs(x)", 1, 1, np.abs),
    "min": Function("min(a, b, …)", 2, MANY, _minimum),
    "max": Function("max(a, b, …)", 2, MANY, _maximum),
    "round": Function("round(x) or round(x, digits)", 1, 2, _round),
    "exp": Function("exp(x)", 1, 1, np.exp),
    "log": Function("log(x)", 1, 1, np.log),
    "sqrt": Function("sqrt(x)", 1, 1, np.sqrt),
    "clip": Function("clip(x, low, high)", 3, 3, _clip),
    "where": Function("where(condition, a, b)", 3, 3, None),
}
