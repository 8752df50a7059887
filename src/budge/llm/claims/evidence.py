"""What was seen of one model under one interaction, and what may be claimed from it.

The design decides. `joint`: every draw picks a prompt anew (uniformly, with replacement), rewrites it and asks: draws are alike, so their
count is binomial for the mean over these prompts. `per_prompt`: every prompt is drawn m times; prompts differ, and with equal m the pooled
binomial is still exact (Hoeffding 1956). A claim about the population of prompts sees repeats of a prompt as one prompt.
Unresolved answers count against whatever is claimed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import betainccinv, betaincinv

from budge.errors import DesignError
from budge.stats import (
    anytime_bound,
    anytime_interval,
    anytime_p_value,
    average,
    lower_bound,
    p_value,
    unresolved_interval,
    upper_bound,
)
from budge.stats._checks import Claim, Floats, one_of

__all__ = ["METHODS", "OVER", "SCHEMES", "Evidence", "Rate", "highest", "lowest", "prompts_of", "smallest_alpha", "wald_p_value"]

OVER = ("these", "population")
SCHEMES = ("joint", "per_prompt")
METHODS = ("auto", "pooled", "one-per-prompt", "first", "clustered", "bounded", "anytime")


@dataclass(frozen=True)
class Rate:
    """A rate with its interval (two-sided), one bound and p-value (one-sided), and how they were had.

    `interval` names how the interval was had, where that is another way than the test's.
    """

    rate: float | None
    low: float
    high: float
    bound: float
    p_value: float | None
    method: str
    exact: bool
    interval: str = ""


@dataclass(frozen=True)
class Evidence:
    """Per prompt: hits, unresolved answers and draws, and what the first draw was. `sequential` is the rule by which a joint run stopped."""

    hits: Floats
    missing: Floats
    draws: Floats
    first: Floats  # of each prompt: 1 hit, 0 miss, -1 unresolved
    scheme: str
    sequential: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, rows: pd.DataFrame, scheme: str, sequential: Mapping[str, Any] | None = None) -> Evidence:
        """From the rows of one model and interaction."""
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
        return cls(hits, missing, draws, value[at], scheme, sequential)

    @classmethod
    def counted(cls, hits: int, n: int, unresolved: int = 0) -> Evidence:
        """From counts of draws that are alike, each of a prompt of its own."""
        value = np.repeat([1.0, -1.0, 0.0], [hits, unresolved, n - hits - unresolved])
        return cls((value == 1).astype(float), (value == -1).astype(float), np.ones(n), value, "joint")

    def planned(self, info: Mapping[str, Any]) -> Evidence:
        """With the draws of an incomplete run that were planned and never answered, as unresolved ones.

        To leave them out would be to say that answers go missing at random, or that nobody stopped the run for what it showed.
        """
        if info.get("complete", True) or self.sequential is not None:
            return self
        each, size = info.get("per_prompt"), prompts_of(info) or self.prompts
        if isinstance(each, int):
            lost = np.maximum(each - self.draws, 0)
            more = np.full(max(size - self.prompts, 0), float(each))
        elif isinstance(info.get("n"), int):
            lost, more = np.zeros(self.prompts), np.ones(max(info["n"] - self.n, 0))
        else:
            return self
        none = np.zeros(len(more))
        return Evidence(
            np.append(self.hits, none), np.append(self.missing + lost, more), np.append(self.draws + lost, more),
            np.append(self.first, none - 1), self.scheme,
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
        """Rate, interval, bound and p-value for a claim about these prompts or about their population."""
        how = self.chosen(over, method)
        if how == "anytime" or (over == "these" and self.scheme == "joint"):
            return self._alike(claim, alpha, threshold, how)
        if how == "first":
            hits, missing, draws = (self.first == 1) * 1.0, (self.first == -1) * 1.0, np.ones(self.prompts)
        else:
            hits, missing, draws = self.hits, self.missing, self.draws
        name = {"first": "one-per-row", "one-per-prompt": "one-per-row"}.get(how, how)
        against = hits + missing if claim == "below" else hits
        tested = average(against, draws, over=over, threshold=threshold, claim=claim, alpha=alpha, method=name)
        low = average(hits, draws, over=over, alpha=alpha, method=name).low
        high = average(hits + missing, draws, over=over, alpha=alpha, method=name).high
        names = {"pooled": "exact binomial, pooled", "one-per-row": "exact binomial, one draw per prompt"}
        words = "exact binomial, first draw of each prompt" if how == "first" else names.get(tested.method, tested.method)
        return Rate(self._rate_of(hits, missing, draws), low, high, tested.bound, tested.p_value, words, tested.exact)

    def bound(self, *, over: str, claim: Claim, alpha: float, method: str = "auto") -> float:
        """The one-sided bound alone: upper for the claim `below`, lower for `above`."""
        pooled = (self.draws == self.draws[0]).all() or self.scheme == "joint"
        if self.chosen(over, method) == "pooled" and pooled:
            (k, lost), n = self.total, self.n
            return highest(k + lost, n, alpha) if claim == "below" else lowest(k, n, alpha)
        return self.claim(over=over, threshold=None, claim=claim, alpha=alpha, method=method).bound

    def _rate_of(self, hits: Floats, missing: Floats, draws: Floats) -> float | None:
        return Evidence(hits, missing, draws, self.first, "per_prompt").rate

    def _alike(self, claim: Claim, alpha: float, threshold: float | None, how: str) -> Rate:
        (k, lost), n = self.total, self.n
        if how == "anytime":
            rule = self.sequential or {}
            if rule.get("kind") == "curtailed":
                # The test of all planned draws, decided before the last: interval, bound and p-value hold however the rest had turned out.
                full = max(int(rule["max_n"]), n)
                padded = self._fixed(k, full, lost + full - n, claim, alpha, threshold, "exact binomial, ended early")
                ways = f"Clopper–Pearson over every outcome of the {full - n:,} draws left out of {full:,}"
                return replace(padded, interval=ways if full > n else "")
            against = k + lost if claim == "below" else k
            low, high = anytime_interval(k, n, alpha).low, anytime_interval(k + lost, n, alpha).high
            bound = anytime_bound(against, n, alpha, claim=claim)
            p: Any = None
            if threshold is not None:
                p = anytime_p_value(against, n, threshold, claim)
                if rule.get("kind") == "SPRT" and rule.get("threshold") == threshold and rule.get("claim") == claim:
                    return Rate(self.rate, low, high, bound, wald_p_value(against, n, rule), "SPRT", True, "anytime-valid")
            return Rate(self.rate, low, high, bound, p, "anytime-valid", True)
        return self._fixed(k, n, lost, claim, alpha, threshold, "exact binomial")

    def _fixed(self, k: int, n: int, lost: int, claim: Claim, alpha: float, threshold: float | None, name: str) -> Rate:
        against = k + lost if claim == "below" else k
        low, high = unresolved_interval(k, n, lost, alpha)
        bound = upper_bound(against, n, alpha) if claim == "below" else lower_bound(against, n, alpha)
        p = None if threshold is None else p_value(against, n, threshold, claim)
        return Rate(self.rate, low, high, bound, p, name, True)

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


def wald_p_value(hits: int, n: int, rule: Mapping[str, Any]) -> float:
    """One over the likelihood ratio at which an SPRT stopped: by Ville's inequality a p-value, below alpha where the rule made the claim."""
    null, margin = float(rule["threshold"]), float(rule["margin"])
    if rule["claim"] == "above":
        null, hits = 1 - null, n - hits
    other = max(null - margin, 1e-300)
    ratio = hits * (math.log(other) - math.log(null)) + (n - hits) * (math.log1p(-other) - math.log1p(-null))
    return math.exp(min(0.0, -ratio))


def smallest_alpha(rejects: Callable[[float], bool]) -> float:
    """The smallest alpha that rejects: the p-value of a test that is given by its bounds. Bounds hold up to alpha 0.5; beyond, it is 1."""
    low, high = 1e-15, 0.5
    if not rejects(high):
        return 1.0
    if rejects(low):
        return low
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if rejects(middle) else (middle, high)
    return high


def highest(hits: float, n: float, alpha: float) -> float:
    """The upper bound of `budge.stats`, without the search for its last bit: for p-values that ask for hundreds of bounds."""
    return 1.0 if hits >= n else float(betainccinv(hits + 1, n - hits, alpha))


def lowest(hits: float, n: float, alpha: float) -> float:
    """The lower bound, likewise."""
    return 0.0 if hits <= 0 else float(betaincinv(hits, n - hits + 1, alpha))
