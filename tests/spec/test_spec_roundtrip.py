"""What is written reads back as the same model: in every format, for any names, levels and numbers."""

from __future__ import annotations

import json
import math
import os
import stat
import tomllib
import unicodedata
import warnings
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import budge
from budge.constraints import registry
from budge.distributions import Distribution
from budge.errors import BudgeError, OutputExistsError, SpecError, StorageError
from budge.expressions import quote
from budge.features import Feature
from budge.spec import parse, to_text
from budge.spec.shapes import python_only
from budge.testing.strategies import interaction_models

Format = Literal["yaml", "json", "toml"]
FORMATS: tuple[Format, ...] = ("yaml", "json", "toml")
STUDIES = sorted((Path(__file__).parents[2] / "studies").glob("*.yaml"))

# Names that other readers of YAML trip over, and any text at all.
ODD = ["no", "null", "~", "1", "1.5", "0x1f", ".inf", "12:30", "2020-01-01", "a: b", "#a", "- a", "a#", "'", '"', "\\", "a\nb", "\t", "é", "😀", "\u2028", "\x85", "=", "<<", "&a", "*a", "!a", "%a", "@a", "`a`", "a.b", "a[0]", "{", "[", ",", "?", ":", "true", "ye s", " a", "a ", "\ufeff", "\x7f", "\U000e0001"]  # fmt: skip  # noqa: E501
texts = st.one_of(
    st.sampled_from(ODD), st.text(min_size=1, max_size=8).filter(lambda s: not any("\ud800" <= c <= "\udfff" for c in s))
)
numbers = st.one_of(st.integers(-(2**53), 2**53), st.floats(-1e300, 1e300), st.floats(-10, 10))


def looks(name: str) -> str:
    """What a reader sees: names that look alike are refused."""
    return unicodedata.normalize("NFKC", name).casefold().strip()


@st.composite
def features(draw: st.DrawFn, name: str) -> Feature:
    kind = draw(st.sampled_from(["binary", "integer", "real", "category", "fixed"]))
    options: dict[str, Any] = {"missing": draw(st.sampled_from(["error", "fixed"]))} if draw(st.booleans()) else {}
    if kind == "fixed":
        return Feature(name, "fixed", **options)
    options["actionable"] = draw(st.booleans())
    if kind == "category":
        scalars = st.one_of(texts, st.integers(2, 10**6), st.floats(0.5, 1.5).filter(lambda v: not v.is_integer()))
        levels = tuple(draw(st.lists(scalars, min_size=2, max_size=4, unique_by=str)))
        options |= {"levels": levels, "ordered": draw(st.booleans())}
        if draw(st.booleans()):
            weights = draw(st.lists(st.floats(0.25, 4), min_size=len(levels), max_size=len(levels)))
            options["distribution"] = Distribution("weights", levels, tuple(weights))
    elif kind == "binary":
        options["distribution"] = draw(st.sampled_from([None, Distribution("weights", (0, 1), (1.0, 3.0))]))
    else:
        ends = st.integers(-(2**53), 2**53) if kind == "integer" else numbers
        low, high = sorted([draw(ends), draw(ends)])
        if not options["actionable"] and draw(st.booleans()):
            low, high = draw(st.sampled_from([(low, math.inf), (-math.inf, high), (-math.inf, math.inf)]))
        options["bounds"] = (low, high)
        step = st.one_of(st.none(), st.integers(0, 100), st.floats(0, 1e9), st.just(math.inf))
        options |= {
            "max_increase": draw(step),
            "max_decrease": draw(step),
            "direction": draw(st.sampled_from([None, "increase", "decrease"])),
        }
        if draw(st.booleans()):
            values = [end for end in (low, high, low) if math.isfinite(end)] or [0, 7, 7]
            options["distribution"] = draw(st.sampled_from([Distribution("uniform"), Distribution("empirical", tuple(values))]))
    return Feature(name, kind, **options)


