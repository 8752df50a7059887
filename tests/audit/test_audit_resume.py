"""Journals of audits: a run that ended early goes on to the same result, whatever ended it."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from audit_kit import ONCE, ROUTES, approve, below_rate, dials, loans

import budge
from budge import Design, Execution
from budge.errors import IncompleteError, InputError

HERE = Path(__file__).parent


def test_a_run_of_another_seed_is_not_resumed(tmp_path: Path) -> None:
    X, im = dials(4)
    budge.audit(below_rate, X, im, target=1, n=50, seed=1, population="all", journal=tmp_path)
    with pytest.raises(InputError, match="seed"):
        budge.audit(below_rate, X, im, target=1, n=50, seed=2, population="all", journal=tmp_path)


def test_a_run_of_another_model_is_not_resumed(tmp_path: Path) -> None:
    """Functions have no digest: what they answer about the people is part of the run's identity."""
    X, im = dials(8, seed=1)
    wish: dict[str, Any] = {"target": 1, "n": 50, "population": "all"}
    budge.audit(below_rate, X, im, **wish, journal=tmp_path)
    with pytest.raises(InputError, match="answers_digests"):
        budge.audit(lambda t: 1 - below_rate(t), X, im, **wish, journal=tmp_path)
    other = budge.audit(lambda t: 1 - below_rate(t), X, im, **wish, execution=Execution(journal=tmp_path, overwrite=True))
    assert other.table.equals(budge.audit(lambda t: 1 - below_rate(t), X, im, **wish).table)


