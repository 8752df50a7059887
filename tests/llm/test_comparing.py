"""Comparisons of models and differences from the base: coverage and error computed exactly, rankings, what is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, multinomial

from budge import llm
from budge.errors import DataError, DesignError
from budge.llm import Answers
from budge.llm.claims.contrasts import Contrast, paired

ALPHA = 0.1


def frames(only_first: int, only_second: int, n: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two models on n draws that differ in so many ways."""
    one = [i < only_first for i in range(n)]
    two = [only_first <= i < only_first + only_second for i in range(n)]
    return tuple(
        pd.DataFrame({"prompt": [f"q{i}" for i in range(n)], "draw": 0, "hit": pd.Series(h, dtype=object)}) for h in (one, two)
    )  # type: ignore[return-value]


def made(b: int, c: int, n: int, scheme: str) -> Contrast:
    found = paired(*frames(b, c, n), scheme=scheme, over="these", alpha=ALPHA)
    assert found is not None
    return found


def laws(ways: list[tuple[float, float]]) -> np.ndarray:
    """The joint distribution of both kinds of disagreement over independent, unlike pairs."""
    law = np.zeros((len(ways) + 1, len(ways) + 1))
    law[0, 0] = 1
    for b, c in ways:
        law = (1 - b - c) * law + np.pad(b * law, ((1, 0), (0, 0)))[:-1] + np.pad(c * law, ((0, 0), (1, 0)))[:, :-1]
    return law


N = 14
PAIRS = [(b, c) for b in range(N + 1) for c in range(N + 1 - b)]
ALIKE = {pair: made(*pair, N, "joint") for pair in PAIRS}
FIXED = {pair: made(*pair, N, "per_prompt") for pair in PAIRS}
# Unlike pairs: what one and the other model alone hits. The last two pull against each other within a pair.
SPREADS: dict[str, list[tuple[float, float]]] = {
    "alike": [(0.3, 0.3)] * N,
    "certain": [(1.0, 0.0)] * 5 + [(0.0, 5 / 9)] * 9,
    "two kinds": [(0.6, 0.1), (0.1, 0.6)] * 7,
    "always opposed": [(0.5, 0.5)] * N,
    "half opposed": [(0.9, 0.1), (0.1, 0.9)] * 7,
}


@pytest.mark.parametrize(("b", "c"), [(0.2, 0.2), (0.05, 0.05), (0.5, 0.5), (0.3, 0.1), (0.6, 0.0), (0.01, 0.3)])
def test_pairs_that_are_alike_cover_and_err_as_promised(b: float, c: float) -> None:
    law = {pair: multinomial.pmf([*pair, N - sum(pair)], N, [b, c, 1 - b - c]) for pair in PAIRS}
    covered = sum(law[pair] for pair in PAIRS if ALIKE[pair].low <= b - c <= ALIKE[pair].high)
    assert covered >= 1 - ALPHA
    if b == c:
        for side in ("p_greater", "p_less"):
            assert sum(law[pair] for pair in PAIRS if getattr(ALIKE[pair], side) <= ALPHA) <= ALPHA


@pytest.mark.parametrize("spread", SPREADS)
def test_fixed_prompts_cover_and_err_as_promised_however_unlike(spread: str) -> None:
    ways = SPREADS[spread]
    law = laws(ways)
    truth = float(np.mean([b - c for b, c in ways]))
    assert truth == pytest.approx(0, abs=1e-12)
    assert law.sum() == pytest.approx(1)
    assert sum(law[pair] for pair in PAIRS if FIXED[pair].low <= truth <= FIXED[pair].high) >= 1 - ALPHA
    for side in ("p_greater", "p_less"):
        assert sum(law[pair] for pair in PAIRS if getattr(FIXED[pair], side) <= ALPHA) <= ALPHA


def test_the_law_of_disagreements_is_right() -> None:
    law = laws([(0.2, 0.3)] * 4)
    assert law[1, 2] == pytest.approx(multinomial.pmf([1, 2, 1], 4, [0.2, 0.3, 0.5]))


def test_p_values_and_intervals_of_fixed_prompts_are_one_statement() -> None:
    for pair in PAIRS:
        assert (FIXED[pair].low > 0) == (FIXED[pair].p_greater is not None and FIXED[pair].p_greater <= ALPHA / 2 + 1e-9)


