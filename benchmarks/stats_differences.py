"""Draws that the exact region saves against the difference of two exact intervals: squared ratios of widths, and CPU time.

Run: ``python benchmarks/stats_differences.py``
"""

from __future__ import annotations

import time

import numpy as np

from budge import stats

TWO = ((45, 100, 20, 100), (30, 321, 3, 321), (160, 321, 150, 321), (0, 321, 0, 321), (1500, 10_000, 1000, 10_000))
PAIRS = ((12, 2, 100), (43, 18, 440), (0, 0, 321), (300, 200, 10_000))


def main() -> None:
    for bounds, cases in ((stats.difference_bounds, TWO), (stats.paired_difference_bounds, PAIRS)):
        for counts in cases:
            wide, narrow = (np.diff(bounds(*counts, method=method))[0] for method in ("rectangle", "region"))
            print(f"{bounds.__name__}{counts}: width {narrow:.4f} instead of {wide:.4f}, draws x{(wide / narrow) ** 2:.2f}")
    rng = np.random.default_rng(0)
    k1, k2 = rng.binomial(321, 0.3, 300), rng.binomial(321, 0.2, 300)
    for bounds, counts in (
        (stats.difference_bounds, (k1, 321, k2, 321)),
        (stats.paired_difference_bounds, (k1 // 3, k2 // 3, 321)),
    ):
        distinct = len(set(zip(*(np.broadcast_to(part, 300).tolist() for part in counts))))
        start = time.process_time()
        bounds(*counts)
        spent = 1000 * (time.process_time() - start) / distinct
        print(f"{bounds.__name__}: {spent:.1f} ms of CPU per tuple of counts, both ends ({distinct} distinct of 300)")


if __name__ == "__main__":
    main()
