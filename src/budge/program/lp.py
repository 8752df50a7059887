"""Small linear programs over ``A y <= b``, by HiGHS through SciPy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from budge.errors import SolverError

__all__ = ["argmin", "least", "span"]

FloatArray = npt.NDArray[np.float64]


def argmin(goal: FloatArray, A: FloatArray, b: FloatArray) -> FloatArray:
    """A point where ``goal · y`` is least."""
    from scipy.optimize import linprog

    answer = linprog(goal, A_ub=A, b_ub=b, bounds=(None, None), method="highs")
    if answer.status != 0:
        raise SolverError("a linear program over a polytope could not be solved", got=answer.message)
    return np.asarray(answer.x)


def least(goal: FloatArray, A: FloatArray, b: FloatArray) -> float:
    """The least value of ``goal · y``."""
    return float(goal @ argmin(goal, A, b))


def span(A: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The lowest and the highest value of every coordinate."""
    ends = np.array([[sign * least(sign * goal, A, b) for goal in np.eye(A.shape[1])] for sign in (1.0, -1.0)])
    return ends[0], ends[1]
