"""One person: what they can reach, what comes of each point, and what may be claimed, in words and numbers of the audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.audit.ask import Answers, answers_of, points_of
from budge.audit.cases import Reached
from budge.audit.recourse import Recourse, in_full
from budge.audit.result import COLUMNS, Audit, same_cell
from budge.audit.sources import Chunk, TableSource
from budge.audit.summary import between
from budge.errors import BudgeError, InputError, printable
from budge.interaction import InteractionModel
from budge.reach.reacher import reacher
from budge.report.cases import Arranged, arranged, rho_shown
from budge.report.outputs import Scores, chart
from budge.report.people import at_most, number
from budge.report.words import percent
from budge.stats.counts import STATUSES
from budge.web.question import Question
from budge.web.records import error_record, plain
from budge.wording import Wording, amount, shown

__all__ = ["MOST_CELLS", "MOST_POINTS", "Person", "aim", "counted", "model_facts", "row_record", "saved_person", "told", "try_person"]

Kept = TypeVar("Kept")

MOST_CELLS = 24  #: of the table of what decides: a page has more room than a report
MOST_POINTS = 12  #: points that are listed at a time


class Person:
    """The person at a place of the table under one interaction model; what is computed is kept."""

    def __init__(self, question: Question, im: InteractionModel, threshold: float, place: int) -> None:
        assert question.frame is not None
        self.question, self.im, self.threshold, self.place = question, im, threshold, place
        self.frame = question.frame.iloc[[place]]
        self.label = self.frame.index[0]
        self.audit = question.audit(im, threshold, [place])
        assert self.audit.context is not None
        assert isinstance(self.audit.context.source, TableSource)
        self.source: TableSource = self.audit.context.source
        self.nouns: Wording = question.nouns
        self._kept: dict[tuple[str, str], Any] = {}

    @property
    def status(self) -> str:
        """``ok``, ``fixed``, ``empty``, ``invalid_start``, or ``not_exact`` where points can be neither listed nor drawn."""
        found = STATUSES[int(self.source.status[0])]
        barred = found not in ("empty", "invalid_start") and self.audit.rows[self.question.models[0]].counts.is_law("none")[0]
        return "not_exact" if barred else found

    @property
    def reaches(self) -> bool:
        """Whether there are points."""
        return self.status in ("ok", "fixed")

    @cached_property
    def chunk(self) -> Chunk:
        """The points that counts rest on; the same for every model, since all were asked about this person."""
        return points_of(self.audit, self.label, self.question.models[0])

    @cached_property
    def start(self) -> npt.NDArray[np.float64]:
        """The person as numbers, one per feature."""
        return np.asarray(self.source.values[0])

    @cached_property
    def values(self) -> npt.NDArray[np.float64]:
        """The points as numbers."""
        assert self.chunk.moved is not None
        values = np.repeat(self.source.values, len(self.chunk.rows), axis=0)
        values[:, reacher(self.source.model).moved] = self.chunk.moved.T
        return values

    @cached_property
    def moved(self) -> list[int]:
        """The features that differ from the start at some point."""
        return [j for j in range(len(self.im.features)) if (~np.isnan(self.values[:, j]) & (self.values[:, j] != self.start[j])).any()]

    def row(self, model: str) -> dict[str, Any]:
        """Return the row of the audit's table."""
        return {str(k): v for k, v in self.audit._row(self.label, model).items()}

    def answers(self, model: str) -> Answers:
        """Return what a model answers about the points."""
        return self.keep("answers", model, lambda: answers_of(self.audit, self.label, model, self.chunk))

    def scores(self, model: str) -> Scores | None:
        """Return the numbers behind the answers."""
        own, numbers = self.answers(model), self.question.numbers(model)
        before = self.audit.rows[model].prediction[0]
        return self.keep("scores", model, lambda: None if numbers is None else numbers.of(self.chunk.rows, own, before))

    def plan(self, model: str) -> Recourse:
        """Return the least change that attains the target."""
        return self.keep("plan", model, lambda: self.question.plan(self.im, self.threshold, self.place, model))

    def arranged(self, model: str) -> Arranged | None:
        """Return the table of what decides."""
        return self.keep("arranged", model, lambda: self._arranged(model))

    def keep(self, what: str, model: str, make: Callable[[], Kept]) -> Kept:
        """Return what is made of the person under a model; made once."""
        if (what, model) not in self._kept:
            self._kept[what, model] = make()
        found: Kept = self._kept[what, model]
        return found

    def _arranged(self, model: str) -> Arranged | None:
        answers, scores, plan = self.answers(model), self.scores(model), self.plan(model)
        weights = np.ones(len(answers.hit)) if self.chunk.weights is None else self.chunk.weights
        share = weights / weights.sum() if weights.sum() > 0 else np.full(len(weights), 1 / len(weights))
        exact = bool(self.audit.rows[model].counts.is_law("exact")[0])
        points = Reached(tuple(self.im.features), self.values, self.start, answers.hit, share, len(answers.hit), exact)
        least = plan.values[0] if plan.optimal and len(plan.values) else None
        return arranged(points, self.im, self.nouns, least, unanswered=not answers.good.all(), scores=scores, most=MOST_CELLS)

    # -- records ----------------------------------------------------------------------------------------------------------

    def record(self, model: str) -> dict[str, Any]:
        """Return what the page shows of the person under one model, but for what can be tried."""
        names = {f.name for j, f in enumerate(self.im.features) if self.reaches and j in self.moved}
        found: dict[str, Any] = {
            "place": self.place, "label": str(self.label), "status": self.status, "model": model,
            "facts": [self.nouns.group(c, self.frame[c].iloc[0]) for c, _ in self.audit.design.groups if c in self.frame.columns],
            "models": {name: row_record(self.audit, self.label, name) for name in self.question.models},
            "say": self.say(model), "table": None, "caption": "", "least": None, "points": None, "chart": None,
            "still": [[self.nouns.feature(str(c)), self.nouns.value(str(c), self.frame[c].iloc[0])] for c in self.frame.columns if c not in names],
            "broken": [p.to_dict() for p in self.im.broken(self.frame)] if self.status == "invalid_start" else [],
        }  # fmt: skip
        if not self.reaches:
            return found
        made, scores, hit = self.arranged(model), self.scores(model), self.answers(model).hit
        if made is not None:
            found |= {"table": made.table, "caption": made.caption}
        found["least"] = self.least(model)
        found["points"] = self.points(model)
        if scores is not None and not np.isnan(scores.best):
            needs = "" if scores.cut is None else f"; {aim(self.nouns)} needs {scores.needs()}"
            kind = "draws" if found["points"]["drawn"] else "points"
            found["chart"] = chart(scores, hit, f"Outputs of {len(hit):,} {kind}; best {scores.text(scores.best)}{needs}")
        return found

    def least(self, model: str) -> dict[str, Any] | None:
        """Return the least change that attains the target, else the nearest one that was found; None where there is none."""
        plan, row = self.plan(model), self.row(model)
        if plan.optimal:
            return {"proved": True, "moves": _moves(plan.actions[["feature", "from", "to"]], self.nouns, whole=True)}
        if plan.status == "already" or not row["hits"]:
            return None
        return {"proved": False, "moves": _moves(self.audit.change(self.label, model=model), self.nouns)}

    def _order(self, model: str, cell: str) -> npt.NDArray[np.intp]:
        """Return the points of a cell (of all, where none is named), those nearest to the target first, then those nearest to the start."""
        answers, scores, made = self.answers(model), self.scores(model), self.arranged(model)
        if cell and (made is None or cell not in set(made.cell)):
            raise InputError("there is no such cell", where="cell", got=cell)
        near = -answers.hit.astype(float)
        if scores is not None and scores.cut is not None:
            near = np.where(np.isnan(scores.values), np.inf, scores.values * (1 if scores.lower else -1))
        order = np.lexsort((self.source.distance(self.chunk), near))
        return order if made is None or not cell else order[np.array([made.cell[i] == cell for i in order])]

    def best(self, model: str, cell: str) -> npt.NDArray[np.float64] | None:
        """Return the point of a cell that is nearest to the target; None where no cell is named."""
        return np.asarray(self.values[self._order(model, cell)[0]]) if cell else None

    def points(self, model: str, cell: str = "", offset: int = 0, limit: int = MOST_POINTS) -> dict[str, Any]:
        """Return some of the points, those nearest to the target first; only those of a cell of the table, if one is named."""
        answers, scores, order = self.answers(model), self.scores(model), self._order(model, cell)
        some, start = order[offset : offset + limit], self.frame.iloc[0]
        names = [self.im.features[j].name for j in self.moved]
        weighted = self.chunk.weights is not None and float(np.ptp(self.chunk.weights)) > 0
        rows = []
        for i in some.tolist():
            line = self.chunk.rows.iloc[i]
            output = None if not answers.good[i] else shown(answers.outputs[i]) if scores is None else scores.text(float(scores.values[i]))
            rows.append(
                {"output": output, "hit": bool(answers.hit[i]), "cells": [[self.nouns.value(n, line[n]), not same_cell(start[n], line[n])] for n in names]}
                | ({"weight": float(self.chunk.weights[i])} if weighted and self.chunk.weights is not None else {})
            )
        return {
            "columns": [self.nouns.feature(name) for name in names], "rows": rows, "listed": len(order), "of": len(answers.hit), "offset": offset,
            "drawn": not self.audit.rows[model].counts.is_law("exact")[0], "hits": int(answers.hit[order].sum()),
            "note": f"in the cell chosen: {len(order):,} of {len(answers.hit):,}" if cell else f"all {len(order):,}, nearest to {aim(self.nouns)} first",
        }  # fmt: skip

    def say(self, model: str) -> list[str]:
        """Return the person's numbers in sentences: what was counted, how it is known, what every hit has, and the least change."""
        if self.status == "invalid_start":
            return ["This person breaks the interaction model before they move: no verdict."]
        if self.status == "empty":
            return [_clash(self.im, self.frame)]
        if self.status == "not_exact":
            return ["The reachable points cannot be listed, and the audit is to list only: no verdict."]
        row, scores, made, least = self.row(model), self.scores(model), self.arranged(model), self.least(model)
        target = aim(self.nouns)
        weighted = self.chunk.weights is not None and float(np.ptp(self.chunk.weights)) > 0
        said = [f"Has {target} today."] if self.plan(model).status == "already" else []
        said += told(row, target, self.audit.design.alpha, weighted=weighted)
        if not row["hits"] and scores is not None and scores.cut is not None and not np.isnan(scores.best):
            whose = "The best output" if row["method"] == "exact" else "The best output of the draws"
            said.insert(len(said) - 1, f"{whose} is {scores.text(scores.best)}; {target} needs {scores.needs()}.")
        if made is not None and made.needed:
            said.append(made.needed.replace("attains the target", f"leads to {target}"))
        return said + _least_words(least)


