"""``budge show``: a saved run on the terminal."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from budge.cli import echo_json
from budge.cli.shared import RUNS, Project, run_of, runs_of, say, say_command, say_target

if TYPE_CHECKING:
    from budge.audit.result import Audit

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("show")(show)


def show(
    run: Annotated[Path, typer.Argument(help=RUNS)],
    project: Project = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the record of the run instead of sentences.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the answer and nothing else.")] = False,
) -> None:
    """Show a saved run: the answer, groups, people, and how it was made."""
    from budge.cli.answers import audit_record

    folders = runs_of(run)
    found = {name: run_of(folder) for name, folder in folders.items()}
    if as_json:
        records = {name: audit_record(one) for name, one in found.items()}
        echo_json(records.get("", {"targets": records}))
        return
    for k, (name, one) in enumerate(found.items()):
        if name and not quiet:
            say_target(name, first=not k)
        _show(one, folders[name], f"{name}: " if name else "", quiet=quiet)


def _show(found: Audit, folder: Path, before: str, *, quiet: bool) -> None:
    from budge.cli.answers import show_run
    from budge.report.answer import told_of

    if quiet:
        for name in found.models:
            say(before + told_of(found, name, found.wording, brief=True).headline)
        return
    show_run(found, [column for column, _ in found.design.groups], shlex.quote(str(folder)))
    command = str(found.info.get("command", ""))
    say(f"\nMade {found.info['when']} by budge {found.info['version']}{' with' if command else ''}.".replace("with.", "with:"))
    if command:
        say_command(command)
