"""What every pool of workers can do, and what a worker does with a block."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol
from uuid import uuid4

from budge.errors import InputError, MissingDependencyError

__all__ = [
    "INNER_THREADS",
    "Died",
    "Done",
    "Outcome",
    "Payload",
    "Pool",
    "Raised",
    "announce",
    "answer",
    "answer_announced",
    "environment",
    "first_line",
    "optional",
]

# One thread inside each worker: the blocks are the parallelism, and n_jobs times n_cores threads are slower than either.
INNER_THREADS = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
     "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS"),
    "1",
)  # fmt: skip


@dataclass(frozen=True)
class Done:
    """A block that was worked on."""

    value: Any


@dataclass(frozen=True)
class Raised:
    """A block on which the work itself raised: the same would happen again, so it is raised again at once."""

    error: Exception
    trace: str


@dataclass(frozen=True)
class Died:
    """A block whose worker died: nothing is known of it, so it is worked on again.

    Not `guilty`: it waited behind another one when the worker died, so this was no try.
    """

    reason: str
    guilty: bool = True


Outcome = Done | Raised | Died


class Pool(Protocol):
    """Workers that take blocks and give outcomes, in any order.

    Attributes
    ----------
    exact_blame
        Whether a death tells which block it struck. Where it does not, all blocks under way are struck, and the engine
        finds the guilty one by working on it alone.
    """

    exact_blame: bool

    def capacity(self, left: int) -> int:
        """How many blocks may be under way at once, when so many are left to be given out."""

    def submit(self, block: Any) -> Hashable:
        """Give out a block; its ticket comes back from `wait`."""

    def wait(self) -> Sequence[tuple[Hashable, Outcome]]:
        """Wait until one of the tickets is decided, or more."""

    def close(self, *, finished: bool) -> None:
        """End what the pool has started; not `finished`: also what is under way, without waiting for it."""


@dataclass(frozen=True)
class Payload:
    """The work as bytes, sent once to a worker rather than with every block."""

    token: str
    data: bytes

    @classmethod
    def of(cls, work: Callable[[Any], Any], *, by_value: bool = True) -> Payload:
        """Pickle the work; `by_value`: with cloudpickle where there is one, so that functions of a notebook travel too."""
        dumps = _cloudpickle() if by_value else pickle.dumps
        try:
            return cls(uuid4().hex, dumps(work))
        except Exception as error:
            raise InputError(
                f"the work cannot be sent to other processes: {type(error).__name__}: {error}", where="engine",
                remedy="use engine='threads' or n_jobs=1, or make the model picklable",
            ) from error  # fmt: skip


_HERE = threading.local()  # one unpickled work a thread: a model or a solver need not bear two callers at once


def answer(payload: Payload, block: Any) -> Done | Raised:
    """In the worker: do the work on a block. What it raises is an answer too, the same from every engine."""
    try:
        if getattr(_HERE, "token", None) != payload.token:
            _HERE.work = None  # the old one may be large
            _HERE.work = pickle.loads(payload.data)
            _HERE.token = payload.token
        return Done(_HERE.work(block))
    except Exception as error:
        return Raised(_portable(error), traceback.format_exc())


_announced: Payload | None = None


def announce(payload: Payload) -> None:
    """At the start of a worker process: keep the work, leave Ctrl-C to the parent, and end when the parent does."""
    global _announced
    _announced = payload
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True, name="budge-parent-watch").start()


def answer_announced(block: Any) -> Done | Raised:
    """In a worker process that was told the work when it started."""
    assert _announced is not None
    return answer(_announced, block)


def _end_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _portable(error: Exception) -> Exception:
    """The error, or one with its words if it would not survive the journey."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def first_line(error: BaseException) -> str:
    """The kind of an error and the start of its text."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _cloudpickle() -> Callable[[Any], bytes]:
    for name in ("cloudpickle", "joblib.externals.cloudpickle", "ray.cloudpickle"):
        try:
            dumps: Callable[[Any], bytes] = import_module(name).dumps
        except ImportError:
            continue
        return dumps
    return pickle.dumps


def optional(name: str, extra: str) -> ModuleType:
    """An optional package, or the error that says how to get it."""
    try:
        return import_module(name)
    except ImportError as error:
        what = f"{name.partition('.')[0]} is not installed"
        raise MissingDependencyError(what, where="engine", remedy=f"pip install 'budge[{extra}]'") from error


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """While this holds, processes that are started see these variables."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
