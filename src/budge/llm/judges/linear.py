"""Regular expressions in time that grows with the text only: every state is followed at once, so that no pattern can hang.

Python's own engine tries one path after the other, and on ``(a+)+b`` their number doubles with each letter. Answers are written by
models, so that a pattern must not depend on their good will. What needs paths (back-references, looking ahead or behind, atomic
groups) is refused. Only whether there is a match is told, not where.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from budge.errors import SpecError

__all__ = ["Pattern"]

#: States of a pattern; {1,5000} inside {1,5000} would have millions.
MOST_STATES = 5_000

Test = Callable[[str], bool]


def _word(c: str) -> bool:
    return c.isalnum() or c == "_"


_CATEGORIES: dict[str, Test] = {
    "CATEGORY_DIGIT": str.isdecimal,
    "CATEGORY_NOT_DIGIT": lambda c: not c.isdecimal(),
    "CATEGORY_SPACE": str.isspace,
    "CATEGORY_NOT_SPACE": lambda c: not c.isspace(),
    "CATEGORY_WORD": _word,
    "CATEGORY_NOT_WORD": lambda c: not _word(c),
}


class Pattern:
    """A pattern, ready to be searched for.

    Examples
    --------
    >>> Pattern(r"(a+)+b").search("a" * 5000)
    False
    >>> Pattern(r"\\bno(t| way)?\\b").search("Well, no way.")
    True
    """

    def __init__(self, text: str, flags: int = 0):
        try:
            tree = parser.parse(text, flags)
        except (re.error, RecursionError, OverflowError) as error:
            raise SpecError(
                f"is no pattern: {error}", where="pattern", got=text, remedy="see Python's re for the language"
            ) from error
        self.text = text
        # a state is a test of one character, a place (zero width), or a fork; edges go to numbers of states
        self._tests: list[Test | str | None] = []
        self._next: list[list[int]] = []
        self.end = self._state(None)
        self.start = self._sequence(tree, self.end, tree.state.flags)

    def _state(self, test: Test | str | None, *to: int) -> int:
        if len(self._tests) >= MOST_STATES:
            raise SpecError(
                f"the pattern is too large (more than {MOST_STATES} states)", where="pattern", got=self.text, remedy="repeat less"
            )
        self._tests.append(test)
        self._next.append(list(to))
        return len(self._tests) - 1

    # -- building, from the end backwards ---------------------------------------------------------------------------------------

    def _sequence(self, tree: Any, to: int, flags: int) -> int:
        for op, value in reversed(list(tree)):
            to = self._part(op, value, to, flags)
        return to

    def _part(self, op: Any, value: Any, to: int, flags: int) -> int:
        name = str(op)
        if name in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            return self._state(_test(name, value, flags), to)
        if name == "BRANCH":
            return self._state(None, *(self._sequence(branch, to, flags) for branch in value[1]))
        if name == "SUBPATTERN":
            _, add, remove, inner = value
            return self._sequence(inner, to, (flags | add) & ~remove)
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            low, high, inner = value
            return self._repeat(low, high, inner, to, flags)
        if name == "AT":
            return self._state(_place(str(value), flags), to)
        kinds = {"GROUPREF": "back-references", "GROUPREF_EXISTS": "conditions", "ASSERT": "looking ahead or behind"}
        kinds |= {
            "ASSERT_NOT": "looking ahead or behind",
            "ATOMIC_GROUP": "atomic groups",
            "POSSESSIVE_REPEAT": "possessive repeats",
        }
        what = f"{kinds.get(name, name)} cannot be searched for in bounded time"
        raise SpecError(what, where="pattern", got=self.text, remedy="write it without, or judge with a function")

    def _repeat(self, low: int, high: Any, inner: Any, to: int, flags: int) -> int:
        if high is codes.MAXREPEAT:
            loop = self._state(None)
            self._next[loop] = [self._sequence(inner, loop, flags), to]
            to = loop
        else:
            after = to
            for _ in range(int(high) - int(low)):
                to = self._state(None, self._sequence(inner, to, flags), after)
        for _ in range(int(low)):
            to = self._sequence(inner, to, flags)
        return to

    # -- searching ----------------------------------------------------------------------------------------------------------------

    def search(self, text: str, *, whole: bool = False) -> bool:
        """Whether the pattern stands anywhere in the text, or (whole) is all of it."""
        now: set[int] = set()
        for i in range(len(text) + 1):
            if not whole or i == 0:
                now.add(self.start)
            now = self._closed(now, text, i)
            if self.end in now and (not whole or i == len(text)):
                return True
            if i == len(text) or (whole and not now):
                return False
            c = text[i]
            now = {to for s in now if callable(test := self._tests[s]) and test(c) for to in self._next[s]}
        return False

    def _closed(self, states: set[int], text: str, i: int) -> set[int]:
        """All states that are reached without a character."""
        found, todo = set(states), list(states)
        while todo:
            s = todo.pop()
            test = self._tests[s]
            if test is None or (isinstance(test, str) and _holds(test, text, i)):
                fresh = [to for to in self._next[s] if to not in found]
                found.update(fresh)
                todo += fresh
        return found


def _place(name: str, flags: int) -> str:
    if flags & re.MULTILINE:
        name = {"AT_BEGINNING": "AT_BEGINNING_LINE", "AT_END": "AT_END_LINE"}.get(name, name)
    return name


def _holds(name: str, text: str, i: int) -> bool:
    if name in ("AT_BEGINNING", "AT_BEGINNING_STRING"):
        return i == 0
    if name == "AT_BEGINNING_LINE":
        return i == 0 or text[i - 1] == "\n"
    if name == "AT_END_STRING":
        return i == len(text)
    if name == "AT_END":
        return i == len(text) or (i == len(text) - 1 and text[i] == "\n")
    if name == "AT_END_LINE":
        return i == len(text) or text[i] == "\n"
    edge = (i > 0 and _word(text[i - 1])) != (i < len(text) and _word(text[i]))
    return edge if name == "AT_BOUNDARY" else not edge and bool(text)


def _test(name: str, value: Any, flags: int) -> Test:
    """A test of one character."""
    if name == "ANY":
        return (lambda c: True) if flags & re.DOTALL else (lambda c: c != "\n")
    if name == "IN":
        negated = bool(value) and str(value[0][0]) == "NEGATE"
        items = [_item(str(op), v) for op, v in (value[1:] if negated else value)]
        inside = _folded(lambda c: any(item(c) for item in items), flags)
        return (lambda c: not inside(c)) if negated else inside
    same = _folded(lambda c: ord(c) == value, flags)
    return same if name == "LITERAL" else (lambda c: not same(c))


def _item(name: str, value: Any) -> Test:
    if name == "LITERAL":
        return lambda c: ord(c) == value
    if name == "RANGE":
        low, high = value
        return lambda c: low <= ord(c) <= high
    return _CATEGORIES[str(value)]


def _folded(test: Test, flags: int) -> Test:
    if not flags & re.IGNORECASE:
        return test
    return lambda c: test(c) or any(len(o) == 1 and test(o) for o in (c.lower(), c.upper()))
