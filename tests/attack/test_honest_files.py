"""Honest model files of many kinds load, and predict what the model predicted before it was saved."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from budge.models import load_model

XGB = {
    "max_depth": [1, 3, 8], "booster": ["gbtree", "dart"], "tree_method": ["hist", "approx", "exact"], "subsample": [0.5, 1], "num_parallel_tree": [1, 3],
    "gamma": [0, 1], "max_cat_to_onehot": [1, 4],
    "objective": ["binary:logistic", "reg:squarederror", "multi:softprob", "count:poisson", "reg:gamma", "reg:tweedie", "reg:absoluteerror",
                  "binary:hinge", "reg:logistic", "survival:cox", "multi:softmax"],
}  # fmt: skip
LIGHT = {
    "num_leaves": [2, 5, 31, 200], "max_depth": [-1, 2, 6], "boosting": ["gbdt", "dart"], "min_data_in_leaf": [1, 5, 20], "linear_tree": [False, True],
    "zero_as_missing": [False, True], "extra_trees": [False, True], "min_data_per_group": [1], "cat_smooth": [1],
    "objective": ["binary", "multiclass", "multiclassova", "regression", "regression_l1", "huber", "fair", "poisson", "quantile", "mape", "gamma",
                  "tweedie", "cross_entropy", "cross_entropy_lambda"],
}  # fmt: skip


def tables(options: dict[str, list[Any]], number: int) -> Iterator[tuple[dict[str, Any], pd.DataFrame, Any]]:
    """Yield options, a table and labels that fit them."""
    pick, rng = random.Random(3), np.random.default_rng(3)
    for _ in range(number):
        chosen = {key: pick.choice(values) for key, values in options.items()}
        rows, columns = pick.choice([40, 200]), pick.choice([1, 3, 8])
        X = pd.DataFrame(rng.normal(size=(rows, columns)), columns=[f"c{i}" for i in range(columns)])
        X = X.mask(rng.random(X.shape) < 0.2) if pick.random() < 0.3 else X
        if pick.random() < 0.3 and chosen.get("tree_method") != "exact":
            X["k"] = pd.Categorical(rng.choice(list("pqrstu"), rows))
        y = rng.random(rows) + 0.001
        if "multi" in chosen["objective"]:
            y, chosen["num_class"] = rng.integers(0, 3, rows), 3
        elif chosen["objective"].startswith("binary"):
            y = (y > 0.5).astype(int)
        yield chosen, X, np.clip(y, 0, 1) if "multi" not in chosen["objective"] else y


@pytest.mark.parametrize("number", [15, pytest.param(300, marks=pytest.mark.heavy)])
def test_xgboost_of_random_options(tmp_path: Path, number: int) -> None:
    xgboost = pytest.importorskip("xgboost", reason="xgboost is in the `models` extra")
    for i, (options, X, y) in enumerate(tables(XGB, number)):
        data = xgboost.DMatrix(X, y, enable_categorical=True)
        model = xgboost.train({"nthread": 1, "verbosity": 0, **options}, data, 5)
        path = tmp_path / f"m{i}.{'json' if i % 2 else 'ubj'}"
        model.save_model(path)
        np.testing.assert_array_equal(load_model(path).predict(data), model.predict(data), err_msg=str(options))


@pytest.mark.parametrize("number", [15, pytest.param(300, marks=pytest.mark.heavy)])
def test_lightgbm_of_random_options(tmp_path: Path, number: int) -> None:
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is in the `models` extra")
    read = 0
    for options, X, y in tables(LIGHT, number):
        quiet = {"verbosity": -1, "num_threads": 1, **options}
        with contextlib.suppress(lightgbm.basic.LightGBMError):  # options that do not go together
            model = lightgbm.train(quiet, lightgbm.Dataset(X, y, params=quiet), 5)
            model.save_model(tmp_path / "m.txt")
            again = lightgbm.Booster(model_file=tmp_path / "m.txt")
            np.testing.assert_array_equal(load_model(tmp_path / "m.txt").predict(X), again.predict(X), err_msg=str(options))
            read += 1
    assert read > number / 2


QUICK = {"RandomForestClassifier", "HistGradientBoostingClassifier", "SVC", "KNeighborsClassifier", "MLPClassifier", "GradientBoostingRegressor"}


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.heavy)])
def test_skops_of_many_kinds(tmp_path: Path, every: bool) -> None:
    skops = pytest.importorskip("skops.io", reason="skops is in the `models` extra")
    utils = pytest.importorskip("sklearn.utils", reason="scikit-learn is in the `models` extra")
    rng = np.random.default_rng(2)
    X = np.abs(rng.normal(size=(60, 4)))
    y = (X[:, 0] > 0.7).astype(int)
    read = []
    for name, kind in utils.all_estimators(type_filter=["classifier", "regressor"]):
        if not every and name not in QUICK:
            continue
        try:
            model = kind().fit(X, y)
            expected = model.predict(X)
            skops.dump(model, tmp_path / "m.skops")
        except Exception:  # an estimator that takes something else
            continue
        loaded = load_model(tmp_path / "m.skops", trust=True)
        np.testing.assert_allclose(loaded.predict(X), expected, rtol=1e-9, err_msg=name)  # arrays may lie in memory in another order
        read.append(name)
    assert len(read) > 60 if every else set(read) == QUICK
