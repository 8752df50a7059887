"""How a feature's own value is drawn, where that is not uniformly.

A distribution is a weight on the values that the interaction model allows: it is restricted to what is
feasible and normalised there. A value without weight is never reached.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from budge.errors import Problem, nearest

__all__ = ["KINDS", "Distribution", "nearest_of"]

KINDS = ("uniform", "log", "empirical", "weights")
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Distribution:
    """Weights on the values of one feature.

    ``uniform`` is the default. ``log``: density proportional to 1/value (values must be positive).
    ``empirical``: the listed values, each as often as it is listed. ``weights``: a weight per level or value.

    Examples
    --------
    >>> Distribution.from_spec("log")
    Distribution(kind='log', values=(), weights=())
    >>> Distribution.from_spec({"weights": {"rent": 1, "own": 3}}).weights
    (1.0, 3.0)
    """

    kind: Literal["uniform", "log", "empirical", "weights"] = "uniform"
    values: tuple[Any, ...] = ()
    weights: tuple[float, ...] = ()

    @property
    def bounded(self) -> bool:
        """Whether it has finite support of its own, so that bounds are not needed."""
        return self.kind in ("empirical", "weights")

    @classmethod
    def from_spec(cls, spec: object) -> Distribution:
        """Read ``uniform``, ``log``, ``{empirical: [...]}`` or ``{weights: {level: weight}}``."""
        if isinstance(spec, Distribution):
            return spec
        if isinstance(spec, str):
            return cls(kind=spec)  # type: ignore[arg-type]
        if isinstance(spec, Mapping) and len(spec) == 1:
            ((kind, body),) = spec.items()
            if kind == "empirical" and isinstance(body, Sequence) and not isinstance(body, str):
                return cls(kind="empirical", values=tuple(body))
            if kind == "weights" and isinstance(body, Mapping):
                weights = tuple(
                    w if isinstance(w, bool) else (float(w) if isinstance(w, int | float) else w) for w in body.values()
                )
                return cls(kind="weights", values=tuple(body), weights=weights)
            return cls(kind=kind, values=(body,))
        return cls(kind=str(spec)[:60])  # type: ignore[arg-type]

    def to_spec(self) -> str | dict[str, Any]:
        """As a spec file writes it."""
        if self.kind == "empirical":
            return {"empirical": list(self.values)}
        if self.kind == "weights":
            return {"weights": dict(zip(self.values, self.weights))}
        return self.kind

    def problems(self, feature_type: str, levels: tuple[Any, ...] | None, where: str) -> list[Problem]:
        """Everything that does not fit the feature."""
        if self.kind not in KINDS:
            return [Problem(where, "unknown distribution", self.kind, nearest(self.kind, KINDS))]
        if self.kind == "uniform":
            return []
        if self.kind == "log":
            if feature_type not in ("integer", "real"):
                return [Problem(where, "a log distribution needs a number", feature_type, "use weights on the levels")]
            return []
        if not self.values:
            return [Problem(where, "lists no values", self.to_spec())]
        found = []
        if feature_type == "real" and self.kind == "weights":
            found.append(Problem(where, "weights are for values that can be listed", feature_type, "use empirical"))
        if feature_type == "category":
            known = {level for level in levels or () if isinstance(level, Hashable)}
            odd = [v for v in self.values if v not in known]
            if odd:
                found.append(
                    Problem(where, "names a level that is not declared", odd[0], nearest(odd[0], map(str, levels or ())))
                )
        else:
            odd = [v for v in self.values if isinstance(v, bool) or not isinstance(v, int | float) or not math.isfinite(v)]
            if odd:
                found.append(Problem(where, "values must be finite numbers", odd[0]))
        bad = [w for w in self.weights if isinstance(w, bool) or not isinstance(w, int | float) or not (0 <= w < math.inf)]
        if bad:
            found.append(Problem(where, "weights must be finite and not negative", bad[0]))
        elif self.kind == "weights" and sum(self.weights) <= 0:
            found.append(Problem(where, "all weights are zero", list(self.weights)))
        return found

    def table(self, levels: tuple[Any, ...] | None) -> tuple[FloatArray, FloatArray]:
        """Listed values (categories as positions) and their weights, sorted by value; for the two listing kinds."""
        codes = {level: i for i, level in reversed(list(enumerate(levels or ())))}
        coded = [float(codes[v]) if levels is not None else float(v) for v in self.values]
        raw = np.asarray(self.weights if self.kind == "weights" else np.ones(len(coded)), dtype=float)
        values, inverse = np.unique(np.asarray(coded), return_inverse=True)
        return np.asarray(values, dtype=float), np.asarray(np.bincount(inverse.ravel(), weights=raw, minlength=len(values)), dtype=float)

    def density(self, values: npt.ArrayLike, levels: tuple[Any, ...] | None) -> FloatArray:
        """Unnormalised weight of each value."""
        at = np.asarray(values, dtype=float)
        if self.kind == "uniform":
            return np.ones_like(at)
        if self.kind == "log":
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.where(at > 0, 1.0 / at, 0.0)
        known, weights = self.table(levels)
        place = nearest_of(known, at)
        return np.where(np.abs(known[place] - at) <= 1e-9 * np.maximum(1.0, np.abs(at)), weights[place], 0.0)


def nearest_of(values: FloatArray, at: FloatArray) -> npt.NDArray[np.intp]:
    """Return the positions of the values, which are in order, that are nearest to given numbers.

    Examples
    --------
    >>> nearest_of(np.array([0.1, 0.7]), np.array([0.7 + (0.1 - 0.7), 0.6, 2.0])).tolist()
    [0, 1, 1]
    """
    above = np.minimum(np.searchsorted(values, at), len(values) - 1)
    below = np.maximum(above - 1, 0)
    return np.where(np.abs(at - values[below]) < np.abs(values[above] - at), below, above)
