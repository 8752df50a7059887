"""Calls of a model's own code: what would end the process becomes an error of budge, and what it changes in the process is put back."""

from __future__ import annotations

import contextlib
import decimal
import functools
import gc
import locale
import os
import random
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from budge.errors import BudgeError, ModelError, printable

__all__ = ["contained", "kept_seeds", "reason", "redact_keys"]

LONGEST = 300  # characters of a reason
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGCHLD", "SIGPIPE") if hasattr(signal, name))
_KEYS = re.compile(
    r"(?i)\b(bearer\s+|(?:[\w-]*(?:api[-_]?key|token|secret|passwd|password)|key)[\"']?\s*[:=]\s*[\"']?(?:bearer\s+|basic\s+)?|sk-|://[^/\s:@]*:(?=[^\s@]{4,300}@))[^\s\"'&,;@]{4,}"
)


def redact_keys(text: str) -> str:
    """Return a text in which what looks like a key, a token or a password is replaced.

    Examples
    --------
    >>> redact_keys("401 for api_key=abcdef123456, Bearer abcdefgh")
    '401 for api_key=***, Bearer ***'
    >>> redact_keys("http://me:abcdef@host:8080/v1 is not http://host:8080/v1")
    'http://me:***@host:8080/v1 is not http://host:8080/v1'
    """
    return _KEYS.sub(r"\1***", text)


def reason(error: BaseException) -> str:
    """Return the type and the first line of the message of what a model raised, without keys and control characters.

    Examples
    --------
    >>> reason(ValueError("no such level\\nTraceback: …"))
    'ValueError: no such level'
    """
    try:
        said = str(error).strip()
    except BaseException as unprintable:
        if isinstance(unprintable, KeyboardInterrupt):
            raise
        said = "its message cannot be shown"
    line = (said[: 2 * LONGEST].splitlines() or [""])[0]
    text = line if isinstance(error, BudgeError) else f"{type(error).__name__}: {line}" if line else type(error).__name__
    text = redact_keys(text)
    return printable(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")


@contextlib.contextmanager
def contained(name: str = "") -> Iterator[None]:
    """Run code of a model: raise a `ModelError` where it ends the process or a generator, and put back what it changes in the process.

    Put back are the working directory, the state of NumPy's errors and printing, filters of warnings, the locale, the decimal context, pandas options,
    signal handlers and timers, the recursion limit and the garbage collector. What the code prints goes to standard error, since standard output
    may hold a record. `KeyboardInterrupt` passes, and so do `MemoryError` and errors that speak of rows.

    Examples
    --------
    >>> with contained("scorecard"):
    ...     raise SystemExit(3)
    Traceback (most recent call last):
    ...
    budge.errors.ModelError: scorecard: predicting raised SystemExit: 3
    """
    with _Kept(), np.errstate(), decimal.localcontext():
        try:
            yield
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if isinstance(error, Exception) and not isinstance(error, StopIteration | StopAsyncIteration):
                raise
            raise ModelError(f"predicting raised {reason(error)}", where=name) from error


class kept_seeds(contextlib.ContextDecorator):  # noqa: N801 (used like a function)
    """Puts the states of the global random generators back at the end of a run.

    Not after each call: a model that draws from them would answer alike each time and not be found to be random.
    """

    def __enter__(self) -> None:
        """Keep the states."""
        self._states = [*getattr(self, "_states", ()), (random.getstate(), np.random.get_state())]

    def __exit__(self, *error: object) -> None:
        """Put them back."""
        own, numpys = self._states.pop()
        random.setstate(own)
        np.random.set_state(numpys)


class _Kept:
    """Settings of the process, kept while any thread is inside a model and put back when the last one leaves.

    One snapshot for all threads: one that is taken while another model runs might hold what that model has set for a moment.
    """

    lock: ClassVar[threading.Lock] = threading.Lock()
    inside: ClassVar[int] = 0
    settings: ClassVar[dict[str, Any]] = {}
    streams: ClassVar[tuple[Any, Any]] = (None, None)

    def __enter__(self) -> None:
        with _Kept.lock:
            if not _Kept.inside:
                _Kept.settings = _settings()
                _Kept.streams = sys.stdout, sys.stderr
                if sys.stderr is not None:
                    sys.stdout = sys.stderr = _Unclosable(sys.stderr)
            _Kept.inside += 1

    def __exit__(self, *error: object) -> None:
        with _Kept.lock:
            _Kept.inside -= 1
            if not _Kept.inside:
                sys.stdout, sys.stderr = _Kept.streams
                _put_back(_Kept.settings)


class _Unclosable:
    """A stream that passes everything on and stays open."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def close(self) -> None:
        """Do nothing."""

    detach = close

    def __enter__(self) -> _Unclosable:
        return self

    def __exit__(self, *error: object) -> None:
        """Do nothing."""


def _settings() -> dict[str, Any]:
    found: dict[str, Any] = {
        "folder": None, "filters": list(warnings.filters), "showwarning": warnings.showwarning, "locale": locale.setlocale(locale.LC_ALL),
        "depth": sys.getrecursionlimit(), "gc": gc.isenabled(), "print": np.get_printoptions(), "handlers": {},
        "pandas": [tree[key] for _, tree, key in _options()],
    }  # fmt: skip
    with contextlib.suppress(OSError):  # a folder that was removed has no name
        found["folder"] = os.getcwd()
    if threading.current_thread() is threading.main_thread():
        found["handlers"] = {number: signal.getsignal(number) for number in SIGNALS}
        found["timer"] = signal.getitimer(signal.ITIMER_REAL) if hasattr(signal, "getitimer") else (0.0, 0.0)
    return found


def _put_back(was: dict[str, Any]) -> None:
    now = _settings()
    if was["folder"] not in (None, now["folder"]):
        with contextlib.suppress(OSError):
            os.chdir(was["folder"])
    if was["filters"] != now["filters"] or was["showwarning"] is not now["showwarning"]:
        warnings.filters[:] = was["filters"]  # type: ignore[index]
        with warnings.catch_warnings():  # its end makes the change known
            pass
        warnings.showwarning = was["showwarning"]
    if was["locale"] != now["locale"]:
        locale.setlocale(locale.LC_ALL, was["locale"])
    sys.setrecursionlimit(was["depth"])
    (gc.enable if was["gc"] else gc.disable)()
    if was["print"] != now["print"]:
        np.set_printoptions(**was["print"])
    for (name, _, _), value, other in zip(_options(), was["pandas"], now["pandas"]):
        if other is not value:
            pd.set_option(name, value)
    if was["handlers"] and now["handlers"]:
        if now["timer"] != (0.0, 0.0) and was["timer"] == (0.0, 0.0):
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in was["handlers"].items():
            if handler is not now["handlers"][number] and handler is not None:
                signal.signal(number, handler)


@functools.cache
def _options() -> tuple[tuple[str, dict[str, Any], str], ...]:
    """Return pandas' options: the name of each, the mapping that holds it, and its key there."""

    def leaves(tree: dict[str, Any], above: str) -> Iterator[tuple[str, dict[str, Any], str]]:
        for key, value in tree.items():
            if isinstance(value, dict):
                yield from leaves(value, f"{above}{key}.")
            else:
                yield f"{above}{key}", tree, key

    return tuple(leaves(getattr(pd.options, "d", {}), ""))
