"""The cells of proofs: whatever the other options are, what is proved is true, and what is drawn beside it keeps its error."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import budge
from budge.constraints import LinearConstraint

pytest.importorskip("sklearn")
from sklearn.tree import DecisionTreeClassifier

WAYS = ({}, {"sequential": True}, {"proposal": {"a": {"weights": {i: 1 + i % 3 for i in range(13)}}}})


def world(seed: int):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.integers(0, 9, 24), "b": rng.integers(0, 9, 24), "c": rng.integers(0, 2, 24), "sex": rng.integers(0, 2, 24)})
    X["b"] = np.minimum(X["b"], 14 - X["a"])
    table = pd.DataFrame({name: rng.integers(0, 13, 300) % (2 if name in ("c", "sex") else 13) for name in X.columns})
    y = (table["a"] + rng.choice([0, 1, 2]) * table["b"] + 3 * table["c"] * table["sex"] > rng.integers(8, 22)).astype(int)
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(table, y if 0 < y.sum() < 300 else (table["a"] > 9).astype(int))
    im = budge.InteractionModel(
        [
            budge.Feature("a", "integer", bounds=(0, 12), max_increase=4), budge.Feature("b", "integer", bounds=(0, 12), max_increase=3, max_decrease=2),
            budge.Feature("c", "binary"), budge.Feature("sex", "binary", actionable=False),
        ],
        [LinearConstraint({"a": 1, "b": 1}, "<=", 14)],
    )  # fmt: skip
    truth = np.array([model.predict(im.enumerate(X.iloc[[i]]).points).mean() for i in range(len(X))])
    return model, X, im, truth


@pytest.mark.parametrize("several", [False, True])
def test_proofs_hold_in_every_cell(several):
    missed = judged = proved = 0
    for seed, way, claim, tau in product(range(4), WAYS, ("below", "above"), (0.0, 0.1, 0.5)):
        if way.get("sequential") and tau == 0:
            continue
        model, X, im, truth = world(seed)
        given = {"one": model, "other": lambda t: (t["a"] > 8).astype(int)} if several else model
        design = budge.Design(
            threshold=tau, claim=claim, method="sample", population="all", prove=True, groups="sex", testing=tau > 0, n=None if way.get("sequential") else 120,
        )  # fmt: skip
        found = budge.audit(given, X, im, target=1, design=design, **way)
        table = found.of_model("one") if several else found.table
        known = table["method"] == "proved"
        proved += int(known.sum())
        assert (table.loc[known, "rho"] == truth[known]).all()
        assert ((truth == 0) == (table["extreme"] == "none")).all()  # everybody is settled
        assert ((truth == 1) == (table["extreme"] == "every")).all()
        assert table.loc[known, ["p_value", "p_adjusted"]].isna().all().all()
        assert set(table.loc[known & (truth == 0), "verdict"]) <= {"none" if tau == 0 else "below"}
        assert set(table.loc[known & (truth == 1), "verdict"]) <= {"above"}
        if tau == 0:
            assert (table.loc[truth > 0, "verdict"] == "above").all()
        judged += int((~known).sum())
        missed += int(((truth < table["low"] - 1e-12) | (truth > table["high"] + 1e-12))[~known].sum())
        summary = found.summary("one" if several else None)
        assert summary.no_way == (truth == 0).sum()
        assert summary.open_ways == 0
        groups = found.by("sex", model="one") if several else found.by("sex")
        for sex in (0, 1):
            if tau > 0 and (~known & (X["sex"] == sex)).sum() == 0:
                share = (truth[X["sex"] == sex] < tau).mean()
                assert groups.loc[(sex, "below"), "low"] <= share <= groups.loc[(sex, "below"), "high"]
    assert proved > 200
    assert missed <= binom.ppf(1 - 1e-4, judged, 0.05)
