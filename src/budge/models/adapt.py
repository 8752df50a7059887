"""`as_predictor`: who adapts what is decided here."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Literal

from budge.errors import ModelError, Problem, nearest
from budge.models.choose import Wanted, check_batch_rows, choose_reading
from budge.models.endpoint import ENDPOINT_ROWS, Endpoint, is_url
from budge.models.estimators import EstimatorEngine
from budge.models.functions import FunctionEngine
from budge.models.loading import load_model
from budge.models.onnx_model import OnnxEngine, OnnxModel
from budge.models.predictor import BATCH_ROWS, Adapted, Engine, Predictor
from budge.models.torch_module import TorchEngine

__all__ = ["as_predictor"]


def as_predictor(
    model: Any,
    *,
    output: Wanted = "auto",
    threshold: float | None = None,
    classes: Iterable[object] | None = None,
    of: object = None,
    columns: Iterable[str] | None = None,
    takes: Literal["frame", "numpy"] = "frame",
    trust: bool | Collection[str] = False,
    batch_rows: int | None = None,
) -> Predictor:
    """Turn anything that predicts into a `Predictor`.

    Parameters
    ----------
    model
        An estimator or pipeline, an XGBoost or LightGBM model, an ONNX session or its bytes, a torch module, a function of a
        table, the path of a model file, the address of an endpoint, or a predictor.
    output
        ``label``: classes. ``score``: a number; of a classifier the probability of a class, or its decision value if it gives no
        probabilities. ``probability``: of a class. ``auto``: labels from classifiers and functions, scores from regressors.
    threshold
        Answer the class `of` where its score is at or above the threshold, the other one of two below it.
    classes
        The labels, where the model does not record them; in the order of its columns.
    of
        The class whose score counts; the second of two by default.
    columns
        The columns to pass on, in the order of training, where the model does not record them.
    takes
        What a function receives: the table, or its values.
    trust
        True loads a file that can run code; a list of type names trusts those of a skops file.
    batch_rows
        Rows a call; 100,000 by default (256 for an endpoint).

    Examples
    --------
    >>> import pandas as pd
    >>> def approve(table):
    ...     return table["income"] / (table["income"] + 1000)
    >>> predictor = as_predictor(approve, threshold=0.7, classes=["no", "yes"])
    >>> predictor.predict(pd.DataFrame({"income": [500, 3000]})).tolist()
    ['no', 'yes']
    """
    names = None if columns is None else _names(columns)
    plain_call = (output, threshold, classes, of, names, takes) == ("auto", None, None, None, None, "frame")
    if isinstance(model, Predictor):
        if not plain_call or batch_rows is not None:
            raise ModelError(
                "it is a predictor already, and how it is read is settled",
                where=model.name,
                remedy="give the options with the model",
            )
        return model
    if is_url(model):
        size = ENDPOINT_ROWS if batch_rows is None else check_batch_rows(batch_rows)
        return Endpoint(url=model, output=output, threshold=threshold, classes=classes, of=of, columns=names, batch_rows=size)
    if isinstance(model, str | Path):
        model = load_model(model, trust=trust)
    engine = _engine(model, takes=takes)
    reading = choose_reading(engine.name, engine.asks, engine.classes, output=output, threshold=threshold, classes=classes, of=of)
    size = BATCH_ROWS if batch_rows is None else check_batch_rows(batch_rows)
    return Adapted(engine=engine, reading=reading, columns=_columns(engine, names), batch_rows=size)


def _engine(model: Any, *, takes: str) -> Engine:
    if takes not in ("frame", "numpy"):
        raise ModelError("a function takes a frame or numpy", where="takes", got=takes)
    roots = {kind.__module__.split(".")[0] for kind in type(model).__mro__}
    found: Engine | None = None
    if isinstance(model, bytes):
        found = OnnxEngine(OnnxModel(model))
    elif isinstance(model, OnnxModel):
        found = OnnxEngine(model)
    elif "onnxruntime" in roots and hasattr(model, "run"):
        found = OnnxEngine(_session_model(model), model)
    elif "onnx" in roots and hasattr(model, "SerializeToString"):
        found = OnnxEngine(OnnxModel(model.SerializeToString()))
    elif "xgboost" in roots:
        from budge.models.xgb import engine

        found = engine(model)
    elif "lightgbm" in roots:
        from budge.models.lgbm import engine as light

        found = light(model)
    elif "torch" in roots and hasattr(model, "state_dict"):
        found = TorchEngine(model)
    elif isinstance(model, type):
        raise ModelError("a class was given, not a fitted model", where=model.__name__, remedy="make one and fit it")
    elif callable(getattr(model, "predict", None)):
        found = EstimatorEngine(model)
    if found is None:
        if not callable(model):
            what = "the model has no `predict` and cannot be called"
            raise ModelError(what, where="model", got=type(model).__name__, remedy="give an estimator, or a function of a table")
        return FunctionEngine(model, takes="numpy" if takes == "numpy" else "frame")
    if takes != "frame":
        raise ModelError(
            "only a function chooses what it receives", where="takes", got=takes, remedy="wrap the model in a function"
        )
    return found


def _session_model(session: Any) -> OnnxModel:
    path = getattr(session, "_model_path", None)
    content = getattr(session, "_model_bytes", None)
    if path:
        return OnnxModel.read(path)
    if content:
        return OnnxModel(bytes(content))
    raise ModelError("the session does not say which model it holds", where="onnx", remedy="give the path or the bytes")


def _names(columns: Iterable[str]) -> tuple[str, ...]:
    names = tuple(columns) if not isinstance(columns, str) else (columns,)
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    if twice or not names:
        raise ModelError("columns must be named once each", where="columns", got=twice or names)
    return names


def _columns(engine: Engine, given: tuple[str, ...] | None) -> tuple[str, ...] | None:
    own = engine.columns
    if given is None:
        return own
    if own is None:
        if engine.width is not None and len(given) != engine.width:
            raise ModelError(f"{engine.name} expects {engine.width} columns", where="columns", got=given)
        return given
    known = {engine.alias(name) for name in given}
    lacking = [name for name in own if name not in known]
    extra = [name for name in given if engine.alias(name) not in own]
    problems = [
        Problem("columns", f"the model was trained on {name!r}, which is not listed", remedy=nearest(name, given))
        for name in lacking
    ]
    problems += [Problem("columns", f"{name!r} was not seen in training", remedy=nearest(name, own)) for name in extra]
    ModelError.raise_if(problems)
    return own
