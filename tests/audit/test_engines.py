"""Engines: the same results whatever works on the blocks, little lost with a worker, nothing left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import joblib
import pytest
from joblib._parallel_backends import ThreadingBackend

sys.path.insert(0, str(Path(__file__).parent))  # for the workers too, which import where we do

import engines_kit as kit

from budge.audit import engines
from budge.audit.engines import _answer, _choose, _payload, _Pool, _run, run_blocks
from budge.errors import IncompleteError, InputError, MissingDependencyError, ModelError

HERE = Path(__file__).parent
LOCAL = ["serial", "threads", "processes"]
CLUSTERS = ["dask", "ray"]


@pytest.fixture(autouse=True)
def _heavy_on_request(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("heavy") and "heavy" not in str(request.config.getoption("markexpr")):
        pytest.skip("many worker processes: run with -m heavy")


def every(names: Sequence[str]) -> Any:
    return pytest.mark.parametrize("engine", names, indirect=True, ids=names)


# -- the same results ---------------------------------------------------------------------------------------------------


@every([*LOCAL, *CLUSTERS])
def test_results_are_the_same_to_the_bit_and_a_dead_worker_costs_what_was_under_way(tmp_path: Path, engine: Any) -> None:
    """Each worker process is dear to start, so the two are shown by one run: one of the blocks kills its worker once."""
    here = engine in ("serial", "threads")
    work = kit.Deadly(tmp_path, blocks=() if here else (4,))
    found = list(run_blocks(work, range(12), n_jobs=2, engine=engine))
    assert len(found) == 12
    assert {position: value for position, (value, _) in found} == {block: kit.draws(block) for block in range(12)}
    assert ({pid for _, (_, pid) in found} == {os.getpid()}) == here
    tries = kit.tries(tmp_path)
    assert tries.pop(4) == (1 if here else 2)
    assert tries.keys() == set(range(12)) - {4}
    again = sum(count - 1 for count in tries.values())
    if type(engine).__name__ == "Client":  # Dask leaves results with the worker until they are fetched: these die with it
        assert all(count <= 2 for count in tries.values())
        assert again < 8
    else:  # the processes of this machine end together: with two of them, three other blocks were under way
        assert again <= (3 if engine == "processes" else 0)


@every(["processes", *CLUSTERS])
def test_work_that_is_written_on_the_spot_travels_and_has_one_thread_inside(engine: Any) -> None:
    inside = kit.threads_inside
    found = dict(run_blocks(lambda block: (block * 3, inside(block)), [1, 2], n_jobs=2, engine=engine))
    assert found == {0: (3, ("1", 1)), 1: (6, ("1", 1))}


def test_one_job_stays_in_this_process_and_none_needs_nothing() -> None:
    assert {result for _, result in run_blocks(kit.pid_of, range(3))} == {os.getpid()}
    assert {result for _, result in run_blocks(kit.pid_of, range(1), n_jobs=2)} == {os.getpid()}
    assert list(run_blocks(kit.pid_of, [], n_jobs=2, engine="processes")) == []


def test_any_joblib_backend_by_its_name() -> None:
    class Ours(ThreadingBackend):  # type: ignore[misc]
        used = 0

        def submit(self, func: Any, callback: Any = None) -> Any:
            Ours.used += 1
            return super().submit(func, callback)

        apply_async = submit

    joblib.register_parallel_backend("budge-test", Ours)
    assert dict(run_blocks(kit.draws, range(30), n_jobs=2, engine="budge-test")) == {b: kit.draws(b) for b in range(30)}
    assert Ours.used == 30
    with pytest.raises(ModelError):
        list(run_blocks(kit.judged, range(30), n_jobs=2, engine="budge-test"))
    assert {pid for _, pid in run_blocks(kit.pid_of, range(3), n_jobs=2, engine="sequential")} == {os.getpid()}


@pytest.mark.parametrize("name", ["loky", "multiprocessing"])
def test_joblibs_process_backends_are_the_processes(name: str) -> None:
    assert _choose(kit.pid_of, 2, name, 3).gen.__name__ == _choose(kit.pid_of, 2, "processes", 3).gen.__name__ == "_processes"


# -- memory -------------------------------------------------------------------------------------------------------------


class Counted(Sequence[int]):
    """Many blocks, made when they are asked for."""

    def __init__(self, size: int):
        self.size, self.asked, self.taken, self.most = size, 0, 0, 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, position: Any) -> int:
        with self._lock:
            self.asked += 1
            self.most = max(self.most, self.asked - self.taken)
        return int(position)


@pytest.mark.parametrize("name", ["threads", "budge-test-many"])
def test_few_blocks_are_under_way_however_many_there_are(name: str) -> None:
    if name != "threads":
        joblib.register_parallel_backend(name, ThreadingBackend)
    blocks = Counted(100_000 if name == "threads" else 1_000)
    for position, result in run_blocks(lambda block: block, blocks, n_jobs=2, engine=name):
        assert position == result
        blocks.taken += 1
        if blocks.taken % 500 == 0:
            time.sleep(0.005)  # a slow reader must not let results pile up
    assert blocks.asked == blocks.taken == len(blocks)
    assert blocks.most <= 10


# -- death --------------------------------------------------------------------------------------------------------------


@pytest.mark.heavy
@every(["processes", *CLUSTERS])
def test_a_deadly_block_is_named_and_all_others_are_given(tmp_path: Path, engine: Any) -> None:
    work = kit.Deadly(tmp_path, blocks=(2,), times=-1)
    found: dict[int, Any] = {}
    with pytest.raises(
        IncompleteError, match=r"7 of 8 blocks were finished; workers died or had no memory on each of these: 2 \(got"
    ) as caught:
        found.update((position, value) for position, (value, _) in run_blocks(work, range(8), n_jobs=2, engine=engine, retries=1))
    assert caught.value.exit_code == 4
    assert found == {block: kit.draws(block) for block in range(8) if block != 2}
    tries = kit.tries(tmp_path)
    if type(engine).__name__ == "Client":  # Dask tries again by itself
        return
    assert tries.pop(2) == 2
    assert set(tries.values()) <= ({1, 2} if engine == "processes" else {1})


class Mortal:
    """A pool in this process whose workers die as told; `exact`: a death strikes its own block alone, else all under way."""

    def __init__(self, deaths: Callable[[int, int], bool], *, exact: bool, size: int = 4):
        self.exact, self.deaths, self.size = exact, deaths, size
        self.flying: dict[int, Future[int]] = {}
        self.tries: Counter[int] = Counter()
        self.alone: list[int] = []
        self.open = False

    @contextmanager
    def opening(self) -> Iterator[_Pool]:
        self.open = True
        try:
            yield _Pool(self.submit, self.room, (BrokenExecutor,))
        finally:
            self.open = False

    def room(self) -> int:
        return self.size

    def submit(self, block: int) -> Future[int]:
        assert len(self.flying) < self.size
        self.flying[block] = Future()
        return self.flying[block]

    def work(self) -> None:
        """Decide all blocks that are under way."""
        self.tries.update(self.flying.keys())
        if len(self.flying) == 1:
            self.alone += self.flying
        dead = [block for block in self.flying if self.deaths(block, self.tries[block])]
        for block, future in self.flying.items():
            if block in dead or (dead and not self.exact):
                future.set_exception(BrokenExecutor("struck"))
            else:
                future.set_result(block)
        self.flying = {}


def drive(pool: Mortal, blocks: int, retries: int, patch: pytest.MonkeyPatch) -> tuple[set[int], IncompleteError | None]:
    found: list[int] = []
    wait = engines.wait

    def work_and_wait(flying: Any, **options: Any) -> Any:
        pool.work()
        return wait(flying, timeout=5, **options)

    patch.setattr(engines, "wait", work_and_wait)
    caught = None
    try:
        for position, result in _run(pool.opening(), range(blocks), retries):
            assert position == result
            found.append(position)
    except IncompleteError as error:
        caught = error
    assert len(found) == len(set(found))
    assert not pool.open
    return set(found), caught


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("retries", [0, 1, 2, 3])
def test_the_guilty_block_alone_is_named(exact: bool, retries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Mortal(lambda block, _: block == 6, exact=exact)
    found, error = drive(pool, 20, retries, monkeypatch)
    assert found == set(range(20)) - {6}
    assert error is not None
    assert "on each of these: 6 (got 'BrokenExecutor: struck')" in str(error)
    assert pool.tries[6] == retries + 1
    assert 6 in pool.alone


@pytest.mark.parametrize("exact", [True, False])
def test_as_many_deaths_as_retries_are_survived(exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Mortal(lambda block, tries: block % 5 == 0 and tries <= 2, exact=exact)
    assert drive(pool, 23, 2, monkeypatch) == (set(range(23)), None)


@pytest.mark.parametrize("exact", [True, False])
def test_a_machine_on_which_everything_dies_is_given_up_soon(exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Mortal(lambda block, _: True, exact=exact)
    found, error = drive(pool, 100_000, 2, monkeypatch)
    assert found == set()
    assert error is not None
    assert sum(pool.tries.values()) <= 20
    monkeypatch.undo()
    pool = Mortal(lambda block, _: block >= 48, exact=exact)
    found, error = drive(pool, 100_000, 2, monkeypatch)
    assert found == set(range(48))
    assert error is not None
    assert "48 of 100000 blocks were finished" in str(error)
    assert sum(pool.tries.values()) <= 48 + 3 * 12


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("deadly", [range(30), range(0, 400, 4), range(100)])
def test_blocks_that_fail_come_last_so_that_a_further_call_goes_on(exact: bool, deadly: range, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_places", Random(0))
    left, calls = list(range(400)), 0
    while set(left) - set(deadly):
        calls += 1
        with monkeypatch.context() as patch:
            found, error = drive(Mortal(lambda block, _, todo=left: todo[block] in deadly, exact=exact), len(left), 2, patch)  # type: ignore[misc]
        assert error is not None
        assert set(error.lost) == set(range(len(left))) - found  # type: ignore[attr-defined]
        left = [block for k, block in enumerate(left) if k not in found]
        assert set(left) >= set(deadly)
    assert calls <= 30


def test_ray_does_not_take_the_signal_that_ends_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """It sets its own handlers while it starts: the exit code of a run that is ended then would be Ray's."""
    seen: list[Any] = []

    def init(**options: Any) -> None:
        fake._private.utils.set_sigterm_handler(lambda number, frame: sys.exit(number))
        seen.append(signal.getsignal(signal.SIGTERM))
        raise ConnectionError("no")

    utils = SimpleNamespace(set_sigterm_handler=lambda handler: signal.signal(signal.SIGTERM, handler))
    fake = SimpleNamespace(is_initialized=lambda: False, exceptions=None, init=init, _private=SimpleNamespace(utils=utils))
    monkeypatch.setattr(engines, "_optional", lambda name, extra: fake)
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(InputError, match="no Ray cluster answers"):
            list(run_blocks(kit.pid_of, range(3), n_jobs=2, engine="ray"))
        assert seen == [before]
    finally:
        signal.signal(signal.SIGTERM, before)


