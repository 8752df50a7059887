"""Every number of the page is what the library computes for the edited model."""

from __future__ import annotations

import json
import math
import threading
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("starlette", reason="Starlette is in the `serve` extra")
pytest.importorskip("httpx", reason="Starlette's test client needs httpx")

from hypothesis import given, settings
from hypothesis import strategies as st
from web_kit import MODELS, Page, drawn, rich, truth_of, world

import budge
from budge.errors import BudgeError
from budge.web import make_app, make_question
from budge.web.desk import Desk
from budge.web.edits import Edits, model_key
from budge.web.running import Pace, predictions, running


@pytest.fixture(scope="module")
def page() -> Page:
    X, im = world()
    return Page(make_app(MODELS, X, im, target=1, population="all", token="t"))


def same(a: Any, b: Any) -> bool:
    return a == b or (a is None and isinstance(b, float) and math.isnan(b)) or (a is None and b is None)


EDITS: dict[str, tuple[dict[str, Any], Any]] = {
    "as served": ({}, lambda im: im),
    "constraint off": ({"off": [1]}, lambda im: im.without("savings")),
    "two off": ({"off": [0, 2]}, lambda im: im.without("ageing").without("owners pay")),
    "frozen": ({"features": {"balance": {"actionable": False}}}, lambda im: im.freeze("balance")),
    "freed": ({"features": {"age": {"actionable": True, "max_increase": 3, "max_decrease": 0}}}, None),
    "both ways": ({"features": {"years": {"direction": None}}}, lambda im: im.relax("years", what="direction")),
    "no steps": ({"features": {"years": {"max_increase": None}}}, lambda im: im.relax("years", what="steps")),
    "bounds": ({"features": {"balance": {"bounds": [0, 3]}}}, lambda im: im.relax("balance", bounds=(0, 3))),
    "threshold": ({"threshold": 0.4}, lambda im: im),
}


@pytest.mark.parametrize("name", EDITS)
def test_people_and_everybody_are_the_library_s(page: Page, name: str) -> None:
    X, im = world()
    start = page.post("start")["state"]
    change, edit = EDITS[name]
    state = {**start, **change}
    edited = edit(im) if edit is not None else Edits.read(change).of(im)
    tau = state["threshold"]
    truth = truth_of(MODELS, X, edited, target=1, threshold=tau)
    found = page.look(state, person=7)
    assert not any("error" in kind for kind in found), found
    everybody = found["everybody"][-1]
    assert everybody["whole"]
    assert everybody["people"] == len(X)
    for model in MODELS:
        summary = truth.summary(model)
        told = everybody["models"][model]
        assert told["verdicts"] == dict(summary.verdicts)
        assert told["mean_rho"] == summary.mean_rho
        assert told["sentences"] == str(summary).split("\n")
        row = truth.of_model(model).loc[X.index[7]]
        for column, value in found["person"][0]["models"][model].items():
            if column not in ("p_value", "p_adjusted"):
                assert same(value, row[column]), (model, column, value, row[column])
        change_ = truth.change(X.index[7], model=model)
        witness = found["person"][0]["reach"]["models"][model]["witness"]
        assert [w["feature"] for w in witness] == change_["feature"].tolist()
        assert [str(w["to"]) for w in witness] == [str(v) for v in change_["to"]]
        listed = page.post("people", state=state, model=model, limit=100, sort="place")["rows"]
        assert [r["label"] for r in listed] == list(X.index)
        assert all(same(r["rho"], v) for r, v in zip(listed, truth.of_model(model)["rho"]))
        assert [r["verdict"] for r in listed] == truth.of_model(model)["verdict"].tolist()


def test_reach_is_the_enumerated_set(page: Page) -> None:
    X, im = world()
    start = page.post("start")["state"]
    for place in (0, 3, 11):
        reach = page.look(start, person=place)["person"][0]["reach"]
        points = im.enumerate(X.iloc[[place]])
        assert reach["exact"]
        assert reach["points"] == points.size
        moved = {m["name"]: m for m in reach["moved"]}
        truly = {c for c in im.by_name if points.points[c].astype(str).nunique() > 1}
        assert set(moved) == truly
        for name, m in moved.items():
            column = points.points[name]
            assert m["values"] == column.astype(str).nunique()
            if name != "home":
                assert (m["low"], m["high"]) == (column.min(), column.max())
            assert m["share"] == pytest.approx(float((column != X[name].iloc[place]).mean()), abs=1e-12)
        outputs = MODELS["strict"](points.points)
        assert reach["models"]["strict"]["hits"] == int(outputs.sum())
        assert sum(reach["listed"]["hits"]["strict"]) == int(outputs.sum()) or reach["points"] > 200
        assert reach["listed"]["distance"] == sorted(reach["listed"]["distance"])
        assert reach["listed"]["distance"][0] == 0.0


