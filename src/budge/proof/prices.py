"""What a plan costs, as forms of the joint program: whether each feature moves, and the price of that."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from budge.features import Feature
from budge.program.compiler import Affine
from budge.proof.axes import Levels, Numbers
from budge.proof.costs import Cost
from budge.proof.joint import Joint, combined

__all__ = ["Price", "objective", "prices"]

APART = 1e-6  # share of its range by which a real feature moves at least, where plans must differ


@dataclass(frozen=True)
class Price:
    """Whether a feature moves (a form that is 0 or 1) and what that costs, of which `most` is the highest."""

    moved: Affine
    price: Affine
    most: float


def prices(joint: Joint, cost: Cost, apart: bool) -> dict[int, Price]:
    """Return the prices of all columns that can move; with `apart`, a real feature that counts as moved moves visibly."""
    person = joint.person
    by_column = {person.place[f.name]: f for f in person.im.features}
    found: dict[int, Price] = {}
    for axis, above in zip(joint.terms.numbers, joint.cuts):
        if not axis.tied and not axis.acted:
            found[axis.column] = _by_cells(axis, above, float(cost.weights[axis.column]))
    for listed, chosen in zip(joint.terms.levels, joint.levels):
        if not listed.acted:
            found[listed.column] = _by_level(listed, chosen, float(cost.weights[listed.column]))
    for part in joint.parts:
        for f in part.part.features:
            j = person.place[f.name]
            if j not in found and not math.isnan(person.start[j]):
                found[j] = _by_size(joint, part.form("change", f.name), f, float(cost.weights[j]), apart)
    for j, form in joint.values.items():
        if j not in found and isinstance(sloped := person.axes.get(j), Numbers) and not sloped.acted:
            found[j] = _by_size(joint, Affine(form.terms, form.const - sloped.start), by_column[j], float(cost.weights[j]), apart)
    return found


def objective(found: Mapping[int, Price], cost: Cost) -> tuple[Affine, float]:
    """Return what to minimise, and the weight of one more feature in it: larger than all distances together."""
    total = combined([p.price for p in found.values()], [1.0] * len(found))
    if cost.first != "features":
        return total, 0.0
    each = 1.0 + sum(p.most for p in found.values())
    return total.plus(combined([p.moved for p in found.values()], [1.0] * len(found)), each), each


def _by_cells(axis: Numbers, above: list[int], unit: float) -> Price:
    """Return the price of a free column: of the nearest value in each cell."""
    near = [axis.nearest(n, n, axis.start) for n in range(axis.size)]
    price = [unit * abs((axis.lasts[n] if value is None else value) - axis.start) for n, value in enumerate(near)]
    moved, const = dict[int, float](), 0.0
    if axis.home > 0:
        moved[above[axis.home - 1]], const = -1.0, 1.0
    if axis.home < len(above):
        moved[above[axis.home]] = moved.get(above[axis.home], 0.0) + 1.0
    return Price(Affine(moved, const), Affine({z: b - a for z, a, b in zip(above, price, price[1:]) if a != b}, price[0]), max(price))


def _by_level(axis: Levels, chosen: list[int], unit: float) -> Price:
    moved = Affine({chosen[axis.home]: -1.0}, 1.0)
    return Price(moved, Affine({}).plus(moved, unit), unit)


def _by_size(joint: Joint, change: Affine, f: Feature, unit: float, apart: bool) -> Price:
    """Return the price of a change that is a variable: indicators of up and down, and its size."""
    program = joint.program
    ends = [sorted(k * end for end in program.limits(c)) for c, k in change.terms.items()]
    low, high = change.const + sum(e[0] for e in ends), change.const + sum(e[1] for e in ends)
    flat = f.levels is not None
    if not change.terms:
        gone = float(change.const != 0.0)
        return Price(Affine({}, gone), Affine({}, unit * (gone if flat else abs(change.const))), unit * abs(change.const))
    least = 1.0 if f.discrete else APART * (high - low) if apart else 0.0
    up = program.variable(0.0, float(high > 0.0), integer=True)
    down = program.variable(0.0, float(low < 0.0), integer=True)
    program.row({up: 1.0, down: 1.0}, upper=1.0)
    program.row({**change.terms, up: -max(high, 0.0), down: least}, upper=-change.const)
    program.row({**change.terms, up: -least, down: -min(low, 0.0)}, lower=-change.const)
    moved = Affine({up: 1.0, down: 1.0})
    if flat:
        return Price(moved, Affine({}).plus(moved, unit), unit)
    most = max(high, -low, 0.0)
    size = program.variable(0.0, most)
    program.row({size: 1.0} | {c: -k for c, k in change.terms.items()}, lower=change.const)
    program.row({size: 1.0} | dict(change.terms), lower=-change.const)
    return Price(moved, Affine({size: unit}), unit * most)
