"""XGBoost and LightGBM: both interfaces, categories, names, and no cost over bare prediction."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from models_kit import COLUMNS, outcome, table, three

from budge.errors import ModelError
from budge.models import as_predictor

FRAME = table(400)
Y = outcome(FRAME)


@pytest.fixture
def xgb() -> Any:
    return pytest.importorskip("xgboost", reason="xgboost is in the `models` extra")


@pytest.fixture
def lgb() -> Any:
    return pytest.importorskip("lightgbm", reason="lightgbm is in the `models` extra")


def test_xgb_classifier(xgb: Any) -> None:
    model = xgb.XGBClassifier(n_estimators=5).fit(FRAME, Y)
    shuffled = FRAME[COLUMNS[::-1]].assign(note="x")
    predictor = as_predictor(model)
    assert (predictor.classes, predictor.columns) == ((0, 1), tuple(COLUMNS))
    np.testing.assert_array_equal(predictor.predict(shuffled), model.predict(FRAME))
    np.testing.assert_array_equal(as_predictor(model, output="probability").predict(shuffled), model.predict_proba(FRAME)[:, 1])
    named = as_predictor(model, classes=["no", "yes"])
    assert named.predict(FRAME).tolist() == np.array(["no", "yes"])[model.predict(FRAME)].tolist()


def test_xgb_missing_early_stopping_and_wide_integers(xgb: Any) -> None:
    frame = FRAME.assign(id=np.arange(400) + 2**40)
    frame.loc[::7, "income"] = -1.0
    model = xgb.XGBClassifier(n_estimators=20, missing=-1.0, early_stopping_rounds=2)
    model.fit(frame, Y, eval_set=[(frame[:50], 1 - Y[:50])], verbose=False)
    np.testing.assert_array_equal(
        as_predictor(model, output="probability").predict(frame), model.predict_proba(frame, validate_features=True)[:, 1]
    )


@pytest.mark.parametrize("objective", ["binary:logistic", "multi:softprob", "multi:softmax", "reg:squarederror", "gblinear"])
def test_xgb_booster_is_its_predict(xgb: Any, objective: str) -> None:
    many = objective.startswith("multi")
    options = (
        {"booster": "gblinear"} if objective == "gblinear" else {"objective": objective, **({"num_class": 3} if many else {})}
    )
    data = xgb.DMatrix(FRAME, three(FRAME) if many else Y)
    booster = xgb.train(options, data, 5)
    raw = booster.predict(xgb.DMatrix(FRAME))
    predictor = as_predictor(booster)
    found = predictor.predict(FRAME[COLUMNS[::-1]])
    expected = raw > 0.5 if objective == "binary:logistic" else raw.argmax(axis=1) if objective == "multi:softprob" else raw
    np.testing.assert_array_equal(found, expected)
    assert predictor.output == ("label" if many or "logistic" in objective else "score")
    if objective == "multi:softprob":
        np.testing.assert_array_equal(as_predictor(booster, output="probability", of=1).predict(FRAME), raw[:, 1])


def test_xgb_linear_booster_gets_the_names_of_training(xgb: Any) -> None:
    model = xgb.XGBClassifier(n_estimators=5, booster="gblinear").fit(FRAME, Y)
    np.testing.assert_array_equal(as_predictor(model).predict(FRAME[COLUMNS[::-1]]), model.predict(FRAME))


def test_xgb_categories_go_in_as_they_are(xgb: Any) -> None:
    frame = FRAME.assign(job=pd.Categorical(np.array(["a", "b", "c"])[three(FRAME)]))
    model = xgb.XGBClassifier(n_estimators=5, enable_categorical=True).fit(frame, Y)
    np.testing.assert_array_equal(as_predictor(model).predict(frame), model.predict(frame))
    codes = frame.assign(job=frame["job"].cat.codes)
    with pytest.raises(ModelError, match="not trained with this level"):
        as_predictor(model).predict(codes)
    booster = model.get_booster()
    np.testing.assert_array_equal(as_predictor(booster, output="score").predict(frame), model.predict_proba(frame)[:, 1])


@pytest.mark.parametrize("levels", [["a", "b", "c"], [1, 2, 5]])
def test_xgb_takes_the_texts_and_codes_of_a_file_for_the_categories_of_training(xgb: Any, tmp_path: Path, levels: list[Any]) -> None:
    jobs = np.array(levels)[three(FRAME)]
    frame = FRAME.assign(job=pd.Categorical(jobs, categories=levels[::-1]))  # in an order that no other table would have
    model = xgb.XGBClassifier(n_estimators=5, enable_categorical=True).fit(frame, jobs == levels[1])
    model.save_model(tmp_path / "model.json")
    expected = model.predict_proba(frame)[:, 1]
    assert len(set(expected.round(3))) > 1
    plain = FRAME.assign(job=jobs)
    for given in (model, tmp_path / "model.json"):
        predictor = as_predictor(given, output="probability", of=1)
        np.testing.assert_array_equal(predictor.predict(plain), expected)
        np.testing.assert_array_equal(predictor.predict(plain[5:6]), expected[5:6])
        with pytest.raises(ModelError, match="not trained with this level"):
            predictor.predict(plain.assign(job="never seen"))


@pytest.mark.parametrize("levels", [["?", "Bäcker", "Lehrer", "Müller"], ["ä", "b", "c"]])
def test_xgb_cuts_levels_beyond_ascii_which_is_stated(xgb: Any, tmp_path: Path, levels: list[str]) -> None:
    jobs = np.array(levels)[three(FRAME)]
    model = xgb.XGBClassifier(n_estimators=5, enable_categorical=True).fit(FRAME.assign(job=pd.Categorical(jobs, categories=levels)), jobs == levels[1])
    model.save_model(tmp_path / "model.json")
    for given in (model, tmp_path / "model.json"):
        predictor = as_predictor(given, output="probability", of=1)
        with pytest.raises(ModelError, match="train it with levels in plain letters or as numbers"):
            predictor.predict(FRAME.assign(job=jobs))


def test_lgb_estimator_and_booster(lgb: Any) -> None:
    frame = FRAME.rename(columns={"rent": "monthly rent"})
    model = lgb.LGBMClassifier(n_estimators=5, verbose=-1).fit(frame, np.array(["no", "yes"])[Y])
    predictor = as_predictor(model)
    assert predictor.columns == ("age", "income", "monthly_rent")
    shuffled = frame[frame.columns[::-1]].assign(note="x")
    assert predictor.predict(shuffled).tolist() == model.predict(frame).tolist()
    proba = model.predict_proba(frame)[:, 1]
    np.testing.assert_array_equal(as_predictor(model, output="probability").predict(shuffled), proba)
    bare = as_predictor(model.booster_)
    assert bare.classes == (0, 1)
    np.testing.assert_array_equal(bare.predict(shuffled), (proba > 0.5).astype(int))
    regressor = lgb.LGBMRegressor(n_estimators=5, verbose=-1).fit(frame, frame["income"])
    np.testing.assert_array_equal(as_predictor(regressor).predict(shuffled), regressor.predict(frame))


def test_lgb_categories_and_many_classes(lgb: Any) -> None:
    frame = FRAME.assign(job=pd.Categorical(np.array(["a", "b", "c"])[three(FRAME)]))
    model = lgb.LGBMClassifier(n_estimators=3, verbose=-1).fit(frame, three(FRAME))
    np.testing.assert_array_equal(as_predictor(model).predict(frame[frame.columns[::-1]]), model.predict(frame))
    np.testing.assert_array_equal(as_predictor(model.booster_).predict(frame), model.predict(frame))


def test_names_that_differ_are_named(xgb: Any, lgb: Any) -> None:
    for model in (xgb.XGBClassifier(n_estimators=2).fit(FRAME, Y), lgb.LGBMClassifier(n_estimators=2, verbose=-1).fit(FRAME, Y)):
        with pytest.raises(ModelError, match=r"column 'income'.*did you mean 'incomes'"):
            as_predictor(model).predict(FRAME.rename(columns={"income": "incomes"}))


def test_digests_follow_the_trees(xgb: Any, lgb: Any) -> None:
    for make in (lambda n: xgb.XGBClassifier(n_estimators=n), lambda n: lgb.LGBMClassifier(n_estimators=n, verbose=-1)):
        one, same, other = (as_predictor(make(n).fit(FRAME, Y)).digest() for n in (3, 3, 4))
        assert one == same != other


def test_predicting_costs_no_more_than_bare_predict(xgb: Any) -> None:
    """Processor time on one thread, best of several interleaved runs: other work on the machine does not count."""
    big = pd.concat([FRAME] * 100, ignore_index=True)
    model = xgb.XGBClassifier(n_estimators=50, n_jobs=1).fit(FRAME, Y)
    predictor = as_predictor(model)
    bare, ours = [], []
    for _ in range(7):
        start = time.process_time()
        model.predict(big)
        middle = time.process_time()
        predictor.predict(big)
        bare.append(middle - start)
        ours.append(time.process_time() - middle)
    assert min(ours) < 1.3 * min(bare)
