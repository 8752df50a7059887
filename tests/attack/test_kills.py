"""Runs that are killed at any instant: the same call goes on, asks nothing that was answered again, and ends with the same result to the byte."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import sys
import time
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import Any

import kills_kit as kit
import numpy as np
import pytest
from isolated import _server

from budge import Audit
from budge.journal import NAME, NEXT, decode

QUICK = {"serial": 1, "processes": 1, "streams": 1, "serial over another": 2, "streams over another": 1}
MANY = {"serial": 50, "processes": 30, "streams": 30, "serial over another": 40, "streams over another": 20, "llm": 10, "dask": 10, "ray": 10}
SPAN = {"processes": 0.5, "llm": 0.6, "dask": 1.0, "ray": 1.0}
"""Seconds within which a run is killed after it has begun; 0.25 for others."""


def answered(kind: str, folder: Path) -> set[Any]:
    """Return whose draws are in the journal of the run, or which draws of a language model are."""
    path = folder / (NEXT if "over another" in kind and (folder / NEXT).exists() else NAME)
    if not path.exists() or not path.stat().st_size:
        return set()
    with closing(sqlite3.connect(f"file:{path}?mode=ro", timeout=30, uri=True)) as connection, suppress(sqlite3.OperationalError):
        complete = connection.execute("SELECT value FROM meta WHERE key = 'complete'").fetchone()
        if "over another" in kind and path.name == NAME and complete == ("true",):
            return set()  # the old run
        rows = connection.execute("SELECT key, record FROM done").fetchall()
        if kind == "llm":
            return {key for key, _ in rows if key.startswith("answer ")}
        if "streams" in kind:
            return {part * kit.BLOCK + i for key, _ in rows for part in [int(key.partition(":")[2])] for i in range(kit.BLOCK)}
        return {who for _, record in rows for who in decode(record)["people"]}
    return set()


def read(folder: Path) -> str | None:
    try:
        return str(Audit.load(folder).table.to_csv())
    except OSError:
        return None


def kill(kind: str, folder: Path, wait: float, url: str, *, late: bool) -> bool:
    """Start or go on with the work, and kill it a while after it has begun or, if `late`, has finished a block; return whether it was still at work."""
    begun = folder.parent / "begun"
    begun.unlink(missing_ok=True)
    known = len(answered(kind, folder))
    process = _server.Process(target=kit.silent, args=(kind, folder, 0.004, url))
    process.start()
    deadline = time.monotonic() + 120
    while not begun.exists() and process.is_alive() and time.monotonic() < deadline:
        time.sleep(0.001)
    while late and len(answered(kind, folder)) <= known and process.is_alive() and time.monotonic() < deadline:
        time.sleep(0.005)
    process.join(wait)
    alive = process.is_alive()
    with suppress(ProcessLookupError):  # it has just ended
        os.kill(process.pid or 0, signal.SIGKILL)
    process.join()
    return alive


def attack(tmp_path: Path, kind: str, kills: int, seed: int = 0) -> None:
    rng = np.random.default_rng([seed, *kind.encode()])
    server: Any = nullcontext()
    if kind == "llm":
        pytest.importorskip("inspect_ai", reason="inspect-ai is in the `llm` extra")
        sys.path.insert(0, str(Path(__file__).parents[1] / "llm"))
        from llm_run_kit import fake_server

        server = fake_server()
    elif kind in ("dask", "ray"):
        pytest.importorskip({"dask": "distributed"}.get(kind, kind), reason=f"{kind} is in the extra of its name")
    with server as fake:
        url = "" if fake is None else fake.url
        rounds, done = 0, 0
        while done < kills:
            place = tmp_path / f"{rounds}" / "run"
            rounds += 1
            assert rounds <= kills + 5, "the work ends before it is killed"
            place.parent.mkdir()
            kit.prepared(kind, place)
            old, shown = read(place), kit.shown(kind, place)
            whole = kit.truth(kind, place) if kind != "llm" else kit.asked(place.parent / "whole" / "run", url)
            for _ in range(min(5, kills - done)):
                known, noted = answered(kind, place), place.parent / kit.NOTED
                before = noted.stat().st_size if noted.exists() else 0
                size = 0 if fake is None else len(fake.asked)
                at_work = kill(kind, place, float(rng.uniform(0, SPAN.get(kind, 0.25))), url, late=not done % 2)
                done += at_work
                again = {int(w) for w in noted.read_bytes()[before:].split()} if noted.exists() else set()
                assert not (again & known) - shown, f"{kind}, kill {done}: {sorted(again & known)} were asked about again"
                assert fake is None or len(fake.asked) - size <= 48 - len(known)
                if old is not None:
                    assert read(place) in (old, whole), f"{kind}, kill {done}"
                if not at_work:
                    break
            finished = read(place) == whole and old is not None and not (place / NEXT).exists()
            known, before = answered(kind, place), noted.stat().st_size if noted.exists() else 0
            assert kit.work(kind, place, 0.0, url) == whole, f"{kind}, kill {done}"
            if kind != "llm":
                asked = {int(w) for w in noted.read_bytes()[before:].split()} if noted.exists() else set()
                assert finished or not (asked & known) - shown
                assert read(place) == whole
            left = [path.name for path in place.rglob("*") if path.name.startswith(".") or path.name == NEXT]
            assert not left, f"{kind}, kill {done}"
            if "streams" in kind:
                assert len(list((place / "parts").iterdir())) == kit.PEOPLE // kit.BLOCK
            shutil.rmtree(place.parent)


@pytest.mark.parametrize("kind", QUICK)
def test_killed_runs_go_on(tmp_path: Path, kind: str) -> None:
    attack(tmp_path, kind, QUICK[kind])


@pytest.mark.heavy
@pytest.mark.parametrize("kind", MANY)
def test_runs_killed_200_times_go_on(tmp_path: Path, kind: str) -> None:
    attack(tmp_path, kind, MANY[kind], seed=1)
