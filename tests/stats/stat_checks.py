"""Checks of statistical guarantees as functions: each passes on the right implementation and must fail on a broken one.

Exact checks have no false alarms. Simulated ones allow five standard errors of the simulation, so a correct implementation
fails with probability below 3e-7 for a new seed, and never for the fixed one.
"""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy.special import gammaln


def caught(check, *args, **kwargs):
    """The check must fail: a planted bug that passes is a defect of the check."""
    with pytest.raises(AssertionError):
        check(*args, **kwargs)


def allowed(rate, runs):
    """The largest error rate that a simulation may show if the truth is at most `rate`."""
    return rate + 5 * np.sqrt(rate * (1 - rate) / runs)


def pmf(n, p, upto=None):
    """Binomial probabilities of 0, 1, ... through logarithms of factorials: not the code under test."""
    k = np.arange(n + 1 if upto is None else upto)
    return np.exp(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + k * np.log(p) + (n - k) * np.log1p(-p))


def check_coverage(interval, sizes, alpha=0.05):
    """Coverage at all interval end points, with the end itself counted as a miss: that is where it is smallest."""
    for n in sizes:
        low, high = (np.asarray(part) for part in interval(np.arange(n + 1), n, alpha))
        assert (np.diff(low) > 0).all()
        assert (np.diff(high) > 0).all()
        ends = np.unique(np.concatenate([low, high]))
        ends = ends[(ends > 0) & (ends < 1)]
        # Counts whose interval reaches strictly past the end, as a range first..last.
        first = np.searchsorted(high, ends, side="right")
        last = np.searchsorted(low, ends, side="left") - 1
        for start in range(0, ends.size, 256):
            block = slice(start, start + 256)
            table = np.cumsum(_pmf_rows(n, ends[block]), axis=1)
            rows = np.arange(table.shape[0])
            upto = table[rows, last[block]]
            before = np.where(first[block] > 0, table[rows, first[block] - 1], 0.0)
            assert (upto - before >= 1 - alpha - 1e-10).all(), f"coverage below {1 - alpha} for n = {n}"


def _pmf_rows(n, p):
    k = np.arange(n + 1)
    constant = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return np.exp(constant + np.log(p)[:, None] * k + np.log1p(-p)[:, None] * (n - k))


def check_size(p_value, sizes, threshold, alpha, claim="below"):
    """The probability of a false claim at the threshold itself, summed over the counts that reject, for every n."""
    n = np.asarray(sizes)

    def rejects(surprises):
        return np.asarray(p_value(surprises if claim == "below" else n - surprises, n, threshold, claim)) < alpha

    low, high = np.full(n.shape, -1), n.copy()  # p-values grow with the surprises: the last that rejects, by bisection
    while (high - low).max() > 1:
        middle = np.maximum((low + high) // 2, 0)
        ok = rejects(middle)
        open_ = high - low > 1
        low, high = np.where(ok & open_, middle, low), np.where(~ok & open_, middle, high)
    for size, last in zip(n.tolist(), low.tolist()):
        chances = pmf(size, threshold if claim == "below" else 1 - threshold, last + 2)
        assert chances[: last + 1].sum() <= alpha + 1e-12, f"size above {alpha} for n = {size}"
        # A test that never rejects has the right size too: one more must be too much.
        assert chances.sum() >= alpha - 1e-12, f"not sharp for n = {size}"


def check_reference(rows, upper, lower, at_most, at_least, tolerance=1e-12):
    """Bounds and tails against 50 digits; returns the worst relative error."""
    worst = 0.0
    for k, n, level, tau in rows:
        for got, want in (
            (at_most(k, n, tau), exact_at_most(k, n, tau)),
            (at_least(k, n, tau), exact_at_most(n - k, n, 1 - mp.mpf(tau))),
            (upper(k, n, level), exact_upper(k, n, level, upper(k, n, level))),
            (lower(k, n, level), 1 - exact_upper(n - k, n, level, 1 - mp.mpf(float(lower(k, n, level))))),
        ):
            if want == 0 or want < mp.mpf("1e-290"):
                assert got <= 1e-290
                continue
            error = float(abs((mp.mpf(float(got)) - want) / want))
            worst = max(worst, error)
            assert error <= tolerance, f"k = {k}, n = {n}, level = {level}, threshold = {tau}: relative error {error:.2e}"
    return worst


def exact_at_most(k, n, p):
    """P(K <= k), summed term by term."""
    p = mp.mpf(p)
    if k >= n:
        return mp.mpf(1)
    if k > n // 2 and k > n * p:  # sum the shorter tail; what is subtracted from 1 is no larger than 1/2 or so
        return 1 - exact_at_most(n - k - 1, n, 1 - p)
    term = (1 - p) ** n
    total, odds = term, p / (1 - p)
    for i in range(1, k + 1):
        term = term * (n - i + 1) / i * odds
        total += term
    return total


def exact_upper(k, n, level, guess):
    """The p with P(K <= k) = level, by Newton's method in 50 digits from the guess."""
    if k >= n:
        return mp.mpf(1)
    level = mp.mpf(level)
    if k == 0:
        return 1 - level ** (mp.mpf(1) / n)
    p = mp.mpf(guess)
    for _ in range(50):
        density = mp.exp(
            mp.loggamma(n + 1) - mp.loggamma(k + 1) - mp.loggamma(n - k) + k * mp.log(p) + (n - k - 1) * mp.log(1 - p)
        )
        step = (exact_at_most(k, n, p) - level) / density
        p += step
        if abs(step) < mp.mpf(10) ** -30 * min(p, 1 - p):
            return p
    raise AssertionError("Newton's method did not converge: the bound is far off")
