"""Misspelt words: from lists of real misspellings, and by slips of the fingers.

One edit is one word misspelt once. The ways are ``list`` (a misspelling that the list has for the word), ``neighbour`` (a key beside
the right one), ``drop`` (a letter left out), ``double`` (a letter typed twice) and ``swap`` (two letters in the wrong order). A word
takes one of the ways that it admits, each as likely as the others, and then one of the distinct misspellings of that way, each as
likely as the others. So k edits by slips are k character-level edits (a swap of neighbours counted as one).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar

from budge.errors import Problem, SpecError
from budge.llm.interactions.checks import as_texts, count_problems, name_problems
from budge.llm.interactions.edits import Edits, Site
from budge.llm.interactions.keyboard import LAYOUTS, neighbours
from budge.llm.interactions.spans import USUALLY_KEPT, Kept
from budge.llm.interactions.word_lists import list_digest, word_list

__all__ = ["SLIPS", "WAYS", "Misspell", "misspell", "typos"]

SLIPS = ("neighbour", "drop", "double", "swap")
WAYS = ("list", *SLIPS)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


@dataclass(frozen=True)
class Misspell(Edits):
    """Words misspelt as people do; see this module for the law of a draw."""

    kind: ClassVar[str] = "misspell"
    injective: ClassVar[bool] = True  # a misspelling holds letters and apostrophes only, so that words can be told apart
    unit: ClassVar[tuple[str, str]] = ("word", "is misspelt")

    ways: tuple[str, ...] = field(default=WAYS, kw_only=True)
    words: str = field(default="common", kw_only=True)
    layout: str = field(default="qwerty", kw_only=True)
    shortest: int = field(default=3, kw_only=True)

    def _problems(self) -> list[Problem]:
        object.__setattr__(self, "ways", as_texts(self.ways))
        problems = name_problems(f"{self.kind}.ways", self.ways, WAYS)
        problems += name_problems(f"{self.kind}.layout", (self.layout,), tuple(LAYOUTS))
        problems += count_problems(f"{self.kind}.shortest", self.shortest, least=1)
        if not isinstance(self.words, str):
            problems.append(Problem(f"{self.kind}.words", "must be a name or a file", self.words))
        elif not problems and "list" in self.ways:
            word_list(self.words)  # a file that cannot be read is told now
        return problems

    @property
    def name(self) -> str:
        """The label, or "typos" where only the fingers slip."""
        return self.label or ("typos" if "list" not in self.ways else self.kind)

    def _outside(self) -> tuple[str, ...]:
        return ("words",)

    def _content(self) -> dict[str, Any]:
        return super()._content() | ({"list": list_digest(self.words)} if "list" in self.ways else {})

    def sites(self, text: str, kept: Kept) -> list[Site]:
        """Words of enough letters that are wholly free, and that can be misspelt."""
        found = []
        for match in _WORD.finditer(text):
            word = match[0]
            if len(word) >= self.shortest and kept.free(*match.span()) and (options := self._options(word)):
                found.append(Site(*match.span(), options))
        return found

    def _options(self, word: str) -> tuple[tuple[str, float], ...]:
        by_way = [found for way in self.ways if (found := self._by(way, word))]
        chances: dict[str, float] = {}
        for found in by_way:
            for wrong in found:
                chances[wrong] = chances.get(wrong, 0.0) + 1 / len(by_way) / len(found)
        return tuple(chances.items())

    def _by(self, way: str, word: str) -> tuple[str, ...]:
        """Return the distinct misspellings of a word by one way."""
        if way != "list":
            return _slips(way, self.layout, word)
        return _spelt((_as_written(w, word) for w in word_list(self.words).get(word.lower().replace("’", "'"), ())), word)

    def _how(self) -> str:
        ways = {"list": f"as in the list {self.words!r}", "neighbour": "by a neighbouring key", "drop": "by a letter dropped"}
        ways |= {"double": "by a letter doubled", "swap": "by two letters swapped"}
        shown = [ways[way] for way in self.ways]
        return " " + (", ".join(shown[:-1]) + " or " + shown[-1] if len(shown) > 1 else shown[0])


@lru_cache(maxsize=8192)  # a benchmark draws the same words over and over
def _slips(way: str, layout: str, word: str) -> tuple[str, ...]:
    """Return the distinct misspellings of a word by one slip of the fingers."""
    if way == "neighbour":
        near = neighbours(layout)
        wrong = [word[:i] + (other.upper() if c.isupper() else other) + word[i + 1 :] for i, c in enumerate(word) for other in near.get(c.lower(), ())]
    elif way == "drop":
        wrong = [word[:i] + word[i + 1 :] for i, c in enumerate(word) if c.isalpha()] if len(word) > 2 else []
    elif way == "double":
        wrong = [word[:i] + c + word[i:] for i, c in enumerate(word) if c.isalpha()]
    else:
        wrong = [word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1) if word[i : i + 2].isalpha()]
    return _spelt(wrong, word)


def _spelt(wrong: Iterable[str], word: str) -> tuple[str, ...]:
    """Return those that are one word and another one, each once."""
    return tuple(w for w in dict.fromkeys(wrong) if w != word and _WORD.fullmatch(w))


def _as_written(wrong: str, word: str) -> str:
    """The misspelling with the word's capitals."""
    if len(word) > 1 and word.isupper():
        return wrong.upper()
    return wrong[:1].upper() + wrong[1:] if word[:1].isupper() else wrong


