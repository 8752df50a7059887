"""Prompts with fields, interactions that move the expected answer, and converters: built in, from Python, by entry point."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from budge import llm
from budge.errors import DataError, InputError, SpecError
from budge.llm import Prompt, Prompts

RIVER = Prompt("r", "Which is a river?", expected="B", options=("Paris", "Seine", "Oslo"), system="Be brief.", passages=("One.", "Two."))


def test_a_prompt_with_fields_is_written_out() -> None:
    assert RIVER.asked == "One.\n\nTwo.\n\nWhich is a river?\n\nA) Paris\nB) Seine\nC) Oslo"
    assert Prompt("a", "Hello?").asked == "Hello?"
    assert Prompt("a", "Hello?").to_dict() == {"id": "a", "text": "Hello?", "category": "", "expected": ""}, "digests of plain prompts stay what they were"


def test_fields_are_read_from_files(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("id,text,options,expected,system\nq,Which?,Paris|Seine,B,Be brief.\nr,What?,,,\n", encoding="utf-8")
    q, r = Prompts.read(tmp_path / "p.csv")
    assert (q.options, q.expected, q.system) == (("Paris", "Seine"), "B", "Be brief.")
    assert (r.options, r.asked) == ((), "What?")
    (tmp_path / "p.jsonl").write_text(json.dumps({"id": "q", "question": "Which?", "choices": ["a", "b"], "contexts": ["x", "y"]}), encoding="utf-8")
    (one,) = Prompts.read(tmp_path / "p.jsonl")
    assert (one.options, one.passages) == (("a", "b"), ("x", "y"))
    with pytest.raises(DataError, match="must be 2 to 26"):
        Prompts.of([{"id": "q", "text": "Which?", "options": ["a"]}])
    with pytest.raises(DataError, match="must be a list of texts"):
        Prompts.of([{"id": "q", "text": "Which?", "options": [1, 2]}])


def test_the_expected_letter_moves_with_its_option() -> None:
    for seed in range(40):
        for way in (llm.options(), llm.options(rotate=True)):
            moved = way.changed(RIVER, np.random.default_rng(seed))
            assert sorted(moved.options) == sorted(RIVER.options)
            assert moved.options[ord(moved.expected) - 65] == "Seine"
    by_text = Prompt("r", "Which?", expected="Seine", options=RIVER.options)
    assert llm.options().changed(by_text, np.random.default_rng(3)).expected == "Seine"
    assert len(llm.options().law(RIVER)) == 6
    assert len(llm.options(rotate=True).law(RIVER)) == 3
    assert sum(llm.options().law(RIVER).values()) == pytest.approx(1)


def test_every_option_stands_in_every_place_equally_often() -> None:
    for way in (llm.options(), llm.options(rotate=True)):
        places = [way.changed(RIVER, np.random.default_rng(seed)).expected for seed in range(600)]
        assert all(150 < places.count(letter) < 250 for letter in "ABC")


def test_prompts_that_cannot_be_put_in_order_are_named() -> None:
    with pytest.raises(DataError, match=r"prompt a: has no options"):
        llm.options().check(Prompts.of([Prompt("a", "Hello?")]))
    with pytest.raises(DataError, match=r"prompt a\.expected: is neither a letter"):
        llm.options().check(Prompts.of([Prompt("a", "Hello?", expected="D", options=("x", "y"))]))
    with pytest.raises(DataError, match="fewer than two passages"):
        llm.passages().check(Prompts.of([Prompt("a", "Hello?")]))
    with pytest.raises(SpecError, match="must be true or false"):
        llm.parse_interaction("options(rotate=3)")


def test_interactions_on_fields_are_chained_with_others() -> None:
    way = llm.parse_interaction("case(upper) | options | system('Be kind.')")
    moved = way.changed(RIVER, np.random.default_rng(1))
    assert (moved.text, moved.system) == ("WHICH IS A RIVER?", "Be kind.")
    assert moved.options[ord(moved.expected) - 65] == "Seine"
    assert way.reachable(RIVER) is None
    assert {llm.passages().changed(RIVER, np.random.default_rng(i)).passages for i in range(20)} == {("One.", "Two."), ("Two.", "One.")}


def test_a_model_without_a_preference_for_a_place_is_right_in_every_order() -> None:
    pytest.importorskip("inspect_ai", reason="inspect-ai is in the `llm` extra")
    pytest.importorskip("openai", reason="openai is in the `llm` extra")
    from llm_run_kit import QUICK, completion, fake_server

    def finds(number: int, body: dict[str, Any], handler: Any) -> bytes:
        letter = re.search(r"^(\w)\) Seine$", body["messages"][-1]["content"], re.M)
        return completion(f"{letter[1]})" if letter else "None of them.")

    with fake_server(finds) as fake:
        ways = {"order": "options", "system": "system('Be kind.')", "loud": "case(upper)"}
        run = llm.run(fake.model, [RIVER], ways, judge="choice(A, B, C)", n=12, seed=2, patience=QUICK)
        systems = {one.body["messages"][0]["content"] for one in fake.asked}
    found = {row["interaction"]: row["hits"] for row in run.answers.counts().to_dict("records")}
    assert found == {"base": 12, "order": 12, "system": 12, "loud": 12}, "12 of 12 only if the expected letter moved along"
    assert systems == {"Be brief.", "Be kind."}
    table = run.answers.table
    assert len(set(table.loc[table["interaction"] == "order", "expected"])) > 1
    assert set(table["original"]) == {"Which is a river?"}
    assert llm.judge(run, "choice(A, B, C)").answers.table["hit"].all(), "judging again has the moved letter too"


# -- converters -------------------------------------------------------------------------------------------------------------


def text_of(way: llm.Interaction, text: str) -> str:
    return way.draw(text, 1, np.random.default_rng(0))[0]


def test_built_in_converters() -> None:
    given = "Name 2 rivers, please?"
    assert base64.b64decode(text_of(llm.convert("base64"), given)).decode() == given
    assert text_of(llm.convert("rot13"), given) == "Anzr 2 eviref, cyrnfr?"
    assert text_of(llm.convert("morse"), "SOS, 2?") == "... --- ... --..-- / ..--- ..--.."
    hidden = text_of(llm.convert("zero_width"), given)
    assert hidden != given
    assert hidden.replace("\u200b", "") == given
    turned = text_of(llm.convert("bidi"), "ab\ncd")
    assert turned == "\u202eba\u202c\n\u202edc\u202c"
    assert llm.parse_interaction("convert(base64) | prefix('Decode: ')").name == "base64 + prefix"


def test_a_function_is_a_converter_by_one_line() -> None:
    import asyncio

    async def slow(text: str) -> str:
        return text[::-1]

    async def nobody(model: str, text: str) -> str:
        raise AssertionError

    assert text_of(llm.convert(str.swapcase), "Go") == "gO"
    way = llm.convert(slow)
    assert asyncio.run(way.apply(Prompt("a", "abc"), np.random.default_rng(0), nobody)) == "cba"
    with pytest.raises(InputError, match="asynchronous"):
        text_of(way, "abc")
    for wrong, message in ((lambda text: text, "needs a name"), ("bas64", "did you mean 'base64'")):
        with pytest.raises(SpecError, match=message):
            llm.convert(wrong)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="built-in"):
        llm.convert(str.upper, name="base64")
    with pytest.raises(InputError, match="returns a text"):
        text_of(llm.convert(lambda text: 3, name="three"), "abc")  # type: ignore[arg-type, return-value]


def test_packages_offer_converters_by_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme_texts.py").write_text("def shout(text):\n    return text.upper() + '!'\n", encoding="utf-8")
    made = tmp_path / "acme_texts-1.2.dist-info"
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-texts\nVersion: 1.2\n", encoding="utf-8")
    (made / "entry_points.txt").write_text("[budge.converters]\nacme_shout = acme_texts:shout\nacme_gone = acme_texts:gone\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    way = llm.parse_interaction("convert(acme_shout)")
    assert text_of(way, "go") == "GO!"
    assert way.to_dict() == {"kind": "convert", "called": "acme_shout", "source": "acme-texts 1.2"}
    assert llm.interaction_from_dict(way.to_dict()) == way
    with pytest.raises(SpecError, match="cannot be loaded"):
        llm.convert("acme_gone")
    with pytest.raises(SpecError, match="another package or version"):
        llm.interaction_from_dict({**way.to_dict(), "source": "acme-texts 1.1"})
