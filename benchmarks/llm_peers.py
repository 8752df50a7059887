"""Claims from the same simulated answers beside two peers on PyPI: evalstats and evalconfidence.

Five tables in Markdown: the rate of one model (followed exactly over all counts), looking while answers come in, several draws per prompt, a judge that
errs, and two models on the same prompts. Coverage is the share of runs whose 95 % interval holds the truth; a false claim is one that the truth
contradicts. Peers have no test of a threshold: a rate counts as claimed below it where their interval at 90 %, 5 % on each side, lies below it.

Run: ``pip install evalstats evalconfidence; OMP_NUM_THREADS=1 python benchmarks/llm_peers.py [--runs 400]``. A peer that cannot be imported is left out with
a message.
"""

from __future__ import annotations

import argparse
import importlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binom

from budge import stats
from budge.llm import Labelled
from budge.llm.claims.evidence import Evidence

SIZES = (30, 100, 440)
RATES = (0.02, 0.05, 0.1, 0.2, 0.5)
ALPHA, DRAWS, ALIKE = 0.05, 5, 0.5  # error; draws per prompt; correlation of two draws of one prompt
JUDGES = {"90 % of hits, 10 % of misses": (0.9, 0.1), "95 % of hits, 30 % of misses": (0.95, 0.3)}
Ends = tuple[float, float]
Floats = np.ndarray[Any, np.dtype[np.float64]]


def peers() -> Iterator[str]:
    """Return the peers that can be imported; of the others, print why not."""
    for name in ("evalstats", "evalconfidence"):
        try:
            importlib.import_module(name)
        except ImportError as error:
            print(f"{name} is left out: {error} (pip install {name})")
        else:
            print(f"{name} {version(name)}")
            yield name


# -- intervals, one function per method -----------------------------------------------------------------------------------------


def items(values: Floats) -> list[Any]:
    """Return answers as evalconfidence takes them: one row per prompt and draw."""
    from evalconfidence import ItemResult

    rows = np.atleast_2d(values.T).T
    return [ItemResult(item_id=f"q{i}", model_id="m", score=float(v), epoch=j) for i, row in enumerate(rows) for j, v in enumerate(row)]


def statsly(values: Floats, alpha: float) -> Ends:
    """Return the interval of evalstats for the mean of one score per prompt."""
    import evalstats

    found = evalstats.mean_ci(values, alpha=alpha, rng=0, n_bootstrap=2000)
    return found.ci_low, found.ci_high


def confidently(values: Floats, alpha: float) -> Ends | None:
    """Return the interval of evalconfidence, by prompt where a prompt has several draws."""
    from evalconfidence import standard_error

    try:
        low, high = standard_error(items(values), alpha=alpha).ci
    except ZeroDivisionError:  # several draws per prompt, and all answers are the same
        return None
    return low, high


@cache
def one_rate(method: str, hits: int, n: int, alpha: float) -> Ends:
    """Return the interval of a rate, from `hits` hits of `n` prompts that were asked once."""
    if method == "budge":
        low, high = stats.interval(hits, n, alpha)
        return float(low), float(high)
    values = np.repeat([1.0, 0.0], [hits, n - hits])
    return (statsly if method == "evalstats" else confidently)(values, alpha) or (np.nan, np.nan)


# -- the five comparisons ----------------------------------------------------------------------------------------------------


def rates(found: list[str]) -> Iterator[dict[str, Any]]:
    """One draw per prompt, followed exactly: every count with its probability."""
    for n in SIZES:
        counts = np.arange(n + 1)
        for method in ("budge", *found):
            ends = np.array([one_rate(method, int(k), n, ALPHA) for k in counts])
            sides = np.array([one_rate(method, int(k), n, 2 * ALPHA)[1] for k in counts])
            row: dict[str, Any] = {"n": n, "method": method}
            for rate in RATES:
                law = binom.pmf(counts, n, rate)
                covered = law[(ends[:, 0] <= rate) & (rate <= ends[:, 1])].sum()
                row[f"{rate:g}"] = f"{covered:.1%}, {law @ (ends[:, 1] - ends[:, 0]):.3f}"
            grid = np.linspace(RATES[0], RATES[-1], 481)
            held = [binom.pmf(counts, n, r)[(ends[:, 0] <= r) & (r <= ends[:, 1])].sum() for r in grid]
            false = [binom.pmf(counts, n, r)[sides < r].sum() for r in grid]
            yield row | {"least coverage": f"{min(held):.1%}", "most false claims": f"{max(false):.1%}"}


