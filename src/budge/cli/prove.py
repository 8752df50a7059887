"""``budge prove``: who can attain the target, who cannot whatever they do, and for whom that stays open."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from budge.cli import echo_json
from budge.cli.shared import Id, Model, OnInvalid, Population, models_of, people_of, progress_bar, say, show_table, tame
from budge.errors import OutputExistsError, StorageError

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("prove")(prove)


def prove(
    spec: Annotated[Path, typer.Argument(help="The spec file of the interaction model.")],
    data: Annotated[Path, typer.Argument(help="The people: a CSV or Parquet file.")],
    target: Annotated[str, typer.Option(help="A label, 'score >= 0.7', 'lower', 'higher' or 'different', or 'not' before one.")],
    model: Model,
    population: Population = "all",
    n: Annotated[int, typer.Option("-n", help="Draws per person before a proof is tried.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    seconds: Annotated[float | None, typer.Option(help="Seconds per proof at most; without it every run gives the same answer.")] = None,
    output: Annotated[str, typer.Option(help="What is read from the model: auto, label, score or probability.")] = "auto",
    cutoff: Annotated[float | None, typer.Option(help="Turn the model's score into a label at this cutoff.")] = None,
    drop: Annotated[list[str] | None, typer.Option(help="A column of the data that is not for the model, e.g. the outcome.")] = None,
    label: Id = None,
    on_invalid: OnInvalid = "error",
    jobs: Annotated[int, typer.Option(help="Worker processes; -1 for all cores.")] = 1,
    trust: Annotated[bool, typer.Option("--trust", help="Load a model file that can run code.")] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the table to this CSV file.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record instead of sentences.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Prove for every person whether some action leads to the target."""
    import budge
    from budge.targets import parse_target

    if out is not None and out.exists() and not overwrite:
        raise OutputExistsError("exists already", where=str(out), remedy="choose another file, or --overwrite")
    if out is not None and not out.absolute().parent.is_dir():
        raise StorageError("its folder does not exist", where=str(out), remedy="make the folder, or choose another file")
    im = budge.InteractionModel.from_file(spec)
    people = people_of(data, drop, label=label)
    named = models_of(model, output, cutoff, trust)
    classes = next((p.classes for p in named.values() if p.classes is not None), None)
    design = budge.Design(threshold=0, testing=False, on_invalid=on_invalid)
    with progress_bar("people", quiet=quiet or as_json) as progress:
        found = budge.prove(
            named, people, im, target=parse_target(target, classes=classes), n=n, seed=seed, population=population, seconds=seconds, n_jobs=jobs,
            progress=progress, design=design,
        )  # fmt: skip
    if out is not None:
        tame(found.table.reset_index(names="person")).to_csv(out, index=False)
    if as_json:
        echo_json(found.to_dict())
    elif not quiet:
        say(str(found))
        for note in found.audit.notes:
            say(str(note))
        show_table(found.table.reset_index(names="person"))
        if out is not None:
            say(f"Saved to {out}.")
