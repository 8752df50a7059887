"""Chains of ordered reals: exact in any number of dimensions, by their law, their volumes and brute force."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from reach_kit import ks
from scipy import stats

from budge import Feature, InteractionModel
from budge.constraints import LinearConstraint, Rule
from budge.reach.accept import fixed_words
from budge.reach.ordered import Ordered
from cpu import within


def test_ordered_reals_have_the_law_of_order_statistics() -> None:
    """The j-th of 12 has the law Beta(j, 13 - j): 12 tests, a false alarm of 12 in 100,000."""
    names = [f"r{i:02d}" for i in range(12)]
    im = InteractionModel([Feature(n, "real", bounds=(0, 1)) for n in names], [Rule(f"{a} <= {b}") for a, b in pairwise(names)])
    sample = im.sample(dict.fromkeys(names, 0.5), 2000, seed=3)
    assert sample.exact
    for j, name in enumerate(names, 1):
        assert ks(sample.points[name].to_numpy(), stats.beta(j, 13 - j).cdf) > 1e-5


@pytest.mark.parametrize("seed", range(12))
def test_chains_with_bounds_factors_and_shifts_agree_with_rejection(seed: int) -> None:
    """Volume within 5 standard errors; two-sample tests of every coordinate, a false alarm of some 5 in 100,000 per seed."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 6))
    low = rng.choice([-0.5, 0.0, 0.1, 0.3], d)
    high = low + rng.choice([0.5, 1.0, 1.5], d)
    scale, shift, order, up = rng.choice([1.0, 1.0, 2.0, 0.5, -1.0], d), rng.choice([0.0, 0.2], d), rng.permutation(d), rng.choice([1.0, -1.0])
    slopes, limits = np.zeros((d - 1, d)), np.zeros(d - 1)
    for k, (i, j) in enumerate(pairwise(order.tolist())):
        slopes[k, i], slopes[k, j], limits[k] = up * scale[k], -up * scale[k + 1], up * (shift[k + 1] - shift[k])
    chain = Ordered.of(slopes[None], limits[None], low[None], high[None])
    assert chain is not None
    box = low + (high - low) * rng.random((100_000, d))
    good = (box @ slopes.T <= limits).all(axis=1)
    if chain.dimensions[0] < d:
        assert not good.any()
        return
    share, volume = good.mean(), math.exp(chain.log_volumes[0]) / np.prod(high - low)
    assert abs(share - volume) < 5 * math.sqrt(volume / len(box))
    drawn = chain.draw(np.zeros(5000, dtype=np.int64), np.arange(5000), fixed_words("ordered", seed))
    assert (drawn @ slopes.T <= limits + 1e-9).all()
    assert ((drawn >= low - 1e-9) & (drawn <= high + 1e-9)).all()
    if good.sum() > 200:
        assert min(stats.ks_2samp(a, b).pvalue for a, b in zip(drawn.T, box[good].T)) > 1e-5


def test_what_cannot_move_in_a_chain_is_a_point() -> None:
    features = [Feature(name, "real", bounds=(1, 2) if name == "b" else (0, 1)) for name in "abcd"]
    rules = [Rule("a <= b"), Rule("b <= c"), LinearConstraint({"c": 1, "d": 1}, "<=", 1.5)]
    sample = InteractionModel(features, rules).sample({"a": 1, "b": 1, "c": 1, "d": 0.5}, 200, seed=1)
    assert (sample.points[["b", "c"]].to_numpy() == 1).all()
    assert ks(sample.points["a"].to_numpy(), stats.uniform(0, 1).cdf) > 1e-5
    assert ks(sample.points["d"].to_numpy(), stats.uniform(0, 0.5).cdf) > 1e-5
    empty = InteractionModel(features, [*rules[:2], Rule("c < b")])
    assert empty.parts[0].feasible({"a": 1.0, "b": 1.0, "c": 1.0, "d": 0.5}, {n: np.zeros(1) for n in "abcd"}).tolist() == [False]


def test_a_long_chain_is_drawn_at_once() -> None:
    names = [f"r{i:03d}" for i in range(400)]
    im = InteractionModel([Feature(n, "real", bounds=(0, 1)) for n in names], [LinearConstraint({a: 1, b: -1}, "<=", 0) for a, b in pairwise(names)])
    with within(20):
        sample = im.sample(dict.fromkeys(names, 0.5), 10, seed=1)
    assert sample.exact
    assert (np.diff(sample.points[names].to_numpy(), axis=1) >= 0).all()
