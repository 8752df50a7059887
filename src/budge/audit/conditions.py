"""Conditions on the columns of a table, in the language of spec files: who is audited, and when a gate fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.errors import ExpressionError, InputError
from budge.expressions import parse, unknown_name
from budge.expressions.nodes import Text, walk

__all__ = ["evaluate", "where_true"]


def evaluate(text: str, table: pd.DataFrame, *, where: str, words: Mapping[str, tuple[str, ...]] | None = None) -> tuple[npt.NDArray[Any], bool]:
    """Return the value of an expression for each row of a table, and whether it is a condition.

    Parameters
    ----------
    words
        All levels that a column of texts can have, where that is known: a comparison with another one, which can never hold, is an error.
    """
    try:
        parsed = parse(text)
    except ExpressionError as error:
        hint = unknown_name("", text, map(str, table.columns), {})
        if "backticks" in hint:
            raise ExpressionError([replace(p, remedy=hint) for p in error.problems]).at(where) from None
        raise error.at(where) from None
    env: dict[Any, Any] = {}
    texts: dict[Any, tuple[npt.NDArray[np.intp], list[str]]] = {}
    columns = {str(c): c for c in table.columns}
    for layer, name in parsed.vars:
        if layer != "value" or name not in columns:
            known_levels = {n: _levels(table[columns[n]], (words or {}).get(n)) for _, n in parsed.vars if n in columns}
            raise InputError("no such column", where=where, got=name, remedy=unknown_name(name, text, columns, known_levels))
        cells = table[columns[name]]
        if cells.dtype.kind in "biuf":
            env[layer, name] = cells.to_numpy(dtype=float, na_value=np.nan)
            continue
        codes, found = pd.factorize(cells)
        if len(found) and all(isinstance(v, bool | np.bool_) for v in found):
            env[layer, name] = np.where(codes < 0, np.nan, np.asarray(found, dtype=float)[codes])
        else:
            texts[layer, name] = codes, [str(v) for v in found]
    # One order of all levels for all texts, whether they occur or not: so that two columns can be compared with each other.
    given = [node.value for node in walk(parsed.node) if isinstance(node, Text)]
    known = sorted({*given, *(v for _, own in texts.values() for v in own)})
    levels = {name: known for _, name in texts}
    possible = {name: (words or {}).get(name, known) for name in levels}
    for var, (codes, own) in texts.items():
        place = {level: float(k) for k, level in enumerate(known)}
        env[var] = np.where(codes < 0, np.nan, np.array([*(place[v] for v in own), np.nan])[codes])
    problems = parsed.check(possible, list(columns), ordered=())
    if problems:
        raise InputError([replace(p, where=f"{where}, {p.where}") for p in problems])
    try:
        values = parsed.evaluate(env, levels=levels, size=len(table))
    except ExpressionError as error:
        raise error.at(where) from None
    return np.broadcast_to(np.asarray(values), (len(table),)), parsed.is_boolean


def _levels(cells: pd.Series, words: tuple[str, ...] | None) -> list[object]:
    """Return the texts of a column: all that it can hold where that is known, else those that occur."""
    return [] if cells.dtype.kind in "biuf" else list(words) if words is not None else [v for v in pd.unique(cells) if isinstance(v, str)]


def where_true(text: str, table: pd.DataFrame, *, where: str, words: Mapping[str, tuple[str, ...]] | None = None) -> npt.NDArray[np.bool_]:
    """Return the rows for which a condition holds; `words`: all levels that a column of texts can have, as in `evaluate`.

    Examples
    --------
    >>> where_true("age < 30 and sex == 'f'", pd.DataFrame({"age": [20, 40, 25], "sex": ["f", "f", "m"]}), where="population").tolist()
    [True, False, False]
    """
    values, boolean = evaluate(text, table, where=where, words=words)
    if not boolean:
        raise InputError("is not a condition", where=where, got=text, remedy="compare a column with a value, e.g. age < 30")
    return np.asarray(values, dtype=bool)
