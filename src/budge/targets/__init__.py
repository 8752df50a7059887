"""Targets (Ŷ): sets of outputs that count as a change, which may depend on the output before, f(x).

A target is a frozen value. `hits` is its definition; the rest describes it, stores it and checks it against a model. Labels keep
their types: 1, "1" and True are three labels. ``~target`` is its complement.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from budge.errors import InputError
from budge.targets.kinds import Closed, Complement, Different, Function, Interval, Labels, Relative, Target
from budge.targets.spelling import as_target, from_dict, parse_target

__all__ = [
    "Complement",
    "Different",
    "Function",
    "Interval",
    "Labels",
    "Relative",
    "Target",
    "above",
    "as_target",
    "below",
    "different",
    "from_dict",
    "function",
    "higher_than_before",
    "interval",
    "label",
    "labels",
    "lower_than_before",
    "parse_target",
]


def label(value: object) -> Labels:
    """The output is this label.

    Examples
    --------
    >>> import numpy as np
    >>> label(1).hits(np.array([0, 1, 1])).tolist()
    [False, True, True]
    >>> label(1) == label(True)
    False
    """
    return Labels((value,))


def labels(values: Iterable[object]) -> Labels:
    """The output is one of these labels.

    Examples
    --------
    >>> print(labels(["approved", "referred"]))
    is one of 'approved', 'referred'
    """
    if isinstance(values, str):
        raise InputError("a list of labels is expected", where="target", got=values, remedy="label(...) takes one")
    return Labels(tuple(values))


def interval(low: float = -math.inf, high: float = math.inf, *, closed: Closed = "both") -> Interval:
    """The output is a score between two numbers; `closed` says which ends belong to it.

    Examples
    --------
    >>> import numpy as np
    >>> interval(0.5, 0.7, closed="left").hits(np.array([0.5, 0.7])).tolist()
    [True, False]
    """
    return Interval(low, high, closed)


def below(bound: float | None = None, *, margin: float = 0.0) -> Target:
    """The score is below a bound; without one, below what it was.

    Examples
    --------
    >>> print(below(0.5), "/", below(margin=0.1))
    is below 0.5 / is lower than before by more than 0.1
    """
    return lower_than_before(margin=margin) if bound is None else Interval(high=_bound(bound, margin), closed="neither")


def above(bound: float | None = None, *, margin: float = 0.0) -> Target:
    """The score is above a bound; without one, above what it was."""
    return higher_than_before(margin=margin) if bound is None else Interval(low=_bound(bound, margin), closed="neither")


def lower_than_before(*, margin: float = 0.0) -> Relative:
    """The score is lower than f(x) by more than the margin.

    Examples
    --------
    >>> import numpy as np
    >>> lower_than_before(margin=0.1).hits(np.array([0.5, 0.75]), np.array([0.8, 0.8])).tolist()
    [True, False]
    """
    return Relative("lower", margin)


def higher_than_before(*, margin: float = 0.0) -> Relative:
    """The score is higher than f(x) by more than the margin."""
    return Relative("higher", margin)


def different() -> Different:
    """The output is not f(x); scores that differ in rounding only are the same.

    Examples
    --------
    >>> import numpy as np
    >>> different().hits(np.array(["no", "yes"]), np.array(["no", "no"])).tolist()
    [False, True]
    """
    return Different()


def function(f: Callable[..., Any], *, name: str = "") -> Function:
    """The output satisfies a vectorised function of the outputs, or of the outputs and those before.

    Examples
    --------
    >>> print(function(lambda after, before: after < before / 2, name="halved"))
    satisfies halved
    """
    return Function(f, name)


def _bound(bound: float, margin: float) -> float:
    if margin:
        raise InputError("a margin counts from the output before, not from a bound", where="margin", got=margin)
    return bound
