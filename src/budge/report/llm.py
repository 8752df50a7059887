"""Figures of tests of language models: a forest plot of rates with their intervals and the threshold."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from budge.report.figures import Figure
from budge.report.figures.drawing import shortened
from budge.stats._checks import percent

if TYPE_CHECKING:
    from budge.llm.verdict_table import Verdicts

__all__ = ["forest_figure"]

_SHOWN, _OPEN, _BASE = "blue", "vermilion", "grey"


def forest_figure(result: Verdicts) -> str:
    """Each rate with its interval, model by model; filled where the claim is shown, a tick at the base rate, a line at the threshold."""
    table: Any = result.table
    info = result.info
    models = list(dict.fromkeys(table["model"]))
    rows = len(table) + len(models)
    ends = [float(v) for name in ("low", "high", "base_rate") for v in table[name] if not math.isnan(v)] + [
        float(info["threshold"])
    ]
    high = min(1.0, math.ceil(10 * max(ends) + 0.5) / 10)
    figure = Figure(
        f"Rate of hits: is it {info['claim']} {percent(info['threshold'])}?", x=(0.0, high), y=(0.4, rows + 0.6), width=760, tall=24 * rows + 10,
        left=250, x_label=f"rate of hits, {percent(1 - info['alpha'])} interval",
        note=f"Filled: shown to be {info['claim']}. Grey tick: base rate. Dashed: threshold.",
    )  # fmt: skip
    step = 0.1 if high > 0.4 else 0.05
    figure.tick("x", [round(step * i, 2) for i in range(round(high / step) + 1)])
    tau = float(info["threshold"])
    figure.line([(tau, 0.4), (tau, rows + 0.6)], colour="ink", dash="dashed", title=f"threshold {tau:g}")
    at = rows
    for model in models:
        part = table[table["model"] == model]
        figure.text(0.0, at, shortened(model, 230), anchor="start", right=-238, size=12, bold=True)
        at -= 1
        for row in part.itertuples():
            shown = row.verdict != "inconclusive"
            colour = _SHOWN if shown else _OPEN
            rate, *span = (percent(round(v, 4)) for v in (row.rate, row.low, row.high))
            what = f"{model}, {row.interaction}: {rate}, between {span[0]} and {span[1]}; {row.verdict}"
            figure.line([(row.low, at), (row.high, at)], colour=colour, width=2.0, title=what)
            if not math.isnan(row.base_rate):
                figure.line(
                    [(row.base_rate, at - 0.35), (row.base_rate, at + 0.35)],
                    colour=_BASE,
                    width=2.0,
                    title=f"base rate {percent(round(row.base_rate, 4))}",
                )
            if not math.isnan(row.rate):
                figure.point(row.rate, at, colour=colour, hollow=not shown, title=what)
            figure.text(0.0, at, shortened(row.interaction, 220), anchor="end", right=-8)
            at -= 1
    return str(figure)
