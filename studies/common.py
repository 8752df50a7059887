"""What the studies share: a result that writes itself as tables, figures and a page, and the figures' small SVG."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from budge.errors import StorageError
from budge.interaction import InteractionModel

__all__ = ["COLOURS", "Study", "bars", "compared", "lines", "markdown", "model", "panels", "percent", "sideways", "spec_file"]

HERE = Path(__file__).resolve().parent
COLOURS = ("#b3403a", "#2f6ea5", "#d08a1d", "#5f7a2c", "#6b4f8f", "#3c8a86", "#8a5a3c", "#777777", "#c06c9a")
WIDTH, HEIGHT = 460, 300


def spec_file(name: str) -> Path:
    """The spec file of a study's interaction model, beside its program."""
    return HERE / f"{name}.yaml"


def model(name: str) -> InteractionModel:
    """The interaction model in the spec file of this name."""
    return InteractionModel.from_file(spec_file(name))


def percent(share: float, digits: int = 1) -> str:
    """A share as the paper prints it: 0.123 is 12.3%."""
    return "–" if share is None or math.isnan(share) else f"{100 * share:.{digits}f}%"


def compared(rows: Sequence[tuple[str, str, str, str]]) -> pd.DataFrame:
    """The table in which every study ends: what, in the paper, here, and why they differ."""
    return pd.DataFrame(rows, columns=["figure", "paper", "here", "why they differ"])


def markdown(table: pd.DataFrame) -> str:
    """A table in Markdown."""

    def cell(value: object) -> str:
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
        return text.replace("|", "\\|").replace("\n", " ")

    head = "| " + " | ".join(cell(c) for c in table.columns) + " |\n|" + "---|" * len(table.columns) + "\n"
    return head + "".join("| " + " | ".join(cell(v) for v in row) + " |\n" for row in table.itertuples(index=False))


@dataclass(frozen=True)
class Study:
    """What a run found: the comparison with the paper, further tables, figures, and the numbers behind them."""

    name: str
    title: str
    about: str
    comparison: pd.DataFrame
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    figures: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, Any] = field(default_factory=dict)
    quick: bool = False

    def page(self) -> str:
        """The study as one page of Markdown."""
        small = (
            "This run was a quick one, on fewer rows or draws: its numbers are not those of the study.\n\n" if self.quick else ""
        )
        text = f"# {self.title}\n\n{self.about.strip()}\n\n{small}Run it: `budge study {self.name} --out FOLDER`.\n\n"
        text += f"## Paper and here\n\n{markdown(self.comparison)}"
        for name in self.figures:
            text += f"\n## Figure: {name.replace('_', ' ')}\n\n![{name.replace('_', ' ')}]({self.name}_{name}.svg)\n"
        for name, table in self.tables.items():
            text += f"\n## Table: {name.replace('_', ' ')}\n\n{markdown(table)}"
        return text

    def write(self, folder: Path) -> list[Path]:
        """Write the page, every table as CSV and every figure as SVG; the paths written."""
        files = {f"{self.name}.md": self.page(), f"{self.name}.csv": self.comparison.to_csv(index=False)}
        files |= {
            f"{self.name}_{name}.csv": table.to_csv(index=False, float_format="%.6g") for name, table in self.tables.items()
        }
        files |= {f"{self.name}_{name}.svg": text for name, text in self.figures.items()}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                (folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise StorageError(
                f"the study cannot be written: {error.strerror}",
                where="out",
                got=str(folder),
                remedy="choose a folder that can be written to",
            ) from error
        return [folder / name for name in files]

    def to_dict(self) -> dict[str, Any]:
        """The record: the comparison and the numbers behind it."""
        return {
            "study": self.name,
            "quick": self.quick,
            "comparison": self.comparison.to_dict("records"),
            "numbers": dict(self.numbers),
        }


# -- figures ----------------------------------------------------------------------------------------------------------------


def panels(*inner: str) -> str:
    """Charts side by side, as one SVG file."""
    total = WIDTH * len(inner)
    shifted = "".join(f'<g transform="translate({WIDTH * k} 0)">{part}</g>' for k, part in enumerate(inner))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {HEIGHT}" width="{total}" height="{HEIGHT}" '
        f'font-family="sans-serif" font-size="11"><rect width="{total}" height="{HEIGHT}" fill="white"/>{shifted}</svg>\n'
    )


