"""What the switches of a report say is what the library computes: exactly where sets are listed, in law where they are drawn."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

import budge
from budge import Feature, InteractionModel, constraints, stats
from budge.distributions import Distribution
from budge.errors import BudgeError
from budge.report import live as live_module
from budge.report.live import make_live
from budge.report.switches import Board, find_bank
from budge.testing import strategies

ROOMY = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.reuse, Phase.generate], report_multiple_bugs=False)


def rule(table: pd.DataFrame) -> np.ndarray:
    """A model that reads everything."""
    total = np.zeros(len(table))
    for k, name in enumerate(table.columns):
        column = table[name]
        codes = column.to_numpy(dtype=float) if column.dtype.kind in "biuf" else np.array([sum(map(ord, str(v))) % 7 for v in column], dtype=float)
        total += codes * (k % 3 - 0.7)
    return (np.floor(total * 1.7) % 2).astype(int)


def exactly(model: Any, X: pd.DataFrame, im: InteractionModel) -> tuple[str, float]:
    """Status and ρ of the first person by the library."""
    row = budge.audit(model, X.iloc[[0]], im, target=1, method="exact", on_invalid="keep", check=False).table.iloc[0]
    return str(row["status"]), float(row["rho"])


def subsets(many: int, most: int = 3) -> list[tuple[int, ...]]:
    return [some for size in range(most + 1) for some in combinations(range(many), size)]


@pytest.fixture(scope="module")
def discrete() -> tuple[pd.DataFrame, InteractionModel]:
    im = InteractionModel(
        [
            Feature("income", "integer", bounds=(0, 6), max_increase=2, direction="increase"),
            Feature("savings", "integer", bounds=(0, 4)),
            Feature("age", "integer", bounds=(18, 30), actionable=False),
            Feature("low", "binary"),
            Feature("high", "binary"),
            Feature("home", "binary", actionable=False),
        ],
        [
            constraints.LinearConstraint({"income": 1, "savings": 1}, "<=", 3, on="action", name="effort"),
            constraints.Thermometer(("low", "high"), direction="increase", name="account"),
            constraints.IfThen("income >= 4", "low == 1", name="rich"),
            constraints.DirectionalLinkage("savings", {"age": 1}, name="time"),
        ],
    )
    X = pd.DataFrame({"income": [1, 3, 4], "savings": [0, 2, 4], "age": [20, 25, 28], "low": [0, 1, 1], "high": [0, 0, 1], "home": [0, 1, 0]})
    return X, im


def test_every_combination_that_is_carried_is_exact(discrete: tuple[pd.DataFrame, InteractionModel]) -> None:
    X, im = discrete
    found = make_live(budge.audit(rule, X, im, target=1), people=3)
    board = found.board
    assert {t.name: t.how for t in board.toggles} == {
        "drop effort": "mask", "drop account": "mask", "drop rich": "mask", "drop time": "fork", "lift direction of account": "apart",
        "free age": "apart", "free home": "apart", "lift direction of income": "mask", "lift steps of income": "mask",
    }  # fmt: skip
    answered = 0
    for off in subsets(len(board.toggles)):
        if find_bank(board, off) is None:
            continue
        for p, label in enumerate(found.labels):
            hits, n, exact = found.rho(p, off) or (0.0, 0.0, False)
            status, rho = exactly(rule, X.loc[[label]], board.model(off))
            assert exact
            assert (n == 0) == (status == "empty")
            assert n == 0 or hits / n == pytest.approx(rho, abs=1e-12), (off, label)
            answered += 1
    assert answered > 150  # most pairs and triples are carried


@given(data=st.data())
@ROOMY
def test_random_worlds(data: st.DataObject) -> None:
    """Whatever the constraints are: each combination of up to two switches gives what the library lists."""
    im = data.draw(strategies.interaction_models(continuous=False, effects=False))
    x = data.draw(strategies.starts(im, outside=0.0))
    X = pd.DataFrame([x])
    try:
        audit = budge.audit(rule, X, im, target=1, method="exact", on_invalid="keep", check=False)
        assume(audit.table["status"].iloc[0] not in ("not_exact", "invalid_start"))
        found = make_live(audit, people=1)
    except BudgeError:
        assume(False)
    board = found.board
    for off in subsets(len(board.toggles), 2):
        b = find_bank(board, off)
        if b is None or not found.counts or found.counts[0][b] is None or not found.counts[0][b].exact:
            continue
        hits, n, _ = found.rho(0, off) or (0.0, 0.0, False)
        status, rho = exactly(rule, X, board.model(off))
        if status == "not_exact":
            continue
        assert (n == 0) == (status == "empty"), [board.toggles[t].name for t in off]
        if n:
            assert hits / n == pytest.approx(rho, abs=1e-9), [board.toggles[t].name for t in off]


def mixed(measure: str = "configuration") -> InteractionModel:
    """A whole and a real feature, joined: the budget leaves less room to u the larger d is."""
    return InteractionModel(
        [Feature("d", "integer", bounds=(0, 3)), Feature("u", "real", bounds=(0.0, 4.0))],
        [constraints.LinearConstraint({"d": 1, "u": 1}, "<=", 4, name="budget")],
        measure=measure,  # type: ignore[arg-type]
    )


def big(table: pd.DataFrame) -> np.ndarray:
    return (table["d"] >= 2).to_numpy().astype(int)


def test_a_budget_over_whole_and_real_features_gets_draws_of_its_own() -> None:
    """Under the configuration measure d is uniform with and without the budget; conditioning would make it 3/10 instead of 1/2."""
    X = pd.DataFrame({"d": [0], "u": [0.0]})
    found = make_live(budge.audit(big, X, mixed(), target=1, n=400), people=1, draws=4000)
    assert [t.how for t in found.board.toggles] == ["fork"]
    hits, n, exact = found.rho(0, [0]) or (0, 0, True)
    assert not exact
    assert n == 4000
    assert 0.5 in stats.interval(int(hits), int(n), 1e-6)
    off = make_live(budge.audit(big, X, mixed(), target=1, n=400), people=1, draws=4000)
    assert off.counts[0][0] is not None  # the same draws again
    assert off.counts[0][0].hits.tolist() == found.counts[0][0].hits.tolist()  # type: ignore[union-attr]


def test_conditioning_would_be_wrong_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with the rule taken out that keeps such constraints from being masks: the number is wrong, and this test sees it."""
    from budge.report import switches

    monkeypatch.setattr(switches, "_apart", lambda *a: "")
    X = pd.DataFrame({"d": [0], "u": [0.0]})
    found = make_live(budge.audit(big, X, mixed(), target=1, n=400), people=1, draws=8000)
    assert [t.how for t in found.board.toggles] == ["mask"]
    hits, n, _ = found.rho(0, []) or (0, 0, True)
    assert 0.5 not in stats.interval(int(hits), int(n), 1e-6)
    assert 0.3 in stats.interval(int(hits), int(n), 1e-6)  # (2 + 1) of (4 + 3 + 2 + 1)


