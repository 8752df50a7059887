"""Which model has the lower rate, under each interaction: paired on the same prompts and draws, never from two intervals that overlap.

And whether a benchmark's ranking is overturned: two models stand in one order at the base and in the other under an interaction. Both orders
have to be shown, so the p-value is the larger of the two; either model may be the one ahead, so it is doubled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from budge.errors import DataError, DesignError, in_lines, nearest
from budge.llm.answers import BASE, Answers
from budge.llm.claims.contrasts import Contrast, paired
from budge.llm.claims.evidence import METHODS, OVER
from budge.llm.claims.verdicts import answers_of, scheme_of
from budge.stats import adjust as adjusted
from budge.stats._checks import fraction, one_of, percent, plain

if TYPE_CHECKING:
    from budge.report.figures import Figure

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True)
class Comparison:
    """What is shown of the order of models.

    `ranks`: one row per model and interaction, the places that it may have (1 is the lowest rate): all of them hold together with probability
    1 - alpha, if the adjustment is Holm's or Bonferroni's. `table`: one row per pair and interaction (`verdict`: the first is `lower`, `higher` or
    `inconclusive`). `rankings`: one row per pair and interaction other than the base, whether the order of the base is overturned.
    """

    table: pd.DataFrame
    rankings: pd.DataFrame
    ranks: pd.DataFrame
    info: Mapping[str, Any]

    def __str__(self) -> str:
        info = self.info
        whom = "these prompts" if info["over"] == "these" else "the population of which the prompts are a sample"
        lines = [
            f"Rates of hits over {whom}, compared draw by draw; alpha {percent(info['alpha'])}, adjusted by {info['adjust']} over all comparisons."
        ]
        p = "p" if info["adjust"] == "none" else "adjusted p"
        lines += self._of_two(p) if len({*self.table["first"], *self.table["second"]}) == 2 else self._places()
        row: Any
        for row in self.rankings.itertuples():
            if row.overturned:
                lines.append(
                    f"{row.interaction} overturns the ranking of the base: {row.ahead} is lower there and higher here ({p} = {row.p_adjusted:.3g})."
                )
        if len(self.rankings) and not self.rankings["overturned"].any():
            lines.append("No ranking of the base is shown to be overturned.")
        return in_lines(lines)

    def _of_two(self, p: str) -> list[str]:
        """Return a sentence per interaction about the two models."""
        lines = []
        row: Any
        for row in self.table.itertuples():
            if row.verdict == "inconclusive":
                said = f"no difference shown between {row.first} and {row.second}"
            else:
                said = f"{row.first} is {row.verdict} than {row.second}"
            among = " among pairs that are resolved" if row.unresolved else ""
            ends = f"{_points(row.difference)}{among} ({_points(row.low)} to {_points(row.high)})"
            lost = f", {row.unresolved:,} of them with an unresolved answer" if row.unresolved else ""
            lines.append(
                f"{row.interaction}: {said} ({p} = {row.p_adjusted:.3g}). {ends} over {row.pairs:,} pairs{lost}; {row.method}."
            )
        return lines

    def _places(self) -> list[str]:
        """Return a sentence per interaction about the places of all models, and how far these hold."""
        lines = []
        for word, part in self.ranks.groupby("interaction", sort=False):
            ends = zip(part["model"], part["best"].tolist(), part["worst"].tolist())
            places = [f"{model} {best}" + (f" to {worst}" if worst > best else "") for model, best, worst in ends]
            lines.append(f"{word}, place by the rate of hits (1 is lowest) of {len(part)}: {', '.join(places)}.")
        sure = self.info["adjust"] in ("holm", "bonferroni")
        together = f"All places hold together with probability {percent(1 - self.info['alpha'])}" if sure else "The places do not hold together"
        lost = int(self.table["unresolved"].sum())
        return [*lines, together + (f"; {lost:,} pairs have an unresolved answer, counted against each order." if lost else ".")]

    def plot(self) -> Figure:
        """Each difference with its interval."""
        from budge.report.llm import differences

        return differences(self)

    def to_dict(self) -> dict[str, Any]:
        """The record of the comparison."""
        return {
            "info": plain(dict(self.info)),
            "table": plain(self.table.to_dict("records")),
            "rankings": plain(self.rankings.to_dict("records")),
            "ranks": plain(self.ranks.to_dict("records")),
        }

    def _repr_html_(self) -> str:
        from budge.report.notebook import show_html

        return show_html(str(self), table=self.table, figure=self.plot)


def compare(
    answers: Answers,
    *,
    over: str,
    models: Sequence[str] | None = None,
    alpha: float = 0.05,
    adjust: str = "holm",
    base: str | None = BASE,
    method: str = "auto",
    scheme: str | None = None,
) -> Comparison:
    """Compare models pairwise under each interaction, over the draws that both have.

    Parameters
    ----------
    over : {"these", "population"}
        As in `test`: the prompts of this benchmark, or the population they are a sample of.
    models : names, optional
        Those to compare; all pairs of them are.
    adjust : {"bh", "by", "holm", "bonferroni", "none"}
        Over all pairs and interactions at once (p-values are two-sided).

    Notes
    -----
    Unresolved answers are filled against each verdict in turn. P-value and interval agree: the two-sided p-value is below alpha if and only if the
    interval excludes 0. Joint draws are alike, so one exact region of the two kinds of disagreement gives both. With fixed prompts both come from
    separate bounds on the two kinds (`budge.llm.claims.contrasts`), which needs more evidence.

    Examples
    --------
    >>> rows = [{"model": m, "interaction": "typos", "prompt": q, "hit": q < h} for m, h in (("a", 2), ("b", 20)) for q in range(40)]
    >>> compare(Answers.of(rows, {"scheme": "joint"}), over="these").table[["first", "verdict", "second"]].values.tolist()
    [['a', 'lower', 'b']]
    """
    level, whom = fraction(alpha, "alpha"), one_of(over, "over", OVER)
    how = one_of(adjust, "adjust", ("bh", "by", "holm", "bonferroni", "none"))
    answers = answers_of(answers)
    way = scheme_of(answers, scheme)
    if answers.info.get("sequential") or one_of(method, "method", METHODS) == "anytime":
        raise DesignError(
            "pairs of runs that stopped early cannot be compared: where each stopped depends on what it saw",
            where="answers",
            got=answers.info.get("sequential"),
            remedy="draw a fixed number for the comparison",
        )
    if not answers.info.get("complete", True):
        raise DesignError(
            "the run is incomplete, and which pairs are missing may depend on the answers",
            where="answers",
            remedy="finish the run",
        )
    names = list(models) if models is not None else list(answers.models)
    for name in names:
        if name not in answers.models:
            raise DataError("no such model among the answers", where="models", got=name, remedy=nearest(name, answers.models))
    if len(set(names)) < 2:
        raise DataError("two models are needed for a comparison", where="models", got=names, remedy="give answers of both")
    groups = {(str(k[0]), str(k[1])): part for k, part in answers.table.groupby(["model", "interaction"], sort=False)}
    found: dict[tuple[str, str, str], Contrast] = {}
    for one, two in combinations(dict.fromkeys(names), 2):
        for word in answers.interactions:
            if (one, word) in groups and (two, word) in groups:
                made = paired(groups[one, word], groups[two, word], scheme=way, over=whom, alpha=level, method=method)
                if made is not None:
                    found[one, two, word] = made
    if not found:
        raise DataError(
            "no two models have a draw of the same prompt in common",
            where="answers",
            remedy="run both on the same prompts with the same seed",
        )
    info = {"over": whom, "alpha": level, "adjust": how, "base": base, "scheme": way, "method": method}
    table = _table(found, level, how)
    return Comparison(table, _rankings(found, base, level, how), _ranks(table), info)


def _table(found: Mapping[tuple[str, str, str], Contrast], alpha: float, how: str) -> pd.DataFrame:
    rows = []
    for (one, two, word), seen in found.items():
        greater, less = _p_values(seen)
        rows.append(
            {
                "interaction": word, "first": one, "second": two, "pairs": seen.pairs, "only_first": seen.only_first, "only_second": seen.only_second,
                "unresolved": seen.unresolved, "difference": np.nan if seen.estimate is None else seen.estimate, "low": seen.low, "high": seen.high,
                "p_value": min(1.0, 2 * min(greater, less)),
                "way": "lower" if less < greater else "higher", "method": seen.method,
            }
        )  # fmt: skip
    table = pd.DataFrame(rows)
    table["p_adjusted"] = adjusted(table["p_value"].to_numpy(), how)
    table["verdict"] = np.where(table["p_adjusted"] < alpha, table.pop("way"), "inconclusive")
    return table


def _ranks(table: pd.DataFrame) -> pd.DataFrame:
    """Return the places that each model may have: behind all that are shown to be lower, before all that are shown to be higher."""
    rows = []
    for word, part in table.groupby("interaction", sort=False):
        names = list(dict.fromkeys([*part["first"], *part["second"]]))
        lower = dict.fromkeys(names, 0)  # models that are shown to be lower than this one
        higher = dict.fromkeys(names, 0)
        for one, two, verdict in zip(part["first"], part["second"], part["verdict"]):
            if verdict != "inconclusive":
                less, more = (one, two) if verdict == "lower" else (two, one)
                lower[more] += 1
                higher[less] += 1
        found = [{"interaction": word, "model": name, "best": 1 + lower[name], "worst": len(names) - higher[name]} for name in names]
        rows += sorted(found, key=lambda row: (row["best"], row["worst"]))
    return pd.DataFrame(rows)


def _rankings(found: Mapping[tuple[str, str, str], Contrast], base: str | None, alpha: float, how: str) -> pd.DataFrame:
    rows = []
    for (one, two, word), seen in found.items():
        before = found.get((one, two, base)) if base is not None and word != base else None
        if before is not None:
            # First lower at the base and higher here, or the reverse: both parts have to be shown.
            (more, less), (more_here, less_here) = _p_values(before), _p_values(seen)
            ways = {one: max(less, more_here), two: max(more, less_here)}
            ahead = min(ways, key=lambda name: ways[name])
            rows.append({"interaction": word, "first": one, "second": two, "ahead": ahead, "p_value": min(1.0, 2 * ways[ahead])})
    table = pd.DataFrame(rows, columns=["interaction", "first", "second", "ahead", "p_value"])
    table["p_adjusted"] = adjusted(table["p_value"].to_numpy(), how) if len(table) else table["p_value"]
    table["overturned"] = (table["p_adjusted"] < alpha) if len(table) else pd.Series(dtype=bool)
    return table


def _p_values(seen: Contrast) -> tuple[float, float]:
    """Of "the first is higher" and of "the first is lower"; pairs always have them."""
    assert seen.p_greater is not None
    assert seen.p_less is not None
    return seen.p_greater, seen.p_less


def _points(value: float) -> str:
    return "–" if np.isnan(value) else f"{100 * value:+.1f} p.p.".replace("-", "−")
