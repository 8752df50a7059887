"""A first spec from data: what the table shows, as suggestions that a person confirms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice, product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from budge.errors import DataError, nearest, printable
from budge.features import Feature
from budge.files import write_whole
from budge.frames import table
from budge.interaction import InteractionModel
from budge.spec.columns import Column, read_column
from budge.spec.files import ending
from budge.spec.groups import MOST_PAIRED, Finding, find_groups
from budge.spec.limits import FEATURES, LONGEST_NAME, YAML_BYTES
from budge.spec.naming import is_outcome, why_fixed
from budge.spec.reading import model_from
from budge.spec.relations import find_dependencies, find_followers, find_implications, find_linear
from budge.spec.writing import to_text, yaml_entry, yaml_scalar

__all__ = ["Suggestion", "suggest"]

MOST_COMPARED = MOST_PAIRED  # columns of one kind among which relations are looked for


@dataclass(frozen=True)
class Suggestion:
    """Features as they seem to be, remarks on them, what was left out and why, and joint constraints that hold in every row: a draft."""

    features: tuple[Feature, ...]
    findings: tuple[Finding, ...]
    rows: int
    remarks: Mapping[str, str] = field(default_factory=dict)
    left_off: int = 0  #: implications that were found beyond those listed
    name: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)  #: columns that are no features, and why
    follows: Mapping[str, str] = field(default_factory=dict)  #: features that rise or fall with another one in every row, which no constraint states
    outcomes: tuple[str, ...] = ()  #: features that look like an outcome
    compared: int | None = None  #: columns of each kind among which relations were looked for, where there are more

    def model(self, confirm: Literal["encodings", "all", "none"] | Iterable[int] = "encodings") -> InteractionModel:
        """Return the draft with the suggested features and these findings: encodings and dependencies, all, none, or by position."""
        kept = [dict(finding.spec) for finding in self._kept(confirm)]
        features = {f.name: f.to_spec() for f in self.features}
        return model_from({"budge": 1, "name": self.name, "draft": True, "features": features, "constraints": kept})

    def _kept(self, confirm: Literal["encodings", "all", "none"] | Iterable[int]) -> list[Finding]:
        if not isinstance(confirm, str):
            return [self.findings[i] for i in sorted(set(confirm))]
        binary = {f.name for f in self.features if f.type == "binary"}
        wanted = [f for f in self.findings if confirm == "all" or (confirm == "encodings" and f.encoding)]
        return [f for f in wanted if f.kind == "reachability" or not f.encoding or binary.issuperset(next(iter(f.spec.values()))["features"])]

    @property
    def fixed(self) -> tuple[str, ...]:
        """The features that people cannot change by the draft, for a reason that their name gives."""
        return tuple(f.name for f in self.features if not f.actionable and f.type != "fixed")

    def to_text(self) -> str:
        """Return the spec as YAML: encodings and dependencies as constraints, other findings in comments, each with the rows it was seen in."""
        lines = [
            f"# A draft, made from {self.rows} rows. Types and bounds are what was seen, not what is possible. Go through every feature: what nobody",
            "# can change gets actionable: false; what can only rise, direction: increase. Then take out the line `draft: true`.",
            "budge: 1",
        ]
        lines += [f"name: {yaml_scalar(self.name)}"] if self.name else []
        lines.append("draft: true")
        if self.compared is not None:
            lines.append(f"# Relations were looked for among the first {self.compared} columns of a kind, and among those whose names begin alike.")
        for name, why in self.left_out.items():
            lines.append(f"# left out: {printable(name)} ({printable(why)})".replace("\n", " "))
        lines.append("features:")
        width = min(max(len(yaml_scalar(f.name)) for f in self.features), 30) + 1
        for f in self.features:
            outcome = "is this the outcome? leave it out: --outcome" if f.name in self.outcomes else ""
            remark = "; ".join(r for r in (outcome, self.remarks.get(f.name, "")) if r)
            lines.append(
                yaml_entry(f"  {yaml_scalar(f.name) + ':':<{width}} ", f.to_spec())
                + (f"  # {printable(remark)}" if remark else "")
            )
        return "\n".join(lines + self._constraints()) + "\n"

    def _constraints(self) -> list[str]:
        kept = self._kept("encodings")
        lines = ["", "# These hold in every row by the way the data is written. Take out what does not hold elsewhere.", "constraints:"] if kept else []
        for finding in kept:
            ((kind, body),) = finding.spec.items()
            lines += [_seen(finding), yaml_entry(f"  - {kind}: ", body)]
        open_ = [finding for finding in self.findings if finding not in kept]
        if open_:
            lines += ["", "# Each of these holds in the data, the likeliest first. Confirm one by taking away its #."]
            lines += [] if kept else ["constraints:"]
        for finding in open_:
            ((kind, body),) = finding.spec.items()
            lines += [_seen(finding), *("  # " + line[2:] for line in yaml_entry(f"  - {kind}: ", body).splitlines())]
        if self.left_off:
            lines.append(f"  # and {self.left_off} more implications, which are likelier to hold by chance")
        return lines

    def write(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the draft; comments need YAML, the other formats get the features, encodings and dependencies alone."""
        path = Path(path)
        kind = ending(path)
        text = self.to_text() if kind == "yaml" else to_text(self.model(), "json" if kind == "json" else "toml")
        if kind == "yaml" and len(text.encode()) > YAML_BYTES:
            what = f"the draft is larger than a YAML spec may be: {YAML_BYTES:,} bytes"
            raise DataError(what, where=str(path), got=f"{len(text.encode()):,}", remedy="leave columns out (--drop), or write .json")
        return write_whole(path, text, overwrite=overwrite)

    def to_dict(self) -> dict[str, Any]:
        """The record of the suggestion, for ``--json``."""
        return {
            "rows": self.rows,
            "features": {f.name: f.to_spec() for f in self.features},
            "remarks": dict(self.remarks),
            "suggestions": [f.to_dict() for f in self.findings],
            "left_off": self.left_off,
            "left_out": dict(self.left_out),
            "not_changeable": list(self.fixed),
            "follows": dict(self.follows),
            "outcome_like": list(self.outcomes),
            "draft": True,
        }


