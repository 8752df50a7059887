"""What every function of `budge.stats` and `budge.plan` asks of its arguments, in one place.

A design that makes no sense is refused before a number comes out of it: alpha as ``"5%"`` or ``True``, counts that are
fractional, more hits than draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from budge.errors import DesignError, nearest

Floats: TypeAlias = NDArray[np.float64]
Claim: TypeAlias = Literal["below", "above"]
Scalar = TypeVar("Scalar", float, int)

_LARGEST = 2**53  # above it, a float no longer holds every integer


def number(value: object, where: str, *, what: str = "a number") -> float:
    """The value as a float; text, booleans, NaN and containers are refused."""
    if isinstance(value, str):
        raise DesignError(f"{where} must be {what}, not text", where=where, got=value, remedy=_from_text(value, what))
    if isinstance(value, (bool, np.bool_)):
        raise DesignError(f"{where} must be {what}, not a truth value", where=where, got=value, remedy=f"write {what}")
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return number(value.item(), where, what=what)
    try:
        result = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise DesignError(f"{where} must be {what}", where=where, got=value, remedy=f"write {what}") from None
    if math.isnan(result):
        raise DesignError(f"{where} is not a number (NaN)", where=where, got=value, remedy=f"write {what}")
    return result


def _from_text(value: str, what: str) -> str:
    text = value.strip()
    try:
        meant = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return f"write {what}"
    return f"write {meant:g}"


def fraction(value: object, where: str, *, zero: bool = False, one: bool = False) -> float:
    """A number strictly between 0 and 1; `zero` and `one` let the ends in."""
    what = "a number between 0 and 1"
    result = number(value, where, what=what)
    if not ((0 < result < 1) or (zero and result == 0) or (one and result == 1)):
        ends = "" if zero or one else "strictly "
        raise DesignError(f"{where} must lie {ends}between 0 and 1", where=where, got=value, remedy=_scale(result, where))
    return result


def _scale(value: float, where: str) -> str:
    if 1 < value < 100:
        return f"write {value / 100:g} for {value:g} percent"
    return f"choose {where} inside (0, 1), for example 0.05"


def fractions(value: object, where: str, *, zero: bool = False, one: bool = False) -> Floats:
    """An array of numbers strictly between 0 and 1 (a scalar gives an array without dimensions)."""
    if np.ndim(value) == 0:  # type: ignore[arg-type]
        return np.asarray(fraction(value, where, zero=zero, one=one))
    raw = np.asarray(value)
    if raw.dtype.kind not in "iuf":
        raise DesignError(f"{where} must hold numbers", where=where, got=value, remedy="pass numbers between 0 and 1")
    result = raw.astype(np.float64)
    ok = (result > 0) & (result < 1) | (zero & (result == 0)) | (one & (result == 1))
    if not ok.all():
        i = int(np.flatnonzero(~ok.ravel())[0])
        raise DesignError(
            f"{where} must lie between 0 and 1", where=f"{where}[{i}]", got=raw.ravel()[i].item(), remedy="choose a value inside"
        )
    return result


def whole(value: object, where: str, *, least: int = 1) -> int:
    """One whole number of at least `least`."""
    what = f"a whole number of at least {least}"
    result = number(value, where, what=what)
    if not math.isfinite(result) or result != math.floor(result):
        raise DesignError(f"{where} must be a whole number", where=where, got=value, remedy=f"round it: {what} is needed")
    if result < least:
        raise DesignError(f"{where} must be at least {least}", where=where, got=value, remedy=f"choose {what}")
    if result > _LARGEST:
        raise DesignError(f"{where} is beyond 2^53", where=where, got=value, remedy="choose a smaller number")
    return int(result)


def counts(value: object, where: str, *, least: int = 0) -> Floats:
    """Whole numbers as float64, ready for special functions; names the first that is wrong."""
    if isinstance(value, (str, bytes)) or np.ndim(value) == 0:  # type: ignore[arg-type]
        return np.asarray(float(whole(value, where, least=least)))
    raw = np.asarray(value)
    if raw.dtype.kind == "b":
        raise DesignError(f"{where} must hold counts, not truth values", where=where, got=value, remedy="sum them first")
    if raw.dtype.kind not in "iuf":
        raw = _from_objects(raw, where)
    result = raw.astype(np.float64)
    with np.errstate(invalid="ignore"):
        bad = ~((result >= least) & (result == np.floor(result)) & (result <= _LARGEST))
    if bad.any():
        i = int(np.flatnonzero(bad.ravel())[0])
        raise DesignError(
            f"{where} must hold whole numbers of at least {least}",
            where=f"{where}[{i}]",
            got=raw.ravel()[i].item(),
            remedy="pass counts of draws",
        )
    return result


def _from_objects(raw: NDArray[Any], where: str) -> NDArray[Any]:
    """Object arrays (nullable columns) whose items are all whole numbers; anything else is named."""
    values = [float(whole(item, f"{where}[{i}]", least=0)) for i, item in enumerate(raw.ravel().tolist())]
    return np.array(values).reshape(raw.shape)


def hits_of_n(hits: object, n: object) -> tuple[Floats, Floats]:
    """Hits and draws, broadcast together; at least one draw each, never more hits than draws."""
    k, size = counts(hits, "hits"), counts(n, "n", least=1)
    try:
        k, size = np.broadcast_arrays(k, size)
    except ValueError:
        raise DesignError(
            f"hits and n have shapes that do not fit: {k.shape} and {size.shape}",
            where="hits",
            remedy="one n for each count of hits",
        ) from None
    if (k > size).any():
        i = int(np.flatnonzero((k > size).ravel())[0])
        raise DesignError(
            "more hits than draws",
            where="hits" if k.ndim == 0 else f"hits[{i}]",
            got=int(k.ravel()[i]),
            remedy=f"at most n = {int(size.ravel()[i])}",
        )
    return k, size


def one_of(value: object, where: str, known: Iterable[str]) -> str:
    """A word out of a list; the nearest known one is suggested."""
    names = list(known)
    if not isinstance(value, str) or value not in names:
        raise DesignError(f"unknown {where}", where=where, got=value, remedy=nearest(value, names))
    return value


def claim_of(value: object) -> Claim:
    """`below` or `above`."""
    return "below" if one_of(value, "claim", ("below", "above")) == "below" else "above"


def plain(value: Any) -> Any:
    """Arrays and numpy numbers as Python would write them; infinities as None, since JSON has none."""
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def unwrap(values: NDArray[Any]) -> Any:
    """A Python scalar where the caller gave scalars, the array otherwise."""
    return values.item() if values.ndim == 0 else values


def percent(value: float) -> str:
    """0.05 as "5 %", without needless digits."""
    return f"{round(100 * value, 6):g} %"
