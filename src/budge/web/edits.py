"""Edits of an interaction model: constraints and effects switched off, a feature's limits set; and what can be edited.

An edit is a value that the page sends along with every request. So undoing one is sending the one before, two windows
cannot disturb each other, and the edited model is made from the declared one in a single step.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from budge.errors import InputError, Problem, nearest
from budge.features import Feature
from budge.interaction import InteractionModel

__all__ = ["Edits", "controls", "model_key"]

FIELDS = ("actionable", "direction", "max_increase", "max_decrease", "bounds")


@dataclass(frozen=True)
class Edits:
    """What differs from the declared model.

    Examples
    --------
    >>> import budge
    >>> im = budge.InteractionModel([budge.Feature("a", "binary"), budge.Feature("b", "binary")], [budge.constraints.OneHot(("a", "b"))])
    >>> Edits.read({"off": [0]}).of(im) == im.without(0)
    True
    >>> Edits.read({"features": {"a": {"actionable": False}}}).of(im) == im.freeze("a")
    True
    """

    off: tuple[int, ...] = ()
    off_effects: tuple[int, ...] = ()
    features: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Edits:
        """From what the page sends; nothing of it is trusted."""
        return cls(_places(record, "off"), _places(record, "off_effects"), _limits({} if record.get("features") is None else record["features"]))

    def of(self, im: InteractionModel) -> InteractionModel:
        """The edited model; one without edits is the model itself."""
        if not (self.off or self.off_effects or self.features):
            return im
        for what, places, there in (("constraint", self.off, im.constraints), ("effect", self.off_effects, im.effects)):
            if places and max(places) >= len(there):
                raise InputError(f"no such {what}", where="edits", got=max(places), remedy=f"there are {len(there)}")
        strange = [name for name in self.features if name not in im.by_name]
        if strange:
            raise InputError("no such feature", where="edits", got=strange[0], remedy=nearest(strange[0], im.by_name))
        return InteractionModel(
            [_set(f, self.features[f.name]) if f.name in self.features else f for f in im.features],
            [c for i, c in enumerate(im.constraints) if i not in self.off],
            [e for i, e in enumerate(im.effects) if i not in self.off_effects],
            im.latent,
            name=im.name,
            measure=im.measure,
        )

    def describe(self, im: InteractionModel) -> list[str]:
        """What was edited, in words, for a document that leaves the page.

        Examples
        --------
        >>> import budge
        >>> im = budge.InteractionModel([budge.Feature("a", "integer", bounds=(0, 9), max_increase=2)])
        >>> Edits.read({"features": {"a": {"max_increase": 5}}}).describe(im)
        ["'a': max_increase 2 → 5"]
        """
        said = [f"constraint {im.constraints[i].label!r} off" for i in self.off]
        said += [f"effect {im.effects[i].name or f'on {im.effects[i].feature}'!r} off" for i in self.off_effects]
        for name, limits in self.features.items():
            changed = [(key, getattr(im.by_name[name], key), value) for key, value in limits.items()]
            said += [f"{name!r}: {key} {_word(old)} → {_word(new)}" for key, old, new in changed if old != new]
        return said


def _word(limit: Any) -> str:
    return "none" if limit is None else f"{limit[0]:g} to {limit[1]:g}" if isinstance(limit, tuple) else f"{limit:g}" if _number(limit) else str(limit)


def _set(f: Feature, limits: Mapping[str, Any]) -> Feature:
    if f.type == "fixed":
        raise InputError("a column of type fixed does not move", where=f"features.{f.name}", remedy="declare its type in the spec")
    return replace(f, **limits)


def _places(record: Mapping[str, Any], key: str) -> tuple[int, ...]:
    given = [] if record.get(key) is None else record[key]
    if not isinstance(given, list) or not all(isinstance(i, int) and not isinstance(i, bool) and i >= 0 for i in given):
        raise InputError("is a list of positions", where=f"edits.{key}", got=given)
    return tuple(sorted(set(given)))


def _limits(given: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(given, dict):
        raise InputError("is a mapping of features to limits", where="edits.features", got=given)
    found: list[Problem] = []
    read: dict[str, dict[str, Any]] = {}
    for name, limits in given.items():
        if not isinstance(limits, dict):
            found.append(Problem(f"features.{name}", "is a mapping of limits", limits))
            continue
        for key, value in limits.items():
            if key not in FIELDS:
                found.append(Problem(f"features.{name}.{key}", "cannot be edited here", value, nearest(key, FIELDS)))
            elif key in ("max_increase", "max_decrease") and not (value is None or _number(value)):
                found.append(Problem(f"features.{name}.{key}", "a step limit is a number", value))
            elif key == "bounds" and not (value is None or (isinstance(value, list) and len(value) == 2 and all(map(_number, value)))):
                found.append(Problem(f"features.{name}.bounds", "bounds are two numbers", value))
            else:
                read.setdefault(str(name), {})[key] = tuple(value) if key == "bounds" and value is not None else value
    InputError.raise_if(found)
    return read


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -sys.float_info.max <= value <= sys.float_info.max


def model_key(im: InteractionModel) -> str:
    """One text for a model and its names: models with the same digest may call their constraints differently."""
    names = [im.name, *(c.label for c in im.constraints), *(e.name or "" for e in im.effects)]
    return blake2b(json.dumps([im.digest, names]).encode(), digest_size=16).hexdigest()


def controls(im: InteractionModel) -> dict[str, Any]:
    """What the page shows of a model and lets its reader switch."""
    part_of = {name: i for i, names in enumerate(im.partition) for name in names}
    return {
        "name": im.name,
        "measure": im.measure,
        "features": [
            {
                "name": f.name,
                "type": f.type,
                "actionable": f.actionable,
                "direction": f.direction,
                "max_increase": f.max_increase,
                "max_decrease": f.max_decrease,
                "bounds": None if f.bounds is None else [_end(b) for b in f.bounds],
                "levels": None if f.levels is None else [str(level) for level in f.levels],
                "ranked": f.numeric or f.ordered,
                "moving": f.name in im.moving,
                "part": part_of[f.name],
            }
            for f in im.features
        ],
        "constraints": [
            {"label": c.label, "kind": c.kind, "sentence": c.describe(), "scope": list(c.scope)} for c in im.constraints
        ],
        "effects": [{"label": e.name or f"effect on {e.feature}", "sentence": e.describe(), "feature": e.feature} for e in im.effects],
        "warnings": [w.to_dict() for w in im.warnings],
    }


def _end(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None
