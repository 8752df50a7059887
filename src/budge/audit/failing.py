"""What becomes of a run in which a model fails: when it ends, what is noted, and the error that carries what was done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from budge.audit.counting import Counted
from budge.audit.design import Design
from budge.errors import BudgeError, IncompleteError, Problem
from budge.stats.counts import Counts

if TYPE_CHECKING:
    from budge.audit.result import Audit

__all__ = ["ASIDE", "DOWN", "Streak", "accepted", "answered", "aside", "check_answered", "set_aside", "unanswered", "with_result"]

ASIDE = "people"  # where the note of a result without some of them stands
DOWN = 3  # blocks in a row in which a model fails on everything: the run ends
ASK_AGAIN = "the same call with the same journal asks about them again"
ANEW = "a new run asks about them again: overwrite this one (--overwrite), or choose another folder"
Raised = TypeVar("Raised", bound=BudgeError)
Result = TypeVar("Result", bound="Audit")


class Streak:
    """Blocks in a row in which a model failed on everything: after `DOWN` of them the run ends, unless the design accepts that nothing has an answer."""

    def __init__(self, design: Design) -> None:
        self.blocks, self.most = 0, DOWN if design.max_unresolved < 1 else None

    def add(self, found: Counted, *, ends: bool = True) -> bool:
        """Count a block; return whether the models are down, or raise an error that ends the run."""
        self.blocks = self.blocks + 1 if found.down else 0
        if self.ended and ends:
            raise self.error([cause for causes in found.causes.values() for cause in causes])
        return self.ended

    @property
    def ended(self) -> bool:
        """Whether there are so many that the run ends."""
        return self.most is not None and self.blocks >= self.most

    def error(self, causes: Sequence[str]) -> IncompleteError:
        """Return the error that ends the run."""
        why = f": {causes[0]}" if causes else ""
        return IncompleteError(
            f"the model failed on everything in {DOWN} blocks in a row{why}", where="model",
            remedy="mend the model; with a journal, the same call goes on and asks again where there was no answer",
        )  # fmt: skip


def with_result(error: Raised, result: Any) -> Raised:
    """Return an error that carries the result of what was done, and that result the error as a note: it may be saved."""
    if hasattr(result, "notes"):
        more = [replace(p, severity="warning") for p in error.problems]
        result = replace(result, notes=(*result.notes, *(p for p in more if p not in result.notes)))
    error.result = result  # type: ignore[attr-defined]
    return error


def aside(labels: Sequence[Any], gone: int, people: int) -> tuple[Problem, ...]:
    """Return the note of a result without some people, or none."""
    what = f"{_aside(labels, gone, people)}: this is the result of the others"
    return (Problem(ASIDE, what, remedy="the same call with the same journal goes on", severity="warning"),) if gone else ()


def set_aside(error: IncompleteError, labels: Sequence[Any], gone: int, people: int, result: Any) -> IncompleteError:
    """Return the error with the people who were not finished, and the result of the others."""
    problem = error.problems[0]
    what = f"{_aside(labels, gone, people)}; {problem.what}" if gone else problem.what
    failure = IncompleteError([replace(problem, what=what)])
    failure.result = result  # type: ignore[attr-defined]
    return failure


def _aside(labels: Sequence[Any], gone: int, people: int) -> str:
    return f"{gone:,} of {people:,} people were set aside ({', '.join(map(str, labels[:10]))}{', …' if len(labels) > 10 else ''})"


def answered(counts: Sequence[Counts]) -> tuple[int, int]:
    """Return the number of points, and of those without an answer."""
    return sum(int(c.n.sum()) for c in counts), sum(int(c.unresolved.sum()) for c in counts)


def unanswered(
    points: Mapping[str, tuple[int, int]], causes: Mapping[str, Sequence[str]], proofs: Mapping[str, int] | None = None, *, remedy: str = ASK_AGAIN
) -> tuple[Problem, ...]:
    """Return a note for each model that left points without an answer, or people whose proofs lack one, with the first reason."""
    said = {name: [f"{lost:,} of {many:,} points have no answer"] if lost else [] for name, (many, lost) in points.items()}
    for name, many in (proofs or {}).items():
        said[name] += [f"points that the proofs about {many:,} people need have no answer"] if many else []
    found = {name: ", and ".join(parts) for name, parts in said.items() if parts}
    why = {name: f": {causes[name][0]}" if causes.get(name) else "" for name in found}
    return tuple(Problem(name, found[name] + why[name], remedy=remedy, severity="warning") for name in found)


def check_answered(points: tuple[int, int], design: Design, causes: Sequence[str], result: Any) -> None:
    """Raise an error, with the result attached, where more points have no answer than the design accepts."""
    many, lost = points
    if many and lost / many > design.max_unresolved:
        error = IncompleteError(
            f"{lost:,} of {many:,} points have no answer" + (f"; the first reason: {causes[0]}" if causes else ""),
            where="max_unresolved", got=design.max_unresolved, remedy="see the column unresolved of result.table; mend the model or accept more",
        )  # fmt: skip
        error.result = result  # type: ignore[attr-defined]
        raise error


def accepted(result: Result) -> Result:
    """Return the result of a run that is finished: where points without an answer are few enough, no later call asks about them."""
    notes = tuple(replace(note, remedy=ANEW) if note.remedy == ASK_AGAIN else note for note in result.notes)
    return replace(result, notes=notes)
