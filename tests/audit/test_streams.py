"""Audits of streams: the numbers of the audit in memory, whatever the parts, the engine and the interruptions."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for the workers too, which import where we do

import streams_kit as kit

import budge
from budge.audit import tally
from budge.audit.gate import gate
from budge.audit.result import Audit
from budge.errors import DataError, DesignError, IncompleteError, InputError, OutputExistsError, StorageError
from budge.people import People

pytest.importorskip("pyarrow", reason="pyarrow is in the `parquet` extra")

X = kit.people_of(700)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("people")
    for k in range(4):
        X.iloc[175 * k : 175 * k + 175].to_parquet(folder / f"{k}.parquet", index=False)
    return folder


def every(*names: str) -> Any:
    return pytest.mark.parametrize("engine", names, indirect=True, ids=names)


def unsure(table: pd.DataFrame) -> Any:
    """Has no answer about points at a = 9."""
    return np.where(table["a"] == 9, np.nan, kit.score(table))


#: How an audit may be asked: interaction model, models, and what else.
ASKED: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "listed": (kit.LISTED, kit.score, {}),
    "listed, everybody, in groups": (kit.LISTED, kit.score, {"population": "all", "groups": ["sex", "town"]}),
    "a condition, labels": (kit.LISTED, kit.score, {"population": "b < 0.5 and sex == 'f'", "groups": {"town": {"p": "Paris"}}}),
    "drawn": (kit.DRAWN, kit.score, {"n": 60, "groups": "sex"}),
    "drawn, above": (kit.DRAWN, kit.score, {"n": 60, "claim": "above", "threshold": 0.4, "adjust": "holm"}),
    "stopped": (kit.DRAWN, kit.score, {"sequential": True, "groups": "sex"}),
    "stopped, by the number of people": (kit.DRAWN, kit.score, {"sequential": True, "adjust": "bonferroni"}),
    "weighted": (kit.DRAWN, kit.score, {"n": 60, "proposal": {"a": {"weights": {k: 1 + k for k in range(10)}}}, "groups": "sex"}),
    "any way at all": (kit.DRAWN, kit.score, {"threshold": 0.0}),
    "two models": (kit.LISTED, {"score": kit.score, "strict": lambda t: (kit.strict(t) == "yes") * 1}, {"groups": "sex"}),
}


def close(one: Any, two: Any) -> None:
    """Compare records; sums over people may be added in another order."""
    if isinstance(one, dict):
        assert list(one) == list(two)
        for key in one:
            close(one[key], two[key])
    elif isinstance(one, list | tuple):
        assert len(one) == len(two)
        for a, b in zip(one, two):
            close(a, b)
    else:
        assert one == (pytest.approx(two, abs=1e-12) if isinstance(two, float) else two)


@pytest.mark.parametrize("part", [1000, 64])
@pytest.mark.parametrize("name", ASKED)
def test_a_stream_has_the_numbers_of_the_table(data: Path, name: str, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "BUCKET", 100)  # people who share draws are found in several turns
    im, model, more = ASKED[name]
    here = budge.audit(model, X, im, target=1, seed=3, **more)
    found = budge.audit(model, People.of(data, part=part), im, target=1, seed=3, **more)
    pd.testing.assert_frame_equal(found.table, here.table, check_exact=True, check_index_type=False)
    for model_name in here.models:
        close(found.summary(model_name).to_dict(), here.summary(model_name).to_dict())
        pieces = pd.concat(list(found.tables(model_name)))
        pd.testing.assert_frame_equal(pieces, here.of_model(model_name), check_exact=True, check_index_type=False)
        for column in ("sex", "c"):
            pd.testing.assert_frame_equal(found.by(column, model=model_name), here.by(column, model=model_name))
            pd.testing.assert_frame_equal(found.differences(column, model=model_name), here.differences(column, model=model_name))
        for verdict in ("below", "above", "inconclusive"):
            for adjusted in (False, True):
                one, two = (a.people(verdict, adjusted=adjusted, model=model_name) for a in (found, here))
                pd.testing.assert_frame_equal(one, two, check_index_type=False)
        for label in here.of_model(model_name).index[::97]:
            assert found.why_not(label, model=model_name) == here.why_not(label, model=model_name)
            pd.testing.assert_frame_equal(found.change(label, model=model_name), here.change(label, model=model_name))
    assert found.info["already"] == here.info["already"]
    close(found.info["twins"] > 0, here.info["twins"] > 0)
    side = "below" if here.design.threshold else "none"
    for condition in (f"share(verdict == '{side}') > 0.1", "count(no_way) > 3", "mean(high) > 0.5", "count(town == 'q' and n > 2) > 2", "least(low) > 0.1"):
        one, two = gate(found, condition, model=here.models[0]), gate(here, condition, model=here.models[0])
        assert one.failed == two.failed
    found.replay()


@pytest.mark.parametrize("name", ["listed", "drawn", "drawn, above", "stopped", "stopped, above, by the number of people", "weighted", "any way at all"])
def test_missing_answers_of_two_models_in_groups_are_counted_over_all_people(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every law × unanswered points × two models × groups × twins: the claims of the stream are those of the table."""
    monkeypatch.setattr(tally, "BUCKET", 100)
    laws: dict[str, tuple[Any, dict[str, Any]]] = {
        "listed": (kit.LISTED, {}), "drawn": (kit.DRAWN, {"n": 40}), "drawn, above": (kit.DRAWN, {"n": 40, "claim": "above", "threshold": 0.4}),
        "stopped": (kit.DRAWN, {"sequential": True}),
        "stopped, above, by the number of people": (kit.DRAWN, {"sequential": True, "adjust": "holm", "claim": "above", "threshold": 0.4}),
        "weighted": (kit.DRAWN, {"n": 40, "proposal": {"a": {"weights": {k: 1 + k for k in range(10)}}}}), "any way at all": (kit.DRAWN, {"threshold": 0.0}),
    }  # fmt: skip
    im, more = laws[name]
    design = budge.Design(target=1, max_unresolved=0.5, groups=["sex", "town"], population="all", **more)
    models, people = {"unsure": unsure, "sure": kit.score}, X[X["a"] < 9].reset_index(drop=True)
    here = budge.audit(models, people, im, design=design)
    found = budge.audit(models, iter([people.iloc[:100], people.iloc[100:]]), im, design=design)
    assert here.summary("unsure").unresolved > 0
    pd.testing.assert_frame_equal(found.table, here.table, check_exact=True, check_index_type=False)
    for model in models:
        close(found.summary(model).to_dict(), here.summary(model).to_dict())
        assert found.summary(model).sentences() == here.summary(model).sentences()
        assert gate(found, "share_low > 0.9 or gap_low > 0.9", model=model).numbers == gate(here, "share_low > 0.9 or gap_low > 0.9", model=model).numbers
    with pytest.raises(IncompleteError, match="points have no answer") as error:
        budge.audit(models, iter([people]), im, design=design.but(max_unresolved=0.001))
    assert error.value.result.summary("unsure").unresolved == here.summary("unsure").unresolved  # type: ignore[attr-defined]


