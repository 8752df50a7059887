"""Model files: ONNX, skops, XGBoost and LightGBM formats; external data; predictions in files."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from models_kit import COLUMNS, outcome, table, three

from budge.errors import DataError, MissingDependencyError, ModelError, StorageError
from budge.models import OnnxModel, PredictionFile, Predictor, as_predictor, check_contract, load_model, point_keys
from budge.models.lgbm_text import check_text
from budge.models.onnx_graph import read_graph
from budge.models.xgb_file import check_xgboost

FRAME = table(120)
Y = outcome(FRAME)
SCALED = FRAME.astype("float64") / [50, 3000, 900]


def logistic(y: Any = Y) -> Any:
    linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is in the `models` extra")
    return linear.LogisticRegression(max_iter=1000).fit(SCALED, y)


@pytest.fixture
def skl2onnx() -> Any:
    pytest.importorskip("onnxruntime", reason="onnxruntime is in the `models` extra")
    return pytest.importorskip("skl2onnx", reason="skl2onnx is in the `dev` extra")


@pytest.mark.parametrize("zipmap", [True, False])
@pytest.mark.parametrize("labels", ["int", "str", "three"])
def test_onnx_single_tensor(skl2onnx: Any, tmp_path: Path, zipmap: bool, labels: str) -> None:
    y = {"int": Y, "str": np.array(["no", "yes"])[Y], "three": three(FRAME)}[labels]
    model = logistic(y)
    proto = skl2onnx.to_onnx(model, SCALED.to_numpy("float32"), options={"zipmap": zipmap})
    file = tmp_path / "m.onnx"
    file.write_bytes(proto.SerializeToString())
    classes = tuple(model.classes_.tolist())
    for given in (file, str(file), file.read_bytes(), proto, OnnxModel.read(file)):
        predictor = as_predictor(given, columns=COLUMNS)
        assert predictor.classes == classes
        shuffled = SCALED[COLUMNS[::-1]].assign(note=1)
        assert predictor.predict(shuffled).tolist() == model.predict(SCALED.astype("float32")).tolist()
    proba = as_predictor(file, columns=COLUMNS, output="probability", of=classes[1])
    np.testing.assert_allclose(proba.predict(SCALED), model.predict_proba(SCALED)[:, 1], atol=1e-5)
    assert as_predictor(file).digest() == as_predictor(file.read_bytes()).digest()
    again = pickle.loads(pickle.dumps(as_predictor(file)))
    assert again.predict(SCALED).tolist() == as_predictor(file).predict(SCALED).tolist()
    with pytest.raises(ModelError, match="3 columns"):
        as_predictor(file).predict(SCALED.assign(extra=1))


def test_onnx_session_and_regression(skl2onnx: Any) -> None:
    import onnxruntime
    from sklearn.linear_model import LinearRegression

    model = LinearRegression().fit(SCALED, SCALED["income"] * 3)
    content = skl2onnx.to_onnx(model, SCALED.to_numpy("float32")).SerializeToString()
    predictor = as_predictor(onnxruntime.InferenceSession(content))
    assert (predictor.output, predictor.classes) == ("score", None)
    np.testing.assert_allclose(predictor.predict(SCALED), model.predict(SCALED), rtol=1e-4)


def test_onnx_one_input_a_column(skl2onnx: Any) -> None:
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    frame = SCALED.astype("float32").assign(job=np.array(["a", "b", "c"])[three(FRAME)])
    model = make_pipeline(make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough"), LogisticRegression())
    model.fit(frame, Y)
    types = [(c, StringTensorType([None, 1]) if c == "job" else FloatTensorType([None, 1])) for c in frame]
    content = skl2onnx.convert_sklearn(model, initial_types=types).SerializeToString()
    predictor = as_predictor(content)
    assert set(predictor.columns or ()) == set(frame.columns)
    assert predictor.predict(frame[frame.columns[::-1]]).tolist() == model.predict(frame).tolist()
    with pytest.raises(ModelError, match=r"column 'job'.*did you mean 'jobs'"):
        predictor.predict(frame.rename(columns={"job": "jobs"}))


def external(location: str) -> bytes:
    onnx = pytest.importorskip("onnx", reason="onnx comes with skl2onnx, in the `dev` extra")
    helper, kind = onnx.helper, onnx.TensorProto
    weight = helper.make_tensor("w", kind.FLOAT, [3, 1], np.ones(3, "float32").tobytes(), raw=True)
    weight.ClearField("raw_data")
    weight.data_location = kind.EXTERNAL
    entry = weight.external_data.add()
    entry.key, entry.value = "location", location
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    ends = [helper.make_tensor_value_info(n, kind.FLOAT, [None, d]) for n, d in (("x", 3), ("y", 1))]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()


@pytest.mark.parametrize("location", ["../secret.bin", "/etc/passwd", "sub/../../secret.bin", "link.bin"])
def test_onnx_data_outside_its_folder_is_listed(tmp_path: Path, location: str) -> None:
    (tmp_path / "secret.bin").write_bytes(np.ones(3, "float32").tobytes())
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    (folder / "m.onnx").write_bytes(external(location))
    with pytest.raises(ModelError, match="outside its folder") as caught:
        load_model(folder / "m.onnx")
    assert location in str(caught.value)


def test_onnx_data_beside_it_is_read(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is in the `models` extra")
    file = tmp_path / "m.onnx"
    file.write_bytes(external("w.bin"))
    with pytest.raises(ModelError, match=r"missing.*w\.bin"):
        load_model(file)
    (tmp_path / "w.bin").write_bytes(np.array([1, 2, 3], "float32").tobytes())
    predictor = as_predictor(file)
    np.testing.assert_allclose(predictor.predict(SCALED), SCALED.to_numpy() @ [1, 2, 3], rtol=1e-5)
    first = predictor.digest()
    (tmp_path / "w.bin").write_bytes(np.array([1, 2, 4], "float32").tobytes())
    assert as_predictor(file).digest() != first
    with pytest.raises(ModelError, match="bytes have no folder"):
        as_predictor(file.read_bytes())


def test_cut_or_flipped_onnx_bytes_never_crash_the_reader() -> None:
    content = external("w.bin")
    rng = np.random.default_rng(0)
    for cut in range(0, len(content), 7):
        try:
            read_graph(content[:cut])
        except ModelError:
            continue
    for _ in range(300):
        broken = bytearray(content)
        broken[rng.integers(len(broken))] = rng.integers(256)
        try:
            read_graph(bytes(broken))
        except ModelError:
            continue


class Odd:
    """A type that skops does not know."""

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        return outcome(frame)


def test_skops(tmp_path: Path) -> None:
    io = pytest.importorskip("skops.io", reason="skops is in the `models` extra")
    model = logistic()
    io.dump(model, tmp_path / "m.skops")
    assert as_predictor(tmp_path / "m.skops").predict(SCALED).tolist() == model.predict(SCALED).tolist()
    io.dump(Odd(), tmp_path / "odd.skops")
    name = f"{Odd.__module__}.Odd"
    with pytest.raises(ModelError, match="not known to be safe") as caught:
        load_model(tmp_path / "odd.skops")
    assert name in str(caught.value)
    with pytest.raises(ModelError, match="not known to be safe"):
        load_model(tmp_path / "odd.skops", trust=["some.Other"])
    for trust in (True, [name]):
        assert as_predictor(tmp_path / "odd.skops", trust=trust).predict(FRAME).tolist() == Y.tolist()


@pytest.mark.parametrize("suffix", ["json", "ubj"])
def test_xgboost_files(tmp_path: Path, suffix: str) -> None:
    xgb = pytest.importorskip("xgboost", reason="xgboost is in the `models` extra")
    model = xgb.XGBClassifier(n_estimators=5).fit(FRAME, Y)
    model.save_model(tmp_path / f"m.{suffix}")
    predictor = as_predictor(tmp_path / f"m.{suffix}")
    assert predictor.predict(FRAME[COLUMNS[::-1]]).tolist() == model.predict(FRAME).tolist()
    (tmp_path / f"cut.{suffix}").write_bytes((tmp_path / f"m.{suffix}").read_bytes()[:900])
    with pytest.raises(ModelError, match="cut off or broken"):
        load_model(tmp_path / f"cut.{suffix}")


def test_broken_ubj_is_refused_before_xgboost_sees_it() -> None:
    xgb = pytest.importorskip("xgboost", reason="xgboost is in the `models` extra")
    content = bytes(xgb.XGBClassifier(n_estimators=2).fit(FRAME, Y).get_booster().save_raw("ubj"))
    check_xgboost(content)
    for cut in range(1, len(content), 41):
        with pytest.raises(ModelError, match="cut off or broken"):
            check_xgboost(content[:cut])
    length = content.index(b"L") + 1
    for bad in (b"\xff" * 8, b"\x7f" + b"\xff" * 7):
        with pytest.raises(ModelError, match="does not fit into the file"):
            check_xgboost(content[:length] + bad + content[length + 8 :])
    with pytest.raises(ModelError, match="after its end"):
        check_xgboost(content + b"}")
    with pytest.raises(ModelError, match="levels deep"):
        check_xgboost(content[:1] + b"L" + bytes(7) + b"\x01a" + b"[" * 5000)


def test_lightgbm_files(tmp_path: Path) -> None:
    lgb = pytest.importorskip("lightgbm", reason="lightgbm is in the `models` extra")
    model = lgb.LGBMClassifier(n_estimators=5, verbose=-1).fit(FRAME, Y)
    model.booster_.save_model(tmp_path / "m.txt")
    predictor = as_predictor(tmp_path / "m.txt", classes=["no", "yes"])
    assert predictor.predict(FRAME[COLUMNS[::-1]]).tolist() == np.array(["no", "yes"])[model.predict(FRAME)].tolist()


def lightgbm_text(categories: bool) -> bytes:
    lgb = pytest.importorskip("lightgbm", reason="lightgbm is in the `models` extra")
    frame = FRAME.assign(job=pd.Categorical(np.array(list("abcdef"))[np.arange(120) % 6])) if categories else FRAME
    y = (np.arange(120) % 6 < 3).astype(int) if categories else Y
    options = {"objective": "binary", "verbose": -1, "min_data_per_group": 1, "min_data_in_leaf": 2, "cat_smooth": 0}
    return lgb.train(options, lgb.Dataset(frame, y), 4).model_to_string().encode()


@pytest.mark.parametrize("categories", [False, True])
def test_broken_lightgbm_text_is_refused_before_lightgbm_sees_it(tmp_path: Path, categories: bool) -> None:
    """LightGBM itself ends the process on a file that is cut in a tree, and never returns on one with bytes after its head."""
    content = lightgbm_text(categories)
    check_text(content)
    assert (b"num_cat=0" not in content) == categories
    end = content.index(b"end of trees")
    for cut in range(5, end + 11, 37):
        with pytest.raises(ModelError, match="cut off or broken"):
            check_text(content[:cut])
    children = content.index(b"left_child=")
    at = content.index(b"\n", children)
    row = content[children:at].split(b"=")[1].split()
    for planted in (b"0", b"99", b"-99"):
        bad = b"left_child=" + b" ".join([planted, *row[1:]])
        changed = content[:children] + bad.ljust(at - children) + content[at:]
        if len(changed) == len(content):
            with pytest.raises(ModelError, match="do not make a tree"):
                check_text(changed)
    for old, new in [
        (b"tree_sizes=", b"tree_sizes=9"),
        (b"num_class=", b"nun_class="),
        (b"Tree=1", b"Tree=7"),
        (b"\nTree=2", b"\x00Tree=2"),
    ]:
        with pytest.raises(ModelError, match="cut off or broken"):
            check_text(content.replace(old, new, 1))
    (tmp_path / "m.txt").write_bytes(content[: end // 2])
    with pytest.raises(ModelError, match=r"m\.txt: the LightGBM file is cut off"):
        load_model(tmp_path / "m.txt")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("kind", ["int", "str", "score", "bool"])
def test_a_file_of_predictions_answers_for_the_model(tmp_path: Path, suffix: str, kind: str) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is in the `parquet` extra")
    values = {"int": Y, "str": np.array(["NA", "None"])[Y], "score": FRAME["income"] / 1e4, "bool": Y == 1}[kind]
    returned = pd.DataFrame({"key": point_keys(FRAME), "prediction": values}).sample(frac=1, random_state=0)
    file = tmp_path / f"p.{suffix}"
    returned.to_csv(file, index=False) if suffix == "csv" else returned.to_parquet(file)
    predictor = PredictionFile.read(file)
    assert isinstance(predictor, Predictor)
    found = predictor.predict(FRAME[COLUMNS[::-1]].astype({"age": "float32"}))
    assert found.tolist() == pytest.approx(list(values)) if kind == "score" else found.tolist() == list(values)
    assert predictor.output == ("score" if kind == "score" else "label")
    assert check_contract(predictor, FRAME) == []
    assert predictor.digest() == PredictionFile.from_frame(returned.iloc[::-1]).digest()


def test_points_without_a_prediction_are_unresolved() -> None:
    returned = pd.DataFrame({"key": point_keys(FRAME)[:50], "prediction": [*Y[:49].tolist(), None]})
    predictor = PredictionFile.from_frame(returned)
    done = predictor.predict_resolved(FRAME)
    assert done.resolved.tolist() == [True] * 49 + [False] * 71
    assert done.outputs[:49].tolist() == Y[:49].tolist()
    assert done.outputs[60] is None
    assert "no prediction for key" in done.error
    assert "is empty" in done.errors[1]
    with pytest.raises(ModelError, match="71 of 120 rows got no answer, row 49 first"):
        predictor.predict(FRAME)
    labelled = FRAME.assign(key=point_keys(FRAME), income=0)  # a column of people's own is part of the point: all points of a person share it
    assert not predictor.predict_resolved(labelled).resolved.any()


def test_bad_files_of_predictions(tmp_path: Path) -> None:
    keys = point_keys(FRAME)
    for record, message in [
        ({"Key": keys, "prediction": Y}, "'key' is missing; did you mean 'Key'"),
        ({"key": keys, "predictions": Y}, "did you mean 'predictions'"),
        ({"key": [keys[0], keys[0]], "prediction": [0, 1]}, "a key has two predictions"),
        ({"key": [keys[0], None], "prediction": [0, 1]}, "row 1: a key is missing"),
    ]:
        with pytest.raises(DataError, match=message):
            PredictionFile.from_frame(pd.DataFrame(record))
    same_twice = PredictionFile.from_frame(pd.DataFrame({"key": [keys[0], keys[0]], "prediction": [1, 1]}))
    assert same_twice.predict(FRAME[:1]).tolist() == [1]
    with pytest.raises(StorageError, match="no such file"):
        PredictionFile.read(tmp_path / "none.csv")
    (tmp_path / "bad.parquet").write_bytes(b"not parquet")  # without pyarrow it says that instead
    with pytest.raises((DataError, StorageError, MissingDependencyError)):
        PredictionFile.read(tmp_path / "bad.parquet")


def test_keys_tell_points_apart_and_forms_not() -> None:
    base = pd.DataFrame({"a": [1], "b": ["x"]})
    key = point_keys(base)[0]
    same = [
        base.astype({"a": float}),
        base[["b", "a"]],
        base.astype({"b": "category"}),
        base.astype({"a": "Int64"}),
        base.astype(object),
    ]
    assert {point_keys(frame)[0] for frame in same} == {key}
    others = [
        base.assign(a="1"),
        base.assign(a=True),
        base.assign(a=2),
        base.assign(b="y"),
        base.rename(columns={"b": "c"}),
        base.assign(a=np.nan),
    ]
    assert len({point_keys(frame)[0] for frame in others} | {key}) == 7
    zeros = pd.DataFrame({"a": [0.0, -0.0]})
    assert point_keys(zeros)[0] == point_keys(zeros)[1]
    wide = pd.DataFrame({"a": [2**53, 2**53 + 1]})
    assert point_keys(wide)[0] != point_keys(wide)[1]
    assert key == "966a68af054610c48a8719bd390ca6a7"  # what is on disk today must be found tomorrow
