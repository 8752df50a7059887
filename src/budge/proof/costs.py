"""What a change costs: features moved and distances, weights per unit of change, or the caller's own function."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.errors import DesignError, nearest
from budge.features import Feature
from budge.interaction import InteractionModel

__all__ = ["Cost", "CostFunction"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
CostFunction = Callable[[pd.DataFrame, pd.DataFrame], npt.ArrayLike]


@dataclass(frozen=True)
class Cost:
    """The cost of coded points as two numbers, the first of which counts first.

    By default: the number of features changed, then the sum of changes, each as a share of its feature's scale. With weights or a function: the cost, then the
    number of features changed.
    """

    weights: FloatArray  # per unit of change of each column; per change where `listed`
    listed: BoolArray  # columns of levels
    first: str = "features"  # or "cost"
    function: CostFunction | None = None
    decode: Callable[[FloatArray], pd.DataFrame] | None = None

    @classmethod
    def of(
        cls,
        spec: Mapping[str, float] | CostFunction | Cost | None,
        im: InteractionModel,
        ranges: Mapping[str, tuple[float, float]] | None = None,
        *,
        columns: Sequence[str] | None = None,
        decode: Callable[[FloatArray], pd.DataFrame] | None = None,
    ) -> Cost:
        """Return the cost that a caller describes.

        Parameters
        ----------
        spec
            None for the default; weights per unit of change by feature (levels: per change; a feature that is not named costs nothing); or a function of a
            table of points and a table with the start, which returns one number per point.
        im
            The interaction model whose features move.
        ranges
            Lowest and highest value of features that have no finite bounds, for their scale.
        columns
            The columns of coded points; the model's features if not given.
        decode
            What writes coded points as a table; a function needs it.
        """
        if isinstance(spec, Cost):
            return spec
        names = [f.name for f in im.features] if columns is None else list(columns)
        features = [im.by_name.get(name) for name in names]
        listed = np.array([f is not None and f.levels is not None for f in features], dtype=bool)
        if spec is None:
            scales = [1.0 if f is None or f.name not in im.moving else _scale(f, ranges or {}) for f in features]
            return cls(1.0 / np.array(scales), listed)
        if isinstance(spec, Mapping):
            weights = {name: _weight(name, weight, im) for name, weight in spec.items()}
            return cls(np.array([weights.get(name, 0.0) for name in names]), listed, "cost")
        if not callable(spec):
            raise DesignError(
                "must be weights by feature or a function", where="cost", got=spec, remedy="write {'income': 0.001, 'housing': 5}, or leave it out"
            )
        if decode is None:
            raise DesignError("a function needs points as a table", where="cost", remedy="give `decode`, or weights by feature")
        return cls(np.zeros(len(names)), listed, "cost", spec, decode)

    def moved(self, points: FloatArray, start: FloatArray) -> BoolArray:
        """Return which columns of each point differ from the start; a missing value that stays missing does not."""
        return np.asarray((points != start) & ~(np.isnan(points) & np.isnan(start)))

    def values(self, points: FloatArray, start: FloatArray) -> FloatArray:
        """Return the two numbers of each point, (points, 2)."""
        points = np.atleast_2d(np.asarray(points, dtype=float))
        moved = self.moved(points, start)
        features = moved.sum(axis=1).astype(float)
        if self.function is not None:
            return np.stack([self._computed(points, start), features], axis=1)
        change = np.where(self.listed, moved, np.abs(np.where(moved, points - start, 0.0)))
        cost = change @ self.weights
        return np.stack([features, cost] if self.first == "features" else [cost, features], axis=1)

    def main(self, points: FloatArray, start: FloatArray) -> FloatArray:
        """Return the number of each point that is no count of features: the distance, or the cost."""
        return self.values(points, start)[:, 1 if self.first == "features" else 0]

    def _computed(self, points: FloatArray, start: FloatArray) -> FloatArray:
        assert self.function is not None
        assert self.decode is not None
        if not len(points):
            return np.zeros(0)
        made = self.function(self.decode(points), self.decode(start[None, :]))
        try:
            found = np.asarray(made, dtype=float)
        except (TypeError, ValueError):
            raise DesignError("must return numbers", where="cost", got=made) from None
        if found.shape != (len(points),):
            raise DesignError("must return one number per point", where="cost", got=f"shape {found.shape} for {len(points)} points")
        if not np.isfinite(found).all():
            raise DesignError("must return finite numbers", where="cost", got=float(found[~np.isfinite(found)][0]))
        return found

    def compare(self, a: FloatArray, b: FloatArray, start: FloatArray) -> int:
        """Return -1 where point a costs less than point b, 1 where it costs more, else 0."""
        (one, other) = (tuple(row) for row in self.values(np.stack([a, b]), start).tolist())
        return (one > other) - (one < other)

    def order(self, points: FloatArray, start: FloatArray) -> IntArray:
        """Return the places of points from cheap to dear; among equals the first comes first."""
        found = self.values(points, start)
        return np.lexsort((found[:, 1], found[:, 0]))


def _scale(feature: Feature, ranges: Mapping[str, tuple[float, float]]) -> float:
    """Return the width of a feature's bounds, or of its values; 1 for levels and binaries."""
    if feature.levels is not None or feature.type == "binary":
        return 1.0
    low, high = feature.range
    if not math.isfinite(high - low):
        if feature.name not in ranges:
            raise DesignError(
                "a feature without finite bounds has no scale", where=f"cost.{feature.name}", got=[low, high],
                remedy="give it bounds, a range of values, or weights by feature",
            )  # fmt: skip
        low, high = ranges[feature.name]
    return float(high - low) if math.isfinite(high - low) and high > low else 1.0


def _weight(name: Any, weight: Any, im: InteractionModel) -> float:
    if name not in im.by_name:
        raise DesignError("no such feature", where="cost", got=name, remedy=nearest(name, im.by_name))
    if isinstance(weight, bool | np.bool_) or not isinstance(weight, int | float | np.integer | np.floating) or not math.isfinite(weight):
        raise DesignError("a weight is a finite number", where=f"cost.{name}", got=weight)
    if weight < 0:
        raise DesignError("a weight cannot be negative", where=f"cost.{name}", got=weight, remedy="a change that is wanted costs 0")
    return float(weight)
