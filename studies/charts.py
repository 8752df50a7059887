"""The charts of the studies, as figures without a plotting library."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from budge.report.figures import Figure, Panels
from budge.report.figures.colours import DASHES, SERIES
from budge.report.figures.scales import SHARES, round_ticks, share_names
from budge.report.figures.scales import room as room_for
from budge.report.figures.words import shortened, text_width

from .common import percent

__all__ = ["bars", "lines", "pairs", "panels", "points", "sideways"]

WIDTH, TALL = 460, 230  # of a chart, in pixels


def panels(*figures: Figure) -> str:
    """Return charts one below the other, as one SVG file: side by side they would shrink to nothing on a narrow page."""
    return str(Panels("; ".join(figure.title for figure in figures), figures, down=True))


def lines(
    title: str, x_label: str, y_label: str, curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], *, log_x: bool = False,
    mark: float | None = None, level: tuple[str, float] | None = None, stairs: bool = False, y_max: float = 1.0, bold: str | None = None,
) -> Figure:  # fmt: skip
    """Return curves over one x-axis, y from 0 to `y_max`.

    `mark` draws a vertical line, `level` a named horizontal one; `stairs` holds each value to the next.
    """
    every = np.concatenate([np.asarray(x, dtype=float) for x, _ in curves.values()])
    low, high = float(every.min()), float(every.max())
    if not log_x:
        low, high = min(low, 0.0), max(high, 1.0) if stairs else high
    figure = Figure(title, x=(low, high), y=(0.0, y_max), x_label=x_label, y_label=y_label, width=WIDTH, tall=TALL, log_x=log_x)
    shares = tuple(y_max * v for v in SHARES)
    figure.tick("y", shares, share_names(shares))
    figure.tick("x", _apart(figure, sorted({float(x) for x in every}), mark) if log_x else round_ticks(low, high), grid=False)
    if mark is not None:
        figure.line([(mark, 0.0), (mark, y_max)], colour="muted", dash="dashed", width=1.2, title=f"{mark:g}")
    if level is not None:
        figure.line([(low, level[1]), (high, level[1])], colour="ink", dash="dotted", width=1.4, title=f"{level[0]} = {level[1]:g}")
        figure.text(high, level[1], f"{level[0]} = {level[1]:g}", anchor="end", down=-9)
    names = list(curves)
    coloured = [name for name in names if name != bold]  # the first of these has the colour of the first bar beside it
    series = {name: (SERIES[k % len(SERIES)], DASHES[k % len(DASHES)]) for k, name in enumerate(coloured)}
    looks = [series.get(name, ("ink", "solid")) for name in names]
    for name, (colour, dash) in zip(names, looks):
        xs, ys = curves[name]
        points = [(float(x), min(float(y), y_max)) for x, y in zip(xs, ys)]
        if stairs:
            points = [(low, 0.0), *points, (high, points[-1][1])]
            points = [p for one, two in itertools.pairwise(points) for p in (one, (two[0], one[1]))] + points[-1:]
        figure.line(points, colour=colour, dash=dash, width=3.0 if name == bold else 2.0, title=name)
    figure.legend(names, [colour for colour, _ in looks], kind="line", dashes=[dash for _, dash in looks])
    return figure


def _apart(figure: Figure, values: Sequence[float], first: float | None = None) -> list[float]:
    """Return the values that have room for their numbers, one of them before all others."""
    kept: list[float] = []
    for value in [v for v in values if v == first] + [v for v in values if v != first]:
        if all(abs(figure.at(value, 0)[0] - figure.at(other, 0)[0]) >= 26 for other in kept):
            kept.append(value)
    return sorted(kept)


def bars(title: str, y_label: str, groups: Sequence[str], series: Mapping[str, Sequence[float]], *, y_max: float = 1.0) -> Figure:
    """Return groups of upright bars, one colour per series, y from 0 to `y_max`."""
    figure = Figure(title, x=(-0.5, len(groups) - 0.5), y=(0.0, y_max), y_label=y_label, width=WIDTH, tall=TALL)
    shares = tuple(y_max * v for v in SHARES)
    figure.tick("y", shares, share_names(shares))
    room = (WIDTH - figure.left - figure.right) / max(len(groups), 1) - 4
    figure.tick("x", range(len(groups)), [shortened(name, room) for name in groups], grid=False)
    wide = 0.8 / len(series)
    colours = [SERIES[k % len(SERIES)] for k in range(len(series))]
    for k, ((name, values), colour) in enumerate(zip(series.items(), colours)):
        for g, value in enumerate(values):
            what = f"{groups[g]}, {name}: {percent(value)}"
            figure.column(0.0, min(value, y_max), at=g - 0.4 + wide * (k + 0.5), thick=wide * 0.94, colour=colour, title=what)
    figure.legend(list(series), colours)
    figure.about = "; ".join(
        f"{group}: " + ", ".join(f"{name} {percent(v[g])}" for name, v in series.items()) for g, group in enumerate(groups)
    )
    return figure


def sideways(
    title: str, x_label: str, values: Mapping[str, float], spans: Mapping[str, tuple[float, float]] | None = None
) -> Figure:
    """Return lying bars, one per name, with intervals where given; negative values run to the left."""
    ends = [*values.values(), *(v for pair in (spans or {}).values() for v in pair), 0.0]
    low, high = room_for(min(ends), max(max(ends), 1e-9))
    left = 24 + int(max(text_width(name) for name in values))  # no name is cut
    wide, tall = max(WIDTH, left + 260), max(TALL, 22 * len(values))
    figure = Figure(title, x=(low, high), y=(0.4, len(values) + 0.6), x_label=x_label, width=wide, tall=tall, left=left)
    figure.tick("x", round_ticks(low, high, 4))
    figure.tick("y", [len(values) - k for k in range(len(values))], list(values), grid=False)
    figure.line([(0.0, figure.y[0]), (0.0, figure.y[1])], colour="muted", width=1.0)
    for k, (name, value) in enumerate(values.items()):
        at = len(values) - k
        figure.bar(0.0, value, at=at, thick=0.66, colour=SERIES[k % len(SERIES)], title=f"{name}: {value:+.4g}")
        if spans and name in spans and spans[name][0] < spans[name][1]:
            figure.interval(
                *spans[name], at=at, over=True, title=f"{name}: between {spans[name][0]:+.4g} and {spans[name][1]:+.4g}"
            )
    figure.about = "; ".join(f"{name}: {value:+.4g}" for name, value in values.items())
    return figure


def points(
    title: str, x_label: str, y_label: str, clouds: Mapping[str, tuple[Sequence[float], Sequence[float]]], named: Mapping[str, tuple[float, float]]
) -> Figure:
    """Return clouds of points, y from 0 to 1, with a diamond and a name at some of them; far outliers to the left are counted in the note."""
    every = np.sort([float(x) for xs, _ in clouds.values() for x in xs])
    low, high = room_for(float(np.quantile(every, 0.01)), float(every[-1]))
    inside = every[every >= low]
    aside = inside[int(np.argmax(np.diff(inside))) + 1]  # names end here: right of the widest gap between dots
    figure = Figure(title, x=(low, high), y=(0.0, 1.0), x_label=x_label, y_label=y_label, width=WIDTH, tall=TALL)
    figure.tick("y", SHARES, share_names(SHARES))
    figure.tick("x", round_ticks(low, high, 5), grid=False)
    outside = int((every < low).sum()) // len(clouds)
    figure.note = f"{outside} {'models lie' if outside > 1 else 'model lies'} further to the left." if outside else ""
    for k, (name, (xs, ys)) in reversed(list(enumerate(clouds.items()))):  # the first on top; larger dots show beneath it
        for x, y in sorted({(round(float(x), 3), round(float(y), 2)) for x, y in zip(xs, ys)}):  # one dot per place
            if x < low:
                continue
            figure.point(x, y, colour=SERIES[k], size=2.2 + 1.2 * k, title=f"{name}: {x:g}, {percent(y)}")
    aside -= 10 * (high - low) / (WIDTH - figure.left - figure.right)  # ten pixels
    for name, (x, y) in named.items():
        figure.line([(aside, y), (x, y)], colour="muted", width=1.0)
        figure.point(x, y, colour="ink", shape="diamond", size=5.0, title=f"{name}: {x:.3f}, {percent(y)}")
        figure.text(aside, y, name, anchor="end", right=-4)
    figure.legend(list(clouds), SERIES[: len(clouds)], kind="point")
    figure.about = "; ".join(f"{name}: {x:.3f}, {percent(y)}" for name, (x, y) in named.items())
    return figure


def pairs(title: str, columns: Mapping[str, Sequence[float]], most: int = 250) -> Figure:
    """Return every pair of columns: dots below the diagonal, a histogram on it, correlations above it."""
    names, size = list(columns), len(columns)
    values = [np.asarray(column, dtype=float) for column in columns.values()]
    ends = [(float(v.min()), float(v.max())) for v in values]
    figure = Figure(title, x=(0.0, size), y=(0.0, size), width=520, tall=452, left=44, frame=False)

    def inside(k: int, v: Any) -> Any:
        return 0.08 + 0.84 * (v - ends[k][0]) / ((ends[k][1] - ends[k][0]) or 1.0)

    numbers = [round_ticks(*ends[k], 3) for k in range(size)]
    for k in range(size):
        figure.tick("x", [k + inside(k, v) for v in numbers[k]], [f"{v:g}" for v in numbers[k]], grid=False)
        if k:  # the first row has a histogram alone, whose heights are counts
            figure.tick("y", [size - 1 - k + inside(k, v) for v in numbers[k]], [f"{v:g}" for v in numbers[k]], grid=False)
    for row, column in itertools.product(range(size), repeat=2):
        x0, y0 = float(column), float(size - 1 - row)
        figure.line([(x0, y0), (x0 + 1, y0), (x0 + 1, y0 + 1), (x0, y0 + 1), (x0, y0)], colour="faint", width=1.0)
        if row == column:
            whole = float(np.ptp(values[row])) if (values[row] == values[row].round()).all() else np.inf
            counts, edges = np.histogram(inside(row, values[row]), bins=int(whole) + 1 if whole < 32 else 16)  # else some bins hold one number, some two
            for count, low, high in zip(counts, edges, edges[1:]):
                tall = 0.75 * count / counts.max()
                figure.column(y0 + 0.05, y0 + 0.05 + tall, at=x0 + (low + high) / 2, thick=high - low, title=f"{names[row]}: {count}")
            figure.text(x0 + 0.5, y0 + 0.9, names[row], anchor="middle", bold=True)
        elif row > column:
            for v in numbers[column]:
                figure.line([(x0 + inside(column, v), y0), (x0 + inside(column, v), y0 + 1)], colour="faint", width=0.7)
            for v in numbers[row]:
                figure.line([(x0, y0 + inside(row, v)), (x0 + 1, y0 + inside(row, v))], colour="faint", width=0.7)
            for x, y in zip(inside(column, values[column][:most]), inside(row, values[row][:most])):
                figure.point(x0 + x, y0 + y, size=1.6)
        else:
            r = float(np.corrcoef(values[row], values[column])[0, 1])
            figure.text(x0 + 0.5, y0 + 0.5, f"r = {r:+.2f}", anchor="middle", size=13)
    rows = len(values[0])
    figure.note = f"Dots: the first {min(most, rows)} of {rows:,}; histograms (heights are counts) and r: all."
    figure.about = "; ".join(f"{a} and {b}" for a, b in itertools.combinations(names, 2))
    return figure
