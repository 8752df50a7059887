"""What a person at a terminal sees: sentences and tables that fit, in colour. Elsewhere the same as plain lines, without escapes."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import IO

import pandas as pd
import typer

from budge.cli.layout import Column, bars, column, tabulate, wrap
from budge.errors import printable
from budge.progress import bar as progress_bar

__all__ = ["columns", "head", "in_colour", "progress_bar", "say", "say_command", "show_bars", "show_columns", "show_table"]

WIDEST = 120  # cells of a line, however wide the terminal is
_CODES = {"bold": "1", "none": "31", "below": "33", "above": "34", "dim": "2"}


def in_colour(stream: IO[str]) -> bool:
    """Return whether escapes may be written there: a terminal that obeys them, and nobody has asked for none (NO_COLOR)."""
    return stream.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")


def columns() -> int:
    """Return how many cells a line has: those of the terminal or of COLUMNS, 80 elsewhere."""
    return min(max(shutil.get_terminal_size((80, 24)).columns, 20), WIDEST)


def _painted(text: str, style: str) -> str:
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if text and style and in_colour(sys.stdout) else text


def say(text: object = "", *, err: bool = False, nl: bool = True, whole: bool = False, style: str = "", red: str = "") -> None:
    """Print a text, wrapped between words unless it is to stay `whole`; control characters in it are shown, not obeyed.

    What goes to standard error is wrapped on a terminal alone: elsewhere a message is one line. `red` is how an error begins.
    """
    plain = printable(str(text))
    lines = [plain] if whole or not nl or (err and not sys.stderr.isatty()) else wrap(plain, columns())
    if red and in_colour(sys.stderr):
        lines[0] = f"\x1b[1;31m{red}\x1b[0m{lines[0].removeprefix(red)}"
    for line in lines:
        typer.echo(line if err else _painted(line, style), err=err, nl=nl)


def say_command(text: str) -> None:
    """Print a command for the shell: a long one in lines that can be pasted as they are."""
    line = ""
    for word in re.findall(r"-\S* (?!-)(?:'[^']*'|[^ '])+|(?:'[^']*'|[^ '])+", printable(text).replace("\n", " ")):  # an option keeps its value
        if line and len(line) + len(word) + 3 > columns():
            typer.echo(f"{line} \\")
            line = f"    {word}"
        else:
            line = f"{line} {word}" if line else f"  {word}"
    typer.echo(line)


def head(text: str) -> None:
    """Print a heading below an empty line."""
    say()
    say(text, style="bold")


def show_columns(some: Sequence[Column], *, more: int = 0) -> None:
    """Print a table that fits, and how many rows it does not show."""
    first, *rest = tabulate(some, columns())
    typer.echo(_painted(first, "bold"))
    for line in rest:
        typer.echo(line)
    if more:
        say(f"  and {more:,} more")


def show_bars(rows: Sequence[tuple[str, int, str]], styles: Sequence[str] = ()) -> None:
    """Print counts with their shares and bars."""
    for (text, drawn), style in zip(bars(rows, columns()), styles or [""] * len(rows)):
        typer.echo(f"{text}  {_painted(drawn, style)}".rstrip() if drawn else text)


#: Columns that a narrow terminal goes without, the least needed first.
SPARE = ("extreme", "exactness", "lower", "upper", "unresolved", "p_value", "status", "method", "prediction", "n", "hits", "count")


def _spare(name: str, rank: int) -> int:
    """Return how easily a column is left out: by its name, else those further to the right first; the first two, rates and verdicts stay."""
    if rank < 2 or name in ("verdict", "rho", "ρ") or name.startswith("rate"):
        return 0
    return 100 + len(SPARE) - SPARE.index(name) if name in SPARE else rank


def show_table(rows: pd.DataFrame, *, most: int = 12, names: Mapping[str, str] | None = None, digits: Mapping[str, int] | None = None) -> None:
    """Print the first rows of a table; `names` says which columns are shown, the most important first, and what they are called."""
    known = {str(c): k for k, c in enumerate(rows.columns)}
    chosen = dict(names) if names is not None else {c: c for c in known}
    some = rows.head(most)
    made = [
        column(printable(called), some.iloc[:, known[c]].tolist(), digits=(digits or {}).get(c), spare=_spare(c, rank))
        for rank, (c, called) in enumerate(chosen.items())
        if c in known
    ]
    show_columns(made, more=max(len(rows) - most, 0))
