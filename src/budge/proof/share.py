"""A share of reachable points without sampling: one number, or two ends where rounding or size leaves a gap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
import numpy.typing as npt

from budge.proof.laws import Law, Listed

__all__ = ["Ask", "Method", "Share", "Spans", "UnknownError", "columns_of_law", "counted", "union", "without"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Ask = Callable[[FloatArray], BoolArray]
Method = Literal["list", "meet", "grid", "cells", "closed form"]
Spans = list[tuple[float, float]]  # half-open intervals of a score: disjoint, ascending
MOST_RUN = 1_000_000  # values of one whole number that are listed
MOST_ASKED = 100_000  # points on the edge that are asked of the model
CHUNK = 1 << 15
WEIGHED = 1e-12  # how exact probabilities are that come from weights


@dataclass(frozen=True)
class Share:
    """A probability between `low` and `high`, which are equal where it is exact.

    `hits` of `size` configurations attain the target where all are equally likely and counted; else None. `asked` points were asked of the model.
    """

    low: float
    high: float
    method: Method
    hits: int | None = None
    size: int | None = None
    asked: int = 0

    @property
    def exact(self) -> bool:
        """Whether the share is one number."""
        return self.low == self.high


class UnknownError(Exception):
    """The share cannot be computed."""


def counted(hits: int | float, total: int | float, others: int | None, method: Method, asked: int, more: int | float = 0) -> Share:
    """Return a share from exact counts, or from probabilities; `more` may attain the target, too."""
    if isinstance(total, int) and isinstance(hits, int) and isinstance(more, int):
        low, high = (_ratio(n, total) for n in (hits, hits + more))
        size = None if others is None else total * others
        return Share(low, high, method, None if others is None or more else hits * others, size, asked)
    low, high = hits / total, (hits + more) / total
    if low == high and hits in (0, total):
        return Share(low, high, method, asked=asked)
    return Share(max(0.0, low - WEIGHED), min(1.0, high + WEIGHED), method, asked=asked)


def _ratio(n: int, total: int) -> float:
    """Return n / total, which rounding makes neither 0 nor 1: some is not none, and almost all is not all."""
    share = float(Fraction(n, total))
    return min(max(share, math.ulp(0.0)), math.nextafter(1.0, 0.0)) if 0 < n < total else share


def columns_of_law(law: Law) -> tuple[int, ...]:
    """Return the columns that a law is about."""
    return law.columns if isinstance(law, Listed) else (law.column,)


def union(spans: Spans) -> Spans:
    """Return spans as disjoint ones, ascending."""
    found: Spans = []
    for low, high in sorted(span for span in spans if span[0] < span[1]):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return found


def without(spans: Spans, inner: Spans) -> Spans:
    """Return what is left of spans without others that lie inside them."""
    found = []
    for low, high in spans:
        at = low
        for a, b in inner:
            if low <= a and b <= high:
                found.append((at, a))
                at = b
        found.append((at, high))
    return [span for span in found if span[0] < span[1]]
