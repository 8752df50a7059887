"""Interactions and judges as records, as keys and as texts of a command line; nothing that is read is run."""

from __future__ import annotations

import contextlib
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budge import llm
from budge.errors import BudgeError, DataError, InputError, SpecError
from budge.llm import Prompt
from budge.llm.interactions.registry import BUILDERS
from budge.llm.interactions.registry import KINDS as INTERACTIONS
from budge.llm.judges.registry import BUILDERS as JUDGE_BUILDERS
from budge.llm.judges.registry import KINDS as JUDGES

ONE_OF_EACH: dict[str, Callable[[], llm.Interaction]] = {
    "misspell": lambda: llm.misspell(0.2, most=3, keep_words=["Lima"]),
    "typos": lambda: llm.typos(least=1, most=2, layout="azerty"),
    "case": lambda: llm.case(["upper", "lower"]),
    "mixed_case": lambda: llm.mixed_case(0.4, keep=[]),
    "homoglyphs": lambda: llm.homoglyphs(0.4),
    "leet": lambda: llm.leet(0.4),
    "whitespace": lambda: llm.whitespace(ways=["tab"]),
    "punctuation": lambda: llm.punctuation(ways=["drop"]),
    "template": lambda: llm.template(["a {prompt}", "{prompt} b {c}"]),
    "roleplay": lambda: llm.roleplay(),
    "prefix": lambda: llm.prefix("x"),
    "suffix": lambda: llm.suffix(["x", "y"], between="\n"),
    "few_shot": lambda: llm.few_shot([("1?", "one"), ("2?", "two")], 1),
    "rewrites": lambda: llm.rewrites({"q1": ["x", "y"]}, label="own"),
    "ask_model": lambda: llm.ask_model("Change: {prompt}", model="m/n", most=3),
    "paraphrase": lambda: llm.paraphrase(),
    "translate": lambda: llm.translate("Welsh"),
    "tense": lambda: llm.tense("m/n"),
    "convert": lambda: llm.convert("rot13", label="turned"),
    "options": lambda: llm.options(rotate=True),
    "passages": lambda: llm.passages(),
    "system": lambda: llm.system("Be brief.", "Be kind."),
    "one_of": lambda: llm.one_of(llm.case("upper"), llm.unchanged(), weights=[1, 2]),
    "unchanged": lambda: llm.unchanged(),
    "chain": lambda: (llm.case("upper") | llm.suffix("x")).named("both"),
}
JUDGE_OF_EACH: dict[str, Callable[[], llm.Judge]] = {
    "match": lambda: llm.match(["a", "b"], exact=True),
    "contains": lambda: llm.contains("a"),
    "choice": lambda: llm.choice("yes", "no", wanted="no"),
    "pattern": lambda: llm.pattern("a+b", whole=True),
    "refusal": lambda: llm.refusal(within=99, also=["nope"]),
    "profanity": lambda: llm.profanity(cutoff=0.7, reads="sent"),
    "model_judge": lambda: llm.model_judge("m/n", yes="yes", no="no"),
    "negate": lambda: llm.negate(llm.refusal()),
    "scorer": lambda: llm.scorer("includes", {"ignore_case": False}),
}


INSPECT = pytest.mark.skipif(importlib.util.find_spec("inspect_ai") is None, reason="inspect-ai is in the `llm` extra")


@INSPECT
def test_every_known_name_has_an_example_here() -> None:
    assert set(BUILDERS) == set(ONE_OF_EACH) - {"chain"}
    assert set(JUDGE_BUILDERS) == set(JUDGE_OF_EACH)
    assert {make().kind for make in ONE_OF_EACH.values()} | {"custom"} == set(INTERACTIONS)
    assert {make().kind for make in JUDGE_OF_EACH.values()} == set(JUDGES)
    assert set(BUILDERS) | set(JUDGE_BUILDERS) | {"custom", "classifier"} <= set(llm.__all__)


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_a_record_makes_the_same_interaction(name: str) -> None:
    made = ONE_OF_EACH[name]()
    again = llm.interaction_from_dict(json.loads(json.dumps(made.to_dict())))
    assert again == made
    assert (again.key, again.name, again.describe()) == (made.key, made.name, made.describe())
    if name not in ("ask_model", "paraphrase", "translate", "tense"):
        prompt = Prompt("q1", "Is Lima, the town, large?", options=("yes", "no", "perhaps"), passages=("Lima is big.", "Lima is old."))
        assert again.draw(prompt, 5, np.random.default_rng(1)) == made.draw(prompt, 5, np.random.default_rng(1))


