"""Reading by itself: scalars of YAML 1.2, lines, names with dots, the mapping that features may be given as."""

from __future__ import annotations

import contextlib
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import budge
from budge.errors import SpecError
from budge.spec import features_from, model_from, parse
from budge.spec.document import Document
from budge.spec.json_text import parse_json
from budge.spec.toml_text import parse_toml
from budge.spec.yaml_text import parse_yaml, scalar


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"), ("yes", "yes"), ("on", "on"), ("12:30", "12:30"), ("2020-01-01", "2020-01-01"), ("1_000", "1_000"),
        ("true", True), ("False", False), ("~", None), ("null", None), ("-7", -7), ("+7", 7), ("007", 7), ("0o17", 15), ("0x1F", 31),
        ("1.", 1.0), (".5", 0.5), ("-1e-3", -0.001), (".inf", math.inf), ("-.INF", -math.inf), ("1e999", math.inf), ("--1", "--1"),
    ],
)  # fmt: skip
def test_scalars_of_the_core_schema(text: str, value: Any) -> None:
    got = scalar(text)
    assert got == value
    assert type(got) is type(value)


def test_quoted_scalars_are_texts() -> None:
    assert parse_yaml("a: '1'\nb: \"true\"\nc: |\n  7\n").tree == {"a": "1", "b": "true", "c": "7\n"}


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**30), 10**30), st.floats(allow_nan=False, allow_infinity=False), st.text()
)
trees = st.recursive(
    scalars, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4)), max_leaves=20
)


@given(trees, st.sampled_from([None, 1, 3]))
def test_our_json_reader_agrees_with_the_standard_one(tree: Any, indent: int | None) -> None:
    text = json.dumps(tree, indent=indent)
    assert parse_json(text).tree == json.loads(text)


@given(st.text(alphabet='{}[]",:01.eE+-\\ntrufalsp \n"', max_size=30))
def test_our_json_reader_refuses_what_the_standard_one_refuses(text: str) -> None:
    try:
        wanted: Any = json.loads(text, parse_constant=lambda _: 1 / 0)
    except (ValueError, ZeroDivisionError):
        with pytest.raises(SpecError):
            parse_json(text, "a.json")
        return
    try:
        assert parse_json(text, "a.json").tree == wanted
    except SpecError as error:
        assert "stands twice" in str(error)  # noqa: PT017  (the one thing in which we are stricter)


@given(st.text(max_size=40) | st.text(alphabet="ab:-[]{}, \n#&*!|>'\"%@`?", max_size=40))
def test_any_text_is_read_or_refused_as_a_spec_error(text: str) -> None:
    for reader in (parse_yaml, parse_json, parse_toml):
        with contextlib.suppress(SpecError):
            reader(text, "a")


def test_lines_of_all_three_formats() -> None:
    yaml = parse_yaml(
        "budge: 1\nfeatures:\n  a.b: {type: binary,\n     bounds: [0, 1]}\nconstraints:\n- rule: x\n- rule: y\n", "s"
    )
    assert yaml.where("features.a.b.bounds[1]") == "s:4 features.a.b.bounds[1]"
    assert yaml.where("constraints[1].rule.expression.column 3") == "s:7 constraints[1].rule.expression.column 3"
    assert yaml.where("features.gone") == "s:2 features.gone"
    assert yaml.where("") == "s:1"
    js = parse_json('{"a": {\n"b": [1,\n2]}}', "s")
    assert js.where("a.b[1]") == "s:3 a.b[1]"
    toml = parse_toml(
        'budge = 1\n[features]\n"a.b" = {type = "binary"}\n[[constraints]]\nrule = "x"\n[[constraints]]\n[constraints.linear]\nconstant = 1\n',
        "s",
    )
    assert toml.where("features.a.b.type") == "s:3 features.a.b.type"
    assert toml.where("constraints[0].rule") == "s:5 constraints[0].rule"
    assert toml.where("constraints[1].linear.constant") == "s:8 constraints[1].linear.constant"


def test_a_mapping_has_no_lines() -> None:
    assert Document({"a": 1}).where("a") == "a"
    with pytest.raises(SpecError) as caught:
        model_from({"features": {"a": {"type": "binary", "actionable": "no"}}})
    assert caught.value.problems[0].where == "features.a.actionable"