# -- errors of the work -------------------------------------------------------------------------------------------------


@every(["serial", "threads", "processes", *CLUSTERS])
def test_what_the_work_raises_is_raised_as_it_is(engine: Any) -> None:
    with pytest.raises(ModelError) as caught:
        list(run_blocks(kit.judged, range(12), n_jobs=2, engine=engine))
    try:
        kit.judged(5)
    except ModelError as error:
        assert (str(caught.value), caught.value.problems) == (str(error), error.problems)  # noqa: PT017
    shown = "".join(traceback.format_exception(caught.value))
    assert 'engines_kit.py", line' in shown, "the place in the worker is shown"


def test_an_error_that_cannot_travel_arrives_in_words() -> None:
    with pytest.raises(RuntimeError, match=r"^OddError: 3 and 3$") as caught:
        _answer(_payload(kit.odd), 3)
    assert 'engines_kit.py", line' in "".join(traceback.format_exception(caught.value))


def test_work_that_cannot_travel_is_refused_before_it_starts() -> None:
    lock = threading.Lock()
    with pytest.raises(InputError, match=r"cannot be sent to other processes.*threads"):
        list(run_blocks(lambda block: lock, range(4), n_jobs=2))


# -- what is asked for --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [0, 1.5, "2", True, None], ids=repr)
def test_bad_numbers_of_jobs(n_jobs: Any) -> None:
    with pytest.raises(InputError, match="n_jobs"):
        run_blocks(kit.pid_of, range(3), n_jobs=n_jobs)


