"""XGBoost: the scikit-learn classes and bare boosters.

Plain numbers go in as one float32 matrix, which is what XGBoost compares in its trees: the answers are the same, and cheaper than
from a table. Tables with categories go in as they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from budge.errors import MissingDependencyError, ModelError
from budge.models.digests import sha256
from budge.models.estimators import known_classes, known_columns
from budge.models.reading import Ask
from budge.models.rows import Rows, numbers
from budge.tables.packages import package

__all__ = ["BoosterEngine", "XGBEngine", "engine"]

#: What to do about levels with letters beyond ASCII: XGBoost 3 counts letters where its file counts bytes.
PLAIN = "train it with levels in plain letters or as numbers"


def engine(model: Any) -> XGBEngine | BoosterEngine:
    """The engine for an XGBoost model of either kind."""
    try:
        import xgboost
    except ImportError as error:  # pragma: no cover - the model's own class comes from it
        raise MissingDependencyError("xgboost is not installed", remedy="pip install 'budge[models]'") from error
    return BoosterEngine(model) if isinstance(model, xgboost.Booster) else XGBEngine(model)


def _levels_of(booster: Any) -> dict[str, pd.Index]:
    """Return the levels that a booster keeps of columns that were categories in training (XGBoost 3.1 and later), by column."""
    if "c" not in (booster.feature_types or ()) or not hasattr(booster, "get_categories"):
        return {}
    package("pyarrow", "the levels of XGBoost's categories need pyarrow", "parquet", "xgboost")
    kept = booster.get_categories(export_to_arrow=True).to_arrow()
    try:
        return {name: pd.Index(levels.to_pylist()) for name, levels in kept if levels is not None and len(levels)}
    except UnicodeDecodeError:
        raise ModelError("XGBoost has cut the levels of its categories at wrong places", where="xgboost", remedy=PLAIN) from None


def _categorised(rows: Rows, levels: Mapping[str, pd.Index], name: str) -> Rows:
    """Return a table whose texts and codes are the categories of training; a level that was not there is an error: XGBoost would take it for missing."""
    if not isinstance(rows, pd.DataFrame):
        return rows
    made = {}
    for column, known in levels.items():
        if column not in rows.columns:
            continue
        strange = rows[column].notna() & ~rows[column].isin(known)
        if strange.any():
            got, remedy = rows[column][strange].iloc[0], f"it knows {', '.join(map(str, known[:20]))}"
            if not all(str(level).isascii() for level in known):
                remedy += f"; XGBoost cuts levels at wrong places where some have letters beyond ASCII: {PLAIN}"
            raise ModelError("the model was not trained with this level", where=f"{name}, column {column}", got=got, remedy=remedy)
        made[column] = pd.Categorical(rows[column], categories=known)
    return rows.assign(**made) if made else rows


@dataclass(frozen=True)
class XGBEngine:
    """A model of XGBoost's scikit-learn interface."""

    model: Any

    @property
    def name(self) -> str:
        """The model's type."""
        return type(self.model).__name__

    @cached_property
    def columns(self) -> tuple[str, ...] | None:
        """Names seen in `fit`."""
        return known_columns(self.model)

    @cached_property
    def width(self) -> int | None:
        """The number of columns, where no names were seen."""
        return int(self.model.n_features_in_) if self.columns is None else None

    @cached_property
    def classes(self) -> tuple[Any, ...] | None:
        """Labels seen in `fit`, in the order of the probabilities."""
        return known_classes(self.model) if hasattr(self.model, "predict_proba") else None

    @property
    def asks(self) -> tuple[Ask, ...]:
        """Labels and probabilities of a classifier; scores of the rest."""
        return ("score",) if self.classes is None else ("label", "probability")

    @cached_property
    def _named(self) -> bool:
        """Whether the table itself must go in: with categories, and to a linear booster, which asks for the names of training."""
        return "c" in (self.model.get_booster().feature_types or ()) or self.model.get_params().get("booster") == "gblinear"

    @cached_property
    def _levels(self) -> dict[str, pd.Index]:
        return _levels_of(self.model.get_booster())

    def answer(self, rows: Rows, ask: Ask) -> object:
        """What the model says."""
        matrix = None if self._named else numbers(rows, "float32")
        given = _categorised(rows, self._levels, self.name) if matrix is None else matrix
        return self.model.predict_proba(given) if ask == "probability" else self.model.predict(given)

    def digest(self) -> str:
        """Digest of the trees and of the labels."""
        return sha256(bytes(self.model.get_booster().save_raw("ubj")), repr(self.classes).encode())

    def alias(self, name: str) -> str:
        """Names are kept as they are."""
        return name


@dataclass(frozen=True)
class BoosterEngine:
    """A bare booster: probabilities for its logistic and softprob objectives, scores for the others."""

    model: Any

    @property
    def name(self) -> str:
        """The model's type and objective."""
        return f"xgboost.Booster ({self._objective})"

    @cached_property
    def columns(self) -> tuple[str, ...] | None:
        """Names seen in training."""
        names = self.model.feature_names
        return None if names is None else tuple(names)

    @cached_property
    def width(self) -> int | None:
        """The number of columns, where no names were seen."""
        return int(self.model.num_features()) if self.columns is None else None

    @cached_property
    def _learner(self) -> dict[str, Any]:
        learner: dict[str, Any] = json.loads(self.model.save_config())["learner"]
        return learner

    @property
    def _objective(self) -> str:
        return str(self._learner["objective"]["name"])

    @cached_property
    def classes(self) -> tuple[Any, ...] | None:
        """Numbers of the classes: a booster knows no labels."""
        if self._objective in ("multi:softprob", "multi:softmax"):
            return tuple(range(int(self._learner["learner_model_param"]["num_class"])))
        return (0, 1) if self._objective in ("binary:logistic", "binary:hinge") else None

    @property
    def asks(self) -> tuple[Ask, ...]:
        """What its objective answers."""
        if self._objective in ("multi:softmax", "binary:hinge"):
            return ("label",)
        return ("score",) if self.classes is None else ("probability",)

    @cached_property
    def _levels(self) -> dict[str, pd.Index]:
        return _levels_of(self.model)

    def answer(self, rows: Rows, ask: Ask) -> object:
        """What the booster says."""
        matrix = None
        if "c" not in (self.model.feature_types or ()) and self._learner["gradient_booster"]["name"] != "gblinear":
            matrix = numbers(rows, "float32")
        if matrix is not None:
            answer = self.model.inplace_predict(matrix)
        else:
            import xgboost

            answer = self.model.predict(xgboost.DMatrix(_categorised(rows, self._levels, self.name), enable_categorical=True))
        return answer.astype(int) if ask == "label" else answer

    def digest(self) -> str:
        """Digest of the trees."""
        return sha256(bytes(self.model.save_raw("ubj")))

    def alias(self, name: str) -> str:
        """Names are kept as they are."""
        return name
