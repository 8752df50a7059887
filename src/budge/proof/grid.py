"""Sums with real contributions, or too many to be met in the middle: bracketed on a grid, with every rounding counted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from budge.proof.sums import EPS, FloatArray, Progression, Sums

__all__ = ["Grid", "Smooth", "uniform_tail"]

BINS = 1 << 20  # of a grid


def uniform_tail(widths: FloatArray, cut: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return bounds of P(Σ width · U >= cut) for independent uniform U in [0, 1], at every cut.

    The sum over corners cancels; bounds of every term and of the rounding of their sum are carried along.
    """
    m, span = len(widths), math.fsum(widths.tolist())
    turned = cut > span / 2  # the law is symmetric: take the side with fewer terms
    at = np.where(turned, span - cut, cut)
    corners = (np.arange(2**m)[:, None] >> np.arange(m)) & 1
    off = 4 * (m + 2) * EPS * (span + np.abs(cut))  # of every difference below
    norm = math.factorial(m) * math.prod(widths.tolist())
    low, high, size = (np.zeros(len(cut)) for _ in range(3))
    for corner in corners:
        rest = at - float(corner @ widths)
        least, most = (np.maximum(rest - off, 0.0) ** m, np.maximum(rest + off, 0.0) ** m)
        if corner.sum() % 2:
            least, most = -most, -least
        low, high, size = low + least, high + most, size + np.maximum(np.abs(least), np.abs(most))
    rounding = 2 * (2**m + 3 * m + 8) * EPS * size
    low, high = (np.clip(low - rounding, 0, None) / norm * (1 - 64 * EPS), np.clip(high + rounding, 0, None) / norm * (1 + 64 * EPS))
    low, high = np.minimum(low, 1.0), np.minimum(high, 1.0)  # P(sum <= at)
    least = np.where(turned, low, np.maximum(1 - high - 2 * EPS, 0.0))
    most = np.where(turned, high, np.minimum(1 - low + 2 * EPS, 1.0))
    sure, never = cut <= -off, cut >= span + off
    return np.where(sure, 1.0, np.where(never, 0.0, least)), np.where(sure, 1.0, np.where(never, 0.0, most))


@dataclass(frozen=True)
class Smooth:
    """A contribution between 0 and `width`: uniform, or abs(slope) · (V - its end) for a value V with density 1/V between `low` and `high`."""

    width: float
    low: float = 0.0
    high: float = 0.0
    falling: bool = False  # with a negative slope: 0 is at the high end

    def masses(self, step: float) -> FloatArray:
        """Return the probability of each bin of a grid."""
        edges = np.minimum(np.arange(math.floor(self.width / step) + 2) * step, self.width)
        if not self.high:
            return np.asarray(np.diff(edges) / self.width)
        values = self.low + edges / self.width * (self.high - self.low)
        if self.falling:
            values = self.high - edges / self.width * (self.high - self.low)
        values = np.clip(values, self.low, self.high)
        return np.asarray(np.abs(np.log1p(np.diff(values) / values[:-1])) / math.log1p((self.high - self.low) / self.low))


@dataclass(frozen=True)
class Grid:
    """Lower ends of sums on a grid: a sum lies between place · step and (place + spread) · step. `off` bounds the error of any sum of masses."""

    step: float
    spread: int
    masses: FloatArray
    off: float

    @classmethod
    def of(cls, parts: Sequence[Sums], runs: Sequence[Progression], smooth: Sequence[Smooth], bins: int | None = None) -> Grid | None:
        """Return the law of the sum on a grid; all contributions are at least 0. None where the range is nothing or not finite."""
        parts, bins = _grouped(parts), bins or BINS
        ranges = [float(p.values[-1]) for p in parts] + [run.step * (run.size - 1) for run in runs] + [s.width for s in smooth]
        span = math.fsum(ranges)
        if not (0.0 < span < math.inf):
            return None
        step = 2.0 ** math.ceil(math.log2(span / (bins - 2 * len(ranges) - 2)))  # a power of two: division and rounding down are exact
        while sum(math.floor(r / step) + 2 for r in ranges) >= bins:
            step *= 2
        if step < 2.0**-960:
            return None
        laws, spread = [], 0
        for part in parts:
            at = part.values / step
            place = np.floor(at).astype(np.intp)
            spread += int((place != at).any())
            weights = np.array([float(c) for c in part.counts.tolist()]) if part.counts is not None and part.counts.dtype == object else part.filled
            laws.append(np.bincount(place, weights=weights.astype(float)) / float(part.total))
        for run in runs:
            edges = np.ceil(np.arange(math.floor(run.step * (run.size - 1) / step) + 2) * (step / run.step))
            edges = np.minimum(edges, run.size)
            edges[-1] = run.size
            laws.append(np.diff(edges) / run.size)
            spread += 1
        for one in smooth:
            laws.append(one.masses(step))
            spread += 1
        return cls(step, spread, *_convolved(laws, bins))

    def share(self, inside: Sequence[tuple[float, float]], certain: bool) -> float:
        """Return a lower (`certain`) or an upper bound of the probability that the sum lies in one of these half-open intervals."""
        chosen = np.zeros(len(self.masses), dtype=bool)
        for low, high in inside:
            first = low / self.step - (0 if certain else self.spread)
            last = high / self.step - (self.spread if certain else 0)  # the first place beyond, below the end itself
            begin = int(np.clip(np.ceil(first), 0, len(chosen)))
            end = int(np.clip(np.ceil(last), 0, len(chosen)))
            chosen[begin:end] = True
        found = math.fsum(self.masses[chosen].tolist())
        return max(0.0, found - self.off) if certain else min(1.0, found + self.off)


def _grouped(parts: Sequence[Sums], most: int = 1 << 20) -> list[Sums]:
    """Return fewer parts with the same sums: every part rounded to the grid adds to its error."""
    found: list[Sums] = []
    for part in sorted(parts, key=len):
        if found and len(found[-1]) * len(part) <= most:
            found[-1] = found[-1].plus(part)
        else:
            found.append(part)
    return found


def _convolved(laws: Sequence[FloatArray], bins: int) -> tuple[FloatArray, float]:
    """Return the law of a sum by Fourier transforms, and a bound of the sum of absolute errors.

    A transform of n = 2^t values has a relative error of at most t · η in the 2-norm (Higham, Accuracy and Stability of Numerical Algorithms,
    Theorem 24.2, η below 8 roundings for radix 2 with accurate factors; 32 are counted here, and three levels more for reals and the inverse).
    No entry of a transform exceeds the sum of masses, 1: so errors of the transforms add up.
    """
    if len(laws) == 1:
        return laws[0], 8 * EPS * 4
    from scipy import fft

    size = 1 << (bins - 1).bit_length()
    level = (math.log2(size) + 3) * 32 * EPS
    product = np.ones(size // 2 + 1, dtype=np.complex128)
    error, entries = 0.0, 0
    for law in laws:
        made = fft.rfft(law, size)
        error += level * math.sqrt(float((law * law).sum())) + 4 * EPS
        product *= made
        entries += len(law) - 1
    masses = np.maximum(np.asarray(fft.irfft(product, size))[: entries + 1], 0.0)
    error = (error + level) * (1 + 1e-6)  # in the 2-norm
    masses_off = 16 * EPS * len(laws)  # of the masses themselves, relative to a sum of 1
    return masses, math.sqrt(entries + 1) * error + masses_off


