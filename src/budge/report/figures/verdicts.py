"""The shares of verdicts, by group or by model, with the interval for the share of people for whom the design's claim is true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from budge.audit.result import Audit
from budge.errors import InputError
from budge.report.figures.colours import VERDICTS
from budge.report.figures.drawing import Figure
from budge.report.figures.scales import SHARES, share_names
from budge.report.figures.words import clean, text_width
from budge.stats._checks import percent

__all__ = ["claimed", "verdicts"]

MOST_GROUPS = 40


def claimed(audit: Audit) -> tuple[str, str]:
    """Return the verdict that the design's claim leads to, and what it states about a person."""
    design = audit.design
    if design.threshold == 0 and design.claim == "below":
        return "none", "have no way at all"
    return design.claim, f"are {design.claim} the threshold"


def verdicts(audit: Audit, by: Any = None, *, model: str | None = None, alpha: float | None = None) -> Figure:
    """Return one bar per group (or model): shares of verdicts, the design's claim from the left, and one interval.

    The interval holds the share of people for whom the design's claim is true, for all groups together; a bar without `by` stands by itself.

    Parameters
    ----------
    by
        A column of the people, or one value per person, as in `Audit.by`; without it one bar per model.
    model
        Which model, where there are several and groups are shown.
    alpha
        The error of all intervals of the figure together; the design's unless given.
    """
    design = audit.design
    error = design.alpha if alpha is None else alpha
    rows = _by_model(audit, model, error) if by is None else _by_group(audit, by, model, error)
    title = clean(by if isinstance(by, str) else getattr(by, "name", None) or "group") if by is not None else ""
    named = f" ({clean(audit._named(model))})" if by is not None and len(audit.models) > 1 else ""
    figure = Figure(
        f"Verdicts on responsiveness against {design.threshold:g}" + (f" by {title}" if title else "") + named,
        x=(0.0, 1.0), y=(0.4, len(rows) + 0.6), x_label="share of verdicts", left=_room([row.name for row in rows]),
        tall=34 * max(len(rows), 1) + 12, note=_note(audit, rows, error, grouped=by is not None),
    )  # fmt: skip
    figure.tick("x", SHARES, share_names())
    figure.tick("y", [len(rows) - k for k in range(len(rows))], [row.name for row in rows], grid=False)
    first, states = claimed(audit)
    last = ("none" if design.threshold == 0 else "below") if first == "above" else "above"
    equal = any(row.shares.get("at the threshold") for row in rows)
    order = [first, "inconclusive", *(["at the threshold"] if equal else []), last]
    gist = []
    for k, row in enumerate(rows):
        at, left = len(rows) - k, 0.0
        if not row.people:
            figure.text(0.5, at, "nobody judged", anchor="middle", colour="muted")
            gist.append(f"{row.name}: nobody judged")
            continue
        for verdict in order:
            share = row.shares.get(verdict, 0.0)
            if share > 0:
                figure.bar(left, left + share, at=at, thick=0.62, colour=VERDICTS[verdict], title=f"{row.name}: {share:.1%} of the verdicts are “{verdict}”")
                left += share
        ends = f"between {row.low:.1%} and {row.high:.1%} {states}" if row.low < row.high else f"{row.low:.1%} {states}"
        figure.interval(row.low, row.high, at=at, cap=0.14, over=True, title=f"{row.name}: {ends}")
        said = ", ".join(f"{row.shares[v]:.1%} {v}" for v in order if row.shares.get(v))
        gist.append(f"{row.name}: verdicts {said}; {ends}")
    figure.legend([_word(v) for v in order], [VERDICTS[v] for v in order])
    figure.about = "; ".join(gist)
    return figure


@dataclass(frozen=True)
class _Row:
    """One bar: the people who were judged, the share of each verdict, and the interval for the design's claim."""

    name: str
    people: int
    shares: dict[str, float]
    low: float
    high: float


def _by_model(audit: Audit, model: str | None, alpha: float) -> list[_Row]:
    found = []
    for name in audit.models if model is None else (audit._named(model),):
        rows = len(audit.rows[name].index)
        everybody = pd.Series("everybody", index=audit.rows[name].index, dtype=object)
        shown = clean(name) if len(audit.models) > 1 else "everybody"
        if not rows:
            found.append(_Row(f"{shown} (0)", 0, {}, np.nan, np.nan))
            continue
        (row,) = _rows(audit, everybody.to_numpy(), name, alpha)
        found.append(_Row(f"{shown} ({row.people:,})", row.people, row.shares, row.low, row.high))
    return found


def _by_group(audit: Audit, by: Any, model: str | None, alpha: float) -> list[_Row]:
    many = audit.group(by, model=model).nunique(dropna=False)
    if many > MOST_GROUPS:
        raise InputError(
            "too many groups for a figure",
            where="by",
            got=f"{many} groups",
            remedy=f"at most {MOST_GROUPS}: cut it into ranges, e.g. pandas.cut(X['age'], 5)",
        )
    found = _rows(audit, by, audit._named(model), alpha)
    return [_Row(f"{row.name} ({row.people:,})", row.people, row.shares, row.low, row.high) for row in found]


def _rows(audit: Audit, by: Any, name: str, alpha: float) -> list[_Row]:
    """Return one row per group, in the order of `Audit.by`."""
    table = audit.by(by, model=name, alpha=alpha)
    values = audit.group(by, model=name)
    codes, names = pd.factorize(values.astype(object).where(values.notna(), "missing").to_numpy())
    place = {group: k for k, group in enumerate(names)}
    words = audit.claims(name).verdict
    judged = ~audit.rows[name].counts.is_law("none")
    found = []
    for group, own in table.xs(audit.design.claim, level="verdict").iterrows():
        here = words[judged & (codes == place[group])]
        counts = pd.Series(here, dtype=object).value_counts()
        shares = {str(verdict): int(count) / max(len(here), 1) for verdict, count in counts.items()}
        found.append(_Row(clean(group), int(own["people"]), shares, float(own["low"]), float(own["high"])))
    return found


def _note(audit: Audit, rows: list[_Row], alpha: float, *, grouped: bool) -> str:
    """Return what bars and lines are."""
    states = claimed(audit)[1]
    known = [row for row in rows if row.people]
    if not known:
        return ""
    line = f"Bars: shares of verdicts. Line: the share of people who {states}"
    if all(row.high - row.low < 1e-9 for row in known) and (audit.table["method"].isin(("exact", "proved", "none"))).all():
        return f"{line}, known exactly."
    if (audit.table["exactness"] == "approximate").any():
        return f"{line}, approximately: some people were drawn by a chain, so that no error rate is guaranteed."
    whom = "all groups together" if grouped else "each model by itself" if len(known) > 1 else "these people"
    return f"{line} lies between its ends, for {whom} with confidence {percent(1 - alpha)}."


def _word(verdict: str) -> str:
    return "no way at all" if verdict == "none" else verdict


def _room(names: list[str]) -> int:
    return int(min(max((text_width(name) for name in names), default=0) + 24, 230))
