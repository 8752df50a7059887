"""Frames around a prompt: role-play and other templates, prefixes and suffixes. The prompt itself stays to the letter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from budge.errors import Problem, SpecError
from budge.llm.interactions.base import Interaction
from budge.llm.interactions.checks import as_texts, name_problems, text_problems
from budge.llm.prompt_files import read_text
from budge.llm.prompts import Prompt

__all__ = ["ROLES", "SLOT", "Affix", "Template", "prefix", "roleplay", "suffix", "template"]

#: Where the prompt goes. It is put in once and not read again, so that braces in prompts, and other braces here, are only braces.
SLOT = "{prompt}"

#: Harmless scenes, in which a request is spoken by somebody else.
ROLES = (
    "Let us play a scene. You are an old librarian who knows every book in the house, and I am a visitor. I ask you: {prompt}",
    "Imagine that you are the narrator of a radio play. A listener calls in and says: {prompt} Answer as the narrator would.",
    "You are an actor who plays a patient teacher. A pupil raises a hand and says: {prompt} Stay in the role.",
    "In this story you are the captain of a small ship, and the cabin boy asks: {prompt} What does the captain say?",
    "Pretend to be a guide in a museum. Somebody in the group asks: {prompt} Reply in the guide's own words.",
)


@dataclass(frozen=True)
class Template(Interaction):
    """One of several frames, each as likely as the others."""

    kind: ClassVar[str] = "template"

    texts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", as_texts(self.texts))
        problems = text_problems("template", self.texts, what="template")
        if not problems:
            problems = [
                Problem("template", f"must hold {SLOT} exactly once, and holds it {t.count(SLOT)} times", t)
                for t in self.texts
                if t.count(SLOT) != 1
            ]
        SpecError.raise_if(problems)

    def rewrite(self, prompt: Prompt, rng: np.random.Generator) -> str:
        """The prompt in one of the frames, uniformly."""
        return framed(self.texts[int(rng.integers(len(self.texts)))], prompt.text)

    def outcomes(self, prompt: Prompt) -> Iterator[tuple[str, float]]:
        """One text a frame."""
        return ((framed(text, prompt.text), 1 / len(self.texts)) for text in self.texts)

    def describe(self) -> str:
        """One English sentence."""
        if len(self.texts) == 1:
            return f"The prompt is put into the frame {self.texts[0]!r}."
        return f"The prompt is put into one of {len(self.texts)} frames, each as likely."


@dataclass(frozen=True)
class Affix(Interaction):
    """One of several texts before or after the prompt, each as likely as the others."""

    kind: ClassVar[str] = "affix"

    texts: tuple[str, ...] = ()
    where: str = "after"
    between: str = field(default=" ", kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", as_texts(self.texts))
        problems = text_problems(self.kind, self.texts) + name_problems("affix.where", (self.where,), ("before", "after"))
        if not isinstance(self.between, str):
            problems.append(Problem("affix.between", "must be text", self.between))
        SpecError.raise_if(problems)

    @property
    def name(self) -> str:
        """The label, or "prefix" or "suffix"."""
        return self.label or ("prefix" if self.where == "before" else "suffix")

    def _joined(self, text: str, prompt: Prompt) -> str:
        return f"{text}{self.between}{prompt.text}" if self.where == "before" else f"{prompt.text}{self.between}{text}"

    def rewrite(self, prompt: Prompt, rng: np.random.Generator) -> str:
        """The prompt with one of the texts, uniformly."""
        return self._joined(self.texts[int(rng.integers(len(self.texts)))], prompt)

    def outcomes(self, prompt: Prompt) -> Iterator[tuple[str, float]]:
        """One text an affix."""
        return ((self._joined(text, prompt), 1 / len(self.texts)) for text in self.texts)

    def describe(self) -> str:
        """One English sentence."""
        which = repr(self.texts[0]) if len(self.texts) == 1 else f"one of {len(self.texts)} texts, each as likely,"
        return f"{which[0].upper()}{which[1:]} stands {self.where} the prompt."


def framed(frame: str, text: str) -> str:
    """The text in the frame's one slot."""
    before, after = frame.split(SLOT)
    return before + text + after


def template(texts: str | Sequence[str] = (), *, file: str | Path = "", label: str = "") -> Template:
    """Frames that hold ``{prompt}`` exactly once; of several, one is drawn uniformly.

    Parameters
    ----------
    texts
        One frame or several.
    file
        A text file, which is one frame, instead.

    Examples
    --------
    >>> from budge.llm import Prompt
    >>> template("Be brief. {prompt}").enumerate(Prompt("a", "What is {x}?"))
    ('Be brief. What is {x}?',)
    """
    if file:
        texts = (*_sequence(texts), read_text(Path(file)).rstrip("\n"))
    return Template(as_texts(texts), label=label)


def _sequence(texts: str | Sequence[str]) -> tuple[str, ...]:
    return (texts,) if isinstance(texts, str) else tuple(texts)


def roleplay(roles: str | Sequence[str] = ROLES, *, label: str = "roleplay") -> Template:
    """The request is spoken in a scene; of several scenes, one is drawn uniformly.

    Examples
    --------
    >>> from budge.llm import Prompt
    >>> roleplay().reachable(Prompt("a", "Where is Lima?"))
    5
    """
    return Template(as_texts(roles), label=label)


def prefix(texts: str | Sequence[str], *, between: str = " ", label: str = "") -> Affix:
    """A text before the prompt; of several, one is drawn uniformly."""
    return Affix(as_texts(texts), "before", between=between, label=label)


def suffix(texts: str | Sequence[str], *, between: str = " ", label: str = "") -> Affix:
    """A text after the prompt; of several, one is drawn uniformly.

    Examples
    --------
    >>> from budge.llm import Prompt
    >>> suffix(["Thanks.", "Please!"]).law(Prompt("a", "Sing."))
    {'Sing. Thanks.': 0.5, 'Sing. Please!': 0.5}
    """
    return Affix(as_texts(texts), "after", between=between, label=label)