@pytest.mark.parametrize("retries", [-1, 0.5, True, None], ids=repr)
def test_bad_numbers_of_retries(retries: Any) -> None:
    with pytest.raises(InputError, match="retries"):
        run_blocks(kit.pid_of, range(3), retries=retries)


def test_engines_that_are_none() -> None:
    with pytest.raises(InputError, match="did you mean 'threads'"):
        run_blocks(kit.pid_of, range(3), engine="thread")
    for engine in (object(), 3, os):
        with pytest.raises(InputError, match="not an engine"):
            run_blocks(kit.pid_of, range(3), engine=engine)


@pytest.mark.parametrize(("name", "package", "extra"), [("dask", "distributed", "dask"), ("ray", "ray", "ray")])
def test_a_missing_package_is_named(name: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=rf"is not installed; pip install 'budge\[{extra}\]'"):
        list(run_blocks(kit.pid_of, range(3), n_jobs=2, engine=name))


def test_negative_numbers_of_jobs_count_from_all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, threads = [], engines._threads

    def note(work: Any, workers: int) -> Any:
        seen.append(workers)
        return threads(work, workers)

    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)
    monkeypatch.setattr(engines, "_threads", note)
    for n_jobs in (-1, -2, -20, 3, 500):
        list(run_blocks(kit.pid_of, range(40), n_jobs=n_jobs, engine="threads"))
    list(run_blocks(kit.pid_of, range(2), n_jobs=-1, engine="threads"))
    assert seen == [8, 7, 1, 3, 40, 2]


