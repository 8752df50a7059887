"""``budge gate``: conditions on a saved run, for continuous integration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from budge.cli import echo_json
from budge.cli.shared import Condition, Id, Project, Read, gates_record, read_people, run_of, same_people, show_gates, without
from budge.errors import InputError

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("gate")(_gate)


def _gate(
    run: Annotated[Path, typer.Argument(help="The folder of a saved run.")],
    fail_if: Annotated[list[str], Condition],
    model: Annotated[str | None, typer.Option(help="The name of one model of the run; all of them unless given.")] = None,
    data: Annotated[str | None, typer.Option(metavar="FILE", help="The people of the run, for conditions on their columns.")] = None,
    drop: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="A column of the data that is not for the model, as in the audit.")] = None,
    label: Id = None,
    read: Read = None,
    project: Project = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record instead of sentences.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only gates that failed.")] = False,
) -> None:
    """Check conditions on a saved run: exit with 1 where one holds.

    Example: budge gate run/ --fail-if "share(verdict == 'below', sex == 'f') > 0.1" --fail-if "gap_low(sex) > 0.05"
    """
    from budge.audit.gate import gate

    found = run_of(run)
    people = None
    if data is not None:
        people = read_people(data, label, read)
        same_people(found, without(people, drop))
    try:
        gates = [gate(found, condition, model=model, people=people) for condition in fail_if]
    except InputError as error:
        if people is not None or not any(p.what == "no such column" for p in error.problems):
            raise
        raise InputError([replace(p, remedy=f"{p.remedy}; a run keeps its groups, other columns of the people need --data") for p in error.problems]) from None
    failed = [g for g in gates if g.failed]
    if as_json:
        echo_json({"run": str(run), "failed": len(failed), "gates": gates_record(gates)})
    else:
        show_gates(failed if quiet else gates)
    if failed:
        raise typer.Exit(1)
