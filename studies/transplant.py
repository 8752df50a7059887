"""Monotonicity study: does the Transplant Benefit Score predict longer survival after a patient gets cancer?"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from budge import datasets, plan, stats
from budge.audit import audit
from budge.audit.design import Design, Execution
from budge.errors import DesignError
from budge.models import as_predictor
from budge.stress import sensitivity
from budge.targets import lower_than_before

from .common import Study, bars, compared, model, panels, percent

TITLE = "Organ transplants: a score that rises with cancer"
THRESHOLD, ALPHA, PRINTED_N = 0.01, 0.05, 30
MEMBERS = {
    "deterministic": "transplant_deterministic",
    "random effects": "transplant_random",
    "causal effects": "transplant_causal",
}
AGES = ("under 40", "40 to 59", "60 and over")
SEED = 0

ABOUT = """
*Need* is the expected survival without a transplant. A thousand simulated patients without cancer get it, under three
interaction models; responsiveness is the share of the ways to get it after which need is *lower* than before, as it
should be. Monotonicity is violated for a patient where that share is shown to be below τ = 0.01 under at least one of
the three models (flagging, Holm over the three).

As printed, with n = 30 draws, this cannot be shown for anybody: without a single hit the p-value is 0.99^30 = 0.74. One
model alone needs 299 draws, and Holm's correction over three asks for 408.
"""


def run(*, quick: bool = False) -> Study:
    """Score the cohort before and after, as printed and with enough draws."""
    tables = datasets.tbs_tables()
    default = datasets.transplant_benefit_score(datasets.default_patient(), tables=tables).iloc[0]
    cohort = datasets.transplant_cohort(n=150 if quick else 1000, seed=SEED).X
    need = predictor(tables)
    family = {name: model(file) for name, file in MEMBERS.items()}
    alone, several = plan.min_samples(THRESHOLD, ALPHA), plan.min_samples(THRESHOLD, ALPHA / len(family))
    printed = as_printed(need, cohort, family)
    claim: dict[str, Any] = {"target": lower_than_before(), "threshold": THRESHOLD, "alpha": ALPHA, "seed": SEED, "harm": "below", "population": "all"}
    before = sensitivity(need, cohort, family, n=alone, execution=Execution(check=False), **claim)
    enough = sensitivity(need, cohort, family, n=several, design=Design(purpose="enough draws"), execution=Execution(check=False), **claim)
    people = described(cohort, enough)
    numbers: dict[str, Any] = {
        "default": {name: round(float(default[name]), 3) for name in ("need", "utility", "tbs")},
        "n": {"printed": PRINTED_N, "one model": alone, "three models, Holm": several},
        "refused": refusal(need, cohort, family), "smallest_p_printed": float(printed["p"].min()),
        "flagged": {"printed": int(printed["flag"].sum()), str(alone): int(before.people["flag"].sum()), str(several): int(people["flagged"].sum())},
        "rejected_alone": {name: int((before.of(name)["verdict"] == "below").sum()) for name in family},
        "no_hit_printed": int((printed["hits"] == 0).sum()),
        "some_by_age": shares(people.assign(flagged=printed["some"]), "age", AGES),
        "some_alone": {name: float(printed.loc[people["age"] == "40 to 59", name].mean()) for name in family},
        "by_age": shares(people, "age", AGES), "by_sex": shares(people, "sex", ("men", "women")), "people": len(people),
    }  # fmt: skip
    groups = pd.concat(
        [grouped(people, "age", AGES), grouped(people, "sex", ("men", "women")), crossed(people)], ignore_index=True
    )
    by_age, by_sex = (groups[groups["group"].isin(names)].set_index("group") for names in (AGES, ("men", "women")))
    columns = ["flagged", *family]
    figure = panels(
        bars(
            "Flagged, by age and sex",
            "share of patients",
            AGES,
            {sex: [rate(people, age, sex) for age in AGES] for sex in ("men", "women")},
        ),
        bars("Violations by interaction model", "share of patients", AGES, {c: list(by_age[c]) for c in columns}),
        bars("By sex", "share of patients", ("men", "women"), {c: list(by_sex[c]) for c in columns}),
    )
    return Study("transplant", TITLE, ABOUT, comparison(numbers), {"groups": groups}, {"violations": figure}, numbers, quick)


def predictor(tables: datasets.TbsTables) -> Any:
    """Need, in days of the first five years: the model under audit."""
    return as_predictor(partial(_need, tables=tables), output="score")


def _need(table: pd.DataFrame, *, tables: datasets.TbsTables) -> np.ndarray:
    return datasets.transplant_benefit_score(table, tables=tables)["need"].to_numpy()


def as_printed(need: Any, cohort: pd.DataFrame, family: dict[str, Any]) -> pd.DataFrame:
    """30 draws a patient and model, tested although they cannot show that ρ is below τ.

    ``some`` is another reading, which 30 draws can show: that the share of *violations* is above τ.
    """
    hits = []
    for im in family.values():
        found = audit(
            need, cohort, im, target=lower_than_before(), threshold=THRESHOLD, alpha=ALPHA, n=PRINTED_N, seed=SEED, population="all",
            design=Design(purpose="as printed", testing=False), execution=Execution(check=False),
        )  # fmt: skip
        hits.append(found.table["hits"].to_numpy())
    p = np.stack([stats.p_value(h, PRINTED_N, THRESHOLD, claim="below") for h in hits], axis=1)
    other = np.stack([stats.p_value(PRINTED_N - h, PRINTED_N, THRESHOLD, claim="above") for h in hits], axis=1)
    rows = pd.DataFrame(
        {"hits": np.min(hits, axis=0), "p": p.min(axis=1), "flag": stats.flag(p, ALPHA, method="holm").rejected},
        index=cohort.index,
    )
    rows["some"] = stats.flag(other, ALPHA, method="holm").rejected
    for k, name in enumerate(family):
        rows[name] = other[:, k] < ALPHA
    return rows


def refusal(need: Any, cohort: pd.DataFrame, family: dict[str, Any]) -> str:
    """What the library says to somebody who asks for the printed test."""
    try:
        audit(
            need,
            cohort.iloc[:1],
            next(iter(family.values())),
            target=lower_than_before(),
            threshold=THRESHOLD,
            alpha=ALPHA,
            n=PRINTED_N,
            population="all",
        )
    except DesignError as error:
        return str(error)
    return ""


def described(cohort: pd.DataFrame, found: Any) -> pd.DataFrame:
    """One row a patient: age group, sex, flagged or not, and the verdict of each model by itself."""
    ages = np.digitize(cohort["rage_tbs"].to_numpy(), [40, 60])
    people = pd.DataFrame(
        {"age": [AGES[k] for k in ages], "sex": np.where(cohort["rgender_tbs"] == 0, "men", "women")}, index=cohort.index
    )
    people["flagged"] = found.people["flag"]
    for name in found.members:
        people[name] = found.of(name)["verdict"] == "below"
    return people


def rate(people: pd.DataFrame, age: str, sex: str) -> float:
    """The share flagged in one cell."""
    return float(people.loc[(people["age"] == age) & (people["sex"] == sex), "flagged"].mean())


def grouped(people: pd.DataFrame, by: str, order: tuple[str, ...]) -> pd.DataFrame:
    """Shares by group, with an interval for the flagged share that holds for all groups together."""
    rows = []
    for name in order:
        part = people[people[by] == name]
        span = stats.interval(int(part["flagged"].sum()), len(part), alpha=ALPHA / len(order))
        rows.append(
            {
                "group": name,
                "patients": len(part),
                "low": float(span.low),
                "high": float(span.high),
                **part.drop(columns=["age", "sex"]).mean().to_dict(),
            }
        )
    return pd.DataFrame(rows)


def crossed(people: pd.DataFrame) -> pd.DataFrame:
    """Shares by age and sex together."""
    cells = people.assign(age=people["sex"] + ", " + people["age"])
    return grouped(cells, "age", tuple(f"{sex}, {age}" for sex in ("men", "women") for age in AGES))


def shares(people: pd.DataFrame, by: str, order: tuple[str, ...]) -> dict[str, float]:
    """The share flagged in each group."""
    return {name: float(people.loc[people[by] == name, "flagged"].mean()) for name in order}


def comparison(numbers: dict[str, Any]) -> pd.DataFrame:
    """The paper's figures beside ours."""
    ages, n = numbers["by_age"], numbers["n"]
    enough = str(n["three models, Holm"])
    cannot = "30 draws cannot reject; the printed rates cannot come from the printed test"
    alone = "another reading, which n = 30 can show: need is not lower in more than 1 in 100 ways; one model, no correction"
    printed_alone = {name: "around 10%" if name == "random effects" else "over 50%" for name in MEMBERS}
    cohort = "here: need is lower in fewer than 1 in 100 ways to get cancer, shown at α; how the paper's numbers came out of n = 30 is not known"
    reading = "another reading, which n = 30 can show: need is not lower in more than 1 in 100 ways (Holm over the three)"
    return compared(
        [
            ("need of the default patient, days", "–", f"{numbers['default']['need']:.3f}", "the open calculator says 1387.112"),
            ("utility of the default patient, days", "–", f"{numbers['default']['utility']:.3f}", "the open calculator says 1595.993"),
            ("draws that one test needs at τ = 0.01", "30", str(n["one model"]), "with 30 the smallest possible p-value is 0.74; budge refuses the design"),
            ("draws that the family needs (Holm, three models)", "30", enough, "the smallest p-value is multiplied by three"),
            ("flagged, n = 30 as printed", "12%, 99.9%, 74% by age", f"{numbers['flagged']['printed']} of {numbers['people']}", cannot),
            ("flagged, n = 299", "–", f"{numbers['flagged'][str(n['one model'])]} of {numbers['people']}", "enough for one model, too few for Holm over three"),
            (f"flagged, n = {enough}", "–", f"{numbers['flagged'][enough]} of {numbers['people']}", ""),
            (f"flagged under 40, n = {enough}", "99.9%", percent(ages["under 40"]), cohort),
            (f"flagged 40 to 59, n = {enough}", "12%", percent(ages["40 to 59"]), cohort),
            (f"flagged 60 and over, n = {enough}", "74%", percent(ages["60 and over"]), cohort),
            *(
                (f"violations above τ shown, {age}, n = 30", printed, percent(numbers["some_by_age"][age]), reading)
                for age, printed in (("under 40", "99.9%"), ("40 to 59", "12%"), ("60 and over", "74%"))
            ),
            *(
                (f"violations above τ shown, 40 to 59, {name} alone, n = 30", printed_alone[name], percent(numbers["some_alone"][name]), alone)
                for name in MEMBERS
            ),
            *((f"flagged, {sex}, n = {enough}", "–", percent(numbers["by_sex"][sex]), "the paper shows a figure only") for sex in ("men", "women")),
        ]
    )  # fmt: skip
