"""What a check of a spec against a table found: in sentences, and as a record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median_low
from typing import Any

from budge.errors import Problem, in_lines

__all__ = ["EXACT_LIMIT", "Broken", "CheckReport", "Clash", "PartReport"]

EXACT_LIMIT = 10_000  #: reachable points of one person that an audit lists rather than draws


@dataclass(frozen=True)
class Broken:
    """One bound or constraint that some rows break before anybody moves."""

    label: str
    what: str
    rows: int
    examples: tuple[tuple[Any, Mapping[str, Any]], ...]  # label of the row, the values concerned

    def __str__(self) -> str:
        shown = [f"row {label}: {', '.join(f'{k} = {v}' for k, v in values.items())}" for label, values in self.examples]
        more = ["…"] if self.rows > len(shown) else []
        return f"{self.label}: {_rows(self.rows)}. {self.what} ({'; '.join(shown + more)})"


@dataclass(frozen=True)
class Clash:
    """Constraints that leave some typical rows nothing to do, not even to stay."""

    labels: tuple[str, ...]
    starts: int
    example: Any

    def __str__(self) -> str:
        return (
            f"{' and '.join(self.labels)}: no action is feasible for {_rows(self.starts)} of the typical (first: {self.example})"
        )


@dataclass(frozen=True)
class PartReport:
    """How one part will be drawn from typical rows."""

    names: tuple[str, ...]
    sizes: tuple[int, ...] = ()  # configurations, one for each typical row
    methods: tuple[str, ...] = ()
    continuous: bool = False
    effects: bool = False
    exact: bool = True
    measures_differ: bool = False
    measures_unknown: bool = False  # a volume that decides it is not known
    problem: str = ""

    def __str__(self) -> str:
        if self.problem:
            return f"{', '.join(self.names)}: cannot be prepared: {self.problem}"
        if not self.methods:
            return f"{', '.join(self.names)}: {'moved by effects only' if self.effects else 'does not move'}"
        low, high = (min(self.sizes), max(self.sizes)) if self.sizes else (0, 0)
        size = (
            "too many configurations to count"
            if not self.sizes
            else f"{low:,}"
            if low == high
            else f"{low:,} to {high:,} (median {median_low(self.sizes):,})"
        )
        noun = "" if not self.sizes else " configuration" if high == 1 else " configurations"
        more = ", each with continuous coordinates" if self.continuous else ""
        more += ", then effects" if self.effects else ""
        law = "" if self.exact else "; draws are approximate"
        return f"{', '.join(self.names)}: {size}{noun}{more}; drawn by {' or '.join(self.methods)}{law}"


@dataclass(frozen=True)
class CheckReport:
    """What a spec does to a table."""

    name: str
    rows: int
    broken_rows: int
    broken: tuple[Broken, ...]
    clashes: tuple[Clash, ...]
    idle: tuple[str, ...]
    parts: tuple[PartReport, ...]
    starts: int
    exact_starts: int
    points: int | None
    effects: bool = False
    measure: str = "configuration"
    warnings: tuple[Problem, ...] = field(default=())
    untried: int = 0  # constraints of which it is not known whether they restrict anything

    @property
    def ok(self) -> bool:
        """Whether every row keeps the spec, nothing clashes, and every part can be prepared."""
        return not self.broken and not self.clashes and not any(p.problem for p in self.parts)

    def __str__(self) -> str:
        lines = [f"{self.name or 'Interaction model'}: {self.rows:,} rows"]
        if self.broken:
            lines += [f"{self.broken_rows:,} of {self.rows:,} rows break the spec:", *(f"  {b}" for b in self.broken)]
        else:
            lines.append("No row breaks the spec.")
        lines += ["These constraints clash:", *(f"  {c}" for c in self.clashes)] if self.clashes else []
        if self.idle:
            lines += ["Never seen to restrict anything on this data:", *(f"  {label}" for label in self.idle)]
        if self.untried:
            lines.append(f"Not tried whether they restrict anything, as that takes too long: {self.untried:,} constraints.")
        moving = [p for p in self.parts if p.methods or p.problem or p.effects]
        lines += [
            f"Parts: {len(self.parts)}, of which {len(moving)} can change (sizes at {self.starts} typical rows)",
            *(f"  {p}" for p in moving),
        ]
        lines.append(self._exact())
        lines += self._measures()
        lines += ["Warnings:", *(f"  {w}" for w in self.warnings)] if self.warnings else []
        return in_lines(lines)

    def _measures(self) -> list[str]:
        uneven = [f"  {', '.join(p.names)}" for p in self.parts if p.measures_differ]
        unknown = [f"  {', '.join(p.names)}" for p in self.parts if not p.measures_differ and (p.measures_unknown or p.problem)]
        lines = []
        if uneven:
            lines += [f"The measures `configuration` and `volume` differ here (this spec: {self.measure}):", *uneven]
        if unknown:
            lines += [f"Whether the measures `configuration` and `volume` differ here is not known (this spec: {self.measure}):", *unknown]
        return lines or ["The measures `configuration` and `volume` agree at these rows."]

    def _exact(self) -> str:
        if self.effects:
            return "Exact computation: no, effects are random."
        if not self.starts:
            return "Exact computation: unknown, no row could be looked at."
        if self.exact_starts == self.starts:
            return f"Exact computation: yes, for all typical rows (median {self.points:,} reachable points)."
        if self.exact_starts:
            return f"Exact computation: for {self.exact_starts} of {self.starts} typical rows; the others are sampled."
        many = "" if self.points is None else f" (median {self.points:,})"
        if any(p.continuous for p in self.parts):
            why = "continuous features move"
        elif any(p.problem for p in self.parts):
            why = "a part cannot be prepared"
        else:
            why = f"more than {EXACT_LIMIT:,} reachable points{many}; the method `exact` lists them all the same"
        return f"Exact computation: no, {why}."

    def to_dict(self) -> dict[str, Any]:
        """The record of the check, for ``--json``."""
        return {
            "name": self.name,
            "ok": self.ok,
            "rows": self.rows,
            "broken_rows": self.broken_rows,
            "broken": [
                {
                    "label": b.label,
                    "what": b.what,
                    "rows": b.rows,
                    "examples": [{"row": str(r), "values": dict(v)} for r, v in b.examples],
                }
                for b in self.broken
            ],
            "clashes": [{"labels": list(c.labels), "starts": c.starts, "example": str(c.example)} for c in self.clashes],
            "never_bind": list(self.idle),
            "not_tried": self.untried,
            "parts": [
                {
                    "features": list(p.names),
                    "sizes": {"least": min(p.sizes), "median": median_low(p.sizes), "most": max(p.sizes)} if p.sizes else None,
                    "methods": list(p.methods),
                    "continuous": p.continuous,
                    "effects": p.effects,
                    "exact_draws": p.exact,
                    "measures_differ": p.measures_differ if p.measures_differ or not (p.measures_unknown or p.problem) else None,
                    "problem": p.problem or None,
                }
                for p in self.parts
            ],
            "typical_rows": self.starts,
            "exact_for": self.exact_starts,
            "median_points": self.points,
            "warnings": [w.to_dict() for w in self.warnings],
        }


def _rows(n: int) -> str:
    return f"{n:,} row{'' if n == 1 else 's'}"
