"""Planning: golden values, brute force, and the proof that `stable` is stable."""

import numpy as np
import pytest
from scipy.stats import binom
from stat_checks import caught

from budge import plan, stats
from budge.errors import DesignError
from budge.stats.planning import _enough, _worst_width
from cpu import within


@pytest.mark.parametrize(
    ("threshold", "alpha", "n"), [(0.1, 0.05, 29), (0.01, 0.05, 299), (0.5, 0.25, 3), (0.5, 0.5, 2), (0.2, 0.64, 3)]
)
def test_min_samples_golden(threshold, alpha, n):
    assert plan.min_samples(threshold=threshold, alpha=alpha) == n


def check_min_samples(function):
    for threshold in (0.001, 0.01, 0.05, 0.1, 0.125, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 0.9, 0.99):
        for alpha in (1e-6, 0.01, 0.05, 0.0625, 0.1, 0.25, 0.5, 0.64, 0.9):
            n = 1
            while not (1 - threshold) ** n < alpha:
                n += 1
            assert function(threshold, alpha) == n, (threshold, alpha)


def test_min_samples_agrees_with_counting_up():
    check_min_samples(plan.min_samples)
    caught(check_min_samples, lambda t, a: int(np.ceil(np.log(a) / np.log(1 - t))))  # by logs: wrong at ties
    assert plan.min_samples(0.9, 0.05, claim="above") == 29
    assert stats.test(29, 29, 0.9, claim="above").rejected
    assert not stats.test(28, 28, 0.9, claim="above").rejected


@pytest.mark.parametrize(("width", "n"), [(0.1, 402), (0.05, 1574)])
def test_samples_for_width_golden(width, n):
    assert plan.samples_for_width(width=width, alpha=0.05) == n


def test_samples_for_width_is_the_first_for_all_counts():
    for alpha in (0.01, 0.05, 0.9):
        widths = [stats.interval(np.arange(n + 1), n, alpha).width.max() for n in range(1, 121)]
        assert widths == pytest.approx(
            [_worst_width(n, alpha) for n in range(1, 121)], rel=1e-12
        )  # the middle count is the widest
        assert (np.diff(widths) < 0).all()  # so bisection over n finds the first
        for width in (0.9, 0.5, 0.3):
            n = plan.samples_for_width(width, alpha)
            assert widths[n - 1] <= width
            assert n == 1 or widths[n - 2] > width


@pytest.mark.heavy
def test_the_middle_count_has_the_widest_interval_up_to_1574():
    for n in (*range(121, 1575, 23), 1573, 1574):
        assert stats.interval(np.arange(n + 1), n).width.max() == pytest.approx(_worst_width(n, 0.05), rel=1e-12)


@pytest.mark.parametrize(("rate", "first", "stable"), [(0.227, 79, 85), (0.277, 159, 168), (0.368, 2502, 2551)])
def test_samples_for_power_golden(rate, first, stable):
    with within(1):
        found = plan.samples_for_power(threshold=0.4, rate=rate, alpha=0.05, power=0.95)
    assert (found.first, found.stable, found.n, int(found)) == (first, stable, first, first)
    assert plan.samples_for_power(threshold=0.4, margin=0.4 - rate).stable == stable


def brute_power(n, threshold, rate, alpha):
    k = np.arange(n + 1)
    return binom.pmf(k, n, rate)[binom.cdf(k, n, threshold) < alpha].sum()


def check_power_plan(function, cases):
    for threshold, rate, alpha, target in cases:
        found = function(threshold, rate, alpha=alpha, power=target)
        powers = np.array([brute_power(n, threshold, rate, alpha) for n in range(1, found.stable * 2 + 60)])
        ok = powers >= target
        assert found.first == np.argmax(ok) + 1, (threshold, rate, alpha, target)
        assert found.stable == np.flatnonzero(~ok)[-1] + 2, (threshold, rate, alpha, target)


def test_first_and_stable_agree_with_brute_force():
    cases = [
        (0.1, 0.01, 0.05, 0.95),
        (0.3, 0.1, 0.01, 0.8),
        (0.5, 0.3, 0.05, 0.9),
        (0.9, 0.7, 0.1, 0.5),
        (0.05, 0.001, 0.05, 0.95),
        (0.1, 0.02, 0.2, 0.3),
    ]
    check_power_plan(plan.samples_for_power, cases)

    def first_everywhere(*args, **kwargs):
        found = plan.samples_for_power(*args, **kwargs)
        return plan.PowerPlan(found.first, found.first, found.threshold, found.rate, found.alpha, found.power, found.claim)

    caught(check_power_plan, first_everywhere, cases)