def test_by_volume_conditioning_is_right() -> None:
    X = pd.DataFrame({"d": [0], "u": [0.0]})
    found = make_live(budge.audit(big, X, mixed("volume"), target=1, n=400), people=1, draws=8000)
    assert [t.how for t in found.board.toggles] == ["mask"]
    hits, n, _ = found.rho(0, []) or (0, 0, True)
    assert 0.3 in stats.interval(int(hits), int(n), 1e-6)
    hits, n, _ = found.rho(0, [0]) or (0, 0, True)
    assert 0.5 in stats.interval(int(hits), int(n), 1e-6)


def test_a_lone_real_feature_is_cut_and_stays_uniform() -> None:
    im = InteractionModel([Feature("u", "real", bounds=(0.0, 10.0), direction="increase", max_increase=4)])
    X = pd.DataFrame({"u": [2.0]})
    found = make_live(budge.audit(lambda t: (t["u"] > 5).astype(int), X, im, target=1, n=400), people=1, draws=8000)
    assert [t.how for t in found.board.toggles] == ["mask", "mask"]
    truths = {(): 1 / 4, (0,): 1 / 6, (1,): 5 / 8, (0, 1): 5 / 10}  # [2, 6], [0, 6], [2, 10], [0, 10]
    for off, truth in truths.items():
        hits, n, _ = found.rho(0, off) or (0, 0, True)
        assert truth in stats.interval(int(hits), int(n), 1e-6), off


def test_effects_of_chance_break_no_rule() -> None:
    """Masks read what she did, not what chance added."""
    im = InteractionModel(
        [Feature("a", "integer", bounds=(0, 5), max_increase=2)], effects=[budge.Effect("a", add="round(normal(0, 3))", clip=(0, 5))]
    )
    X = pd.DataFrame({"a": [1]})
    audit = budge.audit(lambda t: (t["a"] > 2).astype(int), X, im, target=1, n=3000)
    found = make_live(audit, people=1, draws=6000)
    hits, n, _ = found.rho(0, []) or (0, 0, True)
    assert n == pytest.approx(6000 * 4 / 6, abs=6 * np.sqrt(6000 * 4 / 6 * 2 / 6))  # 0..3 of 0..5
    low, high = stats.interval(int(hits), int(n), 1e-4)
    row = audit.table.iloc[0]
    other = stats.interval(int(row["hits"]), int(row["n"]), 1e-4)
    assert low < other.high
    assert other.low < high


