"""An endpoint under fire: a real server on this machine that fails in the ways that servers fail."""

from __future__ import annotations

import json
import pickle
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from models_kit import outcome, table

from budge.errors import IncompleteError, ModelError, StorageError
from budge.models import Endpoint, Predictor, as_predictor, check_contract
from budge.models.resolve import all_or_raise

FRAME = table(40)
SECRET = "s3cret-key-123"
Fault = Callable[[BaseHTTPRequestHandler], None]


class Server:
    """Answers with the truth, after the faults that were queued; remembers what it was asked."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.always: Fault | None = None
        self.batches: list[list[dict[str, Any]]] = []
        self.times: list[float] = []
        self.headers: list[dict[str, str]] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 5

            def do_POST(self) -> None:
                owner.times.append(time.monotonic())
                owner.headers.append(dict(self.headers))
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                fault = owner.always or (owner.faults.pop(0) if owner.faults else None)
                if fault is not None:
                    fault(self)
                    return
                if "dataframe_split" in body:
                    split = body["dataframe_split"]
                    rows = [dict(zip(split["columns"], row)) for row in split["data"]]
                else:
                    rows = body["instances"]
                owner.batches.append(rows)
                answers = outcome(pd.DataFrame(rows)).tolist()
                reply(self, 200, json.dumps({"predictions": answers}))

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1/predict?api={SECRET}"

    @property
    def asked(self) -> int:
        return sum(map(len, self.batches))


def reply(handler: BaseHTTPRequestHandler, status: int, body: str, **headers: str) -> None:
    content = body.encode()
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


def status(code: int, body: str = "later", **headers: str) -> Fault:
    return lambda handler: reply(handler, code, body, **headers)


def reset(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def hang(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(0.8)


def drip(handler: BaseHTTPRequestHandler) -> None:
    """A byte now and then: no single read is ever late."""
    try:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(40):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.05)
    except OSError:
        pass


def cut(handler: BaseHTTPRequestHandler) -> None:
    """Says 1000 bytes, sends few, hangs up."""
    handler.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"predictions": [1')
    handler.close_connection = True


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield made
    made.http.shutdown()
    made.http.server_close()
    thread.join(5)


def ask(server: Server, **options: Any) -> Endpoint:
    base: dict[str, Any] = {"batch_rows": 16, "first_wait": 0.01, "max_wait": 0.3, "timeout": 0.4, "max_attempts": 4}
    return Endpoint(url=server.url, headers={"Authorization": f"Bearer {SECRET}"}, **{**base, **options})


@pytest.mark.parametrize("form", ["instances", "dataframe_split"])
def test_an_endpoint_is_a_predictor(server: Server, form: Any) -> None:
    endpoint = ask(server, format=form, classes=[0, 1])
    assert isinstance(endpoint, Predictor)
    assert endpoint.predict(FRAME).tolist() == outcome(FRAME).tolist()
    assert [len(batch) for batch in server.batches] == [16, 16, 8]
    assert server.headers[0]["Authorization"] == f"Bearer {SECRET}"
    assert check_contract(endpoint, FRAME) == []


def test_an_address_will_do(server: Server) -> None:
    predictor = as_predictor(server.url, columns=["income", "rent"], threshold=0.5, classes=["no", "yes"])
    assert predictor.predict(FRAME).tolist() == np.array(["no", "yes"])[outcome(FRAME)].tolist()
    assert set(server.batches[0][0]) == {"income", "rent"}


def test_each_distinct_row_is_asked_once(server: Server) -> None:
    many = pd.concat([FRAME, FRAME.iloc[::-1], FRAME], ignore_index=True)
    assert ask(server).predict(many).tolist() == outcome(many).tolist()
    assert server.asked == len(FRAME)


PASSING: dict[str, Fault] = {
    "429": status(429),
    "429 with seconds": status(429, Retry_After="0"),
    "429 with a date": status(429, Retry_After=formatdate(time.time() - 5, usegmt=True)),
    "429 with nonsense": status(429, Retry_After="soon"),
    "500": status(500),
    "502": status(502, "<html>bad gateway</html>"),
    "503": status(503),
    "504": status(504),
    "reset": reset,
    "time-out": hang,
    "slow drip": drip,
    "cut off": cut,
}


@pytest.mark.parametrize("name", PASSING)
def test_what_passes_is_retried(server: Server, name: str) -> None:
    server.faults = [PASSING[name], PASSING[name]]
    start = time.monotonic()
    assert ask(server).predict(FRAME).tolist() == outcome(FRAME).tolist()
    assert server.asked == len(FRAME)
    assert len(server.times) == 2 + 3
    assert time.monotonic() - start < 3


def test_retry_after_is_honoured_and_capped(server: Server) -> None:
    server.faults = [status(429, Retry_After="1")]
    assert ask(server, max_wait=2.0).predict(FRAME[:5]).tolist() == outcome(FRAME[:5]).tolist()
    assert server.times[1] - server.times[0] >= 1
    server.faults = [status(429, Retry_After="3600")]
    done = ask(server).predict_resolved(FRAME[:5])
    assert not done.resolved.any()
    with pytest.raises(ModelError, match="see that the model is there and answers"):
        all_or_raise(done, "m")
    assert "asks for a pause of 3600 s" in done.error


def test_waits_grow_and_vary(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("budge.models.transport.time.sleep", waits.append)
    server.always = status(503)
    for _ in range(8):
        ask(server, first_wait=1.0, max_wait=6.0, max_attempts=5, timeout=5).predict_resolved(FRAME[:2])
    by_try = np.array(waits).reshape(8, 4)
    assert (by_try >= [0.5, 1, 2, 4]).all()
    assert (by_try <= [1, 2, 4, 6]).all()
    assert len(set(by_try[:, 0].tolist())) > 1


def test_a_batch_that_gets_no_answer_is_unresolved_and_a_dead_endpoint_stops(server: Server) -> None:
    server.faults = [status(500)] * 4
    done = ask(server).predict_resolved(FRAME)
    assert done.resolved.tolist() == [False] * 16 + [True] * 24
    assert done.outputs[16:].tolist() == outcome(FRAME)[16:].tolist()
    assert "status 500: later (4 tries)" in done.error
    server.always = status(500)
    with pytest.raises(IncompleteError, match="three batches in a row got no answer") as caught:
        ask(server, batch_rows=4).predict_resolved(FRAME)
    assert caught.value.exit_code == 4
    assert len(server.times) == 4 + 2 + 12


@pytest.mark.parametrize("code", [400, 401, 403, 404, 405, 413, 422, 307])
def test_what_cannot_pass_fails_at_once_with_keys_redacted(server: Server, code: int) -> None:
    echo = f"denied for key {SECRET} (Authorization: Bearer {SECRET})"
    server.always = status(code, echo, Location="http://127.0.0.1:9/elsewhere")
    with pytest.raises(ModelError, match=f"refused: status {code}") as caught:
        ask(server).predict(FRAME)
    assert len(server.times) == 1
    assert SECRET not in str(caught.value)
    assert SECRET not in json.dumps([p.to_dict() for p in caught.value.problems])
    assert "***" in str(caught.value)
    endpoint = ask(server)
    assert SECRET not in repr(endpoint) + endpoint.describe() + endpoint.name


UNREADABLE = {
    "error body": json.dumps({"error": "model not loaded"}),
    "error beside predictions": json.dumps({"error": "partial", "predictions": [1] * 16}),
    "HTML": "<html><body>login</body></html>",
    "truncated JSON": '{"predictions": [1, 0',
    "empty": "",
    "too few": json.dumps({"predictions": [1]}),
    "not a list": json.dumps({"predictions": "1"}),
    "a number": "3",
    "deep": "[" * 100_000,
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_200_without_predictions_is_unresolved_and_kept(server: Server, name: str, tmp_path: Path) -> None:
    server.faults = [status(200, UNREADABLE[name])]
    endpoint = ask(server, cache=tmp_path / "cache.sqlite")
    done = endpoint.predict_resolved(FRAME)
    assert done.resolved.tolist() == [False] * 16 + [True] * 24
    assert len(server.times) == 3  # not retried within the run
    assert UNREADABLE[name][:20] in done.error.replace('\\"', '"')
    server.faults = [status(200, UNREADABLE[name])]
    with pytest.raises(ModelError, match="got no answer"):
        endpoint.predict(FRAME)
    assert endpoint.predict(FRAME).tolist() == outcome(FRAME).tolist()  # and was not cached
    assert server.asked == len(FRAME)


def test_null_and_mixed_types_stay_what_they_are(server: Server) -> None:
    server.faults = [status(200, json.dumps({"predictions": [1, "1", None, True]}))]
    done = ask(server).predict_resolved(FRAME[:4])
    assert done.resolved.tolist() == [True, True, False, True]
    assert [(type(v), v) for v in done.outputs[done.resolved]] == [(int, 1), (str, "1"), (bool, True)]


def test_probabilities_a_class(server: Server) -> None:
    server.always = status(200, json.dumps([[0.2, 0.5, 0.3]] * 3))
    classes = ["a", "b", "c"]
    assert ask(server, classes=classes, output="probability", of="c").predict(FRAME[:3]).tolist() == [0.3] * 3
    assert ask(server, classes=classes).predict(FRAME[:3]).tolist() == ["b"] * 3


def test_the_cache_resumes(server: Server, tmp_path: Path) -> None:
    cache = tmp_path / "answers.sqlite"
    with pytest.raises(IncompleteError, match="cap of 2 calls is reached; 8 distinct rows"):
        ask(server, cache=cache, max_calls=2).predict(FRAME)
    assert server.asked == 32
    shuffled = FRAME.sample(frac=1, random_state=0)
    assert ask(server, cache=cache).predict(shuffled).tolist() == outcome(shuffled).tolist()
    assert server.asked == 40
    server.always = status(500)
    assert ask(server, cache=cache).predict(FRAME).tolist() == outcome(FRAME).tolist()
    server.always = None
    ask(server, cache=cache, version="2").predict(FRAME)
    assert server.asked == 80
    assert SECRET.encode() not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


def test_the_cap_counts_retries(server: Server) -> None:
    server.always = status(503)
    with pytest.raises(IncompleteError, match="cap of 3 calls"):
        ask(server, max_calls=3, max_attempts=10).predict(FRAME)
    assert len(server.times) == 3


def test_a_random_endpoint_is_found_behind_its_cache(server: Server, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    server.always = lambda handler: reply(handler, 200, json.dumps({"predictions": rng.integers(0, 2, 16).tolist()}))
    endpoint = ask(server, cache=tmp_path / "c.sqlite", classes=[0, 1])
    problems = check_contract(endpoint, FRAME, rows=16)
    assert "the model is random" in problems[0].what


def test_it_travels_to_workers(server: Server, tmp_path: Path) -> None:
    endpoint = pickle.loads(pickle.dumps(ask(server, cache=tmp_path / "c.sqlite", max_calls=9)))
    assert endpoint.predict(FRAME).tolist() == outcome(FRAME).tolist()


def test_bad_endpoints(server: Server, tmp_path: Path) -> None:
    for url in ("ftp://x/y", "file:///etc/passwd", "http://", "x"):
        with pytest.raises(ModelError, match="http or https"):
            Endpoint(url=url)
    (tmp_path / "c.sqlite").write_bytes(b"this is no database, whatever its name says" * 40)
    with pytest.raises(StorageError, match="cache of answers cannot be used"):
        ask(server, cache=tmp_path / "c.sqlite").predict(FRAME)
    with pytest.raises(ModelError, match="no infinities"):
        ask(server).predict(FRAME.assign(income=np.inf))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    refused = Endpoint(url=f"http://127.0.0.1:{port}/", first_wait=0.001, max_attempts=2).predict_resolved(FRAME[:2])
    assert "ConnectionRefusedError" in refused.error
