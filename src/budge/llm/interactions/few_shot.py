"""Worked examples before the question, in an order that is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from math import perm
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from budge.errors import DataError, Problem, SpecError
from budge.llm.interactions.base import Interaction
from budge.llm.interactions.checks import count_problems
from budge.llm.prompt_files import read_records
from budge.llm.prompts import Prompt, Prompts

__all__ = ["FewShot", "few_shot"]

_SLOTS = ("{question}", "{answer}")


@dataclass(frozen=True)
class FewShot(Interaction):
    """k of the examples in an order of their own, every ordered choice of k as likely as the others.

    An example whose question is the prompt itself is left out: it would give the answer away.
    """

    kind: ClassVar[str] = "few_shot"

    examples: tuple[tuple[str, str], ...] = ()
    k: int | None = None
    layout: str = field(default="Question: {question}\nAnswer: {answer}", kw_only=True)
    ask: str = field(default="Question: {question}\nAnswer:", kw_only=True)
    between: str = field(default="\n\n", kw_only=True)

    def __post_init__(self) -> None:
        problems: list[Problem] = []
        good = isinstance(self.examples, tuple | list) and all(
            isinstance(e, tuple | list) and len(e) == 2 and all(isinstance(part, str) and part.strip() for part in e)
            for e in self.examples
        )
        if not good or not self.examples:
            problems.append(Problem("few_shot.examples", "must be pairs of a question and its answer", self.examples))
        else:
            object.__setattr__(self, "examples", tuple((q, a) for q, a in self.examples))
            if len({q for q, _ in self.examples}) < len(self.examples):
                problems.append(Problem("few_shot.examples", "a question is repeated", len(self.examples)))
        problems += count_problems("few_shot.k", self.k, least=1, none=True)
        if not problems and self.k is not None and self.k > len(self.examples):
            problems.append(Problem("few_shot.k", f"there are only {len(self.examples)} examples", self.k))
        for name, slots in (("layout", _SLOTS), ("ask", _SLOTS[:1])):
            text = getattr(self, name)
            if not isinstance(text, str) or any(text.count(slot) != 1 for slot in slots):
                problems.append(Problem(f"few_shot.{name}", f"must hold {' and '.join(slots)} exactly once", text))
        SpecError.raise_if(problems)

    def _usable(self, prompt: Prompt) -> list[tuple[str, str]]:
        return [e for e in self.examples if e[0].strip() != prompt.text.strip()]

    def _size(self, prompt: Prompt) -> tuple[list[tuple[str, str]], int]:
        usable = self._usable(prompt)
        return usable, len(usable) if self.k is None else min(self.k, len(usable))

    def _text(self, chosen: Sequence[tuple[str, str]], prompt: Prompt) -> str:
        shown = [filled(self.layout, {"{question}": q, "{answer}": a}) for q, a in chosen]
        return self.between.join([*shown, filled(self.ask, {"{question}": prompt.text})])

    def rewrite(self, prompt: Prompt, rng: np.random.Generator) -> str:
        """The first k of a uniform permutation, then the question."""
        usable, k = self._size(prompt)
        return self._text([usable[i] for i in rng.permutation(len(usable))[:k]], prompt)

    def outcomes(self, prompt: Prompt) -> Iterator[tuple[str, float]]:
        """One text for each ordered choice."""
        usable, k = self._size(prompt)
        each = 1 / perm(len(usable), k)
        return ((self._text(chosen, prompt), each) for chosen in permutations(usable, k))

    def reachable(self, prompt: Prompt) -> int:
        """Ordered choices of k examples."""
        usable, k = self._size(prompt)
        return perm(len(usable), k)

    def describe(self) -> str:
        """One English sentence."""
        k = len(self.examples) if self.k is None else self.k
        return f"{k} of {len(self.examples)} worked examples stand before the question, in an order drawn uniformly."


def filled(text: str, slots: Mapping[str, str]) -> str:
    """The text with its slots filled, in one pass: what is put in is not read again."""
    import re

    pattern = re.compile("|".join(re.escape(slot) for slot in slots))
    return pattern.sub(lambda match: slots[match[0]], text)


def few_shot(
    examples: Sequence[tuple[str, str]] | Prompts | str | Path, k: int | None = None, *, layout: str = FewShot.layout, ask: str = FewShot.ask,
    between: str = "\n\n", label: str = "few-shot order",
) -> FewShot:  # fmt: skip
    r"""Examples stand before the question, in an order drawn uniformly (and k of them, where k is given).

    Parameters
    ----------
    examples
        Pairs of a question and its answer, prompts with expected answers, or a file of such.
    k
        How many are shown; all of them by default.
    layout, ask
        How an example and the question are written, with ``{question}`` and ``{answer}``.

    Examples
    --------
    >>> from budge.llm import Prompt
    >>> shots = few_shot([("1 + 1?", "2"), ("2 + 2?", "4"), ("3 + 3?", "6")], 2)
    >>> shots.reachable(Prompt("a", "4 + 4?"))
    6
    """
    if isinstance(examples, str | Path):
        examples = Prompts.of(*_records(examples))
    pairs: Any = (
        tuple((p.text, p.expected.split("|")[0].strip()) for p in examples) if isinstance(examples, Prompts) else tuple(examples)
    )
    return FewShot(pairs, k, layout=layout, ask=ask, between=between, label=label)


def _records(path: str | Path) -> tuple[list[Any]]:
    records, _ = read_records(path)
    if not records:
        raise DataError("holds no example", where=str(path))
    return (records,)
