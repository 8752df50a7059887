"""Witnesses without idle moves: what a point changes beyond need is put back, as far as the result is feasible and still attains the target."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from budge.audit.ask import Asker
from budge.audit.sources import BoolArray, Chunk, FloatArray, IntArray, TableSource
from budge.errors import TooLargeError
from budge.reach.reacher import reacher

__all__ = ["shortened"]


def shortened(source: TableSource, places: IntArray, reached: FloatArray, ask: Asker, before: npt.NDArray[Any]) -> FloatArray:
    """Return points (rows, features that can move) in which no single feature, and no part as a whole, can be put back.

    Parameters
    ----------
    places
        The row of the source from which each point starts.
    reached
        The points, each of which attains the target.
    ask, before
        The model, and what it answered about each start.
    """
    maker = reacher(source.model)
    starts, points = source.values[np.ix_(places, maker.moved)], reached.copy()
    ties = _ties(source)
    live: IntArray = np.arange(len(points))
    while len(live):
        rows, back = _candidates(points[live], starts[live], ties)
        rows = live[rows]
        tries = np.where(back, starts[rows], points[rows])
        good = _feasible(source, places[rows], tries)
        rows, back, tries = rows[good], back[good], tries[good]
        if not len(rows):
            break
        hit = ask(source.written(places[rows], tries), before[rows]).hit
        rows, back, tries = rows[hit], back[hit], tries[hit]
        saved = _far(source, places[rows], points[rows]) - _far(source, places[rows], tries)
        order = np.lexsort((-saved, -back.sum(axis=1), rows))  # most features first, then the longest way
        live, first = np.unique(rows[order], return_index=True)
        points[live] = tries[order][first]
    return points


def _far(source: TableSource, places: IntArray, points: FloatArray) -> FloatArray:
    """Return how far points are from where their rows start."""
    return source.distance(Chunk(places, np.ones(len(places), dtype=np.intp), None, np.ascontiguousarray(points.T)))


def _ties(source: TableSource) -> list[BoolArray]:
    """Return which features may be put back together: each by itself, and every part of several; none of a part in which an effect acts."""
    maker = reacher(source.model)
    names = [source.model.features[j].name for j in maker.moved]
    found = []
    for part in source.model.parts:
        own = np.array([name in part.by_name for name in names])
        if own.any() and not part.effects:
            found += [np.eye(len(names), dtype=bool)[j] for j in np.flatnonzero(own)] + ([own] if own.sum() > 1 else [])
    return found


def _candidates(points: FloatArray, starts: FloatArray, ties: list[BoolArray]) -> tuple[IntArray, BoolArray]:
    """Return (row, features put back) of every try that changes something."""
    moved = (points != starts) & ~(np.isnan(points) & np.isnan(starts))
    rows, back = [], []
    for tie in ties:
        own = moved & tie
        some = np.flatnonzero(own.any(axis=1) if tie.sum() == 1 else own.sum(axis=1) > 1)
        rows.append(some)
        back.append(own[some])
    if not rows:
        return np.zeros(0, np.intp), np.zeros((0, points.shape[1]), dtype=bool)
    return np.concatenate(rows), np.concatenate(back)


def _feasible(source: TableSource, places: IntArray, points: FloatArray) -> BoolArray:
    """Return which points are feasible from where their rows start; parts in which an effect acts are as they were drawn."""
    maker = reacher(source.model)
    starts = source.values[places]
    change = np.zeros_like(starts)
    change[:, maker.moved] = np.nan_to_num(points - starts[:, maker.moved])
    place = {f.name: j for j, f in enumerate(source.model.features)}
    good = np.ones(len(points), dtype=bool)
    for part in source.model.parts:
        if part.active and not part.effects and len(points):
            x, moved = ({name: table[:, place[name]] for name in part.names} for table in (starts, change))
            try:
                good &= np.broadcast_to(part.feasible(x, moved), good.shape)
            except TooLargeError:
                return np.zeros(len(points), dtype=bool)
    return good
