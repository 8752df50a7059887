"""Every number of the page is what the library computes for the edited model."""

from __future__ import annotations

import json
import math
import re
import threading
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("starlette", reason="Starlette is in the `serve` extra")
pytest.importorskip("httpx", reason="Starlette's test client needs httpx")

from hypothesis import given, settings
from hypothesis import strategies as st
from web_kit import MODELS, WORDS, Page, drawn, rich, scored, silent, truth_of, world

import budge
from budge import Feature, constraints
from budge.errors import BudgeError
from budge.models import as_predictor
from budge.report.answer import category_words, marks_of
from budge.report.cases import rho_shown
from budge.report.compared import SHORT_WORDS, compared
from budge.report.figures.strip import CATEGORIES
from budge.web import make_app, make_question
from budge.web.edits import Edits, model_key
from budge.web.person import counted
from budge.web.running import Pace, predictions, running
from budge.web.session import Session
from budge.wording import Wording


@pytest.fixture(scope="module")
def page() -> Page:
    X, im = world()
    return Page(make_app(MODELS, X, im, target=1, population="all", token="t"))


def same(a: Any, b: Any) -> bool:
    return a == b or (a is None and isinstance(b, float) and math.isnan(b)) or (a is None and b is None)


def reads(im: budge.InteractionModel, name: str, value: Any) -> str:
    """Return a value as a report reads it."""
    return Wording().of_model(im).value(name, value)


EDITS: dict[str, tuple[dict[str, Any], Any]] = {
    "as served": ({}, lambda im: im),
    "constraint off": ({"off": ["c1"]}, lambda im: im.without("savings")),
    "two off": ({"off": ["c0", "c2"]}, lambda im: im.without("ageing").without("owners pay")),
    "direction of a group off": ({"off": ["o1"]}, lambda im: im.without(1).with_constraint(constraints.Thermometer(("ge_1", "ge_5"), name="savings"))),
    "direction off": ({"off": ["d1"]}, lambda im: im.relax("years", what="direction")),
    "steps off": ({"off": ["s1"]}, lambda im: im.relax("years", what="steps")),
    "frozen": ({"features": {"balance": {"actionable": False}}}, lambda im: im.freeze("balance")),
    "freed": ({"features": {"age": {"actionable": True, "max_increase": 3, "max_decrease": 0}}}, None),
    "bounds": ({"features": {"balance": {"high": 3}}}, lambda im: im.relax("balance", bounds=(0, 3))),
    "threshold": ({"threshold": 0.4}, lambda im: im),
}


@pytest.mark.parametrize("name", EDITS)
def test_people_and_everyone_are_the_library_s(page: Page, name: str) -> None:
    X, im = world()
    start = page.post("start")["state"]
    change, edit = EDITS[name]
    state = {**start, **change}
    edited = edit(im) if edit is not None else Edits.read(change).of(im)
    truth = truth_of(MODELS, X, edited, target=1, threshold=state["threshold"])
    for model in MODELS:
        found = page.look(state, who="P007", model=model)
        assert not any("error" in kind for kind in found), found
        everyone = found["everyone"][-1]
        assert everyone["whole"]
        summary, told = truth.summary(model), everyone["models"][model]
        assert told["said"] == f"of 40 people under {model}, each known exactly"
        assert told["mean_rho"] == summary.mean_rho
        assert told["sentences"] == str(summary).split("\n")
        marks = marks_of(truth, model)
        assert {k: v for k, v in told["counts"].items() if k != "odd"} == {k: marks.count(k) for k in CATEGORIES if marks.count(k)}
        person, row = found["person"][0], truth.of_model(model).loc["P007"]
        for column, value in person["models"][model].items():
            if column not in ("p_value", "p_adjusted"):
                assert same(value, row[column]), (model, column, value, row[column])
        plan = truth.recourse("P007", model=model)
        moves = [] if person["least"] is None else [(f, b) for f, _, b in person["least"]["moves"]]
        assert moves == [(f, reads(im, f, b)) for f, b in plan.actions[["feature", "to"]].itertuples(index=False, name=None)]
        listed = page.post("people", state=state, model=model, show="all", limit=100)["rows"]
        declared = truth_of(MODELS, X, im, target=1).of_model(model)
        assert {r["label"] for r in listed} == set(X.index)
        assert all(same(r["rho"], declared.loc[r["label"], "rho"]) for r in listed)
        if change:
            assert all(same(r["now"], truth.of_model(model).loc[r["label"], "rho"]) for r in listed)


def test_the_points_are_the_enumerated_set(page: Page) -> None:
    X, im = world()
    start = page.post("start")["state"]
    for who in ("P000", "P003", "P011"):
        person = page.look(start, who=who)["person"][0]
        points = im.enumerate(X.loc[[who]]).points
        outputs = MODELS["strict"](points)
        assert (person["points"]["of"], person["points"]["hits"]) == (len(points), int(outputs.sum()))
        rest = page.post("points", state=start, who=who, offset=12)
        rows = person["points"]["rows"] + rest["rows"]
        assert len(rows) == min(len(points), 112)
        assert sum(row["hit"] for row in rows) == int(outputs.sum()) or len(points) > 112
        truly = [c for c in im.by_name if points[c].astype(str).nunique() > 1]
        assert person["points"]["columns"] == truly
        known = {tuple(reads(im, name, value) for name, value in zip(truly, row)) for row in points[truly].itertuples(index=False, name=None)}
        assert {tuple(text for text, _ in row["cells"]) for row in rows} <= known
        assert {name for name, _ in person["still"]} == set(X.columns) - set(truly)


