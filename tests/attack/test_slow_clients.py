"""The page drops clients that are slow, too many or too large, and goes on answering the others."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("uvicorn")

SERVER = """
import sys
from budge.web import connections
connections.SECONDS.update(head=0.6, body=0.6, answer=0.6)
connections.MOST = 12
from budge.cli import main
sys.exit(main(["serve", "--demo", "--no-open", "--json"]))
"""
LATE = 20.0  # seconds after which a client that should have been dropped was not


class Page(NamedTuple):
    port: int
    token: str
    process: subprocess.Popen[str]

    def open(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=LATE)

    def head(self, length: int) -> bytes:
        lines = [
            "POST /api/start HTTP/1.1", f"Host: 127.0.0.1:{self.port}", "Content-Type: application/json", f"X-Budge-Token: {self.token}",
            f"Content-Length: {length}",
        ]  # fmt: skip
        return "\r\n".join([*lines, "", ""]).encode()

    def answers(self) -> bool:
        wish = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/start", b"{}", {"Content-Type": "application/json", "X-Budge-Token": self.token}
        )
        with urllib.request.urlopen(wish, timeout=30) as answer:
            return bool(json.load(answer)["models"])


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        lines = []
        while (line := process.stdout.readline()) and line.rstrip() != "}":
            lines.append(line)
        address = json.loads("".join(lines) + "}")
        yield Page(address["port"], address["token"], process)
        if process.poll() is None:
            process.kill()


def dropped(connection: socket.socket) -> bool:
    """Return whether the page ends the connection in time."""
    try:
        while connection.recv(65_536):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def trickle(connection: socket.socket, text: bytes) -> bool:
    """Send a byte now and then; return whether the page ends the connection in time."""
    end = time.monotonic() + LATE
    connection.settimeout(0.1)
    for at in range(len(text)):
        try:
            connection.sendall(text[at : at + 1])
            if not connection.recv(1):
                return True
        except TimeoutError:
            pass
        except OSError:
            return True
        if time.monotonic() > end:
            break
    return False


def test_clients_that_send_nothing_or_slowly_are_dropped(page: Page) -> None:
    with page.open() as idle, page.open() as head, page.open() as body:
        assert trickle(head, page.head(2) * 4)
        assert dropped(idle)
        body.sendall(page.head(5000))
        assert trickle(body, b" " * 5000)
    assert page.answers()


def held(page: Page, client: socket.socket) -> bool:
    """Return whether the page holds the connection. A client whose buffers are full may not notice that it was dropped."""
    ours, theirs = page.port, client.getsockname()[1]
    rows = [line.split()[1:4] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any((int(here[-4:], 16), int(there[-4:], 16), state) == (ours, theirs, "01") for here, there, state in rows)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_clients_that_do_not_read_are_dropped(page: Page) -> None:
    ask = f"GET /assets/page.js HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\n\r\n".encode()
    with page.open() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.settimeout(0.3)
        assert held(page, deaf)
        end = time.monotonic() + LATE
        with contextlib.suppress(OSError):
            while time.monotonic() < end:
                deaf.sendall(ask)
        while held(page, deaf) and time.monotonic() < end:
            time.sleep(0.05)
        assert not held(page, deaf)
    assert page.answers()


def test_connections_are_bounded(page: Page) -> None:
    many = [page.open() for _ in range(40)]
    began = time.monotonic()
    try:
        for connection in many[::-1]:
            assert dropped(connection)
        assert time.monotonic() - began < LATE
    finally:
        for connection in many:
            connection.close()
    assert page.answers()


@pytest.mark.parametrize("what", ["a head", "a body", "a body of no stated length"])
def test_what_is_too_large_is_refused(page: Page, what: str) -> None:
    with page.open() as connection:
        try:
            if what == "a head":
                connection.sendall(b"GET / HTTP/1.1\r\nX-Long: " + b"x" * 60_000)
            elif what == "a body":
                connection.sendall(page.head(9_000_000))
            else:
                connection.sendall(page.head(0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked"))
                for _ in range(200):
                    connection.sendall(b"10000\r\n" + b" " * 65_536 + b"\r\n")
            said = connection.recv(4096)
        except OSError:
            said = b""  # the page has ended the connection before all was sent
        assert said[9:12] in (b"", b"400", b"413")
        assert dropped(connection)
    assert page.answers()


def test_sigterm_ends_the_page_with_one_line_also_under_slow_clients(page: Page) -> None:
    with page.open() as slow:
        slow.sendall(page.head(5000))
        for _ in range(2):
            page.process.send_signal(signal.SIGTERM)
        record, said = page.process.communicate(timeout=30)
    assert page.process.returncode == 143, said
    assert json.loads(record)["error"] == "Interrupted"
    assert "Traceback" not in said
