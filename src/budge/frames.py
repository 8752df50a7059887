"""Between the caller's table and budge's numbers.

The model under audit must get the dtypes, labels and column order that it was trained on. So a table is read into
numbers once (all problems at once, each with its row and column), and points are written back as the caller's types.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.errors import DataError, Problem, nearest
from budge.features import LARGEST_WHOLE, Feature
from budge.origins import from_native, keep_origin

__all__ = ["Coding", "check_labels", "level_key", "one_row", "table"]

FloatArray = npt.NDArray[np.float64]


@cache
def _keep_memory() -> None:
    """Make and free one large array: from then on glibc keeps memory of this size for the next table, where it returned it to the system."""
    np.empty(31 << 20, dtype=np.uint8)


def table(X: Any) -> pd.DataFrame:
    """The caller's table (pandas, polars, Arrow, ...) as a DataFrame; anything else is an error that says so."""
    if isinstance(X, pd.DataFrame):
        frame = X
    elif isinstance(X, pd.Series) or (isinstance(X, np.ndarray) and X.ndim == 1):
        raise DataError(
            "a table is expected, not a vector",
            got=f"{type(X).__name__} of length {len(X)}",
            remedy="pass a DataFrame; one person is df.iloc[[0]]",
        )
    elif isinstance(X, np.ndarray):
        raise DataError(
            "a table with column names is expected",
            got=f"array of shape {X.shape}",
            remedy="wrap it: pd.DataFrame(array, columns=[...])",
        )
    else:
        try:
            frame = from_native(X)
        except TypeError:
            raise DataError("a table is expected", got=type(X).__name__, remedy="pass a pandas, polars or Arrow table") from None
    if frame.columns.has_duplicates:
        twice = sorted({str(c) for c in frame.columns[frame.columns.duplicated()]})
        raise DataError("column labels occur twice", got=twice, remedy="rename the columns")
    if frame.shape[1] == 0:
        raise DataError("the table has no columns")
    if len(frame) == 0:
        raise DataError("the table has no rows")
    check_labels(frame.index)
    if frame.index.has_duplicates:
        label = frame.index[frame.index.duplicated()][0]
        raise DataError(
            "the index has a label twice, so people cannot be told apart", got=label, remedy="use X.reset_index(drop=True)"
        )
    return frame


def check_labels(labels: pd.Index) -> None:
    """Raise an error where somebody has no label: nobody could ask for them by name."""
    if labels.nlevels == 1 and labels.hasnans:
        where = f"row {int(np.flatnonzero(labels.isna())[0])}"
        raise DataError("somebody has no label", where=where, remedy="fill the column of labels, or use another one")


def one_row(x: Any, names: Sequence[str] = ()) -> pd.DataFrame:
    """One person as a table of one row: a row of a DataFrame, a Series, a mapping, or an array in the order of the features."""
    if isinstance(x, pd.Series):
        frame = x.to_frame().T
        return frame.infer_objects() if x.dtype == object else frame
    if isinstance(x, Mapping):
        return pd.DataFrame({name: [value] for name, value in x.items()})
    if isinstance(x, np.ndarray | list | tuple):
        flat = np.asarray(x)
        if flat.ndim == 2 and flat.shape[0] == 1:
            flat = flat[0]
        if flat.shape != (len(names),):
            raise DataError(f"one person has {len(names)} values, one for each feature", got=f"shape {flat.shape}")
        return pd.DataFrame([flat.tolist()], columns=list(names))
    frame = table(x)
    if len(frame) != 1:
        raise DataError("one person is expected", got=f"{len(frame)} rows", remedy="pass df.iloc[[0]]")
    return frame


