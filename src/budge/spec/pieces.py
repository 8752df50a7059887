"""The pieces of a spec, read one by one: features, constraints, latent draws, effects, and what is wrong with each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from budge.constraints import Constraint
from budge.constraints import registry as kinds
from budge.distributions import Distribution
from budge.effects import Effect, Latent, effect_problems
from budge.errors import MOST_PROBLEMS, BudgeError, Problem, nearest
from budge.features import TYPES, Feature, look_alikes
from budge.interaction import InteractionModel
from budge.spec.shapes import (
    ENDLESS,
    constraint_shape,
    effect_shape,
    feature_shape,
    latent_shape,
    python_only,
    spec_kinds,
    takes_text,
)
from budge.spec.structure import mapping_of, shape_problems, unknown_key

__all__ = ["TOP", "VERSION", "Pieces"]

VERSION = 1
TOP = ("budge", "name", "draft", "measure", "features", "constraints", "latent", "effects")


@dataclass
class Pieces:
    """What could be read, where it stood, and what could not; lives for one call."""

    versioned: bool = False

    def __post_init__(self) -> None:
        self.found: list[Problem] = []
        self.features: list[Feature] = []
        self.constraints: dict[int, Constraint] = {}
        self.latent: list[Latent] = []
        self.effects: dict[int, Effect] = {}
        self.broken: set[str] = set()  # features that stand in for what could not be read
        self.latent_broken = False
        self.name, self.measure, self.draft = "", "configuration", False

    def model(self) -> InteractionModel:
        """The model of the pieces; raises what is wrong with their meaning."""
        return InteractionModel(
            self.features, self.constraints.values(), self.effects.values(), self.latent, name=self.name, measure=self.measure, draft=self.draft  # type: ignore[arg-type]
        )  # fmt: skip

    def read(self, tree: dict[Any, Any]) -> None:
        """Read a whole spec."""
        for key in islice(tree, MOST_PROBLEMS):
            if key not in TOP:
                self.found.append(unknown_key("", key, tree[key], TOP))
        version = tree.get("budge", None if self.versioned else VERSION)
        if "budge" not in tree and self.versioned:
            self.found.append(Problem("", "the field 'budge' is missing", remedy="begin the spec with `budge: 1`"))
        elif isinstance(version, bool) or version != VERSION:
            self.found.append(
                Problem("budge", "an unsupported version of the spec format", version, f"this budge reads version {VERSION}")
            )
        for key in ("name", "measure"):
            value = tree.get(key)
            if value is not None and not isinstance(value, str):
                self.found.append(Problem(key, "must be a text", value, "put it in quotes"))
            elif value is not None:
                setattr(self, key, value)
        if tree.get("draft") is not None:
            if not isinstance(tree["draft"], bool):
                self.found.append(Problem("draft", "must be true or false", tree["draft"]))
            self.draft = tree["draft"] is True
        if self.measure not in ("configuration", "volume"):
            hint = nearest(self.measure, ("configuration", "volume"))
            self.found.append(Problem("measure", "must be configuration or volume", self.measure, hint))
        if "features" not in tree:
            self.found.append(Problem("", "the field 'features' is missing", remedy="declare at least one feature"))
        else:
            self.read_features(tree["features"])
        self.read_constraints(tree.get("constraints"))
        self.read_latent(tree.get("latent"))
        self.read_effects(tree.get("effects"))

    def read_features(self, tree: Any) -> None:
        """Read the features; what cannot be read gets a stand-in, so that others can name it."""
        for name, body in mapping_of(tree, "features", self.found, "name: {type: ...}").items():
            if len(self.found) > MOST_PROBLEMS:
                return
            place = f"features.{name}"
            if body == "fixed":
                self.features.append(Feature(name, "fixed"))
                continue
            if not isinstance(body, dict):
                hint = f"write {{type: {body}}}" if body in TYPES else "write {type: ..., bounds: [...]}, or fixed"
                problems = [Problem(place, "a feature is a mapping, or the word fixed", body, hint)]
            else:
                problems = shape_problems(feature_shape(), body, place)
            if problems:
                self.found += problems
                self.broken.add(name)
                self.features.append(Feature(name, "real", actionable=False))
                continue
            self.features.append(Feature(name, **{key: _field(key, value) for key, value in body.items() if value is not None}))

    def read_constraints(self, tree: Any) -> None:
        """Read the list of constraints."""
        if tree is not None and not isinstance(tree, list):
            self.found.append(Problem("constraints", "must be a list: - kind: {...}", tree))
            return
        for i, item in enumerate(tree or ()):
            if len(self.found) > MOST_PROBLEMS:
                return
            place = f"constraints[{i}]"
            if not isinstance(item, dict) or len(item) != 1:
                known = [key for key in item if key in kinds()] if isinstance(item, dict) else []
                hint = f"indent what belongs to {known[0]} below it" if known else "write - one_hot: {features: [a, b]}"
                self.found.append(Problem(place, "a constraint is one kind and its fields", item, hint))
                continue
            ((kind, body),) = item.items()
            read = self.constraint(f"{place}.{kind}", kind, body)
            if read is not None:
                self.constraints[i] = read

    def constraint(self, place: str, kind: Any, body: Any) -> Constraint | None:
        """Read one constraint of any registered kind."""
        known = kinds()
        if kind not in known:
            self.found.append(Problem(place, "unknown kind of constraint", kind, nearest(kind, spec_kinds())))
            return None
        made = known[kind]
        if python_only(made):
            self.found.append(
                Problem(
                    place, f"a {kind} is Python code, and a spec never names code", remedy="write a rule, or add it in Python"
                )
            )
            return None
        text = takes_text(made)
        if text is not None and isinstance(body, str):
            body = {text: body}
        problems = shape_problems(constraint_shape(made), body, place)
        if problems:
            self.found += problems
            return None
        fields = {key: name for name, key in made.spec_fields().items()}
        try:
            return made(**{fields[key]: value for key, value in body.items() if value is not None})
        except BudgeError as error:
            self.found += error.at(place).problems
        except (TypeError, ValueError) as error:  # a kind of another package that minds its fields
            self.found.append(Problem(place, f"cannot be built: {error}", body))
        return None

    def read_latent(self, tree: Any) -> None:
        """Read the latent draws."""
        before = len(self.found)
        for name, body in mapping_of(tree, "latent", self.found, 'name: "expression"').items():
            if len(self.found) > MOST_PROBLEMS:
                break
            place = f"latent.{name}"
            if isinstance(body, dict):
                problems = shape_problems(latent_shape(), body, place)
                self.found += problems
                if not problems:
                    self.latent.append(Latent(name, **body))
            elif isinstance(body, str):
                self.latent.append(Latent(name, body))
            else:
                self.found.append(
                    Problem(place, "a latent draw is an expression, or {components: [...], draw: ...}", body, "put it in quotes")
                )
        self.latent_broken = len(self.found) > before

    def read_effects(self, tree: Any) -> None:
        """Read the list of effects."""
        if tree is not None and not isinstance(tree, list):
            self.found.append(Problem("effects", "must be a list: - {feature: ..., add: ...}", tree))
            return
        for i, body in enumerate(tree or ()):
            if len(self.found) > MOST_PROBLEMS:
                return
            problems = shape_problems(effect_shape(), body, f"effects[{i}]")
            if problems:
                self.found += problems
            else:
                self.effects[i] = Effect(**{key: _field(key, value) for key, value in body.items() if value is not None})

    def meaning(self) -> list[Problem]:
        """What is wrong with the pieces that could be read, as far as they do not hang on those that could not."""
        if len(self.found) > MOST_PROBLEMS:
            return []
        found = [p for f in self.features if f.name not in self.broken for p in f.problems()]
        found += look_alikes(f.name for f in self.features)
        by_name = {f.name: f for f in self.features}
        for i, constraint in self.constraints.items():
            place = f"constraints[{i}].{constraint.kind}"
            if len(found) > MOST_PROBLEMS:
                break
            try:
                if self.broken.isdisjoint(constraint.scope):
                    found += [replace(p, where=f"{place}.{p.where}" if p.where else place) for p in constraint.problems(by_name)]
            except BudgeError as error:
                found += error.at(place).problems
        sound = {i: e for i, e in self.effects.items() if self._stands_alone(e)}
        order = list(sound)
        for p in effect_problems(list(sound.values()), self.latent, by_name):
            head, _, tail = p.where.partition("]")
            if head.startswith("effects["):
                p = replace(p, where=f"effects[{order[int(head[8:])]}]{tail}")
            found.append(p)
        return [p for p in found if p.severity == "error"]

    def _stands_alone(self, effect: Effect) -> bool:
        try:
            parents = (
                effect.parents if any(getattr(effect, way) is not None for way in ("add", "set", "multiply")) else frozenset()
            )
        except BudgeError:
            return effect.feature not in self.broken
        names = {effect.feature, *(name for _, name in parents)}
        return self.broken.isdisjoint(names) and not (self.latent_broken and any(layer == "latent" for layer, _ in parents))


def _field(key: str, value: Any) -> Any:
    """A field of a feature or an effect as its class takes it."""
    if key in ("bounds", "clip"):
        return tuple(ENDLESS.get(v, v) if isinstance(v, str) else v for v in value)
    if key in ("max_increase", "max_decrease"):
        return ENDLESS.get(value, value) if isinstance(value, str) else value
    if key == "distribution":
        if isinstance(value, dict) and isinstance(
            value.get("weights"), list
        ):  # pairs: for levels that are no texts, where keys must be
            value = {"weights": dict(value["weights"])}
        return Distribution.from_spec(value)
    if key in ("add", "set", "multiply") and not isinstance(value, str):
        return repr(value)
    return tuple(value) if isinstance(value, list) else value
