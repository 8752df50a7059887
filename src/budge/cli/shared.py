"""What several commands share: tables, models, progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import typer

from budge.errors import DataError, InputError, MissingDependencyError, StorageError

__all__ = ["people_of", "progress_bar", "read_people", "show_table"]


def read_people(path: Path) -> pd.DataFrame:
    """A table from a CSV or Parquet file."""
    if path.suffix.lower() in (".parquet", ".pq"):
        try:
            return pd.read_parquet(path)
        except ImportError as error:
            raise MissingDependencyError(
                "Parquet needs pyarrow", where=str(path), remedy="pip install 'budge[parquet]'"
            ) from error
        except FileNotFoundError:
            raise StorageError("there is no such file", where=str(path)) from None
        except (OSError, ValueError) as error:
            raise DataError(f"cannot be read: {error}", where=str(path)) from error
    from budge.spec import read_table

    return read_table(path)


@contextmanager
def progress_bar(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A bar with rate and time left on a terminal; nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def update(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield update


def show_table(rows: pd.DataFrame, *, most: int = 12) -> None:
    """A readable table on the terminal; control characters in names are shown, not obeyed."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from budge.errors import printable

    shown = Table(box=None, pad_edge=False, header_style="bold")
    for column in rows.columns:
        right = rows[column].dtype.kind in "iuf"
        shown.add_column(escape(printable(str(column))), justify="right" if right else "left")
    for _, row in rows.head(most).iterrows():
        shown.add_row(*(escape(printable(_cell(v))) for v in row))
    Console(highlight=False, width=None if sys.stdout.isatty() else 140).print(shown)
    if len(rows) > most:
        typer.echo(f"… and {len(rows) - most:,} more")


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def people_of(data: Path, drop: Sequence[str] | None) -> pd.DataFrame:
    """The table without the columns that are not for the model."""
    people = read_people(data)
    gone = [c for c in drop or () if c not in people.columns]
    if gone:
        raise InputError("no such column", where="--drop", got=gone[0])
    return people.drop(columns=list(drop or ()))
