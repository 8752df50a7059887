"""Interactions and judges can be written down: as a record, as a key, and as ``name(argument=value)`` on a command line.

Nothing that is read names code to run: a text is parsed, never evaluated, and only known names are built.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from hashlib import blake2b
from importlib import import_module
from typing import Any, ClassVar, Self

from budge.errors import BudgeError, Problem, SpecError, nearest

__all__ = ["Family", "Written"]

LONGEST = 10_000  # characters of a text on the command line


@dataclass(frozen=True)
class Written:
    """A frozen dataclass that can be written as a record and has a key; `label` is what tables call it."""

    kind: ClassVar[str] = ""

    label: str = field(default="", kw_only=True)

    def named(self, label: str) -> Self:
        """The same under another name in tables."""
        if not isinstance(label, str) or not label.strip():
            raise SpecError("a label is a text", where=f"{self.kind}.label", got=label)
        return replace(self, label=label)

    def to_dict(self) -> dict[str, Any]:
        """The record: the kind and every field."""
        record = {"kind": self.kind} | {f.name: _plain(getattr(self, f.name)) for f in fields(self) if f.name != "label"}
        return record | ({"label": self.label} if self.label else {})

    def _content(self) -> dict[str, Any]:
        """What makes two of them the same; files are in it by their content."""
        return {
            "kind": self.kind or type(self).__qualname__,
            **{f.name: _content_of(getattr(self, f.name)) for f in fields(self) if f.name not in ("label", *self._outside())},
        }

    def _outside(self) -> tuple[str, ...]:
        """Fields that do not matter to what is drawn or judged, such as where a file lies."""
        return ()

    @property
    def key(self) -> str:
        """A digest of the content: the same key, the same draws and judgements. The label is not in it."""
        body = json.dumps(self._content(), sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=repr)
        return blake2b(body.encode(), digest_size=16).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, Written):
        return value.to_dict()
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return value


def _content_of(value: Any) -> Any:
    if isinstance(value, Written):
        return value._content()
    if isinstance(value, tuple | list):
        return [_content_of(v) for v in value]
    return value


_BARE = re.compile(r"[\w./:@+-]*[\w/]")
_STRING = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.S)


def _quoted(text: str) -> str:
    """Bare words in brackets that Python could not read (openai/gpt-4o, data/fr.jsonl) put in quotes."""
    parts, at, depth = [], 0, 0
    while at < len(text):
        if (string := _STRING.match(text, at)) is not None:
            part = string[0]
        elif depth and (bare := _BARE.match(text, at)) is not None:
            part = bare[0]
            if not part.isidentifier() and not _number(part):
                parts.append(repr(part))
                at += len(part)
                continue
        else:
            part = text[at]
            depth += (part in "([{") - (part in ")]}")
        parts.append(part)
        at += len(part)
    return "".join(parts)


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return not any(c.isalpha() for c in text)  # 1+1 is for the parser to refuse
    return True


@dataclass(frozen=True)
class Family:
    """The known interactions, or the known judges: where each is made, and how several are put together."""

    what: str
    room: str  # the package in which the builders live
    builders: Mapping[str, str]  # name → module of its builder
    kinds: Mapping[str, tuple[str, str]]  # kind → module and class, for records
    joins: Mapping[str, Callable[[Any, Any], Any]] = field(default_factory=dict)
    turns: Callable[[Any], Any] | None = None
    nested: tuple[str, ...] = ()  # builders whose arguments are members of the family themselves
    known_as: Mapping[str, str] = field(default_factory=dict)  # shorter names for the command line

    def from_dict(self, record: Mapping[str, Any]) -> Any:
        """The member that a record describes."""
        if not isinstance(record, Mapping) or not isinstance(record.get("kind"), str):
            raise SpecError(f"a record of {self.what} has a kind", got=record, remedy=nearest("", self.kinds))
        kind = str(record["kind"])
        if kind not in self.kinds:
            raise SpecError(f"no such {self.what}", where="kind", got=kind, remedy=nearest(kind, self.kinds))
        module, name = self.kinds[kind]
        made = getattr(import_module(f"{self.room}.{module}"), name)
        if not isinstance(record.get("label", ""), str):
            raise SpecError("a label is a text", where=f"{kind}.label", got=record["label"])
        read = getattr(made, "from_record", None)
        given = {str(k): self._value(v) for k, v in record.items() if k != "kind"}
        if read is not None:
            return read(given)
        known = [f.name for f in fields(made) if f.init]
        SpecError.raise_if(
            Problem(f"{kind}.{name}", "no such argument", given[name], nearest(name, known))
            for name in given
            if name not in known
        )
        missing = set(inspect.signature(made).parameters) - set(given)
        needed = [n for n in missing if inspect.signature(made).parameters[n].default is inspect.Parameter.empty]
        SpecError.raise_if(Problem(kind, "lacks an argument", name) for name in sorted(needed))
        return made(**given)

    def _value(self, value: Any) -> Any:
        if isinstance(value, Mapping) and "kind" in value:
            return self.from_dict(value)
        if isinstance(value, list | tuple):
            return tuple(self._value(v) for v in value)
        return value

    def parse(self, text: str) -> Any:
        """The member that a text describes: ``misspell(rate=0.1, most=3)``, ``name = a() | b()``."""
        if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
            raise SpecError(f"a text that describes one {self.what} is wanted", got=text, remedy=f"such as {self._sample()}")
        label = re.match(r"\s*([A-Za-z][\w.+-]*)\s*=(?!=)\s*(?=[A-Za-z~(])", text)
        body = text[label.end() :] if label else text
        try:
            tree = ast.parse(_quoted(body.strip()), mode="eval").body
            made = self._made(tree, body.strip())
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            if isinstance(error, BudgeError):
                raise
            raise SpecError(f"cannot be read as one {self.what}", got=text, remedy=f"write it like {self._sample()}") from error
        return made.named(label[1]) if label else made

    def _sample(self) -> str:
        return next(iter(self.builders)) + "()"

    def _made(self, node: ast.expr, text: str) -> Any:
        if isinstance(node, ast.BinOp) and type(node.op).__name__ in self.joins:
            return self.joins[type(node.op).__name__](self._made(node.left, text), self._made(node.right, text))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert) and self.turns is not None:
            return self.turns(self._made(node.operand, text))
        if isinstance(node, ast.Name):
            return self._call(node.id, [], {})
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            inside = node.func.id in self.nested
            names = [k.arg for k in node.keywords]
            if None in names or any(isinstance(a, ast.Starred) for a in node.args):
                raise SpecError("stars cannot be used here", got=text)
            if len(set(names)) < len(names):
                raise SpecError("an argument is repeated", where=node.func.id, got=text)
            args = [self._argument(a, text, inside) for a in node.args]
            named = {str(k.arg): self._argument(k.value, text, False) for k in node.keywords if k.arg is not None}
            return self._call(node.func.id, args, named)
        got = ast.unparse(node)
        raise SpecError(f"is no {self.what}", got=got, remedy=f"write it like {self._sample()}")

    def _argument(self, node: ast.expr, text: str, inside: bool) -> Any:
        if inside and isinstance(node, ast.Name | ast.Call | ast.BinOp | ast.UnaryOp):
            return self._made(node, text)
        if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, str | int | float)):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            value = node.operand.value
            if isinstance(value, int | float) and not isinstance(value, bool):
                return -value
        if isinstance(node, ast.List | ast.Tuple):
            return [self._argument(item, text, inside) for item in node.elts]
        if isinstance(node, ast.Dict) and all(key is not None for key in node.keys):
            return {
                self._argument(k, text, False): self._argument(v, text, False)
                for k, v in zip(node.keys, node.values)
                if k is not None
            }
        if isinstance(node, ast.Name | ast.Attribute):
            return ast.unparse(node)  # a bare word is a text: a name, a file
        raise SpecError("is no value", got=ast.unparse(node), remedy="put a text in quotes")

    def _call(self, name: str, args: list[Any], named: dict[str, Any]) -> Any:
        name = self.known_as.get(name, name)
        if name not in self.builders:
            raise SpecError(f"no such {self.what}", got=name, remedy=nearest(name, [*self.builders, *self.known_as]))
        build = getattr(import_module(f"{self.room}.{self.builders[name]}"), name)
        parameters = inspect.signature(build).parameters
        unknown = [n for n in named if n not in parameters]
        SpecError.raise_if(Problem(f"{name}.{n}", "no such argument", named[n], nearest(n, parameters)) for n in unknown)
        try:
            inspect.signature(build).bind(*args, **named)
        except TypeError as error:
            raise SpecError(
                f"cannot be called like this: {error}", where=name, remedy=f"{name}{inspect.signature(build)}"
            ) from error
        return build(*args, **named)
