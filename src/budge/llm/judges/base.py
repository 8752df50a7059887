"""What a judge is: it reads an answer and says hit, no hit, or neither. It is part of the model under test."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from budge.llm.interactions.base import Ask, Interaction
from budge.llm.prompts import Prompt, Prompts
from budge.llm.written import Written

__all__ = ["Judge", "Judgement"]


@dataclass(frozen=True)
class Judgement:
    """Hit, no hit, or `None` where the judge said neither: then the draw is unresolved, and `why` and `raw` tell."""

    hit: bool | None
    why: str = ""
    raw: str = ""


@dataclass(frozen=True)
class Judge(Written, ABC):
    """Turns an answer into a hit or not. Subclasses are frozen dataclasses."""

    @property
    def name(self) -> str:
        """A short name for tables and logs: the label, or the kind."""
        return self.label or self.kind

    @abstractmethod
    def judge(self, prompt: Prompt, sent: str, answer: str) -> Judgement:
        """Judge the answer to `sent`, a rewrite of the prompt."""

    async def apply(self, prompt: Prompt, sent: str, answer: str, ask: Ask) -> Judgement:
        """The same where a model may have to be asked; judges that are models override this."""
        return self.judge(prompt, sent, answer)

    @abstractmethod
    def describe(self) -> str:
        """One English sentence."""

    def check(self, prompts: Prompts) -> None:
        """Raise all that stands against judging answers to these prompts: an expected answer that is missing."""

    def check_languages(self, interaction: Interaction) -> None:
        """Raise an error if the interaction leads to answers in a language that this judge does not read."""

    def __invert__(self) -> Judge:
        from budge.llm.judges.negation import Negated

        return self.judged if isinstance(self, Negated) and not self.label else Negated(self)

    @property
    def negate(self) -> Judge:
        """The judge who hits where this one does not; what is unresolved stays so."""
        return ~self

    def __str__(self) -> str:
        return self.describe()


def empty(answer: object) -> Judgement | None:
    """An answer that is no text, or holds none, is unresolved for every judge."""
    if not isinstance(answer, str):
        return Judgement(None, f"the answer is no text but {type(answer).__name__}", repr(answer)[:200])
    return Judgement(None, "the answer is empty", answer) if not answer.strip() else None
