"""Shares of people for whom a claim is true, from the p-values of single people; people who have the same draws count as one.

A share allows for the error of each single verdict. Counting verdicts is not enough: some
claims are false, and some people who should be claimed are not. Let M be the number of people for whom the claim is true. At a
level a, each other person has a p-value below a with probability at most a, independently, so the number R of p-values below a is at
most M + Binomial(m - M, a) in distribution; every M for which the observed R would be too large is excluded. The error is split
equally over four levels and the largest M counts: low levels are sharp for strong evidence, high ones for weak evidence, and the
last one is Bonferroni's. The opposite claim bounds the share from above in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from budge.errors import DesignError
from budge.stats._checks import Claim, Ends, Floats, claim_of, fraction, one_of, percent, plain, refuse_first, with_missing
from budge.stats.binomial import lower_bound, p_value
from budge.stats.multiplicity import adjust, p_values_of
from budge.stats.tails import at_least

__all__ = ["Share", "Units", "share", "share_from_p_values", "true_claims"]

_Pairs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Units:
    """Which people have the same draws, and who of them has which p-value: entries of an array of p-values stand for many people.

    Parameters
    ----------
    code, weight, repeats
        Units whose people all have the p-value of one entry: the entry, the people of such a unit, and how many such units there are.
    odd_code, odd_unit
        The people of all other units: each person's entry, and the number of the unit.

    Examples
    --------
    >>> units = Units.of([0, 1, 1, 0], [7, 8, 8, 9])  # two people share their draws
    >>> units.weight.tolist(), units.repeats.tolist(), units.people
    ([1, 2], [2, 1], 4)
    """

    code: NDArray[np.int64]
    weight: NDArray[np.int64]
    repeats: NDArray[np.int64]
    odd_code: NDArray[np.int64]
    odd_unit: NDArray[np.int64]

    @classmethod
    def of(cls, code: object, unit: object) -> Units:
        """Return the units of people, from each person's entry and a number that people of one unit share."""
        codes, numbers = np.asarray(code, dtype=np.int64), np.asarray(unit)
        order = np.argsort(numbers, kind="stable")
        codes, numbers = codes[order], numbers[order]
        start = np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1]]) if len(numbers) else np.zeros(0, np.int64)
        size = np.diff(np.r_[start, len(codes)])
        same = np.minimum.reduceat(codes, start) == np.maximum.reduceat(codes, start) if len(start) else np.zeros(0, bool)
        odd = np.repeat(~same, size)
        which = np.repeat(np.cumsum(~same) - 1, size)
        return cls(*_pairs(codes[start[same]], size[same], np.ones(int(same.sum()), np.int64)), codes[odd], which[odd].astype(np.int64))

    @classmethod
    def join(cls, parts: Sequence[Units]) -> Units:
        """Return the units of parts that have none in common."""
        first = np.cumsum([0, *(int(u.odd_unit.max(initial=-1)) + 1 for u in parts)])
        odd = [u.odd_unit + k for u, k in zip(parts, first.tolist())]
        code, weight, repeats, other = (
            np.concatenate([getattr(u, name) for u in parts] or [np.zeros(0, np.int64)]) for name in ("code", "weight", "repeats", "odd_code")
        )
        return cls(*_pairs(code, weight, repeats), other, np.concatenate(odd or [np.zeros(0, np.int64)]))

    @property
    def people(self) -> int:
        """The number of people."""
        return int((self.weight * self.repeats).sum()) + len(self.odd_code)

    @property
    def units(self) -> int:
        """The number of units."""
        return int(self.repeats.sum()) + int(self.odd_unit.max(initial=-1)) + 1

    def people_of(self, entries: int) -> NDArray[np.int64]:
        """Return the number of people of each entry."""
        found = np.zeros(entries, np.int64)
        np.add.at(found, self.code, self.weight * self.repeats)
        np.add.at(found, self.odd_code, 1)
        return found

    def per_unit(self, p: Floats) -> _PerUnit:
        """Return the number of people known, and p-value, weight and repeats of the units of the others."""
        values, odd = p[self.code], p[self.odd_code]
        drawn, left = values > 0, odd > 0
        known = float((self.weight * self.repeats)[~drawn].sum() + (~left).sum())
        which = self.odd_unit[left]
        start = np.flatnonzero(np.r_[True, which[1:] != which[:-1]]) if len(which) else np.zeros(0, np.int64)
        most = np.maximum.reduceat(odd[left], start) if len(start) else np.zeros(0)
        weight = np.r_[self.weight[drawn], np.diff(np.r_[start, len(which)]) if len(start) else np.zeros(0, np.int64)]
        return _PerUnit(known, np.r_[values[drawn], most], weight.astype(float), np.r_[self.repeats[drawn], np.ones(len(start), np.int64)])


