"""Quick runs of the studies: figures that are deterministic are pinned, and the paper's findings as far as they hold here."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from budge import Execution, datasets
from budge.audit import audit

Run = Callable[[str], Any]
Program = Callable[[str], ModuleType]


def here(study: Any, figure: str) -> str:
    rows = study.comparison.set_index("figure")
    return str(rows.loc[figure, "here"])


def test_german_points_and_plan_are_pinned(quick: Run) -> None:
    """200 of the 1000 applicants; all of them reach 182,956 and, with two years a step, 106,752 points (heavy test)."""
    study = quick("german")
    assert study.numbers["points"] == {"table": 38_544, "two years a step": 22_074}
    assert here(study, "smallest n that can certify at τ = 0.1") == "29"
    assert study.numbers["parts"] == 32
    sizes = [(row["n"], row["positive"]) for row in study.numbers["quality"]]
    assert sizes == [(800, 560), (200, 140)] * 2


def test_german_estimates_are_near_and_alarms_rare(quick: Run) -> None:
    for name in ("LR", "XGBoost"):
        curve = quick("german").tables[f"against_n_{name}"].set_index("n")
        assert curve.loc[10, "detection"] == 0, "10 draws cannot certify anybody"
        assert curve.loc[30, "detection"] > 0.6
        assert curve.loc[100, "detection"] > 0.8
        assert (curve["false_alarms"] <= 0.05).all()
        assert curve["error"].is_monotonic_decreasing
        assert curve.loc[30, "error"] < 0.06
        assert curve.loc[100, "error"] < 0.035


def test_german_models_are_as_good_as_printed(quick: Run) -> None:
    quality = quick("german").tables["model_performance"].set_index(["model", "sample"])
    assert quality.loc[("LR", "test"), "AUC"] == pytest.approx(0.806, abs=0.005)
    assert quality.loc[("XGBoost", "test"), "AUC"] > 0.76


def test_bots_cannot_game_but_the_other_way_the_finding_holds(quick: Run) -> None:
    """In the direction of the text nobody is shown to game; in the other, the perturbation check under-reports, as printed."""
    numbers = quick("twitterbot").numbers
    assert numbers["n"] == 59
    bots, humans = (numbers["procedures"][goal] for goal in ("bots pass for humans", "humans taken for bots"))
    assert [row["actual"] for row in bots.values()] == [0.0] * 5
    assert all(weight <= 0 for weight in numbers["same_sign"].values()), "the reason: activity speaks against a human"
    assert humans["Baseline"]["actual"] > 0.9
    assert humans["Convex (ball)"]["reported"] <= 0.1
    assert humans["Convex (ball)"]["actual"] > 0.9
    assert humans["Exact"]["actual"] <= 0.1
    assert humans["Exact"]["reported"] == humans["Exact"]["actual"], "the one product and the audit count the same draws"
    assert 0 < humans["Exact"]["robust"] < humans["Exact"]["total"] / 4
    assert humans["Manual"]["actual"] == 0.0
    assert numbers["under_reported"]["humans taken for bots"]["ball"] > numbers["models"] / 2
    assert numbers["under_reported"]["humans taken for bots"]["convex"] == 0, "what does not hold: the relaxation hides nothing"


def test_all_models_are_asked_about_the_same_draws(program: Program, data_folder: Any) -> None:
    """Hits from one product over all models are those of `budge.audit`, model by model."""
    twitterbot = program("twitterbot")
    X, y = datasets.twitterbot().X, datasets.twitterbot().y
    pool = twitterbot.fit(X.to_numpy(dtype=float), y.to_numpy(), 3, 200)
    im, people = twitterbot.model("twitterbot"), X.iloc[:40]
    hits = twitterbot.counts(pool, people, im, 59)
    assert hits.shape == (40, 10)
    for k in (0, 5):
        one = audit(pool.one(k), people, im, target=1, threshold=0.05, claim="above", n=59, method="sample", population="all", execution=Execution(check=False))
        assert one.table["hits"].tolist() == hits[:, k].tolist()
    assert 0 < hits.sum() < hits.size * 59


@pytest.mark.filterwarnings("ignore:'penalty' was deprecated:FutureWarning")
def test_the_solver_finds_the_optimum_of_scikit_learn(program: Program) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 5)) * [1, 5, 100, 0.1, 1]
    y = (X @ [1, -0.2, 0.01, 0, 0] + rng.logistic(size=400) > 0).astype(int)
    pool = program("twitterbot").fit(X, y, 4, 3000)
    Z = StandardScaler().fit_transform(X)
    for k in range(1, len(pool), 5):
        strength, share = pool.penalties[k]
        reference = LogisticRegression(
            penalty="elasticnet", solver="saga", l1_ratio=share, C=1 / (strength * len(X)), max_iter=20_000, tol=1e-8
        ).fit(Z, y)
        assert pool.weights[:, k] * X.std(axis=0) == pytest.approx(reference.coef_[0], abs=2e-3)


def test_compas_has_fixed_predictions_and_age_is_to_blame(quick: Run) -> None:
    study = quick("recidivism")
    assert study.numbers["exact"]
    rows = {(row["model"], row["sample"]): row for row in study.numbers["fixed"]}
    assert rows["LR", "both"]["defendants"] == 1543
    assert rows["LR", "both"]["fixed"] == pytest.approx(43, abs=2)
    for (_, sample), row in rows.items():
        assert row["low_predicted"] <= row["share_of_predicted"] <= row["high_predicted"]
        assert row["share_of_all"] < row["share_of_predicted"]
        assert sample != "both" or row["low_all"] > 0.01, "fixed predictions exist under every model"
    assert [d["relaxation"] for d in study.numbers["drivers"]] == ["free age"]
    assert study.numbers["drivers"][0]["newly_reachable"] == study.numbers["precluded"]


def test_rearrest_ny_runs_on_simulated_rows(program: Program) -> None:
    """The restricted data's columns and rules, on made-up rows; age is what they were made to depend on."""
    recidivism = program("recidivism")
    study = recidivism.preclusion(datasets.simulate_rearrest_ny(n=600, seed=1), recidivism.model("recidivism"), quick=True)
    assert study.numbers["precluded"] > 0
    assert study.numbers["drivers"][0]["relaxation"] == "free age_at_release"
    assert {"fixed_predictions", "ablation"} <= set(study.tables)
    assert "rearrest_ny_simulated" in study.comparison["why they differ"].iloc[0]


