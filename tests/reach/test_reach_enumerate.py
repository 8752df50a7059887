"""Every enumeration against brute force over all own actions and induced changes, decided by scalar definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reach_brute import actions_tried, all_changes
from reach_kit import Case, random_cases

import budge
from budge import Feature, InteractionModel
from budge.constraints import DirectionalLinkage, IfThen, LinearConstraint, OneHot, Rule, Switch, Thermometer
from budge.errors import DrawError, EmptyError, ReachError, TooLargeError
from budge.reach import set_size, starts


def compare(case: Case) -> str:
    """One model at one start: the same points, each once, the same status, the law that the weights tell.

    What its distributions give no weight to is feasible, but never reached.
    """
    im, x = case
    start = im.start(x)
    feasible = {tuple(np.round(change, 7) + 0.0) for change in all_changes(im, start)}
    want = {change for change in feasible if weight(im, start, change) > 0}
    try:
        found = im.enumerate(x, on_invalid="keep")
    except EmptyError:
        assert not feasible
        return "empty"
    except DrawError:  # weights that leave nothing are said to be that, not called empty
        assert feasible
        assert not want
        return "no weight"
    base = np.array([start[f.name] for f in im.features])
    moved = np.where(np.isnan(base), 0.0, np.round(found.values - base, 7)) + 0.0
    have = [tuple(row) for row in moved]
    assert len(set(have)) == len(have)
    assert set(have) == want
    assert set_size(im, x) == len(want)
    assert found.status == ("fixed" if want == {(0.0,) * len(base)} else "ok")
    assert im.feasible(x, moved).all()
    if found.weights is not None:
        law = np.array([weight(im, start, change) for change in have])
        np.testing.assert_allclose(found.weights, law / law.sum(), rtol=1e-9)
    return found.status


def weight(im: InteractionModel, start: dict[str, float], change: tuple[float, ...]) -> float:
    product = 1.0
    for f, moved in zip(im.features, change):
        if f.distribution is not None and not math.isnan(start[f.name]):
            value = start[f.name] + moved
            listed = dict(zip(f.distribution.values, f.distribution.weights))
            product *= listed.get(f.levels[int(value)] if f.levels is not None else value, 0.0)
    return product


def test_enumeration_equals_brute_force_on_300_random_models_of_all_kinds() -> None:
    cases = [case for case in random_cases(300, 11) if actions_tried(case[0], case[0].start(case[1])) <= 2000]
    seen = [compare(case) for case in cases]
    assert len(seen) >= 280
    assert {"ok", "fixed", "empty"} <= set(seen)
    kinds = {c.kind for im, _ in cases for c in im.constraints}
    assert len(kinds) == 11
    assert any(part.split(n) == "guess" for im, _ in cases for part in im.parts for n in part.names)


@pytest.mark.heavy
def test_enumeration_equals_brute_force_on_4000_random_models_of_all_kinds() -> None:
    cases = [case for case in random_cases(4000, 12, max_features=6) if actions_tried(case[0], case[0].start(case[1])) <= 5000]
    assert len([compare(case) for case in cases]) >= 3500


def test_counting_a_coordinate_gives_the_same_points_as_listing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [case for case in random_cases(300, 11) if actions_tried(case[0], case[0].start(case[1])) <= 300][:120]
    monkeypatch.setattr(starts, "WIDE", 0)  # count whatever can be counted
    methods = set()
    for im, x in cases:
        fresh = InteractionModel(im.features, im.constraints)
        compare((fresh, x))
        try:
            methods |= {part.method for part in fresh.enumerate(x, on_invalid="keep").parts}
        except ReachError:
            continue
    assert "count" in methods


@pytest.mark.parametrize("scale", [1, 2, -1, -3])
@pytest.mark.parametrize("direction", ["increase", "decrease"])
def test_a_staircase_of_source_and_target_counts_every_pair_once(
    scale: int, direction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = [
        Feature("s", "integer", bounds=(0, 12), direction=direction),  # type: ignore[arg-type]
        Feature("t", "integer", bounds=(0, 5), actionable=False),
        Feature("z", "binary"),
    ]
    rules = [DirectionalLinkage("s", {"t": scale}, "<="), IfThen("z == 0", "s >= 3")]
    monkeypatch.setattr(starts, "WIDE", 0)
    for x in ({"s": 4, "t": 1, "z": 0}, {"s": 0, "t": 1, "z": 1}, {"s": 12, "t": 0, "z": 1}):
        compare((InteractionModel(features, rules), x))


def test_a_real_target_that_follows_from_whole_numbers_is_enumerated() -> None:
    im = InteractionModel(
        [Feature("years", "integer", bounds=(0, 3)), Feature("pay", "real", bounds=(0, 2), actionable=False)],
        [DirectionalLinkage("years", {"pay": 0.5})],
    )
    found = im.enumerate({"years": 1, "pay": 1.9}).points
    assert found["pay"].tolist() == pytest.approx([1.4, 1.9, 2.4, 2.9])
    stopped = InteractionModel(im.features, [DirectionalLinkage("years", {"pay": 0.5}, on_exceed="clip")])
    assert stopped.enumerate({"years": 1, "pay": 1.9}).points["pay"].tolist() == pytest.approx([1.4, 1.9, 2.0, 2.0])
    kept = InteractionModel(im.features, [DirectionalLinkage("years", {"pay": 0.5}, on_exceed="reject")])
    assert kept.enumerate({"years": 1, "pay": 1.9}).points["pay"].tolist() == pytest.approx([1.4, 1.9])


def test_a_start_outside_its_bounds_may_stay_or_move_towards_them() -> None:
    im = InteractionModel([Feature("a", "integer", bounds=(0, 3))])
    assert sorted(im.enumerate({"a": 5}, on_invalid="keep").points["a"]) == [0, 1, 2, 3, 4, 5]
    assert sorted(im.enumerate({"a": -2}, on_invalid="keep").points["a"]) == [-2, -1, 0, 1, 2, 3]


@pytest.mark.parametrize("policy", ["allow", "reject", "clip"])
def test_what_is_induced_may_hold_no_whole_number(policy: str) -> None:
    """At least half a unit, at most three quarters: the target's own whole steps cannot make that whole, except at a bound."""
    features = [
        Feature("s", "integer", bounds=(0, 3), direction="increase", max_increase=1),
        Feature("t", "integer", bounds=(0, 2), max_increase=2, max_decrease=1),
    ]
    for scale in (0.5, 0.7, -0.5, 1.5):
        for t in (0, 1, 2):
            link = DirectionalLinkage("s", {"t": scale}, ">=", policy)  # type: ignore[arg-type]
            compare((InteractionModel(features, [link]), {"s": 2, "t": t}))
            compare((InteractionModel(features, [link, Switch("s == 3", ("t",), "any")]), {"s": 2, "t": t}))


