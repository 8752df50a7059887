"""Cost of an ablation of german with all its relaxations, against the bare prediction of the distinct points that it asks about.

Run with ``BUDGE_DATA`` set: ``python benchmarks/stress_ablation.py [people]``. The points are kept as the ablation asks about them,
the bare prediction runs over the same batches in the same process, and the ratio is what counts.

"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import budge
from budge.models import as_predictor
from budge.stress import ablate

SPEC = Path(__file__).resolve().parents[1] / "studies" / "german.yaml"
LIMIT = 1.3


class Counting:
    """A predictor that times the bare model on each batch besides."""

    def __init__(self, model: Any) -> None:
        self.model, self.inner = model, as_predictor(model)
        self.bare = 0.0
        self.rows = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def predict_resolved(self, frame: Any, **options: Any) -> Any:
        array = frame.to_numpy()
        began = time.perf_counter()
        self.model.predict(array)
        self.bare += time.perf_counter() - began
        self.rows += len(array)
        return self.inner.predict_resolved(frame, **options)


def main(people: int = 1000) -> float:
    import xgboost

    german = budge.datasets.german()
    model = xgboost.XGBClassifier(n_estimators=100, max_depth=6, n_jobs=2).fit(german.X.to_numpy(), german.y)
    im = budge.InteractionModel.from_file(SPEC)
    X = german.X.iloc[:people]
    ablate(model, X.iloc[:5], im, target=1)  # warm up
    counting = Counting(model)
    began = time.perf_counter()
    result = ablate(counting, X, im, target=1, population="all", execution=budge.Execution(check=False))
    whole = time.perf_counter() - began - counting.bare
    ratio = whole / counting.bare
    exact = int((result.table["method_after"] == "exact").sum())
    print(
        f"{people} applicants, {len(result.ranking)} relaxations: {exact:,} of {len(result.table):,} relaxed sets listed in full"
    )
    print(
        f"{counting.rows:,} points asked; bare prediction {counting.bare:.2f} s, ablation {whole:.2f} s: {ratio:.2f} times (at most {LIMIT})"
    )
    print(f"best gain: {result.ranking['relaxation'][0]} ({result.ranking['gain'][0]:+.4f})")
    return ratio


if __name__ == "__main__":
    np.seterr(all="raise", under="ignore")
    sys.exit(0 if main(*(int(a) for a in sys.argv[1:])) <= LIMIT else 1)
