"""The shape of each piece of a spec, taken from the dataclass that it becomes.

Fields and annotations of `Feature` and of every registered constraint are the one declaration: from it come the check
of a spec's structure, the messages and the JSON Schema. A kind from another package needs no edit here.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema, create_model
from pydantic_core import PydanticCustomError

from budge.constraints import Constraint
from budge.constraints import registry as kinds
from budge.features import TYPES, Feature

__all__ = [
    "ENDLESS",
    "constraint_shape",
    "effect_shape",
    "feature_shape",
    "latent_shape",
    "python_only",
    "spec_kinds",
    "takes_text",
]

ENDLESS = {"inf": float("inf"), "+inf": float("inf"), "-inf": float("-inf")}  #: for JSON, which has no infinity
_CONFIG = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not (isinstance(value, int | float) or (isinstance(value, str) and value in ENDLESS)):
        raise PydanticCustomError("number", "must be a number")
    return value


def _scalar(value: Any) -> Any:
    if not isinstance(value, str | int | float):
        raise PydanticCustomError("scalar", "must be a text, a number or a truth value")
    return value


def _draw(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise PydanticCustomError("draw", "must be an expression in quotes, or a number")
    return value


def _distribution(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping) or len(value) != 1 or not set(value) <= {"empirical", "weights"}:
        raise PydanticCustomError("distribution", "must be uniform, log, {{empirical: [...]}} or {{weights: {{level: weight}}}}")
    ((kind, body),) = value.items()
    if kind == "empirical" and not isinstance(body, list):
        raise PydanticCustomError("distribution", "empirical lists values: {{empirical: [1, 2, 2, 5]}}")
    pairs = isinstance(body, list) and all(
        isinstance(p, list) and len(p) == 2 and isinstance(p[0], str | int | float) for p in body
    )
    if kind == "weights" and not (isinstance(body, dict) or pairs):
        raise PydanticCustomError("distribution", "weights map levels to weights: {{weights: {{rent: 1, own: 3}}}}")
    return value


_ANY_NUMBER = {"anyOf": [{"type": "number"}, {"enum": list(ENDLESS)}]}
_ANY_SCALAR: dict[str, Any] = {"type": ["string", "number", "boolean"]}
Number = Annotated[Any, AfterValidator(_number), WithJsonSchema(_ANY_NUMBER)]
Scalar = Annotated[Any, AfterValidator(_scalar), WithJsonSchema(_ANY_SCALAR)]
Draw = Annotated[Any, AfterValidator(_draw), WithJsonSchema({"type": ["string", "number"]})]
Pair = Annotated[list[Number], Field(min_length=2, max_length=2)]
DistributionShape = Annotated[
    Any,
    AfterValidator(_distribution),
    WithJsonSchema(
        {
            "oneOf": [
                {"enum": ["uniform", "log"]},
                {
                    "type": "object",
                    "required": ["empirical"],
                    "additionalProperties": False,
                    "properties": {"empirical": {"type": "array", "items": _ANY_SCALAR}},
                },
                {
                    "type": "object",
                    "required": ["weights"],
                    "additionalProperties": False,
                    "properties": {
                        "weights": {
                            "anyOf": [
                                {"type": "object", "additionalProperties": {"type": "number", "minimum": 0}},
                                {
                                    "type": "array",
                                    "items": {
                                        "type": "array",
                                        "minItems": 2,
                                        "maxItems": 2,
                                        "prefixItems": [_ANY_SCALAR, {"type": "number", "minimum": 0}],
                                    },
                                },
                            ]
                        }
                    },
                },
            ]
        }
    ),
]


@cache
def feature_shape() -> type[BaseModel]:
    """What a feature's body may hold."""
    special: dict[str, Any] = {
        "type": Literal[TYPES],
        "bounds": Pair | None,
        "max_increase": Number | None,
        "max_decrease": Number | None,
        "levels": list[Scalar] | None,
        "distribution": DistributionShape | None,
    }
    return _shape(Feature, {f.name: f.name for f in fields(Feature) if f.name != "name"}, special)


