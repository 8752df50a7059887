"""``budge audit``: a model, people, an interaction model and a target; verdicts with guarantees."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from budge.cli import echo_json
from budge.cli.interrupts import kept
from budge.cli.models import MODEL, Trust, models_of
from budge.cli.shared import (
    PEOPLE,
    Adjust,
    Auditor,
    Claim,
    Condition,
    FeatureLabels,
    GroupLabels,
    Harm,
    Id,
    LevelLabels,
    Method,
    OnInvalid,
    Output,
    PeopleName,
    Population,
    Project,
    Purpose,
    Read,
    TargetName,
    ThresholdReason,
    as_typed,
    gates_record,
    grouped,
    how_of,
    progress_bar,
    read_people,
    say_target,
    show_gates,
    spec_of,
    without,
    wording_of,
)  # fmt: skip
from budge.errors import InputError, Problem, StorageError, nearest, together

if TYPE_CHECKING:
    import pandas as pd

    from budge.audit.result import Audit
    from budge.interaction import InteractionModel
    from budge.targets import Target
    from budge.wording import Wording

__all__ = ["register"]

IN_MEMORY = 200_000_000  # bytes of a file that is read at once


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("audit")(audit)


def audit(
    context: typer.Context,
    spec: Annotated[Path, typer.Argument(help="The spec file of the interaction model.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help=f"{PEOPLE} A folder or a quoted pattern of Parquet files is read part by part.")],
    target: Annotated[
        list[str],
        typer.Option(
            metavar="TARGET",
            help="A label, 'score >= 0.7', 'lower', 'higher' or 'different', or 'not' before one; several, best as NAME=TARGET, make one run each.",
        ),
    ],
    model: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL", help=f"{MODEL}; several as NAME=MODEL to compare them."),
    ] = None,
    predictions: Annotated[
        Path | None, typer.Option(help="Predictions for the points of `budge sample`, instead of a model.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the run; the same call resumes an unfinished one.")
    ] = None,
    threshold: Annotated[float, typer.Option(help="The threshold of the claim; 0 asks who has no way at all.")] = 0.1,
    alpha: Annotated[float, typer.Option(help="The error of a single verdict.")] = 0.05,
    claim: Claim = "below",
    n: Annotated[int | None, typer.Option("-n", help="Draws per person; from the plan unless given.")] = None,
    width: Annotated[float | None, typer.Option(help="Plan n for intervals of at most this width.")] = None,
    margin: Annotated[float | None, typer.Option(help="Plan n to find people this far from the threshold.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all draws.")] = 0,
    population: Population = "outside",
    method: Method = "auto",
    sequential: Annotated[
        bool, typer.Option("--sequential", help="Stop for each person as soon as the claim is shown or given up.")
    ] = False,
    prove: Annotated[bool, typer.Option("--prove", help="Settle by the model's structure who has no way at all.")] = False,
    prove_seconds: Annotated[float | None, typer.Option("--prove-seconds", help="Seconds per proof at most; without it runs repeat.")] = None,
    output: Output = "auto",
    cutoff: Annotated[float | None, typer.Option(help="Turn the model's score into a label at this cutoff.")] = None,
    drop: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="A column of the data that is not for the model, e.g. the outcome.")] = None,
    label: Id = None,
    read: Read = None,
    by: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="A column of groups, whose shares and differences are reported; may repeat.")] = None,
    adjust: Adjust = "bh",
    harm: Harm = None,
    people_name: PeopleName = "",
    target_name: TargetName = "",
    group_label: GroupLabels = None,
    feature_label: FeatureLabels = None,
    level_label: LevelLabels = None,
    threshold_reason: ThresholdReason = "",
    purpose: Purpose = "",
    auditor: Auditor = "",
    fail_if: Annotated[list[str] | None, Condition] = None,
    on_invalid: OnInvalid = "error",
    max_unresolved: Annotated[float, typer.Option(help="The largest share of unanswered draws that is accepted.")] = 0.1,
    jobs: Annotated[int, typer.Option(help="Worker processes; -1 for all cores.")] = 1,
    engine: Annotated[str | None, typer.Option(help="Where the work is done: serial, processes, dask:ADDRESS, ray:ADDRESS (dask and ray alone: here).")] = None,
    trust: Trust = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in the folder, once the new one is finished.")] = False,
    project: Project = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record instead of sentences.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors and gates.")] = False,
) -> None:
    """Audit how a model's predictions respond to what people can do."""
    import budge
    from budge.audit.gate import check_gate, gate
    from budge.audit.several import check_folder, run_targets
    from budge.audit.storage import RECORD
    from budge.cli.answers import audit_record, show_run
    from budge.errors import OutputExistsError
    from budge.models import PredictionFile
    from budge.wording import check_names

    if not model and predictions is None:
        raise InputError("neither a model nor its predictions are given", remedy="give --model MODEL or --predictions FILE")
    if prove_seconds is not None and not prove:
        raise InputError("limits proofs, and none are asked for", where="--prove-seconds", got=prove_seconds, remedy="add --prove")
    if model and predictions is not None:
        raise InputError("a model and its predictions are given", got=[*model, str(predictions)], remedy="leave out --model or --predictions")
    if out is not None and (out / RECORD).exists() and not overwrite:  # before anything is read
        raise OutputExistsError("holds a finished run", where=str(out), remedy="choose another folder, or --overwrite")
    options: dict[str, Any] = {"output": output, "threshold": cutoff}
    wording, design, im, (people, everything, known), named = together(
        lambda: wording_of(people_name, target_name, group_label, feature_label, level_label, threshold_reason, purpose, auditor),
        lambda: budge.Design(
            threshold=threshold, alpha=alpha, claim=claim, n=n, width=width, margin=margin, seed=seed, population=population, method=method,
            sequential=sequential, harm=harm, adjust=adjust, on_invalid=on_invalid, max_unresolved=max_unresolved, prove=prove, prove_seconds=prove_seconds,
        ),
        lambda: spec_of(spec, quiet=quiet),
        lambda: _people(data, drop, label, read),
        lambda: (
            models_of(model or [], output, cutoff, trust)
            if predictions is None
            else {"model": PredictionFile.read(predictions, **options)}
        ),
    )
    groups = list(dict.fromkeys(by or ()))
    check_one = partial(
        check_gate, people=_first_rows(people, everything), groups=[g for g in groups if g in known], models=len(model or [1]), threshold=threshold,
        levels=None if everything is None else _levels(im, everything),
    )  # fmt: skip
    together(
        lambda: check_names(wording, im, known if everything is None else everything, shell=True),
        *(partial(_check_group, column, known) for column in groups),
        *(partial(check_one, condition) for condition in fail_if or ()),
    )
    classes = next((p.classes for p in named.values() if p.classes is not None), None)
    targets = _targets(target, classes, wording)
    own = [column for column in groups if everything is None or column in people.columns]
    design = design.but(groups=own)
    places = {asked.name: out if out is None or len(targets) == 1 else out / asked.name for asked in targets}
    if out is not None and len(targets) > 1:
        check_folder(out, list(places))
    if out is not None and not overwrite and all(place is not None and (place / RECORD).exists() for place in places.values()):
        raise OutputExistsError("holds a finished run", where=str(out), remedy="choose another folder, or --overwrite")

    def finish(found: Audit, words: Wording, place: Path | None) -> Audit:
        found = replace(found, info={**found.info, "command": as_typed(context), "wording": words.to_dict()})
        if groups != own and everything is not None:
            found = grouped(found, everything, groups)
        if place is not None:
            found.save(place, overwrite=True)
        return found

    with progress_bar("people", quiet=quiet or as_json) as progress, kept(out):
        designs, executions = {}, {}
        for asked in targets:
            words = replace(wording, target_name=asked.called)
            inner = replace(words, group_labels={})  # these may be about columns that are not for the model
            designs[asked.name], place = design.but(target=asked.target), places[asked.name]
            executions[asked.name] = budge.Execution(
                n_jobs=jobs, engine=engine, journal=place, overwrite=overwrite, progress=progress or False, check=predictions is None,
                finish=partial(finish, words=words, place=place), wording=inner,
            )  # fmt: skip
        results = run_targets(named, people, im, designs, executions)  # saved before the gates: a condition that cannot be read costs no run
    gates = {name: [gate(result, condition, people=everything) for condition in fail_if or ()] for name, result in results.items()}
    if as_json:
        records = {name: {**audit_record(result), "gates": gates_record(gates[name])} for name, result in results.items()}
        echo_json({"targets": records} if len(records) > 1 else next(iter(records.values())))
    else:
        for k, (name, result) in enumerate(results.items()):
            if not quiet:
                if len(results) > 1:
                    say_target(name, first=not k)
                place = places[name]
                show_run(result, groups, shlex.quote(str(place)) if place is not None else "")
            show_gates(gates[name], target=name if len(results) > 1 else "")
    if any(g.failed for found in gates.values() for g in found):
        raise typer.Exit(1)


