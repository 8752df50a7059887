"""Runs: which draws they make, that a draw depends on nothing but its name, that nothing is asked twice, that rules save calls."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

pytest.importorskip("inspect_ai", reason="inspect-ai is in the `llm` extra")
pytest.importorskip("openai", reason="openai is in the `llm` extra")

from llm_run_kit import PROMPTS, QUICK, Asked, Says, Shout, answer, completion, fake_server, truth

from budge import llm
from budge.errors import DesignError, InputError, MissingDependencyError, ModelError, StorageError
from budge.journal.file import FolderLock
from budge.llm.answers import COLUMNS
from budge.llm.runs.draws import decode_seed, draws_of, needed, rewrite_stream, stop_of
from budge.llm.runs.folder import holds_run
from budge.stats import anytime_rule, curtailed_rule, sprt_rule

WAYS = {"shout": Shout()}


def ask(fake: Any, **more: Any) -> llm.Run:
    given = {"judge": Says(), "n": 6, "seed": 5, "patience": QUICK, **more}
    return llm.run(given.pop("models", fake.model), given.pop("prompts", PROMPTS), given.pop("ways", WAYS), **given)


def questions(asked: list[Asked]) -> Counter[tuple[str, int]]:
    return Counter((seen.text, seen.body.get("seed")) for seen in asked)


# -- draws --------------------------------------------------------------------------------------------------------------


def test_joint_draws_are_uniform_shared_and_independent_of_order() -> None:
    n = 6000
    draws = list(draws_of("m", "base", PROMPTS, n=n, per_prompt=None, seed=1))
    counts = Counter(draw.prompt.id for draw in draws)
    assert len(counts) == len(PROMPTS)
    assert all(abs(count - n / 6) < 5 * (n * 1 / 6 * 5 / 6) ** 0.5 for count in counts.values())
    turned = list(draws_of("other", "shout", list(PROMPTS)[::-1], n=50, per_prompt=None, seed=1))
    assert [draw.prompt for draw in turned] == [draw.prompt for draw in draws[:50]]
    again = list(draws_of("m", "base", PROMPTS, n=50, per_prompt=None, seed=2))
    assert [draw.prompt for draw in again] != [draw.prompt for draw in draws[:50]]


def test_each_draw_has_streams_of_its_own() -> None:
    draws = [
        draw
        for way in ("base", "shout")
        for draw in draws_of("m", way, PROMPTS, n=None, per_prompt=20, seed=1)
    ]  # fmt: skip
    seeds = [decode_seed(7, draw) for draw in draws]
    assert len(set(seeds)) == len(seeds) == 240
    firsts = {float(rewrite_stream(7, draw).random()) for draw in draws}
    assert len(firsts) == 240
    elsewhere = replace(draws[3], model="another")
    assert decode_seed(7, elsewhere) == seeds[3]  # models share draws
    assert len({draw.key for draw in draws} | {elsewhere.key}) == 241


def test_a_draw_depends_on_nothing_but_its_name() -> None:
    with fake_server() as fake:
        one = ask(fake, concurrency=1).answers.table
        many = ask(fake, concurrency=6).answers.table
        longer = ask(fake, n=9).answers.table
        turned = ask(fake, prompts=list(PROMPTS)[::-1]).answers.table
    assert one.equals(many)
    assert one.equals(turned)
    assert one.equals(longer[longer["draw"] < 6].reset_index(drop=True))
    assert list(one.columns) == [*COLUMNS, "judge_text", "original", "expected", "lost", "cut", "unchanged"]
    assert set(one["interaction"]) == {"base", "shout"}
    shouted = one[one.interaction == "shout"]
    assert shouted["sent"].str.isupper().all()
    assert shouted["sent"].str.endswith("!").all()


def test_per_prompt_draws_each_prompt_as_often() -> None:
    with fake_server() as fake:
        run = ask(fake, n=None, per_prompt=3, base=False)
    assert run.answers.info["scheme"] == "per_prompt"
    assert Counter(run.answers.table["prompt"]) == dict.fromkeys(PROMPTS.ids, 3)
    assert set(run.answers.table["interaction"]) == {"shout"}


def test_repeats_are_never_served_from_a_cache_as_new_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One prompt, no seeds, and a model whose own configuration asks Inspect to cache: still a call for each draw."""
    from inspect_ai.model import GenerateConfig, get_model

    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    count = 0

    def behave(number: int, body: dict[str, Any], handler: Any) -> bytes:
        nonlocal count
        count += 1
        return completion(f"{'yes' if count % 2 else 'no'} {count}")

    with fake_server(behave) as fake:
        model = get_model(
            "openai-api/local/fake",
            base_url=fake.url,
            api_key="none",
            config=GenerateConfig(cache=True, temperature=0.7),
            memoize=False,
        )

        async def twice() -> list[str]:
            return [(await model.generate("Is water wet?")).completion for _ in range(2)]

        assert len(set(asyncio.run(twice()))) == 1, "Inspect's cache is on, else this shows nothing"
        before = len(fake.asked)
        model = get_model(
            "openai-api/local/fake",
            base_url=fake.url,
            api_key="none",
            config=GenerateConfig(cache=True, temperature=0.7),
            memoize=False,
        )
        run = llm.run(model, ["Is water wet?"], judge=Says(), n=12, send_seed=False, patience=QUICK)
    assert len(fake.asked) - before == 12
    assert run.answers.table["answer"].nunique() == 12
    assert "seed" not in fake.asked[-1].body


