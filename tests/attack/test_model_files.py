"""Hostile model files: none ends the process, runs code or takes more than a refusal may; real models of every kind still load."""

from __future__ import annotations

import io
import json
import os
import random
import zipfile
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hostile_files import (
    CANARY,
    Runs,
    archive,
    array_of,
    boosters,
    changed,
    crowded,
    encode_ubj,
    endless,
    flipped,
    growing,
    light_chain,
    light_text,
    lightgbms,
    lines_changed,
    npy,
    running_code,
    xgboost_chain,
)
from hostile_onnx import onnx_model, onnxes
from isolated import MEGABYTES, SECONDS, Judged, judged

from budge.errors import BudgeError
from budge.models import load_model
from budge.models.limits import MODEL_BYTES, TREE_DEPTH, UNPACKED_BYTES, check_archive, check_size
from budge.models.ubj import decode_ubj

pytest.importorskip("xgboost", reason="xgboost is in the `models` extra")
pytest.importorskip("lightgbm", reason="lightgbm is in the `models` extra")
QUICK = 110  # files of each family that the quick part takes


def use(path: Path) -> str:
    """Load a file and predict with what was loaded; an error of the library in predicting is an answer too."""
    model = load_model(path)
    rng = np.random.default_rng(0)
    try:
        if type(model).__module__.startswith("xgboost"):
            import xgboost

            wide = min(model.num_features(), 1000)
            matrix = rng.choice([0.0, 1.0, 3.0, -2.5, 1e30, np.nan], (16, wide)).astype("float32")
            types = model.feature_types
            if "c" in (types or ()):
                matrix = np.abs(np.nan_to_num(np.minimum(matrix, 4)))
            model.predict(
                xgboost.DMatrix(matrix, feature_names=model.feature_names, feature_types=types, enable_categorical=True)
            )
            if '"name":"gblinear"' not in model.save_config():
                model.inplace_predict(matrix)
            model.save_raw("json")
        elif type(model).__module__.startswith("lightgbm"):
            model.predict(rng.normal(size=(16, min(model.num_feature(), 1000))))
            model.dump_model()
        elif hasattr(model, "session"):
            shape = model.session.get_inputs()[0].shape
            model.session.run(None, {model.session.get_inputs()[0].name: np.zeros((4, shape[1]), dtype="float32")})
        else:
            model.predict(pd.DataFrame(rng.normal(size=(16, 3)), columns=list("abc")))
    except Exception as error:
        return f"loaded, {type(error).__name__}"
    return "loaded"


def assert_safe(paths: Iterable[Path], *, package: str = "", megabytes: float = MEGABYTES) -> list[Judged]:
    """Assert that every file is used or refused within the limits."""
    files = list(paths)
    found = judged(use, files, package=package, megabytes=megabytes)
    for path, (kind, said, seconds, most) in zip(files, found):
        assert kind in ("done", "refused"), f"{path}: {kind}: {said}"
        assert kind == "done" or seconds <= SECONDS, f"{path} was refused after {seconds:.1f} s of CPU: {said}"
        assert most <= megabytes, f"{path}: {most:.0f} MB: {said}"
    return found


def write(folder: Path, files: Iterable[tuple[str, bytes]], suffix: str, number: int | None, seed: int = 7) -> list[Path]:
    """Write the files, or a sample of them, under names of their own."""
    listed = list(files)
    if number is not None and len(listed) > number:
        listed = random.Random(seed).sample(listed, number)
    paths = []
    for i, (name, content) in enumerate(listed):
        paths.append(folder / f"{i} {''.join(c if c.isalnum() or c in '-=[]' else '_' for c in name)[:80]}.{suffix}")
        paths[-1].write_bytes(content)
    return paths


@pytest.fixture(scope="module")
def xgboosts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return boosters(tmp_path_factory.mktemp("xgboost"))


