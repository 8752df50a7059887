"""Everyone, or a stated subsample: how many are in each category, what an edit changed, models and runs beside each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from budge.audit.result import Audit
from budge.audit.tally import mean_rho
from budge.report.answer import answer, claim_words
from budge.report.compared import short_words
from budge.report.who import groups_of
from budge.web.people import Known, counts_of
from budge.web.question import Question
from budge.web.records import plain
from budge.wording import Wording, percent

__all__ = ["everyone_record", "first_people", "groups_record", "runs_record", "strip_record"]

SVG = "http://www.w3.org/2000/svg"
MOST_CHANGED = 200  #: people who are listed because two runs say something else of them


def first_people(people: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Return the order in which people are taken into subsamples: random, and always the same."""
    return np.random.default_rng([20_260_101, seed]).permutation(people)


def everyone_record(found: Audit, before: Audit | None, nouns: Wording, *, of: int = 0) -> dict[str, Any]:
    """Return the summary for each model, beside that of the declared interaction model for the same people; `of`: how many there are, of a subsample."""
    asked = len(set().union(*(rows.place.tolist() for rows in found.rows.values())))
    part = f"of {asked:,} people drawn at random from {of:,}" if of else ""
    return {"kind": "everyone", "whole": not of, "models": {name: _model(found, before, name, nouns, part) for name in found.models}}


def _model(found: Audit, before: Audit | None, name: str, nouns: Wording, part: str) -> dict[str, Any]:
    summary, rows = found.summary(name), found.rows[name]
    now = Known.of(found, name)
    exact = bool((rows.counts.is_law("exact") | rows.counts.is_law("proved")).all())
    under, known = f" under {name}" if len(found.models) > 1 else "", ", each known exactly" if exact else ""
    people = len(rows.place)
    whole = f"of {people:,} {nouns.people(people)}{under}{known}" if people else f"nobody was asked about{under}"
    record: dict[str, Any] = {
        "counts": counts_of(now, now.at >= 0), "mean_rho": summary.mean_rho, "sentences": summary.sentences(nouns), "said": part or whole, "before": None,
    }  # fmt: skip
    if before is not None:
        was = Known.of(before, name, len(now.at))
        both = np.flatnonzero((now.at >= 0) & (was.at[: len(now.at)] >= 0))
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
    strips = {medium: _alone(svg) for medium, svg in made.strips.items() if medium != "screen"}
    return {"headline": made.headline, "lede": made.lede, "strips": strips, "caption": made.caption}


def groups_record(found: Audit, column: Any, model: str, nouns: Wording) -> dict[str, Any]:
    """Return the groups of a column for one model as in the report: the finding, the figure, and a table of them."""
    made = groups_of(found, str(column), model, found.design.alpha, nouns)
    claim = found.design.claim
    rows = [[row["short"], row["people"], row[claim]["count"], percent(row[claim]["verdicts"]), row["no_way"], row["mean_rho"]] for row in made.rows]
    strips = {"": _alone(made.figures["phone"])} if made.figures else {}
    return {"heading": made.heading, "strips": strips, "caption": made.caption, "claim": claim_words(found.design), "rows": rows}


def _alone(figure: str) -> str:
    """Return a figure of the report as SVG by itself."""
    return figure.replace("<svg ", f'<svg xmlns="{SVG}" ', 1)


def runs_record(one: Question, two: Question, model: str, other: str) -> dict[str, Any]:
    """Return two saved runs beside each other: what differs between them, and who changed."""
    first, second = one.saved, two.saved
    assert first is not None
    assert second is not None
    words = short_words("above" if "above" in (first.design.claim, second.design.claim) else "below")
    a, b = (_by_label(run, name, words) for run, name in ((first, model), (second, other)))
    both = [label for label in a if label in b]
    was, now = Counter(a[label][0] for label in both), Counter(b[label][0] for label in both)
    moved = [label for label in both if a[label] != b[label]]
    changed = sum(a[label][0] != b[label][0] for label in both)  # of others ρ alone differs, which draws of another seed are enough for
    moved.sort(key=lambda label: (a[label][0] == b[label][0], -abs((b[label][1] or 0.0) - (a[label][1] or 0.0)), str(label)))
    return {
        "both": len(both), "only": [len(a) - len(both), len(b) - len(both)], "changed": changed, "moved": len(moved) - changed,
        "differs": _differences(first, second, model, other),
        "counts": [{"name": name, "was": was[name], "is": now[name]} for name in words.values() if was[name] or now[name]],
        "rows": [{"label": str(label), "was": a[label][0], "is": b[label][0], "rho": [a[label][1], b[label][1]]} for label in moved[:MOST_CHANGED]],
    }  # fmt: skip


def _by_label(run: Audit, model: str, words: Mapping[str, str]) -> dict[Any, tuple[str, float | None]]:
    known, rows = Known.of(run, model), run.rows[model]
    return {label: (words[known.category[place]], plain(known.rho[place])) for place, label in zip(rows.place, rows.index)}


def _differences(first: Audit, second: Audit, model: str, other: str) -> str:
    """Return what the runs do not share, in a sentence; what is the same is not told."""
    keys = (("interaction model", "spec_digest"), ("table of people", "data_digest"))
    said = [f"the {what} differs" for what, key in keys if first.info[key] != second.info[key]]
    digests: list[Mapping[str, Any]] = [run.info["model_digests"] for run in (first, second)]
    if digests[0].get(model) != digests[1].get(other):
        said.append("the model differs")
    for name, word in (("threshold", "threshold"), ("alpha", "alpha"), ("n", "draws"), ("seed", "seed"), ("claim", "claim"), ("method", "method")):
        values = [getattr(run.design, name) for run in (first, second)]
        if values[0] != values[1]:
            said.append(f"{word} {values[0]} and {values[1]}")
    if first.info["target"] != second.info["target"]:
        said.append(f"the target is that the output {first.info['target']}, and {second.info['target']}")
    return f"Between them: {'; '.join(said)}." if said else "Spec, people, model and design are the same."
