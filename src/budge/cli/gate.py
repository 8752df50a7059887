"""``budge gate``: conditions on a saved run, for continuous integration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from budge.cli import echo_json
from budge.cli.shared import (
    RUNS,
    Condition,
    Id,
    Project,
    Read,
    gates_record,
    read_people,
    run_of,
    runs_of,
    same_people,
    show_gates,
    without,
)
from budge.errors import InputError, together

if TYPE_CHECKING:
    import pandas as pd

    from budge.audit.gate import Gate
    from budge.audit.result import Audit

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("gate")(_gate)


def _gate(
    run: Annotated[Path, typer.Argument(help=RUNS)],
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
    found = {name: run_of(folder, warn=not quiet) for name, folder in runs_of(run).items()}
    people = None
    if data is not None:
        people = read_people(data, label, read)
        for one in found.values():
            same_people(one, without(people, drop))
    gates = {name: _gates(one, fail_if, model, people) for name, one in found.items()}
    failed = {name: [g for g in some if g.failed] for name, some in gates.items()}
    many = sum(map(len, failed.values()))
    if as_json:
        records = {name: gates_record(some) for name, some in gates.items()}
        echo_json({"run": str(run), "failed": many, **({"gates": records[""]} if "" in records else {"targets": records})})
    else:
        for name, some in (failed if quiet else gates).items():
            show_gates(some, target=name)
    if many:
        raise typer.Exit(1)


def _gates(found: Audit, conditions: Sequence[str], model: str | None, people: pd.DataFrame | None) -> list[Gate]:
    from budge.audit.gate import gate

    try:
        return together(*(partial(gate, found, condition, model=model, people=people) for condition in conditions))
    except InputError as error:
        if people is not None or not any(p.what == "no such column" for p in error.problems):
            raise
        more = "; a run keeps its groups, other columns of the people need --data"
        elsewhere = [p.what == "no such column" and "quotes" not in p.remedy for p in error.problems]
        raise InputError([replace(p, remedy=p.remedy + more) if it else p for p, it in zip(error.problems, elsewhere)]) from None
