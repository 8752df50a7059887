"""Plans: the paper's sample sizes, models that cannot be tested, calls and costs against the exact calculation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from budge import llm, plan
from budge.errors import DesignError

RATES = {"OLMo 2 7B": 0.227, "Llama 3.1 8B": 0.277, "Qwen 2.5 7B": 0.368, "Phi-3.5-mini": 0.424}


def test_the_papers_sample_sizes() -> None:
    made = llm.plan_calls(RATES, threshold=0.4, interactions=4, use="first", with_base=False)
    assert made.n == {"OLMo 2 7B": 79, "Llama 3.1 8B": 159, "Qwen 2.5 7B": 2502, "Phi-3.5-mini": None}
    assert llm.plan_calls(RATES, threshold=0.4, interactions=4).n == {
        "OLMo 2 7B": 85,
        "Llama 3.1 8B": 168,
        "Qwen 2.5 7B": 2551,
        "Phi-3.5-mini": None,
    }
    assert made.table["calls"].tolist()[:3] == [4 * 79, 4 * 159, 4 * 2502]
    assert made.calls == 4 * (79 + 159 + 2502)


def test_a_model_at_or_above_the_threshold_cannot_be_planned() -> None:
    for rate in (0.4, 0.424):
        made = llm.plan_calls(rate, threshold=0.4)
        assert made.n == {"the model": None}
        assert made.calls == 0
        assert "not below the threshold" in str(made)
        with pytest.raises(DesignError, match="no number of draws will do"):
            made.rule()


def test_claims_above_mirror() -> None:
    assert llm.plan_calls(0.773, threshold=0.6, claim="above").n == llm.plan_calls(0.227, threshold=0.4).n


def test_calls_and_cost_add_up() -> None:
    made = llm.plan_calls(0.227, threshold=0.4, interactions=["typos", "french"], with_base=True, calls_per_draw=2, price=0.01)
    row = made.table.iloc[0]
    assert row["calls"] == 85 * 3 * 2
    assert row["cost"] == pytest.approx(85 * 3 * 2 * 0.01)
    rule = plan.sprt_rule(threshold=0.4, rate=0.227, alpha=0.05 / 2)
    assert row["sequential_calls"] == pytest.approx(3 * rule.at(0.227).expected_calls * 2), "at the level that survives the adjustment; the base too"
    assert row["sequential_cost"] == pytest.approx(row["sequential_calls"] * 0.01)
    assert row["sequential_calls"] < row["calls"]
    json.dumps(made.to_dict(), allow_nan=False)


def test_the_rule_of_a_plan_keeps_both_errors() -> None:
    rule = llm.plan_calls(RATES, threshold=0.4).rule("OLMo 2 7B")
    assert rule.at(0.4).claimed <= 0.05
    assert rule.at(0.227).claimed >= 0.95
    with pytest.raises(DesignError, match="name one model"):
        llm.plan_calls(RATES, threshold=0.4).rule()


def test_a_strict_plan_survives_the_adjustment() -> None:
    made = llm.plan_calls(0.227, threshold=0.4, interactions=4, strict=True)
    assert made.n["the model"] == plan.samples_for_power(0.4, 0.227, alpha=0.05 / 4).stable


def test_it_reads_as_sentences() -> None:
    text = str(llm.plan_calls(RATES, threshold=0.4, interactions=4, price=0.002))
    assert "OLMo 2 7B (base rate 22.7 %): 85 draws each (first 79, for every larger number from 85), 425 calls, cost 0.85" in text
    assert "Together 14,020 calls." in text
    assert "2,551 draws each (first 2,502," in text
    assert "4 interactions and the base" in text, "as a run asks"
    assert "<table" in llm.plan_calls(RATES, threshold=0.4)._repr_html_()


@pytest.mark.parametrize(
    "bad",
    [
        {"threshold": 0},
        {"threshold": 40},
        {"alpha": "5%"},
        {"power": 1},
        {"interactions": 0},
        {"interactions": []},
        {"interactions": "typos"},
        {"calls_per_draw": 0},
        {"price": -1},
        {"use": "second"},
        {"claim": "under"},
        {"base_rate": {}},
        {"base_rate": 22.7},
    ],
)
def test_plans_that_make_no_sense_are_refused(bad: dict[str, Any]) -> None:
    good: dict[str, Any] = {"base_rate": 0.2, "threshold": 0.4}
    with pytest.raises(DesignError):
        llm.plan_calls(**{**good, **bad})


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    import budge
    from budge.cli import main

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"budge {budge.__version__}\n"
