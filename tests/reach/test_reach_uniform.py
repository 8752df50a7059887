"""Draws against the full enumeration: chi-square on every model, p-values uniform over all models, a planted bias caught."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from reach_kit import Case, FloatArray, law_p_value, random_cases, uniform_p_values

from budge import Feature, InteractionModel
from budge.constraints import DirectionalLinkage, LinearConstraint, OneHot, Rule
from budge.distributions import Distribution
from budge.errors import DrawError
from budge.reach import set_size, starts

Bias = Callable[[FloatArray, FloatArray, np.random.Generator], FloatArray]


def p_values(cases: Sequence[Case], draws: int = 4000, bias: Bias | None = None, most: int = 400) -> list[float]:
    """One p-value for each model with at least two points; a point outside the action set fails at once."""
    found = []
    for i, (im, x) in enumerate(cases):
        if not 2 <= (set_size(im, x) or 0) <= most:
            continue
        try:
            every = im.enumerate(x, on_invalid="keep")
        except DrawError:  # weights that leave nothing
            continue
        sample = im.sample(x, max(draws, 60 * every.size), seed=i, on_invalid="keep")
        start = np.array(list(im.start(x).values()))
        assert im.feasible(x, np.nan_to_num(sample.values[:2000] - start)).all()
        drawn = sample.values if bias is None else bias(every.values, sample.values, np.random.default_rng(i))
        p = law_p_value(every.values, drawn, every.weights)
        assert p > 0, "a draw that is no reachable point"
        if p < 1.0:  # 1: a law with one point
            found.append(p)
    return found


def one_action_20_percent_too_often(points: FloatArray, drawn: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Replace draws by the first point so often that it comes 1.2 times as often as it should."""
    share = 1.0 / len(points)
    swap = rng.random(len(drawn)) < 0.2 * share / (1 - share)
    return np.where(swap[:, None], points[0], drawn)


def test_draws_are_uniform_on_300_random_models() -> None:
    """False alarm: 1 in 10,000 for the p-values together, and 300 in 10 million for the smallest one."""
    found = p_values(random_cases(300, 11))
    assert len(found) > 120
    assert uniform_p_values(found) > 1e-4
    assert min(found) > 1e-7


@pytest.mark.heavy
def test_draws_are_uniform_on_4000_random_models() -> None:
    """At least 2,000 of them have two points or more. False alarm: 1 in 10,000, and 4 in 10,000 for the smallest."""
    found = p_values(random_cases(4000, 12, max_features=6))
    assert len(found) >= 2000
    assert uniform_p_values(found) > 1e-4
    assert min(found) > 1e-7


def test_a_planted_bias_of_20_percent_on_one_action_is_caught() -> None:
    """The same check on the same models: without the bias it passes, with it the p-values pile up at 0."""
    plain = [case for case in random_cases(300, 11) if all(f.distribution is None for f in case[0].features)]
    small = plain[:120]
    fair = p_values(small, draws=10_000, most=12)
    biased = p_values(small, draws=10_000, bias=one_action_20_percent_too_often, most=12)
    assert len(fair) == len(biased) > 20
    assert uniform_p_values(fair) > 1e-4
    assert uniform_p_values(biased) < 1e-6


def test_counted_parts_are_as_uniform_as_listed_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """False alarm: 1 in 10,000."""
    monkeypatch.setattr(starts, "WIDE", 0)
    fresh = [(InteractionModel(im.features, im.constraints), x) for im, x in random_cases(300, 11)[:150]]
    found = p_values(fresh)
    assert len(found) > 50
    assert uniform_p_values(found) > 1e-4


def test_a_long_staircase_is_uniform_over_pairs() -> None:
    """Urls at most one a tweet, 10^6 tweets: tweets have the triangular law. False alarm: 2 in 10,000."""
    from reach_kit import ks

    im = InteractionModel(
        [Feature("tweets", "integer", bounds=(0, 10**6), direction="increase"), Feature("urls", "integer", bounds=(0, 9), actionable=False)],
        [DirectionalLinkage("tweets", {"urls": 1}, "<=")],
    )
    sample = im.sample({"tweets": 10, "urls": 3}, 20_000, seed=5)
    assert sample.parts[0].method == "count"
    up, more = sample.values[:, 0] - 10, sample.values[:, 1] - 3
    assert ((more >= 0) & (more <= up)).all()
    top = 10**6 - 10
    jitter = np.random.default_rng(0).random((2, len(up)))
    assert ks(((up + jitter[0]) / (top + 1)) ** 2, "uniform") > 1e-4
    assert ks((more + jitter[1]) / (up + 1), "uniform") > 1e-4


