"""`llm.test` and `llm.from_counts`: the paper's table, what is refused, unresolved and unanswered draws, splits, and how it reads."""

from __future__ import annotations

import json
import math
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budge import llm, stats
from budge.errors import DataError, DesignError
from budge.llm import Answers

PAPER = {
    "OLMo 2 7B": {"base": 0.227, "misspell": (43, 79), "roleplay": (10, 79), "chinese": (43, 79), "french": (44, 79)},
    "Llama 3.1 8B": {"base": 0.277, "misspell": (41, 159), "roleplay": (43, 159), "chinese": (47, 159), "french": (47, 159)},
}


def rows(
    hits: list[bool | None], *, model: str = "m", interaction: str = "typos", per: int = 1, category: str = ""
) -> list[dict[str, Any]]:
    """Draws of prompts in turn: `per` draws of the first, then of the second, and so on."""
    return [
        {
            "model": model,
            "interaction": interaction,
            "prompt": f"q{k // per}",
            "category": category or f"c{k % 2}",
            "draw": k % per,
            "hit": hit,
        }
        for k, hit in enumerate(hits)
    ]


def verdict_of(hits: list[bool | None], **design: Any) -> str:
    return str(llm.test(Answers.of(rows(hits)), over="these", **design).table["verdict"][0])


# -- the paper's table ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def paper() -> llm.Verdicts:
    return llm.from_counts(PAPER, threshold=0.4, over="these")


def test_the_papers_differences_and_p_values(paper: llm.Verdicts) -> None:
    olmo, llama = (paper.table[paper.table["model"] == model] for model in PAPER)
    assert (100 * olmo["delta"]).round(1).tolist() == [31.7, -10.0, 31.7, 33.0]
    assert olmo["p_adjusted"].round(3).tolist() == [0.998, 0.0, 0.998, 0.998]
    assert olmo["verdict"].tolist() == ["inconclusive", "below", "inconclusive", "inconclusive"]
    # Printed: -1.9, -0.6, +1.9, +1.9. From the printed base rate the second is -0.66; a base rate of 27.65 to 27.69 % prints as 27.7 and gives -0.6.
    assert (100 * llama["delta"]).round(1).tolist() == [-1.9, -0.7, 1.9, 1.9]
    assert round(100 * (43 / 159 - 0.2766), 1) == -0.6
    assert llama["p_adjusted"].round(4).tolist() == [0.0005, 0.0009, 0.0041, 0.0041], "the last two are printed as 0.005"
    assert llama["verdict"].tolist() == ["below"] * 4


def test_p_values_are_adjusted_within_a_model(paper: llm.Verdicts) -> None:
    from scipy.stats import binom, false_discovery_control

    for model, cells in PAPER.items():
        part = paper.table[paper.table["model"] == model]
        raw = [binom.cdf(*cells[word], 0.4) for word in part["interaction"]]
        assert part["p_value"].tolist() == pytest.approx(raw, rel=1e-9)
        assert part["p_adjusted"].tolist() == pytest.approx(false_discovery_control(raw).tolist(), rel=1e-9)


def test_every_interaction_at_once_needs_no_correction(paper: llm.Verdicts) -> None:
    assert paper.every["shown"].tolist() == [False, True]
    assert paper.every["p_value"].tolist() == pytest.approx([0.9983, 0.0040525], rel=1e-3)


def test_a_difference_from_a_known_base_rate_moves_the_interval(paper: llm.Verdicts) -> None:
    first = paper.table.iloc[0]
    low, high = stats.interval(43, 79)
    assert (first["delta_low"], first["delta_high"]) == pytest.approx((low - 0.227, high - 0.227))
    assert first["delta_method"] == "base rate taken as known"


def test_a_difference_from_a_counted_base_rate_allows_for_both() -> None:
    table = llm.from_counts({"m": {"base": (100, 440), "typos": (43, 79)}}, threshold=0.4, over="these").table
    one, two = stats.interval(43, 79, 0.025), stats.interval(100, 440, 0.025)
    assert table[["delta_low", "delta_high"]].values.tolist()[0] == pytest.approx([one.low - two.high, one.high - two.low])
    assert table["base_rate"][0] == 100 / 440


