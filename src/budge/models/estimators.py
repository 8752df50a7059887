"""scikit-learn estimators and pipelines, and whatever has a `predict` like theirs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from budge.errors import ModelError
from budge.models.digests import content_digest
from budge.models.reading import Ask, plain
from budge.models.rows import Rows
from budge.origins import as_it_came

__all__ = ["EstimatorEngine", "known_classes", "known_columns"]


@dataclass(frozen=True)
class EstimatorEngine:
    """An object with `predict`; what else scikit-learn's estimators have is used where it is there."""

    model: Any

    @property
    def name(self) -> str:
        """The estimator's type; for a pipeline, that of its last step too."""
        steps = getattr(self.model, "steps", None)
        last = f" ending in {type(steps[-1][1]).__name__}" if steps else ""
        return f"{type(self.model).__name__}{last}"

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names seen in `fit`."""
        return known_columns(self.model)

    @property
    def width(self) -> int | None:
        """The number of columns seen in `fit`."""
        width = _attribute(self.model, "n_features_in_")
        return int(width) if self.columns is None and isinstance(width, int | np.integer) else None

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """Labels seen in `fit`."""
        return known_classes(self.model)

    @property
    def asks(self) -> tuple[Ask, ...]:
        """Labels first, unless it is a regressor."""
        if _is_regressor(self.model):
            return ("score",)
        found: list[Ask] = ["label"]
        if hasattr(self.model, "predict_proba"):
            found.append("probability")
        if self.classes is None or hasattr(self.model, "decision_function"):
            found.append("score")
        return tuple(found)

    def answer(self, rows: Rows, ask: Ask) -> object:
        """What the estimator says; one that saw no names gets an array, and does not warn."""
        given: Any = rows.to_numpy() if self.width is not None and isinstance(rows, pd.DataFrame) else as_it_came(rows)
        if ask == "probability":
            return self.model.predict_proba(given)
        if ask == "score" and self.classes is not None and not _is_regressor(self.model):
            return self.model.decision_function(given)
        answer = self.model.predict(given)
        # CatBoost answers a column of labels for more than two classes.
        return answer[:, 0] if _from_catboost(self.model) and getattr(answer, "ndim", 1) == 2 else answer

    def digest(self) -> str | None:
        """Digest of the fitted state."""
        return content_digest(self.model)

    def alias(self, name: str) -> str:
        """Names are kept as they are."""
        return name


def known_columns(model: object) -> tuple[str, ...] | None:
    """The names that a model recorded in training, or None."""
    names = _attribute(model, "feature_names_in_")
    if names is None and _from_catboost(model):
        names = [n for n in _attribute(model, "feature_names_") or () if not str(n).isdigit()] or None
    return None if names is None else tuple(str(name) for name in names)


def known_classes(model: object) -> tuple[Any, ...] | None:
    """The labels that a model recorded in training, as Python values, or None."""
    classes = _attribute(model, "classes_")
    if classes is None or (_from_catboost(model) and len(classes) == 0):
        return None
    if isinstance(classes, list) and classes and isinstance(classes[0], np.ndarray):
        remedy = "audit one output at a time, in a function"
        raise ModelError("the model has several outputs", where=type(model).__name__, got=len(classes), remedy=remedy)
    return tuple(plain(c) for c in classes)


def _attribute(model: object, name: str) -> Any:
    try:
        return getattr(model, name, None)
    except Exception:  # properties of unfitted models raise what they like
        return None


def _from_catboost(model: object) -> bool:
    return any(kind.__module__.split(".")[0] == "catboost" for kind in type(model).__mro__)


def _is_regressor(model: object) -> bool:
    if _attribute(model, "_estimator_type") == "regressor":
        return True
    base = sys.modules.get("sklearn.base")  # never imported for a model that does not come from there
    return base is not None and isinstance(model, base.BaseEstimator) and bool(base.is_regressor(model))
