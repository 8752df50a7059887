"""Is a piece of a spec well formed? Pydantic finds what is not; here it becomes a problem that a reader understands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from budge.errors import Problem, nearest
from budge.spec.document import place_of

__all__ = ["mapping_of", "shape_problems", "unknown_key"]

#: Keys by which a file would reach for code, files, addresses or secrets. A feature may bear such a name; a setting may not.
_REACHING = re.compile(
    r"\$?(ref|schema|id|include|includes|import|imports|extends|path|paths|file|files|filename|folder|url|uri|href|endpoint|host|module|python|function|callable|class"
    r"|code|eval|exec|command|cmd|script|shell|plugin|pickle|model|data|dataset|env|key|api_?key|token|secret|password|credentials?|auth)",
    re.IGNORECASE,
)
_ADDRESS = re.compile(
    r"[a-z][a-z0-9+.-]*://|(sk|pk|ghp|gho|xox[a-z]|AKIA)[-_A-Za-z0-9]{12,}$|[~.]{0,2}/\S+$|\S+\.(py|so|csv|parquet|pkl|joblib|onnx|pt|sh)$|[a-z_]\w*(\.\w+)*:[a-z_]\w*$"
)
_WORDS = {
    "string_type": ("must be a text", "put it in quotes"),
    "float_type": ("must be a number", ""),
    "int_type": ("must be a whole number", ""),
    "bool_type": ("must be true or false", ""),
    "list_type": ("must be a list", "write [a, b]"),
    "dict_type": ("must be a mapping", "write {key: value}"),
    "model_type": ("must be a mapping", "write {key: value}"),
    "model_attributes_type": ("must be a mapping", "write {key: value}"),
}


def unknown_key(place: str, key: object, value: object, known: Iterable[str]) -> Problem:
    """The problem of a key that is not known: the nearest one that is, or why there is none such."""
    where = f"{place}.{key}" if place else str(key)
    reaching = isinstance(key, str) and _REACHING.fullmatch(key)
    if reaching or (isinstance(value, str) and _ADDRESS.match(value)):  # the value is not echoed: it may be a secret
        what = f"unknown key {key!r}: a spec never names code, files or addresses, and never holds a key"
        return Problem(where, what, remedy="pass such things on the command line or in Python")
    return Problem(where, "unknown key", key, nearest(key, known))


def mapping_of(value: Any, place: str, found: list[Problem], what: str) -> dict[str, Any]:
    """The value as a mapping with text keys; nothing at all counts as an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        found.append(Problem(place, f"must be a mapping: {what}", value))
        return {}
    for key in value:
        if not isinstance(key, str):
            found.append(Problem(f"{place}.{key}", "a name is a text", key, f'write "{key}" in quotes'))
    return {key: body for key, body in value.items() if isinstance(key, str)}


def shape_problems(shape: type[BaseModel], body: Any, place: str) -> list[Problem]:
    """Missing, unknown and wrongly typed fields of one piece, all at once."""
    try:
        shape.model_validate(body)
    except ValidationError as error:
        found: dict[tuple[Any, ...], Problem] = {}
        for entry in error.errors(include_url=False, include_context=True, include_input=True):
            path = _path(body, entry["loc"])
            found.setdefault(path, _problem(shape, place, path, entry))  # the branches of a union complain together
        return list(found.values())
    return []


def _path(body: Any, loc: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """The part of pydantic's place that exists in the body, plus a last step that may be missing; union tags fall away."""
    path: tuple[int | str, ...] = ()
    for i, step in enumerate(loc):
        inside = isinstance(body, Mapping) and step in body
        listed = isinstance(body, list) and isinstance(step, int) and step < len(body)
        if not inside and not listed:
            return (*path, step) if i == 0 else path
        body, path = body[step], (*path, step)
    return path


def _problem(shape: type[BaseModel], place: str, path: tuple[Any, ...], entry: Mapping[str, Any]) -> Problem:
    kind, given = entry["type"], entry["input"]
    where = place_of([place, *path])
    known = [part.alias or name for name, part in shape.model_fields.items()]
    if kind == "missing":
        return Problem(place, f"the field {path[-1]!r} is missing", remedy="add it")
    if kind == "extra_forbidden":
        return unknown_key(place_of([place, *path[:-1]]), path[-1], given, known)
    if kind == "literal_error":
        options = re.findall(r"'([^']*)'", entry["ctx"]["expected"])
        return Problem(
            where,
            f"must be one of {', '.join(options)}" if len(options) > 1 else f"must be {options[0]!r}",
            given,
            _close(given, options),
        )
    if kind in ("too_short", "too_long"):
        wanted = entry["ctx"].get("min_length") if kind == "too_short" else entry["ctx"].get("max_length")
        return Problem(
            where,
            f"needs {'at least' if kind == 'too_short' else 'at most'} {wanted} entries",
            given,
            "write [lowest, highest]" if wanted == 2 else "",
        )
    what, remedy = _WORDS.get(kind, (str(entry["msg"]), ""))
    if kind == "string_type" and isinstance(given, dict | list):
        remedy = ""
    return Problem(where, what, given, remedy)


def _close(given: object, options: list[str]) -> str:
    hint = nearest(given, options)
    return hint if hint.startswith("did you mean") else ""
