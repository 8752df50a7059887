"""The audit from the command line: files in, verdicts, gates and exit codes out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from audit_kit import approve, loans

import budge
from budge.audit.gate import gate_table
from budge.cli import main
from budge.errors import InputError

pytest.importorskip("pyarrow", reason="points travel as Parquet")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    X, im = loans()
    X.drop(columns="note").to_csv(tmp_path / "people.csv", index=False)
    im.to_file(tmp_path / "loans.yaml")
    return tmp_path


def ask_owner(folder: Path) -> None:
    points = pd.read_parquet(folder / "points.parquet")
    pd.DataFrame({"key": points["key"], "prediction": approve(points)}).to_csv(folder / "answers.csv", index=False)


@pytest.mark.parametrize("method", ["auto", "exact", "sample"])
def test_predictions_give_the_whole_table_of_an_audit_with_the_model(files: Path, method: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The lending data has a continuous feature and an effect: drawn, or (with exact) left; the loans are listed, or drawn."""
    from budge.datasets import lending, spec_path
    from budge.datasets.scorecard import Scorecard

    X, im = loans()
    data = lending(n=400, seed=1)
    scorecard = Scorecard.fit(data.X.iloc[:300], data.y.iloc[:300])
    applicants = data.X.iloc[300:340].reset_index(drop=True)
    applicants.to_csv(files / "applicants.csv", index=False)
    worlds = [
        (approve, X.drop(columns="note"), im, files / "loans.yaml", files / "people.csv"),
        (scorecard.predict, applicants, budge.InteractionModel.from_file(spec_path("lending")), spec_path("lending"), files / "applicants.csv"),
    ]
    for k, (model, people, world, spec, table) in enumerate(worlds):
        common = ["--seed", "3", "--method", method]
        assert main(["sample", str(spec), str(table), "-o", str(files / f"points{k}.parquet"), *common, "-q"]) == 0
        points = pd.read_parquet(files / f"points{k}.parquet")
        answers = files / f"answers{k}.csv"
        pd.DataFrame({"key": points["key"], "prediction": model(points.drop(columns="key"))}).to_csv(answers, index=False)
        given = ["audit", str(spec), str(table), "--predictions", str(answers), "--target", "1", *common, "-o", str(files / f"run{k}")]
        assert main([*given, "-q"]) == 0
        direct = budge.audit(model, people, world, target=1, seed=3, method=method)  # type: ignore[arg-type]
        saved = budge.Audit.load(files / f"run{k}")
        pd.testing.assert_frame_equal(saved.table, direct.table, check_dtype=False)
        assert len(saved.table) > 0


