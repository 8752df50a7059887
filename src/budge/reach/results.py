"""What reaching gives back: a set (enumerated, distinct, weighted equally) or a sample (draws with repeats). Never mixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.errors import Problem
from budge.origins import as_it_came

if TYPE_CHECKING:
    from budge.interaction import InteractionModel

__all__ = ["PartDiagnostics", "ReachableSample", "ReachableSet", "SampleBlock"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PartDiagnostics:
    """How one part was enumerated or drawn."""

    names: tuple[str, ...]
    method: str
    configurations: int | None  # None: too many to count
    exact: bool = True
    acceptance: float = 1.0
    note: str = ""  # what is approximate: how chains were seen to mix, how many configurations were dropped

    @property
    def law(self) -> str:
        """Nothing where draws are exact, else what kind of approximation they are."""
        return "" if self.exact else "approximate (MCMC)" if "hit-and-run" in self.method else "approximate"

    def __str__(self) -> str:
        size = "many" if self.configurations is None else f"{self.configurations:,}"
        law = f", {self.law}" if self.law else ""
        share = "" if self.acceptance == 1.0 else f", acceptance {self.acceptance:.3g}"
        note = f" ({self.note})" if self.note else ""
        return f"{', '.join(self.names)}: {self.method}, {size} configurations{law}{note}{share}"


@dataclass(frozen=True)
class _Reached:
    """What both kinds share: values as numbers, and the caller's table that they are written back into."""

    model: InteractionModel = field(repr=False)
    values: FloatArray = field(repr=False)  # one row a point, one column a feature
    start: pd.DataFrame = field(repr=False)  # one row
    status: str = "ok"
    parts: tuple[PartDiagnostics, ...] = field(default=(), repr=False)
    problems: tuple[Problem, ...] = ()  # what the start breaks, where it was kept

    @cached_property
    def points(self) -> Any:
        """The points with the caller's columns, order and dtypes, in the caller's kind of table."""
        return as_it_came(self.model.coding.decode(self.values, self.start, np.zeros(len(self.values), dtype=np.intp)))

    def __len__(self) -> int:
        return len(self.values)

    def _repr_html_(self) -> str:
        from budge.report.notebook import show_html

        return show_html(str(self), table=self.points)


@dataclass(frozen=True)
class ReachableSet(_Reached):
    """Every reachable point once, weighted equally.

    `weights` is None unless a feature has a distribution of its own; then it holds the points' probabilities.
    """

    weights: FloatArray | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """Number of points."""
        return len(self.values)

    def __str__(self) -> str:
        return f"{self.size:,} reachable point{'s' if self.size != 1 else ''} (all of them, status {self.status})"


@dataclass(frozen=True)
class ReachableSample(_Reached):
    """Independent draws of a reachable point, with repeats.

    `weights` are importance weights p/q, one unless a proposal was given.
    """

    seed: int = 0
    measure: str = "configuration"
    weights: FloatArray = field(default_factory=lambda: np.ones(0), repr=False)
    effects: Mapping[str, FloatArray] = field(default_factory=dict, repr=False)

    @property
    def n(self) -> int:
        """Number of draws."""
        return len(self.values)

    @property
    def exact(self) -> bool:
        """Whether every part was drawn exactly, and not only in the limit of a chain or without what was dropped."""
        return all(part.exact for part in self.parts)

    def __str__(self) -> str:
        laws = sorted({part.law for part in self.parts} - {""})
        law = f", {laws[-1]} in some part" if laws else ""
        return f"{self.n:,} independent draws (seed {self.seed}, measure: {self.measure}, status {self.status}{law})"


@dataclass(frozen=True)
class SampleBlock:
    """The draws of some people: `n` rows each, person by person."""

    model: InteractionModel = field(repr=False)
    frame: pd.DataFrame = field(repr=False)  # the people of this block, as the caller gave them
    people: npt.NDArray[np.intp]  # positions in the caller's table of those who were drawn
    drawn: npt.NDArray[np.intp] = field(repr=False)  # their positions in `frame`
    status: tuple[str, ...]  # of everyone in `frame`
    n: int
    starts: FloatArray = field(repr=False)  # where those who were drawn stand, (people, features)
    moved: FloatArray = field(repr=False)  # the features that can move, (features that move, people · n)

    @cached_property
    def values(self) -> FloatArray:
        """The points as numbers: one row a point, one column a feature."""
        result = np.repeat(self.starts, self.n, axis=0)
        result[:, [j for j, f in enumerate(self.model.features) if f.name in self.model.moving]] = self.moved.T
        return result

    @cached_property
    def points(self) -> Any:
        """The points with the caller's columns, order and dtypes, in the caller's kind of table."""
        names = [f.name for f in self.model.features if f.name in self.model.moving]
        return as_it_came(self.model.coding.write(dict(zip(names, self.moved)), self.frame, self.drawn, self.n))

    @property
    def labels(self) -> list[Any]:
        """The index labels of those who were drawn."""
        return list(self.frame.index[self.drawn])
