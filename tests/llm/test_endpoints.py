"""The table "Endpoints and language models": one test a row, against a real server on the loopback."""

from __future__ import annotations

import json
import re
import time
import zipfile
from collections import Counter
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("inspect_ai", reason="inspect-ai is in the `llm` extra")
pytest.importorskip("openai", reason="openai is in the `llm` extra")

from llm_run_kit import KEY, PROMPTS, QUICK, Says, Shout, answer, completion, drip, fake_server, reset, truth

from budge import llm
from budge.errors import DesignError, ModelError

Handler = BaseHTTPRequestHandler


def ask(fake: Any, **more: Any) -> llm.Run:
    given = {"judge": Says(), "n": 4, "seed": 5, "patience": QUICK, **more}
    return llm.run(fake.model, PROMPTS, {"shout": Shout()}, **given)


def expected() -> list[list[Any]]:
    with fake_server() as fake:
        return ask(fake).answers.table.to_numpy().tolist()


def failing_once(fail: Any) -> Any:
    """Every question is refused the first time that it is asked."""
    seen: Counter[str] = Counter()

    def behave(number: int, body: dict[str, Any], handler: Handler) -> bytes | None:
        question = json.dumps([body["messages"], body.get("seed")])
        seen[question] += 1
        if seen[question] == 1:
            fail(handler, body)
            return None
        return completion(truth(body))

    return behave


PASSING = {
    "429": lambda handler, body: answer(handler, 429, b'{"error": {"message": "slow down"}}'),
    "429, Retry-After": lambda handler, body: answer(handler, 429, b"{}", Retry_After="0.2"),
    "500": lambda handler, body: answer(handler, 500, b"oops", "text/plain"),
    "502": lambda handler, body: answer(handler, 502, b"<html>bad gateway</html>", "text/html"),
    "503": lambda handler, body: answer(handler, 503, b'{"error": {"message": "overloaded"}}'),
    "reset": lambda handler, body: reset(handler),
    "truncated JSON": lambda handler, body: answer(handler, 200, completion(truth(body))[:-20]),
    "cut body": lambda handler, body: cut(handler, completion(truth(body))),
}


