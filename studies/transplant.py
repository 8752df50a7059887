"""Monotonicity study: does the Transplant Benefit Score predict longer survival after a patient gets cancer?"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from budge import datasets, plan, stats
from budge.audit import audit
from budge.audit.design import Design, Execution
from budge.datasets.files import SOURCES
from budge.errors import DesignError
from budge.interaction import InteractionModel
from budge.models import as_predictor
from budge.stress import sensitivity
from budge.targets import lower_than_before

from .charts import bars, pairs, panels
from .common import Reason, Study, compared, joined, limits, model, percent, source

TITLE = "Organ transplants: a score that rises with cancer"
THRESHOLD, ALPHA, PRINTED_N = 0.01, 0.05, 30
MEMBERS = {
    "deterministic": "transplant_deterministic",
    "random effects": "transplant_random",
    "causal effects": "transplant_causal",
}
AGES, SEXES = ("under 40", "40 to 59", "60 and over"), ("men", "women")
#: The groups in the words of the text, which leave out patients of 39 and of 60: name, years from and to.
WORDED = {"under 39": (0, 38), "over 60": (61, 200)}
SEED, COHORTS, DRAWS, REDRAWN = 0, 6, 2000, 4  # the last: seeds of the draws, of which the first leads
#: Of bilirubin, sodium, INR and creatinine: the printed correlations of their noise, and centre and spread of what it moves.
LABS = ("rbilirubin_tbs", "rsodium_tbs", "rinr_tbs", "rcreatinine_tbs")
CORRELATIONS = {(0, 1): 0.447, (0, 2): 0.320, (0, 3): -0.257, (1, 2): 0.370, (1, 3): -0.043, (2, 3): -0.091}
CENTRES = {"ln bilirubin": "3.5, 0.5", "sodium": "137.0, 5.0", "ln (INR − 0.8)": "-0.2, 0.3", "ln creatinine": "4.2, 0.4"}
EQUATIONS = {
    "rbilirubin_tbs": "exp(0.5 * latent.bilirubin + 3.5)", "rsodium_tbs": "5 * latent.sodium + 137",
    "rinr_tbs": "exp(0.3 * latent.inr - 0.2) + 0.8", "rcreatinine_tbs": "exp(0.4 * latent.creatinine + 4.2)",
}  # fmt: skip
JOINED = (
    "rdisease_primary_tbs + rtumour_number_tbs + rmax_tumour_size_tbs; rbilirubin_tbs + rinr_tbs + rcreatinine_tbs + rsodium_tbs"
)
BOUNDS = (
    "rregistration_tbs 1 to 7, rwaiting_time_tbs 0 to 3650, rage_tbs 30 to 80, rdisease_primary_tbs 1 to 9, rdisease_secondary_tbs 1 to 9, "
    "rdisease_tertiary_tbs 1 to 9, rbilirubin_tbs 15 to 200, rinr_tbs 0.9 to 2.4, rcreatinine_tbs 45 to 200, rsodium_tbs 125 to 145, "
    "rpotassium_tbs 3.5 to 5, ralbumin_tbs 30 to 40, rmax_afp_tbs 0 to 1000, rmax_tumour_size_tbs 0 to 20, dage_tbs 18 to 80, dcause_tbs 1 to 4, "
    "dbmi_tbs 15 to 50, ddiabetes_tbs 1 to 3"
)

ABOUT = """
*Need* is the expected survival without a transplant. A thousand patients without cancer are simulated, and each of them gets cancer under three interaction
models. Monotonicity is violated where need is *not lower* afterwards.

**The reading that gives the printed rates**: responsiveness is the share of *violations*, `~lower_than_before()`; a patient counts where more than τ = 0.01
of the ways to get cancer are shown to violate monotonicity at α = 0.05 (with n = 30 draws: at least 2), under **all three** models, the rule that the paper
calls *certify*. The paper's text states two other things. It tests that responsiveness, with need *lower* as the target, is *below* τ: with 30 draws that
cannot be shown for anybody. And it counts a patient where *at least one* model shows it, after Holm's correction: that gives other rates. Both are rows below.

