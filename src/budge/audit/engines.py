"""One seam for everything that works in parallel: map pure blocks, in any order.

A block is given out, comes back as a result, as the error that the work raised, or not at all because its worker died.
The first goes to the caller, the second is raised at once, the third is given out again. Only so many blocks as keep the
workers busy are under way, so memory does not grow with their number.
"""

from __future__ import annotations

import logging
import os
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from types import ModuleType
from typing import Any, TypeVar

from budge.audit.pools.base import Died, Pool, Raised
from budge.errors import IncompleteError, InputError, MissingDependencyError, nearest

__all__ = ["ENGINES", "run_blocks"]

Block = Any  # picklable
Result = TypeVar("Result")

ENGINES = ("serial", "threads", "processes", "dask", "ray")
_LOST_LIMIT = 8  # so many blocks given up: it is the machine, not the blocks
_LOST_AT_START = 2  # the same, before any was finished
_log = logging.getLogger(__name__)


def run_blocks(
    work: Callable[[Block], Result], blocks: Sequence[Block], *, n_jobs: int = 1, engine: Any = None, retries: int = 2
) -> Iterator[tuple[int, Result]]:
    """Work on each block and give (its position, its result) as they finish, in any order.

    Parameters
    ----------
    work
        A pure function of a block. It is sent to each worker once. With ``threads`` it is shared by its callers.
    blocks
        Any sequence; a block is asked for when it is given out, and forgotten when its result is taken.
    n_jobs
        Workers on this machine; -1: one for each core, -2: all but one. On a Dask or Ray cluster 1 and -1 mean
        all of it, more means at most so many blocks at once.
    engine
        None: this process for one job, processes otherwise. ``serial``, ``threads``, ``processes``; the name of a joblib
        backend; ``dask`` or ``ray``: the cluster to which this process is connected, or else one on this machine for as
        long as the run takes; a Dask client or cluster; the ``ray`` module.
    retries
        How many times a block is given out again after its worker died.

    Raises
    ------
    IncompleteError
        Workers kept dying on some blocks; they are named. All others have been given before, unless so many were lost
        that it is the machine.
    InputError
        An engine that is not known, or work that cannot be sent to it.
    MissingDependencyError
        The engine's package is not installed.
    Exception
        Whatever the work raises, as it raised it.

    Examples
    --------
    >>> sorted(run_blocks(sum, [(1, 2), (3, 4)], n_jobs=2, engine="threads"))
    [(0, 3), (1, 7)]
    """
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise InputError("not a number of jobs", where="n_jobs", got=n_jobs, remedy="1 or more, or -1 for all cores")
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise InputError("the number of retries is 0 or more", where="retries", got=retries)
    open_pool = _choose(work, n_jobs, engine, len(blocks))
    if not len(blocks):
        return iter(())
    if open_pool is None:
        return ((position, work(blocks[position])) for position in range(len(blocks)))
    return _run(open_pool, blocks, retries)


def _run(open_pool: Callable[[], Pool], blocks: Sequence[Block], retries: int) -> Iterator[tuple[int, Any]]:
    total, fresh, given = len(blocks), 0, 0
    again: deque[int] = deque()  # to be given out once more, before others
    strikes: Counter[int] = Counter()
    lost: list[int] = []
    flying: dict[Hashable, int] = {}
    reason, finished = "", False
    pool = open_pool()
    try:
        while len(lost) < (_LOST_LIMIT if given else _LOST_AT_START):
            while (again or fresh < total) and len(flying) < pool.capacity(total - fresh + len(again)):
                # The last try is made alone where a death strikes all blocks under way: so the guilty one is found.
                alone = bool(again) and not pool.exact_blame and strikes[again[0]] >= retries
                if alone and flying:
                    break
                position = again.popleft() if again else fresh
                fresh += position == fresh
                flying[pool.submit(blocks[position])] = position
                if alone:
                    break
            if not flying:
                break
            for ticket, outcome in pool.wait():
                position = flying.pop(ticket)
                if isinstance(outcome, Raised):
                    raise outcome.error from _WorkerError(outcome.trace)
                if isinstance(outcome, Died):
                    reason = outcome.reason
                    strikes[position] += outcome.guilty
                    (lost if strikes[position] > retries else again).append(position)
                    if outcome.guilty:
                        _log.warning("a worker died on block %d: %s", position, reason)
                else:
                    given += 1
                    yield position, outcome.value
        finished = not flying
    finally:
        pool.close(finished=finished)
    if lost:
        named = ", ".join(str(position) for position in sorted(lost))
        raise IncompleteError(
            f"{given} of {total} blocks were finished; workers died {retries + 1} times on each of these: {named}",
            where="engine", got=reason, remedy="fewer jobs or smaller blocks need less memory; what was finished is kept",
        )  # fmt: skip


