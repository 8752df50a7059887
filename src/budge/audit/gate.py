"""Gates for continuous integration: a condition on the table that fails the run.

``share(verdict == 'below') > 0.05`` — with ``share``, ``count``, ``mean``, ``least`` and ``most`` over people.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from budge.errors import ExpressionError, InputError, nearest
from budge.expressions import parse

__all__ = ["Gate", "gate"]

OVER_PEOPLE = ("share", "count", "mean", "least", "most")


@dataclass(frozen=True)
class Gate:
    """Whether the condition holds, and with which numbers."""

    condition: str
    failed: bool
    numbers: str

    def __str__(self) -> str:
        return f"{'FAILED' if self.failed else 'passed'}: fail if {self.condition} ({self.numbers})"


def gate(table: pd.DataFrame, condition: str) -> Gate:
    """Evaluate a condition over the table of an audit.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"verdict": ["below", "above"], "rho": [0.0, 0.5]})
    >>> print(gate(rows, "share(verdict == 'below') > 0.05"))
    FAILED: fail if share(verdict == 'below') > 0.05 (0.5 > 0.05)
    """
    text, rest = "", condition
    while rest:
        name, inside, before, after = _first_call(rest)
        if name is None:
            text, rest = text + rest, ""
        else:
            text, rest = text + before + repr(_over_people(table, name, inside)), after
    try:
        parsed = parse(text)
    except ExpressionError as error:
        raise error.at("fail-if") from None
    if not parsed.is_boolean or parsed.vars:
        raise InputError(
            "is not a condition over people",
            where="fail-if",
            got=condition,
            remedy="write e.g. \"share(verdict == 'below') > 0.05\"",
        )
    return Gate(condition, bool(np.all(parsed.evaluate({}))), text)


def _first_call(text: str) -> tuple[str | None, str, str, str]:
    """The first aggregate in the text: its name, what is in its brackets, what stands before and after."""
    places = [(text.find(f"{name}("), name) for name in OVER_PEOPLE if f"{name}(" in text]
    if not places:
        return None, "", text, ""
    start, name = min(places)
    depth, quote = 0, ""
    for i in range(start + len(name), len(text)):
        c = text[i]
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
            if depth == 0:
                return name, text[start + len(name) + 1 : i], text[:start], text[i + 1 :]
    raise InputError("a bracket is not closed", where="fail-if", got=text)


def _over_people(table: pd.DataFrame, name: str, inside: str) -> float:
    try:
        parsed = parse(inside)
    except ExpressionError as error:
        raise error.at("fail-if") from None
    env, levels = {}, {}
    for layer, column in parsed.vars:
        if layer != "value" or column not in table.columns:
            raise InputError(
                "no such column in the table", where="fail-if", got=column, remedy=nearest(column, map(str, table.columns))
            )
        cells = table[column]
        if cells.dtype.kind in "biuf":
            env[layer, column] = cells.to_numpy(dtype=float)
        else:
            names = sorted(
                {str(v) for v in cells}
                | {"below", "above", "inconclusive", "ok", "fixed", "empty", "invalid_start", "exact", "sample"}
            )
            levels[column] = names
            env[layer, column] = np.array([names.index(str(v)) for v in cells], dtype=float)
    values = np.broadcast_to(np.asarray(parsed.evaluate(env, levels=levels), dtype=float), (len(table),))
    if name in ("share", "count") and not parsed.is_boolean:
        raise InputError(f"{name} counts people who meet a condition", where="fail-if", got=inside)
    if name == "count":
        return float(values.sum())
    if not len(values):
        return 0.0
    if name == "least":
        return float(np.nanmin(values))
    return float(np.nanmax(values) if name == "most" else np.nanmean(values))
