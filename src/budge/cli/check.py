"""``budge check``: a spec by itself, or against a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from budge.cli import echo_json
from budge.cli.shared import PEOPLE, Project, Read, read_people, say
from budge.errors import InputError, in_lines, printable

if TYPE_CHECKING:
    from budge.describe import Description

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("check")(check)


def check(
    spec: Annotated[Path | None, typer.Argument(help="The spec file: .yaml, .json or .toml.")] = None,
    data: Annotated[str | None, typer.Argument(metavar="[DATA]", help=PEOPLE)] = None,
    read: Read = None,
    rows: Annotated[int, typer.Option(min=1, help="Typical rows at which parts are sized.")] = 25,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if a row breaks the spec or constraints clash.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of the spec format, and nothing else.")] = False,
    project: Project = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record instead of sentences.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print nothing but errors; with --strict the exit code is the answer.")
    ] = False,
) -> None:
    """Check a spec; with data, list rows that break it, clashes, idle constraints, and the size of each part."""
    from budge import spec as specs

    if schema:
        echo_json(specs.json_schema())
        return
    if spec is None:
        raise InputError("a spec file is needed", remedy="write budge check model.yaml data.csv")
    im = specs.read_model(spec)
    if data is None:
        warned = [problem.to_dict() for problem in im.warnings]
        never = specs.impossible(im) if strict else []  # a search that may take seconds
        parts = [list(p) for p in im.partition]
        record = {"name": im.name, "ok": not never, "digest": im.digest, "parts": parts, "warnings": warned, "clashes": [list(names) for names in never]}
        if as_json:
            echo_json(record)
        elif not quiet:
            _show(im.describe())
            for names in never:
                say("No values within the bounds meet these together: " + "; ".join(names) + ".")
        if strict and never:
            raise typer.Exit(1)
        return
    report = specs.check(im, read_people(data, read=read), starts=rows)
    if as_json:
        echo_json(report.to_dict())
    elif not quiet:
        say(report)
    if strict and not report.ok:
        raise typer.Exit(1)


def _show(described: Description) -> None:
    """Print an interaction model: its features as a table, then constraints and effects in sentences."""
    from budge.cli.layout import Column
    from budge.cli.terminal import head, show_columns

    say(described.title)
    say()
    called, spare = ("feature", "type", "from", "to", "can move", "direction", "constraints", "part"), (0, 0, 2, 2, 0, 1, 3, 4)
    cells = [[printable(cell).replace("\n", "\\n") for cell in texts] for texts in zip(*described.rows)]
    show_columns([Column(name, texts, right=name in ("from", "to"), spare=k) for name, texts, k in zip(called, cells, spare)])
    for title, sentences in described.lists():
        head(title)
        for k, sentence in enumerate(sentences, 1):
            say(in_lines([f"  {k}. {sentence}"]))
