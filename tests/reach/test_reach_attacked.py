"""What attacks on reaching found: each was wrong, refused or slow once."""

from __future__ import annotations

import numpy as np
import pytest

from budge import Feature, InteractionModel
from budge.constraints import LinearConstraint, Rule
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