def _moves(steps: pd.DataFrame, nouns: Wording, *, whole: bool = False) -> list[list[str]]:
    """Return changes as texts; `whole` with every digit, since a plan lies just beyond a cut and a rounded one might not."""

    def text(name: str, value: Any) -> str:
        return nouns.level(name, value) or (in_full(value) if whole else amount(value))

    return [[nouns.feature(str(f)), text(str(f), a), text(str(f), b)] for f, a, b in steps.itertuples(index=False, name=None)]


def _least_words(least: dict[str, Any] | None) -> list[str]:
    if least is None or not least["moves"]:
        return []
    return [f"{'Least change' if least['proved'] else 'Nearest change found'}: {'; '.join(f'{f}: {a} → {b}' for f, a, b in least['moves'])}."]


def told(row: dict[str, Any], target: str, alpha: float, *, weighted: bool = False) -> list[str]:
    """Return a row of the audit's table in sentences; the last one states how it is known where there is no hit.

    Examples
    --------
    >>> found = {"method": "sample", "n": 30, "hits": 0, "unresolved": 0, "rho": 0.0, "low": 0.0, "high": 0.12, "extreme": "", "proof": "possible"}
    >>> told({**found, "verdict": "below", "upper": 0.095, "exactness": "guaranteed"}, "approval", 0.05)[1]
    "A point that leads to approval was found from the model's structure."
    >>> row = {"method": "exact", "n": 128, "hits": 0, "unresolved": 0, "rho": 0.0, "low": 0.0, "high": 0.0, "extreme": "none", "exactness": "exact"}
    >>> told({**row, "verdict": "below", "upper": 0.0, "status": "ok"}, "approval", 0.05)
    ['None of the 128 reachable points leads to approval.', 'All points were listed: this is a proof.']
    """
    n, hits, method, extreme = int(row["n"]), int(row["hits"]), row["method"], row["extreme"]
    lost = f"; {row['unresolved']:,} {'has' if row['unresolved'] == 1 else 'have'} no answer" if row["unresolved"] else ""
    ends, about = f"between {number(row['low'])} and {number(row['high'])}", "about " if row["exactness"] == "approximate" else ""
    equal = ["ρ equals the threshold: neither below nor above."] if row["verdict"] == "at the threshold" else []
    if method == "none":
        return [f"There is no verdict: {str(row['status']).replace('_', ' ')}."]
    if method == "proved":
        known = f"= {rho_shown(row['rho'])}" if row["rho"] == row["rho"] else f"is {between(row['low'], row['high'])}"
        if extreme == "none":
            return [f"No reachable point leads to {target}.", "It follows from the model's structure: this is a proof."]
        return [f"ρ {known}, proved from the model's structure over every reachable point.", *equal]
    if method == "exact":
        if extreme == "none":
            only = f"The only reachable point does not lead to {target}." if n == 1 else f"None of the {n:,} reachable points leads to {target}."
            return [only, "All points were listed: this is a proof."]
        known = f"ρ = {rho_shown(row['rho'])}{', by the weights of the points' if weighted else ''}" if row["rho"] == row["rho"] else f"ρ is {ends}"
        return [f"{hits:,} of {n:,} reachable points {'leads' if hits == 1 else 'lead'} to {target}{lost} ({known}).", *equal]
    chain = " The draws come from a chain: no error rate is guaranteed." if about else ""
    if not hits and not row["unresolved"]:
        way = f"A point that leads to {target} was found from the model's structure" if row.get("proof") == "possible" else ""
        return [f"No hit in {n:,} draws: {at_most(row['upper'], alpha, about)}.", f"{way or 'That is no proof that there is no way'}.{chain}"]
    seen = f"{hits:,} of {n:,} draws {'leads' if hits == 1 else 'lead'} to {target}{lost}"
    return [f"{seen}: ρ is {about}{ends} (two-sided, {percent(1 - alpha)}).{chain}", *equal]


