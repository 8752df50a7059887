"""Connections to the page: bounded in number, and dropped when their client is slow."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["HEAD_BYTES", "MOST", "SECONDS", "Connection"]

MOST = 64
"""Connections at a time; one more is closed at once."""
SECONDS = {"head": 10.0, "body": 30.0, "answer": 30.0}
"""For the whole head of a request (from the connection, or from the end of the answer before it), for its whole body, and for a client that reads nothing."""
HEAD_BYTES = 16_384


class Connection(H11Protocol):
    """One connection, with a timer for what its client has to do next."""

    _timer: asyncio.TimerHandle | None = None
    _waits = ""

    def _wait(self, what: str) -> None:
        """Drop the client unless it does something within its time; nothing stops the timer."""
        if what == self._waits:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._waits = what
        self._timer = self.loop.call_later(SECONDS[what], self._late) if what else None

    def _late(self) -> None:
        """Drop the client, unless it has read its answer after all."""
        if self._waits != "answer" or self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self._next()

    def _next(self) -> None:
        """Wait for the body or, where there is none under way, for nothing: models may take their time."""
        cycle: Any = self.cycle
        under_way = cycle is not None and not cycle.response_complete
        self._wait(("body" if cycle.more_body else "") if under_way else "head")

    def connection_made(self, transport: Any) -> None:
        """Take a connection, if there is room for one more."""
        super().connection_made(transport)
        if len(self.connections) > MOST:
            transport.abort()
        else:
            self._wait("head")

    def data_received(self, data: bytes) -> None:
        """Take what the client sends."""
        super().data_received(data)
        if not self.transport.is_closing() and self._waits != "answer":
            self._next()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if self.transport.get_write_buffer_size():
            self._wait("answer")
        elif self._waits != "answer":
            self._next()

    def pause_writing(self) -> None:
        """Wait for a client that does not read its answer."""
        super().pause_writing()
        self._wait("answer")

    def resume_writing(self) -> None:
        """Go on: the client has read."""
        super().resume_writing()
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._wait("")
        super().connection_lost(exc)
