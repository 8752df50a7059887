"""YAML 1.2 in: the core schema, with lines; no tags, no anchors, no aliases, no key twice.

The parser's events are put together here, so that an alias is refused before anything could be multiplied.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from budge.errors import MOST_PROBLEMS, Problem, SpecError
from budge.spec.document import Document, Key, place_of
from budge.spec.limits import DEEPEST, DIGITS

__all__ = ["parse_yaml", "scalar"]

_WORDS: dict[str, Any] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_WHOLE = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_ENDLESS = re.compile(r"([-+]?)\.(inf|Inf|INF)")


def scalar(text: str) -> Any:
    """What a plain scalar means in the core schema of YAML 1.2; a number of too many digits raises OverflowError.

    Examples
    --------
    >>> [scalar(text) for text in ("no", "12", "1e3", ".inf", "12:30", "~")]
    ['no', 12, 1000.0, inf, '12:30', None]
    """
    if text in _WORDS:
        return _WORDS[text]
    if _WHOLE.fullmatch(text):
        if len(text) > DIGITS:
            raise OverflowError
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    if endless := _ENDLESS.fullmatch(text):
        return float(f"{endless[1]}inf")
    return float("nan") if text in (".nan", ".NaN", ".NAN") else text


def parse_yaml(text: str, name: str = "") -> Document:
    """The one document in a text, with the line of each key and item."""
    reader = _Reader(text, name)
    try:
        return reader.document()
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = name if mark is None else f"{name}:{mark.line + 1}:{mark.column + 1}"
        column = "" if mark is None else f" (line {mark.line + 1}, column {mark.column + 1})"
        what = f"is not valid YAML{column}: {error.problem or error.context}"
        raise SpecError(what, where=where, remedy="check indentation, quotes and brackets there") from None
    except YAMLError as error:
        at = getattr(error, "position", None)
        line = text.count("\n", 0, at) + 1 if isinstance(at, int) else None
        what = f"is not valid YAML{f' (line {line})' if line else ''}: {getattr(error, 'reason', None) or error}"
        raise SpecError(what, where=f"{name}:{line}" if line else name, remedy="a spec is a text file") from None
    except SpecError:
        raise
    except (ValueError, RecursionError) as error:  # whatever else the parser trips over
        raise SpecError(f"is not valid YAML: {error}", where=name) from None


@dataclass
class _Reader:
    """Puts events together; lives for one call."""

    text: str
    name: str
    lines: dict[tuple[Key, ...], int] = field(default_factory=dict)
    found: list[Problem] = field(default_factory=list)

    def document(self) -> Document:
        events = iter(YAML(typ="safe", pure=True).parse(self.text))
        tree, seen = None, False
        for event in events:
            if isinstance(event, DocumentStartEvent):
                if seen:
                    self.stop(event, "holds more than one document", "write one spec a file")
                if event.tags or (event.version and tuple(event.version) != (1, 2)):
                    self.stop(event, "has a directive; a spec is plain YAML 1.2", "drop the line that begins with %")
                seen = True
            elif isinstance(event, StreamEndEvent):
                break
            elif isinstance(event, ScalarEvent | MappingStartEvent | SequenceStartEvent | AliasEvent):
                tree = self.node(event, events, ())
        SpecError.raise_if(self.found[:MOST_PROBLEMS])
        if not seen or tree is None:
            raise SpecError("holds no spec, only comments or nothing", where=self.name, remedy="a spec begins with `budge: 1`")
        return Document(tree, self.name, self.lines)

    def node(self, event: Event, events: Iterator[Event], path: tuple[Key, ...]) -> Any:
        self.refuse(event)
        if len(path) > DEEPEST:
            self.stop(event, "is nested too deeply", f"a spec has at most {DEEPEST} levels")
        self.lines.setdefault(path, event.start_mark.line + 1)
        if isinstance(event, ScalarEvent):
            return self.scalar(event, path)
        if isinstance(event, SequenceStartEvent):
            items: list[Any] = []
            while not isinstance(event := next(events), SequenceEndEvent):
                items.append(self.node(event, events, (*path, len(items))))
            return items
        return self.mapping(events, path)

    def mapping(self, events: Iterator[Event], path: tuple[Key, ...]) -> dict[Any, Any]:
        tree: dict[Any, Any] = {}
        while not isinstance(event := next(events), MappingEndEvent):
            self.refuse(event)
            if not isinstance(event, ScalarEvent):
                self.stop(event, "a key is a text, not a list or a mapping", "quote it")
            line = event.start_mark.line + 1
            key = self.scalar(event, path)
            if key is None:
                key = event.value
            inner = (*path, key)
            if key in tree:
                what = f"the key {key!r} stands twice, on lines {self.lines[inner]} and {line}"
                self.found.append(Problem(f"{self.name}:{line} {place_of(inner)}", what, remedy="keep one of them"))
                self.node(next(events), events, inner)
                continue
            self.lines[inner] = line
            tree[key] = self.node(next(events), events, inner)
        return tree

    def scalar(self, event: ScalarEvent, path: tuple[Key, ...]) -> Any:
        if event.style not in (None, ""):  # quoted or a block: a text
            return event.value
        try:
            return scalar(event.value)
        except OverflowError:
            place = f"{self.name}:{event.start_mark.line + 1} {place_of(path)}"
            self.found.append(
                Problem(
                    place,
                    "is no number that can be used",
                    f"a whole number of {len(event.value)} digits",
                    "use numbers below 1e308",
                )
            )
            return 0

    def refuse(self, event: Event) -> None:
        if isinstance(event, AliasEvent) or getattr(event, "anchor", None):
            self.stop(event, "has an anchor or alias (& or *); a spec is read without them", "write the value out")
        tag = getattr(event, "tag", None)
        if tag is not None:
            self.stop(event, f"has a tag, {str(tag)!r}; a spec is read without tags", "write a plain value")

    def stop(self, event: Event, what: str, remedy: str) -> NoReturn:
        mark = event.start_mark
        raise SpecError(
            f"line {mark.line + 1}, column {mark.column + 1} {what}", where=f"{self.name}:{mark.line + 1}", remedy=remedy
        )
