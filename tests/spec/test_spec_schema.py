"""The JSON Schema accepts what the library accepts, and refuses what is not well formed."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import jsonschema
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import budge
from budge import cli
from budge.constraints import Constraint, Example, registry
from budge.errors import SpecError
from budge.features import Feature
from budge.spec import json_schema, to_text
from budge.spec.shapes import constraint_shape, feature_shape, python_only, spec_kinds, takes_text
from budge.testing.strategies import interaction_models

STUDIES = sorted((Path(__file__).parents[2] / "studies").glob("*.yaml"))
PACKAGED = Path(budge.__file__).parent / "datasets" / "lending.yaml"


@pytest.fixture(scope="module")
def schema() -> jsonschema.Draft202012Validator:
    made = json_schema()
    jsonschema.Draft202012Validator.check_schema(made)
    return jsonschema.Draft202012Validator(made)


@pytest.mark.parametrize("path", [*STUDIES, PACKAGED], ids=lambda p: p.stem)
def test_every_study_validates(path: Path, schema: jsonschema.Draft202012Validator) -> None:
    im = budge.InteractionModel.from_file(path)
    schema.validate(im.to_spec())
    schema.validate(json.loads(to_text(im, "json")))


@pytest.mark.parametrize("kind", sorted(spec_kinds()))
def test_every_example_validates_and_its_corruptions_do_not(kind: str, schema: jsonschema.Draft202012Validator) -> None:
    for example in registry()[kind].examples():
        spec = budge.InteractionModel(example.features, [example.constraint]).to_spec()
        schema.validate(spec)
        body = spec["constraints"][0][kind]
        corrupt: list[Any] = [7, None, [body], {}]
        if isinstance(body, dict):
            corrupt += [{**body, "extra": 1}, *({**body, key: {"no": ["such", {"thing": 1}]}} for key in body)]
            required = [p.alias for p in constraint_shape(registry()[kind]).model_fields.values() if p.is_required()]
            corrupt += [{k: v for k, v in body.items() if k != gone} for gone in required]
        for wrong in corrupt:
            assert not schema.is_valid({**spec, "constraints": [{kind: wrong}]}), wrong
            with pytest.raises(SpecError):
                budge.InteractionModel.from_spec({**spec, "constraints": [{kind: wrong}]})


GOOD: dict[str, Any] = {
    "budge": 1,
    "name": "all of it",
    "measure": "volume",
    "features": {
        "a": {"type": "integer", "bounds": [0, "inf"], "actionable": False},
        "b": {"type": "category", "levels": ["x", 2, True], "ordered": True, "direction": "increase"},
        "c": {"type": "category", "levels": ["x", "y"], "distribution": {"weights": {"x": 1, "y": 2}}},
        "d": {"type": "integer", "bounds": [1, 9], "distribution": {"weights": [[1, 0.5], [2, 0.5]]}, "missing": "fixed"},
        "e": {"type": "real", "bounds": [1, 9], "distribution": "log", "max_increase": 2, "max_decrease": None},
        "f": {"type": "real", "bounds": [1, 9], "distribution": {"empirical": [1, 2.5]}},
        "g": "fixed",
    },
    "constraints": [{"rule": "d >= e"}, {"rule": {"expression": "d >= f", "name": "more"}}],
    "latent": {"u": "normal(0, 1)", "pair": {"components": ["v", "w"], "draw": "multivariate_normal([0, 0], [[1, 0], [0, 1]])"}},
    "effects": [
        {"feature": "e", "add": "latent.u + latent.v", "clip": [1, 9], "name": "drift"},
        {"feature": "d", "multiply": 1, "clip": [1, 9]},
        {"feature": "f", "set": "latent.w", "clip": [1, 9]},
    ],
}

CORRUPT: dict[str, Any] = {
    "no version": lambda s: s.pop("budge"),
    "another version": lambda s: s.update(budge=2),
    "no features": lambda s: s.pop("features"),
    "an unknown key": lambda s: s.update(constrants=[]),
    "a name that is a number": lambda s: s.update(name=7),
    "an unknown measure": lambda s: s.update(measure="area"),
    "an unknown type": lambda s: s["features"]["a"].update(type="int"),
    "one bound": lambda s: s["features"]["a"].update(bounds=[1]),
    "a text for a bound": lambda s: s["features"]["a"].update(bounds=[0, "many"]),
    "an unknown direction": lambda s: s["features"]["b"].update(direction="up"),
    "a category without levels": lambda s: s["features"]["b"].pop("levels"),
    "an unknown feature key": lambda s: s["features"]["a"].update(step=1),
    "an unknown distribution": lambda s: s["features"]["e"].update(distribution="normal"),
    "weights that are a list": lambda s: s["features"]["c"].update(distribution={"weights": [1, 2]}),
    "a feature that is a text": lambda s: s["features"].update(a="binary"),
    "an unknown kind": lambda s: s["constraints"].append({"onehot": {"features": ["a", "b"]}}),
    "a predicate": lambda s: s["constraints"].append({"predicate": {"features": ["a"], "function": "f"}}),
    "two kinds at once": lambda s: s["constraints"].append({"rule": "a >= 1", "switch": {"when": "a == 1", "targets": ["b"]}}),
    "a latent list": lambda s: s["latent"].update(u=[1]),
    "two ways of an effect": lambda s: s["effects"][0].update(set="1"),
    "no way of an effect": lambda s: s["effects"][0].pop("add"),
    "an unknown effect key": lambda s: s["effects"][0].update(clp=[0, 1]),
}


def test_the_library_and_the_schema_accept_every_form(schema: jsonschema.Draft202012Validator) -> None:
    schema.validate(GOOD)
    im = budge.InteractionModel.from_spec(GOOD)
    assert im.by_name["a"].range == (0.0, float("inf"))
    assert im.by_name["d"].distribution is not None
    assert im.by_name["d"].distribution.values == (1, 2)
    schema.validate(im.to_spec())


@pytest.mark.parametrize("case", CORRUPT)
def test_the_library_and_the_schema_refuse_the_same(case: str, schema: jsonschema.Draft202012Validator) -> None:
    spec = copy.deepcopy(GOOD)
    CORRUPT[case](spec)
    assert not schema.is_valid(spec)
    if case != "no version":  # a mapping in Python may leave it out, a file may not
        with pytest.raises(SpecError):
            budge.InteractionModel.from_spec(spec)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(interaction_models())
def test_random_models_validate(im: budge.InteractionModel) -> None:
    try:
        spec = im.to_spec()
    except SpecError:  # holds a Python function
        return
    jsonschema.Draft202012Validator(json_schema()).validate(json.loads(json.dumps(spec)))


def test_the_schema_is_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(json_schema()))


def test_the_shapes_follow_the_dataclasses() -> None:
    fields = {part.alias for part in feature_shape().model_fields.values()}
    assert fields == {f for f in Feature.__dataclass_fields__ if f not in ("name", "kinds")}
    assert python_only(registry()["predicate"])
    assert takes_text(registry()["rule"]) == "expression"
    assert takes_text(registry()["if_then"]) is None


# -- a kind from another package needs no edit ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class AtLeast(Constraint):
    """Some feature is at least so much."""

    kind: ClassVar[str] = "at_least"
    feature: str
    least: float
    corners: tuple[float, float] | None = None
    weights: dict[str, float] = field(default_factory=dict)

    @property
    def scope(self) -> tuple[str, ...]:
        return (self.feature,)

    def mask(self, x: Any, action: Any, change: Any) -> Any:
        return np.asarray(x[self.feature]) + np.asarray(change[self.feature]) >= self.least

    def describe(self) -> str:
        return f"{self.feature} is at least {self.least:g}."

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example(cls("a", 2), (Feature("a", "integer", bounds=(0, 5)),), {"a": 3.0}, {"a": -2.0}, False),)


def test_a_kind_of_another_package_is_read_checked_and_written(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {**registry(), "at_least": AtLeast}
    for module in ("pieces", "shapes"):
        monkeypatch.setattr(f"budge.spec.{module}.kinds", lambda: kinds)
    spec = {
        "budge": 1,
        "features": {"a": {"type": "integer", "bounds": [0, 5]}},
        "constraints": [{"at_least": {"feature": "a", "least": 2}}],
    }
    im = budge.InteractionModel.from_spec(spec)
    assert im.constraints[0].to_spec() == {"at_least": {"feature": "a", "least": 2, "weights": {}}}
    assert budge.InteractionModel.from_spec(im.to_spec()) == im
    validator = jsonschema.Draft202012Validator(json_schema())
    validator.validate(spec)
    for body, message in [
        ({"feature": "a"}, "the field 'least' is missing"),
        ({"feature": "a", "least": "2"}, r"at_least\.least: must be a number"),
        ({"feature": "a", "leest": 2, "least": 2}, "did you mean 'least'"),
        ({"feature": "a", "least": 2, "corners": [1]}, r"at_least\.corners: needs at least 2 entries"),
        ({"feature": "b", "least": 2}, "not declared"),
    ]:
        with pytest.raises(SpecError, match=message):
            budge.InteractionModel.from_spec({**spec, "constraints": [{"at_least": body}]})
        assert body == {"feature": "b", "least": 2} or not validator.is_valid({**spec, "constraints": [{"at_least": body}]})
