"""Intervals, bounds, p-values and decisions: against 50 digits, and exactly at every place where they could fail."""

import mpmath as mp
import numpy as np
import pytest
from stat_checks import caught, check_coverage, check_reference, check_size

from budge import plan, stats
from budge.stats.power import rejecting_counts
from budge.stats.tails import at_least, at_most
from cpu import within

THRESHOLDS = (0.01, 0.05, 0.1, 0.4)


def reference_rows():
    rng = np.random.default_rng(4)
    levels = (1e-12, 1e-6, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 0.9, 0.999)
    thresholds = (1e-6, 0.001, 0.01, 0.05, 0.1, 0.4, 0.5, 0.9, 0.999)
    rows = []
    for n in (1, 2, 3, 5, 10, 29, 30, 79, 100, 299, 402, 1574):
        for k in sorted({0, 1, 2, n // 10, n // 3, n // 2, n - 2, n - 1, n}):
            if 0 <= k <= n:
                rows += [(k, n, levels[i % 11], thresholds[i % 9]) for i in rng.integers(0, 99, 6)]
    return rows


def test_five_hundred_rows_agree_with_fifty_digits():
    rows = reference_rows()
    assert len(rows) >= 500
    with mp.workdps(60):
        worst = check_reference(rows, stats.upper_bound, stats.lower_bound, at_most, at_least)
        assert worst <= 1e-12
        caught(
            check_reference,
            rows[:40],
            lambda k, n, a: stats.upper_bound(min(k + 1, n), n, a),
            stats.lower_bound,
            at_most,
            at_least,
        )
        caught(check_reference, rows[:40], stats.upper_bound, stats.lower_bound, lambda k, n, p: at_most(k - 1, n, p), at_least)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        (682, 925, 0.7076683, 0.7654066),
        (7, 20, 0.1539092, 0.5921885),
        (0, 10, 0.0, 0.3084971),
        (10, 10, 0.6915029, 1.0),
        (5, 10, 0.1870860, 0.8129140),
    ],
)
def test_intervals_agree_with_published_binom_test_values(k, n, low, high):
    found = stats.interval(k, n, alpha=0.05)
    assert found.low == pytest.approx(low, abs=5e-8)
    assert found.high == pytest.approx(high, abs=5e-8)


def test_edges():
    for n in (1, 7, 1000):
        assert stats.interval(0, n).low == 0.0
        assert stats.interval(n, n).high == 1.0
        assert stats.upper_bound(n, n) == 1.0
        assert stats.lower_bound(0, n) == 0.0
        assert stats.p_value(n, n, 0.3) == 1.0
        assert stats.p_value(0, n, 0.3, claim="above") == 1.0
    assert stats.p_value(0, 29, 0.1) == pytest.approx(0.9**29, rel=1e-14)
    for alpha in (1e-300, 1e-15, 1 - 1e-12):
        low, high = stats.interval(3, 10, alpha)
        assert 0 <= low <= 1
        assert 0 <= high <= 1
        assert stats.p_value(3, 10, high) == pytest.approx(alpha / 2, rel=1e-9)


def test_scalars_give_floats_and_arrays_keep_their_shape():
    assert type(stats.p_value(1, 10, 0.1)) is float
    assert type(stats.interval(1, 10).low) is float
    k = np.arange(12).reshape(3, 4)
    found = stats.interval(k, 20)
    assert found.low.shape == (3, 4)
    many = stats.interval(np.tile(np.arange(21), 10), 20)  # long enough to be computed once per distinct pair
    assert (many.low[:21] == [stats.interval(i, 20).low for i in range(21)]).all()
    assert (many.high[21:42] == many.high[:21]).all()
    assert stats.p_value(k, np.array([20, 30, 40, 50]), 0.4).shape == (3, 4)
    result = stats.test(np.arange(5), 29, 0.1)
    assert result.verdict.tolist() == ["below", *["inconclusive"] * 4]
    assert result.to_dict()["rejected"] == [True, False, False, False, False]


def test_coverage_is_kept_at_all_end_points():
    sizes = [*range(1, 61), 79, 100, 159, 299, 402]
    check_coverage(stats.interval, sizes)
    check_coverage(stats.interval, [5, 29, 100], alpha=0.2)

    def off_by_one(k, n, alpha):
        found = stats.interval(k, n, alpha)
        return np.where(k > 0, stats.interval(np.minimum(k + 1, n), n, alpha).low, found.low), found.high

    caught(check_coverage, off_by_one, [29])
    caught(check_coverage, lambda k, n, a: stats.interval(2 * k, 2 * n, a), [29])  # every draw used twice
    caught(check_coverage, lambda k, n, a: stats.interval(k, n, 2 * a), [29])  # one-sided quantiles in a two-sided interval


