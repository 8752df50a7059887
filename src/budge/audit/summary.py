"""What an audit shows as a whole: shares with valid intervals, groups and their differences, sentences that a regulator can read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.audit.design import Design
from budge.errors import printable
from budge.stats import Claims, Share, share_from_p_values
from budge.stats._checks import Claim, percent, plain
from budge.stats.claims import EXTREMES, VERDICTS
from budge.stats.counts import LAWS, Counts

if TYPE_CHECKING:
    from budge.audit.result import Rows

__all__ = ["HOW", "Summary", "between", "differences", "group_table", "heads", "mean_rho", "records", "share_of", "summarise"]

SIDES: tuple[Claim, Claim] = ("below", "above")
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
        return printable("\n".join(self.sentences()))

    def sentences(self) -> list[str]:
        """Return the sentences, the most important first."""
        lines = [self._first(), self._verdicts()]
        if self.share is not None:
            lines.append(self._share())
        lines += [line for column, table in self.groups.items() for line in _group_lines(column, table, self.design, self._sure())]
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
        name = self.info["name"] or "unnamed"
        return f"{self.model}: {whom} audited{have}; target: the output {self.info['target']}; {ways}. Interactions: {name}."

    def _verdicts(self) -> str:
        tau = self.design.threshold
        order = [*(("none",) if tau == 0 else ("below",)), "above", "inconclusive"]
        parts = [f"{self.verdicts.get(v, 0):,} {'with no way at all' if v == 'none' else v}" for v in order]
        parts += [f"{count:,} {v}" for v, count in self.verdicts.items() if v not in order]
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
        ends = f"between {percent(round(share.low, 4))} and {percent(round(share.high, 4))} {whom} {side}"
        if least == most:
            ends = f"{least:,} {whom} ({100 * share.low:.4g} %) {side}"
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

    def _sure(self) -> str:
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
            return f"{every}; {asked}." if listed else f"{asked[0].upper()}{asked[1:]}."
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


def _group_lines(column: str, table: pd.DataFrame, design: Design, sure: str) -> list[str]:
    """Return one sentence per group and one per difference that is shown."""
    rows = table[table.index.get_level_values("verdict") == design.claim].droplevel("verdict")
    word = "No way at all" if design.threshold == 0 and design.claim == "below" else design.claim.capitalize()
    seen = zip(rows.index, rows["people"], rows["low"], rows["high"])
    said = ", ".join(f"{group} {_ends(low, high)} of {people:,}" for group, people, low, high in seen if people)
    lines = [f"{word} by {column}: {said} ({sure})."] if said else []
    gaps = differences(table, design.claim)
    for one, two, low, high in zip(gaps["first"], gaps["second"], gaps["low"], gaps["high"]):
        if low > 0 or high < 0:
            more, less = (one, two) if low > 0 else (two, one)
            least, most = (f"{100 * v:.3g}" for v in sorted((abs(low), abs(high))))
            by = least if least == most else f"{least} to {most}"
            lines.append(f"This share {'appears to be' if 'approximately' in sure else 'is'} higher for {more} than for {less} by {by} points.")
    return lines


def _ends(low: float, high: float) -> str:
    one, two = percent(round(low, 4)), percent(round(high, 4))
    return one if one == two else f"{one} to {two}"


def summarise(rows: Rows, claims: Claims, design: Design, info: Mapping[str, Any], model: str) -> Summary:
    """Summarise the rows of one model."""
    counts = rows.counts
    judged = ~counts.is_law("none")
    at = slice(None) if judged.all() else np.flatnonzero(judged)
    columns, extremes = [column for column, _ in design.groups], _tally(EXTREMES, claims.extreme_code)
    return Summary(
        model=model, people=len(counts), given=int(info["people"]), already=int(info.get("already", {}).get(model, 0)),
        verdicts=_tally(VERDICTS, claims.verdict_code), methods=_tally(LAWS, counts.law), no_way=extremes.get("none", 0),
        every_way=extremes.get("every", 0), open_ways=int((judged & ~counts.way & (claims.extreme_code == 0)).sum()),
        share=share_of(claims, rows.units, at, design.claim, design.alpha) if judged.any() else None,
        groups={c: group_table(rows, claims, rows.groups[c], design.alpha / len(columns)) for c in columns},
        mean_rho=mean_rho(claims.rho[at], counts.unresolved[at]), mean_ends=_mean_ends(counts, at) if judged.any() else None,
        asked=int(counts.asked.sum()), points=int(counts.n.sum()),
        unresolved=int(counts.unresolved.sum()), between_ends=int((counts.is_law("proved") & np.isnan(claims.rho)).sum()),
        approximate=int(counts.approximate.sum()), causes=tuple(info.get("causes", {}).get(model, ())),
        design=design, info=info,
    )  # fmt: skip


def _tally(names: tuple[str, ...], codes: npt.NDArray[np.int8]) -> dict[str, int]:
    """Return how many rows have each word, the most frequent first."""
    return {names[int(k)]: int(v) for k, v in pd.Series(codes).value_counts().items()}  # type: ignore[call-overload]


def mean_rho(rho: Any, unresolved: Any) -> float | None:
    """Return the mean over people who were judged; None where one of their answers is missing: a mean over the others would be about other people."""
    values = np.asarray(rho, dtype=float)
    return float(values.mean()) if values.size and not np.any(unresolved) and not np.isnan(values).any() else None


def _mean_ends(counts: Counts, at: npt.NDArray[np.intp] | slice) -> tuple[float, float]:
    """Return the mean of the estimates over rows if every missing answer is a miss, and if every one is a hit."""
    least, lost = counts.hit_mass[at], counts.lost_mass[at]
    return float(np.clip(least, 0, 1).mean()), float(np.clip(least + lost, 0, 1).mean())


def share_of(claims: Claims, units: npt.NDArray[np.int64], at: npt.NDArray[np.intp] | slice, side: Claim, alpha: float) -> Share:
    """Return the share of some rows that are on one side of the threshold, whatever their law; rows that share their draws count as one unit."""
    p, q = claims.evidence(side)[at], claims.evidence("above" if side == "below" else "below")[at]
    ties = claims.has("at the threshold")[at] & (claims.threshold > 0)
    return share_from_p_values(p, q, known_not=ties, claim=side, alpha=alpha, units=units[at])


def group_table(rows: Rows, claims: Claims, groups: pd.Series, alpha: float) -> pd.DataFrame:
    """Return the people, verdicts and shares of each group, with intervals that hold for all groups and both sides together.

    Both sides of a group rest on the same two bounds (so many at least below, so many at least above), so that they share one alpha.
    """
    judged = ~rows.counts.is_law("none")
    codes, names = _in_order(_named_groups(groups))
    found = []
    for k, name in enumerate(names):
        at = np.flatnonzero((codes == k) & judged)
        size, mean = len(at), mean_rho(claims.rho[at], rows.counts.unresolved[at])
        for side in SIDES:
            made = int(claims.has("none" if side == "below" and claims.threshold == 0 else side)[at].sum())
            ends = share_of(claims, rows.units, at, side, alpha / len(names)) if size else None
            found.append(
                {
                    "group": name, "verdict": side, "people": size, "count": made, "verdicts": made / size if size else np.nan,
                    "low": ends.low if ends else np.nan, "high": ends.high if ends else np.nan, "mean_rho": np.nan if mean is None else mean,
                }
            )  # fmt: skip
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


def _named_groups(groups: pd.Series) -> pd.Series:
    """Return the groups with a name for people whose group is missing: they are a group too."""
    if not groups.isna().any():
        return groups
    if isinstance(groups.dtype, pd.CategoricalDtype):
        return groups.cat.add_categories([c for c in ["missing"] if c not in groups.cat.categories]).fillna("missing")
    return groups.astype(object).where(groups.notna(), "missing")


def _in_order(groups: pd.Series) -> tuple[npt.NDArray[np.intp], list[Any]]:
    """Return the code of each row's group, and the groups by their own order, or by their text where they have none."""
    codes, found = pd.factorize(groups)
    names = list(found)
    if isinstance(groups.dtype, pd.CategoricalDtype):
        order = [c for c in groups.cat.categories if c in names]
    else:
        try:
            order = sorted(names)
        except TypeError:
            order = sorted(names, key=str)
    place = np.array([order.index(name) for name in names], dtype=np.intp)
    return place[codes] if len(names) else codes, order
