"""A pipe, a device, a folder, nothing, and gigabytes of nothing in the place of every file that a command reads: each is refused at once."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import runs_kit as kit
from isolated import MEGABYTES, SECONDS, judged

from budge.cli import main

HOLE = 3 << 30
SPEC = "budge: 1\nfeatures:\n  income: {type: integer, bounds: [0, 9]}\n"
MODEL = ("--model", "MODEL", "--target", "1")
#: Commands, with X in the place of what is attacked, and the endings that X may have.
TABLES = (".csv", ".parquet")
COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "init": (("init", "X", "-o", "OUT"), TABLES),
    "check": (("check", "SPEC", "X"), TABLES),
    "sample": (("sample", "SPEC", "X", "-o", "OUT.csv"), TABLES),
    "audit": (("audit", "SPEC", "X", *MODEL), TABLES),
    "audit in parts": (("audit", "SPEC", "X*", *MODEL), (".parquet",)),
    "audit, model": (("audit", "SPEC", "DATA", "--model", "X", "--target", "1"), (".json", ".onnx", ".txt", ".skops", ".ubj")),
    "audit, predictions": (("audit", "SPEC", "DATA", "--predictions", "X", "--target", "1"), TABLES),
    "prove": (("prove", "SPEC", "X", *MODEL), TABLES),
    "recourse": (("recourse", "SPEC", "X", *MODEL), TABLES),
    "sensitivity": (("sensitivity", "SPEC", "SPEC", "--data", "X", *MODEL), TABLES),
    "ablate": (("ablate", "SPEC", "--data", "X", *MODEL), TABLES),
    "select": (("select", "SPEC", "--data", "X", "--model", "MODEL=0.8", "--target", "1"), TABLES),
    "gate": (("gate", "X", "--fail-if", "share(no_way) > 0"), ("",)),
    "gate, data": (("gate", "RUN", "--data", "X", "--fail-if", "share(no_way) > 0"), TABLES),
    "report": (("report", "X"), ("",)),
    "report, data": (("report", "RUN", "--data", "X", "--out", "OUT.html"), TABLES),
    "report, ablation": (("report", "RUN", "--ablation", "X", "--out", "OUT.html"), (".json",)),
    "report, sensitivity": (("report", "RUN", "--sensitivity", "X", "--out", "OUT.html"), (".json",)),
    "serve": (("serve", "X", "--no-open"), ("",)),
    "serve, data": (("serve", "--spec", "SPEC", "--data", "X", *MODEL, "--no-open"), TABLES),
    "llm test": (("llm", "test", "X"), ("", ".jsonl", ".parquet", ".csv")),
    "llm import": (("llm", "import", "X", "-o", "OUT"), ("", ".jsonl", ".json", ".eval", ".parquet", ".csv")),
    "llm report": (("llm", "report", "X"), ("", ".jsonl", ".parquet")),
    "llm judge": (("llm", "judge", "X", "--judge", "match()", "-o", "OUT"), ("", ".jsonl")),
    "llm compare": (("llm", "compare", "X"), ("", ".jsonl")),
    "llm run, prompts": (("llm", "run", "X", "--judge", "match()", "--model", "m", "--base-url", "http://127.0.0.1:1"), (".csv", ".jsonl", ".json", ".txt")),
}  # fmt: skip


def hostile(folder: Path, end: str) -> dict[str, Path]:
    """Return what is no table, run or log: by a name each."""
    found = {name: folder / f"{name}{end}" for name in ("pipe", "zero", "folder", "empty", "hole", "locked")}
    os.mkfifo(found["pipe"])
    found["zero"].symlink_to("/dev/zero")
    found["folder"].mkdir()
    found["empty"].touch()
    with found["hole"].open("wb") as file:
        file.truncate(HOLE)
    found["locked"].write_text("income\n1\n")
    found["locked"].chmod(0)
    if os.access(found["locked"], os.R_OK):  # as root everything may be read
        del found["locked"]
    return found


def run(arguments: list[str]) -> str:
    """Run a command; return its exit code and the end of what it wrote to its errors."""
    errors = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        code = main(arguments)
    return f"{code}: {errors.getvalue()[-300:]}"


def _filled(word: str, given: dict[str, str], out: str) -> str:
    head = next((name for name in given if word == name or word.startswith((f"{name}=", f"{name}*"))), "")
    return given[head] + word.removeprefix(head) if head else word.replace("OUT", out)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("honest")
    (folder / "spec.yaml").write_text(SPEC)
    pd.DataFrame({"income": [1, 2, 3]}).to_csv(folder / "people.csv", index=False)
    X = np.arange(200.0)[:, None] % 10
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is in the `models` extra")
    booster = lightgbm.train({"verbosity": -1, "num_threads": 1, "objective": "binary"}, lightgbm.Dataset(X, X[:, 0] > 5, feature_name=["income"]), 2)
    booster.save_model(folder / "model.txt")
    kit.make_table(folder / "run")
    return {"SPEC": str(folder / "spec.yaml"), "DATA": str(folder / "people.csv"), "MODEL": str(folder / "model.txt"), "RUN": str(folder / "run")}


@pytest.mark.parametrize(("name", "end"), [(name, end) for name, (_, ends) in COMMANDS.items() for end in ends])
def test_no_command_waits_for_a_pipe_or_reads_without_end(places: dict[str, str], tmp_path: Path, name: str, end: str) -> None:
    files = hostile(tmp_path, end)
    calls = [
        [_filled(word, places | {"X": str(path)}, str(tmp_path / f"out-{kind}")) for word in COMMANDS[name][0]]
        for kind, path in files.items()
    ]
    wrong = [
        f"{kind}: {done} after {seconds:.2f} s of CPU and {most:.0f} MB: {said}"
        for kind, (done, said, seconds, most) in zip(files, judged(run, calls))
        if done != "done" or not said.startswith(("2:", "3:")) or seconds > SECONDS or most > MEGABYTES
    ]
    assert not wrong, "\n".join(wrong)
