"""SIGTERM ends every long command as Ctrl-C does: one line that states what is kept, 143 or 130, no worker left behind, no traceback; also twice in a row."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import kills_kit as kit
import pytest

import budge
from budge import Audit
from budge.cli import main
from budge.models import as_predictor

HERE = Path(__file__).parent
SCRIPT = """
import sys, time, pathlib
sys.path.insert(0, {here!r})
import kills_kit as kit
from budge.models import as_predictor
import budge.cli.audit as command, budge.report.document as report
command.models_of = lambda *given: dict(model=as_predictor(kit.Slow(pathlib.Path({log!r}), 0.2)))
def slowly(*given, **named):
    pathlib.Path({log!r}).write_text("begun")
    time.sleep(60)
report.render = slowly
from budge.cli import main
sys.argv[1:] = {arguments!r}
sys.exit(main())
"""


def until(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def children(pid: int) -> set[int]:
    """Return the processes below a process."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found |= {int(status.parent.name)} | children(int(status.parent.name))
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ended(arguments: list[str], log: Path, numbers: list[signal.Signals], sign: Path | None = None, wait: float = 0.0) -> tuple[int, str, str]:
    """Start a command, send signals a while after a file tells that it is at work, and return its code and what it said; no process of it may be left."""
    sign = sign or log
    script = SCRIPT.format(here=str(HERE), log=str(log), arguments=arguments)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert until(lambda: sign.exists() or process.poll() is not None, 120)
        time.sleep(wait)
        below = {pid: Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")[:200] for pid in children(process.pid)}
        for number in numbers:
            process.send_signal(number)
        said, errors = process.communicate(timeout=60)
    gone = until(lambda: not any(alive(pid) for pid in below), 60)  # agents of Ray end some 25 s after what started them
    assert gone, f"processes are left: {[words for pid, words in below.items() if alive(pid)]}"
    return process.returncode, said, errors


@pytest.fixture
def inputs(tmp_path: Path) -> tuple[list[str], Path]:
    kit.X.to_csv(tmp_path / "people.csv", index=False)
    kit.IM.to_file(tmp_path / "im.yaml")
    wish = ["--model", "m.onnx", "--target", "1", "-n", "40", "--population", "all"]
    return ["audit", str(tmp_path / "im.yaml"), str(tmp_path / "people.csv"), *wish], tmp_path / "log"


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(
    ("engine", "numbers"),
    [
        ("processes", [signal.SIGTERM] * 2),
        pytest.param("serial", [signal.SIGTERM], marks=pytest.mark.heavy),
        pytest.param("processes", [signal.SIGINT] * 2, marks=pytest.mark.heavy),
        pytest.param("dask", [signal.SIGTERM] * 2, marks=pytest.mark.heavy),
        pytest.param("ray", [signal.SIGTERM] * 2, marks=pytest.mark.heavy),
        pytest.param("processes", [signal.SIGTERM, signal.SIGINT], marks=pytest.mark.heavy),
    ],
)
def test_an_audit_that_is_ended_tells_how_it_goes_on(
    tmp_path: Path, inputs: tuple[list[str], Path], engine: str, numbers: list[signal.Signals], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, log = inputs
    run = str(tmp_path / "run")
    code, _, said = ended([*arguments, "--engine", engine, "--jobs", "2", "-o", run], log, numbers, Path(run) / "journal.sqlite", wait=2.0)
    assert code in {128 + number for number in numbers}, said  # of two at once Python takes the lower number first
    (line,) = [line for line in said.splitlines() if line.startswith("budge:")]
    assert line == f"budge: interrupted; what was finished is in {run}, and the same call goes on"
    assert "Traceback" not in said
    assert not [path.name for path in Path(run).rglob(".*")]
    monkeypatch.setattr("budge.cli.audit.models_of", lambda *given: {"model": as_predictor(kit.Slow())})
    assert main([*arguments, "--quiet", "-o", run]) == 0
    whole = budge.audit(kit.Slow(), kit.X, kit.IM, target=1, n=kit.DRAWS, population="all")
    assert Audit.load(run).table.to_csv() == whole.table.to_csv()


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.heavy)])
def test_a_report_that_is_ended_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    kit.kept(budge.audit(kit.Slow(), kit.X, kit.IM, **kit.WISH), tmp_path / "run")
    code, said, errors = ended(["report", str(tmp_path / "run"), "-o", str(tmp_path / "report.html"), "--json"], tmp_path / "log", [number])
    assert code == 128 + number, errors
    assert json.loads(said) == {
        "error": "Interrupted",
        "problems": [{"where": "", "what": "interrupted", "severity": "error", "remedy": "no file is left half written, and the same call starts over"}],
    }
    assert sorted(os.listdir(tmp_path)) == ["log", "run"]
    assert "Traceback" not in errors