# -- nothing is left running --------------------------------------------------------------------------------------------


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("kind", ["SIGINT", "SIGKILL", pytest.param("SIGTERM", marks=pytest.mark.heavy)])
def test_no_worker_outlives_an_interrupted_run(tmp_path: Path, kind: str) -> None:
    command = [sys.executable, str(HERE / "engines_main.py"), str(tmp_path), "processes"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as run:
        assert until(lambda: len(list(tmp_path.glob("pid-*"))) == 2, 60), "the workers did not start"
        workers = [int(path.name.removeprefix("pid-")) for path in tmp_path.glob("pid-*")]
        number = getattr(signal, kind)
        if kind == "SIGINT":
            os.killpg(run.pid, number)  # as the terminal does: the workers get it too
        else:
            os.kill(run.pid, number)
        code = run.wait(30)
        assert code == (130 if kind == "SIGINT" else -number)
        assert until(lambda: not any(alive(pid) for pid in workers), 20), "workers are left"


@every(["threads", "processes"])
def test_a_reader_that_stops_early_ends_the_workers(tmp_path: Path, engine: Any) -> None:
    before = threading.active_count()
    stream = run_blocks(kit.Slow(tmp_path, 0.05), range(1000), n_jobs=2, engine=engine)
    next(stream)
    workers = {int(path.name.removeprefix("pid-")) for path in tmp_path.glob("pid-*")}
    stream.close()  # type: ignore[attr-defined]
    if engine == "threads":
        assert workers == {os.getpid()}
    else:
        assert not any(alive(pid) for pid in workers)
    assert until(lambda: threading.active_count() <= before, 10)


@every(CLUSTERS)
def test_a_reader_that_stops_early_ends_the_work_on_a_cluster(tmp_path: Path, engine: Any) -> None:
    stream = run_blocks(kit.Slow(tmp_path, 0.3), range(1000), engine=engine)
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    time.sleep(0.6)  # a block that was begun may be finished
    begun = len(list(tmp_path.glob("block-*")))
    time.sleep(0.9)
    assert len(list(tmp_path.glob("block-*"))) == begun
    assert dict(run_blocks(kit.draws, range(3), engine=engine)) == {b: kit.draws(b) for b in range(3)}