@pytest.mark.heavy
def test_coverage_is_kept_at_all_end_points_for_every_n_up_to_1574():
    check_coverage(stats.interval, range(1, 1575))


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_size_is_at_most_alpha_and_sharp_for_every_n_up_to_2000(threshold):
    check_size(stats.p_value, range(plan.min_samples(threshold), 2001), threshold, 0.05)
    check_size(stats.p_value, range(plan.min_samples(threshold, claim="above"), 2001), threshold, 0.05, claim="above")


def test_a_p_value_that_forgets_the_count_itself_is_caught():
    caught(check_size, lambda k, n, t, c: np.asarray(at_most(np.asarray(k) - 1, n, t)), range(29, 60), 0.1, 0.05)
    caught(check_size, lambda k, n, t, c: stats.p_value(2 * np.asarray(k), 2 * n, t, c), range(29, 60), 0.1, 0.05)
    caught(check_size, lambda k, n, t, c: np.minimum(1, 2 * stats.p_value(k, n, t, c)), range(100, 160), 0.1, 0.05)


def check_rules_agree(upper, lower, pairs, thresholds, alphas):
    for alpha in alphas:
        up, down = upper(*pairs, alpha), lower(*pairs, alpha)
        for tau in thresholds:
            assert ((up < tau) == (stats.p_value(*pairs, tau) < alpha)).all(), (tau, alpha)
            assert ((down > tau) == (stats.p_value(*pairs, tau, "above") < alpha)).all(), (tau, alpha)


def all_pairs(most):
    n = np.repeat(np.arange(1, most + 1), np.arange(2, most + 2))
    return np.concatenate([np.arange(m + 1) for m in range(1, most + 1)]), n


def test_bound_rule_and_p_value_rule_never_disagree():
    # Halves and quarters make exact ties, where two roundings of one rule would part.
    ties = (0.125, 0.2, 0.25, 0.5, 0.75, *THRESHOLDS)
    check_rules_agree(stats.upper_bound, stats.lower_bound, all_pairs(40), ties, (0.01, 0.05, 0.0625, 0.25, 0.5, 0.64, 0.8))
    for tau in THRESHOLDS:  # for every n up to 2000, the counts around the one that decides
        n = np.repeat(np.arange(1, 2001), 4)
        k = np.clip(np.repeat(rejecting_counts(np.arange(1.0, 2001), tau, 0.05), 4) + np.tile([-1, 0, 1, 2], 2000), 0, n)
        check_rules_agree(stats.upper_bound, stats.lower_bound, (k, n), [tau], [0.05])
    caught(check_rules_agree, lambda k, n, a: stats.upper_bound(k, n, a / 2), stats.lower_bound, all_pairs(20), ties, [0.05])


@pytest.mark.heavy
def test_bound_rule_and_p_value_rule_never_disagree_on_all_counts():
    check_rules_agree(stats.upper_bound, stats.lower_bound, all_pairs(600), (*THRESHOLDS, 0.5), (0.05, 0.25))


def test_the_bounds_invert_the_p_value_to_the_last_bit():
    k, n = all_pairs(30)
    up = stats.upper_bound(k, n, 0.05)
    inside = up < 1
    assert (stats.p_value(k[inside], n[inside], up[inside]) >= 0.05).all()
    assert (stats.p_value(k[inside], n[inside], np.nextafter(up[inside], 1)) < 0.05).all()


def test_ties_are_not_rejections():
    assert not stats.test(0, 2, 0.5, alpha=0.25).rejected
    assert stats.test(0, 3, 0.5, alpha=0.25).rejected
    assert stats.upper_bound(0, 2, 0.25) == 0.5
    assert not stats.test(2, 2, 0.5, alpha=0.25, claim="above").rejected


def test_a_hundred_thousand_people_take_well_under_a_second():
    k = np.random.default_rng(0).integers(0, 1575, 100_000)
    with within(4):  # some 0.2 s on an idle core
        stats.test(k, 1574, 0.1)
        stats.interval(k, 1574)


def test_sentences_and_records():
    assert str(stats.test(0, 29, 0.1)).startswith("0 of 29 draws hit: responsiveness is below 0.1")
    assert str(stats.test(0, 28, 0.1)).startswith("0 of 28 draws hit: inconclusive, ρ < 0.1 is not shown")
    assert stats.interval(3, 10).to_dict() == {
        "estimate": 0.3,
        "low": pytest.approx(0.0667395, abs=1e-6),
        "high": pytest.approx(0.6524529, abs=1e-6),
        "alpha": 0.05,
        "method": "Clopper-Pearson",
    }
    low, high = stats.interval(3, 10)
    assert (low, high) == (stats.interval(3, 10)[0], stats.interval(3, 10)[1])
    assert 0.3 in stats.interval(3, 10)
    with pytest.raises(AttributeError):
        stats.interval(3, 10).low = 0
