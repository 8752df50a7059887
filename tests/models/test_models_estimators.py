"""scikit-learn estimators and pipelines: labels, scores, columns, digests."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from models_kit import COLUMNS, outcome, table, three

from budge.errors import ModelError
from budge.models import Predictor, as_predictor

pytest.importorskip("sklearn", reason="scikit-learn is in the `models` extra")
from sklearn.compose import make_column_transformer
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC

FRAME = table()
NAMES = np.array(["no", "yes"])[outcome(FRAME)]


def scaled(model: object, y: object = None) -> object:
    return make_pipeline(StandardScaler(), model).fit(FRAME, NAMES if y is None else y)


@pytest.mark.parametrize("search", [False, True])
def test_labels_are_those_of_the_estimator(search: bool) -> None:
    model = scaled(LogisticRegression())
    if search:
        model = GridSearchCV(model, {"logisticregression__C": [1.0]}, cv=2).fit(FRAME, NAMES)
    predictor = as_predictor(model)
    assert isinstance(predictor, Predictor)
    assert (predictor.output, predictor.classes, predictor.columns) == ("label", ("no", "yes"), tuple(COLUMNS))
    assert predictor.predict(FRAME).tolist() == model.predict(FRAME).tolist()


def test_probability_of_either_class_and_threshold() -> None:
    model = scaled(LogisticRegression())
    yes = as_predictor(model, output="probability")
    no = as_predictor(model, output="probability", of="no")
    expected = model.predict_proba(FRAME)
    np.testing.assert_array_equal(yes.predict(FRAME), expected[:, 1])
    np.testing.assert_array_equal(no.predict(FRAME), expected[:, 0])
    assert (yes.output, yes.bounds) == ("score", (0.0, 1.0))
    strict = as_predictor(model, threshold=0.9)
    assert strict.predict(FRAME).tolist() == np.where(expected[:, 1] >= 0.9, "yes", "no").tolist()
    averse = as_predictor(model, threshold=0.9, of="no")
    assert averse.predict(FRAME).tolist() == np.where(expected[:, 0] >= 0.9, "no", "yes").tolist()


def test_more_than_two_classes() -> None:
    model = scaled(RandomForestClassifier(n_estimators=5, random_state=0), three(FRAME))
    assert as_predictor(model).classes == (0, 1, 2)
    np.testing.assert_array_equal(
        as_predictor(model, output="probability", of=2).predict(FRAME), model.predict_proba(FRAME)[:, 2]
    )
    with pytest.raises(ModelError, match=r"which class.*0 \(int\), 1 \(int\), 2 \(int\)"):
        as_predictor(model, output="probability")
    with pytest.raises(ModelError, match=r"'2' \(str\) is not a class of the model; its classes are 0 \(int\)"):
        as_predictor(model, output="probability", of="2")
    with pytest.raises(ModelError, match="a threshold needs two classes"):
        as_predictor(model, threshold=0.5)


def test_score_is_the_probability_or_else_the_decision() -> None:
    logistic, machine = scaled(LogisticRegression()), scaled(LinearSVC())
    np.testing.assert_array_equal(as_predictor(logistic, output="score").predict(FRAME), logistic.predict_proba(FRAME)[:, 1])
    np.testing.assert_array_equal(as_predictor(machine, output="score").predict(FRAME), machine.decision_function(FRAME))
    with pytest.raises(ModelError, match=r"gives no probabilities.*output='score'"):
        as_predictor(machine, output="probability")
    signed = as_predictor(machine, threshold=0.0)
    assert signed.predict(FRAME).tolist() == machine.predict(FRAME).tolist()


def test_regression_and_outliers() -> None:
    model = LinearRegression().fit(FRAME, FRAME["income"] * 2)
    predictor = as_predictor(model)
    assert (predictor.output, predictor.classes, predictor.bounds) == ("score", None, None)
    np.testing.assert_array_equal(predictor.predict(FRAME), model.predict(FRAME))
    rich = as_predictor(model, threshold=6000.0, classes=["poor", "rich"])
    assert rich.predict(FRAME).tolist() == np.where(model.predict(FRAME) >= 6000, "rich", "poor").tolist()
    forest = IsolationForest(n_estimators=5, random_state=0).fit(FRAME)
    assert set(as_predictor(forest).predict(FRAME).tolist()) <= {-1, 1}
    assert as_predictor(forest).output == "label"


def test_columns_are_matched_by_name_and_extra_ones_left_out() -> None:
    model = scaled(LogisticRegression())
    shuffled = FRAME[["rent", "age", "income"]].assign(note="x")
    assert as_predictor(model).predict(shuffled).tolist() == model.predict(FRAME).tolist()


def test_dtypes_reach_the_pipeline() -> None:
    frame = FRAME.assign(sex=pd.Categorical(["f", "m"] * 100), member=pd.array([True, False] * 100, dtype="boolean"))
    encode = make_column_transformer((OneHotEncoder(), ["sex", "member"]), remainder="passthrough")
    model = make_pipeline(encode, RandomForestClassifier(n_estimators=5, random_state=0)).fit(frame, NAMES)
    predictor = as_predictor(model)
    seen = []
    model.predict = lambda given, own=model.predict: seen.append(given) or own(given)  # type: ignore[method-assign]
    predictor.predict(frame[frame.columns[::-1]])
    assert list(seen[0].columns) == list(frame.columns)
    assert seen[0].dtypes.tolist() == frame.dtypes.tolist()


def test_fitted_without_names() -> None:
    model = SVC().fit(FRAME.to_numpy(), NAMES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert as_predictor(model).predict(FRAME).tolist() == model.predict(FRAME.to_numpy()).tolist()
    with pytest.raises(ModelError, match=r"without column names, on 3 columns.*give columns"):
        as_predictor(model).predict(FRAME.assign(extra=1))
    named = as_predictor(model, columns=COLUMNS)
    assert (
        named.predict(FRAME.assign(extra=1)[["extra", "rent", "income", "age"]]).tolist()
        == model.predict(FRAME.to_numpy()).tolist()
    )


def test_arrays_of_other_shapes_pass_through() -> None:
    images = np.random.default_rng(0).random((10, 4, 4))
    predictor = as_predictor(lambda x: x.mean(axis=(1, 2)), output="score", batch_rows=3)
    np.testing.assert_allclose(predictor.predict(images), images.mean(axis=(1, 2)))


def test_batches_do_not_change_the_answer() -> None:
    model = scaled(LogisticRegression())
    assert as_predictor(model, batch_rows=7).predict(FRAME).tolist() == model.predict(FRAME).tolist()


def test_several_outputs_and_unfitted() -> None:
    both = MultiOutputClassifier(RandomForestClassifier(n_estimators=3)).fit(FRAME, np.c_[outcome(FRAME), three(FRAME)])
    with pytest.raises(ModelError, match="several outputs"):
        as_predictor(both)
    unfitted = as_predictor(LogisticRegression())
    for ask in (unfitted.predict, unfitted.predict_resolved):
        with pytest.raises(ModelError, match="NotFittedError"):
            ask(FRAME)


FRESH = """
import sys; sys.path.insert(0, sys.argv[1])
from models_kit import table, outcome
from sklearn.ensemble import RandomForestClassifier
from budge.models import as_predictor
model = RandomForestClassifier(n_estimators=5, random_state=0).fit(table(), outcome(table()))
print(as_predictor(model).digest())
"""


def test_digest_is_content() -> None:
    fit = [RandomForestClassifier(n_estimators=5, random_state=seed).fit(FRAME, outcome(FRAME)) for seed in (0, 0, 1)]
    one, same, other = (as_predictor(model).digest() for model in fit)
    assert one == same != other
    assert as_predictor(fit[0], threshold=0.4).digest() not in (one, None)
    done = subprocess.run([sys.executable, "-c", FRESH, str(Path(__file__).parent)], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == one, done.stderr
    assert as_predictor(lambda frame: frame["age"]).digest() is None


def test_describe_is_a_sentence() -> None:
    model = scaled(LogisticRegression())
    assert as_predictor(model).describe() == (
        "Pipeline ending in LogisticRegression predicts the labels 'no' and 'yes', from 3 columns."
    )
    assert "'yes' where its probability is at least 0.3" in as_predictor(model, threshold=0.3).describe()
    assert "the probability of 'yes'" in as_predictor(model, output="probability").describe()
