"""From counts to claims: the only function that turns what was seen into bounds, p-values and verdicts.

Every law supplies two monotone curves: ``p_below(r)`` falls in r (evidence against ``rho >= r``) and ``p_above(r)`` rises in r (against
``rho <= r``). P-values are the curves at the threshold, bounds are where they cross alpha, verdicts compare the p-values with alpha: the three
cannot disagree. Answers that are missing count against each claim.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from budge.stats._checks import Claim, Floats
from budge.stats.binomial import per_pair
from budge.stats.counts import STATUSES, Codes, Counts, spelled
from budge.stats.evidence import ANYTIME, evidence_bound, evidence_p_value
from budge.stats.multiplicity import adjust
from budge.stats.sequential import StoppingRule
from budge.stats.tails import at_least, at_most, invert_at_least, invert_at_most

__all__ = ["EXACTNESS", "EXTREMES", "JUDGED", "VERDICTS", "Asked", "Claims", "claim"]

TOLERANCE = 1e-12  # masses this close to the threshold are at the threshold
#: The verdicts; any other word in the column of verdicts is a status.
JUDGED = ("below", "above", "inconclusive", "at the threshold", "none")
VERDICTS = (*JUDGED, *STATUSES)
EXTREMES = ("", "none", "every")
EXACTNESS = ("", "exact", "guaranteed", "approximate")


class Asked(Protocol):
    """What a claim needs to know of a design."""

    @property
    def threshold(self) -> float:
        """The threshold tau; 0 asks whether there is any way at all."""

    @property
    def alpha(self) -> float:
        """The error of each verdict."""

    @property
    def rule(self) -> StoppingRule | None:
        """The rule by which sequential rows stopped."""


@dataclass(frozen=True, eq=False)
class Claims:
    """What may be said of each row.

    `lower` and `upper` are one-sided bounds at alpha: these decide. `low` and `high` are the two-sided interval at 1 - alpha, for display. `rho` is
    the estimate (the value itself where it is known, NaN where answers of a listed set are missing). `p_below` and `p_above` are 0 or 1 where
    ends are known. `extreme` is `none` where rho is known to be 0, `every` where it is known to be 1. `exactness` is `exact`, `guaranteed` or
    `approximate`, and empty where nothing was asked. Words are kept as codes into `VERDICTS`, `EXTREMES` and `EXACTNESS`.
    """

    rho: Floats
    low: Floats
    high: Floats
    lower: Floats
    upper: Floats
    p_below: Floats
    p_above: Floats
    verdict_code: Codes
    extreme_code: Codes
    exactness_code: Codes
    known: NDArray[np.bool_]  # rows whose ends are certain: nothing was drawn
    alpha: float
    threshold: float

    verdict = property(lambda self: spelled(VERDICTS, self.verdict_code), doc="The verdict of each row, or its status.")
    extreme = property(lambda self: spelled(EXTREMES, self.extreme_code), doc="`none`, `every` or nothing.")
    exactness = property(lambda self: spelled(EXACTNESS, self.exactness_code), doc="How sure the claims are.")

    def has(self, verdict: str) -> NDArray[np.bool_]:
        """Return the rows with a verdict."""
        return np.equal(self.verdict_code, VERDICTS.index(verdict) if verdict in VERDICTS else -1)

    def evidence(self, side: Claim) -> Floats:
        """Return the p-values of one claim for every row, 0 or 1 where ends are known; at the threshold 0, `below` means no way at all."""
        if side == "above":
            return self.p_above
        return self.p_below if self.threshold > 0 else np.where(self.extreme_code == EXTREMES.index("none"), 0.0, 1.0)

    def p_value(self, side: Claim) -> Floats:
        """Return the p-values of one claim; NaN where ends are known or nothing was asked, since nothing was tested there."""
        p = self.p_below if side == "below" else self.p_above
        return np.where(self.known | (self.exactness_code == EXACTNESS.index("")), np.nan, p)

    def adjusted(self, side: Claim, method: str) -> Floats:
        """Return the p-values of one claim, adjusted over the rows that were tested; NaN elsewhere.

        For rows that stopped early the p-value is one over the evidence, and Benjamini-Hochberg on these is e-BH: valid under any dependence.
        """
        p = self.p_value(side)
        tested = ~np.isnan(p)
        if tested.any():
            p[tested] = adjust(p[tested], method)
        return p

    def named(self, side: str, method: str | None = None) -> NDArray[np.bool_]:
        """Return the rows with a verdict; with a method, only those whose claim survives the adjustment (known rows always do)."""
        chosen = self.has(side)
        if method is not None and side in ("below", "above"):
            p = self.adjusted(side, method)  # type: ignore[arg-type]
            chosen &= np.isnan(p) | (p < self.alpha)
        return chosen


@dataclass(frozen=True)
class _Curves:
    """P-values at the threshold, and bounds for any error."""

    p_below: Floats
    p_above: Floats
    lower: Callable[[float], Floats]
    upper: Callable[[float], Floats]


def claim(counts: Counts, test: Asked) -> Claims:
    """Turn counts into claims.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> test = SimpleNamespace(threshold=0.1, alpha=0.05, rule=None)
    >>> claims = claim(Counts.of([0, 20], [29, 60]), test)
    >>> claims.verdict.tolist(), claims.upper.round(4).tolist()
    (['below', 'above'], [0.0981, 0.4465])
    """
    rows, tau, alpha = len(counts), test.threshold, test.alpha
    p_below, p_above = np.ones(rows), np.ones(rows)
    ends = {a: (np.zeros(rows), np.ones(rows)) for a in (alpha / 2, alpha)}
    makers: tuple[tuple[str, Callable[[Counts], _Curves]], ...] = (
        ("sample", lambda some: _fixed(some, tau)),
        ("sequential", lambda some: _stopped(some, tau, test.rule)),
        ("weighted", lambda some: _weighted(some, tau)),
    )
    for law, make in makers:
        which = counts.is_law(law)
        if which.any():
            curves = make(counts if which.all() else counts.take(which))
            p_below[which], p_above[which] = curves.p_below, curves.p_above
            for a, (low, high) in ends.items():
                low[which], high[which] = curves.lower(a), curves.upper(a)
    known, asked = counts.is_law("exact", "proved"), ~counts.is_law("none")
    floor, ceiling = _certain(counts, known)
    (low, high), (lower, upper) = ends[alpha / 2], ends[alpha]
    for bound in (low, lower):
        np.maximum(bound, floor, out=bound)
    for bound in (high, upper):
        np.minimum(bound, ceiling, out=bound)
    p_below[floor >= tau - TOLERANCE], p_above[ceiling <= tau + TOLERANCE] = 1.0, 1.0
    p_below[ceiling < tau - TOLERANCE], p_above[floor > tau + TOLERANCE] = 0.0, 0.0
    below, above = p_below < alpha, p_above < alpha
    # Bound and p-value are two roundings of one curve: where they differ in the last bits, the p-value decides.
    upper[below & (upper >= tau)], upper[~below & (upper < tau)] = np.nextafter(tau, -1), tau
    lower[above & (lower <= tau)], lower[~above & (lower > tau)] = np.nextafter(tau, 2), tau
    tie = known & (np.abs(floor - tau) <= TOLERANCE) & (np.abs(ceiling - tau) <= TOLERANCE)
    none, every = asked & known & (ceiling <= 0), asked & known & (floor >= 1)
    extreme = _coded(EXTREMES, "", {"none": none, "every": every})
    verdict = _coded(VERDICTS, "inconclusive", {"at the threshold": tie, "above": above, "below": below} | ({"none": none} if tau == 0 else {}))
    verdict[~asked] = len(JUDGED) + counts.status[~asked]
    exactness = _coded(EXACTNESS, "guaranteed", {"exact": known, "approximate": counts.approximate, "": ~asked})
    rho = np.where(counts.lost_mass < 1, np.clip(counts.hit_mass / np.maximum(1 - counts.lost_mass, 1e-300), 0.0, 1.0), np.nan)
    rho = np.where(known & (counts.unresolved > 0), np.where(floor == ceiling, floor, np.nan), rho)
    for column in (rho, low, high, lower, upper):
        column[~asked] = np.nan
    return Claims(rho, low, high, lower, upper, p_below, p_above, verdict, extreme, exactness, known & asked, alpha, tau)


def _coded(names: tuple[str, ...], default: str, words: Mapping[str, NDArray[np.bool_]]) -> Codes:
    """Return, per row, the code of the last word whose condition holds, of the default where none does."""
    found = np.full(len(next(iter(words.values()))), names.index(default), np.int8)
    for word, where in words.items():
        found[where] = names.index(word)
    return found


def _certain(counts: Counts, known: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return what is certain about rho: the ends of listed or proved rows, 0 and 1 otherwise."""
    floor = np.where(known, np.clip(counts.hit_mass, 0.0, 1.0), 0.0)
    ceiling = np.where(known, np.clip(counts.hit_mass + counts.lost_mass, 0.0, 1.0), 1.0)
    # Sums of probabilities carry rounding: all points hit, or none, is known from the counts.
    whole = counts.is_law("exact") & (counts.n > 0)
    floor = np.where(whole & (counts.hits == counts.n), 1.0, floor)
    ceiling = np.where(whole & (counts.hits + counts.unresolved == counts.n), 1.0, ceiling)
    return floor, np.where(whole & (counts.hits + counts.unresolved == 0), 0.0, np.maximum(ceiling, floor))