@pytest.mark.parametrize(
    ("counts", "where"),
    [
        ({}, "no counts"),
        ({"m": {"base": 0.2}}, "no interaction"),
        ({"m": {"typos": 3}}, r"\(hits, n\)"),
        ({"m": {"typos": (5, 4)}}, "more hits"),
        ({"m": {"typos": (2, 4, 3)}}, "more hits and unresolved"),
        ({"m": {"typos": (-1, 4)}}, "at least 0"),
        ({"m": {"typos": (1.5, 4)}}, "whole number"),
        ({"m": {"base": 22.7, "typos": (1, 4)}}, "write 0.227"),
    ],
)
def test_counts_that_make_no_sense_are_refused(counts: Any, where: str) -> None:
    with pytest.raises((DataError, DesignError), match=where):
        llm.from_counts(counts, threshold=0.4, over="these")


# -- design -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("design", "message"),
    [
        ({"threshold": 1.2}, "threshold"),
        ({"threshold": "40%"}, "write 0.4"),
        ({"alpha": True}, "alpha"),
        ({"over": "those"}, "over"),
        ({"claim": "under"}, "claim"),
        ({"adjust": "fdr"}, "adjust"),
        ({"method": "exact"}, "method"),
        ({"method": "clustered"}, "for claims about the population"),
        ({"base": "bse"}, "no such base"),
        ({"base": {"other": 0.2}}, "without answers"),
        ({"scheme": "random"}, "scheme"),
    ],
)
def test_a_design_that_makes_no_sense_is_refused(design: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"threshold": 0.4, "over": "these"}
    with pytest.raises((DesignError, DataError), match=message):
        llm.test(Answers.of(rows([True, False])), **{**good, **design})


def test_over_has_no_default() -> None:
    with pytest.raises(TypeError, match="over"):
        llm.test(Answers.of(rows([True])), threshold=0.4)  # type: ignore[call-arg]


def test_something_else_than_answers_is_an_error() -> None:
    for bad in (None, [1], {"m": {"t": (1, 2)}}):
        with pytest.raises(DataError, match="answers are wanted"):
            llm.test(bad, threshold=0.4, over="these")  # type: ignore[arg-type]


def test_no_answers_is_an_error() -> None:
    with pytest.raises(DataError, match="no answers"):
        llm.test(Answers.of([]), threshold=0.4, over="these")


def test_the_base_is_compared_with_and_tested_only_if_alone() -> None:
    base = rows([True] + [False] * 39, interaction="base")
    both = llm.test(Answers.of(base + rows([True] * 2 + [False] * 38)), threshold=0.2, over="these").table
    assert both["interaction"].tolist() == ["typos"]
    assert both["base_rate"][0] == 1 / 40
    assert both["delta"][0] == pytest.approx(1 / 40)
    alone = llm.test(Answers.of(base), threshold=0.2, over="these").table
    assert alone["interaction"].tolist() == ["base"]
    assert math.isnan(alone["delta"][0])
    every = llm.test(Answers.of(base + rows([True])), threshold=0.2, over="these", base=None).table
    assert every["interaction"].tolist() == ["base", "typos"]
    given_rate = llm.test(Answers.of(rows([True] * 4)), threshold=0.2, over="these", base={"m": 0.25}).table
    assert given_rate["delta"][0] == 0.75


