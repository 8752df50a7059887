"""Limits of a spec, all in one place: what is beyond them is refused before it is read further."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from budge.errors import Problem
from budge.expressions.grammar import MAX_DEPTH
from budge.expressions.tokens import MAX_LENGTH
from budge.parts import PART_CONDITIONS, PART_NAMES, PART_RULES, PART_SHARED

__all__ = [
    "CONSTRAINTS", "DEEPEST", "DIGITS", "EFFECTS", "EXPRESSIONS", "EXPRESSION_DEPTH", "EXPRESSION_LENGTH", "FEATURES", "GROUP", "LEVELS",
    "LONGEST_NAME", "PART_CONDITIONS", "PART_NAMES", "PART_RULES", "PART_SHARED", "ROWS", "SPEC_BYTES", "YAML_BYTES", "count_problems",
]  # fmt: skip

SPEC_BYTES = 1_000_000  #: bytes of a spec file in JSON or TOML
YAML_BYTES = 200_000  #: bytes of a spec file in YAML, which takes ten times as long to read
DEEPEST = 32  #: levels of nesting; a spec needs six
LONGEST_NAME = 1000  #: characters of a name; YAML itself stops at 1024
DIGITS = 400  #: of a whole number
FEATURES = 10_000  #: features of a spec
LEVELS = 10_000  #: levels of a category, or values of a distribution
CONSTRAINTS = 2000  #: constraints of a spec
GROUP = 2000  #: features that one constraint names
ROWS = 2000  #: rows of values that one constraint lists
EFFECTS = 1000  #: effects of a spec, and latent draws
EXPRESSION_LENGTH = MAX_LENGTH  #: characters of an expression
EXPRESSION_DEPTH = MAX_DEPTH  #: brackets and calls inside each other
EXPRESSIONS = 100_000  #: characters of all expressions of a spec together


def count_problems(tree: Any) -> list[Problem]:
    """Return a problem for each count of a spec that is beyond its limit.

    Examples
    --------
    >>> print(count_problems({"features": {str(i): "fixed" for i in range(10_001)}})[0])
    features: a spec has at most 10,000 features (got 10001); split it, or build the model in Python
    """
    if not isinstance(tree, dict):
        return []
    return [
        Problem(where, f"{what} at most {most:,} {noun}", size, "split it, or build the model in Python")
        for where, what, most, noun, size in _counts(tree)
        if size > most
    ]


def _counts(tree: dict[Any, Any]) -> Iterator[tuple[str, str, int, str, int]]:
    """Yield (place, whose count, limit, what is counted, how many)."""
    features, constraints = tree.get("features"), tree.get("constraints")
    letters = 0
    yield "features", "a spec has", FEATURES, "features", _size(features)
    for name, body in features.items() if isinstance(features, dict) else ():
        if isinstance(body, dict):
            yield f"features.{name}.levels", "a category has", LEVELS, "levels", _size(body.get("levels"))
            drawn = body.get("distribution")
            for values in drawn.values() if isinstance(drawn, dict) else ():
                yield f"features.{name}.distribution", "a distribution lists", LEVELS, "values", _size(values)
    yield "constraints", "a spec has", CONSTRAINTS, "constraints", _size(constraints)
    for i, item in enumerate(constraints if isinstance(constraints, list) else ()):
        for body in item.values() if isinstance(item, dict) else ():
            letters += _letters(body)
            for key, value in body.items() if isinstance(body, dict) else ():
                letters += _letters(value)
                rows = key in ("values", "reachable")
                yield f"constraints[{i}]", "a constraint lists", ROWS if rows else GROUP, "rows" if rows else "features", _size(value)
    for key in ("latent", "effects"):
        part = tree.get(key)
        yield key, "a spec has", EFFECTS, "effects" if key == "effects" else "latent draws", _size(part)
        for body in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
            letters += sum(map(_letters, body.values())) if isinstance(body, dict) else _letters(body)
    yield "", "a spec has", EXPRESSIONS, "characters of expressions", letters


def _size(value: Any) -> int:
    return len(value) if isinstance(value, list | dict) else 0


def _letters(value: Any) -> int:
    """Return the length of a text; one that is too long by itself is refused where it is parsed, with its place."""
    return min(len(value), EXPRESSION_LENGTH) if isinstance(value, str) else 0
