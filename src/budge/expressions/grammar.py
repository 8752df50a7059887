"""Tokens → nodes. Python's own parser never sees the text, so nothing outside this file can be written.

Precedence is Python's: ``or``, ``and``, ``not``, comparisons, ``+ -``, ``* / // %``, unary ``-``, ``**``.
"""

from __future__ import annotations

import keyword
from typing import NoReturn

from budge.errors import nearest

from .distributions import DISTRIBUTIONS
from .functions import FUNCTIONS
from .nodes import (
    LAYERS,
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
)
from .tokens import Token, fail, scan

__all__ = ["MAX_DEPTH", "read"]

MAX_DEPTH = 50  # brackets, calls, signs and powers inside each other

_LEVELS = {"or": 1, "and": 2, "in": 4, "not": 4, "**": 8}
_LEVELS |= dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), 4) | dict.fromkeys("+-", 5) | dict.fromkeys(("*", "/", "//", "%"), 6)
_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _MINUS = range(1, 8)
_WORDS = {"and", "or", "not", "in", "True", "False"}
_KEYWORD_HINTS = {
    "if": "write where(condition, a, b)",
    "else": "write where(condition, a, b)",
    "is": "compare with ==",
    "None": "a missing value satisfies no comparison",
}


def read(text: str, *, distributions: bool = False) -> Node:
    """The tree of a text, or an ExpressionError with the column of what cannot stand there."""
    return _Reader(scan(text), distributions).read()


