"""What a score means: hit, miss, or neither. Shared by logs, judges that give numbers, and the metric inside Inspect."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from budge.errors import InputError

__all__ = ["Meaning", "meaning_of"]

#: Return hit, miss or neither for a value of a score, and the reason for neither.
Meaning = Callable[[Any], tuple[bool | None, str]]
_DEFAULT: dict[Any, bool] = {"C": True, "I": False, 1: True, 0: False}
_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0}  # Inspect's letters as numbers; N is no answer
_SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">=": lambda value, cutoff: value >= cutoff, ">": lambda value, cutoff: value > cutoff,
    "<=": lambda value, cutoff: value <= cutoff, "<": lambda value, cutoff: value < cutoff,
}  # fmt: skip


def meaning_of(values: Mapping[Any, bool] | None, cutoff: float | str | None) -> Meaning:
    """Return the function that reads a score: by its values, or by a cut-off such as 0.5, ">= 0.5" or "< 3"."""
    if cutoff is not None:
        if values is not None:
            raise InputError("give values or a cut-off, not both", where="cutoff", got=cutoff, remedy="leave one of them out")
        return _cut(cutoff)
    table = _DEFAULT if values is None else values
    if not table or not all(isinstance(v, bool) for v in table.values()):
        raise InputError("values map to True (hit) or False (miss)", where="values", got=dict(table), remedy='{"C": False, "I": True}')

    def read(value: Any) -> tuple[bool | None, str]:
        try:
            if value in table:  # 1, 1.0 and True are one key
                return table[value], ""
        except TypeError:  # a list or a dict is no value
            pass
        return None, f"scored {value!r:.80}, which is neither a hit nor a miss"

    return read


def _cut(cutoff: float | str) -> Meaning:
    found = re.fullmatch(r"\s*(>=|<=|>|<)?\s*(\S+)\s*", str(cutoff))
    try:
        if isinstance(cutoff, bool) or found is None:
            raise ValueError
        sign, limit = found[1] or ">=", float(found[2])
        if not math.isfinite(limit):
            raise ValueError
    except ValueError:
        raise InputError("a cut-off is a number", where="cutoff", got=cutoff, remedy='0.5 (a hit from 0.5 on), or "< 0.5"') from None

    def read(value: Any) -> tuple[bool | None, str]:
        number = _LETTERS.get(value, value) if isinstance(value, str) else value
        if not isinstance(number, int | float) or math.isnan(number):
            return None, f"scored {value!r:.80}, which is no number"
        return _SIGNS[sign](float(number), limit), ""

    return read
