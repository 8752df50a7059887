"""skops files of ordinary types load without trust, folders of MLflow load as the file that they name, and neither names code to run."""

from __future__ import annotations

import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from budge.cli.project import read_project
from budge.errors import BudgeError, InputError, ModelError
from budge.models import as_predictor, load_model
from budge.models.loading import KNOWN

io = pytest.importorskip("skops.io", reason="skops is in the `models` extra")
X = pd.DataFrame({"a": [1.0, 2, np.nan, 4] * 10, "b": range(40), "c": list("xyxz") * 10})
Y = np.where(X["b"] > 20, "yes", "no")


def models() -> dict[str, Any]:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.ensemble import VotingClassifier
    from sklearn.feature_selection import SelectKBest
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    columns = make_column_transformer((SimpleImputer(), make_column_selector(dtype_include="number")), (OneHotEncoder(), ["c"]))
    by_type = make_column_transformer(
        (SimpleImputer(), make_column_selector(dtype_include=[np.number, np.integer, np.floating])),
        (OneHotEncoder(), make_column_selector(dtype_include=object)),
    )
    last = {
        "linear": LogisticRegression(), "calibrated": CalibratedClassifierCV(LogisticRegression(), cv=2),
        "vote": VotingClassifier([("a", LogisticRegression())]),
        "search": GridSearchCV(LogisticRegression(), {"C": [1, 2]}, cv=2), "network": MLPClassifier(max_iter=5),
    }  # fmt: skip
    made = {name: make_pipeline(columns, SelectKBest(k=3), model) for name, model in last.items()}
    return {**made, "by type": make_pipeline(by_type, LogisticRegression())}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["linear", "calibrated", "vote", "search", "network", "by type"])
def test_ordinary_types_need_no_trust(tmp_path: Path, name: str) -> None:
    model = models()[name].fit(X, Y)
    io.dump(model, tmp_path / "m.skops")
    assert io.get_untrusted_types(file=tmp_path / "m.skops")  # skops itself refuses
    assert load_model(tmp_path / "m.skops").predict(X).tolist() == model.predict(X).tolist()


def test_every_known_type_is_there() -> None:
    for name in KNOWN:
        module, _, kind = name.rpartition(".")
        assert hasattr(pytest.importorskip(module), kind), name


def test_a_known_type_is_known_by_its_loader_alone(tmp_path: Path) -> None:
    """A known name in a part of another kind is refused: `numpy.dtype` as an object would be given its memory layout by the file."""
    from sklearn.linear_model import LogisticRegression

    io.dump(LogisticRegression().fit(X[["b"]], Y), tmp_path / "m.skops")
    with zipfile.ZipFile(tmp_path / "m.skops") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(members["schema.json"])
    odd = {"__class__": "dtype", "__module__": "numpy", "__loader__": "ObjectNode", "__id__": 1, "content": None}
    schema["content"]["content"]["C"] = odd
    members["schema.json"] = json.dumps(schema).encode()
    with zipfile.ZipFile(tmp_path / "m.skops", "w") as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    with pytest.raises(ModelError, match="not known to be safe") as caught:
        load_model(tmp_path / "m.skops")
    assert "numpy.dtype" in str(caught.value)


def test_trees_are_refused_with_what_to_type(tmp_path: Path) -> None:
    from sklearn.tree import DecisionTreeClassifier

    io.dump(DecisionTreeClassifier().fit(X[["b"]], Y), tmp_path / "m.skops")
    with pytest.raises(ModelError, match=r"--trust sklearn\.tree\._tree\.Tree on the command line"):
        load_model(tmp_path / "m.skops")
    assert load_model(tmp_path / "m.skops", trust=["sklearn.tree._tree.Tree"]).predict(X[["b"]]).tolist() == Y.tolist()


# -- folders of MLflow ----------------------------------------------------------------------------------------------------


def saved(folder: Path, flavours: str) -> Path:
    """Return a folder as MLflow writes it."""
    folder.mkdir(exist_ok=True)
    (folder / "MLmodel").write_text(f"flavors:\n  python_function: {{loader_module: os, data: x}}\n{flavours}mlflow_version: 3.17.2\n")
    return folder


