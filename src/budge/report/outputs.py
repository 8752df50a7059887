"""Numbers behind a model's answers, and the cut that the target needs: shown only where every answer at hand agrees with it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from html import escape
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from budge.audit.ask import Answers, asking
from budge.audit.cases import MOST_POINTS
from budge.audit.sources import Source, TableSource
from budge.errors import BudgeError
from budge.models import Endpoint, Predictor
from budge.models.predictor import Adapted
from budge.models.reading import Reading, same_label
from budge.report.people import number
from budge.targets.kinds import Interval, Labels, Relative, Target

__all__ = ["Numbers", "Scores", "chart", "compared", "nearest", "numbers_behind", "numbers_of"]

if TYPE_CHECKING:
    from budge.audit.design import Design
    from budge.audit.result import Audit

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]
MOST_STARTS = 1000  # people as they are, for whom labels are compared with a cut of one half
MOST_CLOSE, MOST_COMPARED = 100_000, 20_000  # points that are asked about to tell who comes closest to the target: at most, and for a case of a report
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
    def sign(self) -> float:
        """One, or minus one where the target lies below the cut: times this, larger outputs are nearer to it."""
        return -1.0 if self.lower else 1.0

    @property
    def extreme(self) -> str:
        """Which outputs are nearest to the target."""
        return "lowest" if self.lower else "highest"

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

    def text(self, value: float, large: float = 1000) -> str:
        """Return an output as text, from `large` on in three figures, with digits enough to tell it from a cut that it does not reach."""
        ways: list[Callable[[float], str]] = [number] if abs(value) >= large else []
        for way in (*ways, *(f"{{:,.{digits}f}}".format for digits in (3, 4, 6, 9))):
            if self.cut is None or value == self.cut or way(value) != way(self.cut):
                return way(value).replace("-", "−")
        return repr(value)


@dataclass(frozen=True)
class Numbers:
    """How the numbers behind a model's answers are had: what gives them, and for a model that answers labels the cuts at which the target may begin."""

    predictor: Predictor
    target: Target
    cuts: tuple[Scores, ...] = ()

    def of(self, rows: Any, found: Answers, before: Any) -> Scores | None:
        """Return numbers for points that the model was asked about; None where one of its answers contradicts every cut."""
        if self.cuts:
            try:
                values = np.where(found.good, self.values(rows), np.nan)
            except BudgeError:
                return None
            return next((made for made in self.at(values) if made.agrees(found.hit)), None)
        values = np.where(found.good, np.asarray(found.outputs, dtype=object), np.nan).astype(float)
        made = replace(_cut_of(self.target, before), values=values, bounds=self.predictor.bounds)
        return made if made.agrees(found.hit) else replace(made, cut=None)

    def values(self, rows: Any) -> FloatArray:
        """Return a number per point, not a number where there is no answer."""
        with asking(self.predictor.name):
            outputs, good = self.predictor.predict_resolved(rows)
        return np.where(good, np.asarray(outputs, dtype=object), np.nan).astype(float)

    def at(self, values: FloatArray) -> list[Scores]:
        """Return these numbers with each cut that is the same for everybody."""
        cuts = self.cuts or (() if isinstance(self.target, Relative) else (replace(_cut_of(self.target, None), bounds=self.predictor.bounds),))
        return [replace(cut, values=values) for cut in cuts if cut.cut is not None]


