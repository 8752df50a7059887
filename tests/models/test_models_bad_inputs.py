"""Bad models and what must happen: one test a row of the table, and the contract behind it."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from models_kit import outcome, table

from budge.errors import DataError, ModelError, Problem, StorageError
from budge.models import as_predictor, check_contract, load_model
from budge.models.contract import ALONE
from budge.targets import label

FRAME = table(50)


def only(problems: list[Problem]) -> Problem:
    assert len(problems) == 1, [str(p) for p in problems]
    return problems[0]


@pytest.mark.parametrize("model", [None, 3, {"predict": 1}, object()])
def test_no_predict_and_not_callable(model: object) -> None:
    with pytest.raises(ModelError, match=r"no `predict` and cannot be called"):
        as_predictor(model)


def test_a_class_instead_of_a_model() -> None:
    class Model:
        def predict(self, frame: pd.DataFrame) -> Any:
            return frame["age"]

    with pytest.raises(ModelError, match="Model: a class was given"):
        as_predictor(Model)


WRONG: dict[str, tuple[Callable[[pd.DataFrame], object], str]] = {
    "short": (lambda t: np.ones(len(t) - 1), r"one output per row.*got \(49,\)"),
    "long": (lambda t: np.ones(len(t) + 2), r"one output per row.*got \(52,\)"),
    "scalar": (lambda t: 1, r"one value for the whole table \(got 1\)"),
    "2-D": (lambda t: np.ones((len(t), 2)), r"two-dimensional.*got \(50, 2\)"),
    "2-D column": (lambda t: np.ones((len(t), 1)), r"two-dimensional.*got \(50, 1\)"),
    "3-D": (lambda t: np.ones((len(t), 1, 1)), r"more than two dimensions.*got \(50, 1, 1\)"),
    "None": (lambda t: None, "answered None"),
    "all None": (lambda t: [None] * len(t), "50 of 50 outputs are None or NaN"),
    "NaN": (lambda t: np.full(len(t), np.nan), "50 of 50 outputs are None or NaN"),
    "raises": (lambda t: 1 / 0, "ZeroDivisionError: division by zero"),
}


SHAPES = ("short", "long", "2-D", "2-D column", "3-D")


@pytest.mark.parametrize("name", WRONG)
def test_wrong_answers_show_their_shape(name: str) -> None:
    model, message = WRONG[name]
    with pytest.raises(ModelError, match=message):
        as_predictor(model).predict(FRAME)
    found = check_contract(as_predictor(model), FRAME, rows=50)
    assert [p.severity for p in found] == ["error"]
    if name in SHAPES:  # an answer of the wrong shape speaks of the model as a whole: no row is asked again
        with pytest.raises(ModelError, match=message):
            as_predictor(model).predict_resolved(FRAME)
    else:
        assert not as_predictor(model).predict_resolved(FRAME).resolved.any()


def test_probabilities_where_labels_are_expected() -> None:
    share = lambda t: t["income"] / 10_000  # noqa: E731
    problem = only(check_contract(as_predictor(share), FRAME))
    assert "probabilities where labels are expected" in str(problem)
    assert "threshold=0.5" in problem.remedy
    assert check_contract(as_predictor(share, threshold=0.3), FRAME) == []
    assert check_contract(as_predictor(share, output="probability"), FRAME) == []
    assert "scores where labels" in str(only(check_contract(as_predictor(lambda t: t["income"]), FRAME)))
    with pytest.raises(ModelError, match="between 0 and 1"):
        as_predictor(lambda t: t["income"], output="probability").predict(FRAME)
    with pytest.raises(ModelError, match="between 0 and 1"):  # a missing answer does not hide a wrong one
        as_predictor(lambda t: [np.nan, 1.7, 0.2], output="probability").predict(FRAME[:3])


def test_a_threshold_belongs_to_the_class_that_it_names() -> None:
    predictor = as_predictor(lambda t: [0.49, 0.5, 0.51], threshold=0.5)
    assert predictor.predict(FRAME[:3]).tolist() == [0, 1, 1]
    plain = as_predictor(lambda t: [0.49, 0.5, 0.51], output="probability", classes=["no", "yes"], of="no")
    assert plain.predict(FRAME[:3]).tolist() == pytest.approx([0.51, 0.5, 0.49])


@pytest.mark.parametrize("classes", [[0, 1], ["0", "1"], [False, True]], ids=str)
@pytest.mark.parametrize("target", [1, "1", True], ids=repr)
def test_label_types_that_differ_show_both(classes: list[object], target: object) -> None:
    predictor = as_predictor(lambda t: [classes[i] for i in outcome(t)], classes=classes)
    assert check_contract(predictor, FRAME) == []
    outputs = predictor.predict(FRAME)
    if type(target) is type(classes[1]):
        assert label(target).check(predictor) == []
        assert label(target).hits(outputs).tolist() == (outcome(FRAME) == 1).tolist()
        return
    problem = only(label(target).check(predictor))
    assert f"{target!r} ({type(target).__name__})" in problem.what
    assert f"{classes[1]!r} ({type(classes[1]).__name__})" in problem.remedy
    with pytest.raises(ModelError, match="labels of another type are never equal"):
        label(target).hits(outputs)


def test_a_target_or_an_answer_that_is_no_class() -> None:
    predictor = as_predictor(lambda t: outcome(t), classes=[0, 1])
    problem = only(label(2).check(predictor))
    assert "does not know the label 2 (int); its classes are 0 (int), 1 (int)" in str(problem)
    odd = as_predictor(lambda t: outcome(t) + 1, classes=[0, 1])
    assert "answers 2 (int), which is none of its classes" in str(only(check_contract(odd, FRAME)))


def test_names_that_differ_from_training() -> None:
    predictor = as_predictor(lambda t: outcome(t), columns=["income", "rents", "ages"])
    with pytest.raises(ModelError) as caught:
        predictor.predict(FRAME)
    assert [p.where for p in caught.value.problems] == ["column 'rents'", "column 'ages'"]
    assert "did you mean 'age'?" in str(caught.value)
    with pytest.raises(ModelError, match="occur twice"):
        predictor.predict(pd.concat([FRAME, FRAME[["age"]]], axis=1))
    with pytest.raises(DataError, match="no rows"):
        predictor.predict(FRAME[:0])
    with pytest.raises(DataError, match="pandas table is expected"):
        predictor.predict(FRAME.to_dict())


def test_a_model_that_changes_its_input() -> None:
    def greedy(frame: pd.DataFrame) -> np.ndarray:
        frame["income"] *= 2
        return outcome(frame)

    problem = only(check_contract(as_predictor(greedy), FRAME))
    assert "changes the table" in problem.what
    assert problem.got == ["income"]
    kept = FRAME.copy()
    check_contract(as_predictor(greedy), FRAME)
    pd.testing.assert_frame_equal(kept, FRAME)  # the caller's own table was never at risk


def test_a_random_model() -> None:
    rng = np.random.default_rng(0)
    problem = only(check_contract(as_predictor(lambda t: rng.integers(0, 2, len(t))), FRAME))
    assert "the model is random" in problem.what


def test_a_model_that_depends_on_the_batch() -> None:
    problem = only(check_contract(as_predictor(lambda t: (t["income"] > t["income"].mean()).astype(int)), FRAME))
    assert "depends on the other rows of its batch" in problem.what
    for seed in range(20):  # whichever rows are chosen
        shifted = as_predictor(lambda t: (t["income"] > t["income"].mean()).astype(int))
        assert len(check_contract(shifted, FRAME, seed=seed)) == 1
    ranks = as_predictor(lambda t: np.arange(len(t)), output="score")
    problem = only(check_contract(ranks, FRAME))
    assert f"{ALONE - 1} of {ALONE} rows differ when asked alone" in problem.what


@pytest.mark.parametrize("rows", [2, 3, 12, 31])
def test_a_model_that_depends_on_the_index(rows: int) -> None:
    table = pd.DataFrame({"income": np.arange(rows) % 5})
    for answer in (lambda t: (t["income"] + t.index.to_numpy()) % 2, lambda t: t.index.to_numpy() % 2, lambda t: (t.index.to_numpy() < 1).astype(int)):
        problem = only(check_contract(as_predictor(answer), table))
        assert "depends on the index of the table" in problem.what
        assert "predict from the columns alone" in str(problem)


def test_a_model_that_joins_its_own_table_row_by_row_is_fit_for_an_audit() -> None:
    joins = as_predictor(lambda t: pd.concat([t, pd.DataFrame({"more": t["income"].to_numpy()})], axis=1)["more"] > 2000)
    assert check_contract(joins, FRAME.head(20).reset_index(drop=True)) == []


def test_rounding_is_no_dependence_on_the_batch() -> None:
    def noisy(frame: pd.DataFrame) -> np.ndarray:
        return frame["income"].to_numpy() * (1 + 1e-14 * len(frame))

    assert check_contract(as_predictor(noisy, output="score"), FRAME) == []


def fails_on(bad: set[int]) -> Callable[[pd.DataFrame], np.ndarray]:
    calls = [0]

    def model(frame: pd.DataFrame) -> np.ndarray:
        calls[0] += 1
        if bad & set(frame["row"]):
            raise ValueError(f"row {min(bad & set(frame['row']))} is bad")
        return frame["row"].to_numpy() * 2

    model.calls = calls  # type: ignore[attr-defined]
    return model


@pytest.mark.parametrize("bad", [{0}, {999}, {3, 4, 500}, set(range(0, 1000, 111))], ids=len)
@pytest.mark.parametrize("output", ["label", "score"])
def test_only_the_rows_that_raise_are_unresolved(bad: set[int], output: Any) -> None:
    frame = pd.DataFrame({"row": np.arange(1000)})
    model = fails_on(bad)
    done = as_predictor(model, output=output, batch_rows=300).predict_resolved(frame)
    assert set(np.flatnonzero(~done.resolved)) == bad
    outputs, resolved = done
    assert outputs[resolved].tolist() == (frame["row"][resolved] * 2).tolist()
    assert all(v is None or np.isnan(v) for v in outputs[~resolved])
    assert "is bad" in done.error
    assert model.calls[0] <= 4 + 2 * len(bad) * 10  # type: ignore[attr-defined]


def test_the_search_for_failing_rows_is_bounded() -> None:
    frame = pd.DataFrame({"row": np.arange(1000)})
    bad = set(range(0, 1000, 2))
    model = fails_on(bad)
    done = as_predictor(model).predict_resolved(frame, max_calls=50)
    assert model.calls[0] <= 51  # type: ignore[attr-defined]
    assert bad <= set(np.flatnonzero(~done.resolved))


def test_rows_without_an_answer_are_unresolved_and_labels_keep_their_type() -> None:
    done = as_predictor(lambda t: [1, "1", None, True, float("nan")][: len(t)]).predict_resolved(FRAME[:5])
    assert done.resolved.tolist() == [True, True, False, True, False]
    assert [(type(v), v) for v in done.outputs[done.resolved]] == [(int, 1), (str, "1"), (bool, True)]
    gaps = as_predictor(lambda t: np.where(t["age"] < 30, np.nan, 0.7), threshold=0.5)
    done = gaps.predict_resolved(FRAME)
    assert done.resolved.tolist() == (FRAME["age"] >= 30).tolist()
    assert set(done.outputs[done.resolved].tolist()) == {1}
    problem = only(check_contract(gaps, FRAME, rows=50))
    assert problem.severity == "warning"
    assert f"{int((FRAME['age'] < 30).sum())} of 50 rows get no answer" in problem.what


class Bomb:
    """Unpickling it writes a file."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (open, (self.path, "w"))


