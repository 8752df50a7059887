"""What the tests of evidence share: small worlds whose truth is computed by brute force, and checks that return what they find wrong.

A check returns a list of violations, so that a test asserts that it is empty and a planted bug is asserted to fill it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import gammaln, xlog1py, xlogy

import budge
from budge import Design, Execution, Feature, InteractionModel
from budge.constraints import Rule
from budge.distributions import Distribution
from budge.stats import claims as claims_module
from budge.stats import lower_bound, upper_bound
from budge.stats.counts import Counts
from budge.stats.sequential import StoppingRule

LAWS = ("listed", "listed with weights", "drawn", "drawn approximately", "weighted", "stopped")
MISS, HIT, LOST = 0, 1, 2
REALS = [f"r{i}" for i in range(7)]
EXACT = ("listed", "listed with weights")


# -- worlds ---------------------------------------------------------------------------------------------------------------


@cache
def walked() -> InteractionModel:
    """Return seven reals in order of size with a row that follows, which are drawn by a chain; made once, since the length of the chain is measured."""
    still, pairs = [Feature("who", "integer", actionable=False)], [*pairwise(REALS), (REALS[0], REALS[-1])]
    return InteractionModel([*(Feature(r, "real", bounds=(0, 1)) for r in REALS), *still], [Rule(f"{a} <= {b}") for a, b in pairs])


@dataclass
class Lookup:
    """A model that looks its answers up: 0, 1 or none at all, by person and point. It answers 0 about the first rows, the starts."""

    states: np.ndarray  # (people, values of a, 2): MISS, HIT or LOST
    starts: int
    asked: int = 0

    def __call__(self, table: pd.DataFrame) -> Any:
        who = table["who"].to_numpy().astype(int)
        if "a" in table:
            a, b = table["a"].to_numpy().astype(int), table["b"].to_numpy().astype(int)
        else:
            a, b = np.minimum((20 * table["r1"].to_numpy()).astype(int), self.states.shape[1] - 1), (table["r2"].to_numpy() > 0.1).astype(int)
        found = self.states[who, a, b]
        about_starts = self.asked < self.starts
        self.asked += len(table)
        if about_starts:
            return np.zeros(len(table), dtype=int)
        if (found != LOST).all():
            return found.astype(int)
        return [None if v == LOST else int(v) for v in found]


@dataclass(frozen=True)
class World:
    """People who can each reach the points (a, b), b free, under one law; what every model answers at every point."""

    law: str
    states: tuple[np.ndarray, ...]  # one per model
    weights: tuple[int, ...]  # of the values of a, declared where the law is one of weights
    proposal: tuple[int, ...]
    group: tuple[str, ...]
    twins: bool = False

    @property
    def people(self) -> int:
        """How many people there are."""
        return len(self.states[0])

    @property
    def table(self) -> pd.DataFrame:
        """The people."""
        who = np.arange(self.people)
        if self.law == "drawn approximately":
            return pd.DataFrame({**{r: np.full(self.people, 0.01) for r in REALS}, "who": who, "group": self.group})
        return pd.DataFrame({"a": 0, "b": 0, "who": who, "group": self.group})

    @property
    def interactions(self) -> InteractionModel:
        """What the people can do."""
        if self.law == "drawn approximately":
            return walked()
        top = self.states[0].shape[1] - 1
        law = Distribution.from_spec({"weights": dict(enumerate(self.weights))}) if self.law == "listed with weights" else None
        return InteractionModel(
            [Feature("a", "integer", bounds=(0, top), distribution=law), Feature("b", "binary"), Feature("who", "integer", actionable=False)]
        )

    @property
    def mass(self) -> np.ndarray:
        """The probability of each point (a, b)."""
        size = self.states[0].shape[1]
        of_a = np.array(self.weights) / sum(self.weights) if self.law == "listed with weights" else np.full(size, 1 / size)
        return np.repeat(of_a[:, None] / 2, 2, axis=1)

    @property
    def options(self) -> dict[str, Any]:
        """What the law needs of a design."""
        if self.law == "weighted":
            return {"proposal": {"a": {"weights": dict(enumerate(self.proposal))}}, "method": "sample", "n": 60}
        if self.law == "stopped":
            return {"sequential": True, "method": "sample"}
        return {} if self.law in EXACT else {"method": "sample", "n": 60 if self.law == "drawn" else 29}

    def audit(self, *, order: Any = None, execution: Execution | None = None, **more: Any) -> Any:
        """Audit the people, in another order if one is given."""
        X = self.table if order is None else self.table.iloc[order]
        models = {f"m{i}": Lookup(s, self.people) for i, s in enumerate(self.states)}
        wishes = {**self.options, "target": 1, "population": "all", "max_unresolved": 1.0, **more}
        design = Design(**wishes)
        return budge.audit(
            models if len(models) > 1 else next(iter(models.values())), X, self.interactions, design=design, execution=execution or Execution(check=False)
        )

    def rates(self, model: int, fill: np.ndarray) -> np.ndarray:
        """Return the true rho of every person, with the unanswered points filled by MISS or HIT."""
        states = self.states[model]
        return (np.where(states == LOST, fill, states) * self.mass).sum(axis=(1, 2))

    def fillings(self, model: int, rng: np.random.Generator, most: int = 8) -> list[np.ndarray]:
        """Return ways to fill the unanswered points: the two extremes, and some between."""
        shape = self.states[model].shape
        return [np.zeros(shape, int), np.ones(shape, int), *(rng.integers(0, 2, shape) for _ in range(most))]


# -- checks of an audit ---------------------------------------------------------------------------------------------------


@dataclass
class Found:
    """Violations, in words."""

    words: list[str] = field(default_factory=list)

    def check(self, holds: Any, what: str) -> None:
        """Note what does not hold, and for how many rows."""
        holds = np.asarray(holds, dtype=bool)
        if not holds.all():
            self.words.append(f"{what} ({int((~holds).sum())} of {holds.size})")


def agreement(c: Any, counts: Counts) -> list[str]:
    """Check that interval, p-values, verdict and counts of judged rows tell one story."""
    found, tau, alpha = Found(), c.threshold, c.alpha
    judged = ~counts.is_law("none")
    v = c.verdict[judged]
    low, high, lower, upper, rho, pb, pa = (getattr(c, n)[judged] for n in ("low", "high", "lower", "upper", "rho", "p_below", "p_above"))
    n, hits, lost, asked, known = (w[judged] for w in (counts.n, counts.hits, counts.unresolved, counts.asked, c.known))
    found.check((v == "below") == (pb < alpha), "below is p_below < alpha")
    found.check((v == "below") == (upper < tau), "below is upper < tau")
    found.check((v == "above") == (pa < alpha), "above is p_above < alpha")
    found.check((v == "above") == (lower > tau), "above is lower > tau")
    tie = known & (np.abs(low - tau) < 1e-9) & (np.abs(high - tau) < 1e-9)
    found.check(~(v == "at the threshold") | tie, "at the threshold is known and equal")
    found.check((low >= 0) & (high <= 1) & (low <= high), "0 <= low <= high <= 1")
    found.check((low <= lower + 1e-9) & (upper <= high + 1e-9), "the one-sided bounds lie inside the interval")
    found.check(lower <= upper + 1e-9, "lower <= upper")
    found.check(hits + lost <= n, "hits + unresolved <= n")
    found.check(asked >= n, "asked >= n")
    found.check(np.isnan(rho) | ((low - 1e-9 <= rho) & (rho <= high + 1e-9)), "the estimate lies inside the interval")
    found.check((pb >= 0) & (pb <= 1) & (pa >= 0) & (pa <= 1), "p-values lie in [0, 1]")
    found.check(~((pb < alpha) & (pa < alpha)), "not below and above")
    kind = c.exactness[judged]
    found.check((kind == "approximate") == counts.approximate[judged], "chains are approximate")
    found.check((kind == "exact") == (known & ~counts.approximate[judged]), "listed is exact")
    return found.words


def story(result: Any) -> list[str]:
    """Check the table, the people, the adjusted p-values and the shares of every model of an audit."""
    found = Found()
    for name in result.models:
        c, rows, table = result.claims(name), result.rows[name], result.of_model(name)
        found.words += agreement(c, rows.counts)
        for side in ("below", "above"):
            people, adjusted = result.people(side, model=name), result.people(side, adjusted=True, model=name)
            found.check(list(people.index) == list(table.index[table["verdict"] == side]), f"people({side}) are the rows with that verdict")
            found.check(set(adjusted.index) <= set(people.index), f"adjusted people({side}) are among them")
        p, q = table["p_value"].to_numpy(float), table["p_adjusted"].to_numpy(float)
        found.check(np.isnan(p) | (q >= p), "p_adjusted >= p_value")
        found.check(np.isnan(p) == np.isnan(q), "p and p_adjusted are missing together")
        summary = result.summary(name)
        tested = ~c.known & (c.exactness != "")
        found.check(np.isnan(p) == ~tested, "tested rows have p-values")
        known_true = int((c.known & (table["verdict"] == result.design.claim).to_numpy()).sum())
        other = "above" if result.design.claim == "below" else "below"
        known_not = int((c.known & (table["verdict"].isin([other, "at the threshold"])).to_numpy()).sum())
        share = summary.share
        if share is not None:
            found.check(0 <= share.low <= share.high <= 1, "0 <= share.low <= share.high <= 1")
            found.check(share.low * share.people >= known_true - 1e-9, "known claims count")
            found.check(share.high * share.people <= share.people - known_not + 1e-9, "known opposites count")
        found.check(summary.asked == int(rows.counts.asked.sum()), "the summary prints the points asked")
        for by in summary.groups.values():
            ends = by.dropna(subset=["low"])
            found.check((ends["low"] <= ends["high"]) & (ends["low"] >= 0) & (ends["high"] <= 1), "group shares are ordered")
    return found.words


def truth(world: World, result: Any, rng: np.random.Generator) -> list[str]:
    """Check, for rows whose law is exact, that interval, verdict and group shares hold whatever fills the unanswered points."""
    found, tau = Found(), result.design.threshold
    for i, name in enumerate(result.models):
        c, rows = result.claims(name), result.rows[name]
        by = {column: result.by(column, model=name) for column in ("group",)}["group"]
        for fill in world.fillings(i, rng):
            rho = world.rates(i, fill)[rows.place]
            found.check((c.low - 1e-9 <= rho) & (rho <= c.high + 1e-9), "the interval holds rho")
            found.check((c.lower - 1e-9 <= rho) & (rho <= c.upper + 1e-9), "the bounds hold rho")
            found.check(~(c.verdict == "below") | (rho < tau), "below is true")
            found.check(~(c.verdict == "above") | (rho > tau), "above is true")
            found.check(~(c.verdict == "at the threshold") | (np.abs(rho - tau) < 1e-9), "at the threshold is true")
            below, above = rho < tau - 1e-12, rho > tau + 1e-12
            for (group, side), row in by.iterrows():
                here = np.array(world.group)[rows.place] == group
                share = float((below if side == "below" else above)[here].mean())
                found.check(row["low"] - 1e-9 <= share <= row["high"] + 1e-9, f"the group interval holds the share {side}")
        none, every = (np.isin(world.states[i], s).all(axis=(1, 2))[rows.place] for s in (MISS, HIT))
        found.check((c.extreme == "none") == none, "no way at all is known")
        found.check((c.extreme == "every") == every, "every way is known")
    return found.words


def words(result: Any) -> list[str]:
    """Check the printed text of an audit all of whose draws are approximate."""
    text, found = str(result).lower(), Found()
    for word in ("at most", "at least", "exactly", "confidence", "guaranteed with"):
        found.check(word not in text, f"approximate draws do not say {word!r}")
    found.check("no error rate is guaranteed" in text, "approximate draws say that no error rate is guaranteed")
    found.check((result.table["exactness"] == "approximate").all(), "the table says approximate")
    return found.words


# -- exact coverage of `claim` --------------------------------------------------------------------------------------------


def asked(tau: float, alpha: float = 0.05, rule: StoppingRule | None = None) -> Any:
    """Return what a claim needs to know of a design."""
    return SimpleNamespace(threshold=tau, alpha=alpha, rule=rule)


def binomial(n: int, rates: np.ndarray) -> np.ndarray:
    """Return the probabilities of 0 to n hits, one row per rate; not the code under test."""
    k = np.arange(n + 1)
    constant = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return np.exp(constant + xlogy(k, rates[:, None]) + xlog1py(n - k, -rates[:, None]))


def rates_near(*ends: Any) -> np.ndarray:
    """Return a grid of rates, and rates on either side of every bound: there the coverage is smallest."""
    near = np.concatenate([np.ravel(e) for e in ends]) if ends else np.zeros(0)
    return np.unique(np.clip(np.r_[np.linspace(0, 1, 101), near - 1e-9, near + 1e-9], 0, 1))


def errors(c: Any, chances: np.ndarray, rates: np.ndarray, alpha: float, where: str) -> list[str]:
    """Check each bound and the interval: `chances` holds the probability of every row of the claims at every rate."""
    found, r = Found(), rates[:, None]
    for what, wrong in (
        ("upper", c.upper < r - 1e-12), ("lower", c.lower > r + 1e-12), ("interval", (c.low > r + 1e-12) | (c.high < r - 1e-12)),
        ("below", (c.verdict == "below") & (r >= c.threshold)), ("above", (c.verdict == "above") & (r <= c.threshold)),
    ):  # fmt: skip
        error = (chances * wrong).sum(axis=1)
        worst = int(np.argmax(error))
        found.check(error[worst] <= alpha + 1e-9, f"{where}: error of {what} is {error[worst]:.4f} at rho = {rates[worst]:.4f}")
    return found.words


def fixed_coverage(sizes: Any, tau: float, alpha: float = 0.05) -> list[str]:
    """Check a fixed number of draws, exactly."""
    wrong: list[str] = []
    for n in sizes:
        counts = Counts.of(np.arange(n + 1), n)
        c = claims_module.claim(counts, asked(tau, alpha))
        rates = rates_near(c.upper, c.lower, c.low, c.high, tau)
        wrong += agreement(c, counts) + errors(c, binomial(n, rates), rates, alpha, f"n = {n}")
    return wrong


def fixed_coverage_with_losses(sizes: Any, tau: float, alpha: float = 0.05) -> list[str]:
    """Check a fixed number of draws of which an adversary hides any: a bound is wrong if some way to hide makes it wrong."""
    found = Found()
    for n in sizes:
        true, hits, misses = (v.ravel() for v in np.meshgrid(*[np.arange(n + 1)] * 3, indexing="ij"))
        keep = (hits <= true) & (misses <= n - true)
        true, hits, misses = true[keep], hits[keep], misses[keep]
        counts = Counts.of(true - hits, n, hits + misses)
        c = claims_module.claim(counts, asked(tau, alpha))
        found.words += agreement(c, counts)
        rates = np.unique(np.r_[np.linspace(0, 1, 51), tau, tau - 1e-9, tau + 1e-9])
        chances = binomial(n, rates)
        for what, end in (("upper", c.upper), ("lower", -c.lower), ("high", c.high), ("low", -c.low)):
            least = np.full(n + 1, np.inf)
            np.minimum.at(least, true, end)
            sign = 1 if what in ("upper", "high") else -1
            error = (chances * (least[None, :] < sign * rates[:, None] - 1e-12)).sum(axis=1)
            level = alpha if what in ("upper", "lower") else alpha / 2
            found.check(error <= level + 1e-9, f"n = {n}, hidden draws: error of {what} up to {error.max():.4f}")
    return found.words


def stops(rule: StoppingRule, rates: np.ndarray, hidden: tuple[float, float] = (0.0, 0.0)) -> tuple[np.ndarray, ...]:
    """Follow the counts draw by draw; return hits, n, unresolved and verdict of every stop, and its probability at every rate.

    `hidden`: the probability with which a hit, and a miss, has no answer.
    """
    r = rates[:, None, None]
    gone_hit, gone_miss = hidden
    wide = 1 if hidden == (0.0, 0.0) else rule.max_n + 1
    alive = np.zeros((len(rates), rule.max_n + 2, wide))
    alive[:, 0, 0] = 1.0
    found: list[tuple[int, int, int, bool, np.ndarray]] = []
    for t in range(1, rule.max_n + 1):
        new = alive * (1 - r) * (1 - gone_miss)
        new[:, 1:] += alive[:, :-1] * r * (1 - gone_hit)
        if wide > 1:
            new[:, :, 1:] += alive[:, :, :-1] * (r * gone_hit + (1 - r) * gone_miss)
        k, u = np.nonzero(new.max(axis=0))
        surprises = k + u if rule.claim == "below" else t - k
        accepted = surprises <= rule.accept[t]
        stop = accepted | (surprises >= rule.give_up[t]) | (t == rule.max_n)
        for kk, uu, yes in zip(k[stop], u[stop], accepted[stop]):
            found.append((int(kk), t, int(uu), bool(yes), new[:, kk, uu].copy()))
            new[:, kk, uu] = 0.0
        alive = new
        if not alive.any():
            break
    k, n, u, yes, chance = zip(*found)
    return np.array(k), np.array(n), np.array(u), np.array(yes), np.stack(chance, axis=1)


def stopped_coverage(rule: StoppingRule, hidden: tuple[float, float] = (0.0, 0.0), rates: np.ndarray | None = None) -> list[str]:
    """Check every state in which a rule can stop: coverage, agreement, and that the rule's decision is the verdict."""
    tau = rule.threshold
    rates = np.unique(np.r_[np.linspace(0.0, 1.0, 34), tau - 1e-9, tau, tau + 1e-9]) if rates is None else rates
    k, n, u, yes, chance = stops(rule, rates, hidden)
    counts = Counts.of(k, n, u, law="sequential")
    c = claims_module.claim(counts, asked(tau, rule.alpha, rule))
    found = Found(agreement(c, counts))
    found.check(np.abs(chance.sum(axis=1) - 1) < 1e-9, "every run stops")
    found.check((c.verdict == rule.claim) == yes, "the verdict is the rule's decision")
    return found.words + errors(c, chance, rates, rule.alpha, f"{rule.kind}, {rule.claim} {tau:g}, hidden {hidden}")