def test_power_holds_beyond_the_proved_number():
    for threshold, rate, alpha, target in [(0.4, 0.227, 0.05, 0.95), (0.1, 0.05, 0.05, 0.8), (0.2, 0.01, 0.01, 0.99)]:
        enough = _enough(threshold, rate, alpha, 1 - target)
        assert (plan.power(np.arange(enough, 6 * enough), threshold, rate, alpha=alpha) >= target).all()


def test_above_mirrors_below():
    below, above = plan.samples_for_power(0.25, 0.125), plan.samples_for_power(0.75, 0.875, claim="above")
    assert (below.first, below.stable) == (above.first, above.stable)
    assert plan.power(50, 0.25, 0.125) == pytest.approx(plan.power(50, 0.75, 0.875, claim="above"), rel=1e-12)
    assert plan.critical_hits(50, 0.75, claim="above") == 50 - plan.critical_hits(50, 0.25)


def test_critical_hits_are_the_last_that_reject():
    for tau, alpha in ((0.1, 0.05), (0.4, 0.01), (0.999, 0.05), (0.001, 1e-9), (0.5, 0.999)):
        n = np.arange(1, 400)
        k = plan.critical_hits(n, tau, alpha=alpha)
        assert (stats.p_value(np.maximum(k, 0), n, tau)[k >= 0] < alpha).all()
        assert (stats.p_value(k + 1, n, tau) >= alpha).all()


def test_detectable_margin_is_where_power_falls_to_the_target():
    for claim, tau in (("below", 0.4), ("above", 0.6)):
        found = plan.detectable_margin(85, threshold=tau, power=0.95, claim=claim)
        assert plan.power(85, tau, found.rate, claim=claim) == pytest.approx(0.95, abs=1e-10)
        assert found.margin == float(found) == abs(tau - found.rate)
    with pytest.raises(DesignError, match="needs at least 29"):
        plan.detectable_margin(28, threshold=0.1)
    assert plan.min_samples(plan.provable_threshold(100) * 1.0001) == 100


def test_a_rate_of_zero_needs_no_more_than_the_minimum():
    found = plan.samples_for_power(0.1, 0.0)
    assert (found.first, found.stable) == (29, 29)


def test_no_sample_size_exists_above_the_threshold():
    with pytest.raises(DesignError, match="not below the threshold"):
        plan.samples_for_power(0.4, 0.45)
    with pytest.raises(DesignError, match="too small"):
        plan.samples_for_power(0.4, margin=1e-5)


def test_expected_calls():
    rule = plan.sprt_rule(threshold=0.1, margin=0.05)
    calls = plan.expected_calls([0.0, 0.5, 1.0], 100, people=30, rule=rule)
    assert calls.fixed == 3000
    assert calls.to_first_hit == pytest.approx(10 * (100 + 2 + 1), rel=1e-9)
    assert calls.sequential == pytest.approx(10 * sum(rule.at(r).expected_calls for r in (0.0, 0.5, 1.0)))
    assert calls.saved == calls.fixed - calls.sequential


def test_curve_holds_the_exact_power_and_draws_itself():
    curve = plan.power_curve(threshold=0.4, rate=0.227)
    at = dict(zip(curve.n.tolist(), curve.power.tolist()))
    assert at[79] >= 0.95 > at[81]
    assert min(at[n] for n in range(85, int(curve.n[-1]) + 1)) >= 0.95
    text = curve.text(width=40, height=6).splitlines()
    assert len(text) == 8
    assert text[0].startswith("1.0 |")
    import xml.etree.ElementTree as ET

    root = ET.fromstring(curve.svg())
    assert root.tag.endswith("svg")
    assert len(root.findall(".//{http://www.w3.org/2000/svg}circle")) == 2
    lines = [line.get("points").split() for line in root.findall(".//{http://www.w3.org/2000/svg}polyline")]
    assert max(map(len, lines)) == curve.n.size
