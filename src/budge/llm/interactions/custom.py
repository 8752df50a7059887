"""Interactions of the caller's own: a function of a text and a generator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from budge.errors import InputError, Problem, SpecError
from budge.llm.interactions.asked import Checked
from budge.llm.interactions.checks import as_texts
from budge.llm.interactions.spans import kept_sentence
from budge.llm.prompts import Prompt

__all__ = ["Custom", "custom"]

Rewriter = Callable[[str, np.random.Generator], str]


def _same(text: str, rng: np.random.Generator) -> str:
    return text


@dataclass(frozen=True)
class Custom(Checked):
    """What a function makes of the text, given that it keeps what must be kept."""

    kind: ClassVar[str] = "custom"

    function: Rewriter = field(default=_same, compare=False)
    called: str = ""
    sentence: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        problems = self._check_fields()
        if not callable(self.function):
            problems.append(Problem("custom.function", "must be a function of a text and a generator", self.function))
        if not isinstance(self.called, str) or not self.called.strip():
            problems.append(
                Problem("custom.name", "needs a name", self.called, "the name stands for the function: change both together")
            )
        SpecError.raise_if(problems)

    @property
    def name(self) -> str:
        """The label, or the function's name."""
        return self.label or self.called

    def _outside(self) -> tuple[str, ...]:
        return ("function", "sentence")

    def to_dict(self) -> dict[str, Any]:
        """The record, which names the function and cannot hold it."""
        return {k: v for k, v in super().to_dict().items() if k != "function"}

    @classmethod
    def from_record(cls, given: Mapping[str, Any]) -> Custom:
        """Refused: no file that is read can name code to run."""
        raise SpecError(
            "a function cannot be read from a record", where="custom", got=given.get("called"), remedy="build it in Python"
        )

    def rewrite(self, prompt: Prompt, rng: np.random.Generator) -> str:
        """The first of a few draws that keeps what must be kept."""
        faults: list[str] = []
        for _ in range(self.tries):
            text = self.function(prompt.text, rng)
            fault = self.fault(prompt, text)
            if not isinstance(text, str):
                raise InputError("the function must return a text", where=self.name, got=text)
            if not fault:
                return text
            faults.append(fault)
        raise self._refused(prompt, faults)

    def describe(self) -> str:
        """One English sentence."""
        return (
            self.sentence or f"The prompt is rewritten by the function {self.called}{kept_sentence(self.keep, self.keep_words)}."
        )


def custom(
    function: Rewriter, *, name: str, keep: Sequence[str] = (), keep_words: Sequence[str] = (), most: int | None = None, tries: int = 20,
    sentence: str = "",
) -> Custom:  # fmt: skip
    """An interaction from a function ``f(text, rng)`` that returns a text.

    Parameters
    ----------
    function
        Must take all its randomness from the generator, so that a draw can be made again.
    name
        Stands for the function in tables and in the key of its draws: give a changed function another name.
    keep, keep_words, most
        What a rewrite must keep, and how many words may differ. Rewrites that do not are drawn again, at most `tries` times:
        the law of a draw is the function's, given that the rewrite will do.
    sentence
        What it does, in English.

    Examples
    --------
    >>> import numpy as np
    >>> from budge.llm import Prompt
    >>> shout = custom(lambda text, rng: text + "!" * int(rng.integers(1, 4)), name="shout")
    >>> shout.rewrite(Prompt("a", "Go"), np.random.default_rng(0))
    'Go!!!'
    """
    return Custom(function, name, keep=as_texts(keep), keep_words=as_texts(keep_words), most=most, tries=tries, sentence=sentence)
