"""``budge compare``: two saved runs of the same people, and who changed."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from budge.cli import echo_json
from budge.cli.layout import Column, column, figure
from budge.cli.shared import gates_record, head, run_of, say, show_columns, show_gates
from budge.errors import OutputExistsError, together

__all__ = ["register"]

SOME = 12  # people who are named


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("compare")(_compare)


def _compare(
    first: Annotated[Path, typer.Argument(help="The folder of a saved run.")],
    second: Annotated[Path, typer.Argument(help="The folder of another run of the same people; differences are second minus first.")],
    model: Annotated[str | None, typer.Option(help="The name of one model of the runs, where they have several.")] = None,
    other_model: Annotated[str | None, typer.Option(help="The name of the model of the second run, where it is another.")] = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="Exit with 1 where this holds, such as \"count(first == 'above' and second == 'below') > 0\" or \"difference_low > 0\"; may repeat.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write all people of both runs to this .csv or .parquet file.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record instead of sentences.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors and gates.")] = False,
) -> None:
    """Compare two saved runs of the same people: who changed verdict, and by how much, with intervals."""
    from budge.table_files import check_rows_path, write_rows

    if out is not None:
        check_rows_path(out)
        if out.exists() and not overwrite:
            raise OutputExistsError("exists already", where=str(out), remedy="choose another name, or --overwrite")
    found = run_of(first, warn=not quiet).compare(run_of(second, warn=not quiet), model=model, other_model=other_model)
    gates = together(*(partial(found.gate, condition) for condition in fail_if or ()))
    if out is not None:
        named = str(found.table.index.name or "person")
        write_rows([found.table.reset_index(names="person" if named in found.table.columns else named)], out, overwrite=overwrite)
    if as_json:
        echo_json({**found.to_dict(), "gates": gates_record(gates)})
    else:
        if not quiet:
            _show(found)
        show_gates(gates)
    if any(g.failed for g in gates):
        raise typer.Exit(1)


def _show(found: object) -> None:
    from budge.audit.compare import Comparison
    from budge.wording import shown

    assert isinstance(found, Comparison)
    for line in found.sentences():
        say(line)
    rows = found.changed
    if not len(rows):
        return
    head("Who changed verdict, the largest difference first")
    some = rows.head(SOME)
    ends = ["–" if low != low else "exact" if low == high else f"{figure(low)} to {figure(high)}" for low, high in zip(some["low"], some["high"])]
    columns = [
        Column(str(some.index.name or "person"), [shown(v) for v in some.index], right=some.index.dtype.kind in "iu"), Column("first", some["first"].tolist()),
        Column("second", some["second"].tolist()), column("ρ first", some["rho_first"].tolist(), digits=3, spare=1),
        column("ρ second", some["rho_second"].tolist(), digits=3, spare=1), column("difference", some["difference"].tolist(), digits=3),
        Column("interval", ends, right=True, spare=2),
    ]  # fmt: skip
    show_columns(columns, more=len(rows) - len(some))