@cache
def constraint_shape(kind: type[Constraint]) -> type[BaseModel]:
    """What the body of a constraint of this kind may hold."""
    return _shape(kind, kind.spec_fields(), {})


@cache
def effect_shape() -> type[BaseModel]:
    """What an effect may hold."""
    ways: dict[str, Any] = dict.fromkeys(("add", "set", "multiply"), (Draw | None, None))
    return create_model(
        "effect",
        __config__=_CONFIG,
        feature=(str, ...),
        **ways,
        clip=(Pair | None, None),
        round=(bool, False),
        name=(str | None, None),
    )


@cache
def latent_shape() -> type[BaseModel]:
    """What a latent draw that is not just a text may hold."""
    return create_model("latent", __config__=_CONFIG, draw=(str, ...), components=(list[str], []))


def _shape(cls: type, keys: Mapping[str, str], special: Mapping[str, Any]) -> type[BaseModel]:
    hints = get_type_hints(cls)
    parts: dict[str, Any] = {}
    for f in fields(cls):
        if f.name not in keys:
            continue
        annotation = special[f.name] if f.name in special else _loose(hints[f.name])
        required = (f.default is MISSING and f.default_factory is MISSING) or bool(f.metadata.get("required"))
        default = ... if required else None if f.default is MISSING else f.default
        # pydantic minds names with leading underscores and its own; the alias is what counts
        parts[f"field_{f.name}"] = (annotation, Field(default, alias=keys[f.name]))
    doc = (cls.__doc__ or "").strip().splitlines()[:1]
    return create_model(
        getattr(cls, "kind", "") or cls.__name__.lower(), __config__=_CONFIG, __doc__=doc[0] if doc else None, **parts
    )


def _loose(annotation: Any) -> Any:
    """The annotation as a spec writes it: lists for tuples, mappings with text keys; what pydantic cannot know is let through."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is tuple:
        if len(inside) == 2 and inside[1] is Ellipsis:
            return list[_loose(inside[0])]  # type: ignore[misc]
        if inside and all(i == inside[0] for i in inside):
            return Annotated[list[_loose(inside[0])], Field(min_length=len(inside), max_length=len(inside))]  # type: ignore[misc]
        return list[Any]
    if origin in (list, frozenset, set):
        return list[_loose(inside[0])] if inside else list[Any]  # type: ignore[misc]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[str, _loose(inside[1])]  # type: ignore[misc]
    if origin in (Union, types.UnionType):
        return Union[tuple(_loose(i) for i in inside)]  # noqa: UP007  (built from a list)
    if origin is Literal or annotation in (str, int, float, bool, None, type(None), Any):
        return annotation
    if isinstance(annotation, type) and issubclass(annotation, Mapping):
        return dict[str, Any]
    return Any


@cache
def python_only(kind: type[Constraint]) -> bool:
    """Whether the kind holds a function, so that no spec file can have it."""
    hints = get_type_hints(kind)
    return any(_callable(hints[name]) for name in kind.spec_fields())


def _callable(annotation: Any) -> bool:
    return (
        annotation is Callable
        or get_origin(annotation) is Callable
        or any(_callable(a) for a in get_args(annotation) if a is not annotation)
    )


@cache
def takes_text(kind: type[Constraint]) -> str | None:
    """The key that a bare text stands for: the one required field, where there is exactly one and it is a text."""
    needed = [(key, part) for part in constraint_shape(kind).model_fields.values() if part.is_required() and (key := part.alias)]
    return needed[0][0] if len(needed) == 1 and needed[0][1].annotation is str else None


def spec_kinds() -> dict[str, type[Constraint]]:
    """The kinds that a spec file may have."""
    return {name: kind for name, kind in kinds().items() if not python_only(kind)}
