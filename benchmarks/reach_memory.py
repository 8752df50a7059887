"""Peak memory of a stream: 29,400 people × 1,574 draws × 29 features (10.7 GB if held) under 500 MB.

Run: ``python benchmarks/reach_memory.py``. The stream runs in a process of its own, whose peak resident memory the system
tells; tables are made from every block, as an audit would.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path

NEEDED = 500  # MB
STUDY = Path(__file__).parent.parent / "studies" / "recidivism.yaml"


def stream(people: int, draws: int, tables: bool) -> None:
    from budge import InteractionModel, datasets

    X = datasets.simulate_rearrest_ny(n=people, seed=0).X
    im = InteractionModel.from_file(STUDY)
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    begin, points, total = time.process_time(), 0, 0.0
    for block in im.sample_many(X, draws, seed=1, on_invalid="skip"):
        points += block.moved.shape[1]
        total += float(block.points.iloc[:, 0].sum()) if tables else float(block.moved[0].sum())
    spent = time.process_time() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    held = points * X.shape[1] * 8 / 2**30
    print(f"{people:,} people × {draws:,} draws × {X.shape[1]} features: {points:,} points, {held:.1f} GB if held")
    print(f"peak {peak:.0f} MB ({peak - base:.0f} MB over what was loaded), {spent:.1f} s of CPU, {points / spent / 1e6:.2f} million draws/s")
    if peak > NEEDED:
        raise SystemExit(f"more than {NEEDED} MB")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--people", type=int, default=29_400)
    options.add_argument("--draws", type=int, default=1_574)
    options.add_argument("--values-only", action="store_true", help="no tables")
    options.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.here:
        stream(given.people, given.draws, not given.values_only)
        return
    command = [sys.executable, __file__, "--here", "--people", str(given.people), "--draws", str(given.draws)]
    raise SystemExit(subprocess.run([*command, *(["--values-only"] if given.values_only else [])], check=False).returncode)


if __name__ == "__main__":
    main()