# -- simulated checks -----------------------------------------------------------------------------------------------------


def binomial_limit(runs: int, rate: float, sigmas: float = 5.0) -> float:
    """Return the largest share of errors that so many runs may show if each errs with the rate at most."""
    return float(rate + sigmas * np.sqrt(rate * (1 - rate) / runs))


def weighted_errors(people: int = 400, seed: int = 0, n: int = 60) -> list[str]:
    """Check weighted draws end to end: hits are drawn fifty times too rarely, and rho is the threshold itself."""
    top = 9
    im = InteractionModel([Feature("a", "integer", bounds=(0, top)), Feature("who", "integer", actionable=False)])
    X = pd.DataFrame({"a": 0, "who": np.arange(people)})
    design = Design(
        target=1, threshold=0.1, n=n, seed=seed, method="sample", population="all", proposal={"a": {"weights": {**dict.fromkeys(range(top), 50), top: 1}}}
    )
    result = budge.audit(lambda t: (t["a"] == top).astype(int).to_numpy(), X, im, design=design, execution=Execution(check=False))
    found, t = Found(), result.table
    found.check((t["method"] == "weighted").all(), "the law is weighted")
    for what, wrong in (("upper", t["upper"] < 0.1), ("high", t["high"] < 0.1), ("lower", t["lower"] > 0.1), ("below", t["verdict"] == "below")):
        found.check(wrong.mean() <= binomial_limit(people, 0.05), f"weighted: error of {what} is {wrong.mean():.3f}")
    return found.words


