"""Wrong results that an attack found, each with the right one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import budge
from budge import Design, Execution, Feature, InteractionModel, constraints, stress
from budge.audit.gate import gate
from budge.errors import DesignError, IncompleteError, InputError
from budge.models import as_predictor

FEATURES = [Feature("x", "integer", bounds=(0, 9)), Feature("g", "integer", actionable=False)]
IM = InteractionModel(FEATURES)
X = pd.DataFrame({"x": [0, 1, 2, 3], "g": [0, 0, 1, 1], "sex": list("ffmm")}, index=list("abcd"))
STEPS = InteractionModel([Feature("x", "integer", bounds=(0, 9), max_increase=2), FEATURES[1]])


def above(cut: int) -> Any:
    return lambda t: (t["x"] > cut).astype(int)


@pytest.mark.parametrize("rule", ["x + y <= 3", "x == 0 or y <= 0.1"])
def test_the_paired_probe_is_refused_where_the_dropped_rule_joined_whole_and_real(rule: str) -> None:
    im = InteractionModel([Feature("x", "integer", bounds=(0, 2)), Feature("y", "real", bounds=(0, 4))], [constraints.Rule(rule)])
    people = pd.DataFrame({"x": [0], "y": [0.05]})
    with pytest.raises(DesignError, match="do not follow the original's law"):
        stress.ablate(lambda t: (t["x"] >= 1).astype(int), people, im, target=1, method="paired", n=100)


def test_the_paired_probe_checks_that_a_relaxation_allows_all_of_the_original() -> None:
    smaller = InteractionModel([Feature("x", "integer", bounds=(0, 4)), FEATURES[1]])
    with pytest.raises(DesignError, match="not a superset"):
        stress.ablate(above(4), X[["x", "g"]], IM, {"smaller": smaller}, target=1, method="paired")


class Drawer:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    def draw(self, x: Any, n: int, rng: np.random.Generator) -> Any:
        return rng.random((n, 1)) * self.scale


def only(limit: int) -> InteractionModel:
    return InteractionModel(FEATURES, [constraints.Predicate(("x",), lambda v: v["x"] <= limit)])


SCORE = as_predictor(lambda t: t["x"] / 10, output="score")
INPUTS = np.arange(3.0)[:, None] * 0.01
PAIRS = {
    "models that agree on the starts": [(above(cut), X, IM, 1) for cut in (4, 8)],
    "targets": [(SCORE, X, IM, lambda out, before, cut=cut: out > cut) for cut in (0.35, 0.75)],
    "drawers": [(lambda a: (np.asarray(a)[:, 0] > 0.5).astype(int), INPUTS, Drawer(scale), 1) for scale in (1.0, 0.1)],
    "predicates": [(above(4), X, only(limit), 1) for limit in (9, 5)],
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_journal_is_not_resumed_by_other_code(name: str, tmp_path: Path) -> None:
    (one, two), folder = PAIRS[name], tmp_path / "run"
    first = budge.audit(*one[:3], target=one[3], journal=folder).table
    with pytest.raises(InputError, match="another run"):
        budge.audit(*two[:3], target=two[3], journal=folder)
    assert budge.audit(*one[:3], target=one[3], journal=folder).table["hits"].tolist() == first["hits"].tolist()


def test_the_mean_gain_and_its_interval_are_about_the_same_people() -> None:
    def model(t: pd.DataFrame) -> np.ndarray:
        return np.where((t["g"] == 1) & (t["x"] == 9), np.nan, (t["x"] > 4).astype(float))

    people = pd.DataFrame({"x": [1, 3], "g": [0, 1]})
    found = stress.ablate(model, people, STEPS, ["lift steps of x"], target=1.0, design=Design(max_unresolved=0.5))
    row = found.ranking.iloc[0]
    assert np.isnan(row["gain"])  # of everybody, or of nobody
    assert row["low"] < row["high"]
    assert "answers of 1 person are missing" in str(found)


def test_sensitivity_at_the_threshold_0_counts_those_without_a_way() -> None:
    family = stress.grid(STEPS, {"features.x.max_increase": [1, 2]})
    people = pd.DataFrame({"x": [1, 2, 7], "g": 0})
    found = stress.sensitivity(above(8), people, family, target=1, threshold=0, harm="below")
    assert (int(found.people["certify"].sum()), int(found.people["flag"].sum()), int(found.people["consensus"].sum())) == (2, 3, 2)
    assert found.by_member["none"].tolist() == [3, 2]


def test_members_that_disagree_are_among_those_flagged() -> None:
    rng = np.random.default_rng(0)
    people = pd.DataFrame({"dial": 0.5, "rate": rng.choice([0.02, 0.06, 0.1, 0.2], 60), "who": np.arange(60)})
    still = [Feature("rate", "fixed"), Feature("who", "fixed")]
    family = {f"up to {top}": InteractionModel([Feature("dial", "real", bounds=(0, top)), *still]) for top in (4.0, 1.0, 0.5)}
    found = stress.sensitivity(lambda t: (t["dial"] < t["rate"]).astype(int), people, family, target=1, n=100, population="all")
    assert found.people["disagree"].any()
    assert (found.people["flag"] | ~found.people["disagree"]).all()


def test_minimal_relaxations_refuse_too_many_missing_answers() -> None:
    with pytest.raises(IncompleteError):
        stress.minimal_relaxations(lambda t: np.where(t["x"] > 2, np.nan, 0.0), pd.DataFrame({"x": [1, 2], "g": 0}), STEPS, target=1.0)


def test_labelled_values_are_read_by_their_labels() -> None:
    turned = X.iloc[::-1]
    found = budge.audit(above(4), X, IM, target=1, population=turned["x"] < 1)
    assert found.table.index.tolist() == ["a"]
    with pytest.raises(InputError, match="other labels"):
        budge.audit(above(4), X, IM, target=1, population=pd.Series([True] * 4))
    everybody = budge.audit(above(4), X, IM, target=1)
    assert not gate(everybody, "count(x == 0 and verdict == 'above') < 1", people=turned).failed


def test_sentences_about_listed_people_with_missing_answers() -> None:
    def gaps(t: pd.DataFrame) -> np.ndarray:
        return np.where(t["x"] > 4, np.nan, 0.0)

    found = budge.audit(gaps, X, IM, target=1.0, groups="sex", design=Design(max_unresolved=1.0))
    assert "all known" not in str(found)
    assert "confidence" not in str(found)
    assert str(found).count("whatever the missing answers are") == 2
    none = budge.falsify(gaps, X.iloc[[0]], IM, target=1.0, method="sample", design=Design(max_unresolved=1.0))
    assert "have no answer" in str(none)


def test_large_arrays_inside_inputs_are_told_apart() -> None:
    class Shift:
        def draw(self, x: Any, n: int, rng: np.random.Generator) -> Any:
            return [{"v": x["v"] + rng.normal()} for _ in range(n)]

    zero, other = np.zeros(2000), np.zeros(2000)
    other[1000] = 5
    inputs = [{"v": zero}, {"v": other}]
    found = budge.audit(lambda rows: np.array([int(r["v"][1000] > 1) for r in rows]), inputs, Shift(), target=1, n=60, population="all")
    assert found.info["twins"] == 0


def test_nobody_left_to_audit_by_groups() -> None:
    found = budge.audit(above(4), X.assign(x=[6, 7, 8, 9]), IM, target=1, groups="sex")
    assert "0 of 4 people" in str(found)
    assert not len(found.differences("sex"))
    assert found.to_dict()["table"] == []


def test_options_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DesignError, match="over a table"):
        budge.audit(lambda a: np.zeros(len(a)), INPUTS, Drawer(1), target=1, n=60, proposal={"a": {"weights": {0: 1}}})
    with pytest.raises(DesignError, match=r"budge\.Design"):
        budge.audit(above(4), X, IM, target=1, design={"n": 3})  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no such option"):
        budge.estimate(above(4), X, IM, target=1, sequential=True)  # type: ignore[call-arg]
    with pytest.raises(DesignError, match="keeps no journal"):
        stress.ablate(above(4), X, IM, target=1, execution=Execution(journal="run"))
    clash = budge.audit(above(4), X.assign(status="single"), IM, target=1)
    with pytest.raises(InputError, match="of the audit and of the people"):
        gate(clash, "share(status == 'single') > 0.5")


def test_models_and_people_of_any_name() -> None:
    chosen = stress.select({1: above(4), 2: above(9)}, X, IM, target=1, accuracy={1: 0.9, 2: 0.8})
    assert chosen.chosen == "2"
    index = pd.MultiIndex.from_tuples([(1, 2), (1, 3), (2, 1), (2, 2)])
    assert len(budge.audit(above(4), X.set_index(index), IM, target=1).to_dict()["table"]) == 4


# -- means and gates where answers are missing, or nobody is judged ------------------------------------------------------------------------


def _gaps() -> tuple[Any, pd.DataFrame, Any]:
    im = budge.InteractionModel([budge.Feature("a", "integer", bounds=(0, 9), max_increase=5), budge.Feature("g", "binary", actionable=False)])
    X = pd.DataFrame({"a": [0, 1], "g": [0, 1]})

    def model(t: pd.DataFrame) -> Any:
        return np.where((t["g"] == 1) & (t["a"] == 5), np.nan, np.where(t["g"] == 0, (t["a"] > 8) * 1.0, (t["a"] > 1) * 1.0))

    return im, X, model


def test_a_mean_is_about_everybody_or_only_its_ends_are_told() -> None:
    """Person 1 has ρ in [4/7, 5/7] under five steps: a mean without that person would be 0."""
    im, X, model = _gaps()
    design = budge.Design(max_unresolved=1.0)
    found = budge.estimate(model, X, im, target=1.0, design=design)
    low, high = found.audit.summary().mean_ends or (np.nan, np.nan)
    assert found.audit.summary().mean_rho is None
    assert low <= 2 / 7 + 1e-12
    assert high >= 5 / 14 - 1e-12
    assert "whatever the 1 missing answers are" in str(found)
    family = budge.stress.grid(im, {"features.a.max_increase": [2, 5]})
    moved = budge.sensitivity(model, X, family, target=1.0, design=design)
    assert np.isnan(moved.by_member["mean_rho"].iloc[1])
    assert "moves most" not in str(moved)
    assert moved.people["rho_max"].isna().tolist() == [False, True]
    gained = budge.ablate(model, X, im, ["lift steps of a"], target=1.0, design=design)
    row = gained.ranking.iloc[0]
    assert np.isnan(row["gain"])
    assert "exactly" not in str(gained)
    each = gained.of("lift steps of a")
    assert row["low"] == pytest.approx(each["low"].mean())
    assert row["high"] == pytest.approx(each["high"].mean())


def test_a_gate_over_nobody_is_an_error_and_people_who_are_not_listed_may_be_on_either_side() -> None:
    im = budge.InteractionModel([budge.Feature("a", "real", bounds=(0, 9)), budge.Feature("g", "integer", bounds=(0, 9), actionable=False)])
    X = pd.DataFrame({"a": [0.0, 1.0], "g": [0, 1]})
    none = budge.audit(lambda t: (t["a"] > 8.9) * 1, X, im, target=1, method="exact")
    assert gate(none, "share_high > 0.5").failed
    assert not gate(none, "share_low > 0.5").failed
    with pytest.raises(budge.BudgeError, match="nobody has a value"):
        gate(none, "mean(rho) < 0.5")
    nobody = budge.audit(lambda t: (t["a"] > 8.9) * 1, X, im, target=1, population="g > 7", n=100)
    with pytest.raises(budge.BudgeError, match="nobody was judged"):
        gate(nobody, "share_high > 0.5")


def test_a_cause_does_not_depend_on_the_size_of_blocks() -> None:
    im, X, model = _gaps()
    seen = {
        str(budge.audit(model, X, im, target=1.0, population="all", design=budge.Design(max_unresolved=1.0), execution=budge.Execution(block_people=size)))
        for size in (1, 2)
    }
    assert len(seen) == 1


def test_a_gate_on_a_mean_needs_every_answer() -> None:
    im, X, model = _gaps()
    found = budge.audit(model, X, im, target=1.0, population="all", design=budge.Design(max_unresolved=1.0))
    with pytest.raises(budge.BudgeError, match="not known of 1 people"):
        gate(found, "mean(rho) < 0.5")
    assert gate(found, "mean(low) < 0.5").failed


def test_the_report_tells_the_ends_of_a_mean(tmp_path: Path) -> None:
    im, X, model = _gaps()
    found = budge.audit(model, X, im, target=1.0, population="all", design=budge.Design(max_unresolved=1.0))
    found.to_html(tmp_path / "report.html")
    assert "whatever the missing answers are" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_model_that_clips_a_few_rows_in_place_is_an_error_where_others_get_the_table():
    X = pd.DataFrame({"a": np.arange(40) % 7, "b": np.arange(40) % 5})
    im = budge.InteractionModel([budge.Feature("a", "integer", bounds=(0, 5000)), budge.Feature("b", "integer", bounds=(0, 5000))])

    def clips(table):
        table.loc[(table["a"] > 4998) & (table["b"] > 4990), "a"] = 0  # one point in 250,000
        return (table["a"] > 4000).astype(int)

    with pytest.raises(budge.BudgeError, match="changes the table"):
        budge.audit({"one": clips, "two": lambda t: (t["a"] > 4000).astype(int)}, X, im, target=1, n=20_000)
