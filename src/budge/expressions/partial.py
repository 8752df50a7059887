"""Trees → linear forms and formulas, once some of the variables are known.

A part of the tree that reads only known variables is evaluated. Of the rest, sums, known multiples and ``where`` with a known
condition are linear. In comparisons, ``abs``, ``min`` and ``max`` become All or Some of rows; where that is not enough, values
are split into cases, each with the condition under which it applies, so that ``12 * (housing == 'rent') <= income`` is still a
formula.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, product
from typing import Any

import numpy as np
import numpy.typing as npt

from .distributions import DISTRIBUTIONS
from .evaluate import ARITHMETIC, FLIP, Env, Evaluation, variables
from .formulas import All, Formula, OneOf, Some, Total, Truth, all_of, negate, row, some_of
from .linear import Linear
from .memo import once
from .nodes import Call, Compare, Logic, Member, Name, Negate, Node, Not, Number, Power, Product, Sum, children
from .statics import is_truth

__all__ = ["MAX_CASES", "Partial"]

MAX_CASES = 64
MAX_ROWS = 2000  # a formula beyond this size is checked by evaluation instead
Case = tuple[Formula, Linear]
Bent = tuple[Linear, list[tuple[int, Linear]]]  # a form, and absolute values of forms with their signs
Pieces = tuple[str, list[Linear]]  # "=" and one form, or "max"/"min" and several
YES = Truth(True)
FLIP_SIDES = {">=": "<=", ">": "<"}


class Partial:
    """One partial evaluation, of trees without strings, given known variables."""

    def __init__(self, known: Env):
        self.known = known
        self.memo: dict[Any, Any] = {}

    @once
    def is_known(self, node: Node) -> bool:
        """Whether the node can be evaluated now."""
        if isinstance(node, Name):
            return (node.layer, node.name) in self.known
        return not (isinstance(node, Call) and node.function in DISTRIBUTIONS) and all(map(self.is_known, children(node)))

    def evaluation(self, node: Node) -> Evaluation:
        """The evaluation of a known node."""
        return Evaluation(self.known, needs=variables(node))

    @once
    def linear(self, node: Node) -> Linear | None:
        """The node as a linear form in the unknown variables, if it is one."""
        if self.is_known(node):
            with np.errstate(all="ignore"):
                return Linear({}, np.asarray(self.evaluation(node).number(node), dtype=float))
        if is_truth(node):
            formula = self.formula(node)
            return Linear({}, np.asarray(formula.value, dtype=float)) if isinstance(formula, Truth) else None
        match node:
            case Name(layer, name):
                return Linear.of((layer, name))
            case Negate(operand):
                inner = self.linear(operand)
                return None if inner is None else -inner
            case Sum(first, rest):
                forms = [(operator, self.linear(operand)) for operator, operand in (("+", first), *rest)]
                if any(form is None for _, form in forms):
                    return None
                return Linear.total(-form if operator == "-" else form for operator, form in forms if form is not None)
            case Product(first, rest):
                total = self.linear(first)
                for operator, operand in rest:
                    total = _arithmetic(operator, total, self.linear(operand))
                return total
            case Power(base, Number(1.0)):
                return self.linear(base)
            case Call("where", (condition, a, b)):
                chosen = self.formula(condition)
                return self.choice(chosen.value, a, b) if isinstance(chosen, Truth) else None
            case _:
                return None

    def choice(self, chosen: npt.NDArray[np.bool_] | bool, a: Node, b: Node) -> Linear | None:
        """``where`` with a known condition; a branch that is never taken need not be linear."""
        if np.all(chosen):
            return self.linear(a)
        if not np.any(chosen):
            return self.linear(b)
        left, right = self.linear(a), self.linear(b)
        if left is None or right is None:
            return None
        terms = {var: np.where(chosen, left.terms.get(var, 0.0), right.terms.get(var, 0.0)) for var in left.vars | right.vars}
        return Linear(terms, np.where(chosen, left.const, right.const))

    @once
    def formula(self, node: Node, want: bool = True) -> Formula | None:
        """Where the node definitely has the wanted truth, as a formula in the unknown variables, if it is one."""
        if self.is_known(node):
            with np.errstate(all="ignore"):
                return Truth(self.evaluation(node).truth(node, want))
        match node:
            case Not(operand):
                return self.formula(operand, not want)
            case Logic(operator, parts):
                return _join([self.formula(part, want) for part in parts], all_of if (operator == "and") is want else some_of)
            case Compare(first, rest):
                operands = [first, *(operand for _, operand in rest)]
                relations = [operator if want else FLIP[operator] for operator, _ in rest]
                rows = [self.compare(r, a, b, node.whole) for r, (a, b) in zip(relations, pairwise(operands))]
                return _join(rows, all_of if want else some_of)
            case Member(Name(layer, name), values, negated) if want is not negated:
                table = np.array([[Evaluation({}).number(value)] for value in values], dtype=float)
                return OneOf(((layer, name),), table, node.whole)
            case Member(item, values, negated):
                inside = want is not negated
                rows = [self.compare("==" if inside else "!=", item, value, node.whole) for value in values]
                return _join(rows, some_of if inside else all_of)
            case Call("where", (condition, a, b)) if is_truth(node):
                chosen, yes, no = self.formula(condition), self.formula(a, want), self.formula(b, want)
                if chosen is None or yes is None or no is None:
                    return None
                return some_of([all_of([chosen, yes]), all_of([negate(chosen), no])])
            case _:
                return self.compare("!=" if want else "==", node, Number(0.0))

    def compare(self, relation: str, left: Node, right: Node, whole: bool = False) -> Formula | None:
        """``left relation right`` as a formula; `whole`: both sides are whole numbers."""
        if self.is_known(left) and self.is_known(right):
            return self.formula(Compare(left, ((relation, right),), whole=whole))
        pieces = self.pieces(Sum(left, (("-", right),)))
        if pieces is not None:
            return _compare_pieces(relation, *pieces, self.moved(left, right), whole)
        sides = self.cases(left, whole), self.cases(right, whole)
        if sides[0] is None or sides[1] is None or len(sides[0]) * len(sides[1]) > MAX_CASES:
            return None
        pairs = product(sides[0], sides[1])
        found = some_of(all_of([guard_a, guard_b, row(a - b, relation, b, whole=whole)]) for (guard_a, a), (guard_b, b) in pairs)
        return found if _rows(found) <= MAX_ROWS else None

    def moved(self, left: Node, right: Node) -> Linear | None:
        """The side against which the tolerance is measured: one that is a form in itself."""
        form = self.linear(right)
        if form is None:
            form = self.linear(left)
            form = None if form is None else -form
        return form

    @once
    def pieces(self, node: Node) -> Pieces | None:
        """The node as a linear form (kind ``=``), or as the greatest (``max``) or least (``min``) of several."""
        linear = self.linear(node)
        if linear is not None:
            return "=", [linear]
        match node:
            case Negate(operand):
                return _scale_pieces(self.pieces(operand), -1.0)
            case Sum(first, rest):
                total = self.pieces(first)
                for operator, operand in rest:
                    total = _add_pieces(total, _scale_pieces(self.pieces(operand), 1.0 if operator == "+" else -1.0))
                return total
            case Product(first, rest):
                total = self.pieces(first)
                for operator, operand in rest:
                    total = _multiply_pieces(operator, total, self.pieces(operand))
                return total
            case Call("abs", (operand,)):
                inner = self.linear(operand)
                return None if inner is None or not inner.is_finite else ("max", [inner, -inner])
            case Call(("min" | "max") as kind, arguments):
                inner_pieces = [self.pieces(argument) for argument in arguments]
                if any(p is None or p[0] not in ("=", kind) for p in inner_pieces):
                    return None
                forms = [form for p in inner_pieces if p is not None for form in p[1]]
                # A missing argument makes the whole missing, which the other arguments do not tell: that needs cases.
                return (kind, forms) if len(forms) <= MAX_CASES and all(form.is_finite for form in forms) else None
            case _:
                return None

    def total(self, node: Node) -> Total | None:
        """A comparison as a total of absolute values that is at most something, if it is one."""
        if self.is_known(node) or not isinstance(node, Compare) or len(node.rest) != 1:
            return None
        relation, right = node.rest[0]
        found = self.bent(Sum(node.first, (("-", right),)))
        if found is not None and relation in (">=", ">"):
            found, relation = _scale_bent(found, -1.0), FLIP_SIDES[relation]
        if found is None or relation not in ("<=", "<") or not found[1] or any(sign < 0 for sign, _ in found[1]):
            return None
        return Total(found[0], tuple(form for _, form in found[1]), relation, self.formula(node))

    def bent(self, node: Node) -> Bent | None:
        """The node as a linear form plus signed absolute values of forms."""
        linear = self.linear(node)
        if linear is not None:
            return (linear, []) if linear.is_finite else None
        match node:
            case Negate(operand):
                return _scale_bent(self.bent(operand), -1.0)
            case Sum(first, rest):
                total = self.bent(first)
                for operator, operand in rest:
                    other = _scale_bent(self.bent(operand), 1.0 if operator == "+" else -1.0)
                    total = None if total is None or other is None else (total[0] + other[0], total[1] + other[1])
                return total
            case Product(first, rest):
                total = self.bent(first)
                for operator, operand in rest:
                    other = self.bent(operand)
                    if operator == "*" and total is not None and not total[0].vars and not total[1]:
                        total, other = other, total
                    if other is None or other[0].vars or other[1] or not _usable(operator, other[0].const):
                        return None
                    total = _scale_bent(total, other[0].const if operator == "*" else np.divide(1.0, other[0].const))
                return total
            case Call("abs", (operand,)):
                return self.bent(Call("max", (operand, Negate(operand))))
            case Call(("min" | "max") as kind, (a, b)):  # half the sum, and half the distance
                left, right = self.linear(a), self.linear(b)
                if left is None or right is None or not left.is_finite or not right.is_finite:
                    return None
                return (left + right) * 0.5, [(1 if kind == "max" else -1, (left - right) * 0.5)]
            case _:
                return None

    @once
    def cases(self, node: Node, whole: bool = False) -> list[Case] | None:
        """The node as linear forms, each with the condition under which it applies; `whole`: they are whole numbers."""
        linear = self.linear(node)
        if linear is not None:
            return [(YES, linear)]
        if is_truth(node):
            return _guarded(self.formula(node), [(YES, Linear({}, 1.0))], [(YES, Linear({}, 0.0))])
        match node:
            case Negate(operand):
                inner = self.cases(operand, whole)
                return None if inner is None else [(guard, -form) for guard, form in inner]
            case Sum(first, rest) | Product(first, rest):
                total = self.cases(first, whole)
                for operator, operand in rest:
                    total = _cross(operator, total, self.cases(operand, whole))
                return total
            case Call("where", (condition, a, b)):
                return _guarded(self.formula(condition), self.cases(a, whole), self.cases(b, whole))
            case Call("abs", (operand,)):
                return self.cases(Call("max", (operand, Negate(operand))), whole)
            case Call("clip", (value, low, high)):
                return self.cases(Call("min", (Call("max", (value, low)), high)), whole)
            case Call(("min" | "max") as kind, arguments):
                return self.extremes(">=" if kind == "max" else "<=", arguments, whole)
            case _:
                return None

    def extremes(self, relation: str, arguments: tuple[Node, ...], whole: bool) -> list[Case] | None:
        """The cases of ``max`` (relation ``>=``) or ``min``: each argument, where it stands so to all others."""
        options = [self.cases(argument, whole) for argument in arguments]
        sizes = [len(option) for option in options if option is not None]
        if len(sizes) < len(options) or np.prod(sizes, dtype=float) * len(options) > MAX_CASES:
            return None
        found: list[Case] = []
        for chosen in product(*(option for option in options if option is not None)):
            common = all_of(guard for guard, _ in chosen)
            for i, (_, form) in enumerate(chosen):
                rows = [row(form - other, relation, whole=whole) for j, (_, other) in enumerate(chosen) if j != i]
                found.append((all_of([common, *rows]), form))
        return _possible(found)


def _rows(formula: Formula) -> int:
    return sum(map(_rows, formula.parts)) if isinstance(formula, All | Some) else 1


def _arithmetic(operator: str, left: Linear | None, right: Linear | None) -> Linear | None:
    if left is None or right is None:
        return None
    with np.errstate(all="ignore"):
        if operator in "+-":
            return left + right if operator == "+" else left - right
        if not left.vars and not right.vars:
            return Linear({}, ARITHMETIC[operator](left.const, right.const))
        if operator == "*" and not left.vars:
            left, right = right, left
        if not right.vars and _usable(operator, right.const):
            return left * right.const if operator == "*" else left / right.const
    return None


def _join(parts: list[Formula | None], join: Callable[[list[Formula]], Formula]) -> Formula | None:
    """The parts joined; one that is no formula spoils it, unless the known ones decide."""
    found = join([part for part in parts if part is not None])
    if None not in parts:
        return found
    decided = join is some_of
    return (
        found
        if isinstance(found, Truth) and any(isinstance(p, Truth) for p in parts) and np.all(found.value == decided)
        else None
    )


def _compare_pieces(relation: str, kind: str, forms: list[Linear], right: Linear | None, whole: bool) -> Formula:
    if kind == "=":
        return row(forms[0], relation, right, whole=whole)
    if relation == "==":
        return all_of([_compare_pieces(r, kind, forms, right, whole) for r in ("<=", ">=")])
    if relation == "!=":
        return some_of([_compare_pieces(r, kind, forms, right, whole) for r in ("<", ">")])
    rows = [row(form, relation, right, whole=whole) for form in forms]
    return all_of(rows) if (kind == "max") is (relation[0] == "<") else some_of(rows)


def _scale_bent(found: Bent | None, factor: npt.ArrayLike) -> Bent | None:
    if found is None or not (np.all(np.greater_equal(factor, 0)) or np.all(np.less_equal(factor, 0))):
        return None
    turn = -1 if np.any(np.less(factor, 0)) else 1
    return found[0] * factor, [(turn * sign, form * factor) for sign, form in found[1]]


def _scale_pieces(pieces: Pieces | None, factor: npt.ArrayLike) -> Pieces | None:
    if pieces is None:
        return None
    kind, forms = pieces
    if kind != "=" and not (np.all(np.greater_equal(factor, 0)) or np.all(np.less_equal(factor, 0))):
        return None
    if kind != "=" and np.all(np.less_equal(factor, 0)):
        kind = "min" if kind == "max" else "max"
    return kind, [form * factor for form in forms]


def _multiply_pieces(operator: str, left: Pieces | None, right: Pieces | None) -> Pieces | None:
    """A product of which one side is known; a known side that comes first changes place with the other."""
    if operator == "*" and left is not None and left[0] == "=" and not left[1][0].vars:
        left, right = right, left
    if left is None or right is None or right[0] != "=" or right[1][0].vars:
        return None
    factor = right[1][0].const
    if not _usable(operator, factor):
        return None
    return _scale_pieces(left, factor if operator == "*" else np.divide(1.0, factor))


def _usable(operator: str, factor: npt.ArrayLike) -> bool:
    """Whether scaling by a known factor keeps a form a form: infinities and divisions by zero do not."""
    return operator in ("*", "/") and not np.any(np.isinf(factor)) and not (operator == "/" and np.any(np.equal(factor, 0)))


def _add_pieces(left: Pieces | None, right: Pieces | None) -> Pieces | None:
    if left is None or right is None or {left[0], right[0]} == {"min", "max"} or len(left[1]) * len(right[1]) > MAX_CASES:
        return None
    return (left[0] if left[0] != "=" else right[0]), [a + b for a in left[1] for b in right[1]]


def _cross(operator: str, left: list[Case] | None, right: list[Case] | None) -> list[Case] | None:
    if left is None or right is None or len(left) * len(right) > MAX_CASES:
        return None
    found: list[Case] = []
    for (guard_a, a), (guard_b, b) in product(left, right):
        form = _arithmetic(operator, a, b)
        if form is None:
            return None
        found.append((all_of([guard_a, guard_b]), form))
    return _possible(found)


def _guarded(condition: Formula | None, yes: list[Case] | None, no: list[Case] | None) -> list[Case] | None:
    if condition is None or yes is None or no is None or len(yes) + len(no) > MAX_CASES:
        return None
    # The second branch is taken wherever the condition is not definitely true: the plain opposite, as in evaluation.
    other = negate(condition)
    return _possible(
        [(all_of([condition, guard]), form) for guard, form in yes] + [(all_of([other, guard]), form) for guard, form in no]
    )


def _possible(cases: list[Case]) -> list[Case]:
    kept = [(guard, form) for guard, form in cases if not (isinstance(guard, Truth) and not np.any(guard.value))]
    return kept or cases[:1]
