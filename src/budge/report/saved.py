"""Stress tests that were printed with ``--json``, read back for a report."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pandas as pd

from budge.errors import BudgeError, InputError
from budge.stored import COUNT, MAYBE_COUNT, Rule, check_shape

if TYPE_CHECKING:
    from budge.stress import Ablation, Sensitivity

__all__ = ["ablation_from", "sensitivity_from"]


def _number(low: float, high: float) -> Rule:
    def holds(value: Any) -> bool:
        return value is None or (type(value) in (int, float) and low <= value <= high)

    return Rule(f"nothing, or a number from {low:g} to {high:g}", holds)


_SHARE, _CHANGE, _TIMES = _number(0, 1), _number(-1, 1), _number(0, math.inf)
_OPEN = Rule("a number between 0 and 1", lambda value: type(value) is float and 0 < value < 1)
_THRESHOLD = Rule("a number from 0 to 1", lambda value: type(value) in (int, float) and 0 <= value <= 1)
_CELL = str | int | float | bool | None
_VALUES = Rule("nothing, or a list of values", lambda value: value is None or (type(value) is list and all(isinstance(v, _CELL) for v in value)))
_INFO = {"target": str, "threshold": _THRESHOLD, "alpha": _OPEN, "people": COUNT, "asked": COUNT, str: Any}
_GAIN = {"gain": _CHANGE, "low": _CHANGE, "high": _CHANGE, "before": _SHARE, "after": _SHARE, "size_ratio": _TIMES}
_ABLATION = {
    "info": _INFO | {"name": str},
    "ranking": [_GAIN | {
        "relaxation": str, "kind": str, "rule": str, "superset": bool, "newly_reachable": COUNT, "seen_only_after": COUNT, "below_before": COUNT,
        "below_after": COUNT, "compared": COUNT, "note": str, "approximate": bool, str: _CELL,
    }],
    "table": [{
        "person": _CELL, "relaxation": str, "status": str, "before": _SHARE, "after": _SHARE, "delta": _CHANGE, "low": _CHANGE, "high": _CHANGE,
        "way_before": bool, "newly_reachable": bool, "seen_only_after": bool, "size_ratio": _TIMES, "exactness": str, str: _CELL,
    }],
    "left_out": [str], str: Any, "needs": [{
        "relaxation": str, "features": [str], "kind": Rule("only, higher, lower or some", lambda value: value in ("only", "higher", "lower", "some")),
        "old": _VALUES, "new": _VALUES, "people": COUNT, "able": COUNT, "listed": bool,
    }],
}  # fmt: skip
_SENSITIVITY = {
    "info": _INFO | {"members": [str]},
    "people": [{"person": _CELL, "rho_min": _SHARE, "rho_max": _SHARE, str: _CELL}],
    "table": [{
        "person": _CELL, "member": str, "status": str, "n": MAYBE_COUNT, "hits": MAYBE_COUNT, "unresolved": MAYBE_COUNT, "rho": _SHARE, "low": _SHARE,
        "high": _SHARE, "verdict": str | None, str: _CELL,
    }],
    str: Any,
}  # fmt: skip


def ablation_from(record: Any, *, where: str = "ablation") -> Ablation:
    """Return what `Ablation.to_dict` wrote."""
    from budge.stress import Ablation
    from budge.stress.needs import Need

    with _record(where, "budge ablate --json"):
        check_shape(record, _ABLATION)
        names = [row["relaxation"] for row in record["ranking"]]
        _check_names(names, [row["relaxation"] for row in record["table"]], record["info"]["people"])
        for row in (*record["ranking"], *record["table"]):
            _check_order(row, "low", "high")
        ranking = _numbers(pd.DataFrame(record["ranking"]), ("gain", "low", "high", "before", "after", "size_ratio"))
        needs = tuple(Need.of(row) for row in record["needs"])
        if not {need.relaxation for need in needs} <= set(names) or any(not 0 < need.people <= need.able <= record["info"]["people"] for need in needs):
            raise ValueError("what new ways need is about other relaxations or more people than are listed")
        if any(len(values) != len(need.features) for need in needs for values in (need.old, need.new) if values is not None):
            raise ValueError("what new ways need has other values than features")
        return Ablation(_people(record["table"]), ranking, record["info"], tuple(record["left_out"]), needs)


def sensitivity_from(record: Any, *, where: str = "sensitivity") -> Sensitivity:
    """Return what `Sensitivity.to_dict` wrote; the axes of a grid are not in it, so that each member stands by itself."""
    from budge.stress import Sensitivity

    with _record(where, "budge sensitivity --json"):
        check_shape(record, _SENSITIVITY)
        _check_names(record["info"]["members"], [row["member"] for row in record["table"]], record["info"]["people"])
        for row in record["table"]:
            _check_order(row, "low", "high")
            _check_order(row, "hits", "n")
        for row in record["people"]:
            _check_order(row, "rho_min", "rho_max")
        return Sensitivity(_people(record["table"]), _people(record["people"]), record["info"])


@contextmanager
def _record(where: str, command: str) -> Iterator[None]:
    try:
        yield
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, BudgeError):
            raise
        raise InputError(f"is not the record of such a test: {error}", where=where, remedy=f"write it with {command}") from None


def _check_names(names: list[str], used: list[str], people: int) -> None:
    """Raise a `ValueError` where rows are about what is not listed, or more than people."""
    if len(set(names)) < len(names) or not set(used) <= set(names):
        raise ValueError("rows are about members or relaxations that are not listed, or listed twice")
    if used and max(Counter(used).values()) > people:
        raise ValueError(f"there are more rows than people ({people:,})")


def _check_order(row: Mapping[str, Any], low: str, high: str) -> None:
    if row[low] is not None and row[high] is not None and row[low] > row[high]:
        raise ValueError(f"{low} is larger than {high} in a row ({row[low]} and {row[high]})")


def _people(rows: Any) -> pd.DataFrame:
    table = pd.DataFrame(rows)
    table = table.set_index("person") if "person" in table.columns else table
    return _numbers(table, [c for c in table.columns if c in ("rho", "low", "high", "before", "after", "delta", "rho_min", "rho_max")])


def _numbers(table: pd.DataFrame, columns: Any) -> pd.DataFrame:
    for column in columns:
        if column in table.columns:
            table[column] = pd.to_numeric(table[column])
    return table
