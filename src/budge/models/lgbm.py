"""LightGBM: the scikit-learn classes and bare boosters.

LightGBM does not compare the names of a table with those of training, so a column out of order would go unnoticed; here columns
are always matched by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from budge.errors import MissingDependencyError
from budge.models.digests import sha256
from budge.models.estimators import known_classes
from budge.models.reading import Ask
from budge.models.rows import Rows, numbers

__all__ = ["LightGBMEngine", "engine"]

#: Names that LightGBM makes up for columns that had none.
MADE_UP = re.compile(r"Column_\d+")


def engine(model: Any) -> LightGBMEngine:
    """The engine for a LightGBM model of either kind."""
    try:
        import lightgbm
    except ImportError as error:  # pragma: no cover - the model's own class comes from it
        raise MissingDependencyError("lightgbm is not installed", remedy="pip install 'budge[models]'") from error
    if isinstance(model, lightgbm.Booster):
        return LightGBMEngine(model, None)
    return LightGBMEngine(model.booster_, model)


@dataclass(frozen=True)
class LightGBMEngine:
    """A booster, and the estimator around it if there is one."""

    booster: Any
    estimator: Any

    @property
    def name(self) -> str:
        """The model's type, and the objective of a bare booster."""
        return f"lightgbm.Booster ({self._objective})" if self.estimator is None else type(self.estimator).__name__

    @cached_property
    def columns(self) -> tuple[str, ...] | None:
        """Names seen in training, spaces turned into underscores by LightGBM."""
        names = self.booster.feature_name()
        return None if all(MADE_UP.fullmatch(name) for name in names) else tuple(names)

    @cached_property
    def width(self) -> int | None:
        """The number of columns, where no names were seen."""
        return int(self.booster.num_feature()) if self.columns is None else None

    @cached_property
    def _objective(self) -> str:
        found = re.search(r"^objective=(\S+)", self.booster.model_to_string(num_iteration=1), re.M)
        return found[1] if found else "custom"

    @cached_property
    def classes(self) -> tuple[Any, ...] | None:
        """Labels of an estimator; numbers of the classes of a bare booster, which knows no labels."""
        if self.estimator is not None:
            return known_classes(self.estimator) if hasattr(self.estimator, "predict_proba") else None
        if self._objective in ("multiclass", "multiclassova"):
            return tuple(range(int(self.booster.num_model_per_iteration())))
        return (0, 1) if self._objective == "binary" else None

    @property
    def asks(self) -> tuple[Ask, ...]:
        """Labels only from an estimator; a booster answers probabilities or scores."""
        if self.classes is None:
            return ("score",)
        return ("probability",) if self.estimator is None else ("label", "probability")

    def answer(self, rows: Rows, ask: Ask) -> object:
        """What the model says; an array is cheaper, but an estimator that saw names warns of it."""
        given: Any = rows
        bare = self.estimator is None or self.width is not None
        if bare and isinstance(rows, pd.DataFrame) and not self.booster.pandas_categorical:
            matrix = numbers(rows, "float64")
            given = rows if matrix is None else matrix
        if self.estimator is None:
            return self.booster.predict(given)
        if ask == "probability":
            return self.estimator.predict_proba(given)
        return self.estimator.predict(given)

    def digest(self) -> str:
        """Digest of the trees and of the labels."""
        return sha256(self.booster.model_to_string().encode(), repr(self.classes).encode())

    def alias(self, name: str) -> str:
        """LightGBM's form of a name."""
        return name.replace(" ", "_")
