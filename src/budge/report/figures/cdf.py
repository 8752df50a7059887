"""How responsiveness is distributed over people: the empirical distribution function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from budge.audit.result import Audit
from budge.audit.summary import heads
from budge.errors import InputError
from budge.report.figures.colours import DASHES, SERIES
from budge.report.figures.drawing import Figure
from budge.report.figures.scales import SHARES, share_names
from budge.wording import percent

if TYPE_CHECKING:
    from budge.stress import Ablation, Sensitivity

__all__ = ["cdf"]


def cdf(result: Audit | Ablation | Sensitivity, *, most: int = 6) -> Figure:
    """Return the share of people with responsiveness up to ρ: one line per model, before and after relaxations, or per member.

    Parameters
    ----------
    result
        An audit, an ablation or a sensitivity analysis. The threshold is marked.
    most
        Lines at most; those of the largest gains, or the first members.
    """
    lines, note, threshold = _lines(result)
    kind = "(estimated) " if isinstance(result, Audit) and not result.table["method"].isin(("exact", "proved", "none")).all() else ""
    left_out = len(lines) - most
    lines = lines[:most]
    if left_out > 0:
        note.append(f"{left_out} more are not drawn.")
    if not any(len(table) for _, table in lines):
        raise InputError("nobody has an estimate of responsiveness", remedy="look at the column status of the table")
    figure = Figure(
        "Share of people with responsiveness up to ρ",
        x=(0.0, 1.0),
        y=(0.0, 1.0),
        x_label="responsiveness ρ",
        y_label="share of people",
        note=" ".join(note),
    )
    figure.tick("x", SHARES)
    figure.tick("y", SHARES, share_names())
    before = bool(lines) and lines[0][0] == "before" and not isinstance(result, Audit)
    looks = [("ink", "solid", 3.0)] if before else []
    looks += [(SERIES[k % len(SERIES)], DASHES[(k // len(SERIES) + k) % len(DASHES)], 2.0) for k in range(len(lines))]
    gist = []
    if threshold is not None:
        figure.line(
            [(threshold, 0.0), (threshold, 1.0)], colour="muted", width=1.2, dash="dashed", title=f"threshold {threshold:g}"
        )
        figure.text(threshold, 1.0, f"τ = {threshold:g}", anchor="middle", down=-8, colour="muted")
    for (name, table), (colour, dash, width) in zip(lines, looks):
        figure.line(_stairs(table), colour=colour, dash=dash, width=width, title=name)
        if threshold is not None and len(table):
            gist.append(f"{name}: {percent(_below(table, threshold))} of those with a ρ have it {kind}below the threshold {threshold:g}")
    if len(lines) > 1:
        figure.legend(
            [name for name, _ in lines],
            [c for c, _, _ in looks[: len(lines)]],
            kind="line",
            dashes=[d for _, d, _ in looks[: len(lines)]],
        )
    figure.about = "; ".join(gist)
    return figure


def _lines(result: Any) -> tuple[list[tuple[str, pd.DataFrame]], list[str], float | None]:
    """Return name and distribution of each line, what is to be noted, and the threshold."""
    if isinstance(result, Audit):
        tables = {name: table for name in result.models if len(table := result.of_model(name)) or len(result.models) == 1}
        said = {name: _people(table) for name, table in tables.items()}
        alike = len(set(said.values())) == 1 and len(said) == len(result.models)
        note = [next(iter(said.values()))] if alike else [f"{name}: {words}" for name, words in said.items()]
        return [(name, _empirical(table["rho"])) for name, table in tables.items()], note, result.design.threshold
    from budge.stress import Ablation, Sensitivity

    if isinstance(result, Ablation):
        lines = [("before", result.cdf()), *((name, result.cdf(name)) for name in result.relaxations)]
        return lines, [f"{result.info['people']:,} people; largest mean gains first."], float(result.info["threshold"])
    if isinstance(result, Sensitivity):
        return (
            [(name, result.cdf(name)) for name in result.members],
            [f"{len(result.people):,} people."],
            float(result.info["threshold"]),
        )
    raise InputError("an audit, an ablation or a sensitivity analysis", where="cdf", got=type(result).__name__)


def _people(rows: pd.DataFrame) -> str:
    """Return how many people a line is about, and how their ρ is known."""
    drawn = int((rows["method"].isin(("sample", "sequential", "weighted")) & rows["rho"].notna()).sum())
    missing = int(rows["rho"].isna().sum())
    some = "all" if drawn == len(rows) - missing else f"of whom {drawn:,}"
    how = f", {some} by draws: their ρ is an estimate." if drawn else ", all exactly."
    more = f" The ρ of {missing:,} more is not known, and the figure is not about them." if missing else ""
    return f"{heads(len(rows) - missing)}{how}{more}"


def _empirical(rho: Any) -> pd.DataFrame:
    known = rho.dropna().to_numpy(dtype=float)
    values, counts = np.unique(known, return_counts=True)
    return pd.DataFrame({"rho": values, "share": np.cumsum(counts) / max(len(known), 1)})


def _stairs(table: pd.DataFrame) -> list[tuple[float, float]]:
    steps = [(0.0, 0.0)]
    for rho, share in zip(table["rho"].tolist(), table["share"].tolist()):
        steps += [(rho, steps[-1][1]), (rho, share)]
    return [*steps, (1.0, steps[-1][1])]


def _below(table: pd.DataFrame, threshold: float) -> float:
    under = table[table["rho"] < threshold]
    return float(under["share"].iloc[-1]) if len(under) else 0.0
