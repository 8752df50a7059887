"""Shares of people: coverage in the worst case, twins, known rows, the population, and the gain of several levels.

Simulations have fixed seeds and allow five standard errors: a correct implementation fails with probability below 3e-7 per
setting for a new seed.
"""

import numpy as np
import pytest
from stat_checks import allowed, caught

from budge import stats
from budge.errors import DesignError
from budge.stats.tails import at_least
from cpu import within

N, TAU, ALPHA = 321, 0.1, 0.05
BELOW, ABOVE = stats.p_value(np.arange(N + 1), N, TAU), stats.p_value(np.arange(N + 1), N, TAU, "above")


def one_level(p, alpha, level=0.05):
    """The bound from one level, by search from 0 upwards."""
    made, m = int((np.asarray(p) < level).sum()), len(p)
    true = np.arange(made + 1)
    return float(true[at_least(made - true, m - true, level) > alpha][0])


def check_least_number(least, runs=2000):
    """M people claimed for sure, the others at the threshold with continuous p-values: the bound exceeds M at most at alpha."""
    rng = np.random.default_rng(0)
    for m in (1, 5, 33, 200):
        for true in {0, int(0.3 * m), int(0.9 * m)}:
            p = rng.random((runs, m))
            p[:, :true] = 1e-12
            wrong = np.mean([least(row, 0.025) > true for row in p])
            assert wrong <= allowed(0.025, runs), (m, true, wrong)


def test_the_least_number_keeps_its_error_at_the_threshold():
    check_least_number(stats.true_claims)
    caught(check_least_number, lambda p, alpha: (p < 0.05).sum())  # verdicts counted
    caught(check_least_number, lambda p, alpha: stats.true_claims(p, 6 * alpha))  # the error spent at each level


def twin_error(least, runs):
    """Units of one to five people with the same draws: the worst error seen of the bound on people."""
    rng = np.random.default_rng(1)
    worst = 0.0
    for units in (5, 33, 200):
        for true in (0, int(0.3 * units), int(0.9 * units)):
            wrong = 0
            for _ in range(runs):
                p, size = rng.random(units), rng.integers(1, 6, units)
                p[:true] = 1e-12
                wrong += least(np.repeat(p, size), 0.025, units=np.repeat(np.arange(units), size)) > size[:true].sum()
            worst = max(worst, float(wrong / runs))
    return worst


def test_twins_are_one_unit():
    assert twin_error(stats.true_claims, 1000) <= allowed(0.025, 1000)
    ignored = twin_error(lambda p, alpha, units: stats.true_claims(p, alpha), 500)
    assert 0.1 < ignored < 0.3  # about 0.2 instead of 0.025


def test_the_weight_left_out_is_the_heaviest():
    p = np.r_[np.full(9, 0.002), np.linspace(0.1, 1, 30)]
    for seed in range(20):
        size = np.random.default_rng(seed).integers(1, 9, p.size)
        units = np.repeat(np.arange(p.size), size)
        plain = int(stats.true_claims(p, 0.05))  # units
        assert 0 < plain < 9
        # At each level the same units are claimed here (0.002 < 0.01), so the best level is the one of the plain count.
        assert stats.true_claims(np.repeat(p, size), 0.05, units=units) == np.sort(size[:9])[:plain].sum()
        shuffled = np.random.default_rng(seed).permutation(units.size)
        assert stats.true_claims(np.repeat(p, size)[shuffled], 0.05, units=units[shuffled]) == np.sort(size[:9])[:plain].sum()
    # Known people of a unit are known; the others take the largest p-value of the unit.
    assert stats.true_claims([0.0, 1e-9, 0.5, 1e-9], 0.05, units=[1, 1, 1, 2]) == 2.0
    assert stats.true_claims([0.0, 0.0], 0.05, units=[3, 3]) == 2.0
    assert stats.true_claims([0.0, 0.0, 1.0], 0.05) == 2.0