def _pairs(code: NDArray[np.int64], weight: NDArray[np.int64], repeats: NDArray[np.int64]) -> _Pairs:
    """Return every pair of code and weight once, with the sum of its repeats."""
    most = int(weight.max(initial=0)) + 1
    codes, sums = np.asarray(code * most + weight), repeats
    if len(codes) and int(codes.max()) < 4 * len(codes):
        total = np.bincount(codes, sums).astype(np.int64)  # exact: counts of people are below 2^53
        found = np.flatnonzero(total)
        return found // most, found % most, total[found]
    found, at = np.unique(codes, return_inverse=True)
    return found // most, found % most, np.bincount(at, sums, len(found)).astype(np.int64)


class _PerUnit(NamedTuple):
    """People known, and of the others by unit: the p-value, the people of the unit, and how many such units there are."""

    known: float
    p: Floats
    weight: Floats
    repeats: NDArray[np.int64]


LEVELS = (0.05, 0.01, 0.001)  # and a fourth, which depends on the error and on the number of units


@dataclass(frozen=True)
class Share(Ends):
    """The share of people for whom the claim is true: `low` to `high`, with error `alpha`.

    `claimed` and `opposite` count the people with a verdict: p-values of the claim, and of the opposite claim, below alpha.
    """

    derived = ("estimate",)

    claimed: int
    opposite: int
    people: int
    low: float
    high: float
    alpha: float
    over: str
    claim: Claim

    @property
    def estimate(self) -> float:
        """Share of verdicts: people with a verdict for the claim, out of all. Verdicts err, so it may lie outside the interval."""
        return self.claimed / self.people

    def __str__(self) -> str:
        whom = f"of these {self.people} people" if self.over == "these" else f"of the population (from {self.people} people)"
        ends = f"between {percent(round(self.low, 4))} and {percent(round(self.high, 4))}"
        return f"{ends} {whom} are {self.claim} the threshold, at {percent(1 - self.alpha)}"


def share(
    hits: object, n: object, threshold: object, *, unresolved: object = 0, claim: str = "below", alpha: object = 0.05, over: str = "these",
    units: object = None, independent: bool = True,
) -> Share:  # fmt: skip
    """Return an interval for the share of people whose responsiveness is below (or above) the threshold.

    Parameters
    ----------
    hits, n : array
        One entry per person; `n` is fixed in advance.
    threshold : float
        The threshold tau.
    unresolved : int or array
        Draws without an answer, counted against each end of the interval.
    claim, alpha, over, units, independent
        As for `share_from_p_values`.

    Examples
    --------
    >>> print(share([0] * 60 + [50] * 40, 100, 0.1))
    between 60 % and 60 % of these 100 people are below the threshold, at 95 %
    """
    side = claim_of(claim)
    k, size, missing = (np.atleast_1d(part) for part in with_missing(hits, n, unresolved))
    below, above = p_value(k + missing, size, threshold, "below"), p_value(k, size, threshold, "above")
    p_claim, p_opposite = (below, above) if side == "below" else (above, below)
    return share_from_p_values(p_claim, p_opposite, claim=side, alpha=alpha, over=over, units=units, independent=independent)


