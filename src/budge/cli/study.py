"""``budge study``: the paper's studies, each from one command to its table "paper | here | why they differ"."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from budge.cli import echo_json
from budge.cli.shared import say
from budge.errors import InputError, MissingDependencyError, StorageError, nearest

__all__ = ["STUDIES", "load", "register", "studies_folder"]

#: The programs; each has ``run(quick=...)``, which returns a result that writes itself.
STUDIES = ("overview", "german", "twitterbot", "recidivism", "transplant", "sorrybench", "moderation", "positions")


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("study")(study)


def study(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(STUDIES)}, or all.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the tables, figures and page into this folder.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rows and draws: a trial of the program, not the study.")] = False,
    data: Annotated[Path | None, typer.Option("--data", help="Your own copy of rearrest_NY (recidivism), or your own run (sorrybench).")] = None,
    simulated: Annotated[bool, typer.Option("--simulated", help="Simulated rows with the columns of rearrest_NY (recidivism).")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Run one of the paper's studies on its data and compare what comes out with what is printed."""
    if data is not None and name not in ("recidivism", "sorrybench"):
        load(name)  # an unknown name is the first thing to state
        raise InputError(
            "only the studies recidivism and sorrybench take data of yours", where="--data", got=str(data), remedy="set BUDGE_DATA instead"
        )
    if simulated and (name != "recidivism" or data is not None):
        what = "only the study recidivism runs on simulated rows, and then takes no data of yours"
        raise InputError(what, where="--simulated", got=name, remedy="leave --simulated out")
    given = {**({} if data is None else {"path": data}), **({"simulated": True} if simulated else {})}
    records = []
    for one in STUDIES if name == "all" else (name,):
        result = _run(one, quick=quick, **given)
        written = [] if out is None else result.write(out)
        records.append({**result.to_dict(), "files": [str(path) for path in written]})
        if not as_json and not quiet:
            _show(result)
            for path in written:
                say(f"Written: {path}")
    if as_json:
        echo_json(records if name == "all" else records[0])


def _run(name: str, **given: Any) -> Any:
    program = load(name)
    try:
        return program.run(**given)
    except ImportError as error:
        missing = (error.name or "").split(".")[0]
        if missing in ("sklearn", "xgboost"):
            raise MissingDependencyError(f"the study trains models and needs {missing}", where=name, remedy="pip install 'budge[studies]'") from error
        raise


def _show(result: Any) -> None:
    say(f"{result.title}\n")
    if result.quick:
        say("A quick run, on fewer rows or draws: these are not the numbers of the study.\n")
    for line in (*(f"Data: {line}." for line in result.data), *([result.note.replace("**", "")] if result.note else [])):
        say(f"{line}\n")
    for figure, paper, here, why in result.comparison.itertuples(index=False):
        say(f"{figure}\n    paper: {paper}\n    here:  {here}" + (f"\n    why:   {why}" if why else ""))
    for reason in result.reasons.values():
        say(f"\nReason: {reason.text}\n    tested by: {reason.run}\n    result:    {reason.result}")


def load(name: str) -> ModuleType:
    """The program of a study, from the package or, in a checkout, from the folder ``studies`` beside ``src``."""
    if name not in STUDIES:
        raise InputError("no such study", where="name", got=name, remedy=nearest(name, STUDIES) or f"one of {', '.join(STUDIES)}")
    folder = studies_folder()
    if "budge.studies" not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            "budge.studies", folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None
        assert spec.loader is not None
        package = importlib.util.module_from_spec(spec)
        sys.modules["budge.studies"] = package
        spec.loader.exec_module(package)
    return importlib.import_module(f"budge.studies.{name}")


def studies_folder() -> Path:
    """Where the programs and their spec files are."""
    package = Path(__file__).resolve().parents[1]
    places = [package / "studies", package.parents[1] / "studies"]
    for place in places:
        if (place / "__init__.py").is_file():
            return place
    raise StorageError(
        "the studies are not installed",
        where="studies",
        got=", ".join(map(str, places)),
        remedy="run from a checkout of the project",
    )
