"""What values of a column become on their way into a model: taken from the fitted transformers, not derived again."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.features import Feature
from budge.frames import Coding, level_key
from budge.proof.structure import BoolArray, Column, FloatArray, IntArray, UnreadableError

__all__ = ["Inputs", "Kind", "Source", "Stage", "Step", "Table", "above", "dense", "feature_of", "largest"]

#: What a transformer does to numbers: leaves them, moves and stretches them, bends them without turning, or tells values or ranges apart.
Kind = Literal["keep", "affine", "monotone", "equal", "bins"]
FARTHEST = 1e200  # numbers beyond are taken to act as this one


@dataclass(frozen=True)
class Table:
    """The columns and the rows of the table that a model is read on."""

    columns: tuple[Column, ...]
    frame: pd.DataFrame

    def whole(self, j: int) -> bool:
        """Return whether only whole numbers are written into the column."""
        return self.columns[j].whole or getattr(self.frame.dtypes.iloc[j], "kind", "O") == "b"

    def written(self, j: int, codes: FloatArray) -> Any:
        """Return coded values of a column as the caller's type."""
        column = self.columns[j]
        if column.levels is None:
            dtype = self.frame.dtypes.iloc[j]
            small = isinstance(dtype, np.dtype) and dtype.kind == "f" and dtype.itemsize < 8
            with np.errstate(over="ignore"):
                return codes.astype(dtype) if small else codes
        like = self.frame.iloc[:, [j]]
        coding = Coding((feature_of(column),), frozenset([column.name]))
        return coding.decode(codes[:, None], like, np.zeros(len(codes), dtype=np.intp)).iloc[:, 0]


def feature_of(column: Column, whole: bool = False) -> Feature:
    """Return a feature that writes the values of a column."""
    kind = "category" if column.levels is not None else "integer" if column.whole or whole else "real"
    return Feature(column.name, kind, levels=column.levels)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Stage:
    """A fitted transformer and a row of what it is given."""

    transformer: Any
    base: Any
    memo: dict[Any, FloatArray] = field(default_factory=dict)  # where numbers change, by what is on the way

    def apply(self, position: int, values: Any) -> Any:
        """Return the transformer's outputs for rows that hold these values at a position, a matrix."""
        n = len(values)
        if isinstance(self.base, pd.DataFrame):
            rows: Any = self.base.iloc[np.zeros(n, dtype=int)].reset_index(drop=True)
            rows.isetitem(position, values)  # a Series keeps its dtype
        else:
            values = np.asarray(values)
            rows = np.tile(self.base, (n, 1)).astype(np.result_type(self.base.dtype, values.dtype))
            if rows.dtype.kind == "f" and values.dtype.kind == "f":  # what overflowed before stays a number
                top = np.finfo(rows.dtype).max
                values = np.clip(values, -top, top)
            rows[:, position] = values
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            out = self.transformer.transform(rows)
        return out.to_numpy() if isinstance(out, pd.DataFrame) else out


@dataclass(frozen=True)
class Step:
    """One transformer on the way of a value: it comes in at a position and leaves as an output."""

    stage: Stage
    position: int
    output: int
    kind: Kind


@dataclass(frozen=True)
class Source:
    """The column of the table that an input reads, and the transformers on the way."""

    column: int
    path: tuple[Step, ...] = ()

    @property
    def kinds(self) -> frozenset[Kind]:
        """What happens to numbers on the way."""
        return frozenset(step.kind for step in self.path)

    @property
    def cells(self) -> bool:
        """Whether values or ranges are told apart on the way, so that the input has finitely many values."""
        return bool(self.kinds & {"equal", "bins"})


