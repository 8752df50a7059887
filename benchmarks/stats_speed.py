"""Speed of the statistics, as ratios in one run: ``python benchmarks/stats_speed.py``.

Prints seconds, and how many times faster a vectorised call is than SciPy's `binomtest` in a loop.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.stats import binomtest

from budge import plan, stats


def seconds(call, repeat=3):
    best = np.inf
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def main():
    hits = np.random.default_rng(0).integers(0, 1575, 100_000)
    loop = seconds(lambda: [binomtest(int(k), 1574).proportion_ci(method="exact") for k in hits[:50]], 1) / 50 * hits.size
    rows = {
        "interval, 10^5 people": seconds(lambda: stats.interval(hits, 1574)),
        "test, 10^5 people": seconds(lambda: stats.test(hits, 1574, 0.1)),
        "anytime p-value, 10^5 people": seconds(lambda: stats.anytime_p_value(hits, 1574, 0.1)),
        "samples_for_power, 2551": seconds(lambda: plan.samples_for_power(0.4, 0.368)),
        "samples_for_width, 1574": seconds(lambda: plan.samples_for_width(0.05)),
        "sprt_rule with its exact power": seconds(lambda: plan.sprt_rule(threshold=0.1, margin=0.05)),
    }
    for name, value in rows.items():
        print(f"{name:34s} {value:8.4f} s")
    print(
        f"{'interval against binomtest in a loop':34s} {loop / rows['interval, 10^5 people']:8.0f} times faster (loop extrapolated)"
    )


if __name__ == "__main__":
    main()
