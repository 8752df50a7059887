"""One seam for everything that works in parallel: map pure blocks, in any order.

Each engine turns a block into a `concurrent.futures.Future`; one loop gives the blocks out, yields what they return, raises
what they raise, and gives out again what was under way when a worker died.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from importlib import import_module
from random import Random
from types import ModuleType
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

from budge.errors import IncompleteError, InputError, MissingDependencyError, nearest

__all__ = ["ENGINES", "run_blocks"]

Block = Any  # picklable
Result = TypeVar("Result")
Work = Callable[[Block], Any]
Payload = tuple[str, bytes]  # the work as bytes, and a name by which a worker recognises it

ENGINES = ("serial", "threads", "processes", "dask", "ray")
_IN_A_ROW = 8  # failures without a block that is finished: the machine is to blame, not the blocks
# One thread inside each worker: n_jobs times n_cores threads are slower than either.
_INNER_THREADS = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA", "NUMEXPR")}
_places = Random()
_log = logging.getLogger(__name__)


def run_blocks(
    work: Callable[[Block], Result], blocks: Sequence[Block], *, n_jobs: int = 1, engine: object = None, retries: int = 2
) -> Iterator[tuple[int, Result]]:
    """Work on each block and yield (its position, its result) as they finish, in any order.

    Parameters
    ----------
    work
        A pure function of a block. It is sent to each worker once. With ``threads`` it is shared by its callers.
    blocks
        Any sequence; a block is taken from it when it is given out, and forgotten when its result is yielded.
    n_jobs
        Workers on this machine; -1: one per core, -2: all cores but one. On a Dask or Ray cluster 1 and -1 mean all of it,
        more means at most so many blocks at once.
    engine
        None: this process for one job, processes otherwise. ``serial``, ``threads``, ``processes``; the name of a joblib
        backend; ``dask`` or ``ray``: the cluster to which this process is connected, or else one on this machine for as
        long as the run takes; ``dask:ADDRESS`` (``dask:tcp://10.0.0.1:8786``) or ``ray:ADDRESS`` (``ray:auto``): the cluster there;
        a Dask client or cluster; the ``ray`` module.
    retries
        How many times a block is given out again after a worker died: after all others, and with no other block under way, so that the guilty one
        is known; with 0 that is every try.

    Blocks whose workers keep dying, or that need more memory than there is, are named in an `IncompleteError` after all others are finished
    (positions in its `lost`); any other error of the work is raised as it was.

    Examples
    --------
    >>> sorted(run_blocks(sum, [(1, 2), (3, 4)], n_jobs=2, engine="threads"))
    [(0, 3), (1, 7)]
    """
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise InputError("not a number of jobs", where="n_jobs", got=n_jobs, remedy="1 or more, or -1 for all cores")
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise InputError("the number of retries is 0 or more", where="retries", got=retries)
    pool = _choose(work, n_jobs, engine, len(blocks))
    return _run(pool, blocks, retries) if len(blocks) else iter(())


class _Pool(NamedTuple):
    submit: Callable[[Block], Future[Any]]
    room: Callable[[], int]  # how many blocks may be under way: about two per worker, so that none waits
    deaths: tuple[type[Exception], ...] = ()  # the errors of a future whose worker died


def _run(opening: AbstractContextManager[_Pool], blocks: Sequence[Block], retries: int) -> Iterator[tuple[int, Any]]:
    todo, last, flying = deque(range(len(blocks))), deque[int](), dict[Future[Any], int]()
    strikes, lost, given, row, reason = Counter[int](), list[int](), 0, 0, ""
    with opening as pool:
        deaths: tuple[type[Exception], ...] = (MemoryError, *pool.deaths)
        while (todo or last or flying) and row < _IN_A_ROW:
            room, alone = pool.room(), False
            while (todo or last) and len(flying) < room and not alone:
                queue = todo or last
                alone = row > 0 or strikes[queue[0]] >= min(1, retries)
                if alone and flying:
                    break
                position = queue.popleft()
                flying[pool.submit(blocks[position])] = position
            alone, row = len(flying) == 1, row + 1
            for future in wait(flying, return_when=FIRST_COMPLETED).done:
                position = flying.pop(future)
                try:
                    result = future.result()
                except deaths as error:
                    reason = f"{type(error).__name__}: {error}".partition("\n")[0]
                    _log.warning("a worker died or had no memory while block %d was under way: %s", position, reason)
                    strikes[position] += 1
                    (lost.append if strikes[position] > retries else last.append if alone else last.appendleft)(position)
                    continue
                given, row = given + 1, 0
                yield position, result
            if row and todo:  # its neighbours may be like it, and a run that is called again begins elsewhere
                todo.rotate(_places.randrange(len(todo)))
    if lost or last or todo:
        guilty = sorted([*lost, *last])
        named = ", ".join(map(str, guilty[:10])) + (", …" if len(guilty) > 10 else "")
        failure = IncompleteError(
            f"{given} of {len(blocks)} blocks were finished; workers died or had no memory on each of these: {named}",
            where="engine", got=reason, remedy="fewer jobs or smaller blocks need less memory; what was finished is kept",
        )  # fmt: skip
        failure.lost = [*guilty, *sorted([*todo, *flying.values()])]  # type: ignore[attr-defined]
        raise failure


# -- the worker's side --------------------------------------------------------------------------------------------------

_here = threading.local()  # one unpickled work per thread: a model or a solver need not bear two callers at once
_begun: Payload = ("", b"")  # the work of a process that was started for it


def _payload(work: Work) -> Payload:
    import cloudpickle

    try:
        return uuid4().hex, cloudpickle.dumps(work)
    except Exception as error:
        what = f"the work cannot be sent to other processes: {type(error).__name__}: {error}"
        raise InputError(what, where="engine", remedy="use engine='threads' or n_jobs=1, or make the model picklable") from error


def _answer(payload: Payload | None, block: Block) -> Any:
    token, data = payload or _begun
    try:
        if getattr(_here, "token", None) != token:
            _here.work = None  # the old one may be large
            _here.work, _here.token = pickle.loads(data), token
        return _here.work(block)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # it would not survive the journey, and end the worker or hide what happened
            raise RuntimeError(f"{type(error).__name__}: {error}").with_traceback(error.__traceback__) from None
        raise


def _begin(payload: Payload, parent: int) -> None:
    """Start a worker process: keep the work, leave Ctrl-C to the parent, and end when the parent does."""
    global _begun
    _begun = payload
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.name == "nt":  # there a child keeps the number of a parent that is gone; loky ends its own workers
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


# -- the engines --------------------------------------------------------------------------------------------------------


def _choose(work: Work, n_jobs: int, engine: object, n_blocks: int) -> AbstractContextManager[_Pool]:
    """Return the pool, which opens when the first result is taken."""
    import joblib

    workers = max(1, min(n_jobs if n_jobs > 0 else joblib.cpu_count() + 1 + n_jobs, n_blocks))
    if engine is None:
        engine = "serial" if n_jobs == 1 or workers == 1 else "processes"
    name, address = engine if isinstance(engine, str) else getattr(engine, "__name__", type(engine).__module__).partition(".")[0], ""
    if isinstance(engine, str) and engine.startswith(("dask:", "ray:")):
        name, _, address = engine.partition(":")
    match name:
        case "serial" | "sequential":
            return _serial(work)
        case "threads" | "threading":
            return _threads(work, workers)
        case "processes" | "loky" | "multiprocessing":  # never by fork, which the solver's threads do not survive
            return _processes(work, workers)
        case "dask" | "distributed" | "dask_jobqueue" | "dask_kubernetes" | "coiled":  # of a name, or of the object's package
            return _dask(work, address or (None if isinstance(engine, str | ModuleType) else engine), n_jobs, workers)
        case "ray":
            return _ray(work, address, n_jobs, workers)
        case _ if isinstance(engine, str) and engine in joblib.parallel.BACKENDS:
            return _backend(work, engine, n_jobs)
    remedy = f"one of {', '.join(ENGINES)}, a joblib backend, a Dask client, the ray module"
    if isinstance(engine, str):
        remedy = nearest(engine, [*ENGINES, *joblib.parallel.BACKENDS])
    raise InputError("not an engine", where="engine", got=engine, remedy=remedy)


@contextmanager
def _serial(work: Work) -> Iterator[_Pool]:
    """Work in this process, one block at a time."""

    def submit(block: Block) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(work(block))
        except Exception as error:
            future.set_exception(error)
        return future

    yield _Pool(submit, lambda: 1)


@contextmanager
def _threads(work: Work, workers: int) -> Iterator[_Pool]:
    """Open threads, which share the work. A block that one of them is at cannot be stopped: the end waits for it."""
    executor = ThreadPoolExecutor(workers, "budge")
    try:
        yield _Pool(lambda block: executor.submit(work, block), lambda: 2 * workers)
    finally:
        executor.shutdown(cancel_futures=True)


@contextmanager
def _processes(work: Work, workers: int) -> Iterator[_Pool]:
    """Open processes of loky; not those that joblib shares, which a model that uses joblib in this process would end."""
    from joblib.externals.loky import ProcessPoolExecutor

    start = partial(ProcessPoolExecutor, workers, initializer=_begin, initargs=(_payload(work), os.getpid()), env=_INNER_THREADS)
    executor = start()

    def submit(block: Block) -> Any:
        nonlocal executor
        with suppress(BrokenExecutor):
            return executor.submit(_answer, None, block)
        executor.shutdown(kill_workers=True)  # one process died, and loky ended the others
        executor = start()
        return executor.submit(_answer, None, block)

    try:
        yield _Pool(submit, lambda: 2 * workers, (BrokenExecutor,))
    finally:
        executor.shutdown(kill_workers=True)


@contextmanager
def _backend(work: Work, name: str, n_jobs: int) -> Iterator[_Pool]:
    """Open threads that hand their blocks to a joblib backend; joblib's own streams dispatch without regard to the reader."""
    import joblib

    answer = joblib.delayed(partial(_answer, _payload(work)))
    with joblib.parallel_config(name, n_jobs=n_jobs):
        workers = max(1, joblib.effective_n_jobs(n_jobs))
    with _threads(lambda block: joblib.Parallel(n_jobs, backend=name)([answer(block)])[0], workers) as pool:
        yield pool._replace(deaths=(BrokenExecutor,))


@contextmanager
def _dask(work: Work, cluster: Any, n_jobs: int, workers: int) -> Iterator[_Pool]:
    """Connect to a Dask cluster. It tries a block again by itself, some times, before it reports that a worker died."""
    distributed = _optional("distributed", "dask")
    payload, sent, under_way = _payload(work), None, dict[Future[Any], Any]()
    with ExitStack() as stack:
        quiet = logging.CRITICAL  # workers that are ended write what they could not send
        local = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None, "host": "127.0.0.1", "silence_logs": quiet}
        if cluster is None:
            with suppress(ValueError):  # this process has no client
                cluster = distributed.default_client()
        if not isinstance(cluster, distributed.Client):
            options = local if cluster is None else {}
            try:
                cluster = stack.enter_context(distributed.Client(cluster, set_as_default=False, **options))
            except (OSError, ValueError) as error:
                raise InputError(f"no Dask cluster answers: {error}", where="engine", got=cluster, remedy="look at its address") from error
        if cluster.asynchronous:
            raise InputError("the Dask client is asynchronous", where="engine", remedy="give a Client(asynchronous=False)")
        stack.callback(lambda: cluster.cancel(list(under_way.values()), force=True))

        def submit(block: Block) -> Future[Any]:
            nonlocal sent
            if sent is None or sent.status != "finished":  # it is lost with the workers that held it
                (sent,) = cluster.scatter([payload], broadcast=True, hash=False)
            future: Future[Any] = Future()  # Dask's own `get_executor` never ends the future of a task that was cancelled
            task = under_way[future] = cluster.submit(_answer, sent, block, pure=False)
            future.add_done_callback(under_way.pop)
            task.add_done_callback(partial(_pass_on, future))
            return future

        deaths = (distributed.KilledWorker, CancelledError)
        yield _Pool(submit, lambda: n_jobs if n_jobs > 1 else max(8, 2 * sum(cluster.nthreads().values())), deaths)