def test_temperature_and_seeds_are_sent() -> None:
    with fake_server() as fake:
        ask(fake, n=8, temperature=0.3, max_tokens=17)
    assert {seen.body["temperature"] for seen in fake.asked} == {0.3}
    assert {seen.body["max_tokens"] for seen in fake.asked} == {17}
    assert len({seen.body["seed"] for seen in fake.asked}) == 16


# -- resuming -----------------------------------------------------------------------------------------------------------

CHILD = """
import sys
sys.path.insert(0, {kit!r})
from llm_run_kit import PROMPTS, QUICK, Says, Shout
from budge import llm
llm.run(llm.ChatModel("fake", {url!r}), PROMPTS, {{"shout": Shout()}}, judge=Says(), n=24, seed=5, patience=QUICK, concurrency=3, folder={folder!r})
"""


def test_a_run_that_is_killed_asks_no_answered_draw_again(tmp_path: Path) -> None:
    def slow(number: int, body: dict[str, Any], handler: Any) -> bytes:
        time.sleep(0.02)
        return completion(truth(body))

    folder = tmp_path / "run"
    with fake_server(slow) as fake:
        script = CHILD.format(kit=str(Path(__file__).parent), url=fake.url, folder=str(folder))
        child = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE)
        until = time.monotonic() + 120
        while len(fake.asked) < 20 and child.poll() is None and time.monotonic() < until:
            time.sleep(0.005)
        assert child.poll() is None, child.stderr.read().decode() if child.stderr else ""
        os.kill(child.pid, signal.SIGKILL)
        child.communicate()
        first = questions(fake.asked)
        assert 20 <= sum(first.values()) < 48
        run = ask(fake, models=llm.ChatModel("fake", fake.url), n=24, folder=folder, concurrency=3)
        assert not run.incomplete
        again = Counter({question: times for question, times in questions(fake.asked).items() if times > 1})
        assert sum(again.values()) - len(again) <= 3  # only what was under way at the kill
        assert run.asked == 48 - (sum(first.values()) - len(again))
        assert run.answers.table.equals(ask(fake, n=24).answers.table)
        size = len(fake.asked)
        assert ask(fake, n=24, folder=folder, models=llm.ChatModel("fake", fake.url)).answers.table.equals(run.answers.table)
        assert len(fake.asked) == size
    assert llm.load(folder).table.equals(run.answers.table)
    assert list((folder / "logs").glob("*.eval"))  # Inspect's own logs are kept


def test_the_caps_hold_over_kills_with_calls_under_way(tmp_path: Path) -> None:
    """Two kills while three calls wait for their answers: these calls count, and cost the most that they can have cost."""
    held = threading.Event()

    def slow(number: int, body: dict[str, Any], handler: Any) -> bytes:
        held.wait(20)
        return completion(truth(body))

    prices = {"fake": (1.0, 1.0)}
    for name, cap in (("calls", {"max_calls": 10}), ("cost", {"max_cost": 0.0031, "prices": prices})):
        folder = tmp_path / name
        held.clear()
        with fake_server(slow) as fake:
            script = CHILD.format(kit=str(Path(__file__).parent), url=fake.url, folder=str(folder))
            for kills in (1, 2):
                child = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE)
                until = time.monotonic() + 120
                while len(fake.asked) < 3 * kills and child.poll() is None and time.monotonic() < until:
                    time.sleep(0.005)
                assert child.poll() is None, child.stderr.read().decode() if child.stderr else ""
                os.kill(child.pid, signal.SIGKILL)
                child.communicate()
            assert len(fake.asked) == 6
            held.set()
            run = ask(fake, models=llm.ChatModel("fake", fake.url), n=24, folder=folder, concurrency=3, **cap)
        assert run.incomplete
        assert run.calls == len(fake.asked)
        if name == "calls":
            assert (run.calls, run.asked, len(run.answers)) == (10, 4, 4)
        else:  # 128 tokens of frame, 13 to 23 bytes, 256 tokens of answer: no more than 6 * 407e-6 for the lost ones
            lost = run.cost - run.asked * 15e-6
            assert 6 * 397e-6 <= lost <= 6 * 407e-6
            assert run.asked > 10  # what is left is spent, all but less than one reservation
            assert 0.0031 - 407e-6 < run.cost <= 0.0031