**Ages** are printed as under 39, 40 to 59 and over 60, which leaves out patients of 39 and of 60. The study takes under 40 and 60 and over; the text's
words have rows of their own.

**Random effects** are printed twice. The equations of the appendix multiply or shift each laboratory value by itself; the study follows them. The text before
them states that the structural model of the cohort, which ties the four values, simulates the random effects too. That reading has the printed number of parts
and gives other rates; it has rows of its own.

**How firm the ranges are**: each range below is that of one seed of the draws. The table of draws has the same six cohorts with other seeds.
"""


def run(*, quick: bool = False) -> Study:
    """Score six cohorts before and after, under the leading reading; one of them also as printed and with enough draws."""
    tables = datasets.tbs_tables()
    default = datasets.transplant_benefit_score(datasets.default_patient(), tables=tables).iloc[0]
    cohorts = [datasets.transplant_cohort(n=150 if quick else 1000, seed=k) for k in range(2 if quick else COHORTS)]
    need, family = predictor(tables), {name: model(file) for name, file in MEMBERS.items()}
    redrawn = structural(family["random effects"])
    violating = [shown(need, cohort.X, family) for cohort in cohorts]
    people = pd.concat(violating, ignore_index=True)
    again = {k: violating if k == SEED else [shown(need, cohort.X, family, seed=k) for cohort in cohorts] for k in range(2 if quick else REDRAWN)}
    other = pd.concat([shown(need, cohort.X, {**family, "random effects": redrawn}) for cohort in cohorts], ignore_index=True)
    patients = pd.concat([cohort.X for cohort in cohorts], ignore_index=True)
    first = cohorts[0].X
    alone, several = plan.min_samples(THRESHOLD, ALPHA), plan.min_samples(THRESHOLD, ALPHA / len(family))
    claim: dict[str, Any] = {"target": lower_than_before(), "threshold": THRESHOLD, "alpha": ALPHA, "seed": SEED, "harm": "below", "population": "all"}
    one = sensitivity(need, first, family, n=alone, execution=Execution(check=False), **claim)
    enough = sensitivity(need, first, family, n=several, design=Design(purpose="enough draws"), execution=Execution(check=False), **claim)
    flagged = violating[0].assign(flagged=enough.people["flag"].to_numpy())
    by_cohort = pd.DataFrame([{"cohort": k, **counted(rows), **shares(rows, "violates")} for k, rows in enumerate(violating)])
    draws = pd.DataFrame([{"seed": k, "cohort": c, **shares(rows, "violates")} for k, found in again.items() for c, rows in enumerate(found)])
    numbers: dict[str, Any] = {
        "draws": draws.to_dict("records"), "default": {name: round(float(default[name]), 3) for name in ("need", "utility", "tbs")},
        "n": {"printed": PRINTED_N, "one model": alone, "three models, Holm": several}, "people": len(first), "features": first.shape[1],
        "by_age": shares(people, "violates"), "cohorts": by_cohort.to_dict("records"), "some_by_age": shares(people, "some"),
        "alone": {name: float(people.loc[people["age"] == "40 to 59", name].mean()) for name in family}, "under_40": int((people["age"] == "under 40").sum()),
        "printed": printed_test(need, first, family), "refused": refusal(need, first, family),
        "flagged": {str(alone): int(one.people["flag"].sum()), str(several): int(flagged["flagged"].sum())},
        "flagged_by_age": shares(flagged, "flagged"), "parts": {name: len(im.partition) for name, im in family.items()},
        "least_group": next(n for n in range(2, 2000) if round(100 * (n - 1) / n, 1) == 99.9), "effects": correlation(first, family["random effects"]),
        "structural": {
            "by_age": shares(other, "violates"), "alone": shares(other, "random effects"), "parts": len(redrawn.partition),
            "joined": joined(redrawn),
            "correlation": correlation(first, redrawn),
        },
        "worded": {name: worded(violating, *years) for name, years in WORDED.items()}, "joined": joined(family["random effects"]),
        "cohort": described(patients), "drawn": drawn(patients, family), "bounds": limits(family["random effects"]),
        "if_then": sum(c.kind == "if_then" for c in family["random effects"].constraints),
    }  # fmt: skip
    reasons = explained(numbers)
    figures = {
        "violations_by_age": panels(bars("Violations under all three models, by age", "share of patients", AGES, by_sex(people, "violates", everybody=True))),
        "violations_by_model": panels(*(bars(name, "share of patients", AGES, by_sex(people, name)) for name in family)),
        "cohort": str(pairs("Liver parameters of the cohort", {
            "bilirubin": first["rbilirubin_tbs"], "sodium": first["rsodium_tbs"], "INR": first["rinr_tbs"], "creatinine": first["rcreatinine_tbs"],
        })),
    }  # fmt: skip
    shown_tables = {"cohorts": by_cohort, "draws": draws, "groups": grouped(people, tuple(family))}
    return Study(
        "transplant", TITLE, ABOUT, comparison(numbers, reasons), shown_tables, figures, numbers, quick,
        (source(cohorts[0]), f"the score's tables: {SOURCES['tbs_betas'].origin} ({SOURCES['tbs_betas'].licence})"), reasons, noted(draws),
    )  # fmt: skip


def noted(draws: pd.DataFrame) -> str:
    """Return what stands above the table: how far single cohorts go with all seeds of the draws."""
    ranges = ", ".join(f"{percent(draws[age].min())} to {percent(draws[age].max())} ({age})" for age in AGES)
    return f"With {draws['seed'].nunique()} seeds of the draws instead of one, the rates of single cohorts go from {ranges}."


def predictor(tables: datasets.TbsTables) -> Any:
    """Return need, in days of the first five years: the model under audit."""
    return as_predictor(partial(_need, tables=tables), output="score")


def _need(table: pd.DataFrame, *, tables: datasets.TbsTables) -> np.ndarray:
    return datasets.transplant_benefit_score(table, tables=tables)["need"].to_numpy()


def shown(need: Any, cohort: pd.DataFrame, family: dict[str, Any], *, seed: int = SEED) -> pd.DataFrame:
    """Return one row per patient: age group, sex, and whether violations above τ are shown, under all models, some, and each."""
    found = sensitivity(
        need, cohort, family, target=~lower_than_before(), threshold=THRESHOLD, alpha=ALPHA, claim="above", n=PRINTED_N, seed=seed, population="all",
        method="sample", harm="above", execution=Execution(check=False),
    )  # fmt: skip
    ages = np.digitize(cohort["rage_tbs"].to_numpy(), [40, 60])
    rows = pd.DataFrame({"age": [AGES[k] for k in ages], "sex": np.where(cohort["rgender_tbs"] == 0, *SEXES)})
    rows["years"] = cohort["rage_tbs"].to_numpy()
    rows["violates"], rows["some"] = found.people["certify"].to_numpy(), found.people["flag"].to_numpy()
    for name in family:
        rows[name] = (found.of(name)["verdict"] == "above").to_numpy()
    return rows


def structural(im: InteractionModel) -> InteractionModel:
    """Return the other reading of random effects: the laboratory values are drawn anew from the structural model of the cohort."""
    spec = im.to_spec()
    matrix = [[1.0 if i == j else CORRELATIONS[min(i, j), max(i, j)] for j in range(4)] for i in range(4)]
    kept = [effect for effect in spec["effects"] if effect["feature"] not in EQUATIONS]
    bounds = {f.name: f.bounds for f in im.features}
    new = [{"feature": f, "set": e, "clip": list(bounds[f] or ()), **({} if f == "rinr_tbs" else {"round": True})} for f, e in EQUATIONS.items()]
    latent = {"labs": {"components": ["bilirubin", "sodium", "inr", "creatinine"], "draw": f"multivariate_normal([0, 0, 0, 0], {matrix})"}}
    return InteractionModel.from_spec({**spec, "latent": latent, "effects": [*new, *kept], "name": f"{im.name}, structural"})


def described(patients: pd.DataFrame) -> dict[str, Any]:
    """Return what the paper states of its cohort, from all patients: ranges, centre and spread of what is drawn, correlations of its noise."""
    moved = {
        "ln bilirubin": np.log(patients["rbilirubin_tbs"]), "sodium": patients["rsodium_tbs"], "ln (INR − 0.8)": np.log(patients["rinr_tbs"] - 0.8),
        "ln creatinine": np.log(patients["rcreatinine_tbs"]),
    }  # fmt: skip
    quartiles = {name: np.quantile(values, [0.25, 0.5, 0.75]) for name, values in moved.items()}  # clipping does not move them
    ranks = patients[list(LABS)].corr(method="spearman").to_numpy()
    names = ("rage_tbs", "ralbumin_tbs", "rpotassium_tbs", *LABS)
    return {
        "women": float(patients["rgender_tbs"].mean()), "ranges": {name: [float(patients[name].min()), float(patients[name].max())] for name in names},
        "centres": {name: f"{q[1]:.1f}, {(q[2] - q[0]) / 1.349:.1f}" for name, q in quartiles.items()},
        "correlations": {f"{LABS[i]} and {LABS[j]}": float(2 * np.sin(np.pi / 6 * ranks[i, j])) for i, j in CORRELATIONS}, "patients": len(patients),
    }  # fmt: skip


def drawn(patients: pd.DataFrame, family: dict[str, Any]) -> dict[str, str]:
    """Return the ranges and probabilities of the effects, from draws for a patient whose values are far from the bounds."""
    far = (patients["rbilirubin_tbs"] - 100).abs() + (patients["rcreatinine_tbs"] - 100).abs() + 10 * (patients["rsodium_tbs"] - 136).abs()
    patient = patients.loc[far.idxmin()]
    some = {name: family[name].sample(patient, n=DRAWS, seed=SEED).points for name in ("random effects", "causal effects")}
    random, causal = some.values()
    renal = causal["rrenal_tbs"] == 1

    def span(values: Any, digits: int) -> str:
        return f"{np.min(values):.{digits}f} to {np.max(values):.{digits}f}"

    return {
        "factor of bilirubin": span(random["rbilirubin_tbs"] / patient["rbilirubin_tbs"], 1),
        "rise of INR": span(random["rinr_tbs"] - patient["rinr_tbs"], 1), "fall of sodium": span(patient["rsodium_tbs"] - random["rsodium_tbs"], 0),
        "AFP": span(np.round(random["rmax_afp_tbs"], -1), 0), "probability of renal complications": f"{renal.mean():.1f}",
        "factor of creatinine with them": span(causal.loc[renal, "rcreatinine_tbs"] / patient["rcreatinine_tbs"], 1),
        "probability of hospitalization": f"{causal['rinpatient_tbs'].mean():.1f}",
    }  # fmt: skip


def printed_test(need: Any, cohort: pd.DataFrame, family: dict[str, Any]) -> dict[str, float]:
    """Return what the printed test gives: responsiveness below τ, 30 draws, Holm over the three models."""
    hits = [
        audit(
            need, cohort, im, target=lower_than_before(), threshold=THRESHOLD, alpha=ALPHA, n=PRINTED_N, seed=SEED, population="all",
            design=Design(purpose="as printed", testing=False), execution=Execution(check=False),
        ).table["hits"].to_numpy()
        for im in family.values()
    ]  # fmt: skip
    p = np.stack([stats.p_value(h, PRINTED_N, THRESHOLD, claim="below") for h in hits], axis=1)
    return {"flagged": int(stats.flag(p, ALPHA, method="holm").rejected.sum()), "smallest_p": float(p.min()), "no_hit": int((np.max(hits, axis=0) == 0).sum())}


def refusal(need: Any, cohort: pd.DataFrame, family: dict[str, Any]) -> str:
    """Return the library's error for the printed test."""
    im = next(iter(family.values()))
    try:
        audit(need, cohort.iloc[:1], im, target=lower_than_before(), threshold=THRESHOLD, alpha=ALPHA, n=PRINTED_N, population="all")
    except DesignError as error:
        return str(error)
    return ""


