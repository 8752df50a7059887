"""Models that fail: few calls are made, the cause is shown, everything that was answered is kept, and a run that goes on asks for the rest."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from audit_kit import ROUTES, approve, below_rate, dials, loans

import budge
from budge import Design, Execution
from budge.audit.ask import DriftError
from budge.audit.failing import DOWN
from budge.errors import IncompleteError, InputError, ModelError
from budge.models import Endpoint, as_predictor
from budge.models.resolve import IN_A_ROW, PROBES
from budge.people import People
from budge.stress import minimal_relaxations

pytest.importorskip("pyarrow", reason="streams of people need the `parquet` extra")

WISH: dict[str, Any] = {"target": 1, "n": 100, "population": "all"}
BEFORE = 17  # calls about people as they are and the probe of a journal, before the first block


class Failing:
    """Raises while `bad` holds for (number of the call, table); counts its calls, and remembers about whom it was asked."""

    def __init__(self, honest: Any, bad: Callable[[int, pd.DataFrame], bool], error: BaseException | None = None):
        self.honest, self.bad, self.calls, self.people = honest, bad, 0, set[int]()
        self.error = error or ValueError("no answer: api_key=abcdefgh1234\nsecond line")

    def __call__(self, table: pd.DataFrame) -> Any:
        self.calls += 1
        if self.bad(self.calls, table):
            raise self.error
        if "who" in table and (table["dial"] != 0.5).any():
            self.people |= set(table["who"].tolist())
        return self.honest(table)


def points(call: int, table: pd.DataFrame) -> bool:
    return bool((table["dial"] != 0.5).any())


# -- how many calls -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 2, PROBES, 100, 100_000])
def test_a_model_that_is_down_is_called_nine_times_per_batch_at_most(rows: int) -> None:
    model = Failing(below_rate, lambda call, table: True)
    X, _ = dials(rows)
    found = as_predictor(model).predict_resolved(X)
    assert not found.resolved.any()
    assert found.errors == ("ValueError: no answer: api_key=***",)
    assert model.calls == found.failures <= 1 + PROBES
    assert found.down == (rows >= PROBES)


@pytest.mark.parametrize("last", [1, 3, 7, 20])
def test_a_model_that_goes_down_under_way_is_left_alone_soon(last: int) -> None:
    X, _ = dials(4096)
    bad = {5, 1000, 2222, 4000}
    model = Failing(below_rate, lambda call, table: call > last or bool(set(table["who"]) & bad))
    found = as_predictor(model).predict_resolved(X)
    assert model.calls <= last + 2 + PROBES + IN_A_ROW
    assert found.down


@pytest.mark.parametrize("k", [1, 2, 5, 20])
def test_failing_rows_are_found_by_halving(k: int) -> None:
    n = 4096
    X, _ = dials(n)
    bad = set(np.random.default_rng(k).choice(n, k, replace=False).tolist())
    model = Failing(below_rate, lambda call, table: bool(set(table["who"]) & bad))
    found = as_predictor(model).predict_resolved(X)
    assert set(np.flatnonzero(~found.resolved).tolist()) == bad
    assert found.outputs[found.resolved].tolist() == below_rate(X)[found.resolved].tolist()
    assert not found.down
    assert model.calls <= (1 + PROBES + 2 * k * np.log2(n)) * (1 + 1 / IN_A_ROW)


@pytest.mark.parametrize("block_people", [10, 50, None])
@pytest.mark.parametrize("error", [None, SystemExit(1), RecursionError("deep")], ids=["ValueError", "SystemExit", "RecursionError"])
def test_a_run_of_a_model_that_is_down_ends_after_three_blocks(tmp_path: Path, block_people: int | None, error: Any) -> None:
    X, im = dials(400, seed=1)
    model = Failing(below_rate, points, error)
    how = Execution(journal=tmp_path, block_people=block_people)
    with pytest.raises(IncompleteError, match=r"api_key=\*\*\*" if error is None else type(error).__name__) as caught:
        budge.audit(model, X, im, **WISH, execution=how)
    assert model.calls <= BEFORE + DOWN * (1 + PROBES)
    assert "second line" not in str(caught.value)
    assert caught.value.exit_code == 4
    result = caught.value.result  # type: ignore[attr-defined]
    assert (result.table["unresolved"] == result.table["n"]).all()
    assert "points have no answer: " in str(result.notes[-1])
    model.bad = lambda call, table: False
    again = budge.audit(model, X, im, **WISH, execution=how)
    pd.testing.assert_frame_equal(again.table, budge.audit(below_rate, X, im, **WISH).table, check_exact=True)
    assert again.notes == ()


def test_a_stress_test_of_a_model_that_is_down_ends_at_once() -> None:
    X, im = loans()
    model = Failing(approve, lambda call, table: call > 6)  # after the people as they are
    for run in (budge.ablate, minimal_relaxations):
        model.calls = 0
        with pytest.raises(IncompleteError, match="the model failed on everything: ValueError: no answer"):
            run(model, X, im, target=1)
        assert model.calls <= 6 + 1 + PROBES


# -- failures that pass -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "last"), [(3, 5), (18, 20), (20, 29), (20, 40), (25, 60), (40, 400)])
def test_a_failure_that_passes_leaves_no_trace(tmp_path: Path, first: int, last: int) -> None:
    X, im = dials(200, seed=1)
    model = Failing(below_rate, lambda call, table: first <= call <= last and points(call, table))
    for _ in range(20):
        try:
            found = budge.audit(model, X, im, **WISH, execution=Execution(journal=tmp_path, block_people=10))
            break
        except IncompleteError:
            pass
    pd.testing.assert_frame_equal(found.table, budge.audit(below_rate, X, im, **WISH).table, check_exact=True)
    assert found.notes == ()


@pytest.mark.parametrize("route", ["listed", "drawn", "stopped", "weighted"])
def test_a_failure_that_passes_leaves_no_trace_by_any_route(tmp_path: Path, route: str) -> None:
    X, im = loans()
    wish: dict[str, Any] = {"target": 1, "seed": 3, **ROUTES[route]}
    model = Failing(approve, lambda call, table: 20 <= call <= 60)
    for _ in range(10):
        try:
            found = budge.audit(model, X, im, **wish, execution=Execution(journal=tmp_path, block_people=2))
            break
        except (IncompleteError, ModelError):
            pass
    plain = budge.audit(approve, X, im, **wish)
    pd.testing.assert_frame_equal(found.table, plain.table, check_exact=True)
    for label in plain.table.index:
        pd.testing.assert_frame_equal(found.change(label), plain.change(label), check_exact=True)


@pytest.mark.parametrize("kind", ["table", "stream"])
def test_people_who_have_all_answers_are_not_asked_about_again(tmp_path: Path, kind: str) -> None:
    X, im = dials(60, seed=1)
    X.to_parquet(tmp_path / "p.parquet", index=False)
    people: Any = X if kind == "table" else People.of(tmp_path / "p.parquet", part=30)
    model = Failing(below_rate, lambda call, table: points(call, table) and bool(table["who"].isin(range(20, 40)).any()))
    how = Execution(journal=tmp_path / "run", block_people=5, check=False)
    with pytest.raises(IncompleteError):
        budge.audit(model, people, im, **WISH, execution=how)
    model.bad, seen, model.people = (lambda call, table: False), model.people, set()
    found = budge.audit(model, people, im, **WISH, execution=how)
    assert model.people == set(range(60)) - seen
    pd.testing.assert_frame_equal(found.table, budge.audit(below_rate, X, im, **WISH).table, check_index_type=False, check_exact=True)


def test_a_stream_ends_when_its_model_is_down_and_goes_on(tmp_path: Path) -> None:
    X, im = dials(300, seed=1)
    X.to_parquet(tmp_path / "p.parquet", index=False)
    people = People.of(tmp_path / "p.parquet", part=60)
    model = Failing(below_rate, lambda call, table: points(call, table) and bool((table["who"] >= 90).any()))
    how = Execution(journal=tmp_path / "run", block_people=10)
    with pytest.raises(IncompleteError, match="no answer: api_key"):
        budge.audit(model, people, im, **WISH, execution=how)
    assert model.calls <= 2 * BEFORE + 3 * 9 + 2 * DOWN * (1 + PROBES)
    model.bad, model.people = (lambda call, table: False), set()
    found = budge.audit(model, people, im, **WISH, execution=how)
    pd.testing.assert_frame_equal(found.table, budge.audit(below_rate, X, im, **WISH).table, check_index_type=False, check_exact=True)


# -- another model ------------------------------------------------------------------------------------------------------


class Rated:
    """A model of this file: no digest by name where it is defined in a notebook."""

    def __init__(self, shift: float):
        self.shift = shift

    def judge(self, table: pd.DataFrame) -> np.ndarray:
        return ((table["dial"].to_numpy() < table["rate"].to_numpy() + self.shift) & (table["dial"] != 0.5) | (below_rate(table) == 1)).to_numpy().astype(int)


def shifted(table: pd.DataFrame, shift: float) -> np.ndarray:
    return Rated(shift).judge(table)


def kinds(shift: float) -> dict[str, Any]:
    """Return models of each kind without a digest; those with a shift answer otherwise about points, and alike about people as they are."""
    from functools import partial

    class Notebook:
        def predict(self, table: pd.DataFrame) -> np.ndarray:
            return shifted(table, shift)

    Notebook.__module__ = "__main__"
    return {
        "a lambda": lambda table: shifted(table, shift), "a bound method": Rated(shift).judge, "a partial": partial(shifted, shift=shift),
        "a notebook's class": Notebook(), "a predictor": as_predictor(lambda table: shifted(table, shift)),
    }  # fmt: skip


@pytest.mark.parametrize("kind", kinds(0.0))
@pytest.mark.parametrize("where", ["table", "stream", "finished"])
def test_a_journal_is_not_continued_with_a_model_that_differs_at_points_only(tmp_path: Path, kind: str, where: str) -> None:
    X, im = dials(40, seed=1)
    X.to_parquet(tmp_path / "p.parquet", index=False)
    people: Any = People.of(tmp_path / "p.parquet", part=20) if where == "stream" else X
    how = Execution(journal=tmp_path / "run", block_people=5, progress=None if where == "finished" else stop_after(10))
    if where == "finished":
        budge.audit(kinds(0.0)[kind], people, im, **WISH, execution=how)
    else:
        with pytest.raises(KeyboardInterrupt):
            budge.audit(kinds(0.0)[kind], people, im, **WISH, execution=how)
    with pytest.raises(InputError, match="another run"):
        budge.audit(kinds(0.05)[kind], people, im, **WISH, execution=how.but(progress=None))
    if where != "stream":
        found = budge.audit(kinds(0.0)[kind], people, im, **WISH, execution=how.but(progress=None))
        pd.testing.assert_frame_equal(found.table, budge.audit(kinds(0.0)[kind], X, im, **WISH).table, check_exact=True)


@pytest.mark.parametrize("where", ["table", "stream"])
def test_counts_of_finished_people_tell_models_apart_where_a_few_points_do_not(tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("budge.audit.resuming" if where == "table" else "budge.audit.streaming")
    monkeypatch.setattr(module, "differing_probe", lambda *_: None)
    X, im = dials(40, seed=1)
    X.to_parquet(tmp_path / "p.parquet", index=False)
    people: Any = People.of(tmp_path / "p.parquet", part=20) if where == "stream" else X
    budge.audit(kinds(0.0)["a lambda"], people, im, **WISH, journal=tmp_path / "run")
    with pytest.raises(InputError, match="another run"):
        budge.audit(kinds(0.05)["a lambda"], people, im, **WISH, journal=tmp_path / "run")


def test_an_endpoint_is_known_by_its_address_and_not_by_its_key() -> None:
    def address(url: str = "https://model.example/v1?key=secret-1", **more: Any) -> str:
        return Endpoint(url=url, **more).address

    assert address() == address("https://model.example/v1?key=secret-2", headers={"Authorization": "Bearer abcdefgh"})
    assert "secret" not in address()
    others = [address("https://model.example/v2"), address(format="dataframe_split"), address(field_name="scores"), address(version="2")]
    assert len({address(), *others}) == 5


def stop_after(people: int) -> Any:
    def progress(done: int, total: int) -> None:
        if done >= people:
            raise KeyboardInterrupt

    return progress


def test_an_interrupt_by_a_model_interrupts() -> None:
    X, im = dials(4)
    with pytest.raises(KeyboardInterrupt):
        budge.audit(Failing(below_rate, points, KeyboardInterrupt()), X, im, **WISH)


@pytest.mark.parametrize("check", [True, "warn"])
def test_a_model_that_changes_between_blocks_is_found(check: Any) -> None:
    """It answers about people as they are as before, and within each block alike."""
    X, im = dials(60, seed=1)
    seen: set[int] = set()

    def model(table: pd.DataFrame) -> np.ndarray:
        if points(0, table):
            seen.update(table["who"].tolist())
        return shifted(table, 0.2 if len(seen) > 30 else 0.0)

    how = Execution(block_people=10, check=check)
    if check == "warn":
        assert "answers otherwise" in str(budge.audit(model, X, im, **WISH, execution=how).notes[-1])
        return
    with pytest.raises(ModelError, match="answers otherwise than at the start") as caught:
        budge.audit(model, X, im, **WISH, execution=how)
    assert len(caught.value.result.table) == 60  # type: ignore[attr-defined]
    assert "answers otherwise" in str(caught.value.result.notes[-1])  # type: ignore[attr-defined]


@pytest.mark.parametrize("where", ["table", "stream", "ablate"])
def test_a_cache_does_not_hide_that_an_endpoint_has_changed(tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers about people as they are as before; points that are asked about again are not taken from the cache."""
    X, im = dials(60, seed=1)
    X.to_parquet(tmp_path / "p.parquet", index=False)
    calls: list[int] = []

    def ask(self: Endpoint, rows: pd.DataFrame, places: list[int]) -> list[int]:
        calls.append(len(places))
        few = rows.iloc[places]
        return (below_rate(few) ^ (len(calls) > last and points(0, few))).tolist()

    def found() -> Any:
        endpoint = Endpoint(url="http://127.0.0.1:9/", cache=tmp_path / "answers.sqlite")
        if where == "ablate":
            return budge.ablate(endpoint, X.head(6), im, target=1, n=30, threshold=0.2, population="all").table
        people: Any = People.of(tmp_path / "p.parquet", part=20) if where == "stream" else X
        return budge.audit(endpoint, people, im, **WISH, execution=Execution(block_people=10)).tally().total("hits")

    monkeypatch.setattr(Endpoint, "_ask", ask)
    last = 10**6
    found()
    last = len(calls)  # all answers are in the cache, and those about points have changed since
    with pytest.raises(ModelError, match="answers otherwise than at the start"):
        found()


