"""Predictor: the one small protocol that everything which predicts is turned into."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from budge.errors import BudgeError, DataError, ModelError
from budge.models.contained import contained, reason
from budge.models.reading import Ask, Output, Reading, check_order
from budge.models.resolve import Resolved, UnfitError, fatal, resolve
from budge.models.rows import Array, Rows, count, match_columns, take

__all__ = ["BATCH_ROWS", "MAX_CALLS", "Adapted", "Engine", "Predictor"]

#: Rows a call: large enough for full speed, small enough for flat memory.
BATCH_ROWS = 100_000
#: Further calls that `predict_resolved` makes to find the rows on which a model fails.
MAX_CALLS = 1000


@runtime_checkable
class Predictor(Protocol):
    """What the rest of the library knows of a model.

    Attributes
    ----------
    name
        What to call it in messages and reports.
    output
        ``label`` or ``score``.
    classes
        The labels it knows, as Python values, or None.
    columns
        The columns it expects, or None if it takes the table as it comes.
    bounds
        Where its scores lie, if that is known: (0, 1) for probabilities.
    """

    @property
    def name(self) -> str:
        """What to call it."""

    @property
    def output(self) -> Output:
        """Labels or scores."""

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """The labels that it knows."""

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns that it expects."""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Where its scores lie."""

    def predict(self, frame: Rows) -> Array:
        """One output a row; raises if any row has none."""

    def predict_resolved(self, frame: Rows, *, max_calls: int = MAX_CALLS) -> Resolved:
        """Outputs, and which rows have one."""

    def digest(self) -> str | None:
        """A digest of the model's content and of how it is read; None if there is no content to see."""

    def describe(self) -> str:
        """One English sentence."""


class Engine(Protocol):
    """What an adapter supplies: the model's own answers, unread. Rows come with its columns, in its order."""

    @property
    def name(self) -> str:
        """The model's type, as its users know it."""

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names seen in training."""

    @property
    def width(self) -> int | None:
        """The number of columns, where no names were seen."""

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """Labels seen in training."""

    @property
    def asks(self) -> tuple[Ask, ...]:
        """What it can be asked for; the first is what it answers by default."""

    def answer(self, rows: Rows, ask: Ask) -> object:
        """Its answer, an array or anything that can be read as one."""

    def digest(self) -> str | None:
        """Digest of its content."""

    def alias(self, name: str) -> str:
        """How it rewrites a column's name."""


def _named(classes: Sequence[object]) -> str:
    """Return the classes in words, cut to a readable length."""
    shown = [repr(label.item() if isinstance(label, np.generic) else label) for label in classes]
    if len(shown) > 12:
        return ", ".join(shown[:12]) + f", … ({len(shown)} in all)"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]])) if shown else ""


@dataclass(frozen=True, kw_only=True)
class Adapted:
    """A model and how it is read; made by `as_predictor`."""

    engine: Engine
    reading: Reading
    columns: tuple[str, ...] | None = None
    batch_rows: int = BATCH_ROWS

    @property
    def name(self) -> str:
        """The model's type, as its users know it."""
        return self.engine.name

    @property
    def output(self) -> Output:
        """Labels or scores."""
        return self.reading.output

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """The labels that the model knows; for scores, those behind them."""
        return self.reading.classes

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Where its scores lie, if that is known."""
        return self.reading.bounds

    def predict(self, frame: Rows) -> Array:
        """One output a row.

        Raises
        ------
        ModelError
            If columns are missing, the model raises, or its answer cannot be read.
        """
        rows = self._matched(frame)
        pieces = []
        for start in range(0, count(rows), self.batch_rows):
            piece = take(rows, start, start + self.batch_rows)
            try:
                outputs, missing = self._read(piece)
            except Exception as error:
                self._explain(error)
            if missing is not None:
                where = start + int(np.flatnonzero(missing)[0])
                what = f"{int(missing.sum())} of {count(piece)} outputs are None or NaN, the first at row {where}"
                raise ModelError(what, where=self.name, remedy="predict_resolved() gives the others")
            pieces.append(outputs)
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def predict_resolved(self, frame: Rows, *, max_calls: int = MAX_CALLS) -> Resolved:
        """Outputs, and which rows have one: rows on which the model raises, or answers None or NaN, are left unresolved."""
        rows = self._matched(frame)
        try:
            return resolve(self._read, rows, batch_rows=self.batch_rows, max_calls=max_calls, label=self.output == "label")
        except Exception as error:
            self._explain(error)

    def digest(self) -> str | None:
        """Digest of the model's content and of how it is read."""
        content = self.engine.digest()
        if content is None:
            return None
        how = [repr(self.reading), self.columns, content]
        return hashlib.sha256(json.dumps(how).encode()).hexdigest()

    def describe(self) -> str:
        """One English sentence."""
        reading, outputs = self.reading, "a score"
        if self.output == "label":
            outputs = f"the labels {_named(self.classes)}" if self.classes is not None else "labels"
            if reading.threshold is not None and self.classes:
                outputs += f": {self.classes[reading.column]!r} where its {reading.ask} is at least {reading.threshold:g}"
        elif self.classes and reading.ask == "probability":
            outputs = f"the probability of {self.classes[reading.column]!r}"
        return f"{self.name} predicts {outputs}" + ("." if self.columns is None else f", from {len(self.columns)} columns.")

    def fresh(self) -> Adapted:
        """A predictor of the same model that takes nothing from a cache: itself."""
        return replace(self)

    def _matched(self, frame: Rows) -> Rows:
        if not isinstance(frame, pd.DataFrame | np.ndarray):
            kind = f"{type(frame).__module__}.{type(frame).__qualname__}"
            raise DataError("a pandas table is expected, or a NumPy array", where="input", got=kind)
        if count(frame) == 0:
            raise DataError("there are no rows to predict", where="input", got=frame.shape)
        return match_columns(frame, self.columns, width=self.engine.width, alias=self.engine.alias)

    def _read(self, rows: Rows) -> tuple[Array, Any]:
        with contained(self.name):
            answer = self.engine.answer(rows, self.reading.ask)
            if isinstance(answer, pd.Series | pd.DataFrame) and isinstance(rows, pd.DataFrame):
                check_order(answer.index, rows.index)
            outputs, missing = self.reading.read(answer, count(rows))
            return outputs.copy(), missing  # a model may use its memory again

    def _explain(self, error: Exception) -> NoReturn:
        if isinstance(error, ModelError):
            raise type(error)([replace(p, where=p.where or self.name) for p in error.problems]) from error
        if isinstance(error, MemoryError | BudgeError):
            raise error
        kind = UnfitError if fatal(error) else ModelError
        raise kind(f"predicting raised {reason(error)}", where=self.name) from error
