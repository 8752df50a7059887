"""Stopping early over a family of interactions: what stopped a run is shown, false claims keep their level, order and concurrency change nothing."""

from __future__ import annotations

import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("inspect_ai", reason="runs need inspect-ai (extra `llm`)")
pytest.importorskip("openai", reason="runs need openai (extra `llm`)")

from llm_run_kit import PROMPTS, QUICK, Fake, Says, completion, fake_server

from budge import llm, stats
from budge.cli import main
from budge.errors import DesignError, InputError
from budge.llm.runs.design import rule_key
from budge.llm.runs.draws import draws_of, stop_of
from budge.llm.runs.folder import Store
from budge.llm.runs.run import _hits as looked_at
from budge.llm.runs.steps import Steps

RATES = {"one": 0.15, "two": 0.15, "three": 0.2, "four": 0.6}
WAYS = {name: llm.prefix(f"[{name}] ") for name in RATES}
RULE = stats.sprt_rule(threshold=0.4, rate=0.2)


def rated(number: int, body: dict[str, Any], handler: BaseHTTPRequestHandler) -> bytes:
    """Hit at the rate of the interaction that the text names; what is drawn depends on the seed of the call."""
    text = body["messages"][-1]["content"]
    rate = next((rate for name, rate in RATES.items() if text.startswith(f"[{name}]")), 0.2)
    return completion("yes" if np.random.default_rng(body["seed"]).random() < rate else "no")


def ask(fake: Fake, rule: stats.StoppingRule | None = RULE, **more: Any) -> llm.Run:
    more = {"base": False, **more}
    return llm.run({"fake": fake.model}, PROMPTS, WAYS, judge=Says(), sequential=rule, patience=QUICK, **more)


def shown(made: Any, **design: Any) -> set[str]:
    table = llm.test(made, threshold=0.4, over="these", **design).table
    return set(table.loc[table["verdict"] == "below", "interaction"])


@pytest.mark.parametrize("adjust", ["bh", "holm", "bonferroni", "none"])
def test_what_stopped_a_run_is_what_the_test_shows(adjust: str) -> None:
    """The rule at alpha itself stops just below it, and the adjustment then shows next to nothing: see the second half."""
    rng = np.random.default_rng(5)
    lost = 0
    for _ in range(20):
        draws = {name: rng.random(400) < rate for name, rate in RATES.items()}
        for rule in (RULE.shared(4), RULE):
            stops = {name: stop_of(rule, list(hits[: rule.max_n])) for name, hits in draws.items()}
            rows = [
                {"model": "m", "interaction": name, "prompt": f"q{i}", "draw": i, "hit": bool(draws[name][i])}
                for name, (_, at) in stops.items()
                for i in range(at)
            ]
            claimed = {name for name, (verdict, _) in stops.items() if verdict == "below"}
            found = shown(llm.Answers.of(rows, {"scheme": "joint", "sequential": rule_key(rule)}), adjust=adjust)
            if rule is RULE:
                lost += len(claimed - found)
            else:
                assert claimed <= found
    assert (lost == 0) == (adjust == "none"), "without the division the adjustment takes claims away"


def test_false_claims_over_the_family_keep_their_level() -> None:
    """All four at the threshold, drawn on shared prompts that always or never hit: the draws of the interactions are then the same."""
    rule, rng, runs = RULE.shared(4), np.random.default_rng(11), 4000
    separate = np.array([rule.run(rng.random((runs, rule.max_n)) < 0.4).verdict == "below" for _ in range(4)])
    error = float(separate.any(axis=0).mean())
    assert error <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)
    assert error > 0.02, "and the level is used: a rule that never claims would pass too"
    assert rule.at(0.4).claimed <= 0.0125


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_live_run_shows_its_claims_with_fewer_calls(concurrency: int, tmp_path: Path) -> None:
    with fake_server(rated) as fake:
        made = ask(fake, folder=tmp_path / "run", concurrency=concurrency, seed=3)
    assert {stop.interaction: stop.verdict for stop in made.stops} == {"one": "below", "two": "below", "three": "below", "four": "inconclusive"}
    assert shown(llm.load(tmp_path / "run")) == {"one", "two", "three"}
    assert made.calls <= 0.6 * 4 * RULE.shared(4).fixed_n
    assert made.answers.info["sequential"]["family"] == 4
    assert made.answers.info["sequential"]["alpha"] == 0.0125


