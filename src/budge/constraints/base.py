"""What every constraint has in common.

A constraint is one file: a frozen dataclass whose fields are its schema, and a handful of hooks. `mask` is the
definition; the listing (`configurations`) and the solver's rows (`rows`) are other forms of the same set and are
compared with it over the whole registry. A new kind needs no edit elsewhere.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from budge.errors import MOST_PROBLEMS, Problem, nearest
from budge.expressions import Formula, Linear, Row, Var, common_denominator, fraction
from budge.features import Feature

__all__ = [
    "HIDDEN",
    "BoolArray",
    "Configurations",
    "Constraint",
    "Example",
    "FloatArray",
    "Relation",
    "Values",
    "total",
    "undeclared",
]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Values = Mapping[str, FloatArray]  #: one array a feature; shapes broadcast against each other
Relation = Literal["==", "<=", ">="]
HIDDEN: Mapping[str, Any] = MappingProxyType({"spec": False})  #: metadata of a field that no spec file has


@dataclass(frozen=True)
class Configurations:
    """The finite list of joint values that a constraint allows from x."""

    names: tuple[str, ...]
    values: FloatArray  # one row a configuration, one column a name: values reached, not moves


@dataclass(frozen=True)
class Example:
    """One case of a constraint: the features it needs, a start, an action, and whether it holds."""

    constraint: Constraint
    features: tuple[Feature, ...]
    x: Mapping[str, float]
    action: Mapping[str, float]
    holds: bool
    change: Mapping[str, float] | None = None  # the action itself unless a linkage adds to it


@dataclass(frozen=True)
class Constraint(ABC):
    """A joint constraint on actions and the values they reach.

    Subclasses set `kind` and give `scope` and `mask`; the other hooks have defaults.
    """

    kind: ClassVar[str] = ""
    aliases: ClassVar[Mapping[str, str]] = MappingProxyType({})  #: field name → key in a spec file, where they differ

    name: str | None = field(default=None, kw_only=True)
    declared: Mapping[str, Feature] = field(default_factory=dict, kw_only=True, repr=False, compare=False, metadata=HIDDEN)

    @property
    @abstractmethod
    def scope(self) -> tuple[str, ...]:
        """The names of the features that it couples."""

    @abstractmethod
    def mask(self, x: Values, action: Values, change: Values) -> BoolArray:
        """Whether each candidate satisfies it: the definition, vectorised.

        `x` is the start, `action` the own action, `change` the action plus what
        linkages induce; so `x + change` is the value reached. Arrays broadcast.
        """

    @abstractmethod
    def describe(self) -> str:
        """One English sentence."""

    @classmethod
    @abstractmethod
    def examples(cls) -> tuple[Example, ...]:
        """Cases that show what it means, with at least one that violates it."""

    @property
    def reads(self) -> frozenset[Var]:
        """What it reads, as (layer, name) with layer ``value`` or ``action``; by default the values reached."""
        return frozenset(("value", name) for name in self.scope)

    def problems(self, features: Mapping[str, Feature]) -> list[Problem]:
        """Everything that does not fit the declared features; places are relative to the constraint."""
        return undeclared(self.scope, features)

    def configurations(self, x: Mapping[str, float]) -> Configurations | None:
        """The list of joint values it allows from x, where it is a short one."""
        return None

    def rows(self, x: Mapping[str, float], known: Mapping[Var, FloatArray | float] | None = None) -> Formula | None:
        """The same set as linear rows, guarded where it is conditional; None where it is not linear.

        `known` holds what is decided already: an expression that is not linear may become so.
        """
        return None

    def bind(self, features: Mapping[str, Feature]) -> Self:
        """A copy that knows the features of its scope (levels, moves)."""
        return replace(self, declared={name: features[name] for name in self.scope if name in features})

    @property
    def levels(self) -> dict[str, tuple[Any, ...]]:
        """The levels of the categories in its scope."""
        return {name: f.levels for name, f in self.declared.items() if f.levels is not None}

    @property
    def integers(self) -> frozenset[Var]:
        """The variables over its scope that are whole numbers."""
        layers = ("value", "before", "action", "change")
        return frozenset((layer, name) for name, f in self.declared.items() if f.discrete for layer in layers)

    def counts(self, names: Iterable[str]) -> bool:
        """Return whether all these features are declared as whole numbers."""
        return all(name in self.declared and self.declared[name].discrete for name in names)

    @property
    def label(self) -> str:
        """How results and errors call it."""
        return self.name or f"{self.kind}({', '.join(self.scope)})"

    @classmethod
    def spec_fields(cls) -> dict[str, str]:
        """Field name → key in a spec file."""
        return {f.name: cls.aliases.get(f.name, f.name) for f in fields(cls) if f.metadata.get("spec", True)}

    def to_spec(self) -> dict[str, Any]:
        """As a spec file writes it: ``{kind: {...}}``, only what differs from the default."""
        body: dict[str, Any] = {}
        for f in fields(self):
            if not f.metadata.get("spec", True):
                continue
            value = getattr(self, f.name)
            if value == f.default and f.name != "scope":
                continue
            body[self.aliases.get(f.name, f.name)] = _plain(value)
        if "name" in body:  # a label reads best at the end
            body["name"] = body.pop("name")
        return {self.kind: body}

    @property
    def key(self) -> str:
        """What it says, without its name: two constraints with one key are twins."""
        body = {k: v for k, v in _plain({n: getattr(self, n) for n in self.spec_fields()}).items() if k != "name"}
        return f"{self.kind}:{json.dumps(body, sort_keys=True, default=str)}"


def _plain(value: Any) -> Any:
    """Tuples as lists, mappings as dicts, numbers as Python's own: what JSON and YAML hold."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "text"):
        return value.text
    return value


