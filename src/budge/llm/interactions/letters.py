"""Capitals, and letters that look alike: homoglyphs of other alphabets, and digits that stand for letters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from budge.errors import Problem, SpecError
from budge.llm.interactions.base import Interaction
from budge.llm.interactions.checks import as_texts, name_problems
from budge.llm.interactions.edits import Edits, Site
from budge.llm.interactions.spans import USUALLY_KEPT, Kept, keep_problems, kept_sentence
from budge.llm.prompts import Prompt

__all__ = ["ALPHABETS", "MODES", "Case", "Lookalikes", "MixedCase", "case", "homoglyphs", "leet", "mixed_case"]

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def _each(change: Callable[[str], str], text: str) -> str:
    """Letter by letter; one that would become two (ß → SS) stays, so that nothing behind it moves."""
    return "".join(new if len(new := change(c)) == 1 else c for c in text)


def _first(text: str) -> str:
    return _each(str.upper, text[:1]) + _each(str.lower, text[1:])


#: Ways to write a whole text; none changes its length.
MODES: dict[str, Callable[[str], str]] = {
    "upper": lambda text: _each(str.upper, text),
    "lower": lambda text: _each(str.lower, text),
    "title": lambda text: _WORD.sub(lambda word: _first(word[0]), text),
    "sentence": _first,
    "swap": lambda text: _each(str.swapcase, text),
}
#: For each letter what looks like it: Cyrillic and Greek letters; digits and signs.
ALPHABETS: dict[str, dict[str, str]] = {
    "unicode": {
        "a": "а", "c": "сϲ", "d": "ԁ", "e": "е", "h": "һ", "i": "і", "j": "јϳ", "o": "оο", "p": "рρ", "s": "ѕ", "v": "ν", "w": "ԝ", "x": "х", "y": "у",
        "A": "АΑ", "B": "ВΒ", "C": "С", "E": "ЕΕ", "H": "НΗ", "I": "ІΙ", "J": "Ј", "K": "КΚ", "M": "МΜ", "N": "Ν", "O": "ОΟ", "P": "РΡ",
        "S": "Ѕ", "T": "ТΤ", "X": "ХΧ", "Y": "ҮΥ", "Z": "Ζ",
    },
    "leet": {"a": "4@", "b": "8", "e": "3", "g": "9", "i": "1!", "l": "1", "o": "0", "s": "5$", "t": "7", "z": "2"},
}  # fmt: skip


@dataclass(frozen=True)
class Case(Interaction):
    """The whole text in other capitals: one of the modes, each as likely as the others; protected places stay as they are."""

    kind: ClassVar[str] = "case"

    modes: tuple[str, ...] = ("upper",)
    keep: tuple[str, ...] = field(default=USUALLY_KEPT, kw_only=True)
    keep_words: tuple[str, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        for name in ("modes", "keep", "keep_words"):
            object.__setattr__(self, name, as_texts(getattr(self, name)))
        SpecError.raise_if(
            name_problems("case.modes", self.modes, tuple(MODES)) + keep_problems("case", self.keep, self.keep_words)
        )

    @property
    def name(self) -> str:
        """The label, or the mode where there is one."""
        return self.label or (f"{self.modes[0]} case" if len(self.modes) == 1 else "case")

    def rewrite(self, prompt: Prompt, rng: np.random.Generator) -> str:
        """One of the modes, uniformly."""
        return self._written(prompt.text, self.modes[int(rng.integers(len(self.modes)))])

    def outcomes(self, prompt: Prompt) -> Iterator[tuple[str, float]]:
        """One text a mode."""
        return ((self._written(prompt.text, mode), 1 / len(self.modes)) for mode in self.modes)

    def _written(self, text: str, mode: str) -> str:
        kept = Kept(text, self.keep, self.keep_words)
        return "".join(new if kept.free(i, i + 1) else old for i, (old, new) in enumerate(zip(text, MODES[mode](text))))

    def describe(self) -> str:
        """One English sentence."""
        return f"The text is written in {' or '.join(self.modes)} case{kept_sentence(self.keep, self.keep_words)}."


@dataclass(frozen=True)
class MixedCase(Edits):
    """Single letters change between capital and small."""

    kind: ClassVar[str] = "mixed_case"
    injective: ClassVar[bool] = True
    unit: ClassVar[tuple[str, str]] = ("letter", "is changed between capital and small")

    @property
    def name(self) -> str:
        """The label, or "mixed case"."""
        return self.label or "mixed case"

    def sites(self, text: str, kept: Kept) -> list[Site]:
        """Free letters that have another case."""
        return [
            Site(i, i + 1, ((other, 1.0),))
            for i, c in enumerate(text)
            if kept.free(i, i + 1) and (other := c.swapcase()) != c and len(other) == 1
        ]


@dataclass(frozen=True)
class Lookalikes(Edits):
    """Letters are replaced by what looks like them."""

    kind: ClassVar[str] = "homoglyphs"
    injective: ClassVar[bool] = True

    alphabet: str = field(default="unicode", kw_only=True)

    def _problems(self) -> list[Problem]:
        return name_problems("homoglyphs.alphabet", (self.alphabet,), tuple(ALPHABETS))

    @property
    def name(self) -> str:
        """The label, or "homoglyphs" or "leet"."""
        return self.label or ("leet" if self.alphabet == "leet" else "homoglyphs")

    @property
    def unit(self) -> tuple[str, str]:  # type: ignore[override]
        """What one edit is."""
        what = (
            "digits or signs that look like it" if self.alphabet == "leet" else "a letter of another alphabet that looks like it"
        )
        return "letter", f"is replaced by {what}"

    def sites(self, text: str, kept: Kept) -> list[Site]:
        """Free letters that have a lookalike."""
        table = ALPHABETS[self.alphabet]
        found = []
        for i, c in enumerate(text):
            like = table.get(c) or (table.get(c.lower()) if self.alphabet == "leet" else None)
            if like and kept.free(i, i + 1):
                found.append(Site.uniform(i, i + 1, like))
        return found


def case(
    mode: str | Sequence[str] = "upper", *, keep: Sequence[str] = USUALLY_KEPT, keep_words: Sequence[str] = (), label: str = ""
) -> Case:
    """The whole text in other capitals: ``upper``, ``lower``, ``title``, ``sentence`` or ``swap``; of several, one is drawn uniformly.

    Examples
    --------
    >>> from budge.llm import Prompt
    >>> case(["upper", "lower"]).law(Prompt("a", "Print `x` twice"))
    {'PRINT `x` TWICE': 0.5, 'print `x` twice': 0.5}
    """
    return Case(as_texts(mode), keep=as_texts(keep), keep_words=as_texts(keep_words), label=label)


def mixed_case(
    rate: float = 0.5, *, least: int = 1, most: int | None = None, keep: Sequence[str] = USUALLY_KEPT, keep_words: Sequence[str] = (),
    label: str = "",
) -> MixedCase:  # fmt: skip
    """Letters change between capital and small, each with probability `rate`; one edit is one letter."""
    return MixedCase(rate=rate, least=least, most=most, keep=as_texts(keep), keep_words=as_texts(keep_words), label=label)


def homoglyphs(
    rate: float = 0.1, *, least: int = 1, most: int | None = None, alphabet: str = "unicode", keep: Sequence[str] = USUALLY_KEPT,
    keep_words: Sequence[str] = (), label: str = "",
) -> Lookalikes:  # fmt: skip
    """Letters are replaced by lookalikes, each with probability `rate`; one edit is one letter, its lookalikes equally likely.

    Examples
    --------
    >>> import numpy as np
    >>> from budge.llm import Prompt
    >>> homoglyphs(1).rewrite(Prompt("a", "pace"), np.random.default_rng(0)).isascii()
    False
    """
    return Lookalikes(
        rate=rate, least=least, most=most, alphabet=alphabet, keep=as_texts(keep), keep_words=as_texts(keep_words), label=label
    )  # fmt: skip


def leet(
    rate: float = 0.3, *, least: int = 1, most: int | None = None, keep: Sequence[str] = USUALLY_KEPT, keep_words: Sequence[str] = (),
    label: str = "",
) -> Lookalikes:  # fmt: skip
    """Letters are replaced by digits and signs that look like them: h3ll0. One edit is one letter."""
    return homoglyphs(rate, least=least, most=most, alphabet="leet", keep=keep, keep_words=keep_words, label=label)
