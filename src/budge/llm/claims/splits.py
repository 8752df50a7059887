"""The same tests for each category or each prompt: at once where all draws of one are alike, one by one otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from budge.llm.answers import Answers
from budge.llm.claims.cells import row_of
from budge.llm.claims.evidence import ANY_STOP, Evidence, columns_of, prompts_of
from budge.llm.claims.labels import Labelled
from budge.stats import Counts

__all__ = ["split_rows"]


def split_rows(
    answers: Answers,
    tested: Sequence[str],
    by: str,
    design: Mapping[str, Any],
    way: str,
    rule: Mapping[str, Any] | None,
    labelled: Labelled | None,
    *,
    at_once: bool = True,
) -> pd.DataFrame:
    """Return one row per model, interaction and category or prompt, not yet adjusted. `at_once` is a matter of speed alone."""
    wanted = Answers(answers.table[answers.table["interaction"].isin(list(tested))], answers.info)
    alike = by == "prompt" or (way == "joint" and design["over"] == "these")
    if at_once and alike and answers.info.get("complete", True):
        return _all(wanted, by, design, labelled)
    looked = None if rule is None else {"kind": "anytime-valid"}
    rows = []
    for (model, word), cell in wanted.table.groupby(["model", "interaction"], sort=False):
        whole = Evidence.of(cell, way, looked)
        for name, part in cell.groupby(by, sort=False):
            # Draws of one prompt are alike, whatever the design, and there is no population of it.
            how = "anytime" if design["method"] == "anytime" else "auto"
            one = {**design, "over": "these", "method": how} if by == "prompt" else design
            seen = _planned(Evidence.of(part, "joint" if by == "prompt" else way, looked), whole, by, answers.info)
            rows.append({"model": model, "interaction": word, by: name, **row_of(seen, one, labelled)})
    return pd.DataFrame(rows)


def _planned(seen: Evidence, whole: Evidence, by: str, info: Mapping[str, Any]) -> Evidence:
    """Return a part with the unanswered draws of an incomplete run: each may belong to it, unless its prompt is known to be another."""
    if info.get("complete", True):
        return seen
    each = info.get("per_prompt")
    if not isinstance(each, int):
        return seen.without(whole.planned(info).n - whole.n)
    unseen = 0 if by == "prompt" else (prompts_of(info) or whole.prompts) - whole.prompts
    return seen.without(unseen, each)


def _all(answers: Answers, by: str, design: Mapping[str, Any], labelled: Labelled | None) -> pd.DataFrame:
    table = answers.counts((by,))
    rule = ANY_STOP if design["method"] == "anytime" else None
    counts = Counts.of(table["hits"], table["n"], table["unresolved"], law="sample" if rule is None else "sequential")
    asked = {key: design[key] for key in ("claim", "threshold", "alpha")}
    name = ("exact binomial" if rule is None else rule.kind) + ("" if labelled is None else ", corrected for the judge")
    return table.assign(**columns_of(counts, **asked, rule=rule, labelled=labelled), method=name, interval_method=name, exact=True)
