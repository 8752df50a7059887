"""Comparisons of whole numbers: which they are, and their sides made whole, so that they compare exactly.

A decimal stands for the number as written: ``0.01 * cents <= 100000`` over whole cents is ``cents <= 10000000``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from .distributions import DISTRIBUTIONS
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
    Var,
)
from .statics import is_truth

__all__ = ["common_denominator", "denominator", "fraction", "is_whole", "make_whole"]

LARGEST = 10**6  # a number that needs more to become whole counts as real


def fraction(value: float) -> Fraction | None:
    """Return the fraction that a float stands for, as written or up to rounding; None where its denominator is too large.

    Examples
    --------
    >>> fraction(0.01), fraction(1 / 3), fraction(0.1 * 3), fraction(0.1234567890123)
    (Fraction(1, 100), Fraction(1, 3), Fraction(3, 10), None)
    """
    if not math.isfinite(value):
        return None
    written = Fraction(repr(float(value)))
    if written.denominator <= LARGEST:
        return written
    for most in (10, 1000, LARGEST):
        near = written.limit_denominator(most)
        # near by rounding, and not by chance: fractions of that denominator are much further apart
        if abs(near - written) <= 2 * Fraction(math.ulp(value)) and near.denominator**2 * math.ulp(value) < 1e-3:
            return near
    return None


def common_denominator(values: Iterable[float]) -> int | None:
    """Return the least number that makes all values whole; None where one counts as real."""
    return _common(None if (found := fraction(value)) is None else found.denominator for value in values)


def _common(parts: Iterable[int | None]) -> int | None:
    total = 1
    for part in parts:
        if part is None:
            return None
        total = math.lcm(total, part)
    return total if total <= LARGEST else None


def is_whole(node: Node, integers: Collection[Var]) -> bool:
    """Return whether every result that is a finite number is provably a whole one."""
    return denominator(node, integers) == 1


def denominator(node: Node, integers: Collection[Var]) -> int | None:
    """Return a number that makes every finite result of the node whole, given the variables that are; None where there is none."""
    if is_truth(node):
        return 1
    match node:
        case Number(value):
            found = fraction(value)
            return None if found is None else found.denominator
        case Name(layer, name):
            return 1 if (layer, name) in integers else None
        case Negate(operand):
            return denominator(operand, integers)
        case Sum(first, rest):
            return _common(denominator(operand, integers) for operand in (first, *(operand for _, operand in rest)))
        case Product():
            return _product_denominator(node, integers)
        case Power(base, Number(exponent)) if exponent >= 0 and exponent.is_integer():
            below = denominator(base, integers)
            return None if below is None or (below > 1 and exponent > 20) else _common([below ** int(exponent) if below > 1 else 1])
        case Call("round", (value, Number(digits))) if digits > 0:
            below = denominator(value, integers)
            return below if below is not None else _common([10 ** min(int(digits), 20)])
        case Call("round", arguments) if len(arguments) == 1 or isinstance(arguments[1], Number):
            return 1
        case Call("where", (_, *arguments)):
            return _common(denominator(argument, integers) for argument in arguments)
        case Call("abs" | "min" | "max" | "clip", arguments):
            return _common(denominator(argument, integers) for argument in arguments)
        case Call("categorical", (Listing(items), _)):
            return _common(denominator(item, integers) for item in items)
        case Call(function):
            return 1 if function in DISTRIBUTIONS and DISTRIBUTIONS[function].whole else None
        case _:
            return 1 if isinstance(node, Text) else None  # a level stands for its code


def _product_denominator(node: Product, integers: Collection[Var]) -> int | None:
    total = denominator(node.first, integers)
    for operator, operand in node.rest:
        if operator == "//":
            total = 1
        elif operator == "%":
            total = 1 if total == 1 and denominator(operand, integers) == 1 else None
        elif operator == "/":
            by = _constant(operand)
            total = None if total is None or not by else _common([total * abs(by.numerator)])
        else:
            other = denominator(operand, integers)
            total = None if total is None or other is None else _common([total * other])
    return total


def _constant(node: Node) -> Fraction | None:
    match node:
        case Number(value):
            return fraction(value)
        case Negate(operand):
            found = _constant(operand)
            return None if found is None else -found
        case _:
            return None


def make_whole(node: Node, integers: Collection[Var]) -> Node:
    """Return the tree with every comparison of whole numbers marked, its sides multiplied by what makes their constants whole.

    The tree has codes in place of levels.
    """
    match node:
        case Compare(first, rest):
            return _whole_comparison(node, [first, *(operand for _, operand in rest)], integers)
        case Member(item, values):
            item, by = make_whole(item, integers), _common(denominator(n, integers) for n in (item, *values))
            if by is None:
                return replace(node, item=item)
            options = tuple(_times(_as_number(value), Fraction(by), integers) for value in values)
            return replace(node, item=_times(item, Fraction(by), integers), values=options, whole=True)
        case Negate(operand) | Not(operand):
            return replace(node, operand=make_whole(operand, integers))
        case Sum(first, rest) | Product(first, rest):
            return replace(node, first=make_whole(first, integers), rest=tuple((op, make_whole(n, integers)) for op, n in rest))
        case Power(base, exponent):
            return replace(node, base=make_whole(base, integers), exponent=make_whole(exponent, integers))
        case Logic(_, parts):
            return replace(node, parts=tuple(make_whole(part, integers) for part in parts))
        case Call(_, arguments):
            return replace(node, arguments=tuple(make_whole(argument, integers) for argument in arguments))
        case _:
            return node


def _whole_comparison(node: Compare, operands: list[Node], integers: Collection[Var]) -> Node:
    operands = [make_whole(operand, integers) for operand in operands]
    relations = [operator for operator, _ in node.rest]
    found = []
    for relation, (left, right) in zip(relations, pairwise(operands)):
        by = _common(denominator(side, integers) for side in (left, right))
        if by is None:
            found.append(replace(node, first=left, rest=((relation, right),)))
        else:
            sides = [_times(_as_number(side), Fraction(by), integers) for side in (left, right)]
            found.append(replace(node, first=sides[0], rest=((relation, sides[1]),), whole=True))
    if len(found) == 1 or not any(pair.whole for pair in found):
        return found[0] if len(found) == 1 else replace(node, first=operands[0], rest=tuple(zip(relations, operands[1:])))
    return Logic("and", tuple(found), column=node.column)


def _as_number(node: Node) -> Node:
    return Number(float(node.value), column=node.column) if isinstance(node, Boolean) else node


def _times(node: Node, factor: Fraction, integers: Collection[Var]) -> Node:
    """Return the node times a factor that makes it whole: the factor goes into its constants."""
    if factor == 1:
        return node
    match node:
        case Number(value) if (found := fraction(value)) is not None:
            return replace(node, value=float(found * factor))
        case Negate(operand):
            return replace(node, operand=_times(operand, factor, integers))
        case Sum(first, rest):
            scaled = tuple((operator, _times(operand, factor, integers)) for operator, operand in rest)
            return replace(node, first=_times(first, factor, integers), rest=scaled)
        case Product(first, rest) if all(op == "*" or (op == "/" and _constant(operand)) for op, operand in rest):
            others: list[Node] = []
            for operator, operand in (("*", first), *rest):
                constant = _constant(operand)
                if constant is not None:
                    factor = factor * constant if operator == "*" else factor / constant
                else:
                    below = denominator(operand, integers) or 1
                    others.append(_times(operand, Fraction(below), integers))
                    factor /= below
            if not others:
                return Number(float(factor), column=node.column)
            if len(others) == 1:
                return _times(others[0], factor, integers)
            return Product(Number(float(factor)), tuple(("*", other) for other in others), column=node.column)
        case Call("abs" | "min" | "max" | "clip", arguments) if factor > 0:
            return replace(node, arguments=tuple(_times(argument, factor, integers) for argument in arguments))
        case Call("where", (condition, a, b)):
            return replace(node, arguments=(condition, _times(a, factor, integers), _times(b, factor, integers)))
        case _:
            return Product(Number(float(factor)), (("*", node),), column=node.column)
