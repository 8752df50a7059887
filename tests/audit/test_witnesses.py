"""Witnesses are minimal: no move stays that the target does not need."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pandas as pd
import pytest

import budge
from budge.constraints import LinearConstraint, OneHot


def people(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({name: rng.integers(0, 20, n) for name in "abcd"})
    home = rng.integers(0, 3, n)
    for i, name in enumerate(("rent", "own", "free")):
        table[name] = (home == i).astype(int)
    return table


IM = budge.InteractionModel(
    [budge.Feature(name, "integer", bounds=(0, 40)) for name in "abcd"] + [budge.Feature(name, "binary") for name in ("rent", "own", "free")],
    [OneHot(("rent", "own", "free")), LinearConstraint({"a": 1, "b": 1}, "<=", 45)],
)


def score(table: pd.DataFrame) -> np.ndarray:
    return ((table["a"] + 2 * table["b"] > 60) | ((table["c"] > 30) & (table["own"] == 1))).astype(int).to_numpy()


@pytest.mark.parametrize("more", [{}, {"sequential": True}, {"proposal": {"own": {"weights": {0: 1, 1: 3}}}}])
def test_no_feature_and_no_part_can_be_put_back(more):
    X = people(40, 1)
    result = budge.audit(score, X, IM, target=1, **({"n": 200} if not more.get("sequential") else {}), **more)
    seen = 0
    for label in result.table.index:
        moved = result.change(label)
        assert (len(moved) == 0) == bool(result.why_not(label))
        if not len(moved):
            continue
        seen += 1
        start, point = X.loc[label], result.witness(label)
        assert score(point.to_frame().T.astype(int))[0] == 1
        change = {name: [int(point[name] - start[name])] for name in X.columns}
        assert IM.feasible(start, change)[0]
        names = moved["feature"].tolist()
        dummies = tuple(n for n in names if n in ("rent", "own", "free"))
        both = tuple(n for n in names if n in ("a", "b"))
        for back in chain(combinations(names, 1), [dummies] if dummies else [], [both] if len(both) == 2 else []):
            less = {name: [0] if name in back else value for name, value in change.items()}
            tried = start + pd.Series({name: value[0] for name, value in less.items()})
            assert not (IM.feasible(start, less)[0] and score(tried.to_frame().T.astype(int))[0] == 1), (label, back)
    assert seen > 10


def test_what_a_saved_run_says_a_witness_changes_is_minimal_too(tmp_path):
    X = people(20, 2)
    result = budge.audit(score, X, IM, target=1, n=100)
    loaded = budge.Audit.load(result.save(tmp_path / "run"))
    for label in result.table.index:
        pd.testing.assert_frame_equal(loaded.change(label), result.change(label), check_dtype=False)
        assert loaded.why_not(label) == result.why_not(label)


def test_people_who_have_the_target_get_no_witness():
    X = pd.DataFrame({"a": [30, 0], "b": [40, 0], "c": [0, 0], "d": [0, 0], "rent": [1, 1], "own": [0, 0], "free": [0, 0]})
    X.loc[0, ["a", "b"]] = 5, 40
    result = budge.audit(score, X, IM, target=1, n=50, population="all")
    assert result.witness(0) is None
    assert result.change(0).attrs["reason"] == "already has the target"


def test_features_on_which_an_effect_acts_stay_as_they_were_drawn():
    im = budge.InteractionModel(
        [budge.Feature("a", "integer", bounds=(0, 40)), budge.Feature("c", "real", bounds=(0, 100))],
        effects=[budge.Effect("c", add="uniform(0, 50)", clip=(0, 100))],
    )
    X = pd.DataFrame({"a": [0], "c": [0.0]})
    result = budge.audit(lambda t: (t["c"] > 20).astype(int), X, im, target=1, n=100)
    assert result.change(0)["feature"].tolist() == ["c"]
    assert result.witness(0)["c"] > 20
