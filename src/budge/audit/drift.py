"""Check that a model still answers as it did, where no journal is kept or several audits are made: ask about a few points of every question again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.audit.ask import Answers, Asker, Few
from budge.audit.counting import Counted
from budge.audit.failing import unanswered, with_result
from budge.audit.result import Audit
from budge.audit.resuming import recounted
from budge.audit.run import drifted, prepare
from budge.audit.sources import TableSource
from budge.audit.streamed import StreamedAudit
from budge.errors import IncompleteError, ModelError, Problem
from budge.models import Predictor
from budge.models.contract import differ

__all__ = ["MEND", "Heard", "HeardAsker", "confirmed", "confirmed_audits"]

MOST = 512  # questions of which points are kept; of more, every second one, and so on
FIRST, LATER = 4, 1  # people of the first of several audits, and of each later one, who are counted again after the last
MEND = "mend the model and make the same call again"


class Heard:
    """What was heard of a model: how many points it was asked about, how many have no answer and why, and a few points of every question."""

    def __init__(self) -> None:
        self.causes: dict[str, None] = {}
        self.points = self.lost = self.questions = 0
        self.few: list[Few] = []
        self._every = 1

    def add(self, rows: Any, before: npt.NDArray[Any], found: Answers) -> None:
        """Keep what is needed of a question."""
        self.causes |= dict.fromkeys(found.causes)
        self.points, self.lost = self.points + len(before), self.lost + int((~found.good).sum())
        if len(before) and self.questions % self._every == 0:
            self.few.append(Few.of(rows, before, found))
        self.questions += 1
        if len(self.few) > MOST:
            self.few, self._every = self.few[::2], 2 * self._every

    def drift(self, ask: Asker) -> tuple[Problem, ...]:
        """Ask about the points again, those of tables of the same types at once, and return a problem where answers are others."""
        alike: dict[Any, list[Few]] = {}
        for few in self.few:
            alike.setdefault(tuple(map(str, few.points.dtypes.items())), []).append(few)
        return tuple(problem for some in alike.values() for problem in Few.join(some).drift(ask))[:1]

    @property
    def why(self) -> str:
        """The first reason why a point has no answer, in brackets, or nothing."""
        return f" ({next(iter(self.causes))})" if self.causes else ""

    def unanswered(self, name: str) -> tuple[Problem, ...]:
        """Return a note where points have no answer."""
        return unanswered({name: (self.points, self.lost)}, {name: list(self.causes)}, remedy=MEND)


@dataclass(frozen=True)
class HeardAsker(Asker):
    """An asker that keeps what it hears."""

    heard: Heard = field(default_factory=Heard)

    @classmethod
    def hearing(cls, plain: Asker, heard: Heard) -> HeardAsker:
        """Return the asker with the memory."""
        return cls(plain.name, plain.predictor, plain.target, plain.kinds, plain.whole, plain.shared, heard)

    def fresh(self) -> Asker:
        """Return the asker that takes no answer from a cache, and keeps apart what it hears."""
        return replace(self, predictor=super().fresh().predictor, heard=Heard())

    def __call__(self, rows: Any, before: npt.NDArray[Any]) -> Answers:
        """Ask about points, and keep what is needed at the end."""
        try:
            found = super().__call__(rows, before)
        except MemoryError as error:
            raise IncompleteError("there is not enough memory to ask the model", where=self.name, remedy="give the model fewer rows at a time") from error
        self.heard.add(rows, np.asarray(before), found)
        return found


def confirmed(
    ask: HeardAsker, predictors: Mapping[str, Predictor], starts: Any, before: npt.NDArray[Any], check: bool | str, result: Any
) -> tuple[Problem, ...]:
    """Raise an error, with the result attached, where the model answers otherwise now about points or people than it did; with ``"warn"``, return notes."""
    try:
        few = ask.heard.drift(ask) if check else ()
        if few and check != "warn":
            raise ModelError(few)
    except (IncompleteError, ModelError) as error:
        if check != "warn":
            raise with_result(error, result) from error
        few = error.problems
    more = drifted(predictors, starts, dict.fromkeys(predictors, before), check, result)
    return (*(replace(p, severity="warning") for p in few), *more)


def confirmed_audits(audits: Sequence[Audit], check: bool | str, result: Any) -> tuple[Problem, ...]:
    """Count a few people of several audits again, after the last; raise an error or return notes, as `confirmed` does.

    An audit by itself shows that the model was the same from its beginning to its end, not that it was the same in all of them.
    """
    found: list[Problem] = []
    for k, audit in enumerate(audits if check else ()):
        for name in audit.models:
            try:
                other = _other(audit, name, LATER if k else FIRST)
            except (IncompleteError, ModelError) as error:
                if check != "warn":
                    raise with_result(error, result) from error
                found += error.problems
                continue
            if other is not None:
                what = "the model answers otherwise than at the start: points of a person, counted again at the end, gave other counts"
                found.append(Problem(name, what, got=other, remedy="fix its seed and its version; check='warn' keeps the result with a note"))
    if found and check != "warn":
        raise with_result(ModelError(found), result)
    return tuple(dict.fromkeys(replace(p, severity="warning") for p in found))


def _other(audit: Audit, name: str, people: int) -> str | None:
    """Count people of an audit again, those first of whom some points hit and some do not; return one whose counts or answer are others."""
    part = _in_memory(audit, name)
    if part is None:
        return None
    rows, context = part.rows[name], part._context()
    assert isinstance(context.source, TableSource)
    even = np.where(rows.counts.is_law("none"), np.inf, np.abs(rows.counts.hits / np.maximum(rows.counts.n, 1) - 0.5))
    some = np.sort(np.argsort(even, kind="stable")[:people])
    like = {name: Asker.of(name, context.predictors[name], audit.design.target, rows.prediction)}
    design, frame = replace(audit.design, population="all", groups=(), prove=False), context.source.frame.iloc[rows.place[some]]
    try:
        made = prepare({name: context.predictors[name]}, frame, context.im, design, check=False, like=like)
    except MemoryError as error:
        raise IncompleteError("there is not enough memory to ask the model again", where=name, remedy=MEND) from error
    other = np.flatnonzero(differ(rows.prediction[some], made.before[name]))
    if len(other):
        return f"{name}, person {rows.index[some[other[0]]]}"
    return recounted(made, [Counted(np.arange(len(some)), {name: rows.counts.take(some)}, {name: np.ones(len(some), bool)}, {})])


def _in_memory(audit: Audit, name: str) -> Audit | None:
    """Return the audit, or its first part that has people where it is one of a stream."""
    if not isinstance(audit, StreamedAudit):
        return audit if len(audit.rows[name].place) else None
    return next((audit.piece_of(rows.index[0], name) for _, rows in audit.rows.pieces(name) if len(rows.place)), None)
