"""An interaction model as the paper's table, for a terminal, a notebook and a paper.

One row a feature: name, type, lower and upper bound, whether it is actionable, the sign of its direction, the numbers
of the joint constraints that it is in, and its part. Below it the constraints and effects, one sentence each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from budge.errors import in_lines, printable
from budge.features import Feature

if TYPE_CHECKING:
    import pandas as pd

    from budge.interaction import InteractionModel

__all__ = ["Description"]

MOST_LISTED = 12  # constraints of one feature: the widest cell is the width of its column
_SIGNS = {"increase": "+", "decrease": "−", None: ""}
_HEADER = ("Name", "Type", "LB", "UB", "Actionable", "Sign", "Joint constraints", "Part")


@dataclass(frozen=True)
class Description:
    """What an interaction model says, in words.

    Examples
    --------
    >>> import budge
    >>> age = {"type": "integer", "bounds": [18, 99], "actionable": False}
    >>> im = budge.InteractionModel(
    ...     {"a": {"type": "binary"}, "b": {"type": "binary"}, "age": age},
    ...     [budge.constraints.OneHot(("a", "b"))],
    ... )
    >>> print(Description(im))
    Interaction model: 3 features, 2 parts, 1 constraint, no effects
    Name  Type     LB  UB  Actionable  Sign  Joint constraints  Part
    a     binary    0   1  yes               1                  1
    b     binary    0   1  yes               1                  1
    age   integer  18  99  no                                   2
    Constraints
      1. Exactly 1 of a, b is on.
    """

    model: InteractionModel

    @property
    def title(self) -> str:
        """Its name and sizes."""
        im = self.model
        sizes = [_count(len(im.features), "feature"), _count(len(im.parts), "part"), _count(len(im.constraints), "constraint")]
        sizes.append(_count(len(im.effects), "effect"))
        return f"{im.name or 'Interaction model'}: {', '.join(sizes)}"

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The table's cells, one row a feature."""
        im = self.model
        part = {name: i for i, names in enumerate(im.partition, 1) for name in names}
        joint = self._joint()
        return tuple((*_own(f), _listed(joint.get(f.name, ())), str(part[f.name])) for f in im.features)

    @property
    def constraints(self) -> tuple[str, ...]:
        """One sentence a constraint, in the order of their numbers."""
        return tuple(c.describe() + (f" ({c.name})" if c.name else "") for c in self.model.constraints)

    @property
    def effects(self) -> tuple[str, ...]:
        """One sentence a latent draw or effect."""
        shared = (
            f"latent {', '.join(d.names)} ~ {d.draw if isinstance(d.draw, str) else 'a function'}." for d in self.model.latent
        )
        return (*shared, *(e.describe() for e in self.model.effects))

    def _joint(self) -> dict[str, list[int]]:
        """Return the numbers of the constraints that each feature is in."""
        found: dict[str, list[int]] = {}
        for i, c in enumerate(self.model.constraints, 1):
            for name in dict.fromkeys(c.scope):
                found.setdefault(name, []).append(i)
        return found

    def to_frame(self) -> pd.DataFrame:
        """The table as a DataFrame: bounds as numbers, joint constraints as lists of numbers."""
        import pandas as pd

        im = self.model
        part = {name: i for i, names in enumerate(im.partition, 1) for name in names}
        joint, records = self._joint(), []
        for f in im.features:
            low, high = f.range if f.type not in ("category", "fixed") else (math.nan, math.nan)
            levels = list(f.levels) if f.levels is not None else None
            sign = {"increase": 1, "decrease": -1}.get(f.direction or "", 0)
            records.append((f.name, f.type, low, high, levels, f.actionable, sign, joint.get(f.name, []), part[f.name]))
        return pd.DataFrame(
            records, columns=["name", "type", "lower", "upper", "levels", "actionable", "sign", "joint_constraints", "part"]
        )

    def __str__(self) -> str:
        cells = [_HEADER, *(tuple(in_lines([cell]) for cell in row) for row in self.rows)]
        wide = [max(len(row[j]) for row in cells) for j in range(len(_HEADER))]
        right = {2, 3}
        lines = [self.title]
        lines += [
            "  ".join(c.rjust(w) if j in right else c.ljust(w) for j, (c, w) in enumerate(zip(row, wide))).rstrip()
            for row in cells
        ]
        for head, sentences in self.lists():
            lines += [head, *(f"  {i}. {s}" for i, s in enumerate(sentences, 1))]
        return in_lines(lines)

    def lists(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return the sentences below the table: a heading, and its sentences."""
        warned = tuple(str(problem) for problem in self.model.warnings)
        parts = [("Constraints", self.constraints), ("Effects", self.effects), ("Warnings", warned)]
        return [(head, sentences) for head, sentences in parts if sentences]

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{cell}</th>" for cell in _HEADER)
        body = "".join("<tr>" + "".join(f"<td>{escape(printable(cell))}</td>" for cell in row) + "</tr>" for row in self.rows)
        lists = "".join(
            f"<p><b>{title}</b></p><ol>" + "".join(f"<li>{escape(printable(s))}</li>" for s in sentences) + "</ol>"
            for title, sentences in self.lists()
        )
        caption = escape(printable(self.title))
        return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{lists}"

    def to_latex(self) -> str:
        """The table as LaTeX (booktabs), with the numbered constraints below it."""
        from budge.table_files import latex  # which loads pandas

        lines = [
            r"\begin{tabular}{llrrcccl}",
            r"\toprule",
            " & ".join(rf"\textbf{{{cell}}}" for cell in _HEADER) + r" \\",
            r"\midrule",
        ]
        lines += [" & ".join(latex(cell) for cell in row) + r" \\" for row in self.rows]
        lines += [r"\bottomrule", r"\end{tabular}"]
        for head, sentences in self.lists():
            lines += [
                "",
                rf"\paragraph{{{head}}}",
                r"\begin{enumerate}",
                *(rf"  \item {latex(s)}" for s in sentences),
                r"\end{enumerate}",
            ]
        return "\n".join(lines) + "\n"


def _own(f: Feature) -> tuple[str, str, str, str, str, str]:
    """The cells that a feature fills by itself."""
    if f.levels is not None:
        named = ", ".join(map(str, f.levels[:6])) + (", …" if len(f.levels) > 6 else "")
        kind = f"category ({'ordered, ' if f.ordered else ''}{named})"
        low, high = "", ""
    elif f.type == "fixed":
        kind, low, high = "fixed", "", ""
    else:
        kind, (low, high) = f.type, (_number(b) for b in f.range)
    steps = [f"{s}{_number(v)}" for s, v in (("+", f.max_increase), ("−", f.max_decrease)) if v is not None]
    sign = _SIGNS.get(f.direction, str(f.direction)) + (f" (at most {' or '.join(steps)})" if steps else "")
    return f.name, kind, low, high, "yes" if f.actionable else "no", sign.strip()


def _number(value: Any) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{int(value):,}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.10g}"


def _count(n: int, noun: str) -> str:
    return f"{n or 'no'} {noun}{'' if n == 1 else 's'}"


def _listed(numbers: Sequence[int]) -> str:
    some = ", ".join(map(str, numbers[:MOST_LISTED]))
    return some if len(numbers) <= MOST_LISTED else f"{some}, … ({len(numbers):,} in all)"
