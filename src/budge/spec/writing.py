"""From an interaction model to a spec file that a person likes to read, and that reads back as the same model."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, cast

from budge.errors import SpecError
from budge.files import write_whole
from budge.interaction import InteractionModel
from budge.spec.files import ending
from budge.spec.reading import parse
from budge.spec.yaml_text import scalar

__all__ = ["to_text", "write_model", "yaml_entry", "yaml_scalar"]

WIDTH = 130  #: where a long entry is broken
_PLAIN = re.compile(r"[^\W\d_][\w.\-/']*( [\w.\-/']+)*|_\w+")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
#: Words that other readers of YAML take for truth values, nothing or dates; quoted for their sake.
_TAKEN = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "nan", "inf"}


def write_model(im: InteractionModel, path: str | Path, *, overwrite: bool = False) -> Path:
    """Write a spec file, YAML, JSON or TOML by its ending: at once, or not at all."""
    path = Path(path)
    return write_whole(path, to_text(im, cast(Literal["yaml", "json", "toml"], ending(path))), overwrite=overwrite)


def to_text(im: InteractionModel, kind: Literal["yaml", "json", "toml"] = "yaml") -> str:
    """The spec as text; it is read back before it is returned, so that what is written is the same model.

    Examples
    --------
    >>> import budge
    >>> print(to_text(budge.InteractionModel([budge.Feature("age", "integer", bounds=(18, 100))])), end="")
    budge: 1
    features:
      age: {type: integer, bounds: [18, 100]}
    """
    spec = im.to_spec()
    text = {"yaml": _yaml, "json": _json, "toml": _toml}[kind](spec)
    back = parse(text, kind, name="what was written")
    if back.digest != im.digest or back.to_spec() != spec:
        raise SpecError(
            f"cannot be written as {kind} without a loss",
            got=im.name or repr(im),
            remedy="use plain numbers and texts in features and constraints",
        )
    return text


def _yaml(spec: Mapping[str, Any]) -> str:
    lines = []
    for key, value in spec.items():
        if isinstance(value, dict):
            lines.append(f"{key}:")
            width = min(max((len(yaml_scalar(k)) for k in value), default=0), 30) + 1
            lines += [yaml_entry(f"  {yaml_scalar(k) + ':':<{width}} ", body) for k, body in value.items()]
        elif isinstance(value, list):
            lines.append(f"{key}:")
            lines += [_yaml_item(item) for item in value]
        else:
            lines.append(f"{key}: {yaml_scalar(value)}")
    return "\n".join(lines) + "\n"


def _yaml_item(item: dict[str, Any]) -> str:
    if len(item) == 1:  # a constraint: its kind, then its fields
        ((kind, body),) = item.items()
        return yaml_entry(f"  - {yaml_scalar(kind)}: ", body)
    return yaml_entry("  - ", item)


def yaml_entry(head: str, body: Any) -> str:
    """One entry in flow style, broken between its fields where it is long.

    Examples
    --------
    >>> yaml_entry("  age: ", {"type": "integer", "bounds": [18, 100]})
    '  age: {type: integer, bounds: [18, 100]}'
    """
    line = head + _flow(body, yaml_scalar, ": ")
    if len(line) <= WIDTH or not isinstance(body, dict):
        return line
    indent = " " * (len(head) - len(head.lstrip()) + 6)
    rows, row = [], head + "{"
    for i, (key, value) in enumerate(body.items()):
        part = f"{yaml_scalar(key)}: {_flow(value, yaml_scalar, ': ')}" + ("}" if i == len(body) - 1 else ",")
        if i and len(row) + 1 + len(part) > WIDTH:
            rows.append(row)
            row = indent + part
        else:
            row += f" {part}" if i else part
    return "\n".join([*rows, row])


def yaml_scalar(value: Any) -> str:
    """A text, number, truth value or nothing as YAML 1.2 writes it; quoted wherever another reader might mistake it."""
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and value.isprintable() and value.lower() not in _TAKEN and isinstance(scalar(value), str)
        return value if plain else _quoted(value, yaml=True)
    if isinstance(value, float) and math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    return _literal(value)


def _json(spec: Mapping[str, Any]) -> str:
    def some(body: Any) -> str:
        return _flow(_text_keys(body), _json_scalar, ": ", key=_json_scalar)

    blocks = []
    for key, value in spec.items():
        if isinstance(value, dict):
            inner = ",\n".join(f"    {_json_scalar(k)}: {some(body)}" for k, body in value.items())
            blocks.append(f"  {_json_scalar(key)}: {{\n{inner}\n  }}" if inner else f"  {_json_scalar(key)}: {{}}")
        elif isinstance(value, list):
            inner = ",\n".join(f"    {some(item)}" for item in value)
            blocks.append(f"  {_json_scalar(key)}: [\n{inner}\n  ]")
        else:
            blocks.append(f"  {_json_scalar(key)}: {_json_scalar(value)}")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def _json_scalar(value: Any) -> str:
    if isinstance(value, float) and math.isinf(value):
        return '"inf"' if value > 0 else '"-inf"'
    return _quoted(value) if isinstance(value, str) else _literal(value)


def _toml(spec: Mapping[str, Any]) -> str:
    lines = []
    for key, value in spec.items():
        if isinstance(value, dict):
            lines += ["", f"[{key}]", *(f"{_toml_key(k)} = {_toml_value(body)}" for k, body in value.items())]
        elif isinstance(value, list):
            for item in value:
                lines += ["", f"[[{key}]]", *(f"{_toml_key(k)} = {_toml_value(body)}" for k, body in item.items())]
        else:
            lines.append(f"{key} = {_toml_scalar(value)}")
    return "\n".join(lines) + "\n"


def _toml_value(body: Any) -> str:
    return _flow(_text_keys(body), _toml_scalar, " = ", key=_toml_key)


def _toml_key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _quoted(key, toml=True)


def _toml_scalar(value: Any) -> str:
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return _quoted(value, toml=True) if isinstance(value, str) else _literal(value)


def _flow(value: Any, leaf: Callable[[Any], str], between: str, *, key: Callable[[Any], str] | None = None) -> str:
    """Nested brackets on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{(key or leaf)(k)}{between}{_flow(v, leaf, between, key=key)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_flow(v, leaf, between, key=key) for v in value) + "]"
    return leaf(value)


def _text_keys(body: Any) -> Any:
    """Mappings with keys that are no texts as lists of pairs: JSON and TOML have text keys only."""
    if isinstance(body, dict):
        inner = {k: _text_keys(v) for k, v in body.items()}
        return inner if all(isinstance(k, str) for k in inner) else [[k, v] for k, v in inner.items()]
    return [_text_keys(v) for v in body] if isinstance(body, list | tuple) else body


def _literal(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return repr(value)


def _quoted(text: str, *, yaml: bool = False, toml: bool = False) -> str:
    """The text in double quotes, with everything that does not print escaped as all three formats read it."""
    out = []
    for c in text:
        if c in '"\\':
            out.append("\\" + c)
        elif c.isprintable():
            out.append(c)
        elif c in "\n\t\r":
            out.append({"\n": "\\n", "\t": "\\t", "\r": "\\r"}[c])
        elif ord(c) < 0x10000:
            out.append(f"\\u{ord(c):04x}")
        elif yaml or toml:
            out.append(f"\\U{ord(c):08x}")
        else:  # JSON: a pair of halves
            high, low = divmod(ord(c) - 0x10000, 0x400)
            out.append(f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}")
    return '"' + "".join(out) + '"'
