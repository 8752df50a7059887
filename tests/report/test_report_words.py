"""What a report calls things, and that its sentences are true in odd cases: one person, nobody, draws made anew, shares that round alike."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from report_kit import Page, approve, audited, loans

import budge
from budge import Feature, InteractionModel, constraints
from budge.cli import main
from budge.errors import InputError
from budge.report.answer import answer, undecided_by_draws
from budge.report.cases import cases
from budge.report.contents import _facts
from budge.report.document import render
from budge.report.figures.cdf import cdf
from budge.report.figures.dots import Gap, GroupShare, dots
from budge.report.figures.strip import MOST_HIGH, Marks, strip, unit_of
from budge.report.why import ablated, why
from budge.web import make_question
from budge.wording import Wording, check_names

PLAIN = Wording()


def text_of(audit: Any, **options: Any) -> str:
    page = Page(render(audit, **options))
    assert page.wrong == []
    return " ".join(page.text.split())


# -- names that are not there -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"feature_labels": {"incom": "x"}}, "feature_labels: no such feature (got 'incom'); did you mean 'income'"),
        ({"level_labels": {"hom": {"0": "x"}}}, "level_labels: no such feature (got 'hom'); did you mean 'home'"),
        ({"level_labels": {"home": {"0": "x", "1": "y", "2": "z"}}}, "level_labels: no such value of home (got '2'); known: 0, 1"),
        ({"level_labels": {"job": {"ful": "x"}}}, "level_labels: no such value of job (got 'ful'); did you mean 'full'"),
        ({"group_labels": {"hom": {"0": "x"}}}, "group_labels: no such column (got 'hom'); did you mean 'home'"),
        ({"group_labels": {"job": {"nonne": "x"}}}, "group_labels: no such value of job (got 'nonne'); did you mean 'none'"),
    ],
)  # fmt: skip
def test_a_label_for_what_is_not_there_is_an_error_before_any_work(words: dict[str, Any], told: str, tmp_path: Path) -> None:
    X, im = loans()
    asked = []

    def model(table: pd.DataFrame) -> np.ndarray:
        asked.append(len(table))
        return approve(table)

    for call in (
        lambda: budge.audit(model, X, im, target=1, wording=words),
        lambda: budge.prove(model, X, im, target=1, execution=budge.Execution(wording=words)),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert told in str(caught.value)
    assert asked == []
    audit = audited(groups="home")
    with pytest.raises(InputError) as caught:
        audit.to_html(tmp_path / "report.html", **words)
    assert told in str(caught.value)
    saved = budge.Audit.load(audit.save(tmp_path / "run"))
    with pytest.raises(InputError):
        saved.to_html(tmp_path / "report.html", **words)
    assert not (tmp_path / "report.html").exists()


def test_all_labels_for_what_is_not_there_are_one_error(tmp_path: Path) -> None:
    X, im = loans()
    words = {
        "feature_labels": {"incom": "x", "savngs": "y"}, "level_labels": {"hom": {"0": "x"}, "job": {"ful": "x", "par": "y"}},
        "group_labels": {"hme": {"0": "x"}, "job": {"nonne": "x"}},
    }  # fmt: skip
    calls = [
        lambda: budge.audit(approve, X, im, target=1, wording=words), lambda: make_question(approve, X, im, target=1, wording=words),
        lambda: audited().to_html(tmp_path / "report.html", **words),
    ]  # fmt: skip
    if importlib.util.find_spec("pyarrow") is not None:  # of a stream the columns alone are known
        columns = {**words, "group_labels": {"hme": {"0": "x"}, "jb": {"nonne": "x"}}}
        calls.append(lambda: budge.audit(approve, iter([X]), im, target=1, wording=columns))
    for call in calls:
        with pytest.raises(InputError) as caught:
            call()
        assert len(caught.value.problems) == 7, str(caught.value)


def test_labels_of_groups_are_looked_at_beside_those_of_the_design_and_in_a_saved_run(tmp_path: Path) -> None:
    X, im = loans()
    named = {"home": {"0": "rents", "1": "owns"}}
    with pytest.raises(InputError, match="no such column"):
        budge.audit(approve, X, im, target=1, groups=named, wording={"group_labels": {"hme": {"rents": "x"}}})
    audit = budge.audit(approve, X, im, target=1, groups=named, population="all")
    saved = budge.Audit.load(audit.save(tmp_path / "run"))
    for found in (audit, saved):
        with pytest.raises(InputError, match="no such value of home"):
            found.to_html(tmp_path / "report.html", group_labels={"home": {"rent": "x"}}, why=False)
        found.to_html(tmp_path / "report.html", group_labels={"home": {"rents": "tenants"}}, why=False, overwrite=True)
        assert "of tenants" in " ".join(Page((tmp_path / "report.html").read_text(encoding="utf-8")).text.split())


def test_labels_of_rules_and_of_values_that_do_not_occur_are_no_mistake() -> None:
    X, im = loans()
    check_names(Wording(feature_labels={"effort": "what a person can do", "income": "pay"}), im, X)
    check_names(Wording(group_labels={"home": {"0": "rents", "1": "owns", "2": "other"}}), im, X)  # every value that occurs has a label
    check_names(Wording(group_labels={"anything": {"0": "x"}}), im)  # nothing is known of people


def test_the_shell_refuses_labels_for_what_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X, im = loans()
    xgboost = pytest.importorskip("xgboost", reason="a model file is needed")
    rich = X[["income", "savings"]].assign(region="north")
    xgboost.XGBClassifier(n_estimators=4, max_depth=2, n_jobs=1).fit(X[["income", "savings"]], approve(X)).save_model(tmp_path / "m.json")
    rich.to_csv(tmp_path / "people.csv", index=False)
    InteractionModel(im.features[:2], name="loans").to_file(tmp_path / "spec.yaml")
    files = [str(tmp_path / "spec.yaml"), str(tmp_path / "people.csv"), "--model", str(tmp_path / "m.json"), "--target", "1", "--drop", "region"]
    assert main(["audit", *files, "--by", "region", "--group-label", "region:north=the north", "-o", str(tmp_path / "run"), "-q"]) == 0
    assert budge.Audit.load(tmp_path / "run").wording.group_labels == {"region": {"north": "the north"}}
    serve = ["serve", "--spec", files[0], "--data", files[1], *files[2:], "--no-open"]
    calls = (["audit", *files], ["prove", *files], ["recourse", *files, "--person", "0"], ["report", str(tmp_path / "run")], serve)
    for call in calls:
        capsys.readouterr()
        assert main([*call, "--feature-label", "incom=pay"]) == 2, call
        assert "--feature-label: no such feature (got 'incom'); did you mean 'income'" in " ".join(capsys.readouterr().err.split())
        assert main([*call, "--level-label", "incom:1=low"]) == 2, call
        assert "--level-label: no such feature" in " ".join(capsys.readouterr().err.split())
    for call in (calls[0], calls[3], serve):
        assert main([*call, "--group-label", "regio:north=n"]) == 2, call
        assert "--group-label: no such column (got 'regio')" in " ".join(capsys.readouterr().err.split())
    assert main([*calls[0], "--group-label", "region:nort=n"]) == 2
    assert "no such value of region (got 'nort'); did you mean 'north'" in " ".join(capsys.readouterr().err.split())


# -- values in words ----------------------------------------------------------------------------------------------------------


def test_values_of_binary_features_read_no_and_yes_or_as_labelled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    im = InteractionModel([Feature("guarantor", "binary"), Feature("loans", "integer", bounds=(0, 1))])
    audit = budge.audit(lambda t: (t["guarantor"] == 1).astype(int), pd.DataFrame({"guarantor": [0], "loans": [0]}), im, target=1)
    text = text_of(audit)
    assert "Least change that works (every reachable point was asked about): guarantor no → yes" in text
    assert "guarantor: no → yes" in text  # in the table of everybody
    assert "has guarantor: yes" in text
    (case,) = cases(audit, "model", {}, PLAIN.of_model(im), im)
    assert [cell["text"] for cell in case["table"][1]] == ["no", "yes"]
    audit.save(tmp_path / "run")
    assert main(["report", str(tmp_path / "run"), "--level-label", "guarantor:0=without", "--level-label", "guarantor:1=with", "-q"]) == 0
    again = " ".join(Page((tmp_path / "run" / "report.html").read_text(encoding="utf-8")).text.split())
    assert "guarantor without → with" in again
    assert "no → yes" not in again


def test_a_number_between_0_and_1_is_no_answer_to_a_question() -> None:
    im = InteractionModel([Feature("loans", "integer", bounds=(0, 1))])
    audit = budge.audit(lambda t: (t["loans"] == 1).astype(int), pd.DataFrame({"loans": [0]}), im, target=1)
    assert "loans 0 → 1" in text_of(audit)


# -- sentences in odd cases -----------------------------------------------------------------------------------------------------


def test_one_person_has_a_verdict_and_no_share() -> None:
    X, im = loans()
    made = answer(budge.audit(approve, X.iloc[:1], im, target=1, population="all", method="sample"), "model", PLAIN)
    assert len(made.legend) == 1
    assert "%" not in made.legend[0]["words"]
    assert "points were asked about; the verdict is that ρ is above the threshold 0.1 (wrong with probability at most 5 %)." in " ".join(made.lede)


def test_nobody_was_judged_since_points_cannot_be_listed() -> None:
    im = InteractionModel([Feature("income", "real", bounds=(0, 9))])
    audit = budge.audit(lambda t: (t["income"] > 4).astype(int), pd.DataFrame({"income": [1.0, 2.0], "g": [0, 1]}), im, target=1, method="exact", groups="g")
    text = text_of(audit)
    assert "the points of any of 2 people cannot be listed, and the audit was to list only. The method “auto” draws them." in text
    assert 'href="#who"' not in render(audit)  # no groups of nobody


def test_groups_without_a_finding_and_shares_that_round_alike() -> None:
    assert "Nobody in either group was found to have no way at all." in text_of(audited(threshold=0, method="sample", groups="home"))
    im = InteractionModel([Feature("x", "integer", bounds=(0, 1)), Feature("g", "integer", bounds=(0, 1), actionable=False)])
    X = pd.DataFrame({"x": 0, "g": np.repeat([0, 1], [77, 98])}).assign(stuck=lambda t: (~t["g"].duplicated()).astype(int))
    im = InteractionModel([*im.features, Feature("stuck", "binary", actionable=False)])
    text = text_of(budge.audit(lambda t: ((t["x"] == 1) & (t["stuck"] == 0)).astype(int), X, im, target=1, groups="g"))
    assert "1.3 % of g = 0 (1 of 77) have almost no way, and 1 % of g = 1 (1 of 98)" in text


def test_shares_of_many_groups_are_by_verdicts_where_they_are_drawn() -> None:
    X, _ = loans()
    three = pd.Series(np.array(["a", "b", "c"])[np.arange(40) % 3], index=X.index, name="letter")
    for method, told in (("sample", True), ("exact", False)):
        heading = next(line for line in render(audited(method=method), by=[three]).split("\n") if "runs from" in line)
        assert (", by verdicts" in heading) == told


def test_every_one_of_them_is_all_of_them() -> None:
    im = InteractionModel([Feature("x", "integer", bounds=(0, 3))], [constraints.LinearConstraint({"x": 1}, "<=", 1, name="the cap")])
    audit = budge.audit(lambda t: (t["x"] == 3).astype(int), pd.DataFrame({"x": [0, 1]}), im, target=1)
    found, about = ablated(audit, "model")
    made = why(audit, "model", found, about, PLAIN)
    assert made is not None
    assert made["heading"] == "Relaxing one rule would give a way to all 2 people without one: “the cap” does not hold."


@pytest.mark.parametrize("options", [{"sequential": True}, {"proposal": {"savings": {"weights": {k: 1 + k for k in range(5)}}}, "n": 400}, {"n": 400}])
def test_why_states_that_people_were_drawn_anew_where_they_were(options: dict[str, Any]) -> None:
    audit = audited(method="sample", population="outside", **options)
    found, about = ablated(audit, "model")
    assert found is not None
    if "sequential" not in options and "proposal" not in options:
        assert about == ""
        return
    assert f"for {len(audit.table)} people, {found.info['n']:,} points each were drawn anew" in about
    assert ("stopped early" in about) == ("sequential" in options)
    assert about in text_of(audit)


def test_digests_have_their_algorithm_and_packages_their_version() -> None:
    sklearn = pytest.importorskip("sklearn", reason="a model of a package is needed")
    from sklearn.linear_model import LogisticRegression

    X, im = loans()
    some = InteractionModel(im.features[:2])
    model = LogisticRegression().fit(X[["income", "savings"]], approve(X))
    audit = budge.audit(model, X[["income", "savings"]], some, target=1, population="all")
    assert audit.info["packages"] == {"scikit-learn": sklearn.__version__}
    text = text_of(audit)
    assert f"scikit-learn {sklearn.__version__}" in text
    assert f"Digest of model SHA-256 {audit.info['model_digests']['model']}" in text
    assert f"Digest of the people BLAKE2b-128 {audit.info['data_digest']}" in text


@pytest.mark.parametrize("people", [1, 31, 400, 2505, 30_000])
def test_a_strip_is_no_higher_than_a_screen(people: int) -> None:
    rho = np.full(people, 0.5)
    marks = Marks(rho, np.full(people, 5, dtype=np.int8), np.zeros(people, bool), np.zeros(people, bool))
    svg = strip(marks, 0.1, "screen", axis="ρ")
    assert float(svg.split('height="')[1].split('"')[0]) < 450
    assert people / unit_of(marks) <= MOST_HIGH + 1
    assert unit_of(marks) == 1 or people > MOST_HIGH  # no coarser than it must be


def test_the_rule_that_holds_drawn_people_back_is_named_on_the_first_screen() -> None:
    """Where nobody is known to be without a way, it is told of people without a hit."""
    text = Page(render(audited(method="sample", n=100, population="outside"))).text
    found = re.search(r"Question the rule that holds most people back\. If (.+?), a way is found for (\d+) people without a hit", " ".join(text.split()))
    assert found is not None
    (able,) = re.findall(r"finds a way to the target \(the output is 1\) for (\d+) of the \d+ people without a hit", " ".join(text.split()))
    assert found[2] == able


def test_who_has_the_target_already_is_not_called_by_the_name_of_those_who_are_judged() -> None:
    audit = audited(model=lambda t: np.ones(len(t), dtype=int), population="outside")
    text = Page(render(audit, nouns=Wording(people_name="refused applicants", target_name="approval"))).text
    assert "Nobody was judged: all 40 people who were given have approval already." in text


def test_more_draws_are_no_remedy_for_missing_answers() -> None:
    X, im = loans()

    def mute(table: pd.DataFrame) -> Any:
        return np.where((table["job"] == "full").to_numpy(), np.nan, approve(table))  # no start is so

    options = {"design": budge.Design(max_unresolved=1.0), "execution": budge.Execution(check=False), "population": "all"}
    audit = budge.audit(mute, X, im, target=1, method="sample", n=60, **options)
    assert audit.summary().verdicts["inconclusive"] > 10
    assert undecided_by_draws(audit, "model") <= 2  # whose ends lie on one side of the threshold, by these draws
    text = Page(render(audit)).text
    assert "Get the answers that are missing." in text
    assert "Draw more points." not in text


def test_the_card_names_target_people_and_threshold() -> None:
    facts = dict(_facts(audited(population="outside", threshold=0.3), Wording(threshold_reason="as agreed")))
    assert facts["Target"] == "the output is 1"
    assert facts["People"] == "40 given; those who do not have the target yet: 19 of them (21 already have it)"
    assert (facts["Threshold"], facts["Why this threshold"]) == ("0.3, claim “below”, alpha 0.05", "as agreed")


def test_names_of_groups_that_are_cut_still_tell_them_apart() -> None:
    groups = [GroupShare(f"a column with a name of forty letters {k} = {k}", 10, k, k / 10, 0.0, 0.5) for k in (1, 2)]
    for medium in ("screen", "phone", "paper"):
        drawn = dots(groups, Gap(groups[1].name, groups[0].name, 0.1, -0.1, 0.3), medium, about="share")
        first, second = re.findall(r'<text class="strong" x="0" y="[\d.]+">(.*?)</text>', drawn)
        assert (first.endswith("= 1"), second.endswith("= 2"), "…" in first) == (True, True, True)
        assert ">difference, points<" in drawn


def test_a_model_that_judges_nobody_has_no_line_in_the_distribution() -> None:
    X, im = loans()
    models = {"yes": lambda t: np.ones(len(t), dtype=int), "points": approve}
    assert "yes" not in cdf(budge.audit(models, X, im, target=1)).svg()


def test_an_unnamed_interaction_model_has_no_name_and_points_are_counted_alike() -> None:
    """The class is no name; the points that were listed are those of the answer, and what is asked besides is told."""
    im = InteractionModel([Feature("x", "integer", bounds=(0, 9), max_increase=3)])
    X = pd.DataFrame({"x": [0, 1, 3, 4]})
    audit = budge.audit(lambda t: (t["x"] > 4).astype(int), X, im, target=1)
    assert audit.info["name"] == ""
    text = text_of(audit)
    assert "InteractionModel" not in text
    assert "unnamed" not in text
    points = int(audit.table["n"].sum())
    assert f"all {points} points that these people can reach" in text
    assert f"over every reachable point ({points} in all); {points + int((audit.table['hits'] > 0).sum())} points asked, witnesses twice." in text


def test_where_all_are_undecided_the_first_sentence_states_that() -> None:
    X = pd.DataFrame({"x": [0, 1, 3]})
    im = InteractionModel([Feature("x", "integer", bounds=(0, 9), max_increase=3)])
    starts = set(X["x"])
    deaf = lambda t: np.array([0.0 if x in starts else np.nan for x in t["x"]])  # noqa: E731
    audit = budge.audit(deaf, X, im, target=1, design=budge.Design(max_unresolved=1.0))
    assert set(audit.table["verdict"]) == {"inconclusive"}
    assert "All 3 people are undecided: of nobody is it shown whether they have almost no way to the target" in text_of(audit)


def test_a_figure_about_one_of_several_models_names_it() -> None:
    X, im = loans()
    models = {"generous": lambda t: np.ones(len(t), dtype=int), "strict": approve}
    audit = budge.audit(models, X, im, target=1)
    assert not len(audit.of_model("generous"))
    assert audit.plot().note.startswith("strict: ")
    assert "all by draws: their ρ is an estimate" in budge.audit(approve, X, im, target=1, method="sample").plot().note


def test_one_person_with_some_way_is_neither_the_narrowest_nor_the_widest() -> None:
    im = InteractionModel([Feature("x", "integer", bounds=(0, 9), max_increase=3)])
    audit = budge.audit(lambda t: (t["x"] > 4).astype(int), pd.DataFrame({"x": [4]}), im, target=1)
    assert "1 person in full: some way." in text_of(audit)


def test_a_group_figure_names_its_model_in_whole_on_a_phone() -> None:
    shares = [GroupShare("women", 65, 9, 9 / 65, 0.06, 0.26), GroupShare("men", 99, 29, 29 / 99, 0.2, 0.41)]
    assert ">share with almost no way, XGBoost<" in dots(shares, None, "phone", about="share with almost no way, XGBoost")


def test_many_models_are_not_crossed_without_a_word() -> None:
    X, im = loans()
    text = text_of(budge.audit({f"m{k}": approve for k in range(5)}, X, im, target=1), why=False)
    assert "Every two models are crossed where there are at most 4" in text
    assert "Every two models are crossed" not in text_of(budge.audit({f"m{k}": approve for k in range(2)}, X, im, target=1), why=False)