@dataclass(frozen=True)
class Coding:
    """Reads and writes the columns of the declared features."""

    features: tuple[Feature, ...]
    moving: frozenset[str] = frozenset()  # those whose value can change: a real one among them is written as a float

    @property
    def floats(self) -> frozenset[str]:
        """The columns that are written as floats, whatever they held."""
        return frozenset(f.name for f in self.features if f.name in self.moving and f.type == "real")

    def encode(self, frame: pd.DataFrame) -> FloatArray:
        """The declared columns as numbers, one row a person; every problem is raised at once."""
        found: list[Problem] = []
        values = np.empty((len(frame), len(self.features)))
        for j, feature in enumerate(self.features):
            if feature.name not in frame.columns:
                found.append(
                    Problem(
                        f"column {feature.name}",
                        "is missing from the table",
                        remedy=nearest(feature.name, map(str, frame.columns)),
                    )
                )
                continue
            values[:, j] = _read(feature, frame[feature.name], found)
        DataError.raise_if(found)
        return values + 0.0  # -0.0 draws as 0.0 does

    def decode(self, values: FloatArray, like: pd.DataFrame, rows: npt.NDArray[np.intp]) -> pd.DataFrame:
        """Points as a table with the caller's columns, order and dtypes.

        `rows[i]` tells which row of `like` point i started from; columns that are not declared are copied from it.
        """
        moving = {f.name: values[:, j] for j, f in enumerate(self.features) if f.name in self.moving}
        return self._written(moving, like, rows, None)

    def write(
        self, moved: Mapping[str, FloatArray], like: pd.DataFrame, people: npt.NDArray[np.intp], n: int | npt.NDArray[np.intp]
    ) -> pd.DataFrame:
        """Return the same from the columns that can move: n points (each, or one number per row) for these rows of `like`, row by row."""
        if isinstance(n, np.ndarray):
            return self._written(moved, like, np.repeat(people, n), None)
        return self._written(moved, like, people, n)

    def _written(
        self, moved: Mapping[str, FloatArray], like: pd.DataFrame, rows: npt.NDArray[np.intp], times: int | None
    ) -> pd.DataFrame:
        _keep_memory()
        features = {feature.name: feature for feature in self.features}
        every = rows if times is None else None
        columns: dict[Any, Any] = {}
        plain: dict[np.dtype[Any], list[tuple[Any, Any, bool]]] = {}
        kinds = list(like.dtypes)
        matrix = like.to_numpy() if len(set(kinds)) == 1 and _is_plain(kinds[0]) else None  # read at once, not column by column
        for j, (label, kind) in enumerate(zip(like.columns, kinds)):
            if isinstance(label, str) and label in moved:
                dtype = _plain(features[label], moved[label], kind, drawn=times is not None)
                if dtype is None:
                    columns[label] = _write(features[label], moved[label], like[label])
                else:
                    plain.setdefault(dtype, []).append((label, moved[label], True))
            elif _is_plain(kind):
                values = like[label].to_numpy() if matrix is None else matrix[:, j]
                plain.setdefault(kind, []).append((label, values[rows], False))
            elif isinstance(kind, np.dtype):
                values = like[label].to_numpy()[rows]
                columns[label] = values if times is None else np.repeat(values, times)
            else:
                every = np.repeat(rows, times or 1) if every is None else every
                columns[label] = like[label].array.take(every)
        for dtype, found in plain.items():  # one piece of memory for all columns of a type: large pages, few faults
            room = np.empty((len(found), len(rows) * (times or 1)), dtype=dtype)
            for line, (label, values, moves) in zip(room, found):
                if moves:
                    np.copyto(line, values, casting="unsafe")
                else:
                    line.reshape(len(rows), times or 1)[:] = values[:, None]
                columns[label] = line
            if len(found) == like.shape[1]:
                return keep_origin(pd.DataFrame(room.T, columns=like.columns, copy=False), like, but=self.floats)
        for label, values in columns.items():  # pandas would guess a type for objects: they stay what they are
            if isinstance(values, np.ndarray) and values.dtype == object:
                columns[label] = pd.Series(values, dtype=object)
        return keep_origin(pd.DataFrame(columns, columns=like.columns, copy=False), like, but=self.floats)


