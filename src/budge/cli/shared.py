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
from budge.errors import DataError, InputError, Problem, StorageError, nearest, together
from budge.files import near_file

if TYPE_CHECKING:
    from budge.audit.gate import Gate
    from budge.audit.result import Audit
    from budge.interaction import InteractionModel
    from budge.tables import How
    from budge.wording import Wording

__all__ = [
    "PEOPLE", "RUNS", "Adjust", "Auditor", "Claim", "Condition", "Data", "DataOption", "FeatureLabels", "GroupLabels", "Harm", "Id", "LevelLabels", "Method",
    "OnInvalid", "Output", "PeopleName", "Population", "Project", "Purpose", "Read",
    "TargetName", "ThresholdReason", "as_typed", "check_columns", "choices_of", "gates_record", "grouped", "head", "how_of", "labelled", "people_of",
    "progress_bar", "read_people", "run_of", "runs_of", "same_people", "say", "say_command", "say_target", "show_columns", "show_gates", "show_table",
    "spec_of", "without", "wording_of",
]  # fmt: skip


MOST_NAMED = 8  # runs that an error names
DRAFT = "is a draft that nobody has confirmed: go through its features, then take out the line `draft: true`"

#: Options that several commands have.
Claim = Annotated[Literal["below", "above"], typer.Option(help="The claim that is tested.")]
Method = Annotated[Literal["auto", "exact", "sample"], typer.Option(help="List points where there are few and draw otherwise; list only; draw only.")]
Adjust = Annotated[Literal["bh", "holm", "bonferroni", "none"], typer.Option(help="How adjusted p-values allow for the number of people.")]
Harm = Annotated[Literal["below", "above"] | None, typer.Option(help="Which verdict is harm.")]
OnInvalid = Annotated[Literal["error", "skip", "keep"], typer.Option(help="What happens with people who break the spec before they move.")]
Population = Annotated[str, typer.Option(help="outside (those who do not have the target yet), all, or a condition such as 'age < 30'.")]
Output = Annotated[Literal["auto", "label", "score", "probability"], typer.Option(help="What is read from a model.")]
PEOPLE = "The people: CSV of any layout, also packed, Parquet, Feather, Excel, JSON lines, or the address of a database."
RUNS = "The folder of a saved run, or one that holds the runs of several targets."
Data = Annotated[str, typer.Argument(metavar="DATA", help=PEOPLE)]
DataOption = Annotated[str, typer.Option("--data", metavar="FILE", help=PEOPLE)]
Read = Annotated[
    list[str] | None,
    typer.Option(
        "--read", metavar="KEY=VALUE",
        help="How the data is read if not as it looks: separator, encoding, decimal, header, names, missing, text, member, sheet, table, query; may repeat.",
    ),
]  # fmt: skip
Id = Annotated[str | None, typer.Option("--id", help="The column that names the people; it is not given to the model.")]

Project = Annotated[Path | None, typer.Option("--project", metavar="FILE", help="A file of options for what is not typed; budge.toml here unless given.")]

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
LevelLabels = Annotated[
    list[str] | None, typer.Option("--level-label", metavar="NAME:VALUE=WORDS", help="What a value of a feature is called; may repeat.")
]  # fmt: skip
ThresholdReason = Annotated[str, typer.Option(help="Why this threshold; printed in the report.")]
Purpose = Annotated[str, typer.Option(help="What the audit is for; printed in the report.")]
Auditor = Annotated[str, typer.Option(help="Who made the audit; printed in the report.")]


def wording_of(
    people_name: str, target_name: str, group_label: Sequence[str] | None, feature_label: Sequence[str] | None, level_label: Sequence[str] | None = None,
    threshold_reason: str = "", purpose: str = "", auditor: str = "",
) -> Wording:  # fmt: skip
    """Return the words given on the command line."""
    from budge.wording import Wording

    groups, levels = _value_labels(group_label or (), "--group-label", "sex:0=women"), _value_labels(level_label or (), "--level-label", "guarantor:0=without")
    return Wording(people_name, target_name, threshold_reason, purpose, auditor, groups, _labels(feature_label or (), "--feature-label"), levels)


def _labels(given: Sequence[str], where: str) -> dict[str, str]:
    """Read NAME=WORDS; the name may hold equals signs, as those of dummies do, the words none."""
    found: dict[str, str] = {}
    for text in given:
        name, sign, words = text.rpartition("=")
        if not sign or not name or not words:
            raise InputError("give a name and words", where=where, got=text, remedy=f"{where} NAME=WORDS")
        found[name] = words
    return found


def _value_labels(given: Sequence[str], where: str, example: str) -> dict[str, dict[str, str]]:
    """Read COLUMN:VALUE=WORDS."""
    found: dict[str, dict[str, str]] = {}
    for name, words in _labels(given, where).items():
        column, sign, value = name.partition(":")
        if not sign or not column or not value:
            raise InputError("give a column, a value and words", where=where, got=f"{name}={words}", remedy=f"{where} {example}")
        found.setdefault(column, {})[value] = words
    return found


