"""What an expression means: round trips, evaluation against an independent reading, missing values, tolerance."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from budge.errors import DataError, ExpressionError
from budge.expressions import Expression, equal, greater, greater_equal, less, less_equal, not_equal, parse, tolerance

from .reference import LEVELS, Reference
from .strategies import ROWS, environments, numbers, parsed, truths

EXPRESSIONS = parsed(st.one_of(numbers(), truths()))


@given(EXPRESSIONS)
def test_canonical_text_parses_back(expression: Expression) -> None:
    again = parse(str(expression))
    assert again == expression
    assert hash(again) == hash(expression)
    assert str(again) == str(expression)
    assert pickle.loads(pickle.dumps(expression)) == expression


def agrees(expression: Expression, env: dict) -> None:
    """On the text as written (Python's precedence) and on the canonical text, row by row."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = np.broadcast_to(expression.evaluate(env, levels=LEVELS), (ROWS,))
    assert found.dtype == (bool if expression.is_boolean else float)
    for i in range(ROWS):
        reference = Reference({var: float(values[i]) for var, values in env.items()})
        for text in (expression.text, str(expression)):
            want = reference.evaluate(text)
            if expression.is_boolean:
                assert bool(found[i]) == (want is True)
            else:
                want = float(want is True) if want is None or isinstance(want, bool) else want
                np.testing.assert_allclose(found[i], want, rtol=1e-12)


@settings(max_examples=200, deadline=None)
@given(EXPRESSIONS, environments(infinite=True))
def test_evaluation_equals_the_reference(expression: Expression, env: dict) -> None:
    agrees(expression, env)


def test_a_power_of_one_half_is_one_power_however_it_is_written() -> None:
    values = {("value", "x"): np.array([-np.inf, 4.0]), ("value", "half"): np.array([0.5, 0.5])}
    assert parse("x ** 0.5").evaluate(values).tolist() == parse("x ** half").evaluate(values).tolist() == [np.inf, 2.0]


@pytest.mark.parametrize(("relation", "planted"), [("<", "less_equal"), ("!=", "less"), (">=", "greater")])
def test_a_planted_bug_is_caught(monkeypatch: pytest.MonkeyPatch, relation: str, planted: str) -> None:
    """If < included equality, and so on, the comparison with the reference would fail."""
    monkeypatch.setitem(tolerance.RELATIONS, relation, getattr(tolerance, planted))
    run = settings(max_examples=400, database=None, derandomize=True, deadline=None, phases=[Phase.generate])
    with pytest.raises(AssertionError):
        run(given(EXPRESSIONS, environments(infinite=True))(agrees))()


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a+b-c", "(a + b) - c"),
        ("-x ** 2", "-(x**2)"),
        ("2 ** -1 * x", "(2 ** (-1)) * x"),
        ("not a == b and c == 1", "(not (a == b)) and (c == 1)"),
        ("`income` > 1", "income > 1"),
        ("x in (1, 2)", "x in [1,2]"),
        ("x == 'a\\'b'", 'x == "a\'b"'),
        ("1_000 * x", "1000.0 * x"),
        ("a and (b and c)", "(a and b) and c"),
    ],
)
def test_equal_expressions(text: str, same: str) -> None:
    assert parse(text) == parse(same)
    assert parse(text).text == text


@pytest.mark.parametrize(("a", "b"), [("a - (b - c)", "a - b - c"), ("(a < b) < c", "a < b < c"), ("x == '1'", "x == 1")])
def test_different_expressions(a: str, b: str) -> None:
    assert parse(a) != parse(b)


@given(st.text(min_size=1, max_size=8).filter(lambda s: s.isprintable()), st.sampled_from(["", "before.", "action.", "latent."]))
def test_any_name_can_be_written_in_backticks(name: str, layer: str) -> None:
    expression = parse(f"{layer}`{name.replace('`', '``')}` >= 1")
    assert expression.vars == {(layer.rstrip(".") or "value", name)}
    assert parse(str(expression)) == expression


@given(st.text(max_size=8).filter(lambda s: not any(0xD800 <= ord(c) < 0xE000 for c in s)))
def test_any_level_can_be_written(level: str) -> None:
    expression = parse(f"housing == {level!r}")
    assert parse(str(expression)) == expression
    assert expression.evaluate({("value", "housing"): 1.0}, levels={"housing": ["", level] if level else ["-", level]})