@st.composite
def models(draw: st.DrawFn) -> budge.InteractionModel:
    """A random model with odd names; pieces that do not fit each other are left out, not mended."""
    names = draw(st.lists(texts.filter(lambda s: bool(s.strip() and looks(s))), min_size=2, max_size=6, unique_by=looks))
    declared = [draw(features(name)) for name in names]
    constraints: list[Any] = []
    effects: list[budge.Effect] = []
    latent: list[budge.Latent] = []
    title = draw(st.one_of(st.none(), texts))
    numeric = [f for f in declared if f.numeric]
    if numeric and draw(st.booleans()):
        c = {f.name: draw(st.one_of(st.integers(-5, 5), st.floats(-5, 5))) for f in numeric}
        constraints.append(
            budge.constraints.LinearConstraint(c, draw(st.sampled_from(["==", "<=", ">="])), draw(st.floats(-9, 9)), name=title)
        )
    if len(numeric) > 1 and draw(st.booleans()):
        a, b = numeric[0].name, numeric[1].name
        constraints.append(budge.constraints.AdditiveLinkage(a, draw(st.sampled_from([1, 1.0, -2, 0.5])), {b: 2}))
        constraints.append(budge.constraints.IfThen(f"{quote(a)} >= 1", f"{quote(b)} <= {draw(st.integers(-3, 3))}"))
        constraints.append(budge.constraints.Switch(f"{quote(a)} == 0", (b,), draw(st.sampled_from(["free", "any", "all"]))))
        constraints.append(
            budge.constraints.Rule(f"{quote(a)} + {quote(b)} < 7", name=draw(st.one_of(st.none(), st.just("a rule"))))
        )
    for f in declared:
        if f.levels and draw(st.booleans()):
            constraints.append(budge.constraints.Reachability((f.name,), tuple((v,) for v in f.levels)))
    if numeric and draw(st.booleans()):
        latent.append(budge.Latent("u", "normal(0, 1)"))
        latent.append(budge.Latent("pair", "multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]])", components=("v", "w")))
        f = numeric[-1]
        if f.type == "real" and math.isfinite(f.range[0]) and math.isfinite(f.range[1]):
            effects.append(budge.Effect(f.name, add="latent.u + latent.v", clip=f.bounds, name=title))
    measure = draw(st.sampled_from(["configuration", "volume"]))
    kept: list[Any] = []
    for c in constraints:
        try:
            budge.InteractionModel(declared, [*kept, c])
            kept.append(c)
        except BudgeError:
            pass
    for parts in ((declared, kept, effects, latent), (declared, kept, [], []), (declared, [], [], [])):
        try:
            return budge.InteractionModel(*parts, name=draw(st.one_of(st.just(""), texts)), measure=measure)
        except BudgeError:
            continue
    return budge.InteractionModel([Feature(f.name, "fixed") for f in declared])


def same(a: budge.InteractionModel, b: budge.InteractionModel) -> bool:
    return a == b and a.digest == b.digest and a.to_spec() == b.to_spec() and repr(a.to_spec()) == repr(b.to_spec())


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(models())
def test_a_mapping_gives_the_same_model_back(im: budge.InteractionModel) -> None:
    assert same(budge.InteractionModel.from_spec(im.to_spec()), im)


@pytest.mark.parametrize("kind", FORMATS)
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(im=models())
def test_every_format_gives_the_same_model_back(kind: Format, im: budge.InteractionModel) -> None:
    assert same(parse(to_text(im, kind), kind), im)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(interaction_models())
def test_models_of_every_kind_of_constraint_come_back(im: budge.InteractionModel) -> None:
    try:
        im.to_spec()
    except SpecError:  # holds a Python function
        return
    for kind in FORMATS:
        assert same(parse(to_text(im, kind), kind), im)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("path", STUDIES, ids=lambda p: p.stem)
def test_the_studies_come_back(path: Path, kind: Format, tmp_path: Path) -> None:
    im = budge.InteractionModel.from_file(path)
    written = im.to_file(tmp_path / f"copy.{kind}")
    assert same(budge.InteractionModel.from_file(written), im)


@pytest.mark.parametrize("kind", [k for k in registry() if not python_only(registry()[k])])
def test_every_example_of_a_kind_comes_back(kind: str) -> None:
    for example in registry()[kind].examples():
        im = budge.InteractionModel(example.features, [example.constraint])
        for form in FORMATS:
            back = parse(to_text(im, form), form)
            assert same(back, im)
            assert back.constraints[0].to_spec() == example.constraint.to_spec()


@pytest.mark.parametrize("name", [name for name in ODD if name.strip()])
def test_other_readers_see_the_same_names(name: str) -> None:
    """The text is real YAML, JSON and TOML: an independent reader finds the name that was written."""
    from ruamel.yaml import YAML

    im = budge.InteractionModel([Feature(name, "binary"), Feature("other name", "fixed")])
    assert list(YAML(typ="safe", pure=True).load(to_text(im, "yaml"))["features"]) == [name, "other name"]
    assert list(json.loads(to_text(im, "json"))["features"]) == [name, "other name"]
    assert list(tomllib.loads(to_text(im, "toml"))["features"]) == [name, "other name"]