def test_the_table_of_what_decides_counts_the_points(page: Page) -> None:
    """Each cell says how many of its points attain the target; its points are listed; the best of them is tried."""
    start = page.post("start")["state"]
    for who in ("P007", "P021", "P002"):
        person = page.look(start, who=who)["person"][0]
        cells = {cell["key"]: cell for line in person["table"] for cell in line if cell["key"]}
        total = hits = 0
        for key, cell in cells.items():
            inside = page.post("points", state=start, who=who, cell=key)
            assert cell["title"].startswith(f"{inside['hits']} of {inside['listed']} points")
            total, hits = total + inside["listed"], hits + inside["hits"]
            tried = page.post("try", state=start, who=who, at=inside["at"])
            assert tried["feasible"]
            assert tried["hit"] == (inside["hits"] > 0)
        assert (hits, total) == (person["models"]["strict"]["hits"], person["models"]["strict"]["n"])
    assert page.problems("points", state=start, who="P007", cell="9-9-9-9")


@pytest.mark.parametrize("who", ["P000", "P007", "P011", "P030"])
def test_every_choice_is_a_reachable_point_or_names_its_rule(page: Page, who: str) -> None:
    """The choices that can be made are exactly the listed points, and the output is the model's own."""
    X, im = world()
    start = page.post("start")["state"]
    person = page.look(start, who=who)["person"][0]
    points = im.enumerate(X.loc[[who]]).points
    reached = set()
    for at in product(*(range(len(c["levels"])) for c in person["controls"])):
        found = page.post("try", state=start, who=who, at=list(at))
        if not found["feasible"]:
            assert found["hints"] == ["“owners pay” forbids it: If home == 'own', then balance >= 1."]
            assert (found["state"], found["output"], found["score"]) == ("barred", None, None)
            continue
        levels = {c["name"]: c["levels"][i] for c, i in zip(person["controls"], at)}
        same_ = points[np.logical_and.reduce([points[n].map(partial(reads, im, n)) == v for n, v in levels.items() if n in points.columns])]
        same_ = same_[[_savings(row, levels) for _, row in same_.iterrows()]]
        assert len(same_) == 1
        reached.add(same_.index[0])
        assert found["output"] == str(MODELS["strict"](same_)[0])
        assert found["hit"] == bool(MODELS["strict"](same_)[0])
        assert found["head"] == ("Leads to the target" if found["hit"] else "Does not lead to the target")
        assert found["answer"] == f"output {found['output']} (today {person['today']['output']})"
        assert [f for f, _, _ in found["follows"]] == (["age"] if same_["age"].iloc[0] != X.loc[who, "age"] else [])
        assert all(to == str(same_["age"].iloc[0]) for _, _, to in found["follows"])
    assert len(reached) == len(points)
    assert person["today"]["output"] == str(MODELS["strict"](X.loc[[who]])[0])


def _savings(row: Any, levels: dict[str, str]) -> bool:
    on = ", ".join(name for name in ("ge_1", "ge_5") if row[name]) or "none of them"
    single = {name.removeprefix("savings: "): value for name, value in levels.items() if name.startswith("savings: ")}
    return levels.get("savings", on) == on and all(reads(world()[1], name, row[name]) == value for name, value in single.items())


def test_a_choice_that_is_not_listed_is_judged_by_its_rules() -> None:
    """Rules over what follows, and over real numbers: the rule that forbids a choice is named, and nothing is asked."""
    start = {"years": [1], "age": [30], "home": ["rent"], "pay": [10.0], "saved": [2.0]}
    X = pd.DataFrame(start | {"home": pd.Categorical(["rent"], categories=["rent", "own"])})
    im = budge.InteractionModel(
        [
            Feature("years", "integer", bounds=(0, 9), direction="increase", max_increase=3), Feature("age", "integer", bounds=(18, 99), actionable=False),
            Feature("home", "category", levels=("rent", "own")), Feature("pay", "real", bounds=(0, 20)), Feature("saved", "real", bounds=(0, 20)),
        ],
        [
            constraints.DirectionalLinkage("years", {"age": 1}, name="ageing"), constraints.IfThen("age >= 32", "home == 'own'", name="old own"),
            constraints.LinearConstraint({"saved": 1, "pay": -0.5}, "<=", 0, name="half"),
        ],
    )  # fmt: skip
    page = Page(make_app(lambda t: (t["pay"] + t["age"] > 42).astype(int), X, im, target=1, population="all", token="t"))
    state = page.post("start")["state"]
    controls = page.look(state, who="0")["person"][0]["controls"]
    assert [c["name"] for c in controls] == ["years", "home", "pay", "saved"]
    now = [c["now"] for c in controls]

    def tried(**levels: str) -> dict[str, Any]:
        at = [c["levels"].index(levels[c["name"]]) if c["name"] in levels else k for c, k in zip(controls, now)]
        return page.post("try", state=state, who="0", at=at)

    found = tried(years="3", home="rent")
    assert not found["feasible"]
    assert any(why.startswith("“old own” forbids it") for why in found["hints"])
    assert tried(years="3", home="own")["follows"] == [["age", "30", "32"]]
    assert tried(years="2")["feasible"]
    found = tried(saved="6")
    assert [why.split(" forbids")[0] for why in found["hints"]] == ["“half”"]
    assert tried(saved="6", pay="12")["feasible"]
    assert tried(pay="14")["hit"]
    assert not tried(pay="12")["hit"]


def _check_bars(chart: dict[str, Any]) -> None:
    """The bars of a chart stand for its bins: misses below hits, in the heights of their counts, and the ground of the target begins at the cut."""
    bars = re.findall(r'<rect class="(\w+)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"/>', chart["svg"])
    most, seen = max(h + m for h, m in zip(chart["hits"], chart["misses"])), {"hit": [0] * len(chart["hits"]), "miss": [0] * len(chart["hits"])}
    for name, x, y, width, height in bars:
        if name == "zone":
            spot = (chart["cut"] - chart["low"]) / (chart["high"] - chart["low"])
            assert float(x) / len(chart["hits"]) == pytest.approx(spot)
            assert float(x) + float(width) == len(chart["hits"])
            continue
        place = int(float(x))
        below = chart["misses"][place] if name == "hit" else 0
        seen[name][place] = round((40 - float(y)) * most / 40) - below
        assert float(height) == pytest.approx(max(40 * seen[name][place] / most, 1.5), abs=0.01)
    assert (seen["hit"], seen["miss"]) == (chart["hits"], chart["misses"])