def share_from_p_values(
    p_claim: object, p_opposite: object, *, known_not: object = None, claim: str = "below", alpha: object = 0.05, over: str = "these",
    units: object = None, independent: bool = True,
) -> Share:  # fmt: skip
    """Return an interval for the share of people for whom the claim is true, from p-values of the claim and of its opposite.

    Parameters
    ----------
    p_claim, p_opposite : array
        One p-value each per person; 0 where the claim (its opposite) is known to be true, 1 where it is known to be false.
    known_not : array of bool, optional
        People known not to satisfy the claim although the opposite is not true either: exactly at the threshold.
    claim : {"below", "above"}
        What `p_claim` is evidence for.
    alpha : float
        Error of the interval, half of it at each end.
    over : {"these", "population"}
        The share among these people, or in the population that they are a random sample of.
    units : array of int, or Units, optional
        Equal numbers mark people whose draws are the same (equal starts draw equal points), hence with equal p-values. With `Units`, an entry
        of the arrays stands for many people.
    independent : bool
        Whether the draws of different units are independent. If not, Holm's count bounds each end, for any dependence.

    Notes
    -----
    These people: `low` and `high` come from `true_claims` at alpha/2 each. Population: a random person has a p-value below a
    with probability at most share + (1 - share) a, so Clopper-Pearson bounds the share at each of three levels. With `units`,
    the least number among these people is bounded first and the population share from it, at alpha/4 each.

    Examples
    --------
    >>> found = share_from_p_values([0.0, 1e-9, 0.3, 1.0], [1.0, 1.0, 0.8, 1.0], known_not=[False, False, False, True])
    >>> found.low, found.high, found.estimate
    (0.5, 0.75, 0.5)
    """
    side, whom, error = claim_of(claim), one_of(over, "over", ("these", "population")), fraction(alpha, "alpha")
    p, q = p_values_of(p_claim, "p_claim").ravel(), p_values_of(p_opposite, "p_opposite").ravel()
    if p.size != q.size:
        raise DesignError("one p-value of each claim per person", where="p_opposite", got=q.size, remedy=f"give {p.size}")
    if not independent and whom == "population":
        what, remedy = "a population share needs independent people", "draw with a seed per person"
        raise DesignError(what, where="independent", got=False, remedy=remedy)
    against = np.where(_marks(known_not, p.size), 0.0, q)
    what, remedy = "a claim and its opposite cannot both be known to be true", "give the p-value 1 to what is known to be false"
    refuse_first((p == 0) & (against == 0), q, what, "p_opposite", remedy)
    groups = units if isinstance(units, Units) else None if units is None else _units(units, p.size)
    people = groups.people_of(p.size) if isinstance(groups, Units) else np.broadcast_to(np.int64(1), p.shape)
    m = int(people.sum())
    if whom == "population":
        low, not_true = (_population(v, error / 2, groups) for v in (p, against))
        high = 1.0 - not_true
    else:
        count = true_claims if independent else _holm_claims
        claimed, refuted = (count(v, error / 2, units=groups) for v in (p, against))
        low, high = claimed / m, (m - refuted) / m  # equal to the last bit where everybody is known
    made, opposite = int(people[p < error].sum()), int(people[q < error].sum())
    return Share(made, opposite, m, low, max(high, low), error, whom, side)


def true_claims(p: object, alpha: object, *, units: object = None) -> float:
    """Return the least number of people whose claim is true; too large with probability at most alpha.

    Parameters
    ----------
    p : array
        One p-value per person. 0 means known to be true: counted, and never among those that may be false.
    alpha : float
        Error, split equally over the levels 0.05, 0.01, 0.001 and (alpha / 4) / units.
    units : array of int, or Units, optional
        Equal numbers mark people with the same draws. A unit has one p-value (the largest of its people that are not known)
        and weighs as much as its people; at most f units are claimed falsely, so the f heaviest claimed ones are left out.

    Examples
    --------
    >>> true_claims([0.0, 1e-6, 1e-6, 0.2], 0.05)
    3.0
    >>> p = [0.0, 0.02, 0.02, 0.02, 0.2]
    >>> true_claims(p, 0.05), true_claims(p, 0.05, units=[0, 1, 1, 1, 2])  # three people, or one result counted three times
    (3.0, 1.0)
    """
    level = fraction(alpha, "alpha")
    known, q, weight, repeats = _per_unit(p, units)
    many = int(repeats.sum())
    if not many:
        return known
    each = level / (len(LEVELS) + 1)
    best = 0.0
    for a in (*LEVELS, each / many):
        chosen = q < a
        claimed = int(repeats[chosen].sum())
        false = claimed - _least_true(claimed, many, a, each)
        best = max(best, _without_heaviest(weight[chosen], repeats[chosen], false))
    return known + best


