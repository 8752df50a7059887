"""A first spec from data: what the table shows, as suggestions that a person confirms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from budge.errors import DataError, nearest, printable
from budge.features import Feature
from budge.files import write_whole
from budge.frames import table
from budge.interaction import InteractionModel
from budge.spec.columns import Column, read_column
from budge.spec.files import ending
from budge.spec.groups import Finding, find_groups
from budge.spec.reading import model_from
from budge.spec.relations import find_implications, find_linear
from budge.spec.writing import to_text, yaml_entry, yaml_scalar

__all__ = ["Suggestion", "suggest"]

MOST_NUMBERS = 200  # columns among which linear relations are looked for


@dataclass(frozen=True)
class Suggestion:
    """Features as they seem to be, remarks on them, and joint constraints that hold in every row."""

    features: tuple[Feature, ...]
    findings: tuple[Finding, ...]
    rows: int
    remarks: Mapping[str, str] = field(default_factory=dict)
    left_off: int = 0  #: implications that were found beyond those listed
    name: str = ""

    def model(self, confirm: Literal["encodings", "all", "none"] | Iterable[int] = "encodings") -> InteractionModel:
        """The model with the suggested features and the findings confirmed: groups of dummies, all, none, or by position."""
        chosen = set(range(len(self.findings))) if isinstance(confirm, str) else set(confirm)
        binary = {f.name for f in self.features if f.type == "binary"}
        kept = []
        for i, finding in enumerate(self.findings):
            if i not in chosen or confirm == "none" or (confirm == "encodings" and not finding.encoding):
                continue
            ((_, body),) = finding.spec.items()
            if not isinstance(confirm, str) or not finding.encoding or binary.issuperset(body["features"]):
                kept.append(dict(finding.spec))
        return model_from(
            {"budge": 1, "name": self.name, "features": {f.name: f.to_spec() for f in self.features}, "constraints": kept}
        )

    def to_text(self) -> str:
        """The spec as YAML; joint constraints stand in comments, each with the rows it was seen in."""
        lines = [
            f"# A first spec, suggested from {self.rows} rows. Types and bounds are what was seen, not what is possible.",
            "# Go through every feature: what nobody can change gets actionable: false; what can only rise, direction: increase.",
            "budge: 1",
        ]
        lines += [f"name: {yaml_scalar(self.name)}"] if self.name else []
        lines.append("features:")
        width = min(max(len(yaml_scalar(f.name)) for f in self.features), 30) + 1
        for f in self.features:
            remark = self.remarks.get(f.name, "")
            lines.append(
                yaml_entry(f"  {yaml_scalar(f.name) + ':':<{width}} ", f.to_spec())
                + (f"  # {printable(remark)}" if remark else "")
            )
        if self.findings:
            lines += ["", "# Each of these holds in the data. Confirm one by taking away its #.", "constraints:"]
            for finding in self.findings:
                ((kind, body),) = finding.spec.items()
                remark = f"; {finding.remark}" if finding.remark else ""
                lines.append(f"  # {finding.seen}{printable(remark)}")
                lines += ["  # " + line[2:] for line in yaml_entry(f"  - {kind}: ", body).splitlines()]
            if self.left_off:
                lines.append(f"  # and {self.left_off} more implications, which are likelier to hold by chance")
        return "\n".join(lines) + "\n"

    def write(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the suggestion; comments need YAML, the other formats get the features alone."""
        path = Path(path)
        kind = ending(path)
        text = self.to_text() if kind == "yaml" else to_text(self.model("none"), "json" if kind == "json" else "toml")
        return write_whole(path, text, overwrite=overwrite)

    def to_dict(self) -> dict[str, Any]:
        """The record of the suggestion, for ``--json``."""
        return {
            "rows": self.rows,
            "features": {f.name: f.to_spec() for f in self.features},
            "remarks": dict(self.remarks),
            "suggestions": [f.to_dict() for f in self.findings],
            "left_off": self.left_off,
        }


def suggest(X: Any, *, target: str | Iterable[str] = (), name: str = "") -> Suggestion:
    """Suggest a spec for a table; columns in `target` are left out.

    Examples
    --------
    >>> import pandas as pd
    >>> found = suggest(pd.DataFrame({"age": [20, 31, 64], "home_rent": [1, 0, 0], "home_own": [0, 1, 1]}))
    >>> [f.type for f in found.features], [(f.kind, f.support) for f in found.findings]
    (['integer', 'binary', 'binary'], [('one_hot', 3)])
    >>> found.model().constraints[0].features
    ('home_rent', 'home_own')
    """
    frame = table(X)
    left_out = [target] if isinstance(target, str) else list(target)
    strange = [t for t in left_out if t not in frame.columns]
    if strange:
        raise DataError("no such column", where="target", got=strange[0], remedy=nearest(strange[0], map(str, frame.columns)))
    odd = [label for label in frame.columns if not isinstance(label, str) or not label.strip()]
    if odd:
        raise DataError("a column needs a name that is a text", got=odd[0], remedy="rename it: X.columns = X.columns.map(str)")
    columns = {label: read_column(label, frame[label]) for label in frame.columns if label not in left_out}
    if not columns:
        raise DataError("no column is left", where="target", got=left_out)
    findings, left_off = _findings(columns, {n: frame[n] for n, c in columns.items() if c.feature.type == "category"})
    return Suggestion(
        features=tuple(c.feature for c in columns.values()),
        findings=tuple(findings),
        rows=len(frame),
        remarks={label: c.remark for label, c in columns.items() if c.remark},
        left_off=left_off,
        name=name,
    )


def _findings(columns: Mapping[str, Column], categories: Mapping[str, Any]) -> tuple[list[Finding], int]:
    dummies = {n: c.values for n, c in columns.items() if c.zero_one}
    groups = [_remarked(f, columns) for f in find_groups(dummies)]
    counts = {n: c.values for n, c in columns.items() if c.feature.type in ("integer", "real") and not c.zero_one}
    members = [set(next(iter(f.spec.values()))["features"]) for f in groups]
    implied, left_off = find_implications(dummies, counts, categories, members)
    numbers = {n: np.asarray(v) for n, v in list(counts.items())[:MOST_NUMBERS]}
    return [*groups, *implied, *find_linear(numbers)], left_off


def _remarked(finding: Finding, columns: Mapping[str, Column]) -> Finding:
    """A group of dummies that are not all declared binary says so."""
    ((_, body),) = finding.spec.items()
    loose = [n for n in body["features"] if columns[n].feature.type != "binary"]
    if not loose:
        return finding
    remark = "; ".join(r for r in (finding.remark, f"declare {', '.join(loose)} binary first") if r)
    return Finding(finding.kind, finding.spec, finding.support, finding.rows, remark, finding.encoding)