def test_outputs_the_cut_and_the_best_one_are_the_model_s() -> None:
    X, im = world()
    page = Page(make_app(as_predictor(scored, output="score"), X, im, target="score >= 8", population="all", wording=WORDS, groups=["home"], token="t"))
    start = page.post("start")
    assert start["aim"] == "approval"
    assert start["asked"] == "Target: approval · 40 applicants"
    truth = truth_of(as_predictor(scored, output="score"), X, im, target="score >= 8")
    for who in X.index:
        person = page.look(start["state"], who=who)["person"][0]
        outputs, row = scored(im.enumerate(X.loc[[who]]).points), truth.table.loc[who]
        chart = person["chart"]
        assert sum(chart["hits"]) == (outputs >= 8).sum() == row["hits"]
        assert sum(chart["misses"]) == (outputs < 8).sum()
        assert (chart["cut"], chart["needs"]) == (8, "at least 8")
        assert f'aria-label="Outputs of {len(outputs)} points; best {outputs.max():.3f}; approval needs at least 8"' in chart["svg"]
        _check_bars(chart)
        assert person["facts"] == [WORDS["group_labels"]["home"][X.loc[who, "home"]], f"output {scored(X.loc[[who]])[0]:.3f} today"]
        assert person["today"]["score"] == scored(X.loc[[who]])[0]
    tight = im.freeze("balance", "home")
    page = Page(make_app(as_predictor(scored, output="score"), X, tight, target="score >= 8", population="outside", wording=WORDS, token="t"))
    state = page.post("start")["state"]
    truth = truth_of(as_predictor(scored, output="score"), X, tight, target="score >= 8", population="outside")
    none = truth.table.index[truth.table["extreme"] == "none"]
    assert len(none) > 3
    for who in none:
        person = page.look(state, who=who)["person"][0]
        outputs = scored(tight.enumerate(X.loc[[who]]).points)
        count = f"None of the {len(outputs)} reachable points leads to approval." if len(outputs) > 1 else "The only reachable point does not lead to approval."
        assert person["say"] == [count, f"The best output is {outputs.max():.3f}; approval needs at least 8.", "All points were listed: this is a proof."]
        cells = [float(cell["text"]) for line in person["table"] or [] for cell in line if cell["key"]]
        assert not cells or max(cells) == outputs.max()


def test_a_label_s_number_is_shown_only_where_it_agrees() -> None:
    """The probability behind a label is asked for; one that contradicts a label is not shown."""
    X, im = world()

    class Model:
        classes_ = (0, 1)

        def __init__(self, cut: float) -> None:
            self.cut = cut

        def predict_proba(self, table: pd.DataFrame) -> np.ndarray:
            p = scored(table) / 12
            return np.column_stack([1 - p, p])

        def predict(self, table: pd.DataFrame) -> np.ndarray:
            return (scored(table) / 12 > self.cut).astype(int)

    def person(cut: float) -> dict[str, Any]:
        page = Page(make_app(Model(cut), X, im, target=1, population="all", token="t"))
        return page.look(page.post("start")["state"], who="P007")["person"][0]

    half = person(0.5)
    outputs = scored(im.enumerate(X.loc[["P007"]]).points) / 12
    assert half["chart"]["needs"] == "more than 0.500"
    assert sum(half["chart"]["hits"]) == (outputs > 0.5).sum() == half["models"]["model"]["hits"]
    assert f"best {outputs.max():.3f}; the target needs more than 0.500" in half["chart"]["svg"]
    other = person(0.6)
    assert other["chart"] is None
    assert other["today"]["score"] is None


def test_unanswered_points_are_told() -> None:
    X, im = world()
    options = {"max_unresolved": 1.0}
    page = Page(make_app(as_predictor(silent, classes=[0, 1]), X, im, target=1, population="all", token="t", **options))
    state = page.post("start")["state"]
    truth = truth_of(as_predictor(silent, classes=[0, 1]), X, im, target=1, design=budge.Design(on_invalid="skip", **options))
    told = page.look(state, who="P007")
    row = truth.table.loc["P007"]
    assert row["unresolved"] > 0
    person = told["person"][0]
    assert f"{row['unresolved']} have no answer" in " ".join(person["say"])
    assert not any("proof" in s for s in person["say"])
    rows = person["points"]["rows"] + page.post("points", state=state, who="P007", offset=12)["rows"]
    assert sum(r["output"] is None for r in rows) == row["unresolved"]
    assert told["everyone"][-1]["models"]["model"]["sentences"] == list(truth.summary().sentences())


