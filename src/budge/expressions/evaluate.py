"""Trees → arrays. Vectorised, silent about NaN, and the definition of what an expression means.

Truth is Kleene's: a comparison with a missing value is neither true nor false. ``truth(node, want)`` says where the node
*definitely* has the wanted truth, so that ``not (x > 3)`` and ``x <= 3`` are the same, and neither holds where x is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from budge.errors import DataError, ExpressionError, nearest

from .distributions import DISTRIBUTIONS, draw, draw_categorical, draw_normal_vector
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
    Var,
    render,
    walk,
)
from .tolerance import compare, equal, not_equal

__all__ = ["ARITHMETIC", "FLIP", "Env", "Evaluation", "as_numbers", "constant_value", "is_constant", "is_random", "variables"]

Array = npt.NDArray[np.float64]
Truths = npt.NDArray[np.bool_]
Env = Mapping[Var, "npt.NDArray[np.generic] | float"]
ARITHMETIC: dict[str, np.ufunc] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "//": np.floor_divide,
    "%": np.mod,
}
FLIP = {"<=": ">", "<": ">=", "==": "!=", "!=": "==", ">=": "<", ">": "<="}


def variables(node: Node) -> frozenset[Var]:
    """The variables that a tree reads."""
    return frozenset((n.layer, n.name) for n in walk(node) if isinstance(n, Name))


def is_random(node: Node) -> bool:
    """Whether a tree draws."""
    return any(isinstance(n, Call) and n.function in DISTRIBUTIONS for n in walk(node))


def is_constant(node: Node) -> bool:
    """Whether a tree holds neither names nor draws."""
    return not any(isinstance(n, Name) for n in walk(node)) and not is_random(node)


def constant_value(node: Node) -> float:
    """The value of a tree that is constant."""
    with np.errstate(all="ignore"):
        return float(Evaluation({}).number(node))


def as_numbers(var: Var, value: object) -> Array:
    """The numbers of a variable, or a DataError that shows what they are not."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biufO":
            raise TypeError
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise DataError(f"{_shown(var)} must be numbers", got=value, remedy="give the codes of levels, not their names") from None


def _shown(var: Var) -> str:
    return render(Name(*var))


class Evaluation:
    """One evaluation of one tree on one environment; strings have become codes (see `levels.resolve`)."""

    def __init__(self, env: Env, *, needs: Iterable[Var] = (), rng: np.random.Generator | None = None, size: int | None = None):
        self.env: dict[Var, Array] = {}
        for var in sorted(needs):
            if var not in env:
                raise ExpressionError(
                    f"{_shown(var)} has no value here", got=_shown(var), remedy=nearest(_shown(var), map(_shown, env))
                )
            self.env[var] = as_numbers(var, env[var])
        self.rng = rng
        shapes = [a.shape for a in self.env.values()] + ([] if size is None else [(size,)])
        try:
            self.shape: tuple[int, ...] = np.broadcast_shapes(*shapes)
        except ValueError:
            got = {_shown(var): a.shape for var, a in self.env.items()} | ({} if size is None else {"size": (size,)})
            raise DataError(
                "the arrays have shapes that do not fit together", got=got, remedy="give arrays of one length"
            ) from None

    def number(self, node: Node, active: Truths | None = None) -> Array:
        """The values of a node; truths count 0 and 1. ``active``: where they matter."""
        match node:
            case Number(value):
                return np.float64(value)  # type: ignore[return-value]
            case Name(layer, name):
                return self.env[layer, name]
            case Negate(operand):
                return np.asarray(-self.number(operand, active))
            case Sum(first, rest) | Product(first, rest):
                total = self.number(first, active)
                for operator, operand in rest:
                    total = ARITHMETIC[operator](total, self.number(operand, active))
                return np.asarray(total)
            case Power(base, exponent):
                power = self.number(exponent, active)
                raised = np.float_power if np.ndim(power) == 0 and power == 0.5 else np.power  # of 0.5 alone, numpy's power is the root: NaN of -inf
                return np.asarray(raised(self.number(base, active), power))
            case Call("where", (condition, a, b)):
                chosen = self.truth(condition, True, active)
                first_active = chosen if active is None else chosen & active
                second_active = ~chosen if active is None else ~chosen & active
                return np.asarray(np.where(chosen, self.number(a, first_active), self.number(b, second_active)))
            case Call(function, arguments) if function in FUNCTIONS:
                compute = FUNCTIONS[function].compute
                assert compute is not None
                return compute(*(self.number(argument, active) for argument in arguments))
            case Call():
                return self.drawn(node, active)
            case _:
                return self.truth(node, True, active).astype(np.float64)

    def truth(self, node: Node, want: bool = True, active: Truths | None = None) -> Truths:
        """Where the node definitely has the wanted truth."""
        match node:
            case Boolean(value):
                return np.asarray(value is want)
            case Not(operand):
                return self.truth(operand, not want, active)
            case Logic(operator, parts):
                truths = [self.truth(part, want, active) for part in parts]
                return np.asarray(_fold(np.logical_and if (operator == "and") is want else np.logical_or, truths))
            case Compare(first, rest):
                values = [self.number(n, active) for n in (first, *(operand for _, operand in rest))]
                relations = [operator if want else FLIP[operator] for operator, _ in rest]
                truths = [compare(r, a, b, whole=node.whole) for r, (a, b) in zip(relations, pairwise(values))]
                return np.asarray(_fold(np.logical_and if want else np.logical_or, truths))
            case Member(item, options, negated):
                found = self.number(item, active)
                same, join = (equal, np.logical_or) if want is not negated else (not_equal, np.logical_and)
                return np.asarray(_fold(join, [same(found, self.number(option), whole=node.whole) for option in options]))
            case Call("where", (condition, a, b)):
                chosen = self.truth(condition, True, active)
                first_active = chosen if active is None else chosen & active
                second_active = ~chosen if active is None else ~chosen & active
                return np.asarray(np.where(chosen, self.truth(a, want, first_active), self.truth(b, want, second_active)))
            case _:
                number = self.number(node, active)
                return not_equal(number, 0.0) if want else equal(number, 0.0)

    def drawn(self, node: Call, active: Truths | None) -> Array:
        """The draws of a distribution: one for every row, whatever the shape of its parameters."""
        if self.rng is None:
            raise ExpressionError(
                "this expression draws at random, and no generator was given", got=render(node), remedy="pass rng="
            )
        lists = [_literal(argument) if isinstance(argument, Listing) else None for argument in node.arguments]
        if node.function == "categorical":
            return draw_categorical(lists[0] or [], lists[1] or [], self.rng, self.shape)
        if node.function == "multivariate_normal":
            return draw_normal_vector(np.array(lists[0]), np.array(lists[1]), self.rng, self.shape)
        return draw(node.function, [self.number(argument, active) for argument in node.arguments], self.rng, self.shape, active)


def _literal(node: Listing) -> list[float]:
    return [_literal(item) if isinstance(item, Listing) else float(item.value) for item in node.items]  # type: ignore[misc, attr-defined]


def _fold(join: np.ufunc, truths: list[Truths]) -> Truths:
    total = truths[0]
    for truth in truths[1:]:
        total = join(total, truth)
    return total
