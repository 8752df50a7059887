"""The JSON Schema of the spec format, made from the shapes: editors complete and check with it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from budge.spec.shapes import constraint_shape, effect_shape, feature_shape, latent_shape, spec_kinds, takes_text

__all__ = ["json_schema"]


class _Untitled(GenerateJsonSchema):
    """Without a title for every field: the key says it already."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def json_schema() -> dict[str, Any]:
    """The schema of a spec, with every kind of constraint that is known here.

    Examples
    --------
    >>> sorted(json_schema()["properties"])
    ['budge', 'constraints', 'draft', 'effects', 'features', 'latent', 'measure', 'name']
    """
    kinds = spec_kinds()
    feature = _of(feature_shape())
    feature["if"] = {"properties": {"type": {"const": "category"}}, "required": ["type"]}
    feature["then"] = {"required": ["levels"]}
    effect = _of(effect_shape())
    effect["oneOf"] = [{"required": [way]} for way in ("add", "set", "multiply")]
    definitions = {"feature": feature, "effect": effect, "latent": _of(latent_shape())}
    bodies: dict[str, Any] = {}
    for name, kind in kinds.items():
        definitions[name] = _of(constraint_shape(kind))
        link = {"$ref": f"#/$defs/{name}"}
        bodies[name] = {"anyOf": [{"type": "string"}, link]} if takes_text(kind) else link
    constraint = {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": False, "properties": bodies}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "budge spec",
        "description": "An interaction model: which features can move, under which constraints, with which downstream effects.",
        "type": "object",
        "required": ["budge", "features"],
        "additionalProperties": False,
        "properties": {
            "budge": {"const": 1, "description": "The version of the format."},
            "name": {"type": ["string", "null"]},
            "draft": {"type": ["boolean", "null"], "description": "Whether nobody has confirmed it yet."},
            "measure": {"enum": ["configuration", "volume", None]},
            "features": {
                "type": "object",
                "minProperties": 1,
                "propertyNames": {"minLength": 1},
                "additionalProperties": {"anyOf": [{"const": "fixed"}, {"$ref": "#/$defs/feature"}]},
            },
            "constraints": {"type": ["array", "null"], "items": constraint},
            "latent": {
                "type": ["object", "null"],
                "additionalProperties": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/latent"}]},
            },
            "effects": {"type": ["array", "null"], "items": {"$ref": "#/$defs/effect"}},
        },
        "$defs": definitions,
    }


def _of(shape: type[BaseModel]) -> dict[str, Any]:
    return shape.model_json_schema(by_alias=True, schema_generator=_Untitled)