def test_the_list_opens_on_the_harmed_and_stays_in_its_order() -> None:
    X, im = world()
    tight = im.freeze("balance", "home")
    page = Page(make_app(MODELS["strict"], X, tight, target=1, population="all", token="t"))
    start = page.post("start")["state"]
    assert page.post("people", state=start)["counts"] == {"wait": 40}
    picked = page.look(start)["person"][0]
    first = page.post("people", state=start)
    truth = truth_of(MODELS["strict"], X, tight, target=1)
    none = truth.table[truth.table["extreme"] == "none"]
    assert first["show"] == "none"
    assert first["counts"]["none"] == len(none) > 3
    assert picked["who"] == picked["label"] == first["rows"][0]["label"]
    assert {r["label"] for r in first["rows"]} == set(none.index)
    assert [r["n"] for r in first["rows"]] == sorted(none["n"], reverse=True)
    edited = {**start, "off": ["s1"]}
    page.look(edited)
    then = page.post("people", state=edited)
    after = truth_of(MODELS["strict"], X, tight.relax("years", what="steps"), target=1).table
    assert [r["label"] for r in then["rows"]] == [r["label"] for r in first["rows"]]
    assert [r["now"] for r in then["rows"]] == after.loc[[r["label"] for r in then["rows"]], "rho"].tolist()
    assert then["counts"] == first["counts"]
    assert then["now"].get("none", 0) == int((after["extreme"] == "none").sum()) < len(none)
    above = Page(make_app(MODELS["strict"], X, im, target=1, population="all", claim="above", token="t"))
    above.look(above.post("start")["state"])
    worst = above.post("people", state=above.post("start")["state"])
    assert worst["show"] == "above"
    assert [r["rho"] for r in worst["rows"]] == sorted((r["rho"] for r in worst["rows"]), reverse=True)


def test_no_hit_among_draws_is_not_called_no_way() -> None:
    X, im = drawn()
    page = Page(make_app(rich, X, im, target=1, token="t"))
    state = page.post("start")["state"]
    page.look(state)
    found = page.post("people", state=state)
    assert found["show"] == "nohit"
    assert "none" not in found["counts"]
    for row in found["rows"]:
        said = page.look(state, who=row["label"])["person"][0]["say"]
        assert said[0] == "No hit in 298 draws: ρ is at most 0.01 (one-sided, 95 %)."
        assert said[1] == "That is no proof that there is no way."


def test_a_person_without_a_hit_under_another_model_is_not_said_to_have_responsiveness_0() -> None:
    X, im = drawn()
    models = {"rich": rich, "never": lambda table: np.zeros(len(table), int)}
    page = Page(make_app(models, X, im, target=1, population="all", token="t"))
    state = page.post("start")["state"]
    page.look(state)
    who = page.post("people", state=state, show="all")["rows"][0]["label"]
    row = budge.audit(models, X, im, target=1, population="all").of_model("rich").loc[int(who)]
    person = page.look({**state, "off": ["s0"]}, who=who)["person"][0]
    assert person["facts"][-1] == "never: no hit in 298 draws"
    assert person["declared"] == f"As declared: {counted(row.to_dict())}."
    assert counted({**row.to_dict(), "hits": 7}) == "7 hits in 298 draws"


def test_each_rule_counts_what_it_alone_holds_back() -> None:
    X, im = world()
    tight = im.freeze("balance", "home")
    page = Page(make_app(MODELS, X, tight, target=1, population="all", token="t"))
    start = page.post("start")
    lifted = tight.without(1).with_constraint(constraints.Thermometer(("ge_1", "ge_5"), name="savings"))
    without = {
        "c0": tight.without(0), "o1": lifted, "c2": tight.without(2), "d1": tight.relax("years", what="direction"), "s1": tight.relax("years", what="steps")
    }  # fmt: skip
    assert [r["id"] for r in start["model"]["rules"] if not r["coding"]] == list(without)
    declared = truth_of(MODELS, X, tight, target=1)
    for model in MODELS:
        stuck = declared.of_model(model).index[declared.of_model(model)["extreme"] == "none"]
        for state in ({**start["state"], "off": ["s1"]}, start["state"]):  # each line counts its rule alone
            told = {r["id"]: r for r in page.look(state, who="P007", model=model)["rule"]}
            assert list(told) == list(without)
            for rule, other in without.items():
                after = truth_of(MODELS, X, other, target=1).of_model(model)
                person = after.loc["P007"]
                assert (told[rule]["person"]["hits"], told[rule]["person"]["n"]) == (person["hits"], person["n"])
                able = int((after.loc[stuck, "hits"] > 0).sum())
                assert (told[rule]["people"]["able"], told[rule]["people"]["of"]) == (able, len(stuck))
                words = " ".join(told[rule]["lines"][1]["text"])
                assert words == (f"{able} of {len(stuck)} people without a way would have one" if len(stuck) else "nobody is without a way")
        assert len(stuck) > 0 or model == "kind"


def test_one_hit_frees_a_person() -> None:
    """At the border: a rule frees who has a single hit without it, among many points, and nobody who has none."""
    X = pd.DataFrame({"steps": [0, 1, 2], "other": [0, 0, 0]})
    im = budge.InteractionModel(
        [Feature("steps", "integer", bounds=(0, 9)), Feature("other", "integer", bounds=(0, 99))],
        [constraints.LinearConstraint({"steps": 1}, "<=", 8, name="almost"), constraints.LinearConstraint({"other": 1}, "<=", 98, name="beside")],
    )

    def last(table: pd.DataFrame) -> np.ndarray:
        return ((table["steps"] == 9) & (table["other"] == 7)).to_numpy().astype(int)

    page = Page(make_app(last, X, im, target=1, token="t"))
    told = {rule["id"]: rule for rule in page.look(page.post("start")["state"], who="0")["rule"]}
    assert (told["c0"]["person"]["hits"], told["c0"]["person"]["n"]) == (1, 990)
    assert [" ".join(line["text"]) for line in told["c0"]["lines"]] == ["1 of 990 points for person 0", "3 of 3 people without a way would have one"]
    assert [line["hot"] for line in told["c0"]["lines"]] == [True, True]
    assert [" ".join(line["text"]) for line in told["c1"]["lines"]] == ["0 of 900 points for person 0", "0 of 3 people without a way would have one"]
    assert [line["hot"] for line in told["c1"]["lines"]] == [False, False]


