"""Bad specs: one test for each row of the table of bad inputs. The right error, the place, the value, a remedy; nothing runs."""
# ruff: noqa: E501  (tables of cases, one a line)

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import budge
from budge import cli
from budge.errors import SpecError
from cpu import within

GOOD = """\
budge: 1
features:
  age:     {type: integer, bounds: [18, 100], actionable: false}
  income:  {type: real, bounds: [0, 200000]}
  years:   {type: integer, bounds: [0, 60]}
  rent:    {type: binary}
  own:     {type: binary}
  housing: {type: category, levels: [rent, own, free]}
"""


def spec(features: str = "", constraints: str = "", rest: str = "") -> str:
    """The good spec with more features, constraints and the rest."""
    return GOOD + features + (f"constraints:\n{constraints}" if constraints else "") + rest


def problems_of(text: str, path: Path) -> str:
    """The message of a spec file, by the library and by the command line: the same, with exit code 2."""
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        budge.InteractionModel.from_file(path)
    return str(caught.value)


def refused_by_command(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert cli.main(["check", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("budge: ")
    return err


def test_the_good_spec_is_good(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(GOOD)
    assert len(budge.InteractionModel.from_file(tmp_path / "good.yaml").features) == 6


# -- the file --------------------------------------------------------------------------------------------------------------

FILES: dict[str, tuple[str, bytes, str]] = {
    "empty": ("a.yaml", b"", "is empty"),
    "blank": ("a.yaml", b"  \n\n", "holds nothing but blanks"),
    "only comments": ("a.yaml", b"# one\n# two\n", "only comments"),
    "empty json": ("a.json", b"", "is empty"),
    "not UTF-8": ("a.yaml", b"budge: 1\nname: caf\xe9\n", r"not UTF-8 at byte 18 \(line 2\).*b'\\xe9'"),
    "UTF-16": ("a.yaml", "budge: 1".encode("utf-16"), "UTF-16"),
    "NUL bytes": ("a.yaml", b"budge: 1\n\0\n", r"NUL byte at byte 9 \(line 2\)"),
    "NUL bytes in toml": ("a.toml", b"budge = 1\n\0\n", "NUL byte at byte 10"),
    "broken YAML": ("a.yaml", b"budge: 1\nfeatures: {a: [1, 2}\n", r"a\.yaml:2:\d+: is not valid YAML \(line 2, column \d+\)"),
    "bad indentation": ("a.yaml", b"budge: 1\nfeatures:\n  a: {type: binary}\n b: {type: binary}\n", r"line \d, column \d"),
    "a control character": ("a.yaml", b"budge: 1\nname: \x07\n", "not valid YAML"),
    "broken JSON": ("a.json", b'{"budge": 1,\n "features": {"a" 1}}', r"a\.json:2:19: is not valid JSON \(line 2, column 19\): a colon"),
    "unfinished JSON": ("a.json", b'{"budge": [1,', r"line 1, column 14\): the text ends too early"),
    "trailing comma in JSON": ("a.json", b'{"budge": 1,}', r"line 1, column 13"),
    "a bare word in JSON": ("a.json", b'{"budge": one}', r"line 1, column 11"),
    "more after JSON": ("a.json", b'{"budge": 1} {}', "something follows"),
    "NaN in JSON": ("a.json", b'{"budge": NaN}', "no NaN"),
    "broken TOML": ("a.toml", b"budge = 1\nname = \n", r"a\.toml:2:8: is not valid TOML"),
    "two documents": ("a.yaml", b"budge: 1\n---\nbudge: 1\n", "more than one document"),
    "YAML 1.1": ("a.yaml", b"%YAML 1.1\n---\nbudge: 1\n", "plain YAML 1.2"),
    "a list": ("a.yaml", b"- 1\n- 2\n", "a spec is a mapping"),
    "another ending": ("a.txt", b"budge: 1\n", r"ends in \.yaml"),
    "duplicate key": ("a.yaml", b"budge: 1\nfeatures:\n  a: fixed\n  b: fixed\n  a: fixed\n", r"a\.yaml:5 features\.a: the key 'a' stands twice, on lines 3 and 5"),
    "duplicate key in JSON": ("a.json", b'{"budge": 1,\n"name": "x",\n"name": "y"}', "'name' stands twice, on lines 2 and 3"),
    "duplicate key in TOML": ("a.toml", b"budge = 1\n\n[features]\na = 'fixed'\nb = 'fixed'\na = 'fixed'\n", "'features.a' stands twice, on lines 4 and 6"),
    "a table twice in TOML": ("a.toml", b"budge = 1\n[features]\na = 'fixed'\n[features]\n", "'features' stands twice, on lines 2 and 4"),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
def test_files_that_hold_no_spec(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, data, message = FILES[case]
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(SpecError, match=message):
        budge.InteractionModel.from_file(path)
    assert re.search(message, refused_by_command(path, capsys))


def test_all_duplicates_are_told_at_once(tmp_path: Path) -> None:
    message = problems_of("budge: 1\nname: a\nname: b\nfeatures:\n  a: fixed\n  a: fixed\n", tmp_path / "a.yaml")
    assert "on lines 2 and 3" in message
    assert "on lines 5 and 6" in message


# -- hostile files: refused in under a second, and nothing runs ---------------------------------------------------------------

BOMB = "budge: 1\na: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(12)
)
HOSTILE: dict[str, tuple[str, bytes, str]] = {
    "alias bomb": ("a.yaml", BOMB.encode(), "anchor or alias"),
    "a single anchor": ("a.yaml", b"budge: &v 1\n", "anchor or alias"),
    "a merge key": ("a.yaml", b"budge: 1\n<<: *base\n", "anchor or alias"),
    "python tag": ("a.yaml", b"budge: !!python/object/apply:os.system ['touch HACKED']\n", "has a tag"),
    "python tag on a key": ("a.yaml", b"!!python/name:os.system budge: 1\n", "has a tag"),
    "a tag of its own": ("a.yaml", b"budge: !include other.yaml\n", "has a tag"),
    "a tag directive": ("a.yaml", b"%TAG ! tag:x,2000:\n---\nbudge: 1\n", "directive"),
    "deep JSON list": ("a.json", b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
    "deep JSON mapping": ("a.json", b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply"),
    "deep YAML": ("a.yaml", b"budge: " + b"[" * 90_000 + b"]" * 90_000, "nested too deeply"),
    "deep TOML": ("a.toml", b"a = " + b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
    "deep dotted TOML": ("a.toml", b"a" + b".a" * 300_000 + b" = 1\n", "nested too deeply"),
    "deep dotted table of TOML": ("a.toml", b"[a" + b" . 'a'" * 100_000 + b"]\nb = 1\n", "nested too deeply"),
    "deep inline TOML": ("a.toml", b"a = " + b"{a=" * 100_000, "nested too deeply|not valid TOML"),
    "ten thousand digits in YAML": ("a.yaml", b"budge: 1" + b"0" * 10_000 + b"\n", "no number that can be used.*10001 digits"),
    "ten thousand digits in JSON": ("a.json", b'{"budge": 1' + b"0" * 10_000 + b"}", "no number that can be used.*10001 digits"),
    "ten thousand digits in TOML": ("a.toml", b"budge = 1" + b"0" * 10_000 + b"\n", "number that cannot be used"),
    "five hundred digits": ("a.json", b'{"budge": 1, "x": 1' + b"0" * 350 + b"}", "no number that can be used"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_are_refused_at_once(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name, data, message = HOSTILE[case]
    path = tmp_path / name
    path.write_bytes(data)
    with within(1), pytest.raises(SpecError, match=message):
        budge.InteractionModel.from_file(path)
    assert refused_by_command(path, capsys)
    assert sorted(p.name for p in tmp_path.iterdir()) == [name]


def test_a_file_of_five_gigabytes_is_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "large.yaml"
    with path.open("wb") as file:
        file.truncate(5 * 10**9)
    with within(1), pytest.raises(SpecError, match=r"too large for a spec: at most 200,000 bytes of YAML.*5,000,000,000 bytes"):
        budge.InteractionModel.from_file(path)
    assert "too large" in refused_by_command(path, capsys)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes or endless devices on this system")
@pytest.mark.parametrize("endless", ["device", "pipe", "folder"])
def test_endless_files_are_not_read(endless: str, tmp_path: Path) -> None:
    path = tmp_path / "endless.yaml"
    if endless == "device":
        path.symlink_to("/dev/zero")
    elif endless == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with within(2), pytest.raises(SpecError, match="is not a regular file"):
        budge.InteractionModel.from_file(path)


# -- keys, kinds, names: the nearest known one --------------------------------------------------------------------------------

WORDS: dict[str, tuple[str, str]] = {
    "unknown key": (GOOD + "constrants: []\n", r":9 constrants: unknown key \(got 'constrants'\); did you mean 'constraints'"),
    "unknown feature key": (spec("  b: {type: binary, actionble: false}\n"), r":9 features\.b\.actionble: unknown key .*did you mean 'actionable'"),
    "unknown kind": (spec(constraints="  - thermometr: {features: [rent, own]}\n"), r":10 constraints\[0\]\.thermometr: unknown kind .*did you mean 'thermometer'"),
    "unknown field of a kind": (spec(constraints="  - one_hot: {feature: [rent, own]}\n"), "did you mean 'features'"),
    "undeclared feature": (spec(constraints="  - one_hot: {features: [rent, ownn]}\n"), r":10 constraints\[0\]\.one_hot\.features.*'ownn'.*did you mean 'own'"),
    "undeclared feature in a rule": (spec(constraints='  - rule: "incme >= 12"\n'), "incme.*did you mean 'income'"),
    "undeclared feature of an effect": (spec(rest='effects:\n  - {feature: incme, add: "1", clip: [0, 1]}\n'), r"effects\[0\]\.feature.*did you mean 'income'"),
    "unknown type": (spec("  b: {type: binry}\n"), r"features\.b\.type: must be one of binary, .*'binry'.*did you mean 'binary'"),
    "unknown level in a rule": (spec(constraints="  - rule: \"housing == 'onw'\"\n"), "onw"),
    "unknown latent draw": (spec(rest='latent:\n  shock: normal(0, 1)\neffects:\n  - {feature: income, add: "latent.shok", clip: [0, 200000]}\n'), "shok.*did you mean 'shock'"),
}  # fmt: skip


@pytest.mark.parametrize("case", WORDS)
def test_unknown_words_get_the_nearest_known(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, message = WORDS[case]
    assert re.search(message, problems_of(text, tmp_path / "a.yaml"))
    assert re.search(message, refused_by_command(tmp_path / "a.yaml", capsys))


FIELDS: dict[str, tuple[str, str]] = {
    "missing version": (GOOD.replace("budge: 1\n", ""), "the field 'budge' is missing"),
    "missing features": ("budge: 1\n", "the field 'features' is missing"),
    "no features": ("budge: 1\nfeatures: {}\n", "declares no feature"),
    "missing type": (spec("  b: {bounds: [0, 1]}\n"), r":9 features\.b: the field 'type' is missing"),
    "missing field": (spec(constraints="  - directional_linkage: {source: years}\n"), r"constraints\[0\]\.directional_linkage: the field 'targets' is missing"),
    "missing group": (spec(constraints="  - thermometer: {direction: increase}\n"), "the field 'features' is missing"),
    "missing targets": (spec(constraints="  - additive_linkage: {source: years}\n"), "the field 'targets' is missing"),
    "extra field": (spec(constraints="  - one_hot: {features: [rent, own], cout: 1}\n"), r"one_hot\.cout: unknown key .*did you mean 'count'"),
    "a text for a list": (spec(constraints="  - one_hot: {features: rent}\n"), r"one_hot\.features: must be a list \(got 'rent'\)"),
    "a number for a name": (spec(constraints="  - one_hot: {features: [rent, 7]}\n"), r"one_hot\.features\[1\]: must be a text \(got 7\)"),
    "a text for a number": (spec(constraints="  - directional_linkage: {source: years, targets: {age: one}}\n"), r"targets\.age: must be a number \(got 'one'\)"),
    "a power for a bound": (spec("  b: {type: real, bounds: [0, 10**10000]}\n"), r"features\.b\.bounds\[1\]: must be a number \(got '10\*\*10000'\)"),
    "a truth value for a number": (spec(constraints="  - one_hot: {features: [rent, own], count: true}\n"), r"count: must be a whole number \(got True\)"),
    "a fraction for a count": (spec(constraints="  - one_hot: {features: [rent, own], count: 1.5}\n"), r"count: must be a whole number \(got 1.5\)"),
    "an unknown relation": (spec(constraints='  - one_hot: {features: [rent, own], relation: "<"}\n'), r"relation: must be one of ==, <=, >= \(got '<'\)"),
    "a number for actionable": (spec("  b: {type: binary, actionable: 1}\n"), r"features\.b\.actionable: must be true or false \(got 1\)"),
    "yes is a text": (spec("  b: {type: binary, actionable: yes}\n"), r"must be true or false \(got 'yes'\)"),
    "one bound": (spec("  b: {type: integer, bounds: [1]}\n"), r"features\.b\.bounds: needs at least 2 entries"),
    "three bounds": (spec("  b: {type: integer, bounds: [1, 2, 3]}\n"), r"features\.b\.bounds: needs at most 2 entries"),
    "a text for a feature": (spec("  b: binary\n"), r"features\.b: a feature is a mapping, or the word fixed \(got 'binary'\); write {type: binary}"),
    "a list of features": ("budge: 1\nfeatures: [a, b]\n", r"features: must be a mapping"),
    "a number as a name": (spec("  1: {type: binary}\n"), r"features\.1: a name is a text \(got 1\)"),
    "a mapping of constraints": (GOOD + "constraints: {one_hot: {features: [rent, own]}}\n", r"constraints: must be a list"),
    "two kinds in one item": (spec(constraints="  - one_hot: {features: [rent, own]}\n    name: x\n"), r"constraints\[0\]: a constraint is one kind and its fields"),
    "a text for effects": (GOOD + "effects: none\n", r"effects: must be a list"),
    "two ways of an effect": (spec(rest='effects:\n  - {feature: rent, set: "1", add: "0"}\n'), r"effects\[0\]: an effect has exactly one of add, set and multiply"),
    "no way of an effect": (spec(rest="effects:\n  - {feature: rent}\n"), r"effects\[0\]: an effect has exactly one of add, set and multiply"),
    "a list for a draw": (spec(rest="latent:\n  u: [1]\n"), r"latent\.u: a latent draw is an expression"),
    "an unknown distribution": (spec("  b: {type: real, bounds: [1, 2], distribution: lg}\n"), r"features\.b\.distribution.*'lg'.*did you mean 'log'"),
    "an odd distribution": (spec("  b: {type: real, bounds: [1, 2], distribution: {normal: [0, 1]}}\n"), r"features\.b\.distribution: must be uniform, log"),
    "a number for the name": (GOOD + "name: 7\n", r"name: must be a text \(got 7\)"),
    "an unknown measure": (GOOD + "measure: volum\n", r"measure: must be configuration or volume .*did you mean 'volume'"),
    "version 2": (GOOD.replace("budge: 1", "budge: 2"), r":1 budge: an unsupported version of the spec format \(got 2\); this budge reads version 1"),
    "version as text": (GOOD.replace("budge: 1", 'budge: "1"'), r"budge: an unsupported version of the spec format \(got '1'\)"),
    "version true": (GOOD.replace("budge: 1", "budge: true"), r"budge: an unsupported version"),
}  # fmt: skip


@pytest.mark.parametrize("case", FIELDS)
def test_missing_extra_and_wrongly_typed_fields_are_named(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, message = FIELDS[case]
    assert re.search(message, problems_of(text, tmp_path / "a.yaml"))
    assert re.search(message, refused_by_command(tmp_path / "a.yaml", capsys))


# -- what features may say ------------------------------------------------------------------------------------------------------

FEATURES: dict[str, tuple[str, str]] = {
    "lower bound above upper": ("{type: integer, bounds: [9, 1]}", r"bounds: the lower bound is above the upper \(got \[9, 1\]\)"),
    "NaN bound": ("{type: real, bounds: [0, .nan]}", r"bounds: a bound cannot be NaN"),
    "bounds whose distance is no number": ("{type: real, bounds: [-1.0e+308, 1.0e+308]}", r"bounds: a bound is at most 1e\+300 away from 0"),
    "a step that is too large to be added": ("{type: real, max_increase: 1.0e+308, max_decrease: 1}", r"max_increase: a step limit is at most 1e\+300"),
    "integer with bound 2.5": ("{type: integer, bounds: [0, 2.5]}", r"whole bounds \(got \[0, 2.5\]\)"),
    "binary with other bounds": ("{type: binary, bounds: [0, 2]}", r"a binary feature has bounds 0 and 1 \(got \[0, 2\]\)"),
    "infinite bound on an actionable feature": ("{type: real, bounds: [0, .inf]}", "no uniform draw over an infinite range .*give finite bounds, a step limit, or a distribution"),
    "no bounds on an actionable feature": ("{type: integer}", "no uniform draw over an infinite range"),
    "negative step": ("{type: integer, bounds: [0, 9], max_increase: -1}", r"max_increase: a step limit cannot be negative \(got -1\)"),
    "unknown direction": ("{type: integer, bounds: [0, 9], direction: increse}", "direction.*'increse'.*did you mean 'increase'"),
    "fewer than two levels": ("{type: category, levels: [one]}", r"at least two levels \(got \['one'\]\)"),
    "no levels": ("{type: category}", "needs its levels"),
    "a level twice": ("{type: category, levels: [a, b, a]}", "listed twice"),
    "levels on a number": ("{type: integer, bounds: [0, 1], levels: [a, b]}", "only a category has levels"),
    "direction without an order": ("{type: category, levels: [a, b], direction: increase}", "needs ordered levels"),
    "impossible weights": ("{type: category, levels: [a, b], distribution: {weights: {a: -1, b: 2}}}", "weights must be finite and not negative"),
    "weights that are all zero": ("{type: category, levels: [a, b], distribution: {weights: {a: 0, b: 0}}}", "all weights are zero"),
    "log from below 0": ("{type: real, bounds: [-3, 5], distribution: log}", r"a log distribution needs bounds above 0 \(got \[-3.0, 5.0\]\)"),
    "log from 0 in whole numbers": ("{type: integer, bounds: [0, 5], distribution: log}", r"a log distribution needs bounds above 0 \(got \[0.0, 5.0\]\)"),
    "no listed value within the bounds": ("{type: integer, bounds: [0, 5], distribution: {empirical: [9, 10]}}", "lists no value between 0 and 5"),
    "a listed fraction": ("{type: integer, bounds: [0, 5], distribution: {empirical: [1.5]}}", r"are whole \(got 1.5\)"),
    "weights on an unknown level": ("{type: category, levels: [a, b], distribution: {weights: {c: 1}}}", "not declared"),
}  # fmt: skip


@pytest.mark.parametrize("case", FEATURES)
def test_impossible_features(case: str, tmp_path: Path) -> None:
    body, message = FEATURES[case]
    text = problems_of(spec(f"  extra: {body}\n"), tmp_path / "a.yaml")
    assert re.search(message, text)
    assert text.startswith("a.yaml:9 features.extra"), text


def test_an_infinite_bound_on_a_fixed_feature_is_accepted(tmp_path: Path) -> None:
    text = spec("  wealth: {type: real, bounds: [0, .inf], actionable: false}\n")
    (tmp_path / "a.yaml").write_text(text)
    assert budge.InteractionModel.from_file(tmp_path / "a.yaml").by_name["wealth"].range == (0.0, float("inf"))


NAMES: dict[str, tuple[str, str]] = {
    "look-alike by case": ("  Age: fixed\n", "looks like 'age'"),
    "look-alike by blanks": ('  "age ": fixed\n', "looks like 'age'"),
    "look-alike by letters": ('  "\uff41ge": fixed\n', "looks like 'age'"),
    "empty": ('  "": fixed\n', "needs a name"),
    "blank": ('  "  ": fixed\n', "needs a name"),
    "twice": ("  age: fixed\n", "stands twice, on lines 3 and 9"),
}


@pytest.mark.parametrize("case", NAMES)
def test_names_that_a_reader_cannot_tell_apart(case: str, tmp_path: Path) -> None:
    line, message = NAMES[case]
    assert re.search(message, problems_of(spec(line), tmp_path / "a.yaml"))


# -- what constraints and effects may say -----------------------------------------------------------------------------------------

CONSTRAINTS: dict[str, tuple[str, str]] = {
    "the same feature twice": ("one_hot: {features: [rent, own, rent]}", "names a feature twice .*'rent'"),
    "one-hot over a real": ("one_hot: {features: [rent, income]}", "needs binary features .*income: real"),
    "count 0": ("one_hot: {features: [rent, own], count: 0}", r"between 1 and the number of dummies, 2 \(got 0\)"),
    "count above the dummies": ("one_hot: {features: [rent, own], count: 3}", r"between 1 and the number of dummies, 2 \(got 3\)"),
    "one dummy": ("thermometer: {features: [rent]}", "at least two"),
    "matrix not square": ("reachability: {features: [rent], values: [[0], [1]], reachable: [[1, 1]]}", r"square matrix of 2 × 2.*1 ×"),
    "matrix not 0/1": ("reachability: {features: [rent], values: [[0], [1]], reachable: [[1, 2], [0, 1]]}", r"holds only 0 and 1 \(got 2\)"),
    "matrix of the wrong size": ("reachability: {features: [rent], values: [[0], [1]], reachable: [[1, 1, 1], [0, 1, 1], [0, 0, 1]]}", r"square matrix of 2 × 2.*3 ×"),
    "rows of the wrong width": ("reachability: {features: [rent], values: [[0, 1], [1, 0]]}", "every row needs 1 entries"),
    "duplicate values": ("reachability: {features: [rent], values: [[0], [1], [0]]}", "listed twice"),
    "a value that is nothing": ("reachability: {features: [rent], values: [[null], [1]]}", r"a text, a number or a truth value \(got None\)"),
    "a value that is a mapping": ("reachability: {features: [rent], values: [[{a: 1}], [1]]}", "a text, a number or a truth value"),
    "scale 0": ("directional_linkage: {source: years, targets: {age: 0}}", r"targets\.age.*finite number other than 0 \(got 0\)"),
    "scale NaN": ("directional_linkage: {source: years, targets: {age: .nan}}", r"finite number other than 0 \(got nan\)"),
    "scale infinite": ("directional_linkage: {source: years, targets: {age: .inf}}", r"finite number other than 0 \(got inf\)"),
    "non-integer change on an integer target": ("directional_linkage: {source: years, targets: {age: 0.5}}", "would change age .* by a fraction"),
    "a linkage to itself": ("directional_linkage: {source: years, targets: {years: 1}}", "cannot be linked to itself"),
    "a coefficient that is infinite": ("linear: {coefficients: {income: .inf}}", "finite number"),
    "a category in a sum": ("linear: {coefficients: {housing: 1}}", "needs a number, housing is category"),
    "no condition": ('rule: "income + 1"', "compare"),
}  # fmt: skip


@pytest.mark.parametrize("case", CONSTRAINTS)
def test_impossible_constraints(case: str, tmp_path: Path) -> None:
    body, message = CONSTRAINTS[case]
    text = problems_of(spec(constraints=f"  - {body}\n"), tmp_path / "a.yaml")
    assert re.search(message, text)
    assert text.startswith(("a.yaml:10 constraints[0]", "2 problems")), text


@pytest.mark.parametrize("kind", ["ordinal", "thermometer"])
def test_direction_on_a_single_dummy(kind: str, tmp_path: Path) -> None:
    features = "  d1: {type: binary, direction: increase}\n  d2: {type: binary}\n"
    text = problems_of(spec(features, f"  - {kind}: {{features: [d1, d2]}}\n"), tmp_path / "a.yaml")
    assert re.search("d1: increase.*the direction belongs to the group", text)


def test_a_linkage_cycle_is_printed(tmp_path: Path) -> None:
    links = "  - directional_linkage: {source: years, targets: {age: 1}}\n  - directional_linkage: {source: age, targets: {years: 1}}\n"
    text = problems_of(spec(constraints=links), tmp_path / "a.yaml")
    assert re.search("linkages run in a circle .*(years → age → years|age → years → age)", text)


def test_an_effect_cycle_is_printed(tmp_path: Path) -> None:
    effects = (
        "effects:\n"
        '  - {feature: income, add: "effect.years", clip: [0, 200000]}\n'
        '  - {feature: years, add: "round(effect.income)", clip: [0, 60]}\n'
    )
    text = problems_of(spec(rest=effects), tmp_path / "a.yaml")
    assert re.search("effects depend on each other in a circle .*(income → years → income|years → income → years)", text)


IDLE: dict[str, tuple[str, str]] = {
    "a condition that can never hold": ('  - if_then: {if: "age >= 200", then: "rent == 1"}\n', "can never hold"),
    "a condition that always holds": ('  - if_then: {if: "age >= 0", then: "rent == 1"}\n', "always holds"),
    "a rule that always holds": ('  - rule: "income >= -1"\n', "always holds"),
    "two identical constraints": (
        "  - one_hot: {features: [rent, own]}\n  - one_hot: {features: [rent, own]}\n",
        "says the same as constraint 0",
    ),
}


@pytest.mark.parametrize("case", IDLE)
def test_idle_conditions_and_twins_are_warnings_kept_in_the_report(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    constraints, message = IDLE[case]
    (tmp_path / "a.yaml").write_text(spec(constraints=constraints))
    im = budge.InteractionModel.from_file(tmp_path / "a.yaml")
    assert any(re.search(message, str(w)) for w in im.warnings)
    assert message in str(im.describe())
    assert cli.main(["check", str(tmp_path / "a.yaml")]) == 0
    assert message in capsys.readouterr().out


EFFECTS: dict[str, tuple[str, str]] = {
    "a negative spread": ('{feature: income, add: "normal(0, -1)", clip: [0, 200000]}', "-1"),
    "a probability above 1": ('{feature: rent, set: "bernoulli(1.5)"}', "1.5"),
    "an empty range": ('{feature: income, add: "uniform(5, 1)", clip: [0, 200000]}', "uniform"),
    "leaves the domain without clip": (
        '{feature: income, add: "normal(0, 1)"}',
        r"can leave the domain of income.*add clip: \[0, 200000\]",
    ),
    "makes an integer a fraction": (
        '{feature: years, add: "normal(0, 1)", clip: [0, 60]}',
        "would make years .* a fraction.*round: true",
    ),
    "clips outside the bounds": ('{feature: years, add: "1", clip: [0, 70]}', "reaches outside the bounds of years"),
    "an unknown level": ("{feature: housing, set: \"'onw'\"}", "housing has no such level .*'onw'"),
    "a number for a level": ('{feature: housing, set: "3.5"}', "housing has no such level .*3.5"),
    "on a fixed column": ('{feature: plain, set: "1"}', "fixed without a type"),
}


@pytest.mark.parametrize("case", EFFECTS)
def test_impossible_effects(case: str, tmp_path: Path) -> None:
    body, message = EFFECTS[case]
    text = problems_of(spec("  plain: fixed\n", rest=f"effects:\n  - {body}\n"), tmp_path / "a.yaml")
    assert re.search(message, text)
    assert "a.yaml:11 effects[0]" in text


EXPRESSIONS = {
    "attribute access": "income.__class__ == 1",
    "a layer that is none": "os.path == 1",
    "a call": "open('/etc/passwd') == 1",
    "an import": "__import__('os') == 1",
    "a lambda": "(lambda: 1)() == 1",
    "a comprehension": "[x for x in income] == 1",
    "a dunder name": "__builtins__ == 1",
    "an index": "income[0] == 1",
    "an f-string": "f'{income}' == 'x'",
    "an assignment": "(income := 3) == 3",
    "a huge power": "9 ** 9 ** 9 ** 9 >= income",
    "a power of ten thousand": "10**10000 >= income",
    "deep brackets": "(" * 100_000 + "income" + ")" * 100_000 + " >= 1",
    "many minus signs": "-" * 100_000 + "income >= 1",
    "a long text": "income >= 1 and " * 20_000 + "income >= 1",
}


@pytest.mark.parametrize("case", EXPRESSIONS)
def test_expressions_outside_the_language_are_refused_before_evaluation(case: str, tmp_path: Path) -> None:
    with within(0.7), pytest.raises(SpecError) as caught:
        budge.InteractionModel.from_spec(
            {"features": {"income": {"type": "real", "bounds": [0, 9]}}, "constraints": [{"rule": EXPRESSIONS[case]}]}
        )
    assert str(caught.value).startswith("constraints[0].rule")
    assert len(str(caught.value)) < 1000


# -- a spec never names code, files, addresses or keys ------------------------------------------------------------------------------

REACHING = {
    "a file": "include: other.yaml\n",
    "data": "data: people.csv\n",
    "a URL": "url: https://example.org/spec.yaml\n",
    "a URL under another key": "source: https://example.org/spec.yaml\n",
    "a Python path": "function: mypackage.rules.allowed\n",
    "a module": "import: os\n",
    "an entry point": "check: mypackage.rules:allowed\n",
    "a key": "api_key: sk-1234567890abcdef1234\n",
    "a key under another name": "sign: sk-1234567890abcdef1234\n",
    "a schema": "$schema: https://example.org/schema.json\n",
}


@pytest.mark.parametrize("case", REACHING)
@pytest.mark.parametrize("place", ["top", "feature", "constraint", "effect"])
def test_a_spec_never_names_code_files_addresses_or_keys(case: str, place: str, tmp_path: Path) -> None:
    line = REACHING[case]
    entry = '"' + line.strip().replace(": ", '": "', 1) + '"'
    text = {
        "top": GOOD + line,
        "feature": spec(f"  b: {{type: binary, {entry}}}\n"),
        "constraint": spec(constraints=f"  - one_hot: {{features: [rent, own], {entry}}}\n"),
        "effect": spec(rest=f'effects:\n  - {{feature: rent, set: "1", {entry}}}\n'),
    }[place]
    message = problems_of(text, tmp_path / "a.yaml")
    assert "a spec never names code, files or addresses, and never holds a key" in message
    assert "1234567890" not in message


def test_a_predicate_is_python_only(tmp_path: Path) -> None:
    text = problems_of(spec(constraints="  - predicate: {features: [rent], function: os.system}\n"), tmp_path / "a.yaml")
    assert re.search("a predicate is Python code, and a spec never names code; write a rule", text)


def test_a_feature_may_bear_any_name(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(spec("  url: fixed\n  path: {type: binary}\n  api_key: fixed\n"))
    assert "api_key" in budge.InteractionModel.from_file(tmp_path / "a.yaml").by_name


# -- all at once ----------------------------------------------------------------------------------------------------------------

MANY = GOOD.replace("[18, 100]", "[100, 18]").replace("rent:    {type: binary}", "rent:    {type: binry}") + (
    "constraints:\n"
    "  - directional_linkage: {sorce: years, targets: {age: 1}}\n"
    '  - rule: "incme >= 3"\n'
    "effects:\n"
    '  - {feature: income, add: "normal(0, 1)"}\n'
    "colour: red\n"
)


def test_structure_and_meaning_are_reported_together_in_the_order_of_the_lines(tmp_path: Path) -> None:
    text = problems_of(MANY, tmp_path / "a.yaml")
    wanted = [
        ":3 features.age.bounds",
        ":6 features.rent.type",
        ":10 constraints[0]",
        ":10 constraints[0].directional_linkage.sorce",
    ]
    wanted += [":11 constraints[1].rule", ":13 effects[0]", ":14 colour"]
    assert text.startswith("7 problems:")
    places = [text.index(place) for place in wanted]
    assert places == sorted(places)


@pytest.mark.parametrize("kind", ["json", "toml"])
def test_the_other_formats_tell_lines_too(kind: str, tmp_path: Path) -> None:
    texts: dict[str, tuple[str, Callable[[str], Any]]] = {
        "json": ('{"budge": 1,\n"features": {\n"a": {"type": "binary"},\n"b": {"type": "binry"}}}', str),
        "toml": ('budge = 1\n[features]\na = {type = "binary"}\nb = {type = "binry"}\n', str),
    }
    assert f"a.{kind}:4 features.b.type" in problems_of(texts[kind][0], tmp_path / f"a.{kind}")


def test_the_command_gives_the_problems_as_a_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import json

    (tmp_path / "a.yaml").write_text(MANY)
    assert cli.main(["check", str(tmp_path / "a.yaml"), "--json"]) == 2
    record = json.loads(capsys.readouterr().out)
    assert record["error"] == "SpecError"
    assert len(record["problems"]) == 7
    assert {"where", "what"} <= set(record["problems"][0])


@pytest.mark.parametrize("law", ["log", {"weights": {0: 1}}, 3])
def test_a_distribution_in_python_must_be_one(law: object) -> None:
    with pytest.raises(SpecError, match=r"features\.a\.distribution: must be a Distribution .*from_spec"):
        budge.InteractionModel([budge.Feature("a", "integer", bounds=(1, 5), distribution=law)])  # type: ignore[arg-type]
