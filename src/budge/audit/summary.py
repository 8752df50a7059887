"""What an audit shows as a whole: shares with valid intervals, groups and their differences, sentences that a regulator can read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from budge.audit.design import Design
from budge.audit.tally import Tally
from budge.errors import in_lines, one_line
from budge.stats import Share
from budge.stats._checks import Claim, percent, plain
from budge.stats.claims import EXTREMES, VERDICTS
from budge.stats.counts import LAWS
from budge.wording import Wording
from budge.wording import percent as shown_share

__all__ = ["HOW", "Summary", "between", "differences", "group_table", "heads", "records", "summarise"]

SIDES: tuple[Claim, Claim] = ("below", "above")
MOST_GAPS = 5  # sentences about differences between the groups of a column
NO_GAP = 1e-12  # shares this close differ by rounding
#: How something is known that needs no error rate, and what is not.
HOW = {
    "listed": "every reachable point was asked about",
    "proved": "proved from the model's structure",
    "drawn": "a draw attains it",
    "polished": "the best found by polishing draws",
}


@dataclass(frozen=True)
class Summary:
    """Counts of verdicts, the share of people with an interval, groups where the design declares them, and the same in words.

    `share` is about the design's claim: the share of these people who *are* below (above), whatever their verdicts. `groups` maps a declared column to
    the table of `Audit.by`; the intervals of all declared columns hold together.
    """

    model: str
    people: int
    given: int
    already: int
    verdicts: Mapping[str, int]
    methods: Mapping[str, int]
    no_way: int
    every_way: int
    open_ways: int  # neither a way nor its absence is known
    share: Share | None
    groups: Mapping[str, pd.DataFrame]
    mean_rho: float | None  # None where answers are missing: then only its ends are known
    mean_ends: tuple[float, float] | None
    asked: int
    points: int
    unresolved: int
    between_ends: int  # proved to lie between two ends that differ
    approximate: int
    causes: tuple[str, ...]
    design: Design
    info: Mapping[str, Any]

    def __str__(self) -> str:
        return in_lines(self.sentences())

    def sentences(self, wording: Wording | None = None) -> list[str]:
        """Return the sentences, the most important first; groups are named by the audit's own words unless others are given."""
        lines, nouns = [self._first(), self._verdicts()], wording or Wording.of(self.info.get("wording"))
        if self.share is not None:
            lines.append(self._share())
        lines += [line for column, table in self.groups.items() for line in _group_lines(column, table, self.design, self.sure(), nouns)]
        lines.append(self._how())
        if self.unresolved:
            why = f" (the first reason: {self.causes[0]})" if self.causes else ""
            lines.append(f"{self.unresolved:,} of {self.points:,} points have no answer{why}; they are counted against every claim.")
        if self.design.harm:
            word = "none" if self.design.harm == "below" and self.design.threshold == 0 else self.design.harm
            lines.append(f"Declared as harm: {self.design.harm} the threshold ({heads(self.verdicts.get(word, 0))}).")
        return [line for line in lines if line]

    def _first(self) -> str:
        whom = heads(self.people) if self.people == self.given else f"{self.people:,} of {heads(self.given)}"
        have = f" ({self.already:,} already {'has' if self.already == 1 else 'have'} the target)" if self.already else ""
        ways = f"{self.no_way:,} {'is' if self.no_way == 1 else 'are'} known to have no way at all"
        ways += " (proved)" if self.design.prove and self.no_way else ""
        ways += f", {self.every_way:,} cannot miss it" if self.every_way else ""
        if self.design.prove:
            ways += f", {self.open_ways:,} {'is' if self.open_ways == 1 else 'are'} open" if self.open_ways else ", nobody is open"
        name = self.info["name"]
        return f"{self.model}: {whom} audited{have}; target: the output {self.info['target']}; {ways}.{f' Interactions: {name}.' if name else ''}"

    def _verdicts(self) -> str:
        tau = self.design.threshold
        order = [*(("none",) if tau == 0 else ("below",)), "above", "inconclusive"]
        parts = [f"{self.verdicts.get(v, 0):,} {'with no way at all' if v == 'none' else v}" for v in order]
        parts += [f"{count:,} {v.replace('_', ' ')}" for v, count in self.verdicts.items() if v not in order]
        return f"Responsiveness against the threshold {tau:g}: {', '.join(parts)}."

    def _share(self) -> str:
        assert self.share is not None
        share, whom = self.share, "of 1 person" if self.share.people == 1 else f"of these {self.share.people:,} people"
        side = f"are {share.claim} the threshold"
        if self.design.threshold == 0:
            side = "have no way at all" if share.claim == "below" else "have some way"
        if share.people == 1:
            side = side.replace("are", "is", 1).replace("have", "has", 1)
        known = sum(self.methods.get(how, 0) for how in ("exact", "proved"))
        least, most = (round(end * share.people) for end in (share.low, share.high))
        ends = f"between {shown_share(share.low)} and {shown_share(share.high)} {whom} {side}"
        if least == most:
            alone = side.replace("are", "is", 1).replace("have", "has", 1) if least == 1 else side
            ends = f"{least:,} {whom} ({shown_share(share.low)}) {alone}"
        if least == most and (known == share.people or self.design.threshold == 0):  # a hit shows a way, no confidence about it
            return f"Exactly {ends}."
        if known == share.people:
            return f"{ends[0].upper()}{ends[1:]}, {self._open()}."
        if self.approximate:
            return f"Approximately {ends}; no error rate is guaranteed, since {self.approximate:,} of them were drawn by a chain."
        return f"{ends[0].upper()}{ends[1:]} ({percent(1 - share.alpha)} confidence)."

    def _open(self) -> str:
        """Return why a share of people of whom none was drawn is not one number."""
        return "whatever the missing answers are" if self.unresolved else "by ends of responsiveness that are proved"

    def sure(self) -> str:
        """Return how sure the shares of groups are."""
        if self.approximate:
            return "approximately; no error rate is guaranteed"
        drawn = any(self.methods.get(how) for how in ("sample", "sequential", "weighted"))
        if drawn:
            return f"{percent(1 - self.design.alpha)} confidence for all groups together"
        return self._open() if self.unresolved or self.between_ends else "all known"

    def _how(self) -> str:
        drawn = sum(count for how, count in self.methods.items() if how in ("sample", "sequential", "weighted"))
        asked, listed, proved = f"{self.asked:,} points asked", self.methods.get("exact", 0), self.methods.get("proved", 0)
        if not drawn and not proved:
            every = "Every reachable point was asked about" if self.unresolved else "All computed exactly, over every reachable point"
            twice = ", witnesses twice" if self.asked > self.points else ""
            return f"{every} ({self.points:,} in all); {asked}{twice}." if listed else f"{asked[0].upper()}{asked[1:]}."
        ways = ((listed, "computed exactly"), (proved, "proved from the model's structure"), (drawn, "by draws"))
        parts = [f"{count:,} {how}" for count, how in ways if count]
        if listed or proved:
            parts[0] = f"{heads(listed or proved)} {ways[0 if listed else 1][1]}"
        exact = f"All {drawn:,} by draws" if len(parts) == 1 and drawn else ", ".join(parts)
        if not drawn:
            return f"{exact}; {asked}."
        rough = self.approximate
        if rough == drawn:
            return f"{exact} of a chain, which follow their law approximately: no error rate is guaranteed; {asked}."
        alpha = percent(self.design.alpha)
        if self.design.threshold == 0:
            return f"{exact}: one hit shows a way, no number of draws shows that there is none; {asked}."
        error = f"a false 'below' has probability at most {alpha} per person, and so has a false 'above'"
        some = f"; for {rough:,} people drawn by a chain no error rate is guaranteed" if rough else ""
        return f"{exact}: {error}{some}; {asked}."

    def to_dict(self) -> dict[str, Any]:
        """Return the record."""
        plain = (
            "model", "people", "given", "already", "no_way", "every_way", "open_ways", "mean_rho", "mean_ends", "asked", "points", "unresolved",
            "between_ends", "approximate",
        )  # fmt: skip
        groups = {
            column: {
                "shares": records(table.reset_index()),
                "differences": records(differences(table, self.design.claim)),
            }
            for column, table in self.groups.items()
        }
        return {name: getattr(self, name) for name in plain} | {
            "verdicts": dict(self.verdicts), "methods": dict(self.methods), "share": None if self.share is None else self.share.to_dict(),
            "groups": groups, "causes": list(self.causes),
        }  # fmt: skip

    def __repr__(self) -> str:
        return one_line(self)

    def _repr_html_(self) -> str:
        from budge.report.notebook import show_html

        rows = [(verdict, count, count / max(self.people, 1)) for verdict, count in self.verdicts.items()]
        return show_html(str(self), table=pd.DataFrame(rows, columns=["verdict", "people", "share"]).set_index("verdict"))


