"""Answers compared with texts: equal to what is expected, containing words, or naming one of a few choices."""

from __future__ import annotations

import re
import unicodedata
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from budge.errors import DataError, Problem, SpecError
from budge.llm.interactions.checks import as_texts, text_problems
from budge.llm.judges.base import Judge, Judgement, empty
from budge.llm.prompts import Prompt, Prompts, listed

__all__ = ["Choice", "Contains", "Match", "choice", "contains", "match", "normal"]

_ENDS = " .,;:!?\"'`*_()[]“”‘’«»"
_ARTICLE = re.compile(r"^(?:the|a|an) ")


def normal(text: str) -> str:
    """The text without what does not matter: case, accents' composition, marks at its ends, a leading article, runs of blanks.

    Examples
    --------
    >>> normal('  The  "Eiffel Tower". ')
    'eiffel tower'
    """
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return _ARTICLE.sub("", plain.strip(_ENDS)).strip(_ENDS)


def _expected(prompt: Prompt, given: tuple[str, ...]) -> tuple[str, ...]:
    """The accepted answers: those given to the judge, or the prompt's own."""
    return given or tuple(part.strip() for part in prompt.expected.split("|") if part.strip())


def _none_expected(prompts: Prompts, given: tuple[str, ...], name: str) -> None:
    lacking = [p.id for p in prompts if not _expected(p, given)]
    if lacking:
        what = f"{len(lacking)} of {len(prompts)} prompts have no expected answer"
        raise DataError(what, where=name, got=listed(lacking), remedy="add them to the prompts, or give the judge its texts")


@dataclass(frozen=True)
class _Texts(Judge):
    """Judges with texts of their own, or the prompt's expected answers."""

    texts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", as_texts(self.texts))
        SpecError.raise_if((text_problems(self.kind, self.texts) if self.texts != () else []) + self._problems())

    def _problems(self) -> list[Problem]:
        return []

    def check(self, prompts: Prompts) -> None:
        """Every prompt needs an expected answer, unless the judge has texts of its own."""
        _none_expected(prompts, self.texts, self.name)

    def judge(self, prompt: Prompt, sent: str, answer: str) -> Judgement:
        """Unresolved without an answer, or without anything to compare it with."""
        if (nothing := empty(answer)) is not None:
            return nothing
        expected = _expected(prompt, self.texts)
        return self._compared(expected, answer) if expected else Judgement(None, "the prompt has no expected answer", answer)

    @abstractmethod
    def _compared(self, expected: tuple[str, ...], answer: str) -> Judgement:
        """A hit or not, given texts of which one is expected."""

    def _what(self) -> str:
        return (
            "what the prompt expects"
            if not self.texts
            else " or ".join(repr(t) for t in self.texts[:5]) + (" …" if len(self.texts) > 5 else "")
        )


@dataclass(frozen=True)
class Match(_Texts):
    """The whole answer is one of the expected ones."""

    kind: ClassVar[str] = "match"

    exact: bool = field(default=False, kw_only=True)

    def _compared(self, expected: tuple[str, ...], answer: str) -> Judgement:
        read = (lambda t: t.strip()) if self.exact else normal
        return Judgement(read(answer) in {read(e) for e in expected}, raw=answer)

    def describe(self) -> str:
        """One English sentence."""
        how = "to the letter" if self.exact else "up to case, blanks, marks at its ends and a leading article"
        return f"A hit is an answer that equals {self._what()}, {how}."


@dataclass(frozen=True)
class Contains(_Texts):
    """One of the expected texts stands in the answer, as whole words."""

    kind: ClassVar[str] = "contains"

    def _compared(self, expected: tuple[str, ...], answer: str) -> Judgement:
        said = " ".join(unicodedata.normalize("NFKC", answer).casefold().split())
        return Judgement(any(_stands(normal(e) or e.casefold(), said) for e in expected), raw=answer)

    def describe(self) -> str:
        """One English sentence."""
        return f"A hit is an answer in which {self._what()} stands, as whole words, in any case."


def _stands(text: str, said: str) -> bool:
    at = said.find(text)
    while at >= 0:
        end = at + len(text)
        before = at > 0 and said[at - 1].isalnum() and text[0].isalnum()
        after = end < len(said) and said[end].isalnum() and text[-1].isalnum()
        if not before and not after:
            return True
        at = said.find(text, at + 1)
    return False