def test_the_journal_of_a_killed_run_is_read(tmp_path: Path) -> None:
    """As after a kill: the journal is there and the table is not, or is that of an earlier call."""
    with fake_server() as fake:
        cut = ask(fake, folder=tmp_path / "run", n=6, max_calls=7)
        (tmp_path / "run" / "run.json").unlink()
        read = llm.load(tmp_path / "run")
        assert read.table.equals(cut.answers.table)
        assert read.info == cut.answers.info
        assert not read.info["complete"]
        assert llm.test(read, threshold=0.9, over="these").table["n"].tolist() == [6]
        assert not ask(fake, folder=tmp_path / "run", n=6).incomplete
    assert llm.load(tmp_path / "run").info["complete"]


def test_a_refused_run_leaves_no_folder_in_the_way(tmp_path: Path) -> None:
    with fake_server() as fake:
        for judge, words in (
            ("model_judge()", "--judge-model"),
            ("model_judge(nobody/knows)", "nobody"),
            ("model_judge(bare)", "bare"),
        ):
            with pytest.raises(ModelError, match=words):
                ask(fake, judge=judge, folder=tmp_path / "run")
            assert not (tmp_path / "run").exists()
        with pytest.raises(ModelError, match="--rewriter"):
            ask(fake, ways=["one_of(case(upper), paraphrase())"], folder=tmp_path / "run")
        fake.behave = lambda number, body, handler: answer(handler, 401, b"{}")
        with pytest.raises(ModelError, match="401"):
            ask(fake, folder=tmp_path / "run", seed=8)
        assert holds_run(tmp_path / "run")
        fake.behave = None
        assert not ask(fake, folder=tmp_path / "run", seed=9).incomplete  # nothing was answered there: it is replaced
        with pytest.raises(InputError, match="seed"):
            ask(fake, folder=tmp_path / "run", seed=8)


def test_what_is_answered_and_not_judged_is_only_judged(tmp_path: Path) -> None:
    def behave(number: int, body: dict[str, Any], handler: Any) -> bytes:
        text = body["messages"][-1]["content"]
        return completion(("1" if "yes" in text else "0") if text.startswith("[judge]") else truth(body))

    judge = llm.model_judge(template="[judge]{question}{answer}")
    with fake_server(behave) as fake:
        given = {
            "judge": judge,
            "judge_model": fake.model,
            "n": None,
            "per_prompt": 1,
            "folder": tmp_path / "run",
            "concurrency": 1,
        }
        cut = ask(fake, max_calls=3, **given)
        assert cut.incomplete
        assert len(cut.answers) == 1  # answered, judged, answered
        whole = ask(fake, **given)
    assert whole.calls == 24
    assert set(questions(fake.asked).values()) == {1}
    assert set(whole.answers.table["hit"]) == {True, False}


def test_models_share_a_rewrite_that_a_model_makes(tmp_path: Path) -> None:
    def behave(number: int, body: dict[str, Any], handler: Any) -> bytes:
        text = body["messages"][-1]["content"]
        time.sleep(0.01)
        return completion(f"Pray, {body['seed']}?" if "other words" in text else truth(body))

    with fake_server(behave) as fake:
        models = {"one": fake.model, "two": fake.model}
        run = ask(
            fake, models=models, ways={"said": llm.paraphrase()}, rewriter=fake.model, n=5, base=False, folder=tmp_path / "run"
        )
        made = [seen for seen in fake.asked if "other words" in seen.text]
    assert len(made) == 5
    table = run.answers.table
    assert table[table.model == "one"]["sent"].tolist() == table[table.model == "two"]["sent"].tolist()
    assert table["sent"].nunique() == 5
    assert run.calls == 15


