"""Regular expressions in linear time: the same answers as Python's own, and no pattern that hangs."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budge.errors import SpecError
from budge.llm.judges.linear import Pattern

ATOMS = st.sampled_from(
    [
        "a",
        "b",
        "A",
        " ",
        ".",
        r"\b",
        r"\B",
        "^",
        "$",
        r"\A",
        r"\Z",
        r"\d",
        r"\w",
        r"\s",
        r"\S",
        r"\W",
        "[ab]",
        "[^a]",
        "[a-c1]",
        r"[\d_]",
        "\n",
        "é",
    ]
)


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda p: f"(?:{p[0]}|{p[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}", "*?", "+?", "??"])).map(
            lambda p: f"(?:{p[0]}){p[1]}"
        ),
        inner.map(lambda p: f"({p})"),
        inner.map(lambda p: f"(?i:{p})"),
    )


PATTERNS = st.recursive(ATOMS, grown, max_leaves=8)
TEXTS = st.text(alphabet="abAB1_ \né", max_size=12)


@given(PATTERNS, TEXTS, st.sampled_from([0, re.I, re.M, re.S, re.I | re.M | re.S]))
@settings(max_examples=700, deadline=None)
def test_the_same_answers_as_python(pattern: str, text: str, flags: int) -> None:
    ours, theirs = Pattern(pattern, flags), re.compile(pattern, flags)
    assert ours.search(text) == (theirs.search(text) is not None)
    assert ours.search(text, whole=True) == (theirs.fullmatch(text) is not None)


@pytest.mark.parametrize(
    "pattern", [r"(a+)+b", r"(a|a)*b", r"(a*)*b", r"(a|aa)+$", r"(.*a){12}x", r"a*a*a*a*a*a*b", r"^(\w+\s?)*$"]
)
def test_patterns_that_hang_elsewhere_end_here(pattern: str) -> None:
    """Python's engine needs longer than the age of the universe for the first of these; here work is states times letters."""
    assert Pattern(pattern).search("a" * 2000 + "!") is False
    assert Pattern(pattern).search("a" * 2000 + " bx") is (re.search(pattern, "aaaa bx") is not None)


@pytest.mark.parametrize(
    "pattern",
    [r"(a)\1", r"a(?=b)", r"a(?!b)", r"(?<=a)b", r"(?<!a)b", r"(?>a+)b", r"a++b", r"(a)?(?(1)b|c)", "(", "[", "a{2,1}", "*"],
)
def test_what_cannot_be_bounded_is_refused(pattern: str) -> None:
    with pytest.raises(SpecError):
        Pattern(pattern)


def test_inline_flags() -> None:
    assert Pattern("(?i)yes").search("YES")
    assert not Pattern("yes").search("YES")
    assert Pattern("(?m)^b").search("a\nb")
    assert Pattern("(?s)a.b").search("a\nb")