class _WorkerError(Exception):
    """Where in the worker an error was raised: the cause of the error as it is raised here."""

    def __str__(self) -> str:
        return f"in the worker:\n{self.args[0]}"


# -- which pool ---------------------------------------------------------------------------------------------------------


def _choose(work: Callable[[Block], Any], n_jobs: int, engine: Any, n_blocks: int) -> Callable[[], Pool] | None:
    """What opens the pool, when the first result is asked for; None: no pool, this process."""
    workers = max(1, min(n_jobs if n_jobs > 0 else _cores() + 1 + n_jobs, n_blocks))
    if engine is None:
        engine = "serial" if n_jobs == 1 or workers == 1 else "processes"
    if isinstance(engine, str):
        return _named(work, n_jobs, engine, workers)
    home = engine.__name__ if isinstance(engine, ModuleType) else type(engine).__module__
    match home.partition(".")[0]:
        case "ray":
            return lambda: _ray(work, n_jobs, workers)
        case "distributed" | "dask" | "dask_jobqueue" | "dask_kubernetes" | "coiled":
            return lambda: _dask(work, None if isinstance(engine, ModuleType) else engine, n_jobs, workers)
    remedy = f"one of {', '.join(ENGINES)}, a joblib backend, a Dask client, the ray module"
    raise InputError("not an engine", where="engine", got=engine, remedy=remedy)


def _named(work: Callable[[Block], Any], n_jobs: int, engine: str, workers: int) -> Callable[[], Pool] | None:
    from budge.audit.pools.backends import BackendPool, backend_names
    from budge.audit.pools.local import ThreadPool, loky_pool, spawn_pool

    match engine:
        case "serial" | "sequential":
            return None
        case "threads" | "threading":
            return lambda: ThreadPool(work, workers)
        case "processes":
            return lambda: loky_pool(work, workers) or spawn_pool(work, workers)
        case "multiprocessing":  # as joblib's, but never by fork
            return lambda: spawn_pool(work, workers)
        case "loky":
            return lambda: _or_missing(loky_pool(work, workers))
        case "dask":
            return lambda: _dask(work, None, n_jobs, workers)
        case "ray":
            return lambda: _ray(work, n_jobs, workers)
    known = backend_names()
    if engine in known:
        return lambda: BackendPool(work, engine, n_jobs)
    remedy = nearest(engine, dict.fromkeys([*ENGINES, *known]))
    raise InputError("no engine of this name", where="engine", got=engine, remedy=remedy)


def _dask(work: Callable[[Block], Any], engine: Any, n_jobs: int, workers: int) -> Pool:
    from budge.audit.pools.dask_pool import DaskPool

    return DaskPool(work, engine, n_jobs, workers)


def _ray(work: Callable[[Block], Any], n_jobs: int, workers: int) -> Pool:
    from budge.audit.pools.ray_pool import RayPool

    return RayPool(work, n_jobs, workers)


def _or_missing(pool: Pool | None) -> Pool:
    if pool is None:
        raise MissingDependencyError("joblib is not installed", where="engine", remedy="pip install 'budge[parallel]'")
    return pool


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))  # what this process may use, not what the machine has
    except AttributeError:
        return os.cpu_count() or 1
