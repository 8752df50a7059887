"""What attacks on reaching found: each was wrong, refused or slow once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import budge
from budge import Feature, InteractionModel
from budge.constraints import DirectionalLinkage, IfThen, LinearConstraint, Reachability, Rule
from budge.distributions import Distribution
from budge.errors import DrawError, EmptyError


def real(name: str, low: float, high: float, **more: bool | str) -> Feature:
    return Feature(name, "real", bounds=(low, high), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("d", [3, 6, 9, 12])
def test_a_ball_in_many_dimensions_is_drawn_from_a_narrow_box(d: int, cut: bool) -> None:
    names = [f"a{i:02d}" for i in range(d)]
    rules = [Rule(" + ".join(f"{n} ** 2" for n in names) + " <= 4")] + ([Rule("a00 >= 1")] if cut else [])
    im = InteractionModel([real(n, -5, 5) for n in names], rules)
    drawn = im.sample(dict.fromkeys(names, 0.0), 300, seed=1, on_invalid="keep")
    assert drawn.exact
    points = drawn.points.to_numpy()
    assert ((points**2).sum(axis=1) <= 4).all()
    assert not cut or (points[:, 0] >= 1).all()
    if not cut:  # the squared radius of a uniform point of a ball, to the power d/2, is uniform
        assert abs(float((((points**2).sum(axis=1) / 4) ** (d / 2)).mean()) - 0.5) < 5 / np.sqrt(12 * 300)


@pytest.mark.parametrize(
    ("names", "rule"),
    [
        (tuple(f"a{i}" for i in range(10)), "3 <= " + " + ".join(f"abs(action.a{i})" for i in range(10)) + " <= 5"),
        (("a", "b"), "abs(action.a * action.b - 1) <= 1e-5"),
    ],
)
def test_what_no_proposal_finds_is_not_called_empty(names: tuple[str, ...], rule: str) -> None:
    im = InteractionModel([real(n, 0 if len(names) == 2 else -5, 10 if len(names) == 2 else 5) for n in names], [Rule(rule)])
    with pytest.raises(DrawError, match="within"):
        im.sample(dict.fromkeys(names, 0.0), 10, seed=1)


def test_a_row_with_a_missing_value_holds_nowhere() -> None:
    features = [real("a", -5, 5), real("b", 0, 6), real("m", 1, 9, missing="fixed")]
    for row in (LinearConstraint({"a": 1, "b": 1, "m": -1}, "<=", 3), Rule("a + b - m <= 3")):
        im = InteractionModel(features, [row])
        with pytest.raises(EmptyError):
            im.sample({"a": 0.0, "b": 1.0, "m": float("nan")}, 10, seed=1, on_invalid="keep")


@pytest.mark.parametrize("measure", ["volume", "configuration"])
def test_totals_that_share_reals_are_drawn_together(measure: str) -> None:
    im = InteractionModel(
        [real("r0", -5, 5), real("r1", 0, 6), real("r2", 1, 9), Feature("i", "integer", bounds=(0, 800))],
        [
            Rule("abs(action.r0) + 0.01 * abs(action.i) <= 6"), Rule("max(action.r0, 0) + max(action.r1, 0) <= 3"),
            Rule("abs(action.r1) + abs(action.r2) <= 3"),
        ],
    ).with_measure(measure)  # fmt: skip
    points = im.sample({"r0": 0.0, "r1": 1.0, "r2": 5.0, "i": 5}, 500, seed=1).points
    assert (points["r0"].abs() + 0.01 * (points["i"] - 5).abs() <= 6 + 1e-9).all()
    assert ((points["r1"] - 1).abs() + (points["r2"] - 5).abs() <= 3 + 1e-9).all()


@pytest.mark.parametrize("seed", range(6))
def test_listed_fractions_are_reached_to_the_last_bit(seed: int) -> None:
    """0.7 + (0.1 - 0.7) is not 0.1, and a model that compares with 0.1 sees the difference."""
    rng = np.random.default_rng(seed)
    rates = rng.permutation(np.unique(rng.integers(1, 40, 6))) / 10.0 ** rng.integers(1, 4)
    k, rate, other = Feature("k", "integer", bounds=(0, len(rates) - 1)), real("rate", 0, 10), real("z", 0, 1)
    together = Reachability(("k", "rate"), tuple((i, float(value)) for i, value in enumerate(rates)))
    alone = Feature("rate", "real", bounds=(0, 10), distribution=Distribution.from_spec({"empirical": rates.tolist()}))
    X = pd.DataFrame({"k": range(len(rates)), "rate": rates, "z": 0.25})
    for im in (InteractionModel([k, rate, other], [together]), InteractionModel([k, rate], [together]), InteractionModel([alone])):
        people = X[list(im.by_name)]
        for row in people.to_dict("records"):
            tables = [im.sample(row, 60).points] + ([im.enumerate(row).points] if "z" not in row else [])
            assert len(tables) == 1 or set(tables[1]["rate"]) == set(rates)
            for points in tables:
                assert set(points["rate"]) <= set(rates)
                assert len(im.by_name) == 1 or (points["rate"].to_numpy() == rates[points["k"].to_numpy(dtype=int)]).all()
        found = budge.audit(lambda t: (t["rate"] == rates[0]).astype(int), people, im, target=1, population="all", n=200).table
        assert (found["hits"] > 0).all()


def test_what_a_rule_sets_or_a_bound_clips_is_reached_to_the_last_bit() -> None:
    status = Feature("status", "category", levels=("a", "b"))
    rules = [IfThen("status == 'a'", "rate == 0.1"), IfThen("status == 'b'", "rate == 0.7")]
    for start in ({"status": "a", "rate": 0.1}, {"status": "b", "rate": 0.7}):
        assert set(InteractionModel([status, real("rate", 0, 1)], rules).sample(start, 40).points["rate"]) == {0.1, 0.7}
    held = real("held", 0.1, 0.9, actionable=False)
    steps = InteractionModel([Feature("n", "integer", bounds=(0, 20)), held], [DirectionalLinkage("n", {"held": 0.1}, on_exceed="clip")])
    reached = steps.enumerate({"n": 9, "held": 0.7}).points["held"]
    assert (reached.min(), reached.max()) == (0.1, 0.9)
    drawn = InteractionModel([real("n", 0, 1), held], [DirectionalLinkage("n", {"held": 5.0}, on_exceed="clip")]).sample({"n": 0.3, "held": 0.7}, 99).points
    assert (drawn["held"].min(), drawn["held"].max()) == (0.1, 0.9)
