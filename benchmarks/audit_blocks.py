"""An audit of 1,000 people, 321 draws each, against the bare prediction of the same points: CPU time, one thread.

Cases: two whole amounts tied by a rule (Taiwan credit, XGBoost with 100 trees of depth 6), lending with its effect (XGBoost, and a scorecard that
costs next to nothing, where our own time per row is what counts). Needed: 1.3 times, and 250 ns per row.

Run: ``OMP_NUM_THREADS=1 python benchmarks/audit_blocks.py``
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import budge
from budge import Feature, InteractionModel, datasets
from budge.constraints import Rule

PEOPLE, DRAWS, REPEATS = 1000, 321, 5


def cpu(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def booster(X: pd.DataFrame, y: Any) -> Any:
    import xgboost

    return xgboost.XGBClassifier(n_estimators=100, max_depth=6, n_jobs=1, enable_categorical=True).fit(X, np.asarray(y)).predict


def amounts() -> tuple[InteractionModel, pd.DataFrame, Any, int]:
    data = datasets.taiwan()
    X = data.X.sample(PEOPLE, random_state=0)
    moves = {
        "BILL_AMT1": {"direction": "decrease", "max_decrease": 20_000},
        "PAY_AMT1": {"direction": "increase", "max_increase": 20_000},
        "PAY_0": {"direction": "decrease", "max_decrease": 2},
    }
    features = []
    for name in X.columns:
        low, high = int(data.X[name].min()) - 20_000, int(data.X[name].max()) + 20_000
        features.append(Feature(name, "integer", bounds=(low, high), **moves[name]) if name in moves else Feature(name, "fixed"))
    im = InteractionModel(features, [Rule("before.BILL_AMT1 - BILL_AMT1 <= PAY_AMT1 - before.PAY_AMT1")])
    return im, X, booster(X, data.y.loc[X.index]), 0


def lending(card: bool) -> tuple[InteractionModel, pd.DataFrame, Any, int]:
    data = datasets.lending(PEOPLE)
    model = datasets.Scorecard.fit(data.X, data.y).predict if card else booster(data.X, data.y)
    return InteractionModel.from_file(datasets.spec_path("lending")), data.X, model, 1


def measured(name: str, im: InteractionModel, X: pd.DataFrame, predict: Any, target: int) -> None:
    tables: list[pd.DataFrame] = []

    def seen(table: pd.DataFrame) -> Any:
        if len(table) > 2 * PEOPLE:
            tables.append(table)
        return predict(table)

    how: dict[str, Any] = {"target": target, "seed": 1, "n": DRAWS, "population": "all", "method": "sample"}
    budge.audit(seen, X, im, **how)
    rows = sum(map(len, tables))
    bare = min(cpu(lambda: [predict(table) for table in tables]) for _ in range(REPEATS))
    runs = sorted(cpu(lambda: budge.audit(predict, X, InteractionModel.from_spec(im.to_spec()), **how)) for _ in range(REPEATS))
    whole = runs[REPEATS // 2]
    own = 1e9 * (whole - bare) / rows
    print(f"{name}: {rows:,} points, bare {1e9 * bare / rows:.0f} ns per row; audit {whole / bare:.2f} times, our own {own:.0f} ns per row")


if __name__ == "__main__":
    measured("two whole amounts tied by a rule, XGBoost", *amounts())
    measured("lending, XGBoost", *lending(card=False))
    measured("lending, scorecard", *lending(card=True))
