"""Models that MLflow has saved: a folder with a file ``MLmodel`` that names the model's file.

Nothing else in the folder is read, and what it states to be safe (``skops_trusted_types``) is not taken from it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from budge.errors import MissingDependencyError, ModelError, SpecError
from budge.spec.limits import YAML_BYTES
from budge.spec.yaml_text import parse_yaml
from budge.stored import read_bytes

__all__ = ["MLMODEL", "load_python_model", "model_file"]

MLMODEL = "MLmodel"
#: Flavours whose model is one file, and the key that names it; what the file is, is seen from its content.
FLAVOURS = {"onnx": "data", "xgboost": "data", "lightgbm": "data", "sklearn": "pickled_model"}


def model_file(folder: Path) -> Path | None:
    """Return the model's file in a folder of MLflow; None where only code of MLflow's Python flavour reads it.

    Raises
    ------
    ModelError
        If the folder holds no model, or ``MLmodel`` names a file outside the folder.
    """
    remedy = "give a model file, or a folder that MLflow has saved, with a file MLmodel in it"
    if not (folder / MLMODEL).is_file():
        raise ModelError("the folder holds no model of MLflow", where=str(folder), remedy=remedy)
    place = folder / MLMODEL
    try:
        flavours = parse_yaml(read_bytes(place, YAML_BYTES, remedy=remedy).decode(), str(place)).tree["flavors"]
        found = [(name, flavours[name].get(key)) for name, key in FLAVOURS.items() if name in flavours]
    except SpecError as error:
        raise ModelError(f"cannot be read: {error.problems[0].what}", where=str(place), remedy="save the model again") from None
    except (UnicodeDecodeError, LookupError, TypeError, AttributeError):
        raise ModelError("does not name the flavours of a model", where=str(place), remedy="save the model again") from None
    if not found:
        return None
    name, file = found[0]
    if not isinstance(file, str) or not (folder / file).resolve().is_relative_to(folder.resolve()) or not (folder / file).is_file():
        raise ModelError(f"the flavour {name} names no file inside the folder", where=str(place), got=file, remedy="save the model again")
    return folder / file


def load_python_model(folder: Path, *, trusted: bool) -> Any:
    """Return a model of MLflow's Python flavour, whose loading runs code; an error unless it is trusted."""
    if not trusted:
        remedy = "save it as onnx, xgboost, lightgbm or skops; or trust=True (--trust all), if you trust whoever made it"
        raise ModelError("loading would run code: the folder holds a Python model of MLflow", where=str(folder), remedy=remedy)
    try:
        import mlflow.pyfunc
    except ImportError as error:
        raise MissingDependencyError("mlflow is not installed", where="load_model", remedy="pip install 'budge[mlflow]'") from error
    try:
        return mlflow.pyfunc.load_model(str(folder.resolve()))
    except Exception as error:
        raise ModelError(f"mlflow cannot load the model: {type(error).__name__}: {error}", where=str(folder)) from error
