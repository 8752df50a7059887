"""``budge ablate``: which constraint is to blame?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from budge.cli import echo_json
from budge.cli.figures import check_figure, write_figure
from budge.cli.layout import Column, cell, column, figure, interval_of
from budge.cli.models import MODEL, Trust, model_of
from budge.cli.shared import (
    DataOption,
    Id,
    OnInvalid,
    Output,
    Population,
    Project,
    Read,
    people_of,
    progress_bar,
    say,
    show_columns,
    spec_of,
)
from budge.errors import InputError, together

if TYPE_CHECKING:
    from budge.stress import Ablation

__all__ = ["register"]

MOST = 50  # relaxations that are shown
DILUTED = (
    "Mean ρ can fall although nobody loses a way: relaxing a rule adds points, and if most of them miss the target, the share that attains it is diluted."
)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("ablate")(_ablate)


def _ablate(
    spec: Annotated[Path, typer.Argument(help="The spec file of the interaction model.")],
    data: DataOption,
    model: Annotated[str, typer.Option(metavar="MODEL", help=f"{MODEL}.")],
    target: Annotated[str, typer.Option(help="A label, 'score >= 0.7', 'lower', 'higher' or 'different', or 'not' before one.")],
    relax: Annotated[list[str] | None, typer.Option(metavar="NAME", help="One of the relaxations by name; all of them unless given; may repeat.")] = None,
    method: Annotated[Literal["both", "paired"], typer.Option(help="List or draw both sets, or draw the relaxed one alone: the paper's probe.")] = "both",
    stuck: Annotated[
        int, typer.Option(help="Also the smallest sets of up to so many relaxations that free those who are stuck.")
    ] = 0,
    prove: Annotated[bool, typer.Option("--prove", help="With --stuck: settle by the model's structure who is stuck and whom a set frees.")] = False,
    threshold: Annotated[float, typer.Option(help="The threshold below which people are counted.")] = 0.1,
    alpha: Annotated[float, typer.Option(help="The error of an interval.")] = 0.05,
    n: Annotated[
        int | None, typer.Option("-n", help="Draws for each set that is not listed; from the plan unless given.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all draws.")] = 0,
    population: Population = "outside",
    output: Output = "auto",
    cutoff: Annotated[float | None, typer.Option(help="Turn the model's score into a label at this cutoff.")] = None,
    drop: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="A column of the data that is not for the model.")] = None,
    label: Id = None,
    read: Read = None,
    on_invalid: OnInvalid = "error",
    figure: Annotated[Path | None, typer.Option(help="Write a figure: .svg, or .png and .pdf with the extra plot.")] = None,
    kind: Annotated[Literal["gain", "cdf"], typer.Option(help="What the figure shows.")] = "gain",
    trust: Trust = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the figure if it exists.")] = False,
    project: Project = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record instead of sentences.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Relax each constraint in turn and see how responsiveness changes."""
    from budge.audit.design import Design
    from budge.stress import ablate, minimal_relaxations
    from budge.targets import parse_target

    check_figure(figure, overwrite)
    if prove and not stuck:
        raise InputError("proofs settle who is stuck, and that is not asked for", where="--prove", remedy="add --stuck SIZE")
    im, people, predictor = together(
        lambda: spec_of(spec, quiet=quiet), lambda: people_of(data, drop, label=label, read=read), lambda: model_of(model, output, cutoff, trust)
    )
    common: dict[str, Any] = {
        "target": parse_target(target, classes=predictor.classes),
        "seed": seed,
        "population": population,
        "design": Design(on_invalid=on_invalid),
    }
    with progress_bar("people", quiet=quiet or as_json) as progress:
        result = ablate(
            predictor, people, im, list(relax) if relax else None, method=method, threshold=threshold, alpha=alpha, n=n,
            progress=progress or False, **common,
        )  # fmt: skip
    minimal = (
        minimal_relaxations(predictor, people, im, list(relax) if relax else None, max_size=stuck, prove=prove, **common)
        if stuck
        else None
    )
    if figure is not None:
        write_figure(figure, result.plot("gains" if kind == "gain" else "cdf"))
    if as_json:
        echo_json({**result.to_dict(), "minimal": None if minimal is None else minimal.to_dict()})
    elif not quiet:
        say(result.brief())
        say()
        _show(result, alpha)
        same = len(result.ranking) - len(result.by_rule)
        if same:
            some = "1 more frees" if same == 1 else f"{same:,} more free"
            say(f"\n{some} the same people as a weaker relaxation of the same rule, which stands in the table.")
        if minimal is not None:
            say(f"\n{minimal}")


def _show(result: Ablation, alpha: float) -> None:
    """Print what each relaxation does, those that give most people a way first."""
    from budge.audit.summary import heads

    ranking, (none, missed) = result.by_rule, result.without
    rows = ranking.head(MOST)
    able = [found for found in (("newly able", "newly_reachable", none), ("first hit", "seen_only_after", missed)) if found[-1]]
    show_columns(
        [
            column("relaxation", rows["relaxation"].tolist()),
            *(Column(called, [f"{k:,} of {many:,}" for k in rows[name]], right=True) for called, name, many in able),
            Column("gain of mean ρ", [figure(v) for v in rows["gain"]], right=True), interval_of(rows["low"].tolist(), rows["high"].tolist(), alpha, spare=1),
            *(Column(called, [figure(v) for v in rows[called]], right=True, spare=2) for called in ("before", "after")),
            Column("times as many points", [cell(float(v)) for v in rows["size_ratio"]], right=True, spare=3),
        ],
        more=max(len(ranking) - MOST, 0),
    )  # fmt: skip
    nobody = "Draws show of nobody that they have no way at all." if missed else "Nobody is known to have no way at all."
    told = [f"Newly able: of the {heads(none)} with no way at all, those who have one without the rule." if none else nobody]
    told += [f"First hit: of the {heads(missed)} whose draws have no hit, those who have one without the rule, at a point that it forbids."] if missed else []
    told += [DILUTED] if (ranking["gain"] < 0).any() else []
    say("\n" + " ".join(told))
