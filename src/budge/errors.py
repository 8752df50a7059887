"""Every way in which budge says no.

::

    BudgeError                      exit code
    ├── InputError (ValueError)     2   something that the caller gave
    │   ├── SpecError               2   a spec file, or its parts built in Python
    │   │   └── ExpressionError     2   a text that is not in the expression language
    │   ├── DataError               2   a table or a row
    │   │   └── InvalidStartError   2   a row that breaks the interaction model before it moves
    │   ├── ModelError              2   a model under audit, or what it answers
    │   ├── DesignError             2   alpha, power, sample sizes: the design of a test
    │   └── OutputExistsError       2   a file or folder that would be overwritten
    ├── ReachError                  2   the reachable points
    │   ├── EmptyError              2   no action is feasible, not even staying
    │   ├── TooLargeError           2   a set too large to be enumerated
    │   └── DrawError               2   a part that cannot be drawn within its budget
    ├── EnvironmentProblem          3   this machine: a missing package, a disk
    │   ├── MissingDependencyError  3   an optional package
    │   ├── SolverError             3   the solver failed; never read as "infeasible"
    │   └── StorageError            3   a file or folder that cannot be read or written
    └── IncompleteError             4   the work ended early; what was done is kept

A message always says what is wrong, where, what was got, and what to do: a `Problem`.
Problems of a spec or a table are collected and raised together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from itertools import islice, pairwise
from typing import Any, ClassVar, Self

__all__ = [
    "MOST_PROBLEMS",
    "BudgeError",
    "DataError",
    "DesignError",
    "DrawError",
    "EmptyError",
    "EnvironmentProblem",
    "ExpressionError",
    "IncompleteError",
    "InputError",
    "InvalidStartError",
    "MissingDependencyError",
    "ModelError",
    "OutputExistsError",
    "Problem",
    "ReachError",
    "SolverError",
    "SpecError",
    "StorageError",
    "TooLargeError",
    "nearest",
    "together",
]

class _Unset(Enum):
    """Mark that nothing was got; it is the same in every process."""

    UNSET = "nothing"


_UNSET = _Unset.UNSET
_NUMPY = re.compile(r"\bnp\.(?:\w+\d|str_|bool)\(([^()]*)\)")
MOST_PROBLEMS = 50  #: problems of a spec that are collected; the others show once these are mended
MOST_NAMES, CLOSEST, LONGEST_WORD = 10_000, 10, 60  #: names that a hint is looked for among, names compared by letters, and their length


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: where, what, what was got, what to do.

    Examples
    --------
    >>> print(Problem("features.age.bounds", "the lower bound is above the upper", got=[9, 1], remedy="swap them"))
    features.age.bounds: the lower bound is above the upper (got [9, 1]); swap them
    """

    where: str
    what: str
    got: object = _UNSET
    remedy: str = ""
    severity: str = "error"  # or "warning": kept and shown, never raised

    def __str__(self) -> str:
        got = "" if self.got is _UNSET else f" (got {shorten(self.got)})"
        place = f"{self.where}: " if self.where else ""
        remedy = f"; {self.remedy}" if self.remedy else ""
        return in_lines([f"{place}{self.what}{got}{remedy}"])

    def to_dict(self) -> dict[str, object]:
        """The record of the problem, for ``--json``."""
        record: dict[str, object] = {"where": self.where, "what": self.what, "severity": self.severity}
        if self.got is not _UNSET:
            record["got"] = shorten(self.got)
        if self.remedy:
            record["remedy"] = self.remedy
        return record


class BudgeError(Exception):
    """The root of the tree; carries the problems that make it up."""

    exit_code: ClassVar[int] = 2

    def __init__(self, what: str | Problem | Sequence[Problem], *, where: str = "", got: object = _UNSET, remedy: str = ""):
        if isinstance(what, str):
            problems: tuple[Problem, ...] = (Problem(where, what, got, remedy),)
        elif isinstance(what, Problem):
            problems = (what,)
        else:
            problems = tuple(what)
        self.problems = problems
        super().__init__(str(self))

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return str(self.problems[0])
        lines = [f"{len(self.problems)} problems:"]
        lines += [f"  {i}. {problem}" for i, problem in enumerate(self.problems, 1)]
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.problems,))

    @classmethod
    def raise_if(cls, problems: Iterable[Problem]) -> None:
        """Raise all problems at once; warnings alone raise nothing."""
        errors = [p for p in problems if p.severity == "error"]
        if errors:
            raise cls(errors)

    def at(self, prefix: str) -> Self:
        """The same error, seen from further out: every place gets a prefix."""
        moved = [
            Problem(f"{prefix}.{p.where}" if p.where else prefix, p.what, p.got, p.remedy, p.severity) for p in self.problems
        ]
        return type(self)(moved)


class InputError(BudgeError, ValueError):
    """Something that the caller gave cannot be used."""


