"""What can be said of a tree without any data: kinds of values, numbers of arguments, impossible constants."""

from __future__ import annotations

import numpy as np

from .distributions import DISTRIBUTIONS, factor, flaw
from .evaluate import Evaluation, is_random
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
from .tokens import fail

__all__ = ["MAX_EXPONENT", "inspect", "is_constant", "is_truth"]

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


def is_constant(node: Node) -> bool:
    """Whether the node holds neither names nor draws."""
    return not any(isinstance(n, Name) for n in walk(node)) and not is_random(node)


def inspect(node: Node) -> None:
    """Raise for the first thing that no data could make right."""
    _numbers_of_arguments(node)
    _strings(node, allowed=True)
    _draws(node, top=True)
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
                raise fail(f"{name} got {given} argument{'' if given == 1 else 's'}", call.column, render(call), f"write {signature}")


def _strings(node: Node, allowed: bool) -> bool:
    """Refuse strings outside their places; says whether the node yields levels. ``allowed``: levels may be the result here."""
    match node:
        case Text(value):
            if not allowed:
                raise fail("a string cannot be used as a number or a truth value", node.column, value, "compare it with a feature: housing == 'own'")
            return True
        case Compare(first, rest):
            operands = [first, *(operand for _, operand in rest)]
            for left, right in zip(operands, operands[1:]):
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
                raise fail("the branches of where mix strings and numbers", node.column, render(node), "write either strings or numbers")
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


def _draws(node: Node, top: bool) -> None:
    if isinstance(node, Call) and node.function in DISTRIBUTIONS:
        rule = DISTRIBUTIONS[node.function]
        if node.function == "multivariate_normal":
            if not top:
                raise fail("multivariate_normal must be the whole expression", node.column, render(node), "name it as a latent vector and use its components")
            _normal_vector(node)
        elif node.function == "categorical":
            _categorical(node)
        else:
            for argument in node.arguments:
                if isinstance(argument, Listing):
                    raise fail(f"{node.function} takes numbers, not lists", argument.column, render(argument), f"write {rule.signature}")
            # A sound stand-in takes the place of what is not known yet, so that each constant is judged by itself.
            values = [_value(a) if is_constant(a) else None for a in node.arguments]
            known = [v for v in values if v is not None]
            if len(known) == len(values):
                found = flaw(node.function, known)
                if found:
                    raise fail(f"{rule.signature}: {found[0]}", node.column, render(node), "change the parameters")
            else:
                _one_by_one(node, values)
    for child in children(node):
        _draws(child, False)


def _one_by_one(node: Call, values: list[float | None]) -> None:
    """Judge the constants among the parameters where the others are names; only tests that read one parameter can fail."""
    rule = DISTRIBUTIONS[node.function]
    for i, value in enumerate(values):
        if value is None:
            continue
        trials = [[value if j == i else other for j in range(len(values))] for other in (*rule.stand_in, value, 0.5, 1.0, value - 1, value + 1)]
        flaws = [flaw(node.function, trial) for trial in trials]
        if all(flaws) and flaws[0] is not None:
            raise fail(f"{rule.signature}: {flaws[0][0]}", node.column, render(node), f"change {rule.parameters[i]}")


def _value(node: Node) -> float:
    with np.errstate(all="ignore"):
        return float(Evaluation({}).number(node))


def _items(node: Node, owner: Call) -> list[Node]:
    if not isinstance(node, Listing) or not node.items:
        raise fail(f"{owner.function} takes literal lists", node.column, render(node), f"write {DISTRIBUTIONS[owner.function].signature} with lists in square brackets")
    return list(node.items)


def _numbers(node: Node, owner: Call) -> list[float]:
    items = _items(node, owner)
    for item in items:
        if not isinstance(item, Number):
            raise fail("a number is expected in this list", item.column, render(item), "write numbers")
    return [item.value for item in items if isinstance(item, Number)]


def _categorical(node: Call) -> None:
    values, weights = _items(node.arguments[0], node), _numbers(node.arguments[1], node)
    for value in values:
        if isinstance(value, Listing):
            raise fail("categorical takes a flat list of values", value.column, render(value), "write numbers or strings")
    if len(values) != len(weights):
        raise fail(f"categorical got {len(values)} values and {len(weights)} weights", node.column, render(node), "give each value one weight")
    if len(set(values)) < len(values):
        raise fail("a value of categorical is listed twice", node.column, render(node), "list it once, with the sum of its weights")
    if min(weights) < 0 or max(weights) <= 0:
        raise fail("the weights of categorical must be at least 0, and not all 0", node.column, weights, "change the weights")


def _normal_vector(node: Call) -> None:
    mean = _numbers(node.arguments[0], node)
    rows = [_numbers(row, node) for row in _items(node.arguments[1], node)]
    if len(rows) != len(mean) or any(len(row) != len(mean) for row in rows):
        sizes = f"{len(rows)} by {'/'.join(str(n) for n in sorted({len(r) for r in rows}))}"
        raise fail(f"the mean has {len(mean)} components, the covariance is {sizes}", node.column, render(node), f"give a {len(mean)} by {len(mean)} covariance")
    if factor(np.array(rows)) is None:
        raise fail("the covariance is not symmetric and positive semi-definite", node.column, rows, "check the signs and both triangles")


def _constants(node: Node) -> None:
    """Refuse exponents beyond the limit, and constant parts that are no finite number."""
    if isinstance(node, Listing | Text):
        return
    if isinstance(node, Power) and is_constant(node.exponent) and abs(_value(node.exponent)) > MAX_EXPONENT:
        raise fail(f"the exponent is beyond {MAX_EXPONENT:g}", node.exponent.column, render(node.exponent), "use exp and log for growth")
    if isinstance(node, Call) and node.function == "round" and len(node.arguments) == 2:
        digits = node.arguments[1]
        if not isinstance(digits, Number) or not digits.value.is_integer() or abs(digits.value) > 15:
            raise fail("the digits of round must be a whole constant from -15 to 15", digits.column, render(digits), "write round(x, 2)")
    if isinstance(node, Call) and node.function == "clip" and all(map(is_constant, node.arguments[1:])):
        low, high = map(_value, node.arguments[1:])
        if low > high:
            raise fail("the lower end of clip is above the upper", node.column, render(node), "swap them")
    for child in children(node):
        _constants(child)
    if isinstance(node, Sum | Product | Power | Negate | Call) and is_constant(node):
        arguments = node.arguments if isinstance(node, Call) else ()
        if not any(isinstance(n, Text | Listing) for a in arguments for n in walk(a)) and not np.isfinite(_value(node)):
            raise fail("this part is not a finite number", node.column, render(node), "look for a division by zero, or a root or log of a negative number")
