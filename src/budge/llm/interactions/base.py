"""What an interaction with a prompt is: a seeded rewrite, with a name, a sentence, and composition by ``|``.

A prompt is the input x, a rewrite is an action, and decoding is the downstream effect. The rewrites that an interaction can draw
are the reachable points of the prompt.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from budge.errors import EmptyError, TooLargeError
from budge.llm.prompts import Prompt, Prompts
from budge.llm.written import Written

if TYPE_CHECKING:
    from budge.llm.interactions.combine import Chain

__all__ = ["LISTABLE", "Ask", "Interaction", "languages_of"]

#: Asks a language model (named as Inspect names models; "" for the run's rewriting model) and returns its text.
Ask = Callable[[str, str], Awaitable[str]]

#: The most rewrites that are listed unless told otherwise.
LISTABLE = 10_000


@dataclass(frozen=True)
class Interaction(Written, ABC):
    """One way a prompt may be rewritten.

    Subclasses are frozen dataclasses. A rewrite depends on the prompt and the generator alone, so that a draw can be made again.
    """

    on_fields: ClassVar[bool] = False  # whether other fields than the text are changed

    @property
    def name(self) -> str:
        """A short name for tables and folders: the label, or the kind."""
        return self.label or self.kind

    @abstractmethod
    def rewrite(self, prompt: Prompt, rng: np.random.Generator) -> str:
        """One draw among the rewrites of the prompt."""

    async def apply(self, prompt: Prompt, rng: np.random.Generator, ask: Ask) -> str:
        """The same where a model may have to be asked; interactions that need one override this."""
        return self.rewrite(prompt, rng)

    def changed(self, prompt: Prompt, rng: np.random.Generator) -> Prompt:
        """Return the prompt as one draw leaves it: with another text, or with other fields and another expected answer."""
        return moved(prompt, self.rewrite(prompt, rng))

    async def change(self, prompt: Prompt, rng: np.random.Generator, ask: Ask) -> Prompt:
        """Return the same where a model may have to be asked."""
        return moved(prompt, await self.apply(prompt, rng, ask))

    @abstractmethod
    def describe(self) -> str:
        """One English sentence."""

    def check(self, prompts: Prompts) -> Prompts:
        """The prompts that can be rewritten; what cannot and should is an error with all identifiers."""
        return prompts

    def outcomes(self, prompt: Prompt) -> Iterator[tuple[str, float]] | None:
        """Texts with their probabilities, where they can be listed; a text may come more than once. Lazily, since many."""
        return None

    def reachable(self, prompt: Prompt) -> int | None:
        """How many distinct rewrites there are; None where they are not countable or too many to tell apart."""
        try:
            return len(self.law(prompt))
        except TooLargeError:
            return None

    def law(self, prompt: Prompt, *, limit: int = LISTABLE) -> dict[str, float]:
        """Every rewrite of the prompt with its exact probability.

        Raises
        ------
        TooLargeError
            There are more than `limit`, or they cannot be listed.
        """
        listed = self.outcomes(prompt)
        if listed is None:
            raise TooLargeError(f"the rewrites of {self.name} cannot be listed", where=f"prompt {prompt.id}", remedy="draw them")
        found: dict[str, float] = {}
        for seen, (text, probability) in enumerate(listed):
            if seen >= 10 * limit or len(found) > limit:
                break
            found[text] = found.get(text, 0.0) + probability
        if not found:
            raise EmptyError("there is no rewrite", where=f"prompt {prompt.id}", remedy="check(prompts) tells which have none")
        if len(found) > limit or seen >= 10 * limit:
            what = f"{self.name} has more than {limit:,} rewrites"
            raise TooLargeError(what, where=f"prompt {prompt.id}", remedy="draw them, or raise limit=")
        return found

    def enumerate(self, prompt: Prompt, *, limit: int = LISTABLE) -> tuple[str, ...]:
        """Every distinct rewrite of the prompt."""
        return tuple(self.law(prompt, limit=limit))

    def draw(self, x: str | Prompt, n: int, rng: np.random.Generator) -> list[str]:
        """n rewrites of a text: what `budge.audit` asks of anything that draws."""
        prompt = x if isinstance(x, Prompt) else Prompt("text", x)
        return [self.rewrite(prompt, rng) for _ in range(n)]

    def __or__(self, other: Interaction) -> Chain:
        from budge.llm.interactions.combine import Chain

        if not isinstance(other, Interaction):
            return NotImplemented
        mine = self.steps if isinstance(self, Chain) and not self.label else (self,)
        theirs = other.steps if isinstance(other, Chain) and not other.label else (other,)
        return Chain((*mine, *theirs))

    def __str__(self) -> str:
        return self.describe()


def languages_of(part: object) -> Iterator[str]:
    """Return the languages into which an interaction, or a part of it, translates."""
    if isinstance(part, tuple):
        for inner in part:
            yield from languages_of(inner)
    elif isinstance(part, Interaction):
        if named := getattr(part, "language", ""):
            yield str(named)
        for place in fields(part):
            yield from languages_of(getattr(part, place.name))


def moved(prompt: Prompt, text: str) -> Prompt:
    """The prompt with another text."""
    return replace(prompt, text=text)
