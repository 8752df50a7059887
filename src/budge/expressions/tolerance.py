"""One rule for comparing numbers, wherever budge compares them.

Two numbers are equal when ``|a - b| <= TOLERANCE * max(1, |a|, |b|)``. ``<=`` and ``>=`` include that margin; ``<``, ``>`` and
``!=`` exclude it. So exactly one of ``<``, ``==``, ``>`` holds between two numbers, and none of the six relations holds if either
is missing (NaN).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

__all__ = ["RELATIONS", "TOLERANCE", "close", "compare", "equal", "greater", "greater_equal", "less", "less_equal", "not_equal"]

TOLERANCE = 1e-9

Numbers = npt.ArrayLike
Truths = npt.NDArray[np.bool_]


def equal(a: Numbers, b: Numbers, *, tol: float = TOLERANCE) -> Truths:
    """Where two numbers count as equal.

    Examples
    --------
    >>> equal([0.1 + 0.2, 1.0], [0.3, 1.1]).tolist()
    [True, False]
    """
    with np.errstate(all="ignore"):
        left, right = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
        gap = np.abs(left - right)
        scale = np.maximum(np.maximum(np.abs(left), np.abs(right)), 1.0)
        # An infinite gap would pass against an infinite scale, and inf - inf is NaN: infinities are compared exactly.
        return np.asarray(((gap <= tol * scale) & (gap < np.inf)) | (left == right))


close = equal


def less(a: Numbers, b: Numbers, *, tol: float = TOLERANCE) -> Truths:
    """Where a is below b by more than the margin."""
    return np.asarray(np.less(a, b) & ~equal(a, b, tol=tol))


def greater(a: Numbers, b: Numbers, *, tol: float = TOLERANCE) -> Truths:
    """Where a is above b by more than the margin."""
    return less(b, a, tol=tol)


def less_equal(a: Numbers, b: Numbers, *, tol: float = TOLERANCE) -> Truths:
    """Where a is below b, or equal to it."""
    return np.asarray(np.less(a, b) | equal(a, b, tol=tol))


def greater_equal(a: Numbers, b: Numbers, *, tol: float = TOLERANCE) -> Truths:
    """Where a is above b, or equal to it."""
    return less_equal(b, a, tol=tol)


def not_equal(a: Numbers, b: Numbers, *, tol: float = TOLERANCE) -> Truths:
    """Where two numbers differ; a missing value differs from nothing."""
    return np.asarray((np.less(a, b) | np.greater(a, b)) & ~equal(a, b, tol=tol))


RELATIONS: dict[str, Callable[..., Truths]] = {
    "<=": less_equal,
    "<": less,
    "==": equal,
    "!=": not_equal,
    ">=": greater_equal,
    ">": greater,
}


def compare(relation: str, a: Numbers, b: Numbers, *, tol: float = TOLERANCE) -> Truths:
    """Where ``a relation b`` holds, for one of the six relations."""
    return RELATIONS[relation](a, b, tol=tol)
