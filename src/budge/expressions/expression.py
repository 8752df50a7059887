"""`parse` and what it returns: an expression that knows its names, evaluates itself, and tells its linear form."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.errors import ExpressionError, Problem

from .check import problems_of
from .evaluate import Env, Evaluation, is_random, variables
from .formulas import Formula, Total
from .grammar import read
from .levels import NO_LEVELS, Levels, Yield, levels_of, resolve, yielded
from .linear import Linear
from .nodes import Call, Compare, Listing, Logic, Name, Negate, Node, Number, Product, Sum, Text, Var, render, walk
from .partial import Partial
from .ranges import range_of
from .statics import inspect, is_truth
from .whole import is_whole, make_whole

__all__ = ["Expression", "parse"]


def parse(text: str, *, distributions: bool = False) -> Expression:
    """Read an expression once; a text outside the language raises an ExpressionError with its column.

    Examples
    --------
    >>> rule = parse("income >= 12 * rent and housing == 'own'")
    >>> sorted(rule.names())
    ['housing', 'income', 'rent']
    """
    if not isinstance(text, str):  # what is not hashable cannot be looked up either
        raise ExpressionError("an expression must be a text", got=text, remedy="put it in quotes")
    return _parse(text, distributions)


@lru_cache(maxsize=4096)  # more than a spec may hold: each of its texts is read once
def _parse(text: str, distributions: bool) -> Expression:
    node = read(text, distributions=distributions)
    inspect(node)
    return Expression(node, text)


@dataclass(frozen=True)
class Expression:
    """A parsed expression. Two are equal when their canonical texts are; ``text`` is what was written."""

    node: Node
    text: str = field(compare=False)

    def __str__(self) -> str:
        return render(self.node)

    def __repr__(self) -> str:
        return f"parse({str(self)!r})"

    @cached_property
    def vars(self) -> frozenset[Var]:
        """The variables that the expression reads, as (layer, name)."""
        return variables(self.node)

    def names(self, layer: str | None = None) -> frozenset[str]:
        """The names that the expression reads, in one layer or in all."""
        return frozenset(name for where, name in self.vars if layer is None or where == layer)

    @cached_property
    def is_boolean(self) -> bool:
        """Whether the expression yields truth values."""
        return is_truth(self.node)

    @cached_property
    def is_random(self) -> bool:
        """Whether the expression draws."""
        return is_random(self.node)

    @cached_property
    def width(self) -> int | None:
        """The number of components of a latent vector; none for anything else."""
        match self.node:
            case Call("multivariate_normal", (Listing(items), _)):
                return len(items)
            case _:
                return None

    @cached_property
    def has_levels(self) -> bool:
        """Whether a string stands in the expression."""
        return any(isinstance(node, Text) for node in walk(self.node))

    @cached_property
    def is_row(self) -> bool:
        """Whether it is one or several linear comparisons that all must hold, as written: no function, no condition, no product of features."""
        return all(_is_plain(node) for node in walk(self.node))

    @cached_property
    def calls(self) -> frozenset[str]:
        """The functions that the expression calls."""
        return frozenset(node.function for node in walk(self.node) if isinstance(node, Call))

    def evaluate(
        self,
        env: Env,
        *,
        levels: Levels = NO_LEVELS,
        rng: np.random.Generator | None = None,
        size: int | None = None,
        result: str | None = None,
    ) -> npt.NDArray[Any]:
        """The values on an environment: truths of a boolean expression, else floats, or strings if it yields levels.

        Parameters
        ----------
        env : mapping of (layer, name) to an array or a number
            Categories are given as codes 0 … L-1. Missing values are NaN; they satisfy no comparison.
        levels : mapping of names to levels
            Translates the constants that categories are compared with.
        rng, size :
            The generator, and the number of rows if the variables do not say.
        result : str, optional
            The category whose level the expression yields: ``where(c, 'own', housing)`` then gives its codes, not strings.
        """
        own = yielded(self.node, levels) if result is None and self.has_levels else None
        node = self._resolved(levels, own or _yield(result, levels))
        with np.errstate(all="ignore"):
            run = Evaluation(env, needs=self.vars, rng=rng, size=size)
            values: npt.NDArray[Any] = run.truth(node) if self.is_boolean else run.number(node)
        shape = run.shape if self.width is None else (*run.shape, self.width)
        if isinstance(node, Name) or np.shape(values) != shape:  # never a view of what was given
            values = np.array(np.broadcast_to(values, shape))
        return np.asarray(values) if own is None else _named(values, own)

    def check(
        self,
        levels: Levels,
        names: Collection[str],
        *,
        latent: Collection[str] | None = None,
        ordered: Collection[str] | None = None,
        boolean: bool = False,
        result: str | None = None,
    ) -> list[Problem]:
        """Everything wrong with the expression, given what is declared.

        Parameters
        ----------
        levels, names :
            The levels of categories, and all features.
        latent : collection of str, optional
            The names of latent draws; not checked if not given.
        ordered : collection of str, optional
            The categories with an order; if given, ``<`` and arithmetic on any other is a problem.
        boolean : bool
            Whether a truth value is needed.
        result : str, optional
            The category whose level the expression yields.
        """
        return problems_of(self.node, levels, names, latent=latent, ordered=ordered, boolean=boolean, result=result)

    def linear(self, known: Env, *, levels: Levels = NO_LEVELS) -> Linear | None:
        """The linear form in the variables that are not known, or none if it is not linear in them."""
        return Partial(known).linear(self._resolved(levels))

    def formula(self, known: Env, *, levels: Levels = NO_LEVELS) -> Formula | None:
        """The condition in rows, All and Some, over the variables that are not known; none if it has no such shape."""
        return Partial(known).formula(self._resolved(levels))

    def total(self, known: Env) -> Total | None:
        """The condition as a total of absolute values that is at most something; none if it is not that."""
        return Partial(known).total(self.node)

    def range(
        self, bounds: Mapping[Var, tuple[float, float]], *, levels: Levels = NO_LEVELS, result: str | None = None
    ) -> tuple[float, float]:
        """Bounds on every result that is a number, given bounds on the variables; wide enough, not always narrow."""
        names = [node for node in walk(self.node) if isinstance(node, Name)]
        coded = {(n.layer, n.name): (0.0, len(found) - 1.0) for n in names if (found := levels_of(n, levels))}
        return range_of(self._resolved(levels, _yield(result, levels)), coded | dict(bounds))

    def integral(self, integer_vars: Collection[Var]) -> bool:
        """Whether the results are provably whole numbers, given the variables that are."""
        return is_whole(self.node, integer_vars)

    def bind(self, levels: Levels, integers: Collection[Var]) -> Expression:
        """Return the expression with codes in place of levels, in which whole numbers compare exactly.

        Parameters
        ----------
        levels, integers :
            The levels of categories, and the variables that are whole numbers.
        """
        return Expression(make_whole(self._resolved(levels), integers), self.text)

    def _resolved(self, levels: Levels, result: Yield | None = None) -> Node:
        if not levels and not self.has_levels:
            return self.node
        problems: list[Problem] = []
        node = resolve(self.node, levels, problems, result)
        ExpressionError.raise_if(problems)
        return node


def _is_plain(node: Node) -> bool:
    match node:
        case Logic(operator):
            return operator == "and"
        case Product(first, rest):
            return sum(bool(variables(n)) for n in (first, *(operand for _, operand in rest))) <= 1 and all(op in "*/" for op, _ in rest)
        case Compare() | Name() | Number() | Sum() | Negate():
            return True
        case _:
            return False


def _yield(result: str | None, levels: Levels) -> Yield | None:
    return None if result is None else Yield(result, levels.get(result))


def _named(codes: npt.NDArray[np.float64], own: Yield) -> npt.NDArray[Any]:
    """Codes → levels; a missing code is None."""
    names = np.array([*(own.levels or ()), None], dtype=object)
    return np.asarray(names[np.where(np.isnan(codes), -1, codes).astype(np.intp)], dtype=object)