def cut(handler: Handler, body: bytes) -> None:
    """Less than was announced."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[: len(body) // 2])
    handler.wfile.flush()
    reset(handler)


@pytest.mark.parametrize("kind", PASSING)
def test_what_passes_is_tried_again(kind: str) -> None:
    with fake_server(failing_once(PASSING[kind])) as fake:
        run = ask(fake)
    assert not run.incomplete
    assert run.answers.table.to_numpy().tolist() == expected()
    assert run.calls == len(fake.asked) == 16  # each of the 8 twice: retries count


@pytest.mark.parametrize("kind", ["time-out", "slow drip"])
def test_a_call_that_takes_too_long_is_tried_again(kind: str) -> None:
    def late(handler: Handler, body: dict[str, Any]) -> None:
        if kind == "time-out":
            time.sleep(1.5)
        else:
            drip(handler, completion(truth(body)), 4.0)

    with fake_server(failing_once(late)) as fake:
        run = ask(fake, n=2, patience=replace(QUICK, timeout=1))
    assert not run.incomplete
    assert len(run.answers) == 4
    assert run.calls >= len(fake.asked) >= 8


def test_retry_after_is_waited_for_and_back_off_is_jittered() -> None:
    def behave(number: int, body: dict[str, Any], handler: Handler) -> bytes | None:
        if number == 0:
            answer(handler, 429, b"{}", Retry_After="0.25")
            return None
        return completion("yes")

    patience = llm.Patience(attempts=3, first_wait=0.01, max_wait=5, timeout=5)
    with fake_server(behave) as fake:
        run = ask(fake, n=1, base=False, patience=patience)
    assert not run.incomplete
    assert fake.asked[1].at - fake.asked[0].at >= 0.25
    waits = {patience.wait(3) for _ in range(50)}
    assert len(waits) > 10
    assert all(0.02 <= wait <= 0.04 for wait in waits)


def test_an_endpoint_that_stays_down_ends_incomplete_and_goes_on_later(tmp_path: Path) -> None:
    def down(number: int, body: dict[str, Any], handler: Handler) -> None:
        answer(handler, 503, b"{}")

    with fake_server(down) as fake:
        broken = ask(fake, folder=tmp_path / "run", concurrency=1, n=10)
        assert len(broken.answers) == 0
        assert "in a row" in broken.incomplete
        assert f"503 ({QUICK.attempts} tries)" in broken.incomplete.replace("Error code: ", "").replace(" - {}", "")
        assert broken.calls == len(fake.asked) == QUICK.attempts * QUICK.in_a_row  # then it is left alone
        fake.behave = None
        whole = ask(fake, folder=tmp_path / "run", concurrency=1, n=10)
    assert not whole.incomplete
    assert whole.asked == 20
    assert whole.calls == 20 + broken.calls


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_refusal_is_said_at_once_without_the_key(status: int, tmp_path: Path) -> None:
    def refuse(number: int, body: dict[str, Any], handler: Handler) -> bytes | None:
        if number < 2:
            return completion(truth(body))
        said = {"error": {"message": f"bad key {KEY}", "seen": handler.headers["Authorization"], "type": "invalid", "code": "no"}}
        answer(handler, status, json.dumps(said).encode())
        return None

    with fake_server(refuse) as fake, pytest.raises(ModelError) as caught:
        ask(fake, folder=tmp_path / "run", concurrency=1, n=10)
    assert len(fake.asked) == 3, "it was tried again"
    message = str(caught.value)
    assert str(status) in message
    assert "bad key ***" in message
    assert caught.value.exit_code == 2
    assert caught.value.problems[0].remedy
    assert KEY not in repr(caught.value)
    assert KEY not in everything(tmp_path)
    assert len(llm.load(tmp_path / "run")) == 2  # what was answered is there


def everything(folder: Path) -> str:
    """All bytes under a folder as text, those inside Inspect's logs too."""
    texts = []
    for path in folder.rglob("*"):
        if path.is_file():
            texts.append(path.read_bytes().decode("latin-1"))
            if zipfile.is_zipfile(path):
                texts.append(json.dumps(_log(path)))
    return "\n".join(texts)


def _log(path: Path) -> Any:
    from inspect_ai.log import read_eval_log

    return read_eval_log(str(path)).model_dump(mode="json")


def test_a_key_is_never_written(tmp_path: Path) -> None:
    """Not even where the model repeats it, or a server puts it into an answer that is none."""

    def echo(number: int, body: dict[str, Any], handler: Handler) -> bytes | None:
        if body["messages"][-1]["content"] == PROMPTS[0].text:
            return json.dumps({"error": {"message": KEY}}).encode()
        return completion(f"yes {handler.headers['Authorization']}")

    with fake_server(echo) as fake:
        run = ask(fake, n=None, per_prompt=1, folder=tmp_path / "run")
        assert fake.asked[0].headers["authorization"].endswith(KEY)
    texts = everything(tmp_path)
    assert "yes Bearer ***" in texts
    assert "Is fire cold" in texts  # the search does see what is in there
    assert KEY not in texts
    assert KEY not in str(run) + repr(run) + json.dumps(run.to_dict()) + run.answers.table.to_csv()
    assert KEY not in repr(fake.model)


