"""The distributions of the language: their parameters, what makes these impossible, how they are drawn, where they live.

Parameters are numpy's, except that ``integers`` includes its upper end and ``exponential`` takes its mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from budge.errors import DataError

__all__ = ["DISTRIBUTIONS", "Distribution", "draw", "draw_categorical", "draw_normal_vector", "factor", "flaw"]

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Range = tuple[float, float]
Generator = np.random.Generator
WHOLE = float(2**53)


@dataclass(frozen=True)
class Distribution:
    """One distribution: signature, a flaw finder per parameter set, the draw, the support and whether it is whole."""

    signature: str
    parameters: tuple[str, ...]
    tests: tuple[tuple[str, Callable[..., Truths]], ...] = ()  # what must hold, and where it does
    sample: Callable[..., Array] | None = None
    support: Callable[..., Range] | None = None
    whole: bool = False
    stand_in: tuple[float, ...] = ()  # parameters used where a branch is not taken

    @property
    def literal(self) -> bool:
        """Whether the parameters are literal lists."""
        return self.sample is None


def _triangular(rng: Generator, low: Array, mode: Array, high: Array, shape: tuple[int, ...]) -> Array:
    point = np.equal(low, high)
    drawn = rng.triangular(
        np.where(point, low - 1.0, low), np.where(point, low, mode), np.where(point, low + 1.0, high), size=shape
    )
    return np.asarray(np.where(point, low, drawn))


def _integers(rng: Generator, low: Array, high: Array, shape: tuple[int, ...]) -> Array:
    return np.asarray(
        rng.integers(np.asarray(low).astype(np.int64), np.asarray(high).astype(np.int64), size=shape, endpoint=True), dtype=float
    )


def _whole(value: Array) -> Truths:
    return np.asarray((np.floor(value) == value) & (np.abs(value) <= WHOLE))


INF = float("inf")
DISTRIBUTIONS: dict[str, Distribution] = {
    "bernoulli": Distribution(
        "bernoulli(p)",
        ("p",),
        (("p must lie in [0, 1]", lambda p: (p >= 0) & (p <= 1)),),
        lambda rng, p, shape: (rng.random(shape) < p).astype(float),
        lambda p: (float(p[0] >= 1), float(p[1] > 0)),
        whole=True,
        stand_in=(0,),
    ),
    "normal": Distribution(
        "normal(mean, sd)",
        ("mean", "sd"),
        (("sd must not be negative", lambda mean, sd: sd >= 0),),
        lambda rng, mean, sd, shape: rng.normal(mean, sd, shape),
        lambda mean, sd: mean if sd == (0, 0) else (-INF, INF),
        stand_in=(0, 1),
    ),
    "lognormal": Distribution(
        "lognormal(mean, sd)",
        ("mean", "sd"),
        (("sd must not be negative", lambda mean, sd: sd >= 0),),
        lambda rng, mean, sd, shape: rng.lognormal(mean, sd, shape),
        lambda mean, sd: (0.0, INF),
        stand_in=(0, 1),
    ),
    "uniform": Distribution(
        "uniform(low, high)",
        ("low", "high"),
        (
            ("low must not exceed high", lambda low, high: low <= high),
            ("high - low must be finite", lambda low, high: np.isfinite(high - low)),
        ),
        lambda rng, low, high, shape: np.clip(rng.uniform(low, high, shape), low, high),
        lambda low, high: (low[0], high[1]),
        stand_in=(0, 1),
    ),
    "integers": Distribution(
        "integers(low, high)",
        ("low", "high"),
        (
            ("low and high must be whole numbers", lambda low, high: _whole(low) & _whole(high)),
            ("low must not exceed high", lambda low, high: low <= high),
        ),
        _integers,
        lambda low, high: (low[0], high[1]),
        whole=True,
        stand_in=(0, 0),
    ),
    "poisson": Distribution(
        "poisson(rate)",
        ("rate",),
        (("rate must lie in [0, 1e15]", lambda rate: (rate >= 0) & (rate <= 1e15)),),
        lambda rng, rate, shape: rng.poisson(rate, shape).astype(float),
        lambda rate: (0.0, INF if rate[1] > 0 else 0.0),
        whole=True,
        stand_in=(0,),
    ),
    "binomial": Distribution(
        "binomial(n, p)",
        ("n", "p"),
        (
            ("n must be a whole number, at least 0", lambda n, p: _whole(n) & (n >= 0)),
            ("p must lie in [0, 1]", lambda n, p: (p >= 0) & (p <= 1)),
        ),
        lambda rng, n, p, shape: rng.binomial(np.asarray(n).astype(np.int64), p, shape).astype(float),
        lambda n, p: (0.0, n[1] if p[1] > 0 else 0.0),
        whole=True,
        stand_in=(0, 0),
    ),
    "exponential": Distribution(
        "exponential(mean)",
        ("mean",),
        (("mean must not be negative", lambda mean: mean >= 0),),
        lambda rng, mean, shape: rng.exponential(mean, shape),
        lambda mean: (0.0, INF if mean[1] > 0 else 0.0),
        stand_in=(0,),
    ),
    "gamma": Distribution(
        "gamma(shape, scale)",
        ("shape", "scale"),
        (
            ("shape must be positive", lambda shape, scale: shape > 0),
            ("scale must not be negative", lambda shape, scale: scale >= 0),
        ),
        lambda rng, alpha, scale, shape: rng.gamma(alpha, scale, shape),
        lambda alpha, scale: (0.0, INF if scale[1] > 0 else 0.0),
        stand_in=(1, 1),
    ),
    "beta": Distribution(
        "beta(a, b)",
        ("a", "b"),
        (("a and b must be positive", lambda a, b: (a > 0) & (b > 0)),),
        lambda rng, a, b, shape: rng.beta(a, b, shape),
        lambda a, b: (0.0, 1.0),
        stand_in=(1, 1),
    ),
    "triangular": Distribution(
        "triangular(low, mode, high)",
        ("low", "mode", "high"),
        (
            ("low <= mode <= high must hold", lambda low, mode, high: (low <= mode) & (mode <= high)),
            ("high - low must be finite", lambda low, mode, high: np.isfinite(high - low)),
        ),
        _triangular,
        lambda low, mode, high: (low[0], high[1]),
        stand_in=(0, 0, 1),
    ),
    "categorical": Distribution("categorical(values, weights)", ("values", "weights")),
    "multivariate_normal": Distribution("multivariate_normal(mean, cov)", ("mean", "cov")),
}


def flaw(name: str, values: Sequence[npt.ArrayLike], active: Truths | None = None) -> tuple[str, list[float]] | None:
    """What is wrong with the parameters, and the first set of them for which it is; none if they will do."""
    arrays = np.broadcast_arrays(*(np.asarray(value, dtype=float) for value in values))
    with np.errstate(all="ignore"):
        tests: list[tuple[str, Truths]] = [
            ("its parameters must be finite numbers", np.logical_and.reduce([np.isfinite(a) for a in arrays]))
        ]
        tests += [(what, np.asarray(test(*arrays))) for what, test in DISTRIBUTIONS[name].tests]
    for what, good in tests:
        bad = ~good if active is None else ~good & active
        if bad.any():
            place = tuple(int(i) for i in np.argwhere(bad)[0]) if bad.ndim else ()
            return what, [float(np.broadcast_to(a, bad.shape)[place]) for a in arrays]
    return None


def draw(name: str, values: Sequence[Array], rng: Generator, shape: tuple[int, ...], active: Truths | None) -> Array:
    """Independent draws of the given shape; parameters that matter and are impossible raise."""
    rule = DISTRIBUTIONS[name]
    found = flaw(name, values, active)
    if found:
        what, got = found
        raise DataError(
            f"{rule.signature}: {what}", got=dict(zip(rule.parameters, got)), remedy="bound the parameters with clip or where"
        )
    if active is not None:
        # Branches that are not taken are drawn too, so that a draw depends on nothing but its place; numpy needs sound ones.
        values = [np.where(np.broadcast_to(active, shape), value, stand_in) for value, stand_in in zip(values, rule.stand_in)]
    assert rule.sample is not None
    return np.asarray(rule.sample(rng, *values, shape), dtype=float)


def draw_categorical(values: Sequence[float], weights: Sequence[float], rng: Generator, shape: tuple[int, ...]) -> Array:
    """Draws from a list of values with given weights."""
    edges = np.cumsum(np.asarray(weights, dtype=float) / max(weights))
    drawn = np.searchsorted(edges / edges[-1], rng.random(shape), side="right")
    return np.asarray(values, dtype=float)[drawn]


def factor(cov: Array) -> Array | None:
    """The lower triangle L with L Lᵀ = cov, also for a singular cov; none if cov is no covariance."""
    size = float(np.max(np.abs(cov)))
    if not np.allclose(cov, cov.T, rtol=0, atol=1e-9 * size) or np.linalg.eigvalsh(cov)[0] < -1e-9 * size:
        return None
    lower = np.zeros_like(cov)
    for j in range(len(cov)):
        pivot = cov[j, j] - float(np.sum(lower[j, :j] ** 2))
        if pivot > 1e-13 * size:
            lower[j, j] = np.sqrt(pivot)
            lower[j + 1 :, j] = (cov[j + 1 :, j] - np.sum(lower[j + 1 :, :j] * lower[j, :j], axis=1)) / lower[j, j]
    return lower


def draw_normal_vector(mean: Array, cov: Array, rng: Generator, shape: tuple[int, ...]) -> Array:
    """Draws of a normal vector: the given shape, and one more axis of components."""
    lower = factor(cov)
    assert lower is not None  # checked when the text was parsed
    return np.asarray(mean + np.einsum("...j,ij->...i", rng.standard_normal((*shape, len(mean))), lower))
