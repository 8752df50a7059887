"""``budge show``: a saved run on the terminal."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from budge.cli import echo_json
from budge.cli.shared import Project, run_of, say, say_command

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("show")(show)


def show(
    run: Annotated[Path, typer.Argument(help="The folder of a saved run.")],
    project: Project = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the record of the run instead of sentences.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the answer and nothing else.")] = False,
) -> None:
    """Show a saved run: the answer, groups, people, and how it was made."""
    from budge.cli.answers import audit_record, show_run
    from budge.report.answer import told_of

    found = run_of(run)
    if as_json:
        echo_json(audit_record(found))
        return
    if quiet:
        for name in found.models:
            say(told_of(found, name, found.wording, brief=True).headline)
        return
    show_run(found, [column for column, _ in found.design.groups], shlex.quote(str(run)))
    command = str(found.info.get("command", ""))
    say(f"\nMade {found.info['when']} by budge {found.info['version']}{' with' if command else ''}.".replace("with.", "with:"))
    if command:
        say_command(command)
