"""``budge report``: a saved run as one file that a regulator can read and print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from budge.cli import echo_json
from budge.cli.models import Trust, models_of
from budge.cli.shared import (
    RUNS,
    Auditor,
    FeatureLabels,
    GroupLabels,
    Id,
    LevelLabels,
    Output,
    PeopleName,
    Project,
    Purpose,
    Read,
    TargetName,
    ThresholdReason,
    progress_bar,
    read_people,
    run_of,
    runs_of,
    same_people,
    say,
    without,
    wording_of,
)
from budge.errors import InputError, OutputExistsError, nearest
from budge.files import make_folder
from budge.stored import MEGABYTE, check_shape, parse_json, read_bytes

__all__ = ["register"]

MOST_RECORD, MOST_MEMORY = 64 * MEGABYTE, 180 * MEGABYTE  # bytes of a file, and of its values in memory


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("report")(_report)


def _report(
    run: Annotated[Path, typer.Argument(help=RUNS)],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file to write, or a folder for several targets; report.html in the run's folder unless given.")
    ] = None,
    data: Annotated[str | None, typer.Option(metavar="FILE", help="The people of the run, for --by and --model.")] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL", help="The model of the run, as for budge audit (of several: NAME=MODEL, each); repeats the audit and needs --data."),
    ] = None,
    by: Annotated[list[str] | None, typer.Option(help="Show shares by this column of the data; the columns of the run unless given.")] = None,
    why: Annotated[bool, typer.Option("--why/--no-why", help="With --model: relax each rule in turn and show which holds people back.")] = True,
    ablation: Annotated[Path | None, typer.Option(help="Show an ablation that `budge ablate --json` printed to this file.")] = None,
    sensitivity: Annotated[Path | None, typer.Option(help="Show what `budge sensitivity --json` printed to this file.")] = None,
    title: Annotated[str, typer.Option(help="What the report is called.")] = "",
    people_name: PeopleName = "",
    target_name: TargetName = "",
    group_label: GroupLabels = None,
    feature_label: FeatureLabels = None,
    level_label: LevelLabels = None,
    threshold_reason: ThresholdReason = "",
    purpose: Purpose = "",
    auditor: Auditor = "",
    output: Output = "auto",
    cutoff: Annotated[float | None, typer.Option(help="Turn the model's score into a label at this cutoff.")] = None,
    drop: Annotated[list[str] | None, typer.Option(help="A column of the data that is not for the model.")] = None,
    label: Id = None,
    read: Read = None,
    trust: Trust = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
    project: Project = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record instead of sentences.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Write a report of a saved run: one file, no network, to read and to print."""
    from budge.report.document import worded, write_report
    from budge.report.saved import ablation_from, sensitivity_from

    folders = runs_of(run)
    places = _places(folders, out)
    for place in places.values():
        if place.exists() and not overwrite:
            raise OutputExistsError("exists already", where=str(place), remedy="choose another name with --out, or --overwrite")
    if model and data is None:
        raise InputError("the people are needed with the model", where="--model", got=model, remedy="give --data, too")
    given = wording_of(people_name, target_name, group_label, feature_label, level_label, threshold_reason, purpose, auditor)
    if target_name and len(folders) > 1:
        raise InputError("names one of several targets", where="--target-name", got=target_name, remedy="leave it out, or report one run at a time")
    runs = {name: run_of(folder).whole() for name, folder in folders.items()}
    everything = None if data is None else read_people(data, label, read)
    nouns = {name: worded(found, given, by or (), people=everything, shell=True) for name, found in runs.items()}
    groups = {name: _groups(found, everything, by) for name, found in runs.items()}
    stress: dict[str, Any] = {"ablation": None, "sensitivity": None}
    if ablation is not None:
        stress["ablation"] = ablation_from(_record(ablation), where=str(ablation))
    if sensitivity is not None:
        stress["sensitivity"] = sensitivity_from(_record(sensitivity), where=str(sensitivity))
    if everything is not None:
        table = without(everything, drop)
        for name, found in runs.items():
            same_people(found, table)
            if model:
                runs[name] = _replayed(found, _models(model, found.models, trust=trust, output=output, cutoff=cutoff), table)
    with progress_bar("people, each rule relaxed", quiet=quiet or as_json or not (model and why) or ablation is not None) as progress:
        for name, found in runs.items():
            if out is not None and name:
                make_folder(out)
            write_report(
                found, places[name], by=groups[name], why=why, title=title, nouns=nouns[name], progress=progress, overwrite=overwrite, **stress
            )  # fmt: skip
    if as_json:
        records = {name: {"report": str(place), "bytes": place.stat().st_size, "people": len(runs[name].table)} for name, place in places.items()}
        echo_json(records.get("", {"targets": records}))
    for place in () if as_json or quiet else places.values():
        say(f"Wrote {place} ({place.stat().st_size / 1e6:.1f} MB).")


def _places(folders: Mapping[str, Path], out: Path | None) -> dict[str, Path]:
    """Return the file of each run's report; `out` is a file, or of several runs a folder."""
    if out is not None and "" not in folders and out.suffix:
        raise InputError("there is one report per target", where="--out", got=str(out), remedy="give a folder, or report one run at a time")
    return {name: folder / "report.html" if out is None else out / f"{name}.html" if name else out for name, folder in folders.items()}


def _record(path: Path) -> Any:
    data = read_bytes(path, MOST_RECORD, follow=True)
    try:
        found = parse_json(data, constants=True, most=MOST_MEMORY)
        check_shape(found, Any)
    except ValueError as error:
        raise InputError(f"is not a record in JSON: {error}", where=str(path), remedy="write it with --json") from None
    return found


def _groups(found: Any, everything: Any, by: Sequence[str] | None) -> list[Any]:
    if not by:
        return []
    if everything is None and all(column in dict(found.design.groups) for column in by):
        return list(by)
    if everything is None:
        raise InputError("groups need the people", where="--by", got=list(by), remedy="give --data")
    for column in by:
        if column not in everything.columns:
            raise InputError("no such column", where="--by", got=column, remedy=nearest(column, map(str, everything.columns)))
    return [everything[column] for column in by]


def _models(given: Sequence[str], names: Sequence[str], **options: Any) -> Any:
    """The models of the run by name."""
    found = models_of(given, options["output"], options["cutoff"], options["trust"])
    if len(names) == 1 and len(found) == 1:
        return {names[0]: next(iter(found.values()))}
    if set(found) != set(names):
        what = "the run has several models" if len(names) > 1 else "the run has one model"
        raise InputError(what, where="--model", got=list(given), remedy=" ".join(f"--model {n}=MODEL" for n in names))
    return found


def _replayed(found: Any, models: Any, table: Any) -> Any:
    """Return the run made again; groups by columns that the model does not get are those of the run."""
    own = tuple(group for group in found.design.groups if group[0] in table.columns)
    again = replace(found, design=replace(found.design, groups=own)).replay(models, table)
    rows = {name: replace(rows, groups=found.rows[name].groups) for name, rows in again.rows.items()}
    return replace(again, rows=rows, design=replace(again.design, groups=found.design.groups), info={**again.info, "design": found.info["design"]})
