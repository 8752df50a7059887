"""Draws needed before and after: for each kind of claim the old method against the one in use; ratios above 1 are draws saved.

Run: ``python benchmarks/evidence_draws.py`` (about a minute of CPU, fixed seeds).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable

import numpy as np
from scipy.stats import binom

from budge import stats
from budge.stats.evidence import Bets, evidence_p_value
from budge.stats.planning import samples_for_power
from budge.stats.sequential import StoppingRule, sprt_rule
from budge.stats.tails import at_least, at_most
from budge.stats.weights import Heavy

TAU, ALPHA = 0.1, 0.05


def say(what: str, before: float, after: float, note: str = "") -> None:
    print(f"{what:<66}{before:>10.1f}{after:>10.1f}{before / after:>9.2f} x  {note}")


def fewest(enough: Callable[[int], bool], start: int = 8) -> int:
    """Return about the smallest number of draws that is enough, by doubling and bisection."""
    high = start
    while not enough(high):
        high *= 2
    low = high // 2
    while high - low > max(1, low // 200):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


# -- sequential: a plain likelihood ratio, against one that also bets on "never" -------------------------------------------


def sequential() -> None:
    new = sprt_rule(threshold=TAU, margin=TAU / 2)
    ratio = Bets.of_ratio(0.5, never=0.0)
    t = np.arange(new.max_n + 1, dtype=float)
    grid = np.arange(new.max_n + 1, dtype=float)
    shown = evidence_p_value(grid[:, None], t[None, :], TAU, ratio) < ALPHA
    shown &= grid[:, None] <= t[None, :]
    accept = shown.sum(axis=0) - 1
    old = StoppingRule("SPRT", "below", TAU, ALPHA, new.max_n, new.fixed_n, accept, np.minimum(new.give_up, accept.max() + 1), 0.05, 0.95, ratio)
    for rate, name in ((0.0, "0"), (TAU / 4, "tau/4"), (TAU / 2, "tau/2"), (TAU, "tau")):
        say(f"sequential, mean draws at rho = {name}", old.at(rate).expected_calls, new.at(rate).expected_calls)


# -- shares: one level, against four ---------------------------------------------------------------------------------------


def one_level(p: np.ndarray, alpha: float, level: float = ALPHA) -> int:
    """Return the least number of true claims from the p-values below one level."""
    made, m = int((p < level).sum()), len(p)
    low, high = -1, made
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if binom.sf(made - middle - 1, m - middle, level) > alpha else (middle, high)
    return high


def shares() -> None:
    cases = (
        ("60 people at 0, 40 at 0.5", np.r_[np.zeros(60), np.full(40, 0.5)], (0.15, 0.05)),
        ("100 at 0.02, 900 at 0.3", np.r_[np.full(100, 0.02), np.full(900, 0.3)], (0.1, 0.03)),
        ("20 at 0, 9,980 at 0.3", np.r_[np.zeros(20), np.full(9980, 0.3)], (0.003, 0.0005)),
        ("500 at 0.05, 500 at 0.2", np.r_[np.full(500, 0.05), np.full(500, 0.2)], (0.15, 0.06)),
    )
    for name, rho, widths in cases:
        for width in widths:
            before, after = (_until(lambda n, f=four, w=width, r=rho: _mean_width(n, r, four=f) <= w) for four in (False, True))
            if before is None or after is None:
                print(f"{f'share, {name}, width {width:g}: draws per person':<66}{before or 'never':>10}{after or 'never':>10}")
            else:
                say(f"share, {name}, width {width:g}: draws per person", before, after)


def _mean_width(n: int, rho: np.ndarray, *, four: bool) -> float:
    rng, total = np.random.default_rng(0), 0.0
    for _ in range(12):
        k = rng.binomial(n, rho)
        below, above = (f(k.astype(float), np.full(len(k), float(n)), np.float64(TAU)) for f in (at_most, at_least))
        if four:
            found = stats.share_from_p_values(below, above)
            total += found.high - found.low
        else:
            total += 1 - (one_level(below, ALPHA / 2) + one_level(above, ALPHA / 2)) / len(k)
    return total / 12


def _until(enough: Callable[[int], bool], most: int = 4000) -> int | None:
    return fewest(enough, 32) if enough(most) else None


# -- differences: the rectangle of two intervals, against one region -------------------------------------------------------


def differences() -> None:
    if "method" not in inspect.signature(stats.difference).parameters:
        print("differences: skipped, `budge.stats.difference` has no argument `method` here")
        return
    for one, two in ((0.45, 0.20), (0.30, 0.03), (0.5, 0.4)):

        def shown(n: int, method: str, one: float = one, two: float = two) -> bool:
            return bool(stats.difference(round(one * n), n, round(two * n), n, method=method).low > 0)

        before, after = (fewest(lambda n, m=m: shown(n, m), 10) for m in ("rectangle", "region"))
        say(f"difference of {one:g} and {two:g} shown: draws per side", before, after)


# -- mean gain: Hoeffding's inequality, against pooled counts --------------------------------------------------------------


def mean_gain() -> None:
    side = (1 - math.sqrt(1 - ALPHA)) / 2
    for rate in (0.09, 0.004):

        def hoeffding(n: int) -> float:
            return math.sqrt(math.log(2 / ALPHA) / n)  # of 2 n independent draws

        def pooled(n: int, rate: float = rate) -> float:
            k = round(n * rate)
            return float(stats.upper_bound(k, n, side)) - (float(stats.lower_bound(k, n, side)) if k else 0.0)

        width = rate / 2
        before, after = (fewest(lambda n, f=f, w=width: f(n) <= w, 100) for f in (hoeffding, pooled))
        say(f"mean gain known to {width:g}, mean rate {rate:g}: draws on either side", before, after)


# -- proposals: empirical Bernstein, against betting -----------------------------------------------------------------------


def proposals() -> None:
    """Hits have probability 0.01 and are drawn with 0.1; the upper bound must reach 0.03."""
    for rho, q, goal in ((0.01, 0.1, 0.03), (0.001, 0.5, 0.02)):
        weights = np.array([(1 - rho) / (1 - q), rho / q])
        top = float(weights.max())

        def bounds(n: int, betting: bool, q: float = q, weights: np.ndarray = weights, top: float = top) -> float:
            rng = np.random.default_rng(1)
            hit = rng.random((40, n)) < q
            w = weights[hit.astype(int)]
            if betting:
                return float(Heavy.of(list(w), list(hit), [np.zeros(n, bool)] * 40, np.full(40, top)).bound(ALPHA, "below").mean())
            x = w * hit
            spread = x.var(axis=1, ddof=1)  # Maurer and Pontil 2009
            return float((x.mean(axis=1) + np.sqrt(2 * spread * math.log(2 / ALPHA) / n) + 7 * top * math.log(2 / ALPHA) / (3 * (n - 1))).mean())

        before, after = (fewest(lambda n, b=b, goal=goal: bounds(n, b) <= goal, 32) for b in (False, True))
        say(f"proposal, rho = {rho:g} drawn with {q:g}: draws for an upper bound of {goal:g}", before, after)


def default_n() -> None:
    for tau in (0.05, 0.1, 0.2, 0.4):
        plan = samples_for_power(threshold=tau, margin=tau / 2)
        say(f"default n at threshold {tau:g}: from which power holds for good, first", plan.stable, plan.first)


if __name__ == "__main__":
    print(f"{'draws':<66}{'before':>10}{'after':>10}{'saved':>11}")
    for part in (sequential, shares, differences, mean_gain, proposals, default_n):
        part()