def _read(feature: Feature, column: pd.Series, found: list[Problem]) -> FloatArray:
    """One column as numbers; what cannot be read is a problem and stays NaN."""
    if feature.type == "fixed":
        return _loose(column)
    gone = np.isnan(column.to_numpy()) if _is_plain(column.dtype) else column.isna().to_numpy()
    result = np.full(len(column), np.nan)
    if gone.any() and feature.missing == "error":
        _cells(found, column, gone, "a value is missing", "fill it, or declare missing: fixed")
    if feature.levels is not None:
        position = {level_key(level): float(i) for i, level in enumerate(feature.levels)}
        unique, inverse = _unique(column)
        codes = np.array([position.get(level_key(v), -1.0) for v in unique])
        result = np.where(gone, np.nan, codes[inverse])
        strange = (result == -1.0) & ~gone
        if strange.any():
            _cells(
                found,
                column,
                strange,
                f"not a level of {feature.name}",
                f"levels: {', '.join(repr(v) for v in feature.levels[:8])}",
            )
        return np.asarray(result)
    if column.dtype.kind == "M" or isinstance(column.dtype, pd.DatetimeTZDtype | pd.PeriodDtype):
        found.append(
            Problem(f"column {feature.name}", "holds dates, a number is expected", str(column.dtype), "convert it to a number")
        )
        return result
    numbers, strange = _numbers(column, gone)
    if strange.any():
        text = pd.to_numeric(column[strange].astype(str), errors="coerce").isna().to_numpy()
        if text.any():  # the cell that made the column a text comes first
            strange = strange.copy()
            strange[np.flatnonzero(strange)[~text]] = False
        _cells(found, column, strange, "not a number", "declare it a category, or clean the column")
    result = np.where(gone | strange, np.nan, numbers)
    endless = np.isinf(result)
    if endless.any():
        _cells(found, column, endless, "an infinite value", "cap it")
    if feature.type == "binary":
        odd = ~np.isnan(result) & ~endless & (result != 0) & (result != 1)
        if odd.any():
            _cells(found, column, odd, "a binary feature is 0 or 1", "declare it integer or real")
    elif feature.type == "integer":
        odd = ~np.isnan(result) & ~endless & (result != np.round(result))
        if odd.any():
            _cells(found, column, odd, "an integer feature holds a fraction", "round it, or declare it real")
        huge = ~endless & (np.abs(result) > LARGEST_WHOLE)
        if huge.any():
            _cells(found, column, huge, "whole numbers beyond 2^53 cannot be told apart", "declare it real, or rescale it")
    return np.asarray(result)


def _numbers(column: pd.Series, gone: npt.NDArray[np.bool_]) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """The column as floats, and where that failed. Text is never read as a number."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype if not gone.any() else object)
    kind = getattr(column.dtype, "kind", "O")
    if kind in "biuf" and isinstance(column.dtype, np.dtype):
        return column.to_numpy().astype(float), np.zeros(len(column), dtype=bool)
    if kind in "biuf":
        return column.to_numpy(dtype=float, na_value=np.nan), np.zeros(len(column), dtype=bool)
    numbers, strange = np.full(len(column), np.nan), np.zeros(len(column), dtype=bool)
    for i, cell in enumerate(column.to_numpy(dtype=object)):
        if gone[i]:
            continue
        if isinstance(cell, int | float | np.number | np.bool_) and not isinstance(cell, complex):
            numbers[i] = float(cell)
        else:
            strange[i] = True
    return numbers, strange


def _loose(column: pd.Series) -> FloatArray:
    """A fixed column: its number where it is one; else a stable number of its text, for the identity of the row alone."""
    if getattr(column.dtype, "kind", "O") in "biuf":
        return column.to_numpy(dtype=float, na_value=np.nan)
    from hashlib import blake2b

    unique, inverse = _unique(column)
    coded = [int.from_bytes(blake2b(repr(v).encode(), digest_size=6).digest(), "big") for v in unique]
    return np.asarray(coded, dtype=float)[inverse]


def _unique(column: pd.Series) -> tuple[list[Any], npt.NDArray[np.intp]]:
    codes, unique = pd.factorize(column.astype(object), use_na_sentinel=False)
    return list(unique), codes


def level_key(level: Any) -> Any:
    """Return what tells levels apart: 1, True and '1' are three."""
    if isinstance(level, bool | np.bool_):
        return ("bool", bool(level))
    if isinstance(level, int | float | np.number):
        return ("number", level.item() if isinstance(level, np.number) else level)  # not as a float: 2^53 and 2^53 + 1 are two levels
    return ("text", str(level)) if isinstance(level, str) else ("other", None)


def _cells(found: list[Problem], column: pd.Series, bad: Iterable[bool], what: str, remedy: str) -> None:
    """One problem for a column: its first bad cell, and how many more there are."""
    places = np.flatnonzero(np.asarray(bad))
    cell = column.iloc[int(places[0])]
    cell = cell.item() if isinstance(cell, np.generic) else cell
    more = f" (and {len(places) - 1} more row{'s' if len(places) > 2 else ''})" if len(places) > 1 else ""
    found.append(Problem(f"row {column.index[int(places[0])]}, column {column.name}", what + more, cell, remedy))


def _is_plain(kind: Any) -> bool:
    return isinstance(kind, np.dtype) and kind.kind in "biuf"


def _plain(feature: Feature, values: FloatArray, dtype: Any, drawn: bool) -> np.dtype[Any] | None:
    """The type as which numbers are written where a plain cast will do: what most columns are."""
    if feature.levels is not None or not isinstance(dtype, np.dtype) or not len(values):
        return None
    if dtype.kind == "f":
        return dtype
    if dtype.kind in "iu" and feature.type != "real":
        if drawn and dtype == np.int64 and feature.missing == "error" and max(map(abs, feature.range)) <= LARGEST_WHOLE:
            return dtype  # a start is within 2^53 and so are its draws: there is nothing to look for
        span: Any = np.iinfo(dtype.name)
        return dtype if span.min <= values.min() and values.max() <= span.max else None
    return None


def _marker(column: pd.Series) -> Any:
    """What the caller's column holds where a value is missing: None, NaN or NA."""
    return column[column.isna()].iloc[0]


