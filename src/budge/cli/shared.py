"""What several commands share: how people are read, and what `terminal` shows."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pandas as pd
import typer

from budge.cli.terminal import head, progress_bar, say, say_command, show_columns, show_table
from budge.errors import DataError, InputError, StorageError, nearest
from budge.frames import read_parquet

if TYPE_CHECKING:
    from budge.audit.gate import Gate
    from budge.audit.result import Audit
    from budge.models import Predictor
    from budge.wording import Wording

__all__ = [
    "Adjust", "Auditor", "Claim", "Condition", "FeatureLabels", "GroupLabels", "Harm", "Id", "Method", "Model", "OnInvalid", "Output",
    "PeopleName", "Population", "Purpose",
    "TargetName", "ThresholdReason", "as_typed", "gates_record", "grouped", "head", "labelled", "models_of", "people_of",
    "progress_bar", "read_people", "run_of", "same_people", "say", "say_command", "show_columns", "show_gates", "show_table",
    "tame", "wording_of",
]  # fmt: skip


#: Options that several commands have.
Claim = Annotated[Literal["below", "above"], typer.Option(help="The claim that is tested.")]
Method = Annotated[Literal["auto", "exact", "sample"], typer.Option(help="List points where there are few and draw otherwise; list only; draw only.")]
Adjust = Annotated[Literal["bh", "holm", "bonferroni", "none"], typer.Option(help="How adjusted p-values allow for the number of people.")]
Harm = Annotated[Literal["below", "above"] | None, typer.Option(help="Which verdict is harm.")]
OnInvalid = Annotated[Literal["error", "skip", "keep"], typer.Option(help="What happens with people who break the spec before they move.")]
Population = Annotated[str, typer.Option(help="outside (those who do not have the target yet), all, or a condition such as 'age < 30'.")]
Model = Annotated[list[str], typer.Option(metavar="FILE", help="A model file: .onnx, .skops, XGBoost .json/.ubj, LightGBM .txt; several as NAME=FILE.")]
Output = Annotated[Literal["auto", "label", "score", "probability"], typer.Option(help="What is read from a model.")]
Id = Annotated[str | None, typer.Option("--id", help="The column that names the people; it is not given to the model.")]

#: A condition of `--fail-if`.
Condition = typer.Option(
    metavar="CONDITION",
    help="Exit with 1 where this holds, such as \"share(verdict == 'below') > 0.05\", \"count(no_way) > 0\" or \"gap_low > 0.1\"; may repeat."
)  # fmt: skip

#: Words of the user for results: see `budge.Wording`.
PeopleName = Annotated[str, typer.Option(help="What the people are called, such as 'refused applicants'.")]
TargetName = Annotated[str, typer.Option(help="What the target means, such as 'approval'.")]
GroupLabels = Annotated[list[str] | None, typer.Option("--group-label", metavar="COLUMN:VALUE=WORDS", help="What a group is called; may repeat.")]
FeatureLabels = Annotated[list[str] | None, typer.Option("--feature-label", metavar="NAME=WORDS", help="What a feature is called; may repeat.")]
ThresholdReason = Annotated[str, typer.Option(help="Why this threshold; printed in the report.")]
Purpose = Annotated[str, typer.Option(help="What the audit is for; printed in the report.")]
Auditor = Annotated[str, typer.Option(help="Who made the audit; printed in the report.")]


def wording_of(
    people_name: str, target_name: str, group_label: Sequence[str] | None, feature_label: Sequence[str] | None, threshold_reason: str, purpose: str,
    auditor: str,
) -> Wording:  # fmt: skip
    """Return the words given on the command line."""
    from budge.wording import Wording

    groups, features = _group_labels(group_label or ()), _labels(feature_label or (), "--feature-label")
    return Wording(people_name, target_name, threshold_reason, purpose, auditor, groups, features)


def _labels(given: Sequence[str], where: str) -> dict[str, str]:
    """Read NAME=WORDS; the name may hold equals signs, as those of dummies do, the words none."""
    found: dict[str, str] = {}
    for text in given:
        name, sign, words = text.rpartition("=")
        if not sign or not name or not words:
            raise InputError("give a name and words", where=where, got=text, remedy=f"{where} NAME=WORDS")
        found[name] = words
    return found


def _group_labels(given: Sequence[str]) -> dict[str, dict[str, str]]:
    """Read COLUMN:VALUE=WORDS."""
    found: dict[str, dict[str, str]] = {}
    for name, words in _labels(given, "--group-label").items():
        column, sign, value = name.partition(":")
        if not sign or not column or not value:
            raise InputError("give a column, a value and words", where="--group-label", got=f"{name}={words}", remedy="--group-label sex:0=women")
        found.setdefault(column, {})[value] = words
    return found


def read_people(path: Path, label: str | None = None) -> pd.DataFrame:
    """Return a table from a CSV or Parquet file; `label`: the column that names the people."""
    if path.suffix.lower() in (".parquet", ".pq"):
        return labelled(read_parquet(path), label)
    from budge.spec import read_table

    return labelled(read_table(path, label=label), label)


def run_of(folder: Path) -> Audit:
    """Return a saved run; where there is none, the error tells how one is made from the shell."""
    from budge.audit.result import Audit

    try:
        return Audit.load(folder)
    except StorageError as error:
        if any(folder.glob("*")):
            raise
        remedy = "make one with budge audit SPEC PEOPLE --model FILE --target LABEL -o FOLDER"
        raise StorageError([replace(p, remedy=remedy) for p in error.problems]) from None


def as_typed(context: typer.Context) -> str:
    """Return the command as it was typed, so that a run can be repeated."""
    given = context.find_root().obj
    return shlex.join(["budge", *given]) if isinstance(given, tuple) else ""


def labelled(people: pd.DataFrame, column: str | None) -> pd.DataFrame:
    """Return the table with a column's values as people's labels; a name that two people share is an error."""
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
        remedy = "give a column in which all people differ, or leave --id out"
        raise DataError(f"{twice.nunique():,} names occur more than once", where=f"--id {column}", got=twice.iloc[0], remedy=remedy)
    return people.set_index(column)


def people_of(data: Path, drop: Sequence[str] | None, *, label: str | None = None) -> pd.DataFrame:
    """Return the table without the columns that are not for the model; `label`: the column that names the people."""
    people = read_people(data, label)
    gone = [c for c in drop or () if c not in people.columns]
    if gone:
        raise InputError("no such column", where="--drop", got=gone[0], remedy=nearest(gone[0], map(str, people.columns)))
    return people.drop(columns=list(drop or ()))


def models_of(given: Sequence[str], output: str, cutoff: float | None, trust: bool) -> dict[str, Predictor]:
    """Return the models of ``NAME=FILE``, or of a file that is called after itself; a lone one is called `model`."""
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


def same_people(found: Audit, table: pd.DataFrame) -> None:
    """Raise an error where these are not the people of a run: groups of other people would be groups of nobody."""
    from budge.audit.sources import make_source
    from budge.interaction import InteractionModel

    if found.info.get("spec") is None:
        return
    digest = make_source(InteractionModel.from_spec(found.info["spec"]), table, "keep").digest()
    if digest != found.info["data_digest"]:
        raise InputError(
            "these are not the people of the run: the digest differs", where="--data", got=digest,
            remedy=f"the run had {found.info['data_digest']}; columns that are not for the model are left out with --drop",
        )  # fmt: skip


def grouped(result: Audit, everything: pd.DataFrame, by: Sequence[str]) -> Audit:
    """Return the result with these columns as its groups, also those that the model does not get."""
    design = replace(result.design, groups=tuple(by))
    rows = {
        name: replace(own, groups=pd.DataFrame({c: everything[c].to_numpy()[own.place] for c in by}, index=own.index)) for name, own in result.rows.items()
    }
    return replace(result, rows=rows, design=design, info={**result.info, "design": design.to_dict()})


def tame(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a table for a CSV file in which a text that a spreadsheet would run as a formula is shown as a text."""
    return rows.map(lambda cell: f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell)


def gates_record(gates: Sequence[Gate]) -> list[dict[str, Any]]:
    """Return the gates as records."""
    return [{"condition": g.condition, "failed": g.failed, "numbers": g.numbers} for g in gates]


def show_gates(gates: Sequence[Gate]) -> None:
    """Print one line per gate, failed ones on standard error."""
    for found in gates:
        say(str(found), err=found.failed)
