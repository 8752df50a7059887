"""Weighted draws: actions drawn from another distribution q, turned into evidence about p by the weights p/q.

Clopper-Pearson does not apply to weighted draws. The evidence is that of `budge.stats.evidence`, with weight times hit in place of the hit and
the largest *possible* weight known beforehand; the largest weight seen would make the bounds wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from budge.errors import DesignError
from budge.stats._checks import Claim, Floats, fraction, number, refuse_first, values_of
from budge.stats.binomial import Interval
from budge.stats.evidence import ANYTIME, solve

__all__ = ["Heavy", "effective_sample_size", "weighted"]


def _weights_of(values: object) -> Floats:
    w = values_of(values, "weights")
    refuse_first(w < 0, w, "weights must not be negative", "weights", "weights are ratios of probabilities")
    return w


def effective_sample_size(weights: object) -> float:
    """Return how many unweighted draws the weighted ones are worth: (sum w)^2 / sum w^2.

    Examples
    --------
    >>> effective_sample_size([1, 1, 1, 1]), effective_sample_size([1, 0, 0, 0])
    (4.0, 1.0)
    """
    w = _weights_of(weights)
    if not w.any():
        remedy = "draw from a distribution that covers the actions"
        raise DesignError("all weights are zero", where="weights", got=weights, remedy=remedy)
    w = w / w.max()
    return float(w.sum() ** 2 / (w**2).sum())


@dataclass(frozen=True, eq=False)
class Heavy:
    """The weighted draws of many rows that are hits or have no answer, one entry per row and distinct weight; all others are misses.

    `row` is sorted. `top` is the largest possible weight of each row, `n` its number of draws, `effective` how many unweighted ones they are worth.
    """

    row: NDArray[np.int64]
    weight: Floats
    hits: NDArray[np.int64]
    lost: NDArray[np.int64]
    top: Floats
    n: Floats
    effective: Floats

    @classmethod
    def of(
        cls, weights: Sequence[Floats], hit: Sequence[NDArray[np.bool_]], lost: Sequence[NDArray[np.bool_]], top: Floats
    ) -> Heavy:
        """Count draws, one sequence per row."""
        row, value, k, u = [], [], [], []
        for i, (w, h, gone) in enumerate(zip(weights, hit, lost)):
            seen = np.asarray(h | gone)
            each, at = np.unique(np.asarray(w)[seen], return_inverse=True)
            row.append(np.full(len(each), i))
            value.append(each)
            k.append(np.bincount(at, np.asarray(h)[seen], len(each)))
            u.append(np.bincount(at, np.asarray(gone)[seen], len(each)))
        joined = [np.concatenate(part) if part else np.zeros(0) for part in (row, value, k, u)]
        whole = [joined[i].astype(np.int64) for i in (0, 2, 3)]
        size, worth = np.array([float(len(w)) for w in weights]), np.array([effective_sample_size(w) for w in weights])
        return cls(whole[0], joined[1].astype(float), whole[1], whole[2], np.asarray(top, float), size, worth)

    def check(self, rows: int) -> None:
        """Raise a `ValueError` where the columns do not belong together, or are not those of so many rows."""
        whole = ("row", "hits", "lost")
        for f in fields(self):
            column, many = getattr(self, f.name), len(self.weight) if f.name in (*whole, "weight") else rows
            if column.dtype != (np.int64 if f.name in whole else np.float64) or column.shape != (many,) or not np.isfinite(column).all():
                raise ValueError(f"the weights have a column {f.name} of {column.dtype} and shape {column.shape}, or one that is not finite")
        if len(self.row) and (self.row[0] < 0 or self.row[-1] >= rows or (np.diff(self.row) < 0).any()):
            raise ValueError("the weights belong to other rows")
        seen = np.bincount(self.row, (self.hits + self.lost).astype(float), rows)
        good = ((self.hits >= 0) & (self.lost >= 0) & (self.weight >= 0) & (self.weight <= self.top[self.row] * (1 + 1e-9))).all()
        if not good or (seen > self.n).any() or not ((self.effective > 0) & (self.effective <= self.n * (1 + 1e-9))).all():
            raise ValueError("weights are negative, larger than the largest possible one, or more than the draws")

    def log_evidence(self, rate: Floats, claim: Claim) -> Floats:
        """Return the logarithm of each row's evidence for the claim against its rate: answers that are missing count against it."""
        many, seen = len(self.n), (self.hits + self.lost if claim == "below" else self.hits).astype(float)
        x, top = self.weight, self.top
        misses = self.n - np.bincount(self.row, seen, many)
        r = np.clip(rate, 1e-300, top * (1 - 2**-53)) if claim == "below" else np.maximum(rate, 1e-300)
        total = np.full(many, -np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            for u, weight in zip(ANYTIME.u, ANYTIME.weight):
                if claim == "below":  # the factor of a draw is (top - u r - (1 - u) x) / (top - r)
                    each = np.log(np.maximum((top - u * r)[self.row] - (1 - u) * x, 0.0))
                    rest = misses * np.log(top - u * r) - self.n * np.log(top - r)
                else:  # it is u + (1 - u) x / r
                    each = np.log(u + (1 - u) * x / r[self.row])
                    rest = np.where(misses > 0, misses * (math.log(u) if u else -np.inf), 0.0)
                each = np.where(seen > 0, seen * each, 0.0)
                total = np.logaddexp(total, math.log(weight) + np.bincount(self.row, each, many) + rest)
        return np.where(misses > 0, total, -np.inf) if claim == "below" else total  # where no draw is a miss, nothing speaks for `below`

    def p_value(self, rate: float | Floats, claim: Claim) -> Floats:
        """Return each row's p-value of the claim against the rate."""
        at = np.broadcast_to(np.asarray(rate, float), self.n.shape)
        p = np.exp(np.minimum(0.0, -self.log_evidence(at, claim)))
        return p if claim == "below" else np.where(at <= 0, np.where(self._any_hit, 0.0, 1.0), p)

    def bound(self, alpha: float, claim: Claim) -> Floats:
        """Return each row's one-sided bound: upper for `below`, lower for `above`."""
        if claim == "below":
            return solve(lambda r: self.p_value(r, "below") < alpha, self.n.shape)
        return np.where(self._any_hit, 1.0 - solve(lambda r: self.p_value(1.0 - r, "above") < alpha, self.n.shape), 0.0)

    @property
    def _any_hit(self) -> NDArray[np.bool_]:
        return np.asarray(np.bincount(self.row, self.hits * (self.weight > 0), len(self.n)) > 0)

    def take(self, rows: NDArray[np.intp]) -> Heavy:
        """Return some of the rows, in the order given."""
        starts, ends = np.searchsorted(self.row, rows), np.searchsorted(self.row, rows, side="right")
        own = np.repeat(np.arange(len(rows)), ends - starts)
        at = np.arange(own.size) + (ends - np.cumsum(ends - starts))[own]  # entries of a row are next to each other
        return Heavy(own, self.weight[at], self.hits[at], self.lost[at], self.top[rows], self.n[rows], self.effective[rows])

    @classmethod
    def join(cls, parts: Sequence[Heavy]) -> Heavy:
        """Return the rows of all parts, one part after the other."""
        ahead = np.cumsum([0, *(len(part.n) for part in parts)])
        columns: dict[str, Any] = {f.name: np.concatenate([[], *(getattr(part, f.name) for part in parts)]) for f in fields(cls)}
        columns["row"] = np.concatenate([[], *(part.row + first for part, first in zip(parts, ahead))])
        return cls(**columns | {name: columns[name].astype(np.int64) for name in ("row", "hits", "lost")})


def weighted(outcomes: object, weights: object, *, largest: object, alpha: object = 0.05) -> Interval:
    """Estimate responsiveness under p from draws under q.

    Parameters
    ----------
    outcomes, weights : array
        For each draw, whether it hit (0 or 1) and its weight p/q, with p and q both normalised.
    largest : float
        The largest weight that any action can have, known beforehand; not the largest seen.

    Examples
    --------
    >>> import numpy as np
    >>> drawn = np.random.default_rng(0).choice(2, 2000, p=[0.8, 0.2])
    >>> low, high = weighted(drawn, np.array([0.625, 2.5])[drawn], largest=2.5)
    >>> low < 0.5 < high
    True
    """
    hit, w = values_of(outcomes, "outcomes"), _weights_of(weights)
    level, top = fraction(alpha, "alpha"), number(largest, "largest")
    if hit.size != w.size:
        raise DesignError("one weight for each outcome", where="weights", got=w.size, remedy=f"give {hit.size}")
    refuse_first(~np.isin(hit, (0, 1)), hit, "outcomes must be 0 or 1", "outcomes", "1 for a hit, 0 for a miss")
    if not 1 - 1e-9 <= top < np.inf or w.max() > top * (1 + 1e-12):
        what = "the largest possible weight is at least 1 (the mean of all) and no smaller than any weight seen"
        raise DesignError(what, where="largest", got=largest, remedy="compute the maximum of p/q over all feasible actions")
    heavy = Heavy.of([w], [hit == 1], [np.zeros(hit.size, bool)], np.array([max(top, 1.0)]))
    low, high = float(heavy.bound(level / 2, "above")[0]), float(heavy.bound(level / 2, "below")[0])
    estimate = float(np.clip((w * hit).mean(), 0, 1))
    return Interval(estimate, low, max(low, high), level, f"weighted draws worth {heavy.effective[0]:.1f}")
