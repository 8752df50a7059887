"""Gates for continuous integration: a condition on an audit that fails the run.

``share(verdict == 'below') > 0.05`` — with ``share``, ``count``, ``mean``, ``least`` and ``most`` over people. Inside the brackets stand columns of the
audit's table, ``no_way`` and ``every_way`` (known to have responsiveness 0 and 1), and columns of the people; these give shares of verdicts. Outside stand
numbers with a guarantee, each at 1 - alpha: ``share_low`` and ``share_high`` (the interval for the share of people for whom the design's claim is true),
and ``gap_low`` (what the largest difference between two declared groups is at least; 0 where none is shown; all groups hold together), of one column
``gap_low(sex)``. A second condition says over whom: ``share(verdict == 'below', sex == 'f') - share(verdict == 'below', sex == 'm') > 0.1``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.audit.conditions import evaluate
from budge.audit.sources import TableSource
from budge.audit.summary import differences
from budge.errors import ExpressionError, InputError, nearest
from budge.expressions import parse, unknown_name
from budge.expressions.distributions import DISTRIBUTIONS
from budge.expressions.functions import FUNCTIONS
from budge.expressions.tokens import Token, scan
from budge.stats.claims import EXACTNESS, EXTREMES, VERDICTS
from budge.stats.counts import LAWS, STATUSES

if TYPE_CHECKING:
    from budge.audit.result import Audit

__all__ = ["Gate", "check_gate", "gate", "gate_table", "verdict_words"]

Number = Callable[[str, str], float]  # of a name outside of brackets, and of the column that follows it in brackets
OVER_PEOPLE = ("share", "count", "mean", "least", "most")
#: Numbers of an audit, and of two that are compared, which may be missing of people who were judged.
UNKNOWN = ("rho", "p_value", "p_adjusted", "rho_first", "rho_second", "difference")
MOST_TRIED = 1000  # people whose columns and levels a condition is tried on
GUARANTEED = ("share_low", "share_high", "gap_low")
TRUTHS = ("no_way", "every_way", "changed")  # columns that are conditions by themselves
WORDS = {"status": STATUSES, "method": LAWS, "exactness": EXACTNESS, "extreme": EXTREMES}


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
    FAILED: fail if share(no_way) > 0.05 or share_low > 0.5 (1 > 0.05 or 1 > 0.5)
    """
    names = audit.models if model is None else (audit._named(model),)
    used = _guaranteed_names(condition)
    if used and len(names) > 1:
        raise InputError("several models were audited", where="fail-if", got=used[0], remedy=f"give model=NAME: {', '.join(names)}")

    def tables() -> Iterator[pd.DataFrame]:
        for name in names:
            for piece in audit.in_memory(name, naming=condition):
                yield _with_people(piece, name, people, condition)

    def guaranteed(what: str, column: str) -> float:
        return _guaranteed(audit, what, names[0], column)

    found = _judged(condition, tables, dict.fromkeys(GUARANTEED, guaranteed), _words(audit.design.threshold))
    named = _names(condition)
    open_ = sum(audit.summary(name).open_ways for name in names) if named & {"no_way", "extreme"} else 0
    if open_:  # whom draws have shown no way are not known to have none
        found = replace(found, numbers=f"{found.numbers}; whether there is a way is not known of {open_:,}")
    open_ = sum(_without_a_miss(audit, name) for name in names) if named & {"every_way", "extreme"} else 0
    if open_:
        found = replace(found, numbers=f"{found.numbers}; whether every way leads there is not known of {open_:,}")
    rough = bool(used) and audit.tally(names[0]).total("approximate") > 0
    return replace(found, numbers=f"{found.numbers}; draws of a chain, no error rate is guaranteed") if rough else found


def _without_a_miss(audit: Audit, model: str) -> int:
    """Return how many people have neither a point that misses the target nor a proof that there is none."""
    tally = audit.tally(model)
    counts = tally.counts
    return tally.number(tally.judged & (counts.hits + counts.unresolved >= counts.n) & (tally.claims.extreme_code == 0))


