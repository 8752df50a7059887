"""The figures of statistics: the power curve, and how much an output changes."""

from __future__ import annotations

from math import isfinite

import numpy as np

from budge import stats
from budge.report.figures.drawing import Figure
from budge.report.figures.scales import SHARES, room, round_ticks, share_names
from budge.stats._checks import percent
from budge.stats.planning import PowerCurve
from budge.stats.power import power as exact_power

__all__ = ["how_much", "power_curve"]

MOST_POINTS = 2000


def power_curve(curve: PowerCurve) -> Figure:
    """The exact power by number of draws, with the power asked for and both sample sizes marked."""
    plan = curve.plan
    first, last = float(curve.n.min()), float(max(curve.n.max(), curve.n.min() + 1))
    sign = "<" if plan.claim == "below" else ">"
    figure = Figure(
        f"Power to show ρ {sign} {plan.threshold:g} if it is {plan.rate:g}, at alpha {plan.alpha:g}", x=(first, last), y=(0.0, 1.0),
        x_label="draws", y_label="power", about=str(plan), note=f"Dashed: the power asked for, {percent(plan.power)}.",
    )  # fmt: skip
    figure.tick("x", round_ticks(first, last))
    figure.tick("y", SHARES, share_names())
    figure.line([(first, plan.power), (last, plan.power)], colour="vermilion", dash="dashed", title=f"power {plan.power:g}")
    order = np.argsort(curve.n, kind="stable")
    keep = order[np.unique(np.linspace(0, curve.n.size - 1, min(curve.n.size, MOST_POINTS)).astype(int))]
    figure.line(list(zip(curve.n[keep].tolist(), curve.power[keep].tolist())), width=1.6, title="exact power")
    marked = {plan.first: "first", plan.stable: "stable"} if plan.first != plan.stable else {plan.stable: "first and stable"}
    for n, name in marked.items():
        if first <= n <= last:
            at = float(exact_power(n, plan.threshold, plan.rate, alpha=plan.alpha, claim=plan.claim))
            figure.line([(n, 0.0), (n, at)], colour="muted", width=1.0, dash="dotted")
            figure.point(n, at, size=4.5, hollow=name == "first", title=f"{name}: {n} draws, power {at:.4g}")
            before = name == "first" or figure.at(n, 0)[0] + 110 > figure.width
            figure.text(n, 0.0, f"{name}: {n:,}", anchor="end" if before else "start", right=-6 if before else 6, down=-12)
    return figure


def how_much(result: stats.HowMuch, *, whom: str = "") -> Figure:
    """The quantiles of the change of an output (and its mean), each with its interval unless it is exact; no change is marked."""
    rows = [(f"{percent(q)} are at most", found) for q, found in sorted(result.quantiles.items(), reverse=True)]
    rows += [("the mean change", result.mean)] if result.mean is not None else []
    values = [v for _, found in rows for v in (found.low, found.estimate, found.high) if isfinite(v)] + [0.0]
    low, high = room(min(values), max(values), 0.08)
    open_end = any(not (isfinite(found.low) and isfinite(found.high)) for _, found in rows)
    points = f"all {result.n:,} reachable points" if result.exact else f"{result.n:,} points"
    figure = Figure(
        f"{f'{whom}: how' if whom else 'How'} much the output changes, over {points}",
        x=(low, high), y=(0.4, len(rows) + 0.6), tall=34 * len(rows) + 12, left=130,
        x_label="change of the output",
        note=_note(result, open_end),
    )  # fmt: skip
    figure.tick("x", round_ticks(low, high))
    figure.tick("y", [len(rows) - k for k in range(len(rows))], [name for name, _ in rows], grid=False)
    figure.line([(0.0, figure.y[0]), (0.0, figure.y[1])], colour="muted", dash="dashed", width=1.2, title="no change")
    for k, (name, found) in enumerate(rows):
        words = f"{name} {found.estimate:.4g}" + ("" if found.low == found.high else f", between {found.low:.4g} and {found.high:.4g}")
        if found.low < found.high:
            figure.interval(found.low, found.high, at=len(rows) - k, colour="blue", title=words)
        figure.point(found.estimate, len(rows) - k, title=words)
        figure.text(found.estimate, len(rows) - k, f"{found.estimate:.4g}", anchor="middle", down=-12)
    figure.about = "; ".join(
        f"{name} {found.estimate:.4g}" + (" exactly" if found.low == found.high else f" (between {found.low:.4g} and {found.high:.4g})")
        for name, found in rows
    )
    return figure


def _note(result: stats.HowMuch, open_end: bool) -> str:
    if not result.exact:
        end = " A line without a cap has no finite end: too few draws." if open_end else ""
        return f"Lines: intervals that hold together at {percent(1 - result.alpha)}.{end}"
    return f"Lines: for every way to fill in {result.unresolved:,} answers that are missing." if result.unresolved else "Exact: every point was listed."
