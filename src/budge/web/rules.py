"""What one rule holds back: the points of a person without it, and how many people without a way would have one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from budge.audit.result import Audit
from budge.interaction import InteractionModel
from budge.web.people import Known
from budge.web.question import Question
from budge.web.records import plain
from budge.web.running import Pace

__all__ = ["Freed", "lines_of", "row_without"]

BLOCK_SECONDS = 0.3  #: what a block of people may take
RULE_SECONDS = 5.0  #: for one rule; people who were not asked about until then are left out, and their number is told


def row_without(question: Question, freed: InteractionModel, threshold: float, place: int) -> dict[str, dict[str, Any]]:
    """Return the row of a person without one rule, for each model, as the audit has it."""
    found = question.audit(freed, threshold, [place])
    rows = {m: found.of_model(m).iloc[0] for m in question.models}
    kept = ("n", "hits", "unresolved", "method", "status", "extreme", "low")
    return {m: {name: plain(row[name]) for name in kept} for m, row in rows.items()}


def lines_of(record: Mapping[str, Any], who: Any) -> list[dict[str, Any]]:
    """Return what one rule holds back in words, and which of them tell of somebody who is held back.

    Examples
    --------
    >>> person = {"n": 192, "hits": 64, "unresolved": 0, "method": "exact", "status": "ok", "extreme": "", "low": 0.333}
    >>> people = {"able": 12, "asked": 12, "of": 12, "nohit": 0, "open": False}
    >>> [" ".join(line["text"]) for line in lines_of({"person": person, "people": people}, "812")]
    ['64 of 192 points for person 812', '12 of 12 people without a way would have one']
    >>> " ".join(lines_of({"person": None, "people": people | {"nohit": 12}}, "812")[0]["text"])
    '12 of 12 people without a hit have one in draws without it, which may be chance'
    """
    found, person, people = [], record["person"], record["people"]
    if person is not None:
        kind, way = "points" if person["method"] == "exact" else "draws", person["hits"] > 0 or (person["low"] or 0) > 0
        lost = f" ({person['unresolved']:,} {'has' if person['unresolved'] == 1 else 'have'} no answer)" if person["unresolved"] else ""
        known = [f"{person['hits']:,} of {person['n']:,}", f"{kind} for person {who}{lost}"]
        if person["method"] == "none":
            known = ["no verdict", f"for person {who} ({person['status'].replace('_', ' ')})"]
        elif person["method"] == "proved" and (way or person["extreme"] == "none"):  # it does not rest on draws, if there were any
            known = ["a way" if way else "no way", f"for person {who}, proved from the model's structure"]
        found.append({"text": known, "hot": way})
    if people is not None and people["of"]:
        stuck = "without a way" if not people["nohit"] else "without a hit" if people["nohit"] == people["of"] else "without a way or a hit"
        asked = f" asked ({people['of']:,} in all)" if people["asked"] < people["of"] else ""
        least = "at least " if people["open"] and people["able"] else ""
        chance = "have one in draws without it, which may be chance"  # draws miss what the declared rules allow, too
        would = "were found to get one" if people["open"] and not people["able"] else chance if people["nohit"] and people["able"] else "would have one"
        told = [f"{least}{people['able']:,} of {people['asked']:,}", f"people {stuck}{asked} {would}"]
        found.append({"text": told, "hot": people["able"] > 0})
    elif people is not None:
        found.append({"text": ["nobody", "is without a way"], "hot": False})
    return found


class Freed:
    """For people without a way (or without a hit) under the declared rules: how many have one without a rule."""

    def __init__(self, question: Question, threshold: float, declared: Audit) -> None:
        self.question, self.threshold = question, threshold
        assert question.frame is not None
        known = {m: Known.of(declared, m, len(question.frame)).category for m in question.models}
        self.stuck = {m: {name: np.flatnonzero(own == name) for name in ("none", "nohit")} for m, own in known.items()}
        self._done: dict[str, dict[str, Any]] = {}

    def record(self, rule: str, freed: InteractionModel, model: str, go_on: Callable[[], None]) -> dict[str, Any]:
        """Return the counts for one rule and model; people are asked about once for all models."""
        if rule not in self._done:
            self._done[rule] = self._ask(freed, go_on)
        able, asked, left = self._done[rule]["able"][model], self._done[rule]["asked"], self._done[rule]["open"][model]
        mine = np.concatenate(list(self.stuck[model].values()))
        heard = np.intersect1d(mine, asked)
        return {
            "able": int(np.isin(heard, able).sum()), "asked": len(heard), "of": len(mine), "nohit": len(self.stuck[model]["nohit"]),
            "open": bool(np.isin(heard, left).any()),
        }  # fmt: skip

    def _ask(self, freed: InteractionModel, go_on: Callable[[], None]) -> dict[str, Any]:
        """Ask about everyone who is without a way under some model, block by block."""
        everyone = np.unique(np.concatenate([places for own in self.stuck.values() for places in own.values()]))
        order = np.random.default_rng(0).permutation(everyone)
        able: dict[str, list[int]] = {m: [] for m in self.question.models}
        left: dict[str, list[int]] = {m: [] for m in self.question.models}  # who may have a way that was not found: by draws, or without an answer
        began, done, pace = time.perf_counter(), 0, Pace()
        while done < len(order) and time.perf_counter() - began < RULE_SECONDS:
            go_on()
            at, some = time.perf_counter(), np.sort(order[done : done + pace.block(BLOCK_SECONDS, len(order))])
            found = self.question.audit(freed, self.threshold, some)
            for m in self.question.models:
                rows = found.rows[m]
                hit = rows.counts.way
                able[m] += some[rows.place[hit]].tolist()
                left[m] += some[rows.place[~hit & ~rows.counts.is_law("none") & (found.claims(m).extreme != "none")]].tolist()
            done += len(some)
            pace.learn(len(some), time.perf_counter() - at)
        places = {name: {m: np.array(own, dtype=np.intp) for m, own in some.items()} for name, some in (("able", able), ("open", left))}
        return {**places, "asked": order[:done]}