def aim(nouns: Wording) -> str:
    """Return the target in a sentence about one person."""
    return printable(nouns.target_name) or "the target"


def model_facts(rows: Mapping[str, Mapping[str, Any]], model: str, output: str | None = None) -> list[str]:
    """Return a model's output about a person today, and what is counted under the others."""
    named = f"{model}: " if len(rows) > 1 else ""
    return [f"{named}output {output or shown(rows[model]['prediction'])} today", *(f"{m}: {counted(row)}" for m, row in rows.items() if m != model)]


def counted(row: Mapping[str, Any]) -> str:
    """Return what was counted of a person in a few words, with ρ only where it is known: draws without a hit do not show that it is 0.

    Examples
    --------
    >>> row = {"method": "exact", "hits": 4, "n": 8, "unresolved": 0, "rho": 0.5}
    >>> counted(row), counted({**row, "method": "sample"}), counted({**row, "method": "sample", "hits": 0, "rho": 0.0})
    ('4 of 8 points (ρ 0.5)', '4 hits in 8 draws', 'no hit in 8 draws')
    >>> counted({**row, "hits": 0, "n": 1, "rho": 0.0})
    '0 of 1 point (ρ 0)'
    """
    if row["method"] == "none":
        return f"no verdict ({str(row['status']).replace('_', ' ')})"
    known = row["rho"] is not None and row["rho"] == row["rho"]
    rho = f"ρ {rho_shown(row['rho']) if known else between(row['low'], row['high'])}" if row["method"] in ("exact", "proved") else ""
    if row["method"] == "proved":
        return f"{rho}, proved"
    hits = "no hit" if not row["hits"] else "1 hit" if row["hits"] == 1 else f"{row['hits']:,} hits"
    points = "1 point" if row["n"] == 1 else f"{row['n']:,} points"
    found = f"{row['hits']:,} of {points} ({rho})" if rho else f"{hits} in {row['n']:,} draws"
    return found + (f", {row['unresolved']:,} without an answer" if row["unresolved"] else "")


