"""How commands are read and explained: an option that is given twice is an error, a project file gives what is not typed, and in ``--help``
summaries are whole sentences, options stand in groups, choices are shown, and nothing is cut at any width.
"""

from __future__ import annotations

import re
from typing import Any

import typer.core
from rich.cells import cell_len

from budge.cli.layout import wrap
from budge.cli.project import FILE, completed
from budge.cli.terminal import say
from budge.errors import InputError, Problem

__all__ = ["PANELS", "HelpfulCommand", "HelpfulGroup", "panel_of"]

#: Groups of options, in this order, by the name of the parameter; others stand under "Options".
PANELS = {
    "Question": (
        "target", "threshold", "alpha", "claim", "population", "harm", "adjust", "by", "fail_if", "limit", "relax", "stuck", "vary", "toggle", "person", "k",
        "cost", "power", "rate", "margin", "width", "with_convex", "prove", "prove_seconds", "seconds",
    ),
    "Data and model": (
        "data", "model", "other_model", "predictions", "output", "cutoff", "drop", "label", "on_invalid", "max_unresolved", "trust", "spec",
        "project",
    ),
    "Draws": ("n", "method", "sequential", "seed"),
    "Words": ("people_name", "target_name", "group_label", "feature_label", "level_label", "threshold_reason", "purpose", "auditor", "title"),
    "Where and how": ("jobs", "engine", "port", "host", "rows"),
    "Output": (
        "csv", "parquet", "latex", "xlsx", "out", "overwrite", "figure", "kind", "report", "curve", "letter", "strict", "schema", "as_json", "quiet",
        "open_browser",
    ),
}  # fmt: skip
LAST = "Options"


def panel_of(parameter: Any) -> str:
    """Return the group of an option: its own where it names one, else by its name."""
    own = getattr(parameter, "rich_help_panel", None)
    return own or next((panel for panel, names in PANELS.items() if parameter.name in names), LAST)


def _write(formatter: Any, title: str, rows: list[tuple[str, str]]) -> None:
    """Write a group: the texts beside the names, below those that are long; words are not broken at hyphens, which options are full of."""
    with formatter.section(title):
        indent = formatter.current_indent
        most = 30 if formatter.width >= 90 else 24 if formatter.width >= 70 else 14
        beside = min(max(cell_len(name) for name, _ in rows), most) + 2
        for name, text in rows:
            lines = wrap(text, formatter.width - indent - beside)
            if cell_len(name) + 2 <= beside:
                lines[0] = f"{name}{' ' * (beside - cell_len(name))}{lines[0]}"
                lines[1:] = [" " * beside + line for line in lines[1:]]
            else:
                lines = [name, *(" " * beside + line for line in lines)]
            formatter.write("".join(f"{' ' * indent}{line}".rstrip() + "\n" for line in lines))


def _options(command: Any, context: Any, formatter: Any) -> None:
    arguments, groups = [], dict[str, list[tuple[str, str]]]()
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None:
            continue
        record = (re.sub(r"<list\[(\w+)\]>", lambda kind: f"<{kind[1].lower()}>", record[0]), record[1])  # a list is given one by one
        if parameter.param_type_name == "argument":
            arguments.append(record)
        else:
            groups.setdefault(panel_of(parameter), []).append(record)
    if arguments:
        _write(formatter, "Arguments", arguments)
    for title in (*PANELS, *(name for name in groups if name not in PANELS)):
        if title in groups:
            _write(formatter, title, groups[title])


class HelpfulCommand(typer.core.TyperCommand):
    """A command whose options are shown in groups, and none of which vanishes."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse a single option that is given more than once, then add what a project file gives."""
        values, _, order = self.make_parser(ctx).parse_args(args=list(args))
        seen = set()
        for parameter in order:
            if parameter.name in seen and parameter.param_type_name == "option" and not parameter.multiple:
                name = max(parameter.opts, key=len)
                raise InputError("is given more than once", where=name, remedy=f"give {name} once; options that may repeat say so in --help")
            seen.add(parameter.name)
        if "project" in (p.name for p in self.params) and not ctx.resilient_parsing and "help" not in values:
            typed = {name: value for name, value in values.items() if isinstance(value, str | tuple | list | bool) and value not in ((), [])}
            before = list(args)
            args, used = completed(str(self.name), self.params, typed, before)
            root = ctx.find_root()
            if used and isinstance(root.obj, tuple):
                root.obj = (*root.obj[: len(root.obj) - len(before)], *args)  # the command that a run records
                if not {"as_json", "quiet"} & set(values):
                    say(f"From {values.get('project') or FILE}: {', '.join(used)}.", err=True)
        self._check_values(ctx, args)
        return list(super().parse_args(ctx, args))

    def _check_values(self, ctx: Any, args: list[str]) -> None:
        """Raise all problems of the values together, where there are several: the parser would stop at the first."""
        values, _, order = self.make_parser(ctx).parse_args(args=list(args))
        found = []
        for parameter in self.params if not any(p.is_eager for p in order) else ():
            try:
                parameter.process_value(ctx, parameter.consume_value(ctx, values)[0])
            except Exception as error:
                if not hasattr(error, "format_message"):  # a usage error has one
                    raise
                if getattr(error, "param", None) is None:
                    error.param = parameter  # type: ignore[attr-defined]  # as the parser does
                found.append(str(error.format_message()).strip().rstrip(".").replace("\n", " ").replace("Value error, ", ""))
        if len(found) > 1:
            raise InputError([*(Problem("", what) for what in found[:-1]), Problem("", found[-1], remedy=f"see {ctx.command_path} --help")])

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options group by group."""
        _options(self, ctx, formatter)


class HelpfulGroup(typer.core.TyperGroup):
    """A group of commands whose summaries are shown whole."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write options group by group, then commands with their whole first sentence."""
        _options(self, ctx, formatter)
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                rows.append((name, command.get_short_help_str(limit=1000)))
        _write(formatter, "Commands", rows)
