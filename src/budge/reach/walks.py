"""Hit-and-run over a polytope: one chain for each draw, how long it must be, and who walks it.

A maintained sampler walks where it is installed (`polytopewalk`, extra ``polytope``), budge's own vectorised walk elsewhere;
both are the same chain, and `walker` is the one place that decides. How long is long enough is measured on the polytope at
hand: chains from the middle and chains from corners must agree. What comes out is said to be approximate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from budge.errors import DrawError
from budge.reach import polytopewalks
from budge.reach.lp import argmin, span

__all__ = ["Mixing", "mixing_of", "own_walk", "walk", "walker"]

FloatArray = npt.NDArray[np.float64]
Walk = Callable[[np.random.Generator, FloatArray, FloatArray, FloatArray, FloatArray, int], FloatArray]
SHORTEST, LONGEST = 64, 16_384  # steps of a chain before its one draw is taken
PILOTS = 2048  # chains that tell how long is long enough
CHECKED = 128  # chains of the package, from either start, that must agree with the pilots
FAR = 4.5  # standard errors between two groups of chains that have not mixed


@dataclass(frozen=True)
class Mixing:
    """What the pilots found: coordinates in which the polytope is round, and how many steps are enough in them."""

    shape: FloatArray
    steps: int
    walker: str
    gap: float  # the largest difference between chains from the middle and from corners, in standard errors

    def __str__(self) -> str:
        return f"{self.steps:,} steps a draw by {self.walker}, chains from the middle and from corners within {self.gap:.1f} standard errors"


def walker() -> str:
    """Who walks: the package where it is installed, else budge itself."""
    return "polytopewalk" if polytopewalks.installed() else "budge"


def walk(rng: np.random.Generator, A: FloatArray, b: FloatArray, mixing: Mixing, n: int) -> FloatArray:
    """n draws from ``A y <= b`` (0 lies inside), the last state of one chain each."""
    return _WALKS[mixing.walker](rng, A, b, np.zeros((n, A.shape[1])), mixing.shape, mixing.steps)


def mixing_of(A: FloatArray, b: FloatArray) -> Mixing:
    """How ``A y <= b`` is walked. It follows from the rows alone, so that people whose polytopes are alike share it."""
    return _measured(A.shape[1], A.tobytes(), b.tobytes(), walker())


def own_walk(rng: np.random.Generator, A: FloatArray, b: FloatArray, y: FloatArray, shape: FloatArray, steps: int) -> FloatArray:
    """Hit-and-run, one chain for each row, all at once: the chains are independent."""
    y = y.copy()
    slack = b - y @ A.T
    for _ in range(steps):
        way = rng.standard_normal(y.shape) @ shape.T
        speed = way @ A.T
        with np.errstate(divide="ignore", invalid="ignore"):
            times = slack / speed
        ahead = np.where(speed > 1e-14, times, np.inf).min(axis=1)
        behind = np.where(speed < -1e-14, times, -np.inf).max(axis=1)
        go = (behind + (ahead - behind) * rng.random(len(y)))[:, None]
        y += go * way
        slack = np.maximum(slack - go * speed, 0.0)
    return y


def _package_walk(rng: np.random.Generator, A: FloatArray, b: FloatArray, y: FloatArray, shape: FloatArray, steps: int) -> FloatArray:
    """The same chain, walked by the package from the second step on.

    The package's seeds have 31 bits, so that two of many chains may share one. They part in the first step, which is ours.
    """
    started = own_walk(rng, A, b, y, shape, 1)
    seeds = rng.integers(0, 2**31 - 1, len(y))
    rows = A @ shape
    size = np.linalg.norm(rows, axis=1)
    inner = np.asarray(np.linalg.solve(shape, started.T).T, dtype=float)
    return np.asarray(polytopewalks.last_states(rows / size[:, None], b / size, inner, steps, seeds) @ shape.T)


_WALKS: dict[str, Walk] = {"budge": own_walk, "polytopewalk": _package_walk}


@lru_cache(maxsize=256)
def _measured(dimension: int, rows: bytes, limits: bytes, who: str) -> Mixing:
    """A shape in which the polytope is about as wide in every direction, and how many steps are enough in it.

    Enough: chains that start in the middle and chains that start at corners have the same means and variances, up to the
    noise of so many chains. Twice that is used. The chains are budge's own, many at once; a package that is to walk has to
    show with fewer chains, of the length that is used, that they agree with each other and with those.
    """
    A, b = np.frombuffer(rows).reshape(-1, dimension), np.frombuffer(limits)
    rng = np.random.default_rng(0)
    low, high = span(A, b)
    shape: FloatArray = np.diag(high - low)
    ends = _corners(rng, A, b)
    middle, corners = np.zeros((PILOTS, dimension)), ends[rng.integers(0, len(ends), PILOTS)]
    for _ in range(4):
        middle = own_walk(rng, A, b, middle, shape, SHORTEST)
        shape = np.asarray(np.linalg.cholesky(np.cov(middle.T) + 1e-12 * np.diag((high - low) ** 2)), dtype=float)
    unshape = np.asarray(np.linalg.inv(shape), dtype=float)
    steps = 0
    middle = np.zeros((PILOTS, dimension))
    while steps < LONGEST:
        more = max(SHORTEST, steps)
        middle, corners = own_walk(rng, A, b, middle, shape, more), own_walk(rng, A, b, corners, shape, more)
        steps += more
        gap = _gap(middle @ unshape.T, corners @ unshape.T)
        if gap < FAR:
            if who != "budge":
                gap = _checked(rng, A, b, ends, shape, unshape, 2 * steps, np.concatenate([middle, corners]), who)
            return Mixing(shape, 2 * steps, who, gap)
    raise DrawError(
        f"hit-and-run over a polytope in {dimension} dimensions has not mixed within {LONGEST:,} steps",
        remedy="couple fewer continuous features, or narrow their bounds",
    )


def _checked(
    rng: np.random.Generator, A: FloatArray, b: FloatArray, ends: FloatArray, shape: FloatArray, unshape: FloatArray, steps: int,
    pilots: FloatArray, who: str,
) -> float:  # fmt: skip
    """The largest gap between chains of the package from the middle, from corners, and the pilots."""
    starts = (np.zeros((CHECKED, A.shape[1])), ends[rng.integers(0, len(ends), CHECKED)])
    groups = [_WALKS[who](rng, A, b, start, shape, steps) @ unshape.T for start in starts]
    outside = max(float((group @ shape.T @ A.T - b).max()) for group in groups)
    gap = max(_gap(*groups), *(_gap(group, pilots @ unshape.T) for group in groups))
    if gap > FAR or outside > 1e-9:
        raise DrawError(
            f"{who} has not mixed over a polytope in {A.shape[1]} dimensions",
            got=f"a gap of {gap:.1f} standard errors between chains, {outside:.2g} outside",
            remedy=f"uninstall {who}: budge then walks itself",
        )
    return gap


def _corners(rng: np.random.Generator, A: FloatArray, b: FloatArray) -> FloatArray:
    """Starts near corners: the furthest points in some directions, drawn a little towards the middle."""
    ways = rng.standard_normal((min(4 * A.shape[1], 64), A.shape[1]))
    return np.asarray(0.95 * np.array([argmin(way, A, b) for way in ways]))


def _gap(a: FloatArray, b: FloatArray) -> float:
    """The largest difference of two samples' means and second moments, in standard errors."""
    found = []
    for left, right in ((a, b), (a**2, b**2)):
        spread = np.sqrt(left.var(axis=0) / len(left) + right.var(axis=0) / len(right))
        found.append((np.abs(left.mean(axis=0) - right.mean(axis=0)) / np.maximum(spread, 1e-300)).max())
    return float(max(found))
