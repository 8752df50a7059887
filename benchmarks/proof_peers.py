"""Least plans beside two peers, for the same people and the same forest: oceanpy (constraint programming on trees) and DiCE (any model, by search).

Taiwan's card clients, a scikit-learn forest of 50 trees of depth 5, trained on the first 20,000. Six amounts are free between 0 and their 95th percentile, all
other columns are frozen, every number is whole; asked are clients among the others who are refused and lie within these bounds. Every plan, whoever made it, is
judged here: whether the forest answers the target, whether the plan keeps to bounds and frozen columns, whether numbers are whole, how many features change,
and how far (sum of changes, each as a share of its bounds). Times are CPU seconds per person.

Peers run in environments and processes of their own: oceanpy needs Python 3.12 or later, and its solver cannot be loaded beside ours. To make them::

    python3.12 -m venv ocean-env && ocean-env/bin/pip install oceanpy scikit-learn pandas
    python3 -m venv dice-env && dice-env/bin/pip install dice-ml

Run: ``OMP_NUM_THREADS=1 python benchmarks/proof_peers.py --ocean ocean-env/bin/python --dice dice-env/bin/python [--people 12] [--seconds 10]``
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

FREE = ("LIMIT_BAL", "BILL_AMT1", "BILL_AMT2", "PAY_AMT1", "PAY_AMT2", "PAY_AMT3")
TRAINED, WANTED, LONGEST = 20_000, 1, 900  # rows of training; the label of those who pay; seconds of the clock for all people of one method
PEERS = {"ocean": "pip install oceanpy scikit-learn pandas  (Python 3.12 or later)", "dice": "pip install dice-ml"}
METHODS = {"ocean": ("ocean", "ocean-held"), "dice": ("dice-random", "dice-genetic")}
NAMES = {
    "ocean": "oceanpy, as offered",
    "ocean-held": "oceanpy, held and rounded",
    "dice-random": "DiCE, random",
    "dice-genetic": "DiCE, genetic",
}


@dataclass(frozen=True)
class Problem:
    """What everybody is asked: the table of training, the people, and the bounds of the free columns."""

    X: pd.DataFrame
    y: np.ndarray
    people: pd.DataFrame
    bounds: dict[str, tuple[int, int]]
    seconds: float

    @property
    def scale(self) -> np.ndarray:
        """Return the width of each column's bounds; of frozen columns, the range of their values."""
        columns = ((self.bounds.get(name), self.X[name]) for name in self.X.columns)
        return np.array([ends[1] - ends[0] if ends is not None else max(column.max() - column.min(), 1) for ends, column in columns], dtype=float)

    @property
    def origin(self) -> np.ndarray:
        """Return the least value of each column's bounds, or of its values."""
        return np.array([self.bounds[name][0] if name in self.bounds else self.X[name].min() for name in self.X.columns], dtype=float)

    def save(self, folder: Path) -> None:
        self.X.assign(_y=self.y).to_csv(folder / "training.csv", index=False)
        self.people.to_csv(folder / "people.csv", index=False)
        (folder / "asked.json").write_text(json.dumps({"bounds": self.bounds, "seconds": self.seconds}))

    @classmethod
    def load(cls, folder: Path) -> Problem:
        table, asked = pd.read_csv(folder / "training.csv"), json.loads((folder / "asked.json").read_text())
        return cls(table.drop(columns="_y"), table["_y"].to_numpy(), pd.read_csv(folder / "people.csv"), asked["bounds"], asked["seconds"])


@dataclass
class Answer:
    """What one person got: plans as rows of the table, CPU seconds, and what the method states about them.

    `attained` tells whether the plans attain the target by a forest in other units than the table's; None where the forest is the one here.
    """

    plans: list[list[float]]
    seconds: float
    said: str = ""
    attained: bool | None = None


def forest(X: Any, y: np.ndarray) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(50, max_depth=5, random_state=0).fit(X, y)


# What runs in the peers' own environments -----------------------------------------------------------------------------------------


