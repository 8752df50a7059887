"""``budge recourse``: the least change that attains the target for one person, or why there is none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from budge.cli import echo_json
from budge.cli.layout import Column, tabulate
from budge.cli.models import Model, Trust, models_of
from budge.cli.shared import (
    Data,
    FeatureLabels,
    Id,
    LevelLabels,
    OnInvalid,
    Output,
    Project,
    Read,
    TargetName,
    head,
    people_of,
    say,
    spec_of,
    wording_of,
)
from budge.cli.terminal import columns
from budge.errors import InputError, nearest, together

if TYPE_CHECKING:
    from budge.audit.recourse import Recourse
    from budge.wording import Wording

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("recourse")(recourse)


def recourse(
    spec: Annotated[Path, typer.Argument(help="The spec file of the interaction model.")],
    data: Data,
    person: Annotated[str, typer.Option("--person", help="Who: the number of the row from 0, or the name in the column of --id.")],
    target: Annotated[str, typer.Option(help="A label, 'score >= 0.7', 'lower', 'higher' or 'different', or 'not' before one.")],
    model: Model,
    k: Annotated[int, typer.Option("-k", help="Plans at most; each moves another set of features.")] = 1,
    cost: Annotated[
        list[str] | None, typer.Option(metavar="FEATURE=WEIGHT", help="Cost per unit of change; features not named cost nothing; may repeat.")
    ] = None,
    n: Annotated[int, typer.Option("-n", help="Draws that are polished where nothing can be proved.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    seconds: Annotated[float | None, typer.Option(help="Seconds for each search at most; without it every run gives the same answer.")] = None,
    output: Output = "auto",
    cutoff: Annotated[float | None, typer.Option(help="Turn the model's score into a label at this cutoff.")] = None,
    drop: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="A column of the data that is not for the model, e.g. the outcome.")] = None,
    label: Id = None,
    read: Read = None,
    on_invalid: OnInvalid = "error",
    trust: Trust = None,
    target_name: TargetName = "",
    feature_label: FeatureLabels = None,
    level_label: LevelLabels = None,
    letter: Annotated[bool, typer.Option("--letter", help="Print a text for the person instead of a table.")] = False,
    project: Project = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record instead of sentences.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the plans and nothing else.")] = False,
) -> None:
    """Find the least change that attains the target for one person."""
    import budge
    from budge.targets import parse_target
    from budge.wording import check_names

    wording, im, people, named = together(
        lambda: wording_of("", target_name, None, feature_label, level_label),
        lambda: spec_of(spec, quiet=quiet),
        lambda: people_of(data, drop, label=label, read=read),
        lambda: models_of(model, output, cutoff, trust),
    )
    check_names(wording, im, shell=True)
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
        say(found.letter(wording.of_model(im)))
    else:
        say(str(found)) if quiet else _show(found, wording.of_model(im), person, k, weighted=bool(cost))


def _show(found: Recourse, nouns: Wording, person: str, k: int, *, weighted: bool) -> None:
    """Print each plan as a table of what changes, and what is known about them."""
    from budge.audit.recourse import in_full
    from budge.audit.summary import HOW
    from budge.wording import shown

    say(f"Person {shown(person)}: the output is {shown(found.info.get('prediction'))}. {told_plans(found, nouns)}")
    for plan, least in enumerate(found.least, 1):
        mine = found.actions[found.actions["plan"] == plan]
        many = "1 change" if len(mine) == 1 else f"{len(mine)} changes"
        what = "the least that works" if plan == 1 and least else "another set of features" if plan > 1 else "the best found"
        head(f"Plan {plan}: {many}, {what}")
        moves = zip(mine["feature"], mine["from"], mine["to"])
        for line in tabulate_moves([(nouns.feature(str(f)), nouns.level(f, a) or in_full(a), nouns.level(f, b) or in_full(b)) for f, a, b in moves]):
            say(line)
    if len(found):
        say()
        if len(found) < k:
            say("No other set of features was found that works." if len(found) == 1 else f"No more than {len(found)} sets of features were found that work.")
        cost = "as weighted by --cost" if weighted else "the number of features changed, then the distance in each feature's range"
        sure = f"No cheaper plan exists: {HOW[found.method]}." if found.optimal else "Cheaper plans may exist."
        say(f"Cost: {cost}. {sure} The model was asked about each plan; reverting any one change loses it.")
    for note in found.notes:
        say(f"Note: {note}")


def told_plans(found: Recourse, nouns: Wording) -> str:
    """Return in words whether there are plans."""
    target = nouns.target(found.info)
    if len(found):
        return f"{len(found)} {'plan leads' if len(found) == 1 else 'plans lead'} to {target}."
    said = {
        "already": f"No change is needed: {target} is attained already.", "impossible": f"No action leads to {target}: {found.reason}.",
        "unresolved": f"No plan to {target} was found: {found.reason}.",
    }  # fmt: skip
    return said.get(found.status, f"No plan: {found.status.replace('_', ' ')}.")


def tabulate_moves(moves: list[tuple[str, str, str]]) -> list[str]:
    """Return one line per feature that changes."""
    return tabulate([Column("", [name for name, _, _ in moves]), Column("", [f"{old} → {new}" for _, old, new in moves])], columns())[1:]


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
