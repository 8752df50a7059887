"""The cases of a report: tables of what decides, and what captions may claim."""

from __future__ import annotations

import re
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_kit import Page, audited, unanswered

import budge
from budge import Feature, InteractionModel, constraints
from budge.audit.cases import Case, reached
from budge.report.answer import answer, marks_of
from budge.report.cases import _case, arranged, cases
from budge.report.document import render
from budge.report.figures.strip import strip
from budge.report.mosaic import axes_of, mosaic
from budge.report.people import at_most
from budge.web.person import told
from budge.wording import Wording

PLAIN = Wording()


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(0, 2**32 - 1), st.integers(0, 3))
@settings(max_examples=150, deadline=None)
def test_merged_levels_never_hide_a_difference(sizes: list[int], seed: int, kind: int) -> None:
    rng = np.random.default_rng(seed)
    grid = np.array(list(product(*(range(size) for size in sizes))), dtype=float)
    order = rng.permutation(len(grid))[: rng.integers(1, len(grid) + 1)]  # rules leave some combinations out
    hit = {0: grid[:, 0] >= 1, 1: grid.sum(axis=1) >= 2, 2: rng.random(len(grid)) < 0.5, 3: np.zeros(len(grid), bool)}[kind]
    values, hit = grid[order], np.asarray(hit)[order]
    parts = [[*range(len(sizes))]] if seed % 2 else [[k] for k in range(len(sizes))]
    axes = axes_of(values, grid[0], parts, [True] * len(sizes), listed=True)
    made = mosaic(axes, hit, np.full(len(hit), 1 / len(hit)))
    assert {k for k, axis in enumerate(axes) if len(axis.levels) > 1} == {*made.rows, *made.columns, *made.idle, *made.cut}
    assert sum(cell.points for cell in made.cells.values()) == len(hit) or not made.columns
    shown = (*made.rows, *made.columns)
    for i in range(len(hit)):  # the cell of a point states its outcome, unless an axis had no room
        key = tuple(next(g for g, group in enumerate(made.groups[k]) if axes[k].at[i] in group) for k in shown)
        if shown and not made.cut:
            assert made.cells[key].hits == float(hit[i])
        elif shown:
            inside = np.all([np.isin(axes[k].at, made.groups[k][g]) for k, g in zip(shown, key)], axis=0)
            assert made.cells[key].hits == pytest.approx(hit[inside].mean())
            assert made.cells[key].points == inside.sum()
    for k in made.idle if not made.cut else ():  # what is left out changes nothing
        others = [j for j in range(len(axes)) if j != k]
        seen: dict[tuple[int, ...], bool] = {}
        for i in range(len(hit)):
            key = tuple(int(axes[j].at[i]) for j in others)
            assert seen.setdefault(key, bool(hit[i])) == bool(hit[i])


def test_features_that_move_together_are_one_axis() -> None:
    values = np.array([[0, 0, 5], [1, 0, 5], [1, 1, 5], [0, 0, 6], [1, 0, 6], [1, 1, 6]], dtype=float)  # a thermometer beside a number
    axes = axes_of(values, values[0], [[0, 1], [2]], [True] * 3, listed=True)
    assert [axis.columns for axis in axes] == [(0, 1), (2,)]
    linked = np.array([[a + b, a, b] for a in range(3) for b in range(2)], dtype=float)  # the first follows from the others
    axes = axes_of(linked, linked[0], [[0, 1, 2]], [True] * 3, listed=True)
    assert [axis.columns for axis in axes] == [(1,), (2,)]


def test_a_value_on_an_edge_is_in_one_cell() -> None:
    values = np.arange(20.0)[:, None]
    (axis,) = axes_of(values, values[0], [[0]], [False], listed=False)
    for k in range(20):
        made = mosaic([axis], values[:, 0] >= 10, np.full(20, 0.05), values[k], listed=False)
        assert [key for key, cell in made.cells.items() if cell.least] == [(int(axis.at[k]),)]


