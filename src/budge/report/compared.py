"""Several models on the same people: a table of how their verdicts meet, and the paired difference."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from budge import stats
from budge.audit.result import Audit
from budge.report.answer import claim_words, harmed_of, marks_of
from budge.report.figures.dots import points
from budge.report.figures.strip import CATEGORIES
from budge.report.words import percent
from budge.wording import Wording, shown

__all__ = ["SHORT_WORDS", "compared", "short_words"]

MOST_CROSSED = 4  # models of whom every two are crossed
MOST_NAMED = 6  # people who are named because models disagree about them
SHORT_WORDS = {
    "none": "no way", "nohit": "no hit", "below": "almost none", "at": "at the threshold", "open": "undecided", "above": "more", "has": "has it now",
    "odd": "not judged", "gone": "has it now, or was set aside",
}  # fmt: skip


def short_words(claim: str) -> dict[str, str]:
    """Return what the categories are called in a small place: below the threshold of the claim *above* is less, and no lack of a way.

    Examples
    --------
    >>> short_words("below")["below"], short_words("above")["below"]
    ('almost none', 'less')
    """
    return SHORT_WORDS | ({"below": "less"} if claim == "above" else {})


def compared(audit: Audit, nouns: Wording) -> dict[str, Any] | None:
    """Return what several models have to do with each other; None for one model."""
    if len(audit.models) < 2:
        return None
    size = max(int(own.place.max(initial=-1)) + 1 for own in audit.rows.values())
    states = {name: _states(audit, name, max(size, int(audit.info["people"]))) for name in audit.models}
    both = np.logical_and.reduce([np.isin(own, list(CATEGORIES)) for own in states.values()])
    pairs = [_pair(audit, one, two, states) for one, two in combinations(audit.models, 2)] if len(audit.models) <= MOST_CROSSED else []
    rows = [_row(audit, name, states[name], both) for name in audit.models]
    heading, people = _heading(audit, rows, int(both.sum()), nouns), int(both.sum())
    return {"heading": heading, "rows": rows, "people": people, "pairs": pairs, "most": MOST_CROSSED, "claim": claim_words(audit.design)}


def _states(audit: Audit, name: str, given: int) -> npt.NDArray[np.object_]:
    """Return the category of everybody who was given: ``has`` for those with the target, ``odd`` for those who could not be judged.

    A run that did not finish has no rows of the people who were set aside: which of those without a row have the target is known only if none or all have it.
    """
    rows = audit.rows[name]
    away, already = given - len(rows.place), int(audit.info["already"][name])
    outside = audit.info["population"] == "outside"
    found = np.full(given, "odd" if not outside or not already else "has" if already == away else "gone", dtype=object)
    found[rows.place] = "odd"
    judged = ~rows.counts.is_law("none")
    found[rows.place[judged]] = np.array(CATEGORIES, dtype=object)[marks_of(audit, name).category]
    return found


def _on_claim(audit: Audit, states: npt.NDArray[np.object_], name: str) -> npt.NDArray[np.bool_]:
    """Return who has the verdict of the design's claim, among everybody who was given."""
    claims, rows = audit.claims(name), audit.rows[name]
    found = np.zeros(len(states), dtype=bool)
    if audit.design.claim == "above":
        found[rows.place] = claims.verdict == "above"
    else:
        found[rows.place] = (claims.verdict == "below") | (claims.extreme == "none")
    return found


def _row(audit: Audit, name: str, states: npt.NDArray[np.object_], both: npt.NDArray[np.bool_]) -> dict[str, Any]:
    found = audit.summary(name)
    shared = int((_on_claim(audit, states, name) & both).sum())
    return {"model": name, "people": found.people, "harmed": harmed_of(audit.tally(name), audit.design), "shared": shared, "mean": found.mean_rho}


def _heading(audit: Audit, rows: Sequence[dict[str, Any]], both: int, nouns: Wording) -> str:
    if not both:
        return "The models were asked about different people: nobody was judged by all of them."
    ranked = sorted(rows, key=lambda row: row["shared"])
    least, most = ranked[0], ranked[-1]
    whom = f"On the {both:,} {nouns.people(both)} whom all models judge"
    if least["shared"] == most["shared"]:
        return f"{whom}, {most['shared']:,} {'has' if most['shared'] == 1 else 'have'} {claim_words(audit.design)} under each model."
    return f"{whom}, {least['model']} leaves {least['shared']:,} with {claim_words(audit.design)}, and {most['model']} leaves {most['shared']:,}."


def _pair(audit: Audit, one: str, two: str, states: dict[str, npt.NDArray[np.object_]]) -> dict[str, Any]:
    """Return how two models meet on everybody who was given, and the paired difference on those whom both judge."""
    first, second = states[one], states[two]
    words = short_words(audit.design.claim)
    names = [key for key in words if (first == key).any() or (second == key).any()]
    counts = [[int(((first == a) & (second == b)).sum()) for b in names] for a in names]
    both = np.isin(first, list(CATEGORIES)) & np.isin(second, list(CATEGORIES))
    mine, other = _on_claim(audit, first, one)[both], _on_claim(audit, second, two)[both]
    alone, away = int((mine & ~other).sum()), int((~mine & other).sum())
    alike = _on_claim(audit, first, one) == _on_claim(audit, second, two)
    known = {*CATEGORIES, "has"}
    tints = [[{a, b} <= known and bool(((first == a) & (second == b) & ~alike).any()) for b in names] for a in names]
    apart = np.flatnonzero(both & ~alike)
    labels = dict(zip(audit.rows[one].place.tolist(), audit.rows[one].index))
    return {
        "first": one, "second": two, "names": [words[name] for name in names], "keys": names, "counts": counts, "tints": tints,
        "sums": [sum(row) for row in counts], "sentence": _difference(audit, one, two, alone, away, int(both.sum())),
        "people": [shown(labels[int(place)]) for place in apart[:MOST_NAMED]], "more": max(len(apart) - MOST_NAMED, 0),
    }  # fmt: skip


def _difference(audit: Audit, one: str, two: str, alone: int, away: int, both: int) -> str:
    """Return the paired difference in words; its interval is for a larger population, and only where verdicts are known exactly."""
    if not both:
        return "Nobody is judged by both."
    has = f"{'has' if alone == 1 else 'have'} {claim_words(audit.design)}"
    told = f"Of the {both:,} whom both judge, {alone:,} {has} under {one} alone, and {away:,} under {two} alone"
    tables = [audit.of_model(name) for name in (one, two)]
    if not all(table["method"].isin(("exact", "proved", "none")).all() and (table["verdict"] != "inconclusive").all() for table in tables):
        return f"{told}, by verdicts."
    found = stats.paired_difference(alone, away, both, alpha=audit.design.alpha)
    low, value, high = (points(end) for end in (found.low, (alone - away) / both, found.high))
    level = percent(1 - audit.design.alpha)
    return f"{told}: a difference of {value} points ({level} interval {low} to {high}, for a population of which they are a random sample)."
