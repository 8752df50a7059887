"""Calls and their cost: counted as they leave, and stopped before a cap is passed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from budge.errors import DesignError, nearest

__all__ = ["CapReachedError", "Meter", "Usage", "check_prices"]

_MILLION = 1e6
_FRAME_TOKENS = 256  # what a chat template may add to the text of a prompt


class CapReachedError(Exception):
    """The next call could pass a cap: nothing more is asked. `calls` were made for the draw before."""

    calls = 0


@dataclass(frozen=True)
class Usage:
    """Tokens of one call; `known` is False where the server did not say, and then both are upper estimates."""

    input: int = 0
    output: int = 0
    known: bool = True


@dataclass
class Meter:
    """What this run has asked and paid, earlier calls on the same folder included.

    A call reserves the most that it can cost (no tokenizer makes more tokens than bytes) until its usage is known, so that the
    cap on cost holds with many calls under way.
    """

    max_calls: int | None = None
    max_cost: float | None = None
    prices: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    calls: int = 0
    cost: float = 0.0
    asked: int = 0  # by this process
    _reserved: float = 0.0

    def take(self, model: str, text: str, max_tokens: int) -> float:
        """Before a call: count it and reserve its cost, or raise if it could pass a cap."""
        reserve = self.price(model, Usage(len(text.encode("utf-8", "replace")) + _FRAME_TOKENS, max_tokens))
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise CapReachedError(f"{self.calls} calls were made, the cap is {self.max_calls}")
        if self.max_cost is not None and self.cost + self._reserved + reserve > self.max_cost:
            raise CapReachedError(f"{self.cost:.6g} was spent, and the next call could pass the cap of {self.max_cost:g}")
        self.calls += 1
        self.asked += 1
        self._reserved += reserve
        return reserve

    def settle(self, reserve: float, model: str, usage: Usage | None) -> None:
        """After it: the true cost instead of the reserved one; nothing where the call failed."""
        self._reserved -= reserve
        if usage is not None:
            self.cost += self.price(model, usage) if usage.known else reserve

    def price(self, model: str, usage: Usage) -> float:
        """What the tokens cost; 0 for a model without a price."""
        into, out = self.prices.get(model, (0.0, 0.0))
        return (usage.input * into + usage.output * out) / _MILLION


def check_prices(prices: Any, names: list[str], *, needed: bool) -> dict[str, tuple[float, float]]:
    """Prices by model: (input, output) for a million tokens. One pair alone is for all models."""
    if prices is None:
        if needed:
            remedy = "give prices={model: (input, output)} for a million tokens"
            raise DesignError("a cap on cost needs prices", where="prices", remedy=remedy)
        return {}
    given = dict(prices) if isinstance(prices, Mapping) else dict.fromkeys(names, prices)
    checked = {}
    for name, pair in given.items():
        if name not in names:
            raise DesignError("no such model", where="prices", got=name, remedy=nearest(name, names))
        values = list(pair) if isinstance(pair, list | tuple) else []
        if len(values) != 2 or not all(_price(value) for value in values):
            raise DesignError("a price is (input, output) for a million tokens", where=f"prices.{name}", got=pair)
        checked[name] = (float(values[0]), float(values[1]))
    missing = [name for name in names if name not in checked]
    if needed and missing:
        raise DesignError("a cap on cost needs the price of every model", where="prices", got=missing[0])
    return checked


def _price(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
