"""Models that are typed: a function of a module, an address, and what is trusted."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pandas as pd
import pytest

import budge
from budge import Feature
from budge.cli import main


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a spec, people and a module, in which commands are given."""
    budge.InteractionModel([Feature("income", "integer", bounds=(0, 9), max_increase=2)], name="loans").to_file(tmp_path / "model.yaml")
    pd.DataFrame({"income": range(8)}).to_csv(tmp_path / "people.csv", index=False)
    code = "class Cut:\n    def predict(self, table):\n        return (table['income'] > 5).astype(int)\n"
    (tmp_path / "typed_scores.py").write_text(code + "best = Cut()\nscore = lambda t: t['income'] / 9\ntext = 'a.json'\n")
    (tmp_path / "typed_broken.py").write_text("import no_such_package\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "typed_scores", raising=False)
    return tmp_path


def test_functions_and_objects_of_a_module(place: Path) -> None:
    one = ["audit", "model.yaml", "people.csv", "--target", "1", "-q"]
    assert main([*one, "--model", "typed_scores:best", "-o", "best"]) == 0
    assert main([*one, "--model", "typed_scores:score", "--cutoff", "0.6", "-o", "score"]) == 0
    pd.testing.assert_frame_equal(budge.Audit.load("best").table, budge.Audit.load("score").table)
    assert main(["recourse", "model.yaml", "people.csv", "--model", "typed_scores:best", "--target", "1", "--person", "4"]) == 0
    several = ["--model", "a=typed_scores:best", "--model", "typed_scores:best.predict"]
    assert main([*one, *several, "-o", "several"]) == 0
    assert budge.Audit.load("several").models == ("a", "best.predict")


def test_functions_run_in_other_processes(place: Path) -> None:
    given = ["audit", "model.yaml", "people.csv", "--model", "typed_scores:best", "--target", "1", "--jobs", "2", "-q"]
    done = subprocess.run([sys.executable, "-c", f"import sys; from budge.cli import main; sys.exit(main({given!r}))"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("typed_scores:scor", "did you mean 'score'?"), ("typed_scors:score", "did you mean 'typed_scores'?"), ("typed_broken:score", "no_such_package"),
        ("typed_scores:text", "names a text, no model"), ("nothing_here:f", "in the folder of its file"), ("typed_scores.py", "write typed_scores:FUNCTION"),
        ("typed_scores.py:best", "write typed_scores:best"), ("127.0.0.1:9/predict", "write http://127.0.0.1:9/predict"),
    ],
)  # fmt: skip
def test_what_is_no_model(place: Path, model: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "model.yaml", "people.csv", "--target", "1", "--model", model]) == 2
    assert told in " ".join(capsys.readouterr().err.split())


def test_a_file_comes_before_a_function(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "typed_scores:best").write_text("")
    assert main(["audit", "model.yaml", "people.csv", "--target", "1", "--model", "typed_scores:best"]) == 2
    assert "the file is empty" in capsys.readouterr().err


def test_a_saved_run_of_a_draft_is_called_that(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (place / "model.yaml").read_text()
    for name, draft in (("confirmed", ""), ("drafted", "draft: true\n")):
        (place / "model.yaml").write_text(text.replace("budge: 1\n", f"budge: 1\n{draft}"))
        assert main(["audit", "model.yaml", "people.csv", "--target", "1", "--model", "typed_scores:best", "-o", name, "-q"]) == 0
        for command in (["gate", name, "--fail-if", "share(no_way) > 1"], ["compare", name, name], ["export", name, "--csv"]):
            capsys.readouterr()
            assert main(command) == 0
            assert ("is a draft that nobody has confirmed" in capsys.readouterr().err) == bool(draft), command


@pytest.mark.parametrize("options", [["--trust", "--json"], ["--trust", ""]])
def test_trust_takes_a_type(place: Path, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "model.yaml", "people.csv", "--target", "1", "--model", "typed_scores:best", *options]) == 2
    assert "--trust TYPE" in " ".join("".join(capsys.readouterr()).split())


@pytest.fixture
def address() -> Iterator[str]:
    """Serve a model on the loopback address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            rows = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["instances"]
            body = json.dumps({"predictions": [int(row["income"] > 5) for row in rows]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/predict"
        server.shutdown()
        thread.join()


def test_an_address_is_a_model_of_every_command(place: Path, address: str) -> None:
    (place / "other.yaml").write_text((place / "model.yaml").read_text())
    people = ["--data", "people.csv"]
    for command in (["audit", "model.yaml", "people.csv"], ["ablate", "model.yaml", *people], ["sensitivity", "model.yaml", "other.yaml", *people]):
        assert main([*command, "--model", address, "--target", "1", "-q"]) == 0, command
