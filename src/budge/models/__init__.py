"""Anything that predicts, turned into one small protocol: `Predictor`.

>>> import pandas as pd
>>> predictor = as_predictor(lambda table: table["income"] >= 1000)
>>> predictor.predict(pd.DataFrame({"income": [500, 3000]})).tolist()
[False, True]
"""

from __future__ import annotations

from budge.models.adapt import as_predictor
from budge.models.contract import check_contract
from budge.models.endpoint import Endpoint
from budge.models.keys import point_keys
from budge.models.loading import load_model
from budge.models.onnx_model import OnnxModel
from budge.models.predictions import PredictionFile
from budge.models.predictor import Predictor
from budge.models.resolve import Resolved

__all__ = [
    "Endpoint",
    "OnnxModel",
    "PredictionFile",
    "Predictor",
    "Resolved",
    "as_predictor",
    "check_contract",
    "load_model",
    "point_keys",
]