GARBAGE: dict[str, Any] = {
    "error body": b'{"error": {"message": "no more tokens today", "code": 17}}',
    "HTML": b"<html><body>maintenance page</body></html>",
    "truncated JSON": completion("yes and no")[:60],
    "no choices": completion("yes", choices=[]),
    "empty text": completion(""),
    "null text": completion(None),
    "another JSON": b'["nothing", "known"]',
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_an_answer_without_a_completion_is_unresolved_and_kept(kind: str, tmp_path: Path) -> None:
    def behave(number: int, body: dict[str, Any], handler: Handler) -> bytes | None:
        if body["messages"][-1]["content"] != PROMPTS[0].text:
            return completion(truth(body))
        answer(handler, 200, GARBAGE[kind], "text/html" if kind == "HTML" else "application/json")
        return None

    with fake_server(behave) as fake:
        run = ask(fake, n=None, per_prompt=1, folder=tmp_path / "run")
        assert not run.incomplete
        asked = len(fake.asked)
        table = run.answers.table
        bad = table[(table.prompt == "q0") & (table.interaction == "base")].iloc[0]
        assert bad["hit"] is None
        assert bad["why"]
        others = table.drop(index=bad.name)
        assert not others["hit"].isna().any()
        # A draw that came back empty is a draw: it is not drawn again. A body that is none may be an accident.
        times = sum(seen.text == PROMPTS[0].text for seen in fake.asked)
        assert times == (1 if kind in ("empty text", "null text") else QUICK.attempts)
        again = ask(fake, n=None, per_prompt=1, folder=tmp_path / "run")
        assert len(fake.asked) == asked
        assert again.answers.table.equals(table)
    if kind not in ("empty text", "null text"):
        sign = {
            "no choices": '"choices": []',
            "another JSON": "nothing",
            "error body": "no more tokens",
            "HTML": "maintenance page",
        }
        assert sign.get(kind, '"id": "c"') in bad["answer"]


@pytest.mark.parametrize(
    ("code", "why"),
    [("context_length_exceeded", "too long for the model"), ("content_filter", "the provider blocked the prompt")],
)
def test_a_prompt_that_a_provider_does_not_take_is_unresolved_and_the_others_go_on(code: str, why: str) -> None:
    def behave(number: int, body: dict[str, Any], handler: Handler) -> bytes | None:
        if body["messages"][-1]["content"] != PROMPTS[0].text:
            return completion(truth(body))
        answer(
            handler,
            400,
            json.dumps({"error": {"message": "not this one", "code": code, "type": "invalid_request_error"}}).encode(),
        )
        return None

    with fake_server(behave) as fake:
        run = ask(fake, n=None, per_prompt=1, judge=Says("not"))
    lost = run.answers.table[run.answers.table["hit"].isna()]
    assert lost["prompt"].tolist() == ["q0"]
    assert why in lost["why"].iloc[0]
    assert "not this one" in lost["answer"].iloc[0]
    assert not run.incomplete


def test_a_judge_that_answers_neither_is_unresolved_and_its_answer_is_kept() -> None:
    from dataclasses import dataclass

    from budge.llm import Judge, Judgement

    @dataclass(frozen=True)
    class Model(Judge):
        """Asks a model; anything but 0 and 1 is neither."""

        kind: ClassVar[str] = "neither"

        def judge(self, prompt: Any, sent: str, answer: str) -> Judgement:
            raise NotImplementedError

        async def apply(self, prompt: Any, sent: str, answer: str, ask: Any) -> Judgement:
            said = await ask("", f"JUDGE {answer}")
            return Judgement({"0": False, "1": True}.get(said.strip()), "" if said.strip() in "01" else "neither 0 nor 1", said)

        def describe(self) -> str:
            return "A model."

    def behave(number: int, body: dict[str, Any], handler: Handler) -> bytes:
        text = body["messages"][-1]["content"]
        if not text.startswith("JUDGE"):
            return completion(text)
        return completion("1" if "wet" in text else "" if "cold" in text else "0" if "blue" in text else "Perhaps.")

    with fake_server(behave) as fake:
        run = llm.run(fake.model, PROMPTS, judge=Model(), per_prompt=1, judge_model=fake.model, patience=QUICK)
        judged = [seen for seen in fake.asked if seen.text.startswith("JUDGE")]
    assert {seen.body["temperature"] for seen in judged} == {0.0}
    hits = dict(zip(run.answers.table["prompt"], run.answers.table["hit"]))
    assert hits == {"q0": True, "q1": None, "q2": False, "q3": None, "q4": None, "q5": None}
    whys = dict(zip(run.answers.table["prompt"], run.answers.table["why"]))
    assert "empty" in whys["q1"]
    assert "neither" in whys["q3"]
    assert run.calls == 12


def test_a_server_that_fails_three_calls_in_ten_still_ends_complete(tmp_path: Path) -> None:
    kinds = [*PASSING.values(), lambda handler, body: time.sleep(1.2)]
    failed = []

    def behave(number: int, body: dict[str, Any], handler: Handler) -> bytes | None:
        if number % 10 in (1, 4, 8):
            failed.append(number)
            kinds[len(failed) % len(kinds)](handler, body)
            return None
        return completion(truth(body))

    with fake_server(behave) as fake:
        run = ask(
            fake, n=40, folder=tmp_path / "run", patience=llm.Patience(attempts=12, first_wait=0.01, max_wait=0.3, timeout=1)
        )
    assert not run.incomplete
    assert len(run.answers) == 80
    assert not run.answers.table["hit"].isna().any()
    assert len(failed) > 30
    assert run.calls >= len(fake.asked) >= 80 + len(failed)
    with fake_server() as fake:
        assert ask(fake, n=40).answers.table.equals(run.answers.table)


def test_caps_stop_cleanly_and_a_higher_cap_goes_on(tmp_path: Path) -> None:
    with fake_server() as fake:
        first = ask(fake, n=10, folder=tmp_path / "run", max_calls=7)
        assert "7" in first.incomplete
        assert first.calls == len(fake.asked) == len(first.answers) == 7
        second = ask(fake, n=10, folder=tmp_path / "run", max_calls=7)  # the cap is the run's, not the process's
        assert second.asked == 0
        third = ask(fake, n=10, folder=tmp_path / "run", max_calls=100)
        assert not third.incomplete
        assert third.calls == len(fake.asked) == 20
        whole = ask(fake, n=10)
    assert third.answers.table.equals(whole.answers.table)


def test_a_cap_on_cost_is_never_passed(tmp_path: Path) -> None:
    prices = {"fake": (2.0, 10.0)}  # a call: 10 tokens in, 5 out
    each = (10 * 2.0 + 5 * 10.0) / 1e6
    with fake_server() as fake:
        most = (2.0 * (128 + 23) + 10.0 * 8) / 1e6  # the most that a call reserves
        cap = 20 * each + most
        run = ask(fake, n=20, folder=tmp_path / "run", max_cost=cap, prices=prices, max_tokens=8, concurrency=8)
        assert run.cost == pytest.approx(len(fake.asked) * each)
        assert cap - most - each < run.cost <= cap  # calls under way are waited for: less than one reservation is left
        told = re.fullmatch(
            r"(\S+) was spent and the next call may cost up to (\S+), the cap is (\S+) \(with (\S+) it could be made\)", run.incomplete
        )
        assert told is not None, run.incomplete
        spent, reserve, _, enough = map(float, told.groups())
        assert spent == pytest.approx(run.cost, rel=1e-3)
        assert spent + reserve > cap
        asked = len(fake.asked)
        assert ask(fake, n=20, folder=tmp_path / "run", max_cost=enough, prices=prices, max_tokens=8).asked > 0
        assert len(fake.asked) > asked
        rest = ask(fake, n=20, folder=tmp_path / "run", max_cost=1.0, prices=prices, max_tokens=8)
    assert not rest.incomplete
    assert rest.cost == pytest.approx(40 * each)


def test_the_price_of_a_judge_counts() -> None:
    def behave(number: int, body: dict[str, Any], handler: Handler) -> bytes:
        return completion("1")

    with fake_server(behave) as fake:
        given = {"judge": llm.model_judge(), "judge_model": fake.model, "n": 3, "base": False}
        with pytest.raises(DesignError, match=r"every model.*'judge'"):
            ask(fake, max_cost=1, prices={"fake": (0, 0)}, **given)
        run = ask(fake, max_cost=1, prices={"fake": (0, 0), "judge": (0, 100.0)}, **given)
    assert run.calls == 6
    assert run.cost == pytest.approx(3 * 5 * 100e-6)