def numbers_of(predictor: Predictor, target: Target, people: Any) -> Numbers | None:
    """Return how the numbers behind a model's answers are had; None where it answers labels alone.

    Those of a model that answers labels are the probability or score behind them. Its cut is that of its reading, or one half where it has two classes and
    its labels for some people as they are do not contradict that.
    """
    if predictor.output == "score":
        return Numbers(predictor, target)
    if not isinstance(predictor, Adapted) or not isinstance(target, Labels):
        return None
    reading, classes = predictor.reading, predictor.classes or ()
    wanted = [k for k, known in enumerate(classes) if any(same_label(known, value) for value in target.values)]
    if len(classes) != 2 or len(wanted) != 1:
        return None
    if reading.threshold is not None:
        twin, lower = replace(reading, output="score", threshold=None), wanted[0] != reading.column
        return Numbers(replace(predictor, reading=twin), target, (Scores(np.zeros(0), reading.threshold, not lower, lower, twin.bounds),))
    if "probability" not in predictor.engine.asks:
        return None
    twin = Reading(output="score", ask="probability", classes=classes, column=wanted[0])
    made = Numbers(replace(predictor, reading=twin), target, tuple(Scores(np.zeros(0), 0.5, closed, bounds=twin.bounds) for closed in (False, True)))
    some = people.iloc[np.unique(np.linspace(0, len(people) - 1, min(len(people), MOST_STARTS)).astype(int))]
    try:
        with asking(predictor.name):
            labels, good = predictor.predict_resolved(some)
        values, inside = np.where(good, made.values(some), np.nan), np.zeros(len(some), dtype=bool)
        inside[good] = target.hits(np.array(np.asarray(labels)[good].tolist()))
    except BudgeError:
        return None
    values[np.abs(values - 0.5) < 1e-9] = np.nan  # rounding may put these on either side
    return made if made.at(values)[0].agrees(inside) else None


def numbers_behind(audit: Audit, model: str) -> Numbers | None:
    """Return how the numbers behind a model's answers in an audit are had; None where it is not at hand or answers labels alone."""
    context = audit.context
    if context is None or not isinstance(context.source, TableSource):
        return None
    if model not in context.known:
        context.known[model] = numbers_of(context.predictors[model], audit.design.target, context.source.frame)
    found: Numbers | None = context.known[model]
    return found


def compared(audit: Audit, model: str, at: IntArray) -> IntArray:
    """Return as many of these rows as have `MOST_COMPARED` points in all, those with the most points first."""
    at = at[np.argsort(-audit.rows[model].counts.n[at], kind="stable")]
    return np.asarray(at[np.cumsum(_points(audit, model, at)) <= MOST_COMPARED])


def _points(audit: Audit, model: str, at: IntArray) -> IntArray:
    """Return how many points of each of these rows are compared: as many as `points_of` gives, of draws no more than a case shows."""
    counts = audit.rows[model].counts
    many = np.where(counts.words("proof")[at] == "counted", audit.design.draws, counts.n[at])
    return np.asarray(np.where(counts.is_law("exact")[at], many, np.minimum(many, MOST_POINTS)), dtype=np.intp)


def nearest(audit: Audit, model: str, at: IntArray) -> Scores | None:
    """Return the output nearest to the target among the points of each of these rows, none of which attains it.

    None where these cannot be compared: no model at hand, one that answers from an address, no score behind its answers, nothing to list or draw, or more
    than `MOST_CLOSE` points in all.
    """
    context, rows, many = audit.context, audit.rows[model], _points(audit, model, at)
    if not len(at) or not 0 < many.min() <= many.sum() <= MOST_CLOSE or (context is not None and isinstance(context.predictors[model], Endpoint)):
        return None
    numbers = numbers_behind(audit, model)
    if numbers is None or context is None or not numbers.at(np.zeros(0)):
        return None
    key = (model, at.tobytes())
    if key not in context.known:
        context.known[key] = _nearest(numbers, context.source, rows.place[at], many, ~rows.counts.is_law("exact")[at], audit.design)
    found: Scores | None = context.known[key]
    return found


def _nearest(numbers: Numbers, source: Source, places: IntArray, many: IntArray, drawn: BoolArray, design: Design) -> Scores | None:
    best, sign = np.full(len(source), np.nan), numbers.at(np.zeros(0))[0].sign
    try:
        for chunk in chain(source.exact(places[~drawn]), source.draws(places[drawn], many[drawn], design)):
            own = np.fmax.reduceat(sign * numbers.values(chunk.rows), chunk.starts)
            best[chunk.people] = np.fmax(best[chunk.people], own)
    except BudgeError:
        return None
    misses = np.zeros(len(places), dtype=bool)
    return next((made for made in numbers.at(sign * best[places]) if made.whole is not None and made.agrees(misses)), None)


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
