"""The figures of stress tests: gain bars, distributions before and after, tornado, accuracy against gaming."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from budge.report.svg import COLOURS, Figure
from budge.stress import Ablation, Selection, Sensitivity

__all__ = ["cdf_figure", "gain_figure", "pareto_figure", "tornado_figure"]


def gain_figure(result: Ablation, *, most: int = 20) -> str:
    """The mean gain of each relaxation with its interval, the largest on top."""
    rows: Any = result.ranking[result.ranking["gain"].notna()].head(most)
    ends = np.concatenate([[0.0], rows[["low", "high"]].to_numpy(dtype=float).ravel()])
    figure = _beside(
        f"Mean change of responsiveness, {result.info['people']:,} people", len(rows), (float(ends.min()), float(ends.max()))
    )
    for k, row in enumerate(rows.itertuples()):
        at = len(rows) - k
        figure.bar(0.0, row.gain, at=at, thick=0.7, title=f"{row.relaxation}: {row.gain:+.4g}")
        figure.line(
            [(row.low, at), (row.high, at)], colour="#000000", width=1.2, title=f"between {row.low:+.4g} and {row.high:+.4g}"
        )
        _name(figure, row.relaxation, at)
    figure.labels(x="change of mean responsiveness")
    return str(figure)


def cdf_figure(result: Ablation | Sensitivity, *, most: int = 6) -> str:
    """The share of people up to each responsiveness: before (bold) and after the largest gains, or one line a member."""
    lines: list[tuple[str, pd.DataFrame]]
    if isinstance(result, Ablation):
        lines = [("before", result.cdf()), *((name, result.cdf(name)) for name in result.relaxations[:most])]
    else:
        lines = [(name, result.cdf(name)) for name in result.members[: most + 1]]
    figure = Figure("Share of people with responsiveness up to ρ", x=(0.0, 1.0), y=(0.0, 1.0), height=400)
    figure.ticks([0, 0.25, 0.5, 0.75, 1])
    figure.ticks([0, 0.25, 0.5, 0.75, 1], axis="y")
    colours = [COLOURS[k % len(COLOURS)] for k in range(len(lines))]
    if isinstance(result, Ablation):
        colours = ["#000000", *colours[:-1]]
    for (name, cdf), colour in zip(lines, colours):
        rho, share = cdf["rho"].tolist(), cdf["share"].tolist()
        steps = [(0.0, 0.0)]
        for r, s in zip(rho, share):
            steps += [(r, steps[-1][1]), (r, s)]
        figure.line([*steps, (1.0, steps[-1][1])], colour=colour, width=3.0 if name == "before" else 1.5, title=name)
    figure.legend([name for name, _ in lines], colours)
    figure.labels(x="responsiveness ρ", y="share of people")
    return str(figure)


def tornado_figure(result: Sensitivity, *, most: int = 20) -> str:
    """How far mean responsiveness swings with each axis or member, the widest on top."""
    rows: Any = result.tornado().head(most)
    ends = rows[["low", "high", "reference"]].to_numpy(dtype=float).ravel()
    figure = _beside(
        f"Mean responsiveness over {len(result.members)} interaction models", len(rows), (float(ends.min()), float(ends.max()))
    )
    for k, row in enumerate(rows.itertuples()):
        at = len(rows) - k
        figure.bar(row.low, row.high, at=at, thick=0.7, title=f"{row.what}: {row.low:.4g} to {row.high:.4g}")
        _name(figure, row.what, at)
    reference = float(rows["reference"].iloc[0]) if len(rows) else 0.0
    figure.line([(reference, 0.4), (reference, len(rows) + 0.6)], colour="#000000", dashed=True, title="first member")
    figure.labels(x="mean responsiveness")
    return str(figure)


def pareto_figure(result: Selection) -> str:
    """Accuracy against certified gaming; the front is joined, the chosen model filled."""
    rows: Any = result.table
    best, worst = float(rows["accuracy"].max()), float(rows["accuracy"].min())
    room = (best - worst) * 0.1 or 0.05
    figure = Figure("Accuracy against certified gaming", x=(0.0, 1.0), y=(worst - room, best + room), height=400)
    figure.ticks([0, 0.25, 0.5, 0.75, 1])
    figure.ticks([round(float(v), 3) for v in np.linspace(worst, best, 4)] if best > worst else [best], axis="y")
    limit = float(result.info["limit"])
    figure.line([(limit, figure.y[0]), (limit, figure.y[1])], colour="#b33", dashed=True, title=f"limit {limit:g}")
    front = rows[rows["front"]].sort_values("gaming_high")
    figure.line(list(zip(front["gaming_high"], front["accuracy"])), colour="#999999", title="Pareto front")
    for row in rows.itertuples():
        what = f"{row.model}: accuracy {row.accuracy:.4g}, gaming at most {row.gaming_high:.4g}"
        figure.point(row.gaming_high, row.accuracy, hollow=row.model != result.chosen, title=what)
        if row.front:
            a, b = figure.at(row.gaming_high, row.accuracy)
            figure.text(a + 8, b - 6, row.model, size=11)
    figure.labels(x="share of people who can game, at most", y="accuracy")
    return str(figure)


def _beside(title: str, rows: int, ends: tuple[float, float]) -> Figure:
    """A figure for lying bars with names at their left."""
    room = (ends[1] - ends[0]) * 0.05 or 0.05
    low, high = ends[0] - room, ends[1] + room
    figure = Figure(title, x=(low, high), y=(0.4, rows + 0.6), width=760, height=90 + 24 * max(rows, 1), left=270)
    figure.ticks([float(f"{v:.2g}") for v in np.linspace(*ends, 5)] if ends[1] > ends[0] else [ends[0]])
    return figure


def _name(figure: Figure, name: str, at: float) -> None:
    x, y = figure.at(figure.x[0], at)
    figure.text(x - 8, y + 4, name if len(name) <= 40 else name[:39] + "…", anchor="end", size=11)
