"""What one rule holds back: the points of a person without it, and how many people without a way would have one."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.audit.result import Audit
from budge.interaction import InteractionModel
from budge.web.people import Known
from budge.web.question import Question

__all__ = ["Freed", "lines_of", "row_without"]

FIRST_BLOCK, BLOCK_SECONDS = 16, 0.3  #: people of the first block, and what a block may take
RULE_SECONDS = 5.0  #: for one rule; people who were not asked about until then are left out, and their number is told


def row_without(question: Question, freed: InteractionModel, threshold: float, place: int) -> dict[str, dict[str, Any]]:
    """Return the row of a person without one rule, for each model, as the audit has it."""
    found = question.audit(freed, threshold, [place])
    rows = {m: found.of_model(m).iloc[0] for m in question.models}
    return {m: {"n": int(row["n"]), "hits": int(row["hits"]), "method": str(row["method"]), "status": str(row["status"])} for m, row in rows.items()}


def lines_of(record: Mapping[str, Any], who: Any) -> list[dict[str, Any]]:
    """Return what one rule holds back in words, and which of them tell of somebody who is held back.

    Examples
    --------
    >>> person = {"n": 192, "hits": 64, "method": "exact", "status": "ok"}
    >>> people = {"able": 12, "asked": 12, "of": 12, "nohit": 0, "drawn": False}
    >>> [" ".join(line["text"]) for line in lines_of({"person": person, "people": people}, "812")]
    ['64 of 192 points for person 812', '12 of 12 people without a way would have one']
    """
    found, person, people = [], record["person"], record["people"]
    if person is not None:
        kind = "points" if person["method"] == "exact" else "draws"
        known = [f"{person['hits']:,} of {person['n']:,}", f"{kind} for person {who}"]
        found.append({"text": known if person["n"] else ["no verdict", f"for person {who} ({person['status'].replace('_', ' ')})"], "hot": person["hits"] > 0})
    if people is not None and people["of"]:
        stuck = "without a way" if not people["nohit"] else "without a hit" if people["nohit"] == people["of"] else "without a way or a hit"
        asked = f" asked ({people['of']:,} in all)" if people["asked"] < people["of"] else ""
        least = "at least " if people["drawn"] else ""
        told = [f"{least}{people['able']:,} of {people['asked']:,}", f"people {stuck}{asked} would have one"]
        found.append({"text": told, "hot": people["able"] > 0})
    elif people is not None:
        found.append({"text": ["nobody", "is without a way"], "hot": False})
    return found


class Freed:
    """For people without a way (or without a hit) under the declared rules: how many have one without a rule."""

    def __init__(self, question: Question, threshold: float, declared: Audit) -> None:
        self.question, self.threshold = question, threshold
        assert question.frame is not None
        self.stuck = {m: self._stuck(declared, m) for m in question.models}
        self._done: dict[str, dict[str, Any]] = {}

    def _stuck(self, declared: Audit, model: str) -> dict[str, npt.NDArray[np.intp]]:
        assert self.question.frame is not None
        known = Known.of(declared, model, len(self.question.frame))
        return {name: np.flatnonzero(known.category == name) for name in ("none", "nohit")}

    def record(self, rule: str, freed: InteractionModel, model: str, go_on: Callable[[], None]) -> dict[str, Any]:
        """Return the counts for one rule and model; people are asked about once for all models."""
        if rule not in self._done:
            self._done[rule] = self._ask(freed, go_on)
        able, asked, drawn = self._done[rule]["able"][model], self._done[rule]["asked"], self._done[rule]["drawn"]
        mine = np.concatenate(list(self.stuck[model].values()))
        heard = np.intersect1d(mine, asked)
        return {
            "able": int(np.isin(heard, able).sum()), "asked": len(heard), "of": len(mine), "nohit": len(self.stuck[model]["nohit"]),
            "drawn": bool(np.isin(heard, drawn).any()),
        }  # fmt: skip

    def _ask(self, freed: InteractionModel, go_on: Callable[[], None]) -> dict[str, Any]:
        """Ask about everyone who is without a way under some model, block by block."""
        everyone = np.unique(np.concatenate([places for own in self.stuck.values() for places in own.values()]))
        order = np.random.default_rng(0).permutation(everyone)
        able: dict[str, list[int]] = {m: [] for m in self.question.models}
        began, done, block, drawn = time.perf_counter(), 0, FIRST_BLOCK, []
        while done < len(order) and time.perf_counter() - began < RULE_SECONDS:
            go_on()
            at, some = time.perf_counter(), np.sort(order[done : done + block])
            found = self.question.audit(freed, self.threshold, some)
            for m in self.question.models:
                rows = found.rows[m]
                hit = (rows.counts.hits > 0) | (rows.counts.hit_mass > 0)
                able[m] += some[rows.place[hit]].tolist()
                drawn += some[rows.place[~hit & rows.counts.is_law("sample")]].tolist()  # who may have a way that no draw has found
            done += len(some)
            block = max(1, int(block * min(2.0, BLOCK_SECONDS / max(time.perf_counter() - at, 1e-3))))
        return {"able": {m: np.array(places, dtype=np.intp) for m, places in able.items()}, "asked": order[:done], "drawn": np.array(drawn, dtype=np.intp)}
