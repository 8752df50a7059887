"""Preclusion study: does clearing the record change a prediction of recidivism, and if not, what is to blame?"""

from __future__ import annotations

from dataclasses import dataclass
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

from .charts import lines, panels, sideways
from .common import Reason, Study, compared, joined, limits, model, percent, source

TITLE = "Recidivism: predictions that a cleared record does not change"
THRESHOLD, ALPHA, SEED = 0.1, 0.05, 0
YEARS = 3  # of the restricted and of the North Carolina data; two in COMPAS
MAIN, MODELS = "LR", ("LR", "RF", "XGBoost")
SPECS = {"north_carolina": "north_carolina", "compas": "compas", "rearrest_ny": "recidivism", "rearrest_ny_simulated": "recidivism"}
#: The features of a record of which one is on, where it is cleared in part: nothing, one offence, more.
COUNTS = {
    "north_carolina": ("no_priors", "priors=1", "priors>=2", "priors>=5"),
    "compas": ("no_record", "priors=1", "priors>=2", "priors>=5"),
    "recidivism": ("no_prior_arrests", "prior_arrests=1", "prior_arrests>=2", "prior_arrests>=5"),
}
#: The paper's table of model performance: train, test.
PRINTED = {
    "RF": {"log loss": ("0.020", "0.043"), "AUC": ("1.000", "0.999"), "ECE": ("0.0%", "0.0%"), "error": ("0.0%", "1.3%"), "n": ("31624", "7908"),
           "n_clf_pos": ("15827", "3931"), "n_clf_neg": ("15797", "3977")},
    "LR": {"log loss": ("0.614", "0.617"), "AUC": ("0.702", "0.696"), "ECE": ("10.0%", "10.0%"), "error": ("33.3%", "34.5%"), "n": ("23520", "5880"),
           "n_clf_pos": ("8642", "2206"), "n_clf_neg": ("14878", "3674")},
}  # fmt: skip
DEFENDANTS, FIXED = 29_400, 5_084
JOINED = (
    "prior_arrests=1 + prior_arrests>=2 + prior_arrests>=5 + no_prior_arrests + time_served<=1_year + time_served_g_1_year + time_served_g_2_years + "
    "time_served_g_5_years + prior_arrests_for_misdemeanor + prior_arrests_for_felony + prior_arrests_for_general_violence + any_prior_prb_or_fine; "
    "age_<_16 + age_16_to_19 + age_19_to_23 + age_23_to_27 + age_27_to_30 + age_30_to_35 + age_35_to_40 + age_40_to_45 + age_>_45"
)

ABOUT = """
A defendant who is predicted to recidivate is *precluded* where hardly anything that they can do (responsiveness below τ = 0.1), up to clearing their record
altogether, makes the prediction *no*. {lead} All reachable points are listed, so that each person's responsiveness is exact; the intervals are for the
population of which these people are a sample. Then every constraint is relaxed in turn, for those who are precluded.

The switch as printed clears all of the record or nothing. Its precondition (the targets are zero where the switch is on) fails for all people who have a
record, so that it restricts nobody; this study therefore uses the switch without the precondition. *Partial clearing*, "decrease toward zero" in the
paper's text, is a variant. Calibration errors are rounded to one digit, as in the paper's table: 0.0519 stands as 10.0 %; the table of model performance
below has them in full.
"""
#: What the page states of its data: public data, the reader's own, or simulated rows.
LEADS = {
    "public": """The paper's New York data is restricted. **The study leads with public data of the same kind**: 1,445 prisoners
released in North Carolina, with priors, drugs, alcohol, time served, a work programme and age; the outcome is a return within three years. COMPAS stands
beside it. With `--data FILE` the study runs on your own copy of rearrest_NY, with `--simulated` on made-up rows of its columns.""",
    "own": "**This run is on a copy of the paper's New York data**, given by `--data`.",
    "simulated": """The paper's New York data is restricted. **This run is on simulated rows with its columns**: its numbers show
that the program runs on such data, and are properties of the simulation, not of people.""",
}