@pytest.mark.parametrize(
    ("law", "shares"),
    [
        ("log", 1 / np.arange(1, 7)),
        ({"empirical": [1, 1, 1, 4]}, [3, 0, 0, 1, 0, 0]),
        ({"weights": {1: 1, 2: 0, 3: 2, 6: 5}}, [1, 0, 2, 0, 0, 5]),
    ],
)
def test_a_distribution_on_a_whole_number_is_drawn_as_it_says(law: object, shares: list[float]) -> None:
    """False alarm: 1 in 10,000 each. Values without weight are never reached: a set does not list them."""
    im = InteractionModel([Feature("n", "integer", bounds=(1, 6), distribution=Distribution.from_spec(law))])
    every = im.enumerate({"n": 2})
    assert sorted(every.points["n"]) == [n for n, share in zip(range(1, 7), shares) if share > 0]
    weights = np.array(shares)[every.points["n"].to_numpy() - 1]
    np.testing.assert_allclose(every.weights, weights / weights.sum())
    assert law_p_value(every.values, im.sample({"n": 2}, 20_000, seed=3).values, every.weights) > 1e-4


def test_weights_go_with_counted_coordinates() -> None:
    """A weighted flag beside a counted number: the number is uniform, the flag is not. False alarm: 2 in 10,000."""
    from reach_kit import ks

    im = InteractionModel(
        [
            Feature("flag", "binary", distribution=Distribution.from_spec({"weights": {0: 1, 1: 3}})),
            Feature("n", "integer", bounds=(0, 9999)),
        ],
        [Rule("n >= 5000 or flag == 0")],
    )
    sample = im.sample({"flag": 0, "n": 0}, 20_000, seed=8)
    assert sample.parts[0].method == "count"
    flag, n = sample.values.T
    share = 3 * 5000 / (3 * 5000 + 10_000)
    assert abs((flag.mean() - share) / np.sqrt(share * (1 - share) / 20_000)) < 3.9
    jitter = np.random.default_rng(0).random(len(n))
    assert ks((n + jitter)[flag == 1], "uniform", args=(5000, 5000)) > 1e-4
    assert ks((n + jitter)[flag == 0], "uniform", args=(0, 10_000)) > 1e-4


def test_a_part_too_large_to_list_is_drawn_uniformly_by_proposals(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same part, listed and drawn by proposals, weights and linkages included. False alarm: 2 in 10,000."""
    from budge.reach import core, prepare

    features = [
        Feature("a", "integer", bounds=(0, 3)),
        Feature("b", "integer", bounds=(0, 3), distribution=Distribution.from_spec({"weights": {0: 1, 1: 2, 2: 0, 3: 1}})),
        *(Feature(f"d{i}", "binary") for i in range(3)),
        Feature("t", "integer", bounds=(0, 5), actionable=False),
    ]
    rules = [
        OneHot(("d0", "d1", "d2")),
        LinearConstraint({"a": 1, "b": 1, "d0": 1}, "<=", 4),
        DirectionalLinkage("a", {"t": 1}, "<="),
    ]
    x = {"a": 1, "b": 1, "d0": 1, "d1": 0, "d2": 0, "t": 2}
    every = InteractionModel(features, rules).enumerate(x)
    monkeypatch.setattr(prepare, "build_core", lambda *_, **__: (_ for _ in ()).throw(core.TooManyError()))
    monkeypatch.setattr(prepare, "counted", lambda *_: None)
    sample = InteractionModel(features, rules).sample(x, 30_000, seed=4)
    assert sample.parts[0].method == "rejection"
    assert 0 < sample.parts[0].acceptance < 1
    assert law_p_value(every.values, sample.values, every.weights) > 1e-4


def test_a_sample_is_never_de_duplicated_and_a_set_has_no_repeats() -> None:
    im = InteractionModel([Feature("a", "binary")])
    assert im.sample({"a": 0}, 100, seed=1).n == 100
    assert len(im.sample({"a": 0}, 100, seed=1).points) == 100
    assert im.enumerate({"a": 0}).size == 2
    assert type(im.sample({"a": 0}, 1)).__name__ == "ReachableSample"
    assert type(im.enumerate({"a": 0})).__name__ == "ReachableSet"
