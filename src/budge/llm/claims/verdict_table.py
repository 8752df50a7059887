"""The result of testing language models: a table, sentences that a regulator can read, and the paper's table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

from budge.errors import DesignError, in_lines, printable
from budge.stats._checks import percent, plain
from budge.table_files import latex

if TYPE_CHECKING:
    from budge.report.figures import Figure

__all__ = ["SPLIT", "TABLE", "Verdicts"]

#: Columns of the table; rates and differences are shares (0.05 is five percentage points).
TABLE = (
    "model", "interaction", "base_rate", "n", "hits", "unresolved", "rate", "delta", "delta_low", "delta_high", "low", "high", "bound",
    "p_value", "p_adjusted", "verdict", "method", "interval_method", "exact", "delta_method", "rate_over", "base_rate_over", "delta_over",
)  # fmt: skip
SPLIT = (
    "n", "hits", "unresolved", "rate", "low", "high", "bound", "p_value", "p_adjusted", "verdict", "method", "interval_method", "exact", "rate_over",
)  # fmt: skip
_MARK = "†"
_FALSE = "on average at most {} of the claims made for a model are false ({})"
_ANY = "the probability of any false claim for a model is at most {} ({})"
_ERROR = {
    "bh": (_FALSE, "Benjamini–Hochberg over its interactions"),
    "by": (_FALSE, "Benjamini–Yekutieli over its interactions"),
    "holm": (_ANY, "Holm over its interactions"),
    "bonferroni": (_ANY, "Bonferroni over its interactions"),
    "none": ("each claim alone is false with probability at most {} ({})", "not adjusted"),
}


@dataclass(frozen=True)
class Verdicts:
    """One row a model and interaction in `table`; in `every`, for each model, whether the claim holds under all of its interactions.

    `verdict` compares the adjusted p-value with alpha. `every` needs no adjustment: all interactions have to reject.
    """

    table: pd.DataFrame
    every: pd.DataFrame
    info: Mapping[str, Any]
    split: Callable[[str], pd.DataFrame] | None = field(default=None, repr=False, compare=False)

    def by_category(self) -> pd.DataFrame:
        """The same tests for each category of prompts, adjusted together within a model."""
        return self._split("category")

    def by_prompt(self) -> pd.DataFrame:
        """The same tests for each prompt over its rewrites and completions, adjusted together within a model."""
        return self._split("prompt")

    def _split(self, by: str) -> pd.DataFrame:
        if self.split is None:
            raise DesignError(f"counts do not tell one {by} from another", where=by, remedy="test the answers themselves")
        return self.split(by)

    def __str__(self) -> str:
        info = self.info
        sign = "below" if info["claim"] == "below" else "above"
        tau = percent(info["threshold"])
        whom = "these prompts" if info["over"] == "these" else "the population of which the prompts are a sample"
        many = f" ({info['prompts']:,} of them)" if info["prompts"] and info["over"] == "these" else ""
        words, how = _ERROR[info["adjust"]]
        error = words.format(percent(info["alpha"]), how)
        raw = "" if info["adjust"] == "none" else ", not adjusted: all have to be shown"
        lines = [f"Claim: over {whom}{many}, the rate of hits is {sign} {tau}; {error}."]
        for model, part in self.table.groupby("model", sort=False):
            base = part["base_rate"].iloc[0]
            lines.append(f"{model}" + ("" if math.isnan(base) else f", base rate {percent(round(base, 4))}") + ":")
            lines += ["  " + self._sentence(row) for row in part.itertuples()]
            if len(part) > 1:
                whole = self.every.loc[self.every["model"] == model].iloc[0]
                yes = "shown" if whole["shown"] else "not shown"
                lines.append(f"  Under every one of these {len(part)}: {sign} {tau} is {yes} ({_p_is(whole['p_value'])}{raw}).")
        if not info["complete"]:
            lines.append("The run is incomplete: draws that were planned and not answered count as unresolved.")
        if int(self.table["unresolved"].sum()):
            lines.append(
                "Unresolved answers are counted against the claim: each verdict holds however they would have turned out. "
                "Rates among those resolved leave them out; intervals and p-values do not."
            )
        if not bool(self.table["exact"].all()):
            lines.append("The clustered method is approximate: its error can exceed alpha a little.")
        if info["sequential"]:
            lines.append("Draws were looked at while they came; p-values and intervals allow for it.")
            family = int(info["sequential"].get("family") or 0)
            if family and max(self.every["interactions"]) > family:
                lines.append(f"The rule stopped for a family of {family} tests, and more are adjusted here: claims that stopped a run may not be shown.")
        lines += [f"{remark[0].upper()}{remark[1:]}." for remark in info["remarks"]]
        if (self.table["method"] == "census").any():
            lines.append("A census: every prompt was asked once, so rates over these prompts are known if the model repeats its answers.")
        lines.append(
            "The judge is taken as it is: a hit is what it calls a hit."
            if info["labelled"] is None
            else "Rates are corrected for the errors of the judge, as far as the labelled answers show them."
        )
        return in_lines(lines)

    def _sentence(self, row: Any) -> str:
        info = self.info
        shown = (
            f"{row.verdict} {percent(info['threshold'])}"
            if row.verdict != "inconclusive"
            else f"not shown to be {info['claim']} {percent(info['threshold'])}"
        )
        counted = f"{row.hits:,} of {row.n:,} hit"
        if row.unresolved:
            counted = f"{row.hits:,} of {row.n - row.unresolved:,} resolved hit ({row.unresolved:,} of {row.n:,} unresolved)"
        among = " among those resolved"
        if math.isnan(row.rate):
            rate = "no rate"
        else:
            rate = percent(round(row.rate, 4)) + (among if row.unresolved else "")
            if info["labelled"] is not None:
                rate = f"corrected for the judge {rate}"
            elif abs(row.rate * (row.n - row.unresolved) - row.hits) > 1e-6:  # prompts that were drawn more often count no more
                rate = f"mean over prompts {rate}"
        moved = (
            ""
            if math.isnan(row.delta)
            else f", {_points(row.delta)} from base{among if row.delta_over == 'resolved answers' else ''} "
            f"({_points(row.delta_low)} to {_points(row.delta_high)})"
        )
        ends = f"between {percent(round(row.low, 4))} and {percent(round(row.high, 4))}"
        p = ("" if info["adjust"] == "none" else "adjusted ") + _p_is(row.p_adjusted)
        return f"{row.interaction}: {shown} ({p}). {counted}: {rate}, {ends}{moved}; {row.method}."

    @property
    def footnote(self) -> str:
        """What the mark in the paper's table means; empty where nothing is marked."""
        marked = (self.table[["base_rate_over", "delta_over"]] == "resolved answers").any(axis=None)
        return f"{_MARK} among resolved answers; p-values count the unresolved ones against the claim." if marked else ""

    def wide(self) -> pd.DataFrame:
        """The paper's table: a row a model; its base rate, and for each interaction the difference and the adjusted p-value."""
        rows = []
        words = list(dict.fromkeys(self.table["interaction"]))
        for model, part in self.table.groupby("model", sort=False):
            found = part.set_index("interaction")
            base = part["base_rate"].iloc[0]
            row = {"model": model, "base rate": "–" if math.isnan(base) else f"{100 * base:.1f} %{_mark(part['base_rate_over'].iloc[0])}"}
            for word in words:
                there = word in found.index
                if word != self.info["base"]:
                    row[f"Δ {word}"] = _points(found.loc[word, "delta"]) + _mark(found.loc[word, "delta_over"]) if there else "–"
                row[f"{self._p_word} {word}"] = _p(found.loc[word, "p_adjusted"]) if there else "–"
            rows.append(row)
        return pd.DataFrame(rows)

    @property
    def _p_word(self) -> str:
        return "p" if self.info["adjust"] == "none" else "adjusted p"

    def to_markdown(self) -> str:
        """The paper's table in Markdown."""
        wide = self.wide()
        head = "| " + " | ".join(_cell(name) for name in wide.columns) + " |\n|" + "---|" * len(wide.columns) + "\n"
        note = f"\n{_cell(self.footnote)}\n" if self.footnote else ""
        return head + "".join("| " + " | ".join(_cell(value) for value in row) + " |\n" for row in wide.itertuples(index=False)) + note

    def to_latex(self) -> str:
        """The paper's table in LaTeX (with booktabs); p-values of claims that are not shown are in italics."""
        words = list(dict.fromkeys(self.table["interaction"]))
        sign = "<" if self.info["claim"] == "below" else ">"
        tau = f"{100 * self.info['threshold']:.1f}\\%"
        p_word = self._p_word.removesuffix("p") + "$p$"
        lines = [f"\\begin{{tabular}}{{l{'c' * (1 + 2 * len(words))}}}", "\\toprule"]
        lines.append(" & " + "".join(f" & \\multicolumn{{2}}{{c}}{{{latex(word)}}}" for word in words) + " \\\\")
        lines.append("".join(f"\\cmidrule(lr){{{3 + 2 * i}-{4 + 2 * i}}}" for i in range(len(words))))
        lines.append("Model & Base rate" + f" & $\\Delta$ & {p_word} (${sign}{tau}$)" * len(words) + " \\\\")
        lines.append("\\midrule")
        for model, part in self.table.groupby("model", sort=False):
            found = part.set_index("interaction")
            base = part["base_rate"].iloc[0]
            row = f"{latex(str(model))} & " + ("--" if math.isnan(base) else f"{100 * base:.1f}\\%{_tex_mark(part['base_rate_over'].iloc[0])}")
            for word in words:
                if word not in found.index:
                    row += " & -- & --"
                    continue
                at = found.loc[word]
                p = f"${_p(at['p_adjusted']).replace(' ', '')}$"
                row += f" & {latex(_points(at['delta']))}{_tex_mark(at['delta_over'])} & " + (
                    p if at["verdict"] != "inconclusive" else f"\\textit{{{p}}}"
                )
            lines.append(row + " \\\\")
        lines.append("\\bottomrule")
        if self.footnote:
            note = latex(self.footnote.removeprefix(_MARK).lstrip())
            lines.append(f"\\multicolumn{{{2 + 2 * len(words)}}}{{l}}{{\\footnotesize $^{{\\dagger}}$ {note}}} \\\\")
        return "\n".join([*lines, "\\end{tabular}"]) + "\n"

    def plot(self) -> Figure:
        """A forest plot: each rate with its interval, the base rate and the threshold."""
        from budge.report.llm import forest

        return forest(self)

    def to_dict(self) -> dict[str, Any]:
        """The record: how the tests were made, one row a model and interaction, one row a model."""
        return {
            "info": plain(dict(self.info)), "table": plain(_records(self.table)), "every": plain(_records(self.every)),
        }  # fmt: skip

    def _repr_html_(self) -> str:
        from budge.report.notebook import show_html

        return show_html(str(self), table=self.table, figure=self.plot)


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): plain(value) for key, value in row.items()} for row in table.to_dict("records")]


def _mark(share: str) -> str:
    return _MARK if share == "resolved answers" else ""


def _tex_mark(share: str) -> str:
    return r"$^{\dagger}$" if _mark(share) else ""


def _points(value: float) -> str:
    return "–" if math.isnan(value) else f"{100 * value:+.1f} p.p.".replace("-", "−")


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _p_is(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def _cell(value: object) -> str:
    return printable(str(value)).replace("|", "\\|").replace("\n", " ")