@dataclass(frozen=True)
class Inputs:
    """What a model is given: the source of every input, and a few rows as they arrive there."""

    table: Table
    sources: tuple[Source, ...]
    sample: Any
    native: Mapping[int, Mapping[Any, float]] = field(default_factory=dict)  # columns whose levels the model numbers itself

    @property
    def sparse(self) -> bool:
        """Whether the model is given a sparse matrix."""
        return hasattr(self.sample, "toarray")

    @property
    def epsilon(self) -> float:
        """Return the rounding of the arithmetic on the way: that of float32 where a transformer, or the model, is given nothing wider."""
        seen = [self.sample, *(step.stage.base for source in self.sources for step in source.path)]
        return 2.0**-23 if any(_single(rows) for rows in seen) else 2.0**-52

    def of(self, j: int) -> IntArray:
        """Return the inputs that read a column."""
        return np.array([k for k, source in enumerate(self.sources) if source.column == j], dtype=np.intp)

    def take(self, at: Sequence[int]) -> Inputs:
        """Return some of the inputs."""
        sample = self.sample.iloc[:, list(at)] if isinstance(self.sample, pd.DataFrame) else self.sample[:, list(at)]
        return replace(self, sources=tuple(self.sources[k] for k in at), sample=sample)

    def values(self, j: int, codes: FloatArray, only: IntArray | None = None) -> FloatArray:
        """Return what coded values of a column become, one column per input that reads it (or per input of `only`)."""
        codes = np.asarray(codes, dtype=float)
        written = self.table.written(j, codes)
        chosen = self.of(j) if only is None else only
        found, memo = np.empty((len(codes), len(chosen))), {}  # type: ignore[var-annotated]
        for i, k in enumerate(chosen):
            path = self.sources[k].path
            found[:, i] = self._coded(j, codes) if not path else _numbers(_through(path, written, memo), self.table.columns[j])
        return found

    def levels(self, j: int) -> FloatArray:
        """Return what the levels of a column become, (levels, inputs that read it)."""
        column = self.table.columns[j]
        assert column.levels is not None
        places = np.arange(len(column.levels), dtype=float)
        try:
            return self.values(j, places)
        except (ValueError, TypeError, KeyError) as error:
            for place in places:
                try:
                    self.values(j, np.array([place]))
                except (ValueError, TypeError, KeyError):
                    raise UnreadableError(
                        f"the preprocessing refuses the level {column.levels[int(place)]!r} of {column.name}"
                    ) from error
            raise UnreadableError(f"the levels of {column.name} cannot be passed through the preprocessing: {error}") from error

    def missing(self, j: int) -> FloatArray | None:
        """Return what a missing value of a column becomes; None where the preprocessing refuses it, or the column cannot hold it."""
        dtype = self.table.frame.dtypes.iloc[j]
        if isinstance(dtype, np.dtype) and dtype.kind in "biu":
            return None
        held = not isinstance(dtype, np.dtype) or dtype.kind == "f" or self.table.frame.iloc[:, j].isna().any()
        try:
            return self.values(j, np.array([np.nan]))[0] if held else None
        except (ValueError, TypeError, KeyError, IndexError):
            return None

    def breaks(self, k: int) -> FloatArray:
        """Return where an input over numbers changes: each is the largest number of its range; ascending."""
        source = self.sources[k]
        whole = self.table.whole(source.column)
        at = next(i for i, step in enumerate(source.path) if step.kind in ("equal", "bins"))
        step = source.path[at]
        name = type(step.stage.transformer).__name__
        if any(before.kind != "keep" for before in source.path[:at]):
            raise UnreadableError(f"{self.table.columns[source.column].name} is scaled before {name} tells its values apart")
        memo: dict[Any, Any] = {}
        if step.kind == "equal":
            known = [
                v
                for v in step.stage.transformer.categories_[step.position]
                if isinstance(v, int | float | np.number) and np.isfinite(v)
            ]
            marks = np.repeat(np.unique(np.asarray(known, dtype=float)), 2)
            strict = np.arange(len(marks)) % 2 == 0

            def left(codes: FloatArray) -> BoolArray:
                seen = np.asarray(self.table.written(source.column, codes), dtype=float)
                return np.asarray(np.where(strict, seen < marks, seen <= marks))
        else:
            edges = len(step.stage.transformer.bin_edges_[step.position]) - 2
            marks = np.arange(edges, dtype=float)
            outs = [
                s.path[at].output
                for s in self.sources
                if len(s.path) > at and s.path[:at] == source.path[:at] and _same(s.path[at], step)
            ]

            def left(codes: FloatArray) -> BoolArray:
                memo.clear()
                values = step.stage.apply(
                    step.position, _through(source.path[:at], self.table.written(source.column, codes), memo)
                )
                found = dense(values[:, sorted(outs)])
                return np.asarray((found[:, 0] if step.stage.transformer.encode == "ordinal" else found.argmax(axis=1)) <= marks)

        key = (source.column, *((id(s.stage), s.position, s.output) for s in source.path[:at]), step.position)
        if key not in step.stage.memo:
            found = largest(len(marks), left, whole) if len(marks) else np.zeros(0)
            step.stage.memo[key] = np.unique(found[np.isfinite(found)])
        return step.stage.memo[key]

    def _coded(self, j: int, codes: FloatArray) -> FloatArray:
        """Return the codes of values that reach the model as they are."""
        column = self.table.columns[j]
        if column.levels is None:
            return np.asarray(self.table.written(j, codes), dtype=float)
        if j in self.native:
            numbers = [self.native[j].get(level_key(level), np.nan) for level in column.levels]
        elif all(isinstance(level, int | float | np.number | np.bool_) for level in column.levels):
            numbers = [float(level) for level in column.levels]
        else:
            raise UnreadableError(f"the levels of {column.name} reach the model without an encoding that can be read")
        found: FloatArray = np.array([np.nan, *numbers])[np.where(np.isnan(codes), 0, codes + 1).astype(int)]
        return found


