"""Quick runs of the studies: figures that are deterministic are pinned, and the paper's findings as far as they hold here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from budge import Execution, datasets
from budge.audit import audit
from budge.cli import main

Run = Callable[[str], Any]
Program = Callable[[str], ModuleType]
DOCS = Path(__file__).resolve().parents[2] / "docs" / "studies"


def here(study: Any, figure: str) -> str:
    rows = study.comparison.set_index("figure")
    return str(rows.loc[figure, "here"])


@pytest.mark.parametrize("name", ["overview", "german", "twitterbot", "recidivism", "transplant", "sorrybench"])
def test_every_difference_has_one_reason_that_a_run_tests(quick: Run, name: str) -> None:
    study = quick(name)
    reasons = study.tables.get("reasons", pd.DataFrame(columns=["reason", "tested by", "result"], dtype=str))  # none where nothing differs
    assert (reasons[["reason", "tested by", "result"]] != "").all(axis=None)
    assert reasons["result"].str.contains(r"\d", regex=True).all(), "the result of a run is a number"
    table = study.comparison
    differ = table[(table["paper"] != table["here"]) & (table["paper"] != "–")]
    assert set(differ["why they differ"]) <= set(reasons["reason"])


def test_german_points_and_plan_are_pinned(quick: Run) -> None:
    """200 of the 1000 applicants; all of them reach 182,956 and, with two years per step, 106,752 points (heavy test)."""
    study = quick("german")
    assert study.numbers["points"] == {"table": 38_544, "two years per step": 22_074}
    assert here(study, "smallest n that can certify at τ = 0.1") == "29"
    assert (study.numbers["parts"], study.numbers["actionable"], study.numbers["mutable"]) == (32, 9, 10)
    curve = study.tables["against_n"].set_index("n")
    assert curve.loc[10, "detection"] == 0, "10 draws cannot certify anybody"
    assert curve["error"].is_monotonic_decreasing
    assert (curve["false_alarms"] <= 0.05).all()


def test_the_authors_split_and_search_give_the_printed_model_table(quick: Run) -> None:
    study = quick("german")
    table = study.comparison[study.comparison["figure"].str.contains("LR, t|XGBoost, t")]
    table = table[~table["figure"].str.contains("scaled once")]
    assert len(table) == 32
    differ = table.loc[table["paper"] != table["here"], "figure"].tolist()
    assert set(differ) <= {"AUC, LR, test", "AUC, XGBoost, test", "n_clf_pos, XGBoost, test", "n_clf_neg, XGBoost, test"}
    assert study.numbers["chosen"]["booster"] == "gblinear", "the model that the paper calls XGBoost is linear"
    assert here(study, "n_clf_pos, LR, train") == "738", "scaled twice"
    assert study.numbers["once"] == pytest.approx(612, abs=2), "scaled once"
    wrong = study.numbers["wrong"]
    assert sum(wrong.values()) == 46, "23 % of 200"
    assert (140 + wrong["positive"] - wrong["negative"], 140 + wrong["negative"] - wrong["positive"]) == (160, 120), "the printed count, exchanged"


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("german", "parts with several features, of the table"),
        ("twitterbot", "parts with several features, of the table"),
        ("recidivism", "parts with several features, of the model of the restricted data"),
        ("transplant", "parts with several features, of the table: structural model"),
    ],
)
def test_the_partition_is_that_of_the_papers_table(quick: Run, name: str, row: str) -> None:
    at = quick(name).comparison.set_index("figure").loc[row]
    assert at["here"] == at["paper"] != ""


def test_the_chance_of_no_false_alarm_is_that_of_no_empty_sample(program: Program) -> None:
    """With 30 draws only somebody without a hit is certified; who is not responsive raises no alarm."""
    truth = pd.DataFrame({"rho": [0.0, 0.09, 0.1, 0.2, 1.0]})
    assert program("german").no_alarm(truth, 30) == pytest.approx((1 - 0.9**30) * (1 - 0.8**30))
    assert program("german").no_alarm(truth, 10) == 1, "ten draws certify nobody"


def test_the_list_of_the_paper_is_put_beside_the_rules_that_are_used(quick: Run, program: Program) -> None:
    twitterbot = program("twitterbot")
    im = twitterbot.model("twitterbot")
    assert twitterbot.worded(im) == {"active": ">= 1", "link": "<= 1"}
    X = datasets.twitterbot().X
    account = X[(X["num_tweets"] >= 1)].iloc[0]
    link = next(c for c in twitterbot.at_least(im).constraints if c.kind == "directional_linkage")
    assert link.relation == ">="
    drawn = twitterbot.at_least(im).sample(account, n=50, seed=1).points
    assert (drawn["urls_count"] - account["urls_count"] >= drawn["num_tweets"] - account["num_tweets"]).all()
    assert all(count > 100 for count in quick("twitterbot").numbers["single"].values()), "'> 1' makes these accounts invalid starts"


def test_the_variant_gives_the_finding_and_the_printed_table_does_not(quick: Run) -> None:
    study = quick("twitterbot")
    assert study.numbers["n"] == 59
    printed = study.tables["as_printed"]
    assert (printed["actual"] == 0).all()
    assert study.numbers["most"] == 0, "no detected bot is shown to game any model"
    weights = study.numbers["weights"]
    assert all(weights.get(f"num_{what}", 0) <= 0 for what in ("tweets", "retweets", "replies")), "the reason: activity weighs against a human"
    assert weights["urls_count"] <= 0
    assert weights["no_replies"] < 0 < weights["age_of_account>=180_days"], "what helps is named, too: a first reply, an older account"
    assert (study.numbers["limited"], study.numbers["moved"]) == (0.0, 0.0), "neither change alone lets a bot game the best model"
    variant = study.tables["variant"].set_index(["procedure", "sample"])
    assert variant.loc[("Convex", "test"), "reported"] < 0.05 < variant.loc[("Convex", "test"), "actual"], "the check reports next to nothing"
    assert variant.loc[("Exact", "test"), "actual"] < variant.loc[("Baseline", "test"), "actual"]
    assert (variant.loc["Manual", "actual"] == 0).all()
    assert not study.comparison["figure"].str.contains("taken for bots").any(), "one direction only"
    full = dict(pd.read_csv(DOCS / "twitterbot.csv")[["figure", "here"]].to_numpy().tolist())  # a heavy test runs it
    share = {name: float(full[f"variant, {name}: actual gaming"].rstrip("%")) for name in ("Baseline", "Convex", "Exact")}
    assert 55 <= share["Baseline"] <= 66
    assert (full["variant, Convex: reported gaming"], share["Convex"] > 55) == ("0.0%", True)
    assert share["Exact"] <= 13


def test_the_reading_as_printed_has_the_parts_that_the_table_numbers(program: Program) -> None:
    twitterbot = program("twitterbot")
    im = twitterbot.variant(twitterbot.model("twitterbot"), sources=False, step=None)
    ages = [f.name for f in im.features if f.name.startswith("age")]
    assert all((name,) in im.partition for name in ages), "each age dummy is a part of its own in the paper's table"
    assert not any(name.startswith("source") for name in im.moving)
    assert {f.max_increase for f in im.features} == {None}


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


def test_age_leads_the_ablation_and_compas_has_one_bar(quick: Run) -> None:
    study = quick("recidivism")
    assert study.numbers["exact"]
    assert (study.numbers["people"], study.numbers["features"]) == (1445, 16)
    gains = [(d["relaxation"], d["gain"]) for d in study.numbers["drivers"]]
    assert gains[0][0] == "free age_at_release"
    assert len(gains) >= 5
    assert study.figures["ablation"].count("<rect") >= 5
    assert [d["relaxation"] for d in study.numbers["compas"]["drivers"]] == ["free age"]
    for row in study.numbers["fixed"]:
        assert row["low_predicted"] <= row["share_of_predicted"] <= row["high_predicted"]
        assert row["share_of_all"] < row["share_of_predicted"]


def test_the_printed_switch_restricts_nobody_who_has_a_record(quick: Run, program: Program) -> None:
    study = quick("recidivism")
    assert study.numbers["precondition"] == {"record": 628, "applies": 0}
    recidivism = program("recidivism")
    X, im = datasets.north_carolina().X, recidivism.model("north_carolina")
    someone = X[X["priors>=5"] == 1].iloc[0]
    held, part = (len(m.enumerate(someone).points) for m in (im, recidivism.partial(im, "north_carolina")))
    work = 2 - int(someone["work_programme"])
    assert (held, part) == (2 * work, 4 * work), "all or nothing; in part: five or more, two to four, one, none"
    assert study.numbers["partial"]["points"] > study.numbers["points"]


def test_the_papers_shares_and_forest_are_put_to_arithmetic(quick: Run) -> None:
    study = quick("recidivism")
    row = "fixed predictions among those predicted, as the text has it: the paper's own numbers"
    assert here(study, row) == "46.9% of LR's 10,848, 25.7% of RF's 19,758"
    auc = {name: at["AUC"] for name, at in study.numbers["leak"].items()}
    assert auc["oversampled after the split"] < 0.8 < auc["oversampled before the split"] < 0.99 < auc["test rows seen"], "the paper prints 0.999"
    assert 2 * -(-39_532 // 10) == 7_908, "the printed test sample: the larger one of five folds of both classes"
    assert "39,532 rows" in study.reasons["rows"].result
    assert study.reasons["size"].result == "80.0% of 29,400 in the paper, 80.0% of 1,445 here"


@pytest.mark.parametrize("name", ["compas", "recidivism"])
def test_partial_clearing_keeps_starts_valid(program: Program, data_folder: Any, name: str) -> None:
    recidivism = program("recidivism")
    data = datasets.compas() if name == "compas" else datasets.simulate_rearrest_ny(n=300, seed=1)
    im = recidivism.partial(recidivism.model(name), name)
    people = data.X.iloc[:: max(1, len(data) // 60)]
    assert [problem for _, x in people.iterrows() for problem in im.broken(x)] == []
    assert all(len(im.enumerate(x).points) >= 1 for _, x in people.iterrows())


def test_rearrest_ny_runs_on_simulated_rows(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    """The restricted data's columns and rules, on made-up rows; age is what they were made to depend on."""
    study = program("recidivism").run(quick=True, simulated=True)
    assert study.numbers["data"] == "rearrest_ny_simulated"
    assert study.numbers["precluded"] > 0
    assert study.numbers["drivers"][0]["relaxation"].startswith("free age")
    assert {"fixed_predictions", "ablation"} <= set(study.tables)
    page = study.page()
    assert "budge study recidivism --simulated --out" in page
    assert not any(other in page for other in ("1,445 prisoners", "COMPAS", "other data with other columns", "is restricted, and the figure"))
    assert main(["study", "german", "--simulated"]) == 2
    assert "recidivism" in capsys.readouterr().err