def _pass_on(future: Future[Any], task: Any) -> None:
    try:
        future.set_result(task.result())
    except Exception as error:
        future.set_exception(error)


@contextmanager
def _ray(work: Work, address: str, n_jobs: int, workers: int) -> Iterator[_Pool]:
    """Connect to a Ray cluster, which works by tasks of one processor each."""
    from unittest import mock

    ray = _optional("ray", "ray")
    payload, own, under_way, errors = _payload(work), not ray.is_initialized(), dict[Future[Any], Any](), ray.exceptions
    if own:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anybody
        paths = {"env_vars": {"PYTHONPATH": os.pathsep.join(place or os.getcwd() for place in sys.path)}}
        local = {"num_cpus": workers, "include_dashboard": False, "_node_ip_address": "127.0.0.1", "runtime_env": paths}
        where = {"address": address, "runtime_env": paths} if address else {} if os.environ.get("RAY_ADDRESS") else local
        try:
            with mock.patch.object(ray._private.utils, "set_sigterm_handler", create=True):  # Ray would end with another exit code
                ray.init(log_to_driver=False, logging_level="ERROR", **where)
        except KeyboardInterrupt:
            ray.shutdown()
            raise
        except (ConnectionError, ValueError) as error:
            raise InputError(f"no Ray cluster answers: {error}", where="engine", got=address, remedy="look at its address") from error
    try:
        task, sent = ray.remote(num_cpus=1, max_retries=0)(_answer), ray.put(payload)

        def submit(block: Block) -> Future[Any]:
            reference = task.remote(sent, block)
            future: Future[Any] = reference.future()
            under_way[future] = reference
            future.add_done_callback(under_way.pop)
            return future

        deaths = (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.NodeDiedError, errors.ObjectLostError)
        yield _Pool(submit, lambda: n_jobs if n_jobs > 1 else max(2, 2 * int(ray.cluster_resources().get("CPU", 1))), deaths)
    except errors.RayTaskError as error:
        raise error.cause from error  # as the work raised it; Ray's error holds the worker's traceback
    finally:
        for reference in list(under_way.values()):
            ray.cancel(reference, force=True)
        if own:
            ray.shutdown()


def _optional(name: str, extra: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        what, remedy = f"{name} is not installed", f"pip install 'budge[{extra}]'"
        raise MissingDependencyError(what, where="engine", remedy=remedy) from error
