"""The workflow of GitHub Actions that the docs give, and the pytest plugin in a project of its own."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from budge.cli import main
from budge.spec.yaml_text import parse_yaml

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


def test_the_commands_of_the_workflow_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commands pass in the project of the page about runs, and its gates can fail."""
    pytest.importorskip("xgboost", reason="a model file")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in PYTHON.findall((HOW_TO / "runs.md").read_text(encoding="utf-8"))[:2]:  # the files, and budge.toml
        exec(compile(block, "runs.md", "exec"), namespace)
    tree = parse_yaml((HOW_TO / "budge-audit.yml").read_text(encoding="utf-8")).tree
    assert tree["on"] == ["push", "pull_request"]
    steps = tree["jobs"]["audit"]["steps"]
    lines = [line for step in steps for line in step.get("run", "").splitlines() if line.startswith("budge ")]
    assert [line.split()[1] for line in lines] == ["audit", "gate", "gate", "report"]
    for line in lines:
        assert main(shlex.split(line)[1:]) == 0, line
        if " gate " in line:
            assert main(shlex.split(re.sub(r"> [\d.]+", ">= 0", line))[1:]) == 1, line
    (kept,) = (step["with"]["path"] for step in steps if "upload" in step.get("uses", ""))
    assert (tmp_path / kept).is_file()
    assert all(step["if"] == "${{ always() }}" for step in steps[steps.index(next(s for s in steps if s.get("name") == "Report")) :])


def test_the_plugin_works_in_a_fresh_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (HOW_TO / "continuous-integration.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(compile(PYTHON.findall(page)[0], "continuous-integration.md", "exec"), {"__name__": "__main__"})
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "test_gates.py"], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    told = page.split("$ pytest test_gates.py\n")[1].split("```")[0].splitlines()
    for line in told:
        assert line == "..." or line in done.stdout, line
    text = (tmp_path / "test_gates.py").read_text()
    (tmp_path / "test_gates.py").write_text(text.replace("> 0.4", "> 0.6"))
    assert subprocess.run([sys.executable, "-m", "pytest", "-q"], capture_output=True, env=environment, cwd=tmp_path).returncode == 0
