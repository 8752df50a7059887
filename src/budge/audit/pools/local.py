"""Threads and processes of this machine, through `concurrent.futures`; loky's processes where joblib is installed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import suppress
from importlib import import_module
from multiprocessing import get_context
from typing import Any

from budge.audit.pools.base import INNER_THREADS, Died, Done, Outcome, Payload, Raised, announce, answer_announced, one_thread_each

__all__ = ["ExecutorPool", "loky_pool", "spawn_pool", "thread_pool"]


class ExecutorPool:
    """An executor that is made anew when a death has broken it."""

    exact_blame = False

    def __init__(self, workers: int, make: Callable[[], Executor], call: Callable[[Any], Done | Raised], end: Callable[[Executor], None]):
        self.broken = False
        self._workers = workers
        self._make = make
        self._call = call
        self._end = end
        self._executor = make()
        self._flying: set[Future[Done | Raised]] = set()

    def capacity(self) -> int:
        """A second block for each worker, so that none waits."""
        return 2 * self._workers

    def submit(self, block: Any) -> Hashable:
        """Give out a block."""
        try:
            future = self._executor.submit(self._call, block)
        except BrokenExecutor as error:  # the death came before this block
            self.broken = True
            future = Future()
            future.set_exception(error)
        self._flying.add(future)
        return future

    def wait(self) -> Sequence[tuple[Hashable, Outcome]]:
        """Wait for one block or more."""
        done, self._flying = wait(self._flying, return_when=FIRST_COMPLETED)
        return [(future, self._outcome(future)) for future in done]

    def _outcome(self, future: Future[Done | Raised]) -> Outcome:
        try:
            return future.result()
        except (BrokenExecutor, CancelledError) as error:
            self.broken = True
            return Died(_first_line(error))

    def revive(self) -> None:
        """New processes."""
        self._end(self._executor)
        self._executor = self._make()
        self.broken = False

    def close(self, *, finished: bool) -> None:
        """End the workers, at once if there is work under way that nobody wants."""
        if finished and not self.broken:
            self._executor.shutdown(wait=True)
        else:
            self._end(self._executor)


def thread_pool(work: Callable[[Any], Any], workers: int) -> ExecutorPool:
    """Threads, which share the work: it must bear several callers at once."""

    def call(block: Any) -> Done:
        return Done(work(block))

    return ExecutorPool(workers, lambda: ThreadPoolExecutor(workers, "budge"), call, lambda e: e.shutdown(cancel_futures=True))


def spawn_pool(work: Callable[[Any], Any], workers: int) -> ExecutorPool:
    """Processes from the standard library. Spawned: the solver's threads do not survive a fork."""
    payload = Payload.of(work, by_value=False)

    def make() -> Executor:
        executor = ProcessPoolExecutor(workers, get_context("spawn"), announce, (payload,))
        with one_thread_each():  # the first block starts all processes
            executor.submit(int).result() if False else None
        return executor

    return ExecutorPool(workers, make, answer_announced, _kill_spawned)


def loky_pool(work: Callable[[Any], Any], workers: int) -> ExecutorPool | None:
    """Loky's processes, which joblib brings; None without it.

    A pool of our own, not the one that joblib shares: a model that uses joblib in this process would end ours.
    """
    try:
        loky = import_module("joblib.externals.loky")
    except ImportError:
        return None
    payload = Payload.of(work)

    def make() -> Executor:
        pool: Executor = loky.ProcessPoolExecutor(workers, initializer=announce, initargs=(payload,), env=INNER_THREADS)
        return pool

    return ExecutorPool(workers, make, answer_announced, lambda executor: executor.shutdown(wait=True, kill_workers=True))  # type: ignore[call-arg]
