"""Files whose lies two readers take differently, and pipes where a text is expected."""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

from budge.errors import BudgeError
from budge.llm.prompt_files import read_text
from budge.models.loading import load_model
from budge.stored import open_zip


@pytest.fixture(scope="module")
def text() -> str:
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is in the `models` extra")
    X = np.random.default_rng(0).normal(size=(200, 4))
    data = lightgbm.Dataset(X, X[:, 3] + X[:, 0], params={"verbosity": -1})
    return str(lightgbm.train({"verbosity": -1, "num_threads": 1, "num_leaves": 8}, data, 5).model_to_string())


def resized(text: str) -> str:
    """Return a LightGBM text whose stated sizes are those of its trees."""
    head, rest = text.split("\n\nTree=", 1)
    body, end = ("Tree=" + rest).split("end of trees\n", 1)
    trees = ["Tree=" + tree for tree in body.split("Tree=")[1:]]
    sizes = " ".join(str(len(tree)) for tree in trees)
    return re.sub("tree_sizes=.*", f"tree_sizes={sizes}", head) + "\n\n" + "".join(trees) + "end of trees\n" + end


def test_honest_lightgbm_files_with_strange_names_or_line_ends_load(text: str, tmp_path: Path) -> None:
    X = np.random.default_rng(1).normal(size=(20, 4))
    expected = None
    for i, content in enumerate([text, text.replace("\n", "\r\n"), text.replace("Column_0 ", "a\u00a0b "), text.replace("Column_0 ", "Tree=0 ")]):
        path = tmp_path / f"{i}.txt"
        path.write_text(content, encoding="utf-8", newline="")
        found = load_model(path).predict(X)
        expected = found if expected is None else expected
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("how", ["second header", "carriage returns", "outputs", "child", "column", "decision"])
def test_lightgbm_files_that_are_read_in_two_ways_are_refused(text: str, tmp_path: Path, how: str) -> None:
    names = "feature_names=Column_0 Column_1 Column_2 Column_3"
    content = {
        "second header": text.replace("\n\nTree=0", "\n\nmax_feature_idx=0\nfeature_names=a\nfeature_infos=none\n\nTree=0"),
        "carriage returns": text.replace(names, "feature_names=a b\rmax_feature_idx=1\rzz"),
        "outputs": text.replace("num_tree_per_iteration=1", "num_tree_per_iteration=5"),
        "child": resized(re.sub(r"(?m)^left_child=.*$", lambda m: re.sub(r"(\d+)", r"\1.0", m[0]), text, count=1)),
        "column": resized(re.sub(r"(?m)^split_feature=\d+", "split_feature=2.9", text, count=1)),
        "decision": resized(re.sub(r"(?m)^decision_type=\d+", "decision_type=64", text, count=1)),
    }[how]
    assert content != text
    (tmp_path / "m.txt").write_text(content, newline="")
    with pytest.raises(BudgeError, match="LightGBM file is cut off or broken"):
        load_model(tmp_path / "m.txt")


def test_lists_in_lists_of_an_objective_are_refused(tmp_path: Path) -> None:
    xgboost = pytest.importorskip("xgboost", reason="xgboost is in the `models` extra")
    path = tmp_path / "m.json"
    xgboost.train({"nthread": 1}, xgboost.DMatrix(np.eye(4), np.arange(4)), 1).save_model(path)
    document = json.loads(path.read_text())
    document["learner"]["objective"] = {"name": "reg:quantileerror", "quantile_loss_param": {"quantile_alpha": "[" * 50_000}}
    path.write_text(json.dumps(document))
    with pytest.raises(BudgeError, match="lists in lists"):
        load_model(path)


def test_a_pipe_is_no_file_of_prompts(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.txt")
    with pytest.raises(BudgeError, match="not a regular file"):
        read_text(tmp_path / "p.txt")


def test_a_member_that_hides_in_a_comment_is_missed() -> None:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as packed:
        for name in ("one", "two", "three"):
            packed.writestr(name, name)
    data = bytearray(sink.getvalue())
    assert len(open_zip(io.BytesIO(data)).infolist()) == 3
    entry = data.index(b"PK\x01\x02")
    data[entry + 32] = 46 + len("two")  # the length of the comment of the first: the second entry
    with pytest.raises(ValueError, match="has 2 members and states 3"):
        open_zip(io.BytesIO(data))