def test_outputs_decide_where_nobody_attains_the_target() -> None:
    """The table shows the highest output per cell; levels that change it by little are one, and a point's cell holds at least its output."""
    grid = np.array(list(product(range(3), range(2), range(4))), dtype=float)
    outputs = 0.2 * grid[:, 1] + 0.001 * grid[:, 0] + 0.05 * (grid[:, 2] >= 2)
    axes = axes_of(grid, grid[0], [[0], [1], [2]], [True] * 3, listed=True)
    made = mosaic(axes, np.zeros(len(grid), bool), np.full(len(grid), 1 / len(grid)), outputs=outputs)
    assert made.idle == (0,)
    assert {k: made.groups[k] for k in (1, 2)} == {1: [[0], [1]], 2: [[0, 1], [2, 3]]}
    assert max(cell.best for cell in made.cells.values()) == outputs.max()
    shown = (*made.rows, *made.columns)
    for i, value in enumerate(outputs):
        key = tuple(next(g for g, group in enumerate(made.groups[k]) if axes[k].at[i] in group) for k in shown)
        assert value <= made.cells[key].best <= value + 0.05 * np.ptp(outputs)


def test_the_cell_of_each_point_is_named() -> None:
    audit = audited()
    place = int(np.flatnonzero((audit.table["rho"] > 0) & (audit.table["rho"] < 1))[0])
    points = reached(audit, audit.table.index[place])
    made = arranged(points, audit.context.im, PLAIN, unanswered=False)
    assert made is not None
    cells = {cell["key"]: cell for line in made.table for cell in line if cell["key"]}
    for key, cell in cells.items():
        mine = np.array([own == key for own in made.cell])
        assert cell["title"].startswith(f"{int(points.hit[mine].sum()):,} of {int(mine.sum()):,} points")


def said_of(model: Any, start: dict[str, int], *features: Feature, rules: Any = (), **more: Any) -> dict[str, Any]:
    audit = budge.audit(model, pd.DataFrame([start]), InteractionModel(features, rules), target=1, **more)
    (found,) = cases(audit, "model", {}, PLAIN)
    return found


def test_captions_claim_no_more_than_the_points_show() -> None:
    many, few = Feature("k", "integer", bounds=(0, 49)), Feature("z", "integer", bounds=(0, 3))
    found = said_of(lambda t: (t["k"] % 2).astype(int), {"k": 0}, many)
    assert found["caption"] == "The points differ in k, with too many values for a table."
    found = said_of(lambda t: ((t["k"] % 2 == 1) & (t["z"] < 3)).astype(int), {"k": 0, "z": 0}, many, few)
    assert found["caption"].endswith("Decides within a mixed cell, not shown for room: k.")
    must, keep = constraints.Rule("d == 1"), budge.Design(on_invalid="keep")
    found = said_of(lambda t: (t["d"] == 1).astype(int), {"d": 0, "z": 0}, Feature("d", "binary"), few, rules=[must], design=keep)
    assert found["kind"] == "Every way"
    assert found["caption"] == "Whatever values within reach these take, alone or together, every point attains the target: z."
    found = said_of(lambda t: ((t["d"] == 1) & (t["z"] > 1)).astype(int), {"d": 0, "z": 0}, Feature("d", "binary"), few, rules=[must], design=keep)
    assert "makes no difference" not in found["caption"]  # without the forced change nothing attains the target
    found = said_of(lambda t: (t["b"] != 0.25).astype(int), {"b": 0.25}, Feature("b", "real", bounds=(0, 1)))
    assert found["kind"] == "Nothing but hits among the draws"


def test_levels_without_an_order_are_listed() -> None:
    found = said_of(lambda t: t["c"].isin(["b", "c", "d"]).astype(int), {"c": "a"}, Feature("c", "category", levels=tuple("abcde")))
    assert [cell["text"] for cell in found["table"][1]] == ["a", "b, c or d", "e"]
    whole = Feature("a", "integer", bounds=(0, 9)), Feature("b", "integer", bounds=(0, 9))
    found = said_of(lambda t: (t["a"] >= 8).astype(int), {"a": 0, "b": 0}, *whole, rules=[constraints.Rule("a + b <= 9")])
    assert [cell["text"] for cell in found["table"][1]] == ["0 to 7", "8 or 9"]


