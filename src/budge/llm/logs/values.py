"""What a scorer's value says: hit, miss, or neither. Shared by all formats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from budge.errors import InputError

__all__ = ["hit_of", "ready"]

_DEFAULT: dict[Any, bool] = {"C": True, "I": False, 1: True, 0: False}


def ready(values: Mapping[Any, bool] | None) -> Mapping[Any, bool]:
    """The mapping of values to hits; one that names no hit, or something else than True and False, is refused."""
    if values is None:
        return _DEFAULT
    if not values or not all(isinstance(v, bool) for v in values.values()):
        raise InputError(
            "values map to True (hit) or False (miss)", where="values", got=dict(values), remedy='{"C": False, "I": True}'
        )
    return values


def hit_of(value: Any, values: Mapping[Any, bool]) -> tuple[bool | None, str]:
    """Hit, miss or neither, and why neither."""
    try:
        if value in values:  # 1, 1.0 and True are one key
            return values[value], ""
    except TypeError:  # a list or a dict is no value
        pass
    return None, f"scored {value!r:.80}, which is neither a hit nor a miss"
