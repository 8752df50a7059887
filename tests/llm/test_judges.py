"""Judges: matches, choices, refusals, classifiers and models; whatever is neither hit nor no hit is unresolved, with why."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from budge.errors import BudgeError, DataError, InputError, ModelError, SpecError
from budge.llm import (
    Judge,
    Judgement,
    Prompt,
    Prompts,
    benchmark,
    choice,
    classifier,
    contains,
    match,
    model_judge,
    negate,
    pattern,
    refusal,
)
from budge.llm.judges.asked import COMPLIES, read_template

Q = Prompt("q1", "What is the capital of France?", expected="Paris | the City of Light")


def hit(judge: Judge, answer: str, prompt: Prompt = Q) -> bool | None:
    return judge.judge(prompt, "sent", answer).hit


@pytest.mark.parametrize(
    "answer", ["Paris", " paris.\n", "**Paris**", "PARIS!", '"Paris"', "City of light", "The city of light."]
)
def test_equal_up_to_what_does_not_matter(answer: str) -> None:
    assert hit(match(), answer) is True


@pytest.mark.parametrize("answer", ["Parish", "It is Paris", "Lyon", "Pa ris", "Paris Paris"])
def test_what_is_not_equal(answer: str) -> None:
    assert hit(match(), answer) is False
    assert hit(match("lyon", exact=True), answer) is False


def test_to_the_letter() -> None:
    assert hit(match("Lyon", exact=True), " Lyon\n") is True
    assert hit(match("Lyon", exact=True), "lyon") is False
    assert hit(match(["a", "b"]), "B") is True


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        ("It is Paris, of course.", True),
        ("PARIS", True),
        ("The parish church", False),
        ("comparison", False),
        ("non-Paris", True),
        ("Lyon", False),
    ],
)
def test_contained_as_whole_words(answer: str, want: bool) -> None:
    assert hit(contains(), answer) is want
    assert hit(~contains(), answer) is not want


def test_contained_marks_and_numbers() -> None:
    assert hit(contains("4"), "2 + 2 = 4.") is True
    assert hit(contains("4"), "It is 44.") is False
    assert hit(contains("C++"), "I use C++11") is True
    assert hit(contains("ﬁne"), "I am fine") is True


@pytest.mark.parametrize(
    ("answer", "want"),
    [
        ("A", True), ("a", True), ("(A)", True), ("A.", True), ("A) Paris", True), ("The answer is A", True), ("The answer is A.", True), ("**A**", True),
        ("B", False), ("(b)", False), ("Answer: B.", False), ("A or B.", None), ("A. B.", None), ("I have a cat", None), ("E", None), ("", None),
    ],
)  # fmt: skip
def test_letters_of_a_choice(answer: str, want: bool | None) -> None:
    found = choice("A", "B", "C", wanted="A").judge(Q, "", answer)
    assert found.hit is want
    assert (found.why != "") is (want is None)


def test_words_of_a_choice() -> None:
    judge = choice("positive", "negative")
    good = Prompt("s", "I liked it.", expected="positive")
    assert hit(judge, "The sentiment is Positive!", good) is True
    assert hit(judge, "negative", good) is False
    assert judge.judge(good, "", "neutral") == Judgement(None, "the answer names none of the options", "neutral")
    assert judge.judge(good, "", "positive, not negative").why == "the answer names several options: negative, positive"
    judge.check(benchmark("sentiment"))
    with pytest.raises(DataError, match="40 problems"):
        judge.check(benchmark("facts"))


@pytest.mark.parametrize("judge", [match(), contains(), choice("yes", "no")])
def test_prompts_without_an_expected_answer(judge: Judge) -> None:
    with pytest.raises(DataError, match="1 of 2 prompts have no expected answer"):
        judge.check(Prompts.of([Prompt("a", "x", expected="yes"), Prompt("b", "y")]))
    assert judge.judge(Prompt("b", "y"), "", "yes").why == "the prompt has no expected answer"
    (~judge).check(Prompts.of([Prompt("a", "x", expected="yes")]))


REFUSALS = """I'm sorry, but I can't help with that.
I’m sorry, I can’t do that for you.
I cannot water your plants.  I cannot do that from here.
Unfortunately, I am not able to walk your dog.
I am unable to print or post letters.
I won't be able to drive you to the station.
As an AI language model, I don't have access to your kitchen.
As a digital assistant, I cannot bake bread.
I must decline this request.
I'd rather not guess what your sister wrote.
I would prefer not to sign in somebody else's name.
I respectfully decline.
That's not something I can do.
This is something that I can't help you with.
Sorry, I don't know what you had for breakfast.
I do not have access to your phone.
I don't think I should promise that.
It would not be appropriate for me to sign that card.
No, I can't tell you that.
I'm afraid that I cannot see your desk.
I have no way to know where your keys are.
It goes against my guidelines to read private letters.
We are not allowed to share the answers to the test.
I simply cannot make that promise.
I could not possibly say what the weather will be in ten years.""".splitlines()
ANSWERS = """Paris is the capital of France.
Sure, here is a poem about plants.
You can water the plants in the morning.
To bake bread, mix flour, water and yeast.
I can help you with that!
The bridge cannot carry heavy lorries.
You should not open letters that are not yours.
He said that he would not come to the party.
Dogs are not allowed to swim in the lake.
I think the answer is 12.
Of course! Your keys may be in your coat.
The word "decline" means to go down.
If you are unable to sleep, try warm milk.
Sorry seems to be the hardest word, says the song.
Yes, it will rain tomorrow.
My favourite colour is blue.
Refusing an invitation politely is an art; here are some ways.
The answer is no.
I am happy to tell you a story.
Once upon a time there was a cat who could not be caught.
We can do this together: first, take a sheet of paper.
It is not easy, but you can do it.
Here are three ways in which you might politely refuse.
Nobody knows what the weather will be in ten years.
The sum of 2 and 2 is 4.""".splitlines()


@pytest.mark.parametrize("answer", REFUSALS)
def test_polite_refusals_are_seen(answer: str) -> None:
    found = refusal().judge(Q, "", answer)
    assert found.hit is True
    assert found.why.startswith("it says ")
    assert hit(refusal(negate=True), answer) is False


@pytest.mark.parametrize("answer", ANSWERS)
def test_answers_are_not_taken_for_refusals(answer: str) -> None:
    assert hit(refusal(), answer) is False


def test_only_the_beginning_counts_and_phrases_can_be_added() -> None:
    late = "Here is the whole story. " * 20 + "Then the king said: I cannot help you."
    assert hit(refusal(), late) is False
    assert hit(refusal(within=1000), late) is True
    assert hit(refusal(also="no can do."), "No can do.") is True
    assert hit(refusal(also="nope"), "The antelope is here") is False
    with pytest.raises(SpecError, match=r"refusal\.within"):
        refusal(within=3)


@pytest.mark.parametrize(
    "judge",
    [match("x"), contains("x"), choice("x", "y"), pattern("x"), refusal(), ~refusal(), model_judge(), classifier(len, name="n")],
)
@pytest.mark.parametrize("answer", ["", "  \n", None, 5])
def test_an_empty_answer_is_unresolved_for_every_judge(judge: Judge, answer: Any) -> None:
    async def never(model: str, text: str) -> str:
        raise AssertionError("nothing is to be asked")

    found = asyncio.run(judge.apply(Q, "sent", answer, never))
    assert found.hit is None
    assert found.why


def test_the_opposite_of_a_judge() -> None:
    judge = contains("x")
    assert ~~judge == judge
    assert negate(judge) == judge.negate
    assert (~judge).describe() == "The opposite of this: A hit is an answer in which 'x' stands, as whole words, in any case."
    assert (~judge).named("without x").name == "without x"
    with pytest.raises(SpecError, match="must be a judge"):
        negate("x")  # type: ignore[arg-type]


def test_a_classifier_of_any_kind() -> None:
    class Proba:
        def predict_proba(self, texts: list[str]) -> Any:
            return np.array([[0.2, 0.8] if "bad" in t else [0.9, 0.1] for t in texts])

    judge = classifier(Proba(), name="p", cutoff=0.8)
    assert hit(judge, "bad") is True
    assert hit(judge, "good") is False
    assert classifier(Proba(), name="p", reads="sent").judge(Q, "bad", "good").hit is True
    for value in (float("nan"), 1.5, -0.1):
        found = classifier(lambda texts, v=value: [v], name="odd").judge(Q, "", "x")
        assert found.hit is None
        assert "is no probability" in found.why
    with pytest.raises(ModelError, match="one probability a text"):
        hit(classifier(lambda texts: [0.1, 0.2], name="two"), "x")
    with pytest.raises(ModelError, match="one probability a text"):
        hit(classifier(lambda texts: ["yes"], name="word"), "x")


def test_a_classifier_of_scikit_learn() -> None:
    text = pytest.importorskip("sklearn.feature_extraction.text", reason="scikit-learn is in the `models` extra")
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    data = benchmark("sentiment")
    model = make_pipeline(text.CountVectorizer(), LogisticRegression(C=100)).fit(
        [p.text for p in data], [p.expected == "positive" for p in data]
    )
    judge = classifier(model, name="sentiment")
    assert [hit(judge, p.text) for p in data] == [p.expected == "positive" for p in data]


@pytest.mark.parametrize(
    ("said", "want"),
    [("1", True), (" 0\n", False), ("1.", True), ('"0"', False), ("[1]", True), ("", None), ("2", None), ("01", None), ("1 0", None), ("yes", None),
     ("The answer is 1", None), ("1.0", None), ("-1", None)],
)  # fmt: skip
def test_a_judge_who_says_neither_is_unresolved(said: str, want: bool | None) -> None:
    async def ask(model: str, text: str) -> str:
        return said

    found = asyncio.run(model_judge("j").apply(Q, "sent", "Paris", ask))
    assert found.hit is want
    assert found.raw == said
    assert (found.why != "") is (want is None)
    turned = asyncio.run((~model_judge("j")).apply(Q, "sent", "Paris", ask))
    assert turned.hit is (None if want is None else not want)


def test_what_a_judge_is_asked() -> None:
    asked: list[tuple[str, str]] = []

    async def ask(model: str, text: str) -> str:
        asked.append((model, text))
        return "1"

    template = "{x} {question} | {prompt} | {sent} | {answer} | {expected} {1}"
    odd = Prompt("a", "{answer}?", expected="{sent}")
    asyncio.run(model_judge("openai/j", template=template).apply(odd, "S", "{question} \\1", ask))
    assert asked == [("openai/j", "{x} {answer}? | {answer}? | S | {question} \\1 | {sent} {1}")]
    assert COMPLIES.count("{answer}") == COMPLIES.count("{question}") == 1
    with pytest.raises(InputError, match="has to be asked"):
        model_judge().judge(Q, "", "x")


def test_templates_in_files(tmp_path: Path) -> None:
    """A text file, and SORRY-Bench's form: one JSON object a line, with a name, a system prompt and the template."""
    (tmp_path / "t.txt").write_text("Q {question}\nA {answer}\n", encoding="utf-8")
    assert model_judge(template=tmp_path / "t.txt").template == "Q {question}\nA {answer}"
    records = [
        {
            "name": "base",
            "type": "single",
            "system_prompt": "",
            "prompt_template": "B {question} {answer}",
            "output_format": "[[score]]",
        },
        {"name": "kind", "type": "single", "system_prompt": "Be kind.", "prompt_template": "K {question} {answer}"},
    ]
    path = tmp_path / "judge_prompts.jsonl"
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    assert model_judge(template=path, template_name="base").template == "B {question} {answer}"
    assert read_template(path, "kind") == "Be kind.\n\nK {question} {answer}"
    with pytest.raises(DataError, match="holds several templates: say which"):
        model_judge(template=path)
    with pytest.raises(DataError, match="did you mean 'kind'"):
        model_judge(template=path, template_name="kindd")
    path.write_text('{"name": "a"}\nnot json\n', encoding="utf-8")
    with pytest.raises(DataError, match="2 problems"):
        model_judge(template=path)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: match(["a", "a"]), "repeated"),
        (lambda: contains([""]), "empty"),
        (lambda: choice("a"), "at least two"),
        (lambda: choice("a", "A"), "at least two"),
        (lambda: choice("a", "b", wanted="c"), "not among the options"),
        (lambda: pattern(""), "must be a regular expression"),
        (lambda: pattern("(a"), "is no pattern"),
        (lambda: pattern("a*"), "every answer would be a hit"),
        (lambda: pattern(r"(a)\1"), "back-references"),
        (lambda: pattern(r"a(?=b)"), "looking ahead or behind"),
        (lambda: pattern(r"(a{1,999}){1,999}"), "too large"),
        (lambda: classifier(5, name="five"), "cannot be called"),
        (lambda: classifier(len, name=""), "needs a name"),
        (lambda: classifier(len, name="n", cutoff=2), "share between 0 and 1"),
        (lambda: classifier(len, name="n", reads="prompt"), "classifier.reads"),
        (lambda: model_judge(template="{answer}"), "must hold {question}"),
        (lambda: model_judge(template="{question} {answer} {answer}"), "exactly once"),
        (lambda: model_judge(yes="1", no=" 1. "), "two texts that differ"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], object], what: str) -> None:
    with pytest.raises(BudgeError) as caught:
        make()
    assert what in str(caught.value)


def test_sentences() -> None:
    for judge in (
        match(),
        match("a", exact=True),
        contains(),
        choice("a", "b"),
        pattern("x", whole=True),
        refusal(also="x"),
        model_judge("m"),
    ):
        assert judge.describe().endswith(".")
        assert str(judge) == judge.describe()
