"""``budge sensitivity``: does the verdict survive other interaction models?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from budge.cli import echo_json
from budge.cli.figures import check_figure, write_figure
from budge.cli.layout import Column, cell, column
from budge.cli.layout import figure as figure_of
from budge.cli.models import MODEL, Trust, model_of
from budge.cli.shared import (
    Claim,
    DataOption,
    Harm,
    Id,
    OnInvalid,
    Output,
    Population,
    Project,
    Read,
    head,
    people_of,
    progress_bar,
    say,
    show_columns,
    show_table,
    spec_of,
)
from budge.errors import InputError, together

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["register"]

MOST = 12  # members that are shown


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("sensitivity")(_sensitivity)


def _sensitivity(
    specs: Annotated[list[Path], typer.Argument(help="Spec files, one per member of the family; or one, with --vary or --toggle.")],
    data: DataOption,
    model: Annotated[str, typer.Option(metavar="MODEL", help=f"{MODEL}.")],
    target: Annotated[str, typer.Option(help="A label, 'score >= 0.7', 'lower', 'higher' or 'different', or 'not' before one.")],
    vary: Annotated[
        list[str] | None,
        typer.Option(metavar="PLACE=VALUES", help="A place in the spec and its values, such as features.income.max_increase=1000,5000; may repeat."),
    ] = None,
    toggle: Annotated[list[str] | None, typer.Option(metavar="NAME", help="A constraint to switch on and off; may repeat.")] = None,
    threshold: Annotated[float, typer.Option(help="The threshold of the claim.")] = 0.1,
    alpha: Annotated[float, typer.Option(help="The error of a single claim.")] = 0.05,
    claim: Claim = "below",
    n: Annotated[int | None, typer.Option("-n", help="Draws per person; from the plan unless given.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all draws.")] = 0,
    population: Population = "outside",
    adjust: Annotated[Literal["holm", "bonferroni"], typer.Option(help="How verdicts allow for the number of members.")] = "holm",
    harm: Harm = None,
    output: Output = "auto",
    cutoff: Annotated[float | None, typer.Option(help="Turn the model's score into a label at this cutoff.")] = None,
    drop: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="A column of the data that is not for the model.")] = None,
    label: Id = None,
    read: Read = None,
    on_invalid: OnInvalid = "error",
    figure: Annotated[Path | None, typer.Option(help="Write a figure: .svg, or .png and .pdf with the extra plot.")] = None,
    kind: Annotated[Literal["tornado", "cdf"], typer.Option(help="What the figure shows.")] = "tornado",
    trust: Trust = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the figure if it exists.")] = False,
    project: Project = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record instead of sentences.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """See whether verdicts survive other interaction models."""
    from budge.audit.design import Design
    from budge.stress import sensitivity
    from budge.targets import parse_target

    check_figure(figure, overwrite)
    members, people, predictor = together(
        lambda: {spec.stem: spec_of(spec, quiet=quiet) for spec in specs},
        lambda: people_of(data, drop, label=label, read=read),
        lambda: model_of(model, output, cutoff, trust),
    )
    if len(members) < len(specs):
        raise InputError("two spec files have the same name", where="specs", got=[spec.stem for spec in specs])
    family = _family(members, vary, toggle)
    with progress_bar("people", quiet=quiet or as_json) as progress:
        result = sensitivity(
            predictor, people, family, target=parse_target(target, classes=predictor.classes), threshold=threshold, alpha=alpha,
            claim=claim, n=n, seed=seed, population=population, adjust=adjust, harm=harm, progress=progress or False,
            design=Design(on_invalid=on_invalid),
        )  # fmt: skip
    if figure is not None:
        write_figure(figure, result.plot("tornado" if kind == "tornado" else "cdf"))
    if as_json:
        echo_json(result.to_dict())
    elif not quiet:
        say(str(result))
        say()
        _show_members(result.by_member)
        if result.axes and len(breaks := result.breaks()):
            head("Where the verdict breaks")
            _show_breaks(breaks if len(result.axes) > 1 else breaks.drop(columns="others"))


def _show_members(rows: pd.DataFrame) -> None:
    """Print the verdicts under each member; where there is no room the mean is left out, and never a verdict: these add up."""
    some = rows.head(MOST)
    verdicts = [column(name, some[name].tolist()) for name in rows.columns if name not in ("member", "mean_rho")]
    means = Column("mean ρ", [figure_of(v, 3) for v in some["mean_rho"]], right=True, spare=1)
    show_columns([Column("member", some["member"].map(cell).tolist()), means, *verdicts], more=len(rows) - len(some))


def _show_breaks(rows: pd.DataFrame) -> None:
    """Print where verdicts change, those first that are shown on both sides."""
    rows = rows.sort_values("shown", ascending=False, kind="stable")
    for name, one, two in (("verdict", "verdict_from", "verdict_to"), ("value", "from", "to")):
        rows[name] = [f"{cell(a)} → {cell(b)}" for a, b in zip(rows[one], rows[two])]
    show_table(rows, names={name: name for name in ("person", "verdict", "value", "axis", "others")})


def _family(members: dict[str, Any], vary: list[str] | None, toggle: list[str] | None) -> Any:
    from budge.stress import grid, toggles

    if not vary and not toggle:
        if len(members) == 1:
            remedy = "give another spec file, --vary features.income.max_increase=1000,5000, or --toggle CONSTRAINT"
            raise InputError("one interaction model has no other to be compared with", where="specs", got=list(members), remedy=remedy)
        return members
    if len(members) > 1 or (vary and toggle):
        raise InputError("--vary and --toggle take one spec file, and only one of them", got=list(members))
    im = next(iter(members.values()))
    if toggle:
        return toggles(im, toggle)
    axes: dict[str, list[Any]] = {}
    for text in vary or ():
        path, mark, values = text.partition("=")
        if not mark or not values:
            raise InputError(
                "a place in the spec and its values",
                where="--vary",
                got=text,
                remedy="write features.income.max_increase=1000,5000",
            )
        axes[path.strip()] = [_value(v) for v in values.split(",")]
    return grid(im, axes)


def _value(text: str) -> Any:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    word = text.strip()
    return {"true": True, "false": False}.get(word.lower(), word)
