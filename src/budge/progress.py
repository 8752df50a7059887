"""How far the work is: a line that moves every half second on a terminal and in a notebook, lines now and then elsewhere.

Results never depend on it. In Python a line is shown by default where somebody can see it move, and nothing is written into pipes and files.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import wraps
from typing import IO, Any, ParamSpec, TypeVar

from budge.errors import InputError

__all__ = ["Pace", "Portion", "Progress", "bar", "noting", "share_of", "silent", "watched"]

Progress = Callable[[int, int], None]  # called with (done, in all); a total of 0: nobody knows where the end is

P = ParamSpec("P")
R = TypeVar("R")

EVERY = 10.0  # seconds between two lines of progress where there is no terminal
MOMENT = 0.5  # seconds between two looks of a line that moves, and before it is shown at all
BAR = 20  # cells
_by_default = True


class Portion:
    """How many rows to take at a time, so that a portion takes a moment; never fewer than work at full speed.

    A slow model is asked about fewer rows at a time, unless that costs time: some take as long for few rows as for many.
    """

    FIRST, FEWEST, STEP, SURCHARGE = 1_000, 200, 8, 0.2

    def __init__(self, most: int, clock: Callable[[], float] = time.perf_counter, *, steady: bool = False) -> None:
        self.most, self.clock, self.steady = most, clock, steady  # `steady`: as many as can be, where borders of portions show in what is written
        self.rows, self.call = most if steady else min(self.FIRST, most), 0.0  # `call`: seconds that a portion takes whatever its size
        self.last: tuple[int, float] | None = None

    @contextmanager
    def taking(self, rows: int) -> Iterator[None]:
        """Note how long the block takes, which works on so many rows."""
        began = self.clock()
        yield
        self.took(rows, self.clock() - began)

    def took(self, rows: int, seconds: float) -> None:
        """Choose the next portion by what the last ones took: short enough, but no more than a fifth of it for the call itself."""
        if self.steady:
            return
        if self.last is not None and not 0.5 < rows / max(self.last[0], 1) < 2:
            slope = (seconds - self.last[1]) / (rows - self.last[0])
            self.call = max(seconds - max(slope, 0.0) * rows, 0.0)
        self.last = rows, seconds
        each = max(seconds - self.call, 1e-9) / max(rows, 1)
        wanted = max(MOMENT, self.call / self.SURCHARGE) / each
        self.rows = int(min(max(wanted, self.FEWEST), self.STEP * max(rows, self.FEWEST), self.most))


class Pace:
    """How fast the work goes and how long it still takes, from what was done since the first look: a resumed run starts late."""

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.what, self.clock = what, clock
        self.opened = self.began = self.last = clock()
        self.first: int | None = None
        self.done = self.total = 0

    def see(self, done: int, total: int) -> None:
        """Take note of how much is done."""
        self.last = self.clock()
        if self.first is None:
            self.began, self.first = self.last, done
        self.done, self.total = done, total

    @property
    def rate(self) -> float | None:
        """What is done per second; None until something was done."""
        spent, new = self.last - self.began, self.done - (self.first or 0)
        return new / spent if new > 0 and spent > 0 else None

    @property
    def left(self) -> float | None:
        """Seconds that are left, counted down between two looks; None where that is not known."""
        rate = self.rate
        return max((self.total - self.done) / rate - (self.clock() - self.last), 0.0) if rate and self.total else None

    def __str__(self) -> str:
        rate, left = self.rate, self.left
        if rate is None:
            return ""
        speed = f"{rate:,.0f} {self.what}/s" if rate >= 10 else f"{rate:.2g} {self.what}/s"
        return speed if left is None else f"{speed}, {_time(left)} left"

    def line(self, width: int = 80) -> str:
        """Return all of it in one line that fits: a bar, how much is done, the time since the start, the rate and the time left."""
        spent = _time(self.clock() - self.opened)
        if self.first is None:
            return f"{self.what}: {spent}"[:width]
        told = f"{self.done:,} of {self.total:,}" if self.total else f"{self.done:,}"
        full = round(BAR * min(self.done / self.total, 1.0)) if self.total else 0
        drawn = f"{self.what} {'━' * full}{'╌' * (BAR - full)} {told}" if self.total else f"{self.what} {told}"
        parts = [drawn, f"{drawn}, {spent}", f"{drawn}, {spent}; {self}" if str(self) else ""]
        return max((part for part in parts if len(part) <= width), key=len, default=told[:width])


def _time(seconds: float) -> str:
    """Return a time that a person reads: 42 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


class _Line:
    """One line that is shown anew by a thread of its own, so that it moves while a model takes its time."""

    def __init__(self, pace: Pace, show: Callable[[str], None], width: Callable[[], int]) -> None:
        self.pace, self.show, self.width, self.seen = pace, show, width, ""

    def look(self) -> None:
        """Show the line if it has changed; nothing in the first moment, so that short work shows nothing."""
        self._show(self.pace.line(self.width()) if self.pace.clock() - self.pace.opened >= MOMENT else "")

    def clear(self) -> None:
        """Leave an empty line behind."""
        self._show("")

    def _show(self, text: str) -> None:
        if text != self.seen:
            self.show(text)
            self.seen = text