def _fixed(counts: Counts, tau: float) -> _Curves:
    """Return the curves of a fixed number of draws: binomial tails (Prop. Testing)."""
    least, most, n = (np.asarray(v, float) for v in (counts.hits, counts.hits + counts.unresolved, counts.n))
    return _binomial(least, n, most, n, tau)


def _binomial(least: Floats, n_least: Floats, most: Floats, n_most: Floats, tau: float) -> _Curves:
    """Return the curves of binomial counts: `least` hits for sure (evidence above), `most` at worst (evidence below)."""
    at = np.float64(tau)
    return _Curves(
        per_pair(most, n_most, lambda k, m: at_most(k, m, at)),
        per_pair(least, n_least, lambda k, m: at_least(k, m, at)),
        lambda a: per_pair(least, n_least, lambda k, m: invert_at_least(k, m, a)),
        lambda a: per_pair(most, n_most, lambda k, m: invert_at_most(k, m, a)),
    )


def _stopped(counts: Counts, tau: float, rule: StoppingRule | None) -> _Curves:
    """Return the curves of rows that a rule stopped: the rule's own evidence on the side that it claims, the anytime evidence on the other."""
    assert rule is not None, "rows that stopped early need the rule they stopped by"
    k, most, n = (np.asarray(v, float) for v in (counts.hits, counts.hits + counts.unresolved, counts.n))
    if rule.bets is None:
        return _curtailed(counts, tau, rule)
    own_below, own_above = (rule.bets, ANYTIME) if rule.claim == "below" else (ANYTIME, rule.bets)
    return _Curves(
        per_pair(most, n, lambda j, t: evidence_p_value(j, t, tau, own_below)),
        per_pair(n - k, n, lambda j, t: evidence_p_value(j, t, 1 - tau, own_above)),
        lambda a: 1.0 - per_pair(n - k, n, lambda j, t: evidence_bound(j, t, a, own_above)),
        lambda a: per_pair(most, n, lambda j, t: evidence_bound(j, t, a, own_below)),
    )


def _curtailed(counts: Counts, tau: float, rule: StoppingRule) -> _Curves:
    """Return the curves of the test of `max_n` draws that ended early: draws left out count against the claim.

    A run that gave up by a surprise, with no answer missing, has stopped at a draw whose number is itself the evidence for the other side.
    """
    full = np.full(len(counts), float(rule.max_n))
    k, lost, n = (np.asarray(v, float) for v in (counts.hits, counts.unresolved, counts.n))
    left, limit = full - n, float(rule.accept[rule.max_n])
    if rule.claim == "below":
        early = (lost == 0) & (k > limit)
        return _binomial(k, np.where(early, n, full), k + lost + left, full, tau)
    early = (lost == 0) & (n - k > limit)
    return _binomial(k, full, np.where(early, k, k + lost + left), np.where(early, n, full), tau)


def _weighted(counts: Counts, tau: float) -> _Curves:
    """Return the curves of weighted draws: evidence on weight times hit."""
    heavy = counts.heavy
    return _Curves(
        heavy.p_value(tau, "below"), heavy.p_value(tau, "above"), lambda a: heavy.bound(a, "above"), lambda a: heavy.bound(a, "below")
    )