def test_p_values_of_pairs_that_are_alike_are_near_the_binomial_of_disagreements() -> None:
    """One twentieth of the error bounds the rate at which pairs differ; the rest is McNemar's test."""
    assert 1 <= ALIKE[9, 2].p_greater / (binom.sf(8, 11, 0.5) / 0.95) < 1.03
    assert ALIKE[0, 0].p_greater == 1.0


OUTCOME = st.sampled_from([True, False, None])


@settings(deadline=None, max_examples=12)
@given(st.lists(st.tuples(OUTCOME, OUTCOME), min_size=1, max_size=4), st.sampled_from(["joint", "per_prompt"]))
def test_unresolved_answers_are_filled_against_each_statement(pairs: list[tuple[bool | None, bool | None]], scheme: str) -> None:
    """The interval spans those of all ways to fill in; each p-value is the largest of them."""
    from itertools import product

    def of(values: list[tuple[Any, Any]]) -> Contrast:
        one, two = (
            pd.DataFrame(
                {
                    "prompt": [f"q{i}" for i in range(len(values))],
                    "draw": 0,
                    "hit": pd.Series([v[k] for v in values], dtype=object),
                }
            )
            for k in (0, 1)
        )
        found = paired(one, two, scheme=scheme, over="these", alpha=ALPHA)
        assert found is not None
        return found

    gaps = [(i, k) for i, pair in enumerate(pairs) for k in (0, 1) if pair[k] is None]
    if len(gaps) > 5:
        return
    filled = []
    for values in product([True, False], repeat=len(gaps)):
        whole = [list(pair) for pair in pairs]
        for (i, k), value in zip(gaps, values):
            whole[i][k] = value
        filled.append(of([(a, b) for a, b in whole]))
    found = of(pairs)
    assert found.low <= min(f.low for f in filled) + 1e-12
    assert found.high >= max(f.high for f in filled) - 1e-12
    assert found.p_greater is not None
    assert found.p_greater >= max(f.p_greater or 0 for f in filled) - 1e-9


# -- through the public door --------------------------------------------------------------------------------------------------


def rows(cells: dict[tuple[str, str], int], n: int = 200) -> list[dict[str, Any]]:
    """For each model and interaction so many hits, the first of n draws."""
    return [
        {"model": m, "interaction": i, "prompt": f"q{k}", "draw": k, "hit": k < h}
        for (m, i), h in cells.items()
        for k in range(n)
    ]


CELLS = {("a", "base"): 20, ("b", "base"): 60, ("a", "typos"): 120, ("b", "typos"): 70, ("a", "french"): 21, ("b", "french"): 60}


def test_a_ranking_is_overturned_where_both_orders_are_shown() -> None:
    result = llm.compare(Answers.of(rows(CELLS), {"scheme": "joint"}), over="these")
    verdicts = dict(zip(result.table["interaction"], result.table["verdict"]))
    assert verdicts == {"base": "lower", "typos": "higher", "french": "lower"}
    assert result.rankings[["interaction", "ahead", "overturned"]].values.tolist() == [
        ["typos", "a", True],
        ["french", "a", False],
    ]
    typos = result.rankings.iloc[0]
    one, two = (binom.sf(39, 40, 0.5), binom.sf(49, 50, 0.5))
    assert 1 <= typos["p_value"] / (2 * max(one, two) / 0.95) < 1.03
    text = str(result)
    assert "typos overturns the ranking of the base: a is lower there and higher here" in text
    assert "base: a is lower than b" in text
    json.dumps(result.to_dict(), allow_nan=False)
    assert len(result.plot().about.split(";")) == 6


def test_an_overturned_ranking_is_claimed_wrongly_at_most_alpha() -> None:
    """Equal at the base, different under the interaction: the order of the base is no order. Exact over all counts of the base."""
    n, p = 8, 0.3
    law = laws([(p, p)] * n)
    wrong = 0.0
    for b in range(n + 1):
        for c in range(n + 1 - b):
            if law[b, c] > 1e-12:
                one, two = frames(b, c, n)
                base = pd.concat([one.assign(model="a"), two.assign(model="b")]).assign(interaction="base")
                more = pd.DataFrame(
                    {
                        "prompt": [f"q{i}" for i in range(n)] * 2,
                        "draw": 0,
                        "model": ["a"] * n + ["b"] * n,
                        "hit": [True] * n + [False] * n,
                    }
                )
                answers = Answers(pd.concat([base, more.assign(interaction="typos")], ignore_index=True), {"scheme": "joint"})
                wrong += law[b, c] * bool(llm.compare(answers, over="these", alpha=ALPHA).rankings["overturned"][0])
    assert wrong <= ALPHA