def test_draws_of_unknown_making_need_a_word_if_it_matters() -> None:
    even, uneven = Answers.of(rows([True, False] * 4, per=2)), Answers.of(rows([True, False] * 4 + [True], per=2))
    assert llm.test(even, threshold=0.4, over="these").info["scheme"] == "per_prompt"
    with pytest.raises(DesignError, match="how they were drawn"):
        llm.test(uneven, threshold=0.4, over="these")
    joint, fixed = (llm.test(uneven, threshold=0.4, over="these", scheme=way).table for way in ("joint", "per_prompt"))
    assert joint["method"][0] == "exact binomial"
    assert "Hoeffding" in fixed["method"][0]
    assert joint["p_value"][0] == pytest.approx(stats.p_value(5, 9, 0.4))
    with pytest.raises(DesignError, match="leave scheme out"):
        llm.test(Answers.of(rows([True]), {"scheme": "joint"}), threshold=0.4, over="these", scheme="per_prompt")


def test_the_design_decides_the_numbers_where_they_agree() -> None:
    """With equally many draws of each prompt both readings pool."""
    answers = Answers.of(rows([True, False, False, False] * 5, per=4))
    one, two = (llm.test(answers, threshold=0.5, over="these", scheme=way).table for way in ("joint", "per_prompt"))
    assert one[["p_value", "low", "high", "bound"]].values.tolist() == two[["p_value", "low", "high", "bound"]].values.tolist()


# -- the population ---------------------------------------------------------------------------------------------------------


def test_pooled_repeats_are_refused_for_the_population() -> None:
    repeated = Answers.of(rows([True, False] * 20, per=2))
    for method in ("auto", "pooled", "one-per-prompt"):
        with pytest.raises(DesignError, match="not independent draws from the population") as error:
            llm.test(repeated, threshold=0.4, over="population", method=method)
        assert 'method="first"' in str(error.value)
    joint = Answers.of(
        [{"model": "m", "interaction": "t", "prompt": q, "draw": i, "hit": False} for i, q in enumerate("aab")],
        {"scheme": "joint"},
    )
    with pytest.raises(DesignError, match="population"):
        llm.test(joint, threshold=0.4, over="population")


def test_one_draw_a_prompt_is_exact_for_the_population() -> None:
    table = llm.test(Answers.of(rows([True] * 5 + [False] * 35)), threshold=0.3, over="population").table
    assert table["p_value"][0] == pytest.approx(stats.p_value(5, 40, 0.3))
    assert bool(table["exact"][0])


def test_the_other_ways_to_the_population() -> None:
    hits = [True, False, True, False, False, False] * 20
    answers = Answers.of(rows(hits, per=3), {"scheme": "per_prompt"})
    first, bounded, clustered = (
        llm.test(answers, threshold=0.8, over="population", method=method) for method in ("first", "bounded", "clustered")
    )
    assert first.table["p_value"][0] == pytest.approx(stats.p_value(20, 40, 0.8)), "prompts begin with True, False in turn"
    assert first.table["rate"][0] == 0.5
    assert first.table["low"][0] == pytest.approx(stats.interval(20, 40).low)
    assert bounded.table["exact"][0]
    assert not clustered.table["exact"][0]
    assert "approximate" in str(clustered)
    assert "approximate" not in str(bounded)


# -- unresolved and unanswered ----------------------------------------------------------------------------------------------

OUTCOMES = st.lists(st.sampled_from([True, False, False, False, None]), min_size=1, max_size=40).filter(
    lambda h: h.count(None) <= 4
)


@settings(deadline=None, max_examples=20)
@given(OUTCOMES, st.sampled_from(["below", "above"]), st.sampled_from([0.2, 0.5]))
def test_a_verdict_holds_for_every_way_to_fill_in(hits: list[bool | None], claim: str, tau: float) -> None:
    verdict = verdict_of(hits, threshold=tau, claim=claim)
    gaps = [i for i, hit in enumerate(hits) if hit is None]
    filled = []
    for values in product([True, False], repeat=len(gaps)):
        whole = list(hits)
        for i, value in zip(gaps, values):
            whole[i] = value
        filled.append(verdict_of(whole, threshold=tau, claim=claim))
    assert (verdict == claim) == all(one == claim for one in filled)


