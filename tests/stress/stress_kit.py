"""What the tests of stress tests share: random discrete worlds, and brute force over their definition."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from budge import Feature, InteractionModel, constraints


def world(rng: np.random.Generator) -> tuple[pd.DataFrame, InteractionModel]:
    """A random discrete interaction model over six features, and eight people who stand well in it."""
    a = rng.integers(0, 4, 8)
    on = np.where(a >= 2, 1, rng.integers(0, 2, 8))
    X = pd.DataFrame(
        {
            "a": a, "b": rng.integers(0, 4, 8), "c": rng.integers(0, 2, 8), "d": rng.integers(0, 3, 8),
            "t1": on, "t2": on * rng.integers(0, 2, 8),
        }
    )  # fmt: skip

    def feature(name: str, high: int) -> Feature:
        kind = rng.integers(0, 4)
        options: dict[str, Any] = {"actionable": bool(kind)}
        if kind == 1:
            options["direction"] = str(rng.choice(["increase", "decrease"]))
        if kind == 2:
            options["max_increase"] = int(rng.integers(0, 2))
        return Feature(name, "integer" if high > 1 else "binary", bounds=(0, high), **options)

    features = [
        feature("a", 3),
        feature("b", 3),
        feature("c", 1),
        feature("d", 2),
        Feature("t1", "binary"),
        Feature("t2", "binary"),
    ]
    some = [
        constraints.Thermometer(("t1", "t2"), direction="increase" if rng.integers(0, 2) else None, name="steps"),
        constraints.LinearConstraint({"a": 1, "b": 1}, "<=", 2, on="action", name="budget"),
        constraints.Switch("c == 1", ("d",), name="closed"),
        constraints.DirectionalLinkage("a", {"d": 1}, name="link", on_exceed=str(rng.choice(["allow", "reject"]))),  # type: ignore[arg-type]
        constraints.IfThen("a >= 2", "t1 == 1", name="rule"),
    ]
    keep = [c for c in some if rng.random() < 0.6]
    return X, InteractionModel(features, keep, name="random world")


def planted(rng: np.random.Generator) -> Any:
    """A random rule over the six features, as a model."""
    weights = rng.integers(-2, 3, 6)
    cut = float(weights @ np.array([2, 2, 0.5, 1, 0.5, 0.5])) + rng.integers(0, 3)

    def model(table: pd.DataFrame) -> np.ndarray:
        return (table.to_numpy(dtype=float) @ weights > cut).astype(int)

    return model


def brute(im: InteractionModel, x: pd.Series) -> np.ndarray:
    """Every reachable point, from the definition alone: all changes of a box, masked."""
    names = [f.name for f in im.features]
    spans = []
    for name in names:
        low, high = (int(m) for m in im.by_name[name].moves(float(x[name])))
        wider = 6 if any(name in part.links for part in im.parts) else 0
        spans.append(np.arange(low - wider, high + wider + 1))
    changes = np.array(list(product(*spans)), dtype=float)
    good = im.feasible(x, changes)
    return x.to_numpy(dtype=float) + changes[good]


def rate(model: Any, points: np.ndarray, columns: Any) -> float:
    """The share of points that attain 1."""
    return float(np.mean(model(pd.DataFrame(points, columns=columns)))) if len(points) else float("nan")