@contextmanager
def _moving(what: str, show: Callable[[str], None], width: Callable[[], int]) -> Iterator[Progress]:
    """Yield what notes progress in a line that moves every half second; it is gone when the work is done."""
    line, ended = _Line(Pace(what), show, width), threading.Event()

    def tick() -> None:
        while not ended.wait(MOMENT):
            line.look()

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield line.pace.see
    finally:
        ended.set()
        thread.join()
        line.clear()


def _on_terminal(what: str, stream: IO[str]) -> AbstractContextManager[Progress]:
    """Return a line that is written over again and again."""
    before = ""

    def show(text: str) -> None:
        nonlocal before
        with suppress(OSError, ValueError):  # a terminal that is gone
            stream.write("\r" + text.ljust(len(before)) + ("" if text else "\r"))
            stream.flush()
        before = text

    return _moving(what, show, lambda: _columns(stream) - 1)


def _in_notebook(what: str) -> AbstractContextManager[Progress]:
    """Return a line below the cell."""
    from IPython import display as displays  # type: ignore[import-not-found, unused-ignore]

    display: Any = displays.display
    shown: Any = None

    def show(text: str) -> None:
        nonlocal shown
        if shown is None:
            shown = display({"text/plain": text}, raw=True, display_id=True)
        else:
            shown.update({"text/plain": text}, raw=True)

    return _moving(what, show, lambda: 100)


def _lines(pace: Pace, stream: IO[str]) -> Progress:
    last = pace.clock()

    def update(done: int, total: int) -> None:
        nonlocal last
        pace.see(done, total)
        if pace.clock() - last >= EVERY and (done < total or not total):
            last = pace.clock()
            told = f"{done:,} of {total:,}" if total else f"{done:,}"
            stream.write(f"{told} {pace.what}: {pace}\n" if str(pace) else f"{told} {pace.what}\n")
            stream.flush()

    return update


def _columns(stream: IO[str]) -> int:
    with suppress(OSError, ValueError):
        if not os.environ.get("COLUMNS"):
            return os.get_terminal_size(stream.fileno()).columns
    given = os.environ.get("COLUMNS", "")
    return int(given) if given.isdecimal() and int(given) > 0 else 80


def _terminal(stream: IO[str] | None) -> bool:
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


def _notebook() -> bool:
    """Return whether the code runs in a notebook's kernel."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


@contextmanager
def bar(what: str, *, quiet: bool = False) -> Iterator[Progress | None]:
    """Yield what notes progress for the shell: a line that moves on a terminal, a line now and then elsewhere; nothing if quiet."""
    if quiet:
        yield None
    elif _terminal(sys.stderr):
        with _on_terminal(what, sys.stderr) as update:
            yield update
    else:
        yield _lines(Pace(what), sys.stderr)


@contextmanager
def watched(progress: Progress | bool | None, what: str) -> Iterator[Progress]:
    """Yield what notes progress in Python: what was given; without it a line on a terminal or in a notebook; False shows nothing.

    Examples
    --------
    >>> with watched(print, "people") as note:
    ...     note(1, 2)
    1 2
    """
    if callable(progress):
        yield progress
    elif progress is False or (progress is None and not _by_default):
        yield lambda done, total: None
    elif _notebook():
        with _in_notebook(what) as update:
            yield update
    elif _terminal(sys.stderr):
        with _on_terminal(what, sys.stderr) as update:
            yield update
    else:
        yield _lines(Pace(what), sys.stderr) if progress else (lambda done, total: None)


def noting(what: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator: the function's `progress`, or that of its `execution`, becomes what `watched` yields."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def inner(*args: P.args, **kwargs: P.kwargs) -> R:
            given: Any = kwargs.get("progress")
            given = getattr(kwargs.get("execution"), "progress", None) if given is None else given
            if given is not None and not isinstance(given, bool) and not callable(given):
                raise InputError("must be a function of (done, in all), True or False", where="progress", got=given)
            with watched(given, what) as note:
                kwargs["progress"] = note
                return function(*args, **kwargs)

        return inner

    return decorate


@contextmanager
def silent() -> Iterator[None]:
    """Show nothing by default while the block runs: the shell shows its own."""
    global _by_default
    before, _by_default = _by_default, False
    try:
        yield
    finally:
        _by_default = before


def share_of(progress: Progress, first: int, many: int, stages: int) -> Progress:
    """Return what notes the progress of some of several stages as that of the whole, whatever each of them counts.

    Examples
    --------
    >>> share_of(print, 1, 1, 4)(5, 10)
    15 40
    """
    return lambda done, total: progress(first * max(total, 1) + many * done, stages * max(total, 1))