def test_a_run_that_accepts_everything_is_not_ended() -> None:
    X, im = dials(60, seed=1)
    found = budge.audit(Failing(below_rate, points), X, im, **WISH, design=Design(max_unresolved=1.0), execution=Execution(block_people=10))
    assert (found.table["unresolved"] == 100).all()
    assert "6,000 of 6,000 points have no answer: ValueError" in str(found.notes[0])


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_model_that_ends_its_worker_is_an_incomplete_run() -> None:
    X, im = dials(20, seed=1)

    def model(table: pd.DataFrame) -> np.ndarray:
        if points(0, table):
            import os

            os._exit(3)
        return below_rate(table)

    with pytest.raises(IncompleteError, match="people were set aside"):
        budge.audit(model, X, im, **WISH, execution=Execution(n_jobs=2, engine="processes", block_people=10))


def test_a_witness_stays_where_its_model_fails_when_asked_about_it_again() -> None:
    X, im = loans()
    sizes: list[int] = []

    def bad(call: int, table: pd.DataFrame) -> bool:
        sizes.append(len(table))
        return len(table) <= len(X) < max(sizes)  # after the points, the witnesses

    honest = budge.audit(approve, X, im, **WISH, execution=Execution(check=False))
    found = budge.audit(Failing(approve, bad), X, im, **WISH, execution=Execution(check=False))
    assert sizes[-1] <= len(X) < max(sizes)
    assert (honest.rows["model"].counts.witness >= 0).any()
    assert found.rows["model"].counts.witness.tolist() == honest.rows["model"].counts.witness.tolist()


@pytest.mark.parametrize("ask", [budge.audit, budge.prove])
def test_witnesses_that_are_none_when_they_are_asked_about_again_are_an_error(ask: Any) -> None:
    """A model that turned all its answers around in that one question was taken for steady: a result without witnesses and without a word."""
    X, im = loans()
    sizes: list[int] = []

    def flaky(table: pd.DataFrame) -> Any:
        sizes.append(len(table))
        return 1 - approve(table) if len(table) <= len(X) < sizes[-2:][0] else approve(table)  # after the points, the witnesses

    with pytest.raises(DriftError, match="points got another answer when they were asked about again"):
        ask(flaky, X, im, target=1)
    ask(approve, X, im, target=1)