class _Reader:
    def __init__(self, tokens: list[Token], distributions: bool):
        self.tokens, self.next, self.depth, self.distributions = tokens, 0, 0, distributions

    def read(self) -> Node:
        node = self.expression(_OR)
        if self.token.kind != "end":
            self.refuse_leftover()
        return node

    @property
    def token(self) -> Token:
        return self.tokens[self.next]

    def is_word(self, text: str, ahead: int = 0) -> bool:
        token = self.tokens[min(self.next + ahead, len(self.tokens) - 1)]
        return token.text == text and token.kind in ("symbol", "name")

    def take(self) -> Token:
        token = self.token
        self.next += 1
        return token

    def accept(self, text: str) -> bool:
        found = self.is_word(text)
        self.next += found
        return found

    def deeper(self, token: Token) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise fail(
                f"the expression is nested more than {MAX_DEPTH} deep", token.column, token.text, "split it into several rules"
            )

    def level(self) -> int:
        """The precedence of the operator that stands next, 0 if none does."""
        if self.token.kind not in ("symbol", "name") or (self.is_word("not") and not self.is_word("in", 1)):
            return 0
        return _LEVELS.get(self.token.text, 0)

    def expression(self, floor: int) -> Node:
        """An expression of operators that bind at least as tightly as ``floor``."""
        left = self.prefix(floor)
        while (level := self.level()) >= max(floor, 1):
            if level <= _AND:
                left = self.logic(left, self.token.text, level)
            elif level == _COMPARE:
                left = self.comparison(left)
            elif level == _SUM:
                first, rest = (left.first, left.rest) if isinstance(left, Sum) else (left, ())
                left = Sum(first, rest + self.chain(_SUM), column=left.column)
            elif level == _PRODUCT:
                first, rest = (left.first, left.rest) if isinstance(left, Product) else (left, ())
                left = Product(first, rest + self.chain(_PRODUCT), column=left.column)
            else:
                self.deeper(self.take())
                left = Power(left, self.expression(_MINUS), column=left.column)
                self.depth -= 1
        return left

    def chain(self, level: int) -> tuple[tuple[str, Node], ...]:
        rest: list[tuple[str, Node]] = []
        while self.level() == level:
            operator = self.take().text
            rest.append((operator, self.expression(level + 1)))
        return tuple(rest)

    def logic(self, left: Node, operator: str, level: int) -> Node:
        parts = [left]
        while self.accept(operator):
            parts.append(self.expression(level + 1))
        flat = [p for part in parts for p in (part.parts if isinstance(part, Logic) and part.operator == operator else (part,))]
        return Logic(operator, tuple(flat), column=left.column)

    def comparison(self, left: Node) -> Node:
        if self.is_word("in") or self.is_word("not"):
            negated = self.accept("not")
            self.take()
            node: Node = Member(left, self.constants(), negated, column=left.column)
        else:
            rest: list[tuple[str, Node]] = []
            while self.level() == _COMPARE and not (self.is_word("in") or self.is_word("not")):
                operator = self.take().text
                rest.append((operator, self.expression(_SUM)))
            node = Compare(left, tuple(rest), column=left.column)
        if self.level() == _COMPARE:
            raise fail("in cannot be chained with other comparisons", self.token.column, self.token.text, "join them with and")
        return node

    def constants(self) -> tuple[Node, ...]:
        """The literal list after ``in``."""
        opening = self.take()
        closing = {"[": "]", "(": ")"}.get(opening.text if opening.kind == "symbol" else "")
        if closing is None:
            raise fail("in needs a list of constants", opening.column, opening.text, "write it as ['a', 'b'] or [1, 2]")
        items: list[Node] = []
        comma = True
        while not self.is_word(closing):
            if not comma:
                self.expected(f"a comma or {closing}")
            items.append(self.constant())
            comma = self.accept(",")
        self.take()
        if not items:
            raise fail("the list after in is empty", opening.column, opening.text + closing, "list at least one value")
        if closing == ")" and len(items) == 1 and not comma:
            raise fail("in needs a list of constants", opening.column, opening.text, "write one value as [value]")
        return tuple(items)

    def constant(self) -> Node:
        token = self.token
        node = self.prefix(_MINUS)
        if not isinstance(node, Number | Text | Boolean):
            raise fail(
                "the list after in may hold only constants",
                token.column,
                token.text,
                "write strings in quotes; use == and or for anything else",
            )
        return node

    def prefix(self, floor: int) -> Node:
        token = self.token
        if self.is_word("not"):
            if floor > _NOT:
                raise fail("not cannot stand here", token.column, token.text, "put brackets around it: (not …)")
            self.deeper(self.take())
            operand = self.expression(_NOT)
            self.depth -= 1
            return Not(operand, column=token.column)
        if self.is_word("-"):
            self.deeper(self.take())
            operand = self.expression(_MINUS)
            self.depth -= 1
            if isinstance(operand, Number):
                return Number(-operand.value if operand.value else 0.0, column=token.column)
            return Negate(operand, column=token.column)
        return self.atom()

    def atom(self) -> Node:
        token = self.token
        if token.kind == "number":
            return Number(float(self.take().value), column=token.column)
        if token.kind == "string":
            return Text(str(self.take().value), column=token.column)
        if token.kind == "quoted" or (token.kind == "name" and token.text not in _WORDS):
            return self.name()
        if token.kind == "name" and token.text in ("True", "False"):
            return Boolean(self.take().text == "True", column=token.column)
        if self.accept("("):
            self.deeper(token)
            node = self.expression(_OR)
            if not self.accept(")"):
                self.expected("a closing bracket")
            self.depth -= 1
            return node
        if self.is_word("["):
            raise fail(
                "a list cannot stand here",
                token.column,
                token.text,
                "lists stand only after in" + (" and in distributions" if self.distributions else ""),
            )
        if self.is_word("+"):
            raise fail("a plus sign needs a value before it", token.column, token.text, "leave it out")
        self.expected("a value")

    def name(self) -> Node:
        token = self.take()
        layer = "value"
        if self.is_word("."):
            if token.kind != "name" or token.text not in LAYERS[1:]:
                what = "a dot may follow only before, action, effect and latent"
                raise fail(
                    what,
                    token.column,
                    f"{token.text}.",
                    f"{nearest(token.text, LAYERS[1:])} A name that holds a dot goes in backticks",
                )
            layer = token.text
            self.take()
            token, start = self.take(), token
            if token.kind not in ("name", "quoted"):
                raise fail(f"a name must follow {layer}.", token.column, token.text, f"write {start.text}.name")
        if token.kind == "name":
            if keyword.iskeyword(token.text) or token.text in _WORDS:
                remedy = _KEYWORD_HINTS.get(token.text, "a feature of that name goes in backticks")
                raise fail("this word of Python is not in the expression language", token.column, token.text, remedy)
            if token.text.startswith("__"):
                raise fail(
                    "names do not start with two underscores",
                    token.column,
                    token.text,
                    "a feature of that name goes in backticks",
                )
        if self.is_word("("):
            if layer != "value" or token.kind != "name":
                raise fail("only functions can be called", token.column, token.text + "(", "leave the brackets out")
            return self.call(token)
        if self.is_word("."):
            raise fail(
                "attributes are not in the expression language",
                self.token.column,
                f"{token.text}.",
                "a name that holds a dot goes in backticks",
            )
        return Name(layer, str(token.value), column=token.column)

    def call(self, token: Token) -> Node:
        known = [*FUNCTIONS, *DISTRIBUTIONS] if self.distributions else list(FUNCTIONS)
        if token.text not in known:
            if token.text in DISTRIBUTIONS:
                raise fail("random draws cannot stand here", token.column, token.text, "they belong in effects and latent draws")
            raise fail("this function is unknown", token.column, token.text, nearest(token.text, known))
        self.deeper(self.take())
        arguments: list[Node] = []
        comma = True
        while not self.is_word(")"):
            if not comma:
                self.expected("a comma or a closing bracket")
            arguments.append(self.listing() if token.text in DISTRIBUTIONS and self.is_word("[") else self.expression(_OR))
            comma = self.accept(",")
        self.take()
        self.depth -= 1
        return Call(token.text, tuple(arguments), column=token.column)

    def listing(self) -> Node:
        token = self.take()
        self.deeper(token)
        items: list[Node] = []
        comma = True
        while not self.is_word("]"):
            if not comma:
                self.expected("a comma or ]")
            items.append(self.listing() if self.is_word("[") else self.constant())
            comma = self.accept(",")
        self.take()
        self.depth -= 1
        return Listing(tuple(items), column=token.column)

    def expected(self, what: str) -> NoReturn:
        token = self.token
        if token.kind == "end":
            raise fail(
                f"the expression ends where {what} is expected",
                token.column,
                self.tokens[max(self.next - 1, 0)].text,
                "complete it",
            )
        if token.kind == "name" and keyword.iskeyword(token.text) and token.text not in _WORDS:
            remedy = _KEYWORD_HINTS.get(token.text, "a feature of that name goes in backticks")
            raise fail("this word of Python is not in the expression language", token.column, token.text, remedy)
        raise fail(f"{what} is expected here", token.column, token.text, "see the page on expressions")

    def refuse_leftover(self) -> NoReturn:
        token = self.token
        if self.is_word("["):
            raise fail("subscripts are not in the expression language", token.column, token.text, "name each feature by itself")
        if self.is_word("."):
            raise fail(
                "attributes are not in the expression language",
                token.column,
                token.text,
                "a name that holds a dot goes in backticks",
            )
        if self.is_word("("):
            raise fail("only functions can be called", token.column, token.text, "write * to multiply")
        self.expected("an operator or the end")
