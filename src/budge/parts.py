"""A part: features that must move together, and what decides whether they may.

Parts are the connected components of the features under "shares a constraint or an effect". Each is drawn and
enumerated by itself. The question "is this change feasible?" is answered here and nowhere else: the enumerator,
the sampler and the solver are compared with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.constraints import Constraint, DirectionalLinkage
from budge.constraints.links import follows, induced
from budge.effects import Effect, Latent
from budge.errors import Problem, TooLargeError
from budge.expressions.tolerance import equal, is_whole_number, less_equal, round_down, round_up
from budge.features import Feature

__all__ = ["PART_CONDITIONS", "PART_NAMES", "PART_RULES", "PART_SHARED", "Part", "link_order", "partition"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
PART_RULES = 2000  #: constraints and linkages that couple one part
PART_NAMES = 4000  #: features that these name, all together
PART_SHARED = 800  #: of these, names in constraints of more than three features, each time but its first
PART_CONDITIONS = 500  #: constraints over continuous features of one part that are no plain rows: conditions, functions, products
MOST_GUESSES = 4096  # own actions that may be tried for one change


@dataclass(frozen=True)
class Part:
    """Some features with the constraints and effects over them.

    `constraints` are all but directional linkages; `links` holds these by target.
    """

    features: tuple[Feature, ...]
    constraints: tuple[Constraint, ...] = ()
    links: Mapping[str, tuple[DirectionalLinkage, ...]] = None  # type: ignore[assignment]
    effects: tuple[Effect, ...] = ()
    latent: tuple[Latent, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "links", dict(self.links or {}))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The features' names."""
        return tuple(f.name for f in self.features)

    @property
    def active(self) -> bool:
        """Whether anything in it can change: it has an actionable feature or an effect."""
        return any(f.actionable for f in self.features) or bool(self.effects)

    @cached_property
    def by_name(self) -> dict[str, Feature]:
        """The features by name."""
        return {f.name: f for f in self.features}

    @cached_property
    def linkages(self) -> tuple[DirectionalLinkage, ...]:
        """The directional linkages, each once."""
        seen: dict[int, DirectionalLinkage] = {}
        for links in self.links.values():
            for link in links:
                seen[id(link)] = link
        return tuple(seen.values())

    def too_large(self) -> list[Problem]:
        """Return a problem for each limit that the part passes: what couples more is neither drawn nor proved in a time that can be stated."""
        rules = [*self.constraints, *self.linkages]
        wide = [name for c in rules if len(c.scope) > 3 for name in c.scope]
        counts = (
            ("constraints", PART_RULES, len(rules)),
            ("names in its constraints", PART_NAMES, sum(len(c.scope) for c in rules)),
            ("names in its constraints of more than three features that another one of them names, too", PART_SHARED, len(wide) - len(set(wide))),
        )
        shown = ", ".join(self.names[:3]) + (f" and {len(self.names) - 3:,} more" if len(self.names) > 3 else "")
        return [
            Problem("constraints", f"a part, here {shown}, has at most {most:,} {what}", got, "couple fewer features, or drop constraints that others imply")
            for what, most, got in counts
            if got > most
        ]

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The names, linkage sources before their targets, otherwise by name: whoever declares them."""
        return link_order(sorted(self.names), self.links)

    @cached_property
    def own_read(self) -> frozenset[str]:
        """Features whose own action somebody reads, apart from its limits."""
        readers = [v for c in self.constraints for v in c.reads] + [v for link in self.linkages for v in link.reads]
        return frozenset(name for layer, name in readers if layer == "action")

    def adds_up(self, name: str) -> bool:
        """Return whether a linked target's change is its own action plus a form in its sources' own actions, which nothing stops."""
        return all(link.relation == "==" and link.on_exceed != "clip" for link in self.links[name])

    def split(self, name: str) -> str:
        """How a feature's change and own action hang together.

        ``same``: the change is the action. ``exact``: the action follows from the change. ``open``: nobody reads
        the action, any that fits will do. ``guess``: somebody reads it and the change alone does not tell.
        """
        links = self.links.get(name, ())
        if not links:
            return "same"
        if not self.by_name[name].actionable or self.adds_up(name):
            return "exact"
        return "guess" if name in self.own_read else "open"

    def holds(self, x: Mapping[str, Any], action: Mapping[str, FloatArray], change: Mapping[str, FloatArray]) -> BoolArray:
        """Whether action and change fit the features, the linkages and every constraint."""
        good: BoolArray = np.array(True)
        for feature in self.features:
            name = feature.name
            own = np.asarray(action[name], dtype=float)
            low, high = feature.moves(x[name])
            whole = feature.discrete
            good = good & less_equal(low, own, whole=whole) & less_equal(own, high, whole=whole)
            if whole:
                good = good & is_whole_number(own) & is_whole_number(change[name])
            if name in self.links:
                good = good & follows(feature, self.links[name], x, action, change)
            else:
                good = good & equal(own, change[name], whole=whole)
        for constraint in self.constraints:
            good = good & constraint.mask(x, action, change)
        return np.asarray(good)

    def feasible(self, x: Mapping[str, Any], change: Mapping[str, FloatArray]) -> BoolArray:
        """Whether some action leads to each change: the definition of the action set."""
        spans = self.guesses(x)
        if not spans:
            return self.holds(x, self.own_actions(x, change), change)
        good = np.zeros(np.broadcast_shapes(*(np.shape(c) for c in change.values())), dtype=bool)
        for guess in product(*spans.values()):
            good |= self.holds(x, self.own_actions(x, change, dict(zip(spans, guess))), change)
        return good

    def guesses(self, x: Mapping[str, Any]) -> dict[str, FloatArray]:
        """Return the own actions to be tried for each feature whose own action is read and not told by its change."""
        spans = {}
        for name in (name for name in self.order if self.split(name) == "guess"):
            low, high = self.by_name[name].moves(x[name])
            spans[name] = np.arange(float(np.min(low)), float(np.max(high)) + 1.0)
        tries = math.prod(len(span) for span in spans.values())
        if tries > MOST_GUESSES:
            raise TooLargeError(
                "own actions cannot be told from the changes: too many would have to be tried",
                where=f"part {', '.join(self.names)}",
                got=tries,
                remedy=f"make {next(iter(spans))} not actionable, or its linkage an equality",
            )
        return spans

    def own_actions(
        self, x: Mapping[str, Any], change: Mapping[str, FloatArray], guess: Mapping[str, float | FloatArray] | None = None
    ) -> dict[str, FloatArray]:
        """The own action behind each change; where several would do, the one nearest to none."""
        action: dict[str, FloatArray] = {}
        for name in self.order:
            feature, moved = self.by_name[name], np.asarray(change[name], dtype=float)
            split = self.split(name)
            if split == "same":
                action[name] = moved
            elif not feature.actionable:
                action[name] = np.zeros_like(moved)
            elif split == "guess":
                action[name] = np.full_like(moved, (guess or {})[name])
            else:
                action[name] = self._nearest_own(feature, x, action, moved)
        return action

    def _nearest_own(
        self, feature: Feature, x: Mapping[str, Any], action: Mapping[str, FloatArray], moved: FloatArray
    ) -> FloatArray:
        low, high = self.own_interval(feature, x, action, moved)
        return np.asarray(np.minimum(np.maximum(low, np.minimum(high, 0.0)), np.maximum(high, low)))

    def own_interval(
        self, feature: Feature, x: Mapping[str, Any], action: Mapping[str, FloatArray], moved: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the lowest and the highest own action of a linked target that lead to its change, given its sources' own actions."""
        links = self.links[feature.name]
        least, most = induced(feature.name, links, x, action)
        low, high = moved - most, moved - least
        if links[0].on_exceed == "clip":  # at a bound any action that would have passed it will do
            start = np.asarray(x[feature.name], dtype=float)
            floor, ceiling = feature.reach(start)
            high = np.where(equal(start + moved, ceiling, whole=feature.discrete), np.inf, high)
            low = np.where(equal(start + moved, floor, whole=feature.discrete), -np.inf, low)
        down, up = feature.moves(x[feature.name])
        low, high = np.maximum(low, down), np.minimum(high, up)
        if feature.discrete:
            low, high = round_up(low), round_down(high)
        return low, high


