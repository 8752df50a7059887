"""The result of an ablation: per person and relaxation, on average, ranked, and as distributions before and after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge import stats
from budge.audit.design import Design
from budge.audit.sources import TableSource
from budge.errors import DesignError, InputError, nearest, printable
from budge.interaction import InteractionModel
from budge.stats._checks import percent, plain
from budge.stress.relaxations import Relaxation
from budge.stress.tally import Tally

if TYPE_CHECKING:
    from budge.report.figures import Figure

__all__ = ["Ablation", "fresh", "heads", "make_ablation", "mean_gain", "means", "rank", "records", "side", "signed"]

FloatArray = npt.NDArray[np.float64]
COLUMNS = (
    "relaxation", "status", "method_before", "method_after", "before", "after", "delta", "low", "high", "newly_reachable", "proven",
    "size_ratio",
)  # fmt: skip


@dataclass(frozen=True)
class Ablation:
    """What each relaxation does to responsiveness.

    `table` has one row a person and relaxation: ρ `before` and `after`, `delta` with its interval (`low`, `high`; no width where
    both are exact), whether the target became reachable (`newly_reachable`; `proven` where the original set was listed in
    full), and how many times larger the relaxed set is, where both are counted. `ranking` has one row a relaxation, the
    largest mean gain first. Intervals hold one by one with probability 1 - alpha; `delta` may be negative, for more actions can dilute.
    """

    table: pd.DataFrame
    ranking: pd.DataFrame
    info: Mapping[str, Any]
    left_out: tuple[str, ...] = ()
    rerun: Callable[[Mapping[str, Any]], Ablation] | None = field(default=None, repr=False, compare=False)

    @property
    def relaxations(self) -> tuple[str, ...]:
        """Their names, the largest mean gain first."""
        return tuple(self.ranking["relaxation"])

    def of(self, relaxation: str) -> pd.DataFrame:
        """The rows of one relaxation."""
        if relaxation not in self.relaxations:
            raise InputError("no such relaxation", got=relaxation, remedy=nearest(relaxation, self.relaxations))
        return self.table[self.table["relaxation"] == relaxation]

    def cdf(self, relaxation: str | None = None) -> pd.DataFrame:
        """The share of people with responsiveness up to each value: before (no name), or after a relaxation."""
        rows = self.of(self.relaxations[0] if relaxation is None else relaxation)
        rho = np.sort(rows["before" if relaxation is None else "after"].dropna().to_numpy())
        values, counts = np.unique(rho, return_counts=True)
        return pd.DataFrame({"rho": values, "share": np.cumsum(counts) / max(len(rho), 1)})

    def again(self, **changes: Any) -> Ablation:
        """The same ablation on fresh draws; more draws of the same stream after looking are refused."""
        found: Ablation = fresh(self.rerun, self.info, changes)
        return found

    def __str__(self) -> str:
        level, people = percent(1 - self.info["alpha"]), self.info["people"]
        lines = [
            f"{heads(people)}; target: the output {self.info['target']}; {len(self.ranking)} relaxations of {self.info['name'] or 'the model'}, "
            f"one at a time; {self.info['asked']:,} points asked."
        ]
        for _, row in self.largest(5).iterrows():
            if np.isnan(row["gain"]):
                lines.append(f"{row['relaxation']}: no estimate ({row['note']}).")
                continue
            gain = signed(row["gain"])
            if row["low"] == row["high"]:
                gain += " exactly"
            else:
                gain += f" (between {signed(row['low'])} and {signed(row['high'])} at {level})"
            lines.append(
                f"{row['relaxation']}: mean responsiveness {row['before']:.4g} -> {row['after']:.4g}, {gain}; "
                f"the target becomes reachable for {heads(row['newly_reachable'])}."
            )
        rest = self.ranking.drop(self.largest(5).index)["gain"]
        if rest.notna().any():
            lines.append(f"… and {int(rest.notna().sum())} more whose mean changes no more than these, up or down.")
        if rest.isna().any():
            lines.append(f"… and {int(rest.isna().sum())} more without an estimate.")
        lines += [f"Not relaxed: {text}." for text in self.left_out]
        return printable("\n".join(lines))

    def largest(self, most: int) -> pd.DataFrame:
        """Those rows of the ranking whose mean changes most, up or down; the largest gain first, as there."""
        size = self.ranking["gain"].abs().to_numpy(dtype=float)
        order = np.argsort(np.where(np.isnan(size), np.inf, -size), kind="stable")[:most]
        return self.ranking.iloc[np.sort(order)]

    def to_dict(self) -> dict[str, Any]:
        """The record: how it was made, the ranking and the table."""
        return {
            "info": plain(dict(self.info)), "ranking": records(self.ranking), "table": records(self.table.reset_index(names="person")),
            "left_out": list(self.left_out),
        }  # fmt: skip

    def plot(self, kind: Literal["gains", "cdf"] = "gains") -> Figure:
        """A figure: the mean gain of each relaxation, or responsiveness before and after."""
        from budge.report.figures import cdf, chosen, gains

        return chosen(kind, {"gains": gains, "cdf": cdf})(self)

    def _repr_html_(self) -> str:
        from budge.report.notebook import show_html

        return show_html(str(self), table=self.ranking, figure=self.plot)


def fresh(rerun: Callable[[Mapping[str, Any]], Any] | None, info: Mapping[str, Any], changes: Mapping[str, Any]) -> Any:
    """Run again on other draws; the draws that were looked at are not topped up."""
    if rerun is None:
        raise InputError("the model and the people are not at hand", remedy="run it anew")
    if changes.get("seed", info["seed"]) == info["seed"] and changes.get("purpose", info["purpose"]) == info["purpose"]:
        raise DesignError(
            "more draws after looking: the same stream begins with the draws that were seen, and drawing on until something shows breaks alpha",
            got={"seed": info["seed"], "purpose": info["purpose"]},
            remedy="give another seed; the new result then stands by itself",
        )
    return rerun(changes)


def signed(value: float) -> str:
    """A change with its sign; a minus is a minus, not a hyphen.

    Examples
    --------
    >>> signed(-0.25), signed(0.5)
    ('−0.25', '+0.5')
    """
    text = f"{value:+.4g}"
    return f"−{text[1:]}" if text.startswith("-") else text


def heads(people: int) -> str:
    """1 person, 2 people."""
    return "1 person" if people == 1 else f"{people:,} people"


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as plain values."""
    rows = table.astype(object)
    found: list[dict[str, Any]] = plain(rows.where(rows.notna(), None).to_dict(orient="records"))
    return found


