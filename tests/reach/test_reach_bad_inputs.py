"""The table "Reaching" of the bad inputs, row by row (the solver's row is tested with the solver)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from budge import Effect, Feature, InteractionModel
from budge.constraints import IfThen, LinearConstraint, OneHot, Predicate, Rule
from budge.errors import DrawError, EmptyError, ReachError, TooLargeError
from budge.reach import viable
from cpu import within

A, B = Feature("a", "integer", bounds=(0, 5)), Feature("b", "integer", bounds=(0, 5))
X = {"a": 1, "b": 1}


def test_nothing_actionable_and_no_effect_is_fixed_and_exact() -> None:
    im = InteractionModel([A.but(actionable=False), Feature("note", "fixed")])
    found = im.enumerate({"a": 1, "note": "x"})
    assert (found.status, found.size) == ("fixed", 1)
    sample = im.sample({"a": 1, "note": "x"}, 3)
    assert (sample.status, sample.exact) == ("fixed", True)
    assert sample.points.to_dict("list") == {"a": [1, 1, 1], "note": ["x", "x", "x"]}


def test_contradictory_constraints_are_empty_and_name_a_minimal_set_that_clashes() -> None:
    im = InteractionModel(
        [A, B, Feature("c", "binary")],
        [
            Rule("a + b >= 8", name="high"),
            LinearConstraint({"a": 1, "b": 1}, "<=", 3, on="action", name="budget"),
            IfThen("c == 1", "a >= 1", name="idle"),
        ],
    )
    with pytest.raises(EmptyError) as caught:
        im.sample({"a": 1, "b": 1, "c": 0}, 3, on_invalid="keep")
    message = str(caught.value)
    assert "high" in message
    assert "budget" in message
    assert "idle" not in message
    for name in ("high", "budget"):  # leaving out either makes an action feasible
        assert im.without(name).sample({"a": 1, "b": 1, "c": 0}, 3, on_invalid="keep").n == 3


def test_10_to_the_30_configurations_are_refused_by_their_size_before_anything_is_allocated() -> None:
    im = InteractionModel([Feature(f"n{i}", "integer", bounds=(0, 999)) for i in range(10)])
    with within(2), pytest.raises(TooLargeError, match=r"1(,000){10} points"):
        im.enumerate({f"n{i}": 0 for i in range(10)})


def test_a_part_that_cannot_be_drawn_within_budget_names_itself_what_was_accepted_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(viable, "MOST", 2**16)
    im = InteractionModel(
        [Feature("r", "real", bounds=(0, 1)), Feature("s", "real", bounds=(0, 1))],
        [Rule("r * s >= 0.25 and r * s <= 0.2500001", name="a thin curve")],  # no box is tight around it
    )
    with within(20), pytest.raises(DrawError) as caught:
        im.sample({"r": 0.5, "s": 0.5}, 10, on_invalid="keep")
    message = str(caught.value)
    assert "part r, s" in message
    assert "none of its 1 configurations gave a point within 65,536 proposals" in message
    assert "tighten the bounds" in message


def test_a_whole_numbered_part_that_cannot_be_drawn_is_given_up_by_a_pilot() -> None:
    names = [f"n{i}" for i in range(12)]
    im = InteractionModel([Feature(n, "integer", bounds=(0, 99)) for n in names], [Rule(" * ".join(names) + " == 7")])
    said = set()
    for n, seed in ((1, 1), (10, 2), (500, 3)):  # the model and the person decide alone
        with within(2), pytest.raises(DrawError, match=r"part n0, .*0 of [0-9,]+ proposals were accepted; narrow the bounds") as caught:
            im.sample(dict.fromkeys(names, 1), n, seed=seed, on_invalid="keep")
        said.add(str(caught.value))
    assert len(said) == 1


def _raises(v: Any) -> Any:
    raise KeyError("oops")


def _short(v: Any) -> Any:
    return np.ones(1, dtype=bool) if len(v["a"]) > 1 else np.ones(2, dtype=bool)


def _nan(v: Any) -> Any:
    return np.full(len(v["a"]), np.nan)


def _writes(v: Any) -> Any:
    v["a"][:] = 0
    return np.ones(len(v["a"]), dtype=bool)


@pytest.mark.parametrize(
    ("function", "message"),
    [(_raises, "KeyError"), (_short, "truth values, one for each row"), (_nan, "must return truth values"), (_writes, "read-only")],
)
@pytest.mark.parametrize("kind", ["integer", "real"])
def test_a_predicate_that_misbehaves_is_named(function: Any, message: str, kind: str) -> None:
    features = [Feature(n, kind, bounds=(0, 5)) for n in "ab"]  # type: ignore[arg-type]
    im = InteractionModel(features, [Predicate(("a", "b"), function)])
    with pytest.raises(ReachError, match=message) as caught:
        im.sample(X, 5, on_invalid="keep")
    assert function.__name__ in str(caught.value)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda env, rng: np.full(len(env["a"]), np.nan), "finite"),
        (lambda env, rng: np.zeros(len(env["a"]) + 1), "must return 5 values"),
        (lambda env, rng: 1 / 0, "ZeroDivisionError"),
        (lambda env, rng: env["a"].__setitem__(0, 1.0), "read-only"),
        (lambda env, rng: np.full(len(env["a"]), 0.5), "a fraction"),
    ],
)
def test_an_effect_that_misbehaves_is_named(function: Any, message: str) -> None:
    im = InteractionModel([A, B.but(actionable=False)], effects=[Effect("b", add=function, reads=("a",), clip=(0, 5), name="the noise")])
    with pytest.raises(ReachError, match=message) as caught:
        im.sample(X, 5)
    assert "the noise" in str(caught.value)


def test_a_method_that_does_not_exist_is_refused() -> None:
    from budge.errors import DesignError

    with pytest.raises(DesignError, match="auto or milp"):
        InteractionModel([A]).sample({"a": 1}, 3, method="magic")  # type: ignore[arg-type]


@pytest.mark.parametrize("block_rows", [0, -5, 2.5, True, "many"])
def test_a_block_is_at_least_one_row(block_rows: Any) -> None:
    from budge.errors import DesignError

    with pytest.raises(DesignError, match="block_rows"):
        InteractionModel([A]).sample_many(pd.DataFrame({"a": [1]}), 3, block_rows=block_rows)


def test_the_paper_s_sampler_draws_the_same_set() -> None:
    """``method="milp"`` proposes from the box and asks the solver: an oracle, on a small group."""
    im = InteractionModel([A, *(Feature(f"d{i}", "binary") for i in range(3))], [OneHot(("d0", "d1", "d2")), Rule("a + d0 <= 3")])
    x = {"a": 1, "d0": 1, "d1": 0, "d2": 0}
    asked = im.sample(x, 200, seed=1, method="milp")
    every = {tuple(row) for row in im.enumerate(x).values}
    assert {tuple(row) for row in asked.values} <= every
    assert asked.parts[0].method == "milp"
