"""What several commands share: how people are read, and what `terminal` shows."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import typer

from budge.cli.terminal import progress_bar, say, show_table
from budge.errors import DataError, InputError, MissingDependencyError, StorageError, nearest

__all__ = ["as_typed", "people_of", "progress_bar", "read_people", "say", "show_table"]


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
            raise StorageError("there is no such file", where=str(path), remedy="look at its name and folder") from None
        except (OSError, ValueError) as error:
            raise DataError(f"cannot be read: {error}", where=str(path)) from error
    from budge.spec import read_table

    return read_table(path)


def as_typed(context: typer.Context) -> str:
    """The command as it was typed, so that a run can say how to repeat it."""
    given = context.find_root().obj
    return shlex.join(["budge", *given]) if isinstance(given, tuple) else ""


def people_of(data: Path, drop: Sequence[str] | None) -> pd.DataFrame:
    """The table without the columns that are not for the model."""
    people = read_people(data)
    gone = [c for c in drop or () if c not in people.columns]
    if gone:
        raise InputError("no such column", where="--drop", got=gone[0], remedy=nearest(gone[0], map(str, people.columns)))
    return people.drop(columns=list(drop or ()))
