"""Reals under one row or a few: 1,000 draws of each part, through the interaction model, preparing included.

Run: ``python benchmarks/reach_rooms.py``. Each case runs in a process of its own. Needed: exact, under a second of CPU and under 500 MB each; 3 seconds
for the part with 90,601 configurations. Many polytopes with the same rows: microseconds for each.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from importlib import import_module

import numpy as np

N = 1000
NEEDED_MB = 500


def real(name: str, high: float, low: float = 0.0) -> object:
    from budge import Feature

    return Feature(name, "real", bounds=(low, high))


def under(d: int, high: float, relation: str, total: float) -> tuple[object, dict[str, float]]:
    from budge import InteractionModel
    from budge.constraints import LinearConstraint

    names = [f"r{i}" for i in range(d)]
    im = InteractionModel([real(n, high) for n in names], [LinearConstraint(dict.fromkeys(names, 1.0), relation, total)])
    return im, dict.fromkeys(names, total / d if relation == "==" else 0.0)


def rows_of(d: int, k: int) -> tuple[object, dict[str, float]]:
    from budge import InteractionModel
    from budge.constraints import LinearConstraint

    rng = np.random.default_rng(5)
    names = [f"r{i}" for i in range(d)]
    rows = [LinearConstraint(dict(zip(names, rng.integers(1, 10, d).astype(float).tolist())), "<=", 1.6 * d) for _ in range(k)]
    return InteractionModel([real(n, 1.0) for n in names], rows), dict.fromkeys(names, 0.0)


def moves(d: int, side: float, limit: float, rows: bool = False) -> tuple[object, dict[str, float]]:
    """A total of absolute moves, from starts that are not in the middle of their bounds."""
    from budge import InteractionModel
    from budge.constraints import LinearConstraint, Rule

    names = [f"r{i}" for i in range(d)]
    constraints: list[object] = [Rule(" + ".join(f"{1 + i % 3} * abs(action.{n})" for i, n in enumerate(names)) + f" <= {limit}")]
    if rows:
        constraints.append(LinearConstraint(dict.fromkeys(names, 1.0), ">=", 0.1))
    return InteractionModel([real(n, 2 * side, -side) for n in names], constraints), dict.fromkeys(names, 0.1)  # type: ignore[arg-type]


def mixed(binaries: int, whole: int, reals: int, total: float) -> tuple[object, dict[str, float]]:
    from budge import Feature, InteractionModel
    from budge.constraints import LinearConstraint

    features = [Feature(f"b{i}", "binary") for i in range(binaries)] + [Feature(f"k{i}", "integer", bounds=(0, 300)) for i in range(whole)]
    features += [real(f"r{i}", 300.0 if whole else 10.0) for i in range(reals)]  # type: ignore[misc]
    im = InteractionModel(features, [LinearConstraint({f.name: 1.0 for f in features}, "<=", total)])
    return im, {f.name: 0.0 for f in features}


CASES = {
    "7 shares": (lambda: under(7, 1.0, "==", 1.0), 1.0),
    "10 shares": (lambda: under(10, 1.0, "==", 1.0), 1.0),
    "20 shares": (lambda: under(20, 1.0, "==", 1.0), 1.0),
    "20 shares <= 0.1 each": (lambda: under(20, 0.1, "==", 1.0), 1.0),
    "8 reals <= 1": (lambda: under(8, 1.0, "<=", 1.0), 1.0),
    "50 reals <= 1": (lambda: under(50, 1.0, "<=", 1.0), 1.0),
    "50 reals <= 20, each <= 1": (lambda: under(50, 1.0, "<=", 20.0), 1.0),
    "50 reals = 20, each <= 1": (lambda: under(50, 1.0, "==", 20.0), 1.0),
    "200 reals <= 60, each <= 1": (lambda: under(200, 1.0, "<=", 60.0), 1.0),
    "10 reals under 3 rows": (lambda: rows_of(10, 3), 1.0),
    "50 reals under 3 rows": (lambda: rows_of(50, 3), 1.0),
    "50 reals under 8 rows": (lambda: rows_of(50, 8), 1.0),
    "9 absolute moves": (lambda: moves(9, 10.0, 5.0), 1.0),
    "50 absolute moves": (lambda: moves(50, 10.0, 5.0), 1.0),
    "50 absolute moves, bounds that cut": (lambda: moves(50, 0.5, 20.0), 1.0),
    "200 absolute moves, bounds that cut": (lambda: moves(200, 0.5, 80.0), 1.0),
    "20 absolute moves and a row": (lambda: moves(20, 1.0, 5.0, rows=True), 1.0),
    "10 binaries and 6 reals under one budget": (lambda: mixed(10, 0, 6, 25.0), 1.0),
    "2 integers 0..300 and 3 reals under one budget": (lambda: mixed(0, 2, 3, 900.0), 3.0),
}


def one(name: str) -> None:
    for module in ("budge", "budge.reach", "scipy.optimize", "scipy.spatial"):  # loaded before the clock starts
        import_module(module)

    make, needed = CASES[name]
    im, x = make()
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    begin = time.process_time()
    sample = im.sample(x, N, seed=1)  # type: ignore[attr-defined]
    spent = time.process_time() - begin
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - base
    allowed = im.feasible(x, sample.values - np.array(list(x.values()))).all()  # type: ignore[attr-defined]
    ok = allowed and sample.exact and spent <= needed and more <= NEEDED_MB
    print(f"| {name} | {spent:.3f} | {needed:.0f} | {more:.0f} | {sample.parts[0].method} | {'exact' if sample.exact else 'approximate'} |", flush=True)
    raise SystemExit(0 if ok else 1)


def together(d: int, m: int = 1000, n: int = 321) -> None:
    """Many polytopes with the same rows, against each by itself."""
    from budge.reach.accept import fixed_words
    from budge.reach.hull import Hull
    from budge.reach.polytope import Polytopes

    rng = np.random.default_rng(0)
    A = np.vstack([np.eye(d), -np.eye(d), np.ones((1, d)), np.r_[1.0, -0.5 * np.ones(d - 1)][None]])
    high, low = rng.uniform(500, 2000, (m, d)), -rng.uniform(0, 500, (m, d))
    B = np.column_stack([high, -low, 0.6 * high.sum(axis=1), 0.2 * high[:, 0]])
    begin = time.process_time()
    many = Polytopes(A, B)
    made = time.process_time() - begin
    which = np.repeat(np.arange(m), n)
    begin = time.process_time()
    many.draw(which, np.arange(m * n), fixed_words("together"))
    drawn = time.process_time() - begin
    begin = time.process_time()
    alone = [Hull.make(A[2 * d :], B[i, 2 * d :], np.zeros((0, d)), np.zeros(0), low=low[i], high=high[i]) for i in range(30)]
    volumes = [hull.log_volume for hull in alone if hull is not None]
    each = (time.process_time() - begin) / 30
    gap = np.abs(many.log_volumes[:30] - volumes).max()
    print(f"| {m:,} polytopes in {d} dimensions | {1e6 * made / m:.1f} µs | {1e6 * each:.0f} µs | {1e9 * drawn / m / n:.0f} ns | {gap:.0e} |")


def main() -> None:
    if len(sys.argv) > 1:
        one(sys.argv[1])
    print(f"| part | CPU s, {N:,} draws | needed | MB over the imports | method | law |\n|---|---|---|---|---|---|", flush=True)
    failed = [name for name in CASES if subprocess.run([sys.executable, __file__, name], check=False).returncode]
    print("\n| together | preparing, each | one by one | one draw | volumes differ by |\n|---|---|---|---|---|")
    for d in (2, 3):
        together(d)
    if failed:
        raise SystemExit(f"slower, larger or less exact than needed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
