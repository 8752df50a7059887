"""The commands: files in; sentences, records, figures and exit codes out."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from budge import Feature, InteractionModel, constraints
from budge.cli import main

xgboost = pytest.importorskip("xgboost", reason="a model file is needed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("stress")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"income": rng.integers(0, 10, 60), "home": rng.integers(0, 2, 60), "age": rng.integers(20, 60, 60)})
    answers = {"wide": X["income"] + 3 * X["home"] > 7, "narrow": X["age"] > 40}
    for name, y in answers.items():
        given = X if name == "wide" else X[["home", "age"]]
        xgboost.XGBClassifier(n_estimators=10, max_depth=3, n_jobs=1).fit(given, y.astype(int)).save_model(place / f"{name}.json")
    X.head(12).to_csv(place / "people.csv", index=False)
    loose = InteractionModel(
        [
            Feature("income", "integer", bounds=(0, 9), max_increase=2),
            Feature("home", "binary", actionable=False),
            Feature("age", "integer", bounds=(18, 99), actionable=False),
        ]
    )
    loose.to_file(place / "loose.yaml")
    rule = constraints.LinearConstraint({"income": 1, "home": 1}, "<=", 1, on="action", name="a <rule> & more")
    loose.with_constraint(rule).to_file(place / "tight.yaml")
    return place


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(list(arguments))
    return code, capsys.readouterr().out


def test_ablate(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = [
        "ablate",
        str(folder / "tight.yaml"),
        "--data",
        str(folder / "people.csv"),
        "--model",
        str(folder / "wide.json"),
        "--target",
        "1",
    ]
    figure = folder / "gain.svg"
    code, out = run(capsys, *base, "--figure", str(figure), "--stuck", "2")
    assert code == 0
    assert "free home" in out
    assert "Stuck:" in out
    text = figure.read_text(encoding="utf-8")
    ElementTree.fromstring(text)
    assert "a &lt;rule&gt; &amp; more" in text
    code, out = run(capsys, *base, "--json")
    record = json.loads(out)
    assert code == 0
    assert {r["relaxation"] for r in record["ranking"]} >= {
        "free home",
        "free age",
        "lift steps of income",
        "drop a <rule> & more",
    }
    assert main([*base, "--figure", str(figure)]) == 2  # it exists
    assert main([*base, "--relax", "free hme"]) == 2
    capsys.readouterr()
    code, out = run(capsys, *base, "--figure", str(folder / "cdf.svg"), "--kind", "cdf", "--quiet", "--method", "paired")
    assert (code, out) == (0, "")
    ElementTree.fromstring((folder / "cdf.svg").read_text(encoding="utf-8"))


def test_sensitivity(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    end = ["--data", str(folder / "people.csv"), "--model", str(folder / "wide.json"), "--target", "1"]
    two = ["sensitivity", str(folder / "tight.yaml"), str(folder / "loose.yaml"), *end]
    code, out = run(capsys, *two, "--harm", "below", "--figure", str(folder / "tornado.svg"))
    assert code == 0
    assert "under every member" in out
    assert "consensus" in out
    ElementTree.fromstring((folder / "tornado.svg").read_text(encoding="utf-8"))
    code, out = run(
        capsys, "sensitivity", str(folder / "tight.yaml"), *end, "--vary", "features.income.max_increase=1,3,9", "--json"
    )
    record = json.loads(out)
    assert code == 0
    assert len(record["by_member"]) == 3
    assert record["breaks"] is not None
    code, _ = run(
        capsys,
        "sensitivity",
        str(folder / "tight.yaml"),
        *end,
        "--toggle",
        "a <rule> & more",
        "--kind",
        "cdf",
        "--figure",
        str(folder / "c.svg"),
    )
    assert code == 0
    assert main(["sensitivity", str(folder / "tight.yaml"), *end, "--vary", "features.incom.max_increase=1"]) == 2
    capsys.readouterr()
    assert main(["sensitivity", str(folder / "tight.yaml"), *end]) == 2
    assert "give another spec file, --vary" in capsys.readouterr().err


def test_a_break_has_both_verdicts_and_those_that_are_shown_come_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    end = ["--data", str(folder / "people.csv"), "--model", str(folder / "wide.json"), "--target", "1", "--population", "all"]
    _, out = run(capsys, "sensitivity", str(folder / "loose.yaml"), *end, "--vary", "features.income.max_increase=0,1,9")
    rows = out.split("Where the verdict breaks")[1].splitlines()[1:]
    assert rows[0].split() == ["person", "verdict", "value", "axis"]
    assert "below → above" in rows[1]
    assert "0 → 1" in out or "1 → 9" in out


@pytest.mark.parametrize("width", [60, 80])
def test_verdicts_under_a_member_add_up_on_a_narrow_terminal(
    folder: Path, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    end = ["--data", str(folder / "people.csv"), "--model", str(folder / "wide.json"), "--target", "1", "--population", "all", "--threshold", "0.5"]
    asked = ["sensitivity", str(folder / "loose.yaml"), *end, "--vary", "features.income.max_increase=1,2"]
    record = json.loads(run(capsys, *asked, "--json")[1])
    verdicts = [name for name in record["by_member"][0] if name not in ("member", "mean_rho")]
    assert any(row["at the threshold"] for row in record["by_member"])
    _, out = run(capsys, *asked)
    lines = out.split("\n")
    head = next(k for k, line in enumerate(lines) if line.startswith("  member"))
    assert all(name in lines[head] for name in verdicts)
    assert all(len(line) <= width for line in lines)
    found = [[int(n) for n in line.split()[-len(verdicts):]] for line in lines[head + 1 :] if len(line.split()) > len(verdicts)][:2]
    assert [sum(row) for row in found] == [12, 12]


def test_select(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = ["--model", f"{folder / 'wide.json'}=0.9", "--model", f"{folder / 'narrow.json'}=0.7"]
    base = ["select", str(folder / "loose.yaml"), "--data", str(folder / "people.csv"), "--target", "1"]
    code, out = run(capsys, *base, *models, "--convex", "--figure", str(folder / "pareto.svg"))
    assert code == 0
    assert "Chosen: narrow" in out
    ElementTree.fromstring((folder / "pareto.svg").read_text(encoding="utf-8"))
    code, out = run(capsys, *base, *models[:2], "--json")
    assert code == 1
    assert json.loads(out)["chosen"] is None
    assert main([*base, "--model", str(folder / "wide.json")]) == 2
    capsys.readouterr()
    assert main([*base, "--model", f"{folder / 'absent.json'}=0.9", "--model", f"{folder / 'gone.json'}=0.7", "--drop", "hight"]) != 0
    told = capsys.readouterr().err
    assert all(word in told for word in ("3 problems", "absent.json", "gone.json", "hight"))


def test_sensitivity_over_one_axis_has_no_column_of_others(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = ["sensitivity", str(folder / "loose.yaml"), "--data", str(folder / "people.csv"), "--model", str(folder / "wide.json"), "--target", "1"]
    code, text = run(capsys, *base, "--vary", "features.income.max_increase=0,9")
    assert code == 0
    assert "Where the verdict breaks" in text
    assert "others" not in text
