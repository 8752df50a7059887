"""Falsification: one hit is a certificate; no hit is a bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from budge.stats._checks import fraction, plain, unwrap
from budge.stats.binomial import upper_bound
from budge.stats.unresolved import with_missing

__all__ = ["Falsification", "falsification"]


@dataclass(frozen=True)
class Falsification:
    """Whether some reachable point hits the target: a certificate, or a bound for what remains possible."""

    hits: Any
    n: Any
    falsified: Any
    upper: Any
    alpha: float

    def __str__(self) -> str:
        if np.ndim(self.n):
            return f"{int(np.sum(self.falsified))} of {np.size(self.n)} falsified"
        if self.falsified:
            return f"falsified: {self.hits} of {self.n} draws hit, and one is enough"
        return f"not falsified: no hit in {self.n} draws, so responsiveness is at most {self.upper:.4g} (error {self.alpha:g})"

    def to_dict(self) -> dict[str, Any]:
        """The record of the attempt."""
        return {name: plain(getattr(self, name)) for name in ("hits", "n", "falsified", "upper", "alpha")}


def falsification(hits: object, n: object, *, unresolved: object = 0, alpha: object = 0.05) -> Falsification:
    """One hit falsifies "never moves" (App. Guarantees); no hit leaves the upper bound for the draws spent.

    Examples
    --------
    >>> print(falsification(0, 300))
    not falsified: no hit in 300 draws, so responsiveness is at most 0.009936 (error 0.05)
    """
    k, size, missing = with_missing(hits, n, unresolved)
    level = fraction(alpha, "alpha")
    upper = upper_bound(k + missing, size, level)
    as_int = [unwrap(part.astype(np.int64)) for part in (k, size)]
    return Falsification(as_int[0], as_int[1], unwrap(np.asarray(k > 0)), upper, level)
