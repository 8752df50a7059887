"""The one place that imports `polytopewalk` (extra ``polytope``): its hit-and-run, one seeded chain for each draw.

Its seeds make a chain the same to the bit; its other walks were far off where the truth is known, and are not used. `err` is
how closely it looks for the end of a chord: the points stay that far inside.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.errors import MissingDependencyError

__all__ = ["installed", "last_states"]

FloatArray = npt.NDArray[np.float64]
ERR = 1e-6


@cache
def installed() -> bool:
    """Whether the package is there."""
    return find_spec("polytopewalk") is not None


def last_states(A: FloatArray, b: FloatArray, starts: FloatArray, steps: int, seeds: npt.NDArray[np.int64]) -> FloatArray:
    """Where chains over ``A y <= b`` stand after so many steps, one for each start and seed."""
    chain = _dense().HitAndRun(err=ERR)
    rows, limits = np.asfortranarray(A), np.ascontiguousarray(b)
    ends = [chain.generateCompleteWalk(steps, start, rows, limits, steps - 1, 1, int(seed))[0] for start, seed in zip(starts, seeds)]
    return np.array(ends).reshape(len(starts), A.shape[1])


def _dense() -> Any:
    try:
        from polytopewalk import dense  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise MissingDependencyError("polytopewalk is not installed", remedy="pip install 'budge[polytope]'") from error
    return dense
