"""One person's reachable points: which features move, and for which of their values the target is attained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.audit.cases import Reached, reached
from budge.audit.result import Audit
from budge.audit.sources import TableSource
from budge.errors import InputError
from budge.reach.reacher import reacher
from budge.report.figures.drawing import Figure
from budge.report.figures.scales import SHARES, share_names
from budge.report.figures.words import clean, shortened, text_width

__all__ = ["Cell", "cells_of", "moving", "person"]

FloatArray = npt.NDArray[np.float64]
MOST_VALUES, BINS, MOST_ROWS = 14, 8, 16


@dataclass(frozen=True)
class Cell:
    """Points with one value (or range of values) of a feature: their share of all, and the share of them that attain the target."""

    words: str
    share: float
    hits: float
    start: bool
    edges: tuple[str, str] | None = None  # the ends of a range


def moving(found: Reached) -> list[int]:
    """Return the features that take more than one value, the most telling about the target first."""
    several = [j for j in range(len(found.names)) if not np.array_equal(found.values[:, j], np.full(len(found.values), found.start[j]), equal_nan=True)]
    return sorted(several, key=lambda j: -_telling(cells_of(found, j)))


def _nearest(audit: Audit, label: Any, name: str) -> FloatArray | None:
    """Return the nearest hit of a person as numbers, one per declared feature; None where none was found."""
    rows, at, source = audit.rows[name], audit._at(label, name), audit._context().source
    if audit.why_not(label, model=name) or not rows.counts.reached.shape[1] or not isinstance(source, TableSource):
        return None
    point: FloatArray = source.values[int(rows.place[at])].copy()
    point[reacher(source.model).moved] = audit.reached(np.array([at]), model=name)[0]
    return point


def person(audit: Audit, label: Any, *, model: str | None = None, most: int = 2000) -> Figure:
    """Return one person's reachable points, once for every feature that moves, the most telling feature on top.

    Each row holds all points: one cell per value, as wide as its share of the points, filled from below by the share of them that
    attain the target. So the filled area of every row is the person's responsiveness (weighted draws: with weights that add up to
    one). Start and nearest hit are marked.

    Parameters
    ----------
    label
        The person's label in the audit's table.
    model
        Which model, where there are several.
    most
        Points at most: the first draws, or some of a listed set.
    """
    found = reached(audit, label, model, most=most)
    features = moving(found)
    if not features:
        raise InputError("no feature of this person moves", where="person", got=label)
    shown = features[:MOST_ROWS]
    rows = [("features that change", _changed(found)), *((found.names[j], cells_of(found, j)) for j in shown)]
    name = audit._named(model)
    nearest = _nearest(audit, label, name)
    row = audit._row(label, name)
    rho = float(row["rho"]) if row["method"] == "proved" and row["rho"] == row["rho"] else float(found.weights[found.hit].sum())
    kind = "reachable points" if found.exact else "draws"
    title = f"Person {clean(label)}: {found.hit.sum():,} of {len(found.hit):,} {kind} attain the target" + (
        f" ({name})" if len(audit.models) > 1 else ""
    )
    note = ["Cells: values, as wide as their share of the points; filled by the share that attains the target."]
    if found.points > len(found.hit):
        note.append(f"{len(found.hit):,} of {found.points:,} {kind} are shown.")
    if len(features) > len(shown):
        note.append(f"{len(features) - len(shown)} features that tell less are not shown.")
    left = int(min(max(max(text_width(n) for n, _ in rows) + 24, 90), 230))
    figure = Figure(
        title,
        x=(0.0, 1.0),
        y=(len(rows), 0.0),
        width=760,
        tall=52 * len(rows),
        left=left,
        x_label="share of the points",
        note=" ".join(note),
    )
    figure.tick("x", SHARES, share_names(), grid=False)
    figure.tick("y", [k + 0.36 for k in range(len(rows))], [n for n, _ in rows], grid=False)
    for k, (feature, cells) in enumerate(rows):
        there = None if nearest is None or k == 0 else _place(found, shown[k - 1], nearest[shown[k - 1]])
        _strip(figure, k, feature, cells, there)
    figure.legend(["attains the target", "does not"], ["blue", "faint"])
    figure.legend(["start"], ["ink"], kind="diamond")
    if nearest is not None:
        figure.legend(["nearest point found that attains it"], ["green"], kind="point")
    figure.about = f"Responsiveness {rho:.4g}. " + "; ".join(
        f"{feature}: " + ", ".join(f"{c.words} {c.hits:.0%}" for c in sorted(cells, key=lambda c: -c.hits)[:3])
        for feature, cells in rows[1:6]
    )
    return figure


def _strip(figure: Figure, k: int, feature: str, cells: list[Cell], nearest: int | None) -> None:
    """One row: the cells between y = k + 0.06 and k + 0.66, their words below."""
    from budge.report.figures.drawing import Bar

    top, base, x = k + 0.06, k + 0.66, 0.0
    wide = figure.width - figure.left - figure.right
    free = -10.0  # where the next words may begin, in pixels
    for c, cell in enumerate(cells):
        end = x + cell.share
        words = f"{feature} {cell.words}: {cell.share:.1%} of the points, {cell.hits:.1%} of them attain the target"
        figure.marks.append(Bar(x, base, end, top, "faint", "paper", title=words))
        if cell.hits > 0:
            figure.marks.append(Bar(x, base, end, base - (base - top) * cell.hits, "blue", "paper", title=words))
        middle = (x + end) / 2
        if cell.start:
            figure.point(middle, (top + base) / 2, colour="ink", shape="diamond", size=5, title=f"start: {cell.words}")
        if nearest == c:
            figure.point(
                middle,
                (top + base) / 2 - (0.0 if not cell.start else 0.18),
                colour="green",
                shape="circle",
                size=4,
                title=f"nearest hit: {cell.words}",
            )
        if cell.edges is not None:
            free = _edge(figure, x, base, cell.edges[0], free)
            if c == len(cells) - 1:
                _edge(figure, 1.0, base, cell.edges[1], free)
            x = end
            continue
        short = shortened(cell.words, max(cell.share * wide - 4, 30), 10)
        half = text_width(short, 10) / 2
        place = min(max(middle * wide, half), wide - half)
        if place - half >= free:
            figure.text(
                place / wide,
                base,
                short,
                anchor="middle",
                size=10,
                colour="muted",
                down=9,
                title=cell.words if short != cell.words else "",
            )
            free = place + half + 5
        x = end


def _edge(figure: Figure, x: float, base: float, words: str, free: float) -> float:
    """The end of a range, below the place where two cells meet; where the next words may begin."""
    wide = figure.width - figure.left - figure.right
    half = text_width(words, 10) / 2
    place = min(max(x * wide, half), wide - half)
    if place - half < free:
        return free
    figure.text(place / wide, base, words, anchor="middle", size=10, colour="muted", down=9)
    return place + half + 5


def cells_of(found: Reached, j: int) -> list[Cell]:
    """The values of a feature in order, or ranges of them where there are many."""
    at, edges = _grouped(found, j)
    names = _words(found, j, edges)
    cells = _cells(found, at, names, _which(found, j, found.start[j], edges))
    return cells if edges is None else [replace(c, edges=(c.words.split(" to ")[0], c.words.split(" to ")[1])) for c in cells]


def _grouped(found: Reached, j: int) -> tuple[npt.NDArray[np.intp], FloatArray | None]:
    """The cell of each point, and the edges of the ranges (none: one cell a value)."""
    column = found.values[:, j]
    known = np.unique(np.append(column, found.start[j]))
    known = known[~np.isnan(known)]
    if len(known) <= MOST_VALUES:
        return np.searchsorted(known, column).astype(np.intp), None
    edges = np.unique(np.quantile(column[~np.isnan(column)], np.linspace(0, 1, BINS + 1), method="inverted_cdf"))
    return np.clip(np.searchsorted(edges, column, side="right") - 1, 0, len(edges) - 2).astype(np.intp), edges


def _which(found: Reached, j: int, value: float, edges: FloatArray | None) -> int:
    """The cell that a value belongs to; -1 where none does."""
    if np.isnan(value):
        return -1
    if edges is not None:
        return int(np.clip(np.searchsorted(edges, value, side="right") - 1, 0, len(edges) - 2))
    known = np.unique(np.append(found.values[:, j], found.start[j]))
    return int(np.searchsorted(known[~np.isnan(known)], value))


def _place(found: Reached, j: int, value: float) -> int:
    return _which(found, j, value, _grouped(found, j)[1])


def _words(found: Reached, j: int, edges: FloatArray | None) -> list[str]:
    if edges is not None:
        return [f"{_short(a)} to {_short(b)}" for a, b in pairwise(edges.tolist())]
    known = np.unique(np.append(found.values[:, j], found.start[j]))
    known = known[~np.isnan(known)]
    return [_short(found.given(j, v)) for v in known.tolist()]


def _short(value: Any) -> str:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        return clean(value)
    number = float(value)
    return f"{number:,.4g}" if abs(number) < 10_000 else f"{number:,.0f}"


def _cells(found: Reached, at: npt.NDArray[np.intp], names: list[str], start: int) -> list[Cell]:
    share = np.bincount(at, found.weights, minlength=len(names))
    hits = np.bincount(at, found.weights * found.hit, minlength=len(names))
    return [
        Cell(name, float(s), float(h / s) if s > 0 else 0.0, k == start) for k, (name, s, h) in enumerate(zip(names, share, hits)) if s > 0 or k == start
    ]  # fmt: skip


def _changed(found: Reached) -> list[Cell]:
    """By how many features change."""
    moved = (found.values != found.start) & ~(np.isnan(found.values) & np.isnan(found.start))
    many = moved.sum(axis=1)
    known = np.unique(many)
    return _cells(
        found,
        np.searchsorted(known, many).astype(np.intp),
        [str(v) for v in known],
        int(np.flatnonzero(known == 0)[0]) if 0 in known else -1,
    )


def _telling(cells: list[Cell]) -> float:
    """How much a feature's value tells about a hit: the mutual information."""
    rho = sum(c.share * c.hits for c in cells)
    if not 0 < rho < 1:
        return 0.0
    total = 0.0
    for c in cells:
        for part, whole in ((c.hits, rho), (1 - c.hits, 1 - rho)):
            if part > 0:
                total += c.share * part * np.log(part / whole)
    return float(total)
