"""The same tests for each category or each prompt: at once where all draws of one are alike, one by one otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from budge.llm.answers import Answers
from budge.llm.claims.cells import row_of
from budge.llm.claims.correction import Labelled
from budge.llm.claims.evidence import Evidence, claims_of, prompts_of

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
    alike = design["method"] != "anytime" and (by == "prompt" or (way == "joint" and design["over"] == "these"))
    if at_once and alike and rule is None and labelled is None and answers.info.get("complete", True):
        return _all(wanted, by, design)
    looked = None if rule is None else {"kind": "anytime-valid"}
    rows = []
    for (model, word), cell in wanted.table.groupby(["model", "interaction"], sort=False):
        whole = Evidence.of(cell, way, looked)
        for name, part in cell.groupby(by, sort=False):
            # Draws of one prompt are alike, whatever the design, and there is no population of it.
            one = {**design, "over": "these", "method": "auto" if rule is None else "anytime"} if by == "prompt" else design
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


def _all(answers: Answers, by: str, design: Mapping[str, Any]) -> pd.DataFrame:
    table = answers.counts((by,))
    hits, n, lost = (table[name].to_numpy() for name in ("hits", "n", "unresolved"))
    seen = claims_of(hits, n, lost, threshold=design["threshold"], alpha=design["alpha"])
    below = design["claim"] == "below"
    return table.assign(
        rate=np.where(n > lost, hits / np.maximum(n - lost, 1), np.nan), low=seen.low, high=seen.high, bound=seen.upper if below else seen.lower,
        p_value=seen.p_below if below else seen.p_above, method="exact binomial", interval_method="exact binomial", exact=True,
    )  # fmt: skip
