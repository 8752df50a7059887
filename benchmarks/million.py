"""A million people through `budge.audit`, listed: CPU time beside the bare prediction of the same points, and memory over the imports.

Run: ``python benchmarks/million.py`` (``--people`` for fewer).
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import budge
from budge import Feature, InteractionModel

CHUNK = 100_000


def cpu(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    result = work()
    return result, time.process_time() - start


def peak() -> float:
    """Return the most memory used so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def scorecard(table: pd.DataFrame) -> np.ndarray:
    """Return 1 where points for a, for b and for both reach a cut."""
    a, b = table["a"].to_numpy(), table["b"].to_numpy()
    score = np.select([a >= 8, a >= 6, a >= 4, a >= 2], [40, 30, 18, 7], 0) + np.select([b > 0.8, b > 0.5, b > 0.2], [35, 22, 9], 0)
    return (score + 10 * ((a >= 5) & (b > 0.5)) + 0.5 * a >= 50).astype(int)


def bare(X: pd.DataFrame) -> tuple[float, int]:
    """Return CPU seconds of the prediction of all points, made beforehand in tables of 100,000 rows, and their number."""
    counts = np.minimum(3, 9 - X["a"].to_numpy()) + 1
    who = np.repeat(np.arange(len(X)), counts)
    step = np.arange(len(who)) - np.repeat(np.cumsum(counts) - counts, counts)
    a, b = X["a"].to_numpy()[who] + step, X["b"].to_numpy()[who]
    spent = 0.0
    for at in range(0, len(who), CHUNK):
        table = pd.DataFrame({"a": a[at : at + CHUNK], "b": b[at : at + CHUNK]})
        spent += cpu(lambda table=table: scorecard(table))[1]
    return spent, len(who)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--people", type=int, default=1_000_000)
    people = parser.parse_args().people
    rng = np.random.default_rng(0)
    warm = pd.DataFrame({"a": [1, 2], "b": [0.5, 0.1], "g": ["x", "y"]})
    im = InteractionModel([Feature("a", "integer", bounds=(0, 9), direction="increase", max_increase=3), Feature("b", "real", actionable=False)])
    str(budge.audit(scorecard, warm, im, target=1, population="all").summary())
    imports = peak()
    X = pd.DataFrame({"a": rng.integers(0, 10, people), "b": rng.random(people), "g": rng.choice(["x", "y", "z"], people)})
    result, audit = cpu(lambda: budge.audit(scorecard, X, im, target=1, population="all"))
    _, table = cpu(lambda: result.table)
    summary, words = cpu(lambda: result.summary())
    _, groups = cpu(lambda: result.by("g"))
    used = peak()
    alone, points = bare(X)
    assert int(result.table["n"].sum()) == points
    whole = audit + table + words + groups
    print(summary)
    print(f"{people:,} people, {points:,} points: audit {audit:.2f} s, table {table:.2f} s, summary {words:.2f} s, by {groups:.2f} s: {whole:.2f} s CPU")
    print(f"bare prediction in tables of {CHUNK:,} rows: {alone:.2f} s CPU; ratio {whole / alone:.1f} (the audit call alone {audit / alone:.1f})")
    print(f"memory: {imports:.0f} MB after imports, {used:.0f} MB at the peak: {used - imports:.0f} MB over the imports")
