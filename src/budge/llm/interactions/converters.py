"""Converters: a function from text to text. Some are built in, others come from Python, or from installed packages by entry point."""

from __future__ import annotations

import base64
import codecs
import inspect
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar

import numpy as np

from budge.errors import InputError, SpecError, nearest
from budge.llm.interactions.base import Ask, Interaction
from budge.llm.prompts import Prompt

__all__ = ["GROUP", "Converter", "convert"]

GROUP = "budge.converters"  #: the entry points in which packages offer converters: name = "module:function"
Function = Callable[[str], str | Awaitable[str]]

_CODES = (
    "a.- b-... c-.-. d-.. e. f..-. g--. h.... i.. j.--- k-.- l.-.. m-- n-. o--- p.--. q--.- r.-. s... t- u..- v...- w.-- x-..- y-.-- z--.. "
    "0----- 1.---- 2..--- 3...-- 4....- 5..... 6-.... 7--... 8---.. 9----. ..-.-.- ,--..-- ?..--.. !-.-.-- /-..-. (-.--. )-.--.- &.-... "
    ":---... ;-.-.-. =-...- +.-.-. --....- _..--.- \".-..-. '.----. @.--.-."
)
_MORSE = {code[0]: code[1:] for code in re.split(" ", _CODES)}


def _morse(text: str) -> str:
    return " / ".join(" ".join(_MORSE.get(letter, letter) for letter in word) for word in text.lower().split())


def _zero_width(text: str) -> str:
    """Put a zero-width space between any two characters of a word: the text looks the same and has other tokens."""
    return " ".join("\u200b".join(word) for word in text.split(" "))


def _bidi(text: str) -> str:
    """Write each line backwards within a right-to-left override, which is displayed as it was."""
    return "\n".join(f"\u202e{line[::-1]}\u202c" if line else line for line in text.split("\n"))


BUILT_IN: Mapping[str, Callable[[str], str]] = {
    "base64": lambda text: base64.b64encode(text.encode("utf-8", "surrogatepass")).decode(), "rot13": lambda text: codecs.encode(text, "rot13"),
    "morse": _morse, "zero_width": _zero_width, "bidi": _bidi,
}  # fmt: skip


@dataclass(frozen=True)
class Converter(Interaction):
    """What a function makes of the text. `source` is the package and version that a function by entry point comes from."""

    kind: ClassVar[str] = "convert"

    called: str = ""
    source: str = field(default="", kw_only=True)
    function: Function = field(default=str, kw_only=True, compare=False)

    @property
    def name(self) -> str:
        """The label, or the name of the function."""
        return self.label or self.called

    def _outside(self) -> tuple[str, ...]:
        return ("function",)

    def to_dict(self) -> dict[str, Any]:
        """The record, which names the function and cannot hold it."""
        return {key: value for key, value in super().to_dict().items() if key != "function"}

    @classmethod
    def from_record(cls, given: Mapping[str, Any]) -> Converter:
        """Return the converter of this name; one from Python cannot be read from a record."""
        made = convert(str(given.get("called")), label=str(given.get("label", "")))
        if made.source != given.get("source", ""):
            raise SpecError("comes from another package or version", where=f"convert.{made.called}", got=[given.get("source"), made.source])
        return made

    def rewrite(self, prompt: Prompt, rng: np.random.Generator) -> str:
        """What the function returns."""
        return self._text(self.function(prompt.text))

    async def apply(self, prompt: Prompt, rng: np.random.Generator, ask: Ask) -> str:
        """What the function returns, awaited where it is asynchronous."""
        made = self.function(prompt.text)
        return self._text(await made if inspect.isawaitable(made) else made)

    def _text(self, made: Any) -> str:
        if inspect.isawaitable(made):
            if inspect.iscoroutine(made):
                made.close()
            raise InputError("is asynchronous: it can be used in a run", where=self.name, remedy="await apply(prompt, rng, ask)")
        if not isinstance(made, str):
            raise InputError("a converter returns a text", where=self.name, got=made)
        return made

    def outcomes(self, prompt: Prompt) -> Iterator[tuple[str, float]] | None:
        """The one text of a converter that is built in; others may be random."""
        return iter([(self.rewrite(prompt, np.random.default_rng(0)), 1.0)]) if self.called in BUILT_IN and not self.source else None

    def describe(self) -> str:
        """One English sentence."""
        return f"The prompt is converted by {self.called}{f' of {self.source}' if self.source else ''}."


def convert(converter: str | Function, *, name: str = "", label: str = "") -> Converter:
    """An interaction from a converter: a function from text to text, or the name of one.

    Parameters
    ----------
    converter
        "base64", "rot13", "morse", "zero_width", "bidi", the name of an entry point in the group ``budge.converters`` of an installed package, or a
        function, which may be asynchronous.
    name
        Of a function: stands for it in tables and in the key of its draws; its own name by default. Give a changed function another name.

    Examples
    --------
    >>> from budge.llm import Prompt
    >>> convert("base64").law(Prompt("a", "Name a river."))
    {'TmFtZSBhIHJpdmVyLg==': 1.0}
    >>> convert(str.swapcase).draw("Go", 1, np.random.default_rng(0))
    ['gO']
    """
    if callable(converter):
        called = name or getattr(converter, "__name__", "")
        if not called or called == "<lambda>":
            raise SpecError("needs a name", where="convert.name", got=called, remedy="the name stands for the function: change both together")
        if called in BUILT_IN:
            raise SpecError("is the name of a built-in converter", where="convert.name", got=called, remedy="give it another name")
        return Converter(called, source="Python", function=converter, label=label)
    found = {point.name: point for point in entry_points(group=GROUP)}
    if converter in BUILT_IN:
        return Converter(converter, function=BUILT_IN[converter], label=label)
    if converter not in found:
        raise SpecError("no such converter", where="convert", got=converter, remedy=nearest(str(converter), [*BUILT_IN, *found]))
    return Converter(converter, source=_source(found[converter]), function=_loaded(found[converter]), label=label)


def _source(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value


def _loaded(point: EntryPoint) -> Function:
    try:
        function = point.load()
    except Exception as error:  # whatever another package raises when it is imported
        raise SpecError(f"the converter cannot be loaded: {type(error).__name__}: {error}", where=f"convert.{point.name}", got=point.value) from error
    if not callable(function):
        raise SpecError("a converter is a function from text to text", where=f"convert.{point.name}", got=function)
    made: Function = function
    return made
