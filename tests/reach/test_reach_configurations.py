"""Configurations beside reals: which of them have a point, how many there are exactly, and what weighs them.

A single check has a false alarm of 1 in 100,000 (``ALPHA``) for a fixed seed; there are fewer than 40 of them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from reach_kit import FloatArray, flat, ks
from scipy import stats

from budge import Feature, InteractionModel
from budge.constraints import DirectionalLinkage, IfThen, LinearConstraint, Predicate, Rule
from budge.distributions import Distribution
from budge.errors import DrawError, EmptyError
from budge.reach import ReachableSample, set_size, viable
from budge.reach.prepare import prepare
from cpu import within

ALPHA = 1e-5


def real(name: str, low: float = 0.0, high: float = 1.0, **more: Any) -> Feature:
    return Feature(name, "real", bounds=(low, high), **more)


def whole(name: str, low: int, high: int, **more: Any) -> Feature:
    return Feature(name, "integer", bounds=(low, high), **more)


def sampled(im: InteractionModel, x: dict[str, Any], n: int = 2000, seed: int = 1) -> tuple[ReachableSample, dict[str, FloatArray]]:
    sample = im.sample(x, n, seed=seed, on_invalid="keep")
    start = np.array(list(im.start(x).values()))
    assert im.feasible(x, sample.values - start).all()
    return sample, dict(zip((f.name for f in im.features), sample.values.T))


def evenly(values: FloatArray, among: list[float]) -> float:
    seen = [int((values == v).sum()) for v in among]
    assert sum(seen) == len(values)
    return float(stats.chisquare(seen).pvalue)


# -- impossible configurations ----------------------------------------------------------------------------------------------


def test_an_impossible_configuration_under_a_clipped_target_is_known_to_be_so() -> None:
    """t stops at 5, so that t + 2k >= 8 needs k = 2 or 3."""
    im = InteractionModel(
        [whole("k", 0, 3), real("s", 0, 10), real("t", 0, 5, actionable=False)],
        [DirectionalLinkage("s", {"t": 1}, on_exceed="clip"), LinearConstraint({"t": 1, "k": 2}, ">=", 8)],
    )
    sample, got = sampled(im, {"k": 3, "s": 3.0, "t": 2.0})
    assert sample.exact
    assert sample.parts[0].configurations == 2
    assert evenly(got["k"], [2, 3]) > ALPHA


def test_impossible_configurations_among_a_thousand_of_a_curved_rule_are_known_to_be_so() -> None:
    """r * s >= k / 500 needs k <= 500; the last of these leaves a millionth of the box."""
    im = InteractionModel([whole("k", 0, 999), real("r"), real("s")], [Rule("r * s >= k / 500")])
    with within(20):
        sample, got = sampled(im, {"k": 0, "r": 0.5, "s": 0.5}, 10_000)
    assert sample.exact
    assert sample.parts[0].configurations == 501
    assert got["k"].max() >= 495
    assert ks((got["k"] + np.random.default_rng(0).random(10_000)) / 501, "uniform") > ALPHA


def test_an_impossible_configuration_under_a_coupled_polytope_is_known_to_be_so() -> None:
    """r + s <= 1 leaves r * s at most 1/4: neither the rule nor the row says so by itself."""
    im = InteractionModel([Feature("k", "binary"), real("r"), real("s")], [Rule("r + s <= 1"), Rule("r * s >= 0.3 * k")])
    sample, got = sampled(im, {"k": 0, "r": 0.5, "s": 0.5})
    assert sample.exact
    assert sample.parts[0].configurations == 1
    assert not got["k"].any()
    assert ks(1 - (1 - got["r"]) ** 2, "uniform") > ALPHA


def below_two(v: Any) -> Any:
    return (v["r"] >= 0) & (v["k"] < 2)


def test_what_a_predicate_never_passes_is_dropped_within_a_budget_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viable, "MOST", 4096)
    im = InteractionModel([whole("k", 0, 3), real("r")], [Predicate(("k", "r"), below_two)])
    sample, got = sampled(im, {"k": 0, "r": 0.5})
    assert evenly(got["k"], [0, 1]) > ALPHA
    assert ks(got["r"], "uniform") > ALPHA
    part = sample.parts[0]
    assert not part.exact
    assert not sample.exact
    assert "2 configurations dropped: no point in 4,096 proposals each" in str(part)
    assert "approximate in some part" in str(sample)
    assert "MCMC" not in str(sample) + str(part)


def test_what_is_dropped_depends_on_the_model_and_the_person_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A predicate that one proposal in 3,000 passes, and budgets about as large: the same configurations whatever is drawn."""
    monkeypatch.setattr(viable, "MOST", 2048)
    monkeypatch.setattr(viable, "FEWEST", 2048)
    features = [whole("k", 0, 9), real("r")]
    kept = set()
    for n, seed in ((1, 1), (1, 2), (300, 3)):
        im = InteractionModel(features, [Predicate(("k", "r"), lambda v: (v["k"] == 0) | (np.abs(v["r"] - v["k"] / 11) < 1 / 6000))])
        im.sample({"k": 0, "r": 0.5}, n, seed=seed)
        prepared = prepare(im.parts[0], {"k": 0.0, "r": 0.5})[0][1]
        kept.add(tuple(np.flatnonzero(prepared.counts).tolist()))
    assert len(kept) == 1
    assert 1 < len(kept.pop()) < 10