NUMBERS = st.one_of(
    st.floats(allow_nan=False), st.integers(-5, 5).map(float), st.sampled_from([1 + 5e-10, 1 + 2e-9, 1e12, 1e12 + 100])
)


@given(NUMBERS, NUMBERS)
def test_exactly_one_relation_holds(a: float, b: float) -> None:
    assert int(less(a, b)) + int(equal(a, b)) + int(greater(a, b)) == 1
    assert bool(less_equal(a, b)) == (not greater(a, b)) == bool(greater_equal(b, a))
    assert bool(not_equal(a, b)) == (not equal(a, b))
    assert bool(equal(a, b)) == bool(equal(b, a))


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (1.0, 1 + 5e-10, True),
        (1.0, 1 + 2e-9, False),
        (0.0, 9e-10, True),
        (1e12, 1e12 + 900, True),
        (1e12, 1e12 + 1100, False),
        (np.inf, np.inf, True),
        (np.inf, -np.inf, False),
        (np.inf, 1e308, False),
        (np.nan, np.nan, False),
    ],
)
def test_the_tolerance_is_as_documented(a: float, b: float, same: bool) -> None:
    assert bool(equal(a, b)) is same
    env = {("value", "a"): a, ("value", "b"): b}
    assert bool(parse("a == b").evaluate(env)) is same


@pytest.mark.parametrize(
    "text", [f"x {op} 1" for op in ("<", "<=", "==", "!=", ">=", ">")] + ["x in [1]", "x not in [1]", "not x == 1"]
)
def test_a_missing_value_satisfies_no_comparison(text: str) -> None:
    assert not parse(text).evaluate({("value", "x"): np.nan})


def test_a_missing_value_does_not_decide_what_others_decide() -> None:
    env = {("value", "x"): np.nan, ("value", "y"): 1.0}
    assert parse("x > 0 or y > 0").evaluate(env)
    assert parse("not (x > 0 and y < 0)").evaluate(env)
    assert not parse("not (x > 0 and y > 0)").evaluate(env)


def test_levels_are_compared_as_codes() -> None:
    levels = {"edu": ["low", "mid", "high"], "stars": [3, 1, 2], "flag": [False, True]}
    edu = {("value", "edu"): np.array([0.0, 1.0, 2.0, np.nan]), ("before", "edu"): 1.0}
    assert parse("edu >= 'mid'").evaluate(edu, levels=levels).tolist() == [False, True, True, False]
    assert parse("edu != before.edu").evaluate(edu, levels=levels).tolist() == [True, False, True, False]
    assert parse("'low' < edu <= 'high'").evaluate(edu, levels=levels).tolist() == [False, True, True, False]
    assert parse("stars == 1").evaluate({("value", "stars"): np.array([0.0, 1.0, 2.0])}, levels=levels).tolist() == [
        False,
        True,
        False,
    ]
    assert parse("stars in [1, 2]").evaluate({("value", "stars"): np.array([0.0, 1.0, 2.0])}, levels=levels).tolist() == [
        False,
        True,
        True,
    ]
    assert parse("flag == True").evaluate({("value", "flag"): 1.0}, levels=levels)
    assert parse("action.edu == 1").evaluate({("action", "edu"): 1.0}, levels=levels), "a difference is a number"
    assert parse("latent.e == 'b'").evaluate({("latent", "e"): 1.0}, levels={"latent.e": ["a", "b"]})


def test_levels_as_results() -> None:
    levels = {"housing": ["rent", "own", "free"], "job": ["a", "b"]}
    env = {("latent", "e"): np.array([1.0, 0.0, 0.0]), ("before", "housing"): np.array([0.0, 2.0, np.nan])}
    expression = parse("where(latent.e, 'own', before.housing)")
    assert expression.evaluate(env, levels=levels).tolist() == ["own", "free", None]
    np.testing.assert_array_equal(expression.evaluate(env, levels=levels, result="housing"), [1.0, 2.0, np.nan])
    with pytest.raises(ExpressionError, match="not those of job"):
        expression.evaluate(env, levels=levels, result="job")


