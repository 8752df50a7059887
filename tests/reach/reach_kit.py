"""What the tests of reaching share: random models by Hypothesis, and one check of drawn points against their law."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from scipy import stats

from budge import InteractionModel
from budge.distributions import Distribution
from budge.expressions import Linear
from budge.reach.cells import Cell, Coordinate, Half, tightened
from budge.reach.fibres import Fibres
from budge.reach.piece import Draws, Piece
from budge.reach.streams import Stream, unit
from budge.testing.strategies import interaction_models, starts

FloatArray = npt.NDArray[np.float64]
Case = tuple[InteractionModel, dict[str, Any]]


@lru_cache(maxsize=4)
def random_cases(count: int, key: int, continuous: bool = False, max_features: int = 5) -> tuple[Case, ...]:
    """Random sound models of all kinds with a start each; the same ones for the same arguments.

    A third have a feature that is drawn by weights, a fifth a feature whose value is missing.
    """
    found: list[Case] = []

    @seed(key)
    @settings(max_examples=count, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(st.data())
    def collect(data: st.DataObject) -> None:
        im = data.draw(interaction_models(max_features=max_features, continuous=continuous))
        x = data.draw(starts(im))
        found.append(dressed(im, x, np.random.default_rng(data.draw(st.integers(0, 2**32)))))

    collect()
    return tuple(found)


def dressed(im: InteractionModel, x: dict[str, Any], rng: np.random.Generator) -> Case:
    """The model with weights on a feature, and a value missing, now and then."""
    features = list(im.features)
    if rng.random() < 1 / 3:
        i = int(rng.integers(len(features)))
        f = features[i]
        if f.discrete and f.actionable:
            values = f.levels if f.levels is not None else tuple(range(int(f.range[0]) - 2, int(f.range[1]) + 3))
            weights = tuple(rng.integers(0, 4, len(values)).astype(float) + (np.arange(len(values)) == 0))
            features[i] = f.but(distribution=Distribution("weights", values, weights))
    if rng.random() < 1 / 5:
        i = int(rng.integers(len(features)))
        features[i] = features[i].but(missing="fixed")
        x = {**x, features[i].name: None}
    return InteractionModel(features, im.constraints), x


class Polytope:
    """``A r <= b, E r = e`` in a box: what a piece with one configuration leaves open."""

    def __init__(
        self, A: FloatArray, b: FloatArray, E: FloatArray | None = None, e: FloatArray | None = None, *, low: FloatArray, high: FloatArray
    ) -> None:
        names, on = [f"r{j:03d}" for j in range(len(low))], np.ones(1, dtype=bool)
        coordinates = [Coordinate(name, np.array([a]), np.array([z])) for name, a, z in zip(names, low, high)]
        given = [(A, b, "<="), *([] if E is None or e is None else [(E, e, "==")])]
        halves = [
            Half({name: np.array([c]) for name, c in zip(names, row) if c}, np.array([-limit]), relation, on, even=True)
            for rows, limits, relation in given
            for row, limit in zip(rows, limits)
        ]
        box = tightened(Cell(on, tuple(halves)), coordinates)
        forms = {name: Linear({("coordinate", name): 1.0}, 0.0) for name in names}
        self.piece = Piece(tuple(names), 1, np.zeros(1, dtype=np.intp), {}, forms=forms, coordinates=tuple(coordinates), boxes=(box,))
        assert self.piece.fibres is not None
        self.fibres: Fibres = self.piece.fibres

    @property
    def shapes(self) -> list[Any]:
        """What its coupled coordinates are, component by component."""
        return [joint.shape for joint in self.fibres.joints[0]]

    @property
    def empty(self) -> bool:
        return not self.fibres.exists[0]

    @property
    def dimension(self) -> int:
        return int(self.fibres.dimensions[0, 0])

    @property
    def log_volume(self) -> float:
        return float(self.fibres._log_volumes[0, 0])

    @property
    def volume(self) -> float:
        return float(np.exp(self.log_volume))

    def draw(self, draws: npt.NDArray[np.int64], key: int = 1) -> FloatArray:
        """One point per draw, by number."""
        none = np.zeros(len(draws), dtype=np.intp)
        made = Draws(Stream(np.array([[key, 7]], dtype=np.uint64)), none, draws, 1)
        return self.piece.point_of(none, none, unit(made.words(len(self.piece.reals), 0)), made)


def pooled(counts: FloatArray, expected: FloatArray, least: float = 10.0) -> tuple[FloatArray, FloatArray]:
    """Cells with small expectations joined, so that the chi-square approximation holds."""
    order = np.argsort(expected)
    counts, expected = counts[order], expected[order]
    small = int(np.searchsorted(np.cumsum(expected), least)) + 1 if expected[0] < least else 0
    if small <= 1:
        return counts, expected
    return np.r_[counts[:small].sum(), counts[small:]], np.r_[expected[:small].sum(), expected[small:]]


def law_p_value(points: FloatArray, drawn: FloatArray, shares: FloatArray | None = None) -> float:
    """The chi-square p-value of draws against all points with their probabilities; 0 where a draw is no point.

    Points are rows, compared up to rounding; a missing value is a value of its own.
    """
    place, number = np.zeros(len(points), dtype=np.int64), np.zeros(len(drawn), dtype=np.int64)
    for all_of, some in zip(np.nan_to_num(points, nan=-1e9).T, np.nan_to_num(drawn, nan=-1e9).T):
        known = np.unique(np.round(all_of, 7))
        index = np.minimum(np.searchsorted(known, some - 1e-6), len(known) - 1)
        if (np.abs(known[index] - some) > 2e-7).any():
            return 0.0
        place, number = place * len(known) + np.searchsorted(known, all_of - 1e-6), number * len(known) + index
    counts = np.bincount(number, minlength=int(max(place.max(), number.max())) + 1)
    if counts.sum() != counts[place].sum():
        return 0.0
    law = np.full(len(points), 1.0 / len(points)) if shares is None else shares
    if counts[place][law == 0].any():
        return 0.0
    alive = law > 0
    if alive.sum() == 1:
        return 1.0
    have, want = pooled(counts[place][alive].astype(float), law[alive] * len(drawn))
    if len(have) == 1:
        return 1.0
    return float(stats.chi2.sf(((have - want) ** 2 / want).sum(), len(have) - 1))


def uniform_p_values(p_values: Sequence[float]) -> float:
    """Kolmogorov-Smirnov p-value of p-values against the uniform law."""
    return float(stats.kstest(p_values, "uniform").pvalue)


def ks(values: npt.ArrayLike, cdf: Callable[[FloatArray], FloatArray] | str, **options: Any) -> float:
    """Kolmogorov-Smirnov p-value of draws against a distribution function."""
    return float(stats.kstest(np.asarray(values, dtype=float), cdf, **options).pvalue)


def flat(low: float, high: float) -> Callable[[FloatArray], FloatArray]:
    """The distribution function of the uniform law."""
    return lambda v: np.clip((v - low) / (high - low), 0.0, 1.0)
