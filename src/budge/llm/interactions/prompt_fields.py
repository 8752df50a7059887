"""Interactions on the fields of a prompt: the order of its options (the expected letter moves along), of its passages, its system message."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import ClassVar

import numpy as np

from budge.errors import DataError, Problem, SpecError
from budge.llm.interactions.base import Interaction
from budge.llm.interactions.checks import as_texts, text_problems
from budge.llm.prompts import Prompt, Prompts

__all__ = ["OptionOrder", "PassageOrder", "SystemMessage", "in_order", "options", "passages", "system"]


class _OnFields(Interaction):
    """An interaction that leaves the text alone: `changed` is the whole of it, and what it makes is listed as it is sent."""

    on_fields: ClassVar[bool] = True

    def rewrite(self, prompt: Prompt, rng: np.random.Generator) -> str:
        """The text stays as it is."""
        return prompt.text

    async def change(self, prompt: Prompt, rng: np.random.Generator, ask: object) -> Prompt:
        """No model is needed."""
        return self.changed(prompt, rng)

    def changed(self, prompt: Prompt, rng: np.random.Generator) -> Prompt:
        """Return the prompt with its field changed."""
        raise NotImplementedError


def in_order(prompt: Prompt, order: Sequence[int]) -> Prompt:
    """Return the prompt with position i of its options holding option ``order[i]``; an expected letter moves along.

    Examples
    --------
    >>> moved = in_order(Prompt("a", "Which is a river?", expected="B", options=("Paris", "Seine", "Oslo")), [2, 0, 1])
    >>> moved.options, moved.expected
    (('Oslo', 'Paris', 'Seine'), 'C')
    """
    place = {chr(65 + old): chr(65 + new) for new, old in enumerate(order)}
    letters = [part.strip() for part in prompt.expected.split("|")]
    expected = "|".join(place[part] for part in letters) if all(part in place for part in letters) else prompt.expected
    return replace(prompt, options=tuple(prompt.options[i] for i in order), expected=expected)


@dataclass(frozen=True)
class OptionOrder(_OnFields):
    """The options in another order, each order as likely, or only the rotations; the expected letter moves along."""

    kind: ClassVar[str] = "options"

    rotate: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.rotate, bool):
            raise SpecError("must be true or false", where="options.rotate", got=self.rotate)

    def _orders(self, size: int) -> Iterator[tuple[int, ...]]:
        return (tuple((i + k) % size for i in range(size)) for k in range(size)) if self.rotate else permutations(range(size))

    def changed(self, prompt: Prompt, rng: np.random.Generator) -> Prompt:
        """One order."""
        size = len(prompt.options)
        order = [(i + k) % size for k in [int(rng.integers(size))] for i in range(size)] if self.rotate else [int(i) for i in rng.permutation(size)]
        return in_order(prompt, order)

    def outcomes(self, prompt: Prompt) -> Iterator[tuple[str, float]]:
        """Every order, each as likely."""
        size = len(prompt.options)
        chance = 1 / (size if self.rotate else math.factorial(size))
        return ((in_order(prompt, order).asked, chance) for order in self._orders(size))

    def check(self, prompts: Prompts) -> Prompts:
        """Every prompt needs options; an expected answer that is a letter must be one of theirs."""
        wrong = []
        for p in prompts:
            parts = [part.strip() for part in p.expected.split("|")] if p.expected else []
            letters = all(len(part) == 1 and 0 <= ord(part) - 65 < len(p.options) for part in parts)
            if not p.options:
                wrong.append(Problem(f"prompt {p.id}", "has no options to put in another order", remedy="give options, such as Paris|Seine"))
            elif not letters and not set(parts) <= set(p.options):
                wrong.append(Problem(f"prompt {p.id}.expected", "is neither a letter of an option nor the text of one", p.expected))
        DataError.raise_if(wrong)
        return prompts

    def describe(self) -> str:
        """One English sentence."""
        return f"The options of the prompt are put in {'a rotated' if self.rotate else 'another'} order, each as likely; the expected letter moves along."


@dataclass(frozen=True)
class PassageOrder(_OnFields):
    """The passages before the question in another order, each as likely."""

    kind: ClassVar[str] = "passages"

    def changed(self, prompt: Prompt, rng: np.random.Generator) -> Prompt:
        """One order."""
        return replace(prompt, passages=tuple(prompt.passages[int(i)] for i in rng.permutation(len(prompt.passages))))

    def outcomes(self, prompt: Prompt) -> Iterator[tuple[str, float]]:
        """Every order, each as likely."""
        chance = 1 / math.factorial(len(prompt.passages))
        return ((replace(prompt, passages=order).asked, chance) for order in permutations(prompt.passages))

    def check(self, prompts: Prompts) -> Prompts:
        """Every prompt needs two passages or more."""
        few = [p for p in prompts if len(p.passages) < 2]
        DataError.raise_if(Problem(f"prompt {p.id}", "has fewer than two passages", len(p.passages), "give passages, a list of texts") for p in few)
        return prompts

    def describe(self) -> str:
        """One English sentence."""
        return "The passages before the question are put in another order, each as likely."


@dataclass(frozen=True)
class SystemMessage(_OnFields):
    """Another system message: one of a few texts, each as likely."""

    kind: ClassVar[str] = "system"

    texts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", as_texts(self.texts))
        SpecError.raise_if(text_problems("system", self.texts, what="system message"))

    def changed(self, prompt: Prompt, rng: np.random.Generator) -> Prompt:
        """One of the texts."""
        return replace(prompt, system=self.texts[int(rng.integers(len(self.texts)))])

    def describe(self) -> str:
        """One English sentence."""
        return f"The system message is {'one of these, each as likely: ' if len(self.texts) > 1 else ''}{'; '.join(map(repr, self.texts))}."


def options(*, rotate: bool = False, label: str = "") -> OptionOrder:
    """The options of multiple choice in another order; the expected letter moves along.

    Parameters
    ----------
    rotate
        Only the rotations, which put every option in every place equally often; otherwise every order.

    Examples
    --------
    >>> prompt = Prompt("a", "Which is a river?", expected="B", options=("Paris", "Seine"))
    >>> options().law(prompt)["Which is a river?\\n\\nA) Seine\\nB) Paris"]
    0.5
    """
    return OptionOrder(rotate, label=label)


def passages(*, label: str = "") -> PassageOrder:
    """The passages before a question in another order, each as likely."""
    return PassageOrder(label=label)


def system(*texts: str, label: str = "") -> SystemMessage:
    """Another system message: one of the texts, each as likely."""
    return SystemMessage(tuple(texts), label=label)
