"""Interval arithmetic: bounds on variables → bounds on an expression. Always wide enough, not always as narrow as can be.

Missing results (NaN) have no place in a range: it bounds every result that is a number. Sums, products, roots and roundings
are correctly rounded and hence monotone; the others are widened by a few units in the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .distributions import DISTRIBUTIONS
from .evaluate import FLIP
from .memo import once
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
    Var,
    walk,
)
from .statics import is_truth
from .tolerance import compare

__all__ = ["Range", "range_of"]

Range = tuple[float, float]
INF = math.inf
ANY: Range = (-INF, INF)
MAYBE: Range = (0.0, 1.0)


def range_of(node: Node, bounds: Mapping[Var, Range]) -> Range:
    """The range of a node, given the ranges of its variables (unbounded where none is given)."""
    return _Ranges(bounds).of(node)


class _Ranges:
    def __init__(self, bounds: Mapping[Var, Range]):
        self.bounds = bounds
        self.memo: dict[Any, Any] = {}

    @once
    def of(self, node: Node) -> Range:
        if is_truth(node):
            return self.truth_range(node)
        match node:
            case Number(value):
                return value, value
            case Name(layer, name):
                low, high = self.bounds.get((layer, name), ANY)
                return float(low), float(high)
            case Negate(operand):
                low, high = self.of(operand)
                return -high, -low
            case Sum(first, rest) | Product(first, rest):
                total = self.of(first)
                for operator, operand in rest:
                    total = _ARITHMETIC[operator](total, self.of(operand))
                return total
            case Power(base, exponent):
                return _power(self.of(base), self.of(exponent))
            case Call("where", (condition, a, b)):
                low, high = self.of(condition) if is_truth(condition) else MAYBE
                branches = ([self.of(a)] if high else []) + ([self.of(b)] if not low else [])
                return min(r[0] for r in branches), max(r[1] for r in branches)
            case Call("round", (value, Number(digits))) if digits:
                return _widen(*(float(np.round(end, int(digits))) if math.isfinite(end) else end for end in self.of(value)))
            case Call("categorical", (Listing(items), Listing(weights))):
                values = [
                    float(item.value)
                    for item, w in zip(items, weights)
                    if isinstance(item, Number | Boolean) and isinstance(w, Number) and w.value > 0
                ]
                return min(values), max(values)
            case Call("multivariate_normal"):
                return ANY
            case Call(function, arguments):
                ranges = [self.of(argument) for argument in arguments]
                support = DISTRIBUTIONS[function].support if function in DISTRIBUTIONS else None
                return support(*ranges) if support else _FUNCTIONS[function](*ranges)
            case _:
                return ANY

    def truth_range(self, node: Node) -> Range:
        """(1, 1) where it always holds, (0, 0) where it never does, else (0, 1)."""
        possible, other = self.possible(node, True), self.possible(node, False)
        if not possible:
            return 0.0, 0.0
        # Only where nothing can be missing does "never false" mean "always true".
        return (1.0, 1.0) if not other and self.total(node) else MAYBE

    @once
    def possible(self, node: Node, want: bool) -> bool:
        """Whether the node might definitely have the wanted truth somewhere within the bounds."""
        match node:
            case Boolean(value):
                return value is want
            case Not(operand):
                return self.possible(operand, not want)
            case Logic(operator, parts):
                truths = [self.possible(part, want) for part in parts]
                return all(truths) if (operator == "and") is want else any(truths)
            case Compare(first, rest):
                ranges = [self.of(n) for n in (first, *(operand for _, operand in rest))]
                pairs = [_comparable(op if want else FLIP[op], a, b, node.whole) for (op, _), a, b in zip(rest, ranges, ranges[1:])]
                return all(pairs) if want else any(pairs)
            case Member(item, values, negated):
                inside = self.of(item)
                pairs = [
                    _comparable("==" if want is not negated else "!=", inside, self.of(_as_number(value)), node.whole)
                    for value in values
                ]
                return any(pairs) if want is not negated else all(pairs)
            case _:
                return True

    @once
    def total(self, node: Node) -> bool:
        """Whether no part can be missing: only finite sums, products, and functions that keep numbers numbers."""
        for n in walk(node):
            if isinstance(n, Power | Listing) or (isinstance(n, Product) and any(op != "*" for op, _ in n.rest)):
                return False
            if isinstance(n, Call) and n.function not in ("abs", "min", "max", "clip", "where", "round"):
                return False
            if isinstance(n, Name) and not all(map(math.isfinite, self.bounds.get((n.layer, n.name), ANY))):
                return False
            if isinstance(n, Sum | Product) and not all(map(math.isfinite, self.of(n))):
                return False
        return True


def _comparable(relation: str, a: Range, b: Range, whole: bool) -> bool:
    match relation:
        case "<=":
            return a[0] < b[1] or bool(compare("<=", a[0], b[1], whole=whole))  # what is plain needs no margin
        case "<":
            return bool(compare("<", a[0], b[1], whole=whole))
        case ">" | ">=":
            return _comparable("<" + relation[1:], b, a, whole)
        case "==":
            return _comparable("<=", a, b, whole) and _comparable("<=", b, a, whole)
        case _:
            return a[0] != a[1] or bool(compare("!=", a[0], b[1], whole=whole) or compare("!=", a[1], b[0], whole=whole))


def _as_number(node: Node) -> Node:
    return Number(float(node.value)) if isinstance(node, Boolean) else node


def _widen(low: float, high: float) -> Range:
    for _ in range(4):
        low, high = math.nextafter(low, -INF), math.nextafter(high, INF)
    return low, high


def _hull(values: list[float]) -> Range:
    return min(values), max(values)


def _add(a: Range, b: Range) -> Range:
    low, high = a[0] + b[0], a[1] + b[1]
    return (-INF if math.isnan(low) else low), (INF if math.isnan(high) else high)


def _multiply(a: Range, b: Range) -> Range:
    # Infinite ends stand for unbounded finite values, so zero times them is zero.
    return _hull([x * y if x and y else 0.0 for x in a for y in b])


def _divide(a: Range, b: Range) -> Range:
    if b[0] <= 0 <= b[1]:
        return ANY
    corners = [
        x / y if math.isfinite(x) or math.isfinite(y) else math.copysign(INF, x) * math.copysign(1.0, y) for x in a for y in b
    ]
    if any(not math.isfinite(end) for end in b):
        corners.append(0.0)
    return _hull(corners)


def _floor_divide(a: Range, b: Range) -> Range:
    low, high = _divide(a, b)
    # numpy floors an exact quotient, which may lie on the other side of a rounded one.
    return (math.floor(low) - 1.0 if math.isfinite(low) else low), (math.floor(high) + 1.0 if math.isfinite(high) else high)


def _modulo(a: Range, b: Range) -> Range:
    if a[0] >= 0 and a[1] < b[0]:
        return a
    return min(b[0], 0.0), max(b[1], 0.0)


def _power(base: Range, exponent: Range) -> Range:
    whole = exponent[0] == exponent[1] and float(exponent[0]).is_integer()
    if base[0] < 0 and not whole:
        return ANY
    if exponent[0] < 0 and base[0] <= 0 <= base[1]:
        return ANY
    ends = [(x, y) for x in base for y in exponent] + ([(0.0, exponent[0])] if base[0] < 0 < base[1] else [])
    ends += [(1.0, y) for y in exponent if base[0] < 1 < base[1]] + [(x, 0.0) for x in base if exponent[0] < 0 < exponent[1]]
    with np.errstate(all="ignore"):
        values = [float(np.power(x, y)) for x, y in ends]
    if any(map(math.isnan, values)):
        return ANY
    low, high = _widen(*_hull(values))
    return (max(low, 0.0) if base[0] >= 0 or (whole and exponent[0] % 2 == 0) else low), high


def _monotone(compute: Callable[[float], float], domain: Range = ANY, floor: float = -INF) -> Callable[[Range], Range]:
    def image(a: Range) -> Range:
        low, high = max(a[0], domain[0]), min(a[1], domain[1])
        if low > high:  # nothing but missing values
            return ANY
        with np.errstate(all="ignore"):
            ends = _widen(float(compute(low)), float(compute(high)))
        return max(ends[0], floor), ends[1]

    return image


def _abs(a: Range) -> Range:
    ends = (abs(a[0]), abs(a[1]))
    return (0.0 if a[0] <= 0 <= a[1] else min(ends)), max(ends)


def _least(*ranges: Range) -> Range:
    return min(r[0] for r in ranges), min(r[1] for r in ranges)


def _greatest(*ranges: Range) -> Range:
    return max(r[0] for r in ranges), max(r[1] for r in ranges)


def _round(a: Range, digits: Range = (0.0, 0.0)) -> Range:
    return float(np.round(a[0])), float(np.round(a[1]))


_ARITHMETIC: dict[str, Callable[[Range, Range], Range]] = {
    "+": _add,
    "-": lambda a, b: _add(a, (-b[1], -b[0])),
    "*": _multiply,
    "/": _divide,
    "//": _floor_divide,
    "%": _modulo,
}
_FUNCTIONS: dict[str, Callable[..., Range]] = {
    "abs": _abs,
    "min": _least,
    "max": _greatest,
    "round": _round,
    "exp": _monotone(np.exp, floor=0.0),
    "log": _monotone(np.log, (0.0, INF)),
    "sqrt": _monotone(np.sqrt, (0.0, INF), floor=0.0),
    "clip": lambda a, low, high: _least(_greatest(a, low), high),
}