@pytest.mark.parametrize(
    ("text", "levels", "message"),
    [
        ("housing == 'onw'", {"housing": ["rent", "own"]}, "did you mean 'own'.*rent, own"),
        ("housing == 'zzz'", {"housing": ["rent", "own"]}, "known: rent, own"),
        ("housing == 'own'", {}, "no levels"),
        ("housing in ['own', 'x']", {"housing": ["rent", "own"]}, "no such level.*'x'"),
        ("housing == 1", {"housing": ["0", "1"]}, "no such level"),
        ("'own'", {"housing": ["rent", "own"]}, None),
    ],
)
def test_levels_that_do_not_exist(text: str, levels: dict, message: str | None) -> None:
    if message is None:
        assert parse(text).evaluate({}, levels=levels).item() == "own"
        return
    with pytest.raises(ExpressionError, match=message):
        parse(text).evaluate({("value", "housing"): 0.0}, levels=levels)


def test_shapes() -> None:
    env = {("value", "x"): np.arange(3.0)[:, None], ("value", "y"): np.arange(2.0), ("value", "z"): 1}
    assert parse("x + y").evaluate(env).shape == (3, 2)
    assert parse("z > 0").evaluate(env).shape == ()
    assert parse("1").evaluate(env, size=4).tolist() == [1, 1, 1, 1]
    assert parse("y").evaluate(env, size=2).shape == (2,)
    found = parse("y").evaluate(env)
    found[0] = 99
    assert env["value", "y"][0] == 0, "what is returned is never a view of what was given"


def test_what_the_environment_lacks() -> None:
    with pytest.raises(ExpressionError, match=r"income has no value.*did you mean 'incom'"):
        parse("income > 1").evaluate({("value", "incom"): 1.0})
    with pytest.raises(DataError, match="must be numbers"):
        parse("income > 1").evaluate({("value", "income"): np.array(["a"])})
    with pytest.raises(DataError, match="shapes"):
        parse("x > y").evaluate({("value", "x"): np.zeros(2), ("value", "y"): np.zeros(3)})
    with pytest.raises(ExpressionError, match="rng="):
        parse("normal(0, 1)", distributions=True).evaluate({}, size=3)


def test_names_and_kinds() -> None:
    expression = parse("income >= 12 * before.rent and action.income != 0")
    assert expression.vars == {("value", "income"), ("before", "rent"), ("action", "income")}
    assert expression.names() == {"income", "rent"}
    assert expression.names("action") == {"income"}
    assert expression.is_boolean
    assert not expression.is_random
    assert not parse("income * 2").is_boolean
    assert parse("where(x > 1, y > 2, False)").is_boolean
    drawn = parse("bernoulli(0.3)", distributions=True)
    assert drawn.is_random
    assert not drawn.is_boolean


def test_check_reports_everything_at_once() -> None:
    levels, names = {"housing": ["rent", "own"], "edu": ["low", "high"]}, ["income", "housing", "edu"]
    problems = parse("incme > 1 and housin == 'own'").check(levels, names)
    assert [p.where for p in problems] == ["column 1", "column 15"]
    assert all("declared" in p.what and "did you mean" in p.remedy for p in problems)
    problems = parse("housing == 'onw' and income == 'x' and housing + 1 > 2").check(levels, names)
    assert len(problems) == 3
    assert parse("latent.e > 1").check(levels, names) == []
    assert "latent" in parse("latent.e > 1").check(levels, names, latent=["f"])[0].what
    assert parse("e > 1").check(levels, names, latent=["e"])[0].remedy == "write latent.e"
    assert "order" in parse("edu < 'high'").check(levels, names, ordered=[])[0].what
    assert parse("edu < 'high' and edu - before.edu <= 1").check(levels, names, ordered=["edu"]) == []
    assert "levels" in parse("housing == edu").check(levels, names)[0].what
    assert "condition" in parse("income + 1").check(levels, names, boolean=True)[0].what
    assert parse("income >= 12 and before.housing in ['own']").check(levels, names, boolean=True) == []
    assert parse("where(income > 1, 'own', housing)").check(levels, names, result="housing") == []
    assert parse("where(income > 1, 'own', edu)").check(levels, names, result="housing") != []


@pytest.mark.parametrize("text", ["x / -0", "x / -(-0)", "x / -0.0", "x / -y", "x / -(-y)"])
def test_a_written_minus_nought_is_nought_and_the_opposite_of_a_value_is_not(text: str) -> None:
    env = {("value", "x"): np.full(ROWS, 2.0), ("value", "y"): np.zeros(ROWS)}
    agrees(parse(text), env)
    assert parse(text).evaluate(env)[0] == (-np.inf if text == "x / -y" else np.inf)
