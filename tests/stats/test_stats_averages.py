"""Averages over a data set: which rows the claim is about, and what repeats are worth."""

import functools
import itertools

import numpy as np
import pytest
from scipy.special import betaincc
from stat_checks import allowed, caught

from budge import stats
from budge.errors import DesignError
from budge.stats.means import clustered_p_value, pooled_bounds
from budge.stats.tails import at_least

ALPHA = 0.05


def sample(rng, rate, concentration, rows, m):
    """Rows from a population whose responsiveness is spread around the rate (small concentration: nearly all 0 or 1)."""
    return rng.binomial(m, rng.beta(rate * concentration, (1 - rate) * concentration, rows))


def check_population(p_value, m, *, runs, sizes=(100,), rates=(0.1, 0.4), concentrations=(0.1, 0.5, 2, 20)):
    """False claims about the population at the threshold: at most alpha + 0.005, plus five standard errors (3e-7)."""
    rng = np.random.default_rng(40 + m)
    for rows, rate, concentration in itertools.product(sizes, rates, concentrations):
        hits = np.concatenate([sample(rng, rate, concentration, (part, rows), m) for part in [1000] * (runs // 1000)])
        for claim in ("below", "above"):
            false = np.mean(p_value(hits, m, rate, claim) < ALPHA)
            assert false <= allowed(ALPHA + 0.005, runs), (rows, rate, concentration, claim, false)


def clustered(hits, m, rate, claim):
    """What `average` reports with method="clustered", for many samples at once (a test below holds the two together)."""
    x, tau = (hits / m, rate) if claim == "below" else (1 - hits / m, 1 - rate)
    return clustered_p_value(x, float(m * hits.shape[-1]), tau)


def pooled(hits, m, rate, claim):
    """The bug for m > 1, and the exact method for m = 1."""
    return stats.p_value(hits.sum(axis=-1), m * hits.shape[-1], rate, claim)


def without_the_imagined_row(hits, m, rate, claim):
    x, tau = (hits / m, rate) if claim == "below" else (1 - hits / m, 1 - rate)
    rows, mean = x.shape[-1], x.mean(axis=-1)
    spread = x.var(axis=-1, ddof=1)
    size = np.clip(rows * mean * (1 - mean) / np.where(spread > 0, spread, 1), 0, m * rows)
    return betaincc(mean * size + 1, np.maximum(size - mean * size, 1e-9), tau)


@pytest.mark.parametrize("m", [1, 2, 5, 10])
def test_population_claims_keep_their_error(m):
    check_population(pooled if m == 1 else clustered, m, runs=10_000)
    if m > 1:
        caught(check_population, pooled, m, runs=2000)
    if m == 10:
        caught(check_population, without_the_imagined_row, m, runs=10_000, sizes=(30,), rates=(0.05,))


@pytest.mark.heavy
@pytest.mark.parametrize("m", [1, 2, 5, 10])
@pytest.mark.parametrize("rows", [30, 100, 440])
def test_population_claims_keep_their_error_in_many_settings(m, rows):
    method = pooled if m == 1 else clustered
    check_population(method, m, runs=20_000, sizes=(rows,), rates=(0.05, 0.1, 0.4), concentrations=(0.1, 0.5, 2, 20, 1000))


def test_average_reports_the_p_values_that_were_simulated():
    rng = np.random.default_rng(4)
    for claim, m in (("below", 4), ("above", 4), ("below", 1)):
        hits = sample(rng, 0.3, 2, (20, 50), m)
        expected = (pooled if m == 1 else clustered)(hits, m, 0.3, claim)
        method = "auto" if m == 1 else "clustered"
        got = [stats.average(row, m, over="population", method=method, threshold=0.3, claim=claim).p_value for row in hits]
        assert got == pytest.approx(expected, rel=1e-12)


def test_bounded_population_claims_are_guaranteed():
    rng = np.random.default_rng(17)
    false = [stats.average(sample(rng, 0.4, 0.5, 60, 5), 5, over="population", method="bounded").low > 0.4 for _ in range(300)]
    assert np.mean(false) <= allowed(ALPHA / 2, 300)
    assert stats.average([0] * 90, 5, over="population", method="bounded", threshold=0.1).rejected


def test_clustered_bounds_are_tighter_than_one_draw_per_row_where_rows_agree():
    rng = np.random.default_rng(1)
    hits = sample(rng, 0.3, 50, 200, 10)
    found = stats.average(hits, 10, over="population", method="clustered")
    assert found.high - found.low < 0.6 * stats.interval(60, 200).width
    assert not found.exact
    assert "approximate" in str(found)


def check_these(rejects, runs=4000):
    """Fixed rows that differ widely: the pooled count is exact for their mean; false alarm below 3e-7."""
    rng = np.random.default_rng(2)
    for rates in (np.resize([0.0, 0.2], 50), np.resize([0.0, 0.0, 0.0, 0.4], 52), np.full(40, 0.1)):
        tau = float(rates.mean())
        hits = rng.binomial(3, rates, (runs, rates.size))
        assert np.mean([rejects(row, tau) for row in hits]) <= allowed(ALPHA, runs)


def test_claims_about_these_rows_keep_their_error():
    @functools.cache
    def rejects(hits, rows, tau):  # pooled: the count says it all
        spread = np.full(rows, hits // rows) + (np.arange(rows) < hits % rows)
        return stats.average(spread, 3, over="these", threshold=tau).rejected

    check_these(lambda hits, tau: rejects(int(hits.sum()), hits.size, tau))
    caught(
        check_these, lambda hits, tau: stats.p_value(int(hits.sum() * 2), hits.size * 6, tau) < ALPHA, runs=1500
    )  # draws used twice


def test_unequal_draws_are_weighted_by_row():
    hits, draws = np.array([0, 10, 5]), np.array([1, 10, 100])
    found = stats.average(hits, draws, over="these", threshold=0.9)
    assert found.estimate == pytest.approx((0 + 1 + 0.05) / 3)
    assert "Hoeffding" in found.method
    assert found.low <= found.estimate <= found.high
    rng = np.random.default_rng(5)
    rates, m = np.resize([0.0, 0.5, 0.2], 60), np.resize([2, 7, 20], 60)
    covered = [stats.average(rng.binomial(m, rates), m, over="these") for _ in range(400)]
    assert np.mean([not a.low <= rates.mean() <= a.high for a in covered]) <= allowed(ALPHA, 400)


def test_pooled_repeats_under_population_are_refused():
    for method in ("auto", "pooled", "one-per-row"):
        with pytest.raises(DesignError, match="pooled repeats"):
            stats.average([1, 2, 0], 5, over="population", method=method)
    with pytest.raises(DesignError, match="population claims"):
        stats.average([1, 2, 0], 5, over="these", method="clustered")
    with pytest.raises(TypeError):
        stats.average([1, 2, 0], 5)  # what the claim is about has no default
    with pytest.raises(DesignError, match="unknown over"):
        stats.average([1, 2, 0], 5, over="populaton")
    with pytest.raises(DesignError, match="one row"):
        stats.average([1], 5, over="population", method="clustered")


def test_p_value_bound_and_verdict_agree():
    rng = np.random.default_rng(3)
    for method, over, m in (
        ("auto", "these", 4),
        ("one-per-row", "population", 1),
        ("clustered", "population", 4),
        ("bounded", "population", 4),
    ):
        for _ in range(25 if method != "bounded" else 4):
            hits = rng.binomial(m, 0.2, 80)
            for claim, tau in (("below", 0.27), ("above", 0.14)):
                found = stats.average(hits, m, over=over, method=method, threshold=tau, claim=claim)
                assert found.rejected == (found.p_value < ALPHA)
                assert found.rejected == (found.bound < tau if claim == "below" else found.bound > tau)
                assert found.verdict == (claim if found.rejected else "inconclusive")
    assert stats.average([0] * 50, 3, over="population", method="clustered", threshold=0.1).rejected
    assert stats.average([3] * 50, 3, over="population", method="clustered").high == 1.0
    assert stats.average([0, 1], over="these").to_dict()["draws"] == 2


def worst_error(bound, alpha):
    """Exact: the worst chance that the lower bound exceeds the mean rate, over the extremal sums of unlike coins.

    By Hoeffding (1956) an extreme has some rates 0, some 1, and all others equal.
    """
    worst = 0.0
    for n in (*range(2, 26), 40):
        for k in range(1, n + 1):
            rate = bound(k, n, alpha)  # rates up to the bound are excluded
            for ones, zeros in ((o, z) for o in range(k) for z in range(n - o)):
                rest = n - ones - zeros
                q = (n * rate - ones) / rest
                if 0 <= q <= 1:
                    worst = max(worst, float(at_least(k - ones, rest, q)))
    return worst


def test_pooled_bounds_have_exactly_their_error():
    for alpha in (0.05, 0.2):
        assert worst_error(lambda k, n, a: pooled_bounds(k, n, a)[0], alpha) == pytest.approx(alpha, abs=1e-9)
    assert worst_error(lambda k, n, a: stats.lower_bound(k, n, a), 0.05) > 0.051  # the binomial bound, outside its condition
    for k, n in itertools.product((0, 1, 2, 5, 9, 10), (10, 30)):
        low, high = pooled_bounds(k, n, 0.05)
        assert 1 - pooled_bounds(n - k, n, 0.05)[1] == pytest.approx(low, abs=1e-12)
        for tau in (0.01, 0.1, 0.3, 0.5, 0.8, 0.95):
            for claim, shown in (("below", high < tau), ("above", low > tau)):
                spread = (np.arange(n) < k).astype(int)
                found = stats.average(spread, 1, over="these", threshold=tau, claim=claim)
                assert found.rejected == shown == (found.p_value < 0.05)


def test_strong_evidence_does_not_end_in_a_crash():
    for rows in (1000, 3000):
        found = stats.average([0] * rows, 5, over="population", method="bounded", threshold=0.5)
        assert 0 < found.p_value < 1e-100
        assert found.rejected


def test_unresolved_draws_hold_for_every_filling():
    hits, lost, rng = np.array([0, 1, 0, 2]), np.array([1, 0, 2, 0]), np.random.default_rng(0)
    for over, method, m in (("these", "auto", 4), ("these", "auto", [4, 5, 6, 7]), ("population", "bounded", 4)):
        for claim, tau in (("below", 0.9), ("above", 0.02)):
            found = stats.average(hits, m, over=over, method=method, threshold=tau, claim=claim, unresolved=lost)
            for _ in range(5):
                filled = stats.average(hits + rng.binomial(lost, 0.5), m, over=over, method=method, threshold=tau, claim=claim)
                assert found.low <= filled.low + 1e-12
                assert filled.high <= found.high + 1e-12
                assert filled.p_value <= found.p_value * (1 + 1e-5)
