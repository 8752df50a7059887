"""Directional linkage: moving one feature moves others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from budge.constraints.base import BoolArray, Constraint, Example, FloatArray, Relation, Values, undeclared
from budge.constraints.links import follows, target_rows
from budge.errors import Problem
from budge.expressions import All, Formula, Linear, Row, Var
from budge.features import Feature

__all__ = ["DirectionalLinkage"]


@dataclass(frozen=True)
class DirectionalLinkage(Constraint):
    """The source's own action induces ``scale · action`` on each target (paper: Encoding Directional Linkage).

    Parameters
    ----------
    source
        The feature whose own action counts. What other linkages do to it does not: links do not chain.
    targets
        Scale for each target.
    relation
        ``==``: the induced change is scale · action. ``<=``: it lies between 0 and that. ``>=``: between that
        and scale times the source's furthest allowed move in the same direction.
    on_exceed
        What happens where a target would leave its bounds: ``allow`` (default), ``reject`` or ``clip``.

    Examples
    --------
    >>> import numpy as np
    >>> link = DirectionalLinkage("years", {"age": 1})
    >>> link.interval("age", {"years": 3.0, "age": 40.0}, {"years": np.array([0.0, 2.0])})
    (array([0., 2.]), array([0., 2.]))
    """

    kind: ClassVar[str] = "directional_linkage"

    source: str
    targets: Mapping[str, float]
    relation: Relation = "=="
    on_exceed: Literal["allow", "reject", "clip"] = "allow"

    @property
    def scope(self) -> tuple[str, ...]:
        return (self.source, *self.targets)

    @property
    def reads(self) -> frozenset[Var]:
        return frozenset([("action", self.source)])

    def problems(self, features: Mapping[str, Feature]) -> list[Problem]:
        found = undeclared((self.source,), features, "source") + undeclared(tuple(self.targets), features, "targets")
        if not self.targets:
            found.append(Problem("targets", "a linkage needs a target", {}))
        if self.source in self.targets:
            found.append(Problem("targets", "a feature cannot be linked to itself", self.source))
        if self.relation not in ("==", "<=", ">="):
            found.append(Problem("relation", "must be one of == <= >=", self.relation))
        if self.on_exceed not in ("allow", "reject", "clip"):
            found.append(Problem("on_exceed", "must be allow, reject or clip", self.on_exceed))
        source = features.get(self.source)
        if source is not None and not (source.numeric or (source.type == "category" and source.ordered)):
            found.append(Problem("source", f"a linkage needs a number, {self.source} is {source.type}", self.source))
        for name, scale in self.targets.items():
            where = f"targets.{name}"
            if isinstance(scale, bool) or not isinstance(scale, int | float) or not math.isfinite(scale) or scale == 0:
                found.append(Problem(where, "a scale is a finite number other than 0", scale))
                continue
            target = features.get(name)
            if target is None or source is None:
                continue
            if not target.numeric:
                found.append(Problem(where, f"a linkage needs a number, {name} is {target.type}", name))
            elif target.type == "binary" and self.on_exceed == "allow":
                found.append(Problem(where, "a binary target would leave 0 and 1", name, "set on_exceed to reject or clip"))
            elif (
                target.type in ("binary", "integer") and self.relation == "==" and (source.type == "real" or scale != int(scale))
            ):
                got = f"scale {scale} from a {source.type} source"
                found.append(Problem(where, f"would change {name} ({target.type}) by a fraction", got, "declare the target real"))
        return found

    def interval(self, target: str, x: Values, action: Values) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest change induced on one target; none where its value is missing: it stays missing."""
        moved = np.asarray(action[self.source], dtype=float)
        still = np.isnan(np.asarray(x[target], dtype=float))
        if still.any():
            moved = np.where(still, 0.0, moved)
        scale = float(self.targets[target])
        exact = scale * moved
        if self.relation == "==":
            return exact, exact
        if self.relation == "<=":
            return np.minimum(exact, 0.0), np.maximum(exact, 0.0)
        down, up = self.declared[self.source].moves(x[self.source])
        furthest = scale * np.where(moved > 0, up, np.where(moved < 0, down, 0.0))
        return np.minimum(exact, furthest), np.maximum(exact, furthest)

    def branches(self, target: str, x: Mapping[str, Any]) -> list[tuple[tuple[Row, ...], Linear, Linear]]:
        """The interval as (guards, lowest, highest), one branch for each direction of the source.

        `x` holds one start, or several from which the source may move the same ways and the same values are missing.
        """
        moved, scale = Linear({("action", self.source): 1.0}, 0.0), float(self.targets[target])
        exact, nothing = moved * scale, Linear({}, 0.0)
        if np.isnan(x[target]).all():
            return [((), nothing, nothing)]
        if self.relation == "==":
            return [((), exact, exact)]
        down, up = self.declared[self.source].moves(x[self.source])
        falls, rises = bool(np.any(down < 0)), bool(np.any(up > 0))
        if self.relation == "<=":
            ahead, other = (nothing, exact), (exact, nothing)
            found: list[tuple[tuple[Row, ...], Linear, Linear]] = []
            for guard, used in (((Row(moved, ">="),), rises or not falls), ((Row(moved, "<="),), falls)):
                if used:
                    rising = (guard[0].relation == ">=") == (scale > 0)
                    found.append((guard, *(ahead if rising else other)))
            return found if len(found) > 1 else [((), found[0][1], found[0][2])]
        stays: tuple[tuple[Row, ...], Linear, Linear] = ((Row(moved, "=="),), nothing, nothing)
        choices = [stays]
        for relation, furthest, used in ((">", up, rises), ("<", down, falls)):
            if used:
                far = Linear({}, scale * furthest)
                low, high = (exact, far) if (relation == ">") == (scale > 0) else (far, exact)
                choices.append(((Row(moved, relation),), low, high))
        return choices

    def mask(self, x: Values, action: Values, change: Values) -> BoolArray:
        good: BoolArray = np.array(True)
        for name in self.targets:
            good = good & follows(self.declared[name], (self,), x, action, change)
        return np.asarray(good)

    def rows(self, x: Mapping[str, float], known: Mapping[Var, FloatArray | float] | None = None) -> Formula | None:
        return All(tuple(target_rows(self.declared[name], (self,), x) for name in self.targets))

    def describe(self) -> str:
        how = {"==": "exactly", "<=": "at most", ">=": "at least"}[self.relation]
        parts = ", ".join(f"{name} by {how} {scale:g}" for name, scale in self.targets.items())
        tail = {"allow": "", "reject": " (within its bounds)", "clip": " (stopping at its bounds)"}[self.on_exceed]
        return f"Each unit that {self.source} moves changes {parts}{tail}."

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        features = (Feature("tweets", "integer", bounds=(0, 9)), Feature("urls", "integer", bounds=(0, 6), actionable=False))
        x = {"tweets": 2.0, "urls": 5.0}

        def case(link: DirectionalLinkage, tweets: float, urls: float, holds: bool) -> Example:
            return Example(link, features, x, {"tweets": tweets, "urls": 0.0}, holds, {"tweets": tweets, "urls": urls})

        exact, most = cls("tweets", {"urls": 1}), cls("tweets", {"urls": 1}, relation="<=")
        least = cls("tweets", {"urls": 1}, relation=">=")
        clip = cls("tweets", {"urls": 2}, on_exceed="clip")
        return (
            case(exact, 3, 3, True),
            case(exact, 3, 2, False),
            case(most, 3, 2, True),
            case(most, 3, 4, False),
            case(least, 3, 7, True),
            case(least, 3, 8, False),
            case(least, 0, 1, False),
            case(clip, 1, 1, True),
            case(clip, 1, 2, False),
            case(cls("tweets", {"urls": 1}, on_exceed="reject"), 3, 3, False),
        )
