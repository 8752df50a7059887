"""Everyone, or a stated subsample: how many are in each category, what an edit changed, models and runs beside each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from budge.audit.result import Audit
from budge.audit.tally import mean_rho
from budge.report.answer import answer
from budge.report.compared import compared
from budge.report.figures.strip import CATEGORIES
from budge.web.people import Known, counts_of
from budge.web.question import Question
from budge.web.records import plain
from budge.wording import Wording

__all__ = ["everyone_record", "first_people", "models_record", "runs_record", "strip_record"]

SVG = "http://www.w3.org/2000/svg"
MOST_CHANGED = 200  #: people who are listed because two runs say something else of them


def first_people(people: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Return the order in which people are taken into subsamples: random, and always the same."""
    return np.random.default_rng([20_260_101, seed]).permutation(people)


def everyone_record(found: Audit, before: Audit | None, *, whole: bool, of: int) -> dict[str, Any]:
    """Return the summary for each model, beside that of the declared interaction model for the same people."""
    return {
        "kind": "everyone", "whole": whole, "people": len(set().union(*(rows.place.tolist() for rows in found.rows.values()))), "of": of,
        "models": {name: _model(found, before, name) for name in found.models},
    }  # fmt: skip


def _model(found: Audit, before: Audit | None, name: str) -> dict[str, Any]:
    summary, rows = found.summary(name), found.rows[name]
    size = int(rows.place.max(initial=-1)) + 1
    now = Known.of(found, name, size)
    record: dict[str, Any] = {
        "people": len(rows.place), "counts": counts_of(now, now.at >= 0), "mean_rho": summary.mean_rho, "sentences": summary.sentences(),
        "verdicts": dict(summary.verdicts), "exact": bool((rows.counts.is_law("exact") | rows.counts.is_law("proved")).all()), "before": None,
    }  # fmt: skip
    if before is not None:
        was = Known.of(before, name, max(size, int(before.rows[name].place.max(initial=-1)) + 1))
        both = np.flatnonzero((now.at >= 0) & (was.at[:size] >= 0))
        old, table = was.at[both], before.of_model(name)
        judged = table.iloc[old]
        judged = judged[judged["method"] != "none"]
        moved = Counter((str(a), str(b)) for a, b in zip(was.category[both], now.category[both]) if a != b)
        record["before"] = {
            "counts": {str(k): int(v) for k, v in Counter(was.category[both].tolist()).items()}, "mean_rho": mean_rho(judged["rho"], judged["unresolved"]),
            "changed": [{"from": a, "to": b, "people": k} for (a, b), k in sorted(moved.items())],
        }  # fmt: skip
    return record


def strip_record(found: Audit, model: str, nouns: Wording) -> dict[str, Any]:
    """Return the first screen of the report for one model: its sentence, and everyone as marks, drawn for two widths that the page has room for."""
    made = answer(found, model, nouns)
    strips = {medium: made.strips.get(medium, "").replace("<svg ", f'<svg xmlns="{SVG}" ', 1) for medium in ("paper", "phone")}
    return {"headline": made.headline, "lede": made.lede, "strips": strips, "caption": made.caption}


def models_record(found: Audit, nouns: Wording) -> dict[str, Any]:
    """Return several models beside each other, each on its own people, and every two on the people whom both judge."""
    return {"found": compared(found, nouns)}


def runs_record(one: Question, two: Question, model: str, other: str) -> dict[str, Any]:
    """Return two saved runs beside each other: what differs between them, and who changed."""
    first, second = one.saved, two.saved
    assert first is not None
    assert second is not None
    a, b = (_by_label(run, name) for run, name in ((first, model), (second, other)))
    both = [label for label in a if label in b]
    counts = Counter((a[label][0], b[label][0]) for label in both)
    was, now = Counter(a[label][0] for label in both), Counter(b[label][0] for label in both)
    moved = [label for label in both if a[label] != b[label]]
    moved.sort(key=lambda label: (-abs((b[label][1] or 0.0) - (a[label][1] or 0.0)), str(label)))
    return {
        "both": len(both), "only": [len(a) - len(both), len(b) - len(both)], "changed": len(moved), "differs": _differences(first, second, model, other),
        "counts": [{"name": name, "was": was[name], "is": now[name]} for name in (*CATEGORIES, "odd") if was[name] or now[name]],
        "moved": [{"from": x, "to": y, "people": k} for (x, y), k in sorted(counts.items()) if x != y],
        "rows": [{"label": str(label), "was": a[label][0], "is": b[label][0], "rho": [a[label][1], b[label][1]]} for label in moved[:MOST_CHANGED]],
    }  # fmt: skip


def _by_label(run: Audit, model: str) -> dict[Any, tuple[str, float | None]]:
    size = int(run.rows[model].place.max(initial=-1)) + 1
    known = Known.of(run, model, size)
    return {label: (str(known.category[place]), plain(known.rho[place])) for place, label in known.labels.items()}


def _differences(first: Audit, second: Audit, model: str, other: str) -> list[str]:
    """Return what the runs do not share, in words; what is the same is not told."""
    keys = (("interaction model", "spec_digest"), ("table of people", "data_digest"))
    said = [f"the {what} differs" for what, key in keys if first.info[key] != second.info[key]]
    digests: list[Mapping[str, Any]] = [run.info["model_digests"] for run in (first, second)]
    if digests[0].get(model) != digests[1].get(other):
        said.append("the model differs")
    designs = (first.design, second.design)
    for name, words in (("threshold", "threshold"), ("alpha", "alpha"), ("seed", "seed"), ("claim", "claim")):
        values = [getattr(design, name) for design in designs]
        if values[0] != values[1]:
            said.append(f"{words} {values[0]} and {values[1]}")
    if first.info["target"] != second.info["target"]:
        said.append(f"the target is that the output {first.info['target']}, and {second.info['target']}")
    return said
