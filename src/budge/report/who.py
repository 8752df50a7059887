"""Groups in a report: shares with intervals, the difference, and the sentence that states it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from budge import stats
from budge.audit.result import Audit
from budge.audit.summary import Summary, differences, group_table
from budge.audit.tally import Tally
from budge.report.answer import claim_words
from budge.report.figures.dots import Gap, GroupShare, dots, points
from budge.report.figures.strip import WIDTHS
from budge.report.words import percent
from budge.stats.claims import EXTREMES
from budge.wording import Wording, shown

__all__ = ["Groups", "Shares", "groups_of", "shares_of"]

MOST_DOTS = 8  # groups of a figure; a table shows more
MOST_PAIRS = 45  # pairs of groups whose difference is listed
NOISE = 12  # digits of a share; what differs beyond them is rounding


@dataclass(frozen=True)
class Groups:
    """One column of groups under one model."""

    column: str
    model: str
    heading: str
    sentence: str  # for the answer; empty where there is nothing short to say
    figures: dict[str, str]
    caption: str
    exact: bool  # the shares are known
    rows: list[dict[str, Any]]
    pairs: list[dict[str, Any]]
    more_pairs: int


@dataclass(frozen=True)
class Shares:
    """The shares of groups and the sentences about them, without figures: from tallies, so that people may stand in files."""

    column: str
    words: str  # what the shares are shares of
    heading: str
    sentence: str
    caption: str
    rows: list[dict[str, Any]]
    shares: list[GroupShare]
    gap: Gap | None
    table: pd.DataFrame
    exact: bool  # the shares are known: intervals are those of a larger population


def shares_of(audit: Audit, column: Any, model: str, alpha: float, nouns: Wording, found: Summary | None = None) -> Shares:
    """Return the shares of the groups of a column, with intervals that hold together at this alpha."""
    name = str(column if isinstance(column, str) else getattr(column, "name", None) or "group")
    tallies, found = audit.tallies(column, model), found or audit.summary(model)
    table = group_table(tallies, alpha)
    rows = _rows(tallies, table, name, nouns)
    own = table[table.index.get_level_values("verdict") == audit.design.claim].droplevel("verdict")
    drawn = any(found.methods.get(law) for law in ("sample", "sequential", "weighted"))
    exact = not drawn and bool((own["high"] - own["low"])[own["people"] > 0].abs().max() < 1e-12) if len(own) else False
    shares = _shares(own, rows, alpha, exact=exact)
    columns = round(audit.design.alpha / alpha)  # that share the alpha
    gap, words = _gap(shares, alpha, columns, exact=exact) if len(shares) == 2 else None, claim_words(audit.design)
    level, sure = percent(1 - audit.design.alpha), found.sure()  # of all columns together
    return Shares(
        column=name, words=words, heading=_heading(shares, gap, words, name, exact=exact, under=f"{model}: " if len(audit.models) > 1 else ""),
        sentence="" if gap is None else _sentence(shares, gap, f"{level} interval" if exact else sure, words, exact=exact),
        caption=_caption(shares, gap, level if exact else sure, columns, exact=exact), rows=rows, shares=shares, gap=gap, table=table, exact=exact,
    )  # fmt: skip


def groups_of(audit: Audit, column: Any, model: str, alpha: float, nouns: Wording) -> Groups:
    """Return the groups of a column: intervals hold together at this alpha."""
    made = shares_of(audit, column, model, alpha, nouns)
    figures = {}
    if 1 < len(made.shares) <= MOST_DOTS:
        about = f"share with {made.words}{f', {shown(model)}' if len(audit.models) > 1 else ''}"
        figures = {medium: dots(made.shares, made.gap, medium, about=about) for medium in WIDTHS}
    pairs = _pairs(differences(made.table, audit.design.claim), made.column, nouns)
    return Groups(
        column=made.column, model=model, heading=made.heading, sentence=made.sentence, figures=figures, caption=made.caption, exact=made.exact, rows=made.rows,
        pairs=pairs[:MOST_PAIRS], more_pairs=max(len(pairs) - MOST_PAIRS, 0),
    )  # fmt: skip


def _rows(tallies: Mapping[Any, Tally], table: pd.DataFrame, name: str, nouns: Wording) -> list[dict[str, Any]]:
    """Return one row per group with both sides in it, and how many have no way at all."""
    none = {group: tally.number(tally.claims.extreme_code == EXTREMES.index("none")) for group, tally in tallies.items()}
    found: dict[Any, dict[str, Any]] = {}
    for row in table.reset_index().to_dict(orient="records"):
        group = row["group"]
        names = {"group": nouns.group(name, group), "short": nouns.group(name, group, short=True)}
        own = found.setdefault(group, names | {"people": int(row["people"]), "mean_rho": row["mean_rho"], "no_way": int(none.get(group, 0))})
        own[str(row["verdict"])] = row | {"low": round(row["low"], NOISE), "high": round(row["high"], NOISE)}
    return list(found.values())


def _shares(own: pd.DataFrame, rows: list[dict[str, Any]], alpha: float, *, exact: bool) -> list[GroupShare]:
    """Return the shares of groups that have people: known ones with the interval of a larger population, others with that of these people."""
    found = []
    several = max(int((own["people"] > 0).sum()), 1)
    for row, (_, entry) in zip(rows, own.iterrows()):
        people, count = int(entry["people"]), int(entry["count"])
        if not people:
            continue
        low, high = stats.interval(count, people, alpha=alpha / several) if exact else (entry["low"], entry["high"])
        found.append(GroupShare(row["group"], people, count, count / people, float(low), float(high), row["short"]))
    return found


def _gap(shares: list[GroupShare], alpha: float, columns: int, *, exact: bool) -> Gap:
    """Return the larger share minus the smaller; interval and p-value allow for so many columns of groups, so that they agree."""
    first, second = sorted(shares, key=lambda group: -group.share)
    if exact:
        found = stats.difference(first.count, first.people, second.count, second.people, alpha=alpha)
        return Gap(first.called, second.called, first.share - second.share, float(found.low), float(found.high), min(columns * float(found.p_value), 1.0))
    low, high = round(first.low - second.high, NOISE), round(first.high - second.low, NOISE)
    return Gap(first.called, second.called, first.share - second.share, low, high)


def _heading(shares: list[GroupShare], gap: Gap | None, words: str, column: str, *, exact: bool, under: str) -> str:
    """Return the finding; `under` names the model where there are several."""
    if not shares:
        return f"{under}Nobody was judged in any group of {column}."
    if len(shares) == 1:
        return f"{under}All people who were judged are of one group: {shares[0].name}."
    most, least = max(shares, key=lambda g: g.share), min(shares, key=lambda g: g.share)
    if not most.count:
        some = "either" if len(shares) == 2 else "any"
        return f"{under}Nobody in {some} group {'has' if exact else 'was found to have'} {words}."
    if most.count * least.people == least.count * most.people:
        return f"{under}The share with {words} is the same in {'both' if len(shares) == 2 else 'all'} groups{'' if exact else ', by verdicts'}."
    high, low = _apart(most.share, least.share)
    told = f"{under}{high} of {most.name} ({_counted(most)}) have {words}, and {low} of {least.name} ({_counted(least)})"
    if gap is None:
        ends = f"from {low} ({least.called}, {_counted(least)}) to {high} ({most.called}, {_counted(most)})"
        return f"{under}By {column}, the share with {words} runs {ends}{'' if exact else ', by verdicts'}."
    if exact:
        return f"{told}{'; in a larger population the difference may be nil' if gap.low <= 0 else ''}."
    return f"{told}, by verdicts{'; no difference is shown' if gap.low <= 0 else ''}."


def _counted(group: GroupShare) -> str:
    return f"{group.count:,} of {group.people:,}"


def _apart(one: float, two: float) -> tuple[str, str]:
    """Return two shares in per cent, with so many digits that they read apart where they are.

    Examples
    --------
    >>> _apart(0.293, 0.138), _apart(0.013, 0.0102), _apart(0.5, 0.5)
    (('29 %', '14 %'), ('1.3 %', '1 %'), ('50 %', '50 %'))
    """
    found = [(percent(one, digits), percent(two, digits)) for digits in range(4)]
    return next((pair for pair in found if pair[0] != pair[1]), found[0])


def _sentence(shares: list[GroupShare], gap: Gap, sure: str, words: str, *, exact: bool) -> str:
    if gap.high - gap.low > 1.99:
        return ""  # nothing is known
    first, second = sorted(shares, key=lambda group: -group.share)
    high, low = _apart(first.share, second.share)
    told = f"With {words}: {high} of {first.name} ({_counted(first)}) and {low} of {second.name} ({_counted(second)})"
    ends = f"{points(gap.low)} to {points(gap.high)}"
    if exact:
        nil = ", so it may be nil" if gap.low <= 0 <= gap.high else ""
        return f"{told}, a difference of {points(gap.value)} points ({sure} {ends} for a population of which they are a random sample{nil})."
    apart = f"lies between {points(gap.low)} and {points(gap.high)} points" if points(gap.low) != points(gap.high) else f"is {points(gap.low)} points"
    return f"{told}, by verdicts; the difference of these people {apart} ({sure})."


def _caption(shares: list[GroupShare], gap: Gap | None, sure: str, columns: int, *, exact: bool) -> str:
    if not shares:
        return ""
    if exact:
        adjusted = f", adjusted for {columns} columns" if columns > 1 else ""
        p = f"; p = {gap.p_value:.2g}{adjusted}" if gap is not None and gap.p_value is not None else ""
        apart = f" The difference has its own interval (one exact region for both shares{p})." if gap is not None else ""
        return (
            "For these people the shares are exact. The intervals answer another question: what would hold for a population of which they are a random "
            f"sample. Those of the groups hold together at {sure} (Clopper–Pearson).{apart}"
        )
    return f"A dot is the share of verdicts. The line holds the share of these people of whom it is true, whatever their verdicts ({sure})."


def _pairs(rows: pd.DataFrame, column: str, nouns: Wording) -> list[dict[str, Any]]:
    """Return the differences between groups, those that are shown first, then the largest."""
    rows = rows.round({"low": NOISE, "high": NOISE})
    apart = (rows["low"] > 0) | (rows["high"] < 0)
    order = rows.assign(apart=apart, size=rows["verdicts"].abs()).sort_values(["apart", "size"], ascending=False, kind="stable")
    return [
        {str(k): v for k, v in row.items()} | {"first": nouns.group(column, row["first"], short=True), "second": nouns.group(column, row["second"], short=True)}
        for row in order.to_dict(orient="records")
    ]
