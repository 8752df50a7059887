"""Values at which a real feature stands with some probability: reached to the last bit, although a start and a change add up to them within rounding only."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from budge.constraints import Reachability
from budge.distributions import nearest_of
from budge.parts import Part
from budge.reach.core import listed_values
from budge.reach.forms import forms_of

__all__ = ["lists_of", "onto"]

FloatArray = npt.NDArray[np.float64]
ROUNDING = 2.0**-50  # share of the terms by which a sum of two numbers may be off


def lists_of(part: Part) -> dict[str, FloatArray]:
    """Return the values at which real features stand with some probability, in order: those listed, set equal to, or the bounds that clip them."""
    found = {name: [np.array(numbers)] for name, numbers in forms_of(part).equals.items()}
    for c in (c for c in part.constraints if isinstance(c, Reachability)):
        for name, values in zip(c.features, c.table().T):
            found.setdefault(name, []).append(values)
    for f in part.features:
        own, clipped = listed_values(f), any(link.on_exceed == "clip" for link in part.links.get(f.name, ()))
        found.setdefault(f.name, []).extend([*([] if own is None else [own]), np.array([end for end in f.range if clipped and np.isfinite(end)])])
    return {f.name: values for f in part.features if f.type == "real" and len(values := np.unique(np.concatenate(found[f.name])))}


def onto(values: FloatArray, reached: FloatArray, starts: Any) -> FloatArray:
    """Return what was reached, with listed values (in order) in the place of what differs from them by the rounding of a sum alone.

    Examples
    --------
    >>> onto(np.array([0.1, 0.7]), np.array([0.7 + (0.1 - 0.7), 0.7, 0.2]), 0.7).tolist()
    [0.1, 0.7, 0.2]
    """
    near = values[nearest_of(values, reached)]
    close = (np.abs(reached - near) <= ROUNDING * (np.abs(near) + np.abs(starts))) & (reached != starts)  # who stays, stays to the last bit
    return np.where(close, near, reached)
