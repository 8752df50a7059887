"""The "Design of the test" table of bad inputs, row by row: the right class, the place, the value and a remedy."""

import numpy as np
import pytest

from budge import plan, stats
from budge.errors import DesignError

BAD_FRACTIONS = [0, 1, -0.1, 1.5, 5, float("nan"), float("inf"), True, False, np.True_, "5%", "0.05", "abc", None, [0.1], {}, 1j]

FRACTIONS = {
    "alpha of interval": lambda v: stats.interval(1, 10, alpha=v),
    "alpha of upper_bound": lambda v: stats.upper_bound(1, 10, alpha=v),
    "alpha of test": lambda v: stats.test(1, 10, 0.1, alpha=v),
    "alpha of anytime_bound": lambda v: stats.anytime_bound(1, 10, v),
    "alpha of how_much": lambda v: stats.how_much([0.5], alpha=v),
    "alpha of flag": lambda v: stats.flag([0.1], v),
    "alpha of certify": lambda v: stats.certify([0.1], v),
    "alpha of average": lambda v: stats.average([0, 1], over="these", alpha=v),
    "alpha of share": lambda v: stats.share([0, 1], 10, 0.1, alpha=v),
    "alpha of difference": lambda v: stats.difference(1, 10, 2, 10, alpha=v),
    "alpha of bounded_mean": lambda v: stats.bounded_mean([0.5], 0, 1, alpha=v),
    "alpha of paired_difference": lambda v: stats.paired_difference(1, 2, 10, alpha=v),
    "alpha of true_claims": lambda v: stats.true_claims([0.1], v),
    "alpha of weighted": lambda v: stats.weighted([0, 1], [1, 1], largest=1, alpha=v),
    "alpha of min_samples": lambda v: plan.min_samples(0.1, v),
    "alpha of samples_for_width": lambda v: plan.samples_for_width(0.1, v),
    "alpha of samples_for_power": lambda v: plan.samples_for_power(0.1, 0.05, alpha=v),
    "alpha of sprt_rule": lambda v: plan.sprt_rule(threshold=0.1, margin=0.05, alpha=v),
    "power of samples_for_power": lambda v: plan.samples_for_power(0.1, 0.05, power=v),
    "power of detectable_margin": lambda v: plan.detectable_margin(100, threshold=0.1, power=v),
    "power of sprt_rule": lambda v: plan.sprt_rule(threshold=0.1, margin=0.05, power=v),
    "threshold of test": lambda v: stats.test(1, 10, v),
    "threshold of p_value": lambda v: stats.p_value(1, 10, v),
    "threshold of min_samples": lambda v: plan.min_samples(v),
    "threshold of samples_for_power": lambda v: plan.samples_for_power(v, 0.0),
    "width of samples_for_width": lambda v: plan.samples_for_width(v),
    "margin of samples_for_power": lambda v: (
        plan.samples_for_power(0.1, margin=v) if v is not None else plan.samples_for_power(0.1)
    ),
    "q of quantile_interval": lambda v: stats.quantile_interval([1, 2], v),
}


@pytest.mark.parametrize("value", BAD_FRACTIONS, ids=repr)
@pytest.mark.parametrize("call", FRACTIONS)
def test_row_1_fractions(call, value):
    if isinstance(value, list) and call.startswith("threshold of") and call.split()[-1] in ("test", "p_value"):
        assert np.shape(FRACTIONS[call](value).p_value if "test" in call else FRACTIONS[call](value)) == (
            1,
        )  # thresholds may be arrays
        return
    with pytest.raises(DesignError) as caught:
        FRACTIONS[call](value)
    problem = caught.value.problems[0]
    assert problem.where
    assert problem.remedy
    assert "got" in problem.to_dict()


def test_row_1_messages_show_what_was_got_and_what_to_write():
    with pytest.raises(DesignError, match=r"got '5%'\); write 0\.05"):
        stats.interval(1, 10, alpha="5%")
    with pytest.raises(DesignError, match=r"got 5\); write 0\.05 for 5 percent"):
        stats.interval(1, 10, alpha=5)
    with pytest.raises(DesignError, match="not a truth value"):
        plan.min_samples(True)


