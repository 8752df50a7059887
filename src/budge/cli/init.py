"""``budge init``: a first spec from a table, as a draft to go through."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from budge.cli import echo_json
from budge.cli.shared import Data, Read, read_people, say, say_command

if TYPE_CHECKING:
    from budge.spec import Suggestion

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("init")(init)


def init(
    data: Data,
    output: Annotated[
        Path | None, typer.Option("--out", "--output", "-o", help="The spec file to write; standard output if not given.")
    ] = None,
    outcome: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="The column that the model predicts: no feature; may repeat.")] = None,
    drop: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="A column that is not for the model; may repeat.")] = None,
    read: Read = None,
    name: Annotated[str, typer.Option(help="The name of the model.")] = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the suggestions as a record.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing but errors, and the spec where it has no file.")
    ] = False,
) -> None:
    """Suggest a spec from a table: types, bounds, what people cannot change, and what holds in every row."""
    from budge import spec as specs
    from budge.tables import masked

    found = specs.suggest(read_people(data, read=read), outcome=outcome or (), drop=drop or (), name=name)
    if output is not None:
        found.write(output, overwrite=overwrite)
    if as_json:
        echo_json({**found.to_dict(), "written": None if output is None else str(output)})
    elif output is None:
        typer.echo(found.to_text(), nl=False)
    elif not quiet:
        _show(found, output)
        chosen = "".join(f" --read {shlex.quote(word)}" for word in read or ())
        say_command(f"budge check {shlex.quote(str(output))} {shlex.quote(masked(data))}{chosen}")


def _show(found: Suggestion, output: Path) -> None:
    """Print what the draft holds, and what is left to do."""
    kept = sum(f.encoding for f in found.findings)
    rows = f"{found.rows:,} {'row' if found.rows == 1 else 'rows'}"
    features = f"{len(found.features):,} {'feature' if len(found.features) == 1 else 'features'}"
    say(f"{output}: a draft with {features} from {rows}.")
    if found.fixed:
        say(f"Taken for what people cannot change: {', '.join(found.fixed)}.")
    if found.left_out:
        say(f"Left out: {'; '.join(f'{column} ({why})' for column, why in found.left_out.items())}.")
    for column in found.outcomes:
        say(f"{column} looks like an outcome: leave it out with --outcome {shlex.quote(column)}.")
    if kept:
        say(f"{kept} {'constraint holds' if kept == 1 else 'constraints hold'} by the way the data is written.")
    for column, source in found.follows.items():
        say(f"{column} follows from {source} in every row: see the remark beside it.")
    if len(found.findings) > kept:
        more = len(found.findings) - kept
        say(f"{more:,} {'suggestion' if more == 1 else 'suggestions'} to confirm, in comments.")
    say("Go through every feature, take out the line `draft: true`, then")
