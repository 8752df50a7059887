"""ok, fixed, empty, invalid_start: exactly as the semantics says, for one person and in a stream of many."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from budge import Effect, Feature, InteractionModel
from budge.constraints import LinearConstraint, OneHot, Ordinal, Reachability, Rule, Switch, Thermometer
from budge.errors import DesignError, EmptyError, InvalidStartError

NUMBER = Feature("n", "integer", bounds=(0, 5))
FLAG = Feature("flag", "binary")


def status(im: InteractionModel, x: dict[str, object], **options: object) -> str:
    """The status of one person, which a stream of one tells as well."""
    blocks = list(im.sample_many(pd.DataFrame([x]), 3, **options))  # type: ignore[arg-type]
    (told,) = [word for block in blocks for word in block.status]
    if told in ("ok", "fixed"):
        assert im.sample(x, 3, **options).status == told  # type: ignore[arg-type]
        assert blocks[0].values.shape == (3, len(im.features))
    else:
        assert blocks[0].values.shape == (0, len(im.features))
        assert len(blocks[0].points) == 0
    return told


def test_ok_is_when_something_can_move() -> None:
    assert status(InteractionModel([NUMBER]), {"n": 2}) == "ok"
    assert status(InteractionModel([Feature("r", "real", bounds=(0, 1))]), {"r": 0.0}) == "ok"


def test_ok_is_also_when_staying_is_not_allowed_but_moving_is() -> None:
    im = InteractionModel([NUMBER], [Rule("n > before.n")])
    assert status(im, {"n": 2}) == "ok"
    assert 2 not in im.enumerate({"n": 2}).points["n"].tolist()


def test_fixed_is_when_only_staying_is_feasible_and_no_effect_acts() -> None:
    assert status(InteractionModel([NUMBER.but(actionable=False)]), {"n": 2}) == "fixed"
    assert status(InteractionModel([NUMBER.but(direction="increase")]), {"n": 5}) == "fixed"
    assert status(InteractionModel([Feature("r", "real", bounds=(0, 1), direction="decrease")]), {"r": 0.0}) == "fixed"
    assert status(InteractionModel([NUMBER, FLAG], [Switch("flag == 0", ("n",)), Rule("flag == 0")]), {"n": 2, "flag": 0}) == "fixed"
    frozen = InteractionModel([Feature("r", "real", bounds=(0, 9)), FLAG.but(actionable=False)], [Switch("flag == 1", ("r",))])
    assert status(frozen, {"r": 3.0, "flag": 1}) == "fixed"
    assert frozen.enumerate({"r": 3.0, "flag": 1}).points.values.tolist() == [[3.0, 1]]
    budget = InteractionModel([Feature(n, "real", bounds=(0, 1)) for n in "ab"], [Rule("a + b == 2")])
    assert status(budget, {"a": 1.0, "b": 1.0}) == "fixed"


def test_one_other_point_is_not_fixed() -> None:
    im = InteractionModel([NUMBER], [Rule("n == 4")])
    assert status(im, {"n": 2}, on_invalid="keep") == "ok"
    assert im.sample({"n": 2}, 2, on_invalid="keep").points["n"].tolist() == [4, 4]


def test_an_effect_keeps_a_person_from_being_fixed() -> None:
    still = NUMBER.but(actionable=False)
    im = InteractionModel([still], effects=[Effect("n", add="integers(0, 1)", clip=(0, 5))])
    assert status(im, {"n": 2}) == "ok"


def test_a_missing_value_is_fixed() -> None:
    im = InteractionModel([NUMBER.but(missing="fixed")])
    assert status(im, {"n": None}) == "fixed"


def test_empty_is_when_not_even_staying_is_feasible_and_names_the_constraints_that_clash() -> None:
    im = InteractionModel(
        [NUMBER, FLAG, Feature("other", "integer", bounds=(0, 5))],
        [Rule("n > before.n", name="must rise"), Rule("n <= 2", name="at most two"), Rule("n + other + flag <= 30", name="harmless")],
    )
    assert status(im, {"n": 2, "flag": 0, "other": 0}) == "empty"
    with pytest.raises(EmptyError) as caught:
        im.sample({"n": 2, "flag": 0, "other": 0}, 3)
    assert "must rise" in str(caught.value)
    assert "at most two" in str(caught.value)
    assert "harmless" not in str(caught.value)
    assert status(im, {"n": 1, "flag": 0, "other": 0}) == "ok"


def test_what_clashes_is_named_where_it_is_not_linear() -> None:
    im = InteractionModel(
        [NUMBER, Feature("m", "integer", bounds=(0, 5)), FLAG],
        [Rule("n * m >= 20", name="large"), Rule("n ** 2 <= 9", name="small"), Rule("flag * n * m <= 99", name="harmless")],
    )
    with pytest.raises(EmptyError) as caught:
        im.sample({"n": 0, "m": 0, "flag": 0}, 1, on_invalid="keep")
    assert "large" in str(caught.value)
    assert "small" in str(caught.value)
    assert "harmless" not in str(caught.value)


def test_empty_over_real_features() -> None:
    im = InteractionModel([Feature(n, "real", bounds=(0, 1)) for n in "ab"], [Rule("a + b >= 1.5"), Rule("a - b >= 0.75")])
    assert status(im, {"a": 0.1, "b": 0.1}, on_invalid="keep") == "empty"
    with pytest.raises(EmptyError, match=r"rule\(a, b\)"):
        im.sample({"a": 0.1, "b": 0.1}, 1, on_invalid="keep")


@pytest.mark.parametrize(
    ("constraint", "x"),
    [
        (OneHot(("d0", "d1")), {"d0": 1, "d1": 1}),
        (Ordinal(("d0", "d1")), {"d0": 0, "d1": 0}),
        (Thermometer(("d0", "d1")), {"d0": 0, "d1": 1}),
        (Reachability(("d0", "d1"), ((0, 0), (1, 0))), {"d0": 1, "d1": 1}),
        (LinearConstraint({"d0": 1, "d1": 1}, "<=", 1), {"d0": 1, "d1": 1}),
        (Rule("d0 == 1 or d1 == 1"), {"d0": 0, "d1": 0}),
    ],
    ids=lambda v: getattr(v, "kind", ""),
)
def test_invalid_start_is_when_the_person_breaks_a_value_constraint_and_names_it(constraint: object, x: dict[str, int]) -> None:
    im = InteractionModel([Feature("d0", "binary"), Feature("d1", "binary")], [constraint])  # type: ignore[list-item]
    label = im.constraints[0].label
    for call in (lambda: im.enumerate(x), lambda: im.sample(x, 3), lambda: list(im.sample_many(pd.DataFrame([x]), 3))):
        with pytest.raises(InvalidStartError) as caught:
            call()
        assert label in str(caught.value)
    assert status(im, x, on_invalid="skip") == "invalid_start"
    skipped = im.sample(x, 3, on_invalid="skip")
    assert (skipped.status, skipped.n) == ("invalid_start", 0)
    assert im.enumerate(x, on_invalid="skip").status == "invalid_start"
    kept = im.sample(x, 30, on_invalid="keep")
    assert kept.problems
    start = np.array([x["d0"], x["d1"]])
    assert im.feasible(x, kept.values - start).all()


def test_movements_cannot_be_broken_by_a_start() -> None:
    im = InteractionModel(
        [NUMBER, FLAG],
        [Switch("flag == 0", ("n",), otherwise="any"), LinearConstraint({"n": 1}, "<=", 2, on="action"), Rule("n >= before.n")],
    )
    assert im.broken({"n": 5, "flag": 1}) == ()


def test_bounds_that_a_start_breaks_are_named_with_the_row() -> None:
    X = pd.DataFrame({"n": [1, 9, 2, -3]}, index=list("abcd"))
    im = InteractionModel([NUMBER])
    with pytest.raises(InvalidStartError, match=r"row b.*bounds of n.*1 more row"):
        im.sample_many(X, 3)
    block = next(im.sample_many(X, 3, on_invalid="skip"))
    assert block.status == ("ok", "invalid_start", "ok", "invalid_start")
    assert block.labels == ["a", "c"]
    assert block.people.tolist() == [0, 2]
    kept = next(im.sample_many(X, 200, seed=1, on_invalid="keep"))
    assert kept.status == ("ok",) * 4
    low = kept.values[600:, 0]
    assert set(low) == set(range(-3, 6))


def test_a_start_that_is_kept_and_cannot_mend_itself_is_empty() -> None:
    im = InteractionModel(
        [NUMBER, Feature("d0", "binary", actionable=False), Feature("d1", "binary", actionable=False)], [OneHot(("d0", "d1"), name="one")]
    )
    x = {"n": 1, "d0": 1, "d1": 1}
    assert status(im, x, on_invalid="keep") == "empty"
    with pytest.raises(EmptyError, match="one"):
        im.enumerate(x, on_invalid="keep")
    assert status(im, {"n": 1, "d0": 1, "d1": 0}) == "ok"


def test_a_policy_that_does_not_exist_is_refused_everywhere() -> None:
    im = InteractionModel([NUMBER])
    for call in (
        lambda: im.enumerate({"n": 1}, on_invalid="drop"),  # type: ignore[arg-type]
        lambda: im.sample({"n": 1}, 3, on_invalid="drop"),  # type: ignore[arg-type]
        lambda: im.sample_many(pd.DataFrame({"n": [1]}), 3, on_invalid="drop"),  # type: ignore[arg-type]
    ):
        with pytest.raises(DesignError, match="error, skip or keep"):
            call()


def test_a_stream_tells_every_status_and_draws_only_whom_it_can() -> None:
    im = InteractionModel([NUMBER.but(direction="increase"), FLAG.but(actionable=False)], [Rule("n > before.n or flag == 1")])
    X = pd.DataFrame({"n": [1, 5, 5, 9], "flag": [0, 0, 1, 1]})
    block = next(im.sample_many(X, 4, on_invalid="skip"))
    assert block.status == ("ok", "empty", "fixed", "invalid_start")
    assert block.people.tolist() == [0, 2]
    assert len(block.points) == 8
    assert (block.points["n"][4:] == 5).all()
