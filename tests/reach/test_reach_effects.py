"""Stochastic effects after the action: their order, shared draws, clip and round, each against a closed form.

Each check has a false alarm of 1 in 10,000, for a fixed seed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from reach_kit import flat, ks
from scipy import stats

from budge import Effect, Feature, InteractionModel, Latent
from budge.constraints import DirectionalLinkage, Rule, Switch

ALPHA = 1e-4
N = 20_000


def real(name: str, low: float = -1e6, high: float = 1e6, **more: Any) -> Feature:
    return Feature(name, "real", bounds=(low, high), **more)


def still(name: str) -> Feature:
    return Feature(name, "real", actionable=False)


def drawn(im: InteractionModel, x: dict[str, Any], n: int = N, seed: int = 5) -> dict[str, np.ndarray]:
    sample = im.sample(x, n, seed=seed)
    return dict(zip((f.name for f in im.features), sample.values.T))


def test_add_set_and_multiply_act_on_the_value_reached() -> None:
    im = InteractionModel(
        [still("a"), still("b"), still("c")],
        effects=[Effect("a", add="normal(1, 2)"), Effect("b", set="uniform(3, 5)"), Effect("c", multiply="uniform(1, 2)")],
    )
    got = drawn(im, {"a": 10.0, "b": 10.0, "c": 10.0})
    assert ks(got["a"], stats.norm(11, 2).cdf) > ALPHA
    assert ks(got["b"], flat(3, 5)) > ALPHA
    assert ks(got["c"], flat(10, 20)) > ALPHA


def test_an_effect_reads_the_action_the_start_and_the_value_reached() -> None:
    im = InteractionModel(
        [real("income", 0, 10), still("a"), still("b"), still("c")],
        effects=[
            Effect("a", set="action.income + normal(0, 0.01)"),
            Effect("b", set="before.income + 0 * action.income"),
            Effect("c", set="income"),
        ],
    )
    got = drawn(im, {"income": 4.0, "a": 0.0, "b": 0.0, "c": 0.0}, n=2000)
    np.testing.assert_allclose(got["a"], got["income"] - 4, atol=0.06)
    np.testing.assert_allclose(got["b"], 4.0)
    np.testing.assert_allclose(got["c"], got["income"])


def test_effects_are_drawn_in_the_order_of_their_parents_whatever_the_order_of_declaration() -> None:
    effects = [Effect("c", set="effect.b * 2"), Effect("b", set="effect.a + 1"), Effect("a", add="normal(0, 1)")]
    for order in (effects, effects[::-1]):
        im = InteractionModel([still("a"), still("b"), still("c")], effects=order)
        assert im.partition == (("a", "b", "c"),)
        got = drawn(im, {"a": 0.0, "b": 0.0, "c": 0.0}, n=4000)
        assert ks(got["a"], stats.norm(0, 1).cdf) > ALPHA
        np.testing.assert_allclose(got["b"], got["a"] + 1)
        np.testing.assert_allclose(got["c"], 2 * got["b"])


def test_a_shared_draw_is_the_same_for_all_who_read_it_and_joins_their_parts() -> None:
    im = InteractionModel(
        [still("a"), still("b"), still("c")],
        effects=[Effect("a", add="latent.shock"), Effect("b", add="2 * latent.shock"), Effect("c", add="normal(0, 1)")],
        latent=[Latent("shock", "normal(0, 3)")],
    )
    assert im.partition == (("a", "b"), ("c",))
    got = drawn(im, {"a": 0.0, "b": 0.0, "c": 0.0})
    np.testing.assert_allclose(got["b"], 2 * got["a"])
    assert ks(got["a"], stats.norm(0, 3).cdf) > ALPHA
    assert abs(np.corrcoef(got["a"], got["c"])[0, 1]) * np.sqrt(N) < 3.9


def test_correlated_draws_have_the_covariance_they_declare() -> None:
    im = InteractionModel(
        [still("a"), still("b")],
        effects=[Effect("a", add="latent.u"), Effect("b", add="latent.v")],
        latent=[Latent("labs", "multivariate_normal([1, 2], [[1, 0.8], [0.8, 4]])", components=("u", "v"))],
    )
    got = drawn(im, {"a": 0.0, "b": 0.0})
    assert ks(got["a"], stats.norm(1, 1).cdf) > ALPHA
    assert ks(got["b"], stats.norm(2, 2).cdf) > ALPHA
    assert ks((got["b"] - 2 - 0.8 * (got["a"] - 1)) / np.sqrt(4 - 0.64), stats.norm(0, 1).cdf) > ALPHA
    assert abs(np.arctanh(np.corrcoef(got["a"], got["b"])[0, 1]) - np.arctanh(0.4)) * np.sqrt(N - 3) < 3.9


def test_rounding_comes_first_then_the_clip_and_whole_numbers_stay_whole() -> None:
    im = InteractionModel(
        [Feature("n", "integer", bounds=(0, 3), actionable=False)], effects=[Effect("n", add="normal(0, 1)", round=True, clip=(0, 3))]
    )
    sample = im.sample({"n": 1}, N, seed=5)
    assert sample.points["n"].dtype == np.int64
    law = np.diff(stats.norm(1, 1).cdf([-np.inf, 0.5, 1.5, 2.5, np.inf]))
    assert stats.chisquare(np.bincount(sample.points["n"], minlength=4), law * N).pvalue > ALPHA


def test_an_effect_reads_the_own_action_of_a_linked_target_not_what_was_induced() -> None:
    im = InteractionModel(
        [Feature("s", "integer", bounds=(0, 4)), Feature("t", "integer", bounds=(-20, 20), max_increase=1, max_decrease=1), still("e")],
        [DirectionalLinkage("s", {"t": 3})],
        effects=[Effect("e", set="action.t")],
    )
    got = drawn(im, {"s": 0, "t": 0, "e": 0.0}, n=2000)
    np.testing.assert_array_equal(got["e"], got["t"] - 3 * got["s"])
    assert set(got["e"]) == {-1.0, 0.0, 1.0}


def test_an_own_action_that_the_change_does_not_tell_is_one_that_is_feasible() -> None:
    """The target may move by itself only while the switch is open, and an effect reads by how much."""
    im = InteractionModel(
        [
            Feature("open", "binary"),
            Feature("s", "integer", bounds=(0, 1)),
            Feature("t", "integer", bounds=(-9, 9), max_increase=2, max_decrease=0),
            still("e"),
        ],
        [DirectionalLinkage("s", {"t": 1}, "<="), Switch("open == 0", ("t",), otherwise="any")],
        effects=[Effect("e", set="action.t")],
    )
    got = drawn(im, {"open": 0, "s": 0, "t": 0, "e": 0.0}, n=3000)
    own, moved = got["e"], got["t"]
    assert (own[got["open"] == 0] == 0).all()
    assert (own[got["open"] == 1] >= 1).all()
    assert ((moved - own >= 0) & (moved - own <= got["s"])).all()


def test_effects_are_never_rejected_so_they_may_leave_what_constraints_allow() -> None:
    im = InteractionModel([Feature("a", "real", bounds=(0, 1)), still("b")], [Rule("a + b <= 1")], effects=[Effect("b", add="normal(0, 1)")])
    got = drawn(im, {"a": 0.5, "b": 0.0})
    assert ks(got["b"], stats.norm(0, 1).cdf) > ALPHA
    assert ks(got["a"], flat(0, 1)) > ALPHA


def test_a_category_can_be_set_by_an_effect() -> None:
    im = InteractionModel(
        [Feature("home", "category", levels=("rent", "own", "free"), actionable=False)],
        effects=[Effect("home", set=lambda env, rng: rng.choice(["rent", "own", "free"], len(env["before.home"]), p=[0.2, 0.3, 0.5]), reads=("before.home",))],
    )
    sample = im.sample({"home": "rent"}, N, seed=4)
    counts = sample.points["home"].value_counts()
    assert stats.chisquare([counts["rent"], counts["own"], counts["free"]], np.array([0.2, 0.3, 0.5]) * N).pvalue > ALPHA


def test_the_effects_drawn_are_returned_beside_the_points_and_missing_values_do_not_move() -> None:
    im = InteractionModel(
        [Feature("a", "real", bounds=(0, 9)), Feature("b", "real", actionable=False, missing="fixed")],
        effects=[Effect("a", add="normal(0, 0.1)", clip=(0, 9)), Effect("b", add="normal(0, 1)")],
    )
    sample = im.sample({"a": 4.0, "b": None}, 50, seed=4)
    assert sample.effects.keys() == {"a", "b"}
    assert sample.points["b"].isna().all()
    assert not sample.effects["b"].any()
    action = InteractionModel(im.features).sample({"a": 4.0, "b": None}, 50, seed=4)
    np.testing.assert_allclose(sample.values[:, 0], action.values[:, 0] + sample.effects["a"])


@pytest.mark.parametrize("block_rows", [1, 10**6])
def test_effects_belong_to_the_stream_of_their_person(block_rows: int) -> None:
    import pandas as pd

    im = InteractionModel([real("a", 0, 9)], effects=[Effect("a", add="normal(0, 1)", clip=(0, 9))])
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
    found = np.concatenate([b.values for b in im.sample_many(X, 20, seed=6, block_rows=block_rows)])
    alone = np.concatenate([im.sample(X.iloc[[i]], 20, seed=6).values for i in range(3)])
    np.testing.assert_array_equal(found, alone)
