"""The command line: thin, one file a command; parse, call, print."""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

import typer

from budge.errors import BudgeError

__all__ = ["app", "echo_json", "main"]

#: One module a command; each has ``register(app)``.
COMMANDS = ("demo", "init", "check", "plan", "sample", "audit", "sensitivity", "ablate", "select", "study", "serve")

app = typer.Typer(name="budge", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.callback()
def root() -> None:
    """Will predictions change, how much, how often: with guarantees."""


def echo_json(record: Any) -> None:
    """Print a record as JSON, one document on standard output."""
    typer.echo(json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False, default=str))


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code: errors become one readable line."""
    for name in COMMANDS:
        if name not in {command.name for command in app.registered_commands}:  # once, however often it is called
            importlib.import_module(f"budge.cli.{name}").register(app)
    arguments = sys.argv[1:] if argv is None else argv
    try:
        result = app(args=arguments, standalone_mode=False, prog_name="budge")
    except BudgeError as error:
        if "--json" in arguments:
            echo_json({"error": type(error).__name__, "problems": [p.to_dict() for p in error.problems]})
        else:
            typer.echo(f"budge: {error}", err=True)
        return error.exit_code
    except KeyboardInterrupt:
        typer.echo("budge: interrupted", err=True)
        return 130
    except Exception as error:
        if isinstance(error, getattr(typer, "Abort", ())):
            return 130
        show = getattr(error, "show", None)  # click's usage errors
        if show is None:
            raise
        show()
        return int(getattr(error, "exit_code", 2))
    return result if isinstance(result, int) else 0
