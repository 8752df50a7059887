"""Tables and pipelines for the tests of reading: numbers, whole numbers, flags, categories, missing values."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from budge.models import as_predictor
from budge.proof.reading import read
from budge.proof.structure import Column, columns_of

WHOLE = ("months", "amount", "rate")
NUMBERS = ["income", "age", "months", "amount", "rate", "flag"]


def table(n: int = 400, *, missing: bool = False, categories: bool = False, seed: int = 0) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "income": draw.normal(size=n) * 10.0 ** draw.uniform(-3, 5, n),
            "age": draw.normal(5, 2, n),
            "months": draw.integers(0, 60, n),
            "amount": draw.integers(-5, 50_000, n),
            "rate": draw.integers(1, 5, n),
            "flag": draw.random(n) < 0.4,
            "home": draw.choice(["rent", "own", "free", "other"], n, p=[0.5, 0.3, 0.18, 0.02]),
            "sex": draw.choice(["f", "m"], n),
        }
    )
    if missing:
        frame.loc[draw.random(n) < 0.1, "age"] = np.nan
    if categories:
        frame[["home", "sex"]] = frame[["home", "sex"]].astype("category")
    return frame


def outcome(frame: pd.DataFrame, classes: int = 2) -> Any:
    """Labels 0, 1, …; without classes a number."""
    draw = np.random.default_rng(1)
    score = (
        np.tanh(frame.income / 100)
        + (frame.age.fillna(5) - 5) / 2
        + (frame.months > 30) * 0.8
        + frame.amount / 40_000
        + (frame.rate == 2)
    )
    if "home" in frame:
        score = score + (frame.home.astype(str) == "own") * 1.2 - (frame.sex.astype(str) == "f")
    score = score + draw.normal(0, 0.7, len(frame))
    return pd.qcut(score, classes, labels=False).to_numpy() if classes else score.to_numpy()


def columns(frame: pd.DataFrame) -> tuple[Column, ...]:
    return tuple(Column(c.name, c.levels, c.name in WHOLE) for c in columns_of(frame))


def fitted(model: Any, frame: pd.DataFrame, classes: int = 2) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of solvers that stop early
        return model.fit(frame, outcome(frame, classes))


def read_fitted(model: Any, frame: pd.DataFrame, **how: Any) -> Any:
    """Read a fitted model; `read` compares it with the model's own answers, at every cut."""
    return read(as_predictor(model, **how), frame, columns(frame))
