"""``budge init``: a first spec from a table, as suggestions to confirm."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from budge.cli import echo_json
from budge.cli.shared import say

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("init")(init)


def init(
    data: Annotated[Path, typer.Argument(help="A CSV file with one person a row.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The spec file to write; standard output if not given.")
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option("--target", help="A column to leave out, such as the label. May be repeated.")
    ] = None,
    name: Annotated[str, typer.Option(help="The name of the model.")] = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the suggestions as a record.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing but errors, and the spec where it has no file.")
    ] = False,
) -> None:
    """Suggest types, bounds, groups of dummies, implications and linear relations from a table."""
    from budge import spec as specs

    found = specs.suggest(specs.read_table(data), target=target or (), name=name)
    if output is not None:
        found.write(output, overwrite=overwrite)
    if as_json:
        echo_json({**found.to_dict(), "written": None if output is None else str(output)})
    elif output is None:
        typer.echo(found.to_text(), nl=False)
    elif not quiet:
        say(f"{output}: {len(found.features)} features from {found.rows} rows, {len(found.findings)} suggestions to confirm")
