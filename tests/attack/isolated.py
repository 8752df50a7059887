"""Runs one attack in a process of its own, within limits, and measures what it took.

The processes are forked from a server that has imported budge and nothing of the attack, so that an attempt costs about 20 ms and a crash,
a hang or a greedy allocation ends the attempt and not the tests.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import time
import traceback
from collections.abc import Callable, Sequence
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

Judged = tuple[str, str, float, float]
"""What became of one of several items, what was said, CPU seconds and megabytes."""


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


def judged(action: Callable[[Any], Any], items: Sequence[Any], *, package: str = "", megabytes: float = MEGABYTES) -> list[Judged]:
    """Call the function with each item, in one process that has imported the package; return what became of each.

    An item is tried again alone if the process ended, if it took too long (the machine may have been busy), or if the process has taken too
    much memory by then (another item may have).
    """
    outcome = attempt(_judge, action, items, package, hung=120.0 + 0.5 * len(items))
    if outcome.kind != "done" and len(items) > 1:
        half = len(items) // 2
        return [one for part in (items[:half], items[half:]) for one in judged(action, part, package=package, megabytes=megabytes)]
    if outcome.kind != "done":
        return [(outcome.kind, outcome.said, outcome.seconds, outcome.megabytes)]
    found: list[Judged] = list(outcome.value)
    for i, (_, _, seconds, most) in enumerate(found):
        if (seconds > SECONDS or most > megabytes) and len(items) > 1:
            found[i] = judged(action, items[i : i + 1], package=package, megabytes=megabytes)[0]
    return found


def _judge(action: Callable[[Any], Any], items: Sequence[Any], package: str) -> list[Judged]:
    if package:
        __import__(package)
    found: list[Judged] = []
    for item in items:
        began = time.process_time()
        try:
            kind, said = "done", str(action(item))
        except BudgeError as error:
            kind, said = "refused", f"{type(error).__name__}: {error}"
        except BaseException as error:
            kind, said = "raw error", repr(error)
        found.append((kind, said[:2000], time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
    return found
