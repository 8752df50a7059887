"""The moderation example: a real shipped classifier under misspelling, drawn and exact, through the ordinary audit."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import budge
from budge import stats
from budge.errors import MissingDependencyError
from budge.llm import Prompt, Prompts, benchmark, mixed_case, profanity, typos
from budge.llm.moderation import _classifier, flag_probability, flags


@pytest.fixture(scope="module")
def flagged() -> Prompts:
    pytest.importorskip("profanity_check", reason="alt-profanity-check is in the `text` extra")
    messages = benchmark("messages")
    return Prompts(tuple(p for p, stop in zip(messages, flags([p.text for p in messages])) if stop))


@pytest.fixture(scope="module")
def study(flagged: Prompts) -> Any:
    from budge.cli.study import load

    return load("moderation").run(quick=True)


def test_the_classifier_answers_one_probability_a_text(flagged: Prompts) -> None:
    import profanity_check

    texts = [p.text for p in flagged]
    assert (flag_probability(texts) == profanity_check.predict_prob(texts)).all()
    assert (flags(texts, cutoff=0.9) == (profanity_check.predict_prob(texts) >= 0.9)).all()
    assert len(flagged) >= 60
    assert set(flagged.categories) == {"insult", "grumble"}, "no friendly message is flagged"


def test_the_interval_holds_the_exact_share(flagged: Prompts) -> None:
    """One typo: every rewrite of every message can be listed, so that the truth is known. Level 1e-4, fixed seed."""
    made = typos(least=1, most=1)
    truth = []
    for prompt in flagged:
        law = made.law(prompt)
        truth.append(float(np.dot(list(law.values()), ~flags(list(law)))))
    texts = pd.Series({p.id: p.text for p in flagged})
    found = budge.audit(flags, texts, made, target=False, claim="above", threshold=0.1, n=100, seed=5).table
    share = stats.average(found["hits"], found["n"], over="these", alpha=1e-4)
    assert share.low < np.mean(truth) < share.high
    assert 0.15 < np.mean(truth) < 0.3, "a typo lets about a fifth through"
    wrong = sum((v == "above" and t <= 0.1) or (v == "below" and t >= 0.1) for v, t in zip(found["verdict"], truth))
    assert stats.p_value(wrong, len(truth), 0.05, "above") > 1e-4, "verdicts are wrong for 5 % of messages at most"


def test_witnesses_pass_and_are_one_typo_away(flagged: Prompts) -> None:
    made = typos(least=1, most=1)
    texts = pd.Series({p.id: p.text for p in flagged[:12]})
    found = budge.audit(flags, texts, made, target=False, threshold=0.1, n=100, seed=5)
    seen = 0
    for label, text in texts.items():
        passing = found.witness(label)
        if passing is None:
            assert found.table.loc[label, "hits"] == 0
            continue
        seen += 1
        assert not flags([passing])[0]
        assert flags([text])[0]
        assert passing in made.law(Prompt("a", text))
    assert seen >= 6


def test_a_classifier_that_reads_small_letters_is_not_moved_by_capitals(flagged: Prompts) -> None:
    texts = pd.Series({p.id: p.text for p in flagged[:10]})
    found = budge.audit(flags, texts, mixed_case(0.5), target=False, threshold=0.1, n=50, seed=1)
    assert (found.table["hits"] == 0).all()
    assert (found.table["verdict"] == "below").all()


def test_the_judge_says_what_the_classifier_says(flagged: Prompts) -> None:
    judge = profanity()
    assert all(judge.judge(p, p.text, p.text).hit for p in flagged)
    assert judge.judge(flagged[0], "", "Have a nice day.").hit is False


def test_the_study_ends_in_its_table(study: Any, tmp_path: Path) -> None:
    rows = study.tables["interactions"].set_index("interaction")
    assert rows.loc["a few typos", "messages"] == study.numbers["flagged"] == 73
    for _, row in rows.iterrows():
        assert row["low"] <= row["let_through"] <= row["high"]
        assert row["above"] + row["below"] + row["inconclusive"] == row["messages"]
        if row["exact"] != "–":
            assert row["low"] - 0.02 < float(row["exact"]) < row["high"] + 0.02
    assert rows.loc["a few typos", "low"] > rows.loc["one typo", "high"]
    assert rows.loc["a few typos, rude words kept", "high"] < 0.05, "what lets a message through is the rude word itself"
    assert rows.loc["capitals at random", "let_through"] == 0
    shown = study.comparison.set_index("figure")["here"]
    assert shown["messages flagged, as they stand"] == "73 of 100"
    table = study.tables["messages"]
    assert len(table) == 73
    passing = table[table["passes"] != "none found"]
    assert len(passing) > 60
    assert not flags(list(passing["passes"])).any()
    assert flags(list(passing["message"])).all()
    json.dumps(study.to_dict())
    assert {p.suffix for p in study.write(tmp_path)} == {".md", ".csv", ".svg"}


def test_the_docs_have_the_full_numbers() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "studies" / "moderation.md").read_text(encoding="utf-8")
    assert "| messages flagged, as they stand | – | 73 of 100 |" in page
    assert "'You are an idiot.' is flagged" in page


def test_a_missing_classifier_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    _classifier.cache_clear()
    monkeypatch.setitem(sys.modules, "profanity_check", None)
    with pytest.raises(MissingDependencyError, match=r"budge\[text\]"):
        flags(["x"])
    _classifier.cache_clear()
