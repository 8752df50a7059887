"""How results show themselves in a notebook: sentences, the first rows of a table, a figure. Everything is escaped."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from html import escape
from typing import Any

import pandas as pd

from budge.errors import BudgeError, printable

__all__ = ["show_html"]

#: Rows of a table that are shown.
MOST = 20


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
    return f'<div style="overflow-x:auto">{first.to_html(escape=True, na_rep="–", max_cols=30, float_format=_number)}</div>{more}'


def _number(value: float) -> str:
    return f"{value:.6g}" if abs(value) < 1e6 else f"{value:,.0f}"


def _shown(value: Any) -> Any:
    return printable(value) if isinstance(value, str) else value
