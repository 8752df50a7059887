"""People in a report: everybody as compact columns, numbers and labels as texts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from budge.audit.result import Audit
from budge.errors import printable
from budge.wording import Wording, percent, shown

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["at_most", "breakable", "columns_of", "decimals", "joined", "number", "steps"]

LONG_WORD = 20  # characters of a name that may wrap
TINY = 1e-6  # what is smaller is written with its power of ten

EXTREME_WORDS = {"": "", "none": "no way at all", "every": "every way"}
MOST_WITNESSES = 3_000_000  # characters of witnesses in the table of everybody


def number(value: Any) -> str:
    """Return a number to three figures, whole ones whole: by the rule of the page's script, so that it reads alike with and without it.

    Examples
    --------
    >>> number(0.03125), number(-0.5), number(0.000085), number(1.2e-9), number(1234)
    ('0.0313', '−0.5', '0.000085', '1.2e-9', '1,234')
    """
    if value is None or value is pd.NA or value != value:
        return "–"
    v = float(f"{float(value):.6g}") if not float(value).is_integer() else float(value)  # what the file holds
    sign, v = "−" if v < 0 else "", abs(v)
    if v.is_integer() and v < 1e15:
        return f"{sign}{int(v):,}"
    if v >= 1000:
        return f"{sign}{v:,.0f}"
    exact, figures = Decimal(v), 1 if v < TINY else 2
    rounded = exact.quantize(Decimal(1).scaleb(exact.adjusted() - figures), rounding=ROUND_HALF_UP)
    if v < TINY:
        digits = rounded.scaleb(-rounded.adjusted())
        return f"{sign}{digits:.1f}e{rounded.adjusted()}"
    return f"{sign}{rounded:f}".rstrip("0").rstrip(".")


def at_most(bound: float, alpha: float, about: str = "") -> str:
    """Return what draws without a hit show of responsiveness: the one-sided bound, which is the one that decides. A shown interval is two-sided.

    Examples
    --------
    >>> at_most(0.010002, 0.05)
    'ρ is at most 0.01 (one-sided, 95 %)'
    """
    return f"ρ is at most {about}{number(bound)} (one-sided, {percent(1 - alpha)})"


def decimals(value: Any) -> str:
    """Return a share for a column: three decimals, more where these would be all or nothing and it is not; by the rule of the page's script.

    Examples
    --------
    >>> decimals(0.39), decimals(0), decimals(0.0001), decimals(0.99999), decimals(None), decimals(0.0625)
    ('0.390', '0.000', '0.0001', '0.99999', '–', '0.063')
    """
    if value is None or value is pd.NA or value != value:
        return "–"
    v = float(f"{float(value):.6g}")  # what the file holds
    text = f"{Decimal(v).quantize(Decimal('0.001'), rounding=ROUND_HALF_UP):f}"
    return text if text not in ("0.000", "1.000") or v in (0, 1) else number(v) if v < 0.5 else f"{1 - float(f'{1 - v:.1g}'):.15g}"


def breakable(text: str) -> Markup:
    """Return a name as markup that may wrap between its words.

    Examples
    --------
    >>> breakable("HasGuarantor>=1 <b>"), breakable("0.467 to 0.819")
    (Markup('Has<wbr>Guarantor&gt;=<wbr>1 &lt;b&gt;'), Markup('0.467 to 0.819'))
    """
    from markupsafe import Markup

    return Markup("<wbr>").join(re.split(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[_=/])(?=\w)|(?<=\.)(?=[^\W\d])", printable(text)))


def joined(text: str) -> Markup:
    """Return a text as markup in which no line ends before a sign of per cent, at an equals sign or at an arrow; long names may wrap behind underscores.

    Examples
    --------
    >>> joined("23 % of <b> = 1"), joined("a_b of income_of_the_household")
    (Markup('23&nbsp;% of &lt;b&gt;&nbsp;=&nbsp;1'), Markup('a_b of income_<wbr>of_<wbr>the_<wbr>household'))
    """
    from markupsafe import Markup

    tied = printable(text).replace(" %", "\u00a0%").replace(" = ", "\u00a0=\u00a0").replace(" → ", "\u00a0→\u00a0")
    return Markup("&nbsp;").join(Markup("").join(_wrapping(word) for word in re.split(r"(\s+)", part)) for part in tied.split("\u00a0"))


def _wrapping(word: str) -> Markup:
    from markupsafe import Markup, escape

    return escape(word) if len(word) <= LONG_WORD else Markup("<wbr>").join(re.split(r"(?<=_)(?=\w)", word))


def steps(moves: Sequence[Sequence[Any]], nouns: Wording) -> tuple[tuple[str, str, str], ...]:
    """Return what a witness changes, as texts."""
    return tuple((nouns.feature(f), nouns.value(f, old), nouns.value(f, new)) for f, old, new in moves)


def columns_of(audit: Audit, moved: Mapping[str, Mapping[int, Any]], nouns: Wording) -> dict[str, Any]:
    """Return everybody, column by column: numbers to six figures, words as codes into short lists. `moved` is by row."""
    names: list[str] = []
    place: dict[str, int] = {}
    models = []
    room = MOST_WITNESSES
    for name in audit.models:
        rows = audit.of_model(name)
        record: dict[str, Any] = {"name": shown(name), "label": [_label(v) for v in rows.index]}
        for column in ("prediction", "status", "method", "exactness", "verdict"):
            codes, values = pd.factorize(np.array([shown(v) for v in rows[column]] + [""], dtype=object)[:-1])
            record[column] = {"names": list(values), "codes": codes.tolist()}
        record["extreme"] = {"names": list(EXTREME_WORDS.values()), "codes": [list(EXTREME_WORDS).index(word) for word in rows["extreme"]]}
        for column in ("n", "hits"):
            record[column] = rows[column].astype(int).tolist()
        for column in ("rho", "low", "high", "p_value", "p_adjusted"):
            record[column] = [_short(v) for v in rows[column].tolist()]
        if all(v is None for v in record["p_value"]):
            del record["p_value"], record["p_adjusted"]
        found = moved.get(name, {})
        moves = []
        for at in range(len(rows)):
            each = [_step(step, names, place) for step in steps(found.get(at, ()), nouns)]
            room -= 4 + sum(len(a) + len(b) + 8 for _, a, b in each)
            moves.append(each if each else 0)
        if room > 0 and any(moves):
            record["moves"] = moves
        models.append(record)
    return {"models": models, "features": names}


def _step(step: tuple[str, str, str], names: list[str], place: dict[str, int]) -> list[Any]:
    feature = step[0]
    if feature not in place:
        place[feature] = len(names)
        names.append(feature)
    return [place[feature], step[1], step[2]]


def _label(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if isinstance(plain, int) and not isinstance(plain, bool) and abs(plain) < 2**53 else shown(plain)


def _short(value: float) -> float | None:
    if value != value:
        return None
    short = float(f"{value:.6g}")
    return int(short) if short.is_integer() else short
