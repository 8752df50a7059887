"""Edits of an interaction model: rules switched off, a feature's limits set; and the rules that can be switched.

An edit is a value that the page sends along with every request. So undoing one is sending the one before, two windows
cannot disturb each other, and the edited model is made from the declared one in a single step.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from budge.constraints import OneHot, Ordinal, Thermometer
from budge.errors import InputError, Problem, nearest
from budge.features import Feature
from budge.interaction import InteractionModel
from budge.wording import Wording

__all__ = ["Edits", "Rule", "controls", "model_key", "rules_of"]

NUMBERS = ("max_increase", "max_decrease", "low", "high")
FIELDS = ("actionable", "direction", *NUMBERS)
MOST_OFF = 1000
STEPS = {"max_increase": None, "max_decrease": None}


@dataclass(frozen=True)
class Rule:
    """Something that can be switched off: `id` is a kind and a position, so that an address can hold it.

    Kinds: ``c`` a constraint, ``o`` the direction of an ordered group of dummies, ``e`` an effect, ``d`` a feature's direction, ``s`` its step limits.
    `coding` rules tie dummies together: without them people are described who cannot be.
    """

    id: str
    title: str
    sentence: str
    coding: bool = False


def rules_of(im: InteractionModel, nouns: Wording | None = None) -> list[Rule]:
    """Return what can be switched off, one at a time.

    Examples
    --------
    >>> import budge
    >>> im = budge.InteractionModel([budge.Feature("years", "integer", bounds=(0, 9), direction="increase", max_increase=2)])
    >>> [(rule.id, rule.title) for rule in rules_of(im)]
    [('d0', 'years can only grow'), ('s0', 'years grows by at most 2')]
    """
    words, found = nouns or Wording(), []
    for i, c in enumerate(im.constraints):
        coding = isinstance(c, OneHot | Ordinal | Thermometer)
        name = words.feature(c.name or c.label)
        if isinstance(c, Ordinal | Thermometer) and c.direction is not None:
            found.append(Rule(f"o{i}", f"{name} can only {_way(c.direction)}", ""))
        found.append(Rule(f"c{i}", name, c.describe(), coding))
    found += [Rule(f"e{i}", e.name or f"effect on {words.feature(e.feature)}", e.describe()) for i, e in enumerate(im.effects)]
    for j, f in enumerate(im.features):
        if not f.actionable:
            continue
        name = words.feature(f.name)
        if f.direction is not None:
            stays = {"increase": "stays once it is there", "decrease": "does not come back once it is gone"}[f.direction]
            found.append(Rule(f"d{j}", f"{name} {stays if f.type == 'binary' else f'can only {_way(f.direction)}'}", ""))
        limits = [f"{verb} by at most {most:,.15g}" for verb, most in (("grows", f.max_increase), ("falls", f.max_decrease)) if most is not None]
        if limits:
            found.append(Rule(f"s{j}", f"{name} {' and '.join(limits)}", ""))
    return sorted(found, key=lambda rule: rule.coding)


def _way(direction: str) -> str:
    return "grow" if direction == "increase" else "fall"


@dataclass(frozen=True)
class Edits:
    """What differs from the declared model: rules that are off, by id, and limits of features.

    Examples
    --------
    >>> import budge
    >>> im = budge.InteractionModel([budge.Feature("a", "binary"), budge.Feature("b", "binary")], [budge.constraints.OneHot(("a", "b"))])
    >>> Edits.read({"off": ["c0"]}).of(im) == im.without(0)
    True
    >>> Edits.read({"features": {"a": {"actionable": False}}}).of(im) == im.freeze("a")
    True
    """

    off: tuple[str, ...] = ()
    features: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Edits:
        """Read what the page sends; nothing of it is trusted."""
        return cls(_ids(record.get("off")), _limits({} if record.get("features") is None else record["features"]))

    def of(self, im: InteractionModel) -> InteractionModel:
        """Return the edited model; one without edits is the model itself."""
        if not (self.off or self.features):
            return im
        known = {rule.id for rule in rules_of(im)}
        for rule in self.off:
            if rule not in known:
                raise InputError("no such rule", where="off", got=rule, remedy=f"there are {', '.join(sorted(known)[:20])}" if known else "")
        strange = [name for name in self.features if name not in im.by_name]
        if strange:
            raise InputError("no such feature", where="edits", got=strange[0], remedy=nearest(strange[0], im.by_name))
        off = set(self.off)
        lifted = [replace(c, direction=None) if f"o{i}" in off and isinstance(c, Ordinal | Thermometer) else c for i, c in enumerate(im.constraints)]
        return InteractionModel(
            [self._feature(f, j) for j, f in enumerate(im.features)],
            [c for i, c in enumerate(lifted) if f"c{i}" not in off],
            [e for i, e in enumerate(im.effects) if f"e{i}" not in off],
            im.latent, name=im.name, measure=im.measure,
        )  # fmt: skip

    def _feature(self, f: Feature, j: int) -> Feature:
        limits = {**({"direction": None} if f"d{j}" in self.off else {}), **(STEPS if f"s{j}" in self.off else {}), **self.features.get(f.name, {})}
        if limits and f.type == "fixed":
            raise InputError("a column of type fixed does not move", where=f"features.{f.name}", remedy="declare its type in the spec")
        low, high = (limits.pop(name, end) for name, end in _ends(f).items())
        if {"low": low, "high": high} != _ends(f):
            limits["bounds"] = None if low is None and high is None else (-math.inf if low is None else low, math.inf if high is None else high)
        return replace(f, **limits) if limits else f

    def describe(self, im: InteractionModel) -> list[str]:
        """Return what was edited, in words, for a document that leaves the page.

        Examples
        --------
        >>> import budge
        >>> im = budge.InteractionModel([budge.Feature("a", "integer", bounds=(0, 9), max_increase=2)])
        >>> Edits.read({"off": ["s0"], "features": {"a": {"max_increase": 5}}}).describe(im)
        ["'a grows by at most 2' off", "'a': max_increase 2 → 5"]
        """
        said = [f"{rule.title!r} off" for rule in rules_of(im) if rule.id in self.off]
        for name, limits in self.features.items():
            f = im.by_name[name]
            changed = [(key, _ends(f)[key] if key in _ends(f) else getattr(f, key), value) for key, value in limits.items()]
            said += [f"{name!r}: {key} {_word(old)} → {_word(new)}" for key, old, new in changed if old != new]
        return said


def _ends(f: Feature) -> dict[str, float | None]:
    """Return the bounds of a feature by name; None where there is none."""
    return {name: end if math.isfinite(end) else None for name, end in zip(("low", "high"), f.bounds or (math.inf, math.inf))}


def _word(limit: Any) -> str:
    return "none" if limit is None else f"{limit:g}" if _number(limit) else str(limit)


def _ids(given: Any) -> tuple[str, ...]:
    off = [] if given is None else given
    if not isinstance(off, list) or len(off) > MOST_OFF or not all(isinstance(i, str) and re.fullmatch(r"[coeds]\d{1,6}", i, re.ASCII) for i in off):
        raise InputError("is a list of rules, such as c0", where="off", got=off)
    return tuple(sorted(set(off)))


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
            elif key in NUMBERS and not (value is None or _number(value)):
                found.append(Problem(f"features.{name}.{key}", "a limit is a number", value))
            else:
                read.setdefault(str(name), {})[key] = value
    InputError.raise_if(found)
    return read


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -sys.float_info.max <= value <= sys.float_info.max


def model_key(im: InteractionModel) -> str:
    """One text for a model and its names: models with the same digest may call their constraints differently."""
    names = [im.name, *(c.label for c in im.constraints), *(e.name or "" for e in im.effects)]
    return blake2b(json.dumps([im.digest, names]).encode(), digest_size=16).hexdigest()


def controls(im: InteractionModel, nouns: Wording) -> dict[str, Any]:
    """Return what the page shows of a model and lets its reader change."""
    return {
        "rules": [{"id": r.id, "title": r.title, "sentence": r.sentence, "coding": r.coding} for r in rules_of(im, nouns)],
        "features": [
            {
                "name": f.name, "label": nouns.feature(f.name), "actionable": f.actionable, "direction": f.direction, "max_increase": f.max_increase,
                "max_decrease": f.max_decrease, **_ends(f), "ranked": f.numeric or f.ordered, "steps": f.type in ("integer", "real"),
            }
            for f in im.features if f.type != "fixed"
        ],
        "fixed": sum(f.name not in im.moving for f in im.features),
        "of": len(im.features),
    }  # fmt: skip