def ocean(problem: Problem, held: bool) -> Iterator[Answer]:
    """Yield oceanpy's answers. `held` adds rows to its constraint program that keep to bounds and frozen columns, and rounds its plans away from the start."""
    from ocean import ConstraintProgrammingExplainer
    from ocean.feature import parse_features

    both = pd.concat([problem.X, problem.people]).astype(float)
    low, scale = problem.origin, problem.scale
    table, mapper = parse_features((both - low) / scale, scale=False)[:2]  # its distance is ours
    scaled = table.to_numpy(float)
    model = forest(table.iloc[: len(problem.X)], problem.y)
    explainer = ConstraintProgrammingExplainer(model, mapper=mapper)
    for i, x in enumerate(scaled[len(problem.X) :]):
        began = time.process_time()
        if held:
            for j, (name, key) in enumerate(zip(problem.X.columns, mapper.keys())):
                variable, feature = explainer.vget(j), explainer.mapper[key]
                if not feature.is_continuous:
                    explainer.add_garbage(explainer.Add(variable == int(x[j])))
                    continue
                levels = np.asarray(feature.levels)  # cell i: above level i, up to level i + 1
                ends = (0.0, 1.0) if name in problem.bounds else (x[j], x[j])
                first, last = (max(int(np.searchsorted(levels, end, side="left")) - 1, 0) for end in ends)
                explainer.add_garbage(explainer.Add(variable >= first), explainer.Add(variable <= last))
        found = explainer.explain(x, y=WANTED, norm=1, max_time=problem.seconds, num_workers=1)
        point = None if found is None else np.asarray(found.to_numpy(), dtype=float)
        took = time.process_time() - began
        plans, attained = [], None
        if point is not None:
            start, raw = problem.people.iloc[i].to_numpy(float), point * scale + low
            if held:
                raw = np.where(raw > start, np.ceil(raw), np.floor(raw))
            else:
                attained = bool(model.predict(pd.DataFrame([point], columns=table.columns))[0] == WANTED)
            plans.append(np.where(point == x, start, raw).tolist())
        yield Answer(plans, took, explainer.get_solving_status().lower(), attained)


def dice(problem: Problem, method: str) -> Iterator[Answer]:
    """Yield DiCE's answers, three plans per person."""
    import dice_ml

    names = list(problem.X.columns)
    model = forest(problem.X.to_numpy(float), problem.y)

    class Asked:
        def predict(self, table: Any) -> Any:
            return model.predict(np.asarray(table, dtype=float))

        def predict_proba(self, table: Any) -> Any:
            return model.predict_proba(np.asarray(table, dtype=float))

    data = dice_ml.Data(dataframe=problem.X.head(5000).assign(out=problem.y[:5000]), continuous_features=names, outcome_name="out")
    explainer = dice_ml.Dice(data, dice_ml.Model(model=Asked(), backend="sklearn"), method=method)
    more = {"random_seed": 0} if method == "random" else {}
    np.random.seed(0)
    for i in range(len(problem.people)):
        began, found, said = time.process_time(), None, "plans"
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                asked = explainer.generate_counterfactuals(
                    problem.people.iloc[[i]], total_CFs=3, desired_class=WANTED, features_to_vary=list(problem.bounds),
                    permitted_range={name: list(ends) for name, ends in problem.bounds.items()}, verbose=False, **more,
                )  # fmt: skip
            found = asked.cf_examples_list[0].final_cfs_df
        except Exception as error:
            said = "none found" if "No counterfactuals found" in str(error) else f"{type(error).__name__}: {str(error)[:80]}"
        plans = [] if found is None else found[names].astype(float).to_numpy().tolist()
        yield Answer(plans, time.process_time() - began, said if plans or said != "plans" else "none found")


def answer(method: str, folder: Path) -> None:
    """Write a peer's answers, one line per person."""
    warnings.filterwarnings("ignore")
    problem = Problem.load(folder)
    answers = ocean(problem, method == "ocean-held") if method.startswith("ocean") else dice(problem, method.removeprefix("dice-"))
    with (folder / f"{method}.jsonl").open("w") as out:
        for found in answers:
            print(json.dumps([found.plans, found.seconds, found.said, found.attained]), file=out, flush=True)


