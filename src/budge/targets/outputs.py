"""Outputs as targets see them: their kinds, as numbers, beside those before."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.errors import InputError, ModelError

__all__ = ["Array", "Hits", "kinds_of", "number", "scores_of", "start_of", "takes_two", "tolerance"]

Hits: TypeAlias = npt.NDArray[np.bool_]
Array: TypeAlias = npt.NDArray[Any]

#: Scores within this of each other, relative to the larger one or to 1, are one score: sums in another order, not a change.
TOLERANCE = {2: 1e-2, 4: 1e-6, 8: 1e-9}
#: What pandas calls the kinds of objects, and what labels of that kind are called here.
_INFERRED = {"string": "str", "boolean": "bool", "integer": "number", "floating": "number", "mixed-integer-float": "number"}


def kinds_of(outputs: Array) -> set[str]:
    """The kinds of labels in an array; rows without an answer have none.

    Examples
    --------
    >>> sorted(kinds_of(np.array([1, "1", None], dtype=object)))
    ['number', 'str']
    """
    kind = outputs.dtype.kind
    if kind != "O":
        return (
            {{"b": "bool", "i": "number", "u": "number", "f": "number", "U": "str"}.get(kind, outputs.dtype.name)}
            if outputs.size
            else set()
        )
    inferred = pd.api.types.infer_dtype(outputs, skipna=True)
    if inferred in _INFERRED:
        return {_INFERRED[inferred]}
    return {_kind(value) for value in outputs.tolist() if not _missing(value)}


def scores_of(outputs: Array) -> Array:
    """The outputs as numbers.

    Raises
    ------
    ModelError
        If they are labels of another kind.
    """
    if outputs.dtype.kind in "iuf":
        return outputs
    if outputs.dtype.kind == "O" and kinds_of(outputs) <= {"number"}:
        return np.array([math.nan if value is None else value for value in outputs.tolist()], dtype=np.float64)
    raise ModelError(
        "the target compares numbers",
        where="target",
        got=outputs[:3].tolist(),
        remedy="use output='probability' or output='score'",
    )


def start_of(outputs: Array, before: Array | None) -> Array:
    """The outputs before, one a point."""
    if before is None:
        raise InputError("the target compares with the output before, which was not given", where="target")
    start = np.asarray(before)
    if start.ndim == 0:
        start = np.full(len(outputs), start[()])
    if start.shape != outputs.shape:
        raise InputError("one output before is needed for each point", where="target", got=(outputs.shape, start.shape))
    return start


def tolerance(after: Array, before: Array) -> Array:
    """How far two scores may lie apart and be the same; none for whole numbers."""
    sizes = [array.dtype.itemsize for array in (after, before) if array.dtype.kind == "f"]
    if not sizes:
        return np.zeros(len(after))
    scale = np.maximum(1.0, np.maximum(np.abs(after, dtype=np.float64), np.abs(before, dtype=np.float64)))
    scale[~np.isfinite(scale)] = 1.0
    return np.asarray(TOLERANCE.get(min(sizes), 1e-9) * scale)


def number(value: object, where: str, *, infinite: bool = False) -> float:
    """A number of the caller's, or an error that shows what was got."""
    found = value.item() if isinstance(value, np.generic) else value
    if isinstance(found, bool) or not isinstance(found, int | float) or math.isnan(found) or (math.isinf(found) and not infinite):
        raise InputError("a number is expected", where=where, got=value)
    return float(found)


def takes_two(f: Callable[..., Any]) -> bool:
    """Whether a function wants the outputs before as well."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have none
        return False
    needed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    return len(needed) >= 2


def _kind(value: object) -> str:
    return "bool" if isinstance(value, bool) else "number" if isinstance(value, int | float) else type(value).__name__


def _missing(value: object) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))
