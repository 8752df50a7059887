"""What was seen of one model under one interaction, and what may be claimed from it.

The design decides. `joint`: every draw picks a prompt anew (uniformly, with replacement), rewrites it and asks: draws are alike, so their
count is binomial for the mean over these prompts, or, where a rule stopped the run, the rule's own evidence applies. `per_prompt`: every prompt
is drawn m times; prompts differ, and with equal m the pooled count is bounded by the binomial under a condition (Hoeffding 1956). A claim about
the population of prompts counts repeats of a prompt as one prompt. Interval, bound and p-value are read from the same curve
(`budge.stats.claim`, `budge.stats.average`), so they agree. Unresolved answers count against every claim.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from budge.errors import BudgeError, DesignError
from budge.stats import Claims, Counts, StoppingRule, average, curtailed_rule, lower_bound, pooled_bounds, sprt_rule, upper_bound
from budge.stats import claim as claims_from
from budge.stats._checks import Claim, Floats, one_of
from budge.stats.evidence import ANYTIME

__all__ = ["METHODS", "OVER", "SCHEMES", "Evidence", "Rate", "claims_of", "prompts_of", "rule_of", "smallest_alpha"]

OVER = ("these", "population")
SCHEMES = ("joint", "per_prompt")
METHODS = ("auto", "pooled", "one-per-prompt", "first", "clustered", "bounded", "anytime")


@dataclass(frozen=True)
class Rate:
    """A rate with its interval (two-sided), one bound and p-value (one-sided), and the method behind all of them."""

    rate: float | None
    low: float
    high: float
    bound: float
    p_value: float | None
    method: str
    exact: bool


@dataclass(frozen=True)
class Evidence:
    """Per prompt: hits, unresolved answers and draws, and what the first draw was.

    `sequential` is the record of the rule by which a joint run stopped, `last` the number of draws up to the last one that was answered.
    """

    hits: Floats
    missing: Floats
    draws: Floats
    first: Floats  # of each prompt: 1 hit, 0 miss, -1 unresolved
    scheme: str
    sequential: Mapping[str, Any] | None = None
    last: int = 0

    @classmethod
    def of(cls, rows: pd.DataFrame, scheme: str, sequential: Mapping[str, Any] | None = None) -> Evidence:
        """Return the evidence in the rows of one model and interaction."""
        ordered = rows.sort_values("draw", kind="stable")
        hit = ordered["hit"].to_numpy(dtype=object)
        value = np.array([-1.0 if h is None else float(h) for h in hit])
        codes, names = pd.factorize(ordered["prompt"])
        size = len(names)
        draws = np.bincount(codes, minlength=size).astype(float)
        hits = np.bincount(codes, weights=value == 1, minlength=size).astype(float)
        missing = np.bincount(codes, weights=value == -1, minlength=size).astype(float)
        at = np.full(size, len(codes))
        np.minimum.at(at, codes, np.arange(len(codes)))
        last = int(ordered["draw"].max()) + 1 if len(ordered) else 0
        return cls(hits, missing, draws, value[at], scheme, sequential, last)

    @classmethod
    def counted(cls, hits: int, n: int, unresolved: int = 0) -> Evidence:
        """Return the evidence in counts of draws that are alike, each of a prompt of its own."""
        value = np.repeat([1.0, -1.0, 0.0], [hits, unresolved, n - hits - unresolved])
        return cls((value == 1).astype(float), (value == -1).astype(float), np.ones(n), value, "joint")

    def planned(self, info: Mapping[str, Any]) -> Evidence:
        """Return the evidence with the draws of an incomplete run that were never answered, as unresolved ones.

        Leaving them out would assume that answers go missing at random, or that nobody stopped the run for what it showed. A run with a stopping
        rule may end after any draw; only the gaps before its last answer count.
        """
        if info.get("complete", True):
            return self
        each, size = info.get("per_prompt"), prompts_of(info) or self.prompts
        if self.sequential is not None:
            return self.without(self.last - self.n)
        if isinstance(each, int):
            return self.without(size - self.prompts, each)
        return self.without(info["n"] - self.n) if isinstance(info.get("n"), int) else self

    def without(self, lost: int, each: int | None = None) -> Evidence:
        """Return the evidence with `lost` unanswered draws; with `each`, the draws of every prompt made up to it and `lost` more such prompts."""
        short = np.zeros(self.prompts) if each is None else np.maximum(each - self.draws, 0)
        more = np.full(max(lost, 0), 1.0 if each is None else float(each))
        none = np.zeros(len(more))
        return replace(
            self, hits=np.append(self.hits, none), missing=np.append(self.missing + short, more), draws=np.append(self.draws + short, more),
            first=np.append(self.first, none - 1),
        )  # fmt: skip

    @property
    def n(self) -> int:
        return int(self.draws.sum())

    @property
    def total(self) -> tuple[int, int]:
        """Hits and unresolved answers."""
        return int(self.hits.sum()), int(self.missing.sum())

    def tested(self, over: str, method: str = "auto") -> tuple[int, int, int]:
        """Draws, hits and unresolved answers that a claim rests on: those of all draws, or of the first draw of each prompt."""
        if self.chosen(over, method) == "first":
            return self.prompts, int((self.first == 1).sum()), int((self.first == -1).sum())
        return self.n, *self.total

    @property
    def prompts(self) -> int:
        return len(self.draws)

    @property
    def rate(self) -> float | None:
        """The share of hits among resolved answers (the mean over prompts where their draws differ in number); None if there is none."""
        resolved = self.draws - self.missing
        if not resolved.sum():
            return None
        if self.scheme == "joint" or (self.draws == self.draws[0]).all():
            return float(self.hits.sum() / resolved.sum())
        there = resolved > 0
        return float((self.hits[there] / resolved[there]).mean())

    def claim(self, *, over: str, threshold: float | None, claim: Claim, alpha: float, method: str = "auto") -> Rate:
        """Return rate, interval, bound and p-value for a claim about these prompts or about their population."""
        how = self.chosen(over, method)
        if self._averaged(how):
            found = average(
                self.hits, self.draws, unresolved=self.missing, over=over, threshold=threshold, claim=claim, alpha=alpha, method=how
            )
            name = "pooled binomial" if found.method == "pooled" else found.method
            return Rate(self.rate, found.low, found.high, found.bound, found.p_value, name, found.exact)
        n, hits, lost = self.tested(over, method)
        rule = self._rule(threshold, hits, n, lost) if how == "anytime" else None
        seen = claims_of(hits, n, lost, threshold=threshold, alpha=alpha, rule=rule)
        rate = None if lost == n else hits / (n - lost)
        bound, p = (seen.upper, seen.p_below) if claim == "below" else (seen.lower, seen.p_above)
        name = {"first": "exact binomial, first draw of each prompt", "one-per-prompt": "exact binomial, one draw per prompt"}.get(how, "exact binomial")
        if rule is not None:
            name = "exact binomial, ended early" if rule.kind == "curtailed" else rule.kind
        return Rate(rate, float(seen.low[0]), float(seen.high[0]), float(bound[0]), None if threshold is None else float(p[0]), name, True)

    def bound(self, *, over: str, claim: Claim, alpha: float, method: str = "auto") -> float:
        """Return the one-sided bound alone: upper for the claim `below`, lower for `above`."""
        how = self.chosen(over, method)
        if self._averaged(how) and over == "these" and (self.draws == self.draws[0]).all():
            hits, lost = self.total
            return pooled_bounds(hits + lost, self.n, alpha)[1] if claim == "below" else pooled_bounds(hits, self.n, alpha)[0]
        if not self._averaged(how) and how != "anytime":  # as in `claim`, without the other bounds
            n, hits, lost = self.tested(over, method)
            return float(upper_bound(hits + lost, n, alpha) if claim == "below" else lower_bound(hits, n, alpha))
        return self.claim(over=over, threshold=None, claim=claim, alpha=alpha, method=method).bound

    def _averaged(self, how: str) -> bool:
        """Return whether the claim is about a mean over prompts that differ; otherwise all draws are alike."""
        return how in ("clustered", "bounded") or (how == "pooled" and self.scheme == "per_prompt")

    def _rule(self, threshold: float | None, hits: int, n: int, lost: int) -> StoppingRule:
        """Return the rule that stopped these draws, if the test is of its threshold and they can come from it; otherwise the one for any stop."""
        rule = rule_of(self.sequential)
        if threshold is not None and rule.threshold != threshold:
            return ANY_STOP
        if rule.kind == "curtailed":
            surprises = hits if rule.claim == "below" else n - lost - hits
            if n > rule.max_n or (not lost and surprises > rule.accept[rule.max_n] + 1):
                return ANY_STOP
        return rule

    def chosen(self, over: str, method: str) -> str:
        """The method by name, after what does not fit the claim has been refused."""
        one_of(over, "over", OVER)
        how = one_of(method, "method", METHODS)
        repeated = bool((self.draws > 1).any())
        if how == "anytime":
            if over != "these" or self.scheme != "joint":
                raise DesignError(
                    "looking while drawing is kept honest for joint draws and a claim about these prompts only",
                    where="method",
                    got=method,
                    remedy='draw with scheme="joint" (on the shell -n) and claim over="these" (--over these), or fix the number of draws',
                )
            return how
        if over == "these":
            if how not in ("auto", "pooled"):
                raise DesignError(
                    f"method {how!r} is for claims about the population of prompts",
                    where="method",
                    got=method,
                    remedy='method="auto", or over="population"; on the shell --method auto, or --over population',
                )
            return "pooled"
        if how == "pooled" or (how in ("auto", "one-per-prompt") and repeated):
            raise DesignError(
                "a population claim with pooled repeats: several draws from one prompt are not independent draws from the population",
                where="method",
                got=f"{method}; up to {int(self.draws.max())} draws of a prompt",
                remedy='method="first" (exact, the first draw of each prompt), "bounded" (guaranteed) or "clustered" (approximate); '
                'or claim over="these"; on the shell --method first, --over these',
            )
        return "one-per-prompt" if how == "auto" else how


def prompts_of(info: Mapping[str, Any]) -> int | None:
    """The number of prompts of the benchmark, as a run tells it ("440 prompts, …")."""
    found = re.match(r"(\d+) prompts?\b", str(info.get("prompts", "")))
    return int(found[1]) if found else None


#: Stands for whatever stopped a run: the anytime-valid evidence holds after any draw, for either claim and any threshold.
ANY_STOP = StoppingRule("anytime-valid", "below", 0.5, 0.05, 0, 0, np.full(1, -1), np.full(1, 1), bets=ANYTIME)


def rule_of(record: Mapping[str, Any] | None) -> StoppingRule:
    """Return the stopping rule that a run has recorded; `ANY_STOP` if the record lacks what the rule needs."""
    names = ("kind", "claim", "threshold", "alpha", "margin", "power", "max_n")
    try:
        return _rebuilt(*((record or {}).get(name) for name in names))
    except (BudgeError, TypeError):
        return ANY_STOP


@lru_cache(maxsize=64)
def _rebuilt(kind: Any, claim: Any, threshold: Any, alpha: Any, margin: Any, power: Any, max_n: Any) -> StoppingRule:
    if kind == "SPRT":
        return sprt_rule(threshold=threshold, margin=margin, alpha=alpha, power=power, claim=claim, max_n=max_n)
    return curtailed_rule(max_n, threshold=threshold, alpha=alpha, claim=claim) if kind == "curtailed" else ANY_STOP


@dataclass(frozen=True)
class _Asked:
    threshold: float
    alpha: float
    rule: StoppingRule | None


def claims_of(hits: object, n: object, lost: object, *, threshold: float | None, alpha: float, rule: StoppingRule | None = None) -> Claims:
    """Return the claims from counts of draws that are alike: a fixed number of them, or those up to the stop of a rule.

    Without a threshold only the bounds mean anything.
    """
    counts = Counts.of(hits, n, lost, law="sample" if rule is None else "sequential")
    return claims_from(counts, _Asked(0.5 if threshold is None else threshold, alpha, rule))


def smallest_alpha(beyond: Callable[[float], float], alpha: float) -> float:
    """Return the p-value of a test that is given by its bounds: the smallest level at which `beyond`, which rises with it, is above 0.

    It is below alpha if and only if alpha rejects. Levels up to 0.5 are searched; beyond, the p-value is 1.
    """
    from scipy.optimize import brentq  # late: scipy.optimize is slow to import

    least, most, near = 1e-15, 0.5, 1e-9
    if beyond(least) > 0:
        p = least
    elif beyond(most) <= 0:
        p = 1.0
    else:
        crossing = brentq(lambda x: beyond(math.exp(x)) or -1.0, math.log(least), math.log(most), xtol=near)
        p = math.exp(crossing + 2 * near)
    return min(p, math.nextafter(alpha, 0)) if beyond(alpha) > 0 else max(p, alpha)
