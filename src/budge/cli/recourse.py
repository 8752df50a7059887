"""``budge recourse``: the least change that attains the target for one person, or why there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from budge.cli import echo_json
from budge.cli.shared import Id, Model, OnInvalid, models_of, people_of, say, show_table
from budge.errors import InputError, nearest

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("recourse")(recourse)


def recourse(
    spec: Annotated[Path, typer.Argument(help="The spec file of the interaction model.")],
    data: Annotated[Path, typer.Argument(help="The people: a CSV or Parquet file.")],
    person: Annotated[str, typer.Option("--person", help="Who: the number of the row from 0, or the name in the column of --id.")],
    target: Annotated[str, typer.Option(help="A label, 'score >= 0.7', 'lower', 'higher' or 'different', or 'not' before one.")],
    model: Model,
    k: Annotated[int, typer.Option("-k", help="Plans at most; each moves another set of features.")] = 1,
    cost: Annotated[list[str] | None, typer.Option(help="Cost per unit of change, e.g. income=0.001; may repeat. Features not named cost nothing.")] = None,
    n: Annotated[int, typer.Option("-n", help="Draws that are polished where nothing can be proved.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    seconds: Annotated[float | None, typer.Option(help="Seconds for each search at most; without it every run gives the same answer.")] = None,
    output: Annotated[str, typer.Option(help="What is read from the model: auto, label, score or probability.")] = "auto",
    cutoff: Annotated[float | None, typer.Option(help="Turn the model's score into a label at this cutoff.")] = None,
    drop: Annotated[list[str] | None, typer.Option(help="A column of the data that is not for the model, e.g. the outcome.")] = None,
    label: Id = None,
    on_invalid: OnInvalid = "error",
    trust: Annotated[bool, typer.Option("--trust", help="Load a model file that can run code.")] = False,
    letter: Annotated[bool, typer.Option("--letter", help="Print a text for the person instead of a table.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record instead of sentences.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the plans and nothing else.")] = False,
) -> None:
    """Find the least change that attains the target for one person."""
    import budge
    from budge.targets import parse_target

    im = budge.InteractionModel.from_file(spec)
    people = people_of(data, drop, label=label)
    named = models_of(model, output, cutoff, trust)
    if len(named) != 1:
        raise InputError("one model is expected", where="--model", got=sorted(named))
    (one,) = named.values()
    known = {str(index): place for place, index in enumerate(people.index)}
    if person not in known:
        raise InputError("nobody of that name", where="--person", got=person, remedy=nearest(person, known))
    found = budge.recourse(
        named, people.iloc[[known[person]]], im, target=parse_target(target, classes=one.classes), k=k, cost=_weights(cost), n=n, seed=seed,
        seconds=seconds, on_invalid=on_invalid,
    )  # fmt: skip
    if as_json:
        echo_json(found.to_dict())
    elif letter:
        say(found.letter())
    else:
        say(str(found))
        for note in () if quiet else found.notes:
            say(str(note))
        if len(found) and not quiet:
            show_table(found.actions)


def _weights(given: list[str] | None) -> dict[str, Any] | None:
    """Return the weights of ``feature=weight``."""
    if not given:
        return None
    found: dict[str, Any] = {}
    for item in given:
        name, sign, weight = item.partition("=")
        try:
            found[name] = float(weight)
        except ValueError:
            sign = ""
        if not sign:
            raise InputError("must be written as feature=weight", where="--cost", got=item, remedy="for example --cost income=0.001")
    return found
