"""From a spec to an interaction model: every problem of structure and of meaning in one error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

from budge.errors import MOST_PROBLEMS, Problem, SpecError
from budge.features import Feature
from budge.interaction import InteractionModel
from budge.spec.document import Document, plain_tree
from budge.spec.files import ending, read_text
from budge.spec.json_text import parse_json
from budge.spec.limits import count_problems
from budge.spec.pieces import Pieces
from budge.spec.toml_text import parse_toml
from budge.spec.yaml_text import parse_yaml

__all__ = ["features_from", "model_from", "parse", "read_model"]

_PARSERS = {"yaml": parse_yaml, "json": parse_json, "toml": parse_toml}


def read_model(path: str | Path) -> InteractionModel:
    """Read a spec file: YAML, JSON or TOML by its ending.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("loan.yaml").write_text("budge: 1\\nfeatures:\\n  age: {type: integer, bounds: [18, 100]}\\n")
    >>> read_model("loan.yaml").partition
    (('age',),)
    """
    path = Path(path)
    kind = ending(path)
    return parse(read_text(path), cast(Literal["yaml", "json", "toml"], kind), name=path.name)


def parse(text: str, kind: Literal["yaml", "json", "toml"], *, name: str = "spec") -> InteractionModel:
    """The model in a text of one of the three formats; `name` stands before the line in each problem."""
    return _model(_PARSERS[kind](text, name))


def model_from(spec: Mapping[str, Any]) -> InteractionModel:
    """Build from the mapping that a spec file holds; all problems are raised at once.

    Examples
    --------
    >>> model_from({"budge": 1, "features": {"age": {"type": "integer", "bounds": [9, 1]}}})
    Traceback (most recent call last):
    ...
    budge.errors.SpecError: features.age.bounds: the lower bound is above the upper (got [9, 1]); write [1, 9]
    """
    return _model(Document(spec))


def features_from(spec: Mapping[str, Any]) -> tuple[Feature, ...]:
    """The features of a mapping from name to what a spec file says of it; problems of structure are raised at once."""
    found: list[Problem] = []
    given = {name: body.but(name=name) if isinstance(body, Feature) else None for name, body in spec.items()}
    plain = plain_tree({name: body for name, body in spec.items() if given[name] is None}, found, ("features",))
    pieces = Pieces()
    pieces.read_features(plain)
    SpecError.raise_if([*found, *pieces.found])
    read = {f.name: f for f in pieces.features}
    return tuple(given[name] or read[name] for name in spec)


def _model(document: Document) -> InteractionModel:
    found: list[Problem] = []
    found += count_problems(document.tree)
    if found:
        raise document.error(found[:MOST_PROBLEMS])
    document = replace(document, tree=plain_tree(document.tree, found))
    tree = document.tree
    if found:
        raise document.error(found[:MOST_PROBLEMS])
    if not isinstance(tree, dict):
        raise document.error([Problem("", "a spec is a mapping that begins with `budge: 1`", tree)])
    pieces = Pieces(document.name != "")
    pieces.read(tree)
    if pieces.found:
        raise document.error([*pieces.found, *pieces.meaning()][:MOST_PROBLEMS])
    try:
        return pieces.model()
    except SpecError as error:
        raise document.error(error.problems) from None