def _least_true(made: int, units: int, level: float, error: float) -> int:
    """Return the smallest M with P(Binomial(units - M, level) >= made - M) > error: so many claims are not too many."""
    low, high = -1, made  # the tail grows with M: too small at low, large enough at high
    while high - low > 1:
        middle = (low + high) // 2
        plausible = float(at_least(made - middle, units - middle, level)) > error
        low, high = (low, middle) if plausible else (middle, high)
    return high


def _without_heaviest(weight: Floats, repeats: NDArray[np.int64], drop: int) -> float:
    """Return the sum of the weights without the `drop` largest."""
    if not drop:
        return float((weight * repeats).sum())
    order = np.argsort(weight)
    w, many = weight[order], repeats[order]
    kept = np.clip(int(many.sum()) - drop - (np.cumsum(many) - many), 0, many)
    return float((w * kept).sum())


def _holm_claims(p: object, alpha: float, *, units: object = None) -> float:
    """Return the number of people that Holm's procedure claims: all true with probability 1 - alpha, under any dependence."""
    known, q, weight, repeats = _per_unit(p, units)
    return known + (float((weight * repeats)[adjust(q, "holm", repeats=repeats) < alpha].sum()) if q.size else 0.0)


def _population(p: Floats, alpha: float, units: NDArray[np.int64] | Units | None) -> float:
    """Return a lower bound for the population share of true claims."""
    if units is not None:
        people = units.people if isinstance(units, Units) else p.size
        return float(lower_bound(true_claims(p, alpha / 2, units=units), people, alpha / 2))
    bounds = [(lower_bound(int((p < a).sum()), p.size, alpha / len(LEVELS)) - a) / (1 - a) for a in LEVELS]
    return float(max(0.0, *bounds))


def _per_unit(p: object, units: object) -> _PerUnit:
    """Return the number of people known, and p-value, weight and repeats per unit of the others."""
    q = p_values_of(p, "p").ravel()
    if isinstance(units, Units):
        return units.per_unit(q)
    drawn = q > 0
    known, numbers = float(q.size - drawn.sum()), None if units is None else _units(units, q.size)[drawn]
    q = q[drawn]
    ones: NDArray[np.int64] = np.broadcast_to(np.int64(1), q.shape)
    if numbers is None or not q.size:
        return _PerUnit(known, q, np.broadcast_to(1.0, q.shape), ones)
    if (numbers[1:] < numbers[:-1]).any():
        order = np.argsort(numbers, kind="stable")
        numbers, q = numbers[order], q[order]
    start = np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1]])
    return _PerUnit(known, np.maximum.reduceat(q, start), np.diff(np.r_[start, q.size]).astype(float), ones[: len(start)])


def _units(units: object, people: int) -> NDArray[np.int64]:
    numbers = np.asarray(units)
    if numbers.dtype.kind not in "iu" or numbers.shape != (people,):
        raise DesignError("one whole number per person", where="units", got=plain(numbers), remedy=f"give {people} integers")
    return numbers.astype(np.int64, copy=False)


def _marks(known: object, people: int) -> NDArray[np.bool_]:
    if known is None:
        return np.zeros(people, np.bool_)
    marks = np.asarray(known)
    if marks.dtype.kind != "b" or marks.shape != (people,):
        raise DesignError("one truth value per person", where="known_not", got=plain(marks), remedy=f"give {people} of them")
    return marks
