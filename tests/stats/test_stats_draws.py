"""Weighted draws, numeric changes, differences, and answers that are missing."""

import itertools

import numpy as np
import pytest
from scipy.stats import fisher_exact
from stat_checks import allowed, caught

from budge import stats
from budge.errors import DesignError

ALPHA = 0.05
P = np.full(8, 1 / 8)
Q = np.array([0.3, 0.3, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05])
TARGET = np.array([0, 0, 0, 0, 0, 0, 1, 1])  # rho = 0.25, drawn with probability 0.1 only


def check_weighted(interval, runs=300, n=300):
    """Weighted draws cover rho; false alarm below 3e-7."""
    rng = np.random.default_rng(12)
    missed = 0
    for _ in range(runs):
        a = rng.choice(8, n, p=Q)
        low, high = interval(TARGET[a], stats.importance_weights(P, Q)[a])
        missed += not low <= 0.25 <= high
    assert missed / runs <= allowed(ALPHA, runs)


def test_weighted_draws_cover():
    top = stats.weight_bound(P, Q)
    assert top == 2.5
    check_weighted(lambda y, w: stats.weighted(y, w, largest=top, normalised=True), runs=150)
    check_weighted(lambda y, w: stats.weighted(y, 7 * w, largest=7 * top, normalised=False), runs=150)
    caught(check_weighted, lambda y, w: stats.interval(int(y.sum()), y.size))  # weights forgotten
    caught(check_weighted, lambda y, w: stats.weighted(y, np.ones_like(w), largest=1, normalised=True), runs=60)


def test_weighted_bounds_shrink_and_decide():
    rng = np.random.default_rng(1)
    a = rng.choice(8, 5000, p=Q)
    w = stats.importance_weights(P, Q)[a]
    for found in (
        stats.weighted(TARGET[a], w, largest=2.5, normalised=True),
        stats.weighted(TARGET[a], w, largest=2.5, normalised=False),
    ):
        assert found.high - found.low < 0.09
        assert found.rejects(0.4)
        assert found.rejects(0.15, "above")
        assert not found.rejects(0.25)
        assert found.verdict(0.4) == "below"
        assert found.effective < 5000
        assert found.to_dict()["n"] == 5000
        assert found.normalised in str(found)
    assert stats.effective_sample_size(np.full(9, 0.3)) == pytest.approx(9)


def test_weights_that_cannot_work_are_refused():
    with pytest.raises(DesignError, match="missing support"):
        stats.weight_bound(P, [0.5, 0.5, 0, 0, 0, 0, 0, 0])
    with pytest.raises(DesignError, match="larger than the largest"):
        stats.weighted([0, 1], [1.0, 3.0], largest=2.0, normalised=True)
    with pytest.raises(DesignError, match="at least 1"):
        stats.weighted([0, 1], [0.1, 0.3], largest=0.5, normalised=True)
    with pytest.raises(DesignError, match="negative"):
        stats.effective_sample_size([1, -1])
    with pytest.raises(DesignError, match="all weights are zero"):
        stats.effective_sample_size([0, 0])
    with pytest.raises(DesignError, match="one weight"):
        stats.weighted([0, 1], [1.0], largest=2.0, normalised=True)
    with pytest.raises(DesignError, match="0 or 1"):
        stats.weighted([0, 0.5], [1.0, 1.0], largest=2.0, normalised=True)


def check_bounded(bounds, runs=300):
    """The mean is covered on both sides; false alarm below 3e-7."""
    rng = np.random.default_rng(14)
    for draw, mean in ((lambda: rng.beta(0.3, 2.7, 100), 0.1), (lambda: (rng.random(100) < 0.05) * 1.0, 0.05)):
        missed = np.mean([not low <= mean <= high for low, high in (bounds(draw()) for _ in range(runs))])
        assert missed <= allowed(ALPHA, runs)


def test_bounded_means_cover():
    check_bounded(lambda x: stats.bounded_mean(x, 0, 1))

    def normal(x):
        half = 1.0 * x.std() / np.sqrt(x.size)
        return x.mean() - half, x.mean() + half

    caught(check_bounded, normal)
    found = stats.bounded_mean([3, 4, 5] * 50, 0, 10, side="upper")
    assert found.low == 0
    assert 4 < found.high < 5
    with pytest.raises(DesignError, match="outside the range"):
        stats.bounded_mean([1, 2, 11], 0, 10)
    with pytest.raises(DesignError, match="range must be finite"):
        stats.bounded_mean([1], 0, np.inf)
    with pytest.raises(DesignError, match="finite"):
        stats.bounded_mean([1, np.nan], 0, 2)


def check_quantiles(interval):
    """Exact: the probability that the ranks miss, from the binomial distribution of the number below the quantile."""
    from scipy.stats import binom

    for n, q, alpha in itertools.product((1, 5, 20, 100, 333), (0.05, 0.5, 0.9), (0.05, 0.2)):
        low, high = interval(np.arange(1, n + 1), q, alpha)
        below = 0 if low == -np.inf else int(low)  # values are their own ranks
        above = n + 1 if high == np.inf else int(high)
        assert binom.cdf(below - 1, n, q) <= alpha / 2 + 1e-12
        assert binom.sf(above - 1, n, q) <= alpha / 2 + 1e-12
        assert below == n or binom.cdf(below, n, q) > alpha / 2 - 1e-12  # and no narrower one would do
        assert above == 0 or binom.sf(above - 2, n, q) > alpha / 2 - 1e-12