def correlation(cohort: pd.DataFrame, im: Any) -> float:
    """Return the largest correlation between two of the drawn changes of bilirubin, INR and sodium, for one patient."""
    names = ["rbilirubin_tbs", "rinr_tbs", "rsodium_tbs"]
    patient = cohort.iloc[int(np.argmin(np.abs(cohort["rsodium_tbs"] - 136)))]
    drawn = im.sample(patient, n=2000, seed=SEED).points[names].to_numpy(dtype=float)
    return float(np.abs(np.corrcoef(drawn.T)[np.triu_indices(3, 1)]).max())


def shares(rows: pd.DataFrame, column: str) -> dict[str, float]:
    """Return the share per age group."""
    return {age: float(rows.loc[rows["age"] == age, column].mean()) for age in AGES}


def worded(cohorts: list[pd.DataFrame], low: int, high: int) -> dict[str, float]:
    """Return the share of patients of these ages who count as violating, in all cohorts together, at least and at most, and how many there are in one."""
    parts = [rows.loc[rows["years"].between(low, high), "violates"] for rows in cohorts]
    each, every = [float(part.mean()) for part in parts], pd.concat(parts)
    return {"share": float(every.mean()), "least": min(each), "most": max(each), "patients": len(every) / len(parts)}


def counted(rows: pd.DataFrame) -> dict[str, int]:
    """Return the patients per age group."""
    return {f"patients {age}": int((rows["age"] == age).sum()) for age in AGES}


