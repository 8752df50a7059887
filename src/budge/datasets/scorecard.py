"""A logistic scorecard in a few lines, so that the demo needs no modelling library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.frames import level_key
from budge.proof.structure import Additive, Answer, Column, UnreadableError

__all__ = ["Scorecard"]


@dataclass(frozen=True)
class Scorecard:
    """Logistic regression on standardised numbers and one-hot levels, fitted by Newton's method.

    Examples
    --------
    >>> from budge.datasets import lending
    >>> data = lending(n=500, seed=0)
    >>> card = Scorecard.fit(data.X, data.y)
    >>> bool((card.predict(data.X) == data.y).mean() > 0.7)
    True
    """

    columns: tuple[str, ...]
    levels: dict[str, tuple[Any, ...]]
    center: npt.NDArray[np.float64]
    scale: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]
    classes_: tuple[int, int] = (0, 1)

    @classmethod
    def fit(cls, X: pd.DataFrame, y: pd.Series, *, penalty: float = 1.0) -> Scorecard:
        """Fit with a small ridge penalty."""
        columns = tuple(X.columns)
        levels = {c: tuple(pd.Categorical(X[c]).categories) for c in columns if X[c].dtype.kind not in "biuf"}
        blank = cls(columns, levels, np.zeros(0), np.ones(0), np.zeros(0))
        raw = blank._design(X)
        center, scale = raw.mean(axis=0), raw.std(axis=0)
        scale[scale == 0] = 1.0
        A = np.column_stack([np.ones(len(raw)), (raw - center) / scale])
        target, w = np.asarray(y, dtype=float), np.zeros(A.shape[1])
        ridge = penalty * np.r_[0.0, np.ones(A.shape[1] - 1)]
        for _ in range(50):
            p = 1 / (1 + np.exp(-A @ w))
            step = np.linalg.solve(A.T @ (A * (p * (1 - p))[:, None]) + np.diag(ridge), A.T @ (target - p) - ridge * w)
            w = w + step
            if np.abs(step).max() < 1e-10:
                break
        return cls(columns, levels, center, scale, w)

    def _design(self, X: pd.DataFrame) -> npt.NDArray[np.float64]:
        parts = []
        for c in self.columns:
            if c in self.levels:
                values = X[c].astype(object).to_numpy()
                parts += [(values == level).astype(float) for level in self.levels[c][1:]]
            else:
                parts.append(X[c].to_numpy(dtype=float))
        return np.column_stack(parts)

    def score(self, X: pd.DataFrame) -> npt.NDArray[np.float64]:
        """Probability of repaying."""
        return np.asarray(1 / (1 + np.exp(-(self.weights[0] + (self._design(X) - self.center) / self.scale @ self.weights[1:]))))

    def predict(self, X: pd.DataFrame) -> npt.NDArray[np.int64]:
        """1: approve, 0: refuse."""
        return (self.score(X) >= 0.5).astype(np.int64)

    def predict_proba(self, X: pd.DataFrame) -> npt.NDArray[np.float64]:
        """Probability of each class, one column per class."""
        chance = self.score(X)
        return np.column_stack([1 - chance, chance])

    def structure(self, columns: Sequence[Column]) -> Additive:
        """Return the score as a sum over the columns of a table."""
        weights = iter((self.weights[1:] / self.scale).tolist())
        known = {column.name: column for column in columns}
        slopes, tables, missing = {}, {}, {}
        for name in self.columns:
            own = self.levels.get(name)
            step = [next(weights) for _ in (own[1:] if own is not None else (None,))]
            column = known.get(name)
            if column is None or (column.levels is None) != (own is None):
                raise UnreadableError(f"the scorecard and the table disagree on whether {name} holds levels")
            if own is None or column.levels is None:
                slopes[name] = np.array(step)
                continue
            added = {level_key(level): weight for level, weight in zip(own[1:], step)}
            tables[name] = np.array([[added.get(level_key(level), 0.0)] for level in column.levels])
            missing[name] = np.zeros(1)  # a missing value is none of the levels
        offsets = self.weights[1:] * self.center / self.scale
        const = self.weights[0] - offsets.sum()
        ratio = max(1.0, (abs(self.weights[0]) + np.abs(offsets).sum()) / max(abs(const), 2.0**-24))  # constants may cancel
        answer = Answer("binary", self.classes_, strict=False)
        precision = float((len(offsets) + 16) * 2.0**-52 * ratio)
        return Additive(tuple(columns), answer, np.array([const]), slopes, tables=tables, missing=missing, precision=precision)