@pytest.mark.parametrize("method", ["exact", "sample"])
def test_cases_are_chosen_by_rule_and_their_cells_are_the_points(method: str) -> None:
    audit = audited(population="outside", method=method)
    found = cases(audit, "model", {}, PLAIN)
    table = audit.table
    kinds = {case["kind"]: case for case in found}
    inner = table[(table["rho"] > 0) & (table["rho"] < 1)]
    assert table.loc[kinds["The narrowest way"]["label"], "rho"] == inner["rho"].min()
    assert ("No way at all" in kinds) == bool((table["extreme"] == "none").any())
    for case in found:
        row = table.loc[case["label"]]
        if case["table"] is None:
            continue
        cells = [cell for line in case["table"] for cell in line if cell["title"].endswith("attain the target")]
        told = [tuple(int(v.replace(",", "")) for v in re.findall(r"[\d,]+", cell["title"])[:2]) for cell in cells]
        assert sum(n for _, n in told) == row["n"]
        assert sum(h for h, _ in told) == row["hits"]


def test_a_listed_case_without_a_way_is_a_proof_and_a_drawn_one_is_none() -> None:
    im = InteractionModel([Feature("a", "integer", bounds=(0, 9)), Feature("b", "real", bounds=(0, 1))])
    X = pd.DataFrame({"a": [1, 2], "b": [0.5, 0.2]})
    drawn = budge.audit(lambda t: np.zeros(len(t), int), X, im, target=1)
    assert "no proof" in cases(drawn, "model", {}, PLAIN)[0]["proof"]
    assert "no way at all" not in answer(drawn, "model", PLAIN).headline
    assert "no hit" in strip(marks_of(drawn, "model"), 0.1, "screen", axis="ρ")
    listed = budge.audit(lambda t: np.zeros(len(t), int), X, im.freeze("b"), target=1)
    assert cases(listed, "model", {}, PLAIN)[0]["proof"].startswith("Proof: all 10 points")
    assert answer(listed, "model", PLAIN).headline.startswith("2 of 2 people have no way at all")


def test_missing_answers_are_not_taken_for_draws_or_misses() -> None:
    audit = unanswered()
    assert (audit.table["method"] == "exact").all()
    text = " ".join(Page(render(audit)).text.split())
    assert "Get the answers that are missing. 37 points have none." in text
    for words in ("no draw attained", "Draw more points", "It is estimated from draws"):
        assert words not in text
    some = audit.table[audit.table["unresolved"] > 0]
    assert len(some)
    for label in some.index:
        at = int(audit.rows["model"].index.get_loc(label))
        case = _case(audit, "model", Case("", at, reached(audit, label)), audit.context.im, {}, PLAIN)
        assert case["needed"] == ""
        assert "makes no difference" not in case["caption"]
        assert "no point attains" not in case["caption"]


def test_a_plan_tells_that_what_happens_afterwards_is_left_out() -> None:
    from budge.datasets import Scorecard, lending, spec_path

    data, im = lending(200), budge.InteractionModel.from_file(spec_path("lending"))
    card = Scorecard.fit(data.X, data.y)
    audit = budge.audit(card, data.X[:40], im, target=1, n=60)
    plans = [case["plan"] for case in cases(audit, "model", {}, Wording()) if case["plan"]]
    assert plans
    assert all(plan["how"].endswith("; what happens to savings afterwards is left out") for plan in plans)
    found = [audit.recourse(label) for label in audit.of_model("model").index]
    stuck = next(plan for plan in found if plan.status == "impossible")
    assert "what happens to savings afterwards is left out" in str(stuck)
    assert "what happens to savings afterwards is left out" in stuck.letter()