@pytest.mark.parametrize("name", JUDGE_OF_EACH)
def test_a_record_makes_the_same_judge(name: str) -> None:
    if name == "scorer":
        pytest.importorskip("inspect_ai", reason="inspect-ai is in the `llm` extra")
    made = JUDGE_OF_EACH[name]()
    again = llm.judge_from_dict(json.loads(json.dumps(made.to_dict())))
    assert again == made
    assert (again.key, again.name, again.describe()) == (made.key, made.name, made.describe())


@INSPECT
def test_keys_tell_contents_apart_and_ignore_labels() -> None:
    keys = [make().key for make in ONE_OF_EACH.values()] + [make().key for make in JUDGE_OF_EACH.values()]
    assert len(set(keys)) == len(keys)
    assert llm.typos(0.1).key != llm.typos(0.2).key
    assert llm.typos(0.1).named("x").key == llm.typos(0.1).key
    assert (llm.typos(0.1) | llm.case("upper")).key != (llm.case("upper") | llm.typos(0.1)).key
    assert llm.suffix("x").key == "cbd744e6da278ef1a652959fe0587b7b", "a key that changes makes finished runs new"


def test_a_file_of_rewrites_is_known_by_its_content(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("id,rewrite\nq1,x\n", encoding="utf-8")
    made = llm.rewrites(tmp_path / "a.csv")
    assert made.key == llm.rewrites(tmp_path / "b.csv").key
    record = made.to_dict()
    assert "texts" not in record
    assert llm.interaction_from_dict(record) == made
    (tmp_path / "a.csv").write_text("id,rewrite\nq1,other\n", encoding="utf-8")
    with pytest.raises(DataError, match="does not hold what it held"):
        llm.interaction_from_dict(record)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("misspell", lambda: llm.misspell()),
        ("misspell(0.2, most=3)", lambda: llm.misspell(0.2, most=3)),
        (" typos ( rate = 0.2 , keep_words = ['Lima', 'a b'] ) ", lambda: llm.typos(0.2, keep_words=["Lima", "a b"])),
        ("case(upper)", lambda: llm.case("upper")),
        ("case(['upper', 'lower'])", lambda: llm.case(["upper", "lower"])),
        ("loud = case('upper') | suffix('!')", lambda: (llm.case("upper") | llm.suffix("!")).named("loud")),
        ("one_of(case(upper), unchanged, typos(0.5) | leet, weights=[1, 1, 2])",
         lambda: llm.one_of(llm.case("upper"), llm.unchanged(), llm.typos(0.5) | llm.leet(), weights=[1, 1, 2])),
        ("template('Say: {prompt} = x')", lambda: llm.template("Say: {prompt} = x")),
        ("few_shot([('1?', 'one'), ('2?', 'two')], k=1)", lambda: llm.few_shot([("1?", "one"), ("2?", "two")], 1)),
        ("rewrites({'q1': ['x', 'y']})", lambda: llm.rewrites({"q1": ["x", "y"]})),
        ("translate(French, model='openai/m')", lambda: llm.translate("French", "openai/m")),
        ("translate(French, model=openai/gpt-4o:beta)", lambda: llm.translate("French", "openai/gpt-4o:beta")),
        ("suffix('a/b-c (d')", lambda: llm.suffix("a/b-c (d")),
        ("misspell(1e-3, most=3)", lambda: llm.misspell(0.001, most=3)),
    ],
)  # fmt: skip
def test_texts_of_the_command_line(text: str, same: Callable[[], llm.Interaction]) -> None:
    assert llm.parse_interaction(text) == same() == llm.as_interaction(text)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("refusal", lambda: llm.refusal()),
        ("not refusal", lambda: ~llm.refusal()),
        ("~refusal(within=50)", lambda: ~llm.refusal(within=50)),
        ("negate(refusal)", lambda: ~llm.refusal()),
        ("complies = not refusal", lambda: (~llm.refusal()).named("complies")),
        ("match", lambda: llm.match()),
        (r"pattern('\\byes\\b')", lambda: llm.pattern(r"\byes\b")),
        ("choice(yes, no)", lambda: llm.choice("yes", "no")),
        ("model_judge(openai/gpt-4o)", lambda: llm.model_judge("openai/gpt-4o")),
        ("contains(Paris)", lambda: llm.contains("Paris")),
        ("model('openai/gpt', yes='Y', no='N')", lambda: llm.model_judge("openai/gpt", yes="Y", no="N")),
    ],
)
def test_texts_for_judges(text: str, same: Callable[[], llm.Judge]) -> None:
    assert llm.parse_judge(text) == same() == llm.as_judge(text)


