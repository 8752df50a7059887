"""Which rule holds people back: relaxations ranked by how many people would newly be able to reach the target, and what the new ways need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from budge.audit.result import Audit
from budge.audit.sources import TableSource
from budge.errors import BudgeError, printable
from budge.interaction import InteractionModel
from budge.progress import Progress, watched
from budge.report.answer import harmed_of, marks_of
from budge.report.figures.strip import CATEGORIES
from budge.report.words import count
from budge.wording import Wording

if TYPE_CHECKING:
    from budge.stress import Ablation
    from budge.stress.needs import Need

__all__ = ["MOST_POINTS", "ablated", "why"]

MOST_ROWS, FALLS, NEEDS = 10, 2, 2  # rows by people, those with the largest fall of the mean, statements per row
NOISE = 1e-12  # of sums of floats: means that differ by less are equal
MOST_POINTS = 5_000_000  # points that a report asks about, as far as they can be foreseen
HOW_TO = "With the model at hand it is computed: audit.to_html in the process that ran the audit, or budge report RUN --model … --data …."


def ablated(audit: Audit, model: str, progress: Progress | bool | None = None) -> tuple[Ablation | None, str]:
    """Relax each rule for the people of a model: return the result and what is to be said of it; without a result, why there is none.

    Both are empty where there is no such question: nobody is without a way or harmed, the claim is *above*, or there are no rules to relax.
    """
    from budge.models import Endpoint, PredictionFile
    from budge.stress import default_relaxations
    from budge.stress.ablating import ablate_audit

    marks, context = marks_of(audit, model), audit.context
    stuck = np.isin(marks.category, [CATEGORIES.index(name) for name in ("none", "nohit")])
    if audit.design.claim == "above" or not (harmed_of(audit.tally(model), audit.design) or stuck.any()) or not audit.info.get("measure"):
        return None, ""
    if context is None:
        return None, f"Which rule holds people back is not in this report, since a saved run holds no model. {HOW_TO}"
    if not isinstance(context.source, TableSource) or not isinstance(context.im, InteractionModel):
        return None, ""
    if isinstance(context.predictors[model], Endpoint | PredictionFile):
        remedy = "Make it with budge.ablate and pass it as ablation (budge report --ablation FILE)."
        return None, f"Which rule holds people back is not in this report: the model's answers come from an address or a file. {remedy}"
    judged = np.flatnonzero(~audit.rows[model].counts.is_law("none"))
    chosen, left_out = default_relaxations(context.im, context.source.frame)
    if not chosen:
        return None, ""
    rows, about = _some(audit, model, judged, judged[stuck], len(chosen) + 1)
    try:
        with watched(progress, "people, each rule relaxed") as note:
            found = ablate_audit(audit, model, rows, chosen, left_out, progress=note)
            return found, " ".join(text for text in (about, _anew(audit, model, rows, found)) if text)
    except BudgeError as error:
        return None, f"Which rule holds people back could not be computed: {printable(str(error))}."


def _anew(audit: Audit, model: str, rows: npt.NDArray[np.intp], found: Ablation) -> str:
    """Return what is to be known of people who were drawn anew: their numbers here are not those of the answer."""
    counts = audit.rows[model].counts.take(rows)
    stopped, weighted = counts.is_law("sequential"), counts.is_law("weighted")
    if not (stopped | weighted).any():
        return ""
    why = "stopped early" if stopped.any() else "have weights"
    many = count(int((stopped | weighted).sum()), "person", "people")
    return (
        f"The audit's draws {why} and cannot be compared: for {many}, {found.info['n']:,} points each were drawn anew, without the rule and with it, "
        "so that the number without a hit here can differ from that of the answer."
    )


def _some(audit: Audit, model: str, judged: npt.NDArray[np.intp], stuck: npt.NDArray[np.intp], sets: int) -> tuple[npt.NDArray[np.intp], str]:
    """Return the rows that are asked about, and who that is where it is not all of them: those without a way, a random part of these if they are many."""
    counts = audit.rows[model].counts
    points = np.where(counts.is_law("exact"), 2 * counts.n, audit.design.draws) * sets
    if points[judged].sum() <= MOST_POINTS:
        return judged, ""
    order = np.random.default_rng(audit.design.seed).permutation(stuck if len(stuck) else judged)
    part = np.sort(order[: max(int((np.cumsum(points[order]) <= MOST_POINTS).sum()), 1)])
    whom = "without a way or a hit" if len(stuck) else "who were judged"
    if len(part) == len(order):
        told = f"It is about the {count(len(part), 'person', 'people')} {whom}, since there are many people."
    else:
        told = f"It is about {len(part):,} of the {count(len(order), 'person', 'people')} {whom}, drawn at random, since there are many people."
    if len(stuck) and not counts.take(part).is_law("exact", "proved").all():
        told += " They were chosen for draws without a hit, so that any new draws give them a mean ρ that is a little higher."
    return part, told


def why(audit: Audit, model: str, ablation: Ablation | None, about: str, nouns: Wording) -> dict[str, Any] | None:
    """Return the ranked rules of an ablation; a sentence where there is none; None where there is nothing to say."""
    if ablation is None:
        return {"heading": "Which rule holds people back is not known here.", "missing": about, "rows": []} if about else None
    target = nouns.target(audit.info)
    rows = [{str(key): value for key, value in row.items()} for row in ablation.by_rule.astype(object).to_dict(orient="records")]
    (none, missed), sure = ablation.without, bool(ablation.table["before"].notna().all())  # sure: all others are known to have a way
    falls = sorted((row for row in rows[MOST_ROWS:] if row["gain"] < 0), key=lambda row: row["gain"])[:FALLS]
    needs = {name: [need for need in ablation.needs if need.relaxation == name] for name in ablation.relaxations}
    listed = [_row(row, none + missed, needs[row["relaxation"]], nouns) for row in (*rows[:MOST_ROWS], *falls)]
    return {
        "heading": _heading(rows, none, missed, nouns, target, sure=sure), "missing": "", "rows": listed, "more": len(rows) - len(listed), "about": about,
        "people": ablation.info["people"], "none": none, "missed": missed, "falls": sum(row["move"] == "down" and row["superset"] for row in listed),
        "last": len(falls), "model": model, "drawn": bool(ablation.table["exactness"].isin(("guaranteed", "approximate")).any()),
    }  # fmt: skip


def _row(row: Mapping[str, Any], without: int, needs: Sequence[Need], nouns: Wording) -> dict[str, Any]:
    told = [need for need in needs if need.kind != "some" or need.people > 1 or need.able == 1]  # one person's values state nothing about the others
    digits = 3 if row["before"] < 0.1 else 2  # of a column: all rows have the same mean before, but for those who cannot be compared
    before, after = round(float(row["before"]), digits), round(float(row["after"]), digits)
    known = row["gain"] == row["gain"]  # else answers are missing, or nobody can be compared
    same = before == after or row.get("low", row["gain"]) <= 0 <= row.get("high", row["gain"])  # draws do not tell them apart
    people = int(row["newly_reachable"])
    return {
        "name": _rule(row, nouns), "if": _rule(row, nouns, supposed=True), "relaxation": row["relaxation"],
        "also": "; ".join(row["also"]), "superset": row["superset"], "people": people, "seen": int(row["seen_only_after"]),
        "width": round(100 * (people + row["seen_only_after"]) / without) if without else 0, "needs": [_need(need, nouns) for need in told[:NEEDS]],
        "before": f"{before:.{digits}f}" if known else "", "after": f"{after:.{digits}f}" if known else "–",
        "sign": "" if not known else "=" if abs(row["gain"]) < NOISE else "≈" if same else "▲" if after > before else "▼",
        "move": "flat" if not known or same else "up" if after > before else "down",
    }  # fmt: skip


def _rule(row: Mapping[str, Any], nouns: Wording, *, supposed: bool = False) -> str:
    """Return what is relaxed, in words; `supposed` as they follow an "if".

    Examples
    --------
    >>> _rule({"relaxation": "lift steps of income", "kind": "steps", "rule": "income"}, Wording(feature_labels={"income": "Income"}))
    'Income may change by more in one step'
    """
    rule = nouns.feature(row["rule"])
    told = {
        "constraint": "“{}” does not hold", "immutability": "{} may change", "direction": "{} may go both ways", "steps": "{} may change by more in one step",
    }  # fmt: skip
    if supposed:
        told = {kind: text.replace("{} may", "{} could").replace("does not", "did not") for kind, text in told.items()}
    return told.get(row["kind"], "{}").format(rule if row["kind"] in told else row["relaxation"])


def _need(need: Need, nouns: Wording) -> str:
    """Return a statement about the hits of newly able people, in the direction of the change."""
    whom, drawn = f"{need.people:,} of {need.able:,}", "" if need.listed else ", by the hits that were found"
    names, verb = [nouns.feature(name) for name in need.features], "needs" if need.people == 1 else "need"
    if need.kind in ("higher", "lower"):
        return f"{whom} {verb} a {need.kind} {names[0]}{drawn}"
    assert need.new is not None
    words = nouns.value
    if len(names) > 1 and set(need.new) <= {0, 1}:  # dummies: those that are on
        to = ", ".join(name for name, value in zip(names, need.new) if value) or ", ".join(f"{name} → {words(f, 0)}" for f, name in zip(need.features, names))
    else:
        old = need.old or [None] * len(names)
        to = ", ".join(f"{name} {'' if a is None else f'{words(f, a)} '}→ {words(f, b)}" for f, name, a, b in zip(need.features, names, old, need.new))
    return f"{whom} {verb} {to}{drawn}" if need.kind == "only" else f"{whom} {'has' if need.people == 1 else 'have'} a way with {to}{drawn}"


def _of(some: int, every: int, nouns: Wording) -> str:
    """Return some of so many people in words."""
    if some == every:
        return "the only person" if every == 1 else f"all {every:,} {nouns.people(every)}"
    return f"{some:,} of the {every:,} {nouns.people(every)}"


def _heading(rows: Sequence[Mapping[str, Any]], none: int, missed: int, nouns: Wording, target: str, *, sure: bool) -> str:
    able, seen = (int(rows[0][name]) if rows else 0 for name in ("newly_reachable", "seen_only_after"))
    if able:
        return f"Relaxing one rule would give a way to {_of(able, none, nouns)} without one: {_rule(rows[0], nouns)}."
    if seen:
        return f"Relaxing one rule finds a way to {target} for {_of(seen, missed, nouns)} without a hit: {_rule(rows[0], nouns)}."
    if not none + missed:
        return f"Nobody here is {'' if sure else 'known to be '}without a way to {target}; rules change how wide it is."
    without = f"without {' or '.join(word for word, many in (('a way', none), ('a hit', missed)) if many)}"
    whom = f"the only person {without}" if none + missed == 1 else f"any of the {none + missed:,} {nouns.people(none + missed)} {without}"
    return f"No rule, relaxed alone, was found to open a way to {target} for {whom}."