@dataclass(frozen=True)
class Found:
    """The study on one data set: tables, the ablation of those who are precluded, and the numbers."""

    data: datasets.Dataset
    fixed: pd.DataFrame
    quality: pd.DataFrame
    ablation: Ablation | None
    numbers: dict[str, Any]

    def at(self, name: str, sample: str = "both") -> Any:
        """Return the row of a model and sample."""
        return self.fixed[(self.fixed["model"] == name) & (self.fixed["sample"] == sample)].iloc[0]

    def share(self, name: str, sample: str = "both", of: str = "predicted") -> str:
        """Return a share of fixed predictions with its interval."""
        row = self.at(name, sample)
        return f"{percent(row[f'share_of_{of}'])} ({percent(row[f'low_{of}'])} to {percent(row[f'high_{of}'])})"

    def drivers(self, most: int = 5) -> str:
        """Return what releases fixed predictions, by mean gain."""
        return "; ".join(f"{d['relaxation'].removeprefix('free ')} ({d['gain']:+.2f})" for d in self.numbers["drivers"][:most]) or "none"


def run(*, quick: bool = False, path: str | Path | None = None, simulated: bool = False) -> Study:
    """Run on North Carolina with COMPAS beside it, or on rearrest_NY: the reader's own copy, or simulated rows."""
    if simulated:
        data = datasets.simulate_rearrest_ny(n=1000 if quick else 5000, seed=SEED)
    else:
        data = datasets.north_carolina() if path is None else datasets.rearrest_ny(path)
    im = model(SPECS[data.name])
    found = preclusion(data, im, quick=quick)
    part = preclusion(data, partial(im, SPECS[data.name]), quick=quick, only=True)
    beside = preclusion(datasets.compas(), model("compas"), quick=quick) if path is None and not simulated else None
    numbers: dict[str, Any] = {**found.numbers, "partial": part.numbers, "precondition": precondition(im, data.X), "leak": leaks(data, quick)}
    tables = {"fixed_predictions": found.fixed, "model_performance": found.quality, "fixed_predictions_partial_clearing": part.fixed}
    figures, others = {}, [found]
    if found.ablation is not None:
        tables["ablation"] = ranked(found.ablation)
        figures["ablation"] = figure(found.ablation)
    if beside is not None:
        numbers["compas"] = beside.numbers
        tables |= {"compas_fixed_predictions": beside.fixed, "compas_model_performance": beside.quality}
        if beside.ablation is not None:
            tables["compas_ablation"], figures["compas_ablation"] = ranked(beside.ablation), figure(beside.ablation)
        made_up = datasets.simulate_rearrest_ny(n=1000 if quick else 5000, seed=SEED)
        others = [found, beside, preclusion(made_up, model("recidivism"), quick=quick, only=True)]
    reasons = explained(numbers, found, beside, others)
    origins = tuple(source(f.data) for f in (found, beside) if f is not None)
    lead, options = ("simulated", " --simulated") if simulated else ("public", "") if path is None else ("own", " --data FILE")
    return Study(
        "recidivism", TITLE, ABOUT.format(lead=LEADS[lead]), comparison(numbers, found, part, beside, reasons), tables, figures, numbers, quick, origins,
        reasons, options=options,
    )  # fmt: skip


