"""Small tables and models that the tests of `budge.models` share."""

from __future__ import annotations

import numpy as np
import pandas as pd

COLUMNS = ["age", "income", "rent"]


def table(n: int = 200, seed: int = 7) -> pd.DataFrame:
    """Three columns of numbers, one of them whole."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"age": rng.integers(18, 80, n), "income": rng.normal(3000, 800, n), "rent": rng.normal(900, 200, n)})


def outcome(frame: pd.DataFrame) -> np.ndarray:
    """Whether income covers three rents."""
    return (frame["income"] > 3 * frame["rent"]).to_numpy().astype(int)


def three(frame: pd.DataFrame) -> np.ndarray:
    """Three classes: 0, 1 and 2."""
    return np.digitize(frame["income"].to_numpy(), [2600, 3400])