def _single(rows: Any) -> bool:
    dtypes = list(rows.dtypes) if isinstance(rows, pd.DataFrame) else [rows.dtype]
    return all(isinstance(d, np.dtype) for d in dtypes) and np.result_type(*dtypes) in (np.float32, np.float16)


def _same(a: Step, b: Step) -> bool:
    return a.stage is b.stage and a.position == b.position


def dense(values: Any) -> npt.NDArray[Any]:
    """Return a matrix that may be sparse as an array."""
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)


def _through(path: tuple[Step, ...], values: Any, memo: dict[Any, Any]) -> Any:
    """Return what values become along a path; what several inputs share is computed once."""
    if not path:
        return values
    key = (*((id(s.stage), s.position, s.output) for s in path[:-1]), id(path[-1].stage), path[-1].position)
    if key not in memo:
        out = path[-1].stage.apply(path[-1].position, _through(path[:-1], values, memo))
        memo[key] = out.tocsc() if hasattr(out, "tocsc") else out
    column = memo[key][:, [path[-1].output]]
    return dense(column)[:, 0]


def _numbers(values: Any, column: Column) -> FloatArray:
    try:
        return np.asarray(values, dtype=float)
    except (ValueError, TypeError):
        raise UnreadableError(f"the levels of {column.name} reach the model without an encoding that can be read") from None


def largest(n: int, left: Callable[[FloatArray], BoolArray], whole: bool) -> FloatArray:
    """Return, for n tests that hold up to some number, the largest one for which each holds: infinite where it is all, or none.

    The search halves the ordered floats (or whole numbers), so it ends at neighbours.
    """
    a, b = np.full(n, -(2**53) if whole else _rank(-FARTHEST)), np.full(n, 2**53 if whole else _rank(FARTHEST))
    value = (lambda r: r.astype(float)) if whole else _unrank
    none, every = ~left(value(a)), left(value(b))
    while True:
        middle = a // 2 + b // 2 + (a % 2 + b % 2) // 2  # b - a can overflow
        if (middle == a).all():
            break
        go = left(value(middle))
        a, b = np.where(go, middle, a), np.where(go, b, middle)
    return np.where(every, np.inf, np.where(none, -np.inf, value(a)))


def above(values: FloatArray, whole: bool) -> FloatArray:
    """Return the next number above each."""
    return np.floor(values) + 1.0 if whole else np.nextafter(values, np.inf)


def _rank(value: float) -> int:
    bits = int(np.float64(value).view(np.int64))
    return -(2**63) - bits if bits < 0 else bits


def _unrank(ranks: npt.NDArray[np.int64]) -> FloatArray:
    return np.where(ranks < 0, np.int64(-(2**63)) - ranks, ranks).astype(np.int64).view(np.float64)