def looking(found: list[str], runs: int) -> Iterator[dict[str, Any]]:
    """A look after every 20 answers, up to 440; the claim is that the rate is below the threshold, and it is not."""
    rng, looks = np.random.default_rng(4), range(20, SIZES[-1] + 1, 20)
    for rate in (0.1, 0.4):
        seen = (rng.random((10 * runs, SIZES[-1])) < rate).cumsum(axis=1)
        row: dict[str, Any] = {"threshold, true rate": rate}
        for method in ("budge", *found):
            uppers = {n: np.array([one_rate(method, k, n, 2 * ALPHA)[1] for k in range(n + 1)]) for n in looks}
            claimed = np.any([uppers[n][seen[:, n - 1]] < rate for n in looks], axis=0).mean()
            row[f"{method}, interval"] = f"{claimed:.1%}"
        rule = stats.anytime_rule(SIZES[-1], threshold=rate, alpha=ALPHA)
        yield row | {"budge, `anytime_rule` (a look after every answer)": f"{rule.at(rate).claimed:.1%}"}


def scored(truth: float, ends: Iterable[Ends | None], below: bool = False) -> str:
    """Return coverage and mean width, or with `below` the share of intervals below the truth; None stands for a sample that gave an error."""
    given = list(ends)
    found = np.array([pair for pair in given if pair is not None])
    if not len(found):
        return "–"
    told = f"{((found[:, 0] <= truth) & (truth <= found[:, 1])).mean():.1%}, {(found[:, 1] - found[:, 0]).mean():.3f}"
    lost = 1 - len(found) / len(given)
    return (f"{(found[:, 1] < truth).mean():.1%}" if below else told) + (f" (error {lost:.0%})" if lost else "")


def clusters(found: list[str], runs: int) -> Iterator[dict[str, Any]]:
    """Several draws per prompt, whose rates differ; the claim is about the population of prompts."""
    rng = np.random.default_rng(1)
    ways: dict[str, Callable[[Floats, float], Ends | None]] = {}
    for how in ("first", "bounded", "clustered"):
        ways[f"budge, {how}"] = lambda x, alpha, how=how: population(x, alpha, how)  # type: ignore[misc]
    if "evalstats" in found:
        ways["evalstats, mean per prompt"] = lambda x, alpha: statsly(x.mean(axis=1), alpha)
    if "evalconfidence" in found:
        ways["evalconfidence, by prompt"] = confidently
    ways["pooled (refused by budge)"] = lambda x, alpha: one_rate("budge", int(x.sum()), x.size, alpha)
    for n in SIZES:
        samples = {}
        for rate in (0.02, 0.1, 0.5):
            spread = (1 - ALIKE) / ALIKE
            each = rng.beta(rate * spread, (1 - rate) * spread, (runs, n, 1))
            samples[rate] = (rng.random((runs, n, DRAWS)) < each).astype(float)
        for name, way in ways.items():
            row: dict[str, Any] = {"prompts": n, "method": name}
            for rate, sample in samples.items():
                row[f"{rate:g}"] = scored(rate, (way(x, ALPHA) for x in sample))
                row[f"false, {rate:g}"] = scored(rate, (way(x, 2 * ALPHA) for x in sample), below=True)
            yield row


def population(x: Floats, alpha: float, how: str) -> Ends:
    """Return the interval of budge for a population of prompts."""
    if how == "first":
        return one_rate("budge", int(x[:, 0].sum()), len(x), alpha)
    found = stats.average(x.sum(axis=1), x.shape[1], over="population", method=how, alpha=alpha)
    return found.low, found.high


def judged(found: list[str], runs: int) -> Iterator[dict[str, Any]]:
    """A judge that errs, and a random part of the answers labelled by people: n and labels, 100 and 30, 440 and 100."""
    rng = np.random.default_rng(2)
    for words, (right, wrong) in JUDGES.items():
        for n, labels in ((100, 30), (440, 100)):
            cells: dict[str, dict[str, Any]] = {}
            for rate in (0.05, 0.2, 0.5):
                people = rng.random((runs, n)) < rate
                judge = np.where(people, rng.random((runs, n)) < right, rng.random((runs, n)) < wrong)
                for method in ("judge alone", "labels alone", "budge, `labelled`", *(["evalstats, PPI"] if "evalstats" in found else [])):
                    ends = (corrected(method, p, j, labels) for p, j in zip(people, judge))
                    cells.setdefault(method, {})[f"{rate:g}"] = scored(rate, ends)
            for method, row in cells.items():
                yield {"judge says hit of": words, "n, labelled": f"{n}, {labels}", "method": method, **row}


