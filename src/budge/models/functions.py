"""Plain functions: a table in, one output a row out."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pandas as pd

from budge.models.reading import Ask
from budge.models.rows import Rows
from budge.origins import as_it_came

__all__ = ["FunctionEngine"]


@dataclass(frozen=True)
class FunctionEngine:
    """A function of a table (or, with ``takes="numpy"``, of its values); declared classes and columns, since it records none."""

    function: Callable[[Any], object]
    takes: Literal["frame", "numpy"] = "frame"
    classes: tuple[Any, ...] | None = None

    columns: None = None
    width: None = None

    @property
    def name(self) -> str:
        """The function's own name."""
        function = self.function.func if isinstance(self.function, functools.partial) else self.function
        return str(getattr(function, "__name__", type(function).__name__))

    @property
    def asks(self) -> tuple[Ask, ...]:
        """A function may mean anything; labels, unless the caller says otherwise."""
        return ("label", "score", "probability")

    def answer(self, rows: Rows, ask: Ask) -> object:
        """What the function says."""
        return self.function(rows.to_numpy() if self.takes == "numpy" and isinstance(rows, pd.DataFrame) else as_it_came(rows))

    def digest(self) -> None:
        """A function's content cannot be seen: what it calls and closes over may change."""

    def alias(self, name: str) -> str:
        """Names are kept as they are."""
        return name
