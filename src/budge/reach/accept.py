"""Rejection by numbered words: what a draw accepts depends on the words of that draw alone, never on how many draws are made together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from budge.errors import DrawError
from budge.reach.streams import Stream, region_of

__all__ = ["Accepted", "Words", "first_accepted", "fixed_words", "shifted", "times", "words_from"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
WordArray = npt.NDArray[np.uint64]
Words = Callable[[IntArray, int, int], WordArray]  # numbers of draws, attempt, words per draw -> (draws, words per draw)
Propose = Callable[[IntArray, WordArray], tuple[FloatArray, BoolArray]]  # places among the draws, words -> points, whether accepted
MOST = 2**20  # proposals for one draw
AT_ONCE = 2**16  # words that are held at once
APART = 2**32  # attempts between two users of the same words


@dataclass(frozen=True)
class Accepted:
    """The first accepted proposal of each draw, and how many proposals were made and accepted for all of them."""

    points: FloatArray  # (n, k); not a number where nothing was found
    found: BoolArray
    proposed: int
    accepted: int

    def all_from(self, what: str) -> FloatArray:
        """Return the points, or raise an error where some were not found."""
        if self.found.all():
            return self.points
        raise DrawError(
            f"{int((~self.found).sum())} of {len(self.found)} draws from {what} were not accepted",
            got=f"{self.accepted} of {self.proposed} proposals accepted",
            remedy="couple fewer continuous features",
        )


def first_accepted(draws: IntArray, words: Words, width: int, propose: Propose, columns: int, most: int = MOST, total: float = np.inf) -> Accepted:
    """Return the first accepted proposal of each draw.

    Attempt r offers 2^r proposals to every draw that is still pending, so that small acceptances need few attempts and the
    proposals in vain are at most as many as those before. A draw that has been offered `most` proposals is given up,
    and so are all that are pending once `total` proposals have been made.
    """
    points = np.full((len(draws), columns), np.nan)
    pending = np.arange(len(draws))
    spent = proposed = accepted = attempt = 0
    while len(pending) and spent < most and proposed < total:
        offer = max(1, min(2**attempt, AT_ONCE // width))
        at_once = max(1, AT_ONCE // (offer * width))
        left: list[IntArray] = []
        for start in range(0, len(pending), at_once):
            some = pending[start : start + at_once]
            found, good = propose(np.repeat(some, offer), words(draws[some], attempt, offer * width).reshape(-1, width))
            table = good.reshape(len(some), offer)
            done = table.any(axis=1)
            first = np.arange(len(some)) * offer + table.argmax(axis=1)
            points[some[done]] = found[first[done]]
            left.append(some[~done])
            accepted += int(good.sum())
        proposed += offer * len(pending)
        pending = np.concatenate(left)
        spent += offer
        attempt += 1
    missing = np.zeros(len(draws), dtype=bool)
    missing[pending] = True
    return Accepted(points, ~missing, proposed, accepted)


def words_from(stream: Stream, person: int = 0, region: int = 1) -> Words:
    """Return one person's words of a region."""
    alone = stream.take(slice(person, person + 1))

    def words(draws: IntArray, attempt: int, width: int) -> WordArray:
        n = len(draws)
        if n and draws[-1] - draws[0] == n - 1 and (np.diff(draws) == 1).all():
            return np.asarray(alone.words(int(draws[0]), n, width, region, attempt)[0])
        return alone.at(np.zeros(n, dtype=np.intp), draws, width, region, attempt)

    return words


def fixed_words(*name: object) -> Words:
    """Return words that are the same for everybody, by name: for pilots, whose findings must follow from the shape alone."""
    return words_from(Stream(np.zeros((1, 2), dtype=np.uint64)), region=region_of(*name))


def shifted(words: Words, user: int) -> Words:
    """Return the words of another user: the same draws, other attempts."""
    if user == 0:
        return words
    return lambda draws, attempt, width: words(draws, attempt + user * APART, width)


def times(y: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return ``y @ matrix`` with every row rounded alike, however many there are: BLAS rounds by the number of rows."""
    out, columns = np.zeros((matrix.shape[1], len(y))), np.ascontiguousarray(y.T)
    for column, row in zip(columns, matrix):
        some = np.flatnonzero(row)  # most of it is 0
        if len(some) == len(row):
            out += row[:, None] * column
        else:
            out[some] += row[some, None] * column
    return np.ascontiguousarray(out.T)