def test_weighted_draws_are_not_counted_in_mixed_cells() -> None:
    im = InteractionModel([Feature("x", "integer", bounds=(0, 20), max_increase=6), Feature("b", "binary")])
    X = pd.DataFrame({"x": np.arange(3, 9), "b": 0})
    audit = budge.audit(
        lambda t: (t["x"] + 3 * t["b"] > 10).astype(int), X, im, target=1, method="sample", n=60, proposal={"b": {"weights": {0: 1, 1: 9}}}
    )
    shown = [case for case in cases(audit, "model", {}, Wording()) if case["table"]]
    told = [case["caption"] for case in shown if any(cell["text"].endswith("%") for line in case["table"] for cell in line)]
    assert told
    assert all("where they differ, their share by weight" in caption for caption in told)


def test_almost_every_way_is_not_called_exactly_every_way() -> None:
    im = InteractionModel([Feature("x", "integer", bounds=(0, 2999))])
    audit = budge.audit(lambda t: (t["x"] > 0).astype(int), pd.DataFrame({"x": [0]}), im, target=1)
    (case,) = cases(audit, "model", {}, Wording())
    assert case["say"] == "2,999 of 3,000 reachable points attain the target: ρ = 0.9997, exactly"


def test_a_case_states_the_bound_of_the_page_and_the_terminal() -> None:
    im = InteractionModel([Feature("x", "integer", bounds=(0, 9)), Feature("ok", "binary", actionable=False)])
    X = pd.DataFrame({"x": [0, 1], "ok": [0, 1]})
    audit = budge.audit(lambda t: ((t["x"] > 6) & (t["ok"] == 1)).astype(int), X, im, target=1, method="sample")
    nohit, hit = cases(audit, "model", {}, Wording())
    row = {str(k): v for k, v in audit.table.iloc[0].items()}
    assert row["upper"] < row["high"]
    assert nohit["say"] == f"0 of 298 draws attain the target: {at_most(row['upper'], 0.05)}"
    assert told(row, "the target", 0.05)[0] == f"No hit in 298 draws: {at_most(row['upper'], 0.05)}."
    assert hit["say"].endswith("(two-sided, 95 %)")


def test_one_point_and_one_person_are_singular() -> None:
    X = pd.DataFrame({"a": [0, 1, 1, 0, 0], "b": [3, 1, 4, 5, 5]})
    im = InteractionModel([Feature("a", "binary", direction="increase"), Feature("b", "integer", actionable=False)])
    audit = budge.audit(lambda t: ((t["a"] == 1) & (t["b"] > 2)).astype(int), X, im, target=1, threshold=0.5)
    text = " ".join(Page(render(audit)).text.split())
    for words in (
        "The only reachable point does not attain the target: ρ = 0, exactly.",
        "Proof: this person can reach one point only, and the model was asked about it.",
        "(1 already has it)", "1 person stands exactly as another does and shares", "Exactly 1 of these 4 people (25 %) is below the threshold.",
    ):  # fmt: skip
        assert words in text, words
    assert "all 1 points" not in text


def test_words_of_groups_and_models_fit_what_was_asked() -> None:
    """Where the question is whether there is any way, no column is called “are below”; two models' numbers stand apart from their names."""
    text = " ".join(Page(render(audited(threshold=0, claim="above", method="sample", n=20, groups="home"))).text.split())
    assert "“Have no way” and “are above” hold" in text
    assert "“Are below”" not in text
    models = {"model 1": lambda t: (t["k"] > 2).astype(int), "model 5": lambda t: (t["k"] > 30).astype(int)}
    X = pd.DataFrame({"k": [0, 1, 2]})
    audit = budge.audit(models, X, InteractionModel([Feature("k", "integer", bounds=(0, 9))]), target=1)
    assert "model 1 leaves 0 with almost no way, and model 5 leaves 3." in " ".join(Page(render(audit)).text.split())


GRID = [*(Feature(name, "integer", bounds=(0, high)) for name, high in (("a", 4), ("b", 2), ("z", 2))), Feature("far", "binary", actionable=False)]


