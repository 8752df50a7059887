"""Random words by number: what a person draws depends on the seed, the purpose, where the person stands, and the number of the draw.

Not on the order of people or columns, the size of a block, the number of workers, or how many draws are made: Philox makes any stretch of its
words from a counter. So the first hundred draws of a thousand are the draws of a sample of a hundred, and a later round goes on where an earlier one ended.

The words of one draw stand side by side. Region 0 holds a fixed number of words for each draw; whoever needs more (a word that decides nothing, a
proposal that was not accepted, the steps of a chain) takes them from a region of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.errors import DesignError

__all__ = ["Again", "Stream", "WordArray", "below", "below_large", "check_seed", "generator", "keys_of", "open_unit", "region_of", "unit"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
WordArray = npt.NDArray[np.uint64]
Again = Callable[[tuple[npt.NDArray[np.intp], ...], int], WordArray]  # new words for these places, at the so-manieth attempt
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
LARGE = 7 << 20  # the attempt from which on words of large numbers stand


def check_seed(seed: object) -> int:
    """A seed is a whole number that is not negative."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise DesignError("a seed is a whole number, 0 or more", where="seed", got=seed)
    return int(seed)


def keys_of(names: Sequence[str], values: FloatArray, seed: int = 0, purpose: str = "draw") -> WordArray:
    """Return two words a row that stand for its content, the seed and the purpose, whatever the order of the columns.

    -0.0 counts as 0.0 and every NaN as the same.
    """
    order = sorted(range(len(names)), key=lambda j: names[j])
    canon = np.ascontiguousarray(values[:, order] + 0.0)
    canon[np.isnan(canon)] = np.nan
    head = blake2b(repr((seed, purpose, sorted(names))).encode(), digest_size=32).digest()
    little = canon.astype("<f8", copy=False)
    digests = b"".join(blake2b(row, digest_size=16, key=head).digest() for row in little)
    return np.frombuffer(digests, dtype="<u8").reshape(-1, 2).astype(np.uint64)


def region_of(*words: object) -> int:
    """Return the number of a region by its name; 0 is nobody's."""
    return int.from_bytes(blake2b(repr(words).encode(), digest_size=8).digest(), "little") | 1


class Stream:
    """The random words of some people: one key each, from `keys_of`."""

    def __init__(self, keys: WordArray) -> None:
        self.keys = keys

    def take(self, people: slice | npt.NDArray[np.intp]) -> Stream:
        """Return the stream of some of these people."""
        return Stream(self.keys[people])

    def words(self, first: int, n: int, width: int, region: int = 0, attempt: int = 0) -> WordArray:
        """Return the words of draws `first`, … of everybody: (people, n, width)."""
        out = np.empty((len(self.keys), n * width), dtype=np.uint64)
        for line, made in zip(out, self._runs(self.keys.tolist(), first * width, n * width, region, attempt)):
            line[:] = made
        return out.reshape(len(self.keys), n, width)

    def at(self, people: npt.NDArray[np.intp], draws: IntArray, width: int, region: int, attempt: int = 0) -> WordArray:
        """Return the words of single draws, (len(draws), width): equal to those in `words`."""
        out = np.empty((len(draws), width), dtype=np.uint64)
        cuts = np.flatnonzero((np.diff(people) != 0) | (np.diff(draws) != 1)) + 1  # draws that follow each other are made together
        for begin, end in zip([0, *cuts.tolist()], [*cuts.tolist(), len(draws)]):
            if end > begin:
                key = self.keys[people[begin]].tolist()
                for made in self._runs([key], int(draws[begin]) * width, (end - begin) * width, region, attempt):
                    out[begin:end] = made.reshape(-1, width)
        return out

    @staticmethod
    def _runs(keys: list[list[int]], start: int, count: int, region: int, attempt: int) -> Iterator[WordArray]:
        """Yield `count` words for each key, from word `start` of a region on."""
        block, skip = divmod(start, 4)
        philox, state = _maker()
        for key in keys:
            state["state"] = {"key": key, "counter": (block, 0, attempt, region)}
            philox.state = state  # type: ignore[assignment]
            yield philox.random_raw(skip + count)[skip:]