def archive(names: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for name, content in names.items():
            file.writestr(name, content)
    return stream.getvalue()


def objects(bomb: Bomb) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, a=np.array([bomb], dtype=object))
    return stream.getvalue()


UNSAFE: dict[str, tuple[Callable[[Bomb], bytes], list[str]]] = {
    "pickle": (pickle.dumps, ["m.pkl", "m.onnx", "m.json", "m.skops", "m.txt", "m"]),
    "pickle of protocol 0": (lambda b: pickle.dumps(b, protocol=0), ["m.pkl", "m.txt", "m.json"]),
    "joblib, compressed": (lambda b: __import__("zlib").compress(pickle.dumps(b)), ["m.joblib", "m.ubj"]),
    "gzip": (lambda b: __import__("gzip").compress(pickle.dumps(b)), ["m.joblib", "m.onnx"]),
    "torch": (lambda b: archive({"m/data.pkl": pickle.dumps(b), "m/version": b"3"}), ["m.pt", "m.onnx", "m.skops"]),
    "npz with objects": (objects, ["m.npz", "m.skops"]),
    "pickle before an archive": (lambda b: pickle.dumps(b) + archive({"schema.json": b"{}"}), ["m.skops"]),
    "archive after LightGBM text": (lambda b: b"tree\nversion=v4\n" + archive({"m/data.pkl": pickle.dumps(b)}), ["m.txt"]),
    "archive after JSON": (lambda b: b'{"learner":{}}' + archive({"m/data.pkl": pickle.dumps(b)}), ["m.json"]),
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, (_, names) in UNSAFE.items() for name in names])
def test_files_that_run_code_are_refused(kind: str, name: str, tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    file = tmp_path / name
    file.write_bytes(UNSAFE[kind][0](Bomb(str(trap))))
    with pytest.raises(ModelError, match=r"would run code|two in one") as caught:
        load_model(file)
    assert "trust=True" in str(caught.value)
    assert str(file) in str(caught.value)
    with pytest.raises(ModelError):
        as_predictor(file)
    assert not trap.exists()


def test_trust_is_explicit(tmp_path: Path) -> None:
    sklearn = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is in the `models` extra")
    joblib = pytest.importorskip("joblib", reason="joblib comes with scikit-learn")
    model = sklearn.LogisticRegression(max_iter=1000).fit(FRAME, outcome(FRAME))
    for compress in (0, 3):
        joblib.dump(model, tmp_path / "m.joblib", compress=compress)
        found = as_predictor(tmp_path / "m.joblib", trust=True).predict(FRAME)
        assert found.tolist() == model.predict(FRAME).tolist()


def test_files_that_are_no_model(tmp_path: Path) -> None:
    for name, content, message in [
        ("a.onnx", b"", "empty"),
        ("b.onnx", b"<html>", "no known format, the suffix '.onnx' says onnx"),
        ("c.json", b'{"a": 1}', "no known format"),
        ("d.txt", b'{"learner":{}}', "xgboost-json.*says lightgbm.*rename"),
        ("f.npz", objects(1), "run code"),  # type: ignore[arg-type]
    ]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ModelError, match=message):
            load_model(tmp_path / name)
    np.savez(tmp_path / "g.npz", a=np.ones(3))
    with pytest.raises(ModelError, match="arrays, not a model"):
        load_model(tmp_path / "g.npz")
    with pytest.raises(StorageError, match=r"no such model file; did you mean 'c.json'"):
        load_model(tmp_path / "cc.json")


OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"output": "labels"}, "did you mean 'label'"),
    ({"threshold": "5%"}, "threshold: a threshold is a number"),
    ({"threshold": True}, "threshold: a threshold is a number"),
    ({"threshold": 0.5, "output": "score"}, "a threshold turns scores into labels"),
    ({"classes": [1, 1]}, "listed twice"),
    ({"classes": "ab"}, "a list of labels"),
    ({"classes": [1]}, "at least two"),
    ({"of": 1}, "of= names the class of a score"),
    ({"batch_rows": 0}, "batch_rows"),
    ({"batch_rows": True}, "batch_rows"),
    ({"columns": ["a", "a"]}, "named once"),
    ({"takes": "list"}, "takes"),
]


@pytest.mark.parametrize(("options", "message"), OPTIONS, ids=lambda v: str(v)[:30])
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        as_predictor(lambda t: t["age"], **options)


def test_a_predictor_is_settled() -> None:
    predictor = as_predictor(lambda t: t["age"])
    assert as_predictor(predictor) is predictor
    with pytest.raises(ModelError, match="settled"):
        as_predictor(predictor, threshold=0.5)
