"""What one column seems to be: its type, bounds and levels, with a remark wherever that is a guess."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.errors import shorten
from budge.features import LARGEST_WHOLE, Feature
from budge.spec.naming import is_code, is_identifier, why_fixed

__all__ = ["Column", "read_column"]

MOST_LEVELS = 50
MANY = 20  # rows from which different values are no accident


@dataclass(frozen=True)
class Column:
    """A suggested feature and what a reader should know before believing it."""

    feature: Feature
    remark: str = ""
    values: Any = None  # the column as numbers, NaN where missing; None where it is not one
    zero_one: bool = False  # holds 0 and 1 only, both of them
    left_out: bool = False  # an identifier, which no spec needs


def read_column(name: str, column: pd.Series) -> Column:
    """The suggestion for one column.

    Examples
    --------
    >>> import pandas as pd
    >>> found = read_column("flag", pd.Series([0.0, 1.0, 1.0]))
    >>> found.feature.type, found.remark
    ('real', 'holds only 0 and 1, as decimals: write type: binary if it is a yes or no')
    """
    gone = int(column.isna().sum())
    missing = f"{gone} missing value{'s' if gone > 1 else ''}, which stay missing" if gone else ""
    if gone == len(column):
        return Column(Feature(name, "fixed"), "no value in any row")
    kind = getattr(column.dtype, "kind", "O")
    if isinstance(column.dtype, pd.CategoricalDtype) or kind not in "biuf":
        found = _levels(name, column)
    else:
        found = _numbers(name, column, gone)
    if gone and found.feature.type != "fixed":
        found = replace(found, feature=found.feature.but(missing="fixed"), remark=_both(missing, found.remark))
    reason = why_fixed(name)
    if reason and found.feature.type != "fixed":
        found = replace(found, feature=found.feature.but(actionable=False), remark=_both(reason, found.remark))
    return found


def _levels(name: str, column: pd.Series) -> Column:
    """Texts and categories."""
    dtype = column.dtype
    if dtype.kind in "mM" or isinstance(dtype, pd.DatetimeTZDtype | pd.PeriodDtype):
        return Column(Feature(name, "fixed"), "dates: kept as they are; convert them to a number to let them move")
    if isinstance(dtype, pd.CategoricalDtype):
        levels, ordered = list(dtype.categories), bool(dtype.ordered)
    else:
        levels, ordered = (
            sorted(column.dropna().unique(), key=lambda v: (str(type(v)), v if isinstance(v, str) else str(v))),
            False,
        )
    levels = [v.item() if isinstance(v, np.generic) else v for v in levels]
    strange = [v for v in levels if not isinstance(v, str | int | float | bool)]
    if strange:
        return Column(Feature(name, "fixed"), f"holds {type(strange[0]).__name__}: kept as it is")
    if len(levels) < 2:
        return Column(Feature(name, "fixed"), f"only {shorten(levels[0], 40)} in all rows")
    if len(levels) == len(column) >= MANY or (is_identifier(name) and len(levels) == column.notna().sum()):
        return Column(Feature(name, "fixed"), f"{len(levels)} different texts, one per row: an identifier", left_out=True)
    if len(levels) > MOST_LEVELS:
        return Column(Feature(name, "fixed"), f"{len(levels)} different texts: kept as it is")
    return Column(Feature(name, "category", levels=tuple(levels), ordered=ordered))


def _numbers(name: str, column: pd.Series, gone: int) -> Column:
    values = column.to_numpy(dtype=float, na_value=np.nan)
    finite = values[np.isfinite(values)]
    endless = "" if len(finite) + gone == len(values) else "holds infinite values, which nothing accepts"
    if not len(finite):
        return Column(Feature(name, "fixed"), endless)
    low, high = float(finite.min()), float(finite.max())
    if column.dtype.kind == "b":
        return Column(Feature(name, "binary"), "", values, zero_one=low < high)
    if low == high:
        return Column(Feature(name, "fixed"), _both(endless, f"only {low:g} in all rows"))
    whole = bool(np.equal(finite, np.round(finite)).all())
    zero_one = whole and low == 0 and high == 1
    if column.dtype.kind in "iu" or (whole and gone):  # pandas turns whole numbers into decimals where one is missing
        if max(abs(low), abs(high)) > LARGEST_WHOLE:
            return Column(Feature(name, "fixed"), "whole numbers beyond 2^53: an identifier", left_out=True)
        if zero_one:
            guess = "" if column.dtype.kind in "iu" else "holds only 0, 1 and missing values: taken for binary"
            return Column(Feature(name, "binary"), guess, values, zero_one=True)
        distinct = np.unique(finite)
        if len(distinct) == len(values) >= MANY and (is_identifier(name) or high - low == len(values) - 1):
            what = "counts the rows" if high - low == len(values) - 1 else "a whole number of its own in every row"
            return Column(Feature(name, "fixed"), f"{what}: an identifier", left_out=True)
        if len(values) >= MANY and (len(distinct) == 2 or (len(distinct) <= MOST_LEVELS and is_code(name))):
            told = "only two numbers" if len(distinct) == 2 else "whole numbers under such a name"
            remark = _both(endless, f"{told}: taken for codes, not amounts; write ordered: true if they rank, or type: integer")
            return Column(Feature(name, "category", levels=tuple(int(v) for v in distinct)), remark, values)
        return Column(Feature(name, "integer", bounds=(int(low), int(high))), _both(endless, _sign(finite, distinct)), values)
    remark = ""
    if zero_one:
        remark = "holds only 0 and 1, as decimals: write type: binary if it is a yes or no"
    elif whole:
        remark = "holds only whole numbers, as decimals: write type: integer if it is a count"
    return Column(Feature(name, "real", bounds=(_short(low), _short(high))), _both(endless, remark), values, zero_one=zero_one)


def _sign(values: npt.NDArray[np.float64], distinct: npt.NDArray[np.float64]) -> str:
    """Return a remark where the lowest or highest number looks like a sign for a missing value: -9, -99, 999, 99999, far from all others."""
    for at, others in ((0, distinct[1:]), (-1, distinct[:-1])):
        number = distinct[at]
        nines = re.fullmatch(r"-9+|9{3,}", str(int(number)))
        if nines and len(others) > 2 and (others.min() >= 0 if at == 0 else abs(others).max() < number / 2):
            return f"{int(number)} in {int((values == number).sum())} rows, far from all others: a sign for a missing value, or a cap?"
    return ""


def _short(value: float) -> float:
    return int(value) if value.is_integer() and math.fabs(value) < 1e15 else value


def _both(*remarks: str) -> str:
    return "; ".join(r for r in remarks if r)