def test_one_hit_among_draws_frees_a_person() -> None:
    X = pd.DataFrame({"pay": [0.0]})
    im = budge.InteractionModel([Feature("pay", "real", bounds=(0, 10), max_increase=1)])
    seen: list[float] = []

    def listens(table: pd.DataFrame) -> np.ndarray:
        seen.extend(table["pay"])
        return np.zeros(len(table), int)

    truth_of(listens, X, im.relax("pay", what="steps"), target=1)
    second, first = sorted(set(seen))[-2:]
    page = Page(make_app(lambda t: (t["pay"] > (first + second) / 2).to_numpy().astype(int), X, im, target=1, token="t"))
    told = page.look(page.post("start")["state"], who="0")["rule"][0]
    assert told["person"]["hits"] == 1
    found = "1 of 1 people without a hit have one in draws without it, which may be chance"
    assert [" ".join(line["text"]) for line in told["lines"]] == ["1 of 298 draws for person 0", found]


def test_a_rule_whose_points_have_no_answer_frees_at_least_those_with_a_hit() -> None:
    """Beyond the limit owners get the target, and the model has no answer about tenants: nobody may say that they have no way."""
    X, im = world()
    tight = im.freeze("balance", "home", "ge_1", "ge_5")
    lines: dict[bool, list[str]] = {}
    for kind in (True, False):

        def mute(table: pd.DataFrame, kind: bool = kind) -> np.ndarray:
            beyond = table["years"].to_numpy() > 7
            return np.where(beyond, np.where((table["home"] == "own") & kind, 1, None), 0)  # type: ignore[call-overload, no-any-return]

        page = Page(make_app(mute, X, tight, target=1, population="all", max_unresolved=1.0, check=False, token="t"))
        state = page.post("start")["state"]
        assert page.post("people", state=state)["counts"] == {"wait": 40}
        told = {rule["id"]: rule for rule in page.look(state, who="P007")["rule"]}
        assert page.post("people", state=state)["counts"] == {"none": 40}
        lines[kind] = [" ".join(line["text"]) for line in told["s1"]["lines"]]
        assert told["d1"]["people"]["open"] is False
    owners = int((X["home"] == "own").sum())
    assert lines[True][1] == f"at least {owners} of 40 people without a way would have one"
    assert lines[False] == ["0 of 20 points for person P007 (13 have no answer)", "0 of 40 people without a way were found to get one"]


def test_a_proof_without_a_rule_is_called_one_and_no_draws() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"pay": rng.integers(0, 4, 30), "debt": rng.integers(0, 3, 30)})
    im = budge.InteractionModel(
        [Feature("pay", "integer", bounds=(0, 40), max_increase=2), Feature("debt", "integer", bounds=(0, 9), direction="increase")]
    )
    past = pd.DataFrame({"pay": rng.integers(0, 40, 400), "debt": rng.integers(0, 9, 400)})
    model = LogisticRegression(C=100.0).fit(past, (past["pay"] > 20).astype(int))
    page = Page(make_app(model, X, im, target=1, design=budge.Design(target=1, prove=True, method="sample"), token="t"))
    state = page.post("start")["state"]
    told = {rule["id"]: rule for rule in page.look(state, who="0")["rule"]}
    assert " ".join(told["d1"]["lines"][0]["text"]) == "no way for person 0, proved from the model's structure"
    assert told["d1"]["lines"][0]["hot"] is False
    assert " ".join(told["s0"]["lines"][0]["text"]).endswith("of 298 draws for person 0")
    assert [(row["n"], row["drawn"]) for row in page.post("people", state=state, show="none")["rows"]] == [(0, False)] * 30


def test_the_lines_of_rules_follow_the_threshold() -> None:
    """The number of draws depends on the threshold: what was counted at another one is not shown."""
    X, im = drawn()
    page = Page(make_app(rich, X, im, target=1, token="t"))
    start = page.post("start")["state"]
    for tau in (0.1, 0.3, 0.1):
        told = {rule["id"]: rule["person"] for rule in page.look({**start, "threshold": tau}, who="4")["rule"]}
        row = truth_of(rich, X, im.relax("pay", what="steps"), target=1, threshold=tau).table.iloc[4]
        assert (told["s0"]["hits"], told["s0"]["n"]) == (row["hits"], row["n"])


def test_categories_are_called_as_in_the_report(page: Page) -> None:
    start = page.post("start")
    told = page.look({**start["state"], "threshold": 0.4}, who="P007")["model"][0]["names"]
    assert told.items() >= category_words(0.4, "below").items()
    chips = page.post("people", state={**start["state"], "threshold": 0.4}, show="all")["chips"]
    assert all(name == SHORT_WORDS[key] for key, name, _ in chips[:-1])
    assert chips[-1] == ["all", "everyone", 40]
    assert sum(k for _, _, k in chips[:-1]) == 40


def test_below_the_threshold_of_the_claim_above_is_less_and_no_lack_of_a_way() -> None:
    page = Page(make_app(MODELS, *world(), target=1, token="t", claim="above", threshold=0.9))
    start = page.post("start")
    assert start["names"]["below"] == "less"
    assert ["below", "less"] in [chip[:2] for chip in page.post("people", state=start["state"], show="all")["chips"]]


def test_two_people_stand_side_by_side(page: Page) -> None:
    X, im = world()
    start = page.post("start")["state"]
    pinned = page.look(start, who="P007", pin="P003")["pin"][0]
    assert pinned["label"] == "P003"
    assert pinned["say"] == page.look(start, who="P003")["person"][0]["say"]
    assert {d["feature"] for d in pinned["differs"]} == {c for c in X.columns if X.loc["P007", c] != X.loc["P003", c]}
    for d in pinned["differs"]:
        assert [d["mine"], d["other"]] == [reads(im, d["feature"], X.loc[who, d["feature"]]) for who in ("P007", "P003")]
    assert "pin" not in page.look(start, who="P007", pin="P007")


