"""JSON in, with lines: strict, no key twice, no constants beyond the standard, depth limited before anything recurses."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from json import JSONDecodeError
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NoReturn

from budge.errors import MOST_PROBLEMS, Problem, SpecError
from budge.spec.document import Document, Key, place_of
from budge.spec.limits import DEEPEST, DIGITS

__all__ = ["parse_json"]

_BLANK = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None}


def parse_json(text: str, name: str = "") -> Document:
    """The document in a text, with the line of each key and item.

    Examples
    --------
    >>> parse_json('{"budge": 1}', "a.json").lines[("budge",)]
    1
    """
    reader = _Reader(text, name)
    tree, at = reader.value(reader.blank(0), ())
    at = reader.blank(at)
    if at != len(text):
        reader.stop(at, "something follows the document")
    SpecError.raise_if(reader.found[:MOST_PROBLEMS])
    return Document(tree, name, reader.lines)


@dataclass
class _Reader:
    """Reads by descent; lives for one call."""

    text: str
    name: str
    lines: dict[tuple[Key, ...], int] = field(default_factory=dict)
    found: list[Problem] = field(default_factory=list)
    _seen: tuple[int, int] = (0, 1)  # a position and its line: lines are counted forwards, once

    def line(self, at: int) -> int:
        before, line = self._seen
        if at < before:
            return self.text.count("\n", 0, at) + 1
        line += self.text.count("\n", before, at)
        self._seen = (at, line)
        return line

    def stop(self, at: int, what: str, remedy: str = "") -> NoReturn:
        line = self.text.count("\n", 0, at) + 1
        column = at - (self.text.rfind("\n", 0, at) + 1) + 1
        raise SpecError(
            f"is not valid JSON (line {line}, column {column}): {what}", where=f"{self.name}:{line}:{column}", remedy=remedy
        )

    def blank(self, at: int) -> int:
        found = _BLANK.match(self.text, at)
        assert found is not None
        return found.end()

    def value(self, at: int, path: tuple[Key, ...]) -> tuple[Any, int]:
        self.lines.setdefault(path, self.line(at))
        first = self.text[at : at + 1]
        if len(path) > DEEPEST:
            self.stop(at, "it is nested too deeply", f"a spec has at most {DEEPEST} levels")
        if first == '"':
            return self.string(at)
        if first == "{":
            return self.mapping(at, path)
        if first == "[":
            return self.sequence(at, path)
        for word, meaning in _WORDS.items():
            if self.text.startswith(word, at):
                return meaning, at + len(word)
        return self.number(at, path)

    def string(self, at: int) -> tuple[str, int]:
        try:
            text, end = scanstring(self.text, at + 1, True)
        except JSONDecodeError as error:
            self.stop(error.pos, error.msg)
        return text, end

    def number(self, at: int, path: tuple[Key, ...]) -> tuple[Any, int]:
        found = _NUMBER.match(self.text, at)
        if found is None:
            constants = ("NaN", "Infinity", "-Infinity")
            if self.text.startswith(constants, at):
                self.stop(at, "JSON has no NaN and no Infinity", 'write "inf" or "-inf" for a bound without end')
            self.stop(at, "a value is expected" if at < len(self.text) else "the text ends too early")
        digits = found[0]
        if found[1] is not None or found[2] is not None:
            return float(digits), found.end()
        if len(digits) > DIGITS:
            place = f"{self.name}:{self.line(at)} {place_of(path)}"
            self.found.append(
                Problem(
                    place, "is no number that can be used", f"a whole number of {len(digits)} digits", "use numbers below 1e308"
                )
            )
            return 0, found.end()
        return int(digits), found.end()

    def sequence(self, at: int, path: tuple[Key, ...]) -> tuple[list[Any], int]:
        items: list[Any] = []
        at = self.blank(at + 1)
        if self.text[at : at + 1] == "]":
            return items, at + 1
        while True:
            item, at = self.value(at, (*path, len(items)))
            items.append(item)
            at, ended = self.following(at, "]")
            if ended:
                return items, at

    def mapping(self, at: int, path: tuple[Key, ...]) -> tuple[dict[str, Any], int]:
        tree: dict[str, Any] = {}
        at = self.blank(at + 1)
        if self.text[at : at + 1] == "}":
            return tree, at + 1
        while True:
            if self.text[at : at + 1] != '"':
                self.stop(at, "a key in double quotes is expected")
            line = self.line(at)
            key, at = self.string(at)
            at = self.blank(at)
            if self.text[at : at + 1] != ":":
                self.stop(at, "a colon is expected")
            inner = (*path, key)
            twice = key in tree
            if twice:
                what = f"the key {key!r} stands twice, on lines {self.lines[inner]} and {line}"
                self.found.append(Problem(f"{self.name}:{line} {place_of(inner)}", what, remedy="keep one of them"))
            else:
                self.lines[inner] = line
            value, at = self.value(self.blank(at + 1), inner)
            if not twice:
                tree[key] = value
            at, ended = self.following(at, "}")
            if ended:
                return tree, at

    def following(self, at: int, end: str) -> tuple[int, bool]:
        """After an item: past the comma to the next one, or past the end."""
        at = self.blank(at)
        found = self.text[at : at + 1]
        if found == end:
            return at + 1, True
        if found != ",":
            self.stop(at, f"a comma or {end!r} is expected" if found else "the text ends too early")
        return self.blank(at + 1), False
