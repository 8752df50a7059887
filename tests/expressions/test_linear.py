"""Linear forms and formulas agree with evaluation, whatever is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, assume, event, given, settings
from hypothesis import strategies as st

from budge.expressions import (
    All,
    Expression,
    Linear,
    OneOf,
    Row,
    Some,
    Truth,
    Var,
    formula_vars,
    formulas,
    holds,
    negate,
    parse,
    substitute,
)
from cpu import within

from .reference import LEVELS
from .strategies import ROWS, VARS, environments, numbers, parsed, truths

LINEAR = parsed(numbers(2, linear=True))
CONDITIONS = parsed(st.one_of(truths(2, linear=True), truths(2)))
KNOWN = st.sets(st.sampled_from(VARS))
X, Y, INCOME = ("value", "x"), ("value", "y"), ("value", "income")


def rows(values: object) -> np.ndarray:
    return np.broadcast_to(np.asarray(values), (ROWS,))


def split(env: dict, known: set[Var], missing: dict) -> tuple[dict, dict]:
    """The known part may hold missing values; the rest is what a solver moves, which never does."""
    return {v: missing[v] for v in known}, {v: env[v] for v in VARS if v not in known}


@settings(max_examples=150, deadline=None)
@given(LINEAR, environments(missing=False), environments(), KNOWN)
def test_linear_agrees_with_evaluation(expression: Expression, env: dict, missing: dict, known: set[Var]) -> None:
    given_values, rest = split(env, known, missing)
    form = expression.linear(given_values, levels=LEVELS)
    assume(form is not None)
    assert form is not None
    assert form.vars <= expression.vars - known
    event("with open variables" if form.vars else "constant")
    want = expression.evaluate(rest | given_values, levels=LEVELS)
    np.testing.assert_allclose(rows(form.evaluate(rest)), rows(want), rtol=1e-9, atol=1e-9)


def formula_agrees(expression: Expression, env: dict, missing: dict, known: set[Var]) -> None:
    given_values, rest = split(env, known, missing)
    formula = expression.formula(given_values, levels=LEVELS)
    assume(formula is not None)
    assert formula is not None
    assert formula_vars(formula) <= expression.vars - known
    event(type(formula).__name__)
    want = rows(expression.evaluate(rest | given_values, levels=LEVELS))
    np.testing.assert_array_equal(rows(holds(formula, rest)), want)
    np.testing.assert_array_equal(rows(holds(negate(formula), rest)), ~want)
    np.testing.assert_array_equal(rows(holds(negate(negate(formula)), rest)), want)
    some = {v: rest[v] for v in sorted(rest)[::2]}
    np.testing.assert_array_equal(rows(holds(substitute(formula, some), rest)), want)
    np.testing.assert_array_equal(rows(holds(substitute(formula, rest), {})), want)
    one = {v: float(values[0]) for v, values in rest.items()}
    np.testing.assert_array_equal(rows(holds(substitute(formula, one), {}))[0], want[0])


@settings(max_examples=250, deadline=None)
@given(CONDITIONS, environments(missing=False), environments(), KNOWN)
def test_formula_agrees_with_evaluation(expression: Expression, env: dict, missing: dict, known: set[Var]) -> None:
    formula_agrees(expression, env, missing, known)


def test_a_planted_bug_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the opposite of < were >, the comparison with evaluation would fail."""
    monkeypatch.setitem(formulas.FLIP, "<", ">")
    run = settings(max_examples=400, database=None, derandomize=True, deadline=None, phases=[Phase.generate])
    with pytest.raises(AssertionError):
        run(given(CONDITIONS, environments(missing=False), environments(), KNOWN)(formula_agrees))()


@settings(max_examples=150, deadline=None)
@given(parsed(truths(2, linear=True)), environments(missing=False))
def test_piecewise_linear_conditions_always_have_a_formula(expression: Expression, env: dict) -> None:
    """Nothing known: sums, multiples, abs, min, max, clip, where and conditions as numbers are all expressible."""
    formula = expression.formula({}, levels=LEVELS)
    if formula is None:
        event("too many cases")
        assert str(expression).count("(") > 6 or "kind" in str(expression)
        return
    np.testing.assert_array_equal(rows(holds(formula, env)), rows(expression.evaluate(env, levels=LEVELS)))


def test_the_example_of_the_contract() -> None:
    expression = parse("12*500*(housing=='rent') + 2*income")
    form = expression.linear({("value", "housing"): np.array([0.0, 1.0])}, levels={"housing": ["rent", "own"]})
    assert form == Linear({INCOME: 2.0}, np.array([6000.0, 0.0]))


@pytest.mark.parametrize(
    "text", ["x * y", "abs(x)", "max(x, 1)", "round(x)", "x ** 2", "1 / x", "x // 2", "x % 2", "where(x > 1, 1, 2)", "exp(x)"]
)
def test_what_is_not_linear(text: str) -> None:
    assert parse(text).linear({}) is None
    assert parse(text).linear({X: 2.0, Y: 1.0}) is not None


def test_random_draws_have_no_form() -> None:
    drawn = parse("normal(x, 1) > 0", distributions=True)
    assert drawn.formula({}) is None
    assert drawn.formula({X: 1.0}) is None
    assert parse("normal(x, 1)", distributions=True).linear({X: 1.0}) is None


