"""Intervals of differences: widths by order, by tails, by rectangle and by Newcombe's approximation; worst real error of each end; CPU time.

Run: ``python benchmarks/stats_differences.py`` (about a minute of CPU)
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from scipy.stats import binom

from budge import stats
from budge.stats import _regions

ALPHA = 0.05
SMALL = ((29, 99, 9, 65), (45, 100, 20, 100), (9, 20, 3, 20), (5, 12, 1, 30), (2, 3, 40, 90), (100, 200, 90, 200), (0, 50, 0, 50), (0, 200, 0, 200))
LARGE = ((30, 321, 3, 321), (160, 321, 150, 321), (0, 321, 0, 321), (1500, 10_000, 1000, 10_000))
PAIRS = ((12, 2, 100), (43, 18, 440), (0, 0, 321), (300, 200, 10_000))
SIZES = ((5, 5), (12, 7), (3, 90), (30, 30), (40, 60), (65, 99))


@contextmanager
def by_tails() -> Iterator[None]:
    """Take the region of large samples for small ones, too."""
    kept, _regions.SIZE = _regions.SIZE, 0
    try:
        yield
    finally:
        _regions.SIZE = kept


def newcombe(k1: int, n1: int, k2: int, n2: int, z: float = 1.959964) -> tuple[float, float]:
    """Return the approximate interval from two of Wilson's."""
    (l1, u1), (l2, u2) = (
        [(k + z * z / 2 + sign * z * np.sqrt(k * (n - k) / n + z * z / 4)) / (n + z * z) for sign in (-1, 1)] for k, n in ((k1, n1), (k2, n2))
    )
    a, b = k1 / n1, k2 / n2
    return float(a - b - np.hypot(a - l1, u2 - b)), float(a - b + np.hypot(u1 - a, b - l2))


def widths() -> None:
    print("| counts | by order | p | by tails | p | rectangle | Newcombe, approximate |\n|---|---|---|---|---|---|---|")
    for counts in SMALL:
        ordered = stats.difference(*counts)
        with by_tails():
            tails = stats.difference(*counts)
        ends = (f"{100 * low:.1f} to {100 * high:.1f}" for low, high in (ordered, tails, stats.difference(*counts, method="rectangle"), newcombe(*counts)))
        a, b, c, d = ends
        print(f"| {counts} | {a} | {ordered.p_value:.2g} | {b} | {tails.p_value:.2g} | {c} | {d} |")
    for bounds, cases in ((stats.difference_bounds, (*SMALL, *LARGE)), (stats.paired_difference_bounds, PAIRS)):
        for counts in cases:
            wide, narrow = (np.diff(bounds(*counts, method=method))[0] for method in ("rectangle", "region"))
            print(f"{bounds.__name__}{counts}: width {narrow:.4f} instead of {wide:.4f}, draws x{(wide / narrow) ** 2:.2f}")


def errors() -> None:
    """Print the largest probability that an end misses, over 401 x 401 pairs of rates, from the intervals of all counts."""
    rates = np.linspace(0, 1, 401)
    for n1, n2 in SIZES:
        k1, k2 = (part.ravel() for part in np.meshgrid(np.arange(n1 + 1), np.arange(n2 + 1), indexing="ij"))
        low, high = stats.difference_bounds(k1, n1, k2, n2, alpha=ALPHA)
        with by_tails():
            wide = np.diff(stats.difference_bounds(k1, n1, k2, n2, alpha=ALPHA), axis=0)[0]
        first, second = (binom.pmf(np.arange(n + 1), n, rates[:, None]) for n in (n1, n2))
        below = above = either = 0.0
        for steps in range(-400, 401):  # pairs of rates with one difference
            at = steps / 400
            i = np.arange(max(steps, 0), min(400 + steps, 400) + 1)
            missed = [(end.reshape(n1 + 1, n2 + 1)).astype(float) for end in (low > at + 1e-12, high < at - 1e-12)]
            chances = [np.einsum("ri,ij,rj->r", first[i], one, second[i - steps], optimize=True) for one in missed]
            below, above = max(below, chances[0].max()), max(above, chances[1].max())
            either = max(either, (chances[0] + chances[1]).max())
        ratio = (high - low) / wide
        print(
            f"{n1} and {n2} draws: worst error {below:.4f} below, {above:.4f} above, {either:.4f} in all;"
            f" width against tails {ratio.mean():.3f} on average, {ratio.max():.3f} at most",
            flush=True,
        )


def times() -> None:
    rng = np.random.default_rng(0)
    for n in (20, 100, 200, 300):
        k1, k2 = rng.binomial(n, 0.3, 9).tolist(), rng.binomial(n, 0.2, 9).tolist()
        start = time.process_time()
        for a, b in zip(k1, k2):
            stats.difference(a, n, b, n)
        print(f"difference, {n} draws each: {(time.process_time() - start) / 9:.3f} s of CPU with p-values{'' if 2 * n <= _regions.SIZE else ', by tails'}")
    k1, k2 = rng.binomial(321, 0.3, 300), rng.binomial(321, 0.2, 300)
    for bounds, counts in ((stats.difference_bounds, (k1, 321, k2, 321)), (stats.paired_difference_bounds, (k1 // 3, k2 // 3, 321))):
        distinct = len(set(zip(*(np.broadcast_to(part, 300).tolist() for part in counts))))
        start = time.process_time()
        bounds(*counts)
        spent = 1000 * (time.process_time() - start) / distinct
        print(f"{bounds.__name__}: {spent:.1f} ms of CPU per tuple of counts, both ends ({distinct} distinct of 300)")


if __name__ == "__main__":
    widths()
    times()
    errors()
