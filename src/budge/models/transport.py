"""One request and its retries: what may pass is tried again, what cannot is said at once, and keys are never shown."""

from __future__ import annotations

import contextlib
import email.utils
import http.client
import random
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from budge.errors import ModelError, printable
from budge.models.contained import redact_keys

__all__ = ["Answer", "GaveUpError", "Transport"]

#: Statuses that a later try may change.
TRANSIENT = {408, 425, 429, 500, 502, 503, 504, 507, 529}
MAX_BYTES = 64 * 2**20


class GaveUpError(Exception):
    """Every try failed; carries the last reason."""


@dataclass(frozen=True)
class Answer:
    """A response that was read to its end."""

    status: int
    body: bytes
    retry_after: str = ""


@dataclass(frozen=True, kw_only=True)
class Transport:
    """Posts bytes to one address.

    Parameters
    ----------
    timeout
        Seconds for one try, from connecting to the last byte: a slow drip does not extend it.
    max_attempts
        Tries of one request.
    first_wait, max_wait
        Seconds before the second try, doubled each time, drawn at random from the upper half; and their cap. A server that asks
        for a longer pause than the cap is left alone.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float = 30.0
    max_attempts: int = 6
    first_wait: float = 0.5
    max_wait: float = 60.0

    def post(self, body: bytes, *, before: Callable[[], None] = lambda: None) -> Answer:
        """Post until answered; `before` is called before each try, and may stop it by raising.

        Raises
        ------
        GaveUpError
            If every try ended in something transient.
        ModelError
            At once, for a status that no retry changes.
        """
        reason = ""
        for attempt in range(self.max_attempts):
            pause = self.first_wait * 2**attempt * random.uniform(0.5, 1.0)
            before()
            try:
                answer = self._once(body)
            except ssl.SSLCertVerificationError as error:  # no retry makes a certificate valid
                raise ModelError(f"the endpoint's certificate is not valid: {error.verify_message}", where=self.shown) from error
            except (OSError, http.client.HTTPException) as error:
                reason = self.redact(f"{type(error).__name__}: {error}")
            else:
                if answer.status < 300:
                    return answer
                reason = self.redact(f"status {answer.status}: {_text(answer.body)}")
                if answer.status not in TRANSIENT:
                    raise ModelError(f"the endpoint refused: {reason}", where=self.shown, remedy=_remedy(answer.status))
                asked = _seconds(answer.retry_after)
                if asked is not None and asked > self.max_wait:
                    raise GaveUpError(f"{reason} (asks for a pause of {asked:g} s, above the cap of {self.max_wait:g} s)")
                pause = pause if asked is None else asked + random.uniform(0, self.first_wait)
            if attempt + 1 < self.max_attempts:
                time.sleep(min(pause, self.max_wait))
        raise GaveUpError(f"{reason} ({self.max_attempts} tries)")

    @property
    def shown(self) -> str:
        """The address without what may be secret: user, password and query."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"

    def redact(self, text: str) -> str:
        """The text without any value of a header or of the address's query."""
        parts = urlsplit(self.url)
        secrets = [value for _, value in parse_qsl(parts.query)]
        secrets += [*self.headers.values(), parts.password or "", parts.username or ""]
        words = {word for secret in secrets for word in (secret, *secret.split())}
        words = {word for word in words if len(word) >= 4 and word.lower() not in ("bearer", "basic", "token")}
        for word in sorted(words, key=len, reverse=True):
            text = text.replace(word, "***")
        return printable(redact_keys(text))

    def _once(self, body: bytes) -> Answer:
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            context = ssl.create_default_context()
            connection = http.client.HTTPSConnection(host, parts.port, timeout=self.timeout, context=context)
        else:
            connection = http.client.HTTPConnection(host, parts.port, timeout=self.timeout)
        late = threading.Event()
        timer = threading.Timer(self.timeout, _cut, (connection, late))
        timer.daemon = True
        timer.start()
        try:
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            kind = {"Content-Type": "application/json", "Accept": "application/json"}
            connection.request("POST", target, body, {**kind, **self.headers})
            response = connection.getresponse()
            content = response.read(MAX_BYTES + 1)
            if late.is_set() or (response.length and len(content) <= MAX_BYTES):
                raise http.client.IncompleteRead(content, response.length)
            return Answer(response.status, content, response.headers.get("Retry-After") or "")
        except (OSError, http.client.HTTPException) as error:
            if late.is_set():
                raise TimeoutError(f"no complete answer within {self.timeout:g} s") from error
            raise
        finally:
            timer.cancel()
            connection.close()


def _cut(connection: http.client.HTTPConnection, late: threading.Event) -> None:
    late.set()
    with contextlib.suppress(OSError, AttributeError):  # not connected yet, or closed just now
        connection.sock.shutdown(socket.SHUT_RDWR)


def _seconds(text: str) -> float | None:
    """A Retry-After: seconds, or a date."""
    if re.fullmatch(r"\s*\d+(\.\d+)?\s*", text):
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def _text(body: bytes, limit: int = 300) -> str:
    text = body.decode("utf-8", "replace").strip()
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _remedy(status: int) -> str:
    return {
        400: "the request's form is wrong: see format= and columns=",
        401: "give a valid key in headers=",
        403: "this key may not do that",
        404: "look at the address",
        413: "the request is too large: a smaller batch_rows=",
    }.get(status, "give the address that answers itself: redirects are not followed" if 300 <= status < 400 else "")