def partial(im: InteractionModel, name: str) -> InteractionModel:
    """Return the model in which a record can be cleared in part: no switch, and one of "none", "one" and "two or more" is on."""
    none, one, more, five = COUNTS[name]
    spec = im.to_spec()
    (switch,) = (c["switch"] for c in spec["constraints"] if "switch" in c)
    spec["features"][one].pop("direction")
    spec["constraints"] = [c for c in spec["constraints"] if "switch" not in c]
    flags = [t for t in switch["targets"] if t not in (one, more, five)] if name == "compas" else []
    # somebody with juvenile offences alone has neither "none" nor a prior
    some = {"coefficients": dict.fromkeys([none, one, more, *flags], 1), "relation": ">=", "constant": 1}
    spec["constraints"] += [{"linear": some}, {"one_hot": {"features": [none, one, more], "relation": "<="}}]
    spec["constraints"] += [{"if_then": {"if": f"`{five}` == 1", "then": f"`{more}` == 1"}}]
    spec["constraints"] += [{"if_then": {"if": f"before.`{none}` == 0 and before.`{one}` == 0 and before.`{more}` == 0", "then": f"`{one}` == 0"}}]
    return InteractionModel.from_spec({**spec, "name": f"{im.name}, in part"})


def precondition(im: InteractionModel, X: pd.DataFrame) -> dict[str, int]:
    """Return how many people have a record, and for how many of them the paper's precondition adds the switch."""
    (switch,) = (c for c in im.constraints if c.kind == "switch")
    on = X.query(switch.when, engine="python")
    return {"record": len(on), "applies": int((on[list(switch.targets)] == 0).all(axis=1).sum())}


def leaks(data: datasets.Dataset, quick: bool) -> dict[str, dict[str, float]]:
    """Return what a random forest shows on its test sample: as it is, with the smaller class oversampled after or before the split, and with test rows seen."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.metrics import log_loss, roc_auc_score
    from sklearn.model_selection import StratifiedKFold

    train, test = split(data)
    X, y, rng = data.X.to_numpy(dtype=float), data.y.to_numpy(), np.random.default_rng(SEED)

    def balanced(which: np.ndarray) -> np.ndarray:
        small, large = sorted((which[y[which] == k] for k in (0, 1)), key=len)
        return np.concatenate([large, small, rng.choice(small, len(large) - len(small))])

    samples = {"plain": (train, test), "oversampled after the split": (balanced(train), balanced(test)), "test rows seen": (np.arange(len(y)), test)}
    every = balanced(np.arange(len(y)))
    some, others = next(StratifiedKFold(5, shuffle=True, random_state=SEED).split(every, y[every]))
    samples["oversampled before the split"] = every[some], every[others]
    found = {}
    for name, (some, others) in samples.items():
        forest = RandomForestClassifier(n_estimators=50 if quick else 200, n_jobs=1, random_state=SEED).fit(X[some], y[some])
        chance = forest.predict_proba(X[others])[:, 1]
        found[name] = {
            "AUC": float(roc_auc_score(y[others], chance)), "log loss": float(log_loss(y[others], chance)),
            "error": float(((chance >= 0.5) != y[others]).mean()),
        }  # fmt: skip
    return found


def ranked(ablation: Ablation) -> pd.DataFrame:
    """Return the relaxations by gain."""
    return ablation.ranking[["relaxation", "kind", "gain", "low", "high", "newly_reachable", "below_before", "below_after"]]


def preclusion(data: datasets.Dataset, im: InteractionModel, *, quick: bool = False, only: bool = False) -> Found:
    """Return who is fixed under which model and, unless `only` that is wanted, which constraint holds them."""
    train, test = split(data)
    models = fit(data, train, quick)
    people = np.arange(len(data))[:: 4 if quick and len(data) > 2000 else 1]
    asked = {name: as_predictor(m.predict, takes="numpy", classes=[0, 1]) for name, m in models.items()}
    audited = audit(
        asked, data.X.iloc[people], im, target=0, threshold=THRESHOLD, alpha=ALPHA, seed=SEED, harm="below", population="all",
        execution=Execution(check=False),
    )  # everybody, in large blocks; only those predicted to recidivate count below
    found = {name: audited.of_model(name).query("prediction == 1") for name in models}
    samples = {"train": train, "test": test}
    fixed = pd.concat([shares(found[name], name, data, people, samples) for name in models], ignore_index=True)
    quality = pd.concat([performance(name, data, m, samples) for name, m in models.items()], ignore_index=True)
    stuck = precluded(found[MAIN])
    numbers: dict[str, Any] = {
        "data": data.name, "people": len(people), "features": data.X.shape[1], "fixed": fixed.to_dict("records"), "quality": quality.to_dict("records"),
        "exact": bool((audited.table["method"] == "exact").all()), "precluded": len(stuck), "drivers": [], "points": int(audited.of_model(MAIN)["n"].sum()),
    }  # fmt: skip
    ablation = None
    if len(stuck) and not only:
        ablation = ablate(
            asked[MAIN], data.X.loc[stuck], im, target=0, threshold=THRESHOLD, alpha=ALPHA, seed=SEED, n=100, population="all",
            execution=Execution(check=False),
        )  # fmt: skip
        ranking = ablation.ranking
        numbers["drivers"] = ranking.loc[ranking["low"] > 0, ["relaxation", "gain", "newly_reachable"]].to_dict("records")
    return Found(data, fixed, quality, ablation, numbers)


def split(data: datasets.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Return 80 % to train on, 20 % to test on, with the same share of new offences."""
    from sklearn.model_selection import train_test_split

    train, test = train_test_split(np.arange(len(data)), test_size=0.2, stratify=data.y, random_state=SEED)
    return np.sort(train), np.sort(test)


