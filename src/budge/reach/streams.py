"""Named streams of randomness: a person's draws depend on (seed, content of x, purpose) and on nothing else.

Not on the order of people, the size of a block, the number of workers, or the order of columns.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from budge.errors import DesignError

__all__ = ["check_seed", "content_keys", "stream"]


def check_seed(seed: object) -> int:
    """A seed is a whole number that is not negative."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise DesignError("a seed is a whole number, 0 or more", where="seed", got=seed)
    return int(seed)


def content_keys(names: tuple[str, ...], values: npt.NDArray[np.float64]) -> list[int]:
    """One number a row that stands for its content, whatever the order of the columns.

    -0.0 counts as 0.0 and every NaN as the same.
    """
    order = np.argsort(np.array(names, dtype=object)) if len(names) > 1 else np.zeros(len(names), dtype=int)
    canon = np.ascontiguousarray(values[:, order] + 0.0)
    canon[np.isnan(canon)] = np.nan
    head = blake2b("\x00".join(sorted(names)).encode(), digest_size=16).digest()
    little = canon.astype("<f8", copy=False)
    return [int.from_bytes(blake2b(row.tobytes(), digest_size=16, key=head).digest(), "little") for row in little]


def stream(seed: int, key: int, purpose: str) -> np.random.Generator:
    """The generator of one person for one purpose.

    The words are those that ``SeedSequence([seed, key, number of the purpose])`` would make, only sooner.
    """
    words = np.concatenate([_words(seed), _new_words(key), _words(_number(purpose))])
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))


@lru_cache(maxsize=256)
def _number(purpose: str) -> int:
    return int.from_bytes(blake2b(purpose.encode(), digest_size=8).digest(), "little")


def _new_words(number: int) -> npt.NDArray[np.uint32]:
    count = max(1, -(-number.bit_length() // 32))
    return np.frombuffer(number.to_bytes(4 * count, "little"), dtype="<u4")


_words = lru_cache(maxsize=256)(_new_words)
