"""A spec as it was read: plain values, and the line on which each of them stands."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from budge.errors import Problem, SpecError
from budge.spec.limits import DEEPEST, LONGEST_NAME

__all__ = ["Document", "Key", "place_of", "plain_tree"]

Key = str | int | float | bool | None


@dataclass(frozen=True)
class Document:
    """The content of a spec, the name of its file (empty for a mapping), and the line of each key and item.

    Examples
    --------
    >>> document = Document({"features": {"age": {"bounds": [9, 1]}}}, "loan.yaml", {("features", "age"): 3})
    >>> document.where("features.age.bounds")
    'loan.yaml:3 features.age.bounds'
    """

    tree: Any
    name: str = ""
    lines: Mapping[tuple[Key, ...], int] = field(default_factory=dict)

    def where(self, place: str) -> str:
        """The place with the file's name and line before it."""
        if not self.name:
            return place
        line = self._line(place)
        return f"{self.name}{f':{line}' if line else ''}{f' {place}' if place else ''}"

    def moved(self, problem: Problem) -> Problem:
        """The problem with the file's name and line in its place."""
        return replace(problem, where=self.where(problem.where))

    def error(self, problems: Sequence[Problem]) -> SpecError:
        """All problems as one error, in the order of the lines."""
        ranked = sorted(problems, key=lambda p: self._line(p.where) or 0) if self.lines else problems
        return SpecError([self.moved(p) for p in ranked])

    def _line(self, place: str) -> int | None:
        """The line of the innermost part of the place that has one; names may hold dots, so keys are matched, not split."""
        node, rest = self.tree, place
        path: tuple[Key, ...] = ()
        found = self.lines.get(())
        while rest:
            rest = rest.removeprefix(".")
            step = _step(node, rest)
            if step is None:
                break
            key, length = step
            node, rest, path = node[key], rest[length:], (*path, key)
            found = self.lines.get(path, found)
        return found


def _step(node: Any, rest: str) -> tuple[Any, int] | None:
    """The longest key of the node with which the rest begins, and how long it is."""
    if isinstance(node, dict):
        fitting = [k for k in node if rest.startswith(str(k)) and rest[len(str(k)) :][:1] in ("", ".", "[")]
        key = max(fitting, key=lambda k: len(str(k)), default=None)
        return None if key is None else (key, len(str(key)))
    if isinstance(node, list) and rest.startswith("["):
        inside = rest[1:].split("]", 1)[0]
        if inside.isdecimal() and int(inside) < len(node):
            return int(inside), len(inside) + 2
    return None


def place_of(path: Sequence[Any]) -> str:
    """A path as text.

    Examples
    --------
    >>> place_of(["constraints", 2, "one_hot", "features"])
    'constraints[2].one_hot.features'
    """
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) and not isinstance(step, bool) else f".{step}" if text else str(step)
    return text


def plain_tree(value: Any, found: list[Problem], path: tuple[Any, ...] = ()) -> Any:
    """The value with plain types only (dict, list, str, int, float, bool, None); what is none of these is a problem."""

    def wrong(what: str, remedy: str, got: Any) -> None:
        found.append(Problem(place_of(path), what, got, remedy))

    if len(path) > DEEPEST:
        wrong("is nested too deeply", f"a spec has at most {DEEPEST} levels", type(value).__name__)
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if _halved(value):
            wrong("is not a text", "half a surrogate pair stands in it", value)
        return str(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int):
        if value.bit_length() > 1023 or math.isinf(float(value)):
            wrong(
                "is no number that can be used",
                "use numbers below 1e308",
                f"a whole number of about {value.bit_length() * 0.30103:.0f} digits",
            )
            return 0
        return int(value)
    if isinstance(value, Mapping):
        tree: dict[Any, Any] = {}
        for key, item in value.items():
            key = key.item() if isinstance(key, np.generic) else key
            if not isinstance(key, str | int | float | bool):
                wrong("a key is a text", "quote it", key)
                continue
            if isinstance(key, str) and _halved(key):
                wrong("a key is not a text", "half a surrogate pair stands in it", key)
                continue
            if isinstance(key, str) and len(key) > LONGEST_NAME:
                wrong(f"a name is longer than {LONGEST_NAME} characters", "shorten it", key)
                continue
            tree[key] = plain_tree(item, found, (*path, key))
        return tree
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain_tree(item, found, (*path, i)) for i, item in enumerate(value)]
    wrong("a spec holds texts, numbers, truth values, lists and mappings", "", type(value).__name__)
    return None


_HALF = re.compile("[\ud800-\udfff]")


def _halved(text: str) -> bool:
    return _HALF.search(text) is not None
