"""People as marks: each at their exact responsiveness, those without a way and those with every way set apart.

Drawn for one width at a time, since text that shrinks with a figure cannot be read on a phone; the report holds three widths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil

import numpy as np
import numpy.typing as npt

__all__ = ["CATEGORIES", "WIDTHS", "Marks", "mark", "pile", "strip", "unit_of"]

FloatArray = npt.NDArray[np.float64]
#: From no way at all to a way shown to be wide; each has its own shape, so that nothing is told by colour alone.
CATEGORIES = ("none", "nohit", "below", "at", "open", "above")
WIDTHS = {"screen": 950, "phone": 358, "paper": 680}
MOST_MARKS, MOST_HIGH = 400, 30  # of one strip, and of one pile on a screen
SCREEN = (130, 100, 34, 4.4)  # of its parts: the block at the left, that at the right, the gaps, and the radius of a mark


@dataclass(frozen=True)
class Marks:
    """People of one model: responsiveness (in the middle of its ends where it is not known), category, and which end they stand at.

    `left` are people with no hit at all, `right` those who are known to have nothing but hits.
    """

    rho: FloatArray
    category: npt.NDArray[np.int8]  # codes into CATEGORIES
    left: npt.NDArray[np.bool_]
    right: npt.NDArray[np.bool_]

    def count(self, name: str) -> int:
        """Return how many people are in a category."""
        return int((self.category == CATEGORIES.index(name)).sum())


def mark(x: float, y: float, category: str, r: float) -> str:
    """Return one person as SVG: a square without a way, a triangle with almost none, a ring at the threshold, a diamond undecided, a dot above."""
    if category in ("none", "nohit"):
        s = r * (0.92 if category == "none" else 0.8)
        return f'<rect class="m-{category}" x="{x - s:.1f}" y="{y - s:.1f}" width="{2 * s:.1f}" height="{2 * s:.1f}"/>'
    if category == "below":
        s = r * 1.12
        return f'<path class="m-below" d="M{x:.1f} {y - s:.1f}l{s:.1f} {1.8 * s:.1f}h{-2 * s:.1f}z"/>'
    if category == "open":
        s = r * 1.1
        return f'<path class="m-open" d="M{x:.1f} {y - s:.1f}l{s:.1f} {s:.1f}l{-s:.1f} {s:.1f}l{-s:.1f} {-s:.1f}z"/>'
    size = r - 0.8 if category == "at" else r
    return f'<circle class="m-{category}" cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}"/>'


def pile(xs: Sequence[float], gap: float) -> list[int]:
    """Return the level of each of these sorted places: the lowest on which it overlaps no other.

    Examples
    --------
    >>> pile([0, 0, 5, 12], gap=10)
    [0, 1, 2, 0]
    """
    last: list[float] = []
    levels = []
    for x in xs:
        level = next((k for k, taken in enumerate(last) if x - taken >= gap), len(last))
        last[level : level + 1] = [x]
        levels.append(level)
    return levels


def unit_of(marks: Marks) -> int:
    """Return how many people one mark of the strip stands for: the smallest of 1, 2, 5, 10 … with few enough marks, and few enough in a pile."""
    units: list[int] = [u * 10**k for k in range(19) for u in (1, 2, 5)]
    left, right, gap, r = SCREEN
    wide = WIDTHS["screen"] - left - right - 2 * gap

    def fits(unit: int) -> bool:
        xs = marks.rho[_inner(marks, unit)] * wide if len(marks.rho) <= MOST_MARKS * unit else None
        return xs is not None and max(pile(xs.tolist(), 2 * r + 1.1), default=0) < MOST_HIGH

    return next(unit for unit in units if fits(unit))


def strip(marks: Marks, threshold: float, medium: str, *, axis: str) -> str:
    """Return the strip as SVG for one medium (`WIDTHS`); `axis` is the text below it."""
    width = WIDTHS[medium]
    left, right, gap, r = (78, 40, 14, 2.9) if medium == "phone" else (100, 84, 26, 3.4) if medium == "paper" else SCREEN
    start, end, step, side = left + gap, width - right - gap, 2 * r + 1.1, 2 * r + 2.2
    unit = unit_of(marks)
    order = _inner(marks, unit)
    xs = start + marks.rho[order] * (end - start)
    levels = pile(xs.tolist(), step)
    ends = [_every(np.flatnonzero(which), marks.category.astype(float), unit) for which in (marks.left, marks.right)]
    across = 5 if medium != "phone" or len(ends[0]) <= 60 else 8
    across = across if len(ends[0]) <= 100 else int(left / side)
    tall = max((max(levels, default=0) + 1) * step, *(ceil(len(e) / _across(across, which, right, side)) * side for which, e in enumerate(ends)), 110)
    base, top = 56 + tall, 46.0
    parts = [_head(marks, threshold, width, base + 60)]
    missed, known = marks.count("nohit"), ("no way", "ρ = 0")
    texts = (known if not missed else ("no way", "or no hit") if marks.count("none") else ("no hit", "not proved")), ("every way", "ρ = 1")
    for which, (who, at, wide) in enumerate(((ends[0], 0, left), (ends[1], width - right, right))):
        count = int((marks.left, marks.right)[which].sum())
        parts.append(_block(who, marks, at, wide, base, r, side, _across(across, which, right, side), count, texts[which]))
    parts.append(f'<line class="axis" x1="{start}" x2="{end}" y1="{base:.1f}" y2="{base:.1f}"/>')
    for value in _ticks(threshold, medium):
        x = start + value * (end - start)
        parts.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{base:.1f}" y2="{base + 5:.1f}"/>')
        parts.append(f'<text class="quiet" x="{x:.1f}" y="{base + 19:.1f}" text-anchor="middle">{value:g}</text>')
    parts.append(f'<text class="quiet" x="{(start + end) / 2:.1f}" y="{base + 54:.1f}" text-anchor="middle">{escape(axis)}</text>')
    if threshold > 0:
        parts.append(_threshold(marks, threshold, start + threshold * (end - start), top, base))
    parts += [mark(x, base - r - 3 - level * step, CATEGORIES[marks.category[i]], r) for x, i, level in zip(xs, order, levels)]
    return "".join([*parts, "</svg>"])


def _inner(marks: Marks, unit: int) -> npt.NDArray[np.intp]:
    """Return the people between the ends whose marks are drawn, by responsiveness."""
    inner = ~marks.left & ~marks.right
    order = np.concatenate([_every(np.flatnonzero(inner & (marks.category == k)), marks.rho, unit) for k in range(len(CATEGORIES))])
    return np.asarray(order[np.argsort(marks.rho[order], kind="stable")], dtype=np.intp)


def _across(wanted: int, which: int, right: int, side: float) -> int:
    return wanted if which == 0 else min(wanted, int(right / side))


def _every(rows: npt.NDArray[np.intp], by: npt.NDArray[np.float64], unit: int) -> npt.NDArray[np.intp]:
    """Return every unit-th of these rows in the order of `by`; all where one mark is one person."""
    return rows[np.argsort(by[rows], kind="stable")][unit // 2 :: unit]


def _head(marks: Marks, threshold: float, width: int, height: float) -> str:
    told = [f"{marks.count('none'):,} known to have no way at all"]
    told += [f"{marks.count(name):,} {words}" for name, words in (
        ("nohit", "without a hit, not proved"), ("below", f"below {threshold:g}"), ("at", f"at {threshold:g}"), ("open", "undecided"),
    ) if marks.count(name)]  # fmt: skip
    told.append(f"{marks.count('above'):,} above {threshold:g}")
    words = f"{len(marks.rho):,} people by the share of their reachable points that attain the target: {', '.join(told)}."
    return f'<svg viewBox="0 0 {width} {height:.0f}" width="{width}" height="{height:.0f}" role="img" aria-label="{escape(words)}">'


def _block(
    who: npt.NDArray[np.intp], marks: Marks, at: float, wide: float, base: float, r: float, side: float, across: int, count: int, texts: tuple[str, str],
) -> str:  # fmt: skip
    """Return the people at one end, in rows, with their number and two lines of text."""
    middle = at + wide / 2
    parts = [f'<line class="axis" x1="{at}" x2="{at + wide}" y1="{base:.1f}" y2="{base:.1f}"/>']
    for k, i in enumerate(who):
        x, y = middle + (k % across - (across - 1) / 2) * side, base - r - 3 - k // across * side
        parts.append(mark(x, y, CATEGORIES[marks.category[i]], r))
    over = base - 10 - ceil(len(who) / across) * side
    many, words = (f"{count:,}" if count else "nobody", texts[0]) if wide > 60 else (f"{count:,}", texts[0].split()[0])
    parts.append(f'<text class="strong" x="{middle:.1f}" y="{over:.1f}" text-anchor="middle">{many}</text>')
    parts.append(f'<text x="{middle:.1f}" y="{base + 19:.1f}" text-anchor="middle">{words}</text>')
    return "".join([*parts, f'<text class="quiet" x="{middle:.1f}" y="{base + 36:.1f}" text-anchor="middle">{texts[1]}</text>'])


def _ticks(threshold: float, medium: str) -> list[float]:
    """Return the places of numbers: the threshold, and quarters that do not touch it."""
    near = 0.16 if medium == "phone" else 0.07
    return [threshold] * (threshold > 0) + [v for v in (0.25, 0.5, 0.75) if abs(v - threshold) > near]


def _threshold(marks: Marks, threshold: float, x: float, top: float, base: float) -> str:
    """Return the line of the threshold with the numbers of people beside it."""
    inner = ~marks.left & ~marks.right
    few, more = (int((inner & (marks.category == CATEGORIES.index(name))).sum()) for name in ("below", "above"))
    shift, anchor = (-7, "end") if threshold > 0.6 else (7, "start")
    words = f'<text class="quiet" x="{x + shift:.1f}" y="{top - 24:.0f}" text-anchor="{anchor}">threshold {threshold:g}</text>'
    return (
        f'<line class="threshold" x1="{x:.1f}" x2="{x:.1f}" y1="{top - 20:.0f}" y2="{base:.1f}"/>{words}'
        f'<text class="strong" x="{x - 7:.1f}" y="{top:.0f}" text-anchor="end">{few:,}</text>'
        f'<text class="strong" x="{x + 7:.1f}" y="{top:.0f}">{more:,}</text>'
    )
