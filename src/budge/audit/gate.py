"""Gates for continuous integration: a condition on an audit that fails the run.

``share(verdict == 'below') > 0.05`` — with ``share``, ``count``, ``mean``, ``least`` and ``most`` over people. Inside the brackets stand columns of the
audit's table, ``no_way`` and ``every_way`` (known to have responsiveness 0 and 1), and columns of the people; these give shares of verdicts. Outside stand
numbers with a guarantee, each at 1 - alpha: ``share_low`` and ``share_high`` (the interval for the share of people for whom the design's claim is true),
and ``gap_low`` (what the largest difference between two declared groups is at least; 0 where none is shown; all groups hold together).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from budge.audit.conditions import evaluate
from budge.audit.sources import TableSource
from budge.audit.summary import differences
from budge.errors import ExpressionError, InputError, nearest
from budge.expressions import parse
from budge.expressions.distributions import DISTRIBUTIONS
from budge.expressions.functions import FUNCTIONS
from budge.expressions.tokens import Token, scan
from budge.stats.claims import EXACTNESS, EXTREMES, VERDICTS
from budge.stats.counts import LAWS, STATUSES

if TYPE_CHECKING:
    from budge.audit.result import Audit

__all__ = ["Gate", "gate", "gate_table"]

OVER_PEOPLE = ("share", "count", "mean", "least", "most")
GUARANTEED = ("share_low", "share_high", "gap_low")
WORDS = {"verdict": VERDICTS, "status": STATUSES, "method": LAWS, "exactness": EXACTNESS, "extreme": EXTREMES}


@dataclass(frozen=True)
class Gate:
    """Whether the condition holds, and with which numbers."""

    condition: str
    failed: bool
    numbers: str

    def __str__(self) -> str:
        return f"{'FAILED' if self.failed else 'passed'}: fail if {self.condition} ({self.numbers})"


def gate(audit: Audit, condition: str, *, model: str | None = None, people: pd.DataFrame | None = None) -> Gate:
    """Evaluate a condition over an audit.

    Parameters
    ----------
    model
        Which model, where there are several; the table of all of them is read unless given.
    people
        The people with all their columns, where the audit does not hold them.

    Examples
    --------
    >>> import pandas as pd, budge
    >>> im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9))])
    >>> X = pd.DataFrame({"income": [1, 2], "sex": ["f", "m"]})
    >>> print(gate(budge.audit(lambda t: (t["income"] > 9) * 1, X, im, target=1), "share(no_way) > 0.05 or share_low > 0.5"))
    FAILED: fail if share(no_way) > 0.05 or share_low > 0.5 (1.0 > 0.05 or 1.0 > 0.5)
    """
    names = audit.models if model is None else (audit._named(model),)
    used = [token.text for token in _tokens(condition) if token.kind == "name" and token.text in GUARANTEED]
    if used and len(names) > 1:
        raise InputError("several models were audited", where="fail-if", got=used[0], remedy=f"name one of {', '.join(names)}")

    def tables() -> Iterator[pd.DataFrame]:
        for name in names:
            for piece in audit.in_memory(name, naming=condition):
                yield _with_people(piece, name, people, condition)

    found = _judged(condition, tables, {name: _guaranteed(audit, name, names[0]) for name in used}, WORDS)
    rough = bool(used) and audit.tally(names[0]).total("approximate") > 0
    return replace(found, numbers=f"{found.numbers}; draws of a chain, no error rate is guaranteed") if rough else found


def gate_table(table: pd.DataFrame, condition: str) -> Gate:
    """Evaluate a condition over any table: the tests of language models have one of their own."""
    return _judged(condition, lambda: iter([table]), {}, {"verdict": VERDICTS})


def _with_people(audit: Audit, name: str, people: pd.DataFrame | None, condition: str) -> pd.DataFrame:
    """Return the table of one model, with columns of the people beside it."""
    table = audit.of_model(name)
    own = table.assign(no_way=table["extreme"] == "none", every_way=table["extreme"] == "every")
    more = _beside(audit, name, people)
    twice = [c for c in map(str, more.columns) if c in own.columns and re.search(rf"\b{re.escape(c)}\b", condition)]
    if twice:
        raise InputError("is a column of the audit and of the people", where="fail-if", got=twice[0], remedy="rename the column of the people")
    return pd.concat([own.reset_index(drop=True), more[[c for c in more.columns if c not in own.columns]].reset_index(drop=True)], axis=1)


def _beside(audit: Audit, name: str, people: pd.DataFrame | None) -> pd.DataFrame:
    """Return the columns of the people who are in the table: all that are at hand, with groups by their labels."""
    rows = audit.rows[name]
    if people is None and audit.context is not None and isinstance(audit.context.source, TableSource):
        given = audit.context.X  # of a part of a stream, with the columns that the model is not given
        people = given if isinstance(given, pd.DataFrame) else audit.context.source.frame
    if people is not None and not rows.index.isin(people.index).all():
        raise InputError("has other labels than the people of the run", where="people", got=people.index[0], remedy="give it the index that the audit had")
    frame = pd.DataFrame(index=rows.index) if people is None else people.loc[rows.index]
    return frame.drop(columns=[c for c in rows.groups.columns if c in frame.columns]).join(rows.groups)


def _guaranteed(audit: Audit, what: str, model: str) -> float:
    """Return a number with a guarantee."""
    summary, tally = audit.summary(model), audit.tally(model)
    if what != "gap_low":
        judged = tally.number(tally.judged)
        open_ = tally.number(tally.counts.status == STATUSES.index("not_exact"))  # they may be on either side
        if summary.share is None and not open_:
            raise InputError("nobody was judged", where="fail-if", got=what, remedy="audit people who can be judged")
        least, most = (0.0, 0.0) if summary.share is None else (summary.share.low * judged, summary.share.high * judged)
        return (least if what == "share_low" else most + open_) / (judged + open_)
    if not summary.groups:
        raise InputError("no groups are declared", where="fail-if", got=what, remedy="give groups=, on the shell --by COLUMN")
    gaps = [differences(t, audit.design.claim) for t in summary.groups.values()]
    return max([0.0, *(float(max(g["low"].max(), (-g["high"]).max())) for g in gaps if len(g))])


def _judged(condition: str, tables: Callable[[], Iterator[pd.DataFrame]], numbers: dict[str, float], words: Mapping[str, tuple[str, ...]]) -> Gate:
    text, end, tokens = "", 0, _tokens(condition)
    for k, token in enumerate(tokens):
        if token.kind != "name" or token.column < end:
            continue
        after = token.column + len(token.text)
        if token.text in OVER_PEOPLE and tokens[k + 1].text == "(":
            begin, after = tokens[k + 1].column + 1, _closing(tokens[k + 1 :], condition) + 1
            value = _over_people(tables(), token.text, condition[begin : after - 1], words)
        elif token.text in numbers:
            value = numbers[token.text]
        elif tokens[k + 1].text == "(" and token.text not in {*FUNCTIONS, *DISTRIBUTIONS, "and", "or", "not", "in"}:
            raise InputError("this function is unknown", where="fail-if", got=token.text, remedy=nearest(token.text, [*OVER_PEOPLE, *FUNCTIONS]))
        else:
            continue
        text, end = text + condition[end : token.column] + repr(round(value, 12)), after
    text += condition[end:]
    try:
        parsed = parse(text)
    except ExpressionError as error:
        raise error.at("fail-if") from None
    if parsed.vars:
        name = min(column for _, column in parsed.vars)
        remedy = f"{nearest(name, GUARANTEED)}; a column stands in brackets, such as count({name})"
        raise InputError("is no number over people", where="fail-if", got=name, remedy=remedy)
    if not parsed.is_boolean:
        remedy = "write e.g. \"share(verdict == 'below') > 0.05\""
        raise InputError("is not a condition over people", where="fail-if", got=condition, remedy=remedy)
    return Gate(condition, bool(np.all(parsed.evaluate({}))), text)


def _tokens(condition: str) -> list[Token]:
    try:
        return scan(condition)
    except ExpressionError as error:
        raise error.at("fail-if") from None


def _closing(tokens: list[Token], condition: str) -> int:
    """Return where the bracket closes that the first of these tokens opens; brackets in texts and names do not count."""
    depth = 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token.text, 0) if token.kind == "symbol" else 0
        if not depth:
            return token.column
    raise InputError("a bracket is not closed", where="fail-if", got=condition)


def _over_people(tables: Iterator[pd.DataFrame], name: str, inside: str, words: Mapping[str, tuple[str, ...]]) -> float:
    """Return a number over all people, from tables that come one after the other."""
    total, known, people, gaps, least, most = 0.0, 0, 0, 0, np.inf, -np.inf
    for table in tables:
        values, boolean = evaluate(inside, table, where="fail-if", words=words)
        if name in ("share", "count") and not boolean:
            if inside.strip() not in ("no_way", "every_way"):
                raise InputError(f"{name} counts people who meet a condition", where="fail-if", got=inside)
            values = values != 0
        numbers = values.astype(float)
        if re.search(r"\brho\b", inside) and {"rho", "method"} <= set(table.columns):  # a comparison with what is not known is false, and so is its opposite
            gaps += int((table["rho"].isna() & (table["method"] != "none")).sum())
        there = numbers[~np.isnan(numbers)]
        total, known, people = total + float(there.sum()), known + len(there), people + len(numbers)
        least, most = min(least, float(there.min(initial=np.inf))), max(most, float(there.max(initial=-np.inf)))
    if gaps:
        what = f"rho is not known of {gaps} people: answers are missing, or proofs leave it open"
        raise InputError(what, where="fail-if", got=f"{name}({inside})", remedy="use low or high")
    if name == "count":
        return total if known == people else np.nan
    if not known:
        raise InputError("nobody has a value", where="fail-if", got=f"{name}({inside})", remedy="audit people who can be judged")
    return {"least": least, "most": most}.get(name, total / known)