def test_labels_that_repeat_are_told_apart() -> None:
    X, im = world()
    X.index = pd.Index([1, "1", *X.index[2:]], dtype=object)
    page = Page(make_app(MODELS["strict"], X, im, target=1, population="all", token="t"))
    start = page.post("start")["state"]
    rows = [row for row in page.post("people", state=start, show="all", find="1", limit=500)["rows"] if row["label"] == "1"]
    assert [row.get("who", row["label"]) for row in rows] == ["1", "#1"]
    assert page.look(start, who="#1")["person"][0]["place"] == 1


def test_draws_are_the_audit_s_own() -> None:
    X, im = drawn()
    page = Page(make_app(rich, X, im, target=1, population="all", token="t", seed=3))
    start = page.post("start")["state"]
    truth = truth_of(rich, X, im, target=1, threshold=0.1, seed=3)
    found = page.look(start, who="4")
    person, row = found["person"][0], truth.table.iloc[4]
    assert person["models"]["model"]["rho"] == row["rho"]
    assert person["models"]["model"]["low"] == row["low"]
    assert (person["points"]["hits"], person["points"]["of"]) == (row["hits"], row["n"])
    assert person["points"]["drawn"]
    assert found["everyone"][-1]["models"]["model"]["mean_rho"] == truth.summary().mean_rho


def test_a_running_audit_ends_as_the_library_s_and_is_sound_before() -> None:
    X, im = world()
    question = make_question(MODELS, X, im, target=1, population="all")
    order = np.random.default_rng(0).permutation(len(X))
    pace = Pace()
    pieces = list(running(question, im, 0.1, predictions(question), order, pace, lambda: None))
    assert len(pieces) > 1
    truth = truth_of(MODELS, X, im, target=1, threshold=0.1)
    last = pieces[-1].audit()
    pd.testing.assert_frame_equal(last.table, truth.table)
    for name in MODELS:
        one, two = last.rows[name].counts, truth.rows[name].counts
        assert one.witness.tolist() == two.witness.tolist()
        assert one.reached.tobytes() == two.reached.tobytes()
        assert one.asked.tolist() == two.asked.tolist()
    assert last.design == truth.design
    assert {k: v for k, v in last.info.items() if k != "when"} == {k: v for k, v in truth.info.items() if k != "when"}


@pytest.mark.parametrize("options", [{}, {"claim": "above", "threshold": 0.3, "harm": "above"}, {"n": 100, "method": "sample", "adjust": "holm"}])
def test_a_running_audit_of_those_outside_ends_as_the_library_s(options: dict[str, Any]) -> None:
    X, im = drawn()
    truth = budge.audit(rich, X, im, **{"target": 1, "threshold": 0.2, **options})
    question = make_question(rich, X, im, target=1, on_invalid="error", **{"threshold": 0.2, **options})
    order = np.random.default_rng(1).permutation(len(X))
    *_, last = running(question, im, question.threshold, predictions(question), order, Pace(), lambda: None)
    found = last.audit()
    pd.testing.assert_frame_equal(found.table, truth.table)
    assert str(found) == str(truth)
    assert found.design.digest == truth.design.digest
    assert {k: v for k, v in found.info.items() if k != "when"} == {k: v for k, v in truth.info.items() if k != "when"}


def test_a_person_who_has_the_target_already_is_shown(page: Page) -> None:
    X, im = world()
    inside = int(np.flatnonzero(MODELS["kind"](X) == 1)[0])
    outside = Page(make_app(MODELS, X, im, target=1, token="t"))  # those outside the target, unless told otherwise
    start = outside.post("start")
    assert start["asked"].endswith("(outside the target)")
    person = outside.look(start["state"], who=X.index[inside], model="kind")["person"][0]
    assert person["say"][0] == "Has the target today."
    row = truth_of(MODELS, X.iloc[[inside]], im).of_model("kind").iloc[0]
    assert person["models"]["kind"]["rho"] == row["rho"]
    assert person["models"]["kind"]["exactness"] == row["exactness"]


def test_a_subsample_is_the_audit_of_those_people() -> None:
    X, im = world()
    question = make_question(MODELS, X, im, target=1, population="all")
    order = np.random.default_rng(0).permutation(len(X))
    first = next(running(question, im, 0.1, predictions(question), order, Pace(), lambda: None))
    some = first.audit()
    truth = truth_of(MODELS, X.iloc[sorted(order[: first.done])], im, threshold=0.1)
    pd.testing.assert_frame_equal(some.table, truth.table)


def test_comparison_of_models_counts_people(page: Page) -> None:
    X, im = world()
    start = page.post("start")["state"]
    page.look(start)
    found = page.post("figure", state=start, figure="models")
    truth = truth_of(MODELS, X, im, target=1)
    assert found == json.loads(json.dumps(compared(truth, budge.Wording())))
    pair = found["pairs"][0]
    for i, one in enumerate(pair["keys"]):
        for j, two in enumerate(pair["keys"]):
            listed = page.post("people", state=start, model=pair["first"], show=one, other=pair["second"], other_show=two)
            assert listed["listed"] == pair["counts"][i][j]


def test_people_are_found_and_filtered(page: Page) -> None:
    X, im = world()
    start = page.post("start")["state"]
    page.look(start)
    truth = truth_of(MODELS, X, im, target=1).of_model("strict")
    young = page.post("people", state=start, model="strict", find="age < 30 and home == 'rent'", show="all")
    assert {r["label"] for r in young["rows"]} == set(X.index[(X["age"] < 30) & (X["home"] == "rent")])
    assert {r["label"] for r in page.post("people", state=start, find="p01", show="all")["rows"]} == {f"P01{k}" for k in range(10)}
    ranked = page.post("people", state=start, model="strict", show="all")["rows"]
    assert [r["rho"] for r in ranked] == sorted(truth["rho"])
    below = page.post("people", state=start, model="strict", show="below", limit=3, offset=2)
    assert below["listed"] == int((truth["verdict"] == "below").sum())
    assert [r["rho"] for r in below["rows"]] == sorted(truth["rho"][truth["verdict"] == "below"])[2:5]
    wrong = page.post("people", state=start, find="agee < 30")
    assert wrong["listed"] == 0
    assert "did you mean 'age'" in wrong["note"]


