"""A project file: what would otherwise be typed for each command, in ``budge.toml``.

Its keys are the names of options. What is typed wins; what is not typed is read from the file and added to the command, so that a run records the
whole command. Paths are relative to the file. A file that is read cannot name code: models are files, never ``module:function`` or an address, and
trust, engines and overwriting are given on the shell alone.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from budge.errors import InputError, Problem, nearest
from budge.stored import read_bytes

__all__ = ["FILE", "KEYS", "completed", "read_project"]

FILE = "budge.toml"
MOST_BYTES = 64_000
#: What may stand in a project file: the name of an option without its hyphens, `spec` and `data`, and `run`, the folder of the run.
KEYS = (
    "spec", "data", "read", "model", "target", "run", "id", "drop", "by", "population", "threshold", "alpha", "claim", "harm", "output", "cutoff", "on-invalid",
    "seed", "people-name", "target-name", "group-label", "feature-label", "level-label", "threshold-reason", "purpose", "auditor",
)  # fmt: skip
SEVERAL = ("read", "model", "target", "drop", "by", "group-label", "feature-label", "level-label")
SHELL = ("trust", "overwrite", "engine", "predictions", "jobs", "fail-if", "out")  # options that a file that is read must not set, or that are of one call
RUN_ONLY = ("show", "export", "gate", "report")  # commands about a saved run, which holds its own question


def read_project(path: Path) -> dict[str, list[str]] | None:
    """Return the options of a project file as they would be typed, paths seen from here; None for a spec that has the name of a project file."""
    data = read_bytes(path, MOST_BYTES, remedy=f"give the path of a {FILE}", follow=True)
    try:
        tree = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"cannot be read as TOML: {error}", where=str(path), remedy="write lines such as target = 1") from None
    if "budge" in tree:
        return None
    problems, found = list[Problem](), dict[str, list[str]]()
    for key, value in tree.items():
        if key not in KEYS:
            remedy = f"give --{key} on the shell" if key in SHELL else nearest(key, KEYS)
            problems.append(Problem(f"{path}: {key}", "is no key of a project file", value, remedy))
            continue
        try:
            found[key] = _texts(key, value, path.parent)
        except InputError as error:
            problems += error.at(f"{path}: {key}").problems
    InputError.raise_if(problems)
    return found


def _texts(key: str, value: Any, folder: Path) -> list[str]:
    """Return the values of one key as texts."""
    if key in ("model", "target") and isinstance(value, Mapping):
        value = [f"{name}={one}" if isinstance(one, str | int | float) and not isinstance(one, bool) else one for name, one in value.items()]
    several = list(value) if isinstance(value, list) else [value]
    if any(isinstance(v, bool) or not isinstance(v, str | int | float) for v in several) or (isinstance(value, list) and key not in SEVERAL) or not several:
        what = "must be a text, or a list of texts" if key in SEVERAL else "must be one text or number"
        example = '["a", "b"]' if key in SEVERAL else "0.1" if key in ("threshold", "alpha", "cutoff") else "1" if key == "seed" else '"a text"'
        raise InputError(what, got=value, remedy=f"write {key} = {example}")
    texts = [str(v) for v in several]
    if key == "model":
        return [_model(text, folder) for text in texts]
    if key in ("spec", "data", "run"):
        if "://" in texts[0]:
            raise InputError("a project file names no address", got=texts[0], remedy=f"give --{key} on the shell" if key != "data" else "give it on the shell")
        if key == "run" and not (folder / texts[0]).resolve().is_relative_to(folder.resolve()):
            raise InputError("must be a folder inside the project's folder", got=texts[0], remedy='write run = "run"')
        return [_path(texts[0], folder)]
    return texts


def _path(text: str, folder: Path) -> str:
    joined = text if folder == Path() else os.path.join(folder, text)
    return os.path.join(".", joined) if joined.startswith("-") else joined


def _model(text: str, folder: Path) -> str:
    """Return a model file as it would be typed: FILE, or NAME=FILE."""
    name, sign, file = text.partition("=")
    if not sign or (folder / text).exists():
        name, sign, file = "", "", text
    there = (folder / file).is_file() or (folder / file / "MLmodel").is_file()
    if not there or ":" in os.path.splitdrive(file)[1]:  # code or an address (also that of a folder called http:), or nothing at all
        remedy = "name a model file that exists, or give --model on the shell"
        raise InputError("a project file names model files, no code and no address", got=text, remedy=remedy)
    return f"{name}{sign}{_path(file, folder)}"


def completed(command: str, parameters: Sequence[Any], typed: Mapping[str, Any], arguments: list[str]) -> tuple[list[str], list[str]]:
    """Return the arguments with what a project file adds to them, and the keys that it adds.

    Parameters
    ----------
    command, parameters
        The name of the command, and its options and arguments.
    typed
        The values that were typed, by the name of the parameter.
    """
    given = typed.get("project")
    path = Path(given) if isinstance(given, str) else Path(FILE)
    if not isinstance(given, str) and not path.is_file():
        return arguments, []
    found = read_project(path)
    if found is None:
        if isinstance(given, str):
            raise InputError("is a spec, no project file", where=str(path), remedy="write the names of options, such as spec and target")
        return arguments, []
    known = {"run": found["run"]} if command in RUN_ONLY and "run" in found else {} if command in RUN_ONLY else found
    if "data" in typed:  # how one file is read says nothing of another
        known = {key: value for key, value in known.items() if key != "read"}
    options, behind, used = list[str](), list[str](), list[str]()
    open_ = True  # an argument can be added only behind those that were typed or added
    for parameter in parameters:
        argument = parameter.param_type_name == "argument"
        if parameter.name in typed:
            continue
        key = next((k for k in known if _is(parameter, k, command, argument=argument)), None)
        if key is None:
            open_ = open_ and not argument
            continue
        if len(known[key]) > 1 and not parameter.multiple:
            raise InputError(f"budge {command} takes one", where=f"{path}: {key}", got=known[key], remedy=f"give --{key} on the shell")
        if argument and not open_:
            continue
        used.append(key)
        if argument:
            behind += known[key]
        else:
            options += [f"{parameter.opts[0]}={value}" for value in known[key]]
    return [*options, *arguments, *behind], used


def _is(parameter: Any, key: str, command: str, *, argument: bool) -> bool:
    """Return whether a key of the file is meant for a parameter of a command."""
    if argument:
        return bool(parameter.name == key or (key == "spec" and parameter.name == "specs"))
    return f"--{key}" in parameter.opts or (key == "run" and command == "audit" and parameter.name == "out")