# What runs here -------------------------------------------------------------------------------------------------------------------


def taiwan(people: int, seconds: float) -> Problem:
    from budge import datasets

    data = datasets.taiwan()
    X, y = data.X, 1 - data.y.to_numpy()
    bounds = {name: (0, int(np.ceil(X[name].quantile(0.95)))) for name in FREE}
    model = forest(X[:TRAINED], y[:TRAINED])
    others = X[TRAINED:]
    inside = np.all([others[name].between(*ends) for name, ends in bounds.items()], axis=0)
    refused = others[inside & (model.predict(others) != WANTED)]
    return Problem(X[:TRAINED], y[:TRAINED], refused.sample(people, random_state=3).reset_index(drop=True), bounds, seconds)


def ours(problem: Problem, model: Any, cost: dict[str, float] | None) -> list[Answer]:
    import budge

    features = [
        budge.Feature(name, "integer", bounds=problem.bounds[name]) if name in problem.bounds else budge.Feature(name, "fixed") for name in problem.X.columns
    ]
    im, found = budge.InteractionModel(features), []
    for i in range(len(problem.people)):
        began = time.process_time()
        plan = budge.recourse(model, problem.people.iloc[[i]], im, target=WANTED, cost=cost)
        said = "proved impossible" if plan.status == "impossible" else plan.status if not len(plan) else "proved least" if plan.optimal else "best found"
        found.append(Answer(plan.points.to_numpy(float).tolist(), time.process_time() - began, said))
    return found


def peer(method: str, python: str, folder: Path) -> tuple[list[Answer], str]:
    """Return a peer's answers, and what went wrong."""
    surroundings = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    wrong = ""
    try:
        ran = subprocess.run(
            [python, str(Path(__file__).resolve()), "--answer", method, "--folder", str(folder)], capture_output=True, text=True, timeout=LONGEST,
            env=surroundings, check=False,
        )  # fmt: skip
        if ran.returncode:
            wrong = ran.stderr.strip().splitlines()[-1] if ran.stderr.strip() else f"exit status {ran.returncode}"
    except subprocess.TimeoutExpired:
        wrong = f"stopped after {LONGEST} s"
    file = folder / f"{method}.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    return [Answer(*json.loads(line)) for line in lines], wrong


def best(problem: Problem, plans: list[list[float]], start: np.ndarray) -> tuple[int, float]:
    """Return features changed and distance of the plan that changes the fewest, then the least."""
    rows = [(int((np.array(plan) != start).sum()), float((np.abs(np.array(plan) - start) / problem.scale).sum())) for plan in plans]
    return min(rows)


