"""``budge report``: from a saved run alone, and with its model and people at hand."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from report_kit import read

import budge
from budge import Feature, InteractionModel, constraints
from budge.cli import main

xgboost = pytest.importorskip("xgboost", reason="a model file is needed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """People, a spec, a model, and a saved run made by the command line."""
    place = tmp_path_factory.mktemp("command")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"income": rng.integers(0, 10, 60), "home": rng.integers(0, 2, 60), "age": rng.integers(20, 60, 60)})
    y = (X["income"] + 3 * X["home"] > 7).astype(int)
    xgboost.XGBClassifier(n_estimators=10, max_depth=3, n_jobs=1).fit(X, y).save_model(place / "loan.json")
    X.head(20).assign(outcome=y, sex=rng.choice(["f", "m"], 60)[:20]).to_csv(place / "people.csv", index=False)
    rule = constraints.LinearConstraint({"income": 1, "home": 1}, "<=", 1, on="action", name="a <rule> & more")
    features = [
        Feature("income", "integer", bounds=(0, 9), max_increase=2),
        Feature("home", "binary", actionable=False),
        Feature("age", "integer", bounds=(18, 99), actionable=False),
    ]
    InteractionModel(features, [rule], name="loans").to_file(place / "spec.yaml")
    arguments = ["audit", str(place / "spec.yaml"), str(place / "people.csv"), "--model", str(place / "loan.json"), "--target", "1"]
    assert main([*arguments, "--drop", "outcome", "--drop", "sex", "-o", str(place / "run"), "--quiet"]) == 0
    return place


def test_a_run_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(folder / "run")]) == 0
    said = capsys.readouterr().out
    assert "report.html" in said
    assert " ".join(said.split()).startswith("Wrote ")
    assert said.count("Wrote") == 1
    page = read(folder / "run" / "report.html")
    assert page.wrong == []
    assert "budge audit" in page.text  # as it was typed
    assert "--drop outcome" in " ".join(page.text.split())
    run = budge.Audit.load(folder / "run")
    assert page.data["table"]["models"][0]["n"] == run.table["n"].tolist()
    assert main(["report", str(folder / "run")]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["report", str(folder / "run"), "--overwrite", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert set(record) == {"report", "bytes", "people"}
    assert record["bytes"] == (folder / "run" / "report.html").stat().st_size
    assert budge.Audit.load(folder / "run").table.equals(run.table)  # the run is not touched


def test_with_the_model_at_hand(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "whole.html"
    given = ["--model", str(folder / "loan.json"), "--data", str(folder / "people.csv"), "--drop", "outcome", "--drop", "sex"]
    assert main(["report", str(folder / "run"), "-o", str(out), *given, "--by", "sex", "--title", "Loans & co", "-q"]) == 0
    assert capsys.readouterr().out == ""
    page = read(out)
    assert page.wrong == []
    assert "Each cell of a table is one combination of what decides" in page.text
    assert "By sex" in page.text
    assert "Loans & co" in page.text
    assert "What the new ways need" in page.text
    assert "“a <rule> & more” does not hold" in page.text
    assert main(["report", str(folder / "run"), "-o", str(out), *given, "--no-why", "--overwrite", "-q"]) == 0
    assert "What the new ways need" not in read(out).text


def test_groups_need_the_same_people(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = ["report", str(folder / "run"), "-o", str(folder / "groups.html"), "--data", str(folder / "people.csv")]
    assert main([*base, "--drop", "outcome", "--drop", "sex", "--by", "sex"]) == 0
    assert "By sex" in read(folder / "groups.html").text
    assert main([*base, "--overwrite", "--by", "sex"]) == 2
    assert "not the people of the run" in capsys.readouterr().err
    assert main([*base, "--overwrite", "--model", str(folder / "loan.json")]) == 2
    assert "give --id and --drop as the audit had them" in " ".join(capsys.readouterr().err.split())
    assert main([*base, "--overwrite", "--by", "sax"]) == 2
    assert "did you mean 'sex'" in capsys.readouterr().err


def test_saved_stress_tests(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["--data", str(folder / "people.csv"), "--model", str(folder / "loan.json"), "--target", "1", "--drop", "outcome", "--drop", "sex", "--json"]
    assert main(["ablate", str(folder / "spec.yaml"), *common]) == 0
    (folder / "ablation.json").write_text(capsys.readouterr().out, encoding="utf-8")
    out = folder / "stress.html"
    assert main(["report", str(folder / "run"), "-o", str(out), "--ablation", str(folder / "ablation.json")]) == 0
    page = read(out)
    assert page.wrong == []
    assert "free home" in page.text
    capsys.readouterr()
    (folder / "other.json").write_text("[1]", encoding="utf-8")
    assert main(["report", str(folder / "run"), "-o", str(folder / "x.html"), "--ablation", str(folder / "other.json")]) == 2
    assert "not the record of such a test" in capsys.readouterr().err
    assert not (folder / "x.html").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nowhere"], 3, "no saved run"),
        (["RUN", "-o", "X", "--by", "sex"], 2, "give --data"),
        (["RUN", "-o", "X", "--model", "loan.json"], 2, "give --data, too"),
        (["RUN", "-o", "X", "--ablation", "gone.json"], 3, "no such file"),
        (["RUN", "-o", "no/where/x.html"], 3, "no such folder"),
    ],
)
def test_bad_calls(folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, words: str) -> None:
    swap = {"RUN": str(folder / "run"), "X": str(folder / "never.html")}
    assert main(["report", *(swap.get(a, a) for a in arguments)]) == code
    assert words in capsys.readouterr().err
    assert not (folder / "never.html").exists()


def test_demo_writes_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "demo.html"
    assert main(["demo", "--people", "20", "--quiet", "--report", str(path)]) == 0
    page = read(path)
    assert page.wrong == []
    assert len(page.data["table"]["models"][0]["label"]) > 0
    capsys.readouterr()
    assert main(["demo", "--people", "20", "--quiet", "--report", str(path)]) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize("options", [{}, {"method": "sample", "sequential": True}, {"method": "sample", "n": 50, "claim": "above"}, {"threshold": 0.0}])
def test_the_command_and_python_write_the_same_report(folder: Path, options: dict[str, Any], tmp_path: Path) -> None:
    """Nothing differs: not the date, not why n was chosen, not the groups, not the words."""
    X = pd.read_csv(folder / "people.csv").drop(columns="outcome")
    im, words = InteractionModel.from_file(folder / "spec.yaml"), {"people_name": "applicants", "target_name": "a loan"}
    audit = budge.audit(str(folder / "loan.json"), X.drop(columns="sex"), im, target=1, groups="home", wording=words, harm="below", **options)
    audit.save(tmp_path / "run")
    audit.to_html(tmp_path / "one.html")
    given = ["--model", str(folder / "loan.json"), "--data", str(folder / "people.csv"), "--drop", "outcome", "--drop", "sex"]
    assert main(["report", str(tmp_path / "run"), "-o", str(tmp_path / "two.html"), *given, "-q"]) == 0
    one, two = ((tmp_path / name).read_text(encoding="utf-8").split("\n") for name in ("one.html", "two.html"))
    assert [(a, b) for a, b in zip(one, two) if a != b] == []
    assert len(one) == len(two)
    assert audit.info["when"] in read(tmp_path / "two.html").text
    assert audit.design.why_n in read(tmp_path / "two.html").text


@pytest.mark.parametrize(
    "options",
    [
        {"threshold": 0.25, "alpha": 0.1, "claim": "above", "seed": 4, "population": "all", "adjust": "holm", "harm": "above"},
        {"method": "sample", "sequential": True, "design": {"margin": 0.05}},
        {"method": "sample", "n": 77, "groups": "home", "design": {"prove": True, "max_unresolved": 0.5, "on_invalid": "skip"}},
        {"population": "age < 50", "wording": {"people_name": "the applicants", "group_labels": {"home": {"0": "no home"}}, "feature_labels": {"age": "Age"}}},
        {"models": ("one", "two")},
    ],
)
def test_the_command_in_the_report_repeats_the_run(folder: Path, options: dict[str, Any], tmp_path: Path) -> None:
    import shlex

    from budge.report.contents import _command

    path = str(folder / "loan.json")
    names, design = options.pop("models", ()), budge.Design(**options.pop("design", {}))
    X = pd.read_csv(folder / "people.csv").drop(columns=["outcome", "sex"])
    model: Any = dict.fromkeys(names, path) if names else path
    audit = budge.audit(model, X, InteractionModel.from_file(folder / "spec.yaml"), target=1, design=design, **options)
    swap = {"SPEC.yaml": str(folder / "spec.yaml"), "PEOPLE.csv": str(folder / "people.csv"), "MODEL": path}
    typed = [swap.get(part, part.replace("=MODEL", f"={path}")) for part in shlex.split(_command(audit))[1:]]
    assert main([*typed, "--drop", "outcome", "--drop", "sex", "-o", str(tmp_path / "run"), "-q"]) == 0
    again = budge.Audit.load(tmp_path / "run")
    pd.testing.assert_frame_equal(again.table, audit.table, check_dtype=False)
    assert again.design.but(why_n="").to_dict() == audit.design.but(why_n="").to_dict()
    assert again.wording == audit.wording


@pytest.mark.parametrize("label", [True, "1", "true", "yes", "lower", "score >= 1", "not x", 1, 1.0, -1, "a, b"])
def test_the_label_in_the_command_is_read_as_the_same_label(label: Any) -> None:
    from budge.models.reading import same_label
    from budge.report.contents import _target
    from budge.targets import Labels, parse_target

    text = _target(Labels((label,)).to_dict())
    if label == "a, b":  # commas separate labels on the shell
        assert text is None
        return
    assert text is not None
    (read,) = parse_target(text).values  # type: ignore[attr-defined]
    assert same_label(read, label)


def test_numbers_in_the_command_are_not_rounded() -> None:
    import pandas as pd

    import budge
    from budge.report.contents import _command

    im = budge.InteractionModel([budge.Feature("x", "integer", bounds=(0, 9))])
    audit = budge.audit(lambda t: (t["x"] > 4).astype(int), pd.DataFrame({"x": [1, 2]}), im, target=1, threshold=0.12345678, alpha=0.0123456789)
    assert "--threshold 0.12345678 --alpha 0.0123456789 " in _command(audit)


def test_the_command_has_the_groups_and_the_words_of_the_report(folder: Path, tmp_path: Path) -> None:
    """What the report was given besides the audit stands in the command, too: without it another report comes out."""
    X = pd.read_csv(folder / "people.csv").drop(columns=["outcome", "sex"])
    im, words = InteractionModel.from_file(folder / "spec.yaml"), budge.Wording(people_name="applicants")
    audit = budge.audit(str(folder / "loan.json"), X, im, target=1, wording=words)
    audit.to_html(tmp_path / "report.html", by=["home"], target_name="approval", group_labels={"home": {"0": "no home"}}, why=False)
    text = html.unescape((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "--by home --people-name applicants --target-name approval --group-label 'home:0=no home'" in text
