"""Everybody, or a stated subsample: verdicts, mean responsiveness, its distribution, and what an edit changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from budge.audit.result import Audit
from budge.audit.tally import mean_rho

__all__ = ["everybody_record", "first_people"]

STEPS = 240  #: points of a drawn distribution


def first_people(people: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Return the order in which people are taken into subsamples: random, and always the same."""
    return np.random.default_rng([20_260_101, seed]).permutation(people)


def everybody_record(found: Audit, before: Audit | None, *, whole: bool, of: int) -> dict[str, Any]:
    """Return the summary for each model, beside that of the declared interaction model for the same people."""
    tables = {name: found.of_model(name) for name in found.models}
    olds = {name: before.of_model(name) if before is not None else None for name in found.models}
    people = len(tables[found.models[0]]) if len(tables) == 1 else found.table.index.nunique()
    return {
        "kind": "everybody",
        "whole": whole,
        "people": people,
        "of": of,
        "models": {name: _model(found, tables[name], olds[name], name) for name in found.models},
        "pairs": [_pair(tables, a, b) for a, b in combinations(found.models[:4], 2)],
    }


def _model(found: Audit, rows: pd.DataFrame, old: pd.DataFrame | None, name: str) -> dict[str, Any]:
    summary = found.summary(name)
    record = {**summary.to_dict(), "sentences": summary.sentences(), "cdf": _cdf(rows), "before": None}
    if old is not None:
        if len(rows) != len(old):
            old = old.loc[old.index.isin(rows.index)]
        was = old["verdict"].reindex(rows.index)
        pairs = zip(was, rows["verdict"])
        changed = Counter((str(a), str(b)) for a, b in pairs if isinstance(a, str) and a != b)
        record["before"] = {
            "verdicts": {str(k): int(v) for k, v in old["verdict"].value_counts().items()},
            "mean_rho": mean_rho(*(old.loc[old["method"] != "none", name] for name in ("rho", "unresolved"))),
            "cdf": _cdf(old),
            "changed": [{"from": a, "to": b, "people": k} for (a, b), k in sorted(changed.items())],
        }
    return record


def _cdf(rows: pd.DataFrame) -> list[list[float]]:
    """Return steps (ρ, share of people up to it), thinned to what a picture can show."""
    rho = np.sort(rows["rho"].dropna().to_numpy(dtype=float))
    if not len(rho):
        return []
    values, counts = np.unique(rho, return_counts=True)
    shares = np.cumsum(counts) / len(rho)
    if len(values) > STEPS:
        kept = np.unique(np.linspace(0, len(values) - 1, STEPS).astype(int))
        values, shares = values[kept], shares[kept]
    return [[float(v), float(s)] for v, s in zip(values, shares)]


def _pair(tables: Mapping[str, pd.DataFrame], a: str, b: str) -> dict[str, Any]:
    """Return two models on the people of both: who gets which verdict from each, and how far apart their ρ are."""
    one, two = tables[a], tables[b]
    both = one[["verdict", "rho"]].add_suffix("_a").join(two[["verdict", "rho"]].add_suffix("_b"), how="inner")
    counts: Mapping[Any, int] = both.groupby(["verdict_a", "verdict_b"], observed=True).size().to_dict()
    gap = (both["rho_b"] - both["rho_a"]).dropna()
    return {
        "a": a,
        "b": b,
        "people": len(both),
        "counts": [{"a": str(x), "b": str(y), "people": int(k)} for (x, y), k in counts.items()],
        "mean_gap": float(gap.mean()) if len(gap) else None,
        "largest_gap": float(gap.abs().max()) if len(gap) else None,
    }
