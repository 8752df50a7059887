"""What an audit says as a whole: shares with valid intervals, groups, sentences that a regulator can read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from budge import stats
from budge.errors import printable

__all__ = ["Summary", "group_table", "summarise"]


@dataclass(frozen=True)
class Summary:
    """Counts of verdicts, the share of people with an interval, and the same in words."""

    model: str
    people: int
    verdicts: Mapping[str, int]
    methods: Mapping[str, int]
    share: stats.Share | None
    mean_rho: float | None
    calls: int
    unresolved: int
    info: Mapping[str, Any]

    def __str__(self) -> str:
        design = self.info["design"]
        tau, alpha = design["threshold"], design["alpha"]
        lines = [
            f"{self.model}: {self.people:,} people; target: the output {self.info['target']}; "
            f"interactions: {self.info['name'] or 'unnamed'}; {self.calls:,} points asked."
        ]
        parts = [f"{self.verdicts.get(v, 0):,} {v}" for v in ("below", "above", "inconclusive")]
        others = [f"{count:,} {v}" for v, count in self.verdicts.items() if v not in ("below", "above", "inconclusive")]
        lines.append(f"Responsiveness against the threshold {tau:g}: {', '.join(parts + others)}.")
        if self.share is not None:
            lines.append(self._share_sentence(self.share))
        drawn = sum(count for how, count in self.methods.items() if how in ("sample", "sequential", "weighted"))
        if drawn:
            lines.append(
                f"{self.methods.get('exact', 0):,} people computed exactly; {drawn:,} by draws, each verdict wrong with probability at most {alpha:g}."
            )
        elif self.methods.get("exact"):
            lines.append("All computed exactly, over every reachable point.")
        if self.unresolved:
            lines.append(f"{self.unresolved:,} points have no answer; verdicts hold for every way to fill them.")
        if self.info.get("harm"):
            lines.append(
                f"Declared as harm: {self.info['harm']} the threshold ({self.verdicts.get(self.info['harm'], 0):,} people)."
            )
        return printable("\n".join(lines))

    def _share_sentence(self, share: stats.Share) -> str:
        if share.low == share.high:
            return f"Exactly {round(share.low * share.people):,} of these {share.people:,} people ({100 * share.low:.4g} %) are {share.claim} the threshold."
        text = str(share)
        return f"{text[0].upper()}{text[1:]} confidence."

    def to_dict(self) -> dict[str, Any]:
        """The record."""
        return {
            "model": self.model,
            "people": self.people,
            "verdicts": dict(self.verdicts),
            "methods": dict(self.methods),
            "share": None if self.share is None else self.share.to_dict(),
            "mean_rho": self.mean_rho,
            "calls": self.calls,
            "unresolved": self.unresolved,
        }

    def _repr_html_(self) -> str:
        from budge.report.notebook import show_html

        rows = [(verdict, count, count / max(self.people, 1)) for verdict, count in self.verdicts.items()]
        return show_html(str(self), table=pd.DataFrame(rows, columns=["verdict", "people", "share"]).set_index("verdict"))


def summarise(rows: pd.DataFrame, info: Mapping[str, Any], model: str) -> Summary:
    """From the table of one model."""
    design = info["design"]
    judged = rows[rows["verdict"].isin(("below", "above", "inconclusive"))]
    share = _share(judged, design, independent=info.get("twins", 0) == 0) if len(judged) else None
    rho = judged["rho"].dropna()
    return Summary(
        model=model,
        people=len(rows),
        verdicts={str(k): int(v) for k, v in rows["verdict"].value_counts().items()},
        methods={str(k): int(v) for k, v in rows["method"].value_counts().items()},
        share=share,
        mean_rho=float(rho.mean()) if len(rho) else None,
        calls=int(rows["n"].sum()),
        unresolved=int(rows["unresolved"].sum()),
        info=info,
    )


def _share(judged: pd.DataFrame, design: Mapping[str, Any], *, independent: bool) -> stats.Share:
    """Those computed exactly are counted; only those drawn are bounded."""
    claim, alpha = design["claim"], design["alpha"]
    known = judged["method"] == "exact"
    sure = int((known & (judged["verdict"] == claim)).sum())
    open_ = int((known & (judged["verdict"] == "inconclusive") & (judged["unresolved"] > 0)).sum())
    opposite = int((judged["verdict"] == ("above" if claim == "below" else "below")).sum())
    claimed, low, high, level = sure, float(sure), float(sure + open_), 0.0
    drawn = judged[~known]
    if len(drawn):
        p_claim, p_other = _p_values(drawn, design)
        bounded = stats.share_from_p_values(p_claim, p_other, claim=claim, alpha=alpha, over="these", independent=independent)
        claimed += bounded.claimed
        low, high, level = low + bounded.low * len(drawn), high + bounded.high * len(drawn), bounded.level
    people = len(judged)
    return stats.Share(claimed, opposite, people, low / people, min(high / people, 1.0), alpha, level, "these", claim)


def _p_values(judged: pd.DataFrame, design: Mapping[str, Any]) -> tuple[Any, Any]:
    """Everybody's p-value for the claim and for its opposite; an exact verdict has 0 or 1."""
    claim = design["claim"]
    other = "above" if claim == "below" else "below"
    sides = []
    for side in (claim, other):
        p = np.where(judged["verdict"] == side, 0.0, 1.0)
        drawn = (judged["method"] == "sample").to_numpy()
        looked = (judged["method"] == "sequential").to_numpy()
        against = judged["hits"] + (judged["unresolved"] if side == "below" else 0)
        if drawn.any():
            p[drawn] = stats.p_value(against[drawn].to_numpy(), judged["n"][drawn].to_numpy(), design["threshold"], side)
        if looked.any():
            p[looked] = stats.anytime_p_value(
                judged["hits"][looked].to_numpy(), judged["n"][looked].to_numpy(), design["threshold"], side
            )
        weighed = (judged["method"] == "weighted").to_numpy()
        p[weighed] = np.where(judged["verdict"][weighed] == side, design["alpha"], 1.0)
        sides.append(p)
    return sides[0], sides[1]


