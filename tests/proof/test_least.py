"""Least plans against brute force over listed sets and against draws."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from proof_kit import ANSWER, Triple, judge, triples

from budge import Feature, InteractionModel
from budge.constraints import LinearConstraint
from budge.proof import Additive, Answer, Column
from budge.proof.costs import Cost
from budge.proof.goals import Condition
from budge.proof.least import Plans
from budge.proof.polish import cheapest
from budge.proof.prover import Prover


def some_cost(triple: Triple) -> Cost:
    given = None if triple.rng.random() < 0.5 else {f.name: float(triple.rng.choice([0.5, 1, 2, 3])) for f in triple.im.features}
    return Cost.of(given, triple.im, columns=[c.name for c in triple.structure.columns])


def price(cost: Cost, start, point) -> tuple[float, ...]:
    return tuple(cost.values(point[None], start)[0].tolist())


def check(triple: Triple, cost: Cost, answer: Plans) -> None:
    """Assert that plans are feasible, attained, different, minimal, and not dearer than any known point."""
    sets = [triple.moved(plan.point) for plan in answer.plans]
    assert len(set(sets)) == len(sets)
    for plan, moved in zip(answer.plans, sets):
        assert triple.ask(plan.point[None])[0]
        assert triple.reaches(plan.point)
        assert plan.cost == price(cost, triple.start, plan.point)
        for j in moved:
            less = plan.point.copy()
            less[j] = triple.start[j]
            assert not (triple.ask(less[None])[0] and triple.reaches(less)), "not minimal"
    costs = [plan.cost for plan in answer.plans]
    keys = costs if cost.first == "features" else [c[:1] for c in costs]  # plans of equal weight come in any order
    assert all(np.all(np.array(a) <= np.array(b) + 1e-6) or a < b for a, b in pairwise(keys))
    known = min((price(cost, triple.start, p) for p in triple.hits), default=None)
    if answer.plans and answer.plans[0].optimal and known is not None:
        assert costs[0] <= known or np.allclose(costs[0], known, rtol=1e-9, atol=1e-9)
    assert answer.status != "impossible" or known is None


def against_listing(count: int, key: int) -> int:
    plans = compared = 0
    for low in (False, True):
        for triple in triples(count, key, low=low):
            cost = some_cost(triple)
            answer = Prover(triple.structure, triple.im).least(triple.start, triple.goal, triple.ask, cost, k=3)
            check(triple, cost, answer)
            assert answer.status == ("possible" if len(triple.hits) else "impossible")
            if answer.plans:
                assert answer.plans[0].optimal
                proved = [plan.cost for plan in answer.plans if plan.optimal]
                if triple.ask(triple.start[None])[0] and triple.reaches(triple.start):
                    assert proved[0] == (0.0, 0.0)
                    continue
                best = [price(cost, triple.start, p) for p in triple.hits[cheapest(triple.hits, triple.start, cost, 3)]]
                assert np.allclose(proved[0][: 1 + (cost.first == "features")], best[0][: 1 + (cost.first == "features")], rtol=1e-9, atol=1e-9)
                every = {triple.moved(p): price(cost, triple.start, p) for p in sorted(triple.hits, key=lambda p: price(cost, triple.start, p), reverse=True)}
                ties = len({np.round(c[cost.first == "features"], 9) for c in every.values()}) < len(every)
                if cost.first == "features" and not ties:  # else another plan of the same cost may come first, and others follow
                    assert np.allclose(proved, best[: len(proved)], rtol=1e-9, atol=1e-9), (triple.im.constraints, triple.x)
                    compared += len(proved)
            plans += len(answer.plans)
    assert compared > count / 10
    return plans


def test_least_costs_equal_brute_force() -> None:
    assert against_listing(100, 21) > 45


@pytest.mark.heavy
def test_least_costs_equal_brute_force_of_many() -> None:
    print(against_listing(1500, 22))


def test_no_draw_is_cheaper_than_a_least_plan() -> None:
    proved = 0
    for triple in triples(80, 23, 500, low=True):
        cost = some_cost(triple)
        answer = Prover(triple.structure, triple.im).least(triple.start, triple.goal, triple.ask, cost)
        check(triple, cost, answer)
        proved += bool(answer.plans and answer.plans[0].optimal)
    assert proved > 20


def test_known_points_bound_the_cost_and_repeats_agree() -> None:
    for triple in triples(40, 24, low=True):
        cost, hits = some_cost(triple), triple.hits
        if not len(hits):
            continue
        first, second = (Prover(triple.structure, triple.im, nodes=1).least(triple.start, triple.goal, triple.ask, cost, 2, hits[:3]) for _ in range(2))
        check(triple, cost, first)
        assert first.plans[0].cost <= min(price(cost, triple.start, p) for p in hits[:3])
        assert [p.cost for p in first.plans] == [p.cost for p in second.plans]
        assert all(np.array_equal(a.point, b.point, equal_nan=True) for a, b in zip(first.plans, second.plans))


def test_a_real_column_stops_where_the_score_passes_the_bound() -> None:
    structure = Additive((Column("a"), Column("b")), ANSWER, np.zeros(1), {"a": np.array([1.0]), "b": np.array([3.0])})
    im = InteractionModel([Feature("a", "real", bounds=(0, 10)), Feature("b", "real", bounds=(0, 10))])
    goal = ((Condition(np.ones(1), 6.0),),)
    for strict in (False, True):
        answer = Prover(structure, im).least(np.zeros(2), goal, judge(structure, goal, strict), Cost.of(None, im))
        assert answer.plans[0].optimal
        assert answer.plans[0].point == pytest.approx([0.0, 2.0], abs=1e-9)
    tied = InteractionModel(im.features, [LinearConstraint({"a": 1, "b": 1}, "<=", 3), LinearConstraint({"b": 1}, "<=", 1.75)])
    answer = Prover(structure, tied).least(np.zeros(2), goal, judge(structure, goal, strict=True), Cost.of({"a": 1.0, "b": 1.0}, tied))
    assert answer.plans[0].optimal
    assert answer.plans[0].point == pytest.approx([0.75, 1.75], abs=1e-8)


class Rounding:
    """A sum whose last bits hang on how many rows are asked about: one row alone is a little lower."""

    classes_ = (0, 1)

    def __init__(self, slope: float, cut: float, off: float):
        self.slope, self.cut, self.off = slope, cut, off

    def predict(self, X):
        return (X["x"].to_numpy(dtype=float) * self.slope - self.cut - (self.off if len(X) == 1 else 0.0) >= 0).astype(int)


class Summed(Rounding):
    def structure(self, columns):
        return Additive(tuple(columns), Answer("binary", (0, 1), strict=False), np.array([-self.cut]), {"x": np.array([self.slope])}, precision=1e-14)


@pytest.mark.parametrize("made", [Rounding, Summed])
def test_a_plan_does_not_lie_where_the_size_of_a_table_decides(made):
    import pandas as pd

    import budge

    im = InteractionModel([Feature("x", "real", bounds=(0, 10))])
    for k in range(1, 12):
        model = made(k / 7, 3.0 + k / 3, 1e-15)
        if model.cut / model.slope >= 10:
            continue
        found = budge.recourse(model, {"x": 0.5}, im, target=1)
        assert found.status == "possible"
        assert found.points["x"].iloc[0] == pytest.approx(model.cut / model.slope, rel=1e-7 if made is Summed else 1e-3)
        assert model.predict(found.points).all()
        assert model.predict(pd.concat([found.points] * 10)).all()


def test_a_listed_plan_at_the_cut_gives_way_to_the_next_and_drift_is_still_an_error():
    import budge

    im = InteractionModel([Feature("x", "integer", bounds=(0, 9))])
    found = budge.recourse(Rounding(1.0, 6.0, 1e-15), {"x": 2}, im, target=1)
    assert found.actions.values.tolist() == [[1, "x", 2, 7]]
    assert "how many rows" in str(found.notes[0])
    assert not budge.recourse(Rounding(1.0, 6.0, 0.0), {"x": 2}, im, target=1).notes

    calls = []

    def drifts(X):
        calls.append(len(X))
        return (X["x"].to_numpy() >= (6 if sum(n > 5 for n in calls) < 2 and calls[-1] > 5 else 9)).astype(int)

    with pytest.raises(budge.errors.ModelError, match="otherwise than at the start"):
        budge.recourse(drifts, {"x": 2}, im, target=1)
