"""Cost of a report of German credit: ``python benchmarks/report_cost.py [people]``, with ``BUDGE_DATA`` set.

Two ratios of CPU time, each in one process: the report without its section Why against its audit (two models, all people; at most 3), and the section
Why against the bare prediction of the points that it asks about (the first model, those whom it refuses; at most 1.5). Bare predictions run over the very
batches that are asked. Ends with an error where a ratio is larger.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import budge
from budge.models import as_predictor
from budge.report.why import ablated

SPEC = Path(__file__).resolve().parents[1] / "studies" / "german.yaml"
MOST_REPORT, MOST_WHY = 3.0, 1.5


class Timed:
    """A predictor that times the bare model on each batch besides."""

    def __init__(self, model: Any) -> None:
        self.model, self.inner = model, as_predictor(model)
        self.bare, self.rows = 0.0, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def predict_resolved(self, frame: Any, **options: Any) -> Any:
        array = frame.to_numpy()
        began = time.process_time()
        self.model.predict(array)
        self.bare += time.process_time() - began
        self.rows += len(array)
        return self.inner.predict_resolved(frame, **options)


def main(people: int = 1000) -> bool:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from xgboost import XGBClassifier

    german = budge.datasets.german()
    X, y = german.X, german.y
    trees = XGBClassifier(n_estimators=100, max_depth=6, n_jobs=1).fit(X.to_numpy(), y)
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X.to_numpy(), y)
    im = budge.InteractionModel.from_file(SPEC)
    people_ = X.iloc[:people]
    with tempfile.TemporaryDirectory() as folder:
        warm = budge.audit({"XGBoost": trees, "LR": linear}, X.iloc[:5], im, target=1, population="all")
        warm.to_html(Path(folder) / "warm.html", by=["Male"])
        began = time.process_time()
        audit = budge.audit({"XGBoost": trees, "LR": linear}, people_, im, target=1, population="all")
        between = time.process_time()
        audit.to_html(Path(folder) / "report.html", by=["Male"], why=False)
        report = time.process_time() - between
    first = report / (between - began)
    print(f"{people} people, two models: audit {between - began:.2f} s, report without Why {report:.2f} s: {first:.2f} times (at most {MOST_REPORT:g})")
    timed = Timed(trees)
    alone = budge.audit(timed, people_, im, target=1, threshold=0.1)
    timed.bare, timed.rows = 0.0, 0
    began = time.process_time()
    found, about = ablated(alone, "model")
    whole = time.process_time() - began - timed.bare
    second, bare = whole / timed.bare, timed.bare
    assert found is not None
    told = f"Why: {timed.rows:,} points, {found.info['people']} people, {len(found.ranking)} relaxations"
    print(f"{told}: {whole:.2f} s, bare prediction {bare:.2f} s: {second:.2f} times (at most {MOST_WHY:g})")
    print(about or "It is about all of them.")
    return first <= MOST_REPORT and second <= MOST_WHY


if __name__ == "__main__":
    sys.exit(0 if main(*(int(a) for a in sys.argv[1:])) else 1)