def read_people(data: str | Path, label: str | None = None, read: Sequence[str] | None = None, drop: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the table of a file or a database; `label`: the column that names the people, `read`: choices of ``--read``, `drop`: columns to be there."""
    from budge.tables import load

    table = load(data, how_of(read), label)
    found: pd.DataFrame = together(lambda: labelled(table, label), lambda: check_columns(table, drop, "--drop"))[0]
    return found


def how_of(read: Sequence[str] | None) -> How:
    """Return the choices of ``--read KEY=VALUE``."""
    from budge.tables import How

    return How.of(choices_of(read))


def choices_of(read: Sequence[str] | None) -> dict[str, str]:
    """Return what ``--read KEY=VALUE`` gives for each key; `missing`, `text` and `names` may repeat."""
    given: dict[str, str] = {}
    for item in read or ():
        key, sign, value = item.partition("=")
        if not sign:
            raise InputError("give a key and a value", where="--read", got=item, remedy="--read missing=?")
        if key in given and key not in ("missing", "text", "names"):
            raise InputError("is given twice", where=f"--read {key}", got=[given[key], value], remedy="leave one of them out")
        given[key] = f"{given[key]},{value}" if key in given else value
    return given


def spec_of(path: Path, *, quiet: bool = False) -> InteractionModel:
    """Return the interaction model of a spec file; that it is a draft is stated on standard error."""
    from budge.interaction import InteractionModel

    found = InteractionModel.from_file(path)
    if found.draft and not quiet:
        say(f"budge: {path}: {DRAFT}", err=True)
    return found


def run_of(folder: Path, *, warn: bool = False) -> Audit:
    """Return a saved run; where there is none, the error tells how one is made from the shell. `warn` states that its model is a draft."""
    from budge.audit.result import Audit

    try:
        found = Audit.load(folder)
        if warn and any(note.where == "draft" for note in found.notes):
            say(f"budge: {folder}: its interaction model {DRAFT}, and audit again", err=True)
        return found
    except StorageError as error:
        inside = [str(inner) for name, inner in runs_of(folder).items() if name]
        if inside:
            raise StorageError("holds several runs", where=str(folder), remedy=f"give one of them: {', '.join(inside[:MOST_NAMED])}") from None
        if any(folder.glob("*")):
            raise
        near = "" if folder.exists() else near_file(folder)
        remedy = near if near.startswith("did you mean") else "make one with budge audit SPEC PEOPLE --model FILE --target LABEL -o FOLDER"
        raise StorageError([replace(p, remedy=remedy) for p in error.problems]) from None


def as_typed(context: typer.Context) -> str:
    """Return the command as it was typed, so that a run can be repeated."""
    given = context.find_root().obj
    from budge.tables import masked

    return masked(shlex.join(["budge", *given])) if isinstance(given, tuple) else ""


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


def people_of(data: str, drop: Sequence[str] | None, *, label: str | None = None, read: Sequence[str] | None = None) -> pd.DataFrame:
    """Return the table of a file without the columns that are not for the model; `label`: the column that names the people."""
    return without(read_people(data, label, read, drop), drop)


def without(people: pd.DataFrame, drop: Sequence[str] | None) -> pd.DataFrame:
    """Return the table without the columns that are not for the model."""
    check_columns(people, drop, "--drop")
    return people.drop(columns=list(drop or ()))


def check_columns(people: pd.DataFrame, named: Sequence[str] | None, where: str) -> None:
    """Raise an error that names the columns which are not there."""
    known = [str(column) for column in people.columns]
    InputError.raise_if(Problem(where, "no such column", column, nearest(column, known)) for column in named or () if column not in people.columns)


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
            remedy=f"the run had {found.info['data_digest']}; give --id and --drop as the audit had them",
        )  # fmt: skip


def grouped(result: Audit, everything: pd.DataFrame, by: Sequence[str]) -> Audit:
    """Return the result with these columns as its groups, also those that the model does not get."""
    design = replace(result.design, groups=tuple(by))
    rows = {
        name: replace(own, groups=pd.DataFrame({c: everything[c].to_numpy()[own.place] for c in by}, index=own.index)) for name, own in result.rows.items()
    }
    return replace(result, rows=rows, design=design, info={**result.info, "design": design.to_dict()})


def gates_record(gates: Sequence[Gate]) -> list[dict[str, Any]]:
    """Return the gates as records."""
    return [{"condition": g.condition, "failed": g.failed, "numbers": g.numbers} for g in gates]


def show_gates(gates: Sequence[Gate], *, target: str = "") -> None:
    """Print one line per gate, failed ones on standard error; `target` names the target where there are several."""
    for found in gates:
        say(f"{target}: {found}" if target else str(found), err=found.failed)


def say_target(name: str, *, first: bool) -> None:
    """Print a heading above the results of one of several targets."""
    if not first:
        say()
    say(f"Target: {name}", style="bold")


def runs_of(folder: Path) -> dict[str, Path]:
    """Return the folder of a run by the name ``""``, or the folders of several runs inside it by their names."""
    from budge.audit.loading import RECORD, runs_in

    inside = [] if (folder / RECORD).exists() else runs_in(folder)
    return {inner.name: inner for inner in inside} or {"": folder}