def test_what_changed_is_told_beside_what_was(page: Page) -> None:
    X, im = world()
    start = page.post("start")["state"]
    page.look(start)
    found = page.look({**start, "off": ["c1"]}, who="P007")
    told = found["everyone"][-1]["models"]["strict"]
    before, after = (truth_of(MODELS, X, own, target=1) for own in (im, im.without("savings")))
    assert told["before"]["mean_rho"] == before.summary("strict").mean_rho
    marks = [np.array(CATEGORIES)[marks_of(own, "strict").category] for own in (before, after)]
    assert sum(c["people"] for c in told["before"]["changed"]) == int((marks[0] != marks[1]).sum()) > 0
    person = found["person"][0]
    row = before.of_model("strict").loc["P007"]
    assert person["declared"] == f"As declared: {row['hits']} of {row['n']} points (ρ {rho_shown(row['rho'])})."
    assert found["model"][0]["edited"] == ["'savings' off"]


def test_an_edit_that_breaks_people_says_who(page: Page) -> None:
    X, _ = world()
    start = page.post("start")["state"]
    state = {**start, "features": {"balance": {"high": 2}}}
    out = X.index[X["balance"] > 2]
    assert len(out) > 0
    found = page.look(state, who=out[0])
    assert found["person"][0]["status"] == "invalid_start"
    assert "balance" in found["person"][0]["broken"][0]["where"] + found["person"][0]["broken"][0]["what"]
    assert found["everyone"][-1]["models"]["strict"]["counts"]["odd"] == len(out)
    assert page.problems("try", state=state, who=out[0], at=[])
    assert page.problems("points", state=state, who=out[0])


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_edits_are_the_library_s_edits(data: st.DataObject) -> None:
    """Any mix of switches: the page's model is the one that without, freeze and relax give, in any order."""
    _, im = world()
    off = data.draw(st.lists(st.integers(0, 2), unique=True, max_size=3))
    frozen = data.draw(st.lists(st.sampled_from(["years", "balance", "home"]), unique=True, max_size=3))
    free = data.draw(st.booleans())
    features: dict[str, dict[str, Any]] = {name: {"actionable": False} for name in frozen}
    if free:
        features.setdefault("years", {})["direction"] = None
    truth = im
    for c in [im.constraints[i] for i in off]:
        truth = truth.without(c)
    truth = truth.freeze(*frozen) if frozen else truth
    truth = truth.relax("years", what="direction") if free else truth
    edited = Edits.read({"off": [f"c{i}" for i in off], "features": features}).of(im)
    assert edited == truth
    assert model_key(edited) == model_key(truth)


@pytest.mark.parametrize(
    "record",
    [
        {"off": ["c9"]}, {"off": "all"}, {"off": [-1]}, {"off": [True]}, {"off": ["d0"]}, {"off": ["x1"]}, {"off": ["c0"] * 2000},
        {"features": {"agee": {"actionable": True}}}, {"features": []},
        {"features": {"years": {"type": "real"}}}, {"features": {"years": {"max_increase": "2"}}}, {"features": {"years": {"max_increase": -1}}},
        {"features": {"balance": {"low": 4, "high": 0}}}, {"features": {"balance": {"low": [0]}}}, {"features": {"years": {"direction": "up"}}},
        {"threshold": 0}, {"threshold": "0.1"}, {"base": "nowhere"}, {"base": 3}, {"features": {"years": {"actionable": "yes"}}},
    ],
)  # fmt: skip
def test_bad_edits_are_refused_with_a_reason(page: Page, record: dict[str, Any]) -> None:
    start = page.post("start")["state"]
    assert page.problems("look", state={**start, **record})[0]["what"]


def test_a_newer_wish_stops_the_older_one() -> None:
    """The older look of the same window ends at its next block, and another window's is left alone."""
    X, im = world()
    waiting, entered = threading.Event(), threading.Event()
    held = threading.local()

    def slow(table: pd.DataFrame) -> np.ndarray:
        if getattr(held, "on", False) and len(table) > 100:
            entered.set()
            assert waiting.wait(20)
        return MODELS["strict"](table)

    desk = Session(make_question(slow, X, im, target=1))
    state = desk.specs.state(desk.start()["state"])
    told: list[dict[str, Any]] = []
    ended: list[str] = []

    def work(stop: threading.Event) -> None:
        held.on = True
        try:
            desk.look(state, stop=stop, tell=told.append)
            ended.append("done")
        except Exception as error:
            ended.append(type(error).__name__)

    other = desk.enter("another window")
    first = desk.enter("window")
    thread = threading.Thread(target=work, args=(first,), daemon=True)
    thread.start()
    try:
        assert entered.wait(20)
        second = desk.enter("window")
        assert first.is_set()
        assert not second.is_set()
        assert not other.is_set()
    finally:
        waiting.set()
        thread.join(20)
    assert ended == ["SupersededError"]
    assert not any(t["kind"] == "everyone" and t["whole"] for t in told)


def test_many_at_once_get_their_own_answers(page: Page) -> None:
    X, im = world()
    start = page.post("start")["state"]
    truth = {k: truth_of(MODELS, X, im.without(k), target=1).summary("strict").mean_rho for k in range(3)}
    found: dict[int, Any] = {}

    def work(k: int) -> None:
        answer = Page(page.app).ask("look", state={**start, "off": [f"c{k}"]}, window=f"w{k}")
        found[k] = answer.text.splitlines()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    for k in range(3):
        last = [json.loads(line) for line in found[k] if '"everyone"' in line][-1]
        assert last["models"]["strict"]["mean_rho"] == truth[k]


