"""Spec files ⇄ interaction models: reading, writing, JSON Schema, a first spec from data, a check against data.

A spec is one page of YAML, JSON or TOML that an auditor can read. It never names code, files or addresses. All of its
problems are reported at once, each with its place, what was got, and a remedy.
"""

from budge.spec.check import check, impossible
from budge.spec.findings import CheckReport
from budge.spec.reading import features_from, model_from, parse, read_model
from budge.spec.schema import json_schema
from budge.spec.suggest import Suggestion, suggest
from budge.spec.writing import to_text, write_model

__all__ = [
    "CheckReport",
    "Suggestion",
    "check",
    "features_from",
    "impossible",
    "json_schema",
    "model_from",
    "parse",
    "read_model",
    "suggest",
    "to_text",
    "write_model",
]
