"""Minimal relaxations equal brute force over all joint relaxations; blocking sets meet them all."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from stress_kit import brute, planted, world

from budge import Design, Feature, InteractionModel
from budge.errors import InputError
from budge.stress import default_relaxations, minimal_relaxations
from budge.stress.minimal import _joint, hitting_sets


@pytest.mark.parametrize("seed", range(8))
def test_equal_to_brute_force(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    X, im = world(rng)
    X = X.iloc[:2]
    model = planted(rng)
    chosen = default_relaxations(im, X)[0][:5]
    found = minimal_relaxations(model, X, im, chosen, target=1, max_size=3, design=Design(population="all", exact_limit=100_000))
    for i in X.index:
        works = []
        for size in range(4):
            for combo in combinations(chosen, size):
                points = brute(_joint(im, combo), X.loc[i])
                if len(points) and model(pd.DataFrame(points, columns=X.columns)).any():
                    works.append(frozenset(r.name for r in combo))
        if not len(brute(im, X.loc[i])) or frozenset() in works:
            assert i not in found.stuck
            continue
        minimal = {s for s in works if not any(o < s for o in works)}
        assert set(found.of(i)) == minimal
        assert found.table.loc[found.table.index == i, "proven"].all()
        assert (i in found.without) == (not minimal)


def test_blocking_sets_meet_every_minimal_set_and_are_minimal() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        sets = [
            frozenset(rng.choice(list("abcde"), int(rng.integers(1, 4)), replace=False).tolist())
            for _ in range(int(rng.integers(1, 5)))
        ]
        every = [frozenset(c) for k in range(6) for c in combinations("abcde", k) if all(set(c) & s for s in sets)]
        assert set(hitting_sets(sets)) == {h for h in every if not any(o < h for o in every)}


def test_what_is_found_by_draws_says_so() -> None:
    im = InteractionModel([Feature("a", "real", bounds=(0, 1)), Feature("b", "binary", actionable=False)])
    X = pd.DataFrame({"a": [0.5], "b": [0]})
    found = minimal_relaxations(lambda t: ((t["a"] > 0.2) & (t["b"] == 1)).astype(int), X, im, target=1)
    assert [sorted(s) for s in found.of(0)] == [["free b"]]
    assert not found.table["proven"].any()
    assert "found by draws" in str(found)
    assert found.to_dict()["blocking"] == {"0": [["free b"]]}


def test_nobody_is_let_out_by_a_whole_model_joined_with_others() -> None:
    im = InteractionModel([Feature("a", "binary", actionable=False), Feature("b", "binary", actionable=False)])
    X = pd.DataFrame({"a": [0], "b": [0]})
    with pytest.raises(InputError, match="cannot be joined"):
        minimal_relaxations(lambda t: t["a"] * 0, X, im, {"one": im.relax("a"), "two": im.relax("b")}, target=1)


def test_who_is_stuck_by_draws_is_not_said_to_be_proved() -> None:
    im = InteractionModel([Feature("a", "binary"), Feature("b", "binary", actionable=False)])
    X = pd.DataFrame({"a": [0, 1], "b": [0, 0]})

    def model(table: pd.DataFrame) -> pd.Series:
        return table["b"]

    listed = str(minimal_relaxations(model, X, im, target=1, max_size=1))
    assert listed.startswith("Stuck: 2 people; relaxations were tried one by one.")
    drawn = str(minimal_relaxations(model, X[:1], im, target=1, max_size=1, design=Design(method="sample")))
    assert drawn.startswith("Stuck: 1 person (1 not proved: by draws, or with answers missing); relaxations were tried one by one.")
    assert "1 set was found by draws" in drawn