@pytest.fixture(scope="module")
def lights(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return lightgbms(tmp_path_factory.mktemp("lightgbm"))


@pytest.fixture(scope="module")
def skops_schema() -> bytes:
    return json.dumps(
        {"__class__": "dict", "__module__": "builtins", "__loader__": "DictNode", "content": {}, "protocol": 1}
    ).encode()


def test_real_models_of_every_kind_load_and_predict(xgboosts: dict[str, Path], lights: dict[str, Path]) -> None:
    for files, package in ((xgboosts, "xgboost"), (lights, "lightgbm")):
        found = assert_safe(files.values(), package=package)
        assert {name: one[:2] for name, one in zip(files, found)} == dict.fromkeys(files, ("done", "loaded"))


def mutated(files: dict[str, Path], suffix: str) -> Iterable[tuple[str, bytes]]:
    for name, path in files.items():
        if path.suffix == f".{suffix}":
            if suffix == "json":
                yield from (
                    (f"{name} {how}", content)
                    for how, content in changed(json.loads(path.read_text()), lambda d: json.dumps(d).encode())
                )
            else:
                yield from ((f"{name} {how}", content) for how, content in changed(decode_ubj(path.read_bytes()), encode_ubj))


@pytest.mark.parametrize("suffix", ["json", "ubj"])
@pytest.mark.parametrize("number", [QUICK, pytest.param(None, marks=pytest.mark.heavy)])
def test_xgboost_files_with_one_field_changed(xgboosts: dict[str, Path], tmp_path: Path, suffix: str, number: int | None) -> None:
    paths = write(tmp_path, mutated(xgboosts, suffix), suffix, number)
    found = assert_safe(paths, package="xgboost")
    assert sum(kind == "refused" for kind, *_ in found) > len(found) / 2
    assert number is not None or len(paths) > 4000


@pytest.mark.parametrize("number", [4, pytest.param(150, marks=pytest.mark.heavy)])
def test_xgboost_files_with_bytes_changed(xgboosts: dict[str, Path], tmp_path: Path, number: int) -> None:
    for suffix in ("json", "ubj"):
        files = [path for path in xgboosts.values() if path.suffix == f".{suffix}"]
        made = chain.from_iterable(flipped(path.read_bytes(), random.Random(i), number) for i, path in enumerate(files))
        assert_safe(write(tmp_path, made, suffix, None), package="xgboost")


def crafted() -> dict[str, tuple[str, object]]:
    """Return changes of a tree, by name: (field, value)."""
    return {
        "a child that is its own parent": ("left_children", [0, -1, -1]), "a circle": ("left_children", [1, 0, -1]),
        "one child twice": ("right_children", [1, -1, -1]), "a child far outside": ("right_children", [10**6, -1, -1]),
        "a negative child": ("left_children", [-5, -1, -1]), "a column far outside": ("split_indices", [10**7, 0, 0]),
        "parents in a circle": ("parents", [1, 0, 0]), "a leaf with a branch": ("right_children", [2, 1, -1]),
    }  # fmt: skip


@pytest.mark.parametrize("name", crafted())
def test_trees_that_are_no_trees_are_refused(xgboosts: dict[str, Path], tmp_path: Path, name: str) -> None:
    document = json.loads(xgboosts["gbtree.json"].read_text())
    tree = document["learner"]["gradient_booster"]["model"]["trees"][0]
    per_node = {"left_children": [1, -1, -1], "right_children": [2, -1, -1], "parents": [2**31 - 1, 0, 0], "split_indices": [0, 0, 0],
                "default_left": [0, 0, 0], "split_conditions": [0.0, 1.0, 2.0], "split_type": [0, 0, 0], "loss_changes": [1.0, 0.0, 0.0],
                "sum_hessian": [1.0, 1.0, 1.0], "base_weights": [0.0, 0.0, 0.0]}  # fmt: skip
    tree |= per_node
    tree["tree_param"]["num_nodes"] = "3"
    sound, broken = tmp_path / "sound.json", tmp_path / "broken.json"
    sound.write_text(json.dumps(document))
    field, value = crafted()[name]
    tree[field] = value
    broken.write_text(json.dumps(document))
    found = assert_safe([sound, broken])
    assert [one[0] for one in found] == ["done", "refused"], found


@pytest.mark.parametrize("number", [QUICK, pytest.param(None, marks=pytest.mark.heavy)])
def test_lightgbm_files_with_a_line_or_bytes_changed(lights: dict[str, Path], tmp_path: Path, number: int | None) -> None:
    lines = [(f"{name} {how}", content) for name, path in lights.items() for how, content in lines_changed(path.read_text())]
    flips = chain.from_iterable(flipped(path.read_bytes(), random.Random(5), 10 if number else 400) for path in lights.values())
    paths = write(tmp_path, lines, "txt", number)
    (tmp_path / "flips").mkdir()
    assert_safe([*paths, *write(tmp_path / "flips", flips, "txt", None)], package="lightgbm")


def test_xgboost_files_that_would_fail_when_they_predict_are_refused(xgboosts: dict[str, Path], tmp_path: Path) -> None:
    changes = {
        "two": ("gbtree", {"base_score": "[2E0]"}, "base_score [2E0] of binary:logistic is not from 0 to 1"),
        "below": ("gbtree", {"base_score": "-1"}, "base_score -1 of binary:logistic is not from 0 to 1"),
        "survival": ("survival", {"base_score": "[-1E0]"}, "base_score [-1E0] of survival:cox is not positive"),
        "both": ("classes", {"num_target": "3"}, "3 classes and 3 targets at once"),
        "zero": ("gbtree", {"base_score": "[0E0]"}, ""),  # as XGBoost writes it where all labels are 0
    }
    paths = []
    for name, (kind, change, _) in changes.items():
        document = json.loads(xgboosts[f"{kind}.json"].read_text())
        document["learner"]["learner_model_param"] |= change
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(json.dumps(document))
    found = assert_safe(paths, package="xgboost")
    for (name, (_, _, wanted)), (kind, said, *_) in zip(changes.items(), found):
        assert wanted in said, name
        assert kind == ("refused" if wanted else "done"), f"{name}: {said}"
    assert found[-1][1] == "loaded"


def test_deep_trees(xgboosts: dict[str, Path], tmp_path: Path) -> None:
    document = json.loads(xgboosts["gbtree.json"].read_text())
    depths = (TREE_DEPTH, TREE_DEPTH + 1, 20_000)
    for splits in depths:
        (tmp_path / f"{splits}.txt").write_bytes(light_text([light_chain(splits)]))
        document["learner"]["gradient_booster"]["model"]["trees"][0] |= xgboost_chain(splits)
        (tmp_path / f"{splits}.json").write_text(json.dumps(document))
        (tmp_path / f"{splits}.ubj").write_bytes(encode_ubj(document))
    for package, suffixes in (("lightgbm", ["txt"]), ("xgboost", ["json", "ubj"])):
        paths = [tmp_path / f"{splits}.{suffix}" for suffix in suffixes for splits in depths]
        for path, (kind, said, *_) in zip(paths, assert_safe(paths, package=package)):
            assert kind == ("done" if path.stem == str(TREE_DEPTH) else "refused"), f"{path}: {said}"
            assert kind == "done" or "(TREE_DEPTH)" in said


def test_files_of_many_small_parts_are_refused_quickly(tmp_path: Path) -> None:
    paths = []
    for name, content in crowded():
        paths.append(tmp_path / name)
        paths[-1].write_bytes(content)
    found = {path.name: one for path, one in zip(paths, assert_safe(paths, megabytes=350))}  # xgboost and lightgbm take 120 of it
    assert {one[0] for one in found.values()} == {"refused"}, found
    whole = {"escapes.json", "quotes.json", "texts with escapes.json", "numbers.json", "brackets.json"}  # within the limits, and no models
    whole |= {name for name in found if " of " in name or name == "parameters.txt"}  # more lines than LightGBM writes
    assert {name for name, one in found.items() if "pass the loaded model" not in one[1]} == whole


def test_files_that_would_run_code_are_refused(tmp_path: Path) -> None:
    paths = []
    for name, content in running_code(tmp_path):
        paths.append(tmp_path / name)
        paths[-1].write_bytes(content)
    found = assert_safe(paths)
    assert {kind for kind, *_ in found} == {"refused"}
    assert not (tmp_path / CANARY).exists()


def test_the_canary_sings_where_a_pickle_is_trusted(tmp_path: Path) -> None:
    for name, content in running_code(tmp_path):
        if name == "protocol4.pkl":
            (tmp_path / name).write_bytes(content)
    load_model(tmp_path / "protocol4.pkl", trust=True)
    assert (tmp_path / CANARY).exists()


def test_archives_that_grow_are_refused(tmp_path: Path, skops_schema: bytes) -> None:
    paths = []
    for name, content in growing(skops_schema):
        paths.append(tmp_path / name)
        paths[-1].write_bytes(content)
    skops = [p for p in paths if p.name in ("nested.skops", "lying.skops")]  # read by skops, which takes 370 MB itself
    paths = [p for p in paths if p not in skops]
    found = dict(zip((p.name for p in (*skops, *paths)), (*assert_safe(skops, package="skops.io", megabytes=450), *assert_safe(paths))))
    assert {one[0] for name, one in found.items() if not name.startswith("nested")} == {"refused"}, found
    assert "UNPACKED_TIMES" in found["zeros.skops"][1]
    assert "MEMBERS" in found["crowd.skops"][1]


def test_paths_that_never_end_or_hold_too_much_are_refused(tmp_path: Path) -> None:
    found = assert_safe(list(endless(tmp_path)))
    assert {kind for kind, *_ in found} == {"refused"}
    assert any(f"{MODEL_BYTES:,}" in said for _, said, *_ in found)


def test_the_limits_name_themselves(tmp_path: Path) -> None:
    huge = tmp_path / "huge.onnx"
    huge.touch()
    os.truncate(huge, MODEL_BYTES + 1)
    with pytest.raises(BudgeError, match=r"MODEL_BYTES.*got '1,073,741,825 bytes'.*load it with its own library"):
        check_size(huge)
    small = tmp_path / "a.skops"
    content = bytearray(archive({"schema.json": b"{}"}))
    at = content.rfind(b"PK\x01\x02")
    content[at + 24 : at + 28] = (UNPACKED_BYTES + 1).to_bytes(4, "little")
    small.write_bytes(content)
    with pytest.raises(BudgeError, match="UNPACKED_BYTES"):
        check_archive(small)


def test_arrays_in_archives_are_no_models(tmp_path: Path, skops_schema: bytes) -> None:
    members = {"objects": array_of({}), "huge": npy((10**12,)), "deep": npy((2,) * 200), "negative": npy((-1,)), "cut": npy((9,), body=b"x"),
               "odd kind": npy((3,), kind="<V99999999"), "a header in code": b"\x93NUMPY\x01\x00\x40\x00__import__('os').system('x')".ljust(80)}  # fmt: skip
    paths = []
    for name, body in members.items():
        for suffix, files in (("npy", None), ("npz", {"a.npy": body}), ("skops", {"schema.json": skops_schema, "a.npy": body})):
            paths.append(tmp_path / f"{name}.{suffix}")
            paths[-1].write_bytes(body if files is None else archive(files))
    assert_safe(paths, package="skops.io", megabytes=400)


@pytest.mark.parametrize("number", [60, pytest.param(2000, marks=pytest.mark.heavy)])
def test_onnx_files(tmp_path: Path, number: int) -> None:
    pytest.importorskip("onnx", reason="onnx comes with skl2onnx, of the `dev` extra")
    pytest.importorskip("onnxruntime", reason="onnxruntime is in the `models` extra")
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    sound = tmp_path / "sound.onnx"
    sound.write_bytes(onnx_model())
    named = write(tmp_path, onnxes(), "onnx", None)
    found = assert_safe([sound, *named], package="onnxruntime")
    assert found[0][:2] == ("done", "loaded")
    assert {kind for path, (kind, *_) in zip(named, found[1:]) if "location" in path.name} == {"refused"}
    (tmp_path / "flips").mkdir()
    assert_safe(write(tmp_path / "flips", flipped(onnx_model(), random.Random(2), number), "onnx", None), package="onnxruntime")


def skops_files(folder: Path) -> Iterable[tuple[str, bytes]]:
    """Yield skops archives that name functions of the system, or hold a real model with one field of its schema changed."""
    linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is in the `models` extra")
    skops = pytest.importorskip("skops.io", reason="skops is in the `models` extra")
    content = skops.dumps(linear.LogisticRegression().fit(np.eye(3), [0, 1, 0]))
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        members = {name: file.read(name) for name in file.namelist()}
    schema = json.loads(members["schema.json"])
    argument = {
        "__class__": "str",
        "__module__": "builtins",
        "__loader__": "JsonNode",
        "content": json.dumps(f"touch {folder / CANARY}"),
        "is_json": True,
    }
    for module, name in (
        ("os", "system"),
        ("posix", "system"),
        ("subprocess", "call"),
        ("builtins", "eval"),
        ("builtins", "exec"),
        ("operator", "methodcaller"),
        ("joblib", "load"),
    ):
        for loader in (
            "FunctionNode",
            "TypeNode",
            "ObjectNode",
            "PartialNode",
            "MethodNode",
            "OperatorFuncNode",
            "ReduceNode",
            "NoNode",
        ):
            content = {
                "module_path": module,
                "function": name,
                "func": name,
                "obj": argument,
                "args": argument,
                "attrs": argument,
            }
            node = {
                "__class__": name,
                "__module__": module,
                "__loader__": loader,
                "content": content,
                "protocol": 1,
                "reduce": argument,
                "constructor": argument,
            }
            yield f"{module} {name} {loader}", archive({**members, "schema.json": json.dumps(node).encode()})
    for how, text in changed(schema, lambda tree: json.dumps(tree).encode()):
        yield how, archive({**members, "schema.json": text})
    for name in members:
        yield f"no {name}", archive({other: body for other, body in members.items() if other != name})
        yield f"objects in {name}", archive({**members, name: array_of(Runs(folder))})


@pytest.mark.parametrize("number", [QUICK, pytest.param(None, marks=pytest.mark.heavy)])
def test_skops_files(tmp_path: Path, number: int | None) -> None:
    paths = write(tmp_path, skops_files(tmp_path), "skops", number)
    found = assert_safe(paths, package="skops.io", megabytes=450)  # scikit-learn itself takes 350
    assert sum(kind == "refused" for kind, *_ in found) > len(found) / 4
    assert not (tmp_path / CANARY).exists()


def test_a_support_vector_machine_in_a_skops_file_needs_trust(tmp_path: Path) -> None:
    svm = pytest.importorskip("sklearn.svm", reason="scikit-learn is in the `models` extra")
    skops = pytest.importorskip("skops.io", reason="skops is in the `models` extra")
    pipeline = pytest.importorskip("sklearn.pipeline")
    X, path = np.eye(4), tmp_path / "m.skops"
    for made in (svm.SVR().fit(X, [0, 1, 0, 1]), pipeline.make_pipeline(svm.SVR()).fit(X, [0, 1, 0, 1])):
        skops.dump(made, path)
        with pytest.raises(BudgeError, match=r"sklearn\.svm\._classes\.SVR"):  # libsvm would read past its memory where the file's sizes lie
            load_model(path)
        for trust in (True, ["sklearn.svm._classes.SVR"]):
            assert load_model(path, trust=trust).predict(X).tolist() == made.predict(X).tolist()