class SpecError(InputError):
    """An interaction model, or the file that holds it, does not make sense."""


class ExpressionError(SpecError):
    """A text is not in the expression language."""


class DataError(InputError):
    """A table or a row does not fit what is declared."""


class InvalidStartError(DataError):
    """A row breaks the interaction model before it moves."""


class ModelError(InputError):
    """The model under audit, or what it answers, cannot be used."""


class DesignError(InputError):
    """The design of a test (alpha, power, sizes) cannot be used."""


class OutputExistsError(InputError):
    """Something stands where the output would go."""


class ReachError(BudgeError):
    """Reachable points cannot be given."""


class EmptyError(ReachError):
    """No action is feasible, not even staying: there is nothing to reach."""


class TooLargeError(ReachError):
    """A set is too large to be enumerated; its size is in the message."""


class DrawError(ReachError):
    """A part cannot be drawn exactly within its budget."""


class EnvironmentProblem(BudgeError):  # noqa: N818 (the tree's own word)
    """This machine lacks something or failed."""

    exit_code: ClassVar[int] = 3


class MissingDependencyError(EnvironmentProblem, ImportError):
    """An optional package is not installed."""


class SolverError(EnvironmentProblem):
    """The solver failed or ran out of time; nothing may be concluded from it."""


class StorageError(EnvironmentProblem, OSError):
    """A file or folder cannot be read or written."""


class IncompleteError(BudgeError):
    """The work ended before all of it was done; what was done is kept."""

    exit_code: ClassVar[int] = 4


def together(*steps: Callable[[], Any]) -> list[Any]:
    """Return what each step returns; the problems of all of them are raised at once, as an `InputError` where they are of several kinds.

    Examples
    --------
    >>> def refuse(error):
    ...     raise error
    >>> together(lambda: 1, lambda: 2)
    [1, 2]
    >>> together(lambda: refuse(DesignError("must be positive", where="alpha")), lambda: refuse(DataError("no such column", where="drop")))
    Traceback (most recent call last):
    budge.errors.InputError: 2 problems:
      1. alpha: must be positive
      2. drop: no such column
    """
    made: list[Any] = []
    wrong: list[BudgeError] = []
    for step in steps:
        try:
            made.append(step())
        except (InputError, StorageError) as error:
            wrong.append(error)
    if len(wrong) > 1:
        kind = type(wrong[0]) if len({type(error) for error in wrong}) == 1 else InputError
        raise kind([problem for error in wrong for problem in error.problems])
    if wrong:
        raise wrong[0]
    return made


def nearest(word: object, known: Iterable[str]) -> str:
    """A remedy that names the nearest known word, or lists them all.

    Examples
    --------
    >>> nearest("thermometr", ["thermometer", "one_hot"])
    "did you mean 'thermometer'?"
    """
    names = [str(name) for name in islice(known, MOST_NAMES)]
    close = get_close_matches(str(word), _alike(str(word), names), n=1, cutoff=0.6) if len(str(word)) <= LONGEST_WORD else []
    if close:
        return f"did you mean {close[0]!r}?"
    if not names:
        return "none is known here"
    listed = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
    return f"known: {listed}"


def _alike(word: str, names: list[str]) -> list[str]:
    """Return the few names that share most pairs of letters with the word, so that few are compared letter by letter."""
    if len(names) <= CLOSEST:
        return [name for name in names if len(name) <= LONGEST_WORD]
    pairs: set[tuple[str, str]] = set(pairwise(word))
    shared = [(len(pairs.intersection(pairwise(name))), name) for name in names if abs(len(name) - len(word)) <= len(word) // 2 + 2]
    return [name for _, name in sorted(shared, key=lambda one: -one[0])[:CLOSEST]]


def shorten(value: object, limit: int = 120) -> str:
    """The value as Python would write it, cut to a readable length, numbers of NumPy as numbers; its type where it cannot be written.

    Examples
    --------
    >>> import numpy as np
    >>> shorten([np.int64(3), np.str_("a")])
    "[3, 'a']"
    """
    try:
        text = _NUMPY.sub(r"\1", str.__str__(repr(value)[: 2 * limit]))
    except Exception:  # values of others may raise anything
        text = f"<{type(value).__name__} that cannot be shown>"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def printable(text: str) -> str:
    """The text without control characters, so that a name cannot steer a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def one_line(value: object) -> str:
    """Return what a result is in one line, for its `repr`: its type and the first line of its text."""
    first = str(value).partition("\n")[0]
    return f"<{type(value).__name__}: {first if len(first) <= 200 else first[:199] + '…'}>"


def in_lines(lines: Iterable[str]) -> str:
    """The lines one below the other, so that a name can neither steer a terminal nor begin a line of its own."""
    return "\n".join(printable(line).replace("\n", "\\n") for line in lines)
