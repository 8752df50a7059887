"""From a run to a verdict: the answers of `llm.run`, also of runs that stopped early or broke off, are tested as they were made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="runs need inspect-ai (extra `llm`)")
pytest.importorskip("openai", reason="runs need openai (extra `llm`)")

from llm_run_kit import PROMPTS, QUICK, Fake, Says, Shout, completion, fake_server

from budge import llm, plan, stats


def ask(fake: Fake, **design: Any) -> llm.Run:
    return llm.run({"fake": fake.model, "other": fake.model}, PROMPTS, {"shout": Shout()}, judge=Says(), patience=QUICK, **design)


def test_joint_draws_are_paired_and_tested(tmp_path: Path) -> None:
    with fake_server() as fake:
        made = ask(fake, n=40, folder=tmp_path / "run")
    result = llm.test(llm.load(tmp_path / "run"), threshold=0.9, over="these")
    counts = made.answers.counts().set_index(["model", "interaction"])
    row = result.table.iloc[0]
    assert row["hits"] == counts.loc[("fake", "shout"), "hits"]
    assert row["p_value"] == pytest.approx(stats.p_value(int(row["hits"]), 40, 0.9))
    assert row["delta_method"] == "paired, exact region", "all interactions share the prompts of a joint draw"
    assert result.info["prompts"] == len(PROMPTS)
    assert llm.test(made, threshold=0.9, over="these").table.equals(result.table), "a run will do in place of its answers"
    compared = llm.compare(made, over="these")
    assert compared.table["pairs"].tolist() == [40, 40], "and so do all models"
    assert compared.table["difference"].abs().max() == 0, "the same server under two names"


def test_a_run_that_stopped_early_is_tested_by_its_rule() -> None:
    rule = plan.sprt_rule(threshold=0.9, rate=0.33)
    with fake_server() as fake:
        made = ask(fake, n=None, sequential=rule)
    result = llm.test(made.answers, threshold=0.9, over="these")
    assert dict(zip(zip(result.table["model"], result.table["interaction"]), result.table["verdict"])) == {
        (stop.model, stop.interaction): stop.verdict for stop in made.stops if stop.interaction != "base"
    }
    assert set(result.table["method"]) == {"SPRT"}
    assert made.saved > 0


def test_a_run_that_broke_off_is_not_a_smaller_run() -> None:
    """Never a hit, and 29 draws would do; 40 are planned, and the cap ends the run in between."""
    with fake_server(lambda number, body, handler: completion("no")) as fake:
        whole = ask(fake, n=40, base=False)
        cut = ask(fake, n=40, base=False, max_calls=75)
    assert cut.incomplete
    assert llm.test(whole.answers, threshold=0.1, over="these").table["verdict"].tolist() == ["below", "below"]
    broken = llm.test(cut.answers, threshold=0.1, over="these")
    assert broken.table["n"].tolist() == [40, 40]
    assert int(broken.table["unresolved"].sum()) == 80 - len(cut.answers)
    assert "The run is incomplete" in str(broken)


def test_a_model_that_was_never_reached_is_still_in_the_table() -> None:
    with fake_server(lambda number, body, handler: completion("no")) as fake:
        cut = ask(fake, n=40, max_calls=10, concurrency=1)
    table = llm.test(cut.answers, threshold=0.1, over="these").table
    assert table[["model", "interaction", "n"]].values.tolist() == [["fake", "shout", 40], ["other", "shout", 40]]
    assert table["verdict"].tolist() == ["inconclusive"] * 2