def _seen(finding: Finding) -> str:
    remark = f"; {finding.remark}" if finding.remark else ""
    return f"  # {finding.seen}{printable(remark)}".replace("\n", " ")


def suggest(X: Any, *, outcome: str | Iterable[str] = (), drop: str | Iterable[str] = (), name: str = "") -> Suggestion:
    """Suggest a spec for a table.

    Parameters
    ----------
    X
        A table with one person per row.
    outcome
        The column, or columns, that a model predicts: no feature.
    drop
        Further columns that are not for the model.
    name
        What the model is called.

    Examples
    --------
    >>> import pandas as pd
    >>> found = suggest(pd.DataFrame({"income": [20, 31, 64], "home_rent": [1, 0, 0], "home_own": [0, 1, 1]}))
    >>> [f.type for f in found.features], [(f.kind, f.support) for f in found.findings]
    (['integer', 'binary', 'binary'], [('one_hot', 3)])
    >>> found.model().constraints[0].features
    ('home_rent', 'home_own')
    """
    frame = table(X)
    left_out: dict[str, str] = {}
    for where, given, why in (("outcome", outcome, "the outcome"), ("drop", drop, "not for the model")):
        for label in [given] if isinstance(given, str) else list(given):
            if label not in frame.columns:
                raise DataError("no such column", where=where, got=label, remedy=nearest(label, map(str, frame.columns)))
            left_out[label] = why
    odd = [label for label in frame.columns if not isinstance(label, str) or not label.strip()]
    if odd:
        raise DataError("a column needs a name that is a text", got=odd[0], remedy="rename it: X.columns = X.columns.map(str)")
    columns = {label: read_column(label, frame[label]) for label in frame.columns if label not in left_out}
    left_out |= {label: c.remark for label, c in columns.items() if c.left_out}
    columns = {label: c for label, c in columns.items() if not c.left_out}
    if not columns:
        raise DataError("no column is left", got=list(left_out), remedy="a spec needs a column that is neither an outcome nor an identifier")
    if len(columns) > FEATURES:
        raise DataError(f"has more columns than a spec has features: {FEATURES:,}", where="X", got=f"{len(columns):,}", remedy="leave some out: --drop")
    long = next((label for label in columns if len(label) > LONGEST_NAME), None)
    if long is not None:
        raise DataError(f"the name of a column has more than {LONGEST_NAME:,} characters", where="X", got=f"{long[:40]}…", remedy="rename it, or leave it out")
    seen, left_off = _findings(columns, frame)
    findings = [f for f in seen if not f.gaps]  # as a constraint it would break the rows that lack a value
    follows = _followers(columns, seen)
    columns |= {label: replace(columns[label], remark=_following(label, *source, columns[label].remark)) for label, source in follows.items()}
    for finding in seen:
        for label in _names(finding) if finding.gaps else ():
            if columns[label].feature.missing == "fixed":
                columns[label] = replace(columns[label], remark=f"{columns[label].remark}; {_lacking(finding, label)}")
    return Suggestion(
        features=tuple(c.feature for c in columns.values()),
        findings=tuple(findings),
        rows=len(frame),
        remarks={label: c.remark for label, c in columns.items() if c.remark},
        left_off=left_off,
        name=name,
        left_out=left_out,
        compared=MOST_COMPARED if len(columns) > MOST_COMPARED else None,
        follows={label: source for label, (source, _) in follows.items()},
        outcomes=tuple(_twins(columns, frame, told) if (told := [n for n, why in left_out.items() if why == "the outcome"]) else _outcomes(columns, frame)),
    )


