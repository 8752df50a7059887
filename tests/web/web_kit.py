"""What the tests of the page share: a small world, two models, a client with the right headers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd

import budge
from budge import Feature, constraints

TOKEN = "a-token-for-tests"
ORIGIN = "http://127.0.0.1:5000"
HOSTILE = "<script>alert('x')</script>\"&'=cmd|' /C calc'!A0\x1b[31m"


def people(n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    low = rng.integers(0, 2, n)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, n),
            "years": rng.integers(0, 6, n),
            "ge_1": low,
            "ge_5": low * rng.integers(0, 2, n),
            "balance": rng.integers(0, 4, n),
            "home": pd.Categorical(rng.choice(["rent", "own"], n), categories=["rent", "own"]),
            "note": [f"p{i}" for i in range(n)],
        },
        index=[f"P{i:03d}" for i in range(n)],
    )


def model() -> budge.InteractionModel:
    return budge.InteractionModel(
        [
            Feature("age", "integer", bounds=(18, 99), actionable=False),
            Feature("years", "integer", bounds=(0, 20), direction="increase", max_increase=2),
            Feature("ge_1", "binary"),
            Feature("ge_5", "binary"),
            Feature("balance", "integer", bounds=(0, 4)),
            Feature("home", "category", levels=("rent", "own")),
        ],
        [
            constraints.DirectionalLinkage("years", {"age": 1}, name="ageing"),
            constraints.Thermometer(("ge_1", "ge_5"), direction="increase", name="savings"),
            constraints.IfThen("home == 'own'", "balance >= 1", name="owners pay"),
        ],
        name="loans",
    )


def world() -> tuple[pd.DataFrame, budge.InteractionModel]:
    """People who keep the model: owners pay."""
    X = people()
    X.loc[(X["home"] == "own") & (X["balance"] < 1), "balance"] = 1
    return X, model()


def strict(table: pd.DataFrame) -> np.ndarray:
    score = table["years"] + 2 * table["ge_5"] + table["balance"] + (table["home"] == "own") - (table["age"] > 40)
    return (score >= 8).to_numpy().astype(int)


def kind(table: pd.DataFrame) -> np.ndarray:
    return ((table["balance"] + table["ge_1"]) >= 3).to_numpy().astype(int)


MODELS = {"strict": strict, "kind": kind}


def drawn() -> tuple[pd.DataFrame, budge.InteractionModel]:
    """A world that cannot be listed: a continuous feature, and a random effect."""
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"pay": rng.uniform(0, 10, 30).round(2), "saved": rng.integers(0, 50, 30)})
    im = budge.InteractionModel(
        [Feature("pay", "real", bounds=(0, 12), max_increase=3), Feature("saved", "integer", bounds=(0, 60), max_increase=10, direction="increase")],
        effects=[budge.Effect("saved", "round(normal(2 * action.pay, 1))", clip=(0, 60))],
    )
    return X, im


def rich(table: pd.DataFrame) -> np.ndarray:
    return ((4 * table["pay"] + table["saved"]) >= 50).to_numpy().astype(int)


def scored(table: pd.DataFrame) -> np.ndarray:
    """A score; the target is at least 8."""
    return (table["years"] + 2 * table["ge_5"] + table["balance"] + (table["home"] == "own") - (table["age"] > 40)).to_numpy().astype(float)


def silent(table: pd.DataFrame) -> np.ndarray:
    """The strict model without an answer where the balance is 4, which nobody has at the start."""
    return np.where(table["balance"] == 4, None, strict(table).astype(object))


WORDS = {
    "people_name": "applicants", "target_name": "approval", "group_labels": {"home": {"rent": "tenants", "own": "owners"}},
    "feature_labels": {"balance": "account balance"},
}  # fmt: skip


def truth_of(models: Any, X: pd.DataFrame, im: budge.InteractionModel, **options: Any) -> budge.Audit:
    """What the library says: everybody, and those whom an edit puts outside its bounds are skipped, as on the page."""
    return budge.audit(models, X, im, **{"target": 1, "population": "all", "design": budge.Design(on_invalid="skip"), **options})


class Page:
    """A client of the page, as its own script would be."""

    def __init__(self, app: Any) -> None:
        from starlette.testclient import TestClient

        self.app = app
        self.client = TestClient(app, base_url=ORIGIN)
        self.headers = {"X-Budge-Token": app.token, "Origin": ORIGIN, "Sec-Fetch-Site": "same-origin"}

    def ask(self, path: str, **record: Any) -> Any:
        return self.client.post(f"/api/{path}", json=record, headers=self.headers)

    def post(self, path: str, **record: Any) -> Any:
        answer = self.ask(path, **record)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def problems(self, path: str, status: int = 400, **record: Any) -> list[dict[str, Any]]:
        answer = self.ask(path, **record)
        assert answer.status_code == status, answer.text
        found = answer.json()["problems"]
        assert all({"what", "where", "got", "remedy"} <= set(p) for p in found)
        return found

    def look(self, state: dict[str, Any], who: str | None = None, **more: Any) -> dict[str, list[dict[str, Any]]]:
        answer = self.ask("look", state=state, who=who, window="w", **more)
        assert answer.status_code == 200, answer.text
        found: dict[str, list[dict[str, Any]]] = {}
        for line in answer.text.splitlines():
            record = json.loads(line)
            found.setdefault(record["kind"], []).append(record)
        return found
