"""Judged draws: one row for each completion, wherever it came from (a run of ours, an Inspect log, another harness)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

__all__ = ["BASE", "COLUMNS", "Answers"]

#: The name of "no interaction": the prompt as it stands.
BASE = "base"

#: One row a draw. `hit` is True, False or None (unresolved; then `why` says so and `answer` keeps what came back).
COLUMNS = ("model", "interaction", "prompt", "category", "draw", "hit", "why", "sent", "answer")


@dataclass(frozen=True)
class Answers:
    """All draws of a run or of several; `info` says how they were made (`scheme`: "joint" or "per_prompt", seed, digests)."""

    table: pd.DataFrame
    info: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]], info: Mapping[str, Any] | None = None) -> Answers:
        """From records with (at least) a model, an interaction, a prompt and a hit."""
        table = pd.DataFrame(list(rows), columns=list(COLUMNS)).astype({"hit": object})
        return cls(table.where(table.notna(), None), dict(info or {}))