def test_draws_are_the_audit_s_own() -> None:
    X, im = drawn()
    page = Page(make_app(rich, X, im, target=1, population="all", token="t", seed=3))
    start = page.post("start")["state"]
    truth = truth_of(rich, X, im, target=1, threshold=0.1, seed=3)
    found = page.look(start, person=4)
    person, row = found["person"][0], truth.table.iloc[4]
    assert person["models"]["model"]["rho"] == row["rho"]
    assert person["models"]["model"]["low"] == row["low"]
    assert person["reach"]["models"]["model"]["hits"] == row["hits"]
    assert person["reach"]["points"] == row["n"]
    assert not person["reach"]["exact"]
    assert found["everybody"][-1]["models"]["model"]["mean_rho"] == truth.summary().mean_rho


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
    assert start["population"] == "outside the target"
    person = outside.look(start["state"], person=inside)["person"][0]
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
    pair = page.look(start)["everybody"][-1]["pairs"][0]
    truth = truth_of(MODELS, X, im, target=1)
    one, two = truth.of_model(pair["a"]), truth.of_model(pair["b"])
    crossed = pd.crosstab(one["verdict"], two["verdict"])
    assert {(c["a"], c["b"]): c["people"] for c in pair["counts"]} == {k: v for k, v in crossed.stack().items() if v}
    assert pair["mean_gap"] == pytest.approx(float((two["rho"] - one["rho"]).mean()), abs=1e-12)
    some = page.post("people", state=start, model="strict", verdict="below", other="kind", other_verdict="above", limit=100)
    assert some["listed"] == int(((one["verdict"] == "below") & (two["verdict"] == "above")).sum())


def test_people_are_found_filtered_and_sorted(page: Page) -> None:
    X, im = world()
    start = page.post("start")["state"]
    page.look(start)
    truth = truth_of(MODELS, X, im, target=1).of_model("strict")
    young = page.post("people", state=start, model="strict", find="age < 30 and home == 'rent'", limit=100)
    assert [r["label"] for r in young["rows"]] == X.index[(X["age"] < 30) & (X["home"] == "rent")].tolist()
    assert [r["label"] for r in page.post("people", state=start, find="p01")["rows"]] == [f"P01{k}" for k in range(10)]
    ranked = page.post("people", state=start, model="strict", sort="rho", down=True, limit=100)["rows"]
    assert [r["rho"] for r in ranked] == sorted(truth["rho"], reverse=True)
    below = page.post("people", state=start, model="strict", verdict="below", limit=5, offset=5)
    assert [r["label"] for r in below["rows"]] == truth.index[truth["verdict"] == "below"][5:10].tolist()
    assert below["counts"] == {str(k): int(v) for k, v in truth["verdict"].value_counts().items()}
    wrong = page.post("people", state=start, find="agee < 30")
    assert wrong["found"] == 0
    assert "did you mean 'age'" in wrong["note"]


def test_what_changed_is_told_beside_what_was(page: Page) -> None:
    X, im = world()
    start = page.post("start")["state"]
    page.look(start)
    told = page.look({**start, "off": [1]})["everybody"][-1]["models"]["strict"]
    before = truth_of(MODELS, X, im, target=1).of_model("strict")
    after = truth_of(MODELS, X, im.without("savings"), target=1).of_model("strict")
    assert told["before"]["mean_rho"] == pytest.approx(float(before["rho"].mean()), abs=0)
    moved = sum(c["people"] for c in told["before"]["changed"])
    assert moved == int((before["verdict"] != after["verdict"]).sum()) > 0
    row = page.post("people", state={**start, "off": [1]}, model="strict", limit=100)["rows"][3]
    assert row["was"] == before["rho"].iloc[3]