@pytest.mark.parametrize("route", [r for r in ROUTES if r != "a mask"])
def test_a_journal_holds_one_record_per_block_and_gives_the_same_result(tmp_path: Path, route: str) -> None:
    X, im = loans()
    plain = budge.audit(approve, X, im, target=1, seed=3, **ROUTES[route])
    seen: list[tuple[int, int]] = []
    how = Execution(journal=tmp_path, block_people=5, progress=lambda done, total: seen.append((done, total)))
    first = budge.audit(approve, X, im, target=1, seed=3, **ROUTES[route], execution=how)
    people = len(plain.table)
    assert seen == sorted(seen)  # within a block, too
    assert {(min(5 * k, people), people) for k in range(-(-people // 5) + 1)} <= set(seen)
    with sqlite3.connect(tmp_path / "journal.sqlite") as database:
        assert database.execute("SELECT count(*) FROM done WHERE key != 'probe'").fetchone() == (-(-people // 5),)
    again = budge.audit(approve, X, im, target=1, seed=3, **ROUTES[route], journal=tmp_path)
    for other in (first, again):
        pd.testing.assert_frame_equal(other.table, plain.table, check_exact=True)
        assert str(other) == str(plain)
        for label in plain.table.index:
            pd.testing.assert_frame_equal(other.change(label), plain.change(label), check_exact=True)


@pytest.mark.parametrize("labels", [("no", "yes"), ("refused", "approved"), ("001", "002")], ids=str)
def test_a_model_that_answers_texts_is_audited_with_a_journal(tmp_path: Path, labels: tuple[str, str]) -> None:
    X, im = dials(6)
    wish: dict[str, Any] = {"target": labels[1], "n": 50, "population": "all"}

    def texts(table: pd.DataFrame) -> np.ndarray:
        return np.array(labels)[below_rate(table)]

    plain = budge.audit(texts, X, im, **wish)
    for _ in range(2):  # the first writes it, the second reads it
        pd.testing.assert_frame_equal(budge.audit(texts, X, im, **wish, journal=tmp_path).table, plain.table, check_exact=True)


def test_people_with_unanswered_points_are_asked_again_and_counted_once(tmp_path: Path) -> None:
    X, im = dials(9, seed=1)
    asked: list[int] = []
    down = {"who": 5}

    def gaps(table: pd.DataFrame) -> np.ndarray:
        answer = below_rate(table).astype(object)
        asked.extend(table["who"].unique().tolist())
        answer[(table["dial"] > 0.9).to_numpy() & (table["who"] < down["who"]).to_numpy()] = None
        return answer

    wish: dict[str, Any] = {"target": 1, "n": 60, "population": "all", "journal": tmp_path}
    wish |= {"design": Design(max_unresolved=0.01), "execution": ONCE.but(block_people=2)}
    for still in (3, 0):  # each attempt gets some more answers
        with pytest.raises(IncompleteError, match="no answer"):
            budge.audit(gaps, X, im, **wish)
        down["who"] = still
        asked.clear()
    result = budge.audit(gaps, X, im, **wish)
    assert set(asked[len(X) :]) == {0, 1, 2}  # after the people as they are
    whole = budge.audit(below_rate, X, im, target=1, n=60, population="all").table
    assert result.info["causes"] == {"model": []}
    finished = budge.audit(gaps, X, im, **wish)  # a finished run is read, and holds everybody once
    for found in (result, finished):
        pd.testing.assert_frame_equal(found.table.drop(columns="prediction"), whole.drop(columns="prediction"), check_exact=True)


def test_unanswered_points_that_were_accepted_stay_as_they_are(tmp_path: Path) -> None:
    X, im = dials(4)
    calls = {"rows": 0}

    def gaps(table: pd.DataFrame) -> np.ndarray:
        calls["rows"] += len(table)
        answer = below_rate(table).astype(object)
        answer[(table["dial"] > 0.9).to_numpy()] = None
        return answer

    wish: dict[str, Any] = {"target": 1, "n": 60, "population": "all", "journal": tmp_path, "design": Design(max_unresolved=1.0), "execution": ONCE}
    first = budge.audit(gaps, X, im, **wish)
    assert (first.table["unresolved"] > 0).all()
    assert first.info["causes"]["model"]
    assert "the first reason" in str(first)
    calls["rows"] = 0
    pd.testing.assert_frame_equal(budge.audit(gaps, X, im, **wish).table, first.table, check_exact=True)
    assert calls["rows"] == len(X)


def test_inputs_that_are_no_table_are_resumed(tmp_path: Path) -> None:
    class Noise:
        def draw(self, x: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
            return x + rng.normal(0, 1, (n, *x.shape))

    inputs = np.arange(8.0).reshape(4, 2)

    def model(batch: np.ndarray) -> np.ndarray:
        return (batch.sum(axis=1) > 6).astype(int)

    for sequential in (False, True):
        wish: dict[str, Any] = {"target": 1, "n": 70, "sequential": sequential, "population": "all"}
        plain = budge.audit(model, inputs, Noise(), **wish)
        for _ in range(2):
            found = budge.audit(model, inputs, Noise(), **wish, execution=Execution(journal=tmp_path / str(sequential), block_people=1))
            pd.testing.assert_frame_equal(found.table, plain.table, check_exact=True)
            assert all(np.array_equal(found.witness(i), plain.witness(i)) for i in range(4))  # type: ignore[arg-type]


CRASH = """
import sys, time
sys.path.insert(0, {here!r})
import numpy as np, budge
from audit_kit import below_rate, dials
def slow(table):
    time.sleep(0.01)
    return below_rate(table)
X, im = dials(120)
budge.audit(slow, X, im, target=1, n=40, seed=6, population="all", journal={folder!r}, execution=budge.Execution(block_people=3, check=False))
"""


@pytest.mark.parametrize("wait", [0.05, 0.2, 0.35])
def test_a_killed_run_resumes_to_the_same_table(tmp_path: Path, wait: float) -> None:
    _killed(tmp_path, wait)


@pytest.mark.heavy
@pytest.mark.parametrize("wait", np.random.default_rng(0).uniform(0.0, 0.6, 20).round(3).tolist())
def test_a_run_killed_at_any_instant_resumes_to_the_same_table(tmp_path: Path, wait: float) -> None:
    _killed(tmp_path, wait)


def _killed(folder: Path, wait: float) -> None:
    process = subprocess.Popen([sys.executable, "-c", CRASH.format(here=str(HERE), folder=str(folder))])
    deadline = time.monotonic() + 60
    while not list(folder.glob("journal.sqlite*")) and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(wait)
    process.send_signal(signal.SIGKILL)
    process.wait()
    X, im = dials(120)
    asked = {"rows": 0}

    def counting(table: pd.DataFrame) -> np.ndarray:
        asked["rows"] += len(table)
        return below_rate(table)

    wish: dict[str, Any] = {"target": 1, "n": 40, "seed": 6, "population": "all"}
    whole = budge.audit(below_rate, X, im, **wish, execution=ONCE).table
    resumed = budge.audit(counting, X, im, **wish, journal=folder, execution=ONCE.but(block_people=50)).table
    pd.testing.assert_frame_equal(whole, resumed, check_exact=True)
    asked["rows"] = 0
    budge.audit(counting, X, im, **wish, journal=folder, execution=ONCE)
    assert asked["rows"] == len(X)  # only the people as they are: nothing is drawn again
