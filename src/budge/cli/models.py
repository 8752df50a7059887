"""Models as they are typed: a file, a folder of MLflow, ``module:function``, or an address; and what is trusted of a file."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from budge.errors import InputError, ModelError, nearest
from budge.files import near_file

if TYPE_CHECKING:
    from budge.models import Predictor

__all__ = ["ALL", "MODEL", "Model", "Trust", "called", "model_of", "models_of"]

MODEL = "A model: a file (.onnx, .skops, XGBoost .json/.ubj, LightGBM .txt), a folder of MLflow, module:function, or an address"
ALL = "all"
Model = Annotated[list[str], typer.Option(metavar="MODEL", help=f"{MODEL}; several as NAME=MODEL.")]
Trust = Annotated[
    list[str] | None,
    typer.Option(
        "--trust",
        metavar="TYPE",
        help=f"A type that a skops file may hold; may repeat. `--trust {ALL}` also loads files that run code.",
    ),
]
_NAME = r"[^\W\d]\w*"
_CODE = re.compile(rf"({_NAME}(?:\.{_NAME})*):({_NAME}(?:\.{_NAME})*)")


def models_of(given: Sequence[str], output: str, cutoff: float | None, trust: Sequence[str] | None) -> dict[str, Predictor]:
    """Return the models of ``NAME=MODEL``, or of one that is called after itself; a lone one is called `model`."""
    found: dict[str, Predictor] = {}
    for item in given:
        name, sign, text = item.partition("=")
        if not sign or Path(item).exists():
            name, text = "model" if len(given) == 1 else called(item), item
        if name in found:
            raise InputError("two models have one name", where="--model", got=name, remedy="write NAME=MODEL")
        found[name] = model_of(text, output, cutoff, trust)
    return found


def model_of(text: str, output: str, cutoff: float | None, trust: Sequence[str] | None) -> Predictor:
    """Return one model as it is typed."""
    from budge.models import as_predictor

    odd = next((name for name in trust or () if name.startswith("-") or not name), None)
    if odd is not None:
        raise InputError(
            "takes the name of a type",
            where="--trust",
            got=odd,
            remedy=f"give --trust {ALL}, or --trust TYPE for a type of a skops file",
        )
    trusted: Any = ALL in (trust or ()) or list(trust or ())
    file, _, name = text.partition(".py:")
    if text.endswith(".py") or name:
        remedy = f"write {Path(file).stem}:{name or 'FUNCTION'}, in the folder of the file"
        raise InputError("a Python file is named by its module and a function", where="--model", got=text, remedy=remedy)
    if re.fullmatch(r"[\w.-]+:\d+(/.*)?", text) and not Path(text).exists():
        raise InputError("an address begins with http:// or https://", where="--model", got=text, remedy=f"write http://{text}")
    code = _CODE.fullmatch(text)
    model = text if code is None or Path(text).exists() else _imported(*code.groups())
    return as_predictor(model, trust=trusted, output=output, threshold=cutoff)  # type: ignore[arg-type]


def called(text: str) -> str:
    """Return what a model without a name is called: its file, or its function."""
    code = _CODE.fullmatch(text)
    return Path(text).stem if code is None or Path(text).exists() else code[2]


def _imported(module: str, name: str) -> object:
    """Return what a module calls so; it is looked for among installed packages first, then in the folder where the command is given."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.append(here)
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            remedy = near_file(Path(f"{module.partition('.')[0]}.py"))
            module_file = remedy.startswith("did you mean") and ".py'" in remedy
            remedy = remedy.replace(".py'", "'") if module_file else "give the command in the folder of its file, or install its package"
            raise InputError("there is no such module", where="--model", got=module, remedy=remedy) from None
        what = f"the module {module} cannot be imported: {type(error).__name__}: {error}"
        raise ModelError(what, where="--model", remedy=f'try python -c "import {module}" in this folder') from error
    for part in name.split("."):
        if not hasattr(found, part):
            place = getattr(sys.modules[module], "__file__", None) or module
            remedy = nearest(part, [known for known in dir(found) if not known.startswith("_") and not isinstance(getattr(found, known, None), ModuleType)])
            raise InputError(f"{place} has no such name", where="--model", got=part, remedy=remedy)
        found = getattr(found, part)
    if isinstance(found, str | bytes | Path):
        raise InputError(
            "names a text, no model",
            where="--model",
            got=f"{module}:{name}",
            remedy="name a function of a table, or a fitted model",
        )
    return found
