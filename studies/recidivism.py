"""Preclusion study: does clearing the record change a prediction of recidivism, and if not, what is to blame?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from budge import datasets, stats
from budge.audit import audit
from budge.audit.design import Execution
from budge.interaction import InteractionModel
from budge.models import as_predictor
from budge.stress import Ablation, ablate

from .common import Study, compared, lines, model, panels, percent, sideways

TITLE = "Recidivism: predictions that a cleared record does not change"
THRESHOLD, ALPHA, SEED = 0.1, 0.05, 0
MAIN = "LR"

ABOUT = """
A defendant who is predicted to recidivate is *precluded* where hardly anything that they can do (responsiveness below
τ = 0.1), up to clearing their record altogether, makes the prediction *no*. The paper's New York data is restricted; the study runs on
COMPAS, with an interaction model that asks the same question, or with `--data FILE` on your own copy of rearrest_NY.
All reachable points of COMPAS are listed, so that each defendant's responsiveness is exact; the intervals are for the
population of which the defendants are a sample. Then every constraint is relaxed in turn, for those who are precluded.
"""


def run(*, quick: bool = False, path: str | Path | None = None) -> Study:
    """COMPAS, or the reader's own copy of rearrest_NY."""
    data = datasets.compas() if path is None else datasets.rearrest_ny(path)
    return preclusion(data, model("compas" if path is None else "recidivism"), quick=quick)


def preclusion(data: datasets.Dataset, im: InteractionModel, *, quick: bool = False) -> Study:
    """The study on any data with its interaction model: who is fixed under which model, and which constraint holds them."""
    train, test = split(data)
    models = fit(data, train, quick)
    people = np.arange(len(data))[:: 4 if quick else 1]
    asked = {name: as_predictor(m.predict, takes="numpy", classes=[0, 1]) for name, m in models.items()}
    audited = audit(
        asked, data.X.iloc[people], im, target=0, threshold=THRESHOLD, alpha=ALPHA, seed=SEED, harm="below", population="all",
        execution=Execution(check=False),
    )  # everybody, in large blocks; only those predicted to recidivate count below
    found = {name: audited.of_model(name).query("prediction == 1") for name in models}
    fixed = pd.concat(
        [shares(found[name], name, data, people, {"train": train, "test": test}) for name in models], ignore_index=True
    )
    quality = pd.concat(
        [performance(name, data, m, {"train": train, "test": test}) for name, m in models.items()], ignore_index=True
    )
    stuck = precluded(found[MAIN])
    tables = {"fixed_predictions": fixed, "model_performance": quality}
    numbers: dict[str, Any] = {
        "data": data.name, "people": len(people), "fixed": fixed.to_dict("records"), "quality": quality.to_dict("records"),
        "exact": bool((audited.table["method"] == "exact").all()), "precluded": len(stuck), "drivers": [],
    }  # fmt: skip
    figures = {}
    if len(stuck):
        ablation = ablate(
            asked[MAIN], data.X.loc[stuck], im, target=0, threshold=THRESHOLD, alpha=ALPHA, seed=SEED, n=100, population="all",
            execution=Execution(check=False),
        )  # fmt: skip
        ranking = ablation.ranking
        tables["ablation"] = ranking[
            ["relaxation", "kind", "gain", "low", "high", "newly_reachable", "below_before", "below_after"]
        ]
        numbers["drivers"] = ranking.loc[ranking["low"] > 0, ["relaxation", "gain", "newly_reachable"]].to_dict("records")
        figures["ablation"] = figure(ablation)
    return Study("recidivism", TITLE, ABOUT, comparison(numbers), tables, figures, numbers, quick)


