"""TOML in: the standard library's reader, with the lines of tables and keys found beside it."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from budge.errors import SpecError
from budge.spec.document import Document, Key
from budge.spec.limits import DEEPEST

__all__ = ["parse_toml"]

_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_DOTTED = rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*"
_TABLE = re.compile(rf"[ \t]*(\[\[?)[ \t]*({_DOTTED})[ \t]*\]\]?")
_KEY = re.compile(rf"[ \t]*({_DOTTED})[ \t]*=")
_PARTS = re.compile(_PART)
#: The standard reader takes quadratic time over a key of very many parts, so that such a key is looked for first.
_LONG = re.compile(rf"""(?<![\w\-"'])(?:[\w\-"']++[ \t]*+\.[ \t]*+){{{DEEPEST + 1}}}""")


def parse_toml(text: str, name: str = "") -> Document:
    """The document in a text, with the line of each table and key that begins one.

    Examples
    --------
    >>> parse_toml('budge = 1\\n[features]\\nage = "fixed"\\n', "a.toml").lines[("features", "age")]
    3
    """
    if long := _LONG.search(text):
        line = text.count("\n", 0, long.start()) + 1
        raise SpecError("is nested too deeply", where=f"{name}:{line}", remedy=f"a spec has at most {DEEPEST} levels")
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _broken(text, name, str(error)) from None
    except RecursionError:
        raise SpecError("is nested too deeply", where=name, remedy="a spec has a few levels only") from None
    except ValueError as error:  # a whole number of thousands of digits
        raise SpecError(
            "holds a number that cannot be used", where=name, got=str(error)[:60], remedy="use numbers below 1e308"
        ) from None
    return Document(tree, name, {path: line for path, line, first in _places(text) if first})


def _broken(text: str, name: str, message: str) -> SpecError:
    """The reader's message; for a key that stands twice, with both of its lines."""
    at = re.search(r"\(at line (\d+), column (\d+)\)", message)
    end = re.search(r"\(at end of document\)", message)
    line = int(at[1]) if at else text.count("\n") + 1 if end else None
    place = f"{name}:{line}:{at[2]}" if at else f"{name}:{line}" if line else name
    if "overwrite" in message or "declare" in message or "mutate" in message:
        places = _places(text)
        second = max((p for p in places if line is not None and p[1] <= line), key=lambda p: p[1], default=None)
        twins = [p[1] for p in places if second is not None and p[0] == second[0] and p[1] < second[1]]
        if second is not None and twins:
            key = ".".join(map(str, second[0]))
            return SpecError(
                f"the key {key!r} stands twice, on lines {twins[0]} and {second[1]}",
                where=f"{name}:{second[1]}",
                remedy="keep one of them",
            )
    return SpecError(f"is not valid TOML: {message}", where=place, remedy="check quotes and brackets there")


def _places(text: str) -> list[tuple[tuple[Key, ...], int, bool]]:
    """(path, line, whether it is the first time) of every table and key that begins a line, as far as lines tell."""
    found: list[tuple[tuple[Key, ...], int, bool]] = []
    seen: set[tuple[Key, ...]] = set()
    counts: dict[tuple[Key, ...], int] = {}
    table: tuple[Key, ...] = ()

    def add(path: tuple[Key, ...], line: int) -> None:
        found.append((path, line, path not in seen))
        seen.add(path)

    for number, line in enumerate(text.splitlines(), 1):
        if head := _TABLE.match(line):
            table = _resolved(_split(head[2]), counts)
            if head[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            add(table, number)
        elif key := _KEY.match(line):
            add((*table, *_split(key[1])), number)
    return found


def _split(dotted: str) -> tuple[Key, ...]:
    return tuple(_unquoted(part) for part in _PARTS.findall(dotted))


def _unquoted(part: str) -> str:
    if part[0] == "'":
        return part[1:-1]
    if part[0] != '"':
        return part
    try:
        value: Any = tomllib.loads(f"k = {part}")["k"]
    except tomllib.TOMLDecodeError:
        return part
    return str(value)


def _resolved(path: tuple[Key, ...], counts: dict[tuple[Key, ...], int]) -> tuple[Key, ...]:
    """The path of a table with the positions of the arrays of tables that it lies in."""
    done: tuple[Key, ...] = ()
    for i, step in enumerate(path):
        done = (*done, step)
        if i + 1 < len(path) and done in counts:
            done = (*done, counts[done])
    return done