def by_sex(rows: pd.DataFrame, column: str, *, everybody: bool = False) -> dict[str, list[float]]:
    """Return the shares of men and women per age group."""
    parts = {**({"everybody": rows} if everybody else {}), **{sex: rows[rows["sex"] == sex] for sex in SEXES}}
    return {name: list(shares(part, column).values()) for name, part in parts.items()}


def grouped(rows: pd.DataFrame, members: tuple[str, ...]) -> pd.DataFrame:
    """Return shares by age and sex, with an interval for the leading one that holds for all groups together."""
    groups = {**{age: rows["age"] == age for age in AGES}, **{sex: rows["sex"] == sex for sex in SEXES}}
    groups |= {f"{sex}, {age}": (rows["sex"] == sex) & (rows["age"] == age) for sex in SEXES for age in AGES}
    found = []
    for name, which in groups.items():
        part = rows[which]
        span = stats.interval(int(part["violates"].sum()), len(part), alpha=ALPHA / len(groups))
        means = part[["violates", "some", *members]].mean().to_dict()
        found.append({"group": name, "patients": len(part), "low": float(span.low), "high": float(span.high), **means})
    return pd.DataFrame(found)


def explained(numbers: dict[str, Any]) -> dict[str, Reason]:
    """Return the reasons for differences, each with the run that tests it."""
    n, runs = numbers["n"], len(numbers["cohorts"])
    ranges = "; ".join(f"{age}: {_range(numbers, age)}" for age in AGES)
    group = numbers["under_40"] / runs
    nearest = percent((group - 1) / group)
    few = numbers["worded"]["under 39"]
    printed, redrawn, cohort = numbers["printed"], numbers["structural"], numbers["cohort"]
    worst = max(abs(a - b) for a, b in zip(cohort["correlations"].values(), CORRELATIONS.values()))
    return {
        "cohort": Reason("another cohort; the printed rate is one draw", f"{runs} cohorts of {numbers['people']}, other seeds",
                         f"{ranges}; over 60: {_least_most(numbers['worded']['over 60'])} in {runs} cohorts"),
        "share": Reason(
            "no count of so few people gives 99.9 %; in these cohorts the nearest that one does, 100.0%, comes out under 39, as the text has it, not under 40",
            f"the shares that are possible among these patients, and the rates of {runs} cohorts",
            f"{group:.0f} of {numbers['people']} are under 40: {nearest} or 100.0%, and {_range(numbers, AGES[0])}; {few['patients']:.0f} are under 39: "
            f"{percent(1 - 1 / few['patients'])} or 100.0%, and {_least_most(few)}; 99.9% needs at least {numbers['least_group']} people",
        ),
        "words": Reason("the paper prints words", f"the models one by one, patients of 40 to 59, {runs} cohorts",
                        ", ".join(f"{name} {percent(v)}" for name, v in numbers["alone"].items())),
        "below": Reason(
            "30 draws cannot show a rate below 0.01", "the printed test, although it cannot reject",
            f"smallest p-value {printed['smallest_p']:.2f}; {printed['flagged']} flagged; {printed['no_hit']} patients have no hit under any of the models",
        ),
        "some": Reason("shown under all three models, not under at least one", "violations above τ, at least one model, Holm",
                       ", ".join(f"{age}: {percent(v)}" for age, v in numbers["some_by_age"].items())),
        "enough": Reason(
            "the printed test with enough draws is another claim: need falls in fewer than 1 of 100 ways", f"flagging with n = {n['three models, Holm']}",
            ", ".join(f"{age}: {percent(v)}" for age, v in numbers["flagged_by_age"].items()),
        ),
        "table": Reason("the paper's own table lists 30", "the cohort's columns beside the table", f"{numbers['features']} columns, the names of the table"),
        "parts": Reason(
            "the table ties the four laboratory values, as the structural model of the text does and the printed equations of the effects do not",
            "2000 draws of the random effects for one patient, by the equations and by the structural model",
            f"largest correlation of two drawn laboratory values {numbers['effects']:.2f} and {redrawn['correlation']:.2f}; "
            f"{redrawn['parts']} parts with the latter",
        ),
        "structural": Reason(
            "values drawn anew from the structural model are another interaction model than the printed equations",
            "violations under all three models, and under random effects alone, with the laboratory values drawn anew",
            "; ".join(f"{age}: {percent(redrawn['by_age'][age])} and {percent(redrawn['alone'][age])}" for age in AGES),
        ),
        "sample": Reason(
            "a sample from the printed distribution, whole numbers rounded", f"all {cohort['patients']:,} patients of the {runs} cohorts",
            f"largest difference of a correlation {worst:.3f}; share of women {percent(cohort['women'])}",
        ),
    }  # fmt: skip


