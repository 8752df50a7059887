"""The paper's overview figure on a small lending example, and the numbers that its propositions print."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from budge import plan, stats
from budge.audit import audit
from budge.features import Feature
from budge.interaction import InteractionModel
from budge.models import as_predictor
from budge.report.figures import Figure

from .charts import panels
from .common import Study, compared

TITLE = "Overview: what responsiveness measures"
SEED, DRAWS, THRESHOLD = 0, 300, 0.1
START = {"n_dependents": 1, "income": 30.0, "mortgage": 0}

ABOUT = """
The paper's first figure: a model with one discrete feature (`n_dependents`), one continuous (`income`, in thousands) and one binary (`mortgage`).
Dependents and the mortgage can only increase, income can move by 20 either way. What an applicant can reach falls into separate pieces; responsiveness is
the share of it that is approved. The figure's numbers are not printed in the paper; below are those that its propositions print.
"""


def run(*, quick: bool = False) -> Study:
    """Draw the figure and compute the printed sample sizes; it is the same work, quick or not."""
    features = [
        Feature("n_dependents", "integer", bounds=(0, 4), direction="increase"),
        Feature("income", "real", bounds=(0, 100), max_increase=20, max_decrease=20),
        Feature("mortgage", "binary", direction="increase"),
    ]
    im = InteractionModel(features, name="a small loan")
    people = pd.DataFrame([START])
    found = audit(predictor(), people, im, target=1, threshold=THRESHOLD, n=DRAWS, seed=SEED, method="sample", population="all").table.iloc[0]
    drawn = im.sample(people.iloc[0], n=DRAWS, seed=SEED).points
    numbers: dict[str, Any] = {
        "widths": {"0.1": plan.samples_for_width(0.1, 0.05), "0.05": plan.samples_for_width(0.05, 0.05)},
        "least": {"0.1": plan.min_samples(0.1, 0.05), "0.01": plan.min_samples(0.01, 0.05)}, "rho": float(found["rho"]), "hits": int(found["hits"]), "n": DRAWS,
        "interval": [float(v) for v in (stats.interval(int(found["hits"]), DRAWS).low, stats.interval(int(found["hits"]), DRAWS).high)],
    }  # fmt: skip
    rows = [
        ("draws for an interval at most 0.1 wide (Prop. Certify, α = 0.05)", "402", str(numbers["widths"]["0.1"]), ""),
        ("draws for an interval at most 0.05 wide", "1574", str(numbers["widths"]["0.05"]), ""),
        ("draws that can certify at τ = 0.1 (Remark, α = 0.05)", "29", str(numbers["least"]["0.1"]), ""),
        ("draws that can certify at τ = 0.01", "–", str(numbers["least"]["0.01"]), ""),
        ("responsiveness of the applicant in the figure", "–", f"{numbers['rho']:.2f} ({numbers['hits']} of {DRAWS} draws)", ""),
    ]
    figure = panels(*(plane(drawn, mortgage) for mortgage in (0, 1)))
    return Study("overview", TITLE, ABOUT, compared(rows), {}, {"reachable_points": figure}, numbers, quick, ("made up for the figure",))


def predictor() -> Any:
    """Return the model of the example: income carries dependents, and more so with a mortgage."""
    return as_predictor(lambda t: (t["income"] - 8 * t["n_dependents"] - 6 * t["mortgage"] >= 25).to_numpy().astype(int), takes="frame", classes=[0, 1])


def plane(drawn: pd.DataFrame, mortgage: int) -> Figure:
    """Return the points with or without a mortgage, income against dependents, and where the model approves."""
    figure = Figure(f"mortgage = {mortgage}", x=(0, 70), y=(-0.6, 4.6), x_label="income, thousands", y_label="dependents", width=460, tall=230)
    figure.tick("x", range(0, 71, 10), grid=False)
    figure.tick("y", range(5))
    edge = [(25 + 8 * d + 6 * mortgage, d) for d in (-0.6, 4.6)]
    figure.line(edge, colour="ink", dash="dashed", title="the model's boundary: approved to the right")
    rows = drawn[drawn["mortgage"] == mortgage]
    approved = predictor().predict(rows) == 1
    for (income, dependents), yes in zip(rows[["income", "n_dependents"]].to_numpy(dtype=float), approved):
        figure.point(income, dependents, colour="blue" if yes else "vermilion", size=2.4)
    if mortgage == START["mortgage"]:
        figure.point(START["income"], START["n_dependents"], colour="ink", shape="diamond", size=6, title="the applicant")
        figure.text(START["income"], START["n_dependents"], "applicant", anchor="end", right=-12, down=20)
    figure.legend(["approved", "refused"], ["blue", "vermilion"], kind="point")
    figure.about = f"{int(np.sum(approved))} of {len(rows)} points with mortgage = {mortgage} are approved"
    return figure
