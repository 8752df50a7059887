"""Stopping rules: look after every draw, stop as soon as the verdict is certain, and keep alpha true.

Every rule is two lists of counts, so there is one way to run it and one exact calculation of its cost and error: after t draws stop with the
claim at ``accept[t]`` surprises or fewer, and without it at ``give_up[t]`` or more. (A surprise is a hit for the claim `below`, a miss for
`above`.) `bets` is the evidence behind ``accept``: `budge.stats.claim` reads p-value and bound from the same evidence, so that the claim a rule
stopped for is the claim that is reported.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from budge.errors import DesignError
from budge.stats._checks import Claim, Floats, Record, asked, fraction, fractions, hits_of_n, percent, unwrap, whole
from budge.stats.evidence import ANYTIME, Bets, evidence_p_value, log_evidence
from budge.stats.planning import check_n, rate_at, samples_for_power
from budge.stats.power import rejecting_counts

__all__ = ["Calls", "Performance", "StoppingRule", "anytime_rule", "curtailed_rule", "expected_calls", "sprt_bets", "sprt_rule"]


@dataclass(frozen=True)
class Performance(Record):
    """The exact behaviour of a rule at one true rate: how often it claims, how many draws it needs on average."""

    rate: float
    claimed: float
    expected_calls: float
    undecided: float
    max_n: int

    def __str__(self) -> str:
        calls = f"{self.expected_calls:.1f} calls on average (at most {self.max_n})"
        return f"if ρ is {self.rate:g}: claim made with probability {self.claimed:.4g}, {calls}"


class _Runs(NamedTuple):
    """Verdicts of runs of a rule, the calls they took and the hits they saw: scalars or arrays."""

    verdict: Any
    calls: Any
    hits: Any


@dataclass(frozen=True)
class StoppingRule(Record):
    """A rule for stopping. ``accept`` and ``give_up`` are indexed by the number of draws, from 0 to `max_n`."""

    kind: str
    claim: Claim
    threshold: float
    alpha: float
    max_n: int
    fixed_n: int
    accept: NDArray[np.int64]
    give_up: NDArray[np.int64]
    margin: float | None = None
    power: float | None = None
    bets: Bets | None = None  # None: the test of all max_n draws, ended as soon as its verdict is certain

    def until_claim(self, surprises: NDArray[np.int64], n: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the fewest further draws after which the claim can be made: none of a round of that length is asked in vain."""
        later = np.searchsorted(np.maximum.accumulate(self.accept), surprises, side="left")
        return np.maximum(np.minimum(later, self.max_n) - n, 1)

    def decide(self, hits: object, n: object) -> Any:
        """Return the state after `hits` in `n` draws: the claim, `inconclusive` (stop without it) or `continue`."""
        k, size = hits_of_n(hits, n)
        if (size > self.max_n).any():
            remedy = f"stop at max_n = {self.max_n}"
            raise DesignError("more draws than the rule allows", where="n", got=int(size.max()), remedy=remedy)
        j, t = (k if self.claim == "below" else size - k), size.astype(np.int64)
        ended = np.where((j >= self.give_up[t]) | (t == self.max_n), "inconclusive", "continue")
        return unwrap(np.where(j <= self.accept[t], self.claim, ended))

    def run(self, outcomes: object) -> _Runs:
        """Apply the rule to sequences of draws (last axis) of 0 and 1, each read only as far as it is needed."""
        draws = np.asarray(outcomes)
        if draws.ndim == 0 or draws.shape[-1] < 1 or draws.dtype.kind not in "biuf" or not np.isin(draws, (0, 1)).all():
            remedy = "one row of draws for each run"
            raise DesignError("outcomes must be rows of 0 and 1", where="outcomes", got=outcomes, remedy=remedy)
        draws = draws[..., : self.max_n]
        t = np.arange(1, draws.shape[-1] + 1)
        hits = np.cumsum(draws, axis=-1, dtype=np.int32)
        j = hits if self.claim == "below" else t - hits
        shown = j <= self.accept[t]
        stop = shown | (j >= self.give_up[t]) | (t == self.max_n)
        if not stop.any(axis=-1).all():
            remedy = f"give up to max_n = {self.max_n} draws"
            raise DesignError("the draws end before the rule stops", where="outcomes", got=draws.shape, remedy=remedy)
        at = np.argmax(stop, axis=-1)[..., None]
        verdict = np.where(np.take_along_axis(shown, at, -1)[..., 0], self.claim, "inconclusive")
        calls, found = at[..., 0] + 1, np.take_along_axis(hits, at, -1)[..., 0]
        return _Runs(unwrap(verdict), unwrap(calls), unwrap(found))

    def at(self, rate: object) -> Performance:
        """Return the exact performance at a true rate, by following the distribution of the count from draw to draw."""
        p = fraction(rate, "rate", zero=True, one=True)
        p = p if self.claim == "below" else 1 - p
        alive, first = np.ones(1), 0  # probability of each count from `first` on, among runs that go on
        claimed = expected = 0.0
        for t in range(1, self.max_n + 1):
            expected += alive.sum()
            alive = np.append(alive * (1 - p), 0.0) + np.append(0.0, alive * p)
            done = int(min(max(self.accept[t] - first + 1, 0), alive.size))
            claimed += alive[:done].sum()
            end = int(min(max(self.give_up[t] - first, done), alive.size))
            alive, first = alive[done:end], first + done
            if not alive.size:
                break
        return Performance(p if self.claim == "below" else 1 - p, float(claimed), float(expected), float(alive.sum()), self.max_n)

    def shared(self, family: int) -> StoppingRule:
        """Return the rule of one member of a family of tests: at alpha divided by their number, so that its claims survive an adjustment over all.

        The largest number of draws of an SPRT is found anew for that error, unless it was given.

        Examples
        --------
        >>> rule = sprt_rule(threshold=0.4, rate=0.2)
        >>> rule.max_n, rule.shared(4).alpha, rule.shared(4).max_n
        (137, 0.0125, 184)
        """
        if whole(family, "family") == 1:
            return self
        told: dict[str, Any] = {"threshold": self.threshold, "claim": self.claim}
        if self.kind != "SPRT":
            make = curtailed_rule if self.bets is None else anytime_rule
            return make(self.max_n, alpha=self.alpha / family, **told)
        told |= {"margin": self.margin, "power": self.power}
        given = None if sprt_rule(alpha=self.alpha, **told).max_n == self.max_n else self.max_n
        return sprt_rule(alpha=self.alpha / family, max_n=given, **told)

    def __str__(self) -> str:
        sign = "<" if self.claim == "below" else ">"
        claim = f"ρ {sign} {self.threshold:g} is shown at alpha {self.alpha:g}"
        return f"{self.kind}: look after every draw, stop when {claim} or out of reach, at most {self.max_n} draws"


