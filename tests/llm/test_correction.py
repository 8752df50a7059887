"""Correction for a judge's errors: coverage and error over all outcomes, exactly, and never better than what is known of the judge."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from budge import llm
from budge.errors import DataError, DesignError
from budge.llm import Answers, Labelled
from budge.llm.claims.evidence import Evidence, Rate

ALPHA = 0.1
N, HITS, MISSES = 14, 7, 7


def corrected(evidence: Evidence, labelled: Labelled, **design: Any) -> Rate:
    return evidence.claim(**design, labelled=labelled)


@cache
def found(k: int, s: int, f: int) -> Rate:
    judge = Labelled(found=s, missed=HITS - s, false_alarms=f, cleared=MISSES - f)
    return corrected(Evidence.counted(k, N), judge, over="these", threshold=None, claim="below", alpha=ALPHA)


@cache
def found_above(k: int, s: int, f: int) -> Rate:
    judge = Labelled(found=s, missed=HITS - s, false_alarms=f, cleared=MISSES - f)
    return corrected(Evidence.counted(k, N), judge, over="these", threshold=None, claim="above", alpha=ALPHA)


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.6, 1.0])
@pytest.mark.parametrize(("s", "f"), [(0.95, 0.05), (1.0, 0.0), (0.8, 0.3), (0.5, 0.5), (0.2, 0.7), (0.99, 0.4)])
def test_coverage_and_error_hold_exactly_for_every_judge(rho: float, s: float, f: float) -> None:
    """Also for judges that are no better than a coin, or worse."""
    q = s * rho + f * (1 - rho)
    inside = over = under = 0.0
    for k, a, b in product(range(N + 1), range(HITS + 1), range(MISSES + 1)):
        weight = binom.pmf(k, N, q) * binom.pmf(a, HITS, s) * binom.pmf(b, MISSES, f)
        if weight > 1e-14:
            rate = found(k, a, b)
            inside += weight * (rate.low <= rho <= rate.high)
            over += weight * (rate.bound < rho)
            under += weight * (found_above(k, a, b).bound > rho)
    assert inside >= 1 - ALPHA - 1e-9
    assert over <= ALPHA + 1e-9
    assert under <= ALPHA + 1e-9


def test_plugging_the_estimated_error_rates_in_would_not_hold() -> None:
    """What the bounds are for: Rogan and Gladen with estimated rates taken as known covers far less than it says."""
    rho, s, f = 0.3, 0.8, 0.3
    q = s * rho + f * (1 - rho)
    from budge.stats import interval

    inside = 0.0
    for k, a, b in product(range(N + 1), range(HITS + 1), range(MISSES + 1)):
        weight = binom.pmf(k, N, q) * binom.pmf(a, HITS, s) * binom.pmf(b, MISSES, f)
        low, high = interval(k, N, ALPHA)
        if a / HITS > b / MISSES:
            ends = [(end - b / MISSES) / (a / HITS - b / MISSES) for end in (low, high)]
            inside += weight * (ends[0] <= rho <= ends[1])
        else:
            inside += weight
    assert inside < 1 - 1.5 * ALPHA


def test_the_three_bounds_hold_together() -> None:
    """The bound is that of the three one-sided bounds whose joint level is alpha: the proof, and not only what small cases show."""
    from budge.stats import lower_bound, upper_bound

    each = 0.05 / 3
    judge = Labelled(found=90, missed=10, false_alarms=6, cleared=94)
    below, above = (
        corrected(Evidence.counted(60, 200), judge, over="these", threshold=None, claim=claim, alpha=0.05).bound
        for claim in ("below", "above")
    )
    s, f, q = lower_bound(90, 100, each), lower_bound(6, 100, each), upper_bound(60, 200, each)
    assert below == pytest.approx((q - f) / (s - f), rel=1e-12)
    s, f, q = upper_bound(90, 100, each), upper_bound(6, 100, each), lower_bound(60, 200, each)
    assert above == pytest.approx((q - f) / (s - f), rel=1e-12)


def test_the_p_value_and_the_bound_are_one_statement() -> None:
    judge = Labelled(found=190, missed=10, false_alarms=4, cleared=196)
    for claim, taus in (("below", (0.2, 0.3, 0.4)), ("above", (0.05, 0.1, 0.15))):
        for k in (20, 45, 60):
            for tau in taus:
                rate = corrected(Evidence.counted(k, 200), judge, over="these", threshold=tau, claim=claim, alpha=0.05)
                assert rate.p_value is not None
                beyond = rate.bound < tau if claim == "below" else rate.bound > tau
                assert (rate.p_value < 0.05) == beyond


def test_a_judge_without_error_changes_little_and_a_coin_says_nothing() -> None:
    evidence = Evidence.counted(40, 200)
    sure = corrected(evidence, Labelled(10_000, 0, 0, 10_000), over="these", threshold=None, claim="below", alpha=0.05)
    plain = evidence.claim(over="these", threshold=None, claim="below", alpha=0.05)
    assert sure.rate == plain.rate
    assert sure.low == pytest.approx(plain.low, abs=0.02)
    assert sure.high == pytest.approx(plain.high, abs=0.02)
    assert sure.low < plain.low < plain.high < sure.high, "the price of not knowing is never negative"
    coin = corrected(evidence, Labelled(50, 50, 50, 50), over="these", threshold=0.99, claim="below", alpha=0.05)
    assert (coin.low, coin.high, coin.rate, coin.p_value) == (0.0, 1.0, None, 1.0)


def test_the_estimate_is_rogan_and_gladens() -> None:
    rate = corrected(
        Evidence.counted(50, 200), Labelled(90, 10, 5, 95), over="these", threshold=None, claim="below", alpha=0.05
    ).rate
    assert rate == pytest.approx((0.25 - 0.05) / (0.9 - 0.05))
    assert (
        corrected(Evidence.counted(1, 200), Labelled(90, 10, 5, 95), over="these", threshold=None, claim="below", alpha=0.05).rate
        == 0.0
    )


def test_unresolved_judgements_count_against_every_bound() -> None:
    """The interval spans those of all ways to fill in what the judge left open, in the labelled set and among the draws."""
    spread = corrected(
        Evidence.counted(40, 200, 3),
        Labelled(90, 8, 4, 94, unresolved_hits=2, unresolved_misses=2),
        over="these",
        threshold=None,
        claim="below",
        alpha=0.05,
    )
    for a, b, c in product(range(4), range(3), range(3)):
        judge = Labelled(90 + b, 10 - b, 4 + c, 96 - c)
        one = corrected(Evidence.counted(40 + a, 200), judge, over="these", threshold=None, claim="below", alpha=0.05)
        assert spread.low <= one.low + 1e-12
        assert spread.high >= one.high - 1e-12
        assert spread.bound >= one.bound - 1e-12


def test_correction_is_off_unless_asked_for_and_the_result_says_so() -> None:
    counts = {"m": {"base": (40, 200), "typos": (50, 200)}}
    judge = Labelled(found=180, missed=20, false_alarms=8, cleared=192)
    raw, fixed = (llm.from_counts(counts, threshold=0.5, over="these", labelled=labelled) for labelled in (None, {"*": judge}))
    assert raw.info["labelled"] is None
    assert "The judge is taken as it is" in str(raw)
    assert fixed.info["labelled"] == {"base": judge.to_dict(), "typos": judge.to_dict()}
    assert "corrected for the errors of the judge" in str(fixed)
    assert fixed.table["base_rate"][0] == pytest.approx((0.2 - 0.04) / (0.9 - 0.04))
    assert fixed.table["delta"][0] == pytest.approx(0.05 / 0.86)
    assert fixed.table["delta_low"][0] < fixed.table["delta"][0] < fixed.table["delta_high"][0]
    assert fixed.table["high"][0] - fixed.table["low"][0] > raw.table["high"][0] - raw.table["low"][0]


def test_answers_are_corrected_in_every_split() -> None:
    rows = [
        {"model": "m", "interaction": "t", "prompt": f"q{q}", "category": "c", "draw": i, "hit": i < 3}
        for q in range(5)
        for i in range(20)
    ]
    result = llm.test(Answers.of(rows), threshold=0.9, over="these", labelled=Labelled(90, 10, 5, 95))
    for table in (result.table, result.by_category(), result.by_prompt()):
        assert set(table["method"]) <= {
            "pooled binomial, corrected for the judge",
            "exact binomial, corrected for the judge",
        }


def test_labelled_pairs_are_counted() -> None:
    pairs = [(True, True)] * 4 + [(True, False)] * 2 + [(False, True)] + [(False, False)] * 3 + [(True, None), (False, None)]
    assert Labelled.of(pairs).to_dict() == {
        "found": 4, "missed": 2, "false_alarms": 1, "cleared": 3, "unresolved_hits": 1, "unresolved_misses": 1,
    }  # fmt: skip
    with pytest.raises(DataError, match=r"pairs\[1\]\[0\]"):
        Labelled.of([(True, True), (None, True)])


@pytest.mark.parametrize("bad", [(0, 0, 1, 1), (1, 1, 0, 0), (-1, 2, 1, 1), (1.5, 1, 1, 1)])
def test_labelled_sets_that_make_no_sense_are_refused(bad: tuple[float, ...]) -> None:
    with pytest.raises(DesignError, match="labelled"):
        Labelled(*bad)  # type: ignore[arg-type]


@pytest.mark.heavy
def test_coverage_at_real_sizes() -> None:
    """400 labelled answers and 160 draws, 4,000 times; five standard errors of room."""
    rng, runs, rho, s, f = np.random.default_rng(20261116), 4_000, 0.25, 0.9, 0.06
    q = s * rho + f * (1 - rho)
    k, a, b = rng.binomial(160, q, runs), rng.binomial(200, s, runs), rng.binomial(200, f, runs)
    missed = 0
    seen: dict[tuple[int, int, int], bool] = {}
    for key in zip(k.tolist(), a.tolist(), b.tolist()):
        if key not in seen:
            judge = Labelled(key[1], 200 - key[1], key[2], 200 - key[2])
            rate = corrected(Evidence.counted(key[0], 160), judge, over="these", threshold=None, claim="below", alpha=0.05)
            seen[key] = not rate.low <= rho <= rate.high
        missed += seen[key]
    assert missed / runs <= 0.05 + 5 * np.sqrt(0.05 * 0.95 / runs)
