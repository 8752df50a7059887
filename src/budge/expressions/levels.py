"""Levels of categories → their codes, before anything is computed.

A category is coded 0 … L-1 in the order of its levels. A constant that is compared with a category is looked up among its levels.
The layers ``action`` and ``effect`` hold differences of codes, which are plain numbers. The levels of a latent draw are listed
under ``latent.name``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from budge.errors import MOST_PROBLEMS, Problem, nearest

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

__all__ = ["NO_LEVELS", "Levels", "Yield", "levels_of", "resolve", "yielded"]

Levels = Mapping[str, Sequence[object]]
NO_LEVELS: Levels = MappingProxyType({})
Constant = Text | Number | Boolean
Pairs = tuple[tuple[str, Node], ...]


@dataclass(frozen=True)
class Yield:
    """What the whole expression yields: a level of the named category (which has none if it is no category)."""

    name: str
    levels: Sequence[object] | None


def levels_of(node: Node, levels: Levels) -> Sequence[object] | None:
    """The levels that the numbers of a node stand for, if it is the name of a category."""
    if isinstance(node, Name):
        if node.layer in ("value", "before"):
            return levels.get(node.name)
        if node.layer == "latent":
            return levels.get(f"latent.{node.name}")
    return None


def yielded(node: Node, levels: Levels) -> Yield | None:
    """The levels that an expression yields by itself, if it yields strings: those of its names first, then others as written."""
    results = list(_results(node))
    if not any(isinstance(result, Text) for result in results):
        return None
    pool: list[object] = []
    for result in sorted(results, key=lambda r: isinstance(r, Text)):
        own = [result.value] if isinstance(result, Text) else levels_of(result, levels) or ()
        pool += [level for level in own if level not in pool]
    return Yield("the result", pool)


def _results(node: Node) -> Iterator[Node]:
    """The nodes that may be the result as they are."""
    match node:
        case Call("where", (_, a, b)):
            yield from _results(a)
            yield from _results(b)
        case Call("categorical", (Listing(items), _)):
            yield from items
        case Text() | Name():
            yield node


def resolve(node: Node, levels: Levels, problems: list[Problem], result: Yield | None = None) -> Node:
    """The same tree with codes in place of levels; what has no code is added to the problems."""
    return _Resolver(levels, problems).node(node, result)


class _Resolver:
    def __init__(self, levels: Levels, problems: list[Problem]):
        self.levels, self.problems = levels, problems
        self.codes: dict[int, dict[tuple[bool, object], int]] = {}

    def node(self, node: Node, result: Yield | None = None) -> Node:
        match node:
            case Text() if result is None:
                self.report(node, "this level belongs to no feature", "set a feature that has levels, or compare with one")
                return node
            case Text() | Number() | Boolean() if result is not None and (result.levels is not None or isinstance(node, Text)):
                return self.code(node, result.name, result.levels)
            case Name() if result is not None and result.levels is not None:
                return self.same_levels(node, result)
            case Call("where", (condition, a, b)):
                return replace(node, arguments=(self.node(condition), self.node(a, result), self.node(b, result)))
            case Call("categorical", (Listing(items) as listing, weights)):
                return replace(
                    node, arguments=(replace(listing, items=tuple(self.node(item, result) for item in items)), weights)
                )
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
        rest = tuple((operator, operand) for (operator, _), operand in zip(node.rest, coded[1:]))
        return replace(node, first=coded[0], rest=rest)

    def beside(self, node: Node, others: list[Node]) -> Node:
        """A constant, coded by the category that it is compared with; anything else as it is."""
        if not isinstance(node, Constant):
            return self.node(node)
        named = [other for other in others if levels_of(other, self.levels) is not None]
        if named:
            return self.code(node, render(named[0]), levels_of(named[0], self.levels))
        if isinstance(node, Text):
            what = f"{render(others[0])} has no levels, so it cannot be compared with a string"
            self.report(node, what, "declare it as a category, or compare it with a number")
        return node

    def code(self, node: Constant, name: str, levels: Sequence[object] | None) -> Node:
        codes = self.codes.get(id(levels))
        if codes is None:  # the first of equal levels counts
            listed = [(i, level) for i, level in enumerate(levels or ()) if isinstance(level, Hashable)]  # others are a problem of the feature
            codes = self.codes[id(levels)] = {(isinstance(level, str), level): i for i, level in reversed(listed)}
        code = codes.get((isinstance(node, Text), node.value))
        if code is not None:
            return Number(float(code), column=node.column)
        if levels is None:
            self.report(node, f"{name} has no levels, so it cannot hold a string", "declare it as a category, or use a number")
            return node
        remedy = nearest(node.value, map(str, levels)) if len(self.problems) < MOST_PROBLEMS else ""
        if remedy.startswith("did you mean"):
            remedy += f" Levels: {', '.join(map(str, list(levels)[:12]))}{', …' if len(levels) > 12 else ''}"
        self.report(node, f"{name} has no such level", remedy)
        return node

    def same_levels(self, node: Name, result: Yield) -> Node:
        """A name that may be the result: its codes must mean there what they mean here."""
        own = levels_of(node, self.levels)
        if own is None and node.layer in ("value", "before"):
            self.report(node, f"it has no levels, unlike {result.name}", "compare it, and write the levels with where")
        elif own is not None and list(own) != list(result.levels or ())[: len(own)]:
            self.report(node, f"its levels are not those of {result.name}", "translate them with where")
        return node

    def report(self, node: Node, what: str, remedy: str) -> None:
        got = node.value if isinstance(node, Constant) else render(node)
        self.problems.append(Problem(f"column {node.column + 1}", what, got, remedy))