def twin_errors(runs: int = 100, seed: int = 0) -> list[str]:
    """Check shares of people who come in many copies, all exactly at the threshold: nobody is below."""
    im = InteractionModel([Feature("a", "integer", bounds=(0, 9)), Feature("who", "integer", actionable=False)])
    wrong = 0
    for run in range(runs):
        X = pd.DataFrame({"a": 0, "who": np.repeat(np.arange(8) + 8 * run, 20)})
        result = budge.audit(
            lambda t: (t["a"] == 9).astype(int).to_numpy(), X, im, execution=Execution(check=False),
            design=Design(target=1, threshold=0.1, n=46, alpha=0.2, seed=seed, method="sample", population="all"),
        )  # fmt: skip
        wrong += result.summary().share.low > 0
    found = Found()
    found.check(wrong / runs <= binomial_limit(runs, 0.1, 3.0), f"twins: the share is too large in {wrong} of {runs} audits")
    return found.words


# -- a judge that errs ----------------------------------------------------------------------------------------------------


def corrected_coverage(size: int | StoppingRule, labels: tuple[int, int], tau: float, alpha: float = 0.1) -> list[str]:
    """Check claims about what people would say, exactly: all counts of the judge, fixed or stopped by a rule, and all labels, for judges good and bad."""
    judges = [(0.95, 0.05), (1.0, 0.0), (0.8, 0.3), (0.5, 0.5), (0.2, 0.7), (0.99, 0.4), (0.6, 0.0)]
    truths = np.unique(np.r_[np.linspace(0, 1, 11), tau, tau - 1e-9, tau + 1e-9])
    q = np.array([s * truths + f * (1 - truths) for s, f in judges])
    if isinstance(size, int):
        counts, rule = Counts.of(np.arange(size + 1), size), None
        chance = binomial(size, q.ravel())
    else:
        k, n, u, _, chance = stops(size, q.ravel())
        counts, rule = Counts.of(k, n, u, law="sequential"), size
    chance = chance.reshape(*q.shape, -1)
    found, made = Found(), []
    wrong = {what: np.zeros(q.shape) for what in ("upper", "lower", "interval", "below", "above")}
    of_labels = [[binomial(m, np.array([rate]))[0] for m, rate in zip(labels, pair)] for pair in judges]
    for a in range(labels[0] + 1):
        for b in range(labels[1] + 1):
            c = claims_module.claim(counts, asked(tau, alpha, rule), judge=Counts.of([a, b], labels))
            made.append(c)
            found.words += agreement(c, counts)
            weight = np.array([of_hits[a] * of_misses[b] for of_hits, of_misses in of_labels])[:, None]
            r = truths[:, None]
            for what, bad in (
                ("upper", c.upper < r - 1e-12), ("lower", c.lower > r + 1e-12), ("interval", (c.low > r + 1e-12) | (c.high < r - 1e-12)),
                ("below", (c.verdict == "below") & (r >= tau)), ("above", (c.verdict == "above") & (r <= tau)),
            ):  # fmt: skip
                wrong[what] += weight * (chance * bad).sum(axis=2)
    for what, error in wrong.items():
        found.check(error.max() <= alpha + 1e-9, f"corrected: error of {what} is {error.max():.4f}")
    found.check(any((c.verdict != "inconclusive").any() for c in made), "something can be shown")
    return found.words


