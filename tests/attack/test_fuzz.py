"""The fuzzer finds nothing in a stated number of executions; and it finds a fault that is planted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FUZZ = Path(__file__).parent / "fuzz.py"
TARGETS = ["spec", "expression", "table", "run"]


def fuzz(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(FUZZ), *options], capture_output=True, text=True, check=False, env=os.environ | environment)


@pytest.mark.parametrize("target", TARGETS)
def test_a_short_run_finds_nothing(target: str) -> None:
    done = fuzz(target, "--plain", "--executions", "300", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "300 executions" in done.stdout


@pytest.mark.heavy
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("how", ["--led", "--plain"])
def test_a_long_run_finds_nothing(target: str, how: str) -> None:
    done = fuzz(target, "--executions", "100000" if how == "--led" else "20000", *([how] if how == "--plain" else []))
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


def test_a_planted_fault_is_found() -> None:
    done = fuzz("expression", "--plain", "--executions", "300", BUDGE_FUZZ_FAULT="1")
    assert done.returncode == 1
    assert "planted" in done.stdout
