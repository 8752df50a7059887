"""Threads and processes of this machine, through `concurrent.futures`; loky's processes where joblib is installed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from concurrent import futures
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from typing import Any

from budge.audit.pools.base import (
    INNER_THREADS,
    Died,
    Done,
    Outcome,
    Payload,
    Raised,
    announce,
    answer_announced,
    environment,
    first_line,
)

__all__ = ["ProcessPool", "ThreadPool", "loky_pool", "spawn_pool"]


class ThreadPool:
    """Threads, which share the work: it must bear several callers at once."""

    exact_blame = True

    def __init__(self, work: Callable[[Any], Any], workers: int):
        self._work = work
        self._workers = workers
        self._executor = ThreadPoolExecutor(workers, "budge")
        self._flying: set[Future[Any]] = set()

    def capacity(self, left: int) -> int:
        """A second block for each thread, so that none waits."""
        return 2 * self._workers

    def submit(self, block: Any) -> Hashable:
        """Give out a block."""
        future = self._executor.submit(self._work, block)
        self._flying.add(future)
        return future

    def wait(self) -> Sequence[tuple[Hashable, Outcome]]:
        """Wait for one block or more; what the work raises is raised here."""
        done, self._flying = futures.wait(self._flying, return_when=futures.FIRST_COMPLETED)
        return [(future, Done(future.result())) for future in done]

    def close(self, *, finished: bool) -> None:
        """End the threads. A block that one of them is at cannot be stopped, so it is waited for."""
        self._executor.shutdown(wait=True, cancel_futures=True)


class ProcessPool:
    """Processes, each behind an executor of its own: so a death costs the one block that it struck, and one process."""

    exact_blame = True

    def __init__(self, workers: int, make: Callable[[], Executor], kill: Callable[[Any], None]):
        self._lanes = [_Lane(make, kill) for _ in range(workers)]

    def capacity(self, left: int) -> int:
        """A second block for each process, so that none waits; towards the end one, so that the last go to who is free."""
        return (2 if left > len(self._lanes) else 1) * len(self._lanes)

    def submit(self, block: Any) -> Hashable:
        """Give a block to the process that has the fewest."""
        return min(self._lanes, key=lambda lane: len(lane.queue)).submit(block)

    def wait(self) -> Sequence[tuple[Hashable, Outcome]]:
        """Wait for one block or more."""
        futures.wait([future for lane in self._lanes for future in lane.queue], return_when=futures.FIRST_COMPLETED)
        return [outcome for lane in self._lanes for outcome in lane.collect()]

    def close(self, *, finished: bool) -> None:
        """End the processes, at once if they are at something that nobody wants."""
        with ThreadPoolExecutor(len(self._lanes)) as together:  # each takes its time to say goodbye
            list(together.map(_Lane.shutdown if finished else _Lane.kill, self._lanes))


class _Lane:
    """One process and the blocks that it was given, in their order."""

    def __init__(self, make: Callable[[], Executor], kill: Callable[[Any], None]):
        self.queue: list[Future[Done | Raised]] = []
        self._make = make
        self._kill = kill
        self._executor: Executor | None = None

    def submit(self, block: Any) -> Future[Done | Raised]:
        if self._executor is None:
            self._executor = self._make()
        try:
            future = self._executor.submit(answer_announced, block)
        except BrokenExecutor as error:  # the process died when it had nothing to do, or on a block before this one
            future = Future()
            future.set_exception(error)
        self.queue.append(future)
        return future

    def collect(self) -> list[tuple[Hashable, Outcome]]:
        """What is decided. After a death the oldest block is to blame; those behind it had not begun."""
        decided: list[tuple[Hashable, Outcome]] = []
        for future in [future for future in self.queue if future.done()]:
            try:
                decided.append((future, future.result()))
                self.queue.remove(future)
            except (BrokenExecutor, CancelledError) as error:
                reason = first_line(error)
                decided += [(struck, Died(reason, guilty=place == 0)) for place, struck in enumerate(self.queue)]
                self.queue = []
                self.kill()
                break
        return decided

    def shutdown(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True)

    def kill(self) -> None:
        executor, self._executor = self._executor, None
        if executor is not None:
            self._kill(executor)


def loky_pool(work: Callable[[Any], Any], workers: int) -> ProcessPool | None:
    """Loky's processes, which joblib brings; None without it.

    Processes of our own, not those that joblib shares: a model that uses joblib in this process would end them.
    """
    try:
        loky: Any = import_module("joblib.externals.loky")
    except ImportError:
        return None
    payload = Payload.of(work)

    def make() -> Executor:
        executor: Executor = loky.ProcessPoolExecutor(1, initializer=announce, initargs=(payload,), env=INNER_THREADS)
        return executor

    return ProcessPool(workers, make, lambda executor: executor.shutdown(wait=True, kill_workers=True))


def spawn_pool(work: Callable[[Any], Any], workers: int) -> ProcessPool:
    """Processes from the standard library. Spawned: the solver's threads do not survive a fork."""
    payload = Payload.of(work, by_value=False)

    def make() -> Executor:
        executor = ProcessPoolExecutor(1, get_context("spawn"), announce, (payload,))
        with environment(INNER_THREADS):
            executor.submit(int)  # whatever comes first starts the process
        return executor

    return ProcessPool(workers, make, _kill_spawned)


def _kill_spawned(executor: Any) -> None:
    for process in list((executor._processes or {}).values()):  # public only from Python 3.14 on
        process.kill()
    executor.shutdown(wait=True, cancel_futures=True)
