"""Plain functions, torch modules and CatBoost: what each receives, and what is read from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from models_kit import COLUMNS, outcome, table, three

from budge.errors import ModelError
from budge.models import as_predictor, check_contract

FRAME = table(60)


def test_a_function_receives_the_table_or_its_values() -> None:
    seen: list[Any] = []
    as_predictor(lambda t: seen.append(t) or np.ones(len(t)), columns=["rent", "age"]).predict(FRAME)
    as_predictor(lambda t: seen.append(t) or np.ones(len(t)), columns=["rent", "age"], takes="numpy").predict(FRAME)
    assert list(seen[0].columns) == ["rent", "age"]
    assert isinstance(seen[1], np.ndarray)
    np.testing.assert_array_equal(seen[0].to_numpy(), seen[1])


@pytest.mark.parametrize(
    "answer",
    [
        lambda v: v,
        lambda v: pd.Series(v, index=range(5, 5 + len(v))),
        list,
        lambda v: v.tolist(),
        lambda v: pd.array(v, dtype="Int64"),
        lambda v: pd.Series(v).astype("category"),
    ],
)
def test_what_a_function_may_return(answer: Any) -> None:
    found = as_predictor(lambda t: answer(outcome(t))).predict(FRAME)
    assert isinstance(found, np.ndarray)
    assert found.tolist() == outcome(FRAME).tolist()


@pytest.mark.parametrize("kind", [int, float, bool, str, object])
@pytest.mark.parametrize("fill", [None, 1])
@pytest.mark.parametrize("returned", [lambda found: found, list], ids=["array", "list"])
def test_a_masked_answer_is_no_answer_whatever_stands_below_the_mask(kind: Any, fill: Any, returned: Any) -> None:
    hidden = np.arange(60) % 3 == 0

    def model(t: pd.DataFrame) -> Any:
        return returned(np.ma.array(outcome(t).astype(kind), mask=hidden[t.index], fill_value=fill if fill is None or kind is object else kind(fill)))

    found = as_predictor(model).predict_resolved(FRAME.reset_index(drop=True))
    assert found.resolved.tolist() == (~hidden).tolist()
    assert found.outputs[~hidden].tolist() == outcome(FRAME).astype(kind)[~hidden].tolist()


def test_a_function_with_a_column_a_class() -> None:
    def shares(frame: pd.DataFrame) -> np.ndarray:
        return np.eye(3)[three(frame)] * 0.8 + 0.2 / 3

    names = ["low", "mid", "high"]
    assert as_predictor(shares, classes=names).predict(FRAME).tolist() == np.array(names)[three(FRAME)].tolist()
    high = as_predictor(shares, classes=names, output="probability", of="high").predict(FRAME)
    np.testing.assert_array_equal(high, shares(FRAME)[:, 2])
    with pytest.raises(ModelError, match="give classes"):
        as_predictor(shares).predict(FRAME)
    with pytest.raises(ModelError, match="two-dimensional"):
        as_predictor(shares, classes=names[:2]).predict(FRAME)


def test_an_object_with_predict_only() -> None:
    class Owner:
        def predict(self, frame: pd.DataFrame) -> np.ndarray:
            return outcome(frame)

    predictor = as_predictor(Owner())
    assert (predictor.name, predictor.output, predictor.classes) == ("Owner", "label", None)
    assert check_contract(predictor, FRAME) == []


def test_torch_modules() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    torch.manual_seed(0)
    many = torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Dropout(0.5), torch.nn.Linear(3, 3))
    given = torch.from_numpy(FRAME.to_numpy("float32"))
    many.train()
    predictor = as_predictor(many, classes=["a", "b", "c"], columns=COLUMNS)
    found = predictor.predict(FRAME[COLUMNS[::-1]])
    assert many.training
    assert many[1].training
    with torch.no_grad():
        raw = many.eval()(given).numpy()
    assert found.tolist() == np.array(["a", "b", "c"])[raw.argmax(1)].tolist()
    assert check_contract(predictor, FRAME) == []
    score = as_predictor(many, classes=["a", "b", "c"], output="score", of="b").predict(FRAME)
    np.testing.assert_allclose(score, raw[:, 1], rtol=1e-5)
    one = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Sigmoid()).double()
    share = as_predictor(one, output="probability")
    assert share.output == "score"
    assert share.predict(FRAME).dtype == np.float64
    labelled = as_predictor(one, threshold=0.5).predict(FRAME)
    assert labelled.tolist() == (share.predict(FRAME) >= 0.5).astype(int).tolist()
    with pytest.raises(ModelError, match="give threshold"):
        as_predictor(one, classes=[0, 1]).predict(FRAME)
    with pytest.raises(ModelError, match="takes numbers"):
        share.predict(FRAME.assign(age="x"))
    first = share.digest()
    with torch.no_grad():
        one[0].bias += 1
    assert first != share.digest()


def test_catboost() -> None:
    catboost = pytest.importorskip("catboost", reason="catboost is not installed")
    options = {"iterations": 5, "verbose": False, "allow_writing_files": False}
    for y in (np.array(["no", "yes"])[outcome(FRAME)], np.array(["a", "b", "c"])[three(FRAME)]):
        model = catboost.CatBoostClassifier(**options).fit(FRAME, y)
        predictor = as_predictor(model)
        assert predictor.columns == tuple(COLUMNS)
        assert predictor.classes == tuple(sorted(set(y.tolist())))
        assert predictor.predict(FRAME[COLUMNS[::-1]]).tolist() == model.predict(FRAME).ravel().tolist()
    model = catboost.CatBoostRegressor(**options).fit(FRAME, FRAME["income"])
    predictor = as_predictor(model)
    assert predictor.output == "score"
    np.testing.assert_array_equal(predictor.predict(FRAME[COLUMNS[::-1]]), model.predict(FRAME))
