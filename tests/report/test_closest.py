"""Who comes closest to the target: by every output of every point, listed or drawn, and only where the outputs decide."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import budge
from budge import Feature, InteractionModel, targets
from budge.audit.ask import points_of
from budge.audit.cases import cases_of
from budge.models import as_predictor
from budge.report import outputs
from budge.report.cases import cases, rule
from budge.report.outputs import nearest
from budge.wording import Wording

RNG = np.random.default_rng(5)
PEOPLE = pd.DataFrame({
    "a": RNG.integers(0, 6, 40), "b": RNG.integers(0, 5, 40), "far": RNG.random(40), "r": RNG.random(40).round(3),
}, index=[f"p{k}" for k in range(40)])  # fmt: skip
LISTED = InteractionModel([
    Feature("a", "integer", bounds=(0, 5), direction="increase"), Feature("b", "integer", bounds=(0, 4), max_increase=2),
    Feature("far", "real", actionable=False), Feature("r", "real", actionable=False),
])  # fmt: skip
DRAWN = InteractionModel([*LISTED.features[:3], Feature("r", "real", bounds=(0, 1), max_increase=0.2)])


def chance(table: Any) -> Any:
    """Return a probability of 1 that also falls in b, so that the best point is rarely an end."""
    x = np.asarray(table, dtype=float)
    return np.clip(0.05 * x[:, 0] - 0.04 * (x[:, 1] - 2) ** 2 + 0.8 * x[:, 2] + 0.1 * x[:, 3], 0, 1)


class Model:
    """A classifier that gives 1 where its probability is above `cut`: one half, or another as a tuned one has it."""

    classes_ = np.array([0, 1])

    def __init__(self, cut: float = 0.5) -> None:
        self.cut, self.asked = cut, 0

    def predict_proba(self, table: Any) -> Any:
        self.asked += len(table)
        return np.stack([1 - chance(table), chance(table)], axis=1)

    def predict(self, table: Any) -> Any:
        return (chance(table) > self.cut).astype(int)


WAYS: dict[str, tuple[Callable[[], Any], Any, Callable[[Any], Any]]] = {  # model, target, what is to be large
    "labels": (Model, 1, chance),
    "the other label": (Model, 0, lambda table: -chance(table)),
    "a threshold": (lambda: as_predictor(Model(), threshold=0.6), 1, chance),
    "below a threshold": (lambda: as_predictor(Model(), threshold=0.3), 0, lambda table: -chance(table)),
    "scores": (lambda: as_predictor(Model(), output="probability"), targets.interval(low=0.7), chance),
    "low scores": (lambda: as_predictor(Model(), output="probability"), targets.interval(high=0.1), lambda table: -chance(table)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["listed", "drawn"])
def test_the_person_without_a_way_is_the_one_whose_best_output_is_closest(way: str, kind: str, tmp_path: Path) -> None:
    make, target, large = WAYS[way]
    audit = budge.audit(make(), PEOPLE, LISTED if kind == "listed" else DRAWN, target=target, n=50, seed=3)
    table = audit.table
    stuck = table.index[(table["hits"] == 0) & (table["method"] == ("exact" if kind == "listed" else "sample"))]
    best = pd.Series({who: large(points_of(audit, who).rows).max() for who in stuck})
    assert len(stuck) > 2
    assert best.nlargest(2).diff().iloc[1] < 0  # one is closest
    case = cases_of(audit, "model", None)[0]
    assert case.kind == ("No way at all" if kind == "listed" else "No hit among the draws")
    assert audit.rows["model"].index[case.at] == best.idxmax()
    others = cases(audit, "model", {}, Wording())
    usual = case.at == int(np.argmax(np.where(table.index.isin(stuck), table["n"], 0)))
    assert ("whose best output is closest to the target" in rule(audit, "model", others)) == (not usual)
    run = budge.Audit.load(audit.save(tmp_path / "run"))  # has no model, and shows whom it had when it was saved
    assert [(k.kind, k.at) for k in cases_of(run, "model", audit.context.im)] == [(k.kind, k.at) for k in cases_of(audit, "model", None)]  # type: ignore[union-attr]
    assert rule(run, "model", cases(run, "model", {}, Wording(), audit.context.im)) == rule(audit, "model", others)  # type: ignore[union-attr]


def test_of_many_people_those_with_the_most_points_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "MOST_COMPARED", 150)
    audit = budge.audit(Model(), PEOPLE, LISTED, target=1)
    none = audit.table[audit.table["extreme"] == "none"].sort_values("n", ascending=False, kind="stable")
    few = none[none["n"].cumsum() <= 150]
    assert 1 < len(few) < len(none)
    best = pd.Series({who: chance(points_of(audit, who).rows).max() for who in few.index})
    found = cases(audit, "model", {}, Wording())
    assert found[0]["label"] == best.idxmax()
    assert f"closest to the target, of {len(few)} who were compared;" in rule(audit, "model", found)


@pytest.mark.parametrize("why", ["too many points", "no numbers", "another cut", "an address"])
def test_where_outputs_cannot_be_compared_it_is_the_person_with_the_most_points(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = {"no numbers": Model().predict, "another cut": Model(0.3)}.get(why, Model())
    if why == "too many points":
        monkeypatch.setattr(outputs, "MOST_COMPARED", 1)
        monkeypatch.setattr(outputs, "MOST_CLOSE", 1)
    if why == "an address":
        monkeypatch.setattr(outputs, "Endpoint", type(as_predictor(model)))
    audit = budge.audit(model, PEOPLE, LISTED, target=1)
    at = np.flatnonzero(audit.table["extreme"] == "none")
    assert nearest(audit, "model", at) is None
    case = cases_of(audit, "model", None)[0]
    assert audit.table["n"].iloc[case.at] == audit.table["n"].iloc[at].max()
    told = "without a way (or without a hit), the person with the most points; the lowest"
    assert rule(audit, "model", cases(audit, "model", {}, Wording())).startswith(told)


def test_the_points_of_all_are_asked_about_once() -> None:
    model = Model()
    audit = budge.audit(model, PEOPLE, LISTED, target=1)
    at = np.flatnonzero(audit.table["extreme"] == "none")
    first = nearest(audit, "model", at)
    asked = model.asked
    assert first is nearest(audit, "model", at)
    assert model.asked == asked


def test_a_run_is_saved_though_its_model_fails_then(tmp_path: Path) -> None:
    class Failing(Model):
        down = False

        def predict_proba(self, table: Any) -> Any:
            if self.down:
                raise SystemExit("gone")
            return super().predict_proba(table)

    model = Failing()
    audit = budge.audit(model, PEOPLE, LISTED, target=1)
    model.down = True
    assert budge.Audit.load(audit.save(tmp_path / "run")).table.equals(audit.table)
    assert cases(audit, "model", {}, Wording())[0]["best"] == ""


def test_numbers_that_do_not_decide_the_labels_are_not_shown() -> None:
    """A tuned classifier cuts elsewhere: people without a way are all below one half, and one half is not what the target needs."""
    tuned = budge.audit(Model(0.3), PEOPLE, LISTED, target=1)
    stuck = cases(tuned, "model", {}, Wording())[0]
    assert (stuck["kind"], stuck["best"], stuck["chart"]) == ("No way at all", "", None)
    plain = cases(budge.audit(Model(), PEOPLE, LISTED, target=1), "model", {}, Wording())[0]
    assert plain["best"].endswith("the target needs more than 0.500.")
    assert plain["chart"] is not None


@pytest.mark.parametrize("cut", [0.5, 100.0, 10_000.0, -0.5])
def test_an_output_never_reads_as_a_cut_that_it_does_not_reach(cut: float) -> None:
    for near in (1e-5, 1e-4, 1e-3, 0.1):
        value = cut - near * abs(cut)
        for told in (outputs.Scores(np.array([value]), cut).text(value, large) for large in (10, 1000)):
            assert float(told.replace(",", "").replace("−", "-")) < cut
    grid = InteractionModel([Feature("a", "integer", bounds=(0, 1)), Feature("b", "integer", bounds=(0, 1))])
    found = as_predictor(lambda t: 0.4 + 0.0997 * t["a"].to_numpy() - 0.1 * t["b"].to_numpy(), output="score")
    audit = budge.audit(found, pd.DataFrame({"a": [0], "b": [0]}), grid, target=targets.interval(low=0.5))
    texts = [cell["text"] for line in cases(audit, "model", {}, Wording())[0]["table"] for cell in line if cell["key"]]
    assert "0.4997" in texts
    assert "0.500" not in texts
