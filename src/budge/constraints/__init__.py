"""The kinds of joint constraint, one file each, and their registry.

A third party adds a kind by an entry point in the group ``budge.constraints`` that names its class.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from budge.constraints.additive_linkage import AdditiveLinkage
from budge.constraints.base import Configurations, Constraint, Example
from budge.constraints.directional_linkage import DirectionalLinkage
from budge.constraints.if_then import IfThen
from budge.constraints.linear import LinearConstraint
from budge.constraints.one_hot import OneHot
from budge.constraints.ordinal import Ordinal
from budge.constraints.predicate import Predicate
from budge.constraints.reachability import Reachability
from budge.constraints.rule import Rule
from budge.constraints.switch import Switch
from budge.constraints.thermometer import Thermometer
from budge.errors import SpecError

__all__ = [
    "AdditiveLinkage",
    "Configurations",
    "Constraint",
    "DirectionalLinkage",
    "Example",
    "IfThen",
    "LinearConstraint",
    "OneHot",
    "Ordinal",
    "Predicate",
    "Reachability",
    "Rule",
    "Switch",
    "Thermometer",
    "registry",
]

_OWN: tuple[type[Constraint], ...] = (
    OneHot, Ordinal, Thermometer, Reachability, DirectionalLinkage, AdditiveLinkage, IfThen, Switch, LinearConstraint, Rule, Predicate,
)  # fmt: skip


@cache
def registry() -> dict[str, type[Constraint]]:
    """Every known kind: budge's own, then those that installed packages offer."""
    kinds = {kind.kind: kind for kind in _OWN}
    for entry in entry_points(group="budge.constraints"):
        offered = entry.load()
        if not (isinstance(offered, type) and issubclass(offered, Constraint) and offered.kind):
            raise SpecError(
                "is not a constraint class",
                where=f"entry point {entry.name}",
                got=offered,
                remedy="name a subclass of budge.constraints.Constraint",
            )
        if offered.kind in kinds:
            raise SpecError("a kind of that name exists", where=f"entry point {entry.name}", got=offered.kind)
        kinds[offered.kind] = offered
    return kinds
