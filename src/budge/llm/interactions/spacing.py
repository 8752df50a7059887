"""Blanks and punctuation: a gap between words is doubled, closed or broken; a mark is dropped, doubled or put in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from budge.errors import Problem
from budge.llm.interactions.checks import as_texts, name_problems
from budge.llm.interactions.edits import Edits, Site
from budge.llm.interactions.spans import USUALLY_KEPT, Kept

__all__ = ["Punctuation", "Whitespace", "punctuation", "whitespace"]

_GAPS = {"double": "  ", "drop": "", "newline": "\n", "tab": "\t"}
_MARKS = ("drop", "double", "insert")
_GAP = re.compile(r"(?<=\S) (?=\S)")
_MARK = re.compile(r"(?<![.,;:!?])[.,;:!?](?![.,;:!?])")
_AFTER_WORD = re.compile(r"(?<=[^\W\d_]) (?=[^\W\d_])")


@dataclass(frozen=True)
class Whitespace(Edits):
    """Single blanks between words become something else; gaps beside what is protected stay."""

    kind: ClassVar[str] = "whitespace"
    unit: ClassVar[tuple[str, str]] = ("gap between words", "is changed")

    ways: tuple[str, ...] = field(default=("double", "drop", "newline"), kw_only=True)

    def _problems(self) -> list[Problem]:
        object.__setattr__(self, "ways", as_texts(self.ways))
        return name_problems("whitespace.ways", self.ways, tuple(_GAPS))

    def sites(self, text: str, kept: Kept) -> list[Site]:
        """Single blanks, free and not beside anything protected (5 6 must not become 56)."""
        return [
            Site.uniform(*m.span(), [_GAPS[way] for way in self.ways])
            for m in _GAP.finditer(text)
            if kept.free(*m.span()) and not kept.borders(*m.span())
        ]

    def _how(self) -> str:
        ways = {"double": "doubled", "drop": "closed", "newline": "made a new line", "tab": "made a tab"}
        return f" ({' or '.join(ways[way] for way in self.ways)})"


@dataclass(frozen=True)
class Punctuation(Edits):
    """Marks are dropped or doubled, commas put in; marks beside what is protected stay."""

    kind: ClassVar[str] = "punctuation"
    unit: ClassVar[tuple[str, str]] = ("place for a mark", "is changed")

    ways: tuple[str, ...] = field(default=_MARKS, kw_only=True)

    def _problems(self) -> list[Problem]:
        object.__setattr__(self, "ways", as_texts(self.ways))
        return name_problems("punctuation.ways", self.ways, _MARKS)

    def sites(self, text: str, kept: Kept) -> list[Site]:
        """Single marks to drop or double, and ends of words before a blank where a comma may be put."""
        found = []
        changes = [way for way in self.ways if way != "insert"]
        if changes:
            for m in _MARK.finditer(text):
                if kept.free(*m.span()) and not kept.borders(*m.span()):
                    found.append(Site.uniform(*m.span(), ["" if way == "drop" else 2 * m[0] for way in changes]))
        if "insert" in self.ways:
            for m in _AFTER_WORD.finditer(text):
                if kept.free(*m.span()) and not kept.borders(*m.span()):
                    found.append(Site.uniform(*m.span(), [", "]))
        return sorted(found, key=lambda site: site.start)

    def _how(self) -> str:
        ways = {"drop": "a mark dropped", "double": "a mark doubled", "insert": "a comma put in"}
        return f" ({' or '.join(ways[way] for way in self.ways)})"


def whitespace(
    rate: float = 0.1, *, least: int = 1, most: int | None = None, ways: Sequence[str] = ("double", "drop", "newline"),
    keep: Sequence[str] = USUALLY_KEPT, keep_words: Sequence[str] = (), label: str = "",
) -> Whitespace:  # fmt: skip
    """Gaps between words are doubled, closed or broken, each with probability `rate`; one edit is one gap.

    Examples
    --------
    >>> from budge.llm import Prompt
    >>> whitespace(1, ways=["drop"]).enumerate(Prompt("a", "so it goes 5 6"))
    ('soitgoes 5 6',)
    """
    return Whitespace(
        rate=rate, least=least, most=most, ways=as_texts(ways), keep=as_texts(keep), keep_words=as_texts(keep_words), label=label
    )  # fmt: skip


def punctuation(
    rate: float = 0.1, *, least: int = 1, most: int | None = None, ways: Sequence[str] = _MARKS, keep: Sequence[str] = USUALLY_KEPT,
    keep_words: Sequence[str] = (), label: str = "",
) -> Punctuation:  # fmt: skip
    """Marks are dropped or doubled and commas put in, each place with probability `rate`; one edit is one place.

    Examples
    --------
    >>> from budge.llm import Prompt
    >>> punctuation(1, ways=["drop"]).enumerate(Prompt("a", "Well, is 3.5 more than 3?"))
    ('Well is 3.5 more than 3?',)
    """
    return Punctuation(
        rate=rate, least=least, most=most, ways=as_texts(ways), keep=as_texts(keep), keep_words=as_texts(keep_words), label=label
    )  # fmt: skip
