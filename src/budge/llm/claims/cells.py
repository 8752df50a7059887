"""One model under one interaction: its rate, and how far that is from the base."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from budge.llm.claims.contrasts import Contrast, paired
from budge.llm.claims.evidence import Evidence, Rate
from budge.llm.claims.labels import Labelled

__all__ = ["against_base", "apart", "found_rate", "row_of", "shifted"]


def against_base(
    part: pd.DataFrame,
    seen: Evidence,
    reference: pd.DataFrame | None,
    before: Evidence | None,
    rate: float | None,
    design: Mapping[str, Any],
    labelled: Labelled | None,
) -> Contrast | None:
    """The difference from the base: over pairs where every draw has its partner, from two intervals otherwise."""
    if reference is None or before is None:
        return shifted(seen, rate, design, labelled)
    if labelled is None and design["method"] != "anytime" and seen.n == len(part):
        kept = {key: design[key] for key in ("over", "alpha", "method")}
        found = paired(part, reference, scheme=seen.scheme, whole=True, **kept)
        if found is not None:
            return found
    return apart(seen, before, design, labelled)


def apart(first: Evidence, second: Evidence, design: Mapping[str, Any], labelled: Labelled | None) -> Contrast:
    """The difference from two intervals that hold together, whatever the two samples have in common."""
    half = {**design, "threshold": None, "alpha": design["alpha"] / 2}
    one, two = found_rate(first, half, labelled), found_rate(second, half, labelled)
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
