"""Constraints hold by construction: what is protected stays, at most k edits by an independent count, rate 0 changes nothing."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from budge.llm import Interaction, Prompt, case, homoglyphs, leet, misspell, mixed_case, punctuation, typos, whitespace
from budge.llm.interactions.edits import Edits
from budge.llm.interactions.misspelling import SLIPS
from budge.llm.interactions.spans import Kept, lost

SEEDS = st.integers(0, 2**32 - 1)
WORDS = st.sampled_from(
    ["please", "separate", "the", "Lima", "O'Neil", "don't", "naïve", "Straße", "ﬁnd", "a", "receive", "BELIEVE", "and", "so"]
)
CODE = st.sampled_from(["`x = 1`", "```\nfor i in range(3): pass\n```", "`receive`"])
NUMBERS = st.sampled_from(["12", "-3.5", "1,000", "$7", "50%", "x2", "12:30", "007", "3rd"])
URLS = st.sampled_from(["https://example.org/a?b=separate", "www.example.org", "me.too@example.org"])
MARKS = st.sampled_from([", ", ". ", " ", " ", " ", " ", "  ", "\n", " - ", "; ", "? "])


@st.composite
def texts(draw: st.DrawFn, least: int = 1) -> str:
    pieces = draw(st.lists(st.one_of(WORDS, WORDS, WORDS, CODE, NUMBERS, URLS), min_size=least, max_size=12))
    return "".join(piece + draw(MARKS) for piece in pieces).strip() + draw(st.sampled_from(["", ".", "?", "!"]))


def edits(rate: float, least: int, most: int | None, words: list[str]) -> list[Edits]:
    limits = {"least": least, "most": most, "keep_words": words}
    return [
        misspell(rate, **limits), typos(rate, **limits), mixed_case(rate, **limits), homoglyphs(rate, **limits), leet(rate, **limits),
        whitespace(rate, ways=["double", "drop", "newline", "tab"], **limits), punctuation(rate, **limits),
    ]  # type: ignore[arg-type]  # fmt: skip


def in_order(pieces: list[str], text: str) -> bool:
    """Every piece stands in the text, one after the other."""
    at = 0
    for piece in pieces:
        at = text.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return True


def osa(a: str, b: str) -> int:
    """Optimal string alignment: characters put in, left out, replaced, or swapped with their neighbour."""
    before, row = [0] * (len(b) + 1), list(range(len(b) + 1))
    for i in range(1, len(a) + 1):
        older, before, row = before, row, [i]
        for j in range(1, len(b) + 1):
            row.append(min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a[i - 1] != b[j - 1])))
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                row[j] = min(row[j], older[j - 2] + 1)
    return row[-1]


@given(texts(least=4), SEEDS, st.floats(0.3, 1), st.integers(0, 2), st.data())
@settings(max_examples=150, deadline=None)
def test_what_is_protected_survives(text: str, seed: int, rate: float, least: int, data: st.DataObject) -> None:
    """An independent reading: code, addresses, numbers and kept words of the text stand in every rewrite, in order."""
    there = [word for word in ("please", "the", "Lima", "so", "and", "don't") if re.search(rf"(?<!\w){word}(?!\w)", text)]
    words = there[: data.draw(st.integers(0, 3))]
    urls = re.findall(r"https?://\S+|www\.example\.org|me\.too@example\.org", text)
    code = re.findall(r"```.*?```|`[^`\n]+`", text, re.S)
    digits = [t for t in re.findall(r"\S*\d\S*", text) if t not in code and not any(t in c for c in code) and "example" not in t]
    bare = [re.sub(r"^[^\w$+-]+|[^\w%]+$", "", t) for t in digits]
    for interaction in [*edits(rate, least, None, words), case(["upper", "lower", "title", "swap"], keep_words=words)]:
        for new in interaction.draw(text, 4, np.random.default_rng(seed)):
            for group in (urls, code, bare):
                assert in_order(group, new), (interaction.name, text, new)
            for word in words:
                count = len(re.findall(rf"(?<!\w){re.escape(word)}(?!\w)", text))
                assert len(re.findall(rf"(?<!\w){re.escape(word)}(?!\w)", new)) >= count, (interaction.name, text, new)


@given(texts(), SEEDS, st.floats(0.05, 1), st.integers(1, 4))
@settings(max_examples=100, deadline=None)
def test_at_most_k_edits_by_an_independent_count(text: str, seed: int, rate: float, k: int) -> None:
    rng = np.random.default_rng(seed)
    prompt = Prompt("a", text)
    slip = typos(rate, most=k).rewrite(prompt, rng)
    assert osa(text, slip) <= k
    word = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
    before, after = word.findall(text), word.findall(misspell(rate, most=k, shortest=1).rewrite(prompt, rng))
    assert len(before) == len(after)
    assert sum(a != b for a, b in zip(before, after)) <= k
    for made in (mixed_case(rate, most=k), homoglyphs(rate, most=k), leet(rate, most=k)):
        new = made.rewrite(prompt, rng)
        assert len(new) == len(text)
        assert sum(a != b for a, b in zip(text, new)) <= k
    assert osa(text, whitespace(rate, most=k).rewrite(prompt, rng)) <= k
    assert osa(text, punctuation(rate, most=k).rewrite(prompt, rng)) <= k


@given(texts(), SEEDS, st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_at_least_k_edits_where_there_is_room(text: str, seed: int, k: int) -> None:
    made = typos(0.1, least=k, most=k, ways=SLIPS)
    assume(len(made.places(text)) >= k)
    new = made.rewrite(Prompt("a", text), np.random.default_rng(seed))
    word = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
    assert sum(a != b for a, b in zip(word.findall(text), word.findall(new))) == k


@given(texts(), SEEDS)
@settings(max_examples=60, deadline=None)
def test_rate_0_is_the_text_itself_and_draws_can_be_made_again(text: str, seed: int) -> None:
    prompt = Prompt("a", text)
    for still in edits(0, 0, None, []):
        assert still.rewrite(prompt, np.random.default_rng(seed)) == text
        assert still.reachable(prompt) == 1
    for made in edits(0.5, 1, 4, []):
        first = made.draw(prompt, 3, np.random.default_rng(seed))
        assert first == made.draw(text, 3, np.random.default_rng(seed))
        assert first == [made.rewrite(prompt, rng) for rng in [np.random.default_rng(seed)] for _ in range(3)]


@given(texts(), SEEDS)
@settings(max_examples=60, deadline=None)
def test_sites_are_disjoint_in_order_and_free(text: str, seed: int) -> None:
    kept = Kept(text)
    for made in edits(0.5, 0, None, []):
        sites = made.places(text)
        ends = [0, *(site.end for site in sites)]
        assert all(end <= site.start < site.end for end, site in zip(ends, sites))
        for site in sites:
            assert kept.free(site.start, site.end)
            assert sum(p for _, p in site.options) == pytest.approx(1)
            assert all(option != text[site.start : site.end] for option, _ in site.options)
            assert len({option for option, _ in site.options}) == len(site.options)


@given(texts(), SEEDS)
@settings(max_examples=40, deadline=None)
def test_every_draw_is_in_the_law(text: str, seed: int) -> None:
    """And what is counted without a list is what the list counts."""
    prompt = Prompt("a", text[:12])
    assume(prompt.text.strip())
    made: Interaction
    for made in [typos(0.3, most=1), mixed_case(0.3, most=2), whitespace(0.5, most=2), punctuation(0.5, most=2)]:
        law = made.law(prompt)
        assert made.reachable(prompt) == len(law)
        assert set(made.draw(prompt, 20, np.random.default_rng(seed))) <= set(law)


def test_a_planted_bug_is_caught() -> None:
    """The counts above see one edit too many, and a number that was touched."""
    assert osa("receive it", "recieve it") == 1
    assert osa("receive it", "recieve ti") == 2
    assert not in_order(["12", "13"], "13 and 12")
    assert lost("at 12", "at 13", ("numbers",)) == ["12"]
    assert not Kept("at 12", ("numbers",)).free(3, 4)


def test_gaps_and_marks_beside_what_is_kept_stay() -> None:
    text = Prompt("a", "go on to Lima, please: 5 6 7!")
    assert whitespace(1, ways=["drop"], keep_words=["Lima"]).enumerate(text) == ("goonto Lima,please: 5 6 7!",)
    assert punctuation(1, ways=["drop"], keep_words=["Lima"]).enumerate(text) == ("go on to Lima, please 5 6 7!",)
    assert punctuation(1, ways=["insert"], keep_words=["on"]).enumerate(text) == ("go on to, Lima, please: 5 6 7!",)


def test_what_is_kept() -> None:
    text = 'Run `a b` and ```\nx\n``` at https://a.org/x, mail b.c@d.org; add 1,000.5 to x2 (-3%) "as it is".'
    assert Kept(text, ("code",)).texts == ["`a b`", "```\nx\n```"]
    assert Kept(text, ("urls",)).texts == ["https://a.org/x,", "b.c@d.org"]
    assert Kept(text, ("numbers",)).texts == ["1,000.5", "x2", "-3%"]
    assert Kept(text, ("quotes",)).texts == ['"as it is"']
    assert Kept("New York, new yorker", (), ("new york",)).texts == ["New York"]
    assert Kept("``` open fence 12", ("code",)).texts == ["``` open fence 12"]
    assert len(Kept("a" * 200_000 + "1", ("numbers",)).texts) == 1, "long words take no long time"