def test_links_do_not_chain_and_several_add_up() -> None:
    chain = InteractionModel(
        [
            Feature("a", "integer", bounds=(0, 1), direction="increase"),
            *(Feature(n, "integer", bounds=(0, 9), actionable=False) for n in "bc"),
        ],
        [DirectionalLinkage("a", {"b": 1}), DirectionalLinkage("b", {"c": 1})],
    )
    assert chain.enumerate({"a": 0, "b": 0, "c": 0}).points.values.tolist() == [[0, 0, 0], [1, 1, 0]]
    both = InteractionModel(
        [*(Feature(n, "binary", direction="increase") for n in "ab"), Feature("age", "integer", bounds=(0, 9), actionable=False)],
        [DirectionalLinkage("a", {"age": 1}), DirectionalLinkage("b", {"age": 2})],
    )
    assert sorted(both.enumerate({"a": 0, "b": 0, "age": 4}).points["age"]) == [4, 5, 6, 7]


def test_a_group_of_20_dummies_and_a_thermometer_of_30_are_lists_not_powers_of_two() -> None:
    dummies = [Feature(f"d{i}", "binary") for i in range(20)]
    im = InteractionModel(dummies, [OneHot(tuple(f.name for f in dummies))])
    assert im.enumerate({f"d{i}": int(i == 3) for i in range(20)}).size == 20
    bars = [Feature(f"t{i}", "binary") for i in range(30)]
    im = InteractionModel(bars, [Thermometer(tuple(f.name for f in bars), "increase")])
    assert im.enumerate({f"t{i}": int(i < 10) for i in range(30)}).size == 21


