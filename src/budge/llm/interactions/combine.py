"""Interactions put together: one after the other, or one of several; and none at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

import numpy as np

from budge.errors import Problem, SpecError
from budge.llm.interactions.base import Ask, Interaction, moved
from budge.llm.prompts import Prompt, Prompts

__all__ = ["Chain", "OneOf", "Unchanged", "one_of", "unchanged"]


@dataclass(frozen=True)
class Unchanged(Interaction):
    """The prompt as it stands."""

    kind: ClassVar[str] = "unchanged"

    def rewrite(self, prompt: Prompt, rng: np.random.Generator) -> str:
        """The prompt's own text."""
        return prompt.text

    def outcomes(self, prompt: Prompt) -> Iterator[tuple[str, float]]:
        """The one text."""
        return iter([(prompt.text, 1.0)])

    def describe(self) -> str:
        """One English sentence."""
        return "The prompt stays as it is."


def _member_problems(where: str, members: object, least: int) -> list[Problem]:
    if not isinstance(members, tuple) or len(members) < least or not all(isinstance(m, Interaction) for m in members):
        return [Problem(where, f"must be at least {least} interactions", members)]
    return []


@dataclass(frozen=True)
class Chain(Interaction):
    """One after the other: each rewrites what the one before it made. Each keeps what it must keep of what it is given."""

    kind: ClassVar[str] = "chain"

    steps: tuple[Interaction, ...] = ()

    def __post_init__(self) -> None:
        SpecError.raise_if(_member_problems("chain", self.steps, 1))

    @property
    def name(self) -> str:
        """The label, or the names of the steps."""
        return self.label or " + ".join(step.name for step in self.steps)

    def rewrite(self, prompt: Prompt, rng: np.random.Generator) -> str:
        """Step by step, with one generator."""
        return self.changed(prompt, rng).text

    async def apply(self, prompt: Prompt, rng: np.random.Generator, ask: Ask) -> str:
        """Step by step, where a step may ask a model."""
        return (await self.change(prompt, rng, ask)).text

    def changed(self, prompt: Prompt, rng: np.random.Generator) -> Prompt:
        """Step by step, with one generator."""
        for step in self.steps:
            prompt = step.changed(prompt, rng)
        return prompt

    async def change(self, prompt: Prompt, rng: np.random.Generator, ask: Ask) -> Prompt:
        """Step by step, where a step may ask a model."""
        for step in self.steps:
            prompt = await step.change(prompt, rng, ask)
        return prompt

    def check(self, prompts: Prompts) -> Prompts:
        """The prompts that every step can rewrite."""
        for step in self.steps:
            prompts = step.check(prompts)
        return prompts

    def outcomes(self, prompt: Prompt) -> Iterator[tuple[str, float]] | None:
        """Every outcome of a step, and of the next from there."""
        return _chained(self.steps, prompt)

    def describe(self) -> str:
        """One English sentence a step."""
        return " Then: ".join(step.describe() for step in self.steps)


def _chained(steps: tuple[Interaction, ...], prompt: Prompt) -> Iterator[tuple[str, float]] | None:
    first = steps[0].outcomes(prompt)
    if first is None or len(steps) == 1:
        return first
    if any(step.on_fields for step in steps):  # what is listed there is more than a text
        return None
    # whether the later steps can be listed does not depend on the text, so that it is asked once, here
    if _chained(steps[1:], prompt) is None:
        return None

    def joined() -> Iterator[tuple[str, float]]:
        for text, p in first:
            for end, q in _chained(steps[1:], moved(prompt, text)) or ():
                yield end, p * q

    return joined()


@dataclass(frozen=True)
class OneOf(Interaction):
    """One of several interactions: each as likely as the others, or by their weights."""

    kind: ClassVar[str] = "one_of"

    members: tuple[Interaction, ...] = ()
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        problems = _member_problems("one_of", self.members, 2)
        weights = tuple(self.weights) if isinstance(self.weights, list | tuple) else self.weights
        if not problems and weights != ():
            good = isinstance(weights, tuple) and len(weights) == len(self.members)
            if not good or not all(
                isinstance(w, int | float) and not isinstance(w, bool) and 0 < w < float("inf") for w in weights
            ):
                problems.append(Problem("one_of.weights", "must be one positive number a member", self.weights))
        SpecError.raise_if(problems)
        object.__setattr__(self, "weights", weights)

    @property
    def name(self) -> str:
        """The label, or the names of the members."""
        return self.label or " or ".join(m.name for m in self.members)

    @property
    def chances(self) -> tuple[float, ...]:
        """How likely each member is."""
        weights = self.weights or (1.0,) * len(self.members)
        return tuple(w / sum(weights) for w in weights)

    def _drawn(self, rng: np.random.Generator) -> Interaction:
        u = rng.random()
        passed = [total for total in accumulate(self.chances) if total <= u]
        return self.members[min(len(passed), len(self.members) - 1)]

    def rewrite(self, prompt: Prompt, rng: np.random.Generator) -> str:
        """A member, then its draw."""
        return self._drawn(rng).rewrite(prompt, rng)

    async def apply(self, prompt: Prompt, rng: np.random.Generator, ask: Ask) -> str:
        """The same where a model may have to be asked."""
        return await self._drawn(rng).apply(prompt, rng, ask)

    def changed(self, prompt: Prompt, rng: np.random.Generator) -> Prompt:
        """A member, then its draw."""
        return self._drawn(rng).changed(prompt, rng)

    async def change(self, prompt: Prompt, rng: np.random.Generator, ask: Ask) -> Prompt:
        """The same where a model may have to be asked."""
        return await self._drawn(rng).change(prompt, rng, ask)

    def check(self, prompts: Prompts) -> Prompts:
        """The prompts that every member can rewrite."""
        for member in self.members:
            prompts = member.check(prompts)
        return prompts

    def outcomes(self, prompt: Prompt) -> Iterator[tuple[str, float]] | None:
        """The outcomes of every member."""
        listed = [member.outcomes(prompt) for member in self.members]
        if any(one is None for one in listed):
            return None
        return ((text, p * chance) for one, chance in zip(listed, self.chances) for text, p in one or ())

    def describe(self) -> str:
        """One English sentence a member."""
        return "One of these: " + " Or: ".join(member.describe() for member in self.members)


def unchanged() -> Unchanged:
    """The prompt as it stands."""
    return Unchanged()


def one_of(*members: Interaction, weights: tuple[float, ...] | list[float] = (), label: str = "") -> OneOf:
    """One of several interactions, each as likely as the others or by weights.

    Examples
    --------
    >>> from budge.llm import Prompt, case
    >>> one_of(case("upper"), unchanged(), weights=[3, 1]).law(Prompt("a", "Go"))
    {'GO': 0.75, 'Go': 0.25}
    """
    return OneOf(tuple(members), tuple(weights), label=label)