def test_procurement_gives_the_table_of_an_audit_with_the_model_at_hand(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, people = str(files / "loans.yaml"), str(files / "people.csv")
    assert main(["sample", spec, people, "-o", str(files / "points.parquet"), "--seed", "3"]) == 0
    ask_owner(files)
    code = main(["audit", spec, people, "--predictions", str(files / "answers.csv"), "--target", "1", "--seed", "3", "-o", str(files / "run"), "--json"])
    out = capsys.readouterr().out
    assert code == 0
    record = json.loads(out[out.index("{") :])
    X, im = loans()
    direct = budge.audit(approve, X.drop(columns="note"), im, target=1, seed=3).table
    assert record["no_way"] == {"model": int((direct["extreme"] == "none").sum())}
    assert record["every_way"] == {"model": int((direct["extreme"] == "every").sum())}
    assert [row["rho"] for row in record["table"]] == direct["rho"].tolist()
    assert budge.Audit.load(files / "run").table["hits"].tolist() == direct["hits"].tolist()
    assert main(["audit", spec, people, "--predictions", str(files / "answers.csv"), "--target", "1", "-o", str(files / "run")]) == 2
    assert "overwrite" in capsys.readouterr().err


def test_a_gate_that_fails_ends_with_1(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, people = str(files / "loans.yaml"), str(files / "people.csv")
    main(["sample", spec, people, "-o", str(files / "points.parquet"), "-q"])
    ask_owner(files)
    base = ["audit", spec, people, "--predictions", str(files / "answers.csv"), "--target", "1"]
    assert main([*base, "--fail-if", "share(verdict == 'below') > 0.99"]) == 0
    assert main([*base, "--population", "all", "--fail-if", "count(rho >= 0) > 3", "--quiet"]) == 1
    assert "FAILED" in capsys.readouterr().err
    assert main([*base, "--harm", "bad"]) == 2
    assert "below" in capsys.readouterr().err
    assert main([*base, "--threshold", "0", "--fail-if", "count(verdict == 'none') > 99", "--adjust", "holm"]) == 0
    assert "have a way to" in capsys.readouterr().out
    assert main([*base, "--fail-if", "share(verdct == 'below') > 0.99"]) == 2


def test_missing_predictions_are_unresolved_and_past_the_limit_exit_with_4(files: Path) -> None:
    spec, people = str(files / "loans.yaml"), str(files / "people.csv")
    main(["sample", spec, people, "-o", str(files / "points.parquet"), "-q"])
    ask_owner(files)
    answers = pd.read_csv(files / "answers.csv")
    answers.iloc[:12].to_csv(files / "few.csv", index=False)
    base = ["audit", spec, people, "--predictions", str(files / "few.csv"), "--target", "1"]
    assert main([*base, "--max-unresolved", "0.2"]) == 4


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["audit", "nowhere.yaml", "people.csv", "--target", "1", "--predictions", "x.csv"], 3),
        (["audit", "loans.yaml", "people.csv", "--target", "1"], 2),
        (["audit", "loans.yaml", "people.csv", "--target", "1", "--predictions", "people.csv"], 2),
        (["sample", "loans.yaml", "people.csv", "-o", "points.xlsx"], 2),
        (["audit", "--no-such-option"], 2),
    ],
)
def test_bad_calls_end_with_their_code(
    files: Path, arguments: list[str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(files)
    assert main(arguments) in ((2, 3) if code == 3 else (code,))
    assert capsys.readouterr().err


def test_the_demo_finds_precluded_and_gameable_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--json", "--people", "60"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["precluded"] > 0
    assert record["gameable"] > 0


def test_gates_count_people_and_refuse_what_is_no_condition() -> None:
    rows = pd.DataFrame({"verdict": ["below", "above", "above"], "rho": [0.0, 0.5, np.nan], "n": [10, 10, 10]})
    assert gate_table(rows, "share(verdict == 'below') > 0.3").failed
    assert not gate_table(rows, "share(verdict == 'below') > 0.34").failed
    assert gate_table(rows, "mean(rho) == 0.25 and most(n) <= 10 and count(verdict in ['above']) == 2").failed
    for text in ("share(rho) > 1", "0.3", "share(verdict == 'below'", "open('x') > 1", "share(nothing == 1) > 0"):
        with pytest.raises(InputError):
            gate_table(rows, text)


@pytest.fixture
def run(files: Path) -> Path:
    """A saved run with a group, of people of whom some have no way and some cannot miss."""
    people = pd.DataFrame({"a": [0] * 8, "cut": [15, 15, 0, 5, 5, 15, 8, 15], "sex": ["f", "f", "m", "m", "m", "f", "m", "f"], "age": range(20, 28)})
    people.to_csv(files / "cuts.csv", index=False)
    features = [budge.Feature("a", "integer", bounds=(0, 9)), budge.Feature("cut", "integer", bounds=(0, 20), actionable=False)]
    budge.InteractionModel(features, name="cuts").to_file(files / "cuts.yaml")
    spec, table = str(files / "cuts.yaml"), str(files / "cuts.csv")
    dropped = ["--drop", "sex", "--drop", "age"]
    assert main(["sample", spec, table, "-o", str(files / "cuts.parquet"), *dropped, "-q"]) == 0
    points = pd.read_parquet(files / "cuts.parquet")
    pd.DataFrame({"key": points["key"], "prediction": (points["a"] >= points["cut"]).astype(int)}).to_csv(files / "said.csv", index=False)
    given = ["audit", spec, table, "--predictions", str(files / "said.csv"), "--target", "1", "--population", "all", *dropped]
    assert main([*given, "--by", "sex", "-o", str(files / "run"), "-q"]) == 0
    return files / "run"


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("count(no_way) > 3", 1),
        ("count(no_way) > 4", 0),
        ("share(every_way) >= 0.125", 1),
        ("share_low > 0.49", 1),
        ("share_high > 0.51", 0),
        ("gap_low > 0.9", 1),
        ("share(verdict == 'below') > 0.9", 0),
        ("count(sex == 'f' and no_way == 1) == 4", 1),
        ("count(age > 25) > 0", 2),
        ("share(verdct == 'below') > 0", 2),
        ("0.3", 2),
        ("shar_low > 0.1", 2),
    ],
)
def test_a_saved_run_can_be_gated(run: Path, condition: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gate", str(run), "--fail-if", condition]) == code
    told = capsys.readouterr()
    if code == 1:
        assert told.err.startswith("FAILED: fail if ")
    elif code == 0:
        assert told.out.startswith("passed: fail if ")
    else:
        assert told.err.startswith("budge: ")
        assert told.out == ""


def test_gates_repeat_and_come_as_a_record(run: Path, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = ["--fail-if", "count(no_way) > 3", "--fail-if", "share_low > 0.9"]
    assert main(["gate", str(run), *both, "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert [g["failed"] for g in record["gates"]] == [True, False]
    assert record["failed"] == 1
    assert main(["gate", str(run), *both, "-q"]) == 1
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    data = ["--data", str(files / "cuts.csv"), "--drop", "sex", "--drop", "age"]
    assert main(["gate", str(run), "--fail-if", "count(age > 25 and no_way == 1) == 1", *data]) == 1
    assert main(["gate", str(run), "--fail-if", "count(age > 25) > 9", "--data", str(files / "cuts.csv")]) == 2  # other columns: other people
    assert "not the people of the run" in capsys.readouterr().err
    assert main(["gate", str(files / "nowhere"), "--fail-if", "count(no_way) > 3"]) == 3
    assert main(["gate", str(run)]) == 2
    assert main(["gate", str(run), "--fail-if", "count(no_way) > 3", "--model", "other"]) == 2


def test_groups_of_columns_that_the_model_does_not_get(run: Path, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = budge.Audit.load(run)
    assert [column for column, _ in saved.design.groups] == ["sex"]
    assert saved.by("sex").loc[("f", "below"), "count"] == 4
    assert saved.differences("sex").iloc[0]["low"] == 1.0
    assert main(["report", str(run), "-q"]) == 0
    assert "By sex" in (run / "report.html").read_text(encoding="utf-8")


def test_the_pytest_gate_names_people(exact_audit: budge.Audit) -> None:
    from budge.testing.plugin import assert_audit

    with pytest.raises(AssertionError, match="least responsive") as caught:
        assert_audit(exact_audit, "share(rho < 2) > 0.5")
    assert "rho" in str(caught.value)
    assert_audit(exact_audit, "share(rho < 0) > 0.5")
    with pytest.raises(AssertionError, match="FAILED"):
        assert_audit(exact_audit, "count(note == 'p3') == 1 and share_low >= 0 and share(every_way) >= 0")
    assert_audit(exact_audit, "count(no_way) > 99")


@pytest.fixture(scope="module")
def exact_audit() -> budge.Audit:
    X, im = loans()
    return budge.audit(approve, X, im, target=1, population="all")