def test_a_rewrite_that_will_not_do_is_unresolved_and_not_replaced() -> None:
    def behave(number: int, body: dict[str, Any], handler: Any) -> bytes:
        text = body["messages"][-1]["content"]
        return completion("no numbers here" if "other words" in text else truth(body))

    with fake_server(behave) as fake:
        run = ask(fake, prompts=["How many days are 3 weeks?"], ways={"said": llm.paraphrase()}, rewriter=fake.model, n=2)
    rows = run.answers.table
    bad = rows[rows.interaction == "said"]
    assert bad["hit"].isna().all()
    assert bad["why"].str.contains("lost '3'").all()
    assert not rows[rows.interaction == "base"]["hit"].isna().any()


CHANGES: dict[str, dict[str, Any]] = {
    "seed": {"seed": 6}, "n": {"n": 7}, "judge": {"judge": Says("no")}, "temperature": {"temperature": 0.1},
    "prompts": {"prompts": list(PROMPTS)[:5]}, "interactions": {"ways": {"shout": Shout(9)}}, "max_tokens": {"max_tokens": 9},
    "models": {"models": llm.ChatModel("fake2", "http://127.0.0.1:9/v1")},
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_a_folder_of_another_run_is_refused_with_what_differs(what: str, tmp_path: Path) -> None:
    with fake_server() as fake:
        ask(fake, folder=tmp_path / "run", n=2 if what != "n" else 6)
        size = len(fake.asked)
        with pytest.raises(InputError, match=f"another run: {what} was") as caught:
            ask(fake, folder=tmp_path / "run", **{"n": 2, **CHANGES[what]})
        assert len(caught.value.problems) == (3 if what == "models" else 1), "the name, and the address of each"
        assert len(fake.asked) == size
        if what == "seed":
            assert not ask(fake, folder=tmp_path / "run", n=2, seed=6, overwrite=True).incomplete


def test_two_processes_on_one_folder(tmp_path: Path) -> None:
    with fake_server() as fake:
        ask(fake, folder=tmp_path / "run", max_calls=2)
        held = FolderLock.take(tmp_path / "run" / "journal.lock")
        try:
            with pytest.raises(StorageError, match=f"another process works on this run: process {os.getpid()}"):
                ask(fake, folder=tmp_path / "run")
        finally:
            held.release()
        assert not ask(fake, folder=tmp_path / "run").incomplete


def test_damaged_answers_are_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with fake_server() as fake:
        ask(fake, folder=folder)
        (answers,) = folder.glob("answers-*.jsonl")
        whole = answers.read_bytes()
        for broken in (b"", whole[:-30], whole.replace(b"yes", b"yea", 1)):
            answers.write_bytes(broken)
            with pytest.raises(StorageError, match=r"answers-[0-9a-f]*\.jsonl.*damaged"):
                llm.load(folder)
        asked = len(fake.asked)
        ask(fake, folder=folder)  # the journal has them
        assert len(fake.asked) == asked
    assert answers.read_bytes() == whole
    (folder / "run.json").write_text("{")
    with pytest.raises(StorageError, match=r"run\.json"):
        llm.load(folder)
    with pytest.raises(StorageError, match="no answers here"):
        llm.load(tmp_path / "nowhere")


FULL = """
import resource, signal, sys
sys.path.insert(0, {kit!r})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from llm_run_kit import PROMPTS, QUICK, Says, Shout
from budge import llm
from budge.errors import BudgeError
import inspect_ai
def limit(done, total):
    if done == 5:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    model = llm.ChatModel("fake", {url!r})
    given = dict(judge=Says(), n=24, seed=5, patience=QUICK, concurrency=1, folder={folder!r}, progress=limit)
    llm.run(model, PROMPTS, {{"shout": Shout()}}, **given)
except BudgeError as error:
    sys.stderr.write(str(error))
    sys.exit(error.exit_code)
"""


def test_a_disk_that_fills_up_ends_with_3_and_keeps_what_was_answered(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with fake_server() as fake:
        script = FULL.format(kit=str(Path(__file__).parent), url=fake.url, folder=str(folder))
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert done.returncode == 3, done.stderr
        run = ask(fake, models=llm.ChatModel("fake", fake.url), n=24, folder=folder)
        assert not run.incomplete
        assert run.asked <= 44
        assert run.answers.table.equals(ask(fake, n=24).answers.table)


def test_a_folder_that_cannot_be_written_is_said_before_anything_is_asked(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with fake_server() as fake:
        with pytest.raises(StorageError):
            ask(fake, folder=tmp_path / "file")
        with pytest.raises(StorageError):
            ask(fake, folder=Path("/proc/nothing"))
        assert not fake.asked


# -- stopping early -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["anytime", "sprt", "curtailed"])
def test_a_rule_stops_where_it_would_on_all_draws_and_saves_calls(kind: str) -> None:
    rule = {
        "anytime": anytime_rule(60, threshold=0.6), "sprt": sprt_rule(threshold=0.75, rate=0.4), "curtailed": curtailed_rule(16, threshold=0.6),
    }[kind]  # fmt: skip
    with fake_server() as fake:
        full = ask(fake, n=rule.max_n).answers.table
        size = len(fake.asked)
        run = ask(fake, n=None, sequential=rule, concurrency=4)
        asked = len(fake.asked) - size
        exact = ask(fake, n=None, sequential=rule, concurrency=1)
    for stop in run.stops:
        hits = full[full.interaction == stop.interaction]["hit"].astype(int).to_numpy()
        fixed = rule.run(hits)
        assert (stop.verdict, stop.draws, stop.hits) == (fixed.verdict, fixed.calls, fixed.hits)
        rows = run.answers.table[run.answers.table.interaction == stop.interaction]
        assert len(rows) == stop.draws
    assert not run.incomplete
    assert run.saved == 2 * rule.fixed_n - asked > 0
    assert run.calls == asked < 2 * rule.max_n
    assert exact.answers.table.equals(run.answers.table)
    assert sum(stop.asked - stop.draws for stop in exact.stops) == 0  # one at a time wastes nothing
    assert run.answers.info["sequential"]["threshold"] == rule.threshold


def test_unresolved_draws_count_against_the_claim_of_a_rule() -> None:
    below, above = anytime_rule(60, threshold=0.5), anytime_rule(60, threshold=0.5, claim="above")
    assert stop_of(below, [False] * 60)[0] == "below"
    assert stop_of(above, [True] * 60)[0] == "above"
    assert stop_of(below, [None] * 60)[0] == stop_of(above, [None] * 60)[0] == "inconclusive"
    for rule in (below, above):
        for seed in range(8):
            hits = [bool(hit) for hit in np.random.default_rng(seed).random(60) < 0.4]
            verdict, at = stop_of(rule, hits)
            fixed = rule.run(np.array(hits, int))
            assert (verdict, at) == (fixed.verdict, fixed.calls)
            for t in range(at):  # never more than what could decide
                more = needed(rule, hits[:t])
                assert all(stop_of(rule, hits[:t] + [value] * (more - 1))[0] == "continue" for value in (True, False))
                assert at >= t + more or at == rule.max_n


def test_a_killed_sequential_run_goes_on_to_the_same_stop(tmp_path: Path) -> None:
    rule = anytime_rule(60, threshold=0.75)
    with fake_server() as fake:
        cut = ask(fake, n=None, sequential=rule, folder=tmp_path / "run", max_calls=9)
        assert cut.incomplete
        whole = ask(fake, n=None, sequential=rule, folder=tmp_path / "run")
        assert set(questions(fake.asked).values()) == {1}
        assert whole.answers.table.equals(ask(fake, n=None, sequential=rule).answers.table)


# -- what cannot be -----------------------------------------------------------------------------------------------------

BAD: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "neither n nor per_prompt": ({"n": None}, DesignError, "either n or per_prompt"),
    "both": ({"per_prompt": 2}, DesignError, "either n or per_prompt"),
    "n = 0": ({"n": 0}, DesignError, "got 0"),
    "n = True": ({"n": True}, DesignError, "got True"),
    "n = 2.5": ({"n": 2.5}, DesignError, "got 2.5"),
    "seed": ({"seed": -1}, DesignError, "seed"),
    "temperature": ({"temperature": float("nan")}, DesignError, "temperature"),
    "no prompts": ({"prompts": []}, InputError, "there is none"),
    "same identifiers": ({"prompts": [llm.Prompt("a", "x"), llm.Prompt("a", "y")]}, InputError, "'?a'?"),
    "a rule for per_prompt": ({"n": None, "per_prompt": 2, "sequential": anytime_rule(50, threshold=0.4)}, DesignError, "joint"),
    "another n than the rule's": ({"n": 6, "sequential": anytime_rule(50, threshold=0.4)}, DesignError, "50 draws"),
    "no rule": ({"n": None, "sequential": 0.4}, DesignError, "stopping rule"),
    "a name without provider": ({"models": "gpt-4o"}, ModelError, "<provider>/<model>"),
    "an unknown provider": ({"models": "nobody/knows"}, ModelError, "nobody"),
    "no model": ({"models": []}, InputError, "no model"),
    "two models of one name": ({"models": ["a/b", "a/b"]}, InputError, "same name"),
    "no judge": ({"judge": 3}, InputError, "judge"),
    "an unknown judge": ({"judge": "contians()"}, InputError, "contains"),
    "an unknown interaction": ({"ways": ["mispell()"]}, InputError, "misspell"),
    "a cap on cost without prices": ({"max_cost": 1.0}, DesignError, "prices"),
    "a strange price": ({"prices": {"fake": (1, -1)}}, DesignError, "million"),
    "the price of another model": ({"prices": {"fakt": (1, 1)}}, DesignError, "fake"),
    "an interaction named base": ({"ways": {"base": Shout()}}, InputError, "the name base is reserved"),
    "a label base": ({"ways": ["base = case(upper)"]}, InputError, "the name base is reserved"),
    "nothing to ask": ({"ways": {}, "base": False}, InputError, "nothing to ask"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_design_is_refused_before_anything_is_asked(case: str, tmp_path: Path) -> None:
    more, kind, words = BAD[case]
    with fake_server() as fake:
        with pytest.raises(kind, match=words):
            ask(fake, folder=tmp_path / "run", **more)
        assert not fake.asked
    assert not list(tmp_path.glob("run/answers-*")) or case == "an unknown provider"


@pytest.mark.parametrize("field", ["attempts", "timeout", "in_a_row", "first_wait", "max_wait"])
@pytest.mark.parametrize("value", [-1, True, float("nan"), "5"])
def test_patience_is_checked(field: str, value: Any) -> None:
    with pytest.raises(DesignError, match=field):
        llm.Patience(**{field: value})


def test_an_interaction_that_fails_is_named() -> None:
    def broken(text: str, rng: Any) -> str:
        raise ZeroDivisionError("by zero")

    with fake_server() as fake, pytest.raises(InputError, match=r"interactions\.mine.*by zero"):
        ask(fake, ways={"mine": llm.custom(broken, name="mine")}, base=False)


def test_a_judge_that_fails_on_an_answer_leaves_it_unresolved() -> None:
    @dataclass(frozen=True)
    class Fragile(Says):
        kind: ClassVar[str] = "fragile"

        def judge(self, prompt: Any, sent: str, answer: str) -> llm.Judgement:
            if prompt.id == "p1":
                raise ValueError("cannot read this")
            return super().judge(prompt, sent, answer)

    with fake_server() as fake:
        run = ask(fake, judge=Fragile(), n=None, per_prompt=1)
    table = run.answers.table
    lost = table[table["hit"].isna()]
    assert set(lost["prompt"]) <= {"p1"}
    assert len(table) == 12


def test_a_run_inside_a_running_loop() -> None:
    """As in a notebook."""
    with fake_server() as fake:
        expected = ask(fake).answers.table

        async def cell() -> llm.Run:
            return ask(fake)

        assert asyncio.run(cell()).answers.table.equals(expected)


def test_progress_and_the_record() -> None:
    seen: list[tuple[int, int]] = []
    with fake_server() as fake:
        run = ask(fake, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(i, 12) for i in range(13)]
    record = json.loads(json.dumps(run.to_dict()))
    assert record["answered"] == record["planned"] == record["calls"] == 12
    assert str(run) == "12 of 12 draws resolved by 12 calls."


def test_logging_and_hooks_are_left_as_they_were() -> None:
    import logging

    root = logging.getLogger()
    before, level, hook = list(root.handlers), root.level, sys.excepthook
    with fake_server() as fake:
        ask(fake, n=1)
    assert (root.handlers, root.level, sys.excepthook) == (before, level, hook)


def test_without_inspect_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['inspect_ai'] = None\n"
        "from budge import llm\nfrom budge.errors import MissingDependencyError\n"
        "try: llm.run('openai/x', ['Hello?'], judge='contains(a)', n=1)\n"
        'except MissingDependencyError as error: sys.exit(0 if "budge[llm]" in str(error) else 1)\n'
        "sys.exit(2)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert issubclass(MissingDependencyError, ImportError)
