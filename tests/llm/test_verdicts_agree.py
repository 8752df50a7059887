"""Interval, bound, p-value and verdict are one statement, for every design; and no way to fill unresolved answers contradicts it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budge import llm
from budge.llm import Answers
from budge.llm.claims.evidence import ANY_STOP, Evidence, rule_of
from budge.llm.runs.design import rule_key
from budge.llm.runs.draws import stop_of
from budge.stats import StoppingRule, anytime_rule, curtailed_rule, sprt_rule

ALPHAS = (0.01, 0.05, 0.2)
CLAIMS = ("below", "above")
RULES = {
    (kind, claim): rule
    for claim, rate in (("below", 0.2), ("above", 0.65))
    for kind, rule in (
        ("SPRT", sprt_rule(threshold=0.4, rate=rate, claim=claim)),
        ("anytime", anytime_rule(120, threshold=0.4, claim=claim)),
        ("curtailed", curtailed_rule(60, threshold=0.4, claim=claim)),
    )
}


def outcomes(draw: st.DrawFn, n: int) -> list[bool | None]:
    """Draw hits at some rate, with some answers unresolved."""
    rate, lost, seed = draw(st.floats(0, 1)), draw(st.sampled_from([0.0, 0.02, 0.2, 1.0])), draw(st.integers(0, 2**20))
    rng = np.random.default_rng(seed)
    return [None if rng.random() < lost else bool(rng.random() < rate) for _ in range(n)]


def rows(hits: list[bool | None], per: int = 1, interaction: str = "t", model: str = "m") -> list[dict[str, Any]]:
    return [
        {
            "model": model, "interaction": interaction, "prompt": f"q{i // per}", "category": f"c{i // per % 3}",
            "draw": i if per == 1 else i % per, "hit": hit,
        }
        for i, hit in enumerate(hits)
    ]  # fmt: skip


@st.composite
def designs(draw: st.DrawFn) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, Any]]:
    """Draw rows, what a run says of them, and a test of them."""
    kind = draw(st.sampled_from(["joint", "stopped", "other threshold", "per_prompt", "uneven", "first", "bounded", "clustered"]))
    test = {"threshold": 0.4, "claim": draw(st.sampled_from(CLAIMS)), "alpha": draw(st.sampled_from(ALPHAS)), "over": "these"}
    if kind in ("stopped", "other threshold"):
        rule = RULES[draw(st.sampled_from(sorted(RULES)))]
        hits = outcomes(draw, rule.max_n)
        made = rows(hits[: stop_of(rule, hits)[1]])
        test["threshold"] = 0.4 if kind == "stopped" else 0.45
        return made, {"scheme": "joint", "sequential": {**rule_key(rule), "stops": []}}, test
    test["threshold"] = draw(st.sampled_from([0.05, 0.4, 0.9]))
    if kind == "joint":
        return rows(outcomes(draw, draw(st.integers(1, 120)))), {"scheme": "joint"}, test
    per, prompts = draw(st.integers(1, 5)), draw(st.integers(2, 25))
    made = rows(outcomes(draw, per * prompts), per)
    if per == 1:
        made = [{**row, "draw": 0} for row in made]
    if kind == "uneven":
        made = made[: draw(st.integers(1, len(made)))]
    elif kind in ("first", "bounded", "clustered"):
        test |= {"over": "population", "method": kind}
    return made, {"scheme": "per_prompt"}, test


def agrees(row: Any, test: dict[str, Any]) -> None:
    """Check one row of an unadjusted table."""
    below, tau = test["claim"] == "below", test["threshold"]
    shown = row["p_value"] < test["alpha"]
    assert (row["verdict"] == test["claim"]) == shown
    assert (row["bound"] < tau if below else row["bound"] > tau) == shown, row.to_dict()
    assert row["low"] <= row["bound"] <= row["high"]
    assert 0 <= row["low"] <= row["high"] <= 1
    assert row["p_value"] == row["p_adjusted"]


def filled(made: list[dict[str, Any]], hit: bool) -> list[dict[str, Any]]:
    return [{**row, "hit": hit if row["hit"] is None else row["hit"]} for row in made]


@settings(max_examples=150, deadline=None)
@given(designs())
def test_interval_bound_p_value_and_verdict_are_one_statement(design: Any) -> None:
    made, info, test = design
    row = llm.test(Answers.of(made, info), adjust="none", **test).table.iloc[0]
    agrees(row, test)
    # The interval is the two one-sided bounds at half the error each.
    half = {**test, "alpha": test["alpha"] / 2}
    for claim, end in (("below", "high"), ("above", "low")):
        one = llm.test(Answers.of(made, info), adjust="none", **{**half, "claim": claim}).table.iloc[0]
        assert one["bound"] == pytest.approx(row[end], abs=1e-9)
    if test.get("method") == "clustered":
        return  # approximate: what counts as worst depends on the spread too
    # However the unresolved answers turn out, no claim gets weaker.
    for hit in (True, False):
        sure = llm.test(Answers.of(filled(made, hit), info), adjust="none", **test).table.iloc[0]
        assert row["low"] <= sure["low"] + 1e-9
        assert row["high"] >= sure["high"] - 1e-9
        assert row["p_value"] >= sure["p_value"] - 1e-9
        assert not (row["verdict"] == test["claim"] and sure["verdict"] == "inconclusive")


@settings(max_examples=60, deadline=None)
@given(designs(), designs(), st.sampled_from(["bh", "holm", "bonferroni", "by"]))
def test_verdicts_compare_the_adjusted_p_value_with_alpha(one: Any, two: Any, adjust: str) -> None:
    if one[1] != two[1] or "method" in one[2] or "method" in two[2]:
        return
    if adjust == "by" and one[1].get("sequential"):
        return  # refused: a rule stops at the level that survives the other adjustments
    both = one[0] + [{**row, "interaction": "u"} for row in two[0]]
    table = llm.test(Answers.of(both, one[1]), adjust=adjust, **one[2]).table
    assert ((table["verdict"] == one[2]["claim"]) == (table["p_adjusted"] < one[2]["alpha"])).all()
    assert (table["p_adjusted"] >= table["p_value"]).all()


@settings(max_examples=60, deadline=None)
@given(designs())
def test_categories_and_prompts_agree_too(design: Any) -> None:
    made, info, test = design
    if test.get("method") == "clustered":
        return  # a category may have one prompt, which says nothing of the spread
    found = llm.test(Answers.of(made, info), adjust="none", **test)
    for table in (found.by_category(), found.by_prompt()):
        for _, row in table.iterrows():
            agrees(row, test)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from(ALPHAS), st.sampled_from(["joint", "per_prompt", "first", "bounded"]))
def test_a_comparison_is_significant_if_and_only_if_its_interval_excludes_no_difference(data: Any, alpha: float, kind: str) -> None:
    per = 1 if kind == "joint" else data.draw(st.integers(1, 4))
    n = per * data.draw(st.integers(1, 60 if kind == "joint" else 20))
    one, two = outcomes(data.draw, n), outcomes(data.draw, n)
    scheme = {"scheme": "joint" if kind == "joint" else "per_prompt"}
    asked = {"over": "these"} if kind in ("joint", "per_prompt") else {"over": "population", "method": kind}

    def compared(fill: Any = None) -> pd.Series[Any]:
        both = [*rows(one, per, model="a"), *rows(two, per, model="b")]
        both = both if fill is None else [{**r, "hit": fill(r) if r["hit"] is None else r["hit"]} for r in both]
        return llm.compare(Answers.of(both, scheme), alpha=alpha, adjust="none", **asked).table.iloc[0]  # type: ignore[arg-type]

    row = compared()
    excluded = row["low"] > 0 or row["high"] < 0
    assert (row["p_value"] < alpha) == excluded == (row["verdict"] != "inconclusive")
    if excluded:
        assert row["verdict"] == ("higher" if row["low"] > 0 else "lower")
    for ahead in "ab":  # the unresolved answers at their best for one of the two
        sure = compared(lambda r, ahead=ahead: r["model"] == ahead)
        assert row["low"] <= sure["low"] + 1e-9
        assert row["high"] >= sure["high"] - 1e-9


def test_a_significant_difference_has_an_interval_without_0() -> None:
    """Twelve against two of a hundred pairs: the p-value was below alpha beside an interval that held 0."""
    one = [True] * 12 + [False] * 88
    two = [False] * 12 + [True] * 2 + [False] * 86
    both = Answers.of([*rows(one, model="a"), *rows(two, model="b")], {"scheme": "joint"})
    row = llm.compare(both, over="these").table.iloc[0]
    assert row["low"] > 0
    assert row["p_value"] < 0.05


# -- rules from their records ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_rebuilt_from_its_record(name: Any) -> None:
    rule = RULES[name]
    made = rule_of(rule_key(rule))
    if rule.kind == "anytime-valid":
        assert made.bets == rule.bets
        return
    assert (made.kind, made.claim, made.threshold, made.alpha) == (rule.kind, rule.claim, rule.threshold, rule.alpha)
    if rule.bets is not None:  # the evidence of an SPRT, which does not depend on where it stops
        assert made.bets is not None
        assert made.bets.u == pytest.approx(rule.bets.u, abs=1e-14)
    else:
        assert (made.max_n, made.accept.tolist()) == (rule.max_n, rule.accept.tolist())


@pytest.mark.parametrize(
    "record", [None, {}, {"kind": "SPRT"}, {"kind": "curtailed", "max_n": None}, {"kind": "of my own"}, {"kind": ["SPRT"]}]
)
def test_a_record_that_lacks_something_gives_the_evidence_of_any_stop(record: Any) -> None:
    assert rule_of(record) is ANY_STOP
    seen = Evidence(*(np.array([float(v)]) for v in (0, 0, 40, 0)), "joint", record)
    found = seen.claim(over="these", threshold=0.4, claim="below", alpha=0.05, method="anytime")
    assert found.method == "anytime-valid"
    assert found.p_value is not None
    assert found.p_value < 0.05


def test_more_draws_than_a_curtailed_rule_makes_are_not_tested_by_it() -> None:
    rule = RULES["curtailed", "below"]
    seen = Evidence(*(np.array([float(v)]) for v in (2, 0, rule.max_n + 1, 0)), "joint", rule_key(rule))
    assert seen.claim(over="these", threshold=0.4, claim="below", alpha=0.05, method="anytime").method == "anytime-valid"


# -- runs that are not finished ----------------------------------------------------------------------------------------------


def same(one: pd.DataFrame, two: pd.DataFrame) -> None:
    names = ["n", "hits", "unresolved", "low", "high", "bound", "p_value", "verdict"]
    pd.testing.assert_frame_equal(one[names].reset_index(drop=True), two[names].reset_index(drop=True))


@settings(max_examples=20, deadline=None)
@given(st.data(), st.sampled_from(CLAIMS))
def test_draws_that_were_never_answered_count_against_every_claim(data: Any, claim: str) -> None:
    hits = outcomes(data.draw, 30)
    missing = set(data.draw(st.lists(st.integers(1, 29), max_size=6)))
    for per, info in ((1, {"scheme": "joint", "n": 30}), (3, {"scheme": "per_prompt", "per_prompt": 3, "prompts": "10 prompts, x"})):
        there = [row for i, row in enumerate(rows(hits, per)) if i not in missing]
        whole = [{**row, "hit": None if i in missing else row["hit"]} for i, row in enumerate(rows(hits, per))]
        test = {"threshold": 0.4, "over": "these", "claim": claim}
        cut = llm.test(Answers.of(there, {**info, "complete": False}), **test)  # type: ignore[arg-type]
        full = llm.test(Answers.of(whole, {**info, "complete": True}), **test)  # type: ignore[arg-type]
        same(cut.table, full.table)
        for by in ("category", "prompt"):
            some, every = (t.by_category() if by == "category" else t.by_prompt() for t in (cut, full))
            found = some.merge(every, on=["model", "interaction", by], suffixes=("", "_whole"))
            assert len(found) == len(some)
            assert (found["p_value"] >= found["p_value_whole"] - 1e-12).all()
            assert (found["low"] <= found["low_whole"] + 1e-12).all()
            assert (found["high"] >= found["high_whole"] - 1e-12).all()


@pytest.mark.parametrize("name", RULES)
def test_gaps_of_an_unfinished_run_with_a_rule_are_unresolved(name: Any) -> None:
    rule: StoppingRule = RULES[name]
    hits = [rule.claim == "above" if i % 4 else rule.claim == "below" for i in range(20)]
    info = {"scheme": "joint", "n": rule.max_n, "complete": False, "sequential": {**rule_key(rule), "stops": []}}
    made = rows(list(hits))
    gaps = [row for row in made if row["draw"] not in (3, 11)]
    lost = [{**row, "hit": None if row["draw"] in (3, 11) else row["hit"]} for row in made]
    test: dict[str, Any] = {"threshold": 0.4, "over": "these", "claim": rule.claim}
    one, two = (llm.test(Answers.of(part, info), **test).table for part in (gaps, lost))
    same(one, two)
    assert one["unresolved"][0] == 2
    never = Answers.of(made, {**info, "identity": {"models": {"m": "", "never asked": ""}}})
    row = llm.test(never, **test).table.set_index("model").loc["never asked"]
    assert (row["n"], row["verdict"], row["low"], row["high"]) == (0, "inconclusive", 0.0, 1.0)
    assert row["p_value"] == pytest.approx(1)
    assert math.isnan(row["rate"])
