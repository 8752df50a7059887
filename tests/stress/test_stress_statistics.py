"""Intervals of the change cover at their level: against known truth, over draws alone and through the public door."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from budge import Design, Execution, Feature, InteractionModel
from budge.stats import Counts, difference_bounds
from budge.stress import ablate
from budge.stress.ablation_result import _ends, mean_gain
from budge.stress.common import claims_at

SIMULATIONS = 10_000
#: At a true error of 0.05, more than this share of 10^4 intervals misses once in 10^4.
MOST_MISSES = 0.0585
DESIGN = Design(target=1, testing=False)
RATES = [(0.0, 0.3), (0.05, 0.02), (0.5, 0.5), (0.9, 1.0), (0.0, 0.001)]


def one_person(before: Counts, after: Counts, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    return _ends(before, after, claims_at(before, DESIGN, alpha), claims_at(after, DESIGN, alpha), alpha)


@pytest.mark.parametrize(("before", "after"), RATES)
@pytest.mark.parametrize("listed", [False, True])
def test_intervals_of_one_person_cover(before: float, after: float, listed: bool) -> None:
    rng = np.random.default_rng(3)
    n = 80
    old = Counts.of(np.full(SIMULATIONS, round(1000 * before)), 1000, law="exact") if listed else Counts.of(rng.binomial(n, before, SIMULATIONS), n)
    new = Counts.of(rng.binomial(n, after, SIMULATIONS), n)
    low, high = one_person(old, new, 0.05)
    assert missed(low, high, after - before) < MOST_MISSES
    if not listed:  # the rectangle of two exact intervals
        bounds = difference_bounds(new.hits[:50], n, old.hits[:50], n, alpha=0.05, method="rectangle")
        assert np.array_equal(np.stack(bounds), np.stack([low[:50], high[:50]]))
    if (before, after) == (0.5, 0.5):  # planted bug: a far larger alpha must not pass this very test
        assert missed(*one_person(old, new, 0.2 if listed else 0.8), 0.0) > MOST_MISSES


def missed(low: np.ndarray, high: np.ndarray, truth: float) -> float:
    return float(((low > truth + 1e-12) | (high < truth - 1e-12)).mean())


def test_unanswered_points_are_counted_against_every_change() -> None:
    """However they are filled in, the interval holds the one of the filled counts."""
    old, new = Counts.of([2, 5], 60, [3, 0]), Counts.of([20, 6], 60, [0, 4])
    low, high = one_person(old, new, 0.05)
    for fill in np.ndindex(4, 5):
        filled = one_person(Counts.of([2 + fill[0], 5], 60), Counts.of([20, 6 + fill[1]], 60), 0.05)
        assert (low <= filled[0] + 1e-12).all()
        assert (high >= filled[1] - 1e-12).all()
    units = np.arange(2)
    ends = mean_gain(old, new, units, 0.05)
    for fill in np.ndindex(4, 5):
        inside = mean_gain(Counts.of([2 + fill[0], 5], 60), Counts.of([20, 6 + fill[1]], 60), units, 0.05)
        assert ends[0] <= inside[0] + 1e-12
        assert inside[1] <= ends[1] + 1e-12
    known = Counts.of([1, 0], 10, [2, 0], law="exact")
    assert mean_gain(known, Counts.of([5, 5], 10, law="exact"), units, 0.05) == pytest.approx((0.35, 0.45))
    assert one_person(known, Counts.of([5, 5], 10, law="exact"), 0.05)[0].tolist() == pytest.approx([0.2, 0.5])


@pytest.mark.parametrize("twins", [False, True])
def test_intervals_of_the_mean_cover(twins: bool) -> None:
    """Fifteen people, five of them listed after the change; ten who stand alike share their draws, and the interval allows for it."""
    rng = np.random.default_rng(5)
    people, n, runs = 15, 40, 1000
    rates = np.round(rng.random((2, people)), 3)
    units = np.array([0] * 10 + list(range(1, 6))) if twins else np.arange(people)
    if twins:
        rates[:, :10] = rates[:, :1]
    truth = (rates[1] - rates[0]).mean()
    seen = rng.binomial(n, np.broadcast_to(rates, (runs, 2, people)))
    if twins:
        seen[:, :, :10] = seen[:, :, :1]
    listed = Counts.of(np.round(1000 * rates[1, 10:]), 1000, law="exact")
    ends, blind = [], []
    for one in seen:
        before, after = Counts.of(one[0], n), Counts.join([Counts.of(one[1, :10], n), listed])
        ends.append(mean_gain(before, after, units, 0.05))
        if twins:
            blind.append(mean_gain(before, after, np.arange(people), 0.05))
    # At a true error of 0.05, more than 0.077 of 1000 intervals miss once in 10^4.
    low, high = np.transpose(ends)
    assert missed(low, high, truth) < 0.077
    if twins:  # an interval that takes twins for strangers fails this very test
        assert missed(*np.transpose(blind), truth) > 0.077
    else:
        assert (high - low).max() < 0.2


def test_the_mean_of_what_is_known_has_no_width() -> None:
    listed = Counts.of([1, 3], 10, law="exact"), Counts.of([5, 3], 10, law="exact")
    assert mean_gain(*listed, np.arange(2), 0.05) == pytest.approx((0.2, 0.2))
    assert all(np.isnan(mean_gain(Counts.blank(0), Counts.blank(0), np.arange(0), 0.05)))


def test_intervals_cover_through_the_public_door() -> None:
    """300 people with known rates before and after, both sets drawn: more than 30 misses would happen once in 10^4 at 0.05."""
    rng = np.random.default_rng(9)
    people = 300
    rate = rng.choice([0.0, 0.1, 0.5, 0.9], people)
    X = pd.DataFrame({"dial": 0.5, "extra": 0.5, "rate": rate, "who": np.arange(people)})
    im = InteractionModel(
        [
            Feature("dial", "real", bounds=(0, 1)),
            Feature("extra", "real", bounds=(0, 1), actionable=False),
            Feature("rate", "fixed"),
            Feature("who", "fixed"),
        ]
    )
    result = ablate(
        lambda t: ((t["dial"] < t["rate"]) | (t["extra"] > 0.8)).astype(int), X, im, target=1, n=150, seed=2, population="all",
        execution=Execution(check=False),
    )
    assert result.relaxations == ("free extra",)
    assert len(result.left_out) == 2
    rows = result.table
    truth = 0.2 * (1 - rate)
    misses = ~((rows["low"] <= truth) & (truth <= rows["high"]))
    assert misses.sum() <= 30
    row = result.ranking.iloc[0]
    assert row["low"] <= truth.mean() <= row["high"]
    assert row["high"] - row["low"] < 0.04


@pytest.mark.heavy
def test_intervals_cover_over_10000_people_through_the_public_door() -> None:
    """The same with 10^4 people, one simulation each."""
    rng = np.random.default_rng(19)
    people = SIMULATIONS
    rate = rng.choice([0.0, 0.1, 0.5, 0.9], people)
    X = pd.DataFrame({"dial": 0.5, "extra": 0.5, "rate": rate, "who": np.arange(people)})
    im = InteractionModel(
        [
            Feature("dial", "real", bounds=(0, 1)),
            Feature("extra", "real", bounds=(0, 1), actionable=False),
            Feature("rate", "fixed"),
            Feature("who", "fixed"),
        ]
    )
    result = ablate(
        lambda t: ((t["dial"] < t["rate"]) | (t["extra"] > 0.8)).astype(int), X, im, target=1, n=100, seed=3, population="all",
        execution=Execution(check=False),
    )
    truth = 0.2 * (1 - rate)
    misses = ~((result.table["low"] <= truth) & (truth <= result.table["high"]))
    assert misses.mean() < MOST_MISSES
    assert result.ranking["low"][0] <= truth.mean() <= result.ranking["high"][0]
