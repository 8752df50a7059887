"""A stream of people holds one block at a time: memory does not grow with the number of people."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

from budge import Feature, InteractionModel
from budge.constraints import DirectionalLinkage, IfThen, Thermometer


def model() -> InteractionModel:
    return InteractionModel(
        [
            Feature("age", "real", bounds=(16, 90), actionable=False),
            Feature("jobs", "integer", bounds=(0, 12), direction="increase"),
            Feature("years", "integer", bounds=(0, 60), actionable=False),
            *(Feature(f"t{i}", "binary") for i in range(4)),
            *(Feature(f"d{i}", "binary") for i in range(5)),
            *(Feature(f"still{i}", "real", bounds=(0, 1), actionable=False) for i in range(17)),
        ],
        [DirectionalLinkage("jobs", {"years": 2}, "<="), Thermometer(tuple(f"t{i}" for i in range(4))), IfThen("d0 == 1", "d1 == 1")],
    )


def people(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    level = rng.integers(0, 5, n)
    columns: dict[str, np.ndarray] = {"age": rng.uniform(16, 90, n), "jobs": rng.integers(0, 12, n), "years": rng.integers(0, 30, n)}
    columns |= {f"t{i}": (level > i).astype(int) for i in range(4)}
    columns |= {f"d{i}": rng.integers(0, 2, n) for i in range(5)}
    columns["d1"] = np.maximum(columns["d0"], columns["d1"])
    columns |= {f"still{i}": rng.uniform(0, 1, n) for i in range(17)}
    return pd.DataFrame(columns)


def peak(n: int, draws: int) -> float:
    """MB at the highest point of a stream whose blocks are turned into tables and dropped."""
    im, X = model(), people(n)
    tracemalloc.start()
    try:
        rows = sum(len(block.points) for block in im.sample_many(X, draws, seed=1))
        assert rows == n * draws
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_number_of_people() -> None:
    """400 people × 1,574 draws × 29 features are 146 MB if held; ten times fewer people need about as much at the peak."""
    few, many = peak(60, 1574), peak(400, 1574)
    assert many < 80
    assert many < 1.3 * few + 5


def test_blocks_come_one_at_a_time_and_cover_everybody_in_order() -> None:
    im, X = model(), people(50)
    blocks = im.sample_many(X, 10, block_rows=70)
    assert isinstance(blocks, Iterator)
    seen = [i for block in blocks for i in block.people.tolist()]
    assert seen == list(range(50))


@pytest.mark.heavy
def test_29400_people_of_1574_draws_and_29_features_stream_under_500_mb() -> None:
    """Peak resident memory of a process of its own, as the system tells it."""
    import subprocess
    import sys
    from pathlib import Path

    benchmark = Path(__file__).parents[2] / "benchmarks" / "reach_memory.py"
    done = subprocess.run([sys.executable, str(benchmark)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
