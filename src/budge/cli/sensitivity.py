"""``budge sensitivity``: does the verdict survive other interaction models?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from budge.cli import echo_json
from budge.cli.figures import check_figure, write_figure
from budge.cli.shared import Claim, Harm, Id, OnInvalid, Output, Population, head, people_of, progress_bar, say, show_table
from budge.errors import InputError

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("sensitivity")(_sensitivity)


def _sensitivity(
    specs: Annotated[list[Path], typer.Argument(help="Spec files, one a member of the family; or one, with --vary or --toggle.")],
    data: Annotated[Path, typer.Option(help="The people: a CSV or Parquet file.")],
    model: Annotated[Path, typer.Option(help="A model file: .onnx, .skops, XGBoost .json/.ubj, LightGBM .txt.")],
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
    on_invalid: OnInvalid = "error",
    figure: Annotated[Path | None, typer.Option(help="Write a figure: .svg, or .png and .pdf with the extra plot.")] = None,
    kind: Annotated[Literal["tornado", "cdf"], typer.Option(help="What the figure shows.")] = "tornado",
    trust: Annotated[bool, typer.Option("--trust", help="Load a model file that can run code.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the figure if it exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record instead of sentences.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """See whether verdicts survive other interaction models."""
    from budge.audit.design import Design
    from budge.interaction import InteractionModel
    from budge.models import as_predictor
    from budge.stress import sensitivity
    from budge.targets import parse_target

    check_figure(figure, overwrite)
    members = {spec.stem: InteractionModel.from_file(spec) for spec in specs}
    if len(members) < len(specs):
        raise InputError("two spec files have the same name", where="specs", got=[spec.stem for spec in specs])
    family = _family(members, vary, toggle)
    people = people_of(data, drop, label=label)
    predictor = as_predictor(str(model), trust=trust, output=output, threshold=cutoff)
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
        show_table(result.by_member.rename(columns={"mean_rho": "mean ρ"}), digits={"mean ρ": 3})
        if result.axes and len(breaks := result.breaks()):
            head("Where the verdict breaks")
            show_table(breaks.rename(columns=lambda c: str(c).replace("_", " ")))


def _family(members: dict[str, Any], vary: list[str] | None, toggle: list[str] | None) -> Any:
    from budge.stress import grid, toggles

    if not vary and not toggle:
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
