"""The share of each verdict, by group or by model, with intervals."""

from __future__ import annotations

from typing import Any

import pandas as pd

from budge.audit.result import Audit
from budge.errors import InputError
from budge.report.figures.colours import VERDICTS
from budge.report.figures.drawing import Figure
from budge.report.figures.scales import SHARES, share_names
from budge.report.figures.words import clean, text_width
from budge.stats._checks import percent

__all__ = ["verdicts"]

MOST_GROUPS = 40


def verdicts(audit: Audit, by: Any = None, *, model: str | None = None) -> Figure:
    """One bar a group (or model): the share below from the left, above from the right, what is inconclusive between.

    Parameters
    ----------
    by
        A column of the table of people, or one value a person, as in `Audit.by`; without it a bar a model.
    model
        Which model, where there are several and groups are shown.
    """
    rows = _by_model(audit, model) if by is None else _by_group(audit, by, model)
    level = percent(1 - audit.info["design"]["alpha"])
    whom = "each model" if by is None else "all groups together"
    title = clean(by if isinstance(by, str) else getattr(by, "name", None) or "group") if by is not None else ""
    figure = Figure(
        f"Verdicts on responsiveness against {audit.info['design']['threshold']:g}" + (f" by {title}" if title else ""),
        x=(0.0, 1.0), y=(0.4, len(rows) + 0.6), x_label="share of people judged", left=_room([name for name, _, _ in rows]),
        tall=34 * max(len(rows), 1) + 12, note=f"Lines: intervals for the share below (upper line) and above (lower line), for {whom} at {level}, "
        "were these people a random sample of a larger population.",
    )  # fmt: skip
    figure.tick("x", SHARES, share_names())
    figure.tick("y", [len(rows) - k for k in range(len(rows))], [name for name, _, _ in rows], grid=False)
    gist = []
    for k, (name, people, found) in enumerate(rows):
        at = len(rows) - k
        below, above = found["below"], found["above"]
        if pd.isna(below["share"]):
            figure.text(0.5, at, "nobody judged", anchor="middle", colour="muted")
            gist.append(f"{name}: nobody judged")
            continue
        left, right = float(below["share"]), 1 - float(above["share"])
        for verdict, low, high in (("below", 0.0, left), ("inconclusive", left, right), ("above", right, 1.0)):
            if high - low > 1e-12:
                figure.bar(low, high, at=at, thick=0.62, colour=VERDICTS[verdict], title=f"{name}: {high - low:.1%} {verdict}")
        for row, (low, high) in ((below, (below["low"], below["high"])), (above, (1 - above["high"], 1 - above["low"]))):
            if pd.notna(low):
                ends = f"{row['share']:.1%}, between {row['low']:.1%} and {row['high']:.1%}"
                figure.interval(
                    float(low),
                    float(high),
                    at=at + (0.12 if row is below else -0.12),
                    cap=0.1,
                    over=True,
                    title=f"{name}: {ends}",
                )
        gist.append(f"{name} ({people:,} people): {left:.1%} below, {1 - right:.1%} above")
    figure.legend(list(VERDICTS), list(VERDICTS.values()))
    figure.about = "; ".join(gist)
    return figure


Row = tuple[str, int, dict[str, Any]]


def _by_model(audit: Audit, model: str | None) -> list[Row]:
    rows: list[Row] = []
    for name in audit.models if model is None else (model,):
        table = audit.of_model(name)
        found = audit.by(pd.Series("everybody", index=table.index), model=name)
        rows.append((name if len(audit.models) > 1 else f"everybody ({len(table):,})", len(table), _pair(found, "everybody")))
    return rows


def _by_group(audit: Audit, by: Any, model: str | None) -> list[Row]:
    found = audit.by(by, model=model)
    groups = list(dict.fromkeys(found.index.get_level_values("group")))
    if len(groups) > MOST_GROUPS:
        raise InputError(
            "too many groups for a figure",
            where="by",
            got=f"{len(groups)} groups",
            remedy=f"at most {MOST_GROUPS}: cut it into ranges, e.g. pandas.cut(X['age'], 5)",
        )
    rows: list[Row] = []
    for group in groups:
        pair = _pair(found, group)
        people = int(pair["below"]["people"])
        rows.append((f"{clean(group)} ({people:,})", people, pair))
    return rows


def _pair(found: pd.DataFrame, group: Any) -> dict[str, Any]:
    groups, names = found.index.get_level_values("group"), found.index.get_level_values("verdict")
    return {v: found[[g == group and n == v for g, n in zip(groups, names)]].iloc[0] for v in ("below", "above")}


def _room(names: list[str]) -> int:
    return int(min(max((text_width(name) for name in names), default=0) + 24, 230))
