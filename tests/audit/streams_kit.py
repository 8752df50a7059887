"""Models and people for the tests of streams: in a module of its own, so that workers can import it."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from budge import Feature, InteractionModel

LISTED = InteractionModel(
    [
        Feature("a", "integer", bounds=(0, 9), max_increase=3, max_decrease=2),
        Feature("c", "category", levels=["u", "v", "w"]),
        Feature("b", "real", actionable=False),
    ]
)
DRAWN = InteractionModel(
    [Feature("a", "integer", bounds=(0, 9)), Feature("c", "category", levels=["u", "v", "w"], actionable=False), Feature("b", "real", bounds=(0, 1))]
)


def people_of(n: int, seed: int = 0) -> pd.DataFrame:
    """Return people, a tenth of whom stand as another does."""
    rng = np.random.default_rng(seed)
    found = pd.DataFrame(
        {
            "a": rng.integers(0, 10, n), "b": rng.random(n).round(2), "c": rng.choice(list("uvw"), n), "sex": rng.choice(["f", "m"], n),
            "town": rng.choice(list("pqrs"), n),
        }
    )  # fmt: skip
    found.loc[n - n // 10 :, ["a", "b", "c"]] = found.loc[: n // 10 - 1, ["a", "b", "c"]].to_numpy()
    return found.astype({"a": np.int64, "b": float})


def score(table: pd.DataFrame) -> Any:
    """Return 1 where points for a, b and c reach a cut."""
    return ((table["a"] + 5 * table["b"] + 2 * (table["c"] == "v")) > 8).astype(int).to_numpy()


def strict(table: pd.DataFrame) -> Any:
    """Return texts, and fewer who pass."""
    return np.where(table["a"] + 5 * table["b"] > 11, "yes", "no")


@dataclass(frozen=True)
class Deadly:
    """The same as `score`, but ends its process (or its memory) when it is asked about another point of somebody who stands at a = 0."""

    b: float  # by which the person is known
    memory: bool = False

    def __call__(self, table: pd.DataFrame) -> Any:
        if ((table["b"] == self.b) & (table["a"] > 0)).any():
            if self.memory:
                raise MemoryError("no room")
            os.kill(os.getpid(), signal.SIGKILL)
        return score(table)
