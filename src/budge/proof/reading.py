"""Read the structure of a model: in the columns of the table, with the preprocessing of its pipeline inside, checked against the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from budge.errors import BudgeError
from budge.models.predictor import Adapted, Predictor
from budge.models.rows import match_columns
from budge.proof.checking import check
from budge.proof.encoders import Inputs, Source, Table
from budge.proof.estimators import read_model
from budge.proof.structure import Column, Structure, Structured, UnreadableError

__all__ = ["read"]

SAMPLE = 5  # rows that are passed through the preprocessing to see what arrives


def read(predictor: Predictor, frame: pd.DataFrame, columns: Sequence[Column]) -> Structure:
    """Return the structure of a model over the columns of a table.

    Parameters
    ----------
    predictor
        The model and how it is read.
    frame
        The table; its rows serve to check the structure, and its dtypes are those that the model is given.
    columns
        Its columns, in its order.

    Raises
    ------
    UnreadableError
        If the structure cannot be read; the message states why.
    ModelError
        If what was read does not agree with what the model answers.

    Examples
    --------
    >>> from budge.models import as_predictor
    >>> from budge.datasets import Scorecard, lending
    >>> from budge.proof.structure import columns_of
    >>> data = lending(n=300, seed=0)
    >>> card = as_predictor(Scorecard.fit(data.X, data.y))
    >>> type(read(card, data.X, columns_of(data.X))).__name__
    'Additive'
    """
    names = [column.name for column in columns]
    if [str(label) for label in frame.columns] != names:
        raise ValueError("`columns` must be the columns of `frame`, in its order")
    structure = _structure(predictor, frame, tuple(columns))
    if [column.name for column in structure.columns] != names:
        raise UnreadableError("the model states a structure over other columns")
    check(predictor, structure, frame)
    return structure


def _structure(predictor: Predictor, frame: pd.DataFrame, columns: tuple[Column, ...]) -> Structure:
    if isinstance(predictor, Structured):
        return predictor.structure(columns)
    engine = getattr(predictor, "engine", None)
    model = _model(engine)
    if isinstance(model, Structured):
        return model.structure(columns)
    if not isinstance(predictor, Adapted) or model is None:
        raise UnreadableError(f"{predictor.name} shows no structure, only answers")
    try:
        return read_model(model, _inputs(predictor, frame, columns))
    except BudgeError:
        raise
    except RecursionError as error:
        raise UnreadableError(f"the trees of {type(model).__name__} are too deep") from error
    except (AttributeError, KeyError, IndexError) as error:
        kind = type(model).__name__
        raise UnreadableError(
            f"this version of {kind} keeps its structure in another place ({type(error).__name__}: {error})"
        ) from error
    except (ValueError, TypeError) as error:
        raise UnreadableError(f"the preprocessing cannot be followed on rows of the table: {error}") from error


def _model(engine: Any) -> Any:
    """Return the object that an engine asks; None for one that is not in this process."""
    if getattr(engine, "booster", None) is not None:  # LightGBM: an estimator, or its booster alone
        return engine.estimator if engine.estimator is not None else engine.booster
    found = getattr(engine, "model", None)
    return getattr(engine, "function", None) if found is None else found


def _inputs(predictor: Adapted, frame: pd.DataFrame, columns: tuple[Column, ...]) -> Inputs:
    """Return what the model is given: its own columns of the table, in its order."""
    rows = match_columns(frame.iloc[:SAMPLE], predictor.columns, width=predictor.engine.width, alias=predictor.engine.alias)
    assert isinstance(rows, pd.DataFrame)
    place = {label: j for j, label in enumerate(frame.columns)}
    sources = tuple(Source(place[label]) for label in rows.columns)
    nameless = predictor.engine.width is not None and hasattr(predictor.engine, "model")
    return Inputs(Table(columns, frame), sources, rows.to_numpy() if nameless else rows)