def undeclared(names: tuple[str, ...], features: Mapping[str, Feature], where: str = "") -> list[Problem]:
    """A problem for every name that no feature has, and for every name given twice."""
    strange = [name for name in names if name not in features][:MOST_PROBLEMS]
    found = [Problem(where, "names a feature that is not declared", name, nearest(name, features)) for name in strange]
    twice = sorted(name for name, times in Counter(names).items() if times > 1) if len(set(names)) < len(names) else []
    found += [Problem(where, "names a feature twice", name, "name it once") for name in twice]
    return found


def not_binary(names: tuple[str, ...], features: Mapping[str, Feature], where: str, kind: str) -> list[Problem]:
    """A problem for every dummy that is not declared binary."""
    return [
        Problem(where, f"{kind} needs binary features", f"{name}: {features[name].type}", "declare it binary")
        for name in names
        if name in features and features[name].type != "binary"
    ]


def own_direction(names: tuple[str, ...], features: Mapping[str, Feature], where: str) -> list[Problem]:
    """A problem for every dummy that has a direction of its own: moving up a level switches another dummy off."""
    return [
        Problem(
            where,
            "a direction on a single dummy of a group",
            f"{name}: {features[name].direction}",
            "the direction belongs to the group",
        )
        for name in names
        if name in features and features[name].direction is not None
    ]


def reached(x: Values, change: Values, name: str) -> FloatArray:
    """The value reached, before any stochastic effect."""
    return np.asarray(np.asarray(x[name], dtype=float) + np.asarray(change[name], dtype=float))


def total(coefficients: Mapping[Var, float], relation: str, constant: float = 0.0, *, whole: bool = False) -> Row:
    """Return the row ``Σ coefficient · variable  relation  constant``; `whole`: all of them are whole numbers."""
    return Row(Linear(dict(coefficients), -float(constant)), relation, whole=whole)


def made_whole(coefficients: Mapping[str, float], constant: float = 0.0) -> tuple[dict[str, float], float] | None:
    """Return coefficients and constant times the least number that makes them whole; None where one counts as real.

    Examples
    --------
    >>> made_whole({"cents": 0.01}, 100000)
    ({'cents': 1.0}, 10000000.0)
    """
    scale = common_denominator((*map(float, coefficients.values()), float(constant)))
    if scale is None:
        return None
    exact = {name: fraction(float(value)) for name, value in (*coefficients.items(), ("", constant))}
    whole = {name: float(value * scale) for name, value in exact.items() if value is not None}
    return {name: whole[name] for name in coefficients}, whole[""]


def frozen(value: Any) -> Any:
    """Lists as tuples, all the way down."""
    return tuple(frozen(v) for v in value) if isinstance(value, list | tuple | np.ndarray) else value