def test_where_with_a_known_condition() -> None:
    form = parse("where(y > 0, 2 * x, 1 - x)").linear({Y: np.array([1.0, -1.0])})
    assert form == Linear({X: np.array([2.0, -1.0])}, np.array([0.0, 1.0]))
    assert parse("where(y > 0, 2 * x, x * x)").linear({Y: 1.0}) == Linear({X: 2.0}, 0.0)


@pytest.mark.parametrize(
    ("text", "kind", "size"),
    [
        ("abs(x - 3) <= 2", All, 2),
        ("abs(x - 3) >= 2", Some, 2),
        ("not abs(x) < 2", Some, 2),
        ("max(x, y) <= 1", All, 2),
        ("min(x, y) <= 1", Some, 2),
        ("min(x, y, 3) > 1", All, 2),
        ("1 <= x <= 2", All, 2),
        ("not (1 <= x <= 2)", Some, 2),
        ("x + 2 * abs(y) <= 4", All, 2),
        ("x - 2 * abs(y) <= 4", Some, 2),
        ("abs(x) + abs(y) <= 1", All, 4),
    ],
)
def test_the_convex_side_needs_no_cases(text: str, kind: type, size: int) -> None:
    formula = parse(text).formula({})
    assert isinstance(formula, kind)
    assert len(formula.parts) == size
    assert all(isinstance(part, Row) for part in formula.parts)


def test_known_parts_become_truths() -> None:
    assert parse("x > 1 and y > 2").formula({X: 0.0}) == Truth(False)
    assert parse("x > 1 or y > 2").formula({X: 0.0}) == Row(Linear({Y: 1.0}, -2.0), ">")
    assert parse("x > 1 or y * y > 2").formula({X: 2.0}) == Truth(True), "what is known decides"
    formula = parse("x > 1 or y > 2").formula({X: np.array([0.0, 2.0])})
    assert formula == Some((Truth(np.array([False, True])), Row(Linear({Y: 1.0}, -2.0), ">")))
    assert parse("x in [1, 2]").formula({}) == OneOf((X,), np.array([[1.0], [2.0]]))


def test_one_of() -> None:
    table = OneOf((X, Y), np.array([[0, 0], [1, 2]]))
    env = {X: np.array([0.0, 1.0, 1.0]), Y: np.array([0.0, 2.0, 0.0])}
    assert holds(table, env).tolist() == [True, True, False]
    assert holds(negate(table), env).tolist() == [False, False, True]
    assert substitute(table, {X: 1.0}) == OneOf((Y,), np.array([[2.0]]))
    assert substitute(table, {X: 5.0}) == Truth(False)
    partly = substitute(table, {X: env[X]})
    assert holds(partly, {Y: env[Y]}).tolist() == [True, True, False]
    assert substitute(table, env) == Truth(np.array([True, True, False]))
    assert holds(OneOf((X,), np.empty((0, 1))), env).tolist() == [False, False, False]


def test_arithmetic_of_linear_forms() -> None:
    x, y = Linear.of(X), Linear.of(Y)
    form = 2 * x - y / 2 + 3 - np.array([1.0, 2.0])
    assert form == Linear({X: 2.0, Y: -0.5}, np.array([2.0, 1.0]))
    assert (1 - x) == Linear({X: -1.0}, 1.0)
    assert (np.array([1.0, 0.0]) * x).terms[X].tolist() == [1.0, 0.0]  # type: ignore[union-attr]
    assert (x - x).vars == frozenset()
    assert form.substitute({X: 1.0}) == Linear({Y: -0.5}, np.array([4.0, 3.0]))
    assert form.evaluate({X: 1.0, Y: 2.0}).tolist() == [3.0, 2.0]
    assert x != 1
    with pytest.raises(ValueError, match="no value here"):
        x.evaluate({})


def test_rows_keep_the_scale_of_the_comparison() -> None:
    """The margin of a row is that of the sides as written, not of terms that cancel."""
    big = {X: 1e9, Y: 1e9 - 1.2}
    for text in ("x - y <= 0.5", "x <= y + 0.5", "x - y == 1.2", "x == y"):
        formula = parse(text).formula({})
        assert formula is not None
        assert bool(holds(formula, big)) == bool(parse(text).evaluate(big)), text
    near = {X: 1e9, Y: 1e9 + 0.5}
    assert parse("x == y").evaluate(near)
    assert holds(parse("x == y").formula({}), near)  # type: ignore[arg-type]
    assert not holds(parse("x == y").formula({}), near, tol=1e-12)  # type: ignore[arg-type]


def test_a_variable_that_cancels_is_not_needed() -> None:
    formula = parse("2 * x + y > 2 * x").formula({})
    assert formula == Row(Linear({Y: 1.0}, 0.0), ">")
    assert holds(formula, {Y: 1.0})
    assert parse("x + 1 > x").formula({}) == Truth(True)


def test_nested_conditions_take_no_exponential_time() -> None:
    text = "x > 0"
    for _ in range(40):
        text = f"({text}) + x > 1"
    expression = parse(text)
    with within(20):  # about 0.1 s; 2**40 steps without memory
        expression.formula({})
        expression.linear({})
        expression.range({X: (0.0, 1.0)})
    assert expression.formula({X: 1.0}) == Truth(True)