class _Asked(NamedTuple):
    name: str  # of the run's folder, where there are several targets
    called: str  # in sentences
    target: Target


def _targets(given: Sequence[str], classes: Any, wording: Wording) -> list[_Asked]:
    """Return the targets that are typed, each as TARGET or NAME=TARGET; problems of all of them are raised together."""
    from budge.audit.several import check_targets
    from budge.targets import parse_target

    found, problems = list[_Asked](), list[Problem]()
    for text in given:
        named = None if classes is not None and text in map(str, classes) else re.match(r"([^\W_][\w -]*?)\s*=(?!=)\s*(.+)", text)
        name, aim = (named[1], named[2]) if named else ("", text)
        try:
            found.append(_Asked(re.sub(r"[^\w.-]+", "-", name or text).strip("-."), name.replace("_", " "), parse_target(aim, classes=classes)))
        except InputError as error:
            problems += [replace(p, where="--target") for p in error.problems]
    InputError.raise_if(problems)
    if len(found) == 1:
        return [found[0]._replace(called=wording.target_name or found[0].called)]
    if wording.target_name:
        remedy = 'leave it out (--target-name "" where a project file has it) and write --target NAME=TARGET'
        raise InputError("names one of several targets", where="--target-name", got=wording.target_name, remedy=remedy)
    names = [asked.name for asked in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError("two targets have one name", where="--target", got=twice, remedy="write --target NAME=TARGET")
    check_targets(names)
    return found


def _people(data: str, drop: list[str] | None, label: str | None, read: list[str] | None) -> tuple[Any, pd.DataFrame | None, list[str]]:
    """Return the people for the audit, the table with all their columns where it is in memory, and the names of the columns."""
    from budge.people import People
    from budge.tables import is_address

    path = Path(data)
    if is_address(data) or (path.is_file() and path.stat().st_size < IN_MEMORY):
        everything = read_people(data, label, read, drop)
        return without(everything, drop), everything, list(map(str, everything.columns))
    if not path.exists() and not any(sign in data for sign in "*?["):
        raise StorageError("there is no such file", where=data, remedy="look at its name and folder")
    people = People.of(data, id=label, drop=drop or (), read=asdict(how_of(read)))
    return people, None, list(people.columns)


def _check_group(column: str, known: Sequence[str]) -> None:
    if column not in known:
        raise InputError("no such column", where="--by", got=column, remedy=nearest(column, known))


def _levels(im: InteractionModel, everything: pd.DataFrame) -> set[str]:
    """Return all texts that people have in any column, or can have."""
    declared = {str(level) for feature in im.features for level in feature.levels or ()}
    return declared | {str(v) for c in everything if everything[c].dtype.kind not in "biuf" for v in everything[c].dropna().unique()}


def _first_rows(people: Any, everything: pd.DataFrame | None) -> pd.DataFrame:
    """Return some of the people with all their columns."""
    if everything is not None:
        return everything
    found: pd.DataFrame = people.read(people.parts[0])
    return found
