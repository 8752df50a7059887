"""Strict rows between counted whole numbers and a real: the boundary is left out, nothing else is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from reach_kit import ks

import budge
from budge import Feature, InteractionModel
from budge.constraints import IfThen, Rule
from budge.distributions import Distribution
from budge.reach import set_size

ALPHA = 1e-5


def whole(name: str, high: int) -> Feature:
    return Feature(name, "integer", bounds=(0, high))


def real(name: str, low: float, high: float) -> Feature:
    return Feature(name, "real", bounds=(low, high))


def drawn(features: list[Feature], rules: list[Any], x: dict[str, float], n: int = 4000) -> tuple[str, dict[str, np.ndarray]]:
    im = InteractionModel(features, rules)
    sample = im.sample(x, n, seed=1, on_invalid="keep")
    start = np.array([x[f.name] for f in features])
    assert im.feasible(x, sample.values - start).all()
    return sample.status, dict(zip((f.name for f in features), sample.values.T))


@pytest.mark.parametrize("guard", [False, True])
def test_a_whole_number_below_a_real(guard: bool) -> None:
    """Each of 0 … 999 has a room of its own, (a, 1000]; 1000 has none."""
    rules = [IfThen("p == 1", "a < u")] if guard else [Rule("a < u")]
    features = [whole("a", 1000), real("u", 0, 1000)] + ([Feature("p", "binary", actionable=False)] if guard else [])
    _, got = drawn(features, rules, {"a": 0.0, "u": 0.5} | ({"p": 1.0} if guard else {}))
    assert got["a"].max() == 999
    assert ks((got["u"] - got["a"]) / (1000 - got["a"]), "uniform") > ALPHA


def test_what_the_start_adds_to_the_bound_is_no_step() -> None:
    status, got = drawn([whole("a", 1000), real("u", 0, 0.9)], [Rule("a < u")], {"a": 0.0, "u": 0.9})
    assert status == "ok"
    assert ks(got["u"] / 0.9, "uniform") > ALPHA
    _, got = drawn([whole("a", 1000), real("u", 0, 3)], [Rule("a + u > 1002.2")], {"a": 1000.0, "u": 3.0})
    assert ks((got["u"] - 2.2) / 0.8, "uniform") > ALPHA


def test_an_audit_beside_a_strict_row() -> None:
    im = InteractionModel([whole("a", 1000), real("u", 990, 991)], [Rule("a < u"), Rule("a >= 990")])
    X = pd.DataFrame({"a": [990], "u": [990.5]})
    found = budge.audit(lambda t: ((t["u"] - t["a"]) < 0.4).astype(int), X, im, target=1, threshold=0.1, n=2000)
    assert found.table["verdict"].tolist() == ["above"]


def test_two_whole_numbers_below_a_real_and_strict_rows_over_both() -> None:
    _, got = drawn([whole("a", 1000), whole("b", 1000), real("u", 0, 0.4)], [Rule("a + b < u")], {"a": 0.0, "b": 0.0, "u": 0.2})
    assert not got["a"].any()
    assert not got["b"].any()
    assert ks(got["u"] / 0.4, "uniform") > ALPHA
    im = InteractionModel([whole("a", 600), whole("b", 600)], [Rule("a + 2 * b < 300"), Rule("a > b")])
    assert set_size(im, {"a": 1, "b": 0}) == sum(a + 2 * b < 300 and a > b for a in range(601) for b in range(601))


def test_a_real_that_an_equality_determines_can_be_listed() -> None:
    im = InteractionModel([whole("a", 600), whole("b", 600), real("u", 0, 600)], [Rule("u + a + b == 600")])
    x = {"a": 0, "b": 0, "u": 600.0}
    assert set_size(im, x) == 601 * 602 // 2 == im.enumerate(x).size


@pytest.mark.parametrize("log", [False, True])
def test_strict_rows_and_log_densities_beside_three_wide_whole_numbers(log: bool) -> None:
    """Counted without the real, which is drawn from what is left: the sum of the whole numbers has the law of a simplex."""
    law = Distribution("log") if log else None
    top = 10**6
    features = [*(whole(name, top) for name in "abc"), Feature("u", "real", bounds=(0.5, 2), distribution=law)]
    rule = Rule(f"a + b + c + {top} * u < {1.5 * top}")
    status, got = drawn(features, [rule], {"a": 0.0, "b": 0.0, "c": 0.0, "u": 0.6})
    assert status == "ok"
    total = (got["a"] + got["b"] + got["c"]) / top  # below 1: u is at least 0.5
    assert total.max() < 1
    assert ks(total**3, "uniform") > ALPHA
    upper = 1.5 - total
    assert ks(np.log(got["u"] / 0.5) / np.log(upper / 0.5) if log else (got["u"] - 0.5) / (upper - 0.5), "uniform") > ALPHA


def test_a_log_density_under_a_strict_budget_beside_wide_whole_numbers() -> None:
    """Density 1/u on u + v < 3 - (a + b)/10^4, u and v from 1 on: drawn by thinning, and (3 - s - u)/u over u."""
    features = [whole("a", 10**4), whole("b", 10**4), Feature("u", "real", bounds=(1, 2), distribution=Distribution("log")), real("v", 1, 2)]
    _, got = drawn(features, [Rule("u + v + (a + b) / 10000 < 3")], {"a": 0.0, "b": 0.0, "u": 1.0, "v": 1.0})
    rest = 2 - (got["a"] + got["b"]) / 1e4  # what u may reach
    total = rest * np.log(rest) - (rest - 1)
    assert ks((rest * np.log(got["u"]) - (got["u"] - 1)) / total, "uniform") > ALPHA
    assert ks((got["v"] - 1) / (rest - got["u"]), "uniform") > ALPHA