def _text(x: float, y: float, words: str, *, anchor: str = "middle", extra: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {extra}>{escape(words)}</text>'


def lines(
    title: str, x_label: str, y_label: str, curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], *, log_x: bool = False,
    mark: float | None = None, stairs: bool = False, y_max: float = 1.0, bold: str | None = None,
) -> str:  # fmt: skip
    """Curves over one x-axis, y from 0 to `y_max`; `mark` draws a vertical line, `stairs` holds each value to the next."""
    left, right, top, bottom = 50.0, WIDTH - 12.0, 28.0, HEIGHT - 44.0
    every = np.concatenate([np.asarray(x, dtype=float) for x, _ in curves.values()])
    low, high = float(every.min()), float(every.max())
    if not log_x:
        low, high = min(low, 0.0), max(high, 1.0) if stairs else high
    scale = (lambda v: math.log(v)) if log_x else float

    def place(x: float) -> float:
        return left + (right - left) * (scale(x) - scale(low)) / (scale(high) - scale(low) or 1.0)

    def height(y: float) -> float:
        return bottom - (bottom - top) * min(y, y_max) / y_max

    parts = [_text((left + right) / 2, 16, title, extra='font-weight="bold"')]
    for k in range(5):
        y = y_max * k / 4
        parts.append(f'<line x1="{left}" x2="{right}" y1="{height(y):.1f}" y2="{height(y):.1f}" stroke="#ddd"/>')
        parts.append(_text(left - 5, height(y) + 4, f"{100 * y:.0f}%", anchor="end"))
    ticks = sorted({float(x) for x in every}) if log_x else [low + (high - low) * k / 4 for k in range(5)]
    last = -100.0
    for x in ticks:
        if place(x) - last >= 24:
            parts.append(_text(place(x), bottom + 14, f"{x:g}"))
            last = place(x)
    parts += [
        _text((left + right) / 2, bottom + 30, x_label),
        _text(12, (top + bottom) / 2, y_label, extra=f'transform="rotate(-90 12 {(top + bottom) / 2})"'),
    ]
    if mark is not None:
        parts.append(
            f'<line x1="{place(mark):.1f}" x2="{place(mark):.1f}" y1="{top}" y2="{bottom}" stroke="#555" stroke-dasharray="4 3"/>'
        )
    for k, (name, (xs, ys)) in enumerate(curves.items()):
        points = [(place(float(x)), height(float(y))) for x, y in zip(xs, ys)]
        if stairs:
            points = [(left, bottom), *points, (right, points[-1][1])]
            points = [p for one, two in itertools.pairwise(points) for p in (one, (two[0], one[1]))] + points[-1:]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        colour, thick = ("#111", 3) if name == bold else (COLOURS[k % len(COLOURS)], 1.8)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{thick}"/>')
        row = (top + bottom) / 2 - 30 + 14 * k
        parts.append(f'<rect x="{right - 153}" y="{row - 11}" width="153" height="14" fill="white"/>')
        parts.append(
            f'<line x1="{right - 150}" x2="{right - 132}" y1="{row - 4}" y2="{row - 4}" stroke="{colour}" stroke-width="{thick}"/>'
        )
        parts.append(_text(right - 127, row, name, anchor="start"))
    return "".join(parts)


def bars(title: str, y_label: str, groups: Sequence[str], series: Mapping[str, Sequence[float]], *, y_max: float = 1.0) -> str:
    """Groups of upright bars, one colour a series, y from 0 to `y_max`."""
    left, right, top, bottom = 50.0, WIDTH - 12.0, 46.0, HEIGHT - 34.0
    parts = [_text((left + right) / 2, 16, title, extra='font-weight="bold"')]
    for k in range(5):
        y = bottom - (bottom - top) * k / 4
        parts.append(f'<line x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(_text(left - 5, y + 4, f"{100 * y_max * k / 4:.0f}%", anchor="end"))
    parts.append(_text(12, (top + bottom) / 2, y_label, extra=f'transform="rotate(-90 12 {(top + bottom) / 2})"'))
    room = (right - left) / len(groups)
    wide = 0.8 * room / len(series)
    for k, (name, values) in enumerate(series.items()):
        colour = COLOURS[k % len(COLOURS)]
        at = left + (right - left) * k / len(series)
        parts.append(
            f'<rect x="{at:.1f}" y="24" width="10" height="10" fill="{colour}"/>' + _text(at + 14, 33, name, anchor="start")
        )
        for g, value in enumerate(values):
            tall = (bottom - top) * min(value, y_max) / y_max
            x = left + room * (g + 0.1) + wide * k
            parts.append(f'<rect x="{x:.1f}" y="{bottom - tall:.1f}" width="{wide:.1f}" height="{tall:.1f}" fill="{colour}"/>')
    parts += [_text(left + room * (g + 0.5), bottom + 15, name) for g, name in enumerate(groups)]
    return "".join(parts)


def sideways(
    title: str, x_label: str, values: Mapping[str, float], spans: Mapping[str, tuple[float, float]] | None = None
) -> str:
    """Lying bars, one a name, with intervals where given; negative values run to the left."""
    left, right, top, bottom = 190.0, WIDTH - 14.0, 28.0, HEIGHT - 34.0
    ends = [*values.values(), *(v for pair in (spans or {}).values() for v in pair), 0.0]
    low, high = min(ends), max(max(ends), 1e-9)

    def place(v: float) -> float:
        return left + (right - left) * (v - low) / (high - low)

    parts = [_text(WIDTH / 2, 16, title, extra='font-weight="bold"')]
    tall = (bottom - top) / max(len(values), 1)
    for k, (name, value) in enumerate(values.items()):
        y = top + tall * k
        a, b = sorted((place(0.0), place(value)))
        parts.append(_text(left - 6, y + tall * 0.62, name, anchor="end", extra='font-size="9"'))
        parts.append(
            f'<rect x="{a:.1f}" y="{y + tall * 0.15:.1f}" width="{b - a:.1f}" height="{tall * 0.7:.1f}" fill="{COLOURS[k % len(COLOURS)]}"/>'
        )
        if spans and name in spans:
            one, two = spans[name]
            parts.append(
                f'<line x1="{place(one):.1f}" x2="{place(two):.1f}" y1="{y + tall / 2:.1f}" y2="{y + tall / 2:.1f}" stroke="#111"/>'
            )
    parts.append(f'<line x1="{place(0):.1f}" x2="{place(0):.1f}" y1="{top}" y2="{bottom}" stroke="#555"/>')
    parts += [_text(place(v), bottom + 13, f"{v:+.2f}") for v in (low, high) if abs(place(v) - place(0)) > 30]
    parts += [_text(place(0), bottom + 13, "0"), _text((left + right) / 2, bottom + 28, x_label)]
    return "".join(parts)