def test_folders_of_mlflow(tmp_path: Path) -> None:
    xgb, lgb = pytest.importorskip("xgboost", reason="the `models` extra"), pytest.importorskip("lightgbm", reason="the `models` extra")
    Z, z = X[["b"]], (Y == "yes").astype(int)
    one = saved(tmp_path / "xgb", "  xgboost: {data: model.ubj, model_class: xgboost.sklearn.XGBClassifier}\n")
    boosted = xgb.XGBClassifier(n_estimators=3).fit(Z, z)
    boosted.save_model(one / "model.ubj")
    two = saved(tmp_path / "lgb", "  lightgbm: {data: model.lgb, code: null}\n")
    light = lgb.LGBMClassifier(n_estimators=3, verbose=-1, min_child_samples=1).fit(Z, z)
    light.booster_.save_model(two / "model.lgb")
    three = saved(tmp_path / "sk", "  sklearn: {pickled_model: model.skops}\n")
    linear = models()["linear"].fit(X, z)
    io.dump(linear, three / "model.skops")
    for folder, made, frame in ((one, boosted, Z), (two, light, Z), (three, linear, X)):
        assert as_predictor(folder).predict(frame).tolist() == made.predict(frame).tolist()
    (tmp_path / "budge.toml").write_text('model = "xgb"')
    found = read_project(tmp_path / "budge.toml")
    assert found is not None
    assert found["model"] == [str(tmp_path / "xgb")]


class Canary:
    """Writes a file when it is unpickled."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.place,)


def test_a_folder_of_mlflow_names_no_code_and_trusts_nothing(tmp_path: Path) -> None:
    from sklearn.tree import DecisionTreeClassifier

    pickled = saved(tmp_path / "p", "  sklearn: {pickled_model: model.pkl, code: code}\n")
    (pickled / "model.pkl").write_bytes(pickle.dumps(Canary(tmp_path / "sung")))
    stated = saved(tmp_path / "s", "  sklearn: {pickled_model: model.skops, skops_trusted_types: [sklearn.tree._tree.Tree]}\n")
    io.dump(DecisionTreeClassifier().fit(X[["b"]], Y), stated / "model.skops")
    refused = {pickled: "would run code", stated: "not known to be safe", saved(tmp_path / "py", ""): "Python model of MLflow"}
    for folder, told in {**refused, tmp_path: "holds no model of MLflow"}.items():
        with pytest.raises(ModelError, match=told):
            load_model(folder)
    assert not (tmp_path / "sung").exists()
    load_model(pickled, trust=True)
    assert (tmp_path / "sung").exists()  # the canary sings where it is trusted


@pytest.mark.parametrize("file", ["../p/model.json", "/etc/passwd", "nothing.json", "null", "[a]", "link.json", "."])
def test_a_folder_of_mlflow_names_a_file_inside_it(tmp_path: Path, file: str) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "model.json").write_text("{}")
    folder = saved(tmp_path / "m", f"  xgboost: {{data: {file}}}\n")
    (folder / "link.json").symlink_to(tmp_path / "p" / "model.json")
    with pytest.raises(ModelError, match="names no file inside the folder"):
        load_model(folder)


BROKEN = ["", "- a\n", "flavors: 3\n", "flavors: {sklearn: 3}\n", "a: !!python/object/apply:os.system [x]\n", "a: &a [*a]\n", "\x00", "a: " * 99]


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_mlmodel_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "MLmodel").write_text(text)
    with pytest.raises(BudgeError):
        load_model(tmp_path)
    (tmp_path / "MLmodel").write_bytes(b"flavors: {a: \xff}")
    with pytest.raises(ModelError):
        load_model(tmp_path)


def test_no_project_file_names_a_function(tmp_path: Path) -> None:
    (tmp_path / "scoring.py").write_text("open('sung', 'w')\n")
    for named in ("scoring:score", "scoring.py:score", "http://localhost/predict"):
        (tmp_path / "budge.toml").write_text(f'model = "{named}"')
        with pytest.raises(InputError, match="no code and no address"):
            read_project(tmp_path / "budge.toml")