def test_quantile_intervals_are_exact_and_sharp():
    def right(x, q, alpha):
        return stats.quantile_interval(x, q, alpha=alpha)

    def off_by_one(x, q, alpha):
        found = right(x, q, alpha)
        return min(found.low + 1, x[-1]), found.high

    check_quantiles(right)
    caught(check_quantiles, off_by_one)
    with pytest.raises(DesignError, match="empty"):
        stats.quantile_interval([])


def test_how_much_splits_alpha_and_says_so():
    rng = np.random.default_rng(0)
    found = stats.how_much(rng.normal(0.2, 0.1, 500).clip(-1, 1), value_range=(-1, 1))
    assert found.mean.low < 0.2 < found.mean.high
    assert found.quantiles[0.5].alpha == pytest.approx(0.05 / 4)
    assert "mean change" in str(found)
    assert found.to_dict()["quantiles"]["0.5"]["method"] == "order statistics"
    assert stats.how_much([1.0, 2.0]).to_dict()["quantiles"]["0.9"]["high"] is None  # too few draws: no finite end
    with pytest.raises(DesignError, match="nothing asked"):
        stats.how_much([1.0], quantiles=())


def check_difference(interval, runs=20_000):
    """Two samples: the difference is covered; false alarm below 3e-7."""
    rng = np.random.default_rng(15)
    for p, q in ((0.02, 0.02), (0.5, 0.4), (0.9, 0.02)):
        low, high = interval(rng.binomial(40, p, runs), 40, rng.binomial(60, q, runs), 60)
        assert np.mean((low > p - q) | (high < p - q)) <= allowed(ALPHA, runs)


def test_two_sample_differences():
    check_difference(stats.difference)

    def wald(k, n, k2, n2):
        a, b = k / n, k2 / n2
        half = 1.96 * np.sqrt(a * (1 - a) / n + b * (1 - b) / n2)
        return a - b - half, a - b + half

    caught(check_difference, wald)
    found = stats.difference(45, 100, 20, 100)
    assert found.p_greater == pytest.approx(fisher_exact([[45, 55], [20, 80]], "greater").pvalue, rel=1e-9)
    assert found.p_less == pytest.approx(fisher_exact([[45, 55], [20, 80]], "less").pvalue, rel=1e-9)
    assert found.p_value == pytest.approx(2 * found.p_greater)
    assert stats.difference([1, 2], 10, [3, 4], 10).low.shape == (2,)


def test_paired_differences():
    def check(interval, runs=20_000):
        rng = np.random.default_rng(16)
        for only_first, only_second in ((0.1, 0.02), (0.3, 0.3), (0.01, 0.0)):
            table = rng.multinomial(80, [only_first, only_second, 1 - only_first - only_second], runs)
            low, high = interval(table[:, 0], table[:, 1], 80)
            missed = np.mean((low > only_first - only_second) | (high < only_first - only_second))
            assert missed <= allowed(ALPHA, runs)

    check(stats.paired_difference)

    def wald(b, c, n):
        half = 1.96 * np.sqrt(b + c - (b - c) ** 2 / n) / n
        return (b - c) / n - half, (b - c) / n + half

    caught(check, wald)
    found = stats.paired_difference(12, 2, 100)
    assert found.estimate == pytest.approx(0.1)
    assert found.p_greater == pytest.approx(sum(__import__("math").comb(14, i) for i in (12, 13, 14)) / 2**14)
    assert stats.paired_difference(0, 0, 50).p_value == 1.0
    with pytest.raises(DesignError, match="more disagreements"):
        stats.paired_difference(30, 30, 50)


def test_relaxation():
    found = stats.relaxation((30, 100), (0, 100), sizes=(200, 50), inside=(40, 40))
    assert found.newly_reachable
    assert found.size_ratio == 4
    assert found.change.low > 0
    assert stats.relaxation((5, 100), (50, 100)).change.high < 0  # more actions can dilute
    assert "4 times as large" in str(found)


def check_unresolved(interval, verdict):
    """Every way to fill in the missing answers is inside, and gives the same verdict."""
    for hits, n, missing in ((0, 40, 3), (2, 40, 14), (5, 40, 10), (30, 40, 10), (0, 40, 40)):
        low, high = interval(hits, n, missing)
        for filled in range(hits, hits + missing + 1):
            one = stats.interval(filled, n)
            assert low <= one.low + 1e-15
            assert one.high <= high + 1e-15
            for tau, claim in ((0.3, "below"), (0.6, "above")):
                if verdict(hits, n, missing, tau, claim) == claim:
                    assert stats.test(filled, n, tau, claim=claim).verdict == claim


def test_unresolved_answers_hold_for_every_completion():
    def verdict(hits, n, missing, tau, claim):
        return stats.unresolved_test(hits, n, missing, tau, claim=claim).verdict

    def dropped(hits, n, missing, tau, claim):
        return stats.test(hits, max(n - missing, 1), tau, claim=claim).verdict

    check_unresolved(stats.unresolved_interval, verdict)
    caught(check_unresolved, stats.unresolved_interval, dropped)
    caught(check_unresolved, lambda k, n, u: stats.interval(k, max(n - u, 1)), verdict)
    assert stats.unresolved_interval(3, 20, 0) == stats.Interval(
        0.15, *stats.interval(3, 20), 0.05, "Clopper-Pearson, every completion"
    )
    assert stats.unresolved_interval([0, 1], 20, [1, 2]).high.shape == (2,)
    with pytest.raises(DesignError, match="more hits and unresolved"):
        stats.unresolved_interval(5, 10, 6)
