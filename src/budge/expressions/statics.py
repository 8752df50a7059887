"""What can be said of a tree without any data: kinds of values, numbers of arguments, impossible constants."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from .distributions import DISTRIBUTIONS
from .evaluate import constant_value, is_constant
from .functions import FUNCTIONS
from .nodes import (
    Boolean,
    Call,
    Compare,
    Listing,
    Logic,
    Member,
    Name,
    Negate,
    Node,
    Not,
    Number,
    Power,
    Product,
    Sum,
    Text,
    children,
    render,
    walk,
)
from .parameters import check_draws
from .tokens import fail

__all__ = ["MAX_EXPONENT", "inspect", "is_truth"]

MAX_EXPONENT = 100.0
_CODED = ("value", "before", "latent")  # layers whose numbers may stand for levels


def is_truth(node: Node) -> bool:
    """Whether the node yields truth values."""
    match node:
        case Compare() | Member() | Logic() | Not() | Boolean():
            return True
        case Call("where", (_, a, b)):
            return is_truth(a) and is_truth(b)
        case _:
            return False


def inspect(node: Node) -> None:
    """Raise for the first thing that no data could make right."""
    _numbers_of_arguments(node)
    _strings(node, allowed=True)
    check_draws(node)
    _constants(node)


def _numbers_of_arguments(node: Node) -> None:
    for call in walk(node):
        if isinstance(call, Call):
            given, name = len(call.arguments), call.function
            signature, least, most = (
                (FUNCTIONS[name].signature, FUNCTIONS[name].least, FUNCTIONS[name].most)
                if name in FUNCTIONS
                else (DISTRIBUTIONS[name].signature, len(DISTRIBUTIONS[name].parameters), len(DISTRIBUTIONS[name].parameters))
            )
            if not least <= given <= most:
                raise fail(
                    f"{name} got {given} argument{'' if given == 1 else 's'}", call.column, render(call), f"write {signature}"
                )


def _strings(node: Node, allowed: bool) -> bool:
    """Refuse strings outside their places; says whether the node yields levels. ``allowed``: levels may be the result here."""
    match node:
        case Text(value):
            if not allowed:
                raise fail(
                    "a string cannot be used as a number or a truth value",
                    node.column,
                    value,
                    "compare it with a feature: housing == 'own'",
                )
            return True
        case Compare(first, rest):
            operands = [first, *(operand for _, operand in rest)]
            for left, right in pairwise(operands):
                for text, other in ((left, right), (right, left)):
                    if isinstance(text, Text):
                        _coded(other, text)
            for operand in operands:
                if not isinstance(operand, Text):
                    _strings(operand, False)
            return False
        case Member(item, values):
            texts = [value for value in values if isinstance(value, Text)]
            if texts and len(texts) < len(values):
                raise fail("the list mixes strings and numbers", node.column, render(node), "write either strings or numbers")
            if texts:
                _coded(item, texts[0])
            _strings(item, False)
            return False
        case Call("where", (condition, a, b)):
            _strings(condition, False)
            levels = [_strings(branch, allowed) for branch in (a, b)]
            other = b if levels[0] else a
            if any(levels) and not all(levels) and isinstance(other, Number | Boolean):
                raise fail(
                    "the branches of where mix strings and numbers", node.column, render(node), "write either strings or numbers"
                )
            return any(levels)
        case Call("categorical", (Listing(items), _)):
            strings = [isinstance(item, Text) for item in items]
            if any(strings) and not (all(strings) and allowed):
                what = "a string cannot be used as a number" if all(strings) else "the list mixes strings and numbers"
                raise fail(what, node.column, render(node), "write numbers")
            return any(strings)
        case _:
            for child in children(node):
                _strings(child, False)
            return False


def _coded(node: Node, text: Text) -> None:
    if not isinstance(node, Name):
        raise fail("a string can be compared only with a feature", text.column, text.value, "write it as housing == 'own'")
    if node.layer not in _CODED:
        what = f"{render(node)} is a difference, which has no levels"
        raise fail(what, text.column, text.value, "compare the value itself, or the difference with 0")


def _constants(node: Node) -> None:
    """Refuse exponents beyond the limit, and constant parts that are no finite number."""
    if isinstance(node, Listing | Text):
        return
    if isinstance(node, Power) and is_constant(node.exponent) and abs(constant_value(node.exponent)) > MAX_EXPONENT:
        raise fail(
            f"the exponent is beyond {MAX_EXPONENT:g}", node.exponent.column, render(node.exponent), "use exp and log for growth"
        )
    if isinstance(node, Call) and node.function == "round" and len(node.arguments) == 2:
        digits = node.arguments[1]
        if not isinstance(digits, Number) or not digits.value.is_integer() or abs(digits.value) > 15:
            raise fail(
                "the digits of round must be a whole constant from -15 to 15", digits.column, render(digits), "write round(x, 2)"
            )
    if isinstance(node, Call) and node.function == "clip" and all(map(is_constant, node.arguments[1:])):
        low, high = map(constant_value, node.arguments[1:])
        if low > high:
            raise fail("the lower end of clip is above the upper", node.column, render(node), "swap them")
    for child in children(node):
        _constants(child)
    if isinstance(node, Sum | Product | Power | Negate | Call) and is_constant(node):
        arguments = node.arguments if isinstance(node, Call) else ()
        if not any(isinstance(n, Text | Listing) for a in arguments for n in walk(a)) and not np.isfinite(constant_value(node)):
            raise fail(
                "this part is not a finite number",
                node.column,
                render(node),
                "look for a division by zero, or a root or log of a negative number",
            )
