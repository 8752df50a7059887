"""Figures of tests of language models: rates with their intervals and the threshold, differences between models."""

from __future__ import annotations

from math import isnan
from typing import Any

from budge.errors import InputError
from budge.llm.claims.comparing import Comparison
from budge.llm.claims.verdict_table import Verdicts
from budge.report.figures.drawing import Figure
from budge.report.figures.scales import room, round_ticks, share_names
from budge.report.figures.words import text_width
from budge.stats._checks import percent

__all__ = ["differences", "forest"]


def forest(result: Verdicts) -> Figure:
    """Each rate with its interval, model by model; filled where the claim is shown, a diamond at the base rate, a line at the threshold."""
    info = result.info
    tau, level = float(info["threshold"]), percent(1 - info["alpha"])
    groups: Any = list(result.table.groupby("model", sort=False))
    names, places, heads = _rows([(str(model), [str(word) for word in part["interaction"]]) for model, part in groups])
    ends = [float(v) for column in ("low", "high", "base_rate") for v in result.table[column] if not isnan(v)] + [tau]
    low, high = 0.0, min(1.0, room(0.0, max(ends))[1])
    figure = Figure(
        f"Rate of hits: is it {info['claim']} {percent(tau)}?", x=(low, high), y=(0.4, names + 0.6), width=760, tall=23 * names + 10,
        left=_left([*places, *heads]), x_label="rate of hits",
        note=f"Lines: intervals for each rate at {level}. Filled: shown to be {info['claim']} {percent(tau)}. Diamond: base rate.",
    )  # fmt: skip
    figure.tick("x", (ticks := round_ticks(low, high)), share_names(tuple(ticks)))
    figure.line([(tau, figure.y[0]), (tau, figure.y[1])], colour="ink", dash="dashed", title=f"threshold {percent(tau)}")
    figure.text(tau, figure.y[1], f"threshold {percent(tau)}", anchor="middle", down=-8, colour="muted")
    at, said, marked, words = names, [], [], []
    for model, part in groups:
        figure.text(figure.x[0], at, model, bold=True, right=6, down=4)
        at -= 1
        for row in part.itertuples():
            shown = row.verdict != "inconclusive"
            what = (
                f"{model}, {row.interaction}: {_share(row.rate)}, between {_share(row.low)} and {_share(row.high)}; {row.verdict}"
            )
            figure.interval(row.low, row.high, at=at, colour="blue" if shown else "grey", title=what)
            if not isnan(row.base_rate):
                figure.point(
                    row.base_rate, at, colour="orange", shape="diamond", size=4.0, title=f"base rate {_share(row.base_rate)}"
                )
            if not isnan(row.rate):
                figure.point(row.rate, at, colour="blue" if shown else "grey", hollow=not shown, title=what)
            said.append(what)
            marked.append(float(at))
            words.append(row.interaction)
            at -= 1
    figure.tick("y", marked, words, grid=False)
    figure.about = "; ".join(said)
    return figure


def differences(result: Comparison) -> Figure:
    """The difference between each two models with its interval, under each interaction; filled where it is shown."""
    table: Any = result.table
    if not len(table):
        raise InputError("there is nothing to compare", remedy="give answers of two models")
    groups = [(str(word), part) for word, part in table.groupby("interaction", sort=False)]
    names = len(table) + len(groups)
    pairs = [f"{row.first} − {row.second}" for row in table.itertuples()]
    low, high = room(min(float(table["low"].min()), 0.0), max(float(table["high"].max()), 0.0))
    figure = Figure(
        "Difference of rates between models", x=(low, high), y=(0.4, names + 0.6), width=760, tall=23 * names + 10, left=_left(pairs),
        x_label="difference of rates of hits",
        note=f"Lines: intervals for each difference at {percent(1 - result.info['alpha'])}. Filled: shown to differ from 0.",
    )  # fmt: skip
    figure.tick("x", (ticks := round_ticks(low, high)), [f"{100 * v:+.4g} p.p." if v else "0" for v in ticks])
    figure.line([(0.0, figure.y[0]), (0.0, figure.y[1])], colour="ink", dash="dashed", title="no difference")
    colours = {"lower": "blue", "higher": "vermilion", "inconclusive": "grey"}
    at, said, marked, words = names, [], [], []
    for word, part in groups:
        figure.text(figure.x[0], at, word, bold=True, right=6, down=4)
        at -= 1
        row: Any
        for row in part.itertuples():
            pair = f"{row.first} − {row.second}"
            what = (
                f"{word}, {pair}: {100 * row.difference:+.1f} p.p. ({100 * row.low:+.1f} to {100 * row.high:+.1f}); {row.verdict}"
            )
            figure.interval(row.low, row.high, at=at, colour=colours[row.verdict], title=what)
            if not isnan(row.difference):
                figure.point(row.difference, at, colour=colours[row.verdict], hollow=row.verdict == "inconclusive", title=what)
            said.append(what)
            marked.append(float(at))
            words.append(pair)
            at -= 1
    figure.tick("y", marked, words, grid=False)
    figure.about = "; ".join(said)
    return figure


def _rows(groups: list[tuple[str, list[str]]]) -> tuple[int, list[str], list[str]]:
    """How many rows there are with a head for each group, the names of the rows, and the heads."""
    names = [name for _, words in groups for name in words]
    return len(names) + len(groups), names, [head for head, _ in groups]


def _left(names: list[str]) -> int:
    return int(min(max(max((text_width(name) for name in names), default=0) + 24, 64), 300))


def _share(value: float) -> str:
    return "–" if isnan(value) else percent(round(value, 4))
