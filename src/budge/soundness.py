"""Is an interaction model sound by itself? Every problem of its parts, found at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from budge.constraints import Constraint, DirectionalLinkage, IfThen, Rule, Switch
from budge.effects import Effect, Latent, effect_problems
from budge.errors import MOST_PROBLEMS, Problem
from budge.expressions import Expression, Var
from budge.features import Feature, look_alikes
from budge.parts import Part, link_cycle, partition

__all__ = ["model_problems"]


def model_problems(
    features: Sequence[Feature],
    constraints: Sequence[Constraint],
    effects: Sequence[Effect],
    latent: Sequence[Latent],
    measure: str,
) -> list[Problem]:
    """Errors and warnings of features, constraints, effects and of how they fit together."""
    found: list[Problem] = []
    if not features:
        found.append(Problem("features", "declares no feature", remedy="declare at least one"))
    if measure not in ("configuration", "volume"):
        found.append(Problem("measure", "must be configuration or volume", measure))
    names = [f.name for f in features]
    for name, times in Counter(names).items():
        if times > 1:
            found.append(Problem(f"features.{name}", "is declared twice", name))
    for feature in features:
        found += feature.problems()
    found += look_alikes(names)
    by_name = {f.name: f for f in features}
    for i, constraint in enumerate(constraints):
        if len(found) > MOST_PROBLEMS:
            break
        place = f"constraints[{i}].{constraint.kind}"
        for p in constraint.problems(by_name):
            found.append(Problem(f"{place}.{p.where}" if p.where else place, p.what, p.got, p.remedy, p.severity))
    if len(found) <= MOST_PROBLEMS:
        found += effect_problems(effects, latent, by_name)
    if not any(p.severity == "error" for p in found):
        found += _together(features, by_name, constraints, effects, latent)
    return found[:MOST_PROBLEMS] if any(p.severity == "error" for p in found) else found


def _together(
    features: Sequence[Feature],
    by_name: Mapping[str, Feature],
    constraints: Sequence[Constraint],
    effects: Sequence[Effect],
    latent: Sequence[Latent],
) -> list[Problem]:
    """What shows only once every piece is sound by itself."""
    found: list[Problem] = []
    labels: dict[str, int] = {}
    seen: dict[str, int] = {}
    bound = [c.bind(by_name) for c in constraints]
    for i, constraint in enumerate(bound):
        if constraint.name:
            if constraint.name in labels:
                found.append(
                    Problem(
                        f"constraints[{i}].name",
                        f"constraint {labels[constraint.name]} has that name",
                        constraint.name,
                        "name them apart",
                    )
                )
            labels.setdefault(constraint.name, i)
        key = constraint.key
        if key in seen:
            what = f"says the same as constraint {seen[key]}"
            found.append(Problem(f"constraints[{i}].{constraint.kind}", what, constraint.label, "drop one", severity="warning"))
        seen.setdefault(key, i)
        found += _idle(constraint, i)
    linkages = [c for c in constraints if isinstance(c, DirectionalLinkage)]
    circle = link_cycle(linkages)
    if circle:
        return [*found, circle]
    policies: dict[str, str] = {}
    for i, link in ((i, c) for i, c in enumerate(constraints) if isinstance(c, DirectionalLinkage)):
        for target in link.targets:
            if policies.setdefault(target, link.on_exceed) != link.on_exceed:
                found.append(
                    Problem(
                        f"constraints[{i}].directional_linkage.on_exceed",
                        f"another linkage on {target} says {policies[target]}",
                        link.on_exceed,
                        "use one policy for a target",
                    )
                )
    for part in partition(features, bound, effects, latent):
        found += part.too_large() or _untold(part)
    return found


def _untold(part: Part) -> list[Problem]:
    """A real target with an action of its own that a constraint reads: its change does not tell the action."""
    return [
        Problem(
            f"features.{f.name}",
            "is moved by an inequality linkage and its own action is read by a constraint, so that its change does not tell the action",
            f.name,
            "make it not actionable, or the linkage an equality",
        )
        for f in part.features
        if part.split(f.name) == "guess" and not f.discrete
    ]


def _idle(constraint: Constraint, i: int) -> list[Problem]:
    """Conditions that can never hold, or always do."""
    watched: list[tuple[str, Expression]] = []
    if isinstance(constraint, IfThen) and constraint.on == "value":
        watched = [("if", constraint.bound[0])]
    elif isinstance(constraint, Switch):
        watched = [("when", constraint.bound)]
    elif isinstance(constraint, Rule):
        watched = [("expression", constraint.bound)]
    bounds: dict[Var, tuple[float, float]] = {}
    for name, f in constraint.declared.items():
        bounds["value", name] = bounds["before", name] = f.range
        bounds["action", name] = (f.range[0] - f.range[1], f.range[1] - f.range[0])
    found = []
    for key, expression in watched:
        low, high = expression.range(bounds)
        if low == high:
            how = "always holds" if low else "can never hold"
            found.append(
                Problem(
                    f"constraints[{i}].{constraint.kind}.{key}",
                    f"the condition {how}",
                    expression.text,
                    "check the bounds",
                    severity="warning",
                )
            )
    return found
