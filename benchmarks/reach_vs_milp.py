"""Draws a second: by construction (`im.sample_many`) against the paper's algorithm on HiGHS (`method="milp"`), in one run.

Run: ``python benchmarks/reach_vs_milp.py`` (needs the data sets, see docs/how-to/data.md). CPU time, so that a busy machine
does not matter much; preparing counts on both sides. Needed: 10,000 times on german and recidivism, 1,000 times on
twitterbot and transplant.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from budge import InteractionModel, datasets

STUDIES = Path(__file__).parent.parent / "studies"
CASES: dict[str, tuple[str, Callable[[], datasets.Dataset], float]] = {
    "german": ("german.yaml", datasets.german, 10_000),
    "recidivism": ("recidivism.yaml", datasets.simulate_rearrest_ny, 10_000),
    "twitterbot": ("twitterbot.yaml", datasets.twitterbot, 1_000),
    "transplant": ("transplant_deterministic.yaml", datasets.transplant_cohort, 1_000),
}


def by_construction(im: InteractionModel, X: pd.DataFrame, n: int) -> float:
    """Draws a second over all people; nothing is prepared before."""
    begin, drawn = time.process_time(), 0
    for block in im.sample_many(X, n, seed=1, on_invalid="skip"):
        drawn += block.moved.shape[1]
    return drawn / (time.process_time() - begin)


def by_solver(im: InteractionModel, X: pd.DataFrame, n: int, seconds: float) -> tuple[float, int]:
    """Draws a second over people in random order, until the time is spent."""
    begin, drawn, people = time.process_time(), 0, 0
    for i in np.random.default_rng(0).permutation(len(X)):
        x = X.iloc[[i]]
        if im.broken(x):
            continue
        drawn += im.sample(x, n, seed=1, method="milp").n
        people += 1
        if time.process_time() - begin > seconds:
            break
    return drawn / (time.process_time() - begin), people


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--draws", type=int, default=1000, help="draws a person by construction")
    options.add_argument("--solver-draws", type=int, default=100, help="draws a person by the solver")
    options.add_argument("--seconds", type=float, default=10.0, help="CPU time for the solver on each model")
    given = options.parse_args()
    print(f"{'model':<12}{'people':>8}{'draws/s':>14}{'solver draws/s':>16}{'ratio':>10}{'needed':>10}")
    failed = []
    for name, (file, load, needed) in CASES.items():
        X = load().X.iloc[:1000]
        warm_up = InteractionModel.from_file(STUDIES / file)
        next(warm_up.sample_many(X.iloc[:1], 2, on_invalid="keep"))  # imports
        fast = by_construction(InteractionModel.from_file(STUDIES / file), X, given.draws)
        slow, _ = by_solver(InteractionModel.from_file(STUDIES / file), X, given.solver_draws, given.seconds)
        ratio = fast / slow
        print(f"{name:<12}{len(X):>8,}{fast:>14,.0f}{slow:>16,.1f}{ratio:>10,.0f}{needed:>10,.0f}")
        if ratio < needed:
            failed.append(name)
    if failed:
        raise SystemExit(f"below what is needed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
