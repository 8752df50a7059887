"""The result of an ablation: per person and relaxation, on average, ranked, and as distributions before and after."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.audit.summary import heads, records
from budge.errors import InputError, in_lines, nearest
from budge.stats import Claims, Counts, claim, difference_bounds
from budge.stats._checks import percent, plain, signed
from budge.stats.claims import Question
from budge.stats.counts import STATUSES
from budge.stress.common import Asked, Stressed, claims_at, distribution, notes_of
from budge.stress.needs import Need, needs_of
from budge.stress.relaxations import Relaxation
from budge.stress.tally import Tally

if TYPE_CHECKING:
    from budge.report.figures import Figure

__all__ = ["Ablation", "Compared", "compared", "mean_gain", "rank"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Ablation(Stressed):
    """What each relaxation does to responsiveness.

    `table` has one row per person and relaxation: ρ `before` and `after`, `delta` with its interval (`low`, `high`; no width where both are
    known), `way_before` (a hit or a proof shows a way in the original), `newly_reachable` (known to have had no way at all, and a hit was found),
    `seen_only_after` (the original was drawn without a hit, and the relaxed set has one that the original does not allow), and how many times larger
    the relaxed set is, where both are counted. `ranking` has one row per relaxation, the largest mean gain first; `by_rule` states one rule once.
    `needs` holds what new ways need. Intervals hold one by one with probability 1 - alpha; `delta` may be negative, for more actions can dilute.
    """

    shown: ClassVar[str] = "ranking"

    table: pd.DataFrame
    ranking: pd.DataFrame
    info: dict[str, Any]
    left_out: tuple[str, ...] = ()
    needs: tuple[Need, ...] = ()
    rerun: Callable[[Mapping[str, Any]], Ablation] | None = field(default=None, repr=False, compare=False)

    @property
    def relaxations(self) -> tuple[str, ...]:
        """Names of the relaxations, the largest mean gain first."""
        return tuple(self.ranking["relaxation"])

    @property
    def without(self) -> tuple[int, int]:
        """How many people have no way at all before anything is relaxed, and how many were drawn without a hit."""
        first = self.of(self.relaxations[0]) if len(self.ranking) else self.table
        zero, known = (first["before"] == 0) & ~first["way_before"].astype(bool), first["method_before"].isin(("exact", "proved"))
        unmoved = (first["method_before"] == "none") & first["status"].isin(("ok", "fixed", "empty"))  # no action at all
        return int((zero & known | unmoved).sum()), int((zero & ~known).sum())

    def of(self, relaxation: str) -> pd.DataFrame:
        """Return the rows of one relaxation."""
        if relaxation not in self.relaxations:
            raise InputError("no such relaxation", got=relaxation, remedy=nearest(relaxation, self.relaxations))
        return self.table[self.table["relaxation"] == relaxation]

    def cdf(self, relaxation: str | None = None) -> pd.DataFrame:
        """Return the share of people with responsiveness up to each value: before (no name), or after a relaxation."""
        rows = self.of(self.relaxations[0] if relaxation is None else relaxation)
        return distribution(rows["before" if relaxation is None else "after"])

    def __str__(self) -> str:
        largest = self.largest(5)
        lines = [self._asked(), *self._gains(largest)]
        rest = self.ranking.drop(largest.index)["gain"]
        if rest.notna().any():
            lines.append(f"… and {int(rest.notna().sum())} more whose mean changes no more than these, up or down.")
        if rest.isna().any():
            lines.append(f"… and {int(rest.isna().sum())} more without an estimate.")
        return in_lines([*lines, *self._notes()])

    def brief(self) -> str:
        """Return what a table of `by_rule` does not hold: what was asked, relaxations with a remark, and what was left out."""
        rows = self.by_rule
        remarked = rows[(rows["note"] != "") | rows["approximate"] | rows["gain"].isna()]
        return in_lines([self._asked(), *self._gains(remarked), *self._notes()])

    def _asked(self) -> str:
        whole = "the model" if not self.info["name"] else f"“{self.info['name']}”"
        many = "1 relaxation" if len(self.ranking) == 1 else f"{len(self.ranking)} relaxations"
        return f"{heads(self.info['people'])}; target: the output {self.info['target']}; {many} of {whole}, one at a time; {self.info['asked']:,} points asked."

    def _notes(self) -> list[str]:
        return [*(f"Not relaxed: {text}." for text in self.left_out), *notes_of(self.info)]

    def _gains(self, rows: pd.DataFrame) -> list[str]:
        """Return one sentence per row of a ranking."""
        lines, level = [], percent(1 - self.info["alpha"])
        for _, row in rows.iterrows():
            if np.isnan(row["gain"]):
                ends = "" if np.isnan(row["low"]) else f"mean responsiveness changes by {signed(row['low'])} to {signed(row['high'])}; "
                lines.append(f"{row['relaxation']}: {ends}no estimate ({row['note']}).")
                continue
            gain = signed(row["gain"])
            if row["low"] == row["high"]:
                gain += " exactly"
            elif row["approximate"]:
                gain += f" (about {signed(row['low'])} to {signed(row['high'])}; some draws come from a chain, so that no error rate is guaranteed)"
            else:
                gain += f" (between {signed(row['low'])} and {signed(row['high'])} at {level})"
            whom = heads(row["newly_reachable"]) if row["newly_reachable"] else "nobody"
            lines.append(
                f"{row['relaxation']}: mean responsiveness {row['before']:.4g} → {row['after']:.4g}, {gain}; "
                f"the target becomes reachable for {whom} who had no way at all." + (f" ({row['note']}.)" if row["note"] else "")
            )
        return lines

    def largest(self, most: int) -> pd.DataFrame:
        """Return the rows of the ranking whose mean changes most, up or down; the largest gain first, as there."""
        size = self.ranking["gain"].abs().to_numpy(dtype=float)
        order = np.argsort(np.where(np.isnan(size), np.inf, -size), kind="stable")[:most]
        return self.ranking.iloc[np.sort(order)]

    def to_dict(self) -> dict[str, Any]:
        """Return the record: how it was made, the ranking and the table."""
        return {
            "info": plain(dict(self.info)), "ranking": records(self.ranking), "table": records(self.table.reset_index(names="person")),
            "left_out": list(self.left_out), "needs": plain([need.to_dict() for need in self.needs]),
        }  # fmt: skip

    @cached_property
    def by_rule(self) -> pd.DataFrame:
        """One row per finding, those that give most people a way first: of relaxations of one rule that free the same people, the weakest.

        The column `also` names the others.
        """
        able = self.table[self.table["newly_reachable"] | self.table["seen_only_after"]]
        freed = {name: frozenset(own.index) for name, own in able.groupby("relaxation", sort=False)}
        same: dict[Any, list[int]] = {}
        for at, (name, rule) in enumerate(zip(self.ranking["relaxation"], self.ranking["rule"])):
            same.setdefault((rule, freed[name]) if name in freed else name, []).append(at)
        size = self.ranking["size_ratio"].fillna(np.inf).to_numpy()
        kept = {min(own, key=lambda at: (size[at], self.ranking["kind"][at] == "constraint")): own for own in same.values()}
        names = self.ranking["relaxation"]
        also = pd.Series({at: [names[k] for k in own if k != at] for at, own in kept.items()}, dtype=object)
        found = self.ranking.loc[list(kept)].assign(also=also)
        return found.sort_values(["newly_reachable", "seen_only_after", "gain"], ascending=False, kind="stable", ignore_index=True)

    def plot(self, kind: Literal["gains", "cdf"] = "gains") -> Figure:
        """Return a figure: the mean gain of each relaxation, or responsiveness before and after."""
        from budge.report.figures import cdf, chosen, gains

        return chosen(kind, {"gains": gains, "cdf": cdf})(self)


@dataclass
class Compared:
    """Relaxations compared with the original: a table of people each, their averages, what was counted and asked, and which were refused."""

    tables: list[pd.DataFrame] = field(default_factory=list)
    ranked: list[dict[str, Any]] = field(default_factory=list)
    counts: list[Counts] = field(default_factory=list)
    asked: int = 0
    refused: tuple[str, ...] = ()
    needs: list[Need] = field(default_factory=list)

    def add(self, r: Relaxation, rows: pd.DataFrame, ends: tuple[float, float], threshold: float, **more: Any) -> None:
        """Add the rows of one relaxation, and its averages over those who can be compared; `ends` are those of the mean gain."""
        known = rows[rows["delta"].notna()]
        gaps = int((rows["delta"].isna() & rows["low"].notna()).sum())  # a listed person with missing answers has ends and no value
        left_out = f"answers of {heads(gaps)} are missing" if gaps else ""
        known = known[:0] if gaps else known  # a mean without them would be about other people
        self.tables.append(rows)
        self.ranked.append({
            "relaxation": r.name, "kind": r.kind, "rule": r.rule or r.name, "gain": float(known["delta"].mean()), "low": ends[0], "high": ends[1],
            "superset": r.superset, "before": float(known["before"].mean()), "after": float(known["after"].mean()),
            "newly_reachable": int(rows["newly_reachable"].sum()), "seen_only_after": int(rows["seen_only_after"].sum()),
            "below_before": int((known["before"] < threshold).sum()), "below_after": int((known["after"] < threshold).sum()),
            "size_ratio": float(rows["size_ratio"].mean()), "compared": len(known), "note": left_out if gaps or len(known) else "nobody can be compared",
            "approximate": bool((rows["exactness"] == "approximate").any()), **more,
        })  # fmt: skip


def compared(about: Asked, found: Tally, chosen: tuple[Relaxation, ...], freed: Sequence[npt.NDArray[np.intp]], seen: Counts | None = None) -> Compared:
    """Compare every relaxed set with the original one, from the counts of all; `seen` is what an audit counted of the original, by person."""
    source, design, people = about.source, about.design, np.flatnonzero(about.chosen)
    labels, units = source.labels[people], source.units[people]
    old = found.counts[0].take(people)
    was = claims_at(old, design, design.alpha)
    no_way = (was.extreme == "none") | (old.status == STATUSES.index("empty"))
    way = old.way | (False if seen is None else seen.way[people])
    missed = ~no_way & old.is_law("sample") & ~way
    made = Compared(counts=list(found.counts), asked=found.asked)
    for s, r in enumerate(chosen, start=1):
        new = found.counts[s].take(people)
        now = claims_at(new, design, design.alpha)
        low, high = _ends(old, new, was, now, design.alpha)
        hit = new.hits > 0
        opened = hit & np.array([(s, i) not in found.known_ways for i in people.tolist()], dtype=bool)
        columns = {
            "relaxation": np.full(len(people), r.name, dtype=object), "status": new.words("status"), "method_before": old.words("law"),
            "method_after": new.words("law"), "before": was.rho, "after": now.rho, "delta": now.rho - was.rho, "low": low, "high": high,
            "way_before": way, "newly_reachable": no_way & hit, "seen_only_after": missed & opened,
            "size_ratio": (found.size[s] / found.size[0])[people], "exactness": _exactness(was, now),
        }  # fmt: skip
        comparable = ~np.isnan(low)
        ends = mean_gain(old.take(comparable), new.take(comparable), units[comparable], design.alpha)
        if comparable.sum() == 1:  # the interval of one person is the sharper one
            ends = float(low[comparable][0]), float(high[comparable][0])
        made.add(r, pd.DataFrame(columns, index=labels), ends, design.threshold)
        freer = no_way & hit | missed & opened
        able, after = people[freer], new.take(freer)
        if len(able) and all((s, i) in found.ways for i in able.tolist()):
            listed = bool((after.is_law("exact") & (after.unresolved == 0)).all())
            hits = {i: found.ways[s, i] for i in able.tolist()}
            made.needs += needs_of(r, source.model, freed[s], hits, source.values, listed=listed)
    return made


def _exactness(was: Claims, now: Claims) -> npt.NDArray[Any]:
    """Return the weaker of two words, per row."""
    order = np.array(["", "approximate", "guaranteed", "exact"], dtype=object)
    rank = {word: k for k, word in enumerate(order)}
    both = [np.array([rank[word] for word in c.exactness], dtype=int) for c in (was, now)]
    return np.asarray(order[np.minimum(*both)])


def _ends(old: Counts, new: Counts, was: Claims, now: Claims, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Return the interval of each row's change: known ends are subtracted, one that is known shifts the other, two samples give a rectangle."""
    low, high = now.low - was.high, now.high - was.low
    both = old.is_law("sample") & new.is_law("sample")
    if both.any():
        one, two = new.take(both), old.take(both)
        low[both], high[both] = difference_bounds(
            one.hits, one.n, two.hits, two.n, unresolved=one.unresolved, unresolved2=two.unresolved, alpha=alpha, method="rectangle"
        )  # the region is sharper, at milliseconds per distinct pair of counts: too dear for every person and relaxation
    return low, high


