"""The people whom a terminal names: the harmed first, a few of each kind, from an audit in memory or piece by piece from a stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from budge.audit.result import HAS_IT, Audit
from budge.audit.streamed import StreamedAudit
from budge.cli.layout import Column, cell, figure
from budge.errors import BudgeError
from budge.interaction import InteractionModel
from budge.report.outputs import nearest
from budge.report.people import number
from budge.wording import Wording, shown

__all__ = ["Chosen", "chosen", "closest", "listed", "moves", "short_of", "told_moves", "value_shown"]

Pick = Callable[[pd.DataFrame], "pd.Series[Any]"]


@dataclass(frozen=True)
class Chosen:
    """Some people of one model, the first of many by some order, with their rows of the audit's table."""

    audit: Audit
    model: str
    rows: pd.DataFrame
    many: int

    @property
    def more(self) -> int:
        """How many are not among them."""
        return self.many - len(self.rows)

    def with_law(self, word: str) -> Chosen:
        """Return the same people with the law of an audit in the place of a proof's word for it."""
        return replace(self, rows=self.rows.assign(method=self.rows["method"].replace({word: "exact"})))


def chosen(audit: Audit, model: str, pick: Pick, order: Sequence[str], *, rising: bool = True, most: int = 8) -> Chosen:
    """Return the first people whom `pick` takes from the table, by these columns; no more than a part of a stream is in memory."""
    found, many = pd.DataFrame(), 0
    for piece in audit.in_memory(model):
        table = piece.of_model(model)
        some = table[np.asarray(pick(table), dtype=bool)]
        many += len(some)
        joined = pd.concat([found, some]) if len(found) else some
        found = joined.sort_values(list(order), ascending=rising, kind="stable").head(most)
    return Chosen(audit, model, found, many)


def listed(some: Chosen, groups: str, nouns: Wording, *more: Column) -> list[Column]:
    """Return the columns that name people: label, and group where there is one column of groups."""
    called = some.rows.index.name
    numbers = some.rows.index.dtype.kind in "iu"
    names = [Column("person" if called is None else shown(called), [shown(v) for v in some.rows.index], right=numbers)]
    if groups:
        names.append(Column("group", [_group(some, label, groups, nouns) for label in some.rows.index], spare=2))
    return [*names, *more]


def _group(some: Chosen, label: Any, column_: str, nouns: Wording) -> str:
    audit = some.audit.piece_of(label, some.model) if isinstance(some.audit, StreamedAudit) else some.audit
    values = audit.group(column_, model=some.model)
    try:
        value = values.iloc[audit._at(label, some.model)]
    except BudgeError:
        return "–"
    return nouns.group(column_, "missing" if pd.isna(value) else value).removeprefix(f"{column_} = ")


def moves(some: Chosen, nouns: Wording, *, least: bool = True) -> tuple[str, list[str]]:
    """Return what has to change for each, and what that is: the least that works where all points were listed, else the smallest found.

    Without `least` it is the witness of each.
    """
    found, sure_ = [], True
    audit = some.audit
    spec = audit.info.get("spec")  # of a saved run, which has no model at hand
    nouns = nouns.of_model(audit.context.im if audit.context is not None else InteractionModel.from_spec(spec) if spec else None)
    for label, method in zip(some.rows.index, some.rows["method"]):
        told, sure = _change(some, label, nouns, listed=least and method == "exact")
        found.append(told)
        sure_ = sure_ and sure
    return "least change that works" if sure_ else "smallest change found", found


def short_of(near: tuple[Chosen, list[float], float] | None) -> list[Column]:
    """Return the best outputs of people without a way, and how far they are from the target; nothing where outputs are no scores."""
    if near is None:
        return []
    _, best, cut = near
    digits = next((d for d in range(3, 8) if all(f"{v:.{d}f}" != f"{cut:.{d}f}" for v in best)), 8)  # so many tell every output from the cut
    return [
        Column("best output", [figure(b, digits) for b in best], right=True),
        Column(f"short of {number(cut)} by", [figure(abs(cut - b), digits) for b in best], right=True, spare=3),
    ]  # fmt: skip


def _change(some: Chosen, label: Any, nouns: Wording, *, listed: bool) -> tuple[str, bool]:
    audit = some.audit
    try:
        if why := audit.why_not(label, model=some.model):
            return "none needed: has it now" if why == HAS_IT else "–", True
        if listed and (audit.context is not None or isinstance(audit, StreamedAudit)):
            plan = audit.recourse(label, model=some.model)
            if len(plan):
                first = plan.actions[plan.actions["plan"] == 1]
                return told_moves(first[["feature", "from", "to"]].itertuples(index=False, name=None), nouns), plan.least[0]
        return told_moves(audit.change(label, model=some.model).itertuples(index=False, name=None), nouns), False
    except BudgeError:  # a person whose points cannot be asked about again is named without their change
        return "–", False


def told_moves(steps: Any, nouns: Wording) -> str:
    """Return moves in one line: guarantor: no → yes; income: 16,634 → 17,898."""
    told = ((name, nouns.level(name, old) or value_shown(old), nouns.level(name, new) or value_shown(new)) for name, old, new in steps)
    return "; ".join(f"{nouns.feature(str(name))}: {old} → {new}" for name, old, new in told) or "none"


def value_shown(value: Any) -> str:
    """Return a value of a feature: three figures would not tell 16,634 from 16,590."""
    if isinstance(value, float | np.floating) and value == value and not float(value).is_integer() and abs(float(value)) < 1000:
        return number(value)
    if isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_) and value == value:
        return f"{float(value):,.0f}".replace("-", "−")
    return cell(value)


def closest(some: Chosen, *, most: int = 5) -> tuple[Chosen, list[float], float] | None:
    """Return those whose best output comes closest to the target, these outputs and where the target begins; None where outputs are no scores.

    The points of all of them are asked about once more, unless there would be too many.
    """
    audit = some.audit
    if isinstance(audit, StreamedAudit) or some.more or not (some.rows["method"] == "exact").all():
        return None
    found = nearest(audit, some.model, np.array([audit._at(label, some.model) for label in some.rows.index], dtype=np.intp))
    if found is None or found.cut is None:
        return None
    order = np.argsort(-found.sign * found.values, kind="stable")[:most]
    return replace(some, rows=some.rows.iloc[order]), found.values[order].tolist(), found.cut