@pytest.mark.parametrize("margin", [0.1, 0.2, 0.999])
def test_row_1_margin_at_or_above_the_threshold(margin):
    for call in (plan.samples_for_power, plan.sprt_rule, plan.power_curve):
        with pytest.raises(DesignError, match=rf"margin must be smaller than the threshold = 0\.1.*got {margin}"):
            call(threshold=0.1, margin=margin)
    with pytest.raises(DesignError, match="1 - threshold"):
        plan.samples_for_power(0.9, margin=0.2, claim="above")
    with pytest.raises(DesignError, match="either rate or margin"):
        plan.samples_for_power(0.1, 0.05, margin=0.05)


@pytest.mark.parametrize("n", [1, 10, 28])
def test_row_2_n_below_the_minimum(n):
    for call in (plan.check_n, plan.curtailed_rule, plan.anytime_rule, plan.detectable_margin):
        with pytest.raises(DesignError, match="cannot reject even with no hit; needs at least 29") as caught:
            call(n, threshold=0.1)
        assert f"got {n}" in str(caught.value)
    assert plan.check_n(29, threshold=0.1) == 29
    with pytest.raises(DesignError, match="nothing but hits; needs at least 29"):
        plan.check_n(n, threshold=0.9, claim="above")


BAD_COUNTS = [
    0,
    -1,
    2.5,
    float("nan"),
    float("inf"),
    True,
    "10",
    None,
    [10, 0],
    [10, -3],
    [10, 2.5],
    [10, np.nan],
    [True, False],
    ["a"],
]


@pytest.mark.parametrize("n", BAD_COUNTS, ids=repr)
def test_row_3_n_zero_negative_or_fractional(n):
    for call in (
        lambda: stats.interval(0, n),
        lambda: stats.p_value(0, n, 0.1),
        lambda: stats.test(0, n, 0.1),
        lambda: stats.upper_bound(0, n),
        lambda: stats.anytime_interval(0, n),
        lambda: stats.share(0, n, 0.1),
        lambda: stats.difference(0, n, 0, 10),
        lambda: plan.power(n, 0.1, 0.05),
        lambda: plan.critical_hits(n, 0.1),
        lambda: plan.check_n(n),
        lambda: plan.detectable_margin(n),
    ):
        with pytest.raises(DesignError) as caught:
            call()
        assert caught.value.problems[0].where.startswith("n")


@pytest.mark.parametrize("hits", [-1, 11, 2.5, float("nan"), True, "1", None, [0, 11], [0.5, 1]], ids=repr)
def test_row_3_hits_that_are_no_counts(hits):
    for call in (stats.interval, stats.upper_bound, stats.lower_bound, stats.anytime_interval):
        with pytest.raises(DesignError) as caught:
            call(hits, 10)
        assert caught.value.problems[0].where.startswith("hits")


def test_row_3_whole_floats_and_nullable_columns_are_counts():
    assert stats.interval(3.0, 10.0) == stats.interval(3, 10)
    assert (stats.interval(np.array([3, 4], dtype=object), 10).low == stats.interval([3, 4], 10).low).all()
    with pytest.raises(DesignError, match="shapes"):
        stats.interval([1, 2], [10, 10, 10])
    with pytest.raises(DesignError, match="more hits than draws"):
        stats.interval([1, 12], 10)


def test_row_4_population_claim_with_pooled_repeats():
    with pytest.raises(DesignError, match=r"pooled repeats.*not independent draws"):
        stats.average([3, 5, 1], 10, over="population", threshold=0.4)


@pytest.mark.parametrize("call", [stats.flag, stats.certify, stats.adjust, lambda p: stats.share_from_p_values(p, p)])
def test_row_4_an_empty_family(call):
    with pytest.raises(DesignError, match="empty family"):
        call([])
    for bad in ([0.5, 1.2], [0.5, np.nan], ["a"], [True], "0.1"):
        with pytest.raises(DesignError, match="p-value"):
            call(bad)


def test_unknown_words_suggest_the_nearest():
    with pytest.raises(DesignError, match="did you mean 'below'"):
        stats.p_value(1, 10, 0.1, claim="belwo")
    with pytest.raises(DesignError, match="did you mean 'holm'"):
        stats.adjust([0.1], "holms")
    with pytest.raises(DesignError, match="did you mean 'region'"):
        stats.difference(1, 10, 2, 10, method="regoin")
    with pytest.raises(DesignError, match="no rates"):
        plan.expected_calls([], 10)
    with pytest.raises(DesignError, match="no practical number"):
        plan.min_samples(1e-17)