def test_rearrest_ny_reads_the_readers_copy(program: Program, tmp_path: Any) -> None:
    made = datasets.simulate_rearrest_ny(n=400, seed=2)
    made.X.assign(rearrest=made.y).to_csv(tmp_path / "mine.csv", index=False)
    study = program("recidivism").run(quick=True, path=tmp_path / "mine.csv")
    assert study.numbers["people"] == 400
    assert "compas" not in study.numbers
    page = study.page()
    assert "budge study recidivism --data FILE --out" in page
    assert not any(other in page for other in ("1,445 prisoners", "COMPAS", "is restricted", "simulated"))


def test_the_default_patient_is_pinned(quick: Run) -> None:
    assert quick("transplant").numbers["default"] == {"need": 1387.112, "utility": 1595.993, "tbs": 208.881}


def test_thirty_draws_cannot_flag_anybody(quick: Run) -> None:
    numbers = quick("transplant").numbers
    assert numbers["n"] == {"printed": 30, "one model": 299, "three models, Holm": 408}
    assert numbers["printed"]["smallest_p"] == pytest.approx(0.99**30)
    assert "at least 299" in numbers["refused"]
    assert numbers["printed"]["flagged"] == 0
    assert numbers["printed"]["no_hit"] > 0, "though there are patients without a single hit"
    assert numbers["flagged"]["299"] == 0, "Holm over three models asks for more than 299"
    assert numbers["flagged"]["408"] > 0


