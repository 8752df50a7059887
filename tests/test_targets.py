"""Targets: which outputs hit, what is refused, and what survives a file."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import budge
from budge import targets
from budge.errors import InputError, ModelError
from budge.models import as_predictor
from budge.targets import Target, as_target, from_dict, parse_target

Y = np.array([0, 1, 2, 1])


def hits(target: Any, outputs: Any, before: Any = None) -> list[bool]:
    found = as_target(target).hits(np.asarray(outputs), None if before is None else np.asarray(before))
    assert found.dtype == bool
    return found.tolist()


@pytest.mark.parametrize(
    ("target", "outputs", "expected"),
    [
        (targets.label(1), Y, [0, 1, 0, 1]),
        (targets.label(1.0), Y, [0, 1, 0, 1]),
        (targets.label(np.int64(1)), Y, [0, 1, 0, 1]),
        (targets.labels([1, 2]), Y, [0, 1, 1, 1]),
        (targets.label("b"), ["a", "b"], [0, 1]),
        (targets.label("b"), np.array(["a", "b", None], dtype=object), [0, 1, 0]),
        (targets.label(True), [True, False], [1, 0]),
        (targets.labels([1, "1"]), np.array([1, "1", True, "2"], dtype=object), [1, 1, 0, 0]),
        (targets.label(True), np.array([1, "1", True, "2"], dtype=object), [0, 0, 1, 0]),
        (targets.interval(0.3, 0.7), [0.3, 0.5, 0.7], [1, 1, 1]),
        (targets.interval(0.3, 0.7, closed="left"), [0.3, 0.5, 0.7], [1, 1, 0]),
        (targets.interval(0.3, 0.7, closed="right"), [0.3, 0.5, 0.7], [0, 1, 1]),
        (targets.interval(0.3, 0.7, closed="neither"), [0.3, 0.5, 0.7], [0, 1, 0]),
        (targets.interval(low=0.5), [0.3, 0.5, math.inf, math.nan], [0, 1, 1, 0]),
        (targets.below(0.5), [0.4, 0.5], [1, 0]),
        (targets.above(0.5), [0.5, 0.6], [0, 1]),
        (targets.function(lambda y: y % 2 == 0), Y, [1, 0, 1, 0]),
    ],
    ids=str,
)
def test_hits(target: Target, outputs: Any, expected: list[int]) -> None:
    assert hits(target, outputs) == [bool(e) for e in expected]


@pytest.mark.parametrize(
    ("target", "outputs", "before", "expected"),
    [
        (targets.lower_than_before(), [0.4, 0.5, 0.6], [0.5] * 3, [1, 0, 0]),
        (targets.higher_than_before(), [0.4, 0.5, 0.6], [0.5] * 3, [0, 0, 1]),
        (targets.lower_than_before(margin=0.2), [0.2, 0.35], [0.5] * 2, [1, 0]),
        (targets.below(margin=0.2), [0.2, 0.35], [0.5] * 2, [1, 0]),
        (targets.above(margin=0.2), [0.8, 0.6], [0.5] * 2, [1, 0]),
        (targets.lower_than_before(), Y, [1] * 4, [1, 0, 0, 0]),
        (targets.lower_than_before(), np.array([0, 1], "uint8"), np.array([1, 0], "uint8"), [1, 0]),
        (targets.different(), Y, [1] * 4, [1, 0, 1, 0]),
        (targets.different(), ["a", "b"], ["a", "a"], [0, 1]),
        (targets.different(), np.array(["a", "b"], dtype=object), ["a", "a"], [0, 1]),
        (targets.different(), np.array([1, "1", True], dtype=object), np.array([1, 1, 1], dtype=object), [0, 1, 1]),
        (targets.function(lambda y, b: y > b), Y, [1] * 4, [0, 0, 1, 0]),
        (targets.function(lambda y, scale=2: y * scale > 2), Y, None, [0, 0, 1, 0]),
    ],
    ids=str,
)
def test_hits_relative_to_before(target: Target, outputs: Any, before: Any, expected: list[int]) -> None:
    assert hits(target, outputs, before) == [bool(e) for e in expected]


def test_rounding_is_no_change() -> None:
    score = np.array([0.1 + 0.2, 1e6 / 3])
    other = np.array([0.3, 1e6 / 3 + 1e-9])
    assert (score != other).all()
    assert hits(targets.different(), score, other) == [False, False]
    assert hits(targets.lower_than_before(), other, score) == [False, False]
    assert hits(targets.lower_than_before(), score - 1e-6, score) == [True, False]  # relative to the size of the score
    single = np.array([0.3], "float32")
    assert hits(targets.different(), single + np.float32(1e-7), single) == [False]
    assert hits(targets.different(), single + np.float32(1e-4), single) == [True]


@given(
    st.lists(st.sampled_from([0, 1, 1.0, True, False, "1", "0", "a"]), min_size=1, max_size=8),
    st.sampled_from([0, 1, True, "1", "a"]),
)
def test_a_label_hits_what_is_equal_and_of_its_kind(outputs: list[Any], value: Any) -> None:
    array = np.empty(len(outputs), dtype=object)
    array[:] = outputs
    numbers = (int, float)
    expected = [
        o == value
        and (type(o) is type(value) or (not isinstance(o, bool) and not isinstance(value, bool) and isinstance(o, numbers)))
        for o in outputs
    ]
    kinds = {("number" if isinstance(o, numbers) and not isinstance(o, bool) else type(o).__name__) for o in outputs}
    kind = "number" if isinstance(value, numbers) and not isinstance(value, bool) else type(value).__name__
    if kind not in kinds:
        with pytest.raises(ModelError, match="never equal"):
            targets.label(value).hits(array)
    else:
        assert targets.label(value).hits(array).tolist() == expected


def test_frozen_equal_and_hashable() -> None:
    assert targets.label(1) == targets.label(1) == targets.label(np.int8(1))
    assert targets.label(1) != targets.label(True)
    assert targets.label(1) != targets.label("1")
    assert len({targets.label(1), targets.label(True), targets.interval(low=1), targets.interval(low=1)}) == 3
    with pytest.raises(AttributeError):
        targets.label(1).values = (2,)  # type: ignore[misc]


STORED = [
    targets.label(1),
    targets.label("1"),
    targets.label(True),
    targets.labels(["a", 2, 0.5]),
    targets.interval(0.3, 0.7, closed="left"),
    targets.above(0.5),
    targets.lower_than_before(margin=0.1),
    targets.higher_than_before(),
    targets.different(),
    ~targets.lower_than_before(),
    ~targets.labels([0, 1]),
]


def test_a_complement_holds_what_its_target_leaves_out_and_no_missing_output() -> None:
    after, before = np.array([0.4, 0.5, 0.6, np.nan]), np.full(4, 0.5)
    assert (~targets.lower_than_before()).hits(after, before).tolist() == [False, True, True, False], "a tie is not lower"
    assert (~targets.above(0.5)).hits(after).tolist() == [True, True, False, False]
    assert (~targets.label("yes")).hits(np.array(["yes", "no", None], dtype=object)).tolist() == [False, True, False]
    assert ~~targets.different() == targets.different()
    assert str(as_target("not lower by 0.1")) == "is not lower than before by more than 0.1"
    assert str(~targets.function(lambda y: y > 0, name="positive")) == "does not satisfy positive"
    assert parse_target("not different") == ~targets.different()
    assert as_target("not approved") == targets.label("not approved"), "any other text is a label"
    assert as_target("not lower", classes=["lower", "not lower"]) == targets.label("not lower")
    with pytest.raises(InputError, match="plain target"):
        targets.Complement(~targets.different())


@pytest.mark.parametrize("target", STORED, ids=str)
def test_records_survive_a_file(target: Target) -> None:
    text = json.dumps(target.to_dict(), allow_nan=False)
    assert from_dict(json.loads(text)) == target
    assert from_dict(json.loads(text)).describe() == target.describe()


def test_functions_and_bad_records_cannot_be_stored() -> None:
    with pytest.raises(InputError, match="<lambda>: a function cannot be stored"):
        targets.function(lambda y: y > 0).to_dict()
    for record, message in [
        ({"kind": "label"}, "did you mean 'labels'"),
        ({"kind": "function", "f": "os.system"}, "unknown kind"),
        ({}, "unknown kind"),
        ({"kind": "labels"}, "does not fit"),
        ({"kind": "different", "x": 1}, "does not fit"),
        ({"kind": "interval", "low": "a"}, "a number is expected"),
    ]:
        with pytest.raises(InputError, match=message):
            from_dict(record)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (1, "is 1"),
        ("approved", "is 'approved'"),
        ("1", "is '1'"),
        ([1, 2], "is one of 1, 2"),
        (np.array([1, 2]), "is one of 1, 2"),
        (True, "is True"),
        ("lower", "is lower than before"),
        ("higher by 0.1", "is higher than before by more than 0.1"),
        ("different", "is different from before"),
        ("score >= 0.7", "is at least 0.7"),
        ("score<.3", "is below 0.3"),
        ("probability > 1e-3", "is above 0.001"),
        ("0.3 <= score < 0.7", "is at least 0.3 and below 0.7"),
        ("-1 < score <= 2", "is above -1 and at most 2"),
        (targets.different(), "is different from before"),
        (np.isnan, "satisfies isnan"),
    ],
    ids=repr,
)
def test_as_target(value: Any, sentence: str) -> None:
    assert str(as_target(value)) == sentence


def test_a_class_named_like_a_word_is_a_label() -> None:
    assert as_target("lower", classes=["lower", "higher"]) == targets.label("lower")
    assert parse_target("lower", classes=["lower", "higher"]) == targets.label("lower")
    assert as_target("lower", classes=["a", "b"]) == targets.lower_than_before()


@pytest.mark.parametrize(
    ("text", "classes", "expected"),
    [
        ("1", None, [1]),
        ("1", [0, 1], [1]),
        ("1", ["0", "1"], ["1"]),
        ("True", [False, True], [True]),
        ("true", [False, True], [True]),
        ("true", None, [True]),
        ("'1'", None, ["1"]),
        ("'1'", ["0", "1"], ["1"]),
        ("0.5", None, [0.5]),
        ("approved", None, ["approved"]),
        ("1, 2", None, [1, 2]),
        ("a,b", ["a", "b", "c"], ["a", "b"]),
        ("a,b", ["a,b", "c"], ["a,b"]),
    ],
)
def test_parse_target(text: str, classes: Any, expected: list[Any]) -> None:
    assert parse_target(text, classes=classes) == targets.labels(expected)


def test_parse_target_refuses() -> None:
    with pytest.raises(ModelError, match=r"does not know the label \(got '2'\); its classes are 0 \(int\), 1 \(int\)"):
        parse_target("2", classes=[0, 1])
    with pytest.raises(ModelError, match="two classes of the model are written so"):
        parse_target("1", classes=[1, "1"])
    with pytest.raises(InputError, match="is empty"):
        parse_target(" ")
    for text in ("score >= high", "score == 0.5", "0.3 < score", "0.3 > score > 0.1"):
        with pytest.raises(InputError, match="cannot be read"):
            parse_target(text)
        with pytest.raises(InputError, match="cannot be read"):
            as_target(text)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: targets.labels([]), "needs a label"),
        (lambda: targets.labels("ab"), "a list of labels"),
        (lambda: targets.label(None), "a label is"),
        (lambda: targets.label(math.nan), "a label is"),
        (lambda: targets.interval(0.7, 0.3), r"empty.*0\.7, 0\.3"),
        (lambda: targets.interval(0.5, 0.5, closed="left"), "empty"),
        (lambda: targets.interval(), "every number"),
        (lambda: targets.interval(math.nan, 1), "a number is expected"),
        (lambda: targets.interval(True, 2), "a number is expected"),
        (lambda: targets.interval(0, 1, closed="leftt"), "did you mean 'left'"),  # type: ignore[arg-type]
        (lambda: targets.lower_than_before(margin=-1), "not negative"),
        (lambda: targets.lower_than_before(margin=math.inf), "a number is expected"),
        (lambda: targets.below(0.5, margin=0.1), "counts from the output before"),
    ],
)
def test_bad_targets(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_bad_hits() -> None:
    for target in (targets.different(), targets.lower_than_before(), targets.function(lambda y, b: y > b)):
        with pytest.raises(InputError, match="was not given"):
            target.hits(Y)
        with pytest.raises(InputError, match="one output before"):
            target.hits(Y, Y[:2])
    for target in (targets.interval(low=0), targets.lower_than_before()):
        with pytest.raises(ModelError, match="compares numbers"):
            target.hits(np.array(["a"]), np.array(["a"]))
    with pytest.raises(InputError, match="of two types"):
        targets.different().hits(np.array([1]), np.array(["1"]))
    for f, message in [
        (lambda y: y, "4 truth values"),
        (lambda y: np.array([True]), "4 truth values"),
        (lambda y: 1 / 0, "raised ZeroDivisionError"),
    ]:
        with pytest.raises(InputError, match=message):
            targets.function(f).hits(Y)


def constant(value: Any, **options: Any) -> Any:
    return as_predictor(lambda frame: [value] * len(frame), **options)


@pytest.mark.parametrize(
    ("target", "predictor", "message"),
    [
        (1, constant(0, classes=[0, 1]), ""),
        (1, constant(0), ""),
        ("1", constant(0, classes=[0, 1]), r"'1' \(str\).*0 \(int\), 1 \(int\)"),
        (1, constant(0.5, output="score"), "answers scores.*threshold"),
        ("score >= 0.7", constant(0, classes=[0, 1]), "answers labels.*output='probability'"),
        ("score >= 0.7", constant(0.5, output="probability"), ""),
        ("score >= 70", constant(0.5, output="probability"), "no score.*between 0 and 1"),
        ("score >= 70", constant(0.5, output="score"), ""),
        ("lower", constant("a", classes=["a", "b"]), "needs numbers.*'different'"),
        ("lower", constant(1, classes=[1, 2, 3]), ""),
        ("different", constant("a", classes=["a", "b"]), ""),
        (~targets.labels(["a", "b"]), constant("a", classes=["a", "b"]), "no output.*every class.*'a'"),
        (~targets.labels(["a", "b"]), constant("a", classes=["a", "b", "c"]), ""),
        (~targets.label("z"), constant("a", classes=["a", "b"]), "does not know the label"),
        ("not 0 <= score <= 1", constant(0.5, output="probability"), "no score.*between 0 and 1"),
        ("not score >= 0", constant(0.5, output="probability"), "no score.*between 0 and 1"),
        ("not 0 < score <= 1", constant(0.5, output="probability"), ""),
        ("not score > 1.5", constant(0.5, output="probability"), ""),
        ("not score > 0.5", constant("a", classes=["a", "b"]), "answers labels"),
    ],
)
def test_check(target: Any, predictor: Any, message: str) -> None:
    problems = as_target(target, classes=predictor.classes).check(predictor)
    assert len(problems) == bool(message)
    if message:
        with pytest.raises(ModelError, match=message):
            ModelError.raise_if(problems)


@pytest.mark.parametrize(
    ("closed", "sentence"),
    [
        ("both", "is below 0.3 or above 0.7"), ("left", "is below 0.3 or at least 0.7"),
        ("right", "is at most 0.3 or above 0.7"), ("neither", "is at most 0.3 or at least 0.7"),
    ],
)  # fmt: skip
def test_the_complement_of_an_interval_is_said_as_two_sides(closed: Any, sentence: str) -> None:
    assert str(~targets.interval(0.3, 0.7, closed=closed)) == sentence
    assert str(~targets.above(0.5)) == "is not above 0.5"


@pytest.mark.parametrize("target", [targets.lower_than_before(), targets.higher_than_before(margin=0.1), targets.different()], ids=str)
def test_a_comparison_with_a_missing_output_is_in_neither_target(target: Target) -> None:
    after, before = np.array([0.5, 0.5]), np.array([np.nan, 0.5])
    assert target.hits(after, before).tolist() == [False, False]
    assert (~target).hits(after, before).tolist() == [False, True]
    assert (~targets.above(0.4)).hits(after, before).tolist() == [False, False]


def test_not_before_a_class_of_the_model_is_its_complement() -> None:
    assert parse_target("not 1", classes=[0, 1, 2]) == ~targets.label(1)
    assert parse_target("not 1, 2", classes=[0, 1, 2]) == ~targets.labels([1, 2])
    assert parse_target("not 1", classes=["not 1", "1"]) == targets.label("not 1"), "a class that is written so is meant"
    assert as_target("not no", classes=["no", "yes"]) == ~targets.label("no")
    assert as_target("not 1", classes=[0, 1]) == ~targets.label(1)
    assert as_target("not 1", classes=["not 1", "1"]) == targets.label("not 1")
    assert as_target("not lower", classes=[0, 1]) == ~targets.lower_than_before()
    assert as_target("not sure") == targets.label("not sure"), "without classes a text is a label"
    for read in (parse_target, as_target):
        with pytest.raises(ModelError, match="does not know the label"):
            read("not 7", classes=[0, 1, 2])


def test_an_audit_takes_not_before_a_class_that_is_a_number() -> None:
    im = budge.InteractionModel([budge.Feature("years", "integer", bounds=(0, 9), max_increase=2)])
    model = as_predictor(lambda t: (t["years"] < 3).to_numpy().astype(int), classes=[0, 1])
    table = [budge.audit(model, pd.DataFrame({"years": [1, 2]}), im, target=t, threshold=0.1).table for t in ("not 1", 0)]
    pd.testing.assert_frame_equal(*table)


@pytest.mark.parametrize("target", ["not lower", "not different"])
def test_a_target_that_everybody_has_as_they_are_is_told(target: str, caplog: pytest.LogCaptureFixture) -> None:
    """The default population is whoever is outside the target: nobody here, and so an audit of 0 people carries a warning."""
    im = budge.InteractionModel([budge.Feature("years", "integer", bounds=(0, 9), max_increase=2)])
    people = pd.DataFrame({"years": [1, 2]})
    model = as_predictor(lambda t: t["years"].to_numpy(dtype=float), output="score")
    told = "nobody is audited: the output of model is not .* for all 2 people as they are"
    found = budge.audit(model, people, im, target=target, threshold=0.1)
    assert [re.search(told, str(note)) is not None for note in found.notes] == [True]
    budge.sensitivity(model, people, {"one": im, "other": im}, target=target, threshold=0.1)
    budge.ablate(model, people, im, target=target, threshold=0.1)
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 3, "once for each analysis"
    assert all("population='all'" in text for text in warnings)
    caplog.clear()
    assert not budge.audit(model, people, im, target=target, threshold=0.1, population="all").notes
    assert not budge.audit(model, people, im, target="score >= 5", threshold=0.1).notes
    assert not caplog.records
    (note,) = budge.audit(model, people, im, target="score >= 5", threshold=0.1, population="years > 77").notes
    assert note.what == "nobody is audited: no row meets years > 77"
    caplog.clear()
    pytest.importorskip("pyarrow", reason="streams need pyarrow, of the `parquet` extra")
    streamed = budge.audit(model, (people.iloc[[k]] for k in range(2)), im, target=target, threshold=0.1)
    assert [note.what for note in streamed.notes] == [note.what for note in found.notes]
    assert len(caplog.records) == 1
