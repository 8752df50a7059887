"""Runs one attack in a process of its own, within limits, and measures what it took.

The processes are forked from a server that has imported budge and nothing of the attack, so that an attempt costs about 20 ms and a crash,
a hang or a greedy allocation ends the attempt and not the tests.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Literal

from budge.errors import BudgeError
from cpu import allowed

SECONDS, MEGABYTES = allowed(2), 300.0
"""What a refusal may take: CPU time, and memory with all imports."""
HUNG = 60.0
GREEDY = 2 << 30
PRELOADED = ["budge", "budge.cli", "pandas", "pyarrow", "pyarrow.parquet", "yaml"]

Kind = Literal["done", "refused", "raw error", "crashed", "hung"]


@dataclass(frozen=True)
class Outcome:
    """What became of an attempt: `refused` is an error of budge, `raw error` any other one, `crashed` the end of the process."""

    kind: Kind
    said: str = ""
    value: Any = None
    seconds: float = 0.0
    megabytes: float = 0.0

    @property
    def safe(self) -> bool:
        """Whether the attempt was carried out or refused, within the limits of a refusal."""
        return self.kind in ("done", "refused") and self.seconds <= SECONDS and self.megabytes <= MEGABYTES

    def __str__(self) -> str:
        return f"{self.kind} after {self.seconds:.2f} s of CPU and {self.megabytes:.0f} MB: {self.said or self.value}"


_server = multiprocessing.get_context("forkserver")
_server.set_forkserver_preload(PRELOADED)


def attempt(action: Callable[..., Any], *arguments: Any, hung: float = HUNG) -> Outcome:
    """Call a function of a test module in a process of its own; its value must be small and picklable."""
    ours, theirs = _server.Pipe(duplex=False)
    process = _server.Process(target=_inside, args=(theirs, action, arguments), daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(hung):
            os.kill(process.pid or 0, signal.SIGKILL)
            process.join()
            return Outcome("hung", f"after {hung} s", seconds=hung)
        outcome: Outcome = ours.recv()
    except EOFError:
        process.join()
        code = process.exitcode or 0
        return Outcome("crashed", signal.Signals(-code).name if code < 0 else f"exit code {code}")
    finally:
        ours.close()
    process.join()
    return outcome


def _inside(to: Connection, action: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Work in the child: no core files, a bound on what can be allocated, and the costs measured here."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + GREEDY, mapped + GREEDY))
    before = resource.getrusage(resource.RUSAGE_SELF)
    kind: Kind = "done"
    said, value = "", None
    try:
        value = action(*arguments)
    except BudgeError as error:
        kind, said = "refused", f"{type(error).__name__}: {error}"
    except BaseException as error:
        kind, said = "raw error", "".join(traceback.format_exception_only(error)).strip() + "\n" + traceback.format_exc(limit=-4)
    after = resource.getrusage(resource.RUSAGE_SELF)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    to.send(Outcome(kind, said[:4000], value, seconds, after.ru_maxrss / 1024))
    to.close()
