"""Real numbers of plans have few digits: the plans stay feasible and confirmed, no cheaper ones exist where that is stated, and costs rise within the bound."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import budge
from budge.audit import recourse
from budge.constraints import LinearConstraint
from budge.interaction import InteractionModel
from budge.proof.costs import Cost
from budge.proof.least import TOLERATED
from budge.proof.polish import in_few_digits

pytest.importorskip("sklearn")
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

NAMES = ["a", "b", "c", "d"]


def question(rng: np.random.Generator, kinds: tuple[str, str]) -> tuple[InteractionModel, pd.DataFrame, pd.Series]:
    """Return a random interaction model of two features of these types and two integers, with people and their outcomes."""
    width = float(rng.choice([1.0, 90.0, 20_000.0]))
    wide = budge.Feature("a", kinds[0], bounds=(-width, width), **({"max_increase": 0.7 * width} if rng.random() < 0.5 else {}))
    features = [wide, budge.Feature("b", kinds[1], bounds=(0, 100)), *(budge.Feature(n, "integer", bounds=(0, 9), max_increase=3) for n in "cd")]
    rules = [LinearConstraint({"a": 1.0, "b": width / 100}, "<=", round(1.3 * width, 3))] if rng.random() < 0.5 else []
    n = 150
    X = pd.DataFrame({"a": rng.uniform(-width, 0.3 * width, n), "b": rng.uniform(0, 90, n), "c": rng.integers(0, 10, n), "d": rng.integers(0, 10, n)})
    for name, kind in zip("ab", kinds):
        X[name] = X[name].round().astype(int) if kind == "integer" else X[name].round(int(rng.integers(0, 4)))
    score = rng.uniform(0.5, 2) * X["a"] / width + rng.uniform(-2, 2) * X["b"] / 100 + 0.1 * X["c"]
    return budge.InteractionModel(features, rules), X, (score > np.quantile(score, 0.7)).astype(int)


def digits(value: float) -> int:
    return len(Decimal(repr(float(value))).normalize().as_tuple().digits)


@pytest.mark.parametrize("kind", ["linear", "tree", "opaque"])
@pytest.mark.parametrize("weighed", [False, True])
def test_plans_in_few_digits_are_plans_within_the_bound(monkeypatch, kind, weighed):
    rng = np.random.default_rng(3 + 10 * weighed)
    shorter, few = 0, kind == "opaque"  # a model that is asked point by point takes its time
    for _ in range(2 if few else 6):
        im, X, y = question(rng, ("real", "real"))
        made = DecisionTreeClassifier(max_depth=4, random_state=0) if kind == "tree" else LogisticRegression(max_iter=2000)
        fitted = made.fit(X, y)
        model = (lambda t, own=fitted: own.predict(t)) if kind == "opaque" else fitted
        cost = {"a": 2.0, "b": 0.01, "c": 0.3, "d": 0.5} if weighed else None
        for label in X.index[fitted.predict(X) == 0][: 2 if few else 4]:
            x = X.loc[[label]]
            found = budge.recourse(model, x, im, target=1, k=2, n=200, cost=cost)
            with monkeypatch.context() as patch:
                patch.setattr(recourse, "in_few_digits", lambda point, *_: point)
                before = budge.recourse(model, x, im, target=1, k=2, n=200, cost=cost)
            assert (found.status, sorted(found.least)) == (before.status, sorted(before.least))
            if not len(found):
                continue
            assert (fitted.predict(found.points) == 1).all()
            assert im.feasible(x, found.points - x.iloc[0]).all()
            moves = {frozenset(own["feature"]): own.set_index("feature")["to"] for _, own in found.actions.groupby("plan")}
            prices = {frozenset(own["feature"]): i for i, (_, own) in enumerate(found.actions.groupby("plan"))}
            assert list(found.cost) == sorted(found.cost)
            for i, (_, own) in enumerate(before.actions.groupby("plan")):
                now, old = moves[frozenset(own["feature"])], own.set_index("feature")["to"]
                place = prices[frozenset(own["feature"])]
                new, price = (c if weighed else c[1] for c in (found.cost[place], before.cost[i]))
                bound = (TOLERATED if before.least[i] else 1e-3) * price
                assert -1e-12 <= new - price <= bound * (1 + 1e-9)
                assert weighed or found.cost[place][0] == before.cost[i][0]
                for name in old.index:
                    assert digits(now[name]) <= digits(old[name])
                    assert abs(now[name] - x.iloc[0][name]) >= abs(old[name] - x.iloc[0][name])
                    shorter += digits(now[name]) < digits(old[name]) - 4
    assert shorter >= (3 if few else 8)


def test_plans_of_whole_numbers_are_as_they_were(monkeypatch):
    rng = np.random.default_rng(8)
    im, X, y = question(rng, ("integer", "integer"))
    model = LogisticRegression(max_iter=2000).fit(X, y)
    x = X[model.predict(X) == 0].iloc[[0]]
    found = budge.recourse(model, x, im, target=1, k=2)
    assert len(found)
    monkeypatch.setattr(recourse, "in_few_digits", lambda *_: pytest.fail("no number is real"))
    assert budge.recourse(model, x, im, target=1, k=2).points.equals(found.points)


IM = budge.InteractionModel([budge.Feature("a", "real", bounds=(-100, 100)), budge.Feature("b", "real", bounds=(-100, 100))])
REAL = np.ones(2, dtype=bool)
COST = Cost.of({"a": 1.0, "b": 1.0}, IM)


@pytest.mark.parametrize(
    ("point", "good", "dearer", "expected"),
    [
        ([12.345678, 0.0], lambda p: p[:, 0] >= 12.3, 1.0, [12.4, 0.0]),
        ([-12.345678, 0.0], lambda p: p[:, 0] <= -12.3, 1.0, [-12.4, 0.0]),
        ([12.345678, 0.0], lambda p: p[:, 0] >= 12.3, 1e-3, [12.346, 0.0]),
        ([12.345678, 0.0], lambda p: (p[:, 0] >= 12.3) & (p[:, 0] <= 12.34568), 1.0, [12.34568, 0.0]),
        ([12.345678, 0.0], lambda p: p[:, 0] == 12.345678, 1.0, [12.345678, 0.0]),
        ([12.5, 0.0], lambda p: p[:, 0] >= 12.4, 1.0, [12.5, 0.0]),
        ([12.345678, 7.654321], lambda p: (p[:, 0] >= 12.3) & (p[:, 1] <= 7.654321) & (p[:, 1] > 7), 1.0, [12.4, 7.654321]),  # b is where a rule ends
        ([12.345678, 0.001], lambda p: (p[:, 0] > 12.35) | (p[:, 1] > 0), 1.0, [12.345678, 0.001]),  # a further move of a would make that of b idle
    ],
)
def test_numbers_are_rounded_away_from_the_start_as_far_as_the_point_stays_good(point, good, dearer, expected):
    assert in_few_digits(np.array(point), np.zeros(2), REAL, good, COST, dearer).tolist() == expected
