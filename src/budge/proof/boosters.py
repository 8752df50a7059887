"""Structures of XGBoost, LightGBM and CatBoost models, out of what they save; none of them is imported."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from budge.frames import level_key
from budge.models.reading import plain
from budge.proof.encoders import Inputs
from budge.proof.linear import additive, floored
from budge.proof.splits import Codes, join, to_trees
from budge.proof.structure import Answer, FloatArray, Structure, UnreadableError

__all__ = ["catboost", "lightgbm", "xgboost"]

SINGLE, DOUBLE = 2.0**-24, 2.0**-52
Link = Literal["identity", "logistic", "exp"]
XGB_NUMBERS: dict[str, Link] = {
    "reg:squarederror": "identity", "reg:absoluteerror": "identity", "reg:pseudohubererror": "identity", "reg:quantileerror": "identity",
    "binary:logitraw": "identity", "rank:pairwise": "identity", "rank:ndcg": "identity", "rank:map": "identity",
    "reg:logistic": "logistic", "count:poisson": "exp", "reg:gamma": "exp", "reg:tweedie": "exp",
}  # fmt: skip
LIGHT_NUMBERS: dict[str, Link] = {
    "regression": "identity", "regression_l1": "identity", "huber": "identity", "fair": "identity", "quantile": "identity", "mape": "identity",
    "lambdarank": "identity", "rank_xendcg": "identity", "poisson": "exp", "gamma": "exp", "tweedie": "exp", "cross_entropy": "logistic",
}  # fmt: skip


def xgboost(model: Any, inputs: Inputs) -> Structure:
    """Return the structure of an XGBoost model, of its scikit-learn classes or a bare booster."""
    estimator = model if hasattr(model, "get_booster") else None
    booster = model.get_booster() if estimator is not None else model
    marked = getattr(estimator, "missing", np.nan)
    if marked is not None and not np.isnan(marked):
        raise UnreadableError(f"XGBoost takes the value {marked!r} as missing (missing=)")
    document = json.loads(bytes(booster.save_raw("json")))["learner"]
    booster_kind = document["gradient_booster"]["name"]
    answer, base = _xgb_answer(estimator, document)
    scores = len(base)
    if booster_kind == "gblinear":
        weights = np.asarray(document["gradient_booster"]["model"]["weights"], dtype=np.float32).astype(float).reshape(-1, scores)
        if inputs.sparse:
            raise UnreadableError("gblinear on a sparse matrix")
        return _linear(weights, base, inputs, answer)
    inner = document["gradient_booster"]["gbtree"] if booster_kind == "dart" else document["gradient_booster"]
    drops = document["gradient_booster"].get("weight_drop")
    inputs = replace(inputs, native=_xgb_levels(inner["model"], booster, inputs))
    trees: list[dict[str, Any]] = []
    stop = _xgb_trees(estimator, booster, inner["model"], scores)
    for t, (tree, group) in enumerate(zip(inner["model"]["trees"][:stop], inner["model"]["tree_info"])):
        if int(tree["tree_param"].get("size_leaf_vector", 1) or 1) > 1:
            raise UnreadableError("XGBoost trees with several outputs per leaf")
        left = np.asarray(tree["left_children"])
        values = np.asarray(tree["split_conditions"], dtype=np.float32).astype(float)
        sets = {
            node: Codes(frozenset(tree["categories"][start : start + size]), listed=False)  # the listed codes go right
            for node, start, size in zip(tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"])
        }
        value = np.zeros((len(left), scores))
        value[:, group] = values * (1.0 if drops is None else np.float32(drops[t]))
        trees.append({"feature": np.where(left < 0, -1, tree["split_indices"]), "threshold": values, "missing": np.asarray(tree["default_left"]),
                      "left": left, "right": np.asarray(tree["right_children"]), "value": value, "sets": sets})  # fmt: skip
    if not trees:
        raise UnreadableError("the model has no trees")
    forest = join(trees, single=True, strict=True, absent=inputs.sparse)
    return floored(to_trees(forest, inputs, answer, base, (len(trees) + 8) * SINGLE), 2.0**-22)


def _linear(weights: FloatArray, base: FloatArray, inputs: Inputs, answer: Answer) -> Structure:
    """Return the structure of a linear booster: the last row of weights is the constant."""
    return floored(
        additive(weights[:-1].T, base + weights[-1], inputs, answer, (len(weights) + 8) * SINGLE, skips=True), 2.0**-22
    )


def _xgb_answer(estimator: Any, document: dict[str, Any]) -> tuple[Answer, FloatArray]:
    """Return how scores become answers, and the scores before the first tree."""
    parameters, objective = document["learner_model_param"], document["objective"]["name"]
    text = parameters["base_score"].strip()
    start = np.asarray(json.loads(text) if text.startswith("[") else float(text), dtype=np.float32).astype(float).ravel()
    count = int(parameters.get("num_class", 0) or 0)
    if int(parameters.get("num_target", 1) or 1) > 1:
        raise UnreadableError("XGBoost with several targets")
    known = tuple(plain(c) for c in getattr(estimator, "classes_", ())) if hasattr(estimator, "predict_proba") else None
    if objective in ("multi:softprob", "multi:softmax"):
        return Answer("argmax", known or tuple(range(count)), link=None), start * np.ones(count)
    if objective in ("binary:logistic", "binary:hinge"):
        link: Link | None = "logistic" if objective == "binary:logistic" else None
        answer = Answer("binary", known or (0, 1), link=link)
        return answer, np.log(start / (1 - start)) if link else start
    if known or objective not in XGB_NUMBERS:
        raise UnreadableError(f"the objective {objective} of XGBoost is not read")
    link = XGB_NUMBERS[objective]
    margin = start if link == "identity" else np.log(start) if link == "exp" else np.log(start / (1 - start))
    return Answer("number", link=link), margin


def _xgb_trees(estimator: Any, booster: Any, inner: dict[str, Any], scores: int) -> int:
    """Return how many trees answer: the scikit-learn classes stop at the best iteration."""
    if estimator is None or booster.attr("best_iteration") is None:
        return len(inner["trees"])
    rounds = int(booster.attr("best_iteration")) + 1
    ends = inner.get("iteration_indptr")
    return int(ends[rounds]) if ends else rounds * scores * int(inner["gbtree_model_param"].get("num_parallel_tree", 1))


def _category_columns(inputs: Inputs) -> list[tuple[int, Any]]:
    """Return the inputs that hold categories, and their dtypes."""
    if not isinstance(inputs.sample, pd.DataFrame):
        return []
    return [(k, dtype) for k, dtype in enumerate(inputs.sample.dtypes) if isinstance(dtype, pd.CategoricalDtype)]


def _numbered(levels: Iterable[Any]) -> dict[Any, float]:
    return {level_key(level): float(i) for i, level in enumerate(levels)}


def _xgb_levels(inner: dict[str, Any], booster: Any, inputs: Inputs) -> dict[int, dict[Any, float]]:
    """Return the number of each level: by the categories of training where they were saved, else by those of the table."""
    encoded = (inner.get("cats") or {}).get("enc") or []
    found = {}
    for k, dtype in _category_columns(inputs):
        levels = list(dtype.categories)
        if k < len(encoded) and encoded[k].get("values"):
            values, offsets = encoded[k]["values"], encoded[k].get("offsets")
            raw = bytes(v % 256 for v in values) if offsets else b""
            levels = [raw[a:b].decode() for a, b in pairwise(offsets)] if offsets else values
        column = inputs.sources[k].column
        found[column] = _numbered(levels)
        strange = [v for v in inputs.table.columns[column].levels or () if level_key(v) not in found[column]]
        if strange:
            raise UnreadableError(
                f"XGBoost refuses the level {strange[0]!r} of {inputs.table.columns[column].name}, which it did not see in training"
            )
    return found


def lightgbm(model: Any, inputs: Inputs) -> Structure:
    """Return the structure of a LightGBM model, of its scikit-learn classes or a bare booster."""
    booster = getattr(model, "booster_", model)
    estimator = None if booster is model else model
    document = booster.dump_model()
    scores, infos = int(document["num_tree_per_iteration"]), document["tree_info"]
    answer, factor = _light_answer(estimator, str(document.get("objective", "")), scores)
    if document.get("average_output"):
        factor /= max(len(infos) // scores, 1)
    seen = document.get("pandas_categorical") or []
    columns = _category_columns(inputs)
    if seen and len(columns) != len(seen):
        raise UnreadableError(f"LightGBM saw {len(seen)} columns of categories and is given {len(columns)}")
    inputs = replace(inputs, native={inputs.sources[k].column: _numbered(levels) for (k, _), levels in zip(columns, seen)})
    trees = [_light_tree(info["tree_structure"], t % scores, scores, factor) for t, info in enumerate(infos)]
    if not trees:
        raise UnreadableError("the model has no trees")
    forest = join(trees, tiny=True)
    precision = (len(trees) + len(inputs.table.columns) + 16) * DOUBLE
    return floored(to_trees(forest, inputs, answer, np.zeros(scores), precision), 2.0**-50)


def _light_answer(estimator: Any, objective: str, scores: int) -> tuple[Answer, float]:
    """Return how scores become answers, and by what the scores are multiplied for that."""
    name, *options = objective.split() or ["custom"]
    known = tuple(plain(c) for c in estimator.classes_) if hasattr(estimator, "predict_proba") else None
    if name == "binary":
        factor = next((float(o.split(":")[1]) for o in options if o.startswith("sigmoid:")), 1.0)
        return Answer("binary", known or (0, 1)), factor
    if name in ("multiclass", "multiclassova"):
        return Answer("argmax", known or tuple(range(scores)), link=None), 1.0
    if known or name not in LIGHT_NUMBERS or "sqrt" in options:
        raise UnreadableError(f"the objective {objective or 'of the caller'} of LightGBM is not read")
    return Answer("number", link=LIGHT_NUMBERS[name]), 1.0


def _light_tree(top: dict[str, Any], score: int, scores: int, factor: float) -> dict[str, Any]:
    """Return a tree of nested nodes as arrays."""
    rows: list[tuple[int, float, bool, int, int, float]] = []
    sets: dict[int, Codes] = {}
    waiting: list[tuple[dict[str, Any], int, int]] = [(top, -1, 0)]
    while waiting:
        node, parent, side = waiting.pop()
        at = len(rows)
        if parent >= 0:
            row = list(rows[parent])
            row[3 + side] = at
            rows[parent] = tuple(row)  # type: ignore[assignment]
        if "split_feature" not in node:
            if node.get("leaf_features") or node.get("leaf_coeff"):
                raise UnreadableError("LightGBM with linear models in its leaves (linear_tree)")
            rows.append((-1, 0.0, False, 0, 0, factor * float(node["leaf_value"])))
            continue
        if node["missing_type"] == "Zero":
            raise UnreadableError("LightGBM takes zeros as missing values (zero_as_missing)")
        threshold, gone = 0.0, False
        if node["decision_type"] == "==":
            sets[at] = Codes(frozenset(int(code) for code in str(node["threshold"]).split("||")))
        else:
            threshold = float(node["threshold"])
            gone = bool(node["default_left"]) if node["missing_type"] == "NaN" else threshold >= 0
        rows.append((int(node["split_feature"]), threshold, gone, 0, 0, 0.0))
        waiting += [(node["right_child"], at, 1), (node["left_child"], at, 0)]
    feature, limits, missing, left, right, leaf = (np.array(part) for part in zip(*rows))
    value = np.zeros((len(rows), scores))
    value[:, score] = leaf
    return {
        "feature": feature,
        "threshold": limits,
        "missing": missing,
        "left": left,
        "right": right,
        "value": value,
        "sets": sets,
    }


def catboost(model: Any, inputs: Inputs) -> Structure:
    """Return the structure of a CatBoost model of symmetric trees over numbers."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        document = json.loads(path.read_text(encoding="utf-8"))
    if "oblivious_trees" not in document:
        raise UnreadableError("CatBoost with trees that are not symmetric")
    if document["features_info"].get("categorical_features") or document["features_info"].get("text_features"):
        raise UnreadableError("CatBoost with categories or texts: their encoding is not in the model's export")
    features = document["features_info"]["float_features"]
    place = {f["feature_index"]: f["flat_feature_index"] for f in features}
    gone = {f["feature_index"]: f.get("nan_value_treatment", "AsIs") for f in features}
    factor, bias = document["scale_and_bias"]
    bias = np.atleast_1d(np.asarray(bias, dtype=float))
    loss = document["model_info"]["params"]["loss_function"]["type"]
    scores = len(bias)
    trees = [_oblivious(tree, place, gone, scores, float(factor)) for tree in document["oblivious_trees"]]
    known = tuple(plain(c) for c in getattr(model, "classes_", ()))
    if loss in ("Logloss", "CrossEntropy") and scores == 1 and len(known) == 2:
        answer = Answer("binary", known)
    elif loss in ("MultiClass", "MultiClassOneVsAll") and known:
        answer = Answer("argmax", known, link=None)
    elif loss in ("RMSE", "MAE", "Quantile", "MAPE", "Huber") and scores == 1:
        answer = Answer("number", link="identity")
    else:
        raise UnreadableError(f"the loss {loss} of CatBoost is not read")
    precision = (len(trees) + len(inputs.table.columns) + 16) * DOUBLE
    return floored(to_trees(join(trees, single=True), inputs, answer, bias, precision), 2.0**-50)


