"""Which column of the table each output of a preprocessing step reads: it follows from the kind of transformer.

Kinds that mix columns, or whose outputs are not known to read one column each, are refused. scikit-learn is not imported.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from budge.proof.encoders import Inputs, Kind, Source, Stage, Step, dense
from budge.proof.structure import UnreadableError

__all__ = ["follow"]

SCALERS = ("StandardScaler", "MaxAbsScaler", "RobustScaler", "MinMaxScaler")


def follow(step: Any, inputs: Inputs) -> Inputs:
    """Return what a fitted transformer hands on."""
    kind = "passthrough" if step is None or isinstance(step, str) else type(step).__name__
    if kind == "passthrough" or (kind == "FunctionTransformer" and _identity(step.func)):
        return inputs
    if kind == "Pipeline":
        for _, inner in step.steps:
            inputs = follow(inner, inputs)
        return inputs
    if kind == "ColumnTransformer":
        sources: list[Source] = []
        for name, inner, _ in step.transformers_:
            at = list(step._transformer_to_input_indices[name])
            if at and not (isinstance(inner, str) and inner == "drop"):
                sources += follow(inner, inputs.take(at)).sources
    else:
        outputs = _outputs(step, kind, len(inputs.sources), inputs)
        stage = Stage(step, _base(inputs.sample))
        sources = [
            replace(s := inputs.sources[p], path=(*s.path, Step(stage, p, i, does))) for i, (p, does) in enumerate(outputs)
        ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sample = step.transform(inputs.sample)
    if sample.shape[1] != len(sources):
        raise UnreadableError(f"{kind} has {sample.shape[1]} outputs where {len(sources)} were expected")
    return replace(inputs, sources=tuple(sources), sample=sample)


def _identity(function: Any) -> bool:
    """Return whether a function leaves numbers as they are: none, or scikit-learn's own check of arrays (histogram boosting has one)."""
    checked = getattr(function, "func", None)
    return function is None or (
        getattr(checked, "__name__", "") == "check_array" and str(getattr(checked, "__module__", "")).startswith("sklearn.")
    )


def _base(sample: Any) -> Any:
    """Return one row; as an array where the rows are plain numbers, which are quicker to write."""
    if not isinstance(sample, pd.DataFrame):
        return dense(sample[:1])
    plain = all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in sample.dtypes)
    return sample.iloc[:1].to_numpy() if plain else sample.iloc[:1]


def _outputs(step: Any, kind: str, width: int, inputs: Inputs) -> list[tuple[int, Kind]]:
    """Return the position that each output of a transformer reads, and what is done to numbers there."""
    if kind in SCALERS:
        bent = bool(getattr(step, "clip", False))
        return [(p, "monotone" if bent else "affine") for p in range(width)]
    if kind == "SimpleImputer":
        marked = step.missing_values
        if not (marked is None or pd.isna(marked)):
            for source in inputs.sources:
                column = inputs.table.columns[source.column]
                if column.levels is None:
                    raise UnreadableError(f"SimpleImputer takes the value {marked!r} of {column.name} as missing")
        empty = [bool(pd.isna(v)) and not getattr(step, "keep_empty_features", False) for v in step.statistics_]
        kept = [p for p in range(width) if not empty[p]]
        flags = list(step.indicator_.features_) if step.add_indicator else []
        return [*((p, "keep") for p in kept), *((int(p), "affine") for p in flags)]
    if kind == "OneHotEncoder":
        return [(p, "equal") for p, n in enumerate(step._n_features_outs) for _ in range(n)]
    if kind == "OrdinalEncoder":
        return [(p, "equal") for p in range(width)]
    if kind == "KBinsDiscretizer":
        each = [1] * width if step.encode == "ordinal" else [int(n) for n in step.n_bins_]
        return [(p, "bins") for p, n in enumerate(each) for _ in range(n)]
    if kind == "FunctionTransformer":
        raise UnreadableError("FunctionTransformer applies a function that cannot be read")
    raise UnreadableError(f"{kind} is not among the transformers that can be read")
