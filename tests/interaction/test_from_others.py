"""Interaction models from reachml, DiCE and alibi: the same points where the packages mean the same, a stated difference where not, and clear refusals."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import budge
from budge import InteractionModel
from budge.errors import InputError, SpecError

RECORDED: dict[str, Any] = json.loads((Path(__file__).with_name("reachml_recorded.json")).read_text(encoding="utf-8"))
TYPES = {"bool": bool, "int": int, "float": float}


class ActionSet(list[Any]):
    """Elements in order, and constraints, as reachml's own set shows them."""

    constraints: list[Any]


def named(kind: str, **attributes: Any) -> Any:
    """Return an object of a class of that name with these attributes."""
    return type(kind, (SimpleNamespace,), {})(**attributes)


def action_set(case: dict[str, Any]) -> ActionSet:
    made = ActionSet(named("ActionElement", **{**e, "variable_type": TYPES[e["variable_type"]]}) for e in case["elements"])
    made.constraints = []
    for given in case["constraints"]:
        attributes = {key: SimpleNamespace(**v) if key.endswith("_condition") else v for key, v in given.items() if key != "kind"}
        if "values" in attributes:
            attributes |= {key: np.array(attributes[key]) for key in ("values", "reachability")}
        made.constraints.append(named(given["kind"], **attributes))
    return made


def points(im: InteractionModel, x: list[float]) -> set[tuple[float, ...]]:
    start = dict(zip([f.name for f in im.features], x))
    return {tuple(map(float, row)) for row in im.enumerate(start).points.to_numpy()}


@pytest.mark.parametrize("name", [name for name in RECORDED if name not in ("switch, forced", "if then")])
def test_the_same_points_as_reachml(name: str) -> None:
    im = InteractionModel.from_reachml(action_set(RECORDED[name]))
    for run in RECORDED[name]["reached"]:
        assert points(im, run["x"]) == {tuple(p) for p in run["points"]}


def test_the_recorded_action_sets_hold_every_kind_that_has_a_mapping() -> None:
    from budge.from_others import _REACHML

    kinds = {c["kind"] for case in RECORDED.values() for c in case["constraints"]}
    assert kinds == set(_REACHML) - {"AdditiveLinkage"}  # reachml 0.2.0a1 cannot make one: an abstract method is missing
    assert sum(len(run["points"]) for case in RECORDED.values() for run in case["reached"]) > 500


def test_a_forced_switch_excludes_the_start_that_reachml_always_lists() -> None:
    case = RECORDED["switch, forced"]
    im = InteractionModel.from_reachml(action_set(case))
    assert im.constraints == (budge.constraints.Switch("none == 1", ("b", "d"), otherwise="any").bind(im.by_name),)
    first, second = case["reached"]
    assert {tuple(p) for p in first["points"]} - points(im, first["x"]) == {(0.0, 1.0, 2.0)} == {tuple(map(float, first["x"]))}
    assert points(im, first["x"]) < {tuple(p) for p in first["points"]}
    assert points(im, second["x"]) == {tuple(p) for p in second["points"]}


def test_an_if_then_is_about_actions_and_allows_all_that_its_condition_leaves_open() -> None:
    """While the condition is false, reachml 0.2.0a1 holds the other feature still, and forbids some moves of the first; the rule itself does not."""
    case = RECORDED["if then"]
    im = InteractionModel.from_reachml(action_set(case))
    for run in case["reached"]:
        x = run["x"]
        rule = {(float(a), float(b)) for a in range(5) for b in range(5) if a - x[0] < 2 or b - x[1] == 1}
        assert points(im, x) == rule > {tuple(p) for p in run["points"]}


if find_spec("reachml") and find_spec("cplex"):  # in no extra, since reachml pins nothing that it needs: without them the recorded sets are what is compared

    def test_the_record_is_what_reachml_gives_now() -> None:
        from reachml_record import record

        assert record() == RECORDED


def test_an_additive_linkage_of_reachml() -> None:
    case = {"elements": [{**RECORDED["if then"]["elements"][0], "name": n} for n in ("moved", "x", "y")], "constraints": []}
    given = action_set(case)
    terms = {"source": "moved", "linkage_type": "L"}
    given.constraints = [named("AdditiveLinkage", **terms, source_coeff=np.float64(1), targets=["x", "y"], target_coeffs=[1, np.int64(2)])]
    im = InteractionModel.from_reachml(given)
    assert im.constraints[0].to_spec() == {"additive_linkage": {"source": "moved", "targets": {"x": 1, "y": 2}, "relation": "<="}}


