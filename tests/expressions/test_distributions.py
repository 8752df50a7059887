"""Draws have the law that the page states. Seeds are fixed; each test alone would raise a false alarm with probability 1e-6."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from budge.errors import DataError
from budge.expressions import parse

N = 20_000
FALSE_ALARM = 1e-6
X = ("value", "x")


def draw(text: str, seed: int = 11, n: int = N, **env: object) -> np.ndarray:
    given = {("value", name): value for name, value in env.items()}
    return parse(text, distributions=True).evaluate(given, rng=np.random.default_rng(seed), size=n)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("normal(3, 2)", stats.norm(3, 2)),
        ("lognormal(1, 0.5)", stats.lognorm(s=0.5, scale=np.exp(1))),
        ("uniform(-1, 4)", stats.uniform(-1, 5)),
        ("exponential(3)", stats.expon(scale=3)),
        ("gamma(2, 3)", stats.gamma(2, scale=3)),
        ("beta(2, 5)", stats.beta(2, 5)),
        ("triangular(1, 2, 4)", stats.triang(1 / 3, 1, 3)),
        ("2 * normal(0, 1) + 1", stats.norm(1, 2)),
    ],
)
def test_continuous_laws(text: str, law: stats.distributions.rv_frozen) -> None:
    assert stats.kstest(draw(text), law.cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    ("text", "values", "mass"),
    [
        ("bernoulli(0.3)", [0, 1], stats.bernoulli(0.3).pmf),
        ("integers(2, 5)", [2, 3, 4, 5], lambda k: np.full(len(k), 0.25)),
        ("binomial(4, 0.4)", [0, 1, 2, 3, 4], stats.binom(4, 0.4).pmf),
        ("min(poisson(2), 6)", [0, 1, 2, 3, 4, 5, 6], lambda k: np.append(stats.poisson(2).pmf(k[:-1]), stats.poisson(2).sf(5))),
        ("categorical([7, 1, 9], [1, 5, 2])", [7, 1, 9], lambda k: np.array([1, 5, 2]) / 8),
        ("uniform(0, 1) < 0.2", [0, 1], stats.bernoulli(0.2).pmf),
    ],
)
def test_discrete_laws(text: str, values: list[float], mass: Callable[[np.ndarray], np.ndarray]) -> None:
    drawn = draw(text).astype(float)
    counts = np.array([(drawn == value).sum() for value in values])
    assert counts.sum() == N, "nothing outside the support, both ends of integers included"
    assert stats.chisquare(counts, N * mass(np.array(values))).pvalue > FALSE_ALARM


def test_a_wrong_parameter_would_be_seen() -> None:
    assert stats.kstest(draw("exponential(3)"), stats.expon(scale=1 / 3).cdf).pvalue < FALSE_ALARM
    assert stats.kstest(draw("normal(3, 2)"), stats.norm(3, np.sqrt(2)).cdf).pvalue < FALSE_ALARM


def test_levels_are_drawn_by_weight() -> None:
    drawn = draw("categorical(['own', 'rent'], [0, 1])", n=5)
    assert drawn.tolist() == ["rent"] * 5
    coded = parse("categorical(['own', 'rent'], [0, 1])", distributions=True)
    assert coded.evaluate(
        {}, levels={"housing": ["own", "rent"]}, rng=np.random.default_rng(0), size=2, result="housing"
    ).tolist() == [1, 1]


@pytest.mark.parametrize("cov", [[[2, 1], [1, 3]], [[1, 1], [1, 1]], [[0, 0], [0, 4]]])
def test_normal_vectors(cov: list[list[float]]) -> None:
    expression = parse(f"multivariate_normal([1, -2], {cov})", distributions=True)
    assert expression.width == 2
    drawn = expression.evaluate({}, rng=np.random.default_rng(3), size=N)
    assert drawn.shape == (N, 2)
    # Each direction is normal with variance wᵀ cov w; a direction of variance 0 does not move.
    for weights in ([1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [1.0, -1.0]):
        values = drawn @ weights
        mean, sd = np.dot(weights, [1, -2]), np.sqrt(np.dot(weights, np.dot(cov, weights)))
        if sd == 0:
            np.testing.assert_allclose(values, mean, atol=1e-12)
        else:
            assert stats.kstest(values, stats.norm(mean, sd).cdf).pvalue > FALSE_ALARM


def test_parameters_may_be_arrays() -> None:
    x = np.repeat([0.0, 100.0], N // 2)
    drawn = draw("normal(x, 1)", x=x)
    assert stats.kstest(drawn - x, stats.norm().cdf).pvalue > FALSE_ALARM
    assert draw("triangular(x, x, x)", n=3, x=np.array([1.0, 2.0, 3.0])).tolist() == [1, 2, 3]
    assert draw("uniform(x, x)", n=2, x=5.0).tolist() == [5, 5]


def test_every_row_has_its_own_draw() -> None:
    env = {X: np.zeros(50)}
    drawn = parse("x + normal(0, 1)", distributions=True).evaluate(env, rng=np.random.default_rng(0))
    assert len(set(drawn)) == 50
    twice = parse("normal(0, 1) - normal(0, 1)", distributions=True).evaluate({}, rng=np.random.default_rng(0), size=50)
    assert np.all(twice != 0), "two calls are two draws"
    assert parse("normal(0, 1)", distributions=True).evaluate({}, rng=np.random.default_rng(0)).shape == ()


def test_the_same_seed_gives_the_same_draws() -> None:
    text = "where(bernoulli(0.5), gamma(2, x), poisson(3))"
    np.testing.assert_array_equal(draw(text, x=2.0), draw(text, x=2.0))


@pytest.mark.parametrize(
    ("text", "bad", "message"),
    [
        ("bernoulli(x)", 1.5, "p.: 1.5"),
        ("normal(0, x)", -2.0, "sd.: -2.0"),
        ("uniform(x, 0)", 3.0, "low.: 3.0"),
        ("poisson(x)", -1.0, "rate.: -1"),
        ("binomial(x, 0.5)", 0.5, "n.: 0.5"),
        ("integers(x, 9)", 0.5, "low.: 0.5"),
        ("beta(x, 1)", 0.0, "a.: 0.0"),
        ("gamma(1, x)", -1.0, "scale.: -1"),
        ("normal(x, 1)", np.nan, "mean.: nan"),
        ("exponential(x)", np.inf, "mean.: inf"),
    ],
)
def test_bad_parameters_show_the_first_bad_value(text: str, bad: float, message: str) -> None:
    with pytest.raises(DataError, match=message):
        draw(text, n=3, x=np.array([0.0 if "uniform" in text else 1.0, bad, bad]))


def test_parameters_matter_only_where_the_branch_is_taken() -> None:
    x = np.array([-1.0, 0.5, 2.0])
    drawn = draw("where(0 <= x <= 1, bernoulli(x), x)", n=3, x=x)
    assert drawn[[0, 2]].tolist() == [-1.0, 2.0]
    assert drawn[1] in (0.0, 1.0)
    with pytest.raises(DataError, match=r"'p': 2\.0"):
        draw("where(x >= 0, bernoulli(x), x)", n=3, x=x)
    nested = draw("where(x > 0, where(x < 1, uniform(0, 1 - x), 9), normal(0, -x))", n=3, x=x)
    assert nested[2] == 9
