"""``budge select``: the most accurate model whose gaming is certified to be within a limit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from budge.cli import echo_json
from budge.cli.figures import check_figure, write_figure
from budge.cli.models import Trust, called, model_of
from budge.cli.shared import (
    DataOption,
    Id,
    OnInvalid,
    Output,
    Population,
    Read,
    people_of,
    progress_bar,
    say,
    show_table,
    spec_of,
)
from budge.errors import InputError, Problem, together

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("select")(_select)


def _select(
    spec: Annotated[Path, typer.Argument(help="The spec file of the interaction model.")],
    data: DataOption,
    model: Annotated[list[str], typer.Option(metavar="MODEL", help="A model, as for budge audit, and its accuracy on held-out data: bots.json=0.81")],
    target: Annotated[str, typer.Option(help="What a person would game for: a label, 'score >= 0.7'.")],
    limit: Annotated[float, typer.Option(help="The largest share of people who may be able to game.")] = 0.1,
    threshold: Annotated[float, typer.Option(help="Responsiveness from which a person can game.")] = 0.05,
    alpha: Annotated[float, typer.Option(help="The error of the certificate.")] = 0.05,
    n: Annotated[int | None, typer.Option("-n", help="Draws per person; from the plan unless given.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all draws.")] = 0,
    population: Population = "outside",
    with_convex: Annotated[bool, typer.Option("--convex", help="Also show what the convex relaxation would report.")] = False,
    output: Output = "auto",
    cutoff: Annotated[float | None, typer.Option(help="Turn scores into labels at this cutoff.")] = None,
    drop: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="A column of the data that is not for the models.")] = None,
    label: Id = None,
    read: Read = None,
    on_invalid: OnInvalid = "error",
    figure: Annotated[
        Path | None, typer.Option(help="Write accuracy against gaming: .svg, or .png and .pdf with the extra plot.")
    ] = None,
    trust: Trust = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the figure if it exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record instead of sentences.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Choose the most accurate model whose gaming is certified; exit with 1 if there is none."""
    from budge.audit.design import Design
    from budge.stress import convex, select
    from budge.targets import parse_target

    check_figure(figure, overwrite)
    offered = _offered(model)
    im, people, *loaded = together(
        lambda: spec_of(spec, quiet=quiet),
        lambda: people_of(data, drop, label=label, read=read),
        *(partial(model_of, path, output, cutoff, trust) for path, _ in offered.values()),
    )
    models = dict(zip(offered, loaded))
    aim = parse_target(target, classes=next((m.classes for m in models.values() if m.classes is not None), None))
    with progress_bar("people", quiet=quiet or as_json) as progress:
        result = select(
            models, people, im, accuracy={name: merit for name, (_, merit) in offered.items()}, target=aim, limit=limit, threshold=threshold,
            alpha=alpha, n=n, seed=seed, population=population, compare={"convex": convex(im)} if with_convex else None, progress=progress or False,
            design=Design(on_invalid=on_invalid),
        )  # fmt: skip
    if figure is not None:
        write_figure(figure, result.plot())
    if as_json:
        echo_json(result.to_dict())
    elif not quiet:
        say(str(result))
        say()
        table = result.table.rename(columns={"gaming_high": "gaming at most"})
        show_table(table, most=50, digits=dict.fromkeys(map(str, table.columns), 3))
    if not result.ok:
        raise typer.Exit(1)


def _offered(given: Sequence[str]) -> dict[str, tuple[str, float]]:
    """Return the file and the accuracy of each model by its name."""
    found: dict[str, tuple[str, float]] = {}
    problems = []
    for text in given:
        path, _, value = text.rpartition("=")
        try:
            merit = float(value)
        except ValueError:
            path = ""
        if path:
            found[called(path) if called(path) not in found else path] = path, merit
        else:
            problems.append(Problem("--model", "a model and its accuracy are expected", text, "write bots.json=0.81"))
    InputError.raise_if(problems)
    return found
