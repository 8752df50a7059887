"""The parameters of distributions, as far as the text tells them: what is impossible is refused before anything is drawn."""

from __future__ import annotations

import numpy as np

from .distributions import DISTRIBUTIONS, factor, flaw
from .evaluate import constant_value, is_constant
from .nodes import Call, Listing, Node, Number, children, render
from .tokens import fail

__all__ = ["check_draws"]


def check_draws(node: Node, *, top: bool = True) -> None:
    """Raise for the first distribution whose constants are impossible. ``top``: the node is the whole expression."""
    if isinstance(node, Call) and node.function in DISTRIBUTIONS:
        rule = DISTRIBUTIONS[node.function]
        if node.function == "multivariate_normal":
            if not top:
                raise fail(
                    "multivariate_normal must be the whole expression",
                    node.column,
                    render(node),
                    "name it as a latent vector and use its components",
                )
            _normal_vector(node)
        elif node.function == "categorical":
            _categorical(node)
        else:
            for argument in node.arguments:
                if isinstance(argument, Listing):
                    raise fail(
                        f"{node.function} takes numbers, not lists", argument.column, render(argument), f"write {rule.signature}"
                    )
            _numeric_parameters(node)
    for child in children(node):
        check_draws(child, top=False)


def _numeric_parameters(node: Call) -> None:
    """Judge the constants among the parameters; those that are not known yet may take whatever value would make them sound."""
    rule = DISTRIBUTIONS[node.function]
    values = [constant_value(a) if is_constant(a) else None for a in node.arguments]
    known = [value for value in values if value is not None]
    if not known:
        return
    candidates = [0.0, 0.5, 1.0, *known, *(value + 1 for value in known)] if len(known) < len(values) else [0.0]
    flaws = [flaw(node.function, [candidate if value is None else value for value in values]) for candidate in candidates]
    if all(flaws) and flaws[0] is not None:
        raise fail(f"{rule.signature}: {flaws[0][0]}", node.column, render(node), "change the parameters")


def _items(node: Node, owner: Call) -> list[Node]:
    if not isinstance(node, Listing) or not node.items:
        raise fail(
            f"{owner.function} takes literal lists",
            node.column,
            render(node),
            f"write {DISTRIBUTIONS[owner.function].signature} with lists in square brackets",
        )
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
        raise fail(
            f"categorical got {len(values)} values and {len(weights)} weights",
            node.column,
            render(node),
            "give each value one weight",
        )
    if len(set(values)) < len(values):
        raise fail(
            "a value of categorical is listed twice", node.column, render(node), "list it once, with the sum of its weights"
        )
    if min(weights) < 0 or max(weights) <= 0:
        raise fail("the weights of categorical must be at least 0, and not all 0", node.column, weights, "change the weights")


def _normal_vector(node: Call) -> None:
    mean = _numbers(node.arguments[0], node)
    rows = [_numbers(row, node) for row in _items(node.arguments[1], node)]
    if len(rows) != len(mean) or any(len(row) != len(mean) for row in rows):
        sizes = f"{len(rows)} by {'/'.join(str(n) for n in sorted({len(r) for r in rows}))}"
        raise fail(
            f"the mean has {len(mean)} components, the covariance is {sizes}",
            node.column,
            render(node),
            f"give a {len(mean)} by {len(mean)} covariance",
        )
    if factor(np.array(rows)) is None:
        raise fail(
            "the covariance is not symmetric and positive semi-definite", node.column, rows, "check the signs and both triangles"
        )