def test_unresolved_answers_widen_the_interval_to_both_sides() -> None:
    table = llm.test(Answers.of(rows([True] * 10 + [None] * 5 + [False] * 25)), threshold=0.9, over="these").table
    assert table["low"][0] == pytest.approx(stats.interval(10, 40).low)
    assert table["high"][0] == pytest.approx(stats.interval(15, 40).high)
    assert table["rate"][0] == 10 / 35
    assert table["unresolved"][0] == 5


def test_all_unresolved_is_inconclusive_and_has_no_rate() -> None:
    result = llm.test(Answers.of(rows([None] * 30)), threshold=0.4, over="these")
    assert result.table["verdict"][0] == "inconclusive"
    assert math.isnan(result.table["rate"][0])
    assert result.to_dict()["table"][0]["rate"] is None
    assert "no rate" in str(result)


@pytest.mark.parametrize(
    "info", [{"scheme": "joint", "n": 60}, {"scheme": "per_prompt", "per_prompt": 1, "prompts": "60 prompts, x"}]
)
def test_draws_that_were_planned_and_not_answered_are_unresolved(info: dict[str, Any]) -> None:
    """A run that was stopped for what it showed must not look like a smaller run."""
    seen = rows([False] * 40)
    whole = llm.test(Answers.of(seen, info), threshold=0.1, over="these").table
    assert (whole["n"][0], whole["verdict"][0]) == (40, "below")
    broken = llm.test(Answers.of(seen, {**info, "complete": False}), threshold=0.1, over="these")
    assert broken.table[["n", "unresolved"]].values.tolist() == [[60, 20]]
    assert broken.table["verdict"][0] == "inconclusive"
    assert "incomplete" in str(broken)


def test_prompts_without_any_answer_count_for_the_population_too() -> None:
    info = {"scheme": "per_prompt", "per_prompt": 1, "prompts": "50 prompts, x", "complete": False}
    table = llm.test(Answers.of(rows([False] * 40), info), threshold=0.3, over="population").table
    assert table["p_value"][0] == pytest.approx(stats.p_value(10, 50, 0.3))


# -- splits -----------------------------------------------------------------------------------------------------------------


def test_categories_and_prompts_are_tested_by_themselves() -> None:
    hits = [k < 3 for k in range(60)]
    result = llm.test(Answers.of(rows(hits, per=10), {"scheme": "per_prompt"}), threshold=0.4, over="these")
    by_prompt = result.by_prompt()
    assert by_prompt["prompt"].tolist() == [f"q{k}" for k in range(6)]
    assert by_prompt["hits"].tolist() == [3, 0, 0, 0, 0, 0]
    raw = [stats.p_value(k, 10, 0.4) for k in (3, 0, 0, 0, 0, 0)]
    assert by_prompt["p_value"].tolist() == pytest.approx(raw)
    assert by_prompt["p_adjusted"].tolist() == pytest.approx(stats.adjust(raw).tolist())
    by_category = result.by_category()
    assert by_category[["category", "n"]].values.tolist() == [["c0", 30], ["c1", 30]]
    with pytest.raises(DesignError, match="counts do not tell"):
        llm.from_counts(PAPER, threshold=0.4, over="these").by_category()


@pytest.mark.parametrize("labelled", [None, llm.Labelled(90, 8, 4, 94, 2, 2)], ids=["", "corrected"])
@pytest.mark.parametrize("by", ["prompt", "category"])
@pytest.mark.parametrize(("scheme", "claim", "method"), [("joint", "below", "auto"), ("per_prompt", "above", "auto"), ("joint", "below", "anytime")])
def test_splits_at_once_are_those_one_by_one(by: str, scheme: str, claim: str, method: str, labelled: llm.Labelled | None) -> None:
    from budge.llm.claims.cells import split_rows

    hits = [None if k % 11 == 3 else k % 3 == 0 for k in range(80)]
    answers = Answers.of(rows(hits, per=8) + rows(hits[::-1], per=8, interaction="french"), {"scheme": scheme})
    design = {"threshold": 0.4, "over": "these", "claim": claim, "alpha": 0.05, "adjust": "bh", "method": method}
    labels = None if labelled is None else {"typos": labelled, "french": llm.Labelled(50, 50, 3, 97)}
    fast, slow = (split_rows(answers, ["typos", "french"], by, design, scheme, None, labels, at_once=way) for way in (True, False))
    if method == "anytime":
        assert set(fast["method"].str.split(",").str[0]) == {"anytime-valid"}, "what was looked at is not tested as if it was not"
    columns = ["model", "interaction", by, "n", "hits", "unresolved", "method", "exact"]
    assert fast[columns].values.tolist() == slow[columns].values.tolist()
    for name in ("rate", "low", "high", "bound", "p_value"):
        assert fast[name].tolist() == pytest.approx(slow[name].tolist(), nan_ok=True)


