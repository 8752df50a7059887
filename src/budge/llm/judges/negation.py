"""The opposite of a judge."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from budge.errors import SpecError
from budge.llm.interactions.base import Ask, Interaction
from budge.llm.judges.base import Judge, Judgement
from budge.llm.prompts import Prompt, Prompts

__all__ = ["Negated", "negate"]


@dataclass(frozen=True)
class Negated(Judge):
    """Hits where the other does not; unresolved where the other is."""

    kind: ClassVar[str] = "not"

    judged: Judge = None  # type: ignore[assignment]  # always given

    def __post_init__(self) -> None:
        if not isinstance(self.judged, Judge):
            raise SpecError("must be a judge", where="not", got=self.judged)

    @property
    def name(self) -> str:
        """The label, or "not" and the other's name."""
        return self.label or f"not {self.judged.name}"

    def judge(self, prompt: Prompt, sent: str, answer: str) -> Judgement:
        """The other's judgement, turned."""
        return _turned(self.judged.judge(prompt, sent, answer))

    async def apply(self, prompt: Prompt, sent: str, answer: str, ask: Ask) -> Judgement:
        """The same where a model may have to be asked."""
        return _turned(await self.judged.apply(prompt, sent, answer, ask))

    def check(self, prompts: Prompts) -> None:
        """As the other."""
        self.judged.check(prompts)

    def check_languages(self, interaction: Interaction) -> None:
        """Raise what the wrapped judge raises."""
        self.judged.check_languages(interaction)

    def describe(self) -> str:
        """One English sentence."""
        return f"The opposite of this: {self.judged.describe()}"


def _turned(found: Judgement) -> Judgement:
    return found if found.hit is None else replace(found, hit=not found.hit)


def negate(judge: Judge) -> Judge:
    """The judge who hits where this one does not.

    Examples
    --------
    >>> from budge.llm import Prompt, refusal
    >>> negate(refusal()).judge(Prompt("a", "Sing."), "Sing.", "La la la.").hit
    True
    """
    if not isinstance(judge, Judge):
        raise SpecError("must be a judge", where="negate", got=judge)
    return ~judge
