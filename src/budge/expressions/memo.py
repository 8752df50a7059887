"""Each node of a tree is looked at once, however often its neighbours ask: else nested conditions take exponential time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from .nodes import Node

__all__ = ["Remembers", "once"]

P = ParamSpec("P")
R = TypeVar("R")


class Remembers(Protocol):
    """Anything with a memory for what was found at a node."""

    memo: dict[Any, Any]


S = TypeVar("S", bound=Remembers)


def once(method: Callable[Concatenate[S, Node, P], R]) -> Callable[Concatenate[S, Node, P], R]:
    """A method of a node (and perhaps flags) that remembers its results for the life of its owner."""

    def remembered(self: S, node: Node, /, *args: P.args, **kwargs: P.kwargs) -> R:
        key = (method.__name__, id(node), args, tuple(kwargs.items()))
        if key not in self.memo:
            self.memo[key] = (node, method(self, node, *args, **kwargs))  # the node is kept, so that its id stays its own
        found: R = self.memo[key][1]
        return found

    return remembered
