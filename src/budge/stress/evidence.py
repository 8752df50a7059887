"""What every person's row of an audit shows for a claim and for its opposite, as p-values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge import stats

__all__ = ["JUDGED", "evidence"]

JUDGED = ("below", "above", "inconclusive")


def evidence(rows: pd.DataFrame, design: Mapping[str, Any]) -> npt.NDArray[np.float64]:
    """P-values (claim and opposite, people): 0 or 1 where the answer is exact, 1 where there was nothing to judge.

    Answers that are missing count against the claim.
    """
    found = np.ones((2, len(rows)))
    drawn = (rows["method"] == "sample").to_numpy()
    n, hits, lost = (rows[name].to_numpy() for name in ("n", "hits", "unresolved"))
    for k, side in enumerate((design["claim"], "above" if design["claim"] == "below" else "below")):
        found[k] = np.where((rows["method"] == "exact") & (rows["verdict"] == side), 0.0, 1.0)
        if drawn.any():
            against = hits + (lost if side == "below" else 0)
            found[k, drawn] = stats.p_value(against[drawn], n[drawn], design["threshold"], side)
    return found