def curtailed_rule(n: object, *, threshold: object = 0.1, alpha: object = 0.05, claim: str = "below") -> StoppingRule:
    """Return the fixed test of n draws, ended as soon as its verdict can no longer change; alpha and power are the fixed test's own.

    Examples
    --------
    >>> rule = curtailed_rule(29, threshold=0.1)
    >>> rule.decide(1, 3), rule.at(0.5).expected_calls < 2.1
    ('inconclusive', True)
    """
    tau, level, side = asked(threshold, alpha, claim)
    size = check_n(n, threshold=tau, alpha=level, claim=side)
    most = int(rejecting_counts(np.array([size], float), tau, level, side)[0])
    t = np.arange(size + 1)
    return StoppingRule("curtailed", side, tau, level, size, size, most - (size - t), np.full(size + 1, most + 1))


def anytime_rule(max_n: object, *, threshold: object = 0.1, alpha: object = 0.05, claim: str = "below") -> StoppingRule:
    """Return a rule that stops when the anytime p-value is below alpha, when the opposite claim is shown, or when `max_n` cannot save the claim.

    Examples
    --------
    >>> rule = anytime_rule(500, threshold=0.1)
    >>> rule.at(0.1).claimed < 0.05, rule.at(0.0).expected_calls
    (True, 37.0)
    """
    tau, level, side = asked(threshold, alpha, claim)
    size = check_n(max_n, threshold=tau, alpha=level, claim=side)
    null = tau if side == "below" else 1 - tau
    t = np.arange(size + 1, dtype=float)
    accept = _last_count(t, lambda j, s: evidence_p_value(j, s, null) < level)
    # The mirrored test shows the opposite; stopping without the claim never adds to alpha.
    opposite = t - _last_count(t, lambda j, s: evidence_p_value(j, s, 1 - null) < level)
    give_up = np.minimum(opposite, max(float(accept.max()), -1) + 1)
    lists = accept.astype(np.int64), give_up.astype(np.int64)
    return StoppingRule("anytime-valid", side, tau, level, size, size, *lists, bets=ANYTIME)


def _last_count(t: Floats, holds: Any) -> Floats:
    """Return, for each t, the largest count j in -1..t for which `holds`, true on the left; by bisection."""
    low, high = np.full_like(t, -1.0), t + 1.0
    while (high - low).max() > 1:
        middle = np.floor((low + high) / 2)
        ok = holds(np.clip(middle, 0, t), t)
        low, high = np.where(ok & (high - low > 1), middle, low), np.where(~ok & (high - low > 1), middle, high)
    return low


