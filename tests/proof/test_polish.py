"""Costs order plans as declared, the cheapest listed plans are exact, and polished plans are feasible, confirmed and minimal."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import budge
from budge.constraints import DirectionalLinkage, LinearConstraint, OneHot
from budge.errors import DesignError
from budge.proof.costs import Cost
from budge.proof.polish import cheapest, feasible_from, polish

FEATURES = [
    budge.Feature("income", "real", bounds=(0, 200)),
    budge.Feature("home", "category", levels=("rent", "own", "free")),
    budge.Feature("job", "binary"),
    budge.Feature("years", "integer", actionable=False),
    budge.Feature("loans", "integer", max_increase=2, max_decrease=2),
]
IM = budge.InteractionModel(FEATURES)
START = np.array([100.0, 0.0, 0.0, 7.0, 1.0])
RANGES = {"loans": (0.0, 4.0)}
POINTS = np.array([[120.0, 0, 0, 7, 1], [100, 2, 0, 7, 1], [100, 2, 1, 7, 3], [100, 0, 0, 7, 1]])


def test_the_default_counts_features_then_scaled_distance():
    cost = Cost.of(None, IM, RANGES)
    assert cost.values(POINTS, START).tolist() == [[1, 0.1], [1, 1.0], [3, 2.5], [0, 0]]
    assert cost.order(POINTS, START).tolist() == [3, 0, 1, 2]
    assert [cost.compare(POINTS[a], POINTS[b], START) for a, b in ((0, 1), (1, 0), (2, 2))] == [-1, 1, 0]
    gone = np.array([np.nan, 0, 0, 7, 1])
    assert cost.values(np.array([[np.nan, 1, 0, 7, 1]]), gone).tolist() == [[1, 1.0]]
    wider = Cost.of(None, IM, RANGES, columns=["other", *(f.name for f in FEATURES)])
    assert wider.values(np.append(5.0, POINTS[0]), np.append(5.0, START)).tolist() == [[1, 0.1]]
    assert Cost.of(cost, IM) is cost


def test_weights_and_functions():
    cost = Cost.of({"income": 0.5, "home": 3}, IM)
    assert cost.values(POINTS, START).tolist() == [[10, 1], [3, 1], [3, 3], [0, 0]]
    names = [f.name for f in FEATURES]

    def decode(rows):
        return pd.DataFrame(rows, columns=names)

    cost = Cost.of(lambda table, start: (table["loans"] - start["loans"].iloc[0]).abs() * 2, IM, decode=decode)
    assert cost.values(POINTS, START).tolist() == [[0, 1], [0, 1], [4, 3], [0, 0]]
    assert cost.values(np.zeros((0, 5)), START).shape == (0, 2)
    for made in (lambda t, s: "x", lambda t, s: [1.0], lambda t, s: np.full(len(t), np.nan), lambda t, s: [[1.0]] * len(t)):
        with pytest.raises(DesignError, match="cost: must return"):
            Cost.of(made, IM, decode=decode).values(POINTS, START)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"incom": 1}, "no such feature (got 'incom'); did you mean 'income'?"),
        ({"income": -1}, "cost.income: a weight cannot be negative (got -1)"),
        ({"income": "dear"}, "cost.income: a weight is a finite number (got 'dear')"),
        ({"income": float("nan")}, "a weight is a finite number"),
        ({"income": True}, "a weight is a finite number"),
        (3, "must be weights by feature or a function (got 3)"),
        (len, "a function needs points as a table"),
        (None, "cost.loans: a feature without finite bounds has no scale"),
    ],
)
def test_bad_costs_are_refused(spec, told):
    with pytest.raises(DesignError) as error:
        Cost.of(spec, IM)
    assert told in str(error.value)


# -- listed sets ---------------------------------------------------------------------------------------------------------


def random_set(rng):
    """A small interaction model with coupled parts, a start, and every point that attains a random target."""
    features = [budge.Feature("a", "integer", bounds=(0, 5)), budge.Feature("c", "category", levels=tuple("xyz")), budge.Feature("b", "binary")]
    features += [budge.Feature(f"h{i}", "binary") for i in range(3)] + [budge.Feature(f"l{i}", "integer", bounds=(0, 3)) for i in range(2)]
    features += [budge.Feature("s", "integer", bounds=(0, 3)), budge.Feature("t", "integer", bounds=(0, 6), actionable=False)]
    constraints = [OneHot(["h0", "h1", "h2"]), LinearConstraint({"l0": 1, "l1": 1}, "<=", 4), DirectionalLinkage("s", {"t": 2})]
    im = budge.InteractionModel(features, constraints)
    x = {"a": int(rng.integers(6)), "c": "xyz"[rng.integers(3)], "b": 0, "h0": 0, "h1": 1, "h2": 0, "l0": 1, "l1": 1, "s": int(rng.integers(2)), "t": 1}
    points = im.enumerate(x).values
    start = np.array([im.start(x)[f.name] for f in features])
    weights = rng.normal(0, 1, len(features))
    bend = rng.normal(0, 0.7, (len(features), len(features)))

    def score(rows):
        return rows @ weights + np.einsum("ij,jk,ik->i", rows, bend, rows) * 0.3

    cut = max(np.quantile(score(points), rng.uniform(0.8, 0.98)), score(start[None])[0] + 1e-6)
    return im, x, start, points, lambda rows: score(rows) > cut


def brute(points, start, cost, k, minimal):
    """The same by loops."""
    rows = {tuple(p) for p in points.tolist()}
    best = {}
    for i, p in enumerate(points.tolist()):
        moved = tuple(j for j in range(len(p)) if p[j] != start[j])
        back = [tuple(start[j] if j == m else p[j] for j in range(len(p))) for m in moved]
        if not moved or (minimal and any(b in rows for b in back)):
            continue
        key = (*cost.values(points[[i]], start)[0].tolist(), i)
        best[moved] = min(best.get(moved, key), key)
    return sorted(best.values())[:k]


@pytest.mark.parametrize("minimal", [True, False])
@pytest.mark.parametrize("spec", [None, {"a": 1.0, "c": 2.0, "h0": 0.5, "l0": 1.0, "t": 0.2}], ids=["default", "weights"])
def test_the_cheapest_listed_plans_equal_brute_force(spec, minimal, monkeypatch):
    rng = np.random.default_rng(0)
    for i in range(12):
        im, _, start, points, ask = random_set(rng)
        if i % 3 == 2:  # more columns than keys of 62 bits hold
            monkeypatch.setattr("budge.proof.polish.LARGEST", 2)
        hits = points[ask(points)]
        cost = Cost.of(spec, im)
        found = cheapest(hits, start, cost, 4, minimal=minimal)
        assert [(*cost.values(hits[[p]], start)[0].tolist(), p) for p in found] == brute(hits, start, cost, 4, minimal)
        sets = {tuple(row) for row in cost.moved(hits[found], start).tolist()}
        assert len(sets) == len(found)
        monkeypatch.undo()
    assert len(cheapest(np.zeros((0, len(start))), start, cost, 3)) == 0
    assert len(cheapest(start[None], start, cost, 3)) == 0


# -- polishing -----------------------------------------------------------------------------------------------------------


class Checked:
    """Callables that remember what was feasible and what attained the target."""

    def __init__(self, im, x, start, model):
        self.im, self.x, self.start, self.model, self.asked = im, x, start, model, 0
        self.feasible = feasible_from(im, start)

    def ask(self, rows):
        assert self.feasible(rows).all()  # nothing else is asked
        self.asked += len(rows)
        return self.model(rows)

    def check(self, found, cost):
        assert self.im.feasible(self.x, (found.point - self.start)[None])[0]
        assert self.model(found.point[None])[0]
        assert found.asked == self.asked
        for j in np.flatnonzero(cost.moved(found.point[None], self.start)[0]):
            less = found.point.copy()
            less[j] = self.start[j]
            assert not (self.feasible(less[None])[0] and self.model(less[None])[0])


def test_feasible_rows_are_those_of_the_definition():
    rng = np.random.default_rng(2)
    for _ in range(5):
        im, x, start, points, _ = random_set(rng)
        rows = np.where(rng.random((400, len(start))) < 0.15, points[rng.integers(len(points), size=400)], start)
        expected = im.feasible(x, rows - start)
        assert feasible_from(im, start)(rows).tolist() == expected.tolist()
        assert 0 < expected.sum() < 400
        wider = feasible_from(im, np.append(9.0, start), ["other", *(f.name for f in im.features)])
        assert wider(np.column_stack([np.full(400, 9.0), rows])).tolist() == expected.tolist()
        assert not wider(np.column_stack([np.full(400, 8.0), rows])).any()


def described(im):
    place = {f.name: j for j, f in enumerate(im.features)}
    whole = [f.discrete for f in im.features]
    return whole, [[place[name] for name in part.names] for part in im.parts]


@pytest.mark.parametrize("spec", [None, {"a": 1.0, "c": 2.0, "h0": 0.5, "l0": 1.0, "t": 0.2}], ids=["default", "weights"])
def test_polished_plans_are_feasible_confirmed_and_minimal(spec):
    """30 random sets per cost: the guarantees always hold, and the plan is the cheapest there is in most of them."""
    rng = np.random.default_rng(1)
    same = 0
    for _ in range(30):
        im, x, start, points, model = random_set(rng)
        whole, parts = described(im)
        hits = points[model(points)]
        draws = hits[rng.choice(len(hits), 20)]
        cost, checked = Cost.of(spec, im), Checked(im, x, start, model)
        found = polish(start, draws, checked.ask, checked.feasible, cost, whole=whole, parts=parts)
        checked.check(found, cost)
        assert (found.point[whole] == np.round(found.point[whole])).all()
        least = hits[cheapest(hits, start, cost, 1)[0]]
        assert cost.compare(found.point, least, start) >= 0
        assert all(cost.compare(found.point, draw, start) <= 0 for draw in draws)
        same += cost.compare(found.point, least, start) == 0
    assert same >= 15


def test_polishing_without_hits_finds_nothing_and_drops_bad_ones():
    cost = Cost.of(None, IM, RANGES)
    nothing = polish(START, np.zeros((0, 5)), lambda r: r[:, 0] > 0, lambda r: r[:, 0] > 0, cost, whole=[False] * 5)
    assert (nothing.point, nothing.asked) == (None, 0)
    wrong = polish(START, POINTS, lambda r: np.zeros(len(r), dtype=bool), lambda r: np.ones(len(r), dtype=bool), cost, whole=[False] * 5)
    assert wrong.point is None
    assert wrong.asked == len(POINTS)


def test_lines_stop_where_the_target_starts():
    """A real number comes within 1e-5 of its change, a whole number reaches it."""
    cost = Cost.of(None, IM, RANGES)

    def model(rows):
        return (rows[:, 0] >= 123.456) & (rows[:, 4] >= 0)

    found = polish(START, np.array([[180.0, 0, 1, 7, 3]]), model, lambda r: np.ones(len(r), dtype=bool), cost, whole=[False, True, True, True, True])
    assert found.point.tolist() == pytest.approx([123.456, 0, 0, 7, 1], abs=1e-3)
    assert found.point[0] >= 123.456
    wide = budge.InteractionModel([budge.Feature("a", "integer", bounds=(0, 10**6)), budge.Feature("b", "integer", bounds=(0, 10**6))])
    found = polish(
        np.zeros(2), np.array([[9e5, 8e5]]), lambda r: (r[:, 0] >= 123457) & (r[:, 1] >= 3), lambda r: np.ones(len(r), dtype=bool),
        Cost.of(None, wide), whole=[True, True],
    )  # fmt: skip
    assert found.point.tolist() == [123457, 3]
    assert found.asked < 200


def test_dummies_and_linked_features_revert_together():
    features = [budge.Feature(f"h{i}", "binary") for i in range(3)] + [budge.Feature("s", "integer", bounds=(0, 50))]
    features += [budge.Feature("t", "integer", bounds=(0, 99), actionable=False), budge.Feature("a", "binary")]
    im = budge.InteractionModel(features, [OneHot(["h0", "h1", "h2"]), DirectionalLinkage("s", {"t": 1})])
    x = {"h0": 1, "h1": 0, "h2": 0, "s": 2, "t": 3, "a": 0}
    start = np.array([1.0, 0, 0, 2, 3, 0])
    whole, parts = described(im)
    cost = Cost.of(None, im)
    for model, least in ((lambda r: r[:, 5] == 1, [1, 0, 0, 2, 3, 1]), (lambda r: r[:, 4] >= 9, [1, 0, 0, 8, 9, 0])):
        checked = Checked(im, x, start, model)
        found = polish(start, np.array([[0.0, 0, 1, 32, 33, 1]]), checked.ask, checked.feasible, cost, whole=whole, parts=parts)
        checked.check(found, cost)
        assert found.point.tolist() == least


def test_lending_plans_hold_for_a_boosted_model():
    """15 refused applicants of the lending set, their draws polished; every guarantee is checked."""
    ensemble = pytest.importorskip("sklearn.ensemble", reason="scikit-learn is in the `models` extra")
    data = budge.datasets.lending(600)
    spec = budge.InteractionModel.from_file(budge.datasets.spec_path("lending"))
    im = budge.InteractionModel(spec.features, spec.constraints)
    rows = im.coding.encode(data.X)
    fitted = ensemble.HistGradientBoostingClassifier(max_iter=40, random_state=0).fit(rows, data.y)

    def model(points):
        return fitted.predict(points) == 1

    whole, parts = described(im)
    cost = Cost.of(None, im)
    found = better = 0
    for i in np.flatnonzero(fitted.predict(rows) == 0)[:15]:
        x = data.X.iloc[[i]]
        draws = im.sample(x, 200).values
        hits = draws[model(draws)]
        checked = Checked(im, x, rows[i], model)
        plan = polish(rows[i], hits, checked.ask, checked.feasible, cost, whole=whole, parts=parts)
        assert (plan.point is None) == (len(hits) == 0)
        if plan.point is not None:
            checked.check(plan, cost)
            before = cost.values(hits, rows[i])
            after = cost.values(plan.point, rows[i])[0].tolist()
            found += 1
            better += tuple(after) < min(map(tuple, before.tolist()))
    assert found >= 4
    assert better >= found * 0.8


def test_every_order_of_costs_is_total():
    rows = np.array(list(itertools.product([0.0, 1.0], repeat=3)))
    im = budge.InteractionModel([budge.Feature(n, "binary") for n in "abc"])
    cost = Cost.of({"a": 1, "b": 2}, im)
    order = rows[cost.order(rows, np.zeros(3))]
    keys = [tuple(v) for v in cost.values(order, np.zeros(3)).tolist()]
    assert keys == sorted(keys)


def test_plans_over_many_columns_are_minimal_and_ask_few_rows() -> None:
    n, start = 300, np.zeros(300)
    im = budge.InteractionModel([budge.Feature(f"f{i}", "binary") for i in range(n)], [LinearConstraint({"f8": 1, "f9": 1}, "<=", 1)])
    hits = np.ones((4, n))
    hits[:, 8] = 0

    def ask(rows: np.ndarray) -> np.ndarray:
        return rows[:, [0, 150, 299]].sum(axis=1) >= 2

    feasible = feasible_from(im, start)
    found = polish(start, hits, ask, feasible, Cost.of(None, im), whole=[True] * n, parts=[[8, 9]])
    assert found.point is not None
    assert found.point.sum() == 2
    assert found.asked < 2000  # some 45,000 if each pass puts one column back
    both = np.zeros(n)
    both[[8, 9]] = 1
    assert feasible(np.stack([start, found.point, both])).tolist() == [True, True, False]