def test_the_text_is_the_one_that_people_read() -> None:
    im = budge.InteractionModel.from_spec({
        "budge": 1,
        "name": "Lending",
        "features": {
            "age": {"type": "integer", "bounds": [18, 100], "actionable": False}, "n": {"type": "binary"}, "old": "fixed",
        },
        "constraints": [
            {"rule": "age >= 20 * n"}, {"linear": {"name": "few", "coefficients": {"age": 1, "n": -0.5}, "constant": 90}},
        ],
        "effects": [{"feature": "n", "set": "bernoulli(0.5)"}],
    })  # fmt: skip
    assert to_text(im) == (
        "budge: 1\n"
        "name: Lending\n"
        "features:\n"
        "  age: {type: integer, bounds: [18, 100], actionable: false}\n"
        '  "n": {type: binary}\n'
        "  old: fixed\n"
        "constraints:\n"
        '  - rule: "age >= 20 * n"\n'
        '  - linear: {coefficients: {age: 1, "n": -0.5}, constant: 90, name: few}\n'
        "effects:\n"
        '  - {feature: "n", set: "bernoulli(0.5)"}\n'
    )


def test_long_entries_are_broken_between_fields() -> None:
    names = [f"a_rather_long_name_{i}" for i in range(12)]
    matrix = [[1, 0], [0, 1]]
    values = [[0] * 12, [1] * 12]
    spec = {
        "features": {n: {"type": "binary"} for n in names},
        "constraints": [{"reachability": {"features": names, "values": values, "reachable": matrix}}],
    }
    im = budge.InteractionModel.from_spec(spec)
    text = to_text(im)
    assert text.count("\n        ") == 1
    assert same(parse(text, "yaml"), im)


def test_endless_bounds_in_json_are_texts() -> None:
    im = budge.InteractionModel(
        [
            Feature("a", "real", bounds=(0, math.inf), actionable=False),
            Feature("b", "integer", bounds=(0, 9), max_increase=math.inf),
        ]
    )
    text = to_text(im, "json")
    assert json.loads(text)["features"]["a"]["bounds"] == [0, "inf"]
    assert same(parse(text, "json"), im)


def test_python_code_is_not_written(tmp_path: Path) -> None:
    im = budge.InteractionModel([Feature("a", "binary")], [budge.constraints.Predicate(("a",), lambda v: v["a"] >= 0)])
    with pytest.raises(SpecError):
        im.to_file(tmp_path / "a.yaml")
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_exactly_is_refused(tmp_path: Path) -> None:
    """A name of a thousand escapes is longer than a key of YAML may be; half a surrogate pair is no text."""
    long = budge.InteractionModel([Feature("\U000e0001" * 900, "binary")])
    with pytest.raises(SpecError):
        long.to_file(tmp_path / "a.yaml")
    with pytest.raises(SpecError):
        budge.InteractionModel([Feature("a\ud800", "binary")]).to_file(tmp_path / "a.json")
    assert list(tmp_path.iterdir()) == []


# -- the file ---------------------------------------------------------------------------------------------------------

IM = budge.InteractionModel([Feature("a", "binary")])


def test_an_existing_file_is_kept_unless_told(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("mine")
    with pytest.raises(OutputExistsError, match=r"a\.yaml: something stands there"):
        IM.to_file(path)
    assert path.read_text() == "mine"
    assert IM.to_file(path, overwrite=True) == path
    assert budge.InteractionModel.from_file(path) == IM
    assert [p.name for p in tmp_path.iterdir()] == ["a.yaml"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = IM.to_file(tmp_path / "a.yaml")
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left on device"):
        budge.InteractionModel([Feature("b", "binary")]).to_file(path, overwrite=True)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.yaml"]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be written"):
        IM.to_file(tmp_path / "nowhere" / "a.yaml")
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(OutputExistsError, match="is a folder"):
        IM.to_file(tmp_path / "folder.yaml", overwrite=True)


def test_a_read_only_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        if os.access(tmp_path, os.W_OK):  # root may write anywhere: let the system call say what others would see

            def refuse(*_: Any, **__: Any) -> Any:
                raise PermissionError(13, "Permission denied")

            monkeypatch.setattr("os.open", refuse)
        with pytest.raises(StorageError, match="Permission denied"):
            IM.to_file(tmp_path / "a.yaml")
    finally:
        tmp_path.chmod(stat.S_IRWXU)


def test_reading_says_nothing_on_the_side(tmp_path: Path) -> None:
    path = IM.to_file(tmp_path / "a.yaml")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        budge.InteractionModel.from_file(path)