def test_a_slow_model_is_asked_about_all_only_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    from budge.web import session as module

    X, im = world()
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    monkeypatch.setattr(module, "FEWEST", 1)
    page = Page(make_app(MODELS["strict"], X, im, target=1, population="all"))
    start = page.post("start")["state"]
    some = page.look(start)["everyone"][-1]
    assert not some["whole"]
    assert some["stopped"]
    asked = int(some["models"]["model"]["said"].removeprefix("of ").split()[0])
    assert some["models"]["model"]["said"] == f"of {asked} people drawn at random from 40"
    assert asked < len(X)
    assert page.look(start, whole=True)["everyone"][-1]["whole"]


def test_a_model_that_fails_is_an_answer_not_a_crash() -> None:
    X, im = world()
    fails = {"on": False}

    def moody(table: pd.DataFrame) -> np.ndarray:
        if fails["on"]:
            raise RuntimeError("the model is out")
        return MODELS["strict"](table)

    page = Page(make_app(moody, X, im, target=1, population="all"))
    start = page.post("start")["state"]
    fails["on"] = True
    found = page.look(start, who="P000")
    assert found["person_error"][0]["problems"][0]["what"]
    assert "error" in found
    fails["on"] = False
    assert page.look(start, who="P000")["everyone"][-1]["whole"]


def test_wrong_questions_are_refused_at_once() -> None:
    X, im = world()
    with pytest.raises(BudgeError, match="no option of the page"):
        make_question(MODELS, X, im, target=1, sequential=True)
    with pytest.raises(BudgeError, match="interaction model"):
        make_question(MODELS, X, object(), target=1)  # type: ignore[arg-type]
    with pytest.raises(BudgeError):
        make_question(MODELS, X.drop(columns="age"), im, target=1)


def test_those_outside_the_target_are_counted_model_by_model() -> None:
    X, im = world()
    truth = truth_of(MODELS, X, im, target=1, population="outside")
    page = Page(make_app(MODELS, X, im, target=1, population="outside", token="t"))
    start = page.post("start")
    own = {name: len(truth.of_model(name)) for name in MODELS}
    assert len(set(own.values())) == 2  # else nothing is tried here
    numbers = ", ".join(f"{name} {k}" for name, k in own.items())
    assert start["asked"] == f"Target: the target (the output is 1) · {numbers} people of 40 (outside the target)"
    inside = len(X) - own["kind"]
    assert page.post("people", state=start["state"], model="kind")["counts"] == {"wait": own["kind"], "has": inside}
    found = page.look(start["state"])["everyone"][-1]
    assert {name: found["models"][name]["said"].split()[1] for name in MODELS} == {name: str(k) for name, k in own.items()}
    both = len(set(truth.of_model("strict").index) & set(truth.of_model("kind").index))
    assert page.post("figure", state=start["state"], figure="models")["people"] == both
    late = page.post("people", state=start["state"], model="kind")["counts"]
    assert late.pop("has") == inside
    assert sum(late.values()) == own["kind"]
    young = (X["age"] < 40).to_numpy()
    some = Page(make_app(MODELS, X, im, target=1, population=young, token="t"))
    begin = some.post("start")
    assert f"{young.sum()} people of 40 (chosen people)" in begin["asked"]
    assert some.post("people", state=begin["state"], model="kind")["counts"]["out"] == int((~young).sum())


def test_values_read_as_in_the_report() -> None:
    """Thousands apart, and no and yes for binary features, everywhere on the page."""
    X = pd.DataFrame({"income": [40000.0, 41317.0], "owns": [0, 1], "savings": [1500, 900]})
    features = [Feature("income", "real", bounds=(0, 90000), max_increase=9000), Feature("owns", "binary"), Feature("savings", "integer", actionable=False)]
    im = budge.InteractionModel(features)
    view = Page(make_app(lambda t: (t["income"] + 3000 * t["owns"] > 45000.123456).astype(int), X, im, target=1, population="all", token="t"))
    start = view.post("start")["state"]
    person = view.look(start, who="0")["person"][0]
    assert dict(person["still"]) == {"savings": "1,500"}
    columns = person["points"]["columns"]
    texts = [dict(zip(columns, (text for text, _ in row["cells"]))) for row in person["points"]["rows"]]
    assert {row["owns"] for row in texts} <= {"no", "yes"}
    assert all("," in row["income"] for row in texts)
    assert {c["name"]: c["levels"] for c in person["controls"]}["owns"] == ["no", "yes"]
    pinned = view.look(start, who="0", pin="1")["pin"][0]
    assert {d["feature"]: (d["mine"], d["other"]) for d in pinned["differs"]} == {
        "income": ("40,000", "41,317"), "owns": ("no", "yes"), "savings": ("1,500", "900"),
    }  # fmt: skip


def test_the_least_change_is_not_rounded() -> None:
    """A plan lies just beyond the model's cut: to four figures it would miss the target."""
    data = budge.datasets.lending(n=1100, seed=0)
    model = budge.datasets.Scorecard.fit(data.X.iloc[:1000], data.y.iloc[:1000])
    im = budge.InteractionModel.from_file(budge.datasets.spec_path("lending"))
    X = data.X.iloc[1000:1030]
    view = Page(make_app(model, X, im, target=1, population="all", token="t"))
    start = view.post("start")["state"]
    seen = 0
    for label in X.index[model.predict(X) == 0]:
        least = view.look(start, who=str(label))["person"][0]["least"]
        moves = {f: b for f, _, b in least["moves"]} if least and least["proved"] else {}
        if "income" in moves:
            plan = budge.recourse(model, X.loc[[label]], im, target=1).actions.set_index("feature")["to"]
            assert float(moves["income"].replace(",", "")) == plan["income"]
            seen += 1
    assert seen
