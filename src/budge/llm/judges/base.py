"""What a judge is: it reads an answer and says hit, no hit, or neither. It is part of the model under test."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from budge.llm.interactions.base import Ask
from budge.llm.prompts import Prompt

__all__ = ["Judge", "Judgement"]


@dataclass(frozen=True)
class Judgement:
    """Hit, no hit, or `None` where the judge said neither: then the draw is unresolved, and `why` and `raw` tell."""

    hit: bool | None
    why: str = ""
    raw: str = ""


class Judge(ABC):
    """Turns an answer into a hit or not. Subclasses are frozen dataclasses."""

    @property
    @abstractmethod
    def name(self) -> str:
        """A short name for tables and logs."""

    @abstractmethod
    def judge(self, prompt: Prompt, sent: str, answer: str) -> Judgement:
        """Judge the answer to `sent`, a rewrite of the prompt."""

    async def apply(self, prompt: Prompt, sent: str, answer: str, ask: Ask) -> Judgement:
        """The same where a model may have to be asked; judges that are models override this."""
        return self.judge(prompt, sent, answer)

    @abstractmethod
    def describe(self) -> str:
        """One English sentence."""