@dataclass(frozen=True)
class Choice(Judge):
    """The answer names one of a few options, and it is the expected one. One that names none, or several, is unresolved."""

    kind: ClassVar[str] = "choice"

    options: tuple[str, ...] = ()
    wanted: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", as_texts(self.options))
        problems = text_problems("choice.options", self.options, what="option")
        if not problems and len({normal(o) for o in self.options}) < max(2, len(self.options)):
            problems.append(Problem("choice.options", "must be at least two that differ", list(self.options)))
        if not problems and self.wanted and normal(self.wanted) not in {normal(o) for o in self.options}:
            problems.append(Problem("choice.wanted", "is not among the options", self.wanted))
        SpecError.raise_if(problems)

    def _wanted(self, prompt: Prompt) -> set[str]:
        return {normal(e) for e in _expected(prompt, (self.wanted,) if self.wanted else ())}

    def check(self, prompts: Prompts) -> None:
        """Every prompt needs an expected answer that is an option."""
        _none_expected(prompts, (self.wanted,) if self.wanted else (), self.name)
        known = {normal(o) for o in self.options}
        DataError.raise_if(
            Problem(f"prompt {p.id}", f"expects what is no option of {', '.join(self.options)}", p.expected)
            for p in prompts
            if not self._wanted(p) <= known
        )

    def judge(self, prompt: Prompt, sent: str, answer: str) -> Judgement:
        """A single letter counts as an option only where it stands as one: capital, or by itself, or in brackets or before a point."""
        if (nothing := empty(answer)) is not None:
            return nothing
        named = {normal(option) for option in self.options if _names(option, answer)}
        if len(named) != 1:
            which = "names none of the options" if not named else f"names several options: {', '.join(sorted(named))}"
            return Judgement(None, f"the answer {which}", answer)
        wanted = self._wanted(prompt)
        return Judgement(named <= wanted, raw=answer) if wanted else Judgement(None, "the prompt has no expected answer", answer)

    def describe(self) -> str:
        """One English sentence."""
        what = repr(self.wanted) if self.wanted else "the expected one"
        return f"A hit is an answer that names, of {', '.join(self.options)}, only {what}; one that names none or several is unresolved."


def _names(option: str, answer: str) -> bool:
    text = normal(option)
    if normal(answer) == text:
        return True
    if len(text) == 1 and text.isalpha():
        letter = re.escape(option.upper())
        alone = rf"\(?{letter}[).:]|{letter}(?=\s*$)|(?<=\bis )\(?{letter}\b|\*\*{letter}\*\*"
        beside = rf"{letter}(?=\s*(?:or|and|,|/|&)\s*\(?[A-Z]\b)"  # A or B
        return re.search(rf"(?<![^\W_])(?:{alone}|{beside})", answer) is not None
    return _stands(text, " ".join(unicodedata.normalize("NFKC", answer).casefold().split()))


def match(texts: str | Sequence[str] = (), *, exact: bool = False, label: str = "") -> Match:
    """A hit is an answer that is one of the texts, or what the prompt expects where none is given.

    Examples
    --------
    >>> from budge.llm import Prompt
    >>> match().judge(Prompt("a", "The capital of France?", expected="Paris"), "", " paris. ").hit
    True
    """
    return Match(as_texts(texts), exact=exact, label=label)


def contains(texts: str | Sequence[str] = (), *, label: str = "") -> Contains:
    """A hit is an answer in which one of the texts stands as whole words, or what the prompt expects where none is given.

    Examples
    --------
    >>> from budge.llm import Prompt
    >>> contains().judge(Prompt("a", "The capital of France?", expected="Paris"), "", "It is Paris, of course.").hit
    True
    """
    return Contains(as_texts(texts), label=label)


def choice(*options: str, wanted: str = "", label: str = "") -> Choice:
    """A hit is an answer that names the expected one of a few options, and no other.

    Examples
    --------
    >>> from budge.llm import Prompt
    >>> judge = choice("positive", "negative")
    >>> judge.judge(Prompt("a", "I liked it.", expected="positive"), "", "Positive.").hit
    True
    >>> judge.judge(Prompt("a", "I liked it.", expected="positive"), "", "Positive or negative?").why
    'the answer names several options: negative, positive'
    """
    return Choice(
        options[0] if len(options) == 1 and isinstance(options[0], list | tuple) else options, wanted=wanted, label=label
    )
