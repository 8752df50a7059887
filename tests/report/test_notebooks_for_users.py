"""The notebooks of the documentation run from top to bottom in a kernel of their own, offline, and are kept without outputs."""

from __future__ import annotations

import json
import queue
from pathlib import Path
from typing import Any

import pytest

import budge.errors

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def cells(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return found


def run(path: Path, folder: Path) -> list[str]:
    """Run the cells in a kernel; return what each code cell printed and showed, as text."""
    manager = pytest.importorskip("jupyter_client.manager", reason="jupyter_client is not installed: extra dev")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed: extra dev")
    kernel, client = manager.start_new_kernel(cwd=str(folder))
    told: list[str] = []

    def hear(message: dict[str, Any]) -> None:
        content = message["content"]
        told[-1] += content.get("text", "") or content.get("data", {}).get("text/plain", "") or "\n".join(content.get("traceback", []))

    try:
        for number, cell in enumerate(cells(path)):
            if cell["cell_type"] != "code":
                continue
            told.append("")
            try:
                reply = client.execute_interactive("".join(cell["source"]), timeout=300, output_hook=hear)
            except (TimeoutError, queue.Empty):
                pytest.fail(f"{path.name}: cell {number} did not end")
            if reply["content"]["status"] == "error":
                if reply["content"]["ename"] == budge.errors.MissingDependencyError.__name__:
                    pytest.skip(reply["content"]["evalue"])
                pytest.fail(f"{path.name}: cell {number}\n{told[-1]}", pytrace=False)
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
    return told


def test_there_is_one_for_each_user_and_the_docs_list_them() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["auditor", "evaluator", "validator"]
    page = (NOTEBOOKS[0].parents[1] / "how-to" / "notebooks.md").read_text(encoding="utf-8")
    assert all(f"<../notebooks/{path.name}>" in page for path in NOTEBOOKS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_outputs_are_stripped(path: Path) -> None:
    for cell in cells(path):
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)


#: What each has to have shown: the texts are in the outputs, in this order.
SHOWN = {
    "validator": ["7 features", "No row breaks the spec", "Audit of 60 people under old, new", "mean_rho", "passed: fail if"],
    "auditor": ["7 features", "Responsiveness against the threshold 0.1", "mean_rho", "income moves freely", "can attain the target", "The decision about you"],
    "evaluator": ["prompts; the first:", "159", "typos", "is not shown", "base rate"],
}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_the_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUDGE_OFFLINE", "1")
    everything = "\n".join(run(path, tmp_path))
    at = 0
    for text in SHOWN[path.stem]:
        at = everything.find(text, at)
        assert at >= 0, f"{text!r} is missing in\n{everything}"