def misspell(
    rate: float = 0.1, *, least: int = 1, most: int | None = None, ways: Sequence[str] = WAYS, words: str = "common",
    layout: str = "qwerty", shortest: int = 3, keep: Sequence[str] = USUALLY_KEPT, keep_words: Sequence[str] = (), label: str = "",
) -> Misspell:  # fmt: skip
    """Words are misspelt, each with probability `rate`, given that at least `least` and at most `most` are.

    Parameters
    ----------
    rate
        The share of words that are misspelt on average (before the limits).
    least, most
        Limits of the number of misspelt words in a text. A text without a word that can be misspelt stays as it is; runs count those.
    ways
        Of ``list``, ``neighbour``, ``drop``, ``double``, ``swap``; a word takes one that it admits, each as likely.
    words
        The list of misspellings: ``common`` (a few hundred words, built in), ``nlpaug`` (13,551 words, with
        ``pip install 'budge[text]'``), or a file with a word and its misspellings on each line.
    layout
        The keyboard: ``qwerty``, ``azerty`` or ``qwertz``.
    shortest
        Words of fewer letters are left alone.
    keep, keep_words
        What is left alone: ``code``, ``urls``, ``numbers``, ``quotes``; and these words.

    Examples
    --------
    >>> import numpy as np
    >>> from budge.llm import Prompt
    >>> typo = misspell(least=1, most=1, ways=["swap"])
    >>> typo.rewrite(Prompt("a", "the 3 words"), np.random.default_rng(0))
    'the 3 owrds'
    >>> typo.reachable(Prompt("a", "the 3 words"))
    6
    """
    return Misspell(
        rate=rate, least=least, most=most, ways=as_texts(ways), words=words, layout=layout, shortest=shortest,
        keep=as_texts(keep), keep_words=as_texts(keep_words), label=label,
    )  # fmt: skip


def typos(
    rate: float = 0.1, *, least: int = 1, most: int | None = None, ways: Sequence[str] = SLIPS, layout: str = "qwerty",
    shortest: int = 3, keep: Sequence[str] = USUALLY_KEPT, keep_words: Sequence[str] = (), label: str = "",
) -> Misspell:  # fmt: skip
    """Slips of the fingers only: `misspell` without a list."""
    try:
        return misspell(
            rate,
            least=least,
            most=most,
            ways=ways,
            layout=layout,
            shortest=shortest,
            keep=keep,
            keep_words=keep_words,
            label=label,
        )
    except SpecError as error:  # by the name that the caller wrote
        raise SpecError([replace(p, where=p.where.replace("misspell", "typos", 1)) for p in error.problems]) from None
