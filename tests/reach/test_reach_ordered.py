"""Chains of ordered numbers, real and whole: exact in any number of dimensions, by their law, their volumes and brute force."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from reach_kit import ks
from scipy import stats

from budge import Feature, InteractionModel
from budge.constraints import Constraint, LinearConstraint, Rule
from budge.reach.accept import fixed_words
from budge.reach.large import chained
from budge.reach.ordered import Ordered
from budge.reach.starts import Starts
from budge.reach.streams import Stream, keys_of
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


# -- whole numbers -----------------------------------------------------------------------------------------------------------


def whole_chain(seed: int) -> tuple[InteractionModel, dict[str, int]]:
    """A random short chain of whole numbers: shifts, strict rows, other signs and factors, rows that follow from others, bounds by rules, a still feature."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 6))
    names = [f"k{i}" for i in rng.permutation(d)]
    low = rng.integers(-3, 2, d)
    features = [Feature(n, "integer", bounds=(int(a), int(a + w))) for n, a, w in zip(names, low, rng.integers(1, 7, d))]
    rules: list[Constraint] = []
    for a, b in pairwise(names):
        c = int(rng.integers(-1, 3))
        rules.append(
            [Rule(f"{a} <= {b} + {c}"), Rule(f"{a} < {b} + {c}"), Rule(f"0.5 * {b} >= 0.5 * {a} - {c / 3}"), LinearConstraint({a: -2, b: 2}, ">=", -2 * c - 1)][
                int(rng.integers(4))
            ]
        )
    if d > 2 and rng.random() < 0.5:
        rules.append(Rule(f"{names[0]} <= {names[-1]} + 99"))
    if rng.random() < 0.5:
        rules.append(Rule(f"{names[0]} >= -2 and {names[-1]} <= 5"))
    if rng.random() < 0.4:
        still = int(rng.integers(d))
        features[still] = features[still].but(actionable=False)
    return InteractionModel(features, rules), {f.name: int(f.range[0]) for f in features}


@pytest.mark.parametrize("seed", range(40))
def test_chains_of_whole_numbers_have_the_points_and_the_law_of_brute_force(seed: int) -> None:
    """One chi-square test per seed: a false alarm of 40 in 1,000,000 for all."""
    im, x = whole_chain(seed)
    part, names = im.parts[0], [f.name for f in im.features]
    if len(im.parts) > 1:
        pytest.skip("the still feature stands apart")
    start = np.array([x[name] for name in part.names])
    spans = [np.arange(*(f.moves(x[f.name]) + np.array([0, 1]))) for f in part.features]
    every = np.stack([axis.ravel() for axis in np.meshgrid(*spans, indexing="ij")], axis=1)
    good = every[part.feasible({n: float(x[n]) for n in names}, dict(zip(part.names, every.T)))]
    made = chained(Starts.of(part, {name: np.array([float(x[name])]) for name in part.names}))
    if made is None:  # nothing moves, or the still feature cuts the chain in two
        assert any(not f.actionable for f in part.features)
        return
    assert made.size == len(good)
    assert bool(made.empty[0]) == (len(good) == 0)
    if not len(good):
        return
    listed, _ = made.listed(0)
    assert {tuple(row) for row in listed + 0.0} == {tuple(row) for row in good + 0.0}
    assert len(listed) == len(good)
    assert bool(made.only_stays[0]) == (len(good) == 1 and not good.any())
    stream = Stream(keys_of(part.names, start[None].astype(float), seed))
    drawn = made.drawn(stream, 0, 40 * len(good))
    places = {tuple(row): i for i, row in enumerate((good + 0.0).tolist())}
    counts = np.bincount([places[tuple(row)] for row in (drawn + 0.0).tolist()], minlength=len(good))
    assert len(good) == 1 or stats.chisquare(counts).pvalue > 1e-6
    np.testing.assert_array_equal(made.drawn(stream, 7, 5), drawn[7:12])


def test_wide_whole_numbers_in_a_chain_are_drawn_exactly() -> None:
    """Sums of 12 of 0..10^9, uniform up to rounding: each is Beta(j, 13 - j); a false alarm of 12 in 100,000."""
    names = [f"k{i:02d}" for i in range(12)]
    im = InteractionModel([Feature(n, "integer", bounds=(0, 10**9)) for n in names], [Rule(f"{a} <= {b}") for a, b in pairwise(names)])
    with within(2):
        sample = im.sample(dict.fromkeys(names, 5), 2000, seed=3)
    assert sample.exact
    assert sample.parts[0].method == "count"
    assert sample.parts[0].configurations == math.comb(10**9 + 12, 12)
    for j, name in enumerate(names, 1):
        assert ks(sample.points[name].to_numpy() / 1e9, stats.beta(j, 13 - j).cdf) > 1e-5
    np.testing.assert_array_equal(im.sample(dict.fromkeys(names, 5), 100, seed=3).values, sample.values[:100])


def test_ties_of_whole_numbers_are_as_likely_as_counting_says() -> None:
    """All of 20 numbers of 0..1 in order: 21 points; the number of ones is uniform. False alarm: 1 in 100,000."""
    names = [f"k{i:02d}" for i in range(20)]
    chain = Ordered(np.zeros((1, 20)), np.ones((1, 20)), np.ones((1, 20)), np.zeros((1, 20)), np.arange(20), whole=True)
    assert chain.size == len(names) + 1 == len(chain.listed())
    drawn = chain.draw(np.zeros(4200, dtype=np.int64), np.arange(4200), fixed_words("ties"))
    assert stats.chisquare(np.bincount(drawn.sum(axis=1).astype(int), minlength=21)).pvalue > 1e-5


def test_a_chain_through_a_real_is_drawn_and_hundreds_of_wide_numbers_take_no_time() -> None:
    names = [f"k{i:03d}" for i in range(300)]
    im = InteractionModel([Feature(n, "integer", bounds=(0, 100_000)) for n in names], [Rule(f"{a} <= {b}") for a, b in pairwise(names)])
    with within(2):
        sample = im.sample(dict.fromkeys(names, 0), 100, seed=1)
    assert sample.exact
    assert (np.diff(sample.points[names].to_numpy(), axis=1) >= 0).all()
    mixed = InteractionModel(
        [Feature("a", "integer", bounds=(0, 10**6)), Feature("r", "real", bounds=(0, 10**6)), *(Feature(n, "integer", bounds=(0, 10**6)) for n in "bc")],
        [Rule("a <= r"), Rule("r <= b"), Rule("b <= c")],
    )
    drawn = mixed.sample({"a": 0, "r": 0, "b": 0, "c": 0}, 2000, seed=1)
    assert drawn.exact
    ordered = drawn.points[["a", "r", "b", "c"]].to_numpy()
    assert (np.diff(ordered, axis=1) >= 0).all()
    for j, name in enumerate("abc", 1):  # equal configurations of the whole numbers, then the real between its neighbours
        assert ks(drawn.points[name].to_numpy() / 1e6, stats.beta(j, 4 - j).cdf) > 1e-5
    between = (ordered[:, 1] - ordered[:, 0]) / np.maximum(ordered[:, 2] - ordered[:, 0], 1e-9)
    assert ks(between, stats.uniform(0, 1).cdf) > 1e-5