def gate_table(
    table: pd.DataFrame, condition: str, *, numbers: Mapping[str, float] | None = None, words: Mapping[str, tuple[str, ...]] | None = None
) -> Gate:
    """Evaluate a condition over any table; `numbers` stand outside of brackets, and `words` are all texts that a column can hold."""

    def known(value: float) -> Number:
        return lambda what, column: value

    return _judged(condition, lambda: iter([table]), {name: known(v) for name, v in (numbers or {}).items()}, words or {"verdict": VERDICTS})


def verdict_words(threshold: float) -> tuple[str, ...]:
    """Return the verdicts that there are at a threshold: below 0 there is nobody, and who has no way at all has a verdict of their own."""
    return tuple(word for word in VERDICTS if word != ("none" if threshold > 0 else "below"))


def _words(threshold: float) -> dict[str, tuple[str, ...]]:
    return {"verdict": verdict_words(threshold), **WORDS}


def check_gate(
    condition: str, people: pd.DataFrame, groups: Sequence[str] = (), *, models: int = 1, threshold: float = 0.1, levels: Collection[str] | None = None
) -> None:
    """Raise what is wrong with a condition before any work is done: its text, its columns, what it needs.

    Parameters
    ----------
    people
        A row or more of the people, with all columns that the condition may name.
    groups
        The columns that will be declared as groups.
    threshold
        The threshold of the audit.
    levels
        All texts that people have in any column, or can have, where that is known: a condition on another one would never hold.

    Examples
    --------
    >>> check_gate("share(verdict == 'belwo') > 0.1", pd.DataFrame({"age": [30]}))
    Traceback (most recent call last):
    ...
    budge.errors.InputError: fail-if, column 12: verdict has no such level (got 'belwo'); did you mean 'below'? Levels: below, above, ...
    """
    try:
        used = _guaranteed_names(condition)
    except ExpressionError as error:
        hint = unknown_name("", condition, map(str, people.columns), {})
        raise ExpressionError([replace(p, remedy=hint) if "backticks" in hint else p for p in error.problems]) from None
    possible = {*(levels or ()), *(word for own in _words(threshold).values() for word in own)}
    strange = [str(token.value) for token in _tokens(condition) if token.kind == "string" and token.value not in possible] if levels is not None else []
    if used and models > 1:
        raise InputError("several models are audited", where="fail-if", got=used[0], remedy="judge the saved run of each model: budge gate RUN --model NAME")
    row = {
        "status": "ok", "method": "exact", "n": 1, "hits": 0, "unresolved": 0, "rho": 0.5, "low": 0.5, "high": 0.5, "p_value": 0.5, "p_adjusted": 0.5,
        "verdict": "below", "lower": 0.5, "upper": 0.5, "exactness": "exact", "extreme": "", "proof": "", "no_way": False, "every_way": False,
    }  # fmt: skip

    def guaranteed(what: str, column: str) -> float:
        _check_column(what, column, groups)
        return 0.5

    problem: InputError | None = None
    for prediction in (0.0, "a label"):  # which of both a model answers is not known yet
        some = people.head(MOST_TRIED)
        own = pd.DataFrame({"prediction": prediction, **row}, index=range(max(len(some), 1)))
        table = _beside_table(own, some, condition)
        try:
            _judged(condition, lambda: iter([table]), dict.fromkeys(GUARANTEED, guaranteed), _words(threshold), trial=True)  # noqa: B023
        except InputError as error:
            problem = problem or error
            continue
        if strange:
            near = nearest(strange[0], possible)
            remedy = near if near.startswith("did you mean") else "look at how it is spelled"
            raise InputError("nobody has this level", where="fail-if", got=strange[0], remedy=remedy)
        return
    assert problem is not None
    raise problem


def _guaranteed_names(condition: str) -> list[str]:
    return [token.text for token in _tokens(condition) if token.kind == "name" and token.text in GUARANTEED]


def _with_people(audit: Audit, name: str, people: pd.DataFrame | None, condition: str) -> pd.DataFrame:
    """Return the table of one model, with columns of the people beside it."""
    table = audit.of_model(name)
    own = table.assign(no_way=table["extreme"] == "none", every_way=table["extreme"] == "every")
    return _beside_table(own, _beside(audit, name, people), condition)


def _beside_table(own: pd.DataFrame, more: pd.DataFrame, condition: str) -> pd.DataFrame:
    """Return the audit's columns with those of the people; a column of both that the condition names is an error."""
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