def test_volumes_need_no_configuration_dropped() -> None:
    im = InteractionModel([whole("k", 0, 3), real("r")], [Predicate(("k", "r"), below_two)]).with_measure("volume")
    sample, got = sampled(im, {"k": 0, "r": 0.5})
    assert sample.exact
    assert evenly(got["k"], [0, 1]) > ALPHA


def test_where_every_configuration_is_impossible_the_part_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viable, "MOST", 4096)
    features = [whole("k", 0, 3), real("r"), real("s")]
    for constraint in (Rule("r * s >= 2 + k", name="rule"), Predicate(("k", "r", "s"), lambda v: v["r"] + v["s"] + v["k"] > 9, name="rule")):
        with pytest.raises(EmptyError, match="rule"):
            InteractionModel(features, [constraint]).sample({"k": 0, "r": 0.5, "s": 0.5}, 5, on_invalid="keep")


def test_where_staying_is_all_that_is_found_nothing_is_called_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(viable, "MOST", 4096)
    im = InteractionModel([whole("k", 0, 3), real("r")], [Predicate(("k", "r"), lambda v: v["r"] == 0.5)])
    with pytest.raises(DrawError, match="none of its 4 configurations gave a point within 4,096 proposals"):
        im.sample({"k": 0, "r": 0.5}, 5)


# -- counts -----------------------------------------------------------------------------------------------------------------

WIDE = 10**7


@pytest.mark.parametrize("beside", [[], [real("r")]])
def test_several_wide_whole_numbers_are_counted_and_drawn_exactly(beside: list[Feature]) -> None:
    """The number of configurations is beyond 2^63; each amount is uniform over its range, the flag as likely as its share."""
    amounts = ("debt", "rent", "income")
    im = InteractionModel(
        [Feature("flag", "binary"), *(whole(n, 0, WIDE) for n in amounts), *beside],
        [IfThen("flag == 1", f"{n} >= 4000000") for n in amounts] + [IfThen("flag == 1", f"{f.name} >= 0.5") for f in beside],
    )
    x = {"flag": 0, **dict.fromkeys(amounts, 0), **{f.name: 0.1 for f in beside}}
    off, on = (WIDE + 1) ** 3, (WIDE - 4_000_000 + 1) ** 3
    sample, got = sampled(im, x, 10_000)
    assert sample.parts[0].configurations == off + on > 2**63
    assert stats.binomtest(int(got["flag"].sum()), 10_000, on / (off + on)).pvalue > ALPHA
    for name in amounts:
        for flag, low in ((0, 0), (1, 4_000_000)):
            assert ks(got[name][got["flag"] == flag], flat(low, WIDE)) > ALPHA
    if not beside:
        assert im.sample(x, 2).parts[0].method == "count"
        assert set_size(im, x) == off + on


# -- weights ----------------------------------------------------------------------------------------------------------------

LOG = Distribution("log")


def test_a_log_distribution_on_a_target_that_falls_below_its_bound_keeps_its_law() -> None:
    """t = 1 - s / 2 falls to 1/2 although its bound is 1; its density is 1/t, so that log t is uniform over log 1/2 … 0."""
    im = InteractionModel(
        [real("s", 0, 1), real("t", 1, 9, actionable=False, distribution=LOG)], [DirectionalLinkage("s", {"t": -0.5})]
    )
    sample, got = sampled(im, {"s": 0.0, "t": 1.0}, 20_000)
    np.testing.assert_allclose(got["t"], 1 - got["s"] / 2)
    assert ks(-np.log(got["t"]) / math.log(2), "uniform") > ALPHA
    assert sample.parts[0].acceptance == pytest.approx(math.log(2), abs=0.02)  # the highest density is that of 1/2
    down = InteractionModel(im.features, [DirectionalLinkage("s", {"t": -2.0})])
    with pytest.raises(DrawError, match=r"feature t: .*above 0.*-1"):
        down.sample({"s": 0.0, "t": 1.0}, 5)


# -- many configurations under one budget ------------------------------------------------------------------------------------


def test_many_configurations_and_three_reals_under_one_budget() -> None:
    """90,601 configurations, each with a room of its own: both measures. Under volume they have the law of plain rejection."""
    im = InteractionModel(
        [whole("a", 0, 300), whole("b", 0, 300), *(real(n, 0, 300) for n in "rst")], [LinearConstraint(dict.fromkeys("abrst", 1.0), "<=", 1200)]
    )
    x = dict.fromkeys("abrst", 0.0)
    with within(6):
        sample, got = sampled(im, x, 4000)
    assert sample.exact
    assert sample.parts[0].configurations == 301**2
    jitter = np.random.default_rng(1).random(4000)
    assert ks((got["a"] + jitter) / 301, "uniform") > ALPHA
    rng = np.random.default_rng(2)
    tried = np.column_stack([rng.integers(0, 301, (40_000, 2)), rng.uniform(0, 300, (40_000, 3))])
    kept = tried[tried.sum(axis=1) <= 1200]
    _, got = sampled(im.with_measure("volume"), x, 4000)
    assert stats.ks_2samp(got["a"] + got["r"], kept[:, 0] + kept[:, 2]).pvalue > ALPHA
    assert stats.ks_2samp(sum(got.values()), kept.sum(axis=1)).pvalue > ALPHA
