"""Which configurations have a point where rules must be evaluated: seen by a proposal, disproved by intervals, or dropped within a budget.

What is found follows from the model and the person alone: the proposals come from words that are the same for everybody, by the number of the configuration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from budge.reach.shave import shaved
from budge.reach.streams import Stream, region_of, unit

if TYPE_CHECKING:
    from budge.reach.fibres import Fibres

__all__ = ["Viable", "viable"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
FIRST = 64  # proposals for each configuration before intervals are asked
FEWEST, MOST, TOTAL = 256, 2**20, 2**22  # proposals after that: for one configuration at least, at most, and for all that a person has left
HALVED = 256  # boxes into which one configuration is cut to disprove it
MOST_HALVED = 200  # configurations of a person for which that is done
OFTEN = 0.1  # share of proposals that pass below which boxes are narrowed
AT_ONCE = 2**16  # proposals that are held at once


@dataclass
class Viable:
    """Which rows have a point; for each person how many were dropped undecided, and after how many proposals."""

    exists: BoolArray
    dropped: npt.NDArray[np.int64]
    tries: int = 0
    hopeless: frozenset[int] = frozenset()  # people for whom staying is feasible and nothing else was found: there is no law to draw from

    def __str__(self) -> str:
        return f"{int(self.dropped.sum()):,} configurations dropped: no point in {self.tries:,} proposals each, none proved impossible"


def viable(fibres: Fibres) -> Viable:
    """Return which rows have a point that passes the piece's checks; boxes that hardly ever pass are narrowed on the way."""
    piece = fibres.piece
    found = Viable(np.asarray(np.any(fibres.there, axis=0)), np.zeros(piece.people, dtype=np.int64))
    if piece.checks is None:
        return found
    for person in range(piece.people):
        rows = np.arange(piece.begin[person], piece.begin[person + 1])
        rows = rows[found.exists[rows]]
        if len(rows):
            _decide(fibres, person, rows, found)
    return found