def test_rearrest_ny_reads_the_readers_copy(program: Program, tmp_path: Any) -> None:
    made = datasets.simulate_rearrest_ny(n=400, seed=2)
    made.X.assign(rearrest=made.y).to_csv(tmp_path / "mine.csv", index=False)
    study = program("recidivism").run(quick=True, path=tmp_path / "mine.csv")
    assert study.numbers["people"] == 100


def test_the_default_patient_is_pinned(quick: Run) -> None:
    assert quick("transplant").numbers["default"] == {"need": 1387.112, "utility": 1595.993, "tbs": 208.881}


def test_thirty_draws_cannot_flag_anybody(quick: Run) -> None:
    numbers = quick("transplant").numbers
    assert numbers["n"] == {"printed": 30, "one model": 299, "three models, Holm": 408}
    assert numbers["smallest_p_printed"] == pytest.approx(0.99**30)
    assert "at least 299" in numbers["refused"]
    assert numbers["flagged"]["printed"] == 0
    assert numbers["no_hit_printed"] > 0, "though there are patients without a single hit"
    assert numbers["flagged"]["299"] == 0, "Holm over three models asks for more than 299"
    assert numbers["rejected_alone"]["deterministic"] > 0, "while each model alone rejects"
    assert numbers["flagged"]["408"] > 0


def test_violations_are_in_the_young_and_the_old(quick: Run) -> None:
    numbers = quick("transplant").numbers
    for ages in (numbers["by_age"], numbers["some_by_age"]):
        assert ages["40 to 59"] < min(ages["under 40"], ages["60 and over"])
    assert numbers["by_age"]["40 to 59"] == 0.0
    assert numbers["some_by_age"]["under 40"] == 1.0, "the paper's 99.9%, if it counts violations above τ"
    assert (
        numbers["some_alone"]["random effects"] < 0.2 < min(numbers["some_alone"][m] for m in ("deterministic", "causal effects"))
    )
