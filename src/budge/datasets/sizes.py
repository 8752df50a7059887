"""The two arguments that every simulated data set takes, checked: how many rows, and which seed."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from budge.errors import DataError, Problem

__all__ = ["rows_and_generator"]


def rows_and_generator(n: int, seed: int) -> tuple[int, np.random.Generator]:
    """The number of rows and a generator; a bad size or seed is a `DataError`.

    Examples
    --------
    >>> rows_and_generator(3, 0)[0]
    3
    """
    problems = []
    for name, value, least in (("n", n, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
            problems.append(
                Problem(name, f"is not a whole number of at least {least}", got=value, remedy=f"give {name} as an int")
            )
    DataError.raise_if(problems)
    return int(n), np.random.default_rng(int(seed))