def _decide(fibres: Fibres, person: int, rows: IntArray, found: Viable) -> None:
    """Decide about the rows of one person."""
    piece = fibres.piece
    passed = _passed(fibres, rows, FIRST, 0)
    rare = np.flatnonzero(passed < OFTEN * FIRST)
    narrowed = 0
    for at in rows[rare[np.argsort(passed[rare], kind="stable")]].tolist():
        if narrowed < MOST_HALVED:
            narrowed += _narrow(fibres, at)
    if len(rare):
        fibres.forget()
    pending = rows[passed == 0]
    gone = ~np.any([there[pending] for there in fibres.there], axis=0)
    single = fibres.dimensions[:, pending].max(axis=0) == 0
    if piece.possible is not None:
        gone |= np.array([_disproved(fibres, at, HALVED if i < MOST_HALVED else 1) for i, at in enumerate(pending.tolist())], dtype=bool)
    gone |= single
    found.exists[pending[gone]] = False
    pending = pending[~gone]
    left = rows[found.exists[rows]]
    if not len(pending) or (piece.measure == "volume" and len(left) > len(pending)):
        return  # where whole points are proposed, what holds nothing is never drawn
    tries = int(np.clip(TOTAL // len(pending), FEWEST, MOST))
    pending = pending[_passed(fibres, pending, tries, 1) == 0]
    found.tries = max(found.tries, tries)
    if len(pending) and len(pending) == len(left) and _stays(fibres, pending):
        found.hopeless |= {person}
        return
    found.exists[pending] = False
    found.dropped[person] = len(pending)


def _passed(fibres: Fibres, rows: IntArray, tries: int, attempt: int) -> npt.NDArray[np.int64]:
    """Return how many of so many proposals pass, for each row; no more are made once one has passed, after the first so many."""
    from budge.reach.piece import Draws

    piece = fibres.piece
    stream, region = Stream(np.zeros((1, 2), dtype=np.uint64)), region_of("viable")
    passed = np.zeros(len(rows), dtype=np.int64)
    numbers = rows - piece.begin[piece.who[rows]]  # of the configuration, whoever else is there
    done, pending = 0, np.arange(len(rows))
    while len(pending) and done < tries:
        offer = int(min(max(FIRST, done), tries - done, max(1, AT_ONCE // len(pending))))
        here = np.repeat(rows[pending], offer)
        number = ((numbers[pending] * MOST * 2)[:, None] + done + np.arange(offer)).ravel()
        draws = Draws(stream, np.zeros(len(here), dtype=np.intp), number, region, attempt << 8)
        uniform = unit(draws.words(len(piece.reals), 0))
        point = piece.point_of(here, np.zeros(len(here), dtype=np.int64), uniform, draws)
        assert piece.checks is not None
        good = piece.checks(piece.moved_by(here, point), here)
        passed[pending] += good.reshape(len(pending), offer).sum(axis=1)
        done += offer
        pending = pending[passed[pending] == 0] if done >= FIRST else pending
    return passed


def _narrow(fibres: Fibres, at: int) -> bool:
    """Cut the slices off the boxes of a row in which the checks cannot hold; return whether anything is left."""
    piece, left = fibres.piece, False
    if piece.possible is None:
        return False
    for i, box in enumerate(fibres.boxes):
        if not fibres.there[i][at] or any(at in rows for rows, _ in fibres.joints[i]) or piece.ladder is not None:
            continue
        ends = shaved(_might(fibres, i, at), box.low[at], box.high[at])
        if ends is None:
            fibres.there[i][at] = False
        else:
            box.low[at], box.high[at] = ends
            left = True
    return left


def _disproved(fibres: Fibres, at: int, most: int) -> bool:
    """Return whether no box of a row can hold a point that passes, by interval arithmetic."""
    cells = [(i, box.low[at], box.high[at]) for i, box in enumerate(fibres.boxes) if fibres.there[i][at]]
    return all(_nowhere(_might(fibres, i, at), low, high, most) for i, low, high in cells)


def _might(fibres: Fibres, cell: int, at: int) -> Callable[[FloatArray, FloatArray], bool]:
    """Return whether a box of a row might hold a point: as far as the rules tell, and the rows of the cell."""
    joint, spot = next(((joint, int(np.searchsorted(rows, at))) for rows, joint in fibres.joints[cell] if at in rows), (None, 0))
    possible = fibres.piece.possible
    assert possible is not None

    def might(low: FloatArray, high: FloatArray) -> bool:
        if joint is not None:
            ends = np.stack([joint.slopes[spot] * low[joint.places], joint.slopes[spot] * high[joint.places]])
            fewest, most, limit = ends.min(axis=0).sum(axis=1), ends.max(axis=0).sum(axis=1), joint.limits[spot]
            slack = 1e-8 * np.maximum(1.0, np.maximum(np.abs(limit), np.abs(ends).max(axis=(0, 2))))
            if ((fewest > limit + slack) | (joint.equal & (most < limit - slack))).any():
                return False
        return possible(at, low, high)

    return might


def _nowhere(possible: Callable[[FloatArray, FloatArray], bool], low: FloatArray, high: FloatArray, most: int) -> bool:
    """Return whether a box holds nothing: it is cut in half, widest side first, until no piece is possible or there are too many."""
    first = np.maximum(high - low, 1e-300)
    todo = [(low, high)]
    looked = 0
    while todo:
        a, b = todo.pop()
        looked += 1
        if not possible(a, b):
            continue
        if looked + len(todo) + 2 > most:
            return False
        j = int(((b - a) / first).argmax())
        middle = (a[j] + b[j]) / 2
        upper, lower = a.copy(), b.copy()
        upper[j], lower[j] = middle, middle
        todo += [(upper, b), (a, lower)]
    return True


def _stays(fibres: Fibres, rows: IntArray) -> bool:
    """Return whether making no change is feasible."""
    piece = fibres.piece
    assert piece.checks is not None
    still = np.array([at for at in rows.tolist() if all(column[at] == 0 for column in piece.changes.values())], dtype=np.intp)
    if not len(still):
        return False
    inside = np.zeros(len(still), dtype=bool)
    for box, there, joints in zip(fibres.boxes, fibres.there, fibres.joints):
        here = there[still] & (box.low[still] <= 1e-9).all(axis=1) & (box.high[still] >= -1e-9).all(axis=1)
        for rows_, joint in joints:
            for k, at in enumerate(still.tolist()):
                if here[k] and at in rows_:
                    spot = int(np.searchsorted(rows_, at))
                    gap, size = -joint.limits[spot], 1e-9 * np.maximum(1.0, np.abs(joint.limits[spot]))
                    here[k] = bool(((gap <= size) & (~joint.equal | (gap >= -size))).all())
        inside |= here
    none = {name: np.zeros(len(still)) for name in piece.names}
    return bool((inside & piece.checks(none, still)).any())
