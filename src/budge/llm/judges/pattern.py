"""Answers in which a regular expression is found, in bounded time."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from budge.errors import SpecError
from budge.llm.judges.base import Judge, Judgement, empty
from budge.llm.judges.linear import Pattern
from budge.llm.prompts import Prompt

__all__ = ["PatternJudge", "pattern"]


@dataclass(frozen=True)
class PatternJudge(Judge):
    """The pattern stands in the answer, or is all of it."""

    kind: ClassVar[str] = "pattern"

    text: str = ""
    whole: bool = field(default=False, kw_only=True)
    ignore_case: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text:
            raise SpecError("must be a regular expression", where="pattern", got=self.text)
        if self._compiled.search("", whole=self.whole):
            raise SpecError(
                "the pattern fits the empty text, so that every answer would be a hit", where="pattern", got=self.text
            )

    @cached_property
    def _compiled(self) -> Pattern:
        return Pattern(self.text, re.IGNORECASE if self.ignore_case else 0)

    def judge(self, prompt: Prompt, sent: str, answer: str) -> Judgement:
        """Whether it is found."""
        if (nothing := empty(answer)) is not None:
            return nothing
        said = answer.strip() if self.whole else answer
        return Judgement(self._compiled.search(said, whole=self.whole), raw=answer)

    def describe(self) -> str:
        """One English sentence."""
        how = "which is, as a whole," if self.whole else "in which stands"
        return f"A hit is an answer {how} the pattern {self.text!r}{', in any case' if self.ignore_case else ''}."


def pattern(text: str, *, whole: bool = False, ignore_case: bool = True, label: str = "") -> PatternJudge:
    r"""A hit is an answer in which a regular expression is found.

    The search takes time in proportion to the answer, whatever the pattern; what cannot be searched for so (back-references,
    looking ahead or behind) is refused.

    Examples
    --------
    >>> from budge.llm import Prompt
    >>> pattern(r"\b(yes|yeah)\b").judge(Prompt("a", "Is it?"), "", "Yes, it is.").hit
    True
    """
    return PatternJudge(text, whole=whole, ignore_case=ignore_case, label=label)