def group_table(rows: pd.DataFrame, groups: pd.Series, alpha: float) -> pd.DataFrame:
    """People, mean ρ and the share of each verdict by group, with intervals that hold for all groups together.

    The intervals are about a larger population of which these people were a random sample; of these very people the share is what it is.
    """
    judged = rows["verdict"].isin(("below", "above", "inconclusive"))
    found = []
    groups = _told(groups)
    names = _in_order(groups)
    for verdict in ("below", "above"):
        counts = {
            str(g): (int(((groups == g) & (rows["verdict"] == verdict)).sum()), int(((groups == g) & judged).sum()))
            for g in names
        }
        known = {g: c for g, c in counts.items() if c[1]}
        intervals = stats.group_intervals(known, alpha=alpha) if known else {}
        for g in names:
            k, size = counts[str(g)]
            at = intervals.get(str(g))
            found.append(
                {
                    "group": g, "verdict": verdict, "people": int((groups == g).sum()), "count": k, "share": k / size if size else np.nan,
                    "low": at.low if at else np.nan, "high": at.high if at else np.nan, "mean_rho": float(rows["rho"][groups == g].mean()),
                }
            )  # fmt: skip
    return pd.DataFrame(found).set_index(["group", "verdict"])


def _told(groups: pd.Series) -> pd.Series:
    """People whose group is missing are a group too."""
    if not groups.isna().any():
        return groups
    if isinstance(groups.dtype, pd.CategoricalDtype):
        return groups.cat.add_categories([c for c in ["missing"] if c not in groups.cat.categories]).fillna("missing")
    return groups.astype(object).where(groups.notna(), "missing")


def _in_order(groups: pd.Series) -> list[Any]:
    """The groups by their own order, or by their text where they have none: a table and a figure list them alike."""
    names = list(pd.unique(groups))
    if isinstance(groups.dtype, pd.CategoricalDtype):
        return [g for g in groups.cat.categories if g in names]
    try:
        return sorted(names)
    except TypeError:
        return sorted(names, key=str)