def side(found: Tally, s: int, level: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """ρ and its interval for one set: exact where listed, at the level where drawn; NaN where there is none."""
    n, k, lost = found.n[s], found.hits[s], found.unresolved[s]
    rho, low, high = (np.full(len(n), np.nan) for _ in range(3))
    exact, drawn = found.method[s] == "exact", found.method[s] == "sample"
    known = np.maximum(n - lost, 1)
    rho[exact | drawn] = (k / known)[exact | drawn]
    low[exact], high[exact] = (k / np.maximum(n, 1))[exact], ((k + lost) / np.maximum(n, 1))[exact]
    given = exact & ~np.isnan(found.rho[s])
    rho[given] = low[given] = found.rho[s][given]
    high[given] = (found.rho[s] + lost / np.maximum(n, 1))[given]
    if drawn.any():
        ends = (
            stats.unresolved_interval(k[drawn], n[drawn], lost[drawn], level)
            if lost[drawn].any()
            else stats.interval(k[drawn], n[drawn], level)
        )
        low[drawn], high[drawn] = ends.low, ends.high
    rho[n == lost] = np.nan
    return rho, low, high


def make_ablation(
    found: Tally, chosen: tuple[Relaxation, ...], left_out: tuple[str, ...], source: TableSource, design: Design, im: InteractionModel,
    asked: npt.NDArray[np.bool_], again: Callable[[Mapping[str, Any]], Ablation],
) -> Ablation:  # fmt: skip
    """From the counts of every set."""
    people = np.flatnonzero(asked)
    labels = pd.Index([source.labels[i] for i in people.tolist()], tupleize_cols=False)
    keys = np.array(source.keys(), dtype=object)
    half = float(-np.expm1(np.log1p(-design.alpha) / 2))
    tables, ranked = [], []
    for s, r in enumerate(chosen, start=1):
        both = (found.method[0] == "sample") & (found.method[s] == "sample")
        ends = [np.where(both, a, b) for t in (0, s) for a, b in zip(side(found, t, half), side(found, t, design.alpha))]
        before, low0, high0, after, low1, high1 = ends
        new = (found.hits[0] == 0) & (found.hits[s] > 0)
        proven = new & ((found.method[0] == "exact") | (found.status[0] == "empty"))
        ratio = found.size[s] / found.size[0]
        columns = {
            "relaxation": np.full(len(before), r.name, dtype=object), "status": found.status[s], "method_before": found.method[0],
            "method_after": found.method[s], "before": before, "after": after, "delta": after - before, "low": low1 - high0,
            "high": high1 - low0, "newly_reachable": new, "proven": proven & (found.unresolved[0] == 0), "size_ratio": ratio,
        }  # fmt: skip
        tables.append(pd.DataFrame({name: np.asarray(columns[name])[people] for name in COLUMNS}, index=labels))
        (least0, most0), (least1, most1) = _answers(found, 0), _answers(found, s)
        drawn = np.stack([np.where(found.method[t] == "sample", found.n[t], 0)[people] for t in (0, s)])
        delta = columns["delta"][people]
        low, high = mean_gain(delta, (least1 - most0)[people], (most1 - least0)[people], drawn, keys[people], design.alpha)
        if np.isfinite(delta).sum() == 1:  # one person: her own interval is the sharper one
            low, high = (float(columns[end][people][np.isfinite(delta)][0]) for end in ("low", "high"))
        ranked.append({"kind": r.kind, "superset": r.superset, **means(tables[-1], design.threshold), "low": low, "high": high})
    ranking = rank([r.name for r in chosen], ranked)
    info = {
        "name": im.name, "target": design.target.describe(), "threshold": design.threshold, "alpha": design.alpha, "n": design.n,
        "seed": design.seed, "purpose": design.purpose, "method": "both", "measure": im.measure, "people": len(people), "asked": found.asked,
        "spec_digest": im.digest,
    }  # fmt: skip
    return Ablation(pd.concat(tables), ranking, info, left_out, again)


def means(rows: pd.DataFrame, threshold: float) -> dict[str, Any]:
    """The averages of one relaxation over those who can be compared."""
    known = rows[rows["delta"].notna()]
    return {
        "gain": float(known["delta"].mean()) if len(known) else np.nan,
        "before": float(known["before"].mean()) if len(known) else np.nan,
        "after": float(known["after"].mean()) if len(known) else np.nan,
        "newly_reachable": int(rows["newly_reachable"].sum()),
        "proven": int(rows["proven"].sum()),
        "below_before": int((known["before"] < threshold).sum()),
        "below_after": int((known["after"] < threshold).sum()),
        "size_ratio": float(rows["size_ratio"].mean()) if rows["size_ratio"].notna().any() else np.nan,
        "compared": len(known),
        "note": "" if len(known) else "nobody can be compared",
    }


def rank(names: list[str], found: list[dict[str, Any]]) -> pd.DataFrame:
    """One row a relaxation, the largest mean gain first."""
    table = pd.DataFrame(found)
    table.insert(0, "relaxation", names)
    order = ["relaxation", "kind", "gain", "low", "high"]
    table = table[order + [c for c in table.columns if c not in order]]
    return table.sort_values("gain", ascending=False, kind="stable", na_position="last").reset_index(drop=True)


def _answers(found: Tally, s: int) -> tuple[FloatArray, FloatArray]:
    """The least and the largest rate, for all ways to fill in the answers that are missing."""
    n = np.maximum(found.n[s], 1)
    least = np.where(np.isnan(found.rho[s]), found.hits[s] / n, found.rho[s])
    return least, least + found.unresolved[s] / n


def mean_gain(delta: Any, least: Any, most: Any, drawn: Any, keys: Any, alpha: float) -> tuple[float, float]:
    """An interval for the mean of delta over these people (Hoeffding: a sum of independent draws; those who stand alike share them).

    Parameters
    ----------
    delta, least, most
        For each person, and for all ways to fill in missing answers; NaN where there is nothing to compare.
    drawn
        Draws (before, after) of each person, 0 where listed: a listed set adds no uncertainty.
    keys
        What a person's draws depend on.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = mean_gain([0.2, 0.4], [0.2, 0.4], [0.2, 0.4], np.array([[0, 0], [500, 500]]), np.array([1, 2]), 0.05)
    >>> round(low, 3), round(high, 3)
    (0.257, 0.343)
    """
    known = np.isfinite(np.asarray(delta, dtype=float))
    if not known.any():
        return np.nan, np.nan
    people = int(known.sum())
    alike = pd.Series(1.0, index=pd.Index(np.asarray(keys)[known], dtype=object)).groupby(level=0).transform("sum").to_numpy()
    n = np.asarray(drawn)[:, known]
    # A group of c people with the same draws weighs c / people; its squared weight is carried by its members in equal parts.
    spread = (np.where(n > 0, 1.0 / np.maximum(n, 1), 0.0).sum(axis=0) * alike / people**2).sum()
    half = float(np.sqrt(np.log(2 / alpha) / 2 * spread))
    low, high = float(np.asarray(least)[known].mean()) - half, float(np.asarray(most)[known].mean()) + half
    return max(low, -1.0), min(high, 1.0)
