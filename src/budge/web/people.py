"""The list of people: found by label or by a condition on their features, filtered by verdict, sorted, page by page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.audit.result import Audit
from budge.errors import BudgeError, InputError, nearest
from budge.expressions import parse
from budge.interaction import InteractionModel
from budge.web.question import Question
from budge.web.records import shown

__all__ = ["Wish", "people_record"]

SORTS = ("place", "label", "prediction", "rho", "change", "n", "verdict", "gap")
MOST = 200


@dataclass(frozen=True)
class Wish:
    """Which people to list, in which order."""

    find: str = ""
    verdict: str = ""
    model: str = ""
    sort: str = "place"
    down: bool = False
    offset: int = 0
    limit: int = 50
    other: str = ""  # with `other_verdict`: only those to whom another model gives that verdict
    other_verdict: str = ""

    @classmethod
    def read(cls, record: dict[str, Any]) -> Wish:
        """From what the page sends."""
        wish = cls()
        given: dict[str, Any] = {}
        for name in ("find", "verdict", "model", "sort", "other", "other_verdict"):
            value = record.get(name, getattr(wish, name))
            if not isinstance(value, str) or len(value) > 2000:
                raise InputError("is a text", where=name, got=value)
            given[name] = value
        if given["sort"] not in SORTS:
            raise InputError("people are not sorted by that", where="sort", got=given["sort"], remedy=nearest(given["sort"], SORTS))
        for name in ("offset", "limit"):
            value = record.get(name, getattr(wish, name))
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise InputError("is a whole number", where=name, got=value)
            given[name] = value
        return cls(**{**given, "limit": min(given["limit"], MOST)}, down=bool(record.get("down", False)))


def people_record(
    question: Question, found: Audit | None, before: Audit | None, wish: Wish, asked: Mapping[str, npt.NDArray[np.bool_]] | None = None
) -> dict[str, Any]:
    """One page of the list, and how many there are of each verdict; `asked`: whom each model is asked about, if not everybody."""
    rows = _rows(question, found, before, wish, asked)
    chosen, note = _find(question, rows, wish.find)
    counts = {str(k): int(v) for k, v in rows["verdict"][chosen].value_counts().items()}
    total = int(chosen.sum())
    if wish.verdict:
        chosen = chosen & (rows["verdict"] == wish.verdict).to_numpy()
    if wish.other and found is not None and wish.other in found.models:
        theirs = found.of_model(wish.other)["verdict"].reindex(rows.index)
        chosen = chosen & (theirs == wish.other_verdict).to_numpy()
    some = _sorted(rows[chosen], wish)
    page = some.iloc[wish.offset : wish.offset + wish.limit]
    models = question.models
    rho = {m: found.of_model(m)["rho"].reindex(page.index) for m in models} if found is not None and len(models) > 1 else {}
    return {
        "people": len(rows),
        "found": total,
        "listed": len(some),
        "offset": wish.offset,
        "counts": counts,
        "note": note,
        "rows": [
            {
                "place": int(row["place"]),
                "label": str(label),
                **{name: shown(row[name]) for name in ("prediction", "rho", "low", "high", "verdict", "was", "method")},
                **({"each": {m: shown(rho[m].iloc[k]) for m in models}} if rho else {}),
            }
            for k, (label, row) in enumerate(page.iterrows())
        ],
    }


def _rows(
    question: Question, found: Audit | None, before: Audit | None, wish: Wish, asked: Mapping[str, npt.NDArray[np.bool_]] | None
) -> pd.DataFrame:
    """Everybody of the table (of the run, if there is no table), with what is known of each."""
    if question.frame is not None:
        index = question.frame.index
    else:
        assert found is not None
        index = pd.Index(list(dict.fromkeys(found.table.index)), tupleize_cols=False)
    rows = pd.DataFrame({"place": np.arange(len(index))}, index=index)
    model = wish.model or (question.models[0] if question.models else "")
    columns = ["prediction", "rho", "low", "high", "verdict", "n", "method"]
    if found is not None:
        known = found.of_model(model if len(found.models) > 1 else None)[columns]
        rows = rows.join(known)
    else:
        rows[columns] = None
    rows["verdict"] = rows["verdict"].astype(object).where(rows["verdict"].notna(), "not computed")
    if asked is not None and len(rows) == len(asked[model]):
        population = question.options.population
        why = "already in the target" if isinstance(population, str) and population == "outside" else "not chosen"
        rows["verdict"] = rows["verdict"].where((rows["verdict"] != "not computed") | asked[model], why)
    rows["was"] = before.of_model(model if len(before.models) > 1 else None)["rho"].reindex(rows.index) if before is not None else np.nan
    return rows


def _sorted(rows: pd.DataFrame, wish: Wish) -> pd.DataFrame:
    """By one column, ties by place; those of whom nothing is known come last either way."""
    if wish.sort == "place":
        return rows.iloc[::-1] if wish.down else rows
    if wish.sort == "label":
        key: pd.Series = pd.Series([str(label) for label in rows.index], index=rows.index)
    elif wish.sort in ("change", "gap"):
        key = pd.to_numeric(rows["rho"]) - pd.to_numeric(rows["was"])
    elif rows[wish.sort].dtype == object:
        key = rows[wish.sort].map(str)
    else:
        key = rows[wish.sort]
    order = key.reset_index(drop=True).sort_values(ascending=not wish.down, kind="stable", na_position="last").index
    return rows.iloc[order]


def _find(question: Question, rows: pd.DataFrame, text: str) -> tuple[npt.NDArray[np.bool_], str]:
    """Who is meant: a condition on features in the language of the spec (``age < 30``), or a piece of the label."""
    words = text.strip()
    if not words:
        return np.ones(len(rows), dtype=bool), ""
    labels = np.array([words.casefold() in str(label).casefold() for label in rows.index], dtype=bool)
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
