"""Numbers behind a model's answers, and the cut that the target needs: shown only where every answer at hand agrees with it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.errors import BudgeError
from budge.models import Predictor
from budge.models.predictor import Adapted
from budge.models.reading import Reading, same_label
from budge.report.people import number
from budge.targets.kinds import Interval, Labels, Relative, Target

__all__ = ["Scores", "chart", "scores_of"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
BINS, HEIGHT = 50, 40


@dataclass(frozen=True)
class Scores:
    """A number per point (not a number where there is no answer), and the cut: at it or beyond it lies the target, above it or below."""

    values: FloatArray
    cut: float | None = None
    closed: bool = True  # the cut itself is in the target
    lower: bool = False  # the target lies below the cut
    bounds: tuple[float, float] | None = None

    @property
    def best(self) -> float:
        """The output nearest to the target."""
        known = self.values[~np.isnan(self.values)]
        return float("nan") if not len(known) else float(known.min() if self.lower else known.max())

    @property
    def whole(self) -> FloatArray | None:
        """The numbers, if every point has one."""
        return None if np.isnan(self.values).any() else self.values

    def agrees(self, hit: BoolArray) -> bool:
        """Return whether the cut tells exactly the hits."""
        if self.cut is None:
            return False
        known = ~np.isnan(self.values)
        inside = self.values < self.cut if self.lower else self.values > self.cut
        inside = inside | (self.values == self.cut) if self.closed else inside
        return bool((inside == hit)[known].all())

    def needs(self) -> str:
        """Return what the target needs, in words; nothing where it is not known."""
        if self.cut is None:
            return ""
        word = ("at most" if self.closed else "less than") if self.lower else ("at least" if self.closed else "more than")
        return f"{word} {f'{self.cut:.3f}' if self.bounds == (0, 1) else number(self.cut)}"

    def text(self, value: float) -> str:
        """Return an output as text, with digits enough to tell it from a cut that it does not reach."""
        for digits in (3, 4, 6, 9):
            told = f"{value:.{digits}f}" if abs(value) < 1000 else number(value)
            if self.cut is None or value == self.cut or told != f"{self.cut:.{digits}f}":
                return told.replace("-", "−")
        return repr(value)


def scores_of(
    predictor: Predictor, target: Target, rows: Any, outputs: npt.NDArray[Any], hit: BoolArray, good: BoolArray, before: Any
) -> Scores | None:
    """Return numbers for points that a model was asked about; None where it answers labels alone.

    A model that answers labels is asked for the probability or score behind them. Its cut is that of its reading, or one half where it has two classes; where
    one of the answers contradicts it, there are no numbers.
    """
    if predictor.output == "score":
        values = np.where(good, np.asarray(outputs, dtype=object), np.nan).astype(float)
        made = replace(_cut_of(target, before), values=values, bounds=predictor.bounds)
        return made if made.agrees(hit) else replace(made, cut=None)
    if not isinstance(predictor, Adapted) or not isinstance(target, Labels) or len(target.values) != 1:
        return None
    reading, classes = predictor.reading, predictor.classes or ()
    place = next((k for k, value in enumerate(classes) if same_label(value, target.values[0])), -1)
    if len(classes) != 2 or place < 0:
        return None
    if reading.threshold is not None:
        lower = place != reading.column
        twin, cut, closed = replace(reading, output="score", threshold=None), reading.threshold, [not lower]
    elif "probability" in predictor.engine.asks:
        twin, cut, lower, closed = Reading(output="score", ask="probability", classes=classes, column=place), 0.5, False, [False, True]
    else:
        return None
    try:
        found = replace(predictor, reading=twin).predict_resolved(rows)
    except BudgeError:
        return None
    values = np.where(found.resolved & good, np.asarray(found.outputs, dtype=object), np.nan).astype(float)
    options = [Scores(values, cut, end, lower, twin.bounds) for end in closed]
    return next((made for made in options if made.agrees(hit)), None)


def _cut_of(target: Target, before: Any) -> Scores:
    nothing = Scores(np.zeros(0))
    if isinstance(target, Interval) and math.isinf(target.high):
        return replace(nothing, cut=target.low, closed=target.closed in ("both", "left"))
    if isinstance(target, Interval) and math.isinf(target.low):
        return replace(nothing, cut=target.high, closed=target.closed in ("both", "right"), lower=True)
    if isinstance(target, Relative):
        down = target.direction == "lower"
        return replace(nothing, cut=float(before) + (-target.margin if down else target.margin), closed=False, lower=down)
    return nothing


def chart(scores: Scores, hit: BoolArray, words: str, now: float | None = None) -> dict[str, Any] | None:
    """Return the outputs in bins of one width, with an edge at the cut: where the chart begins and ends, points per bin that hit and miss, and the bars.

    `now` is the output before any move, where it is to be marked.
    """
    known = ~np.isnan(scores.values)
    values = scores.values[known]
    if not len(values):
        return None
    low, high = scores.bounds or (float(values.min()), float(values.max()))
    if scores.cut is not None:
        low, high = min(low, scores.cut), max(high, scores.cut)
    if not (math.isfinite(low) and math.isfinite(high) and high > low):
        low, high = low - 0.5, low + 0.5
    width, anchor = (high - low) / BINS, low if scores.cut is None else scores.cut
    below = math.ceil((anchor - low) / width - 1e-9)
    count = max(below + math.ceil((high - anchor) / width - 1e-9), 1)
    at = np.clip(np.floor((values - anchor) / width + 1e-9).astype(int) + below, 0, count - 1)
    inside = hit[known]
    if scores.cut is not None:  # a value at the cut belongs to its own side
        above = ~inside if scores.lower else inside
        at = np.where(above, np.maximum(at, below), np.minimum(at, below - 1)).clip(0, count - 1)
    hits, misses = (np.bincount(at[which], minlength=count).tolist() for which in (inside, ~inside))
    zone = (0, 0) if scores.cut is None else (0, below) if scores.lower else (below, count - below)
    return {
        "low": anchor - below * width, "high": anchor + (count - below) * width, "cut": scores.cut, "needs": scores.needs(), "hits": hits, "misses": misses,
        "svg": _bars(hits, misses, zone, words, None if now is None else (now - anchor) / width + below),
    }  # fmt: skip


def _bars(hits: list[int], misses: list[int], zone: tuple[int, int], words: str, now: float | None) -> str:
    """Return the bins as stacked bars on the ground of the target, and a line where the person is now; they are stretched to the width at hand."""
    unit = HEIGHT / max(map(sum, zip(hits, misses)))
    bars: list[tuple[str, float, float, float, float]] = [("zone", zone[0], 0, zone[1], HEIGHT)] if zone[1] else []
    for i, (hit, miss) in enumerate(zip(hits, misses)):
        for name, base, many in (("miss", 0, miss), ("hit", miss, hit)):
            if many:
                bars.append((name, i + 0.06, HEIGHT - unit * (base + many), 0.88, max(unit * many, 1.5)))
    bars += [] if now is None else [("now", min(max(now, 0.1), len(hits) - 0.1) - 0.1, 0, 0.2, HEIGHT)]
    drawn = "".join(f'<rect class="{name}" x="{x:g}" y="{y:.2f}" width="{width:g}" height="{height:.2f}"/>' for name, x, y, width, height in bars)
    size = f'viewBox="0 0 {len(hits)} {HEIGHT}" preserveAspectRatio="none"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(words)}">{drawn}</svg>'