class Scored:
    """A classifier as scikit-learn has them: labels by a probability of one half."""

    classes_ = np.array([0, 1])

    def predict_proba(self, table: Any) -> Any:
        x = np.asarray(table, dtype=float)
        score = 0.1 * x[:, 0] + 0.03 * x[:, 1] + 0.001 * x[:, 2] + 0.2 * x[:, 3]
        return np.stack([1 - score, score], axis=1)

    def predict(self, table: Any) -> Any:
        return (self.predict_proba(table)[:, 1] > 0.5).astype(int)


def test_how_near_people_come_is_the_highest_output_of_their_points(tmp_path: Any) -> None:
    """Without a way: the best output and what the target needs, as listed by hand; with one, bars of all outputs and the counted table."""
    people = pd.DataFrame({"a": [0, 0], "b": 0, "z": 0, "far": [0, 1]}, index=["near", "there"])
    audit = budge.audit(Scored(), people, InteractionModel(GRID), target=1)
    stuck, able = cases(audit, "model", {}, PLAIN.but(target_name="approval"))
    grid = np.array(list(product(range(5), range(3), range(3), [0.0])))
    outputs = Scored().predict_proba(grid)[:, 1]
    assert (stuck["kind"], stuck["best"]) == ("No way at all", f"The best output is {outputs.max():.3f}; approval needs more than 0.500.")
    assert stuck["close"]
    assert stuck["caption"] == "Number: the highest output in the cell. Not shown, because it changes the output little: z."
    shown = {float(cell["text"]) for line in stuck["table"] for cell in line if cell["key"]}
    assert shown == {round(0.1 * a + 0.03 * b + 0.002, 3) for a in range(5) for b in range(3)}
    assert stuck["chart"]["words"] == "45 points by the model's output; shaded: what approval needs, more than 0.500; line: now, 0.000."
    assert (able["best"], able["close"]) == ("", False)
    assert 'class="hit"' in able["chart"]["svg"]
    assert 'class="hit"' not in stuck["chart"]["svg"]
    text = render(audit)
    assert "2 people in full: from no way at all to some way." in text
    assert text.count('<div class="chart">') == 2
    run = budge.Audit.load(audit.save(tmp_path / "run"))  # holds no model, and so no outputs
    assert [case["best"] for case in cases(run, "model", {}, PLAIN, InteractionModel(GRID))] == ["", ""]


def test_what_has_no_room_in_a_table_of_outputs_is_not_said_to_change_little() -> None:
    grid = np.array(list(product(range(2), repeat=5)), dtype=float)
    axes = axes_of(grid, grid[0], [[k] for k in range(5)], [True] * 5, listed=True)
    made = mosaic(axes, np.zeros(32, bool), np.full(32, 1 / 32), outputs=grid @ [0.5, 0.4, 0.3, 0.2, 0.001])
    assert (made.idle, made.cut) == ((4,), (3,))
    assert {*made.rows, *made.columns} == {0, 1, 2}


def test_draws_without_an_answer_are_named_under_the_table() -> None:
    def mute(table: pd.DataFrame) -> Any:
        return np.where(table["a"] == 4, np.nan, table["a"] >= 3)

    found = said_of(
        mute, {"a": 0, "b": 0, "z": 0, "far": 0}, *GRID, method="sample", n=100, design=budge.Design(max_unresolved=1.0), execution=budge.Execution(check=False)
    )
    assert "Draws without an answer are counted as if they did not." in found["caption"]


def test_the_structure_of_a_model_is_not_read_for_people_whose_points_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading it costs more than the report of some hundred people."""
    audit = budge.audit(Scored(), pd.DataFrame({"a": [0], "b": 0, "z": 0, "far": 1}), InteractionModel(GRID), target=1)
    monkeypatch.setattr(import_module("budge.audit.recourse"), "settlers_of", lambda *_: pytest.fail("it was read"))
    plan = audit.recourse(0)
    assert (plan.method, plan.actions["to"].tolist()) == ("listed", [4])
