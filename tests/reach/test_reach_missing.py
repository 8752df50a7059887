"""A missing value stays missing and does not move: not by itself, not by a linkage, not by an effect.

The definition, the solver, the enumeration and the draws say so alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from reach_brute import all_changes

from budge import Effect, Feature, InteractionModel, Latent
from budge.constraints import DirectionalLinkage, LinearConstraint, Rule, Switch
from budge.distributions import Distribution
from budge.errors import ReachError
from budge.program.milp import PartProgram
from budge.reach.core import TooManyError

POLICIES = ("allow", "reject", "clip")
RELATIONS = ("==", "<=", ">=")


def linked(relation: str, policy: str, *more: Any, source: str = "integer", target: str = "integer", own: bool = False) -> InteractionModel:
    """A source that moves from 0 to 3, and a target whose value may be missing."""
    if relation == "==" and source == "real":
        target = "real"
    return InteractionModel(
        [
            Feature("s", source, bounds=(0, 3)),  # type: ignore[arg-type]
            Feature("t", target, bounds=(0, 4), actionable=own, missing="fixed"),  # type: ignore[arg-type]
        ],
        [DirectionalLinkage("s", {"t": 2}, relation, policy), *more],  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("own", [False, True], ids=["follows", "moves too"])
@pytest.mark.parametrize("more", [(), (Switch("s == 3", ("t",), "free"),)], ids=["alone", "own action read"])
def test_a_linkage_induces_nothing_on_a_missing_target(policy: str, relation: str, own: bool, more: tuple[Any, ...]) -> None:
    im = linked(relation, policy, *more, own=own)
    x = {"s": 1, "t": None}
    found = im.enumerate(x)
    assert sorted(found.values[:, 0]) == [0, 1, 2, 3]  # each once
    assert np.isnan(found.values[:, 1]).all()
    assert set(all_changes(im, im.start(x))) == {(s - 1.0, 0.0) for s in range(4)}
    moves = [(s, t) for s in range(-2, 4) for t in range(-2, 5)]
    inside = [s in (-1, 0, 1, 2) and t == 0 for s, t in moves]
    assert im.feasible(x, np.array(moves, dtype=float)).tolist() == inside
    program = PartProgram(im.parts[0], im.start(x))
    assert [program.feasible({"s": s, "t": t}) for s, t in moves] == inside
    drawn = im.sample(x, 4000, seed=3).values
    assert np.isnan(drawn[:, 1]).all()
    counts = np.bincount(drawn[:, 0].astype(int), minlength=4)
    assert (np.abs(counts - 1000) < 5 * np.sqrt(750)).all()  # false alarm: below 1 in 100,000


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("target", ["integer", "real"])
def test_the_same_with_a_real_source(policy: str, relation: str, target: str) -> None:
    im = linked(relation, policy, source="real", target=target)
    drawn = im.sample({"s": 1.0, "t": None}, 4000, seed=3).values
    assert np.isnan(drawn[:, 1]).all()
    assert abs(drawn[:, 0].mean() - 1.5) < 5 * 3 / np.sqrt(12 * 4000)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_same_by_rejection(policy: str, relation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_many(*_: Any, **__: Any) -> None:
        raise TooManyError

    monkeypatch.setattr("budge.reach.prepare.build_core", too_many)
    monkeypatch.setattr("budge.reach.prepare.counted", lambda *_: None)
    sample = linked(relation, policy).sample({"s": 1, "t": None}, 2000, seed=3)
    assert sample.parts[0].method == "rejection"
    assert np.isnan(sample.values[:, 1]).all()
    assert set(sample.values[:, 0]) == {0, 1, 2, 3}


def test_people_with_and_without_the_target_do_not_share_what_was_prepared() -> None:
    im = linked("<=", "allow")
    X = pd.DataFrame({"s": [1, 1, 1], "t": [2.0, np.nan, 0.0]})
    assert [im.enumerate(X.iloc[[i]]).size for i in range(3)] == [3 + 1 + 3 + 5, 4, 3 + 1 + 3 + 5]
    (block,) = im.sample_many(X, 500, seed=1)
    t = block.values[:, 1].reshape(3, 500)
    assert np.isnan(t[1]).all()
    assert not np.isnan(t[[0, 2]]).any()
    assert len(np.unique(t[0])) > 3


def test_a_constraint_that_needs_the_missing_target_is_not_met() -> None:
    im = linked("==", "allow", LinearConstraint({"s": 1, "t": 1}, "<=", 4))
    assert not im.feasible({"s": 1, "t": None}, {"s": [0.0, 1.0]}).any()


def test_a_listed_real_value_that_is_missing_stays_missing() -> None:
    law = Distribution.from_spec({"empirical": [0.5, 2.0]})
    im = InteractionModel([Feature("r", "real", distribution=law, missing="fixed"), Feature("b", "binary")], [Switch("b == 1", ("r",))])
    found = im.enumerate({"r": None, "b": 0})
    assert np.isnan(found.values[:, 0]).all()
    assert sorted(found.values[:, 1]) == [0, 1]


# -- effects ----------------------------------------------------------------------------------------------------------------------


def real(name: str) -> Feature:
    return Feature(name, "real", bounds=(-100, 100), missing="fixed")


@pytest.mark.parametrize(
    "effect",
    [
        Effect("a", add="normal(0.1 * a, 1)", clip=(-100, 100)),
        Effect("a", set="before.a + action.b", clip=(-100, 100)),
        Effect("a", multiply="a / 10", clip=(-100, 100)),
        Effect("a", add=lambda env, rng: env["a"], reads=("a",), clip=(-100, 100)),
        Effect("a", add="latent.u", clip=(-100, 100)),
    ],
    ids=["reads itself", "reads its start", "multiplies", "a function", "a latent draw that reads it"],
)
def test_an_effect_on_a_missing_value_is_not_asked_for(effect: Effect) -> None:
    im = InteractionModel([real("a"), real("b")], effects=[effect], latent=[Latent("u", "normal(before.a, 1)")])
    sample = im.sample({"a": None, "b": 1.0}, 50, seed=2)
    assert np.isnan(sample.values[:, 0]).all()
    assert not sample.effects["a"].any()
    assert len(set(sample.values[:, 1])) == 50
    assert im.sample({"a": 3.0, "b": 1.0}, 50, seed=2).effects["a"].any()


def test_an_effect_that_reads_the_effect_on_a_missing_value_reads_none() -> None:
    effects = [Effect("a", add="normal(a, 1)", clip=(-100, 100)), Effect("b", set="effect.a + 7", clip=(-100, 100))]
    im = InteractionModel([real("a"), real("b")], effects=effects)
    assert set(im.sample({"a": None, "b": 1.0}, 20, seed=2).values[:, 1]) == {7.0}


@pytest.mark.parametrize(
    "effect",
    [
        Effect("a", add="normal(0.1 * b, 1)", clip=(-100, 100), name="the noise"),
        Effect("a", set="b", clip=(-100, 100), name="the noise"),
        Effect("a", add=lambda env, rng: env["b"], reads=("b",), clip=(-100, 100), name="the noise"),
    ],
)
def test_an_effect_that_reads_the_missing_value_of_another_feature_is_named(effect: Effect) -> None:
    im = InteractionModel([real("a"), real("b")], effects=[effect])
    with pytest.raises(ReachError, match=r"the noise: reads b, which is missing here; fill it in"):
        im.sample({"a": 1.0, "b": None}, 5)
    assert np.isnan(im.sample({"a": None, "b": None}, 5).values).all()  # nothing moves, nothing is asked


def test_an_effect_may_say_what_happens_where_a_value_is_missing() -> None:
    """A comparison with a missing value is not true, so that `where` has an answer."""
    im = InteractionModel([real("a"), real("b")], effects=[Effect("a", set="where(b > 0, 1, 2)", clip=(-100, 100))])
    assert set(im.sample({"a": 1.0, "b": None}, 5).values[:, 0]) == {2.0}


# -- values without weight --------------------------------------------------------------------------------------------------------


def test_a_set_does_not_list_what_is_never_drawn() -> None:
    law = Distribution.from_spec({"weights": {0: 0, 1: 2, 2: 1}})
    im = InteractionModel([Feature("n", "integer", bounds=(0, 5), distribution=law), Feature("b", "binary")], [Rule("n + b <= 2")])
    found = im.enumerate({"n": 0, "b": 0})
    assert sorted(map(tuple, found.values.tolist())) == [(1, 0), (1, 1), (2, 0)]
    assert found.weights is not None
    assert found.weights.min() > 0
    assert set(map(tuple, im.sample({"n": 0, "b": 0}, 500, seed=1).values.tolist())) == set(map(tuple, found.values.tolist()))
    assert im.feasible({"n": 0, "b": 0}, {"n": [0.0, 3.0]}).tolist() == [True, False]  # feasible is what constraints allow


def test_only_staying_has_weight() -> None:
    law = Distribution.from_spec({"weights": {2: 1, 9: 1}})
    im = InteractionModel([Feature("n", "integer", bounds=(0, 9), max_increase=3, distribution=law)])
    assert im.enumerate({"n": 2}).status == "fixed"
    assert im.enumerate({"n": 6}).status == "ok"


@pytest.mark.parametrize("other", [Feature("o", "binary"), Feature("o", "real", bounds=(0, 9))], ids=["listed", "mixed"])
def test_whole_numbers_without_bounds_are_drawn_from_their_list(other: Feature) -> None:
    law = Distribution.from_spec({"empirical": [1, 2, 2, 5]})
    im = InteractionModel([Feature("n", "integer", distribution=law), other], [Rule("n + o <= 6")])
    drawn = im.sample({"n": 2, "o": 0}, 4000, seed=1).values[:, 0]
    assert set(drawn) == {1, 2, 5}
    if other.discrete:
        assert im.enumerate({"n": 2, "o": 0}).size == 6
    strict = InteractionModel(im.features, [Rule("n + o >= 20")])
    with pytest.raises(ReachError, match=r"no weight|no action"):
        strict.sample({"n": 2, "o": 0}, 5, on_invalid="keep")
    assert InteractionModel([im.features[0]]).enumerate({"n": 5}).size == 3