def test_a_split_by_prompt_works_for_a_claim_about_the_population() -> None:
    answers = Answers.of(rows([False] * 60, per=10), {"scheme": "per_prompt"})
    table = llm.test(answers, threshold=0.4, over="population", method="bounded").by_prompt()
    assert table["n"].tolist() == [10] * 6
    assert table["p_value"].tolist() == pytest.approx([0.6**10] * 6)


# -- counts and rates belong together ---------------------------------------------------------------------------------------


def test_the_first_draws_are_counted_where_they_are_tested() -> None:
    """Of 20 prompts nine hit at first and 22 of 60 draws hit in all: what is printed is what was tested."""
    hits: list[bool | None] = [h for q in range(20) for h in ((True, q < 2, q < 2) if q < 9 else (False, q < 18, False))]
    lost: list[bool | None] = [None if k == 57 else h for k, h in enumerate(hits)]
    assert sum(map(bool, hits)) == 22
    asked: dict[str, Any] = {"threshold": 0.7, "over": "population", "method": "first"}
    whole = llm.test(Answers.of(rows(hits, per=3, category="c")), **asked)
    assert whole.table[["n", "hits", "unresolved", "rate"]].values.tolist() == [[20, 9, 0, 0.45]]
    assert "9 of 20 hit: 45 %" in str(whole)
    assert whole.to_dict()["table"][0]["hits"] == 9
    assert whole.by_category()[["n", "hits"]].values.tolist() == [[20, 9]]
    part = llm.test(Answers.of(rows(hits, per=3) + rows(lost, per=3, interaction="base")), **asked)
    assert part.table[["base_rate_over", "delta_over"]].values.tolist() == [["resolved answers"] * 2]
    assert part.table["base_rate"][0] == pytest.approx(9 / 19)
    assert part.table["delta"][0] == pytest.approx(0.45 - 9 / 19)


def test_a_mean_over_prompts_is_not_given_as_a_share_of_draws() -> None:
    uneven = [*rows([True, True, True], per=3), {**rows([False])[0], "prompt": "q9"}]
    text = str(llm.test(Answers.of(uneven, {"scheme": "per_prompt"}), threshold=0.9, over="these"))
    assert "3 of 4 hit: mean over prompts 50 %" in text


def test_rates_say_that_they_leave_unresolved_answers_out() -> None:
    base, typos = [True] * 2 + [False] * 6, [True] * 4 + [False] + [None] * 3
    result = llm.test(Answers.of(rows(base, interaction="base") + rows(typos)), threshold=0.9, over="these")  # type: ignore[arg-type]
    assert "4 of 5 resolved hit (3 of 8 unresolved): 80 % among those resolved, between 15.7 % and 99.69 %" in str(result)
    assert "+55.0 p.p. from base among those resolved" in str(result)
    assert result.to_dict()["table"][0]["rate_over"] == result.to_dict()["table"][0]["delta_over"] == "resolved answers"
    assert result.to_dict()["table"][0]["base_rate_over"] == "all answers"
    wide = result.wide().iloc[0]
    assert (wide["base rate"], wide["Δ typos"]) == ("25.0 %", "+55.0 p.p.†")
    assert result.to_markdown().rstrip().endswith("† among resolved answers; p-values count the unresolved ones against the claim.")
    assert r"+55.0 p.p.$^{\dagger}$" in result.to_latex()
    assert r"\footnotesize $^{\dagger}$ among resolved answers" in result.to_latex()
    plain = llm.test(Answers.of(rows(base, interaction="base") + rows([True] * 8)), threshold=0.9, over="these")  # type: ignore[arg-type]
    assert plain.footnote == ""
    assert "†" not in plain.to_markdown() + plain.to_latex()
    assert "resolved" not in str(plain)


