"""Runs that go on after a failure: the last bit of a score is no other model, and people on whom a model always fails keep nobody else from an answer."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from audit_kit import below_rate, dials

import budge
from budge import Design, Execution, Feature, InteractionModel
from budge.errors import IncompleteError, InputError, ModelError, StorageError
from budge.models import Endpoint, as_predictor
from budge.models.transport import GaveUpError
from budge.people import People

pytest.importorskip("pyarrow", reason="streams of people need the `parquet` extra")

WISH: dict[str, Any] = {"target": 1, "n": 60, "seed": 1, "population": "all"}
SCORED: dict[str, Any] = {"target": "score >= 0.55", "n": 60, "seed": 1}


def people_of(X: pd.DataFrame, kind: str, folder: Path, part: int = 20) -> Any:
    if kind != "stream":
        return X
    X.to_parquet(folder / "people.parquet", index=False)
    return People.of(folder / "people.parquet", part=part)


def assert_same(some: pd.DataFrame, of: pd.DataFrame) -> None:
    """Compare some people with those of a whole run; adjusted p-values depend on the others."""
    pd.testing.assert_frame_equal(some.drop(columns="p_adjusted"), of.drop(columns="p_adjusted"), check_index_type=False, check_exact=True)


def stop_after(people: int) -> Any:
    def progress(done: int, total: int) -> None:
        if done >= people:
            raise KeyboardInterrupt

    return progress


# -- the last bit -------------------------------------------------------------------------------------------------------


def scores(ulps: int, kind: type = np.float32, by: float = 0.0) -> Any:
    """Return a model whose scores differ by some last bits from those of another one, about starts at the threshold, too."""

    def score(table: pd.DataFrame) -> np.ndarray:
        found = np.asarray(np.where(table["dial"] == 0.5, 0.55 if by == 0 else 0.55 + by, table["dial"] * table["rate"]), kind)
        for _ in range(abs(ulps)):
            found = np.nextafter(found, kind(np.sign(ulps)))
        return found

    return as_predictor(score, output="score")


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("route", [{}, {"method": "sample", "sequential": True, "n": None}], ids=["drawn", "stopped"])
def test_scores_that_differ_in_the_last_bit_go_on_as_if_they_did_not(tmp_path: Path, kind: Any, route: dict[str, Any]) -> None:
    """Starts lie below the threshold by one bit: the same people are asked about, at the same error, although the answer about them is at the threshold."""
    X, im = dials(40, seed=1)
    wish, how = {**SCORED, "target": f"score >= {float(kind(0.55))!r}", **route}, Execution(journal=tmp_path / "run", block_people=5)
    whole = budge.audit(scores(-1, kind), X, im, **wish)
    assert len(whole.table) == 40
    with pytest.raises(KeyboardInterrupt):
        budge.audit(scores(-1, kind), X, im, **wish, execution=how.but(progress=stop_after(10)))
    found = budge.audit(scores(0, kind), X, im, **wish, execution=how)
    pd.testing.assert_frame_equal(found.table, whole.table, check_exact=True)
    assert str(found) == str(whole)


@pytest.mark.parametrize("kind", ["table", "stream"])
def test_other_scores_are_another_run(tmp_path: Path, kind: str) -> None:
    X, im = dials(40, seed=1)
    people, how = people_of(X, kind, tmp_path), Execution(journal=tmp_path / "run", block_people=5)
    with pytest.raises(KeyboardInterrupt):
        budge.audit(scores(0, by=-0.3), people, im, **SCORED, execution=how.but(progress=stop_after(25)))
    with pytest.raises(InputError, match="another run"):
        budge.audit(scores(0, by=-0.3001), people, im, **SCORED, execution=how)
    assert len(budge.audit(scores(1, by=-0.3), people, im, **SCORED, execution=how).table) == 40
    over = budge.audit(scores(0, by=-0.3001), people, im, **SCORED, execution=how.but(overwrite=True))
    assert over.table["prediction"].tolist() == pytest.approx([0.2499] * 40)
    if kind == "stream":
        with pytest.raises(InputError, match="answers about people differ"):
            over.attached(scores(0, by=-0.3), people, im)  # type: ignore[attr-defined]
        over.attached(scores(1, by=-0.3001), people, im)  # type: ignore[attr-defined]


def test_a_journal_without_the_scores_that_it_was_made_with_is_damaged(tmp_path: Path) -> None:
    X, im = dials(10, seed=1)
    with pytest.raises(KeyboardInterrupt):
        budge.audit(scores(-1), X, im, **SCORED, execution=Execution(journal=tmp_path, block_people=5, progress=stop_after(5)))
    with sqlite3.connect(tmp_path / "journal.sqlite") as database:
        assert database.execute("DELETE FROM done WHERE key LIKE 'scores:%'").rowcount == 1
    with pytest.raises(StorageError, match="damaged"):
        budge.audit(scores(-1), X, im, **SCORED, journal=tmp_path)


def test_labels_of_another_type_are_another_run(tmp_path: Path) -> None:
    X, im = dials(10, seed=1)
    wish: dict[str, Any] = {**WISH, "target": budge.targets.different()}
    budge.audit(below_rate, X, im, **wish, journal=tmp_path)
    with pytest.raises(InputError, match="answers_digests"):
        budge.audit(lambda table: below_rate(table).astype(str).astype(object), X, im, **wish, journal=tmp_path)


# -- people on whom a model always fails --------------------------------------------------------------------------------


class Picky:
    """Raises at points of some people, never at a start; counts its calls."""

    def __init__(self, *bad: int):
        self.bad, self.calls = set(bad), 0

    def __call__(self, table: pd.DataFrame) -> np.ndarray:
        self.calls += 1
        if ((table["dial"] != 0.5) & table["who"].isin(self.bad)).any():
            raise ValueError("this person cannot be scored")
        return below_rate(table)


def attempts(model: Any, people: Any, im: Any, how: Execution, most: int, **more: Any) -> Any:
    """Make the same call until it gives a result or everybody was asked about; return what it gave or carried."""
    said = []
    for _ in range(most):
        try:
            return budge.audit(model, people, im, **WISH, **more, execution=how)
        except IncompleteError as error:
            if "set aside" not in str(error):
                return error
            said.append(str(error))
    raise AssertionError(said)


@pytest.mark.parametrize("accepted", [0.1, 0.6])
@pytest.mark.parametrize("kind", ["table", "stream", "processes"])
def test_people_on_whom_a_model_always_fails_keep_nobody_else_from_an_answer(tmp_path: Path, kind: str, accepted: float) -> None:
    X, im = dials(80, seed=1)
    people, model, more = people_of(X, kind, tmp_path), Picky(*range(40)), {"design": Design(max_unresolved=accepted)}
    how = Execution(journal=tmp_path / "run", block_people=5, n_jobs=2 if kind == "processes" else 1)
    with pytest.raises(IncompleteError, match="failed on everything in 3 blocks in a row: ValueError: this person"):
        budge.audit(model, people, im, **WISH, **more, execution=how)
    ended = attempts(model, people, im, how, 5, **more)
    table = (ended.result if accepted < 0.5 else ended).table
    honest = budge.audit(below_rate, X, im, **WISH).table
    assert_same(table.iloc[40:], honest.iloc[40:])
    assert table["unresolved"].tolist() == [60] * 40 + [0] * 40
    if accepted > 0.5:  # that is enough, and stays as it is
        return
    model.calls = 0
    with pytest.raises(IncompleteError, match="2,400 of 4,800 points have no answer; the first reason: ValueError: this person"):
        budge.audit(model, people, im, **WISH, **more, execution=how)
    assert model.calls < 300
    model.bad = set()
    found = budge.audit(model, people, im, **WISH, **more, execution=how)
    pd.testing.assert_frame_equal(found.table, honest, check_index_type=False, check_exact=True)
    assert found.notes == ()


@pytest.mark.parametrize("kind", ["table", "stream"])
def test_answers_of_an_earlier_attempt_are_not_lost_to_a_later_one(tmp_path: Path, kind: str) -> None:
    """One model leaves a few points of each person without an answer in the first attempt, and all in the second."""
    X, im = dials(20, seed=1)
    people, lost = people_of(X, kind, tmp_path, 10), {"above": 0.9}

    def gaps(table: pd.DataFrame) -> np.ndarray:
        if lost["above"] == 0 and (table["dial"] != 0.5).any():
            raise ConnectionError("down")
        return np.where((table["dial"] > lost["above"]) & (table["dial"] != 0.5), None, below_rate(table).astype(object))

    models, how = {"plain": below_rate, "gaps": gaps}, Execution(journal=tmp_path / "run", block_people=5)
    results = []
    for above in (0.9, 0.0):
        lost["above"] = above
        with pytest.raises(IncompleteError) as caught:
            budge.audit(models, people, im, **WISH, design=Design(max_unresolved=0.01), execution=how)
        results.append(caught.value.result)  # type: ignore[attr-defined]
    first, second = results
    assert 0 < first.table["unresolved"].max() < 30
    pd.testing.assert_frame_equal(first.table, second.table, check_exact=True)
    assert first.info["causes"]["gaps"] == ["no answer (None or NaN)"]
    assert second.info["causes"]["gaps"][0] == "no answer (None or NaN)"
    lost["above"] = 1.0
    found = budge.audit(models, people, im, **WISH, design=Design(max_unresolved=0.01), execution=how)
    honest = budge.audit({"plain": below_rate, "gaps": gaps}, X, im, **WISH)
    pd.testing.assert_frame_equal(found.table, honest.table, check_index_type=False, check_dtype=False, check_exact=True)


def test_an_attempt_that_gave_up_early_for_want_of_answers_does_not_count(tmp_path: Path) -> None:
    """With early stopping the fewest points without an answer may be those of an attempt that lost nearly all and stopped at once."""
    X, im = dials(40, seed=1)
    lost = {"below": 0.5}

    def gaps(table: pd.DataFrame) -> np.ndarray:
        hidden = (table["dial"] % 0.1 < 0.03) | (table["dial"] < lost["below"])
        return np.where(hidden & (table["dial"] != 0.5), None, below_rate(table).astype(object))

    wish: dict[str, Any] = {"target": 1, "threshold": 0.3, "claim": "above", "sequential": True, "population": "all", "seed": 1}
    how = Execution(journal=tmp_path, block_people=5)
    with pytest.raises(IncompleteError) as caught:
        budge.audit(gaps, X, im, **wish, design=Design(max_unresolved=0.35), execution=how)
    lost["below"] = 0.0
    honest = budge.audit(gaps, X, im, **wish, design=Design(max_unresolved=0.35)).table
    assert (caught.value.result.table["unresolved"] < honest["unresolved"]).any()  # type: ignore[attr-defined]
    pd.testing.assert_frame_equal(budge.audit(gaps, X, im, **wish, design=Design(max_unresolved=0.35), execution=how).table, honest, check_exact=True)


def test_an_endpoint_that_is_down_is_left_alone_after_three_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, im = dials(100, seed=1)
    batches = {"asked": 0, "down": True}

    def ask(self: Endpoint, rows: pd.DataFrame, places: list[int]) -> list[int]:
        batches["asked"] += 1
        if batches["down"] and (rows["dial"] != 0.5).any():
            raise GaveUpError("status 503: later (6 tries)")
        return below_rate(rows.iloc[places]).tolist()

    monkeypatch.setattr(Endpoint, "_ask", ask)
    endpoint, how = Endpoint(url="http://127.0.0.1:9/"), Execution(journal=tmp_path, block_people=5)
    with pytest.raises(IncompleteError, match="failed on everything in 3 blocks in a row: status 503"):
        budge.audit(endpoint, X, im, **WISH, execution=how)
    assert batches["asked"] < 30
    batches["down"] = False
    found = budge.audit(endpoint, X, im, **WISH, execution=how).table
    pd.testing.assert_frame_equal(found, budge.audit(below_rate, X, im, **WISH).table, check_exact=True)


@pytest.mark.parametrize("kind", ["table", "stream"])
def test_a_result_without_some_people_says_so_when_it_is_saved(tmp_path: Path, kind: str) -> None:
    X, im = dials(80, seed=1)
    with pytest.raises(IncompleteError) as caught:
        budge.audit(Picky(*range(40)), people_of(X, kind, tmp_path), im, **WISH, execution=Execution(journal=tmp_path / "run", block_people=5))
    found = budge.Audit.load(caught.value.result.save(tmp_path / "saved"))  # type: ignore[attr-defined]
    assert f"{80 - len(found.table)} of 80 people were set aside" in str(found.notes[0])


# -- a model that is down at the end ------------------------------------------------------------------------------------


class Tired:
    """Fails about people as they are once it was asked about so many tables of points."""

    def __init__(self, after: int):
        self.after, self.tables = after, 0

    def __call__(self, table: pd.DataFrame) -> np.ndarray:
        if (table["dial"] != 0.5).any():
            self.tables += 1
        elif self.tables > self.after:
            raise ConnectionError("the server is down")
        return below_rate(table)


@pytest.mark.parametrize(("kind", "after"), [("table", 8), ("stream", 6), ("stream", 16)])
def test_a_model_that_is_down_at_the_end_is_an_incomplete_run(tmp_path: Path, kind: str, after: int) -> None:
    X, im = dials(40, seed=1)
    people, model, how = people_of(X, kind, tmp_path), Tired(after), Execution(journal=tmp_path / "run", block_people=5)
    with pytest.raises(IncompleteError, match="the server is down") as caught:
        budge.audit(model, people, im, **WISH, execution=how)
    assert caught.value.exit_code == 4
    honest = budge.audit(below_rate, X, im, **WISH).table
    kept = caught.value.result.table  # type: ignore[attr-defined]
    assert len(kept) >= 20
    assert_same(kept, honest.loc[kept.index])
    model.after = 10**6
    found = budge.audit(model, people, im, **WISH, execution=how)
    pd.testing.assert_frame_equal(found.table, honest, check_index_type=False, check_exact=True)
    assert found.notes == ()


def test_a_model_that_is_down_at_the_end_is_noted_with_warn() -> None:
    X, im = dials(40, seed=1)
    found = budge.audit(Tired(8), X, im, **WISH, execution=Execution(block_people=5, check="warn"))
    assert "does not answer about people as they are any more" in str(found.notes[-1])


@pytest.mark.parametrize("kind", ["table", "stream"])
def test_a_model_that_answers_otherwise_under_way_is_an_error_with_what_was_done(tmp_path: Path, kind: str) -> None:
    """Its labels are texts from some table on."""
    X, im = dials(40, seed=1)
    seen: list[int] = []

    def turned(table: pd.DataFrame) -> Any:
        seen.append(1)
        return below_rate(table) if len(seen) < 26 else below_rate(table).astype(str)

    with pytest.raises(ModelError, match="another kind") as caught:
        budge.audit(turned, people_of(X, kind, tmp_path), im, **WISH, execution=Execution(journal=tmp_path / "run", block_people=5))
    assert 0 < len(caught.value.result.table) < 40  # type: ignore[attr-defined]


# -- answers of another kind --------------------------------------------------------------------------------------------

TURNED: dict[str, Any] = {
    "shares": lambda y: np.where(y == 1, 1.0, 0.3), "texts": lambda y: y.astype(str), "truth values": lambda y: y.astype(bool),
    "some truth values": lambda y: np.array([bool(v) if i % 2 else int(v) for i, v in enumerate(y)] + [None], dtype=object)[:-1],
}  # fmt: skip


@pytest.mark.parametrize("kind", ["table", "stream", "raw"])
@pytest.mark.parametrize("turned", TURNED)
def test_labels_that_become_others_at_points_are_an_error_everywhere(tmp_path: Path, kind: str, turned: str) -> None:
    X, im = dials(20, seed=1)

    def model(table: Any) -> Any:
        dial, rate = (table[:, 0], table[:, 1]) if kind == "raw" else (table["dial"].to_numpy(), table["rate"].to_numpy())
        y = (dial < rate).astype(int)
        return TURNED[turned](y) if (dial != 0.5).any() else y

    class Dial:
        def draw(self, x: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
            return np.c_[rng.uniform(size=n), np.full(n, x[1])]

    people, world = (X[["dial", "rate"]].to_numpy(), Dial()) if kind == "raw" else (people_of(X, kind, tmp_path, 10), im)
    with pytest.raises(ModelError, match=r"shares where labels|another kind"):
        budge.audit(model, people, world, **WISH)


def test_an_input_without_an_answer_as_it_is_is_an_error() -> None:
    class Noise:
        def draw(self, x: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
            return x + rng.normal(0, 1, (n, *x.shape))

    inputs = np.arange(8.0).reshape(4, 2)
    for target in ("different", 1):
        with pytest.raises(ModelError, match="1 of 4 outputs are None or NaN, the first at input 2"):
            budge.audit(lambda batch: [None if row[0] == 4.0 else 1 for row in batch], inputs, Noise(), target=target, n=70, population="all")


@pytest.mark.parametrize("kind", ["table", "stream"])
@pytest.mark.parametrize("after", [0, 8, 9, 10, 12])
def test_a_model_without_memory_is_an_incomplete_run_whenever_it_happens(tmp_path: Path, kind: str, after: int) -> None:
    """At the probe of a journal, in a block, and where people are counted again at the end."""
    X, im = dials(40, seed=1)
    tables = {"asked": 0, "most": after}

    def model(table: pd.DataFrame) -> np.ndarray:
        if (table["dial"] != 0.5).any():
            tables["asked"] += 1
            if tables["asked"] > tables["most"]:
                raise MemoryError("no room")
        return below_rate(table)

    people, how = people_of(X, kind, tmp_path), Execution(journal=tmp_path / "run", block_people=10)
    with pytest.raises(IncompleteError, match="memory"):
        budge.audit(model, people, im, **WISH, execution=how)
    tables["most"] = 10**6
    found = budge.audit(model, people, im, **WISH, execution=how).table
    pd.testing.assert_frame_equal(found, budge.audit(below_rate, X, im, **WISH).table, check_index_type=False, check_exact=True)


def test_the_shell_goes_on_after_exit_code_4(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from budge.cli import audit as command
    from budge.cli import main

    X, im = dials(12, seed=1)
    X.to_csv(tmp_path / "people.csv", index=False)
    im.to_file(tmp_path / "dials.yaml")
    model = Picky(0, 1, 2)
    monkeypatch.setattr(command, "models_of", lambda *_: {"model": as_predictor(model)})
    call = ["audit", str(tmp_path / "dials.yaml"), str(tmp_path / "people.csv"), "--model", "m", "--target", "1", "-n", "60", "--population", "all"]
    for _ in range(2):
        assert main([*call, "--seed", "1", "-o", str(tmp_path / "run"), "-q"]) == 4
        assert "180 of 720 points have no answer; the first reason: ValueError: this person cannot be scored" in capsys.readouterr().err.replace("\n", " ")
    model.bad = set()
    assert main([*call, "--seed", "1", "-o", str(tmp_path / "run"), "-q"]) == 0
    honest = budge.audit(below_rate, X, im, **WISH).table
    pd.testing.assert_frame_equal(budge.Audit.load(tmp_path / "run").table, honest, check_exact=True)


def test_a_note_that_a_model_has_drifted_is_kept_when_the_run_goes_on(tmp_path: Path) -> None:
    """With ``check="warn"`` counts of a drifting model stay in the journal: so does the note about them."""
    start = np.arange(40) % 4
    people = pd.DataFrame({"income": start, "start": start, "who": np.arange(40)})
    still = [Feature(name, "integer", actionable=False) for name in ("start", "who")]
    im = InteractionModel([Feature("income", "integer", bounds=(0, 9)), *still])
    state: dict[str, Any] = {"calls": 0, "drifts": True}

    def drifting(table: pd.DataFrame) -> Any:
        state["calls"] += 1
        answers, moved = (table["income"] > 4).to_numpy().astype(int), (table["income"] != table["start"]).to_numpy()
        other = state["drifts"] and moved.any() and table["who"].isin([2, 3]).any()
        return np.where(moved, (answers + state["calls"] // 2) % 2, answers) if other else answers

    def interrupt(result: Any) -> Any:
        state["notes"] = [note for note in result.notes if "otherwise" in note.what]
        raise KeyboardInterrupt

    def run(**more: Any) -> Any:
        return budge.audit(drifting, people, im, target=1, execution=Execution(journal=tmp_path / "run", block_people=2, check="warn", **more))

    with pytest.raises(KeyboardInterrupt):
        run(finish=interrupt)
    state["drifts"] = False
    assert len(state["notes"]) == 1
    assert [note for note in run().notes if "otherwise" in note.what] == state["notes"]


@pytest.mark.parametrize("kind", ["table", "stream"])
def test_a_finished_run_does_not_promise_to_ask_again(tmp_path: Path, kind: str) -> None:
    down = {"now": True}

    def failing(table: pd.DataFrame) -> np.ndarray:
        if down["now"] and (table["dial"] > 0.95).any():
            raise RuntimeError("down")
        return below_rate(table)

    X, im = dials(6)
    people = people_of(X.assign(dial=0.5), kind, tmp_path)
    how = Execution(journal=tmp_path / "run")
    design = Design(**WISH, max_unresolved=0.0)
    with pytest.raises(IncompleteError) as caught:
        budge.audit(failing, people, im, design=design, execution=how)
    assert [note.remedy for note in caught.value.result.notes] == ["the same call with the same journal asks about them again"]  # type: ignore[attr-defined]
    how = Execution(journal=tmp_path / "accepted")
    first = budge.audit(failing, people, im, design=design.but(max_unresolved=0.5), execution=how)
    down["now"] = False
    again = budge.audit(failing, people, im, design=design.but(max_unresolved=0.5), execution=how)
    assert first.table["unresolved"].sum() == again.table["unresolved"].sum() > 0
    for found in (first, again):
        assert [note.remedy for note in found.notes] == ["a new run asks about them again: overwrite this one (--overwrite), or choose another folder"]


@pytest.mark.parametrize("kind", ["table", "stream"])
def test_a_run_in_which_the_model_changed_does_not_go_on(tmp_path: Path, kind: str) -> None:
    calls, changed = {"made": 0, "until": 0}, {"now": True}

    def drifting(table: pd.DataFrame) -> np.ndarray:
        calls["made"] += 1
        found = below_rate(table)
        if changed["now"] and calls["made"] > calls["until"]:
            found = np.where(table["rate"] == 0.75, 0, found)
        return np.asarray(found)

    X, im = dials(60)
    X = X.assign(dial=0.5, rate=np.where(np.arange(60) % 4 == 1, 0.75, 0.25))
    people, design = people_of(X, kind, tmp_path, part=5), Design(**WISH)
    clean = budge.audit(below_rate, people, im, design=design)
    how = Execution(journal=tmp_path / "run", block_people=5)
    changed["now"] = False
    budge.audit(drifting, people, im, design=design, execution=how.but(journal=tmp_path / "counted"))
    calls.update(made=0, until=calls["made"] // 2)  # about in the middle of the run, after many blocks were written
    changed["now"] = True
    with pytest.raises(ModelError, match="answers otherwise than at the start"):
        budge.audit(drifting, people, im, design=design, execution=how)
    changed["now"] = False  # mended, as the error demands
    with pytest.raises(InputError, match="answers in this run are in doubt"):
        budge.audit(drifting, people, im, design=design, execution=how)
    noted = budge.audit(drifting, people, im, design=design, execution=how.but(check="warn"))
    assert any("answers otherwise than at the start" in note.what for note in noted.notes)
    again = budge.audit(drifting, people, im, design=design, execution=how.but(overwrite=True))
    pd.testing.assert_frame_equal(again.table, clean.table)
    assert not again.notes


def test_a_noted_change_of_the_model_stays_noted(tmp_path: Path) -> None:
    state = {"made": 0, "bad": True}

    def drifting(table: pd.DataFrame) -> np.ndarray:
        state["made"] += 1
        return np.where((table["rate"] == 0.75) & state["bad"] & (state["made"] > 20), 0, below_rate(table))

    X, im = dials(60)
    X = X.assign(dial=0.5, rate=np.where(np.arange(60) % 4 == 1, 0.75, 0.25))
    how = Execution(journal=tmp_path / "run", block_people=5, check="warn")
    first = budge.audit(drifting, X, im, design=Design(**WISH), execution=how)
    state["bad"] = False
    again = budge.audit(drifting, X, im, design=Design(**WISH), execution=how)
    for found in (first, again):
        assert any("answers otherwise than at the start" in note.what for note in found.notes)
