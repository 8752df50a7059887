"""What the audit tests share: planted models with known responsiveness."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import budge
from budge import Execution, Feature, constraints

ONCE = Execution(check=False)  # nothing is asked twice

PROPOSAL = {"balance": {"weights": {0: 1, 1: 1, 2: 2, 3: 3, 4: 4}}}
#: Ways to ask about the twelve applicants of `loans`.
ROUTES: dict[str, dict[str, Any]] = {
    "listed": {},
    "everybody": {"population": "all", "groups": ["home", "closed"]},
    "labelled": {"population": "all", "groups": {"closed": {0: "open", 1: "shut"}}, "harm": "below"},
    "a condition": {"population": "age < 40"},
    "a mask": {"population": np.arange(12) % 2 == 0},
    "drawn": {"method": "sample", "population": "all"},
    "stopped": {"method": "sample", "sequential": True, "n": 80, "population": "all"},
    "weighted": {"method": "sample", "n": 100, "proposal": PROPOSAL, "population": "all"},
    "no way": {"threshold": 0, "population": "all"},
}


def loans() -> tuple[pd.DataFrame, budge.InteractionModel]:
    """Twelve applicants in a small discrete world with a linkage, a thermometer and a switch."""
    rng = np.random.default_rng(5)
    ge_1 = rng.integers(0, 2, 12)
    X = pd.DataFrame(
        {
            "age": rng.integers(20, 60, 12),
            "years": rng.integers(0, 6, 12),
            "ge_1": ge_1,
            "ge_5": ge_1 * rng.integers(0, 2, 12),
            "closed": rng.integers(0, 2, 12),
            "balance": rng.integers(0, 4, 12),
            "home": pd.Categorical(rng.choice(["rent", "own"], 12), categories=["rent", "own"]),
            "note": [f"p{i}" for i in range(12)],
        }
    )
    im = budge.InteractionModel(
        [
            Feature("age", "integer", bounds=(18, 99), actionable=False),
            Feature("years", "integer", bounds=(0, 20), direction="increase", max_increase=2),
            Feature("ge_1", "binary"),
            Feature("ge_5", "binary"),
            Feature("closed", "binary"),
            Feature("balance", "integer", bounds=(0, 4)),
            Feature("home", "category", levels=("rent", "own")),
        ],
        [
            constraints.DirectionalLinkage("years", {"age": 1}),
            constraints.Thermometer(("ge_1", "ge_5"), direction="increase"),
            constraints.Switch("closed == 1", ("balance",)),
        ],
        name="loans",
    )
    return X, im


def approve(table: pd.DataFrame) -> np.ndarray:
    """Approve by points; a plain function of the table."""
    score = table["years"] + 2 * table["ge_5"] + table["balance"] + (table["home"] == "own") - (table["age"] > 40)
    return (score >= 4).to_numpy().astype(int)


def dials(n: int, seed: int = 0) -> tuple[pd.DataFrame, budge.InteractionModel]:
    """People with a known responsiveness each: the model hits where a free dial is below the person's own rate."""
    rng = np.random.default_rng(seed)
    rate = rng.choice([0.0, 0.01, 0.05, 0.1, 0.3, 0.7, 1.0], n)
    X = pd.DataFrame({"dial": 0.5, "rate": rate, "who": np.arange(n)})
    still = [Feature("rate", "real", actionable=False), Feature("who", "integer", actionable=False)]
    im = budge.InteractionModel([Feature("dial", "real", bounds=(0, 1)), *still])
    return X, im


def below_rate(table: pd.DataFrame) -> np.ndarray:
    """1 where the dial is below the rate."""
    return (table["dial"].to_numpy() < table["rate"].to_numpy()).astype(int)