def fit(data: datasets.Dataset, train: np.ndarray, quick: bool) -> dict[str, Any]:
    """Return a logistic regression on scaled values, a random forest and XGBoost."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from xgboost import XGBClassifier

    trees = 25 if quick else 100
    estimators = {
        "LR": make_pipeline(StandardScaler(), LogisticRegression(solver="newton-cholesky", tol=1e-10)),
        "RF": RandomForestClassifier(n_estimators=trees, min_samples_leaf=5, n_jobs=1, random_state=SEED),
        "XGBoost": XGBClassifier(n_estimators=trees, max_depth=4, learning_rate=0.1, n_jobs=1, random_state=SEED),
    }
    values, again = data.X.to_numpy(dtype=float), data.y.to_numpy()
    return {name: e.fit(values[train], again[train]) for name, e in estimators.items()}


def precluded(rows: pd.DataFrame) -> pd.Index:
    """Return those shown to be below the threshold."""
    return rows.index[rows["verdict"] == "below"]


def shares(
    rows: pd.DataFrame, name: str, data: datasets.Dataset, people: np.ndarray, samples: dict[str, np.ndarray]
) -> pd.DataFrame:
    """Return fixed predictions among all, and among those predicted to recidivate, in both samples and together."""
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
    """Return the figures of the paper's table on both samples."""
    from sklearn.metrics import log_loss, roc_auc_score

    from .german import calibration_error

    rows = []
    for sample, which in samples.items():
        again, chance = data.y.to_numpy()[which], estimator.predict_proba(data.X.to_numpy(dtype=float)[which])[:, 1].round(9)  # ties stay ties
        said = chance >= 0.5
        rows.append(
            {
                "model": name, "sample": sample, "log loss": float(log_loss(again, chance)), "AUC": float(roc_auc_score(again, chance)),
                "ECE": calibration_error(chance, again), "error": float((said != again).mean()), "n": len(which), "n_clf_pos": int(said.sum()),
                "n_clf_neg": len(which) - int(said.sum()),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def figure(ablation: Ablation, most: int = 10) -> str:
    """Return the paper's figure: mean gain of each relaxation, and the distribution of responsiveness after it."""
    ranking = ablation.ranking.dropna(subset=["gain"])
    moves = (ranking["gain"] != 0) | (ranking["kind"] == "immutability")  # these first; what changes nothing fills the rest
    top = pd.concat([ranking[moves], ranking[~moves]]).head(most)
    label = {}
    for name, kind in zip(top["relaxation"], top["kind"]):
        short = ("(I) " if kind == "immutability" else "") + name.removeprefix("free ")
        label[name] = short if len(short) <= 44 else f"{short[:40]}… {len(label) + 1}"
    gains = {label[r]: float(g) for r, g in zip(top["relaxation"], top["gain"])}
    spans = {label[r]: (float(low), float(high)) for r, low, high in zip(top["relaxation"], top["low"], top["high"])}
    before = ablation.cdf()
    curves = {"before": (list(before["rho"]), list(before["share"]))}
    for name in top.loc[top["gain"] != 0, "relaxation"].head(4):  # the others run along the first curve
        after = ablation.cdf(name)
        curves[label[name]] = (list(after["rho"]), list(after["share"]))
    return panels(
        sideways("Gain in responsiveness of those precluded", "mean gain; (I): immutability", gains, spans),
        lines("Responsiveness after each relaxation", "responsiveness ρ", "share of people", curves, stairs=True, bold="before"),
    )


def explained(numbers: dict[str, Any], found: Found, beside: Found | None, others: list[Found]) -> dict[str, Reason]:
    """Return the reasons for differences, each with the run that tests it."""
    rows = [int(n) for n in PRINTED["RF"]["n"]]
    missing = {"rearrest_ny": "the paper prints neither its split nor its settings", "rearrest_ny_simulated": "these rows are simulated"}
    why = missing.get(found.data.name, "rearrest_NY is restricted, and the figure depends on data that is not public")
    named = "the paper's caption and text name different features; the text ranks them by a 'mean max responsiveness' that it does not define"
    majority = [n // 2 for n in rows]
    other = {"rearrest_ny": "another number of rows", "rearrest_ny_simulated": "simulated rows"}.get(found.data.name, "other data")
    here = [len(sample) for sample in split(found.data)]
    both = [int(n) for n in PRINTED["LR"]["n"]]
    return {
        "data": Reason(
            f"not explained: {why}",
            "the same program on other data" if len(others) > 1 else "the same program on this data",
            "; ".join(
                f"{one.data.name}: fixed {percent(at['share_of_all'])} of all and {percent(at['share_of_predicted'])} of those predicted, test AUC {auc:.3f}"
                for one in others for at, auc in [(one.at(MAIN), one.quality.set_index(["model", "sample"]).loc[(MAIN, "test"), "AUC"])]
            ),
        ),
        "size": Reason(
            f"{other}; the shares of the two samples are the paper's", "the training sample as a share of the rows",
            f"{percent(both[0] / sum(both))} of {sum(both):,} in the paper, {percent(here[0] / sum(here))} of {sum(here):,} here",
        ),
        "of_all": Reason(
            "17.3% is a share of all defendants, though the text has 'of those predicted to recidivate'; it does not state of which model",
            "5,084 over the numbers that the paper prints",
            f"{percent(FIXED / DEFENDANTS)} of {DEFENDANTS:,} defendants; of those predicted, {among()}",
        ),
        "rows": Reason(
            "the forest's rows are more than there are defendants; they fit an oversampling of the smaller class, before or after a split into five folds",
            "arithmetic on the printed n",
            f"{rows[0]:,} + {rows[1]:,} = {sum(rows):,} rows, half of them {sum(rows) // 2:,}; a fifth of that, rounded up, is {-(-sum(rows) // 10):,}, "
            f"and twice that {-(-sum(rows) // 10) * 2:,}; {majority[0]:,} and {majority[1]:,} are {percent(majority[0] / both[0])} and "
            f"{percent(majority[1] / both[1])} of the regression's rows",
        ),
        "forest": Reason(
            "not explained: oversampling does not give these figures, after the split or before it; a forest that has seen the test rows comes near",
            "a forest four ways: test AUC, log loss, error (paper: 0.999, 0.043, 1.3%)",
            "; ".join(f"{name}: {at['AUC']:.3f}, {at['log loss']:.3f}, {percent(at['error'])}" for name, at in numbers["leak"].items()),
        ),
        "features": Reason("the paper states 14, 20 and 29 features in three places; its table lists 29", "the columns of the data",
                           f"{numbers['features']} columns of {numbers['data']}"),
        "columns": Reason(named if beside is None else f"other data with other columns; {named}", "the same program, by mean gain",
                          "; ".join(f"{one.data.name}: {one.drivers()}" for one in (found, beside) if one is not None)),
    }  # fmt: skip


def comparison(numbers: dict[str, Any], found: Found, part: Found, beside: Found | None, reasons: dict[str, Reason]) -> pd.DataFrame:
    """Return the paper's figures beside those of this run."""
    restricted = model("recidivism")
    said = "age_at_release, drug_abuser (caption); female, drug_abuser, alcohol_abuser (text)"
    rows = [
        *((f"fixed predictions among all defendants, {name}", "17.3%", found.share(name, of="all"), "data") for name in MODELS),
        ("fixed predictions among those predicted, as the text has it: the paper's own numbers", "17.3%", among(), "of_all"),
        *(
            (f"fixed among those predicted, {name}, {sample}", "generalises", found.share(name, sample), "data")
            for name in MODELS for sample in ("train", "test")
        ),
        *((f"fixed among those predicted, partial clearing, {name}", "–", part.share(name), "") for name in MODELS),
        ("people with a record", "–", f"{numbers['precondition']['record']:,}", ""),
        ("of these, people for whom the switch's precondition holds", "–", str(numbers["precondition"]["applies"]), ""),
        ("people with fixed predictions in the ablation", "5084", str(numbers["precluded"]), "data"),
        ("what releases fixed predictions (mean gain)", said, found.drivers(), "columns"),
        ("relaxations with a gain above zero", "–", str(len(numbers["drivers"])), ""),
        ("defendants", "29400", str(numbers["people"]), "size"), ("features", "14, 20, 29", str(numbers["features"]), "features"),
        ("parts of the model of the restricted data (numbers 0 to 9 in the table)", "10", str(len(restricted.partition)), ""),
        ("parts with several features, of the model of the restricted data", JOINED, joined(restricted), ""),
        ("joint constraints of the model of the restricted data", "13", str(len(restricted.constraints)), ""),
        ("features of the model of the restricted data", "29", str(len(restricted.features)), ""),
        ("parts with one feature, of the model of the restricted data (a guess at its eight 'separable constraints', which it does not list)", "8",
         str(sum(len(part) == 1 for part in restricted.partition)), ""),
        ("bounds of its features that are not binary", "age_at_release 17.3 to 83.9", limits(restricted), ""),
        ("threshold τ, level α", "0.1, 0.05", f"{THRESHOLD}, {ALPHA}", ""), ("years of follow-up", "3", str(YEARS), ""),
    ]  # fmt: skip
    if beside is not None:
        rows += [(f"COMPAS: fixed among those predicted, {name}", "–", beside.share(name), "") for name in MODELS]
        rows.append(("COMPAS: what releases fixed predictions (mean gain)", "–", beside.drivers(), ""))
    quality = found.quality.set_index(["model", "sample"])
    for name, printed in PRINTED.items():
        for word, values in printed.items():
            for sample, value in zip(("train", "test"), values):
                here = quality.loc[(name, sample), word]
                shown = {"ECE": percent(round(here, 1)), "error": percent(here)}.get(word, str(int(here)) if word.startswith("n") else f"{here:.3f}")
                why = ("size" if word == "n" else "data") if name == "LR" else "rows" if word.startswith("n") else "forest"
                rows.append((f"{word}, {name}, {sample}", value, shown, why))
    return compared(rows, reasons)


def among() -> str:
    """Return the paper's number of fixed predictions as a share of those predicted, by each of its two models: none of it is from a run here."""
    predicted = {name: sum(map(int, PRINTED[name]["n_clf_pos"])) for name in (MAIN, "RF")}
    return ", ".join(f"{percent(FIXED / count)} of {name}'s {count:,}" for name, count in predicted.items())
