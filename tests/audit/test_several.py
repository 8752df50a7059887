"""Several targets in one run: each is the audit of that target alone, and the models are asked once about what the targets share."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from audit_kit import PROPOSAL, ROUTES, loans
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import budge
from budge import Audits, Execution, audit_targets, cli
from budge.audit import counting
from budge.audit.counting import Remembered
from budge.errors import BudgeError, IncompleteError, InputError, OutputExistsError, StorageError
from budge.models import Predictor, as_predictor

TARGETS: dict[str, Any] = {"approved": "score >= 4", "top": "score >= 7", "not_worse": "higher", "moved": "different"}


class Points:
    """Points of an applicant, which counts the rows it is asked about; some have no answer."""

    def __init__(self, *, lost: int = 0, twist: int = 0) -> None:
        self.rows, self.lost, self.twist = 0, lost, twist

    def __call__(self, table: pd.DataFrame) -> np.ndarray:
        self.rows += len(table)
        years, balance = table["years"].to_numpy(float), table["balance"].to_numpy(float)
        score = years + 2 * table["ge_5"] + balance * (1 + self.twist) + (table["home"] == "own") - (table["age"] > 40)
        gone = (years + table["age"]) % 5 < self.lost  # nobody begins with a balance of 4
        return np.where(gone & (balance == 4), np.nan, score)


def asked(points: Any) -> Predictor:
    """Return the model that gives these points as scores."""
    return as_predictor(points, output="score")


def assert_same(found: budge.Audit, alone: budge.Audit) -> None:
    pd.testing.assert_frame_equal(found.table, alone.table, check_exact=True)
    assert found.notes == alone.notes
    assert found.info["design"] == alone.info["design"]
    for name in found.models:
        assert str(found.summary(name)) == str(alone.summary(name))
        for label in alone.of_model(name).index:
            pd.testing.assert_frame_equal(found.change(label, model=name), alone.change(label, model=name), check_exact=True)


@pytest.mark.parametrize("lost", [0, 2])
@pytest.mark.parametrize("route", ROUTES)
def test_each_target_has_the_audit_that_it_has_alone(route: str, lost: int) -> None:
    X, im = loans()
    points = [Points(lost=lost), Points(lost=lost, twist=1)]
    wish: dict[str, Any] = {"seed": 3, "threshold": 0.2, "design": budge.Design(max_unresolved=0.5), **ROUTES[route]}
    models = {"one": asked(points[0]), "two": asked(points[1])}
    found = audit_targets(models, X, im, TARGETS, **wish)
    together = sum(own.rows for own in points)
    for name, target in TARGETS.items():
        assert_same(found[name], budge.audit(models, X, im, target=target, **wish))
    apart = sum(own.rows for own in points) - together
    assert (together if lost else 1.5 * together) < apart  # each person of whom an answer is missing is asked about again


SETTINGS = st.fixed_dictionaries(
    {
        "population": st.sampled_from(["outside", "all", "age < 45"]),
        "claim": st.sampled_from(["below", "above"]),
        "adjust": st.sampled_from(["bh", "holm", "bonferroni", "none"]),
        "threshold": st.sampled_from([0.1, 0.3]),
        "seed": st.integers(0, 5),
    },
    optional={"groups": st.just(["home", "closed"]), "prove": st.just(True), "harm": st.just("below")},
)
WAYS = st.sampled_from([{}, {"method": "sample"}, {"method": "sample", "sequential": True}, {"method": "sample", "proposal": PROPOSAL}, {"method": "exact"}])


@given(
    more=SETTINGS,
    way=WAYS,
    lost=st.integers(0, 3),
    cuts=st.lists(st.integers(-1, 10), min_size=2, max_size=3, unique=True),
    room=st.sampled_from([0, 300, 10**6]),
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_options_together(
    more: dict[str, Any], way: dict[str, Any], lost: int, cuts: list[int], room: int, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """Numbers of draws that are planned for each target's own people, unanswered points, weights, stops, proofs, and no room for all answers."""
    monkeypatch.setattr(counting, "MOST_REMEMBERED", 9 * room)
    X, im = loans()
    if way.get("sequential"):
        more = {**more, "n": 400}
    targets = {f"t{k}": f"score >= {cut}" for k, cut in enumerate(cuts)}
    alone: dict[str, Any] = {}
    for name, target in targets.items():
        try:
            alone[name] = budge.audit(asked(Points(lost=lost)), X, im, target=target, **more, **way)
        except BudgeError as error:
            alone[name] = str(error)
    try:
        found: Any = audit_targets(asked(Points(lost=lost)), X, im, targets, **more, **way)
    except BudgeError as error:
        found = str(error)
    if isinstance(found, str) or any(isinstance(one, str) for one in alone.values()):
        assert found in alone.values()
        return
    for name, one in alone.items():
        assert_same(found[name], one)


