"""Parts that are large but structured: how many configurations, preparing and 1,000 draws in CPU seconds, memory.

Run: ``python benchmarks/reach_large.py [case …]``. Each case runs in a process of its own. Needed: exact, and preparing plus 1,000 draws under
a second (3 s for the last two), under 500 MB over what was loaded.
"""

from __future__ import annotations

import itertools
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from budge import Feature, InteractionModel
from budge.constraints import LinearConstraint, OneHot, Rule

DRAWS, SECONDS, SLOWER, MEGABYTES, PATIENCE = 1000, 1.0, 3.0, 500.0, 60
Case = tuple[InteractionModel, dict[str, float]]


def binaries(m: int) -> list[Feature]:
    return [Feature(f"b{i:03d}", "binary") for i in range(m)]


def integers(m: int, high: int, low: int = 0) -> list[Feature]:
    return [Feature(f"k{i:03d}", "integer", bounds=(low, high)) for i in range(m)]


def reals(m: int) -> list[Feature]:
    return [Feature(f"r{i:03d}", "real", bounds=(0, 1)) for i in range(m)]


def row(features: Sequence[Feature], relation: str, constant: float, coefficients: Sequence[float] | None = None, **start: float) -> Case:
    """One row over all features, from 0 but for what is given."""
    names = [f.name for f in features]
    terms = dict(zip(names, coefficients or [1.0] * len(names)))
    return InteractionModel(features, [LinearConstraint(terms, relation, constant)]), {**dict.fromkeys(names, 0.0), **start}  # type: ignore[arg-type]


def five_of_60() -> Case:
    names = [f.name for f in binaries(60)]
    return InteractionModel(binaries(60), [OneHot(tuple(names), 5)]), {n: float(i < 5) for i, n in enumerate(names)}


def path() -> Case:
    f = binaries(40)
    return InteractionModel(f, [Rule(f"{a.name} + {b.name} <= 1") for a, b in itertools.pairwise(f)]), dict.fromkeys((g.name for g in f), 0.0)


def all_different() -> Case:
    f = integers(10, 10, 1)
    rules = [Rule(f"{a.name} != {b.name}") for a, b in itertools.combinations(f, 2)]
    return InteractionModel(f, rules), {g.name: i + 1.0 for i, g in enumerate(f)}


CASES: dict[str, Callable[[], Case]] = {
    "at most 4 of 100": lambda: row(binaries(100), "<=", 4),
    "exactly 5 of 60": five_of_60,
    "knapsack of 40": lambda: row(binaries(40), "<=", 120, [(7 * i) % 23 + 3 for i in range(40)]),
    "6 percents = 100": lambda: row(integers(6, 100), "==", 100, k000=100.0),
    "200 binaries <= 60": lambda: row(binaries(200), "<=", 60),
    "12 integers = 1200": lambda: row(integers(12, 1000), "==", 1200, k000=1000.0, k001=200.0),
    "4 amounts in cents": lambda: row(integers(4, 100_000), "==", 1000, [0.01] * 4, k000=100_000.0),
    "3x + 5y + 7z = 30000": lambda: row(integers(3, 10_000), "==", 30_000, [3, 5, 7], k000=10_000.0),
    "3x + 5y + 7z = 100": lambda: row(integers(3, 10_000), "==", 100, [3, 5, 7], k001=20.0),
    "path of 40": path,
    "25 binaries and a real": lambda: row([*binaries(25), Feature("r", "real", bounds=(0, 10))], "<=", 10),
    "7 shares": lambda: row(reals(7), "==", 1, r000=1.0),
    "10 shares": lambda: row(reals(10), "==", 1, r000=1.0),
    "20 shares": lambda: row(reals(20), "==", 1, r000=1.0),
    "8 reals <= 1": lambda: row(reals(8), "<=", 1),
    "50 reals <= 1": lambda: row(reals(50), "<=", 1),
    "40 coarse prices": lambda: row(binaries(40), "<=", 8e6, [(7919 * i * i) % 999_983 + 1 for i in range(1, 41)]),
    "all different, 10": all_different,
    "2 integers, 3 reals": lambda: row([*integers(2, 300), *reals(3)], "<=", 300),
}


def run(name: str) -> None:
    """Print one line for a case."""
    from budge.reach import set_size

    im, x = CASES[name]()
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    begin = time.process_time()
    size = set_size(im, x)
    prepared = time.process_time()
    part = im.sample(x, DRAWS, seed=1).parts[0]
    drawn = time.process_time()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - base
    limit = SLOWER if name in list(CASES)[-2:] else SECONDS
    good = drawn - begin < limit and memory < MEGABYTES and part.exact
    count = "-" if size is None else f"{size:,}" if size < 10**15 else f"{size:.3e}"
    print(f"{name:<24}{count:>20}{prepared - begin:>12.3f}{drawn - prepared:>12.3f}{memory:>8.0f}  {part.method}{'' if good else '  NOT MET'}")


def main() -> None:
    if sys.argv[1:2] == ["--here"]:
        run(sys.argv[2])
        return
    print(f"{'case':<24}{'configurations':>20}{'prepare, s':>12}{'1,000, s':>12}{'MB':>8}  method")
    print(f"{'needed':<24}{'':>20}{'':>12}{f'both < {SECONDS:g}':>12}{f'< {MEGABYTES:g}':>8}")
    for name in sys.argv[1:] or CASES:
        try:
            done = subprocess.run([sys.executable, __file__, "--here", name], check=False, capture_output=True, text=True, timeout=PATIENCE)
            failed = done.stderr.strip().splitlines()[-1:] if done.returncode else []
            print(done.stdout.rstrip() or f"{name:<24}NOT MET: {failed[0][:150] if failed else 'no result'}", flush=True)
        except subprocess.TimeoutExpired:
            print(f"{name:<24}NOT MET: more than {PATIENCE} s", flush=True)


if __name__ == "__main__":
    main()
