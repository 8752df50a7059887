"""Sequential tests: alpha kept under continuous looking, exactly and in 10^5 runs; calls saved at the same alpha and power."""

import numpy as np
import pytest
from stat_checks import allowed, caught

from budge import plan, stats
from budge.errors import DesignError
from budge.stats.sequential import StoppingRule

RUNS = 100_000

#: A realistic mix: most people cannot move at all or nearly always, a few lie between.
MIX = np.repeat([0.0, 0.002, 0.01, 0.03, 0.05, 0.1, 0.2, 0.5, 0.9, 1.0], [40, 8, 5, 3, 2, 1, 3, 3, 10, 25])


def naive_rule(n=400, looks=20):
    """The bug that sequential tests exist for: a fixed-n test, looked at again and again."""
    accept = np.full(n + 1, -1)
    for t in np.linspace(n / looks, n, looks).astype(int):
        accept[t] = plan.critical_hits(int(t), 0.1)
    return StoppingRule("naive", "below", 0.1, 0.05, n, n, accept, np.full(n + 1, n + 1))


def rules():
    return {
        "sprt": plan.sprt_rule(threshold=0.1, margin=0.05),
        "sprt, high": plan.sprt_rule(threshold=0.4, rate=0.277),
        "sprt, above": plan.sprt_rule(threshold=0.8, rate=0.9, claim="above"),
        "anytime": plan.anytime_rule(400, threshold=0.1),
        "anytime, above": plan.anytime_rule(300, threshold=0.6, claim="above"),
        "anytime, 1%": plan.anytime_rule(600, threshold=0.05, alpha=0.01),
        "curtailed": plan.curtailed_rule(321, threshold=0.1),
    }


def check_exact_error(rule):
    """The exact probability of a false claim, at the threshold and past it."""
    past = np.linspace(rule.threshold, 1 if rule.claim == "below" else 0, 6)[:-1]
    for rate in past.tolist():
        assert rule.at(rate).claimed <= rule.alpha + 1e-12, (rule.kind, rate)


@pytest.mark.parametrize("name", rules())
def test_error_is_at_most_alpha_exactly(name):
    check_exact_error(rules()[name])


def test_looking_twenty_times_at_a_fixed_test_is_caught():
    assert 0.14 < naive_rule().at(0.1).claimed < 0.2
    caught(check_exact_error, naive_rule())
    generous = plan.sprt_rule(threshold=0.1, margin=0.05)
    moved = StoppingRule("SPRT", "below", 0.1, 0.05, generous.max_n, generous.fixed_n, generous.accept + 1, generous.give_up)
    caught(check_exact_error, moved)  # a bound off by one


def simulate(rule, rate, runs, seed):
    rng = np.random.default_rng(seed)
    claimed = calls = 0
    for _ in range(0, runs, 10_000):
        found = rule.run(rng.random((10_000, rule.max_n), dtype=np.float32) < rate)
        claimed += (found.verdict == rule.claim).sum()
        calls += found.calls.sum()
    return claimed / runs, calls / runs


def check_simulated_error(rule, runs=RUNS, seed=11):
    """False alarm of this check: below 3e-7 for a rule of true size alpha."""
    claimed, _ = simulate(rule, rule.threshold, runs, seed)
    assert claimed <= allowed(rule.alpha, runs)


def test_a_hundred_thousand_runs_with_continuous_looking():
    rule = plan.anytime_rule(400, threshold=0.1)
    check_simulated_error(rule)
    caught(check_simulated_error, naive_rule(), runs=20_000)


def test_simulation_agrees_with_the_exact_calculation():
    for name, rate in (("sprt", 0.07), ("anytime, above", 0.7), ("curtailed", 0.05)):
        rule = rules()[name]
        claimed, calls = simulate(rule, rate, 20_000, seed=5)
        exact = rule.at(rate)
        assert claimed == pytest.approx(exact.claimed, abs=5 * np.sqrt(exact.claimed * (1 - exact.claimed) / 20_000) + 1e-9)
        assert calls == pytest.approx(exact.expected_calls, rel=0.04)


def check_saves_two_thirds(rule):
    """At the same alpha and power as the fixed design, at most a third of its calls over the mix."""
    fixed = plan.samples_for_power(threshold=0.1, margin=0.05)
    assert rule.at(0.1).claimed <= 0.05
    assert rule.at(0.05).claimed >= 0.95
    assert plan.power(fixed.stable, 0.1, 0.05) >= 0.95
    calls = plan.expected_calls(MIX, fixed.stable, rule=rule)
    assert calls.sequential <= calls.fixed / 3