@pytest.mark.parametrize("wrong", ["shifted", "turned", "known before it is asked"])
def test_a_planted_fault_is_seen(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, im = loans()
    keep, knows = Remembered.keep, Remembered.knows
    if wrong == "shifted":
        monkeypatch.setattr(Remembered, "keep", lambda self, places, found: keep(self, np.roll(places, 1), found))
    elif wrong == "turned":
        monkeypatch.setattr(Remembered, "keep", lambda self, places, found: keep(self, places[::-1], found))
    else:
        monkeypatch.setattr(Remembered, "knows", lambda self, places: knows(self, places) | (self.known.any() & (places >= 0)))
    wish: dict[str, Any] = {"seed": 3, "population": "all"}

    def points() -> Points:
        return Points(lost=int(wrong == "known before it is asked"))

    found = audit_targets(asked(points()), X, im, TARGETS, execution=Execution(check=False), **wish)
    monkeypatch.undo()
    alone = {name: budge.audit(asked(points()), X, im, target=target, **wish) for name, target in TARGETS.items()}
    assert any((found[name].table[column] != alone[name].table[column]).any() for name in TARGETS for column in ("hits", "unresolved"))


def test_labels_of_any_type() -> None:
    """Texts that grow from block to block, and answers of several types."""
    X, im = loans()

    def texts(table: pd.DataFrame) -> np.ndarray:
        return np.array(["a" * (1 + k % 9) for k in table["years"] + table["balance"]])

    def mixed(table: pd.DataFrame) -> np.ndarray:
        whole = (table["years"] + table["balance"]).to_numpy() % 3
        return whole if len(table) % 2 else whole.astype(float)

    for model, targets in ((texts, {"long": ["a" * 8, "a" * 9], "short": "aa"}), (mixed, {"one": 1, "two": [1, 2]})):
        wish: dict[str, Any] = {"population": "all", "execution": Execution(block_people=2, check=model is texts)}
        found = audit_targets(model, X, im, targets, **wish)
        for name, target in targets.items():
            assert_same(found[name], budge.audit(model, X, im, target=target, **wish))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_stream_and_workers_give_the_same(tmp_path: Path, n_jobs: int) -> None:
    pytest.importorskip("pyarrow", reason="streams of people need the `parquet` extra")
    X, im = loans()
    X.drop(columns="note").to_parquet(tmp_path / "people.parquet")
    people = tmp_path / "people.parquet" if n_jobs == 1 else X.drop(columns="note")
    found = audit_targets(asked(Points()), people, im, TARGETS, population="all", n_jobs=n_jobs)
    for name, target in TARGETS.items():
        whole = budge.audit(asked(Points()), X.drop(columns="note"), im, target=target, population="all")
        pd.testing.assert_frame_equal(found[name].whole().table, whole.table, check_dtype=False)


def test_a_model_that_goes_down_leaves_what_is_finished_and_the_journals_go_on(tmp_path: Path) -> None:
    X, im = loans()

    class Fails(Points):
        def __call__(self, table: pd.DataFrame) -> np.ndarray:
            if self.rows > 400 and not self.well:
                raise ConnectionError("the server is down")
            return super().__call__(table)

        well = False

    wish: dict[str, Any] = {"seed": 3, "method": "sample", "n": 60, "population": "all", "adjust": "none"}
    model = Fails()
    memory_off = Execution(block_people=3, check=False)
    with pytest.raises(BudgeError) as caught:
        audit_targets(asked(model), X, im, {"approved": "score >= 4", "top": "score >= 7"}, **wish, journal=tmp_path, execution=memory_off)
    assert isinstance(caught.value, IncompleteError)
    left = caught.value.results  # type: ignore[attr-defined]
    assert isinstance(left, Audits)
    model.well = True
    found = audit_targets(asked(model), X, im, {"approved": "score >= 4", "top": "score >= 7"}, **wish, journal=tmp_path, execution=memory_off)
    for name, target in (("approved", "score >= 4"), ("top", "score >= 7")):
        pd.testing.assert_frame_equal(found[name].table, budge.audit(asked(Points()), X, im, target=target, **wish).table, check_exact=True)


def test_saved_and_loaded(tmp_path: Path) -> None:
    X, im = loans()
    found = audit_targets(asked(Points()), X, im, {"approved": "score >= 4", "high_score": "score >= 7"}, population="all")
    assert list(found) == ["approved", "high_score"]
    assert found.table.columns[0] == "target"
    assert found.table["target"].value_counts().to_dict() == {"approved": 12, "high_score": 12}
    assert "high_score" in str(found)
    place = found.save(tmp_path / "runs")
    back = Audits.load(place)
    assert list(back) == ["approved", "high_score"]
    for name in found:
        assert_same(back[name], found[name])
    with pytest.raises(OutputExistsError, match="exists already"):
        found.save(place)
    found.save(place, overwrite=True)
    with pytest.raises(OutputExistsError, match="another target"):
        Audits({"other": found["approved"]}).save(place, overwrite=True)
    with pytest.raises(OutputExistsError, match="one target"):
        found.save(place / "approved")
    with pytest.raises(StorageError, match="one run"):
        Audits.load(place / "approved")
    with pytest.raises(StorageError, match="no saved runs"):
        Audits.load(tmp_path)
    with pytest.raises(InputError, match="did you mean 'approved'"):
        back["aproved"]


@pytest.mark.parametrize(
    ("targets", "more", "said"),
    [
        ({}, {}, "no target is given"),
        ({"a/b": 1}, {}, "cannot be the name of a target"),
        ({"..": 1}, {}, "cannot be the name of a target"),
        ({3: 1}, {}, "cannot be the name of a target"),
        ({"A": 1, "a": 0}, {}, "differ at most in capitals"),
        ({"a": "score >="}, {}, "targets: a"),
        ({"a": 1, "b": "score >= 4", "c": None}, {}, "targets: c"),
        ({"a": 1}, {"tresh": 2}, "threshold"),
        ({"a": 1}, {"wording": {"target_name": "x"}}, "names one of several targets"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_targets_are_told_before_anything_is_asked(targets: Any, more: Any, said: str, tmp_path: Path) -> None:
    X, im = loans()
    model = Points()
    with pytest.raises(InputError, match=re.escape(said)):
        audit_targets(asked(model), X, im, targets, journal=tmp_path / "runs", **more)
    assert model.rows == 0
    assert not (tmp_path / "runs").exists()


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    X, im = loans()
    X.drop(columns="note").to_csv(tmp_path / "people.csv", index=False)
    im.to_file(tmp_path / "loans.yaml")
    (tmp_path / "points.py").write_text(
        "def points(t):\n    return t['years'] + 2 * t['ge_5'] + t['balance'] + (t['home'] == 'own') - (t['age'] > 40)\n"
    )  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


ASKED = ["audit", "loans.yaml", "people.csv", "--model", "points:points", "--output", "score", "--target", "approval=score >= 4", "--target", "top=score >= 7"]


def test_on_the_shell(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*ASKED, "-o", "run", "--fail-if", "count(verdict == 'below') > 100"]) == 0
    out = capsys.readouterr().out
    assert "\n\n\n" not in out
    assert [line for line in out.splitlines() if line.startswith("Target: ")] == ["Target: approval", "Target: top"]
    single = ["--target", "score >= 7", "-o", "alone", "--target-name", "top"]
    assert cli.main([*ASKED[:7], *single, "-q"]) == 0
    capsys.readouterr()
    assert_same(budge.Audit.load(files / "run" / "top"), budge.Audit.load(files / "alone"))
    for command in (["show"], ["show", "-q"], ["gate", "--fail-if", "count(verdict == 'below') > 100"], ["export", "--csv"], ["report"]):
        assert cli.main([command[0], "run", *command[1:]]) == 0, command
        out = capsys.readouterr().out
        assert "\n\n\n" not in out
        assert "approval" in out
        assert "top" in out
    assert (files / "run" / "top" / "report.html").exists()
    assert cli.main(["gate", "run", "--fail-if", "count(verdict == 'below') >= 0"]) == 1
    assert cli.main([*ASKED, "-o", "run"]) == 2  # a finished run
    assert "finished run" in capsys.readouterr().err
    assert cli.main([*ASKED, "--target", "low=score >= 1", "-o", "run", "-q"]) == 0  # one more: the others are read
    assert sorted(budge.Audits.load(files / "run")) == ["approval", "low", "top"]
    assert cli.main([*ASKED, "-o", "run", "--overwrite", "-q"]) == 2
    assert "another target" in capsys.readouterr().err
    assert cli.main(["compare", "run", "run"]) == 3
    told = capsys.readouterr().err
    assert "holds several runs" in told
    assert "run/approval" in told


def test_on_the_shell_as_json(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*ASKED, "-o", "run", "--json", "--fail-if", "count(verdict == 'below') >= 0"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert list(record["targets"]) == ["approval", "top"]
    assert [gate["failed"] for gate in record["targets"]["top"]["gates"]] == [True]
    assert cli.main(["show", "run", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["targets"]) == ["approval", "top"]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["--target", "score >= 4", "--target", "score >="], "--target"),
        (["--target", "a=score >= 4", "--target", "a=score >= 7"], "two targets have one name"),
        (["--target", "a=score >= 4", "--target", "A=score >= 7"], "at most in capitals"),
        (["--target", "a=score >= 4", "--target", "b=1", "--target-name", "x"], "--target NAME=TARGET"),
    ],
)  # fmt: skip
def test_bad_targets_on_the_shell(files: Path, typed: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*ASKED[:7], *typed, "-o", "run"]) == 2
    assert said in capsys.readouterr().err
    assert not (files / "run").exists()


@pytest.mark.parametrize("lines", ['target = ["approval=score >= 4", "top=score >= 7"]', '[target]\napproval = "score >= 4"\ntop = "score >= 7"'])
def test_in_the_project_file(files: Path, lines: str, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "budge.toml").write_text(f'spec = "loans.yaml"\ndata = "people.csv"\nrun = "run"\n{lines}\n')
    assert cli.main(["audit", "-q", "--model", "points:points", "--output", "score"]) == 0
    assert sorted(budge.Audits.load(files / "run")) == ["approval", "top"]
    assert cli.main(["show", "-q"]) == 0
    assert "top: " in capsys.readouterr().out
