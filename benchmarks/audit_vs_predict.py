"""What an audit costs beside the bare predictions: german exactly, COMPAS by 1,574 draws a person; CPU time, one run, ratios.

Run: ``python benchmarks/audit_vs_predict.py`` (needs budge[models] and the data sets; ``--people`` for fewer COMPAS defendants).
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import xgboost

import budge
from budge import datasets
from budge.reach.draw import sample_blocks

STUDIES = Path(__file__).parent.parent / "studies"


def timed(work):
    start, clock = time.process_time(), time.perf_counter()
    result = work()
    return result, time.process_time() - start, time.perf_counter() - clock


def german() -> None:
    # XGBoost accepts no "<" in a name; apart from that the table and the spec are the study's own.
    text = (STUDIES / "german.yaml").read_text(encoding="utf-8").replace("LoanDuration<=6", "LoanDuration_le_6")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "german.yaml"
        path.write_text(text, encoding="utf-8")
        im, fresh = budge.InteractionModel.from_file(path), budge.InteractionModel.from_file(path)
    data = datasets.german()
    X = data.X.rename(columns={"LoanDuration<=6": "LoanDuration_le_6"})
    model = xgboost.XGBClassifier(n_estimators=100, max_depth=6, n_jobs=1).fit(X, data.y)
    points = pd.concat([im.enumerate(X.iloc[[i]]).points for i in range(len(X))], ignore_index=True)
    budge.audit(model, X.head(5), im, target=1)
    _, bare, _ = timed(lambda: model.predict(points))
    _, matrix, _ = timed(lambda: model.predict(points.to_numpy(dtype=np.float32)))
    result, whole, wall = timed(lambda: budge.audit(model, X, fresh, target=1, population="all"))
    assert int(result.table["n"].sum()) == len(points)
    print(
        f"german, exact, {len(points):,} points: audit {whole:.2f} s CPU ({wall:.2f} s), bare prediction {bare:.2f} s: {whole / bare:.2f} x "
        f"(limit 2); of the points as a ready float32 matrix {matrix:.2f} s"
    )


def compas(people: int) -> None:
    text = (STUDIES / "compas.yaml").read_text(encoding="utf-8").replace("age_<_21", "age_lt_21")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "compas.yaml"
        path.write_text(text, encoding="utf-8")
        im = budge.InteractionModel.from_file(path)
    data = datasets.compas()
    table = data.X.rename(columns={"age_<_21": "age_lt_21"})
    X = table.head(people)
    model = xgboost.XGBClassifier(n_estimators=100, max_depth=6, n_jobs=1).fit(table, data.y)
    block = next(iter(sample_blocks(im, X, 1574, block_rows=100_000))).points
    model.predict(block)
    _, one, _ = timed(lambda: model.predict(block))
    bare = one * (len(X) * 1574) / len(block)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _, whole, wall = timed(lambda: budge.audit(model, X, im, target=0, method="sample", n=1574, seed=1))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"COMPAS, {len(X):,} people x 1,574 draws: audit {whole:.1f} s CPU ({wall:.1f} s), bare prediction {bare:.1f} s: {whole / bare:.2f} x "
        f"(limit 1.3); memory {before / 1024:.0f} -> {peak / 1024:.0f} MB"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--people", type=int, default=6172)
    parser.add_argument("--only", choices=["german", "compas"])
    options = parser.parse_args()
    np.random.seed(0)
    if options.only != "compas":
        german()
    if options.only != "german":
        compas(options.people)