def row_record(found: Audit, label: Any, model: str) -> dict[str, Any]:
    """Return the row of the audit's table, as it is."""
    row = found._row(label, model)
    return {name: plain(row[name]) for name in COLUMNS}


def _clash(im: InteractionModel, frame: Any) -> str:
    try:
        im.sample(frame, 1, on_invalid="keep")
    except BudgeError as error:
        return str(error)
    return "No action is feasible, not even staying."


def saved_person(question: Question, place: int, label: Any, model: str) -> dict[str, Any]:
    """Return what a saved run alone holds about a person: their rows, and what their witness changed."""
    saved, nouns = question.saved, question.nouns
    assert saved is not None
    rows = {name: row_record(saved, label, name) for name in saved.models if label in saved.rows[name].index}
    if model not in rows:
        raise InputError("the model was not asked about this person", where="person", got=str(label), remedy=f"choose {' or '.join(rows)}")
    at = saved._at(label, model)
    own = saved.rows[model]
    row = {str(k): v for k, v in saved.of_model(model).iloc[at].items()}
    moves = _moves(saved.change(label, model=model), nouns)
    least = {"proved": False, "moves": moves} if moves else None
    return {
        "place": place, "label": str(label), "status": "saved", "model": model, "models": rows,
        "say": told(row, aim(nouns), saved.design.alpha) + _least_words(least), "declared": "",
        "facts": [*(nouns.group(str(c), own.groups[c].iloc[at]) for c in own.groups.columns), *model_facts(rows, model)],
        "least": least,
    }  # fmt: skip


def try_person(make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the person, or the error of computing them: a part that cannot be drawn holds up nobody else."""
    try:
        return {"kind": "person", **make()}
    except BudgeError as error:
        return {"kind": "person_error", **error_record(error)}
