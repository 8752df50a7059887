"""The two tails of the binomial distribution and their inverses: the one source of every exact claim.

SciPy's regularised incomplete beta function carries all of it; the closed forms at no hit and at all hits are written out
because they decide ties (``0.5**2 < 0.25`` is false) and the smallest sample that can reject (Rem. MinSampSize).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincc, betainccinv, betaincinv

from budge.stats._checks import Floats

__all__ = ["at_least", "at_most", "invert_at_least", "invert_at_most"]


def _all_miss(p: Floats, n: Floats) -> Floats:
    """Return (1-p)^n: by plain evaluation where that is exact enough, through log1p where 1-p would lose digits of a small p."""
    miss = 1.0 - p
    with np.errstate(divide="ignore"):
        return np.where((1.0 - miss == p) | ((n <= 1000) & (p >= 0.01)), miss**n, np.exp(n * np.log1p(-p)))


def at_most(k: ArrayLike, n: ArrayLike, p: ArrayLike) -> Floats:
    """Return P(K <= k) for K ~ Binomial(n, p), elementwise.

    Examples
    --------
    >>> float(at_most(0, 2, 0.5))
    0.25
    """
    k, n, p = np.broadcast_arrays(np.asarray(k, float), np.asarray(n, float), np.asarray(p, float))
    inside = (k >= 0) & (k < n)
    a, b = np.where(inside, k + 1.0, 1.0), np.where(inside, n - k, 1.0)
    tail = np.where(k == 0, _all_miss(p, n), betaincc(a, b, p))
    tail = np.where((k == n - 1) & (k > 0), -np.expm1(n * np.log(np.where(p > 0, p, 1e-320))), tail)
    return np.where(k < 0, 0.0, np.where(k >= n, 1.0, tail))


def at_least(k: ArrayLike, n: ArrayLike, p: ArrayLike) -> Floats:
    """Return P(K >= k) for K ~ Binomial(n, p), elementwise."""
    k, n, p = np.broadcast_arrays(np.asarray(k, float), np.asarray(n, float), np.asarray(p, float))
    inside = (k > 0) & (k <= n)
    a, b = np.where(inside, k, 1.0), np.where(inside, n - k + 1.0, 1.0)
    with np.errstate(divide="ignore"):
        some = -np.expm1(n * np.log1p(-p))
    tail = np.where(k == n, p**n, np.where(k == 1, some, betainc(a, b, p)))
    return np.where(k <= 0, 1.0, np.where(k > n, 0.0, tail))


def invert_at_most(k: Floats, n: Floats, level: float | Floats) -> Floats:
    """Return the largest p at which P(K <= k) >= level: the upper bound of Prop. Testing.

    It is found on the grid of floats from SciPy's quantile on, so that ``bound < threshold`` and ``p_value < level`` are
    the same statement and not two roundings of it. Where each entry has a level of its own, the quantile stands.
    """
    safe = np.where(k < n, k, 0.0)
    guess = np.asarray(betainccinv(safe + 1.0, n - safe, level), np.float64)
    found = guess if np.ndim(level) else _last(guess, lambda p: at_most(safe, n, p) >= level)
    return np.where(k >= n, 1.0, found)


def invert_at_least(k: Floats, n: Floats, level: float | Floats) -> Floats:
    """Return the smallest p at which P(K >= k) >= level: the lower bound of Prop. Certify."""
    safe = np.where(k > 0, k, 1.0)
    guess = np.asarray(betaincinv(safe, n - safe + 1.0, level), np.float64)
    # The smallest float that holds is the one after the largest that does not.
    found = guess if np.ndim(level) else np.nextafter(_last(guess, lambda p: at_least(safe, n, p) < level), 1.0)
    return np.where(k <= 0, 0.0, found)


def _last(guess: Floats, holds: Callable[[Floats], NDArray[np.bool_]]) -> Floats:
    """Return the largest float near the guess for which `holds` is true, given that it is true to the left and false to the right.

    Floats in (0, 1) are ordered like their bit patterns read as integers, so bisection runs over the integers.
    Written by hand: no library inverts to the last bit. Where no change of sign is found the guess stands.
    """
    point = np.array(np.clip(guess, 1e-307, 1.0 - 2**-53))
    bits, top = point.view(np.int64), np.float64(1.0).view(np.int64)
    open_ = np.ones(point.shape, bool)
    left = right = bits
    for span in (2**5, 2**9, 2**13, 2**17):  # in units of the last place: widened only where the quantile is off by more
        left = np.where(open_, np.maximum(bits - span, 1), left)
        right = np.where(open_, np.minimum(bits + span, top), right)
        open_ = ~(holds(left.view(np.float64)) & ~holds(right.view(np.float64)))
        if not open_.any():
            break
    while (right - left).max(initial=0) > 1:
        middle = left + (right - left) // 2
        ok = holds(middle.view(np.float64))
        left, right = np.where(ok, middle, left), np.where(ok, right, middle)
    return np.where(open_, guess, left.view(np.float64))
