"""Checks that interactions share: numbers, lists of texts, one of several names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from budge.errors import Problem, nearest

__all__ = ["as_texts", "count_problems", "name_problems", "rate_problems", "text_problems"]


def as_texts(value: object) -> Any:
    """One text is a list of one, and lists are tuples; anything else stays, to be refused."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list | tuple | set | frozenset) else value


def rate_problems(where: str, rate: object) -> list[Problem]:
    """A share between 0 and 1."""
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
        return [Problem(where, "must be a share between 0 and 1", rate)]
    return []


def count_problems(where: str, value: object, *, least: int = 0, none: bool = False) -> list[Problem]:
    """A whole number that is not below `least`."""
    if none and value is None:
        return []
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        return [Problem(where, f"must be a whole number, {least} or more", value)]
    return []


def name_problems(where: str, names: object, known: Sequence[str]) -> list[Problem]:
    """At least one of the known names, each once."""
    if not isinstance(names, tuple) or not names:
        return [Problem(where, "must be a list of names", names, f"of {', '.join(known)}")]
    wrong = [Problem(where, "no such name", name, nearest(name, known)) for name in names if name not in known]
    if len(set(names)) < len(names):
        wrong.append(Problem(where, "names are repeated", list(names)))
    return wrong


def text_problems(where: str, texts: object, *, what: str = "text") -> list[Problem]:
    """At least one text, none empty, none twice (it would be drawn twice as often without saying so)."""
    if not isinstance(texts, tuple) or not texts or not all(isinstance(t, str) for t in texts):
        return [Problem(where, f"must be a {what} or a list of them", texts)]
    wrong = [Problem(where, f"a {what} is empty", t) for t in texts if not t.strip()]
    if len(set(texts)) < len(texts):
        wrong.append(Problem(where, f"a {what} is repeated", _first_twin(texts)))
    return wrong


def _first_twin(texts: Sequence[str]) -> str:
    return next(t for i, t in enumerate(texts) if t in texts[:i])
