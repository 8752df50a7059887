"""One model under one interaction: its rate, how far that is from the base, and the same for each category or prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from budge.llm.answers import Answers
from budge.llm.claims.contrasts import Contrast, paired
from budge.llm.claims.evidence import ANY_STOP, Evidence, Rate, columns_of, prompts_of
from budge.llm.claims.labels import Labelled
from budge.stats import Counts

__all__ = ["against_base", "apart", "found_rate", "row_of", "shifted", "split_rows"]


def against_base(
    part: pd.DataFrame,
    seen: Evidence,
    reference: pd.DataFrame | None,
    before: Evidence | None,
    rate: float | None,
    design: Mapping[str, Any],
    labelled: Labelled | None,
    labelled_base: Labelled | None,
) -> Contrast | None:
    """The difference from the base: over pairs where every draw has its partner, from two intervals otherwise."""
    if reference is None or before is None:
        return shifted(seen, rate, design, labelled)
    if labelled is None and design["method"] != "anytime" and seen.n == len(part):
        kept = {key: design[key] for key in ("over", "alpha", "method")}
        found = paired(part, reference, scheme=seen.scheme, whole=True, **kept)
        if found is not None:
            return found
    return apart(seen, before, design, labelled, labelled_base)


def apart(
    first: Evidence, second: Evidence, design: Mapping[str, Any], labelled: Labelled | None = None, labelled2: Labelled | None = None
) -> Contrast:
    """The difference from two intervals that hold together, whatever the two samples have in common."""
    half = {**design, "threshold": None, "alpha": design["alpha"] / 2}
    one, two = found_rate(first, half, labelled), found_rate(second, half, labelled2)
    estimate = None if one.rate is None or two.rate is None else one.rate - two.rate
    name = "two intervals" if labelled is None else "two intervals, corrected for the judge"
    return Contrast(estimate, one.low - two.high, one.high - two.low, None, None, name)


def shifted(seen: Evidence, rate: float | None, design: Mapping[str, Any], labelled: Labelled | None) -> Contrast | None:
    """The difference from a base rate that is taken as known."""
    if rate is None:
        return None
    ends = found_rate(seen, {**design, "threshold": None}, labelled)
    at = None if ends.rate is None else ends.rate - rate
    return Contrast(at, ends.low - rate, ends.high - rate, None, None, "base rate taken as known")


def found_rate(seen: Evidence, design: Mapping[str, Any], labelled: Labelled | None) -> Rate:
    """The rate as the judge sees it, or as people would."""
    return seen.claim(**{key: design[key] for key in ("over", "threshold", "claim", "alpha", "method")}, labelled=labelled)


def row_of(seen: Evidence, design: Mapping[str, Any], labelled: Labelled | None) -> dict[str, Any]:
    """Counts, rate and p-value, as a row of the table."""
    found = found_rate(seen, design, labelled)
    n, hits, lost = seen.tested(design["over"], design["method"])
    return {
        "n": n, "hits": hits, "unresolved": lost, "rate": found.rate, "low": found.low, "high": found.high, "bound": found.bound,
        "p_value": found.p_value, "method": found.method, "interval_method": found.method, "exact": found.exact,
    }  # fmt: skip


def split_rows(
    answers: Answers,
    tested: Sequence[str],
    by: str,
    design: Mapping[str, Any],
    way: str,
    rule: Mapping[str, Any] | None,
    labels: Mapping[str, Labelled] | None,
    *,
    at_once: bool = True,
) -> pd.DataFrame:
    """Return one row per model, interaction and category or prompt, not yet adjusted. `at_once` is a matter of speed alone."""
    wanted = Answers(answers.table[answers.table["interaction"].isin(list(tested))], answers.info)
    alike = way != "census" and (by == "prompt" or (way == "joint" and design["over"] == "these"))
    if at_once and alike and answers.info.get("complete", True):
        return _all(wanted, by, design, labels)
    looked = None if rule is None else {"kind": "anytime-valid"}
    rows = []
    for (model, word), cell in wanted.table.groupby(["model", "interaction"], sort=False):
        whole = Evidence.of(cell, way, looked)
        for name, part in cell.groupby(by, sort=False):
            # Draws of one prompt are alike, whatever the design, and there is no population of it.
            how = "anytime" if design["method"] == "anytime" else "auto"
            one = {**design, "over": "these", "method": how} if by == "prompt" else design
            seen = _planned(Evidence.of(part, "joint" if by == "prompt" and way != "census" else way, looked), whole, by, answers.info)
            rows.append({"model": model, "interaction": word, by: name, **row_of(seen, one, None if labels is None else labels[str(word)])})
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


def _all(answers: Answers, by: str, design: Mapping[str, Any], labels: Mapping[str, Labelled] | None) -> pd.DataFrame:
    table = answers.counts((by,))
    rule = ANY_STOP if design["method"] == "anytime" else None
    asked = {key: design[key] for key in ("claim", "threshold", "alpha")}
    parts = []
    for word, part in table.groupby("interaction", sort=False) if labels is not None else [("", table)]:
        counts = Counts.of(part["hits"], part["n"], part["unresolved"], law="sample" if rule is None else "sequential")
        parts.append(part.assign(**columns_of(counts, **asked, rule=rule, labelled=None if labels is None else labels[str(word)])))
    name = ("exact binomial" if rule is None else rule.kind) + ("" if labels is None else ", corrected for the judge")
    return pd.concat(parts).sort_index().assign(method=name, interval_method=name, exact=True)
