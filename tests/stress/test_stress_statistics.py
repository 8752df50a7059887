"""Intervals of the change cover at their level: against known truth, over draws alone and through the public door."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from budge import Feature, InteractionModel
from budge.stress import ablate
from budge.stress.ablation_result import mean_gain, side
from budge.stress.tally import Tally

SIMULATIONS = 10_000
#: At a true error of 0.05, more than this share of 10^4 intervals misses once in 10^4.
MOST_MISSES = 0.0585


def tallied(hits: np.ndarray, n: int, exact: bool) -> Tally:
    found = Tally.blank(1, len(hits))
    found.method[0] = "exact" if exact else "sample"
    found.n[0], found.hits[0] = n, hits
    return found


@pytest.mark.parametrize(("before", "after"), [(0.0, 0.3), (0.05, 0.02), (0.5, 0.5), (0.9, 1.0), (0.0, 0.001)])
@pytest.mark.parametrize("listed", [False, True])
def test_intervals_of_one_person_cover(before: float, after: float, listed: bool) -> None:
    rng = np.random.default_rng(3)
    n, half = 80, float(-np.expm1(np.log1p(-0.05) / 2))
    level = 0.05 if listed else half
    after_side = side(tallied(rng.binomial(n, after, SIMULATIONS), n, False), 0, level)
    if listed:
        low0 = high0 = np.full(SIMULATIONS, before)
    else:
        _, low0, high0 = side(tallied(rng.binomial(n, before, SIMULATIONS), n, False), 0, level)
    delta = after - before
    misses = (after_side[1] - high0 > delta + 1e-12) | (after_side[2] - low0 < delta - 1e-12)
    assert misses.mean() < MOST_MISSES


@pytest.mark.parametrize("twins", [False, True])
def test_intervals_of_the_mean_cover(twins: bool) -> None:
    """Fifteen people, some listed, some drawn; twins share their draws and the interval knows it."""
    rng = np.random.default_rng(5)
    people, n = 15, 40
    rates = rng.random((2, people))
    drawn = np.array([[n] * people, [n] * 10 + [0] * 5])
    keys = np.array([0] * 10 + list(range(1, 6))) if twins else np.arange(people)
    if twins:
        rates[:, :10] = rates[:, :1]
    truth = (rates[1] - rates[0]).mean()
    zero = np.zeros(people)
    # The width depends on the design alone, so that one call gives it for all simulations.
    low, high = mean_gain(zero, zero, zero, drawn, keys, 0.05)
    _, blind = mean_gain(zero, zero, zero, drawn, np.arange(people), 0.05)
    assert low == -high
    seen = rng.binomial(n, np.broadcast_to(rates, (SIMULATIONS, 2, people))) / n
    if twins:
        seen[:, :, :10] = seen[:, :, :1]
    seen = np.where(drawn > 0, seen, rates)
    off = np.abs((seen[:, 1] - seen[:, 0]).mean(axis=1) - truth)
    assert (off > high).mean() < MOST_MISSES
    if twins:  # an interval that takes twins for strangers would fail this very test
        assert (off > blind).mean() > MOST_MISSES


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
        lambda t: ((t["dial"] < t["rate"]) | (t["extra"] > 0.8)).astype(int), X, im, target=1, n=150, seed=2, check=False
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
        lambda t: ((t["dial"] < t["rate"]) | (t["extra"] > 0.8)).astype(int), X, im, target=1, n=100, seed=3, check=False
    )
    truth = 0.2 * (1 - rate)
    misses = ~((result.table["low"] <= truth) & (truth <= result.table["high"]))
    assert misses.mean() < MOST_MISSES
    assert result.ranking["low"][0] <= truth.mean() <= result.ranking["high"][0]
