"""The same tests for each category or each prompt: at once where counts say all, one by one otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from budge.llm.answers import Answers
from budge.llm.claims.cells import row_of
from budge.llm.claims.correction import Labelled
from budge.llm.claims.evidence import Evidence
from budge.stats import lower_bound, p_value, unresolved_interval, upper_bound

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
    """One row a model, interaction and category or prompt, not yet adjusted. `at_once` is a matter of speed alone."""
    wanted = Answers(answers.table[answers.table["interaction"].isin(list(tested))], answers.info)
    if at_once and rule is None and labelled is None and _counts_say_all(wanted, by, design, way):
        return _all(wanted, by, design, way)
    looked = None if rule is None else {"kind": "anytime-valid"}
    rows = []
    for (model, word, name), part in wanted.table.groupby(["model", "interaction", by], sort=False):
        # Draws of one prompt are alike, whatever the design, and there is no population of it.
        one = {**design, "over": "these", "method": "auto" if rule is None else "anytime"} if by == "prompt" else design
        seen = Evidence.of(part, "joint" if by == "prompt" else way, looked)
        rows.append({"model": model, "interaction": word, by: name, **row_of(seen, one, labelled)})
    return pd.DataFrame(rows)


def _counts_say_all(answers: Answers, by: str, design: Mapping[str, Any], way: str) -> bool:
    """Whether the test is the binomial one of all hits in all draws."""
    if by == "prompt":
        return bool(design["method"] != "anytime")
    if design["over"] != "these" or design["method"] not in ("auto", "pooled"):
        return False
    sizes = answers.table.groupby(["model", "interaction", by, "prompt"]).size()
    return way == "joint" or bool((sizes.groupby(["model", "interaction", by]).nunique() == 1).all())


def _all(answers: Answers, by: str, design: Mapping[str, Any], way: str) -> pd.DataFrame:
    table = answers.counts((by,))
    hits, n, lost = (table[name].to_numpy() for name in ("hits", "n", "unresolved"))
    claim, alpha = design["claim"], design["alpha"]
    against = hits + lost if claim == "below" else hits
    ends = unresolved_interval(hits, n, lost, alpha)
    resolved = n - lost
    return table.assign(
        rate=np.where(resolved > 0, hits / np.maximum(resolved, 1), np.nan), low=ends.low, high=ends.high,
        bound=upper_bound(against, n, alpha) if claim == "below" else lower_bound(against, n, alpha),
        p_value=p_value(against, n, design["threshold"], claim),
        method=(name := "exact binomial" if by == "prompt" or way == "joint" else "exact binomial, pooled"), interval_method=name, exact=True,
    )  # fmt: skip
