"""What ends a command from outside: Ctrl-C and SIGTERM alike, with one line that states what is kept and an exit code of 130 or 143."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

__all__ = ["Interrupt", "end", "kept", "signals"]

GRACE = 5.0
"""Seconds for which further signals are ignored, so that workers and files are tidied; after that another signal ends the process at once."""


@dataclass
class Interrupt:
    """What a command was ended by, and what is kept. The library of commands catches the exception itself, so that it cannot carry this."""

    number: int = 0
    kept: str = "no file is left half written, and the same call starts over"

    @property
    def code(self) -> int:
        """The exit code."""
        return 128 + (self.number or signal.SIGINT)


_now = Interrupt()  # of the command that runs


@contextmanager
def signals() -> Iterator[Interrupt]:
    """Turn the first SIGINT or SIGTERM into a `KeyboardInterrupt` as long as the block runs."""
    global _now
    found = _now = Interrupt()
    until = 0.0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal until
        if not found.number:
            found.number, until = number, time.monotonic() + GRACE
            raise KeyboardInterrupt
        if time.monotonic() > until:
            os._exit(128 + number)

    if threading.current_thread() is not threading.main_thread():  # where no handler can be set
        yield found
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    taken = [number for number, handler in before.items() if handler in (signal.SIG_DFL, signal.default_int_handler)]  # one that is ignored stays so
    for number in taken:
        signal.signal(number, handle)
    try:
        yield found
    finally:
        for number in taken:
            signal.signal(number, before[number])


def end(code: int) -> None:
    """End the process with its workers, at once: what other libraries do at the end of a process can wait for workers that were interrupted, too."""
    for child in multiprocessing.active_children():
        child.terminate()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


@contextmanager
def kept(folder: Path | None, *, what: str = "finished") -> Iterator[None]:
    """Note, where the block is interrupted, that its work is kept in a folder."""
    try:
        yield
    except KeyboardInterrupt:
        _now.kept = f"what was {what} is in {folder}, and the same call goes on" if folder is not None else "nothing is kept; with --out the same call goes on"
        raise