def _outcomes(columns: Mapping[str, Column], frame: pd.DataFrame) -> list[str]:
    """Return the columns that look like an outcome: of few values or called nothing else, with the name of one; else the last column if it has two values."""
    few = [label for label in columns if 2 <= frame[label].nunique() <= 10]
    named = [label for label in columns if is_outcome(label) and (label in few or is_outcome(label, alone=True))]
    return named or [label for label in few if label == frame.columns[-1] and frame[label].nunique() == 2 and not why_fixed(label)]


def _twins(columns: Mapping[str, Column], frame: pd.DataFrame, outcomes: Iterable[str]) -> Iterator[str]:
    """Yield the columns that are an outcome of few values in other words: each value goes with one of the outcome's, in every row."""
    few = [label for label in columns if len(frame) >= 20 and 2 <= frame[label].nunique() <= 10]
    for outcome, label in product(outcomes, few):
        pairs = frame[[outcome, label]].drop_duplicates()
        if pairs[outcome].is_unique and pairs[label].is_unique:
            yield label


def _followers(columns: Mapping[str, Column], findings: Iterable[Finding]) -> dict[str, tuple[str, str]]:
    """Return the numbers that follow from others and are not tied to them by a constraint."""
    numbers = {n: c.values for n, c in columns.items() if c.feature.type in ("integer", "real") and not c.zero_one}
    tied = [set(f.spec["reachability"]["features"]) for f in findings if f.kind == "reachability"]
    tied += [set(f.spec["linear"]["coefficients"]) for f in findings if f.kind == "linear"]
    return {n: found for n, found in find_followers(_first(numbers)).items() if not any({n, found[0]} <= group for group in tied)}


def _following(name: str, source: str, formula: str, remark: str) -> str:
    """Return the remark on a column that follows from another one, before what else is remarked."""
    how = f"is {formula}" if formula else f"rises or falls with {source}"
    made = yaml_scalar(formula) if formula else "…"
    told = f"{how} in every row: leave one of them out, or write actionable: false here, with the effect {{feature: {yaml_scalar(name)}, set: {made}}}"
    return f"{told}; {remark}" if remark else told


def _names(finding: Finding) -> list[str]:
    ((_, body),) = finding.spec.items()
    return list(body["coefficients"] if "coefficients" in body else body["features"])


def _lacking(finding: Finding, label: str) -> str:
    """Return the remark on a column with missing values about what would be suggested if there were none."""
    others = ", ".join(name for name in _names(finding) if name != label)
    return f"tied to {others} in every row that has them ({finding.kind}): no constraint states it while values are missing"


def _findings(columns: Mapping[str, Column], frame: pd.DataFrame) -> tuple[list[Finding], int]:
    """Return what holds in every row: groups of dummies, dependencies, linear relations, then implications from the least likely by chance on."""
    dummies = {n: c.values for n, c in columns.items() if c.zero_one}
    groups = [_remarked(f, columns) for f in find_groups(dummies)]
    counts = {n: c.values for n, c in columns.items() if c.feature.type in ("integer", "real") and not c.zero_one}
    categories = {n: frame[n] for n, c in columns.items() if c.feature.type == "category"}
    finite = {n: values for n, values in counts.items() if not np.isinf(values).any()}
    chosen = {**_first(categories), **_first(finite), **_first(dummies)}
    told = {n: frame[n] for n in columns if n in chosen}
    whole = {n: column for n, column in told.items() if not column.isna().any()}
    dependent = find_dependencies(whole, categories.keys())
    dependent += [f for f in find_dependencies(told, categories.keys()) if f.gaps] if len(whole) < len(told) else []
    ruled = [f for f in dependent if any(columns[n].feature.actionable for n in f.spec["reachability"]["features"])]
    listed = [set(_names(f)) for f in ruled if not f.gaps]
    groups = [f for f in groups if not any(set(_names(f)) <= group for group in listed)]  # of a category beside its dummies
    members = [set(_names(f)) for f in (*groups, *ruled)]
    still = {n for n, c in columns.items() if not c.feature.actionable}  # a rule between what nobody moves forbids nothing
    implied, left_off = find_implications(_first(dummies), _first(counts), _first(categories), [*members, still])
    numbers = {n: np.asarray(v) for n, v in _first(counts).items()}
    linear = [f for f in find_linear(numbers) if not any(set(f.spec["linear"]["coefficients"]) <= group for group in members)]
    return [*groups, *ruled, *linear, *implied], left_off


def _first(columns: dict[str, Any]) -> dict[str, Any]:
    return dict(islice(columns.items(), MOST_COMPARED))


def _remarked(finding: Finding, columns: Mapping[str, Column]) -> Finding:
    """A group of dummies that are not all declared binary says so."""
    ((_, body),) = finding.spec.items()
    loose = [n for n in body["features"] if columns[n].feature.type != "binary"]
    if not loose:
        return finding
    remark = "; ".join(r for r in (finding.remark, f"declare {', '.join(loose)} binary first") if r)
    return Finding(finding.kind, finding.spec, finding.support, finding.rows, remark, finding.encoding)