def test_with_everything_on_it_agrees_with_the_audit() -> None:
    from budge.datasets import lending, spec_path
    from budge.datasets.scorecard import Scorecard

    data = lending(n=700, seed=0)
    model = Scorecard.fit(data.X.iloc[:500], data.y.iloc[:500])
    im = InteractionModel.from_file(spec_path("lending"))
    audit = budge.audit(model, data.X.iloc[500:520], im, target=1, n=600)
    found = make_live(audit, people=12)
    assert {t.name for t in found.board.toggles if t.how == "fork"} == {
        "drop a year at the address is a year of life", "drop savings within half a year's income", "drop rent is paid from income",
    }  # fmt: skip
    for p, label in enumerate(found.labels):
        hits, n, exact = found.rho(p, []) or (0, 0, True)
        assert not exact
        assert n >= live_module.LEAST
        row = audit.table.loc[label]
        one = stats.interval(int(hits), int(n), 1e-4)
        two = stats.interval(int(row["hits"]), int(row["n"]), 1e-4)
        assert one.low <= two.high
        assert two.low <= one.high


def test_each_switch_alone_agrees_with_a_fresh_audit_of_the_relaxed_model() -> None:
    from budge.datasets import lending, spec_path
    from budge.datasets.scorecard import Scorecard

    data = lending(n=700, seed=0)
    model = Scorecard.fit(data.X.iloc[:500], data.y.iloc[:500])
    im = InteractionModel.from_file(spec_path("lending"))
    people = data.X.iloc[500:504]
    found = make_live(budge.audit(model, people, im, target=1), people=4)
    seen = 0
    for t, toggle in enumerate(found.board.toggles):
        other = budge.audit(model, people, toggle.relaxation.model(im), target=1, n=800, seed=5, check=False).table
        for p, label in enumerate(found.labels):
            hits, n, _ = found.rho(p, [t]) or (0, 0, True)
            if n < live_module.LEAST:
                continue
            one = stats.interval(int(hits), int(n), 1e-5)
            two = stats.interval(int(other["hits"][label]), int(other["n"][label]), 1e-5)
            assert one.low <= two.high, (toggle.name, label)
            assert two.low <= one.high, (toggle.name, label)
            seen += 1
    assert seen >= 40


def test_what_keeps_too_few_draws_gets_its_own() -> None:
    wide = [Feature(f"f{k}", "integer", bounds=(0, 99_999), max_increase=5, max_decrease=5) for k in range(3)]
    X = pd.DataFrame({f"f{k}": [50_000] for k in range(3)})
    found = make_live(budge.audit(lambda t: (t["f0"] > 50_002).astype(int), X, InteractionModel(wide), target=1), people=1)
    assert all(t.how == "apart" for t in found.board.toggles)
    assert all(found.rho(0, [t]) is not None for t in range(3))
    assert found.rho(0, [0, 1]) is None  # no draws are carried for two of them
    assert found.rho(0, []) is None  # nor, here, for none: the audit itself answers for that


def test_a_target_of_an_inequality_linkage_is_not_masked() -> None:
    """The own action behind a change is not told by the change: a mask on it would guess."""
    im = InteractionModel(
        [Feature("s", "integer", bounds=(0, 3)), Feature("t", "integer", bounds=(0, 6), direction="increase")],
        [constraints.DirectionalLinkage("s", {"t": 1}, relation="<=", name="link", on_exceed="reject")],
    )
    board = Board.of(im)
    assert {t.name: t.how for t in board.toggles} == {"drop link": "fork", "lift direction of t": "apart"}
    X = pd.DataFrame({"s": [1], "t": [2]})
    found = make_live(budge.audit(rule, X, im, target=1), people=1)
    for off in ([0], [1]):
        hits, n, exact = found.rho(0, off) or (0, 0, False)
        assert exact
        assert hits / n == pytest.approx(exactly(rule, X, board.model(off))[1])


def test_weights_on_values_are_kept() -> None:
    im = InteractionModel(
        [
            Feature("home", "category", levels=("rent", "own", "free"), distribution=Distribution.from_spec({"weights": {"rent": 1, "own": 3, "free": 2}})),
            Feature("a", "integer", bounds=(0, 2)),
        ],
        [constraints.IfThen("home == 'own'", "a >= 1", name="link")],
    )
    X = pd.DataFrame({"home": ["rent"], "a": [0]})
    model = lambda t: (t["home"].astype(str) == "own").to_numpy().astype(int)  # noqa: E731
    found = make_live(budge.audit(model, X, im, target=1), people=1)
    for off in ((), (0,)):
        hits, n, exact = found.rho(0, off) or (0, 0, False)
        assert exact
        assert hits / n == pytest.approx(exactly(model, X, found.board.model(off))[1])


def test_people_are_chosen_by_the_seed_and_twins_once() -> None:
    im = InteractionModel([Feature("a", "integer", bounds=(0, 9), max_increase=2)])
    X = pd.DataFrame({"a": [1] * 20 + list(range(10))})
    audit = budge.audit(rule, X, im, target=1, seed=3)
    one, two = make_live(audit, people=5, also=[29]), make_live(audit, people=5, also=[29])
    assert one.labels == two.labels
    assert sum(one.meant) == 5
    values = X["a"].loc[[label for label, meant in zip(one.labels, one.meant) if meant]]
    assert values.is_unique
