"""What a user declares: an effect on one feature, and draws that several effects share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any

from budge.errors import SpecError
from budge.expressions import Expression, Var, parse

__all__ = ["WAYS", "Draw", "Effect", "Latent", "in_order"]

Draw = str | Callable[..., Any]
WAYS = ("add", "set", "multiply")


@dataclass(frozen=True)
class Latent:
    """A draw that several effects share; with `components`, a vector of correlated ones.

    Examples
    --------
    >>> Latent("labs", "multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]])", components=("u", "v")).names
    ('u', 'v')
    """

    name: str
    draw: Draw
    components: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "components", tuple(self.components))

    @property
    def names(self) -> tuple[str, ...]:
        """What effects call it: its components, or itself."""
        return self.components or (self.name,)

    @cached_property
    def expression(self) -> Expression | None:
        """The parsed draw, where it is a text."""
        return parse(self.draw, distributions=True) if isinstance(self.draw, str) else None

    def to_spec(self) -> Any:
        """As a spec file writes it."""
        if not isinstance(self.draw, str):
            raise SpecError("a latent draw that is Python code cannot be written to a spec file", where=f"latent.{self.name}")
        return {"components": list(self.components), "draw": self.draw} if self.components else self.draw


@dataclass(frozen=True)
class Effect:
    """One stochastic effect on one feature.

    Parameters
    ----------
    feature
        What it acts on.
    add, set, multiply
        Exactly one: an expression, or a Python function ``f(env, rng)`` that gets a mapping from what it `reads` to
        arrays and returns an array of the same length.
    clip, round
        Applied to the value that results, rounding first.
    reads
        For a function: what it may use, e.g. ``("action.income", "before.age", "effect.rate", "latent.u", "rent")``.

    Examples
    --------
    >>> Effect("savings", add="round(normal(0.1 * action.income, 50))", clip=(0, 50000)).parents
    frozenset({('action', 'income')})
    """

    feature: str
    add: Draw | None = None
    set: Draw | None = None
    multiply: Draw | None = None
    clip: tuple[float, float] | None = None
    round: bool = False
    reads: tuple[str, ...] = ()
    name: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.clip, Sequence) and not isinstance(self.clip, str | tuple):
            object.__setattr__(self, "clip", tuple(self.clip))
        object.__setattr__(self, "reads", tuple(self.reads))

    @property
    def way(self) -> str:
        """``add``, ``set`` or ``multiply``."""
        return next(way for way in WAYS if getattr(self, way) is not None)

    @property
    def draw(self) -> Draw:
        """The expression or function."""
        found: Draw = getattr(self, self.way)
        return found

    @cached_property
    def expression(self) -> Expression | None:
        """The parsed draw, where it is a text."""
        return parse(self.draw, distributions=True) if isinstance(self.draw, str) else None

    @cached_property
    def parents(self) -> frozenset[Var]:
        """What it reads, as (layer, name)."""
        if self.expression is not None:
            return frozenset(self.expression.vars)
        pairs = (text.split(".", 1) if "." in text else ("value", text) for text in self.reads)
        return frozenset((layer, name) for layer, name in pairs)

    @property
    def label(self) -> str:
        """How errors call it."""
        return self.name or f"effect on {self.feature}"

    def to_spec(self) -> dict[str, Any]:
        """As a spec file writes it."""
        if not isinstance(self.draw, str):
            raise SpecError("an effect that is Python code cannot be written to a spec file", where=self.label)
        record: dict[str, Any] = {"feature": self.feature, self.way: self.draw}
        if self.clip is not None:
            record["clip"] = list(self.clip)
        if self.round:
            record["round"] = True
        if self.name:
            record["name"] = self.name
        return record

    def describe(self) -> str:
        """One English sentence."""
        what = self.draw if isinstance(self.draw, str) else getattr(self.draw, "__name__", "a function")
        text = {
            "add": f"{self.feature} changes by {what}",
            "set": f"{self.feature} becomes {what}",
            "multiply": f"{self.feature} is multiplied by {what}",
        }[self.way]
        text += ", rounded" if self.round else ""
        return text + (f", kept within {self.clip[0]:g} and {self.clip[1]:g}." if self.clip else ".")


def in_order(effects: Sequence[Effect]) -> tuple[Effect, ...]:
    """The effects, parents first; a cycle is an error that prints it."""
    by_feature = {effect.feature: effect for effect in effects}
    graph = {e.feature: sorted(n for layer, n in e.parents if layer == "effect" and n in by_feature) for e in effects}
    try:
        return tuple(by_feature[name] for name in TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise SpecError(
            "effects depend on each other in a circle", where="effects", got=" → ".join(reversed(error.args[1]))
        ) from None