def corrected_parts(tau: float = 0.4, alpha: float = 0.05) -> list[str]:
    """Check that each end follows from three exact bounds that hold together with probability 1 - alpha at least, and that p-values are its curve."""
    found, labels = Found(), ((90, 100), (6, 100))
    k = np.arange(0, 201, 10)
    judge = Counts.of(*zip(*labels))
    c = claims_module.claim(Counts.of(k, 200), asked(tau, alpha), judge=judge)
    for end, (bound, other) in ((c.upper, (upper_bound, lower_bound)), (c.lower, (lower_bound, upper_bound))):
        parts = bound(k, 200, alpha / 3), *(other(*pair, alpha / 3) for pair in labels)
        found.check(np.abs(end - np.clip((parts[0] - parts[2]) / (parts[1] - parts[2]), 0, 1)) < 1e-9, "an end is that of three bounds at alpha / 3")
    for level in (0.001, 0.02, 0.2, 0.6):
        again = claims_module.claim(Counts.of(k, 200), asked(tau, level), judge=judge)
        found.check((again.upper < tau) == (c.p_below < level), "p_below is below an error where the bound at that error is below tau")
        found.check((again.lower > tau) == (c.p_above < level), "p_above is below an error where the bound at that error is above tau")
    return found.words


def corrected_losses(tau: float = 0.4) -> list[str]:
    """Check that no way to fill what the judge left open, in draws or labels, goes beyond the ends."""
    found = Found()
    lost = claims_module.claim(Counts.of([5, 40], [60, 60], [4, 4]), asked(tau), judge=Counts.of([36, 2], [40, 40], [2, 3]))
    for a in range(3):
        for b in range(4):
            for j in range(5):
                c = claims_module.claim(Counts.of([5 + j, 40 + j], 60), asked(tau), judge=Counts.of([36 + a, 2 + b], 40))
                for name, sign in (("low", 1), ("lower", 1), ("high", -1), ("upper", -1), ("p_below", -1), ("p_above", -1)):
                    found.check(sign * getattr(lost, name) <= sign * getattr(c, name) + 1e-9, f"{name} holds however answers are filled")
    return found.words
