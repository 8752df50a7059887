"""Hostile ONNX graphs: memory and time are bounded before onnxruntime opens the file; honest models are in tests/models/test_onnx_sizes.py."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from isolated import attempt
from test_model_files import assert_safe

from budge.models import load_model

onnx = pytest.importorskip("onnx", reason="onnx comes with skl2onnx, of the `dev` extra")
pytest.importorskip("onnxruntime", reason="onnxruntime is in the `models` extra")
from hostile_onnx import bombs, crowded_onnx, ensembles, graph_model, lies, meddled, squares  # noqa: E402


def test_small_files_that_ask_for_much_are_refused(tmp_path: Path) -> None:
    names, paths = [], []
    for name, content in bombs():
        names.append(name)
        paths.append(tmp_path / f"{len(paths)}.onnx")
        paths[-1].write_bytes(content)
    for name, (kind, said, *_) in zip(names, assert_safe(paths)):
        assert kind == "refused", f"{name}: {kind}: {said}"
        assert "onnxruntime cannot open" not in said, f"{name} came as far as onnxruntime: {said}"


def run(path: Path, rows: int) -> str:
    """Load a file and predict for so many rows."""
    from budge.models.onnx_model import OnnxEngine

    engine = OnnxEngine(load_model(path))
    feed = {i.name: np.ones((rows, 3), "float32") for i in engine.model.session.get_inputs()}
    return str([np.shape(engine._run(output.name, feed)) for output in engine.model.session.get_outputs()])


def test_results_that_grow_with_the_square_of_the_rows_are_made_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "square.onnx"
    path.write_bytes(squares())
    outcome = attempt(run, path, 15_000)  # 1.8 GB at once, and 3e12 multiplications
    assert outcome.kind == "done", outcome
    assert outcome.megabytes < 1000


def test_files_of_many_small_fields_are_refused_quickly(tmp_path: Path) -> None:
    paths = []
    for name, content in crowded_onnx():
        paths.append(tmp_path / f"{name}.onnx")
        paths[-1].write_bytes(content)
    assert {kind for kind, *_ in assert_safe(paths)} == {"refused"}


def test_trees_that_are_no_trees_are_refused(tmp_path: Path) -> None:
    sound = tmp_path / "sound.onnx"
    sound.write_bytes(graph_model([next(node for name, node in lies() if name == "sound")]))
    paths = [sound]
    for i, (name, node) in enumerate(lies()):
        if name != "sound":
            paths.append(tmp_path / f"{i} {name}.onnx")
            paths[-1].write_bytes(graph_model([node]))
    judged = assert_safe(paths, package="onnxruntime")
    assert judged[0][:2] == ("done", "loaded")
    assert {path.name: found[0] for path, found in zip(paths[1:], judged[1:])} == dict.fromkeys((path.name for path in paths[1:]), "refused")


@pytest.mark.parametrize("number", [100, pytest.param(6000, marks=pytest.mark.heavy)])
def test_graphs_with_attributes_changed(tmp_path: Path, number: int) -> None:
    rng, models = random.Random(11), [*ensembles()]
    paths = []
    for i in range(number):
        paths.append(tmp_path / f"{i}.onnx")
        paths[-1].write_bytes(meddled(rng.choice(models), rng))
    judged: list[Any] = []
    for start in range(0, number, 300):
        judged += assert_safe(paths[start : start + 300], package="onnxruntime")
    assert sum(kind == "refused" for kind, *_ in judged) > number / 10
    assert sum(said == "loaded" for _, said, *_ in judged) > number / 10
