"""The list of people: the harmed first, found by label or by a condition on their features, filtered by what they can reach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.audit.result import Audit
from budge.errors import BudgeError, InputError, nearest
from budge.expressions import parse
from budge.interaction import InteractionModel
from budge.report.answer import marks_of
from budge.report.compared import SHORT_WORDS, short_words
from budge.report.figures.strip import CATEGORIES
from budge.web.question import Question
from budge.web.records import plain

__all__ = ["SHOWN", "Found", "Known", "Wish", "counts_of", "people_record"]

#: What people can be filtered by, and what it is called beside them.
SHOWN = SHORT_WORDS | {"out": "not asked about", "wait": "not computed yet"}
ALWAYS = ("none", "below", "at", "above")  # shown even where nobody is
MOST = 500


@dataclass(frozen=True)
class Wish:
    """Which people to list."""

    find: str = ""
    show: str = ""  # empty: the first of the harmed who are there; all: everyone
    model: str = ""
    other: str = ""  # with `other_show`: only those whom another model puts there
    other_show: str = ""
    offset: int = 0
    limit: int = 100

    @classmethod
    def read(cls, record: dict[str, Any]) -> Wish:
        """Read what the page sends."""
        given: dict[str, Any] = {}
        for name in ("find", "show", "model", "other", "other_show"):
            value = record.get(name, "")
            if not isinstance(value, str) or len(value) > 2000:
                raise InputError("is a text", where=name, got=value)
            given[name] = value
        for name in ("show", "other_show"):
            if given[name] not in ("", "all", *SHOWN):
                raise InputError("people are not filtered by that", where=name, got=given[name], remedy=nearest(given[name], ("all", *SHOWN)))
        for name in ("offset", "limit"):
            value = record.get(name, getattr(cls, name))
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**53:
                raise InputError("is a whole number", where=name, got=value)
            given[name] = value
        return cls(**{**given, "limit": min(given["limit"], MOST)})


@dataclass(frozen=True)
class Known:
    """What one model's audit says of everyone who was given, by their place in the table."""

    category: npt.NDArray[np.object_]
    rho: npt.NDArray[np.float64]
    n: npt.NDArray[np.int64]
    drawn: npt.NDArray[np.bool_]
    at: npt.NDArray[np.intp]  # the row of the audit; -1 where there is none

    @classmethod
    def of(cls, found: Audit | None, model: str, people: int = 0, asked: npt.NDArray[np.bool_] | None = None, why: str = "has") -> Known:
        """Return it for so many people, or more if the audit has more; `asked`: whom the model is asked about, if not everyone, and `why` not the others."""
        people = max(people, 0 if found is None or model not in found.models else int(found.rows[model].place.max(initial=-1)) + 1)
        category = np.full(people, "wait", dtype=object)
        rho, n, drawn, at = np.full(people, np.nan), np.zeros(people, np.int64), np.zeros(people, bool), np.full(people, -1, np.intp)
        if asked is not None:
            category[~asked] = why
        if found is None or model not in found.models:
            return cls(category, rho, n, drawn, at)
        rows, claims = found.rows[model], found.claims(model)
        judged = ~rows.counts.is_law("none")
        category[rows.place] = "odd"
        category[rows.place[judged]] = np.array(CATEGORIES, dtype=object)[marks_of(found, model).category]
        proved = rows.counts.is_law("proved")  # on no points, whatever was drawn before
        rho[rows.place], n[rows.place] = claims.rho, np.where(proved, 0, rows.counts.n)
        drawn[rows.place] = ~proved & ~rows.counts.is_law("exact")
        at[rows.place] = np.arange(len(rows.place))
        return cls(category, rho, n, drawn, at)


@dataclass
class Found:
    """What was computed for one state of the rules."""

    some: Audit | None = None  # the largest subsample so far
    whole: Audit | None = None
    known: dict[tuple[int, str], Known] = field(default_factory=dict)

    @property
    def best(self) -> Audit | None:
        """Everyone, or the largest subsample so far."""
        return self.whole or self.some


def counts_of(known: Known, chosen: npt.NDArray[np.bool_] | None = None) -> dict[str, int]:
    """Return how many people are in each category."""
    names, counts = np.unique(known.category if chosen is None else known.category[chosen], return_counts=True)
    return {str(name): int(k) for name, k in zip(names, counts)}