def sprt_rule(
    *, threshold: object = 0.1, rate: object = None, margin: object = None, alpha: object = 0.05, power: object = 0.95, claim: str = "below",
    max_n: object = None,
) -> StoppingRule:  # fmt: skip
    """Return Wald's sequential test of the threshold against ``threshold - margin``, with both error rates guaranteed.

    The evidence mixes the alternative at the margin with "no surprise at all" (weights 3/4 and 1/4), which shortens the runs of predictions that
    never move. The boundary 1/alpha holds without Wald's approximation (Ville's inequality). The cap `max_n` costs power, so it is chosen by
    the exact calculation: the first of growing caps at which the power is still reached.

    Examples
    --------
    >>> rule = sprt_rule(threshold=0.1, margin=0.05)
    >>> rule.at(0.1).claimed <= 0.05, rule.at(0.05).claimed >= 0.95
    (True, True)
    """
    (tau, level, side), target = asked(threshold, alpha, claim), fraction(power, "power")
    goal = rate_at(tau, rate, margin, side)
    fixed = samples_for_power(tau, goal, alpha=level, power=target, claim=side).n
    if max_n is not None:
        return _sprt(tau, goal, level, target, side, check_n(max_n, threshold=tau, alpha=level, claim=side), fixed)
    cap = fixed
    for _ in range(12):  # each step half as long again; Wald's boundaries leave room, so one or two are the rule
        rule = _sprt(tau, goal, level, target, side, cap, fixed)
        if rule.at(goal).claimed >= target:
            break
        cap = cap + cap // 2 + 1
    return rule


def sprt_bets(threshold: float, rate: float, claim: Claim) -> Bets:
    """Return the evidence of Wald's test of the threshold against the rate; it holds after any number of draws."""
    null, other = (threshold, rate) if claim == "below" else (1 - threshold, 1 - rate)
    return Bets.of_ratio(other / null)


def _sprt(tau: float, goal: float, alpha: float, power: float, claim: Claim, cap: int, fixed: int) -> StoppingRule:
    null, other = (tau, goal) if claim == "below" else (1 - tau, 1 - goal)
    bets, plain_ratio = sprt_bets(tau, goal, claim), Bets.of_ratio(other / null, never=0.0)
    t = np.arange(cap + 1, dtype=float)
    accept = _last_count(t, lambda j, s: evidence_p_value(j, s, null, bets) < alpha).astype(np.int64)
    give_up = _last_count(t, lambda j, s: log_evidence(j, s, null, plain_ratio) > math.log(1 - power)).astype(np.int64) + 1
    give_up = np.minimum(give_up, int(accept.max()) + 1)  # past the last accepting count, further draws are wasted
    return StoppingRule("SPRT", claim, tau, alpha, cap, fixed, accept, give_up, abs(tau - goal), power, bets)


@dataclass(frozen=True)
class Calls(Record):
    """Expected model calls over all people, against the fixed design."""

    derived = ("saved",)

    fixed: int
    to_first_hit: float
    sequential: float | None
    people: int

    @property
    def saved(self) -> float | None:
        """Calls that the sequential rule saves on average."""
        return None if self.sequential is None else self.fixed - self.sequential

    def __str__(self) -> str:
        whom = "1 person" if self.people == 1 else f"{self.people:,} people"
        text = f"{whom}: {self.fixed:,} model calls with a fixed number of draws"
        text += f", {self.to_first_hit:,.0f} to look for a first hit"
        if self.sequential is not None:
            text += f", {self.sequential:,.0f} sequentially ({percent(round(1 - self.sequential / self.fixed, 2))} saved)"
        return text


def expected_calls(rates: object, n: object, *, people: object = None, rule: StoppingRule | None = None) -> Calls:
    """Return the expected number of model calls.

    Parameters
    ----------
    rates : float or array
        Responsiveness that is expected: one for everybody, one for each person, or a typical mix.
    n : int
        Draws per person of the fixed design.
    people : int, optional
        The number of people; the number of rates unless given, over which the mix is then spread evenly.
    rule : StoppingRule, optional
        A sequential rule to compare with.

    Examples
    --------
    >>> rule = sprt_rule(threshold=0.1, margin=0.05)
    >>> print(expected_calls([0.0, 0.0, 0.9], rule.fixed_n, people=300, rule=rule))
    300 people: 89,400 model calls with a fixed number of draws, 59,711 to look for a first hit, 8,356 sequentially (91 % saved)
    """
    mix, size = np.atleast_1d(fractions(rates, "rates", zero=True, one=True)).ravel(), whole(n, "n")
    if not mix.size:
        raise DesignError("no rates: there is nobody to plan for", where="rates", got=rates, remedy="give at least one rate")
    many = mix.size if people is None else whole(people, "people")
    # Draws until the first hit, at most n: the sum of the probabilities that the first t draws all miss.
    first = np.where(mix > 0, -np.expm1(size * np.log1p(-np.minimum(mix, 1 - 1e-16))) / np.where(mix > 0, mix, 1), float(size))
    sequential = None
    if rule is not None:
        distinct, times = np.unique(mix, return_counts=True)
        sequential = many * float(np.average([rule.at(rate).expected_calls for rate in distinct.tolist()], weights=times))
    return Calls(many * size, many * float(first.mean()), sequential, many)