def test_sequential_verify_needs_at_most_a_third_of_the_calls():
    rule = plan.sprt_rule(threshold=0.1, margin=0.05, alpha=0.05, power=0.95)
    assert rule.fixed_n == 298
    check_saves_two_thirds(rule)
    caught(check_saves_two_thirds, plan.curtailed_rule(321, threshold=0.1))  # valid, but saves too little
    caught(check_saves_two_thirds, plan.anytime_rule(60, threshold=0.1))  # cheap, but without the power
    rng = np.random.default_rng(3)
    found = rule.run(rng.random((1000, rule.max_n)) < rng.choice(MIX, 1000)[:, None])
    assert found.calls.mean() <= rule.fixed_n / 3


def test_power_of_the_sprt_is_reached_within_its_cap():
    for name in ("sprt", "sprt, high", "sprt, above"):
        rule = rules()[name]
        goal = rule.threshold - rule.margin if rule.claim == "below" else rule.threshold + rule.margin
        assert rule.at(goal).claimed >= rule.power


def test_curtailed_verdicts_are_those_of_the_full_test():
    rng = np.random.default_rng(8)
    rule = plan.curtailed_rule(60, threshold=0.2)
    draws = rng.random((4000, 60)) < rng.random((4000, 1)) * 0.3
    found = rule.run(draws)
    full = stats.test(draws.sum(axis=1), 60, 0.2)
    assert (found.verdict == full.verdict).all()
    assert found.calls.mean() < 55
    for t in range(1, 61):
        assert rule.decide(0, t) == ("below" if t >= 60 - plan.critical_hits(60, 0.2) else "continue")


def check_sequence_covers(bound, rate=0.2, n=200, runs=20_000):
    """All upper bounds along a run hold together; false alarm below 3e-7."""
    rng = np.random.default_rng(21)
    table = np.concatenate([[np.ones(n + 1)], [np.append(bound(np.arange(t + 1), t), np.ones(n - t)) for t in range(1, n + 1)]])
    hits = np.cumsum(rng.random((runs, n)) < rate, axis=1)
    missed = (table[np.arange(1, n + 1), hits] < rate).any(axis=1).mean()
    assert missed <= allowed(0.05, runs)


def test_confidence_sequences_hold_at_all_times():
    check_sequence_covers(lambda k, t: stats.anytime_bound(k, np.full(k.shape, t)))
    caught(check_sequence_covers, lambda k, t: stats.upper_bound(k, np.full(k.shape, t)))
    low, high = stats.anytime_interval(np.arange(51), 50)
    fixed = stats.interval(np.arange(51), 50)
    assert (low <= fixed.low + 1e-12).all()  # the price of looking
    assert (high >= fixed.high - 1e-12).all()
    assert stats.anytime_interval(0, 50).low == 0
    assert stats.anytime_interval(50, 50).high == 1


def test_anytime_bound_inverts_the_anytime_p_value():
    for k, n in ((0, 40), (3, 80), (40, 100), (99, 100)):
        bound = stats.anytime_bound(k, n)
        assert stats.anytime_p_value(k, n, bound) == pytest.approx(0.05, rel=1e-6)
        grid = stats.anytime_p_value(k, n, np.linspace(0.001, 0.999, 500))
        assert (np.diff(grid) <= 1e-12).all()  # more evidence against larger thresholds
        low = stats.anytime_bound(k, n, claim="above")
        assert k == 0 or stats.anytime_p_value(k, n, low, "above") == pytest.approx(0.05, rel=1e-6)


def test_rules_refuse_what_they_cannot_judge():
    rule = plan.curtailed_rule(29, threshold=0.1)
    with pytest.raises(DesignError, match="more draws than the rule allows"):
        rule.decide(0, 30)
    with pytest.raises(DesignError, match="end before"):
        rule.run([[0, 0, 0]])
    with pytest.raises(DesignError, match="0 and 1"):
        rule.run([[0, 2, 0]])
    with pytest.raises(DesignError, match="needs at least 29"):
        plan.curtailed_rule(28, threshold=0.1)
    with pytest.raises(DesignError, match="needs at least 29"):
        plan.sprt_rule(threshold=0.1, margin=0.05, max_n=20)
    assert plan.sprt_rule(threshold=0.1, margin=0.05, max_n=100).max_n == 100
    assert rule.to_dict()["accept"] == rule.accept.tolist()
    assert rule.run([0] * 29) == ("below", 29, 0)


@pytest.mark.heavy
def test_a_hundred_thousand_runs_of_every_rule():
    for rule in rules().values():
        check_simulated_error(rule, seed=77)
