"""A model of inputs that are no table: it is given what the drawer draws, as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from budge.errors import ModelError
from budge.models import Resolved

__all__ = ["RawPredictor"]


@dataclass(frozen=True)
class RawPredictor:
    """Calls ``model.predict(batch)`` or ``model(batch)`` and expects one output per input."""

    model: Any
    name: str
    classes: tuple[Any, ...] | None = None
    columns: tuple[str, ...] | None = None
    bounds: tuple[float, float] | None = None

    @classmethod
    def of(cls, model: Any) -> RawPredictor:
        """Return the predictor of a function or of anything with predict."""
        if not callable(getattr(model, "predict", None)) and not callable(model):
            raise ModelError("has no predict and cannot be called", where="model", got=type(model).__name__)
        known = getattr(model, "classes_", None)
        classes = None if known is None else tuple(np.asarray(known).tolist())
        return cls(model, getattr(model, "__name__", type(model).__name__), classes)

    @property
    def output(self) -> Any:
        """Not known: the target reads what comes."""
        return "label"

    def predict(self, frame: Any) -> Any:
        """Return one output per input."""
        ask = self.model.predict if callable(getattr(self.model, "predict", None)) else self.model
        answer = ask(frame)
        if isinstance(answer, np.ma.MaskedArray):
            answer = np.ma.asarray(answer.astype(object)).filled(None)
        outputs = np.asarray(answer)
        if outputs.shape != (len(frame),):
            raise ModelError(
                f"one output per input is expected, {len(frame)} in all", where=self.name, got=f"shape {outputs.shape}"
            )
        return outputs

    def predict_resolved(self, frame: Any, *, max_calls: int = 1000) -> Resolved:
        """Return outputs; masked ones, None and NaN are unresolved."""
        outputs = self.predict(frame)
        if outputs.dtype.kind == "f":
            good = ~np.isnan(outputs)
        elif outputs.dtype == object:
            good = np.array([o is not None and o == o for o in outputs], dtype=bool)
        else:
            good = np.ones(len(outputs), dtype=bool)
        return Resolved(outputs, good, ())

    def digest(self) -> str | None:
        """Not known."""
        return None

    def describe(self) -> str:
        """Return one English sentence."""
        return f"{self.name} predicts one output per input."