def test_proofs_in_a_stream(data: Path) -> None:
    linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is in the `models` extra")
    model = linear.LogisticRegression().fit(X[["a", "b"]], kit.score(X))
    im = budge.InteractionModel([budge.Feature("a", "integer", bounds=(0, 9), max_increase=2), budge.Feature("b", "real", bounds=(0, 1), max_increase=0.3)])
    here = budge.audit(model, X[["a", "b"]], im, target=1, n=30, prove=True)
    found = budge.audit(model, People.of(data, part=90, drop=["c", "sex", "town"]), im, target=1, n=30, prove=True)
    pd.testing.assert_frame_equal(found.table, here.table, check_exact=True, check_index_type=False)
    assert str(found.summary()) == str(here.summary())
    label = here.table.index[(here.table["proof"] == "possible").to_numpy()][0]
    assert found.recourse(label).cost == here.recourse(label).cost


# -- engines and interruptions ------------------------------------------------------------------------------------------


def test_what_is_noted_of_every_part_is_stated_once() -> None:
    im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 5)), budge.Feature("home", "binary")])
    X = pd.DataFrame({"income": [1, 2, 0, 3], "home": [0, 1, 0, 1]})

    def model(table: pd.DataFrame) -> Any:
        return (table["income"] + table["home"] >= 6).astype(int)

    whole = budge.audit(model, X, im, target=1, prove=True)
    found = budge.audit(model, iter([X[:2], X[2:]]), im, target=1, prove=True)
    assert [str(note) for note in found.notes] == [str(note) for note in whole.notes]
    assert "structure cannot be read" in str(whole.notes)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "parts").iterdir()}