def test_known_people_cost_nothing():
    rng = np.random.default_rng(2)
    for _ in range(20):
        p = rng.random(50) ** 3
        assert stats.true_claims(np.r_[np.zeros(1000), p], 0.025) == 1000 + stats.true_claims(p, 0.025)


def simulated(rates, rng, runs):
    hits = rng.binomial(N, rates, (runs, len(rates)))
    return BELOW[hits], ABOVE[hits]


def check_mixed(share, runs=1000):
    """Drawn rows at the threshold and beside it, and rows known to be below, above and exactly at the threshold."""
    rng = np.random.default_rng(3)
    for below in (0, 10, 40):
        rates = np.r_[np.resize([0.0, 0.05, 0.099], below), np.full(50 - below, TAU)]
        known_below, known_above, tied = 5, 7, 9
        p, q = simulated(rates, rng, runs)
        ends = np.broadcast_to(np.repeat([0.0, 1.0, 1.0], [known_below, known_above, tied]), (runs, 21))
        others = np.broadcast_to(np.repeat([1.0, 0.0, 1.0], [known_below, known_above, tied]), (runs, 21))
        marks = np.r_[np.zeros(62, bool), np.ones(9, bool)]
        true = (below + known_below) / 71
        found = [share(a, b, marks) for a, b in zip(np.c_[p, ends], np.c_[q, others])]
        missed = np.mean([not low - 1e-12 <= true <= high + 1e-12 for low, high in found])
        assert missed <= allowed(ALPHA, runs), (below, missed)
        assert all(low >= known_below / 71 and high <= 1 - 16 / 71 + 1e-12 for low, high in found)


