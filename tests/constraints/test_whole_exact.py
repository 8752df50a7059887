"""Whole numbers compare exactly, up to 2^53: masks against fractions, the solver and the enumeration against masks."""

from __future__ import annotations

import operator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import budge
from budge.constraints import (
    AdditiveLinkage,
    Constraint,
    DirectionalLinkage,
    IfThen,
    LinearConstraint,
    Reachability,
    Rule,
    Switch,
)
from budge.program.milp import PartProgram

LARGEST = 2**53
RELATIONS = {"<=": operator.le, "<": operator.lt, "==": operator.eq, "!=": operator.ne, ">=": operator.ge, ">": operator.gt}
DECIMALS = st.sampled_from(["1", "3", "-7", "0.01", "-0.25", "0.5", "12.5", "-0.001"])
NAMES = ("a", "b", "c")


def features() -> list[budge.Feature]:
    return [budge.Feature(name, "integer", bounds=(-LARGEST, LARGEST)) for name in NAMES]


def zeros() -> dict[str, Any]:
    return dict.fromkeys(NAMES, np.asarray(0.0))


@st.composite
def rows(draw: st.DrawFn) -> tuple[list[str], list[int], Fraction]:
    """Coefficients as written, whole values, and a constant near their sum; everything times 1000 stays below 2^53."""
    coefficients = draw(st.lists(DECIMALS, min_size=1, max_size=3))
    values = []
    for text in coefficients:
        most = int(LARGEST / 4 / max(1000 * abs(Fraction(text)), 1))
        values.append(draw(st.one_of(st.integers(-most, most), st.integers(-50, 50), st.sampled_from([most, -most, most - 1]))))
    total = sum((Fraction(text) * value for text, value in zip(coefficients, values)), Fraction(0))
    off = draw(st.sampled_from([Fraction(0), Fraction(1), Fraction(-1), Fraction(1, 100), Fraction(-1, 1000), Fraction(1, 2)]))
    return coefficients, values, total + off


def written(value: Fraction) -> str:
    return format(Decimal(value.numerator) / Decimal(value.denominator), "f")


@settings(max_examples=400, deadline=None)
@given(rows(), st.sampled_from(sorted(RELATIONS)))
@example((["1"], [10**9 + 1], Fraction(10**9)), "<=")
@example((["0.01"], [10_000_001], Fraction(100_000)), "<=")
@example((["0.01"], [1_000_000_001], Fraction(10_000_000)), "<=")
def test_masks_agree_with_fractions(row: tuple[list[str], list[int], Fraction], relation: str) -> None:
    coefficients, values, constant = row
    used = NAMES[: len(values)]
    left = sum((Fraction(text) * value for text, value in zip(coefficients, values)), Fraction(0))
    wanted = RELATIONS[relation](left, constant)
    terms = " + ".join(f"({text}) * {name}" for text, name in zip(coefficients, used))
    text = f"{terms} {relation} {written(constant)}"
    opposite = f"not ({terms} {relation} {written(constant)})"
    kinds: list[tuple[Constraint, bool]] = [
        (Rule(text), wanted),
        (Rule(opposite), not wanted),
        (IfThen(text, "a != a"), not wanted),
        (Switch(text, ("c",)) if "c" not in used else Rule(text), True if "c" not in used else wanted),
    ]
    if relation in ("<=", "==", ">="):
        kinds.append((LinearConstraint(dict(zip(used, map(float, coefficients))), relation, float(constant)), wanted))  # type: ignore[arg-type]
    by_name = {f.name: f for f in features()}
    change = zeros() | {name: np.asarray(float(value)) for name, value in zip(used, values)}
    for constraint, truth in kinds:
        assert bool(constraint.bind(by_name).mask(zeros(), change, change)) == truth, (constraint, values)


@settings(max_examples=150, deadline=None)
@given(rows(), st.sampled_from(["<=", "==", ">="]))
def test_an_additive_linkage_agrees_with_fractions(row: tuple[list[str], list[int], Fraction], relation: Any) -> None:
    coefficients, values, _ = row
    used = NAMES[: len(values)]
    if len(used) == 1:
        return
    link = AdditiveLinkage(used[0], float(coefficients[0]), dict(zip(used[1:], map(float, coefficients[1:]))), relation)
    given_, *taken = (Fraction(text) * value for text, value in zip(coefficients, values))
    change = zeros() | {name: np.asarray(float(value)) for name, value in zip(used, values)}
    assert bool(link.bind({f.name: f for f in features()}).mask(zeros(), change, change)) == RELATIONS[relation](given_, sum(taken))


@pytest.mark.parametrize("curved", ["a * b == {}", "abs(a * b) <= {}", "max(a * b, 0) >= {}", "a * b in [{}]", "min(a, b) * max(a, b) <= {}"])
def test_curved_rules_over_whole_numbers_are_exact(curved: str) -> None:
    by_name = {f.name: f for f in features()}
    change = zeros() | {"a": np.asarray(94906265.0), "b": np.asarray(94906264.0)}
    product = 94906265 * 94906264
    for constant in (product - 1, product, product + 1):
        wanted = {"==": product == constant, "<=": product <= constant, ">=": product >= constant, "in": product == constant}
        (relation,) = [r for r in wanted if f" {r} " in curved]
        assert bool(Rule(curved.format(constant)).bind(by_name).mask(zeros(), change, change)) == wanted[relation], constant