_THREAD = threading.local()


def _maker() -> tuple[np.random.Philox, dict[str, Any]]:
    """Return the generator of this thread and a state to set it to; whatever it held before is gone."""
    found: tuple[np.random.Philox, dict[str, Any]] | None = getattr(_THREAD, "maker", None)
    if found is None:
        philox = np.random.Philox(key=0)
        left = {"buffer": (0, 0, 0, 0), "buffer_pos": 4}  # nothing; numpy reads tuples faster than arrays
        found = _THREAD.maker = (philox, {**philox.state, **left})
    return found


def unit(words: WordArray) -> FloatArray:
    """Return words as numbers in [0, 1)."""
    return np.asarray((words >> np.uint64(11)) * 2.0**-53, dtype=np.float64)


def open_unit(words: WordArray) -> FloatArray:
    """Return words as numbers in (0, 1)."""
    return np.asarray(((words >> np.uint64(12)) + 0.5) * 2.0**-52, dtype=np.float64)


def below(words: WordArray, size: npt.ArrayLike, again: Again) -> IntArray:
    """Return whole numbers from 0 to size - 1, each exactly as likely; `size` is at most 2^63.

    The number is the upper half of word · size. Words at the edge, which would favour some numbers, are replaced.
    """
    sizes = np.asarray(size, dtype=np.uint64)
    high = words >> HALF
    if (sizes <= LOW).all():  # the upper half of a word tells, unless its product is this close below a multiple of 2^32, or on it
        high *= sizes
        close = np.negative(high)
        close &= LOW
        high >>= HALF
        near = close <= sizes
        open_ = np.nonzero(near) if near.any() else ()
    else:
        open_ = np.nonzero(np.ones(words.shape, dtype=bool))
    attempt, taken = 0, words[open_] if open_ else words.ravel()[:0]
    while len(taken):
        here = np.broadcast_to(sizes, high.shape)[open_]
        high[open_], low = _product(taken, here)
        edge = low < (np.uint64(0) - here) % here  # 2^64 mod size
        open_ = tuple(axis[edge] for axis in open_)
        attempt += 1
        taken = again(open_, attempt) if edge.any() else taken[:0]
    return high.view(np.int64)


def below_large(words: WordArray, size: int, stream: Stream, first: int, region: int) -> list[int]:
    """Return whole numbers from 0 to size - 1, each exactly as likely, for a size beyond 2^62: one for each draw of one person.

    A draw's number takes as many words as it needs, the first of `words` among them.
    """
    more = size.bit_length() // 64 + 1
    rest = stream.words(first, len(words), more, region, LARGE)[0]
    scale, found = 64 * (more + 1), []
    for i, word in enumerate(words.tolist()):
        product, attempt = int.from_bytes(rest[i].tobytes() + word.to_bytes(8, "little"), "little") * size, 0
        while product & ((1 << scale) - 1) < (1 << scale) % size:  # at the edge: it would favour some numbers
            attempt += 1
            again = stream.at(np.zeros(1, dtype=np.intp), np.array([first + i]), more + 1, region, LARGE + attempt)[0]
            product = int.from_bytes(again.tobytes(), "little") * size
        found.append(product >> scale)
    return found


def _product(words: WordArray, sizes: WordArray) -> tuple[WordArray, WordArray]:
    """Return the upper and the lower 64 bits of a product of 64-bit numbers."""
    a, b = words >> HALF, words & LOW
    c, d = sizes >> HALF, sizes & LOW
    cross = a * d + ((b * d) >> HALF)
    middle = (cross & LOW) + b * c
    return a * c + (cross >> HALF) + (middle >> HALF), words * sizes


def generator(*name: object) -> np.random.Generator:
    """Return numpy's generator under a name: seed, content, purpose."""
    digest = blake2b(repr(name).encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=np.frombuffer(digest, dtype=np.uint64)))