def test_a_key_left_empty_counts_as_nothing() -> None:
    im = parse(
        "budge: 1\nname:\nfeatures:\n  a: {type: binary, direction: }\nconstraints:\n  # - rule: x\nlatent:\neffects:\n", "yaml"
    )
    assert im.constraints == ()
    assert im.name == ""


def test_features_may_be_a_mapping_of_both_kinds() -> None:
    made = features_from({"a": budge.Feature("a", "binary"), "b": {"type": "integer", "bounds": (0, 3)}, "c": "fixed"})
    assert [f.type for f in made] == ["binary", "integer", "fixed"]
    assert budge.InteractionModel({"b": {"type": "integer", "bounds": [0, 3]}}).by_name["b"].bounds == (0, 3)
    with pytest.raises(SpecError) as caught:
        features_from({"a": {"tpe": "binary"}, "b": {"type": "integer", "bounds": "wide"}})
    assert len(caught.value.problems) == 3


def test_numbers_of_numpy_are_numbers() -> None:
    import numpy as np

    im = model_from(
        {
            "features": {
                "a": {"type": "integer", "bounds": np.array([0, 3])},
                "b": {"type": "real", "bounds": (np.float64(0), np.int8(2))},
            }
        }
    )
    assert im == model_from({"features": {"a": {"type": "integer", "bounds": [0, 3]}, "b": {"type": "real", "bounds": [0.0, 2]}}})


def test_what_no_spec_holds_is_refused() -> None:
    with pytest.raises(SpecError, match=r"features\.a\.bounds: a spec holds texts.*'object'"):
        model_from({"features": {"a": {"type": "integer", "bounds": object()}}})
    with pytest.raises(SpecError, match=r"features\.a\.bounds\[1\]: is no number that can be used"):
        model_from({"features": {"a": {"type": "integer", "bounds": [0, 10**400]}}})
    deep: Any = {}
    for _ in range(100):
        deep = {"a": deep}
    with pytest.raises(SpecError, match="nested too deeply"):
        model_from(deep)


def test_a_number_may_stand_for_a_draw() -> None:
    im = model_from({"features": {"a": {"type": "binary"}}, "effects": [{"feature": "a", "set": 1}]})
    assert im.effects[0].draw == "1"


def test_a_byte_order_mark_and_windows_lines_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xef\xbb\xbfbudge: 1\r\nfeatures:\r\n  a: {type: binary}\r\n")
    assert budge.InteractionModel.from_file(tmp_path / "a.yaml").features[0].name == "a"
    (tmp_path / "b.yaml").write_bytes(b"\xef\xbb\xbfbudge: 1\nab: \xff\n")
    with pytest.raises(SpecError, match=r"not UTF-8 at byte 16"):
        budge.InteractionModel.from_file(tmp_path / "b.yaml")


def test_problems_that_follow_from_others_are_not_told() -> None:
    """A constraint on a feature that could not be read is not blamed for it, nor an effect on a broken latent draw."""
    with pytest.raises(SpecError) as caught:
        model_from({
            "features": {"a": {"type": "binry"}, "b": {"type": "binary"}, "c": {"type": "real", "bounds": [0, 1]}},
            "constraints": [{"one_hot": {"features": ["a", "b"]}}, {"one_hot": {"features": ["b", "c"]}}],
            "latent": {"u": 7},
            "effects": [{"feature": "c", "add": "latent.u", "clip": [0, 1]}, {"feature": "c", "add": "normal(0, 1)"}],
        })  # fmt: skip
    assert [p.where for p in caught.value.problems] == [
        "features.a.type", "latent.u", "constraints[1].one_hot.features", "effects[1]",
    ]  # fmt: skip


def test_the_specs_that_the_documentation_shows_are_read() -> None:
    root = Path(__file__).parents[2]
    pages = [*(root / "docs").rglob("*.md"), root / "README.md"]
    shown = [
        block
        for page in pages
        for block in re.findall(r"```yaml\n(budge: 1\n.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    ]
    assert shown
    for text in shown:
        parse(text, "yaml")
