"""A million people through `budge.audit`, listed, with table, summary and groups: CPU time and memory, for two models.

``scorecard`` is nearly free, so that a ratio to its prediction says nothing: what counts is the time of our own per point. ``xgboost`` (100 trees of depth
6, one thread) is a real model: the whole is compared with the bare prediction of the same points, made beforehand in tables of 100,000 rows.

Run: ``python benchmarks/million.py`` (``--people`` for fewer, ``--model`` for one). Each model has a process of its own, so that peaks of memory are its own.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

if __name__ == "__main__":
    os.environ |= {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}

import numpy as np
import pandas as pd

import budge
from budge import Feature, InteractionModel

CHUNK = 100_000
MODELS = ("scorecard", "xgboost")
MOST_TIMES, MOST_MB = 6.0, 600.0  # needed of xgboost: times its bare prediction; megabytes at the peak of either, imports included


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


def boosted() -> Any:
    """Return XGBoost, fitted to the scorecard's answers with noise."""
    from xgboost import XGBClassifier

    X = people_of(20_000, seed=1)[["a", "b"]]
    flipped = np.random.default_rng(2).random(len(X)) < 0.1
    return XGBClassifier(n_estimators=100, max_depth=6, n_jobs=1, random_state=0).fit(X, scorecard(X) ^ flipped)


def people_of(people: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"a": rng.integers(0, 10, people), "b": rng.random(people), "g": rng.choice(["x", "y", "z"], people)})


def bare(predict: Callable[[pd.DataFrame], Any], X: pd.DataFrame) -> tuple[float, int]:
    """Return CPU seconds of the prediction of all points, and their number."""
    counts = np.minimum(3, 9 - X["a"].to_numpy()) + 1
    who = np.repeat(np.arange(len(X)), counts)
    step = np.arange(len(who)) - np.repeat(np.cumsum(counts) - counts, counts)
    a, b = X["a"].to_numpy()[who] + step, X["b"].to_numpy()[who]
    spent = 0.0
    for at in range(0, len(who), CHUNK):
        table = pd.DataFrame({"a": a[at : at + CHUNK], "b": b[at : at + CHUNK]})
        spent += cpu(lambda table=table: predict(table))[1]
    return spent, len(who)


def measured(name: str, people: int) -> bool:
    """Print the figures of one model; return whether they are as needed."""
    im = InteractionModel([Feature("a", "integer", bounds=(0, 9), direction="increase", max_increase=3), Feature("b", "real", actionable=False)])
    ours = peak()
    model = scorecard if name == "scorecard" else boosted()
    str(budge.audit(model, people_of(10), im, target=1, population="all").summary())
    imports = peak()
    X = people_of(people)
    result, audit = cpu(lambda: budge.audit(model, X, im, target=1, population="all"))
    _, table = cpu(lambda: result.table)
    summary, words = cpu(lambda: result.summary())
    _, groups = cpu(lambda: result.by("g"))
    used = peak()
    alone, points = bare(model if name == "scorecard" else model.predict, X)
    assert int(result.table["n"].sum()) == points
    whole = audit + table + words + groups
    print(summary)
    steps = f"audit {audit:.2f} s, table {table:.2f} s, summary {words:.2f} s, by {groups:.2f} s"
    print(f"{name}: {people:,} people, {points:,} points: {steps}: {whole:.2f} s CPU")
    own, ratio = 1e9 * (whole - alone) / points, whole / alone
    said = f"{ratio:.1f} times" if name != "scorecard" else f"a ratio ({ratio:.0f}) says nothing at {1e9 * alone / points:.0f} ns per point"
    print(f"bare prediction in tables of {CHUNK:,} rows {alone:.2f} s CPU: {said}; all the rest {own:.0f} ns per point")
    loaded = f"budge {ours:.0f} MB, with the model and a first audit {imports:.0f} MB"
    print(f"memory: {used:.0f} MB at the peak, {used - imports:.0f} MB of them over the imports ({loaded})")
    return used < MOST_MB and (name == "scorecard" or ratio <= MOST_TIMES)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--people", type=int, default=1_000_000)
    parser.add_argument("--model", choices=MODELS)
    asked = parser.parse_args()
    if asked.model:
        sys.exit(None if measured(asked.model, asked.people) else f"{asked.model}: not as needed ({MOST_TIMES:g} times, {MOST_MB:g} MB)")
    command = [sys.executable, __file__, "--people", str(asked.people), "--model"]
    sys.exit(max(subprocess.run([*command, name], check=False).returncode for name in MODELS))
