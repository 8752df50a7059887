"""One rule for comparing numbers, wherever budge compares them.

Two numbers are equal when ``|a - b| <= TOLERANCE * max(1, |a|, |b|)``. ``<=`` and ``>=`` include that margin; ``<``, ``>`` and
``!=`` exclude it. So exactly one of ``<``, ``==``, ``>`` holds between two numbers, and none of the six relations holds if either
is missing (NaN).

Two sides that are whole numbers (``whole=True``) compare exactly: the margin is at most one half, which only rounding needs. From
2^53 on a float does not hold every whole number, and the margin is the usual one again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

__all__ = [
    "RELATIONS", "TOLERANCE", "close", "compare", "equal", "greater", "greater_equal", "is_whole_number",
    "less", "less_equal", "not_equal", "round_down", "round_up",
]  # fmt: skip

TOLERANCE = 1e-9
LARGEST_EXACT = 2.0**53
ROUNDING = 1e-6  # the most that a whole number may be off after arithmetic

Numbers = npt.ArrayLike
Truths = npt.NDArray[np.bool_]


def equal(a: Numbers, b: Numbers, *, tol: float = TOLERANCE, whole: bool = False) -> Truths:
    """Return where two numbers count as equal.

    Examples
    --------
    >>> equal([0.1 + 0.2, 1.0], [0.3, 1.1]).tolist()
    [True, False]
    >>> bool(equal(1e9 + 1, 1e9)), bool(equal(1e9 + 1, 1e9, whole=True))
    (True, False)
    """
    with np.errstate(all="ignore"):
        left, right = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
        gap = np.abs(left - right)
        scale = np.maximum(np.maximum(np.abs(left), np.abs(right)), 1.0)
        margin = tol * scale
        if whole:
            margin = np.where(scale < LARGEST_EXACT, np.minimum(margin, 0.5), margin)
        # An infinite gap would pass against an infinite scale, and inf - inf is NaN: infinities are compared exactly.
        return np.asarray(((gap <= margin) & (gap < np.inf)) | (left == right))


close = equal


def less(a: Numbers, b: Numbers, *, tol: float = TOLERANCE, whole: bool = False) -> Truths:
    """Where a is below b by more than the margin."""
    return np.asarray(np.less(a, b) & ~equal(a, b, tol=tol, whole=whole))


def greater(a: Numbers, b: Numbers, *, tol: float = TOLERANCE, whole: bool = False) -> Truths:
    """Where a is above b by more than the margin."""
    return less(b, a, tol=tol, whole=whole)


def less_equal(a: Numbers, b: Numbers, *, tol: float = TOLERANCE, whole: bool = False) -> Truths:
    """Where a is below b, or equal to it."""
    return np.asarray(np.less(a, b) | equal(a, b, tol=tol, whole=whole))


def greater_equal(a: Numbers, b: Numbers, *, tol: float = TOLERANCE, whole: bool = False) -> Truths:
    """Where a is above b, or equal to it."""
    return less_equal(b, a, tol=tol, whole=whole)


def not_equal(a: Numbers, b: Numbers, *, tol: float = TOLERANCE, whole: bool = False) -> Truths:
    """Where two numbers differ; a missing value differs from nothing."""
    return np.asarray((np.less(a, b) | np.greater(a, b)) & ~equal(a, b, tol=tol, whole=whole))


RELATIONS: dict[str, Callable[..., Truths]] = {
    "<=": less_equal,
    "<": less,
    "==": equal,
    "!=": not_equal,
    ">=": greater_equal,
    ">": greater,
}


def compare(relation: str, a: Numbers, b: Numbers, *, tol: float = TOLERANCE, whole: bool = False) -> Truths:
    """Where ``a relation b`` holds, for one of the six relations."""
    return RELATIONS[relation](a, b, tol=tol, whole=whole)


def round_up(value: Numbers) -> npt.NDArray[np.float64]:
    """Return the lowest whole number from the value on; a value that is whole but for rounding is that number."""
    number = np.asarray(value, dtype=float)
    return np.asarray(np.ceil(number - np.minimum(TOLERANCE * np.maximum(1.0, np.abs(number)), ROUNDING)))


def round_down(value: Numbers) -> npt.NDArray[np.float64]:
    """Return the highest whole number up to the value; a value that is whole but for rounding is that number."""
    return np.asarray(-round_up(-np.asarray(value, dtype=float)))


def is_whole_number(value: Numbers) -> Truths:
    """Return where a value is a whole number, to the tolerance whatever its size."""
    number = np.asarray(value, dtype=float)
    return np.asarray(np.abs(number - np.round(number)) <= TOLERANCE)
