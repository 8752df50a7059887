"""What a person at a terminal sees: progress with rate and time left, tables, colours. Elsewhere plain lines, without escapes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import pandas as pd
import typer

from budge.errors import printable

__all__ = ["Pace", "console", "in_colour", "progress_bar", "say", "show_table"]

#: Seconds between two lines of progress where there is no terminal.
EVERY = 10.0
_STYLES = {"below": "bold red", "above": "cyan", "inconclusive": "dim", "at the threshold": "dim"}


def in_colour(stream: IO[str]) -> bool:
    """Whether escapes may be written there: a terminal that obeys them, and nobody has asked for none (NO_COLOR)."""
    return stream.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")


def say(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text; control characters in it are shown, not obeyed."""
    typer.echo(printable(str(text)), err=err, nl=nl)


def console(stream: IO[str]) -> Any:
    """Rich's console on a stream: with colours or without any escape."""
    from rich.console import Console

    coloured = in_colour(stream)
    wide = None if stream.isatty() else 140
    return Console(file=stream, highlight=False, width=wide, force_terminal=coloured, color_system="auto" if coloured else None)


class Pace:
    """How fast the work goes and how long it still takes, from what was done since the first look: a resumed run starts late.

    A total of 0 says that nobody knows where the end is.
    """

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.what, self.clock = what, clock
        self.began, self.first, self.done, self.total = clock(), None, 0, 0  # type: float, int | None, int, int

    def see(self, done: int, total: int) -> None:
        """Take note of how much is done."""
        if self.first is None:
            self.began, self.first = self.clock(), done
        self.done, self.total = done, total

    @property
    def rate(self) -> float | None:
        """A second; None until something was done."""
        spent = self.clock() - self.began
        new = self.done - (self.first or 0)
        return new / spent if new > 0 and spent > 0 else None

    def __str__(self) -> str:
        rate = self.rate
        if rate is None:
            return ""
        speed = f"{rate:,.0f} {self.what}/s" if rate >= 10 else f"{rate:.2g} {self.what}/s"
        return f"{speed}, {_time((self.total - self.done) / rate)} left" if self.total else speed


def _time(seconds: float) -> str:
    """A time that a person reads: 42 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


@contextmanager
def progress_bar(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A bar with rate and time left on a terminal, a line now and then elsewhere; nothing if quiet."""
    if quiet:
        yield None
        return
    pace = Pace(what)
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield _lines(pace)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[pace]}"))
    with Progress(*columns, console=_bar_console(), transient=True) as bar:
        task = bar.add_task(what, total=None, pace="")

        def update(done: int, total: int) -> None:
            pace.see(done, total)
            bar.update(task, completed=done, total=total or None, pace=str(pace))

        yield update


def _bar_console() -> Any:
    """On a terminal the bar moves even where no colours are wanted: it is drawn without them."""
    from rich.console import Console

    return Console(file=sys.stderr, force_terminal=True, no_color=not in_colour(sys.stderr))


def _lines(pace: Pace) -> Callable[[int, int], None]:
    last = pace.clock()

    def update(done: int, total: int) -> None:
        nonlocal last
        pace.see(done, total)
        if pace.clock() - last >= EVERY and (done < total or not total):
            last = pace.clock()
            say(f"{done:,} of {total:,} {pace.what}: {pace}" if total else f"{done:,} {pace.what}: {pace}", err=True)

    return update


#: Columns that a narrow terminal goes without, the least needed first; the ends of an interval go together.
SPARE = (
    ("extreme",), ("exactness",), ("lower", "upper"), ("unresolved",), ("p_value",), ("p_adjusted",), ("status",), ("method",), ("prediction",),
    ("n",), ("hits",), ("mean_rho",), ("count",), ("verdicts",), ("low", "high"),
)  # fmt: skip


def fitting(rows: pd.DataFrame, width: int) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows with as many columns as fit, and the names of those left out: a number is never cut in two."""
    wide = {c: max([len(printable(str(c))), *(len(printable(_cell(v))) for v in rows[c])]) for c in rows.columns}
    hidden: list[str] = []
    for names in SPARE:
        if sum(wide[c] + 2 for c in rows.columns if c not in hidden) - 2 <= width:
            break
        hidden += [name for name in names if name in wide]
    return rows.drop(columns=hidden), hidden


def show_table(rows: pd.DataFrame, *, most: int = 12, total: int | None = None) -> None:
    """A readable table; verdicts are coloured on a terminal, and a narrow one is told which columns it does not see."""
    from rich.markup import escape
    from rich.table import Table

    screen = console(sys.stdout)
    total, rows = len(rows) if total is None else total, rows.head(most)
    rows, hidden = fitting(rows, screen.width) if rows.columns.is_unique else (rows, [])
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for k, column in enumerate(rows.columns):
        right = rows.iloc[:, k].dtype.kind in "iuf"
        shown.add_column(
            escape(printable(str(column))), justify="right" if right else "left", overflow="fold", no_wrap=right or column in ("verdict", "method")
        )
    for row in rows.itertuples(index=False, name=None):
        cells = [escape(printable(_cell(value)).replace("\n", "\\n")) for value in row]
        shown.add_row(*(f"[{_STYLES[cell]}]{cell}[/]" if cell in _STYLES else cell for cell in cells))
    screen.print(shown)
    if total > most:
        say(f"… and {total - most:,} more")
    if hidden:
        say(f"(not shown on {screen.width} columns: {', '.join(hidden)}; the saved run and --json have them)")


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
