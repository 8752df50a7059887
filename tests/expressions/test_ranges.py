"""Ranges hold every value, and what is called whole is whole."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budge.expressions import Expression, parse

from .reference import LEVELS
from .strategies import VARS, environments, numbers, parsed, truths

EXPRESSIONS = parsed(st.one_of(numbers(), truths()))
X, Y = ("value", "x"), ("value", "y")


@settings(max_examples=200, deadline=None)
@given(EXPRESSIONS, environments(missing=False))
def test_the_range_holds_every_value(expression: Expression, env: dict) -> None:
    bounds = {var: (float(values.min()), float(values.max())) for var, values in env.items() if var[1] != "kind"}
    low, high = expression.range(bounds, levels=LEVELS)
    values = np.asarray(expression.evaluate(env, levels=LEVELS), dtype=float)
    values = values[~np.isnan(values)]
    assert np.all((values >= low) & (values <= high)), (low, high, values)


@settings(max_examples=200, deadline=None)
@given(EXPRESSIONS, environments(), st.sets(st.sampled_from(VARS)))
def test_whole_means_whole(expression: Expression, env: dict, whole: set) -> None:
    if expression.integral(whole):
        env = {var: np.round(values) if var in whole else values for var, values in env.items()}
        values = np.asarray(expression.evaluate(env, levels=LEVELS), dtype=float)
        values = values[np.isfinite(values)]
        np.testing.assert_array_equal(values, np.round(values))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("normal(0, 1)", (-math.inf, math.inf)),
        ("normal(x, 0)", (0, 2)),
        ("uniform(1, 2)", (1, 2)),
        ("uniform(x, y + 3)", (0, 4)),
        ("lognormal(0, 1)", (0, math.inf)),
        ("integers(1, 6)", (1, 6)),
        ("poisson(3)", (0, math.inf)),
        ("binomial(5, 0.5)", (0, 5)),
        ("bernoulli(0.3)", (0, 1)),
        ("bernoulli(1)", (1, 1)),
        ("bernoulli(0)", (0, 0)),
        ("beta(1, 2)", (0, 1)),
        ("gamma(1, 2)", (0, math.inf)),
        ("exponential(2)", (0, math.inf)),
        ("triangular(1, 2, 4)", (1, 4)),
        ("categorical([3, 5, 9], [1, 1, 0])", (3, 5)),
        ("where(bernoulli(0.5), uniform(1.2, 1.8), 1)", (1, 1.8)),
        ("clip(normal(0, 1), 0, 9)", (0, 9)),
        ("round(uniform(0.6, 2.4))", (1, 2)),
        ("x * y", (-2, 2)),
        ("x - y", (-1, 3)),
        ("abs(y)", (0, 1)),
        ("x ** 2 + y ** 2", (0, 5)),
        ("x > 5", (0, 0)),
        ("x >= 0", (1, 1)),
        ("x > 1", (0, 1)),
        ("1 / y", (-math.inf, math.inf)),
        ("6 / (x + 1)", (2, 6)),
        ("x in [7, 8]", (0, 0)),
        ("not x == 7", (1, 1)),
        ("z", (-math.inf, math.inf)),
    ],
)
def test_ranges(text: str, want: tuple[float, float]) -> None:
    found = parse(text, distributions=True).range({X: (0.0, 2.0), Y: (-1.0, 1.0)})
    assert found == pytest.approx(want, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize(
    "text",
    [
        "normal(y, 1)",
        "lognormal(y, 1)",
        "uniform(y, 2)",
        "integers(-2, 3)",
        "poisson(3)",
        "binomial(5, 0.5)",
        "bernoulli(0.3)",
        "gamma(1, 2)",
        "exponential(2)",
        "beta(0.5, 0.5)",
        "triangular(-1, y, 1)",
        "categorical([3, -5], [1, 1])",
        "round(normal(0, 9)) * x",
    ],
)
def test_draws_stay_in_their_range(text: str) -> None:
    expression = parse(text, distributions=True)
    rng = np.random.default_rng(5)
    env = {X: rng.uniform(0, 2, 2000), Y: rng.uniform(-1, 1, 2000)}
    low, high = expression.range({X: (0.0, 2.0), Y: (-1.0, 1.0)})
    values = expression.evaluate(env, rng=rng)
    assert values.min() >= low
    assert values.max() <= high
    if expression.integral([]):
        np.testing.assert_array_equal(values, np.round(values))


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("2 * x + 1", True),
        ("x / 2", False),
        ("0.5 * x", False),
        ("y", False),
        ("round(y)", True),
        ("round(y, 1)", False),
        ("y // 2", True),
        ("x ** 2", True),
        ("x ** -1", False),
        ("where(y > 1, x, 3)", True),
        ("where(y > 1, y, 3)", False),
        ("y > 1", True),
        ("integers(1, 3) + poisson(2)", True),
        ("normal(0, 1)", False),
        ("round(normal(0.1 * y, 50))", True),
        ("clip(x, 0, 9)", True),
        ("clip(x, 0, 9.5)", False),
        ("x % 3", True),
        ("min(x, 2)", True),
        ("categorical([1, 2], [1, 1])", True),
        ("categorical([1.5, 2], [1, 1])", False),
        ("categorical(['a', 'b'], [1, 1])", True),
        ("exp(x)", False),
    ],
)
def test_whole(text: str, whole: bool) -> None:
    assert parse(text, distributions=True).integral({X}) is whole


def test_a_category_is_bounded_by_its_levels() -> None:
    assert parse("housing >= 'own'").range({}, levels={"housing": ["rent", "own"]}) == (0, 1)
    assert parse("where(x > 1, 'own', housing)").range({}, levels={"housing": ["rent", "own"]}, result="housing") == (0, 1)
