"""Which interactions are known by name, on the command line and in records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from budge.errors import InputError
from budge.llm.interactions.base import Interaction
from budge.llm.written import Family

__all__ = ["FAMILY", "as_interaction", "interaction_from_dict", "parse_interaction"]

#: Name → module; a new interaction is a line here.
BUILDERS = {
    "misspell": "misspelling", "typos": "misspelling", "case": "letters", "mixed_case": "letters", "homoglyphs": "letters", "leet": "letters",
    "whitespace": "spacing", "punctuation": "spacing", "template": "templates", "roleplay": "templates", "prefix": "templates",
    "suffix": "templates", "few_shot": "few_shot", "rewrites": "rewrites", "ask_model": "asked", "paraphrase": "asked", "translate": "asked",
    "tense": "asked", "convert": "converters",
    "one_of": "combine", "unchanged": "combine", "options": "prompt_fields", "passages": "prompt_fields", "system": "prompt_fields",
}  # fmt: skip
#: Kind in a record → module and class.
KINDS = {
    "misspell": ("misspelling", "Misspell"), "case": ("letters", "Case"), "mixed_case": ("letters", "MixedCase"),
    "homoglyphs": ("letters", "Lookalikes"), "whitespace": ("spacing", "Whitespace"), "punctuation": ("spacing", "Punctuation"),
    "template": ("templates", "Template"), "affix": ("templates", "Affix"), "few_shot": ("few_shot", "FewShot"),
    "rewrites": ("rewrites", "Rewrites"), "ask_model": ("asked", "AskModel"), "custom": ("custom", "Custom"), "chain": ("combine", "Chain"),
    "one_of": ("combine", "OneOf"), "unchanged": ("combine", "Unchanged"), "options": ("prompt_fields", "OptionOrder"),
    "passages": ("prompt_fields", "PassageOrder"), "convert": ("converters", "Converter"), "system": ("prompt_fields", "SystemMessage"),
}  # fmt: skip

FAMILY = Family(
    "interaction",
    "budge.llm.interactions",
    BUILDERS,
    KINDS,
    joins={"BitOr": lambda a, b: a | b},
    nested=("one_of",),
)


def parse_interaction(text: str) -> Interaction:
    """The interaction that a text describes, as on the command line.

    A text is ``name(arguments)``; several joined by ``|`` are done one after the other, and ``label = …`` names the whole.

    Examples
    --------
    >>> print(parse_interaction("few typos = typos(0.2, most=3) | case(upper)").describe())
    Traceback (most recent call last):
    ...
    budge.errors.SpecError: cannot be read as one interaction (got 'few typos = typos(0.2, most=3) | case(upper)'); write it like misspell()
    >>> parse_interaction("few-typos = typos(0.2, most=3) | case(upper)").name
    'few-typos'
    """
    made: Interaction = FAMILY.parse(text)
    return made


def interaction_from_dict(record: Mapping[str, Any]) -> Interaction:
    """The interaction that `to_dict` wrote.

    Examples
    --------
    >>> from budge.llm import typos
    >>> interaction_from_dict(typos(most=2).to_dict()) == typos(most=2)
    True
    """
    made: Interaction = FAMILY.from_dict(record)
    return made


def as_interaction(value: Interaction | str | Mapping[str, Any]) -> Interaction:
    """An interaction as it is, from its text or from its record."""
    if isinstance(value, Interaction):
        return value
    if isinstance(value, str):
        return parse_interaction(value)
    if isinstance(value, Mapping):
        return interaction_from_dict(value)
    raise InputError("is no interaction", where="interaction", got=value, remedy="such as misspell(0.1), or its text")
