"""Five parts that a proposing sampler cannot draw, 10^5 points each; and a million feasibility checks.

Run: ``python benchmarks/reach_cases.py``. Needed: under a second of CPU for each case, under 2 seconds for the checks.
"""

from __future__ import annotations

import time

import numpy as np

from budge import Feature, InteractionModel
from budge.constraints import DirectionalLinkage, IfThen, LinearConstraint, OneHot, Rule, Switch, Thermometer


def real(name: str, low: float, high: float) -> Feature:
    return Feature(name, "real", bounds=(low, high))


def cases() -> dict[str, tuple[InteractionModel, dict[str, float]]]:
    dummies, bars = [f"d{i}" for i in range(20)], [f"t{i}" for i in range(30)]
    budget = LinearConstraint({"savings": 1, "checking": 1}, "==", 1000, on="action")
    return {
        "budget equality": (
            InteractionModel([real("savings", 0, 5000), real("checking", 0, 5000)], [budget]),
            {"savings": 100.0, "checking": 100.0},
        ),
        "switch that freezes a balance": (
            InteractionModel([Feature("closed", "binary"), real("balance", 0, 1000)], [Switch("closed == 1", ("balance",))]),
            {"closed": 0, "balance": 10.0},
        ),
        "mixed if-then": (
            InteractionModel([Feature("owner", "binary"), real("equity", 0, 1000)], [IfThen("owner == 1", "equity >= 200")]),
            {"owner": 0, "equity": 0.0},
        ),
        "one-hot of 20": (
            InteractionModel([Feature(n, "binary") for n in dummies], [OneHot(tuple(dummies))]),
            {n: float(n == "d0") for n in dummies},
        ),
        "thermometer of 30": (
            InteractionModel([Feature(n, "binary") for n in bars], [Thermometer(tuple(bars))]),
            dict.fromkeys(bars, 0.0),
        ),
    }


def feasibility(n: int = 1_000_000) -> float:
    im = InteractionModel(
        [
            Feature("age", "integer", bounds=(18, 90), actionable=False),
            Feature("years", "integer", bounds=(0, 40), direction="increase", max_increase=5),
            Feature("rent", "real", bounds=(0, 2000)),
            Feature("income", "real", bounds=(0, 9000)),
            Feature("owner", "binary"),
        ],
        [DirectionalLinkage("years", {"age": 1}), Rule("rent + 100 * years <= income"), IfThen("owner == 1", "rent == 0")],
    )
    rng = np.random.default_rng(0)
    years = rng.integers(-1, 7, n).astype(float)
    columns = [years + (rng.random(n) < 0.1), years, rng.uniform(-500, 500, n), rng.uniform(0, 500, n), rng.integers(-1, 2, n).astype(float)]
    x = {"age": 40, "years": 4, "rent": 700.0, "income": 2500.0, "owner": 0}
    changes = np.stack(columns, axis=1)
    begin = time.process_time()
    good = im.feasible(x, changes)
    spent = time.process_time() - begin
    assert 0 < good.mean() < 1
    return spent


def main() -> None:
    slow = []
    print(f"{'case':<32}{'method':<12}{'s for 10^5 points':>18}")
    for name, (im, x) in cases().items():
        begin = time.process_time()
        sample = im.sample(x, 100_000, seed=1)
        spent = time.process_time() - begin
        assert len(sample.points) == 100_000
        print(f"{name:<32}{sample.parts[0].method:<12}{spent:>18.3f}")
        if spent > 1:
            slow.append(name)
    spent = feasibility()
    print(f"{'10^6 checks of 5 features':<32}{'mask':<12}{spent:>18.3f}")
    if spent > 2:
        slow.append("feasibility")
    if slow:
        raise SystemExit(f"too slow: {', '.join(slow)}")


if __name__ == "__main__":
    main()
