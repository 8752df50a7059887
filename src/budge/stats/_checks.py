"""Checks of arguments and the base of results, shared by `budge.stats` and `budge.plan`.

A design that makes no sense is refused before a number comes out of it: alpha as ``"5%"`` or ``True``, counts that are
fractional, more hits than draws.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from budge.errors import DesignError, nearest

Floats: TypeAlias = NDArray[np.float64]
Claim: TypeAlias = Literal["below", "above"]

_LARGEST = 2**53  # above it, a float no longer holds every integer


def refuse_first(bad: NDArray[np.bool_], values: NDArray[Any], what: str, where: str, remedy: str) -> None:
    """Raise an error about the first value that is bad, if there is one."""
    if bad.any():
        i = int(np.flatnonzero(bad.ravel())[0])
        raise DesignError(what, where=f"{where}[{i}]" if bad.ndim else where, got=plain(values.ravel()[i]), remedy=remedy)


def number(value: object, where: str, *, what: str = "a number") -> float:
    """Return the value as a float; text, booleans, NaN and containers are refused."""
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
    """Return a number strictly between 0 and 1; `zero` and `one` let the ends in."""
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
    """Return an array of numbers strictly between 0 and 1 (a scalar gives an array without dimensions)."""
    if np.ndim(value) == 0:  # type: ignore[arg-type]
        return np.asarray(fraction(value, where, zero=zero, one=one))
    raw = np.asarray(value)
    if raw.dtype.kind not in "iuf":
        raise DesignError(f"{where} must hold numbers", where=where, got=value, remedy="pass numbers between 0 and 1")
    result = raw.astype(np.float64)
    ok = (result > 0) & (result < 1) | (zero & (result == 0)) | (one & (result == 1))
    refuse_first(~ok, raw, f"{where} must lie between 0 and 1", where, "choose a value inside")
    return result


def whole(value: object, where: str, *, least: int = 1) -> int:
    """Return a whole number of at least `least`."""
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
    """Return whole numbers as float64, ready for special functions; the first that is wrong is named."""
    if isinstance(value, (str, bytes)) or np.ndim(value) == 0:  # type: ignore[arg-type]
        return np.asarray(float(whole(value, where, least=least)))
    raw = np.asarray(value)
    if raw.dtype.kind == "b":
        raise DesignError(f"{where} must hold counts, not truth values", where=where, got=value, remedy="sum them first")
    if raw.dtype.kind not in "iuf":  # an object array (a nullable column): its items are checked one by one
        raw = np.array([whole(item, f"{where}[{i}]", least=0) for i, item in enumerate(raw.ravel().tolist())]).reshape(raw.shape)
    result = raw.astype(np.float64)
    with np.errstate(invalid="ignore"):
        bad = ~((result >= least) & (result == np.floor(result)) & (result <= _LARGEST))
    refuse_first(bad, raw, f"{where} must hold whole numbers of at least {least}", where, "pass counts of draws")
    return result


def hits_of_n(hits: object, n: object) -> tuple[Floats, Floats]:
    """Return hits and draws, broadcast together; at least one draw each, never more hits than draws."""
    k, size = counts(hits, "hits"), counts(n, "n", least=1)
    try:
        k, size = np.broadcast_arrays(k, size)
    except ValueError:
        what = f"hits and n have shapes that do not fit: {k.shape} and {size.shape}"
        raise DesignError(what, where="hits", remedy="one n for each count of hits") from None
    refuse_first(k > size, k, "more hits than draws", "hits", "n counts all draws")
    return k, size


def with_missing(hits: object, n: object, unresolved: object) -> tuple[Floats, Floats, Floats]:
    """Return hits, draws and unresolved answers, broadcast together and consistent: n counts all draws."""
    k, size = hits_of_n(hits, n)
    k, size, missing = np.broadcast_arrays(k, size, counts(unresolved, "unresolved"))
    if (k + missing > size).any():
        what, remedy = "more hits and unresolved answers than draws", "n counts all draws, also the unresolved"
        raise DesignError(what, where="unresolved", got=plain(missing), remedy=remedy)
    return k, size, missing


def values_of(values: object, where: str = "values") -> Floats:
    """Return a flat array of finite numbers, at least one."""
    raw = np.asarray(values)
    if raw.dtype.kind not in "biuf":
        raise DesignError(f"{where} must hold numbers", where=where, got=values, remedy="pass an array of numbers")
    flat = raw.astype(np.float64).ravel()
    if not flat.size:
        raise DesignError(f"{where} is empty: nothing was drawn", where=where, got=values, remedy="draw at least once")
    refuse_first(~np.isfinite(flat), raw, f"{where} must be finite", where, "count answers that are missing as unresolved")
    return flat


def one_of(value: object, where: str, known: Iterable[str]) -> str:
    """Return a word out of a list; the nearest known one is suggested."""
    names = list(known)
    if not isinstance(value, str) or value not in names:
        raise DesignError(f"unknown {where}", where=where, got=value, remedy=nearest(value, names))
    return value


def claim_of(value: object) -> Claim:
    """Return `below` or `above`."""
    return "below" if one_of(value, "claim", ("below", "above")) == "below" else "above"


def asked(threshold: object, alpha: object, claim: object) -> tuple[float, float, Claim]:
    """Return what a test is about: threshold, error and claim."""
    return fraction(threshold, "threshold"), fraction(alpha, "alpha"), claim_of(claim)


def plain(value: Any) -> Any:
    """Return plain Python for arrays, numpy numbers and records; infinities as None, since JSON has none."""
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def unwrap(values: NDArray[Any]) -> Any:
    """Return a Python scalar where the caller gave scalars, the array otherwise."""
    return values.item() if values.ndim == 0 else values


def signed(value: float) -> str:
    """Return a change with its sign; a minus is a minus, not a hyphen.

    Examples
    --------
    >>> signed(-0.25), signed(0.5)
    ('−0.25', '+0.5')
    """
    text = f"{value:+.4g}"
    return f"−{text[1:]}" if text.startswith("-") else text


def percent(value: float) -> str:
    """Return 0.05 as "5 %", without needless digits."""
    return f"{round(100 * value, 6):g} %"


class Record:
    """Base of results, which are frozen dataclasses. `derived` names the properties that belong to the record."""

    derived: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the record: fields and derived properties as plain Python."""
        names = (*(field.name for field in fields(self)), *self.derived)  # type: ignore[arg-type]
        return {name: plain(getattr(self, name)) for name in names}

    def _repr_html_(self) -> str:
        from budge.report.notebook import show_html

        return show_html(str(self), figure=getattr(self, "plot", None))


class Ends(Record):
    """Base of results with the ends `low` and `high`: they unpack as these two."""

    low: Any
    high: Any

    def __iter__(self) -> Iterator[Any]:
        return iter((self.low, self.high))
