"""ONNX files of honest models load and predict as the model did, and the shapes that are computed before a run are those of the run."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from budge.errors import ModelError
from budge.models import OnnxModel, as_predictor, load_model, onnx_model
from budge.models.onnx_graph import read_graph
from budge.models.onnx_rules import OPERATORS, Cost, Value
from budge.models.onnx_sizes import walk

onnx = pytest.importorskip("onnx", reason="onnx comes with skl2onnx, in the `dev` extra")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is in the `models` extra")
skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is in the `dev` extra")
pytest.importorskip("sklearn", reason="scikit-learn is in the `models` extra")
RNG = np.random.default_rng(5)
X = np.abs(RNG.normal(size=(90, 4))).astype("float32")
Y = (X[:, 0] + X[:, 1] > 1.4).astype(int)
NAMES = [
    "ensemble.AdaBoostClassifier", "ensemble.AdaBoostRegressor", "ensemble.BaggingClassifier", "ensemble.ExtraTreesRegressor",
    "ensemble.GradientBoostingClassifier", "ensemble.RandomForestClassifier", "gaussian_process.GaussianProcessRegressor",
    "linear_model.LogisticRegression", "linear_model.Ridge", "linear_model.SGDClassifier", "linear_model.TweedieRegressor", "mixture.GaussianMixture",
    "naive_bayes.BernoulliNB", "naive_bayes.GaussianNB", "neighbors.KNeighborsClassifier", "neighbors.KNeighborsRegressor",
    "neural_network.MLPClassifier", "neural_network.MLPRegressor", "svm.LinearSVC", "svm.NuSVR", "svm.SVC", "tree.DecisionTreeClassifier",
    "discriminant_analysis.QuadraticDiscriminantAnalysis", "cluster.KMeans", "calibration.CalibratedClassifierCV", "linear_model.RANSACRegressor",
]  # fmt: skip


def fitted(name: str) -> Any:
    from importlib import import_module

    module, _, kind = name.partition(".")
    model = getattr(import_module(f"sklearn.{module}"), kind)()
    known = model.get_params()
    model.set_params(**{key: value for key, value in {"max_iter": 300, "n_estimators": 7, "random_state": 3}.items() if key in known and known[key] != -1})
    return model.fit(X, Y)


@pytest.fixture(scope="module")
def honest() -> dict[str, tuple[Any, bytes]]:
    found = {}
    for name in NAMES:
        model = fitted(name)
        found[name] = model, skl2onnx.to_onnx(model, X[:1]).SerializeToString()
    return found


def compare(content: bytes, feed: dict[str, Any], label: str) -> set[str]:
    """Run a model with every result as an output; assert that each has the shape, and the numbers, that were computed before."""
    values = walk(read_graph(content).graph, {name: Value(array.shape) for name, array in feed.items()}, Cost(1 << 60, 1 << 60), 1, label)
    model = onnx.load_from_string(content)
    del model.graph.output[:]
    names = [output for node in model.graph.node for output in node.output if output in values]
    for name in names:
        model.graph.output.add().name = name
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL, 4
    run = onnxruntime.InferenceSession(model.SerializeToString(), options).run(names, feed)
    for name, result in zip(names, run):
        if not isinstance(result, list):  # a mapping for each row
            value, found = values[name], np.shape(result)
            assert len(found) == len(value.shape), (label, name, found, value)
            assert all(n <= most for n, most in zip(found, value.shape)), (label, name, found, value)
            assert not value.exact or found == value.shape, (label, name, found, value)
            assert value.known is None or np.array_equal(value.known, result), (label, name, result, value)
    return {node.op_type for node in model.graph.node}


def test_models_of_scikit_learn_predict_as_before(honest: dict[str, tuple[Any, bytes]], tmp_path: Path) -> None:
    for name, (model, content) in honest.items():
        path = tmp_path / "m.onnx"
        path.write_bytes(content)
        session = onnxruntime.InferenceSession(content)
        own = session.run([session.get_outputs()[0].name], {"X": X})[0]
        answer = as_predictor(path, columns=list("abcd")).predict(pd.DataFrame(X, columns=list("abcd")))
        assert answer.tolist() == own.ravel().tolist(), name
        np.testing.assert_allclose(np.asarray(answer, dtype=float), np.asarray(model.predict(X), dtype=float), rtol=2e-2, atol=2e-2, err_msg=name)


def test_shapes_are_those_of_the_run(honest: dict[str, tuple[Any, bytes]]) -> None:
    seen = set()
    for name, (_, content) in honest.items():
        for rows in (1, 2, 7):
            seen |= compare(content, {"X": X[:rows]}, name)
    assert len(seen) > 40
    assert "Scan" in seen


@pytest.mark.heavy
def test_shapes_are_those_of_the_run_for_the_cases_of_onnx() -> None:
    from onnx.backend.test.case.node import collect_testcases

    seen: set[str] = set()
    for case in collect_testcases(None):
        model = case.model
        kinds = {(f"{node.domain}:" if node.domain else "") + node.op_type for node in model.graph.node}
        if not kinds <= OPERATORS.keys() | {"Scan"}:
            continue
        feed = {info.name: np.asarray(value) for info, value in zip(model.graph.input, case.data_sets[0][0])}
        for info in list(model.graph.input):
            if len(feed) > 1 and feed[info.name].dtype == np.int64 and feed[info.name].size <= 64:  # may state a size
                model.graph.initializer.append(onnx.numpy_helper.from_array(feed.pop(info.name), info.name))
                model.graph.input.remove(info)
        model.ir_version = min(model.ir_version, 10)
        for opset in model.opset_import:
            opset.version = min(opset.version, 21) if opset.domain == "" else opset.version
        try:
            seen |= compare(model.SerializeToString(), feed, case.name)
        except ModelError as error:
            said = str(error)
        except Exception as error:
            said = str(error)
            if "ONNXRuntimeError" not in said:
                raise
        else:
            continue
        wanted = ("not known before the model runs", "does not cover", "missing", "ONNXRuntimeError")
        assert any(part in said for part in wanted), (case.name, said)
    assert len(seen) > 95


def test_a_network_of_torch_loads() -> None:
    torch = pytest.importorskip("torch", reason="torch is in the `torch` extra")
    layers = torch.nn
    model = layers.Sequential(
        layers.Linear(4, 8), layers.BatchNorm1d(8), layers.GELU(), layers.LayerNorm(8), layers.Linear(8, 3), layers.Dropout(), layers.Softmax(1)
    ).eval()  # fmt: skip
    stream = io.BytesIO()
    try:
        torch.onnx.export(model, (torch.zeros(2, 4),), stream, dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "n"}})
    except Exception as error:
        pytest.skip(f"torch cannot export here: {error}")
    session = OnnxModel(stream.getvalue()).session
    np.testing.assert_allclose(session.run(None, {"x": X})[0], model(torch.tensor(X)).detach().numpy(), atol=1e-5)


@pytest.mark.parametrize(("name", "few"), [("neighbors.KNeighborsClassifier", 12_000), ("ensemble.RandomForestClassifier", 1_000)])
def test_rows_that_do_not_fit_into_one_run_wait_for_the_next(
    honest: dict[str, tuple[Any, bytes]], monkeypatch: pytest.MonkeyPatch, name: str, few: int
) -> None:
    model, content = honest[name]
    runs = []
    few -= 4 * len(content)

    def rows(limit: int) -> list[Any]:
        monkeypatch.setattr(onnx_model, "ONNX_RUN_CELLS", limit)
        engine = onnx_model.OnnxEngine(OnnxModel(content))
        answers = [engine.answer(X, "label"), engine.answer(X, "probability")]
        runs.append(set(engine._at_once.values()))
        return [np.asarray(answer).tolist() for answer in answers]

    (labels, shares), (same_labels, same_shares) = rows(1 << 27), rows(few)
    assert labels == same_labels == model.predict(X).tolist()
    np.testing.assert_allclose(shares, same_shares, rtol=1e-6)  # onnxruntime adds few rows in another order
    assert runs[0] == {90}
    assert max(runs[1]) < 90


def graph(*nodes: Any, constants: dict[str, Any] | None = None, width: int | None = 4) -> bytes:
    helper = onnx.helper
    ends = [helper.make_tensor_value_info("X", 1, [None, width]), helper.make_tensor_value_info("y", 1, None)]
    weights = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    made = helper.make_graph(list(nodes), "g", ends[:1], ends[1:], weights)
    content: bytes = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    return content


def test_a_refused_operator_is_named_and_the_caller_s_own_session_is_taken(tmp_path: Path) -> None:
    node: Callable[..., Any] = onnx.helper.make_node
    path = tmp_path / "m.onnx"
    path.write_bytes(graph(node("Neg", ["X"], ["z"]), node("Det", ["c"], ["d"]), node("Add", ["z", "d"], ["y"]), constants={"c": np.eye(2, dtype="f4")}))
    with pytest.raises(ModelError, match=r"m\.onnx, operation 2 \(Det\): the operator is not among.*open it with onnxruntime\.InferenceSession"):
        load_model(path)
    own = as_predictor(onnxruntime.InferenceSession(path), columns=list("abcd"))
    assert own.output == "score"
    with pytest.raises(ModelError, match="Det"):
        as_predictor(path.read_bytes())


def test_the_width_of_a_table_may_be_open(tmp_path: Path) -> None:
    from skl2onnx.common.data_types import FloatTensorType

    model = fitted("ensemble.RandomForestClassifier")
    content = skl2onnx.convert_sklearn(model, initial_types=[("X", FloatTensorType([None, None]))]).SerializeToString()
    engine = onnx_model.OnnxEngine(OnnxModel(content))
    assert np.asarray(engine.answer(X, "label")).tolist() == model.predict(X).tolist()
    with pytest.raises(ModelError, match=r"TreeEnsembleClassifier"):  # onnxruntime would read past the row
        engine.answer(X[:, :1], "label")
