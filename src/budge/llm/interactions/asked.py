"""Rewrites that a language model makes: paraphrases, translations, or whatever it is told to do.

A draw is one answer of that model, given that it kept what must be kept: an answer that lost a number, some code or a word is asked
for again, a few times. If none will do, the draw is not made and says so (`DrawError`); it is never replaced by the prompt itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from budge.errors import DrawError, InputError, Problem, SpecError
from budge.llm.interactions.base import Ask, Interaction
from budge.llm.interactions.checks import as_texts, count_problems
from budge.llm.interactions.spans import USUALLY_KEPT, keep_problems, kept_sentence, lost
from budge.llm.interactions.templates import SLOT, framed
from budge.llm.prompt_files import read_text
from budge.llm.prompts import Prompt

__all__ = ["AskModel", "Checked", "ask_model", "paraphrase", "tense", "translate", "word_edits"]

_PARAPHRASE = (
    "Rewrite the request below in other words. Keep its meaning, every number, and all code exactly as they are. "
    "Do not answer the request. Reply with the rewritten request only.\n\nRequest: {prompt}"
)
_TENSE = (
    "Put the request below into the past tense, as a question about how something used to be done. Keep its subject, every number, and all code "
    "exactly as they are. Do not answer the request. Reply with the rewritten request only.\n\nRequest: {prompt}"
)
_TRANSLATE = (
    "Translate the text below into {language}. Keep every number and all code exactly as they are. "
    "Do not answer it. Reply with the translation only.\n\nText: {prompt}"
)


@dataclass(frozen=True)
class Checked(Interaction):
    """Rewrites that are made elsewhere and checked here: what must be kept, how many words may change, how often to try."""

    most: int | None = field(default=None, kw_only=True)
    keep: tuple[str, ...] = field(default=USUALLY_KEPT, kw_only=True)
    keep_words: tuple[str, ...] = field(default=(), kw_only=True)
    tries: int = field(default=3, kw_only=True)

    def _check_fields(self) -> list[Problem]:
        object.__setattr__(self, "keep", as_texts(self.keep))
        object.__setattr__(self, "keep_words", as_texts(self.keep_words))
        problems = count_problems(f"{self.kind}.most", self.most, none=True) + count_problems(
            f"{self.kind}.tries", self.tries, least=1
        )
        return problems + keep_problems(self.kind, self.keep, self.keep_words)

    def fault(self, prompt: Prompt, text: object) -> str:
        """Why a rewrite will not do; "" if it will."""
        if not isinstance(text, str):
            return f"it is no text but {type(text).__name__}"
        if not text.strip():
            return "it is empty"
        gone = lost(prompt.text, text, self.keep, self.keep_words)
        if gone:
            return f"it lost {', '.join(repr(g) for g in gone[:3])}"
        if self.most is not None and (edits := word_edits(prompt.text, text)) > self.most:
            return f"{edits} words differ, at most {self.most} may"
        return ""

    def _refused(self, prompt: Prompt, faults: Sequence[str]) -> DrawError:
        what = f"no rewrite in {len(faults)} tries will do: {'; '.join(dict.fromkeys(faults))}"
        return DrawError(
            what, where=f"{self.name}, prompt {prompt.id}", remedy="keep less, allow more tries, or mend the rewriter"
        )


@dataclass(frozen=True)
class AskModel(Checked):
    """What a model answers to an instruction with the prompt in it."""

    kind: ClassVar[str] = "ask_model"

    instruction: str = _PARAPHRASE
    model: str = ""
    language: str = field(default="", kw_only=True)  # of the rewrite, where it is another one than the prompt's

    def __post_init__(self) -> None:
        problems = self._check_fields()
        if not isinstance(self.instruction, str) or self.instruction.count(SLOT) != 1:
            problems.append(Problem("ask_model.instruction", f"must hold {SLOT} exactly once", self.instruction))
        if not isinstance(self.model, str):
            problems.append(Problem("ask_model.model", "must be the name of a model", self.model))
        SpecError.raise_if(problems)

    def rewrite(self, prompt: Prompt, rng: np.random.Generator) -> str:
        """Not without a model."""
        raise InputError(
            "a language model has to be asked for this rewrite", where=self.name, remedy="await apply(prompt, rng, ask)"
        )

    async def apply(self, prompt: Prompt, rng: np.random.Generator, ask: Ask) -> str:
        """The first answer that keeps what must be kept."""
        faults: list[str] = []
        for _ in range(self.tries):
            text = await ask(self.model, framed(self.instruction, prompt.text))
            fault = self.fault(prompt, text)
            if not fault:
                return text.strip()
            faults.append(fault)
        raise self._refused(prompt, faults)

    def describe(self) -> str:
        """One English sentence."""
        most = f", at most {self.most} words may differ" if self.most is not None else ""
        told = self.instruction.splitlines()[0]
        return f"{self.model or 'A model'} rewrites the prompt (told: {told!r}){most}{kept_sentence(self.keep, self.keep_words)}."


def word_edits(before: str, after: str) -> int:
    """How many words must be put in, left out or replaced to make one text the other.

    Examples
    --------
    >>> word_edits("is it warm in May", "was it very warm in May")
    2
    """
    a, b = before.split(), after.split()
    row = list(range(len(b) + 1))
    for i, word in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (word != other))
    return row[-1]


def ask_model(
    instruction: str = _PARAPHRASE, *, model: str = "", file: str | Path = "", keep: Sequence[str] = USUALLY_KEPT, keep_words: Sequence[str] = (),
    most: int | None = None, tries: int = 3, language: str = "", label: str = "",
) -> AskModel:  # fmt: skip
    """A model rewrites the prompt as an instruction says.

    Parameters
    ----------
    instruction
        A text that holds ``{prompt}`` exactly once; or `file`, which holds such a text.
    model
        The model's name as the run knows it; "" is the run's rewriting model.
    keep, keep_words, most
        What a rewrite must keep, and how many words of it may differ.
    tries
        How often the model is asked for one draw.
    language
        The language of the rewrite, where it is another one than the prompt's: a judge that reads certain languages is refused where it does not
        read this one.
    """
    text = read_text(Path(file)).rstrip("\n") if file else instruction
    return AskModel(text, model, keep=as_texts(keep), keep_words=as_texts(keep_words), most=most, tries=tries, language=language, label=label)


def paraphrase(
    model: str = "",
    *,
    keep: Sequence[str] = USUALLY_KEPT,
    keep_words: Sequence[str] = (),
    tries: int = 3,
    label: str = "paraphrase",
) -> AskModel:
    """A model says the same in other words.

    Examples
    --------
    >>> import asyncio, numpy as np
    >>> from budge.llm import Prompt
    >>> async def ask(model, text):
    ...     return "How many days do 3 weeks have?"
    >>> asyncio.run(paraphrase().apply(Prompt("a", "3 weeks are how many days?"), np.random.default_rng(0), ask))
    'How many days do 3 weeks have?'
    """
    return ask_model(_PARAPHRASE, model=model, keep=keep, keep_words=keep_words, tries=tries, label=label)


def tense(model: str = "", *, keep: Sequence[str] = USUALLY_KEPT, keep_words: Sequence[str] = (), tries: int = 3, label: str = "tense") -> AskModel:
    """A model puts the question into the past tense."""
    return ask_model(_TENSE, model=model, keep=keep, keep_words=keep_words, tries=tries, label=label)


def translate(
    language: str,
    model: str = "",
    *,
    keep: Sequence[str] = ("code", "urls"),
    keep_words: Sequence[str] = (),
    tries: int = 3,
    label: str = "",
) -> AskModel:
    """A model translates the prompt. Numbers may be written otherwise in another language, so that they are not checked."""
    if not isinstance(language, str) or not language.strip() or "{" in language:
        raise SpecError("must be the name of a language", where="translate.language", got=language)
    text = _TRANSLATE.replace("{language}", language)
    return ask_model(text, model=model, keep=keep, keep_words=keep_words, tries=tries, language=language.lower(), label=label or language.lower())
