"""Ten million people from Parquet files through `budge.audit`, listed and drawn, on every engine: time, memory of the driver, and the same result files.

People have a whole number that can rise by up to three, a real that cannot move, and a group; the model is XGBoost (100 trees of depth 6, one thread).
``listed`` asks about every point (3.4 per person), ``drawn`` about 29 draws each. The serial run is compared, by CPU time, with the bare prediction of as
many points in tables of 100,000 rows. On Dask and Ray two workers do the work, one of them is killed half-way, and the result files must be those of the
serial run, to the bit.

Run: ``python benchmarks/ten_million.py`` (``--people`` for fewer, ``--engine``, ``--law``). Each run has a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    os.environ |= {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}

from million import boosted, people_of

import budge
from budge import Feature, InteractionModel

FILE = 1_000_000  # people of a file
ENGINES, LAWS = ("serial", "dask", "ray"), ("listed", "drawn")
MOST_TIMES, MOST_MB, DRAWS = 4.0, 700.0, 29


def interactions() -> InteractionModel:
    return InteractionModel([Feature("a", "integer", bounds=(0, 9), direction="increase", max_increase=3), Feature("b", "real", actionable=False)])


def write_people(folder: Path, people: int) -> None:
    """Write the people, a million to a file."""
    for k, at in enumerate(range(0, people, FILE)):
        people_of(min(FILE, people - at), seed=k).to_parquet(folder / f"{k:05d}.parquet", row_group_size=100_000)


def bare(model: Any, rows: int = 2_000_000) -> float:
    """Return CPU nanoseconds per point of the bare prediction."""
    table = people_of(100_000, seed=9)[["a", "b"]]
    model.predict(table)
    start = time.process_time()
    for _ in range(rows // len(table)):
        model.predict(table)
    return 1e9 * (time.process_time() - start) / rows


@contextmanager
def engine_of(name: str, half: threading.Event) -> Iterator[Any]:
    """Yield an engine of two workers, one of which is killed when half of the people are done."""
    if name == "serial":
        yield None
        return

    def kill(workers: Any) -> None:
        half.wait()
        if half.is_set() and (pid := workers()):
            os.kill(pid, 9)
            print(f"killed worker {pid}", flush=True)

    if name == "dask":
        from distributed import Client, LocalCluster

        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1", memory_limit=0) as cluster, Client(cluster) as client:
            pids = client.run(os.getpid)
            threading.Thread(target=kill, args=(lambda: next(iter(pids.values())),), daemon=True).start()
            yield client
    else:
        import ray

        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR", _node_ip_address="127.0.0.1")

        pid = ray.get(ray.remote(lambda: os.getpid()).remote())
        threading.Thread(target=kill, args=(lambda: pid,), daemon=True).start()
        yield ray
        ray.shutdown()


def measured(name: str, law: str, data: Path, out: Path, people: int) -> dict[str, Any]:
    """Run one audit and return its figures."""
    model, half = boosted(), threading.Event()
    alone = bare(model) if name == "serial" else 0.0
    method: dict[str, Any] = {"method": "exact"} if law == "listed" else {"method": "sample", "n": DRAWS}

    def progress(done: int, total: int) -> None:
        if 2 * done >= total:
            half.set()

    with engine_of(name, half) as engine:
        wall, cpu = time.perf_counter(), time.process_time()
        execution = budge.Execution(journal=out, engine=engine, progress=progress)
        result = budge.audit(model, str(data / "*.parquet"), interactions(), target=1, population="all", groups="g", execution=execution, **method)
        said = str(result.summary())
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    points = result.summary().points
    files = blake2b(digest_size=16)
    for path in sorted((out / "parts").iterdir()):
        files.update(path.read_bytes())
    return {
        "points": points, "said": said, "cpu": cpu, "wall": wall, "bare": alone * points / 1e9, "files": files.hexdigest(),
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "size": sum(p.stat().st_size for p in (out / "parts").iterdir()),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--people", type=int, default=10_000_000)
    parser.add_argument("--engine", choices=ENGINES, action="append")
    parser.add_argument("--law", choices=LAWS, action="append")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)  # engine, law, folder of people, folder of the run
    asked = parser.parse_args()
    if asked.one:
        name, law, data, out = asked.one
        print(json.dumps(measured(name, law, Path(data), Path(out), asked.people)))
        return 0
    good = True
    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / "people"
        data.mkdir()
        write_people(data, asked.people)
        for law in asked.law or LAWS:
            files = None
            for name in asked.engine or ENGINES:
                out = Path(place) / f"{law}-{name}"
                command = [sys.executable, __file__, "--people", str(asked.people), "--one", name, law, str(data), str(out)]
                text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
                found = json.loads(text.splitlines()[-1])
                print("\n".join([*text.splitlines()[:-1], *([found["said"]] if name == "serial" else [])]))
                per, memory = 1e9 * found["cpu"] / found["points"], f"driver {found['peak']:.0f} MB (needed {MOST_MB:.0f})"
                line = f"{law}, {name}: {asked.people:,} people, {found['points']:,} points, {found['wall']:.0f} s, {memory}"
                if name == "serial":
                    ratio = found["cpu"] / found["bare"]
                    line += f"; {found['cpu']:.0f} s CPU, {ratio:.2f} times the bare prediction (needed {MOST_TIMES:g}), {per:.0f} ns per point"
                    line += f"; files {found['size'] / asked.people:.1f} bytes per person"
                    good &= ratio <= MOST_TIMES
                files = files or found["files"]
                line += f"; {'the same files' if files == found['files'] else 'OTHER FILES'}" if name != "serial" else ""
                good &= found["peak"] < MOST_MB and files == found["files"]
                print(line, flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
