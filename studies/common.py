"""What the studies share: a result that writes itself as tables, figures and a page, and its charts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from budge.errors import StorageError
from budge.interaction import InteractionModel
from budge.report.figures import Figure, Panels
from budge.report.figures.colours import DASHES, SERIES
from budge.report.figures.scales import SHARES, round_ticks, share_names
from budge.report.figures.scales import room as room_for
from budge.report.figures.words import shortened

__all__ = ["Study", "bars", "compared", "lines", "markdown", "model", "panels", "percent", "sideways", "spec_file"]

HERE = Path(__file__).resolve().parent
WIDTH, TALL = 460, 230  # of a chart, in pixels


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


def panels(*figures: Figure) -> str:
    """Charts side by side, as one SVG file."""
    return str(Panels("; ".join(figure.title for figure in figures), figures))


def lines(
    title: str, x_label: str, y_label: str, curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], *, log_x: bool = False,
    mark: float | None = None, stairs: bool = False, y_max: float = 1.0, bold: str | None = None,
) -> Figure:  # fmt: skip
    """Curves over one x-axis, y from 0 to `y_max`; `mark` draws a vertical line, `stairs` holds each value to the next."""
    every = np.concatenate([np.asarray(x, dtype=float) for x, _ in curves.values()])
    low, high = float(every.min()), float(every.max())
    if not log_x:
        low, high = min(low, 0.0), max(high, 1.0) if stairs else high
    figure = Figure(title, x=(low, high), y=(0.0, y_max), x_label=x_label, y_label=y_label, width=WIDTH, tall=TALL, log_x=log_x)
    shares = tuple(y_max * v for v in SHARES)
    figure.tick("y", shares, share_names(shares))
    figure.tick("x", _apart(figure, sorted({float(x) for x in every})) if log_x else round_ticks(low, high), grid=False)
    if mark is not None:
        figure.line([(mark, 0.0), (mark, y_max)], colour="muted", dash="dashed", width=1.2, title=f"{mark:g}")
    names = list(curves)
    looks = [
        ("ink", "solid") if name == bold else (SERIES[k % len(SERIES)], DASHES[k % len(DASHES)]) for k, name in enumerate(names)
    ]
    for name, (colour, dash) in zip(names, looks):
        xs, ys = curves[name]
        points = [(float(x), min(float(y), y_max)) for x, y in zip(xs, ys)]
        if stairs:
            points = [(low, 0.0), *points, (high, points[-1][1])]
            points = [p for one, two in itertools.pairwise(points) for p in (one, (two[0], one[1]))] + points[-1:]
        figure.line(points, colour=colour, dash=dash, width=3.0 if name == bold else 2.0, title=name)
    figure.legend(names, [colour for colour, _ in looks], kind="line", dashes=[dash for _, dash in looks])
    return figure


def _apart(figure: Figure, values: Sequence[float]) -> list[float]:
    """Those that have room for their numbers."""
    kept: list[float] = []
    for value in values:
        if not kept or figure.at(value, 0)[0] - figure.at(kept[-1], 0)[0] >= 26:
            kept.append(value)
    return kept


def bars(title: str, y_label: str, groups: Sequence[str], series: Mapping[str, Sequence[float]], *, y_max: float = 1.0) -> Figure:
    """Groups of upright bars, one colour a series, y from 0 to `y_max`."""
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
    """Lying bars, one a name, with intervals where given; negative values run to the left."""
    ends = [*values.values(), *(v for pair in (spans or {}).values() for v in pair), 0.0]
    low, high = room_for(min(ends), max(max(ends), 1e-9))
    figure = Figure(title, x=(low, high), y=(0.4, len(values) + 0.6), x_label=x_label, width=WIDTH, tall=TALL, left=200)
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
