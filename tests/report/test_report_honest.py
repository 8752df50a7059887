"""What a report says of numbers: one rounding, what is exact, what an interval is about, and what includes chance."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd
import pytest
from report_kit import Page, approve, audited, loans, unanswered

import budge
from budge import Effect, Feature, InteractionModel, constraints
from budge.cli.answers import show_run
from budge.report.answer import told_of
from budge.report.document import render
from budge.report.figures.dots import points
from budge.report.people import number
from budge.report.why import ablated

IM = InteractionModel([Feature("a", "integer", bounds=(0, 9))], name="\x1b[31mred")


def at(cut: int, threshold: float) -> Any:
    return budge.audit(lambda t: (t["a"] >= cut).astype(int), pd.DataFrame({"a": [0]}, index=["x"]), IM, target=1, threshold=threshold, population="all")


def test_numbers_read_alike_with_and_without_the_script() -> None:
    assert [number(v) for v in (0.03125, 0.5, 0.1005, 1.0, 12345, 1234.5678, -0.03125)] == ["0.0313", "0.5", "0.101", "1", "12,345", "1,235", "−0.0313"]
    node = shutil.which("node")
    if node is None:  # Playwright brings one
        driver = pytest.importorskip("playwright._impl._driver", reason="neither node nor playwright is here to run the page's own rule")
        node = driver.compute_driver_executable()[0]
    script = (files("budge.report") / "assets" / "report.js").read_text(encoding="utf-8")
    found = re.search(r"const shown = \(v\) => \{.*?\n  \};", script, re.S)
    assert found is not None
    rng = np.random.default_rng(0)
    values = [k / n for n in (7, 32, 64, 128, 224, 1000, 4096) for k in range(0, n, max(1, n // 60))]
    values += [*rng.uniform(0, 1, 500), *(10.0 ** rng.uniform(-12, 0, 500)), *rng.uniform(-1, 1, 100), *rng.integers(0, 10**7, 50).tolist()]
    values = [int(v) if float(f"{v:.6g}").is_integer() and abs(v) < 1e6 else v if isinstance(v, int) else float(f"{v:.6g}") for v in values]
    code = f"{found[0]} console.log(JSON.stringify({json.dumps(values)}.map(shown)))"
    said = json.loads(subprocess.run([node, "-e", code], capture_output=True, text=True, check=True).stdout)
    assert said == [number(v) for v in values]


def test_at_the_threshold_is_neither_below_nor_above() -> None:
    text = said(at(9, 0.1))
    assert "It equals the threshold: neither below nor above" in text
    assert "For 1 person ρ equals the threshold exactly: at the threshold, neither below nor above" in text
    assert "1 at the threshold" in text
    assert "equals the threshold exactly" not in said(at(1, 0.1))


@pytest.mark.parametrize("threshold", [0.0, 0.1])
def test_a_way_that_a_proof_finds_is_no_lack_of_proof(threshold: float, capsys: pytest.CaptureFixture[str]) -> None:
    linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is in the `models` extra").LogisticRegression()
    linear.classes_, linear.coef_, linear.intercept_ = np.array([0, 1]), np.array([[1.0, 1.0]]), np.array([-97.5])
    linear.feature_names_in_, linear.n_features_in_ = np.array(["a", "b"], dtype=object), 2
    im = InteractionModel([Feature("a", "integer", bounds=(0, 49)), Feature("b", "integer", bounds=(0, 49))], name="wide")
    X = pd.DataFrame({"a": [1, 2, 3], "b": [4, 5, 6]})  # 1 of 2,500 points attains the target
    audit = budge.audit(linear, X, im, target=1, method="sample", n=30, seed=2, prove=True, threshold=threshold)
    assert (audit.table["proof"] == "possible").all()
    assert not audit.table["hits"].any()
    numbers = told_of(audit, "model", audit.wording).numbers
    assert numbers["nohit"] == 0
    assert numbers["above" if threshold == 0 else "below"] == 3
    show_run(audit, [], "")
    text = said(audit)
    for words in (" ".join(capsys.readouterr().out.split()), text):
        assert "All 3 people have a way" in words or "each has at least one" in words
        assert "no hit, not proved (" not in words
        assert "No hit, not proved:" not in words
        assert "3 people have no hit in" not in words
    assert "That is no proof that there is no way" not in text
    assert "A point that does was found from the model's structure" in text
    if threshold:  # else nobody is asked about
        relaxed, _ = ablated(audit, "model")
        assert relaxed is None or (relaxed.without == (0, 0) and not relaxed.table["seen_only_after"].any())


def test_a_proof_is_advised_where_draws_have_no_hit_and_not_where_answers_are_missing(capsys: pytest.CaptureFixture[str]) -> None:
    lost = unanswered()
    assert lost.summary().open_ways
    show_run(lost, [], "")
    assert "--prove" not in capsys.readouterr().out
    show_run(audited(method="sample", n=40), [], "")
    assert "--prove can settle who has no way at all, for a model that can be read" in " ".join(capsys.readouterr().out.split())


def test_names_cannot_steer_a_terminal() -> None:
    audit = at(5, 0.1)
    for result in (audit, audit.summary()):
        assert "\x1b" not in str(result)
        assert "red" in str(result)
    assert "1 people (100 %)" not in str(audit)
    exact = budge.audit(lambda t: (t["a"] > 8).astype(int), pd.DataFrame({"a": range(5)}), IM, target=1, threshold=0.2)
    assert "Exactly 5 of these 5 people (100 %) are below the threshold." in str(exact)


def test_names_of_an_ablation_cannot_steer_a_terminal() -> None:
    im = InteractionModel([Feature("a", "integer", bounds=(0, 9), max_increase=2)], name="\x1b[31mred")
    gone = budge.ablate(lambda t: (t["a"] > 5).astype(int), pd.DataFrame({"a": [0]}), im, target=1)
    assert "\x1b" not in str(gone)
    assert "red" in str(gone)


def test_groups_are_in_one_order_and_say_what_intervals_are_about() -> None:
    audit = audited()
    group = pd.Series(np.where(np.arange(40) % 3 == 0, "b", "a"), index=audit.table.index, name="letter")
    assert list(dict.fromkeys(audit.by(group).index.get_level_values("group"))) == ["a", "b"]
    figure = audit.plot("verdicts", by=group)
    assert figure.title.endswith("by letter")
    assert [t.split(" ")[0] for t in next(t for t in figure.ticks if t.axis == "y").titles] == ["a", "b"]
    assert "random sample" not in figure.note
    assert "the share of people who are below the threshold" in figure.note
    sizes = pd.Series(pd.Categorical(np.where(np.arange(40) % 3 == 0, "small", "large"), ["small", "large"]), index=audit.table.index)
    assert list(dict.fromkeys(audit.by(sizes).index.get_level_values("group"))) == ["small", "large"]
    for options, cells in (({}, 6), ({"method": "sample"}, 8)):  # exact shares need no column for what is true
        page = Page(render(audited(**options), by=[group]))
        assert ("hold the share of people of whom it is true, whatever their verdicts" in " ".join(page.text.split())) == bool(options)
        order = [row[0] for row in page.rows if len(row) == cells and row[0] in ("a", "b")]
        assert order == ["a", "b"]


def test_the_largest_changes_are_shown_up_or_down() -> None:
    X, im = loans()
    found = budge.ablate(approve, X, im, target=1, population="all")
    gains = found.ranking["gain"].abs()
    for most in range(1, len(gains) + 1):
        some = found.largest(most)
        assert some.index.is_monotonic_increasing
        assert some["gain"].abs().min() >= gains.drop(some.index).max() or most == len(gains)
    assert (found.ranking["gain"] < 0).any()  # else the test shows nothing
    figure = found.plot()
    assert "−" in figure.about
    assert "+-" not in figure.about
    page = Page(render(audited(), ablation=found))
    rows = {row[0]: row for row in page.rows if row and row[0] in set(found.relaxations) and len(row) == 6}
    for _, row in found.ranking.iterrows():
        shown = rows[row["relaxation"]]
        assert (shown[2] == "exact") == (row["low"] == row["high"])
        assert shown[1].startswith("−") == (row["gain"] < 0)


def test_what_chance_adds_is_said() -> None:
    im = InteractionModel(
        [Feature("study", "integer", bounds=(0, 3)), Feature("mark", "integer", bounds=(0, 20), actionable=False)], [],
        [Effect("mark", add="normal(2 * action.study, 1)", round=True, clip=(0, 20), name="luck of the day")], name="school",
    )  # fmt: skip
    audit = budge.audit(lambda t: (t["mark"] > 6).astype(int), pd.DataFrame({"study": [0, 1], "mark": [3, 4]}), im, target=1, seed=2)
    page = Page(render(audit))
    assert "(luck of the day)" in page.text
    assert "includes a draw of chance" in page.text
    assert "(includes a draw of chance)" in " ".join(page.text.split())
    assert "draw of chance" not in Page(render(audited())).text


def test_a_thermometer_is_told_the_right_way_round() -> None:
    text = constraints.Thermometer(("CheckingAcct_exists", "CheckingAcct>=0"), direction="increase").describe()
    assert text == "CheckingAcct_exists, CheckingAcct>=0 stay a thermometer (a dummy is on only if all before it are), and can only increase."


# -- what is claimed, and of whom ---------------------------------------------------------------------------------------


def said(audit: Any, **more: Any) -> str:
    page = Page(render(audit, **more))
    assert page.wrong == []
    return " ".join(page.text.split())


def yes(table: pd.DataFrame) -> np.ndarray:
    return np.ones(len(table), dtype=int)


def test_a_report_about_nobody_one_person_and_people_without_answers() -> None:
    from budge.models import PredictionFile, point_keys

    X, im = loans()
    nobody = budge.audit(yes, X, im, target=1)
    assert len(nobody.table) == 0
    text = said(nobody, by=["home"])
    assert "Nobody was judged: all 40 people who were given have the target already. The population “all” takes everyone." in text
    assert "0 of them (40 already have it)" in text
    assert nobody._repr_html_()
    both = said(budge.audit({"yes": yes, "points": approve}, X, im, target=1), by=["home"])
    assert "yes about 0 people, points about 19 people; 0 are the same people for all models" in both
    assert "very same points" not in both
    one = budge.audit(approve, X.iloc[[0]], im, target=1, population="all")
    assert "1 person was given" in said(one, by=["home"])
    known = PredictionFile.from_frame(pd.DataFrame({"key": point_keys(X), "prediction": approve(X)}))
    for method in ("exact", "sample"):
        lost = budge.audit(known, X, im, target=1, method=method, design=budge.Design(max_unresolved=1.0), execution=budge.Execution(check=False))
        assert (lost.table["verdict"] == "inconclusive").mean() > 0.5
        text = said(lost, by=["home"])
        assert "They are counted against every claim" in text
        assert ("lies between known ends elsewhere" in text) == (method == "exact")


def test_every_law_has_its_own_promise() -> None:
    both = "A false “below” (given to a person whose ρ is 0.3 or more) has probability at most 5 % per person, and so has a false “above”"
    for options, head in (
        ({"method": "sample"}, "Sampled (40 people)"),
        ({"method": "sample", "sequential": True}, "Sequential (40 people)"),
        ({"method": "sample", "proposal": {"savings": {"weights": {0: 2, 1: 1, 2: 1, 3: 1, 4: 1}}}}, "Weighted ("),
    ):
        text = said(audited(threshold=0.3, **options))
        assert head in text
        assert both in text
        assert "cannot be wrong" not in text or "Exact (" in text
    text = said(audited())
    assert "Exact (40 people)" in text
    assert "at most 5 %" not in text
    assert "Benjamini" not in text


def test_draws_of_a_chain_promise_nothing() -> None:
    from dataclasses import replace

    sure = audited(threshold=0.3, method="sample")
    rows = {n: replace(r, counts=replace(r.counts, approximate=np.ones(len(r.index), bool))) for n, r in sure.rows.items()}
    rough = replace(sure, rows=rows)
    assert set(rough.table["exactness"]) == {"approximate"}
    text = said(rough, by=["home"])
    assert "Approximate (40 people)" in text
    assert "no error rate is guaranteed" in text
    assert "probability at most" not in text
    assert "hold together with confidence" not in text
    assert "with confidence" not in rough.plot("verdicts", by="home").note


def test_no_way_is_counted_and_threshold_zero_is_asked() -> None:
    audit = audited(population="outside")
    none = int((audit.table["extreme"] == "none").sum())
    assert none > 0
    assert f"{none} are known to have no way at all" in said(audit)
    assert f"{none} have none at all" in said(audit) or f"{none} of 19 people have no way at all" in said(audit)
    never = audited(population="outside", threshold=0)
    text = said(never, by=["home"])
    assert f"{none} of 19 people have no way at all to the target (the output is 1)." in text
    assert "whether they have any way at all" in text
    page = Page(render(never, by=["home"]))
    wide = [row for row in page.rows if len(row) == 5 and row[0].startswith("home = ")]
    assert sum(int(row[2].split()[0]) for row in wide) == none
    drawn = said(audited(population="outside", threshold=0, method="sample"))
    assert "No number of draws proves that there is none" in drawn


def test_groups_have_differences_that_agree_with_the_audit() -> None:
    audit = audited(threshold=0.3, method="sample", groups=["home", "job"])
    page = Page(render(audit))  # the design's groups, unless others are given
    text = " ".join(page.text.split())
    assert "By home" in text
    assert "By job" in text
    row = audit.differences("home", alpha=audit.design.alpha / 2).iloc[0]
    low, high = sorted((row["low"], row["high"]) if row["verdicts"] >= 0 else (-row["high"], -row["low"]))
    ends = " and ".join(f"{100 * end:.1f}".replace("-", "−") for end in (low, high))
    assert f"the difference of these people lies between {ends} points (95 % confidence for all groups together)" in text
    table = audit.summary().groups["home"]
    for group in (0, 1):  # the table of the report and the sentence of the summary give the same ends
        wide = next(r for r in page.rows if len(r) == 8 and r[0] == f"home = {group}")
        low = float(wide[4].split("%")[0]) / 100
        assert low == pytest.approx(table.loc[(group, "below"), "low"], abs=6e-4)


def test_the_words_name_nobody_she() -> None:
    text = said(audited(threshold=0.3, method="sample", model={"a": approve, "b": yes}, population="outside"), by=["home"])
    assert not re.search(r"\b(she|her|hers)\b", text, re.I)


# -- what misled readers ------------------------------------------------------------------------------------------------


def test_an_interval_and_its_p_value_agree_and_no_end_is_rounded_to_nothing() -> None:
    found = budge.stats.difference(29, 99, 9, 65)
    assert (found.low > 0) == (found.p_value < 0.05)
    assert (round(100 * found.estimate), round(100 * found.high)) == (15, 28)
    assert points(found.low) == "2.1"
    assert points(-0.0) == "0"


def test_the_answer_is_about_the_first_model_that_judges_anybody() -> None:
    X, im = loans()
    audit = budge.audit({"yes": yes, "points": approve}, X, im, target=1)
    text = said(audit, by=["home"])
    assert "Nobody was judged" not in text
    assert "model points" in text
    assert "have almost no way" in text or "no way at all to" in text
    assert "people in full, points: from " in text
    page = Page(render(audit))
    assert page.data["main"] == 1
    assert [row[0] for row in page.rows if row and row[0] in set(X.index)][:3] == list(audit.of_model("points").index[:3])


def test_figures_of_groups_name_their_model() -> None:
    X, im = loans()
    models = {"strict": approve, "two": lambda t: np.maximum(approve(t), (t["savings"].astype(float) > 3).astype(int))}
    audit = budge.audit(models, X, im, target=1, threshold=0.3)
    labels = [attributes.get("aria-label") for tag, attributes in Page(render(audit, by=["home"])).tags if tag == "svg"]
    groups = [label for label in labels if label and label.startswith("share with almost no way")]
    assert len(groups) == 6  # three media each
    assert {label.split(", ")[1].split(":")[0] for label in groups} == {"strict", "two"}
    assert "share with almost no way:" in render(audited(threshold=0.3), by=["home"])


def test_people_who_have_the_target_do_not_dilute_the_answer() -> None:
    everyone, outside = audited(threshold=0.3), audited(threshold=0.3, population="outside")
    below = outside.people("below")
    text = said(everyone)
    assert f"{40 - len(outside.table)} of these people have the target as they are. Of the other {len(outside.table)}, {len(below)} have almost no way." in text
    assert "the target as they are" not in said(outside)


def test_intervals_of_bars_are_those_of_the_claim_and_start_at_its_side() -> None:
    for claim in ("below", "above"):
        audit = audited(threshold=0.3, method="sample", n=60, claim=claim, groups="home")
        figure = audit.plot("verdicts", by="home")
        table = audit.by("home").xs(claim, level="verdict")
        for _, row in table.iterrows():
            assert f"between {row['low']:.1%} and {row['high']:.1%}" in figure.about
        first = min((mark for mark in figure.marks if type(mark).__name__ == "Bar"), key=lambda mark: mark.x0)
        assert f"“{claim}”" in first.title


def test_no_adjustment_is_told_where_nothing_is_tested() -> None:
    im = budge.InteractionModel([budge.Feature("x", "integer", bounds=(0, 9))])
    X = pd.DataFrame({"x": [1, 2, 3]})
    for threshold in (0.0, 0.1):
        audit = budge.audit(lambda t: (t["x"] > 4).astype(int), X, im, target=1, method="sample", n=50, threshold=threshold)
        assert ("after the adjustment for many tests" in render(audit)) == (threshold > 0)
