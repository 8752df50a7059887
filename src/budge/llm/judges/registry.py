"""Which judges are known by name, on the command line and in records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from budge.errors import InputError
from budge.llm.judges.base import Judge
from budge.llm.written import Family

__all__ = ["FAMILY", "as_judge", "judge_from_dict", "parse_judge"]

#: Name → module; a new judge is a line here.
BUILDERS = {
    "match": "matching", "contains": "matching", "choice": "matching", "pattern": "pattern", "refusal": "refusal", "profanity": "classifier",
    "model_judge": "asked", "negate": "negation", "scorer": "scorers",
}  # fmt: skip
KINDS = {
    "match": ("matching", "Match"), "contains": ("matching", "Contains"), "choice": ("matching", "Choice"), "pattern": ("pattern", "PatternJudge"),
    "refusal": ("refusal", "Refusal"), "classifier": ("classifier", "Classifier"), "model": ("asked", "ModelJudge"), "not": ("negation", "Negated"),
    "scorer": ("scorers", "InspectScorer"),
}  # fmt: skip

FAMILY = Family(
    "judge",
    "budge.llm.judges",
    BUILDERS,
    KINDS,
    turns=lambda judge: ~judge,
    nested=("negate",),
    known_as={"model": "model_judge"},
)


def parse_judge(text: str) -> Judge:
    """The judge that a text describes, as on the command line: ``refusal``, ``not refusal``, ``pattern('yes|no')``, ``model(name)``.

    Examples
    --------
    >>> parse_judge("not refusal(within=100)").name
    'not refusal'
    >>> parse_judge("refusl")
    Traceback (most recent call last):
    ...
    budge.errors.SpecError: no such judge (got 'refusl'); did you mean 'refusal'?
    """
    made: Judge = FAMILY.parse(text)
    return made


def judge_from_dict(record: Mapping[str, Any]) -> Judge:
    """The judge that `to_dict` wrote."""
    made: Judge = FAMILY.from_dict(record)
    return made


def as_judge(value: Judge | str | Mapping[str, Any]) -> Judge:
    """A judge as it is, from its text or from its record."""
    if isinstance(value, Judge):
        return value
    if isinstance(value, str):
        return parse_judge(value)
    if isinstance(value, Mapping):
        return judge_from_dict(value)
    if callable(value):
        from budge.llm.judges.scorers import scorer

        return scorer(value)
    raise InputError("is no judge", where="judge", got=value, remedy="such as refusal(), or its text")