def test_a_budget_over_30_dummies_is_cut_short_not_multiplied_out() -> None:
    names = [f"d{i}" for i in range(30)]
    im = InteractionModel(
        [Feature(n, "binary") for n in names], [LinearConstraint(dict.fromkeys(names, 1), "==", 2, on="action")]
    )
    assert im.enumerate(dict.fromkeys(names, 0)).size == math.comb(30, 2)


def test_a_constraint_that_nobody_can_meet_by_moving_makes_everything_empty() -> None:
    """Also where it couples only features that cannot be moved: staying itself is not allowed."""
    im = InteractionModel(
        [Feature("a", "binary"), Feature("b", "integer", bounds=(0, 9), actionable=False)], [Rule("b > before.b", name="must rise")]
    )
    assert not im.feasible({"a": 0, "b": 1}, {"a": [0.0, 1.0]}).any()
    with pytest.raises(EmptyError, match="must rise"):
        im.enumerate({"a": 0, "b": 1})
    with pytest.raises(EmptyError, match="must rise"):
        im.sample({"a": 0, "b": 1}, 3)


def test_the_size_of_a_product_is_told_before_anything_is_expanded() -> None:
    im = InteractionModel([Feature(f"n{i}", "integer", bounds=(0, 999)) for i in range(10)])
    with pytest.raises(TooLargeError, match="1,000,000,000,000,000,000,000,000,000,000 points"):
        im.enumerate({f"n{i}": 0 for i in range(10)})
    assert set_size(im, {f"n{i}": 0 for i in range(10)}) == 10**30
    assert im.sample({f"n{i}": 0 for i in range(10)}, 5, seed=1).n == 5


def test_a_part_too_large_to_list_says_how_large_it_is_and_can_still_be_drawn() -> None:
    names = [f"n{i}" for i in range(30)]
    im = InteractionModel([Feature(n, "integer", bounds=(0, 9)) for n in names], [Rule(" + ".join(names) + " != 7")])
    with pytest.raises(TooLargeError, match=f"{10**30 - math.comb(36, 7):,} points"):
        im.enumerate(dict.fromkeys(names, 0))
    sample = im.sample(dict.fromkeys(names, 0), 500, seed=2)
    assert im.feasible(dict.fromkeys(names, 0), sample.values).all()


def test_a_part_too_large_to_count_says_how_large_it_may_be_and_can_still_be_drawn() -> None:
    names = [f"n{i}" for i in range(30)]
    im = InteractionModel([Feature(n, "integer", bounds=(0, 9)) for n in names], [Rule(" * ".join(names) + " >= 0")])
    with pytest.raises(TooLargeError, match=r"up to 1,000,000,000,000,000,000,000,000,000,000"):
        im.enumerate(dict.fromkeys(names, 0))
    assert im.sample(dict.fromkeys(names, 0), 50, seed=2).n == 50


def test_what_is_continuous_or_random_is_not_enumerated() -> None:
    real = InteractionModel([Feature("r", "real", bounds=(0, 1))])
    with pytest.raises(ReachError, match="continuous"):
        real.enumerate({"r": 0.5})
    noisy = InteractionModel([Feature("r", "real", bounds=(0, 1), actionable=False)], effects=[budge.Effect("r", set="uniform(0, 1)")])
    with pytest.raises(ReachError, match="stochastic"):
        noisy.enumerate({"r": 0.5})


def test_a_switch_that_freezes_the_only_continuous_feature_leaves_a_set_that_is_enumerated() -> None:
    im = InteractionModel(
        [Feature("closed", "binary", actionable=False), Feature("balance", "real", bounds=(0, 10)), Feature("b", "binary")],
        [Switch("closed == 1", ("balance",))],
    )
    assert im.enumerate({"closed": 1, "balance": 2.5, "b": 0}).points.values.tolist() == [[1, 2.5, 0], [1, 2.5, 1]]
