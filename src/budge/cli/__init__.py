"""The command line: thin, one file per command; parse, call, print."""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import os
import re
import signal
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from budge.cli.helping import HelpfulCommand, HelpfulGroup
from budge.cli.interrupts import Interrupt, end, signals
from budge.cli.shell_words import in_shell_words
from budge.errors import BudgeError, Problem, printable
from budge.progress import silent

__all__ = ["app", "echo_json", "main"]

#: One module per command; each has ``register(app)``.
COMMANDS = (
    "demo", "init", "check", "plan", "sample", "audit", "prove", "recourse", "sensitivity",
    "ablate", "select", "show", "compare", "export", "gate", "report", "study", "serve", "llm",
)  # fmt: skip

_TABLES = logging.getLogger("budge.tables")
_DRAFTS = logging.getLogger("budge.drafts")  # commands name the file of a draft themselves

app = typer.Typer(
    name="budge", cls=HelpfulGroup, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
    context_settings={"max_content_width": 120},
)  # fmt: skip


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=lambda asked: _version(asked))] = False,
) -> None:
    """Will predictions change, how much, how often: with guarantees."""


def _version(asked: bool) -> None:
    if asked:
        from budge import __version__

        typer.echo(f"budge {__version__}")
        raise typer.Exit


def echo_json(record: Any) -> None:
    """Print a record as JSON, one document on standard output; control characters are written as escapes."""
    text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False, default=str)
    typer.echo("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text))


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code: errors become one readable line."""
    for name in COMMANDS:
        if name not in {command.name for command in app.registered_commands}:  # once, however often it is called
            importlib.import_module(f"budge.cli.{name}").register(app)
    for command in (*app.registered_commands, *(c for g in app.registered_groups if g.typer_instance for c in g.typer_instance.registered_commands)):
        command.cls = HelpfulCommand
    arguments = sys.argv[1:] if argv is None else argv
    with signals() as interrupt, silent():
        code = _main(arguments, interrupt)
        if argv is None and interrupt.number:
            end(code)
        return code


def _main(arguments: list[str], interrupt: Interrupt) -> int:
    as_json = "--json" in arguments
    told = _Told(quiet=not {"--quiet", "-q"}.isdisjoint(arguments))
    _TABLES.addHandler(told)
    _TABLES.propagate, _DRAFTS.disabled = False, True
    try:
        return _run(arguments, interrupt, as_json)
    finally:
        _TABLES.removeHandler(told)
        _TABLES.propagate, _DRAFTS.disabled = True, False


class _Told(logging.Handler):
    """Prints what was noticed in a table on standard error, once, with options as the shell has them."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__()
        self.lines: set[str] = set()
        self.quiet = quiet

    def emit(self, record: logging.LogRecord) -> None:
        """Print a note."""
        name, note = record.args or ("", "")
        line = printable(f"budge: {name}: {getattr(note, 'shell', note)}").replace("\n", "\\n")
        if line not in self.lines and not self.quiet:
            self.lines.add(line)
            typer.echo(line, err=True)


def _run(arguments: list[str], interrupt: Interrupt, as_json: bool) -> int:
    try:
        result = app(args=arguments, standalone_mode=False, prog_name="budge", obj=tuple(arguments))
        if result == 128 + signal.SIGINT:  # what typer makes of Ctrl-C
            return _interrupted(interrupt, as_json=as_json)
        sys.stdout.flush()  # here, where what stands in its way can be said
    except BudgeError as error:
        told = BudgeError(in_shell_words(error))
        _refuse(type(error).__name__, told.problems, as_json=as_json, text=str(told))
        return error.exit_code
    except KeyboardInterrupt:
        return _interrupted(interrupt, as_json=as_json)
    except SystemExit as error:  # typer's own end where the reader of the output is gone: 1 would say that a gate failed
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        return _unwritten()
    except BrokenPipeError:  # whoever read the output has had enough
        return _unwritten()
    except OSError as error:
        place = str(error.filename or "standard output")
        if not error.filename:
            _unwritten()
        problem = Problem(place, f"cannot be read or written: {error.strerror or error}", remedy="look at the disk and at who may write there")
        _refuse("StorageError", (problem,), as_json=as_json and bool(error.filename))
        return 3
    except Exception as error:
        if isinstance(error, getattr(typer, "Abort", ())):
            return _interrupted(interrupt, as_json=as_json)
        if not hasattr(error, "format_message") or not hasattr(error, "show"):  # click's usage errors have both
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
        else:
            _refuse("UsageError", (_usage(error),), as_json=as_json)
        return int(getattr(error, "exit_code", 2))
    return result if isinstance(result, int) else 0


def _interrupted(interrupt: Interrupt, *, as_json: bool) -> int:
    """State what is kept after Ctrl-C or SIGTERM; return 130 or 143."""
    _refuse("Interrupted", (Problem("", "interrupted", remedy=interrupt.kept),), as_json=as_json)
    return interrupt.code


def _unwritten() -> int:
    """Standard output takes no more: what is left of it goes nowhere, so that Python's own end says nothing, either."""
    with contextlib.suppress(OSError, ValueError):  # where no file stands behind it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 3


def _usage(error: Any) -> Problem:
    """What was written wrongly on the command line, in one line."""
    context = getattr(error, "ctx", None)
    command = getattr(context, "command_path", None) or "budge"
    what = str(error.format_message()).strip().rstrip(".").replace("\n", " ").replace("Value error, ", "")
    short = re.match(r"No such option: -(-[a-z])\b(?!-)", what)
    return Problem("", what, remedy=f"a short option has one hyphen: {short[1]}" if short else f"see {command} --help")


def _refuse(kind: str, problems: Sequence[Problem], *, as_json: bool, text: str = "") -> None:
    """Say no: a record with ``--json``, a line with the remedy otherwise."""
    if as_json:
        echo_json({"error": kind, "problems": [problem.to_dict() for problem in problems]})
        return
    from budge.cli.terminal import say

    say(f"budge: {text or '; '.join(map(str, problems))}", err=True, red="budge:")
