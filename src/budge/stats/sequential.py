"""Stopping rules: look after every draw, stop as soon as the verdict is certain, and keep alpha true.

Every rule is two lists of counts, so there is one way to run it, one exact calculation of what it costs and errs, and nothing
to drift apart: after t draws stop with the claim at ``accept[t]`` surprises or fewer, and without it at ``give_up[t]`` or more.
(A surprise is a hit for the claim `below`, a miss for `above`.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from budge.errors import DesignError
from budge.stats._checks import Claim, Floats, claim_of, fraction, hits_of_n, percent, plain, unwrap
from budge.stats.anytime import log_evidence
from budge.stats.planning import check_n, rate_at, samples_for_power
from budge.stats.power import rejecting_counts

__all__ = ["Performance", "SequentialResult", "StoppingRule", "anytime_rule", "curtailed_rule", "sprt_rule"]


@dataclass(frozen=True)
class Performance:
    """What a rule does at one true rate, computed exactly: how often it claims, how many draws it needs on average."""

    rate: float
    claimed: float
    expected_calls: float
    undecided: float
    max_n: int

    def __str__(self) -> str:
        calls = f"{self.expected_calls:.1f} calls on average (at most {self.max_n})"
        return f"if rho is {self.rate:g}: claim made with probability {self.claimed:.4g}, {calls}"

    def to_dict(self) -> dict[str, Any]:
        """The record of the performance."""
        return {name: plain(getattr(self, name)) for name in ("rate", "claimed", "expected_calls", "undecided", "max_n")}


@dataclass(frozen=True)
class SequentialResult:
    """The verdicts of runs, the calls they took and the calls saved against the fixed design."""

    verdict: Any
    calls: Any
    hits: Any
    fixed_n: int

    @property
    def saved(self) -> Any:
        """Calls saved against `fixed_n` for each run; negative where the run took longer."""
        return self.fixed_n - self.calls

    def __str__(self) -> str:
        if np.ndim(self.calls) == 0:
            return f"{self.verdict} after {self.calls} calls ({self.saved} of {self.fixed_n} saved)"
        mean = float(np.mean(self.calls))
        saved = percent(round(1 - mean / self.fixed_n, 3))
        return f"{np.size(self.calls)} runs, {mean:.1f} calls on average instead of {self.fixed_n}: {saved} saved"

    def to_dict(self) -> dict[str, Any]:
        """The record of the runs."""
        return {name: plain(getattr(self, name)) for name in ("verdict", "calls", "hits", "saved", "fixed_n")}


@dataclass(frozen=True)
class StoppingRule:
    """When to stop. ``accept`` and ``give_up`` are indexed by the number of draws, from 0 to `max_n`."""

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

    def decide(self, hits: object, n: object) -> Any:
        """The state after `hits` in `n` draws: the claim, `inconclusive` (stop without it) or `continue`."""
        k, size = hits_of_n(hits, n)
        if (size > self.max_n).any():
            raise DesignError(
                "more draws than the rule allows", where="n", got=int(size.max()), remedy=f"stop at max_n = {self.max_n}"
            )
        j, t = (k if self.claim == "below" else size - k), size.astype(np.int64)
        state = np.where(
            j <= self.accept[t], self.claim, np.where((j >= self.give_up[t]) | (t == self.max_n), "inconclusive", "continue")
        )
        return unwrap(np.asarray(state))

    def run(self, outcomes: object) -> SequentialResult:
        """Apply the rule to sequences of draws (last axis) of 0 and 1, each read only as far as it is needed."""
        draws = np.asarray(outcomes)
        if draws.ndim == 0 or draws.shape[-1] < 1 or draws.dtype.kind not in "biuf" or not np.isin(draws, (0, 1)).all():
            raise DesignError(
                "outcomes must be rows of 0 and 1", where="outcomes", got=outcomes, remedy="one row of draws for each run"
            )
        draws = draws[..., : self.max_n]
        t = np.arange(1, draws.shape[-1] + 1)
        hits = np.cumsum(draws, axis=-1, dtype=np.int32)
        j = hits if self.claim == "below" else t - hits
        shown = j <= self.accept[t]
        stop = shown | (j >= self.give_up[t]) | (t == self.max_n)
        if not stop.any(axis=-1).all():
            raise DesignError(
                "the draws end before the rule stops",
                where="outcomes",
                got=draws.shape,
                remedy=f"give up to max_n = {self.max_n} draws",
            )
        at = np.argmax(stop, axis=-1)[..., None]
        verdict = np.where(np.take_along_axis(shown, at, -1)[..., 0], self.claim, "inconclusive")
        calls, found = at[..., 0] + 1, np.take_along_axis(hits, at, -1)[..., 0]
        return SequentialResult(unwrap(verdict), unwrap(calls), unwrap(found), self.fixed_n)

    def at(self, rate: object) -> Performance:
        """The exact performance at a true rate, by following the distribution of the count from draw to draw."""
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

    def __str__(self) -> str:
        sign = "<" if self.claim == "below" else ">"
        claim = f"rho {sign} {self.threshold:g} is shown at alpha {self.alpha:g}"
        return f"{self.kind}: look after every draw, stop when {claim} or out of reach, at most {self.max_n} draws"

    def to_dict(self) -> dict[str, Any]:
        """The record of the rule, with both lists."""
        names = ("kind", "claim", "threshold", "alpha", "margin", "power", "max_n", "fixed_n", "accept", "give_up")
        return {name: plain(getattr(self, name)) for name in names}


def curtailed_rule(n: object, *, threshold: object = 0.1, alpha: object = 0.05, claim: str = "below") -> StoppingRule:
    """The fixed test of n draws, ended as soon as its verdict can no longer change; alpha and power are the fixed test's own.

    Examples
    --------
    >>> rule = curtailed_rule(29, threshold=0.1)
    >>> rule.decide(1, 3), rule.at(0.5).expected_calls < 2.1
    ('inconclusive', True)
    """
    tau, level, side = fraction(threshold, "threshold"), fraction(alpha, "alpha"), claim_of(claim)
    size = check_n(n, threshold=tau, alpha=level, claim=side)
    most = int(rejecting_counts(np.array([size], float), tau, level, side)[0])
    t = np.arange(size + 1)
    return StoppingRule("curtailed", side, tau, level, size, size, most - (size - t), np.full(size + 1, most + 1))


def anytime_rule(max_n: object, *, threshold: object = 0.1, alpha: object = 0.05, claim: str = "below") -> StoppingRule:
    """Stop when the anytime p-value is below alpha, when the opposite claim is shown, or when `max_n` cannot save the claim.

    Examples
    --------
    >>> rule = anytime_rule(500, threshold=0.1)
    >>> rule.at(0.1).claimed < 0.05, rule.at(0.0).expected_calls
    (True, 36.0)
    """
    tau, level, side = fraction(threshold, "threshold"), fraction(alpha, "alpha"), claim_of(claim)
    size = check_n(max_n, threshold=tau, alpha=level, claim=side)
    null = tau if side == "below" else 1 - tau
    t = np.arange(size + 1, dtype=float)
    accept = _last_count(t, lambda j, s: log_evidence(j, s, np.float64(null)) > -math.log(level))
    # The mirrored test shows the opposite; stopping without the claim never adds to alpha.
    opposite = t - _last_count(t, lambda j, s: log_evidence(j, s, np.float64(1 - null)) > -math.log(level))
    give_up = np.minimum(opposite, max(float(accept[-1]), -1) + 1)
    return StoppingRule("anytime-valid", side, tau, level, size, size, accept.astype(np.int64), give_up.astype(np.int64))


def _last_count(t: Floats, holds: Any) -> Floats:
    """For each t, the largest count j in -1..t for which `holds`, true on the left; by bisection."""
    low, high = np.full_like(t, -1.0), t + 1.0
    while (high - low).max() > 1:
        middle = np.floor((low + high) / 2)
        ok = holds(np.clip(middle, 0, t), t)
        low, high = np.where(ok & (high - low > 1), middle, low), np.where(~ok & (high - low > 1), middle, high)
    return low


def sprt_rule(
    *,
    threshold: object = 0.1,
    rate: object = None,
    margin: object = None,
    alpha: object = 0.05,
    power: object = 0.95,
    claim: str = "below",
    max_n: object = None,
) -> StoppingRule:
    """Wald's sequential test of the threshold against ``threshold - margin``, with both error rates guaranteed.

    The boundaries 1/alpha and beta on the likelihood ratio hold without Wald's approximation (Ville's inequality). The cap
    `max_n` costs power, so it is chosen by the exact calculation: the first of growing caps at which the power is still reached.

    Examples
    --------
    >>> rule = sprt_rule(threshold=0.1, margin=0.05)
    >>> rule.at(0.1).claimed <= 0.05, rule.at(0.05).claimed >= 0.95
    (True, True)
    """
    tau, level, target, side = (
        fraction(threshold, "threshold"),
        fraction(alpha, "alpha"),
        fraction(power, "power"),
        claim_of(claim),
    )
    goal = rate_at(tau, rate, margin, side)
    fixed = samples_for_power(tau, goal, alpha=level, power=target, claim=side).stable
    if max_n is not None:
        return _sprt(tau, goal, level, target, side, check_n(max_n, threshold=tau, alpha=level, claim=side), fixed)
    cap = fixed
    for _ in range(12):  # each step half as long again; Wald's boundaries leave room, so one or two are the rule
        rule = _sprt(tau, goal, level, target, side, cap, fixed)
        if rule.at(goal).claimed >= target:
            break
        cap = cap + cap // 2 + 1
    return rule


def _sprt(tau: float, goal: float, alpha: float, power: float, claim: Claim, cap: int, fixed: int) -> StoppingRule:
    null, other = (tau, max(goal, 1e-300)) if claim == "below" else (1 - tau, max(1 - goal, 1e-300))
    hit, miss = math.log(other) - math.log(null), math.log1p(-other) - math.log1p(-null)  # what one draw adds: hit < 0 < miss
    t = np.arange(cap + 1, dtype=float)
    # Evidence after j surprises: j hit + (t - j) miss. Solved for j, kept one unit of rounding on the safe side.
    accept = np.floor((t * miss - math.log(1 / alpha)) / (miss - hit) - 1e-9)
    give_up = np.ceil((t * miss - math.log(1 - power)) / (miss - hit) + 1e-9)
    accept = np.maximum(accept, -1).astype(np.int64)
    last = int(accept.max(initial=-1))
    give_up = np.minimum(give_up, last + 1).astype(np.int64)  # past the last accepting count, further draws are wasted
    return StoppingRule("SPRT", claim, tau, alpha, cap, fixed, accept, give_up, abs(tau - goal), power)
