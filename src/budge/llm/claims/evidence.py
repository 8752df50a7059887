"""What was seen of one model under one interaction, and what may be claimed from it.

The design decides. `joint`: every draw picks a prompt anew (uniformly, with replacement), rewrites it and asks: draws are alike, so their
count is binomial for the mean over these prompts, or, where a rule stopped the run, the rule's own evidence applies. `per_prompt`: every prompt
is drawn m times; prompts differ, and with equal m the pooled count is bounded by the binomial under a condition (Hoeffding 1956). A claim about
the population of prompts counts repeats of a prompt as one prompt. The design chooses the counts and the law; interval, bound and p-value are those
of `budge.stats.claim`. Unresolved answers count against every claim.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from budge.errors import BudgeError, DesignError
from budge.llm.claims.labels import Labelled
from budge.stats import Claims, Counts, StoppingRule, curtailed_rule
from budge.stats import claim as claims_from
from budge.stats._checks import Claim, Floats, asked, one_of
from budge.stats.claims import Question
from budge.stats.evidence import ANYTIME
from budge.stats.planning import rate_at
from budge.stats.sequential import sprt_bets

__all__ = ["ANY_STOP", "METHODS", "OVER", "SCHEMES", "Evidence", "Rate", "columns_of", "prompts_of", "rule_of"]

OVER = ("these", "population")
SCHEMES = ("joint", "per_prompt", "census")
METHODS = ("auto", "pooled", "one-per-prompt", "first", "clustered", "bounded", "anytime")
_NAMES = {"first": "exact binomial, first draw of each prompt", "one-per-prompt": "exact binomial, one draw per prompt"}


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

    def claim(
        self, *, over: str, threshold: float | None, claim: Claim, alpha: float, method: str = "auto", labelled: Labelled | None = None
    ) -> Rate:
        """Return rate, interval, bound and p-value for a claim about these prompts or about their population.

        With `labelled` answers the rate is that of hits according to people, not to the judge.
        """
        how = self.chosen(over, method)
        n, hits, lost = self.tested(over, method)
        mean = how if self.n and (how in ("clustered", "bounded") or (how == "pooled" and self.scheme == "per_prompt")) else None
        rule, name = None, _NAMES.get(how, "exact binomial")
        known = self.scheme == "census" and over == "these"
        if known and labelled is not None:
            what = "a census is known, and a correction for the judge is estimated"
            raise DesignError(what, where="labelled", got="census", remedy="label every answer and test the labels")
        if how == "anytime":  # the threshold of the rule is one for what the judge finds
            rule = self._rule(threshold if labelled is None else None, hits, n, lost)
            name = "exact binomial, ended early" if rule.kind == "curtailed" else rule.kind
        if mean is not None:  # prompts differ
            counts = Counts.of(self.hits, self.draws, self.missing)
            name = how if how != "pooled" else "pooled binomial" if (self.draws == self.draws[0]).all() else "Hoeffding (unequal draws)"
        else:
            counts = Counts.of(hits, n, lost, law="exact" if known else "sample" if rule is None else "sequential")
            name = "census" if known else name
        found = columns_of(counts, claim=claim, threshold=threshold, alpha=alpha, rule=rule, mean=mean, labelled=labelled)
        rate, low, high, bound, p = (float(column[0]) for column in found.values())
        named = name if labelled is None else f"{name}, corrected for the judge"
        return Rate(None if np.isnan(rate) else rate, low, high, bound, None if threshold is None else p, named, how != "clustered")

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
    names = ("kind", "claim", "threshold", "alpha", "margin", "max_n")
    try:
        return _rebuilt(*((record or {}).get(name) for name in names))
    except (BudgeError, TypeError):
        return ANY_STOP


@lru_cache(maxsize=64)
def _rebuilt(kind: Any, claim: Any, threshold: Any, alpha: Any, margin: Any, max_n: Any) -> StoppingRule:
    if kind == "SPRT":  # of which tests need the evidence alone: where it stops takes long to compute for a large number of draws
        tau, level, side = asked(threshold, alpha, claim)
        return replace(ANY_STOP, kind=kind, claim=side, threshold=tau, alpha=level, bets=sprt_bets(tau, rate_at(tau, None, margin, side), side))
    return curtailed_rule(max_n, threshold=threshold, alpha=alpha, claim=claim) if kind == "curtailed" else ANY_STOP


def columns_of(
    counts: Counts, *, claim: Claim, threshold: float | None, alpha: float, rule: StoppingRule | None = None, mean: str | None = None,
    labelled: Labelled | None = None,
) -> dict[str, Floats]:  # fmt: skip
    """Return rate, interval, bound and p-value of each row of the counts, or of their mean; without a threshold the p-value means nothing."""
    question = Question(0.5 if threshold is None else threshold, alpha, rule)
    seen: Claims = claims_from(counts, question, mean=mean, judge=None if labelled is None else labelled.counts)
    bound, p = (seen.upper, seen.p_below) if claim == "below" else (seen.lower, seen.p_above)
    return {"rate": seen.rho, "low": seen.low, "high": seen.high, "bound": bound, "p_value": p}