def link_order(names: Sequence[str], links: Mapping[str, Sequence[DirectionalLinkage]]) -> tuple[str, ...]:
    """The names with linkage sources before their targets; raises CycleError on a cycle."""
    graph = {name: [link.source for link in links.get(name, ())] for name in names}
    return tuple(TopologicalSorter(graph).static_order())


def link_cycle(linkages: Sequence[DirectionalLinkage]) -> Problem | None:
    """The problem of linkages that run in a circle, printed."""
    graph: dict[str, list[str]] = {}
    for link in linkages:
        for target in link.targets:
            graph.setdefault(target, []).append(link.source)
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        return Problem("constraints", "linkages run in a circle", " → ".join(error.args[1]), "drop one of them")
    return None


def partition(
    features: Sequence[Feature], constraints: Sequence[Constraint], effects: Sequence[Effect], latent: Sequence[Latent]
) -> tuple[Part, ...]:
    """The parts, in the order in which their first feature is declared (Alg. 1, lines 1 to 4, by union-find)."""
    from scipy.cluster.hierarchy import DisjointSet

    by_name = {f.name: f for f in features}
    targets = {name for c in constraints if isinstance(c, DirectionalLinkage) for name in c.targets}
    groups = DisjointSet(by_name)

    def join(names: Sequence[str]) -> None:
        for other in names[1:]:
            groups.merge(names[0], other)

    for constraint in constraints:
        join(constraint.scope)
    owner = {name: shared.name for shared in latent for name in shared.names}
    sharing: dict[str, list[str]] = {}
    for effect in effects:
        scope = [effect.feature]
        for layer, name in effect.parents:
            can_move = name in by_name and (by_name[name].actionable or name in targets)
            if (
                (layer == "action" and name in by_name)
                or (layer == "value" and can_move)
                or (layer == "effect" and name in by_name)
            ):
                scope.append(name)
            elif layer == "latent" and name in owner:
                sharing.setdefault(owner[name], []).append(effect.feature)
        join(scope)
    for together in sharing.values():
        join(together)
    members: dict[str, list[Feature]] = {}
    for feature in features:
        members.setdefault(groups[feature.name], []).append(feature)
    of_group: dict[str, list[Constraint]] = {}
    linked: dict[str, list[DirectionalLinkage]] = {}
    for constraint in constraints:
        of_group.setdefault(groups[constraint.scope[0]], []).append(constraint)
        if isinstance(constraint, DirectionalLinkage):
            for name in constraint.targets:
                linked.setdefault(name, []).append(constraint)
    acts: dict[str, list[Effect]] = {}
    for effect in effects:
        acts.setdefault(groups[effect.feature], []).append(effect)
    parts = []
    for root, group in members.items():
        own = of_group.get(root, [])
        links = {f.name: tuple(linked[f.name]) for f in group if f.name in linked}
        acting = tuple(acts.get(root, ()))
        used = {owner[n] for e in acting for layer, n in e.parents if layer == "latent" and n in owner}
        parts.append(
            Part(
                features=tuple(group),
                constraints=tuple(c for c in own if not isinstance(c, DirectionalLinkage)),
                links=links,
                effects=acting,
                latent=tuple(shared for shared in latent if shared.name in used) if used else (),
            )
        )
    return tuple(parts)