def test_a_share_that_is_known_has_one_end_to_the_last_bit():
    for people in range(1, 300):
        below = np.arange(people) < people // 9
        found = stats.share_from_p_values(np.where(below, 0.0, 1.0), np.where(below, 1.0, 0.0))
        assert found.low == found.high == (people // 9) / people


def test_known_and_drawn_rows_together():
    check_mixed(lambda p, q, known: stats.share_from_p_values(p, q, known_not=known))
    caught(check_mixed, lambda p, q, known: stats.share_from_p_values(p, q))  # ties forgotten
    with pytest.raises(DesignError, match="both be known"):
        stats.share_from_p_values([0.0, 0.5], [1.0, 0.5], known_not=[True, False])


def check_population(share, runs=800, twins=False):
    rng = np.random.default_rng(4)
    for m, true in ((30, 0.0), (30, 0.5), (150, 0.05), (150, 0.95)):
        missed = 0
        for _ in range(runs):
            kind = rng.random(m) < true
            p = np.where(kind, 1e-12, rng.random(m))
            q = np.where(kind, rng.random(m), 1e-12)
            if twins:  # each start is one of m; equal starts draw equal points
                start = rng.integers(0, m, m)
                kind = rng.random(m) < true
                p, q = np.where(kind, 1e-12, rng.random(m))[start], np.where(kind, rng.random(m), 1e-12)[start]
                at = kind.mean()
            else:
                at, start = true, np.arange(m)
            low, high = share(p, q, start)
            missed += not low <= at <= high
        assert missed / runs <= allowed(ALPHA, runs), (m, true, missed / runs)


def test_the_population_share_is_covered():
    check_population(lambda p, q, units: stats.share_from_p_values(p, q, over="population"))
    check_population(lambda p, q, units: stats.share_from_p_values(p, q, over="population", units=units), runs=500, twins=True)
    caught(check_population, lambda p, q, units: stats.share_from_p_values(p, q), runs=300)  # the other reading is too narrow


CASES = {  # rates, then least and most people below on average: the table of the design
    "60 at 0, 40 at .5": (np.repeat([0.0, 0.5], [60, 40]), (60, 60), 0.01),
    "100 at .05, 900 at .3": (np.repeat([0.05, 0.3], [100, 900]), (65, 100), 2.5),
    "50 at .07, 50 at .14": (np.repeat([0.07, 0.14], [50, 50]), (21, 74), 3.0),
    "20 at 0, 9980 at .3": (np.repeat([0.0, 0.3], [20, 9980]), (20, 20), 0.01),
}


@pytest.mark.parametrize("case", CASES)
def test_widths_are_those_of_the_design(case):
    rates, expected, tolerance = CASES[case]
    rng, found, single = np.random.default_rng(5), [], []
    for p, q in zip(*simulated(rates, rng, 20)):
        ends = stats.share_from_p_values(p, q)
        found.append((ends.low * p.size, ends.high * p.size))
        single.append((one_level(p, ALPHA / 2), p.size - one_level(q, ALPHA / 2)))
    assert np.mean(found, axis=0) == pytest.approx(expected, abs=tolerance)
    if case != "50 at .07, 50 at .14":  # one level is a little sharper on weak evidence, and much wider elsewhere
        assert np.diff(np.mean(single, axis=0)) > np.diff(np.mean(found, axis=0)) + 3


def test_the_least_number_agrees_with_a_search_over_all():
    rng = np.random.default_rng(6)
    for m in (1, 2, 7, 40, 300):
        p = rng.random(m) ** 4
        levels = (0.05, 0.01, 0.001, 0.025 / 4 / m)
        assert stats.true_claims(p, 0.025) == max(one_level(p, 0.025 / 4, a) for a in levels)


def test_a_million_people():
    rng = np.random.default_rng(7)
    p = np.r_[np.full(300_000, 1e-13), rng.random(700_000)]
    with within(5):
        low, high = stats.share_from_p_values(p, 1 - p, units=np.arange(1_000_000) // 2)
    assert 0.2999 <= low <= 0.3
    assert high == pytest.approx(1.0, abs=0.001)


def test_any_dependence():
    hits = [0] * 600 + [100] * 400
    found = stats.share(hits, 200, 0.1, independent=False)
    assert (found.low, found.high) == (0.6, 0.6)
    with pytest.raises(DesignError, match="independent"):
        stats.share([0, 1], 100, 0.1, independent=False, over="population")
    # Units and known rows make Holm's family smaller.
    p = [0.012, 0.012, 0.0, 0.3]
    other = [1.0] * 4
    assert stats.share_from_p_values(p, other, independent=False).low == 0.25
    assert stats.share_from_p_values(p, other, independent=False, units=[0, 0, 1, 2]).low == 0.75


def test_unresolved_draws_count_against_each_end():
    rng = np.random.default_rng(8)
    hits, missing = np.array([0, 0, 1, 30, 40]), np.array([5, 1, 0, 10, 3])
    for claim in ("below", "above"):
        found = stats.share(hits, 100, 0.15, unresolved=missing, claim=claim)
        for _ in range(50):
            filled = stats.share(hits + rng.binomial(missing, rng.random()), 100, 0.15, claim=claim)
            assert found.low <= filled.low + 1e-12
            assert filled.high <= found.high + 1e-12
    assert stats.share(hits, 100, 0.15).low > stats.share(hits, 100, 0.15, unresolved=40).low


def test_records_and_refusals():
    found = stats.share([0] * 600 + [100] * 400, 200, 0.1)
    assert (found.low, found.high, found.estimate) == (0.6, 0.6, 0.6)
    assert "people are below the threshold" in str(found)
    assert found.to_dict()["claimed"] == 600
    assert set(found.to_dict()) == {"claimed", "opposite", "people", "estimate", "low", "high", "alpha", "over", "claim"}
    assert tuple(found) == (0.6, 0.6)
    for units in ([0, 1], [0.5, 1, 2], ["a", "b", "c"]):
        with pytest.raises(DesignError, match="whole number per person"):
            stats.true_claims([0.1, 0.2, 0.3], 0.05, units=units)
    with pytest.raises(DesignError, match="truth value per person"):
        stats.share_from_p_values([0.1, 0.2], [0.1, 0.2], known_not=[0, 1])
    with pytest.raises(DesignError, match="one p-value of each claim"):
        stats.share_from_p_values([0.1, 0.2], [0.1])
