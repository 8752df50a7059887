"""Groups on one axis: a dot with its interval per group, and the difference of two groups on an axis of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor

from budge.report.figures.strip import WIDTHS
from budge.report.figures.words import shortened, text_width

__all__ = ["Gap", "GroupShare", "dots", "points"]

NB = "\u00a0"
ROW, TOP = 44, 30


@dataclass(frozen=True)
class GroupShare:
    """The share of a group with its interval; `count` of `people` have the verdict."""

    name: str
    people: int
    count: int
    share: float
    low: float
    high: float
    label: str = ""  # shorter, for places that name the column

    @property
    def called(self) -> str:
        """The name where the column is named beside it."""
        return self.label or self.name


@dataclass(frozen=True)
class Gap:
    """The difference of the first group's share and the second's, with its interval."""

    first: str
    second: str
    value: float
    low: float
    high: float
    p_value: float | None = None


def dots(groups: Sequence[GroupShare], gap: Gap | None, medium: str, *, about: str) -> str:
    """Return the figure as SVG for one medium; `about` states what the share is of."""
    width, phone = WIDTHS[medium], medium == "phone"
    label = {"phone": 118, "paper": 150}.get(medium, 210)
    names = [shortened(group.called, label * 0.82, 13, middle=True) for group in groups]  # what tells groups apart is at the end
    wide = width - label - 24 if phone or gap is None else int((width - label) * 0.55)
    most = min(1.0, max(0.1, ceil(max(group.high for group in groups) * 10 + 0.2) / 10))
    base = TOP + ROW * len(groups)
    height = base + 30 + (ROW + TOP + 34 if phone and gap is not None else 0)
    told = "; ".join(f"{group.name}: {_percent(group.share)}, between {_percent(group.low)} and {_percent(group.high)}" for group in groups)
    told += "" if gap is None else f"; {gap.first} minus {gap.second}: {points(gap.value)} points, between {points(gap.low)} and {points(gap.high)}"
    parts = [f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{escape(f"{about}: {told}")}">']
    over = label if shortened(about, wide, 13) == about else 0  # a model's name is told in whole: from the left edge, where it needs the room
    parts.append(f'<text class="quiet" x="{over}" y="12">{escape(shortened(about, wide + label - over, 13))}</text>')
    step = 10 if most <= 0.6 else 20
    most = ceil(round(100 * most) / step) * step / 100
    for ticks in range(0, round(100 * most) + 1, step):
        x = label + ticks / 100 / most * wide
        words = f"{ticks}" + (f"{NB}%" if ticks in (0, round(100 * most)) else "")
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{base}"/>')
        parts.append(f'<text class="quiet" x="{x:.1f}" y="{base + 18}" text-anchor="middle">{words}</text>')
    for k, (group, name) in enumerate(zip(groups, names)):
        y, at = TOP + ROW * (k + 0.5) + 6, label + group.share / most * wide
        low, high = (label + end / most * wide for end in (group.low, group.high))
        parts.append(f'<text class="strong" x="0" y="{y + 5}">{escape(name)}</text>')
        parts.append(f'<line class="span" x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}"/><circle class="dot" cx="{at:.1f}" cy="{y}" r="6.5"/>')
        anchor = "start" if at < label + 50 else "end" if at > label + wide - 60 else "middle"
        parts.append(
            f'<text x="{at:.1f}" y="{y - 12}" text-anchor="{anchor}"><tspan class="strong">{_percent(group.share)}</tspan>'
            f'<tspan class="quiet"> {group.count:,} of {group.people:,}</tspan></text>'
        )
    if gap is not None:
        parts.append(_gap(gap, *((8, base + 34, width - 14, 0.5) if phone else (label + wide + 44, 0, width - 14, len(groups) / 2))))
    return "".join([*parts, "</svg>"])


def _gap(gap: Gap, left: float, top: float, right: float, row: float) -> str:
    """Return the difference on its own axis, in points."""
    low = min(-10, floor(100 * gap.low / 10) * 10)
    high = max(10, ceil(100 * gap.high / 10) * 10)
    step = next(s for s in (10, 20, 50, 100) if (high - low) / s <= min(6, (right - left) / 40))
    low, high = floor(low / step) * step, ceil(high / step) * step

    def place(points: float) -> float:
        return left + 12 + (points - low) / (high - low) * (right - left - 24)

    y = top + TOP + ROW * row + 6
    base = top + TOP + ROW * row * 2
    whole = f"{gap.first} minus {gap.second}"
    title = next((t for t in (f"{whole}, in points", f"{whole}, points") if text_width(t, 13) <= right - left), "difference, points")
    parts = [f'<text class="quiet" x="{left}" y="{top + 12}">{escape(title)}</text>']
    for value in range(low, high + 1, step):
        x = place(value)
        parts.append(f'<line class="{"axis" if value == 0 else "grid"}" x1="{x:.1f}" x2="{x:.1f}" y1="{top + TOP - 6}" y2="{base}"/>')
        parts.append(f'<text class="quiet" x="{x:.1f}" y="{base + 18}" text-anchor="middle">{str(value).replace("-", "−")}</text>')
    at, ends = place(100 * gap.value), [place(100 * end) for end in (gap.low, gap.high)]
    parts.append(f'<line class="span gap" x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" y1="{y}" y2="{y}"/><path class="gap" d="M{at:.1f} {y - 8}l8 8l-8 8l-8 -8z"/>')
    spread = "" if gap.low == gap.high else f" ({points(gap.low)} to {points(gap.high)})"
    half = text_width(points(gap.value) + spread, 13) / 2
    middle = max(min(at, right - half), left + half)  # no end of the text is outside of the figure
    parts.append(
        f'<text x="{middle:.1f}" y="{y - 14}" text-anchor="middle"><tspan class="strong">{points(gap.value)}</tspan>'
        f'<tspan class="quiet">{spread}</tspan></text>'
    )
    return "".join(parts)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}{NB}%"


def points(share: float) -> str:
    """Return a difference of shares in points, with one decimal, or one digit where that would read as nothing; a minus is a minus, and nothing has none.

    Examples
    --------
    >>> points(0.154), points(0.0049), points(-0.0001), points(0.0)
    ('15.4', '0.5', '−0.01', '0')
    """
    if abs(share) < 1e-9:
        return "0"
    return (f"{100 * share:.1f}" if round(100 * share, 1) else f"{100 * share:.1g}").replace("-", "−")
