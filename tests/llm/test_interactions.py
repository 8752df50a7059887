"""The law of a draw: exact probabilities against a brute-force reading of the definition, and draws against both."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from math import comb, prod
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from budge.errors import (
    BudgeError,
    DataError,
    DrawError,
    EmptyError,
    InputError,
    MissingDependencyError,
    SpecError,
    TooLargeError,
)
from budge.llm import (
    Interaction,
    Prompt,
    Prompts,
    ask_model,
    benchmark,
    case,
    custom,
    few_shot,
    homoglyphs,
    leet,
    misspell,
    mixed_case,
    one_of,
    paraphrase,
    prefix,
    punctuation,
    rewrites,
    roleplay,
    suffix,
    template,
    translate,
    typos,
    unchanged,
    whitespace,
)
from budge.llm.interactions.edits import Edits, number_law
from budge.llm.interactions.keyboard import LAYOUTS, neighbours
from budge.llm.interactions.word_lists import word_list

P = Prompt("q1", "ask two cats")

#: Small cases with few rewrites, so that every one is seen many times.
SMALL: dict[str, tuple[Interaction, Prompt]] = {
    "typos": (typos(0.3, most=2, ways=["swap", "drop"]), Prompt("a", "cat dog 12")),
    "misspell from the list": (misspell(0.5, ways=["list"]), Prompt("a", "Separate the receipt")),
    "exactly two": (typos(0.3, least=2, most=2, ways=["drop"]), Prompt("a", "cat dog cow")),
    "at least one": (mixed_case(0.2, least=1), Prompt("a", "abc")),
    "mixed case": (mixed_case(0.25), Prompt("a", "aB-c")),
    "homoglyphs": (homoglyphs(0.4, most=2), Prompt("a", "oak")),
    "leet": (leet(0.5), Prompt("a", "Toil")),
    "whitespace": (whitespace(0.5, most=1), Prompt("a", "one two three")),
    "punctuation": (punctuation(0.5), Prompt("a", "Well, go on.")),
    "case": (case(["upper", "lower", "title"]), Prompt("a", "some Text")),
    "roles": (roleplay(), P),
    "suffix": (suffix(["Now.", "Please."]), P),
    "few shots": (few_shot([("1?", "one"), ("2?", "two"), ("3?", "three")], 2), Prompt("a", "4?")),
    "rewrites": (rewrites({"q1": ["x", "y", "z"]}), P),
    "chain": (case(["upper", "lower"]) | suffix(["a", "b"]) | mixed_case(0.5, most=1), Prompt("a", "it")),
    "one of": (one_of(unchanged(), case("upper"), prefix(["x", "y"]), weights=[1, 2, 3]), P),
}


@pytest.mark.parametrize("name", SMALL)
def test_draws_follow_the_exact_law(name: str) -> None:
    """Chi-square at level 1e-4 a case, with a fixed seed."""
    interaction, prompt = SMALL[name]
    law = interaction.law(prompt)
    assert sum(law.values()) == pytest.approx(1, abs=1e-12)
    assert interaction.reachable(prompt) == len(law) == len(interaction.enumerate(prompt))
    n = 10_000
    seen = Counter(interaction.draw(prompt, n, np.random.default_rng(11)))
    assert set(seen) <= set(law)
    likely = [text for text, p in law.items() if n * p >= 5]
    observed = [seen[text] for text in likely] + [n - sum(seen[text] for text in likely)]
    expected = [n * law[text] for text in likely] + [n * (1 - sum(law[text] for text in likely))]
    if expected[-1] < 5:
        observed, expected = observed[:-1], [e * sum(observed[:-1]) / sum(expected[:-1]) for e in expected[:-1]]
    if len(expected) > 1:
        assert stats.chisquare(observed, expected).pvalue > 1e-4


def independent(
    sites: list[tuple[int, int, Mapping[str, float]]], text: str, rate: float, least: int, most: int
) -> dict[str, float]:
    """The definition, read word by word: independent edits at the rate, given that their number is within the limits."""
    low, high = min(least, len(sites)), min(most, len(sites))
    found: dict[str, float] = {}
    for choice in itertools.product(*[[None, *options.items()] for _, _, options in sites]):
        m = sum(c is not None for c in choice)
        if low <= m <= high:
            p = prod(1 - rate if c is None else rate * c[1] for c in choice)
            new, shift = text, 0
            for (start, end, _), c in zip(sites, choice):
                if c is not None:
                    new = new[: start + shift] + c[0] + new[end + shift :]
                    shift += len(c[0]) - (end - start)
            found[new] = found.get(new, 0.0) + p
    total = sum(found.values())
    return {text: p / total for text, p in found.items()}


def slips(word: str, ways: list[str]) -> dict[str, float]:
    """One slip in a word, from the definition: a way, then one of its distinct results."""
    found = {
        "swap": {word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1)} - {word},
        "drop": {word[:i] + word[i + 1 :] for i in range(len(word))},
        "double": {word[:i] + word[i] + word[i:] for i in range(len(word))},
    }
    possible = [found[way] for way in ways if found[way]]
    law: dict[str, float] = {}
    for texts in possible:
        for t in texts:
            law[t] = law.get(t, 0) + 1 / len(possible) / len(texts)
    return law


@pytest.mark.parametrize(
    ("rate", "least", "most"), [(0.3, 0, 3), (0.3, 1, 2), (0.7, 2, 2), (0.05, 1, 1), (0.5, 0, 1), (0.9, 3, 3), (0.2, 5, 9)]
)
def test_the_law_of_slips_is_the_definition(rate: float, least: int, most: int) -> None:
    ways = ["swap", "drop", "double"]
    text = "keep 12 deer, ooo!"
    sites = [(0, 4, slips("keep", ways)), (8, 12, slips("deer", ways)), (14, 17, slips("ooo", ways))]
    want = independent(sites, text, rate, least, most)
    got = typos(rate, least=least, most=most, ways=ways).law(Prompt("a", text))
    assert got.keys() == want.keys()
    assert all(got[t] == pytest.approx(want[t], rel=1e-9) for t in want)


def test_the_number_of_edits_is_a_binomial_within_its_limits() -> None:
    for sites, rate, least, most in itertools.product([1, 4, 9], [0.01, 0.3, 0.999], [0, 1, 3], [None, 3, 20]):
        law = dict(number_law(sites, rate, least, most))
        low, high = min(least, sites), sites if most is None else min(most, sites)
        weights = {m: comb(sites, m) * rate**m * (1 - rate) ** (sites - m) for m in range(low, high + 1)}
        assert law.keys() == weights.keys()
        assert all(law[m] == pytest.approx(w / sum(weights.values()), rel=1e-9) for m, w in weights.items())
    assert number_law(5, 0.0) == [(0, 1.0)]
    assert number_law(5, 1.0, most=3) == [(3, 1.0)]
    assert sum(p for _, p in number_law(5000, 0.1, 0, 40)) == pytest.approx(1)  # far in the tail: no underflow


def test_a_large_count_needs_no_list() -> None:
    text = " ".join(["alpha", "bravo"] * 20)
    typo = typos(0.1, most=4)
    options = [len(site.options) for site in typo.places(text)]
    want = sum(sum(prod(c) for c in itertools.combinations(options, m)) for m in range(1, 5))
    assert typo.reachable(Prompt("a", text)) == want > 10_000
    with pytest.raises(TooLargeError, match="more than 10,000"):
        typo.enumerate(Prompt("a", text))
    assert paraphrase().reachable(P) is None
    with pytest.raises(TooLargeError, match="cannot be listed"):
        paraphrase().law(P)


def test_keyboard_neighbours_touch() -> None:
    near = neighbours("qwerty")
    assert set("".join(near)) == set("abcdefghijklmnopqrstuvwxyz")
    assert all(a in near[b] for a, others in near.items() for b in others), "touching is mutual"
    assert near["q"] == ("a", "w")
    assert near["s"] == ("a", "d", "e", "w", "x", "z")
    assert near["p"] == ("l", "o")
    assert {layout: len(neighbours(layout)) for layout in LAYOUTS} == {"qwerty": 26, "azerty": 26, "qwertz": 26}
    assert set(typos(1, ways=["neighbour"]).law(Prompt("a", "Pal"))) == {
        "Oal", "Lal", *(f"P{c}l" for c in near["a"]), *(f"Pa{c}" for c in near["l"]),
    }  # fmt: skip


def test_misspellings_keep_their_capitals_and_come_from_the_list() -> None:
    made = misspell(1, ways=["list"])
    assert set(made.law(Prompt("a", "Definitely"))) == {"Definately", "Definitly", "Defiantly"}
    assert set(made.law(Prompt("a", "FRIEND, friend"))) == {f"{a}, {b}" for a in ("FREIND", "FREND") for b in ("freind", "frend")}
    assert made.enumerate(Prompt("a", "xylophone")) == ("xylophone",), "a word that the list lacks has no misspelling"
    assert made.enumerate(Prompt("a", "I don’t")) == ("I dont",)
    common = word_list("common")
    assert len(common) > 500
    assert all(wrong.lower() != word for word, many in common.items() for wrong in many)


def test_the_long_list_and_lists_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("# own\ncolour color,colr\nabotu->about\n", encoding="utf-8")
    own = misspell(1, ways=["list"], words=str(path))
    assert set(own.law(Prompt("a", "about colour"))) == {"abotu color", "abotu colr"}
    same = tmp_path / "same.txt"
    same.write_text("about abotu\ncolour color colr\n", encoding="utf-8")
    assert misspell(1, ways=["list"], words=str(same)).key == own.key != misspell(1, ways=["list"]).key
    path.write_text("colour\n12 13\n", encoding="utf-8")
    with pytest.raises(DataError, match="2 problems"):
        misspell(words=str(path))
    pytest.importorskip("nlpaug", reason="nlpaug is in the `text` extra")
    long = word_list("nlpaug")
    assert len(long) > 9_000  # of 13,551 lines; those that differ in capitals are one word here
    assert "profesion" in long["profession"]


def test_the_long_list_needs_no_import_of_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    import budge.llm.interactions.word_lists as module

    monkeypatch.setattr(module, "find_spec", lambda name: None)
    module._read.cache_clear()
    with pytest.raises(MissingDependencyError, match=r"budge\[text\]"):
        misspell(words="nlpaug")
    module._read.cache_clear()


def test_templates_take_braces_as_they_are() -> None:
    odd = Prompt("a", "What is {x} in {prompt} and {0}, \\1?")
    assert template("{a} <{prompt}> {b}").enumerate(odd) == ("{a} <What is {x} in {prompt} and {0}, \\1?> {b}",)
    shots = few_shot([("{answer}?", "{question}")], layout="{question} = {answer}", ask="{question}", between=" / ")
    assert shots.enumerate(odd) == (f"{{answer}}? = {{question}} / {odd.text}",)


def test_few_shot_leaves_out_the_question_itself() -> None:
    facts = benchmark("facts").subset(category="numbers")
    shots = few_shot(facts, 3)
    text = shots.rewrite(facts[0], np.random.default_rng(0))
    assert text.count(facts[0].text) == 1
    assert shots.reachable(facts[0]) == 9 * 8 * 7
    assert "|" not in text


def test_rewrites_are_drawn_uniformly_and_missing_ones_are_told(tmp_path: Path) -> None:
    path = tmp_path / "fr.csv"
    path.write_text("id,rewrite\nq1,un\nq1,deux\nq2,trois\n", encoding="utf-8")
    made = rewrites(path)
    assert made.name == "fr"
    assert made.law(P) == {"un": 0.5, "deux": 0.5}
    prompts = Prompts.of([P, Prompt("q2", "b"), Prompt("q3", "c")])
    with pytest.raises(DataError, match=r"1 of 3 prompts have no rewrite \(got 'q3'\)"):
        made.check(prompts)
    with pytest.raises(EmptyError, match="prompt q3"):
        made.rewrite(prompts[2], np.random.default_rng(0))
    assert (rewrites(path, missing="skip") | case("upper")).check(prompts).ids == ("q1", "q2")
    with pytest.raises(DataError, match="no prompt has a rewrite"):
        rewrites(path, missing="skip").check(Prompts.of(["z"]))
    path.write_text("id,rewrit\nq1,un\n", encoding="utf-8")
    with pytest.raises(DataError, match="did you mean 'rewrit'"):
        rewrites(path)
    path.write_text("id,rewrite\nq1,\n,x\n", encoding="utf-8")
    with pytest.raises(DataError, match="2 problems"):
        rewrites(path)


def answering(*texts: str) -> tuple[Callable[[str, str], object], list[tuple[str, str]]]:
    asked: list[tuple[str, str]] = []

    async def ask(model: str, text: str) -> str:
        asked.append((model, text))
        return texts[min(len(asked), len(texts)) - 1]

    return ask, asked


def test_a_model_that_loses_a_number_is_asked_again() -> None:
    prompt = Prompt("q", "Does `f(x)` return 12 {or} 13?")
    ask, asked = answering("Is it 12?", "  ", " Is it 12 or 13 that `f(x)` returns? ")
    rng = np.random.default_rng(0)
    got = asyncio.run(paraphrase("openai/some").apply(prompt, rng, ask))  # type: ignore[arg-type]
    assert got == "Is it 12 or 13 that `f(x)` returns?"
    assert len(asked) == 3
    assert asked[0][0] == "openai/some"
    assert prompt.text in asked[0][1]
    ask, asked = answering("never mind")
    with pytest.raises(DrawError, match=r"no rewrite in 2 tries will do: it lost '`f\(x\)`', '12', '13'"):
        asyncio.run(paraphrase(tries=2).apply(prompt, rng, ask))  # type: ignore[arg-type]
    assert len(asked) == 2
    with pytest.raises(InputError, match="has to be asked"):
        paraphrase().rewrite(prompt, rng)


def test_a_model_may_be_held_to_few_words_and_to_some() -> None:
    prompt, rng = Prompt("q", "Is Lima large or small?"), np.random.default_rng(0)
    ask, _ = answering("Is Lima a big or a tiny town, dear reader?", "Is Lima big or small?")
    made = ask_model("Change a word: {prompt}", most=1, keep_words=["lima"], tries=2)
    assert asyncio.run(made.apply(prompt, rng, ask)) == "Is Lima big or small?"  # type: ignore[arg-type]
    ask, _ = answering("Is Rome large or small?")
    with pytest.raises(DrawError, match="lost 'lima'"):
        asyncio.run(made.apply(prompt, rng, ask))  # type: ignore[arg-type]
    french = translate("French")
    assert french.name == "french"
    ask, asked = answering("Lima est-elle grande ou petite ?")
    chained = suffix("Thanks.") | french
    assert asyncio.run(chained.apply(prompt, rng, ask)).startswith("Lima est")  # type: ignore[arg-type]
    assert "into French" in asked[0][1]
    assert "Thanks." in asked[0][1]


def test_custom_functions_are_checked() -> None:
    rng = np.random.default_rng(0)
    half = custom(lambda t, r: t if r.random() < 0.5 else "", name="half")
    assert {half.rewrite(P, rng) for _ in range(50)} == {P.text}, "an empty rewrite is drawn again"
    with pytest.raises(DrawError, match="no rewrite in 20 tries will do: it is empty"):
        custom(lambda t, r: "", name="none").rewrite(P, rng)
    with pytest.raises(InputError, match="must return a text"):
        custom(lambda t, r: 5, name="five").rewrite(P, rng)  # type: ignore[arg-type, return-value]
    with pytest.raises(DrawError, match="it lost '12'"):
        custom(lambda t, r: "x", name="x", keep=["numbers"]).rewrite(Prompt("a", "12"), rng)
    with pytest.raises(SpecError, match="needs a name"):
        custom(lambda t, r: t, name="")


def test_chains_and_mixtures() -> None:
    chain = case("upper") | suffix("now") | unchanged()
    assert chain.name == "upper case + suffix + unchanged"
    assert len((chain | chain).steps) == 6
    named = chain.named("loud")
    assert (named | suffix("x")).name == "loud + suffix"
    assert named.key == chain.key
    assert chain.enumerate(P) == ("ASK TWO CATS now",)
    assert (paraphrase() | case("upper")).reachable(P) is None
    assert (case("upper") | paraphrase()).reachable(P) is None
    assert one_of(case("upper"), paraphrase()).reachable(P) is None
    with pytest.raises(SpecError, match="at least 2"):
        one_of(case("upper"))
    with pytest.raises(SpecError, match="one positive number"):
        one_of(case("upper"), unchanged(), weights=[1, 0])
    with pytest.raises(TypeError):
        case("upper") | "suffix"  # type: ignore[operator]


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: misspell(1.2), "misspell.rate: must be a share"),
        (lambda: misspell(True), "misspell.rate"),
        (lambda: misspell(float("nan")), "misspell.rate"),
        (lambda: misspell("5%"), "misspell.rate"),  # type: ignore[arg-type]
        (lambda: misspell(least=-1), "misspell.least"),
        (lambda: misspell(most=1.5), "misspell.most"),  # type: ignore[arg-type]
        (lambda: misspell(least=3, most=2), "make least smaller"),
        (lambda: misspell(0, least=1), "at rate 0 nothing is edited"),
        (lambda: misspell(ways=["swop"]), "did you mean 'swap'"),
        (lambda: misspell(ways=[]), "must be a list of names"),
        (lambda: misspell(ways=["swap", "swap"]), "repeated"),
        (lambda: misspell(layout="azert"), "did you mean 'azerty'"),
        (lambda: misspell(keep=["number"]), "did you mean 'numbers'"),
        (lambda: misspell(keep_words=[""]), "must be a list of words"),
        (lambda: homoglyphs(alphabet="unicod"), "did you mean 'unicode'"),
        (lambda: case("uper"), "did you mean 'upper'"),
        (lambda: whitespace(ways=["dubble"]), "did you mean 'double'"),
        (lambda: punctuation(ways=["dropp"]), "did you mean 'drop'"),
        (lambda: template("no slot"), "exactly once, and holds it 0 times"),
        (lambda: template("{prompt} {prompt}"), "holds it 2 times"),
        (lambda: template([]), "must be a template"),
        (lambda: suffix(["a", "a"]), "repeated"),
        (lambda: suffix(""), "is empty"),
        (lambda: few_shot([("a", "b")], 2), "only 1 examples"),
        (lambda: few_shot([("a", "")]), "pairs of a question and its answer"),
        (lambda: few_shot([("a", "b")], layout="{question}"), "few_shot.layout"),
        (lambda: rewrites({}), "there is none"),
        (lambda: rewrites({"a": []}), "a rewrite is empty"),
        (lambda: ask_model("hello"), "must hold {prompt} exactly once"),
        (lambda: ask_model(tries=0), "ask_model.tries"),
        (lambda: translate(""), "name of a language"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], object], what: str) -> None:
    with pytest.raises(BudgeError) as caught:
        make()
    assert what in str(caught.value)


def test_capitals_of_words_with_apostrophes() -> None:
    text = Prompt("a", "don't print `ab` 2x, Zoë’s straße")
    assert case("title").enumerate(text) == ("Don't Print `ab` 2x, Zoë’s Straße",)
    assert case("upper").enumerate(text) == ("DON'T PRINT `ab` 2x, ZOË’S STRAßE",), "a letter that would become two stays"
    assert case("title").enumerate(Prompt("a", "ﬁnd ßo AND")) == ("ﬁnd ßo And",)
    assert case("sentence").enumerate(Prompt("a", "DO IT")) == ("Do it",)
    assert case("swap").enumerate(Prompt("a", "Do It 5x")) == ("dO iT 5x",)


def test_sentences_say_what_is_done() -> None:
    assert misspell(0.2, most=3, ways=["list", "swap"], keep=["numbers"], keep_words=["Lima"]).describe() == (
        "Each word is misspelt with probability 0.2 (at least 1 and at most 3 a text) as in the list 'common' or by two letters swapped; "
        "numbers and the word 'Lima' are left alone."
    )
    assert typos(least=2, most=2, ways=["drop"], keep=[]).describe() == "Exactly 2 words a text are misspelt by a letter dropped."
    for made, _ in SMALL.values():
        assert made.describe().rstrip().endswith("."), made.describe()
        assert str(made) == made.describe()


def test_a_text_without_places_stays_as_it_is() -> None:
    assert typos(0.5, least=2).enumerate(Prompt("a", "12 `code`")) == ("12 `code`",)
    assert isinstance(typos(), Edits)
