"""An audit that can be looked at while it runs: people in a random order, block by block, by the library's own steps.

At its end it is what `budge.audit` returns, to the bit; before, it is the same audit of those who were asked so far.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.audit.ask import ask_starts
from budge.audit.counting import Counted
from budge.audit.failing import Streak
from budge.audit.result import Audit
from budge.audit.run import finished, info_of, prepare, result_of
from budge.errors import ModelError
from budge.interaction import InteractionModel
from budge.models.contained import kept_seeds
from budge.web.question import Question

__all__ = ["Pace", "Piece", "chosen_people", "predictions", "running"]

FIRST_BLOCK = 8  #: people, where nothing is known of the model's speed
FIRST_SECONDS, BLOCK_SECONDS = 0.12, 0.4  #: what the first block and the others may take: a superseded look stops at their end
BLOCK_ROWS = 100_000


class Pace:
    """The number of people per second, as seen last."""

    def __init__(self) -> None:
        self.rate: float | None = None

    def block(self, seconds: float, most: int) -> int:
        """Return how many people fit into a block."""
        return FIRST_BLOCK if self.rate is None else max(1, min(most, int(self.rate * seconds)))

    def learn(self, people: int, seconds: float) -> None:
        """Take note of one more block."""
        seen = people / max(seconds, 1e-6)
        self.rate = seen if self.rate is None else 0.5 * self.rate + 0.5 * seen


@dataclass(frozen=True)
class Piece:
    """Where a running audit stands; `audit` makes what is known so far into a result."""

    done: int
    of: int
    seconds: float
    audit: Callable[[], Audit]

    @property
    def whole(self) -> bool:
        """Whether everyone was asked."""
        return self.done == self.of

    @property
    def seconds_for_all(self) -> float:
        """How long it will take in all, at this pace."""
        return self.seconds * self.of / max(self.done, 1)


def predictions(question: Question) -> dict[str, npt.NDArray[Any]]:
    """Return what every model answers about the people as they are, after a check of the models: it does not depend on the interaction model."""
    assert question.frame is not None
    design = question.design(question.threshold)
    with kept_seeds():
        return ask_starts(question.predictors, question.frame, design.target, seed=design.seed, table=True, check=True)[0]


def chosen_people(question: Question, before: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[np.bool_]]:
    """Return whom the audit of each model is about: those outside the target differ from model to model."""
    return prepare(dict(question.predictors), question.frame, question.im, question.design(question.threshold), check=False, before=before).asked


def running(
    question: Question, im: InteractionModel, threshold: float, before: Mapping[str, npt.NDArray[Any]], order: npt.NDArray[np.intp], pace: Pace,
    go_on: Callable[[], None],
) -> Iterator[Piece]:  # fmt: skip
    """Ask block by block; `go_on` is called before each and may raise."""
    began = time.perf_counter()
    made = prepare(dict(question.predictors), question.frame, im, question.design(threshold), check=False, before=before)
    info, work, streak = info_of(made), replace(made.work, check=True), Streak(made.design)
    todo = order[np.isin(order, made.todo)]
    most = max(1, int(BLOCK_ROWS / max(1.0, made.rows_each())))
    counted: list[Counted] = []

    def result() -> Audit:
        found = result_of(made, info, counted)
        with kept_seeds():
            return finished(made, found, True) if sum(len(part.people) for part in counted) == len(todo) else found

    done = 0
    while done < len(todo):
        go_on()
        at = time.perf_counter()
        some = todo[done : done + pace.block(BLOCK_SECONDS if done else FIRST_SECONDS, most)]
        with kept_seeds():
            counted.append(work(made.block(some)))
        ModelError.raise_if(counted[-1].drift)
        streak.add(counted[-1])
        done += len(some)
        pace.learn(len(some), time.perf_counter() - at)
        yield Piece(done, len(todo), time.perf_counter() - began, result)
    if not len(todo):
        yield Piece(0, 0, 0.0, result)