def heads(n: int) -> str:
    """Return 1 person, 2 people."""
    return "1 person" if n == 1 else f"{n:,} people"


def between(low: float, high: float) -> str:
    """Return two ends in words, one number where they are too near to be told apart.

    Examples
    --------
    >>> between(0.25, 0.5), between(0.25, 0.25 + 1e-12)
    ('between 0.25 and 0.5', 'within 1e-12 of 0.25')
    """
    least, most = f"{low:.4g}", f"{high:.4g}"
    return f"between {least} and {most}" if least != most else f"within {high - low:.1g} of {least}"


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as plain values, None where one is missing."""
    rows = table.astype(object)
    found: list[dict[str, Any]] = plain(rows.where(rows.notna(), None).to_dict(orient="records"))
    return found


def _group_lines(column: str, table: pd.DataFrame, design: Design, sure: str, nouns: Wording) -> list[str]:
    """Return one sentence per group and one per difference that is shown."""
    rows = table[table.index.get_level_values("verdict") == design.claim].droplevel("verdict")
    word = "No way at all" if design.threshold == 0 and design.claim == "below" else design.claim.capitalize()
    seen = zip(rows.index, rows["people"], rows["low"], rows["high"])
    said = ", ".join(f"{nouns.group(column, group, short=True)} {_ends(low, high)} of {people:,}" for group, people, low, high in seen if people)
    lines = [f"{word} by {column}: {said} ({sure})."] if said else []
    gaps = differences(table, design.claim)
    shown = gaps[(gaps["low"] > NO_GAP) | (gaps["high"] < -NO_GAP)]
    largest = sorted(shown.to_dict(orient="records"), key=lambda gap: min(gap["high"], -gap["low"]))[:MOST_GAPS]
    for gap in largest:
        one, two = (nouns.group(column, gap[which], short=True) for which in ("first", "second"))
        low, high = float(gap["low"]), float(gap["high"])
        more, less = (one, two) if low > 0 else (two, one)
        ends = [f"{100 * v:.3g}" for v in sorted((abs(low), abs(high)))]
        by = ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
        lines.append(f"This share {'appears to be' if 'approximately' in sure else 'is'} higher for {more} than for {less} by {by} points.")
    if len(shown) > MOST_GAPS:
        rest = len(shown) - MOST_GAPS
        lines.append(f"{rest:,} smaller {'difference' if rest == 1 else 'differences'} by {column} {'is' if rest == 1 else 'are'} shown, too.")
    return lines


def _ends(low: float, high: float) -> str:
    one, two = shown_share(low), shown_share(high)
    return one if one == two else f"{one} to {two}"


def summarise(tally: Tally, groups: Mapping[str, Mapping[Any, Tally]], design: Design, info: Mapping[str, Any], model: str) -> Summary:
    """Summarise the people of one model, and their groups by column."""
    counts, claims, judged = tally.counts, tally.claims, tally.judged
    extremes = tally.words(EXTREMES, claims.extreme_code)
    return Summary(
        model=model, people=int(tally.people.sum()), given=int(info["people"]), already=int(info.get("already", {}).get(model, 0)),
        verdicts=tally.words(VERDICTS, claims.verdict_code), methods=tally.words(LAWS, counts.law), no_way=extremes.get("none", 0),
        every_way=extremes.get("every", 0),
        open_ways=tally.number(judged & ~counts.way & (claims.extreme_code == 0)),
        share=tally.share(design.claim, design.alpha),
        groups={column: group_table(found, design.alpha / len(groups)) for column, found in groups.items()},
        mean_rho=tally.mean_rho(), mean_ends=tally.mean_ends(), asked=tally.asked, points=tally.total("n"), unresolved=tally.total("unresolved"),
        between_ends=tally.number(counts.is_law("proved") & np.isnan(claims.rho)), approximate=tally.total("approximate"),
        causes=tuple(info.get("causes", {}).get(model, ())), design=design, info=info,
    )  # fmt: skip


def group_table(groups: Mapping[Any, Tally], alpha: float) -> pd.DataFrame:
    """Return the people, verdicts and shares of each group, with intervals that hold for all groups and both sides together.

    Both sides of a group rest on the same two bounds (so many at least below, so many at least above), so that they share one alpha.
    """
    found = []
    for name in groups:
        tally = groups[name]
        size, mean = tally.number(tally.judged), tally.mean_rho()
        for side in SIDES:
            claims = tally.claims
            made = tally.number(claims.has("none" if side == "below" and claims.threshold == 0 else side) & tally.judged)
            ends = tally.share(side, alpha / len(groups))
            found.append(
                {
                    "group": name, "verdict": side, "people": size, "count": made, "verdicts": made / size if size else np.nan,
                    "low": ends.low if ends else np.nan, "high": ends.high if ends else np.nan, "mean_rho": np.nan if mean is None else mean,
                }
            )  # fmt: skip
        del tally  # its memory is that of the next
    columns = ["group", "verdict", "people", "count", "verdicts", "low", "high", "mean_rho"]
    return pd.DataFrame(found, columns=columns).set_index(["group", "verdict"])


def differences(table: pd.DataFrame, side: str) -> pd.DataFrame:
    """Return the difference of every two groups' shares, from intervals that hold together: so do the differences."""
    rows = table[(table.index.get_level_values("verdict") == side) & (table["people"] > 0)].droplevel("verdict")
    found = [
        {
            "first": a, "second": b, "low": rows["low"].iloc[i] - rows["high"].iloc[j], "high": rows["high"].iloc[i] - rows["low"].iloc[j],
            "verdicts": rows["verdicts"].iloc[i] - rows["verdicts"].iloc[j],
        }
        for (i, a), (j, b) in combinations(enumerate(rows.index), 2)
    ]  # fmt: skip
    return pd.DataFrame(found, columns=["first", "second", "low", "high", "verdicts"])