def people_record(
    question: Question, labels: npt.NDArray[np.object_], declared: Mapping[str, Known], edited: Known | None, wish: Wish, groups: Any
) -> dict[str, Any]:
    """Return some of the list, and how many there are of each category: as declared, and as edited.

    People stay where the declared rules put them, so that the list does not move under an edit; what the edit makes of them stands beside it.
    """
    model = wish.model or question.models[0]
    mine = declared[model]
    chosen, note = _find(question, labels, wish.find)
    counts = counts_of(mine, chosen)
    show = wish.show or next((name for name in _worst(question) if counts.get(name)), "all")
    inside = chosen if show == "all" else chosen & (mine.category == show)
    if wish.other in declared and wish.other_show not in ("", "all"):
        inside = inside & (declared[wish.other].category == wish.other_show)
    order = _order(question, mine, np.flatnonzero(inside))
    some = order[wish.offset : wish.offset + wish.limit].tolist()
    always = [name for name in ALWAYS if name != "none" or not counts.get("nohit")]
    chips = [[key, name, counts.get(key, 0)] for key, name in (SHOWN | short_words(question.options.claim)).items() if key in always or counts.get(key)]
    return {
        "show": show, "listed": len(order), "found": int(chosen.sum()), "note": note, "counts": counts,
        "chips": [*chips, ["all", "everyone", int(chosen.sum())]], "now": None if edited is None else counts_of(edited, chosen),
        "rows": [
            {
                "place": i, "label": str(labels[i]), "facts": groups(i), "category": mine.category[i], "rho": plain(mine.rho[i]), "n": int(mine.n[i]),
                "drawn": bool(mine.drawn[i]),
                **({} if edited is None else {"now": plain(edited.rho[i]), "n_now": int(edited.n[i]), "category_now": edited.category[i]}),
                **({"each": {m: plain(own.rho[i]) for m, own in declared.items()}} if len(declared) > 1 else {}),
            }
            for i in some
        ],
    }  # fmt: skip


def _worst(question: Question) -> tuple[str, ...]:
    """Return the categories from the most to the least harmed: those who are too easily moved first, if that is the claim."""
    found = ("none", "nohit", "below", "at", "open", "above")
    return found[::-1] if (question.options.harm or question.options.claim) == "above" else found


def _order(question: Question, known: Known, places: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return places by harm: category, then responsiveness, then the number of points; those without a verdict last."""
    worst = [*_worst(question), "odd", "wait", "has", "out"]
    rank = np.array([worst.index(name) for name in known.category[places]], dtype=int)
    sign = -1.0 if worst[0] == "above" else 1.0
    return places[np.lexsort((places, -known.n[places], np.nan_to_num(sign * known.rho[places], nan=2.0), rank))]


def _find(question: Question, index: npt.NDArray[np.object_], text: str) -> tuple[npt.NDArray[np.bool_], str]:
    """Who is meant: a condition on features in the language of the spec (``age < 30``), or a piece of the label."""
    words = text.strip()
    there = np.ones(len(index), dtype=bool) if question.frame is not None else np.array([label != "" for label in index], dtype=bool)
    if not words:
        return there, ""
    labels = np.array([words.casefold() in str(label).casefold() for label in index], dtype=bool) & there
    if any(sign in words for sign in "<>=") and question.frame is not None:
        try:
            return _condition(question.im, question.frame, words), "by a condition on features"
        except BudgeError as error:
            return labels, "" if labels.any() else str(error)
    return labels, "by label"


def _condition(im: InteractionModel, frame: pd.DataFrame, text: str) -> npt.NDArray[np.bool_]:
    expression = parse(text)
    levels = {f.name: f.levels for f in im.features if f.levels is not None}
    ordered = {f.name for f in im.features if f.ordered}
    InputError.raise_if(expression.check(levels, list(im.by_name), ordered=ordered, boolean=True))
    if any(layer != "value" for layer, _ in expression.vars):
        raise InputError("a condition here reads values only", where="find", got=text)
    values = im.coding.encode(frame)
    place = {f.name: j for j, f in enumerate(im.features)}
    known: Any = {("value", name): values[:, place[name]] for name in expression.names()}
    return np.asarray(np.broadcast_to(expression.evaluate(known, levels=levels), (len(frame),)), dtype=bool)
