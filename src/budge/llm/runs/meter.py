"""Calls and their cost: counted before they leave, and stopped before a cap is passed, also after a kill."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from budge.errors import DesignError, nearest

__all__ = ["ENDED", "STARTED", "CapReachedError", "Meter", "Ticket", "Usage", "check_prices"]

#: The first words of the keys under which calls are kept.
STARTED, ENDED = "started", "ended"
_MILLION = 1e6
_FRAME_TOKENS = 128  # what a chat template may add to the text of a prompt


class CapReachedError(Exception):
    """The next call could pass a cap: nothing more is asked. `calls` were made for the draw before; `option` is the cap's name."""

    calls = 0

    def __init__(self, message: str, option: str = ""):
        super().__init__(message)
        self.option = option


@dataclass(frozen=True)
class Usage:
    """Tokens of one call; `known` is False where the server did not say, and then both are upper estimates."""

    input: int = 0
    output: int = 0
    known: bool = True


@dataclass(frozen=True)
class Ticket:
    """One call that may be made: its number in the run, who is asked, and the most that it can use."""

    number: int
    model: str
    most: Usage


@dataclass
class Meter:
    """What this run has asked and paid, earlier calls on the same folder included.

    A call reserves the most that it can cost (no tokenizer makes more tokens than bytes) until its usage is known, so that the
    cap on cost holds with many calls under way. `note` keeps each call for good before it is sent and again when it is done: a
    call that was under way when the process was killed counts as made, at the most that it can have cost.
    """

    max_calls: int | None = None
    max_cost: float | None = None
    prices: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    calls: int = 0
    cost: float = 0.0
    asked: int = 0  # by this process
    note: Callable[[str, dict[str, Any]], None] = lambda key, record: None
    _under_way: dict[int, float] = field(default_factory=dict)
    _waiting: list[asyncio.Future[None]] = field(default_factory=list)

    async def take(self, model: str, text: str, max_tokens: int) -> Ticket:
        """Before a call: count it and reserve its cost. Waits for calls under way where they might leave room; raises where not."""
        most = Usage(len(text.encode("utf-8", "replace")) + _FRAME_TOKENS, max_tokens, known=False)
        reserve = self.price(model, most)
        while True:
            if self.max_calls is not None and self.calls >= self.max_calls:
                made = "1 call was made" if self.calls == 1 else f"{self.calls} calls were made"
                raise CapReachedError(f"{made}, the cap is {self.max_calls}", "max_calls")
            if self.max_cost is None or self.cost + sum(self._under_way.values()) + reserve <= self.max_cost:
                break
            if not self._under_way:
                least = _rounded_up(self.cost + reserve)
                what = f"{self.cost:.4g} was spent and the next call may cost up to {reserve:.4g}, the cap is {self.max_cost:g}"
                raise CapReachedError(f"{what} (with {least} it could be made)", "max_cost")
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            await place
        ticket = Ticket(self.calls + 1, model, most)
        self.note(f"{STARTED} {ticket.number:09d}", {"model": model, "most": [most.input, most.output]})
        self.calls, self.asked = self.calls + 1, self.asked + 1
        self._under_way[ticket.number] = reserve
        return ticket

    def settle(self, ticket: Ticket, usage: Usage | None) -> None:
        """After it: the true cost instead of the reserved one; nothing where the call failed."""
        reserve = self._under_way.pop(ticket.number)
        used = Usage() if usage is None else usage if usage.known else ticket.most
        self.cost += reserve if used is ticket.most else self.price(ticket.model, used)
        waiting, self._waiting = self._waiting, []
        for place in waiting:
            if not place.done():
                place.set_result(None)
        self.note(f"{ENDED} {ticket.number:09d}", {"used": [used.input, used.output]})

    def count_again(self, started: Mapping[str, Mapping[str, Any]], ended: Mapping[str, Mapping[str, Any]]) -> None:
        """Calls and cost of earlier processes, from what `note` kept; by number. One that never ended cost the most it can have."""
        self.calls = max((int(number) for number in started), default=0)
        for number, record in started.items():
            into, out = ended[number]["used"] if number in ended else record["most"]
            self.cost += self.price(str(record["model"]), Usage(into, out))

    def price(self, model: str, usage: Usage) -> float:
        """What the tokens cost; 0 for a model without a price."""
        into, out = self.prices.get(model, (0.0, 0.0))
        return (usage.input * into + usage.output * out) / _MILLION


def check_prices(prices: Any, names: list[str], *, needed: bool) -> dict[str, tuple[float, float]]:
    """Prices by model: (input, output) for a million tokens. One pair alone is for all models."""
    if prices is None:
        if needed:
            remedy = "give --price 0.15,0.6 (prices={model: (input, output)}) for a million tokens"
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


def _rounded_up(value: float) -> str:
    """Three digits, none of them too small."""
    step = 10.0 ** (math.floor(math.log10(value)) - 2) if value > 0 else 1.0
    return f"{math.ceil(value / step - 1e-9) * step:.3g}" if value > 0 else "0"


def _price(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