def rank(found: list[dict[str, Any]]) -> pd.DataFrame:
    """Return one row per relaxation, the largest mean gain first."""
    return pd.DataFrame(found).sort_values("gain", ascending=False, kind="stable", na_position="last").reset_index(drop=True)


def mean_gain(before: Counts, after: Counts, units: npt.NDArray[np.intp], alpha: float) -> tuple[float, float]:
    """Return an interval for the mean change over rows: known rows count as they are, drawn ones by two pooled exact bounds.

    The draws of rows with equal starts are the same, so that their pooled count is no sum of independent draws; where there are such, Hoeffding's
    inequality over units takes the place of the pooled claim.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = mean_gain(Counts.of([0, 0], [500, 500]), Counts.of([100, 200], [500, 500]), np.array([0, 1]), 0.05)
    >>> round(low, 3), round(high, 3)
    (0.264, 0.334)
    """
    people = len(before)
    if not people:
        return np.nan, np.nan
    both = bool(before.is_law("sample").any() and after.is_law("sample").any())
    sides = [_mean_ends(c, units, alpha, both=both) for c in (before, after)]
    (low0, high0), (low1, high1) = sides
    return max(low1 - high0, -1.0), min(high1 - low0, 1.0)


def _mean_ends(counts: Counts, units: npt.NDArray[np.intp], alpha: float, *, both: bool) -> tuple[float, float]:
    """Return an interval for the mean of rho over rows; two such intervals, of independent draws, hold together at 1 - alpha if `both`."""
    each = (1 - np.sqrt(1 - alpha)) / 2 if both else alpha / 2
    drawn, people = counts.is_law("sample"), len(counts)
    known = counts.take(~drawn)
    low, high = float(known.hit_mass.sum()), float((known.hit_mass + known.lost_mass).sum())
    if drawn.any():
        some = counts.take(drawn)
        _, alike = np.unique(units[drawn], return_counts=True)
        if (alike == 1).all():
            mean = claim(some, Question(0.5, 2 * each), mean="pooled")
            low, high = low + len(some) * float(mean.low[0]), high + len(some) * float(mean.high[0])
        else:  # a unit of c rows weighs c: the squares of the weights set the width
            half = float(np.sqrt(np.log(1 / each) / 2 * (alike**2).sum() / some.n.min()))
            low += max(float(some.hit_mass.sum()) - half, 0.0)
            high += min(float((some.hit_mass + some.lost_mass).sum()) + half, float(len(some)))
    return low / people, high / people
