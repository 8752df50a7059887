"""Any backend that is registered with joblib, by its name."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

from budge.audit.pools.base import Died, Done, Outcome, Payload, Raised, answer, first_line, optional

__all__ = ["BackendPool", "backend_names"]


def backend_names() -> list[str]:
    """The names that joblib knows; none without joblib."""
    try:
        parallel: Any = optional("joblib.parallel", "parallel")
    except ImportError:
        return []
    return sorted({*parallel.BACKENDS, *parallel.EXTERNAL_BACKENDS})


class BackendPool:
    """Blocks through `joblib.Parallel`.

    Joblib asks for blocks as its workers get free and not as we take results, so it is given only what was submitted:
    when the queue is empty its call ends, and the next `wait` starts another. So the results that wait are bounded.
    """

    exact_blame = False

    def __init__(self, work: Callable[[Any], Any], name: str, n_jobs: int):
        self._joblib: Any = optional("joblib", "parallel")
        self._payload = Payload.of(work)
        self._name = name
        self._n_jobs = n_jobs
        self._queue: deque[tuple[int, Any]] = deque()
        self._given: set[int] = set()
        self._tickets = 0
        self._stream: Iterator[tuple[int, Done | Raised]] | None = None
        with _configured(self._joblib, name, n_jobs):
            self._workers: int = max(1, self._joblib.effective_n_jobs(n_jobs))

    def capacity(self, left: int) -> int:
        """Some blocks for each worker, since joblib's calls start and end."""
        return 4 * self._workers

    def submit(self, block: Any) -> Hashable:
        """Queue a block."""
        self._tickets += 1
        self._queue.append((self._tickets, block))
        return self._tickets

    def wait(self) -> Sequence[tuple[Hashable, Outcome]]:
        """One result of the call that runs, or of a new one."""
        while True:
            if self._stream is None:
                self._stream = self._start()
            try:
                ticket, outcome = next(self._stream)
            except StopIteration:
                self._stream = None
                continue
            except Exception as error:  # the work's own errors are answers, so this is the backend's
                self._stream = None
                struck, self._given = self._given, set()
                return [(ticket, Died(first_line(error))) for ticket in struck]
            self._given.discard(ticket)
            return [(ticket, outcome)]

    def close(self, *, finished: bool) -> None:
        """Joblib ends what it started when its results are given up."""
        stream, self._stream = self._stream, None
        if stream is not None and hasattr(stream, "close"):
            stream.close()

    def _start(self) -> Iterator[tuple[int, Done | Raised]]:
        with _configured(self._joblib, self._name, self._n_jobs):
            try:
                parallel = self._joblib.Parallel(batch_size=1, pre_dispatch=2 * self._workers, return_as="generator_unordered")
                return iter(parallel(self._feed()))
            except (TypeError, ValueError):  # an older joblib, or a backend that cannot stream: all that is queued at once
                parallel = self._joblib.Parallel(batch_size=1, pre_dispatch=2 * self._workers)
                return iter(parallel(self._feed()))

    def _feed(self) -> Iterator[Any]:
        call = self._joblib.delayed(_tagged)
        while self._queue:
            ticket, block = self._queue.popleft()
            self._given.add(ticket)
            yield call(ticket, self._payload, block)


def _tagged(ticket: int, payload: Payload, block: Any) -> tuple[int, Done | Raised]:
    return ticket, answer(payload, block)


def _configured(joblib: Any, name: str, n_jobs: int) -> Any:
    """The backend with one thread inside each worker, where it knows what that means."""
    try:
        return joblib.parallel_config(name, n_jobs=n_jobs, inner_max_num_threads=1)
    except (AssertionError, TypeError, ValueError):
        return joblib.parallel_config(name, n_jobs=n_jobs)
