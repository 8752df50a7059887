"""Answers that are missing: bounds and verdicts that hold for every way to fill them in.

A time-out or a refusal of the judge is neither a hit nor a miss. Dropping it would assume that answers go missing at random; here
it is counted as whichever is worse for the statement at hand.
"""

from __future__ import annotations

import numpy as np

from budge.errors import DesignError
from budge.stats._checks import Floats, counts, hits_of_n, plain, unwrap
from budge.stats.binomial import Interval, TestResult, interval, test

__all__ = ["unresolved_interval", "unresolved_test"]


def with_missing(hits: object, n: object, unresolved: object) -> tuple[Floats, Floats, Floats]:
    """Hits, draws and unresolved answers, broadcast together and consistent."""
    k, size = hits_of_n(hits, n)
    missing = counts(unresolved, "unresolved")
    k, size, missing = np.broadcast_arrays(k, size, missing)
    if (k + missing > size).any():
        raise DesignError(
            "more hits and unresolved answers than draws",
            where="unresolved",
            got=plain(missing),
            remedy="n counts all draws, also the unresolved",
        )
    return k, size, missing


def unresolved_interval(hits: object, n: object, unresolved: object, alpha: object = 0.05) -> Interval:
    """The interval that covers whatever the unresolved answers are: low with none of them a hit, high with all.

    `n` counts all draws, also the unresolved. The estimate is the share of hits among the resolved (0.5 if none is).

    Examples
    --------
    >>> low, high = unresolved_interval(5, 100, 10)
    >>> low == interval(5, 100).low, high == interval(15, 100).high
    (True, True)
    """
    k, size, missing = with_missing(hits, n, unresolved)
    least, most = interval(k, size, alpha), interval(k + missing, size, alpha)
    resolved = size - missing
    estimate = np.where(resolved > 0, k / np.maximum(resolved, 1), 0.5)
    return Interval(unwrap(estimate), least.low, most.high, least.alpha, "Clopper-Pearson, every completion")


def unresolved_test(
    hits: object, n: object, unresolved: object, threshold: object, *, claim: str = "below", alpha: object = 0.05
) -> TestResult:
    """The test whose verdict holds for every completion: unresolved answers count against the claim.

    Examples
    --------
    >>> unresolved_test(0, 60, 1, 0.1).verdict, unresolved_test(0, 60, 5, 0.1).verdict
    ('below', 'inconclusive')
    """
    k, size, missing = with_missing(hits, n, unresolved)
    return test(k + missing if claim == "below" else k, size, threshold, claim=claim, alpha=alpha)
