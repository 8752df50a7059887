"""Exact responsiveness of additive scores: sets of 10^12 points and more, without sampling. Prints CPU seconds."""

from __future__ import annotations

import time

import numpy as np

import budge
from budge.proof import Additive, Answer
from budge.proof.exact import exact_share
from budge.proof.goals import Condition
from budge.proof.structure import Column

CASES: list[tuple[str, list[int], int]] = [
    ("12 x 10", [10] * 12, 0),
    ("40 x 2", [2] * 40, 0),
    ("30 x 2, 2 x 60", [2] * 30 + [60] * 2, 0),
    ("7 x 51", [51] * 7, 0),
    ("15 x 7", [7] * 15, 0),
    ("20 x 10", [10] * 20, 0),
    ("6 x 5, 3 reals", [5] * 6, 3),
    ("12 x 10, 3 reals", [10] * 12, 3),
]


def case(sizes: list[int], reals: int, seed: int = 0) -> tuple[Additive, budge.InteractionModel, np.ndarray, float]:
    rng = np.random.default_rng(seed)
    features = [budge.Feature(f"c{i}", "category", levels=tuple(range(n))) for i, n in enumerate(sizes)]
    features += [budge.Feature(f"r{i}", "real", bounds=(0.0, 1.0)) for i in range(reals)]
    tables = {f"c{i}": rng.normal(0, 1, (n, 1)) for i, n in enumerate(sizes)}
    slopes = {f"r{i}": rng.uniform(0.2, 1.5, 1) for i in range(reals)}
    columns = tuple(Column(f.name, f.levels) for f in features)
    structure = Additive(columns, Answer("binary", (0, 1)), np.zeros(1), slopes=slopes, tables=tables)
    cut = sum(t.mean() for t in tables.values()) + sum(s[0] / 2 for s in slopes.values()) + np.sqrt(sum(t.var() for t in tables.values()))
    return structure, budge.InteractionModel(features), np.zeros(len(features)), float(cut)


def main() -> None:
    print(f"{'parts':20s} {'points':>8s} {'method':12s} {'s':>6s}  result")
    for name, sizes, reals in CASES:
        structure, im, start, cut = case(sizes, reals)
        goal = ((Condition(np.ones(1), cut),),)

        def ask(points: np.ndarray, structure: Additive = structure, cut: float = cut) -> np.ndarray:
            return structure.scores(points)[:, 0] > cut

        begun = time.process_time()
        share = exact_share(structure, im, start, goal, ask)
        seconds = time.process_time() - begun
        assert share is not None
        points = float(np.prod(np.array(sizes, dtype=float)))
        told = f"{share.hits}/{share.size}" if share.hits is not None else f"[{share.low:.15g}, {share.high:.15g}], {share.high - share.low:.1e} wide"
        print(f"{name:20s} {points:8.1e} {share.method:12s} {seconds:6.2f}  {told}")


if __name__ == "__main__":
    main()
