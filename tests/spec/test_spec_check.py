"""A spec against a table: what the report says is so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import budge
from budge import cli, constraints
from budge.errors import BudgeError, DrawError
from budge.spec import check, impossible

STUDIES = Path(__file__).parents[2] / "studies"


def binaries(*names: str) -> dict[str, dict[str, str]]:
    return {name: {"type": "binary"} for name in names}


def test_sizes_are_the_sizes_of_the_sets() -> None:
    im = budge.InteractionModel(
        {**binaries("a", "b", "c"), "n": {"type": "integer", "bounds": [0, 9], "direction": "increase"}},
        [constraints.OneHot(("a", "b", "c"))],
    )
    X = pd.DataFrame({"a": [1, 0], "b": [0, 1], "c": [0, 0], "n": [7, 2]})
    report = check(im, X)
    assert report.ok
    assert [p.sizes for p in report.parts] == [(3, 3), (3, 8)]
    assert [len(im.enumerate(X.iloc[[i]])) for i in (0, 1)] == [9, 24]
    assert (report.starts, report.exact_starts, report.points) == (2, 2, 9)
    assert "Exact computation: yes" in str(report)
    assert report.idle == ()


def test_what_is_said_to_be_listed_is_what_an_audit_lists() -> None:
    im = budge.InteractionModel({"n": {"type": "integer", "bounds": [0, 99]}, "m": {"type": "integer", "bounds": [0, 100]}})
    X = pd.DataFrame({"n": [3], "m": [4]})
    assert "no, more than 10,000 reachable points (median 10,100); the method `exact` lists them all the same" in " ".join(str(check(im, X)).split())
    less = im.relax("m", bounds=(0, 99))
    assert "Exact computation: yes" in str(check(less, X))
    for model, listed in ((im, "sample"), (less, "exact")):
        assert budge.audit(lambda t: t["n"] > 50, X, model, target=True).table["method"].tolist() == [listed]


def test_rows_that_break_it_are_counted_by_constraint_with_examples() -> None:
    im = budge.InteractionModel(
        {
            **binaries("a", "b"),
            "n": {"type": "integer", "bounds": [0, 9]},
            "home": {"type": "category", "levels": ["rent", "own"]},
        },
        [constraints.OneHot(("a", "b"), name="one of two"), constraints.IfThen("home == 'own'", "n >= 1")],
    )
    X = pd.DataFrame(
        {"a": [1, 1, 0, 1, 1, 1], "b": [0, 1, 0, 1, 1, 0], "n": [3, 3, 12, 0, 1, 1], "home": ["own"] * 4 + ["rent"] * 2}
    )
    report = check(im, X, examples=2)
    assert {b.label: b.rows for b in report.broken} == {"bounds of n": 1, "one of two": 4, "if_then(home, n)": 1}
    assert report.broken_rows == 4
    named = next(b for b in report.broken if b.label == "one of two")
    assert [row for row, _ in named.examples] == [1, 2]
    assert str(named).endswith("; …)")
    assert not report.ok
    by_hand = [bool(im.broken(X.iloc[[i]])) for i in range(len(X))]
    assert sum(by_hand) == report.broken_rows


def test_constraints_that_clash_are_named() -> None:
    im = budge.InteractionModel(
        {"a": {"type": "integer", "bounds": [0, 5]}, "b": {"type": "integer", "bounds": [0, 5], "actionable": False}},
        [constraints.Rule("a > before.a + 3", name="up"), constraints.Rule("a < before.a + 2", name="not far"), constraints.Rule("a >= b", name="fine")],
    )  # fmt: skip
    report = check(im, pd.DataFrame({"a": [1, 2], "b": [1, 0]}))
    assert [set(c.labels) for c in report.clashes] == [{"up", "not far"}]
    assert report.clashes[0].starts == 2
    assert not report.ok
    assert "clash" in str(report)


def test_constraints_that_never_bind_are_named_and_others_are_not() -> None:
    im = budge.InteractionModel(
        {
            "a": {"type": "integer", "bounds": [0, 5]},
            "b": {"type": "integer", "bounds": [0, 5]},
            "r": {"type": "real", "bounds": [0, 1]},
        },
        [
            constraints.Rule("a + b <= 10", name="always"),
            constraints.Rule("a <= b", name="binds"),
            constraints.Rule("r + a <= 6", name="always too"),
            constraints.Rule("r <= 0.5 + b", name="sometimes"),
        ],
    )
    report = check(im, pd.DataFrame({"a": [0, 1], "b": [1, 2], "r": [0.1, 0.2]}))
    assert report.idle == ("always", "always too")


def test_a_linkage_never_binds_if_its_source_never_moves() -> None:
    features = {
        "years": {"type": "integer", "bounds": [0, 5], "direction": "increase"},
        "age": {"type": "integer", "bounds": [0, 99], "actionable": False},
    }
    im = budge.InteractionModel(features, [constraints.DirectionalLinkage("years", {"age": 1}, name="ageing")])
    assert check(im, pd.DataFrame({"years": [5, 5], "age": [30, 40]})).idle == ("ageing",)
    assert check(im, pd.DataFrame({"years": [5, 4], "age": [30, 40]})).idle == ()


def test_where_the_measures_differ_is_said() -> None:
    """The fibres of the two settings of `on` have different lengths: 1 against 10."""
    im = budge.InteractionModel(
        {**binaries("on"), "r": {"type": "real", "bounds": [0, 10]}, "s": {"type": "real", "bounds": [0, 1]}},
        [constraints.IfThen("on == 1", "r <= 1")],
    )
    report = check(im, pd.DataFrame({"on": [1], "r": [0.5], "s": [0.5]}))
    assert [p.names for p in report.parts if p.measures_differ] == [("on", "r")]
    assert "differ here" in str(report)
    assert "no, continuous features move" in str(report)


def test_effects_forbid_exact_computation() -> None:
    im = budge.InteractionModel(binaries("a", "b"), effects=[budge.Effect("b", set="bernoulli(0.5)")])
    report = check(im, pd.DataFrame({"a": [0, 1], "b": [0, 1]}))
    assert report.exact_starts == 0
    assert "effects are random" in str(report)


def test_when_every_row_is_broken_nothing_is_claimed_of_typical_rows() -> None:
    im = budge.InteractionModel(binaries("a", "b"), [constraints.OneHot(("a", "b"))])
    report = check(im, pd.DataFrame({"a": [1, 0], "b": [1, 0]}))
    assert (report.broken_rows, report.starts, report.idle, report.clashes) == (2, 0, (), ())
    assert "unknown" in str(report)


def test_the_record_is_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    im = budge.InteractionModel(
        {**binaries("a", "b"), "n": {"type": "integer", "bounds": [0, 3], "missing": "fixed"}},
        [constraints.OneHot(("a", "b")), constraints.Rule("n >= a")],
    )
    im.to_file(tmp_path / "m.yaml")
    pd.DataFrame({"a": [1, 0, 1], "b": [0, 1, 1], "n": [1, np.nan, 9]}).to_csv(tmp_path / "d.csv", index=False)
    assert cli.main(["check", str(tmp_path / "m.yaml"), str(tmp_path / "d.csv"), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["rows"] == 3
    assert {"broken", "clashes", "never_bind", "parts", "typical_rows", "warnings"} <= set(record)
    assert cli.main(["check", str(tmp_path / "m.yaml"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["digest"] == im.digest


def test_a_spec_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check"]) == 2
    assert "a spec file is needed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("study", "data"),
    [
        ("german", "german"), ("twitterbot", "twitterbot"), ("compas", "compas"), ("recidivism", "simulate_rearrest_ny"),
        ("transplant_causal", "transplant_cohort"), ("transplant_random", "transplant_cohort"), ("transplant_deterministic", "transplant_cohort"),
    ],
)  # fmt: skip
def test_the_studies_pass_on_their_data(study: str, data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from budge import datasets

    shared = Path(__file__).parents[3] / "shared" / "data"
    if shared.is_dir():
        monkeypatch.setenv("BUDGE_DATA", str(shared))
    monkeypatch.setenv("BUDGE_OFFLINE", "1")
    try:
        X = datasets.load(data).X
    except BudgeError as error:
        pytest.skip(f"the data is not at hand: {error}")
    report = check(budge.InteractionModel.from_file(STUDIES / f"{study}.yaml"), X, starts=4)
    assert report.ok, str(report)


class Unmeasured:
    """A prepared part whose volume is not known; `drawn`: whether it can be drawn without."""

    sizes, method = (1,), "walk"
    endless, approximate, empty = np.ones(1, dtype=bool), np.ones(1, dtype=bool), np.zeros(1, dtype=bool)

    def __init__(self, drawn: bool) -> None:
        self.drawn = drawn

    @property
    def measures_differ(self) -> Any:
        raise DrawError("the volume is not known", remedy="couple fewer continuous features")

    def draw(self, at: Any, stream: Any, first: int, n: int) -> Any:
        if not self.drawn:
            raise DrawError("the volume is not known", remedy="couple fewer continuous features")
        return list(np.zeros((2, n)))


@pytest.mark.parametrize(
    ("measure", "drawn", "advised"),
    [("configuration", True, None), ("configuration", False, False), ("volume", True, True), ("volume", False, False)],
)
def test_a_measure_is_advised_only_where_it_is_another_and_works(
    monkeypatch: pytest.MonkeyPatch, measure: Any, drawn: bool, advised: bool | None
) -> None:
    monkeypatch.setattr("budge.reach.prepare.prepare", lambda part, x, measure: [(np.arange(1), Unmeasured(drawn))])
    im = budge.InteractionModel([budge.Feature(name, "real", bounds=(0, 1)) for name in "ab"], [constraints.Rule("a + b <= 1")], measure=measure)
    report = check(im, pd.DataFrame({"a": [0.0], "b": [0.0]}))
    (part,) = report.parts
    assert report.ok == (advised is None)
    assert part.problem == {
        None: "",
        True: "the volume is not known; couple fewer continuous features, or use measure: configuration",
        False: "the volume is not known; couple fewer continuous features",
    }[advised]
    assert f"Whether the measures `configuration` and `volume` differ here is not known (this spec: {measure}):" in str(report)
    assert "agree at these rows" not in str(report)
    assert report.to_dict()["parts"][0]["measures_differ"] is None


def test_many_coupled_reals_can_be_prepared_under_the_default_measure() -> None:
    names = [f"r{i}" for i in range(7)]
    features = [*(budge.Feature(name, "real", bounds=(0, 1)) for name in names), budge.Feature("on", "binary")]
    im = budge.InteractionModel(features, [constraints.Rule(f"{' + '.join(names)} <= 0.3 + 0.2 * on")])
    report = check(im, pd.DataFrame([{**dict.fromkeys(names, 0.0), "on": 0}]))
    assert report.ok
    assert "use measure" not in str(report)


def test_a_direction_on_a_dummy_of_a_one_hot_from_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, data, out = tmp_path / "m.yaml", tmp_path / "d.csv", tmp_path / "points.csv"
    spec.write_text(
        "budge: 1\nfeatures:\n  rent: {type: binary}\n  own: {type: binary, direction: increase}\n  free: {type: binary}\n"
        "constraints:\n  - one_hot: {features: [rent, own, free]}\n"
    )
    data.write_text("rent,own,free\n1,0,0\n0,1,0\n")
    assert cli.main(["check", str(spec), str(data), "--strict", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["ok"]
    assert record["parts"][0]["sizes"] == {"least": 1, "median": 1, "most": 3}
    assert cli.main(["sample", str(spec), str(data), "--out", str(out), "--quiet"]) == 0
    points = pd.read_csv(out)[["rent", "own", "free"]]
    assert sorted(map(tuple, points.drop_duplicates().values.tolist())) == [(0, 0, 1), (0, 1, 0), (1, 0, 0)]


def test_a_spec_that_no_values_meet_fails_the_strict_check_without_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text("budge: 1\nfeatures:\n  a: {type: binary}\n  b: {type: binary}\nconstraints:\n  - rule: a + b >= 3\n")
    assert cli.main(["check", str(spec), "--strict"]) == 1
    assert "No values within the bounds meet these together: " in capsys.readouterr().out
    assert cli.main(["check", str(spec)]) == 0
    spec.write_text(spec.read_text().replace("3", "2"))
    assert cli.main(["check", str(spec), "--strict", "--quiet"]) == 0


@pytest.mark.parametrize(
    ("features", "rule"),
    [
        ({"a": {"type": "real", "actionable": False}, "b": {"type": "real", "bounds": [0, 1]}}, "a + b >= 3"),
        ({"a": {"type": "real", "bounds": [0, 1]}, "b": {"type": "real", "bounds": [0, 1]}}, "a * b >= 3"),
        ({"a": {"type": "binary", "actionable": False}, "b": {"type": "binary", "direction": "increase"}}, "a + b <= 1"),
        ({"a": {"type": "binary"}, "b": {"type": "binary"}}, "action.a + action.b >= 3"),
    ],
)
def test_what_is_not_proved_impossible_for_all_is_not_called_so(features: Any, rule: str) -> None:
    assert impossible(budge.InteractionModel.from_spec({"budge": 1, "features": features, "constraints": [{"rule": rule}]})) == ()
