"""``budge audit``: a model, people, an interaction model and a target; verdicts with guarantees."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from budge.cli import echo_json
from budge.cli.shared import Id, as_typed, labelled, models_of, people_of, progress_bar, read_people, say, show_table
from budge.errors import InputError, nearest

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("audit")(audit)


def audit(
    context: typer.Context,
    spec: Annotated[Path, typer.Argument(help="The spec file of the interaction model.")],
    data: Annotated[Path, typer.Argument(help="The people: a CSV or Parquet file.")],
    target: Annotated[str, typer.Option(help="A label, 'score >= 0.7', 'lower', 'higher' or 'different'.")],
    model: Annotated[
        list[str] | None,
        typer.Option(help="A model file: .onnx, .skops, XGBoost .json/.ubj, LightGBM .txt; several as NAME=FILE to compare them."),
    ] = None,
    predictions: Annotated[
        Path | None, typer.Option(help="Predictions for the points of `budge sample`, instead of a model.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the run; the same call resumes an unfinished one.")
    ] = None,
    threshold: Annotated[float, typer.Option(help="The threshold of the claim.")] = 0.1,
    alpha: Annotated[float, typer.Option(help="The error of a single verdict.")] = 0.05,
    claim: Annotated[str, typer.Option(help="below or above.")] = "below",
    n: Annotated[int | None, typer.Option("-n", help="Draws for each person; from the plan unless given.")] = None,
    width: Annotated[float | None, typer.Option(help="Plan n for intervals of at most this width.")] = None,
    margin: Annotated[float | None, typer.Option(help="Plan n to find people this far from the threshold.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all draws.")] = 0,
    population: Annotated[str, typer.Option(help="all, outside (not yet in the target), or a query such as 'age < 30'.")] = "all",
    method: Annotated[str, typer.Option(help="auto, exact or sample.")] = "auto",
    sequential: Annotated[
        bool, typer.Option("--sequential", help="Stop for each person as soon as the verdict is certain.")
    ] = False,
    output: Annotated[str, typer.Option(help="What is read from the model: auto, label, score or probability.")] = "auto",
    cutoff: Annotated[float | None, typer.Option(help="Turn the model's score into a label at this cutoff.")] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="A column of the data that is not for the model, e.g. the outcome.")
    ] = None,
    label: Id = None,
    by: Annotated[str | None, typer.Option(help="Also show verdicts by this column.")] = None,
    harm: Annotated[str | None, typer.Option(help="Which verdict is harm: below or above.")] = None,
    fail_if: Annotated[
        list[str] | None, typer.Option(help="Exit with 1 where this holds, e.g. \"share(verdict == 'below') > 0.05\".")
    ] = None,
    on_invalid: Annotated[str, typer.Option(help="People who break the spec before they move: error, skip or keep.")] = "error",
    max_unresolved: Annotated[float, typer.Option(help="The largest share of unanswered draws that is accepted.")] = 0.1,
    jobs: Annotated[int, typer.Option(help="Worker processes; -1 for all cores.")] = 1,
    trust: Annotated[bool, typer.Option("--trust", help="Load a model file that can run code.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a finished run in the folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record instead of sentences.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors and gates.")] = False,
) -> None:
    """Audit how a model's predictions respond to what people can do."""
    import budge
    from budge.audit.gate import gate
    from budge.audit.storage import RECORD
    from budge.errors import OutputExistsError
    from budge.models import PredictionFile
    from budge.targets import parse_target

    if not model and predictions is None:
        raise InputError("neither a model nor its predictions are given", remedy="give --model FILE or --predictions FILE")
    if model and predictions is not None:
        raise InputError("a model and its predictions are given", got=[*model, str(predictions)], remedy="leave out --model or --predictions")
    if out is not None and (out / RECORD).exists() and not overwrite:
        raise OutputExistsError("holds a finished run", where=str(out), remedy="choose another folder, or --overwrite")
    im = budge.InteractionModel.from_file(spec)
    people = people_of(data, drop, label=label)
    everything = labelled(read_people(data), label)
    if by is not None and by not in everything.columns:
        raise InputError("no such column", where="--by", got=by, remedy=nearest(by, map(str, everything.columns)))
    options: dict[str, Any] = {"output": output, "threshold": cutoff}
    named = (
        {"model": PredictionFile.read(predictions, **options)}
        if predictions is not None
        else models_of(model or [], output, cutoff, trust)
    )
    classes = next((p.classes for p in named.values() if p.classes is not None), None)
    aim = parse_target(target, classes=classes)
    with progress_bar("people", quiet=quiet or as_json) as progress:
        result = budge.audit(
            named, people, im, target=aim, threshold=threshold, alpha=alpha, claim=claim, n=n, width=width, margin=margin,  # type: ignore[arg-type]
            seed=seed, population=population, method=method, sequential=sequential, harm=harm, on_invalid=on_invalid,  # type: ignore[arg-type]
            max_unresolved=max_unresolved, n_jobs=jobs, journal=out, overwrite=overwrite, progress=progress,
            check=predictions is None,
        )  # fmt: skip
    result = replace(result, info={**result.info, "command": as_typed(context)})
    if out is not None:
        result.save(out, overwrite=True)
    gates = [gate(result.table, condition) for condition in fail_if or ()]
    if as_json:
        echo_json(
            {**result.to_dict(), "gates": [{"condition": g.condition, "failed": g.failed, "numbers": g.numbers} for g in gates]}
        )
    else:
        if not quiet:
            say(str(result))
            show_table(result.table.reset_index(names="person"))
            if by is not None:
                for name in result.models:
                    say(f"\nBy {by}{f', {name}' if len(result.models) > 1 else ''}:")
                    show_table(result.by(everything[by], model=name).reset_index())
            if out is not None:
                say(f"Saved to {out}.")
        for g in gates:
            say(str(g), err=g.failed)
    if any(g.failed for g in gates):
        raise typer.Exit(1)