def comparison(numbers: dict[str, Any], reasons: dict[str, Reason]) -> pd.DataFrame:
    """Return the paper's figures beside those of this run."""
    n, ages, parts = numbers["n"], numbers["by_age"], numbers["parts"]
    several, other, cohort = str(n["three models, Holm"]), numbers["structural"], numbers["cohort"]
    ranges = ("30 to 80", "30 to 40", "3.5 to 5.0", "15 to 200", "125 to 145", "0.9 to 2.4", "45 to 200")
    effects = ("1.1 to 1.5", "0.1 to 0.3", "2 to 5", "100 to 1000", "0.3", "1.2 to 1.8", "0.4")
    printed = dict(zip(AGES, ("99.9%", "12%", "74%")))
    runs = len(numbers["cohorts"])
    words = {name: "around 10%" if name == "random effects" else "over 50%" for name in MEMBERS}
    rows = [
        *((f"violations, {age}", printed[age], f"{percent(ages[age])} ({_range(numbers, age)})", "share" if age == AGES[0] else "cohort") for age in AGES),
        *((f"violations, {name}, as the text has it (40 to 59 is as above)", printed[age], f"{percent(at['share'])} ({_least_most(at)} in {runs} cohorts)", why)
          for (name, at), age, why in zip(numbers["worded"].items(), (AGES[0], AGES[2]), ("share", "cohort"))),
        *((f"violations, 40 to 59, {name} alone", words[name], percent(numbers["alone"][name]), "words") for name in MEMBERS),
        ("patients", "1000", str(numbers["people"]), "cohort"), ("draws per patient", "30", str(n["printed"]), ""),
        ("features", "32", str(numbers["features"]), "table"), ("parts of the interaction models", "25", ", ".join(map(str, parts.values())), "parts"),
        ("flagged by the printed test, n = 30", "99.9%, 12%, 74%", f"{numbers['printed']['flagged']} of {numbers['people']}", "below"),
        ("draws that the printed test needs", "30", str(n["one model"]), "below"),
        ("draws that it needs with Holm over three models", "30", several, "below"),
        ("parts, random effects by the structural model", "25", str(other["parts"]), "parts"),
        *((f"violations, {age}, random effects by the structural model", printed[age], percent(other["by_age"][age]), "structural") for age in AGES),
        ("violations, 40 to 59, random effects by the structural model alone", "around 10%", percent(other["alone"][AGES[1]]), "structural"),
        *((f"violations under at least one model (Holm), {age}", printed[age], percent(numbers["some_by_age"][age]), "some") for age in AGES),
        *((f"flagged, {age}, n = {several}", printed[age], percent(numbers["flagged_by_age"][age]), "enough") for age in AGES),
        ("parts with several features, of the table: printed equations", JOINED, numbers["joined"], "parts"),
        ("parts with several features, of the table: structural model", JOINED, other["joined"], "parts"),
        ("interaction models", "3", str(len(MEMBERS)), ""), ("threshold τ, level α", "0.01, 0.05", f"{THRESHOLD}, {ALPHA}", ""),
        ("if-then rules of the interaction models", "2", str(numbers["if_then"]), ""),
        ("bounds of the features that are not binary", BOUNDS, numbers["bounds"], ""),
        ("share of women", "50%", percent(cohort["women"], 0), "sample"),
        *((f"range of {name}, all patients", text, _span(values, text), "sample") for text, (name, values) in zip(ranges, cohort["ranges"].items())),
        *((f"centre and spread of {name}", text, cohort["centres"][name], "sample") for name, text in CENTRES.items()),
        *((f"correlation of the noise, {name}", f"{value:.3f}", f"{cohort['correlations'][name]:.3f}", "sample")
          for name, value in zip(cohort["correlations"], CORRELATIONS.values())),
        *((f"effects, {name}", text, here, "sample") for text, (name, here) in zip(effects, numbers["drawn"].items())),
        ("need of the default patient, days (open calculator: 1387.112)", "–", f"{numbers['default']['need']:.3f}", ""),
        ("utility of the default patient, days (open calculator: 1595.993)", "–", f"{numbers['default']['utility']:.3f}", ""),
    ]  # fmt: skip
    return compared(rows, reasons)


def _range(numbers: dict[str, Any], age: str) -> str:
    found = [row[age] for row in numbers["cohorts"]]
    return f"{percent(min(found))} to {percent(max(found))} in {len(found)} cohorts"


def _least_most(found: dict[str, float]) -> str:
    return f"{percent(found['least'])} to {percent(found['most'])}"


def _span(values: list[float], like: str) -> str:
    digits = 1 if "." in like else 0
    return f"{values[0]:.{digits}f} to {values[1]:.{digits}f}"
