"""From counts to claims: the only function that turns what was seen into bounds, p-values and verdicts.

Every law supplies two monotone curves: ``p_below(r)`` falls in r (evidence against ``rho >= r``) and ``p_above(r)`` rises in r (against
``rho <= r``). P-values are the curves at the threshold, bounds are where they cross alpha, verdicts compare the p-values with alpha: the three
cannot disagree. Answers that are missing count against each claim.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from budge.stats._checks import Claim, Floats
from budge.stats.binomial import per_pair
from budge.stats.counts import STATUSES, Codes, Counts, spelled
from budge.stats.evidence import ANYTIME, evidence_bound, evidence_p_value, solve
from budge.stats.means import Mean
from budge.stats.multiplicity import adjust
from budge.stats.sequential import StoppingRule
from budge.stats.tails import at_least, at_most, invert_at_least, invert_at_most
from budge.stats.weights import Heavy

__all__ = ["EXACTNESS", "EXTREMES", "JUDGED", "VERDICTS", "Asked", "Claims", "Question", "claim"]

TOLERANCE = 1e-12  # masses this close to the threshold are at the threshold
NARROW = 4e-12  # proved ends this close together are one number: sums of probabilities carry as much rounding
_Tail = tuple[Floats, Floats, Callable[[Floats, Floats, Any], Floats], Callable[[Floats, Floats, Any], Floats]]
#: The verdicts; any other word in the column of verdicts is a status.
JUDGED = ("below", "above", "inconclusive", "at the threshold", "none")
VERDICTS = (*JUDGED, *STATUSES)
EXTREMES = ("", "none", "every")
EXACTNESS = ("", "exact", "guaranteed", "approximate")


class Asked(Protocol):
    """What a claim needs to know of a design: the threshold (0 asks for any way at all), the error of each verdict, the rule of sequential rows."""

    @property
    def threshold(self) -> float: ...
    @property
    def alpha(self) -> float: ...
    @property
    def rule(self) -> StoppingRule | None: ...


@dataclass(frozen=True)
class Question:
    """The same, where there is no design."""

    threshold: float
    alpha: float
    rule: StoppingRule | None = None


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

    def take(self, rows: Any) -> Claims:
        """Return some rows."""
        return replace(self, **{f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name not in ("alpha", "threshold")})

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


def claim(counts: Counts, test: Asked, *, mean: str | None = None, judge: Counts | None = None) -> Claims:
    """Turn counts into claims.

    Parameters
    ----------
    mean : {"pooled", "clustered", "bounded"}, optional
        Claim the mean over all rows (see `budge.stats.means`), not each row: the result has one row.
    judge : Counts, optional
        Hits are what a judge calls a hit. Two rows: of the answers that people call a hit, and of those that they call a miss, how many the judge
        calls a hit. The claims are then about what people would call a hit.

    Examples
    --------
    >>> claims = claim(Counts.of([0, 20], [29, 60]), Question(threshold=0.1, alpha=0.05))
    >>> claims.verdict.tolist(), claims.upper.round(4).tolist()
    (['below', 'above'], [0.0981, 0.4465])
    """
    whole = None if mean is None else Mean(counts, mean)
    counts = counts if whole is None else whole.total
    rows, tau, alpha = len(counts), test.threshold, test.alpha
    p_below, p_above = np.ones(rows), np.ones(rows)
    ends = {a: (np.zeros(rows), np.ones(rows)) for a in (alpha / 2, alpha)}
    makers: tuple[tuple[str, Callable[[Counts], _Tails | Heavy | Mean]], ...] = (
        ("sample", lambda some: whole or _fixed(some)),
        ("sequential", lambda some: _stopped(some, test.rule)),
        ("weighted", lambda some: some.heavy),
    )
    assert judge is None or not counts.is_law("exact", "proved").any(), "what a judge says of draws can be corrected, not ends that are known"
    called, false = (1.0, 0.0) if judge is None else _shares(judge)
    for name, make in makers:
        which = counts.is_law(name)
        if which.any() and called > false:  # a judge that is no better than a coin tells nothing
            seen = make(counts if which.all() else counts.take(which))
            law = seen if judge is None else _Corrected(seen, _fixed(judge))
            p_below[which], p_above[which] = law.p_value(tau, "below"), law.p_value(tau, "above")
            for a, (low, high) in ends.items():
                low[which], high[which] = law.bound(a, "above"), law.bound(a, "below")
    known, asked = counts.is_law("exact", "proved"), ~counts.is_law("none")
    floor, ceiling = _certain(counts, known)
    (low, high), (lower, upper) = ends[alpha / 2], ends[alpha]
    for bound in (low, lower):
        np.maximum(bound, floor, out=bound)
    for bound in (high, upper):
        np.minimum(bound, ceiling, out=bound)
    p_below[floor >= tau - TOLERANCE], p_above[ceiling <= tau + TOLERANCE] = 1.0, 1.0
    p_below[ceiling < tau - TOLERANCE], p_above[floor > tau + TOLERANCE] = 0.0, 0.0
    if tau == 0:  # a point that attains the target is a way, wherever it was found
        p_above[asked & (counts.witness >= 0)] = 0.0
    below, above = p_below < alpha, p_above < alpha
    # Bound and p-value are two roundings of one curve: where they differ in the last bits, the p-value decides.
    upper[below & (upper >= tau)], upper[~below & (upper < tau)] = np.nextafter(tau, -1), tau
    lower[above & (lower <= tau)], lower[~above & (lower > tau)] = np.nextafter(tau, 2), tau
    tie = known & (np.abs(floor - tau) <= TOLERANCE) & (np.abs(ceiling - tau) <= TOLERANCE)
    none, every = asked & known & (ceiling <= 0), asked & known & (floor >= 1)
    extreme = _coded(EXTREMES, "", {"none": none, "every": every})
    verdict = _coded(VERDICTS, "inconclusive", {"at the threshold": tie, "above": above, "below": below} | ({"none": none} if tau == 0 else {}))
    verdict[~asked] = len(JUDGED) + counts.status[~asked]
    open_ = counts.is_law("proved") & (ceiling - floor > NARROW)  # between ends that are proved
    exactness = _coded(EXACTNESS, "guaranteed", {"exact": known & ~open_, "approximate": counts.approximate, "": ~asked})
    rho = _shares(counts) if judge is None else np.clip((_shares(counts) - false) / max(called - false, 1e-300), 0.0, 1.0)
    rho = np.where(called > false, rho, np.nan)  # Rogan and Gladen
    rho = np.where(open_ | (known & (counts.unresolved > 0)), np.where(floor == ceiling, floor, np.nan), rho)
    rho = np.where(counts.is_law("proved") & ~open_, (floor + ceiling) / 2, rho)
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


def _shares(counts: Counts) -> Floats:
    """Return the share of hits in what was answered; NaN where nothing was."""
    there = (counts.lost_mass < 1) & ((counts.n > 0) | counts.is_law("exact", "proved"))
    return np.where(there, np.clip(counts.hit_mass / np.maximum(1 - counts.lost_mass, 1e-300), 0.0, 1.0), np.nan)


@dataclass(frozen=True)
class _Tails:
    """For each claim two counts, a tail of the first given the second that is monotone in the rate, and its inverse."""

    below: _Tail
    above: _Tail

    def p_value(self, rate: float | Floats, claim: Claim) -> Floats:
        k, n, tail, _ = self.below if claim == "below" else self.above
        return per_pair(k, n, tail, rate)

    def bound(self, alpha: float | Floats, claim: Claim) -> Floats:
        k, n, _, inverse = self.below if claim == "below" else self.above
        return per_pair(k, n, inverse, alpha)


def _binomial(least: Floats, n_least: Floats, most: Floats, n_most: Floats) -> _Tails:
    """Return the law of binomial counts (Prop. Testing): `least` hits for sure (evidence above), `most` at worst (evidence below)."""
    return _Tails((most, n_most, at_most, invert_at_most), (least, n_least, at_least, invert_at_least))


def _fixed(counts: Counts) -> _Tails:
    """Return the law of a fixed number of draws."""
    least, most, n = (np.asarray(v, float) for v in (counts.hits, counts.hits + counts.unresolved, counts.n))
    return _binomial(least, n, most, n)


def _stopped(counts: Counts, rule: StoppingRule | None) -> _Tails:
    """Return the law of rows that a rule stopped: its own evidence for the claim that it makes, the anytime evidence for the other."""
    assert rule is not None, "rows that stopped early need the rule they stopped by"
    if rule.bets is None:
        return _curtailed(counts, rule)
    k, most, n = (np.asarray(v, float) for v in (counts.hits, counts.hits + counts.unresolved, counts.n))
    low, high = (rule.bets, ANYTIME) if rule.claim == "below" else (ANYTIME, rule.bets)
    return _Tails(
        (most, n, lambda j, t, r: evidence_p_value(j, t, r, low), lambda j, t, a: evidence_bound(j, t, a, low)),
        (n - k, n, lambda j, t, r: evidence_p_value(j, t, 1 - r, high), lambda j, t, a: 1 - evidence_bound(j, t, a, high)),
    )


def _curtailed(counts: Counts, rule: StoppingRule) -> _Tails:
    """Return the law of the test of `max_n` draws that ended early: draws left out count against the claim.

    A run that gave up by a surprise, with no answer missing, has stopped at a draw whose number is itself the evidence for the other side.
    """
    full = np.full(len(counts), float(rule.max_n))
    k, lost, n = (np.asarray(v, float) for v in (counts.hits, counts.unresolved, counts.n))
    early = (lost == 0) & ((k if rule.claim == "below" else n - k) > float(rule.accept[rule.max_n]))
    most, size = k + lost + full - n, np.where(early, n, full)
    return _binomial(k, size, most, full) if rule.claim == "below" else _binomial(k, full, np.where(early, k, most), size)


@dataclass(frozen=True)
class _Corrected:
    """The law of what people would call a hit, from the law of what a judge does and from labelled answers.

    If the judge calls a share s of true hits and a share f of true misses a hit, it finds hits at the rate q = s rho + f (1 - rho). With q at most
    Q, s at least S and f at least F it follows that S rho + F (1 - rho) <= Q, whatever the rates are. Each of the three bounds has a third of the
    error, so they hold together whatever they have in common: labelled answers may be some of those that are tested.
    """

    seen: _Tails | Heavy | Mean
    labels: _Tails

    def _rates(self, error: Any, claim: Claim) -> Floats:
        """Return S and F: lower bounds for the claim `below`, upper bounds for `above`."""
        return np.moveaxis(self.labels.bound(np.asarray(error)[..., None], "above" if claim == "below" else "below"), -1, 0)

    def p_value(self, rate: float | Floats, claim: Claim) -> Floats:
        below = claim == "below"

        def shown(x: Floats) -> NDArray[np.bool_]:
            """Return whether the bounds on s and f, at the error that excludes the rate q of the judge, go beyond it; true from some x on."""
            q = 1 - x if below else x
            s, f = self._rates(self.seen.p_value(q, claim), claim)
            mixed = s * rate + f * (1 - rate)
            return np.asarray(np.minimum(s, mixed) > q if below else np.maximum(f, mixed) < q)

        x = solve(shown, self.seen.p_value(rate, claim).shape)
        return np.minimum(1.0, 3 * self.seen.p_value(1 - x if below else x, claim))

    def bound(self, alpha: float, claim: Claim) -> Floats:
        q, (s, f) = self.seen.bound(alpha / 3, claim), self._rates(alpha / 3, claim)
        inside = np.clip((q - f) / np.where(s > f, s - f, 1e-300), 0.0, 1.0)
        return np.where(q >= s, 1.0, inside) if claim == "below" else np.where(q <= f, 0.0, inside)
