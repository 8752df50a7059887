"""What attacks on proofs and plans have found, each as the smallest case that showed it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import budge
from budge.constraints import DirectionalLinkage
from budge.proof import Additive, Answer, Trees

pytest.importorskip("sklearn")
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier


class AtZero:
    """Answers 1 where x is exactly 0."""

    classes_ = (0, 1)

    def predict(self, table):
        return (table["x"] <= 0).astype(int).to_numpy()

    def structure(self, columns):
        return Trees(
            tuple(columns), Answer("binary", (0, 1), cut=0.5, link=None), np.zeros(1), roots=np.array([0]), column=np.array([0, -1, -1]),
            cut=np.array([0.0, 0, 0]), missing=np.zeros(3, bool), left=np.array([1, 0, 0]), right=np.array([2, 0, 0]), value=np.array([[0.0], [1.0], [0.0]]),
        )  # fmt: skip


@pytest.mark.parametrize("target", [0, 1])
def test_a_set_without_mass_is_not_a_set_without_points(target):
    im = budge.InteractionModel([budge.Feature("x", "real", bounds=(0, 10))])
    X = pd.DataFrame({"x": [2.0, 3.0]})
    found = budge.audit(AtZero(), X, im, target=target, population="all", method="exact", prove=True)
    assert (found.table["extreme"] == "").all()
    assert set(budge.prove(AtZero(), X, im, target=target).table["status"]) == {"possible"}
    assert set(budge.prove(AtZero(), X, im, target=target, design=budge.Design(method="exact", threshold=0, testing=False)).table["status"]) == {"possible"}


@pytest.mark.parametrize("method", ["auto", "sample"])
def test_a_distribution_says_how_often_not_what_is_possible(method):
    X = pd.DataFrame({"a": np.arange(200) % 10, "b": np.arange(200) // 20})
    model = DecisionTreeClassifier(max_depth=3).fit(X, (X["a"] == 3).astype(int))
    whole = {"type": "integer", "bounds": [0, 9]}
    im = budge.InteractionModel({"a": {**whole, "distribution": {"empirical": [1, 2, 2, 5]}}, "b": whole})
    x = pd.DataFrame({"a": [1], "b": [1]})
    design = budge.Design(threshold=0, testing=False, method=method)
    assert budge.prove(model, x, im, target=1, design=design, n=50).status == "possible"
    assert budge.recourse(model, x, im, target=1, design=design).points.values.tolist() == [[3, 1]]
    audit = budge.audit(model, x, im, target=1, threshold=0, design=design, prove=True, n=50)
    assert audit.table["verdict"].iloc[0] in ("none", "inconclusive")  # nothing that is drawn attains it
    assert audit.table["rho"].iloc[0] == 0


def test_points_that_were_counted_are_not_said_to_miss():
    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(20)]
    X = pd.DataFrame({name: rng.integers(0, 10, 100) for name in names})
    model = LogisticRegression(max_iter=1000).fit(X, (X.sum(axis=1) > 90).astype(int))
    for many in (12, 20):
        im = budge.InteractionModel([budge.Feature(name, "integer", bounds=(0, 9), actionable=i < many) for i, name in enumerate(names)])
        out = X[model.predict(X) == 0].head(2)
        found = budge.audit(model, out, im, target=1, method="exact", prove=True)
        row = found.table.iloc[0]
        assert row["low"] > 0
        assert "counted, not listed" in found.why_not(out.index[0])
        if row["low"] < row["high"]:
            assert row["exactness"] == "guaranteed"
            assert np.isnan(row["rho"])
        assert found.recourse(out.index[0]).status == "possible"


def test_a_letter_does_not_round_a_plan_to_the_other_side():
    im = budge.InteractionModel([budge.Feature("income", "real", bounds=(0, 200_000)), budge.Feature("wealth", "integer", bounds=(0, 9_000_000))])
    table = pd.DataFrame({"income": [0, 20272.6, 20272.88, 40000.0], "wealth": [0, 1, 1232473, 1232475]})
    for column, y in (("income", [0, 0, 1, 1]), ("wealth", [0, 0, 0, 1])):
        model = DecisionTreeClassifier(max_depth=1).fit(table.assign(**{c: 0 for c in table if c != column}), y)
        plan = budge.recourse(model, {"income": 19682.9, "wealth": 2}, im, target=1)
        said = plan.letter().split(f"{column}: from ")[1].split(" to ")[1].splitlines()[0]
        written = pd.DataFrame({"income": [19682.9], "wealth": [2]}).assign(**{column: float(said.replace(",", ""))})
        assert model.predict(written)[0] == 1


def test_no_plan_moves_a_part_for_nothing():
    im = budge.InteractionModel(
        [
            budge.Feature("a", "integer", bounds=(0, 4)),
            budge.Feature("b", "integer", bounds=(0, 4)),
            budge.Feature("c", "integer", bounds=(0, 9), actionable=False),
        ],
        [DirectionalLinkage("b", {"c": 1})],
    )

    def model(table):
        return (table["a"] > 1).astype(int)

    found = budge.recourse(model, {"a": 0, "b": 1, "c": 1}, im, target=1, k=3)
    assert [sorted(g["feature"]) for _, g in found.actions.groupby("plan")] == [["a"]]


def test_truth_values_beside_numbers_are_no_change_of_the_table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"flag": rng.random(80) < 0.5, "x": rng.normal(0, 1, 80), "n": rng.integers(0, 9, 80)})
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, (X["x"] + X["flag"] > 0.5).astype(int))
    im = budge.InteractionModel([budge.Feature("flag", "binary"), budge.Feature("x", "real", bounds=(-4, 4)), budge.Feature("n", "integer", bounds=(0, 9))])
    for several in (model, {"one": model, "two": model}):
        budge.audit(several, X.head(10), im, target=1, n=50, design=budge.Design(testing=False))


def test_shares_between_proved_ends_are_not_one_number():
    from budge.stats import Counts, claim
    from budge.stats.claims import Question

    claims = claim(Counts.of([0], [0], law="proved", hit_mass=[0.25], lost_mass=[0.01]), Question(0.1, 0.05))
    assert np.isnan(claims.rho[0])
    assert (claims.low[0], claims.high[0]) == (0.25, 0.26)
    assert claims.exactness[0] == "guaranteed"
    assert claims.verdict[0] == "above"


def test_an_additive_model_of_ones_own_is_proved():
    class Card:
        classes_ = (0, 1)

        def predict(self, table):
            return (table["x"] >= 3).astype(int).to_numpy()

        def structure(self, columns):
            return Additive(tuple(columns), Answer("binary", (0, 1), cut=3, strict=False, link=None), np.zeros(1), slopes={"x": np.ones(1)})

    im = budge.InteractionModel([budge.Feature("x", "real", bounds=(0, 3), max_increase=1)])
    found = budge.prove(Card(), pd.DataFrame({"x": [1.0, 2.0, 2.5]}), im, target=1)
    assert found.table["status"].tolist() == ["impossible", "possible", "possible"]
