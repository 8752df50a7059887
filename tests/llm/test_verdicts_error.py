"""The error of the tests, computed exactly at the boundary: no simulation, no false alarm."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from budge import llm, stats
from budge.errors import DesignError
from budge.llm import Answers
from budge.llm.claims.evidence import Evidence
from budge.llm.runs.draws import stop_of
from budge.stats import StoppingRule, anytime_rule, curtailed_rule, sprt_rule

ALPHA = 0.05


def coins(ps: Any) -> np.ndarray:
    """The distribution of the number of hits of unlike coins, by convolution."""
    law = np.ones(1)
    for p in ps:
        law = np.append(law * (1 - p), 0) + np.append(0, law * p)
    return law


def decided(hits: Any, draws: Any, **design: Any) -> bool:
    """Whether the claim is made for these hits of each prompt, through the public door."""
    rows = [
        {"model": "m", "interaction": "t", "prompt": f"q{j}", "draw": i, "hit": i < k}
        for j, (k, m) in enumerate(zip(hits, draws))
        for i in range(m)
    ]
    made = llm.test(
        Answers.of(rows, {"scheme": "per_prompt"}), threshold=design["tau"], claim=design["claim"], over="these", alpha=ALPHA
    )
    return bool(made.table["verdict"][0] == design["claim"])


# -- joint draws ------------------------------------------------------------------------------------------------------------


def error_of(rejects: list[bool], law: np.ndarray) -> float:
    return float(law[np.array(rejects)].sum())


@pytest.mark.parametrize(("n", "tau"), [(79, 0.4), (30, 0.1), (12, 0.7)])
@pytest.mark.parametrize("claim", ["below", "above"])
def test_joint_draws_err_at_most_alpha_and_not_far_less(n: int, tau: float, claim: str) -> None:
    tested = [llm.from_counts({"m": {"t": (k, n)}}, threshold=tau, claim=claim, over="these", alpha=ALPHA) for k in range(n + 1)]
    rejects = [result.table["verdict"][0] == claim for result in tested]
    law = binom.pmf(np.arange(n + 1), n, tau)
    error = error_of(rejects, law)
    assert error < ALPHA
    edge = max(k for k in range(n + 1) if rejects[k]) + 1 if claim == "below" else min(k for k in range(n + 1) if rejects[k]) - 1
    assert error + law[edge] >= ALPHA, "one more count would break alpha: no power is given away"


def test_a_prompt_is_drawn_anew_each_time_so_the_mean_is_what_counts() -> None:
    """Prompts with rates 0 and 1: a joint draw is a coin of their mean, whatever they are."""
    rates = np.array([0.0, 1.0, 0.0, 1.0, 0.0])
    assert coins([rates.mean()] * 6) == pytest.approx(binom.pmf(np.arange(7), 6, 0.4))


# -- every prompt drawn equally often -----------------------------------------------------------------------------------------

SPREADS = {
    "alike": [0.4] * 8,
    "two kinds": [0.1, 0.7] * 4,
    "fixed or never": [1.0, 1.0, 1.0, 0.2, 0.0, 0.0, 0.0, 0.0],
    "a ladder": list(np.linspace(0.05, 0.75, 8)),
    "one is certain": [1.0, *[2.2 / 7] * 7],
}


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("claim", ["below", "above"])
def test_fixed_prompts_err_at_most_alpha_however_unlike(spread: str, claim: str) -> None:
    rates, m = SPREADS[spread], 5
    assert np.mean(rates) == pytest.approx(0.4)
    n = m * len(rates)
    law = coins(np.repeat(rates, m))
    # The verdict depends on the sum alone; the hits are laid on the prompts one after the other.
    rejects = [
        decided([min(m, max(0, k - m * j)) for j in range(len(rates))], [m] * len(rates), tau=0.4, claim=claim)
        for k in range(n + 1)
    ]
    assert 0 < sum(rejects) < n
    assert error_of(rejects, law) <= ALPHA


@pytest.mark.parametrize("rates", [(0.5, 0.5, 0.5), (0.0, 0.5, 1.0), (1.0, 0.4, 0.1), (0.0, 0.7, 0.8)])
@pytest.mark.parametrize("claim", ["below", "above"])
def test_unequal_draws_err_at_most_alpha(rates: tuple[float, ...], claim: str) -> None:
    """The claim is about the mean over prompts, not over draws; pooling would confuse the two."""
    draws, tau = (3, 4, 9), float(np.mean(rates))
    error = pooled = 0.0
    for hits in product(*(range(m + 1) for m in draws)):
        weight = np.prod([binom.pmf(k, m, p) for k, m, p in zip(hits, draws, rates)])
        if weight > 0:
            seen = Evidence(*(np.array(part, float) for part in (hits, [0] * 3, draws, [0] * 3)), "per_prompt")
            found = seen.claim(over="these", threshold=tau, claim=claim, alpha=ALPHA)  # type: ignore[arg-type]
            error += weight * (found.p_value is not None and found.p_value < ALPHA)
            pooled += weight * (stats.p_value(sum(hits), sum(draws), tau, claim) < ALPHA)
    assert error <= ALPHA
    edge = (0, 0, 0) if claim == "below" else draws
    assert decided(edge, draws, tau=tau, claim=claim), "and through the public door it can be shown"
    if rates == (0.0, 0.7, 0.8) and claim == "above":
        assert pooled > 0.15, "what the naive test would do"


# -- the population of prompts ------------------------------------------------------------------------------------------------


def test_the_first_draws_are_exact_where_pooling_is_not() -> None:
    """Prompts that always or never hit, ten draws each: pooling errs far beyond alpha, the first draws do not."""
    prompts, m, tau = 30, 10, 0.4
    law = binom.pmf(np.arange(prompts + 1), prompts, tau)  # prompts in the sample that always hit
    pooled = error_of([stats.p_value(m * k, m * prompts, tau) < ALPHA for k in range(prompts + 1)], law)
    assert pooled > 0.25
    rejects = []
    for k in range(prompts + 1):
        rows = [
            {"model": "m", "interaction": "t", "prompt": q, "draw": i, "hit": q < k} for q in range(prompts) for i in range(m)
        ]
        table = llm.test(Answers.of(rows, {"scheme": "per_prompt"}), threshold=tau, over="population", method="first").table
        rejects.append(table["verdict"][0] == "below")
    assert 0 < error_of(rejects, law) < ALPHA


# -- stopping early -----------------------------------------------------------------------------------------------------------

RULES = {
    "SPRT": sprt_rule(threshold=0.4, rate=0.227),
    "SPRT above": sprt_rule(threshold=0.4, rate=0.6, claim="above"),
    "anytime": anytime_rule(120, threshold=0.4),
    "curtailed": curtailed_rule(79, threshold=0.4),
}


def followed(rule: StoppingRule, rate: float) -> tuple[float, float]:
    """The probabilities that the test of the answers makes the claim, and that the rule does: over all paths, stop by stop."""
    alive = {0: 1.0}
    tested = ruled = 0.0
    for t in range(1, rule.max_n + 1):
        step: dict[int, float] = {}
        for k, p in alive.items():
            step[k + 1] = step.get(k + 1, 0.0) + p * rate
            step[k] = step.get(k, 0.0) + p * (1 - rate)
        alive = {}
        for k, p in step.items():
            state = rule.decide(k, t)
            if state == "continue":
                alive[k] = p
                continue
            seen = Evidence(*(np.array([float(v)]) for v in (k, 0, t, 0)), "joint", rule.to_dict())
            found = seen.claim(over="these", threshold=rule.threshold, claim=rule.claim, alpha=rule.alpha, method="anytime")
            assert found.p_value is not None
            tested += p * (found.p_value < rule.alpha)
            ruled += p * (state == rule.claim)
            assert (found.p_value < rule.alpha) == (state == rule.claim), f"test and rule disagree at {k} of {t}"
    return tested, ruled


@pytest.mark.parametrize("name", RULES)
def test_stopping_early_errs_at_most_alpha(name: str) -> None:
    rule = RULES[name]
    tested, ruled = followed(rule, rule.threshold)
    assert tested == ruled
    assert ruled == pytest.approx(rule.at(rule.threshold).claimed, abs=1e-12)
    assert 0 < tested <= ALPHA


def test_the_fixed_test_after_stopping_early_would_err_far_more() -> None:
    """What the refusal of fixed-n methods is for: the same stops, judged as if n had been fixed."""
    rule = anytime_rule(120, threshold=0.4)
    alive, wrong = {0: 1.0}, 0.0
    for t in range(1, 121):
        step: dict[int, float] = {}
        for k, p in alive.items():
            for to, weight in ((k + 1, 0.4), (k, 0.6)):
                step[to] = step.get(to, 0.0) + p * weight
        alive = {}
        for k, p in step.items():
            if stats.p_value(k, t, 0.4) < ALPHA:
                wrong += p
            elif rule.decide(k, t) == "continue":
                alive[k] = p
    assert wrong > 2 * ALPHA


@pytest.mark.parametrize("name", RULES)
def test_answers_of_a_run_that_stopped_are_tested_by_its_rule(name: str) -> None:
    rule = RULES[name]
    n = next(t for t in range(1, rule.max_n + 1) if rule.decide(0 if rule.claim == "below" else t, t) == rule.claim)
    rows = [{"model": "m", "interaction": "t", "prompt": f"q{i % 7}", "draw": i, "hit": rule.claim == "above"} for i in range(n)]
    answers = Answers.of(rows, {"scheme": "joint", "sequential": {**rule.to_dict(), "stops": []}})
    result = llm.test(answers, threshold=0.4, claim=rule.claim, over="these")
    assert result.table["verdict"][0] == rule.claim
    assert "looked at while they came" in str(result)
    with pytest.raises(DesignError, match="looked at while they came"):
        llm.test(answers, threshold=0.4, claim=rule.claim, over="these", method="pooled")
    with pytest.raises(DesignError, match="joint draws and a claim about these prompts"):
        llm.test(answers, threshold=0.4, claim=rule.claim, over="population")
    other = llm.test(answers, threshold=0.45, claim=rule.claim, over="these").table
    assert "SPRT" not in other["method"][0], "the likelihood ratio of the rule says nothing of another threshold"


def test_unresolved_draws_of_a_stopped_run_count_against_it() -> None:
    rule = sprt_rule(threshold=0.4, rate=0.227)
    hits: list[bool | None] = [False] * 25
    good = Answers.of(
        [{"model": "m", "interaction": "t", "prompt": i, "draw": i, "hit": h} for i, h in enumerate(hits)],
        {"scheme": "joint", "sequential": rule.to_dict()},
    )
    bad = Answers.of(
        [{"model": "m", "interaction": "t", "prompt": i, "draw": i, "hit": None if i < 8 else h} for i, h in enumerate(hits)],
        {"scheme": "joint", "sequential": rule.to_dict()},
    )
    one, two = (llm.test(a, threshold=0.4, over="these").table for a in (good, bad))
    assert one["verdict"][0] == "below"
    assert two["verdict"][0] == "inconclusive"
    as_hits = Evidence(*(np.array([float(v)]) for v in (8, 0, 25, 0)), "joint", rule.to_dict())
    assert two["p_value"][0] == as_hits.claim(over="these", threshold=0.4, claim="below", alpha=0.05, method="anytime").p_value


@pytest.mark.parametrize("alpha", [0.01, 0.05])
@pytest.mark.parametrize("claim", ["below", "above"])
def test_interval_and_verdict_of_a_curtailed_run_agree(alpha: float, claim: Any) -> None:
    """Whatever stops the run, an interval that leaves the threshold out on the side of the claim goes with the claim, and no other does."""
    rule = curtailed_rule(40, threshold=0.4, alpha=alpha, claim=claim)
    for every in (2, 3, 5, 50):
        hits = [(i % every == 0) == (claim == "below") for i in range(40)]
        _, at = stop_of(rule, hits)
        made = [{"model": "m", "interaction": "t", "prompt": i, "draw": i, "hit": h} for i, h in enumerate(hits[:at])]
        info = {"scheme": "joint", "n": 40, "sequential": rule.to_dict()}
        result = llm.test(Answers.of(made, info), threshold=0.4, over="these", claim=claim, alpha=alpha)
        row, k = result.table.iloc[0], sum(hits[:at])
        # Draws left out count against each end; where the rule gave up, the draw at which it did is itself the evidence for the other side.
        gave_up = row["verdict"] != claim
        assert row["low"] == pytest.approx(stats.lower_bound(k, at if gave_up and claim == "below" else 40, alpha / 2))
        rest = (k, at) if gave_up and claim == "above" else (k + 40 - at, 40)
        assert row["high"] == pytest.approx(stats.upper_bound(*rest, alpha / 2))
        assert (row["bound"] < 0.4 if claim == "below" else row["bound"] > 0.4) == (row["verdict"] == claim)
        if row["high"] < 0.4 or row["low"] > 0.4:
            assert row["verdict"] == claim or (row["low"] > 0.4) == (claim == "below")
        assert "exact binomial, ended early" in str(result)