def test_a_reachml_model_is_a_spec_like_any_other(tmp_path: Path) -> None:
    for name, case in RECORDED.items():
        im = InteractionModel.from_reachml(action_set(case), name=name)
        assert InteractionModel.from_file(im.to_file(tmp_path / f"{name}.yaml")) == im
        assert im.name == name


def test_everything_of_reachml_that_has_no_mapping_is_one_error() -> None:
    case = RECORDED["switch, forced"]
    given = action_set(case)
    given.append(named("ActionElement", **{**vars(given[1]), "name": "odd", "variable_type": complex}))
    given.append(named("ActionElement", **{**vars(given[1]), "name": "endless", "lb": -np.inf, "ub": np.inf}))
    given.append(named("ActionElement", name="bare"))
    link = {"source": "b", "targets": ["none"], "scales": np.array([1.0]), "linkage_type": "E"}
    given.constraints += [
        named("LinkActions", names=["b", "d"]),
        named("DirectionalLinkage", keep_bounds=False, **link),
        named("OneHotEncoding", names=["b", "nowhere"], limit=1, limit_type="equal"),
        named("IfThenConstraint", if_condition=None),
    ]
    with pytest.raises(SpecError) as refused:
        InteractionModel.from_reachml(given)
    told = str(refused.value)
    for part in (
        "features.odd: an element is bool, int or float",
        "features.endless.bounds: no uniform draw over an infinite range", "an element cannot be read",
        "constraints[1].LinkActions: a constraint of this kind has no mapping",
        "constraints[2].DirectionalLinkage.targets: a binary target would leave 0 and 1 (got 'none'); set keep_bounds=True",
        "constraints[3].OneHotEncoding.features", "nowhere", "constraints[4].IfThenConstraint: cannot be read",
    ):  # fmt: skip
        assert part in told, told
    for wrong in ({"a": 1}, 7):
        with pytest.raises(InputError, match=r"action_set: is no action set of reachml .*give a reachml\.ActionSet"):
            InteractionModel.from_reachml(wrong)  # type: ignore[arg-type]


def dice() -> SimpleNamespace:
    """Return the attributes of dice_ml 0.12's public data: categories are texts, floats have 32 bits."""
    frame = pd.DataFrame({"age": [20, 61, 40], "pay": [20.5, 40, 31], "job": ["none", "part", "full"], "kids": ["2", "0", "1"], "one": "x", "y": [0, 1, 1]})
    frame = frame.astype({"age": "int32", "pay": "float32", "job": "category", "kids": "category", "one": "category"})
    ranges = {"age": [20, 61], "pay": [20.5, 40.0], "job": ["none", "part", "full"], "kids": ["2", "0", "1"], "one": ["x"]}
    names = list(ranges)
    return SimpleNamespace(
        data_df=frame, feature_names=names, continuous_feature_names=names[:2], categorical_feature_names=names[2:], permitted_range=ranges, outcome_name="y"
    )


def test_dice_moves_what_varies_within_what_is_permitted() -> None:
    im = InteractionModel.from_dice(dice(), ["age", "job", "kids"], {"age": [30.5, 33], "job": ["part", "full"]}, name="loans")
    assert [(f.name, f.type, f.actionable) for f in im.features] == [
        ("age", "integer", True), ("pay", "real", False), ("job", "category", True), ("kids", "category", True), ("one", "fixed", False)
    ]  # fmt: skip
    assert (im.name, im.by_name["age"].bounds, im.by_name["pay"].bounds) == ("loans", (31, 33), (20.5, 40))
    start = pd.DataFrame({"age": [31], "pay": [30.0], "job": ["none"], "kids": ["1"], "one": ["x"]})
    reached = im.enumerate(start).points
    assert len(reached) == 3 * 3 * 3
    assert set(reached["job"]) == {"none", "part", "full"}  # a start that is not permitted may stay
    again = im.enumerate(start.assign(job="part")).points
    assert set(again["job"]) == {"part", "full"}
    assert set(reached["pay"]) == {30.0}
    assert InteractionModel.from_dice(dice()).by_name["pay"].actionable


def test_what_was_permitted_with_the_data_holds_too() -> None:
    data = dice()
    data.permitted_range["job"] = ["full"]
    im = InteractionModel.from_dice(data, permitted_range={"age": [30, 33]})
    assert im.by_name["job"].levels == ("full", "none", "part")
    assert im.constraints[0].reachable == ((1, 0, 0), (1, 1, 0), (1, 0, 1))


def test_dice_private_data() -> None:
    data = SimpleNamespace(
        feature_names=["age", "pay", "job"], continuous_feature_names=["age", "pay"], permitted_range={"age": [18, 80], "pay": [0.0, 9.5], "job": ["a", "b"]},
        categorical_levels={"job": ["a", "b"]}, type_and_precision={"age": "int", "pay": ["float", 1]},
    )  # fmt: skip
    assert [(f.type, f.bounds, f.levels) for f in InteractionModel.from_dice(data).features] == [
        ("integer", (18, 80), None), ("real", (0, 9.5), None), ("category", None, ("a", "b"))
    ]  # fmt: skip


