"""What can be relaxed in an interaction model, one thing at a time; each relaxation is an edit, so that several can be made jointly.

The convex relaxation is what a method sees that cannot handle whole numbers and either-or: kept to show what it under-reports.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from budge.constraints import (
    AdditiveLinkage,
    Constraint,
    DirectionalLinkage,
    LinearConstraint,
    OneHot,
    Ordinal,
    Reachability,
    Rule,
    Thermometer,
)
from budge.errors import BudgeError, InputError, nearest
from budge.expressions import All, Formula, Row
from budge.features import Feature
from budge.interaction import InteractionModel
from budge.stress.dummies import DummyGroup, dummy_groups

__all__ = ["Relaxation", "convex", "default_relaxations", "drop", "free", "lift", "resolve"]

Edit = Callable[[InteractionModel], InteractionModel]
Lift = Literal["direction", "steps"]


@dataclass(frozen=True)
class Relaxation:
    """A named edit that leaves people more to do.

    Parameters
    ----------
    name
        What results call it.
    edit
        From an interaction model to the relaxed one.
    kind
        ``constraint``, ``immutability``, ``direction``, ``steps`` or ``custom``.
    superset
        Whether everything that was feasible stays so; where it is promised, it is checked. False for a dropped directional
        linkage: its targets then stay where they were.
    rule
        The constraint or feature that is relaxed; the name of the relaxation unless given. Results state one rule once.
    """

    name: str
    edit: Edit = field(repr=False, compare=False)
    kind: str = "custom"
    superset: bool = True
    rule: str = ""
    _made: dict[str, InteractionModel] = field(default_factory=dict, repr=False, compare=False)

    def model(self, im: InteractionModel) -> InteractionModel:
        """The relaxed model, made once; an edit that changes nothing is refused."""
        if im.digest not in self._made:
            self._made[im.digest] = self._checked(im)
        return self._made[im.digest]

    def _checked(self, im: InteractionModel) -> InteractionModel:
        relaxed = self.edit(im)
        if not isinstance(relaxed, InteractionModel):
            raise InputError("a relaxation gives an interaction model", where=self.name, got=type(relaxed).__name__)
        if relaxed.digest == im.digest:
            raise InputError("changes nothing: there is nothing to ablate", where=self.name, remedy="relax what the model holds")
        if [f.name for f in relaxed.features] != [f.name for f in im.features]:
            raise InputError(
                "a relaxation keeps the features and their order", where=self.name, got=[f.name for f in relaxed.features]
            )
        return relaxed


def drop(im: InteractionModel, constraint: Any) -> Relaxation:
    """One joint constraint dropped; one that the model does not have is refused.

    Examples
    --------
    >>> import budge
    >>> im = budge.InteractionModel([budge.Feature("a", "binary"), budge.Feature("b", "binary")], [budge.constraints.OneHot(("a", "b"))])
    >>> drop(im, 0).model(im).partition
    (('a',), ('b',))
    """
    gone = im.find(constraint)
    rule = gone.name or gone.label

    def edit(model: InteractionModel) -> InteractionModel:
        # Another relaxation may have replaced it by a freer one of the same kind and scope.
        same = [c for c in model.constraints if c == gone] or [
            c for c in model.constraints if type(c) is type(gone) and c.scope == gone.scope and c.name == gone.name
        ]
        return model.without(same[0]) if same else model

    return Relaxation(f"drop {rule}", edit, "constraint", superset=not isinstance(gone, DirectionalLinkage), rule=rule)


def free(im: InteractionModel, *features: str, X: Any = None, name: str = "") -> Relaxation:
    """Immutable features freed, together; bounds that are missing come from the data.

    Examples
    --------
    >>> import budge
    >>> im = budge.InteractionModel([budge.Feature("age", "integer", bounds=(18, 99), actionable=False)])
    >>> print(free(im, "age").name)
    free age
    """
    for f in (_feature(im, n) for n in features):
        if f.type == "fixed":
            raise InputError("a column of type fixed cannot be freed", where=f.name, remedy="declare its type and bounds")
        if f.actionable:
            raise InputError("is not immutable: there is nothing to free", where=f.name, got="actionable: true")
    rule = name.removeprefix("free ") or ", ".join(features)
    return Relaxation(name or f"free {rule}", _freer(features, X, actionable=True), "immutability", rule=rule)


def lift(im: InteractionModel, feature: str, what: Lift, X: Any = None) -> Relaxation:
    """The direction or the step limits of a feature lifted."""
    f = _feature(im, feature)
    held = f.direction is not None if what == "direction" else f.max_increase is not None or f.max_decrease is not None
    if not held:
        raise InputError(f"has no {what} to lift", where=feature)
    changes: dict[str, Any] = {"direction": None} if what == "direction" else {"max_increase": None, "max_decrease": None}
    return Relaxation(f"lift {what} of {feature}", _freer((feature,), X, **changes), what, rule=feature)


def _feature(im: InteractionModel, name: str) -> Feature:
    if name not in im.by_name:
        raise InputError("no such feature", got=name, remedy=nearest(name, im.by_name))
    return im.by_name[name]


def _freer(names: Iterable[str], X: Any, **changes: Any) -> Edit:
    chosen = tuple(names)

    def edit(im: InteractionModel) -> InteractionModel:
        edited = tuple(_bounded(f.but(**changes), X) if f.name in chosen else f for f in im.features)
        return InteractionModel(edited, im.constraints, im.effects, im.latent, name=im.name, measure=im.measure)

    return edit


def _bounded(f: Feature, X: Any) -> Feature:
    """The feature with a finite range: the ends that are missing come from the data, where there is such."""
    if f.type not in ("integer", "real") or X is None or f.name not in getattr(X, "columns", ()) or not f.problems():
        return f
    column = pd.to_numeric(X[f.name], errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    if np.isnan(column).all():
        return f
    low, high = f.range
    ends = (low if math.isfinite(low) else float(np.nanmin(column)), high if math.isfinite(high) else float(np.nanmax(column)))
    return f.but(bounds=ends)


def _together(group: DummyGroup) -> Edit:
    def edit(im: InteractionModel) -> InteractionModel:
        freed = tuple(f.but(actionable=True) if f.name in group.features else f for f in im.features)
        held = Reachability(group.features, group.combinations, name=group.stem)
        return InteractionModel(freed, (*im.constraints, held), im.effects, im.latent, name=im.name, measure=im.measure)

    return edit


def _looser(constraint: Any) -> Edit:
    def edit(im: InteractionModel) -> InteractionModel:
        freed = tuple(
            replace(c, direction=None) if isinstance(c, Ordinal | Thermometer) and c == constraint else c for c in im.constraints
        )
        return InteractionModel(im.features, freed, im.effects, im.latent, name=im.name, measure=im.measure)

    return edit


def default_relaxations(im: InteractionModel, X: Any = None) -> tuple[tuple[Relaxation, ...], tuple[str, ...]]:
    """Everything that can be relaxed one at a time, and what was left out with the reason.

    Joint constraints are dropped, immutable features freed, directions and step limits lifted. Dummies of one group are freed together: those of a
    constraint, and those that names and data show to be one (see `budge.stress.dummies`), to the combinations that the data hold. Constraints that
    hold the columns of one code together stay unless they are named: without them there are people who cannot be.

    Examples
    --------
    >>> import budge
    >>> im = budge.InteractionModel(
    ...     [budge.Feature("age", "integer", bounds=(18, 99), actionable=False), budge.Feature("id", "fixed"),
    ...      budge.Feature("years", "integer", bounds=(0, 40), direction="increase", max_increase=2)],
    ...     [budge.constraints.DirectionalLinkage("years", {"age": 1}, name="ageing")])
    >>> found, left_out = default_relaxations(im)
    >>> [r.name for r in found], left_out
    (['drop ageing', 'free age', 'lift direction of years', 'lift steps of years'], ('id: a column of type fixed is not freed',))
    """
    found = [drop(im, c) for c in im.constraints if not _is_code(c)]
    coded = [c.name or c.label for c in im.constraints if _is_code(c)]
    left_out = [f"drop {name}: its columns are one code, and without it there are people who cannot be" for name in coded]
    grouped: set[str] = set()
    for c in im.constraints:
        if not isinstance(c, OneHot | Ordinal | Thermometer):
            continue
        still = [n for n in c.features if not im.by_name[n].actionable and im.by_name[n].type != "fixed" and n not in grouped]
        if still:
            found.append(free(im, *still, X=X, name=f"free {c.name}" if c.name else ""))
            grouped |= set(still)
        if isinstance(c, Ordinal | Thermometer) and c.direction is not None:
            rule = c.name or c.label
            found.append(Relaxation(f"lift direction of {rule}", _looser(c), "direction", rule=rule))
    single = [f.name for f in im.features if f.type == "binary" and not f.actionable and f.name not in grouped]
    for group in dummy_groups(single, X):
        found.append(Relaxation(f"free {group.stem}", _together(group), "immutability", rule=group.stem))
        grouped |= set(group.features)
    for f in im.features:
        if f.type == "fixed":
            left_out.append(f"{f.name}: a column of type fixed is not freed")
        elif not f.actionable and f.name not in grouped:
            found.append(free(im, f.name, X=X))
    for f in im.features:
        if f.actionable and f.direction is not None:
            found.append(lift(im, f.name, "direction", X))
        if f.actionable and (f.max_increase is not None or f.max_decrease is not None):
            found.append(lift(im, f.name, "steps", X))
    kept: list[Relaxation] = []
    for r in found:
        try:
            r.model(im)
        except BudgeError as error:
            left_out.append(f"{r.name}: {error}")
        else:
            kept.append(r)
    return _unlike(kept), tuple(left_out)


def _is_code(constraint: Constraint) -> bool:
    """Return whether a constraint makes several columns one thing: one level of a category, or one rank. Three of five dummies are a rule."""
    return isinstance(constraint, Ordinal | Thermometer) or (isinstance(constraint, OneHot) and constraint.count == 1 and constraint.relation != ">=")


def _unlike(found: Iterable[Relaxation]) -> tuple[Relaxation, ...]:
    """The same with names that differ."""
    seen: dict[str, int] = {}
    result = []
    for r in found:
        seen[r.name] = seen.get(r.name, 0) + 1
        result.append(r if seen[r.name] == 1 else replace(r, name=f"{r.name} ({seen[r.name]})"))
    return tuple(result)


def resolve(im: InteractionModel, relaxations: Any, X: Any) -> tuple[tuple[Relaxation, ...], tuple[str, ...]]:
    """The caller's relaxations: none (all), names of default ones, `Relaxation` values, or a mapping of names to models."""
    if relaxations is None:
        found, left_out = default_relaxations(im, X)
        if not found:
            codes = [c for c in im.constraints if _is_code(c)]
            if codes:
                what = "nothing can be relaxed but constraints that hold the columns of one code together"
                raise InputError(what, where="relaxations", remedy=f"name one: {drop(im, codes[0]).name!r}; without it there are people who cannot be")
            raise InputError("nothing can be relaxed: every feature is free and nothing is constrained", where="relaxations")
        return found, left_out
    if isinstance(relaxations, str | Relaxation):
        relaxations = [relaxations]
    given: list[Relaxation] = []
    if isinstance(relaxations, Mapping):
        for name, what in relaxations.items():
            if isinstance(what, Relaxation):
                given.append(replace(what, name=str(name), _made={}))
            elif isinstance(what, InteractionModel):
                given.append(Relaxation(str(name), _instead(im, what, str(name))))
            else:
                raise InputError(
                    "is neither an interaction model nor a Relaxation", where=f"relaxations[{name!r}]", got=type(what).__name__
                )
    else:
        known = {r.name: r for r in (*(drop(im, c) for c in im.constraints if _is_code(c)), *default_relaxations(im, X)[0])}
        for item in relaxations:
            if isinstance(item, str) and item not in known:
                raise InputError("there is no such thing to relax", where="relaxations", got=item, remedy=nearest(item, known))
            given.append(known[item] if isinstance(item, str) else item)
            if not isinstance(given[-1], Relaxation):
                raise InputError("is not a Relaxation", where="relaxations", got=type(item).__name__)
    if not given:
        raise InputError("no relaxation is given", where="relaxations", got=relaxations, remedy="leave it out for all of them")
    for r in given:
        r.model(im)
    return _unlike(given), ()


def _instead(im: InteractionModel, other: InteractionModel, name: str) -> Edit:
    def edit(model: InteractionModel) -> InteractionModel:
        if model != im:
            raise InputError(
                "a whole model cannot be joined with other relaxations", where=name, remedy="give a Relaxation with an edit"
            )
        return other

    return edit


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
