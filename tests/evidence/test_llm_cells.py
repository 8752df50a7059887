"""The cells of the cube that tests of language models add: {designs} × {claims} × {unanswered} × {one model, several} × {alone, in a family}."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import evidence_kit as kit
import numpy as np
import pandas as pd
import pytest
from evidence_kit import Found

from budge import llm
from budge.llm import Answers, Labelled
from budge.llm.runs.design import rule_key
from budge.llm.runs.draws import stop_of
from budge.stats import StoppingRule, anytime_rule, curtailed_rule, sprt_rule
from budge.stats import claims as claims_module
from budge.stats import means as means_module
from budge.stats.counts import Counts

KINDS = ("joint", "equal", "unequal", "first", "bounded", "clustered", "SPRT", "anytime", "curtailed")
JUDGE = Labelled(180, 12, 5, 190, unresolved_hits=3, unresolved_misses=2)
TAU = 0.4


@cache
def rule_of(kind: str, claim: str) -> StoppingRule:
    """Return a rule that stops early."""
    if kind == "SPRT":
        return sprt_rule(threshold=TAU, rate=0.15 if claim == "below" else 0.7, claim=claim)
    return anytime_rule(150, threshold=TAU, claim=claim) if kind == "anytime" else curtailed_rule(70, threshold=TAU, claim=claim)


def asked(kind: str, claim: str, unanswered: str, seed: int, models: int) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, Any]]:
    """Return rows of answers, what a run says of them, and a test."""
    rng = np.random.default_rng(seed)
    test: dict[str, Any] = {"threshold": TAU, "claim": claim, "over": "these"}
    info: dict[str, Any] = {"scheme": "joint" if kind in ("joint", "SPRT", "anytime", "curtailed") else "per_prompt"}
    if kind in ("first", "bounded", "clustered"):
        test |= {"over": "population", "method": kind}
    rule = rule_of(kind, claim) if kind in ("SPRT", "anytime", "curtailed") else None
    if rule is not None:
        info["sequential"] = {**rule_key(rule), "stops": []}
    rows = []
    for model in range(models):
        for word, rate in zip(("base", "t", "u"), rng.choice([0.02, 0.2, 0.45, 0.9], 3)):
            per = 1 if info["scheme"] == "joint" else 3
            hits: list[Any] = (rng.random(120 if rule is None else rule.max_n) < rate).tolist()
            gone = {"none": 0.0, "some": 0.08, "all": 1.0}[unanswered]
            hits = [None if rng.random() < gone else hit for hit in hits]
            hits = hits if rule is None else hits[: stop_of(rule, hits)[1]]
            made = [
                {
                    "model": f"m{model}", "interaction": word, "prompt": f"q{i // per}", "category": f"c{i // per % 2}", "draw": i if per == 1 else i % per,
                    "hit": hit,
                }
                for i, hit in enumerate(hits)
            ]  # fmt: skip
            rows += [row for row in made if row["prompt"] != "q1" or row["draw"] == 0] if kind == "unequal" else made
    return rows, info, test


def one_story(table: pd.DataFrame, claim: str, adjusted: bool) -> list[str]:
    """Check that bound, p-value and verdict of every row are one statement."""
    found, alpha = Found(), 0.05
    beyond = table["bound"] < TAU if claim == "below" else table["bound"] > TAU
    found.check((table["p_value"] < alpha) == beyond, "p < alpha is bound beyond tau")
    found.check((table["verdict"] == claim) == (table["p_adjusted"] < alpha), "the verdict is p_adjusted < alpha")
    found.check((table["verdict"] != claim) | beyond, "a verdict has its bound beyond tau")
    found.check(adjusted | ((table["verdict"] == claim) == beyond), "alone, the verdict is the bound beyond tau")
    found.check((table["low"] <= table["bound"]) & (table["bound"] <= table["high"]), "the bound lies inside the interval")
    found.check((table["low"] >= 0) & (table["high"] <= 1), "0 <= low, high <= 1")
    rate = table["rate"]
    found.check(rate.isna() | ((rate >= table["low"] - 1e-9) & (rate <= table["high"] + 1e-9)), "the estimate lies inside the interval")
    found.check(table["p_adjusted"] >= table["p_value"], "p_adjusted >= p_value")
    return found.words


def cell(kind: str, claim: str, unanswered: str, labelled: dict[str, Labelled] | None, seed: int) -> list[str]:
    """Check one cell: every table of a test, alone and in families, and every way to fill the unanswered."""
    rows, info, test = asked(kind, claim, unanswered, seed, models=1 + seed % 2)
    wrong, answers = [], Answers.of(rows, info)
    family = llm.test(answers, **test, adjust="bh" if seed else "holm", labelled=labelled)
    tables = [family.table, family.by_category(), family.by_prompt()]
    for table in tables:
        wrong += one_story(table, claim, adjusted=True)
    plain = llm.test(answers, **test, adjust="none", labelled=labelled).table
    wrong += one_story(plain, claim, adjusted=False)
    opposite = llm.test(answers, **{**test, "claim": "above" if claim == "below" else "below"}, adjust="none", labelled=labelled).table
    found = Found(wrong)
    found.check((plain["verdict"] == "inconclusive") | (opposite["verdict"] == "inconclusive"), "not below and above")
    ends = ["low", "high"]
    found.check(np.abs(plain[ends] - opposite[ends]) < 1e-9, "both claims have one interval")
    if unanswered == "all":
        found.check([(t["verdict"] == "inconclusive").all() and (t["low"] == 0).all() and (t["high"] == 1).all() for t in tables], "nothing is known")
    # What counts as worst depends on the spread too where the method is approximate, and a rule would have stopped elsewhere.
    if unanswered == "some" and kind != "clustered" and "sequential" not in info:
        for hit in (True, False):
            full = Answers.of([{**row, "hit": hit if row["hit"] is None else row["hit"]} for row in rows], info)
            sure = llm.test(full, **test, adjust="none", labelled=labelled).table
            found.check(plain["low"] <= sure["low"] + 1e-9, "low holds for every filling")
            found.check(plain["high"] >= sure["high"] - 1e-9, "high holds for every filling")
            found.check(plain["p_value"] >= sure["p_value"] - 1e-9, "p-values hold for every filling")
    return found.words


@pytest.mark.parametrize("unanswered", ["none", "some", "all"])
@pytest.mark.parametrize("claim", ["below", "above"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_cell(kind: str, claim: str, unanswered: str) -> None:
    for seed in range(2):
        assert cell(kind, claim, unanswered, None, seed) == []


@pytest.mark.parametrize("unanswered", ["none", "some", "all"])
@pytest.mark.parametrize("claim", ["below", "above"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_cell_corrected_for_the_judge(kind: str, claim: str, unanswered: str) -> None:
    assert cell(kind, claim, unanswered, {"*": JUDGE}, 1) == []


# -- coverage by enumeration ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tau", [0.3, 0.6])
@pytest.mark.parametrize("sizes", [(14, 7, 7), (10, 3, 9), (5, 12, 12)])
def test_corrected_claims_cover_exactly(tau: float, sizes: tuple[int, int, int]) -> None:
    assert kit.corrected_coverage(sizes[0], sizes[1:], tau) in ([], ["something can be shown (1 of 1)"])
    assert kit.corrected_coverage(sizes[0], sizes[1:], tau, alpha=0.3) == []


@pytest.mark.parametrize("claim", ["below", "above"])
def test_corrected_claims_of_stopped_runs_cover_exactly(claim: str) -> None:
    tau = 0.7 if claim == "below" else 0.3
    assert kit.corrected_coverage(curtailed_rule(25, threshold=tau, alpha=0.1, claim=claim), (6, 6), tau) == []
    assert kit.corrected_coverage(anytime_rule(25, threshold=tau, alpha=0.1, claim=claim), (6, 6), tau) == []


def test_labels_of_the_tested_answers_themselves_cover_too() -> None:
    """All answers are labelled, so that the three bounds come from the same draws: what people say is Bin(n, rho), and the judge errs on it."""
    n, alpha, found = 14, 0.2, Found()
    truths, judges = np.array([0.1, 0.3, 0.5, 0.7]), [(0.9, 0.1), (0.7, 0.2), (1.0, 0.4)]
    wrong = np.zeros((2, len(truths), len(judges)))
    for hits in range(1, n):
        for a in range(hits + 1):
            for b in range(n - hits + 1):
                c = claims_module.claim(Counts.of(a + b, n), kit.asked(0.5, alpha), judge=Counts.of([a, b], [hits, n - hits]))
                for j, (s, f) in enumerate(judges):
                    chance = kit.binomial(n, truths)[:, hits] * kit.binomial(hits, np.array([s]))[0, a] * kit.binomial(n - hits, np.array([f]))[0, b]
                    wrong[:, :, j] += chance * [c.upper[0] < truths, c.lower[0] > truths]
    found.check(wrong <= alpha, f"labels of the same answers: error up to {wrong.max():.3f}")
    assert found.words == []


def bounded_errors(runs: int = 1500) -> list[str]:
    """Check that the p-values of a guaranteed mean are valid at every level at once, for prompts that always or never hit, and others."""
    rng, found = np.random.default_rng(5), Found()
    for spread in (0.2, 2.0):
        for claim in ("below", "above"):
            hits = rng.binomial(3, rng.beta(TAU * spread, (1 - TAU) * spread, (runs, 40)))
            p = np.array([means_module.Mean(Counts.of(row, 3), "bounded").p_value(TAU, claim)[0] for row in hits])  # type: ignore[arg-type]
            for level in (0.01, 0.05, 0.2, 0.5):
                wrong = (p < level).mean()
                found.check(wrong <= kit.binomial_limit(runs, level), f"bounded: error {wrong:.3f} at {level}")
    return found.words


def test_p_values_of_guaranteed_means_hold_at_every_level() -> None:
    assert bounded_errors() == []


# -- planted bugs ---------------------------------------------------------------------------------------------------------


def whole_error_for_each_bound(patch: pytest.MonkeyPatch) -> None:
    bound, p = claims_module._Corrected.bound, claims_module._Corrected.p_value
    patch.setattr(claims_module._Corrected, "bound", lambda self, alpha, claim: bound(self, 3 * alpha, claim))
    patch.setattr(claims_module._Corrected, "p_value", lambda self, rate, claim: p(self, rate, claim) / 3)


def estimates_taken_as_known(patch: pytest.MonkeyPatch) -> None:
    def wrong(self: Any, error: Any, claim: str) -> Any:
        hits, n, *_ = self.labels.above
        return np.multiply.outer(hits / n, np.ones_like(error))

    patch.setattr(claims_module._Corrected, "_rates", wrong)


def unresolved_are_misses_of_draws(patch: pytest.MonkeyPatch) -> None:
    right = claims_module._fixed
    patch.setattr(claims_module, "_fixed", lambda counts: right(replace(counts, unresolved=np.zeros_like(counts.unresolved))))


def unresolved_are_misses_of_means(patch: pytest.MonkeyPatch) -> None:
    right = means_module.Mean.__init__

    def wrong(self: Any, counts: Counts, method: str) -> None:
        right(self, replace(counts, unresolved=np.zeros_like(counts.unresolved)), method)

    patch.setattr(means_module.Mean, "__init__", wrong)


def p_value_of_the_judge(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(claims_module._Corrected, "p_value", lambda self, rate, claim: self.seen.p_value(rate, claim))


def bets_on_what_is_seen(patch: pytest.MonkeyPatch) -> None:
    right = means_module.log_wealth
    patch.setattr(means_module, "log_wealth", lambda x, m, tuned: np.max([right(x, m, t) for t in (0.5, 0.1, 0.01, 1e-4, 1e-8)], axis=0))


CHECKS: dict[str, Callable[[], list[str]]] = {
    "parts": kit.corrected_parts,
    "losses": kit.corrected_losses,
    "corrected": lambda: kit.corrected_coverage(14, (7, 7), 0.6),
    "joint": lambda: cell("joint", "below", "some", None, 0) + cell("joint", "below", "all", None, 0),
    "means": lambda: cell("equal", "below", "some", None, 0) + cell("equal", "below", "all", None, 0),
    "bounded": bounded_errors,
}


@pytest.mark.parametrize(
    ("plant", "check"),
    [
        (whole_error_for_each_bound, "parts"), (estimates_taken_as_known, "corrected"), (unresolved_are_misses_of_draws, "losses"),
        (unresolved_are_misses_of_draws, "joint"), (unresolved_are_misses_of_means, "means"), (p_value_of_the_judge, "parts"),
        (bets_on_what_is_seen, "bounded"),
    ],
)  # fmt: skip
def test_planted_bugs_are_caught(plant: Callable[[pytest.MonkeyPatch], None], check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert CHECKS[check]() == []
    plant(monkeypatch)
    assert CHECKS[check]() != []
