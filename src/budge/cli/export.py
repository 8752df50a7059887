"""``budge export``: the results of a saved run as files for spreadsheets, programs and papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from budge.cli import echo_json
from budge.cli.shared import RUNS, Project, run_of, runs_of, say
from budge.errors import InputError, OutputExistsError

__all__ = ["register"]

FILES = {"--csv": "people.csv", "--parquet": "people.parquet", "--latex": "shares.tex", "--xlsx": "run.xlsx"}


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("export")(_export)


def _export(
    run: Annotated[Path, typer.Argument(help=RUNS)],
    csv: Annotated[bool, typer.Option("--csv", help="people.csv: one row per person and model.")] = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="people.parquet: the same, with types.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="shares.tex: the table of shares by model and group, for a paper.")] = False,
    xlsx: Annotated[bool, typer.Option("--xlsx", help="run.xlsx: sheets of shares, people, differences between groups, and the run itself.")] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The folder to write to; the run's own unless given.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")] = False,
    project: Project = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record instead of sentences.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Write the results of a saved run to files: CSV, Parquet, LaTeX, Excel."""
    from budge.files import make_folder

    chosen = [file for file, asked in zip(FILES.values(), (csv, parquet, latex, xlsx)) if asked]
    if not chosen:
        raise InputError("no kind of file is asked for", remedy=f"give one or more of {', '.join(FILES)}")
    folders = runs_of(run)
    places = {name: [(folder if out is None else out / name) / file for file in chosen] for name, folder in folders.items()}
    written = [place for some in places.values() for place in some]
    for place in written:
        if place.exists() and not overwrite:
            raise OutputExistsError("exists already", where=str(place), remedy="choose another folder with --out, or --overwrite")
    found = {name: run_of(folder, warn=not quiet) for name, folder in folders.items()}
    for name, one in found.items():
        if out is not None:
            make_folder(out / name)
        for place in places[name]:
            one.export(place, overwrite=overwrite)
    if as_json:
        echo_json({"run": str(run), "files": [{"file": str(place), "bytes": place.stat().st_size} for place in written]})
    elif not quiet:
        say(f"Wrote {', '.join(map(str, written))}.")
