"""What a person draws depends on the interaction model and the person alone: not on who else is in the block, nor on how many draws are made.

The same person alone, in a block, in another order, from a later draw on, and under a model that declares the same features in another order: to the bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from reach_kit import random_cases

from budge import Feature, InteractionModel
from budge.constraints import DirectionalLinkage, IfThen, LinearConstraint, Predicate, Rule
from budge.effects import Effect
from budge.errors import ReachError
from budge.reach.reacher import reacher
from budge.reach.streams import Stream, keys_of

N = 40


def starts_near(im: InteractionModel, x: dict[str, Any], rng: np.random.Generator, many: int = 6) -> np.ndarray:
    """Other people: each feature of x, or another value within its bounds."""
    base = np.array([im.start(x)[f.name] for f in im.features])
    rows = np.tile(base, (many, 1))
    for j, f in enumerate(im.features):
        low, high = f.range
        if f.type == "fixed" or not np.isfinite([low, high]).all():
            continue
        other = rng.integers(int(low), int(high) + 1, many) if f.discrete else rng.uniform(low, high, many)
        rows[:, j] = np.where(rng.random(many) < 0.5, other, rows[:, j])
    rows[0] = base
    return rows


def drawn(im: InteractionModel, rows: np.ndarray, first: int = 0, n: int = N, purpose: str = "draw") -> np.ndarray:
    """Draws of everybody, (people, n, features); people for whom nothing is feasible stay NaN."""
    maker = reacher(im)
    block = maker.block(rows)
    able = np.flatnonzero(~block.empty)
    out = np.full((len(rows), n, rows.shape[1]), np.nan)
    if len(able):
        moved, _ = block.take(able).draw(Stream(keys_of(maker.names, rows[able], 3, purpose)), first, n)
        out[able] = rows[able][:, None, :]
        out[np.ix_(able, np.arange(n), maker.moved)] = moved.reshape(len(maker.moved), len(able), n).transpose(1, 2, 0)
    return out


def other_order(im: InteractionModel, rng: np.random.Generator) -> tuple[InteractionModel, np.ndarray]:
    order = rng.permutation(len(im.features))
    constraints = [im.constraints[i] for i in rng.permutation(len(im.constraints))]
    return InteractionModel([im.features[i] for i in order], constraints, effects=im.effects, latent=im.latent, measure=im.measure), order


def agree(im: InteractionModel, rows: np.ndarray, rng: np.random.Generator) -> None:
    whole = drawn(im, rows)
    for i in range(len(rows)):
        np.testing.assert_array_equal(drawn(im, rows[[i]])[0], whole[i])
    order = rng.permutation(len(rows))
    np.testing.assert_array_equal(drawn(im, rows[order]), whole[order])
    np.testing.assert_array_equal(drawn(im, rows, n=7), whole[:, :7])
    np.testing.assert_array_equal(drawn(im, rows, first=11, n=20), whole[:, 11:31])
    turned, place = other_order(im, rng)
    np.testing.assert_array_equal(drawn(turned, rows[:, place]), whole[:, :, place])


@pytest.mark.parametrize("continuous", [False, True], ids=["discrete", "mixed"])
def test_random_models(continuous: bool) -> None:
    rng = np.random.default_rng(5)
    done = 0
    for im, x in random_cases(60, 8, continuous=continuous):
        rows = starts_near(im, x, rng)
        try:
            drawn(im, rows)
        except ReachError:  # one of them cannot be drawn
            continue
        agree(im, rows, rng)
        done += 1
    assert done > 40


def real(name: str, high: float = 1.0, **more: Any) -> Feature:
    return Feature(name, "real", bounds=(0, high), **more)


def whole(name: str, high: int, **more: Any) -> Feature:
    return Feature(name, "integer", bounds=(0, high), **more)


CASES: dict[str, tuple[list[Feature], list[Any], list[Effect]]] = {
    "two wide amounts under a rule": ([whole("a", 90_000, max_increase=9000), whole("b", 90_000, max_decrease=9000)], [Rule("a <= 2 * b + 100")], []),
    "a wide amount and a real": ([whole("a", 5000), real("r", 9000)], [LinearConstraint({"a": 1, "r": -0.5}, "<=", 100)], []),
    "two wide amounts and a real": ([whole("a", 5000), whole("b", 5000), real("r", 9000)], [Rule("a + b <= r")], []),
    "a budget over reals": ([real(f"r{i}") for i in range(7)], [LinearConstraint({f"r{i}": 1 for i in range(7)}, "<=", 2)], []),
    "shares with a flag": ([Feature("k", "binary"), *(real(f"r{i}") for i in range(3))], [Rule("r0 + r1 + r2 == 1"), Rule("r0 <= 1 - 0.5 * k")], []),
    "a polytope": ([Feature("k", "binary"), real("r"), real("s")], [Rule("r + s <= 1.5"), Rule("r - s <= 0.3 + 0.2 * k")], []),
    "a ladder of three": ([real("r"), real("s"), real("t")], [Rule("r <= s"), Rule("s <= t")], []),
    "a curved rule": ([whole("k", 4), real("r"), real("s")], [Rule("r * s <= 0.2 + 0.1 * k")], []),
    "cells": ([Feature("k", "binary"), real("r"), real("s")], [IfThen("r >= 0.5", "s <= 0.4 + 0.2 * k")], []),
    "a clipped target": ([real("r", 9.0), real("t", 5.0, actionable=False)], [DirectionalLinkage("r", {"t": 1}, on_exceed="clip")], []),
    "many binaries": ([Feature(f"b{i:02d}", "binary") for i in range(30)], [LinearConstraint({f"b{i:02d}": 1 for i in range(30)}, "<=", 9)], []),
    "many binaries and a real": ([*(Feature(f"b{i:02d}", "binary") for i in range(25)), real("r", 9.0)],
                                 [LinearConstraint({**{f"b{i:02d}": 1 for i in range(25)}, "r": 1}, "<=", 12)], []),
    "more than 2^64": ([whole(f"a{i}", 2**50) for i in range(2)] + [whole("c", 2**50)], [Rule("a0 + a1 <= 2 ** 40"), IfThen("a0 >= 5", "c <= 2 ** 49")], []),
    "a black box": ([whole("k", 5), real("r")], [Predicate(("k", "r"), lambda v: (v["k"] + 10 * v["r"]) % 2 < 1)], []),
    "effects": ([whole("a", 9), real("r"), real("e", 99.0, actionable=False)], [Rule("a + r <= 9")],
                [Effect("e", add="normal(action.r, 1) + poisson(2) * uniform(0, 1)", clip=(0, 99)), Effect("a", add="integers(0, 3)", clip=(0, 9))]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("measure", ["configuration", "volume"])
def test_every_way_of_drawing(name: str, measure: str) -> None:
    features, constraints, effects = CASES[name]
    im = InteractionModel(features, constraints, effects=effects, measure=measure)
    rng = np.random.default_rng(1)
    x = {f.name: 0.0 for f in im.features}
    if name == "shares with a flag":
        x["r2"] = 1.0
    rows = starts_near(im, x, rng)
    if measure == "volume":
        try:
            drawn(im, rows, n=1)
        except ReachError:  # a volume that is not known
            return
    agree(im, rows, rng)


def test_the_first_hundred_of_two_hundred() -> None:
    im = InteractionModel(*CASES["a curved rule"][:2])
    x = pd.DataFrame({"k": [1], "r": [0.5], "s": [0.2]})
    np.testing.assert_array_equal(im.sample(x, 200, seed=4).values[:100], im.sample(x, 100, seed=4).values)


def test_sizes_beyond_any_float_are_2_to_the_53_at_least() -> None:
    names = [f"b{i:04d}" for i in range(1100)]
    im = InteractionModel([Feature(name, "binary") for name in names], [LinearConstraint(dict.fromkeys(names, 1.0), "<=", 1099)])
    block = reacher(im).block(np.zeros((2, len(names))))
    assert block.size(0) == 2**1100 - 1
    assert block.about.tolist() == [2.0**53] * 2
