"""Blocks on a Dask cluster: one that is there, or one of this machine for as long as the run takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, suppress
from typing import Any

from budge.audit.pools.base import Died, Outcome, Payload, answer, first_line, optional
from budge.errors import InputError

__all__ = ["DaskPool"]


class DaskPool:
    """Blocks by `Client.submit`. Dask itself tries a block again when its worker dies, some times, before it gives up.

    Parameters
    ----------
    work
        What is done with a block; sent to the workers once.
    engine
        A `distributed.Client`, a cluster, or None for the current client or, without one, a cluster of this machine.
    n_jobs
        Above 1: at most so many blocks at once. Otherwise as many as the cluster has threads.
    """

    exact_blame = True

    def __init__(self, work: Callable[[Any], Any], engine: Any, n_jobs: int, workers: int):
        self._distributed: Any = optional("distributed", "dask")
        self._own = ExitStack()
        try:
            self._client = self._connect(engine, workers)
            if self._client.asynchronous:
                raise InputError("the Dask client is asynchronous", where="engine", remedy="give a Client(asynchronous=False)")
            self._limit = n_jobs if n_jobs > 1 else None
            self._payload = Payload.of(work)
            self._flying: Any = self._distributed.as_completed(loop=self._client.loop)
            self._futures: dict[str, Any] = {}
            self._threads, self._asked = 0, 0.0
            self._work: Any = None
        except BaseException:
            self._own.close()
            raise

    def _connect(self, engine: Any, workers: int) -> Any:
        if isinstance(engine, self._distributed.Client):
            return engine
        if engine is None:
            with suppress(ValueError):
                return self._distributed.default_client()
            engine = self._own.enter_context(
                self._distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, host="127.0.0.1")
            )
        return self._own.enter_context(self._distributed.Client(engine, set_as_default=False))

    def capacity(self, left: int) -> int:
        """Two blocks for each thread of the cluster, which may grow and shrink."""
        if self._limit is not None:
            return self._limit
        if time.monotonic() > self._asked + 2.0:
            self._threads, self._asked = sum(self._client.nthreads().values()), time.monotonic()
        return max(8, 2 * self._threads)

    def submit(self, block: Any) -> Hashable:
        """Give out a block; before the first one, and when a worker may have died with the work, send the work."""
        if self._work is None:
            (self._work,) = self._client.scatter([self._payload], broadcast=True, hash=False)
        future = self._client.submit(answer, self._work, block, pure=False)
        self._futures[future.key] = future
        self._flying.add(future)
        return str(future.key)

    def wait(self) -> Sequence[tuple[Hashable, Outcome]]:
        """Wait for one block or more."""
        first = next(self._flying)
        batch = [first, *self._flying.next_batch(block=False)] if not self._flying.is_empty() else [first]
        return [(future.key, self._outcome(future)) for future in batch]

    def _outcome(self, future: Any) -> Outcome:
        self._futures.pop(future.key, None)
        try:
            outcome: Outcome = future.result()
        except (self._distributed.KilledWorker, CancelledError, self._distributed.CancelledError) as error:
            self._work = None
            return Died(first_line(error))
        return outcome

    def close(self, *, finished: bool) -> None:
        """Call back what is under way; end the cluster if it is ours."""
        if not finished:
            with suppress(Exception):
                self._client.cancel(list(self._futures.values()), force=True)
        self._futures.clear()
        self._own.close()
