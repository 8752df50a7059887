"""In which order the variables of a counting diagram are taken: by their names and by what joins them, never by declaration."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

__all__ = ["best_order"]


def best_order(scopes: Iterable[Sequence[str]], classes: Mapping[str, int], steepest: Mapping[str, int]) -> list[str]:
    """Return the names in an order that leaves few of the scopes pending at any time: the best of a few; ties go by name.

    `classes` tells how many classes each variable has, `steepest` its largest coefficient: where no scope is given, steep ones come first.
    """
    near: dict[str, set[str]] = {name: set() for name in classes}
    for scope in scopes:
        for name in scope:
            near[name] |= set(scope) - {name}
    plain = sorted(near, key=lambda name: (-steepest[name], name))
    if not any(near.values()):
        return plain
    bits = {name: math.log2(max(2, count)) for name, count in classes.items()}
    starts = sorted(near, key=lambda n: (len(near[n]), n))[:3]
    orders = [*(_neighbours(near, bits, first) for first in starts), _leaves_first(near)]
    orders = [plain, *orders, *(order[::-1] for order in orders)]
    return min(orders, key=lambda order: _pending(order, near, bits))


def _pending(order: Sequence[str], near: Mapping[str, set[str]], bits: Mapping[str, float]) -> float:
    """Return the sum over the cuts of 2^bits, where a cut is told by its done or by its later side, whichever is smaller."""
    left = {n: len(near[n]) for n in order}
    done: set[str] = set()
    later: set[str] = set()
    found = []
    done_bits = later_bits = 0.0
    for n in order:
        done.add(n)
        if n in later:
            later.discard(n)
            later_bits -= bits[n]
        done_bits += bits[n] if left[n] else 0.0
        for m in sorted(near[n]):
            left[m] -= 1
            if m in done:
                done_bits -= bits[m] if left[m] == 0 else 0.0
            elif m not in later:
                later.add(m)
                later_bits += bits[m]
        found.append(2.0 ** round(min(done_bits, later_bits, 900.0), 6))
    return math.fsum(found)


def _neighbours(near: Mapping[str, set[str]], bits: Mapping[str, float], first: str) -> list[str]:
    """Return an order that always takes the neighbour which leaves the fewest later variables touched."""
    left, front = set(near), {first}
    chosen: list[str] = []

    def added(n: str) -> tuple[float, int, str]:
        new = math.fsum(bits[m] for m in near[n] & left - front)
        return new - (bits[n] if n in front else 0.0), len(near[n]), n

    while left:
        n = min(front or left, key=added)
        left.discard(n)
        front |= near[n] & left
        front.discard(n)
        chosen.append(n)
    return chosen


def _leaves_first(near: Mapping[str, set[str]]) -> list[str]:
    """Return children before parents over a breadth-first tree, the neediest child first: log2(n) pending on a tree."""
    order: list[str] = []
    seen: set[str] = set()
    for root in sorted(near, key=lambda n: (-len(near[n]), n)):
        if root in seen:
            continue
        parent, walk = {root: ""}, [root]
        for n in walk:
            for m in sorted(near[n]):
                if m not in parent:
                    parent[m] = n
                    walk.append(m)
        seen |= set(walk)
        children: dict[str, list[str]] = {n: [] for n in walk}
        need: dict[str, int] = {}
        for n in reversed(walk):  # as registers for an expression: subtrees that wait at once
            wants = sorted((need[m] for m in children[n]), reverse=True)
            need[n] = max([1, *(w + k for k, w in enumerate(wants))])
            if n != root:
                children[parent[n]].append(n)
        stack = [(root, False)]
        while stack:
            n, ready = stack.pop()
            if ready:
                order.append(n)
                continue
            stack.append((n, True))
            stack += [(m, False) for m in sorted(children[n], key=lambda m: (need[m], m))]
    return order
