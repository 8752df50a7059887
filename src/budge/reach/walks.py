"""Hit-and-run over a polytope: one chain per draw, from the words of that draw.

How long a chain must be is measured on the polytope at hand: chains from the middle and chains from corners must agree, first while the length
is sought, then once more at the length that is used. What comes out is approximate, and every result states that.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from budge.errors import DrawError
from budge.program.lp import argmin, span
from budge.reach.accept import Words, fixed_words, times
from budge.reach.streams import open_unit

__all__ = ["Mixing", "gap_at", "mixing_of", "walk"]

log = logging.getLogger(__name__)
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
SHORTEST, LONGEST = 64, 16_384  # steps of a chain before its one draw is taken
PILOTS = 2048  # chains that tell how long is long enough
FRESH = 512  # other chains, from either start, that must agree at that length
FAR = 4.5  # standard errors between two groups of chains that have not mixed
STRIDE = 32  # steps whose words are made together
AT_ONCE = 2**18  # words that are held at once
MOST_WORK = 5e10  # chains x steps x rows x dimensions of one look at how long is long enough: some minutes
LONG_WORK = 1e9  # from which on a line in the log states that it takes long


@dataclass(frozen=True)
class Mixing:
    """What the pilots found: coordinates in which the polytope is round, and how many steps are enough in them."""

    shape: FloatArray
    steps: int
    gap: float  # the largest difference between chains from the middle and from corners, in standard errors

    def __str__(self) -> str:
        return f"{self.steps:,} steps per draw, chains from the middle and from corners within {self.gap:.1f} standard errors"


def walk(A: FloatArray, b: FloatArray, mixing: Mixing, draws: IntArray, words: Words) -> FloatArray:
    """Return one point of ``A y <= b`` (0 lies inside) per draw: the last state of its chain."""
    return _chains(A, b, np.zeros((len(draws), A.shape[1])), mixing.shape, mixing.steps, draws, words)


def mixing_of(A: FloatArray, b: FloatArray) -> Mixing:
    """Return how ``A y <= b`` is walked. It follows from the rows alone, so that people whose polytopes are alike share it."""
    return _measured(A.shape[1], A.tobytes(), b.tobytes())


def gap_at(A: FloatArray, b: FloatArray, shape: FloatArray, steps: int) -> float:
    """Return how far apart fresh chains of this length from the middle and from corners end, in standard errors."""
    ends = _corners(A, b)
    starts = (np.zeros((FRESH, A.shape[1])), ends[np.arange(FRESH) % len(ends)])
    unshape = np.linalg.inv(shape)
    middle, corners = (
        _chains(A, b, start, shape, steps, np.arange(FRESH), fixed_words("walks", "fresh", side)) @ unshape.T for side, start in enumerate(starts)
    )
    return _gap(middle, corners)


def _chains(A: FloatArray, b: FloatArray, starts: FloatArray, shape: FloatArray, steps: int, draws: IntArray, words: Words, since: int = 0) -> FloatArray:
    """Return where hit-and-run from these starts ends, one chain per draw, `since` strides having been walked before."""
    d = A.shape[1]
    y = starts.copy()
    some = max(1, AT_ONCE // (STRIDE * (d + 1)))
    for first in range(0, len(draws), some):
        here = slice(first, first + some)
        state, slack = y[here], b - times(y[here], A.T)
        for done in range(0, steps, STRIDE):
            u = open_unit(words(draws[here], since + done // STRIDE, STRIDE * (d + 1))).reshape(-1, STRIDE, d + 1)[:, : steps - done]
            u = np.ascontiguousarray(u.transpose(1, 0, 2))  # step by step
            ways = times(ndtri(u[:, :, :d]).reshape(-1, d), shape.T)
            speeds = times(ways, A.T).reshape(len(u), -1, len(A))
            for way, speed, share in zip(ways.reshape(len(u), -1, d), speeds, u[:, :, d]):
                with np.errstate(divide="ignore", invalid="ignore"):
                    until = slack / speed
                ahead = np.where(speed > 1e-14, until, np.inf).min(axis=1)
                behind = np.where(speed < -1e-14, until, -np.inf).max(axis=1)
                go = (behind + (ahead - behind) * share)[:, None]
                state = state + go * way
                slack = np.maximum(slack - go * speed, 0.0)
        y[here] = state
    return y


@lru_cache(maxsize=256)
def _measured(dimension: int, rows: bytes, limits: bytes) -> Mixing:
    """Return a shape in which the polytope is about as wide in every direction, and how many steps are enough in it."""
    A, b = np.frombuffer(rows).reshape(-1, dimension), np.frombuffer(limits)
    _check_work(A)
    shape = _rounded(A, b)
    steps = _enough(A, b, shape)
    while steps <= 2 * LONGEST:
        gap = gap_at(A, b, shape, steps)
        if gap < FAR:
            return Mixing(shape, steps, gap)
        steps *= 2
    raise DrawError(
        f"hit-and-run over a polytope in {dimension} dimensions has not mixed within {LONGEST:,} steps",
        remedy="couple fewer continuous features, or narrow their bounds",
    )


def _check_work(A: FloatArray) -> None:
    """Raise an error where pilots would take too long, and log where they take long; some 4 d^2 steps are enough in d dimensions."""
    rows, dimension = A.shape
    work = PILOTS * 4 * dimension**2 * A.size
    if work > MOST_WORK:
        raise DrawError(
            f"hit-and-run under {rows:,} rows in {dimension:,} dimensions takes too long to find how many steps are enough",
            remedy="couple fewer continuous features by constraints",
        )
    if work > LONG_WORK:
        log.warning("hit-and-run under %d rows in %d dimensions: to find how many steps are enough takes a while, once per shape", rows, dimension)


def _rounded(A: FloatArray, b: FloatArray) -> FloatArray:
    """Return coordinates in which some pilot chains are as wide in every direction."""
    low, high = span(A, b)
    shape: FloatArray = np.diag(high - low)
    pilots, words = np.arange(PILOTS), fixed_words("walks", "shape")
    middle = np.zeros((PILOTS, A.shape[1]))
    for turn in range(4):
        middle = _chains(A, b, middle, shape, SHORTEST, pilots, words, turn * SHORTEST)
        shape = np.asarray(np.linalg.cholesky(np.cov(middle.T) + 1e-12 * np.diag((high - low) ** 2)), dtype=float)
    return shape


def _enough(A: FloatArray, b: FloatArray, shape: FloatArray) -> int:
    """Return twice the steps after which chains from the middle and from corners have the same means and variances."""
    unshape = np.linalg.inv(shape)
    ends, pilots = _corners(A, b), np.arange(PILOTS)
    words = [fixed_words("walks", "length", side) for side in range(2)]
    states = [np.zeros((PILOTS, A.shape[1])), ends[pilots % len(ends)]]
    steps = 0
    while steps < LONGEST:
        more = max(SHORTEST, steps)
        states = [_chains(A, b, state, shape, more, pilots, w, steps) for state, w in zip(states, words)]
        steps += more
        if _gap(states[0] @ unshape.T, states[1] @ unshape.T) < FAR:
            return 2 * steps
    return 4 * LONGEST  # never


def _corners(A: FloatArray, b: FloatArray) -> FloatArray:
    """Return starts near corners: the furthest points in some directions, drawn a little towards the middle."""
    d = A.shape[1]
    ways = ndtri(open_unit(fixed_words("walks", "corners")(np.arange(min(4 * d, 64)), 0, d)))
    return np.asarray(0.95 * np.array([argmin(way, A, b) for way in ways]))


def _gap(a: FloatArray, b: FloatArray) -> float:
    """Return the largest difference of two samples' means and second moments, in standard errors."""
    found = []
    for left, right in ((a, b), (a**2, b**2)):
        spread = np.sqrt(left.var(axis=0) / len(left) + right.var(axis=0) / len(right))
        found.append((np.abs(left.mean(axis=0) - right.mean(axis=0)) / np.maximum(spread, 1e-300)).max())
    return float(max(found))
