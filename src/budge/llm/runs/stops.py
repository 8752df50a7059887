"""Stopping early: batches of joint draws until the rule decides for a model and an interaction, or its last draw is made.

The rule is applied draw by draw in their fixed order, so the verdict and the table depend neither on the size of a batch nor on what
was answered first. An unresolved draw counts against the claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from budge.stats import StoppingRule

__all__ = ["Stop", "needed", "stop_of"]


@dataclass(frozen=True)
class Stop:
    """Where a rule stopped for one model under one interaction."""

    model: str
    interaction: str
    verdict: str
    draws: int
    hits: int
    unresolved: int
    asked: int
    fixed: int

    @property
    def saved(self) -> int:
        """Draws saved against the fixed design."""
        return self.fixed - self.asked

    def __str__(self) -> str:
        return (
            f"{self.model} under {self.interaction}: {self.verdict} after {self.draws} draws ({self.saved} of {self.fixed} saved)"
        )

    def to_dict(self) -> dict[str, Any]:
        """The record of the stop."""
        names = ("model", "interaction", "verdict", "draws", "hits", "unresolved", "asked", "saved", "fixed")
        return {name: getattr(self, name) for name in names}


def _surprises(hits: Sequence[bool | None], claim: str) -> NDArray[np.int64]:
    """1 for each draw that speaks against the claim; an unresolved one does."""
    return np.array([hit is None or bool(hit) == (claim == "below") for hit in hits], dtype=np.int64)


def stop_of(rule: StoppingRule, hits: Sequence[bool | None]) -> tuple[str, int]:
    """The verdict and the number of draws after which the rule stops; ``("continue", n)`` if it does not within these."""
    j = np.cumsum(_surprises(hits[: rule.max_n], rule.claim))
    t = np.arange(1, len(j) + 1)
    shown = j <= rule.accept[t]
    stops = np.flatnonzero(shown | (j >= rule.give_up[t]) | (t == rule.max_n))
    if not len(stops):
        return "continue", len(hits)
    return (rule.claim if shown[stops[0]] else "inconclusive"), int(stops[0]) + 1


def needed(rule: StoppingRule, hits: Sequence[bool | None]) -> int:
    """The fewest further draws that could end it: to ask for so many at once wastes none."""
    t, j = len(hits), int(_surprises(hits, rule.claim).sum())
    more = np.arange(1, rule.max_n - t + 1)
    ends = np.flatnonzero((j <= rule.accept[t + more]) | (j + more >= rule.give_up[t + more]))
    return int(more[ends[0]]) if len(ends) else max(rule.max_n - t, 0)