def test_everything_wrong_with_a_question_to_dice_is_one_error() -> None:
    with pytest.raises(SpecError) as refused:
        InteractionModel.from_dice(dice(), ["agee"], {"pay": [3], "age": [9, 2], "job": ["ful"], "wage": [0, 1], "kids": []})
    told = str(refused.value)
    for part in (
        "features_to_vary: no such feature (got 'agee'); did you mean 'age'", "permitted_range: no such feature (got 'wage')",
        "permitted_range.pay: a number has a lowest and a highest value (got [3])", "features.age.bounds: the lower bound is above the upper",
        "permitted_range.job: not a level that DiCE has seen (got 'ful'); did you mean 'full'", "permitted_range.kids: permits no level",
    ):  # fmt: skip
        assert part in told, told
    with pytest.raises(SpecError, match="names no feature"):
        InteractionModel.from_dice(dice(), [])
    with pytest.raises(SpecError, match=r"must be 'all' or a list of features \(got 'age'\); write \['age'\]"):
        InteractionModel.from_dice(dice(), "age")
    with pytest.raises(InputError, match=r"is no data object of DiCE .*dice_ml\.Data"):
        InteractionModel.from_dice(pd.DataFrame({"a": [1]}))  # type: ignore[arg-type]


ALIBI: dict[str, Any] = {
    "feature_names": ["age", "hours", "debt", "job", "sex", "one"], "category_map": {3: ["none", "part", "full"], 4: ["m", "f"], 5: ["x"]},
    "immutable_features": ["sex"], "ranges": {"age": [0.0, 0.1], "debt": [-1.0, 0.0]}, "weight_num": 1.0,
}  # fmt: skip
TRAINING = np.array([[20, 10.5, 0, 0, 0, 0], [70, 30, 9, 1, 1, 0], [40, 20, 4, 2, 0, 0]], dtype=float)


def test_alibi_moves_by_shares_of_what_training_spans() -> None:
    im = InteractionModel.from_alibi(SimpleNamespace(params=ALIBI), TRAINING, name="adult")
    assert im == InteractionModel.from_alibi(ALIBI, pd.DataFrame(TRAINING), name="adult")
    assert [f.type for f in im.features] == ["integer", "real", "integer", "category", "category", "fixed"]
    points = im.freeze("hours").enumerate(pd.DataFrame([[68.0, 20.0, 4.0, 1.0, 1.0, 0.0]], columns=ALIBI["feature_names"])).points
    # clip(x + [0, 0.1] · 50, 20, 70), clip(x − 9 … x, 0, 9), any job
    assert sorted(set(points["age"])) == [68, 69, 70]
    assert sorted(set(points["debt"])) == [0, 1, 2, 3, 4]
    assert sorted(set(points["job"])) == [0, 1, 2]
    assert set(points["sex"]) == {1}
    assert set(points.dtypes.astype(str)) == {"float64"}  # codes come back as they were given
    assert im.by_name["hours"].moves(20.0) == (-9.5, 10.0)
    assert not InteractionModel.from_alibi({**ALIBI, "ranges": {"age": [0, 0]}}, TRAINING).by_name["age"].actionable


def test_everything_wrong_with_what_alibi_declares_is_one_error() -> None:
    wrong = {**ALIBI, "immutable_features": ["sexx"], "ranges": {"age": [0.2, 0.1], "job": [0, 1], "hours": "up", "wages": [0, 1]}}
    wrong |= {"category_map": {3: ["a", "b", "c"], 9: ["d"]}}
    with pytest.raises(SpecError) as refused:
        InteractionModel.from_alibi(wrong, np.where(TRAINING == 9, np.nan, TRAINING))
    told = str(refused.value)
    for part in (
        "immutable_features: no such feature (got 'sexx'); did you mean 'sex'", "ranges: no such feature (got 'wages')",
        "ranges.age: a range lies between -1 and 0",
        "ranges.job: a category has no range", "hours: needs numbers in X, and a range of two numbers",
        "X.debt: the training data have a missing", "category_map: no such column (got 9)",
    ):  # fmt: skip
        assert part in told, told
    with pytest.raises(InputError, match="only explainers that state what people can change have one"):
        InteractionModel.from_alibi(SimpleNamespace(params={"feature_range": (0, 1)}), TRAINING)  # a CounterfactualProto
    with pytest.raises(InputError, match="need rows and 6 columns"):
        InteractionModel.from_alibi(ALIBI, TRAINING[:, :3])