def test_an_edit_that_breaks_people_says_who(page: Page) -> None:
    X, _ = world()
    start = page.post("start")["state"]
    state = {**start, "features": {"balance": {"bounds": [0, 2]}}}
    out = X.index[X["balance"] > 2]
    assert len(out) > 0
    found = page.look(state, person=int(np.flatnonzero(X["balance"] > 2)[0]))
    assert found["person"][0]["status"] == "invalid_start"
    assert "balance" in found["person"][0]["broken"][0]["where"] + found["person"][0]["broken"][0]["what"]
    assert found["everybody"][-1]["models"]["strict"]["verdicts"]["invalid_start"] == len(out)


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
    edited = Edits.read({"off": off, "features": features}).of(im)
    assert edited == truth
    assert model_key(edited) == model_key(truth)


@pytest.mark.parametrize(
    "record",
    [
        {"off": [9]}, {"off": "all"}, {"off": [-1]}, {"off": [True]}, {"features": {"agee": {"actionable": True}}}, {"features": []},
        {"features": {"years": {"type": "real"}}}, {"features": {"years": {"max_increase": "2"}}}, {"features": {"years": {"max_increase": -1}}},
        {"features": {"balance": {"bounds": [4, 0]}}}, {"features": {"balance": {"bounds": [0]}}}, {"features": {"years": {"direction": "up"}}},
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

    desk = Desk(make_question(slow, X, im, target=1))
    state = desk.state(desk.start()["state"])
    told: list[dict[str, Any]] = []
    ended: list[str] = []

    def work(stop: threading.Event) -> None:
        held.on = True
        try:
            desk.look(state, None, whole=None, stop=stop, tell=told.append)
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
    assert not any(t["kind"] == "everybody" and t["whole"] for t in told)


def test_many_at_once_get_their_own_answers(page: Page) -> None:
    X, im = world()
    start = page.post("start")["state"]
    truth = {k: truth_of(MODELS, X, im.without(k), target=1).summary("strict").mean_rho for k in range(3)}
    found: dict[int, Any] = {}

    def work(k: int) -> None:
        answer = Page(page.app).ask("look", state={**start, "off": [k]}, person=None, window=f"w{k}")
        found[k] = answer.text.splitlines()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    for k in range(3):
        last = [json.loads(line) for line in found[k] if '"everybody"' in line][-1]
        assert last["models"]["strict"]["mean_rho"] == truth[k]


def test_a_slow_model_is_asked_about_all_only_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    from budge.web import desk as module

    X, im = world()
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    monkeypatch.setattr(module, "FEWEST", 1)
    page = Page(make_app(MODELS["strict"], X, im, target=1, population="all"))
    start = page.post("start")["state"]
    some = page.look(start)["everybody"][-1]
    assert not some["whole"]
    assert some["stopped"]
    assert some["people"] < some["of"] == len(X)
    assert page.look(start, whole=True)["everybody"][-1]["whole"]


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
    found = page.look(start, person=0)
    assert found["person_error"][0]["problems"][0]["what"]
    assert "error" in found or "everybody_error" in found
    fails["on"] = False
    assert page.look(start, person=0)["everybody"][-1]["whole"]


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
    assert start["chosen"] == own
    assert len(set(own.values())) == 2  # else nothing is tried here
    assert start["population"] == "outside the target"
    assert X.index[start["first"]] == truth.of_model("strict").index[0]
    inside = len(X) - own["kind"]
    early = page.post("people", state=start["state"], model="kind")["counts"]
    assert early == {"not computed": own["kind"], "already in the target": inside}
    found = page.look(start["state"], person=start["first"])["everybody"][-1]
    assert {name: found["models"][name]["people"] for name in MODELS} == own
    assert found["pairs"][0]["people"] == len(set(truth.of_model("strict").index) & set(truth.of_model("kind").index))
    late = page.post("people", state=start["state"], model="kind")["counts"]
    assert late.pop("already in the target") == inside
    assert sum(late.values()) == own["kind"]
    young = (X["age"] < 40).to_numpy()
    some = Page(make_app(MODELS, X, im, target=1, population=young, token="t"))
    begin = some.post("start")
    assert begin["chosen"] == dict.fromkeys(MODELS, int(young.sum()))
    assert some.post("people", state=begin["state"], model="kind")["counts"]["not chosen"] == int((~young).sum())
