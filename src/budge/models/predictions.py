"""A file of predictions: for models that never leave their owner.

The auditor hands out points, each with a key; the owner returns the keys with predictions; the audit looks them up. A point
without a prediction is unresolved, never guessed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from budge.errors import DataError, nearest
from budge.models.choose import Wanted, choose_reading
from budge.models.digests import sha256
from budge.models.keys import point_keys
from budge.models.predictor import MAX_CALLS
from budge.models.reading import Ask, Output, Reading, as_array, list_classes
from budge.models.resolve import Resolved, all_or_raise
from budge.models.rows import Array, Rows
from budge.tables import load

__all__ = ["PredictionFile"]


@dataclass(frozen=True, kw_only=True, eq=False)
class PredictionFile:
    """Predictions by key; a `Predictor`. Made by `PredictionFile.read` or `PredictionFile.from_frame`.

    Examples
    --------
    >>> points = pd.DataFrame({"income": [500, 3000]})
    >>> returned = pd.DataFrame({"key": point_keys(points), "prediction": ["no", "yes"]})
    >>> PredictionFile.from_frame(returned).predict(points.iloc[::-1]).tolist()
    ['yes', 'no']
    """

    name: str
    keys: pd.Index = field(repr=False)
    values: Array = field(repr=False)
    reading: Reading
    key: str = "key"
    columns: tuple[str, ...] | None = None

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        key: str = "key",
        prediction: str = "prediction",
        columns: Iterable[str] | None = None,
        output: Wanted = "auto",
        threshold: float | None = None,
        classes: Iterable[object] | None = None,
        of: object = None,
    ) -> PredictionFile:
        """Read a file with a column of keys and one of predictions, of any kind that `budge.read_table` reads."""
        path = Path(path)
        table = load(path, label=key)  # in a column of texts only an empty cell is missing: "NA" and "None" may be labels
        try:
            return cls.from_frame(
                table,
                name=path.name,
                key=key,
                prediction=prediction,
                columns=columns,
                output=output,
                threshold=threshold,
                classes=classes,
                of=of,
            )
        except DataError as error:
            raise error.at(path.name) from error

    @classmethod
    def from_frame(
        cls,
        table: pd.DataFrame,
        *,
        name: str = "predictions",
        key: str = "key",
        prediction: str = "prediction",
        columns: Iterable[str] | None = None,
        output: Wanted = "auto",
        threshold: float | None = None,
        classes: Iterable[object] | None = None,
        of: object = None,
    ) -> PredictionFile:
        """Take predictions from a table."""
        for column in (key, prediction):
            if column not in table.columns:
                raise DataError(
                    f"the column {column!r} is missing", where="columns", remedy=nearest(column, map(str, table.columns))
                )
        if table[key].isna().any():
            row = int(np.flatnonzero(table[key].isna().to_numpy())[0])
            raise DataError("a key is missing", where=f"row {row}")
        table = table[[key, prediction]].drop_duplicates()
        keys = pd.Index(table[key].astype(str))
        if not keys.is_unique:
            twice = keys[keys.duplicated()][0]
            got = table[prediction][keys == twice].tolist()
            raise DataError("a key has two predictions", where=f"key {twice!r}", got=got)
        values = as_array(table[prediction])
        if values.dtype.kind == "f" and output == "auto" and threshold is None and classes is None:
            # A missing prediction turns whole numbers into floats; fractions are scores.
            whole = values[~np.isnan(values)]
            output = "score" if (whole != np.floor(whole)).any() else "auto"
        own = None if classes is not None or values.dtype.kind == "f" else _labels(values)
        asks: tuple[Ask, ...] = ("label", "score", "probability") if values.dtype.kind in "biuf" else ("label",)
        if threshold is not None or output in ("score", "probability"):
            own = None
        reading = choose_reading(name, asks, own, output=output, threshold=threshold, classes=classes, of=of)
        return cls(
            name=name, keys=keys, values=values, reading=reading, key=key, columns=None if columns is None else tuple(columns)
        )

    @property
    def output(self) -> Output:
        """Labels or scores."""
        return self.reading.output

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """The labels declared, or else those that occur."""
        return self.reading.classes

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Where its scores lie, if that is known."""
        return self.reading.bounds

    def predict(self, frame: Rows) -> Array:
        """The predictions of points; raises if one has none."""
        return all_or_raise(self.predict_resolved(frame), self.name)

    def predict_resolved(self, frame: Rows, *, max_calls: int = MAX_CALLS) -> Resolved:
        """The predictions of points, and which points have one."""
        keys = point_keys(frame, columns=self.columns)
        at = self.keys.get_indexer(pd.Index(keys))
        found = at >= 0
        errors: tuple[str, ...] = ()
        if not found.all():
            errors = (f"no prediction for key {keys[~found][0]!r} and {int((~found).sum()) - 1} others",)
        if not found.any():
            return Resolved(np.full(len(keys), np.nan if self.output == "score" else None), found, errors)
        outputs, missing = self.reading.read(self.values[np.where(found, at, 0)], len(keys))
        if missing is not None and (missing & found).any():
            errors += (f"the prediction of key {keys[missing & found][0]!r} is empty",)
            found = found & ~missing
        if not found.all():
            outputs = outputs.astype(np.float64 if self.output == "score" else object)
            outputs[~found] = np.nan if self.output == "score" else None
        return Resolved(outputs, found, errors)

    def digest(self) -> str:
        """Digest of the keys, the predictions and how they are read."""
        order = np.argsort(self.keys.to_numpy().astype(str))
        pairs = "\x00".join(f"{self.keys[i]}\x01{self.values[i]!r}" for i in order)
        return sha256(pairs.encode(), repr(self.reading).encode())

    def describe(self) -> str:
        """One English sentence."""
        says = "scores" if self.output == "score" else f"the labels {list_classes(self.classes)}" if self.classes else "labels"
        return f"{self.name} holds {says} for {len(self.keys)} points."


def _labels(values: Array) -> tuple[Any, ...] | None:
    seen = pd.unique(values[~pd.isna(values)])
    if not 2 <= len(seen) <= 1000:
        return None
    return tuple(sorted((v.item() if isinstance(v, np.generic) else v for v in seen), key=lambda v: (type(v).__name__, v)))
