"""An independent reading of the language: Python's own parser, one row at a time, truth in three values.

It shares nothing with the library but numpy's scalar functions.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping

import numpy as np

Var = tuple[str, str]
LEVELS = {"kind": ["a", "b", "c"]}


def _written(node: ast.expr) -> bool:
    """Return whether this is a number as it stands in the text, or its opposite."""
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and _written(node.operand))


class Reference:
    """One row: the value of a text, read by Python's parser."""

    def __init__(self, row: Mapping[Var, float]):
        self.row = row

    def evaluate(self, text: str) -> float | bool | None:
        with np.errstate(all="ignore"):
            return self.value(ast.parse(text.strip(), mode="eval").body)

    def value(self, node: ast.expr) -> float | bool | None:
        """A float, or a truth: True, False or None (unknown)."""
        match node:
            case ast.Constant(value):
                return value if isinstance(value, bool) else float(value)
            case ast.Name(name):
                return self.row["value", name]
            case ast.Attribute(ast.Name(layer), name):
                return self.row[layer, name]
            case ast.UnaryOp(ast.USub(), operand):
                return -self.number(operand) + (0.0 if _written(operand) else -0.0)  # -0 is the number 0, -x may be -0.0
            case ast.UnaryOp(ast.Not(), operand):
                truth = self.truth(operand)
                return None if truth is None else not truth
            case ast.BoolOp(op, values):
                truths = [self.truth(value) for value in values]
                return conjunction(truths) if isinstance(op, ast.And) else disjunction(truths)
            case ast.Compare():
                return self.comparison(node)
            case ast.BinOp(left, op, right):
                return arithmetic(type(op).__name__, self.number(left), self.number(right))
            case ast.Call(ast.Name("where"), [condition, a, b]):
                return self.value(a) if self.truth(condition) is True else self.value(b)
            case ast.Call(ast.Name(name), arguments):
                return FUNCTIONS[name](*(self.number(argument) for argument in arguments))
        raise AssertionError(ast.dump(node))

    def number(self, node: ast.expr) -> float:
        value = self.value(node)
        return float(value is True) if value is None or isinstance(value, bool) else value

    def truth(self, node: ast.expr) -> bool | None:
        value = self.value(node)
        if value is None or isinstance(value, bool):
            return value
        return None if math.isnan(value) else not same(value, 0.0)

    def comparison(self, node: ast.Compare) -> bool | None:
        operands = [node.left, *node.comparators]
        truths = []
        for op, left, right in zip(node.ops, operands, operands[1:]):
            if isinstance(op, ast.In | ast.NotIn):
                assert isinstance(right, ast.List | ast.Tuple)
                found = disjunction([self.pair("Eq", left, item) for item in right.elts])
                truths.append(found if isinstance(op, ast.In) or found is None else not found)
            else:
                truths.append(self.pair(type(op).__name__, left, right))
        return conjunction(truths)

    def pair(self, op: str, left: ast.expr, right: ast.expr) -> bool | None:
        a, b = (self.coded(left, right), self.coded(right, left))
        if math.isnan(a) or math.isnan(b):
            return None
        equal, less = same(a, b), a < b
        return {
            "Eq": equal,
            "NotEq": not equal,
            "Lt": less and not equal,
            "LtE": less or equal,
            "Gt": not less and not equal,
            "GtE": not less or equal,
        }[op]

    def coded(self, node: ast.expr, other: ast.expr) -> float:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = other.attr if isinstance(other, ast.Attribute) else other.id  # type: ignore[attr-defined]
            return float(LEVELS[name].index(node.value))
        return self.number(node)


def same(a: float, b: float) -> bool:
    return a == b or (math.isfinite(a - b) and abs(a - b) <= 1e-9 * max(1.0, abs(a), abs(b)))


def conjunction(truths: list[bool | None]) -> bool | None:
    return False if False in truths else None if None in truths else True


def disjunction(truths: list[bool | None]) -> bool | None:
    return True if True in truths else None if None in truths else False


def arithmetic(op: str, a: float, b: float) -> float:
    x, y = np.float64(a), np.float64(b)
    return float(
        {
            "Add": lambda: x + y,
            "Sub": lambda: x - y,
            "Mult": lambda: x * y,
            "Div": lambda: x / y,
            "FloorDiv": lambda: x // y,
            "Mod": lambda: x % y,
            "Pow": lambda: x**y,
        }[op]()
    )


def least(*values: float) -> float:
    return math.nan if any(map(math.isnan, values)) else min(values)


def greatest(*values: float) -> float:
    return math.nan if any(map(math.isnan, values)) else max(values)


FUNCTIONS = {
    "abs": abs,
    "min": least,
    "max": greatest,
    "round": lambda x, d=0.0: float(np.rint(x) if not d else np.round(x, int(d))),
    "exp": lambda x: float(np.exp(x)),
    "log": lambda x: float(np.log(x)),
    "sqrt": lambda x: float(np.sqrt(x)),
    "clip": lambda x, low, high: least(greatest(x, low), high),
}
