"""Several draws per row when the claim is about the population: an effective number of draws, from the spread between rows.

Approximate, and tested by simulation: the error stays within half a point of alpha from 30 rows on, for rows that all agree and for
rows that are nearly all 0 or 1. Rows run along the last axis, so that many data sets can be judged at once.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaincc, betainccinv

from budge.stats._checks import Claim, Floats

__all__ = ["clustered_bound", "clustered_p_value", "effective_draws"]


def effective_draws(means: Floats, draws: float) -> tuple[Floats, Floats]:
    """Hits and draws of a binomial sample that is worth as much as these rows' means; for upper bounds.

    The spread is estimated with one imagined row at the worst end added. Without it, a few rows that happen to agree would
    promise far too much (simulated error 0.116 at nominal 0.05 with 30 rows). Row means in [0, 1] never spread more than single
    draws do, so the rows are worth at least one draw each, and at most all of theirs.
    """
    rows = means.shape[-1]
    mean = means.mean(axis=-1)
    # The variance of rows and imagined row together, from that of the rows.
    spread = (((means - mean[..., None]) ** 2).sum(axis=-1) + (1 - mean) ** 2 * rows / (rows + 1)) / rows
    size = np.clip(rows * mean * (1 - mean) / np.where(spread > 0, spread, 1.0), rows, draws)
    return mean * size, size


def clustered_p_value(means: Floats, draws: float, threshold: float, claim: Claim) -> Floats:
    """The p-value of the claim about the population."""
    x, tau = (means, threshold) if claim == "below" else (1 - means, 1 - threshold)
    hits, size = effective_draws(x, draws)
    full = hits >= size
    return np.where(full, 1.0, betaincc(hits + 1, np.where(full, 1.0, size - hits), tau))


def clustered_bound(means: Floats, draws: float, alpha: float, claim: Claim) -> Floats:
    """The one-sided bound: upper for the claim `below`, lower for `above`."""
    hits, size = effective_draws(means if claim == "below" else 1 - means, draws)
    full = hits >= size
    upper = np.where(full, 1.0, betainccinv(hits + 1, np.where(full, 1.0, size - hits), alpha))
    return upper if claim == "below" else 1 - upper