def test_the_base_alone_has_a_rate_and_no_difference() -> None:
    result = llm.test(Answers.of(rows([True] + [False] * 9, interaction="base")), threshold=0.5, over="these", adjust="none")
    assert result.wide().to_dict("records") == [{"model": "m", "base rate": "10.0 %", "p base": "0.011"}]
    assert result.table["base_rate"].tolist() == [0.1]
    assert math.isnan(result.table["delta"][0])
    assert "from base" not in str(result)


# -- how it reads -----------------------------------------------------------------------------------------------------------


def test_it_reads_as_sentences(paper: llm.Verdicts) -> None:
    text = str(paper)
    assert "OLMo 2 7B, base rate 22.7 %:" in text
    assert (
        "misspell: not shown to be below 40 % (adjusted p = 0.998). 43 of 79 hit: 54.43 %, between 42.83 % and 65.69 %, +31.7 p.p. from base"
        in text
    )
    assert "roleplay: below 40 % (adjusted p < 0.001)." in text
    assert "Under every one of these 4: below 40 % is shown (p = 0.004, not adjusted: all have to be shown)." in text
    assert "The judge is taken as it is" in text
    json.dumps(paper.to_dict(), allow_nan=False)


def test_the_papers_table_is_written(paper: llm.Verdicts) -> None:
    lines = paper.to_markdown().splitlines()
    assert lines[2] == (
        "| OLMo 2 7B | 22.7 % | +31.7 p.p. | 0.998 | −10.0 p.p. | < 0.001 | +31.7 p.p. | 0.998 | +33.0 p.p. | 0.998 |"
    )
    latex = paper.to_latex()
    assert r"OLMo 2 7B & 22.7\% & +31.7 p.p. & \textit{$0.998$} & $-$10.0 p.p. & $<0.001$" in latex
    assert latex.count(r"\multicolumn{2}{c}") == 4


def test_names_are_escaped_everywhere() -> None:
    bad = "<script>|$_{\x1b[31m\n&\\"
    result = llm.from_counts({bad: {"base": 0.1, bad: (1, 30)}}, threshold=0.4, over="these")
    assert "\x1b" not in str(result)
    assert "<script>" not in result._repr_html_()
    assert "<script>" not in str(result.plot())
    row = result.to_markdown().splitlines()[2]
    assert row.count(" | ") == 3
    assert "\x1b" not in row
    latex = result.to_latex()
    assert r"\$\_\{" in latex
    assert r"\textbackslash{}" in latex
    assert len(latex.splitlines()) == 9


def test_the_figure_shows_the_table(paper: llm.Verdicts) -> None:
    from budge.report.figures.drawing import Line, Point

    figure = paper.plot()
    points = [mark for mark in figure.marks if isinstance(mark, Point) and mark.shape == "circle"]
    assert [p.x for p in points] == paper.table["rate"].tolist()
    assert [p.hollow for p in points] == (paper.table["verdict"] == "inconclusive").tolist()
    bases = [mark.x for mark in figure.marks if isinstance(mark, Point) and mark.shape == "diamond"]
    assert bases == paper.table["base_rate"].tolist()
    spans = [mark.points for mark in figure.marks if isinstance(mark, Line) and mark.title.startswith(("OLMo", "Llama"))]
    assert [(a[0], b[0]) for a, b in spans] == list(zip(paper.table["low"], paper.table["high"]))
    assert any(isinstance(mark, Line) and mark.dash == "dashed" and mark.points[0][0] == 0.4 for mark in figure.marks)