def _oblivious(tree: dict[str, Any], place: dict[int, int], gone: dict[int, str], scores: int, factor: float) -> dict[str, Any]:
    """Return a symmetric tree, whose level d asks the same split everywhere, as one of nodes: the last split stands at the root."""
    splits, leaves = tree.get("splits") or [], np.asarray(tree["leaf_values"], dtype=float).reshape(-1, scores) * factor
    depth = len(splits)
    if any(split["split_type"] != "FloatFeature" for split in splits):
        raise UnreadableError("CatBoost with categories: their encoding is not in the model's export")
    inner = 2**depth - 1
    level = np.array([int(math.log2(i + 1)) for i in range(inner)], dtype=int)
    at = [splits[depth - 1 - d] for d in level]
    ends = np.zeros(inner + len(leaves), dtype=bool)
    children = np.arange(inner)
    value = np.zeros((len(ends), scores))
    value[inner:] = leaves
    pad = np.zeros(len(leaves))
    return {
        "feature": np.concatenate([[place[s["float_feature_index"]] for s in at], pad - 1]).astype(int),
        "threshold": np.concatenate([[s["border"] for s in at], pad]),
        "missing": np.concatenate([[gone[s["float_feature_index"]] != "AsTrue" for s in at], pad]).astype(bool),
        "left": np.concatenate([2 * children + 1, pad]).astype(int),
        "right": np.concatenate([2 * children + 2, pad]).astype(int),
        "value": value,
    }
