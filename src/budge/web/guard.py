"""Who is let in: this machine's own browser, on this page, with the token of this run. Everything else is refused.

Pure ASGI, so that it stands before every route. A site elsewhere cannot read or change anything: its name is not ours (a
name that was pointed at this machine is refused by the Host header), its origin is not ours, and it has no token. The token
travels in the part of the address that browsers never send, is kept for the tab alone, and comes back in a header that no
other origin may set.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from budge.web.records import as_json

__all__ = ["HEADERS", "Guard", "own_host"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOCAL = ("127.0.0.1", "localhost", "[::1]")
LARGEST_BODY = 8_000_000  #: bytes of a request: a spec of the largest size, escaped
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


def own_host(host: str) -> bool:
    """Whether a Host header names this machine itself.

    Examples
    --------
    >>> own_host("127.0.0.1:8000"), own_host("localhost"), own_host("evil.example:8000"), own_host("127.0.0.1.evil.example")
    (True, True, False, False)
    """
    name, _, port = host.rpartition(":") if ":" in host.rpartition("]")[2] else (host, "", "")
    return name in LOCAL and (port.isdecimal() or not port)


class Guard:
    """The app behind its checks; every answer gets the same headers."""

    def __init__(self, app: App, token: str) -> None:
        self.app = app
        self.token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refusal = self.refusal(scope)
        if refusal is not None:
            status, what, remedy = refusal
            await _refuse(send, status, what, remedy)
            return
        await self.app(scope, _limited(receive), _covered(send))

    def refusal(self, scope: Scope) -> tuple[int, str, str] | None:
        """Why a request is refused, or None."""
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            key = name.decode("latin-1").lower()
            if key in headers and key in ("host", "origin", "x-budge-token"):
                return 400, f"the header {key} is given twice", ""
            headers[key] = value.decode("latin-1")
        host = headers.get("host", "")
        if not own_host(host):
            return 421, "this page answers to this machine's own name only", "open the address that `budge serve` printed"
        origin = headers.get("origin")
        if origin is not None and origin != f"{scope.get('scheme', 'http')}://{host}":
            return 403, "the request comes from another origin", "open the address that `budge serve` printed"
        site = headers.get("sec-fetch-site", "none")
        if site not in ("same-origin", "none"):
            return 403, "the request comes from another site", "open the address that `budge serve` printed"
        if scope["path"].startswith("/api/"):
            if scope["method"] != "POST":
                return 405, "only POST is answered here", ""
            if not hmac.compare_digest(headers.get("x-budge-token", "").encode("latin-1"), self.token.encode()):
                return 401, "the token is missing or wrong", "open the address that `budge serve` printed; each run has its own"
            if headers.get("content-type", "").split(";")[0].strip() != "application/json":
                return 415, "a request is JSON", ""
            length = headers.get("content-length", "0")
            if not length.isdecimal() or len(length) > 12 or int(length) > LARGEST_BODY:
                return 413, "the request is too large", f"at most {LARGEST_BODY:,} bytes are read"
        elif scope["method"] not in ("GET", "HEAD"):
            return 405, "only GET is answered here", ""
        return None


def _covered(send: Send) -> Send:
    async def covered(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            own = {name.encode() for name in HEADERS}
            kept = [(n, v) for n, v in message.get("headers", []) if n.lower() not in own]
            message["headers"] = kept + [(n.encode(), v.encode()) for n, v in HEADERS.items()]
        await send(message)

    return covered


def _limited(receive: Receive) -> Receive:
    """The body up to its limit, whatever its length was said to be."""
    seen = 0

    async def limited() -> MutableMapping[str, Any]:
        nonlocal seen
        message = await receive()
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            if seen > LARGEST_BODY:
                return {"type": "http.disconnect"}
        return message

    return limited


async def _refuse(send: Send, status: int, what: str, remedy: str) -> None:
    body = as_json({"error": "Refused", "problems": [{"what": what, "where": "", "got": None, "remedy": remedy}]}).encode()
    sender = _covered(send)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await sender({"type": "http.response.start", "status": status, "headers": headers})
    await sender({"type": "http.response.body", "body": body})
