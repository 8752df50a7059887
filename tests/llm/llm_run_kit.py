"""A real HTTP server on the loopback that speaks OpenAI's chat protocol, as badly as a test asks; prompts, a rewrite and a judge."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import numpy as np

from budge.llm import ChatModel, Interaction, Judge, Judgement, Patience, Prompt, Prompts

KEY = "sk-very-secret-0123456789"
QUICK = Patience(attempts=6, first_wait=0.01, max_wait=0.3, timeout=20, in_a_row=4)

PROMPTS = Prompts.of(
    Prompt(f"q{i}", text, category="facts" if i % 2 else "chat")
    for i, text in enumerate(
        ["Is water wet?", "Is fire cold?", "Is the sky blue?", "Do cats bark?", "Is snow white?", "Are lemons sweet?"]
    )
)


@dataclass(frozen=True)
class Shout(Interaction):
    """Capitals and a number of exclamation marks: a rewrite that shows its generator."""

    kind: ClassVar[str] = "shout"

    most: int = 5

    def rewrite(self, prompt: Prompt, rng: np.random.Generator) -> str:
        return prompt.text.upper() + "!" * int(rng.integers(1, self.most + 1))

    def describe(self) -> str:
        return f"Capitals and up to {self.most} exclamation marks."


@dataclass(frozen=True)
class Says(Judge):
    """A hit if the answer holds a word."""

    kind: ClassVar[str] = "says"

    word: str = "yes"

    def judge(self, prompt: Prompt, sent: str, answer: str) -> Judgement:
        return Judgement(self.word in answer)

    def describe(self) -> str:
        return f"A hit if the answer holds {self.word!r}."


@dataclass
class Asked:
    """One request as it came in."""

    text: str
    body: dict[str, Any]
    headers: dict[str, str]
    at: float


def truth(body: dict[str, Any]) -> str:
    """The answer of the fake model: depends on what is sent and on the seed, on nothing else."""
    digest = blake2b(json.dumps([body["messages"][-1]["content"], body.get("seed")]).encode(), digest_size=4).digest()
    return f"{'yes' if digest[0] % 3 == 0 else 'no'} ({digest.hex()})"


def completion(text: str | None, **more: Any) -> bytes:
    message = {"role": "assistant", "content": text}
    record = {
        "id": "c", "object": "chat.completion", "created": 1, "model": "fake", "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }  # fmt: skip
    return json.dumps({**record, **more}).encode()


@dataclass
class Fake:
    """The server's side of a test: what was asked, and how it misbehaves."""

    behave: Callable[[int, dict[str, Any], BaseHTTPRequestHandler], bytes | None] | None = None
    asked: list[Asked] = field(default_factory=list)
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def model(self) -> ChatModel:
        return ChatModel("fake", self.url, api_key=KEY)


def answer(handler: BaseHTTPRequestHandler, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(body)))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def reset(handler: BaseHTTPRequestHandler) -> None:
    """Cut the connection without a word."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.close_connection = True
    for part in (handler.rfile, handler.wfile, handler.connection):  # the socket closes with the last of them
        part.close()


def drip(handler: BaseHTTPRequestHandler, body: bytes, seconds: float) -> None:
    """A byte now and then, so that no read ever times out."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    until = time.monotonic() + seconds
    for i in range(len(body)):
        handler.wfile.write(body[i : i + 1])
        handler.wfile.flush()
        if time.monotonic() > until:
            return
        time.sleep(0.1)


@contextmanager
def fake_server(behave: Callable[[int, dict[str, Any], BaseHTTPRequestHandler], bytes | None] | None = None) -> Iterator[Fake]:
    """Serve while the block runs. `behave` gets the number of the request; it returns a body to send with 200, or answers itself."""
    fake = Fake(behave)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with fake.lock:
                number = len(fake.asked)
                fake.asked.append(
                    Asked(
                        body["messages"][-1]["content"],
                        body,
                        {name.lower(): value for name, value in self.headers.items()},
                        time.monotonic(),
                    )
                )
            try:
                told = fake.behave(number, body, self) if fake.behave else completion(truth(body))
                if told is not None:
                    answer(self, 200, told)
            except OSError:
                self.close_connection = True  # the client left

        def log_message(self, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *args: Any) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    fake.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
