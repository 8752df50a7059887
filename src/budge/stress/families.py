"""Families of interaction models: named ones, a grid over numbers in the spec, or constraints switched on and off."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any, Literal

from budge.errors import BudgeError, DesignError, InputError, nearest
from budge.interaction import InteractionModel

__all__ = ["Family", "as_family", "grid", "toggles"]

MOST_MEMBERS = 1000


@dataclass(frozen=True)
class Family(Mapping[str, InteractionModel]):
    """Interaction models by name; on a grid, also the setting of each along every axis."""

    members: Mapping[str, InteractionModel]
    axes: tuple[str, ...] = ()
    settings: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> InteractionModel:
        return self.members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)


def as_family(family: Any) -> Family:
    """The caller's family; an empty one is refused."""
    if isinstance(family, Family):
        found = family
    elif isinstance(family, InteractionModel):
        raise InputError(
            "one interaction model is no family", where="family", remedy="give {'name': model, ...}, grid(...) or toggles(...)"
        )
    elif isinstance(family, Mapping):
        found = Family({str(name): model for name, model in family.items()})
    elif isinstance(family, Sequence) and not isinstance(family, str):
        found = Family({getattr(m, "name", "") or f"member {k}": m for k, m in enumerate(family, start=1)})
        if len(found) < len(family):
            raise InputError("two members have the same name", where="family", remedy="give a mapping of names to models")
    else:
        raise InputError("a family maps names to interaction models", where="family", got=type(family).__name__)
    if not len(found):
        raise DesignError(
            "an empty family: there is nothing to test", where="family", got=family, remedy="give at least one member"
        )
    strange = [
        name for name, m in found.items() if not isinstance(m, InteractionModel) and not callable(getattr(m, "draw", None))
    ]
    if strange:
        raise InputError("is not an interaction model", where=f"family[{strange[0]!r}]", got=type(found[strange[0]]).__name__)
    return found


def grid(im: InteractionModel, axes: Mapping[str, Sequence[Any]]) -> Family:
    """Every combination of values at some places of the spec.

    Parameters
    ----------
    im
        The interaction model to start from.
    axes
        A path into ``im.to_spec()`` for each axis, and the values to try in order. Steps are separated by dots; a constraint or
        effect is meant by its position or its name.

    Examples
    --------
    >>> import budge
    >>> im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 99), max_increase=5)])
    >>> list(grid(im, {"features.income.max_increase": [5, 10]}))
    ['features.income.max_increase=5', 'features.income.max_increase=10']
    """
    if not axes:
        raise DesignError(
            "an empty family: the grid has no axis", where="axes", got=axes, remedy="name a place in the spec and its values"
        )
    for path, values in axes.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or not len(values):
            raise DesignError("an empty family: an axis needs values", where=path, got=values, remedy="give a list of values")
    size = prod(len(values) for values in axes.values())
    if size > MOST_MEMBERS:
        raise DesignError(
            f"{size:,} members are too many", where="axes", got=size, remedy=f"at most {MOST_MEMBERS:,}: try fewer values"
        )
    spec = im.to_spec()
    for path in axes:
        _place(copy.deepcopy(spec), path)
    members, settings = {}, {}
    for values in product(*axes.values()):
        edited = copy.deepcopy(spec)
        for path, value in zip(axes, values):
            parent, key = _place(edited, path)
            parent[key] = value
        name = ", ".join(f"{path}={value}" for path, value in zip(axes, values))
        try:
            members[name] = InteractionModel.from_spec(edited)
        except BudgeError as error:
            raise error.at(f"member {name}") from error
        settings[name] = values
    return Family(members, tuple(axes), settings)


def _place(spec: Any, path: str) -> tuple[Any, Any]:
    """The container and the key that a path means; names may hold dots."""
    steps = path.split(".")
    node, at = spec, 0
    while True:
        if isinstance(node, list):
            keys = {str(k): k for k in range(len(node))} | {name: k for k, item in enumerate(node) if (name := _name(item))}
        elif isinstance(node, dict):
            keys = {str(k): k for k in node}
        else:
            raise InputError("the path leads into a plain value", where=path, got=node)
        step, used = next(((k, end - at) for end in range(len(steps), at, -1) if (k := ".".join(steps[at:end])) in keys), ("", 0))
        if not used and isinstance(node, dict) and at == len(steps) - 1 and at > 1:
            return node, steps[at]  # a key that the spec leaves at its default; the spec's own check judges it
        if not used:
            raise InputError("no such place in the spec", where=path, got=".".join(steps[at:]), remedy=nearest(steps[at], keys))
        if at + used == len(steps):
            return node, keys[step]
        node, at = node[keys[step]], at + used
        if (
            isinstance(node, dict)
            and len(node) == 1
            and isinstance(inner := next(iter(node.values())), dict)
            and at < len(steps)
            and steps[at] not in node
        ):
            node = inner  # {linear: {...}}: the kind may be left out


def _name(item: Any) -> str | None:
    if not isinstance(item, dict):
        return None
    inner = next(iter(item.values())) if len(item) == 1 else item
    return str(inner["name"]) if isinstance(inner, dict) and inner.get("name") else None


def toggles(im: InteractionModel, constraints: Sequence[Any], *, how: Literal["all", "one"] = "all") -> Family:
    """Constraints on or off: every combination, or (``how="one"``) all on and then each one off by itself.

    Examples
    --------
    >>> import budge
    >>> im = budge.InteractionModel([budge.Feature("a", "binary"), budge.Feature("b", "binary")],
    ...     [budge.constraints.OneHot(("a", "b"), name="one"), budge.constraints.IfThen("a == 1", "b == 0", name="rule")])
    >>> list(toggles(im, ["one", "rule"]))
    ['all on', 'without rule', 'without one', 'without one, rule']
    """
    if isinstance(constraints, str) or not len(constraints):
        raise DesignError(
            "an empty family: no constraint to switch", where="constraints", got=constraints, remedy="name at least one"
        )
    if how not in ("all", "one"):
        raise DesignError("must be all or one", where="how", got=how)
    found = [im.find(c) for c in constraints]
    names = [c.name or c.label for c in found]
    if len({id(c) for c in found}) < len(found):
        raise InputError("a constraint is named twice", where="constraints", got=names)
    if how == "all" and 2 ** len(found) > MOST_MEMBERS:
        raise DesignError(f"{2 ** len(found):,} members are too many", where="constraints", got=names, remedy="use how='one'")
    every = list(product(("on", "off"), repeat=len(found)))
    chosen = every if how == "all" else [s for s in every if s.count("off") <= 1]
    members, settings = {}, {}
    for setting in chosen:
        off = [k for k, word in enumerate(setting) if word == "off"]
        model = im
        for k in off:
            model = model.without(found[k] if found[k] in model.constraints else names[k])
        name = "without " + ", ".join(names[k] for k in off) if off else "all on"
        members[name], settings[name] = model, setting
    return Family(members, tuple(names), settings)
