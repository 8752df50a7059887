"""The audit from the command line: files in, verdicts, gates and exit codes out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from audit_kit import approve, loans

import budge
from budge.audit.gate import gate
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
    assert main([*base, "--fail-if", "count(rho >= 0) > 3", "--quiet"]) == 1
    assert "FAILED" in capsys.readouterr().err
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
    assert gate(rows, "share(verdict == 'below') > 0.3").failed
    assert not gate(rows, "share(verdict == 'below') > 0.34").failed
    assert gate(rows, "mean(rho) == 0.25 and most(n) <= 10 and count(verdict in ['above']) == 2").failed
    for text in ("share(rho) > 1", "0.3", "share(verdict == 'below'", "open('x') > 1", "share(nothing == 1) > 0"):
        with pytest.raises(InputError):
            gate(rows, text)


def test_the_pytest_gate_names_people(exact_audit: budge.Audit) -> None:
    from budge.testing.plugin import assert_audit

    with pytest.raises(AssertionError, match="least responsive") as caught:
        assert_audit(exact_audit, "share(rho < 2) > 0.5")
    assert "rho" in str(caught.value)
    assert_audit(exact_audit, "share(rho < 0) > 0.5")


@pytest.fixture(scope="module")
def exact_audit() -> budge.Audit:
    X, im = loans()
    return budge.audit(approve, X, im, target=1)