def run(data: Path, out: Path | None, model: Any = kit.score, **how: Any) -> Any:
    execution = budge.Execution(journal=out, **how)
    return budge.audit(model, People.of(data, part=64), kit.DRAWN, target=1, n=40, seed=3, groups="sex", execution=execution)


@every("serial", "threads", "processes", "dask", "ray")
def test_every_engine_writes_the_same_files(tmp_path: Path, data: Path, engine: Any) -> None:
    run(data, tmp_path / "here")
    found = run(data, tmp_path / "there", engine=engine, n_jobs=2)
    assert files(tmp_path / "there") == files(tmp_path / "here")
    assert str(Audit.load(tmp_path / "there").summary()) == str(found.summary())


@every("dask", "ray")
def test_a_cluster_by_its_address(tmp_path: Path, data: Path, engine: Any) -> None:
    run(data, tmp_path / "here")
    if type(engine).__name__ == "Client":
        address = f"dask:{engine.scheduler.address}"
    else:
        address = "ray:auto"
    run(data, tmp_path / "there", engine=address)
    assert files(tmp_path / "there") == files(tmp_path / "here")


def test_a_cluster_that_does_not_answer_is_said(data: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="dask[distributed] is in the `dask` extra")
    import dask

    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}), pytest.raises(InputError, match="no Dask cluster answers"):
        run(data, None, engine="dask:tcp://127.0.0.1:1")
    assert distributed is not None


class StopError(Exception):
    pass


def stop_after(people: int) -> Any:
    def progress(done: int, total: int) -> None:
        if done >= people:
            raise StopError

    return progress


@every("processes", "dask", "ray")
def test_a_run_goes_on_with_another_engine(tmp_path: Path, data: Path, engine: Any) -> None:
    with pytest.raises(StopError):
        run(data, tmp_path / "run", progress=stop_after(300))
    before = files(tmp_path / "run")
    assert 4 <= len(before) < 11
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "run" / "parts").iterdir()}
    run(data, tmp_path / "run", engine=engine, n_jobs=2)
    run(data, tmp_path / "whole")
    assert files(tmp_path / "run") == files(tmp_path / "whole")
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items())


def test_a_killed_run_goes_on_and_says_the_same(tmp_path: Path, data: Path) -> None:
    run(data, tmp_path / "whole")
    code = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
import time, streams_kit as kit, budge
from budge.people import People
def progress(done, total): time.sleep(0.05)
budge.audit(kit.score, People.of({str(data)!r}, part=64), kit.DRAWN, target=1, n=40, seed=3, groups="sex",
            execution=budge.Execution(journal={str(tmp_path / "run")!r}, progress=progress))