def test_certifying_violations_above_the_threshold_gives_the_printed_rates(program: Program, data_folder: Any) -> None:
    """Nothing is trained here: the full run is short, and six cohorts lie within the ranges, each of them."""
    study = program("transplant").run()
    cohorts = study.tables["cohorts"]
    assert len(cohorts) == 6
    for age, low, high in (("under 40", 0.96, 0.991), ("40 to 59", 0.08, 0.13), ("60 and over", 0.69, 0.80)):
        assert cohorts[age].between(low, high).all()
    draws = study.tables["draws"]
    assert (draws["seed"].nunique(), len(draws)) == (4, 24)
    assert draws.query("seed == 0")["under 40"].tolist() == cohorts["under 40"].tolist()
    assert draws.groupby("seed")["60 and over"].mean().between(0.72, 0.77).all(), "the means hold with other draws"
    alone = study.numbers["alone"]
    assert alone["random effects"] < 0.13 < 0.5 < min(alone["deterministic"], alone["causal effects"])
    assert study.numbers["least_group"] == 667, "99.9 % needs so many people"
    assert cohorts["under 40"].max() < 0.995 < study.numbers["worded"]["under 39"]["most"] == 1, "what the reason for 99.9 % states"
    assert study.numbers["worded"]["over 60"]["least"] < 0.745, "the printed 74 %"
    kept = pd.read_csv(DOCS / "transplant.csv", keep_default_na=False)
    assert kept["here"].tolist() == study.comparison["here"].tolist()
