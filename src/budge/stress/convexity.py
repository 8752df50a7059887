"""The convex relaxation: what a method sees that cannot handle whole numbers and either-or. Kept to show what it under-reports."""

from __future__ import annotations

from collections.abc import Sequence

from budge.constraints import (
    AdditiveLinkage,
    Constraint,
    DirectionalLinkage,
    LinearConstraint,
    OneHot,
    Ordinal,
    Rule,
    Thermometer,
)
from budge.errors import BudgeError
from budge.expressions import All, Formula, Row
from budge.features import Feature
from budge.interaction import InteractionModel

__all__ = ["convex"]


def convex(im: InteractionModel) -> InteractionModel:
    """Integrality and non-convex constraints dropped; bounds, directions and linear rows kept.

    Codes of dummies become the linear rows that hold for them; if-then, switch, reachability and curved rules are dropped.
    Categories stay as they are: there is nothing between two levels.

    Examples
    --------
    >>> import budge
    >>> im = budge.InteractionModel([budge.Feature("a", "binary"), budge.Feature("b", "binary")],
    ...     [budge.constraints.OneHot(("a", "b")), budge.constraints.IfThen("a == 1", "b == 0")])
    >>> loose = convex(im)
    >>> [f.type for f in loose.features], [c.kind for c in loose.constraints]
    (['real', 'real'], ['linear'])
    """
    features = tuple(_real(f) for f in im.features)
    kept: list[Constraint] = []
    for c in im.constraints:
        kept += _rows(c, im)
    name = f"{im.name} (convex relaxation)" if im.name else "convex relaxation"
    return InteractionModel(features, kept, im.effects, im.latent, name=name, measure=im.measure)


def _real(f: Feature) -> Feature:
    if f.type not in ("binary", "integer"):
        return f
    low, high = f.range
    return f.but(type="real", bounds=(low, high), distribution=None)


def _rows(c: Constraint, im: InteractionModel) -> Sequence[Constraint]:
    """The constraint as far as it is convex."""
    if isinstance(c, OneHot):
        return [LinearConstraint(dict.fromkeys(c.features, 1.0), c.relation, float(c.count), name=c.name)]
    if isinstance(c, Ordinal):
        total = LinearConstraint(dict.fromkeys(c.features, 1.0), "<=" if c.baseline else "==", 1.0, name=c.name)
        return [total, *_ranks({name: k + 1.0 for k, name in enumerate(c.features)}, c.direction, c.name)]
    if isinstance(c, Thermometer):
        steps = [LinearConstraint({low: 1.0, high: -1.0}, ">=", 0.0) for low, high in zip(c.features, c.features[1:])]
        return [*steps, *_ranks(dict.fromkeys(c.features, 1.0), c.direction, c.name)]
    if isinstance(c, DirectionalLinkage):
        one_way = im.by_name[c.source].direction is not None
        return [c] if c.on_exceed != "clip" and (c.relation == "==" or one_way) else []
    if isinstance(c, LinearConstraint | AdditiveLinkage):
        return [c]
    if isinstance(c, Rule) and all(im.by_name[n].numeric for n in c.scope):
        try:
            formula = c.rows(dict.fromkeys(c.scope, 0.0))
        except BudgeError:
            return []
        return [c] if formula is not None and _linear(formula) else []
    return []


def _ranks(coefficients: dict[str, float], direction: str | None, name: str | None) -> list[Constraint]:
    if direction is None:
        return []
    relation = ">=" if direction == "increase" else "<="
    return [LinearConstraint(coefficients, relation, 0.0, on="action", name=f"{name}, direction" if name else None)]  # type: ignore[arg-type]


def _linear(formula: Formula) -> bool:
    """Whether it is a conjunction of half-spaces and hyperplanes."""
    if isinstance(formula, All):
        return all(_linear(part) for part in formula.parts)
    return isinstance(formula, Row) and formula.relation != "!="
