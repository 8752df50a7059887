"""A target as conditions on a model's scores: some alternative must hold, each a conjunction of linear conditions.

Conditions are never narrower than the target: a score that attains it meets one of the alternatives up to rounding. What meets an alternative
is asked of the model before anything is claimed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.models.reading import Reading
from budge.proof.structure import Answer, UnreadableError
from budge.targets import Complement, Different, Interval, Relative, Target
from budge.targets.outputs import tolerance

__all__ = ["Condition", "Goal", "goal_of"]

FloatArray = npt.NDArray[np.float64]
SINGLE = 2.0**-22  # how far an answer in float32 may lie from the link of its score, relative to 1
EDGE = 1e-6  # probabilities nearer to 0 or 1 than this are not told apart


@dataclass(frozen=True)
class Condition:
    """``weights · scores >= bound``; `slack` is what the bound itself may be off by, rounding of the scores comes on top."""

    weights: FloatArray
    bound: float
    slack: float = 0.0


Goal = tuple[tuple[Condition, ...], ...]  # (): impossible; an empty alternative: certain


def goal_of(answer: Answer, reading: Reading, target: Target, before: Any, *, miss: bool = False) -> Goal:
    """Return the alternatives under which a model that is read so attains the target (with `miss`: misses it); the row's own answer was `before`."""
    if isinstance(target, Complement):  # what attains the one misses the other
        target, miss = target.of, not miss
    if reading.output == "score":
        return _number_goal(answer, reading, target, before, miss)
    classes = reading.classes or answer.classes
    if len(classes) != len(answer.classes):
        raise UnreadableError("the classes of the model and of its reading differ in number")
    wanted = [bool(target.hits(np.array([label]), np.array([before]))[0]) != miss for label in classes]
    if all(wanted) or not any(wanted):
        return ((),) if all(wanted) else ()
    if answer.kind == "argmax":
        return tuple(_wins(c, wanted) for c in range(len(wanted)) if wanted[c])
    if answer.kind != "binary":
        raise UnreadableError("labels of a model that answers numbers")
    bound, slack = answer.cut, 0.0
    if reading.threshold is not None:
        up = reading.column == 1
        bound, slack = _score_at(answer, reading, reading.threshold if up else 1.0 - reading.threshold, above=up)
        if math.isinf(bound):  # every score passes, or none does
            first = (bound < 0) == up
            return ((),) if wanted[reading.column if first else 1 - reading.column] else ()
    return ((_at_least(bound, slack),),) if wanted[1] else ((_at_most(bound, slack),),)


def _wins(c: int, wanted: list[bool]) -> tuple[Condition, ...]:
    """Return that class c is not behind any class that is not wanted."""
    found = []
    for k, good in enumerate(wanted):
        if not good:
            weights = np.zeros(len(wanted))
            weights[c], weights[k] = 1.0, -1.0
            found.append(Condition(weights, 0.0))
    return tuple(found)


def _at_least(bound: float, slack: float) -> Condition:
    return Condition(np.ones(1), bound, slack)


def _at_most(bound: float, slack: float) -> Condition:
    return Condition(-np.ones(1), -bound, slack)


def _number_goal(answer: Answer, reading: Reading, target: Target, before: Any, miss: bool) -> Goal:
    if answer.kind == "argmax":
        raise UnreadableError("a probability among more than two classes is not linear in the scores")
    turned = reading.ask == "probability" and reading.column == 0  # the number read is 1 - the probability of the second class
    if isinstance(target, Interval):
        ends = [(target.low, target.high)]
    elif isinstance(target, Relative):
        far = target.margin + _rounding(before, most=miss)
        ends = [(float(before) + far, math.inf)] if target.direction == "higher" else [(-math.inf, float(before) - far)]
    elif isinstance(target, Different):
        far = _rounding(before, most=miss)
        ends = [(float(before) + far, math.inf), (-math.inf, float(before) - far)]
    else:
        raise UnreadableError(f"the target {target} is not an interval of scores")
    if miss:  # all but the intervals, their ends included
        if isinstance(target, Different):
            ends = [(ends[1][1], ends[0][0])]
        else:
            ((low, high),) = ends
            ends = [(a, b) for a, b in ((-math.inf, low), (high, math.inf)) if math.isfinite(a) or math.isfinite(b)]
    found = []
    for low, high in ends:
        if turned:
            low, high = 1.0 - high, 1.0 - low
        conditions, empty = [], False
        for value, side in ((low, _at_least), (high, _at_most)):
            if math.isinf(value):
                continue
            bound, slack = _score_at(answer, reading, value, above=side is _at_least)
            if math.isinf(bound):
                empty |= (bound > 0) == (side is _at_least)
            else:
                conditions.append(side(bound, slack))
        if not empty:
            found.append(tuple(conditions))
    return tuple(found)


def _rounding(before: Any, *, most: bool) -> float:
    """Return how far two scores lie apart at least (at most) that count as one: sums in another order are no change."""
    start = np.atleast_1d(np.asarray(before))
    if most:
        return 1.1 * max(float(tolerance(start, start)[0]), 1e-6 * max(1.0, abs(float(before))))
    return 0.9 * float(tolerance(start, start)[0])


def _score_at(answer: Answer, reading: Reading, value: float, above: bool) -> tuple[float, float]:
    """Return the score from which on the answer is above (or up to which below) a value, and how far off that may be; infinite where it is everywhere."""
    link = answer.link if answer.kind == "number" or reading.ask == "probability" else "identity"
    off = SINGLE * max(1.0, abs(value))
    if value == 0 and not above and link in ("exp", "logistic"):  # rounding may turn a small answer into 0
        raise UnreadableError("an answer of exactly 0 cannot be told from its score")
    if link == "identity":
        return value, off
    if link == "exp":
        if value <= 0:
            return -math.inf, 0.0
        return math.log(value), off / value
    if link == "logistic":
        if value <= 0 or value > 1:
            return (-math.inf if value <= 0 else math.inf), 0.0
        if not EDGE <= value <= 1 - EDGE:
            raise UnreadableError("a probability so near to 0 or 1 cannot be told from its score")
        return math.log(value / (1 - value)), 2 * off / (value * (1 - value))
    raise UnreadableError("the link between the model's score and its answer is not known")