def test_reals_keep_the_tolerance() -> None:
    real = budge.Feature("a", "real", bounds=(0, 1e10))
    here, change = {"a": np.asarray(0.0)}, {"a": np.asarray(1e9 + 0.5)}
    for constraint in (Rule("a <= 1000000000"), LinearConstraint({"a": 1}, "<=", 1e9)):
        assert constraint.bind({"a": real}).mask(here, change, change)
    whole = budge.Feature("a", "integer", bounds=(0, 10**10))
    change = {"a": np.asarray(1e9 + 1)}
    assert LinearConstraint({"a": 0.1234567890123}, "<=", 123456789.1).bind({"a": whole}).mask(here, change, change)


def around(size: int) -> list[tuple[list[budge.Feature], list[Constraint], dict[str, Any], list[dict[str, float]]]]:
    """Models at a magnitude, a start, and changes next to what they allow."""
    a, b = (budge.Feature(name, "integer", bounds=(0, 4 * size)) for name in "ab")
    on = budge.Feature("on", "binary")
    far: list[dict[str, float]] = [
        {"a": size + d, "b": size + e, "on": o} for d in (-2, -1, 0, 1, 2) for e in (-1, 0, 1) for o in (0, 1)
    ]
    start = {"a": 0, "b": 0, "on": 0}
    step = [a.but(max_increase=2, max_decrease=2), b.but(max_increase=2, max_decrease=2), on]
    near: list[dict[str, float]] = [{"a": d, "b": e, "on": o} for d in (-2, -1, 0, 1, 2) for e in (-2, 0, 1) for o in (0, 1)]
    here = {"a": size, "b": size, "on": 0}
    kinds: list[list[Constraint]] = [
        [LinearConstraint({"a": 1, "b": 1}, "<=", 2 * size)],
        [LinearConstraint({"a": 0.01, "b": -0.01}, "==", 0.01)],
        [Rule("0.01 * a <= " + written(Fraction(size, 100)))],
        [Rule(f"a + b < {2 * size} or on == 1")],
        [Rule(f"max(a, b) <= {size} and a != {size - 1}")],
        [IfThen("on == 1", f"a >= {size}")],
        [IfThen(f"a > {size}", f"b in [{size}, {size + 1}]")],
        [Switch(f"a <= {size}", ("b",))],
        [Reachability(("a", "on"), ((size, 0), (size + 1, 1), (0, 0)))],
        [AdditiveLinkage("a", 1, {"b": 1}, "<=")],
    ]
    found: list[tuple[list[budge.Feature], list[Constraint], dict[str, Any], list[dict[str, float]]]] = []
    for constraints in kinds:
        found += [([a, b, on], constraints, start, far), (step, constraints, here, near)]
    target = budge.Feature("b", "integer", bounds=(0, 4 * size), actionable=False)
    for link in (DirectionalLinkage("a", {"b": 0.3}, "<="), DirectionalLinkage("a", {"b": 1}), DirectionalLinkage("a", {"b": 1}, "==", "clip")):
        follow: list[dict[str, float]] = [{"a": size, "b": round(0.3 * size) + d, "on": 0} for d in (-1, 0, 1)]
        found.append(([a, target, on], [link], start, [*far, *follow]))
    return found


@pytest.mark.parametrize("size", [10, 10**7, 10**9, 10**10])
def test_solver_and_enumeration_agree_with_the_masks(size: int) -> None:
    both = set()
    for declared, constraints, start, changes in around(size):
        im = budge.InteractionModel(declared, constraints)
        table = np.array([[change[f.name] for f in im.features] for change in changes], dtype=float)
        defined = im.feasible(start, table)
        both |= set(defined.tolist())
        x = im.start(start)
        programs = [PartProgram(part, x) for part in im.parts]
        solved = [all(p.feasible({n: change[n] for n in p.part.names}) for p in programs) for change in changes]
        assert solved == defined.tolist(), (constraints, [c for c, s, d in zip(changes, solved, defined) if s != d])
        if declared[0].max_increase is not None:
            first = np.array([start[f.name] for f in im.features])
            listed = {tuple(point) for point in (im.enumerate(start, on_invalid="keep").values - first).tolist()}
            assert [tuple(row) in listed for row in table.tolist()] == defined.tolist(), constraints
            drawn = im.sample(start, 200, on_invalid="keep").values - first
            assert {tuple(row) for row in drawn.tolist()} <= listed
    assert both == {True, False}


def test_the_bounds_of_whole_numbers_are_exact() -> None:
    im = budge.InteractionModel([budge.Feature("a", "integer", bounds=(0, 10**10)), budge.Feature("b", "integer", bounds=(0, 10**10))])
    assert im.feasible({"a": 0, "b": 0}, [[10**10, 0], [10**10 + 1, 0], [10**10 - 0.5, 0]]).tolist() == [True, False, False]
    assert not im.broken({"a": 10**10, "b": 0})
    assert im.broken({"a": 10**10 + 1, "b": 0})


def test_a_condition_over_large_whole_numbers_is_not_called_idle() -> None:
    a = budge.Feature("a", "integer", bounds=(0, 10**9 + 1))
    assert not budge.InteractionModel([a], [Rule(f"a <= {10**9}")]).warnings
    assert budge.InteractionModel([a], [Rule(f"a <= {10**9 + 1}")]).warnings


@pytest.mark.parametrize(("size", "checked"), [(10, False), (10**7, True)])
def test_what_the_tolerance_of_the_solver_leaves_open_is_checked(size: int, checked: bool) -> None:
    names = ("a", "b", "c")
    rules = [Rule(f"a + b >= {2 * size} or b + c >= {2 * size}"), Rule(f"a + b + c <= {2 * size - 1}")]
    im = budge.InteractionModel([budge.Feature(name, "integer", bounds=(0, 4 * size)) for name in names], rules)
    program = PartProgram(im.parts[0], dict.fromkeys(names, 0.0), solver="scipy")
    assert [c.label for c in program.unsolved] == ([im.constraints[0].label] if checked else [])