def split(data: datasets.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """80 % to train on, 20 % to test on, with the same share of new offences."""
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(np.arange(len(data)), test_size=0.2, stratify=data.y, random_state=SEED)
    return np.sort(train), np.sort(test)


def fit(data: datasets.Dataset, train: np.ndarray, quick: bool) -> dict[str, Any]:
    """Logistic regression, random forest, XGBoost, on plain values."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from xgboost import XGBClassifier

    trees = 25 if quick else 100
    estimators = {
        "LR": LogisticRegression(max_iter=2000),
        "RF": RandomForestClassifier(n_estimators=trees, min_samples_leaf=5, n_jobs=1, random_state=SEED),
        "XGBoost": XGBClassifier(n_estimators=trees, max_depth=4, learning_rate=0.1, n_jobs=1, random_state=SEED),
    }
    values, again = data.X.to_numpy(dtype=float), data.y.to_numpy()
    return {name: e.fit(values[train], again[train]) for name, e in estimators.items()}


def precluded(rows: pd.DataFrame) -> pd.Index:
    """Those shown to be below the threshold."""
    return rows.index[rows["verdict"] == "below"]


def shares(
    rows: pd.DataFrame, name: str, data: datasets.Dataset, people: np.ndarray, samples: dict[str, np.ndarray]
) -> pd.DataFrame:
    """Fixed predictions among all, and among those predicted to recidivate, in both samples and together."""
    found = []
    for sample, which in {**samples, "both": people}.items():
        here = data.X.index[np.intersect1d(which, people)]
        part = rows[rows.index.isin(here)]
        stuck = int((part["verdict"] == "below").sum())
        unsure = int((~part["verdict"].isin(["below", "above"])).sum())
        all_of, of_predicted = (
            stats.interval(stuck, len(here), alpha=ALPHA),
            stats.interval(stuck, max(len(part), 1), alpha=ALPHA),
        )
        found.append(
            {
                "model": name, "sample": sample, "defendants": len(here), "predicted": len(part), "fixed": stuck, "inconclusive": unsure,
                "share_of_predicted": stuck / max(len(part), 1), "low_predicted": float(of_predicted.low), "high_predicted": float(of_predicted.high),
                "share_of_all": stuck / len(here), "low_all": float(all_of.low), "high_all": float(all_of.high),
            }
        )  # fmt: skip
    return pd.DataFrame(found)


def performance(name: str, data: datasets.Dataset, estimator: Any, samples: dict[str, np.ndarray]) -> pd.DataFrame:
    """AUC and error on both samples."""
    from sklearn.metrics import roc_auc_score

    rows = []
    for sample, which in samples.items():
        again, chance = data.y.to_numpy()[which], estimator.predict_proba(data.X.to_numpy(dtype=float)[which])[:, 1]
        said = chance >= 0.5
        rows.append(
            {
                "model": name, "sample": sample, "AUC": float(roc_auc_score(again, chance)), "error": float((said != again).mean()),
                "n": len(which), "predicted": int(said.sum()),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def figure(ablation: Ablation, most: int = 8) -> str:
    """The paper's figure: mean gain of each relaxation, and the distribution of responsiveness after it."""
    ranking = ablation.ranking.dropna(subset=["gain"])
    moves = (ranking["gain"] != 0) | (ranking["kind"] == "immutability")  # these first; what changes nothing fills the rest
    top = pd.concat([ranking[moves], ranking[~moves]]).head(most)
    label = {}
    for name, kind in zip(top["relaxation"], top["kind"]):
        short = ("(I) " if kind == "immutability" else "") + name.removeprefix("free ")
        label[name] = short if len(short) <= 30 else f"{short[:27]}… {len(label) + 1}"
    gains = {label[r]: float(g) for r, g in zip(top["relaxation"], top["gain"])}
    spans = {label[r]: (float(low), float(high)) for r, low, high in zip(top["relaxation"], top["low"], top["high"])}
    before = ablation.cdf()
    curves = {"before": (list(before["rho"]), list(before["share"]))}
    for name in top["relaxation"].head(4):
        after = ablation.cdf(name)
        curves[label[name]] = (list(after["rho"]), list(after["share"]))
    return panels(
        sideways("Gain in responsiveness", "mean gain among those precluded; (I) immutability", gains, spans),
        lines("Responsiveness after each relaxation", "responsiveness ρ", "share of people", curves, stairs=True, bold="before"),
    )


def comparison(numbers: dict[str, Any]) -> pd.DataFrame:
    """The paper's figures beside ours."""
    table = pd.DataFrame(numbers["fixed"]).set_index(["model", "sample"])
    data = "other data: " + ("COMPAS, since rearrest_NY is restricted" if numbers["data"] == "compas" else numbers["data"])
    columns = (
        "; COMPAS has not these columns: its immutable features are age, sex and charge" if numbers["data"] == "compas" else ""
    )
    rows = []
    for name in ("LR", "RF", "XGBoost"):
        row = table.loc[(name, "both")]
        slip = "; the paper's 17.3% is 5,084 of all 29,400 defendants, though it says 'of those predicted to recidivate'"
        rows.append((f"fixed predictions among all defendants, {name}", "17.3%", _share(row, "all"), data + slip))
        rows.append((f"fixed predictions among those predicted to recidivate, {name}", "–", _share(row, "predicted"), data))
    for name in ("LR", "RF", "XGBoost"):
        for sample in ("train", "test"):
            rows.append(
                (
                    f"fixed among those predicted, {name}, {sample}",
                    "the effect generalises",
                    _share(table.loc[(name, sample)], "predicted"),
                    data,
                )
            )
    named = "; ".join(f"{d['relaxation']} ({d['gain']:+.2f})" for d in numbers["drivers"][:5]) or "none"
    rows.append(
        ("what releases fixed predictions (mean gain)", "age_at_release, drug_abuser (figure); female, drug_abuser, alcohol_abuser (text)", named,
         data + columns + "; the paper's caption and text name different features")
    )  # fmt: skip
    return compared(rows)


def _share(row: Any, of: str) -> str:
    return f"{percent(row[f'share_of_{of}'])} ({percent(row[f'low_{of}'])} to {percent(row[f'high_{of}'])})"
