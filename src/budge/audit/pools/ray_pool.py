"""Blocks on a Ray cluster by its own tasks: one that is there, or one of this machine for as long as the run takes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import Any

from budge.audit.pools.base import Died, Outcome, Payload, answer, environment, first_line, optional

__all__ = ["RayPool"]


class RayPool:
    """Blocks by Ray tasks, each with one processor.

    Parameters
    ----------
    work
        What is done with a block; put into Ray's store once.
    n_jobs
        Above 1: at most so many blocks at once. Otherwise as many as the cluster has processors.
    """

    exact_blame = True

    def __init__(self, work: Callable[[Any], Any], n_jobs: int, workers: int):
        self._ray: Any = optional("ray", "ray")
        payload = Payload.of(work)
        self._own = not self._ray.is_initialized()
        if self._own:
            self._start(workers)
        try:
            self._limit = n_jobs if n_jobs > 1 else None
            self._work = self._ray.put(payload)
            self._task = self._ray.remote(num_cpus=1, max_retries=0)(answer)
            self._flying: list[Any] = []
        except BaseException:
            self.close(finished=False)
            raise

    def _start(self, workers: int) -> None:
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        address = os.environ.get("RAY_ADDRESS")
        if address:
            self._ray.init(address=address, **quiet)
            return
        path = os.pathsep.join(place or os.getcwd() for place in sys.path)
        # Nothing is reported to anybody, and workers import from where we do.
        with environment({"RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": path}):
            self._ray.init(num_cpus=workers, include_dashboard=False, _node_ip_address="127.0.0.1", **quiet)

    def capacity(self, left: int) -> int:
        """Two blocks for each processor of the cluster, which may grow and shrink."""
        return self._limit or max(2, 2 * int(self._ray.cluster_resources().get("CPU", 1)))

    def submit(self, block: Any) -> Hashable:
        """Give out a block."""
        reference = self._task.remote(self._work, block)
        self._flying.append(reference)
        return reference  # type: ignore[no-any-return]

    def wait(self) -> Sequence[tuple[Hashable, Outcome]]:
        """Wait for one block or more."""
        ready, self._flying = self._ray.wait(self._flying, num_returns=1)
        return [(reference, self._outcome(reference)) for reference in ready]

    def _outcome(self, reference: Any) -> Outcome:
        try:
            outcome: Outcome = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError:
            raise  # not the work, whose errors are answers: the block could not be read, or the result not be sent
        except self._ray.exceptions.RayError as error:
            return Died(first_line(error))
        return outcome

    def close(self, *, finished: bool) -> None:
        """Call back what is under way; end the cluster if it is ours."""
        if not finished:
            for reference in self._flying:
                with suppress(Exception):
                    self._ray.cancel(reference, force=True)
        self._flying = []
        self._work = None
        if self._own:
            self._ray.shutdown()
