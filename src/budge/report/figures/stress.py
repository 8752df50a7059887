"""The figures of stress tests: gain bars, tornado, accuracy against gaming."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from budge.errors import InputError
from budge.report.figures.drawing import Figure
from budge.report.figures.scales import SHARES, room, round_ticks, share_names
from budge.report.figures.words import text_width
from budge.stats._checks import percent, signed

if TYPE_CHECKING:
    from budge.stress import Ablation, Selection, Sensitivity

__all__ = ["gains", "pareto", "tornado"]


def gains(result: Ablation, *, most: int = 20) -> Figure:
    """The mean gain of each relaxation with its interval, the largest on top; of many, those that change most, up or down."""
    known = result.ranking[result.ranking["gain"].notna()]
    rows: Any = result.largest(min(most, len(known)))
    if not len(rows):
        raise InputError("no relaxation has a gain: nobody can be compared", remedy="look at the column note of the ranking")
    ends = np.concatenate([[0.0], rows[["low", "high", "gain"]].to_numpy(dtype=float).ravel()])
    level = percent(1 - result.info["alpha"])
    note = f"Lines: intervals for each mean at {level}." if (rows["low"] < rows["high"]).any() else "Exact: every point was listed."
    note += f" {len(known) - most} more, which change the mean no more than these, are not drawn." if len(known) > most else ""
    figure = _beside(
        f"Change of mean responsiveness, {result.info['people']:,} people",
        list(rows["relaxation"]),
        ends,
        "change of mean responsiveness",
        note,
    )
    figure.line([(0.0, figure.y[0]), (0.0, figure.y[1])], colour="muted", width=1.0)
    for k, row in enumerate(rows.itertuples()):
        at = len(rows) - k
        figure.bar(
            0.0,
            row.gain,
            at=at,
            thick=0.66,
            colour="blue" if row.gain >= 0 else "vermilion",
            title=f"{row.relaxation}: {signed(row.gain)}",
        )
        if row.low < row.high:
            figure.interval(
                row.low, row.high, at=at, over=True, title=f"{row.relaxation}: between {signed(row.low)} and {signed(row.high)}"
            )
    figure.about = "; ".join(
        f"{row.relaxation}: {signed(row.gain)} ({'exact' if row.low == row.high else f'{signed(row.low)} to {signed(row.high)}'})"
        for row in rows.itertuples()
    )
    return figure


def tornado(result: Sensitivity, *, most: int = 20) -> Figure:
    """How far mean responsiveness swings with each axis or member, the widest on top."""
    swings = result.tornado().dropna()
    rows: Any = swings.head(most)
    if not len(rows):
        raise InputError("there is no swing to draw: one member alone, or answers are missing", remedy="give the family a second member")
    note = f"Dashed: {result.members[0]}." + (f" {len(swings) - most} narrower ones are not drawn." if len(swings) > most else "")
    ends = rows[["low", "high", "reference"]].to_numpy(dtype=float).ravel()
    title = f"Mean responsiveness over {len(result.members)} interaction models"
    figure = _beside(title, list(rows["what"]), ends, "mean responsiveness", note)
    for k, row in enumerate(rows.itertuples()):
        figure.bar(row.low, row.high, at=len(rows) - k, thick=0.66, title=f"{row.what}: {row.low:.4g} to {row.high:.4g}")
    reference = float(rows["reference"].iloc[0])
    figure.line(
        [(reference, figure.y[0]), (reference, figure.y[1])],
        colour="ink",
        dash="dashed",
        title=f"{result.members[0]}: {reference:.4g}",
    )
    figure.about = "; ".join(f"{row.what}: {row.low:.4g} to {row.high:.4g}" for row in rows.itertuples())
    return figure


def pareto(result: Selection) -> Figure:
    """Accuracy against certified gaming; the front is joined, the chosen model filled."""
    rows: Any = result.table
    y = room(float(rows["accuracy"].min()), float(rows["accuracy"].max()), 0.12)
    limit = float(result.info["limit"])
    figure = Figure(
        "Accuracy against certified gaming", x=(0.0, 1.0), y=y, tall=320, x_label="share of people who can game, at most", y_label="accuracy",
        note=("Filled: the model that was chosen." if result.chosen else "No model was chosen.") + " Joined: no model is better in both.",
    )  # fmt: skip
    figure.tick("x", SHARES, share_names())
    figure.tick("y", round_ticks(*y))
    figure.line([(limit, y[0]), (limit, y[1])], colour="vermilion", dash="dashed", title=f"limit {limit:g}")
    figure.text(limit, y[1], f"limit {percent(limit)}", anchor="middle", down=-8, colour="muted")
    front = rows[rows["front"]].sort_values("gaming_high")
    figure.line(list(zip(front["gaming_high"], front["accuracy"])), colour="grey", title="Pareto front")
    taken: list[tuple[float, float, float]] = []
    for row in rows.sort_values(["front", "accuracy"], ascending=False).itertuples():
        what = f"{row.model}: accuracy {row.accuracy:.4g}, gaming at most {row.gaming_high:.4g}"
        figure.point(row.gaming_high, row.accuracy, hollow=row.model != result.chosen, title=what)
        if row.front:
            _named(figure, row.gaming_high, row.accuracy, str(row.model), taken)
    figure.about = "; ".join(
        f"{row.model}: accuracy {row.accuracy:.4g}, gaming at most {row.gaming_high:.1%}" for row in rows.itertuples()
    )
    return figure


def _named(figure: Figure, x: float, y: float, name: str, taken: list[tuple[float, float, float]]) -> None:
    """A name beside a point: on the side with room, and not over a name that is there already."""
    a, b = figure.at(x, y)
    wide = text_width(name)
    for right, down in ((9, 0), (-9, 0), (9, -13), (-9, -13), (9, 13), (-9, 13)):
        start = a + right if right > 0 else a + right - wide
        if start < figure.left or start + wide > figure.width:
            continue
        if all(start > end or start + wide < begin or abs(b + down - at) > 11 for begin, end, at in taken):
            taken.append((start, start + wide, b + down))
            figure.text(x, y, name, anchor="start" if right > 0 else "end", right=right, down=down)
            return


def _beside(title: str, names: list[str], ends: Any, label: str, note: str) -> Figure:
    """A figure for lying bars with names at their left."""
    low, high = room(float(ends.min()), float(ends.max()))
    wide = max((text_width(name) for name in names), default=0) + 24
    figure = Figure(
        title,
        x=(low, high),
        y=(0.4, len(names) + 0.6),
        width=760,
        tall=25 * max(len(names), 1) + 10,
        left=int(min(max(wide, 64), 330)),
        x_label=label,
        note=note,
    )
    figure.tick("x", round_ticks(low, high))
    figure.tick("y", [len(names) - k for k in range(len(names))], names, grid=False)
    return figure