"""
    killed = 0
    for _ in range(30):
        process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)
        seen, deadline = len(list(tmp_path.glob("run/parts/[0-9]*"))), time.monotonic() + 60
        while process.poll() is None and len(list(tmp_path.glob("run/parts/[0-9]*"))) < seen + 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        if process.poll() is not None:
            break
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed += 1
    assert process.returncode == 0, process.stderr.read().decode()  # type: ignore[union-attr]
    assert killed >= 2
    assert files(tmp_path / "run") == files(tmp_path / "whole")
    assert str(Audit.load(tmp_path / "run").summary()) == str(Audit.load(tmp_path / "whole").summary())


def test_files_that_were_lost_or_changed_are_made_again_and_a_finished_run_tells(tmp_path: Path, data: Path) -> None:
    run(data, tmp_path / "whole")
    with pytest.raises(StopError):
        run(data, tmp_path / "run", progress=stop_after(400))
    parts = sorted((tmp_path / "run" / "parts").iterdir())
    parts[0].unlink()
    parts[1].write_bytes(parts[2].read_bytes())
    run(data, tmp_path / "run")
    assert files(tmp_path / "run") == files(tmp_path / "whole")
    assert str(run(data, tmp_path / "run").summary()) == str(run(data, None).summary())  # a finished run is not made again
    parts[1].write_bytes(parts[1].read_bytes()[:-1] + b"\0")
    for again in (lambda: run(data, tmp_path / "run"), lambda: Audit.load(tmp_path / "run")):
        with pytest.raises(StorageError, match="was changed"):
            again()


def test_overwriting_leaves_nothing_of_the_old_run_and_can_be_resumed(tmp_path: Path, data: Path) -> None:
    X.to_parquet(tmp_path / "long.parquet", index=False)
    budge.audit(kit.score, People.of(tmp_path / "long.parquet", part=20), kit.LISTED, target=1, journal=tmp_path / "run")
    assert len(files(tmp_path / "run")) == 35
    with pytest.raises(StopError):
        run(data, tmp_path / "run", overwrite=True, progress=stop_after(300))
    assert len(Audit.load(tmp_path / "run").info["pieces"]) == 35  # the old run stays until the new one is finished
    asked: list[int] = []
    run(data, tmp_path / "run", overwrite=True, progress=lambda done, total: asked.append(done))
    assert asked[0] >= 200  # it goes on from the last finished part
    run(data, tmp_path / "whole")
    assert files(tmp_path / "run") == files(tmp_path / "whole")


def test_parts_in_which_nobody_is_asked_about(tmp_path: Path) -> None:
    people = X.sort_values("sex", kind="stable").reset_index(drop=True)
    people.to_parquet(tmp_path / "p.parquet", index=False)
    here = budge.audit(kit.score, people, kit.LISTED, target=1, population="sex == 'm'", groups="town")
    found = budge.audit(kit.score, People.of(tmp_path / "p.parquet", part=30), kit.LISTED, target=1, population="sex == 'm'", groups="town")
    pd.testing.assert_frame_equal(found.table, here.table, check_exact=True, check_index_type=False)
    close(found.summary().to_dict(), here.summary().to_dict())
    nobody = budge.audit(kit.score, People.of(tmp_path / "p.parquet", part=30), kit.LISTED, target=1, population="b > 5", groups="town")
    assert nobody.summary().people == 0
    assert len(nobody.table) == 0
    assert "0 of 700 people" in str(nobody)


def test_another_model_or_other_people_are_another_run(tmp_path: Path, data: Path) -> None:
    with pytest.raises(StopError):
        run(data, tmp_path / "run", progress=stop_after(300))
    with pytest.raises(InputError, match="this is another run: answers_digests"):
        run(data, tmp_path / "run", model=lambda t: 1 - kit.score(t))
    first = X.iloc[:70].copy()
    rest = X.iloc[70:].copy()
    for k, frame in enumerate((first, rest)):
        frame.to_parquet(tmp_path / f"{k}.parquet", index=False)
    moved = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    execution = budge.Execution(journal=tmp_path / "run")
    with pytest.raises(InputError, match="this is another run: parts"):
        budge.audit(kit.score, People.of(moved, part=64), kit.DRAWN, target=1, n=40, seed=3, groups="sex", execution=execution)
    other = tmp_path / "other"
    other.mkdir()
    for k in range(4):
        some = X.iloc[175 * k : 175 * k + 175]
        (some.assign(b=some["b"].round(1)) if k == 3 else some).to_parquet(other / f"{k}.parquet", index=False)
    with pytest.raises(InputError, match="this is another run: people_digest"):
        run(other, tmp_path / "run")


def test_code_that_answers_otherwise_about_points_is_another_run(tmp_path: Path, data: Path) -> None:
    low = X[X["a"] <= 3].reset_index(drop=True)
    low.to_parquet(tmp_path / "low.parquet", index=False)

    def audited(model: Any, target: Any = 1, **how: Any) -> Any:
        execution = budge.Execution(journal=tmp_path / "run", **how)
        return budge.audit(model, People.of(tmp_path / "low.parquet", part=32), kit.DRAWN, target=target, n=40, execution=execution)

    def other(table: pd.DataFrame) -> Any:  # the same about everybody as they are
        return np.where(table["a"] >= 4, 0, kit.score(table))

    with pytest.raises(StopError):
        audited(lambda t: kit.score(t), progress=stop_after(100))
    with pytest.raises(InputError, match="code that behaves otherwise"):
        audited(other)
    found = audited(lambda t: kit.score(t))
    with pytest.raises(InputError, match="code that behaves otherwise"):
        audited(other)
    with pytest.raises(InputError, match="the probe differs"):
        Audit.load(tmp_path / "run").attached(other, People.of(tmp_path / "low.parquet", part=32), kit.DRAWN)  # type: ignore[attr-defined]
    assert found.summary().people > 0


def test_people_who_changed_places_are_other_people(tmp_path: Path, data: Path) -> None:
    place = tmp_path / "people"
    place.mkdir()
    for k in range(4):
        X.iloc[175 * k : 175 * k + 175].to_parquet(place / f"{k}.parquet", index=False)
    with pytest.raises(StopError):
        run(place, tmp_path / "run", progress=stop_after(640))
    third = X.iloc[350:525]
    third.assign(a=third["a"].to_numpy()[::-1]).to_parquet(place / "2.parquet", index=False)  # least and largest values are the same
    with pytest.raises(InputError, match="this is another run"):
        run(place, tmp_path / "run")


def test_folders_that_hold_something_else(tmp_path: Path, data: Path) -> None:
    found = run(data, tmp_path / "run")
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "thesis.tex").write_text("mine")
    found.save(tmp_path / "copy", overwrite=True)
    found.save(tmp_path / "copy", overwrite=True)
    assert (tmp_path / "copy" / "thesis.tex").read_text() == "mine"
    assert str(Audit.load(tmp_path / "copy").summary()) == str(found.summary())
    with pytest.raises(InputError, match="stands in this folder"):
        found.save(tmp_path, overwrite=True)
    with pytest.raises(OutputExistsError, match="holds a finished run"):  # a copy has no journal to go on with
        run(data, tmp_path / "copy", model=lambda t: 1 - kit.score(t))
    place = tmp_path / "people"
    place.mkdir()
    X.to_parquet(place / "p.parquet", index=False)
    with pytest.raises(InputError, match="stand among the people"):
        run(place, place / "run")
    (tmp_path / "run" / "audit.json").unlink()
    run(data, tmp_path / "run")
    assert str(Audit.load(tmp_path / "run").summary()) == str(found.summary())


def test_a_run_is_found_from_another_folder(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = run(data, Path("run"))
    monkeypatch.chdir("/")
    assert len(found.table)


def test_groups_with_labels_for_some_values(tmp_path: Path, data: Path) -> None:
    found = budge.audit(kit.score, str(data), kit.LISTED, target=1, groups={"a": {1: "one"}})
    assert {"one", "2"} <= set(found.by("a").index.get_level_values("group"))


def test_gates_on_columns_that_are_not_for_the_model(data: Path) -> None:
    found = budge.audit(kit.score, People.of(data, part=64, drop=["town"]), kit.LISTED, target=1)
    here = budge.audit(kit.score, X, kit.LISTED, target=1)
    assert gate(found, "count(town == 'p') > 2").numbers == gate(here, "count(town == 'p') > 2").numbers


def test_texts_are_compared_as_texts_and_are_no_numbers() -> None:
    from budge.audit.conditions import evaluate, where_true

    table = pd.DataFrame({"a": [1, 2, 3, 4], "s": ["f", "m", "f", "m"], "t": ["x", "m", "f", None], "flag": [True, False, True, None]})
    assert where_true("s == t", table, where="population").tolist() == [False, True, True, False]
    assert where_true("s != 'f' and a > 2", table, where="population").tolist() == [False, False, False, True]
    assert where_true("not flag", table.iloc[:3], where="population").tolist() == [False, True, False]
    assert evaluate("flag + a", table, where="population")[0][:3].tolist() == [2, 2, 4]
    for text in ("s + a > 3", "not s", "s < t"):
        with pytest.raises(InputError):
            where_true(text, table, where="population")


def test_a_part_lost_while_people_are_counted_is_named(tmp_path: Path) -> None:
    people = X.copy()
    people.loc[300, ["a", "b"]] = [5, 0.123456]
    people.to_parquet(tmp_path / "p.parquet", index=False)
    with pytest.raises(IncompleteError, match="positions 254 to 317"):
        budge.audit(
            kit.Deadly(0.123456, memory=True), People.of(tmp_path / "p.parquet", part=64), kit.DRAWN, target=1, sequential=True, adjust="holm",
            execution=budge.Execution(check=False),
        )  # fmt: skip


@every("processes", "dask", "ray")
def test_people_who_end_their_worker_are_set_aside_by_name(tmp_path: Path, data: Path, engine: Any) -> None:
    model, people = kit.Deadly(0.123456), X.copy()
    people.loc[300, ["a", "b"]] = [0, 0.123456]
    people.to_parquet(tmp_path / "p.parquet", index=False)
    execution = budge.Execution(engine=engine, n_jobs=2, journal=tmp_path / "run")
    with pytest.raises(IncompleteError, match="64 of 700 people were set aside") as error:
        budge.audit(model, People.of(tmp_path / "p.parquet", part=64), kit.LISTED, target=1, execution=execution)
    assert "positions 254 to 317" in str(error.value)
    result = error.value.result  # type: ignore[attr-defined]
    alone = budge.audit(kit.score, people, kit.LISTED, target=1)
    rest = alone.table[(alone.table.index < 254) | (alone.table.index > 317)]
    pd.testing.assert_frame_equal(result.table, rest, check_index_type=False)


@every("serial", "threads", "processes", "dask", "ray")
def test_a_block_without_memory_is_set_aside_with_its_people(tmp_path: Path, engine: Any) -> None:
    people = X.iloc[:200].copy()
    people.loc[77, ["a", "b"]] = [0, 0.123456]
    model = kit.Deadly(0.123456, memory=True)
    with pytest.raises(IncompleteError, match="people were set aside") as error:
        budge.audit(model, people, kit.LISTED, target=1, execution=budge.Execution(engine=engine, n_jobs=2, block_people=10))
    said, result = str(error.value), error.value.result  # type: ignore[attr-defined]
    assert "77" in said.partition("(")[2].partition(")")[0].split(", ")
    assert 77 not in result.table.index
    alone = budge.audit(kit.score, people, kit.LISTED, target=1).table
    assert len(alone) - 10 == len(result.table)
    pd.testing.assert_frame_equal(result.table, alone.loc[result.table.index])


def test_points_without_an_answer_are_asked_again_when_a_run_goes_on(tmp_path: Path, data: Path) -> None:
    sick, asked = {"now": True}, {"rows": 0}

    def model(table: pd.DataFrame) -> Any:
        asked["rows"] += len(table)
        return unsure(table) if sick["now"] else kit.score(table).astype(float)

    design = budge.Design(target=1, n=40, max_unresolved=0.0, seed=3)
    some = X[X["a"] < 9].reset_index(drop=True)
    some.loc[:200, "a"] = np.minimum(some.loc[:200, "a"], 4)
    im = kit.LISTED  # of the first 200, nobody reaches 9
    some.to_parquet(tmp_path / "p.parquet", index=False)
    people = People.of(tmp_path / "p.parquet", part=64)
    with pytest.raises(IncompleteError, match="points have no answer"):
        budge.audit(model, people, im, design=design, execution=budge.Execution(journal=tmp_path / "run"))
    sick["now"], asked["rows"] = False, 0
    found = budge.audit(model, people, im, design=design, execution=budge.Execution(journal=tmp_path / "run"))
    assert found.summary().unresolved == 0
    here = budge.audit(kit.score, some, im, design=design)
    pd.testing.assert_frame_equal(found.table.drop(columns="prediction"), here.table.drop(columns="prediction"), check_index_type=False)
    whole = asked["rows"]
    asked["rows"] = 0
    budge.audit(model, people, im, design=design)
    assert whole < 0.9 * asked["rows"]  # parts in which everything had an answer were not asked about again


# -- what a saved run can be asked --------------------------------------------------------------------------------------


def test_a_loaded_run_answers_and_can_be_given_its_people_and_model_back(tmp_path: Path, data: Path) -> None:
    found = run(data, tmp_path / "run")
    loaded = Audit.load(found.save(tmp_path / "copy"))
    pd.testing.assert_frame_equal(loaded.table, found.table)
    pd.testing.assert_frame_equal(loaded.by("sex"), found.by("sex"))
    label = next(i for i in found.table.index if not found.why_not(i))
    with pytest.raises(InputError, match="groups of its design only"):
        loaded.by("town")
    with pytest.raises(InputError, match="not at hand"):
        loaded.change(label)
    back = loaded.attached(kit.score, People.of(data, part=64), kit.DRAWN)  # type: ignore[attr-defined]
    pd.testing.assert_frame_equal(back.change(label), found.change(label))
    pd.testing.assert_frame_equal(back.by("town"), found.by("town"))
    with pytest.raises(InputError, match="answers digests differs"):
        loaded.attached(lambda t: 1 - kit.score(t), People.of(data, part=64), kit.DRAWN)  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="nobody of that label"):
        loaded.why_not(10**9)
    page = found.to_html(tmp_path / "report.html")
    assert "cannot" in page.read_text() or "below" in page.read_text()


def test_labels_by_column(tmp_path: Path) -> None:
    X.assign(who=[f"p{i}" for i in range(700)]).to_parquet(tmp_path / "p.parquet", index=False)
    found = budge.audit(kit.score, People.of(tmp_path / "p.parquet", id="who", part=100), kit.DRAWN, target=1, n=30)
    here = budge.audit(kit.score, X.set_index(pd.Index([f"p{i}" for i in range(700)], name="who")), kit.DRAWN, target=1, n=30)
    pd.testing.assert_frame_equal(found.table, here.table, check_exact=True)
    label = here.table.index[5]
    pd.testing.assert_frame_equal(found.change(label), here.change(label))


@pytest.mark.parametrize(
    ("more", "error", "said"),
    [
        ({"population": np.ones(700, bool)}, DesignError, "takes a condition, not a mask"),
        ({"groups": "nobody"}, InputError, "no such column"),
        ({"population": "nobody > 3"}, InputError, "no such column"),
    ],
)
def test_what_a_stream_cannot_be_asked(data: Path, more: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        budge.audit(kit.score, str(data), kit.DRAWN, target=1, **more)


def test_a_person_who_breaks_the_spec_is_named(tmp_path: Path) -> None:
    people = X.copy()
    people.loc[690, "a"] = 99
    people.to_parquet(tmp_path / "p.parquet", index=False)
    with pytest.raises(DataError, match="690"):
        budge.audit(kit.score, People.of(tmp_path / "p.parquet", part=100), kit.DRAWN, target=1, n=30)
    design = budge.Design(target=1, n=30, on_invalid="skip", population="all")
    found = budge.audit(kit.score, People.of(tmp_path / "p.parquet", part=100), kit.DRAWN, design=design)
    assert found.table.loc[690, "status"] == "invalid_start"


def test_a_model_that_drifts_in_a_later_part_is_found(data: Path) -> None:
    asked = {"rows": 0}

    def model(table: pd.DataFrame) -> Any:
        asked["rows"] += len(table)
        return kit.score(table) if asked["rows"] < 20_000 else 1 - kit.score(table)

    with pytest.raises(budge.errors.ModelError, match="answers otherwise"):
        budge.audit(model, People.of(data, part=64), kit.DRAWN, target=1, n=60)


def test_the_command_line_reads_patterns_and_folders(tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from budge.cli import main

    pytest.importorskip("sklearn", reason="scikit-learn is in the `models` extra")
    skops = pytest.importorskip("skops.io", reason="skops is in the `models` extra")
    from sklearn.linear_model import LogisticRegression

    im = budge.InteractionModel([budge.Feature("a", "integer", bounds=(0, 9), max_increase=2), budge.Feature("b", "real", bounds=(0, 1), actionable=False)])
    im.to_file(tmp_path / "spec.yaml")
    skops.dump(LogisticRegression().fit(X[["a", "b"]], kit.score(X)), tmp_path / "m.skops")
    common = ["--model", str(tmp_path / "m.skops"), "--target", "1", "--by", "sex", "--drop", "c", "--drop", "sex", "--drop", "town"]
    X.to_csv(tmp_path / "people.csv", index=False)
    outputs = []
    for k, given in enumerate((str(tmp_path / "people.csv"), str(data / "*.parquet"), str(data))):
        out = str(tmp_path / f"run{k}")
        assert main(["audit", str(tmp_path / "spec.yaml"), given, *common, "-o", out, "--fail-if", "share(no_way) > 0.99"]) == 0
        outputs.append(capsys.readouterr().out.replace(out, "RUN"))
    assert outputs[1] == outputs[2]
    listed = re.compile(r"(No way at all: 226 people), .*?(\n  and 221 more)", re.DOTALL)  # a stream is not asked about again to tell who is closest
    assert listed.sub(r"\1\2", outputs[0]) == listed.sub(r"\1\2", outputs[1])
    assert listed.search(outputs[0])
    assert main(["gate", str(tmp_path / "run1"), "--fail-if", "count(verdict == 'below') > 0"]) == 1
    assert main(["report", str(tmp_path / "run1"), "-o", str(tmp_path / "r.html")]) == 0
    assert main(["audit", str(tmp_path / "spec.yaml"), str(tmp_path / "none*.parquet"), *common]) == 3
    assert "no file has such a name" in capsys.readouterr().err