def test_a_file_by_its_bare_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in-french").mkdir()
    Path("in-french/a.csv").write_text("id,rewrite\nq1,x\n", encoding="utf-8")
    assert llm.parse_interaction("rewrites(in-french/a.csv, missing=skip)") == llm.rewrites("in-french/a.csv", missing="skip")


def test_a_template_file_by_its_bare_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("judge.txt").write_text("Q: {question}\nA: {answer}\n0 or 1?\n", encoding="utf-8")
    assert llm.parse_judge("model(judge, template=judge.txt)") == llm.model_judge(
        "judge", template="Q: {question}\nA: {answer}\n0 or 1?"
    )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("mispell(0.1)", "did you mean 'misspell'"),
        ("misspell(rte=0.1)", "misspell.rte: no such argument (got 0.1); did you mean 'rate'"),
        ("misspell(0.1, 3)", "cannot be called like this"),
        ("misspell(rate=0.1, rate=0.2)", "an argument is repeated"),
        ("misspell(2)", "misspell.rate"),
        ("misspell(rate=1+1)", "is no value"),
        ("misspell(*[1])", "stars"),
        ("misspell(**{'rate': 1})", "stars"),
        ("case(upper) + case(lower)", "is no interaction"),
        ("case(upper) | 5", "is no interaction"),
        ("", "wanted"),
        ("misspell(", "cannot be read"),
        ("a = b = misspell", "cannot be read"),
        ("__import__('os').system('true')", "is no interaction"),
        ("__import__('os')", "no such interaction"),
        ("misspell(rate=__import__('os'))", "is no value"),
        ("misspell(words=open('/etc/passwd').read())", "cannot be read"),
        ("[misspell for x in [1]]", "is no interaction"),
        ("lambda: 1", "is no interaction"),
        ("(" * 3000 + ")" * 3000, "cannot be read"),
        ("x" * 20_000, "wanted"),
        ("translate", "cannot be called like this"),
        ("custom(f)", "no such interaction"),
        ("\x00", "cannot be read"),
    ],
)
def test_texts_that_make_no_sense(text: str, what: str) -> None:
    with pytest.raises(SpecError) as caught:
        llm.parse_interaction(text)
    assert what in str(caught.value)


@given(st.text(max_size=60) | st.text(alphabet="mispel(rate=0.1,)|'[] ~not_{}", max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (llm.parse_interaction, llm.parse_judge):
        with contextlib.suppress(BudgeError):
            parse(text)


@pytest.mark.parametrize(
    ("record", "what"),
    [
        ({}, "has a kind"),
        ({"kind": "mispell"}, "did you mean 'misspell'"),
        ({"kind": "misspell", "rte": 1}, "did you mean 'rate'"),
        ({"kind": "misspell", "rate": 7}, "misspell.rate"),
        ({"kind": "custom", "called": "f"}, "cannot be read from a record"),
        ({"kind": "chain", "steps": [{"kind": "nope"}]}, "no such interaction"),
        ({"kind": "chain", "steps": ["misspell"]}, "must be at least 1 interactions"),
        ({"kind": "rewrites", "pth": "x"}, "did you mean 'path'"),
        ({"kind": "unchanged", "label": 5}, "label"),
    ],
)
def test_records_that_make_no_sense(record: dict[str, Any], what: str) -> None:
    with pytest.raises(BudgeError) as caught:
        llm.interaction_from_dict(record)
    assert what in str(caught.value)
    with pytest.raises(InputError, match="is no interaction"):
        llm.as_interaction(5)  # type: ignore[arg-type]