def _type_of_levels(levels: Sequence[Any], dtype: Any) -> Any:
    """Return the column's type if it holds every level as it is (2.5 among whole numbers would become 2), else float or object."""
    kind: Any
    for kind in (dtype, np.dtype(float)):
        try:
            held = pd.array(list(levels), dtype=kind)
        except (TypeError, ValueError, OverflowError):
            continue
        if kind is dtype and getattr(kind, "kind", "O") == "f" and not any(isinstance(v, str | bool) for v in levels):
            return kind  # as exact as the column is
        if all(level_key(a) == level_key(b) for a, b in zip(held, levels)):
            return kind
    return object


def _write(feature: Feature, values: FloatArray, column: pd.Series) -> Any:
    """Numbers as the caller's type; a type that cannot hold them is widened, never wrapped."""
    dtype = column.dtype
    gone = np.isnan(values)
    if feature.levels is not None and not isinstance(dtype, np.dtype):
        codes = (np.where(gone, -1, values) if gone.any() else values).astype(np.intp)
        if isinstance(dtype, pd.CategoricalDtype):
            known = list(dtype.categories)
            known += [v for v in feature.levels if v not in known]
            place = np.array([*(known.index(v) for v in feature.levels), -1], dtype=np.min_scalar_type(-len(known)))  # the last is for what is missing
            return pd.Categorical.from_codes(place[codes], categories=known, ordered=dtype.ordered, validate=False)  # type: ignore[call-overload]
        spelled: Any = _type_of_levels(feature.levels, dtype)
        return pd.array(list(feature.levels), dtype=spelled).take(codes, allow_fill=True)
    if feature.levels is not None:
        labels = np.array(feature.levels, dtype=object)[np.where(gone, 0, values).astype(int)]
        if gone.any():
            labels[gone] = _marker(column)
        return labels.astype(_type_of_levels(feature.levels, dtype)) if dtype.kind in "biufUS" and not gone.any() else labels
    if isinstance(dtype, pd.CategoricalDtype):
        whole = values.astype(np.int64) if feature.discrete and not gone.any() else values
        return pd.Categorical(whole, categories=np.union1d(np.asarray(dtype.categories), whole), ordered=dtype.ordered)
    kind = getattr(dtype, "kind", "O")
    if kind == "O":
        nothing = _marker(column) if gone.any() else None
        plain: list[Any] = [nothing if g else (int(v) if feature.discrete else float(v)) for v, g in zip(values, gone)]
        return np.array(plain, dtype=object)
    if kind in "iu" and feature.type == "real":
        dtype, kind = np.dtype(float), "f"
    if kind == "b" and not set(np.unique(values[~gone])) <= {0.0, 1.0}:
        dtype, kind = np.dtype(np.int64), "i"
    if isinstance(dtype, np.dtype):
        if kind in "iu":
            span: Any = np.iinfo(dtype.name)
            if len(values) and (values.min() < span.min or values.max() > span.max):
                dtype = np.dtype(np.int64)
        return values.astype(dtype)
    nullable: Any = dtype
    return pd.array([None if g else v for v, g in zip(values.tolist(), gone)] if gone.any() else values, dtype=nullable)