def judge(problem: Problem, answers: list[Answer], attains: Callable[[np.ndarray], np.ndarray]) -> tuple[str, dict[int, tuple[int, float]]]:
    """Return a row of figures, and the best plan of each person that attains the target, whether or not it keeps to the rules."""
    names = list(problem.X.columns)
    kept, tally, usable, tried = dict[int, tuple[int, float]](), np.zeros(5), 0, 0
    for i, found in enumerate(answers):
        start, good, fine = problem.people.iloc[i].to_numpy(float), [], False
        for plan in found.plans:
            z = np.array(plan)
            hit = bool(attains(z[None])[0]) if found.attained is None else found.attained
            frozen = all(z[j] == start[j] for j, name in enumerate(names) if name not in problem.bounds)
            inside = all(problem.bounds[name][0] <= z[j] <= problem.bounds[name][1] for j, name in enumerate(names) if name in problem.bounds)
            whole = bool(np.all(z == np.round(z)))
            tally += [1, hit, frozen, inside, whole]
            fine |= hit and frozen and inside and whole
            good += [plan] if hit else []
        usable, tried = usable + fine, tried + bool(found.plans)
        if good:
            kept[i] = best(problem, good, start)
    seconds = [found.seconds for found in answers]
    shares = " ".join(f"{100 * share:6.0f}%" for share in tally[1:] / tally[0]) if tally[0] else " ".join(["      -"] * 4)
    far = f"{np.median([k for k, _ in kept.values()]):5.1f} {np.median([d for _, d in kept.values()]):7.3f}" if kept else "    -       -"
    row = f"{np.median(seconds):7.2f} {np.quantile(seconds, 0.9):7.2f}  {tried:3d}/{len(answers):<3d} {shares}  {usable:3d}/{len(answers):<3d} {far}"
    return row, kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, how in PEERS.items():
        parser.add_argument(f"--{name}", metavar="PYTHON", help=f"interpreter of an environment with: {how.replace('%', '%%')}")
    parser.add_argument("--people", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=10.0, help="per person for oceanpy, by the clock")
    parser.add_argument("--answer", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.answer:
        return answer(given.answer, given.folder)
    problem = taiwan(given.people, given.seconds)
    model = forest(problem.X, problem.y)

    def attains(codes: np.ndarray) -> np.ndarray:
        return np.asarray(model.predict(pd.DataFrame(codes, columns=problem.X.columns))) == WANTED

    print(f"{len(problem.people)} people, {len(problem.bounds)} free amounts of {problem.X.shape[1]} columns")
    print(f"{'':28s} CPU s per person  people  of the plans returned:            people   features and")
    print(f"{'':28s}  median     p90  w. plan  target  frozen  inside   whole  w. usable  distance, median")
    least, nearest = dict[int, tuple[int, float]](), dict[int, tuple[int, float]]()
    for title, cost in (("by distance", {name: 1.0 / (high - low) for name, (low, high) in problem.bounds.items()}), ("fewest features", None)):
        mine = ours(problem, model, cost)
        row, kept = judge(problem, mine, attains)
        nearest, least = (kept, least) if cost else (nearest, kept)
        print(f"{'budge, ' + title:28s} {row}  {_said(mine)}", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        problem.save(folder)
        for name, how in PEERS.items():
            python = getattr(given, name)
            module = {"ocean": "ocean", "dice": "dice_ml"}[name]
            if python is None:
                print(f"{name}: skipped; give --{name} PYTHON, the interpreter of an environment made by: {how}")
                continue
            try:
                tried = subprocess.run([python, "-c", f"import {module}, sklearn, pandas"], capture_output=True, text=True, check=False)
                wrong = tried.stderr.strip().splitlines()[-1] if tried.returncode else ""
            except OSError as error:
                wrong = str(error)
            if wrong:
                print(f"{name}: skipped; {python} cannot import {module} ({wrong}); make the environment by: {how}")
                continue
            for method in METHODS[name]:
                answers, wrong = peer(method, python, folder)
                if not answers:
                    print(f"{NAMES[method]:28s} no answer: {wrong}", flush=True)
                    continue
                row, kept = judge(problem, answers, attains)
                both = [i for i in kept if i in least]
                beside = ""
                if both:
                    features, far = (np.median([least[i][k] for i in both]) for k in (0, 1))
                    beside = f"; budge with fewest features, the {len(both)} whom both lead there: {features:.1f}, {far:.3f}"
                if method == "ocean-held":  # two solvers, one objective
                    more = [kept[i][1] - nearest[i][1] for i in kept if i in nearest] or [0.0]
                    same = "the same" if kept.keys() == nearest.keys() else "OTHER"
                    beside += f"; {same} people with a plan as budge by distance, distance more than budge's by {min(more):.1e} to {max(more):.1e}"
                print(f"{NAMES[method]:28s} {row}  {_said(answers)}{beside}{'; ' + wrong if wrong else ''}", flush=True)


def _said(answers: list[Answer]) -> str:
    words = pd.Series([found.said for found in answers]).value_counts()
    return ", ".join(f"{count} {word}" for word, count in words.items())


if __name__ == "__main__":
    main()