def corrected(method: str, people: Any, judge: Any, labels: int) -> Ends | None:
    """Return the interval of the rate that people would find; None if the method refuses the sample. The first answers are the labelled ones."""
    n = len(people)
    if method == "judge alone":
        return one_rate("budge", int(judge.sum()), n, ALPHA)
    if method == "labels alone":
        return one_rate("budge", int(people[:labels].sum()), labels, ALPHA)
    if method == "evalstats, PPI":
        import evalstats

        made = evalstats.judge_debias_mean_ci(judge.astype(float), np.where(np.arange(n) < labels, people, np.nan), alpha=ALPHA, rng=0)
        return made.ci_low, made.ci_high
    if len(set(people[:labels].tolist())) < 2:  # Labelled needs hits and misses
        return None
    given = Labelled.of(zip(people[:labels].tolist(), judge[:labels].tolist()))
    rate = Evidence.counted(int(judge.sum()), n).claim(over="these", threshold=None, claim="below", alpha=ALPHA, labelled=given)
    return rate.low, rate.high


@cache
def pair(method: str, both: int, first: int, second: int, n: int) -> tuple[float, float, bool]:
    """Return the interval of the difference of two models on n prompts, and whether a difference is claimed by the p-value."""
    if method == "budge":
        found = stats.paired_difference(first, second, n, alpha=ALPHA)
        return float(found.low), float(found.high), bool(found.p_value < ALPHA)
    a, b = (np.repeat(part, [both, first, second, n - both - first - second]) for part in ([1.0, 1, 0, 0], [1.0, 0, 1, 0]))
    if method == "evalstats":
        import evalstats

        table = pd.DataFrame({"model": np.repeat(["a", "b"], n), "item": np.tile(np.arange(n), 2), "score": np.append(a, b)})
        row = evalstats.compare(evalstats.load_from(table), factors="model").to_frame()["pairwise"].iloc[0]
        sign = 1 if row["a"] == "a" else -1
        low, high = sorted((sign * row["ci_low"], sign * row["ci_high"]))
        return low, high, bool(row["p_value"] < ALPHA)
    from evalconfidence import compare

    made = compare(items(a), items(b), alpha=ALPHA)
    return *made.ci_diff, made.p_value < ALPHA


def models(found: list[str], runs: int) -> Iterator[dict[str, Any]]:
    """Two models on the same prompts: equal rates, and rates that differ; half of the prompts have the same answer from both."""
    rng = np.random.default_rng(3)
    for n in SIZES:
        samples = {}
        for one, two in ((0.02, 0.02), (0.1, 0.1), (0.5, 0.5), (0.3, 0.2)):
            # a prompt with shared luck has the same answer from both models, unless their rates differ
            luck = rng.random((2, runs, n))
            luck[1] = np.where(rng.random((runs, n)) < 0.5, luck[0], luck[1])
            samples[one, two] = luck[0] < one, luck[1] < two
        for method in ("budge", *found):
            row: dict[str, Any] = {"prompts": n, "method": method}
            apart = 0
            for (one, two), (a, b) in samples.items():
                seen = [pair(method, int((x & y).sum()), int((x & ~y).sum()), int((y & ~x).sum()), n) for x, y in zip(a, b)]
                apart += sum(claimed != (low > 0 or high < 0) for low, high, claimed in seen)
                share = np.mean([claimed for *_, claimed in seen])
                row[f"{one:g} and {two:g}"] = f"{scored(one - two, (s[:2] for s in seen))}, {share:.1%}"
            yield row | {"p and interval disagree": f"{apart / (len(samples) * runs):.1%}"}


def show(title: str, rows: Iterator[dict[str, Any]]) -> None:
    """Print a table in Markdown."""
    found = list(rows)
    print(f"\n{title}\n\n| " + " | ".join(found[0]) + " |\n|" + "---|" * len(found[0]))
    for row in found:
        print("| " + " | ".join(map(str, row.values())) + " |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400, help="samples per cell")
    runs = parser.parse_args().runs
    warnings.simplefilter("ignore")  # peers warn of small samples in every call
    there = list(peers())
    show("One rate, exactly: coverage of 95 % intervals, mean width.", rates(there))
    show(f"False claims when looking after every 20 answers ({10 * runs:,} runs).", looking(there, runs))
    show(f"{DRAWS} draws per prompt, population of prompts: coverage, mean width; false claims at 5 % ({runs} runs).", clusters(there, runs))
    show(f"A judge that errs: coverage, mean width ({runs} runs).", judged(there, runs))
    show(f"Two models on the same prompts: coverage, mean width, differences claimed ({runs} runs).", models(there, runs))
