"""Proofs and least plans on Taiwan's card clients: CPU seconds per person, beside what is needed.

Asked are clients whom the model expects to default and whom 321 draws do not lead out. The first 2, 4, 8 or 13 amounts move, each by a tenth or by half of its
95th percentile; everything else is frozen. Needed: medians under 0.2 s with 2, 4 and 8 free amounts and nothing unresolved with 13, where a proof may take 5 s
(XGBoost, 100 trees of depth 6); under 10 ms per person for a logistic model. Then whole tasks: `budge.prove` per client, and an audit with proofs
against the same audit without.

Run: ``OMP_NUM_THREADS=1 python benchmarks/proof_boxes.py [people]``
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

import budge
from budge import Feature, InteractionModel, datasets
from budge.constraints import Rule
from budge.models import as_predictor
from budge.proof.costs import Cost
from budge.proof.goals import goal_of
from budge.proof.prover import Prover
from budge.proof.reading import read
from budge.proof.structure import codes_of, columns_of
from budge.targets import as_target

DRAWS, SCREENED = 321, 5000  # draws that miss; clients at most who are looked at for that
TARGET = 0  # the client pays
FREE, WIDTHS = (2, 4, 8, 13), (0.1, 0.5)
MEDIAN, SECONDS, LINEAR = 0.2, 5.0, 0.010  # needed, in seconds of CPU: median up to 8 free; longest with 13; a logistic model
TASK, BLOCK = 300, 100  # clients of the whole tasks; clients who are screened at a time
ROOM = 2000  # by which two payments together may rise, where a rule limits them
RULE = f"PAY_AMT1 + PAY_AMT2 - before.PAY_AMT1 - before.PAY_AMT2 <= {ROOM}"


def moves(X: pd.DataFrame, free: int, width: float, rules: Sequence[str] = ()) -> InteractionModel:
    """Return the interaction model in which the first columns move by a share of their 95th percentile."""
    features = []
    for j, name in enumerate(X.columns):
        step, bounds = max(1, int(width * X[name].quantile(0.95))), (int(X[name].min()), int(X[name].max()))
        moving = Feature(name, "integer", bounds=bounds, max_increase=step, max_decrease=step)
        features.append(moving if j < free else Feature(name, "fixed"))
    return InteractionModel(features, [Rule(rule) for rule in rules])


class Bench:
    """One model, read once, and the clients it refuses in a random order."""

    def __init__(self, name: str, model: Any, X: pd.DataFrame) -> None:
        self.name, self.X, self.predictor = name, X, as_predictor(model)
        began = time.process_time()
        self.structure = read(self.predictor, X, columns_of(X, moves(X, max(FREE), 0.5).features))
        print(f"{name}: structure read and checked in {time.process_time() - began:.2f} s", flush=True)
        refused = X[np.asarray(self.predictor.predict(X)) != TARGET]
        self.refused = refused.sample(frac=1, random_state=0)

    def attains(self, codes: np.ndarray) -> np.ndarray:
        return np.asarray(self.predictor.predict(pd.DataFrame(codes, columns=self.X.columns))) == TARGET

    def missed(self, im: InteractionModel, people: int) -> tuple[np.ndarray, int]:
        """Return coded clients whom draws miss, and how many were looked at."""
        rng, found, looked = np.random.default_rng(1), list[np.ndarray](), 0
        for first in range(0, min(SCREENED, len(self.refused)), BLOCK):
            rows = codes_of(self.structure.columns, self.refused.iloc[first : first + BLOCK])
            if im.constraints:
                drawn = np.repeat(rows, DRAWS, axis=0).reshape(len(rows), DRAWS, -1)
                kept = [i for i, row in enumerate(rows) if self._drawn(im, row, drawn[i])]
                rows, drawn = rows[kept], drawn[kept]
            else:
                drawn = np.repeat(rows[:, None], DRAWS, axis=1)
                for j, f in enumerate(im.features):
                    if f.type != "fixed":
                        low, high = (rows[:, j] + end for end in f.moves(rows[:, j]))
                        drawn[:, :, j] = rng.integers(low.astype(int)[:, None], high.astype(int)[:, None] + 1, drawn.shape[:2])
            hit = self.attains(drawn.reshape(-1, drawn.shape[2])).reshape(len(rows), DRAWS).any(axis=1)
            for row, good in zip(rows, hit):
                looked += 1
                if not good:
                    found.append(row)
                if len(found) == people:
                    return np.array(found), looked
        return np.array(found), looked

    def _drawn(self, im: InteractionModel, row: np.ndarray, into: np.ndarray) -> bool:
        """Write the draws of one client; False where they break the rules before any move."""
        start = dict(zip(self.X.columns, row.astype(int).tolist()))
        try:
            into[:] = im.sample(start, DRAWS, seed=1).values
        except budge.errors.BudgeError:
            return False
        return True

    def measure(self, title: str, im: InteractionModel, people: int, plans: int, most: tuple[str, float]) -> bool:
        """Print the figures of one case; return whether they are as needed."""
        rows, looked = self.missed(im, people)
        prover = Prover(self.structure, im)
        goal = goal_of(self.structure.answer, self.predictor.reading, as_target(TARGET), 1 - TARGET)
        cost = Cost.of(None, im, columns=[c.name for c in self.structure.columns])
        proofs, searches, found, least = list[float](), list[float](), Counter[str](), Counter[str]()
        for row in rows[:1]:  # what is made once is not a person's time
            prover.prove(row, goal, self.attains)
        for row in rows:
            began = time.process_time()
            proof = prover.prove(row, goal, self.attains)
            proofs.append(time.process_time() - began)
            found[f"unresolved ({proof.reason})" if proof.reason else proof.status] += 1
            if proof.point is not None and (not self.attains(proof.point[None])[0] or not _allowed(im, row, proof.point)):
                found["WRONG"] += 1
            if proof.status == "possible" and len(searches) < plans:
                began = time.process_time()
                answer = prover.least(row, goal, self.attains, cost, best=[proof.point])
                searches.append(time.process_time() - began)
                plan = answer.plans[0]
                least["proved least" if plan.optimal else "best found"] += 1
                if not self.attains(plan.point[None])[0] or not _allowed(im, row, plan.point):
                    least["WRONG"] += 1
        if not proofs:
            print(f"  {title:30s} nobody: each of {looked:,} refused clients has a hit", flush=True)
            return True
        kind, limit = most
        value = max(proofs) if kind == "max" else float(np.median(proofs))
        good = value < limit and not (kind == "max" and any(k.startswith("unresolved") for k in found)) and not found["WRONG"] + least["WRONG"]
        print(
            f"  {title:30s} {len(rows)} missed of {looked:,}: median {_ms(np.median(proofs))}, p90 {_ms(np.quantile(proofs, 0.9))}, max {_ms(max(proofs))}"
            f" (needed: {kind} {_ms(limit)}{', none unresolved' if kind == 'max' else ''}: {'yes' if good else 'NO'}); {_said(found)}"
            + (f"; least plan of {len(searches)}: median {_ms(np.median(searches))}, max {_ms(max(searches))}, {_said(least)}" if searches else ""),
            flush=True,
        )
        return good

    def tasks(self, im: InteractionModel) -> None:
        """Print what whole tasks take."""
        model, people = self.predictor, self.refused.head(TASK)
        began = time.process_time()
        proofs = budge.prove(model, people, im, target=TARGET)
        took = time.process_time() - began
        print(f"  budge.prove, {len(people)} refused clients: {took:.2f} s, {_ms(took / len(people))} per client; {proofs}", flush=True)
        seconds = []
        for prove in (False, True):
            began = time.process_time()
            found = budge.audit(model, people, im, target=TARGET, seed=1, prove=prove)
            seconds.append(time.process_time() - began)
        times = f"{seconds[0]:.2f} s, with prove=True {seconds[1]:.2f} s: {seconds[1] / seconds[0]:.2f} times"
        print(f"  budge.audit, the same clients: {times}; {str(found).splitlines()[0]}", flush=True)


def _allowed(im: InteractionModel, row: np.ndarray, point: np.ndarray) -> bool:
    """Return whether a point keeps to the steps, bounds, whole numbers and rules, written out here once more."""
    for j, f in enumerate(im.features):
        change = point[j] - row[j]
        if f.type == "fixed":
            good = change == 0
        else:
            low, high = f.range
            good = float(point[j]).is_integer() and -f.max_decrease <= change <= f.max_increase and low <= point[j] <= high
        if not good:
            return False
    if im.constraints:
        rise = dict(zip((f.name for f in im.features), point - row))
        return bool(rise["PAY_AMT1"] + rise["PAY_AMT2"] <= ROOM)
    return True


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _said(found: Counter[str]) -> str:
    return ", ".join(f"{count} {word}" for word, count in found.items() if count)


def main() -> None:
    import xgboost
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    people = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    data = datasets.taiwan()
    amounts = [name for name in data.X.columns if "AMT" in name or name == "LIMIT_BAL"]
    X = data.X[[*amounts, *(name for name in data.X.columns if name not in amounts)]]
    y, good = data.y.to_numpy(), []
    trees = Bench("XGBoost, 100 trees of depth 6", xgboost.XGBClassifier(n_estimators=100, max_depth=6, n_jobs=1, random_state=0).fit(X, y), X)
    for width in WIDTHS:
        for free in FREE:
            most = ("max", SECONDS) if free == max(FREE) else ("median", MEDIAN)
            good.append(trees.measure(f"{free} free, width {width}", moves(X, free, width), people, 3 if free > 4 else 10, most))
    trees.tasks(moves(X, 4, 0.1))
    linear = Bench("logistic, scaled", make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X, y), X)
    for width in WIDTHS:
        for free in FREE:
            good.append(linear.measure(f"{free} free, width {width}", moves(X, free, width), people, 10, ("max", LINEAR)))
        good.append(linear.measure(f"13 free, a rule, width {width}", moves(X, 13, width, [RULE]), people, 10, ("max", LINEAR)))
    linear.tasks(moves(X, 4, 0.1))
    print(f"CPU of the whole program: {time.process_time():.0f} s")
    raise SystemExit(None if all(good) else "a proof takes more than it may")


if __name__ == "__main__":
    main()
