"""Levels of categories → their codes, before anything is computed.

A category is coded 0 … L-1 in the order of its levels. A constant that is compared with a category is looked up among its levels; the layers
``action`` and ``effect`` hold differences of codes, which are plain numbers. A latent draw with levels is listed as ``latent.name``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from budge.errors import Problem, nearest

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
    render,
)

__all__ = ["NO_LEVELS", "Levels", "levels_of", "resolve"]

Levels = Mapping[str, Sequence[object]]
NO_LEVELS: Levels = MappingProxyType({})
Pairs = tuple[tuple[str, Node], ...]


def levels_of(node: Node, levels: Levels) -> Sequence[object] | None:
    """The levels that the numbers of a node stand for, if it is the name of a category."""
    if isinstance(node, Name):
        if node.layer in ("value", "before"):
            return levels.get(node.name)
        if node.layer == "latent":
            return levels.get(f"latent.{node.name}")
    return None


def resolve(node: Node, levels: Levels, problems: list[Problem], result: str | None = None) -> Node:
    """The same tree with codes in place of levels; what has no code is added to the problems.

    ``result`` names the category whose level the whole expression yields, if it yields one.
    """
    return _Resolver(levels, problems).node(node, None if result is None else (result, levels.get(result)))


class _Resolver:
    def __init__(self, levels: Levels, problems: list[Problem]):
        self.levels, self.problems = levels, problems

    def node(self, node: Node, result: tuple[str, Sequence[object] | None] | None = None) -> Node:
        match node:
            case Text() if result is None:
                self.report(node, "this level belongs to no feature", "set a feature that has levels, or compare with one")
                return node
            case (Text() | Number() | Boolean()) if result is not None and (result[1] is not None or isinstance(node, Text)):
                return self.code(node, *result)
            case Call("where", (condition, a, b)):
                return replace(node, arguments=(self.node(condition), self.node(a, result), self.node(b, result)))
            case Call("categorical", (Listing(items) as listing, weights)) if result is not None or any(isinstance(i, Text) for i in items):
                return replace(node, arguments=(replace(listing, items=tuple(self.node(item, result) for item in items)), weights))
            case Negate(operand) | Not(operand):
                return replace(node, operand=self.node(operand))
            case Sum(first, rest) | Product(first, rest):
                return replace(node, first=self.node(first), rest=self.pairs(rest))
            case Power(base, exponent):
                return replace(node, base=self.node(base), exponent=self.node(exponent))
            case Logic(_, parts):
                return replace(node, parts=tuple(map(self.node, parts)))
            case Call(_, arguments):
                return replace(node, arguments=tuple(map(self.node, arguments)))
            case Member(item, values, _):
                return replace(node, item=self.node(item), values=tuple(self.beside(value, [item]) for value in values))
            case Compare():
                return self.comparison(node)
            case _:
                return node

    def pairs(self, rest: Pairs) -> Pairs:
        return tuple((operator, self.node(operand)) for operator, operand in rest)

    def comparison(self, node: Compare) -> Node:
        operands = [node.first, *(operand for _, operand in node.rest)]
        around = [[operands[j] for j in (i - 1, i + 1) if 0 <= j < len(operands)] for i in range(len(operands))]
        coded = [self.beside(operand, others) for operand, others in zip(operands, around)]
        return replace(node, first=coded[0], rest=tuple((operator, operand) for (operator, _), operand in zip(node.rest, coded[1:])))

    def beside(self, node: Node, others: list[Node]) -> Node:
        """A constant, coded by the category that it is compared with; anything else as it is."""
        if not isinstance(node, Text | Number | Boolean):
            return self.node(node)
        named = [other for other in others if levels_of(other, self.levels) is not None]
        if named:
            return self.code(node, render(named[0]), levels_of(named[0], self.levels))
        if isinstance(node, Text):
            self.report(node, f"{render(others[0])} has no levels, so it cannot be compared with a string", "declare it as a category, or compare it with a number")
        return node

    def code(self, node: Text | Number | Boolean, name: str, levels: Sequence[object] | None) -> Node:
        for code, level in enumerate(levels or ()):
            if isinstance(level, str) == isinstance(node, Text) and level == node.value:
                return Number(float(code), column=node.column)
        if levels is None:
            self.report(node, f"{name} has no levels, so it cannot hold a string", "declare it as a category, or use a number")
        else:
            self.report(node, f"{name} has no such level", nearest(node.value, map(str, levels)), levels)
        return node

    def report(self, node: Text | Number | Boolean, what: str, remedy: str, levels: Sequence[object] | None = None) -> None:
        if levels is not None and remedy.startswith("did you mean"):
            remedy += f" Levels: {', '.join(map(str, list(levels)[:12]))}{', …' if len(levels) > 12 else ''}"
        self.problems.append(Problem(f"column {node.column + 1}", what, node.value, remedy))