def test_overlapping_intervals_do_not_hide_a_difference() -> None:
    """Two rates whose intervals overlap, on the same draws: the pairs show the difference."""
    answers = Answers.of(rows({("a", "typos"): 60, ("b", "typos"): 75}), {"scheme": "joint"})
    table = llm.test(answers, threshold=0.9, over="these").table
    assert table["high"][0] > table["low"][1]
    assert llm.compare(answers, over="these").table["verdict"][0] == "lower"


def test_only_common_draws_are_compared() -> None:
    extra = [{"model": "a", "interaction": "typos", "prompt": f"x{i}", "draw": i, "hit": True} for i in range(50)]
    result = llm.compare(Answers.of(rows({("a", "typos"): 60, ("b", "typos"): 75}) + extra, {"scheme": "joint"}), over="these")
    assert result.table["pairs"][0] == 200


def test_fixed_prompts_are_compared_with_equal_numbers_of_draws() -> None:
    draws = {"a": 3, "b": 2}
    answers = Answers.of(
        [
            {"model": m, "interaction": "t", "prompt": q, "draw": i, "hit": m == "b"}
            for m, k in draws.items()
            for q in range(30)
            for i in range(k)
        ],
        {"scheme": "per_prompt"},
    )
    result = llm.compare(answers, over="these")
    assert result.table[["pairs", "verdict", "method"]].values.tolist() == [[60, "lower", "paired, fixed prompts"]]


def test_the_population_asks_for_one_draw_a_prompt_or_a_method() -> None:
    repeated = Answers.of(
        [
            {"model": m, "interaction": "t", "prompt": q, "draw": i, "hit": m == "b"}
            for m in "ab"
            for q in range(60)
            for i in range(3)
        ],
        {"scheme": "per_prompt"},
    )
    with pytest.raises(DesignError, match="population"):
        llm.compare(repeated, over="population")
    assert llm.compare(repeated, over="population", method="first").table[["pairs", "method"]].values.tolist() == [
        [60, "paired, exact region"]
    ]
    bounded = llm.compare(repeated, over="population", method="bounded").table
    assert bounded["verdict"][0] == "lower"
    assert bounded["high"][0] < 0


def test_differences_from_the_base_are_paired_where_every_draw_has_a_partner() -> None:
    both = Answers.of(rows({("m", "base"): 40, ("m", "typos"): 60}), {"scheme": "joint"})
    table = llm.test(both, threshold=0.5, over="these").table
    expected = paired(
        both.only(interaction="typos").table, both.only(interaction="base").table, scheme="joint", over="these", alpha=0.05
    )
    assert expected is not None
    assert table["delta_method"][0] == "paired, exact region"
    assert (table["delta_low"][0], table["delta_high"][0]) == (expected.low, expected.high)
    fewer = Answers.of(rows({("m", "base"): 40}, 150) + rows({("m", "typos"): 60}), {"scheme": "joint"})
    assert llm.test(fewer, threshold=0.5, over="these").table["delta_method"][0] == "two intervals"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"models": ["a"]}, "two models"),
        ({"models": ["a", "c"]}, "no such model"),
        ({"over": "all"}, "over"),
        ({"method": "anytime"}, "stopped early"),
        ({"adjust": "fdr"}, "adjust"),
    ],
)
def test_comparisons_that_make_no_sense_are_refused(change: dict[str, Any], message: str) -> None:
    answers = Answers.of(rows(CELLS, 5), {"scheme": "joint"})
    with pytest.raises((DataError, DesignError), match=message):
        llm.compare(answers, **{"over": "these", **change})


def test_runs_that_stopped_early_or_broke_off_are_not_compared() -> None:
    for info in ({"sequential": {"kind": "SPRT"}}, {"complete": False}):
        with pytest.raises(DesignError, match=r"stopped early|incomplete"):
            llm.compare(Answers.of(rows(CELLS, 5), {"scheme": "joint", **info}), over="these")


def test_models_without_a_common_draw_are_not_compared() -> None:
    answers = Answers.of(
        rows({("a", "t"): 3}, 5) + [{**r, "prompt": "z" + r["prompt"]} for r in rows({("b", "t"): 3}, 5)], {"scheme": "joint"}
    )
    with pytest.raises(DataError, match="in common"):
        llm.compare(answers, over="these")
