"""What an expression is made of: frozen nodes, and the canonical text of a tree.

Chains of one precedence (``a + b - c``, ``a and b and c``) are one node, so that a tree is as deep as its brackets.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = [
    "LAYERS", "Boolean", "Call", "Compare", "Listing", "Logic", "Member", "Name", "Negate", "Node", "Not", "Number", "Power",
    "Product", "Sum", "Text", "Var", "children", "quote", "render", "walk",
]  # fmt: skip

Var = tuple[str, str]
LAYERS = ("value", "before", "action", "effect", "latent")
PLAIN = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Node:
    """Any node; the column where it starts in the text is not part of its identity."""

    column: int = field(default=0, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Number(Node):
    """A finite constant."""

    value: float


@dataclass(frozen=True)
class Text(Node):
    """A string: the level of a category."""

    value: str


@dataclass(frozen=True)
class Boolean(Node):
    """True or False."""

    value: bool


@dataclass(frozen=True)
class Name(Node):
    """A variable: a layer and the name of a feature or of a latent draw."""

    layer: str
    name: str


@dataclass(frozen=True)
class Negate(Node):
    """Minus."""

    operand: Node


@dataclass(frozen=True)
class Not(Node):
    """The opposite truth."""

    operand: Node


@dataclass(frozen=True)
class Sum(Node):
    """``first + a - b …``, from left to right."""

    first: Node
    rest: tuple[tuple[str, Node], ...]


@dataclass(frozen=True)
class Product(Node):
    """``first * a / b // c % d …``, from left to right."""

    first: Node
    rest: tuple[tuple[str, Node], ...]


@dataclass(frozen=True)
class Power(Node):
    """``base ** exponent``."""

    base: Node
    exponent: Node


@dataclass(frozen=True)
class Compare(Node):
    """``first < a <= b …``: every neighbouring pair compares so; `whole`: every operand is a whole number."""

    first: Node
    rest: tuple[tuple[str, Node], ...]
    whole: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class Member(Node):
    """``item in [values]``, or ``not in``."""

    item: Node
    values: tuple[Node, ...]
    negated: bool
    whole: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class Logic(Node):
    """``a and b …`` or ``a or b …``."""

    operator: str
    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Call(Node):
    """A function or a distribution, applied."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class Listing(Node):
    """A literal list, as an argument of a distribution."""

    items: tuple[Node, ...]


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly under a node, from left to right."""
    match node:
        case Negate(operand) | Not(operand):
            return (operand,)
        case Sum(first, rest) | Product(first, rest) | Compare(first, rest):
            return (first, *(operand for _, operand in rest))
        case Power(base, exponent):
            return (base, exponent)
        case Member(item, values):
            return (item, *values)
        case Logic(_, parts) | Call(_, parts) | Listing(parts):
            return parts
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """The node and all nodes under it."""
    yield node
    for child in children(node):
        yield from walk(child)


def quote(name: str) -> str:
    """A name as the language writes it: in backticks unless it is a plain identifier."""
    if PLAIN.fullmatch(name) and not keyword.iskeyword(name) and not name.startswith("__"):
        return name
    return "`" + name.replace("`", "``") + "`"


_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _MINUS, _POWER, _ATOM = range(1, 10)


def _level(node: Node) -> int:
    match node:
        case Logic(operator):
            return _OR if operator == "or" else _AND
        case Not():
            return _NOT
        case Compare() | Member():
            return _COMPARE
        case Sum():
            return _SUM
        case Product():
            return _PRODUCT
        case Negate():
            return _MINUS
        case Number(value) if value < 0:
            return _MINUS
        case Power():
            return _POWER
        case _:
            return _ATOM


def render(node: Node, floor: int = _OR) -> str:
    """The canonical text, with no brackets beyond need; it parses back to an equal tree."""
    text = _render(node)
    return text if _level(node) >= floor else f"({text})"


def _render(node: Node) -> str:
    match node:
        case Number(value):
            return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)
        case Text(value):
            return repr(value)
        case Boolean(truth):
            return str(truth)
        case Name(layer, name):
            return quote(name) if layer == "value" else f"{layer}.{quote(name)}"
        case Negate(operand):
            return f"-{render(operand, _MINUS)}"
        case Not(operand):
            return f"not {render(operand, _NOT)}"
        case Sum(first, rest):
            return render(first, _SUM) + "".join(f" {op} {render(operand, _PRODUCT)}" for op, operand in rest)
        case Product(first, rest):
            return render(first, _PRODUCT) + "".join(f" {op} {render(operand, _MINUS)}" for op, operand in rest)
        case Power(base, exponent):
            return f"{render(base, _ATOM)} ** {render(exponent, _MINUS)}"
        case Compare(first, rest):
            return render(first, _SUM) + "".join(f" {op} {render(operand, _SUM)}" for op, operand in rest)
        case Member(item, values, negated):
            return f"{render(item, _SUM)} {'not in' if negated else 'in'} [{', '.join(map(render, values))}]"
        case Logic(operator, parts):
            return f" {operator} ".join(render(part, _AND if operator == "or" else _NOT) for part in parts)
        case Call(function, arguments):
            return f"{function}({', '.join(map(render, arguments))})"
        case Listing(items):
            return f"[{', '.join(map(render, items))}]"
        case _:  # pragma: no cover
            raise AssertionError(node)
