"""Stress tests that were printed with ``--json``, read back for a report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from budge.errors import InputError

if TYPE_CHECKING:
    from budge.stress import Ablation, Sensitivity

__all__ = ["ablation_from", "sensitivity_from"]


def ablation_from(record: Any, *, where: str = "ablation") -> Ablation:
    """Return what `Ablation.to_dict` wrote."""
    from budge.stress import Ablation

    _checked(record, ("info", "ranking", "table", "left_out"), where, "budge ablate --json")
    ranking = _numbers(pd.DataFrame(record["ranking"]), ("gain", "low", "high", "before", "after", "size_ratio"))
    return Ablation(_people(record["table"]), ranking, record["info"], tuple(record["left_out"]))


def sensitivity_from(record: Any, *, where: str = "sensitivity") -> Sensitivity:
    """Return what `Sensitivity.to_dict` wrote; the axes of a grid are not in it, so that each member stands by itself."""
    from budge.stress import Sensitivity

    _checked(record, ("info", "people", "table"), where, "budge sensitivity --json")
    return Sensitivity(_people(record["table"]), _people(record["people"]), record["info"])


def _people(rows: Any) -> pd.DataFrame:
    table = pd.DataFrame(rows)
    table = table.set_index("person") if "person" in table.columns else table
    return _numbers(table, [c for c in table.columns if c in ("rho", "low", "high", "before", "after", "delta", "rho_min", "rho_max")])


def _numbers(table: pd.DataFrame, columns: Any) -> pd.DataFrame:
    for column in columns:
        if column in table.columns:
            table[column] = pd.to_numeric(table[column])
    return table


def _checked(record: Any, keys: tuple[str, ...], where: str, command: str) -> None:
    if not isinstance(record, Mapping) or any(key not in record for key in keys):
        missing = [key for key in keys if not isinstance(record, Mapping) or key not in record]
        raise InputError("is not the record of such a test", where=where, got=f"no {missing[0]}", remedy=f"write it with {command}")
