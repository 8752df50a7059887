"""The page on this machine: a socket on loopback, a token for this run, an end on Ctrl-C."""

from __future__ import annotations

import socket
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from budge.errors import EnvironmentProblem, InputError
from budge.web.app import make_app, need_starlette

__all__ = ["Address", "serve"]

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Address:
    """Where the page is. The token stands behind `#`: browsers keep that part to themselves."""

    port: int
    token: str
    host: str = HOST

    def __str__(self) -> str:
        return f"http://{self.host}:{self.port}/#token={self.token}"

    def to_dict(self) -> dict[str, Any]:
        """The record, for ``--json``."""
        return {"address": str(self), "host": self.host, "port": self.port, "token": self.token}


def serve(
    model: Any, X: Any = None, im: Any = None, *, target: Any = None, port: int = 0, host: str = HOST, token: str | None = None,
    open_browser: bool = False, ready: Callable[[Address], None] | None = None, **options: Any,
) -> None:  # fmt: skip
    """Serve the page until it is interrupted.

    Parameters
    ----------
    model, X, im, target, options
        As in `budge.audit`; or a `budge.web.Question` alone, or several of them: runs to choose from.
    port
        A free one is taken unless it is given.
    host
        This machine's loopback address; any other is refused: the page has people's data and no accounts.
    token
        What the address carries; random unless given.
    open_browser
        Open the address in the browser.
    ready
        Called with the address once it answers.
    """
    need_starlette()
    if host not in (HOST, "localhost", "::1"):
        raise InputError(
            "the page is for this machine only", where="host", got=host, remedy=f"leave it out ({HOST}); reach another machine by ssh -L"
        )
    app = make_app(model, X, im, target=target, token=token, **options)
    _run(app, port=port, open_browser=open_browser, ready=ready)


def _run(app: Any, *, port: int, open_browser: bool, ready: Callable[[Address], None] | None) -> None:
    """Listen on loopback and serve until interrupted; a second interrupt does not wait for open requests."""
    import uvicorn

    from budge.web.connections import HEAD_BYTES, Connection

    with _socket(port) as listening:
        address = Address(listening.getsockname()[1], app.token)

        class Server(uvicorn.Server):
            """Says when it answers."""

            async def startup(self, sockets: Any = None) -> None:
                await super().startup(sockets=sockets)
                if ready is not None:
                    ready(address)
                if open_browser:
                    webbrowser.open(str(address))

        config = uvicorn.Config(
            app, log_level="warning", access_log=False, lifespan="off", server_header=False, date_header=False, ws="none",
            timeout_graceful_shutdown=1, proxy_headers=False, http=Connection, h11_max_incomplete_event_size=HEAD_BYTES, timeout_keep_alive=5,
        )  # fmt: skip
        Server(config).run(sockets=[listening])


def _socket(port: int) -> socket.socket:
    if not 0 <= port <= 65_535:
        raise InputError("a port lies between 0 and 65535", where="port", got=port)
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
    except OSError as error:
        listening.close()
        raise EnvironmentProblem(
            f"cannot listen there: {error.strerror}", where="port", got=port, remedy="leave --port out: a free one is taken"
        ) from None
    listening.listen(64)
    return listening
