"""How results show themselves in a notebook: sentences, the first rows of a table, a figure. Everything is escaped."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from html import escape
from typing import Any

import pandas as pd

from budge.errors import BudgeError, printable
from budge.report.people import number

__all__ = ["show_html"]

#: Rows of a table that are shown.
MOST = 20
#: Colours are those of the notebook, so that its dark theme stays dark.
STYLE = (
    "<style>.budge-result table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.6em 0}"
    ".budge-result th,.budge-result td{padding:.25em .7em;border:0;border-bottom:1px solid #8884;text-align:left;white-space:nowrap}"
    ".budge-result thead th{border-bottom:2px solid #8888;font-weight:600;vertical-align:bottom}.budge-result .number{text-align:right}</style>"
)


def show_html(text: str, *, table: pd.DataFrame | None = None, figure: Callable[[], Any] | None = None) -> str:
    """A result as HTML: its sentences, the first rows of its table, and its figure where it has one.

    A figure that cannot be drawn (nobody was judged, the model is not at hand) is left out: the sentences say why.

    Examples
    --------
    >>> print(show_html("1 < 2"))
    <div class="budge-result tex2jax_ignore mathjax_ignore"><p>1 &lt; 2</p></div>
    """
    lines = "<br>".join(escape(printable(line)) for line in text.split("\n"))
    parts = [f"<p>{lines}</p>"]
    if table is not None and len(table.columns):
        parts.append(_rows(table))
    if figure is not None:
        with suppress(BudgeError):
            parts.append(figure().svg(standalone=False))
    # Names may hold dollars; they are names, not formulas.
    return f'<div class="budge-result tex2jax_ignore mathjax_ignore">{"".join(parts)}</div>'


def _rows(table: pd.DataFrame) -> str:
    """The first rows; pandas escapes them, and control characters are shown, not obeyed."""
    first = table.head(MOST).copy()
    for k in range(len(first.columns)):
        if first.iloc[:, k].dtype.kind not in "biufM":
            first.isetitem(k, [_shown(v) for v in first.iloc[:, k]])
    if not isinstance(first.index, pd.MultiIndex) and first.index.dtype.kind not in "biufM":
        first.index = pd.Index([_shown(v) for v in first.index], name=_shown(first.index.name), dtype=object, tupleize_cols=False)
    elif isinstance(first.index, pd.MultiIndex):
        first.index = pd.MultiIndex.from_tuples(
            [tuple(map(_shown, key)) for key in first.index], names=[_shown(name) for name in first.index.names]
        )
    first.columns = pd.Index([_shown(c) for c in first.columns], dtype=object, tupleize_cols=False)
    more = f"<p>… and {len(table) - MOST:,} more rows</p>" if len(table) > MOST else ""
    numeric = [first.iloc[:, k].dtype.kind in "iuf" for k in range(len(first.columns))]
    for k, of_numbers in enumerate(numeric):
        if of_numbers:
            first.isetitem(k, [number(value) for value in first.iloc[:, k]])
    page = first.to_html(escape=True, na_rep="–", max_cols=30, border=0)
    return f'{STYLE}<div style="overflow-x:auto">{_aligned(page, numeric)}</div>{more}'


def _aligned(page: str, numeric: list[bool]) -> str:
    """Return the table with its columns of numbers to the right; one that is cut for its width stays as it is."""
    rows = page.split("<tr")
    for k, row in enumerate(rows):
        if row.count("<td") == len(numeric):
            first, *cells = row.split("<td>")
            rows[k] = first + "".join(('<td class="number">' if right else "<td>") + cell for right, cell in zip(numeric, cells))
    return "<tr".join(rows)


def _shown(value: Any) -> Any:
    return printable(value) if isinstance(value, str) else value
