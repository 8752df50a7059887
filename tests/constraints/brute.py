"""The meaning of an interaction model, once more: from the table of semantics, one number at a time.

Nothing here uses a mask, a row, a configuration or the partition. Where a linkage leaves the own action of its target
open, every one is tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from budge import Feature, InteractionModel

TOLERANCE = 1e-9


def same(a: float, b: float) -> bool:
    return abs(a - b) <= TOLERANCE * max(1.0, abs(a), abs(b))


def at_most(a: float, b: float) -> bool:
    return a < b or same(a, b)


class Number(float):
    """A float whose comparisons allow for rounding."""

    def __eq__(self, other: object) -> bool:
        return same(float(self), float(other))  # type: ignore[arg-type]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: float) -> bool:
        return float(self) < float(other) and self != other

    def __gt__(self, other: float) -> bool:
        return float(self) > float(other) and self != other

    def __le__(self, other: float) -> bool:
        return not self > other

    def __ge__(self, other: float) -> bool:
        return not self < other

    __hash__ = float.__hash__


def _keeping(plain: Any) -> Any:
    return lambda self, *others: Number(plain(float(self), *map(float, others)))


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "mod", "rmod", "pow", "rpow", "truediv", "rtruediv"):
    setattr(Number, f"__{_name}__", _keeping(getattr(float, f"__{_name}__")))
Number.__abs__ = lambda self: Number(abs(float(self)))  # type: ignore[method-assign]
Number.__neg__ = lambda self: Number(-float(self))  # type: ignore[method-assign]


class Level:
    """A level of a category, which compares with the names of levels."""

    def __init__(self, position: float, levels: tuple[Any, ...]):
        self.position, self.levels = position, levels

    def other(self, value: object) -> float:
        return value.position if isinstance(value, Level) else float(self.levels.index(value))

    def __eq__(self, other: object) -> bool:
        return self.position == self.other(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: object) -> bool:
        return self.position < self.other(other)

    def __le__(self, other: object) -> bool:
        return self.position <= self.other(other)

    def __gt__(self, other: object) -> bool:
        return self.position > self.other(other)

    def __ge__(self, other: object) -> bool:
        return self.position >= self.other(other)

    __hash__ = None  # type: ignore[assignment]


def shown(feature: Feature, value: float) -> Any:
    return Level(value, feature.levels) if feature.levels is not None else Number(value)


def domain(feature: Feature) -> tuple[float, float]:
    if feature.type == "category":
        return 0.0, len(feature.levels or ()) - 1.0
    if feature.bounds is not None:
        return float(feature.bounds[0]), float(feature.bounds[1])
    return (0.0, 1.0) if feature.type == "binary" else (-math.inf, math.inf)


def limits(feature: Feature, x: float) -> tuple[float, float]:
    """Furthest own action down and up: bounds stretched to a start outside, direction, steps."""
    if not feature.actionable:
        return 0.0, 0.0
    low, high = domain(feature)
    down, up = min(low, x) - x, max(high, x) - x
    if feature.direction == "increase":
        down = 0.0
    if feature.direction == "decrease":
        up = 0.0
    if feature.max_decrease is not None:
        down = max(down, -feature.max_decrease)
    if feature.max_increase is not None:
        up = min(up, feature.max_increase)
    return (float(math.ceil(down)), float(math.floor(up))) if feature.discrete else (down, up)


def furthest(feature: Feature, x: float, action: float) -> float:
    down, up = limits(feature, x)
    return up if action > 0 else down if action < 0 else 0.0


class Brute:
    """Decides one change at a time for one model and start."""

    def __init__(self, im: InteractionModel, x: Mapping[str, float]):
        self.features = {f.name: f for f in im.features}
        self.x = dict(x)
        self.links: dict[str, list[Any]] = {}
        self.others = []
        for constraint in im.constraints:
            if constraint.kind == "directional_linkage":
                for target in constraint.targets:
                    self.links.setdefault(target, []).append(constraint)
            else:
                self.others.append(constraint)
        self.order: list[str] = []
        while len(self.order) < len(self.features):
            for name in self.features:
                if name not in self.order and all(link.source in self.order for link in self.links.get(name, ())):
                    self.order.append(name)

    def feasible(self, change: Mapping[str, float]) -> bool:
        """Whether some action leads to the change."""
        return next(self.actions(change), None) is not None

    def actions(self, change: Mapping[str, float]) -> Iterator[dict[str, float]]:
        """Every own action that leads to the change (of a real one that nobody reads, one for all)."""
        c = {}
        for name, feature in self.features.items():
            c[name] = float(change.get(name, 0.0))
            if feature.discrete:
                if not same(c[name], round(c[name])):
                    return
                c[name] = float(round(c[name]))
        yield from self._extend({}, c, 0)

    def _extend(self, action: dict[str, float], c: Mapping[str, float], depth: int) -> Iterator[dict[str, float]]:
        if depth == len(self.order):
            if all(self.holds(constraint, action, c) for constraint in self.others):
                yield dict(action)
            return
        name = self.order[depth]
        for own in self._own(name, action, c):
            yield from self._extend({**action, name: own}, c, depth + 1)

    def _own(self, name: str, action: Mapping[str, float], c: Mapping[str, float]) -> Iterator[float]:
        feature, x, moved = self.features[name], self.x[name], c[name]
        down, up = limits(feature, x)
        if name not in self.links:
            if at_most(down, moved) and at_most(moved, up):
                yield moved
            return
        low, high = 0.0, 0.0
        for link in self.links[name]:
            a, scale = action[link.source], float(link.targets[name])
            exact = scale * a
            other = {"==": exact, "<=": 0.0, ">=": scale * furthest(self.features[link.source], self.x[link.source], a)}[
                link.relation
            ]
            low, high = low + min(exact, other), high + max(exact, other)
        policy = self.links[name][0].on_exceed
        floor, ceiling = min(domain(feature)[0], x), max(domain(feature)[1], x)
        if policy != "allow" and not (at_most(floor, x + moved) and at_most(x + moved, ceiling)):
            return

        def led(least: float, most: float) -> bool:
            """Whether a total between the two leads to the change."""
            if at_most(least, moved) and at_most(moved, most):
                return True
            at_top, at_bottom = same(x + moved, ceiling), same(x + moved, floor)
            return policy == "clip" and ((at_top and at_most(moved, most)) or (at_bottom and at_most(least, moved)))

        if feature.discrete:
            own = down
            while own <= up:
                if led(own + low, own + high):
                    yield own
                own += 1.0
        elif low == high and policy != "clip":
            if at_most(down, moved - low) and at_most(moved - low, up):
                yield moved - low
        elif led(down + low, up + high):  # real, and nobody reads its own action
            yield 0.0

    def holds(self, k: Any, action: Mapping[str, float], c: Mapping[str, float]) -> bool:
        """One constraint, by the words of the table."""
        after = {name: self.x[name] + c[name] for name in c}
        return bool(getattr(self, f"_{k.kind}")(k, action, c, after))

    def _compare(self, left: float, relation: str, right: float) -> bool:
        return {"==": same(left, right), "<=": at_most(left, right), ">=": at_most(right, left)}[relation]

    def _one_hot(self, k: Any, action: Any, c: Any, after: Any) -> bool:
        return self._compare(sum(1 for n in k.features if after[n] == 1.0), k.relation, k.count)

    def _rank(self, k: Any, values: Mapping[str, float]) -> int | None:
        code = [int(values[n]) for n in k.features]
        if k.kind == "thermometer":
            return sum(code) if code == sorted(code, reverse=True) else None
        if sum(code) == 1:
            return code.index(1)
        return -1 if k.baseline == "lowest" and sum(code) == 0 else None

    def _ordinal(self, k: Any, action: Any, c: Any, after: Any) -> bool:
        now, then = self._rank(k, self.x), self._rank(k, after)
        if then is None:
            return False
        if now is None or k.direction is None:
            return True
        return then >= now if k.direction == "increase" else then <= now

    _thermometer = _ordinal

    def _reachability(self, k: Any, action: Any, c: Any, after: Any) -> bool:
        def place(values: Mapping[str, float]) -> int | None:
            for i, row in enumerate(k.values):
                coded = [self.features[n].levels.index(v) if self.features[n].levels else v for n, v in zip(k.features, row)]
                if all(same(values[n], v) for n, v in zip(k.features, coded)):
                    return i
            return None

        here, there = place(self.x), place(after)
        if there is None:
            return False
        return here is None or k.reachable is None or k.reachable[here][there] == 1

    def _additive_linkage(self, k: Any, action: Any, c: Any, after: Any) -> bool:
        return self._compare(k.coefficient * action[k.source], k.relation, sum(w * c[n] for n, w in k.targets.items()))

    def _linear(self, k: Any, action: Any, c: Any, after: Any) -> bool:
        read = after if k.on == "value" else action
        return self._compare(sum(w * read[n] for n, w in k.coefficients.items()), k.relation, k.constant)

    def _truth(self, text: str, action: Mapping[str, float], after: Mapping[str, float], on: str = "value") -> bool:
        """The condition, read by Python itself."""
        known = {n: Number(action[n]) if on == "action" else shown(f, after[n]) for n, f in self.features.items()}
        known["before"] = SimpleNamespace(**{n: shown(f, self.x[n]) for n, f in self.features.items()})
        known["action"] = SimpleNamespace(**{n: Number(action[n]) for n in self.features})
        return bool(eval(text, {"__builtins__": {"abs": abs, "min": min, "max": max}}, known))

    def _if_then(self, k: Any, action: Any, c: Any, after: Any) -> bool:
        return not self._truth(k.if_, action, after, k.on) or self._truth(k.then, action, after)

    def _switch(self, k: Any, action: Any, c: Any, after: Any) -> bool:
        if k.precondition:
            rest = dict.fromkeys(self.features, 0.0)
            zero, some = ([not np.isnan(self.x[n]) and bool(same(self.x[n], 0.0)) == is_zero for n in k.targets] for is_zero in (True, False))
            met = all(zero) if self._truth(k.when, rest, self.x) else {"free": True, "any": any(some), "all": all(some)}[k.otherwise]
            if not met:
                return True
        moved = [not same(action[n], 0.0) for n in k.targets]
        if self._truth(k.when, action, after):
            return not any(moved)
        return {"free": True, "any": any(moved), "all": all(moved)}[k.otherwise]

    def _rule(self, k: Any, action: Any, c: Any, after: Any) -> bool:
        return self._truth(k.expression, action, after)

    def _predicate(self, k: Any, action: Any, c: Any, after: Any) -> bool:
        given = {}
        for n in k.features:
            levels = self.features[n].levels
            if levels is not None and not 0 <= after[n] < len(levels):
                return False
            given[n] = np.array([levels[int(after[n])]], dtype=object) if levels is not None else np.array([after[n]])
        return bool(np.asarray(k.function(given))[0])