def _check_column(what: str, column: str, groups: Sequence[str]) -> None:
    """Raise an error where a guaranteed number is about groups that are not declared."""
    if what != "gap_low" and column:
        raise InputError(f"{what} is about all people", where="fail-if", got=f"{what}({column})", remedy=f"write {what} alone")
    if what == "gap_low" and not groups:
        raise InputError("no groups are declared", where="fail-if", got=what, remedy="give groups=[...]")
    if column and column not in groups:
        raise InputError("is not declared as a group", where="fail-if", got=column, remedy=nearest(column, groups))


def _guaranteed(audit: Audit, what: str, model: str, column: str = "") -> float:
    """Return a number with a guarantee."""
    _check_column(what, column, [name for name, _ in audit.design.groups])
    summary, tally = audit.summary(model), audit.tally(model)
    if what != "gap_low":
        judged = tally.number(tally.judged)
        open_ = tally.number(tally.counts.status == STATUSES.index("not_exact"))  # they may be on either side
        if summary.share is None and not open_:
            raise InputError("nobody was judged", where="fail-if", got=what, remedy="audit people who can be judged")
        least, most = (0.0, 0.0) if summary.share is None else (summary.share.low * judged, summary.share.high * judged)
        return (least if what == "share_low" else most + open_) / (judged + open_)
    gaps = [g for g in (differences(t, audit.design.claim) for name, t in summary.groups.items() if column in ("", name)) if len(g)]
    if not gaps:
        raise InputError("fewer than two groups have people who were judged", where="fail-if", got=what, remedy="audit people of several groups")
    return max(0.0, *(float(max(g["low"].max(), (-g["high"]).max())) for g in gaps))


def _judged(
    condition: str, tables: Callable[[], Iterator[pd.DataFrame]], numbers: Mapping[str, Number], words: Mapping[str, tuple[str, ...]], *, trial: bool = False
) -> Gate:
    """Return whether the condition holds; a trial checks its text alone."""
    text, told, end, tokens = "", "", 0, _tokens(condition)
    absent = list[str]()
    for k, token in enumerate(tokens):
        if token.kind != "name" or token.column < end:
            continue
        after, called = token.column + len(token.text), tokens[k + 1].text == "("
        parts = _arguments(tokens[k + 1 :], condition) if called and (token.text in OVER_PEOPLE or token.text in numbers) else []
        if parts:
            after = parts[-1][1] + 1
        inside = [condition[begin:close] for begin, close in parts]
        if token.text in OVER_PEOPLE and called:
            value = _over_people(tables(), token.text, inside, words, absent, trial=trial)
        elif token.text in numbers:
            value = numbers[token.text](token.text, ",".join(inside).strip().strip("`"))
        elif called and token.text not in {*FUNCTIONS, *DISTRIBUTIONS, "and", "or", "not", "in"}:
            raise InputError("this function is unknown", where="fail-if", got=token.text, remedy=nearest(token.text, [*OVER_PEOPLE, *FUNCTIONS]))
        else:
            continue
        value += token.column / 1e6 if trial else 0  # so that no difference of two numbers is zero
        text, told = text + condition[end : token.column] + _written(value), told + condition[end : token.column] + f"{value:.6g}"
        end = after
    text, told = text + condition[end:], told + condition[end:]
    try:
        parsed = parse(text)
    except ExpressionError as error:
        raise error.at("fail-if") from None
    if parsed.vars:
        name = min(column for _, column in parsed.vars)
        remedy = f"{nearest(name, numbers)}; a column stands in brackets, such as count({name})"
        raise InputError("is no number over people", where="fail-if", got=name, remedy=remedy)
    if not parsed.is_boolean:
        remedy = "write e.g. \"share(verdict == 'below') > 0.05\""
        raise InputError("is not a condition over people", where="fail-if", got=condition, remedy=remedy)
    told += "".join(f"; nobody has {level!r}" for level in dict.fromkeys(absent))
    return Gate(condition, not trial and bool(np.all(parsed.evaluate({}))), told)


def _written(value: float) -> str:
    """Return a number for a condition, without the rounding errors of sums; in brackets, so that a power is one of the negative number."""
    return f"({round(value, 12)!r})"


