"""Weighted draws, means, numeric changes, and answers that are missing."""

import itertools

import numpy as np
import pytest
from stat_checks import allowed, caught

from budge import stats
from budge.errors import DesignError

ALPHA = 0.05
P = np.full(8, 1 / 8)
Q = np.array([0.3, 0.3, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05])
TARGET = np.array([0, 0, 0, 0, 0, 0, 1, 1])  # rho = 0.25, drawn with probability 0.1 only


def check_weighted(interval, runs=150, n=300):
    """Weighted draws cover rho; false alarm below 3e-7."""
    rng = np.random.default_rng(12)
    missed = 0
    for _ in range(runs):
        a = rng.choice(8, n, p=Q)
        low, high = interval(TARGET[a], (P / Q)[a])
        missed += not low <= 0.25 <= high
    assert missed / runs <= allowed(ALPHA, runs)


def test_weighted_draws_cover():
    check_weighted(lambda y, w: stats.weighted(y, w, largest=2.5), runs=60)
    caught(check_weighted, lambda y, w: stats.interval(int(y.sum()), y.size))  # weights forgotten
    caught(check_weighted, lambda y, w: stats.weighted(y, np.ones_like(w), largest=1), runs=40)


def test_weighted_bounds_shrink():
    a = np.random.default_rng(1).choice(8, 5000, p=Q)
    found = stats.weighted(TARGET[a], (P / Q)[a], largest=2.5)
    assert found.width < 0.09
    assert 0.25 in found
    assert "weighted draws worth" in str(found)
    assert stats.effective_sample_size(np.full(9, 0.3)) == pytest.approx(9)


def test_weights_that_cannot_work_are_refused():
    for largest in (2.0, 0.5, np.inf):
        with pytest.raises(DesignError, match="largest possible weight"):
            stats.weighted([0, 1], [1.0, 3.0 if largest == 2 else 0.3], largest=largest)
    with pytest.raises(DesignError, match="negative"):
        stats.effective_sample_size([1, -1])
    with pytest.raises(DesignError, match="all weights are zero"):
        stats.effective_sample_size([0, 0])
    with pytest.raises(DesignError, match="one weight"):
        stats.weighted([0, 1], [1.0], largest=2.0)
    with pytest.raises(DesignError, match="0 or 1"):
        stats.weighted([0, 0.5], [1.0, 1.0], largest=2.0)


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


def check_fillings(interval):
    """Every way to fill in two missing draws (and one of them) gives an interval inside; unless the answers are dropped."""
    rng = np.random.default_rng(3)
    for x, q, alpha in itertools.product((rng.normal(size=9), rng.integers(0, 3, 14) * 1.0), (0.1, 0.5, 0.8), (0.05, 0.5)):
        values = np.unique(np.r_[-100.0, x, x + 0.01, 100.0])
        for missing in (1, 2):
            low, high = interval(x, q, missing, alpha)
            for filling in itertools.combinations_with_replacement(values, missing):
                filled = stats.quantile_interval(np.r_[x, filling], q, alpha=alpha)
                assert low <= filled.low
                assert filled.high <= high


def test_quantiles_hold_for_every_filling():
    check_fillings(lambda x, q, missing, alpha: stats.quantile_interval(x, q, unresolved=missing, alpha=alpha))
    caught(check_fillings, lambda x, q, missing, alpha: stats.quantile_interval(x, q, alpha=alpha))
    x = np.random.default_rng(0).normal(size=200)
    found, answered = stats.how_much(x, unresolved=7), stats.how_much(x)
    assert (found.n, found.unresolved) == (207, 7)
    for q, one in found.quantiles.items():
        assert one.estimate == answered.quantiles[q].estimate
        assert tuple(one) == tuple(stats.quantile_interval(x, q, unresolved=7, alpha=0.05 / 3))
    assert "7 have no answer" in str(found)
    lost = stats.how_much([1.0], unresolved=50).quantiles[0.5]
    assert (lost.low, lost.high) == (-np.inf, np.inf)
    with pytest.raises(DesignError, match="unresolved"):
        stats.how_much([1.0], unresolved=-1)


def test_means_hold_for_every_filling():
    x = np.random.default_rng(5).beta(2, 5, 60) * 4 - 1
    for missing in (1, 3):
        found = stats.how_much(x, quantiles=(), value_range=(-1, 3), unresolved=missing).mean
        for filling in itertools.product((-1.0, -0.9, 0.0, 1.5, 3.0), repeat=missing):
            for place in (0, 30, 60):  # wherever they stood among the draws
                filled = stats.bounded_mean(np.insert(x, place, filling), -1, 3)
                assert found.low <= filled.low
                assert filled.high <= found.high
    assert found.estimate == pytest.approx(x.mean())


def check_missing_mean(bounds, runs=400):
    """Answers go missing where they hurt: the large ones, so that the answered alone are too low; false alarm below 3e-7."""
    rng = np.random.default_rng(8)
    missed = 0
    for _ in range(runs):
        x = (rng.random(200) < 0.3) * 1.0
        gone = (x == 1) & (rng.random(200) < 0.3)
        low, high = bounds(x[~gone], int(gone.sum()))
        missed += not low <= 0.3 <= high
    assert missed / runs <= allowed(ALPHA, runs)


def test_answers_that_go_missing_by_their_value_do_not_bias_the_mean():
    check_missing_mean(lambda x, missing: stats.bounded_mean(x, 0, 1, unresolved=missing))
    caught(check_missing_mean, lambda x, missing: stats.bounded_mean(x, 0, 1))
