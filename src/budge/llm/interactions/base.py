"""What an interaction with a prompt is: a seeded rewrite, with a name, a sentence, and composition by ``|``.

A prompt is the input x, a rewrite is an action, and decoding is the downstream effect. The rewrites that an interaction can draw
are the reachable points of the prompt.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable

import numpy as np

from budge.llm.prompts import Prompt

__all__ = ["Ask", "Interaction"]

#: Asks a language model (named as Inspect names models; "" for the run's rewriting model) and returns its text.
Ask = Callable[[str, str], Awaitable[str]]


class Interaction(ABC):
    """One way a prompt may be rewritten.

    Subclasses are frozen dataclasses. A rewrite depends on the prompt and the generator alone, so that a draw can be made again.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """A short name for tables and folders."""

    @abstractmethod
    def rewrite(self, prompt: Prompt, rng: np.random.Generator) -> str:
        """One draw among the rewrites of the prompt."""

    async def apply(self, prompt: Prompt, rng: np.random.Generator, ask: Ask) -> str:
        """The same where a model may have to be asked; interactions that need one override this."""
        return self.rewrite(prompt, rng)

    @abstractmethod
    def describe(self) -> str:
        """One English sentence."""
