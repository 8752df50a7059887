"""Rows of inputs: matching their columns to a model's, slicing them, turning them into numbers.

A model's columns are matched by name; what the caller's table has beyond them stays behind. Inputs that are not tables
(images, series, texts) are arrays whose first axis is the row, and pass through untouched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.errors import ModelError, Problem, nearest

__all__ = ["Array", "Rows", "count", "match_columns", "numbers", "take"]

Array: TypeAlias = npt.NDArray[Any]
Rows: TypeAlias = pd.DataFrame | Array


def count(rows: Rows) -> int:
    """How many rows there are."""
    return len(rows)


def take(rows: Rows, start: int, stop: int) -> Rows:
    """The rows from start up to stop, with dtypes and names as they were."""
    if start == 0 and stop >= len(rows):
        return rows
    if isinstance(rows, pd.DataFrame):
        return rows.iloc[start:stop]
    return rows[start:stop]


def match_columns(
    rows: Rows,
    columns: Sequence[str] | None,
    *,
    width: int | None = None,
    alias: Callable[[str], str] | None = None,
) -> Rows:
    """The rows with the model's columns, in the model's order.

    Parameters
    ----------
    rows
        A table, or an array that is passed on as it is once its width is checked.
    columns
        The names that the model was trained on; None if it knows none.
    width
        How many columns the model expects, where it knows no names.
    alias
        How the engine rewrites names (LightGBM turns spaces into underscores).

    Examples
    --------
    >>> table = pd.DataFrame({"age": [30], "rent": [700], "note": ["x"]})
    >>> list(match_columns(table, ["rent", "age"]).columns)
    ['rent', 'age']
    >>> match_columns(table, ["rents", "age"])
    Traceback (most recent call last):
    budge.errors.ModelError: column 'rents': the model was trained on it and the table lacks it; did you mean 'rent'?
    """
    if not isinstance(rows, pd.DataFrame):
        expected = width if columns is None else len(columns)
        if expected is not None and rows.ndim == 2 and rows.shape[1] != expected:
            raise ModelError(f"the model expects {expected} columns", where="input", got=rows.shape)
        return rows
    if columns is None:
        if width is not None and rows.shape[1] != width:
            raise ModelError(
                f"the model was trained without column names, on {width} columns",
                where="input",
                got=list(rows.columns),
                remedy=_fewer(rows.shape[1], width),
            )
        return rows
    have = list(rows.columns)
    if have == list(columns):
        return rows
    repeated = sorted({str(name) for name in have if have.count(name) > 1})
    if repeated:
        raise ModelError("column labels occur twice, so a name does not say which is meant", where="input", got=repeated)
    known = {alias(str(name)): name for name in have} if alias else {}
    chosen = [name if name in rows.columns else known.get(name) for name in columns]
    missing = [name for name, found in zip(columns, chosen) if found is None]
    if missing:
        what = "the model was trained on it and the table lacks it"
        raise ModelError([Problem(f"column {name!r}", what, remedy=nearest(name, map(str, have))) for name in missing])
    return rows[chosen]


def _fewer(have: int, want: int) -> str:
    """What to do about a width: in Python, and on the command line."""
    columns = "give columns=[...], in the order of training"
    return f"{columns}; on the command line leave {have - want} out with --drop COLUMN" if have > want else columns


def numbers(rows: Rows, dtype: npt.DTypeLike) -> Array | None:
    """The rows as one C-ordered matrix of numbers; None where a column does not hold plain numbers.

    Examples
    --------
    >>> numbers(pd.DataFrame({"a": [1, 2], "b": [True, False]}), "float32").tolist()
    [[1.0, 1.0], [2.0, 0.0]]
    >>> numbers(pd.DataFrame({"a": ["x"]}), "float32") is None
    True
    """
    if not isinstance(rows, pd.DataFrame):
        return np.ascontiguousarray(rows, dtype=dtype) if rows.dtype.kind in "biuf" else None
    kinds = {getattr(kind, "kind", "O") for kind in rows.dtypes}
    if not kinds <= set("biuf") or any(isinstance(kind, pd.CategoricalDtype) for kind in rows.dtypes):
        return None
    if any(pd.api.types.is_extension_array_dtype(kind) for kind in rows.dtypes):
        return np.ascontiguousarray(rows.to_numpy(dtype=np.dtype(dtype), na_value=np.nan))
    return np.ascontiguousarray(rows.to_numpy(dtype=np.dtype(dtype)))