def test_slow_hits_and_many_calls_under_way_change_no_stop() -> None:
    """In order of arrival, slow hits would make early looks see misses only: half of all runs would claim falsely."""

    def slow(number: int, body: dict[str, Any], handler: BaseHTTPRequestHandler) -> bytes:
        told = rated(number, body, handler)
        time.sleep(0.06 if b"yes" in told else 0.0)
        return told

    with fake_server(slow) as fake:
        made = ask(fake, concurrency=8)
    with fake_server(rated) as fake:
        one = ask(fake, concurrency=1)
    same = ("interaction", "verdict", "draws", "hits")
    assert [[getattr(stop, name) for name in same] for stop in made.stops] == [[getattr(stop, name) for name in same] for stop in one.stops]
    assert made.answers.table.drop(columns="answer").equals(one.answers.table.drop(columns="answer"))


def test_prompts_sorted_by_difficulty_are_drawn_jointly() -> None:
    with fake_server(rated) as fake, pytest.raises(DesignError, match="joint"):
        ask(fake, per_prompt=3)
    prompts = llm.Prompts.of(f"{i:03d}" for i in range(40))
    texts = [d.prompt.text for d in draws_of("m", "w", prompts, n=400, per_prompt=None, seed=0)]
    early = np.mean([text < "020" for text in texts[:40]])
    assert 0.25 < early < 0.75, "the first draws come from everywhere in the file"


def test_a_capped_run_is_extended_on_the_same_folder(tmp_path: Path) -> None:
    def half(number: int, body: dict[str, Any], handler: BaseHTTPRequestHandler) -> bytes:
        return completion("yes" if np.random.default_rng(body["seed"]).random() < 0.27 else "no")

    folder = tmp_path / "run"
    with fake_server(half) as fake:
        short = ask(fake, stats.anytime_rule(40, threshold=0.4), folder=folder)
        assert any(stop.capped for stop in short.stops)
        assert "a larger one" in str(short)
        longer = ask(fake, stats.anytime_rule(120, threshold=0.4), folder=folder)
        fresh = ask(fake, stats.anytime_rule(120, threshold=0.4))
        assert longer.calls > short.calls
        assert longer.asked == longer.calls - short.calls, "nothing is asked again"
        assert [s.to_dict() | {"asked": 0, "saved": 0} for s in longer.stops] == [s.to_dict() | {"asked": 0, "saved": 0} for s in fresh.stops]
        with pytest.raises(InputError, match="another run: sequential was"):
            ask(fake, stats.anytime_rule(120, threshold=0.5), folder=folder)


def test_a_curtailed_run_is_not_extended(tmp_path: Path) -> None:
    with fake_server(rated) as fake:
        ask(fake, stats.curtailed_rule(30, threshold=0.4), folder=tmp_path / "run")
        with pytest.raises(InputError, match="curtailed rule is the test of its number of draws"):
            ask(fake, stats.curtailed_rule(60, threshold=0.4), folder=tmp_path / "run")


def test_a_family_is_declared_and_checked() -> None:
    with fake_server(rated) as fake:
        with pytest.raises(DesignError, match="there is none"):
            ask(fake, None, n=5, family=3)
        made = ask(fake, family=9)
        assert made.answers.info["sequential"]["alpha"] == pytest.approx(0.05 / 9)
        with pytest.raises(DesignError, match="survives the other adjustments"):
            shown(made, adjust="by")
        narrow = ask(fake, family=2)
        assert "for a family of 2 tests, and more are adjusted" in str(llm.test(narrow, threshold=0.4, over="these"))


def test_the_shell_stops_over_the_family(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("\n".join(p.text for p in PROMPTS))
    out = str(tmp_path / "run")
    ways = [part for name in RATES for part in ("--interact", f"{name} = prefix('[{name}] ')")]
    with fake_server(rated) as fake:
        given = ["run", str(prompts), "--judge", "contains(yes)", "--model", "m", "--base-url", fake.url, "--sequential", "sprt", "--rate", "0.2", "--no-base"]
        assert main(["llm", *given, *ways, "-o", out]) == 0
    text = capsys.readouterr().out
    assert "--claim below --alpha 0.05" in text
    assert main(["llm", "test", out, "--threshold", "0.4", "--over", "these", "--adjust", "holm"]) == 0
    told = capsys.readouterr().out
    for name in ("one", "two", "three"):
        assert f"{name}: below" in told


def test_a_look_reads_draws_in_their_planned_order() -> None:
    """Misses that came first, and a draw that has not come yet: a look at what arrived would see misses alone."""
    draws = list(draws_of("m", "w", list(PROMPTS), n=12, per_prompt=None, seed=0))
    steps = Steps({}, Says(), 0, Store(), 4)
    hit = [i % 3 == 0 for i in range(12)]
    for i in sorted(range(12), key=lambda i: hit[i]):
        if i != 9:
            told = {"sent": "", "text": "", "why": "", "stop": "stop", "unchanged": False, "original": "", "expected": ""}
            steps.store.put(f"answer {draws[i].key}", told)
            steps.store.put(f"judge {draws[i].key}", {"hit": hit[i], "why": "", "raw": ""})
    assert looked_at(steps, draws) == hit[:9]
