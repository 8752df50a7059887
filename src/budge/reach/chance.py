"""Random numbers of many people for the expressions of effects: by inversion, one word a number, so that they go by the number of the draw."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.reach.streams import LARGE, Stream, below, open_unit, region_of, unit

__all__ = ["Chance"]

FloatArray = npt.NDArray[np.float64]


class Chance:
    """Draws `first`, … of some people, n each; every label has numbers of its own."""

    def __init__(self, stream: Stream, first: int, n: int) -> None:
        self.stream, self.first, self.n = stream, first, n

    def numbers(self, label: str) -> _Numbers:
        """Return what an expression draws from."""
        return _Numbers(self, region_of("effect", label))

    def generators(self, label: str) -> Iterator[tuple[slice, np.random.Generator]]:
        """Yield the draws of each person and a generator for a function that draws them."""
        region = region_of("effect", label)
        for person, key in enumerate(self.stream.keys):
            philox = np.random.Philox(key=key, counter=np.array([0, self.first, LARGE, region], dtype=np.uint64))
            yield slice(person * self.n, (person + 1) * self.n), np.random.Generator(philox)


class _Numbers:
    """The distributions of numpy's generator that the language has; each call has words of its own."""

    def __init__(self, chance: Chance, region: int) -> None:
        self._chance, self._region, self._calls = chance, region, 0

    def _words(self, shape: tuple[int, ...]) -> npt.NDArray[np.uint64]:
        chance = self._chance
        width = int(np.prod(shape[1:], dtype=int))
        words = chance.stream.words(chance.first, chance.n, width, self._region, self._calls)
        self._calls += 1
        return words.reshape(shape)

    def random(self, shape: tuple[int, ...]) -> FloatArray:
        """Uniform in [0, 1)."""
        return unit(self._words(shape))

    def standard_normal(self, shape: tuple[int, ...]) -> FloatArray:
        """Normal with mean 0 and deviation 1."""
        from scipy.special import ndtri

        return np.asarray(ndtri(open_unit(self._words(shape))))

    def normal(self, mean: Any, sd: Any, shape: tuple[int, ...]) -> FloatArray:
        """Normal."""
        return np.asarray(mean + sd * self.standard_normal(shape))

    def lognormal(self, mean: Any, sd: Any, shape: tuple[int, ...]) -> FloatArray:
        """The exponential of a normal."""
        return np.exp(self.normal(mean, sd, shape))

    def uniform(self, low: Any, high: Any, shape: tuple[int, ...]) -> FloatArray:
        """Uniform between two ends."""
        return np.asarray(low + (high - low) * self.random(shape))

    def exponential(self, mean: Any, shape: tuple[int, ...]) -> FloatArray:
        """Exponential."""
        return np.asarray(-mean * np.log(open_unit(self._words(shape))))

    def triangular(self, low: Any, mode: Any, high: Any, size: tuple[int, ...]) -> FloatArray:
        """Triangular."""
        u, wide = self.random(size), np.asarray(high - low)
        turn = (mode - low) / wide
        return np.asarray(np.where(u < turn, low + np.sqrt(u * wide * (mode - low)), high - np.sqrt((1 - u) * wide * (high - mode))))

    def gamma(self, shape: Any, scale: Any, size: tuple[int, ...]) -> FloatArray:
        """Gamma."""
        from scipy.special import gammaincinv

        return np.asarray(scale * gammaincinv(shape, open_unit(self._words(size))))

    def beta(self, a: Any, b: Any, shape: tuple[int, ...]) -> FloatArray:
        """Beta."""
        from scipy.special import betaincinv

        return np.asarray(betaincinv(a, b, open_unit(self._words(shape))))

    def integers(self, low: Any, high: Any, size: tuple[int, ...], endpoint: bool = True) -> npt.NDArray[np.int64]:
        """Whole numbers from low to high, both included."""
        assert endpoint
        chance, call = self._chance, self._calls
        sizes = np.broadcast_to(np.asarray(high) - np.asarray(low) + 1, size)

        def again(places: tuple[npt.NDArray[np.intp], ...], attempt: int) -> npt.NDArray[np.uint64]:
            people, draws = np.divmod(places[0], chance.n)
            return chance.stream.at(people, draws + chance.first, 1, self._region, call + (attempt << 16))[:, 0]

        return np.asarray(below(self._words(size), sizes, again) + low)

    def poisson(self, rate: Any, shape: tuple[int, ...]) -> FloatArray:
        """Poisson."""
        from scipy.stats import poisson

        return np.asarray(poisson.ppf(open_unit(self._words(shape)), rate))

    def binomial(self, n: Any, p: Any, shape: tuple[int, ...]) -> FloatArray:
        """Binomial."""
        from scipy.stats import binom

        return np.asarray(binom.ppf(open_unit(self._words(shape)), n, p))