def _tokens(condition: str) -> list[Token]:
    try:
        return scan(condition)
    except ExpressionError as error:
        raise error.at("fail-if") from None


def _arguments(tokens: list[Token], condition: str) -> list[tuple[int, int]]:
    """Return where the arguments begin and end of the bracket that the first of these tokens opens; what stands in texts and names does not count."""
    depth, found, begin = 0, list[tuple[int, int]](), tokens[0].column + 1
    for token in tokens:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token.text, 0) if token.kind == "symbol" else 0
        if not depth or (depth == 1 and token.kind == "symbol" and token.text == ","):
            found.append((begin, token.column))
            begin = token.column + 1
        if not depth:
            return found
    raise InputError("a bracket is not closed", where="fail-if", got=condition)


def _names(text: str) -> set[str]:
    """Return the columns that a text names."""
    return {str(token.value) for token in (_tokens(text) if text else ()) if token.kind in ("name", "quoted")}


def _open(table: pd.DataFrame, column: str) -> npt.NDArray[np.bool_]:
    """Return who was judged and has no number in a column."""
    if column not in table.columns or not ({"rho", "method"} <= set(table.columns) or "rho_first" in table.columns):
        return np.zeros(len(table), dtype=bool)
    judged = table["low"].notna() if "rho_first" in table.columns else table["method"] != "none"
    return (table[column].isna() & judged).to_numpy(dtype=bool)


def _over_people(
    tables: Iterator[pd.DataFrame], name: str, inside: list[str], words: Mapping[str, tuple[str, ...]], absent: list[str], *, trial: bool
) -> float:
    """Return a number over all people, or those who meet a second condition, from tables that come one after the other.

    Levels that the conditions name and nobody has are added to `absent`.
    """
    total, known, people, least, most = 0.0, 0, 0, np.inf, -np.inf
    what, whom = inside[0], inside[1] if len(inside) > 1 else ""
    of_whom, gaps = _names(whom), Counter[str]()
    named, seen = _names(what) | of_whom, {word for own in words.values() for word in own}
    asked = [column for column in UNKNOWN if column in named]
    told = f"{name}({','.join(inside)})"
    if len(inside) > 2:
        raise InputError("takes one condition, and one on whom it is about", where="fail-if", got=told, remedy=f"{name}(verdict == 'below', sex == 'f')")
    for table in tables:
        values, boolean = evaluate(what, table, where="fail-if", words=words)
        if name in ("share", "count") and not boolean:
            if what.strip() not in TRUTHS:
                raise InputError(f"{name} counts people who meet a condition", where="fail-if", got=what)
            values = values != 0
        chosen = np.ones(len(table), dtype=bool)
        if whom:
            met, boolean = evaluate(whom, table, where="fail-if", words=words)
            if not boolean and whom.strip() not in TRUTHS:
                raise InputError("is not a condition", where="fail-if", got=whom.strip(), remedy="compare a column with a value, e.g. sex == 'f'")
            chosen = np.asarray(met, dtype=bool)
        seen.update(str(level) for column in named & set(table.columns) if table[column].dtype.kind not in "biuf" for level in table[column].dropna().unique())
        numbers = values[chosen].astype(float)
        for column in asked:  # a comparison with what is not known is false, and so is its opposite
            gaps[column] += int((_open(table, column) & (chosen | (column in of_whom))).sum())
        there = numbers[~np.isnan(numbers)]
        total, known, people = total + float(there.sum()), known + len(there), people + len(numbers)
        least, most = min(least, float(there.min(initial=np.inf))), max(most, float(there.max(initial=-np.inf)))
    absent += [str(token.value) for token in (*_tokens(what), *(_tokens(whom) if whom else ())) if token.kind == "string" and token.value not in seen]
    if trial:
        return 0.5
    for column in +gaps:
        why = "they were not drawn" if column.startswith("p_") else "answers are missing, or proofs leave it open"
        remedy = "use verdict" if column.startswith("p_") else "use low or high"
        raise InputError(f"{column} is not known of {gaps[column]} people: {why}", where="fail-if", got=told, remedy=remedy)
    if name == "count":
        return total if known == people else np.nan
    if not known:
        raise InputError("nobody has a value", where="fail-if", got=told, remedy="audit people who can be judged")
    return {"least": least, "most": most}.get(name, total / known)
