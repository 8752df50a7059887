"""What several commands share: how people are read, and what `terminal` shows."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pandas as pd
import typer

from budge.cli.terminal import progress_bar, say, show_table
from budge.errors import DataError, InputError, MissingDependencyError, StorageError, nearest

if TYPE_CHECKING:
    from budge.audit.result import Audit
    from budge.models import Predictor

__all__ = ["Id", "as_typed", "labelled", "models_of", "people_of", "progress_bar", "read_people", "run_of", "say", "show_table"]


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


def run_of(folder: Path) -> Audit:
    """A saved run; where there is none, how one is made from the shell."""
    from budge.audit.result import Audit

    try:
        return Audit.load(folder)
    except StorageError as error:
        if any(folder.glob("*")):
            raise
        remedy = "make one with budge audit SPEC PEOPLE --model FILE --target LABEL -o FOLDER"
        raise StorageError([replace(p, remedy=remedy) for p in error.problems]) from None


def as_typed(context: typer.Context) -> str:
    """The command as it was typed, so that a run can say how to repeat it."""
    given = context.find_root().obj
    return shlex.join(["budge", *given]) if isinstance(given, tuple) else ""


#: The option that names the people.
Id = Annotated[str | None, typer.Option("--id", help="The column that names the people; it is not given to the model.")]


def labelled(people: pd.DataFrame, column: str | None) -> pd.DataFrame:
    """The table with a column's values as people's labels; a name that two people share would name neither."""
    if column is None:
        return people
    if column not in people.columns:
        raise InputError("no such column", where="--id", got=column, remedy=nearest(column, map(str, people.columns)))
    names = people[column]
    nameless = int(names.isna().sum())
    if nameless:
        what = "1 person has no name" if nameless == 1 else f"{nameless:,} people have no name"
        raise DataError(what, where=f"--id {column}", remedy="fill the column, or leave --id out")
    twice = names[names.duplicated()]
    if len(twice):
        remedy = "give a column in which everybody differs, or leave --id out"
        raise DataError(f"{twice.nunique():,} names occur more than once", where=f"--id {column}", got=twice.iloc[0], remedy=remedy)
    return people.set_index(column)


def people_of(data: Path, drop: Sequence[str] | None, *, label: str | None = None) -> pd.DataFrame:
    """The table without the columns that are not for the model; `label`: the column that names the people."""
    people = labelled(read_people(data), label)
    gone = [c for c in drop or () if c not in people.columns]
    if gone:
        raise InputError("no such column", where="--drop", got=gone[0], remedy=nearest(gone[0], map(str, people.columns)))
    return people.drop(columns=list(drop or ()))


def models_of(given: Sequence[str], output: str, cutoff: float | None, trust: bool) -> dict[str, Predictor]:
    """``NAME=FILE``, or a file that is called after itself; a lone one is called `model`."""
    from budge.models import as_predictor

    found: dict[str, Predictor] = {}
    for item in given:
        name, sign, path = item.partition("=")
        if not sign or Path(item).exists():
            name, path = "model" if len(given) == 1 else Path(item).stem, item
        if name in found:
            raise InputError("two models have one name", where="--model", got=name, remedy="write NAME=FILE")
        found[name] = as_predictor(path, trust=trust, output=output, threshold=cutoff)  # type: ignore[arg-type]
    return found
